//! The accumulation point of a group: a plain search from the roots over what a test wrote into a dump, paths merged, and
//! the walk of Eclipse MAT's `FindLeaksQuery` down to it.

use std::collections::{BTreeMap, BTreeSet};

use hprof_writer::ObjectId;
use proptest::prelude::*;

use super::made::{Edge, Heaped};
use super::rules::Tree;
use super::{Leaks, number, optional_id};
use crate::kit::portion;
use crate::kit::strategies::property;

/// From a root to an object.
type Path = Vec<u64>;

/// By object: who was first to lead to it; a root has nobody.
type Parents = BTreeMap<u64, Option<u64>>;

/// Searches level by level, each by ascending ID: the first object that refers to another is its parent. Locals are
/// visited after everything that is reachable from other roots.
fn search(heap: &Heaped, weak: bool) -> Parents {
    let mut parents = Parents::new();
    for starts in [&heap.roots, &heap.locals] {
        let mut level: BTreeMap<u64, Option<u64>> = (starts.iter())
            .filter(|start| !parents.contains_key(start))
            .map(|start| (*start, None))
            .collect();
        while !level.is_empty() {
            parents.extend(&level);
            let mut next = BTreeMap::new();
            for from in level.into_keys() {
                for edge in heap.edges.get(&from).into_iter().flatten() {
                    let to = match edge {
                        Edge::Strong(to) => *to,
                        Edge::Referent(to) if weak => *to,
                        Edge::Referent(_) => continue,
                    };
                    if !parents.contains_key(&to) {
                        next.entry(to).or_insert(Some(from));
                    }
                }
            }
            level = next;
        }
    }
    parents
}

fn path(parents: &Parents, to: u64) -> Option<Path> {
    parents.get(&to)?;
    let mut path: Path = std::iter::successors(Some(to), |object| parents[object]).collect();
    path.reverse();
    Some(path)
}

/// Expected description of a group.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    point: Option<u64>,
    only_weak: bool,
}

/// The walk over merged paths.
fn common(paths: &[(Path, u64)], all: usize) -> Option<u64> {
    let least = all * 8 / 10;
    let mut here: Path = Vec::new();
    let below = |prefix: &Path| -> (usize, u64) {
        let through = paths.iter().filter(|(path, _)| path.starts_with(prefix));
        through.fold((0, 0), |(count, sum), (_, retained)| (count + 1, sum + retained))
    };
    // The next object with most members; of several the first by ID.
    let next = |here: &Path| -> Option<Path> {
        let through = paths.iter().filter(|(path, _)| path.starts_with(here));
        let objects: BTreeSet<u64> = through.filter_map(|(path, _)| path.get(here.len()).copied()).collect();
        let longer = objects.into_iter().map(|object| [here.as_slice(), &[object]].concat());
        longer.rev().max_by_key(|longer| below(longer).0)
    };
    while let Some(child) = next(&here) {
        let (count, sum) = below(&child);
        if !here.is_empty() && sum * 10 < below(&here).1 * 7 {
            return here.last().copied();
        }
        if count <= least {
            return None;
        }
        here = child;
    }
    here.last().copied()
}

fn wanted(heap: &Heaped, tree: &Tree, members: &[u64]) -> Wanted {
    let [strong, weak] = [false, true].map(|weak| search(heap, weak));
    let paths = |parents: &Parents| -> Vec<(Path, u64)> {
        let path = |member: &u64| Some((path(parents, *member)?, tree.objects[member].retained));
        members.iter().filter_map(path).collect()
    };
    let strong = paths(&strong);
    let only_weak = strong.is_empty();
    // If no member has a path, all are tried again without exclusions. MAT retries each that has none (docs/mat.md).
    let found = if only_weak { paths(&weak) } else { strong };
    Wanted { point: common(&found, members.len()), only_weak }
}

