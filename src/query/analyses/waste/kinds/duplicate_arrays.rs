//! Primitive arrays with the same contents.

use std::io;

use crate::waste::WasteSearch;
use crate::waste::equal::{Content, ContentItem, find_all};
use crate::waste::findings::{Findings, Saving};
use crate::waste::kind::{Passes, WasteEffect, WasteFinder, WasteKind};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_model::objects::reader::ObjectRecord;
use hprof_values::BasicType;

pub(super) const DEFINITION: WasteKind = WasteKind {
    name: "duplicate_arrays",
    summary: "Primitive arrays with the same content",
    meaning: "Primitive arrays with the same type and content as an earlier array, compared byte by byte; \
        arrays of Strings are not counted. Freed: all but the first.",
    harmless: "If the arrays are written to later: they are equal only at the time of the dump.",
    remedy: "Share arrays that are never modified: load a resource once, cache decoded data.",
    frees: WasteEffect::Objects,
    is_sampled: true,
    finds: WasteFinder::AfterPasses(find),
};

struct ArrayContent<'v, 'a>(&'v WasteSearch<'a>);

impl<'v, 'a> Content for ArrayContent<'v, 'a> {
    type Read<'r>
        = (BasicType, &'a [u8])
    where
        Self: 'r;

    fn read(&self, item: &ContentItem) -> Option<(BasicType, &'a [u8])> {
        match self.0.dump.objects.record_at(item.place >> 2)? {
            ObjectRecord::PrimitiveArray(array) => Some((array.element, array.elements?)),
            _ => None,
        }
    }

    fn same(a: &(BasicType, &[u8]), b: &(BasicType, &[u8])) -> bool {
        a == b
    }

    fn saving(&self, item: &ContentItem) -> Saving {
        Saving::new(ObjectIndex(item.object), item.bytes)
    }
}

fn find(search: &WasteSearch<'_>, passes: &mut Passes) -> io::Result<Findings> {
    let (savings, groups) = find_all(search, &ArrayContent(search), &mut passes.contents)?;
    let mut findings = Findings::by_class(savings, |object| search.class(object));
    findings.groups = groups;
    Ok(findings)
}
