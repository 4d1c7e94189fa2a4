//! Evidence for a suspect: the path that keeps its memory alive, the parts of a holder, the largest classes.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::compare::places::library;
use hprof_base::sorting::SortRows;
use hprof_index::Dump;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_model::dominators::class_counts::{self, Counts};
use hprof_model::dominators::counted_ranges::CountedRanges;
use hprof_model::objects::collections::{Collections, Forms};
use hprof_model::objects::strength::{Exclusions, Strength};
use hprof_model::paths::beyond_frames;
use hprof_model::paths::steps::{ObjectStep, RootView, View};
use hprof_values::{ObjectId, names};

use super::NamedObject;
use super::Suspect;
use super::collection::{self, CollectionFacts};
use super::contents::ChildKind;
use super::holders::{Holder, HolderSearch};

/// Maximum number of objects of a path; the middle of longer ones is omitted.
const MAX_PATH: usize = 400;
/// Maximum number of objects of a path if class names are as long as a class file permits.
const MIN_PATH: usize = 4;
/// Maximum total length in bytes of the class names of a path.
const MAX_NAMES: usize = 1 << 18;
/// Maximum number of paths whose starting threads are examined.
const LOOKED_AT_PATHS: usize = 4;
/// Maximum number of objects examined to extend a path.
const MAX_WAY: usize = 1 << 16;
/// Packages of language libraries, which run threads and contain objects of the program.
const LANGUAGES: [&str; 6] = ["clojure", "groovy", "groovyx", "kotlin", "kotlinx", "scala"];
/// Maximum number of parts of a holder.
const TOLD_PARTS: usize = 5;
/// Maximum number of children that are reported as separate parts; if there are more, the children of one class are one part.
const FEW_CHILDREN: usize = 64;
/// Maximum number of classes reported.
const TOLD_CLASSES: usize = 3;

/// A path from a root to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// Root at which the path starts.
    pub root: RootView,
    /// Objects of the path, starting at the root.
    pub steps: Vec<ObjectStep>,
    /// `left_out`: number of objects omitted from the middle, and the number of `steps` before them.
    pub left_out: (usize, usize),
}

/// Facts about the paths to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// Shortest path that does not start in a thread's frame, or else the shortest path of all.
    pub path: Path,
    /// A path that starts in a thread's frame, if `path` does not.
    pub through_frame: Option<Path>,
    /// `true` if all paths start in frames of threads.
    pub only_frames: bool,
    /// `true` if the paths exist only because weak, soft, phantom and finalizer references are followed.
    pub is_weak: bool,
    /// `true` if `is_weak` and the path contains a soft reference. The JVM frees the memory that it keeps alive before it
    /// throws an OutOfMemoryError.
    pub is_soft: bool,
    /// If the object is a thread and itself a root: the local on its stack that leads to most of its retained size, unless its
    /// fields do.
    pub local: Option<RootView>,
    /// Names of other threads at which paths start.
    pub other_threads: Vec<String>,
    /// Last object or class of the application on the path, and the field by which it continues the path.
    pub owner: Option<Owner>,
    /// If `owner` belongs to a library: last such field before it outside of that library.
    pub user: Option<Owner>,
}

/// A field of an application class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Object that has the field; for a static field, the class object.
    pub object: ObjectId,
    /// Class that has the field.
    pub class: String,
    /// Name of the field.
    pub field: String,
    /// `true` for a static field.
    pub is_static: bool,
}

/// A part of the retained size of a holder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetainedPart {
    /// Class of the objects; for class objects, the represented class.
    pub class: String,
    /// `true` for class objects.
    pub is_class_object: bool,
    /// Number of objects.
    pub objects: u64,
    /// Retained size of the objects.
    pub retained_bytes: u64,
    /// Object ID, if there is only one object.
    pub object: Option<ObjectId>,
    /// Recognizable place of the object; of several objects, the common field of one class that holds each of them.
    pub place: Option<Holder>,
}

