//! Collections of real dumps against what the program that was dumped had put into them (`samples/java/HeapZoo.java`).

use crate::kit::dump::whole_dump;
use hprof_cli::{ObjectId, ObjectIndex};
use std::collections::BTreeSet;
use std::path::Path;

use hprof_index::{Heap, ObjectGraph, Options, Quiet};
use hprof_query::objects::collections::{CollectionKind, Collections};
use hprof_query::objects::reader::{Bits, ObjectReader};

/// A heap, opened.
struct Zoo<'a> {
    objects: ObjectReader<'a>,
    heap: &'a Heap,
    graph: &'a ObjectGraph,
}

impl Zoo<'_> {
    fn static_field(&self, name: &str) -> u32 {
        let summary = self.heap.summary();
        let class = summary.classes().iter().find(|class| summary.class_name(class) == "HeapZoo").unwrap();
        let (_, _, id) = summary.statics(class).find(|(field, _, _)| *field == name).unwrap();
        self.graph.objects.addresses.index_of(ObjectId(id)).unwrap().0
    }

    fn class(&self, object: u32) -> String {
        let class =
            self.graph.objects.class(ObjectIndex(object)).and_then(|class| self.heap.summary().class(class));
        self.heap.summary().class_name(class.unwrap()).to_owned()
    }

    fn object(&self, value: Bits) -> u32 {
        self.objects.object(value).unwrap().0
    }

    fn text(&self, value: Bits) -> String {
        self.objects.string(ObjectIndex(self.object(value))).unwrap().text(1000)
    }

    fn integer(&self, value: Bits) -> i64 {
        self.objects.field(ObjectIndex(self.object(value)), "value").unwrap().integer().unwrap()
    }
}

fn with_zoo(dump: &str, test: impl FnOnce(&Zoo<'_>)) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { index_dir: Some(dir.path().to_owned()), ..Options::default() };
    let path = Path::new("samples/jdk").join(dump);
    let (heap, graph) = Heap::open_graph(&path, &options, &Quiet).unwrap();
    let objects = whole_dump(&heap, &graph).objects;
    test(&Zoo { objects, heap: &heap, graph: &graph });
}

#[test]
fn what_the_zoo_keeps_is_there() {
    for dump in [
        "jdk8.hprof.zst",
        "jdk17.hprof.zst",
        "jdk17-nocoops.hprof.zst",
        "jdk25.hprof.zst",
        "jdk25-compact.hprof.zst",
    ] {
        if Path::new("samples/jdk").join(dump).exists() {
            with_zoo(dump, |zoo| keeps(zoo, dump));
        } else {
            assert_ne!(dump, "jdk17.hprof.zst");
        }
    }
}

fn keeps(zoo: &Zoo<'_>, dump: &str) {
    let collections = Collections::new(&zoo.objects);
    let keep = collections.collection(ObjectIndex(zoo.static_field("keep"))).unwrap();
    let kept: Vec<u32> = collections.entries(&keep).map(|entry| zoo.object(entry.value)).collect();
    assert_eq!((keep.kind, keep.size), (CollectionKind::List, Some(kept.len() as u64)), "{dump}");
    assert!(kept.len() > 5_300, "{dump}: {}", kept.len());

    let mut counts = std::collections::BTreeMap::new();
    let mut trees = 0;
    for object in kept {
        let class = zoo.class(object);
        *counts.entry(class.clone()).or_insert(0) += 1;
        let Some(found) = collections.collection(ObjectIndex(object)) else { continue };
        let entries: Vec<_> = collections.entries(&found).collect();
        if let Some(size) = found.size {
            assert_eq!(size, entries.len() as u64, "{dump}: {class}");
        }
        match class.as_str() {
            "java.util.ArrayList" | "java.util.HashMap" | "java.util.ArrayDeque" => {
                assert!(entries.is_empty(), "{dump}: {class}");
            }
            "java.util.LinkedList" => {
                let numbers: Vec<i64> = entries.iter().map(|entry| zoo.integer(entry.value)).collect();
                assert_eq!((found.kind, numbers), (CollectionKind::List, vec![1, 2, 3]), "{dump}");
            }
            "java.util.TreeMap" => {
                let pairs =
                    entries.iter().map(|entry| (zoo.text(entry.key.unwrap()), zoo.integer(entry.value)));
                let expected = (0..5).map(|j| (format!("k{j}"), j * 1000 + trees));
                assert!(pairs.eq(expected), "{dump}");
                trees += 1;
            }
            "java.util.LinkedHashMap" => {
                let entry = entries[0];
                assert_eq!(
                    (zoo.text(entry.key.unwrap()), zoo.integer(entry.value)),
                    ("a".to_owned(), 1),
                    "{dump}"
                );
            }
            "java.util.WeakHashMap" => {
                assert_eq!(zoo.text(entries[0].value), "weak value", "{dump}");
                assert_eq!(zoo.object(entries[0].key.unwrap()), zoo.static_field("keep"), "{dump}");
            }
            "java.util.Optional" => assert_eq!(zoo.text(entries[0].value), "opt", "{dump}"),
            _ => {}
        }
    }
    for class in ["ArrayList", "HashMap", "LinkedList", "TreeMap", "ArrayDeque", "LinkedHashMap"] {
        assert_eq!(counts.get(&format!("java.util.{class}")), Some(&300), "{dump}: {class}");
    }
    assert_eq!((trees, counts.get("java.util.Optional")), (300, Some(&1)), "{dump}");
}

#[test]
fn a_map_of_two_thousand_sessions() {
    for dump in ["jdk8.hprof.zst", "jdk17.hprof.zst", "jdk25-compact.hprof.zst"] {
        with_zoo(dump, |zoo| {
            let collections = Collections::new(&zoo.objects);
            let cache = collections.collection(ObjectIndex(zoo.static_field("SESSION_CACHE"))).unwrap();
            assert_eq!((cache.kind, cache.size), (CollectionKind::Map, Some(2000)), "{dump}");
            let mut keys = BTreeSet::new();
            for entry in collections.entries(&cache) {
                let key = zoo.text(entry.key.unwrap());
                let session = zoo.object(entry.value);
                assert_eq!(zoo.text(zoo.objects.field(ObjectIndex(session), "id").unwrap()), key, "{dump}");
                let attributes = zoo.objects.reference(ObjectIndex(session), "attributes").unwrap();
                let attributes = collections.collection(attributes).unwrap();
                let names: BTreeSet<String> =
                    collections.entries(&attributes).map(|entry| zoo.text(entry.key.unwrap())).collect();
                assert_eq!(names, BTreeSet::from(["locale".to_owned(), "user".to_owned()]), "{dump}");
                keys.insert(key);
            }
            assert_eq!(keys, (0..2000).map(|number| format!("session-{number}")).collect(), "{dump}");
        });
    }
}
