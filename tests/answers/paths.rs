//! Paths from the roots, against the references of the dump as they are read without the index.

use hprof_cli::ObjectIndex;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;

use crate::kit::dump::{Dump, bytes, whole_dump};
use crate::kit::portion;
use crate::raw::{self, Raw};
use hprof_index::{Heap, ObjectGraph};
use hprof_query::objects::selection::Selection;
use hprof_query::objects::strength::{Exclusions, Strength};
use hprof_query::paths::merged::{self, MergeLimits, MergedPaths};
use hprof_query::paths::shortest::{self, ShortestPaths};
use hprof_query::paths::steps::View;
use hprof_values::RootKind;
use hprof_writer::{
    ClassDump, ClassId, DumpWriter, HeapModel, HeapWriter, IdSize, Jdk, ObjectId, Options, Root, StackFrame,
    StartThread, Type, Value, Version,
};

pub const ALL: &[&str] = &["weak", "soft", "phantom", "finalizer"];

/// A dump of a model, opened, and the same read plainly.
pub struct Opened {
    pub heap: Heap,
    pub graph: ObjectGraph,
    pub raw: Raw,
    pub dump: Dump,
}

impl Opened {
    pub fn of(model: &HeapModel) -> Self {
        Self::open(Dump::of(&model.write(&Options::hotspot()).bytes()))
    }

    pub fn open(dump: Dump) -> Self {
        let (heap, graph) = dump.open_graph();
        let raw = Raw::read(bytes(&heap));
        Self { heap, graph, raw, dump }
    }

    pub fn view(&self) -> View<'_> {
        View::new(&whole_dump(&self.heap, &self.graph))
    }

    pub fn index(&self, id: impl Into<ObjectId>) -> ObjectIndex {
        self.graph.objects.addresses.index_of(hprof_cli::ObjectId(id.into().0)).unwrap()
    }

    pub fn id(&self, object: ObjectIndex) -> u64 {
        self.graph.objects.addresses.id_of(object).unwrap().0
    }

    fn paths(&self, id: impl Into<ObjectId>, most: usize, excluded: Exclusions) -> ShortestPaths {
        shortest::paths(&self.view().edges, self.index(id), most, excluded)
    }

    /// The references along a path, as they are shown.
    fn labels(&self, path: &[ObjectIndex]) -> Vec<Option<String>> {
        self.view().steps(path, 0..path.len()).into_iter().map(|step| step.reference).collect()
    }

    fn merged(&self, pattern: &str, excluded: Exclusions, show: MergeLimits) -> MergedPaths {
        let selection: Selection = pattern.parse().unwrap();
        let objects = selection.objects(&whole_dump(&self.heap, &self.graph));
        merged::merge_paths(&self.view().edges, &objects, excluded, show).unwrap()
    }

    /// Checks that each link of a path exists, and its description.
    pub fn check(&self, view: &View<'_>, path: &[ObjectIndex], excluded: &[&str]) {
        let raw = &self.raw;
        let ids: Vec<u64> = path.iter().map(|object| self.id(*object)).collect();
        assert!(raw.roots.contains_key(&ids[0]), "{ids:x?} starts at a root");
        let kinds: BTreeSet<RootKind> = view.root(path[0]).kinds.into_iter().collect();
        assert_eq!(kinds, raw.roots[&ids[0]].iter().copied().collect());
        let inner = ids.get(1..ids.len() - 1).unwrap_or_default();
        assert!(!inner.iter().any(|id| raw.roots.contains_key(id)), "{ids:x?} leads through a root");
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:x?} has an object twice");
        let steps = view.steps(path, 0..path.len());
        for (pair, step) in ids.windows(2).zip(&steps[1..]) {
            let there = raw.between(pair[0], pair[1]);
            assert!(!there.is_empty(), "{ids:x?}: {:x} does not hold {:x}", pair[0], pair[1]);
            assert!(there.iter().any(|reference| raw.is_followed(pair[0], reference, excluded)));
            let labels: Vec<&str> = there.iter().map(|reference| reference.label.as_str()).collect();
            let mut shown = labels.iter().take(3).copied().collect::<Vec<_>>().join(", ");
            if labels.len() > 3 {
                shown += &format!(", {} more", labels.len() - 3);
            }
            assert_eq!(step.reference.as_deref(), Some(shown.as_str()));
            let is_weak = there.iter().all(|reference| reference.is_referent);
            assert_eq!(step.strength.name(), if is_weak { raw.strength(pair[0]) } else { "strong" });
        }
        let class = |id: &u64| raw.names.get(&raw.class_of[id]).cloned();
        let shown: Vec<Option<String>> = steps.iter().map(|step| step.class.clone()).collect();
        assert_eq!(shown, ids.iter().map(class).collect::<Vec<_>>());
    }

    /// Checks trees of merged paths in which nothing is left out.
    fn check_merged(&self, merged: &MergedPaths, sought: &BTreeSet<u64>, excluded: &[&str]) {
        let raw = &self.raw;
        let distances = raw.depths(|_| true, excluded);
        let mut below = vec![0u32; merged.nodes.len()];
        let mut found = BTreeSet::new();
        for (at, node) in merged.nodes.iter().enumerate().rev() {
            let id = self.id(ObjectIndex(node.object.0));
            assert_eq!(distances[&id], node.depth as usize, "{id:x} is on a shortest path");
            assert_eq!(node.is_sought, sought.contains(&id));
            assert_eq!(node.objects, below[at] + u32::from(node.is_sought), "{id:x}");
            assert_eq!(node.more.nodes, 0);
            if node.is_sought {
                assert!(found.insert(id), "{id:x} is in one place");
            }
            match node.parent {
                None => assert!(raw.roots.contains_key(&id)),
                Some(parent) => {
                    assert!(parent < at && merged.nodes[parent].depth + 1 == node.depth);
                    below[parent] += node.objects;
                    let holder = self.id(ObjectIndex(merged.nodes[parent].object.0));
                    let holds = |reference: &&raw::Reference| raw.is_followed(holder, reference, excluded);
                    assert!(raw.between(holder, id).iter().any(holds), "{holder:x} holds {id:x}");
                }
            }
        }
        let reachable: BTreeSet<u64> =
            sought.iter().copied().filter(|id| distances.contains_key(id)).collect();
        assert_eq!(found, reachable);
        assert_eq!(merged.found, found.len() as u64);
        let tops =
            merged.nodes.iter().filter(|node| node.parent.is_none()).map(|node| u64::from(node.objects));
        assert_eq!(tops.sum::<u64>(), merged.found);
        let all = raw.distances(&[]);
        let unreachable = sought.iter().filter(|id| !all.contains_key(id)).count() as u64;
        assert_eq!((merged.sought, merged.unreachable), (sought.len() as u64, unreachable));
    }
}

