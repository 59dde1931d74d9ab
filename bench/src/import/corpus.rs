//! Many sessions of Claude Code: the samples repeated, each time with other ids.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::samples;
use crate::Result;
use crate::find::corpus::Words;

/// The generated corpus.
pub(super) struct Corpus {
    pub(super) files: u64,
    pub(super) bytes: u64,
    /// What it was made from.
    pub(super) from: &'static str,
}

/// Writes at least this many bytes of sessions to `dir`, in the layout of Claude Code.
pub(super) fn make(dir: &Path, bytes: u64) -> Result<Corpus> {
    let dir_of_samples = samples::root().map(|root| root.join("claude-code"));
    let (texts, from) = match dir_of_samples.filter(|dir| dir.is_dir()) {
        Some(dir) => (read(&dir)?, "samples"),
        None => {
            eprintln!("there are no samples here: sessions are made up");
            (made_up(), "made up")
        }
    };
    let mut corpus = Corpus {
        files: 0,
        bytes: 0,
        from,
    };
    for round in 0_u64.. {
        for (n, text) in texts.iter().enumerate() {
            if corpus.bytes >= bytes {
                return Ok(corpus);
            }
            let text = renamed(text, round, n as u64);
            let project = dir.join(format!("projects/-home-me-project{n}"));
            fs::create_dir_all(&project)?;
            fs::write(free_path(&project, &text, n, round), &text)?;
            corpus.files += 1;
            corpus.bytes += text.len() as u64;
        }
    }
    Ok(corpus)
}

/// Reads the samples that are whole sessions; of the same session only the longest.
fn read(dir: &Path) -> Result<Vec<Vec<u8>>> {
    let is_whole = |path: &PathBuf| {
        let path = path.to_string_lossy();
        let part = ["individual", "messages/", "same-session"];
        !part.iter().any(|part| path.contains(part)) || path.ends_with("04_8bc5137450f6.jsonl")
    };
    let files = samples::files(dir, ".jsonl")?;
    let whole = files.into_iter().filter(is_whole).map(fs::read);
    let mut texts: Vec<Vec<u8>> = whole.collect::<std::io::Result<_>>()?;
    // One sample is a log that contains records of sessions, not a session.
    texts.retain(|text| text.starts_with(b"{"));
    Ok(texts)
}

/// Returns the path for a session: its own name, or a new one if that is taken.
fn free_path(project: &Path, text: &[u8], n: usize, round: u64) -> PathBuf {
    let mark = b"\"sessionId\":\"";
    let at = text.windows(mark.len()).position(|window| window == mark);
    let own = at.and_then(|at| uuid_at(&text[at + mark.len()..]));
    let own = own.and_then(|id| std::str::from_utf8(id).ok());
    let named = own.map(|id| project.join(format!("{id}.jsonl")));
    let other = || {
        let hash = blake3::hash(format!("{n} {round}").as_bytes());
        project.join(format!("{}.jsonl", uuid_of(&hash)))
    };
    named.filter(|path| !path.exists()).unwrap_or_else(other)
}

/// Returns a session with other ids: uuids, and those of messages, requests and calls.
/// The same ids become the same ones, short ones only within a session, because they were
/// made up and mean something else in each.
fn renamed(text: &[u8], round: u64, n: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 1024);
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if let Some(id) = uuid_at(rest) {
            out.extend_from_slice(uuid_of(&hash(id, round)).as_bytes());
            at += id.len();
        } else if let Some((kind, id)) = name_at(rest, text[..at].ends_with(b"\"")) {
            out.extend_from_slice(kind);
            let salt = if id.len() < 6 { (n + 1) << 32 } else { 0 };
            out.extend_from_slice(&hash(id, round + salt).to_hex().as_bytes()[..24]);
            at += kind.len() + id.len();
        } else {
            out.push(rest[0]);
            at += 1;
        }
    }
    out
}

fn hash(id: &[u8], round: u64) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(id).update(&round.to_le_bytes());
    hasher.finalize()
}

fn uuid_of(hash: &blake3::Hash) -> String {
    let hex = hash.to_hex();
    let part = |from: usize, to: usize| &hex[from..to];
    let parts = [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)];
    parts.map(|(from, to)| part(from, to)).join("-")
}

