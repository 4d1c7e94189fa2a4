//! The table `objects`.

use std::io;
use std::sync::{Arc, OnceLock};

use super::object_chunks::{self, ByClass, objects_of};
use super::{
    Batch, Column, ColumnNames, ColumnSet, Definition, List, Lookup, LookupKey, Operator, PreparedData,
    Table, TableChunk, TableContext, TableQuery, classes,
};
use hprof_base::dictionary::{names, nulls};
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::ClassNumber;
use hprof_index::model::tables::ClassKind;
use hprof_model::dominators::preorder::Start;
use hprof_model::histogram::listing;
use hprof_model::objects::heaps;
use hprof_model::objects::object_set::Bits;
use hprof_values::ObjectId;

const ID: usize = 0;
const CLASS_ID: usize = 1;
const CLASS: usize = 2;
const KIND: usize = 3;
const SHALLOW: usize = 4;
const RETAINED: usize = 5;
const DEPTH: usize = 6;
const DOMINATOR: usize = 7;
const REACHABLE: usize = 8;
const HEAP: usize = 9;

/// Factor of the mean shallow size: few objects have a retained size above it.
const MANY: u64 = 16;

/// Values of the column `kind`.
pub(super) const KINDS: [&str; 4] = ["instance", "object_array", "primitive_array", "class"];

/// Table with a row for each object.
pub(super) struct Objects<'a> {
    context: Arc<TableContext<'a>>,
    definition: Definition,
    kinds: ColumnNames,
    by_name: ByClass,
    by_class_id: ByClass,
    heaps: OnceLock<Vec<Bits>>,
}

/// Returns the definition of the table.
pub(super) fn definition() -> Definition {
    let unreachable = "it is unreachable";
    Definition {
        name: "objects".into(),
        meaning: "An object: an instance, an array or a class object".into(),
        order: "by object ID".into(),
        columns: vec![
            Column::new(names::OBJECT),
            Column::new(names::CLASS_OBJECT).or_null(nulls::NO_CLASS_OBJECT),
            Column::new(names::CLASS).few().or_null(nulls::CLASS_MISSING),
            Column::new(names::KIND).few(),
            Column::new(names::SHALLOW_BYTES),
            Column::new(names::RETAINED_BYTES).or_null(unreachable),
            Column::new(names::DEPTH).or_null(unreachable),
            Column::new(names::DOMINATOR).or_null("only GC roots dominate the object, or it is unreachable"),
            Column::new(names::IS_REACHABLE),
            Column::new(names::HEAP).few().or_null("only Android dumps have several heaps"),
        ],
    }
}

impl<'a> Objects<'a> {
    pub(super) fn new(context: Arc<TableContext<'a>>) -> Self {
        let kinds = Arc::new(KINDS.into_iter().collect());
        Self {
            context,
            definition: definition(),
            kinds,
            by_name: ByClass::default(),
            by_class_id: ByClass::default(),
            heaps: OnceLock::new(),
        }
    }

