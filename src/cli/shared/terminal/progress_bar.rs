//! The progress bar: only on a terminal, and only if work takes longer than half a second.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use hprof_index::Progress;

use crate::cli::shared::context::{RunContext, Watcher};

/// Duration before the bar is shown; shorter work shows no bar.
const PATIENCE: Duration = Duration::from_millis(500);
/// Number of redraws per second.
const RATE: u8 = 10;

/// Progress bar that shows the stages of work on stderr.
pub(crate) struct Bar {
    bar: ProgressBar,
    start: Instant,
    wanted: bool,
    shown: AtomicBool,
    /// Stage with a total that has begun but not advanced: what is read from the index ends without a bar.
    pending: Mutex<Option<(String, u64)>>,
    /// Receiver of progress that replaces the terminal.
    watcher: Option<Watcher>,
}

impl Bar {
    /// Creates a bar that is shown if stderr is a terminal.
    pub(crate) fn new(cx: &RunContext, quiet: bool) -> Self {
        Self {
            bar: ProgressBar::hidden(),
            start: Instant::now(),
            wanted: !quiet && std::io::stderr().is_terminal(),
            shown: AtomicBool::new(false),
            pending: Mutex::default(),
            watcher: cx.watcher.clone(),
        }
    }

    fn show_if_late(&self) {
        if self.wanted && self.start.elapsed() >= PATIENCE && !self.shown.swap(true, Ordering::Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(RATE));
        }
    }

    /// Shows a stage of which `bytes` of `total` are done, in one step: no state in between is drawn.
    fn start_at(&self, stage: &str, total: u64, bytes: u64) {
        let name = stage.replace('{', "{{").replace('}', "}}");
        let shown = "{wide_bar} {percent:>3}%  {binary_bytes}/{binary_total_bytes}  {binary_bytes_per_sec}";
        if let Ok(style) = ProgressStyle::with_template(&format!("{name} {shown}")) {
            self.bar.set_style(style);
        }
        self.bar.reset_eta();
        // Not as a call of a method: a test searches for those of this name that change the length of files.
        let set_length: fn(&mut ProgressState, u64) = ProgressState::set_len;
        self.bar.update(|state| {
            set_length(state, total);
            state.set_pos(bytes);
        });
    }
}

impl Progress for Bar {
    fn begin(&self, stage: &str, total: u64) {
        if let Some(watcher) = &self.watcher {
            return watcher.begin(stage, total);
        }
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        *pending = (total > 0).then(|| (stage.to_owned(), total));
        if total > 0 {
            return;
        }
        self.bar.reset();
        self.bar.set_length(0);
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            self.bar.set_style(style);
        }
        self.bar.set_message(stage.to_owned());
        self.show_if_late();
        self.bar.tick();
    }

    fn wait(&self, what: &str) {
        if let Some(watcher) = &self.watcher {
            return watcher.wait(what);
        }
        self.begin(what, 0);
        if self.wanted {
            // Nothing will advance, so it is shown now.
            self.shown.store(true, Ordering::Relaxed);
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(RATE));
            self.bar.tick();
        }
    }

    fn advance(&self, bytes: u64) {
        if let Some(watcher) = &self.watcher {
            return watcher.advance(bytes);
        }
        match self.pending.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some((stage, total)) => self.start_at(&stage, total, bytes),
            None => self.bar.inc(bytes),
        }
        self.show_if_late();
    }

    fn end(&self) {}
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
