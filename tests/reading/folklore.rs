//! Behaviour of real dumps beyond the specification, each in the smallest dump that shows it: situation, then
//! expectation.
//!
//! Random combinations of most of it are in `reader_properties.rs`; here each has a name.

use hprof_cli::ObjectId;
use std::sync::mpsc;
use std::time::Duration;

use crate::kit::dump::{self, Dump, bytes, count, problems};
use hprof_index::Error;
use hprof_index::layout::sizes::{SizeSource, Sizes};
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::model::tables::ClassRow;
use hprof_parser::mutf8::decode;
use hprof_values::{IdSize as FoundIdSize, RootKind};
use hprof_writer::{
    ClassDump, DumpWriter, Elements, EndRecord, HeapModel, HeapTag, HeapWriter, IdSize, InstanceSize,
    NameStyle, Options, Order, Place, Root, StatedLength, Type, Value, Version, damage, examples,
};

const HOTSPOT: Version = Version::V1_0_2;

/// Runs code that must not hang. (If it does, its thread runs until the process ends.)
fn within<R: Send + 'static>(seconds: u64, run: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, wait) = mpsc::channel();
    let thread = std::thread::spawn(move || done.send(run()));
    match wait.recv_timeout(Duration::from_secs(seconds)) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("still running after {seconds} s"),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            std::panic::resume_unwind(thread.join().expect_err("it ended without a result"))
        }
    }
}

fn class<'s>(summary: &'s Summary, name: &str) -> &'s ClassRow {
    summary.classes().iter().find(|class| summary.class_name(class) == name).expect(name)
}

/// Strings, a loaded and dumped class `A` with an `int` and id 0x1000, and the dump so far.
fn with_class_a(id_size: IdSize) -> (DumpWriter, HeapWriter) {
    let mut out = DumpWriter::new(HOTSPOT, id_size);
    out.string(1, "A");
    out.string(2, "n");
    out.load_class(1, 0x1000, 0, 1);
    let mut heap = HeapWriter::new(id_size);
    let fields = [(2, Type::Int)];
    heap.class_dump(&ClassDump { id: 0x1000, fields: &fields, instance_size: 4, ..ClassDump::default() });
    (out, heap)
}

fn instances_of_a(heap: &mut HeapWriter, ids: impl IntoIterator<Item = u64>) {
    for id in ids {
        heap.instance(id, 0, 0x1000, &[Value::Int(1)]);
    }
}

/// A model with many objects: `count` instances and as many arrays.
fn many(count: usize) -> HeapModel {
    let mut model = HeapModel::default();
    let object = model.class("java.lang.Object", None, &[]);
    let pair = model.class("t.Pair", Some(object), &[("left", Type::Object), ("n", Type::Int)]);
    for number in 0..count {
        let left = model.prim_array(Elements::of_bytes(&vec![0x0A; number % 9]));
        model.instance_with(pair, &[("left", left.into()), ("n", Value::Int(number as i32))]);
    }
    model
}

// Top level

#[test]
fn a_heap_dump_of_length_zero_goes_to_the_end_of_the_file() {
    for id_size in IdSize::ALL {
        let (mut out, mut heap) = with_class_a(id_size);
        instances_of_a(&mut heap, (0..50).map(|n| 0x2000 + 16 * n));
        heap.root(0x2000, Root::JniGlobal { reference: 1 });
        out.heap_record(HeapTag::Dump, StatedLength::Zero, &heap);
        let heap = Dump::of(&out.into_bytes()).open();
        assert_eq!(count(heap.summary(), "A"), 50);
        assert!(!heap.summary().is_damaged() && problems(heap.summary()).contains("a length of 0"));
    }
}

