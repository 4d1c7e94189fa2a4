//! What accumulates below an object, or below all members of a group, and whether it does: many children of one class, a
//! chain, a buffer, like threads or loaders; or parts of different kinds, which the object merely holds.

use rustc_hash::FxHashMap;

use crate::index::ObjectGraph;
use crate::index::graph::numbers::TreePosition;
use crate::index::model::summary::{ClassNumber, Summary};
use crate::query::dominators::merged::{self, Node, NodeClass, Question, Tops};
use crate::query::objects::class_set::ClassSet;

use super::suspects::share;

/// Percent of what is retained that is of one kind where it accumulates.
const OF_ONE_KIND: u64 = 80;
/// Percent of what is retained that no single child has more of where it is in many.
const AT_MOST_IN_ONE: u64 = 50;
/// Children that are many.
const MANY: u64 = 10;
/// Threads and class loaders that are many.
const MANY_LIKE: u64 = 3;
/// Levels of the tree below the object that are looked at.
const LEVELS: u32 = 8;
/// Percent of what the object retains that a level has at least where it is told.
const OF_LEVEL: u64 = 20;

/// How something accumulates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// In many children of one class.
    Children {
        /// The class.
        class: String,
        /// How many.
        objects: u64,
        /// What they retain.
        retained_bytes: u64,
    },
    /// In a chain of objects of one class, each of which dominates the next.
    Chain {
        /// The class.
        class: String,
        /// How many objects.
        objects: u64,
    },
    /// In one array.
    Buffer {
        /// Its class.
        class: String,
    },
    /// In threads of one pool or class.
    Threads {
        /// The name of the pool, with `*` for what differs; of a class of threads nothing.
        pool: Option<String>,
        /// How many.
        threads: u64,
        /// What they retain.
        retained_bytes: u64,
    },
    /// In what many class loaders define: classes of one name, or the loaders themselves.
    Loaders {
        /// The name of the class that each defines, or of the loaders' class.
        class: String,
        /// The class of the first loader.
        loader_class: Option<String>,
        /// How many.
        loaders: u64,
        /// What they retain.
        retained_bytes: u64,
    },
    /// In many objects that only the roots dominate.
    Members,
}

/// Objects of one class name below the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Level {
    /// The name of the class; of class objects, that of the class they stand for.
    pub class: String,
    /// Whether they are class objects.
    pub is_class_object: bool,
    /// How many.
    pub objects: u64,
    /// Those that follow one another in the tree, at most.
    pub chain: u32,
    /// What they retain.
    pub retained_bytes: u64,
    /// Classes of the name: more than one if several loaders define it.
    classes: u64,
    /// The nodes.
    nodes: Vec<usize>,
}

/// The dominator tree below some objects, merged by class name.
#[derive(Debug)]
pub(super) struct Below<'a> {
    summary: &'a Summary,
    nodes: Vec<Node>,
    /// By node, and for the tops behind them: the nodes right below.
    children: Vec<Vec<usize>>,
    threads: ClassSet,
    loaders: ClassSet,
}

impl<'a> Below<'a> {
    /// Looks at what some objects dominate, of which none dominates another; by position, ascending.
    pub(super) fn new(summary: &'a Summary, graph: &ObjectGraph, tops: &[TreePosition]) -> Self {
        let question =
            Question { tops: Tops::Objects(tops), levels: LEVELS, top: None, min_retained_bytes: 0 };
        let nodes = merged::merged(summary, graph, &question).nodes;
        let mut children = vec![Vec::new(); nodes.len() + 1];
        for (at, node) in nodes.iter().enumerate() {
            if let Some(children) = children.get_mut(node.parent.unwrap_or(nodes.len())) {
                children.push(at);
            }
        }
        Self {
            summary,
            nodes,
            children,
            threads: ClassSet::of_name_and_below(summary, "java.lang.Thread"),
            loaders: ClassSet::of_name_and_below(summary, "java.lang.ClassLoader"),
        }
    }

    fn name(&self, class: NodeClass) -> (&'a str, bool) {
        let name = |class: ClassNumber| self.summary.class(class).map_or("", |row| self.summary.class_name(row));
        match class {
            NodeClass::Instances(class) => (name(class), false),
            NodeClass::ClassObject(class) => (name(class), true),
            NodeClass::Unknown => ("", false),
        }
    }

    /// The class of the loader of a class, or of a loader itself.
    fn loader_class(&self, class: NodeClass) -> Option<String> {
        let (NodeClass::Instances(number) | NodeClass::ClassObject(number)) = class else { return None };
        let row = self.summary.class(number)?;
        if self.loaders.contains(number) && matches!(class, NodeClass::Instances(_)) {
            return Some(self.summary.class_name(row).to_owned());
        }
        self.summary.loader_class(row.loader.into()).map(str::to_owned)
    }

