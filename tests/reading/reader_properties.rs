//! Random dumps, written in random shapes: what the library finds is what the writer put in.
//!
//! The model that a dump is written from says what a correct reader must find, however it is written; the writer knows
//! the place of every record. Nothing here depends on how the library reads.

use hprof_cli::{ObjectId, ObjectIndex};
use std::collections::{BTreeMap, BTreeSet};

use crate::kit::dump::{self, Dump, bytes, digest, digest_graph, with_threads};
use crate::kit::strategies::dump;
use hprof_index::layout::measured;
use hprof_index::layout::object_layout::{LayoutOverride, Packing};
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::model::tables::{ClassKind, ClassRow, NONE};
use hprof_index::objects::object_table::ObjectTable;
use hprof_index::open::heap::{Heap, StageState};
use hprof_values::BasicType;
use hprof_writer::{
    ArbDump, ClassDef, Expected, HeapModel, Layout, ObjectKind, Root, StatedLength, Type, Value, Written,
};
use proptest::prelude::*;

fn basic(ty: Type) -> BasicType {
    BasicType::from_code(ty.code()).unwrap()
}

/// The bits of a value as they stand in a dump.
fn bits(value: Value) -> u64 {
    match value {
        Value::Object(id) => id,
        Value::Boolean(v) => u64::from(v),
        Value::Char(v) => u64::from(v),
        Value::Float(v) => u64::from(v.to_bits()),
        Value::Double(v) => v.to_bits(),
        Value::Byte(v) => u64::from(v.cast_unsigned()),
        Value::Short(v) => u64::from(v.cast_unsigned()),
        Value::Int(v) => u64::from(v.cast_unsigned()),
        Value::Long(v) => v.cast_unsigned(),
    }
}

/// Findings of the library, by class IDs.
struct Found<'h> {
    summary: &'h Summary,
    by_id: BTreeMap<u64, (ClassNumber, &'h ClassRow)>,
}

impl<'h> Found<'h> {
    fn of(heap: &'h Heap) -> Self {
        let summary = heap.summary();
        let rows = summary.numbered_classes().filter(|(_, row)| row.id.get() != 0);
        Self { summary, by_id: rows.map(|(number, row)| (row.id.get(), (number, row))).collect() }
    }

    fn id_of(&self, number: Option<ClassNumber>) -> Option<u64> {
        number.and_then(|number| self.summary.class(number)).map(|row| row.id.get())
    }

    fn check_class(&self, def: &ClassDef, objects: u64) {
        let Some((_, row)) = self.by_id.get(&def.id.0) else {
            assert_eq!((def.loads, def.dumps, objects), (0, 0, 0), "{} is missing", def.name);
            return;
        };
        let name = match def.loads {
            0 => format!("<class {:#x}>", def.id.0),
            _ => def.name.clone(),
        };
        assert_eq!(self.summary.class_name(row), name);
        assert_eq!(row.objects.get(), objects, "objects of {name}");
        assert_eq!((row.is_dumped(), row.flags & 2 != 0), (def.dumps > 0, def.loads > 0), "{name}");
        assert_eq!(row.deviant.get(), 0, "{name}");
        if objects > 0 {
            assert_eq!(row.kind() == ClassKind::ObjectArray, def.is_array(), "{name}");
        }
        if def.dumps == 0 {
            return;
        }
        let superclass = def.superclass.map_or(0, |class| class.0);
        let ids = [row.super_id, row.loader, row.signers, row.protection_domain].map(|id| id.get());
        assert_eq!(ids, [superclass, def.loader, def.signers, def.domain], "{name}");
        let above = self.by_id.contains_key(&superclass).then_some(superclass);
        assert_eq!(self.id_of(Some(ClassNumber(row.super_class.get()))), above, "{name}");
        let fields: Vec<_> = def.fields.iter().map(|(name, ty)| (name.as_str(), basic(*ty))).collect();
        assert_eq!(self.summary.fields(row).collect::<Vec<_>>(), fields, "{name}");
        let statics =
            def.statics.iter().map(|(name, value)| (name.as_str(), basic(value.ty()), bits(*value)));
        assert_eq!(self.summary.statics(row).collect::<Vec<_>>(), statics.collect::<Vec<_>>(), "{name}");
    }

