//! Any bytes as a file of this agent: nothing panics, and reading it in two parts gives
//! the same as reading it whole.

#![no_main]

use backtrail_formats::{RooCode, testing};
use libfuzzer_sys::fuzz_target;

const PATH: &str = "/home/me/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks/1790000000000/api_conversation_history.json";

fuzz_target!(|data: &[u8]| testing::check_any(&RooCode, PATH, data));
