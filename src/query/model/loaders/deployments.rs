//! Deployments of one application: class loaders that define classes of the same names.
//!
//! Loaders that are known to be closed belong to one application if most classes of the smaller one are among those of the
//! larger one: the number of classes that a deployment loads depends on how long it ran and what it was used for. That must
//! hold for all classes, and for those alone that not all applications share: applications share libraries. Other loaders must
//! define exactly the same classes: different applications may share most of their libraries. Generated classes (lambdas,
//! proxies) have other names each time and are ignored.

use std::borrow::Cow;
use std::cmp::Reverse;

use hprof_base::share::is_share;
use rustc_hash::{FxHashMap, FxHashSet};

use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_values::ObjectId;

use super::loader_set::LoaderSet;
use super::loader_states::{LoaderState, LoaderStates};
use crate::generated_loaders::{is_accessor_loader, is_permanent};
use crate::objects::reader::ObjectReader;
use hprof_base::naming::stable_names::stem;

/// Percentage of the classes of a closed loader that the largest one of its application defines as well.
const COMMON_PERCENT: u64 = 80;
/// Maximum number of applications with a class of one name that a loader is compared with.
const MAX_CANDIDATES: usize = 16;

/// Deployments of one application.
#[derive(Debug, Clone, Default)]
pub(crate) struct Deployments {
    /// The loaders, and the classes that all of them define.
    pub(crate) group: LoaderSet,
    /// `true` if they are closed.
    pub(crate) are_closed: bool,
    /// Loader of the running deployment of this application, if the others are closed.
    pub(crate) running: Option<ObjectId>,
}

/// A loader and the classes that it defines.
struct DefiningLoader {
    id: ObjectId,
    /// Numbers of class names, ascending, each with the class.
    classes: Vec<(u32, ClassNumber)>,
}

/// Returns the applications with several reachable deployments. Deployments that are known to be running do not count.
pub(crate) fn deployments(objects: &ObjectReader<'_>) -> Vec<Deployments> {
    let summary = objects.summary;
    let defined = defining_loaders(summary);
    let states = LoaderStates::new(objects);
    let (mut closed, mut running) = (Vec::new(), Vec::new());
    let mut same: FxHashMap<Vec<u32>, Vec<DefiningLoader>> = FxHashMap::default();
    for loader in defined {
        let object = objects.graph.objects.addresses.index_of(loader.id);
        if object.is_some_and(|object| objects.graph.tree.reachable_position(object).is_none()) {
            continue;
        }
        match object.map_or(LoaderState::Unknown, |object| states.state(object)) {
            LoaderState::Closed => closed.push(loader),
            LoaderState::Running => running.push(loader),
            LoaderState::Unknown => {
                let names = loader.classes.iter().map(|(name, _)| *name).collect();
                same.entry(names).or_default().push(loader);
            }
        }
    }
    let mut found = closed_applications(summary, closed, &running);
    let others = same.into_values().filter(|loaders| loaders.len() > 1);
    found.extend(
        others.map(|loaders| Deployments { group: loader_set(summary, &loaders), ..Deployments::default() }),
    );
    found.sort_unstable_by_key(|of| of.group.loaders.first().copied());
    found
}

/// Returns the loaders that can be freed, with the classes that each defines, except arrays and generated classes. A name has
/// one number for each class of loaders.
fn defining_loaders(summary: &Summary) -> Vec<DefiningLoader> {
    let mut numbers: FxHashMap<(&str, &str), u32> = FxHashMap::default();
    let mut of_loader: FxHashMap<ObjectId, Vec<(u32, ClassNumber)>> = FxHashMap::default();
    for (number, class) in summary.numbered_classes().filter(|(_, class)| class.is_dumped()) {
        let (name, loader) = (summary.class_name(class), ObjectId::from(class.loader));
        let loader_class = summary.loader_class(loader).unwrap_or_default();
        if name.ends_with("[]") || is_permanent(summary, loader) || is_accessor_loader(loader_class) {
            continue;
        }
        if matches!(stem(name), Cow::Borrowed(_)) {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            let name = *numbers.entry((loader_class, name)).or_insert(next);
            of_loader.entry(loader).or_default().push((name, number));
        }
    }
    let mut found: Vec<DefiningLoader> = of_loader
        .into_iter()
        .map(|(id, mut classes)| {
            classes.sort_unstable();
            classes.dedup_by_key(|(name, _)| *name);
            DefiningLoader { id, classes }
        })
        .collect();
    found.sort_unstable_by_key(|loader| loader.id);
    found
}

