//! Every sample of pi is read, and comes to what an independent reader counts.

#![allow(clippy::disallowed_methods, reason = "samples are read as they lie")]

mod counted;

use backtrail_formats::{Pi, testing};

#[test]
fn the_samples_come_to_what_an_independent_reader_counts() {
    let Some(samples) = counted::samples() else {
        return;
    };
    let mut read = 0;
    for directory in ["pi", "matrix-agent-sessions/pi"] {
        for file in counted::files(&samples.join(directory)) {
            let (told, gathered) = counted::read(&Pi, &file);
            assert_eq!(told.damage.count, 0, "{}", file.display());
            assert!(
                told.unknown.is_empty(),
                "{}: {:?}",
                file.display(),
                told.unknown
            );
            read += 1;
            if file
                .extension()
                .is_some_and(|extension| extension == "jsonl")
            {
                let Some(expected) = counted::independent("pi.py", &file) else {
                    return;
                };
                counted::assert_agrees(&file, &told, &gathered, &expected);
                println!("{}: {expected}", file.display());
            }
        }
    }
    assert!(read >= 4, "{read} samples");
}

#[test]
fn the_samples_are_read_on_as_they_are_read_whole() {
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
