//! Any bytes as a file of this agent: nothing panics, and reading it in two parts gives
//! the same as reading it whole.

#![no_main]

use backtrail_formats::{Codex, testing};
use libfuzzer_sys::fuzz_target;

const PATH: &str =
    "/home/me/.codex/sessions/2026/02/03/rollout-2026-02-03T04-05-06-019c0000-0000-7000-8000-000000000001.jsonl";

fuzz_target!(|data: &[u8]| testing::check_any(&Codex, PATH, data));
