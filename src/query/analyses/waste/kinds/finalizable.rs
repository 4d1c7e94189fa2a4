//! Objects that wait for `finalize`, in the chain of a `java.lang.ref.ReferenceQueue`.

use std::io;

use rustc_hash::FxHashSet;

use crate::waste::WasteSearch;
use crate::waste::findings::Findings;
use crate::waste::kind::{Passes, WasteEffect, WasteFinder, WasteKind};
use hprof_model::heap_facts::finalizers;

pub(super) const DEFINITION: WasteKind = WasteKind {
    name: "finalizable",
    summary: "Objects that wait for finalization",
    meaning: "Objects that are garbage, but wait for finalize(). Freed: what their Finalizers retain.",
    harmless: "If the finalizer thread is behind only for a moment: `hprof-cli leaks` shows what it is \
        doing.",
    remedy: "Replace finalize() by close() and java.lang.ref.Cleaner. Do not block in finalize().",
    frees: WasteEffect::Retained,
    is_sampled: false,
    finds: WasteFinder::AfterPasses(find),
};

/// Class that links the objects in a queue.
const REFERENCE: &str = "java.lang.ref.Reference";

fn find(search: &WasteSearch<'_>, _: &mut Passes) -> io::Result<Findings> {
    let objects = &search.dump.objects;
    // A Finalizer has a `next` of its own, for objects that do not wait.
    let Some(reference) = search.dump.summary.boot_class(REFERENCE) else {
        return Ok(Findings::default());
    };
    let field = |object, name| objects.object(objects.field_of(object, reference, name)?);
    let mut next = finalizers(objects).and_then(|queue| objects.reference(queue, "head"));
    let (mut waiting, mut seen) = (Vec::new(), FxHashSet::default());
    // The last one refers to itself.
    while let Some(finalizer) = next.filter(|finalizer| seen.insert(finalizer.0)) {
        waiting.push(finalizer);
        next = field(finalizer, "next");
    }
    Findings::from_retained(search, &waiting, |finalizer| {
        field(finalizer, "referent").and_then(|referent| search.class(referent))
    })
}
