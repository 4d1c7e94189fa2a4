//! The ledger of a process's memory: rows that do not overlap, and with the unexplained rest add up to its resident bytes.
//!
//! First, every mapping is placed by what is certain: the addresses of the JVM's parts, files, and shapes. The rest is
//! anonymous memory, the *pool*: `malloc`, metaspace, structures of the collector. The kernel merges mappings next to each
//! other, so within the pool addresses say nothing; there, the sums of Native Memory Tracking are taken from it in the order of
//! their certainty, none larger than what is left. What no sum names is unexplained.

use serde::{Deserialize, Serialize};

use crate::cgroup::Cgroup;
use crate::effective_layout::effective_layout;
use crate::jvm_layout::{JvmLayout, Part};
use crate::mappings::{AddressRange, Mapping, Mappings, sum};
use crate::native_memory::NativeMemory;
use crate::shapes::{Shape, shapes};
use crate::sources::Sources;

/// Kind of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum MemoryKind {
    /// The Java heap.
    Heap,
    /// Memory of direct buffers, and, unless a dump tells them apart, of `Unsafe.allocateMemory`.
    DirectBuffers,
    /// Memory that libraries allocate by `Unsafe` without a direct buffer.
    Unsafe,
    /// Metaspace without the class space.
    Metaspace,
    /// Class space.
    ClassSpace,
    /// Archived classes (CDS).
    Archive,
    /// Compiled code.
    CodeCache,
    /// Stacks of threads.
    ThreadStacks,
    /// Bitmaps and tables of the garbage collector.
    Collector,
    /// Other memory that the JVM allocates.
    Malloc,
    /// Free memory that glibc's `malloc` keeps.
    MallocFree,
    /// Files that the program has mapped.
    MappedFiles,
    /// Class files of the JDK (`lib/modules`).
    Modules,
    /// Programs and native libraries.
    Libraries,
    /// Memory shared between processes, other than the heap.
    SharedMemory,
}

impl MemoryKind {
    /// All kinds, in the order of declaration.
    pub const ALL: [Self; 15] = [
        Self::Heap,
        Self::DirectBuffers,
        Self::Unsafe,
        Self::Metaspace,
        Self::ClassSpace,
        Self::Archive,
        Self::CodeCache,
        Self::ThreadStacks,
        Self::Collector,
        Self::Malloc,
        Self::MallocFree,
        Self::MappedFiles,
        Self::Modules,
        Self::Libraries,
        Self::SharedMemory,
    ];

    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Heap => "heap",
            Self::DirectBuffers => "direct_buffers",
            Self::Unsafe => "unsafe",
            Self::Metaspace => "metaspace",
            Self::ClassSpace => "class_space",
            Self::Archive => "cds",
            Self::CodeCache => "code_cache",
            Self::ThreadStacks => "thread_stacks",
            Self::Collector => "gc",
            Self::Malloc => "malloc",
            Self::MallocFree => "malloc_free",
            Self::MappedFiles => "mapped_files",
            Self::Modules => "modules",
            Self::Libraries => "libraries",
            Self::SharedMemory => "shared_memory",
        }
    }
}

/// A row of a ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerRow {
    /// Kind of memory.
    pub kind: MemoryKind,
    /// Bytes that the source promises to the kind; `None` if no source states them.
    pub committed_bytes: Option<u64>,
    /// Bytes in memory now (PSS); `None` if no source states them.
    pub resident_bytes: Option<u64>,
    /// Limit of the kind.
    pub limit_bytes: Option<u64>,
    /// Sources of the row's numbers.
    pub source: &'static str,
    /// Holder of most of it: a field, or a file.
    pub holder: Option<String>,
    /// Number of objects of the kind, such as threads and files.
    pub count: Option<u64>,
}

/// Where the memory of a process is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Rows, largest resident first. None has neither resident nor committed bytes.
    pub rows: Vec<LedgerRow>,
    /// Resident bytes of the process (PSS); `None` without mappings.
    pub process_bytes: Option<u64>,
    /// Resident bytes that no row has; `None` without mappings.
    pub unexplained_bytes: Option<u64>,
    /// Resident bytes of the process in mappings of files and shared memory, which control groups count as page cache.
    pub file_bytes: u64,
    /// Resident bytes of arenas of glibc's `malloc`, of all rows that `malloc` is part of.
    pub arena_bytes: u64,
    /// Number of these arenas.
    pub arenas: u64,
}

