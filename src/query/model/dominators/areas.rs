//! A bounded view of the dominator tree: nested areas, as many as can be displayed.
//!
//! The tree is opened where it is largest, until there are as many areas as requested. It is divided where memory
//! divides: an object that merely holds another one is folded into that one's area. The largest children of an object
//! are areas of their own; the others are merged by class, and small ones are summed up. Objects of one class that
//! dominate one another, such as the links of a list or the nodes of a tree, are one area.
//!
//! Siblings are in descending order of retained size, so the merged ones, with all that they dominate, are a range of
//! positions: one pass over it finds their classes, and the levels below (`merged_by_class`). These ranges hardly
//! overlap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::objects::label::Labels;
use hprof_base::share::portion;
use hprof_base::sorting::SortRows;
use hprof_index::graph::numbers::TreePosition;
use hprof_index::model::summary::ClassNumber;
use hprof_index::{DumpGraph, ObjectGraph};
use hprof_values::ObjectId;

use super::merged_by_class::{self, MergedDominators, MergedNode, NodeClass, Tops};
use super::preorder::Start;

/// Maximum depth of areas, so code that walks over them may recurse.
const DEEPEST: u32 = 256;
/// Minimum percentage of a folded object's retained size that the object at the end of the chain has.
const OF_CHAIN: u64 = 98;
/// Maximum percentage of a folded object's retained size that any other child has.
const BESIDE_CHAIN: u64 = 1;
/// Maximum number of objects of a chain.
const MAX_CHAIN: usize = 64;
/// Number of children that are separate areas however small they are.
const FEW: usize = 40;
/// Minimum percentage of an object's size for further children to be separate areas.
const OF_PARENT: u64 = 1;
/// Minimum number of objects of one class, each the largest child of the one before, that are not a coincidence.
const RUN: usize = 8;
/// Minimum percentage of a link of such a run that the next one has: a balanced tree divides by two, and has values.
const OF_LINK: u64 = 25;
/// Maximum number of levels of merged areas below one object.
const MERGED_LEVELS: u32 = 12;

/// Query for a view of the dominator tree: its start and its size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AreaQuery {
    /// Start of the view.
    pub start: Start,
    /// Maximum number of areas, including the first.
    pub max_areas: usize,
    /// Minimum retained size of an area as a share of the start; 0.01 is 1 percent.
    pub min_share: f64,
    /// Maximum number of levels below the first area, up to 256.
    pub max_depth: u32,
}

impl Default for AreaQuery {
    fn default() -> Self {
        Self { start: Start::Roots, max_areas: 1500, min_share: 0.0005, max_depth: 64 }
    }
}

/// An area of the view: a part of the dominator tree.
///
/// If an area has children, `shallow_bytes` and their retained bytes add up to its retained bytes. If it has none, its
/// retained size is not divided: see [`Area::undivided_bytes`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Area {
    /// Objects of the area.
    pub what: AreaObjects,
    /// Retained size. For an object with a chain: the retained size of the outermost object.
    pub retained_bytes: u64,
    /// Number of objects that would be freed with it, including those of `what`.
    pub retained_objects: u64,
    /// Shallow size of the objects of `what`, including its chain.
    pub shallow_bytes: u64,
    /// Areas in it, largest retained size first; `Others` last.
    pub children: Vec<Area>,
}

impl Area {
    /// Returns the part of the retained size that is neither the area's own nor in its children: 0 if it has children.
    pub fn undivided_bytes(&self) -> u64 {
        let divided = |sum: u64, child: &Self| sum.saturating_add(child.retained_bytes);
        self.retained_bytes.saturating_sub(self.children.iter().fold(self.shallow_bytes, divided))
    }
}

/// Objects that an area represents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AreaObjects {
    /// All reachable objects: the start is the roots.
    All,
    /// One object, and the objects above that merely hold it.
    Object {
        /// Object ID.
        id: ObjectId,
        /// Class, if it is in the dump.
        class: Option<ClassNumber>,
        /// For a class object: the class that it represents.
        represents: Option<ClassNumber>,
        /// Short text that identifies the object. Not escaped.
        label: Option<String>,
        /// Objects above that are folded into this area, outermost first.
        chain: Vec<ChainLink>,
    },
    /// Objects of one class below the same parent that are not areas of their own, and those of the class that they
    /// dominate without another class between.
    Merged {
        /// Class, if it is in the dump.
        class: Option<ClassNumber>,
        /// Number of objects.
        objects: u64,
        /// Object that dominates them immediately; `None` if that is the roots or merged objects.
        parent: Option<ObjectId>,
    },
    /// Everything else below the same parent.
    Others {
        /// Number of objects, on all levels.
        objects: u64,
    },
}

