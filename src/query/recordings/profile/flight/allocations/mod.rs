//! Allocations in a recording by class, stack and time, and sampled objects that were alive when the recording was written.
//!
//! Chunks are read in parallel, and merged in the order of the file. All tables are bounded: events beyond a limit are only
//! counted.

mod chunk;
mod old_objects;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use hprof_jfr::{ChunkSpan, Recording};

use super::heap::{Collecting, HeapOverTime};
use super::in_order::map_in_order;
use super::stacks::StackTable;
use super::{AllocationEvent, MAX_PROBLEMS, SiteEvent};
use crate::profile::Frame;
use hprof_base::sorting::SortRows;

use chunk::{ChunkAllocations, NO_STACK, RowKey};
pub use old_objects::{ChainLink, OldObject};

/// Number of equal parts of the recording's time.
pub const TIME_PARTS: usize = 24;

/// Maximum number of pairs of class and stack.
const MAX_ROWS: usize = 1 << 17;
/// Maximum number of frames of all stacks.
const MAX_FRAMES: usize = 1 << 22;
/// Maximum number of times at which recordings were started.
const MAX_STARTS: usize = 64;
/// Maximum number of different lengths of arrays of a row.
const MAX_LENGTHS: usize = 16;

/// Number and bytes of allocation samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampleSum {
    /// Number of samples.
    pub samples: u64,
    /// Bytes that the samples represent.
    pub bytes: u64,
}

impl SampleSum {
    /// Adds another sum.
    pub fn add(&mut self, other: Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Samples of one event type for allocations of a class in a stack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllocationRow {
    /// Number and bytes of all samples.
    pub sum: SampleSum,
    /// Allocated bytes by part of the recording's time.
    pub parts: [u64; TIME_PARTS],
    /// Shallow sizes of arrays, for events that state a size, each with its samples; at most 16.
    pub sizes: Vec<(u64, SampleSum)>,
    /// `true` if `sizes` is incomplete.
    pub has_more_sizes: bool,
}

impl AllocationRow {
    fn add(&mut self, other: &Self) {
        self.sum.add(other.sum);
        for (part, more) in self.parts.iter_mut().zip(&other.parts) {
            *part = part.saturating_add(*more);
        }
        for (size, sum) in &other.sizes {
            self.add_size(*size, *sum);
        }
        self.has_more_sizes |= other.has_more_sizes;
    }

    fn add_size(&mut self, size: u64, sum: SampleSum) {
        if let Some((_, known)) = self.sizes.iter_mut().find(|(known, _)| *known == size) {
            known.add(sum);
        } else if self.sizes.len() < MAX_LENGTHS {
            self.sizes.push((size, sum));
        } else {
            self.has_more_sizes = true;
        }
    }
}

/// The recorded JVM; facts that the recording lacks are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedJvm {
    /// Main class and arguments of the program.
    pub command: String,
    /// Process ID.
    pub pid: Option<i64>,
    /// Start, in nanoseconds since 1970.
    pub start_nanos: Option<i64>,
    /// `true` if the JVM's options start a recording together with the JVM, without delay.
    pub starts_recording: bool,
}

/// Allocations in a recording.
#[derive(Debug, Clone, Default)]
pub struct Allocations {
    /// Events that are counted: samples if there are any, else those of thread-local buffers.
    pub event: Option<AllocationEvent>,
    /// Start and end, in nanoseconds since 1970.
    pub span_nanos: (i64, i64),
    /// JVM, if it described itself.
    pub jvm: Option<RecordedJvm>,
    /// Times at which recordings were started in the JVM, in milliseconds since 1970; only the first ones.
    pub started_ms: Vec<i64>,
    /// Start of the JVM's first recording (the one with ID 1), in milliseconds since 1970.
    pub first_started_ms: Option<i64>,
    /// Sampled objects that were alive when the recording was written.
    pub old_objects: Vec<OldObject>,
    /// Heap over time.
    pub heap: HeapOverTime,
    /// Number of events that were not counted because there were too many distinct stacks.
    pub left_out: u64,
    /// Descriptions of damaged regions; only the first ones.
    pub problems: Vec<String>,
    frames: Vec<Frame>,
    stacks: Vec<Box<[u32]>>,
    /// Class, index of the stack, and sums, ascending by class.
    rows: Vec<(Arc<str>, u32, AllocationRow)>,
}

impl Allocations {
    /// Returns the names of the classes, ascending.
    pub fn classes(&self) -> impl Iterator<Item = &str> {
        self.rows.chunk_by(|a, b| a.0 == b.0).filter_map(|rows| rows.first().map(|row| &*row.0))
    }

