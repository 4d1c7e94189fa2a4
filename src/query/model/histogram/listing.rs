//! The dominator tree as a list of objects with retained sizes.
//!
//! An object dominates another if every path from the roots to the other leads through it. What it dominates is freed
//! with it: its retained size.

use std::cmp::Reverse;
use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::graph::tree::Tree;
use hprof_index::model::summary::ClassNumber;
use hprof_index::{DumpGraph, ObjectGraph};
use hprof_values::ObjectId;

use crate::dominators::preorder::{Preorder, Start};
use crate::histogram::{self, ClassGroups, HistogramGroupBy};
use crate::objects::label::Labels;

/// Number of positions per chunk.
const CHUNK: u32 = 1 << 16;
/// Number of starts that are not worth another thread.
const FEW: usize = 1 << 8;

/// Start, order and limits of a listing.
#[derive(Debug, Clone, Copy)]
pub struct ListingQuery {
    /// The start: the roots, or an object.
    pub start: Start,
    /// Maximum number of levels below the start.
    pub levels: u32,
    /// Maximum number of listed objects per immediate dominator; all by default.
    pub top: Option<usize>,
    /// Minimum retained size of a listed object.
    pub min_retained_bytes: u64,
}

/// An object of a listing, with its sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListingRow {
    /// Object ID.
    pub id: ObjectId,
    /// Class, if it is in the dump.
    pub class: Option<ClassNumber>,
    /// Short text that identifies the object.
    pub label: Option<String>,
    /// Shallow size.
    pub shallow_bytes: u64,
    /// Retained size.
    pub retained_bytes: u64,
    /// Number of objects that would be freed with it, including itself.
    pub retained_objects: u64,
    /// Number of objects that it dominates immediately.
    pub dominated: u64,
    /// Depth in the tree; 0 if only the roots dominate it.
    pub depth: u32,
}

/// A listed part of the dominator tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Position and depth of each object, in preorder.
    pub positions: Vec<(TreePosition, u32)>,
    /// Number of omitted objects below the start.
    pub others: u64,
    /// Retained size of the omitted objects.
    pub others_bytes: u64,
    /// The start, if it is an object, and the number of objects that it dominates immediately.
    start: Option<(TreePosition, u64)>,
}

/// Lists a part of the tree: objects in preorder, siblings by retained size, largest first.
pub fn list(tree: &Tree, question: &ListingQuery) -> Listing {
    let mut listing = Listing::default();
    let (_, first_depth) = question.start.dominated_range(tree);
    let below = match question.start {
        Start::Roots => tree.reachable_bytes(),
        Start::Object(position) => {
            listing.positions.push((position, first_depth.saturating_sub(1)));
            tree.retained_bytes(position).saturating_sub(tree.shallow_bytes(position))
        }
    };
    let most = question.top.unwrap_or(usize::MAX);
    let (mut children, mut children_bytes) = (0u64, 0u64);
    // For each level being listed: the remaining siblings, and how many of them may still be taken.
    let mut levels = vec![(question.start.children(tree), most)];
    if question.levels == 0 {
        levels.clear();
    }
    while let Some((siblings, left)) = levels.last_mut() {
        let next = if *left > 0 { siblings.next() } else { None };
        // Siblings are ordered by size, largest first.
        let next = next
            .map(|position| (position, tree.retained_bytes(position)))
            .filter(|(_, bytes)| *bytes >= question.min_retained_bytes);
        let Some((position, bytes)) = next else {
            levels.pop();
            continue;
        };
        *left -= 1;
        let level = u32::try_from(levels.len()).unwrap_or(u32::MAX);
        if level == 1 {
            children += 1;
            children_bytes = children_bytes.saturating_add(bytes);
        }
        listing.positions.push((position, first_depth.saturating_add(level - 1)));
        if level < question.levels {
            levels.push((tree.children(position), most));
        }
    }
    let all = question.start.child_count(tree);
    listing.start = if let Start::Object(position) = question.start { Some((position, all)) } else { None };
    listing.others = all.saturating_sub(children);
    listing.others_bytes = below.saturating_sub(children_bytes);
    listing
}

/// Lists an object below all its dominators, from the roots down; if there are more than `top`, only below the nearest ones.
pub fn chain(tree: &Tree, position: TreePosition, top: Option<usize>) -> Listing {
    let dominators = std::iter::successors(Some(position), |position| tree.dominator(*position));
    let mut positions: Vec<TreePosition> = dominators.take(top.unwrap_or(usize::MAX)).collect();
    positions.reverse();
    let first = positions.first().map_or(0, |first| tree.depth(*first));
    Listing { positions: positions.into_iter().zip(first..).collect(), ..Listing::default() }
}