#[test]
fn paths_of_real_dumps_are_chains_of_least_length() {
    for name in ["jdk8.hprof.zst", "jdk11.hprof.zst", "jdk17.hprof.zst", "jdk25-compact.hprof.zst"] {
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/jdk").join(name);
        let opened = Opened::open(Dump::sample(&sample));
        let view = opened.view();
        let (strong, all) = (opened.raw.distances(ALL), opened.raw.distances(&[]));
        let (mut several, mut weak) = (0, 0);
        for object in (0..opened.graph.objects.len()).step_by(97 * portion::step()) {
            let id = opened.id(ObjectIndex(object));
            // There is a chain of 100,000 links, of which some are enough.
            if all.get(&id).is_some_and(|distance| *distance > 100) && object % 499 != 0 {
                continue;
            }
            let found = shortest::paths(&view.edges, ObjectIndex(object), 4, Exclusions::all_but_strong());
            let Some(distance) = all.get(&id) else {
                assert_eq!(found.paths, Vec::<Vec<ObjectIndex>>::new(), "{name}: {id:x} is unreachable");
                continue;
            };
            let distance = strong.get(&id).unwrap_or(distance);
            assert_eq!(found.only_excluded, !strong.contains_key(&id), "{name}: {id:x}");
            assert_eq!(found.paths[0].len(), distance + 1, "{name}: {id:x}");
            assert!(found.paths.is_sorted_by_key(Vec::len));
            assert_eq!(found.paths.iter().collect::<BTreeSet<_>>().len(), found.paths.len());
            let excluded = if found.only_excluded { &[] } else { ALL };
            for path in &found.paths {
                assert_eq!(path.last(), Some(&ObjectIndex(object)));
                opened.check(&view, path, excluded);
            }
            several += u64::from(found.paths.len() > 1);
            weak += usize::from(found.only_excluded);
        }
        assert!(
            several > portion::cases(50),
            "{name}: {several} objects have several paths, {weak} weak ones only"
        );
    }
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn merged_paths_of_real_dumps_are_shortest_paths() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/jdk/jdk17.hprof.zst");
    let opened = Opened::open(Dump::sample(&sample));
    for pattern in ["java.lang.String", "HeapZoo$Link", "java.lang.Class", "java.lang.ref.Finalizer"] {
        let merged = opened.merged(pattern, Exclusions::all_but_strong(), MergeLimits::default());
        let ids = opened
            .raw
            .class_of
            .iter()
            .filter(|(_, class)| opened.raw.names.get(*class).is_some_and(|name| name == pattern));
        opened.check_merged(&merged, &ids.map(|(id, _)| *id).collect(), ALL);
    }
    // Omitted rows are counted, and the sums stay the same.
    for show in [
        MergeLimits { top: Some(2), ..MergeLimits::default() },
        MergeLimits { depth: Some(4), ..MergeLimits::default() },
        MergeLimits { top: Some(5), branches: Some(24), depth: None, has_examples: true },
        MergeLimits { top: None, branches: Some(3), depth: Some(9), has_examples: false },
    ] {
        let merged = opened.merged("java.lang.String", Exclusions::all_but_strong(), show);
        let mut sums: Vec<u64> =
            merged.nodes.iter().map(|node| node.more.objects + u64::from(node.is_sought)).collect();
        for (at, node) in merged.nodes.iter().enumerate().rev() {
            assert_eq!(sums[at], u64::from(node.objects), "{show:?}");
            assert!(show.depth.is_none_or(|depth| node.depth < depth));
            if let Some(parent) = node.parent {
                sums[parent] += u64::from(node.objects);
            }
        }
        let tops =
            merged.nodes.iter().filter(|node| node.parent.is_none()).map(|node| u64::from(node.objects));
        assert_eq!(tops.sum::<u64>() + merged.more.objects, merged.found);
        assert!(show.branches.is_none() || merged.nodes.len() < 500, "{} nodes", merged.nodes.len());
    }
}

