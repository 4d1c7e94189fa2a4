//! Any bytes as a file of the index.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::index(bytes));