#[test]
fn empty_segments_lose_nothing_and_a_missing_end_is_said() {
    let (mut out, mut heap) = with_class_a(IdSize::Eight);
    instances_of_a(&mut heap, [0x2000]);
    for body in [&HeapWriter::new(IdSize::Eight), &heap, &HeapWriter::new(IdSize::Eight)] {
        out.heap_segment(body);
    }
    let mut ended = out.clone();
    ended.heap_dump_end();
    for (out, damaged) in [(out, true), (ended, false)] {
        let heap = Dump::of(&out.into_bytes()).open();
        let summary = heap.summary();
        assert_eq!((count(summary, "A"), summary.facts().heap_dumps.get()), (1, 1));
        assert_eq!((summary.is_damaged(), summary.account().empty_segments), (damaged, 2));
        assert_eq!(problems(summary).contains("no end record"), damaged, "{}", problems(summary));
    }
}

/// Heap dumps in one file reuse ids: of `A`, of 3 instances, then 2, then 1.
fn three_dumps(tag: HeapTag) -> Dump {
    let (mut out, first) = with_class_a(IdSize::Eight);
    for instances in [3, 2, 1] {
        let mut heap = first.clone();
        instances_of_a(&mut heap, (0..instances).map(|n| 0x2000 + 16 * n));
        out.heap_record(tag, StatedLength::Real, &heap);
        if tag == HeapTag::Segment {
            out.heap_segment(&HeapWriter::new(IdSize::Eight));
            out.heap_dump_end();
        }
    }
    Dump::of(&out.into_bytes())
}

#[test]
fn several_heap_dumps_are_never_merged_and_the_last_is_the_default() {
    for tag in [HeapTag::Dump, HeapTag::Segment] {
        let mut dump = three_dumps(tag);
        for (asked, read, instances) in [(None, 3, 1), (Some(1), 1, 3), (Some(2), 2, 2), (Some(3), 3, 1)] {
            dump.heap_dump = asked;
            let (heap, graph) = dump.open_graph();
            let objects = &graph.objects;
            let facts = heap.summary().facts();
            assert_eq!((facts.heap_dumps.get(), facts.heap_dump.get()), (3, read), "{tag:?} {asked:?}");
            assert_eq!(count(heap.summary(), "A"), instances, "{tag:?} {asked:?}");
            assert_eq!(u64::from(objects.len()), instances + 1);
        }
        for missing in [4, u32::MAX] {
            dump.heap_dump = Some(missing);
            let error = dump.try_open().expect_err("there is none");
            assert!(matches!(error, Error::NoSuchHeapDump { .. }), "{error}");
            assert!(error.to_string().contains(&format!("heap dump {missing} does not exist")), "{error}");
        }
    }
}

/// They are counted from 1; the result does not depend on whether an index exists.
#[test]
fn there_is_no_heap_dump_0_with_or_without_an_index() {
    let mut dump = three_dumps(HeapTag::Dump);
    for indexed in [false, true] {
        dump.heap_dump = Some(0);
        let opened = dump.try_open().map(|_| "opened");
        assert!(matches!(opened, Err(Error::NoSuchHeapDump { .. })), "index: {indexed}: {opened:?}");
        dump.heap_dump = None;
        dump.open_graph();
    }
}

#[test]
fn load_class_may_be_missing_repeated_or_of_no_dumped_class() {
    let (mut out, mut heap) = with_class_a(IdSize::Eight);
    out.load_class(2, 0x1000, 0, 1);
    out.string(3, "OnlyLoaded");
    out.load_class(3, 0x3000, 0, 3);
    heap.class_dump(&ClassDump { id: 0x4000, superclass: 0x1000, ..ClassDump::default() });
    heap.instance(0x2000, 0, 0x4000, &[]);
    heap.instance(0x2010, 0, 0x3000, &[Value::Long(1)]);
    heap.instance(0x2020, 0, 0x5000, &[]);
    out.heap_dump(&heap);
    let heap = Dump::of(&out.into_bytes()).open();
    let summary = heap.summary();
    for (name, dumped, loaded, objects) in [
        ("A", true, true, 0),
        ("OnlyLoaded", false, true, 1),
        ("<class 0x4000>", true, false, 1),
        ("<class 0x5000>", false, false, 1),
    ] {
        let row = class(summary, name);
        assert_eq!(
            (row.is_dumped(), row.flags & 2 != 0, row.objects.get()),
            (dumped, loaded, objects),
            "{name}"
        );
    }
    assert_eq!((summary.record_counts().load_classes, summary.facts().class_objects.get()), (3, 2));
    assert!(problems(summary).contains("2 classes have objects but no CLASS DUMP"), "{}", problems(summary));
}

