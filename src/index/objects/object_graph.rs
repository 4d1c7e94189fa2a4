//! The graph of a heap, opened: objects, references both ways, roots, dominators.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::class_objects::ClassObjects;
use super::object_table::Objects;
use super::roots::Roots;
use crate::graph::adjacency::{AdjacencyLists, Targets};
use crate::graph::graph_view::Labels;
use crate::graph::numbers::ObjectIndex;
use crate::graph::tree::Tree;
use crate::model::summary::{ClassNumber, Summary};
use crate::storage::memory;
use crate::storage::scratch::ScratchArena;

/// Objects, references both ways, roots and dominators of a heap.
#[derive(Debug)]
pub struct ObjectGraph {
    /// Ids, classes and places of all objects.
    pub objects: Objects,
    /// Object -> the objects that it refers to, other than its class object; a thread also refers to its locals.
    pub references: AdjacencyLists,
    /// Object -> the objects in whose `references` it is.
    pub referrers: AdjacencyLists,
    /// The dominator tree.
    pub tree: Tree,
    /// The GC roots.
    pub roots: Roots,
    class_objects: ClassObjects,
    damage: Vec<Arc<AtomicBool>>,
    /// For what a question needs of memory: where files would lie, and what the user allows.
    scratch: (PathBuf, Option<u64>),
}

impl ObjectGraph {
    pub(crate) fn new(
        summary: &Summary,
        objects: Objects,
        [references, referrers]: [AdjacencyLists; 2],
        tree: Tree,
        damage: Vec<Arc<AtomicBool>>,
        scratch: (PathBuf, Option<u64>),
    ) -> Self {
        let roots = Roots::new(summary, &objects.addresses);
        let class_objects = ClassObjects::new(summary, &objects.addresses);
        Self { objects, references, referrers, tree, roots, class_objects, damage, scratch }
    }

    /// Room for arrays that hold a number for each object.
    pub fn room(&self) -> ScratchArena {
        let (dir, given) = &self.scratch;
        // Threads have something in hand too.
        let memory = memory::available(*given).map_or(u64::MAX, |there| {
            there.bytes.saturating_sub(memory::working_memory(rayon::current_num_threads()))
        });
        ScratchArena::new(dir.clone(), memory)
    }

    /// Whether something that was read from the index is damaged: then no answer since is right.
    pub fn is_damaged(&self) -> bool {
        self.damage.iter().any(|damage| damage.load(Ordering::Relaxed))
    }

    /// Reads and checks all of the dominator tree, and of ids and classes: what a listing of all objects needs.
    pub fn check_tree(&self) {
        self.tree.check();
        self.objects.check();
    }

    /// Classes and class objects of all objects as plain slices, for walks over many of them. All is checked first.
    pub fn labels(&self) -> Labels<'_> {
        let Objects { classes, class_bytes, .. } = &self.objects;
        Labels { column: classes.all(), width: *class_bytes, targets: self.class_objects.by_class() }
    }

    /// The class object of a class, by class number.
    pub fn class_object(&self, class: ClassNumber) -> Option<ObjectIndex> {
        self.class_objects.class_object(class)
    }

    /// The class object of an object's class, to which every object refers; java.lang.Class's for class objects.
    pub fn class_object_of(&self, object: ObjectIndex) -> Option<ObjectIndex> {
        self.class_object(self.objects.class(object)?)
    }

    /// All objects that an object refers to, but for its class object.
    pub fn references(&self, object: ObjectIndex) -> Targets<'_> {
        self.references.list(object)
    }

    /// All objects that refer to an object, but for instances that refer to it as their class.
    pub fn referrers(&self, object: ObjectIndex) -> Targets<'_> {
        self.referrers.list(object)
    }

    /// The class that an object is the class object of.
    #[inline]
    pub fn class_of_class_object(&self, object: ObjectIndex) -> Option<ClassNumber> {
        self.class_objects.class(object)
    }
}
