//! The verdict on whether memory accumulates: on heaps made just above and just below each limit.

use hprof_writer::{ClassId, Elements, ObjectId, Root, Type};
use serde_json::Value;

use super::made::Heaped;
use super::rules::Tree;
use super::{Leaks, id, number, text};

/// Retained size of most suspects here, much more than that of the classes of these heaps.
const MUCH: u64 = 400_000;

/// A suspect of which `held` is what a static field holds.
fn held_by_static(mut heap: Heaped, held: ObjectId) -> Value {
    heap.holder("app.Main", "HELD", held);
    let row = Leaks::one(&heap.dump());
    assert_eq!(
        (text(&row["kind"]), text(&row["what"]), text(&row["class"])),
        ("single", "class", "app.Main")
    );
    row
}

/// As [`held_by_static`], an `Object[]` of these.
fn array_of(mut heap: Heaped, held: &[ObjectId]) -> (Value, ObjectId) {
    let array = heap.array(held);
    (held_by_static(heap, array), array)
}

/// The verdict with the reason in a word.
fn verdict(row: &Value) -> (&str, Option<&str>) {
    (text(&row["verdict"]), row["reason"]["how"].as_str())
}

const HOLDER: (&str, Option<&str>) = ("holder", None);

fn accumulation(how: &str) -> (&str, Option<&str>) {
    ("accumulation", Some(how))
}

#[test]
fn ten_children_are_many_and_nine_are_not() {
    for count in [9, 10] {
        let mut heap = Heaped::new();
        let item = heap.class("app.Item", 1);
        let items = heap.many(item, count, MUCH);
        let (row, array) = array_of(heap, &items);
        assert_eq!(id(&row["accumulation_point"]["object"]), array.0);
        if count == 9 {
            assert_eq!(verdict(&row), HOLDER);
            assert!(row["reason"].is_null() && row["accumulated"].as_array().unwrap().is_empty());
            continue;
        }
        assert_eq!(verdict(&row), accumulation("children"));
        assert_eq!((text(&row["reason"]["class"]), number(&row["reason"]["objects"])), ("app.Item", 10));
        assert_eq!(row["accumulated_bytes"], row["accumulation_point"]["retained_bytes"]);
        let levels: Vec<(&str, u64)> = (row["accumulated"].as_array().unwrap().iter())
            .map(|level| (text(&level["class"]), number(&level["objects"])))
            .collect();
        assert_eq!(levels, [("java.lang.Object[]", 1), ("app.Item", 10), ("byte[]", 10)]);
        assert!(row["parts"].as_array().unwrap().is_empty());
    }
}

/// A percentage in children of one class, the rest in one of each of others: what MAT's rules call a holder is a container.
#[test]
fn four_fifths_in_children_of_one_class_accumulate() {
    for (percent, of_mat) in [(79, "holder"), (81, "accumulation")] {
        let mut heap = Heaped::new();
        let item = heap.class("app.Item", 1);
        let mut held = heap.many(item, 20, MUCH * percent / 100);
        for other in 0..5 {
            let class = heap.class(&format!("app.Other{other}"), 1);
            held.extend(heap.many(class, 1, MUCH * (100 - percent) / 100 / 5));
        }
        let (row, array) = array_of(heap, &held);
        assert_eq!(text(&row["mat_verdict"]), of_mat, "{percent}");
        assert_eq!(verdict(&row), accumulation("children"), "{percent}");
        assert_eq!((text(&row["container"]), number(&row["elements"])), ("array", 25), "{percent}");
        // The limit is of what is retained there, of which the array takes some itself.
        let all = number(&row["accumulation_point"]["retained_bytes"]);
        assert_eq!(id(&row["accumulation_point"]["object"]), array.0);
        let items = MUCH * percent / 100 / 20 / 8 * 8 * 20;
        assert_eq!(items * 100 / all, percent - 1 + u64::from(items * 100 >= all * percent));
        assert_eq!(items >= all * 80 / 100, percent == 81);
        if percent == 79 {
            // Few children are parts, those that are known by the same together, the largest first.
            let parts = row["parts"].as_array().unwrap().iter();
            let parts: Vec<(&str, u64)> =
                parts.map(|part| (text(&part["class"]), number(&part["objects"]))).collect();
            assert_eq!(parts[0], ("app.Item", 20));
            let others = [0, 1, 2, 3].map(|other| format!("app.Other{other}"));
            assert_eq!(parts[1..], others.each_ref().map(|other| (other.as_str(), 1)));
        }
    }
}

