//! Dumps made from text reports: of the agent's own texts, and of the texts that `convert` writes of binary dumps, whose graphs
//! must be those of the binary dumps.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Output;

use crate::kit::dump::Dump;
use crate::kit::process::{Folder, stderr};
use crate::kit::texts::{self, AGENT_BINARIES, AGENT_TEXTS, OTHER_BINARIES, code, sample_path};
use hprof_cli::{ObjectIndex, TreePosition};
use hprof_index::{Heap, ObjectGraph};

/// What a graph has about an object.
#[derive(Debug, PartialEq, Eq)]
struct ObjectFacts {
    class: String,
    shallow_bytes: u64,
    references: BTreeSet<u64>,
    /// Object ID of the immediate dominator; `None` for those at the top, and for unreachable objects.
    dominator: Option<u64>,
    is_reachable: bool,
    /// Number of objects that it dominates.
    dominated: u32,
}

/// Returns what a graph has about each object, by object ID. Class objects have no sizes in texts: theirs are 0 here.
fn objects(heap: &Heap, graph: &ObjectGraph) -> BTreeMap<u64, ObjectFacts> {
    let id = |object: ObjectIndex| graph.objects.addresses.id_of(object).unwrap().0;
    let class_objects = graph.objects.class_objects();
    let facts = |object: ObjectIndex| {
        let class = graph.objects.class(object).and_then(|class| heap.summary().class(class));
        let tree = &graph.tree;
        let position = tree.reachable_position(object);
        let parent = position.and_then(|position| tree.dominator(position));
        let shallow = tree.position(object).map_or(0, |position| tree.shallow_bytes(position));
        ObjectFacts {
            class: class.map_or(String::new(), |class| heap.summary().class_name(class).to_owned()),
            shallow_bytes: if class_objects.contains(object.0) { 0 } else { shallow },
            references: graph.references(object).map(id).collect(),
            dominator: parent.and_then(|parent| tree.object_at(parent)).map(id),
            is_reachable: position.is_some(),
            dominated: position.map_or(0, |position: TreePosition| tree.end(position).0 - position.0),
        }
    };
    ObjectIndex::range(graph.objects.indices()).map(|object| (id(object), facts(object))).collect()
}

fn same_objects(what: &str, text: &BTreeMap<u64, ObjectFacts>, binary: &BTreeMap<u64, ObjectFacts>) {
    assert_eq!(text.keys().collect::<Vec<_>>(), binary.keys().collect::<Vec<_>>(), "{what}: objects");
    for (id, wanted) in binary {
        assert_eq!(&text[id], wanted, "{what}: {id:#x}");
    }
}

/// Compares a binary dump with the dump that is made of its text.
fn there_and_back(name: &str) -> usize {
    let binary = Dump::sample(&sample_path(name));
    let (heap, graph) = binary.open_graph();
    let text = Dump::of(&texts::convert(&heap));
    let (text_heap, text_graph) = text.open_graph();
    assert!(text_heap.summary().is_from_text());
    let (found, wanted) = (objects(&text_heap, &text_graph), objects(&heap, &graph));
    same_objects(name, &found, &wanted);
    let roots = |graph: &ObjectGraph| {
        let rows = graph.roots.rows.iter();
        let mut rows: Vec<(u64, &str)> = rows
            .map(|root| (graph.objects.addresses.id_of(root.object).unwrap().0, root.kind.name()))
            .collect();
        rows.sort_unstable();
        rows
    };
    assert_eq!(roots(&text_graph), roots(&graph), "{name}: roots");
    let bytes = |heap: &Heap| {
        let sizes = hprof_index::layout::sizes::Sizes::new(heap.summary(), None);
        heap.summary().numbered_classes().map(|(number, _)| sizes.total(number)).sum::<u64>()
    };
    assert_eq!(bytes(&text_heap), bytes(&heap), "{name}: bytes");
    wanted.len()
}