    /// Returns the stacks in which objects of a class were allocated, innermost frame first, with their sums.
    pub fn of_class(&self, class: &str) -> impl Iterator<Item = (Vec<&Frame>, &AllocationRow)> {
        let start = self.rows.partition_point(|row| &*row.0 < class);
        let rows = self.rows.get(start..).unwrap_or_default();
        let is_it = move |row: &&(Arc<str>, u32, AllocationRow)| &*row.0 == class;
        rows.iter().take_while(is_it).map(|(_, stack, row)| (self.stack(*stack), row))
    }

    /// Returns the frames of a stack, innermost first; an empty list if the stack is unknown.
    pub fn stack(&self, stack: u32) -> Vec<&Frame> {
        let numbers = self.stacks.get(stack as usize).into_iter().flatten();
        numbers.filter_map(|number| self.frames.get(*number as usize)).collect()
    }
}

/// Reads the allocations in a recording.
pub fn read(recording: &Recording<'_>) -> Allocations {
    let headers = || recording.chunks().iter().map(|span| span.header);
    let start = headers().map(|header| header.start_nanos).min().unwrap_or(0);
    let end = headers().map(|header| header.start_nanos.saturating_add(header.duration_nanos)).max();
    let mut merged = MergedAllocations::default();
    merged.all.span_nanos = (start, end.unwrap_or(start).max(start));
    let span_nanos = merged.all.span_nanos;
    recording.problems().iter().for_each(|problem| merged.problem(problem));
    let read = |span: &ChunkSpan| ChunkAllocations::read(recording.bytes(), span, span_nanos);
    map_in_order(recording.chunks(), read, |_, chunk| match chunk {
        Ok(chunk) => merged.add(chunk),
        Err(error) => merged.problem(error),
    });
    merged.finish()
}

/// Allocations of the chunks so far. The file chooses the keys of the tables, so their hashes are seeded.
#[derive(Default)]
struct MergedAllocations {
    all: Allocations,
    frames: HashMap<Frame, u32>,
    stacks: HashMap<Box<[u32]>, u32>,
    stack_frames: usize,
    heap: Collecting,
    /// Rows by event, number of the class and number of the stack.
    rows: HashMap<(SiteEvent, u32, u32), AllocationRow>,
    classes: Vec<Arc<str>>,
    class_numbers: HashMap<Arc<str>, u32>,
}

/// Mapping of the frames, stacks and classes of one chunk to numbers for all chunks, filled on demand.
struct ChunkNumbers<'c> {
    tables: &'c StackTable,
    frames: Vec<Option<u32>>,
    /// By index of the stack in the chunk: `None` until looked up, `Some(None)` if there are too many stacks.
    stacks: Vec<Option<Option<u32>>>,
    classes: Vec<Option<Option<u32>>>,
}

impl<'c> ChunkNumbers<'c> {
    fn new(tables: &'c StackTable, classes: usize) -> Self {
        let (frames, stacks) = (vec![None; tables.frames.len()], vec![None; tables.stacks.len()]);
        Self { tables, frames, stacks, classes: vec![None; classes] }
    }
}

impl MergedAllocations {
    fn problem(&mut self, problem: impl ToString) {
        if self.all.problems.len() < MAX_PROBLEMS {
            self.all.problems.push(problem.to_string());
        }
    }

    fn add(&mut self, chunk: ChunkAllocations) {
        chunk.problems.iter().for_each(|problem| self.problem(problem));
        self.all.left_out = self.all.left_out.saturating_add(chunk.left_out);
        self.all.jvm = chunk.jvm.or(self.all.jvm.take());
        self.all.first_started_ms = self.all.first_started_ms.or(chunk.first_started_ms);
        for started in chunk.started_ms {
            if self.all.started_ms.len() < MAX_STARTS && !self.all.started_ms.contains(&started) {
                self.all.started_ms.push(started);
            }
        }
        self.heap.add_all(chunk.heap);
        let mut numbers = ChunkNumbers::new(&chunk.tables, chunk.classes.len());
        for (RowKey { event, class, stack }, row) in chunk.rows {
            let stack = self.stack(&mut numbers, stack);
            let (Some(stack), Some(class)) = (stack, self.class(&mut numbers, &chunk.classes, class)) else {
                self.all.left_out = self.all.left_out.saturating_add(row.sum.samples);
                continue;
            };
            let is_sample = event == AllocationEvent::Sample;
            let event = if is_sample { SiteEvent::Samples } else { SiteEvent::Buffers };
            let is_full = self.rows.len() >= MAX_ROWS;
            match self.rows.entry((event, class, stack)) {
                Entry::Occupied(mut known) => known.get_mut().add(&row),
                Entry::Vacant(new) if !is_full => _ = new.insert(row),
                Entry::Vacant(_) => {
                    self.all.left_out = self.all.left_out.saturating_add(row.sum.samples);
                }
            }
        }
        // Each time a recording is written, all sampled objects that are alive are written: only the last time counts.
        if !chunk.old_objects.is_empty() {
            let old_objects = chunk.old_objects.into_iter().map(|mut old| {
                let stack = self.stack(&mut numbers, old.stack);
                old.stack = stack.unwrap_or(NO_STACK);
                old
            });
            self.all.old_objects = old_objects.collect();
        }
    }

