//! `strings` against a naive reading of the same dumps, which decodes each String by itself, and on hostile ones.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::process::Output;
use std::time::{Duration, Instant};

use crate::kit::dump::{self, Dump};
use crate::kit::texts::sample_path;
use hprof_index::{Heap, ObjectGraph};
use hprof_parser::heap::{self, HeapVisitor, Instance, PrimitiveArray};
use hprof_values::{BasicType, IdSize};
use hprof_writer::{Elements, HeapModel, Layout, ObjectId, Options, Root, Type, Value};
use serde_json::Value as Json;

/// Dumps of several writers and forms of Strings.
const SAMPLES: &[&str] = &[
    "jdk/jdk8.hprof.zst",
    "jdk/jdk17.hprof.zst",
    "jdk/jdk25-compact.hprof.zst",
    "public/visualvm-small_heap.hprof.zst",
    "public/android-leak_service_binder.hprof.zst",
    "public/ahat-RI-agent.hprof.zst",
    "agent/all.hprof.zst",
];

fn sample(name: &str) -> Dump {
    Dump::sample(&sample_path(name))
}

fn run(dump: &Dump, arguments: &[&str]) -> Output {
    dump.run(&[&["strings", "-q"], arguments].concat())
}

fn text(dump: &Dump, arguments: &[&str]) -> String {
    let output = run(dump, arguments);
    assert!(output.status.code().is_some_and(|code| code != 2), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(dump: &Dump, arguments: &[&str]) -> Json {
    serde_json::from_str(&text(dump, &[arguments, &["--format", "json"]].concat())).unwrap()
}

fn id(row: &Json) -> u64 {
    u64::from_str_radix(row["object"].as_str().unwrap().strip_prefix("0x").unwrap(), 16).unwrap()
}

/// All records that matter.
#[derive(Default)]
struct Records {
    strings: BTreeMap<u64, Vec<u8>>,
    arrays: HashMap<u64, (BasicType, Vec<u8>)>,
    string_classes: HashSet<u64>,
}

impl<'a> HeapVisitor<'a> for Records {
    fn instance(&mut self, record: Instance<'a>) {
        if self.string_classes.contains(&record.class.0) {
            self.strings.insert(record.id.0, record.fields.to_vec());
        }
    }
    fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
        if let Some(elements) = record.elements {
            self.arrays.insert(record.id.0, (record.element, elements.to_vec()));
        }
    }
}

/// A String as a naive reading has it.
#[derive(Debug)]
struct Naive {
    units: Vec<u16>,
    array: u64,
}

impl Naive {
    fn text(&self) -> String {
        let units = char::decode_utf16(self.units.iter().copied());
        units
            .map(|unit| match unit {
                Ok(c) => c.to_string(),
                Err(lone) => format!("\\u{:04x}", lone.unpaired_surrogate()),
            })
            .collect()
    }
}

/// All Strings of a dump by address; and how many cannot be read.
fn naive(heap: &Heap) -> (BTreeMap<u64, Naive>, u64) {
    let (summary, bytes) = (heap.summary(), dump::bytes(heap));
    let class = summary.classes().iter().find(|class| summary.class_name(class) == "java.lang.String");
    let class = class.unwrap();
    let mut records = Records { string_classes: HashSet::from([class.id.get()]), ..Records::default() };
    for segment in summary.segments() {
        let (start, end) = (segment.start.get() as usize, segment.end.get() as usize);
        heap::walk(bytes, summary.id_size(), start, end, end, &mut records);
    }
    let mut places = HashMap::new();
    let mut at = 0;
    for (name, kind) in summary.fields(class) {
        let len = match kind {
            BasicType::Object if summary.id_size() == IdSize::Four => 4,
            BasicType::Object | BasicType::Long | BasicType::Double => 8,
            BasicType::Int | BasicType::Float => 4,
            BasicType::Short | BasicType::Char => 2,
            BasicType::Byte | BasicType::Boolean => 1,
        };
        places.insert(name, at..at + len);
        at += len;
    }
    let decode = |fields: &[u8]| -> Option<Naive> {
        let field = |name| {
            let bytes = fields.get(places.get(name)?.clone())?;
            Some(bytes.iter().fold(0u64, |number, byte| (number << 8) | u64::from(*byte)))
        };
        let array = field("value")?;
        let (element, elements) = records.arrays.get(&array)?;
        let mut units: Vec<u16> = match element {
            BasicType::Char => elements.chunks(2).map(|c| u16::from_be_bytes([c[0], c[1]])).collect(),
            BasicType::Byte if field("coder") == Some(1) => {
                elements.chunks_exact(2).map(|c| u16::from_le_bytes([c[0], c[1]])).collect()
            }
            BasicType::Byte => elements.iter().map(|byte| u16::from(*byte)).collect(),
            _ => return None,
        };
        if let (BasicType::Char, Some(offset), Some(count)) = (element, field("offset"), field("count")) {
            let (offset, count) = (offset as usize, count as usize);
            units = units.get(offset..offset.checked_add(count)?)?.to_vec();
        }
        Some(Naive { units, array })
    };
    let all = records.strings.len() as u64;
    let strings: BTreeMap<u64, Naive> =
        records.strings.iter().filter_map(|(id, fields)| Some((*id, decode(fields)?))).collect();
    let unreadable = all - strings.len() as u64;
    (strings, unreadable)
}

fn shallow_bytes(graph: &ObjectGraph, id: u64) -> u64 {
    let object = graph.objects.addresses.index_of(hprof_cli::ObjectId(id)).unwrap();
    graph.tree.shallow_bytes(graph.tree.position(object).unwrap())
}

/// Count, all bytes, bytes of all but the first, by text; an array counts for the first String that has it.
fn figures(strings: &BTreeMap<u64, Naive>, graph: &ObjectGraph) -> HashMap<String, (u64, u64, u64)> {
    let shallow = |id| shallow_bytes(graph, id);
    let (mut by_text, mut arrays) = (HashMap::new(), HashSet::new());
    for (id, string) in strings {
        let mut bytes = shallow(*id);
        if arrays.insert(string.array) {
            bytes += shallow(string.array);
        }
        let (count, all, wasted): &mut (u64, u64, u64) = by_text.entry(string.text()).or_default();
        *wasted += if *count > 0 { bytes } else { 0 };
        *count += 1;
        *all += bytes;
    }
    by_text
}

#[test]
fn all_texts_are_those_of_a_naive_reading() {
    for name in SAMPLES {
        let dump = sample(name);
        let (heap, graph) = dump.open_graph();
        let (strings, unreadable) = naive(&heap);
        let answer = json(&dump, &[]);
        let rows = answer["rows"].as_array().unwrap();
        assert_eq!(rows.len(), strings.len(), "{name}");
        for row in rows {
            let string = &strings[&id(row)];
            assert_eq!(row["label"].as_str().unwrap(), string.text(), "{name}");
            assert_eq!(row["length"], string.units.len(), "{name}");
            assert_eq!((&row["class"], &row["is_truncated"]), (&"java.lang.String".into(), &false.into()));
        }
        let figures = figures(&strings, &graph);
        let sum = |of: fn(&(u64, u64, u64)) -> u64| figures.values().map(of).sum::<u64>();
        let total = &answer["total"];
        assert_eq!(total["strings"], strings.len(), "{name}");
        assert_eq!(total["distinct"], figures.len(), "{name}");
        assert_eq!(total["unreadable"], unreadable, "{name}");
        assert_eq!(total["characters"], strings.values().map(|string| string.units.len()).sum::<usize>());
        assert_eq!(total["total_bytes"], sum(|(_, all, _)| *all), "{name}");
        assert_eq!(total["wasted_bytes"], sum(|(_, _, wasted)| *wasted), "{name}");

        let answer = json(&dump, &["--duplicates"]);
        let rows = answer["rows"].as_array().unwrap();
        assert_eq!(&answer["total"]["strings"], &total["strings"]);
        assert_eq!(rows.len(), figures.values().filter(|(count, ..)| *count > 1).count(), "{name}");
        let mut before = u64::MAX;
        for row in rows {
            let (count, all, wasted) = figures[row["text"].as_str().unwrap()];
            assert_eq!((&row["strings"], &row["total_bytes"]), (&count.into(), &all.into()), "{name} {row}");
            assert_eq!(row["wasted_bytes"], wasted, "{name} {row}");
            assert!(wasted <= before, "most wasted bytes first");
            before = wasted;
        }
    }
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn live_strings_and_what_they_retain_are_those_of_a_walk() {
    let mut unreachable = 0;
    for name in ["jdk/jdk8.hprof.zst", "jdk/jdk17.hprof.zst", "public/android-leak_service_binder.hprof.zst"]
    {
        let dump = sample(name);
        let (heap, graph) = dump.open_graph();
        let (strings, _) = naive(&heap);
        let walk = crate::naive::Naive::read(&heap);
        let reached: HashSet<u64> = walk
            .ids
            .iter()
            .copied()
            .zip(walk.reached(&HashSet::new()))
            .filter_map(|(id, is_reached)| is_reached.then_some(id))
            .collect();
        let sizes: HashMap<u64, u64> = reached.iter().map(|id| (*id, shallow_bytes(&graph, *id))).collect();
        let live = json(&dump, &["--live", "--sort", "address"]);
        let found: Vec<u64> = live["rows"].as_array().unwrap().iter().map(id).collect();
        let wanted: Vec<u64> = strings.keys().copied().filter(|id| reached.contains(id)).collect();
        assert_eq!(found, wanted, "{name}");
        assert_eq!(live["total"]["strings"], wanted.len(), "{name}");
        unreachable += strings.len() - wanted.len();

        let all = json(&dump, &[]);
        let rows = all["rows"].as_array().unwrap();
        for row in rows {
            assert_eq!(row["retained_bytes"].is_null(), !reached.contains(&id(row)), "{name}: {row}");
        }
        let rows: Vec<&Json> = rows.iter().filter(|row| !row["retained_bytes"].is_null()).collect();
        for row in rows.iter().step_by(rows.len() / 24) {
            let (_, bytes) = walk.retained(&HashSet::from([id(row)]), &sizes);
            assert_eq!(row["retained_bytes"], bytes, "{name}: {row}");
        }
    }
    assert!(unreachable > 100, "{unreachable}");
}

#[test]
fn the_same_answer_with_any_number_of_threads() {
    let dump = sample("jdk/jdk17.hprof.zst");
    dump.open_graph();
    for arguments in [&["--format", "csv"][..], &["--format", "csv", "--duplicates", "--live"]] {
        let one = text(&dump, &[arguments, &["--threads", "1"]].concat());
        assert!(one.lines().count() > 1000);
        assert_eq!(one, text(&dump, &[arguments, &["--threads", "5"]].concat()));
    }
}

#[test]
fn known_strings_are_there() {
    for name in ["jdk/jdk8.hprof.zst", "jdk/jdk17.hprof.zst", "jdk/jdk25-compact.hprof.zst"] {
        let dump = sample(name);
        let known = [
            ("^Grüße$", "Grüße", 5),
            ("^日本語", "日本語テキスト", 7),
            ("^emoji", "emoji \u{1F600} pair", 13),
            ("^tab\t", "tab\tnewline\nquote\"back\\slash\0nul", 32),
            ("^lone surrogate \u{fffd}", "lone surrogate \\ud800 here", 21),
        ];
        for (pattern, value, length) in known {
            let answer = json(&dump, &["--pattern", pattern]);
            let row = &answer["rows"][0];
            assert_eq!((&row["label"], &row["length"]), (&value.into(), &length.into()), "{name}");
        }
        assert!(json(&dump, &["--max-length", "0"])["total"]["strings"].as_u64().unwrap() >= 1);
        let answer = json(&dump, &["--duplicates", "--pattern", "^duplicate string number [0-9]$"]);
        let rows = answer["rows"].as_array().unwrap();
        assert_eq!((rows.len(), &answer["total"]["distinct"]), (10, &10.into()), "{name}");
        for row in rows {
            // A concatenation and its copy, or the copy alone after a collection.
            assert!(row["strings"].as_u64().unwrap() >= 100, "{name} {row}");
            let held_by = &row["holders"][0];
            assert_eq!(held_by["field"], "[]", "{name} {row}");
            assert_eq!(held_by["class"], "java.lang.Object[]", "{name} {row}");
        }
    }
}

#[test]
fn rows_are_chosen_and_in_order() {
    let dump = sample("jdk/jdk17.hprof.zst");
    let lengths = |arguments: &[&str]| -> Vec<u64> {
        let answer = json(&dump, arguments);
        answer["rows"].as_array().unwrap().iter().map(|row| row["length"].as_u64().unwrap()).collect()
    };
    let some = lengths(&["--min-length", "20", "--max-length", "30", "--sort", "length"]);
    assert!(some.is_sorted_by(|a, b| a >= b) && some.first() == Some(&30) && some.last() == Some(&20));
    assert_eq!(
        lengths(&["--min-length", "20", "--max-length", "30", "--sort", "length", "--top", "7"]),
        some[..7]
    );
    let answer = json(&dump, &["--sort", "text", "--max-chars", "3"]);
    let rows = answer["rows"].as_array().unwrap();
    assert!(rows.is_sorted_by_key(|row| row["label"].as_str().unwrap().encode_utf16().collect::<Vec<_>>()));
    assert!(rows.iter().all(|row| row["is_truncated"] == (row["length"].as_u64().unwrap() > 3)
        || row["label"].as_str().unwrap().chars().any(|c| c > '\u{7f}')
        || row["label"].as_str().unwrap().contains("\\ud")));
    let answer = json(&dump, &["--sort", "address"]);
    assert!(answer["rows"].as_array().unwrap().is_sorted_by_key(id));
    assert_eq!(run(&dump, &["--pattern", "no such text anywhere"]).status.code(), Some(1));
    assert_eq!(run(&dump, &["--pattern", "("]).status.code(), Some(2));
    assert_eq!(run(&dump, &["--sort", "count"]).status.code(), Some(2));
    // Nothing but the table's own lines ends a line.
    let table = text(&dump, &["--pattern", "(?s)tab.newline"]);
    assert!(table.contains("tab\\tnewline\\nquote\\\"back\\slash\\u0000nul"), "{table}");
}

/// A class like java.lang.String, of any JDK.
fn string_class(model: &mut HeapModel) -> hprof_writer::ClassId {
    let object = model.class("java.lang.Object", None, &[]);
    model.class("java.lang.Class", Some(object), &[]);
    model.class("byte[]", Some(object), &[]);
    model.class("char[]", Some(object), &[]);
    model.class("long[]", Some(object), &[]);
    let fields =
        [("value", Type::Object), ("offset", Type::Int), ("count", Type::Int), ("coder", Type::Byte)];
    model.class("java.lang.String", Some(object), &fields)
}

/// Strings of their own arrays, or of one that they share.
fn add_string(model: &mut HeapModel, class: hprof_writer::ClassId, array: Option<ObjectId>) -> ObjectId {
    model.instance_with(class, &[("value", array.map_or(Value::Object(0), Into::into))])
}

#[test]
fn what_strings_retain_and_who_holds_them() {
    let mut model = HeapModel::new(Layout::COMPRESSED);
    let string = string_class(&mut model);
    let object = model.classes()[0].id;
    let objects = model.array_class(object);
    let fields = [("currency", Type::Object)];
    let order =
        model.class_with_statics("com.acme.Order", Some(object), &fields, &[("NONE", Value::Object(0))]);
    let thread_class = model.class("java.lang.Thread", Some(object), &[]);
    let global = Root::JniGlobal { reference: 0 };
    let text = |model: &mut HeapModel, text: &str| {
        let array = model.prim_array(Elements::of_bytes(text.as_bytes()));
        add_string(model, string, Some(array))
    };
    // EUR: in a field of three, and two in an array.
    for _ in 0..3 {
        let held = text(&mut model, "EUR");
        let holder = model.instance_with(order, &[("currency", held.into())]);
        model.root(holder, global);
    }
    let held = [text(&mut model, "EUR"), text(&mut model, "EUR")];
    let array = model.object_array(objects, &held);
    model.root(array, global);
    // none: in a static field, and on a thread's stack.
    let held = text(&mut model, "none");
    model.class_mut(order).statics[0].1 = held.into();
    model.root(order, Root::StickyClass);
    let thread = model.instance_with(thread_class, &[]);
    model.root(thread, Root::ThreadObject { thread: 1, trace: 0 });
    let held = text(&mut model, "none");
    model.root(held, Root::JavaFrame { thread: 1, frame: -1 });
    // Two that share their array, one that nobody holds, and three without text, two of them unreachable.
    let shared = model.prim_array(Elements::of_bytes(b"shared"));
    let sharing =
        [add_string(&mut model, string, Some(shared)), add_string(&mut model, string, Some(shared))];
    sharing.iter().for_each(|held| model.root(*held, global));
    text(&mut model, "dead");
    let empty = [0; 3].map(|_| add_string(&mut model, string, None));
    model.root(empty[1], global);

    let dump = Dump::written(&model.write(&Options::hotspot()));
    let answer = json(&dump, &["--duplicates"]);
    let holders = |text: &str| -> BTreeMap<String, u64> {
        let rows = answer["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["text"] == text).unwrap();
        let holders = row["holders"].as_array().unwrap().iter();
        let key = |holder: &Json| format!("{} {} {}", holder["class"], holder["field"], holder["is_static"]);
        holders.map(|holder| (key(holder), holder["copies"].as_u64().unwrap())).collect()
    };
    let wanted = |holders: &[(&str, u64)]| -> BTreeMap<String, u64> {
        holders.iter().map(|(holder, copies)| ((*holder).to_owned(), *copies)).collect()
    };
    let of_field = (r#""com.acme.Order" "currency" false"#, 3);
    assert_eq!(holders("EUR"), wanted(&[of_field, (r#""java.lang.Object[]" "[]" false"#, 2)]));
    let of_static = (r#""com.acme.Order" "NONE" true"#, 1);
    assert_eq!(holders("none"), wanted(&[of_static, (r#""java.lang.Thread" null false"#, 1)]));

    // A String is 12 bytes of header and 13 of fields, an array 16 and its bytes; sizes are multiples of 8.
    let (own, array) = (32, 24);
    let figures = |text: &str| -> Vec<(Option<u64>, u64)> {
        let answer = json(&dump, &["--pattern", text, "--sort", "address"]);
        let rows = answer["rows"].as_array().unwrap().iter();
        rows.map(|row| (row["retained_bytes"].as_u64(), row["total_bytes"].as_u64().unwrap())).collect()
    };
    assert_eq!(figures("^EUR$"), [(Some(own + array), own + array); 5]);
    assert_eq!(figures("^shared$"), [(Some(own), own + array), (Some(own), own)]);
    assert_eq!(figures("^dead$"), [(None, own + array)]);
    assert!(text_of_table(&dump, "^dead$").contains("56  unreachable"));

    let unreadable = |arguments: &[&str]| json(&dump, arguments)["total"]["unreadable"].as_u64().unwrap();
    assert_eq!([unreadable(&[]), unreadable(&["--live"])], [3, 1]);
    assert_eq!([unreadable(&["--pattern", "."]), unreadable(&["--max-length", "99"])], [0, 0]);
}

fn text_of_table(dump: &Dump, pattern: &str) -> String {
    text(dump, &["--pattern", pattern])
}

#[test]
fn strings_that_share_a_long_array_are_compared_once() {
    let mut model = HeapModel::new(Layout::COMPRESSED);
    let string = string_class(&mut model);
    let long = Elements::of_bytes(&vec![b'x'; 20_000_000]);
    let (one, other) = (model.prim_array(long.clone()), model.prim_array(long));
    let first = add_string(&mut model, string, Some(one));
    for _ in 0..20_000 {
        add_string(&mut model, string, Some(other));
    }
    let dump = Dump::written(&model.write(&Options::hotspot()));
    dump.open_graph();
    for arguments in [&["--duplicates"][..], &["--sort", "text"], &["--duplicates", "--sort", "text"]] {
        let start = Instant::now();
        let answer = json(&dump, &[arguments, &["--top", "3", "--max-chars", "5"]].concat());
        // Seconds where it took many of them.
        assert!(start.elapsed() < Duration::from_secs(10), "{arguments:?}: {:?}", start.elapsed());
        assert_eq!((&answer["total"]["distinct"], &answer["total"]["strings"]), (&1.into(), &20_001.into()));
        assert_eq!(id(&answer["rows"][0]), first.0, "{arguments:?}");
    }
}

#[test]
fn texts_that_are_shown_again_and_again_are_cut() {
    const LENGTH: usize = 100_000;
    const COPIES: usize = 3000;
    let mut model = HeapModel::new(Layout::COMPRESSED);
    let string = string_class(&mut model);
    let long = model.prim_array(Elements::of_bytes(&vec![b'x'; LENGTH]));
    for _ in 0..COPIES {
        add_string(&mut model, string, Some(long));
    }
    let short = model.prim_array(Elements::of_bytes(&[b'y'; 256]));
    for _ in 0..COPIES {
        add_string(&mut model, string, Some(short));
    }
    let other = model.prim_array(Elements::of_bytes(&vec![b'z'; LENGTH]));
    add_string(&mut model, string, Some(other));
    let dump = Dump::written(&model.write(&Options::hotspot()));
    let answer = json(&dump, &["--sort", "text"]);
    let rows = answer["rows"].as_array().unwrap();
    let (long, rest) = rows.split_at(COPIES);
    let lengths: Vec<usize> = long.iter().map(|row| row["label"].as_str().unwrap().len()).collect();
    let shown: usize = lengths.iter().filter(|length| **length == LENGTH).count();
    // The first, and copies of it up to 16 Mi characters and as many as the dump has bytes.
    let bytes = std::fs::metadata(&dump.path).unwrap().len() as usize;
    assert_eq!(shown, 1 + ((1 << 24) + bytes) / LENGTH);
    assert_eq!(lengths[shown..], vec![256; COPIES - shown]);
    assert!(long.iter().zip(&lengths).all(|(row, length)| row["is_truncated"] == (*length < LENGTH)));
    assert!(long.iter().all(|row| row["length"] == LENGTH));
    // Texts that are short or elsewhere are complete.
    assert!(rest.len() == COPIES + 1 && rest.iter().all(|row| row["is_truncated"] == false));
    let answer = json(&dump, &["--max-chars", "256"]);
    assert_eq!(answer["rows"][0]["label"].as_str().unwrap().len(), 256);
    let csv = text(&dump, &["--format", "csv"]);
    assert!(csv.lines().count() == 1 + rows.len() && csv.len() < 30_000_000, "{}", csv.len());
}

#[test]
fn hostile_strings_are_read_or_counted() {
    let mut model = HeapModel::new(Layout::COMPRESSED);
    let string = string_class(&mut model);
    let chars = model.prim_array(Elements::of_chars("abcabc"));
    let bytes = model.prim_array(Elements::of_bytes(b"abc"));
    let wide = model.prim_array(Elements::of_bytes(b"a\0b\0c\0x"));
    let long = model.prim_array(Elements::of_bits(Type::Long, &[1, 2]));
    let mut add = |array: Option<ObjectId>, offset: i32, count: i32, coder: i8| {
        let value = array.map_or(Value::Object(0), Into::into);
        let part =
            [("offset", Value::Int(offset)), ("count", Value::Int(count)), ("coder", Value::Byte(coder))];
        model.instance_with(string, &[&[("value", value)], &part[..]].concat())
    };
    // Seven times "abc", of four arrays.
    for (array, offset, coder) in [
        (chars, 0, 0),
        (chars, 3, 0),
        (chars, 3, 1),
        (bytes, 0, 0),
        (bytes, -1, 7),
        (wide, 9, 1),
        (bytes, 0, 0),
    ] {
        add(Some(array), offset, 3, coder);
    }
    // Beyond the array, before it, without one, and no array of characters.
    for (offset, count) in
        [(4, 3), (7, 0), (-1, 1), (0, -1), (i32::MAX, i32::MAX), (0, i32::MAX), (i32::MIN, 1)]
    {
        add(Some(chars), offset, count, 0);
    }
    add(None, 0, 0, 0);
    add(Some(long), 0, 1, 0);
    // One that is its own value, and one whose value is not there.
    let own = add(None, 0, 0, 0);
    let missing = add(None, 0, 0, 0);
    // Empty, at the very end.
    add(Some(chars), 6, 0, 0);
    model.set_field(own, "value", own);
    model.set_field(missing, "value", Value::Object(0xdead_bee8));
    for options in [Options::hotspot(), Options::jdk6()] {
        let dump = Dump::written(&model.write(&options));
        let answer = json(&dump, &["--duplicates"]);
        let rows = answer["rows"].as_array().unwrap();
        assert_eq!((rows.len(), &rows[0]["text"], &rows[0]["strings"]), (1, &"abc".into(), &7.into()));
        let total = &answer["total"];
        assert_eq!((&total["strings"], &total["distinct"]), (&8.into(), &2.into()), "{total}");
        assert_eq!((&total["unreadable"], &total["characters"]), (&11.into(), &21.into()), "{total}");
        let by_address = json(&dump, &["--sort", "address"]);
        let of_row =
            |row: &Json| row["total_bytes"].as_u64().unwrap() > row["shallow_bytes"].as_u64().unwrap();
        let pay: Vec<bool> = by_address["rows"].as_array().unwrap().iter().map(of_row).collect();
        assert_eq!(
            pay,
            [true, false, false, true, false, true, false, false],
            "the first of those that share"
        );
    }
}

#[test]
fn arrays_that_are_cut_or_huge_are_no_trouble() {
    let mut model = HeapModel::new(Layout::COMPRESSED);
    let string = string_class(&mut model);
    let add = |model: &mut HeapModel, array: ObjectId, coder: i8| {
        model.instance_with(
            string,
            &[("value", array.into()), ("count", Value::Int(2)), ("coder", Value::Byte(coder))],
        )
    };
    let small = model.prim_array(Elements::of_bytes(b"small"));
    add(&mut model, small, 0);
    let zeros = model.prim_array(Elements::Zeros(Type::Byte, 200_000_000));
    add(&mut model, zeros, 0);
    add(&mut model, zeros, 1);
    let dump = Dump::written(&model.write(&Options::hotspot()));
    let answer = json(&dump, &["--max-chars", "5", "--sort", "length"]);
    let row = &answer["rows"][0];
    assert_eq!((&row["length"], &row["label"]), (&200_000_000.into(), &"\0\0\0\0\0".into()));
    assert_eq!(
        (&answer["rows"][1]["length"], &answer["total"]["distinct"]),
        (&100_000_000.into(), &3.into())
    );

    let bytes = std::fs::read(&dump.path).unwrap();
    let cut = Dump::of(&bytes[..bytes.len() - 100_000_000]);
    let output = run(&cut, &["--format", "json"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let answer: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["rows"][0]["label"], "small");
}
