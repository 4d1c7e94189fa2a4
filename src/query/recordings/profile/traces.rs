//! Stack traces by serial number, with shared frames.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

pub use hprof_model::threads::frames::Frame;
use hprof_values::TraceSerial;

/// Stack trace, without its frames (see [`Traces::frames`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Serial number.
    pub serial: TraceSerial,
    /// Serial number of the thread; 0 for none.
    pub thread: u32,
    /// Phase of the JVM, if a text states one (`VM_START`).
    pub phase: Option<String>,
    frames: Range<usize>,
}

/// Range of a trace's frames in [`Traces`].
#[derive(Debug, Clone, Default)]
pub(crate) struct StoredFrames(Range<usize>);

/// Stack traces in the order in which they were added. Of several traces with one serial number, the last one counts.
#[derive(Clone, Default)]
pub struct Traces {
    traces: Vec<Trace>,
    /// Frame numbers of all traces, innermost first.
    frames: Vec<u32>,
    table: Vec<Frame>,
    /// Numbers of the distinct frames. The file chooses lines, names and serial numbers, so the hashes are seeded.
    numbers: HashMap<Frame, u32>,
    names: HashSet<Arc<str>>,
    by_serial: HashMap<TraceSerial, usize>,
}

/// Omits the lookup tables, whose order differs between processes.
impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { traces, frames, table, numbers: _, names: _, by_serial: _ } = self;
        f.debug_struct("Traces")
            .field("traces", traces)
            .field("frames", frames)
            .field("table", table)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Traces {
    fn eq(&self, other: &Self) -> bool {
        let same = |(left, right): (&Trace, &Trace)| {
            (left.serial, left.thread, &left.phase) == (right.serial, right.thread, &right.phase)
                && self.frames(left).eq(other.frames(right))
        };
        self.traces.len() == other.traces.len() && self.traces.iter().zip(&other.traces).all(same)
    }
}

impl Traces {
    /// Adds a trace. The frames are given innermost first.
    pub fn add(
        &mut self,
        serial: TraceSerial,
        thread: u32,
        phase: Option<String>,
        frames: impl IntoIterator<Item = Frame>,
    ) {
        let first = self.frames.len();
        for frame in frames {
            let number = self.intern(frame);
            self.frames.push(number);
        }
        let frames = StoredFrames(first..self.frames.len());
        self.finish(serial, thread, phase, frames);
    }

    /// Adds a trace. The frames are given by their numbers, innermost first.
    pub(crate) fn add_numbers(
        &mut self,
        serial: TraceSerial,
        thread: u32,
        numbers: impl Iterator<Item = u32>,
    ) {
        let frames = self.store(numbers);
        self.finish(serial, thread, None, frames);
    }

    /// Stores frame numbers, innermost first, for [`Self::add_stored`].
    pub(crate) fn store(&mut self, numbers: impl Iterator<Item = u32>) -> StoredFrames {
        let first = self.frames.len();
        self.frames.extend(numbers);
        StoredFrames(first..self.frames.len())
    }

    /// Adds a trace whose frames were stored by [`Self::store`]. Several traces can share stored frames.
    pub(crate) fn add_stored(&mut self, serial: TraceSerial, thread: u32, frames: &StoredFrames) {
        self.finish(serial, thread, None, frames.clone());
    }

    fn finish(&mut self, serial: TraceSerial, thread: u32, phase: Option<String>, frames: StoredFrames) {
        let trace = Trace { serial, thread, phase, frames: frames.0 };
        match self.by_serial.get(&serial).and_then(|at| self.traces.get_mut(*at)) {
            Some(known) => *known = trace,
            None => {
                self.by_serial.insert(serial, self.traces.len());
                self.traces.push(trace);
            }
        }
    }

    /// Returns the number of a frame, adding it if it is new. Equal names are stored once.
    pub(crate) fn intern(&mut self, mut frame: Frame) -> u32 {
        if let Some(number) = self.numbers.get(&frame) {
            return *number;
        }
        for name in [&mut frame.class, &mut frame.method, &mut frame.source].into_iter().flatten() {
            match self.names.get(name) {
                Some(known) => *name = Arc::clone(known),
                None => _ = self.names.insert(Arc::clone(name)),
            }
        }
        // More than 2^32 distinct frames do not fit into memory.
        let number = u32::try_from(self.table.len()).unwrap_or(u32::MAX);
        self.table.push(frame.clone());
        self.numbers.insert(frame, number);
        number
    }

    /// Returns the number of traces.
    pub fn len(&self) -> usize {
        self.traces.len()
    }

