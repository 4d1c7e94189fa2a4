//! The context of a command: where dumps come from, and where its output, notes and progress go.
//!
//! In a shell, a command opens its dump, writes its output to stdout and its messages to stderr. For a page or a section of a
//! report, the context keeps dumps open between commands and captures their output. This is transparent to commands: they
//! pass their context to the modules that open dumps and show results ([`super::args`], [`super::session`],
//! [`super::output`], [`super::messages`], [`super::terminal`]).

use std::fmt;
use std::io::{self, Write as _};
use std::panic::RefUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hprof_index::{Heap, ObjectGraph, Options, Progress};
use hprof_query::frameworks::Frameworks;
use hprof_report::Format;
use hprof_report::grid::Grid;
use hprof_report::screen::Screen;
use hprof_report::window::RowWindow;

use super::color::ColorArg;

/// Environment variable that makes a command write its JSON and, after a zero byte, its table: `mcp` needs both.
pub(crate) const WITH_TABLE: &str = "HPROF_CLI_WITH_TABLE";

/// A message for stderr: its kind, such as `note`, and its text, not yet escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) kind: &'static str,
    pub(crate) text: String,
    /// `true` if the message is about the dump and does not depend on the query.
    pub(crate) is_about_dump: bool,
}

/// Captured output of a command: tables as grids for a page or as screens for a terminal, other output as the bytes that would
/// be written to stdout, and notes.
#[derive(Debug, Default)]
pub(crate) struct CapturedOutput {
    pub(crate) grids: Vec<Grid>,
    pub(crate) screens: Vec<Screen>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) notes: Vec<Note>,
}

/// Receiver of progress, shared with worker threads.
pub(crate) type Watcher = Arc<dyn Progress + Send + Sync + RefUnwindSafe>;

/// Context passed to the `run` function of a command.
pub(crate) struct RunContext {
    /// Value of `--color`, for messages.
    pub(crate) color: ColorArg,
    /// `true` if values of the heap are hidden.
    pub(crate) hides_values: bool,
    /// Rules about frameworks that a file defines, if one was given to the command that runs this one.
    pub(super) frameworks: Option<Frameworks>,
    /// Receiver of progress, instead of the terminal.
    pub(super) watcher: Option<Watcher>,
    /// Dumps that are kept open for the next command; `None` if there is no next command.
    kept: Option<Arc<KeptDumps>>,
    /// Captured output; `None` if output goes to stdout and stderr.
    pub(super) capture: Option<OutputCapture>,
    /// `true` if JSON output is followed by the table.
    pub(super) has_both: bool,
}

/// Captured output of a command, with a size limit.
pub(crate) struct OutputCapture {
    /// Maximum size of the output in bytes.
    limit: usize,
    /// Width and rows of the screen if tables are captured as screens, not as grids.
    pub(super) screen: Option<(u16, RowWindow)>,
    output: Mutex<CapturedOutput>,
}

/// Dumps that are kept open from one command to the next.
#[derive(Default)]
struct KeptDumps {
    open: Mutex<Vec<KeptDump>>,
    saw_damage: AtomicBool,
}

/// A dump that is kept open, with its graph once a command has needed it.
struct KeptDump {
    path: PathBuf,
    options: Options,
    heap: Arc<Heap>,
    graph: Option<Arc<ObjectGraph>>,
}

/// Maximum number of dumps open at once; others are opened again when needed.
const MAX_OPEN: usize = 8;

impl fmt::Debug for RunContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunContext").field("hides_values", &self.hides_values).finish_non_exhaustive()
    }
}

impl OutputCapture {
    /// Captures bytes of output.
    ///
    /// # Errors
    /// If the output exceeds the limit.
    pub(super) fn take_bytes(&self, bytes: &[u8]) -> io::Result<usize> {
        let said = &mut lock(&self.output).bytes;
        if said.len().saturating_add(bytes.len()) > self.limit {
            return Err(io::Error::other(
                "the answer is too long to be shown here; run the command in a shell, or request fewer rows",
            ));
        }
        said.extend_from_slice(bytes);
        Ok(bytes.len())
    }
}

