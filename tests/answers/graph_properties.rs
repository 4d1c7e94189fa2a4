//! The graph of random dumps: references both ways, roots, dominators and sizes are those that follow from the model
//! that was written, by definition.

use hprof_cli::{ObjectIndex, TreePosition};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::kit::dump::{Dump, whole_dump, with_threads};
use crate::kit::strategies::dump;
use hprof_index::layout::sizes::Sizes;
use hprof_index::{Heap, ObjectGraph};
use hprof_query::dominators::retained_of_set::{self, RetainedTotals};
use hprof_query::dominators::retained_of_set_search::WalkLimits;
use hprof_query::objects::strength::Exclusions;
use hprof_query::paths::merged::{self, MergeLimits};
use hprof_query::paths::shortest;
use hprof_query::paths::steps::View;
use hprof_writer::{
    ArbRoot, ClassDump, DumpWriter, Elements, Expected, ExpectedObject, HeapModel, HeapWriter, IdSize, Jdk,
    ObjectId, ObjectKind, Options, Order, Root, StackFrame, Type, Value, Version, examples,
};
use proptest::prelude::*;
use roaring::RoaringBitmap;

/// A graph by the model: objects are numbered by ascending id.
struct Naive {
    ids: Vec<u64>,
    /// Without references to class objects.
    rows: Vec<BTreeSet<u32>>,
    /// The class object of each object's class.
    classes: Vec<Option<u32>>,
    roots: BTreeSet<u32>,
    /// Numbers of roots whose object is not in the dump, and of those whose thread is not.
    missing: (u64, u64),
    assumed: bool,
}

impl Naive {
    fn of(model: &HeapModel, expected: &Expected) -> Self {
        let ids: Vec<u64> = expected.objects.iter().map(|object| object.id).collect();
        let mut naive = Self {
            rows: vec![BTreeSet::new(); ids.len()],
            classes: Vec::new(),
            roots: BTreeSet::new(),
            missing: (0, 0),
            assumed: false,
            ids,
        };
        for (number, object) in expected.objects.iter().enumerate() {
            let to = targets(model, object);
            naive.rows[number] = to.iter().filter_map(|id| naive.number(*id)).collect();
            let class = class_of(model, object).and_then(|id| naive.number(id));
            naive.classes.push(class);
        }
        naive.add_roots(model, expected);
        naive
    }

    fn number(&self, id: u64) -> Option<u32> {
        self.ids.binary_search(&id).ok().map(|number| number as u32)
    }

    /// Roots of a thread that is in the dump are references of the thread.
    fn add_roots(&mut self, model: &HeapModel, expected: &Expected) {
        let thread = |(id, root): &(u64, Root)| match root {
            Root::ThreadObject { thread, .. } => Some((*thread, self.number(*id)?)),
            _ => None,
        };
        let threads: BTreeMap<u32, u32> = expected.root_list.iter().filter_map(thread).collect();
        let sticky = |(_, root): &(u64, Root)| *root == Root::StickyClass;
        self.assumed = !expected.root_list.iter().any(sticky);
        for (id, root) in &expected.root_list {
            if *root == Root::Unreachable {
                continue;
            }
            let Some(number) = self.number(*id) else {
                self.missing.0 += u64::from(*id != 0);
                continue;
            };
            let thread = match root {
                Root::JniLocal { thread, .. }
                | Root::JavaFrame { thread, .. }
                | Root::NativeStack { thread }
                | Root::ThreadBlock { thread } => Some(threads.get(thread)),
                _ => None,
            };
            if let Some(Some(thread)) = thread {
                self.rows[*thread as usize].insert(number);
            } else {
                self.missing.1 += u64::from(thread.is_some());
                self.roots.insert(number);
            }
        }
        if self.assumed {
            let boot = model.classes().iter().filter(|class| class.dumps > 0 && class.loader == 0);
            let boot: Vec<u32> = boot.filter_map(|class| self.number(class.id.0)).collect();
            self.assumed = !boot.is_empty();
            self.roots.extend(boot);
        }
    }

    /// Returns the objects that are reachable if one is removed.
    fn reached(&self, without: Option<u32>) -> BTreeSet<u32> {
        self.reached_without(&without.into_iter().collect())
    }

