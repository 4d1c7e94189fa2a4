//! Any bytes as a text report.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::text(bytes));
