//! Where dumps come from and where answers go.
//!
//! In a shell, a command opens its dump, writes its answer to stdout and its notes to stderr. While a page is built,
//! a *desk* replaces the shell on this thread: dumps stay open between queries, and answers, notes and progress go to
//! the caller. Commands are unaware of it; the code that they share ([`super::args`], [`super::session`],
//! [`super::output`], [`super::messages`], [`super::terminal::progress_bar`]) checks for a desk. A thread has one
//! desk, as a process has one stdout.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hprof_index::{Heap, ObjectGraph, Options, Progress};
use hprof_report::grid::Grid;

/// Form of the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerForm {
    /// Grids, to be shown on a page.
    Grid,
    /// As the bytes that stdout would get.
    Bytes,
}

/// A line for stderr: its kind, such as `note`, and the unescaped text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) kind: &'static str,
    pub(crate) text: String,
}

/// Output of a command.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) grids: Vec<Grid>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) notes: Vec<Note>,
}

/// Receives progress; shared with worker threads.
pub(crate) type Watcher = Arc<dyn Progress + Send + Sync>;

/// A dump that stays open.
struct OpenDump {
    path: PathBuf,
    options: Options,
    heap: Arc<Heap>,
    graph: Option<Arc<ObjectGraph>>,
}

/// Open dumps and the progress watcher.
pub(crate) struct Desk {
    open: Vec<OpenDump>,
    watcher: Option<Watcher>,
    /// Whether values of objects are hidden.
    hides_values: bool,
    /// Whether an answer came from a damaged dump.
    saw_damage: bool,
    asked: Option<(AnswerForm, usize, Said)>,
}

/// Maximum number of dumps kept open. Others are opened for each query.
const MAX_OPEN: usize = 8;

thread_local! {
    static DESK: RefCell<Option<Desk>> = const { RefCell::new(None) };
}

fn with<T>(ask: impl FnOnce(&mut Desk) -> Option<T>) -> Option<T> {
    DESK.with_borrow_mut(|desk| desk.as_mut().and_then(ask))
}

/// Sets up a permanent desk for this thread.
pub(crate) fn set_up(watcher: Option<Watcher>, hides_values: bool) {
    DESK.set(Some(Desk { open: Vec::new(), watcher, hides_values, saw_damage: false, asked: None }));
}

/// Runs a command and returns its output. An answer is limited to `limit` bytes.
pub(crate) fn listen<T>(form: AnswerForm, limit: usize, run: impl FnOnce() -> T) -> (T, Said) {
    with(|desk| desk.asked.replace((form, limit, Said::default())));
    let done = run();
    let said = with(|desk| desk.asked.take()).map(|(_, _, said)| said).unwrap_or_default();
    (done, said)
}

/// Returns the form of the answer if it does not go to stdout.
pub(crate) fn form() -> Option<AnswerForm> {
    with(|desk| desk.asked.as_ref().map(|(form, ..)| *form))
}

fn say(add: impl FnOnce(&mut Said)) {
    with(|desk| desk.asked.as_mut().map(|(.., said)| add(said)));
}

/// Takes a grid.
pub(crate) fn grid(grid: Grid) {
    say(|said| said.grids.push(grid));
}

/// Takes a note; returns `false` if it goes to stderr.
pub(crate) fn note(kind: &'static str, text: &str) -> bool {
    let is_taken = form().is_some();
    say(|said| said.notes.push(Note { kind, text: text.to_owned() }));
    is_taken
}

/// Takes bytes.
///
/// # Errors
///
/// If the limit is exceeded.
pub(crate) fn bytes(bytes: &[u8]) -> std::io::Result<()> {
    let fits = with(|desk| {
        let (_, limit, said) = desk.asked.as_mut()?;
        let fits = said.bytes.len().saturating_add(bytes.len()) <= *limit;
        if fits {
            said.bytes.extend_from_slice(bytes);
        }
        Some(fits)
    });
    if fits == Some(false) {
        return Err(std::io::Error::other(
            "the answer is too long for a page; ask in the shell, or for fewer rows",
        ));
    }
    Ok(())
}

/// Returns whether values of objects are hidden.
pub(crate) fn hides_values() -> bool {
    with(|desk| Some(desk.hides_values)).unwrap_or_default()
}

/// Records that an answer came from a damaged dump.
pub(crate) fn see_damage() {
    with(|desk| {
        desk.saw_damage = true;
        Some(())
    });
}

/// Returns whether an answer came from a damaged dump.
pub(crate) fn saw_damage() -> bool {
    with(|desk| Some(desk.saw_damage)).unwrap_or_default()
}

/// Returns the progress watcher.
pub(crate) fn watcher() -> Option<Watcher> {
    with(|desk| desk.watcher.clone())
}

/// Returns a dump that is already open.
pub(crate) fn heap(path: &Path, options: &Options) -> Option<Arc<Heap>> {
    with(|desk| desk.find(path, options).map(|open| open.heap.clone()))
}

/// Returns a dump that is already open with its graph.
pub(crate) fn with_graph(path: &Path, options: &Options) -> Option<(Arc<Heap>, Arc<ObjectGraph>)> {
    with(|desk| {
        let open = desk.find(path, options)?;
        Some((open.heap.clone(), open.graph.clone()?))
    })
}

/// Keeps a dump open, if there is a desk.
pub(crate) fn keep(path: &Path, options: &Options, heap: &Arc<Heap>, graph: Option<&Arc<ObjectGraph>>) {
    with(|desk| {
        desk.forget(path, options);
        if desk.open.len() >= MAX_OPEN {
            desk.open.remove(0);
        }
        let (path, options) = (path.to_owned(), options.clone());
        desk.open.push(OpenDump { path, options, heap: heap.clone(), graph: graph.cloned() });
        Some(())
    });
}

/// Closes a dump whose index is damaged.
pub(crate) fn forget(path: &Path, options: &Options) {
    with(|desk| {
        desk.forget(path, options);
        Some(())
    });
}

impl Desk {
    fn find(&self, path: &Path, options: &Options) -> Option<&OpenDump> {
        self.open.iter().find(|open| open.path == path && open.options == *options)
    }

    fn forget(&mut self, path: &Path, options: &Options) {
        self.open.retain(|open| open.path != path || open.options != *options);
    }
}
