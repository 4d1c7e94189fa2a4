//! Tests of the tests' own writer: a model's account of itself is right. The library under test is not used here.

use std::collections::BTreeSet;

use hprof_writer::{
    ArbClass, ArbDump, ArbObject, ArbObjectKind, ArbRoot, ArbTrace, ArbValue, Between, DumpWriter, EndRecord,
    HeapModel, IdSize, InstanceSize, Layout, ObjectKind, Options, Order, Place, Root, Type, Version, Written,
    examples,
};

use crate::writer_records::{check_places, hex};

use IdSize::Four;

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
