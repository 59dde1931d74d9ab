//! Messages and sessions to measure with, the same in every run.

use std::fs;
use std::path::{Path, PathBuf};

use backtrail::{
    Block, Draft, Durability, Message, Session, SessionId, SessionOptions, Store, ToolResult,
    ToolUse, Usage,
};
use serde_json::json;

use crate::Result;

/// The length of a record on disk, including the newline.
pub(crate) const RECORD: usize = 1024;
/// The same, in the session that is streamed.
const LONG_RECORD: usize = 2700;

/// Typical content: code, output, quotes, line breaks, a few characters beyond ASCII.
const SAMPLE: &str = "\
    fn parse(line: &str) -> Result<Record, Error> {\n\
    \tlet (head, rest) = line.split_once(\"\\t\").ok_or(Error::Short)?;\n\
    \t// The first field names the kind; all others are its own.\n\
    \tOk(Record { kind: head.into(), fields: rest.split('\\t').collect() })\n}\n\
    test parse::tests::empty_line_is_short ... ok\n\
    warning: unused variable: `n` --> src/main.rs:41:9\n\
    The café’s naïve parser drops the last field → I will keep it and add a test.\n\
    drwxr-xr-x 4 user user 4096 Nov 15 08:00 target\n";

/// Returns text that takes `len` bytes inside a JSON string.
pub(crate) fn text(len: usize, variant: usize) -> String {
    let mut out = String::with_capacity(len);
    let mut left = len;
    let chars = SAMPLE.chars().cycle().skip(variant * 61 % SAMPLE.len());
    for c in chars {
        let width = match c {
            '\n' | '\t' | '"' | '\\' => 2,
            c => c.len_utf8(),
        };
        if width > left {
            break;
        }
        left -= width;
        out.push(c);
    }
    // The next character is too wide for the rest.
    out.extend(std::iter::repeat_n('.', left));
    out
}

/// Returns user messages whose records take [`RECORD`] bytes on disk if their seq has
/// five digits.
pub(crate) fn messages(count: usize, around: usize) -> Vec<Message> {
    (0..count)
        .map(|n| Message::user_text(text(RECORD - around, n)))
        .collect()
}

/// Returns how many bytes a record of one text takes besides that text.
pub(crate) fn around(store: &Store) -> Result<usize> {
    let session = session(store, Durability::Os)?;
    session.append(Message::user_text(""))?;
    let records = session.reader().last_records(1)?;
    let record = records.first().ok_or("the record is not there")?;
    // A newline, and four more digits of the seq.
    Ok(record.as_ref().bytes().len() + 1 + 4)
}

pub(crate) fn session(store: &Store, durability: Durability) -> Result<Session> {
    let options = SessionOptions::new().title("bench").durability(durability);
    Ok(store.create_session(options)?)
}

/// A session on disk.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) store: PathBuf,
    pub(crate) id: SessionId,
    pub(crate) records: u64,
    /// Its trails, oldest first.
    pub(crate) trails: Vec<PathBuf>,
    /// The total length of the trails.
    pub(crate) bytes: u64,
}

/// Creates a session of about `bytes` in the store `dir/store`: a typical mix of
/// messages, 2.7 KB each.
pub(crate) fn make_session(dir: &Path, bytes: u64) -> Result<Made> {
    const BATCH: u64 = 256;
    let root = dir.join("store");
    let store = Store::open_or_create(&root)?;
    let session = session(&store, Durability::Os)?;
    let drafts = mix()?;
    let mut records = 0;
    while records * (LONG_RECORD as u64) < bytes {
        for result in session.append_batch(drafts.iter().cycle().take(BATCH as usize).cloned()) {
            result?;
        }
        records += BATCH;
    }
    let id = session.id().clone();
    let trails = trails(&session.reader().dir())?;
    session.close()?;
    let mut bytes = 0;
    for trail in &trails {
        bytes += fs::metadata(trail)?.len();
    }
    Ok(Made {
        store: root,
        id,
        records,
        trails,
        bytes,
    })
}

fn trails(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut trails = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "jsonl")
        {
            trails.push(path);
        }
    }
    trails.sort_unstable();
    Ok(trails)
}

/// Returns a few turns: a question, a reply with a call, its result, an answer.
pub(crate) fn mix() -> Result<Vec<Draft>> {
    let mut drafts = Vec::new();
    for n in 0..16 {
        let call = format!("toolu_{n:024}");
        let usage = Usage::new(1200 + n as u64, 340)
            .cache_creation(5000)
            .cache_read(80_000);
        let input = json!({
            "file_path": "/home/user/project/src/main.rs",
            "content": text(1301, 4 * n + 1),
            "line": n,
        });
        let reply = Message::assistant([
            Block::signed_thinking(text(500, n), "c2lnbmF0dXJl"),
            Block::text(text(250, n + 7)),
            ToolUse::new(call.as_str(), "write_file", &input)?.into(),
        ]);
        let result = ToolResult::ok(text(LONG_RECORD - 320, 4 * n + 2)).answers(call, "write_file");
        let answer = Message::assistant([Block::text(text(LONG_RECORD - 432, 4 * n + 3))]);
        let model = |message: Message, usage: Usage| {
            Draft::from(message.usage(usage))
                .model("claude-opus-5")
                .response_id(format!("msg_{n:024}"))
                .duration_ms(1200)
        };
        drafts.extend([
            Message::user_text(text(LONG_RECORD - 222, 4 * n)).into(),
            model(reply, usage.clone()),
            Message::tool_result(result).into(),
            model(answer, usage),
        ]);
    }
    Ok(drafts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_takes_the_length_that_was_asked_for() {
        for variant in 0..20 {
            let text = text(700 + variant, variant);
            let json = serde_json::to_string(&text).unwrap();
            assert_eq!(json.len() - 2, 700 + variant);
        }
    }

    #[test]
    fn records_take_their_length() {
        let dir = tempfile::tempdir().unwrap();
        let made = make_session(dir.path(), 1_000_000).unwrap();
        let mean = made.bytes / made.records;
        assert!((2680..2720).contains(&mean), "{mean} bytes a record");
    }
}
