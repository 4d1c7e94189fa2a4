//! JVM TI capabilities that the agent requests.

use jvmti_bindings::sys::jvmti as sys;

/// Capability of JVM TI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// Tagging of objects, and heap walks.
    TagObjects,
    /// Events for objects that the JVM itself allocates.
    VmObjectAlloc,
    /// Events for sampled allocations (JEP 331).
    SampledObjectAlloc,
    /// Names of source files of classes.
    SourceFileName,
    /// Line numbers of methods.
    LineNumbers,
    /// Events for waits at monitors.
    Monitors,
    /// Queries for owners and waiters of monitors.
    MonitorInfo,
    /// Queries for owned and contended monitors of threads. A running JVM lacks it.
    MonitorsOfThreads,
    /// Queries for the CPU time of threads.
    ThreadCpuTime,
    /// Events for pauses of garbage collections.
    CollectionEvents,
    /// Suspension of threads.
    Suspend,
    /// Events with class files at load time, including classes of the boot loader before `VMInit`.
    ClassHook,
    /// Virtual threads (JDK 21).
    VirtualThreads,
}

impl Capability {
    /// Returns whether the capability is set in `all`.
    pub(super) fn is_in(self, all: &sys::jvmtiCapabilities) -> bool {
        match self {
            Self::TagObjects => all.can_tag_objects(),
            Self::VmObjectAlloc => all.can_generate_vm_object_alloc_events(),
            Self::SampledObjectAlloc => all.can_generate_sampled_object_alloc_events(),
            Self::SourceFileName => all.can_get_source_file_name(),
            Self::LineNumbers => all.can_get_line_numbers(),
            Self::Monitors => all.can_generate_monitor_events(),
            Self::MonitorInfo => all.can_get_monitor_info(),
            Self::MonitorsOfThreads => {
                all.can_get_owned_monitor_info() && all.can_get_current_contended_monitor()
            }
            Self::ThreadCpuTime => all.can_get_thread_cpu_time(),
            Self::CollectionEvents => all.can_generate_garbage_collection_events(),
            Self::Suspend => all.can_suspend(),
            Self::ClassHook => all.can_generate_all_class_hook_events(),
            Self::VirtualThreads => all.can_support_virtual_threads(),
        }
    }

    /// Sets the capability in `to`.
    pub(super) fn set(self, to: &mut sys::jvmtiCapabilities) {
        match self {
            Self::TagObjects => to.set_can_tag_objects(true),
            Self::VmObjectAlloc => to.set_can_generate_vm_object_alloc_events(true),
            Self::SampledObjectAlloc => to.set_can_generate_sampled_object_alloc_events(true),
            Self::SourceFileName => to.set_can_get_source_file_name(true),
            Self::LineNumbers => to.set_can_get_line_numbers(true),
            Self::Monitors => to.set_can_generate_monitor_events(true),
            Self::MonitorInfo => to.set_can_get_monitor_info(true),
            Self::MonitorsOfThreads => {
                to.set_can_get_owned_monitor_info(true);
                to.set_can_get_current_contended_monitor(true);
            }
            Self::ThreadCpuTime => to.set_can_get_thread_cpu_time(true),
            Self::CollectionEvents => to.set_can_generate_garbage_collection_events(true),
            Self::Suspend => to.set_can_suspend(true),
            Self::ClassHook => to.set_can_generate_all_class_hook_events(true),
            Self::VirtualThreads => to.set_can_support_virtual_threads(true),
        }
    }
}
