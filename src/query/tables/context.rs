//! Context of the tables of a dump.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use super::column_names::ColumnNames;
use super::tree_rows::{TreeLookup, TreeRows};
use hprof_analyses::frameworks::Frameworks;
use hprof_base::sorting::SortRows;
use hprof_index::Dump;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::summary::ClassNumber;
use hprof_model::objects::reference_names::Edges;
use hprof_model::strings::TextKey;
use hprof_model::threads::{ThreadRow, Threads};
use hprof_recordings::profile::flight::FlightFile;
use hprof_values::ObjectId;

/// A dump, and data shared by several of its tables.
#[derive(Debug)]
pub struct TableContext<'a> {
    /// The dump.
    pub dump: Dump<'a>,
    /// Sizes of objects.
    pub sizes: Sizes,
    /// Names of all classes by class number.
    pub class_names: ColumnNames,
    /// Name and labels of the dump.
    pub about: About,
    /// Rules about frameworks.
    pub(super) frameworks: Frameworks,
    edges: OnceLock<Edges<'a>>,
    /// Threads of the dump, by object ID.
    pub(super) threads: OnceLock<(Threads<'a>, Vec<ThreadRow>)>,
    /// Class numbers sorted by name, and by the ID of the class object.
    by_name: OnceLock<Vec<ClassNumber>>,
    by_id: OnceLock<Vec<(u64, ClassNumber)>>,
    /// Dominator tree read in one pass; alive only while a reader reads most objects.
    tree_rows: Mutex<Weak<TreeRows>>,
}

/// Name and labels of a dump, and additional inputs.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// Name of the dump.
    pub name: String,
    /// Labels given by the user: name and value.
    pub labels: Vec<(String, String)>,
    /// Flight Recorder recording.
    pub recording: Option<Arc<FlightFile>>,
    /// Key of the hashes of texts.
    pub text_key: TextKey,
}

impl<'a> TableContext<'a> {
    /// Creates the context of a dump.
    pub fn new(dump: &Dump<'a>, about: About, frameworks: Frameworks) -> Self {
        let summary = dump.summary;
        let names = summary.classes().iter().map(|class| summary.class_name(class));
        Self {
            dump: *dump,
            sizes: Sizes::new(summary, None),
            class_names: Arc::new(names.collect()),
            about,
            frameworks,
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

    /// Reads the dominator tree of all objects: lookups are faster while the result exists.
    pub(super) fn prepare_tree(&self, stop: &(dyn Fn() -> bool + Sync)) -> Option<Arc<TreeRows>> {
        if let Some(rows) = self.tree_rows() {
            return Some(rows);
        }
        // No lock is held meanwhile: a thread must not wait for work that needs all threads.
        let rows = Arc::new(TreeRows::new(self.dump.graph, stop)?);
        *self.tree_rows.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&rows);
        Some(rows)
    }

    /// Returns a lookup of objects in the dominator tree.
    pub(super) fn in_tree(&self) -> TreeLookup<'a> {
        TreeLookup { tree: &self.dump.graph.tree, rows: self.tree_rows() }
    }

    /// Returns the classes of a name, by number.
    pub fn classes_named(&self, name: &str) -> &[ClassNumber] {
        let name_of = |class: &ClassNumber| self.class_names.get(class.0 as usize).unwrap_or_default();
        let all = self.by_name.get_or_init(|| {
            let mut all: Vec<ClassNumber> =
                self.dump.summary.numbered_classes().map(|(number, _)| number).collect();
            all.sort_rows_by(|a, b| name_of(a).cmp(name_of(b)));
            all
        });
        let start = all.partition_point(|class| name_of(class) < name);
        let rest = all.get(start..).unwrap_or_default();
        rest.get(..rest.partition_point(|class| name_of(class) == name)).unwrap_or_default()
    }

    /// Returns the class of a class object, given as in a table.
    pub fn class_of_id(&self, id: i64) -> Option<ClassNumber> {
        let all = self.by_id.get_or_init(|| {
            let classes = self.dump.summary.numbered_classes();
            let ids = classes.filter_map(|(number, _)| Some((self.class_id(number)?.0, number)));
            let mut all: Vec<(u64, ClassNumber)> = ids.collect();
            all.sort_unstable();
            all
        });
        let start = all.partition_point(|(known, _)| *known < id.cast_unsigned());
        all.get(start).filter(|(known, _)| *known == id.cast_unsigned()).map(|(_, class)| *class)
    }

    /// Returns whether IDs also ascend as signed numbers, as SQL compares them: all are on one side of 2^63.
    pub fn ids_ascend(&self) -> bool {
        // If no ID has the highest bit set, no lookup is needed.
        if self.dump.summary.facts().id_bits.get().cast_signed() >= 0 {
            return true;
        }
        let last = self.dump.graph.objects.len().saturating_sub(1);
        let id = |object| self.id(ObjectIndex(object)).unwrap_or_default().0.cast_signed();
        (id(0) < 0) == (id(last) < 0)
    }

    /// Returns the decoder of references.
    pub fn edges(&self) -> &Edges<'a> {
        self.edges.get_or_init(|| Edges::new(&self.dump))
    }

    /// Returns the ID of an object.
    pub fn id(&self, object: ObjectIndex) -> Option<ObjectId> {
        self.dump.graph.objects.addresses.id_of(object)
    }

    /// Returns the object with an ID, given as in a table.
    pub fn object(&self, id: i64) -> Option<ObjectIndex> {
        self.dump.graph.objects.addresses.index_of(ObjectId(id.cast_unsigned()))
    }

    /// Returns the ID of the class object of a class, if that is in the dump.
    pub fn class_id(&self, class: ClassNumber) -> Option<ObjectId> {
        self.dump.summary.class(class)?.class_object()
    }
}
