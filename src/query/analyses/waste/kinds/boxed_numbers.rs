//! Boxes of primitive values.

use std::io;

use crate::waste::WasteSearch;
use crate::waste::findings::Findings;
use crate::waste::kind::{Passes, WasteEffect, WasteFinder, WasteKind};

pub(super) const DEFINITION: WasteKind = WasteKind {
    name: "boxed_numbers",
    summary: "Integer, Long and other boxes",
    meaning: "Integer, Long and other boxes that are not in the JVM's caches. Freed: the boxes, minus the \
        space that a long or double needs in addition to a reference. `within the range of the caches` are \
        boxes that valueOf() would have shared.",
    harmless: "If they are keys of a small map, or if null has a meaning.",
    remedy: "Use fields and arrays of primitive types, IntStream and OptionalInt, or collections of \
        primitives (fastutil, Eclipse Collections). Call valueOf() instead of a constructor.",
    frees: WasteEffect::Unboxed,
    is_sampled: true,
    finds: WasteFinder::AfterPasses(find),
};

/// Returns the findings of the pass over instances.
fn find(_: &WasteSearch<'_>, passes: &mut Passes) -> io::Result<Findings> {
    let mut findings = Findings::default();
    passes.boxes.drain(..).for_each(|(savings, parts)| findings.take(savings, &parts));
    Ok(findings)
}
