//! Any bytes as a file of this agent: nothing panics, and reading it in two parts gives
//! the same as reading it whole.

#![no_main]

use backtrail_formats::{Hermes, testing};
use libfuzzer_sys::fuzz_target;

const PATH: &str =
    "/home/me/.hermes/sessions/session_0190.json";

fuzz_target!(|data: &[u8]| testing::check_any(&Hermes, PATH, data));
