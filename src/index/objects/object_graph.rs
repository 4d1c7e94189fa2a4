//! The object graph of a heap: objects, references in both directions, roots, dominators.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::class_objects::ClassObjects;
use super::gc_roots::Roots;
use super::object_table::ObjectTable;
use crate::graph::adjacency::{AdjacencyLists, Targets};
use crate::graph::graph_view::Labels;
use crate::graph::numbers::ObjectIndex;
use crate::graph::tree::Tree;
use crate::model::summary::{ClassNumber, Summary};
use crate::storage::memory;
use crate::storage::scratch::ScratchArena;

/// Objects, references in both directions, roots and dominators of a heap.
#[derive(Debug)]
pub struct ObjectGraph {
    /// IDs, classes and record offsets of all objects.
    pub objects: ObjectTable,
    /// References of each object, except that to its class object; a thread also refers to its locals.
    pub references: AdjacencyLists,
    /// Referrers of each object: the transpose of `references`.
    pub referrers: AdjacencyLists,
    /// Dominator tree.
    pub tree: Tree,
    /// GC roots.
    pub roots: Roots,
    class_objects: ClassObjects,
    damage: Vec<Arc<AtomicBool>>,
    /// Directory for scratch files, and the memory limit given by the user.
    scratch: (PathBuf, Option<u64>),
}

impl ObjectGraph {
    pub(crate) fn new(
        summary: &Summary,
        objects: ObjectTable,
        [references, referrers]: [AdjacencyLists; 2],
        tree: Tree,
        damage: Vec<Arc<AtomicBool>>,
        scratch: (PathBuf, Option<u64>),
    ) -> Self {
        let roots = Roots::new(summary, &objects.addresses);
        let class_objects = ClassObjects::new(summary, &objects.addresses);
        Self { objects, references, referrers, tree, roots, class_objects, damage, scratch }
    }

    /// Returns a scratch arena for arrays with a number for each object.
    pub fn room(&self) -> ScratchArena {
        let (dir, given) = &self.scratch;
        // Threads need working memory too.
        let memory = memory::available(*given).map_or(u64::MAX, |there| {
            there.bytes.saturating_sub(memory::working_memory(rayon::current_num_threads()))
        });
        ScratchArena::new(dir.clone(), memory)
    }

    /// Returns `true` if damage was found in the index: all later results are unreliable.
    pub fn is_damaged(&self) -> bool {
        self.damage.iter().any(|damage| damage.load(Ordering::Relaxed))
    }

    /// Reads and checks the dominator tree, IDs and classes: the data for a listing of all objects.
    pub fn check_tree(&self) {
        self.tree.check();
        self.objects.check();
    }

    /// Returns the classes and class objects of all objects as plain slices, for traversals. Checks all of
    /// them first.
    pub fn labels(&self) -> Labels<'_> {
        let ObjectTable { classes, class_bytes, .. } = &self.objects;
        Labels { column: classes.all(), width: *class_bytes, targets: self.class_objects.by_class() }
    }

    /// Returns the class object of a class.
    pub fn class_object(&self, class: ClassNumber) -> Option<ObjectIndex> {
        self.class_objects.class_object(class)
    }

    /// Returns the class object of an object's class, to which every object refers; for class objects, the class object of
    /// java.lang.Class.
    pub fn class_object_of(&self, object: ObjectIndex) -> Option<ObjectIndex> {
        self.class_object(self.objects.class(object)?)
    }

    /// Returns the objects to which an object refers, except its class object.
    pub fn references(&self, object: ObjectIndex) -> Targets<'_> {
        self.references.list(object)
    }

    /// Returns the objects that refer to an object, except instances that refer to it as their class.
    pub fn referrers(&self, object: ObjectIndex) -> Targets<'_> {
        self.referrers.list(object)
    }

    /// Returns the class of a class object.
    #[inline]
    pub fn class_of_class_object(&self, object: ObjectIndex) -> Option<ClassNumber> {
        self.class_objects.class(object)
    }
}
