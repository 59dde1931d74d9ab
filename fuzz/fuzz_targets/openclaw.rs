//! Any bytes as a file of this agent: nothing panics, and reading it in two parts gives
//! the same as reading it whole.

#![no_main]

use backtrail_formats::{OpenClaw, testing};
use libfuzzer_sys::fuzz_target;

const PATH: &str =
    "/home/me/.openclaw/agents/main/sessions/0190.jsonl";

fuzz_target!(|data: &[u8]| testing::check_any(&OpenClaw, PATH, data));
