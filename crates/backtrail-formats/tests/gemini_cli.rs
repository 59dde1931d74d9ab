//! Every sample of Gemini CLI is read, and comes to what an independent reader counts.

#![allow(clippy::disallowed_methods, reason = "samples are read as they lie")]

mod counted;

use std::path::PathBuf;

use backtrail_formats::{GeminiCli, testing};

/// Returns the samples that are sessions. The one left out is what a model was made to
/// answer in a test of the agent.
fn sessions() -> Vec<PathBuf> {
    let Some(samples) = counted::samples() else {
        return Vec::new();
    };
    let directories = ["gemini-cli", "matrix-agent-sessions/gemini"];
    let files = directories.map(|directory| counted::files(&samples.join(directory)));
    let mut files = files.concat();
    files.retain(|file| !file.ends_with("agent-resume-session.json"));
    assert!(files.len() >= 20, "{} samples", files.len());
    files
}

#[test]
fn the_samples_come_to_what_an_independent_reader_counts() {
    for file in sessions() {
        let (told, gathered) = counted::read(&GeminiCli, &file);
        assert_eq!(told.damage.count, 0, "{}", file.display());
        assert!(
            told.unknown.is_empty(),
            "{}: {:?}",
            file.display(),
            told.unknown
        );
        let Some(expected) = counted::independent("gemini_cli.py", &file) else {
            return;
        };
        counted::assert_agrees(&file, &told, &gathered, &expected);
        println!("{}: {expected}", file.display());
    }
}

#[test]
fn the_samples_are_read_on_as_they_are_read_whole() {
    for file in sessions() {
        let bytes = std::fs::read(&file).expect("the sample can be read");
        let path = file.to_string_lossy();
        for part in 0..24 {
            testing::check(&GeminiCli, &path, &bytes, bytes.len() * part / 23);
        }
    }
}
