//! Commands about the HPROF agent: where it is, a JVM that is started with it, and the other end of its socket.

pub(crate) mod library;
pub(crate) mod listen;
pub(crate) mod locate;
pub(crate) mod run;
