//! Samples of pi, read in two parts.

#![allow(clippy::disallowed_methods, reason = "samples are only read")]

mod counted;

use backtrail_formats::{Pi, testing};

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
