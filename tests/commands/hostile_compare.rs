//! `diff --group-by place` and `trend` on dumps that are made to take them for ever or to fill memory: chains, circles of labels,
//! classes above one another, places without end. Each ends, with the memory that a dump of that size may take.
//!
//! No time is measured: what would be quadratic has sizes here at which it does not end before the watchdog barks.

use std::time::Duration;

use crate::kit::dump::Dump;
use crate::kit::process;
use crate::maker::{CLASS, Maker, OBJECT};
use hprof_writer::{Type, Value};
use serde_json::Value as Json;

/// A hundred times what these take on a slow machine, in a debug build.
const BARK: Duration = Duration::from_secs(180);
/// Limit of address space in KiB.
const MEMORY: u64 = 3 << 20;

// Names of fields, in this order.
const NAMES: [&str; 4] = ["next", "other", "table", "size"];
const NEXT: u64 = 1;
const OTHER: u64 = 2;

/// Many of something.
const MANY: u64 = 300_000;

/// A class with two references.
fn linked(made: &mut Maker, id: u64, name: &str, superclass: u64) {
    made.class(id, name, superclass, &[(NEXT, Type::Object), (OTHER, Type::Object)]);
}

/// A dump in which a root holds nothing.
fn nothing() -> Dump {
    let mut made = Maker::new(&NAMES);
    let object = made.instance(OBJECT, &[]);
    made.root(object);
    made.dump()
}

/// Runs `diff --group-by place` against nothing, both ways, and `trend`; each ends by itself. Returns what is new.
#[track_caller]
fn ends(dump: &Dump) -> Vec<Json> {
    let nothing = nothing();
    let run = |command: &str, first: &Dump, more: &[&str]| {
        let child = process::in_addresses(MEMORY, command, &first.path, more).arg("--quiet").spawn().unwrap();
        let (output, _) = process::finish_within(child, BARK, 64 << 20);
        let (status, said) = (output.status, process::stderr(&output));
        assert!(matches!(status.code(), Some(0 | 1 | 3)), "{command} {more:?}: {status:?}\n{said}");
        output.stdout
    };
    let [this, none] = [dump, &nothing].map(|dump| dump.path.to_str().unwrap());
    run("diff", dump, &[none, "--group-by", "place", "--min-change", "1"]);
    run("trend", &nothing, &[this, this, "--min-change", "1"]);
    run("diff", &nothing, &[this, "--group-by", "superclass", "--retained"]);
    let stdout =
        run("diff", &nothing, &[this, "--group-by", "place", "--min-change", "1", "--format", "json"]);
    let mut document: Json = serde_json::from_slice(&stdout).unwrap();
    let Json::Array(rows) = document["rows"].take() else { panic!("{document}") };
    rows
}

/// The objects of the place that has most.
fn objects(rows: &[Json]) -> u64 {
    rows.iter().map(|row| row["objects_new"].as_u64().unwrap()).max().unwrap()
}

#[test]
fn a_long_chain_of_one_class() {
    let mut made = Maker::new(&NAMES);
    linked(&mut made, CLASS, "acme/Node", OBJECT);
    let mut next = 0;
    for _ in 0..MANY {
        next = made.instance(CLASS, &[Value::Object(next), Value::Object(0)]);
    }
    made.root(next);
    assert_eq!(objects(&ends(&made.dump())), MANY);
}

#[test]
fn long_chains_of_changing_classes() {
    let mut made = Maker::new(&NAMES);
    // As many as fit into the levels of places, and more.
    for classes in [2, 3, 100] {
        let first = CLASS + classes * 0x10_0000;
        for class in 0..classes {
            linked(&mut made, first + class * 0x100, &format!("acme/C{classes}x{class}"), OBJECT);
        }
        let mut next = 0;
        for at in 0..MANY / 3 {
            next = made.instance(first + at % classes * 0x100, &[Value::Object(next), Value::Object(0)]);
        }
        made.root(next);
    }
    assert!(!ends(&made.dump()).is_empty());
}

