//! Threads of a heap dump: state, stack, and the objects that frames hold.
//!
//! Finding threads and reading one are separate: a dump can contain a million virtual threads, and their stacks do not
//! fit into memory together. `fields` reads Thread objects, `state` interprets their numbers.

mod agent_stacks;
mod facts;
pub mod fingerprints;
pub mod frames;
pub mod groups;
pub mod locks;

mod fields;
mod state;
mod thread_names;

use std::cmp::Reverse;
use std::ops::Range;

use rayon::prelude::*;

use hprof_base::parallel;
use hprof_base::sorting::SortRows;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;
use hprof_index::model::tables::NONE;
use hprof_index::storage::id_map::{IdMap, IdSet};
use hprof_index::{Dump, ObjectGraph};
use hprof_values::{ObjectId, RootKind, TraceSerial};

use self::fields::{Family, MAX_NAME, ThreadFields};
use self::frames::{Frame, Frames};
pub use self::state::{ThreadActivity, ThreadState, Wait};
use self::thread_names::{Name, Room, ThreadNames};
use super::objects::class_set::ClassSet;
use super::objects::label::Labels;
use super::objects::selection::ThreadPattern;
use hprof_base::naming::suggestions::names_like;

/// Maximum number of frames of a thread searched for one outside the JDK.
const MAX_SEARCHED: usize = 1000;
/// Objects per chunk of a thread.
const CHUNK: u32 = 1 << 18;
/// Maximum number of frames shown of stack traces that were already shown for another thread. Without it, a file in
/// which a million threads name one long trace would produce an endless result. Threads of a JVM have a trace each.
const SHARED_FRAMES: u64 = 1 << 20;
/// Characters of names that are shown in addition to the dump's length in bytes, before long names are truncated.
const FREE_NAMES: usize = 1 << 22;
/// Maximum number of suggested names if none matches.
const MAX_SUGGESTIONS: usize = 5;

/// Kind of thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadKind {
    /// A platform thread.
    Platform,
    /// A virtual thread.
    Virtual,
}

/// Query for threads.
#[derive(Debug, Clone, Default)]
pub struct ThreadQuery {
    /// Pattern of names, or an object ID.
    pub name: Option<ThreadPattern>,
    /// States; all, including unknown ones, if empty.
    pub states: Vec<ThreadState>,
    /// Kind of thread; any by default.
    pub kind: Option<ThreadKind>,
    /// Property that the threads of a group share.
    pub group_by: ThreadGrouping,
    /// Object ID of a thread whose group is queried: see [`Threads::groups`].
    pub group_of: Option<ObjectId>,
    /// Order of the rows.
    pub sort_by: ThreadOrder,
    /// Maximum number of rows; all by default.
    pub top: Option<usize>,
    /// Maximum number of frames of each stack, innermost first; all by default.
    pub depth: Option<usize>,
    /// `true` if groups list the objects on their stacks. Single threads always do.
    pub has_locals: bool,
    /// Selection by lifetime, if no states are given.
    pub which: ThreadScope,
}

impl ThreadQuery {
    /// Creates a query for whether a thread has this name, with suggestions.
    pub fn for_name(name: ThreadPattern) -> Self {
        Self { name: Some(name), top: Some(1), depth: Some(0), ..Self::default() }
    }
}

/// Property that the threads of a group share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThreadGrouping {
    /// The whole stack, and the form of their names.
    #[default]
    Stack,
    /// The innermost frame outside the JDK; threads without one are grouped by [`ThreadGrouping::Stack`].
    Frame,
}

/// Selection of threads by lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThreadScope {
    /// All Thread objects.
    #[default]
    All,
    /// Threads that were started and have not ended.
    Alive,
}

/// Order of threads. Equal rows are in the order of their IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThreadOrder {
    /// By retained size, descending.
    #[default]
    Retained,
    /// By name.
    Name,
    /// By state, in the order of `Thread.State`: NEW, RUNNABLE, BLOCKED, ...; unknown states last.
    State,
    /// By object ID.
    Address,
}

/// A matching thread. [`Threads::thread`] reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadRow {
    object: ObjectIndex,
    retained_bytes: Option<u64>,
    state: Option<ThreadState>,
    kind: ThreadKind,
    /// Stack trace of the thread.
    trace: Option<TraceSerial>,
    /// Number of frames.
    frames: u64,
    /// Maximum number of frames that are shown.
    depth: usize,
    /// Maximum number of characters of the name that are shown.
    name: usize,
}

