//! Tests of the test support itself: what the independent writer writes, byte by byte, and that a
//! model's account of itself is right. The expected bytes are written out by hand from the format's
//! documentation. The library under test is not used here.

#![allow(missing_docs)]

mod support;

use std::collections::BTreeSet;

use support::{
    AllocSite, AllocSites, ArbClass, ArbDump, ArbObject, ArbObjectKind, ArbRoot, ArbTrace, ArbValue, Between,
    ClassDump, DumpWriter, Elements, EndRecord, HeapModel, HeapTag, HeapWriter, IdSize, InstanceSize, Layout,
    NameStyle, ObjectKind, Options, Order, Place, Root, StartThread, StatedLength, Type, Value, Version,
    Written, agent_cutoff, damage, examples, modified_utf8,
};

/// Bytes from hexadecimal digits; blanks are for the eye.
fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<char> = digits.chars().filter(|c| !c.is_whitespace()).collect();
    let byte =
        |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).expect("hexadecimal digits");
    digits.chunks(2).map(byte).collect()
}

/// The bytes of the one record that `write` writes after the header.
fn record<R>(id_size: IdSize, write: impl FnOnce(&mut DumpWriter) -> R) -> Vec<u8> {
    let mut out = DumpWriter::with_raw_header(&[], id_size);
    write(&mut out);
    out.into_bytes()
}

/// The bytes of the one sub-record that `write` writes.
fn sub<R>(id_size: IdSize, write: impl FnOnce(&mut HeapWriter) -> R) -> Vec<u8> {
    let mut out = HeapWriter::new(id_size);
    write(&mut out);
    out.sink().to_vec()
}

use IdSize::{Eight, Four};

#[test]
fn header() {
    let eight = DumpWriter::new(Version::V1_0_2, Eight).created_ms(0x0102_0304_0506_0708).into_bytes();
    assert_eq!(eight, [b"JAVA PROFILE 1.0.2\0".as_slice(), &hex("00000008 0102030405060708")].concat());
    let four = DumpWriter::new(Version::V1_0, Four).into_bytes();
    assert_eq!(four, [b"JAVA PROFILE 1.0\0".as_slice(), &hex("00000004 00000000 00000000")].concat());
    assert_eq!(Version::V1_0_1.header(), "JAVA PROFILE 1.0.1");
    assert_eq!(Version::V1_0_3.header(), "JAVA PROFILE 1.0.3");
}

#[test]
fn records_with_ids_of_either_size() {
    let string = |out: &mut DumpWriter| out.string(0x1122, "aé");
    assert_eq!(record(Four, string), hex("01 00000000 00000007 00001122 61C3A9"));
    assert_eq!(record(Eight, string), hex("01 00000000 0000000B 0000000000001122 61C3A9"));

    let load = |out: &mut DumpWriter| out.load_class(1, 2, 3, 4);
    assert_eq!(record(Four, load), hex("02 00000000 00000010 00000001 00000002 00000003 00000004"));
    let wide = hex("02 00000000 00000018 00000001 0000000000000002 00000003 0000000000000004");
    assert_eq!(record(Eight, load), wide);

    let frame = |out: &mut DumpWriter| out.frame(1, 2, 3, 4, 5, -1);
    let narrow = hex("04 00000000 00000018 00000001 00000002 00000003 00000004 00000005 FFFFFFFF");
    assert_eq!(record(Four, frame), narrow);
    assert_eq!(record(Eight, frame).len(), 9 + 40);

    let trace = |out: &mut DumpWriter| out.trace(7, 8, &[0x0A, 0x0B]);
    let narrow = hex("05 00000000 00000014 00000007 00000008 00000002 0000000A 0000000B");
    assert_eq!(record(Four, trace), narrow);
    assert_eq!(record(Eight, trace).len(), 9 + 28);

    let start = StartThread { thread: 1, object: 2, trace: 3, name: 4, group: 5, parent_group: 6 };
    let narrow = hex("0A 00000000 00000018 00000001 00000002 00000003 00000004 00000005 00000006");
    assert_eq!(record(Four, |out| out.start_thread(&start)), narrow);
    assert_eq!(record(Eight, |out| out.start_thread(&start)).len(), 9 + 40);
}

