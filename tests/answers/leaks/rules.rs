//! Suspects, their order, and the accumulation points of single ones: a plain computation by the rules of Eclipse
//! MAT's `FindLeaksQuery`, over MAT's own dominators and our shallow sizes.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hprof_cli::ObjectId;
use hprof_index::{Heap, ObjectGraph};
use serde_json::Value;

use super::made::Heaped;
use super::{Leaks, number, optional_id, sample, samples, text};
use crate::kit::dump::Dump;
use crate::mat_oracle::{ORACLES, mat_tree};

const CLASS: &str = "java.lang.Class";

/// Steps after which MAT gives up.
const MAX_STEPS: usize = 1000;

/// A reachable object.
pub struct Object {
    pub dominator: Option<u64>,
    /// The number of its class: several loaders may define one name.
    pub class: u32,
    pub class_name: String,
    /// The class that it is the class object of.
    pub stands_for: Option<String>,
    pub shallow: u64,
    pub retained: u64,
}

/// A dominator tree by object ID.
pub struct Tree {
    pub objects: BTreeMap<u64, Object>,
    children: BTreeMap<Option<u64>, Vec<u64>>,
}

impl Tree {
    /// Adds up the shallow sizes over these dominators.
    pub fn new(heap: &Heap, graph: &ObjectGraph, dominators: &BTreeMap<u64, Option<u64>>) -> Self {
        let (summary, tree) = (heap.summary(), &graph.tree);
        let mut objects = BTreeMap::new();
        let mut children: BTreeMap<Option<u64>, Vec<u64>> = BTreeMap::new();
        for (id, dominator) in dominators {
            let object = graph.objects.addresses.index_of(ObjectId(*id)).unwrap();
            let class = graph.objects.class(object).unwrap();
            let name = |class| summary.class_name(summary.class(class).unwrap()).to_owned();
            let shallow = tree.shallow_bytes(tree.reachable_position(object).unwrap());
            objects.insert(
                *id,
                Object {
                    dominator: *dominator,
                    class: class.0,
                    class_name: name(class),
                    stands_for: graph.class_of_class_object(object).map(name),
                    shallow,
                    retained: shallow,
                },
            );
            children.entry(*dominator).or_default().push(*id);
        }
        let mut tree = Self { objects, children };
        // From the leaves up: an object comes after its dominator in this order.
        let mut order = tree.children(None).to_vec();
        let mut at = 0;
        while at < order.len() {
            order.extend(tree.children(Some(order[at])));
            at += 1;
        }
        assert_eq!(order.len(), tree.objects.len());
        for id in order.iter().rev() {
            let Object { dominator, retained, .. } = tree.objects[id];
            if let Some(dominator) = dominator {
                tree.objects.get_mut(&dominator).unwrap().retained += retained;
            }
        }
        tree
    }

    /// By our dominators, which other tests compare with MAT's and with the definition.
    pub fn of_dump(dump: &Dump) -> Self {
        let (heap, graph) = dump.open_graph();
        let id = |position| graph.objects.addresses.id_of(graph.tree.object_at(position).unwrap()).unwrap().0;
        let all = hprof_cli::TreePosition::range(graph.tree.positions());
        let all = all.map(|position| (id(position), graph.tree.dominator(position).map(id))).collect();
        Self::new(&heap, &graph, &all)
    }

    fn children(&self, of: Option<u64>) -> &[u64] {
        self.children.get(&of).map_or(&[], Vec::as_slice)
    }

    /// All reachable bytes.
    pub fn bytes(&self) -> u64 {
        self.objects.values().map(|object| object.shallow).sum()
    }

    /// Objects that only the roots dominate, by class, without those that are suspects by themselves.
    pub fn groups(&self, threshold: u64) -> BTreeMap<u32, Vec<u64>> {
        let mut groups: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for id in self.children(None).iter().filter(|id| self.objects[id].retained <= threshold) {
            groups.entry(self.objects[id].class).or_default().push(*id);
        }
        groups
            .retain(|_, members| members.iter().map(|id| self.objects[id].retained).sum::<u64>() > threshold);
        groups
    }

