//! `instances`, `refs`, `classes` and `loaders` against dumps that are read without the index.

use hprof_cli::{ObjectId, ObjectIndex};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::process::{Command, Output};

use crate::kit::dump::{self, Dump, bytes, whole_dump};
use crate::kit::portion;
use crate::kit::texts::sample_path;
use crate::raw::Raw;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::{Heap, ObjectGraph};
use hprof_query::histogram::hierarchy::{self, ClassOrder};
use hprof_query::loaders;
use hprof_query::objects::class_set::ClassSet;
use hprof_query::objects::condition::{Condition, Filter};
use hprof_query::objects::instances::{self, InstanceOrder, InstanceQuery};
use hprof_query::objects::label::Labels;
use hprof_query::paths::steps::View;
use hprof_query::refs::{Direction, ReferenceLister};
use hprof_query::show::{Shower, ShownValue};
use hprof_writer::{Elements, HeapModel, Jdk, Root, Type, Value as Stored};

const SAMPLES: &[&str] = &[
    "jdk/jdk8.hprof.zst",
    "jdk/jdk17.hprof.zst",
    "jdk/jdk25-compact.hprof.zst",
    "public/android-leak_service_binder.hprof.zst",
    "agent/all.hprof.zst",
];

/// A dump, opened, and the same read plainly.
struct Opened {
    name: &'static str,
    heap: Heap,
    graph: ObjectGraph,
    raw: Raw,
    _dump: Dump,
}

impl Opened {
    fn sample(name: &'static str) -> Self {
        let dump = Dump::sample(&sample_path(name));
        let (heap, graph) = dump.open_graph();
        let raw = Raw::read(bytes(&heap));
        Self { name, heap, graph, raw, _dump: dump }
    }

    fn summary(&self) -> &Summary {
        self.heap.summary()
    }

    fn id(&self, object: u32) -> u64 {
        self.graph.objects.addresses.id_of(ObjectIndex(object)).unwrap().0
    }

    fn index(&self, id: u64) -> u32 {
        self.graph.objects.addresses.index_of(ObjectId(id)).unwrap().0
    }

    /// The names of a class and of its superclasses.
    fn chain(&self, class: ClassNumber) -> Vec<&str> {
        let upwards = self.summary().class_table().upwards(class);
        let rows = upwards.filter_map(|class| self.summary().class(class));
        rows.map(|class| self.summary().class_name(class)).collect()
    }

    fn retained(&self, object: u32) -> Option<u64> {
        let tree = &self.graph.tree;
        tree.reachable_position(ObjectIndex(object)).map(|position| tree.retained_bytes(position))
    }

    /// Objects of a class as the dump says, by object id.
    fn naive_instances(&self, name: &str) -> Vec<u64> {
        let all = self.raw.class_of.iter();
        all.filter(|(_, class)| self.raw.names.get(class).is_some_and(|other| other == name))
            .map(|(id, _)| *id)
            .collect()
    }

    fn find(&self, class: &str, subclasses: bool, conditions: &[&str]) -> Vec<u64> {
        let selections = [class.parse().unwrap()];
        let classes = ClassSet::new(&whole_dump(&self.heap, &self.graph), &selections, subclasses);
        let conditions: Vec<Condition> = conditions.iter().map(|text| text.parse().unwrap()).collect();
        let labels = Labels::new(&whole_dump(&self.heap, &self.graph));
        let objects = whole_dump(&self.heap, &self.graph).objects;
        let filter = Filter::new(&objects, &labels, &conditions, &classes).unwrap();
        let question = InstanceQuery {
            classes: &classes,
            filter: (!conditions.is_empty()).then_some(&filter),
            live: false,
            sort_by: InstanceOrder::Address,
            top: None,
        };
        let found = instances::find(&self.graph, &question);
        assert_eq!(found.total, found.objects.len() as u64);
        found.objects.into_iter().map(|object| self.id(object.0)).collect()
    }
}

