//! Any bytes as a file of this agent: nothing panics, and reading it in two parts gives
//! the same as reading it whole.

#![no_main]

use backtrail_formats::{GrokCli, testing};
use libfuzzer_sys::fuzz_target;

const PATH: &str =
    "/home/me/.grok/sessions/%2Fhome%2Fme%2Fshop/0190/chat_history.jsonl";

fuzz_target!(|data: &[u8]| testing::check_any(&GrokCli, PATH, data));
