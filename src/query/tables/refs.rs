//! The table `refs`.

use std::fmt::Write;
use std::io;
use std::sync::Arc;

use super::object_chunks::{self, ByClass, objects_of, ranges};
use super::{
    Batch, Chunk, Column, Context, Definition, Key, Kind, List, Lookup, Names, Operator, Question, Table,
    Wanted,
};
use crate::hprof::ObjectId;
use crate::index::graph::numbers::ObjectIndex;
use crate::index::objects::address_index::Ids;
use crate::index::objects::object_table::BLOCK;
use crate::query::objects::reference_kind::ReferenceKind;
use crate::query::objects::strength::{Strength, is_referent};

const FROM: usize = 0;
const FIELD: usize = 1;
const TO: usize = 2;
const KIND: usize = 3;
const STRENGTH: usize = 4;

/// The words of `kind`, in the order of [`number`].
const KINDS: [&str; 7] = ["field", "element", "static", "class", "super", "loader", "local"];
const CLASS: u32 = 3;

const STRENGTHS: [Strength; 5] =
    [Strength::Strong, Strength::Soft, Strength::Weak, Strength::Phantom, Strength::Finalizer];

/// A row a reference: those of records and stacks first, by object; then those of objects to their class objects, by class.
pub(super) struct Refs<'a> {
    context: Arc<Context<'a>>,
    definition: Definition,
    kinds: Names,
    strengths: Names,
    by_class: ByClass,
}

/// What the table has.
pub(super) fn definition() -> Definition {
    Definition {
        name: "refs".into(),
        meaning: "A reference from one object to another".into(),
        order: "by from_id; the references to class objects last, by to_id and from_id".into(),
        columns: vec![
            Column::new("from_id", Kind::Id, "the object that refers"),
            Column::new(
                "field",
                Kind::Text,
                "the field or static field, `[5]` for an element, `<class>`, `<super>`, `<loader>`, `<Java frame>`",
            ),
            Column::new(
                "to_id",
                Kind::Id,
                "the object that it refers to; of a dangling reference not in the dump",
            ),
            Column::new(
                "kind",
                Kind::Name,
                "`field`, `element`, `static`, `class`, `super`, `loader` or `local`",
            ),
            Column::new("strength", Kind::Name, "`strong`, `soft`, `weak`, `phantom` or `finalizer`"),
        ],
    }
}

impl<'a> Refs<'a> {
    pub(super) fn new(context: Arc<Context<'a>>) -> Self {
        Self {
            context,
            definition: definition(),
            kinds: Arc::new(KINDS.map(str::to_owned).to_vec()),
            strengths: Arc::new(STRENGTHS.map(|strength| strength.name().to_owned()).to_vec()),
            by_class: ByClass::default(),
        }
    }

    /// What refers to an object.
    fn to(&self, key: &Key) -> Vec<Chunk> {
        let Key::Integer(id) = key else { return Vec::new() };
        let context = &*self.context;
        let to = ObjectId(id.cast_unsigned());
        let Some(object) = context.object(*id) else { return self.dangling(to) };
        let list = List::of(context.graph.referrers(object).collect());
        let mut chunks: Vec<Chunk> = with(to, &list);
        // Instances are in no list: they are found by their class.
        if let Some(class) = context.graph.class_of_class_object(object) {
            chunks.extend(object_chunks::of_classes(context, &[class]));
        }
        chunks
    }

    /// What refers to an object that is not in the dump: in no list either.
    fn dangling(&self, to: ObjectId) -> Vec<Chunk> {
        if to.is_null() {
            return Vec::new();
        }
        let all = object_chunks::all(&self.context).into_iter();
        all.map(|chunk| {
            let list = List::of(objects_of(&chunk));
            let range = 0..list.get().len();
            Chunk::With(to, list, range)
        })
        .collect()
    }
}

/// What some objects have to do with one.
fn with(id: ObjectId, list: &List) -> Vec<Chunk> {
    ranges(list).map(|range| Chunk::With(id, list.clone(), range)).collect()
}

