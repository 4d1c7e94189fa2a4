//! Use of a collection's array, and the size that it would need: possible savings.
//!
//! Covers only the collections of `java.util` and of Android, which a program can replace by others: a subclass may
//! have state of its own. Queues of `java.util.concurrent` wait for work when they are empty, and immutable collections
//! are as small as possible; for both, only their arrays are known here.

use super::iterate::Node;
use super::known::CollectionForm;
use super::{Collections, Entry, Forms, KnownClass, NULL, iterate};
use crate::objects::reader::{Bits, FieldPlace, ObjectReader};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_values::BasicType;

/// Maximum number of fields of a collection, including its superclasses: none has as many.
const MAX_FIELDS: usize = 64;
/// Load factor of hash tables that do not store one.
const LOAD_FACTOR: f32 = 0.75;

/// Rule for the number of slots that a collection needs for its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotRule {
    /// One per element.
    Slots,
    /// One per element, and one that stays empty.
    Ring,
    /// A power of two; the elements are at most that times the load factor.
    Hash,
    /// A power of two; the elements are fewer than that times the load factor, since the table grows when it reaches
    /// that number.
    HashBelow,
    /// Like `HashBelow`, with any number of slots.
    AnyHash,
    /// Twice a power of two that is at least one and a half times the number of elements, and at least four.
    Identity,
    /// Two per element.
    Dense,
    /// As many as the array has.
    All,
}

impl SlotRule {
    /// Returns the number of slots that this many elements need. `load` is the load factor stored in the collection.
    pub fn slots(self, elements: u64, load: Option<f32>) -> u64 {
        let load = load.filter(|load| load.is_finite() && *load > 0.0).unwrap_or(LOAD_FACTOR);
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let fits = |slots: u64| (slots as f32 * load) as u64 >= elements;
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let fits_below = |slots: u64| (slots as f32 * load).ceil() as u64 > elements;
        let power_of_two = |fits: &dyn Fn(u64) -> bool| {
            (0..u64::BITS - 1).map(|bit| 1 << bit).find(|slots| fits(*slots)).unwrap_or(u64::MAX)
        };
        match self {
            Self::Slots => elements,
            Self::Ring => elements.saturating_add(1),
            Self::Hash => power_of_two(&fits),
            Self::HashBelow => power_of_two(&fits_below),
            Self::AnyHash => {
                // The estimate may be off by one: the JVM multiplies in 32 bits.
                #[allow(
                    clippy::cast_precision_loss,
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss
                )]
                let about = (elements as f32 / load) as u64;
                (about.saturating_sub(2).max(1)..about.saturating_add(3))
                    .find(|slots| fits(*slots))
                    .unwrap_or(u64::MAX)
            }
            Self::Identity => {
                let entries = elements.saturating_mul(3).div_ceil(2).max(4);
                entries.checked_next_power_of_two().map_or(u64::MAX, |entries| entries.saturating_mul(2))
            }
            Self::Dense => elements.saturating_mul(2),
            Self::All => u64::MAX,
        }
    }
}

/// Location of the number of elements in the instances of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// In a field.
    Number(FieldPlace),
    /// By the start and end of a ring.
    Between(FieldPlace, FieldPlace),
    /// In a field and in cells; there are no cells if the other field is null.
    Cells(FieldPlace, FieldPlace),
    /// By the length of its array.
    Length,
    /// Only by iterating over the entries.
    Entries,
}

/// Memory use of the instances of a class.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// `true` if it counts as waste: a list, set, map or deque that a program may have created too large or for
    /// nothing.
    pub is_counted: bool,
    /// Location of the reference to the collection that an instance merely wraps.
    pub wraps: Option<FieldPlace>,
    /// Location of the array.
    pub array: Option<FieldPlace>,
    /// Rule for the number of slots that the array needs.
    pub needs: SlotRule,
    /// Location of the number of elements.
    pub count: Count,
    /// Location of the load factor.
    pub load: Option<FieldPlace>,
    /// `true` if elements are in chains of nodes by hash.
    pub is_hash: bool,
    /// `true` if the class is LinkedList.
    pub is_linked: bool,
    /// `true` if an instance consists only of itself and its array: it references nothing else.
    pub is_plain: bool,
}

