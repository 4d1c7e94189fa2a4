//! Iteration over the contents of collections.
//!
//! Every walk ends: it takes no more steps than the dump has objects, and cyclic chains stop at the repetition.

use std::ops::Range;

use hprof_values::{BasicType, ObjectId, be_ids, be_value};

use super::known::{CollectionForm, Nulls};
use super::{Entry, NULL};
use crate::objects::reader::{Bits, ObjectReader};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;
use hprof_index::objects::fields::Fields;
use hprof_index::objects::object_table::BLOCK;
use hprof_index::objects::reader::ObjectRecord;

type Entries<'o> = Box<dyn Iterator<Item = Entry> + 'o>;

fn value(value: Bits) -> Entry {
    Entry { key: None, value }
}

fn reference(id: ObjectId) -> Bits {
    Bits { kind: BasicType::Object, bits: id.0 }
}

/// A node of a chain or a tree, and its fields: finding its record takes longer than everything else, so that it is read
/// once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node<'a> {
    pub(super) object: ObjectIndex,
    fields: Option<Fields<'a>>,
}

impl<'a> Node<'a> {
    fn read(objects: &ObjectReader<'a>, object: ObjectIndex) -> Self {
        Self { object, fields: objects.fields(object) }
    }

    /// Returns the node that a field refers to.
    pub(super) fn from_field(objects: &ObjectReader<'a>, field: Option<Bits>) -> Option<Self> {
        Some(Self::read(objects, objects.object(field?)?))
    }

    /// Returns the value of a field of the node.
    pub(super) fn value(&self, name: &str) -> Option<Bits> {
        self.fields?.value(name)
    }

    /// Returns the entry of a node, from its fields for key and value.
    fn entry(&self, key: &str, value: &str) -> Option<Entry> {
        Some(Entry { key: Some(self.value(key)?), value: self.value(value)? })
    }
}