#[test]
fn instances_are_those_of_the_dump() {
    for opened in portion::samples(SAMPLES).into_iter().map(Opened::sample) {
        for class in
            ["java.lang.String", "java.util.HashMap", "java.lang.Class", "byte[]", "java.lang.Object[]"]
        {
            let naive = opened.naive_instances(class);
            // Dumps of the agent have no classes of primitive arrays.
            if !naive.is_empty() {
                assert_eq!(opened.find(class, false, &[]), naive, "{}: {class}", opened.name);
            }
        }
        for above in ["java.util.AbstractMap", "java.lang.ref.Reference", "java.lang.ClassLoader"] {
            let is_below = |object: &u32| {
                opened
                    .graph
                    .objects
                    .class(ObjectIndex(*object))
                    .is_some_and(|class| opened.chain(class).contains(&above))
            };
            let naive: Vec<u64> =
                (0..opened.graph.objects.len()).filter(is_below).map(|object| opened.id(object)).collect();
            assert!(!naive.is_empty(), "{}: {above}", opened.name);
            assert_eq!(opened.find(above, true, &[]), naive, "{}: {above}", opened.name);
        }
    }
}

#[test]
fn the_first_are_those_that_retain_most() {
    for opened in portion::samples(SAMPLES).into_iter().map(Opened::sample) {
        let classes =
            ClassSet::new(&whole_dump(&opened.heap, &opened.graph), &["java.**".parse().unwrap()], false);
        let tree = &opened.graph.tree;
        let mut naive: Vec<ObjectIndex> = ObjectIndex::range(opened.graph.objects.indices())
            .filter(|object| opened.graph.objects.class(*object).is_some_and(|class| classes.contains(class)))
            .collect();
        for live in [false, true] {
            naive.retain(|object| !live || tree.reachable_position(*object).is_some());
            for sort_by in [InstanceOrder::Retained, InstanceOrder::Shallow, InstanceOrder::Address] {
                let mut sorted = naive.clone();
                sorted.sort_by_key(|object| match sort_by {
                    InstanceOrder::Retained => {
                        std::cmp::Reverse(opened.retained(object.0).map_or(0, |bytes| bytes + 1))
                    }
                    InstanceOrder::Shallow => {
                        std::cmp::Reverse(tree.shallow_bytes(tree.position(*object).unwrap()))
                    }
                    InstanceOrder::Address => std::cmp::Reverse(0),
                });
                for (top, threads) in [(None, 2), (Some(1), 1), (Some(50), 3), (Some(50), 1)] {
                    let question = InstanceQuery { classes: &classes, filter: None, live, sort_by, top };
                    let found = dump::with_threads(threads, || instances::find(&opened.graph, &question));
                    assert_eq!(found.total, naive.len() as u64);
                    sorted.truncate(sorted.len().min(top.unwrap_or(usize::MAX)).max(50));
                    let expected = &sorted[..sorted.len().min(found.objects.len())];
                    let kept = top.unwrap_or(usize::MAX).min(naive.len());
                    assert_eq!(found.objects.len(), kept, "{} {sort_by:?} {top:?}", opened.name);
                    assert_eq!(
                        &found.objects[..expected.len()],
                        expected,
                        "{} {sort_by:?} {top:?}",
                        opened.name
                    );
                }
            }
        }
    }
}