impl ThreadRow {
    /// Returns the Thread object.
    pub fn object(&self) -> ObjectIndex {
        self.object
    }

    /// Returns the stack trace of the thread.
    pub fn trace(&self) -> Option<TraceSerial> {
        self.trace
    }

    /// Returns the number of frames.
    pub fn frames(&self) -> u64 {
        self.frames
    }
}

/// Threads that match a query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadReport {
    /// Threads, at most `top`.
    pub rows: Vec<ThreadRow>,
    /// Number of matching threads before `top` was applied.
    pub matching: u64,
    /// Number of matching threads by state, in the order of `Thread.State`; unknown states last.
    pub states: Vec<(Option<ThreadState>, u64)>,
    /// Number of matching virtual threads.
    pub virtual_threads: u64,
    /// Number of threads in the dump, regardless of the query.
    pub threads: u64,
    /// Similar names, if no name matches.
    pub suggestions: Vec<String>,
}

/// A thread with its state, its sizes, its stack and the objects that it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JavaThread {
    /// Object ID.
    pub object: ObjectId,
    /// Class of the object.
    pub class: Option<ClassNumber>,
    /// Name, or the beginning of a long one. Virtual threads may have an empty one.
    pub name: Option<String>,
    /// Result of `Thread.threadId()`.
    pub thread_id: Option<i64>,
    /// `true` if the JVM exits without waiting for the thread.
    pub is_daemon: Option<bool>,
    /// Priority, 1 to 10.
    pub priority: Option<i64>,
    /// Name of the thread group.
    pub group: Option<String>,
    /// Kind of thread.
    pub kind: ThreadKind,
    /// State, and how the thread waits.
    pub doing: ThreadActivity,
    /// Address of the JVM's native thread, if it has one: the tid of thread dumps.
    pub native_address: Option<u64>,
    /// Object ID of the carrier of a mounted virtual thread.
    pub carrier: Option<ObjectId>,
    /// `true` if it ran into an OutOfMemoryError: see [`Threads::out_of_memory`].
    pub is_out_of_memory: bool,
    /// Object for which the thread is parked: `LockSupport.getBlocker`.
    pub blocker: Option<Object>,
    /// Shallow size in bytes.
    pub shallow_bytes: u64,
    /// Retained size in bytes, if the thread is reachable.
    pub retained_bytes: Option<u64>,
    /// Stack frames, innermost first.
    pub frames: Vec<StackFrame>,
    /// Number of omitted frames.
    pub frames_left_out: u64,
    /// Objects that the thread holds in no known frame.
    pub locals: Vec<Local>,
}

/// ID and class of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object {
    /// Object ID.
    pub id: ObjectId,
    /// Class of the object.
    pub class: Option<ClassNumber>,
}

/// A frame of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackFrame {
    /// Class, method, source and line.
    pub frame: Frame,
    /// Objects held by the frame, without duplicates, in the order of the dump.
    pub locals: Vec<Local>,
}

/// An object held by a thread's stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    /// The object.
    pub object: Object,
    /// Short description that distinguishes it from others of its class.
    pub label: Option<String>,
    /// Kind of root.
    pub kind: RootKind,
    /// Retained size in bytes, if the object is reachable.
    pub retained_bytes: Option<u64>,
}

/// Finder and reader of the threads of a dump.
#[derive(Debug)]
pub struct Threads<'a> {
    graph: &'a ObjectGraph,
    /// Length of the dump in bytes.
    length: usize,
    fields: ThreadFields<'a>,
    labels: Labels<'a>,
    frames: Frames<'a>,
    /// Running threads and the serial numbers of their stack traces, ascending.
    running: Vec<(ObjectIndex, Option<TraceSerial>)>,
    /// Thread, frame or NONE, and root of each object held by a stack, ascending.
    locals: Vec<(ObjectIndex, u32, u32)>,
    /// Threads that ran into an OutOfMemoryError, ascending.
    out_of_memory: Vec<ObjectIndex>,
    /// `true` if the dump contains stacks, but does not say of which threads.
    has_unassigned_stacks: bool,
}

/// Maximum number of threads whose first frames are examined.
const MAX_STARTS: usize = 1000;