/// Returns the contents of an object with this representation; if that has an array, only the contents of the given rows of the
/// array.
pub(super) fn entries<'o, 'a>(
    objects: &'o ObjectReader<'a>,
    object: ObjectIndex,
    class: ClassNumber,
    form: CollectionForm,
    rows: Range<usize>,
) -> Entries<'o> {
    let is_first = rows.start == 0;
    let fields = objects.fields_of(object, class);
    let field = move |name: &str| fields?.value(name);
    let number = move |name: &str| usize::try_from(field(name)?.integer()?).ok();
    match form {
        CollectionForm::Array { array, size } => {
            let most = size.map_or(usize::MAX, |size| number(size).unwrap_or(0));
            let rows = rows.start..rows.end.min(most);
            Box::new(ids_in(objects, field(array), rows).map(|id| value(reference(id))))
        }
        CollectionForm::Scattered(array) => {
            let there = ids_in(objects, field(array), rows).filter(|id| !id.is_null());
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
            let start = Node::from_field(objects, field(first));
            let start = match nulls {
                Nulls::None => chain(objects, start, "prev").last(),
                _ => start,
            };
            let nodes = chain(objects, start, next).skip(without);
            let items = nodes.filter_map(move |node| node.value(item));
            Box::new(items.filter(move |item| item.bits != 0 || nulls != Nulls::None).map(value))
        }
        CollectionForm::Buckets { table, key, value, .. } => {
            let most = objects.graph.objects.len();
            // The table to which a ConcurrentHashMap moves its entries. The node that replaces moved ones has no value.
            let moved = field("nextTable");
            let is_concurrent = moved.is_some();
            let tables = [field(table), moved].into_iter();
            let entries =
                tables.flat_map(move |table| buckets(objects, table, rows.clone(), key, value, most));
            let entries = entries.filter(move |entry| !is_concurrent || entry.value.bits != 0);
            // Android up to 6.
            let of_null = Node::from_field(objects, field("entryForNullKey").filter(|_| is_first));
            let of_null = of_null.into_iter().filter_map(move |node| node.entry(key, value));
            Box::new(entries.chain(of_null))
        }
        CollectionForm::Segments => {
            let segments = ids(objects, field("segments"));
            let segments = segments.filter_map(|id| objects.graph.objects.addresses.index_of(id));
            let tables = segments.map(|segment| objects.field(segment, "table"));
            let mut left = objects.graph.objects.len();
            let entries =
                tables.flat_map(move |table| buckets(objects, table, 0..usize::MAX, "key", "value", left));
            Box::new(entries.take_while(move |_| {
                left = left.saturating_sub(1);
                left > 0
            }))
        }
        CollectionForm::Chained => {
            let nodes = chain(objects, Node::from_field(objects, field("head")), "after");
            Box::new(nodes.filter_map(move |node| node.entry("key", "value")))
        }
        CollectionForm::Pairs { table, .. } => {
            let there = pairs(objects, field(table), rows).filter(|(key, _)| !key.is_null());
            Box::new(there.map(|(key, value)| Entry { key: Some(reference(key)), value: reference(value) }))
        }
        CollectionForm::Dense { table, size } => {
            let there = pairs(objects, field(table), rows).take(number(size).unwrap_or(0));
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

/// Returns the IDs in the given rows of an array that a field refers to.
fn ids_in<'o, 'a>(
    objects: &'o ObjectReader<'a>,
    array: Option<Bits>,
    rows: Range<usize>,
) -> impl Iterator<Item = ObjectId> + 'o + use<'o, 'a> {
    let id_size = objects.summary.id_size();
    let all = match array.and_then(|array| objects.record(objects.object(array)?)) {
        Some(ObjectRecord::ObjectArray(array)) => array.elements,
        _ => &[],
    };
    let [start, end] = [rows.start, rows.end].map(|row| row.saturating_mul(id_size.bytes()).min(all.len()));
    be_ids(all.get(start..end).unwrap_or_default(), id_size)
}

/// Returns the IDs in the given rows of an array that a field refers to, in pairs.
fn pairs<'o, 'a>(
    objects: &'o ObjectReader<'a>,
    array: Option<Bits>,
    rows: Range<usize>,
) -> impl Iterator<Item = (ObjectId, ObjectId)> + 'o + use<'o, 'a> {
    let mut ids = ids_in(objects, array, rows);
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

/// Returns the entries in the given rows of a table of chains of nodes, at most `most`.
fn buckets<'o, 'a>(
    objects: &'o ObjectReader<'a>,
    table: Option<Bits>,
    rows: Range<usize>,
    key: &'static str,
    value: &'static str,
    most: u32,
) -> impl Iterator<Item = Entry> + 'o + use<'o, 'a> {
    let nodes = nodes_in(objects, table, rows).take(most as usize);
    nodes.filter_map(move |node| node.entry(key, value))
}

/// Returns the nodes of a table of chains of nodes.
pub(super) fn table_nodes<'o, 'a>(
    objects: &'o ObjectReader<'a>,
    table: Option<Bits>,
) -> impl Iterator<Item = ObjectIndex> + 'o + use<'o, 'a> {
    nodes_in(objects, table, 0..usize::MAX).map(|node| node.object)
}

/// Returns the nodes in the given rows of a table of chains of nodes; if these are not all, in the order of the chains'
/// addresses.
fn nodes_in<'o, 'a>(
    objects: &'o ObjectReader<'a>,
    table: Option<Bits>,
    rows: Range<usize>,
) -> impl Iterator<Item = Node<'a>> + 'o + use<'o, 'a> {
    let is_part = rows != (0..usize::MAX);
    let mut heads = ids_in(objects, table, rows).filter(|id| !id.is_null());
    // A part of a large table: hashes scatter its nodes over the heap. In order of address, each node, its key and its
    // value are near those before.
    let mut sorted: Vec<ObjectId> = if is_part { heads.by_ref().collect() } else { Vec::new() };
    sorted.sort_unstable();
    let heads = heads.filter_map(|head| Node::from_field(objects, Some(reference(head))));
    sorted_nodes(objects, sorted).chain(heads).flat_map(move |head| {
        // A TreeBin of a ConcurrentHashMap comes before its nodes.
        let first = head.value("first");
        chain(objects, if first.is_some() { Node::from_field(objects, first) } else { Some(head) }, "next")
    })
}