impl RetainedPart {
    /// Merges another part that has the same place and class. Returns whether it was merged.
    fn try_merge(&mut self, other: &Self) -> bool {
        let (Some(place), Some(added)) = (&mut self.place, &other.place) else { return false };
        let is_same = self.class == other.class && self.is_class_object == other.is_class_object;
        if !is_same || !place.add(added) {
            return false;
        }
        self.objects += other.objects;
        self.retained_bytes = self.retained_bytes.saturating_add(other.retained_bytes);
        self.object = None;
        true
    }
}

/// Objects of one class and the size that they take up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassShare {
    /// Name of the class.
    pub class: String,
    /// Number of its objects.
    pub objects: u64,
    /// Shallow size of its objects.
    pub shallow_bytes: u64,
}

/// Reader of a suspect's evidence.
pub(super) struct Evidence<'a> {
    dump: Dump<'a>,
    forms: std::sync::Arc<Forms>,
    pub(super) view: View<'a>,
    /// Prefixes of the names of the classes in which the program's threads start.
    pub(super) programs: Vec<String>,
    /// Counts of dominated objects, cached because suspects are often nested.
    counted: CountedRanges<'a>,
}

impl<'a> Evidence<'a> {
    pub(super) fn new(dump: &Dump<'a>, view: View<'a>, programs: Vec<String>) -> Self {
        let forms = Forms::for_summary(dump.summary);
        let counted = CountedRanges::new(dump.graph, dump.summary.classes().len());
        Self { dump: *dump, forms, view, programs, counted }
    }

    /// Returns the classes whose objects take up most of the retained size of `tops`.
    pub(super) fn contents(&self, tops: &[TreePosition]) -> Vec<ClassShare> {
        let counts = match tops {
            [top] => self.counted.count(*top..self.dump.graph.tree.end(*top)),
            _ => class_counts::count_below(self.dump.graph, tops, self.dump.summary.classes().len()),
        };
        largest_classes(self.dump.summary, &counts)
    }

    pub(super) fn named_object(&self, object: ObjectIndex) -> NamedObject {
        let class = self.dump.graph.class_of_class_object(object);
        let name = class
            .and_then(|class| self.dump.summary.class(class))
            .map(|row| self.dump.summary.class_name(row));
        NamedObject {
            object: self.dump.graph.objects.addresses.id_of(object).unwrap_or_default(),
            class: name.or_else(|| self.view.class_name(object)).map(str::to_owned),
            is_class_object: class.is_some(),
            label: if class.is_some() { None } else { self.view.label(object) },
            retained_bytes: self.dump.graph.tree.retained_bytes_of(object).unwrap_or(0),
        }
    }

    /// Returns the loader of an object's class; for a class object, the loader of the represented class.
    pub(super) fn loader(&self, object: ObjectIndex) -> ObjectId {
        let class =
            self.dump.graph.class_of_class_object(object).or_else(|| self.dump.graph.objects.class(object));
        class
            .and_then(|class| self.dump.summary.class(class))
            .map(|row| row.loader.into())
            .unwrap_or_default()
    }

    /// Finds the paths to an object.
    pub(super) fn paths(&self, object: ObjectIndex) -> Option<Paths> {
        let found =
            beyond_frames::paths(&self.view.edges, object, LOOKED_AT_PATHS, Exclusions::all_but_strong());
        let only_frames = found.only_frames();
        let frame = found.paths.iter().find(|path| path.through_frame);
        let field = found.paths.iter().find(|path| !path.through_frame);
        let path = field.or(frame)?;
        let mut paths = self.along(&path.objects, found.only_excluded);
        paths.only_frames = only_frames;
        paths.through_frame = frame.filter(|_| field.is_some()).map(|path| self.path(&path.objects));
        let own = paths.path.root.thread.as_ref().and_then(|thread| thread.name.clone());
        for path in found.paths.iter().filter(|path| !path.through_frame) {
            let root = path.objects.first().map(|root| self.view.start(*root, Exclusions::all_but_strong()));
            let name = root.and_then(|root| root.thread?.name);
            paths.other_threads.extend(name.filter(|name| Some(name) != own.as_ref()));
        }
        paths.other_threads.sort_unstable();
        paths.other_threads.dedup();
        if paths.path.root.thread.is_some() && path.objects.len() == 1 {
            paths.local = self.local_of(object);
        }
        Some(paths)
    }