/// Error that the JVM throws when the heap is full.
const OUT_OF_MEMORY: &str = "java.lang.OutOfMemoryError";

impl<'a> Threads<'a> {
    /// Creates a finder of threads.
    pub fn new(dump: &Dump<'a>) -> Self {
        let fields = ThreadFields::new(dump.objects);
        let roots = &dump.graph.roots;
        let mut running = Vec::new();
        let mut locals = Vec::new();
        for (row, root) in (0u32..).zip(&roots.rows) {
            let (Some(thread), Some(serial)) = (root.thread, root.thread_serial) else { continue };
            match root.kind {
                // If several objects have one serial number, the first one counts.
                RootKind::ThreadObject if thread == root.object => {
                    let trace = roots.trace_of_thread(serial).filter(|trace| trace.0 != NONE);
                    running.push((thread, row, trace));
                }
                _ if root.is_of_stack() => locals.push((thread, root.frame.unwrap_or(NONE), row)),
                _ => {}
            }
        }
        running.sort_unstable();
        running.dedup_by_key(|(thread, ..)| *thread);
        locals.sort_unstable();
        let running = running.into_iter().map(|(thread, _, trace)| (thread, trace)).collect();
        let (labels, frames) = (Labels::new(dump), Frames::new(dump));
        let mut threads = Self {
            graph: dump.graph,
            length: dump.bytes().len(),
            fields,
            labels,
            frames,
            running,
            locals,
            out_of_memory: Vec::new(),
            has_unassigned_stacks: false,
        };
        threads.assign_agent_stacks();
        threads.out_of_memory = threads.find_out_of_memory();
        threads
    }

    /// Assigns the stacks in a dump of the serviceability agent, whose roots all name one trace without frames.
    fn assign_agent_stacks(&mut self) {
        let Some((_, Some(dummy))) = self.running.first() else { return };
        let dummy = *dummy;
        // The number that HotSpot gives to the trace without frames.
        let is_of_agent = dummy.0 == 1 && self.running.iter().all(|(_, trace)| *trace == Some(dummy));
        if !is_of_agent || self.frames.of_trace(dummy).next().is_some() {
            return;
        }
        let stacks = self.frames.stacks();
        if !stacks.iter().any(|stack| stack.thread > 0 && stack.has_frames) {
            return;
        }
        let may_hide = |thread: &ObjectIndex| {
            self.name(*thread)
                .is_some_and(|name| agent_stacks::may_be_hidden(&name.text(agent_stacks::EXAMINED)))
        };
        let roots = self.graph.roots.rows.iter().filter(|root| root.kind == RootKind::ThreadObject);
        let roots = roots.filter(|root| root.thread == Some(root.object));
        let mut in_order: Vec<(Option<u32>, ObjectIndex)> =
            roots.map(|root| (root.thread_serial, root.object)).collect();
        // As in `running`, the first root of a thread counts.
        in_order.sort_by_key(|(_, thread)| *thread);
        in_order.dedup_by_key(|(_, thread)| *thread);
        in_order.sort_unstable();
        let threads: Vec<(ObjectIndex, bool)> =
            in_order.iter().map(|(_, thread)| (*thread, may_hide(thread))).collect();
        match agent_stacks::assign(&threads, stacks) {
            Some(mut assigned) => {
                assigned.sort_unstable_by_key(|(thread, _)| *thread);
                self.running = assigned;
            }
            None => {
                self.running.iter_mut().for_each(|(_, trace)| *trace = None);
                self.has_unassigned_stacks = true;
            }
        }
    }

    /// Returns `true` if the dump contains stacks, but does not say of which threads.
    pub fn has_unassigned_stacks(&self) -> bool {
        self.has_unassigned_stacks
    }

