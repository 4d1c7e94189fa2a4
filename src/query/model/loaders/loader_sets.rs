//! Retained sizes of class loaders with everything that they define, and the paths that keep them reachable.
//!
//! A loader, its classes and their instances reference one another: they are freed together or not at all. The size
//! freed with a loader is therefore their joint retained size. Loaders that define classes of the same names form a
//! group: deployments of one application, of which all but the last should have been freed.

use std::cmp::Reverse;
use std::io;

use rustc_hash::{FxHashMap, FxHashSet};

use super::deployments::{Deployments, deployments};
pub use super::loader_set::LoaderSet;
use crate::dominators::retained_of_many_sets::{self, SetRetained, Sets};
use crate::dominators::retained_of_set::tops;
use crate::generated_loaders::{GeneratedLoaders, is_accessor_loader, is_permanent};
use crate::loaders::{ClassLoaderRow, Duplicate, LoaderOrder};
use crate::objects::class_set::ClassSet;
use crate::objects::strength::Exclusions;
use crate::paths::beyond_frames;
use crate::paths::steps::{ObjectStep, RootView, View};
use hprof_base::sorting::SortRows;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::{Dump, DumpGraph};
use hprof_values::ObjectId;

/// Maximum number of objects of a path; the middle of a longer one is omitted.
const MAX_PATH: usize = 400;

/// A loader and the size freed with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoaderRow {
    /// Figures of the loader alone.
    pub row: ClassLoaderRow,
    /// Size retained together by the loader, its classes and their instances; `None` if none of them is reachable, and
    /// for loaders that live as long as the process.
    pub with_classes: Option<SetRetained>,
    /// Index of the loader's group.
    pub group: Option<usize>,
}

impl LoaderRow {
    /// Returns the size retained together by the loader, its classes and their instances; for a loader that lives as
    /// long as the process, the retained size of the loader object.
    pub fn retained_bytes(&self) -> Option<u64> {
        self.with_classes.map(|retained| retained.bytes).or(self.row.retained_bytes)
    }
}

/// Class loaders with their retained sizes, and groups of loaders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loaders {
    /// Loaders in the requested order.
    pub rows: Vec<LoaderRow>,
    /// Groups of two or more loaders, largest retained size first.
    pub groups: Vec<LoaderSet>,
}

/// Finds groups of loaders and computes the joint retained size of each loader, and of each group, with everything
/// defined. Loaders of generated classes are one row for each class of loaders.
///
/// # Errors
/// If neither memory nor disk has space for one number per object.
pub fn with_classes(
    dump: &DumpGraph<'_>,
    rows: Vec<ClassLoaderRow>,
    sort_by: LoaderOrder,
) -> io::Result<Loaders> {
    let mut all: Vec<LoaderRow> =
        rows.into_iter().map(|row| LoaderRow { row, with_classes: None, group: None }).collect();
    let mut groups = groups(dump.summary, &mut all);
    let mut all = merge_generated(dump.summary, all, sort_by);
    // One set for each row, then one for each group.
    let mut of_loader: FxHashMap<ObjectId, Vec<u32>> = FxHashMap::default();
    let first_group = u32::try_from(all.len()).unwrap_or(u32::MAX);
    for (set, row) in (0u32..).zip(&all).filter(|(_, row)| !is_permanent(dump.summary, row.row.id)) {
        of_loader.extend(row.row.ids().map(|id| (id, vec![set])));
    }
    for (group, set) in groups.iter().zip(first_group..) {
        for loader in &group.loaders {
            of_loader.entry(*loader).or_default().push(set);
        }
    }
    let count = first_group.saturating_add(u32::try_from(groups.len()).unwrap_or(u32::MAX));
    let sets = sets(dump, &of_loader, count);
    let retained = retained_of_many_sets::retained(dump.graph, &sets)?;
    let (of_loaders, of_groups) = retained.split_at_checked(all.len()).unwrap_or_default();
    for (row, retained) in all.iter_mut().zip(of_loaders) {
        row.with_classes = Some(*retained).filter(|retained| retained.objects > 0);
    }
    for (group, retained) in groups.iter_mut().zip(of_groups) {
        group.retained = *retained;
    }
    sort_groups(&mut groups, &mut all);
    if sort_by == LoaderOrder::Retained {
        let figure = |row: &LoaderRow| row.retained_bytes().map_or(0, |bytes| bytes.saturating_add(1));
        all.sort_rows_by_key(|row| (Reverse(figure(row)), row.row.id));
    }
    Ok(Loaders { rows: all, groups })
}