    /// Returns the objects that are reachable if some are removed.
    fn reached_without(&self, without: &BTreeSet<u32>) -> BTreeSet<u32> {
        let mut seen = BTreeSet::new();
        let mut open: Vec<u32> = self.roots.iter().copied().collect();
        while let Some(object) = open.pop() {
            if !without.contains(&object) && seen.insert(object) {
                open.extend(self.rows[object as usize].iter().chain(&self.classes[object as usize]));
            }
        }
        seen
    }

    /// Returns the objects that each object dominates, itself included.
    fn dominated(&self) -> BTreeMap<u32, BTreeSet<u32>> {
        let all = self.reached(None);
        let without = |object: &u32| (*object, &all - &self.reached(Some(*object)));
        all.iter().map(without).collect()
    }
}

/// Returns the IDs that an object refers to, except its class object.
fn targets(model: &HeapModel, object: &ExpectedObject) -> Vec<u64> {
    let known = |class: &hprof_writer::ClassId| model.class_def(*class).dumps > 0;
    match object.kind {
        ObjectKind::Instance => {
            // If a class is not dumped, its fields and superclasses are unknown.
            let chain = model.chain(object.class.unwrap()).into_iter().take_while(known);
            let fields: usize = chain.map(|class| model.class_def(class).fields.len()).sum();
            let values = model.values(ObjectId(object.id)).unwrap();
            values[..fields].iter().filter_map(|value| id_in(*value)).collect()
        }
        ObjectKind::Class => {
            let def = model.class_def(object.class.unwrap());
            let statics = def.statics.iter().filter_map(|(_, value)| id_in(*value));
            statics.chain(def.superclass.map(|class| class.0)).chain([def.loader]).collect()
        }
        _ => object.references.iter().map(|(_, id)| *id).collect(),
    }
}

fn id_in(value: Value) -> Option<u64> {
    if let Value::Object(id) = value { Some(id) } else { None }
}

fn class_of(model: &HeapModel, object: &ExpectedObject) -> Option<u64> {
    let named = |name: &str| {
        let class = model.classes().iter().find(|class| class.name == name && class.dumps > 0);
        class.map(|class| class.id.0)
    };
    match object.kind {
        ObjectKind::Class => named("java.lang.Class"),
        ObjectKind::PrimitiveArray => named(object.class_name.as_deref().unwrap()),
        _ => Some(object.class.unwrap().0),
    }
}

fn check_references(naive: &Naive, graph: &ObjectGraph) {
    let mut referrers = vec![BTreeSet::new(); naive.ids.len()];
    for (object, row) in (0u32..).zip(&naive.rows) {
        for to in row {
            referrers[*to as usize].insert(object);
        }
    }
    let edges: usize = naive.rows.iter().map(BTreeSet::len).sum();
    assert_eq!(graph.objects.len() as usize, naive.ids.len());
    assert_eq!((graph.references.edges(), graph.referrers.edges()), (edges as u64, edges as u64));
    for (object, id) in (0u32..).zip(&naive.ids) {
        let at = object as usize;
        assert!(
            graph.references(ObjectIndex(object)).eq(naive.rows[at].iter().copied().map(ObjectIndex)),
            "references of {id:#x}"
        );
        assert!(
            graph.referrers(ObjectIndex(object)).eq(referrers[at].iter().copied().map(ObjectIndex)),
            "referrers of {id:#x}"
        );
        assert_eq!(
            graph.class_object_of(ObjectIndex(object)),
            naive.classes[at].map(ObjectIndex),
            "class of {id:#x}"
        );
    }
    assert_eq!(
        (
            graph.references(ObjectIndex(graph.objects.len())).count(),
            graph.referrers(ObjectIndex(u32::MAX)).count()
        ),
        (0, 0)
    );
}

fn check_roots(naive: &Naive, graph: &ObjectGraph) {
    assert!(
        graph.roots.objects().into_iter().eq(naive.roots.iter().copied().map(ObjectIndex)),
        "{:?}",
        graph.roots
    );
    let missing = (graph.roots.missing_objects, graph.roots.missing_threads);
    assert_eq!(
        (missing, graph.roots.boot_classes_assumed),
        (naive.missing, naive.assumed),
        "{:?}",
        graph.roots
    );
}

