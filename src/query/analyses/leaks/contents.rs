//! Accumulation below an object, or below all members of a group: many children of one class, a chain, a buffer, or similar
//! threads or loaders. If none of these applies, the object merely holds parts of different kinds.

use std::cmp::Reverse;

use hprof_base::share::portion;
use rustc_hash::FxHashMap;

use hprof_base::sorting::SortRows;
use hprof_index::DumpGraph;
use hprof_index::graph::numbers::TreePosition;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_model::dominators::merged_by_class::{self, MergedNode, MergedQuery, NodeClass, Tops};
use hprof_model::dominators::preorder::Start;
use hprof_model::histogram::HistogramGroupBy;
use hprof_model::histogram::listing;
use hprof_model::objects::class_set::ClassSet;

use super::holders::InOnePlace;

/// Minimum percentage of the retained size in objects of one kind for an accumulation.
const OF_ONE_KIND: u64 = 80;
/// Maximum percentage of the retained size in a single child for an accumulation in many children.
const AT_MOST_IN_ONE: u64 = 50;
/// Minimum number of children that count as many.
const MANY: u64 = 10;
/// Minimum number of threads or class loaders that count as many.
const MANY_LIKE: u64 = 3;
/// Maximum number of levels examined below the object.
const LEVELS: u32 = 8;
/// Minimum retained size of a reported level, as a percentage of the object's.
const OF_LEVEL: u64 = 20;

/// Form of accumulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Many children of one class.
    Children {
        /// Class of the children.
        class: String,
        /// Number of children.
        objects: u64,
        /// Retained size of the children.
        retained_bytes: u64,
    },
    /// One or more chains of objects of one class: in each, every object dominates the next.
    Chain {
        /// Class of the links.
        class: String,
        /// Number of chains.
        chains: u64,
        /// Total number of links in all chains.
        objects: u64,
        /// `true` if `objects` counts all links; otherwise it is a lower bound.
        is_whole: bool,
    },
    /// One array.
    Buffer {
        /// Class of the array.
        class: String,
    },
    /// Threads of one pool or class.
    Threads {
        /// Name of the pool and location of its threads; both unknown for a class of threads.
        place: InOnePlace,
        /// Number of threads.
        threads: u64,
        /// Retained size of the threads.
        retained_bytes: u64,
    },
    /// Classes of one name defined by many class loaders, or the loaders themselves.
    Loaders {
        /// Name of the class that each loader defines, or the class of the loaders.
        class: String,
        /// Class of the first loader.
        loader_class: Option<String>,
        /// Number of loaders.
        loaders: u64,
        /// Retained size of the loaders' definitions, or of the loaders.
        retained_bytes: u64,
    },
    /// Many objects that only the roots dominate, as members of a group.
    Members,
}

impl Reason {
    /// Returns the name in output.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Children { .. } => "children",
            Self::Chain { .. } => "chain",
            Self::Buffer { .. } => "buffer",
            Self::Threads { .. } => "threads",
            Self::Loaders { .. } => "loaders",
            Self::Members => "members",
        }
    }
}

/// Objects with one class name below the same parents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContentsLevel {
    /// Name of the class; for class objects, the name of the class that they represent.
    pub class: String,
    /// `true` for class objects.
    pub is_class_object: bool,
    /// `true` for soft references: the memory accumulates in their referents.
    pub is_soft: bool,
    /// Number of objects.
    pub objects: u64,
    /// Length of the longest chain of objects of the level in which each dominates the next.
    pub chain: u32,
    /// Retained size of the objects.
    pub retained_bytes: u64,
    /// Numbers of the level's nodes in the merged tree.
    pub(super) nodes: Vec<usize>,
}

/// Objects of one class name that the given objects immediately dominate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ChildKind {
    pub(super) class: String,
    /// `true` for class objects; then `class` is the represented class.
    pub(super) is_class_object: bool,
    pub(super) objects: u64,
    pub(super) retained_bytes: u64,
    /// Classes of that name, with the retained size of their objects. Several loaders may define the class.
    classes: Vec<(ClassNumber, u64)>,
}