    /// The nodes right below some nodes by class name, those that retain most first; the tops themselves below none.
    fn levels(&self, parents: Option<&[usize]>) -> Vec<Level> {
        let top = [self.nodes.len()];
        let parents = parents.unwrap_or(&top).iter();
        let mut found: FxHashMap<(&str, bool), Level> = FxHashMap::default();
        for at in parents.filter_map(|parent| self.children.get(*parent)).flatten() {
            let Some(node) = self.nodes.get(*at) else { continue };
            let key = self.name(node.class);
            let level = found.entry(key).or_default();
            level.objects += node.objects;
            level.chain = level.chain.max(node.chain);
            level.retained_bytes = level.retained_bytes.saturating_add(node.retained_bytes);
            level.classes += 1;
            level.nodes.push(*at);
        }
        let mut levels: Vec<Level> = found
            .into_iter()
            .map(|((class, is_class_object), level)| Level {
                class: class.to_owned(),
                is_class_object,
                ..level
            })
            .collect();
        levels.sort_by(|a, b| {
            let key = |level: &Level| (std::cmp::Reverse(level.retained_bytes), level.is_class_object);
            key(a).cmp(&key(b)).then_with(|| a.class.cmp(&b.class))
        });
        levels
    }

    /// The kinds of objects right below the tops, those that retain most first.
    pub(super) fn parts(&self) -> Vec<Level> {
        let tops: Vec<usize> = self.levels(None).into_iter().flat_map(|level| level.nodes).collect();
        self.levels(Some(&tops))
    }

    /// What accumulates, from the tops down: on each level the kind that retains most, while it is much.
    pub(super) fn accumulated(&self) -> Vec<Level> {
        let mut found: Vec<Level> = Vec::new();
        let mut next = self.levels(None).into_iter().next();
        while let Some(level) = next {
            let all = found.first().map_or(0, |first| first.retained_bytes);
            if level.retained_bytes < share(all, OF_LEVEL) || level.class.is_empty() {
                break;
            }
            next = self.levels(Some(&level.nodes)).into_iter().next();
            found.push(level);
        }
        found
    }

    /// Of one object: how what it retains accumulates, if it does. `in_one` is what its largest child retains.
    pub(super) fn reason(&self, shallow_bytes: u64, in_one: u64) -> Option<Reason> {
        let top = self.levels(None).into_iter().next()?;
        let all = top.retained_bytes;
        let much = share(all, OF_ONE_KIND);
        let is_array = top.class.ends_with("[]");
        if is_array && shallow_bytes >= much {
            return Some(Reason::Buffer { class: top.class });
        }
        let part = self.parts().into_iter().next();
        if u64::from(top.chain) >= MANY {
            // The links take it themselves, or what hangs on them is of one kind.
            let on_links = part.as_ref().is_some_and(|part| part.objects >= MANY);
            let by_links = self.nodes.first().is_some_and(|node| node.shallow_bytes >= much);
            return (on_links || by_links).then_some(Reason::Chain { class: top.class, objects: top.objects });
        }
        let part = part.filter(|part| part.retained_bytes >= much && in_one <= share(all, AT_MOST_IN_ONE))?;
        let Level { class, objects, retained_bytes, .. } = part.clone();
        let class_of = |set: &ClassSet| {
            let node = part.nodes.first().and_then(|at| self.nodes.get(*at));
            matches!(node.map(|node| node.class), Some(NodeClass::Instances(class)) if set.contains(class))
        };
        let is_of_loaders = part.classes >= MANY_LIKE || class_of(&self.loaders);
        if is_of_loaders && objects >= MANY_LIKE {
            let first = part.nodes.first().and_then(|at| self.nodes.get(*at))?.class;
            let loader_class = self.loader_class(first);
            let loaders = if loader_class.as_deref() == Some(class.as_str()) { objects } else { part.classes };
            return Some(Reason::Loaders { class, loader_class, loaders, retained_bytes });
        }
        if class_of(&self.threads) && objects >= MANY_LIKE {
            return Some(Reason::Threads { pool: None, threads: objects, retained_bytes });
        }
        let is_many = objects >= MANY && !part.is_class_object;
        is_many.then_some(Reason::Children { class, objects, retained_bytes })
    }
}

/// Of the members of a group, those that retain most first: whether what they retain is in many of them.
pub(super) fn is_in_many(retained: impl Iterator<Item = u64>, all: u64, are_like: bool) -> bool {
    let much = share(all, OF_ONE_KIND);
    let mut sum = 0u64;
    let needed = retained.take_while(|bytes| {
        let is_needed = sum < much;
        sum = sum.saturating_add(*bytes);
        is_needed
    });
    needed.count() as u64 >= if are_like { MANY_LIKE } else { MANY }
}

/// Whether so much of something is most of it: 80 percent.
pub(super) fn is_most(part: u64, all: u64) -> bool {
    part >= share(all, OF_ONE_KIND)
}
