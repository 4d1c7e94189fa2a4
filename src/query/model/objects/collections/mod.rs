//! Contents of collections: elements and entries of the JDK's lists, sets, maps and queues, and of Android's.
//!
//! Collections are read by the fields of the classes that implement them, from JDK 6 to 25. A class that extends a known
//! one is read like it. Elements come lazily, in the order in which the collection itself would give them, or in that of
//! its table.

mod iterate;
mod known;
pub mod usage;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::objects::fields::Fields;
use hprof_values::{BasicType, ObjectId};

use super::reader::{Bits, ObjectReader};
use known::{CollectionForm, KNOWN, MASKS, OLDER};

/// Kind of a collection, as seen by its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CollectionKind {
    /// Elements with indices: lists, queues, arrays in wrappers.
    List,
    /// Elements without indices.
    Set,
    /// Keys and values.
    Map,
    /// One value, or none: Optional, atomic and other references.
    Holder,
}

impl CollectionKind {
    /// Returns the name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Set => "set",
            Self::Map => "map",
            Self::Holder => "holder",
        }
    }
}

/// An element, or an entry of a map. Values are references, possibly null, except for holders of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Key, in maps.
    pub key: Option<Bits>,
    /// Element, or value of a map.
    pub value: Bits,
}

/// A collection in the dump: its kind, and how its elements are read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Collection {
    /// Kind of the collection.
    pub kind: CollectionKind,
    /// Number of elements according to the collection, if it stores one.
    pub size: Option<u64>,
    form: CollectionForm,
    object: ObjectIndex,
    /// Class that determines how it is read; the object may be an instance of a subclass.
    class: ClassNumber,
    /// Part of the underlying map's entries that forms the elements.
    of_entries: OfEntries,
    /// Number of elements omitted at the start, and number of elements taken after these.
    part: (usize, usize),
    /// Rows of the underlying array that contain its elements, if that is split.
    rows: (usize, usize),
}

/// Part of a map's entries that forms the elements of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OfEntries {
    All,
    Keys,
    Values,
}

/// All rows of an array.
const ALL_ROWS: (usize, usize) = (0, usize::MAX);

/// Minimum number of rows of a part of a split array.
const LEAST_ROWS: usize = 1 << 16;
/// Maximum number of rows of a part of a split array.
const MOST_ROWS: usize = 1 << 22;
/// Number of parts of a split array per thread: they take different times.
const PARTS_OF_A_THREAD: usize = 2;

/// Maximum nesting of wrapped collections: wrappers of wrappers are rare, and a cycle of them has no end.
const MAX_WRAPPERS: usize = 32;

/// Maximum length in bytes of field names that determine how a class stores its elements; longer ones are ignored.
const LONGEST_FIELD: usize = 32;

/// Maximum number of cells of a ConcurrentHashMap that are summed. The JVM creates no more than there are processors.
const MAX_CELLS: usize = 1 << 12;

/// Kind and form of a known collection class, and the number of the class.
type KnownClass = (CollectionKind, CollectionForm, ClassNumber);

/// Representations of the collection classes of a dump.
#[derive(Debug)]
pub struct Forms {
    /// By class number: how instances are read.
    by_class: Vec<Option<KnownClass>>,
    /// Objects that represent something that cannot be stored as such; null if the dump has none.
    masks: [ObjectId; MASKS.len()],
}

/// Representation of the instances of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfClass {
    /// Kind of the collections.
    pub kind: CollectionKind,
    /// Field of the collection that they wrap.
    pub wraps: Option<&'static str>,
    /// `true` if the class itself is known, rather than a superclass.
    pub is_known_itself: bool,
}

/// Reader of the collections of a dump.
#[derive(Debug)]
pub struct Collections<'o, 'a> {
    objects: &'o ObjectReader<'a>,
    forms: Arc<Forms>,
}

impl Forms {
    /// Returns the representations of the collection classes of a dump, which are found once.
    pub fn for_summary(summary: &Summary) -> Arc<Self> {
        summary.get_or_compute(|| Self::new(summary))
    }

