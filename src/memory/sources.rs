//! Everything that a ledger is computed from.

use serde::{Deserialize, Serialize};

use crate::cgroup::Cgroup;
use crate::flags::MemoryFlags;
use crate::jvm_layout::{JvmLayout, MAX_LABELLED};
use crate::malloc_info::MallocInfo;
use crate::mappings::{AddressRange, Mappings};
use crate::native_memory::NativeMemory;

/// What is known about the memory of a process. Every part may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    /// Mappings, from `smaps`.
    pub mappings: Option<Mappings>,
    /// Addresses in the stacks of threads, sorted.
    pub stack_pointers: Vec<u64>,
    /// Number of threads.
    pub threads: Option<u64>,
    /// Most resident bytes so far (`VmHWM`), each page counted for each mapping.
    pub peak_bytes: Option<u64>,
    /// Resident bytes of ranges of which only a part is in a mapping.
    pub clipped: Vec<(AddressRange, u64)>,
    /// Account of Native Memory Tracking; `None` if it is off.
    pub native_memory: Option<NativeMemory>,
    /// Account of glibc's `malloc`; `None` before JDK 21.
    pub malloc: Option<MallocInfo>,
    /// Addresses of the parts of the JVM.
    pub layout: JvmLayout,
    /// Limits of the JVM.
    pub flags: MemoryFlags,
    /// Control group.
    pub cgroup: Option<Cgroup>,
    /// Buffers outside of the heap, from a dump.
    pub buffers: Option<Buffers>,
}

impl Sources {
    /// Makes sources that were read from a file what a ledger relies on, whoever wrote the file: sorted, and bounded.
    ///
    /// # Errors
    /// A description of what no process has.
    pub fn check(&mut self) -> Result<(), &'static str> {
        self.mappings.iter_mut().for_each(Mappings::sort);
        self.stack_pointers.sort_unstable();
        let ranges = std::mem::take(&mut self.layout.ranges);
        ranges.iter().for_each(|(range, part)| self.layout.add(*range, *part));
        // Each range of the JVM shares at most two mappings with other memory.
        if self.clipped.len() > 2 * self.layout.ranges.len() {
            return Err("it has more parts of mappings than ranges");
        }
        if self.layout.collector_ranges.len() > MAX_LABELLED {
            return Err("it has too many ranges of the collector");
        }
        Ok(())
    }
}

/// Buffers outside of the heap, from a dump.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffers {
    /// Bytes of direct buffers.
    pub direct_bytes: u64,
    /// Bytes that `java.nio.Bits` counts as reserved, if the dump contains them.
    pub reserved_bytes: Option<u64>,
    /// Limit of direct buffers, if the dump contains it.
    pub limit_bytes: Option<u64>,
    /// Bytes of mapped files.
    pub mapped_bytes: u64,
    /// Field that leads to most bytes of direct buffers.
    pub direct_holder: Option<String>,
    /// Field that leads to most bytes of mapped files.
    pub mapped_holder: Option<String>,
}
