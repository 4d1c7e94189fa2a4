//! Memory over time: the figures about native memory, the process and its container that the JVM records from time to time.
//!
//! Each figure is reduced to its first, last and highest value, and its growth by the method of least squares over all samples.
//! Sums are integers, so that the result does not depend on the order in which chunks are added.

use std::collections::BTreeMap;
use std::sync::Arc;

use hprof_index::storage::human_bytes::group_digits;
use hprof_jfr::metadata::Class;
use hprof_jfr::{Chunk, Record, Value};

use super::super::events::current_name;
use super::names::ConstantNames;

/// Maximum number of figures. A JVM has about 30 categories of native memory.
const MAX_FIGURES: usize = 1 << 10;
/// Maximum number of events of a chunk that are read.
const MAX_EVENTS: u64 = 1 << 20;
/// Milliseconds of an hour.
const HOUR_MS: i128 = 3_600_000;

/// Memory over time, as recorded by the JVM.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryOverTime {
    /// Figures, in the order of [`MemoryFigure::ALL`], then by category.
    pub figures: Vec<FigureOverTime>,
    /// Number of events and values that were not read because there were too many.
    pub left_out: u64,
}

/// One figure over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FigureOverTime {
    /// Figure.
    pub figure: MemoryFigure,
    /// Category of native memory, such as `Java Heap`, or segment of the code cache; `None` for figures without categories.
    pub category: Option<Arc<str>>,
    /// First sample.
    pub first: FigureSample,
    /// Last sample.
    pub last: FigureSample,
    /// First of the highest samples.
    pub highest: FigureSample,
    /// Number of samples.
    pub samples: u64,
    /// Growth per hour: the slope of the line that fits all samples best, rounded. `None` if all samples are of one time.
    pub growth_per_hour: Option<i64>,
}

/// Value of a figure at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FigureSample {
    /// Time, in nanoseconds since 1970.
    pub nanos: i64,
    /// Bytes, or a number ([`MemoryFigure::unit`]).
    pub value: u64,
}

/// Unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FigureUnit {
    /// Bytes.
    Bytes,
    /// Number of threads, buffers or failures.
    Count,
}

impl FigureUnit {
    /// Returns the name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Count => "count",
        }
    }
}

/// Figure of an event about memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryFigure {
    /// Resident set size of the process.
    ResidentSet,
    /// Highest resident set size of the process so far.
    ResidentSetPeak,
    /// Reserved native memory of all categories.
    NativeReserved,
    /// Committed native memory of all categories.
    NativeCommitted,
    /// Reserved native memory of a category.
    NativeReservedByCategory,
    /// Committed native memory of a category.
    NativeCommittedByCategory,
    /// Number of direct buffers.
    DirectBuffers,
    /// Capacity of all direct buffers.
    DirectCapacity,
    /// Memory that the JVM reserved for direct buffers.
    DirectUsed,
    /// Limit of the capacity of all direct buffers.
    DirectLimit,
    /// Used metaspace, of classes and other metadata.
    MetaspaceUsed,
    /// Committed metaspace.
    MetaspaceCommitted,
    /// Reserved metaspace.
    MetaspaceReserved,
    /// Used metaspace of metadata other than classes.
    DataSpaceUsed,
    /// Committed metaspace of metadata other than classes.
    DataSpaceCommitted,
    /// Reserved metaspace of metadata other than classes.
    DataSpaceReserved,
    /// Used metaspace of classes.
    ClassSpaceUsed,
    /// Committed metaspace of classes.
    ClassSpaceCommitted,
    /// Reserved metaspace of classes.
    ClassSpaceReserved,
    /// Used bytes of a segment of the code cache.
    CodeCacheUsed,
    /// Reserved bytes of a segment of the code cache.
    CodeCacheReserved,
    /// Number of live threads.
    Threads,
    /// Number of live daemon threads.
    DaemonThreads,
    /// Highest number of live threads so far.
    ThreadsPeak,
    /// Memory that the container uses.
    ContainerUsed,
    /// Memory and swap space that the container uses.
    ContainerSwapUsed,
    /// Number of times that the container reached its limit.
    ContainerFailures,
    /// Memory limit of the container.
    ContainerLimit,
    /// Limit of the memory and swap space of the container.
    ContainerSwapLimit,
    /// Memory of the machine, or of the container's host.
    HostMemory,
}

/// Field of an event that states a figure.
struct FigureField {
    figure: MemoryFigure,
    event: &'static str,
    /// Field of the event, or structure that contains `field`.
    record: Option<&'static str>,
    field: &'static str,
    name: &'static str,
}

