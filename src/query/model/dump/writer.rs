//! The program that wrote a dump, found from what it wrote: no record names it.

use hprof_index::model::summary::Summary;
use hprof_values::RootKind;

/// Program that wrote a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// HotSpot itself: `jcmd`, `jmap`, `-XX:+HeapDumpOnOutOfMemoryError`.
    HotSpot,
    /// HotSpot's serviceability agent: `jhsdb jmap`, also of core files.
    ServiceabilityAgent,
    /// The HPROF agent of JDK 1.2 to 1.4.
    Jvmpi,
    /// Android's runtime.
    Android,
    /// A GraalVM native image.
    NativeImage,
    /// The HPROF agent of JDK 5 to 8, or that of hprof-cli.
    Agent,
    /// hprof-cli, which made it from a text report.
    TextReport,
    /// Another program, or none that is known.
    Unknown,
}

/// First serial number of a stack trace of the HPROF agent since JDK 5 (`trace_serial_number_start` in its `hprof_init.c`).
const FIRST_TRACE_OF_AGENT: u64 = 300_000;
/// Serial number of the trace without frames in dumps of HotSpot (`STACK_TRACE_ID` in its `heapDumper.cpp`).
const NO_FRAMES: u32 = 1;
/// Start of the names of classes that only native images contain.
const NATIVE_IMAGE: &str = "com.oracle.svm.core.";

impl Writer {
    /// Returns the name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HotSpot => "hotspot",
            Self::ServiceabilityAgent => "serviceability_agent",
            Self::Jvmpi => "jvmpi",
            Self::Android => "android",
            Self::NativeImage => "native_image",
            Self::Agent => "agent",
            Self::TextReport => "text",
            Self::Unknown => "unknown",
        }
    }

    /// Finds the writer of a dump.
    pub fn from_summary(summary: &Summary) -> Self {
        let records = summary.record_counts();
        let traces = summary.traces();
        // Roots of threads in a dump of the serviceability agent all name the trace without frames, although there are others;
        // HotSpot gives each its own.
        let threads = || summary.roots().iter().filter(|row| row.kind == RootKind::ThreadObject.tag());
        let share_a_trace = threads().count() > 1 && threads().all(|row| row.frame.get() == NO_FRAMES);
        let is_of_agent = traces.iter().any(|row| row.id.get() >= FIRST_TRACE_OF_AGENT);
        let is_recorded = records.start_threads + records.alloc_sites + records.cpu_samples > 0
            || records.heap_summaries + records.control_settings > 0;
        let has_roots = summary.roots().iter().any(|row| row.kind == RootKind::StickyClass.tag());
        match summary.version().name() {
            _ if summary.is_from_text() => Self::TextReport,
            "JAVA PROFILE 1.0.3" => Self::Android,
            _ if summary.heaps().next().is_some() => Self::Android,
            _ if is_of_agent => Self::Agent,
            "JAVA PROFILE 1.0" => Self::Jvmpi,
            "JAVA PROFILE 1.0.1" if is_recorded => Self::Jvmpi,
            _ if is_recorded => Self::Agent,
            _ if summary
                .classes()
                .iter()
                .any(|class| summary.class_name(class).starts_with(NATIVE_IMAGE)) =>
            {
                Self::NativeImage
            }
            _ if share_a_trace && traces.len() > 1 => Self::ServiceabilityAgent,
            _ if !traces.is_empty() || has_roots => Self::HotSpot,
            _ => Self::Unknown,
        }
    }
}