/// Compares the groups of one class, and says what they were.
fn compare(heap: &mut Heaped, class: &str) -> Vec<Wanted> {
    let dump = heap.dump();
    let tree = Tree::of_dump(&dump);
    let leaks = Leaks::above(&dump, 1);
    let threshold = number(&leaks.total["threshold_bytes"]);
    let groups = tree.groups(threshold);
    let mut compared = Vec::new();
    for row in leaks.rows.iter().filter(|row| row["kind"] == "group" && row["class"] == class) {
        let mut named = groups.values().filter(|group| tree.objects[&group[0]].class_name == class);
        let (Some(members), None) = (named.next(), named.next()) else { panic!("{row}") };
        assert_eq!(number(&row["objects"]), members.len() as u64);
        let found = Wanted {
            point: optional_id(&row["accumulation_point"]["object"]),
            only_weak: row["is_only_weak"] == true,
        };
        let wanted = wanted(heap, &tree, members);
        assert_eq!(found.point, wanted.point, "{wanted:x?} {row:#}");
        // If the members have nothing in common, the path is that of one member.
        if wanted.point.is_some() || wanted.only_weak {
            assert_eq!(found.only_weak, wanted.only_weak, "{row:#}");
        }
        compared.push(wanted);
    }
    compared
}

/// Items, and two arrays that each refer to all of them, so that only roots dominate them: one array is a root, the
/// other is two references away from one.
struct Shared {
    heap: Heaped,
    items: Vec<ObjectId>,
    near: ObjectId,
    far: ObjectId,
}

impl Shared {
    /// `held_by` makes of an item what the arrays hold.
    fn new(held_by: impl Fn(&mut Heaped, ObjectId) -> ObjectId) -> Self {
        let mut heap = Heaped::new();
        let item = heap.class(ITEM, 1);
        let ballast = heap.bytes(800_000);
        heap.root(ballast);
        let items = heap.many(item, 20, 20_000);
        let [near, far] = [0, 1].map(|_| {
            let held: Vec<ObjectId> = items.iter().map(|item| held_by(&mut heap, *item)).collect();
            heap.array(&held)
        });
        heap.root(near);
        let above = heap.array(&[far]);
        let top = heap.array(&[above]);
        heap.root(top);
        Self { heap, items, near, far }
    }

    fn has(&mut self, point: Option<ObjectId>, only_weak: bool) {
        let wanted = Wanted { point: point.map(|point| point.0), only_weak };
        assert_eq!(compare(&mut self.heap, ITEM), [wanted]);
    }
}

#[test]
fn a_group_accumulates_in_the_nearest_object_that_leads_to_most() {
    let mut shared = Shared::new(|_, item| item);
    let near = shared.near;
    shared.has(Some(near), false);
}

#[test]
fn a_group_whose_paths_have_nothing_in_common_has_no_accumulation_point() {
    // Of 20 members 16 are not more than 80 percent, 17 are.
    for (elsewhere, has_point) in [(4, false), (3, true)] {
        let mut shared = Shared::new(|_, item| item);
        for item in shared.items.clone().into_iter().take(elsewhere) {
            shared.heap.root(item);
        }
        let near = shared.near;
        shared.has(has_point.then_some(near), false);
    }
}

/// All but two members are below an object that a root holds, and the two have much.
#[test]
fn the_walk_ends_where_most_bytes_are_left() {
    for (more, at_the_root) in [(2000, false), (4200, true)] {
        let mut shared = Shared::new(|_, item| item);
        for member in &shared.items[..2] {
            let bytes = shared.heap.bytes(1000 + more);
            shared.heap.set(*member, "field0", bytes);
        }
        let mut held = shared.items.clone();
        let inner = shared.heap.array(&held.split_off(2));
        held.push(inner);
        held.resize(shared.items.len(), ObjectId::NULL);
        let near = shared.near;
        shared.heap.fill(near, &held);
        shared.has(Some(if at_the_root { near } else { inner }), false);
    }
}

/// A WeakReference to an object.
fn by_weak_reference(heap: &mut Heaped, item: ObjectId) -> ObjectId {
    let class = heap.jdk.weak_reference;
    let weak = heap.instance(class, &[]);
    heap.set_referent(weak, item);
    weak
}

