//! Every sample of claw-code is read, and comes to what an independent reader counts.

#![allow(clippy::disallowed_methods, reason = "samples are read as they lie")]

mod counted;

use backtrail::Transcript;
use backtrail_formats::{ClawCode, testing};

#[test]
fn the_samples_come_to_what_an_independent_reader_counts() {
    let Some(samples) = counted::samples() else {
        return;
    };
    let files = counted::files(&samples.join("claw-code"));
    assert!(files.len() >= 22, "{} samples", files.len());
    for file in files {
        let (told, gathered) = counted::read(&ClawCode, &file);
        assert_eq!(told.damage.count, 0, "{}", file.display());
        assert!(told.session.starts_with("session-177"), "{}", told.session);
        let Some(expected) = counted::independent("claw_code.py", &file) else {
            return;
        };
        counted::assert_agrees(&file, &told, &gathered, &expected);
        println!("{}: {expected}", file.display());
        // The engine reads the same form by itself.
        let engine = Transcript::load_from_path(&file).expect("it can be read");
        let ours: Vec<_> = gathered
            .messages()
            .map(|said| said.message.clone())
            .collect();
        assert_eq!(engine.messages(), ours, "{}", file.display());
        let bytes = std::fs::read(&file).expect("it can be read");
        for part in 0..12 {
            testing::check(
                &ClawCode,
                &file.to_string_lossy(),
                &bytes,
                bytes.len() * part / 11,
            );
        }
    }
}
