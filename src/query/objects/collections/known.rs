//! Known collection classes, and how their instances are read.

use super::Kind;

/// Representation of the contents of a collection class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Form {
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

use Form::*;

const HASH: Form = Buckets { table: "table", key: "key", value: "value", size: Some("size") };
const fn array(array: &'static str, size: &'static str) -> Form {
    Array { array, size: Some(size) }
}
const fn whole(array: &'static str) -> Form {
    Array { array, size: None }
}
/// Wrappers of collections in the JDK.
const WRAPPED: Form = Wraps("c");

/// Classes, their kind, and how they are read.
pub(super) const KNOWN: &[(&str, Kind, Form)] = &[
    ("java.util.ArrayList", Kind::List, array("elementData", "size")),
    ("java.util.Arrays$ArrayList", Kind::List, whole("a")),
    ("java.util.Vector", Kind::List, array("elementData", "elementCount")),
    ("java.util.PriorityQueue", Kind::List, array("queue", "size")),
    ("java.util.concurrent.PriorityBlockingQueue", Kind::List, array("queue", "size")),
    ("java.util.concurrent.CopyOnWriteArrayList", Kind::List, whole("array")),
    ("java.util.concurrent.CopyOnWriteArraySet", Kind::Set, Wraps("al")),
    (
        "java.util.LinkedList",
        Kind::List,
        Linked { first: "first", next: "next", item: "item", size: "size", nulls: Nulls::Elements },
    ),
    (
        "java.util.concurrent.LinkedBlockingQueue",
        Kind::List,
        Linked { first: "head", next: "next", item: "item", size: "count", nulls: Nulls::None },
    ),
    (
        "java.util.concurrent.LinkedBlockingDeque",
        Kind::List,
        Linked { first: "first", next: "next", item: "item", size: "count", nulls: Nulls::None },
    ),
    (
        "java.util.concurrent.ConcurrentLinkedQueue",
        Kind::List,
        Linked { first: "head", next: "next", item: "item", size: "", nulls: Nulls::None },
    ),
    (
        "java.util.concurrent.ConcurrentLinkedDeque",
        Kind::List,
        Linked { first: "head", next: "next", item: "item", size: "", nulls: Nulls::None },
    ),
    ("java.util.ArrayDeque", Kind::List, Ring),
    ("java.util.concurrent.ArrayBlockingQueue", Kind::List, Round),
    ("java.util.concurrent.DelayQueue", Kind::List, Wraps("q")),
    ("java.util.ArrayList$SubList", Kind::List, PartOf("root")),
    ("java.util.AbstractList$SubList", Kind::List, PartOf("root")),
    ("java.util.ImmutableCollections$SubList", Kind::List, PartOf("root")),
    ("java.util.HashMap$KeySet", Kind::Set, KeysOf("this$0")),
    ("java.util.HashMap$Values", Kind::List, ValuesOf("this$0")),
    ("java.util.HashMap$EntrySet", Kind::Map, Wraps("this$0")),
    ("java.util.LinkedHashMap$LinkedKeySet", Kind::Set, KeysOf("this$0")),
    ("java.util.LinkedHashMap$LinkedValues", Kind::List, ValuesOf("this$0")),
    ("java.util.LinkedHashMap$LinkedEntrySet", Kind::Map, Wraps("this$0")),
    ("java.util.TreeMap$KeySet", Kind::Set, KeysOf("m")),
    ("java.util.TreeMap$Values", Kind::List, ValuesOf("this$0")),
    ("java.util.TreeMap$EntrySet", Kind::Map, Wraps("this$0")),
    ("java.util.concurrent.ConcurrentHashMap$ValuesView", Kind::List, ValuesOf("map")),
    ("java.util.concurrent.ConcurrentHashMap$EntrySetView", Kind::Map, Wraps("map")),
    ("java.util.AbstractMap$SimpleEntry", Kind::Map, Keyed(["key", "value"])),
    ("java.util.AbstractMap$SimpleImmutableEntry", Kind::Map, Keyed(["key", "value"])),
    ("java.util.KeyValueHolder", Kind::Map, Keyed(["key", "value"])),
    ("java.util.LinkedHashMap", Kind::Map, Chained),
    ("java.util.HashMap", Kind::Map, HASH),
    (
        "java.util.Hashtable",
        Kind::Map,
        Buckets { table: "table", key: "key", value: "value", size: Some("count") },
    ),
    // Up to JDK 8 an ordinary Hashtable: the field is missing.
    ("java.util.Properties", Kind::Map, Wraps("map")),
    (
        "java.util.WeakHashMap",
        Kind::Map,
        Buckets { table: "table", key: "referent", value: "value", size: Some("size") },
    ),
    (
        "java.util.concurrent.ConcurrentHashMap",
        Kind::Map,
        Buckets { table: "table", key: "key", value: "val", size: None },
    ),
    (
        "java.lang.ThreadLocal$ThreadLocalMap",
        Kind::Map,
        Buckets { table: "table", key: "referent", value: "value", size: Some("size") },
    ),
    ("java.util.IdentityHashMap", Kind::Map, Pairs { table: "table", size: Some("size") }),
    ("java.util.TreeMap", Kind::Map, Tree { root: "root", size: "size" }),
    ("java.util.concurrent.ConcurrentSkipListMap", Kind::Map, Skips),
    ("java.util.EnumMap", Kind::Map, Enums),
    ("java.util.RegularEnumSet", Kind::Set, EnumBits),
    ("java.util.JumboEnumSet", Kind::Set, EnumBits),
    ("java.util.HashSet", Kind::Set, KeysOf("map")),
    ("java.util.TreeSet", Kind::Set, KeysOf("m")),
    ("java.util.concurrent.ConcurrentSkipListSet", Kind::Set, KeysOf("m")),
    ("java.util.concurrent.ConcurrentHashMap$KeySetView", Kind::Set, KeysOf("map")),
    ("java.util.Collections$SetFromMap", Kind::Set, KeysOf("m")),
    ("java.util.Collections$UnmodifiableMap", Kind::Map, Wraps("m")),
    ("java.util.Collections$SynchronizedMap", Kind::Map, Wraps("m")),
    ("java.util.Collections$CheckedMap", Kind::Map, Wraps("m")),
    ("java.util.Collections$UnmodifiableSet", Kind::Set, WRAPPED),
    ("java.util.Collections$SynchronizedSet", Kind::Set, WRAPPED),
    ("java.util.Collections$UnmodifiableCollection", Kind::List, WRAPPED),
    ("java.util.Collections$SynchronizedCollection", Kind::List, WRAPPED),
    ("java.util.Collections$CheckedCollection", Kind::List, WRAPPED),
    ("java.util.Collections$CheckedSet", Kind::Set, WRAPPED),
    ("java.util.Collections$SingletonList", Kind::List, Value("element")),
    ("java.util.Collections$SingletonSet", Kind::Set, Value("element")),
    ("java.util.Collections$SingletonMap", Kind::Map, Keyed(["k", "v"])),
    ("java.util.Collections$EmptyList", Kind::List, Empty),
    ("java.util.Collections$EmptySet", Kind::Set, Empty),
    ("java.util.Collections$EmptyMap", Kind::Map, Empty),
    // JDK 9 and 10.
    ("java.util.ImmutableCollections$List0", Kind::List, Empty),
    ("java.util.ImmutableCollections$List1", Kind::List, Fields(&["e0"])),
    ("java.util.ImmutableCollections$List2", Kind::List, Fields(&["e0", "e1"])),
    ("java.util.ImmutableCollections$Set0", Kind::Set, Empty),
    ("java.util.ImmutableCollections$Set1", Kind::Set, Fields(&["e0"])),
    ("java.util.ImmutableCollections$Set2", Kind::Set, Fields(&["e0", "e1"])),
    ("java.util.ImmutableCollections$Map0", Kind::Map, Empty),
    ("java.util.ImmutableCollections$List12", Kind::List, Fields(&["e0", "e1"])),
    ("java.util.ImmutableCollections$ListN", Kind::List, whole("elements")),
    ("java.util.ImmutableCollections$Set12", Kind::Set, Fields(&["e0", "e1"])),
    ("java.util.ImmutableCollections$SetN", Kind::Set, Scattered("elements")),
    ("java.util.ImmutableCollections$Map1", Kind::Map, Keyed(["k0", "v0"])),
    ("java.util.ImmutableCollections$MapN", Kind::Map, Pairs { table: "table", size: Some("size") }),
    ("java.util.Optional", Kind::Holder, Value("value")),
    ("java.util.concurrent.atomic.AtomicReference", Kind::Holder, Value("value")),
    ("java.util.concurrent.atomic.AtomicReferenceArray", Kind::List, whole("array")),
    ("java.util.concurrent.atomic.AtomicIntegerArray", Kind::List, Numbers("array")),
    ("java.util.concurrent.atomic.AtomicLongArray", Kind::List, Numbers("array")),
    ("java.lang.ref.Reference", Kind::Holder, Value("referent")),
    ("android.util.ArrayMap", Kind::Map, Dense { table: "mArray", size: "mSize" }),
    ("android.util.ArraySet", Kind::Set, array("mArray", "mSize")),
    ("android.util.SparseArray", Kind::List, array("mValues", "mSize")),
];

