//! Stacks of a chunk: each constant is read once.

use std::borrow::Cow;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use hprof_index::storage::human_bytes::grouped;
use hprof_jfr::NumberField::{Integer, Key};
use hprof_jfr::values::Constant;
use hprof_jfr::{Chunk, ChunkSpan, NumberFields, Record};
use hprof_parser::names::java_class_name;

use crate::recordings::profile::Frame;
use crate::threads::frames::NATIVE;

/// Index of a stack; [`NO_STACK`] for none.
pub(super) type StackIndex = u32;
/// Event without a stack trace.
pub(super) const NO_STACK: StackIndex = u32::MAX;

/// Maximum length of a name in bytes, as in class files (JVMS 4.4.7).
const MAX_NAME: usize = 0xffff;

/// A stack.
#[derive(Debug, Clone, Default)]
pub(super) struct Stack {
    /// Serial number of the thread, if stacks are separated by thread; else 0.
    pub(super) thread: u32,
    /// Index of the list of its frames, which all threads share.
    pub(super) list: u32,
    /// `true` if outer frames are missing.
    pub(super) is_truncated: bool,
}

/// Frames and stacks of a chunk.
#[derive(Debug, Default)]
pub(super) struct StackTable {
    /// Distinct frames.
    pub(super) frames: Vec<Frame>,
    /// Lists of indices of frames, innermost first.
    pub(super) lists: FrameLists,
    /// Stacks, in the order in which they first occur.
    pub(super) stacks: Vec<Stack>,
}

/// Lists of indices of frames, one after the other.
#[derive(Debug, Default)]
pub(super) struct FrameLists {
    frames: Vec<u32>,
    ends: Vec<usize>,
}

/// Stacks by the keys of their constants.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    /// Those that are not separated by thread.
    by_key: KeyMap,
    by_thread: FxHashMap<(i64, u32), StackIndex>,
    /// By key: index of the list of frames, and whether outer frames are missing. `None` if the chunk lacks the constant.
    lists: FxHashMap<i64, Option<(u32, bool)>>,
    table: StackTable,
    by_frame: FxHashMap<(i64, i64, i64), u32>,
    /// Innermost frames by key, of stacks of which only that was read.
    innermost: FxHashMap<i64, Option<u32>>,
    /// Method, line and type of a frame; of a chunk there is one such type.
    frame_fields: Option<NumberFields<3>>,
    /// Number of events whose stack the chunk does not contain.
    lost: u64,
}

/// Classes that events are about, numbered as they first occur.
#[derive(Debug, Default)]
pub(super) struct ClassTable {
    by_key: KeyMap,
    names: Vec<Arc<str>>,
}

/// Numbers by the keys of constants. Those of the JVM are small.
#[derive(Debug, Default)]
struct KeyMap {
    small: Vec<Option<u32>>,
    other: FxHashMap<i64, u32>,
}

/// Number of keys in a table.
const SMALL_KEYS: usize = 1 << 18;

impl KeyMap {
    fn get(&self, key: i64) -> Option<u32> {
        match usize::try_from(key).ok().filter(|key| *key < SMALL_KEYS) {
            Some(key) => self.small.get(key).copied().flatten(),
            None => self.other.get(&key).copied(),
        }
    }

    fn insert(&mut self, key: i64, number: u32) {
        match usize::try_from(key).ok().filter(|key| *key < SMALL_KEYS) {
            Some(key) => {
                if self.small.len() <= key {
                    self.small.resize((key + 1).next_power_of_two(), None);
                }
                if let Some(place) = self.small.get_mut(key) {
                    *place = Some(number);
                }
            }
            None => _ = self.other.insert(key, number),
        }
    }
}

/// Class and method.
type MethodName = (Option<Arc<str>>, Option<Arc<str>>);

/// Names of classes and methods by the keys of their constants.
#[derive(Debug)]
pub(super) struct Names {
    classes: FxHashMap<i64, Option<Arc<str>>>,
    methods: FxHashMap<i64, MethodName>,
    /// By the keys of symbols, which any number of classes and methods may share: names in Java source form, and as they are.
    class_names: FxHashMap<i64, Option<Arc<str>>>,
    method_names: FxHashMap<i64, Option<Arc<str>>>,
    native_types: FxHashMap<i64, bool>,
    budget: NameBudget,
}

/// Bytes that names may still take. A hostile chunk can have one long text as the name of each of its classes.
#[derive(Debug)]
struct NameBudget {
    left: usize,
    left_out: u64,
}

impl FrameLists {
    /// Returns a list.
    pub(super) fn get(&self, at: usize) -> Option<&[u32]> {
        let start = if at == 0 { 0 } else { *self.ends.get(at - 1)? };
        self.frames.get(start..*self.ends.get(at)?)
    }