#[test]
fn strings_and_classes_may_come_after_what_uses_them() {
    for order in [Order::ClassesLast, Order::Shuffled(7)] {
        let late = Options { order, strings: Place::Last, loads: Place::Last, ..Options::hotspot() };
        let heap = Dump::written(&examples::zoo().write(&late)).open();
        let summary = heap.summary();
        let tree_node = class(summary, "java.util.HashMap$TreeNode");
        let above = summary.class(ClassNumber(tree_node.super_class.get())).unwrap();
        assert_eq!(summary.class_name(above), "java.util.HashMap$Node");
        let fields: Vec<&str> = summary.fields(above).map(|(name, _)| name).collect();
        assert_eq!(fields, ["hash", "key", "next"]);
    }
}

#[test]
fn unknown_records_are_skipped_and_said() {
    let (mut out, mut heap) = with_class_a(IdSize::Eight);
    out.raw_record(0x7E, 0, 5, &[1, 2, 3, 4, 5]);
    instances_of_a(&mut heap, [0x2000, 0x2010]);
    out.heap_segment(&heap);
    out.heap_dump_end();
    let heap = Dump::of(&out.into_bytes()).open();
    assert_eq!(count(heap.summary(), "A"), 2);
    let all = heap.summary().problems();
    assert!(!heap.summary().is_damaged(), "{all:?}");
    assert!(all.iter().any(|p| p.text == "1 record with the unknown tag 0x7e, 5 bytes; skipped"), "{all:?}");
}

// Names

#[test]
fn class_names_have_one_form_whoever_writes_them() {
    let mut model = HeapModel::default();
    let object = model.class("java.lang.Object", None, &[]);
    let inner = model.class("a.b.C$D", Some(object), &[]);
    let arrays = model.array_class(inner);
    let names = ["a.b.C$D[]", "a.b.C$D[][]", "byte[]", "byte[][]"];
    let deep = model.array_class(arrays);
    model.object_array(deep, &[]);
    let bytes = model.class("byte[]", Some(object), &[]);
    model.array_class(bytes);
    model.prim_array(Elements::of_bytes(&[1]));
    for names_as in NameStyle::ALL {
        let heap = Dump::written(&model.write(&Options { names: names_as, ..Options::hotspot() })).open();
        for name in names {
            assert!(class(heap.summary(), name).is_dumped(), "{name} as {names_as:?}");
        }
        assert_eq!((count(heap.summary(), "byte[]"), count(heap.summary(), "a.b.C$D[][]")), (1, 1));
    }
}

/// The part from `/0x` or `+0x` on is no package: its slash stays.
#[test]
fn hidden_classes_keep_their_suffix_and_so_do_their_arrays() {
    let mut model = HeapModel::default();
    let object = model.class("java.lang.Object", None, &[]);
    let hidden = model.class("a.B$$Lambda$14/0x0000000801002a08", Some(object), &[]);
    model.array_class(hidden);
    for names in NameStyle::ALL {
        let heap = Dump::written(&model.write(&Options { names, ..Options::hotspot() })).open();
        let shown: Vec<&str> =
            heap.summary().classes().iter().map(|c| heap.summary().class_name(c)).collect();
        for name in ["a.B$$Lambda$14/0x0000000801002a08", "a.B$$Lambda$14/0x0000000801002a08[]"] {
            assert!(shown.contains(&name), "{names:?}: {name} in {shown:?}");
        }
    }
}