/// Representations in older versions, used if the newer one has a field that does not exist.
pub(super) const OLDER: &[(&str, Kind, Form)] = &[
    (
        "java.util.LinkedList",
        Kind::List,
        Linked { first: "header", next: "next", item: "element", size: "size", nulls: Nulls::FirstIsNone },
    ),
    ("java.util.concurrent.ConcurrentHashMap", Kind::Map, Segments),
    // Android up to 6.
    ("java.util.ArrayList", Kind::List, array("array", "size")),
    (
        "java.util.LinkedList",
        Kind::List,
        Linked { first: "voidLink", next: "next", item: "data", size: "size", nulls: Nulls::FirstIsNone },
    ),
    ("java.util.HashSet", Kind::Set, KeysOf("backingMap")),
    ("java.util.TreeSet", Kind::Set, KeysOf("backingMap")),
    // Up to JDK 8.
    ("java.util.ArrayList$SubList", Kind::List, PartOf("this$0")),
    ("java.util.SubList", Kind::List, PartOf("l")),
];

/// Static fields whose objects represent something that cannot be stored as such: null, or for the first that there is
/// nothing.
pub(super) const MASKS: [(&str, &str); 4] = [
    ("java.util.ImmutableCollections", "EMPTY"),
    ("java.util.IdentityHashMap", "NULL_KEY"),
    ("java.util.WeakHashMap", "NULL_KEY"),
    ("java.util.EnumMap", "NULL"),
];

impl Form {
    /// Returns the field that the class must have to be read like this.
    pub(super) fn needs(self) -> Option<&'static str> {
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
