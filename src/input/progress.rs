//! How long work tells of its progress: the library reports, the caller shows.

/// Receives the progress of long work. Called from many threads.
pub trait Progress: Sync {
    /// A stage begins; `total` is the number of bytes or objects it will work through, 0 if nobody knows.
    fn begin(&self, stage: &str, total: u64);
    /// Something that another process does is waited for.
    fn wait(&self, what: &str) {
        self.begin(what, 0);
    }
    /// Something begins, and later is over, that runs beside the stage that was begun.
    fn beside(&self, _what: &str, _is_over: bool) {}
    /// Another `bytes` of the stage are done.
    fn advance(&self, bytes: u64);
    /// The stage is done.
    fn end(&self);
}

/// Shows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
    fn end(&self) {}
}
