//! Tests of the tests' own writer: what it writes, byte by byte. The expected bytes are written out by hand from the
//! format's documentation. The library under test is not used here.

use hprof_writer::{
    AllocSite, AllocSites, ClassDump, DumpWriter, Elements, HeapModel, HeapTag, HeapWriter, IdSize,
    NameStyle, Options, Root, StartThread, StatedLength, Type, Value, Version, Written, agent_cutoff, damage,
    examples, modified_utf8,
};

/// Bytes from hexadecimal digits; blanks are for the eye.
pub(crate) fn hex(digits: &str) -> Vec<u8> {
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

/// Checks that the offsets in `Written` match the bytes.
pub(crate) fn check_places(written: &Written) {
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
