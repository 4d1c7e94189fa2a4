//! The dominator tree merged by class: objects of one class below the same classes are one node.
//!
//! A map of 60,000 entries is one node of 60,000 `HashMap$Node`, not a list of them. Objects of a class that objects of
//! the same class dominate immediately are in their node too: a linked list, whose tree is a staircase, is therefore
//! one node as well, and what its links hold is one level below.
//!
//! One pass in preorder finds all nodes: the path of classes to an object determines its node. Objects deeper than the
//! requested levels are not examined; their bytes are counted at the node above.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::objects::class_set::ClassSet;
use hprof_base::sorting::SortRows;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::graph::tree::Tree;
use hprof_index::model::summary::ClassNumber;
use hprof_index::model::tables;
use hprof_index::{DumpGraph, ObjectGraph};

use super::{class_pass, retained_of_set};

/// Maximum number of distinct nodes; further ones count as omitted.
const MAX_NODES: usize = 1 << 20;
/// Marks a class object, which has a node of its own by the class that it represents.
const CLASS_OBJECT: u32 = 1 << 31;
/// Class of objects of unknown class.
const UNKNOWN: u32 = CLASS_OBJECT - 1;
/// No node.
const NONE: u32 = u32::MAX;

/// Top objects of a merged tree.
#[derive(Debug, Clone, Copy)]
pub enum Tops<'a> {
    /// All objects that only the roots dominate.
    Roots,
    /// These positions, ascending: none of the objects dominates another.
    Objects(&'a [TreePosition]),
    /// Adjacent siblings: all objects of a depth in the range of positions from `first` to `end`, which covers them and
    /// what they dominate.
    Siblings {
        /// Position of the first.
        first: TreePosition,
        /// End position (exclusive) of the objects that they dominate.
        end: TreePosition,
        /// Depth of the siblings.
        depth: u32,
    },
}

/// Top objects and limits of a merged tree.
#[derive(Debug, Clone, Copy)]
pub struct MergedQuery<'a> {
    /// Top objects of the tree.
    pub tops: Tops<'a>,
    /// Number of levels of nodes, including the first.
    pub levels: u32,
    /// Maximum number of listed nodes below one node; all by default.
    pub top: Option<usize>,
    /// Minimum retained size of a listed node.
    pub min_retained_bytes: u64,
}

/// Class of the objects of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeClass {
    /// Objects of a class.
    Instances(ClassNumber),
    /// The class object of a class.
    ClassObject(ClassNumber),
    /// Objects whose class is not in the dump.
    Unknown,
}

impl NodeClass {
    fn from_key(key: u32) -> Self {
        match key {
            UNKNOWN => Self::Unknown,
            key if key & CLASS_OBJECT != 0 => Self::ClassObject(ClassNumber(key & !CLASS_OBJECT)),
            key => Self::Instances(ClassNumber(key)),
        }
    }
}

/// Nodes omitted below a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OmittedNodes {
    /// Number of nodes.
    pub nodes: u64,
    /// Number of objects of the nodes.
    pub objects: u64,
    /// Retained size of the objects.
    pub retained_bytes: u64,
}

/// A node of a merged tree: objects of one class below the same classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergedNode {
    /// Class of the objects.
    pub class: NodeClass,
    /// Depth of the node, from 0.
    pub depth: u32,
    /// Index of the parent node in the list.
    pub parent: Option<usize>,
    /// Number of objects, including those dominated by objects of the same node.
    pub objects: u64,
    /// Maximum number of the objects that dominate one another in a row: 1 if none of them immediately dominates
    /// another.
    pub chain: u32,
    /// Shallow size of the objects.
    pub shallow_bytes: u64,
    /// Retained size of the objects.
    pub retained_bytes: u64,
    /// Number of objects that would be freed with them, including themselves.
    pub retained_objects: u64,
    /// First of the objects.
    pub first: TreePosition,
    /// First object that another one of the node immediately dominates, after that one.
    pub link: Option<(TreePosition, TreePosition)>,
    /// Nodes omitted immediately below.
    pub others: OmittedNodes,
}

/// A part of the dominator tree, merged by class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MergedDominators {
    /// Nodes in preorder, siblings by retained size, largest first.
    pub nodes: Vec<MergedNode>,
    /// Nodes omitted at the top.
    pub others: OmittedNodes,
}

/// Returns the positions of the objects of the given classes that no other such object dominates, ascending.
pub fn tops(graph: &ObjectGraph, classes: &ClassSet) -> Vec<TreePosition> {
    retained_of_set::tops(&graph.tree, classes.all_objects(graph))
}

/// Merges a part of the tree. Each class object is a node of its own.
pub fn merge_by_class(dump: &DumpGraph<'_>, question: &MergedQuery<'_>) -> MergedDominators {
    let java_lang_class = dump.summary.java_lang_class();
    merge(dump.graph, question, |object: ObjectIndex, class: u32| {
        let is_class = java_lang_class.is_some_and(|of_classes| of_classes.0 == class);
        let represented = if is_class { dump.graph.class_of_class_object(object) } else { None };
        represented.map_or(class, |of| of.0 | CLASS_OBJECT)
    })
}

