//! B7: checkpoint files of design B agree with an independent reader.

#![allow(clippy::disallowed_methods, reason = "seeds are only read")]

mod counted;

use std::path::Path;

use backtrail_formats::CheckpointFiles;

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
