//! `waste` on dumps that are made to take it for ever or to fill memory: what many share, what contains itself, contents
//! without end. Each ends, with the memory that a dump of that size may take.
//!
//! No time is measured: what would be quadratic has sizes here at which it does not end before the watchdog barks.

use std::time::Duration;

use crate::kit::dump::Dump;
use crate::kit::portion;
use crate::kit::process;
use crate::maker::{CLASS, Maker, OBJECT};
use hprof_writer::{Elements, Root, Type, Value};
use serde_json::Value as Json;

/// A hundred times what these take on a slow machine, in a debug build.
const BARK: Duration = Duration::from_secs(120);
/// Limit of address space in KiB.
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

// Classes.
const LIST: u64 = 0x1100;
const MAP: u64 = 0x1300;
const NODE: u64 = 0x1400;
const WRAPPER: u64 = 0x1500;
const CONCURRENT: u64 = 0x1600;
const INTEGER: u64 = 0x1700;
const STRING: u64 = 0x1800;
const HOLDER: u64 = 0x1900;
const TREE_NODE: u64 = 0x1a00;

/// Many of something.
const MANY: usize = 300_000;

/// A dump with the JDK's collections. What is kept hangs below one root.
struct Shop {
    made: Maker,
    kept: Vec<u64>,
}

impl Shop {
    fn new() -> Self {
        use Type::{Byte, Int, Long, Object};
        let mut shop = Self { made: Maker::new(&NAMES), kept: Vec::new() };
        shop.class(LIST, "java/util/ArrayList", OBJECT, &[("elementData", Object), ("size", Int)]);
        shop.class(MAP, "java/util/HashMap", OBJECT, &[("table", Object), ("size", Int)]);
        let node = [("key", Object), ("value", Object), ("next", Object)];
        shop.class(NODE, "java/util/HashMap$Node", OBJECT, &node);
        shop.class(TREE_NODE, "java/util/HashMap$TreeNode", NODE, &[("hash", Long)]);
        shop.class(WRAPPER, "java/util/Collections$UnmodifiableCollection", OBJECT, &[("c", Object)]);
        let concurrent = [("table", Object), ("baseCount", Long), ("counterCells", Object)];
        shop.class(CONCURRENT, "java/util/concurrent/ConcurrentHashMap", OBJECT, &concurrent);
        shop.class(INTEGER, "java/lang/Integer", OBJECT, &[("value", Int)]);
        shop.class(STRING, "java/lang/String", OBJECT, &[("value", Object), ("coder", Byte)]);
        shop.class(HOLDER, "com/acme/Holder", OBJECT, &[("field", Object)]);
        shop
    }

    fn class(&mut self, id: u64, class: &str, superclass: u64, fields: &[(&str, Type)]) {
        let fields: Vec<(u64, Type)> = fields.iter().map(|(field, ty)| (name(field), *ty)).collect();
        self.made.class(id, class, superclass, &fields);
    }

    fn bytes(&mut self, elements: &[u8]) -> u64 {
        let id = self.made.place(elements.len());
        self.made.heap.prim_array(id, 0, &Elements::of_bytes(elements));
        id
    }

    fn keep(&mut self, object: u64) -> u64 {
        self.kept.push(object);
        object
    }