#[test]
fn trees_whose_every_path_has_another_label() {
    let mut made = Maker::new(&NAMES);
    // Two fields and two classes: 4^n labels for n levels.
    for class in 0..2 {
        linked(&mut made, CLASS + class * 0x100, &format!("acme/Tree{class}"), OBJECT);
    }
    let mut level: Vec<u64> = (0..1u64 << 16).map(|_| made.instance(OBJECT, &[])).collect();
    while level.len() > 1 {
        let pairs: Vec<[u64; 2]> = level.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
        level = (0u64..)
            .zip(pairs)
            .map(|(at, [left, right])| {
                made.instance(CLASS + at % 2 * 0x100, &[Value::Object(left), Value::Object(right)])
            })
            .collect();
    }
    made.root(level[0]);
    assert!(!ends(&made.dump()).is_empty());
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn many_classes_above_one_another_with_long_names() {
    let mut made = Maker::new(&NAMES);
    let long = "x".repeat(1000);
    for class in 0..20_000 {
        let superclass = if class == 0 { OBJECT } else { CLASS + (class - 1) * 0x100 };
        linked(&mut made, CLASS + class * 0x100, &format!("acme/{long}{class}"), superclass);
    }
    let mut next = 0;
    for class in 0..200 {
        let values = vec![Value::Object(next); 2 * (class + 1) as usize];
        next = made.instance(CLASS + class * 0x100, &values);
    }
    made.root(next);
    assert!(!ends(&made.dump()).is_empty());
}

#[test]
fn a_map_that_claims_more_than_it_has() {
    const MAP: u64 = CLASS;
    const TABLE: u64 = 3;
    const SIZE: u64 = 4;
    let mut made = Maker::new(&NAMES);
    made.class(MAP, "java/util/HashMap", OBJECT, &[(TABLE, Type::Object), (SIZE, Type::Int)]);
    // Each is its own table's only entry, and says that it is small.
    let mut inner = 0;
    for _ in 0..MANY / 10 {
        let table = made.array(&[inner, inner, inner]);
        inner = made.instance(MAP, &[Value::Object(table), Value::Int(3)]);
    }
    made.root(inner);
    assert!(!ends(&made.dump()).is_empty());
}

#[test]
fn maps_in_maps_whose_keys_tell_nothing() {
    // Of the names below.
    let [root, size, key_of, value_of, left] = [1, 2, 3, 4, 5];
    let [map, entry, number, integer, first_kind] = [0, 1, 2, 3, 4].map(|at| CLASS + at);
    let kinds = 5;
    let mut made = Maker::new(&["root", "size", "key", "value", "left"]);
    made.class(map, "java/util/TreeMap", OBJECT, &[(root, Type::Object), (size, Type::Int)]);
    let fields = [(key_of, Type::Object), (value_of, Type::Object), (left, Type::Object)];
    made.class(entry, "java/util/TreeMap$Entry", OBJECT, &fields);
    made.class(number, "java/lang/Number", OBJECT, &[]);
    made.class(integer, "java/lang/Integer", number, &[(value_of, Type::Int)]);
    for kind in 0..kinds {
        made.class(first_kind + kind, &format!("acme/Map{kind}"), map, &[]);
    }
    // A tree of maps, of another class on each level, each of which is in one of an upper level again. No two keys are alike.
    let mut level: Vec<u64> = (0..1 << 14).map(|_| made.array(&[0; 8])).collect();
    let mut key = 0;
    let mut depth = 0;
    while level.len() > 1 {
        let map_of = |values: &[u64]| {
            let mut first = 0;
            for value in values {
                key += 1;
                let key = made.instance(integer, &[Value::Int(key)]);
                first =
                    made.instance(entry, &[Value::Object(key), Value::Object(*value), Value::Object(first)]);
            }
            let size = i32::try_from(values.len()).unwrap();
            // The fields of the class itself come first; it has none.
            made.instance(first_kind + depth % kinds, &[Value::Object(first), Value::Int(size)])
        };
        level = level.chunks(2).map(map_of).collect();
        depth += 1;
    }
    made.root(level[0]);
    assert!(objects(&ends(&made.dump())) > 1000);
}
