//! Looking inside dumps that are made to take for ever, or to fill memory: each command has to end, with what a dump of
//! that size may cost.
//!
//! No time is measured. What would be quadratic has sizes here at which it does not end before the watchdog barks.

use std::time::Duration;

use crate::kit::dump::Dump;
use crate::kit::{portion, process};
use hprof_writer::{ClassDump, DumpWriter, Elements, HeapWriter, IdSize, Root, Type, Value, Version};

/// A hundred times what these take on a slow machine, in a debug build.
const BARK: Duration = Duration::from_secs(60);
/// Limit of address space in KiB. The dumps take a few megabytes.
const MEMORY: u64 = 3_000_000;

/// A class and its fields.
#[derive(Clone, Copy)]
struct Class<'a> {
    id: u64,
    name: &'a str,
    superclass: u64,
    fields: &'a [(u64, Type)],
}

/// Numbers of the names of fields.
const FIELD: u64 = 1;
const VALUE: u64 = 2;
const CODER: u64 = 3;

/// A dump of `classes` and of what `fill` adds.
fn dump_of(classes: &[Class<'_>], fill: impl FnOnce(&mut HeapWriter)) -> Dump {
    let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
    for (id, name) in [(FIELD, "f"), (VALUE, "value"), (CODER, "coder")] {
        out.string(id, name);
    }
    for (serial, class) in (1u32..).zip(classes) {
        let name = 1000 + u64::from(serial);
        out.string(name, class.name);
        out.load_class(serial, class.id, 0, name);
    }
    let mut heap = HeapWriter::new(IdSize::Eight);
    for Class { id, superclass, fields, .. } in classes.iter().copied() {
        heap.class_dump(&ClassDump { id, superclass, fields, ..ClassDump::default() });
    }
    fill(&mut heap);
    out.heap_segment(&heap);
    out.heap_dump_end();
    Dump::of(&out.into_bytes())
}

/// Runs a command with little memory; it has to end by itself.
fn ends(dump: &Dump, arguments: &[&str]) -> String {
    let (command, more) = arguments.split_first().unwrap();
    let child = process::in_addresses(MEMORY, command, &dump.path, more).arg("--quiet").spawn().unwrap();
    // No answer to these dumps is long.
    let (output, _) = process::finish_within(child, BARK, 8 << 20);
    let (status, said) = (output.status, process::stderr(&output));
    assert!(matches!(status.code(), Some(0 | 1 | 3)), "{arguments:?}: {status}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const OBJECT: u64 = 0x1000;
const CHAIN: u64 = 40_000;

fn link(number: u64) -> u64 {
    0x10_0000 + number * 8
}

/// A chain of classes, each with a field, of which the last extends `top`; below it instances of each class.
fn chain(top: Class<'_>, name: &str) -> Dump {
    let classes = (0..CHAIN).map(|number| Class {
        id: link(number),
        name,
        superclass: if number == 0 { top.id } else { link(number - 1) },
        fields: &[(FIELD, Type::Object)],
    });
    let object = Class { id: OBJECT, name: "java/lang/Object", superclass: 0, fields: &[] };
    let classes: Vec<Class<'_>> = [object, top].into_iter().chain(classes).collect();
    dump_of(&classes, |heap| {
        for number in 0..CHAIN {
            let id = 0x1000_0000 + number * 64;
            // Records are shorter than their classes say, as in a damaged dump.
            let fields = usize::try_from(number % 50).unwrap() + 2;
            heap.instance(id, 0, link(number), &vec![Value::Object(0x1000_0000); fields]);
            heap.root(id, Root::StickyClass);
        }
    })
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_long_chain_of_classes_with_fields() {
    for (at, (top, name)) in [
        ("java/lang/ClassLoader", "com/acme/Loader"),
        ("java/lang/String", "com/acme/Text"),
        ("java/util/AbstractList", "java/util/ArrayList"),
        ("java/lang/Thread", "com/acme/Worker"),
        ("java/lang/Number", "java/math/BigInteger"),
    ]
    .into_iter()
    .enumerate()
    {
        let top = Class {
            id: 0x2000,
            name: top,
            superclass: OBJECT,
            fields: &[(VALUE, Type::Object), (CODER, Type::Byte)],
        };
        let dump = chain(top, name);
        let last = format!("{:#x}", 0x1000_0000 + (CHAIN - 1) * 64);
        let name = name.replace('/', ".");
        let questions = [
            &["loaders"][..],
            &["classes", "--tree", "--depth", "0", "--top", "3"],
            &["instances", "java.lang.Object", "--subclasses", "--top", "30"],
            &["instances", &name, "--where", "f != null", "--top", "3"],
            &["instances", &name, "--where", "f = x", "--top", "3"],
            &["instances", &name, "--where", "f.f.value = 0", "--top", "3"],
            &["show", &last, "--range", "0..3"],
            &["refs", "0x10000000", "--incoming", "--top", "3"],
            &["strings", "--duplicates", "--top", "3"],
            &["threads", "--top", "3"],
            &["leaks", "--threshold", "1"],
            &["waste"],
            &["oql", "SELECT s FROM INSTANCEOF java.lang.Object s WHERE s.f = null"],
            &["oql", "SELECT count(*) FROM INSTANCEOF java.lang.Object s WHERE s.value = 1"],
        ];
        // Each chain is asked other questions.
        for question in portion::some(&questions[at..]) {
            ends(&dump, question);
        }
    }
}

#[test]
fn strings_that_share_an_array_or_have_equal_ones() {
    const LONG: usize = 4_000_000;
    const STRINGS: u64 = 20_000;
    let classes = [
        Class { id: OBJECT, name: "java/lang/Object", superclass: 0, fields: &[] },
        Class {
            id: 0x2000,
            name: "java/lang/String",
            superclass: OBJECT,
            fields: &[(VALUE, Type::Object), (CODER, Type::Byte)],
        },
    ];
    let dump = dump_of(&classes, |heap| {
        for array in [0x1000_0000, 0x2000_0000] {
            heap.prim_array(array, 0, &Elements::of_bytes(&vec![b'x'; LONG]));
        }
        for number in 0..STRINGS {
            let (id, array) =
                (0x3000_0000 + number * 32, if number == 0 { 0x1000_0000 } else { 0x2000_0000 });
            heap.instance(id, 0, 0x2000, &[Value::Object(array), Value::Byte(0)]);
            heap.root(id, Root::StickyClass);
        }
    });
    for arguments in [
        &["strings", "--top", "1", "--max-chars", "5"][..],
        &["strings", "--duplicates", "--top", "1", "--max-chars", "5"],
        &["strings", "--sort", "text", "--top", "1", "--max-chars", "5"],
        &["instances", "java.lang.String", "--top", "3"],
        &["leaks"],
        &["waste"],
        &["oql", "SELECT s FROM java.lang.String s LIMIT 3"],
    ] {
        ends(&dump, arguments);
    }
}