/// Returns a field of an event.
const fn field(
    figure: MemoryFigure,
    event: &'static str,
    field: &'static str,
    name: &'static str,
) -> FigureField {
    FigureField { figure, event, record: None, field, name }
}

/// Returns a field of a structure in an event about metaspace.
const fn space(
    figure: MemoryFigure,
    record: &'static str,
    field: &'static str,
    name: &'static str,
) -> FigureField {
    FigureField { figure, event: METASPACE, record: Some(record), field, name }
}

const METASPACE: &str = "jdk.MetaspaceSummary";
const NATIVE: &str = "jdk.NativeMemoryUsage";
const NATIVE_TOTAL: &str = "jdk.NativeMemoryUsageTotal";
const RESIDENT: &str = "jdk.ResidentSetSize";
const DIRECT: &str = "jdk.DirectBufferStatistics";
const CODE: &str = "jdk.CodeCacheStatistics";
const THREADS: &str = "jdk.JavaThreadStatistics";
const CONTAINER: &str = "jdk.ContainerMemoryUsage";
const LIMITS: &str = "jdk.ContainerConfiguration";

/// Fields of all figures, in the order of [`MemoryFigure`].
const FIELDS: [FigureField; MemoryFigure::ALL.len()] = {
    use MemoryFigure as F;
    [
        field(F::ResidentSet, RESIDENT, "size", "resident_set"),
        field(F::ResidentSetPeak, RESIDENT, "peak", "resident_set_peak"),
        field(F::NativeReserved, NATIVE_TOTAL, "reserved", "native_reserved"),
        field(F::NativeCommitted, NATIVE_TOTAL, "committed", "native_committed"),
        field(F::NativeReservedByCategory, NATIVE, "reserved", "native_reserved_by_category"),
        field(F::NativeCommittedByCategory, NATIVE, "committed", "native_committed_by_category"),
        field(F::DirectBuffers, DIRECT, "count", "direct_buffers"),
        field(F::DirectCapacity, DIRECT, "totalCapacity", "direct_capacity"),
        field(F::DirectUsed, DIRECT, "memoryUsed", "direct_used"),
        field(F::DirectLimit, DIRECT, "maxCapacity", "direct_limit"),
        space(F::MetaspaceUsed, "metaspace", "used", "metaspace_used"),
        space(F::MetaspaceCommitted, "metaspace", "committed", "metaspace_committed"),
        space(F::MetaspaceReserved, "metaspace", "reserved", "metaspace_reserved"),
        space(F::DataSpaceUsed, "dataSpace", "used", "data_space_used"),
        space(F::DataSpaceCommitted, "dataSpace", "committed", "data_space_committed"),
        space(F::DataSpaceReserved, "dataSpace", "reserved", "data_space_reserved"),
        space(F::ClassSpaceUsed, "classSpace", "used", "class_space_used"),
        space(F::ClassSpaceCommitted, "classSpace", "committed", "class_space_committed"),
        space(F::ClassSpaceReserved, "classSpace", "reserved", "class_space_reserved"),
        field(F::CodeCacheUsed, CODE, USED_CODE, "code_cache_used"),
        field(F::CodeCacheReserved, CODE, RESERVED_CODE, "code_cache_reserved"),
        field(F::Threads, THREADS, "activeCount", "threads"),
        field(F::DaemonThreads, THREADS, "daemonCount", "daemon_threads"),
        field(F::ThreadsPeak, THREADS, "peakCount", "threads_peak"),
        field(F::ContainerUsed, CONTAINER, "memoryUsage", "container_used"),
        field(F::ContainerSwapUsed, CONTAINER, "swapMemoryUsage", "container_swap_used"),
        field(F::ContainerFailures, CONTAINER, "memoryFailCount", "container_failures"),
        field(F::ContainerLimit, LIMITS, "memoryLimit", "container_limit"),
        field(F::ContainerSwapLimit, LIMITS, "swapMemoryLimit", "container_swap_limit"),
        field(F::HostMemory, LIMITS, "hostTotalMemory", "host_memory"),
    ]
};

/// Computed: the reserved bytes of a code cache segment without the unallocated ones.
const USED_CODE: &str = "(used)";
/// Computed: the distance between the first and the last address of a code cache segment.
const RESERVED_CODE: &str = "(reserved)";

