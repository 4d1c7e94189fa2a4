//! Any text as a query.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::oql(bytes));
