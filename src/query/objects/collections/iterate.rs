//! Iteration over the contents of collections.
//!
//! Every walk ends: it takes no more steps than the dump has objects, and cyclic chains stop at the repetition.

use hprof_parser::{BasicType, ObjectId, be_value};

use super::known::{CollectionForm, Nulls};
use super::{Entry, NULL};
use crate::objects::reader::{Bits, ObjectReader};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;

type Entries<'o> = Box<dyn Iterator<Item = Entry> + 'o>;

fn value(value: Bits) -> Entry {
    Entry { key: None, value }
}

fn reference(id: ObjectId) -> Bits {
    Bits { kind: BasicType::Object, bits: id.0 }
}

/// Returns the contents of an object with this representation.
pub(super) fn entries<'o, 'a>(
    objects: &'o ObjectReader<'a>,
    object: ObjectIndex,
    class: ClassNumber,
    form: CollectionForm,
) -> Entries<'o> {
    let fields = objects.fields_of(object, class);
    let field = move |name: &str| fields?.value(name);
    let number = move |name: &str| usize::try_from(field(name)?.integer()?).ok();
    match form {
        CollectionForm::Array { array, size } => {
            let most = size.map_or(usize::MAX, |size| number(size).unwrap_or(0));
            Box::new(ids(objects, field(array)).take(most).map(|id| value(reference(id))))
        }
        CollectionForm::Scattered(array) => {
            let there = ids(objects, field(array)).filter(|id| !id.is_null());
            Box::new(there.map(|id| value(reference(id))))
        }
        CollectionForm::Ring => {
            let (head, tail) = (number("head").unwrap_or(0), number("tail").unwrap_or(0));
            let array = field("elements");
            let before = if head <= tail { 0 } else { tail };
            let first =
                ids(objects, array).skip(head).take(if head <= tail { tail - head } else { usize::MAX });
            Box::new(first.chain(ids(objects, array).take(before)).map(|id| value(reference(id))))
        }
        CollectionForm::Linked { first, next, item, nulls, .. } => {
            let without = usize::from(nulls == Nulls::FirstIsNone);
            // `head` of a ConcurrentLinkedDeque is not always the first node.
            let start = match nulls {
                Nulls::None => chain(objects, field(first), "prev").last(),
                _ => objects_in(objects, field(first)).next(),
            };
            let start = start.map(|node| reference(id_of(objects, node)));
            let nodes = chain(objects, start, next).skip(without);
            let items = nodes.filter_map(move |node| objects.field(node, item));
            Box::new(items.filter(move |item| item.bits != 0 || nulls != Nulls::None).map(value))
        }
        CollectionForm::Buckets { table, key, value, .. } => {
            let most = objects.graph.objects.len();
            // The table to which a ConcurrentHashMap moves its entries. The node that replaces moved ones has no value.
            let moved = field("nextTable");
            let is_concurrent = moved.is_some();
            let tables = [field(table), moved].into_iter();
            let entries = tables.flat_map(move |table| buckets(objects, table, key, value, most));
            let entries = entries.filter(move |entry| !is_concurrent || entry.value.bits != 0);
            // Android up to 6.
            let of_null = objects_in(objects, field("entryForNullKey"));
            let of_null = of_null.filter_map(move |node| entry(objects, node, key, value));
            Box::new(entries.chain(of_null))
        }
        CollectionForm::Segments => {
            let segments = ids(objects, field("segments"));
            let segments = segments.filter_map(|id| objects.graph.objects.addresses.index_of(id));
            let tables = segments.map(|segment| objects.field(segment, "table"));
            let mut left = objects.graph.objects.len();
            let entries = tables.flat_map(move |table| buckets(objects, table, "key", "value", left));
            Box::new(entries.take_while(move |_| {
                left = left.saturating_sub(1);
                left > 0
            }))
        }
        CollectionForm::Chained => {
            let nodes = chain(objects, field("head"), "after");
            Box::new(nodes.filter_map(move |node| {
                Some(Entry { key: Some(objects.field(node, "key")?), value: objects.field(node, "value")? })
            }))
        }
        CollectionForm::Pairs { table, .. } => {
            let there = pairs(objects, field(table)).filter(|(key, _)| !key.is_null());
            Box::new(there.map(|(key, value)| Entry { key: Some(reference(key)), value: reference(value) }))
        }
        CollectionForm::Dense { table, size } => {
            let there = pairs(objects, field(table)).take(number(size).unwrap_or(0));
            Box::new(there.map(|(key, value)| Entry { key: Some(reference(key)), value: reference(value) }))
        }
        CollectionForm::Tree { root, .. } => Box::new(Tree::new(objects, field(root))),
        CollectionForm::Skips => Box::new(skips(objects, field("head"))),
        CollectionForm::Enums => {
            let keys = ids(objects, field("keyUniverse"));
            let there = keys.zip(ids(objects, field("vals"))).filter(|(_, value)| !value.is_null());
            Box::new(there.map(|(key, value)| Entry { key: Some(reference(key)), value: reference(value) }))
        }
        CollectionForm::Fields(names) => {
            let values = names.iter().filter_map(move |name| objects.field(object, name));
            Box::new(values.filter(|value| value.bits != 0).map(value))
        }
        CollectionForm::Keyed([key, value]) => {
            let entry = field(key).zip(field(value));
            Box::new(entry.into_iter().map(|(key, value)| Entry { key: Some(key), value }))
        }
        CollectionForm::Value(name) => Box::new(field(name).into_iter().map(value)),
        CollectionForm::Round => {
            let (first, count) = (number("takeIndex").unwrap_or(0), number("count").unwrap_or(0));
            let array = field("items");
            let around = ids(objects, array).skip(first).chain(ids(objects, array).take(first));
            Box::new(around.take(count).map(|id| value(reference(id))))
        }
        CollectionForm::Numbers(name) => Box::new(numbers(objects, field(name)).map(value)),
        CollectionForm::EnumBits => {
            let elements = field("elements");
            // A long, or an array of longs.
            let one = elements.filter(|elements| elements.kind == BasicType::Long);
            let words = one.into_iter().chain(numbers(objects, elements));
            let bits = words.flat_map(|word| (0..u64::BITS).map(move |bit| word.bits & (1 << bit) != 0));
            let constants = ids(objects, field("universe")).zip(bits).filter(|(_, is_set)| *is_set);
            Box::new(constants.map(|(id, _)| value(reference(id))))
        }
        CollectionForm::Empty
        | CollectionForm::Wraps(_)
        | CollectionForm::KeysOf(_)
        | CollectionForm::ValuesOf(_)
        | CollectionForm::PartOf(_) => Box::new(std::iter::empty()),
    }
}

