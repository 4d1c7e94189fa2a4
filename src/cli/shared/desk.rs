//! Where dumps come from and where answers go.
//!
//! In a shell a command opens its dump, writes its answer to stdout and what else there is to say to stderr. While a page
//! is made, a *desk* stands in for the shell on this thread: dumps stay open from one question to the next, and answers,
//! notes and progress go to whoever asked. Commands do not notice; what they have in common ([`super::args`],
//! [`super::session`], [`super::output`], [`super::messages`], [`super::terminal::progress_bar`]) asks here. A thread has one, as a
//! process has one stdout.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hprof_index::{Heap, ObjectGraph, Options, Progress};
use hprof_report::grid::Grid;

/// In which form answers are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerForm {
    /// As grids, to be shown on a page.
    Grid,
    /// As the bytes that stdout would get.
    Bytes,
}

/// What stderr would get: its kind, such as `note`, and a text that is not escaped yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) kind: &'static str,
    pub(crate) text: String,
}

/// What a command had to say.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) grids: Vec<Grid>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) notes: Vec<Note>,
}

/// Receives progress; shared with the threads that work.
pub(crate) type Watcher = Arc<dyn Progress + Send + Sync>;

/// A dump that stays open.
struct OpenDump {
    path: PathBuf,
    options: Options,
    heap: Arc<Heap>,
    graph: Option<Arc<ObjectGraph>>,
}

/// Dumps that stay open, and who watches.
pub(crate) struct Desk {
    open: Vec<OpenDump>,
    watcher: Option<Watcher>,
    /// Whether nothing is told of what objects hold.
    hides_values: bool,
    /// Whether an answer was one of a damaged dump.
    saw_damage: bool,
    asked: Option<(AnswerForm, usize, Said)>,
}

/// Dumps that stay open at once. What is asked of more opens again.
const MAX_OPEN: usize = 8;

thread_local! {
    static DESK: RefCell<Option<Desk>> = const { RefCell::new(None) };
}

fn with<T>(ask: impl FnOnce(&mut Desk) -> Option<T>) -> Option<T> {
    DESK.with_borrow_mut(|desk| desk.as_mut().and_then(ask))
}

/// Sets up a desk for this thread, for good.
pub(crate) fn set_up(watcher: Option<Watcher>, hides_values: bool) {
    DESK.set(Some(Desk { open: Vec::new(), watcher, hides_values, saw_damage: false, asked: None }));
}

/// Runs a command and returns what it had to say. At most `limit` bytes of an answer are taken.
pub(crate) fn listen<T>(form: AnswerForm, limit: usize, run: impl FnOnce() -> T) -> (T, Said) {
    with(|desk| desk.asked.replace((form, limit, Said::default())));
    let done = run();
    let said = with(|desk| desk.asked.take()).map(|(_, _, said)| said).unwrap_or_default();
    (done, said)
}

/// The form in which the answer is wanted, if it does not go to stdout.
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

/// Takes a note; `false` if it goes to stderr.
pub(crate) fn note(kind: &'static str, text: &str) -> bool {
    let is_taken = form().is_some();
    say(|said| said.notes.push(Note { kind, text: text.to_owned() }));
    is_taken
}

/// Takes bytes.
///
/// # Errors
/// If there are too many.
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

/// Whether nothing is told of what objects hold.
pub(crate) fn hides_values() -> bool {
    with(|desk| Some(desk.hides_values)).unwrap_or_default()
}

/// Remembers that an answer was one of a damaged dump.
pub(crate) fn see_damage() {
    with(|desk| {
        desk.saw_damage = true;
        Some(())
    });
}

/// Whether an answer was one of a damaged dump.
pub(crate) fn saw_damage() -> bool {
    with(|desk| Some(desk.saw_damage)).unwrap_or_default()
}

/// Who watches what takes long.
pub(crate) fn watcher() -> Option<Watcher> {
    with(|desk| desk.watcher.clone())
}

/// A dump that is open already.
pub(crate) fn heap(path: &Path, options: &Options) -> Option<Arc<Heap>> {
    with(|desk| desk.find(path, options).map(|open| open.heap.clone()))
}

/// The same, with its graph.
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

/// Keeps a dump open no longer: its index is damaged.
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