/// Numbers below a limit that look random, the same for the same seed.
pub fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    }
}

/// Small heaps with random references of all sorts.
pub fn random_model(seed: u64) -> (HeapModel, Vec<ObjectId>) {
    let mut random = random(seed);
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let base = model.class("Base", Some(jdk.object), &[("a", Type::Object)]);
    let node = model.class("Node", Some(base), &[("a", Type::Object), ("n", Type::Int), ("b", Type::Object)]);
    let weak = model.class("MyWeak", Some(jdk.weak_reference), &[("value", Type::Object)]);
    let mut objects: Vec<ObjectId> = vec![node.into(), base.into()];
    let first = model.instance_with(node, &[]);
    objects.push(first);
    for _ in 0..3 + random(4) {
        objects.push(match random(4) {
            0 => model.object_array(jdk.object_array, &vec![ObjectId::NULL; 1 + random(6)]),
            1 => model.instance_with(weak, &[]),
            _ => model.instance_with(node, &[]),
        });
    }
    let thread = jdk.thread(&mut model, "worker", false, 5);
    let pick = |random: &mut dyn FnMut(usize) -> usize| match random(3) {
        0 => ObjectId::NULL,
        _ => objects[random(objects.len())],
    };
    for object in objects.iter().skip(2) {
        let expected = model.expected();
        let known = expected.object(object.0).unwrap();
        match known.class_name.as_deref() {
            Some("Node") => {
                let values = [
                    pick(&mut random).into(),
                    Value::Int(7),
                    pick(&mut random).into(),
                    pick(&mut random).into(),
                ];
                model.set_values(*object, &values);
            }
            Some("MyWeak") => {
                model.set_field(*object, "referent", pick(&mut random));
                model.set_field(
                    *object,
                    "value",
                    if random(4) == 0 { pick(&mut random) } else { ObjectId::NULL },
                );
            }
            _ => {
                let elements: Vec<ObjectId> = (0..known.elements).map(|_| pick(&mut random)).collect();
                model.set_elements(*object, &elements);
            }
        }
    }
    let held = pick(&mut random);
    model.class_mut(node).statics.push(("HELD".to_owned(), held.into()));
    let trace = model.trace(1, &[StackFrame::new(node, "run", "Node.java", 3)]);
    model.root(thread, Root::ThreadObject { thread: 1, trace });
    for class in [jdk.object, jdk.class, jdk.thread, jdk.reference, jdk.weak_reference] {
        model.root(class, Root::StickyClass);
    }
    for _ in 0..random(3) {
        let object = objects[random(objects.len())];
        model.root(
            object,
            if random(2) == 0 {
                Root::JniGlobal { reference: 1 }
            } else {
                Root::JavaFrame { thread: 1, frame: 0 }
            },
        );
    }
    (model, objects)
}

