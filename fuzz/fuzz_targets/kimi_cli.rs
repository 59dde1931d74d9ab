//! Any bytes as a file of this agent: nothing panics, and reading it in two parts gives
//! the same as reading it whole.

#![no_main]

use backtrail_formats::{KimiCli, testing};
use libfuzzer_sys::fuzz_target;

const PATH: &str =
    "/home/me/.kimi-code/sessions/wd_shop_0190/session_0190/agents/main/wire.jsonl";

fuzz_target!(|data: &[u8]| testing::check_any(&KimiCli, PATH, data));