/// Children of one class, of which one has most.
#[test]
fn what_is_mostly_in_one_child_does_not_accumulate_in_many() {
    for (percent, wanted) in [(49, accumulation("children")), (52, HOLDER)] {
        let mut heap = Heaped::new();
        let item = heap.class("app.Item", 1);
        let mut held = heap.many(item, 1, MUCH * percent / 100);
        held.extend(heap.many(item, 30, MUCH * (100 - percent) / 100));
        let (row, array) = array_of(heap, &held);
        assert_eq!(id(&row["accumulation_point"]["object"]), array.0, "the walk ends above the largest");
        assert_eq!(verdict(&row), wanted, "{percent}");
    }
}

/// A chain of objects with a reference to the next, and a `byte[]` if `payload` says how large. The first link is the first.
fn chain(heap: &mut Heaped, node: ClassId, links: u64, payload: u64) -> Vec<ObjectId> {
    let nodes: Vec<ObjectId> = (0..links)
        .map(|_| {
            let held = if payload > 0 { heap.bytes(payload) } else { ObjectId::NULL };
            heap.instance(node, &[ObjectId::NULL, held])
        })
        .collect();
    for pair in nodes.windows(2) {
        heap.set(pair[0], "field0", pair[1]);
    }
    nodes
}

/// The walk down to 70 percent does not end within 1,000 steps.
#[test]
fn a_long_chain_accumulates_in_its_first_link() {
    for payload in [0, 104] {
        let mut heap = Heaped::new();
        let node = heap.class("app.Node", 12);
        let nodes = chain(&mut heap, node, 1500, payload);
        let queue = heap.class("app.Queue", 1);
        let queue = heap.instance(queue, &[nodes[0]]);
        let row = held_by_static(heap, queue);
        assert_eq!(id(&row["accumulation_point"]["object"]), nodes[0].0);
        assert_eq!(verdict(&row), accumulation("chain"));
        assert_eq!((text(&row["reason"]["class"]), number(&row["reason"]["objects"])), ("app.Node", 1500));
        assert_eq!(row["accumulated_bytes"], row["accumulation_point"]["retained_bytes"]);
        let first = &row["accumulated"][0];
        let figures = ["objects", "chain"].map(|key| number(&first[key]));
        assert_eq!((text(&first["class"]), figures), ("app.Node", [1500, 1500]));
    }
}

/// The walk ends near the last link, which is MAT's accumulation point: where a few links are left, and one is less than 70
/// percent of what its parent retains.
#[test]
fn a_short_chain_is_told_beside_the_accumulation_point_of_mat() {
    for payload in [0, 4000] {
        let mut heap = Heaped::new();
        let node = heap.class("app.Node", 600);
        let nodes = chain(&mut heap, node, 50, payload);
        let first = nodes[0].0;
        heap.holder("app.Main", "HEAD", nodes[0]);
        let dump = heap.dump();
        let row = Leaks::one(&dump);
        // Of three links the second has two thirds.
        assert_eq!(id(&row["accumulation_point"]["object"]), nodes[47].0);
        assert_eq!(verdict(&row), accumulation("chain"));
        assert_eq!((text(&row["reason"]["class"]), number(&row["reason"]["objects"])), ("app.Node", 50));
        let whole = Tree::of_dump(&dump).objects[&first].retained;
        assert_eq!(number(&row["accumulated_bytes"]), whole);
        assert!(number(&row["accumulation_point"]["retained_bytes"]) * 10 < whole);
    }
}

/// More than a fifth is below the last link of the walk: of alike links three are left there.
#[test]
fn links_that_hold_too_little_are_no_chain() {
    for (links, at_the_end, is_chain) in [(14, 0, false), (16, 0, true), (50, 0, true), (50, 2 * MUCH, false)]
    {
        let mut heap = Heaped::new();
        let node = heap.class("app.Node", 600);
        let nodes = chain(&mut heap, node, links, 8000);
        if at_the_end > 0 {
            let held = heap.bytes(at_the_end);
            heap.set(nodes[nodes.len() - 1], "field2", held);
        }
        heap.holder("app.Main", "HEAD", nodes[0]);
        let row = Leaks::one(&heap.dump());
        assert_eq!(verdict(&row).1 == Some("chain"), is_chain, "{links}, {at_the_end}: {row:#}");
    }
}