#[test]
fn all_paths_of_small_heaps_are_found() {
    let mut seen: HashMap<usize, usize> = HashMap::new();
    for seed in 0..120 {
        let (model, objects) = random_model(seed);
        let opened = Opened::of(&model);
        let view = opened.view();
        for object in objects {
            for (excluded, names) in [(Exclusions::all_but_strong(), ALL), (Exclusions::NONE, &[] as &[&str])]
            {
                let mut expected = opened.raw.all_paths(object.0, names);
                let only_excluded = expected.is_empty() && !opened.raw.all_paths(object.0, &[]).is_empty();
                if only_excluded {
                    expected = opened.raw.all_paths(object.0, &[]);
                }
                for most in [1, 3, 1000] {
                    let found = opened.paths(object, most, excluded);
                    let shown: Vec<_> = found.paths.iter().map(|path| opened.labels(path)).collect();
                    let lengths =
                        |paths: &mut dyn Iterator<Item = usize>| paths.take(most).collect::<Vec<_>>();
                    assert_eq!(
                        lengths(&mut found.paths.iter().map(Vec::len)),
                        lengths(&mut expected.iter().map(Vec::len)),
                        "seed {seed}, {:x}, up to {most}: {shown:?} {:x?} {expected:x?}",
                        object.0,
                        found.paths.iter().flatten().map(|object| opened.id(*object)).collect::<Vec<_>>()
                    );
                    assert_eq!(found.only_excluded, only_excluded && !expected.is_empty());
                    assert_eq!(
                        found.are_all,
                        expected.len() < most,
                        "seed {seed}, {:x}, up to {most}",
                        object.0
                    );
                    let names = if only_excluded { &[] } else { names };
                    found.paths.iter().for_each(|path| opened.check(&view, path, names));
                    if most == 1000 {
                        let ids =
                            |path: &Vec<ObjectIndex>| path.iter().map(|object| opened.id(*object)).collect();
                        let mut found: Vec<Vec<u64>> = found.paths.iter().map(ids).collect();
                        found.sort_by_key(|path| (path.len(), path.clone()));
                        assert_eq!(found, expected);
                    }
                }
                *seen.entry(expected.len().min(20)).or_default() += 1;
            }
        }
        let merged = opened.merged("Node", Exclusions::all_but_strong(), MergeLimits::default());
        let node = opened.raw.class_of.iter().filter(|(_, class)| opened.raw.names[class] == "Node");
        if !merged.followed_all {
            opened.check_merged(&merged, &node.map(|(id, _)| *id).collect(), ALL);
        }
    }
    assert!((0..12).all(|paths| seen.contains_key(&paths)), "{seen:?}");
}

/// A heap with one object that is sought, held by what `hold` makes.
fn held(hold: impl FnOnce(&mut HeapModel, &Jdk, ClassId, ObjectId)) -> (Opened, ObjectId) {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let holder = model.class("Holder", Some(jdk.object), &[("left", Type::Object), ("right", Type::Object)]);
    let object = jdk.string(&mut model, "sought");
    hold(&mut model, &jdk, holder, object);
    model.root(jdk.object, Root::StickyClass);
    (Opened::of(&model), object)
}

#[test]
fn both_ways_of_a_diamond_are_shown() {
    let (opened, object) = held(|model, _, holder, object| {
        let left = model.instance_with(holder, &[("left", object.into())]);
        let right = model.instance_with(holder, &[("right", object.into()), ("left", object.into())]);
        let top = model.instance_with(holder, &[("left", left.into()), ("right", right.into())]);
        model.root(top, Root::JniGlobal { reference: 8 });
    });
    let found = opened.paths(object, 10, Exclusions::all_but_strong());
    assert!(found.are_all);
    let labels: Vec<_> = found.paths.iter().map(|path| opened.labels(path)).collect();
    let text = |label: &str| Some(label.to_owned());
    assert_eq!(labels, [[None, text("left"), text("left")], [None, text("right"), text("left, right")]]);
    assert_eq!(opened.paths(object, 1, Exclusions::all_but_strong()).paths.len(), 1);
}

