//! A worker process, for the process that started it.

use std::io::{self, Read};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::WorkerTerms;
use crate::cli::shared::context::lock;

/// A worker process, which is killed on drop.
#[derive(Debug)]
pub(crate) struct WorkerProcess {
    child: WorkerKiller,
    /// Open as long as the worker has to run: when it is closed, the worker assumes that this process has ended.
    #[cfg_attr(
        not(any(feature = "serve", feature = "browse")),
        expect(dead_code, reason = "workers that answer one question read nothing")
    )]
    pub(super) stdin: ChildStdin,
    /// Output of the worker; `None` once it was taken by a reader.
    pub(super) stdout: Option<ChildStdout>,
}

/// Handle that kills a worker from any thread. Once the worker has ended, it does nothing.
#[derive(Debug, Clone)]
pub(crate) struct WorkerKiller(Arc<Mutex<Child>>);

/// Limits for a worker whose complete output is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputLimits {
    /// Time after which the worker is killed.
    pub(crate) time: Duration,
    /// Maximum number of bytes that are read from stdout; the rest is discarded.
    pub(crate) stdout: u64,
    /// Maximum number of bytes that are read from stderr; the rest is discarded.
    pub(crate) stderr: u64,
}

/// Output of a worker that has ended.
#[derive(Debug)]
pub(crate) struct WorkerOutput {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) status: ExitStatus,
}

impl WorkerKiller {
    /// Kills the worker.
    pub(crate) fn kill(&self) {
        let _ = lock(&self.0).kill();
    }

    /// Waits until the worker has ended; other threads may kill it meanwhile. Takes only a moment, as the worker was killed or
    /// has closed its output.
    pub(super) fn wait(&self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = lock(&self.0).try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl WorkerProcess {
    /// Starts a worker with a command that runs this program.
    pub(crate) fn start(command: &mut Command, terms: &WorkerTerms) -> io::Result<Self> {
        let (variable, terms) = terms.variable();
        // Out of memory, a backtrace could not be created and would hang.
        command.env(variable, terms).env("RUST_BACKTRACE", "0").env("RUST_LIB_BACKTRACE", "0");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let stdin = stdin.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { child: WorkerKiller(Arc::new(Mutex::new(child))), stdin, stdout })
    }

    /// Returns a handle that kills the worker from any thread.
    pub(crate) fn killer(&self) -> WorkerKiller {
        self.child.clone()
    }

    /// Reads the worker's output until it ends. If that takes too long, the worker is killed.
    ///
    /// # Errors
    /// If the worker took too long, or its output cannot be read.
    pub(crate) fn output(mut self, limits: OutputLimits) -> io::Result<WorkerOutput> {
        let stderr = lock(&self.child.0).stderr.take();
        let stdout = self.stdout.take();
        let (sender, ended) = channel::<()>();
        let (stdout, stderr, is_late) = std::thread::scope(|scope| {
            let stderr = scope.spawn(move || read(stderr, limits.stderr));
            let killer = self.killer();
            let late = scope.spawn(move || {
                let is_late = ended.recv_timeout(limits.time) == Err(RecvTimeoutError::Timeout);
                if is_late {
                    killer.kill();
                }
                is_late
            });
            let stdout = read(stdout, limits.stdout);
            let stderr = stderr.join().unwrap_or_else(|_| Ok(Vec::new()));
            drop(sender);
            (stdout, stderr, late.join().unwrap_or_default())
        });
        let status = self.child.wait()?;
        if is_late {
            let why = format!("it took longer than {} s (--question-time)", limits.time.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, why));
        }
        Ok(WorkerOutput { stdout: stdout?, stderr: stderr?, status })
    }

    /// Ends the worker. It gets some time to remove its temporary files.
    #[cfg(feature = "browse")]
    pub(crate) fn end(self, patience: Duration) {
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal, kill_process};
            use std::time::Instant;
            let runs = |child: &mut Child| matches!(child.try_wait(), Ok(None));
            {
                // Locked, so that its process ID is not reused by another process.
                let mut child = lock(&self.child.0);
                if runs(&mut child) {
                    let _ = kill_process(Pid::from_child(&child), Signal::TERM);
                }
            }
            let end = Instant::now() + patience;
            while Instant::now() < end && runs(&mut lock(&self.child.0)) {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        #[cfg(not(unix))]
        let _ = patience;
        self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        self.child.kill();
    }
}

/// Reads at most `max` bytes from a pipe.
fn read(pipe: Option<impl Read>, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(max).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
