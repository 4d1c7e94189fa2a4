//! Strings with the same text. The first one remains; the arrays of the others are freed if nothing else refers to them.

use std::io;

use rayon::prelude::*;

use crate::waste::WasteSearch;
use crate::waste::equal::{Content, ContentItem, SHARED, find_all};
use crate::waste::findings::{Findings, NO_OBJECT, Parts, Saving};
use crate::waste::kind::{Passes, WasteEffect, WasteFinder, WasteKind};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_model::objects::object_set::Bits;
use hprof_model::objects::reader::Characters;
use hprof_model::strings::contents;

pub(super) const DEFINITION: WasteKind = WasteKind {
    name: "duplicate_strings",
    summary: "Strings with the same text",
    meaning: "Strings with the same text as an earlier String, compared character by character. Freed: all \
        but the first String, each with its array if nothing else refers to it.",
    harmless: "If the Strings are short-lived: a heap dump shows only one moment.",
    remedy: "Create each value only once: use a map from text to String where the values are parsed, an \
        enum for a fixed set, or String.intern() for few values. With G1, -XX:+UseStringDeduplication \
        shares the arrays, but not the Strings.",
    frees: WasteEffect::Objects,
    is_sampled: true,
    finds: WasteFinder::AfterPasses(find),
};

struct StringTexts<'v, 'a>(&'v WasteSearch<'a>);

impl<'v, 'a> Content for StringTexts<'v, 'a> {
    type Read<'r>
        = Characters<'a>
    where
        Self: 'r;

    fn read(&self, item: &ContentItem) -> Option<Characters<'a>> {
        contents::characters_at(&self.0.dump.objects, item.place, ObjectIndex(item.object))
    }

    fn same(a: &Characters<'_>, b: &Characters<'_>) -> bool {
        contents::same(a, b)
    }

    fn saving(&self, item: &ContentItem) -> Saving {
        let class = self.0.class(ObjectIndex(item.object));
        let own = class.map_or(0, |class| self.0.sizes.instance(class).0);
        let other = if item.bytes & SHARED == 0 { item.array } else { NO_OBJECT };
        Saving { bytes: own.saturating_add(item.bytes()), object: item.object, other }
    }
}

fn find(search: &WasteSearch<'_>, passes: &mut Passes) -> io::Result<Findings> {
    let (mut savings, groups) = find_all(search, &StringTexts(search), &mut passes.texts)?;
    let graph = search.dump.graph;
    let mut freed = Bits::new(graph.objects.len());
    for saving in savings.iter() {
        freed.insert(ObjectIndex(saving.object));
    }
    // An array that several Strings share is considered with the first of them.
    savings.par_iter_mut().filter(|saving| saving.other != NO_OBJECT).for_each(|saving| {
        let array = ObjectIndex(saving.other);
        let mut referrers = graph.referrers(array).filter(|from| search.reachable.contains(*from));
        if search.roots.contains(array) || !referrers.all(|from| freed.contains(from)) {
            let class = search.class(ObjectIndex(saving.object));
            saving.bytes = class.map_or(0, |class| search.sizes.instance(class).0);
            saving.other = NO_OBJECT;
        }
    });
    let mut findings = Findings::default();
    findings.take(savings, &Parts::default());
    findings.groups = groups;
    Ok(findings)
}
