//! The table `refs`.

use hprof_index::DumpGraph;
use std::fmt::Write;
use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::object_chunks::{self, ByClass, ranges};
use super::{
    Batch, Column, ColumnNames, ColumnSet, Definition, List, Lookup, LookupKey, Operator, Table, TableChunk,
    TableContext, TableQuery,
};
use hprof_base::dictionary::names;
use hprof_base::parallel;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::tables::ClassKind;
use hprof_index::objects::address_index::IdReader;
use hprof_index::objects::object_table::BLOCK;
use hprof_model::objects::reader::ObjectRecord;
use hprof_model::objects::reference_kind::ReferenceKind;
use hprof_model::objects::strength::{Strength, is_referent};
use hprof_values::ObjectId;

const FROM: usize = 0;
const FIELD: usize = 1;
const TO: usize = 2;
const KIND: usize = 3;
const STRENGTH: usize = 4;

/// Values of the column `kind`, in the order of [`number`].
const KINDS: [&str; 7] = ["field", "element", "static", "class", "super", "loader", "local"];
const CLASS: u32 = 3;

const STRENGTHS: [Strength; 5] =
    [Strength::Strong, Strength::Soft, Strength::Weak, Strength::Phantom, Strength::Finalizer];

/// Table with a row for each reference: first those of records and stacks, by object; then those of objects to their
/// class objects, by class.
pub(super) struct Refs<'a> {
    context: Arc<TableContext<'a>>,
    definition: Definition,
    kinds: ColumnNames,
    strengths: ColumnNames,
    by_class: ByClass,
    large: OnceLock<Vec<ObjectIndex>>,
}

/// Flag of row numbers of references from a stack.
const LOCALS: u32 = 1 << 31;

/// Elements per chunk: the rows of a longer array are not all produced at once.
const ELEMENTS: u32 = 1 << 20;

/// Returns the definition of the table.
pub(super) fn definition() -> Definition {
    Definition {
        name: "refs".into(),
        meaning: "A reference from one object to another".into(),
        order: "by referrer; references to class objects last, by target and referrer".into(),
        columns: vec![
            Column::new(names::REFERRER),
            Column::new(names::REFERENCE),
            Column::new(names::TARGET),
            Column::new(names::KIND).few(),
            Column::new(names::STRENGTH).few(),
        ],
    }
}

impl<'a> Refs<'a> {
    pub(super) fn new(context: Arc<TableContext<'a>>) -> Self {
        Self {
            context,
            definition: definition(),
            kinds: Arc::new(KINDS.into_iter().collect()),
            strengths: Arc::new(STRENGTHS.iter().map(|strength| strength.name()).collect()),
            by_class: ByClass::default(),
            large: OnceLock::new(),
        }
    }

    /// Returns chunks with the references to an object.
    fn to(&self, key: &LookupKey) -> Vec<TableChunk> {
        let LookupKey::Integer(id) = key else { return Vec::new() };
        let context = &*self.context;
        let to = ObjectId(id.cast_unsigned());
        let Some(object) = context.object(*id) else { return self.dangling(to) };
        let list = List::from_objects(context.dump.graph.referrers(object).collect());
        let mut chunks: Vec<TableChunk> = with(to, &list);
        // References of instances are not in a list: they are found by class.
        if let Some(class) = context.dump.graph.class_of_class_object(object) {
            chunks.extend(object_chunks::of_classes(context, &[class]));
        }
        chunks
    }

    /// Returns chunks with the references to an object that is not in the dump: its referrers are not in a list either.
    fn dangling(&self, to: ObjectId) -> Vec<TableChunk> {
        if to.is_null() {
            return Vec::new();
        }
        let with = |chunk| match chunk {
            TableChunk::Objects(range) => TableChunk::ObjectsWith(to, range),
            other => other,
        };
        object_chunks::all_objects(&self.context).into_iter().map(with).collect()
    }

