//! Any bytes as a file of this agent: nothing panics, and reading it in two parts gives
//! the same as reading it whole.

#![no_main]

use backtrail_formats::{Cline, testing};
use libfuzzer_sys::fuzz_target;

const SESSION: &str = "/home/me/.cline/data/sessions/1790000000000_abcde/1790000000000_abcde.messages.json";
const TASK: &str =
    "/home/me/.cline/data/tasks/1790000000000/api_conversation_history.json";

fuzz_target!(|data: &[u8]| {
    testing::check_any(&Cline, SESSION, data);
    testing::check_any(&Cline, TASK, data);
});
