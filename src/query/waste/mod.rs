//! Memory spent for nothing: what each kind of waste is made of, which fields hold it, and what would be freed.
//!
//! Each kind is a file of `kinds`, with its definition ([`WasteKind`]) and what finds it. Two passes over the records of the
//! dump call nearly all of these. `instances` reads the instances whose classes are known here: Strings, boxes, collections,
//! buffers; and compares the fields of the program's own classes. `arrays` reads the arrays, beside what the instances said of
//! them: which are the characters of a String, how much of a table is used. `collections` looks at collections of no or one
//! element, `equal` puts together what is the same, `holding` attributes what was found to fields, and `union` adds up so that
//! no byte counts twice. `docs/waste.md` defines the kinds.

mod arrays;
mod collections;
mod equal;
pub mod estimate;
pub mod fields;
mod findings;
mod holding;
mod instances;
mod kind;
mod kinds;
mod plan;
mod union;

use std::cmp::Reverse;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::objects::collections::Forms;
use crate::objects::label::Labels;
use crate::objects::object_set::Bits;
use crate::objects::reader::ObjectReader;
use crate::sorting::SortRows;
use crate::strings::contents::random_seed;
use hprof_index::graph::numbers::{ObjectIndex, chunks};
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::objects::object_table::BLOCK;
use hprof_index::storage::scratch::ScratchArena;
use hprof_index::{Heap, ObjectGraph};
use hprof_parser::ObjectId;
use hprof_parser::heap::HeapVisitor;

pub use fields::{FieldSum, GroupBy};
pub use findings::{Example, Part};
use findings::{Findings, Reachable};
pub use kind::WasteKind;
use kind::{Finds, Hooks, Passes};
pub use kinds::KINDS;
pub(crate) use kinds::duplicate_classes::is_made;

/// What was found of a kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The kind.
    pub kind: &'static WasteKind,
    /// How many objects.
    pub count: u64,
    /// What would be freed if this kind alone were mended.
    pub wasted_bytes: u64,
    /// What it frees beyond the kinds before it in the order of [`KINDS`].
    pub added_bytes: u64,
    /// What it consists of, most bytes first.
    pub parts: Vec<Part>,
    /// The fields that hold it, or the groups of them that were asked for, most bytes first.
    pub fields: Vec<FieldSum>,
    /// Objects, most bytes first.
    pub examples: Vec<Example>,
}

/// The waste of a heap.
#[derive(Debug, Clone, PartialEq)]
pub struct Waste {
    /// The kinds that there are, most bytes first.
    pub rows: Vec<Row>,
    /// What would be freed if all kinds of `rows` were mended.
    pub wasted_bytes: u64,
    /// Shallow bytes of reachable objects.
    pub reachable_bytes: u64,
    /// Shallow bytes of all objects.
    pub all_bytes: u64,
}

/// What is asked.
#[derive(Debug, Clone)]
pub struct Question {
    /// The kinds; all if there are none.
    pub kinds: Vec<&'static WasteKind>,
    /// What fields are put together by.
    pub group_by: GroupBy,
    /// Examples of each kind.
    pub examples: usize,
}

impl Question {
    fn asks_for(&self, kind: &'static WasteKind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }
}

/// Objects that one thread takes at a time, at least, and the number of such chunks, at most.
const CHUNK: u32 = 1 << 16;
const MAX_CHUNKS: u32 = 1 << 10;

/// A walk over the records of a block of objects.
#[derive(Debug, Clone, Copy)]
struct Cursor {
    /// The first object of the block.
    first: ObjectIndex,
    /// The place in the block of the object that is visited.
    within: u32,
    /// Which objects of the block are looked at.
    bits: u64,
    /// Their classes.
    classes: [ClassNumber; BLOCK as usize],
}

impl Cursor {
    /// Of no block.
    const NONE: Self =
        Self { first: ObjectIndex(0), within: 0, bits: 0, classes: [ClassNumber(u32::MAX); BLOCK as usize] };

    /// How many objects have to be visited to see all that are looked at.
    fn count(&self) -> u32 {
        u64::BITS - self.bits.leading_zeros()
    }

    #[inline(always)]
    fn is_wanted(&self) -> bool {
        self.bits & (1 << self.within) != 0
    }

    #[inline(always)]
    fn object(&self) -> ObjectIndex {
        ObjectIndex(self.first.0 + self.within)
    }

    #[inline(always)]
    fn class(&self) -> ClassNumber {
        self.classes.get(self.within as usize).copied().unwrap_or(ClassNumber(u32::MAX))
    }
}

/// What all steps read.
struct Search<'a> {
    summary: &'a Summary,
    graph: &'a ObjectGraph,
    bytes: &'a [u8],
    objects: ObjectReader<'a>,
    sizes: Sizes,
    room: ScratchArena,
    reachable: Reachable,
    /// What GC roots refer to.
    roots: Bits,
    labels: Labels<'a>,
    /// How collections are read.
    forms: Arc<Forms>,
    /// Of hashes.
    seed: u64,
}

/// Visits the records of some objects.
trait Walk<'a>: HeapVisitor<'a> {
    /// Where it is.
    fn cursor(&mut self) -> &mut Cursor;
}

impl<'a> Search<'a> {
    fn new(heap: &'a Heap, graph: &'a ObjectGraph, bytes: &'a [u8], reachable: Reachable) -> Self {
        let summary = heap.summary();
        let mut roots = Bits::new(graph.objects.len());
        graph.roots.objects().into_iter().for_each(|root| {
            roots.insert(root);
        });
        let objects = ObjectReader::new(summary, graph, bytes);
        Self {
            summary,
            graph,
            bytes,
            forms: Arc::new(Forms::new(&objects)),
            objects,
            sizes: Sizes::new(summary, None),
            room: graph.room(),
            reachable,
            roots,
            labels: Labels::new(heap, graph, bytes),
            seed: random_seed(),
        }
    }