    /// Rule 4: down to the child that retains most, while that has 70 percent.
    fn accumulation_point(&self, of: u64) -> u64 {
        let mut here = of;
        for _ in 0..MAX_STEPS {
            let retained = |id: u64| self.objects[&id].retained;
            let most = self.children(Some(here)).iter().copied().max_by_key(|child| retained(*child));
            match most {
                Some(next) if retained(next) * 10 >= retained(here) * 7 => here = next,
                _ => return here,
            }
        }
        panic!("MAT gives up here");
    }

    /// Rules 2, 3, 4 and 6.
    fn suspects(&self, percent: u64) -> Vec<Suspect> {
        let threshold = self.bytes() * percent / 100;
        let singles = self.children(None).iter().filter(|id| self.objects[id].retained > threshold);
        let single = |id: &u64| {
            let Object { class_name, stands_for, shallow, retained, .. } = &self.objects[id];
            Suspect {
                is_group: false,
                class: stands_for.as_ref().unwrap_or(class_name).clone(),
                sort_class: class_name.clone(),
                first: *id,
                objects: 1,
                shallow: *shallow,
                retained: *retained,
                point: Some(self.accumulation_point(*id)),
            }
        };
        let group = |(_, members): (u32, Vec<u64>)| {
            let sum = |of: fn(&Object) -> u64| members.iter().map(|id| of(&self.objects[id])).sum();
            Suspect {
                is_group: true,
                class: self.objects[&members[0]].class_name.clone(),
                sort_class: self.objects[&members[0]].class_name.clone(),
                first: members[0],
                objects: members.len() as u64,
                shallow: sum(|object| object.shallow),
                retained: sum(|object| object.retained),
                point: None,
            }
        };
        let mut all: Vec<Suspect> =
            singles.map(single).chain(self.groups(threshold).into_iter().map(group)).collect();
        all.sort_by_key(|suspect| {
            let Suspect { is_group, sort_class, first, shallow, retained, .. } = suspect;
            (Reverse(*retained), *is_group, Reverse(*shallow), Reverse(sort_class.clone()), Reverse(*first))
        });
        all
    }
}

/// A suspect as it has to be.
#[derive(Debug)]
struct Suspect {
    is_group: bool,
    class: String,
    /// The class by whose name equal ones are in order: of class objects `java.lang.Class`.
    sort_class: String,
    /// The object, or a member.
    first: u64,
    objects: u64,
    shallow: u64,
    retained: u64,
    /// Of single ones: groups have theirs by paths.
    point: Option<u64>,
}

