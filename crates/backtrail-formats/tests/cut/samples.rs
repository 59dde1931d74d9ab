//! Real sessions, cut at every record where they may end. They are not part of the project:
//! without them this test is skipped, and says so.

use std::path::{Path, PathBuf};

use backtrail_formats::{CompleteEnd, Source, recognise, resumable};

use crate::properties::{NEW_ID, conversation, copy, format};

/// Returns the files of samples whose agents can be resumed.
fn samples() -> Option<Vec<(PathBuf, &'static str)>> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let mut left = vec![shared.join("samples"), shared.join("agents/samples")];
    if !left.iter().all(|dir| dir.is_dir()) {
        eprintln!("SKIPPED: needs the samples; there are none in {shared:?}");
        return None;
    }
    let mut found = Vec::new();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(
                std::fs::read_dir(path)
                    .unwrap()
                    .map(|it| it.unwrap().path()),
            );
        } else if path.extension().is_some_and(|end| end == "jsonl")
            && let Ok(Some(format)) = recognise(&path)
            && resumable(format.name()).is_some()
        {
            found.push((path, format.name()));
        }
    }
    found.sort();
    Some(found)
}

/// Checks copies of a file, at most `most` of them. Returns how many, and how many places there
/// are where no beginning of the file ends.
fn check(path: &Path, name: &str, most: usize) -> (usize, usize) {
    let (agent, source) = (resumable(name).unwrap(), Source::open(path).unwrap());
    let mut events = backtrail_formats::EventCollector::default();
    events.read(format(name).open(&source).unwrap()).unwrap();
    let whole = conversation(&events);
    let mut end = CompleteEnd::default();
    let complete: Vec<usize> = (1..=whole.len())
        .filter(|n| {
            let key = &whole[n - 1].0;
            match events.messages().find(|event| event.key == *key) {
                Some(event) => end.add(&event.message, event.response_id.as_deref()),
                None => end.begin(),
            }
            end.is_complete()
        })
        .collect();
    let step = complete.len().div_ceil(most).max(1);
    let (mut copied, mut refused) = (0, 0);
    for end in complete.iter().step_by(step) {
        let keys: Vec<String> = whole[..*end].iter().map(|(key, _)| key.clone()).collect();
        let text = match copy(agent, &source, &keys, "/home/u/proj") {
            Ok(Some((_, text))) => text,
            Ok(None) => {
                refused += 1;
                continue;
            }
            // One message, or a session of an older version or that continues another.
            Err(error) => {
                println!("{error}");
                return (0, 0);
            }
        };
        let place = Path::new("/x").join(format!("{NEW_ID}.jsonl"));
        let copy = Source::from_bytes(place, text);
        let mut events = backtrail_formats::EventCollector::default();
        events.read(format(name).open(&copy).unwrap()).unwrap();
        assert_eq!(events.session, NEW_ID, "{path:?}");
        let texts = |all: &[(String, String)]| -> Vec<String> {
            all.iter().map(|(_, text)| without_places(text)).collect()
        };
        assert_eq!(
            texts(&conversation(&events)),
            texts(&whole[..*end]),
            "{path:?} {end}"
        );
        copied += 1;
    }
    (copied, refused)
}

/// Removes the places of lines from a text: Codex's calls without an id are named by them.
fn without_places(text: &str) -> String {
    let mut parts = text.split("\"b0");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let is_place = part.len() > 12 && part.as_bytes()[11] == b'-';
        text + "\"b0" + if is_place { &part[12..] } else { part }
    })
}

#[test]
fn real_sessions_can_be_cut_at_every_record() {
    let samples = samples().unwrap_or_default();
    let (mut copies, mut without) = (0, 0);
    for (path, name) in &samples {
        let (copied, refused) = check(path, name, 5);
        if refused > 0 {
            println!(
                "{refused} without a place to cut: {name} {}",
                path.display()
            );
        }
        (copies, without) = (copies + copied, without + refused);
    }
    assert!(samples.is_empty() || copies > 100, "{copies}");
    // In a few samples that were written by hand, what a line means depends on later lines.
    assert!(without * 100 <= copies, "{without} of {copies}");
}
