//! Every sample of Gemini CLI agrees with an independent reader.

#![allow(clippy::disallowed_methods, reason = "samples are only read")]

mod counted;

use std::path::PathBuf;

use backtrail_formats::{GeminiCli, testing};

/// Returns the samples that are sessions. The one that is skipped is a model's answer for a
/// test of the agent.
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
fn the_samples_agree_with_an_independent_reader() {
    for file in sessions() {
        let (report, collected) = counted::read(&GeminiCli, &file);
        assert_eq!(report.damage.count, 0, "{}", file.display());
        assert!(
            report.unknown.is_empty(),
            "{}: {:?}",
            file.display(),
            report.unknown
        );
        let Some(expected) = counted::independent("gemini_cli.py", &file) else {
            return;
        };
        counted::assert_agrees(&file, &collected, &expected);
        println!("{}: {expected}", file.display());
    }
}

#[test]
fn resuming_reads_the_same_as_reading_from_the_beginning() {
    for file in sessions() {
        let bytes = std::fs::read(&file).expect("the sample can be read");
        let path = file.to_string_lossy();
        for part in 0..24 {
            testing::check(&GeminiCli, &path, &bytes, bytes.len() * part / 23);
        }
    }
}