/// Lists these objects, none of which may dominate another, and what they dominate, largest first.
pub fn list_tops(tree: &Tree, tops: &[TreePosition], question: &ListingQuery) -> Listing {
    let bytes = |position: &TreePosition| tree.retained_bytes(*position);
    let mut sorted: Vec<(Reverse<u64>, TreePosition)> =
        tops.iter().map(|position| (Reverse(bytes(position)), *position)).collect();
    sorted.sort_unstable();
    let large = sorted.partition_point(|(Reverse(bytes), _)| *bytes >= question.min_retained_bytes);
    let left_out = sorted.split_off(large.min(question.top.unwrap_or(usize::MAX)));
    let mut listing = Listing {
        others: left_out.len() as u64,
        others_bytes: left_out.iter().fold(0, |sum, (Reverse(bytes), _)| sum.saturating_add(*bytes)),
        ..Listing::default()
    };
    for (_, position) in sorted {
        let below = ListingQuery { start: Start::Object(position), ..*question };
        listing.positions.extend(list(tree, &below).positions);
    }
    listing
}

impl Listing {
    /// Returns the row of a listed object.
    pub fn row(
        &self,
        graph: &ObjectGraph,
        labels: &Labels<'_>,
        place: (TreePosition, u32),
    ) -> Option<ListingRow> {
        // Counting the children of an object can take a pass over all that it dominates.
        let counted = self.start.filter(|(start, _)| *start == place.0).map(|(_, count)| count);
        made_row(graph, labels, place, counted)
    }
}

/// Returns the row of the object at a position and depth.
pub fn row(graph: &ObjectGraph, labels: &Labels<'_>, place: (TreePosition, u32)) -> Option<ListingRow> {
    made_row(graph, labels, place, None)
}

fn made_row(
    graph: &ObjectGraph,
    labels: &Labels<'_>,
    (position, depth): (TreePosition, u32),
    dominated: Option<u64>,
) -> Option<ListingRow> {
    let tree = &graph.tree;
    let object = tree.object_at(position)?;
    Some(ListingRow {
        id: graph.objects.addresses.id_of(object)?,
        class: graph.objects.class(object),
        label: labels.label(object),
        shallow_bytes: tree.shallow_bytes(position),
        retained_bytes: tree.retained_bytes(position),
        retained_objects: u64::from(tree.retained_objects(position)),
        dominated: dominated.unwrap_or_else(|| Start::Object(position).child_count(tree)),
        depth,
    })
}

/// Immediately dominated objects of one class, package or loader.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DominatedGroupRow {
    /// Class, package or loader, with the figures of these objects.
    pub group: histogram::HistogramRow,
    /// Number of objects that would be freed with them, including themselves.
    pub retained_objects: u64,
}

/// Sums over a group.
#[derive(Debug, Clone, Copy, Default)]
struct GroupSum {
    objects: u64,
    shallow_bytes: u64,
    retained_bytes: u64,
    retained_objects: u64,
}