#[test]
fn records_without_ids() {
    for size in IdSize::ALL {
        assert_eq!(record(size, |out| out.unload_class(0x0102)), hex("03 00000000 00000004 00000102"));
        assert_eq!(record(size, |out| out.end_thread(3)), hex("0B 00000000 00000004 00000003"));
        assert_eq!(record(size, |out| out.heap_dump_end()), hex("2C 00000000 00000000"));
        assert_eq!(
            record(size, |out| out.heap_summary(1, 2, 3, 4)),
            hex("07 00000000 00000018 00000001 00000002 0000000000000003 0000000000000004")
        );
        assert_eq!(
            record(size, |out| out.cpu_samples(9, &[(5, 1), (4, 2)])),
            hex("0D 00000000 00000018 00000009 00000002 00000005 00000001 00000004 00000002")
        );
        assert_eq!(record(size, |out| out.control_settings(3, 8)), hex("0E 00000000 00000006 00000003 0008"));
        let sites = AllocSites {
            flags: 2,
            cutoff_bits: agent_cutoff(0.0001),
            live_bytes: 1,
            live_instances: 2,
            allocated_bytes: 3,
            allocated_instances: 4,
            sites: vec![AllocSite {
                array: Type::Char.code(),
                class_serial: 5,
                trace: 6,
                live_bytes: 7,
                live_instances: 8,
                allocated_bytes: 9,
                allocated_instances: 10,
            }],
        };
        assert_eq!(
            record(size, |out| out.alloc_sites(&sites)),
            hex("06 00000000 0000003B 0002 EB1C432D 00000001 00000002 0000000000000003 0000000000000004 00000001
                 05 00000005 00000006 00000007 00000008 00000009 0000000A")
        );
    }
    let raw = record(Four, |out| {
        out.time_us(5).unload_class(1);
        out.raw_record(0x7E, 0x0102_0304, 0xFFFF_FFFF, &[9]);
        out.end_thread(2);
        out.raw(&[0xEE]);
    });
    assert_eq!(
        raw,
        hex("03 00000005 00000004 00000001 7E 01020304 FFFFFFFF 09 0B 00000005 00000004 00000002 EE")
    );
}

#[test]
fn roots() {
    let bytes = [
        "FF 000000AA",
        "01 000000AA 7F010010",
        "02 000000AA 00000001 FFFFFFFF",
        "03 000000AA 00000001 00000000",
        "04 000000AA 00000001",
        "05 000000AA",
        "06 000000AA 00000001",
        "07 000000AA",
        "08 000000AA 00000001 00000001",
        "89 000000AA",
        "8A 000000AA",
        "8B 000000AA",
        "8C 000000AA",
        "8D 000000AA",
        "8E 000000AA 00000001 00000002",
        "90 000000AA",
    ];
    for (root, bytes) in Root::EXAMPLES.into_iter().zip(bytes) {
        assert_eq!(sub(Four, |out| out.root(0xAA, root)), hex(bytes), "{root:?}");
        let ids = if matches!(root, Root::JniGlobal { .. }) { 2 } else { 1 };
        let wide = sub(Eight, |out| out.root(0xAA, root));
        assert_eq!(wide.len(), hex(bytes).len() + 4 * ids, "{root:?}");
        assert_eq!(wide[..9], hex(&format!("{:02X} 00000000000000AA", root.tag())), "{root:?}");
    }
}

#[test]
fn class_dump() {
    let class = ClassDump {
        id: 1,
        trace: 2,
        superclass: 3,
        loader: 4,
        signers: 5,
        domain: 6,
        reserved: [7, 8],
        instance_size: 9,
        constants: &[(10, Value::Int(-2)), (11, Value::Object(12))],
        statics: &[(13, Value::Long(-1)), (14, Value::Byte(15))],
        fields: &[(16, Type::Object), (17, Type::Double)],
    };
    let narrow = "20 00000001 00000002 00000003 00000004 00000005 00000006 00000007 00000008 00000009
        0002 000A 0A FFFFFFFE 000B 02 0000000C
        0002 0000000D 0B FFFFFFFFFFFFFFFF 0000000E 08 0F
        0002 00000010 02 00000011 07";
    assert_eq!(sub(Four, |out| out.class_dump(&class)), hex(narrow));
    let wide = "20 0000000000000001 00000002 0000000000000003 0000000000000004 0000000000000005
        0000000000000006 0000000000000007 0000000000000008 00000009
        0002 000A 0A FFFFFFFE 000B 02 000000000000000C
        0002 000000000000000D 0B FFFFFFFFFFFFFFFF 000000000000000E 08 0F
        0002 0000000000000010 02 0000000000000011 07";
    assert_eq!(sub(Eight, |out| out.class_dump(&class)), hex(wide));
}

#[test]
fn values() {
    let all = [
        Value::Object(1),
        Value::Boolean(true),
        Value::Char(0x20AC),
        Value::Float(1.0),
        Value::Double(-2.0),
        Value::Byte(-1),
        Value::Short(-2),
        Value::Int(-3),
        Value::Long(-4),
    ];
    assert_eq!(all.map(Value::ty), Type::ALL);
    assert_eq!(Type::ALL.map(Type::code), [2, 4, 5, 6, 7, 8, 9, 10, 11]);
    let values = "01 20AC 3F800000 C000000000000000 FF FFFE FFFFFFFD FFFFFFFFFFFFFFFC";
    assert_eq!(
        sub(Four, |out| out.instance(0xA1, 2, 0xA3, &all)),
        hex(&format!("21 000000A1 00000002 000000A3 00000022 00000001 {values}"))
    );
    assert_eq!(
        sub(Eight, |out| out.instance(0xA1, 2, 0xA3, &all)),
        hex(&format!("21 00000000000000A1 00000002 00000000000000A3 00000026 0000000000000001 {values}"))
    );
}

#[test]
fn arrays() {
    assert_eq!(
        sub(Four, |out| out.object_array(1, 2, 3, &[4, 0])),
        hex("22 00000001 00000002 00000002 00000003 00000004 00000000")
    );
    assert_eq!(
        sub(Eight, |out| out.object_array(1, 2, 3, &[4])),
        hex("22 0000000000000001 00000002 00000001 0000000000000003 0000000000000004")
    );
    let two = |elements: Elements, code_and_data: &str| {
        let head = "23 00000001 00000002 00000002";
        assert_eq!(sub(Four, |out| out.prim_array(1, 2, &elements)), hex(&format!("{head} {code_and_data}")));
    };
    two(Elements::Boolean(vec![true, false]), "04 01 00");
    two(Elements::of_chars("a€"), "05 0061 20AC");
    two(Elements::Float(vec![1.0, 0.0]), "06 3F800000 00000000");
    two(Elements::Double(vec![1.0, 0.0]), "07 3FF0000000000000 0000000000000000");
    two(Elements::of_bytes(&[0x7F, 0x80]), "08 7F 80");
    two(Elements::Short(vec![1, -1]), "09 0001 FFFF");
    two(Elements::Int(vec![1, -1]), "0A 00000001 FFFFFFFF");
    two(Elements::Long(vec![1, -1]), "0B 0000000000000001 FFFFFFFFFFFFFFFF");
    two(Elements::Zeros(Type::Short, 2), "09 0000 0000");
    assert_eq!(
        sub(Eight, |out| out.prim_array(1, 2, &Elements::of_bits(Type::Int, &[3]))),
        hex("23 0000000000000001 00000002 00000001 0A 00000003")
    );
    assert_eq!(
        sub(Four, |out| out.prim_array(1, 2, &Elements::NoData(Type::Byte, 300))),
        hex("C3 00000001 00000002 0000012C 08")
    );
    assert_eq!(
        sub(Four, |out| out.null_array(1, 2, 3, 2)),
        sub(Four, |out| {
            out.object_array(1, 2, 3, &[0, 0]);
        })
    );
    assert_eq!(sub(Four, |out| out.heap_info(0x50, 0x61)), hex("FE 00000050 00000061"));
    assert_eq!(
        sub(Four, |out| {
            out.instance_stating(1, 2, 3, 0xFFFF_FFFF, &[5]);
            out.object_array_stating(1, 2, 3, 7, &[8]);
            out.prim_array_stating(1, 2, 3, 0x0C, &[9]);
            out.raw(&[0xAB, 0xCD]);
        }),
        hex("21 00000001 00000002 00000003 FFFFFFFF 05
             22 00000001 00000002 00000007 00000003 00000008
             23 00000001 00000002 00000003 0C 09
             ABCD")
    );
}

#[test]
fn modified_utf8_and_names() {
    assert_eq!(modified_utf8("a\0é€"), hex("61 C080 C3A9 E282AC"));
    assert_eq!(modified_utf8("\u{1F600}"), hex("EDA0BD EDB880"));
    assert_eq!(modified_utf8("\u{7F}\u{80}\u{7FF}\u{800}\u{FFFF}"), hex("7F C280 DFBF E0A080 EFBFBF"));
    let spell = |source: &str| NameStyle::ALL.map(|style| style.spell(source));
    assert_eq!(spell("java.lang.String"), ["java/lang/String", "java.lang.String", "java.lang.String"]);
    assert_eq!(spell("byte[]"), ["[B", "byte[]", "[B"]);
    assert_eq!(spell("long[][]"), ["[[J", "long[][]", "[[J"]);
    assert_eq!(spell("a.B$C[][]"), ["[[La/B$C;", "a.B$C[][]", "[[La.B$C;"]);
    assert_eq!(spell("Plain"), ["Plain", "Plain", "Plain"]);
    assert_eq!(spell("boolean[]")[0], "[Z");
}

#[test]
fn damaged_bytes() {
    assert_eq!(damage::cut(&[1, 2, 3], 2), [1, 2]);
    assert_eq!(damage::crlf(b"a\nb\r\n"), b"a\r\nb\r\r\n");
    assert_eq!(damage::through_utf8(&hex("41 80 C3A9")), hex("41 EFBFBD C3A9"));
    assert_eq!(damage::with_u4(&[0; 6], 1, 0x0102_0304), [0, 1, 2, 3, 4, 0]);
    assert_eq!(damage::with_byte(&[0; 2], 1, 7), [0, 7]);
}

/// Follows the stated lengths from the header on; returns (tag, offset of the body, stated length).
fn walk(bytes: &[u8]) -> Vec<(u8, usize, usize)> {
    let mut at = bytes.iter().position(|b| *b == 0).expect("a terminated header") + 13;
    let mut found = Vec::new();
    while at < bytes.len() {
        let len: [u8; 4] = bytes[at + 5..at + 9].try_into().expect("four bytes");
        let len = usize::try_from(u32::from_be_bytes(len)).expect("a length that fits");
        found.push((bytes[at], at + 9, len));
        at += 9 + len;
    }
    assert_eq!(at, bytes.len(), "the last record ends where the file does");
    found
}

/// That what `Written` says of places is what is in the bytes.
fn check_places(written: &Written) {
    let bytes = written.bytes();
    let walked = walk(&bytes);
    let marked: Vec<(u8, usize, usize)> = written
        .records
        .iter()
        .map(|r| {
            (r.tag, usize::try_from(r.at).expect("small") + 9, usize::try_from(r.body_len).expect("small"))
        })
        .collect();
    assert_eq!(walked, marked);
    let heap: usize =
        walked.iter().filter(|(tag, ..)| matches!(tag, 0x0C | 0x1C)).map(|(_, _, len)| len).sum();
    assert_eq!(
        heap as u64,
        written.subs.iter().map(|s| s.len).sum::<u64>(),
        "sub-records fill the heap records"
    );
    for sub in &written.subs {
        assert_eq!(bytes[usize::try_from(sub.at).expect("small")], sub.tag);
    }
}

#[test]
fn every_record_kind_in_a_file() {
    let directory =
        option_env!("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, std::path::PathBuf::from);
    for version in Version::ALL {
        for id_size in IdSize::ALL {
            let written = examples::every_kind(version, id_size);
            check_places(&written);
            let tags: Vec<u8> = written.records.iter().map(|r| r.tag).collect();
            assert_eq!(
                tags,
                [1, 2, 3, 4, 5, 6, 7, 0x0A, 0x0B, 0x0D, 0x0E, 0x0C, 0x1C, 0x1C, 0x2C, 0x7E].map(u8::from)
            );
            let name = format!("every-kind-{version:?}-{id_size:?}-{}.hprof", std::process::id());
            let path = directory.join(name);
            written.write_file(&path).expect("a writable directory");
            let read = std::fs::read(&path).expect("the file just written");
            std::fs::remove_file(&path).expect("the file just written");
            assert_eq!(read, written.bytes());
            assert_eq!(read.len() as u64, written.len());
        }
    }
}

#[test]
fn offsets_are_told() {
    let mut heap = HeapWriter::new(Eight);
    let root = heap.root(0x70, Root::StickyClass);
    let array = heap.prim_array(0x80, 0, &Elements::of_bytes(b"xyz"));
    let mut out = DumpWriter::new(Version::V1_0_2, Eight);
    assert_eq!(out.len(), 31);
    assert_eq!(out.string(1, "s"), 31);
    let placed = out.heap_segment(&heap);
    assert_eq!(placed.record, 31 + 9 + 9);
    assert_eq!(placed.at(root), placed.record + 9);
    assert_eq!(placed.at(array), placed.body + 9);
    let written = out.finish();
    assert_eq!(written.object_at(0x80), Some(placed.at(array)));
    assert_eq!(written.object_at(0x70), None, "a root is no object");
    assert_eq!(written.records_of(0x1C), [placed.record]);
    assert_eq!(written.subs_of(0x05)[0].at, placed.at(root));
}

#[test]
fn stated_lengths() {
    let mut heap = HeapWriter::new(Four);
    heap.raw(&[0xAA; 300]);
    for (stated, expected) in [
        (StatedLength::Real, 300),
        (StatedLength::Modulo(256), 44),
        (StatedLength::Zero, 0),
        (StatedLength::Exactly(9), 9),
    ] {
        let bytes = record(Four, |out| out.heap_record(HeapTag::Dump, stated, &heap));
        assert_eq!(bytes[5..9], u32::to_be_bytes(expected));
        assert_eq!(bytes.len(), 309);
    }
    assert_eq!(StatedLength::Real.of((1 << 32) + 5), 5);
}

#[test]
fn holes_make_dumps_larger_than_memory() {
    let mut model = HeapModel::default();
    let object = model.class("java.lang.Object", None, &[]);
    model.class("long[]", Some(object), &[]);
    model.prim_array(Elements::Zeros(Type::Long, 700_000_000));
    let last = model.instance(object, &[]);
    let written = model.write(&Options::jdk6());
    let heap = written.records.last().expect("a heap record");
    assert!(heap.body_len > 5_600_000_000);
    assert_eq!(u64::from(heap.stated_len), heap.body_len - (1 << 32));
    assert_eq!(written.object_at(last.0), Some(written.len() - 25));
    assert_eq!(written.len(), heap.at + 9 + heap.body_len);
}

#[test]
fn instance_sizes_follow_the_layout() {
    use Type::{Boolean, Byte, Int, Long, Object};
    let c = Layout::COMPRESSED;
    assert_eq!(c.instance_bytes(&[&[]]), 16);
    assert_eq!(c.instance_bytes(&[&[], &[Int]]), 16);
    assert_eq!(c.instance_bytes(&[&[], &[Long]]), 24);
    assert_eq!(c.instance_bytes(&[&[], &[Object, Int, Byte, Boolean]]), 24);
    assert_eq!(c.instance_bytes(&[&[], &[Int, Object, Object, Object]]), 32);
    assert_eq!(c.instance_bytes(&[&[], &[Long, Int]]), 24, "the int fills the gap before the long");
    assert_eq!(Layout::COMPACT.instance_bytes(&[&[]]), 8);
    assert_eq!(Layout::UNCOMPRESSED.instance_bytes(&[&[], &[Object]]), 24);
    assert_eq!(c.array_bytes(Byte, 0), 16);
    assert_eq!(c.array_bytes(Byte, 9), 32);
    assert_eq!(c.array_bytes(Object, 3), 32);
    assert_eq!(Layout::COMPACT.array_bytes(Byte, 4), 16);
    assert_eq!(Layout::COMPACT.array_bytes(Long, 1), 24);
    assert_eq!(Layout::ALIGNED_16.array_bytes(Byte, 1), 32);
}

#[test]
fn a_model_knows_what_it_holds() {
    let expected = examples::zoo().expected();
    assert_eq!(expected.instances("java.util.HashMap$Node"), 1);
    assert_eq!(expected.instances("java.util.HashMap$Node[]"), 1);
    assert_eq!(expected.by_class["java.util.HashMap$Node[]"].bytes, 64);
    assert_eq!(expected.by_class["java.util.HashMap$Node"].bytes, 24);
    assert_eq!(expected.by_class["java.util.HashMap$TreeNode"].bytes, 32);
    assert_eq!(expected.instances("java.lang.String"), 3);
    assert_eq!(expected.instances("byte[]"), 3);
    assert_eq!(expected.roots[&0x03], 2);
    assert_eq!(expected.root_list.len(), 5);
    assert_eq!(expected.dangling_references, 1);
    assert_eq!(expected.count(ObjectKind::Instance), 7);
    assert_eq!(expected.count(ObjectKind::Class), 20);
    let array = expected.objects.iter().find(|o| o.kind == ObjectKind::ObjectArray).expect("the array");
    assert_eq!(array.elements, 4);
    let labels: Vec<&str> = array.references.iter().map(|(label, _)| label.as_str()).collect();
    assert_eq!(labels, ["[0]", "[2]", "[3]"]);
    assert!(
        expected.objects.windows(2).all(|pair| pair[0].id + pair[0].size == pair[1].id),
        "objects are adjacent"
    );
    assert!(expected.objects.iter().all(|o| o.id % 8 == 0));
    assert_eq!(expected.object(array.id), Some(array));
}

#[test]
fn fields_are_written_own_first() {
    let model = examples::zoo();
    let written = model.write(&Options { segment_bytes: None, ..Options::agent() });
    let expected = model.expected();
    let tree = expected
        .objects
        .iter()
        .find(|o| {
            o.kind == ObjectKind::Instance && o.class_name.as_deref() == Some("java.util.HashMap$TreeNode")
        })
        .expect("the tree node");
    let next = tree.references[0].1;
    let at = usize::try_from(written.object_at(tree.id).expect("written")).expect("small");
    let values = &written.bytes()[at + 17..at + 17 + 17];
    assert_eq!(values, hex(&format!("01 {next:08X} 00000000 00000000 00000000")));
}

#[test]
fn every_shape_holds_the_same() {
    let model = examples::zoo();
    let pieces = |written: &Written| -> BTreeSet<Vec<u8>> {
        let bytes = written.bytes();
        let piece = |at: u64, len: u64| {
            let at = usize::try_from(at).expect("small");
            bytes[at..at + usize::try_from(len).expect("small")].to_vec()
        };
        written.subs.iter().map(|s| piece(s.at, s.len)).collect()
    };
    for preset in [Options::hotspot(), Options::jdk6(), Options::agent(), Options::android()] {
        let reference = model.write(&preset);
        let orders =
            [Order::ClassesFirst, Order::ClassesLast, Order::AsAdded, Order::Shuffled(0), Order::Shuffled(9)];
        for order in orders {
            for segment_bytes in [None, Some(1), Some(200), Some(1 << 20)] {
                for (strings, loads) in [(Place::First, Place::Last), (Place::Last, Place::First)] {
                    for between in [Between::Nothing, Between::EmptySegments, Between::OtherRecords] {
                        let options =
                            Options { order, segment_bytes, strings, loads, between, ..preset.clone() };
                        let written = model.write(&options);
                        check_places(&written);
                        assert!(pieces(&written) == pieces(&reference), "{options:?}");
                        assert_eq!(written.subs.len(), reference.subs.len());
                        let heap_tag = if segment_bytes.is_some() { 0x1C } else { 0x0C };
                        assert!(!written.records_of(heap_tag).is_empty());
                        assert!(written.records_of(0x0C ^ 0x1C ^ heap_tag).is_empty());
                    }
                }
            }
        }
    }
}

#[test]
fn segments_are_cut_between_sub_records() {
    let model = examples::zoo();
    let options = Options { segment_bytes: Some(200), end: EndRecord::Missing, ..Options::hotspot() };
    let written = model.write(&options);
    assert!(written.records_of(0x2C).is_empty());
    let segments: Vec<_> = written.records.iter().filter(|r| r.tag == 0x1C).collect();
    assert!(segments.len() > 5);
    for segment in segments {
        let body = segment.at + 9;
        let inside: Vec<_> =
            written.subs.iter().filter(|s| (body..body + segment.body_len).contains(&s.at)).collect();
        assert!(segment.body_len <= 200 || inside.len() == 1);
        assert_eq!(inside.iter().map(|s| s.len).sum::<u64>(), segment.body_len);
    }
    let one_each = model.write(&Options { segment_bytes: Some(1), ..Options::hotspot() });
    assert_eq!(one_each.records_of(0x1C).len(), one_each.subs.len());
}

#[test]
fn instance_sizes_are_stated_both_ways() {
    let model = examples::zoo();
    let stated = |options: &Options, name: &str| {
        let class = model.classes().iter().find(|c| c.name == name).expect("a class of the zoo");
        let written = model.write(options);
        let at = written.object_at(class.id.0).expect("dumped") + 5 + 7 * u64::from(options.id_size.bytes());
        let at = usize::try_from(at).expect("small");
        u32::from_be_bytes(written.bytes()[at..at + 4].try_into().expect("four bytes"))
    };
    let fields = Options::hotspot();
    let real = Options { instance_size: InstanceSize::Real, ..Options::hotspot() };
    let narrow = Options { id_size: Four, ..Options::hotspot() };
    assert_eq!(stated(&fields, "java.lang.Object"), 0);
    assert_eq!(stated(&fields, "java.lang.String"), 14);
    assert_eq!(stated(&fields, "java.util.HashMap$TreeNode"), 29);
    assert_eq!(stated(&narrow, "java.util.HashMap$TreeNode"), 17);
    assert_eq!(stated(&real, "java.lang.Object"), 16);
    assert_eq!(stated(&real, "java.lang.String"), 24);
    assert_eq!(stated(&real, "byte[]"), 0);
}

#[test]
fn two_models_share_a_file() {
    let mut out = DumpWriter::new(Version::V1_0_1, Four);
    let model = examples::zoo();
    model.write_into(&mut out, &Options::agent());
    let second =
        Options { first_string: 0x10, first_class_serial: 100, first_frame: 100, ..Options::agent() };
    model.write_into(&mut out, &second);
    let written = out.finish();
    check_places(&written);
    assert_eq!(written.records_of(0x0C).len(), 2);
}

#[test]
fn addresses_and_sizes_can_be_given() {
    let mut model = HeapModel::new(Layout::COMPRESSED);
    let object = model.at(0x1_0000).class("java.lang.Object", None, &[]);
    let a = model.sized(24).instance(object, &[]);
    let b = model.traced(7).instance(object, &[]);
    let c = model.skip(0x100).instance(object, &[]);
    assert_eq!(object.0, 0x1_0000);
    assert_eq!(b.0 - a.0, 24);
    assert_eq!(c.0 - b.0, 16 + 0x100);
    let low = model.at(0x100).instance(object, &[]);
    assert_eq!(model.next_address(), 0x110);
    let expected = model.expected();
    assert_eq!(expected.objects[0].id, low.0);
    assert_eq!(expected.object(b.0).expect("b").trace, 7);
}

/// Numbers for descriptions, where property tests would have strategies.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn size(&mut self, below: u64) -> usize {
        usize::try_from(self.next(below)).expect("small")
    }

    fn of<T: Clone>(&mut self, among: &[T]) -> T {
        among[self.size(among.len() as u64)].clone()
    }

    fn many(&mut self, below: u64) -> Vec<u64> {
        (0..self.next(below)).map(|_| self.next(1 << 20)).collect()
    }
}

fn described(seed: u64) -> ArbDump {
    let mut n = Numbers(seed);
    let preset = n.of(&[Options::hotspot(), Options::jdk6(), Options::agent(), Options::android()]);
    let mut dump = ArbDump::new(Options {
        id_size: n.of(&IdSize::ALL),
        order: n.of(&[Order::ClassesFirst, Order::ClassesLast, Order::AsAdded, Order::Shuffled(seed)]),
        segment_bytes: n.of(&[None, Some(1), Some(300), Some(1 << 20)]),
        strings: n.of(&[Place::First, Place::Last]),
        between: n.of(&[Between::Nothing, Between::EmptySegments, Between::OtherRecords]),
        ..preset
    });
    dump.layout = n.of(&[Layout::COMPRESSED, Layout::UNCOMPRESSED, Layout::COMPACT, Layout::ALIGNED_16]);
    for _ in 0..n.next(8) {
        let mut value = || ArbValue { ty: n.of(&Type::ALL), bits: n.next(1 << 30) };
        let (statics, constants) = (vec![value(), value()], vec![value()]);
        let fields = (0..n.next(5)).map(|_| n.of(&Type::ALL)).collect();
        let (superclass, loader) = (n.next(100), n.next(50));
        dump.classes.push(ArbClass { superclass, fields, statics, constants, loader, ..ArbClass::default() });
    }
    for _ in 0..n.next(60) {
        let kind = match n.next(4) {
            0 => ArbObjectKind::Instance { class: n.next(100), values: n.many(9) },
            1 => ArbObjectKind::ObjectArray { element: n.next(100), elements: n.many(9) },
            2 => ArbObjectKind::PrimArray { ty: n.of(&Type::ALL), bits: n.many(9) },
            _ => ArbObjectKind::NoData { ty: n.of(&Type::ALL), count: 5 },
        };
        dump.objects.push(ArbObject { kind, gap: u16::from(n.next(3) == 0), trace: 1 });
    }
    for _ in 0..n.next(10) {
        dump.roots.push(ArbRoot { target: n.next(100), root: n.of(&Root::EXAMPLES) });
    }
    dump.traces.push(ArbTrace { thread: 1, frames: vec![(n.next(9), -1)] });
    dump
}

#[test]
fn any_description_can_be_written() {
    for seed in 0..300 {
        let dump = described(seed);
        let (written, expected) = dump.write();
        check_places(&written);
        let dumped = |tags: &[u8]| written.subs.iter().filter(|s| tags.contains(&s.tag)).count() as u64;
        assert_eq!(dumped(&[0x21]), expected.count(ObjectKind::Instance), "{dump:?}");
        assert_eq!(dumped(&[0x22]), expected.count(ObjectKind::ObjectArray));
        assert_eq!(dumped(&[0x23, 0xC3]), expected.count(ObjectKind::PrimitiveArray));
        assert_eq!(dumped(&[0x20]), expected.count(ObjectKind::Class));
        assert_eq!(
            dump.objects.len() as u64 + expected.count(ObjectKind::Class),
            expected.objects.len() as u64
        );
        assert_eq!(expected.roots.values().sum::<u64>(), dump.roots.len() as u64);
        for object in &expected.objects {
            assert!(written.object_at(object.id).is_some());
        }
        let again = dump.write().0;
        assert_eq!(again.bytes(), written.bytes(), "writing is repeatable");
    }
}

#[test]
fn an_empty_description_is_a_dump() {
    let (written, expected) = ArbDump::new(Options::hotspot()).write();
    check_places(&written);
    assert_eq!(expected.objects.len(), 2);
}