/// Returns the IDs in an array that a field refers to.
pub(super) fn ids<'o, 'a>(
    objects: &'o ObjectReader<'a>,
    array: Option<Bits>,
) -> impl Iterator<Item = ObjectId> + 'o + use<'o, 'a> {
    let ids = array.and_then(|array| objects.ids(objects.object(array)?));
    ids.into_iter().flatten()
}

/// Returns the IDs in an array that a field refers to, in pairs.
fn pairs<'o, 'a>(
    objects: &'o ObjectReader<'a>,
    array: Option<Bits>,
) -> impl Iterator<Item = (ObjectId, ObjectId)> + 'o + use<'o, 'a> {
    let mut ids = ids(objects, array);
    std::iter::from_fn(move || Some((ids.next()?, ids.next()?)))
}

/// Returns the numbers in an array that a field refers to.
fn numbers<'o, 'a>(
    objects: &'o ObjectReader<'a>,
    array: Option<Bits>,
) -> impl Iterator<Item = Bits> + 'o + use<'o, 'a> {
    let array = array.and_then(|array| objects.primitives(objects.object(array)?));
    let (kind, bytes) = array.unwrap_or((BasicType::Byte, &[]));
    let id_size = objects.summary.id_size();
    let elements = bytes.chunks_exact(kind.dump_bytes(id_size));
    elements.filter_map(move |element| Some(Bits { kind, bits: be_value(element, 0, kind, id_size)? }))
}

/// Returns the entries of a table of chains of nodes, at most `most`.
fn buckets<'o, 'a>(
    objects: &'o ObjectReader<'a>,
    table: Option<Bits>,
    key: &'static str,
    value: &'static str,
    most: u32,
) -> impl Iterator<Item = Entry> + 'o + use<'o, 'a> {
    let nodes = table_nodes(objects, table).take(most as usize);
    nodes.filter_map(move |node| entry(objects, node, key, value))
}

