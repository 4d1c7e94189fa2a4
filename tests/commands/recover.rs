//! `recover`: dumps of what is left, from segments as JVMs leave them, truncated and damaged files.

use std::fs;
use std::io::Write as _;
use std::process::Output;

use serde_json::Value as Json;

use hprof_writer::{
    ClassId, Elements, EndRecord, HeapModel, IdSize, Layout, Options, Root, Type, Value, Version, Written,
    damage,
};

use crate::kit::process::{Folder, stderr};
use crate::kit::texts::code;

/// Number of objects of class `Order`.
const ORDERS: u32 = 400;

/// A program's heap: orders with a number and a customer, in a map's table; a thread holds all of it. Addresses
/// begin at `base`, as they differ from run to run.
fn heap(base: u64) -> HeapModel {
    let mut model = HeapModel::with_base(Layout::COMPRESSED, base);
    let object = model.class("java.lang.Object", None, &[]);
    let thread = model.class("java.lang.Thread", Some(object), &[("target", Type::Object)]);
    model.class("java.lang.String", Some(object), &[("value", Type::Object), ("hash", Type::Int)]);
    let order = order_class(&mut model, object);
    // Without fields: nothing tells these from each other.
    let empty = model.class("com.acme.Empty", Some(object), &[]);
    model.class("com.acme.Hollow", Some(object), &[]);
    let orders = model.array_class(order);
    let customer = model.instance(empty, &[]);
    let all: Vec<_> = (0..ORDERS)
        .map(|number| model.instance(order, &[Value::Int(number.cast_signed()), customer.into()]))
        .collect();
    let table = model.object_array(orders, &all);
    model.prim_array(Elements::Byte(vec![7; 3000]));
    let main = model.instance(thread, &[table.into()]);
    let serial = model.trace(1, &[]);
    model.root(main, Root::ThreadObject { thread: 1, trace: serial });
    model.root_boot_classes();
    model
}

fn order_class(model: &mut HeapModel, object: ClassId) -> ClassId {
    model.class("com.acme.Order", Some(object), &[("number", Type::Int), ("customer", Type::Object)])
}

fn options() -> Options {
    Options { segment_bytes: Some(2000), ..Options::hotspot() }
}

/// A dump as JDK 22 and later write it: the names, and the segments in two files.
struct Unmerged {
    whole: Written,
    names: Vec<u8>,
    segments: [Vec<u8>; 2],
}

/// Offsets of records.
fn at(whole: &Written, tag: u8) -> Vec<usize> {
    whole.records_of(tag).into_iter().map(|at| at as usize).collect()
}

impl Unmerged {
    fn of(model: &HeapModel) -> Self {
        let whole = model.write(&options());
        let (bytes, starts) = (whole.bytes(), at(&whole, 0x1c));
        let end = at(&whole, 0x2c)[0];
        assert!(starts.len() > 6, "{} segments", starts.len());
        let middle = starts[starts.len() / 2];
        let segments = [bytes[starts[0]..middle].to_vec(), bytes[middle..end].to_vec()];
        Self { names: bytes[..starts[0]].to_vec(), segments, whole }
    }

    /// Names without LOAD CLASS, as of a JVM that was killed before it flushed them.
    fn early_names(&self) -> Vec<u8> {
        self.names[..at(&self.whole, 2)[0]].to_vec()
    }
}

/// Runs the program in the folder.
fn run(folder: &Folder, arguments: &[&str]) -> Output {
    let output = folder.command(arguments).current_dir(folder.path("")).output().unwrap();
    assert!(!stderr(&output).contains("panicked"), "{arguments:?}: {}", stderr(&output));
    output
}

/// Figures of a dump, as its own reader sees it.
#[derive(Debug, PartialEq)]
struct Figures {
    verdict: String,
    /// Class names and numbers of instances.
    histogram: Vec<(String, u64)>,
    /// Reachable objects.
    reachable: u64,
}

impl Figures {
    /// Reads a dump that is not damaged.
    fn of(folder: &Folder, dump: &str) -> Self {
        Self::read(folder, dump, 0)
    }