#[test]
fn conditions_hold_for_those_that_are_kept() {
    for opened in portion::samples(SAMPLES).into_iter().map(Opened::sample) {
        let view = View::new(&whole_dump(&opened.heap, &opened.graph));
        let shower = Shower::new(&whole_dump(&opened.heap, &opened.graph), view);
        let check = |class: &str, condition: &str, field: &str, holds: &dyn Fn(&ShownValue) -> bool| {
            let naive: Vec<u64> = (opened.naive_instances(class).into_iter())
                .filter(|id| {
                    let shown = shower.show(ObjectIndex(opened.index(*id)));
                    shown.fields.iter().find(|part| part.name == field).is_some_and(|part| holds(&part.value))
                })
                .collect();
            assert_eq!(opened.find(class, false, &[condition]), naive, "{}: {condition}", opened.name);
            naive.len()
        };
        let integer = |value: &ShownValue| match value {
            ShownValue::Integer(number) => *number,
            other => panic!("{other:?}"),
        };
        let map = "java.util.HashMap";
        assert!(check(map, "size > 10", "size", &|value| integer(value) > 10) > 0);
        assert!(check(map, "size != 0", "size", &|value| integer(value) != 0) > 0);
        // Only the JDK's have no table until there is something in it.
        let none = check(map, "table = null", "table", &|value| *value == ShownValue::Reference(None));
        assert!(none > 0 || !opened.name.starts_with("jdk/"), "{}", opened.name);
        assert!(check(map, "size < 1KB", "size", &|value| integer(value) < 1024) > 0);
        // Android's has none.
        if !opened.name.contains("android") {
            let usual = |value: &ShownValue| *value == ShownValue::Float(0.75);
            assert!(check(map, "loadFactor = 0.75", "loadFactor", &usual) > 0);
            check(
                map,
                "loadFactor < 0.75",
                "loadFactor",
                &|value| matches!(value, ShownValue::Float(f) if *f < 0.75),
            );
        }
        let label = |value: &ShownValue| match value {
            ShownValue::Reference(Some(to)) => to.label.clone(),
            _ => None,
        };
        let thread = "java.lang.Thread";
        if opened.name.starts_with("jdk") {
            let main = |value: &ShownValue| label(value).as_deref() == Some("main");
            assert_eq!(check(thread, "name = main", "name", &main), 1);
            assert_eq!(check(thread, "name = 'main'", "name", &main), 1);
        }
        let contains = |value: &ShownValue| label(value).is_some_and(|label| label.contains("er"));
        assert!(check(thread, "name ~ er", "name", &contains) > 0);
        // All conditions must hold.
        let both: BTreeSet<u64> = opened.find(map, false, &["size > 1", "size <= 10"]).into_iter().collect();
        let one: BTreeSet<u64> = opened.find(map, false, &["size > 1"]).into_iter().collect();
        let other: BTreeSet<u64> = opened.find(map, false, &["size <= 10"]).into_iter().collect();
        assert_eq!(both, one.intersection(&other).copied().collect());
        // A path of fields, and the length of an array.
        let long = opened.find(map, false, &["table.length >= 64"]);
        let naive: Vec<u64> = (opened.naive_instances(map).into_iter())
            .filter(|id| {
                let table = opened.raw.references[id].iter().find(|reference| reference.label == "table");
                let length =
                    table.map(|table| shower.show(ObjectIndex(opened.index(table.to))).length.unwrap());
                length.is_some_and(|length| length >= 64)
            })
            .collect();
        assert!(!naive.is_empty(), "{}", opened.name);
        assert_eq!(long, naive, "{}", opened.name);
        // An id is an id, whatever the object says.
        let with_table = opened.find(map, false, &["table != null"]);
        let (first, table) = with_table
            .iter()
            .find_map(|id| {
                let table = opened.raw.references[id].iter().find(|reference| reference.label == "table")?;
                Some((*id, table.to))
            })
            .unwrap();
        assert_eq!(opened.find(map, false, &[&format!("table = {table:#x}")]), [first]);
    }
}

#[test]
fn conditions_that_make_no_sense_are_refused() {
    let opened = Opened::sample("jdk/jdk17.hprof.zst");
    let thread = ["java.lang.Thread".parse().unwrap()];
    let classes = ClassSet::new(&whole_dump(&opened.heap, &opened.graph), &thread, false);
    for (text, said) in [
        ("nam = main", "no field `nam` in java.lang.Thread; its fields are "),
        ("tid = x", "`tid` is an integer, but `x` is not"),
        ("daemon = 1", "`daemon` is a boolean, but `1` is not"),
        ("tid ~ 1", "~ applies only to texts"),
        ("name.nope = 1", "no field `nope` in any class"),
        ("tid.name = 1", "`tid` is an integer, which has no fields"),
        ("name.hash ~ 1", "~ applies only to texts"),
    ] {
        let conditions = [text.parse().unwrap()];
        let labels = Labels::new(&whole_dump(&opened.heap, &opened.graph));
        let objects = whole_dump(&opened.heap, &opened.graph).objects;
        let error = Filter::new(&objects, &labels, &conditions, &classes).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

/// References by name and target, as many as there are.
fn counted<'a>(references: impl Iterator<Item = (&'a str, u64)>) -> BTreeMap<(String, u64), u32> {
    let mut counts = BTreeMap::new();
    for (label, to) in references {
        *counts.entry((label.to_owned(), to)).or_default() += 1;
    }
    counts
}

