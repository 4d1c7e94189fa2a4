//! The picture of the dominator tree: that it adds up, what it folds and merges, and its limits.

use hprof_index::{Heap, ObjectGraph};
use hprof_query::dominators::areas::{Area, AreaObjects, AreaQuery, areas};
use hprof_query::dominators::preorder::Start;
use hprof_query::objects::label::Labels;
use hprof_values::ObjectId as Id;
use hprof_writer::{ClassId, Elements, HeapModel, Jdk, ObjectId, Options, Root, Type, examples};

use crate::dominators::Sample;
use crate::kit::dump::{Dump, whole_dump};

/// A heap and what it holds below the only object that matters.
struct Made {
    heap: Heap,
    graph: ObjectGraph,
    _dump: Dump,
}

impl Made {
    fn new(model: &HeapModel) -> Self {
        let dump = Dump::written(&model.write(&Options::default()));
        let (heap, graph) = dump.open_graph();
        Self { heap, graph, _dump: dump }
    }

    fn areas(&self, question: &AreaQuery) -> Area {
        picture(&self.heap, &self.graph, question)
    }

    /// The picture of what an object retains.
    fn below(&self, object: ObjectId) -> Area {
        self.areas(&AreaQuery { start: self.start(object), ..AreaQuery::default() })
    }

    fn start(&self, object: ObjectId) -> Start {
        let index = self.graph.objects.addresses.index_of(Id(object.0)).unwrap();
        Start::Object(self.graph.tree.reachable_position(index).unwrap())
    }

    fn name(&self, area: &Area) -> String {
        name(&self.heap, area)
    }
}

/// Describes an area.
fn name(heap: &Heap, area: &Area) -> String {
    let summary = heap.summary();
    let class = |class: &Option<_>| {
        let row = class.and_then(|class| summary.class(class));
        row.map_or("?".to_owned(), |row| summary.class_name(row).to_owned())
    };
    match &area.what {
        AreaObjects::All => "all".to_owned(),
        AreaObjects::Object { class: of, chain, .. } => {
            chain.iter().map(|link| class(&link.class) + " > ").collect::<String>() + &class(of)
        }
        AreaObjects::Merged { class: of, objects, .. } => format!("{objects} x {}", class(of)),
        AreaObjects::Others { objects } => format!("{objects} others"),
    }
}

/// Makes a picture and checks it.
fn picture(heap: &Heap, graph: &ObjectGraph, question: &AreaQuery) -> Area {
    let labels = Labels::new(&whole_dump(heap, graph));
    let area = areas(&whole_dump(heap, graph), &labels, question);
    let mut count = 0;
    check(heap, &area, 0, question, &mut count);
    assert!(count <= question.max_areas.max(1), "{count} areas of {question:?}");
    area
}

/// All adds up.
fn check(heap: &Heap, area: &Area, depth: u32, question: &AreaQuery, count: &mut usize) {
    *count += 1;
    assert!(depth <= question.max_depth);
    assert!(area.shallow_bytes <= area.retained_bytes);
    let below: u64 = area.children.iter().map(|child| child.retained_bytes).sum();
    let objects: u64 = area.children.iter().map(|child| child.retained_objects).sum();
    let own = match &area.what {
        AreaObjects::All => 0,
        AreaObjects::Object { chain, .. } => chain.len() as u64 + 1,
        AreaObjects::Merged { objects, .. } | AreaObjects::Others { objects } => *objects,
    };
    assert!(own <= area.retained_objects);
    if area.children.is_empty() {
        assert_eq!(area.undivided_bytes(), area.retained_bytes - area.shallow_bytes);
    } else {
        assert_eq!(below + area.shallow_bytes, area.retained_bytes, "{}", name(heap, area));
        assert_eq!(objects + own, area.retained_objects, "{}", name(heap, area));
        assert_eq!(area.undivided_bytes(), 0);
    }
    let mut last = u64::MAX;
    for (number, child) in area.children.iter().enumerate() {
        if matches!(child.what, AreaObjects::Others { .. }) {
            assert!(number > 0 && number + 1 == area.children.len(), "others are last, and not alone");
        } else {
            assert!(child.retained_bytes <= last);
            last = child.retained_bytes;
        }
        check(heap, child, depth + 1, question, count);
    }
}

