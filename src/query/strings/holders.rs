//! Who holds the copies of a text: classes, and their fields, of the objects that refer to them.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::objects::reader::{ObjectReader, Record};
use crate::sorting::SortRows;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::model::tables::ClassKind;
use hprof_parser::{BasicType, ObjectId};

/// Copies of a text that are looked at.
pub const SAMPLE: usize = 64;
/// Objects that are looked at of those that refer to one copy.
const REFERRERS: usize = 8;
/// Holders that are kept.
const KEPT: usize = 3;
/// Longer instances are not searched for the field.
const LONGEST: usize = 1 << 14;
/// Static fields that are searched.
const STATICS: usize = 1 << 12;

/// By what an object holds a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum HeldThrough {
    /// A field of an instance, or of a class of which it is an instance.
    Field(u32),
    /// A static field of the class.
    Static(u32),
    /// An element of an array.
    Element,
    /// Something else: a thread's stack.
    Other,
}

/// Objects of a class that refer to copies of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The name of their class; of static fields the class that has them.
    pub class: String,
    /// The field by which they do; `[]` for elements of arrays; `None` for a thread's stack and what is not known.
    pub field: Option<String>,
    /// `true` if the field is static.
    pub is_static: bool,
    /// How many of the copies that were looked at they refer to.
    pub copies: u64,
}

/// Who refers to most of these copies. At most [`SAMPLE`] of them may be given.
pub(super) fn holders(objects: &ObjectReader<'_>, copies: &[ObjectIndex]) -> Vec<Holder> {
    let graph = objects.graph;
    let mut counts: FxHashMap<(ClassNumber, HeldThrough), u64> = FxHashMap::default();
    let mut of_copy = Vec::new();
    for copy in copies {
        of_copy.clear();
        let Some(id) = graph.objects.addresses.id_of(*copy) else { continue };
        of_copy.extend(graph.referrers(*copy).take(REFERRERS).filter_map(|from| holding(objects, from, id)));
        // Two objects of a class hold the same copy.
        of_copy.sort_unstable();
        of_copy.dedup();
        for holder in &of_copy {
            *counts.entry(*holder).or_default() += 1;
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_rows_by_key(|((class, by), copies)| (Reverse(*copies), *class, *by));
    counts.truncate(KEPT);
    counts.into_iter().filter_map(|((class, by), copies)| named(objects, class, by, copies)).collect()
}

/// By what an object refers to the one with this id.
fn holding(
    objects: &ObjectReader<'_>,
    from: ObjectIndex,
    id: ObjectId,
) -> Option<(ClassNumber, HeldThrough)> {
    let (summary, graph) = (objects.summary, objects.graph);
    if let Some(class) = graph.class_of_class_object(from) {
        return class_holding(summary, class, id);
    }
    let class = graph.objects.class(from)?;
    if summary.class(class)?.kind() != ClassKind::Instance {
        return Some((class, HeldThrough::Element));
    }
    let Some(Record::Instance(record)) = objects.record(from) else {
        return Some((class, HeldThrough::Other));
    };
    if record.fields.len() > LONGEST {
        return Some((class, HeldThrough::Other));
    }
    let slots = (0u32..).zip(objects.slots(class));
    let mut references = slots.filter(|(_, slot)| slot.kind == BasicType::Object);
    let found = references
        .find(|(_, slot)| objects.value(record.fields, slot).is_some_and(|value| value.bits == id.0));
    Some((class, found.map_or(HeldThrough::Other, |(at, _)| HeldThrough::Field(at))))
}

/// By which static field a class object refers to the object with this id.
fn class_holding(summary: &Summary, class: ClassNumber, id: ObjectId) -> Option<(ClassNumber, HeldThrough)> {
    let mut statics = (0u32..).zip(summary.statics(summary.class(class)?)).take(STATICS);
    let is_it = |kind, value| kind == BasicType::Object && value == id.0;
    let found = statics.find(|(_, (_, kind, value))| is_it(*kind, *value));
    Some((class, found.map_or(HeldThrough::Other, |(at, _)| HeldThrough::Static(at))))
}

fn named(objects: &ObjectReader<'_>, class: ClassNumber, by: HeldThrough, copies: u64) -> Option<Holder> {
    let summary = objects.summary;
    let row = summary.class(class)?;
    let mut holder =
        Holder { class: summary.class_name(row).to_owned(), field: None, is_static: false, copies };
    match by {
        HeldThrough::Field(at) => {
            holder.field = objects.slots(class).nth(at as usize).map(|slot| slot.name.to_owned())
        }
        HeldThrough::Static(at) => {
            holder.is_static = true;
            holder.field = summary.statics(row).nth(at as usize).map(|(name, ..)| name.to_owned());
        }
        HeldThrough::Element => holder.field = Some("[]".to_owned()),
        HeldThrough::Other => {}
    }
    Some(holder)
}