impl ChildKind {
    /// Returns whether the objects are instances of `class`.
    pub(super) fn is_of(&self, class: Option<ClassNumber>) -> bool {
        !self.is_class_object
            && class.is_some_and(|class| matches!(self.classes.as_slice(), [(only, _)] if *only == class))
    }
}

/// Dominator tree below the given objects, merged by class name.
#[derive(Debug)]
pub(super) struct MergedTree<'a> {
    summary: &'a Summary,
    nodes: Vec<MergedNode>,
    /// For each node, the nodes immediately below it; the last entry is for the tops.
    children: Vec<Vec<usize>>,
}

/// Returns the objects that `tops` dominate immediately, by class name, largest retained size first; no top may
/// dominate another.
pub(super) fn child_kinds(dump: &DumpGraph<'_>, tops: &[TreePosition]) -> Vec<ChildKind> {
    let tree = &dump.graph.tree;
    let starts: Vec<Start> = tops.iter().copied().map(Start::Object).collect();
    let mut found: FxHashMap<(&str, bool), ChildKind> = FxHashMap::default();
    let mut add = |class: ClassNumber, is_class_object: bool, objects: u64, bytes: u64| {
        let name = dump.summary.class(class).map_or("", |row| dump.summary.class_name(row));
        let kind = found.entry((name, is_class_object)).or_default();
        kind.objects += objects;
        kind.retained_bytes = kind.retained_bytes.saturating_add(bytes);
        kind.classes.push((class, bytes));
    };
    for row in listing::group(dump, &starts, HistogramGroupBy::Class) {
        let group = row.group;
        let Ok(class) = u32::try_from(group.group).map(ClassNumber) else { continue };
        if dump.summary.java_lang_class() != Some(class) {
            add(class, false, group.instances, group.retained_bytes.unwrap_or(0));
            continue;
        }
        // Class objects are distinguished by the class that they represent.
        for (represented, _) in dump.summary.numbered_classes() {
            let object = dump.graph.class_object(represented);
            let position = object.and_then(|object| tree.reachable_position(object));
            let dominator = position.and_then(|position| tree.dominator(position));
            if let (Some(position), Some(dominator)) = (position, dominator)
                && tops.binary_search(&dominator).is_ok()
            {
                add(represented, true, 1, tree.retained_bytes(position));
            }
        }
    }
    let mut kinds: Vec<ChildKind> = found
        .into_iter()
        .map(|((class, is_class_object), kind)| ChildKind {
            class: class.to_owned(),
            is_class_object,
            ..kind
        })
        .collect();
    kinds.sort_rows_by(|a, b| {
        let key = |kind: &ChildKind| (Reverse(kind.retained_bytes), kind.is_class_object);
        key(a).cmp(&key(b)).then_with(|| a.class.cmp(&b.class))
    });
    kinds
}