impl Usage {
    /// Returns the load factor that an instance stores.
    pub fn load_factor(&self, objects: &ObjectReader<'_>, fields: &[u8]) -> Option<f32> {
        objects.value_at(fields, self.load?).filter(|load| load.kind == BasicType::Float).map(Bits::as_float)
    }
}

impl Forms {
    /// Returns, by class number, how the class uses memory, if it is a collection. Only classes of the JDK and of
    /// Android count.
    pub fn usages(&self, summary: &Summary) -> Vec<Option<Usage>> {
        let of_class = |(number, known): (u32, &Option<KnownClass>)| {
            let class = ClassNumber(number);
            let name = summary.class_name(summary.class(class)?);
            let is_library = name.starts_with("java.util.") || name.starts_with("android.util.");
            let usage = usage(summary, class, (*known)?)?;
            // A subclass, of a program or of the JDK, may have state of its own.
            Some(Usage { is_counted: usage.is_counted && is_library, ..usage })
        };
        (0u32..).zip(&self.by_class).map(of_class).collect()
    }
}

fn usage(summary: &Summary, class: ClassNumber, (_, form, known): KnownClass) -> Option<Usage> {
    let name = summary.class_name(summary.class(known)?);
    let table = summary.class_table();
    // Fields of subclasses may have the same names.
    let below = table.bytes(class).checked_sub(table.bytes(known))?;
    let mut at = 0u64;
    let slots: Vec<_> = hprof_index::objects::fields::slots(summary, class)
        .take(MAX_FIELDS)
        .filter(|slot| {
            let start = at;
            at += slot.kind.dump_bytes(summary.id_size()) as u64;
            start >= below
        })
        .collect();
    let place = |field: &str| slots.iter().find(|slot| slot.name == field).map(|slot| slot.place);
    let none = Usage {
        is_counted: true,
        wraps: None,
        array: None,
        needs: SlotRule::All,
        count: Count::Entries,
        load: None,
        is_hash: false,
        is_linked: false,
        is_plain: false,
    };
    let references = slots.iter().filter(|slot| slot.kind == BasicType::Object).count();
    let is_plain = references == 1 && below == 0;
    let number = |field: &str| place(field).map_or(Count::Entries, Count::Number);
    let concurrent = name.starts_with("java.util.concurrent.");
    let is_queue = concurrent && (name.ends_with("Queue") || name.ends_with("Deque"));
    Some(match form {
        CollectionForm::Array { array, size } => {
            let count = size.map_or(Count::Length, number);
            let needs = if size.is_some() { SlotRule::Slots } else { SlotRule::All };
            let is_counted =
                !is_queue && (size.is_some() || name == "java.util.concurrent.CopyOnWriteArrayList");
            Usage { is_counted, array: place(array), count, needs, is_plain, ..none }
        }
        CollectionForm::Ring => {
            let ends = place("head").zip(place("tail"));
            let count = ends.map_or(Count::Entries, |(head, tail)| Count::Between(head, tail));
            Usage { array: place("elements"), count, needs: SlotRule::Ring, is_plain, ..none }
        }
        CollectionForm::Buckets { table, size, .. } => {
            let cells = || Some(Count::Cells(place("baseCount")?, place("counterCells")?));
            let count = size.map_or_else(|| cells().unwrap_or(Count::Entries), number);
            let is_counted = !name.starts_with("java.lang.");
            let needs = match name {
                "java.util.Hashtable" => SlotRule::AnyHash,
                // WeakHashMap in older JDKs; in newer ones, half of that would be enough at the very limit.
                "java.util.concurrent.ConcurrentHashMap" | "java.util.WeakHashMap" => SlotRule::HashBelow,
                _ => SlotRule::Hash,
            };
            let load = place("loadFactor");
            Usage { is_counted, array: place(table), count, needs, load, is_hash: true, ..none }
        }
        CollectionForm::Chained => Usage {
            array: place("table"),
            count: number("size"),
            needs: SlotRule::Hash,
            load: place("loadFactor"),
            is_hash: true,
            ..none
        },
        CollectionForm::Pairs { table, size } => Usage {
            is_counted: name == "java.util.IdentityHashMap",
            array: place(table),
            count: size.map_or(Count::Entries, number),
            needs: SlotRule::Identity,
            ..none
        },
        CollectionForm::Dense { table, size } => {
            Usage { array: place(table), count: number(size), needs: SlotRule::Dense, ..none }
        }
        CollectionForm::Linked { size, .. } => {
            let is_linked = name == "java.util.LinkedList";
            Usage { is_counted: is_linked, is_linked, count: number(size), ..none }
        }
        CollectionForm::Tree { size, .. } => Usage { count: number(size), ..none },
        CollectionForm::Enums => Usage { array: place("vals"), count: number("size"), ..none },
        CollectionForm::Skips | CollectionForm::Segments | CollectionForm::EnumBits => none,
        CollectionForm::Wraps(field) | CollectionForm::KeysOf(field) | CollectionForm::ValuesOf(field) => {
            // A map's views belong to the map.
            let is_view = name.contains('$')
                && !name.starts_with("java.util.Collections$")
                && !name.ends_with("$KeySetView");
            Usage { is_counted: !is_queue && !is_view, wraps: Some(place(field)?), ..none }
        }
        CollectionForm::Round => Usage { is_counted: false, array: place("items"), ..none },
        CollectionForm::Scattered(array) => Usage { is_counted: false, array: place(array), ..none },
        CollectionForm::Fields(_)
        | CollectionForm::Keyed(_)
        | CollectionForm::Value(_)
        | CollectionForm::Empty
        | CollectionForm::PartOf(_)
        | CollectionForm::Numbers(_) => {
            return None;
        }
    })
}