/// Merges a part of the tree. Class objects are treated as instances of `java.lang.Class`.
pub(super) fn merged_instances(graph: &ObjectGraph, question: &MergedQuery<'_>) -> MergedDominators {
    merge(graph, question, |_, class| class)
}

/// Merges a part of the tree by the key that `key_of` returns for an object and its class.
fn merge(
    graph: &ObjectGraph,
    question: &MergedQuery<'_>,
    key_of: impl Fn(ObjectIndex, u32) -> u32 + Sync,
) -> MergedDominators {
    let tree = &graph.tree;
    let range = match question.tops {
        Tops::Roots => tree.positions(),
        Tops::Objects(tops) => match (tops.first(), tops.last()) {
            (Some(first), Some(last)) => *first..tree.end(*last),
            _ => return MergedDominators::default(),
        },
        Tops::Siblings { first, end, .. } => first..end,
    };
    let key = |object: ObjectIndex, class: u32| {
        if class == tables::NONE { UNKNOWN } else { key_of(object, class) }
    };
    let mut pass = MergePass::new(tree, question);
    class_pass::pass(graph, range.clone(), key, |position, depth, key, bytes| {
        pass.object(position, depth, key, bytes);
    });
    pass.close(0, range.end);
    pass.listing(question)
}

/// Sums of a node during the pass.
#[derive(Debug, Clone, Copy)]
struct NodeSum {
    key: u32,
    parent: u32,
    depth: u32,
    objects: u64,
    chain: u32,
    shallow_bytes: u64,
    retained_bytes: u64,
    retained_objects: u64,
    first: TreePosition,
    link: Option<(TreePosition, TreePosition)>,
}

/// An object that contains the current position, and the links of its chain below it. A chain is one entry, however
/// long.
#[derive(Debug, Clone, Copy)]
struct OpenChain {
    depth: u32,
    /// Depth of the last open link.
    last_depth: u32,
    node: u32,
    position: TreePosition,
    /// Shallow size of all objects before.
    before: u64,
    /// Key and node of the last child: adjacent siblings usually have the same class.
    last: (u32, u32),
}

/// State of a pass that merges a part of the tree.
struct MergePass<'a> {
    tree: &'a Tree,
    levels: u32,
    /// Remaining tops; `None` if all objects of a depth are tops.
    tops: Option<std::slice::Iter<'a, TreePosition>>,
    next_top: Option<TreePosition>,
    /// Depth of tops that are not listed.
    top_depth: u32,
    nodes: Vec<NodeSum>,
    /// Nodes by parent and key.
    known: FxHashMap<(u32, u32), u32>,
    /// Nodes omitted below others because of the limit; with key `NONE`, those at the top.
    too_many: FxHashMap<u32, OmittedNodes>,
    open: Vec<OpenChain>,
    bytes: u64,
    last_top: (u32, u32),
}

impl<'a> MergePass<'a> {
    fn new(tree: &'a Tree, question: &MergedQuery<'a>) -> Self {
        let (mut tops, top_depth) = match question.tops {
            Tops::Roots => (None, 0),
            Tops::Objects(tops) => (Some(tops.iter()), 0),
            Tops::Siblings { depth, .. } => (None, depth),
        };
        let next_top = tops.as_mut().and_then(|tops| tops.next().copied());
        Self {
            tree,
            levels: question.levels,
            tops,
            next_top,
            top_depth,
            nodes: Vec::new(),
            known: FxHashMap::default(),
            too_many: FxHashMap::default(),
            open: Vec::new(),
            bytes: 0,
            last_top: (NONE, NONE),
        }
    }

    /// Processes the next object of the pass.
    #[inline]
    fn object(&mut self, position: TreePosition, depth: u32, key: u32, bytes: u64) {
        self.close(depth, position);
        let before = self.bytes;
        self.bytes = self.bytes.saturating_add(bytes);
        let above = match self.open.last() {
            // Objects below an omitted object are omitted too.
            Some(above) if above.last_depth.checked_add(1) != Some(depth) => return,
            Some(above) => Some(*above),
            None => {
                let is_listed = self.tops.is_some();
                let is_top =
                    if is_listed { self.next_top == Some(position) } else { depth == self.top_depth };
                if !is_top {
                    return;
                }
                self.next_top = self.tops.as_mut().and_then(|tops| tops.next().copied());
                None
            }
        };
        let is_link =
            |above: &OpenChain| self.nodes.get(above.node as usize).is_some_and(|node| node.key == key);
        let (number, chain) = match (above.filter(is_link), self.open.last_mut()) {
            // A link of a chain.
            (Some(above), Some(open)) => {
                open.last_depth = depth;
                (above.node, depth.saturating_sub(above.depth).saturating_add(1))
            }
            _ => {
                let Some(node) = self.node(above, key, position) else { return };
                self.open.push(OpenChain {
                    depth,
                    last_depth: depth,
                    node,
                    position,
                    before,
                    last: (NONE, NONE),
                });
                (node, 1)
            }
        };
        if let Some(node) = self.nodes.get_mut(number as usize) {
            node.objects += 1;
            node.chain = node.chain.max(chain);
            node.shallow_bytes = node.shallow_bytes.saturating_add(bytes);
            if let (true, Some(above)) = (chain > 1, above) {
                // The first link of the node is that of a chain's first two objects.
                node.link = node.link.or(Some((above.position, position)));
            }
        }
    }