#[test]
fn a_local_of_a_thread_is_a_root_in_its_frame() {
    let (opened, object) = held(|model, jdk, holder, object| {
        let thread = jdk.thread(model, "worker", false, 5);
        let frames = [
            StackFrame::new(holder, "inner", "Holder.java", 7),
            StackFrame::new(holder, "run", "Holder.java", 3),
        ];
        let trace = model.trace(4, &frames);
        model.root(thread, Root::ThreadObject { thread: 4, trace });
        model.root(object, Root::JavaFrame { thread: 4, frame: 1 });
        model.root(object, Root::JniLocal { thread: 4, frame: -1 });
    });
    let found = opened.paths(object, 5, Exclusions::all_but_strong());
    let index = opened.index(object);
    assert_eq!((found.paths, found.are_all), (vec![vec![index]], true));
    let root = opened.view().root(index);
    assert_eq!(root.kinds, [RootKind::JavaFrame, RootKind::JniLocal]);
    assert_eq!(root.thread.unwrap().name.as_deref(), Some("worker"));
    assert_eq!(root.frame.unwrap().to_string(), "Holder.run(Holder.java:3)");
    // Its characters are held by it.
    let step = opened.graph.references(index).next().unwrap();
    let found = shortest::paths(&opened.view().edges, step, 5, Exclusions::all_but_strong());
    assert_eq!(found.paths, [vec![index, step]]);
}

#[test]
fn what_a_thread_holds_that_is_no_root_is_a_root() {
    let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
    out.string(1, "A");
    out.load_class(1, 0x10, 0, 1);
    out.start_thread(&StartThread { thread: 4, object: 0x100, name: 1, ..StartThread::default() });
    let mut heap = HeapWriter::new(IdSize::Eight);
    heap.class_dump(&ClassDump { id: 0x10, fields: &[(1, Type::Object)], ..ClassDump::default() });
    heap.root(0x10, Root::StickyClass);
    heap.root(0x200, Root::JavaFrame { thread: 4, frame: -1 });
    for (id, to) in [(0x100, 0), (0x200, 0x300), (0x300, 0)] {
        heap.instance(id, 0, 0x10, &[Value::Object(to)]);
    }
    out.heap_segment(&heap);
    out.heap_dump_end();
    let opened = Opened::open(Dump::of(&out.into_bytes()));
    let [thread, local, held] = [0x100, 0x200, 0x300].map(|id| opened.index(ObjectId(id)));
    let paths = |object| shortest::paths(&opened.view().edges, object, 5, Exclusions::all_but_strong()).paths;
    assert_eq!(paths(local), [vec![local]]);
    assert_eq!(paths(held), [vec![local, held]]);
    assert!(paths(thread).is_empty());
    let tree = &opened.graph.tree;
    let position = tree.reachable_position(local).expect("a running thread holds it");
    assert_eq!((tree.dominator(position), tree.retained_objects(position)), (None, 2));
    assert_eq!(tree.reachable_position(thread), None);
    assert_eq!(opened.view().root(local).thread.unwrap().id, Some(hprof_cli::ObjectId(0x100)));
}

#[test]
fn what_only_weak_references_hold_is_told() {
    let (opened, object) = held(|model, jdk, holder, object| {
        let weak = jdk.weak(model, object);
        let top = model.instance_with(holder, &[("left", weak.into())]);
        model.root(top, Root::JniGlobal { reference: 8 });
    });
    for (excluded, only_excluded) in [
        (Exclusions::all_but_strong(), true),
        (Exclusions::from_strengths([Strength::Weak]), true),
        (Exclusions::from_strengths([Strength::Soft, Strength::Phantom]), false),
        (Exclusions::NONE, false),
    ] {
        let found = opened.paths(object, 5, excluded);
        assert_eq!((found.only_excluded, found.paths.len()), (only_excluded, 1), "{excluded:?}");
        let steps = opened.view().steps(&found.paths[0], 0..found.paths[0].len());
        assert_eq!(steps.last().unwrap().strength, Strength::Weak);
        let merged = opened.merged("java.lang.String", excluded, MergeLimits::default());
        assert_eq!((merged.followed_all, merged.found), (only_excluded, 1));
        assert_eq!(merged.only_excluded, u64::from(only_excluded));
    }
    // A field of its own makes a weak reference a strong one.
    let (opened, object) = held(|model, jdk, holder, object| {
        let own = model.class("Own", Some(jdk.weak_reference), &[("value", Type::Object)]);
        let own = model.instance_with(own, &[("referent", object.into()), ("value", object.into())]);
        let top = model.instance_with(holder, &[("left", own.into())]);
        model.root(top, Root::JniGlobal { reference: 8 });
    });
    let found = opened.paths(object, 5, Exclusions::all_but_strong());
    assert_eq!((found.only_excluded, found.paths.len()), (false, 1));
    assert_eq!(opened.labels(&found.paths[0])[2].as_deref(), Some("value, referent"));
}