    /// Returns the threads that ran into an OutOfMemoryError: the threads that were creating one, which is when HotSpot writes
    /// a dump with `-XX:+HeapDumpOnOutOfMemoryError`; if there are none, the threads whose stacks hold one.
    fn find_out_of_memory(&self) -> Vec<ObjectIndex> {
        let is_making = |trace: &TraceSerial| {
            let first = self.frames.of_trace(*trace).next().and_then(|id| self.frames.frame(id));
            first.is_some_and(|frame| {
                frame.class.as_deref() == Some(OUT_OF_MEMORY) && frame.method.as_deref() == Some("<init>")
            })
        };
        let making = self.running.iter().filter(|(_, trace)| trace.as_ref().is_some_and(is_making));
        let making: Vec<ObjectIndex> = making.map(|(thread, _)| *thread).collect();
        if !making.is_empty() {
            return making;
        }
        let errors = ClassSet::of_name_and_below(self.fields.objects.summary, OUT_OF_MEMORY);
        let is_error = |row: &u32| {
            let root = self.graph.roots.rows.get(*row as usize);
            let class = root.and_then(|root| self.graph.objects.class(root.object));
            class.is_some_and(|class| errors.contains(class))
        };
        let holding = self.locals.iter().filter(|(.., row)| is_error(row));
        let mut holding: Vec<ObjectIndex> = holding.map(|(thread, ..)| *thread).collect();
        holding.dedup();
        holding
    }

    /// Returns whether a thread ran into an OutOfMemoryError.
    pub fn is_out_of_memory(&self, thread: ObjectIndex) -> bool {
        self.out_of_memory.binary_search(&thread).is_ok()
    }

    /// Returns whether an object is a thread that was started and has not ended.
    pub fn is_running(&self, object: ObjectIndex) -> bool {
        self.running.binary_search_by_key(&object, |(thread, _)| *thread).is_ok()
    }

    /// Returns whether a thread was never started.
    pub fn is_unstarted(&self, thread: ObjectIndex) -> bool {
        self.fields.doing(thread).state == Some(ThreadState::New)
    }

    /// Returns whether the JVM calls a thread runnable.
    pub fn is_runnable(&self, thread: ObjectIndex) -> bool {
        self.fields.doing(thread).state == Some(ThreadState::Runnable)
    }

    /// Returns the object for which a thread is parked.
    pub fn blocker(&self, thread: ObjectIndex) -> Option<ObjectIndex> {
        self.fields.object(self.fields.thread(thread)?, "parkBlocker")
    }

    /// Returns the name of a thread, unless names are hidden.
    pub fn name_of(&self, thread: ObjectIndex) -> Option<String> {
        self.told_name(thread).map(|name| name.text(MAX_NAME))
    }

