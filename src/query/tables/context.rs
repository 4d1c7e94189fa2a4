//! What the tables of a dump are made of.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use super::names::Names;
use super::tree_rows::{TreeLookup, TreeRows};
use crate::objects::reader::ObjectReader;
use crate::objects::reference_names::Edges;
use crate::sorting::SortRows;
use crate::threads::{Row, Threads};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::{Heap, ObjectGraph};
use hprof_parser::ObjectId;

/// A dump, and what several tables ask of it.
#[derive(Debug)]
pub struct Context<'a> {
    /// The dump.
    pub heap: &'a Heap,
    /// What is known of classes.
    pub summary: &'a Summary,
    /// The graph.
    pub graph: &'a ObjectGraph,
    /// The dump's bytes.
    pub bytes: &'a [u8],
    /// Reads objects.
    pub objects: ObjectReader<'a>,
    /// What sizes are.
    pub sizes: Sizes,
    /// The names of all classes, by class number.
    pub class_names: Names,
    /// What the dump is called, and the labels that it was given.
    pub about: About,
    edges: OnceLock<Edges<'a>>,
    /// The threads of the dump, by object ID.
    pub(super) threads: OnceLock<(Threads<'a>, Vec<Row>)>,
    /// Classes by name, and by the ID of their class object.
    by_name: OnceLock<Vec<ClassNumber>>,
    by_id: OnceLock<Vec<(u64, ClassNumber)>>,
    /// There as long as anybody reads most objects.
    tree_rows: Mutex<Weak<TreeRows>>,
}

/// What a dump is called among others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Its name.
    pub name: String,
    /// Labels that the user gave it: name and value.
    pub labels: Vec<(String, String)>,
}

impl<'a> Context<'a> {
    /// Of an opened dump; `bytes` are the dump's ([`Heap::bytes`]).
    pub fn new(heap: &'a Heap, graph: &'a ObjectGraph, bytes: &'a [u8], about: About) -> Self {
        let summary = heap.summary();
        let names = summary.classes().iter().map(|class| summary.class_name(class));
        Self {
            heap,
            summary,
            graph,
            bytes,
            objects: ObjectReader::new(summary, graph, bytes),
            sizes: Sizes::new(summary, None),
            class_names: Arc::new(names.collect()),
            about,
            edges: OnceLock::new(),
            threads: OnceLock::new(),
            by_name: OnceLock::new(),
            by_id: OnceLock::new(),
            tree_rows: Mutex::default(),
        }
    }

    fn tree_rows(&self) -> Option<Arc<TreeRows>> {
        self.tree_rows.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// What the dominator tree says of all objects: lookups are faster as long as it is kept.
    pub(super) fn prepare_tree(&self, stop: &(dyn Fn() -> bool + Sync)) -> Option<Arc<TreeRows>> {
        if let Some(rows) = self.tree_rows() {
            return Some(rows);
        }
        // No lock is held meanwhile: what runs on all cores must not be waited for by one of them.
        let rows = Arc::new(TreeRows::new(self.graph, stop)?);
        *self.tree_rows.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&rows);
        Some(rows)
    }

    /// Looks objects up in the dominator tree.
    pub(super) fn in_tree(&self) -> TreeLookup<'a> {
        TreeLookup { tree: &self.graph.tree, rows: self.tree_rows() }
    }

    /// The classes of a name, by number.
    pub fn classes_named(&self, name: &str) -> &[ClassNumber] {
        let name_of = |class: &ClassNumber| self.class_names.get(class.0 as usize).unwrap_or_default();
        let all = self.by_name.get_or_init(|| {
            let mut all: Vec<ClassNumber> =
                self.summary.numbered_classes().map(|(number, _)| number).collect();
            all.sort_rows_by(|a, b| name_of(a).cmp(name_of(b)));
            all
        });
        let start = all.partition_point(|class| name_of(class) < name);
        let rest = all.get(start..).unwrap_or_default();
        rest.get(..rest.partition_point(|class| name_of(class) == name)).unwrap_or_default()
    }

    /// The class of a class object, as it stands in a table.
    pub fn class_of_id(&self, id: i64) -> Option<ClassNumber> {
        let all = self.by_id.get_or_init(|| {
            let classes = self.summary.numbered_classes();
            let ids = classes.filter_map(|(number, _)| Some((self.class_id(number)?.0, number)));
            let mut all: Vec<(u64, ClassNumber)> = ids.collect();
            all.sort_unstable();
            all
        });
        let start = all.partition_point(|(known, _)| *known < id.cast_unsigned());
        all.get(start).filter(|(known, _)| *known == id.cast_unsigned()).map(|(_, class)| *class)
    }

    /// Whether IDs ascend as signed numbers too, as SQL compares them: all are on one side of 2^63.
    pub fn ids_ascend(&self) -> bool {
        // In no ID the highest bit is set: that is known without looking one up.
        if self.summary.facts().id_bits.get().cast_signed() >= 0 {
            return true;
        }
        let last = self.graph.objects.len().saturating_sub(1);
        let id = |object| self.id(ObjectIndex(object)).unwrap_or_default().0.cast_signed();
        (id(0) < 0) == (id(last) < 0)
    }

    /// What references mean.
    pub fn edges(&self) -> &Edges<'a> {
        self.edges.get_or_init(|| Edges::new(self.summary, self.graph, self.bytes))
    }

    /// The ID of an object.
    pub fn id(&self, object: ObjectIndex) -> Option<ObjectId> {
        self.graph.objects.addresses.id_of(object)
    }

    /// The object of an ID, as it stands in a table.
    pub fn object(&self, id: i64) -> Option<ObjectIndex> {
        self.graph.objects.addresses.index_of(ObjectId(id.cast_unsigned()))
    }

    /// The ID of the class object of a class, which is the class's ID.
    pub fn class_id(&self, class: ClassNumber) -> Option<ObjectId> {
        let id = ObjectId::from(self.summary.class(class)?.id);
        (!id.is_null()).then_some(id)
    }
}
