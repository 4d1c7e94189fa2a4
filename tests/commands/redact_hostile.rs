//! `redact` of dumps that hide texts where no values are expected, and of options that could take forever.

use std::fs;

use hprof_writer::{
    ClassDump, DumpWriter, Elements, HeapModel, HeapWriter, IdSize, Jdk, Layout, Options, Root, Type, Value,
    Version,
};

use crate::kit::process::{Folder, stderr};
use crate::kit::texts::code;

const SECRET: &str = "password=hunter2-of-customer-4711";

/// A dump whose class `com.acme.Worker` has a field `name` of its own.
fn dump() -> Vec<u8> {
    let mut model = HeapModel::new(Layout::COMPRESSED);
    let jdk = Jdk::add_to(&mut model);
    let worker = model.class("com.acme.Worker", Some(jdk.thread), &[("name", Type::Object)]);
    let (own, theirs) = (jdk.string(&mut model, "Alice, customer 4711"), jdk.string(&mut model, "worker-1"));
    let nothing = jdk.object_array;
    let thread = model
        .instance(worker, &[own.into(), Value::Long(1), Value::Long(2), theirs.into(), Value::Object(0)]);
    let digits = model.prim_array(Elements::of_bytes(&[b'7', b'3', b'1'].repeat(1000)));
    let held = model.object_array(nothing, &[digits]);
    model.root(thread, Root::ThreadObject { thread: 1, trace: 0 });
    model.root(held, Root::JavaFrame { thread: 1, frame: 0 });
    model.root_boot_classes();
    model.write(&Options::hotspot()).bytes().to_vec()
}

/// Returns a record.
fn record(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[tag, 0, 0, 0, 0], &length[..], body].concat()
}

fn is_in(bytes: &[u8], text: &str) -> bool {
    memchr::memmem::find(bytes, text.as_bytes()).is_some()
}

#[test]
fn records_keep_only_what_they_state() {
    let folder = Folder::new();
    let mut bytes = dump();
    let secret = SECRET.as_bytes();
    // A trace without frames, no allocation sites, no samples: and then a text.
    bytes.extend(record(0x05, &[&[0; 12], secret].concat()));
    bytes.extend(record(0x06, &[&[0; 34], secret].concat()));
    bytes.extend(record(0x0d, &[&[0; 8], secret].concat()));
    // And shorter than their heads.
    bytes.extend(record(0x06, b"hunter2-short"));
    assert!(is_in(&bytes, SECRET));
    let (input, out) = (folder.write("in.hprof", &bytes), folder.text("out.hprof"));
    let output = folder.run(&["redact", &input, "-o", &out]);
    assert!([0, 3].contains(&code(&output)), "{}", stderr(&output));
    let redacted = fs::read(&out).unwrap();
    assert!(!is_in(&redacted, SECRET) && !is_in(&redacted, "hunter2"));
    assert_eq!(redacted.len(), bytes.len(), "{}", stderr(&output));
}