#[test]
fn references_are_those_of_the_dump() {
    for opened in portion::samples(SAMPLES).into_iter().map(Opened::sample) {
        let mut holders: HashMap<u64, BTreeSet<u64>> = HashMap::new();
        for (from, references) in &opened.raw.references {
            for reference in references.iter().filter(|reference| reference.label != "<class>") {
                holders.entry(reference.to).or_default().insert(*from);
            }
        }
        let view = View::new(&whole_dump(&opened.heap, &opened.graph));
        let refs = ReferenceLister::new(&view);
        // A prime, so that all kinds of objects are met; and all that extend Reference.
        let references = opened.find("java.lang.ref.Reference", true, &[]);
        let some = (0..opened.graph.objects.len()).step_by(37);
        for object in some.chain(references.into_iter().map(|id| opened.index(id))) {
            let id = opened.id(object);
            let rows: Vec<_> = refs.rows(ObjectIndex(object), Direction::Outgoing).collect();
            assert_eq!(refs.count(ObjectIndex(object), Direction::Outgoing), rows.len() as u64);
            let there = rows.iter().filter(|row| row.shallow_bytes.is_some());
            let found = counted(there.map(|row| (row.reference.as_deref().unwrap(), row.id.0)));
            let raw = &opened.raw.references[&id];
            let known = raw.iter().map(|reference| (reference.label.as_str(), reference.to));
            // If the dump has no class for primitive arrays, the table has one without a class object.
            assert_eq!(found, counted(known), "{}: {id:#x}", opened.name);
            for row in &rows {
                let raw =
                    raw.iter().find(|raw| raw.to == row.id.0 && Some(&raw.label) == row.reference.as_ref());
                if raw.is_some_and(|raw| raw.is_referent) && !opened.name.starts_with("public") {
                    assert_eq!(row.strength.name(), opened.raw.strength(id), "{id:#x}");
                }
            }
            let rows: Vec<_> = refs.rows(ObjectIndex(object), Direction::Incoming).collect();
            assert_eq!(refs.count(ObjectIndex(object), Direction::Incoming), rows.len() as u64);
            let found: BTreeSet<u64> = rows.iter().map(|row| row.id.0).collect();
            assert_eq!(found, holders.get(&id).cloned().unwrap_or_default(), "{}: {id:#x}", opened.name);
            for row in rows {
                let reference = row.reference.unwrap();
                let raw = opened.raw.between(row.id.0, id);
                assert!(raw.iter().any(|raw| reference.starts_with(&raw.label)), "{id:#x}: {reference}");
            }
            for direction in [Direction::Outgoing, Direction::Incoming] {
                let groups = refs.groups(ObjectIndex(object), direction);
                let rows =
                    refs.rows(ObjectIndex(object), direction).filter(|row| row.shallow_bytes.is_some());
                let distinct: BTreeSet<u64> = rows.map(|row| row.id.0).collect();
                assert_eq!(groups.iter().map(|group| group.objects).sum::<u64>(), distinct.len() as u64);
                let sizes = distinct.iter().map(|id| {
                    let position = opened.graph.tree.position(ObjectIndex(opened.index(*id))).unwrap();
                    opened.graph.tree.shallow_bytes(position)
                });
                assert_eq!(groups.iter().map(|group| group.shallow_bytes).sum::<u64>(), sizes.sum::<u64>());
            }
        }
    }
}

