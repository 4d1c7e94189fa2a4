//! Known collection classes, and how their instances are read.

use super::CollectionKind;

/// Representation of the contents of a collection class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum CollectionForm {
    /// An array: its first elements, or all.
    Array {
        /// Field of the array.
        array: &'static str,
        /// Field of the number of elements.
        size: Option<&'static str>,
    },
    /// An array as a table; null is not an element.
    Scattered(&'static str),
    /// A circular array, from `head` to `tail` (exclusive).
    Ring,
    /// Linked nodes.
    Linked {
        /// Field of the first node.
        first: &'static str,
        /// Field of the next node, in a node.
        next: &'static str,
        /// Field of the element, in a node.
        item: &'static str,
        /// Field of the number of elements.
        size: &'static str,
        /// Meaning of null in a node.
        nulls: Nulls,
    },
    /// A table of chains of nodes.
    Buckets {
        /// Field of the table.
        table: &'static str,
        /// Field of the key, in a node.
        key: &'static str,
        /// Field of the value, in a node.
        value: &'static str,
        /// Field of the number of entries.
        size: Option<&'static str>,
    },
    /// LinkedHashMap: its nodes in insertion order.
    Chained,
    /// ConcurrentHashMap up to JDK 7: a table of tables.
    Segments,
    /// An array with alternating keys and values.
    Dense {
        /// Field of the array of alternating keys and values.
        table: &'static str,
        /// Field of the number of pairs.
        size: &'static str,
    },
    /// Alternating keys and values; null is not a key.
    Pairs {
        /// Field of the array.
        table: &'static str,
        /// Field of the number of entries.
        size: Option<&'static str>,
    },
    /// A binary tree of nodes with `left`, `right`, `key`, `value`.
    Tree {
        /// Field of the root.
        root: &'static str,
        /// Field of the number of entries.
        size: &'static str,
    },
    /// The lowest level of a skip list: nodes with `key`, `next` and a value.
    Skips,
    /// EnumMap: constants and their values in two arrays.
    Enums,
    /// Elements in fields; null is not an element.
    Fields(&'static [&'static str]),
    /// One key and one value, in fields.
    Keyed([&'static str; 2]),
    /// One value in a field.
    Value(&'static str),
    /// No elements.
    Empty,
    /// Another collection in a field.
    Wraps(&'static str),
    /// The keys of another collection in a field.
    KeysOf(&'static str),
    /// The values of another collection in a field.
    ValuesOf(&'static str),
    /// A part of another collection in a field: `size` elements from `offset`.
    PartOf(&'static str),
    /// An array of numbers.
    Numbers(&'static str),
    /// A circular array: `count` elements from `takeIndex`.
    Round,
    /// An EnumSet: the constants of `universe` whose bits are set in `elements`.
    EnumBits,
}

/// Meaning of a null element in a node of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nulls {
    /// Null is an element.
    Elements,
    /// Null is an element, except in the first node, which holds nothing.
    FirstIsNone,
    /// Null is not an element: queues of java.util.concurrent start with such a node, and leave some in place.
    None,
}

use CollectionForm::*;

const HASH: CollectionForm = Buckets { table: "table", key: "key", value: "value", size: Some("size") };
const fn array(array: &'static str, size: &'static str) -> CollectionForm {
    Array { array, size: Some(size) }
}
const fn full_array(array: &'static str) -> CollectionForm {
    Array { array, size: None }
}
/// Wrappers of collections in the JDK.
const WRAPPED: CollectionForm = Wraps("c");

/// Classes, their kind, and how they are read.
pub(super) const KNOWN: &[(&str, CollectionKind, CollectionForm)] = &[
    ("java.util.ArrayList", CollectionKind::List, array("elementData", "size")),
    ("java.util.Arrays$ArrayList", CollectionKind::List, full_array("a")),
    ("java.util.Vector", CollectionKind::List, array("elementData", "elementCount")),
    ("java.util.PriorityQueue", CollectionKind::List, array("queue", "size")),
    ("java.util.concurrent.PriorityBlockingQueue", CollectionKind::List, array("queue", "size")),
    ("java.util.concurrent.CopyOnWriteArrayList", CollectionKind::List, full_array("array")),
    ("java.util.concurrent.CopyOnWriteArraySet", CollectionKind::Set, Wraps("al")),
    (
        "java.util.LinkedList",
        CollectionKind::List,
        Linked { first: "first", next: "next", item: "item", size: "size", nulls: Nulls::Elements },
    ),
    (
        "java.util.concurrent.LinkedBlockingQueue",
        CollectionKind::List,
        Linked { first: "head", next: "next", item: "item", size: "count", nulls: Nulls::None },
    ),
    (
        "java.util.concurrent.LinkedBlockingDeque",
        CollectionKind::List,
        Linked { first: "first", next: "next", item: "item", size: "count", nulls: Nulls::None },
    ),
    (
        "java.util.concurrent.ConcurrentLinkedQueue",
        CollectionKind::List,
        Linked { first: "head", next: "next", item: "item", size: "", nulls: Nulls::None },
    ),
    (
        "java.util.concurrent.ConcurrentLinkedDeque",
        CollectionKind::List,
        Linked { first: "head", next: "next", item: "item", size: "", nulls: Nulls::None },
    ),
    ("java.util.ArrayDeque", CollectionKind::List, Ring),
    ("java.util.concurrent.ArrayBlockingQueue", CollectionKind::List, Round),
    ("java.util.concurrent.DelayQueue", CollectionKind::List, Wraps("q")),
    ("java.util.ArrayList$SubList", CollectionKind::List, PartOf("root")),
    ("java.util.AbstractList$SubList", CollectionKind::List, PartOf("root")),
    ("java.util.ImmutableCollections$SubList", CollectionKind::List, PartOf("root")),
    ("java.util.HashMap$KeySet", CollectionKind::Set, KeysOf("this$0")),
    ("java.util.HashMap$Values", CollectionKind::List, ValuesOf("this$0")),
    ("java.util.HashMap$EntrySet", CollectionKind::Map, Wraps("this$0")),
    ("java.util.LinkedHashMap$LinkedKeySet", CollectionKind::Set, KeysOf("this$0")),
    ("java.util.LinkedHashMap$LinkedValues", CollectionKind::List, ValuesOf("this$0")),
    ("java.util.LinkedHashMap$LinkedEntrySet", CollectionKind::Map, Wraps("this$0")),
    ("java.util.TreeMap$KeySet", CollectionKind::Set, KeysOf("m")),
    ("java.util.TreeMap$Values", CollectionKind::List, ValuesOf("this$0")),
    ("java.util.TreeMap$EntrySet", CollectionKind::Map, Wraps("this$0")),
    ("java.util.concurrent.ConcurrentHashMap$ValuesView", CollectionKind::List, ValuesOf("map")),
    ("java.util.concurrent.ConcurrentHashMap$EntrySetView", CollectionKind::Map, Wraps("map")),
    ("java.util.AbstractMap$SimpleEntry", CollectionKind::Map, Keyed(["key", "value"])),
    ("java.util.AbstractMap$SimpleImmutableEntry", CollectionKind::Map, Keyed(["key", "value"])),
    ("java.util.KeyValueHolder", CollectionKind::Map, Keyed(["key", "value"])),
    ("java.util.LinkedHashMap", CollectionKind::Map, Chained),
    ("java.util.HashMap", CollectionKind::Map, HASH),
    (
        "java.util.Hashtable",
        CollectionKind::Map,
        Buckets { table: "table", key: "key", value: "value", size: Some("count") },
    ),
    // Up to JDK 8 an ordinary Hashtable: the field is missing.
    ("java.util.Properties", CollectionKind::Map, Wraps("map")),
    (
        "java.util.WeakHashMap",
        CollectionKind::Map,
        Buckets { table: "table", key: "referent", value: "value", size: Some("size") },
    ),
    (
        "java.util.concurrent.ConcurrentHashMap",
        CollectionKind::Map,
        Buckets { table: "table", key: "key", value: "val", size: None },
    ),
    (
        "java.lang.ThreadLocal$ThreadLocalMap",
        CollectionKind::Map,
        Buckets { table: "table", key: "referent", value: "value", size: Some("size") },
    ),
    ("java.util.IdentityHashMap", CollectionKind::Map, Pairs { table: "table", size: Some("size") }),
    ("java.util.TreeMap", CollectionKind::Map, Tree { root: "root", size: "size" }),
    ("java.util.concurrent.ConcurrentSkipListMap", CollectionKind::Map, Skips),
    ("java.util.EnumMap", CollectionKind::Map, Enums),
    ("java.util.RegularEnumSet", CollectionKind::Set, EnumBits),
    ("java.util.JumboEnumSet", CollectionKind::Set, EnumBits),
    ("java.util.HashSet", CollectionKind::Set, KeysOf("map")),
    ("java.util.TreeSet", CollectionKind::Set, KeysOf("m")),
    ("java.util.concurrent.ConcurrentSkipListSet", CollectionKind::Set, KeysOf("m")),
    ("java.util.concurrent.ConcurrentHashMap$KeySetView", CollectionKind::Set, KeysOf("map")),
    ("java.util.Collections$SetFromMap", CollectionKind::Set, KeysOf("m")),
    ("java.util.Collections$UnmodifiableMap", CollectionKind::Map, Wraps("m")),
    ("java.util.Collections$SynchronizedMap", CollectionKind::Map, Wraps("m")),
    ("java.util.Collections$CheckedMap", CollectionKind::Map, Wraps("m")),
    ("java.util.Collections$UnmodifiableSet", CollectionKind::Set, WRAPPED),
    ("java.util.Collections$SynchronizedSet", CollectionKind::Set, WRAPPED),
    ("java.util.Collections$UnmodifiableCollection", CollectionKind::List, WRAPPED),
    ("java.util.Collections$SynchronizedCollection", CollectionKind::List, WRAPPED),
    ("java.util.Collections$CheckedCollection", CollectionKind::List, WRAPPED),
    ("java.util.Collections$CheckedSet", CollectionKind::Set, WRAPPED),
    ("java.util.Collections$SingletonList", CollectionKind::List, Value("element")),
    ("java.util.Collections$SingletonSet", CollectionKind::Set, Value("element")),
    ("java.util.Collections$SingletonMap", CollectionKind::Map, Keyed(["k", "v"])),
    ("java.util.Collections$EmptyList", CollectionKind::List, Empty),
    ("java.util.Collections$EmptySet", CollectionKind::Set, Empty),
    ("java.util.Collections$EmptyMap", CollectionKind::Map, Empty),
    // JDK 9 and 10.
    ("java.util.ImmutableCollections$List0", CollectionKind::List, Empty),
    ("java.util.ImmutableCollections$List1", CollectionKind::List, Fields(&["e0"])),
    ("java.util.ImmutableCollections$List2", CollectionKind::List, Fields(&["e0", "e1"])),
    ("java.util.ImmutableCollections$Set0", CollectionKind::Set, Empty),
    ("java.util.ImmutableCollections$Set1", CollectionKind::Set, Fields(&["e0"])),
    ("java.util.ImmutableCollections$Set2", CollectionKind::Set, Fields(&["e0", "e1"])),
    ("java.util.ImmutableCollections$Map0", CollectionKind::Map, Empty),
    ("java.util.ImmutableCollections$List12", CollectionKind::List, Fields(&["e0", "e1"])),
    ("java.util.ImmutableCollections$ListN", CollectionKind::List, full_array("elements")),
    ("java.util.ImmutableCollections$Set12", CollectionKind::Set, Fields(&["e0", "e1"])),
    ("java.util.ImmutableCollections$SetN", CollectionKind::Set, Scattered("elements")),
    ("java.util.ImmutableCollections$Map1", CollectionKind::Map, Keyed(["k0", "v0"])),
    (
        "java.util.ImmutableCollections$MapN",
        CollectionKind::Map,
        Pairs { table: "table", size: Some("size") },
    ),
    ("java.util.Optional", CollectionKind::Holder, Value("value")),
    ("java.util.concurrent.atomic.AtomicReference", CollectionKind::Holder, Value("value")),
    ("java.util.concurrent.atomic.AtomicReferenceArray", CollectionKind::List, full_array("array")),
    ("java.util.concurrent.atomic.AtomicIntegerArray", CollectionKind::List, Numbers("array")),
    ("java.util.concurrent.atomic.AtomicLongArray", CollectionKind::List, Numbers("array")),
    ("java.lang.ref.Reference", CollectionKind::Holder, Value("referent")),
    ("android.util.ArrayMap", CollectionKind::Map, Dense { table: "mArray", size: "mSize" }),
    ("android.util.ArraySet", CollectionKind::Set, array("mArray", "mSize")),
    ("android.util.SparseArray", CollectionKind::List, array("mValues", "mSize")),
];

/// Representations in older versions, used if the newer one has a field that does not exist.
pub(super) const OLDER: &[(&str, CollectionKind, CollectionForm)] = &[
    (
        "java.util.LinkedList",
        CollectionKind::List,
        Linked { first: "header", next: "next", item: "element", size: "size", nulls: Nulls::FirstIsNone },
    ),
    ("java.util.concurrent.ConcurrentHashMap", CollectionKind::Map, Segments),
    // Android up to 6.
    ("java.util.ArrayList", CollectionKind::List, array("array", "size")),
    (
        "java.util.LinkedList",
        CollectionKind::List,
        Linked { first: "voidLink", next: "next", item: "data", size: "size", nulls: Nulls::FirstIsNone },
    ),
    ("java.util.HashSet", CollectionKind::Set, KeysOf("backingMap")),
    ("java.util.TreeSet", CollectionKind::Set, KeysOf("backingMap")),
    // Up to JDK 8.
    ("java.util.ArrayList$SubList", CollectionKind::List, PartOf("this$0")),
    ("java.util.SubList", CollectionKind::List, PartOf("l")),
];

/// Static fields whose objects represent something that cannot be stored as such: null, or, for the first field, a missing
/// value.
pub(super) const MASKS: [(&str, &str); 4] = [
    ("java.util.ImmutableCollections", "EMPTY"),
    ("java.util.IdentityHashMap", "NULL_KEY"),
    ("java.util.WeakHashMap", "NULL_KEY"),
    ("java.util.EnumMap", "NULL"),
];

impl CollectionForm {
    /// Returns the field that the class must have to be read like this.
    pub(super) fn required_field(self) -> Option<&'static str> {
        Some(match self {
            Array { array, .. } | Scattered(array) => array,
            Ring => "elements",
            Linked { first, .. } => first,
            Buckets { table, .. } | Pairs { table, .. } | Dense { table, .. } => table,
            Chained => "head",
            Segments => "segments",
            Tree { root, .. } => root,
            Skips => "head",
            Enums => "keyUniverse",
            Fields(names) => names.first()?,
            Keyed([key, _]) => key,
            Value(field) | Wraps(field) | KeysOf(field) | ValuesOf(field) | PartOf(field)
            | Numbers(field) => field,
            Round => "takeIndex",
            EnumBits => "universe",
            Empty => return None,
        })
    }
}
