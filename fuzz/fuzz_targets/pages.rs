//! Any bytes as a dump in a browser, any text as requests.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::pages(bytes));
