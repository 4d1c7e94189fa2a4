//! `leaks` on dumps that are made to take it for ever, to fill memory, or to fill the screen: long chains, as many classes,
//! threads and suspects as a file can have. Each ends, with the memory that a dump of that size may take, and says little.
//!
//! No time is measured: what would be quadratic has sizes here at which it does not end before the watchdog barks.

use std::time::Duration;

use crate::kit::dump::Dump;
use crate::kit::process;
use crate::maker::{CLASS, FIRST, Maker, OBJECT};
use hprof_writer::{ClassDump, Root, StartThread, Type, Value};
use serde_json::Value as Json;

/// A hundred times what these take on a slow machine, in a debug build.
const BARK: Duration = Duration::from_secs(120);
/// Limit of address space in KiB: the dumps take up to 100 MB, their indexes as much.
const MEMORY: u64 = 2 << 20;
/// Bytes that an answer has at most.
const LONGEST: usize = 8 << 20;

// Numbers of names.
const NEXT: u64 = 1;
const ITEMS: u64 = 2;
const CAPACITY: u64 = 3;
const WORKER: u64 = 4;
const FD: u64 = 5;
const COUNT: u64 = 6;
const TAKE_INDEX: u64 = 7;

const LINK: u64 = 0x1100;

/// A dump with a link that has the next one.
fn maker() -> Maker {
    let mut made = Maker::new(&["next", "items", "capacity", "worker", "fd", "count", "takeIndex"]);
    made.class(LINK, "com/acme/Link", OBJECT, &[(NEXT, Type::Object)]);
    made
}

/// Adds a chain of `links` links, the last of which refers to `end`; returns the first.
fn chain(made: &mut Maker, links: u64, end: u64) -> u64 {
    (0..links).fold(end, |next, _| made.instance(LINK, &[Value::Object(next)]))
}

/// Runs `leaks` in all formats with little memory, and the overview that shows its suspects; each ends by itself. Returns
/// the document and the table.
#[track_caller]
fn ends(dump: &Dump, more: &[&str]) -> (Json, String) {
    ends_within(dump, more, LONGEST)
}

