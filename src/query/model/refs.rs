//! References of an object, and its referrers.

use crate::objects::reference_kind::ReferenceKind;
use hprof_base::sorting::SortRows;
use std::cmp::Reverse;
use std::ops::Range;

use roaring::RoaringBitmap;

use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::graph::tree::Tree;
use hprof_index::model::summary::ClassNumber;
use hprof_values::ObjectId;

use crate::dominators::avoiding_walk::walk_from;
use crate::dominators::class_counts::{self, Counts};
use crate::histogram;
use crate::objects::reader::{ObjectArray, ObjectReader, ObjectRecord};
use crate::objects::strength::{Strength, is_referent};
use crate::paths::steps::View;

/// Direction in which references are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// To the objects that it references.
    #[default]
    Outgoing,
    /// To its referrers.
    Incoming,
}

/// A reference, and the object at its other end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferenceRow {
    /// Object ID.
    pub id: ObjectId,
    /// Class of the object; `None` if it is unknown, or the object is not in the dump.
    pub class: Option<String>,
    /// Short text that identifies the object within its class.
    pub label: Option<String>,
    /// Field, slot or static field; several if there is more than one reference to the object.
    pub reference: Option<String>,
    /// `true` for a static field.
    pub is_static: bool,
    /// Strength of the reference.
    pub strength: Strength,
    /// Shallow size; `None` if the object is not in the dump.
    pub shallow_bytes: Option<u64>,
    /// Retained size; `None` if the object is unreachable.
    pub retained_bytes: Option<u64>,
}

/// Objects of one class that an object references, or that refer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferenceGroupRow {
    /// Class of the objects, if it is in the dump.
    pub class: Option<ClassNumber>,
    /// Number of distinct objects.
    pub objects: u64,
    /// Shallow size of the objects.
    pub shallow_bytes: u64,
    /// Retained size of the objects by the dominator tree: an object that several of them dominate counts once.
    pub retained_bytes: u64,
}

/// Reader of the references and referrers of the objects of a heap.
#[derive(Debug)]
pub struct ReferenceLister<'a> {
    view: &'a View<'a>,
    objects: ObjectReader<'a>,
}

impl<'a> ReferenceLister<'a> {
    /// Creates a reader of the references of objects that `view` describes.
    pub fn new(view: &'a View<'a>) -> Self {
        Self { view, objects: view.edges.dump.objects }
    }