#[test]
fn a_class_object_is_held_by_its_instances_too() {
    let (opened, _) = held(|model, _, holder, _| {
        let one = model.instance_with(holder, &[]);
        let other = model.instance_with(holder, &[("left", one.into())]);
        model.root(other, Root::JniGlobal { reference: 8 });
    });
    let class = opened.raw.names.iter().find(|(_, name)| *name == "Holder").unwrap().0;
    let found = opened.paths(ObjectId(*class), 5, Exclusions::all_but_strong());
    assert!(found.are_all);
    let labels: Vec<_> = found.paths.iter().map(|path| opened.labels(path)).collect();
    let text = |label: &str| Some(label.to_owned());
    assert_eq!(labels, [vec![None, text("<class>")], vec![None, text("left"), text("<class>")]]);
}

#[test]
fn a_long_chain_is_followed_to_its_end() {
    let length = 30_000;
    let (opened, _) = held(|model, _, holder, object| {
        let mut next = object;
        for _ in 0..length {
            let link = model.instance_with(holder, &[("left", next.into())]);
            // Back again, as in a doubly linked list.
            if next != object {
                model.set_field(next, "right", link);
            }
            next = link;
        }
        model.root(next, Root::JniGlobal { reference: 8 });
    });
    let object = opened.raw.class_of.iter().find(|(id, class)| {
        opened.raw.names[class] == "java.lang.String" && opened.raw.references[id].len() == 2
    });
    let found = opened.paths(ObjectId(*object.unwrap().0), 3, Exclusions::all_but_strong());
    assert_eq!((found.paths.len(), found.paths[0].len(), found.are_all), (1, length + 1, true));
    let merged = opened.merged("Holder", Exclusions::all_but_strong(), MergeLimits::default());
    assert_eq!((merged.found, merged.nodes.len()), (length as u64, length));
    let short = opened.merged(
        "Holder",
        Exclusions::all_but_strong(),
        MergeLimits { branches: Some(10), ..MergeLimits::default() },
    );
    assert!(short.nodes.len() < 2000);
}

#[test]
fn a_limit_below_each_node_limits_the_answer() {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let node = model.class("app.Node", Some(jdk.object), &[("left", Type::Object), ("right", Type::Object)]);
    // A binary tree with 4,096 leaves.
    let mut level: Vec<ObjectId> = (0..4096).map(|_| model.instance_with(node, &[])).collect();
    while level.len() > 1 {
        let above = level.chunks(2).map(|pair| model.instance(node, &[pair[0].into(), pair[1].into()]));
        level = above.collect();
    }
    model.root(level[0], Root::JniGlobal { reference: 8 });
    let dump = Dump::of(&model.write(&Options::hotspot()).bytes());
    for (top, most) in [("2", 24), ("30", 30)] {
        let table = run(&dump, &["app.Node", "--top", top]).1;
        assert!(table.lines().count() < 3 * most, "{table}");
        let json = run(&dump, &["app.Node", "--top", top, "--format", "json"]).1;
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert!((2..2 * most).contains(&json["rows"].as_array().unwrap().len()), "{json}");
    }
    let all = run(&dump, &["app.Node", "--top", "0", "--format", "json"]).1;
    let all: serde_json::Value = serde_json::from_str(&all).unwrap();
    assert_eq!(all["rows"].as_array().unwrap().len(), 8191);
}