/// Reads nodes in ascending order, those of a block together.
fn sorted_nodes<'o, 'a>(
    objects: &'o ObjectReader<'a>,
    ids: Vec<ObjectId>,
) -> impl Iterator<Item = Node<'a>> + 'o + use<'o, 'a> {
    let table = &objects.graph.objects;
    let mut nodes = ids.into_iter().filter_map(|id| table.addresses.index_of(id)).peekable();
    let blocks = std::iter::from_fn(move || {
        let mut last = nodes.next()?;
        let block = last.0 / BLOCK;
        let mut wanted = 1u64 << (last.0 % BLOCK);
        // A node that is in the table twice is read twice.
        while let Some(next) = nodes.next_if(|next| next.0 / BLOCK == block && *next > last) {
            wanted |= 1 << (next.0 % BLOCK);
            last = next;
        }
        let mut read: Vec<Node<'a>> = Vec::with_capacity(wanted.count_ones() as usize);
        objects.records_of_block(ObjectIndex(block * BLOCK), wanted, |object, record| {
            let fields = match (record, table.class(object)) {
                (Some(ObjectRecord::Instance(record)), Some(class)) => {
                    Some(Fields::new(objects.summary, class, record.fields))
                }
                _ => None,
            };
            read.push(Node { object, fields });
        });
        Some(read)
    });
    blocks.flatten()
}

/// Returns linked nodes, starting with this one.
pub(super) fn chain<'o, 'a>(
    objects: &'o ObjectReader<'a>,
    first: Option<Node<'a>>,
    next: &'static str,
) -> impl Iterator<Item = Node<'a>> + 'o + use<'o, 'a> {
    let start = first.map(|first| first.object);
    // Brent's algorithm: each node is compared with the one at the last power of two of steps.
    let (mut mark, mut steps, mut power) = (start, 0u32, 1u32);
    std::iter::successors(first, move |node| {
        let next = objects.object(node.value(next)?)?;
        // Some lists are rings whose first node holds no element.
        if Some(next) == mark || Some(next) == start {
            return None;
        }
        steps += 1;
        if steps == power {
            (mark, steps, power) = (Some(next), 0, power.saturating_mul(2));
        }
        Some(Node::read(objects, next))
    })
}

/// Iterator over a binary tree, in the order of its keys.
struct Tree<'o, 'a> {
    objects: &'o ObjectReader<'a>,
    /// Nodes whose left subtree is finished, but not the nodes themselves.
    open: Vec<Node<'a>>,
    next: Option<Node<'a>>,
    /// Remaining number of steps.
    left: u32,
}

/// Maximum depth: a balanced tree of 2^64 nodes is less deep.
const DEEPEST: usize = 128;

impl<'o, 'a> Tree<'o, 'a> {
    fn new(objects: &'o ObjectReader<'a>, root: Option<Bits>) -> Self {
        let next = Node::from_field(objects, root);
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
            self.next = Node::from_field(self.objects, node.value("left"));
        }
        let node = self.open.pop()?;
        self.next = Node::from_field(self.objects, node.value("right"));
        let field = |name| node.value(name).unwrap_or(NULL);
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
    let lowest = chain(objects, Node::from_field(objects, top), "down").last();
    let first = lowest.and_then(|index| index.value("node"));
    let entries = chain(objects, Node::from_field(objects, first), "next").filter_map(move |node| {
        let key = node.value("key").filter(|key| key.bits != 0)?;
        // `value` up to JDK 8.
        let value = node.value("val").or_else(|| node.value("value"))?;
        Some(Entry { key: Some(key), value })
    });
    entries.filter(|entry| entry.value.bits != 0)
}