/// Adds up the retained sizes of the objects that each start immediately dominates, by class, package or loader; largest
/// first. No start may dominate another, so retained sizes add up.
///
/// A class object belongs to the package and the loader of the class that it represents, and a class loader to itself:
/// what static fields hold is not the JDK's.
pub fn group(dump: &DumpGraph<'_>, starts: &[Start], group_by: HistogramGroupBy) -> Vec<DominatedGroupRow> {
    let mut groups = ClassGroups::new(dump.summary, group_by, &[]);
    // Objects of unknown class are a group of their own.
    let unknown = groups.rows.len();
    groups.rows.push(histogram::HistogramRow { group: unknown, ..histogram::HistogramRow::default() });
    let threads = u32::try_from(rayon::current_num_threads()).unwrap_or(1);
    let chunk = (dump.graph.tree.reachable() / threads / 4).max(CHUNK);
    // A few children are looked up one by one, rather than everything below.
    let parts = starts.par_iter().with_min_len(FEW).flat_map_iter(|start| {
        match start.few_children(&dump.graph.tree) {
            Some(children) => vec![DominatedPart::Children(children)],
            None => {
                let (positions, depth) = start.dominated_range(&dump.graph.tree);
                let chunks = TreePosition::chunks(positions, chunk).into_iter();
                chunks.map(|positions| DominatedPart::Depth { positions, depth }).collect()
            }
        }
    });
    let parts: Vec<DominatedPart> = parts.collect();
    let none = || vec![GroupSum::default(); groups.rows.len()];
    let java_lang_class = dump.summary.java_lang_class().filter(|_| group_by != HistogramGroupBy::Class);
    let loaders = if group_by == HistogramGroupBy::Loader { loaders(dump) } else { FxHashMap::default() };
    let class_of = |object: ObjectIndex| {
        let class = dump.graph.objects.class(object)?;
        let is_class_object = Some(class) == java_lang_class;
        let represented = if is_class_object { dump.graph.class_of_class_object(object) } else { None };
        Some(represented.or_else(|| loaders.get(&object).copied()).unwrap_or(class))
    };
    let sums = (parts.into_par_iter())
        .fold(none, |mut sums, part| {
            group_part(dump.graph, &groups, class_of, part, &mut sums);
            sums
        })
        .reduce(none, |mut sums, others| {
            for (sum, other) in sums.iter_mut().zip(others) {
                sum.objects += other.objects;
                sum.shallow_bytes = sum.shallow_bytes.saturating_add(other.shallow_bytes);
                sum.retained_bytes = sum.retained_bytes.saturating_add(other.retained_bytes);
                sum.retained_objects += other.retained_objects;
            }
            sums
        });
    let mut rows: Vec<DominatedGroupRow> = (groups.rows.into_iter().zip(sums))
        .filter(|(_, sum)| sum.objects > 0)
        .map(|(group, sum)| DominatedGroupRow {
            group: histogram::HistogramRow {
                instances: sum.objects,
                shallow_bytes: sum.shallow_bytes,
                retained_bytes: Some(sum.retained_bytes),
                ..group
            },
            retained_objects: sum.retained_objects,
        })
        .collect();
    rows.sort_by_cached_key(|row| {
        let group = &row.group;
        let loader = group.loader.as_ref().map(|loader| loader.id);
        (Reverse(group.retained_bytes), group.name.clone(), loader, group.class_object)
    });
    rows
}

/// Returns one class of each loader that defines any.
fn loaders(dump: &DumpGraph<'_>) -> FxHashMap<ObjectIndex, ClassNumber> {
    let classes =
        dump.summary.numbered_classes().filter(|(_, class)| class.is_dumped() && class.loader.get() != 0);
    let loader = |id: ObjectId| dump.graph.objects.addresses.index_of(id);
    classes.filter_map(|(number, class)| Some((loader(class.loader.into())?, number))).collect()
}

/// A part of the objects that a start immediately dominates.
enum DominatedPart {
    /// The listed objects.
    Children(Vec<TreePosition>),
    /// All objects at a depth in a range of positions.
    Depth { positions: Range<TreePosition>, depth: u32 },
}

/// Adds up the counts and sizes of a part's objects by group.
fn group_part(
    graph: &ObjectGraph,
    groups: &ClassGroups,
    class_of: impl Fn(ObjectIndex) -> Option<ClassNumber>,
    part: DominatedPart,
    sums: &mut [GroupSum],
) {
    let tree = &graph.tree;
    let unknown = groups.rows.len().saturating_sub(1);
    let mut add = |position: TreePosition, retained_bytes: u64, retained_objects: u32| {
        let class = tree.object_at(position).and_then(&class_of);
        let group =
            class.and_then(|class| groups.of_class.get(class.0 as usize)).map(|group| *group as usize);
        if let Some(sum) = sums.get_mut(group.unwrap_or(unknown)) {
            sum.objects += 1;
            sum.shallow_bytes = sum.shallow_bytes.saturating_add(tree.shallow_bytes(position));
            sum.retained_bytes = sum.retained_bytes.saturating_add(retained_bytes);
            sum.retained_objects += u64::from(retained_objects);
        }
    };
    let (positions, depth) = match part {
        DominatedPart::Children(children) => {
            for child in children {
                add(child, tree.retained_bytes(child), tree.retained_objects(child));
            }
            return;
        }
        DominatedPart::Depth { positions, depth } => (positions, depth),
    };
    // The object at that depth that contains the current position: its position, and the shallow bytes from there on.
    let mut current: Option<(TreePosition, u64)> = None;
    for ((position, here), shallow_bytes) in
        Preorder::new(tree, positions.clone()).zip(tree.shallow_sizes(positions))
    {
        if here == depth {
            if let Some((before, bytes)) = current {
                add(before, bytes, position.0 - before.0);
            }
            current = Some((position, 0));
        }
        if let Some((_, bytes)) = &mut current {
            *bytes = bytes.saturating_add(shallow_bytes);
        }
    }
    // The last one may extend into the next chunk.
    if let Some((last, _)) = current {
        add(last, tree.retained_bytes(last), tree.retained_objects(last));
    }
}
