//! Commands about the HPROF agent: locate it, start a JVM with it, receive its recordings.

pub(crate) mod installed;
pub(crate) mod library;
pub(crate) mod listen;
mod load;
pub(crate) mod locate;
pub(crate) mod run;