/// Resident bytes that are certain, and what is left.
#[derive(Debug, Default)]
struct PlacedMemory {
    resident: [u64; MemoryKind::ALL.len()],
    /// Sizes of mappings, for kinds of which no other source states committed bytes.
    mapped: [u64; MemoryKind::ALL.len()],
    pool: u64,
    /// Mappings in the pool that the JVM labels as memory of its collector: size, resident bytes.
    labelled: Vec<(u64, u64)>,
    stacks: u64,
    arenas: u64,
    arena_bytes: u64,
    /// Resident bytes of arenas and of the heap of `brk`.
    chunk_bytes: u64,
    /// Bytes of these that are not resident. They are free, as memory in use has been written to.
    absent_bytes: u64,
    /// Mapped file with most resident bytes, and the number of files.
    largest_file: Option<(u64, String)>,
    files: u64,
}

/// Size of a gap-free anonymous mapping after a library's data that is still the library's: its zeroed data (.bss).
const MAX_ZEROED: u64 = 2 << 20;

impl Ledger {
    /// Computes the ledger.
    pub fn new(sources: &Sources) -> Self {
        let layout = effective_layout(sources);
        let placed = sources.mappings.as_ref().map(|mappings| PlacedMemory::new(mappings, sources, &layout));
        let mut ledger = Self {
            process_bytes: sources.mappings.as_ref().map(Mappings::proportional_bytes),
            ..Self::default()
        };
        let mut placed = match placed {
            Some(placed) => placed,
            None => {
                ledger.rows = rows(sources, &layout, None);
                return ledger;
            }
        };
        placed.share_pool(sources, &layout);
        ledger.unexplained_bytes = Some(placed.pool);
        (ledger.arenas, ledger.arena_bytes) = (placed.arenas, placed.arena_bytes);
        let files = sources.mappings.iter().flat_map(|mappings| &mappings.all);
        let files = files.filter(|mapping| mapping.file().is_some() || mapping.access.is_shared);
        ledger.file_bytes = sum(files.map(|mapping| mapping.proportional_bytes));
        ledger.rows = rows(sources, &layout, Some(&placed));
        ledger
    }

    /// Returns the anonymous memory of a control group that is not of the process: that of other processes.
    pub fn other_processes_bytes(&self, group: &Cgroup) -> Option<u64> {
        let own = self.process_bytes?.saturating_sub(self.file_bytes);
        Some(group.anon_bytes?.saturating_sub(own))
    }

    /// Returns the page cache of a control group that the process has not mapped.
    pub fn other_cache_bytes(&self, group: &Cgroup) -> Option<u64> {
        Some(group.file_bytes?.saturating_sub(self.file_bytes))
    }

    /// Removes the names of files: they may tell what a program works on.
    pub fn hide_files(&mut self) {
        for row in
            self.rows.iter_mut().filter(|row| row.holder.as_deref().is_some_and(|name| name.contains('/')))
        {
            row.holder = None;
        }
    }

    /// Returns the row of a kind.
    pub fn row(&self, kind: MemoryKind) -> Option<&LedgerRow> {
        self.rows.iter().find(|row| row.kind == kind)
    }
}

/// Returns the index of a kind in arrays by kind.
fn kind_index(kind: MemoryKind) -> usize {
    MemoryKind::ALL.iter().position(|other| *other == kind).unwrap_or(0)
}

/// Returns the kind of a part of a JVM.
fn kind_of_part(part: Part) -> MemoryKind {
    match part {
        Part::Heap => MemoryKind::Heap,
        Part::Archive => MemoryKind::Archive,
        Part::ClassSpace => MemoryKind::ClassSpace,
        Part::Code => MemoryKind::CodeCache,
        Part::Collector => MemoryKind::Collector,
    }
}

