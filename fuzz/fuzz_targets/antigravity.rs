//! Any bytes as a file of this agent: nothing panics, and reading it in two parts gives
//! the same as reading it whole.

#![no_main]

use backtrail_formats::{Antigravity, testing};
use libfuzzer_sys::fuzz_target;

const PATH: &str =
    "/home/me/.gemini/antigravity-cli/brain/0190/.system_generated/logs/transcript.jsonl";

fuzz_target!(|data: &[u8]| testing::check_any(&Antigravity, PATH, data));
