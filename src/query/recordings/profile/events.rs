//! Kinds of events that become a profile.

/// Events that are CPU samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SampleEvent {
    /// Threads that ran Java code.
    Execution,
    /// Threads that were in native code, where most wait.
    Native,
    /// Threads that used a certain amount of CPU time.
    CpuTime,
}

/// Events that are samples of allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AllocationEvent {
    /// Samples, weighted by the bytes that were allocated since the one before.
    Sample,
    /// First allocation in a new thread-local buffer.
    InNewTlab,
    /// Allocation outside of thread-local buffers.
    OutsideTlab,
}

/// Events that are waits of threads.
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
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Execution, Self::Native, Self::CpuTime];

    /// Returns the name of the type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Execution => "jdk.ExecutionSample",
            Self::Native => "jdk.NativeMethodSample",
            Self::CpuTime => "jdk.CPUTimeSample",
        }
    }
}

impl AllocationEvent {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Sample, Self::InNewTlab, Self::OutsideTlab];

    /// Returns the name of the type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sample => "jdk.ObjectAllocationSample",
            Self::InNewTlab => "jdk.ObjectAllocationInNewTLAB",
            Self::OutsideTlab => "jdk.ObjectAllocationOutsideTLAB",
        }
    }

    /// Returns the names of the fields that state bytes: the first one that is not 0 counts.
    pub(super) const fn weights(self) -> [&'static str; 2] {
        match self {
            Self::Sample => ["weight", "weight"],
            // The buffer is filled with allocations that have no event.
            Self::InNewTlab => ["tlabSize", "allocationSize"],
            Self::OutsideTlab => ["allocationSize", "allocationSize"],
        }
    }
}

impl MonitorEvent {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Enter, Self::Wait, Self::Park];

    /// Returns the name of the type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enter => "jdk.JavaMonitorEnter",
            Self::Wait => "jdk.JavaMonitorWait",
            Self::Park => "jdk.ThreadPark",
        }
    }

    /// Returns the name of the field with the class of the object.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Enter | Self::Wait => "monitorClass",
            Self::Park => "parkedClass",
        }
    }
}
