//! Native memory that was not freed: `profiler.Malloc` without `profiler.Free`, by async-profiler.
//!
//! A free states only an address, which the next malloc can have again, so events are examined in the order of time.
//! async-profiler writes the buffers of threads one after the other: within a chunk, events are sorted by time; chunks follow
//! one another. Each chunk is reduced on its own to what its events at each address mean for mallocs before and after it.
//! As in async-profiler's own converter, what was allocated in the last tenth of the recording is too young to count.

use std::collections::HashMap;

use hprof_jfr::{ChunkSpan, ChunkTables};
use hprof_values::TraceSerial;

use super::site_sums::{SiteSums, Sum};
use super::stacks::StackIndex;
use hprof_base::sorting::SortRows;

/// Name of the events that free native memory.
pub const FREE: &str = "profiler.Free";
/// Percentage of the time at the end of a recording whose mallocs are too young to count.
pub const TAIL_PERCENT: u8 = 10;

/// Mallocs and frees of a recording, and what is known about their pairs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnfreedMemory {
    /// Number of mallocs.
    pub mallocs: u64,
    /// Number of frees.
    pub frees: u64,
    /// Number of frees at addresses without a malloc: of memory allocated before the recording, or by a malloc that was not
    /// sampled.
    pub unmatched_frees: u64,
    /// Number of mallocs at addresses that had not been freed: their free was lost.
    pub lost_frees: u64,
    /// Number of mallocs that were not freed and are too young to count.
    pub young_mallocs: u64,
    /// Bytes of these mallocs.
    pub young_bytes: u64,
    /// Time in nanoseconds since 1970 after which mallocs are too young; `None` if there are no mallocs and frees.
    pub counted_until_nanos: Option<i64>,
    /// Time of the last malloc or free, in nanoseconds since 1970.
    pub last_nanos: Option<i64>,
}

/// Malloc, without its address and time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Malloc {
    pub(super) bytes: u64,
    /// Index of the stack in the chunk.
    pub(super) stack: StackIndex,
}

/// Mallocs and frees of a chunk, in the order of the file.
#[derive(Debug, Default)]
pub(super) struct MallocLog {
    events: Vec<LogEntry>,
    mallocs: Vec<Malloc>,
}

/// Malloc or free at an address.
#[derive(Debug, Clone, Copy)]
struct LogEntry {
    address: u64,
    ticks: i64,
    /// Index in the order of the file.
    order: u32,
    /// Index of the malloc; [`IS_FREE`] for a free.
    malloc: u32,
}

/// Index of the malloc of an entry that is a free.
const IS_FREE: u32 = u32::MAX;

/// Events of a chunk at one address, reduced to what they mean for the events of other chunks.
#[derive(Debug, Clone, Copy)]
struct AddressOutcome {
    address: u64,
    /// `true` if the first event is a free.
    begins_with_free: bool,
    /// Malloc that was not freed in the chunk.
    open: Option<OpenMalloc>,
}

/// Malloc that was not freed so far.
#[derive(Debug, Clone, Copy)]
struct OpenMalloc {
    nanos: i64,
    bytes: u64,
    /// Index of the stack in its chunk; the serial number of the trace once chunks are merged.
    stack: u32,
}

/// Mallocs and frees of a chunk by address.
#[derive(Debug, Default)]
pub(super) struct ChunkMallocs {
    addresses: Vec<AddressOutcome>,
    counts: UnfreedMemory,
    /// Time of the first event and of the last one.
    span: Option<(i64, i64)>,
}

impl MallocLog {
    /// Adds a malloc, or a free if there is none. Events without an address cannot be matched.
    pub(super) fn add(&mut self, ticks: Option<i64>, address: Option<i64>, malloc: Option<Malloc>) {
        let (Some(ticks), Some(address)) = (ticks, address) else { return };
        let (Ok(order), Ok(index)) = (u32::try_from(self.events.len()), u32::try_from(self.mallocs.len()))
        else {
            return;
        };
        let address = address.cast_unsigned();
        let malloc = match malloc {
            Some(malloc) => {
                self.mallocs.push(malloc);
                index
            }
            None => IS_FREE,
        };
        self.events.push(LogEntry { address, ticks, order, malloc });
    }