    fn check_primitive_arrays(&self, expected: &Expected) {
        for element in Type::PRIMITIVES {
            let name = format!("{}[]", element.java_name());
            let of_type = |object: &&hprof_writer::ExpectedObject| {
                object.kind == ObjectKind::PrimitiveArray && object.class_name.as_deref() == Some(&name)
            };
            let arrays: Vec<_> = expected.objects.iter().filter(of_type).collect();
            assert_eq!(dump::count(self.summary, &name), arrays.len() as u64, "{name}");
            let lengths = self.summary.primitive_lengths(basic(element));
            let elements: u64 = arrays.iter().map(|array| u64::from(array.elements)).sum();
            assert_eq!((lengths.count(), lengths.elements), (arrays.len() as u64, elements), "{name}");
        }
    }

    fn check_object_arrays(&self, expected: &Expected) {
        let lengths = measured::object_lengths(self.summary);
        let sum = |class: u64| -> u64 {
            let number = self.by_id.get(&class).map(|(number, _)| *number);
            let found = lengths.iter().filter(|(of, _)| Some(*of) == number);
            found.map(|(_, lengths)| lengths.elements).sum()
        };
        let mut elements: BTreeMap<u64, u64> = BTreeMap::new();
        for array in expected.objects.iter().filter(|object| object.kind == ObjectKind::ObjectArray) {
            *elements.entry(array.class.unwrap().0).or_default() += u64::from(array.elements);
        }
        for (class, elements) in elements {
            assert_eq!(sum(class), elements, "elements of {class:#x}");
        }
    }

    fn check_roots(&self, expected: &Expected) {
        let numbers = |root: Root| match root {
            Root::JniLocal { thread, frame } | Root::JavaFrame { thread, frame } => {
                (thread, frame.cast_unsigned())
            }
            Root::NativeStack { thread } | Root::ThreadBlock { thread } => (thread, NONE),
            Root::ThreadObject { thread, trace } => (thread, trace),
            Root::JniMonitor { thread, depth } => (thread, depth),
            _ => (NONE, NONE),
        };
        let mut wanted: Vec<_> =
            expected.root_list.iter().map(|(id, root)| (root.tag(), *id, numbers(*root))).collect();
        let rows = self.summary.roots().iter();
        let mut found: Vec<_> =
            rows.map(|row| (row.kind, row.id.get(), (row.thread.get(), row.frame.get()))).collect();
        wanted.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, wanted);
        let counts: BTreeMap<u8, u64> =
            self.summary.root_counts().into_iter().map(|(kind, count)| (kind.tag(), count)).collect();
        assert_eq!(counts, expected.roots);
    }
}

