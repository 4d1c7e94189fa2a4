//! Dominators, retained sizes, roots and labels of real dumps, against a naive reading of the same dumps that knows no
//! dominator tree: it decodes every reference and walks.

use hprof_cli::ObjectIndex;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::process::Output;

use crate::kit::dump::{Dump, whole_dump};
use crate::kit::portion;
use crate::kit::texts::sample_path as sample;
use crate::naive::Naive;
use hprof_index::{Heap, ObjectGraph};
use hprof_query::objects::label::{Labels, MAX_CHARS};
use hprof_values::RootKind;
use hprof_writer::{Elements, HeapModel, ObjectId, Options, Type, Value};

/// Dumps of several writers, layouts and shapes of heap.
const SAMPLES: &[&str] = &[
    "jdk/jdk17.hprof.zst",
    "jdk/jdk8.hprof.zst",
    "jdk/jdk25-compact.hprof.zst",
    "public/maven-jdk8.hprof.zst",
    "public/android-leak_service_binder.hprof.zst",
    "agent/all.hprof.zst",
];

fn stdout(output: &Output) -> String {
    assert!(output.stderr.is_empty() || output.status.code() != Some(2), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

/// The rows of a CSV answer, each by column.
fn csv_rows(dump: &Dump, arguments: &[&str]) -> Vec<BTreeMap<String, String>> {
    let mut arguments = arguments.to_vec();
    arguments.extend(["--format", "csv"]);
    let text = stdout(&dump.run(&arguments));
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(|row| row.unwrap()).collect()
}

fn json(dump: &Dump, arguments: &[&str]) -> serde_json::Value {
    let mut arguments = arguments.to_vec();
    arguments.extend(["--format", "json"]);
    serde_json::from_str(&stdout(&dump.run(&arguments))).unwrap()
}

fn id(text: &str) -> u64 {
    u64::from_str_radix(text.strip_prefix("0x").unwrap(), 16).unwrap()
}

/// An object of `dominators --all`.
struct Each {
    id: u64,
    class: String,
    shallow: u64,
    retained: u64,
    dominator: Option<u64>,
}

fn all(dump: &Dump) -> Vec<Each> {
    let rows = csv_rows(dump, &["dominators", "--all"]);
    let each = |row: &BTreeMap<String, String>| Each {
        id: id(&row["object"]),
        class: row["class"].clone(),
        shallow: row["shallow_bytes"].parse().unwrap(),
        retained: row["retained_bytes"].parse().unwrap(),
        dominator: Some(row["dominator"].as_str()).filter(|text| *text != "root").map(id),
    };
    rows.iter().map(each).collect()
}

/// An opened sample.
pub struct Sample {
    pub dump: Dump,
    pub heap: Heap,
    pub graph: ObjectGraph,
}

impl Sample {
    pub fn open(name: &str) -> Self {
        let dump = Dump::sample(&sample(name));
        let (heap, graph) = dump.open_graph();
        Self { dump, heap, graph }
    }
}

/// Some numbers below a limit, the same in every run.
fn picks(below: usize, count: usize) -> Vec<usize> {
    let mut state = 7u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize
    };
    (0..count).map(|_| random() % below).collect()
}

#[test]
fn retained_sizes_are_what_a_walk_without_the_object_misses() {
    for name in portion::samples(SAMPLES) {
        let Sample { dump, heap, graph } = Sample::open(name);
        let naive = Naive::read(&heap);
        let rows = all(&dump);
        let sizes: HashMap<u64, u64> = rows.iter().map(|row| (row.id, row.shallow)).collect();

        let reached = naive.reached(&HashSet::new());
        let ids: HashSet<u64> =
            naive.ids.iter().zip(&reached).filter(|(_, reached)| **reached).map(|(id, _)| *id).collect();
        assert_eq!(ids.len(), rows.len(), "{name}: reachable objects");
        assert!(rows.iter().all(|row| ids.contains(&row.id)), "{name}");
        assert_eq!(
            (graph.objects.len() as usize, graph.tree.reachable() as usize),
            (naive.ids.len(), ids.len())
        );

        // Big ones, where most can be wrong, and any.
        let mut by_size: Vec<usize> = (0..rows.len()).collect();
        by_size.sort_by_key(|row| std::cmp::Reverse(rows[*row].retained));
        by_size.truncate(12);
        for at in by_size.into_iter().chain(picks(rows.len(), 24)) {
            let row = &rows[at];
            let (_, bytes) = naive.retained(&HashSet::from([row.id]), &sizes);
            assert_eq!(row.retained, bytes, "{name}: {:#x} {}", row.id, row.class);
        }

        // Sets: all of a class, some objects at random, an object with one that it dominates, and two that have a
        // dominator in common.
        let some: Vec<String> =
            picks(rows.len(), 40).iter().map(|at| format!("{:#x}", rows[*at].id)).collect();
        let nested = rows.iter().find(|row| row.dominator.is_some()).unwrap();
        let pair = [nested.id, nested.dominator.unwrap()].map(|id| format!("{id:#x}"));
        let siblings =
            rows.windows(2).find(|two| two[0].dominator.is_some() && two[0].dominator == two[1].dominator);
        let siblings: Vec<String> = siblings.unwrap().iter().map(|row| format!("{:#x}", row.id)).collect();
        let mut sets: Vec<Vec<String>> = vec![some, pair.to_vec(), siblings];
        sets.extend(
            ["java.lang.String", "java.lang.Class", "**HashMap*", "char[]"].map(|one| vec![one.to_owned()]),
        );
        for set in sets {
            let arguments: Vec<&str> =
                std::iter::once("retained").chain(set.iter().map(String::as_str)).collect();
            let json = json(&dump, &arguments);
            let total = &json["total"];
            let selected: HashSet<u64> = match set.first() {
                Some(first) if first.starts_with("0x") => set.iter().map(|text| id(text)).collect(),
                pattern => {
                    let pattern =
                        pattern.unwrap().parse::<hprof_query::naming::pattern::ClassPattern>().unwrap();
                    rows.iter().filter(|row| pattern.matches(&row.class)).map(|row| row.id).collect()
                }
            };
            let (objects, bytes) = naive.retained(&selected, &sizes);
            let figure = |key: &str| total[key].as_u64().unwrap();
            assert_eq!(
                (figure("retained_objects"), figure("retained_bytes")),
                (objects, bytes),
                "{name} {set:?}"
            );
            let reachable = figure("objects") - figure("unreachable_objects");
            assert_eq!(reachable, selected.len() as u64, "{name} {set:?}");
        }
    }
}

#[test]
fn the_tree_adds_up() {
    for name in portion::samples(SAMPLES) {
        let Sample { dump, graph, .. } = Sample::open(name);
        let tree = &graph.tree;
        let rows = all(&dump);
        let places: HashMap<u64, usize> = rows.iter().map(|row| row.id).zip(0..).collect();
        assert_eq!(places.len(), rows.len(), "{name}: each object once");
        let mut sums: Vec<u64> = rows.iter().map(|row| row.shallow).collect();
        let mut children: HashMap<Option<u64>, Vec<&Each>> = HashMap::new();
        // In preorder what is dominated comes after what dominates it.
        for (at, row) in rows.iter().enumerate().rev() {
            assert_eq!(row.retained, sums[at], "{name}: {:#x}", row.id);
            if let Some(dominator) = row.dominator {
                let parent = places[&dominator];
                assert!(parent < at, "{name}");
                sums[parent] += sums[at];
            }
        }
        for row in &rows {
            children.entry(row.dominator).or_default().push(row);
        }
        for siblings in children.values() {
            assert!(siblings.is_sorted_by_key(|row| std::cmp::Reverse(row.retained)), "{name}");
        }
        let top: u64 = children[&None].iter().map(|row| row.retained).sum();
        assert_eq!((top, top), (tree.reachable_bytes(), rows.iter().map(|row| row.shallow).sum()), "{name}");

        // The listing says the same of its part.
        let listed = csv_rows(&dump, &["dominators", "--depth", "3", "--top", "4"]);
        let mut levels = vec![(None, 0)];
        let mut expected = Vec::new();
        while let Some((parent, depth)) = levels.pop() {
            if let Some(parent) = parent {
                expected.push((parent, depth - 1));
            }
            if depth < 3 {
                let below = children.get(&parent).into_iter().flatten().take(4);
                let below: Vec<_> = below.map(|row| (Some(row.id), depth + 1)).collect();
                levels.extend(below.into_iter().rev());
            }
        }
        assert_eq!(listed.len(), expected.len(), "{name}");
        for (row, (object, depth)) in listed.iter().zip(expected) {
            let each = &rows[places[&object]];
            let dominated = children.get(&Some(object)).map_or(0, Vec::len);
            assert_eq!(id(&row["object"]), object, "{name}");
            assert_eq!(row["depth"], depth.to_string(), "{name}");
            assert_eq!(row["retained_bytes"], each.retained.to_string(), "{name}");
            assert_eq!(row["shallow_bytes"], each.shallow.to_string(), "{name}");
            assert_eq!(row["dominated"], dominated.to_string(), "{name}");
        }

        // So does the part below one object, and its sum by class.
        let holder = children[&None].iter().max_by_key(|row| children.get(&Some(row.id)).map_or(0, Vec::len));
        let object = format!("{:#x}", holder.unwrap().id);
        let below = csv_rows(&dump, &["dominators", "--of", &object]);
        let own = &children[&Some(holder.unwrap().id)];
        assert_eq!(below.len(), own.len() + 1, "{name}");
        assert!(below.iter().skip(1).zip(own).all(|(row, own)| id(&row["object"]) == own.id), "{name}");
        for (of, expected) in [(Some(object.as_str()), own), (None, &children[&None])] {
            for key in ["class", "package", "loader"] {
                let mut arguments = vec!["dominators", "--group-by", key];
                arguments.extend(of.map(|of| ["--of", of]).into_iter().flatten());
                let groups = csv_rows(&dump, &arguments);
                let sum =
                    |column: &str| groups.iter().map(|row| row[column].parse::<u64>().unwrap()).sum::<u64>();
                assert_eq!(sum("objects"), expected.len() as u64, "{name} {key}");
                let bytes: u64 = expected.iter().map(|row| row.retained).sum();
                assert_eq!(sum("retained_bytes"), bytes, "{name} {key}");
                let shallow: u64 = expected.iter().map(|row| row.shallow).sum();
                assert_eq!(sum("shallow_bytes"), shallow, "{name} {key}");
            }
        }
    }
}

#[test]
fn histograms_of_the_graph_agree_with_its_objects() {
    for name in portion::samples(SAMPLES) {
        let Sample { dump, .. } = Sample::open(name);
        let rows = all(&dump);
        let of: HashMap<u64, &Each> = rows.iter().map(|row| (row.id, row)).collect();
        let mut live: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        let mut retained: BTreeMap<&str, u64> = BTreeMap::new();
        for row in &rows {
            let sums = live.entry(&row.class).or_default();
            sums.0 += 1;
            sums.1 += row.shallow;
            let above = std::iter::successors(row.dominator, |id| of[id].dominator);
            if !above.take(rows.len()).any(|id| of[&id].class == row.class) {
                *retained.entry(&row.class).or_default() += row.retained;
            }
        }
        let histogram = csv_rows(&dump, &["histo", "--live", "--retained"]);
        let mut names: BTreeMap<&str, u64> = BTreeMap::new();
        for row in &histogram {
            *names.entry(&row["class"]).or_default() += 1;
        }
        assert_eq!(names.len(), live.len(), "{name}");
        for row in &histogram {
            let class = row["class"].as_str();
            // Classes of the same name from several loaders are several rows.
            if names[class] == 1 {
                let number = |column: &str| row[column].parse::<u64>().unwrap();
                assert_eq!((number("instances"), number("shallow_bytes")), live[class], "{name} {class}");
                assert_eq!(number("retained_bytes"), retained[class], "{name} {class}");
            }
        }
        // Reachable and unreachable objects together are all.
        type Table = BTreeMap<(String, String), (u64, u64)>;
        let table = |arguments: &[&str]| -> Table {
            let mut table = Table::new();
            for row in csv_rows(&dump, arguments) {
                let sums = table.entry((row["class"].clone(), row["loader"].clone())).or_default();
                sums.0 += row["instances"].parse::<u64>().unwrap();
                sums.1 += row["shallow_bytes"].parse::<u64>().unwrap();
            }
            table
        };
        let mut together = table(&["histo", "--live"]);
        for (key, (instances, bytes)) in table(&["histo", "--unreachable"]) {
            let sums = together.entry(key).or_default();
            *sums = (sums.0 + instances, sums.1 + bytes);
        }
        assert_eq!(together, table(&["histo"]), "{name}");
        // A package retains what its classes do, and what they share; --live changes nothing of it.
        let packages = csv_rows(&dump, &["histo", "--retained", "--group-by", "package", "java.util.**"]);
        let most = packages.iter().map(|row| row["retained_bytes"].parse::<u64>().unwrap()).max().unwrap();
        let classes = csv_rows(&dump, &["histo", "--retained", "java.util.*"]);
        assert!(classes.iter().all(|row| row["retained_bytes"].parse::<u64>().unwrap() <= most), "{name}");
    }
}

#[test]
fn roots_are_listed_with_what_they_hold() {
    for name in portion::samples(SAMPLES) {
        let Sample { dump, heap, .. } = Sample::open(name);
        let of: HashMap<u64, Each> = all(&dump).into_iter().map(|row| (row.id, row)).collect();
        let json = json(&dump, &["roots"]);
        let rows = json["rows"].as_array().unwrap();
        let mut times = 0;
        for row in rows {
            let each = &of[&id(row["object"].as_str().unwrap())];
            assert_eq!(row["retained_bytes"], each.retained, "{name}");
            assert_eq!(row["class"], each.class, "{name}");
            times += if row["is_assumed"] == false { row["times"].as_u64().unwrap() } else { 0 };
        }
        let missing = json["missing_roots"].as_u64().unwrap();
        let counted = heap.summary().root_counts();
        let counted = counted.iter().filter(|(kind, _)| *kind != RootKind::Unreachable);
        let null = heap.summary().roots().iter().filter(|root| root.id.get() == 0).count() as u64;
        assert_eq!(times + missing + null, counted.map(|(_, count)| count).sum::<u64>(), "{name}");
        assert!(
            rows.is_sorted_by_key(|row| std::cmp::Reverse(row["retained_bytes"].as_u64().unwrap())),
            "{name}"
        );
        let kinds: u64 = json["counts_by_kind"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["root_count"].as_u64().unwrap())
            .sum();
        assert_eq!(kinds, rows.iter().map(|row| row["times"].as_u64().unwrap()).sum::<u64>(), "{name}");
    }
    let Sample { dump, .. } = Sample::open("jdk/jdk17.hprof.zst");
    let kind = csv_rows(&dump, &["roots", "--kind", "java-frame", "--thread", "local-own*"]);
    assert!(kind.iter().all(|row| row["kind"] == "java frame" && row["thread_name"] == "local-owner"));
    assert!(kind.iter().any(|row| row["location"].starts_with("HeapZoo.")), "{kind:?}");
    let by_id = csv_rows(&dump, &["roots", "--kind", "java-frame", "--thread", &kind[0]["thread"]]);
    assert_eq!(kind, by_id);
}

#[test]
fn threads_of_a_dump_are_labelled_with_their_names() {
    for name in ["jdk8", "jdk17", "jdk25"] {
        let truth = std::fs::read_to_string(sample(&format!("jdk/{name}.threads.txt"))).unwrap();
        let Sample { dump, .. } = Sample::open(&format!("jdk/{name}.hprof.zst"));
        let threads = csv_rows(&dump, &["roots", "--kind", "thread-object"]);
        assert!(threads.len() > 5, "{name}");
        for row in threads {
            assert!(truth.contains(&format!("\"{}\"", row["label"])), "{name}: {row:?}");
        }
    }
}

/// A string as a JVM since JDK 9 has it.
fn string(model: &mut HeapModel, class: hprof_writer::ClassId, bytes: Vec<u8>, coder: i8) -> ObjectId {
    let value = model.prim_array(Elements::Byte(bytes.iter().map(|byte| byte.cast_signed()).collect()));
    model.instance_with(class, &[("value", value.into()), ("coder", Value::Byte(coder))])
}

#[test]
fn labels_tell_objects_apart() {
    let mut model = HeapModel::default();
    let object = model.class("java.lang.Object", None, &[]);
    let class = model.class("java.lang.Class", Some(object), &[("name", Type::Object)]);
    let text =
        model.class("java.lang.String", Some(object), &[("value", Type::Object), ("coder", Type::Byte)]);
    let thread = model.class("java.lang.Thread", Some(object), &[("name", Type::Object)]);
    let worker = model.class("com.acme.Worker", Some(thread), &[("name", Type::Int), ("id", Type::Long)]);
    let number = model.class("java.lang.Integer", Some(object), &[("value", Type::Int)]);
    let url = model.class(
        "java.net.URL",
        Some(object),
        &[("protocol", Type::Object), ("host", Type::Object), ("port", Type::Int), ("file", Type::Object)],
    );
    let latin = string(&mut model, text, b"caf\xe9\x1b".to_vec(), 0);
    let wide = string(&mut model, text, "日本語".encode_utf16().flat_map(u16::to_le_bytes).collect(), 1);
    let long = string(&mut model, text, vec![b'x'; 100_000], 0);
    let none = model.instance_with(text, &[]);
    let empty = string(&mut model, text, Vec::new(), 0);
    let http = string(&mut model, text, b"http".to_vec(), 0);
    let host = string(&mut model, text, b"acme.com".to_vec(), 0);
    let file = string(&mut model, text, b"/a?b".to_vec(), 0);
    let page = model.instance_with(
        url,
        &[
            ("protocol", http.into()),
            ("host", host.into()),
            ("port", Value::Int(8080)),
            ("file", file.into()),
        ],
    );
    // The subclass has a field of the same name before the one that is meant.
    let named = model.instance(worker, &[Value::Int(7), Value::Long(9), latin.into()]);
    let unnamed = model.instance_with(thread, &[("name", empty.into())]);
    let itself = model.instance_with(thread, &[]);
    model.set_field(itself, "name", itself);
    let minus = model.instance(number, &[Value::Int(-5)]);
    let mirror = model.instance_with(class, &[]);
    let plain = model.instance(object, &[]);
    let chars = model.prim_array(Elements::Char("ab\0\0c".encode_utf16().collect()));
    let zeros = model.prim_array(Elements::Char(vec![0; 9]));
    let dump = Dump::written(&model.write(&Options::hotspot()));
    let (heap, graph) = dump.open_graph();
    let labels = Labels::new(&whole_dump(&heap, &graph));
    let label = |id: u64| labels.label(graph.objects.addresses.index_of(hprof_cli::ObjectId(id)).unwrap());
    for (id, expected) in [
        (latin.0, Some("café\u{1b}")),
        (wide.0, Some("日本語")),
        (none.0, None),
        (empty.0, Some("")),
        (page.0, Some("http://acme.com:8080/a?b")),
        (named.0, Some("café\u{1b}")),
        (unnamed.0, None),
        (itself.0, None),
        (minus.0, Some("-5")),
        (mirror.0, None),
        (plain.0, None),
        (chars.0, Some("ab")),
        (zeros.0, None),
        (worker.0, Some("com.acme.Worker")),
    ] {
        assert_eq!(label(id).as_deref(), expected, "{id:#x}");
    }
    let cut = label(long.0).unwrap();
    assert_eq!((cut.chars().count(), cut.ends_with("x…")), (MAX_CHARS, true));
}

#[test]
fn exit_codes_say_what_became_of_the_question() {
    let Sample { dump, heap, graph } = Sample::open("jdk/jdk17.hprof.zst");
    let unreachable = (0..graph.objects.len())
        .find(|object| graph.tree.reachable_position(ObjectIndex(*object)).is_none())
        .and_then(|object| graph.objects.addresses.id_of(ObjectIndex(object)))
        .unwrap();
    assert!(!heap.summary().is_damaged());
    let unreachable = format!("{unreachable:#x}");
    for (arguments, expected, said) in [
        (&["dominators"][..], 0, ""),
        (&["dominators", "--of", "0x7"], 1, "no object 0x7 in "),
        (&["dominators", "--of", "7"], 1, "no object 0x7 in "),
        (&["dominators", "--of", "7x"], 1, "no class with objects matches 7x"),
        (&["dominators", "--of", &unreachable], 1, "is unreachable"),
        (&["dominators", "--of", &unreachable, "--group-by", "class"], 1, "is unreachable"),
        (&["dominators", "--all"], 2, "--format csv"),
        (&["dominators", "--all", "--top", "3"], 2, "cannot be used with"),
        (&["dominators", "--min-retained", "1GB"], 1, ""),
        (&["dominators", "--min-retained", "lots"], 2, "is not a size"),
        (
            &["dominators", "--group-by", "package", "--depth", "2"],
            2,
            "cannot be used with --group-by package",
        ),
        (
            &["dominators", "--group-by", "class-tree", "--group-by", "class"],
            2,
            "cannot be used multiple times",
        ),
        (&["retained", "java.lang.String"], 0, "unreachable"),
        (&["retained", "java.util.HasMap"], 1, "java.util.HashMap"),
        (&["retained", "0x7"], 1, "; the nearest objects are 0x"),
        (&["retained"], 2, "SELECTION"),
        (&["roots", "--kind", "jni-global"], 0, ""),
        (&["roots", "--kind", "finalizing"], 1, ""),
        (&["roots", "--kind", "odd"], 2, "kinds are"),
        (&["roots", "--thread", "nobody"], 1, ""),
        (&["histo", "--live", "--unreachable"], 2, "cannot be used with"),
        (&["histo", "--retained", "--layout", "header=16"], 2, "cannot be used with"),
        (&["histo", "--sort", "retained"], 0, ""),
        (&["histo", "--sort", "retained", "--unreachable"], 2, "--sort retained"),
        (&["histo", "--unreachable", "com.acme.**"], 1, ""),
    ] {
        let output = dump.run(arguments);
        assert_eq!(code(&output), expected, "{arguments:?}: {output:?}");
        assert!(stderr(&output).contains(said), "{arguments:?}: {}", stderr(&output));
    }
    let few = csv_rows(&dump, &["dominators", "--min-retained", "50KB", "--depth", "9"]);
    assert!(!few.is_empty() && few.iter().all(|row| row["retained_bytes"].parse::<u64>().unwrap() >= 51_200));
    // 0 is all levels, as in all commands.
    for more in [&[][..], &["--group-by", "class-tree"], &["--of", "java.util.HashMap"]] {
        let to = |depth: &str| {
            csv_rows(&dump, &[&["dominators", "--min-retained", "50KB", "--depth", depth], more].concat())
        };
        let (all, one) = (to("0"), to("1"));
        assert_eq!(all, to("4294967295"), "{more:?}");
        assert!(all.len() > one.len() || more.contains(&"--of"), "{more:?}");
    }
}

#[test]
fn nothing_to_show_is_still_an_answer() {
    let dump = Dump::written(&HeapModel::default().write(&Options::hotspot()));
    for arguments in [&["dominators"][..], &["roots"], &["retained", "A"], &["histo", "--retained", "--live"]]
    {
        for format in ["json", "csv", "table"] {
            let output = dump.run(&[arguments, &["--format", format]].concat());
            assert_eq!(code(&output), 1, "{arguments:?} {output:?}");
        }
    }
    let every = dump.run(&["dominators", "--all", "--format", "csv"]);
    assert_eq!((code(&every), stdout(&every).lines().count()), (1, 1));
}