/// Returns the nodes of a table of chains of nodes.
pub(super) fn table_nodes<'o, 'a>(
    objects: &'o ObjectReader<'a>,
    table: Option<Bits>,
) -> impl Iterator<Item = ObjectIndex> + 'o + use<'o, 'a> {
    let heads = ids(objects, table).filter(|id| !id.is_null());
    heads.flat_map(move |head| {
        let head = objects.object(reference(head));
        // A TreeBin of a ConcurrentHashMap comes before its nodes.
        let first = head.and_then(|head| objects.field(head, "first"));
        chain(objects, first.or(head.map(|head| reference(id_of(objects, head)))), "next")
    })
}

/// Returns the key and the value of a node.
fn entry(objects: &ObjectReader<'_>, node: ObjectIndex, key: &str, value: &str) -> Option<Entry> {
    Some(Entry { key: Some(objects.field(node, key)?), value: objects.field(node, value)? })
}

/// Returns the object that a field refers to.
fn objects_in(objects: &ObjectReader<'_>, field: Option<Bits>) -> impl Iterator<Item = ObjectIndex> + use<> {
    field.and_then(|field| objects.object(field)).into_iter()
}

fn id_of(objects: &ObjectReader<'_>, object: ObjectIndex) -> ObjectId {
    objects.graph.objects.addresses.id_of(object).unwrap_or_default()
}

/// Returns linked nodes, starting with the one that a field refers to.
pub(super) fn chain<'o, 'a>(
    objects: &'o ObjectReader<'a>,
    first: Option<Bits>,
    next: &'static str,
) -> impl Iterator<Item = ObjectIndex> + 'o + use<'o, 'a> {
    let first = first.and_then(|first| objects.object(first));
    // Brent's algorithm: each node is compared with the one at the last power of two of steps.
    let (mut mark, mut steps, mut power) = (first, 0u32, 1u32);
    std::iter::successors(first, move |node| {
        let next = objects.reference(*node, next)?;
        // Some lists are rings whose first node holds no element.
        if Some(next) == mark || Some(next) == first {
            return None;
        }
        steps += 1;
        if steps == power {
            (mark, steps, power) = (Some(next), 0, power.saturating_mul(2));
        }
        Some(next)
    })
}

/// Iterator over a binary tree, in the order of its keys.
struct Tree<'o, 'a> {
    objects: &'o ObjectReader<'a>,
    /// Nodes whose left subtree is finished, but not the nodes themselves.
    open: Vec<ObjectIndex>,
    next: Option<ObjectIndex>,
    /// Remaining number of steps.
    left: u32,
}

/// Maximum depth: a balanced tree of 2^64 nodes is less deep.
const DEEPEST: usize = 128;

impl<'o, 'a> Tree<'o, 'a> {
    fn new(objects: &'o ObjectReader<'a>, root: Option<Bits>) -> Self {
        let next = root.and_then(|root| objects.object(root));
        Self { objects, open: Vec::new(), next, left: objects.graph.objects.len() }
    }
}

impl Iterator for Tree<'_, '_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        while let Some(node) = self.next {
            if self.open.len() >= DEEPEST || self.left == 0 {
                return None;
            }
            self.left -= 1;
            self.open.push(node);
            self.next = self.objects.reference(node, "left");
        }
        let node = self.open.pop()?;
        self.next = self.objects.reference(node, "right");
        let field = |name| self.objects.field(node, name).unwrap_or(NULL);
        Some(Entry { key: Some(field("key")), value: field("value") })
    }
}

/// Returns the lowest level of a ConcurrentSkipListMap.
fn skips<'o, 'a>(
    objects: &'o ObjectReader<'a>,
    top: Option<Bits>,
) -> impl Iterator<Item = Entry> + 'o + use<'o, 'a> {
    // `head` is the topmost index; following `down` leads to the lowest one; its node is the first of the list, without
    // a key.
    let lowest = chain(objects, top, "down").last();
    let first = lowest.and_then(|index| objects.field(index, "node"));
    let entries = chain(objects, first, "next").filter_map(move |node| {
        let key = objects.field(node, "key").filter(|key| key.bits != 0)?;
        // `value` up to JDK 8.
        let value = objects.field(node, "val").or_else(|| objects.field(node, "value"))?;
        Some(Entry { key: Some(key), value })
    });
    entries.filter(|entry| entry.value.bits != 0)
}
