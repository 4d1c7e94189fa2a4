//! Class loaders of one application: what they retain together, and why they are alive.
//!
//! Where an application is deployed again and the old one is not let go, each of its loaders may hang on another holder: a
//! ThreadLocal of each thread of a pool, a hook, a timer. No suspect has all of them then; together they are one cause.

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

/// Class loaders that define classes of the same names before that is told.
pub const MANY_LOADERS: usize = 3;
/// Percent of the reachable bytes that they retain at least, by a lower bound.
const MUCH_OF_HEAP: u64 = 1;
/// Groups of loaders that are told.
const TOLD_GROUPS: usize = 3;
/// Loaders of a group whose paths are told, the first by ID.
const TOLD_LOADERS: usize = 20;
/// Objects on the paths of a group, after which no other path is sought.
const LONG_PATHS: usize = 1 << 14;

/// Class loaders that define classes of the same names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoaderGroup {
    /// The loaders' class.
    pub class: Option<String>,
    /// How many loaders.
    pub loaders: u64,
    /// A class that each defines.
    pub defines: Option<String>,
    /// Classes that each defines.
    pub classes: u64,
    /// What they retain together, with their classes and instances.
    pub retained_bytes: u64,
    /// Why they are alive.
    pub paths: Vec<(ObjectId, Why)>,
}

/// Groups of loaders as they are found, those that retain most first.
#[derive(Debug, Default)]
pub struct Loaders(Vec<LargeGroup>);

impl Loaders {
    /// Finds the groups that retain much.
    ///
    /// # Errors
    /// If there is neither memory nor disk space for a number for each object.
    pub fn find(summary: &Summary, graph: &ObjectGraph) -> io::Result<Self> {
        if !has_many_loaders(summary) {
            return Ok(Self::default());
        }
        let least = share(graph.tree.reachable_bytes(), MUCH_OF_HEAP);
        let mut found = loader_sets::large_groups(summary, graph, MANY_LOADERS, least)?;
        found.truncate(TOLD_GROUPS);
        Ok(Self(found))
    }

    /// Those of which many retain what all of them retain, by number: not one with all, and the others beside it.
    pub(super) fn that_accumulate(&self) -> impl Iterator<Item = (usize, &LargeGroup)> {
        self.0.iter().enumerate().filter(|(_, found)| {
            let all = found.of_loaders.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
            contents::is_in_many(found.of_loaders.iter().copied(), all, true)
        })
    }

    /// The groups with what is told of them.
    pub(super) fn told(&self, heap: &Heap, graph: &ObjectGraph, bytes: &[u8]) -> Vec<LoaderGroup> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let summary = heap.summary();
        let sizes = Sizes::new(summary, None);
        let view = View::new(heap, graph, bytes);
        let groups = self.0.iter().map(|LargeGroup { group, .. }| {
            // A class of the application rather than one that was made for it.
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

/// Why the loaders of a group are alive. Long paths are all alike, and each takes a search along all of it.
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

/// Whether a class of one name is defined by so many loaders that may go.
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

/// What some objects retain of what others do, by the dominator tree; in each list no object dominates another, and the
/// others are ascending.
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
