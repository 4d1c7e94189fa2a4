//! Any bytes as a dump.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::reader(bytes));
