//! Any bytes as a session of this agent: nothing panics, and reading it in two parts gives
//! the same as reading it whole.

#![no_main]

use backtrail_formats::{OpenCode, testing};
use libfuzzer_sys::fuzz_target;

const PATH: &str = "/home/me/.local/share/opencode/opencode.db/ses_1.jsonl";

fuzz_target!(|data: &[u8]| testing::check_any(&OpenCode, PATH, data));