/// An object of a folded chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainLink {
    /// Object ID.
    pub id: ObjectId,
    /// Class, if it is in the dump.
    pub class: Option<ClassNumber>,
    /// For a class object: the class that it represents.
    pub represents: Option<ClassNumber>,
}

/// Computes the view. The first area represents the start, even if that retains nothing.
pub fn areas(dump: &DumpGraph<'_>, labels: &Labels<'_>, question: &AreaQuery) -> Area {
    let tree = &dump.graph.tree;
    let all = match question.start {
        Start::Roots => tree.reachable_bytes(),
        Start::Object(position) => tree.retained_bytes(position),
    };
    let mut picture = Picture {
        graph: dump.graph,
        labels,
        java_lang_class: dump.summary.java_lang_class(),
        least: min_area_bytes(all, question.min_share),
        max_areas: question.max_areas.max(1),
        max_depth: question.max_depth.min(DEEPEST),
        made: Vec::new(),
        merged: Vec::new(),
        to_open: BinaryHeap::new(),
    };
    match question.start {
        Start::Roots => {
            let figures = AreaFigures {
                retained_bytes: all,
                retained_objects: u64::from(tree.reachable()),
                shallow_bytes: 0,
                own_objects: 0,
            };
            picture.add(None, AreaObjects::All, figures, Inside::Below(Start::Roots));
        }
        Start::Object(position) => picture.add_object(None, position),
    }
    while let Some((_, Reverse(area))) = picture.to_open.pop() {
        if picture.remaining_areas() < 2 {
            break;
        }
        picture.open(area);
    }
    picture.assemble()
}

/// Returns the minimum size of an area.
#[allow(clippy::cast_possible_truncation)] // `as` keeps to the range of the type.
#[allow(clippy::cast_precision_loss, clippy::cast_sign_loss)]
fn min_area_bytes(all: u64, min_share: f64) -> u64 {
    ((all as f64 * min_share).ceil() as u64).max(1)
}

/// Sizes and numbers of objects of an area.
#[derive(Debug, Clone, Copy)]
struct AreaFigures {
    retained_bytes: u64,
    retained_objects: u64,
    shallow_bytes: u64,
    /// Objects that take up the shallow size.
    own_objects: u64,
}

/// Contents of an area, for dividing it.
#[derive(Debug, Clone, Copy)]
enum Inside {
    /// Not divided.
    Whole,
    /// Objects dominated by an object or by the roots.
    Below(Start),
    /// Nodes below a node of a merged tree.
    Merged { tree: usize, node: usize },
}

/// An area before it is nested.
struct AreaDraft {
    area: Area,
    parent: Option<usize>,
    depth: u32,
    own_objects: u64,
    inside: Inside,
}

/// Siblings and the objects that they dominate, merged by class.
struct MergedTree {
    nodes: Vec<MergedNode>,
    /// By node: the nodes immediately below, largest retained size first.
    children: Vec<Vec<usize>>,
    /// Dominator of the top nodes.
    parent: Option<ObjectId>,
}

impl MergedTree {
    fn new(merged: MergedDominators, parent: Option<ObjectId>) -> Self {
        let nodes = merged.nodes;
        let mut children = vec![Vec::new(); nodes.len()];
        for (at, node) in nodes.iter().enumerate() {
            if let Some(children) = node.parent.and_then(|parent| children.get_mut(parent)) {
                children.push(at);
            }
        }
        Self { nodes, children, parent }
    }
}

/// A view of the dominator tree under construction.
struct Picture<'a, 'b> {
    graph: &'a ObjectGraph,
    labels: &'a Labels<'b>,
    java_lang_class: Option<ClassNumber>,
    least: u64,
    max_areas: usize,
    max_depth: u32,
    /// Areas, parents before their children.
    made: Vec<AreaDraft>,
    merged: Vec<MergedTree>,
    /// Areas that may be divided: retained bytes and number.
    to_open: BinaryHeap<(u64, Reverse<usize>)>,
}

impl Picture<'_, '_> {
    /// Returns the number of areas that may still be made.
    fn remaining_areas(&self) -> usize {
        self.max_areas.saturating_sub(self.made.len())
    }

