//! The proof of `redact`: each row is seen to fail for what it is about, and the others hold.

use std::fs;

use serde_json::Value as Json;

use hprof_writer::{
    ClassId, Elements, HeapModel, Jdk, Layout, ObjectId, Options, Root, StackFrame, Type, Value,
};

use crate::kit::process::{Folder, stderr};
use crate::kit::texts::code;

/// Texts in a `String` of Latin-1 and two of UTF-16, in a `char[]`, in a `byte[]` as UTF-8, and in a symbol.
const ASCII: &str = "customer Alice Cooper, card 4711-0815";
const LATIN: &str = "Größenübersicht für Bäckerei Süß & Söhne";
const CYRILLIC: &str = "съешь ещё этих мягких французских булок";
const JAPANESE: &str = "パスワードは秘密です、誰にも言わないでください";
const CHARS: &str = "Überraschung für die Kundin ñandú 12";
const BUFFER: &str = "GET /поиск?q=пароль%20от%20базы&user=Алиса";
const SYMBOL: &str = "ein Literal: Zwölf Boxkämpfer jagen Viktor";
const PIN: &str = "q7Xz9";
/// Short texts: of a large alphabet, and of a small one, of which some bytes stay by chance.
const KANJI: &str = "密码口令";
const SHORT: &str = "wq8Zk";
const TWICE: &str = "the same text in two objects";

/// A heap whose parts are changed one by one.
struct Heap {
    model: HeapModel,
    dog: ClassId,
    cat: ClassId,
    /// Instances of `com.acme.Dog`, whose field `owner` is the first or the second of two Strings.
    dogs: Vec<ObjectId>,
    owners: [ObjectId; 2],
    list: ObjectId,
    holder: ObjectId,
    cache: ObjectId,
    /// Text that only the cache holds.
    entry: ObjectId,
    loose: ObjectId,
}