    fn graph(&self) -> &'a ObjectGraph {
        self.view.edges.dump.graph
    }

    /// Returns the references of an object, computed lazily: outgoing ones in the order of its record, incoming ones by
    /// address of the referrer.
    pub fn rows(
        &self,
        object: ObjectIndex,
        direction: Direction,
    ) -> Box<dyn Iterator<Item = ReferenceRow> + '_> {
        match (direction, self.array(object)) {
            (Direction::Incoming, _) => {
                Box::new(self.graph().referrers(object).map(move |from| self.incoming(from, object)))
            }
            (Direction::Outgoing, None) => {
                let outgoing = self.few(object).into_iter();
                Box::new(outgoing.map(move |(meaning, id)| self.outgoing(object, &meaning, id)))
            }
            // An array may be too long for a list of its elements' kinds.
            (Direction::Outgoing, Some(array)) => {
                let class = self.graph().class_object_of(object);
                let class = class.and_then(|class| self.graph().objects.addresses.id_of(class));
                let elements = (0u32..).zip(self.objects.elements(&array)).filter(|(_, id)| !id.is_null());
                let meanings = elements.map(|(index, id)| (ReferenceKind::Slot(index), id));
                let all = meanings.chain(class.map(|id| (ReferenceKind::Class, id)));
                Box::new(all.map(move |(meaning, id)| self.outgoing(object, &meaning, id)))
            }
        }
    }

    /// Returns the number of rows that [`Self::rows`] returns.
    pub fn count(&self, object: ObjectIndex, direction: Direction) -> u64 {
        match (direction, self.array(object)) {
            (Direction::Incoming, _) => self.graph().referrers(object).count() as u64,
            (Direction::Outgoing, None) => self.few(object).len() as u64,
            (Direction::Outgoing, Some(array)) => {
                let elements = self.objects.elements(&array).filter(|id| !id.is_null()).count() as u64;
                elements + u64::from(self.graph().class_object_of(object).is_some())
            }
        }
    }

    /// Returns the record of an array of references.
    fn array(&self, object: ObjectIndex) -> Option<ObjectArray<'a>> {
        match self.objects.record(object)? {
            ObjectRecord::ObjectArray(array) => Some(array),
            _ => None,
        }
    }

    /// Returns the references of an object other than an array.
    fn few(&self, object: ObjectIndex) -> Vec<(ReferenceKind<'a>, ObjectId)> {
        let mut few = Vec::new();
        self.view.edges.for_each_reference(object, |meaning, id| few.push((meaning, id)));
        few
    }

    fn outgoing(&self, from: ObjectIndex, meaning: &ReferenceKind<'a>, id: ObjectId) -> ReferenceRow {
        let strength = if is_referent(meaning) {
            self.view.edges.strengths.of_object(self.graph(), from)
        } else {
            Strength::Strong
        };
        let object = self.graph().objects.addresses.index_of(id);
        let step = object.map(|object| self.view.step(object, None));
        ReferenceRow {
            id,
            reference: Some(meaning.to_string()),
            is_static: matches!(meaning, ReferenceKind::Static(_)),
            strength,
            shallow_bytes: step.as_ref().map(|step| step.shallow_bytes),
            retained_bytes: object.and_then(|object| self.graph().tree.retained_bytes_of(object)),
            class: step.as_ref().and_then(|step| step.class.clone()),
            label: step.and_then(|step| step.label),
        }
    }

    fn incoming(&self, from: ObjectIndex, to: ObjectIndex) -> ReferenceRow {
        let holding = self.view.edges.holding(from, to);
        let step = self.view.step(from, None);
        ReferenceRow {
            id: step.id,
            reference: Some(holding.to_string()).filter(|text| !text.is_empty()),
            is_static: holding.is_static(),
            strength: self.view.edges.strength(from, &holding),
            shallow_bytes: Some(step.shallow_bytes),
            retained_bytes: self.graph().tree.retained_bytes_of(from),
            class: step.class,
            label: step.label,
        }
    }

    /// Returns the number of objects that refer to an object as their class. They are not in any list: there are as
    /// many as instances.
    pub fn instance_count(&self, object: ObjectIndex) -> Option<u64> {
        let summary = self.objects.summary;
        let number = self.view.edges.class_of_class_object(object)?;
        summary.class(number).map(|class| histogram::instances(summary, number, class))
    }

    /// Returns the objects that an object references, or its referrers, by class, largest retained size first.
    pub fn groups(&self, object: ObjectIndex, direction: Direction) -> Vec<ReferenceGroupRow> {
        let graph = self.graph();
        let others: RoaringBitmap = match direction {
            Direction::Incoming => graph.referrers(object).map(|other| other.0).collect(),
            Direction::Outgoing => {
                let others = graph.references(object).chain(graph.class_object_of(object));
                others.map(|other| other.0).collect()
            }
        };
        let mut of_class: Vec<(Option<ClassNumber>, ObjectIndex)> =
            others.iter().map(ObjectIndex).map(|other| (graph.objects.class(other), other)).collect();
        of_class.sort_unstable();
        let same_class = of_class.chunk_by(|(a, _), (b, _)| a == b);
        let mut rows: Vec<ReferenceGroupRow> = same_class
            .filter_map(|group| {
                let (class, _) = *group.first()?;
                let mut row = ReferenceGroupRow {
                    class,
                    objects: group.len() as u64,
                    shallow_bytes: 0,
                    retained_bytes: 0,
                };
                let positions = group.iter().filter_map(|(_, object)| graph.tree.position(*object));
                let mut positions: Vec<TreePosition> = positions.collect();
                add_up(&graph.tree, &mut positions, &mut row);
                Some(row)
            })
            .collect();
        rows.sort_rows_by_key(|row| (Reverse(row.retained_bytes), row.class));
        rows
    }
}

/// Adds the numbers and sizes of the objects at the given positions.
fn add_up(tree: &Tree, positions: &mut [TreePosition], row: &mut ReferenceGroupRow) {
    positions.sort_unstable();
    let retain = |row: &mut ReferenceGroupRow, range: &Range<TreePosition>| {
        let retained = tree.bytes_before(range.end).saturating_sub(tree.bytes_before(range.start));
        row.retained_bytes = row.retained_bytes.saturating_add(retained);
    };
    // Objects dominated by objects adjacent in the tree, such as siblings: the size is looked up once.
    let mut range = TreePosition(0)..TreePosition(0);
    for position in positions.iter().copied() {
        row.shallow_bytes = row.shallow_bytes.saturating_add(tree.shallow_bytes(position));
        if position >= range.end && position.0 < tree.reachable() {
            if position > range.end {
                retain(row, &range);
                range.start = position;
            }
            range.end = tree.end(position);
        }
    }
    retain(row, &range);
}

/// Objects of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassCounts {
    /// Class number.
    pub class: ClassNumber,
    /// Number and shallow size of the objects.
    pub counts: Counts,
}

/// Returns the objects reachable from an object, itself included, by class, most bytes first. All references count: those to
/// class objects too, and those of weak references.
pub fn reachable(graph: &ObjectGraph, classes: usize, start: ObjectIndex) -> Vec<ClassCounts> {
    let marks = walk_from(graph, start);
    let all = TreePosition(0)..TreePosition(graph.tree.objects());
    let counts = class_counts::count_if(graph, all, classes, |object| marks.contains(object));
    let numbered = (0..).map(ClassNumber).zip(counts);
    let mut rows: Vec<ClassCounts> = numbered
        .filter(|(_, counts)| counts.objects > 0)
        .map(|(class, counts)| ClassCounts { class, counts })
        .collect();
    rows.sort_rows_by_key(|row| (Reverse(row.counts.shallow_bytes), row.class));
    rows
}
