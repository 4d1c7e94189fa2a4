//! Any bytes as a recording of Flight Recorder.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::flight(bytes));
