//! Any bytes as a file of this agent: nothing panics, and reading it in two parts gives
//! the same as reading it whole.

#![no_main]

use backtrail_formats::{GeminiCli, testing};
use libfuzzer_sys::fuzz_target;

const PATH: &str =
    "/home/me/.gemini/tmp/shop/chats/session-2026-02-03T04-05-0123abcd.jsonl";

fuzz_target!(|data: &[u8]| testing::check_any(&GeminiCli, PATH, data));