fn print(heap: &Heap, area: &Area, depth: usize, out: &mut String) {
    *out += &format!("{:depth$}{} {}\n", "", name(heap, area), area.retained_bytes, depth = depth * 2);
    for child in &area.children {
        print(heap, child, depth + 1, out);
    }
}

/// Questions of all kinds of limits.
fn questions(start: Start) -> Vec<AreaQuery> {
    let mut questions = Vec::new();
    for max_areas in [0, 1, 2, 3, 10, 100, 1500] {
        for min_share in [0.0, 0.0005, 0.01, 0.5, 2.0, f64::NAN, -1.0] {
            for max_depth in [0, 1, 3, 64] {
                questions.push(AreaQuery { start, max_areas, min_share, max_depth });
            }
        }
    }
    questions
}

fn instance(model: &mut HeapModel, class: ClassId, field: &str, to: ObjectId) -> ObjectId {
    model.instance_with(class, &[(field, to.into())])
}

fn array(model: &mut HeapModel, bytes: u32) -> ObjectId {
    model.prim_array(Elements::Zeros(Type::Byte, bytes))
}

#[test]
fn small_heaps_add_up_within_all_limits() {
    let made = Made::new(&examples::zoo());
    for question in questions(Start::Roots) {
        made.areas(&question);
    }
    let tree = &made.graph.tree;
    for position in hprof_cli::TreePosition::range(tree.positions()) {
        let area = made.areas(&AreaQuery { start: Start::Object(position), ..AreaQuery::default() });
        assert_eq!(area.retained_bytes, tree.retained_bytes(position));
        assert_eq!(area.retained_objects, u64::from(tree.retained_objects(position)));
    }
}

#[test]
fn a_chain_is_folded_into_what_it_holds() {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let holder = model.class("app.Holder", Some(jdk.object), &[("value", Type::Object)]);
    let two = model.class("app.Two", Some(jdk.object), &[("one", Type::Object), ("other", Type::Object)]);
    let (one, other) = (array(&mut model, 60_000), array(&mut model, 40_000));
    let two = model.instance_with(two, &[("one", one.into()), ("other", other.into())]);
    let inner = instance(&mut model, holder, "value", two);
    let outer = instance(&mut model, holder, "value", inner);
    model.root(outer, Root::JniGlobal { reference: 1 });
    let made = Made::new(&model);
    let area = made.below(outer);
    assert_eq!(made.name(&area), "app.Holder > app.Holder > app.Two");
    let AreaObjects::Object { id, chain, .. } = &area.what else { panic!("{area:?}") };
    assert_eq!(
        (id.0, chain.iter().map(|link| link.id.0).collect::<Vec<_>>()),
        (two.0, vec![outer.0, inner.0])
    );
    let names: Vec<String> = area.children.iter().map(|child| made.name(child)).collect();
    assert_eq!(names, ["byte[]", "byte[]"]);
    assert_eq!(area.children[0].retained_bytes, 60_016);
    // The whole heap has it too.
    let all = made.areas(&AreaQuery::default());
    assert_eq!(all.what, AreaObjects::All);
    assert!(all.children.contains(&area), "{all:?}");
}