/// Returns how memory accumulates in the children of an object or in the object itself; `None` if it does not.
pub(super) fn reason(dump: &DumpGraph<'_>, base: TreePosition, kinds: &[ChildKind]) -> Option<Reason> {
    let tree = &dump.graph.tree;
    let all = tree.retained_bytes(base);
    let much = portion(all, OF_ONE_KIND);
    let name = |class: ClassNumber| dump.summary.class(class).map(|row| dump.summary.class_name(row));
    let class = tree.object_at(base).and_then(|object| dump.graph.objects.class(object)).and_then(name);
    if let Some(class) = class.filter(|class| class.ends_with("[]"))
        && tree.shallow_bytes(base) >= much
    {
        return Some(Reason::Buffer { class: class.to_owned() });
    }
    let in_one = tree.children(base).next().map_or(0, |child| tree.retained_bytes(child));
    let kind = kinds.first()?;
    if kind.retained_bytes < much || in_one > portion(all, AT_MOST_IN_ONE) {
        return None;
    }
    let ChildKind { class, is_class_object, objects, retained_bytes, mut classes } = kind.clone();
    let (first, _) = classes.first().copied()?;
    let is_below =
        |name: &str| !is_class_object && ClassSet::of_name_and_below(dump.summary, name).contains(first);
    let are_loaders = is_below("java.lang.ClassLoader");
    if are_loaders && objects >= MANY_LIKE {
        return Some(Reason::Loaders {
            loader_class: Some(class.clone()),
            class,
            loaders: objects,
            retained_bytes,
        });
    }
    // Each loader's own class has its share, rather than all objects counting for one class of the name.
    classes.sort_rows_by_key(|(class, bytes)| (Reverse(*bytes), *class));
    let loader_of = |class| dump.summary.class(class).map(|row| row.loader.get());
    let mut loaders: Vec<Option<u64>> = classes.iter().map(|(class, _)| loader_of(*class)).collect();
    loaders.sort_unstable();
    loaders.dedup();
    let loaders = loaders.len() as u64;
    if loaders >= MANY_LIKE && is_in_many(classes.iter().map(|(_, bytes)| *bytes), retained_bytes, true) {
        let loader = dump.summary.class(first).and_then(|row| dump.summary.loader_class(row.loader.into()));
        let loader_class = loader.map(str::to_owned);
        return Some(Reason::Loaders { class, loader_class, loaders, retained_bytes });
    }
    if objects >= MANY_LIKE && is_below("java.lang.Thread") {
        return Some(Reason::Threads { place: InOnePlace::default(), threads: objects, retained_bytes });
    }
    let is_many = objects >= MANY && !is_class_object;
    is_many.then_some(Reason::Children { class, objects, retained_bytes })
}

impl<'a> MergedTree<'a> {
    /// Merges the objects that `tops` dominate. The tops are ascending positions, none of which dominates another.
    pub(super) fn new(dump: &DumpGraph<'a>, tops: &[TreePosition]) -> Self {
        let question =
            MergedQuery { tops: Tops::Objects(tops), levels: LEVELS, top: None, min_retained_bytes: 0 };
        let nodes = merged_by_class::merge_by_class(dump, &question).nodes;
        let mut children = vec![Vec::new(); nodes.len() + 1];
        for (at, node) in nodes.iter().enumerate() {
            if let Some(children) = children.get_mut(node.parent.unwrap_or(nodes.len())) {
                children.push(at);
            }
        }
        Self { summary: dump.summary, nodes, children }
    }

    fn name(&self, class: NodeClass) -> (&'a str, bool) {
        let name =
            |class: ClassNumber| self.summary.class(class).map_or("", |row| self.summary.class_name(row));
        match class {
            NodeClass::Instances(class) => (name(class), false),
            NodeClass::ClassObject(class) => (name(class), true),
            NodeClass::Unknown => ("", false),
        }
    }

    /// Groups the nodes immediately below the given nodes by class name, largest retained size first; without parents, the
    /// tops themselves.
    fn levels(&self, parents: Option<&[usize]>) -> Vec<ContentsLevel> {
        let top = [self.nodes.len()];
        let parents = parents.unwrap_or(&top).iter();
        let mut found: FxHashMap<(&str, bool), ContentsLevel> = FxHashMap::default();
        for at in parents.filter_map(|parent| self.children.get(*parent)).flatten() {
            let Some(node) = self.nodes.get(*at) else { continue };
            let key = self.name(node.class);
            let level = found.entry(key).or_default();
            level.objects += node.objects;
            level.chain = level.chain.max(node.chain);
            level.retained_bytes = level.retained_bytes.saturating_add(node.retained_bytes);
            level.nodes.push(*at);
        }
        let mut levels: Vec<ContentsLevel> = found
            .into_iter()
            .map(|((class, is_class_object), level)| ContentsLevel {
                class: class.to_owned(),
                is_class_object,
                ..level
            })
            .collect();
        levels.sort_rows_by(|a, b| {
            let key = |level: &ContentsLevel| (Reverse(level.retained_bytes), level.is_class_object);
            key(a).cmp(&key(b)).then_with(|| a.class.cmp(&b.class))
        });
        levels
    }