/// Each link retains three quarters of what the one before it does.
#[test]
fn nine_links_are_no_chain_and_ten_are() {
    for links in [9, 10] {
        let mut heap = Heaped::new();
        let node = heap.class("app.Node", 4);
        let retained: Vec<u64> =
            std::iter::successors(Some(MUCH), |bytes| Some(bytes * 3 / 4)).take(links).collect();
        let mut next = ObjectId::NULL;
        for (at, bytes) in retained.iter().enumerate().rev() {
            let below = retained.get(at + 1).copied().unwrap_or(0);
            // In two arrays, so that the walk ends at the last link.
            let own = [0, 1].map(|_| heap.bytes((bytes - below) / 2 / 8 * 8 - 16));
            next = heap.instance(node, &[next, own[0], own[1]]);
        }
        let row = held_by_static(heap, next);
        assert_eq!(text(&row["accumulation_point"]["class"]), "app.Node");
        let wanted = if links == 10 { accumulation("chain") } else { HOLDER };
        assert_eq!(verdict(&row), wanted, "{links}: {row:#}");
    }
}

#[test]
fn a_large_array_is_a_buffer() {
    for (elements, class) in
        [(Elements::Zeros(Type::Byte, 400_000), "byte[]"), (Elements::Zeros(Type::Long, 50_000), "long[]")]
    {
        let mut heap = Heaped::new();
        let array = heap.model.prim_array(elements);
        let row = held_by_static(heap, array);
        assert_eq!(verdict(&row), accumulation("buffer"));
        assert_eq!(text(&row["reason"]["class"]), class);
        assert_eq!(id(&row["accumulation_point"]["object"]), array.0);
    }
    // An array of references that are null, or all to one object; and one whose objects take most.
    for (each, wanted) in [(0, accumulation("buffer")), (8, accumulation("children"))] {
        let mut heap = Heaped::new();
        let item = heap.class("app.Item", 1);
        let items = if each == 0 { heap.many(item, 2, 64) } else { heap.many(item, 1000, MUCH) };
        let held: Vec<ObjectId> = items.iter().copied().cycle().take(10_000).collect();
        let (row, _) = array_of(heap, &held);
        assert_eq!(verdict(&row), wanted, "{each}");
    }
}

/// A class of a loader of its own, with a static field that holds a `byte[]`.
pub(super) fn loaded(heap: &mut Heaped, loader: ClassId, class: &str, bytes: u64) -> (ObjectId, ClassId) {
    let cache = heap.bytes(bytes);
    let loader = heap.instance(loader, &[]);
    let object = heap.jdk.object;
    let class = heap.model.class_with_statics(class, Some(object), &[], &[("CACHE", cache.into())]);
    heap.model.class_mut(class).loader = loader.0;
    (loader, class)
}

pub(super) fn class_of_loaders(heap: &mut Heaped, name: &str) -> ClassId {
    let loader = heap.class("java.lang.ClassLoader", 1);
    heap.class_below(name, loader, 1)
}

/// Classes of one name that several loaders define: held by instances of them, or themselves.
#[test]
fn three_classes_of_one_name_are_loaders() {
    for count in [2, 3, 12] {
        for by_instances in [true, false] {
            let mut heap = Heaped::new();
            let loader = class_of_loaders(&mut heap, "app.PluginLoader");
            let held: Vec<ObjectId> = (0..count)
                .map(|_| {
                    let (_, class) = loaded(&mut heap, loader, "plugin.Plugin", MUCH / count);
                    if by_instances { heap.instance(class, &[]) } else { ObjectId(class.0) }
                })
                .collect();
            let (row, array) = array_of(heap, &held);
            assert_eq!(id(&row["accumulation_point"]["object"]), array.0);
            if count == 2 {
                assert_eq!(verdict(&row), HOLDER);
                continue;
            }
            assert_eq!(verdict(&row), accumulation("loaders"), "{count}, {by_instances}");
            let reason = &row["reason"];
            assert_eq!(text(&reason["class"]), "plugin.Plugin");
            assert_eq!(text(&reason["loader_class"]), "app.PluginLoader");
            assert_eq!(number(&reason["objects"]), count);
        }
    }
}