    /// Shallow bytes of all objects.
    fn all_bytes(&self) -> u64 {
        crate::classes::histogram::all_bytes(self.summary, &self.sizes)
    }

    fn class(&self, object: ObjectIndex) -> Option<ClassNumber> {
        self.graph.objects.class(object)
    }

    /// What an instance of a class of the boot loader takes.
    fn boot_size(&self, class: &str) -> Option<u64> {
        Some(self.sizes.instance(self.summary.boot_class(class)?).0)
    }

    fn id(&self, object: ObjectIndex) -> ObjectId {
        self.graph.objects.addresses.id_of(object).unwrap_or_default()
    }

    /// Chunks of all objects, of whole blocks.
    fn chunks(&self) -> Vec<Range<u32>> {
        let count = self.graph.objects.len();
        chunks(0..count, CHUNK.max((count / MAX_CHUNKS).next_multiple_of(BLOCK)))
    }

    /// Walks over the blocks of a chunk that have reachable objects of some classes.
    #[inline(always)]
    fn walk<W: Walk<'a>>(&self, chunk: Range<u32>, classes: &[bool], walk: &mut W) {
        for block in chunk.start / BLOCK..chunk.end.div_ceil(BLOCK) {
            let reachable = self.reachable.of_block(block);
            if reachable == 0 {
                continue;
            }
            let first = ObjectIndex(block * BLOCK);
            let range = first..ObjectIndex(first.0.saturating_add(BLOCK).min(chunk.end));
            let mut cursor = Cursor { first, ..Cursor::NONE };
            let of_objects = self.graph.objects.classes(range.clone());
            for (bit, (place, class)) in cursor.classes.iter_mut().zip(of_objects).enumerate() {
                let Some(class) = class else { continue };
                *place = class;
                cursor.bits |= u64::from(classes.get(class.0 as usize) == Some(&true)) << bit;
            }
            cursor.bits &= reachable;
            if cursor.bits != 0 {
                *walk.cursor() = cursor;
                let places = &self.graph.objects.places;
                places.visit(self.bytes, self.summary.id_size(), block, cursor.count(), walk, |walk| {
                    walk.cursor().within += 1;
                });
            }
        }
    }

    /// Whether one object dominates another, which it refers to: whether that goes with it.
    fn is_dominated_by(&self, object: ObjectIndex, by: ObjectIndex) -> bool {
        self.dominator(object) == Some(by)
    }

    /// The dominator of a reachable object, if only roots dominate it `None`.
    fn dominator(&self, object: ObjectIndex) -> Option<ObjectIndex> {
        let (graph, tree) = (self.graph, &self.graph.tree);
        // What only one object refers to, and no root, is dominated by that one; but class objects, to which their instances
        // refer without being listed.
        let only = graph.referrers(object).only().map(ObjectIndex);
        if only.is_some() && !self.roots.contains(object) && graph.class_of_class_object(object).is_none() {
            return only;
        }
        tree.object_at(tree.dominator(tree.reachable_position(object)?)?)
    }

    fn shallow_bytes(&self, object: ObjectIndex) -> u64 {
        self.graph.tree.position(object).map_or(0, |position| self.graph.tree.shallow_bytes(position))
    }
}

/// Finds the waste of a heap.
///
/// # Errors
/// If there is neither memory nor disk space for a few numbers for each object that is wasted.
pub fn waste(heap: &Heap, graph: &ObjectGraph, bytes: &[u8], question: &Question) -> io::Result<Waste> {
    let search = Search::new(heap, graph, bytes, Reachable::of(graph));
    let (all_bytes, reachable_bytes) = (search.all_bytes(), graph.tree.reachable_bytes());
    let all = findings(&search, question)?;
    let added = union::add(&search, &all);
    let mut rows = Vec::new();
    for (findings, added_bytes) in all.into_iter().zip(added) {
        let fields = holding::fields(&search, &findings, question.group_by);
        let examples = findings.examples(&search, question.examples);
        rows.push(Row {
            kind: findings.kind,
            count: findings.count,
            wasted_bytes: findings.bytes,
            added_bytes,
            parts: findings.named_parts(&search),
            fields,
            examples,
        });
    }
    rows.sort_rows_by_key(|row| (Reverse(row.wasted_bytes), row.kind));
    let wasted_bytes = rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row.added_bytes));
    Ok(Waste { rows, wasted_bytes, reachable_bytes, all_bytes })
}

/// What is found of the kinds asked for, in their order.
fn findings(search: &Search<'_>, question: &Question) -> io::Result<Vec<Findings>> {
    let (hooks, plans) = (Hooks::new(), plan::plans(search));
    let mut all: Vec<Findings> = KINDS.into_iter().map(Findings::new).collect();
    let instances = instances::read(search, &plans)?;
    let look = collections::CollectionLook::new(search, &plans);
    let arrays = arrays::read(&look, &hooks, &instances.held, &mut all)?;
    let few = collections::Few {
        loose: instances.loose,
        wrappers: instances.wrappers,
        tables: arrays.few,
        plain: arrays.plain,
    };
    few.find(&look, &hooks, &mut all)?;
    drop(look);
    let mut passes = Passes {
        plans,
        boxes: instances.boxes,
        votes: instances.votes,
        texts: arrays.texts,
        contents: arrays.contents,
        zero_length: arrays.zero_length,
    };
    for findings in &mut all {
        if let Finds::AfterPasses(find) = findings.kind.finds {
            *findings = find(search, &mut passes)?;
        }
    }
    all.retain(|findings| findings.count > 0 && question.asks_for(findings.kind));
    Ok(all)
}