    /// Returns the local that leads to most of a thread's retained size; `None` if the thread's fields do.
    pub(super) fn local_of(&self, thread: ObjectIndex) -> Option<RootView> {
        let tree = &self.dump.graph.tree;
        let class = |position| self.dump.graph.objects.class(tree.object_at(position)?);
        // Children are sorted by size: the first of a class is the largest.
        let mut of_class: FxHashMap<Option<ClassNumber>, (u64, TreePosition)> = FxHashMap::default();
        for child in tree.children(tree.reachable_position(thread)?) {
            let (bytes, _) = of_class.entry(class(child)).or_insert((0, child));
            *bytes = bytes.saturating_add(tree.retained_bytes(child));
        }
        let largest = of_class.into_values().max_by_key(|(bytes, first)| (*bytes, Reverse(*first)))?.1;
        let found =
            beyond_frames::paths(&self.view.edges, tree.object_at(largest)?, 1, Exclusions::all_but_strong());
        let path = found.paths.first().filter(|_| found.only_frames())?;
        Some(self.view.start(*path.objects.first()?, Exclusions::all_but_strong()))
    }

    /// Extends the paths to an object by the shortest path from there to `to`, if `to` is near.
    pub(super) fn extend_paths(&self, mut paths: Paths, to: ObjectIndex) -> Paths {
        let index = |step: &ObjectStep| self.dump.graph.objects.addresses.index_of(step.id);
        let objects: Option<Vec<ObjectIndex>> = paths.path.steps.iter().map(index).collect();
        if let Some(mut objects) = objects.filter(|_| paths.path.left_out.0 == 0)
            && let Some(last) = objects.last()
            && let Some(more) = self.way(*last, to)
        {
            objects.extend(more);
            paths.path = self.path(&objects);
        }
        paths
    }

    /// Returns the objects after `from` on a shortest path of strong references to `to`.
    fn way(&self, from: ObjectIndex, to: ObjectIndex) -> Option<Vec<ObjectIndex>> {
        let edges = &self.view.edges;
        let mut before: FxHashMap<ObjectIndex, ObjectIndex> = FxHashMap::default();
        let mut queue = std::collections::VecDeque::from([from]);
        while let Some(at) = queue.pop_front() {
            for next in self.dump.graph.references(at) {
                let is_new = next != from && !before.contains_key(&next);
                let is_class = self.dump.graph.class_of_class_object(next).is_some();
                if !is_new || is_class || !edges.is_followed(at, next, Exclusions::all_but_strong()) {
                    continue;
                }
                before.insert(next, at);
                if next == to {
                    let back = std::iter::successors(Some(to), |at| before.get(at).copied());
                    let mut way: Vec<ObjectIndex> = back.take_while(|at| *at != from).collect();
                    way.reverse();
                    return Some(way);
                }
                // An array may have too many elements.
                if before.len() >= MAX_WAY {
                    return None;
                }
                queue.push_back(next);
            }
        }
        None
    }

    /// Collects the facts about a path.
    pub(super) fn along(&self, objects: &[ObjectIndex], is_weak: bool) -> Paths {
        let path = self.path(objects);
        let is_soft = path.steps.iter().any(|step| step.strength == Strength::Soft);
        let owner = self.owner(objects, |_| true);
        let is_of_program = |class: &str| {
            let of = library(class);
            !LANGUAGES.contains(&of.split('.').next().unwrap_or_default())
                && self.programs.iter().any(|program| program == of)
        };
        let user = owner.as_ref().and_then(|owner| {
            self.owner(objects, |class| library(class) != library(&owner.class) && is_of_program(class))
        });
        Paths {
            path,
            through_frame: None,
            only_frames: false,
            is_weak,
            is_soft: is_weak && is_soft,
            local: None,
            other_threads: Vec::new(),
            owner,
            user,
        }
    }

