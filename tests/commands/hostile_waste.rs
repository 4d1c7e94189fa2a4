//! `waste` on dumps that are made to take it for ever or to fill memory: what many share, what contains itself, contents
//! without end. Each ends, with the memory that a dump of that size may take.
//!
//! No time is measured: what would be quadratic has sizes here at which it does not end before the watchdog barks.

use std::time::Duration;

use crate::kit::dump::Dump;
use crate::kit::process;
use hprof_writer::{ClassDump, DumpWriter, Elements, HeapWriter, IdSize, Root, Type, Value, Version};
use serde_json::Value as Json;

/// A hundred times what these take on a slow machine, in a debug build.
const BARK: Duration = Duration::from_secs(120);
/// What a process may ask for, in KiB, for memory and all that it maps.
const MEMORY: u64 = 3 << 20;

// Names, in this order.
const NAMES: [&str; 15] = [
    "elementData",
    "size",
    "table",
    "key",
    "value",
    "next",
    "m",
    "c",
    "baseCount",
    "counterCells",
    "cache",
    "coder",
    "field",
    "count",
    "hash",
];

fn name(wanted: &str) -> u64 {
    NAMES.iter().position(|name| *name == wanted).unwrap() as u64 + 1
}

// Classes; others go on from `CLASS`.
const OBJECT: u64 = 0x1000;
const ARRAY: u64 = 0x1100;
const LIST: u64 = 0x1200;
const MAP: u64 = 0x1300;
const NODE: u64 = 0x1400;
const WRAPPER: u64 = 0x1500;
const CONCURRENT: u64 = 0x1600;
const INTEGER: u64 = 0x1700;
const STRING: u64 = 0x1800;
const HOLDER: u64 = 0x1900;
const TREE_NODE: u64 = 0x1a00;
const CLASS: u64 = 0x10_0000;
/// Where objects start.
const FIRST: u64 = 0x1_0000_0000;

/// Many of something.
const MANY: usize = 300_000;

struct Maker {
    out: DumpWriter,
    heap: HeapWriter,
    classes: u32,
    next: u64,
    kept: Vec<u64>,
}

impl Maker {
    fn new() -> Self {
        use Type::{Byte, Int, Long, Object};
        let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
        for (id, name) in (1..).zip(NAMES) {
            out.string(id, name);
        }
        let (classes, next) = (0, FIRST);
        let mut maker = Self { out, heap: HeapWriter::new(IdSize::Eight), classes, next, kept: Vec::new() };
        maker.class(OBJECT, "java/lang/Object", 0, &[]);
        maker.class(ARRAY, "[Ljava/lang/Object;", OBJECT, &[]);
        maker.class(LIST, "java/util/ArrayList", OBJECT, &[("elementData", Object), ("size", Int)]);
        maker.class(MAP, "java/util/HashMap", OBJECT, &[("table", Object), ("size", Int)]);
        let node = [("key", Object), ("value", Object), ("next", Object)];
        maker.class(NODE, "java/util/HashMap$Node", OBJECT, &node);
        maker.class(TREE_NODE, "java/util/HashMap$TreeNode", NODE, &[("hash", Long)]);
        maker.class(WRAPPER, "java/util/Collections$UnmodifiableCollection", OBJECT, &[("c", Object)]);
        let concurrent = [("table", Object), ("baseCount", Long), ("counterCells", Object)];
        maker.class(CONCURRENT, "java/util/concurrent/ConcurrentHashMap", OBJECT, &concurrent);
        maker.class(INTEGER, "java/lang/Integer", OBJECT, &[("value", Int)]);
        maker.class(STRING, "java/lang/String", OBJECT, &[("value", Object), ("coder", Byte)]);
        maker.class(HOLDER, "com/acme/Holder", OBJECT, &[("field", Object)]);
        maker
    }

    fn class(&mut self, id: u64, class: &str, superclass: u64, fields: &[(&str, Type)]) {
        self.classes += 1;
        let number = 1000 + u64::from(self.classes);
        self.out.string(number, class);
        self.out.load_class(self.classes, id, 0, number);
        let fields: Vec<(u64, Type)> = fields.iter().map(|(field, ty)| (name(field), *ty)).collect();
        self.heap.class_dump(&ClassDump { id, superclass, fields: &fields, ..ClassDump::default() });
    }

