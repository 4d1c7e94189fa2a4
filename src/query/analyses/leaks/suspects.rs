//! Search for suspects and for the accumulation point of a single one: rules of Eclipse MAT's `FindLeaksQuery`.

use std::cmp::Reverse;

use hprof_base::share::{is_share, portion};
use rustc_hash::FxHashMap;

use hprof_base::parallel;
use hprof_base::sorting::SortRows;
use hprof_index::graph::numbers::TreePosition;
use hprof_index::model::summary::ClassNumber;
use hprof_index::{DumpGraph, ObjectGraph};
use hprof_model::dominators::preorder::{Preorder, Start};
use hprof_model::histogram::HistogramGroupBy;
use hprof_model::histogram::listing;

/// Minimum percentage of an object's retained size that its largest child must have for the walk to continue.
const MOST_OF_IT: u64 = 70;
/// Maximum number of steps of the walk, after which MAT gives up.
const MAX_STEPS: u32 = 1000;
/// Minimum number of objects of one class on the walk that form a chain.
const MIN_LINKS: u32 = 10;
/// Minimum percentage of a chain's retained size that must be attached to its links rather than below the last link.
const ON_LINKS: u64 = 80;
/// Number of positions per chunk.
const CHUNK: u32 = 1 << 16;

/// Objects that only the roots dominate and whose retained size is large.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Candidates {
    /// Positions of the objects that exceed the threshold alone, largest first.
    pub(super) singles: Vec<TreePosition>,
    /// Other objects by class, if the objects of the class exceed the threshold together; largest sum first.
    pub(super) groups: Vec<CandidateGroup>,
}

/// Objects of a class that only the roots dominate and that are not suspects alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CandidateGroup {
    pub(super) class: ClassNumber,
    /// Positions of the members, ascending.
    pub(super) members: Vec<TreePosition>,
    pub(super) retained_bytes: u64,
}

/// Returns the threshold in bytes: `percent` of all reachable bytes, rounded down.
pub(crate) fn threshold(graph: &ObjectGraph, percent: u64) -> u64 {
    portion(graph.tree.reachable_bytes(), percent)
}

/// Returns whether `below` is less than 70 percent of `above`, at which the walk down the tree ends.
pub(super) fn is_drop(below: u64, above: u64) -> bool {
    !is_share(below, above, MOST_OF_IT)
}

/// Finds the suspects that retain more than `threshold` bytes.
pub(super) fn find(dump: &DumpGraph<'_>, threshold: u64) -> Candidates {
    let TopLevelObjects { singles, mut rest } = tops(dump, threshold);
    rest.retain(|_, sum| *sum > threshold);
    let mut groups = members(dump.graph, &rest, &singles);
    groups.sort_rows_by_key(|group| (Reverse(group.retained_bytes), group.class));
    Candidates { singles, groups }
}

/// Objects that only the roots dominate, while suspects are searched.
pub(super) struct TopLevelObjects {
    /// Objects that exceed the threshold alone, largest first.
    pub(super) singles: Vec<TreePosition>,
    /// Joint retained size of the other objects, by class.
    pub(super) rest: FxHashMap<ClassNumber, u64>,
}

/// Returns the objects that could be suspects.
pub(super) fn tops(dump: &DumpGraph<'_>, threshold: u64) -> TopLevelObjects {
    let tree = &dump.graph.tree;
    let is_large = |position: &TreePosition| tree.retained_bytes(*position) > threshold;
    let singles: Vec<TreePosition> = tree.top().take_while(is_large).collect();
    let mut rest: FxHashMap<ClassNumber, u64> = FxHashMap::default();
    for row in listing::group(dump, &[Start::Roots], HistogramGroupBy::Class) {
        // A group is a class. The one after the last contains objects of unknown class.
        let class = u32::try_from(row.group.group).map(ClassNumber);
        if let Ok(class) = class
            && dump.summary.class(class).is_some()
        {
            rest.insert(class, row.group.retained_bytes.unwrap_or(0));
        }
    }
    for single in &singles {
        let class = tree.object_at(*single).and_then(|object| dump.graph.objects.class(object));
        if let Some(sum) = class.and_then(|class| rest.get_mut(&class)) {
            *sum = sum.saturating_sub(tree.retained_bytes(*single));
        }
    }
    TopLevelObjects { singles, rest }
}

