//! Contents of collections, in dumps written with the fields that the JDK and Android give these classes.

use super::made::{Made, contents, int, long};
use crate::kit::dump::Dump;
use hprof_query::objects::collections::CollectionKind;
use hprof_writer::{Elements, ObjectId, Options, Root, Type, Value};

/// Collections, what they are, how many elements they state, and the elements.
type Expected = Vec<(ObjectId, CollectionKind, Option<u64>, Vec<&'static str>)>;

fn check(mut made: Made, expected: Expected) {
    for (object, ..) in &expected {
        made.model.root(*object, Root::Unknown);
    }
    let dump = Dump::written(&made.model.write(&Options::hotspot()));
    let (heap, graph) = dump.open_graph();
    for (object, kind, size, elements) in expected {
        let elements = elements.into_iter().map(str::to_owned).collect();
        assert_eq!(contents(&heap, &graph, object), Some((kind, size, elements)));
    }
}

#[test]
fn collections_that_the_zoo_does_not_have() {
    use Type::{Int, Long, Object};
    let mut made = Made::new();
    let null = Value::Object(0);
    let [a, b, c] = ["a", "b", "c"].map(|text| made.string(text));
    let array =
        |made: &mut Made, elements: &[ObjectId]| made.model.object_array(made.jdk.object_array, elements);
    let mut expected = Expected::new();

    // Since JDK 11 an object stands where a list or set of one has nothing.
    let nothing = made.object(made.jdk.object, &[]);
    made.model.class_with_statics(
        "java.util.ImmutableCollections",
        Some(made.jdk.object),
        &[],
        &[("EMPTY", nothing.into())],
    );
    let list12 = made.class("java.util.ImmutableCollections$List12", &[("e0", Object), ("e1", Object)]);
    for (e1, elements) in [(nothing, vec!["a"]), (b, vec!["a", "b"]), (ObjectId::NULL, vec!["a"])] {
        expected.push((made.object(list12, &[a.into(), e1.into()]), CollectionKind::List, None, elements));
    }
    // Keys that are null.
    let weak_null = made.object(made.jdk.object, &[]);
    let identity = made.model.class_with_statics(
        "java.util.IdentityHashMap",
        Some(made.jdk.object),
        &[("table", Object), ("size", Int)],
        &[("NULL_KEY", weak_null.into())],
    );
    let table = array(&mut made, &[ObjectId::NULL, ObjectId::NULL, a, b, weak_null, c]);
    expected.push((
        made.object(identity, &[table.into(), int(2)]),
        CollectionKind::Map,
        Some(2),
        vec!["a=b", "null=c"],
    ));

    let atomic = made.class("java.util.concurrent.atomic.AtomicIntegerArray", &[("array", Object)]);
    let ints = made.model.prim_array(Elements::Int(vec![1, -2, 3]));
    expected.push((made.object(atomic, &[ints.into()]), CollectionKind::List, None, vec!["1", "-2", "3"]));
    let atomic = made.class("java.util.concurrent.atomic.AtomicReferenceArray", &[("array", Object)]);
    let references = array(&mut made, &[a, ObjectId::NULL]);
    expected.push((made.object(atomic, &[references.into()]), CollectionKind::List, None, vec!["a", "null"]));

    let set = made.class("java.util.EnumSet", &[("elementType", Object), ("universe", Object)]);
    let universe = array(&mut made, &[a, b, c]);
    let regular = made.below("java.util.RegularEnumSet", set, &[("elements", Long)]);
    let object = made.object(regular, &[long(0b101), null, universe.into()]);
    expected.push((object, CollectionKind::Set, None, vec!["a", "c"]));
    let many: Vec<ObjectId> = (0..70).map(|number| if number == 64 { b } else { a }).collect();
    let universe = array(&mut made, &many);
    let jumbo = made.below("java.util.JumboEnumSet", set, &[("elements", Object), ("size", Int)]);
    let words = made.model.prim_array(Elements::Long(vec![1, 1]));
    let object = made.object(jumbo, &[words.into(), int(2), null, universe.into()]);
    expected.push((object, CollectionKind::Set, None, vec!["a", "b"]));

    let queue = made.class(
        "java.util.concurrent.ArrayBlockingQueue",
        &[("items", Object), ("takeIndex", Int), ("putIndex", Int), ("count", Int)],
    );
    let items = array(&mut made, &[b, c, ObjectId::NULL, a]);
    let object = made.object(queue, &[items.into(), int(3), int(2), int(3)]);
    expected.push((object, CollectionKind::List, Some(3), vec!["a", "b", "c"]));

    let list = made.class("java.util.ArrayList", &[("elementData", Object), ("size", Int)]);
    let data = array(&mut made, &[a, b, c, ObjectId::NULL]);
    let whole = made.object(list, &[data.into(), int(3)]);
    let part = made.class(
        "java.util.ArrayList$SubList",
        &[("root", Object), ("parent", Object), ("offset", Int), ("size", Int)],
    );
    let object = made.object(part, &[whole.into(), null, int(1), int(1)]);
    expected.push((object, CollectionKind::List, Some(1), vec!["b"]));
    let random =
        made.below("java.util.Collections$UnmodifiableCollection", made.jdk.object, &[("c", Object)]);
    let random = made.below("java.util.Collections$UnmodifiableList", random, &[("list", Object)]);
    let object = made.object(random, &[whole.into(), whole.into()]);
    expected.push((object, CollectionKind::List, Some(3), vec!["a", "b", "c"]));
    let entry = made.class("java.util.KeyValueHolder", &[("key", Object), ("value", Object)]);
    expected.push((made.object(entry, &[a.into(), b.into()]), CollectionKind::Map, None, vec!["a=b"]));

    check(made, expected);
}

#[test]
fn fields_of_subclasses_with_the_same_names_are_passed_over() {
    use Type::{Int, Object};
    let mut made = Made::new();
    let [a, b, c] = ["a", "b", "c"].map(|text| made.string(text));
    let mut expected = Expected::new();
    let list = made.class("java.util.ArrayList", &[("elementData", Object), ("size", Int)]);
    let bounded = made.below("com.acme.BoundedList", list, &[("size", Int)]);
    let data = made.model.object_array(made.jdk.object_array, &[a, b, c, ObjectId::NULL]);
    let object = made.object(bounded, &[int(1000), data.into(), int(3)]);
    expected.push((object, CollectionKind::List, Some(3), vec!["a", "b", "c"]));

    let map = made.class("java.util.HashMap", &[("table", Object), ("size", Int)]);
    let node = made.class("java.util.HashMap$Node", &[("key", Object), ("value", Object), ("next", Object)]);
    let lru = made.below("com.acme.Lru", map, &[("size", Int), ("table", Int)]);
    let first = made.object(node, &[a.into(), b.into(), Value::Object(0)]);
    let table = made.model.object_array(made.jdk.object_array, &[ObjectId::NULL, first]);
    let object = made.object(lru, &[int(0), int(7), table.into(), int(1)]);
    expected.push((object, CollectionKind::Map, Some(1), vec!["a=b"]));
    check(made, expected);
}

#[test]
fn lists_with_null_in_them() {
    use Type::{Int, Object};
    let mut made = Made::new();
    let [a, b] = ["a", "b"].map(|text| made.string(text));
    let (null, mut expected) = (Value::Object(0), Expected::new());
    let list = made.class("java.util.LinkedList", &[("size", Int), ("first", Object), ("last", Object)]);
    let node = made.class("java.util.LinkedList$Node", &[("item", Object), ("next", Object)]);
    let last = made.object(node, &[b.into(), null]);
    let middle = made.object(node, &[null, last.into()]);
    let first = made.object(node, &[a.into(), middle.into()]);
    let object = made.object(list, &[int(3), first.into(), last.into()]);
    expected.push((object, CollectionKind::List, Some(3), vec!["a", "null", "b"]));
    // Queues begin with a node that holds nothing.
    let queue = made.class("java.util.concurrent.LinkedBlockingQueue", &[("head", Object), ("last", Object)]);
    let head = made.object(node, &[null, last.into()]);
    expected.push((made.object(queue, &[head.into(), last.into()]), CollectionKind::List, None, vec!["b"]));
    check(made, expected);
}

#[test]
fn lists_of_jdk_6_are_rings() {
    use Type::{Int, Object};
    let mut made = Made::new();
    let [a, b] = ["a", "b"].map(|text| made.string(text));
    let null = Value::Object(0);
    let list = made.class("java.util.LinkedList", &[("header", Object), ("size", Int)]);
    let entry = made.class("java.util.LinkedList$Entry", &[("element", Object), ("next", Object)]);
    let header = made.object(entry, &[null, null]);
    let third = made.object(entry, &[b.into(), header.into()]);
    let second = made.object(entry, &[null, third.into()]);
    let first = made.object(entry, &[a.into(), second.into()]);
    made.model.set_values(header, &[null, first.into()]);
    let object = made.object(list, &[header.into(), int(3)]);
    check(made, vec![(object, CollectionKind::List, Some(3), vec!["a", "null", "b"])]);
}

#[test]
fn a_concurrent_map_that_is_being_resized() {
    use Type::{Int, Long, Object};
    let mut made = Made::new();
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|text| made.string(text));
    let null = Value::Object(0);
    let map = made.class(
        "java.util.concurrent.ConcurrentHashMap",
        &[("table", Object), ("nextTable", Object), ("baseCount", Long), ("counterCells", Object)],
    );
    let fields = [("hash", Int), ("key", Object), ("val", Object), ("next", Object)];
    let node = made.class("java.util.concurrent.ConcurrentHashMap$Node", &fields);
    let forwards =
        made.below("java.util.concurrent.ConcurrentHashMap$ForwardingNode", node, &[("nextTable", Object)]);
    let stays = made.object(node, &[int(1), a.into(), b.into(), null]);
    let moved = made.object(node, &[int(0), c.into(), d.into(), null]);
    let next = made.model.object_array(made.jdk.object_array, &[moved, ObjectId::NULL]);
    let forward = made.object(forwards, &[next.into(), int(-1), null, null, null]);
    let table = made.model.object_array(made.jdk.object_array, &[forward, stays]);
    let object = made.object(map, &[table.into(), next.into(), long(2), null]);
    check(made, vec![(object, CollectionKind::Map, Some(2), vec!["a=b", "c=d"])]);
}