    fn place(&mut self, bytes: usize) -> u64 {
        let id = self.next;
        self.next += (bytes as u64 + 16).next_multiple_of(8);
        id
    }

    fn instance(&mut self, class: u64, values: &[Value]) -> u64 {
        let id = self.place(48);
        self.heap.instance(id, 0, class, values);
        id
    }

    fn array(&mut self, elements: &[u64]) -> u64 {
        let id = self.place(elements.len() * 8);
        self.heap.object_array(id, 0, ARRAY, elements);
        id
    }

    fn bytes(&mut self, elements: &[u8]) -> u64 {
        let id = self.place(elements.len());
        self.heap.prim_array(id, 0, &Elements::of_bytes(elements));
        id
    }

    fn keep(&mut self, object: u64) -> u64 {
        self.kept.push(object);
        object
    }

    fn dump(mut self) -> Dump {
        let kept = std::mem::take(&mut self.kept);
        let keep = self.array(&kept);
        let holder = self.instance(HOLDER, &[Value::Object(keep)]);
        self.heap.root(holder, Root::StickyClass);
        self.out.heap_segment(&self.heap);
        self.out.heap_dump_end();
        let dump = Dump::at(None);
        self.out.finish().write_file(&dump.path).unwrap();
        dump
    }
}

/// Runs `waste` in all formats with little memory; each ends by itself. Returns the document.
#[track_caller]
fn ends(dump: &Dump) -> Json {
    let run = |more: &[&str]| {
        let child = process::in_addresses(MEMORY, "waste", &dump.path, more).arg("--quiet").spawn().unwrap();
        let (output, _) = process::finish_within(child, BARK, 8 << 20);
        let (status, said) = (output.status, process::stderr(&output));
        assert!(matches!(status.code(), Some(0 | 1)), "{more:?}: {status}: {said}");
        output.stdout
    };
    run(&[]);
    run(&["--by", "loader", "--format", "csv"]);
    serde_json::from_slice(&run(&["--format", "json"])).unwrap()
}

fn count(document: &Json, kind: &str) -> u64 {
    let rows = document["rows"].as_array().unwrap();
    rows.iter().find(|row| row["kind"] == kind).map_or(0, |row| row["count"].as_u64().unwrap())
}

#[test]
fn ten_million_equal_arrays() {
    const ARRAYS: usize = 10_000_000;
    let mut made = Maker::new();
    for _ in 0..ARRAYS {
        let array = made.bytes(&[1, 2, 3]);
        made.keep(array);
    }
    let document = ends(&made.dump());
    assert_eq!(count(&document, "duplicate_arrays"), ARRAYS as u64 - 1);
}

#[test]
fn strings_that_share_one_long_array_or_have_equal_ones() {
    let mut made = Maker::new();
    let text: Vec<u8> = (0..4_000_000u32).map(|at| (at % 251) as u8).collect();
    let arrays = [made.bytes(&text), made.bytes(&text)];
    for at in 0..MANY {
        let string = made.instance(STRING, &[Value::Object(arrays[at % 2]), Value::Byte(0)]);
        made.keep(string);
    }
    let document = ends(&made.dump());
    assert_eq!(count(&document, "duplicate_strings"), MANY as u64 - 1);
}

#[test]
fn tables_and_chains_that_many_share() {
    let mut made = Maker::new();
    let element = made.instance(OBJECT, &[]);
    let mut slots = vec![0; MANY];
    slots[MANY - 1] = element;
    let array = made.array(&slots);
    // A chain of tree nodes.
    let null = Value::Object(0);
    let chain = (0..MANY).fold(0, |next, _| {
        made.instance(TREE_NODE, &[Value::Long(0), Value::Object(element), null, Value::Object(next)])
    });
    for size in [1, 1 << 30] {
        for _ in 0..MANY / 10 {
            let list = made.instance(LIST, &[Value::Object(array), Value::Int(size)]);
            made.keep(list);
            let map = made.instance(MAP, &[Value::Object(array), Value::Int(size)]);
            made.keep(map);
            let own = made.array(&[chain, 0, 0, 0]);
            let map = made.instance(MAP, &[Value::Object(own), Value::Int(size)]);
            made.keep(map);
            let own = made.array(&[chain]);
            let cells = Value::Object(array);
            let map = made.instance(CONCURRENT, &[Value::Object(own), Value::Long(size.into()), cells]);
            made.keep(map);
            let none = Value::Object(0);
            let map = made.instance(CONCURRENT, &[Value::Object(own), Value::Long(size.into()), none]);
            made.keep(map);
        }
    }
    ends(&made.dump());
}

