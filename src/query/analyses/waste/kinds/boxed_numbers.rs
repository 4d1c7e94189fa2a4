//! Boxes of primitive values.

use std::io;

use crate::waste::WasteSearch;
use crate::waste::findings::Findings;
use crate::waste::kind::{Passes, WasteEffect, WasteFinder, WasteKind};

pub(super) const DEFINITION: WasteKind = WasteKind {
    name: "boxed_numbers",
    summary: "Integers, Longs and other boxes",
    meaning: "Integer, Long and other boxes outside of the JVM's caches. Freed: the boxes, minus what a long or \
        double takes beyond a reference. `in the range of the caches` are those that valueOf() would \
        have shared.",
    harmless: "If they are keys of a small map, or null has a meaning.",
    remedy: "Use fields and arrays of primitive type, IntStream and OptionalInt, collections of primitives \
        (fastutil, Eclipse Collections); valueOf() instead of new.",
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
