//! Every sample of claw-code agrees with an independent reader.

#![allow(clippy::disallowed_methods, reason = "samples are only read")]

mod counted;

use backtrail::Transcript;
use backtrail_formats::{ClawCode, testing};

#[test]
fn the_samples_agree_with_an_independent_reader() {
    let Some(samples) = counted::samples() else {
        return;
    };
    let files = counted::files(&samples.join("claw-code"));
    assert!(files.len() >= 22, "{} samples", files.len());
    for file in files {
        let (report, collected) = counted::read(&ClawCode, &file);
        assert_eq!(report.damage.count, 0, "{}", file.display());
        assert!(
            collected.session.starts_with("session-177"),
            "{}",
            collected.session
        );
        let Some(expected) = counted::independent("claw_code.py", &file) else {
            return;
        };
        counted::assert_agrees(&file, &collected, &expected);
        println!("{}: {expected}", file.display());
        // The engine reads the same form by itself.
        let engine = Transcript::load_from_path(&file).expect("it can be read");
        let ours: Vec<_> = collected
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
