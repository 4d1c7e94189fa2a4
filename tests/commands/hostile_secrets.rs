//! `secrets` on dumps that are made to take it for ever or to fill memory: an array of nothing but matches, and long chains
//! of classes. Each ends, with the memory that a dump of that size may take, and says what it has not looked at.
//!
//! No time is measured: what would be quadratic has sizes here at which it does not end before the watchdog barks.

use std::time::Duration;

use crate::kit::dump::Dump;
use crate::kit::portion;
use crate::kit::process;
use crate::maker::{CLASS, Maker, OBJECT};
use hprof_writer::{ClassDump, DumpWriter, Elements, HeapWriter, IdSize, Root, Type, Value, Version};
use serde_json::Value as Json;

/// A hundred times what these take on a slow machine, in a debug build.
const BARK: Duration = Duration::from_secs(120);
/// Most rows of an answer.
const MAX_ROWS: usize = 1 << 16;
/// Class of arrays of bytes.
const BYTES: u64 = 0x1300;

/// Runs `secrets` with a limit of address space in KiB, without rows of the program's own.
fn run(dump: &Dump, kib: u64, more: &[&str]) -> (Option<i32>, String, String) {
    let mut command = process::in_addresses(kib, "secrets", &dump.path, more);
    let (output, _) = process::finish_within(command.spawn().unwrap(), BARK, 256 << 20);
    (output.status.code(), String::from_utf8(output.stdout.clone()).unwrap(), process::stderr(&output))
}

/// Checks an answer of which something was cut: in the document, and on stderr.
fn check_cut(dump: &Dump, kib: u64) -> Vec<Json> {
    let (code, stdout, said) = run(dump, kib, &["--format", "json"]);
    assert_eq!(code, Some(1), "{said}");
    let json: Json = serde_json::from_str(&stdout).unwrap();
    let omitted = json["total"]["omitted"].as_u64().unwrap();
    assert!(omitted > 0 && said.contains("were not examined, and may contain more credentials"), "{said}");
    let rows = json["rows"].as_array().unwrap();
    assert!(rows.len() <= MAX_ROWS && json["total"]["rows"] == rows.len(), "{}", rows.len());
    // Whatever option asks for all.
    let all = ["--top", "0", "--all", "--format"];
    for format in portion::samples(&["csv", "table", "markdown", "sarif"]) {
        let (code, stdout, said) = run(dump, kib, &[&all[..], &[format]].concat());
        assert!(code == Some(1) && said.contains("were not examined"), "{format}: {said}");
        assert!(stdout.lines().count() <= 40 * MAX_ROWS, "{format}");
    }
    rows.clone()
}

/// Returns a text of nothing but secrets, each another one.
fn matches(from: usize, bytes: usize) -> Vec<u8> {
    let mut text = String::with_capacity(bytes + 64);
    for at in from.. {
        if text.len() >= bytes {
            break;
        }
        let upper: String =
            (0..16).map(|digit| char::from(b"ABCDEFGHJKLMNPQR"[(at >> (digit % 8 * 4)) & 15])).collect();
        text.push_str(&format!("password=s3cr3t-{at:07}q\nid=AKIA{upper}\n"));
    }
    text.into_bytes()
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn an_array_of_matches_has_rows_up_to_a_limit() {
    let bytes = if portion::is_whole() { 95 << 20 } else { 24 << 20 };
    let mut made = Maker::new(&[]);
    made.class(BYTES, "[B", OBJECT, &[]);
    let array = made.place(bytes);
    made.heap.prim_array(array, 0, &Elements::of_bytes(&matches(0, bytes)));
    made.heap.root(array, Root::JniGlobal { reference: 1 });
    let dump = made.dump();
    // The dump is mapped; what was found in it would take three times as much.
    let rows = check_cut(&dump, 200_000 + (bytes >> 10) as u64);
    assert!(rows.len() > 1000, "{}", rows.len());
}

/// More secrets than rows, in arrays that are far from each other.
#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn many_secrets_have_rows_up_to_a_limit() {
    let mut made = Maker::new(&[]);
    made.class(BYTES, "[B", OBJECT, &[]);
    for group in 0..16 {
        for at in 0..8 {
            let text = matches(group * 1_000_000 + at * 2000, 64 << 10);
            let array = made.place(text.len());
            made.heap.prim_array(array, 0, &Elements::of_bytes(&text));
        }
        // Objects of other chunks.
        (0..1 << 16).for_each(|_| {
            let object = made.place(0);
            made.heap.instance(object, 0, OBJECT, &[]);
        });
    }
    let dump = made.dump();
    let rows = check_cut(&dump, 700_000);
    assert_eq!(rows.len(), MAX_ROWS);
}

/// A chain of classes of which each declares a field: what is asked of each field for each class would be quadratic.
#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_chain_of_classes_takes_time_as_it_is_long() {
    let classes: u32 = 1_000_000;
    let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
    for (id, name) in (1..).zip(["java/lang/Object", "com/acme/Link", "number"]) {
        out.string(id, name);
    }
    let id = |class: u32| 0x10_0000 + u64::from(class) * 16;
    let mut heap = HeapWriter::new(IdSize::Eight);
    for class in 0..classes {
        out.load_class(class + 1, id(class), 0, if class == 0 { 1 } else { 2 });
        let fields = [(3, Type::Object)];
        heap.class_dump(&ClassDump {
            id: id(class),
            superclass: class.checked_sub(1).map_or(0, id),
            fields: if class == 0 { &[] } else { &fields },
            instance_size: class * 8,
            ..ClassDump::default()
        });
    }
    heap.instance(0x1_0000_0000, 0, id(3), &[Value::Object(0), Value::Object(0), Value::Object(0)]);
    heap.root(0x1_0000_0000, Root::StickyClass);
    out.heap_segment(&heap);
    out.heap_dump_end();
    let dump = Dump::of(&out.into_bytes());
    let (code, _, said) = run(&dump, 4 << 20, &[]);
    assert_eq!(code, Some(0), "{said}");
}

/// A chain of classes each with a field whose name says that it holds a credential, and an instance: fields of the fields'
/// names for each class would take a thousand times as much as the dump.
#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn fields_of_superclasses_are_found_up_to_a_limit() {
    const CLASSES: u32 = 3000;
    let mut made = Maker::new(&["password"]);
    made.class(BYTES, "[B", OBJECT, &[]);
    let (array, text) = (made.place(16), b"s3cr3t-00001-qqq");
    made.heap.prim_array(array, 0, &Elements::of_bytes(text));
    let class = |at: u32| CLASS + u64::from(at) * 16;
    for at in 0..CLASSES {
        let superclass = at.checked_sub(1).map_or(OBJECT, class);
        made.class(class(at), &format!("com/acme/C{at}"), superclass, &[(1, Type::Object)]);
        let object = made.place(8 * (at as usize + 1));
        made.heap.instance(object, 0, class(at), &vec![Value::Object(array); at as usize + 1]);
        made.heap.root(object, Root::StickyClass);
    }
    let dump = made.dump();
    // The dump has 36 MB; a name of each field for each class would have 300.
    let (code, stdout, said) = run(&dump, 400_000, &["--format", "json"]);
    assert_eq!(code, Some(1), "{said}");
    let json: Json = serde_json::from_str(&stdout).unwrap();
    assert_eq!(json["rows"].as_array().unwrap().len(), 1, "{stdout}");
    assert!(json["total"]["omitted"].as_u64().unwrap() > 0 && said.contains("were not examined"), "{said}");
}
