//! Elements: the objects that the program stored in a container, among all that its nodes and arrays refer to.
//!
//! Mitchell, Schonberg and Sevitsky, "Making Sense of Large Heaps" (ECOOP 2009), distinguish a collection's
//! infrastructure from its contents by declared types; Chis and others, "Patterns of Memory Inefficiency" (ECOOP
//! 2011), call the relation ContainerOrContained. Here it follows from counts: elements are what most nodes refer to
//! and the structure does not need.

use std::cmp::Reverse;

use hprof_base::share::is_share;
use rustc_hash::{FxHashMap, FxHashSet};

use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::objects::fields;

use super::element_classes::{Classes, ElementTally};
use super::field_names;
use super::instances::Instance;
use super::roles::{ClassRole, Roles};
use super::slots::{SlotKey, Tally};

/// Minimum references of a slot, as a percentage of the references of the most frequent slot; other slots are ignored.
const MIN_SHARE: u64 = 10;

/// Minimum percentage of the nodes with a reference for the reference to count as present in all nodes.
const MIN_OF_NODES: u64 = 90;

/// Maximum number of fields and arrays of a container that are compared, most frequent first.
const MAX_SLOTS: usize = 256;
/// Maximum number of objects of a class that do not count as elements, in arrays with at least [`MANY`] objects.
const MAX_SINGLES: usize = 2;
/// Minimum number of objects in arrays for [`MAX_SINGLES`] to apply.
const MANY: u64 = 50;

/// A slot of a container with all classes of its targets.
#[derive(Debug, Default)]
struct ElementSlot<'a> {
    field: &'a str,
    class: Option<ClassNumber>,
    odd: Option<bool>,
    references: u64,
    range: Option<(u32, u32)>,
    targets: Vec<(Option<ClassNumber>, ElementTally)>,
}

impl ElementSlot<'_> {
    /// Returns whether all references of the slot are to one object: a marker, a comparator, or another object of the container
    /// itself.
    fn is_constant(&self) -> bool {
        self.references > 1 && self.range.is_some_and(|(first, last)| first == last)
    }

    fn is_of_leaves(&self, roles: &Roles) -> bool {
        self.targets
            .iter()
            .all(|(class, _)| class.is_none_or(|class| roles.of_class(class) == ClassRole::Leaf))
    }

    fn shares_class(&self, other: &Self) -> bool {
        let own: FxHashSet<Option<ClassNumber>> = self.targets.iter().map(|(class, _)| *class).collect();
        other.targets.iter().any(|(class, _)| own.contains(class))
    }
}

/// Elements that were found in a container.
#[derive(Debug, Default)]
pub(super) struct FoundElements {
    /// Elements; for a map, its values.
    pub(super) elements: Classes,
    /// Keys, if the container is a map.
    pub(super) keys: Option<Classes>,
    /// `true` if the nodes themselves are the elements.
    pub(super) are_nodes: bool,
    /// Number of fields and arrays with elements.
    pub(super) slots: usize,
}

/// Evidence that arrays of a header contain keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct MapHints {
    /// `true` if the header's class is named like a map.
    pub(super) is_named: bool,
    /// `true` if the header has an array of numbers, which can be the keys.
    pub(super) has_numbers: bool,
}