    /// Finds the classes of collections.
    fn new(summary: &Summary) -> Self {
        let mut by_name: FxHashMap<&str, Vec<(CollectionKind, CollectionForm)>> = FxHashMap::default();
        // By field name: `true` if a class has the field, declared or inherited. Thousands of classes above one another
        // may have the name of a collection.
        let mut having: FxHashMap<&[u8], Vec<bool>> = FxHashMap::default();
        for (name, kind, form) in KNOWN.iter().chain(OLDER) {
            by_name.entry(name).or_default().push((*kind, *form));
            if let Some(field) = form.required_field() {
                let none = || vec![false; summary.classes().len()];
                having.entry(field.as_bytes()).or_insert_with(none);
            }
        }
        for (number, class) in summary.numbered_classes() {
            for (name, _) in summary.raw_fields(class).filter(|(name, _)| name.len() <= LONGEST_FIELD) {
                if let Some(has) = having.get_mut(name).and_then(|having| having.get_mut(number.0 as usize)) {
                    *has = true;
                }
            }
        }
        having.values_mut().for_each(|having| summary.class_table().add_subclasses(having));
        let own = summary.numbered_classes().map(|(number, class)| {
            let forms = by_name.get(summary.class_name(class))?;
            let has = |field: &str| {
                let having = having.get(field.as_bytes()).and_then(|having| having.get(number.0 as usize));
                having.copied().unwrap_or(false)
            };
            let (kind, form) = forms.iter().find(|(_, form)| form.required_field().is_none_or(has))?;
            Some((*kind, *form, number))
        });
        let own: Vec<Option<KnownClass>> = own.collect();
        // A class is read like its nearest known superclass.
        let by_class = summary.class_table().inherit(&own);
        let masks = MASKS.map(|(class, field)| {
            let mut classes = summary.classes().iter().filter(|row| summary.is_named(row, class));
            let mut statics = classes.next().into_iter().flat_map(|row| summary.statics(row));
            statics.find(|(name, _, _)| *name == field).map_or(ObjectId::NULL, |(_, _, id)| ObjectId(id))
        });
        Self { by_class, masks }
    }

    /// Returns the representation of the instances of a class, if they are collections: the collection that they wrap,
    /// if any, and whether the class itself is known.
    pub fn of_class(&self, class: ClassNumber) -> Option<OfClass> {
        let (kind, form, known) = self.by_class.get(class.0 as usize).copied().flatten()?;
        let wraps = match form {
            CollectionForm::Wraps(field)
            | CollectionForm::KeysOf(field)
            | CollectionForm::ValuesOf(field)
            | CollectionForm::PartOf(field) => Some(field),
            _ => None,
        };
        Some(OfClass { kind, wraps, is_known_itself: known == class })
    }
}

impl<'o, 'a> Collections<'o, 'a> {
    /// Creates a reader of the collections among these objects.
    pub fn new(objects: &'o ObjectReader<'a>) -> Self {
        Self::with(objects, Forms::for_summary(objects.summary))
    }

    /// Creates a reader of the collections among these objects, with representations that were determined before.
    pub fn with(objects: &'o ObjectReader<'a>, forms: Arc<Forms>) -> Self {
        Self { objects, forms }
    }

    /// Returns the kind of collection that the instances of a class are, if they are collections.
    pub fn kind_of(&self, class: ClassNumber) -> Option<CollectionKind> {
        self.forms.of_class(class).map(|of| of.kind)
    }

