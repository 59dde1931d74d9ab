//! B7: checkpoint files of design B agree with an independent reader.

#![allow(clippy::disallowed_methods, reason = "seeds are only read")]

mod counted;

use std::path::Path;

use backtrail::Store;
use backtrail_formats::{CheckpointFiles, import_checkpoint_files};

#[test]
fn b7_checkpoint_files_agree_with_an_independent_reader() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus-seeds");
    let files = counted::files(&seeds.join("checkpoint_files"));
    assert!(!files.is_empty());
    for file in files {
        let (report, collected) = counted::read(&CheckpointFiles, &file);
        assert_eq!(report.damage.count, 0, "{}", file.display());
        let Some(expected) = counted::independent("checkpoint_files.py", &file) else {
            return;
        };
        counted::assert_agrees(&file, &collected, &expected);
    }
}

/// B7: one call imports them, a file or a directory, and importing again adds only what is new.
#[test]
fn b7_checkpoint_files_are_imported_by_one_call() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(dir.path().join("store")).unwrap();
    let files = dir.path().join("checkpoints");
    std::fs::create_dir(&files).unwrap();
    let checkpoint = |id: u32, prompts: &str, answers: &str| {
        format!(
            r#"{{"id":"{id}","timestamp":{{"secs_since_epoch":1794726400,"nanos_since_epoch":0}},
            "stats":{{"start_time":{{"secs_since_epoch":1794726326,"nanos_since_epoch":0}}}},
            "user_prompts":[{prompts}],"assistant_responses":[{answers}],"tool_calls":[],"file_diffs":[]}}"#
        )
    };
    let first = files.join("1.json");
    std::fs::write(&first, checkpoint(1, "\"one\"", "\"first\"")).unwrap();
    let report = import_checkpoint_files(&store, [&first]).unwrap();
    assert_eq!((report.agents[0].new, report.agents[0].messages), (1, 2));
    let [session] = store.sessions().unwrap().try_into().unwrap();
    let texts = || -> Vec<String> {
        let talk = store.read_session(&session).unwrap().transcript().unwrap();
        talk.messages()
            .iter()
            .map(|one| one.text().into_owned())
            .collect()
    };
    assert_eq!(texts(), ["one", "first"]);
    let second = checkpoint(2, "\"one\",\"two\"", "\"first\",\"second\"");
    std::fs::write(files.join("2.json"), second).unwrap();
    std::fs::write(files.join("not one.json"), "{}").unwrap();
    for messages in [2, 0] {
        let report = import_checkpoint_files(&store, [&files]).unwrap();
        assert_eq!(report.agents[0].messages, messages);
        assert!(report.agents[0].errors.is_empty());
    }
    assert_eq!(texts(), ["one", "first", "two", "second"]);
    assert_eq!(store.sessions().unwrap().len(), 1);
    let error = import_checkpoint_files(&store, [files.join("none.json")]).unwrap();
    assert_eq!(error.errors.len() + error.agents[0].errors.len(), 1);
}
