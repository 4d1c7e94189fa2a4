//! Objects of frameworks by the names that the framework's users know them by: the session store of a web application, a
//! bean, a cache.
//!
//! What a rule calls an object is part of the label of its place, so that each web application has a place of its own. The
//! collection of its entries is at the place of the object, wherever it is dominated; where the rule says that its keys
//! name entries, each entry has a place of its own under its key.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::frameworks::{Frameworks, KnownFrameworks};
use crate::objects::collections::{Collections, Forms};
use crate::objects::label::Labels;
use crate::objects::reader::ObjectReader;
use crate::objects::reference_kind::ReferenceKind;
use hprof_index::Heap;
use hprof_index::graph::numbers::ObjectIndex;

use super::keyed;
use super::labels::{LabelNumbers, Via};
use super::traits::{Role, Trait};

/// Entries of a collection that are named.
const MAX_ENTRIES: usize = 1 << 14;

/// The named objects of a dump.
#[derive(Default)]
pub(super) struct NamedObjects {
    /// By object: number of its class name and what it is called.
    pub(super) called: FxHashMap<u32, u32>,
    /// By collection: the object whose entries it has.
    pub(super) entries: FxHashMap<u32, u32>,
}

/// What is known of the objects that are held elsewhere: holder, and by what.
type Adopted<'a> = FxHashMap<u32, (ObjectIndex, ReferenceKind<'a>)>;

/// Finds the named objects that retain at least `least` bytes. Their entries are added to `keys` and `adopted`, and classes
/// of which objects are only parts are marked in `traits`.
pub(super) fn named<'a>(
    heap: &'a Heap,
    objects: &ObjectReader<'a>,
    (forms, labels): (&Arc<Forms>, &Labels<'a>),
    least: u64,
    numbers: &mut LabelNumbers,
    keys: &mut FxHashMap<u32, u32>,
    adopted: &mut Adopted<'_>,
    traits: &mut [Trait],
) -> NamedObjects {
    let known = KnownFrameworks::new(heap, objects, &Frameworks::bundled());
    let graph = objects.graph;
    for (class, of) in objects.summary.numbered_classes().map(|(class, _)| class).zip(traits.iter_mut()) {
        of.is_passed = known.is_passed(class);
        of.is_part |= of.is_passed;
        if known.rule_of(class).is_some() && of.role == Role::Plain {
            of.role = Role::Collection;
        }
    }
    let mut found = NamedObjects::default();
    let collections = Collections::with(objects, forms.clone());
    for object in known.instances(least) {
        let Some(name) = known.called(object).filter(|_| !heap.hides_values()) else { continue };
        let Some(class) = graph.objects.class(object) else { continue };
        let class = numbers.of_class.get(class.0 as usize).copied().unwrap_or_default();
        found.called.insert(object.0, numbers.called.number((class, name.into(), known.is_generic(object))));
        let Some((entries, are_named)) = known.entries(object) else { continue };
        found.entries.insert(entries.0, object.0);
        let by = ReferenceKind::Slot(0);
        adopted.entry(entries.0).or_insert((object, by));
        let Some(collection) = collections.collection(entries).filter(|_| are_named) else { continue };
        for entry in collections.entries(&collection).take(MAX_ENTRIES) {
            let value = entry.value.reference().and_then(|id| graph.objects.addresses.index_of(id));
            let key = entry.key.and_then(|key| keyed::text(objects, labels, key));
            if let (Some(value), Some(key)) = (value, key) {
                keys.insert(value.0, numbers.vias.number(Via::Entry(key.into())));
                adopted.entry(value.0).or_insert((entries, by));
            }
        }
    }
    found
}