/// Like [`ends`], with a limit on the size of answers.
#[track_caller]
fn ends_within(dump: &Dump, more: &[&str], longest: usize) -> (Json, String) {
    let run = |command: &str, more: &[&str]| {
        let child = process::in_addresses(MEMORY, command, &dump.path, more).arg("--quiet").spawn().unwrap();
        let (output, _) = process::finish_within(child, BARK, longest as u64 + 1);
        let (status, said) = (output.status, process::stderr(&output));
        assert!(matches!(status.code(), Some(0 | 1)), "{command} {more:?}: {status}: {said}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!text.is_empty() && text.len() <= longest, "{command} {more:?}: {} bytes", text.len());
        text
    };
    let json = run("leaks", &[more, &["--format", "json"]].concat());
    let table = run("leaks", more);
    run("leaks", &[more, &["--format", "markdown"]].concat());
    run("overview", &[]);
    (serde_json::from_str(&json).unwrap(), table)
}

fn rows(document: &Json) -> &[Json] {
    document["rows"].as_array().unwrap()
}

/// The rows without those of MAT's rules whose verdict is in another row.
fn judged(document: &Json) -> Vec<&Json> {
    let keys = ["kind", "class", "object", "objects", "retained_bytes"];
    let is_judged = |row: &&Json| {
        let is_it = |other: &Json| other["rule"] == "below" && keys.iter().all(|key| row[key] == other[key]);
        row["rule"] != "mat" || !rows(document).iter().any(is_it)
    };
    rows(document).iter().filter(is_judged).collect()
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_chain_of_two_million_objects_below_one_root() {
    const LINKS: u64 = 2_000_000;
    let mut made = maker();
    let first = chain(&mut made, LINKS, 0);
    made.root(first);
    let (document, table) = ends(&made.dump(), &[]);
    let [row] = judged(&document)[..] else { panic!("{document}") };
    assert_eq!((&row["verdict"], &row["reason"]["how"]), (&"accumulation".into(), &"chain".into()), "{row}");
    assert_eq!(row["reason"]["objects"], LINKS);
    assert!(table.contains("a chain of 2,000,000 x com.acme.Link"), "{table}");
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn twenty_thousand_classes_that_retain_the_same() {
    const CLASSES: u64 = 20_000;
    let mut made = maker();
    for class in 0..CLASSES {
        made.class(CLASS + class * 32, &format!("com/acme/C{class}"), OBJECT, &[(NEXT, Type::Object)]);
    }
    for at in 0..1_000_000 {
        let object = made.instance(CLASS + at % CLASSES * 32, &[Value::Object(0)]);
        made.root(object);
    }
    let (document, _) = ends(&made.dump(), &["--threshold", "1"]);
    // All class objects together are more than a percent.
    assert!(rows(&document).iter().all(|row| row["what"] == "class"), "{document}");
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn as_many_groups_as_there_can_be() {
    // Each has more than a percent, and its members lie among all others.
    const CLASSES: u64 = 90;
    let mut made = maker();
    for class in 0..CLASSES {
        made.class(CLASS + class * 32, &format!("com/acme/C{class}"), OBJECT, &[(NEXT, Type::Object)]);
    }
    for at in 0..200_000 {
        let object = made.instance(CLASS + at % CLASSES * 32, &[Value::Object(0)]);
        made.root(object);
    }
    let (document, _) = ends(&made.dump(), &["--threshold", "1"]);
    assert_eq!((of_mat(&document), judged(&document).len()), (90, 90));
}

/// Number of the suspects by MAT's rules.
fn of_mat(document: &serde_json::Value) -> usize {
    rows(document).iter().filter(|row| row["rule"] == "mat").count()
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn as_many_chains_as_there_can_be() {
    let mut made = maker();
    for _ in 0..90 {
        let first = chain(&mut made, 5000, 0);
        made.root(first);
    }
    let (document, table) = ends(&made.dump(), &["--threshold", "1"]);
    assert_eq!(of_mat(&document), 90);
    // And once in the headline.
    assert_eq!(table.matches("a chain of 5,000 x com.acme.Link").count(), 91);
}

/// Names as long as a class file can have them, on many long paths: a megabyte in the file for each gigabyte of names there.
#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn long_names_on_long_paths() {
    let mut made = maker();
    let name = format!("com/acme/{}", "x".repeat(65_000));
    made.class(CLASS, &name, OBJECT, &[(NEXT, Type::Object), (ITEMS, Type::Object)]);
    for _ in 0..50 {
        let mut first = made.array(&[0; 1000]);
        for _ in 0..500 {
            first = made.instance(CLASS, &[Value::Object(first), Value::Object(0)]);
        }
        made.root(first);
    }
    let (document, _) = ends_within(&made.dump(), &["--threshold", "1"], 64 << 20);
    assert_eq!(of_mat(&document), 50);
    let paths = rows(&document).iter().map(|row| row["path"].as_array().unwrap().len());
    assert!(paths.max().unwrap() <= 8);
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_million_objects_that_two_chains_of_a_hundred_thousand_lead_to() {
    const MEMBERS: u64 = 1_000_000;
    let mut made = maker();
    made.class(CLASS, "com/acme/Member", OBJECT, &[(NEXT, Type::Object)]);
    let members: Vec<u64> = (0..MEMBERS).map(|_| made.instance(CLASS, &[Value::Object(0)])).collect();
    for _ in 0..2 {
        let array = made.array(&members);
        let first = chain(&mut made, 100_000, array);
        made.root(first);
    }
    let (document, _) = ends(&made.dump(), &[]);
    let group = rows(&document).iter().find(|row| row["kind"] == "group").unwrap();
    assert_eq!((&group["class"], &group["objects"]), (&"com.acme.Member".into(), &MEMBERS.into()));
    // The middle of the path is left out.
    assert_eq!(group["path"].as_array().unwrap().len(), 400);
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn classes_above_each_other() {
    const CLASSES: u64 = 20_000;
    let mut made = maker();
    for class in 0..CLASSES {
        let superclass = CLASS + (class + 1) % CLASSES * 32;
        made.class(CLASS + class * 32, "java/lang/Thread", superclass, &[(NEXT, Type::Object)]);
    }
    for _ in 0..20 {
        for class in 0..CLASSES {
            let object = made.instance(CLASS + class * 32, &[Value::Object(0)]);
            made.root(object);
        }
    }
    ends(&made.dump(), &["--threshold", "1"]);
}

/// Fields looked up by name, below a chain of classes as long as a file allows, with objects of each.
#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn long_chains_of_classes_that_are_looked_for() {
    const CLASSES: u64 = 20_000;
    for name in [
        "java/nio/MappedByteBuffer",
        "java/util/AbstractQueue",
        "java/lang/ThreadLocal$ThreadLocalMap$Entry",
        "java/lang/Thread",
        "java/lang/ClassLoader",
        "java/util/ArrayList",
    ] {
        let mut made = maker();
        let fields = [(CAPACITY, Type::Int), (NEXT, Type::Object)];
        made.class(CLASS, name, OBJECT, &fields);
        for class in 1..CLASSES {
            let id = CLASS + class * 32;
            made.class(id, "com/acme/Below", id - 32, &[(NEXT, Type::Object)]);
        }
        for class in 0..CLASSES {
            // The record is shorter than its class says, as in a damaged dump.
            let values = [Value::Object(0), Value::Int(7)];
            let object = made.instance(CLASS + class * 32, &values);
            made.root(object);
        }
        // A thread, a queue or a list that retains much.
        let items = vec![FIRST; 100_000];
        let array = made.array(&items);
        let last = made.instance(CLASS + (CLASSES - 1) * 32, &[Value::Object(array)]);
        made.root(last);
        ends(&made.dump(), &["--threshold", "1"]);
    }
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_queue_in_the_frames_of_many_threads() {
    const THREADS: u32 = 300_000;
    const ELEMENTS: u64 = 100_000;
    let mut made = maker();
    made.class(CLASS, "java/util/AbstractQueue", OBJECT, &[]);
    let queue = CLASS + 32;
    let fields = [(ITEMS, Type::Object), (COUNT, Type::Int), (TAKE_INDEX, Type::Int)];
    made.class(queue, "java/util/concurrent/ArrayBlockingQueue", CLASS, &fields);
    let elements: Vec<u64> = (0..ELEMENTS).map(|_| chain(&mut made, 1, 0)).collect();
    let items = made.array(&elements);
    let count = i32::try_from(ELEMENTS).unwrap();
    let queue = made.instance(queue, &[Value::Object(items), Value::Int(count), Value::Int(0)]);
    for thread in 1..=THREADS {
        // Their objects are not in the dump.
        let names =
            StartThread { thread, object: 7, trace: 0, name: WORKER, group: WORKER, parent_group: WORKER };
        made.out.start_thread(&names);
        made.heap.root(queue, Root::JavaFrame { thread, frame: 0 });
    }
    let (document, _) = ends(&made.dump(), &[]);
    let [row] = judged(&document)[..] else { panic!("{document}") };
    assert_eq!(row["collection"]["thread_count"], THREADS, "{row}");
    assert_eq!(row["collection"]["thread_names"].as_array().unwrap().len(), 10);
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn class_loaders_at_the_end_of_a_long_chain() {
    const LOADERS: u64 = 20;
    const GROUPS: u64 = 3;
    let mut made = maker();
    made.class(CLASS, "java/lang/ClassLoader", OBJECT, &[(NEXT, Type::Object)]);
    let mut loaders = Vec::new();
    for at in 0..LOADERS * GROUPS {
        let cache = made.array(&[0; 10_000]);
        let loader = made.place(48);
        let id = CLASS + (1 + at) * 32;
        let statics = [(NEXT, Value::Object(cache))];
        let class = ClassDump { id, superclass: OBJECT, loader, statics: &statics, ..ClassDump::default() };
        made.class_of(&format!("com/acme/App{}", at % GROUPS), &class);
        let app = made.instance(id, &[]);
        made.heap.instance(loader, 0, CLASS, &[Value::Object(app)]);
        loaders.push(loader);
    }
    let array = made.array(&loaders);
    let first = chain(&mut made, 300_000, array);
    made.root(first);
    let (document, _) = ends(&made.dump(), &[]);
    let groups = document["loader_groups"].as_array().unwrap();
    assert_eq!(groups.len() as u64, GROUPS);
    assert_eq!(groups[0]["loaders"], LOADERS);
    // One path as long is enough.
    let paths = groups[0]["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 1);
    assert_eq!(paths[0]["path"].as_array().unwrap().len(), 400);
}

#[test]
fn buffers_in_the_fields_of_a_class_with_as_many_as_it_can_have() {
    const BUFFERS: u64 = 65_000;
    let mut made = maker();
    let buffer = CLASS + 32;
    made.class(CLASS, "java/nio/MappedByteBuffer", OBJECT, &[(CAPACITY, Type::Int), (FD, Type::Object)]);
    made.class(buffer, "java/nio/DirectByteBuffer", CLASS, &[]);
    let buffers: Vec<u64> =
        (0..BUFFERS).map(|_| made.instance(buffer, &[Value::Int(1000), Value::Object(0)])).collect();
    let statics: Vec<(u64, Value)> = buffers.iter().map(|id| (NEXT, Value::Object(*id))).collect();
    let holder = CLASS + 64;
    let class = ClassDump { id: holder, superclass: OBJECT, statics: &statics, ..ClassDump::default() };
    made.class_of("com/acme/Buffers", &class);
    made.root(holder);
    let (document, _) = ends(&made.dump(), &[]);
    let off_heap = &document["off_heap"];
    assert_eq!(off_heap["direct_buffers"], BUFFERS);
    assert_eq!(off_heap["owners"][0]["field"], "com.acme.Buffers.next");
    // Owners are sought for the thousand largest.
    assert_eq!(off_heap["owners"][0]["buffers"], 1000);
}
