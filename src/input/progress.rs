//! Progress of long work: the library reports it, the caller shows it.

/// Receives the progress of long work. Called from many threads.
pub trait Progress: Sync {
    /// Starts a stage; `total` is its number of bytes or objects, 0 if unknown.
    fn begin(&self, stage: &str, total: u64);
    /// Reports a wait for another process.
    fn wait(&self, what: &str) {
        self.begin(what, 0);
    }
    /// Reports the start or the end of work that runs in parallel to the current stage.
    fn report_parallel(&self, _what: &str, _is_over: bool) {}
    /// Reports another `bytes` of the stage as done.
    fn advance(&self, bytes: u64);
    /// Ends the stage.
    fn end(&self);
}

/// Ignores progress.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
    fn end(&self) {}
}
