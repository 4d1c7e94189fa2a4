//! Types of Flight Recorder events that are read into a profile: those of the JDK, and those that other profilers write in its
//! format (async-profiler's `profiler.*`, and of Datadog's `datadog.*` the samples of running threads).

use std::borrow::Cow;

/// Type of events that are CPU samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SampleEvent {
    /// Samples of threads that ran Java code.
    Execution,
    /// Samples of threads in native code, most of which are waiting.
    Native,
    /// Samples taken each time a thread has used a certain amount of CPU time.
    CpuTime,
    /// Samples of threads that used CPU time, by Datadog's profiler.
    Datadog,
    /// Samples of all threads in real time, running or not, by async-profiler 4.
    WallClock,
}

/// Type of events that are samples of allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AllocationEvent {
    /// Sampled allocation, weighted by the bytes that were allocated since the previous sample.
    Sample,
    /// First allocation in a new thread-local allocation buffer (TLAB).
    InNewTlab,
    /// Allocation outside of thread-local allocation buffers.
    OutsideTlab,
    /// Sampled object that was alive at the end of the recording, by async-profiler.
    LiveObject,
    /// Allocation of native memory, by async-profiler.
    Malloc,
}

/// Events from which allocation sites are counted. The first two variants count the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SiteEvent {
    /// Events of type [`AllocationEvent::Sample`].
    Samples,
    /// Events of types [`AllocationEvent::InNewTlab`] and [`AllocationEvent::OutsideTlab`].
    Buffers,
    /// Events of type [`AllocationEvent::LiveObject`].
    LiveObjects,
    /// Events of type [`AllocationEvent::Malloc`].
    NativeMemory,
    /// Events of type [`AllocationEvent::Malloc`] whose memory was not freed, by `profiler.Free`.
    UnfreedMemory,
}

/// Type of events that are waits of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MonitorEvent {
    /// A thread waited to enter a monitor.
    Enter,
    /// A thread waited to be notified.
    Wait,
    /// A thread was parked.
    Park,
}

impl SampleEvent {
    /// All types of CPU samples.
    pub const ALL: [Self; 5] = [Self::Execution, Self::Native, Self::CpuTime, Self::Datadog, Self::WallClock];
    /// Types that are counted by default: the first one that a recording contains.
    pub const PREFERRED: [Self; 4] = [Self::CpuTime, Self::Execution, Self::Datadog, Self::WallClock];

    /// Returns the name of the event type, such as `jdk.ExecutionSample`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Execution => "jdk.ExecutionSample",
            Self::Native => "jdk.NativeMethodSample",
            Self::CpuTime => "jdk.CPUTimeSample",
            Self::Datadog => "datadog.ExecutionSample",
            Self::WallClock => "profiler.WallClockSample",
        }
    }
}

impl SiteEvent {
    /// Variants that are counted by default, the preferred one first.
    pub const PREFERRED: [Self; 4] = [Self::Samples, Self::Buffers, Self::LiveObjects, Self::NativeMemory];

    /// Returns the names of the event types.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Samples => "jdk.ObjectAllocationSample",
            Self::Buffers => "jdk.ObjectAllocationInNewTLAB, jdk.ObjectAllocationOutsideTLAB",
            Self::LiveObjects => "profiler.LiveObject",
            Self::NativeMemory => "profiler.Malloc",
            Self::UnfreedMemory => "profiler.Malloc, profiler.Free",
        }
    }

    /// Returns whether the sites are of native memory, which has no class.
    pub fn is_native(self) -> bool {
        matches!(self, Self::NativeMemory | Self::UnfreedMemory)
    }

    /// Returns the types of the events that allocate.
    pub(super) fn events(self) -> &'static [AllocationEvent] {
        match self {
            Self::Samples => &[AllocationEvent::Sample],
            Self::Buffers => &[AllocationEvent::InNewTlab, AllocationEvent::OutsideTlab],
            Self::LiveObjects => &[AllocationEvent::LiveObject],
            Self::NativeMemory | Self::UnfreedMemory => &[AllocationEvent::Malloc],
        }
    }
}

impl AllocationEvent {
    /// All types of allocation events.
    pub const ALL: [Self; 5] =
        [Self::Sample, Self::InNewTlab, Self::OutsideTlab, Self::LiveObject, Self::Malloc];

    /// Returns the name of the event type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sample => "jdk.ObjectAllocationSample",
            Self::InNewTlab => "jdk.ObjectAllocationInNewTLAB",
            Self::OutsideTlab => "jdk.ObjectAllocationOutsideTLAB",
            Self::LiveObject => "profiler.LiveObject",
            Self::Malloc => "profiler.Malloc",
        }
    }

    /// Returns the names of the fields that contain bytes: the first field that is not 0 counts.
    pub(super) const fn weights(self) -> [&'static str; 2] {
        match self {
            Self::Sample => ["weight", "weight"],
            // The rest of the buffer is filled by allocations without an event.
            Self::InNewTlab => ["tlabSize", "allocationSize"],
            Self::OutsideTlab | Self::LiveObject => ["allocationSize", "allocationSize"],
            Self::Malloc => ["size", "size"],
        }
    }
}

impl MonitorEvent {
    /// All types of waits.
    pub const ALL: [Self; 3] = [Self::Enter, Self::Wait, Self::Park];

    /// Returns the name of the event type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enter => "jdk.JavaMonitorEnter",
            Self::Wait => "jdk.JavaMonitorWait",
            Self::Park => "jdk.ThreadPark",
        }
    }

    /// Returns the name of the field with the class of the monitor or blocker.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Enter | Self::Wait => "monitorClass",
            Self::Park => "parkedClass",
        }
    }
}

/// States in which async-profiler writes samples (`ThreadState` in its `flightRecorder.cpp`). Its CPU engine does not look at
/// the thread's state, its wall-clock engine tells running threads from sleeping ones. Names are without their prefix.
pub(super) mod state {
    /// Sample of the CPU engine.
    pub(in super::super) const DEFAULT: &str = "DEFAULT";
    /// Thread that was running.
    pub(in super::super) const RUNNABLE: &str = "RUNNABLE";
    /// Thread that was not running.
    pub(in super::super) const SLEEPING: &str = "SLEEPING";
}

/// Returns the name of a thread's state without its prefix, which Datadog's profiler does not write.
pub fn state_word(name: &str) -> &str {
    name.strip_prefix("STATE_").unwrap_or(name)
}

/// Returns the name that JDK 11 and later give an event type: JDK 9 and 10 had another prefix.
pub(super) fn current_name(name: &str) -> Cow<'_, str> {
    match name.strip_prefix("com.oracle.jdk.") {
        Some(name) => format!("jdk.{name}").into(),
        None => name.into(),
    }
}