/// Runs `paths-to-root` on a dump: exit code, stdout, stderr.
pub fn run(dump: &Dump, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
    command.arg("paths-to-root").arg(&dump.path).args(arguments);
    command.arg("--index-dir").arg(dump.options().index_dir.unwrap());
    let output = command.env_remove("NO_COLOR").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_command_shows_paths_and_says_what_there_is_none_of() {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let holder = model.class("a\u{1b}[2J.Holder", Some(jdk.object), &[("field\u{202e}", Type::Object)]);
    let sought = jdk.string(&mut model, "esc\u{1b}aped");
    let link = model.instance_with(holder, &[("field\u{202e}", sought.into())]);
    let weak = jdk.weak(&mut model, link);
    let thread = jdk.thread(&mut model, "wor\u{1b}ker", false, 5);
    let trace = model.trace(4, &[StackFrame::new(holder, "run", "Holder.java", 3)]);
    model.root(thread, Root::ThreadObject { thread: 4, trace });
    model.root(weak, Root::JavaFrame { thread: 4, frame: 0 });
    model.root(jdk.object, Root::StickyClass);
    let garbage = model.instance_with(holder, &[]);
    let written = model.write(&Options::hotspot()).bytes();
    let dump = Dump::of(&written);
    let id = |object: ObjectId| format!("{:#x}", object.0);

    let (code, table, notes) = run(&dump, &[&id(sought)]);
    assert_eq!(code, 0);
    assert!(table.starts_with(
        "path 1, through excluded references: java frame of thread \"wor\\u001bker\" in a\\u001b[2J.Holder.run(Holder.java:3)\n"
    ), "{table}");
    assert!(table.contains("referent (weak)") && table.contains("field\\u202e"), "{table}");
    assert!(!table.contains("path 2"), "{table}");
    assert!(notes.contains("is reachable only through excluded references"), "{notes}");
    assert!(run(&dump, &[&id(sought), "--quiet"]).2.is_empty());

    let (code, json, _) = run(&dump, &[&id(sought), "-f", "json", "--all-references"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let row = &json["rows"][0];
    assert_eq!((code, &row["is_through_excluded"]), (0, &false.into()));
    let root = &row["root"];
    assert_eq!((&root["object"], &root["class"]), (&id(weak).into(), &"java.lang.ref.WeakReference".into()));
    assert_eq!((&root["kinds"], &root["thread"]), (&serde_json::json!(["java frame"]), &id(thread).into()));
    assert_eq!(
        (&root["held_by_frame"]["method"], &root["held_by_frame"]["line"]),
        (&"run".into(), &3.into())
    );
    let steps = row["steps"].as_array().unwrap();
    let column = |key: &str| steps.iter().map(|step| step[key].clone()).collect::<serde_json::Value>();
    assert_eq!(column("object"), serde_json::json!([id(weak), id(link), id(sought)]));
    assert_eq!(column("reference"), serde_json::json!([null, "referent", "field\u{202e}"]));
    assert_eq!(column("strength"), serde_json::json!([null, "weak", "strong"]));
    assert_eq!(json["targets"][0]["is_complete"], true);

    let (code, csv, notes) = run(&dump, &["java.lang.String", "-f", "csv"]);
    assert_eq!((code, csv.lines().count()), (0, 1 + 2), "{csv}");
    assert!(notes.contains("1 of 2 objects are reachable only through excluded references"), "{notes}");
    let (code, csv, _) = run(&dump, &["java.lang.String", "-f", "csv", "--all-references"]);
    assert_eq!((code, csv.lines().count()), (0, 1 + 5), "{csv}");
    assert!(!csv.contains('\u{1b}') && !csv.contains('\u{202e}'));

    for (arguments, code, said) in [
        (&[id(garbage).as_str()] as &[&str], 1, "is unreachable"),
        (&["0x8"], 1, "; the nearest objects are 0x"),
        (&["java.lang.Strin"], 1, "hint: did you mean java.lang.String"),
        (&["java.lang.ThreadGroup"], 1, "the class object of java.lang.ThreadGroup is 0x"),
        (&["0xyz"], 2, "is not an object ID"),
        (&[&id(sought), "--exclude", "weak", "--all-references"], 2, "cannot be used with"),
    ] {
        let (got, stdout, notes) = run(&dump, arguments);
        assert_eq!(got, code, "{arguments:?}: {stdout}{notes}");
        assert!(notes.contains(said), "{arguments:?}: {notes}");
    }
    for format in ["csv", "json"] {
        assert_eq!(run(&dump, &["0x8", "-f", format]).0, 1);
    }

    let cut = Dump::of(&written[..written.len() - 12]);
    assert_eq!(run(&cut, &[&id(sought)]).0, 3);
}