impl PlacedMemory {
    fn new(mappings: &Mappings, sources: &Sources, layout: &JvmLayout) -> Self {
        let shapes = shapes(mappings, &sources.stack_pointers, sources.flags.stack_bytes);
        let mut placed = Self::default();
        let mut files: Vec<(&str, u64)> = Vec::new();
        for (index, mapping) in mappings.all.iter().enumerate() {
            let (rest, is_part) = placed.place_parts(mapping, layout, &sources.clipped);
            let shape = shapes.get(index).copied().unwrap_or(Shape::Other);
            match own_kind(mappings, index, shape) {
                Some(kind) => {
                    placed.add(kind, rest);
                    // Ranges of parts have been counted by their parts.
                    if let Some(bytes) = placed.mapped.get_mut(kind_index(kind)).filter(|_| !is_part) {
                        *bytes = bytes.saturating_add(mapping.range.bytes());
                    }
                    if kind == MemoryKind::ThreadStacks {
                        placed.stacks += 1;
                    }
                    if kind == MemoryKind::MappedFiles {
                        files.extend(mapping.file().map(|file| (file, rest)));
                    }
                }
                None => {
                    placed.pool = placed.pool.saturating_add(rest);
                    let is_first_arena = mapping.path.as_deref() == Some("[heap]");
                    if shape == Shape::Arena || is_first_arena {
                        let absent = mapping.range.bytes().saturating_sub(mapping.resident_bytes);
                        placed.absent_bytes = placed.absent_bytes.saturating_add(absent);
                        placed.chunk_bytes = placed.chunk_bytes.saturating_add(rest);
                    }
                    if shape == Shape::Arena {
                        placed.arenas += 1;
                        placed.arena_bytes = placed.arena_bytes.saturating_add(rest);
                    }
                    let labels = &layout.collector_ranges;
                    // The JVM lists them in order of their addresses.
                    let label = labels.partition_point(|range| range.end <= mapping.range.start);
                    let label = labels.get(label).and_then(|range| range.intersection(mapping.range));
                    let is_labelled = label.is_some();
                    if is_labelled {
                        placed.labelled.push((mapping.range.bytes(), rest));
                    }
                }
            }
        }
        files.sort_unstable();
        let by_file: Vec<(u64, &str)> = files
            .chunk_by(|(a, _), (b, _)| a == b)
            .map(|same| {
                (sum(same.iter().map(|(_, bytes)| *bytes)), same.first().map_or("", |(file, _)| *file))
            })
            .collect();
        placed.files = by_file.len() as u64;
        placed.largest_file = by_file.iter().max().map(|(bytes, file)| (*bytes, (*file).to_owned()));
        placed
    }

    fn add(&mut self, kind: MemoryKind, bytes: u64) {
        if let Some(sum) = self.resident.get_mut(kind_index(kind)) {
            *sum = sum.saturating_add(bytes);
        }
    }

    /// Places the parts of the JVM within a mapping. Returns the resident bytes that are left, and whether the mapping belongs to
    /// a part as a whole.
    fn place_parts(
        &mut self,
        mapping: &Mapping,
        layout: &JvmLayout,
        counted: &[(AddressRange, u64)],
    ) -> (u64, bool) {
        let (mut rest, mut is_whole) = (mapping.proportional_bytes, false);
        for (range, part) in &layout.ranges {
            let Some(common) = range.intersection(mapping.range) else { continue };
            is_whole |= common == mapping.range;
            let bytes = if common == mapping.range {
                rest
            } else {
                resident_within(mapping, common, counted).min(rest)
            };
            self.add(kind_of_part(*part), bytes);
            rest = rest.saturating_sub(bytes);
        }
        (rest, is_whole)
    }