/// Returns the elements of an instance with these slots; `None` for nodes that are themselves the elements.
pub(super) fn elements(
    summary: &Summary,
    roles: &Roles,
    instance: &Instance,
    map: MapHints,
    tallies: &[(SlotKey<'_>, Tally)],
) -> Option<FoundElements> {
    let mut slots = slots(summary, tallies);
    drop_singles(&mut slots);
    let most = slots.iter().filter(|slot| !slot.is_constant()).map(|slot| slot.references).max()?;
    slots.retain(|slot| !slot.is_constant());
    let largest: FxHashSet<Option<ClassNumber>> = slots
        .iter()
        .filter(|slot| is_share(slot.references, most, MIN_SHARE))
        .flat_map(|slot| slot.targets.iter().map(|(class, _)| *class))
        .collect();
    // The last elements may be in a separate array.
    let is_rest = |slot: &ElementSlot<'_>| {
        slot.odd.is_some() && slot.targets.iter().any(|(class, _)| largest.contains(class))
    };
    slots.retain(|slot| is_share(slot.references, most, MIN_SHARE) || is_rest(slot));
    drop_copies(&mut slots);
    let is_link = |slot: &ElementSlot<'_>| {
        slot.odd.is_none() && field_names::is_link(slot.field) && !field_names::is_value(slot.field)
    };
    if slots.iter().any(|slot| !is_link(slot)) {
        slots.retain(|slot| !is_link(slot));
    }
    let (arrays, fields): (Vec<ElementSlot<'_>>, Vec<ElementSlot<'_>>) =
        slots.into_iter().partition(|slot| slot.odd.is_some());
    let (mut keys, mut values) = tell_arrays(summary, roles, map, arrays);
    let with_values: Vec<Option<ClassNumber>> =
        fields.iter().filter(|slot| field_names::is_value(slot.field)).map(|slot| slot.class).collect();
    let is_key = |slot: &ElementSlot<'_>| {
        field_names::is_key(slot.field)
            || slot.field == field_names::REFERENT && with_values.contains(&slot.class)
    };
    let (named_keys, fields): (Vec<ElementSlot<'_>>, Vec<ElementSlot<'_>>) =
        fields.into_iter().partition(is_key);
    let (named_values, mut others): (Vec<ElementSlot<'_>>, Vec<ElementSlot<'_>>) = fields
        .into_iter()
        .partition(|slot| field_names::is_value(slot.field) || slot.field == field_names::REFERENT);
    keys.extend(named_keys);
    values.extend(named_values);
    if values.is_empty() && keys.is_empty() && instance.nodes > 0 {
        (keys, values) = payload(summary, roles, instance, std::mem::take(&mut others))?;
    } else if values.is_empty()
        && !keys.is_empty()
        && !others.is_empty()
        && is_payload(roles, instance, &others)
    {
        // Named keys; the other fields are the values.
        values = std::mem::take(&mut others);
    }
    if values.is_empty() {
        // A set, or an intrusive node with a name.
        let has_few_numbers =
            |slot: &ElementSlot<'_>| slot.class.is_none_or(|class| roles.shape(class).numbers <= 1);
        let is_of_entries = others.is_empty() && keys.iter().all(has_few_numbers);
        if keys.is_empty() || instance.nodes > 0 && !is_of_entries {
            return None;
        }
        return Some(FoundElements {
            elements: merge_classes(&keys),
            slots: keys.len(),
            ..FoundElements::default()
        });
    }
    let elements = merge_classes(&values);
    let keys = (!keys.is_empty()).then(|| merge_classes(&keys));
    // Keys count only if there are at least half as many as values.
    let keys = keys.filter(|keys| keys.count() * 2 >= elements.count());
    Some(FoundElements { elements, keys, are_nodes: false, slots: values.len() })
}

/// Returns the slots with keys and those with values among the slots of nodes without informative names; `None` if the nodes
/// are the elements.
fn payload<'a>(
    summary: &Summary,
    roles: &Roles,
    instance: &Instance,
    mut others: Vec<ElementSlot<'a>>,
) -> Option<(Vec<ElementSlot<'a>>, Vec<ElementSlot<'a>>)> {
    if !is_payload(roles, instance, &others) {
        return None;
    }
    others.sort_by_key(|slot| key_rank(summary, roles, slot));
    let first = others.first().map_or("", |first| first.field);
    let (keys, values): (Vec<ElementSlot<'a>>, Vec<ElementSlot<'a>>) =
        others.into_iter().partition(|slot| slot.field == first);
    // A single field contains values.
    Some(if values.is_empty() { (values, keys) } else { (keys, values) })
}

/// Returns a sort key, which is lowest for slots that most likely contain keys: by the names of the classes, then leaf values,
/// then the order of fields, which is reversed in dumps.
fn key_rank(summary: &Summary, roles: &Roles, slot: &ElementSlot<'_>) -> (bool, bool, Reverse<usize>) {
    let is_key = |class: &ClassNumber| {
        let name = summary.class(*class).map_or("", |row| summary.class_name(row));
        name.ends_with("Key") || name.ends_with("Id")
    };
    let are_keys = slot.targets.iter().all(|(class, _)| class.as_ref().is_some_and(is_key));
    let mut names =
        slot.class.into_iter().flat_map(|class| fields::slots(summary, class)).map(|field| field.name);
    let at = names.position(|name| name == slot.field).unwrap_or(0);
    (!are_keys, !slot.is_of_leaves(roles), Reverse(at))
}