/// The loaders themselves, each of which holds its class.
#[test]
fn three_loaders_of_one_class_are_loaders() {
    for (count, wanted) in [(2, HOLDER), (3, accumulation("loaders"))] {
        let mut heap = Heaped::new();
        let loader = class_of_loaders(&mut heap, "app.PluginLoader");
        let held: Vec<ObjectId> = (0..count)
            .map(|number| {
                let (loader, class) =
                    loaded(&mut heap, loader, &format!("plugin.Plugin{number}"), MUCH / count);
                heap.set(loader, "field0", ObjectId(class.0));
                loader
            })
            .collect();
        let (row, _) = array_of(heap, &held);
        assert_eq!(verdict(&row), wanted, "{count}");
        if count == 3 {
            assert_eq!(text(&row["reason"]["class"]), "app.PluginLoader");
            assert_eq!(number(&row["reason"]["objects"]), 3);
        }
    }
}

/// As below the class loader of any application.
#[test]
fn classes_of_different_names_below_one_loader_are_only_held() {
    let mut heap = Heaped::new();
    let loader = class_of_loaders(&mut heap, "app.AppLoader");
    let loader = heap.instance(loader, &[]);
    let object = heap.jdk.object;
    let classes: Vec<ObjectId> = (0..12)
        .map(|number| {
            let cache = heap.bytes(MUCH / 12 / 8 * 8);
            let name = format!("app.Service{number}");
            let class = heap.model.class_with_statics(&name, Some(object), &[], &[("CACHE", cache.into())]);
            heap.model.class_mut(class).loader = loader.0;
            ObjectId(class.0)
        })
        .collect();
    let array = heap.array(&classes);
    heap.set(loader, "field0", array);
    heap.root(loader);
    let row = Leaks::one(&heap.dump());
    assert_eq!((text(&row["what"]), text(&row["class"])), ("class_loader", "app.AppLoader"));
    assert_eq!(verdict(&row), HOLDER);
    let names: Vec<&str> = row["parts"].as_array().unwrap().iter().map(|part| text(&part["class"])).collect();
    assert_eq!(names.len(), 5);
    assert!(names.iter().all(|name| name.starts_with("app.Service")), "{names:?}");
}

/// Classes that only roots dominate, as those of the boot loader are: different classes are different parts.
#[test]
fn a_group_of_classes_is_only_held() {
    let mut heap = Heaped::new();
    for number in 0..12 {
        let cache = heap.bytes(MUCH / 12 / 8 * 8);
        heap.holder(&format!("app.Service{number}"), "CACHE", cache);
    }
    let row = Leaks::one(&heap.dump());
    assert_eq!((text(&row["kind"]), text(&row["what"])), ("group", "class"));
    assert_eq!(text(&row["class"]), "java.lang.Class");
    assert_eq!(verdict(&row), HOLDER);
}

/// Threads of these names, each with a local that takes so much.
fn threads(names: &[String], each: impl Fn(usize) -> u64) -> Value {
    let mut heap = Heaped::new();
    for ((serial, at), name) in (1..).zip(0..).zip(names) {
        let jdk = heap.jdk.clone();
        let thread = jdk.thread(&mut heap.model, name, false, 5);
        let trace = heap.model.trace(serial, &[]);
        heap.model.root(thread, Root::ThreadObject { thread: serial, trace });
        let local = heap.bytes(each(at) / 8 * 8);
        heap.local(serial, local);
    }
    let row = Leaks::one(&heap.dump());
    assert_eq!((text(&row["kind"]), text(&row["what"])), ("group", "thread"));
    assert_eq!(text(&row["class"]), "java.lang.Thread");
    assert_eq!(number(&row["objects"]), names.len() as u64);
    assert_eq!(row["accumulated_bytes"], row["retained_bytes"]);
    row
}

