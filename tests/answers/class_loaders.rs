//! Retained sizes of class loaders with their classes and instances: compared with walks over the graph that use no
//! dominator tree, and with what was planted in a program that leaks loaders.

use std::collections::{BTreeMap, HashMap, HashSet};

use hprof_cli::{ObjectIndex, TreePosition};
use hprof_index::{Heap, ObjectGraph};
use hprof_query::dominators::retained_of_many_sets::{self, Sets};
use hprof_query::dominators::retained_of_set;
use hprof_query::generated_loaders::is_permanent;
use hprof_query::loaders::loader_sets::{self, Loaders};
use hprof_query::loaders::{self, LoaderOrder};
use hprof_query::objects::label::Labels;
use hprof_values::ObjectId;
use hprof_writer::{Elements, HeapModel, Jdk, Options, Root, Type, Value as Field};
use roaring::RoaringBitmap;
use serde_json::Value;

use crate::kit::dump::{Dump, whole_dump};
use crate::kit::portion;
use crate::kit::texts::sample_path as sample;
use crate::naive::Naive;

fn open(name: &str) -> (Dump, Heap, ObjectGraph) {
    let dump = Dump::sample(&sample(name));
    let (heap, graph) = dump.open_graph();
    (dump, heap, graph)
}

fn answer(heap: &Heap, graph: &ObjectGraph) -> Loaders {
    let labels = Labels::new(&whole_dump(heap, graph));
    let rows = loaders::loaders(&whole_dump(heap, graph).objects, &labels, LoaderOrder::Retained);
    loader_sets::with_classes(&whole_dump(heap, graph), rows, LoaderOrder::Retained).unwrap()
}