/// Merges the rows of loaders of generated classes: one row for each class of loaders, with the ID of the first.
fn merge_generated(summary: &Summary, rows: Vec<LoaderRow>, sort_by: LoaderOrder) -> Vec<LoaderRow> {
    let generated = GeneratedLoaders::new(summary);
    let class_of = |row: &LoaderRow| {
        let class = summary.class(row.row.class?)?;
        generated.class_of(summary.class_name(class), row.row.classes)
    };
    let mut of_class: FxHashMap<&str, Vec<LoaderRow>> = FxHashMap::default();
    let mut all: Vec<LoaderRow> = Vec::new();
    for row in rows {
        match class_of(&row) {
            Some(class) => of_class.entry(class).or_default().push(row),
            None => all.push(row),
        }
    }
    for mut rows in of_class.into_values() {
        rows.sort_rows_by_key(|row| row.row.id);
        all.extend(rows.into_iter().reduce(|mut all, row| {
            all.row.add(&row.row);
            all.group = all.group.filter(|group| row.group == Some(*group));
            all
        }));
    }
    all.sort_rows_by_key(|row| (Reverse(row.row.figure(sort_by)), row.row.id));
    all
}

/// A group of loaders with a large retained size, and intermediate results.
#[derive(Debug, Clone, Default)]
pub struct LargeGroup {
    /// Group of loaders.
    pub group: LoaderSet,
    /// Positions of its loaders, classes and instances that no other of them dominates, ascending.
    pub tops: Vec<TreePosition>,
    /// Retained size of each loader's set by the dominator tree alone, largest first.
    pub of_loaders: Vec<u64>,
    /// `true` if the loaders are closed.
    pub are_closed: bool,
    /// Loader of the deployment that runs.
    pub running: Option<ObjectId>,
}

/// Returns the applications of at least this many loaders that retain at least this many bytes by the dominator tree alone,
/// which is a lower bound. Exact sizes are computed only for these.
///
/// # Errors
/// If neither memory nor disk has space for one number per object.
pub fn large_groups(dump: &Dump<'_>, least_loaders: usize, least_bytes: u64) -> io::Result<Vec<LargeGroup>> {
    let graph = dump.graph;
    let mut found = deployments(&dump.objects);
    found.retain(|found| found.group.loaders.len() >= least_loaders);
    let bytes = |positions: &[TreePosition]| {
        positions.iter().fold(0u64, |sum, top| sum.saturating_add(graph.tree.retained_bytes(*top)))
    };
    let members = members(dump, &found);
    let with_bounds = found.into_iter().zip(members).map(|(of, members)| {
        let Deployments { group, are_closed, running } = of;
        let mut of_loaders: Vec<u64> =
            members.iter().map(|of_loader| bytes(&tops(&graph.tree, of_loader.iter().copied()))).collect();
        of_loaders.sort_unstable_by_key(|bytes| Reverse(*bytes));
        let tops = tops(&graph.tree, members.into_iter().flatten());
        LargeGroup { group, tops, of_loaders, are_closed, running }
    });
    let mut found: Vec<LargeGroup> = with_bounds.filter(|found| bytes(&found.tops) >= least_bytes).collect();
    if found.is_empty() {
        return Ok(found);
    }
    let mut of_loader: FxHashMap<ObjectId, Vec<u32>> = FxHashMap::default();
    for (set, found) in (0u32..).zip(&found) {
        of_loader.extend(found.group.loaders.iter().map(|loader| (*loader, vec![set])));
    }
    let count = u32::try_from(found.len()).unwrap_or(u32::MAX);
    let retained = retained_of_many_sets::retained(graph, &sets(dump, &of_loader, count))?;
    for (found, retained) in found.iter_mut().zip(retained) {
        found.group.retained = retained;
    }
    found.sort_rows_by_key(|found| {
        (Reverse(found.group.retained.bytes), found.group.loaders.first().copied())
    });
    Ok(found)
}

