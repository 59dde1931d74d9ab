//! B7: checkpoint files of design B come to what an independent reader counts.

#![allow(clippy::disallowed_methods, reason = "seeds are read as they lie")]

mod counted;

use std::path::Path;

use backtrail_formats::CheckpointFiles;

#[test]
fn b7_checkpoint_files_come_to_what_an_independent_reader_counts() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus-seeds");
    let files = counted::files(&seeds.join("checkpoint_files"));
    assert!(!files.is_empty());
    for file in files {
        let (told, gathered) = counted::read(&CheckpointFiles, &file);
        assert_eq!(told.damage.count, 0, "{}", file.display());
        let Some(expected) = counted::independent("checkpoint_files.py", &file) else {
            return;
        };
        counted::assert_agrees(&file, &told, &gathered, &expected);
    }
}