#[test]
fn only_threads_have_names_that_stay() {
    let folder = Folder::new();
    let (input, out) = (folder.write("in.hprof", dump()), folder.text("out.hprof"));
    let output = folder.run(&["redact", &input, "-o", &out]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let redacted = fs::read(&out).unwrap();
    assert!(is_in(&redacted, "worker-1") && !is_in(&redacted, "Alice"));
}

#[test]
fn a_pattern_that_most_texts_match_ends() {
    let folder = Folder::new();
    let (input, out) = (folder.write("in.hprof", dump()), folder.text("out.hprof"));
    let output = folder.run(&["redact", &input, "-o", &out, "--keep", "*-*", "--keep", "* *"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let redacted = fs::read(&out).unwrap();
    assert!(is_in(&redacted, "Alice, customer 4711") && !is_in(&redacted, "731731731"));
}

/// Each of 20,000 segments has one class, a subclass of that before it: which of them are classes of threads is told in
/// one pass. It took minutes.
#[test]
fn many_segments_with_a_class_each_take_no_time() {
    let folder = Folder::new();
    let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
    out.string(1, "java/lang/Thread");
    out.load_class(1, 0x1000, 0, 1);
    for number in 0..20_000 {
        let id = 0x1000 + 8 * number;
        let superclass = if number == 0 { 0 } else { id - 8 };
        let mut body = HeapWriter::new(IdSize::Eight);
        body.class_dump(&ClassDump { id, superclass, ..ClassDump::default() });
        out.heap_segment(&body);
    }
    out.heap_dump_end();
    let bytes = out.into_bytes();
    let (input, out) = (folder.write("in.hprof", &bytes), folder.text("out.hprof"));
    let output = folder.run(&["redact", &input, "-o", &out]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(fs::read(&out).unwrap() == bytes);
}

/// Offsets and tags of the records of a dump.
fn records(bytes: &[u8]) -> Vec<(usize, u8)> {
    let mut at = bytes.iter().position(|byte| *byte == 0).unwrap() + 13;
    let mut records = Vec::new();
    while at + 9 <= bytes.len() {
        records.push((at, bytes[at]));
        at += 9 + u32::from_be_bytes(bytes[at + 5..at + 9].try_into().unwrap()) as usize;
    }
    records
}

/// A damaged byte at the top level: everything that other commands read is in the redacted dump.
#[test]
fn redaction_goes_on_after_damage_between_records() {
    let folder = Folder::new();
    let mut model = HeapModel::new(Layout::COMPRESSED);
    let jdk = Jdk::add_to(&mut model);
    let texts: Vec<_> = (0..200).map(|at| jdk.string(&mut model, &format!("{SECRET} {at}"))).collect();
    let all = model.object_array(jdk.object_array, &texts);
    model.root(all, Root::JniGlobal { reference: 1 });
    model.root_boot_classes();
    let bytes = model.write(&Options { segment_bytes: Some(600), ..Options::hotspot() }).bytes().to_vec();
    let objects = |path: &str| {
        let answer = folder.run(&["info", path, "--format", "json"]).stdout;
        let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
        answer["rows"][0]["objects"]["total"].as_u64().unwrap()
    };
    let (whole, all) = (objects(&folder.write("whole.hprof", &bytes)), records(&bytes));
    let segments: Vec<usize> = all.iter().filter(|(_, tag)| *tag == 0x1c).map(|(at, _)| *at).collect();
    let strings: Vec<usize> = all.iter().filter(|(_, tag)| *tag == 0x01).map(|(at, _)| *at).collect();
    assert!(segments.len() > 10 && strings.len() > 10);
    // A tag that is none, and a length that leads nowhere.
    for (name, place, value) in [
        ("tag of a name", strings[3], 0x99),
        ("length of a name", strings[3] + 6, 0x7f),
        ("tag of a segment", segments[5], 0x99),
        ("length of a segment", segments[5] + 7, 0xff),
    ] {
        let mut damaged = bytes.clone();
        damaged[place] = value;
        let (input, out) = (folder.write("in.hprof", &damaged), folder.text("out.hprof"));
        let output = folder.run(&["redact", &input, "-o", &out, "--force"]);
        assert!([0, 3].contains(&code(&output)), "{name}: {}", stderr(&output));
        let redacted = fs::read(&out).unwrap();
        assert_eq!(redacted.len(), damaged.len(), "{name}");
        assert!(!is_in(&redacted, SECRET), "{name}");
        assert_eq!(objects(&out), objects(&input), "{name}");
        assert!(objects(&out) * 10 > whole * 9, "{name}: {} of {whole}", objects(&out));
    }
    // From a pipe, too.
    let mut damaged = bytes;
    damaged[strings[3]] = 0x99;
    let (input, out) = (folder.write("in.hprof", &damaged), folder.text("piped.hprof"));
    let mut command = folder.command(&["redact", "-", "-o", &out]);
    command.stdin(fs::File::open(&input).unwrap());
    let output = command.output().unwrap();
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert_eq!(objects(&out), objects(&input));
    assert!(!is_in(&fs::read(&out).unwrap(), SECRET));
}

/// Of two CLASS DUMPs, readers take the first; the reserved bytes of one hide a text.
#[test]
fn the_first_class_dump_counts_and_reserved_bytes_go() {
    let folder = Folder::new();
    let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
    for (id, name) in [(1, "java/lang/Object"), (2, "java/util/ArrayList"), (3, "size"), (4, "card")] {
        out.string(id, name);
    }
    out.load_class(1, 0x1000, 0, 1);
    out.load_class(2, 0x2000, 0, 2);
    let mut body = HeapWriter::new(IdSize::Eight);
    let reserved = [u64::from_be_bytes(*b"hunter2-"), u64::from_be_bytes(*b"customer")];
    body.class_dump(&ClassDump { id: 0x1000, reserved, ..ClassDump::default() });
    let class = ClassDump { id: 0x2000, superclass: 0x1000, instance_size: 8, ..ClassDump::default() };
    // The first has the card before the size, the second the other way round.
    body.class_dump(&ClassDump { fields: &[(4, Type::Int), (3, Type::Int)], ..class.clone() });
    body.class_dump(&ClassDump { fields: &[(3, Type::Int), (4, Type::Int)], ..class });
    body.instance(0x3000, 0, 0x2000, &[Value::Int(1_739_204_100), Value::Int(1_739_204_101)]);
    body.root(0x3000, Root::JniGlobal { reference: 1 });
    out.heap_segment(&body);
    out.heap_dump_end();
    let bytes = out.into_bytes();
    let (input, out) = (folder.write("in.hprof", &bytes), folder.text("out.hprof"));
    let output = folder.run(&["redact", &input, "-o", &out]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let redacted = fs::read(&out).unwrap();
    let has = |number: i32| memchr::memmem::find(&redacted, &number.to_be_bytes()).is_some();
    assert!(!has(1_739_204_100) && has(1_739_204_101));
    assert!(
        is_in(&bytes, "hunter2-customer") && !is_in(&redacted, "hunter2") && !is_in(&redacted, "customer")
    );
}