    fn add(&mut self, parent: Option<usize>, what: AreaObjects, figures: AreaFigures, inside: Inside) {
        let depth = parent.and_then(|parent| self.made.get(parent)).map_or(0, |parent| parent.depth + 1);
        let AreaFigures { retained_bytes, retained_objects, shallow_bytes, own_objects } = figures;
        let is_whole = matches!(inside, Inside::Whole) || retained_bytes <= shallow_bytes;
        if !is_whole && depth < self.max_depth {
            self.to_open.push((retained_bytes, Reverse(self.made.len())));
        }
        let area = Area { what, retained_bytes, retained_objects, shallow_bytes, children: Vec::new() };
        self.made.push(AreaDraft { area, parent, depth, own_objects, inside });
    }

    fn link(&self, position: TreePosition) -> ChainLink {
        let object = self.graph.tree.object_at(position);
        ChainLink {
            id: object.and_then(|object| self.graph.objects.addresses.id_of(object)).unwrap_or_default(),
            class: object.and_then(|object| self.graph.objects.class(object)),
            represents: object.and_then(|object| self.graph.class_of_class_object(object)),
        }
    }

    /// Adds an area for an object and those below that it merely holds; or for the run that it starts.
    fn add_object(&mut self, parent: Option<usize>, outermost: TreePosition) {
        if self.is_run(outermost) {
            return self.add_run(parent, outermost);
        }
        let tree = &self.graph.tree;
        let retained_bytes = tree.retained_bytes(outermost);
        let much = portion(retained_bytes, OF_CHAIN).max(self.least);
        let beside = portion(retained_bytes, BESIDE_CHAIN).max(self.least);
        let (mut at, mut chain) = (outermost, Vec::new());
        let mut shallow_bytes = tree.shallow_bytes(at);
        while chain.len() < MAX_CHAIN {
            let mut children = tree.children(at);
            let Some(largest) = children.next() else { break };
            let is_next_large = |next| tree.retained_bytes(next) >= beside;
            if tree.retained_bytes(largest) < much
                || children.next().is_some_and(is_next_large)
                || self.is_run(largest)
            {
                break;
            }
            chain.push(self.link(at));
            at = largest;
            shallow_bytes = shallow_bytes.saturating_add(tree.shallow_bytes(at));
        }
        let figures = AreaFigures {
            retained_bytes,
            retained_objects: u64::from(tree.retained_objects(outermost)),
            shallow_bytes,
            own_objects: chain.len() as u64 + 1,
        };
        let ChainLink { id, class, represents } = self.link(at);
        let label = tree.object_at(at).and_then(|object| self.labels.label(object));
        let what = AreaObjects::Object { id, class, represents, label, chain };
        self.add(parent, what, figures, Inside::Below(Start::Object(at)));
    }

    /// Returns whether objects of one class follow one another from here on: links of a list, nodes of a tree.
    fn is_run(&self, position: TreePosition) -> bool {
        let tree = &self.graph.tree;
        let class = |at| tree.object_at(at).and_then(|object| self.graph.objects.class(object));
        let Some(first) = class(position).filter(|class| Some(*class) != self.java_lang_class) else {
            return false;
        };
        let mut at = position;
        for _ in 1..RUN {
            let next = tree.children(at).next().filter(|next| class(*next) == Some(first));
            let is_much =
                |next: &TreePosition| tree.retained_bytes(*next) >= portion(tree.retained_bytes(at), OF_LINK);
            let Some(next) = next.filter(is_much) else { return false };
            at = next;
        }
        true
    }

    /// Adds an area for all objects of a run.
    fn add_run(&mut self, parent: Option<usize>, first: TreePosition) {
        let above = self.graph.tree.dominator(first).map(|above| self.link(above).id);
        let tree = self.add_merged_tree(Tops::Objects(&[first]), above);
        self.add_node(parent, tree, 0);
    }

    /// Merges a part of the tree and returns the number of the result.
    fn add_merged_tree(&mut self, tops: Tops<'_>, parent: Option<ObjectId>) -> usize {
        let question = merged_by_class::MergedQuery {
            tops,
            levels: MERGED_LEVELS,
            top: None,
            min_retained_bytes: self.least,
        };
        self.merged.push(MergedTree::new(merged_by_class::merged_instances(self.graph, &question), parent));
        self.merged.len() - 1
    }