impl MemoryFigure {
    /// All figures.
    pub const ALL: [Self; 30] = [
        Self::ResidentSet,
        Self::ResidentSetPeak,
        Self::NativeReserved,
        Self::NativeCommitted,
        Self::NativeReservedByCategory,
        Self::NativeCommittedByCategory,
        Self::DirectBuffers,
        Self::DirectCapacity,
        Self::DirectUsed,
        Self::DirectLimit,
        Self::MetaspaceUsed,
        Self::MetaspaceCommitted,
        Self::MetaspaceReserved,
        Self::DataSpaceUsed,
        Self::DataSpaceCommitted,
        Self::DataSpaceReserved,
        Self::ClassSpaceUsed,
        Self::ClassSpaceCommitted,
        Self::ClassSpaceReserved,
        Self::CodeCacheUsed,
        Self::CodeCacheReserved,
        Self::Threads,
        Self::DaemonThreads,
        Self::ThreadsPeak,
        Self::ContainerUsed,
        Self::ContainerSwapUsed,
        Self::ContainerFailures,
        Self::ContainerLimit,
        Self::ContainerSwapLimit,
        Self::HostMemory,
    ];

    /// Returns the name in output, such as `native_committed`.
    pub fn name(self) -> &'static str {
        self.field().map_or("", |field| field.name)
    }

    /// Returns the name of the event type.
    pub fn event(self) -> &'static str {
        self.field().map_or("", |field| field.event)
    }

    /// Returns the unit of the values.
    pub fn unit(self) -> FigureUnit {
        match self {
            Self::DirectBuffers
            | Self::Threads
            | Self::DaemonThreads
            | Self::ThreadsPeak
            | Self::ContainerFailures => FigureUnit::Count,
            _ => FigureUnit::Bytes,
        }
    }

    /// Returns whether the value is a limit: JVMs write -1, or a number beyond all memory, if there is none.
    fn is_limit(self) -> bool {
        matches!(self, Self::DirectLimit | Self::ContainerLimit | Self::ContainerSwapLimit | Self::HostMemory)
    }

    fn field(self) -> Option<&'static FigureField> {
        FIELDS.get(self as usize)
    }
}

impl MemoryOverTime {
    /// Returns a figure without categories; `None` if the recording does not contain it.
    pub fn figure(&self, figure: MemoryFigure) -> Option<&FigureOverTime> {
        self.of_figure(figure).next()
    }

    /// Returns a figure in all its categories, in the order of their names.
    pub fn of_figure(&self, figure: MemoryFigure) -> impl Iterator<Item = &FigureOverTime> {
        self.figures.iter().filter(move |found| found.figure == figure)
    }

    /// Returns a description of what was not read, or `None` if everything was read.
    pub(super) fn problem(&self) -> Option<String> {
        (self.left_out > 0)
            .then(|| format!("too many events about memory: {} were skipped", group_digits(self.left_out)))
    }
}

/// Type of an event about memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemoryEventKind {
    /// Event whose figures have categories, by the field with the category and the field of the constant with its name.
    ByCategory { category: &'static str, name: &'static str, event: &'static str },
    /// Event with figures of the whole process.
    Single { event: &'static str },
}

impl MemoryEventKind {
    /// Returns the kind of the events of a type.
    pub(super) fn from_class(class: &Class) -> Option<Self> {
        let name = current_name(&class.name);
        Some(match FIELDS.iter().find(|field| field.event == name)?.event {
            NATIVE => Self::ByCategory { category: "type", name: "name", event: NATIVE },
            CODE => Self::ByCategory { category: "codeBlobType", name: "type", event: CODE },
            event => Self::Single { event },
        })
    }

    fn event(self) -> &'static str {
        match self {
            Self::ByCategory { event, .. } | Self::Single { event } => event,
        }
    }

    /// Returns the category of an event, if its figures have categories.
    fn category(self, fields: &Record<'_>, names: &mut ConstantNames) -> Option<Arc<str>> {
        let Self::ByCategory { category, name, .. } = self else { return None };
        let found = fields.constant(category).and_then(|constant| names.word(constant, name));
        Some(found.unwrap_or_else(|| "".into()))
    }
}

impl FigureField {
    /// Reads the value of the field. Structures are part of the event; constants, which any number of events could share, are not
    /// read.
    fn read(&self, event: &Record<'_>) -> Option<u64> {
        let value = match (self.record, self.field) {
            (Some(record), field) => match event.get(record)? {
                Value::Record(record) => record.integer(field)?,
                _ => return None,
            },
            (None, RESERVED_CODE) => reserved_code(event)?,
            (None, USED_CODE) => reserved_code(event)?.checked_sub(event.integer("unallocatedCapacity")?)?,
            (None, field) => event.integer(field)?,
        };
        let value = u64::try_from(value).ok()?;
        (!self.figure.is_limit() || (1..1 << 60).contains(&value)).then_some(value)
    }
}