    /// Returns all lists.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.ends.len()).filter_map(|at| self.get(at))
    }
}

impl Stacks {
    /// Returns the index of a stack of a thread, and whether it is new.
    pub(super) fn index(
        &mut self,
        trace: Constant<'_>,
        thread: u32,
        names: &mut Names,
    ) -> (StackIndex, bool) {
        let known = match thread {
            0 => self.by_key.get(trace.key),
            thread => self.by_thread.get(&(trace.key, thread)).copied(),
        };
        if let Some(index) = known {
            self.lost += u64::from(is_lost(trace, index));
            return (index, false);
        }
        let list = match self.lists.get(&trace.key) {
            Some(list) => *list,
            None => {
                let list = self.list(trace, names);
                self.lists.insert(trace.key, list);
                list
            }
        };
        let index = list.map_or(NO_STACK, |(list, is_truncated)| {
            self.table.stacks.push(Stack { thread, list, is_truncated });
            u32::try_from(self.table.stacks.len() - 1).unwrap_or(NO_STACK)
        });
        match thread {
            0 => self.by_key.insert(trace.key, index),
            thread => _ = self.by_thread.insert((trace.key, thread), index),
        }
        self.lost += u64::from(is_lost(trace, index));
        (index, index != NO_STACK)
    }

    /// Returns the number of events whose stack the chunk does not contain.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the innermost frame of a stack, and its index. The other frames are not read.
    pub(super) fn innermost(&mut self, trace: Constant<'_>, names: &mut Names) -> Option<(u32, &Frame)> {
        let frame = match self.innermost.get(&trace.key) {
            Some(frame) => *frame,
            None => {
                let mut found = None;
                self.read(trace, 1, names, |frame| found = Some(frame));
                self.innermost.insert(trace.key, found);
                found
            }
        };
        Some((frame?, self.table.frames.get(frame? as usize)?))
    }

    /// Reads the frames of a stack: the index of their list, and whether outer frames are missing.
    fn list(&mut self, trace: Constant<'_>, names: &mut Names) -> Option<(u32, bool)> {
        let mut lists = std::mem::take(&mut self.table.lists);
        let is_truncated = self.read(trace, usize::MAX, names, |frame| lists.frames.push(frame));
        let number = u32::try_from(lists.ends.len());
        if is_truncated.is_some() {
            lists.ends.push(lists.frames.len());
        }
        self.table.lists = lists;
        Some((number.ok()?, is_truncated?))
    }

    /// Reads the innermost frames of a stack, and whether outer ones are missing in the recording.
    fn read(
        &mut self,
        trace: Constant<'_>,
        count: usize,
        names: &mut Names,
        mut add: impl FnMut(u32),
    ) -> Option<bool> {
        let record = trace.record()?;
        if let Some(frames) = record.array("frames") {
            let fields = self.frame_fields.take();
            let wanted = [Key("method"), Integer("lineNumber"), Key("type")];
            let fields = fields.unwrap_or_else(|| frames.fields(wanted));
            frames.each(&fields, count, |frame| add(self.frame(trace.chunk(), &fields, frame, names)));
            self.frame_fields = Some(fields);
        }
        Some(record.is("truncated"))
    }

    fn frame(
        &mut self,
        chunk: &Chunk<'_>,
        fields: &NumberFields<3>,
        [method, line, kind]: [Option<i64>; 3],
        names: &mut Names,
    ) -> u32 {
        let line = line.unwrap_or(0);
        let key = (method.unwrap_or(0), line, kind.unwrap_or(0));
        if let Some(known) = self.by_frame.get(&key) {
            return *known;
        }
        let (method, kind) = (fields.constant(chunk, 0, method), fields.constant(chunk, 2, kind));
        let (class, method) = method.map(|method| names.method(method)).unwrap_or_default();
        let line = match i32::try_from(line) {
            Ok(line) if line > 0 => line,
            _ if kind.is_some_and(|kind| names.is_native(kind)) => NATIVE,
            _ => 0,
        };
        let number = u32::try_from(self.table.frames.len()).unwrap_or(u32::MAX);
        self.table.frames.push(Frame { class, method, source: None, line });
        self.by_frame.insert(key, number);
        number
    }

    /// Returns the frames and stacks.
    pub(super) fn finish(self) -> StackTable {
        self.table
    }
}

/// Returns whether the chunk does not contain the stack of an event. Key 0 is that of events without one.
fn is_lost(trace: Constant<'_>, index: StackIndex) -> bool {
    index == NO_STACK && trace.key != 0
}