    /// Returns whether there are no traces.
    pub fn is_empty(&self) -> bool {
        self.traces.is_empty()
    }

    /// Returns all traces.
    pub fn iter(&self) -> impl Iterator<Item = &Trace> {
        self.traces.iter()
    }

    /// Returns the trace with this serial number.
    pub fn get(&self, serial: TraceSerial) -> Option<&Trace> {
        self.by_serial.get(&serial).and_then(|at| self.traces.get(*at))
    }

    /// Returns the frames of a trace, innermost first.
    pub fn frames(&self, trace: &Trace) -> impl ExactSizeIterator<Item = &Frame> + DoubleEndedIterator {
        self.numbers(trace).iter().map(|number| self.table.get(*number as usize).unwrap_or(&NO_FRAME))
    }

    /// Returns the frame numbers of a trace, innermost first. Equal frames have equal numbers.
    pub fn numbers(&self, trace: &Trace) -> &[u32] {
        self.frames.get(trace.frames.clone()).unwrap_or_default()
    }

    /// Returns the frame with this number.
    pub fn frame(&self, number: u32) -> Option<&Frame> {
        self.table.get(number as usize)
    }

    /// Returns the distinct frames of all traces.
    pub fn all_frames(&self) -> impl Iterator<Item = &Frame> {
        self.table.iter()
    }

    /// Returns the number of distinct frames. Frames are numbered from 0.
    pub fn different_frames(&self) -> usize {
        self.table.len()
    }

    /// Returns class and method of the innermost frame, as reports name a trace: `com.acme.Main.run`.
    pub fn method(&self, serial: TraceSerial) -> Option<String> {
        let top = self.frames(self.get(serial)?).next()?;
        Some(top.qualified_method())
    }

    /// Returns class and method of the innermost frame that is not one of async-profiler's functions around `malloc`, which are
    /// innermost in every stack of native memory.
    pub fn method_below_hooks(&self, serial: TraceSerial) -> Option<String> {
        let is_hook =
            |frame: &&Frame| frame.method.as_deref().is_some_and(|method| MALLOC_HOOKS.contains(&method));
        let below = self.frames(self.get(serial)?).find(|frame| !is_hook(frame));
        below.map_or_else(|| self.method(serial), |frame| Some(frame.qualified_method()))
    }
}

/// Functions of async-profiler that are called in place of those of the C library (`mallocTracer.cpp`).
const MALLOC_HOOKS: [&str; 5] =
    ["malloc_hook", "calloc_hook", "realloc_hook", "posix_memalign_hook", "aligned_alloc_hook"];

static NO_FRAME: Frame = Frame::UNKNOWN;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hprof_writer::hostile_keys::is_seeded;

    /// The file chooses the keys: without a seed it could choose keys that collide.
    #[test]
    fn hashes_are_seeded() {
        let Traces { numbers, by_serial, .. } = Traces::default();
        assert!(is_seeded(&numbers) && is_seeded(&by_serial));
    }

    fn frame(method: &str) -> Frame {
        Frame { class: Some("a.B".into()), method: Some(method.into()), source: None, line: 0 }
    }

    #[test]
    fn the_last_trace_with_a_serial_number_counts() {
        let mut traces = Traces::default();
        traces.add(TraceSerial(1), 0, None, [frame("x"), frame("y")]);
        traces.add(TraceSerial(2), 7, None, []);
        traces.add(TraceSerial(1), 3, None, [frame("y")]);
        assert_eq!((traces.len(), traces.get(TraceSerial(1)).unwrap().thread), (2, 3));
        assert_eq!(traces.method(TraceSerial(1)).unwrap(), "a.B.y");
        assert_eq!((traces.method(TraceSerial(2)), traces.method(TraceSerial(3))), (None, None));
        assert_eq!(traces.frames(traces.get(TraceSerial(1)).unwrap()).count(), 1);
    }

    #[test]
    fn equal_frames_have_equal_numbers() {
        let mut traces = Traces::default();
        traces.add(TraceSerial(1), 0, None, [frame("x"), frame("y"), frame("x")]);
        let trace = traces.get(TraceSerial(1)).unwrap();
        assert_eq!(traces.numbers(trace), [0, 1, 0]);
        assert_eq!(traces.frame(1), Some(&frame("y")));
    }

    #[test]
    fn equal_names_are_kept_once() {
        let mut traces = Traces::default();
        traces.add(TraceSerial(1), 0, None, [frame("x"), frame("y")]);
        let class = |number| traces.frame(number).unwrap().class.as_ref().unwrap();
        assert!(Arc::ptr_eq(class(0), class(1)));
    }
}