    /// Returns the node for objects of this key below an object; `None` if it is too deep, or there are too many.
    fn node(&mut self, above: Option<OpenChain>, key: u32, position: TreePosition) -> Option<u32> {
        let parent = above.map_or(NONE, |above| above.node);
        let last = above.map_or(self.last_top, |above| above.last);
        if last.0 == key && last.1 != NONE {
            return Some(last.1);
        }
        let depth =
            above.and_then(|above| self.nodes.get(above.node as usize)).map_or(0, |node| node.depth + 1);
        if depth >= self.levels {
            return None;
        }
        let known = self.known.get(&(parent, key)).copied();
        let node = match known {
            Some(node) => node,
            None if self.nodes.len() >= MAX_NODES => {
                let others = self.too_many.entry(parent).or_default();
                others.nodes += 1;
                others.objects += 1;
                others.retained_bytes =
                    others.retained_bytes.saturating_add(self.tree.retained_bytes(position));
                return None;
            }
            None => {
                let node = u32::try_from(self.nodes.len()).ok()?;
                self.known.insert((parent, key), node);
                self.nodes.push(NodeSum {
                    key,
                    parent,
                    depth,
                    objects: 0,
                    chain: 1,
                    shallow_bytes: 0,
                    retained_bytes: 0,
                    retained_objects: 0,
                    first: position,
                    link: None,
                });
                node
            }
        };
        match self.open.last_mut() {
            Some(above) => above.last = (key, node),
            None => self.last_top = (key, node),
        }
        Some(node)
    }

    /// Closes the objects at this depth and below, before a position.
    #[inline]
    fn close(&mut self, depth: u32, position: TreePosition) {
        while let Some(open) = self.open.last_mut() {
            if open.depth < depth {
                open.last_depth = open.last_depth.min(depth.saturating_sub(1));
                return;
            }
            let open = *open;
            self.open.pop();
            // The retained size of a link of a chain counts with the first of the chain.
            if let Some(node) = self.nodes.get_mut(open.node as usize) {
                node.retained_bytes = node.retained_bytes.saturating_add(self.bytes - open.before);
                node.retained_objects += u64::from(position.0 - open.position.0);
            }
        }
    }

    /// Converts the nodes to the requested listing.
    fn listing(self, question: &MergedQuery<'_>) -> MergedDominators {
        let Self { nodes, mut too_many, .. } = self;
        let mut children: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for (number, node) in (0u32..).zip(&nodes) {
            children.entry(node.parent).or_default().push(number);
        }
        let most = question.top.unwrap_or(usize::MAX);
        // Picks the listed children of a node, smallest first, and sums the omitted ones.
        let mut pick = |parent: u32| {
            let mut others = too_many.remove(&parent).unwrap_or_default();
            let all = children.remove(&parent).unwrap_or_default().into_iter();
            let mut all: Vec<(u32, &NodeSum)> =
                all.filter_map(|number| Some((number, nodes.get(number as usize)?))).collect();
            all.sort_rows_by_key(|(_, node)| (Reverse(node.retained_bytes), node.key));
            let large = all.partition_point(|(_, node)| node.retained_bytes >= question.min_retained_bytes);
            for (_, node) in all.drain(large.min(most)..) {
                others.nodes += 1;
                others.objects += node.objects;
                others.retained_bytes = others.retained_bytes.saturating_add(node.retained_bytes);
            }
            let picked: Vec<u32> = all.into_iter().rev().map(|(number, _)| number).collect();
            (picked, others)
        };
        let (first, others) = pick(NONE);
        let mut merged = MergedDominators { nodes: Vec::new(), others };
        let mut stack: Vec<(u32, Option<usize>)> = first.into_iter().map(|number| (number, None)).collect();
        while let Some((number, parent)) = stack.pop() {
            let Some(sum) = nodes.get(number as usize) else { continue };
            let place = merged.nodes.len();
            let (below, others) = pick(number);
            merged.nodes.push(MergedNode {
                class: NodeClass::from_key(sum.key),
                depth: sum.depth,
                parent,
                objects: sum.objects,
                chain: sum.chain,
                shallow_bytes: sum.shallow_bytes,
                retained_bytes: sum.retained_bytes,
                retained_objects: sum.retained_objects,
                first: sum.first,
                link: sum.link,
                others,
            });
            stack.extend(below.into_iter().map(|number| (number, Some(place))));
        }
        merged
    }
}
