//! Comparison with Eclipse MAT on real dumps: reachable objects, their dominators, roots, and retained sets.
//! `samples/README.md` describes how the answers were made and their format.
//!
//! MAT's shallow sizes are guesses, so its retained bytes are not compared: our own sizes are added up over MAT's
//! tree instead. Objects and dominators are compared one by one, without exceptions but for MAT's object 0x0: it
//! represents the boot loader, which has no object in a dump.

use hprof_cli::{ObjectId, ObjectIndex, TreePosition};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::kit::dump::Dump;
use hprof_index::{Heap, ObjectGraph};
use hprof_values::RootKind;

/// MAT's answers, and the dump that they are about.
pub const ORACLES: [(&str, &str); 6] = [
    ("jdk8", "jdk"),
    ("jdk17", "jdk"),
    ("jdk17-nocoops", "jdk"),
    ("jdk25-compact", "jdk"),
    ("maven-jdk8", "public"),
    ("netbeans-heap_dump", "public"),
];

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")
}

/// The rows of a table, without its header line.
fn table(name: &str, kind: &str) -> Vec<Vec<String>> {
    let packed = std::fs::read(samples().join(format!("oracle/{name}/{kind}.tsv.zst"))).unwrap();
    let text = String::from_utf8(zstd::decode_all(packed.as_slice()).unwrap()).unwrap();
    text.lines().skip(1).map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

fn address(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

/// MAT's dominator tree: by address, ascending, the address of the dominator, `None` below the root of the tree.
pub fn mat_tree(name: &str) -> BTreeMap<u64, Option<u64>> {
    let mut at = 0;
    let mut rows = Vec::new();
    for row in table(name, "objects") {
        let [gap, _, _, back] = &row[..] else { panic!("{row:?}") };
        at += address(gap);
        // The number of rows further up.
        let back: Option<i64> = (back != "-").then(|| back.parse().unwrap());
        rows.push((at, back));
    }
    let addresses: Vec<u64> = rows.iter().map(|(address, _)| *address).collect();
    let above = |row: usize, back: i64| addresses[usize::try_from(row as i64 - back).unwrap()];
    rows.iter().enumerate().map(|(row, (at, back))| (*at, back.map(|back| above(row, back)))).collect()
}

/// A dump with MAT's answers.
struct Oracle {
    name: &'static str,
    heap: Heap,
    graph: ObjectGraph,
    /// Kept as long as the graph.
    _dump: Dump,
}

impl Oracle {
    fn all() -> impl Iterator<Item = Self> {
        let folders = std::fs::read_dir(samples().join("oracle")).unwrap().count();
        assert_eq!(folders, ORACLES.len(), "answers came or went: say so here");
        ORACLES.into_iter().map(|(name, folder)| {
            let dump = Dump::sample(&samples().join(format!("{folder}/{name}.hprof.zst")));
            let (heap, graph) = dump.open_graph();
            Self { name, heap, graph, _dump: dump }
        })
    }

    fn id(&self, object: u32) -> u64 {
        self.graph.objects.addresses.id_of(ObjectIndex(object)).unwrap().0
    }

    /// The position of the object with an address.
    fn position(&self, address: u64) -> u32 {
        self.graph
            .tree
            .reachable_position(self.graph.objects.addresses.index_of(ObjectId(address)).unwrap())
            .unwrap()
            .0
    }

    /// Our dominator tree, in MAT's words.
    fn tree(&self) -> BTreeMap<u64, Option<u64>> {
        let tree = &self.graph.tree;
        let id = |position| self.id(tree.object_at(position).unwrap().0);
        (0..tree.reachable())
            .map(|position| (id(TreePosition(position)), tree.dominator(TreePosition(position)).map(id)))
            .collect()
    }
}

#[test]
fn dominators_of_all_objects_are_those_of_mat() {
    let mut compared = 0;
    for oracle in Oracle::all() {
        let mut mat = mat_tree(oracle.name);
        // The boot loader: MAT gives it an object, which dominates nothing.
        assert_eq!(mat.remove(&0), Some(None), "{}", oracle.name);
        let ours = oracle.tree();
        let missing = mat.keys().find(|address| !ours.contains_key(address));
        assert_eq!(missing, None, "{}: reachable for MAT only", oracle.name);
        let more = ours.keys().find(|address| !mat.contains_key(address));
        assert_eq!(more, None, "{}: reachable for us only", oracle.name);
        let differ: Vec<_> =
            mat.iter().filter(|(address, above)| ours[*address] != **above).take(5).collect();
        assert_eq!(differ, [], "{}", oracle.name);
        assert!(!oracle.graph.is_damaged());
        compared += mat.len();
    }
    assert_eq!(compared, 689_148, "objects compared");
}

/// The summary that MAT writes says the same of reachable and unreachable objects.
#[test]
fn reachable_and_unreachable_objects_are_as_many_as_in_mat() {
    for oracle in Oracle::all() {
        let path = samples().join(format!("oracle/{}/summary.txt", oracle.name));
        let text = std::fs::read_to_string(path).unwrap();
        let number = |key: &str| -> u32 {
            let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
            line.trim().parse().unwrap()
        };
        let tree = &oracle.graph.tree;
        // One is the boot loader.
        assert_eq!(tree.reachable() + 1, number("objects\t"), "{}", oracle.name);
        assert_eq!(tree.objects() - tree.reachable(), number("unreachable_objects\t"), "{}", oracle.name);
    }
}

/// The retained size of each object is the sum of our shallow sizes over MAT's tree.
#[test]
fn retained_sizes_are_sums_over_the_tree_of_mat() {
    for oracle in Oracle::all() {
        let mat = mat_tree(oracle.name);
        let tree = &oracle.graph.tree;
        let shallow = |address: u64| tree.shallow_bytes(TreePosition(oracle.position(address)));
        let mut retained: BTreeMap<u64, (u64, u32)> = mat
            .keys()
            .filter(|address| **address != 0)
            .map(|address| (*address, (shallow(*address), 1)))
            .collect();
        let mut below: BTreeMap<u64, u32> = BTreeMap::new();
        mat.values().flatten().for_each(|above| *below.entry(*above).or_default() += 1);
        // A node without pending children is added to its dominator.
        let mut ready: Vec<u64> =
            retained.keys().filter(|address| !below.contains_key(address)).copied().collect();
        let mut top = 0;
        while let Some(address) = ready.pop() {
            let (bytes, count) = retained[&address];
            let Some(above) = mat[&address] else {
                top += bytes;
                continue;
            };
            let sum = retained.get_mut(&above).unwrap();
            *sum = (sum.0 + bytes, sum.1 + count);
            let left = below.get_mut(&above).unwrap();
            *left -= 1;
            if *left == 0 {
                ready.push(above);
            }
        }
        for (address, wanted) in &retained {
            let position = oracle.position(*address);
            let ours =
                (tree.retained_bytes(TreePosition(position)), tree.retained_objects(TreePosition(position)));
            assert_eq!(ours, *wanted, "{}: {address:#x}", oracle.name);
        }
        assert_eq!(top, tree.reachable_bytes(), "{}", oracle.name);
        // The total of reachable objects by shallow sizes.
        let all: u64 = (0..tree.reachable()).map(|position| tree.shallow_bytes(TreePosition(position))).sum();
        assert_eq!(top, all, "{}", oracle.name);
    }
}

/// Returns MAT's name of a root kind.
fn mat_kind(kind: RootKind) -> &'static str {
    match kind {
        RootKind::JniGlobal => "JNI Global",
        RootKind::StickyClass => "System Class",
        RootKind::ThreadObject => "Thread",
        RootKind::MonitorUsed => "Busy Monitor",
        RootKind::NativeStack => "Native Stack",
        RootKind::JavaFrame => "Java Local",
        RootKind::JniLocal => "JNI Local",
        RootKind::ThreadBlock => "Thread Block",
        other => panic!("{other:?} is not in these dumps"),
    }
}

#[test]
fn roots_are_those_of_mat() {
    let mut compared = 0;
    for oracle in Oracle::all() {
        let mut mat: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
        for row in table(oracle.name, "roots") {
            let [at, _, kinds] = &row[..] else { panic!("{row:?}") };
            mat.insert(address(at), kinds.split(',').map(str::to_owned).collect());
        }
        let mut ours: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
        for root in oracle.graph.roots.rows.iter().filter(|root| !root.is_local) {
            ours.entry(oracle.id(root.object.0)).or_default().insert(mat_kind(root.kind).to_owned());
        }
        let differ: Vec<_> = (mat.keys().chain(ours.keys()))
            .filter(|at| mat.get(*at) != ours.get(*at))
            .map(|at| format!("{at:#x}: {:?}, for MAT {:?}", ours.get(at), mat.get(at)))
            .collect();
        assert_eq!(differ, Vec::<String>::new(), "{}", oracle.name);
        let objects: Vec<u64> =
            oracle.graph.roots.objects().iter().map(|object| oracle.id(object.0)).collect();
        assert!(objects.iter().eq(mat.keys()), "{}", oracle.name);
        assert!(!oracle.heap.summary().is_damaged());
        compared += mat.len();
    }
    assert_eq!(compared, 4704, "roots compared");
}
