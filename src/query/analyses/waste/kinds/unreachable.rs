//! Unreachable objects.

use std::io;

use crate::waste::WasteSearch;
use crate::waste::findings::Findings;
use crate::waste::kind::{Passes, WasteEffect, WasteFinder, WasteKind};
use hprof_model::dump::unreachable::{Filler, Unreachable};

pub(super) const DEFINITION: WasteKind = WasteKind {
    name: "unreachable",
    summary: "Unreachable objects",
    meaning: "Unreachable objects: garbage that has not been collected yet. Without int[] in dumps of JDK 20 \
        and later: some are filler, with which the JVM covers unused memory.",
    harmless: "Always, except for the work of the garbage collector: the objects are freed anyway.",
    remedy: "Dump only live objects (`jcmd PID GC.heap_dump` without -all). If there is much garbage \
        during normal operation, find out what allocates it: `hprof-cli sites`, or a JFR recording.",
    frees: WasteEffect::Unreachable,
    is_sampled: false,
    finds: WasteFinder::AfterPasses(find),
};

fn find(search: &WasteSearch<'_>, _: &mut Passes) -> io::Result<Findings> {
    let (summary, graph) = (search.dump.summary, search.dump.graph);
    let filler = Filler::new(summary, graph);
    let count = u64::from(graph.tree.objects().saturating_sub(graph.tree.reachable()));
    Ok(Findings {
        count: count.saturating_sub(filler.0.objects),
        bytes: Unreachable::new(summary, graph).garbage_bytes(filler),
        ..Findings::default()
    })
}