/// Returns the reserved bytes of a segment of the code cache.
fn reserved_code(event: &Record<'_>) -> Option<i64> {
    event.integer("reservedTopAddress")?.checked_sub(event.integer("startAddress")?)
}

/// Sums over the samples of figures, of one chunk or of all chunks so far.
#[derive(Debug, Default)]
pub(super) struct MemorySums {
    figures: BTreeMap<(MemoryFigure, Option<Arc<str>>), FigureSums>,
    events: u64,
    left_out: u64,
}

/// Sums over the samples of a figure. Times are in milliseconds since the start of the recording.
#[derive(Debug, Clone, Copy)]
struct FigureSums {
    first: FigureSample,
    last: FigureSample,
    highest: FigureSample,
    samples: u64,
    times: i128,
    values: i128,
    squares: i128,
    products: i128,
}

impl MemorySums {
    /// Reads an event of a recording that starts at a time in nanoseconds since 1970.
    pub(super) fn read(
        &mut self,
        kind: MemoryEventKind,
        start_nanos: i64,
        (chunk, fields): (&Chunk<'_>, &Record<'_>),
        names: &mut ConstantNames,
    ) {
        if self.events >= MAX_EVENTS {
            self.left_out += 1;
            return;
        }
        self.events += 1;
        let Some(ticks) = fields.integer("startTime") else { return };
        let (nanos, category) = (chunk.nanos(ticks), kind.category(fields, names));
        for field in FIELDS.iter().filter(|field| field.event == kind.event()) {
            if let Some(value) = field.read(fields) {
                let sums = FigureSums::new(FigureSample { nanos, value }, start_nanos);
                self.add((field.figure, category.clone()), sums);
            }
        }
    }

    fn add(&mut self, figure: (MemoryFigure, Option<Arc<str>>), sums: FigureSums) {
        if let Some(known) = self.figures.get_mut(&figure) {
            known.add(sums);
        } else if self.figures.len() < MAX_FIGURES {
            self.figures.insert(figure, sums);
        } else {
            self.left_out = self.left_out.saturating_add(sums.samples);
        }
    }

    /// Adds the sums of a chunk.
    pub(super) fn add_all(&mut self, chunk: Self) {
        self.left_out = self.left_out.saturating_add(chunk.left_out);
        chunk.figures.into_iter().for_each(|(figure, sums)| self.add(figure, sums));
    }

    /// Returns the figures over time.
    pub(super) fn finish(self) -> MemoryOverTime {
        let figure = |((figure, category), sums): ((MemoryFigure, Option<Arc<str>>), FigureSums)| {
            let FigureSums { first, last, highest, samples, .. } = sums;
            let growth_per_hour = sums.growth_per_hour();
            FigureOverTime { figure, category, first, last, highest, samples, growth_per_hour }
        };
        MemoryOverTime { figures: self.figures.into_iter().map(figure).collect(), left_out: self.left_out }
    }
}

impl FigureSums {
    fn new(sample: FigureSample, start_nanos: i64) -> Self {
        let time = (i128::from(sample.nanos) - i128::from(start_nanos)) / 1_000_000;
        let value = i128::from(sample.value);
        Self {
            first: sample,
            last: sample,
            highest: sample,
            samples: 1,
            times: time,
            values: value,
            squares: time * time,
            products: time.saturating_mul(value),
        }
    }

    fn add(&mut self, other: Self) {
        if other.first.nanos < self.first.nanos {
            self.first = other.first;
        }
        if other.last.nanos >= self.last.nanos {
            self.last = other.last;
        }
        let is_before = other.highest.nanos < self.highest.nanos;
        if other.highest.value > self.highest.value || other.highest.value == self.highest.value && is_before
        {
            self.highest = other.highest;
        }
        self.samples = self.samples.saturating_add(other.samples);
        self.times = self.times.saturating_add(other.times);
        self.values = self.values.saturating_add(other.values);
        self.squares = self.squares.saturating_add(other.squares);
        self.products = self.products.saturating_add(other.products);
    }

    /// Returns the slope of the regression line, per hour.
    fn growth_per_hour(&self) -> Option<i64> {
        let count = i128::from(self.samples);
        let minus = |a: i128, b: i128, c: i128| count.checked_mul(a)?.checked_sub(b.checked_mul(c)?);
        let spread = minus(self.squares, self.times, self.times).filter(|spread| *spread > 0)?;
        let common = minus(self.products, self.times, self.values)?;
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
        let slope = (common as f64 / spread as f64 * HOUR_MS as f64).round() as i64;
        Some(slope)
    }
}

#[cfg(test)]
mod tests;