    /// Returns the number in all chunks for a chunk's class; `None` if there are too many classes.
    fn class(&mut self, numbers: &mut ChunkNumbers<'_>, names: &[Arc<str>], class: u32) -> Option<u32> {
        let known = numbers.classes.get_mut(class as usize)?;
        *known.get_or_insert_with(|| {
            let name = names.get(class as usize)?;
            if let Some(number) = self.class_numbers.get(name) {
                return Some(*number);
            }
            let number = u32::try_from(self.classes.len()).ok().filter(|_| self.classes.len() < MAX_ROWS)?;
            self.classes.push(Arc::clone(name));
            self.class_numbers.insert(Arc::clone(name), number);
            Some(number)
        })
    }

    /// Returns the number in all chunks for a chunk's stack; `None` if there are too many stacks.
    fn stack(&mut self, numbers: &mut ChunkNumbers<'_>, stack: u32) -> Option<u32> {
        if stack == NO_STACK {
            return Some(NO_STACK);
        }
        let known = numbers.stacks.get(stack as usize)?;
        if let Some(known) = known {
            return *known;
        }
        let number = self.new_stack(numbers, stack);
        if let Some(known) = numbers.stacks.get_mut(stack as usize) {
            *known = Some(number);
        }
        number
    }

    fn new_stack(&mut self, numbers: &mut ChunkNumbers<'_>, stack: u32) -> Option<u32> {
        let StackTable { frames, lists, stacks } = numbers.tables;
        let list = stacks.get(stack as usize).and_then(|stack| lists.get(stack.list as usize));
        let mut all = Vec::with_capacity(list.map_or(0, <[u32]>::len));
        for at in list.unwrap_or_default() {
            let (Some(known), Some(frame)) = (numbers.frames.get_mut(*at as usize), frames.get(*at as usize))
            else {
                continue;
            };
            all.push(*known.get_or_insert_with(|| match self.frames.get(frame) {
                Some(number) => *number,
                None => {
                    let number = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
                    self.frames.insert(frame.clone(), number);
                    self.all.frames.push(frame.clone());
                    number
                }
            }));
        }
        if let Some(number) = self.stacks.get(&*all) {
            return Some(*number);
        }
        if self.stack_frames.saturating_add(all.len()) > MAX_FRAMES {
            return None;
        }
        self.stack_frames += all.len();
        let number = u32::try_from(self.all.stacks.len()).unwrap_or(NO_STACK);
        let all = all.into_boxed_slice();
        self.all.stacks.push(all.clone());
        self.stacks.insert(all, number);
        Some(number)
    }

    fn finish(mut self) -> Allocations {
        self.all.heap = std::mem::take(&mut self.heap).finish();
        self.all.heap.problem().into_iter().for_each(|problem| self.problem(problem));
        let Self { mut all, rows, classes, .. } = self;
        let are_samples = rows.keys().any(|(event, ..)| *event == SiteEvent::Samples);
        let (event, counted) = match are_samples {
            true => (AllocationEvent::Sample, SiteEvent::Samples),
            false => (AllocationEvent::InNewTlab, SiteEvent::Buffers),
        };
        all.event = Some(event).filter(|_| !rows.is_empty());
        let class = |number: u32| classes.get(number as usize).cloned().unwrap_or_default();
        // Both count the same bytes.
        let rows = rows.into_iter().filter(|((event, ..), _)| *event == counted);
        all.rows = rows.map(|((_, number, stack), row)| (class(number), stack, row)).collect();
        all.rows.sort_rows_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
        all
    }
}
