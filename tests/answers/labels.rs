//! Labels of collections, class loaders and values of ThreadLocals, compared with the contents of the objects.

use std::collections::BTreeMap;
use std::path::Path;

use hprof_cli::{ObjectId, ObjectIndex};
use hprof_index::{Heap, ObjectGraph};
use hprof_query::objects::collections::Collections;
use hprof_query::objects::label::{Labels, MAX_CHARS};

use crate::kit::dump::{Dump, whole_dump};

fn with_sample(name: &str, test: impl FnOnce(&Dump, &Heap, &ObjectGraph, &Labels<'_>)) {
    let dump = Dump::sample(&Path::new("samples").join(name));
    let (heap, graph) = dump.open_graph();
    let labels = Labels::new(&whole_dump(&heap, &graph));
    test(&dump, &heap, &graph, &labels);
}

fn class_name(heap: &Heap, graph: &ObjectGraph, object: ObjectIndex) -> String {
    let class = graph.objects.class(object).and_then(|class| heap.summary().class(class));
    class.map(|class| heap.summary().class_name(class).to_owned()).unwrap_or_default()
}

fn static_field(heap: &Heap, graph: &ObjectGraph, class: &str, field: &str) -> ObjectIndex {
    let summary = heap.summary();
    let class = summary.classes().iter().find(|row| summary.class_name(row) == class).unwrap();
    let (_, _, id) = summary.statics(class).find(|(name, ..)| *name == field).unwrap();
    graph.objects.addresses.index_of(ObjectId(id)).unwrap()
}

/// `size=1,234` as a number.
fn size(label: &str) -> Option<u64> {
    label.strip_prefix("size=")?.replace(',', "").parse().ok()
}

#[test]
fn collections_say_how_many_elements_they_have() {
    for sample in ["jdk/jdk8.hprof.zst", "jdk/jdk17.hprof.zst", "jdk/jdk25.hprof.zst"] {
        with_sample(sample, |_, heap, graph, labels| {
            let objects = whole_dump(heap, graph).objects;
            let collections = Collections::new(&objects);
            let mut seen = BTreeMap::<String, u64>::new();
            for object in ObjectIndex::range(graph.objects.indices()) {
                let Some(collection) = collections.collection(object) else { continue };
                let Some(size) = labels.label(object).as_deref().and_then(size) else { continue };
                // The elements, counted.
                let entries = collections.entries(&collection).count() as u64;
                let class = class_name(heap, graph, object);
                // Entries whose keys are gone are still counted.
                if !class.contains("Weak") && !class.contains("ThreadLocalMap") {
                    assert_eq!(size, entries, "{sample}: {class}");
                }
                *seen.entry(class).or_default() += 1;
            }
            assert!(seen.contains_key("java.util.HashMap") && seen.contains_key("java.util.ArrayList"));
            for class in [
                "ArrayDeque",
                "HashSet",
                "LinkedList",
                "TreeMap",
                "concurrent.ConcurrentHashMap",
                "concurrent.LinkedBlockingQueue",
            ] {
                let class = format!("java.util.{class}");
                let is_of = |object: ObjectIndex| class_name(heap, graph, object) == class;
                let is_there = ObjectIndex::range(graph.objects.indices()).any(is_of);
                assert_eq!(is_there, seen.contains_key(&class), "{sample}: {class} in {seen:?}");
            }
        });
    }
}

#[test]
fn planted_sizes_are_where_objects_are_named() {
    for (sample, class, label) in [
        ("leaks/s1.hprof.zst", "java.util.concurrent.ConcurrentHashMap", "size=9,000"),
        ("leaks/s3.hprof.zst", "java.util.ArrayList", "size=40"),
        ("leaks/s4.hprof.zst", "java.util.concurrent.LinkedBlockingQueue", "size=60,000"),
        ("leaks/s5-static.hprof.zst", "java.util.HashMap", "size=32,328"),
    ] {
        let dump = Dump::sample(&Path::new("samples").join(sample));
        let run = |format: &str| {
            let output = dump.run(&["instances", class, "--top", "3", "--format", format]);
            String::from_utf8(output.stdout).unwrap()
        };
        let json: serde_json::Value = serde_json::from_str(&run("json")).unwrap();
        let rows = json["rows"].as_array().unwrap();
        assert!(rows.iter().any(|row| row["label"] == label), "{sample}");
        // Not a text of the program, so without quotes.
        assert!(run("table").contains(&format!("{class} {label}\n")), "{sample}: {}", run("table"));
    }
}

#[test]
fn class_loaders_have_names() {
    let apps = [
        ("jdk/jdk8.hprof.zst", "sun.misc.Launcher$AppClassLoader", "app"),
        ("jdk/jdk8.hprof.zst", "sun.misc.Launcher$ExtClassLoader", "ext"),
        ("jdk/jdk17.hprof.zst", "jdk.internal.loader.ClassLoaders$AppClassLoader", "app"),
        ("jdk/jdk17.hprof.zst", "jdk.internal.loader.ClassLoaders$PlatformClassLoader", "platform"),
    ];
    for (sample, class, name) in apps {
        with_sample(sample, |_, heap, graph, labels| {
            let mut all = ObjectIndex::range(graph.objects.indices());
            let loader = all.find(|object| class_name(heap, graph, *object) == class).unwrap();
            assert_eq!(labels.label(loader).as_deref(), Some(name), "{sample}");
        });
    }
    with_sample("leaks/s3.hprof.zst", |_, heap, graph, labels| {
        let all = ObjectIndex::range(graph.objects.indices());
        let loaders = all.filter(|object| class_name(heap, graph, *object) == "container.WebappLoader");
        let mut names: Vec<String> = loaders.map(|loader| labels.label(loader).unwrap()).collect();
        let mut planted: Vec<String> = (0..40).map(|number| format!("webapp-{number}")).collect();
        names.sort();
        planted.sort();
        assert_eq!(names, planted);
    });
}

#[test]
fn the_value_of_a_thread_local_says_whose_it_is() {
    for sample in ["jdk/jdk8.hprof.zst", "jdk/jdk17.hprof.zst", "jdk/jdk25.hprof.zst"] {
        with_sample(sample, |dump, heap, graph, labels| {
            let key = static_field(heap, graph, "HeapZoo", "LOCAL");
            assert_eq!(labels.label(key).as_deref(), Some("of HeapZoo.LOCAL"), "{sample}");
            let entry = "java.lang.ThreadLocal$ThreadLocalMap$Entry";
            let objects = whole_dump(heap, graph).objects;
            let entries = graph.referrers(key).filter(|from| class_name(heap, graph, *from) == entry);
            let entries: Vec<ObjectIndex> = entries.collect();
            assert!(!entries.is_empty(), "{sample}");
            for entry in &entries {
                assert_eq!(labels.label(*entry).as_deref(), Some("of HeapZoo.LOCAL"), "{sample}");
            }
            // In paths to the value.
            let value = entries.iter().find_map(|entry| objects.reference(*entry, "value")).unwrap();
            let id = format!("{:#x}", graph.objects.addresses.id_of(value).unwrap());
            let output = dump.run(&["paths-to-root", &id]);
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(text.contains(" of HeapZoo.LOCAL\n"), "{sample}: {text}");
        });
    }
}

#[test]
fn labels_are_short() {
    with_sample("jdk/jdk17.hprof.zst", |_, _, graph, labels| {
        let mut labelled = 0;
        for label in ObjectIndex::range(graph.objects.indices()).filter_map(|object| labels.label(object)) {
            assert!(label.chars().count() <= MAX_CHARS);
            labelled += 1;
        }
        assert!(labelled > 10_000, "{labelled}");
    });
}