    /// Returns the accumulating levels from the tops down. On each level this is the kind with the largest retained size, as
    /// long as it is large enough.
    pub(super) fn accumulating_levels(&self) -> Vec<ContentsLevel> {
        let mut found: Vec<ContentsLevel> = Vec::new();
        let mut next = self.levels(None).into_iter().next();
        while let Some(level) = next {
            let all = found.first().map_or(0, |first| first.retained_bytes);
            if level.retained_bytes < portion(all, OF_LEVEL) || level.class.is_empty() {
                break;
            }
            next = self.levels(Some(&level.nodes)).into_iter().next();
            found.push(level);
        }
        found
    }

    /// Returns the kinds of objects below the only top. Objects of the top's own class count as parts of it, as in an array of
    /// arrays or a tree of nodes.
    pub(super) fn kinds(&self) -> Vec<ChildKind> {
        let top = self.levels(None).into_iter().next().unwrap_or_default();
        let levels = self.levels(Some(&top.nodes)).into_iter();
        let class = |at: &usize| {
            let node = self.nodes.get(*at)?;
            match node.class {
                NodeClass::Instances(class) | NodeClass::ClassObject(class) => {
                    Some((class, node.retained_bytes))
                }
                NodeClass::Unknown => None,
            }
        };
        levels
            .map(|level| ChildKind {
                class: level.class,
                is_class_object: level.is_class_object,
                objects: level.objects,
                retained_bytes: level.retained_bytes,
                classes: level.nodes.iter().filter_map(class).collect(),
            })
            .collect()
    }

    /// Returns the nodes of a structure that consists of the only top and the objects of its class below it; their shallow
    /// size; and the largest kind of objects below them.
    fn nodes_and_largest(&self) -> Option<(ContentsLevel, u64, Option<ContentsLevel>)> {
        let top = self.levels(None).into_iter().next()?;
        let nodes = top.nodes.iter().filter_map(|at| self.nodes.get(*at));
        let own = nodes.fold(0, |sum: u64, node| sum.saturating_add(node.shallow_bytes));
        let below = self.levels(Some(&top.nodes)).into_iter().next();
        Some((top, own, below))
    }

    /// Returns a tree of objects of one class with the only top as its root, if its nodes and one kind of objects
    /// below them make up its retained size.
    pub(super) fn tree(&self) -> Option<Reason> {
        let (top, own, below) = self.nodes_and_largest()?;
        let much = own.saturating_add(below.map_or(0, |below| below.retained_bytes));
        let is_tree = top.objects >= MANY
            && !top.class.ends_with("[]")
            && !top.is_class_object
            && is_most(much, top.retained_bytes);
        let ContentsLevel { class, objects, retained_bytes, .. } = top;
        is_tree.then_some(Reason::Children { class, objects, retained_bytes })
    }

    /// Returns the chain that starts at the only top, if its links make up their retained size, or if many objects are attached
    /// to them. `links` is the number of objects of the class that the walk found; if these alternate with other objects, it is
    /// a lower bound.
    pub(super) fn chain(&self, class: &str, links: u64) -> Option<Reason> {
        let (top, own, below) = self.nodes_and_largest()?;
        let takes_turns = top.objects < links;
        let is_chain = takes_turns
            || is_most(own, top.retained_bytes)
            || below.is_none_or(|below| below.objects >= MANY);
        let objects = top.objects.max(links);
        is_chain.then(|| Reason::Chain {
            class: class.to_owned(),
            chains: 1,
            objects,
            is_whole: !takes_turns,
        })
    }
}

/// Returns whether the retained size of a group is spread over many members. `retained` yields the members' sizes, largest
/// first.
pub(super) fn is_in_many(retained: impl Iterator<Item = u64>, all: u64, are_like: bool) -> bool {
    let much = portion(all, OF_ONE_KIND);
    let mut sum = 0u64;
    let needed = retained.take_while(|bytes| {
        let is_needed = sum < much;
        sum = sum.saturating_add(*bytes);
        is_needed
    });
    needed.count() as u64 >= if are_like { MANY_LIKE } else { MANY }
}

/// Returns whether `part` is at least 80 percent of `all`.
pub(super) fn is_most(part: u64, all: u64) -> bool {
    part >= portion(all, OF_ONE_KIND)
}
