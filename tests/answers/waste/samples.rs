//! Real dumps: what is wasted in them against naive readings, and what must be so in every answer.

use std::collections::{BTreeMap, HashMap, HashSet};

use hprof_index::layout::sizes::Sizes;
use hprof_index::{Heap, ObjectGraph};
use hprof_parser::heap::{self, HeapVisitor, ObjectArray, PrimitiveArray};
use serde_json::Value;

use crate::kit::dump::{self, Dump, whole_dump};
use crate::kit::texts::sample_path;

use super::Waste;

const SAMPLES: &[&str] = &[
    "jdk/jdk8.hprof.zst",
    "jdk/jdk11.hprof.zst",
    "jdk/jdk17.hprof.zst",
    "jdk/jdk17-nocoops.hprof.zst",
    "jdk/jdk25-compact.hprof.zst",
    "public/visualvm-small_heap.hprof.zst",
    "public/android-leak_service_binder.hprof.zst",
    "agent/all.hprof.zst",
];

fn sample(name: &str) -> Dump {
    Dump::sample(&sample_path(name))
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn sums_are_sums_and_no_kind_adds_more_than_it_frees() {
    for name in SAMPLES {
        let dump = sample(name);
        let waste = Waste::of(&dump);
        assert!(!waste.rows.is_empty(), "{name}");
        let mut total = 0;
        let mut before = u64::MAX;
        for row in &waste.rows {
            let kind = row["kind"].as_str().unwrap();
            let (count, bytes) = super::sum(row);
            let added = row["added_bytes"].as_u64().unwrap();
            assert!(added <= bytes && bytes <= before && count > 0, "{name} {row}");
            (total, before) = (total + added, bytes);
            let fields = row["fields"].as_array().unwrap();
            assert_eq!(row["field_count"].as_u64().unwrap(), fields.len() as u64);
            let of_fields = fields.iter().map(super::sum).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
            match kind {
                "unreachable" => assert!(fields.is_empty(), "{name}"),
                // An instance has several fields.
                "constant_fields" => assert_eq!(of_fields.1, bytes, "{name}"),
                _ => assert_eq!(of_fields, (count, bytes), "{name} {kind}"),
            }
        }
        assert_eq!(waste.total["wasted_bytes"].as_u64(), Some(total), "{name}");
        assert!(total <= waste.total["shallow_bytes"].as_u64().unwrap(), "{name}");
        // One thread says what several say, and a kind alone what it says beside others.
        let alone = dump.run(&["waste", "-q", "--format", "json", "--threads", "1"]);
        let several = dump.run(&["waste", "-q", "--format", "json", "--threads", "3"]);
        assert!(alone.stdout == several.stdout, "{name}");
        let kind = waste.rows[0]["kind"].as_str().unwrap();
        let one = Waste::with(&dump, &["--kind", kind]);
        assert_eq!((one.rows.len(), one.sum(kind)), (1, waste.sum(kind)), "{name}");
        assert_eq!(one.added(kind), one.sum(kind).1, "{name} {kind}");
        // CSV has a row for each kind and field.
        let csv = String::from_utf8(dump.run(&["waste", "-q", "--format", "csv"]).stdout).unwrap();
        let rows: usize = waste.rows.iter().map(|row| row["fields"].as_array().unwrap().len().max(1)).sum();
        let mut lines = csv.lines();
        assert_eq!(lines.next(), Some("kind,field,is_static,loader_object,objects,wasted_bytes"), "{name}");
        assert_eq!(lines.count(), rows, "{name}");
    }
}

#[test]
fn strings_say_the_same_where_no_array_is_anothers() {
    for name in ["jdk/jdk17.hprof.zst", "jdk/jdk25-compact.hprof.zst", "public/visualvm-small_heap.hprof.zst"]
    {
        let dump = sample(name);
        let answer = dump.run(&["strings", "-q", "--duplicates", "--live", "--top", "0", "--format", "json"]);
        let strings: Value = serde_json::from_slice(&answer.stdout).unwrap();
        let rows = strings["rows"].as_array().unwrap();
        let copies: u64 = rows.iter().map(|row| row["strings"].as_u64().unwrap() - 1).sum();
        let bytes: u64 = rows.iter().map(|row| row["wasted_bytes"].as_u64().unwrap()).sum();
        let (count, wasted) = Waste::of(&dump).sum("duplicate_strings");
        assert_eq!(count, copies, "{name}");
        // Arrays that something else holds too stay.
        assert!(wasted <= bytes && wasted * 100 >= bytes * 99, "{name}: {wasted} of {bytes}");
    }
}

/// All arrays, by object ID.
#[derive(Default)]
struct Arrays {
    primitive: BTreeMap<u64, (u8, Vec<u8>, u32)>,
    objects: BTreeMap<u64, (u64, u32)>,
}

impl<'a> HeapVisitor<'a> for Arrays {
    fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
        let elements = record.elements.unwrap_or_default().to_vec();
        self.primitive.insert(record.id.0, (record.element as u8, elements, record.length));
    }
    fn object_array(&mut self, record: ObjectArray<'a>) {
        self.objects.insert(record.id.0, (record.class.0, record.length));
    }
}

