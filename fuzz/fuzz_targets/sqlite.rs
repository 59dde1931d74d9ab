//! Any bytes as a database: nothing panics, and reading ends.

#![no_main]

use backtrail_formats::testing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| testing::check_database(data));
