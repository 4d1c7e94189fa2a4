//! Unreachable objects.

use std::io;

use crate::waste::WasteSearch;
use crate::waste::findings::Findings;
use crate::waste::kind::{Passes, WasteEffect, WasteFinder, WasteKind};

pub(super) const DEFINITION: WasteKind = WasteKind {
    name: "unreachable",
    summary: "Unreachable objects",
    meaning: "Unreachable objects: garbage that has not been collected yet.",
    harmless: "Always, except for the work of the garbage collector: the objects are freed anyway.",
    remedy: "Dump only live objects (`jcmd PID GC.heap_dump` without -all). If there is much garbage \
        during normal operation, find out what allocates it: `hprof-cli sites`, or a JFR recording.",
    frees: WasteEffect::Unreachable,
    is_sampled: false,
    finds: WasteFinder::AfterPasses(find),
};

fn find(search: &WasteSearch<'_>, _: &mut Passes) -> io::Result<Findings> {
    let tree = &search.dump.graph.tree;
    Ok(Findings {
        count: u64::from(tree.objects().saturating_sub(tree.reachable())),
        bytes: search.all_bytes().saturating_sub(tree.reachable_bytes()),
        ..Findings::default()
    })
}
