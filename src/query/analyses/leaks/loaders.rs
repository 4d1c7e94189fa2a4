//! Class loaders of one application: their joint retained size, and the paths that keep them alive.
//!
//! If an application is redeployed and the old deployments are not released, a different object may hold each loader: a
//! ThreadLocal of each thread of a pool, a hook, a timer. Then no suspect covers all of the loaders, although they are one
//! cause.

use std::cmp::Reverse;
use std::io;

use hprof_base::share::portion;
use rustc_hash::FxHashMap;

use hprof_index::layout::sizes::Sizes;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::{Dump, DumpGraph};
use hprof_model::generated_loaders::is_permanent;
use hprof_model::histogram;
use hprof_model::loaders::loader_sets::{self, LargeGroup, RootPath};
use hprof_model::paths::steps::View;
use hprof_values::ObjectId;

use super::below::{Store, within_holder};
use super::contents::{self, Reason};
use super::heap_places::HeapPlaces;
use super::loader_holders::{LoaderHolder, LoaderHolderKind, LoaderHolders, loader_holders};
use super::reader::EvidenceReader;
use super::{LeakVerdict, Suspect, SuspectCandidate, SuspectRule};
use hprof_index::graph::numbers::TreePosition;

/// Minimum number of class loaders of a reported group.
pub const MANY_LOADERS: usize = 3;
/// Minimum retained size of a reported group, in percent of the reachable bytes; compared with a lower bound of the size.
const MUCH_OF_HEAP: u64 = 1;
/// Maximum number of groups of loaders reported.
const TOLD_GROUPS: usize = 3;

/// Class loaders that define classes of the same names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoaderGroup {
    /// Class of the loaders.
    pub class: Option<String>,
    /// Number of loaders.
    pub loaders: u64,
    /// A class that each of the loaders defines.
    pub defines: Option<String>,
    /// Number of classes that each of the loaders defines.
    pub classes: u64,
    /// Joint retained size of the loaders, their classes and instances.
    pub retained_bytes: u64,
    /// `true` if the loaders are closed, or their application is stopped.
    pub are_closed: bool,
    /// Name of the application by a framework's rule, if another deployment of it runs: `web application /shop`.
    pub application: Option<String>,
    /// Holders that keep the loaders alive; kinds that hold the most loaders first.
    pub holders: Vec<LoaderHolder>,
    /// Paths that keep the first loaders alive, with the kind of holder on each.
    pub paths: Vec<(ObjectId, LoaderHolderKind, RootPath)>,
}

impl LoaderGroup {
    /// Returns the form of accumulation of the group.
    fn reason(&self) -> Reason {
        let class = self.defines.clone().or_else(|| self.class.clone());
        Reason::Loaders {
            class: class.unwrap_or_default(),
            loader_class: self.class.clone(),
            loaders: self.loaders,
            retained_bytes: self.retained_bytes,
        }
    }

    /// Returns the suspect for the class loaders of the group with this number.
    pub(super) fn suspect(&self, number: usize, found: &LargeGroup, reader: &EvidenceReader<'_>) -> Suspect {
        let graph = reader.dump.graph;
        let tree = &graph.tree;
        let position =
            |loader: &ObjectId| tree.reachable_position(graph.objects.addresses.index_of(*loader)?);
        let loaders: Vec<TreePosition> = found.group.loaders.iter().filter_map(position).collect();
        let largest = loaders.iter().copied();
        let largest = largest.max_by_key(|position| (tree.retained_bytes(*position), Reverse(*position)));
        let object = largest.unwrap_or_default();
        let store = Store {
            positions: found.tops.clone(),
            object,
            objects: self.loaders,
            retained_bytes: self.retained_bytes,
            reason: Some(self.reason()),
            are_heads: false,
            named: None,
            elements: None,
            description: None,
            container: None,
            largest: None,
        };
        // There are several objects without a common accumulation point.
        let row = reader.suspect(SuspectCandidate { point: None, ..within_holder(graph, store) });
        Suspect {
            rule: SuspectRule::Loaders,
            verdict: LeakVerdict::Accumulation,
            members: reader.named_all(&loaders),
            evidence: vec![self.evidence()],
            loader_group: Some(number),
            ..row
        }
    }

    /// Describes the evidence for the verdict on the group.
    fn evidence(&self) -> String {
        let what = if self.are_closed {
            "the class loaders are closed"
        } else {
            "each class loader defines its own classes with the same names"
        };
        what.to_owned()
    }
}

/// Groups of class loaders before their paths are searched, largest retained size first.
#[derive(Debug, Default)]
pub struct Loaders(Vec<LargeGroup>);

impl Loaders {
    /// Finds the groups with a large retained size.
    ///
    /// # Errors
    /// If neither memory nor disk has space for a number per object.
    pub fn find(dump: &Dump<'_>) -> io::Result<Self> {
        if !has_many_loaders(dump.summary) {
            return Ok(Self::default());
        }
        let least = portion(dump.graph.tree.reachable_bytes(), MUCH_OF_HEAP);
        let mut found = loader_sets::large_groups(dump, MANY_LOADERS, least)?;
        found.truncate(TOLD_GROUPS);
        Ok(Self(found))
    }

    /// Returns the groups whose retained size is spread over many loaders, with their numbers; groups in which one loader has
    /// nearly all of it are omitted.
    pub(super) fn that_accumulate(&self) -> impl Iterator<Item = (usize, &LargeGroup)> {
        self.0.iter().enumerate().filter(|(_, found)| {
            let all = found.of_loaders.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
            contents::is_in_many(found.of_loaders.iter().copied(), all, true)
        })
    }

    /// Returns the group with a number.
    pub(super) fn get(&self, group: usize) -> Option<&LargeGroup> {
        self.0.get(group)
    }

    /// Converts the groups to rows for the report.
    ///
    /// # Errors
    /// If neither memory nor disk has space for a few numbers per object.
    pub(super) fn report_rows(
        &self,
        dump: &DumpGraph<'_>,
        view: &View<'_>,
        places: &HeapPlaces,
    ) -> io::Result<Vec<LoaderGroup>> {
        if self.0.is_empty() {
            return Ok(Vec::new());
        }
        let summary = dump.summary;
        let sizes = Sizes::new(summary, None);
        let loaders: Vec<&[ObjectId]> = self.0.iter().map(|found| found.group.loaders.as_slice()).collect();
        let holders = loader_holders(view, &loaders)?;
        let row = |(found, held): (&LargeGroup, LoaderHolders)| {
            let LargeGroup { group, are_closed, running, .. } = found;
            // Prefers a class of the application to a generated one.
            let own = |class: &&ClassNumber| {
                summary.class(**class).is_some_and(|row| histogram::instances(summary, **class, row) > 0)
            };
            let defines = group.classes.iter().find(own).or(group.classes.first());
            let largest =
                group.classes.iter().max_by_key(|class| sizes.total(**class)).filter(|class| own(class));
            let name =
                |class: &ClassNumber| summary.class(*class).map(|row| summary.class_name(row).to_owned());
            let called = |loader: &ObjectId| {
                let object = dump.graph.objects.addresses.index_of(*loader)?;
                let called = places.description_of(object)?.called.as_ref()?;
                Some(called.strip_prefix("class loader of ")?.to_owned())
            };
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
                are_closed: *are_closed,
                application: running.as_ref().and_then(called),
                holders: held.holders,
                paths: held.paths,
            }
        };
        Ok(self.0.iter().zip(holders).map(row).collect())
    }
}

/// Returns whether there are enough loaders that can be freed and define a class of the same name.
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