/// Returns whether the nodes only hold the targets of these slots: they have at most two such fields, and no other numbers,
/// unless many nodes have null there. Two fields with values of one leaf class describe the node instead.
fn is_payload(roles: &Roles, instance: &Instance, others: &[ElementSlot<'_>]) -> bool {
    let mut names: Vec<&str> = others.iter().map(|slot| slot.field).collect();
    names.sort_unstable();
    names.dedup();
    let has_numbers =
        others.iter().any(|slot| slot.class.is_some_and(|class| roles.shape(class).numbers > 0));
    let all: u64 = others.iter().map(|slot| slot.references).sum();
    let are_leaves = others.iter().all(|slot| slot.is_of_leaves(roles));
    let are_alike = others.iter().zip(others.iter().skip(1)).any(|(one, next)| one.shares_class(next));
    (1..=2).contains(&names.len())
        && (!has_numbers || !is_share(all, instance.nodes, MIN_OF_NODES))
        && (names.len() == 1 || !are_leaves || !are_alike)
}

/// Separates the slots of arrays into keys and values: two arrays by the names of their fields, one array by even and odd
/// slots.
fn tell_arrays<'a>(
    summary: &Summary,
    roles: &Roles,
    map: MapHints,
    arrays: Vec<ElementSlot<'a>>,
) -> (Vec<ElementSlot<'a>>, Vec<ElementSlot<'a>>) {
    let has_key_field = arrays.iter().any(|slot| is_key_array(slot.field));
    let has_others = arrays.iter().any(|slot| !is_key_array(slot.field));
    if has_key_field && has_others {
        let (mut named, others): (Vec<ElementSlot<'a>>, Vec<ElementSlot<'a>>) =
            arrays.into_iter().partition(|slot| is_key_array(slot.field));
        // Inner nodes also have keys, which separate their children.
        let is_key = |slot: &ElementSlot<'a>, most: u64| {
            slot.references < most && named.iter().any(|key| key.shares_class(slot))
        };
        let most = others.iter().map(|slot| slot.references).max().unwrap_or(0);
        let (more, others): (Vec<ElementSlot<'a>>, Vec<ElementSlot<'a>>) =
            others.into_iter().partition(|slot| is_key(slot, most / 2));
        named.extend(more);
        return (named, others);
    }
    if let Some([first, second]) = two_arrays(&arrays) {
        // Two arrays with as many elements of different classes: keys are more likely texts or numbers.
        let rank = |field: &str| {
            arrays.iter().filter(|slot| slot.field == field).map(|slot| key_rank(summary, roles, slot)).max()
        };
        let key = if rank(first) <= rank(second) { first } else { second };
        return arrays.into_iter().partition(|slot| slot.field == key);
    }
    let sum = |odd: bool| {
        let of = arrays.iter().filter(|slot| slot.odd == Some(odd));
        of.map(|slot| slot.references).sum::<u64>()
    };
    let (even, odd) = (sum(false), sum(true));
    let of = |odd: bool| arrays.iter().filter(move |slot| slot.odd == Some(odd));
    let are_apart = !of(false).any(|even| of(true).any(|odd| even.shares_class(odd)));
    // Several alternating classes can also be in even and odd slots.
    let have_common = || merge_classes(&arrays).name(summary).is_some_and(|(_, is_mostly)| !is_mostly);
    let are_pairs = are_apart && !have_common() || map.is_named && !are_apart && !map.has_numbers;
    if even == odd && even > 0 && are_pairs {
        arrays.into_iter().partition(|slot| slot.odd == Some(false))
    } else {
        (Vec::new(), arrays)
    }
}

/// Returns the fields of two arrays with equal numbers of elements and no common class, if the arrays are such.
fn two_arrays<'a>(arrays: &[ElementSlot<'a>]) -> Option<[&'a str; 2]> {
    let mut fields: Vec<&'a str> = arrays.iter().map(|slot| slot.field).collect();
    fields.sort_unstable();
    fields.dedup();
    let [first, second] = fields.as_slice() else { return None };
    let of = |field: &'a str| arrays.iter().filter(move |slot| slot.field == field);
    let sum = |field: &'a str| of(field).map(|slot| slot.references).sum::<u64>();
    let are_apart = !of(first).any(|one| of(second).any(|other| one.shares_class(other)));
    (are_apart && sum(first) == sum(second)).then_some([first, second])
}