/// Locks a mutex, even if a thread panicked while it held the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RunContext {
    /// Creates the context of a command in a shell.
    pub(crate) fn shell() -> Self {
        Self {
            color: ColorArg::Auto,
            hides_values: false,
            frameworks: None,
            watcher: None,
            kept: None,
            capture: None,
            has_both: std::env::var_os(WITH_TABLE).is_some_and(|value| value == "1"),
        }
    }

    /// Creates a context that keeps dumps open for the commands run with [`RunContext::taking`].
    pub(crate) fn keeping_dumps(&self, watcher: Option<Watcher>, hides_values: bool) -> Self {
        let frameworks = self.frameworks.clone();
        let kept = Some(Arc::default());
        Self { color: self.color, hides_values, frameworks, watcher, kept, capture: None, has_both: false }
    }

    /// Adds rules about frameworks for the commands that run in this context.
    pub(crate) fn with_frameworks(self, frameworks: Frameworks) -> Self {
        Self { frameworks: Some(frameworks), ..self }
    }

    /// Creates the context of one command. It captures the notes, and output of at most `limit` bytes, and shares the open
    /// dumps.
    pub(crate) fn taking(&self, limit: usize) -> Self {
        Self {
            color: self.color,
            hides_values: self.hides_values,
            frameworks: self.frameworks.clone(),
            watcher: self.watcher.clone(),
            kept: self.kept.clone(),
            capture: Some(OutputCapture { limit, screen: None, output: Mutex::default() }),
            has_both: false,
        }
    }

    /// Returns the formats in which a result is written, in this order, if `format` was requested.
    pub(crate) fn formats(&self, format: Format) -> &'static [Format] {
        match format {
            Format::Json if self.has_both => &[Format::Json, Format::Table],
            Format::Json => &[Format::Json],
            Format::Csv => &[Format::Csv],
            Format::Table => &[Format::Table],
        }
    }

    /// Shows a result in each of its formats ([`RunContext::formats`]), all from one run of the query. A result whose
    /// rows can be computed only once is shown in both formats by [`super::session::AnswerSource::show`].
    ///
    /// # Errors
    /// The first error of `show`.
    pub(crate) fn for_each_format(
        &self,
        format: Format,
        mut show: impl FnMut(&Self, Format) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let [first, others @ ..] = self.formats(format) else { return Ok(()) };
        if others.is_empty() {
            return show(self, *first);
        }
        let one = Self { has_both: false, ..Self::shell() };
        let one = Self { color: self.color, hides_values: self.hides_values, ..one };
        show(&one, *first)?;
        for format in others {
            let mut out = self.writer();
            out.write_all(b"\0")?;
            out.flush()?;
            show(&one, *format)?;
        }
        Ok(())
    }

    /// Creates the context of one command like [`RunContext::taking`], but captures `rows` of tables as screens of this width.
    #[cfg(feature = "browse")]
    pub(crate) fn taking_screens(&self, limit: usize, width: u16, rows: RowWindow) -> Self {
        let taken = Some(OutputCapture { limit, screen: Some((width, rows)), output: Mutex::default() });
        Self { capture: taken, ..self.taking(limit) }
    }

    /// Returns the captured output.
    pub(crate) fn into_output(self) -> CapturedOutput {
        let said =
            self.capture.map(|taken| taken.output.into_inner().unwrap_or_else(PoisonError::into_inner));
        said.unwrap_or_default()
    }

    /// Returns whether output is captured instead of written to stdout.
    pub(crate) fn is_taking(&self) -> bool {
        self.capture.is_some()
    }

    /// Returns whether the command runs for a shell, and not for a page, a terminal's view or a section of a report.
    pub(crate) fn is_shell(&self) -> bool {
        self.capture.is_none() && self.kept.is_none()
    }

    /// Captures a grid.
    pub(super) fn take_grid(&self, grid: Grid) {
        if let Some(taken) = &self.capture {
            lock(&taken.output).grids.push(grid);
        }
    }

    /// Returns the requested rows, if tables are captured as screens.
    pub(super) fn window(&self) -> Option<&RowWindow> {
        self.capture.as_ref()?.screen.as_ref().map(|(_, rows)| rows)
    }

    /// Captures a screen.
    pub(super) fn take_screen(&self, screen: Screen) {
        if let Some(taken) = &self.capture {
            lock(&taken.output).screens.push(screen);
        }
    }

    /// Captures a note; returns `false` if it goes to stderr.
    pub(super) fn take_note(&self, kind: &'static str, text: &str, is_about_dump: bool) -> bool {
        if let Some(taken) = &self.capture {
            lock(&taken.output).notes.push(Note { kind, text: text.to_owned(), is_about_dump });
        }
        self.capture.is_some()
    }

    /// Records that a result is based on a damaged dump.
    pub(crate) fn see_damage(&self) {
        if let Some(kept) = &self.kept {
            kept.saw_damage.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether a result was based on a damaged dump.
    pub(crate) fn saw_damage(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.saw_damage.load(Ordering::Relaxed))
    }

    /// Returns a dump that is already open.
    pub(super) fn heap(&self, path: &Path, options: &Options) -> Option<Arc<Heap>> {
        self.find(path, options, |open| Some(open.heap.clone()))
    }

    /// Returns a dump that is already open with its graph.
    pub(super) fn graph(&self, path: &Path, options: &Options) -> Option<(Arc<Heap>, Arc<ObjectGraph>)> {
        self.find(path, options, |open| Some((open.heap.clone(), open.graph.clone()?)))
    }

    /// Returns whether a dump is open with its graph.
    #[cfg(feature = "browse")]
    pub(crate) fn has_open_graph(&self, path: &Path) -> bool {
        let Some(kept) = &self.kept else { return false };
        lock(&kept.open).iter().any(|open| open.path == path && open.graph.is_some())
    }

    fn find<T>(&self, path: &Path, options: &Options, get: impl Fn(&KeptDump) -> Option<T>) -> Option<T> {
        let open = lock(&self.kept.as_ref()?.open);
        open.iter().find(|open| open.path == path && open.options == *options).and_then(get)
    }

    /// Keeps a dump open for the next command, if there is one.
    pub(super) fn keep(
        &self,
        path: &Path,
        options: &Options,
        heap: &Arc<Heap>,
        graph: Option<&Arc<ObjectGraph>>,
    ) {
        self.forget(path, options);
        let Some(kept) = &self.kept else { return };
        let mut open = lock(&kept.open);
        if open.len() >= MAX_OPEN {
            open.remove(0);
        }
        let (path, options) = (path.to_owned(), options.clone());
        open.push(KeptDump { path, options, heap: heap.clone(), graph: graph.cloned() });
    }

    /// Stops keeping a dump open, because its index is damaged.
    pub(super) fn forget(&self, path: &Path, options: &Options) {
        if let Some(kept) = &self.kept {
            lock(&kept.open).retain(|open| open.path != path || open.options != *options);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_a_command_says_on_any_thread_is_taken_by_its_context_alone() {
        let page = RunContext::shell().keeping_dumps(None, true);
        let (cx, other) = (page.taking(4), page.taking(4));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                cx.emit("note", "on a thread");
                cx.writer().write_all(b"four").unwrap();
            });
        });
        let mut out = cx.writer();
        out.write_all(b"!").unwrap();
        let too_long = out.flush().unwrap_err();
        assert!(too_long.to_string().contains("too long to be shown here"), "{too_long}");
        drop(out.into_parts());
        assert!(cx.hides_values && other.hides_values);
        let (said, other) = (cx.into_output(), other.into_output());
        assert_eq!(said.notes, [Note { kind: "note", text: "on a thread".to_owned(), is_about_dump: false }]);
        assert_eq!((said.bytes.as_slice(), said.grids.len()), (&b"four"[..], 0));
        assert!(other.notes.is_empty() && other.bytes.is_empty());
    }
}
