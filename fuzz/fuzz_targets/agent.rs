//! Any bytes as options, commands and class files of the agent.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::agent(bytes));