    fn path(&self, objects: &[ObjectIndex]) -> Path {
        let root =
            self.view.start(objects.first().copied().unwrap_or_default(), Exclusions::all_but_strong());
        let ends = objects.iter().take(MAX_PATH).chain(objects.iter().rev().take(MAX_PATH));
        let longest = ends.filter_map(|object| self.view.class_name(*object)).map(str::len).max();
        let most = (MAX_NAMES / longest.unwrap_or(0).max(1)).clamp(MIN_PATH, MAX_PATH);
        if objects.len() <= most {
            let steps = self.view.steps(objects, 0..objects.len());
            return Path { root, steps, left_out: (0, 0) };
        }
        let half = most / 2;
        let mut steps = self.view.steps(objects, 0..half);
        steps.extend(self.view.steps(objects, objects.len() - half..objects.len()));
        Path { root, steps, left_out: (objects.len() - 2 * half, half) }
    }

    /// Returns the last object outside the JDK on a path for whose class `is_meant` is true and that holds the next object,
    /// with the field that holds it.
    fn owner(&self, path: &[ObjectIndex], is_meant: impl Fn(&str) -> bool) -> Option<Owner> {
        let pairs = path.windows(2).rev().take(MAX_PATH);
        let mut pairs = pairs.filter_map(|pair| Some((*pair.first()?, *pair.get(1)?)));
        pairs.find_map(|(holder, held)| {
            let named = self.named_object(holder);
            let class = named.class.filter(|class| !names::is_of_jdk(class) && !class.ends_with("[]"))?;
            if !is_meant(&class) {
                return None;
            }
            let step = self.view.step(held, Some(holder));
            let field = step.reference.filter(|reference| !reference.starts_with('<'))?;
            Some(Owner { object: named.object, class, field, is_static: step.is_static })
        })
    }

    /// Returns a reader of collections.
    pub(super) fn collections(&self) -> Collections<'_, 'a> {
        Collections::with(&self.dump.objects, self.forms.clone())
    }

    /// Returns the facts about the collection at a place, if there is one.
    pub(super) fn collection(&self, place: &Holder) -> Option<CollectionFacts> {
        let object =
            self.dump.graph.objects.addresses.index_of(place.object).filter(|_| place.is_collection)?;
        Some(collection::facts(&self.dump.objects, &self.collections(), &self.view, object))
    }

    /// Returns the largest parts of an object's retained size: its children, with children at the same place merged; or, if
    /// there are many, the children merged by class. If they are not merged by class, also returns the classes whose objects
    /// take up most of the size.
    pub(super) fn parts(
        &self,
        holders: &HolderSearch<'_>,
        base: TreePosition,
        children: &[ChildKind],
    ) -> (Vec<RetainedPart>, Option<Vec<ClassShare>>) {
        let tree = &self.dump.graph.tree;
        let few: Vec<TreePosition> = tree.children(base).take(FEW_CHILDREN + 1).collect();
        if few.len() > FEW_CHILDREN && children.first().is_some_and(|kind| kind.objects > 1) {
            return (kinds(children), None);
        }
        // One pass serves both the contents of each part and the total.
        let classes = self.dump.summary.classes().len();
        let mut all = vec![Counts::default(); classes];
        let mut done = TreePosition(base.0.saturating_add(1));
        let mut parts: Vec<RetainedPart> = Vec::new();
        let own = |position: TreePosition| position..TreePosition(position.0.saturating_add(1));
        let mut count = |positions: std::ops::Range<TreePosition>| {
            let counts = self.counted.count(positions);
            all = class_counts::add(std::mem::take(&mut all), &counts);
            counts
        };
        count(own(base));
        for position in few.into_iter().take(FEW_CHILDREN) {
            count(own(position));
            let below = count(own(position).end..tree.end(position));
            done = tree.end(position);
            let Some(object) = tree.object_at(position) else { continue };
            let named = self.named_object(object);
            let part = RetainedPart {
                class: named.class.unwrap_or_default(),
                is_class_object: named.is_class_object,
                objects: 1,
                retained_bytes: named.retained_bytes,
                object: Some(named.object),
                place: holders.amounts_to(position, &below),
            };
            if !parts.iter_mut().any(|known| known.try_merge(&part)) {
                parts.push(part);
            }
        }
        count(done..tree.end(base));
        parts.sort_rows_by_key(|part| Reverse(part.retained_bytes));
        parts.truncate(TOLD_PARTS);
        (parts, Some(largest_classes(self.dump.summary, &all)))
    }
}