fn check_summary(heap: &Heap, arb: &ArbDump, model: &HeapModel, written: &Written, expected: &Expected) {
    let found = Found::of(heap);
    let summary = found.summary;
    let facts = summary.facts();
    assert_eq!(summary.version().name(), arb.options.version.header());
    assert_eq!(summary.id_size().bytes() as u32, arb.options.id_size.bytes());
    assert_eq!((facts.created_ms.get(), facts.dump_bytes.get()), (arb.options.created_ms, written.len()));
    assert_eq!((facts.heap_dumps.get(), facts.heap_dump.get()), (1, 1));
    assert_eq!(facts.class_objects.get(), expected.count(ObjectKind::Class));
    assert_eq!(facts.repeated_objects.get(), 0);
    // Without length and roots it may have been cut.
    let unfinished = arb.options.heap_length == StatedLength::Zero && summary.roots().is_empty();
    assert!(unfinished || !summary.is_damaged(), "{}", dump::problems(summary));

    let mut objects: BTreeMap<u64, u64> = BTreeMap::new();
    let classed = [ObjectKind::Instance, ObjectKind::ObjectArray];
    for object in expected.objects.iter().filter(|object| classed.contains(&object.kind)) {
        *objects.entry(object.class.unwrap().0).or_default() += 1;
    }
    for def in model.classes() {
        found.check_class(def, objects.get(&def.id.0).copied().unwrap_or(0));
    }
    let known: BTreeSet<u64> = model.classes().iter().map(|def| def.id.0).collect();
    assert!(found.by_id.keys().all(|id| known.contains(id)), "classes out of nowhere");
    for (name, totals) in &expected.by_class {
        assert_eq!(dump::count(summary, name), totals.instances, "{name}");
    }
    found.check_primitive_arrays(expected);
    found.check_object_arrays(expected);
    found.check_roots(expected);

    let records = |tag| written.records_of(tag).len();
    let counts = summary.record_counts();
    let stored = [counts.strings, counts.load_classes, counts.frames, counts.traces, counts.start_threads];
    assert_eq!(stored, [0x01, 0x02, 0x04, 0x05, 0x0A].map(records));
    for tag in [0x03, 0x06, 0x07, 0x0B, 0x0D, 0x0E] {
        assert_eq!(summary.record_count(tag), records(tag), "records {tag:#04x}");
    }
    let strings = written.records.iter().filter(|record| record.tag == 0x01);
    let offsets: BTreeSet<u64> = strings.map(|record| record.at).collect();
    let bodies =
        written.records.iter().filter(|record| matches!(record.tag, 0x0C | 0x1C) && record.body_len > 0);
    let bodies: Vec<_> = bodies.map(|record| (record.at + 9, record.at + 9 + record.body_len)).collect();
    let segments: Vec<_> =
        summary.segments().iter().map(|segment| (segment.start.get(), segment.end.get())).collect();
    assert_eq!(segments, bodies);
    let first = arb.options.first_string;
    let found: BTreeSet<u64> =
        (0..offsets.len() as u64).filter_map(|number| summary.string_offset(first + 8 * number)).collect();
    assert_eq!(found, offsets);
}

fn check_objects(heap: &Heap, objects: &ObjectTable, written: &Written, expected: &Expected) {
    let summary = heap.summary();
    let ids: Vec<u64> = expected.objects.iter().map(|object| object.id).collect();
    assert_eq!(objects.len() as usize, ids.len());
    let found: Vec<u64> =
        (0..objects.len()).map(|index| objects.addresses.id_of(ObjectIndex(index)).unwrap().0).collect();
    assert_eq!(found, ids);
    for (index, object) in (0u32..).zip(&expected.objects) {
        let id = object.id;
        assert_eq!(objects.addresses.index_of(ObjectId(id)), Some(ObjectIndex(index)), "{id:#x}");
        assert_eq!(
            objects.offset(bytes(heap), summary.id_size(), ObjectIndex(index)),
            written.object_at(id),
            "{id:#x}"
        );
        let number = objects.class(ObjectIndex(index)).unwrap();
        let row = summary.class(number).unwrap();
        match object.kind {
            ObjectKind::Class => assert_eq!(Some(number), summary.java_lang_class()),
            ObjectKind::PrimitiveArray => {
                assert_eq!(Some(summary.class_name(row)), object.class_name.as_deref());
            }
            _ => assert_eq!(row.id.get(), object.class.unwrap().0, "{id:#x}"),
        }
        assert_eq!(objects.class_objects().contains(index), object.kind == ObjectKind::Class, "{id:#x}");
        if !ids.contains(&(id + 1)) {
            assert_eq!(objects.addresses.index_of(ObjectId(id + 1)), None);
        }
    }
    for nowhere in [0, 1, 8, 0xDEAD_BEE8, u64::from(u32::MAX), u64::MAX] {
        assert_eq!(objects.addresses.index_of(ObjectId(nowhere)), None, "{nowhere:#x}");
    }
    assert_eq!(objects.addresses.id_of(ObjectIndex(objects.len())), None);
    assert_eq!(objects.class(ObjectIndex(objects.len())), None);
    assert_eq!(objects.offset(bytes(heap), summary.id_size(), ObjectIndex(objects.len())), None);
}