/// Returns the objects of the given classes that only the roots dominate and that are not suspects alone.
fn members(
    graph: &ObjectGraph,
    classes: &FxHashMap<ClassNumber, u64>,
    singles: &[TreePosition],
) -> Vec<CandidateGroup> {
    if classes.is_empty() {
        return Vec::new();
    }
    let tree = &graph.tree;
    let class_of = |position| graph.objects.class(tree.object_at(position)?);
    let is_meant = |position: TreePosition| {
        let class = class_of(position).filter(|class| classes.contains_key(class))?;
        singles.binary_search(&position).is_err().then_some((class, position))
    };
    let members: Vec<(ClassNumber, TreePosition)> = match Start::Roots.few_children(tree) {
        Some(tops) => tops.into_iter().filter_map(is_meant).collect(),
        None => {
            let of_chunk = |chunk| -> Vec<(ClassNumber, TreePosition)> {
                let tops = Preorder::new(tree, chunk).filter(|(_, depth)| *depth == 0);
                tops.filter_map(|(position, _)| is_meant(position)).collect()
            };
            parallel::map(&TreePosition::chunks(tree.positions(), CHUNK), of_chunk).concat()
        }
    };
    let mut by_class: FxHashMap<ClassNumber, Vec<TreePosition>> = FxHashMap::default();
    for (class, position) in members {
        by_class.entry(class).or_default().push(position);
    }
    let group = |(class, members)| {
        let retained_bytes = classes.get(&class).copied().unwrap_or(0);
        CandidateGroup { class, members, retained_bytes }
    };
    by_class.into_iter().map(group).collect()
}

/// Result of a walk from an object to the point where its memory accumulates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Point {
    /// Accumulation point; `None` if the walk does not end and contains no chain.
    pub(super) position: Option<TreePosition>,
    /// Chain of objects on the walk, if its links hold its retained size.
    pub(super) chain: Option<Chain>,
}

/// Objects of one class, each of which dominates the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chain {
    /// First object of the chain.
    pub(super) first: TreePosition,
    /// Number of objects of the class on the walk; there may be more beyond its end.
    pub(super) links: u32,
}

/// Walks down from an object to the child with the largest retained size, as long as the child has 70 percent of its parent's.
///
/// MAT gives up after 1,000 steps. Here a walk of that length is treated as a chain, whose first link is the accumulation
/// point. In a shorter chain, the walk ends near the last link, where only a few links are left; then the accumulation point is
/// MAT's, and the chain is reported in addition.
pub(super) fn accumulation_point(graph: &ObjectGraph, top: TreePosition) -> Point {
    let tree = &graph.tree;
    let class_of = |position| graph.objects.class(tree.object_at(position)?);
    let mut links: FxHashMap<Option<ClassNumber>, (u32, TreePosition)> = FxHashMap::default();
    let (mut here, mut steps) = (top, 0);
    let mut bytes = tree.retained_bytes(here);
    let is_endless = loop {
        links.entry(class_of(here)).or_insert((0, here)).0 += 1;
        let Some(next) = tree.children(here).next() else { break false };
        if steps == MAX_STEPS {
            break true;
        }
        let below = tree.retained_bytes(next);
        if is_drop(below, bytes) {
            break false;
        }
        (here, bytes, steps) = (next, below, steps + 1);
    };
    let longest = links.into_values().max_by_key(|(links, first)| (*links, Reverse(*first)));
    let chain = longest.map(|(links, first)| Chain { first, links });
    let chain = chain.filter(|chain| {
        let below_links = bytes <= portion(tree.retained_bytes(chain.first), 100 - ON_LINKS);
        chain.links >= MIN_LINKS && (is_endless || below_links)
    });
    let position = if is_endless { chain.map(|chain| chain.first) } else { Some(here) };
    Point { position, chain }
}