#[test]
fn maps_of_old_android_keep_the_entry_of_null_apart() {
    use Type::{Int, Object};
    let mut made = Made::new();
    let [a, b, c] = ["a", "b", "c"].map(|text| made.string(text));
    let null = Value::Object(0);
    let fields = [("entryForNullKey", Object), ("size", Int), ("table", Object)];
    let map = made.class("java.util.HashMap", &fields);
    let entry =
        made.class("java.util.HashMap$HashMapEntry", &[("key", Object), ("value", Object), ("next", Object)]);
    let first = made.object(entry, &[a.into(), b.into(), null]);
    let of_null = made.object(entry, &[null, c.into(), null]);
    let table = made.model.object_array(made.jdk.object_array, &[first]);
    let object = made.object(map, &[of_null.into(), int(2), table.into()]);
    check(made, vec![(object, CollectionKind::Map, Some(2), vec!["a=b", "null=c"])]);
}

#[test]
fn a_deque_whose_head_is_not_the_first() {
    use Type::Object;
    let mut made = Made::new();
    let [a, b, c] = ["a", "b", "c"].map(|text| made.string(text));
    let null = Value::Object(0);
    let deque =
        made.class("java.util.concurrent.ConcurrentLinkedDeque", &[("head", Object), ("tail", Object)]);
    let node = made.class(
        "java.util.concurrent.ConcurrentLinkedDeque$Node",
        &[("prev", Object), ("item", Object), ("next", Object)],
    );
    let last = made.object(node, &[null, c.into(), null]);
    let head = made.object(node, &[null, b.into(), last.into()]);
    let first = made.object(node, &[null, a.into(), head.into()]);
    made.model.set_values(head, &[first.into(), b.into(), last.into()]);
    made.model.set_values(last, &[head.into(), c.into(), null]);
    let object = made.object(deque, &[head.into(), last.into()]);
    check(made, vec![(object, CollectionKind::List, None, vec!["a", "b", "c"])]);
}

#[test]
fn maps_of_android_have_null_keys() {
    use Type::{Int, Object};
    let mut made = Made::new();
    let [a, b, c] = ["a", "b", "c"].map(|text| made.string(text));
    let map = made.class("android.util.ArrayMap", &[("mArray", Object), ("mSize", Int)]);
    let elements = [ObjectId::NULL, a, b, c, c, c];
    let array = made.model.object_array(made.jdk.object_array, &elements);
    let object = made.object(map, &[array.into(), int(2)]);
    let set = made.class("android.util.ArraySet", &[("mArray", Object), ("mSize", Int)]);
    let few = made.object(set, &[array.into(), int(3)]);
    check(
        made,
        vec![
            (object, CollectionKind::Map, Some(2), vec!["null=a", "b=c"]),
            (few, CollectionKind::Set, Some(3), vec!["null", "a", "b"]),
        ],
    );
}