    /// Returns the arrays with enough references to have chunks of their own, ascending.
    fn large(&self) -> &[ObjectIndex] {
        if self.large.get().is_none() {
            let context = &*self.context;
            let DumpGraph { graph, summary, .. } = *context.dump;
            let least = u64::from(ELEMENTS) * u64::from(context.sizes.layout().reference_bytes);
            let is_array = |object: ObjectIndex| {
                let class = graph.objects.class(object).and_then(|class| summary.class(class));
                class.is_some_and(|class| class.kind() == ClassKind::ObjectArray)
            };
            let all = TreePosition(0)..TreePosition(graph.tree.objects());
            let found = parallel::map(&TreePosition::chunks(all, 1 << 20), |chunk| -> Vec<ObjectIndex> {
                let sizes = TreePosition::range(chunk.clone()).zip(graph.tree.shallow_sizes(chunk));
                let large = sizes.filter(|(_, bytes)| *bytes >= least);
                let objects = large.filter_map(|(position, _)| graph.tree.object_at(position));
                objects.filter(|object| is_array(*object)).collect()
            });
            let mut large = found.concat();
            large.sort_unstable();
            // Not in `get_or_init`: a thread must not wait for work that needs all threads.
            let _ = self.large.set(large);
        }
        self.large.get().map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns chunks of the elements of a large array, and of its reference to its class.
    fn elements(&self, array: ObjectIndex) -> Vec<TableChunk> {
        let length = match self.context.dump.objects.record(array) {
            Some(ObjectRecord::ObjectArray(array)) => array.length,
            _ => 0,
        };
        let starts = (0..length).step_by(ELEMENTS as usize);
        starts
            .map(|start| TableChunk::Elements(array, start..start.saturating_add(ELEMENTS).min(length)))
            .collect()
    }

    /// Returns chunks covering all objects; elements of large arrays get their own chunks.
    fn all_chunks(&self) -> Vec<TableChunk> {
        let (mut chunks, mut large) = (Vec::new(), self.large());
        for chunk in object_chunks::all_objects(&self.context) {
            let TableChunk::Objects(Range { mut start, end }) = chunk else { continue };
            while let Some((array, rest)) = large.split_first().filter(|(array, _)| **array < end) {
                if start < *array {
                    chunks.push(TableChunk::Objects(start..*array));
                }
                chunks.extend(self.elements(*array));
                start = ObjectIndex(array.0.saturating_add(1));
                large = rest;
            }
            if start < end {
                chunks.push(TableChunk::Objects(start..end));
            }
        }
        chunks
    }
}

/// Returns chunks of the references between one object and a list.
fn with(id: ObjectId, list: &List) -> Vec<TableChunk> {
    ranges(list).map(|range| TableChunk::With(id, list.clone(), range)).collect()
}

impl Table for Refs<'_> {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn rows(&self) -> u64 {
        self.context.dump.graph.references.edges() + u64::from(self.context.dump.graph.objects.len())
    }

    fn lookups(&self) -> Vec<Lookup> {
        vec![
            Lookup { column: FROM, operator: Operator::Equal, rows: 4.0 },
            Lookup { column: TO, operator: Operator::Equal, rows: 4.0 },
        ]
    }

    fn names(&self, column: usize) -> ColumnNames {
        match column {
            KIND => self.kinds.clone(),
            STRENGTH => self.strengths.clone(),
            _ => ColumnNames::default(),
        }
    }

    fn chunks(&self, question: &TableQuery) -> io::Result<Vec<TableChunk>> {
        let context = &*self.context;
        Ok(match question {
            TableQuery::Of(FROM, _, LookupKey::Integer(id)) => {
                let Some(object) = context.object(*id) else { return Ok(Vec::new()) };
                if self.large().binary_search(&object).is_ok() {
                    let mut chunks = self.elements(object);
                    chunks.extend(object_chunks::listed_objects(List::from_objects(vec![object])));
                    return Ok(chunks);
                }
                // A null ID matches all references.
                with(ObjectId::default(), &List::from_objects(vec![object]))
            }
            TableQuery::Of(TO, _, key) => self.to(key),
            TableQuery::Of(..) => Vec::new(),
            TableQuery::All | TableQuery::OrderedBy(_) => {
                let id = |class| context.class_id(class).map(|id| id.0.cast_signed());
                let mut chunks = self.all_chunks();
                chunks.extend(object_chunks::listed_objects(self.by_class.get(context, id)?));
                chunks
            }
        })
    }

    fn read(&self, chunk: &TableChunk, wanted: ColumnSet, batch: &mut Batch) -> io::Result<()> {
        let context = &*self.context;
        // For a few objects the index is not validated entirely.
        let is_of_few = matches!(chunk, TableChunk::With(..));
        let ids = (!is_of_few).then(|| context.dump.graph.objects.addresses.ids());
        let place = (ObjectIndex(0), 0);
        let mut rows = RefRows { refs: self, wanted, batch, from: None, ids, place, text: String::new() };
        match chunk {
            TableChunk::Rows(_) => {}
            TableChunk::Objects(range) => rows.each_of(range, |_| true),
            TableChunk::ObjectsWith(id, range) => rows.each_of(range, |to| to == *id),
            TableChunk::Elements(array, range) => {
                if let Some(ObjectRecord::ObjectArray(record)) = context.dump.objects.record(*array) {
                    let elements = (0u32..).zip(context.dump.objects.elements(&record));
                    let elements = elements.skip(range.start as usize).take(range.len());
                    for (index, to) in elements.filter(|(_, to)| !to.is_null()) {
                        rows.add(*array, &ReferenceKind::Slot(index), to);
                    }
                    if range.end >= record.length {
                        context.edges().for_each_local(*array, |kind, to| rows.add(*array, &kind, to));
                    }
                }
            }
            TableChunk::Listed(list, range) => {
                for object in list.part(range.clone()) {
                    if let Some(class) = context.edges().class_id_of(object) {
                        rows.add(object, &ReferenceKind::Class, class);
                    }
                }
            }
            TableChunk::With(id, list, range) => {
                for object in list.part(range.clone()) {
                    context.edges().for_each_reference(object, |kind, to| {
                        // References of instances to their class are found separately.
                        let is_meant = to == *id && !matches!(kind, ReferenceKind::Class);
                        let place = rows.count(object, &kind);
                        if id.is_null() || is_meant {
                            rows.add_at(object, &kind, to, place);
                        }
                    });
                }
            }
        }
        Ok(())
    }
}