#[test]
fn invalid_strings_are_escaped_so_that_no_two_look_the_same() {
    let strings: [&[u8]; 9] = [
        b"\\xff",
        &[0xFF],
        &[b'\\', 0xFF],
        b"\\\\xff",
        &[b'\\', b'\\', 0xFF],
        &[0xED, 0xA0, 0x80],
        b"\\ud800",
        &[b'\\', 0xED, 0xA0, 0x80],
        b"\\",
    ];
    for (at, one) in strings.iter().enumerate() {
        for other in &strings[..at] {
            assert_ne!(decode(one), decode(other), "{one:x?} and {other:x?}");
        }
    }
}

/// A character that is encoded in more bytes than it needs is not the same string as that character.
#[test]
fn overlong_forms_are_not_taken_for_the_character() {
    for overlong in [&[0xC1, 0x81][..], &[0xE0, 0x81, 0x81], &[0xF0, 0x80, 0x81, 0x81]] {
        assert_ne!(decode(overlong), "A", "{overlong:x?}");
    }
    assert_eq!(decode(&[0xC0, 0x80]), "\0", "only NUL is written so");
}

// Heap records

#[test]
fn instance_sizes_are_believed_where_object_has_one() {
    for (instance_size, stated) in [(InstanceSize::FieldBytes, false), (InstanceSize::Real, true)] {
        let mut model = many(200);
        let pair = model.classes()[1].id;
        model.class_mut(pair).instance_size = stated.then_some(72);
        let heap = Dump::written(&model.write(&Options { instance_size, ..Options::hotspot() })).open();
        let sizes = Sizes::new(heap.summary(), None);
        let mut classes = heap.summary().numbered_classes();
        let (number, _) = classes.find(|(_, c)| heap.summary().class_name(c) == "t.Pair").unwrap();
        let wanted = if stated { (72, SizeSource::Stated) } else { (24, SizeSource::Confirmed) };
        assert_eq!((sizes.fit.sizes_stated, sizes.instance(number)), (stated, wanted));
    }
}

#[test]
fn pseudo_statics_can_repeat_and_take_no_room_in_the_class_object() {
    let mut model = many(3);
    let pair = model.classes()[1].id;
    let plain = Dump::written(&model.write(&Options::hotspot())).open();
    for name in ["<resolved_references>", "<resolved_references>", "<signers>", "<init_lock>"] {
        model.class_mut(pair).statics.push((name.to_owned(), Value::NULL));
    }
    model.class_mut(pair).constants.push((7, Value::Double(0.5)));
    let heap = Dump::written(&model.write(&Options::hotspot())).open();
    let summary = heap.summary();
    assert_eq!(summary.statics(class(summary, "t.Pair")).count(), 4);
    let size = |summary: &Summary| {
        let mut classes = summary.numbered_classes();
        let (number, _) = classes.find(|(_, c)| summary.class_name(c) == "t.Pair").unwrap();
        Sizes::new(summary, None).class_object(number)
    };
    assert_eq!(size(summary), size(plain.summary()));
}

#[test]
fn classes_dumped_again_and_roots_repeated() {
    let (mut out, mut heap) = with_class_a(IdSize::Four);
    for _ in 0..30 {
        heap.class_dump(&ClassDump { id: 0x1000, ..ClassDump::default() });
        heap.root(0x1000, Root::StickyClass);
    }
    heap.root(0, Root::JniGlobal { reference: 0x1000 });
    heap.root(0x7777, Root::ThreadObject { thread: 9, trace: 9 });
    out.heap_dump(&heap);
    let (heap, graph) = Dump::of(&out.into_bytes()).open_graph();
    let objects = &graph.objects;
    let summary = heap.summary();
    assert_eq!((objects.len(), summary.facts().class_objects.get()), (1, 1));
    let counts = summary.root_counts();
    assert_eq!(counts, [(RootKind::JniGlobal, 1), (RootKind::StickyClass, 30), (RootKind::ThreadObject, 1)]);
    assert!(!summary.is_damaged(), "{}", problems(summary));
}