#[test]
fn the_graph_of_a_text_is_that_of_its_binary() {
    for name in ["agent/all.hprof.zst", "jdk/jdk17.hprof.zst"] {
        assert!(there_and_back(name) > 5000, "{name}");
    }
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn the_graphs_of_all_texts_are_those_of_their_binaries() {
    let heaps = AGENT_BINARIES
        .iter()
        .chain(&OTHER_BINARIES)
        .filter(|name| !name.contains("cpu-samples") && !name.contains("sites"));
    for name in heaps {
        assert!(there_and_back(name) > 1000, "{name}");
    }
}

/// The lines of a text's HEAP DUMP, each with the object above it. Class objects are those of CLS lines.
fn heap_lines(text: &str) -> BTreeSet<(String, String)> {
    let mut above = String::new();
    let lines = text.lines().skip_while(|line| !line.starts_with("HEAP DUMP BEGIN")).skip(1);
    let lines = lines.take_while(|line| !line.starts_with("HEAP DUMP END"));
    lines
        .map(|line| {
            if !line.starts_with('\t') {
                above = line.split(' ').nth(1).unwrap_or_default().to_owned();
            }
            // The record of such a root has no trace.
            let line = match line {
                line if line.contains("<JNI global ref>") => line.split(", trace=").next().unwrap(),
                // Nor one of a class a name.
                line if line.contains("<system class>") => line.split(", name=").next().unwrap(),
                line => line,
            };
            (above.clone(), line.split_whitespace().collect::<Vec<_>>().join(" "))
        })
        .collect()
}

/// The agent's own texts, converted to binary and to text again: no line of the heap dump is lost, changed or added.
#[test]
fn the_agents_texts_survive_the_way_through_a_binary_dump() {
    let place = Folder::new();
    for name in ["agent/dump.txt.zst", "agent/all-threads.txt.zst"] {
        let dump = place.text("made.hprof");
        let output = place.run(&["convert", sample_path(name).to_str().unwrap(), "-o", &dump]);
        assert_eq!(code(&output), 0, "{name}: {}", stderr(&output));
        assert!(stderr(&output).contains("contains no values"), "{}", stderr(&output));
        let (found, wanted) = (place.convert(&dump, &[]), String::from_utf8(texts::sample(name)).unwrap());
        let (found, wanted) = (heap_lines(&found), heap_lines(&wanted));
        assert!(wanted.len() > 20_000);
        let lost: Vec<_> = wanted.difference(&found).take(5).collect();
        let added: Vec<_> = found.difference(&wanted).take(5).collect();
        assert!(lost.is_empty() && added.is_empty(), "{name}: lost {lost:?}, added {added:?}");
    }
}

/// What the commands about recordings say of a text, they say of the dump made from it.
#[test]
fn recordings_of_texts_survive_the_way_to_a_binary_dump() {
    let place = Folder::new();
    let mut compared = 0;
    for name in AGENT_TEXTS {
        let text = sample_path(name);
        let dump = place.text("made.hprof");
        let output = place.run(&["convert", text.to_str().unwrap(), "-o", &dump, "--quiet"]);
        assert_eq!(code(&output), 0, "{name}: {}", stderr(&output));
        for command in [&["sites"][..], &["traces"], &["cpu"], &["histo"], &["threads", "--started"]] {
            let rows = |file: &str| {
                let more = &command[1..];
                let arguments = [&[command[0], file][..], more, &["--format", "json", "--quiet"]].concat();
                let output = place.run(&arguments);
                (code(&output), json_rows(&output))
            };
            let (wanted, found) = (rows(text.to_str().unwrap()), rows(&dump));
            if wanted.0 == 0 {
                assert_eq!(found, wanted, "{name}: {command:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 20, "{compared}");
}

fn json_rows(output: &Output) -> Vec<serde_json::Value> {
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let mut rows = json["rows"].as_array().cloned().unwrap_or_default();
    // No record has a phase of the JVM.
    for row in rows.iter_mut().filter_map(serde_json::Value::as_object_mut) {
        row.remove("phase");
    }
    // Sites counted over objects: class objects have no size in texts, and are not counted there.
    rows.retain(|row| row["class"] != "java.lang.Class");
    rows
}

/// Commands that need a graph read a text, or say what it lacks.
#[test]
fn commands_read_texts() {
    let place = Folder::new();
    let text = sample_path("agent/dump.txt.zst");
    let text = text.to_str().unwrap();
    for command in [
        &["leaks"][..],
        &["dominators"],
        &["places"],
        &["loaders"],
        &["roots"],
        &["classes"],
        &["retained", "java.util.HashMap"],
        &["instances", "java.lang.Thread"],
        &["refs", "0x5000072e"],
        &["paths-to-root", "java.util.HashMap"],
        &["oql", "select count(s) from java.lang.String s"],
        &["info"],
    ] {
        let output = place.run(&[&[command[0], text], &command[1..], &["--format", "json"]].concat());
        assert!(code(&output) < 2, "{command:?}: {}", stderr(&output));
        assert!(!json_rows(&output).is_empty() || command[0] == "leaks", "{command:?}");
    }
    for command in ["strings", "waste", "secrets"] {
        let output = place.run(&[command, text]);
        assert_eq!(code(&output), 2, "{command}");
        assert!(stderr(&output).contains("no values"), "{}", stderr(&output));
    }
    let info = place.json(&["info", text]);
    assert_eq!(info["rows"][0]["writer"], "text");
    assert_eq!(info["rows"][0]["contents"], "removed");
    assert!(!Path::new("made.hprof").exists());
}

/// Texts whose superclasses form circles, with fields of one name, odd sizes, elements out of order, and lines that lie.
#[test]
fn odd_texts() {
    let text = "JAVA PROFILE 1.0.1, created Sat Nov 21 01:58:24 2026\n--------\n\
        HEAP DUMP BEGIN (7 objects, 999 bytes) Sat Nov 21 01:58:25 2026\n\
        ROOT 10 (kind=<unknown>)\n\
        CLS 1 (name=a.A, trace=0)\n\tsuper\t2\n\
        CLS 2 (name=a.B, trace=0)\n\tsuper\t1\n\
        CLS 3 (name=a.C, trace=0)\n\tsuper\t3\n\tstatic s\t10\n\
        OBJ 10 (sz=17, trace=0, class=a.A@1)\n\tlock\t11\n\tlock\t12\n\
        OBJ 11 (sz=18, trace=0, class=a.A@1)\n\
        OBJ 12 (sz=5000000000, trace=0, class=a.Unknown@99)\n\tx\t11\n\
        ARR 13 (sz=3, trace=0, nelems=2, elem type=a.A)\n\t[5]\t10\n\t[0]\t11\n\t[5]\t12\n\
        ARR 14 (sz=12, trace=0, nelems=0, elem type=char [])\n\
        ARR 15 (sz=12, trace=0, nelems=4, elem type=char)\n\
        HEAP DUMP END\n";
    let dump = Dump::of(text.as_bytes());
    let (heap, graph) = dump.open_graph();
    let objects = objects(&heap, &graph);
    let sizes: Vec<(u64, &str, u64)> =
        objects.iter().map(|(id, facts)| (*id, facts.class.as_str(), facts.shallow_bytes)).collect();
    assert_eq!(
        sizes,
        [
            (1, "java.lang.Class", 0),
            (2, "java.lang.Class", 0),
            (3, "java.lang.Class", 0),
            (0x10, "a.A", 17),
            (0x11, "a.A", 18),
            (0x12, "a.Unknown", 5_000_000_000),
            (0x13, "a.A[]", 3),
            (0x14, "char[]", 12),
            (0x15, "char[]", 12),
            (0x99, "java.lang.Class", 0),
        ]
    );
    assert_eq!(objects[&0x10].references, BTreeSet::from([0x11, 0x12]));
    assert_eq!(objects[&0x12].references, BTreeSet::from([0x11]));
    assert_eq!(objects[&0x13].references, BTreeSet::from([0x10, 0x11, 0x12]));
    assert!(objects[&0x3].references.contains(&0x10));
    assert!(objects[&0x12].is_reachable && !objects[&0x13].is_reachable);
}

/// Lines of other threads within entries, heap dumps without contents, and IDs that a class without a line has.
#[test]
fn lines_between_lines() {
    let text = "JAVA PROFILE 1.0.1, created Sat Nov 21 01:58:24 2026\n--------\n\
        HEAP DUMP BEGIN (0 objects, 0 bytes) Sat Nov 21 01:58:24 2026\nHEAP DUMP END\n\
        HEAP DUMP BEGIN (7 objects, 999 bytes) Sat Nov 21 01:58:25 2026\n\
        ROOT 1000 (kind=<unknown>)\n\
        CLS 10 (name=a.A, trace=0)\n\
        CLS 30 (name=a.B, trace=0)\nTHREAD END (id = 1)\n\tsuper\t10\n\
        OBJ 1000 (sz=112, trace=0, class=a.B@30)\nTHREAD END (id = 2)\n\n\tf\t2000\n\
        OBJ 2000 (sz=77, trace=0, class=a.A@10)\n\
        OBJ 2000 (sz=77, trace=0, class=a.A@10)\n\
        OBJ 3000 (sz=5, trace=0, class=a.C@3008)\n\
        ARR 3001 (sz=9, trace=0, nelems=0, elem type=a.D@4)\n\
        ARR 3002 (sz=11, trace=0, nelems=1, elem type=a.A[]@10)\n\
        HEAP DUMP END\n";
    let dump = Dump::of(text.as_bytes());
    let (heap, graph) = dump.open_graph();
    let objects = objects(&heap, &graph);
    let of = |id: u64| (objects[&id].class.as_str(), objects[&id].shallow_bytes);
    assert_eq!(of(0x1000), ("a.B", 112));
    assert_eq!(objects[&0x1000].references, BTreeSet::from([0x2000]));
    assert!(objects[&0x30].references.contains(&0x10), "{:?}", objects[&0x30]);
    assert!(objects[&0x2000].is_reachable);
    assert_eq!([of(0x3000), of(0x3001), of(0x3002)], [("a.C", 5), ("a.D[]", 9), ("a.A[]", 11)]);
    // The sums by class are those of the objects.
    let sizes = hprof_index::layout::sizes::Sizes::new(heap.summary(), None);
    for (number, class) in heap.summary().numbered_classes() {
        let name = heap.summary().class_name(class);
        let sum: u64 =
            objects.values().filter(|facts| facts.class == name).map(|facts| facts.shallow_bytes).sum();
        assert_eq!(sizes.total(number), sum, "{name}");
    }
}

/// A chain of classes and instances that would have far more fields than the text has lines.
#[test]
fn a_text_that_would_fill_the_disk_is_refused() {
    let mut text = "HEAP DUMP BEGIN (1 objects, 1 bytes) Sat Nov 21 01:58:25 2026\n".to_owned();
    for class in 1..3000 {
        text += &format!("CLS {class:x} (name=a.C{class}, trace=0)\n\tsuper\t{:x}\n", class - 1);
        text += &format!(
            "OBJ {:x} (sz=8, trace=0, class=a.C{class}@{class:x})\n\tf{class}\t1\n",
            0x10000 + class
        );
    }
    text += "HEAP DUMP END\n";
    let error = Dump::of(text.as_bytes()).try_open_graph().unwrap_err().to_string();
    assert!(error.contains("would have") && error.contains("fields"), "{error}");
}