#[test]
fn a_group_that_only_weak_references_lead_to_is_sought_again() {
    let mut shared = Shared::new(by_weak_reference);
    let near = shared.near;
    shared.has(Some(near), true);
    // A strong path to all of them takes precedence, however long.
    let mut shared = Shared::new(by_weak_reference);
    let (items, far) = (shared.items.clone(), shared.far);
    shared.heap.fill(far, &items);
    shared.has(Some(far), false);
}

/// A Reference that refers to an object by another field, too, refers to it strongly.
#[test]
fn a_reference_leads_to_what_another_field_holds() {
    for by_queue in [true, false] {
        let mut shared = Shared::new(by_weak_reference);
        let near = shared.near;
        let weak: Vec<u64> = shared.heap.edges[&near.0].iter().map(|edge| edge.target()).collect();
        if by_queue {
            for (weak, item) in weak.into_iter().zip(shared.items.clone()) {
                shared.heap.set(ObjectId(weak), "queue", item);
            }
        }
        shared.has(Some(near), !by_queue);
    }
}

/// An object in a thread's field counts as held by that field, however many of its frames also refer to it.
#[test]
fn a_local_that_a_field_of_the_thread_holds_is_found_by_the_field() {
    for by_field in [true, false] {
        let mut shared = Shared::new(|_, item| item);
        let class = shared.heap.class_below("app.Worker", shared.heap.jdk.thread, 1);
        let thread = shared.heap.thread(class, 1);
        let items = shared.items.clone();
        let held = shared.heap.array(&items);
        shared.heap.local(1, held);
        if by_field {
            shared.heap.set(thread, "field0", held);
        }
        // Nothing else is as near.
        let (near, far) = (shared.near, shared.far);
        shared.heap.fill(near, &[ObjectId::NULL; 20]);
        shared.has(Some(if by_field { held } else { far }), false);
    }
}

/// The nearest root is a local, but the items are reachable from another one, too.
#[test]
fn locals_come_last() {
    for also_elsewhere in [true, false] {
        let mut heap = Heaped::new();
        let item = heap.class(ITEM, 1);
        let ballast = heap.bytes(800_000);
        heap.root(ballast);
        let items = heap.many(item, 20, 20_000);
        let locals = [0, 1].map(|_| heap.array(&items));
        for (serial, local) in [1, 2].into_iter().zip(locals) {
            let class = heap.jdk.thread;
            heap.thread(class, serial);
            heap.local(serial, local);
        }
        let far = heap.array(&items);
        let top = heap.array(&[far]);
        if also_elsewhere {
            heap.root(top);
        }
        let point = if also_elsewhere { far } else { locals[0] };
        assert_eq!(compare(&mut heap, ITEM), [Wanted { point: Some(point.0), only_weak: false }]);
    }
}

/// Objects between the roots and the items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    /// An `Object[]`.
    Plain,
    /// An `Object[]` that is a root.
    Root,
    /// An `Object[]` that is a local of a thread.
    Local,
    /// A Reference of this class, which refers to one object weakly.
    Reference(usize),
    /// The same, and refers to it by `queue` as well.
    Both(usize),
}

/// Classes of References beside those of the JDK in the model.
const REFERENCES: [&str; 4] = ["Weak", "Soft", "Phantom", "Final"];

/// Elements of each `Object[]`.
const ELEMENTS: usize = 40;

const ITEM: &str = "app.Item";

/// A random heap.
#[derive(Debug, Clone)]
struct Shape {
    /// Order of IDs.
    order: Vec<u32>,
    /// Objects, and which of them refer to each.
    nodes: Vec<(Node, Vec<usize>)>,
    /// Size of each item in units of 8 bytes, and the nodes that refer to it.
    items: Vec<(u64, Vec<usize>)>,
    /// The first item to which nodes refer by a WeakReference only.
    weak_from: usize,
    /// The node that the thread holds by a field.
    task: usize,
}

fn node() -> impl Strategy<Value = Node> {
    prop_oneof![
        5 => Just(Node::Plain),
        3 => Just(Node::Root),
        1 => Just(Node::Local),
        2 => (0..REFERENCES.len()).prop_map(Node::Reference),
        1 => (0..REFERENCES.len()).prop_map(Node::Both),
    ]
}

