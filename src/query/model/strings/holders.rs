//! Holders of the copies of a text: classes and fields of the objects that refer to them.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::objects::reader::{ObjectReader, ObjectRecord};
use hprof_base::sorting::SortRows;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::model::tables::ClassKind;
use hprof_values::{BasicType, ObjectId};

/// Maximum number of copies of a text that are examined.
pub const SAMPLE: usize = 64;
/// Maximum number of referrers of a copy that are examined.
const REFERRERS: usize = 8;
/// Maximum number of holders in the result.
const KEPT: usize = 3;
/// Maximum size of an instance whose fields are searched.
const LONGEST: usize = 1 << 14;
/// Maximum number of static fields that are searched.
const STATICS: usize = 1 << 12;

/// How an object holds a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum HeldThrough {
    /// A field of an instance, declared by its class or a superclass.
    Field(u32),
    /// A static field of the class.
    Static(u32),
    /// An element of an array.
    Element,
    /// Anything else: a thread's stack.
    Other,
}

/// Objects of a class that refer to copies of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Class name of the objects; of static fields the class that declares them.
    pub class: String,
    /// Field that refers to the copies; `[]` for elements of arrays; `None` for a thread's stack and unknown
    /// references.
    pub field: Option<String>,
    /// `true` if the field is static.
    pub is_static: bool,
    /// Number of examined copies to which they refer.
    pub copies: u64,
}

/// Returns the objects that refer to most of these copies, of which at most [`SAMPLE`] may be given.
pub fn holders(objects: &ObjectReader<'_>, copies: &[ObjectIndex]) -> Vec<Holder> {
    let graph = objects.graph;
    let mut counts: FxHashMap<(ClassNumber, HeldThrough), u64> = FxHashMap::default();
    let mut of_copy = Vec::new();
    for copy in copies {
        of_copy.clear();
        let Some(id) = graph.objects.addresses.id_of(*copy) else { continue };
        of_copy.extend(graph.referrers(*copy).take(REFERRERS).filter_map(|from| holding(objects, from, id)));
        // Two objects of a class may hold the same copy.
        of_copy.sort_unstable();
        of_copy.dedup();
        for holder in &of_copy {
            *counts.entry(*holder).or_default() += 1;
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_rows_by_key(|((class, by), copies)| (Reverse(*copies), *class, *by));
    counts.truncate(KEPT);
    counts
        .into_iter()
        .filter_map(|((class, by), copies)| describe_holder(objects, class, by, copies))
        .collect()
}

/// Returns how an object refers to the one with this ID.
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
    let Some(ObjectRecord::Instance(record)) = objects.record(from) else {
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

/// Returns the static field by which a class object refers to the object with this ID.
fn class_holding(summary: &Summary, class: ClassNumber, id: ObjectId) -> Option<(ClassNumber, HeldThrough)> {
    let mut statics = (0u32..).zip(summary.statics(summary.class(class)?)).take(STATICS);
    let is_it = |kind, value| kind == BasicType::Object && value == id.0;
    let found = statics.find(|(_, (_, kind, value))| is_it(*kind, *value));
    Some((class, found.map_or(HeldThrough::Other, |(at, _)| HeldThrough::Static(at))))
}

fn describe_holder(
    objects: &ObjectReader<'_>,
    class: ClassNumber,
    by: HeldThrough,
    copies: u64,
) -> Option<Holder> {
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