impl Heap {
    fn new() -> Self {
        let mut model = HeapModel::new(Layout::COMPRESSED);
        let jdk = Jdk::add_to(&mut model);
        let animal = [("owner", Type::Object), ("chip", Type::Long), ("age", Type::Int)];
        let dog = model.class_with_statics(
            "com.acme.Dog",
            Some(jdk.object),
            &animal,
            &[("MASTER", Value::Long(4_111_111_111_111_112)), ("ON", Value::Boolean(true))],
        );
        let cat = model.class("com.acme.Cat", Some(jdk.object), &animal);
        let list = [("modCount", Type::Int), ("elementData", Type::Object), ("size", Type::Int)];
        let list = model.class("java.util.ArrayList", Some(jdk.object), &list);
        let bytes: Vec<String> = (0..40).map(|at| format!("b{at}")).collect();
        let bytes: Vec<(&str, Type)> = bytes.iter().map(|name| (name.as_str(), Type::Byte)).collect();
        let bytes = model.class("com.acme.Bytes", Some(jdk.object), &bytes);
        let account = model.class("com.acme.Login", Some(jdk.object), &[("password", Type::Object)]);
        let cache = model.class("com.acme.Cache", Some(jdk.object), &[("entries", Type::Object)]);
        let mut held = Vec::new();
        for text in [ASCII, LATIN, CYRILLIC, JAPANESE, TWICE, TWICE] {
            held.push(jdk.string(&mut model, text));
        }
        let owners = [jdk.string(&mut model, "owner number one"), jdk.string(&mut model, "and another one")];
        held.extend(owners);
        for text in [CHARS, KANJI, SHORT] {
            held.push(model.prim_array(Elements::of_chars(text)));
        }
        held.push(model.prim_array(Elements::of_bytes(BUFFER.as_bytes())));
        held.push(model.prim_array(Elements::of_bytes(&[7; 300])));
        let numbers = (1..40_i32).map(|at| at * 1_234_567);
        held.push(model.prim_array(Elements::Int(numbers.clone().collect())));
        held.push(model.prim_array(Elements::Long(numbers.clone().map(|at| i64::from(at) << 20).collect())));
        held.push(model.prim_array(Elements::Float(numbers.clone().map(|at| at as f32).collect())));
        held.push(model.prim_array(Elements::Double(numbers.clone().map(f64::from).collect())));
        held.push(model.prim_array(Elements::Short(numbers.map(|at| (at % 30_000) as i16 | 1).collect())));
        held.push(model.prim_array(Elements::Boolean(vec![true, false, true, true])));
        let values: Vec<Value> = (0..40).map(|at| Value::Byte(at + 60)).collect();
        held.push(model.instance(bytes, &values));
        let pin = model.prim_array(Elements::of_chars(PIN));
        held.push(model.instance(account, &[pin.into()]));
        let mut dogs = Vec::new();
        for at in 0..20 {
            let values = [owners[at % 2].into(), Value::Long(at as i64 + (1 << 50)), Value::Int(7_000_001)];
            dogs.push(model.instance(dog, &values));
        }
        held.extend(&dogs);
        let array = model.object_array(jdk.object_array, &[dogs[0], dogs[1], dogs[2], ObjectId(0)]);
        let list = model.instance(list, &[Value::Int(3), array.into(), Value::Int(3)]);
        held.push(list);
        let entries: Vec<ObjectId> =
            (0..400).map(|at| jdk.string(&mut model, &format!("entry {at} of the cache"))).collect();
        let entry = entries[0];
        let entries = model.object_array(jdk.object_array, &entries);
        let cache = model.instance(cache, &[entries.into()]);
        let loose = jdk.string(&mut model, "only one root leads here");
        let holder = model.object_array(jdk.object_array, &held);
        let thread = jdk.thread(&mut model, "worker", false, 5);
        let serial = model.trace(1, &[StackFrame::new(dog, "bark", "Dog.java", 42)]);
        model.root(thread, Root::ThreadObject { thread: 1, trace: serial });
        model.root(holder, Root::JavaFrame { thread: 1, frame: 0 });
        model.root(cache, Root::JniGlobal { reference: 1 });
        model.root_boot_classes();
        Self { model, dog, cat, dogs, owners, list, holder, cache, entry, loose }
    }

    /// Writes the dump, with a symbol that nothing uses.
    fn bytes(&self) -> Vec<u8> {
        let options = Options::hotspot();
        let mut out = hprof_writer::DumpWriter::new(options.version, options.id_size);
        out.string_bytes(0x77, SYMBOL.as_bytes());
        self.model.write_into(&mut out, &options);
        out.finish().bytes().to_vec()
    }
}

fn places(bytes: &[u8], what: &[u8]) -> Vec<usize> {
    memchr::memmem::find_iter(bytes, what).collect()
}

/// Returns the only place.
fn place(bytes: &[u8], what: &[u8]) -> usize {
    let places = places(bytes, what);
    assert_eq!(places.len(), 1, "{what:?}");
    places[0]
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn utf16_be(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_be_bytes).collect()
}

/// Puts bytes of the original back.
fn copy_back(original: &[u8], out: &mut [u8], what: &[u8]) {
    for at in places(original, what) {
        out[at..at + what.len()].copy_from_slice(what);
    }
}

