//! Any bytes as a file of this agent: nothing panics, and reading it in two parts gives
//! the same as reading it whole.

#![no_main]

use backtrail_formats::{Pi, testing};
use libfuzzer_sys::fuzz_target;

const PATH: &str =
    "/home/me/.pi/agent/sessions/--shop--/2026-02-03T04-05-06-789Z_0190.jsonl";

fuzz_target!(|data: &[u8]| testing::check_any(&Pi, PATH, data));