#[test]
fn threads_of_one_pool_accumulate_and_others_do_not() {
    let pool = |count: usize| (1..=count).map(|number| format!("import-{number}")).collect::<Vec<_>>();
    let row = threads(&pool(12), |_| MUCH / 12);
    assert_eq!(verdict(&row), accumulation("threads"));
    assert_eq!((text(&row["reason"]["pool"]), number(&row["reason"]["objects"])), ("import-*", 12));

    // Small threads beside the pool are described with the group, and do not count.
    let others = ["main", "watcher", "printer"].map(str::to_owned);
    let with_others = [pool(12), others.to_vec()].concat();
    let row = threads(&with_others, |at| if at < 12 { MUCH / 12 } else { MUCH / 300 });
    assert_eq!(verdict(&row), accumulation("threads"));
    assert_eq!((text(&row["reason"]["pool"]), number(&row["reason"]["objects"])), ("import-*", 12));
    // Those that have much do: the pool has less than four fifths.
    let row = threads(&with_others, |at| if at < 12 { MUCH / 16 } else { MUCH / 11 });
    assert_eq!(verdict(&row), HOLDER);

    let names: Vec<String> = (b'a'..=b'l').map(|letter| format!("thread {}", char::from(letter))).collect();
    let row = threads(&names, |_| MUCH / 12);
    assert_eq!(verdict(&row), HOLDER);
}

/// Many objects of a class that only roots dominate, and that have no path in common.
#[test]
fn members_of_an_own_class_accumulate_and_arrays_of_the_jdk_do_not() {
    for (own, count, wanted) in [(true, 12, accumulation("members")), (true, 2, HOLDER), (false, 12, HOLDER)]
    {
        let mut heap = Heaped::new();
        let item = heap.class("app.Item", 1);
        // Makes each less than a tenth of the heap.
        let other = heap.class("app.Unrelated", 1);
        let rest = if count < 12 { 30 } else { 0 };
        for number in 0..rest {
            let class = heap.class_below(&format!("app.Kind{number}"), other, 0);
            let held = heap.bytes(MUCH / 30 / 8 * 8);
            let object = heap.instance(class, &[held]);
            heap.root(object);
        }
        let each = if count < 12 { MUCH / 12 } else { MUCH / count };
        for _ in 0..count {
            let held = heap.bytes(each / 8 * 8);
            let object = if own { heap.instance(item, &[held]) } else { heap.array(&[held]) };
            heap.root(object);
        }
        let row = Leaks::one(&heap.dump());
        assert_eq!((text(&row["kind"]), number(&row["objects"])), ("group", count));
        assert!(row["accumulation_point"].is_null());
        assert_eq!(verdict(&row), wanted, "{own}, {count}");
    }
}

/// Arrays in an array are parts of it, as the archived objects of the JVM are: their contents count.
#[test]
fn an_array_of_arrays_holds_what_is_in_those() {
    for (kinds, wanted) in [(1, accumulation("children")), (12, HOLDER)] {
        let mut heap = Heaped::new();
        let classes: Vec<ClassId> =
            (0..kinds).map(|number| heap.class(&format!("app.Item{number}"), 1)).collect();
        let arrays: Vec<ObjectId> = (0..12)
            .map(|number| {
                let item = heap.many(classes[number % kinds], 1, MUCH / 12);
                heap.array(&item)
            })
            .collect();
        let (row, outer) = array_of(heap, &arrays);
        assert_eq!(id(&row["accumulation_point"]["object"]), outer.0);
        assert_eq!(verdict(&row), wanted, "{kinds}");
        if kinds == 1 {
            assert_eq!((text(&row["reason"]["class"]), number(&row["reason"]["objects"])), ("app.Item0", 12));
        }
    }
}

/// A tree of nodes of one class, the root included.
#[test]
fn ten_nodes_are_a_tree_that_accumulates_and_nine_are_not() {
    for (nodes, wanted) in [(9, HOLDER), (10, accumulation("children"))] {
        let mut heap = Heaped::new();
        let node = heap.class("app.TreeNode", 4);
        let mut all: Vec<ObjectId> = Vec::new();
        for number in 0..nodes {
            let held = heap.bytes(MUCH / 10 / 8 * 8);
            let new = heap.instance(node, &[held]);
            // Three below each.
            if number > 0 {
                heap.set(all[(number - 1) / 3], &format!("field{}", (number - 1) % 3 + 1), new);
            }
            all.push(new);
        }
        let root = all[0];
        let row = held_by_static(heap, root);
        assert_eq!(id(&row["accumulation_point"]["object"]), root.0);
        assert_eq!(verdict(&row), wanted, "{nodes}");
        if nodes == 10 {
            let reason = &row["reason"];
            assert_eq!((text(&reason["class"]), number(&reason["objects"])), ("app.TreeNode", 10));
        }
    }
}
