//! `redact` of dumps that hide texts where no values are expected, and of options that could take forever.

use std::fs;

use hprof_writer::{Elements, HeapModel, Jdk, Layout, Options, Root, Type, Value};

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
    assert!(!is_in(&redacted, SECRET) && !is_in(&redacted, "hunter2") && redacted.len() == bytes.len());
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