    /// Returns the objects in each heap that the dump names (such as Android's zygote heap), in the order of the heaps.
    fn heaps(&self) -> &[Bits] {
        if self.heaps.get().is_none() {
            let dump = &self.context.dump;
            let of = |(_, name)| heaps::objects_of(name, dump).unwrap_or_default();
            // Not in `get_or_init`: a thread must not wait for work that needs all threads.
            let _ = self.heaps.set(dump.summary.heaps().map(of).collect());
        }
        self.heaps.get().map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the objects that the given object immediately dominates, or whose retained size is at least the given one.
    fn in_tree(&self, column: usize, key: &LookupKey) -> Vec<TableChunk> {
        let LookupKey::Integer(value) = key else { return Vec::new() };
        let tree = &self.context.dump.graph.tree;
        let positions: Vec<TreePosition> = if column == DOMINATOR {
            let position = self.context.object(*value).and_then(|object| tree.reachable_position(object));
            position.map(|position| tree.children(position).collect()).unwrap_or_default()
        } else {
            let least = u64::try_from(*value).unwrap_or(0);
            let mean = tree.reachable_bytes() / u64::from(tree.reachable()).max(1);
            if least < mean.saturating_mul(MANY) {
                // Most objects match: a list of them would only take memory.
                return object_chunks::all_objects(&self.context);
            }
            let question = listing::ListingQuery {
                start: Start::Roots,
                levels: u32::MAX,
                top: None,
                min_retained_bytes: least,
            };
            listing::list(tree, &question).positions.into_iter().map(|(position, _)| position).collect()
        };
        let objects = positions.into_iter().filter_map(|position| tree.object_at(position));
        object_chunks::listed_objects(List::from_objects(objects.collect()))
    }
}

impl Table for Objects<'_> {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn rows(&self) -> u64 {
        self.context.dump.graph.objects.len().into()
    }

    fn lookups(&self) -> Vec<Lookup> {
        let rows = f64::from(self.context.dump.graph.objects.len());
        // Mean over the classes that have objects.
        let classes =
            self.context.dump.summary.classes().iter().filter(|class| class.objects.get() > 0).count();
        let of_class = rows / f64::from(u32::try_from(classes).unwrap_or(u32::MAX).max(1));
        vec![
            Lookup { column: ID, operator: Operator::Equal, rows: 1.0 },
            Lookup { column: CLASS, operator: Operator::Equal, rows: of_class },
            Lookup { column: CLASS_ID, operator: Operator::Equal, rows: of_class },
            Lookup { column: DOMINATOR, operator: Operator::Equal, rows: 4.0 },
            Lookup { column: RETAINED, operator: Operator::AtLeast, rows: rows / 16.0 },
        ]
    }

    fn orders(&self) -> Vec<usize> {
        let id = self.context.ids_ascend().then_some(ID);
        id.into_iter().chain([CLASS, CLASS_ID]).collect()
    }

    fn names(&self, column: usize) -> ColumnNames {
        match column {
            CLASS => self.context.class_names.clone(),
            KIND => self.kinds.clone(),
            HEAP => Arc::new(self.context.dump.summary.heaps().map(|(_, name)| name).collect()),
            _ => ColumnNames::default(),
        }
    }

    fn chunks(&self, question: &TableQuery) -> io::Result<Vec<TableChunk>> {
        let context = &*self.context;
        if context.dump.summary.heaps().next().is_some() {
            // Computed here, not by one of the threads that read chunks: it uses all cores.
            self.heaps();
        }
        let name = |class: ClassNumber| context.class_names.get(class.0 as usize).map(str::to_owned);
        let id = |class: ClassNumber| context.class_id(class).map(|id| id.0.cast_signed());
        Ok(match question {
            TableQuery::OrderedBy(CLASS) => object_chunks::listed_objects(self.by_name.get(context, name)?),
            TableQuery::OrderedBy(CLASS_ID) => {
                object_chunks::listed_objects(self.by_class_id.get(context, id)?)
            }
            TableQuery::All | TableQuery::OrderedBy(_) => object_chunks::all_objects(context),
            TableQuery::Of(ID, _, key) => object_chunks::of_id(context, key),
            TableQuery::Of(CLASS, _, key) => {
                self.by_name.chunks_of_classes(context, &classes::find(context, key), name)?
            }
            TableQuery::Of(CLASS_ID, _, key) => {
                self.by_class_id.chunks_of_classes(context, &classes::find(context, key), id)?
            }
            TableQuery::Of(column, _, key) => self.in_tree(*column, key),
        })
    }

    fn prepare(&self, wanted: ColumnSet, stop: &(dyn Fn() -> bool + Sync)) -> Option<PreparedData> {
        let needs_tree = [RETAINED, DEPTH, DOMINATOR].iter().any(|at| wanted.has(*at));
        if needs_tree { self.context.prepare_tree(stop).map(PreparedData) } else { None }
    }

    fn read(&self, chunk: &TableChunk, wanted: ColumnSet, batch: &mut Batch) -> io::Result<()> {
        let summary = self.context.dump.summary;
        let objects = objects_of(chunk);
        batch.rows += objects.len();
        if wanted.has(ID) {
            add_ids(&self.context, &objects, |id| batch.column(ID).id(id));
        }
        if wanted.has(CLASS_ID) || wanted.has(CLASS) || wanted.has(KIND) {
            for_each_object_with_class(&self.context, chunk, &objects, |object, class| {
                batch.column(CLASS).name(class.map(|class| class.0));
                batch.column(CLASS_ID).id(class.and_then(|class| self.context.class_id(class)));
                if wanted.has(KIND) {
                    batch.column(KIND).name(Some(kind(&self.context, object, class)));
                }
            });
        }
        if [SHALLOW, RETAINED, DEPTH, DOMINATOR, REACHABLE].into_iter().any(|column| wanted.has(column)) {
            self.add_tree(&objects, wanted, batch);
        }
        if wanted.has(HEAP) {
            let heaps = if summary.heaps().next().is_some() { self.heaps() } else { &[] };
            for object in &objects {
                let heap = heaps.iter().position(|heap| heap.contains(*object));
                batch.column(HEAP).name(heap.and_then(|heap| u32::try_from(heap).ok()));
            }
        }
        Ok(())
    }
}