/// Compares, and returns how many are single, and how many groups.
fn compare(name: &str, tree: &Tree, dump: &Dump, percent: u64) -> (usize, usize) {
    let leaks = Leaks::above(dump, percent);
    let total = |key: &str| number(&leaks.total[key]);
    assert_eq!(total("reachable_bytes"), tree.bytes(), "{name}");
    assert_eq!(total("threshold_bytes"), tree.bytes() * percent / 100, "{name}");
    let wanted = tree.suspects(percent);
    let figures = |row: &Value| {
        let kind = text(&row["kind"]).to_owned();
        let class = text(&row["class"]).to_owned();
        let numbers = ["objects", "shallow_bytes", "retained_bytes"].map(|key| number(&row[key]));
        (kind, class, optional_id(&row["object"]), numbers)
    };
    let ours: Vec<_> = leaks.rows.iter().map(figures).collect();
    let expected: Vec<_> = (wanted.iter())
        .map(|suspect| {
            let kind = if suspect.is_group { "group" } else { "single" };
            let numbers = [suspect.objects, suspect.shallow, suspect.retained];
            let object = (!suspect.is_group).then_some(suspect.first);
            (kind.to_owned(), suspect.class.clone(), object, numbers)
        })
        .collect();
    assert_eq!(ours, expected, "{name}, {percent} percent");
    for (row, suspect) in leaks.rows.iter().zip(&wanted) {
        assert_eq!(row["what"] == "class", suspect.sort_class == CLASS, "{name}: {suspect:?}");
        if !suspect.is_group {
            let point = optional_id(&row["accumulation_point"]["object"]);
            assert_eq!(point, suspect.point, "{name}, {percent} percent: {suspect:x?}");
        }
    }
    let groups = wanted.iter().filter(|suspect| suspect.is_group).count();
    (wanted.len() - groups, groups)
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn suspects_follow_from_the_dominators_of_mat() {
    let (mut singles, mut groups) = (0, 0);
    for (name, folder) in ORACLES {
        let mut dominators = mat_tree(name);
        // The boot loader, which is no object in a dump.
        dominators.remove(&0);
        let dir = samples().parent().unwrap().join(folder);
        let dump = sample(&dir, name);
        let (heap, graph) = dump.open_graph();
        let tree = Tree::new(&heap, &graph, &dominators);
        for percent in [10, 5, 2, 1] {
            let compared = compare(name, &tree, &dump, percent);
            (singles, groups) = (singles + compared.0, groups + compared.1);
        }
    }
    assert_eq!((singles, groups), (72, 41), "suspects compared");
}

/// Suspects that retain the same: single ones come first, then those that take more themselves, then class names and IDs
/// from the last.
#[test]
fn equal_suspects_are_in_the_order_of_mat() {
    const EACH: u64 = 8000;
    let mut heap = Heaped::new();
    let [small, other] = ["app.Small", "app.Other"].map(|name| heap.class(name, 1));
    let wide = heap.class("app.Array", 9);
    for (class, shallow) in [(small, 16), (wide, 48), (other, 16), (small, 16)] {
        let held = heap.bytes(EACH - shallow);
        let object = heap.instance(class, &[held]);
        heap.root(object);
    }
    let alone = heap.bytes(EACH);
    heap.root(alone);
    for name in ["app.Member", "app.Also"] {
        let class = heap.class(name, 1);
        for member in heap.many(class, 4, EACH) {
            heap.root(member);
        }
    }
    let dump = heap.dump();
    let tree = Tree::of_dump(&dump);
    assert_eq!(compare("equal", &tree, &dump, 10), (5, 2));
    let rows = Leaks::above(&dump, 10).rows;
    assert!(rows.iter().all(|row| row["retained_bytes"] == EACH), "{rows:#?}");
    let classes: Vec<&str> = rows.iter().map(|row| text(&row["class"])).collect();
    let wanted = ["byte[]", "app.Array", "app.Small", "app.Small", "app.Other", "app.Member", "app.Also"];
    assert_eq!(classes, wanted);
    assert!(optional_id(&rows[2]["object"]) > optional_id(&rows[3]["object"]));
    for percent in [1, 2, 3, 5, 11, 12, 13, 20, 100] {
        compare("equal", &tree, &dump, percent);
    }
}

/// Half of a heap: one object, or two of a class.
fn half(parts: &[u64]) -> Dump {
    let mut heap = Heaped::new();
    for part in parts {
        let object = heap.bytes(*part);
        heap.root(object);
    }
    heap.dump()
}

#[test]
fn what_retains_just_the_threshold_is_no_suspect() {
    // The other half.
    let rest = Tree::of_dump(&half(&[800])).bytes() - 800;
    assert_eq!(rest % 8, 0);
    let bytes = |dump: &Dump| {
        let rows = Leaks::above(dump, 50).rows;
        let is_bytes = |row: &&Value| row["class"] == "byte[]";
        rows.iter().filter(is_bytes).map(|row| text(&row["kind"]).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(bytes(&half(&[rest])), Vec::<String>::new());
    assert_eq!(bytes(&half(&[rest + 8])), ["single"]);
    assert_eq!(bytes(&half(&[800, rest - 800])), Vec::<String>::new());
    assert_eq!(bytes(&half(&[800, rest - 792])), ["group"]);
    // The other half is classes, of which no one is much.
    let dump = half(&[rest]);
    compare("half", &Tree::of_dump(&dump), &dump, 49);
}