fn uuid_at(text: &[u8]) -> Option<&[u8]> {
    let id = text.get(..36)?;
    let fits = id.iter().enumerate().all(|(n, byte)| match n {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(byte),
    });
    fits.then_some(id)
}

/// Finds an id of the provider. A short one only counts as a whole string.
fn name_at(text: &[u8], quoted: bool) -> Option<(&[u8], &[u8])> {
    let kinds: [&[u8]; 3] = [b"msg_", b"req_", b"toolu_"];
    let kind = kinds.into_iter().find(|kind| text.starts_with(kind))?;
    let (kind, rest) = text.split_at(kind.len());
    let len = rest
        .iter()
        .take_while(|b| b.is_ascii_alphanumeric())
        .count();
    let whole = quoted && len > 0 && rest.get(len) == Some(&b'"');
    (len >= 6 || whole).then_some((kind, &rest[..len]))
}

/// Generates a few sessions of a common shape: prompts, calls, results, answers.
fn made_up() -> Vec<Vec<u8>> {
    let mut words = Words::new();
    (0..24_u64).map(|n| session(&mut words, n)).collect()
}

fn session(words: &mut Words, n: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let id = |what: &str, m: u64| uuid_of(&blake3::hash(format!("{what} {n} {m}").as_bytes()));
    for m in 0..(20 + 30 * (n % 12)) {
        let minute = m / 60 % 60;
        let mut record = json!({
            "parentUuid": (m > 0).then(|| id("line", m - 1)),
            "isSidechain": false, "userType": "external", "cwd": "/home/me/project",
            "sessionId": id("session", 0), "version": "2.1.0", "gitBranch": "main",
            "uuid": id("line", m),
            "timestamp": format!("2026-10-{:02}T10:{minute:02}:{:02}.000Z", 1 + n, m % 60),
        });
        let call = format!("toolu_{n:06}{:06}", m / 4);
        let usage = json!({"input_tokens": 5 + m, "output_tokens": 200,
            "cache_creation_input_tokens": 900, "cache_read_input_tokens": 20_000});
        let answer = |content: serde_json::Value| {
            json!({"id": format!("msg_{n:06}{m:06}"), "type": "message", "role": "assistant",
                "model": "claude-sonnet-4-5", "content": content, "usage": usage})
        };
        let (kind, message) = match m % 4 {
            0 => ("user", json!({"role": "user", "content": words.prose(300)})),
            1 => {
                let input = json!({"command": format!("cat {}", words.path())});
                let call = json!({"type": "tool_use", "id": call, "name": "Bash", "input": input});
                ("assistant", answer(json!([call])))
            }
            2 => {
                let output = words.output(6_000);
                let result = json!({"type": "tool_result", "tool_use_id": call, "content": output});
                record["toolUseResult"] = json!({"stdout": output, "stderr": ""});
                ("user", json!({"role": "user", "content": [result]}))
            }
            _ => {
                let text = json!({"type": "text", "text": words.prose(900)});
                ("assistant", answer(json!([text])))
            }
        };
        record["type"] = kind.into();
        record["message"] = message;
        out.extend_from_slice(record.to_string().as_bytes());
        out.push(b'\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_become_others_and_the_same_ones_the_same() {
        let line = br#"{"uuid":"0a0b0c0d-0000-4000-8000-0123456789ab","id":"msg_0123456789",
            "parent":"0a0b0c0d-0000-4000-8000-0123456789ab","text":"msg_ and msg_1 and 0a0b0c0d-0000","short":"msg_1"}"#;
        let [first, second] = [1, 2].map(|round| renamed(line, round, 0));
        assert_ne!(first, second);
        let read: serde_json::Value = serde_json::from_slice(&first).unwrap();
        assert_eq!(read["uuid"], read["parent"]);
        assert_ne!(read["uuid"], "0a0b0c0d-0000-4000-8000-0123456789ab");
        assert!(read["id"].as_str().unwrap().starts_with("msg_"));
        assert_ne!(read["id"], "msg_0123456789");
        assert_eq!(read["text"], "msg_ and msg_1 and 0a0b0c0d-0000");
        assert_ne!(read["short"], "msg_1");
    }

    #[test]
    fn made_up_sessions_are_lines_of_json() {
        for session in made_up() {
            for line in session
                .split(|byte| *byte == b'\n')
                .filter(|line| !line.is_empty())
            {
                serde_json::from_slice::<serde_json::Value>(line).unwrap();
            }
        }
    }
}