/// Returns descriptions of the damage to a chunk whose events were read with these stacks and names: for every question, the
/// same is damage.
pub(super) fn chunk_problems(
    chunk: &Chunk<'_>,
    span: &ChunkSpan,
    stacks: &Stacks,
    names: &Names,
) -> Vec<String> {
    let mut problems: Vec<String> = chunk.problems.iter().map(ToString::to_string).collect();
    // The JVM writes the stacks of a chunk at its end, and since JDK 14 each second.
    let is_complete = span.is_whole && !span.header.is_in_flight() && problems.is_empty();
    if is_complete && stacks.lost > 0 {
        let (events, at) = (grouped(stacks.lost), span.start);
        problems
            .push(format!("events whose stacks the chunk does not contain: {events} (at offset {at:#x})"));
    }
    if names.budget.left_out > 0 {
        let (names, at) = (grouped(names.budget.left_out), span.start);
        problems.push(format!(
            "names of classes and methods that are longer together than the chunk, not read: {names} (at offset {at:#x})"
        ));
    }
    problems
}

impl ClassTable {
    /// Returns the number of a class; of none, that of the class without a name.
    pub(super) fn number(&mut self, class: Option<Constant<'_>>, names: &mut Names) -> u32 {
        let key = class.map_or(0, |class| class.key);
        if let Some(known) = self.by_key.get(key) {
            return known;
        }
        let name = class.and_then(|class| names.class(class)).unwrap_or_else(|| "".into());
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name);
        self.by_key.insert(key, number);
        number
    }

    /// Returns the name of a class.
    pub(super) fn name(&self, number: u32) -> Option<&Arc<str>> {
        self.names.get(number as usize)
    }

    /// Returns the names of all classes.
    pub(super) fn finish(self) -> Vec<Arc<str>> {
        self.names
    }
}

impl Names {
    /// Creates a table of names that may take so many bytes together. Names beyond that are missing.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            classes: FxHashMap::default(),
            methods: FxHashMap::default(),
            class_names: FxHashMap::default(),
            method_names: FxHashMap::default(),
            native_types: FxHashMap::default(),
            budget: NameBudget { left: max_bytes, left_out: 0 },
        }
    }

    /// Creates a table of the names of a chunk. It contains each of them once, a little shorter at most.
    pub(super) fn of_chunk(span: &ChunkSpan) -> Self {
        Self::new((span.end - span.start).saturating_mul(4))
    }

    /// Returns the name of a class in Java source form.
    pub(super) fn class(&mut self, class: Constant<'_>) -> Option<Arc<str>> {
        if let Some(known) = self.classes.get(&class.key) {
            return known.clone();
        }
        let source = |name: &str| java_class_name(name).into();
        let name =
            class.record().and_then(|class| symbol(&class, &mut self.class_names, &mut self.budget, source));
        self.classes.insert(class.key, name.clone());
        name
    }

    fn method(&mut self, method: Constant<'_>) -> MethodName {
        if let Some(known) = self.methods.get(&method.key) {
            return known.clone();
        }
        let found = method.record().map_or((None, None), |record| {
            let class = record.constant("type").and_then(|class| self.class(class));
            (class, symbol(&record, &mut self.method_names, &mut self.budget, |name| name.into()))
        });
        self.methods.insert(method.key, found.clone());
        found
    }

    fn is_native(&mut self, kind: Constant<'_>) -> bool {
        let is_native = || kind.record()?.text("description").map(|text| text == "Native");
        *self.native_types.entry(kind.key).or_insert_with(|| is_native().unwrap_or(false))
    }
}

/// Returns the name of a class or method, which is a symbol, a constant with a string.
fn symbol(
    record: &Record<'_>,
    known: &mut FxHashMap<i64, Option<Arc<str>>>,
    budget: &mut NameBudget,
    make: impl Fn(&str) -> Arc<str>,
) -> Option<Arc<str>> {
    let symbol = record.constant("name");
    if let Some(name) = symbol.and_then(|symbol| known.get(&symbol.key)) {
        return name.clone();
    }
    if budget.left == 0 {
        budget.left_out += 1;
        return None;
    }
    let make = |text: Cow<'_, str>| {
        let end = (0..=text.len().min(MAX_NAME)).rev().find(|end| text.is_char_boundary(*end));
        let name = text.get(..end?).filter(|name| !name.is_empty())?;
        let Some(left) = budget.left.checked_sub(name.len()) else {
            // The texts of the other names are not even decoded: each may be as long as the chunk.
            (budget.left, budget.left_out) = (0, budget.left_out + 1);
            return None;
        };
        budget.left = left;
        Some(make(name))
    };
    let Some(symbol) = symbol else {
        return record.text("name").and_then(make);
    };
    let text = symbol.record().and_then(|symbol| symbol.text("string")).or_else(|| symbol.text());
    let name = text.and_then(make);
    known.insert(symbol.key, name.clone());
    name
}