    /// Takes from the pool what the JVM states, the most certain first.
    fn share_pool(&mut self, sources: &Sources, layout: &JvmLayout) {
        let Some(nmt) = &sources.native_memory else {
            self.share_without_nmt(sources);
            return;
        };
        // Chunks of metaspace are committed when they are used.
        let metaspace = nmt.metadata_bytes().or(class_metadata(sources));
        self.take(MemoryKind::Metaspace, metaspace.unwrap_or(0));
        let (direct, other) = split_library(nmt.library_malloc_bytes(), sources);
        let queues = nmt.category("GC").map_or(0, |row| row.malloc_bytes);
        let own = nmt.malloc_bytes.saturating_add(nmt.malloc_overhead_bytes());
        let own = own.saturating_sub(nmt.library_malloc_bytes()).saturating_sub(queues);
        let (own, queues) = ((MemoryKind::Malloc, own), (MemoryKind::Malloc, queues));
        // The memory of buffers is zeroed, and small allocations are written at once. Other memory of libraries, and queues of
        // the collector, may never be touched.
        let order = match sources.buffers {
            Some(_) => [(MemoryKind::DirectBuffers, direct), own, queues, (MemoryKind::Unsafe, other)],
            None => [own, (MemoryKind::DirectBuffers, direct), queues, (MemoryKind::Unsafe, other)],
        };
        order.iter().for_each(|(kind, bytes)| self.take(*kind, *bytes));
        let placed = layout.bytes(Part::Collector).unwrap_or(0);
        let collector = nmt.mmap_committed_bytes("GC").unwrap_or(0).saturating_sub(placed);
        let labelled = self.labelled_bytes(collector);
        self.take(MemoryKind::Collector, labelled);
        self.take_free(sources);
    }

    /// Returns the resident bytes of labelled mappings that can be memory of the collector alone: together they are not larger
    /// than what it has committed. In larger ones, the kernel has merged other memory, and nothing says how much.
    fn labelled_bytes(&mut self, committed: u64) -> u64 {
        self.labelled.sort_unstable();
        let mut sizes: u64 = 0;
        let alone = self.labelled.iter().take_while(|(size, _)| {
            sizes = sizes.saturating_add(*size);
            sizes <= committed
        });
        sum(alone.map(|(_, resident)| *resident))
    }

    fn share_without_nmt(&mut self, sources: &Sources) {
        self.take(MemoryKind::Metaspace, class_metadata(sources).unwrap_or(0));
        if let Some(buffers) = &sources.buffers {
            self.take(MemoryKind::DirectBuffers, buffers.direct_bytes);
        }
        self.take_free(sources);
    }

    /// Moves free memory of `malloc` from the pool, as far as it is resident.
    fn take_free(&mut self, sources: &Sources) {
        let free = match sources.malloc {
            Some(malloc) => malloc.free_bytes.saturating_sub(self.absent_bytes),
            None => free_bytes(sources).unwrap_or(0).min(self.chunk_bytes),
        };
        self.take(MemoryKind::MallocFree, free);
    }

    /// Moves bytes from the pool to a kind.
    fn take(&mut self, kind: MemoryKind, bytes: u64) {
        let bytes = bytes.min(self.pool);
        self.pool -= bytes;
        self.add(kind, bytes);
    }
}

/// Returns the committed bytes of the metaspace without the class space, from `VM.info` or `GC.heap_info`.
fn class_metadata(sources: &Sources) -> Option<u64> {
    let layout = &sources.layout;
    let class_space = layout.class_space_committed_bytes.unwrap_or(0);
    let difference = || Some(layout.metaspace_committed_bytes?.saturating_sub(class_space));
    layout.metadata_committed_bytes.or_else(difference)
}

/// Returns the free bytes of `malloc`: as it states them, or those of the JVM's arenas that were freed.
fn free_bytes(sources: &Sources) -> Option<u64> {
    let stated = sources.malloc.map(|malloc| malloc.free_bytes);
    stated.or_else(|| sources.native_memory.as_ref().map(NativeMemory::freed_bytes))
}

/// Splits the memory that the JDK's libraries allocate into that of direct buffers and the rest, if a dump has the buffers.
fn split_library(library: u64, sources: &Sources) -> (u64, u64) {
    let Some(buffers) = &sources.buffers else { return (library, 0) };
    let direct = buffers.direct_bytes.max(buffers.reserved_bytes.unwrap_or(0)).min(library);
    (direct, library - direct)
}