    /// Returns an object as a collection, if it is one.
    pub fn collection(&self, object: ObjectIndex) -> Option<Collection> {
        let (kind, mut form, mut class) = self.form(object)?;
        let (mut object, mut of_entries) = (object, OfEntries::All);
        let mut part = (0, usize::MAX);
        for _ in 0..MAX_WRAPPERS {
            let field = match form {
                CollectionForm::Wraps(field) => field,
                CollectionForm::KeysOf(field) => {
                    of_entries = OfEntries::Keys;
                    field
                }
                CollectionForm::ValuesOf(field) => {
                    of_entries = OfEntries::Values;
                    field
                }
                CollectionForm::PartOf(field) => {
                    let number =
                        |name| usize::try_from(self.objects.field_of(object, class, name)?.integer()?).ok();
                    let (offset, size) = (number("offset")?, number("size")?);
                    part = (offset.saturating_add(part.0), size.min(part.1));
                    field
                }
                _ => {
                    let size = match part.1 {
                        usize::MAX => self.size(object, form, class),
                        size => Some(size as u64),
                    };
                    return Some(Collection {
                        kind,
                        size,
                        form,
                        object,
                        class,
                        of_entries,
                        part,
                        rows: ALL_ROWS,
                    });
                }
            };
            object = self.objects.object(self.objects.field_of(object, class, field)?)?;
            (_, form, class) = self.form(object)?;
        }
        None
    }

    fn form(&self, object: ObjectIndex) -> Option<KnownClass> {
        let class = self.objects.graph.objects.class(object)?;
        self.forms.by_class.get(class.0 as usize).copied().flatten()
    }

    /// Returns the number of elements that a collection stores.
    fn size(&self, object: ObjectIndex, form: CollectionForm, class: ClassNumber) -> Option<u64> {
        let field = |name| self.objects.field_of(object, class, name);
        let number = |name| u64::try_from(field(name)?.integer()?).ok();
        match form {
            CollectionForm::Array { size: Some(size), .. }
            | CollectionForm::Linked { size, .. }
            | CollectionForm::Buckets { size: Some(size), .. }
            | CollectionForm::Pairs { size: Some(size), .. }
            | CollectionForm::Dense { size, .. }
            | CollectionForm::Tree { size, .. } => number(size),
            CollectionForm::Chained => number("size"),
            CollectionForm::Round => number("count"),
            // A ConcurrentHashMap counts in several cells.
            CollectionForm::Buckets { size: None, .. } => {
                let cells = field("counterCells");
                let cells = iterate::ids(self.objects, cells).take(MAX_CELLS).filter_map(|id| {
                    let cell = self.objects.graph.objects.addresses.index_of(id)?;
                    self.objects.field(cell, "value")?.integer()
                });
                let base = field("baseCount")?.integer()?;
                u64::try_from(cells.fold(base, i64::saturating_add)).ok()
            }
            _ => None,
        }
    }

    /// Returns the number of elements of a collection, if that is available without iterating over them, even if it is
    /// not stored as a number.
    pub fn count(&self, collection: &Collection) -> Option<u64> {
        let Collection { object, class, .. } = *collection;
        let field = |name| self.objects.field_of(object, class, name);
        let number = |name| u64::try_from(field(name)?.integer()?).ok();
        let length = |name| Some(self.length_of(collection, name)? as u64);
        collection.size.or_else(|| match collection.form {
            // Queues of java.util.concurrent count in an AtomicInteger, if at all.
            CollectionForm::Linked { size, .. } => {
                let count = self.objects.field(self.objects.object(field(size)?)?, "value")?;
                u64::try_from(count.integer()?).ok()
            }
            CollectionForm::Array { array, size: None } => length(array),
            CollectionForm::Ring => {
                let (head, tail) = (number("head")?, number("tail")?);
                if head <= tail { Some(tail - head) } else { (length("elements")? + tail).checked_sub(head) }
            }
            CollectionForm::Enums | CollectionForm::Scattered(_) => number("size"),
            _ => None,
        })
    }

    /// Returns the length of the array by which a map's entries are found, if it has one.
    pub fn slots(&self, collection: &Collection) -> Option<usize> {
        match collection.form {
            CollectionForm::Buckets { table, .. }
            | CollectionForm::Dense { table, .. }
            | CollectionForm::Pairs { table, .. } => self.length_of(collection, table),
            _ => None,
        }
    }

