//! Every sample of pi agrees with an independent reader.

#![allow(clippy::disallowed_methods, reason = "samples are only read")]

mod counted;

use backtrail_formats::{Pi, testing};

#[test]
fn the_samples_agree_with_an_independent_reader() {
    let Some(samples) = counted::samples() else {
        return;
    };
    let mut read = 0;
    for directory in ["pi", "matrix-agent-sessions/pi"] {
        for file in counted::files(&samples.join(directory)) {
            let (report, collected) = counted::read(&Pi, &file);
            assert_eq!(report.damage.count, 0, "{}", file.display());
            assert!(
                report.unknown.is_empty(),
                "{}: {:?}",
                file.display(),
                report.unknown
            );
            read += 1;
            if file
                .extension()
                .is_some_and(|extension| extension == "jsonl")
            {
                let Some(expected) = counted::independent("pi.py", &file) else {
                    return;
                };
                counted::assert_agrees(&file, &collected, &expected);
                println!("{}: {expected}", file.display());
            }
        }
    }
    assert!(read >= 4, "{read} samples");
}

#[test]
fn resuming_reads_the_same_as_reading_from_the_beginning() {
    let Some(samples) = counted::samples() else {
        return;
    };
    for directory in ["pi", "matrix-agent-sessions/pi"] {
        for file in counted::files(&samples.join(directory)) {
            let bytes = std::fs::read(&file).expect("the sample can be read");
            let path = file.to_string_lossy();
            for part in 0..24 {
                testing::check(&Pi, &path, &bytes, bytes.len() * part / 23);
            }
        }
    }
}
