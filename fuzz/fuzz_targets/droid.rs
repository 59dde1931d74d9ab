//! Any bytes as a file of this agent: nothing panics, and reading it in two parts gives
//! the same as reading it whole.

#![no_main]

use backtrail_formats::{Droid, testing};
use libfuzzer_sys::fuzz_target;

const PATH: &str =
    "/home/me/.factory/sessions/-home-me-shop/0190.jsonl";

fuzz_target!(|data: &[u8]| testing::check_any(&Droid, PATH, data));