#[test]
fn classes_add_up() {
    for opened in portion::samples(SAMPLES).into_iter().map(Opened::sample) {
        let summary = opened.summary();
        let tree = &opened.graph.tree;
        let mut own: HashMap<ClassNumber, u64> = HashMap::new();
        let mut own_bytes: HashMap<ClassNumber, u64> = HashMap::new();
        let mut below: HashMap<String, u64> = HashMap::new();
        for object in 0..opened.graph.objects.len() {
            let Some(class) = opened.graph.objects.class(ObjectIndex(object)) else { continue };
            *own.entry(class).or_default() += 1;
            *own_bytes.entry(class).or_default() +=
                tree.shallow_bytes(tree.position(ObjectIndex(object)).unwrap());
            for name in opened.chain(class) {
                *below.entry(name.to_owned()).or_default() += 1;
            }
        }
        for sort_by in [ClassOrder::Instances, ClassOrder::Name] {
            let question = hierarchy::HierarchyQuery { sort_by, ..hierarchy::HierarchyQuery::default() };
            let answer = hierarchy::list(summary, &question);
            let mut totals: HashMap<&str, u64> = HashMap::new();
            for row in &answer.rows {
                assert_eq!(row.instances, own.get(&row.class).copied().unwrap_or(0), "{}", opened.name);
                let bytes = own_bytes.get(&row.class).copied().unwrap_or(0);
                assert_eq!(row.shallow_bytes, bytes, "{}", opened.name);
                *totals.entry(summary.class_name(summary.class(row.class).unwrap())).or_default() +=
                    row.total_instances;
            }
            for (name, total) in totals {
                assert_eq!(total, below.get(name).copied().unwrap_or(0), "{}: {name}", opened.name);
            }
        }
        let tree = hierarchy::tree(summary, &hierarchy::HierarchyQuery::default());
        let first = tree.rows.first().unwrap();
        assert_eq!(opened.chain(first.class), ["java.lang.Object"], "{}", opened.name);
        assert_eq!(tree.total, tree.rows.len() as u64);
        let shown: u64 = tree.rows.iter().map(|row| row.instances).sum();
        assert_eq!(shown, own.values().sum::<u64>(), "{}", opened.name);
        for row in &tree.rows {
            assert_eq!(row.depth as usize + 1, opened.chain(row.class).len(), "{}", opened.name);
        }
    }
}

#[test]
fn loaders_define_what_the_dump_says() {
    for opened in portion::samples(SAMPLES).into_iter().map(Opened::sample) {
        let labels = Labels::new(&whole_dump(&opened.heap, &opened.graph));
        let objects = whole_dump(&opened.heap, &opened.graph).objects;
        let rows = loaders::loaders(&objects, &labels, loaders::LoaderOrder::Retained);
        let mut defined: HashMap<u64, u64> = HashMap::new();
        for reference in opened.raw.references.values().flatten() {
            if reference.label == "<loader>" {
                *defined.entry(reference.to).or_default() += 1;
            }
        }
        let mut seen = BTreeSet::new();
        for row in rows.iter().filter(|row| row.id != ObjectId(0)) {
            assert!(seen.insert(row.id.0), "{}: {:#x} twice", opened.name, row.id);
            assert_eq!(row.classes, defined.get(&row.id.0).copied().unwrap_or(0), "{}", opened.name);
            assert_eq!(row.retained_bytes, opened.retained(opened.index(row.id.0)));
        }
        assert!(defined.keys().all(|id| seen.contains(id)), "{}", opened.name);
        let mut with_parent = 0;
        for row in rows.iter().filter(|row| row.id != ObjectId(0)) {
            // Loaders of the JDK have a field of their own of that name.
            let parents =
                opened.raw.references[&row.id.0].iter().filter(|reference| reference.label == "parent");
            let parents: Vec<u64> = parents.map(|reference| reference.to).collect();
            let stated = row.parent.filter(|parent| *parent != ObjectId(0));
            assert!(
                stated.is_none_or(|parent| parents.contains(&parent.0)),
                "{}: {:#x}",
                opened.name,
                row.id
            );
            with_parent += usize::from(stated.is_some());
        }
        // The agent's dumps are of a JVM that had started just then.
        assert!(with_parent > 0, "{}", opened.name);
        let sum = |figure: fn(&loaders::ClassLoaderRow) -> u64| rows.iter().map(figure).sum::<u64>();
        let dumped = opened.summary().classes().iter().filter(|class| class.is_dumped()).count();
        assert_eq!(sum(|row| row.classes), dumped as u64, "{}", opened.name);
        let of_dumped = (0..opened.graph.objects.len()).filter(|object| {
            let class = opened.graph.objects.class(ObjectIndex(*object));
            class.and_then(|class| opened.summary().class(class)).is_some_and(|class| class.is_dumped())
        });
        assert_eq!(sum(|row| row.instances), of_dumped.count() as u64, "{}", opened.name);
        let duplicates = loaders::duplicates(&whole_dump(&opened.heap, &opened.graph), &labels);
        if opened.name.starts_with("jdk/") {
            // The zoo loads one class by five loaders of its own.
            let mine = rows.iter().filter(|row| {
                let class = row.class.and_then(|class| opened.summary().class(class));
                class.is_some_and(|class| opened.summary().class_name(class) == "HeapZoo$Loader")
            });
            assert_eq!(mine.map(|row| (row.classes, row.instances)).collect::<Vec<_>>(), [(1, 1); 5]);
            let names: Vec<&str> = (duplicates.iter())
                .map(|row| opened.summary().class_name(opened.summary().class(row.class).unwrap()))
                .filter(|name| name.starts_with("HeapZoo"))
                .collect();
            assert_eq!(names, ["HeapZoo$Empty"; 6], "{}", opened.name);
        }
    }
}

