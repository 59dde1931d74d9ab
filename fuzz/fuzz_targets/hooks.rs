//! Any bytes as the payload of a hook of every agent: nothing panics, an event has only what
//! can be one, and the answer refuses nothing.

#![no_main]

use backtrail_formats::testing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| testing::check_hook_payload(data));
