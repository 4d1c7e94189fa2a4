//! Any bytes as what an agent sends.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::listen(bytes));
