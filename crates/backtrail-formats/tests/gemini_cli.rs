//! Samples of Gemini CLI, read in two parts, and the second file that a resume leaves.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may panic, and its files are its own"
)]

mod counted;

use backtrail::Store;
use backtrail_formats::{Environment, GeminiCli, ImportOptions, import, testing};

#[test]
fn resuming_reads_the_same_as_reading_from_the_beginning() {
    let Some(samples) = counted::samples() else {
        return;
    };
    let directories = [
        samples.join("gemini-cli"),
        samples.join("matrix-agent-sessions/gemini"),
        samples.join("../agents/samples/gemini"),
    ];
    for file in directories.iter().flat_map(|dir| counted::files(dir)) {
        let bytes = std::fs::read(&file).unwrap();
        let path = file.to_string_lossy();
        for part in 0..24 {
            testing::check(&GeminiCli, &path, &bytes, bytes.len() * part / 23);
        }
    }
}

#[test]
fn the_file_without_a_conversation_that_a_resume_leaves_is_not_a_session() {
    const STUB: &str = concat!(
        r#"{"sessionId":"0123abcd-1","projectHash":"ff","startTime":"2026-02-03T04:05:06Z"}"#,
        "\n",
        r#"{"$set":{"messages":[{"id":"a","type":"user","content":"<session_context>here"}]}}"#,
        "\n",
    );
    let full = format!("{STUB}{}\n", r#"{"id":"b","type":"user","content":"go"}"#);
    for stub_first in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let chats = dir.path().join("chats");
        std::fs::create_dir(&chats).unwrap();
        let store = Store::open_or_create(dir.path().join("store")).unwrap();
        let options = ImportOptions::new(Environment::default()).paths(vec![chats.clone()]);
        let files = [
            ("session-06-0123abcd.jsonl", STUB),
            ("session-05-0123abcd.jsonl", &full),
        ];
        let order = if stub_first { [0, 1] } else { [1, 0] };
        for (n, at) in order.into_iter().enumerate() {
            let (name, text) = files[at];
            std::fs::write(chats.join(name), text).unwrap();
            let report = import(&store, &options, &|_| {}).unwrap();
            let has_stub = stub_first || n == 1;
            let agent = report.agents.iter().find(|agent| agent.found > 0).unwrap();
            assert_eq!(agent.without_conversation, u64::from(has_stub));
            assert_eq!(agent.found, agent.new + agent.updated + agent.unchanged);
        }
        assert_eq!(store.sessions().unwrap().len(), 1);
    }
}