    /// Returns the length of the array that a collection reads, if it reads one.
    pub fn array_length(&self, collection: &Collection) -> Option<usize> {
        let length = |field| self.length_of(collection, field);
        match collection.form {
            // The table to which a ConcurrentHashMap moves its entries.
            CollectionForm::Buckets { table, .. } => length(table).max(length("nextTable")),
            CollectionForm::Array { array, .. } | CollectionForm::Scattered(array) => length(array),
            CollectionForm::Pairs { table, .. } => length(table),
            _ => None,
        }
    }

    /// Returns the length of the array in a field of a collection.
    fn length_of(&self, collection: &Collection, field: &str) -> Option<usize> {
        let array = self.objects.field_of(collection.object, collection.class, field)?;
        Some(self.objects.ids(self.objects.object(array)?)?.len())
    }

    /// Returns the nodes in the table of a map, each of which has an entry.
    pub fn nodes(
        &self,
        collection: &Collection,
        table: &str,
    ) -> impl Iterator<Item = ObjectIndex> + use<'o, 'a> {
        let Collection { object, class, .. } = *collection;
        iterate::table_nodes(self.objects, self.objects.field_of(object, class, table))
    }

    /// Splits a collection whose contents are in a long array. The parts have these in any order.
    pub fn split(&self, collection: &Collection) -> Vec<Collection> {
        let length = if collection.part.1 == usize::MAX { self.array_length(collection) } else { None };
        let length = length.unwrap_or(0);
        let of_thread = length / (PARTS_OF_A_THREAD * rayon::current_num_threads());
        // Keys and values in turns are not separated.
        let rows = of_thread.clamp(LEAST_ROWS, MOST_ROWS).next_multiple_of(2);
        if length <= rows {
            return vec![*collection];
        }
        let starts = (0..length).step_by(rows);
        starts.map(|start| Collection { rows: (start, start.saturating_add(rows)), ..*collection }).collect()
    }

    /// Returns the number of elements that an instance of a class stores itself, given its fields; `None` if it cannot be
    /// determined from these.
    pub fn stored_count(&self, fields: &Fields<'_>) -> Option<u64> {
        let (_, form, known) = self.forms.by_class.get(fields.class().0 as usize).copied().flatten()?;
        let size = match form {
            CollectionForm::Array { size: Some(size), .. }
            | CollectionForm::Linked { size, .. }
            | CollectionForm::Buckets { size: Some(size), .. }
            | CollectionForm::Pairs { size: Some(size), .. }
            | CollectionForm::Dense { size, .. }
            | CollectionForm::Tree { size, .. } => size,
            CollectionForm::Chained => "size",
            _ => return None,
        };
        u64::try_from(fields.superclass_fields(known)?.value(size)?.integer()?).ok()
    }

    /// Iterates over the contents of a collection.
    pub fn entries(&self, collection: &Collection) -> impl Iterator<Item = Entry> + use<'o, 'a> {
        let (of_entries, (skipped, taken)) = (collection.of_entries, collection.part);
        let Collection { object, class, form, rows, .. } = *collection;
        let entries = iterate::entries(self.objects, object, class, form, rows.0..rows.1);
        let masks = self.forms.masks;
        let is_masked = move |value: Bits| value.reference().is_some_and(|id| masks.contains(&id));
        let unmask = move |value: Bits| if is_masked(value) { NULL } else { value };
        let has_holes = matches!(collection.form, CollectionForm::Fields(_));
        let entries = entries.filter(move |entry| !has_holes || !is_masked(entry.value));
        let entries = entries.map(move |entry| {
            let (key, value) = (entry.key.map(unmask), unmask(entry.value));
            match (of_entries, key) {
                (OfEntries::Keys, Some(key)) => Entry { key: None, value: key },
                (OfEntries::Values, _) => Entry { key: None, value },
                (_, key) => Entry { key, value },
            }
        });
        entries.skip(skipped).take(taken)
    }
}

/// The null reference.
const NULL: Bits = Bits { kind: BasicType::Object, bits: 0 };
