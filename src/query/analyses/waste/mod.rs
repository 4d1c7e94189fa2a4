//! Wasted memory: the objects of each kind of waste, the fields that hold them, and the bytes that would be freed.
//!
//! Each kind is a file of `kinds`, with its definition ([`WasteKind`]) and its search. Two passes over the records of
//! the dump call nearly all of these. `instances` reads the instances of known classes: Strings, boxes, collections,
//! buffers; and compares the fields of the program's own classes. `arrays` reads the arrays together with the
//! statements of instances about them: which characters belong to a String, and how much of a table is used.
//! `collections` examines collections of zero or one element, `equal` finds duplicates, `holding` attributes the
//! findings to fields, and `union` computes totals in which no byte counts twice. `docs/waste.md` defines the kinds.

mod arrays;
mod boxes;
mod collection_look;
mod collections;
mod equal;
pub mod estimate;
mod facts;
pub mod fields;
mod findings;
mod holding;
mod instances;
mod kind;
mod kinds;
mod plan;
mod union;
mod visited;
mod votes;

use std::cmp::Reverse;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use hprof_base::sorting::SortRows;
use hprof_index::Dump;
use hprof_index::graph::numbers::{ObjectIndex, chunks};
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::summary::ClassNumber;
use hprof_index::objects::object_table::BLOCK;
use hprof_index::storage::scratch::ScratchArena;
use hprof_model::objects::collections::Forms;
use hprof_model::objects::label::Labels;
use hprof_model::objects::object_set::Bits;
use hprof_model::objects::reader::ObjectVisitor;
use hprof_model::strings::contents::random_seed;
use hprof_values::ObjectId;

pub use fields::{FieldGroupBy, FieldSum};
pub use findings::{Example, FindingPart};
use findings::{Findings, Reachable};
pub(crate) use holding::held_by;
pub use kind::WasteKind;
use kind::{Hooks, KindFindings, Passes, WasteFinder};
pub use kinds::KINDS;
pub(crate) use kinds::duplicate_classes::is_made;

/// Findings for one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct WasteRow {
    /// Kind of waste.
    pub kind: &'static WasteKind,
    /// Number of objects.
    pub count: u64,
    /// Bytes that would be freed if only this kind were fixed.
    pub wasted_bytes: u64,
    /// Bytes that fixing this kind would free beyond those freed by fixing all kinds before it in [`KINDS`].
    pub added_bytes: u64,
    /// Parts of the findings, most bytes first.
    pub parts: Vec<FindingPart>,
    /// Fields that hold the objects, or groups of these fields if requested; most bytes first.
    pub fields: Vec<FieldSum>,
    /// Examples, most bytes first.
    pub examples: Vec<Example>,
}

impl WasteRow {
    /// Returns the sum over all objects of the kind, which is the only sum of a kind without fields.
    pub fn sum(&self) -> FieldSum {
        let (count, wasted_bytes) = (self.count, self.wasted_bytes);
        FieldSum { class: None, field: None, loader: None, is_static: false, count, wasted_bytes }
    }
}

/// The waste of a heap.
#[derive(Debug, Clone, PartialEq)]
pub struct Waste {
    /// Kinds that were found, most bytes first.
    pub rows: Vec<WasteRow>,
    /// Bytes that would be freed if all kinds of `rows` were fixed.
    pub wasted_bytes: u64,
    /// Shallow size of reachable objects in bytes.
    pub reachable_bytes: u64,
    /// Shallow size of all objects in bytes.
    pub all_bytes: u64,
}

/// Query for waste.
#[derive(Debug, Clone)]
pub struct WasteQuery {
    /// Requested kinds; all kinds if empty.
    pub kinds: Vec<&'static WasteKind>,
    /// Grouping of the fields.
    pub group_by: FieldGroupBy,
    /// Maximum number of examples of each kind.
    pub examples: usize,
}

impl WasteQuery {
    fn asks_for(&self, kind: &'static WasteKind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }
}

/// Minimum number of objects per chunk.
const CHUNK: u32 = 1 << 16;
/// Maximum number of chunks.
const MAX_CHUNKS: u32 = 1 << 10;

/// Dump and data shared by all steps of the search for waste.
struct WasteSearch<'a> {
    dump: Dump<'a>,
    sizes: Sizes,
    room: ScratchArena,
    reachable: Reachable,
    /// Objects that GC roots refer to.
    roots: Bits,
    labels: Labels<'a>,
    /// Readers of collections, by class.
    forms: Arc<Forms>,
    /// Hash seed.
    seed: u64,
}

impl<'a> WasteSearch<'a> {
    fn new(dump: &Dump<'a>, reachable: Reachable) -> Self {
        let summary = dump.summary;
        let mut roots = Bits::new(dump.graph.objects.len());
        dump.graph.roots.objects().into_iter().for_each(|root| {
            roots.insert(root);
        });
        Self {
            dump: *dump,
            forms: Forms::for_summary(summary),
            sizes: Sizes::new(summary, None),
            room: dump.graph.room(),
            reachable,
            roots,
            labels: Labels::new(dump),
            seed: random_seed(),
        }
    }

