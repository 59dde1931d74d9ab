//! Any bytes as a file of this agent: nothing panics, and reading it in two parts gives
//! the same as reading it whole.

#![no_main]

use backtrail_formats::{Cursor, testing};
use libfuzzer_sys::fuzz_target;

const PATH: &str =
    "/home/me/.cursor/projects/home-me-shop/agent-transcripts/0190/0190.jsonl";

fuzz_target!(|data: &[u8]| testing::check_any(&Cursor, PATH, data));