    fn read(folder: &Folder, dump: &str, expected: i32) -> Self {
        // One without an index: another dump may have had this name.
        let _ = fs::remove_dir_all(folder.path("index"));
        let json = |command: &[&str]| -> Json {
            let output = run(folder, &[command, &["--format", "json"]].concat());
            assert_eq!(code(&output), expected, "{command:?}: {}", stderr(&output));
            serde_json::from_slice(&output.stdout).unwrap()
        };
        let doctor = json(&["doctor", dump]);
        let histogram = json(&["histo", dump, "--top", "0"])["rows"].as_array().unwrap().clone();
        json(&["dominators", dump]);
        let info = json(&["info", dump]);
        let mut histogram: Vec<(String, u64)> = histogram
            .iter()
            .map(|row| (row["class"].as_str().unwrap().to_owned(), row["instances"].as_u64().unwrap()))
            .filter(|(_, instances)| *instances > 0)
            .collect();
        histogram.sort();
        let reachable = info["rows"][0]["reachable"]["objects"].as_u64().unwrap();
        Self { verdict: doctor["verdict"].as_str().unwrap().to_owned(), histogram, reachable }
    }

    fn count(&self, class: &str) -> u64 {
        self.histogram.iter().find(|(name, _)| name == class).map_or(0, |(_, count)| *count)
    }
}

/// Runs `recover`; returns the exit code and the answer, and checks that no object is in the dump twice.
fn recover(folder: &Folder, files: &[&str], more: &[&str]) -> (i32, Json) {
    let arguments = [&["recover"], files, &["-o", "out.hprof", "--format", "json"], more].concat();
    let output = run(folder, &arguments);
    let status = code(&output);
    if !matches!(status, 0 | 3) {
        return (status, Json::String(stderr(&output)));
    }
    let bytes = fs::read(folder.path("out.hprof")).unwrap();
    let mut ids = object_ids(&bytes);
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "objects that are in the dump twice");
    let answer: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["objects"]["total"], count);
    assert_eq!(answer["output_bytes"], bytes.len());
    (status, answer)
}