#[test]
fn wrappers_of_one_list_and_of_themselves() {
    let mut made = Maker::new();
    let empty = made.array(&[]);
    let list = made.instance(LIST, &[Value::Object(empty), Value::Int(0)]);
    let mut chain = list;
    for _ in 0..MANY {
        let wrapper = made.instance(WRAPPER, &[Value::Object(list)]);
        made.keep(wrapper);
        chain = made.instance(WRAPPER, &[Value::Object(chain)]);
    }
    made.keep(chain);
    // One that contains itself, and two that contain each other.
    let own = made.next;
    made.instance(WRAPPER, &[Value::Object(own)]);
    made.keep(own);
    let other = made.next + 64;
    let first = made.instance(WRAPPER, &[Value::Object(other)]);
    made.keep(first);
    assert_eq!(made.instance(WRAPPER, &[Value::Object(first)]), other, "the test is to make a circle");
    let array = made.next;
    made.array(&[array]);
    let of_itself = made.instance(LIST, &[Value::Object(array), Value::Int(1)]);
    made.keep(of_itself);
    let document = ends(&made.dump());
    assert!(count(&document, "empty_collections") >= MANY as u64, "{document}");
}

#[test]
fn what_hangs_below_long_chains_and_popular_objects() {
    let mut made = Maker::new();
    // A chain of nodes, each of which holds an array of zeros.
    let mut next = 0;
    for _ in 0..MANY {
        let zeros = made.bytes(&[0; 16]);
        next = made.instance(NODE, &[Value::Object(zeros), Value::Object(0), Value::Object(next)]);
    }
    made.keep(next);
    // A hub that all refer to, five objects above what is wasted in each.
    let hub = made.next;
    let mut private = Vec::new();
    for at in 0..MANY {
        let id = made.instance(INTEGER, &[Value::Int(i32::try_from(at).unwrap())]);
        let mut top = id;
        for _ in 0..5 {
            top = made.array(&[top, top]);
        }
        private.push(top);
    }
    let all = made.array(&private);
    made.keep(all);
    for _ in 0..MANY {
        let list = made.array(&[all, hub]);
        made.keep(list);
    }
    let document = ends(&made.dump());
    assert_eq!(count(&document, "boxed_numbers"), MANY as u64);
    assert!(count(&document, "constant_arrays") >= MANY as u64);
}

#[test]
fn as_many_classes_as_there_can_be_below_one_of_many_fields() {
    const CLASSES: u64 = 100_000;
    let mut made = Maker::new();
    made.class(CLASS, "com/acme/Base", OBJECT, &[("field", Type::Long); 1024]);
    for class in 1..CLASSES {
        made.class(CLASS + class * 32, "java/util/HashMap", CLASS, &[]);
        // Shorter than its class says.
        let object = made.instance(CLASS + class * 32, &[Value::Long(7)]);
        made.keep(object);
    }
    ends(&made.dump());
}

#[test]
fn caches_of_caches() {
    let mut made = Maker::new();
    let number = made.instance(INTEGER, &[Value::Int(1)]);
    made.class(CLASS, "[Ljava/lang/Integer;", OBJECT, &[]);
    let cache = made.place(MANY * 8);
    made.heap.object_array(cache, 0, CLASS, &vec![number; MANY]);
    let archive = made.array(&vec![cache; MANY]);
    for _ in 0..MANY {
        made.heap.root(archive, Root::JniGlobal { reference: 0 });
    }
    let document = ends(&made.dump());
    assert_eq!(count(&document, "boxed_numbers"), 0);
}
