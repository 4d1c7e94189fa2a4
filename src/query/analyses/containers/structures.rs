//! Structures: sets of classes whose objects are nodes that refer to one another.
//!
//! 1. References are counted from class to class. Arrays and JDK collections count as parts of their owners. References that do
//!    not lead into the structure are not counted: references to dominators of the holder (parents, `this$0`), and to objects
//!    that belong elsewhere. A reference counts if its target's dominator is the holder, the holder's own dominator (otherwise
//!    doubly linked lists are missed), or an object of the holder's class further up.
//! 2. Nodes are the classes on short circles ([`super::circles`]).
//! 3. Classes that nodes refer to belong to the structure if they have the same outermost class or a common superclass, and
//!    refer to objects themselves: a hash trie has several kinds of nodes, not all of which refer to nodes of the same class.

use rustc_hash::{FxHashMap, FxHashSet};

use hprof_index::graph::graph_view::Labels;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::{DumpGraph, ObjectGraph};

use super::circles::{TypeGraph, find};
use super::roles::{ClassRole, Owners, Roles};
use hprof_base::parallel;

/// Objects per chunk.
const CHUNK: u32 = 1 << 16;
/// Minimum number of references from one class to another for them to count.
const MIN_REFERENCES: u64 = 3;
/// Maximum number of pairs of classes that are counted per chunk. A hostile dump has more.
const MAX_PAIRS: usize = 1 << 16;
/// Maximum number of pairs of classes in total.
const MAX_ALL_PAIRS: usize = 1 << 21;
/// Number of chunks whose counts are in memory at once.
const BATCH: usize = 64;
/// Number of references that are buffered before they are counted.
const EDGES: usize = 1 << 10;
/// Maximum number of rounds in which classes are added to a structure.
const ROUNDS: usize = 4;
/// Number of reference fields from which on objects are more than nodes.
const MANY_FIELDS: u32 = 8;
/// Maximum number of superclasses of a class that are examined.
const MAX_ABOVE: usize = 64;
/// Maximum length in bytes of a name in which words are searched.
const MAX_NAME: usize = 256;
/// Superclasses that do not characterize their subclasses, such as `java.lang.Object`.
const GENERAL: [&str; 7] = [
    "java.lang.Object",
    "java.lang.Enum",
    "java.lang.Record",
    "java.lang.Number",
    "java.lang.ref.Reference",
    "java.lang.ref.WeakReference",
    "java.lang.ref.SoftReference",
];

/// Structures by the classes of their nodes.
#[derive(Debug, Default)]
pub(super) struct Structures {
    /// By class of nodes: number of the structure.
    of_class: FxHashMap<u32, u32>,
    /// Classes whose nodes refer to other nodes through JDK collections.
    through_collections: FxHashSet<u32>,
}

/// Number of references, by class of the holder, class of the target, and whether a JDK collection is between them.
type Pairs = FxHashMap<(u32, u32, bool), u64>;

impl Structures {
    /// Finds the structures of a dump.
    pub(super) fn find(dump: &DumpGraph<'_>, roles: &Roles, owners: &Owners) -> Self {
        let labels = dump.graph.labels();
        let count = |chunk| PairCounter::new(dump.graph, &labels, roles, owners).count(chunk);
        let mut pairs = Pairs::default();
        let chunks = ObjectIndex::chunks(dump.graph.objects.indices(), CHUNK);
        for batch in chunks.chunks(BATCH) {
            for (pair, count) in parallel::map(batch, count).into_iter().flatten() {
                let is_full = pairs.len() >= MAX_ALL_PAIRS;
                match pairs.get_mut(&pair) {
                    Some(known) => *known += count,
                    None if is_full => {}
                    None => {
                        pairs.insert(pair, count);
                    }
                }
            }
        }
        let mut direct: FxHashMap<(u32, u32), u64> = FxHashMap::default();
        for ((from, to, _), count) in &pairs {
            *direct.entry((*from, *to)).or_default() += count;
        }
        let all = TypeGraph::new(direct.clone());
        // Objects with many fields that refer to others of another kind are program state, not a structure.
        let is_rich = |class: u32| roles.shape(ClassNumber(class)).references() >= MANY_FIELDS;
        direct.retain(|(from, to), count| {
            let are_apart = from != to
                && is_rich(*from)
                && is_rich(*to)
                && !have_common(dump.summary, ClassNumber(*from), ClassNumber(*to));
            *count >= MIN_REFERENCES && !are_apart
        });
        let mut found = Self { of_class: TypeGraph::new(direct).structures(), ..Self::default() };
        found.absorb(dump.summary, &all);
        let is_within = |(from, to, _): &(u32, u32, bool)| {
            found.of_class.get(from).is_some_and(|own| found.of_class.get(to) == Some(own))
        };
        let through = pairs.keys().filter(|pair| pair.2 && is_within(pair));
        found.through_collections = through.map(|(from, ..)| *from).collect();
        found
    }