/// Returns the members by group and loader: the loader, its classes and their instances.
fn members(dump: &DumpGraph<'_>, groups: &[Deployments]) -> Vec<Vec<Vec<ObjectIndex>>> {
    let mut of_loader: FxHashMap<ObjectId, (usize, usize)> = FxHashMap::default();
    for (number, of) in groups.iter().enumerate() {
        of_loader.extend(of.group.loaders.iter().enumerate().map(|(at, loader)| (*loader, (number, at))));
    }
    let defined = dump.summary.numbered_classes().filter(|(_, class)| class.is_dumped());
    let of_class: FxHashMap<ClassNumber, (usize, usize)> =
        defined.filter_map(|(number, class)| Some((number, *of_loader.get(&class.loader.into())?))).collect();
    let mut members: Vec<Vec<Vec<ObjectIndex>>> =
        groups.iter().map(|of| vec![Vec::new(); of.group.loaders.len()]).collect();
    let mut add = |place: Option<&(usize, usize)>, object: ObjectIndex| {
        let of_loader =
            place.and_then(|(group, loader)| members.get_mut(*group).and_then(|of| of.get_mut(*loader)));
        if let Some(of_loader) = of_loader {
            of_loader.push(object);
        }
    };
    for (loader, place) in &of_loader {
        dump.graph
            .objects
            .addresses
            .index_of(*loader)
            .into_iter()
            .for_each(|object| add(Some(place), object));
    }
    for (class, place) in &of_class {
        dump.graph.class_object(*class).into_iter().for_each(|object| add(Some(place), object));
    }
    let has_objects =
        |class: &ClassNumber| dump.summary.class(*class).is_some_and(|class| class.objects.get() > 0);
    let classes: Vec<ClassNumber> = of_class.keys().copied().filter(has_objects).collect();
    let instances = if classes.is_empty() {
        Vec::new()
    } else {
        ClassSet::from_classes(dump.summary, &classes).all_objects(dump.graph)
    };
    for object in instances {
        add(dump.graph.objects.class(object).and_then(|class| of_class.get(&class)), object);
    }
    members
}

/// Creates the sets of loaders, their classes and instances, given the indices of the sets that each loader is in.
fn sets(dump: &DumpGraph<'_>, of_loader: &FxHashMap<ObjectId, Vec<u32>>, count: u32) -> Sets {
    let mut sets =
        Sets { count, of_class: vec![Vec::new(); dump.summary.classes().len()], ..Sets::default() };
    for (id, of) in of_loader {
        if let Some(object) = dump.graph.objects.addresses.index_of(*id) {
            sets.of_object.insert(object, of.clone());
        }
    }
    for (of_class, class) in sets.of_class.iter_mut().zip(dump.summary.classes()) {
        if class.is_dumped()
            && let Some(of) = of_loader.get(&class.loader.into())
        {
            of_class.clone_from(of);
        }
    }
    sets
}

/// Groups loaders whose classes have the same names. Array classes are ignored, since they depend on the code that ran.
fn groups(summary: &Summary, rows: &mut [LoaderRow]) -> Vec<LoaderSet> {
    let mut classes: FxHashMap<ObjectId, Vec<(&str, ClassNumber)>> = FxHashMap::default();
    for (number, class) in summary.numbered_classes().filter(|(_, class)| class.is_dumped()) {
        let (name, loader) = (summary.class_name(class), class.loader.into());
        let is_accessor = summary.loader_class(loader).is_some_and(is_accessor_loader);
        if !name.ends_with("[]") && !is_permanent(summary, loader) && !is_accessor {
            classes.entry(loader).or_default().push((name, number));
        }
    }
    classes.values_mut().for_each(|classes| classes.sort_unstable());
    let mut same: FxHashMap<Vec<&str>, Vec<usize>> = FxHashMap::default();
    for (at, row) in rows.iter().enumerate() {
        if let Some(classes) = classes.get(&row.row.id) {
            same.entry(classes.iter().map(|(name, _)| *name).collect()).or_default().push(at);
        }
    }
    let mut groups = Vec::new();
    let mut same: Vec<Vec<usize>> = same.into_values().filter(|rows| rows.len() > 1).collect();
    same.sort_unstable();
    for members in same {
        let mut group = LoaderSet::default();
        for at in members {
            let Some(row) = rows.get_mut(at) else { continue };
            row.group = Some(groups.len());
            group.loaders.push(row.row.id);
            group.instances += row.row.instances;
            group.shallow_bytes = group.shallow_bytes.saturating_add(row.row.shallow_bytes);
        }
        group.loaders.sort_unstable();
        let first = group.loaders.first().and_then(|first| classes.get(first));
        group.classes = first.into_iter().flatten().map(|(_, class)| *class).collect();
        groups.push(group);
    }
    groups
}

/// Sorts groups by retained size, largest first.
fn sort_groups(groups: &mut Vec<LoaderSet>, rows: &mut [LoaderRow]) {
    let mut order: Vec<(usize, LoaderSet)> = std::mem::take(groups).into_iter().enumerate().collect();
    order.sort_rows_by_key(|(_, group)| (Reverse(group.retained.bytes), group.loaders.first().copied()));
    let places: FxHashMap<usize, usize> =
        order.iter().enumerate().map(|(now, (was, _))| (*was, now)).collect();
    for row in rows {
        row.group = row.group.and_then(|was| places.get(&was).copied());
    }
    groups.extend(order.into_iter().map(|(_, group)| group));
}

/// A class name that several loaders define.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuplicateName {
    /// Class of the first loader, by ID, that can be freed; of the first loader if none can.
    pub first: Duplicate,
    /// Number of loaders that define a class of this name.
    pub loaders: u64,
    /// Number of objects of all these classes.
    pub instances: u64,
    /// Shallow size of these objects.
    pub shallow_bytes: u64,
    /// Size retained together by the class objects and their instances; `None` if none is reachable.
    pub retained: Option<SetRetained>,
}

