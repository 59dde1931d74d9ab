//! Any bytes as a file of this agent: nothing panics, and reading it in two parts gives
//! the same as reading it whole.

#![no_main]

use backtrail_formats::{KiloCode, testing};
use libfuzzer_sys::fuzz_target;

const PATH: &str = "/home/me/.config/Code/User/globalStorage/kilocode.kilo-code/tasks/1790000000000/api_conversation_history.json";

fuzz_target!(|data: &[u8]| testing::check_any(&KiloCode, PATH, data));
