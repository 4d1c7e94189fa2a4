//! Class loaders of one application: their joint retained size, and the paths that keep them alive.
//!
//! If an application is redeployed and the old deployments are not released, each of its loaders may be held by another
//! object: a ThreadLocal of each thread of a pool, a hook, a timer. Then no suspect has all of them, although they are
//! one cause.

use std::io;

use rustc_hash::FxHashMap;

use crate::classes::histogram;
use crate::classes::loader_sets::{self, LargeGroup, Why, is_permanent};
use crate::paths::steps::View;
use hprof_index::graph::tree::Tree;
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::{Heap, ObjectGraph};
use hprof_parser::ObjectId;

use super::contents;
use super::suspects::share;
use hprof_index::graph::numbers::TreePosition;

/// Minimum number of class loaders that define classes of the same names to be reported.
pub const MANY_LOADERS: usize = 3;
/// Minimum percentage of the reachable bytes that they retain, by a lower bound.
const MUCH_OF_HEAP: u64 = 1;
/// Maximum number of groups of loaders reported.
const TOLD_GROUPS: usize = 3;
/// Maximum number of loaders of a group whose paths are reported, first by ID.
const TOLD_LOADERS: usize = 20;
/// Number of objects on the paths of a group after which no other path is searched.
const LONG_PATHS: usize = 1 << 14;

/// Class loaders that define classes of the same names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoaderGroup {
    /// Class of the loaders.
    pub class: Option<String>,
    /// Number of loaders.
    pub loaders: u64,
    /// A class that each of them defines.
    pub defines: Option<String>,
    /// Number of classes that each of them defines.
    pub classes: u64,
    /// Size retained together by the loaders, their classes and instances.
    pub retained_bytes: u64,
    /// Paths that keep the loaders alive.
    pub paths: Vec<(ObjectId, Why)>,
}

/// Groups of loaders before their paths are searched, largest retained size first.
#[derive(Debug, Default)]
pub struct Loaders(Vec<LargeGroup>);

impl Loaders {
    /// Finds the groups with a large retained size.
    ///
    /// # Errors
    /// If neither memory nor disk has space for a number per object.
    pub fn find(summary: &Summary, graph: &ObjectGraph) -> io::Result<Self> {
        if !has_many_loaders(summary) {
            return Ok(Self::default());
        }
        let least = share(graph.tree.reachable_bytes(), MUCH_OF_HEAP);
        let mut found = loader_sets::large_groups(summary, graph, MANY_LOADERS, least)?;
        found.truncate(TOLD_GROUPS);
        Ok(Self(found))
    }

    /// Returns the groups whose retained size is spread over many loaders, with their numbers: not those in which one
    /// loader has nearly all of it.
    pub(super) fn that_accumulate(&self) -> impl Iterator<Item = (usize, &LargeGroup)> {
        self.0.iter().enumerate().filter(|(_, found)| {
            let all = found.of_loaders.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
            contents::is_in_many(found.of_loaders.iter().copied(), all, true)
        })
    }

    /// Converts the groups to rows for the report.
    pub(super) fn told(&self, heap: &Heap, graph: &ObjectGraph, bytes: &[u8]) -> Vec<LoaderGroup> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let summary = heap.summary();
        let sizes = Sizes::new(summary, None);
        let view = View::new(heap, graph, bytes);
        let groups = self.0.iter().map(|LargeGroup { group, .. }| {
            // Prefers a class of the application to one that was generated for it.
            let own = |class: &&ClassNumber| {
                summary.class(**class).is_some_and(|row| histogram::instances(summary, **class, row) > 0)
            };
            let defines = group.classes.iter().find(own).or(group.classes.first());
            let largest =
                group.classes.iter().max_by_key(|class| sizes.total(**class)).filter(|class| own(class));
            let name =
                |class: &ClassNumber| summary.class(*class).map(|row| summary.class_name(row).to_owned());
            LoaderGroup {
                class: group
                    .loaders
                    .first()
                    .and_then(|loader| summary.loader_class(*loader))
                    .map(str::to_owned),
                loaders: group.loaders.len() as u64,
                defines: largest.or(defines).and_then(name),
                classes: group.classes.len() as u64,
                retained_bytes: group.retained.bytes,
                paths: paths(&view, &group.loaders),
            }
        });
        groups.collect()
    }
}

/// Finds the paths that keep the loaders of a group alive, until these contain many objects: long paths are similar, and
/// each search follows a whole one.
fn paths(view: &View<'_>, loaders: &[ObjectId]) -> Vec<(ObjectId, Why)> {
    let (mut paths, mut length) = (Vec::new(), 0);
    for loader in loaders.iter().take(TOLD_LOADERS) {
        if length >= LONG_PATHS {
            break;
        }
        let found = loader_sets::why(view, [*loader]);
        length += found.values().map(|why| why.steps.len() + why.left_out.0).sum::<usize>();
        paths.extend(found);
    }
    paths
}

/// Returns whether enough loaders that can be freed define a class of one name.
fn has_many_loaders(summary: &Summary) -> bool {
    let mut loaders: FxHashMap<&str, usize> = FxHashMap::default();
    for class in summary.classes().iter().filter(|class| class.is_dumped()) {
        let name = summary.class_name(class);
        if !name.ends_with("[]") && !is_permanent(summary, class.loader.into()) {
            *loaders.entry(name).or_default() += 1;
        }
    }
    loaders.into_values().any(|loaders| loaders >= MANY_LOADERS)
}

/// Returns the sum of the retained sizes of objects of which none dominates another.
pub(super) fn retained_bytes(tree: &Tree, positions: &[TreePosition]) -> u64 {
    positions.iter().fold(0, |sum, position| sum.saturating_add(tree.retained_bytes(*position)))
}

/// Returns the size that both `some` and `others` retain, by the dominator tree. In each list no object dominates
/// another; `others` are ascending.
pub(super) fn common_bytes(tree: &Tree, some: &[TreePosition], others: &[TreePosition]) -> u64 {
    let sum = |positions: &mut dyn Iterator<Item = TreePosition>| {
        positions.fold(0, |sum: u64, position| sum.saturating_add(tree.retained_bytes(position)))
    };
    let common = some.iter().map(|position| {
        let (before, behind) = others.split_at(others.partition_point(|other| other <= position));
        match before.last() {
            Some(above) if tree.end(*above) > *position => sum(&mut std::iter::once(*position)),
            _ => sum(&mut behind.iter().copied().take_while(|below| *below < tree.end(*position))),
        }
    });
    common.fold(0, u64::saturating_add)
}