/// Returns the resident bytes of a mapping in a range: those that were counted, or a share by length.
fn resident_within(mapping: &Mapping, range: AddressRange, counted: &[(AddressRange, u64)]) -> u64 {
    let exact = counted.iter().find(|(of, _)| *of == range).map(|(_, bytes)| *bytes);
    let share = |part: u64, of: u64| {
        let bytes = u128::from(mapping.proportional_bytes) * u128::from(part) / u128::from(of.max(1));
        u64::try_from(bytes).unwrap_or(u64::MAX)
    };
    match exact {
        Some(bytes) => share(bytes.min(mapping.resident_bytes), mapping.resident_bytes),
        None => share(range.bytes(), mapping.range.bytes()),
    }
}

/// Returns the kind of a mapping by its file and shape; `None` if it belongs to the pool.
fn own_kind(mappings: &Mappings, index: usize, shape: Shape) -> Option<MemoryKind> {
    let mapping = mappings.all.get(index)?;
    if shape == Shape::Stack {
        return Some(MemoryKind::ThreadStacks);
    }
    if mapping.path.is_none() && mapping.access.is_executable {
        // Nothing else in a JVM makes code at run time.
        return Some(MemoryKind::CodeCache);
    }
    let path = mapping.path.as_deref().unwrap_or_default();
    if path.starts_with("/memfd:java_heap") || path.contains("/java_heap.") {
        // Collectors with several views of the heap map it as a file.
        return Some(MemoryKind::Heap);
    }
    if path.starts_with("/memfd:")
        || path.starts_with("/SYSV")
        || path.starts_with("/dev/shm/")
        || path.starts_with("/dev/zero")
        || path.starts_with("anon_inode:")
        || path.starts_with("socket:")
        || path.starts_with("[anon_shmem")
        || (mapping.path.is_none() && mapping.access.is_shared)
    {
        return Some(MemoryKind::SharedMemory);
    }
    match mapping.file() {
        Some(file) if file.ends_with(".jsa") => Some(MemoryKind::Archive),
        Some(file) if file.ends_with("/lib/modules") => Some(MemoryKind::Modules),
        Some(_) if mappings.is_program(index) => Some(MemoryKind::Libraries),
        Some(_) => Some(MemoryKind::MappedFiles),
        None if mapping.is_anonymous() => is_zeroed_data(mappings, index).then_some(MemoryKind::Libraries),
        None => Some(MemoryKind::Libraries),
    }
}

/// Returns whether an anonymous mapping is the zeroed data of the library mapped directly before it.
fn is_zeroed_data(mappings: &Mappings, index: usize) -> bool {
    let is_small = mappings.all.get(index).is_some_and(|mapping| mapping.range.bytes() <= MAX_ZEROED);
    is_small
        && mappings.before(index).is_some_and(|before| before.access.is_writable)
        && index.checked_sub(1).is_some_and(|before| mappings.is_program(before))
}

/// Returns the rows. `placed` has the resident bytes, if they are known.
fn rows(sources: &Sources, layout: &JvmLayout, placed: Option<&PlacedMemory>) -> Vec<LedgerRow> {
    let mut rows: Vec<LedgerRow> = MemoryKind::ALL
        .iter()
        .map(|kind| row(*kind, sources, layout, placed))
        .filter(|row| {
            let is_promised = row.committed_bytes.unwrap_or(0) > 0 && row.kind != MemoryKind::MallocFree;
            is_promised || row.resident_bytes.unwrap_or(0) > 0
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.resident_bytes, row.committed_bytes)));
    rows
}