/// Groups closed loaders by application: each with the largest one that has most of its classes.
fn closed_applications(
    summary: &Summary,
    mut closed: Vec<DefiningLoader>,
    running: &[DefiningLoader],
) -> Vec<Deployments> {
    closed.sort_unstable_by_key(|loader| (Reverse(loader.classes.len()), loader.id));
    let shared = shared_names(closed.iter().chain(running));
    let own =
        |loader: &DefiningLoader| loader.classes.iter().filter(|(name, _)| !shared.contains(name)).count();
    let mut applications: Vec<Vec<DefiningLoader>> = Vec::new();
    let mut of_name: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
    for loader in closed {
        let known = most_common(&of_name, &shared, &loader);
        let known = known.filter(|of| is_most(of.all, loader.classes.len()) && is_most(of.own, own(&loader)));
        if let Some(members) = known.and_then(|of| applications.get_mut(of.application)) {
            members.push(loader);
            continue;
        }
        for (name, _) in &loader.classes {
            let candidates = of_name.entry(*name).or_default();
            if candidates.len() < MAX_CANDIDATES {
                candidates.push(applications.len());
            }
        }
        applications.push(vec![loader]);
    }
    let mut running_of: FxHashMap<usize, ObjectId> = FxHashMap::default();
    for loader in running {
        // A running deployment may have run for longer than any closed one.
        let Some(of) = most_common(&of_name, &shared, loader) else { continue };
        let largest = applications.get(of.application).and_then(|loaders| loaders.first());
        let [all, of_it] = largest.map_or([0; 2], |largest| [largest.classes.len(), own(largest)]);
        if is_most(of.all, all.min(loader.classes.len())) && is_most(of.own, of_it.min(own(loader))) {
            running_of.entry(of.application).or_insert(loader.id);
        }
    }
    let several = applications.into_iter().enumerate().filter(|(_, loaders)| loaders.len() > 1);
    several
        .map(|(at, loaders)| Deployments {
            group: loader_set(summary, &loaders),
            are_closed: true,
            running: running_of.get(&at).copied(),
        })
        .collect()
}

/// Returns the names that all loaders define: libraries that applications share, or all of the only application.
fn shared_names<'l>(loaders: impl Iterator<Item = &'l DefiningLoader>) -> FxHashSet<u32> {
    let (counts, all) = count_names(loaders);
    counts.into_iter().filter(|(_, count)| *count == all).map(|(name, _)| name).collect()
}

/// Returns the number of loaders that define each name, and the number of all.
fn count_names<'l>(loaders: impl Iterator<Item = &'l DefiningLoader>) -> (FxHashMap<u32, usize>, usize) {
    let mut counts: FxHashMap<u32, usize> = FxHashMap::default();
    let mut all = 0;
    for loader in loaders {
        all += 1;
        for (name, _) in &loader.classes {
            *counts.entry(*name).or_default() += 1;
        }
    }
    (counts, all)
}

/// Classes that a loader has in common with an application.
struct CommonClasses {
    application: usize,
    all: usize,
    /// Number of the common classes that not all applications share.
    own: usize,
}

/// Returns the application that has most of the classes of a loader, those that not all share first.
fn most_common(
    of_name: &FxHashMap<u32, Vec<usize>>,
    shared: &FxHashSet<u32>,
    loader: &DefiningLoader,
) -> Option<CommonClasses> {
    let mut common: FxHashMap<usize, (usize, usize)> = FxHashMap::default();
    for (name, _) in &loader.classes {
        for application in of_name.get(name).into_iter().flatten() {
            let (own, all) = common.entry(*application).or_default();
            *own += usize::from(!shared.contains(name));
            *all += 1;
        }
    }
    let most = common.into_iter().max_by_key(|(at, counts)| (*counts, Reverse(*at)));
    most.map(|(application, (own, all))| CommonClasses { application, all, own })
}

fn is_most(count: usize, all: usize) -> bool {
    is_share(count as u64, all as u64, COMMON_PERCENT)
}

/// Returns a set of loaders, with the classes of the first by ID that most of them define.
fn loader_set(summary: &Summary, loaders: &[DefiningLoader]) -> LoaderSet {
    let (counts, _) = count_names(loaders.iter());
    let most = counts.values().copied().max();
    let mut ids: Vec<ObjectId> = loaders.iter().map(|loader| loader.id).collect();
    ids.sort_unstable();
    let is_common = |(name, _): &&(u32, ClassNumber)| counts.get(name).copied() == most;
    let common = |loader: &DefiningLoader| -> Vec<ClassNumber> {
        loader.classes.iter().filter(is_common).map(|(_, class)| *class).collect()
    };
    let mut by_id: Vec<&DefiningLoader> = loaders.iter().collect();
    by_id.sort_unstable_by_key(|loader| loader.id);
    let classes = by_id.into_iter().map(common).find(|classes| !classes.is_empty());
    let mut classes = classes.unwrap_or_default();
    classes.sort_unstable_by_key(|class| summary.class(*class).map(|row| summary.class_name(row)));
    LoaderSet { loaders: ids, classes, ..LoaderSet::default() }
}
