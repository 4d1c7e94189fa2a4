//! Any text as a query in SQL.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::sql(bytes));