/// Maximum number of segments of a ConcurrentHashMap up to JDK 7 that are summed: the default is 16.
const MAX_SEGMENTS: usize = 64;
/// Maximum number of nodes of a skip list examined.
const MAX_NODES: usize = 4;
/// Maximum number of levels of a skip list above the lowest.
const MAX_LEVELS: usize = 64;

impl Collections<'_, '_> {
    /// Returns the number of elements of a collection that does not store its size: 0, 1, or 2 for two or more. Takes a few
    /// steps, whatever the dump contains.
    pub fn at_most_one(&self, object: ObjectIndex) -> Option<u32> {
        let (_, form, class) = self.form(object)?;
        let field = |name| self.objects.field_of(object, class, name);
        match form {
            CollectionForm::EnumBits => {
                let elements = field("elements")?;
                let count = match elements.kind {
                    BasicType::Long => u64::from(elements.bits.count_ones()),
                    _ => u64::try_from(field("size")?.integer()?).ok()?,
                };
                Some(u32::try_from(count.min(2)).unwrap_or(2))
            }
            CollectionForm::Skips => {
                let nodes = self.lowest_nodes(object, class);
                let holds = |node: &&ObjectIndex| {
                    let key = self.objects.reference(**node, "key");
                    let value = || {
                        self.objects
                            .reference(**node, "val")
                            .or_else(|| self.objects.reference(**node, "value"))
                    };
                    key.is_some() && value().is_some()
                };
                match nodes.iter().filter(holds).count() {
                    found if nodes.len() < MAX_NODES || found > 1 => {
                        Some(u32::try_from(found.min(2)).unwrap_or(2))
                    }
                    _ => None,
                }
            }
            CollectionForm::Segments => {
                let segments = iterate::ids(self.objects, field("segments")).take(MAX_SEGMENTS + 1);
                let counts = segments.enumerate().map(|(at, id)| {
                    match self.objects.graph.objects.addresses.index_of(id) {
                        _ if at == MAX_SEGMENTS => None,
                        None => Some(0),
                        Some(segment) => u64::try_from(self.objects.field(segment, "count")?.integer()?).ok(),
                    }
                });
                let count = counts.sum::<Option<u64>>()?;
                Some(u32::try_from(count.min(2)).unwrap_or(2))
            }
            // Slots that are counted in cells are in use.
            CollectionForm::Buckets { size: None, .. } => {
                field("counterCells").filter(|cells| cells.bits == 0)?;
                u32::try_from(field("baseCount")?.integer()?.clamp(0, 2)).ok()
            }
            CollectionForm::Empty => Some(0),
            // Immutable sets.
            CollectionForm::Scattered(_) => u32::try_from(field("size")?.integer()?.clamp(0, 2)).ok(),
            CollectionForm::Array { array, size: None } => {
                let length = self.objects.ids(self.objects.object(field(array)?)?)?.len();
                Some(u32::try_from(length.min(2)).unwrap_or(2))
            }
            _ => u32::try_from(self.size(object, form, class)?.min(2)).ok(),
        }
    }