/// Drops one or two objects that are the only ones of their class in arrays with many others, such as reserved first
/// slots.
fn drop_singles(slots: &mut [ElementSlot<'_>]) {
    let of_arrays = || slots.iter().filter(|slot| slot.odd.is_some()).flat_map(|slot| &slot.targets);
    let mut counts: FxHashMap<Option<ClassNumber>, u64> = FxHashMap::default();
    of_arrays().for_each(|(class, elements)| *counts.entry(*class).or_default() += elements.count);
    counts.retain(|_, count| *count == 1);
    let all: u64 = of_arrays().map(|(_, elements)| elements.count).sum();
    if counts.len() > MAX_SINGLES || all < MANY {
        return;
    }
    for slot in slots.iter_mut().filter(|slot| slot.odd.is_some()) {
        let before = slot.targets.len();
        slot.targets.retain(|(class, _)| !counts.contains_key(class));
        slot.references -= (before - slot.targets.len()) as u64;
    }
}

/// Drops slots that have the same targets as slots of another class, such as an entry and the pair from which it was created.
fn drop_copies(slots: &mut Vec<ElementSlot<'_>>) {
    // A set can have its elements in both a table and a list.
    let mut arrays: FxHashMap<(Option<ClassNumber>, &str), (u64, u32, u32)> = FxHashMap::default();
    for slot in slots.iter().filter(|slot| slot.odd.is_some()) {
        let (first, last) = slot.range.unwrap_or_default();
        let known = arrays.entry((slot.class, slot.field)).or_insert((0, first, last));
        *known = (known.0 + slot.references, known.1.min(first), known.2.max(last));
    }
    let same = |slot: &ElementSlot<'_>| {
        let own = arrays.get(&(slot.class, slot.field));
        let mut others =
            arrays.iter().filter(|((class, field), _)| *class == slot.class && *field < slot.field);
        others.any(|(_, other)| Some(other) == own)
    };
    slots.retain(|slot| slot.odd.is_none() || !same(slot));
    let mut seen: FxHashMap<_, Option<ClassNumber>> = FxHashMap::default();
    slots.retain(|slot| {
        let known = *seen.entry((slot.references, slot.range)).or_insert(slot.class);
        slot.odd.is_some() || known == slot.class
    });
}

fn is_key_array(field: &str) -> bool {
    field_names::is_key(field)
        || field_names::is_key(field.strip_suffix('s').unwrap_or(field))
        || field.to_lowercase().starts_with("key")
}

/// Merges the counts by slot, in a stable order.
fn slots<'a>(summary: &Summary, tallies: &[(SlotKey<'a>, Tally)]) -> Vec<ElementSlot<'a>> {
    let mut found: FxHashMap<(&str, Option<ClassNumber>, Option<bool>), ElementSlot<'a>> =
        FxHashMap::default();
    for (key, tally) in tallies {
        // The lock of a node is not an element.
        let target =
            key.target.and_then(|class| summary.class(class)).map_or("", |row| summary.class_name(row));
        if key.odd.is_none()
            && (target == "java.lang.Object" || target.starts_with("java.util.concurrent.locks."))
        {
            continue;
        }
        // A marker: a deleted entry, or a link to the next array.
        if target == "java.lang.Object" && tally.range.0 == tally.range.1 {
            continue;
        }
        let slot = found.entry((key.field, key.class, key.odd)).or_default();
        (slot.field, slot.class, slot.odd) = (key.field, key.class, key.odd);
        slot.references += tally.references;
        let (first, last) = slot.range.unwrap_or(tally.range);
        slot.range = Some((first.min(tally.range.0), last.max(tally.range.1)));
        let elements =
            ElementTally { count: tally.references, bytes: tally.bytes, largest_bytes: tally.largest_bytes };
        slot.targets.push((key.target, elements));
    }
    let mut slots: Vec<ElementSlot<'a>> = found.into_values().collect();
    // A hostile dump can have one per class; they are compared in pairs.
    if slots.len() > MAX_SLOTS {
        slots.sort_unstable_by_key(|slot| (Reverse(slot.references), slot.class, slot.field, slot.odd));
        slots.truncate(MAX_SLOTS);
    }
    slots.sort_unstable_by_key(|slot| (slot.class, slot.field, slot.odd));
    slots
}

fn merge_classes(slots: &[ElementSlot<'_>]) -> Classes {
    let mut classes = Classes::default();
    for (class, elements) in slots.iter().flat_map(|slot| &slot.targets) {
        classes.add(*class, *elements);
    }
    classes
}

/// Returns the nodes themselves as elements.
pub(super) fn nodes(nodes: &[(Option<ClassNumber>, u64, u64)]) -> FoundElements {
    let mut elements = Classes::default();
    for (class, objects, bytes) in nodes {
        // Nodes hold one another: there is no largest element.
        elements.add(*class, ElementTally { count: *objects, bytes: *bytes, largest_bytes: 0 });
    }
    FoundElements { elements, keys: None, are_nodes: true, slots: 0 }
}