    /// Adds classes that nodes refer to and that belong to the same structure.
    fn absorb(&mut self, summary: &Summary, types: &TypeGraph) {
        // Kinds of nodes of one library's structure need not refer to one another in a circle.
        let mut known: Vec<u32> = self.of_class.keys().copied().collect();
        known.sort_unstable();
        let mut numbers: FxHashMap<u32, u32> =
            self.of_class.values().map(|number| (*number, *number)).collect();
        for class in known {
            for target in types.targets(class) {
                let both = (self.of_class.get(&class).copied(), self.of_class.get(target).copied());
                if let (Some(a), Some(b)) = both
                    && is_akin(summary, ClassNumber(class), ClassNumber(*target))
                {
                    let (a, b) = (find(&mut numbers, a), find(&mut numbers, b));
                    numbers.insert(a.max(b), a.min(b));
                }
            }
        }
        for number in self.of_class.values_mut() {
            *number = find(&mut numbers, *number);
        }
        for _ in 0..ROUNDS {
            let mut more: FxHashMap<u32, u32> = FxHashMap::default();
            for (class, structure) in &self.of_class {
                for target in types.targets(*class) {
                    let is_new = !self.of_class.contains_key(target) && !types.targets(*target).is_empty();
                    if is_new && is_akin(summary, ClassNumber(*class), ClassNumber(*target)) {
                        let known = more.entry(*target).or_insert(*structure);
                        *known = (*known).min(*structure);
                    }
                }
            }
            if more.is_empty() {
                break;
            }
            self.of_class.extend(more);
        }
    }

    /// Returns the number of the structure whose nodes are of a class.
    #[inline]
    pub(super) fn structure_of(&self, class: ClassNumber) -> Option<u32> {
        self.of_class.get(&class.0).copied()
    }

    /// Returns whether nodes of a class refer to others through JDK collections.
    pub(super) fn is_through_collections(&self, class: ClassNumber) -> bool {
        self.through_collections.contains(&class.0)
    }
}

/// Counter of the references to the objects of a chunk, by class.
///
/// Referrers are anywhere in memory, so references are buffered first, and the data of their holders are prefetched.
struct PairCounter<'s> {
    graph: &'s ObjectGraph,
    labels: &'s Labels<'s>,
    roles: &'s Roles,
    owners: &'s Owners,
    /// Buffered references: holder and target.
    edges: Vec<(ObjectIndex, ObjectIndex)>,
    pairs: Pairs,
    /// The array examined last, and whether it belongs to a JDK collection.
    last_array: Option<(ObjectIndex, bool)>,
}

impl<'s> PairCounter<'s> {
    fn new(graph: &'s ObjectGraph, labels: &'s Labels<'s>, roles: &'s Roles, owners: &'s Owners) -> Self {
        let (edges, pairs) = (Vec::with_capacity(EDGES), Pairs::default());
        Self { graph, labels, roles, owners, edges, pairs, last_array: None }
    }

    fn role(&self, object: ObjectIndex) -> ClassRole {
        self.roles.of_label(self.labels.label_of(object.0))
    }

    fn count(mut self, chunk: std::ops::Range<ObjectIndex>) -> Pairs {
        let graph = self.graph;
        for to in ObjectIndex::range(chunk) {
            // An object without an owner is not within a structure.
            if self.role(to) != ClassRole::Plain || self.owners.owner_of(to).is_none() {
                continue;
            }
            for from in graph.referrers(to) {
                self.labels.prefetch(from.0);
                self.owners.prefetch(from);
                self.edges.push((from, to));
                if self.edges.len() >= EDGES {
                    self.count_edges();
                }
            }
        }
        self.count_edges();
        self.pairs
    }

    fn count_edges(&mut self) {
        let edges = std::mem::take(&mut self.edges);
        for (from, to) in &edges {
            if let Some(pair) = self.pair(*from, *to)
                && (self.pairs.len() < MAX_PAIRS || self.pairs.contains_key(&pair))
            {
                *self.pairs.entry(pair).or_default() += 1;
            }
        }
        self.edges = edges;
        self.edges.clear();
    }