    /// Returns the only entry of a collection with one entry, in a few steps in addition to a scan of its own table.
    pub fn only_entry(&self, object: ObjectIndex) -> Option<Entry> {
        let (_, form, class) = self.form(object)?;
        let field = |node, name| self.objects.field(node, name);
        let node_of = |table| {
            let table = self.objects.field_of(object, class, table);
            iterate::table_nodes(self.objects, table).next()
        };
        match form {
            CollectionForm::Buckets { table, key, value, .. } => {
                let node = node_of(table)?;
                Some(Entry { key: field(node, key), value: field(node, value)? })
            }
            CollectionForm::Chained => {
                let node = node_of("table")?;
                Some(Entry { key: field(node, "key"), value: field(node, "value")? })
            }
            CollectionForm::Skips => {
                let mut nodes = self.lowest_nodes(object, class).into_iter();
                let node = nodes.find(|node| self.objects.reference(*node, "key").is_some())?;
                Some(Entry {
                    key: field(node, "key"),
                    value: field(node, "val").or_else(|| field(node, "value"))?,
                })
            }
            // Enum constants are held by their class.
            CollectionForm::EnumBits => Some(Entry { key: None, value: NULL }),
            CollectionForm::Segments
            | CollectionForm::Wraps(_)
            | CollectionForm::KeysOf(_)
            | CollectionForm::ValuesOf(_) => None,
            _ => iterate::entries(self.objects, object, class, form, 0..usize::MAX).next(),
        }
    }

    /// Returns the first nodes of the lowest level of a skip list.
    fn lowest_nodes(&self, object: ObjectIndex, class: ClassNumber) -> Vec<ObjectIndex> {
        let head = Node::from_field(self.objects, self.objects.field_of(object, class, "head"));
        let lowest = iterate::chain(self.objects, head, "down").take(MAX_LEVELS).last();
        let node = Node::from_field(self.objects, lowest.and_then(|index| index.value("node")));
        iterate::chain(self.objects, node, "next").take(MAX_NODES).map(|node| node.object).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_what_the_jdk_makes_for_so_many_elements() {
        // java.util.HashMap: threshold = (int) (capacity * loadFactor), and it grows when it holds more.
        for (elements, slots) in
            [(0, 1), (1, 2), (2, 4), (3, 4), (4, 8), (6, 8), (7, 16), (12, 16), (13, 32), (48, 64)]
        {
            assert_eq!(SlotRule::Hash.slots(elements, None), slots, "{elements}");
        }
        assert_eq!((SlotRule::Hash.slots(12, Some(1.0)), SlotRule::Hash.slots(17, Some(0.5))), (16, 64));
        assert_eq!(
            (SlotRule::Hash.slots(12, Some(f32::NAN)), SlotRule::Hash.slots(12, Some(-1.0))),
            (16, 16)
        );
        // Sizes to which tables of ConcurrentHashMap grow in JDK 17 and 25, and of WeakHashMap in JDK 17, from a
        // capacity of 1.
        let grown =
            [(1, 2), (2, 4), (3, 8), (5, 8), (6, 16), (11, 16), (12, 32), (23, 32), (24, 64), (96, 256)];
        for (elements, slots) in grown {
            assert_eq!(SlotRule::HashBelow.slots(elements, None), slots, "{elements}");
        }
        for elements in 1..2000u64 {
            let slots = SlotRule::AnyHash.slots(elements, None);
            assert!(slots * 3 / 4 >= elements && (slots - 1) * 3 / 4 < elements, "{elements} {slots}");
        }
        // java.util.IdentityHashMap.capacity: 32 entries, 64 slots, up to 21 elements.
        for (elements, slots) in [(1, 8), (2, 8), (3, 16), (5, 16), (6, 32), (21, 64), (22, 128)] {
            assert_eq!(SlotRule::Identity.slots(elements, None), slots, "{elements}");
        }
        assert_eq!(
            (SlotRule::Slots.slots(5, None), SlotRule::Ring.slots(5, None), SlotRule::Dense.slots(5, None)),
            (5, 6, 10)
        );
        for needs in [
            SlotRule::Slots,
            SlotRule::Ring,
            SlotRule::Hash,
            SlotRule::HashBelow,
            SlotRule::AnyHash,
            SlotRule::Identity,
            SlotRule::Dense,
        ] {
            assert!(needs.slots(u64::MAX, None) >= 1 << 63, "{needs:?}");
        }
    }
}