fn row(kind: MemoryKind, sources: &Sources, layout: &JvmLayout, placed: Option<&PlacedMemory>) -> LedgerRow {
    let resident_bytes = placed.and_then(|placed| placed.resident.get(kind_index(kind)).copied());
    let mapped =
        placed.and_then(|placed| placed.mapped.get(kind_index(kind)).copied()).filter(|bytes| *bytes > 0);
    let flags = &sources.flags;
    let nmt = sources.native_memory.as_ref();
    let committed = |name: &str| nmt.and_then(|nmt| nmt.mmap_committed_bytes(name));
    let buffers = sources.buffers.as_ref();
    let library = nmt.map(|nmt| split_library(nmt.library_malloc_bytes(), sources));
    let has_mappings = sources.mappings.is_some();
    let source =
        |with_nmt: &'static str, without: &'static str| if nmt.is_some() { with_nmt } else { without };
    let (committed_bytes, limit_bytes, source) = match kind {
        MemoryKind::Heap => (
            committed("Java Heap").or(layout.heap_committed_bytes),
            flags.heap_bytes,
            source("smaps, NMT", "smaps, GC.heap_info"),
        ),
        MemoryKind::DirectBuffers => (
            buffers.map(|buffers| buffers.direct_bytes).or(library.map(|(direct, _)| direct)),
            flags.direct_bytes.or(buffers.and_then(|buffers| buffers.limit_bytes)).or(flags.heap_bytes),
            match (buffers.is_some(), nmt.is_some()) {
                (true, true) => "dump, NMT",
                (true, false) => "dump",
                _ => "NMT",
            },
        ),
        MemoryKind::Unsafe => (library.map(|(_, other)| other), None, "NMT, dump"),
        MemoryKind::Metaspace => (
            nmt.and_then(NativeMemory::metadata_bytes).or_else(|| class_metadata(sources)),
            flags.metaspace_bytes,
            source("NMT", "VM.info"),
        ),
        MemoryKind::ClassSpace => (
            nmt.and_then(NativeMemory::class_space_bytes).or(layout.class_space_committed_bytes),
            flags.class_space_bytes,
            source("smaps, NMT", "smaps, VM.info"),
        ),
        MemoryKind::Archive => (committed("Shared class space").or(mapped), None, "smaps"),
        MemoryKind::CodeCache => (
            committed("Code").or(layout.code_used_bytes),
            flags.code_cache_bytes,
            source("smaps, NMT", "smaps, VM.info"),
        ),
        MemoryKind::ThreadStacks => {
            let stacks =
                nmt.and_then(|nmt| nmt.category("Thread")).map(|threads| threads.stack_committed_bytes);
            (stacks.filter(|bytes| *bytes > 0).or(mapped), None, "smaps")
        }
        MemoryKind::Collector => {
            (committed("GC").or(layout.bytes(Part::Collector)), None, source("smaps, NMT", "smaps, VM.info"))
        }
        MemoryKind::Malloc => {
            (nmt.map(|nmt| nmt.malloc_bytes.saturating_sub(nmt.library_malloc_bytes())), None, "NMT")
        }
        MemoryKind::MallocFree => {
            let has_info = sources.malloc.is_some();
            (free_bytes(sources), None, if has_info { "System.native_heap_info" } else { "NMT peak" })
        }
        MemoryKind::MappedFiles if !has_mappings => {
            (buffers.map(|buffers| buffers.mapped_bytes), None, "dump")
        }
        MemoryKind::MappedFiles | MemoryKind::Modules | MemoryKind::Libraries | MemoryKind::SharedMemory => {
            (mapped, None, "smaps")
        }
    };
    let largest = placed.and_then(|placed| placed.largest_file.as_ref()).map(|(_, file)| file.clone());
    let (holder, count) = match kind {
        MemoryKind::DirectBuffers => (buffers.and_then(|buffers| buffers.direct_holder.clone()), None),
        MemoryKind::Malloc => (nmt.and_then(NativeMemory::largest_malloc).map(str::to_owned), None),
        MemoryKind::MappedFiles => (
            buffers.and_then(|buffers| buffers.mapped_holder.clone()).or(largest),
            placed.map(|placed| placed.files),
        ),
        MemoryKind::Metaspace => {
            (None, nmt.and_then(|nmt| nmt.category("Class")).map(|row| row.items).filter(|items| *items > 0))
        }
        MemoryKind::ThreadStacks => {
            let counted = nmt.and_then(|nmt| nmt.category("Thread")).map(|row| row.items);
            (None, sources.threads.or(counted).or(placed.map(|placed| placed.stacks)))
        }
        _ => (None, None),
    };
    LedgerRow { kind, committed_bytes, resident_bytes, limit_bytes, source, holder, count }
}