impl Table for Refs<'_> {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn rows(&self) -> u64 {
        self.context.graph.references.edges() + u64::from(self.context.graph.objects.len())
    }

    fn lookups(&self) -> Vec<Lookup> {
        vec![
            Lookup { column: FROM, operator: Operator::Equal, rows: 4.0 },
            Lookup { column: TO, operator: Operator::Equal, rows: 4.0 },
        ]
    }

    fn names(&self, column: usize) -> Names {
        match column {
            KIND => self.kinds.clone(),
            STRENGTH => self.strengths.clone(),
            _ => Names::default(),
        }
    }

    fn chunks(&self, question: &Question) -> io::Result<Vec<Chunk>> {
        let context = &*self.context;
        Ok(match question {
            Question::Of(FROM, _, Key::Integer(id)) => {
                let object = context.object(*id).into_iter().collect();
                // No ID: all that it refers to.
                with(ObjectId::default(), &List::of(object))
            }
            Question::Of(TO, _, key) => self.to(key),
            Question::Of(..) => Vec::new(),
            Question::All | Question::OrderedBy(_) => {
                let id = |class| context.class_id(class).map(|id| id.0.cast_signed());
                let mut chunks = object_chunks::all(context);
                chunks.extend(object_chunks::listed(self.by_class.get(context, id)?));
                chunks
            }
        })
    }

    fn read(&self, chunk: &Chunk, wanted: Wanted, batch: &mut Batch) -> io::Result<()> {
        let context = &*self.context;
        // For a few objects not all of the index is checked.
        let is_of_few = matches!(chunk, Chunk::With(..));
        let ids = (!is_of_few).then(|| context.graph.objects.addresses.ids());
        let place = (ObjectIndex(0), 0);
        let mut rows = Rows { refs: self, wanted, batch, from: None, ids, place, text: String::new() };
        match chunk {
            Chunk::Rows(_) => {}
            Chunk::Objects(range) => {
                for block in ObjectIndex::chunks(range.clone(), BLOCK) {
                    let count = block.end.0.saturating_sub(block.start.0).min(u64::BITS);
                    let all = u64::MAX.checked_shr(u64::BITS - count).unwrap_or(0);
                    context
                        .edges()
                        .each_of_block(block.start, all, |from, kind, to| rows.add(from, &kind, to));
                }
            }
            Chunk::Listed(list, range) => {
                for object in list.part(range.clone()) {
                    if let Some(class) = context.edges().class_id_of(object) {
                        rows.add(object, &ReferenceKind::Class, class);
                    }
                }
            }
            Chunk::With(id, list, range) => {
                for object in list.part(range.clone()) {
                    context.edges().each(object, |kind, to| {
                        // The references of instances to their class are found apart.
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

/// Makes rows.
struct Rows<'r, 'a> {
    refs: &'r Refs<'a>,
    wanted: Wanted,
    batch: &'r mut Batch,
    /// The object before, and its ID.
    from: Option<(ObjectIndex, Option<ObjectId>)>,
    ids: Option<Ids<'r>>,
    /// The object before, and how many references it had so far, also those that are no rows.
    place: (ObjectIndex, u32),
    text: String,
}

impl Rows<'_, '_> {
    /// Counts a reference: its place among those of the object, in the order of the record.
    #[inline]
    fn count(&mut self, from: ObjectIndex, kind: &ReferenceKind<'_>) -> u32 {
        // An array has fewer elements than that.
        if matches!(kind, ReferenceKind::Class) {
            return i32::MAX.cast_unsigned();
        }
        self.place = if self.place.0 == from { (from, self.place.1.saturating_add(1)) } else { (from, 1) };
        self.place.1
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
                        self.ids = Some(context.graph.objects.addresses.ids());
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
            // Only referents are held less than strongly.
            let strength = if is_referent(kind) {
                context.edges().strengths.of(context.graph, from)
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
                    // A String takes all that is written.
                    let _ = write!(self.text, "{other}");
                    batch.column(FIELD).text(Some(&self.text));
                }
            }
        }
        batch.column(TO).id(Some(to));
        batch.column(KIND).name(Some(number(kind)));
        batch.rows += 1;
        batch.row_numbers.push(i64::from(from.0) << 31 | i64::from(place));
    }
}

/// Which of [`KINDS`] a reference is.
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
