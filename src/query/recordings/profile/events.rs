//! Types of Flight Recorder events that are read into a profile.

/// Type of events that are CPU samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SampleEvent {
    /// Samples of threads that ran Java code.
    Execution,
    /// Samples of threads in native code, most of which are waiting.
    Native,
    /// Samples taken each time a thread has used a certain amount of CPU time.
    CpuTime,
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
}

/// Events from which allocation sites are counted. Both variants count the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SiteEvent {
    /// Events of type [`AllocationEvent::Sample`].
    Samples,
    /// Events of types [`AllocationEvent::InNewTlab`] and [`AllocationEvent::OutsideTlab`].
    Buffers,
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
    pub const ALL: [Self; 3] = [Self::Execution, Self::Native, Self::CpuTime];
    /// Types that are counted by default: the first one that a recording contains.
    pub const PREFERRED: [Self; 2] = [Self::CpuTime, Self::Execution];

    /// Returns the name of the event type, such as `jdk.ExecutionSample`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Execution => "jdk.ExecutionSample",
            Self::Native => "jdk.NativeMethodSample",
            Self::CpuTime => "jdk.CPUTimeSample",
        }
    }
}

impl SiteEvent {
    /// All variants, the preferred one first.
    pub const ALL: [Self; 2] = [Self::Samples, Self::Buffers];

    /// Returns the names of the event types.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Samples => "jdk.ObjectAllocationSample",
            Self::Buffers => "jdk.ObjectAllocationInNewTLAB, jdk.ObjectAllocationOutsideTLAB",
        }
    }

    /// Returns the types of the events.
    pub(super) const fn events(self) -> &'static [AllocationEvent] {
        match self {
            Self::Samples => &[AllocationEvent::Sample],
            Self::Buffers => &[AllocationEvent::InNewTlab, AllocationEvent::OutsideTlab],
        }
    }
}

impl AllocationEvent {
    /// All types of allocation events.
    pub const ALL: [Self; 3] = [Self::Sample, Self::InNewTlab, Self::OutsideTlab];

    /// Returns the name of the event type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sample => "jdk.ObjectAllocationSample",
            Self::InNewTlab => "jdk.ObjectAllocationInNewTLAB",
            Self::OutsideTlab => "jdk.ObjectAllocationOutsideTLAB",
        }
    }

    /// Returns the names of the fields that contain bytes: the first field that is not 0 counts.
    pub(super) const fn weights(self) -> [&'static str; 2] {
        match self {
            Self::Sample => ["weight", "weight"],
            // The rest of the buffer is filled by allocations without an event.
            Self::InNewTlab => ["tlabSize", "allocationSize"],
            Self::OutsideTlab => ["allocationSize", "allocationSize"],
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