/// Redacts a dump, and returns the bytes.
fn redacted(folder: &Folder, bytes: &[u8], more: &[&str]) -> Vec<u8> {
    let (input, out) = (folder.write("changed.hprof", bytes), folder.text("out.hprof"));
    let output = folder.run(&[&["redact", &input, "-o", &out, "--force", "-q"], more].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    fs::read(folder.path("out.hprof")).unwrap()
}

/// Returns the rows that do not hold.
fn failing(folder: &Folder, original: &[u8], out: &[u8], more: &[&str]) -> Vec<String> {
    let (input, out) = (folder.write("in.hprof", original), folder.write("out.hprof", out));
    let check = [&["redact", "--check", &input, &out, "--format", "json", "-q"], more].concat();
    let output = folder.run(&check);
    let json: Json = serde_json::from_slice(&output.stdout).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let failing = rows.iter().filter(|row| row["equal"] == false);
    let failing: Vec<String> = failing.map(|row| row["what"].as_str().unwrap().to_owned()).collect();
    assert_eq!(code(&output), i32::from(!failing.is_empty()), "{}", stderr(&output));
    failing
}

/// Rows that fail with others, as one reference changes what is reachable, and by what.
const LINKED: [&str; 8] = [
    "references",
    "reachable_objects",
    "dominators",
    "retained_sizes",
    "gc_roots",
    "threads",
    "leak_suspects",
    "waste",
];

/// What is changed before the redaction: the row that must fail, those that may fail with it, the change.
type ModelCase = (&'static str, &'static [&'static str], fn(&mut Heap));

#[test]
fn each_analysis_is_seen_to_differ() {
    let cases: [ModelCase; 10] = [
        ("histogram", &["threads", "leak_suspects"], |heap| {
            heap.model.class_mut(heap.dog).name = "com.acme.Cow".to_owned();
        }),
        ("references", &[], |heap| {
            heap.model.set_field(heap.dogs[0], "owner", heap.owners[1]);
        }),
        ("reachable_objects", &LINKED, |heap| {
            heap.model.root(heap.loose, Root::JniGlobal { reference: 2 });
        }),
        ("dominators", &LINKED, |heap| {
            heap.model.set_field(heap.dogs[0], "owner", heap.entry);
        }),
        ("retained_sizes", &LINKED, |heap| {
            heap.model.set_field(heap.dogs[1], "owner", heap.loose);
        }),
        ("collection_sizes", &["numbers_that_stay", "waste"], |heap| {
            heap.model.set_field(heap.list, "size", Value::Int(2));
        }),
        ("gc_roots", &LINKED, |heap| {
            heap.model.root(heap.cache, Root::JniLocal { thread: 1, frame: 0 });
        }),
        ("threads", &LINKED, |heap| {
            heap.model.root(heap.holder, Root::JavaFrame { thread: 1, frame: 1 });
            heap.model.root(heap.cache, Root::JavaFrame { thread: 1, frame: 0 });
        }),
        ("leak_suspects", &LINKED, |heap| {
            heap.model.set_field(heap.cache, "entries", Value::Object(0));
        }),
        ("numbers_that_stay", &LINKED, |heap| {
            heap.model.set_field(heap.dogs[3], "age", Value::Int(0));
        }),
    ];
    let folder = Folder::new();
    let original = Heap::new().bytes();
    // An object of another class with the same fields: tag, ID, serial number, class.
    let heap = Heap::new();
    let head = [&[0x21][..], &heap.dogs[19].0.to_be_bytes(), &[0; 4], &heap.dog.0.to_be_bytes()].concat();
    let mut out = redacted(&folder, &original, &[]);
    let at = place(&out, &head);
    out[at + 13..at + 21].copy_from_slice(&heap.cat.0.to_be_bytes());
    let failed = failing(&folder, &original, &out, &[]);
    assert_eq!(failed, ["histogram", "objects"]);

    let mut wrong = Vec::new();
    for (row, others, change) in cases {
        let mut heap = Heap::new();
        change(&mut heap);
        let out = redacted(&folder, &heap.bytes(), &[]);
        let failing = failing(&folder, &original, &out, &[]);
        let is_expected = |what: &String| what == row || others.contains(&what.as_str());
        if !failing.iter().any(|what| what == row) || !failing.iter().all(is_expected) {
            wrong.push(format!("{row}: {failing:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What is changed after it: the row that must fail, those that may fail with it, the change of the bytes.
type BytesCase = (&'static str, &'static [&'static str], fn(&[u8], &mut [u8]));

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn each_text_and_number_is_seen_to_survive() {
    let cases: [BytesCase; 31] = [
        ("texts_at_the_same_place", &[], |all, out| copy_back(all, out, &ASCII.as_bytes()[3..12])),
        ("texts_at_the_same_place", &[], |all, out| copy_back(all, out, &latin1(LATIN)[..10])),
        ("texts_at_the_same_place", &[], |all, out| copy_back(all, out, &utf16(CYRILLIC)[..16])),
        ("texts_at_the_same_place", &[], |all, out| copy_back(all, out, &utf16_be(CHARS)[..14])),
        ("texts_at_the_same_place", &[], |all, out| copy_back(all, out, &BUFFER.as_bytes()[5..20])),
        ("texts_anywhere", &OTHER, |all, out| elsewhere(all, out, ASCII.as_bytes())),
        ("texts_anywhere", &OTHER, |all, out| elsewhere(all, out, &utf16(ASCII))),
        ("texts_anywhere", &OTHER, |all, out| elsewhere(all, out, &latin1(LATIN))),
        ("texts_anywhere", &OTHER, |all, out| elsewhere(all, out, LATIN.as_bytes())),
        ("texts_anywhere", &OTHER, |all, out| elsewhere(all, out, &utf16_be(LATIN))),
        ("texts_anywhere", &OTHER, |all, out| elsewhere(all, out, CYRILLIC.as_bytes())),
        ("texts_anywhere", &OTHER, |all, out| elsewhere(all, out, &utf16(CYRILLIC))),
        ("texts_anywhere", &OTHER, |all, out| elsewhere(all, out, &utf16_be(JAPANESE))),
        ("texts_anywhere", &OTHER, |all, out| elsewhere(all, out, JAPANESE.as_bytes())),
        ("texts_anywhere", &OTHER, |all, out| elsewhere(all, out, CHARS.as_bytes())),
        ("texts_anywhere", &OTHER, |all, out| elsewhere(all, out, &utf16(BUFFER))),
        ("texts_anywhere", &OTHER, |all, out| elsewhere(all, out, &utf16(SYMBOL))),
        ("texts_anywhere", &[], |all, out| copy_back(all, out, SYMBOL.as_bytes())),
        ("numbers_that_go", &[], |all, out| {
            back(all, out, (1..40).flat_map(|at| (at * 1_234_567_i32).to_be_bytes()))
        }),
        ("numbers_that_go", &[], |all, out| {
            back(all, out, [(9_i64 * 1_234_567) << 20].map(i64::to_be_bytes).concat())
        }),
        ("numbers_that_go", &[], |all, out| {
            back(all, out, (1..40).flat_map(|at| ((at * 1_234_567) as f32).to_be_bytes()))
        }),
        ("numbers_that_go", &[], |all, out| back(all, out, f64::from(5 * 1_234_567).to_be_bytes())),
        ("numbers_that_go", &[], |all, out| {
            back(all, out, (9..12).flat_map(|at| ((at * 1_234_567 % 30_000) as i16 | 1).to_be_bytes()))
        }),
        ("numbers_that_go", &[], |all, out| back(all, out, ((1_i64 << 50) + 7).to_be_bytes())),
        ("numbers_that_go", &[], |all, out| back(all, out, 4_111_111_111_111_112_i64.to_be_bytes())),
        ("numbers_that_go", &[], |all, out| back(all, out, 60..100)),
        ("numbers_that_go", &[], |all, out| copy_back(all, out, &utf16_be(KANJI))),
        ("numbers_that_go", &[], |all, out| copy_back(all, out, &utf16_be(SHORT))),
        ("secrets", &["numbers_that_go"], |all, out| copy_back(all, out, &utf16_be(PIN))),
        ("equal_contents", &["waste"], |all, out| {
            let at = places(all, TWICE.as_bytes())[1];
            out[at] = out[at] % 127 + 1;
        }),
        ("numbers_that_stay", &["waste"], |all, out| {
            let at = place(all, &[1, 0, 1, 1]);
            out[at..at + 4].fill(0);
        }),
    ];
    let folder = Folder::new();
    let original = Heap::new().bytes();
    let out = redacted(&folder, &original, &[]);
    assert_eq!(failing(&folder, &original, &out, &[]), <[&str; 0]>::default());
    for (at, (row, others, change)) in cases.into_iter().enumerate() {
        let mut changed = out.clone();
        change(&original, &mut changed);
        assert_ne!(changed, out, "{at}");
        let failing = failing(&folder, &original, &changed, &[]);
        assert!(failing.iter().any(|what| what == row), "{at}, {row}: {failing:?}");
        let is_expected = |what: &String| what == row || others.contains(&what.as_str());
        assert!(failing.iter().all(is_expected), "{at}, {row}: {failing:?}");
    }
}

/// What else fails when a text is put into an array of one repeated value.
const OTHER: [&str; 3] = ["waste", "numbers_that_stay", "secrets"];

fn latin1(text: &str) -> Vec<u8> {
    text.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap()).collect()
}

/// Puts a text where none was.
fn elsewhere(original: &[u8], out: &mut [u8], text: &[u8]) {
    let at = place(original, &[7; 300]);
    out[at + 101..at + 101 + text.len()].copy_from_slice(text);
}

fn back(original: &[u8], out: &mut [u8], what: impl IntoIterator<Item = u8>) {
    let what: Vec<u8> = what.into_iter().collect();
    assert!(!places(original, &what).is_empty());
    copy_back(original, out, &what);
}

/// A dump of something else, and random contents.
#[test]
fn what_is_unrelated_differs() {
    let folder = Folder::new();
    let original = Heap::new().bytes();
    let mut other = HeapModel::new(Layout::COMPRESSED);
    let jdk = Jdk::add_to(&mut other);
    let text = jdk.string(&mut other, "something else");
    other.root(text, Root::JniGlobal { reference: 1 });
    let other = other.write(&Options::hotspot()).bytes().to_vec();
    let failing_of = |out: &[u8]| failing(&folder, &original, out, &[]);
    let failed = failing_of(&other);
    for row in ["histogram", "objects", "references", "gc_roots", "threads", "retained_sizes"] {
        assert!(failed.iter().any(|what| what == row), "{row}: {failed:?}");
    }
    assert!(!failed.iter().any(|what| what.starts_with("texts")), "{failed:?}");

    // Random bytes in all Strings and numbers of a copy.
    let mut random = original.clone();
    let mut state = 1_u32;
    let texts = [ASCII.as_bytes().to_vec(), latin1(LATIN), utf16(CYRILLIC), utf16(JAPANESE), utf16_be(CHARS)];
    let more = [BUFFER.as_bytes().to_vec(), SYMBOL.as_bytes().to_vec(), TWICE.as_bytes().to_vec()];
    for text in texts.iter().chain(&more) {
        for at in places(&original, text) {
            for byte in &mut random[at..at + text.len()] {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *byte = (state >> 24) as u8;
            }
        }
    }
    let failed = failing_of(&random);
    for row in ["numbers_that_stay", "numbers_that_go", "equal_contents", "waste", "secrets"] {
        assert!(failed.iter().any(|what| what == row), "{row}: {failed:?}");
    }
    for row in ["histogram", "objects", "references", "gc_roots", "dominators"] {
        assert!(!failed.iter().any(|what| what == row), "{row}: {failed:?}");
    }
}

/// Options change what must stay and what must go.
#[test]
fn options_are_part_of_the_proof() {
    let folder = Folder::new();
    let original = Heap::new().bytes();
    for options in [
        &["--zero"][..],
        &["--strict-numbers"],
        &["--break-equality"],
        &["--keep", "the same*"],
        &["--keep", "ein Literal*"],
    ] {
        let out = redacted(&folder, &original, options);
        assert_eq!(failing(&folder, &original, &out, options), <[&str; 0]>::default(), "{options:?}");
    }
    let out = redacted(&folder, &original, &["--zero"]);
    assert_eq!(failing(&folder, &original, &out, &[]), ["numbers_that_stay"]);
    let out = redacted(&folder, &original, &["--keep", "the same*"]);
    let failed = failing(&folder, &original, &out, &[]);
    assert_eq!(failed, ["texts_at_the_same_place", "texts_anywhere"]);
}

/// Returns a heap with a queue that counts in an object of this class.
fn queue(counter: &str) -> Vec<u8> {
    let mut model = HeapModel::new(Layout::COMPRESSED);
    let jdk = Jdk::add_to(&mut model);
    let counter = model.class(counter, Some(jdk.object), &[("value", Type::Int)]);
    let fields = [("capacity", Type::Int), ("count", Type::Object), ("head", Type::Object)];
    let queue = model.class("java.util.concurrent.LinkedBlockingQueue", Some(jdk.object), &fields);
    let count = model.instance(counter, &[Value::Int(5)]);
    let queue = model.instance(queue, &[Value::Int(10), count.into(), Value::Object(0)]);
    model.root(queue, Root::JniGlobal { reference: 1 });
    model.root_boot_classes();
    model.write(&Options::hotspot()).bytes().to_vec()
}

/// The number of a counter of the JDK stays where it is the size of a queue, that of another class goes: sizes differ.
#[test]
fn what_is_not_proved_is_not_written() {
    let folder = Folder::new();
    let [known, other] = ["java.util.concurrent.atomic.AtomicInteger", "com.acme.Counter"].map(queue);
    let (known_path, other_path) = (folder.write("known.hprof", &known), folder.write("other.hprof", &other));
    fs::create_dir(folder.path("there")).unwrap();
    let names = || {
        let names = fs::read_dir(folder.path("there")).unwrap();
        let mut names: Vec<String> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    for name in ["there/out.hprof", "there/out.hprof.zst"] {
        let out = folder.text(name);
        let output = folder.run(&["redact", &other_path, "-o", &out, "--prove", "--format", "json"]);
        assert_eq!(code(&output), 1, "{}", stderr(&output));
        assert!(stderr(&output).contains("was not written"), "{}", stderr(&output));
        let json: Json = serde_json::from_slice(&output.stdout).unwrap();
        assert!(json["redacted"].is_null() && json["manifest"].is_null(), "{json}");
        let rows = json["rows"].as_array().unwrap();
        let failing = rows.iter().filter(|row| row["equal"] == false);
        assert_eq!(failing.map(|row| &row["what"]).collect::<Vec<_>>(), ["collection_sizes"]);
        assert_eq!(names(), <[&str; 0]>::default());
    }
    // What was there stays.
    let (out, text) = (folder.text("there/out.hprof"), "an old dump");
    fs::write(&out, text).unwrap();
    assert_eq!(code(&folder.run(&["redact", &other_path, "-o", &out, "--prove", "--force"])), 1);
    assert_eq!(fs::read_to_string(&out).unwrap(), text);
    assert_eq!(names(), ["out.hprof"]);
    // One that is proved is, with the result.
    assert_eq!(code(&folder.run(&["redact", &known_path, "-o", &out, "--prove", "--force"])), 0);
    assert_eq!(names(), ["out.hprof", "out.hprof.manifest.json"]);
    let manifest: Json = serde_json::from_slice(&fs::read(out + ".manifest.json").unwrap()).unwrap();
    assert!(manifest["proof"].as_array().unwrap().iter().all(|row| row["equal"] == true), "{manifest}");

    // Of a damaged dump neither; messages name files that the user knows.
    let out = folder.text("there/cut.hprof");
    for (bytes, expected) in [(other, 1), (known, 3)] {
        let cut = folder.write("cut.hprof", &bytes[..bytes.len() - 20]);
        let output = folder.run(&["redact", &cut, "-o", &out, "--prove"]);
        assert_eq!(code(&output), expected, "{}", stderr(&output));
        assert!(!stderr(&output).contains("/proc/"), "{}", stderr(&output));
        assert_eq!(folder.path("there/cut.hprof").exists(), expected == 3);
    }
}