fn u4(bytes: &[u8], at: usize) -> usize {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

/// Reads the IDs of all objects and classes of a dump with 8-byte identifiers, record by record; panics if a length
/// is wrong, or if the dump does not end with HEAP DUMP END.
fn object_ids(bytes: &[u8]) -> Vec<u64> {
    let (mut ids, mut at, mut last) = (Vec::new(), 31, 0);
    while at < bytes.len() {
        last = bytes[at];
        let end = at + 9 + u4(bytes, at + 5);
        let mut sub = at + 9;
        while matches!(last, 0x0c | 0x1c) && sub < end {
            let tag = bytes[sub];
            if matches!(tag, 0x20..=0x23) {
                ids.push(u64::from_be_bytes(bytes[sub + 1..sub + 9].try_into().unwrap()));
            }
            sub += match tag {
                0x21 => 25 + u4(bytes, sub + 21),
                0x22 => 25 + 8 * u4(bytes, sub + 13),
                0x23 => 18 + u4(bytes, sub + 13), // Only bytes here.
                0x20 => class_dump_len(&bytes[sub..]),
                0x08 | 0x02 | 0x03 => 17,
                0x01 => 17,
                0x05 | 0xff => 9,
                other => panic!("sub-record {other:#x} at {sub}"),
            };
            assert!(sub <= end, "a sub-record that extends beyond its record at {at}");
        }
        at = end;
    }
    assert_eq!((at, last), (bytes.len(), 0x2c));
    ids
}

fn class_dump_len(bytes: &[u8]) -> usize {
    let mut at = 65;
    let u2 = |at: usize| usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
    let size = |code: u8| match code {
        2 | 7 | 11 => 8,
        4 | 8 => 1,
        5 | 9 => 2,
        _ => 4,
    };
    assert_eq!(u2(at), 0, "constants");
    at += 2;
    let statics = u2(at);
    at += 2;
    for _ in 0..statics {
        at += 9 + size(bytes[at + 8]);
    }
    at + 2 + 9 * u2(at)
}

#[test]
fn segments_that_were_not_merged() {
    let dump = Unmerged::of(&heap(0x1_0000_0000));
    let folder = Folder::new();
    folder.write("whole.hprof", dump.whole.bytes());
    folder.write("heap.hprof", &dump.names);
    folder.write("heap.hprof.p0", &dump.segments[0]);
    folder.write("heap.hprof.p1", &dump.segments[1]);
    // In any order. All was written, but only the end of the names tells, which nothing states.
    let (status, answer) = recover(&folder, &["heap.hprof.p1", "heap.hprof", "heap.hprof.p0"], &[]);
    assert_eq!((status, &answer["unnamed_classes"]), (0, &0.into()), "{answer}");
    let whole = Figures::of(&folder, "whole.hprof");
    assert_eq!(whole.count("com.acme.Order"), u64::from(ORDERS));
    assert_eq!(Figures::of(&folder, "out.hprof"), whole);
    assert_eq!(fs::read(folder.path("heap.hprof")).unwrap(), dump.names, "the files are not changed");

    // A segment that was not named is noticed, by any path.
    let output = run(&folder, &["recover", "./heap.hprof", "heap.hprof.p0", "-o", "less.hprof"]);
    assert_eq!(code(&output), 3);
    assert!(
        stderr(&output).contains("heap.hprof.p1 is part of the same dump; name it"),
        "{}",
        stderr(&output)
    );
    let table = String::from_utf8(output.stdout).unwrap();
    for text in ["part of the dump is missing", "class objects", "less.hprof", "heap.hprof.p1 is part of"] {
        assert!(table.contains(text), "{text} in {table}");
    }
    let output = run(&folder, &["recover", "heap.hprof.p0", "-o", "one.hprof"]);
    let hint = "heap.hprof and 1 more file are parts of the same dump; name them too";
    assert!(code(&output) == 3 && stderr(&output).contains(hint), "{}", stderr(&output));

    // Each file once.
    let files = ["heap.hprof", "./heap.hprof", "heap.hprof.p1", "heap.hprof.p0", "./heap.hprof.p1"];
    let (status, answer) = recover(&folder, &files, &["--force"]);
    assert_eq!((status, answer["rows"].as_array().unwrap().len()), (0, 1), "{answer}");

    // A complete dump does not miss what is beside it.
    folder.write("heap.hprof", dump.whole.bytes());
    let output = run(&folder, &["recover", "heap.hprof", "-o", "out.hprof", "--force"]);
    assert_eq!((code(&output), stderr(&output).contains("part of")), (0, false), "{}", stderr(&output));
}

#[test]
fn segments_that_are_lost() {
    let dump = Unmerged::of(&heap(0x1_0000_0000));
    let starts = at(&dump.whole, 0x1c);
    let (middle, end) = (starts[starts.len() / 2 + 2], at(&dump.whole, 0x2c)[0]);
    let last = dump.whole.bytes()[middle..end].to_vec();
    let second = dump.segments[1][..dump.segments[1].len() - last.len()].to_vec();
    let all = [dump.segments[0].clone(), second, last];
    let merged = [dump.names.as_slice(), &all[0], &all[1][..300]].concat();
    for (head, given, why) in [
        (&dump.names, &[0, 2][..], "segment .p1 is missing"),
        (&dump.names, &[1, 2], "segment .p0 is missing"),
        (&dump.names, &[2], "2 segments are missing; the first is .p0"),
        (&merged, &[1, 2], ""),
    ] {
        let folder = Folder::new();
        folder.write("heap.hprof", head);
        let names = given.iter().map(|number| format!("heap.hprof.p{number}"));
        let names: Vec<String> = names
            .inspect(|name| {
                folder.write(name, &all[name[12..].parse::<usize>().unwrap()]);
            })
            .collect();
        let files: Vec<&str> =
            std::iter::once("heap.hprof").chain(names.iter().map(String::as_str)).collect();
        let (status, answer) = recover(&folder, &files, &[]);
        let rows = answer["rows"].as_array().unwrap();
        let text =
            rows.iter().find(|row| row["kind"] == "segments_incomplete").map(|row| row["text"].clone());
        let (expected, text) = (if why.is_empty() { 0 } else { 3 }, text.unwrap_or_else(|| "".into()));
        assert_eq!((status, text.as_str()), (expected, Some(why)), "{given:?}: {answer}");
    }
}

#[test]
fn equal_records_are_compared_in_linear_time() {
    const COUNT: usize = 150_000;
    let record = |body: &[u8]| [&[0x1c, 0, 0, 0, 0][..], &(body.len() as u32).to_be_bytes(), body].concat();
    let root = record(&[&[0xff][..], &0x1000_u64.to_be_bytes()].concat());
    let array = [&[0x23][..], &0x1000_u64.to_be_bytes(), &[0, 0, 0, 0, 0, 0, 0, 8, 8], &[7; 8]].concat();
    let first = record(&array);
    let header = [&b"JAVA PROFILE 1.0.2\0"[..], &[0, 0, 0, 8], &[0; 8]].concat();
    let folder = Folder::new();
    folder.write("heap.hprof", [&header[..], &first, &root.repeat(COUNT), &first].concat());
    folder.write("heap.hprof.p1", root.repeat(COUNT + 9));
    let start = std::time::Instant::now();
    let output = run(&folder, &["recover", "heap.hprof", "heap.hprof.p1", "-o", "out.hprof"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

#[test]
fn names_that_a_complete_dump_does_not_have() {
    let written = heap(0x1_0000_0000).write(&Options { first_string: 1, ..options() });
    let mut bytes = written.bytes();
    // The STRING record of a class's name.
    let load = at(&written, 2)[3];
    let name = bytes[load + 9 + 16..load + 9 + 24].to_vec();
    let string = at(&written, 1).into_iter().find(|at| bytes[at + 9..at + 17] == name[..]).unwrap();
    let end = string + 9 + u4(&bytes, string + 5);
    bytes.drain(string..end);
    let folder = Folder::new();
    folder.write("heap.hprof", &bytes);
    assert_eq!(code(&run(&folder, &["doctor", "heap.hprof"])), 0);
    let (status, answer) = recover(&folder, &["heap.hprof"], &[]);
    assert_eq!((status, &answer["unnamed_classes"]), (0, &1.into()), "{answer}");
    let text =
        &answer["rows"].as_array().unwrap().iter().find(|row| row["kind"] == "classes_by_shape").unwrap();
    assert_eq!(text["severity"], "note");
    assert!(text["text"].as_str().unwrap().starts_with("1 class has no name"), "{text}");
    // Whatever else refers to the lost name does not get another one.
    let out = fs::read(folder.path("out.hprof")).unwrap();
    let is_lost = |at: usize| out[at..].starts_with(&[1, 0, 0, 0, 0]) && out[at + 9..at + 17] == name[..];
    assert!(!(0..out.len() - 17).any(is_lost));
}

#[test]
fn a_jvm_killed_while_it_writes_leaves_classes_without_names() {
    let dump = Unmerged::of(&heap(0x1_0000_0000));
    let folder = Folder::new();
    folder.write("heap.hprof", dump.early_names());
    folder.write("heap.hprof.p0", &dump.segments[0]);
    // In the middle of an object.
    folder.write("heap.hprof.p1", damage::cut(&dump.segments[1], 1500));
    let files = ["heap.hprof", "heap.hprof.p0", "heap.hprof.p1"];
    let (status, answer) = recover(&folder, &files, &[]);
    assert_eq!(status, 3);
    // All except java.lang.Object, the only one without a superclass.
    assert_eq!(answer["unnamed_classes"], 6, "{answer}");
    let kinds: Vec<_> =
        answer["rows"].as_array().unwrap().iter().map(|row| row["kind"].as_str().unwrap()).collect();
    for kind in ["segments_incomplete", "classes_by_shape", "file_cut"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    let figures = Figures::of(&folder, "out.hprof");
    assert_ne!(figures.verdict, "damaged");
    let orders = |figures: &Figures, name: &str| {
        let found = figures.histogram.iter().find(|(class, _)| class.contains(name));
        found.unwrap_or_else(|| panic!("{name} in {figures:?}")).1
    };
    let saved = orders(&figures, "_number_customer");
    assert!((ORDERS / 2..ORDERS).contains(&(saved as u32)), "{saved} orders");
    assert!(figures.histogram.iter().any(|(class, _)| class.starts_with("unnamed.Class")));

    // Another run of the program, at other addresses and with other IDs of names.
    let other = heap(0x7_0000_0000).write(&Options { first_string: 0x99, ..options() });
    folder.write("other.hprof", other.bytes());
    let (status, answer) = recover(&folder, &files, &["--force", "--names", "other.hprof"]);
    // Classes without fields cannot be told from each other, nor from that of arrays: none is left.
    let counts = (&answer["classes_named"], &answer["unnamed_classes"]);
    assert_eq!((status, counts), (3, (&4.into(), &3.into())), "{answer}");
    let named = Figures::of(&folder, "out.hprof");
    assert_eq!((named.count("com.acme.Order"), named.count("com.acme.Empty")), (saved, 0));
}

#[test]
fn names_that_fit_two_classes_are_not_taken() {
    let folder = Folder::new();
    let dump = Unmerged::of(&heap(0x1_0000_0000));
    folder.write("heap.hprof", dump.early_names());
    folder.write("heap.hprof.p0", dump.segments.concat());
    let mut twice = heap(0x7_0000_0000);
    let object = twice.classes()[0].id;
    twice.class("com.acme.Copy", Some(object), &[("number", Type::Int), ("customer", Type::Object)]);
    folder.write("other.hprof", twice.write(&options()).bytes());
    let (_, answer) = recover(&folder, &["heap.hprof", "heap.hprof.p0"], &["--names", "other.hprof"]);
    let figures = Figures::of(&folder, "out.hprof");
    assert_eq!((&answer["classes_named"], figures.count("com.acme.Order")), (&4.into(), 0), "{answer}");
    assert_eq!(figures.count("com.acme.Copy"), 0);
}

#[test]
fn what_was_merged_is_saved_once() {
    let dump = Unmerged::of(&heap(0x1_0000_0000));
    let folder = Folder::new();
    folder.write("whole.hprof", dump.whole.bytes());
    let whole = Figures::of(&folder, "whole.hprof");
    let [first, second] = &dump.segments;
    let merged = [dump.names.as_slice(), first, second].concat();
    let last = [dump.names.len() + first.len(), dump.names.len() + 3];
    // Killed while the first or the second segment was appended: anywhere, also when it was appended but not removed.
    for (number, cut) in [
        (0, last[1] - 2),
        (0, last[1] + 2),
        (0, last[1] + 6),
        (0, last[1] + 900),
        (0, last[0]),
        (1, last[0]),
        (1, last[0] + 1234),
        (1, merged.len()),
    ] {
        folder.write("heap.hprof", damage::cut(&merged, cut));
        let _ = fs::remove_file(folder.path("heap.hprof.p0"));
        if number == 0 {
            folder.write("heap.hprof.p0", first);
        }
        folder.write("heap.hprof.p1", second);
        let files: &[&str] = match number {
            0 => &["heap.hprof", "heap.hprof.p0", "heap.hprof.p1"],
            _ => &["heap.hprof", "heap.hprof.p1"],
        };
        let (status, answer) = recover(&folder, files, &["--force"]);
        assert_eq!(status, 0, "{number} {cut}: {answer}");
        assert_eq!(Figures::of(&folder, "out.hprof"), whole, "{number} {cut}");
    }
    // The same segment twice.
    folder.write("copy.p0", first);
    folder.write("heap.hprof.p0", first);
    folder.write("heap.hprof", &dump.names);
    let files = ["heap.hprof", "heap.hprof.p0", "copy.p0", "heap.hprof.p1"];
    assert_eq!(recover(&folder, &files, &["--force"]).0, 0);
    assert_eq!(Figures::of(&folder, "out.hprof"), whole);
}

#[test]
fn segments_without_their_names() {
    let dump = Unmerged::of(&heap(0x1_0000_0000));
    let folder = Folder::new();
    folder.write("heap.hprof", b"");
    folder.write("heap.hprof.p0", dump.segments.concat());
    let (status, answer) = recover(&folder, &["heap.hprof", "heap.hprof.p0"], &[]);
    assert_eq!((status, &answer["unnamed_classes"]), (3, &6.into()));
    assert!(answer.to_string().contains("empty_file"), "{answer}");
    assert_ne!(Figures::of(&folder, "out.hprof").verdict, "damaged");
    // Nothing but names.
    folder.write("names.hprof", &dump.names);
    let output = run(&folder, &["recover", "names.hprof", "-o", "none.hprof"]);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("nothing was saved"), "{output:?}");
    let output = run(&folder, &["recover", "names.hprof", "-o", "none.hprof", "--format", "json"]);
    let answer: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((code(&output), &answer["output"], &answer["output_bytes"]), (1, &Json::Null, &Json::Null));
    assert_eq!(answer["rows"][0]["kind"], "no_heap_dump", "{answer}");
    assert!(!folder.path("none.hprof").exists());
}

#[test]
fn truncated_dumps() {
    // HotSpot before JDK 22 writes threads last: without them nothing is reachable.
    let model = heap(0x1_0000_0000);
    let written = model.write(&options());
    let (bytes, segments) = (written.bytes(), at(&written, 0x1c));
    let folder = Folder::new();
    let roots = written.subs_of(0x08)[0].at as usize + 3;
    for cut in [roots, segments[2] + 5, segments[3], segments[4] + 700, *segments.last().unwrap() + 11] {
        folder.write("heap.hprof", damage::cut(&bytes, cut));
        let (status, answer) = recover(&folder, &["heap.hprof"], &["--force"]);
        let figures = Figures::of(&folder, "out.hprof");
        let damaged = Figures::read(&folder, "heap.hprof", 3);
        assert_eq!(status, 3, "{cut}: {answer}");
        assert_ne!(figures.verdict, "damaged", "{cut}");
        let reachable = figures.reachable;
        assert_eq!((figures.histogram, reachable), (damaged.histogram, damaged.reachable), "{cut}");
        // A thread keeps its objects reachable, although its root is lost.
        assert!(cut != roots || reachable > u64::from(ORDERS), "{reachable}");
        // What is missing, in the same figures.
        let doctor = run(&folder, &["doctor", "heap.hprof", "--quick", "--format", "json"]);
        let doctor: Json = serde_json::from_slice(&doctor.stdout).unwrap();
        for key in [
            "read_bytes",
            "expected_bytes",
            "skipped_bytes",
            "lost_records",
            "lost_places",
            "retained_sizes",
            "undumped_classes",
            "objects_without_class",
            "odd_instances",
        ] {
            assert_eq!(answer["account"][key], doctor["account"][key], "{cut} {key}");
        }
        let texts = |of: &Json| -> Vec<String> {
            let rows = of["rows"].as_array().unwrap().iter().filter(|row| row["severity"] == "damage");
            rows.map(|row| row["text"].to_string()).collect()
        };
        assert_eq!(texts(&answer), texts(&doctor), "{cut}");
    }
}

#[test]
fn one_record_of_an_old_jvm() {
    let written =
        heap(0x1_0000_0000).write(&Options { segment_bytes: None, version: Version::V1_0_1, ..options() });
    let folder = Folder::new();
    let bytes = written.bytes();
    folder.write("heap.hprof", damage::cut(&bytes, bytes.len() - 4000));
    let output = run(&folder, &["recover", "heap.hprof", "-o", "out.hprof"]);
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    let out = fs::read(folder.path("out.hprof")).unwrap();
    assert!(out.starts_with(b"JAVA PROFILE 1.0.1\0") && out.len() < bytes.len());
    assert_ne!(Figures::of(&folder, "out.hprof").verdict, "damaged");
}

#[test]
fn compressed_files_without_an_end() {
    let dump = Unmerged::of(&heap(0x1_0000_0000));
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let folder = Folder::new();
    let whole = gzip(&dump.whole.bytes());
    let zstd = zstd::encode_all(dump.whole.bytes().as_slice(), 1).unwrap();
    folder.write("heap.hprof.gz", &whole[..whole.len() - 300]);
    let output = run(&folder, &["recover", "heap.hprof.gz", "-o", "out.hprof"]);
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert_ne!(Figures::of(&folder, "out.hprof").verdict, "damaged");
    // A Zstandard frame that is a single block: nothing can be unpacked.
    folder.write("heap.hprof.zst", &zstd[..zstd.len() - 40]);
    let output = run(&folder, &["recover", "heap.hprof.zst", "-o", "zstd.hprof"]);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    assert!(!folder.path("zstd.hprof").exists());
    // `jcmd GC.heap_dump -gz`: each file is compressed.
    folder.write("gz.hprof", gzip(&dump.names));
    folder.write("gz.hprof.p0", gzip(&dump.segments[0]));
    folder.write("gz.hprof.p1", gzip(&dump.segments[1]));
    let (status, answer) = recover(&folder, &["gz.hprof", "gz.hprof.p0", "gz.hprof.p1"], &["--force"]);
    assert_eq!(status, 0, "{answer}");
    folder.write("whole.hprof", dump.whole.bytes());
    assert_eq!(Figures::of(&folder, "out.hprof"), Figures::of(&folder, "whole.hprof"));
}

#[test]
fn a_damaged_middle() {
    let written = heap(0x1_0000_0000).write(&options());
    let mut bytes = written.bytes();
    let folder = Folder::new();
    // An array's length: nothing after it in the segment fits.
    let object = written.object_at(written.subs_of(0x21)[ORDERS as usize / 2].id).unwrap() as usize;
    bytes[object] = 0x77;
    folder.write("heap.hprof", &bytes);
    let (status, answer) = recover(&folder, &["heap.hprof"], &[]);
    assert_eq!((status, &answer["account"]["lost_places"]), (3, &1.into()), "{answer}");
    let figures = Figures::of(&folder, "out.hprof");
    assert_ne!(figures.verdict, "damaged");
    assert_eq!(figures.count("com.acme.Order"), u64::from(ORDERS) - 1);
    // A name with another tag is a record that nobody knows: the class is named by its fields.
    let mut bytes = written.bytes();
    bytes[at(&written, 2)[3]] = 0x66;
    folder.write("heap.hprof", &bytes);
    let (status, answer) = recover(&folder, &["heap.hprof"], &["--force"]);
    assert_eq!((status, &answer["unnamed_classes"]), (0, &1.into()), "{answer}");
    assert_eq!(answer["rows"][0]["kind"], "unsupported_record", "{answer}");
}

#[test]
fn no_file_is_overwritten() {
    let folder = Folder::new();
    let whole = heap(0x1_0000_0000).write(&options()).bytes();
    folder.write("heap.hprof", &whole);
    folder.write("there.hprof", b"old");
    let fails = |arguments: &[&str], why: &str| {
        let output = run(&folder, &[&["recover"], arguments].concat());
        assert!(code(&output) == 2 && stderr(&output).contains(why), "{arguments:?}: {}", stderr(&output));
    };
    fails(&["heap.hprof", "-o", "there.hprof"], "--force");
    fails(&["heap.hprof", "-o", "heap.hprof", "--force"], "it is an input file");
    fails(&["heap.hprof", "-o", "./heap.hprof", "--force"], "it is an input file");
    fails(&["heap.hprof", "-o", ".", "--force"], "it is a directory");
    fails(&["heap.hprof", "there.hprof", "-o", "new.hprof"], "there.hprof");
    let another = Unmerged::of(&heap(0x5_0000_0000));
    folder.write("heap.hprof.p0", &another.segments[0]);
    fails(&["heap.hprof", "heap.hprof.p0", "-o", "new.hprof"], "is a segment of another dump");
    folder.write("second.hprof", &whole);
    fails(&["heap.hprof", "second.hprof", "-o", "new.hprof"], "are two dumps");
    fails(&["heap.hprof", "missing.p0", "-o", "new.hprof"], "missing.p0");
    assert_eq!(fs::read(folder.path("there.hprof")).unwrap(), b"old");
    assert!(!folder.path("new.hprof").exists());
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("there.hprof", folder.path("link.hprof")).unwrap();
        fails(&["heap.hprof", "-o", "link.hprof", "--force"], "it is a symbolic link");
        std::os::unix::fs::symlink("nowhere.hprof", folder.path("dangling.hprof")).unwrap();
        fails(&["heap.hprof", "-o", "dangling.hprof"], "it is a symbolic link");
        assert!(!folder.path("nowhere.hprof").exists());
    }
    assert_eq!(code(&run(&folder, &["recover", "heap.hprof", "-o", "there.hprof", "--force"])), 0);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(folder.path("there.hprof")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let left: Vec<_> =
        fs::read_dir(folder.path(".")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains(".part")), "{left:?}");
}

#[test]
fn four_byte_identifiers_and_no_end() {
    let options = Options { id_size: IdSize::Four, end: EndRecord::Missing, ..options() };
    let mut model = HeapModel::with_base(Layout::COMPRESSED, 0x1000_0000);
    let object = model.class("java.lang.Object", None, &[]);
    let order = order_class(&mut model, object);
    let instance = model.instance(order, &[Value::Int(1), Value::Object(0)]);
    model.root(instance, Root::Unknown);
    let folder = Folder::new();
    folder.write("heap.hprof", model.write(&options).bytes());
    let output = run(&folder, &["recover", "heap.hprof", "-o", "out.hprof"]);
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    let figures = Figures::of(&folder, "out.hprof");
    assert_eq!((figures.count("com.acme.Order"), figures.reachable > 0), (1, true));
    assert_ne!(figures.verdict, "damaged");
}