/// Groups duplicate classes by name, largest retained size first. Equal names must be adjacent in the input.
///
/// # Errors
/// If neither memory nor disk has space for one number per object.
pub fn duplicate_names(dump: &DumpGraph<'_>, duplicates: &[Duplicate]) -> io::Result<Vec<DuplicateName>> {
    let name = |duplicate: &Duplicate| {
        dump.summary.class(duplicate.class).map(|class| dump.summary.class_name(class))
    };
    let mut sets = Sets { of_class: vec![Vec::new(); dump.summary.classes().len()], ..Sets::default() };
    let mut names = Vec::new();
    for (set, same) in (0u32..).zip(duplicates.chunk_by(|a, b| name(a) == name(b))) {
        let first = same.iter().min_by_key(|one| (is_permanent(dump.summary, one.loader), one.loader));
        let Some(first) = first else { continue };
        for one in same {
            if let Some(of_class) = sets.of_class.get_mut(one.class.0 as usize) {
                of_class.push(set);
            }
        }
        sets.count = set.saturating_add(1);
        names.push(DuplicateName {
            first: first.clone(),
            loaders: first.loaders,
            instances: same.iter().map(|one| one.instances).sum(),
            shallow_bytes: same.iter().fold(0, |sum, one| sum.saturating_add(one.shallow_bytes)),
            retained: None,
        });
    }
    let retained = retained_of_many_sets::retained(dump.graph, &sets)?;
    for (one, retained) in names.iter_mut().zip(retained) {
        one.retained = Some(retained).filter(|retained| retained.objects > 0);
    }
    // The sort is stable, so names with the same retained size stay ordered by loaders, then name.
    names.sort_rows_by_key(|one| Reverse(one.retained.map_or(0, |retained| retained.bytes)));
    Ok(names)
}

/// Shortest path that keeps an object reachable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootPath {
    /// Root where the path starts.
    pub root: RootView,
    /// Objects of the path.
    pub steps: Vec<ObjectStep>,
    /// `left_out`: number of objects omitted from the middle, and the step after which they were omitted.
    pub left_out: (usize, usize),
    /// Index of the first step of interest: the last one held by a static field of a class whose loader lives as long
    /// as the process; 0 if there is none.
    pub start: usize,
}

/// Finds the shortest path to each of the given loaders.
pub fn root_paths(
    view: &View<'_>,
    loaders: impl IntoIterator<Item = ObjectId>,
) -> FxHashMap<ObjectId, RootPath> {
    let wanted: FxHashSet<ObjectId> = loaders.into_iter().collect();
    let addresses = &view.edges.dump.graph.objects.addresses;
    let found = wanted.into_iter().filter_map(|id| Some((id, path(view, addresses.index_of(id)?)?)));
    found.collect()
}

fn path(view: &View<'_>, object: ObjectIndex) -> Option<RootPath> {
    // Prefers a path that lasts longer than a method call, if there is one.
    let found = beyond_frames::paths(&view.edges, object, 1, Exclusions::all_but_strong());
    let path = found.paths.into_iter().min_by_key(|path| path.through_frame)?.objects;
    root_path_along(view, &path)
}

/// Describes a path of objects from a root.
pub fn root_path_along(view: &View<'_>, path: &[ObjectIndex]) -> Option<RootPath> {
    let is_start = |holder: ObjectIndex, held: ObjectIndex| {
        let class = view.edges.class_of_class_object(holder);
        let class = class.and_then(|class| view.edges.dump.summary.class(class));
        class.is_some_and(|class| is_permanent(view.edges.dump.summary, class.loader.into()))
            && view.edges.holding(holder, held).is_static()
    };
    let is_start = |pair: &[ObjectIndex]| matches!(pair, [holder, held] if is_start(*holder, *held));
    let start = path.windows(2).rposition(is_start).map_or(0, |at| at + 1);
    let more = path.len().saturating_sub(MAX_PATH);
    if more == 0 {
        let steps = view.steps(path, 0..path.len());
        return Some(RootPath { root: view.root(*path.first()?), steps, left_out: (0, 0), start });
    }
    let half = MAX_PATH / 2;
    let mut steps = view.steps(path, 0..half);
    steps.extend(view.steps(path, half + more..path.len()));
    // That step and the object that references it must not be omitted.
    let start =
        if start < half { start } else { start.checked_sub(more).filter(|at| *at > half).unwrap_or(0) };
    Some(RootPath { root: view.root(*path.first()?), steps, left_out: (more, half), start })
}