#[test]
fn a_loader_with_a_field_named_parent() {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let above = model.class("java.lang.ClassLoader", Some(jdk.object), &[("parent", Type::Object)]);
    let mine = model.class("com.acme.MyLoader", Some(above), &[("parent", Type::Object)]);
    let int = model.class("com.acme.IntLoader", Some(above), &[("parent", Type::Int)]);
    let text = jdk.string(&mut model, "no loader");
    let first = model.instance(mine, &[text.into(), Stored::Object(0)]);
    let second = model.instance(int, &[Stored::Int(7), first.into()]);
    for loader in [first, second] {
        model.root(loader, Root::Unknown);
    }
    let dump = Dump::written(&model.write(&hprof_writer::Options::hotspot()));
    let (heap, graph) = dump.open_graph();
    let labels = Labels::new(&whole_dump(&heap, &graph));
    let objects = whole_dump(&heap, &graph).objects;
    let rows = loaders::loaders(&objects, &labels, loaders::LoaderOrder::Retained);
    let parent =
        |loader: hprof_writer::ObjectId| rows.iter().find(|row| row.id == ObjectId(loader.0)).unwrap().parent;
    assert_eq!((parent(first), parent(second)), (Some(ObjectId(0)), Some(ObjectId(first.0))));
}

#[test]
fn conditions_on_what_is_no_string() {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let file = model.class("java.io.File", Some(jdk.object), &[("path", Type::Object)]);
    let builder = model.class(
        "java.lang.AbstractStringBuilder",
        Some(jdk.object),
        &[("value", Type::Object), ("coder", Type::Byte), ("count", Type::Int)],
    );
    let builder = model.class("java.lang.StringBuilder", Some(builder), &[]);
    let holder = model.class("com.acme.Holder", Some(jdk.object), &[("it", Type::Object)]);
    let path = jdk.string(&mut model, &format!("/{}/file.txt", "x".repeat(300)));
    let year = jdk.string(&mut model, "2024");
    let characters = model.prim_array(Elements::of_bytes(b"hello\0\0\0"));
    let fields = [characters.into(), Stored::Byte(0), Stored::Int(5)];
    let held = [
        model.instance(file, &[path.into()]),
        model.instance(file, &[year.into()]),
        model.instance(builder, &fields),
    ];
    let holders = held.map(|object| model.instance(holder, &[object.into()]));
    for holder in holders {
        model.root(holder, Root::Unknown);
    }
    let dump = Dump::written(&model.write(&hprof_writer::Options::hotspot()));
    let (heap, graph) = dump.open_graph();
    let classes = ClassSet::new(&whole_dump(&heap, &graph), &["com.acme.Holder".parse().unwrap()], false);
    let find = |condition: &str| -> Vec<u64> {
        let conditions = [condition.parse().unwrap()];
        let labels = Labels::new(&whole_dump(&heap, &graph));
        let objects = whole_dump(&heap, &graph).objects;
        let filter = Filter::new(&objects, &labels, &conditions, &classes).unwrap();
        let question = InstanceQuery {
            classes: &classes,
            filter: Some(&filter),
            live: false,
            sort_by: InstanceOrder::Address,
            top: None,
        };
        let found = instances::find(&graph, &question).objects;
        found.into_iter().map(|object| graph.objects.addresses.id_of(object).unwrap().0).collect()
    };
    let [long, year, builder] = holders.map(|holder| holder.0);
    assert_eq!(find("it ~ file.txt"), [long]);
    assert_eq!(find("it ~ 20"), [year]);
    assert_eq!(find("it = 2024"), [year]);
    assert_eq!(find("it = 2024.0"), [0u64; 0]);
    assert_eq!(find("it = hello"), [builder]);
    assert_eq!(find(&format!("it = {:#x}", held[2].0)), [builder]);
    assert_eq!(find(&format!("it != {:#x}", held[2].0)), [long, year]);
}