#[test]
fn android_sub_records_are_read() {
    let mut model = many(3);
    model.heap_info(65, "app");
    model.prim_array(Elements::NoData(Type::Long, 1000));
    model.heap_info(90, "zygote");
    for root in Root::EXAMPLES.into_iter().filter(|root| root.is_android()) {
        model.root(model.classes()[0].id, root);
    }
    for version in [Version::V1_0_3, HOTSPOT] {
        let dump = Dump::written(&model.write(&Options { version, ..Options::android() }));
        let (heap, graph) = dump.open_graph();
        let objects = &graph.objects;
        let summary = heap.summary();
        assert_eq!(summary.heaps().collect::<Vec<_>>(), [(65, "app"), (90, "zygote")]);
        assert_eq!((count(summary, "long[]"), objects.len()), (1, 9));
        assert_eq!(summary.root_counts().iter().map(|(_, count)| count).sum::<u64>(), 7);
        assert!(!summary.is_damaged(), "{}", problems(summary));
    }
}

#[test]
fn an_unknown_sub_record_is_skipped_and_the_rest_is_read() {
    let (mut out, mut heap) = with_class_a(IdSize::Eight);
    instances_of_a(&mut heap, (0..100).map(|n| 0x2000 + 16 * n));
    let at = heap.raw(&[0x55; 20]);
    instances_of_a(&mut heap, (200..300).map(|n| 0x2000 + 16 * n));
    let placed = out.heap_segment(&heap);
    out.heap_dump_end();
    let (heap, graph) = Dump::of(&out.into_bytes()).open_graph();
    let objects = &graph.objects;
    assert_eq!((count(heap.summary(), "A"), objects.len()), (200, 201));
    assert!(heap.summary().is_damaged());
    let all = heap.summary().problems();
    assert!(all.iter().any(|p| p.offset == Some(placed.at(at)) && p.text.contains("0x55")), "{all:?}");
}

#[test]
fn of_an_object_dumped_again_the_last_record_counts() {
    for apart in [false, true] {
        let (mut out, mut heap) = with_class_a(IdSize::Eight);
        instances_of_a(&mut heap, (0..200).map(|n| 0x2000 + 16 * n));
        if apart {
            out.heap_segment(&heap);
            heap = HeapWriter::new(IdSize::Eight);
        }
        let at = heap.prim_array(0x2010, 0, &Elements::of_bytes(b"again"));
        let placed = out.heap_segment(&heap);
        out.heap_dump_end();
        let dump = Dump::of(&out.into_bytes());
        let (heap, graph) = dump.open_graph();
        let objects = &graph.objects;
        let summary = heap.summary();
        assert_eq!((count(summary, "A"), count(summary, "byte[]"), objects.len()), (199, 1, 201));
        assert_eq!(summary.facts().repeated_objects.get(), 1);
        let index = objects.addresses.index_of(ObjectId(0x2010)).unwrap();
        assert_eq!(objects.offset(bytes(&heap), FoundIdSize::Eight, index), Some(placed.at(at)));
        let row = summary.class(objects.class(index).unwrap()).unwrap();
        assert_eq!(summary.class_name(row), "byte[]");
        dump.forget_index();
        assert_eq!(dump::digest(dump.open().summary()), dump::digest(summary), "without objects");
    }
}

/// Written as by collectors that follow references: sizes are measured nevertheless.
#[test]
fn ids_that_jump_about_are_measured_and_found() {
    let model = many(3000);
    let written = model.write(&Options { order: Order::Shuffled(5), ..Options::hotspot() });
    let (heap, graph) = Dump::written(&written).open_graph();
    let objects = &graph.objects;
    for object in &model.expected().objects {
        let index = objects.addresses.index_of(ObjectId(object.id)).unwrap();
        let offset = objects.offset(bytes(&heap), FoundIdSize::Eight, index);
        assert_eq!(offset, written.object_at(object.id));
    }
    let ordered = Dump::written(&model.write(&Options::hotspot())).open();
    let layout = |summary: &Summary| Sizes::new(summary, None).fit.layout;
    assert_eq!(layout(heap.summary()), layout(ordered.summary()));
}