#[test]
fn many_children_are_merged_by_class() {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let entry = model.class("app.Entry", Some(jdk.object), &[("value", Type::Object)]);
    let product = model.class("app.Product", Some(jdk.object), &[("image", Type::Object)]);
    let mut all = Vec::new();
    for number in 0..5000 {
        let image = array(&mut model, 100);
        let product = instance(&mut model, product, "image", image);
        all.push(instance(&mut model, entry, "value", product));
        if number % 10 == 0 {
            all.push(array(&mut model, 64));
        }
    }
    all.extend((0..3).map(|_| array(&mut model, 50_000)));
    let array = model.object_array(jdk.object_array, &all);
    model.root(array, Root::JniGlobal { reference: 1 });
    let made = Made::new(&model);
    let area = made.below(array);
    let names: Vec<String> = area.children.iter().map(|child| made.name(child)).collect();
    assert_eq!(names, ["5000 x app.Entry", "byte[]", "byte[]", "byte[]", "500 x byte[]"]);
    let AreaObjects::Merged { parent, .. } = area.children[0].what else { panic!() };
    assert_eq!(parent, Some(Id(array.0)));
    let [products] = area.children[0].children.as_slice() else { panic!() };
    assert_eq!(made.name(products), "5000 x app.Product");
    assert_eq!(made.name(&products.children[0]), "5000 x byte[]");
    assert!(matches!(products.what, AreaObjects::Merged { parent: None, .. }));
    for question in questions(made.start(array)) {
        made.areas(&question);
    }
    for question in questions(Start::Roots) {
        made.areas(&question);
    }
}

#[test]
fn a_list_of_many_links_is_one_area() {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let link = model.class("app.Link", Some(jdk.object), &[("next", Type::Object), ("value", Type::Object)]);
    let list = model.class("app.List", Some(jdk.object), &[("first", Type::Object)]);
    let mut next = ObjectId::NULL;
    for _ in 0..100_000 {
        let value = array(&mut model, 40);
        next = model.instance_with(link, &[("next", next.into()), ("value", value.into())]);
    }
    let list = instance(&mut model, list, "first", next);
    model.root(list, Root::JniGlobal { reference: 1 });
    let made = Made::new(&model);
    let area = made.below(list);
    assert_eq!(made.name(&area), "app.List");
    let [links] = area.children.as_slice() else { panic!("{area:?}") };
    assert_eq!(made.name(links), "100000 x app.Link");
    assert_eq!(links.children.iter().map(|child| made.name(child)).collect::<Vec<_>>(), ["100000 x byte[]"]);
}

#[test]
fn chains_of_several_classes_end_somewhere() {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let classes =
        ["app.One", "app.Two"].map(|name| model.class(name, Some(jdk.object), &[("next", Type::Object)]));
    let mut next = array(&mut model, 1 << 20);
    for number in 0..200_000 {
        next = instance(&mut model, classes[number % 2], "next", next);
    }
    model.root(next, Root::JniGlobal { reference: 1 });
    let made = Made::new(&model);
    for question in questions(made.start(next)).iter().step_by(11) {
        made.areas(question);
    }
    made.areas(&AreaQuery { max_depth: u32::MAX, ..AreaQuery::default() });
}

#[test]
fn real_dumps_add_up() {
    for name in ["leaks/s4.hprof.zst", "leaks/s5.hprof.zst", "jdk/jdk17.hprof.zst", "agent/all.hprof.zst"] {
        let Sample { heap, graph, .. } = Sample::open(name);
        for (max_areas, min_share) in [(1500, 0.0005), (100, 0.0), (30, 0.001)] {
            let area = picture(&heap, &graph, &AreaQuery { max_areas, min_share, ..AreaQuery::default() });
            assert_eq!(area.retained_bytes, graph.tree.reachable_bytes(), "{name}");
            assert_eq!(area.retained_objects, u64::from(graph.tree.reachable()), "{name}");
        }
    }
}

#[test]
fn the_leak_of_a_cache_is_one_area_of_9000_products() {
    let Sample { heap, graph, .. } = Sample::open("leaks/s1.hprof.zst");
    let area = picture(&heap, &graph, &AreaQuery::default());
    let mut text = String::new();
    print(&heap, &area, 0, &mut text);
    let largest = &area.children[0];
    let mut found = String::new();
    print(&heap, largest, 0, &mut found);
    assert_eq!(
        name(&heap, largest),
        "jdk.internal.loader.ClassLoaders$AppClassLoader > java.util.ArrayList > java.lang.Object[] > \
         java.lang.Class > java.util.concurrent.ConcurrentHashMap > java.util.concurrent.ConcurrentHashMap$Node[]"
    );
    assert!(found.contains("9000 x java.util.concurrent.ConcurrentHashMap$Node "), "{text}");
    assert!(found.contains("9000 x shop.Product "), "{text}");
}