fn cli(arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } =
        Command::new(env!("CARGO_BIN_EXE_hprof-cli")).args(arguments).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[test]
fn the_commands_answer() {
    let dir = tempfile::tempdir().unwrap();
    let index = dir.path().to_str().unwrap();
    let dump = concat!(env!("CARGO_MANIFEST_DIR"), "/samples/jdk/jdk17.hprof.zst");
    let run = |command: &str, more: &[&str]| {
        let mut arguments = vec![command, dump, "--index-dir", index, "--quiet"];
        arguments.extend(more);
        cli(&arguments)
    };
    let (code, out, err) =
        run("instances", &["java.lang.Thread", "--where", "name = main", "--format", "csv"]);
    assert_eq!((code, out.lines().count()), (Some(0), 2), "{err}");
    let thread = out.lines().nth(1).unwrap().split(',').next().unwrap().to_owned();
    let keys: Vec<&str> = "object class label shallow_bytes retained_bytes".split(' ').collect();
    assert_eq!(out.lines().next().unwrap(), keys.join(","));

    let (code, out, _) = run("refs", &[&thread, "--format", "json"]);
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, document["of"]["label"].as_str()), (Some(0), Some("main")));
    let rows = document["rows"].as_array().unwrap();
    let name = rows.iter().find(|row| row["reference"] == "name").unwrap();
    assert_eq!((name["label"].as_str(), name["strength"].as_str()), (Some("main"), Some("strong")));
    for extra in [&["--incoming"][..], &["--group-by", "class"], &["--incoming", "--group-by", "class"]] {
        let mut arguments = vec![thread.as_str()];
        arguments.extend(extra);
        assert_eq!(run("refs", &arguments).0, Some(0), "{extra:?}");
    }

    // If something does not exist: exit code 1, and suggestions.
    let nothing = ["refs", "instances", "classes"].map(|command| run(command, &["java.lang.Thrad"]).0);
    assert_eq!(nothing, [Some(1); 3]);
    let (code, out, err) = run("refs", &["0x123", "--format", "csv"]);
    assert_eq!((code, out.lines().count()), (Some(1), 1));
    assert!(err.contains("no object 0x123") && err.contains("the nearest objects are 0x"), "{err}");
    let (code, _, err) = run("refs", &["java.util.**"]);
    assert!(code == Some(1) && err.contains("classes match java.util.**: name one"), "{err}");
    let (code, _, err) = run("instances", &["java.lang.Thread", "--where", "nam = x"]);
    assert!(code == Some(2) && err.contains("no field `nam`"), "{err}");
    assert_eq!(run("instances", &["java.lang.Thread", "--where", "name = nobody"]).0, Some(1));

    let (code, out, _) = run("classes", &["java.util.AbstractMap", "--tree", "--format", "csv"]);
    assert_eq!(code, Some(0));
    assert!(out.lines().next().unwrap().ends_with(",total_shallow_bytes,depth"), "{out}");
    assert!(out.contains("\njava.util.HashMap,<boot loader>,java.util.AbstractMap,0x"), "{out}");
    let (code, out, _) = run("classes", &["--tree"]);
    assert!(code == Some(0) && out.contains("├─ java.lang.String"), "{out}");
    let (code, out, _) = run("loaders", &["--duplicates", "--details"]);
    assert!(code == Some(0) && out.matches("HeapZoo$Empty").count() == 6, "{out}");
    let (code, out, _) = run("loaders", &["--format", "json"]);
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, document["rows"].as_array().unwrap().len()), (Some(0), 9));
}