fn check_dominators(naive: &Naive, graph: &ObjectGraph) {
    let tree = &graph.tree;
    let dominated = naive.dominated();
    assert_eq!((tree.objects() as usize, tree.reachable() as usize), (naive.ids.len(), dominated.len()));
    for object in 0..tree.objects() {
        assert_eq!(tree.reachable_position(ObjectIndex(object)).is_some(), dominated.contains_key(&object));
        assert_eq!(
            tree.position(ObjectIndex(object)).and_then(|at| tree.object_at(at)),
            Some(ObjectIndex(object))
        );
    }
    for (object, below) in &dominated {
        let at = tree.reachable_position(ObjectIndex(*object)).unwrap();
        let found: BTreeSet<u32> = tree.objects_at(at..tree.end(at)).map(|object| object.0).collect();
        assert_eq!(found, *below, "dominated by {object}");
        let bytes: u64 =
            below.iter().map(|below| tree.shallow_bytes(tree.position(ObjectIndex(*below)).unwrap())).sum();
        assert_eq!((tree.retained_bytes(at), tree.retained_objects(at) as usize), (bytes, below.len()));
        // Of what dominates it, the one that dominates least.
        let above = dominated.iter().filter(|(above, all)| *above != object && all.contains(object));
        let nearest = above.min_by_key(|(_, all)| all.len()).map(|(above, _)| ObjectIndex(*above));
        assert_eq!(tree.dominator(at).and_then(|above| tree.object_at(above)), nearest, "above {object}");
        // With any other, the nearest that dominates both or is one of them.
        for (other, all) in &dominated {
            let both =
                dominated.iter().filter(|(_, common)| common.contains(object) && common.contains(other));
            let nearest = both.min_by_key(|(_, common)| common.len()).map(|(above, _)| ObjectIndex(*above));
            let other_at = tree.reachable_position(ObjectIndex(*other)).unwrap();
            let found = tree.common_dominator(at, other_at).and_then(|above| tree.object_at(above));
            assert_eq!(found, nearest, "above {object} and {other}");
            assert_eq!(all.contains(object), tree.dominates(other_at, at));
        }
        let retained: Vec<u64> = tree.children(at).map(|child| tree.retained_bytes(child)).collect();
        assert!(retained.is_sorted_by(|one, other| one >= other), "largest first: {retained:?}");
    }
    let top: Vec<u64> = tree.top().map(|child| tree.retained_bytes(child)).collect();
    assert!(top.is_sorted_by(|one, other| one >= other), "largest first: {top:?}");
    assert_eq!(top.iter().sum::<u64>(), tree.reachable_bytes());
}

/// Checks the retained sizes of sets of objects, in each of the ways in which they are computed.
fn check_retained(naive: &Naive, graph: &ObjectGraph) {
    let tree = &graph.tree;
    let all = naive.reached(None);
    let bytes = |objects: &BTreeSet<u32>| -> u64 {
        objects.iter().map(|object| tree.shallow_bytes(tree.position(ObjectIndex(*object)).unwrap())).sum()
    };
    let mut state = naive.ids.len() as u64;
    let mut random = |below: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u32 % below
    };
    for sparse in [2, 2, 3, 3, 5, 5, 9, 9, 17, 17, 33, 33] {
        let members: BTreeSet<u32> = (0..tree.objects()).filter(|_| random(sparse) == 0).collect();
        let set: RoaringBitmap = members.iter().copied().collect();
        let gone = &all - &naive.reached_without(&members);
        for (visited, looked_at) in
            [(0, 0), (u32::MAX, 0), (u32::MAX, 4), (u32::MAX, u32::MAX), (3, u32::MAX)]
        {
            let limits = WalkLimits { dominated: u32::MAX, visited, looked_at };
            let retained = retained_of_set::retained_within(graph, &set, limits);
            let expected = RetainedTotals {
                objects: members.len() as u64,
                unreachable_objects: (&members - &all).len() as u64,
                shallow_bytes: bytes(&members),
                retained_bytes: bytes(&gone),
                retained_objects: gone.len() as u64,
            };
            assert_eq!(retained, expected, "{members:?} {limits:?}");
            let found: BTreeSet<u32> =
                retained_of_set::retained_set_within(graph, &set, limits).into_iter().collect();
            assert_eq!(found, &gone | &members, "{members:?} {limits:?}");
        }
    }
}

/// The shallow sizes of all objects of a class make what the class takes.
fn check_sizes(heap: &Heap, graph: &ObjectGraph) {
    let summary = heap.summary();
    let sizes = Sizes::new(summary, None);
    let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
    for at in 0..graph.tree.objects() {
        let class = graph.objects.class(graph.tree.object_at(TreePosition(at)).unwrap()).unwrap();
        *sums.entry(class.0).or_default() += graph.tree.shallow_bytes(TreePosition(at));
    }
    for (number, class) in summary.numbered_classes() {
        let sum = sums.get(&number.0).copied().unwrap_or(0);
        assert_eq!(sum, sizes.total(number), "{} of {:?}", summary.class_name(class), sizes.layout());
    }
}