impl Objects<'_> {
    /// Adds the columns of the dominator tree.
    fn add_tree(&self, objects: &[ObjectIndex], wanted: ColumnSet, batch: &mut Batch) {
        let tree = &self.context.dump.graph.tree;
        let mut positions = Vec::with_capacity(objects.len());
        tree.positions_of(objects.iter().copied(), |_, position| positions.push(position));
        // A damaged index can have fewer; the rows of its result are discarded.
        positions.resize(objects.len(), TreePosition(u32::MAX));
        let lookup = self.context.in_tree();
        for (object, position) in objects.iter().zip(&positions) {
            let (object, position) = (*object, *position);
            batch.column(SHALLOW).count(Some(tree.shallow_bytes(position)));
            if wanted.has(RETAINED) {
                batch.column(RETAINED).count(lookup.retained_bytes(object, position));
            }
            if wanted.has(DEPTH) {
                batch.column(DEPTH).count(lookup.depth(object, position).map(u64::from));
            }
            batch.column(REACHABLE).boolean(Some(lookup.is_reachable(position)));
            if wanted.has(DOMINATOR) {
                let dominator = lookup.dominator(object, position);
                batch.column(DOMINATOR).id(dominator.and_then(|object| self.context.id(object)));
            }
        }
    }
}

/// Calls `add` with the ID of each of these objects; faster if they ascend.
pub(super) fn add_ids(
    context: &TableContext<'_>,
    objects: &[ObjectIndex],
    mut add: impl FnMut(Option<ObjectId>),
) {
    if let [object] = objects {
        return add(context.id(*object));
    }
    let first = context.dump.graph.objects.addresses.ids();
    let (mut ids, mut before) = (first.clone(), ObjectIndex(0));
    for object in objects {
        if *object < before {
            ids = first.clone();
        }
        before = *object;
        add(ids.next(*object));
    }
}

/// Calls `add` with the class of each object of a chunk.
pub(super) fn for_each_object_with_class(
    context: &TableContext<'_>,
    chunk: &TableChunk,
    objects: &[ObjectIndex],
    mut add: impl FnMut(ObjectIndex, Option<ClassNumber>),
) {
    let table = &context.dump.graph.objects;
    if let TableChunk::Objects(range) = chunk {
        objects.iter().zip(table.classes(range.clone())).for_each(|(object, class)| add(*object, class));
    } else {
        objects.iter().for_each(|object| add(*object, table.class(*object)));
    }
}

/// Returns the kind of an object, an index into [`KINDS`].
pub(super) fn kind(context: &TableContext<'_>, object: ObjectIndex, class: Option<ClassNumber>) -> u32 {
    let is_class = class.is_none() || class == context.dump.summary.java_lang_class();
    if is_class && context.dump.graph.class_of_class_object(object).is_some() {
        return 3;
    }
    match class.and_then(|class| context.dump.summary.class(class)).map(|class| class.kind()) {
        Some(ClassKind::ObjectArray) => 1,
        Some(ClassKind::PrimitiveArray(_)) => 2,
        _ => 0,
    }
}