/// Builder of the rows of `refs`.
struct RefRows<'r, 'a> {
    refs: &'r Refs<'a>,
    wanted: ColumnSet,
    batch: &'r mut Batch,
    /// Object of the last reference and its ID.
    from: Option<(ObjectIndex, Option<ObjectId>)>,
    ids: Option<IdReader<'r>>,
    /// Object of the last reference, and its number of references so far, including those without rows.
    place: (ObjectIndex, u32),
    text: String,
}

impl RefRows<'_, '_> {
    /// Adds rows for the references of consecutive objects, except those to their class objects. `is_meant` selects references
    /// by their target.
    fn each_of(&mut self, range: &Range<ObjectIndex>, is_meant: impl Fn(ObjectId) -> bool) {
        let refs = self.refs;
        // A range may start anywhere if a large array splits it.
        let mut start = range.start;
        while start < range.end {
            let first = ObjectIndex(start.0 / BLOCK * BLOCK);
            let end = ObjectIndex(first.0.saturating_add(BLOCK)).min(range.end);
            let upto = u64::MAX.checked_shr(u64::BITS - (end.0 - first.0)).unwrap_or(0);
            let wanted = upto & (u64::MAX << (start.0 - first.0));
            refs.context.edges().for_each_in_block(first, wanted, |from, kind, to| {
                let place = self.count(from, &kind);
                if is_meant(to) {
                    self.add_at(from, &kind, to, place);
                }
            });
            start = end;
        }
    }

    /// Counts a reference and returns its position among the references of its object, in the order of the record.
    #[inline]
    fn count(&mut self, from: ObjectIndex, kind: &ReferenceKind<'_>) -> u32 {
        match kind {
            // Always last.
            ReferenceKind::Class => return u32::MAX,
            // Elements may be read from any position.
            ReferenceKind::Slot(index) => return index.saturating_add(1),
            _ => {}
        }
        // Objects on a stack come last, including those of an array that a malicious dump declares as a thread.
        let first = if matches!(kind, ReferenceKind::Local { .. }) { LOCALS } else { 0 };
        self.place = if self.place.0 == from { (from, self.place.1.saturating_add(1)) } else { (from, 1) };
        self.place.1 | first
    }

    fn add(&mut self, from: ObjectIndex, kind: &ReferenceKind<'_>, to: ObjectId) {
        let place = self.count(from, kind);
        self.add_at(from, kind, to, place);
    }

    fn add_at(&mut self, from: ObjectIndex, kind: &ReferenceKind<'_>, to: ObjectId, place: u32) {
        let batch = &mut *self.batch;
        let context = &*self.refs.context;
        if self.wanted.has(FROM) {
            let id = match self.from {
                Some((object, id)) if object == from => id,
                _ => {
                    if self.ids.is_some() && self.from.is_some_and(|(before, _)| from < before) {
                        self.ids = Some(context.dump.graph.objects.addresses.ids());
                    }
                    match &mut self.ids {
                        Some(ids) => ids.next(from),
                        None => context.id(from),
                    }
                }
            };
            self.from = Some((from, id));
            batch.column(FROM).id(id);
        }
        if self.wanted.has(STRENGTH) {
            // Only referents are held by weaker references.
            let strength = if is_referent(kind) {
                context.edges().strengths.of_object(context.dump.graph, from)
            } else {
                Strength::Strong
            };
            let number = STRENGTHS.iter().position(|known| *known == strength);
            batch.column(STRENGTH).name(number.and_then(|number| u32::try_from(number).ok()));
        }
        if self.wanted.has(FIELD) {
            match kind {
                ReferenceKind::Field { name, .. } | ReferenceKind::Static(name) => {
                    batch.column(FIELD).text(Some(name));
                }
                ReferenceKind::Class => batch.column(FIELD).text(Some("<class>")),
                other => {
                    self.text.clear();
                    // Writing to a String cannot fail.
                    let _ = write!(self.text, "{other}");
                    batch.column(FIELD).text(Some(&self.text));
                }
            }
        }
        batch.column(TO).id(Some(to));
        batch.column(KIND).name(Some(number(kind)));
        batch.rows += 1;
        batch.row_numbers.push((u64::from(from.0) << 32 | u64::from(place)).cast_signed());
    }
}

/// Returns the kind of a reference, an index into [`KINDS`].
fn number(kind: &ReferenceKind<'_>) -> u32 {
    match kind {
        ReferenceKind::Field { .. } => 0,
        ReferenceKind::Slot(_) => 1,
        ReferenceKind::Static(_) => 2,
        ReferenceKind::Class => CLASS,
        ReferenceKind::Super => 4,
        ReferenceKind::Loader => 5,
        ReferenceKind::Local { .. } => 6,
    }
}