    /// Returns the mallocs and frees by address.
    pub(super) fn finish(mut self, chunk: &ChunkTables) -> ChunkMallocs {
        let mut found = ChunkMallocs::default();
        found.counts.mallocs = self.mallocs.len() as u64;
        found.counts.frees = (self.events.len() as u64).saturating_sub(found.counts.mallocs);
        let times = || self.events.iter().map(|event| event.ticks);
        if let (Some(first), Some(last)) = (times().min(), times().max()) {
            found.span = Some((chunk.nanos(first), chunk.nanos(last)));
        }
        self.events.sort_unstable_by_key(|event| (event.address, event.ticks, event.order));
        for events in self.events.chunk_by(|a, b| a.address == b.address) {
            let Some(first) = events.first() else { continue };
            let begins_with_free = first.malloc == IS_FREE;
            let mut open: Option<(i64, Malloc)> = None;
            // Whether the first event frees something is not known in this chunk.
            for event in events.iter().skip(begins_with_free.into()) {
                let known = match self.mallocs.get(event.malloc as usize) {
                    Some(malloc) => {
                        let known = open.replace((event.ticks, *malloc));
                        found.counts.lost_frees += u64::from(known.is_some());
                        continue;
                    }
                    None => open.take(),
                };
                found.counts.unmatched_frees += u64::from(known.is_none());
            }
            let open = open.map(|(ticks, Malloc { bytes, stack })| OpenMalloc {
                nanos: chunk.nanos(ticks),
                bytes,
                stack,
            });
            found.addresses.push(AddressOutcome { address: first.address, begins_with_free, open });
        }
        found
    }
}

/// Mallocs that were not freed in the chunks so far.
#[derive(Debug, Default)]
pub(super) struct OpenMallocs {
    /// Open mallocs by address. The file chooses the addresses, so the hash is seeded.
    open: HashMap<u64, OpenMalloc>,
    counts: UnfreedMemory,
    span: Option<(i64, i64)>,
    /// `true` if the chunks of the file are not in the order of time.
    is_unordered: bool,
    /// Chunks that wait for earlier ones, with their starts, if the file's order is not that of time.
    waiting: Vec<(i64, ChunkMallocs)>,
}

impl OpenMallocs {
    /// Creates an empty table for a recording with these chunks.
    pub(super) fn new(chunks: &[ChunkSpan]) -> Self {
        let is_unordered = !chunks.is_sorted_by_key(|chunk| chunk.header.start_nanos);
        Self { is_unordered, ..Self::default() }
    }

    /// Adds the next chunk of the file, which starts at a time in nanoseconds since 1970. `serial` returns the trace of a stack.
    pub(super) fn add(
        &mut self,
        start_nanos: i64,
        mut chunk: ChunkMallocs,
        serial: impl Fn(StackIndex) -> TraceSerial,
    ) {
        for open in chunk.addresses.iter_mut().filter_map(|at| at.open.as_mut()) {
            open.stack = serial(open.stack).0;
        }
        match self.is_unordered {
            true => self.waiting.push((start_nanos, chunk)),
            false => self.add_next(chunk),
        }
    }

    /// Adds the next chunk in the order of time.
    fn add_next(&mut self, chunk: ChunkMallocs) {
        let (all, counts) = (&mut self.counts, chunk.counts);
        all.mallocs += counts.mallocs;
        all.frees += counts.frees;
        all.lost_frees += counts.lost_frees;
        all.unmatched_frees += counts.unmatched_frees;
        let known = self.span.or(chunk.span);
        let both = known.zip(chunk.span);
        self.span = both.map(|((first, last), (start, end))| (first.min(start), last.max(end))).or(self.span);
        for AddressOutcome { address, begins_with_free, open } in chunk.addresses {
            let known = match open {
                Some(open) => self.open.insert(address, open),
                None => self.open.remove(&address),
            };
            match (begins_with_free, known) {
                (true, None) => all.unmatched_frees += 1,
                (false, Some(_)) => all.lost_frees += 1,
                (true, Some(_)) | (false, None) => {}
            }
        }
    }

    /// Returns what was found, and the mallocs that were not freed and are old enough: their number and bytes by trace.
    pub(super) fn finish(mut self) -> (UnfreedMemory, SiteSums) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_rows_by_key(|(start_nanos, _)| *start_nanos);
        waiting.into_iter().for_each(|(_, chunk)| self.add_next(chunk));
        let (mut facts, mut sums) = (self.counts, SiteSums::default());
        let Some((first, last)) = self.span else { return (facts, sums) };
        let counted = (i128::from(last) - i128::from(first)) * i128::from(100 - TAIL_PERCENT) / 100;
        let until = i64::try_from(i128::from(first) + counted).unwrap_or(last);
        (facts.counted_until_nanos, facts.last_nanos) = (Some(until), Some(last));
        for open in self.open.into_values() {
            if open.nanos > until {
                facts.young_mallocs += 1;
                facts.young_bytes = facts.young_bytes.saturating_add(open.bytes);
            } else {
                sums.add(open.stack, u32::MAX, Sum { events: 1, amount: open.bytes });
            }
        }
        (facts, sums)
    }
}

#[cfg(test)]
mod tests;