    /// Returns the key of a reference in [`Pairs`]; `None` if the reference does not lead into a structure.
    fn pair(&mut self, from: ObjectIndex, to: ObjectIndex) -> Option<(u32, u32, bool)> {
        let role = self.role(from);
        let holder = match role {
            ClassRole::Leaf => return None,
            ClassRole::Plain => self.owners.is_reachable(from).then_some(from)?,
            ClassRole::Array | ClassRole::Collection => self.owners.owner_of(from)?,
        };
        let class = self.labels.label_of(holder.0);
        if holder == to || self.roles.of_label(class) != ClassRole::Plain {
            return None;
        }
        let owner = self.owners.owner_of(to)?;
        // An object with the same owner, or the owner itself, is not below the target.
        let is_near = owner == holder || Some(owner) == self.owners.owner_of(holder);
        let is_local = is_near || self.labels.label_of(owner.0) == class && !self.is_back(holder, to);
        if !is_local {
            return None;
        }
        let is_through =
            role == ClassRole::Collection || role == ClassRole::Array && self.is_of_collection(from);
        Some((u32::try_from(class).ok()?, u32::try_from(self.labels.label_of(to.0)).ok()?, is_through))
    }

    /// Returns whether a reference leads back to a dominator of the holder.
    fn is_back(&self, holder: ObjectIndex, to: ObjectIndex) -> bool {
        let tree = &self.graph.tree;
        let (holder, to) = (tree.reachable_position(holder), tree.reachable_position(to));
        holder.zip(to).is_some_and(|(holder, to)| holder >= to && tree.dominates(to, holder))
    }

    /// Returns whether an array belongs to a JDK collection.
    fn is_of_collection(&mut self, array: ObjectIndex) -> bool {
        match self.last_array {
            Some((known, is_of_collection)) if known == array => is_of_collection,
            _ => {
                let tree = &self.graph.tree;
                let dominator = tree.reachable_position(array).and_then(|position| tree.dominator(position));
                let above = dominator.and_then(|position| tree.object_at(position));
                let is_of_collection = above.is_some_and(|above| self.role(above) == ClassRole::Collection);
                self.last_array = Some((array, is_of_collection));
                is_of_collection
            }
        }
    }
}

/// Returns whether two classes belong to one structure of a library: they are nested in the same class, or have a common
/// superclass that is itself a node.
fn is_akin(summary: &Summary, a: ClassNumber, b: ClassNumber) -> bool {
    let name = |class: ClassNumber| summary.class(class).map_or("", |row| summary.class_name(row));
    let outer = |class| name(class).split('$').next().unwrap_or_default();
    let table = summary.class_table();
    let is_shared = |above: ClassNumber| {
        let above_name = name(above);
        (outer(above) == outer(a) && outer(a) == outer(b) || is_named(above_name, NODES))
            && !is_general(above_name)
            && table.upwards(b).take(MAX_ABOVE).any(|class| class == above)
    };
    let is_nested = name(a).contains('$') && outer(a) == outer(b) && is_named(name(b), NODES_AND_PARTS);
    is_nested || table.upwards(a).take(MAX_ABOVE).any(is_shared)
}

/// Returns whether two classes have an informative common superclass.
fn have_common(summary: &Summary, a: ClassNumber, b: ClassNumber) -> bool {
    let table = summary.class_table();
    let name = |class: ClassNumber| summary.class(class).map_or("", |row| summary.class_name(row));
    let of_a: FxHashSet<u32> = table.upwards(a).take(MAX_ABOVE).map(|class| class.0).collect();
    let mut of_b = table.upwards(b).take(MAX_ABOVE);
    of_b.any(|class| of_a.contains(&class.0) && !is_general(name(class)))
}

/// Words in names of node classes.
const NODES: &[&str] =
    &["node", "entry", "leaf", "branch", "bucket", "chunk", "segment", "link", "cell", "block", "page"];
/// Words in names of node classes that are nested in a collection. Classes of a small program are often all nested in one
/// class.
const NODES_AND_PARTS: &[&str] = &[
    "node", "entry", "leaf", "branch", "bucket", "chunk", "segment", "link", "cell", "slot", "tree", "list",
    "map", "set", "inner", "black", "red", "internal", "shard", "page", "block",
];

/// Returns whether a class is a node class of a JDK collection.
pub(super) fn is_jdk_node(class: &str) -> bool {
    class.starts_with("java.util.")
        && class.contains('$')
        && is_named(class, &["node", "entry"])
        && !class.contains("Simple")
}

/// Returns whether the last part of a class's name contains one of the words.
fn is_named(name: &str, words: &[&str]) -> bool {
    let last = name.rsplit(['$', '.']).next().unwrap_or_default();
    if last.len() > MAX_NAME {
        return false;
    }
    let last = last.to_lowercase();
    words.iter().any(|word| last.contains(word))
}

/// Returns whether a class with this name does not characterize its subclasses.
pub(super) fn is_general(name: &str) -> bool {
    GENERAL.contains(&name)
}
