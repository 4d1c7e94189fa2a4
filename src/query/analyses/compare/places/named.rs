//! Objects of frameworks, with the names that users of the framework know: the session store of a web application, a bean,
//! a cache.
//!
//! The name that a rule gives an object is part of the label of its place, so that each web application has its own place. The
//! collection of the object's entries is at the place of the object, whichever object dominates it; if the rule states that
//! its keys name the entries, each entry has its own place, under its key.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::frameworks::{Frameworks, KnownFrameworks, Naming};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::{Dump, ObjectGraph};
use hprof_model::objects::collections::{Collections, Forms};
use hprof_model::objects::label::Labels;
use hprof_model::objects::reference_kind::ReferenceKind;

use super::keyed;
use super::labels::{CalledName, LabelNumbers, Via};
use super::traits::{ClassTraits, Role};

/// Maximum number of named entries of a collection.
const MAX_ENTRIES: usize = 1 << 14;
/// Maximum number of slots of the table of a collection whose entries are named.
const MAX_SLOTS: usize = 1 << 16;

/// Minimum fraction of the heap (1/`PART_SAID`) that an object must retain for its sentence to be evaluated.
const PART_SAID: u64 = 100;

/// Objects of a dump that framework rules name.
#[derive(Default)]
pub(super) struct NamedObjects {
    /// By object: number of its class and its name.
    pub(super) called: FxHashMap<u32, u32>,
    /// By collection: object whose entries the collection contains.
    pub(super) entries: FxHashMap<u32, u32>,
}

/// By object whose place is below another object than its dominator: that object, and the kind of its reference.
type AdoptedObjects<'a> = FxHashMap<u32, (ObjectIndex, ReferenceKind<'a>)>;

/// Data about objects and classes that is collected before the pass over the tree.
pub(super) struct BeforePass<'b, 'a> {
    pub(super) numbers: &'b mut LabelNumbers,
    /// By object in a map: number of its key.
    pub(super) keys: &'b mut FxHashMap<u32, u32>,
    pub(super) adopted: &'b mut AdoptedObjects<'a>,
    /// Properties of classes, by class number.
    pub(super) traits: &'b mut [ClassTraits],
}

/// Finds the named objects that retain at least `least` bytes. Adds their entries to `keys` and `adopted`, and marks in
/// `traits` the classes whose objects are only parts of others.
pub(super) fn find_named_objects<'a>(
    dump: &Dump<'a>,
    frameworks: &Frameworks,
    (forms, labels): (&Arc<Forms>, &Labels<'a>),
    least: u64,
    before: BeforePass<'_, '_>,
) -> NamedObjects {
    let BeforePass { numbers, keys, adopted, traits } = before;
    let known = KnownFrameworks::new(dump, frameworks);
    let (objects, graph) = (&dump.objects, dump.graph);
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
        let Some(mut name) = known.name_of(object) else { continue };
        if dump.heap.hides_values() && known.naming(object) == Naming::One {
            // Numbers keep hidden names distinct, as the original names are.
            name = format!("{name} {}", found.called.len() + 1);
        }
        let Some(class) = graph.objects.class(object) else { continue };
        let class = numbers.of_class.get(class.0 as usize).copied().unwrap_or_default();
        let naming = known.naming(object);
        // The contents of a small object do not matter.
        let is_large = graph.tree.retained_bytes_of(object) >= Some(graph.tree.reachable_bytes() / PART_SAID);
        let has_sentence = is_large && known.has_sentence(object);
        let called = CalledName { class, name: name.into(), naming, has_sentence };
        found.called.insert(object.0, numbers.called.number(called));
        let Some((entries, word)) = known.entries(object) else { continue };
        found.entries.insert(entries.0, object.0);
        let by = ReferenceKind::Slot(0);
        if is_outside(graph, entries, object) {
            adopted.entry(entries.0).or_insert((object, by));
        }
        let Some(collection) = collections.collection(entries) else { continue };
        let Some(word) = word else { continue };
        // Maps that share one long empty table would be read repeatedly.
        if collections.slots(&collection).is_some_and(|slots| slots > MAX_SLOTS) {
            continue;
        }
        for entry in collections.entries(&collection).take(MAX_ENTRIES) {
            let value = entry.value.reference().and_then(|id| graph.objects.addresses.index_of(id));
            let key = match dump.heap.hides_values() {
                true => Some((keys.len() + 1).to_string()),
                false => entry.key.and_then(|key| keyed::text(objects, labels, key)),
            };
            if let (Some(value), Some(key)) = (value, key) {
                keys.insert(
                    value.0,
                    numbers.vias.number(Via::Entry(format!("{word} {key}").trim_start().into())),
                );
                if is_outside(graph, value, entries) {
                    adopted.entry(value.0).or_insert((entries, by));
                }
            }
        }
    }
    found
}

/// Returns whether `object` does not dominate `holder`, which would adopt it.
fn is_outside(graph: &ObjectGraph, object: ObjectIndex, holder: ObjectIndex) -> bool {
    let position = |object| graph.tree.reachable_position(object);
    let pair = position(object).zip(position(holder));
    pair.is_some_and(|(object, holder)| !graph.tree.dominates(object, holder))
}
