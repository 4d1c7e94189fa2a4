//! What a ledger suggests to do, each by a rule that is stated with it.

use crate::jvm_layout::Part;
use crate::ledger::{Ledger, MemoryKind};
use crate::sources::Sources;

/// Minimum share of a process for advice about a kind of its memory, in percent.
pub const MUCH_PERCENT: u64 = 10;
/// Minimum share of a process from which its unexplained memory is mentioned, in percent.
pub const UNEXPLAINED_PERCENT: u64 = 3;
/// Minimum share of the code cache that is used for advice, in percent: a JVM stops to compile when it is full.
pub const FULL_PERCENT: u64 = 90;

/// Advice about the memory of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// The limit of the control group was reached.
    LimitReached {
        /// Number of processes that the kernel ended.
        kills: u64,
    },
    /// Native Memory Tracking is off, and much is unexplained.
    TrackingOff {
        /// Unexplained bytes.
        unexplained_bytes: u64,
        /// Bytes of `malloc` that are in use, if it states them.
        malloc_bytes: Option<u64>,
    },
    /// There are direct buffers, or other memory of libraries, and no dump says who holds them.
    HoldersUnknown {
        /// Bytes of libraries.
        bytes: u64,
    },
    /// Much is unexplained although the JVM counts its own memory.
    OutsideOfJvm {
        /// Unexplained bytes.
        unexplained_bytes: u64,
    },
    /// Free memory that glibc's `malloc` keeps is a large part of the process.
    MallocFree {
        /// Resident bytes.
        bytes: u64,
    },
    /// Arenas of glibc's `malloc` are a large part of the process, and most of that is unexplained: free parts of arenas.
    Arenas {
        /// Number of arenas.
        arenas: u64,
        /// Resident bytes.
        bytes: u64,
    },
    /// Direct buffers may grow to a size that nobody has set, and have half of it, or with the heap more than the control group.
    DirectLimit {
        /// Bytes now.
        bytes: u64,
        /// Limit, which is that of the heap.
        limit_bytes: u64,
    },
    /// Thread stacks are a large part of the process.
    Stacks {
        /// Number of threads.
        threads: u64,
        /// Resident bytes.
        bytes: u64,
    },
    /// The code cache is nearly full.
    CodeCache {
        /// Used bytes.
        used_bytes: u64,
        /// Size of the code cache.
        limit_bytes: u64,
    },
    /// The heap may grow beyond what the limit of the control group leaves for it.
    HeapBeyondLimit {
        /// Maximum size of the heap.
        heap_bytes: u64,
        /// Bytes of the process that are not in the heap.
        other_bytes: u64,
        /// Limit of the control group.
        limit_bytes: u64,
    },
}

/// Returns whether a part is at least this share of a whole.
pub fn is_share(part: u64, whole: u64, percent: u64) -> bool {
    whole > 0 && u128::from(part) * 100 >= u128::from(whole) * u128::from(percent)
}

/// Returns the advice for a ledger, the most important first.
pub fn advice(ledger: &Ledger, sources: &Sources) -> Vec<Advice> {
    let mut all = Vec::new();
    let process = ledger.process_bytes.unwrap_or(0);
    let is_much = |bytes: u64| is_share(bytes, process, MUCH_PERCENT);
    let resident = |kind: MemoryKind| ledger.row(kind).and_then(|row| row.resident_bytes).unwrap_or(0);
    let unexplained_bytes = ledger.unexplained_bytes.unwrap_or(0);
    let limit = sources.cgroup.as_ref().and_then(|group| group.limit_bytes);
    if let Some(kills) = sources.cgroup.as_ref().and_then(|group| group.oom_kills).filter(|kills| *kills > 0)
    {
        all.push(Advice::LimitReached { kills });
    }
    let tracks = sources.native_memory.is_some();
    if !tracks && is_much(unexplained_bytes) {
        all.push(Advice::TrackingOff {
            unexplained_bytes,
            malloc_bytes: sources.malloc.map(|malloc| malloc.used_bytes),
        });
    }
    let library = resident(MemoryKind::DirectBuffers);
    if sources.buffers.is_none() && is_much(library) {
        all.push(Advice::HoldersUnknown { bytes: library });
    }
    let free = resident(MemoryKind::MallocFree);
    if is_much(free) {
        all.push(Advice::MallocFree { bytes: free });
    }
    let is_in_arenas = is_much(ledger.arena_bytes) && is_much(unexplained_bytes);
    if is_in_arenas {
        all.push(Advice::Arenas { arenas: ledger.arenas, bytes: ledger.arena_bytes });
    }
    if tracks && !is_in_arenas && is_much(unexplained_bytes) {
        all.push(Advice::OutsideOfJvm { unexplained_bytes });
    }
    let heap_limit = sources.flags.heap_bytes;
    if let Some(limit_bytes) = heap_limit.filter(|_| sources.flags.direct_bytes.is_none())
        && is_much(library)
    {
        let is_too_much = limit.is_some_and(|limit| limit_bytes.saturating_mul(2) > limit);
        if is_too_much || is_share(library, limit_bytes, 50) {
            all.push(Advice::DirectLimit { bytes: library, limit_bytes });
        }
    }
    if let Some(row) =
        ledger.row(MemoryKind::ThreadStacks).filter(|_| is_much(resident(MemoryKind::ThreadStacks)))
    {
        all.push(Advice::Stacks {
            threads: row.count.unwrap_or(0),
            bytes: resident(MemoryKind::ThreadStacks),
        });
    }
    let code = sources
        .layout
        .code_used_bytes
        .zip(sources.flags.code_cache_bytes.or(sources.layout.bytes(Part::Code)));
    if let Some((used_bytes, limit_bytes)) =
        code.filter(|(used, limit)| is_share(*used, *limit, FULL_PERCENT))
    {
        all.push(Advice::CodeCache { used_bytes, limit_bytes });
    }
    if let Some((heap_bytes, limit_bytes)) = heap_limit.zip(limit) {
        // Pages of files can be dropped.
        let droppable = [
            MemoryKind::Heap,
            MemoryKind::MappedFiles,
            MemoryKind::Modules,
            MemoryKind::Libraries,
            MemoryKind::Archive,
        ];
        let other_bytes = droppable.iter().fold(process, |rest, kind| rest.saturating_sub(resident(*kind)));
        if process > 0 && heap_bytes.saturating_add(other_bytes) > limit_bytes {
            all.push(Advice::HeapBeyondLimit { heap_bytes, other_bytes, limit_bytes });
        }
    }
    all
}