/// The sizes by a given layout are those of the writer's own model of a JVM.
fn check_sizes(summary: &Summary, arb: &ArbDump, model: &HeapModel) {
    let Layout { header, array_header, reference, alignment } = arb.layout;
    let given = LayoutOverride {
        reference_bytes: Some(reference as u8),
        header_bytes: Some(header as u8),
        array_base_bytes: Some(array_header as u8),
        alignment_bytes: Some(alignment as u16),
        packing: Some(Packing::Dense),
    };
    let sizes = Sizes::new(summary, Some(&given));
    // If a superclass is missing, the fields above it are unknown.
    let whole = |def: &&ClassDef| model.chain(def.id).iter().all(|class| model.class_def(*class).dumps > 0);
    for (number, row) in summary.numbered_classes().filter(|(_, row)| row.kind() == ClassKind::Instance) {
        let def = model.classes().iter().find(|def| def.id.0 == row.id.get());
        // The JVM adds fields to java.lang.Class that no dump shows, and the model knows nothing of them.
        let Some(def) = def.filter(whole).filter(|def| def.name != "java.lang.Class") else { continue };
        let size = sizes.instance(number).0;
        // A word of 8 bytes pads what an alignment of 1 does not.
        let wanted = model.instance_bytes(def.id);
        let wanted = if alignment == 1 && !sizes.fit.sizes_stated {
            wanted.next_multiple_of(u64::from(sizes.layout().word_bytes))
        } else {
            wanted
        };
        assert_eq!(size, wanted, "{} {:?}", def.name, def.fields);
    }
    let mut arrays: BTreeMap<&str, u64> = BTreeMap::new();
    for (number, row) in summary.numbered_classes().filter(|(_, row)| row.kind() != ClassKind::Instance) {
        *arrays.entry(summary.class_name(row)).or_default() += sizes.total(number);
    }
    for (name, totals) in model.expected().by_class.iter().filter(|(name, _)| name.ends_with("[]")) {
        assert_eq!(arrays.get(name.as_str()), Some(&totals.bytes), "{name}");
    }
}

proptest! {
    #![proptest_config(crate::kit::strategies::property(160))]

    #[test]
    fn the_reader_finds_what_the_writer_wrote(arb in dump()) {
        let model = arb.model();
        let (written, expected) = (model.write(&arb.options), model.expected());
        let dump = Dump::written(&written);
        let heap = dump.open();
        prop_assert!(heap.is_fresh());
        check_summary(&heap, &arb, &model, &written, &expected);

        let (indexed, graph) = dump.open_graph();
        check_summary(&indexed, &arb, &model, &written, &expected);
        check_objects(&indexed, &graph.objects, &written, &expected);
        // Building the objects measures nothing anew.
        prop_assert_eq!(digest(indexed.summary()), digest(heap.summary()));
    }

    #[test]
    fn an_index_read_back_says_the_same(arb in dump()) {
        let (written, expected) = arb.write();
        let dump = Dump::written(&written);
        let (built, graph) = dump.open_graph();
        let summary = digest(built.summary());
        let all = digest_graph(&graph, bytes(&built), built.summary().id_size());

        let heap = dump.open();
        prop_assert!(built.is_fresh() && !heap.is_fresh());
        prop_assert_eq!(digest(heap.summary()), summary.clone());
        let (heap, graph) = dump.open_graph();
        prop_assert!(!heap.is_fresh());
        prop_assert_eq!(heap.notes(), Vec::<String>::new());
        prop_assert_eq!(digest(heap.summary()), summary);
        prop_assert_eq!(digest_graph(&graph, bytes(&heap), heap.summary().id_size()), all);
        check_objects(&heap, &graph.objects, &written, &expected);
        let reports = Heap::verify_index(&dump.path, &dump.options(), true).unwrap();
        prop_assert!(reports.iter().all(|report| report.state == StageState::Good), "{:?}", reports);
    }

    #[test]
    fn the_number_of_threads_changes_nothing(arb in dump()) {
        let (written, _) = arb.write();
        let mut answers = BTreeSet::new();
        for threads in [1, 4] {
            let dump = Dump::written(&written);
            let (heap, graph) = with_threads(threads, || dump.open_graph());
            let id_size = heap.summary().id_size();
            answers.insert((digest(heap.summary()), digest_graph(&graph, bytes(&heap), id_size)));
        }
        prop_assert_eq!(answers.len(), 1);
    }

    #[test]
    fn a_given_layout_makes_the_sizes_of_a_jvm(arb in dump()) {
        let model = arb.model();
        let dump = Dump::written(&model.write(&arb.options));
        check_sizes(dump.open().summary(), &arb, &model);
    }
}
