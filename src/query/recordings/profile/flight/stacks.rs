//! Stacks of a chunk. Each constant is read once.

use std::collections::HashMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use hprof_index::storage::human_bytes::group_digits;
use hprof_jfr::NumberField::{Integer, Key};
use hprof_jfr::values::Constant;
use hprof_jfr::{Chunk, ChunkSpan, ElementNumbers, NumberFields};

use super::constants::{ConstantMap, ConstantTable};
use super::names::ConstantNames;
use crate::profile::Frame;
use hprof_model::threads::frames::NATIVE;

/// Index of a stack; [`NO_STACK`] for none.
pub(super) type StackIndex = u32;
/// Stack index of events without a stack trace.
pub(super) const NO_STACK: StackIndex = u32::MAX;

/// Stack of events: a list of frames, and optionally a thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Stack {
    /// Serial number of the thread, if stacks are separated by thread; else 0.
    pub(super) thread: u32,
    /// Index of the list of frames. Stacks of several threads can share one list.
    pub(super) list: u32,
    /// `true` if the recording lacks the stack's outer frames.
    pub(super) is_truncated: bool,
}

/// Frames and stacks of a chunk.
#[derive(Debug, Default)]
pub(super) struct StackTable {
    /// Distinct frames.
    pub(super) frames: Vec<Frame>,
    /// Lists of indexes into `frames`, innermost frame first.
    pub(super) lists: FrameLists,
    /// Stacks, in the order in which they first occur.
    pub(super) stacks: Vec<Stack>,
}

/// Lists of frame indexes, stored consecutively.
#[derive(Debug, Default)]
pub(super) struct FrameLists {
    frames: Vec<u32>,
    ends: Vec<usize>,
}

/// Builder of the stacks of a chunk, looked up by their constants.
#[derive(Debug, Default)]
pub(super) struct ChunkStacks {
    /// Stacks that are not separated by thread.
    by_constant: ConstantTable,
    /// Indexes of lists of frames, by constant.
    lists: ConstantTable,
    /// By index of the list: `true` if outer frames are missing.
    are_truncated: Vec<bool>,
    /// Stacks by index of the list and thread. The file chooses the numbers of threads, so the hash is seeded.
    by_thread: HashMap<(u32, u32), StackIndex>,
    table: StackTable,
    /// Frames by index of their type, and by method, line and kind. The file chooses these, so the hash is seeded.
    by_frame: HashMap<(usize, [i64; 3]), u32>,
    by_bytes: ElementNumbers,
    /// Innermost frame, for stacks of which only this frame was read.
    innermost: ConstantMap<Option<u32>>,
    /// Fields with the method, line and kind of a frame, by index of the frame's type. Recordings of the JVM have one such
    /// type.
    frame_fields: FxHashMap<usize, NumberFields<3>>,
    /// Number of events whose stack the chunk does not contain.
    lost: u64,
}

/// Classes in fields of events, numbered in the order of their first occurrence.
#[derive(Debug, Default)]
pub(super) struct ClassTable {
    by_constant: ConstantTable,
    /// Number of the class without a name.
    unnamed: Option<u32>,
    names: Vec<Arc<str>>,
}

impl FrameLists {
    /// Returns the list with this index.
    pub(super) fn get(&self, at: usize) -> Option<&[u32]> {
        let start = if at == 0 { 0 } else { *self.ends.get(at - 1)? };
        self.frames.get(start..*self.ends.get(at)?)
    }

    /// Returns all lists.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.ends.len()).filter_map(|at| self.get(at))
    }
}

impl ChunkStacks {
    /// Returns the index of a stack of a thread, and whether it is new.
    pub(super) fn index(
        &mut self,
        trace: Constant<'_>,
        thread: u32,
        names: &mut ConstantNames,
    ) -> (StackIndex, bool) {
        if let Some(index) = self.by_constant.get(&trace).filter(|_| thread == 0) {
            return (index, false);
        }
        let Some(list) = self.lists.get(&trace).or_else(|| self.list(trace, names)) else {
            // Events without a stack have key 0.
            self.lost += u64::from(trace.key() != 0);
            return (NO_STACK, false);
        };
        if let Some(index) = self.by_thread.get(&(list, thread)).filter(|_| thread != 0) {
            return (*index, false);
        }
        let index = u32::try_from(self.table.stacks.len()).unwrap_or(NO_STACK);
        let is_truncated = self.are_truncated.get(list as usize) == Some(&true);
        self.table.stacks.push(Stack { thread, list, is_truncated });
        match thread {
            0 => self.by_constant.insert(&trace, index),
            thread => _ = self.by_thread.insert((list, thread), index),
        }
        (index, true)
    }

