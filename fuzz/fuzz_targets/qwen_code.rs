//! Any bytes as a file of this agent: nothing panics, and reading it in two parts gives
//! the same as reading it whole.

#![no_main]

use backtrail_formats::{QwenCode, testing};
use libfuzzer_sys::fuzz_target;

const PATH: &str =
    "/home/me/.qwen/projects/-shop/chats/0190aaaa-0000-4000-8000-000000000001.jsonl";

fuzz_target!(|data: &[u8]| testing::check_any(&QwenCode, PATH, data));