    /// Adds an area for a node of a merged tree.
    fn add_node(&mut self, parent: Option<usize>, tree: usize, number: usize) {
        let Some(merged) = self.merged.get(tree) else { return };
        let Some(node) = merged.nodes.get(number) else { return };
        if node.objects == 1 {
            let first = node.first;
            return self.add_object(parent, first);
        }
        let class = match node.class {
            NodeClass::Instances(class) | NodeClass::ClassObject(class) => Some(class),
            NodeClass::Unknown => None,
        };
        let above = if node.parent.is_none() { merged.parent } else { None };
        let what = AreaObjects::Merged { class, objects: node.objects, parent: above };
        let figures = AreaFigures {
            retained_bytes: node.retained_bytes,
            retained_objects: node.retained_objects,
            shallow_bytes: node.shallow_bytes,
            own_objects: node.objects,
        };
        self.add(parent, what, figures, Inside::Merged { tree, node: number });
    }

    /// Divides an area, if it contains anything large enough for an area.
    fn open(&mut self, number: usize) {
        let first_child = self.made.len();
        match self.made.get(number).map(|made| made.inside) {
            Some(Inside::Below(start)) => self.open_object(number, start),
            Some(Inside::Merged { tree, node }) => {
                let children = self.merged.get(tree).and_then(|tree| tree.children.get(node));
                // The last one is for the remainder.
                let most = self.remaining_areas().saturating_sub(1);
                for child in children.into_iter().flatten().copied().take(most).collect::<Vec<_>>() {
                    self.add_node(Some(number), tree, child);
                }
            }
            Some(Inside::Whole) | None => {}
        }
        let children = self.made.get(first_child..).unwrap_or_default();
        let Some(parent) = self.made.get(number).filter(|_| !children.is_empty()) else { return };
        let children_bytes = |sum: u64, child: &AreaDraft| sum.saturating_add(child.area.retained_bytes);
        let children_objects = |sum: u64, child: &AreaDraft| sum.saturating_add(child.area.retained_objects);
        let bytes = children.iter().fold(parent.area.shallow_bytes, children_bytes);
        let objects = children.iter().fold(parent.own_objects, children_objects);
        let bytes = parent.area.retained_bytes.saturating_sub(bytes);
        let objects = parent.area.retained_objects.saturating_sub(objects);
        if bytes > 0 || objects > 0 {
            let figures = AreaFigures {
                retained_bytes: bytes,
                retained_objects: objects,
                shallow_bytes: bytes,
                own_objects: objects,
            };
            self.add(Some(number), AreaObjects::Others { objects }, figures, Inside::Whole);
        }
    }

    /// Adds areas for what an object dominates: the largest objects, and the others by class.
    fn open_object(&mut self, number: usize, start: Start) {
        let tree = &self.graph.tree;
        let (positions, depth) = start.dominated_range(tree);
        let bytes = match start {
            Start::Roots => tree.reachable_bytes(),
            Start::Object(position) => tree.retained_bytes(position),
        };
        let much = portion(bytes, OF_PARENT).max(self.least);
        let mut others = positions.start;
        for (count, child) in start.children(tree).enumerate() {
            others = child;
            let least = if count < FEW { self.least } else { much };
            // The last one is for the remainder.
            if self.remaining_areas() < 2 || tree.retained_bytes(child) < least {
                break;
            }
            self.add_object(Some(number), child);
            others = tree.end(child);
        }
        let bytes = tree.bytes_before(positions.end).saturating_sub(tree.bytes_before(others));
        if self.remaining_areas() < 2 || bytes < self.least || others >= positions.end {
            return;
        }
        let parent = match start {
            Start::Roots => None,
            Start::Object(position) => Some(self.link(position).id),
        };
        let tops = Tops::Siblings { first: others, end: positions.end, depth };
        let merged = self.add_merged_tree(tops, parent);
        let nodes = self.merged.get(merged).map_or(0, |tree| tree.nodes.len());
        for node in 0..nodes {
            let is_top = |tree: &MergedTree| tree.nodes.get(node).is_some_and(|node| node.parent.is_none());
            if self.remaining_areas() < 2 {
                return;
            }
            if self.merged.get(merged).is_some_and(is_top) {
                self.add_node(Some(number), merged, node);
            }
        }
    }

    /// Nests the areas. Starts from the last one, so that none is deeper than necessary.
    fn assemble(mut self) -> Area {
        while let Some(AreaDraft { mut area, parent, .. }) = self.made.pop() {
            area.children.sort_rows_by_key(|child| {
                (matches!(child.what, AreaObjects::Others { .. }), Reverse(child.retained_bytes))
            });
            match parent.and_then(|parent| self.made.get_mut(parent)) {
                Some(above) => above.area.children.push(area),
                None => return area,
            }
        }
        Area {
            what: AreaObjects::All,
            retained_bytes: 0,
            retained_objects: 0,
            shallow_bytes: 0,
            children: Vec::new(),
        }
    }
}
