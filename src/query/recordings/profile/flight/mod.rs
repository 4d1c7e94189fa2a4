//! Profile from a Java Flight Recorder recording.
//!
//! Chunks are read in parallel, and merged in the order of the file. Stacks are numbered in the order of their first
//! occurrence, so that trace serial numbers are the same for every query.

pub mod allocations;
mod chunk_sums;
pub mod class_counts;
mod constants;
mod file;
pub mod heap;
pub mod heap_trend;
mod in_order;
pub mod mallocs;
pub mod memory_over_time;
mod merge;
mod names;
pub mod rows;
mod site_sums;
mod stacks;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use hprof_jfr::{ChunkSpan, Recording};

use super::binary::Want;
use super::events::current_name;
pub use super::events::{AllocationEvent, MonitorEvent, SampleEvent, SiteEvent, state_word};
use super::{Profile, Samples, Sites, ThreadEvent};
pub use file::FlightFile;

use chunk_sums::ChunkSums;
use heap::HeapOverTime;
use in_order::map_in_order;
use mallocs::UnfreedMemory;
use memory_over_time::MemoryOverTime;
use merge::MergedChunks;

/// Maximum number of damaged regions that are described.
const MAX_PROBLEMS: usize = 20;

/// Contents of a Flight Recorder recording.
#[derive(Debug, Clone, Default)]
pub struct FlightReport {
    /// Profile, as from any other format.
    pub profile: Profile,
    /// Facts that no other format has.
    pub facts: FlightFacts,
    /// Starts and ends of threads, in the order of the file.
    pub thread_events: Vec<ThreadEvent>,
    /// Samples from the alternative event types, which are not in the profile.
    pub other_samples: Vec<Samples>,
    /// Heap over time.
    pub heap: HeapOverTime,
    /// Memory of the process over time.
    pub memory: MemoryOverTime,
    /// Allocation sites from the alternative event types, which are not in the profile.
    pub other_sites: Vec<Sites>,
    /// Mallocs and frees, if the allocation sites are those of memory that was not freed.
    pub unfreed: Option<UnfreedMemory>,
}

/// Facts about a recording that are not in its profile.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlightFacts {
    /// Number of chunks.
    pub chunks: u64,
    /// Number of chunks that the JVM had not finished.
    pub unfinished_chunks: u64,
    /// Start, in nanoseconds since 1970.
    pub start_nanos: i64,
    /// End, in nanoseconds since 1970.
    pub end_nanos: i64,
    /// Sum of the durations of the chunks in nanoseconds.
    pub duration_nanos: i64,
    /// Numbers of events by type, most frequent first.
    pub events: Vec<EventCount>,
    /// Numbers of CPU samples by event type and state of the thread.
    pub sample_states: Vec<SampleState>,
    /// Waits by type, of the types that the recording contains.
    pub waits: Vec<WaitTotal>,
    /// JVM, if the recording describes it.
    pub jvm: Option<FlightJvm>,
    /// Number of distinct stacks of which the JVM recorded only the innermost frames.
    pub truncated_stacks: u64,
    /// Number of events whose stacks are not in the recording.
    pub lost_stacks: u64,
    /// Number of CPU-time samples lost according to the JVM (`jdk.CPUTimeSamplesLost`).
    pub lost_samples: u64,
    /// Descriptions of damaged regions; only the first ones.
    pub problems: Vec<String>,
    /// Number of damaged regions.
    pub problem_count: u64,
}

/// Number and size of the events of one type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventCount {
    /// Name of the type, such as `jdk.ExecutionSample`.
    pub name: Arc<str>,
    /// Number of events.
    pub events: u64,
    /// Size of these events in bytes.
    pub bytes: u64,
}

/// Number of the samples of one type of event in one state of the thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleState {
    /// Type of the events.
    pub event: SampleEvent,
    /// Number of the state in the recording; 0 if the events have none.
    number: u8,
    /// Name of the state, such as `STATE_RUNNABLE`.
    pub state: Option<Arc<str>>,
    /// Number of samples.
    pub samples: u64,
    /// `true` if they are counted as CPU samples.
    pub is_counted: bool,
    /// `true` if samples of the event type were taken in real time, and running threads are counted.
    pub is_wall_clock: bool,
}

/// Waits of one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitTotal {
    /// Type of the events.
    pub event: MonitorEvent,
    /// Total time in nanoseconds.
    pub nanos: u64,
    /// Number of distinct pairs of a stack and the class of the monitor.
    pub rows: u64,
}

/// JVM as described by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlightJvm {
    /// Name of the JVM.
    pub name: String,
    /// Version of the JVM.
    pub version: String,
    /// Options of the JVM.
    pub options: String,
    /// Main class and arguments of the program.
    pub command: String,
    /// Process ID.
    pub pid: Option<i64>,
}

impl FlightFacts {
    /// Returns the number of events of a type.
    pub fn events_of(&self, name: &str) -> u64 {
        let same = self.events.iter().filter(|count| current_name(&count.name) == name);
        same.fold(0, |sum, count| sum.saturating_add(count.events))
    }

    /// Returns the total in milliseconds and the number of rows of the waits of a type; `None` if there are none.
    pub fn wait_total(&self, event: MonitorEvent) -> Option<(i64, u64)> {
        let waits = self.waits.iter().find(|waits| waits.event == event)?;
        Some((rounded_ms(waits.nanos), waits.rows))
    }

    /// Returns the number of lost samples according to the JVM, for one type of samples.
    pub fn lost_samples_of(&self, event: SampleEvent) -> u64 {
        if event == SampleEvent::CpuTime { self.lost_samples } else { 0 }
    }

    fn problem(&mut self, problem: impl ToString) {
        self.problem_count += 1;
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem.to_string());
        }
    }
}

/// Converts nanoseconds to milliseconds, rounded.
fn rounded_ms(nanos: u64) -> i64 {
    i64::try_from(nanos.saturating_add(500_000) / 1_000_000).unwrap_or(i64::MAX)
}

/// Reads a recording. `unpack_error` is the error that ended the unpacking of a compressed recording early.
pub fn read(recording: &Recording<'_>, unpack_error: Option<&str>, want: Want) -> FlightReport {
    let mut merged = MergedChunks::new(recording.chunks());
    if let Some(error) = unpack_error {
        merged.facts.problem(error);
    }
    for problem in recording.problems() {
        merged.facts.problem(problem);
    }
    let read = |span: &ChunkSpan| ChunkSums::read(recording, span, &want);
    map_in_order(recording.chunks(), read, |span, sums| merged.add(span, sums));
    merged.finish(want)
}
