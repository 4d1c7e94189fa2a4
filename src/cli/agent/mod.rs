//! Commands about the HPROF agent: where it is, a JVM that is started with it, and the other end of its socket.

#[cfg(target_os = "linux")]
mod attach;
pub(crate) mod library;
pub(crate) mod listen;
mod load;
pub(crate) mod locate;
pub(crate) mod run;
