//! Measurements on realistic text. Run by hand, optimized: `BACKTRAIL_SPEED_MB=1000 cargo
//! test --release -p backtrail-index speed -- --ignored --nocapture`.

use std::fmt::Write as _;
use std::time::Instant;

use backtrail::{Block, Message, ToolResult, ToolUse};

use super::testing::{TestTrail, search, wanted};
use super::*;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, most: u64) -> u64 {
        (self.next() >> 11) % most
    }

    /// A word, the first ones much more often than the last ones.
    fn word(&mut self) -> String {
        let unit = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let rank = (40_000_f64.powf(unit) - 1.0) as u64;
        let mut state = rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let len = 2 + (rank.min(400) as f64).sqrt() as u64 / 3 + state % 4;
        (0..len)
            .map(|at| {
                state = state
                    .rotate_left(7)
                    .wrapping_mul(31)
                    .wrapping_add(rank + at);
                char::from(b"etaoinshrdlucmfwypvbgkjqxz"[(state >> 33) as usize % 26])
            })
            .collect()
    }

    fn prose(&mut self, bytes: usize, out: &mut String) {
        let end = out.len() + bytes;
        while out.len() < end {
            let word = self.word();
            out.push_str(&word);
            out.push_str(if self.below(9) == 0 { ". " } else { " " });
        }
    }

    fn name(&mut self) -> String {
        let (a, mut b) = (self.word(), self.word());
        match self.below(3) {
            0 => format!("{a}_{b}"),
            1 => {
                b.get_mut(..1).expect("ascii").make_ascii_uppercase();
                format!("{a}{b}")
            }
            _ => format!("{a}::{b}"),
        }
    }

    fn code(&mut self, bytes: usize, out: &mut String) {
        let end = out.len() + bytes;
        while out.len() < end {
            let (a, b, number) = (self.name(), self.name(), self.below(100_000));
            writeln!(out, "    let {a} = {b}(&self, {number});").expect("written");
        }
    }

    fn listing(&mut self, bytes: usize, out: &mut String) {
        let end = out.len() + bytes;
        while out.len() < end {
            let (a, b) = (self.word(), self.word());
            let (id, line) = (self.next(), self.below(3000));
            writeln!(out, "src/{a}/{b}.rs:{line}: {id:016x} ok").expect("written");
        }
    }

    fn message(&mut self, kind: usize) -> Message {
        let mut text = String::new();
        match kind % 10 {
            0 => {
                self.prose(300, &mut text);
                Message::user_text(text)
            }
            1..=5 if kind % 2 == 1 => {
                self.prose(400, &mut text);
                self.code(200, &mut text);
                let (path, mut old) = (self.name(), String::new());
                self.code(300, &mut old);
                let input =
                    serde_json::json!({"file_path": format!("src/{path}.rs"), "old_string": old});
                let call = ToolUse::new("toolu", "edit", &input).expect("a call");
                Message::assistant([Block::text(text), Block::from(call)])
            }
            _ => {
                self.code(400, &mut text);
                self.listing(400, &mut text);
                self.prose(400, &mut text);
                Message::tool_result(ToolResult::ok(text).answers("toolu", "bash"))
            }
        }
    }
}

/// Returns the processor time of all threads, in steps of a hundredth of a second.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = stat.split(' ').skip(13).take(2);
    ticks
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

#[test]
#[ignore = "measures; run it by hand"]
fn speed_of_indexing_and_searching() {
    let megabytes: u64 = std::env::var("BACKTRAIL_SPEED_MB")
        .ok()
        .and_then(|mb| mb.parse().ok())
        .unwrap_or(50);
    let mut random = Random(88_172_645_463_325_252);
    let mut trails: Vec<TestTrail> = (0..64)
        .map(|_| TestTrail::new("s", (0..256).map(|at| random.message(at)).collect()))
        .collect();
    let dir = tempfile::tempdir_in(".").expect("a directory");
    let mut writer = SearchWriter::rebuild(dir.path()).expect("a writer");
    let (mut bytes, mut trail) = (0_u64, 0_usize);
    let size = |message: &Message| serde_json::to_vec(message).map_or(0, |json| json.len());
    let sizes: Vec<usize> = trails
        .iter()
        .map(|trail| trail.messages.iter().map(size).sum())
        .collect();
    let (begun, worked) = (Instant::now(), cpu_seconds());
    while bytes < megabytes << 20 {
        let at = trail % trails.len();
        trails[at].number = trail as u32;
        trails[at].feed(0, &mut writer);
        bytes += sizes[at] as u64;
        trail += 1;
    }
    let found = writer.commit().expect("committed");
    let seconds = begun.elapsed().as_secs_f64();
    let worked = cpu_seconds() - worked;
    let files = std::fs::read_dir(dir.path().join("search-2")).expect("listed");
    let size: u64 = files
        .map(|file| file.expect("a file").metadata().expect("a size").len())
        .sum();
    let mb = bytes as f64 / 1e6;
    println!(
        "{mb:.0} MB in {seconds:.2} s: {:.1} MB/s; {worked:.2} s of work: {:.1} MB/s; {:.2} of the text on disk",
        mb / seconds,
        mb / worked,
        size as f64 / bytes as f64
    );
    println!(
        "{} segments, {} trails",
        found.searcher.segment_readers().len(),
        trail
    );
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    println!(
        "{}",
        status
            .lines()
            .find(|line| line.starts_with("VmHWM"))
            .unwrap_or_default()
    );
    drop(found);
    for query in [
        "let",
        "edit",
        "src self",
        "\"let self\"",
        "\"self ok\"",
        "aa*",
        "sr*",
        "rs not src",
        "a3f0*",
    ] {
        let begun = Instant::now();
        let opened = testing::opened(dir.path());
        let open = begun.elapsed();
        let mut wanted = wanted(query);
        wanted.query.limit = 20;
        let total = search(&opened, &wanted).total;
        println!(
            "{query}: {total} in {:?}, opened in {open:?}",
            begun.elapsed() - open
        );
    }
}

#[test]
#[ignore = "measures; run it by hand"]
fn speed_of_opening_with_ten_thousand_trails() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut writer = SearchWriter::rebuild(dir.path()).expect("a writer");
    let mut trail = TestTrail::of_texts("7f3a1c9e-52d4-4b7e-9d0a-3f8b6f2f4d11", &["word"]);
    for number in 0..10_000 {
        trail.number = number;
        trail.feed(0, &mut writer);
    }
    drop(writer.commit().expect("committed"));
    for _ in 0..3 {
        let begun = Instant::now();
        let opened = testing::opened(dir.path());
        let open = begun.elapsed();
        let total = search(&opened, &wanted("word")).total;
        println!(
            "{total} in {:?}, opened in {open:?}",
            begun.elapsed() - open
        );
    }
    let begun = Instant::now();
    let mut memory = SearchWriter::in_memory().expect("a writer");
    trail.feed(0, &mut memory);
    let memory = memory.commit().expect("committed");
    println!(
        "one in memory: {:?} {}",
        begun.elapsed(),
        memory.known().len()
    );
}