fn check(model: &HeapModel, options: &Options) {
    let dump = Dump::written(&model.write(options));
    let naive = Naive::of(model, &model.expected());
    let (heap, built) = dump.open_graph();
    let (again, read) = dump.open_graph();
    assert!(heap.is_fresh() && !again.is_fresh());
    for graph in [&built, &read] {
        check_references(&naive, graph);
        check_roots(&naive, graph);
        check_dominators(&naive, graph);
        check_retained(&naive, graph);
        check_sizes(&heap, graph);
        assert!(!graph.is_damaged());
    }
    let reachable = (u64::from(read.tree.reachable()), read.tree.reachable_bytes());
    assert_eq!(again.reachable(), Some(reachable));
}

/// Of several thread objects with one serial number the first in the file counts, wherever that is.
fn only_one_thread_of_a_serial(roots: &mut Vec<ArbRoot>) {
    let mut seen = BTreeSet::new();
    roots.retain(|root| match root.root {
        Root::ThreadObject { thread, .. } => seen.insert(thread),
        _ => true,
    });
}

proptest! {
    #![proptest_config(crate::kit::strategies::property(300))]

    #[test]
    fn the_graph_is_that_of_the_model(mut arb in dump(), threads in 1..5usize) {
        only_one_thread_of_a_serial(&mut arb.roots);
        with_threads(threads, || check(&arb.model(), &arb.options));
    }
}

#[test]
fn the_graph_of_a_heap_with_a_library() {
    for options in [Options::hotspot(), Options::agent(), Options::android()] {
        check(&examples::zoo(), &options);
        check(&threads(), &options);
    }
}

/// Threads with locals of every kind, of which some share objects; one that is not a root, one that nobody knows.
fn threads() -> HeapModel {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let holder = model.class("t.Holder", Some(jdk.object), &[("held", Type::Object)]);
    for class in model.classes().iter().map(|class| class.id).collect::<Vec<_>>() {
        model.root(class, Root::StickyClass);
    }
    let trace = model.trace(1, &[StackFrame::new(holder, "hold", "Holder.java", 1)]);
    let shared = jdk.string(&mut model, "shared");
    for thread in 1..5 {
        let object = jdk.thread(&mut model, "worker", false, 5);
        if thread < 4 {
            model.root(object, Root::ThreadObject { thread, trace });
        }
        for root in [
            Root::JavaFrame { thread, frame: 0 },
            Root::JniLocal { thread, frame: -1 },
            Root::NativeStack { thread },
            Root::ThreadBlock { thread },
        ] {
            let held = jdk.string(&mut model, "held");
            let local = model.instance_with(holder, &[("held", held.into())]);
            model.root(local, root);
            model.root(local, root);
            // Several ways to the same object.
            model.root(shared, root);
        }
        // The thread itself among its locals, as the JVM has it.
        model.root(object, Root::JavaFrame { thread, frame: 1 });
    }
    // A thread is a local of another.
    let other = jdk.thread(&mut model, "other", true, 1);
    model.root(other, Root::JavaFrame { thread: 2, frame: 0 });
    model
}