    /// Returns the shallow size of all objects in bytes.
    fn all_bytes(&self) -> u64 {
        hprof_model::histogram::all_bytes(self.dump.summary, &self.sizes)
    }

    fn class(&self, object: ObjectIndex) -> Option<ClassNumber> {
        self.dump.graph.objects.class(object)
    }

    /// Returns the size of an instance of a class of the boot loader.
    fn boot_size(&self, class: &str) -> Option<u64> {
        Some(self.sizes.instance(self.dump.summary.boot_class(class)?).0)
    }

    fn id(&self, object: ObjectIndex) -> ObjectId {
        self.dump.graph.objects.addresses.id_of(object).unwrap_or_default()
    }

    /// Returns chunks of all objects that consist of whole blocks.
    fn chunks(&self) -> Vec<Range<u32>> {
        let count = self.dump.graph.objects.len();
        chunks(0..count, CHUNK.max((count / MAX_CHUNKS).next_multiple_of(BLOCK)))
    }

    /// Walks over the blocks of a chunk that contain reachable objects of the given classes.
    #[inline(always)]
    fn walk(&self, chunk: Range<u32>, classes: &[bool], visitor: &mut impl ObjectVisitor<'a>) {
        for block in chunk.start / BLOCK..chunk.end.div_ceil(BLOCK) {
            let reachable = self.reachable.of_block(block);
            if reachable == 0 {
                continue;
            }
            let first = ObjectIndex(block * BLOCK);
            let range = first..ObjectIndex(first.0.saturating_add(BLOCK).min(chunk.end));
            let mut wanted = 0u64;
            for (bit, class) in self.dump.graph.objects.classes(range).enumerate() {
                let is_wanted = class.is_some_and(|class| classes.get(class.0 as usize) == Some(&true));
                wanted |= u64::from(is_wanted) << bit;
            }
            wanted &= reachable;
            if wanted != 0 {
                self.dump.objects.visit_block(first, wanted, visitor);
            }
        }
    }

    /// Returns whether `by` immediately dominates an object, so that the object would be freed with it.
    fn is_dominated_by(&self, object: ObjectIndex, by: ObjectIndex) -> bool {
        self.dominator(object) == Some(by)
    }

    /// Returns the dominator of a reachable object; `None` if only roots dominate it.
    fn dominator(&self, object: ObjectIndex) -> Option<ObjectIndex> {
        let (graph, tree) = (self.dump.graph, &self.dump.graph.tree);
        // An object with a single referrer that is not a root is dominated by it; except class objects, to which their
        // instances refer without being listed.
        let only = graph.referrers(object).single_target().map(ObjectIndex);
        if only.is_some() && !self.roots.contains(object) && graph.class_of_class_object(object).is_none() {
            return only;
        }
        tree.object_at(tree.dominator(tree.reachable_position(object)?)?)
    }

    fn shallow_bytes(&self, object: ObjectIndex) -> u64 {
        self.dump
            .graph
            .tree
            .position(object)
            .map_or(0, |position| self.dump.graph.tree.shallow_bytes(position))
    }
}

/// Finds the waste of a heap.
///
/// # Errors
/// If there is neither memory nor disk space for a few numbers for each wasted object.
pub fn waste(dump: &Dump<'_>, question: &WasteQuery) -> io::Result<Waste> {
    let search = WasteSearch::new(dump, Reachable::new(dump.graph));
    let (all_bytes, reachable_bytes) = (search.all_bytes(), dump.graph.tree.reachable_bytes());
    let all = findings(&search, question)?;
    let added = union::add(&search, &all);
    let mut rows = Vec::new();
    for (KindFindings { kind, findings }, added_bytes) in all.into_iter().zip(added) {
        let fields = holding::fields(&search, kind.frees, &findings, question.group_by);
        let examples = findings.examples(&search, question.examples);
        rows.push(WasteRow {
            kind,
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

/// Returns the findings of the requested kinds, in the order of the kinds.
fn findings(search: &WasteSearch<'_>, question: &WasteQuery) -> io::Result<Vec<KindFindings>> {
    let (hooks, plans) = (Hooks::new(), plan::plans(search));
    let mut all: Vec<Findings> = KINDS.iter().map(|_| Findings::default()).collect();
    let instances = instances::read(search, &plans)?;
    let look = collection_look::CollectionLook::new(search, &plans);
    let arrays = arrays::read(&look, &hooks, &instances.held, &mut all)?;
    let few = collections::SparseCandidates {
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
    for (kind, findings) in KINDS.iter().zip(&mut all) {
        if let WasteFinder::AfterPasses(find) = kind.finds {
            *findings = find(search, &mut passes)?;
        }
    }
    let all = KINDS.into_iter().zip(all).map(|(kind, findings)| KindFindings { kind, findings });
    Ok(all.filter(|found| found.findings.count > 0 && question.asks_for(found.kind)).collect())
}