    /// Returns the stack of a thread, innermost frame first.
    pub fn frames_of(&self, thread: ObjectIndex) -> impl Iterator<Item = Frame> + '_ {
        let trace = self.row(thread).trace;
        let ids = trace.into_iter().flat_map(|trace| self.frames.of_trace(trace));
        ids.filter_map(|id| self.frames.frame(id))
    }

    /// Returns the classes outside the JDK in which running threads begin, of at most a thousand threads.
    pub fn first_own_classes(&self) -> Vec<String> {
        let threads = self.running.iter().take(MAX_STARTS);
        let mut classes: Vec<String> =
            threads.filter_map(|(thread, _)| self.first_own_class(*thread)).collect();
        classes.sort_unstable();
        classes.dedup();
        classes
    }

    /// Returns the class outside the JDK in which the thread `main` begins: the main class of the program; `None` if the thread
    /// has ended.
    pub fn main_class(&self) -> Option<String> {
        let is_main =
            |thread: &ObjectIndex| self.name(*thread).is_some_and(|name| name.text(MAX_NAME) == "main");
        let threads = self.running.iter().take(MAX_STARTS).map(|(thread, _)| *thread);
        threads.filter(is_main).find_map(|thread| self.first_own_class(thread))
    }

    /// Returns the class of the outermost frame of a thread that is outside the JDK.
    fn first_own_class(&self, thread: ObjectIndex) -> Option<String> {
        let own = self.frames_of(thread).take(MAX_SEARCHED).filter(Frame::is_own);
        own.last()?.class.map(|class| class.to_string())
    }

    /// Returns the innermost frame of a thread outside the JDK.
    pub fn own_frame(&self, thread: ObjectIndex) -> Option<Frame> {
        self.frames_of(thread).take(MAX_SEARCHED).find(Frame::is_own)
    }

    /// Returns the first thread that ran into an OutOfMemoryError, with its `depth` innermost frames.
    pub fn out_of_memory(&self, depth: usize) -> Option<ThreadRow> {
        let mut rows = vec![self.row(*self.out_of_memory.first()?)];
        self.limit(&mut rows, depth);
        rows.pop()
    }

    /// Finds the threads that match a query.
    pub fn find(&self, question: &ThreadQuery) -> ThreadReport {
        let all = self.thread_objects();
        let threads = all.len() as u64;
        let mut rows = self.matching(&all, question);
        let mut answer = ThreadReport { threads, matching: rows.len() as u64, ..ThreadReport::default() };
        for state in ThreadState::ALL.into_iter().map(Some).chain([None]) {
            let threads = rows.iter().filter(|row| row.state == state).count() as u64;
            if threads > 0 {
                answer.states.push((state, threads));
            }
        }
        answer.virtual_threads = rows.iter().filter(|row| row.kind == ThreadKind::Virtual).count() as u64;
        if let (true, Some(pattern)) = (rows.is_empty(), &question.name) {
            answer.suggestions = self.suggestions(&all, pattern);
        }
        // Rows are in the order of IDs, and the sort is stable.
        match question.sort_by {
            ThreadOrder::Retained => rows.sort_rows_by_key(|row| Reverse(row.retained_bytes)),
            ThreadOrder::Name => rows = self.by_name(rows),
            ThreadOrder::State => rows.sort_rows_by_key(|row| (row.state.is_none(), row.state)),
            ThreadOrder::Address => {}
        }
        rows.truncate(question.top.unwrap_or(usize::MAX));
        self.limit(&mut rows, question.depth.unwrap_or(usize::MAX));
        self.limit_names(&mut rows);
        answer.rows = rows;
        answer
    }

    /// Returns all Thread objects, and all objects that roots name as threads; ascending.
    pub fn thread_objects(&self) -> Vec<ObjectIndex> {
        let mut all: Vec<ObjectIndex> = self.running.iter().map(|(thread, _)| *thread).collect();
        if self.fields.has_threads() {
            let threads = |chunk: Range<ObjectIndex>| -> Vec<ObjectIndex> {
                ObjectIndex::range(chunk)
                    .filter(|object| self.fields.family(*object) != Family::NoThread)
                    .collect()
            };
            let chunks = ObjectIndex::chunks(self.graph.objects.indices(), CHUNK);
            all.extend(parallel::map(&chunks, threads).concat());
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Returns the matching threads, in the order of their IDs.
    fn matching(&self, all: &[ObjectIndex], question: &ThreadQuery) -> Vec<ThreadRow> {
        let rows = all.par_iter().map(|object| self.row(*object));
        let rows: Vec<ThreadRow> = rows.filter(|row| Self::is_meant(row, question)).collect();
        let rows = match &question.name {
            Some(pattern) => self.filter_by_name(rows, pattern),
            None => rows,
        };
        match question.group_of {
            Some(thread) => self.group_of(rows, question, thread),
            None => rows,
        }
    }

    fn row(&self, object: ObjectIndex) -> ThreadRow {
        let at = self.running.binary_search_by_key(&object, |(thread, _)| *thread).ok();
        let trace = at.and_then(|at| self.running.get(at)).and_then(|(_, trace)| *trace);
        let kind = match self.fields.family(object) {
            Family::NoThread | Family::Platform => ThreadKind::Platform,
            Family::Bound | Family::Virtual => ThreadKind::Virtual,
        };
        let state = self.fields.doing(object).state;
        let retained_bytes = self.graph.tree.retained_bytes_of(object);
        ThreadRow { object, retained_bytes, state, kind, trace, frames: 0, depth: 0, name: MAX_NAME }
    }

    /// Returns whether a thread matches, regardless of its name.
    fn is_meant(row: &ThreadRow, question: &ThreadQuery) -> bool {
        let of_state = if question.states.is_empty() {
            question.which == ThreadScope::All || row.state.is_none_or(ThreadState::is_alive)
        } else {
            row.state.is_some_and(|state| question.states.contains(&state))
        };
        of_state && question.kind.is_none_or(|kind| kind == row.kind)
    }

    /// Returns the threads whose names or IDs match.
    fn filter_by_name(&self, rows: Vec<ThreadRow>, pattern: &ThreadPattern) -> Vec<ThreadRow> {
        if let ThreadPattern::Object(_) = pattern {
            return rows.into_iter().filter(|row| pattern.matches(self.id(row.object), None)).collect();
        }
        let meant = self
            .names(rows.par_iter().map(|row| row.object))
            .test(|name| pattern.matches(ObjectId::NULL, Some(name)));
        // An ID without `0x` may be part of a name.
        let is_meant = |row: &ThreadRow, named: bool| named || pattern.matches(self.id(row.object), None);
        rows.into_iter().zip(meant).filter_map(|(row, named)| is_meant(&row, named).then_some(row)).collect()
    }

    /// Sorts by name; threads with equal names, or none, keep their order.
    fn by_name(&self, rows: Vec<ThreadRow>) -> Vec<ThreadRow> {
        let ranks = self.names(rows.par_iter().map(|row| row.object)).ranks();
        let mut rows: Vec<(Option<u32>, ThreadRow)> = ranks.into_iter().zip(rows).collect();
        rows.sort_rows_by_key(|(rank, _)| *rank);
        rows.into_iter().map(|(_, row)| row).collect()
    }

    /// Reads the names of the given threads.
    fn names(&self, threads: impl IndexedParallelIterator<Item = ObjectIndex>) -> ThreadNames {
        let names: Vec<Option<Name<'a>>> = threads.map(|thread| self.name(thread)).collect();
        ThreadNames::new(names, Room::new(self.length.saturating_add(FREE_NAMES)))
    }

    /// Sets the number of frames that are shown of each thread.
    fn limit(&self, rows: &mut [ThreadRow], depth: usize) {
        let mut lengths = IdMap::<TraceSerial, u64>::default();
        let mut shared = SHARED_FRAMES;
        for row in rows {
            row.depth = depth;
            let Some(trace) = row.trace else { continue };
            if let Some(frames) = lengths.get(&trace) {
                let shown = (*frames).min(depth as u64).min(shared);
                shared -= shown;
                (row.frames, row.depth) = (*frames, usize::try_from(shown).unwrap_or(depth));
            } else {
                row.frames = self.frames.of_trace(trace).count() as u64;
                lengths.insert(trace, row.frames);
            }
        }
    }

    /// Limits the shown length of names: the result must not be many times the size of the dump.
    fn limit_names(&self, rows: &mut [ThreadRow]) {
        if rows.len() <= FREE_NAMES / MAX_NAME {
            return;
        }
        let length = |row: &ThreadRow| self.name(row.object).map_or(0, |name| name.len());
        let lengths: Vec<usize> = rows.par_iter().map(length).collect();
        let mut room = Room::new(self.length.saturating_add(FREE_NAMES));
        for (row, length) in rows.iter_mut().zip(lengths) {
            row.name = room.take(length);
        }
    }

    /// Returns names that differ from the wanted one in case only, or start like it.
    fn suggestions(&self, all: &[ObjectIndex], pattern: &ThreadPattern) -> Vec<String> {
        let (ThreadPattern::Part(wanted) | ThreadPattern::Glob(wanted)) = pattern else { return Vec::new() };
        let start = |text: &str| text.chars().flat_map(char::to_lowercase).take(3).collect::<String>();
        let wanted = wanted.trim_matches('*').to_lowercase();
        if wanted.is_empty() {
            return Vec::new();
        }
        let is_like = |name: &&str| name.to_lowercase().contains(&wanted) || start(name) == start(&wanted);
        let names = self.names(all.par_iter().copied());
        let mut suggestions: Vec<String> =
            names.texts().filter(is_like).take(MAX_SUGGESTIONS).map(str::to_owned).collect();
        suggestions.sort_unstable();
        suggestions.dedup();
        if suggestions.is_empty() {
            suggestions = names_like(&wanted, names.texts()).into_iter().map(str::to_owned).collect();
        }
        suggestions
    }

    fn id(&self, object: ObjectIndex) -> ObjectId {
        self.graph.objects.addresses.id_of(object).unwrap_or_default()
    }

    fn name(&self, object: ObjectIndex) -> Option<Name<'a>> {
        match self.fields.thread(object) {
            Some(fields) => self.fields.name(fields).map(Name::Characters),
            None => self.labels.unmasked_label(object).map(Name::Label),
        }
    }

    /// Returns the name of a thread, unless names are hidden.
    fn told_name(&self, object: ObjectIndex) -> Option<Name<'a>> {
        self.name(object).filter(|_| !self.labels.hides_values())
    }

    fn object(&self, object: ObjectIndex) -> Object {
        Object { id: self.id(object), class: self.graph.objects.class(object) }
    }

    /// Reads a matching thread.
    pub fn thread(&self, row: &ThreadRow) -> JavaThread {
        let object = row.object;
        let fields = self.fields.thread(object);
        let number = |name| fields.and_then(|fields| fields.integer(name));
        let holder = fields.and_then(|fields| self.fields.holder(fields));
        let held = |name| holder.and_then(|holder| holder.value(name));
        let group = holder.and_then(|holder| self.fields.object(holder, "group"));
        // Values returned by methods of java.lang.VirtualThread, which has no fields for them.
        let is_virtual = self.fields.family(object) == Family::Virtual;
        let blocker = fields.and_then(|fields| self.fields.object(fields, "parkBlocker"));
        let tree = &self.graph.tree;
        let mut thread = JavaThread {
            object: self.id(object),
            class: self.graph.objects.class(object),
            name: self.told_name(object).map(|name| name.text(row.name)),
            thread_id: number("tid"),
            is_daemon: held("daemon").map(|value| value.bits != 0).or(is_virtual.then_some(true)),
            priority: held("priority").and_then(|value| value.integer()).or(is_virtual.then_some(5)),
            group: group
                .and_then(|group| self.labels.label(group))
                .or_else(|| is_virtual.then(|| "VirtualThreads".to_owned())),
            kind: row.kind,
            doing: self.fields.doing(object),
            native_address: number("eetop").map(i64::cast_unsigned).filter(|address| *address != 0),
            carrier: self.fields.carrier(object).map(|carrier| self.id(carrier)),
            is_out_of_memory: self.is_out_of_memory(object),
            blocker: blocker.map(|blocker| self.object(blocker)),
            shallow_bytes: tree.position(object).map_or(0, |position| tree.shallow_bytes(position)),
            retained_bytes: row.retained_bytes,
            frames: Vec::new(),
            frames_left_out: 0,
            locals: Vec::new(),
        };
        self.read_stack(row, &mut thread);
        thread
    }

    /// Returns the objects held by a thread's stack: thread, frame number or NONE, and root of each.
    fn locals_of(&self, thread: ObjectIndex) -> &[(ObjectIndex, u32, u32)] {
        let start = self.locals.partition_point(|(owner, ..)| *owner < thread);
        let end = self.locals.partition_point(|(owner, ..)| *owner <= thread);
        self.locals.get(start..end).unwrap_or_default()
    }

    fn read_stack(&self, row: &ThreadRow, thread: &mut JavaThread) {
        let held = self.locals_of(row.object);
        let mut known = IdMap::<u64, Frame>::default();
        let number_of = |held: &[(ObjectIndex, u32, u32)]| held.first().map_or(NONE, |(_, frame, _)| *frame);
        let mut by_frame = held.chunk_by(|(_, a, _), (_, b, _)| a == b).peekable();
        let ids = row.trace.into_iter().flat_map(|trace| self.frames.of_trace(trace)).take(row.depth);
        for (number, id) in (0..NONE).zip(ids) {
            let here = by_frame.next_if(|held| number_of(held) == number);
            let frame = known.entry(id).or_insert_with(|| self.frames.frame(id).unwrap_or(Frame::UNKNOWN));
            let locals = here.map(|held| self.describe_locals(held)).unwrap_or_default();
            thread.frames.push(StackFrame { frame: frame.clone(), locals });
        }
        thread.frames_left_out = row.frames.saturating_sub(thread.frames.len() as u64);
        // In no frame, or in one that the trace does not contain.
        let elsewhere = by_frame.filter(|held| u64::from(number_of(held)) >= row.frames);
        thread.locals = elsewhere.flat_map(|held| self.describe_locals(held)).collect();
    }

    fn describe_locals(&self, held: &[(ObjectIndex, u32, u32)]) -> Vec<Local> {
        let mut seen = IdSet::default();
        let roots = held.iter().filter_map(|(.., row)| self.graph.roots.rows.get(*row as usize));
        roots
            .filter(|root| seen.insert((root.object, root.kind.tag())))
            .map(|root| Local {
                object: self.object(root.object),
                label: self.labels.label(root.object),
                kind: root.kind,
                retained_bytes: self.graph.tree.retained_bytes_of(root.object),
            })
            .collect()
    }
}
