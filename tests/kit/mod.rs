//! Code shared by the tests that needs the library or the program: each test binary includes it once. The writer of dumps needs
//! neither: it is a separate crate, `tests/writer`.

// No binary uses all of it.
#![allow(dead_code, unreachable_pub)]

pub mod dump;
pub mod evil;
pub mod http;
pub mod mutate;
pub mod portion;
pub mod process;
pub mod random;
pub mod samples;
pub mod strategies;
#[cfg(unix)]
pub mod terminal;
pub mod texts;