fn shape() -> impl Strategy<Value = Shape> {
    let holders = || prop::collection::vec(0..100usize, 1..4);
    // Many objects in one place, and some elsewhere.
    let item = (4..120u64, prop::collection::vec(prop_oneof![3 => 0..3usize, 1 => 0..100usize], 1..4));
    (
        prop::collection::vec(any::<u32>(), 60),
        prop::collection::vec((node(), holders()), 2..10),
        prop::collection::vec(item, 2..24),
        // None, all, some.
        prop_oneof![4 => Just(usize::MAX), 1 => Just(0), 1 => 0..24usize],
        0..100usize,
    )
        .prop_map(|(order, nodes, items, weak_from, task)| Shape {
            order,
            nodes,
            items,
            weak_from,
            task,
        })
}

impl Shape {
    fn heap(&self) -> Heaped {
        let mut heap = Heaped::new();
        let item = heap.class(ITEM, 1);
        let reference = heap.jdk.reference;
        let references = REFERENCES.map(|name| match name {
            "Weak" => heap.jdk.weak_reference,
            _ => heap.class_below(&format!("java.lang.ref.{name}Reference"), reference, 0),
        });
        let worker = heap.class_below("app.Worker", heap.jdk.thread, 1);
        // Few items should be suspects by themselves.
        let ballast = heap.bytes(80_000);
        heap.root(ballast);
        let count = self.nodes.len() + self.items.len();
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|at| self.order[*at]);
        let mut ids = vec![ObjectId::NULL; count];
        for at in order {
            ids[at] = match self.nodes.get(at) {
                Some((Node::Reference(class) | Node::Both(class), _)) => {
                    heap.instance(references[*class], &[])
                }
                Some(_) => heap.array(&[ObjectId::NULL; ELEMENTS]),
                None => {
                    let held = heap.bytes(16 + self.items[at - self.nodes.len()].0 * 8);
                    heap.instance(item, &[held])
                }
            };
        }
        let mut held = vec![Vec::new(); self.nodes.len()];
        let holders = self.nodes.iter().map(|(_, holders)| holders);
        for (at, holders) in holders.chain(self.items.iter().map(|(_, holders)| holders)).enumerate() {
            for holder in holders {
                let mut to = ids[at];
                if at >= self.weak_from.saturating_add(self.nodes.len()) {
                    let weak = heap.instance(references[holder % REFERENCES.len()], &[]);
                    heap.set_referent(weak, to);
                    to = weak;
                }
                held[holder % self.nodes.len()].push(to);
            }
        }
        let thread = heap.thread(worker, 1);
        heap.set(thread, "field0", ids[self.task % self.nodes.len()]);
        for ((at, (node, _)), mut held) in self.nodes.iter().enumerate().zip(held) {
            match node {
                Node::Reference(_) | Node::Both(_) => {
                    let Some(first) = held.first() else { continue };
                    heap.set_referent(ids[at], *first);
                    if matches!(node, Node::Both(_)) {
                        heap.set(ids[at], "queue", *first);
                    }
                    continue;
                }
                Node::Root => heap.root(ids[at]),
                Node::Local => heap.local(1, ids[at]),
                Node::Plain => {}
            }
            held.sort_unstable();
            held.dedup();
            held.resize(ELEMENTS, ObjectId::NULL);
            heap.fill(ids[at], &held);
        }
        heap
    }
}

#[test]
fn accumulation_points_of_random_groups_follow_from_shortest_paths() {
    let seen = std::cell::RefCell::new(BTreeMap::<(bool, bool), u32>::new());
    let mut runner = proptest::test_runner::TestRunner::new(property(250));
    let checked = runner.run(&shape(), |shape| {
        for group in compare(&mut shape.heap(), ITEM) {
            *seen.borrow_mut().entry((group.point.is_some(), group.only_weak)).or_default() += 1;
        }
        Ok(())
    });
    checked.unwrap();
    let seen = seen.into_inner();
    let is_seen = |point, weak, least| {
        u64::from(seen.get(&(point, weak)).copied().unwrap_or(0)) >= portion::cases(least)
    };
    assert!(is_seen(true, false, 20) && is_seen(false, false, 20) && is_seen(true, true, 5), "{seen:?}");
}