    fn dump(mut self) -> Dump {
        let keep = self.made.array(&self.kept);
        let holder = self.made.instance(HOLDER, &[Value::Object(keep)]);
        self.made.root(holder);
        self.made.dump()
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
    run(&["--group-by", "loader", "--format", "csv"]);
    serde_json::from_slice(&run(&["--format", "json"])).unwrap()
}

fn count(document: &Json, kind: &str) -> u64 {
    let rows = document["rows"].as_array().unwrap();
    rows.iter().find(|row| row["kind"] == kind).map_or(0, |row| row["objects"].as_u64().unwrap())
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn ten_million_equal_arrays() {
    let arrays = portion::cases(10_000_000);
    let mut shop = Shop::new();
    for _ in 0..arrays {
        let array = shop.bytes(&[1, 2, 3]);
        shop.keep(array);
    }
    let document = ends(&shop.dump());
    assert_eq!(count(&document, "duplicate_arrays"), arrays - 1);
}

#[test]
fn strings_that_share_one_long_array_or_have_equal_ones() {
    let mut shop = Shop::new();
    let text: Vec<u8> = (0..4_000_000u32).map(|at| (at % 251) as u8).collect();
    let arrays = [shop.bytes(&text), shop.bytes(&text)];
    for at in 0..MANY {
        let string = shop.made.instance(STRING, &[Value::Object(arrays[at % 2]), Value::Byte(0)]);
        shop.keep(string);
    }
    let document = ends(&shop.dump());
    assert_eq!(count(&document, "duplicate_strings"), MANY as u64 - 1);
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn tables_and_chains_that_many_share() {
    let mut shop = Shop::new();
    let element = shop.made.instance(OBJECT, &[]);
    let mut slots = vec![0; MANY];
    slots[MANY - 1] = element;
    let array = shop.made.array(&slots);
    // A chain of tree nodes.
    let null = Value::Object(0);
    let chain = (0..MANY).fold(0, |next, _| {
        shop.made.instance(TREE_NODE, &[Value::Long(0), Value::Object(element), null, Value::Object(next)])
    });
    for size in [1, 1 << 30] {
        for _ in 0..MANY / 10 {
            let list = shop.made.instance(LIST, &[Value::Object(array), Value::Int(size)]);
            shop.keep(list);
            let map = shop.made.instance(MAP, &[Value::Object(array), Value::Int(size)]);
            shop.keep(map);
            let own = shop.made.array(&[chain, 0, 0, 0]);
            let map = shop.made.instance(MAP, &[Value::Object(own), Value::Int(size)]);
            shop.keep(map);
            let own = shop.made.array(&[chain]);
            let cells = Value::Object(array);
            let map = shop.made.instance(CONCURRENT, &[Value::Object(own), Value::Long(size.into()), cells]);
            shop.keep(map);
            let none = Value::Object(0);
            let map = shop.made.instance(CONCURRENT, &[Value::Object(own), Value::Long(size.into()), none]);
            shop.keep(map);
        }
    }
    ends(&shop.dump());
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn wrappers_of_one_list_and_of_themselves() {
    let mut shop = Shop::new();
    let empty = shop.made.array(&[]);
    let list = shop.made.instance(LIST, &[Value::Object(empty), Value::Int(0)]);
    let mut chain = list;
    for _ in 0..MANY {
        let wrapper = shop.made.instance(WRAPPER, &[Value::Object(list)]);
        shop.keep(wrapper);
        chain = shop.made.instance(WRAPPER, &[Value::Object(chain)]);
    }
    shop.keep(chain);
    // One that contains itself, and two that contain each other.
    let own = shop.made.next();
    shop.made.instance(WRAPPER, &[Value::Object(own)]);
    shop.keep(own);
    let other = shop.made.next() + 64;
    let first = shop.made.instance(WRAPPER, &[Value::Object(other)]);
    shop.keep(first);
    assert_eq!(shop.made.instance(WRAPPER, &[Value::Object(first)]), other, "the test is to make a circle");
    let array = shop.made.next();
    shop.made.array(&[array]);
    let of_itself = shop.made.instance(LIST, &[Value::Object(array), Value::Int(1)]);
    shop.keep(of_itself);
    let document = ends(&shop.dump());
    assert!(count(&document, "empty_collections") >= MANY as u64, "{document}");
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn what_hangs_below_long_chains_and_popular_objects() {
    let mut shop = Shop::new();
    // A chain of nodes, each of which holds an array of zeros.
    let mut next = 0;
    for _ in 0..MANY {
        let zeros = shop.bytes(&[0; 16]);
        next = shop.made.instance(NODE, &[Value::Object(zeros), Value::Object(0), Value::Object(next)]);
    }
    shop.keep(next);
    // A hub that all refer to, five objects above what is wasted in each.
    let hub = shop.made.next();
    let mut private = Vec::new();
    for at in 0..MANY {
        let id = shop.made.instance(INTEGER, &[Value::Int(i32::try_from(at).unwrap())]);
        let mut top = id;
        for _ in 0..5 {
            top = shop.made.array(&[top, top]);
        }
        private.push(top);
    }
    let all = shop.made.array(&private);
    shop.keep(all);
    for _ in 0..MANY {
        let list = shop.made.array(&[all, hub]);
        shop.keep(list);
    }
    let document = ends(&shop.dump());
    assert_eq!(count(&document, "boxed_numbers"), MANY as u64);
    assert!(count(&document, "constant_arrays") >= MANY as u64);
}

#[test]
fn as_many_classes_as_there_can_be_below_one_of_many_fields() {
    const CLASSES: u64 = 100_000;
    let mut shop = Shop::new();
    shop.class(CLASS, "com/acme/Base", OBJECT, &[("field", Type::Long); 1024]);
    for class in 1..CLASSES {
        shop.class(CLASS + class * 32, "java/util/HashMap", CLASS, &[]);
        // Shorter than its class says.
        let object = shop.made.instance(CLASS + class * 32, &[Value::Long(7)]);
        shop.keep(object);
    }
    ends(&shop.dump());
}

#[test]
fn caches_of_caches() {
    let mut shop = Shop::new();
    let number = shop.made.instance(INTEGER, &[Value::Int(1)]);
    shop.class(CLASS, "[Ljava/lang/Integer;", OBJECT, &[]);
    let cache = shop.made.array_of(CLASS, &vec![number; MANY]);
    let archive = shop.made.array(&vec![cache; MANY]);
    for _ in 0..MANY {
        shop.made.heap.root(archive, Root::JniGlobal { reference: 0 });
    }
    let document = ends(&shop.dump());
    assert_eq!(count(&document, "boxed_numbers"), 0);
}