/// Converts kinds of objects to parts.
pub(super) fn kinds(children: &[ChildKind]) -> Vec<RetainedPart> {
    let part = |kind: &ChildKind| RetainedPart {
        class: kind.class.clone(),
        is_class_object: kind.is_class_object,
        objects: kind.objects,
        retained_bytes: kind.retained_bytes,
        object: None,
        place: None,
    };
    children.iter().take(TOLD_PARTS).map(part).collect()
}

/// Returns the classes whose objects take up most of the size.
fn largest_classes(summary: &Summary, counts: &[Counts]) -> Vec<ClassShare> {
    let counted = (0u32..).map(ClassNumber).zip(counts).filter(|(_, count)| count.objects > 0);
    let name = |class: ClassNumber| summary.class(class).map_or("", |row| summary.class_name(row));
    // Names may be long: only those of the few reported classes are copied.
    let mut shares: Vec<(&str, &Counts)> = counted.map(|(class, count)| (name(class), count)).collect();
    shares.sort_rows_by_key(|(name, count)| (Reverse(count.shallow_bytes), *name));
    let share = |(name, count): (&str, &Counts)| ClassShare {
        class: name.to_owned(),
        objects: count.objects,
        shallow_bytes: count.shallow_bytes,
    };
    shares.into_iter().take(TOLD_CLASSES).map(share).collect()
}

/// Sets, for each suspect, the numbers of the other suspects that share a prefix of its path which ends at an object outside
/// the JDK.
pub(super) fn relate(suspects: &mut [Suspect]) {
    let related: Vec<Vec<usize>> = (0..suspects.len())
        .map(|at| {
            let others = (0..suspects.len()).filter(|other| *other != at);
            others.filter(|other| are_related(suspects.get(at), suspects.get(*other))).collect()
        })
        .collect();
    for (suspect, related) in suspects.iter_mut().zip(related) {
        suspect.related = related;
    }
}

fn are_related(a: Option<&Suspect>, b: Option<&Suspect>) -> bool {
    let path = |suspect: Option<&'_ Suspect>| -> Vec<(ObjectId, bool)> {
        let suspect = suspect.filter(|suspect| !suspect.has_judgement_row());
        let paths = suspect.and_then(|suspect| suspect.paths.as_ref());
        let steps = paths.into_iter().flat_map(|paths| &paths.path.steps);
        steps.map(|step| (step.id, is_of_application(step))).collect()
    };
    let (a, b) = (path(a), path(b));
    let common = a.iter().zip(&b).take_while(|(a, b)| a == b);
    // One path may be a prefix of the other.
    common.into_iter().any(|((_, is_own), _)| *is_own)
}

fn is_of_application(step: &ObjectStep) -> bool {
    class_of(step).is_some_and(|class| !names::is_of_jdk(class) && !class.ends_with("[]"))
}

/// Returns the class of an object on a path; for a class object, the represented class.
pub(super) fn class_of(step: &ObjectStep) -> Option<&str> {
    match (&step.class, &step.label) {
        (Some(class), Some(label)) if class == "java.lang.Class" => Some(label),
        (class, _) => class.as_deref(),
    }
}