/// More objects than one thread describes in one go, in any order: rows and referrers of all of them.
#[test]
fn references_of_large_dumps_are_all_there() {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let fields = [("a", Type::Object), ("n", Type::Int), ("b", Type::Object)];
    let node = model.class("t.Node", Some(jdk.object), &fields);
    let leaf = model.class("t.Leaf", Some(node), &[("c", Type::Object)]);
    let mut state = 1u64;
    let mut below = |end: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % end
    };
    let objects: Vec<ObjectId> = (0..80_000)
        .map(|number| match number % 7 {
            0 => model.prim_array(Elements::of_bytes(&[1, 2, 3])),
            1 => model.instance_with(leaf, &[]),
            2 if number % 1000 == 2 => model.object_array(jdk.object_array, &[ObjectId::NULL; 3000]),
            _ => model.instance_with(node, &[]),
        })
        .collect();
    for (number, object) in objects.iter().enumerate() {
        let near = |step: usize| objects[(number + step) % objects.len()];
        match number % 7 {
            0 => {}
            2 if number % 1000 == 2 => {
                let elements: Vec<ObjectId> = (0..3000).map(|_| objects[below(80_000)]).collect();
                model.set_elements(*object, &elements);
            }
            _ => {
                model.set_field(*object, "a", near(below(5)));
                model.set_field(
                    *object,
                    "b",
                    if below(9) == 0 { objects[below(80_000)] } else { ObjectId::NULL },
                );
            }
        }
    }
    for number in 0..20 {
        model.root(objects[number * 1000], Root::JniGlobal { reference: 1 });
    }
    let naive = Naive::of(&model, &model.expected());
    for order in [Order::AsAdded, Order::Shuffled(7)] {
        let options = Options { order, ..Options::hotspot() };
        let (heap, graph) = Dump::written(&model.write(&options)).open_graph();
        check_references(&naive, &graph);
        check_roots(&naive, &graph);
        check_sizes(&heap, &graph);
        assert_eq!(graph.tree.reachable() as usize, naive.reached(None).len());
    }
}

/// A chain of classes too long to be walked for each class or object.
#[test]
fn fields_of_a_very_long_chain_of_superclasses() {
    const CLASSES: u64 = 40_000;
    let reference = ["java.lang.ref.Reference", "java.lang.ref.WeakReference", "referent", "A", "f"];
    let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
    for (id, name) in (1..).zip(reference) {
        out.string(id, &name.replace('.', "/"));
    }
    let mut heap = HeapWriter::new(IdSize::Eight);
    let mut serial = 0;
    let mut class = |heap: &mut HeapWriter, id: u64, name: u64, superclass: u64, fields: &[(u64, Type)]| {
        serial += 1;
        out.load_class(serial, id, 0, name);
        heap.class_dump(&ClassDump { id, superclass, fields, ..ClassDump::default() });
    };
    // Each class of one chain has a field, no class of the other has one.
    let (with, without) = (|at: u64| 0x100_0000 + at * 16, |at: u64| 0x200_0000 + at * 16);
    class(&mut heap, 0x10, 1, 0, &[(3, Type::Object)]);
    class(&mut heap, without(0), 2, 0x10, &[]);
    class(&mut heap, with(0), 4, 0, &[(5, Type::Object)]);
    for at in 1..CLASSES {
        class(&mut heap, with(at), 4, with(at - 1), &[(5, Type::Object)]);
        class(&mut heap, without(at), 4, without(at - 1), &[]);
    }
    let (deep, held, array) = (0x300_0000, 0x300_0010, 0x300_0020);
    let weak = |at: u64| 0x400_0000 + at * 16;
    let mut values = vec![Value::Object(0); CLASSES as usize];
    *values.last_mut().unwrap() = Value::Object(held);
    heap.instance(deep, 0, with(CLASSES - 1), &values);
    heap.instance(held, 0, with(0), &[Value::Object(0)]);
    for at in 0..CLASSES {
        heap.instance(weak(at), 0, without(CLASSES - 1), &[Value::Object(held)]);
    }
    heap.object_array(array, 0, 0x10, &(0..CLASSES).map(weak).chain([deep]).collect::<Vec<_>>());
    heap.root(array, Root::Unknown);
    heap.root(with(0), Root::StickyClass);
    out.heap_segment(&heap);
    out.heap_dump_end();
    let file = out.into_bytes();
    let (done, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let dump = Dump::of(&file);
        let (heap, graph) = dump.open_graph();
        let view = View::new(&whole_dump(&heap, &graph));
        let path =
            [array, deep, held].map(|id| graph.objects.addresses.index_of(hprof_cli::ObjectId(id)).unwrap());
        assert!(graph.references(path[1]).eq([path[2]]));
        let found = shortest::paths(&view.edges, path[2], 5, Exclusions::all_but_strong());
        assert_eq!((found.paths, found.are_all), (vec![path.to_vec()], true));
        assert_eq!(view.steps(&path, 2..3)[0].reference.as_deref(), Some("f"));
        let objects = (0..graph.objects.len()).collect();
        let merged =
            merged::merge_paths(&view.edges, &objects, Exclusions::all_but_strong(), MergeLimits::default())
                .unwrap();
        assert_eq!(merged.found + merged.unreachable, merged.sought);
        done.send(()).unwrap();
    });
    assert!(wait.recv_timeout(Duration::from_secs(60)).is_ok(), "no end, or another answer");
}