/// All arrays of a dump, without those that are unreachable.
fn arrays(heap: &Heap, graph: &ObjectGraph) -> Arrays {
    let mut arrays = Arrays::default();
    for segment in heap.summary().segments() {
        let range = segment.start.get() as usize..segment.end.get() as usize;
        heap::walk(
            dump::bytes(heap),
            heap.summary().id_size(),
            range.start,
            range.end,
            range.end,
            &mut arrays,
        );
    }
    let is_reachable = |id: &u64| {
        let object = graph.objects.addresses.index_of(hprof_cli::ObjectId(*id)).unwrap();
        graph.tree.reachable_position(object).is_some()
    };
    arrays.primitive.retain(|id, _| is_reachable(id));
    arrays.objects.retain(|id, _| is_reachable(id));
    arrays
}

/// The arrays that `value` of Strings refers to.
fn of_strings(heap: &Heap, graph: &ObjectGraph) -> HashSet<u64> {
    let summary = heap.summary();
    let objects = whole_dump(heap, graph).objects;
    let all = hprof_cli::ObjectIndex::range(graph.objects.indices());
    let is_string = |object: &hprof_cli::ObjectIndex| {
        let class = graph.objects.class(*object).and_then(|class| summary.class(class));
        class.is_some_and(|class| summary.class_name(class) == "java.lang.String")
            && graph.tree.reachable_position(*object).is_some()
    };
    let value = |object| Some(objects.field(object, "value")?.reference()?.0);
    all.filter(is_string).filter_map(value).collect()
}

#[test]
fn arrays_against_a_naive_reading() {
    for name in ["jdk/jdk17.hprof.zst", "jdk/jdk8.hprof.zst", "public/visualvm-small_heap.hprof.zst"] {
        let dump = sample(name);
        let (heap, graph) = dump.open_graph();
        let arrays = arrays(&heap, &graph);
        let of_strings = of_strings(&heap, &graph);
        let sizes = Sizes::new(heap.summary(), None);
        // Locks of classes that are not initialized yet, and what the JVM keeps beside static fields.
        let summary = heap.summary();
        let statics = summary.classes().iter().flat_map(|class| summary.statics(class));
        let of_jvm = statics.filter(|(name, ..)| name.starts_with('<') || *name == "init_lock");
        let of_jvm: HashSet<u64> = of_jvm.map(|(_, _, value)| value).collect();
        let size = |element: u8, length: u32| {
            let element = hprof_values::BasicType::from_code(element).unwrap();
            sizes.layout().array_size(element, length.into())
        };
        let (mut equal, mut constant) = ((0, 0), (0, 0));
        let mut seen: HashSet<(u8, &[u8])> = HashSet::new();
        let mut empty: HashMap<u64, u64> = HashMap::new();
        for (id, (element, bytes, length)) in &arrays.primitive {
            if *length == 0 && !of_jvm.contains(id) {
                *empty.entry((*element).into()).or_default() += 1;
            }
            if of_strings.contains(id) || *length == 0 {
                continue;
            }
            let width = bytes.len() / *length as usize;
            if !seen.insert((*element, bytes)) {
                equal = (equal.0 + 1, equal.1 + size(*element, *length));
            }
            if *length > 1 && bytes.chunks(width).all(|chunk| chunk == &bytes[..width]) {
                constant = (constant.0 + 1, constant.1 + size(*element, *length));
            }
        }
        for (class, length) in arrays.objects.values() {
            if *length == 0 {
                *empty.entry(class + 1000).or_default() += 1;
            }
        }
        let waste = Waste::of(&dump);
        assert_eq!(waste.sum("duplicate_arrays"), equal, "{name}");
        assert_eq!(waste.sum("constant_arrays"), constant, "{name}");
        let empty: u64 = empty.values().map(|count| count - 1).sum();
        assert_eq!(waste.sum("zero_length_arrays").0, empty, "{name}");
        assert!(equal.0 > 0 && empty > 0, "{name}: the test is to tell");
    }
}
