//! What a heap dump says about memory outside of the heap.

use hprof_memory::sources::Buffers;
use hprof_query::leaks::off_heap::{self, BufferOwner};
use hprof_query::threads::{ThreadQuery, Threads};

use crate::cli::prelude::*;

/// Buffers of a dump, and facts about its heap.
pub(super) struct FoundBuffers {
    pub(super) buffers: Buffers,
    /// Shallow size of the reachable objects.
    pub(super) heap_bytes: u64,
    pub(super) threads: u64,
    pub(super) is_damaged: bool,
}

/// Finds the direct and mapped buffers of a dump, and who holds them.
pub(super) fn read(cx: &RunContext, input: &Input) -> anyhow::Result<FoundBuffers> {
    let (session, (found, heap_bytes, threads)) = Session::ask(cx, input, |dump| {
        let threads = Threads::new(dump).find(&ThreadQuery::default()).rows.len() as u64;
        Ok((off_heap::holders(dump), dump.graph.tree.reachable_bytes(), threads))
    })?;
    let field = |owners: &[BufferOwner]| owners.first().and_then(|owner| owner.field.clone());
    let buffers = Buffers {
        direct_bytes: found.direct.bytes,
        reserved_bytes: found.reserved_bytes,
        limit_bytes: found.limit_bytes,
        mapped_bytes: found.mapped.bytes,
        direct_holder: field(&found.direct_owners),
        mapped_holder: field(&found.mapped_owners),
    };
    Ok(FoundBuffers { buffers, heap_bytes, threads, is_damaged: session.is_damaged() })
}