fn json(dump: &Dump, arguments: &[&str]) -> Value {
    let output = dump.run(&[arguments, &["--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A loader, its class objects and their instances, by ID, found one by one.
fn members(heap: &Heap, graph: &ObjectGraph, loaders: &[ObjectId]) -> HashSet<u64> {
    let summary = heap.summary();
    let classes = summary.numbered_classes().filter(|(_, class)| class.is_dumped());
    let classes: HashMap<_, u64> = classes
        .filter(|(_, class)| loaders.contains(&class.loader.into()))
        .map(|(n, c)| (n, c.id.get()))
        .collect();
    let of_class = (0..graph.objects.len())
        .map(ObjectIndex)
        .filter(|object| graph.objects.class(*object).is_some_and(|class| classes.contains_key(&class)));
    let instances = of_class.map(|object| graph.objects.addresses.id_of(object).unwrap().0);
    instances.chain(classes.values().copied()).chain(loaders.iter().map(|loader| loader.0)).collect()
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn loaders_retain_what_a_walk_without_them_misses() {
    for name in
        ["leaks/s3.hprof.zst", "jdk/jdk17.hprof.zst", "jdk/jdk8.hprof.zst", "public/maven-jdk8.hprof.zst"]
    {
        let (_dump, heap, graph) = open(name);
        let naive = Naive::read(&heap);
        let id = |object| graph.objects.addresses.id_of(object).unwrap().0;
        let positions = TreePosition::range(graph.tree.positions());
        let sizes: HashMap<u64, u64> = positions
            .map(|at| (id(graph.tree.object_at(at).unwrap()), graph.tree.shallow_bytes(at)))
            .collect();
        let found = answer(&heap, &graph);
        let mut checked = 0;
        for row in found.rows.iter().filter(|row| !is_permanent(heap.summary(), row.row.id)).take(6) {
            let members = members(&heap, &graph, &row.row.ids().collect::<Vec<_>>());
            let truth = naive.retained(&members, &sizes);
            let retained = row.with_classes.map_or((0, 0), |retained| (retained.objects, retained.bytes));
            assert_eq!(retained, truth, "{name}: {:#x}", row.row.id);
            checked += 1;
        }
        assert!(checked > 0, "{name}");
        for group in found.groups.iter().take(3) {
            let truth = naive.retained(&members(&heap, &graph, &group.loaders), &sizes);
            assert_eq!((group.retained.objects, group.retained.bytes), truth, "{name}");
        }
        // A loader that lives as long as the JVM: the loader object alone.
        for row in found.rows.iter().filter(|row| is_permanent(heap.summary(), row.row.id)) {
            assert_eq!(row.with_classes, None);
            let alone = naive.retained(&HashSet::from([row.row.id.0]), &sizes);
            assert_eq!(row.retained_bytes().unwrap_or(0), alone.1, "{name}: {:#x}", row.row.id);
        }
    }
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn many_sets_at_once_retain_what_each_retains_alone() {
    for name in portion::samples(&["jdk/jdk17.hprof.zst", "agent/all.hprof.zst", "leaks/s4.hprof.zst"]) {
        let (_dump, heap, graph) = open(name);
        let mut state = 11u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        // Sets that overlap and hold one another: half of all classes in up to three sets each, and any objects.
        let mut sets = Sets { count: 24, ..Sets::default() };
        for _ in heap.summary().classes() {
            let count = random(4) * random(2);
            sets.of_class.push((0..count).map(|_| random(24) as u32).collect());
        }
        for _ in 0..500 {
            let object = ObjectIndex(random(graph.objects.len().into()) as u32);
            sets.of_object.entry(object).or_default().push(random(24) as u32);
        }
        let answers = retained_of_many_sets::retained(&graph, &sets).unwrap();
        assert_eq!(answers.len(), 24);
        for (set, answer) in (0u32..).zip(answers) {
            let mut members = RoaringBitmap::new();
            for object in (0..graph.objects.len()).map(ObjectIndex) {
                let classes = [graph.objects.class(object), graph.class_of_class_object(object)];
                let by_class = classes.iter().flatten().flat_map(|class| &sets.of_class[class.0 as usize]);
                if by_class.chain(sets.of_object.get(&object).into_iter().flatten()).any(|of| *of == set) {
                    members.insert(object.0);
                }
            }
            let truth = retained_of_set::retained(&graph, &members);
            assert_eq!(
                (answer.objects, answer.bytes),
                (truth.retained_objects, truth.retained_bytes),
                "{name}: {set}"
            );
        }
    }
}

#[test]
fn a_leak_of_loaders_is_found() {
    let dump = Dump::sample(&sample("leaks/s3.hprof.zst"));
    let found = json(&dump, &["loaders"]);
    let group = &found["groups"][0];
    assert_eq!((&group["loaders"], &group["class_names"][0]), (&40.into(), &"container.Plugin".into()));
    let planted: u64 = (0..40).map(|number| 100_000 + 2_500 * number).sum();
    let retained = group["retained_bytes"].as_u64().unwrap();
    assert!((planted..planted + 400_000).contains(&retained), "{retained}");
    let whole = json(&dump, &["dominators", "--top", "1"])["reachable"]["shallow_bytes"].clone();
    assert_eq!(retained * 100 / whole.as_u64().unwrap(), 85);
    assert_eq!(
        group["first_path"],
        "static listeners of container.EventBus -> ArrayList -> Object[] -> Plugin -> class Plugin -> WebappLoader"
    );
    // Each with its own array.
    let rows = found["rows"].as_array().unwrap();
    let mut arrays = 0;
    for row in rows.iter().filter(|row| row["class"] == "container.WebappLoader") {
        let number: u64 = row["label"].as_str().unwrap().strip_prefix("webapp-").unwrap().parse().unwrap();
        let (retained, array) = (row["retained_bytes"].as_u64().unwrap(), 100_000 + 2_500 * number);
        assert!((array..array + 10_000).contains(&retained), "{row}");
        assert_eq!(row["loader_group"], 1);
        arrays += 1;
    }
    assert_eq!(arrays, 40);
}

#[test]
fn loaders_of_generated_accessors_are_one_row() {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let loader_class = model.class("java.lang.ClassLoader", Some(jdk.object), &[("parent", Type::Object)]);
    let own = model.class("app.Loader", Some(loader_class), &[]);
    let accessors = model.class("jdk.internal.reflect.DelegatingClassLoader", Some(loader_class), &[]);
    let parent = model.instance(own, &[Field::NULL]);
    let mut live = vec![parent];
    for (number, parent) in [(1, Field::NULL), (2, parent.into()), (3, parent.into())] {
        let loader = model.instance(accessors, &[parent]);
        let name = format!("jdk.internal.reflect.GeneratedMethodAccessor{number}");
        let class = model.class(&name, Some(jdk.object), &[]);
        model.class_mut(class).loader = loader.0;
        live.push(model.instance(class, &[]));
    }
    // Its class is not used any more.
    live.push(model.instance(accessors, &[parent.into()]));
    let all = model.object_array(jdk.object_array, &live);
    model.root(all, Root::JniGlobal { reference: 0 });
    model.root_boot_classes();
    let dump = Dump::of(&model.write(&Options::hotspot()).bytes());
    for sort in ["retained", "classes", "instances"] {
        let found = json(&dump, &["loaders", "--sort", sort]);
        let rows = found["rows"].as_array().unwrap();
        assert_eq!((rows.len(), &found["total"]["loaders"]), (3, &6.into()), "{found}");
        let one = |row: &&Value| row["class"] == "jdk.internal.reflect.DelegatingClassLoader";
        let row = rows.iter().find(one).unwrap();
        let figures = ["loaders", "classes", "instances", "parent"].map(|key| row[key].to_string());
        assert_eq!(figures, ["4", "3", "3", "null"], "{row}");
        assert!(row["retained_bytes"].as_u64().unwrap() > 0 && row["retained_objects"].as_u64() >= Some(10));
    }
    let table = String::from_utf8(dump.run(&["loaders"]).stdout).unwrap();
    assert!(table.contains("4 x jdk.internal.reflect.DelegatingClassLoader"), "{table}");
    let histogram = json(&dump, &["histo", "--group-by", "loader"]);
    let rows = histogram["rows"].as_array().unwrap();
    let of_accessors = |row: &&Value| row["loader"].as_str().unwrap().contains("DelegatingClassLoader");
    assert_eq!(rows.iter().filter(of_accessors).count(), 1, "{histogram}");
}

/// Scripts, each compiled to classes of a loader of its own. From a hundred loaders on they are one row, from a thousand on they
/// are unusual; loaders of more classes are others.
#[test]
fn loaders_of_generated_classes_are_one_row() {
    for (loaders, classes, is_row, odd) in [
        (99, 1, false, None),
        (100, 1, true, None),
        (100, 4, true, None),
        (100, 5, false, None),
        (1000, 1, true, Some("1,000 class loaders of app.ScriptLoader with one class each")),
        (1000, 2, true, Some("1,000 class loaders of app.ScriptLoader with 2,000 classes")),
    ] {
        let mut model = HeapModel::default();
        let jdk = Jdk::add_to(&mut model);
        let fields = [("parent", Type::Object)];
        let class_loader = model.class("java.lang.ClassLoader", Some(jdk.object), &fields);
        let script_loader = model.class("app.ScriptLoader", Some(class_loader), &[]);
        let mut scripts = Vec::new();
        for loader in 0..loaders {
            let object = model.instance_with(script_loader, &[]);
            for part in 0..classes {
                let script = model.class(&format!("Script{loader}_{part}"), Some(jdk.object), &[]);
                model.class_mut(script).loader = object.0;
                scripts.push(model.instance(script, &[]));
            }
        }
        // It defines as many classes as a program.
        let tool = model.instance_with(script_loader, &[]);
        for class in 0..7 {
            let class = model.class(&format!("tool.Tool{class}"), Some(jdk.object), &[]);
            model.class_mut(class).loader = tool.0;
            scripts.push(model.instance(class, &[]));
        }
        let all = model.object_array(jdk.object_array, &scripts);
        model.root(all, Root::JniGlobal { reference: 0 });
        model.root_boot_classes();
        let dump = Dump::of(&model.write(&Options::hotspot()).bytes());
        let found = json(&dump, &["loaders", "--top", "0"]);
        let rows = found["rows"].as_array().unwrap();
        let case = format!("{loaders} loaders of {classes} classes");
        // Beside these the boot loader, and that of the tool.
        assert_eq!(rows.len() as u64, if is_row { 3 } else { loaders + 2 }, "{case}");
        assert_eq!(found["total"]["loaders"], loaders + 2, "{case}");
        let row = rows.iter().find(|row| row["loaders"] != 1);
        assert_eq!(row.is_some(), is_row, "{case}");
        if let Some(row) = row {
            let figures = ["loaders", "classes", "instances"].map(|key| row[key].as_u64().unwrap());
            assert_eq!(figures, [loaders, loaders * classes, loaders * classes], "{case}");
            // Loaders, class objects and instances.
            assert_eq!(row["retained_objects"], loaders * (1 + 2 * classes), "{case}");
            let histogram = json(&dump, &["histo", "--group-by", "loader"]);
            let of_scripts = |row: &&Value| row["loader"].as_str().unwrap().contains("ScriptLoader");
            assert_eq!(histogram["rows"].as_array().unwrap().iter().filter(of_scripts).count(), 2, "{case}");
        }
        let overview = json(&dump, &["overview"]);
        let lines = overview["rows"][0]["odd"].as_array().unwrap();
        let line = lines.iter().filter_map(Value::as_str).find(|line| line.contains("ScriptLoader"));
        assert_eq!(line, odd, "{case}");
    }
}

#[test]
fn a_duplicate_class_is_one_row() {
    let dump = Dump::sample(&sample("leaks/s3.hprof.zst"));
    let names = json(&dump, &["loaders", "--duplicates"]);
    let [row] = names["rows"].as_array().unwrap().as_slice() else { panic!("{names}") };
    assert_eq!(
        (&row["class"], &row["loaders"], &row["instances"]),
        (&"container.Plugin".into(), &40.into(), &40.into())
    );
    assert!(row["retained_bytes"].as_u64().unwrap() > 5_950_000);
    assert!(row["loader_path"].as_str().unwrap().starts_with("static listeners of container.EventBus -> "));
    let each = json(&dump, &["loaders", "--duplicates", "--details"]);
    assert_eq!(each["rows"].as_array().unwrap().len(), 40);
}

/// Ten thousand deployments of one class, each with a loader, an instance and an array in a static field, and one object that
/// all share. Loaders of a few classes would have one row: these define four that are not used any more as well.
#[test]
fn ten_thousand_loaders_each_retain_their_own() {
    const LOADERS: u64 = 10_000;
    const SHARED: u32 = 5_000;
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let class_loader = model.class("java.lang.ClassLoader", Some(jdk.object), &[("parent", Type::Object)]);
    let loader_class = model.class("app.WebappLoader", Some(class_loader), &[]);
    let shared = model.prim_array(Elements::of_bytes(&[1; SHARED as usize]));
    let (mut plugins, mut planted) = (Vec::new(), HashMap::new());
    for number in 0..LOADERS {
        let loader = model.instance_with(loader_class, &[]);
        let length = 100 + number as u32 % 100 * 8;
        let array = model.prim_array(Elements::of_bytes(&vec![2; length as usize]));
        let cache = [("CACHE", Field::from(array))];
        let fields = [("shared", Type::Object)];
        let class = model.class_with_statics("app.Plugin", Some(jdk.object), &fields, &cache);
        model.class_mut(class).loader = loader.0;
        plugins.push(model.instance_with(class, &[("shared", shared.into())]));
        for part in 0..4 {
            let part = model.class(&format!("app.Part{part}"), Some(jdk.object), &[]);
            model.class_mut(part).loader = loader.0;
        }
        let sizes = [
            model.instance_bytes(loader_class),
            model.instance_bytes(class),
            model.class_def(class).size,
            model.layout().array_bytes(Type::Byte, length),
        ];
        planted.insert(loader.0, sizes.iter().sum::<u64>());
    }
    let all = model.object_array(jdk.object_array, &plugins);
    model.root(all, Root::JniGlobal { reference: 0 });
    model.root_boot_classes();
    let dump = Dump::written(&model.write(&Options::hotspot()));
    let (heap, graph) = dump.try_open_graph().unwrap();
    let found = answer(&heap, &graph);
    // Beside these the boot loader.
    assert_eq!(found.rows.len() as u64, LOADERS + 1);
    let sum: u64 = planted.values().sum();
    for row in found.rows.iter().filter(|row| !row.row.id.is_null()) {
        let bytes = planted.remove(&row.row.id.0).unwrap();
        let retained = row.with_classes.unwrap();
        assert_eq!((retained.objects, retained.bytes), (4, bytes), "{:#x}", row.row.id);
        assert_eq!((row.row.classes, row.row.instances, row.group), (5, 1, Some(0)));
    }
    assert!(planted.is_empty());
    // What all share goes with the last of them.
    let [group] = found.groups.as_slice() else { panic!("{} groups", found.groups.len()) };
    let whole = (LOADERS * 4 + 1, sum + model.layout().array_bytes(Type::Byte, SHARED));
    assert_eq!((group.retained.objects, group.retained.bytes), whole);
    assert_eq!((group.loaders.len() as u64, group.instances, group.classes.len()), (LOADERS, LOADERS, 5));
    // The same by the class: one name, of as many loaders.
    let labels = Labels::new(&whole_dump(&heap, &graph));
    let duplicates = loaders::duplicates(&whole_dump(&heap, &graph), &labels);
    assert_eq!(duplicates.len() as u64, 5 * LOADERS);
    let names = loader_sets::duplicate_names(&whole_dump(&heap, &graph), &duplicates).unwrap();
    let [name, _, _, _, _] = names.as_slice() else { panic!("{} names", names.len()) };
    assert_eq!((name.loaders, name.instances), (LOADERS, LOADERS));
    assert_eq!(name.retained.map(|retained| (retained.objects, retained.bytes)), Some(whole));
}

/// Names of java.lang.Class objects without a class.
const PRIMITIVES: [&str; 9] = ["boolean", "byte", "char", "short", "int", "long", "float", "double", "void"];

/// By package and by loader: objects and what they retain, added up over the first level of the tree, where a class object
/// is known by its label.
#[test]
fn class_objects_belong_to_the_class_that_they_represent() {
    for name in ["leaks/s1.hprof.zst", "leaks/s5-static.hprof.zst", "jdk/jdk8.hprof.zst"] {
        let dump = Dump::sample(&sample(name));
        let mut packages: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        let tops = json(&dump, &["dominators", "--top", "0"]);
        for row in tops["rows"].as_array().unwrap() {
            let class = row["class"].as_str().unwrap();
            let of = row["label"].as_str().filter(|_| class == "java.lang.Class");
            // Those of primitive types represent no class of the dump.
            let class = of.filter(|of| !PRIMITIVES.contains(of)).unwrap_or(class);
            let element = class.trim_end_matches("[]");
            let package = element.rsplit_once('.').map_or("", |(package, _)| package).to_owned();
            let sum = packages.entry(package).or_default();
            sum.0 += 1;
            sum.1 += row["retained_bytes"].as_u64().unwrap();
        }
        let groups = json(&dump, &["dominators", "--group-by", "package"]);
        let mut seen = 0;
        for row in groups["rows"].as_array().unwrap() {
            let package = row["package"].as_str().unwrap();
            if package.starts_with('<') {
                continue;
            }
            let sum = (row["objects"].as_u64().unwrap(), row["retained_bytes"].as_u64().unwrap());
            assert_eq!(Some(&sum), packages.get(package), "{name}: {package}");
            seen += 1;
        }
        assert!(seen > 5, "{name}");
    }
    // Objects in static fields belong to the application, not to the JDK.
    let dump = Dump::sample(&sample("leaks/s1.hprof.zst"));
    let loaders = json(&dump, &["dominators", "--group-by", "loader"]);
    let first = loaders["rows"][0]["loader"].as_str().unwrap();
    assert!(first.starts_with("jdk.internal.loader.ClassLoaders$AppClassLoader @ 0x"), "{first}");
}