    /// Returns the number of events whose stack the chunk does not contain.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the innermost frame of a stack and the frame's index, without reading the other frames.
    pub(super) fn innermost(
        &mut self,
        trace: Constant<'_>,
        names: &mut ConstantNames,
    ) -> Option<(u32, &Frame)> {
        let frame = match self.innermost.get(&trace) {
            Some(frame) => *frame,
            None => {
                let mut found = None;
                self.read(trace, 1, names, |frame| found = Some(frame));
                self.innermost.insert(&trace, found);
                found
            }
        };
        Some((frame?, self.table.frames.get(frame? as usize)?))
    }

    /// Reads the frames of a stack, and returns the index of their list; `None` if the chunk does not contain the stack.
    fn list(&mut self, trace: Constant<'_>, names: &mut ConstantNames) -> Option<u32> {
        let mut lists = std::mem::take(&mut self.table.lists);
        let is_truncated = self.read(trace, usize::MAX, names, |frame| lists.frames.push(frame));
        let number = u32::try_from(lists.ends.len());
        if let Some(is_truncated) = is_truncated {
            lists.ends.push(lists.frames.len());
            self.are_truncated.push(is_truncated);
        }
        self.table.lists = lists;
        let number = number.ok().filter(|_| is_truncated.is_some())?;
        self.lists.insert(&trace, number);
        Some(number)
    }

    /// Reads the innermost frames of a stack; returns whether outer frames are missing in the recording.
    fn read(
        &mut self,
        trace: Constant<'_>,
        count: usize,
        names: &mut ConstantNames,
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
        names: &mut ConstantNames,
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

    /// Returns the collected frames and stacks.
    pub(super) fn finish(self) -> StackTable {
        self.table
    }
}

/// Returns descriptions of the damage to a chunk whose events were read with these stacks and names. They are the same for
/// every query.
pub(super) fn chunk_problems(
    chunk: &Chunk<'_>,
    span: &ChunkSpan,
    stacks: &ChunkStacks,
    names: &ConstantNames,
) -> Vec<String> {
    let mut problems: Vec<String> = chunk.problems.iter().map(ToString::to_string).collect();
    // The JVM writes the stacks of a chunk at its end, and since JDK 14 each second.
    let is_complete = span.is_whole && !span.header.is_in_flight() && problems.is_empty();
    if is_complete && stacks.lost > 0 {
        let (events, at) = (group_digits(stacks.lost), span.start);
        problems
            .push(format!("events whose stacks are missing from the chunk: {events} (at offset {at:#x})"));
    }
    if names.left_out() > 0 {
        let (names, at) = (group_digits(names.left_out()), span.start);
        problems.push(format!(
            "the names of classes, methods and threads are longer than the chunk: {names} were skipped (at offset {at:#x})"
        ));
    }
    problems
}

impl ClassTable {
    /// Returns the number of a class. `None`, and a class that the chunk does not contain, have the number of the class without
    /// a name.
    pub(super) fn number(&mut self, class: Option<Constant<'_>>, names: &mut ConstantNames) -> u32 {
        let known = class.as_ref().and_then(|class| self.by_constant.get(class));
        known.unwrap_or_else(|| self.new_number(class, names))
    }

    /// Adds a class that is not yet in the table, and returns its number.
    fn new_number(&mut self, class: Option<Constant<'_>>, names: &mut ConstantNames) -> u32 {
        let class = class.filter(|class| class.number().is_some());
        if let (None, Some(unnamed)) = (&class, self.unnamed) {
            return unnamed;
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

    /// Returns the names of all classes, by number.
    pub(super) fn finish(self) -> Vec<Arc<str>> {
        self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hprof_writer::hostile_keys::is_seeded;

    /// The file chooses the numbers of threads, and methods and lines of frames: without a seed it could choose those that
    /// collide.
    #[test]
    fn hashes_are_seeded() {
        let ChunkStacks { by_thread, by_frame, .. } = ChunkStacks::default();
        assert!(is_seeded(&by_thread) && is_seeded(&by_frame));
    }
}