/// So far apart that a bitmap of addresses would take too much memory.
#[test]
fn ids_that_are_scattered_over_all_addresses_are_listed() {
    let (heap_len, found) = within(20, || {
        let (mut out, mut heap) = with_class_a(IdSize::Eight);
        instances_of_a(&mut heap, (1..6000u64).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) & !7));
        out.heap_segment(&heap);
        out.heap_dump_end();
        let (heap, graph) = Dump::of(&out.into_bytes()).open_graph();
        (graph.objects.len(), count(heap.summary(), "A"))
    });
    assert_eq!((heap_len, found), (6000, 5999));
}

/// The first 50,000 objects determine the alignment of IDs; a later one may differ.
#[test]
fn ids_may_turn_out_to_be_less_aligned_than_the_first_ones() {
    let (heap_len, found) = within(20, || {
        let (mut out, mut heap) = with_class_a(IdSize::Eight);
        instances_of_a(&mut heap, (0..60_000).map(|n| 0x10_0000 + 16 * n));
        instances_of_a(&mut heap, (0..1000).map(|n| 0x80_0001 + 16 * n));
        out.heap_segment(&heap);
        out.heap_dump_end();
        let (heap, graph) = Dump::of(&out.into_bytes()).open_graph();
        (graph.objects.len(), count(heap.summary(), "A"))
    });
    assert_eq!((heap_len, found), (61_001, 61_000));
}

/// Nor do the first ones determine it if they are damaged. With or without an index, the answer is the same.
#[test]
fn an_unaligned_id_behind_damage_gives_one_answer() {
    let (with, without) = within(20, || {
        let (mut out, mut heap) = with_class_a(IdSize::Eight);
        instances_of_a(&mut heap, (0..50).map(|n| 0x2000 + 16 * n));
        heap.raw(&[0x55; 20]);
        instances_of_a(&mut heap, (100..150).map(|n| 0x2001 + 16 * n));
        out.heap_segment(&heap);
        out.heap_dump_end();
        let dump = Dump::of(&out.into_bytes());
        let without = dump::digest(dump.open().summary());
        (dump::digest(dump.open_graph().0.summary()), without)
    });
    let differ = with.lines().zip(without.lines()).find(|(one, other)| one != other);
    assert!(with == without, "{differ:#?}");
}

// Giant records

/// One record of over 16 MiB is cut for all cores where objects seem to start; here they seem to inside of an array.
#[test]
fn an_array_that_holds_a_heap_dump_is_one_array() {
    for id_size in IdSize::ALL {
        let mut inside = HeapWriter::new(id_size);
        instances_of_a(&mut inside, (0..300_000).map(|n| 0x4000_0000 + 16 * n));
        let inside = inside.sink().to_vec();
        let (mut out, mut heap) = with_class_a(id_size);
        instances_of_a(&mut heap, (0..50_000).map(|n| 0x10_0000 + 16 * n));
        for n in 0..3 {
            heap.prim_array(0x5000_0000 + (n << 24), 0, &Elements::of_bytes(&inside));
        }
        instances_of_a(&mut heap, (0..50_000).map(|n| 0x6000_0000 + 16 * n));
        assert!(heap.len() > 17 << 20);
        out.heap_dump(&heap);
        let written = out.finish();
        let (heap, graph) = Dump::written(&written).open_graph();
        let objects = &graph.objects;
        let summary = heap.summary();
        assert_eq!((count(summary, "A"), count(summary, "byte[]")), (100_000, 3));
        assert!(!summary.is_damaged(), "{}", problems(summary));
        assert_eq!((objects.len(), objects.addresses.index_of(ObjectId(0x4000_0000))), (100_004, None));
        for sub in written.subs.iter().step_by(97) {
            let index = objects.addresses.index_of(ObjectId(sub.id)).unwrap();
            assert_eq!(objects.offset(bytes(&heap), summary.id_size(), index), Some(sub.at));
        }
    }
}

