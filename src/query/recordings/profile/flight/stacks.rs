//! Stacks of a chunk: each constant is read once.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use hprof_index::storage::human_bytes::grouped;
use hprof_jfr::NumberField::{Integer, Key};
use hprof_jfr::values::{Constant, ConstantId};
use hprof_jfr::{Chunk, ChunkSpan, ElementNumbers, NumberFields};

use super::names::Names;
use crate::recordings::profile::Frame;
use crate::threads::frames::NATIVE;

/// Index of a stack; [`NO_STACK`] for none.
pub(super) type StackIndex = u32;
/// Event without a stack trace.
pub(super) const NO_STACK: StackIndex = u32::MAX;

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

/// Stacks by their constants.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    /// Those that are not separated by thread.
    by_constant: ConstantMap,
    by_thread: FxHashMap<(ConstantId, u32), StackIndex>,
    /// Index of the list of frames, and whether outer frames are missing. `None` if the chunk lacks the constant.
    lists: FxHashMap<ConstantId, Option<(u32, bool)>>,
    table: StackTable,
    /// By index of the type of the frame, and its method, line and kind.
    by_frame: FxHashMap<(usize, [i64; 3]), u32>,
    by_bytes: ElementNumbers,
    /// Innermost frames, of stacks of which only that was read.
    innermost: FxHashMap<ConstantId, Option<u32>>,
    /// Method, line and kind of a frame, by index of its type. The JVM has one such type.
    frame_fields: FxHashMap<usize, NumberFields<3>>,
    /// Number of events whose stack the chunk does not contain.
    lost: u64,
}

/// Classes that events are about, numbered as they first occur.
#[derive(Debug, Default)]
pub(super) struct ClassTable {
    by_constant: ConstantMap,
    /// Number of the class without a name.
    unnamed: Option<u32>,
    names: Vec<Arc<str>>,
}

/// Numbers of constants.
#[derive(Debug, Default)]
struct ConstantMap {
    /// Type of the constants in the table: that of the first one.
    class: Option<usize>,
    /// First key in the table.
    first: i64,
    /// By key; [`NONE`] for none. It is not much longer than there are constants of the type.
    table: Vec<u32>,
    /// Those of another type, those that the chunk does not contain, and all if their keys are far apart.
    other: FxHashMap<ConstantId, u32>,
}

/// No number.
const NONE: u32 = u32::MAX;

impl ConstantMap {
    #[inline]
    fn get(&self, constant: &Constant<'_>) -> Option<u32> {
        let ConstantId { class, key } = constant.id();
        let at = key.wrapping_sub(self.first).cast_unsigned();
        if self.class == Some(class)
            && let Ok(at) = usize::try_from(at)
            && let Some(number) = self.table.get(at)
            && *number != NONE
        {
            return Some(*number);
        }
        if self.other.is_empty() { None } else { self.other.get(&constant.id()).copied() }
    }

    fn insert(&mut self, constant: &Constant<'_>, number: u32) {
        let class = constant.id().class;
        if let (None, Some(first)) = (self.class, constant.first_key()) {
            (self.class, self.first) = (Some(class), first);
        }
        let Some(at) = constant.number().filter(|_| self.class == Some(class)) else {
            self.other.insert(constant.id(), number);
            return;
        };
        if self.table.len() <= at {
            self.table.resize(at.saturating_add(1).next_power_of_two(), NONE);
        }
        if let Some(place) = self.table.get_mut(at) {
            *place = number;
        }
    }
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
            0 => self.by_constant.get(&trace),
            thread => self.by_thread.get(&(trace.id(), thread)).copied(),
        };
        if let Some(index) = known {
            self.lost += u64::from(is_lost(trace, index));
            return (index, false);
        }
        let list = match self.lists.get(&trace.id()) {
            Some(list) => *list,
            None => {
                let list = self.list(trace, names);
                self.lists.insert(trace.id(), list);
                list
            }
        };
        let index = list.map_or(NO_STACK, |(list, is_truncated)| {
            self.table.stacks.push(Stack { thread, list, is_truncated });
            u32::try_from(self.table.stacks.len() - 1).unwrap_or(NO_STACK)
        });
        match thread {
            0 => self.by_constant.insert(&trace, index),
            thread => _ = self.by_thread.insert((trace.id(), thread), index),
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
        let frame = match self.innermost.get(&trace.id()) {
            Some(frame) => *frame,
            None => {
                let mut found = None;
                self.read(trace, 1, names, |frame| found = Some(frame));
                self.innermost.insert(trace.id(), found);
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
            let fields = self.frame_fields.remove(&frames.class_index());
            let wanted = [Key("method"), Integer("lineNumber"), Key("type")];
            let fields = fields.unwrap_or_else(|| frames.fields(wanted));
            let mut known = std::mem::take(&mut self.by_bytes);
            let number = |frame| self.frame(trace.chunk(), &fields, frame, names);
            frames.each_numbered(&fields, count, &mut known, number, &mut add);
            self.by_bytes = known;
            self.frame_fields.insert(frames.class_index(), fields);
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
        let key = (fields.class_index(), [method.unwrap_or(0), line, kind.unwrap_or(0)]);
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
    index == NO_STACK && trace.id().key != 0
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
    if names.left_out() > 0 {
        let (names, at) = (grouped(names.left_out()), span.start);
        problems.push(format!(
            "names of classes, methods and threads that are longer together than the chunk, not read: {names} (at offset \
             {at:#x})"
        ));
    }
    problems
}

impl ClassTable {
    /// Returns the number of a class; of none, that of the class without a name.
    pub(super) fn number(&mut self, class: Option<Constant<'_>>, names: &mut Names) -> u32 {
        let known = match &class {
            Some(class) => self.by_constant.get(class),
            None => self.unnamed,
        };
        if let Some(known) = known {
            return known;
        }
        let name = class.and_then(|class| names.class(class)).unwrap_or_else(|| "".into());
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name);
        match &class {
            Some(class) => self.by_constant.insert(class, number),
            None => self.unnamed = Some(number),
        }
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