/// Lengths are u4: over 4 GiB they wrap. A sparse file of 9 GiB, in which arrays exceed 2 and 4 GiB.
#[test]
#[ignore = "walks over gigabytes of zeros"]
fn a_heap_dump_over_4_gib_states_its_length_wrapped() {
    let (mut out, mut heap) = with_class_a(IdSize::Eight);
    heap.prim_array(0x1_0000_0000, 0, &Elements::Zeros(Type::Long, 0x2400_0000));
    heap.prim_array(0x3_0000_0000, 0, &Elements::Zeros(Type::Byte, u32::MAX - 20));
    instances_of_a(&mut heap, [0x2000, 0x2010]);
    out.heap_dump(&heap);
    out.string(9, "behind");
    let written = out.finish();
    assert!(written.len() > 2 << 32);
    let (heap, graph) = Dump::written(&written).open_graph();
    let objects = &graph.objects;
    let summary = heap.summary();
    assert_eq!((count(summary, "A"), count(summary, "long[]"), objects.len()), (2, 1, 5));
    assert!(summary.string_offset(9).is_some() && !summary.is_damaged(), "{}", problems(summary));
    assert!(problems(summary).contains("modulo 4 GiB"), "{}", problems(summary));
    assert!(problems(summary).contains("the maximum length that HotSpot dumps"), "{}", problems(summary));
    let sizes = Sizes::new(summary, None);
    let total: u64 = summary.numbered_classes().map(|(number, _)| sizes.total(number)).sum();
    assert!(total > 9_126_000_000, "{total}");
}

// Damaged files

#[test]
fn of_a_cut_file_all_before_the_cut_is_read() {
    for options in [Options::hotspot(), Options { end: EndRecord::Missing, ..Options::agent() }] {
        let written = many(40).write(&options);
        let all = written.bytes();
        let heap_starts = written.records.iter().find(|r| matches!(r.tag, 0x0C | 0x1C)).unwrap().at as usize;
        for cut in (heap_starts + 9..all.len() - 10).step_by(13) {
            let (heap, graph) = Dump::of(&damage::cut(&all, cut)).open_graph();
            let objects = &graph.objects;
            let whole = |tags: &[u8]| {
                let subs = written.subs.iter().filter(|sub| tags.contains(&sub.tag));
                subs.filter(|sub| sub.at + sub.len <= cut as u64).count()
            };
            assert_eq!(count(heap.summary(), "t.Pair"), whole(&[0x21]) as u64, "cut at {cut}");
            assert_eq!(objects.len() as usize, whole(&[0x20, 0x21, 0x22, 0x23]), "cut at {cut}");
            assert!(
                heap.summary().is_damaged() && problems(heap.summary()).contains("the file is truncated")
            );
        }
    }
}

/// Returns the messages of opening such a file, as error or problems.
fn said_of(mangled: &[u8]) -> String {
    match Dump::of(mangled).try_open() {
        Ok(heap) => {
            assert!(heap.summary().is_damaged());
            problems(heap.summary())
        }
        Err(error) => format!("{error} {:?}", hprof_cli::advice(&error)),
    }
}

#[test]
fn line_ends_that_a_transfer_changed_are_named() {
    // Line feeds in the tables, and in the heap alone.
    let whole = many(3000).write(&Options { created_ms: 0, ..Options::hotspot() }).bytes();
    let mut out = DumpWriter::new(HOTSPOT, IdSize::Eight);
    for id in 0..300 {
        out.string(id, "0123456789");
        out.string(id, "ab");
    }
    for all in [out.into_bytes(), whole] {
        let said = said_of(&damage::crlf(&all));
        assert!(said.contains("binary mode"), "{said}");
    }
}

#[test]
fn a_dump_that_was_treated_as_text_is_named() {
    let all = many(3000).write(&Options { created_ms: 0, ..Options::hotspot() }).bytes();
    let said = said_of(&damage::through_utf8(&all));
    assert!(said.contains("binary mode"), "{said}");
    let mut header = all;
    header.splice(18..19, [0xEF, 0xBF, 0xBD]);
    let said = said_of(&header);
    assert!(said.contains("text-mode transfer"), "{said}");
}
