//! Leak suspects: which objects retain so much of the heap that they may be a leak, where their memory accumulates, and
//! whether it does.
//!
//! Suspects and accumulation points are those of Eclipse MAT's report (`FindLeaksQuery`, `LeakHunterQuery`), by exact sizes
//! and over all members of a group: docs/mat.md tells the differences. MAT calls every object over the threshold a suspect;
//! here each has a verdict, since most programs have a class loader or a class that retains most of their heap.

pub mod allocation;
pub mod contents;
pub mod evidence;
pub mod heap_facts;
pub mod holders;
pub mod loaders;
pub mod off_heap;
pub mod thread_locals;

pub mod collection;
mod group_point;
mod reader;
mod suspects;

use std::cmp::Reverse;
use std::io;

use crate::dump::unreachable::Unreachable;
use crate::paths::steps::View;
use crate::sorting::SortRows;
use crate::threads::frames::Frame;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::ClassNumber;
use hprof_index::{Heap, ObjectGraph};
use hprof_parser::ObjectId;

use self::allocation::Allocation;
use self::collection::CollectionFacts;
use self::contents::{Level, Reason};
use self::evidence::{ClassShare, Paths, RetainedPart};
use self::group_point::CommonPath;
use self::holders::Holder;
use self::loaders::{LoaderGroup, Loaders};
use self::reader::EvidenceReader;
use self::suspects::{CandidateGroup, Chain};
use self::thread_locals::ThreadLocalUse;

/// Percent of the reachable heap that a suspect retains more than when nothing is said, as in MAT's report.
pub const DEFAULT_THRESHOLD: u8 = 10;

/// Members of a group that are told, those that retain most.
const TOLD_MEMBERS: usize = 10;

/// What holds most, so many rows, where nothing is suspect.
const TOLD_LARGEST: usize = 5;

/// Whether a suspect is one object or several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SuspectKind {
    /// One object.
    Single,
    /// Objects of one class that only the roots dominate.
    Group,
}

impl SuspectKind {
    /// The name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Group => "group",
        }
    }
}

/// What a suspect is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuspectObject {
    /// An object that is none of the others.
    Instance,
    /// A class object, or several.
    Class,
    /// A class loader, or several.
    ClassLoader,
    /// A thread, or several.
    Thread,
}

impl SuspectObject {
    /// The name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::Class => "class",
            Self::ClassLoader => "class_loader",
            Self::Thread => "thread",
        }
    }
}

/// Whether memory accumulates there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// At least 80 percent is in many children of one class, in one chain, in one buffer, or in many like threads or loaders.
    Accumulation,
    /// It stands above parts of different kinds.
    Holder,
}

impl Verdict {
    /// The name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accumulation => "accumulation",
            Self::Holder => "holder",
        }
    }
}

/// An object by its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedObject {
    /// Object ID.
    pub object: ObjectId,
    /// Its class; of a class object, the class it stands for. `None` if the dump does not tell.
    pub class: Option<String>,
    /// Whether it is a class object.
    pub is_class_object: bool,
    /// A few words that tell it from others.
    pub label: Option<String>,
    /// What it retains.
    pub retained_bytes: u64,
}

/// A suspect, with the evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspect {
    /// One object, or several.
    pub kind: SuspectKind,
    /// What it is.
    pub what: SuspectObject,
    /// Whether memory accumulates there.
    pub verdict: Verdict,
    /// The object; of a group the member that retains most.
    pub object: NamedObject,
    /// How many objects.
    pub objects: u64,
    /// What they take themselves.
    pub shallow_bytes: u64,
    /// What they retain.
    pub retained_bytes: u64,
    /// Members of a group, those that retain most; of a single suspect nothing.
    pub members: Vec<NamedObject>,
    /// The class of the members of a group.
    pub group_class: Option<String>,
    /// The loader of the class: of the class itself, of a class object. 0 is the boot loader.
    pub loader: ObjectId,
    /// The accumulation point.
    pub point: Option<NamedObject>,
    /// What the evidence is of: the accumulation point, the first link of the chain that leads there; of a group its point,
    /// or the member that retains most.
    pub base: NamedObject,
    /// What is retained there: by the accumulation point, by the chain that leads to it, or by the group.
    pub accumulated_bytes: u64,
    /// How it accumulates, if it does.
    pub reason: Option<Reason>,
    /// What the accumulation point is known by: the collection that it is a part of, and the field that holds it.
    pub place: Option<Holder>,
    /// What a holder retains, the largest parts.
    pub parts: Vec<RetainedPart>,
    /// What accumulates, from the accumulation point down.
    pub accumulated: Vec<Level>,
    /// Where what accumulates was allocated, if the dump has traces.
    pub allocation: Option<Allocation>,
    /// The classes whose objects take most of what it retains.
    pub contents: Vec<ClassShare>,
    /// The shortest path to the accumulation point, and what else is known of paths to it.
    pub paths: Option<Paths>,
    /// The collection that the accumulation point is of.
    pub collection: Option<CollectionFacts>,
    /// ThreadLocals whose values these threads keep, those that retain most.
    pub thread_locals: Vec<ThreadLocalUse>,
    /// Of threads: what the one that retains most is doing, its innermost frame that is not the JDK's.
    pub frame: Option<Frame>,
    /// Whether the thread that ran into an OutOfMemoryError is it, or among them.
    pub is_oom_thread: bool,
    /// Whether soft references keep alive what accumulates, or hold most of it: the JVM may clear them.
    pub is_behind_soft: bool,
    /// Other suspects, by number, whose paths have a beginning in common with its own.
    pub related: Vec<usize>,
}

impl Suspect {
    /// The ThreadLocal under which most of it is, if there is one.
    pub fn main_thread_local(&self) -> Option<&ThreadLocalUse> {
        let first = self.thread_locals.first()?;
        first.is_most_of(self.retained_bytes).then_some(first)
    }

    /// Bytes of what its sentence is about: of the ThreadLocal, of the threads, or else of what accumulates.
    pub fn explained_bytes(&self) -> u64 {
        match (self.main_thread_local(), &self.reason) {
            _ if self.verdict == Verdict::Holder => self.retained_bytes,
            (Some(local), _) => local.retained_bytes,
            (None, Some(Reason::Threads { retained_bytes, .. })) => *retained_bytes,
            (None, _) => self.accumulated_bytes,
        }
    }
}

/// The suspects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leaks {
    /// What all reachable objects take.
    pub reachable_bytes: u64,
    /// What a suspect retains more than.
    pub threshold_bytes: u64,
    /// Those that retain most first.
    pub suspects: Vec<Suspect>,
    /// Applications whose classes several loaders define, those that retain most first.
    pub loaders: Vec<LoaderGroup>,
    /// What is concluded: that whose cause retains most first.
    pub conclusions: Vec<Conclusion>,
    /// What holds most, if nothing is suspect.
    pub largest: Vec<Holder>,
    /// What all objects take, also those that are unreachable.
    pub used_bytes: u64,
}

/// Why memory is not freed, and how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclusion {
    /// What it is.
    pub cause: Cause,
    /// What accumulates there, or what the class loaders retain.
    pub retained_bytes: u64,
}

/// What a conclusion is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// A suspect in which memory accumulates, by number.
    Suspect(usize),
    /// Class loaders of one application that several holders keep alive.
    Loaders {
        /// The number of the group.
        group: usize,
        /// The suspects that are parts of it, by number: most of what each retains is what the loaders retain.
        suspects: Vec<usize>,
    },
}

/// What retains most, as far as anything is said of it.
#[derive(Debug, Clone, Copy)]
pub enum Largest<'a> {
    /// The conclusion whose cause retains most.
    Conclusion(&'a Conclusion),
    /// A suspect that retains more than any cause, and in which nothing accumulates.
    Holder(&'a Suspect),
    /// What holds most where nothing is suspect.
    NoSuspect(&'a Holder),
}

impl Largest<'_> {
    /// What it retains; of a conclusion, what its cause does.
    pub fn retained_bytes(&self) -> u64 {
        match self {
            Self::Conclusion(conclusion) => conclusion.retained_bytes,
            Self::Holder(suspect) => suspect.retained_bytes,
            Self::NoSuspect(holder) => holder.retained_bytes,
        }
    }
}

/// A suspect that retains less than this part of all objects is a row, and no conclusion: of a heap that is nearly all
/// garbage, anything is 10 percent of the rest.
const LEAST_PART: u64 = 100;

impl Leaks {
    /// Suspects in which memory accumulates, and that retain enough for a conclusion, by number.
    pub fn accumulations(&self) -> impl Iterator<Item = (usize, &Suspect)> {
        let all = self.suspects.iter().enumerate();
        all.filter(|(_, suspect)| {
            suspect.verdict == Verdict::Accumulation && self.is_large(suspect.retained_bytes)
        })
    }

    /// Suspects that retain enough for a conclusion.
    pub fn large(&self) -> impl Iterator<Item = &Suspect> {
        self.suspects.iter().filter(|suspect| self.is_large(suspect.retained_bytes))
    }

    fn is_large(&self, bytes: u64) -> bool {
        bytes >= self.used_bytes / LEAST_PART
    }

    /// What all conclusions explain; where one is part of another, no more than there is.
    pub fn concluded_bytes(&self) -> u64 {
        let sum = self.conclusions.iter().fold(0, |sum: u64, one| sum.saturating_add(one.retained_bytes));
        sum.min(self.reachable_bytes)
    }

    /// What is concluded from suspects, of which each is of so many places of the dominator tree, and from class loaders.
    /// What loaders of one application retain is one cause, whatever holds each of them; where most of it is in one suspect,
    /// or in loaders that retain more, that says more.
    fn conclude(
        &self,
        graph: &ObjectGraph,
        places: &[Vec<TreePosition>],
        loaders: &Loaders,
    ) -> Vec<Conclusion> {
        let common =
            |some: &[TreePosition], others: &[TreePosition]| loaders::common_bytes(&graph.tree, some, others);
        let mut within: Vec<Vec<TreePosition>> = self
            .accumulations()
            .map(|(at, suspect)| accumulated_at(graph, suspect, places.get(at)))
            .collect();
        let mut explained = Vec::new();
        let mut all = Vec::new();
        for (group, found) in loaders.that_accumulate() {
            let retained_bytes = found.group.retained.bytes;
            let is_within =
                |positions: &Vec<_>| contents::is_most(common(&found.tops, positions), retained_bytes);
            if retained_bytes <= self.threshold_bytes
                || !self.is_large(retained_bytes)
                || within.iter().any(is_within)
            {
                continue;
            }
            let is_part = |(suspect, places): &(&Suspect, &Vec<TreePosition>)| {
                contents::is_most(common(places, &found.tops), suspect.retained_bytes)
            };
            let suspects = self.suspects.iter().zip(places).enumerate();
            let suspects: Vec<usize> =
                suspects.filter(|(_, suspect)| is_part(suspect)).map(|(at, _)| at).collect();
            explained.extend(&suspects);
            within.push(found.tops.clone());
            all.push(Conclusion { cause: Cause::Loaders { group, suspects }, retained_bytes });
        }
        let rest = self.accumulations().filter(|(at, _)| !explained.contains(at));
        all.extend(rest.map(|(at, suspect)| Conclusion {
            cause: Cause::Suspect(at),
            retained_bytes: suspect.explained_bytes(),
        }));
        all.sort_rows_by_key(|one| Reverse(one.retained_bytes));
        all
    }

    /// What retains most. `None` if there is nothing to say: nothing is reachable, or next to nothing beside garbage.
    pub fn largest(&self) -> Option<Largest<'_>> {
        let conclusion = self.conclusions.first().map(Largest::Conclusion);
        let holder = self.large().find(|suspect| suspect.verdict == Verdict::Holder).map(Largest::Holder);
        let rest = self.largest.first().filter(|holder| self.is_large(holder.retained_bytes));
        // Of equal ones the conclusion.
        let all = [rest.map(Largest::NoSuspect), holder, conclusion];
        all.into_iter().flatten().max_by_key(Largest::retained_bytes)
    }

    /// What unreachable objects take, if that is more than reachable ones take.
    pub fn garbage_bytes(&self) -> Option<u64> {
        let garbage = self.used_bytes.saturating_sub(self.reachable_bytes);
        Some(garbage).filter(|garbage| *garbage > self.reachable_bytes)
    }
}

/// A suspect as it is found.
struct Candidate {
    kind: SuspectKind,
    class: Option<ClassNumber>,
    /// The object, or the members, ascending: those that retain most first.
    positions: Vec<TreePosition>,
    retained_bytes: u64,
    shallow_bytes: u64,
    point: Option<ObjectIndex>,
    chain: Option<Chain>,
    common: Option<CommonPath>,
}

/// Finds the suspects, those that retain more than `percent` of the reachable bytes, and the evidence.
///
/// # Errors
/// If there is neither memory nor disk space for a few numbers for each object.
pub fn leaks(heap: &Heap, graph: &ObjectGraph, bytes: &[u8], percent: u64) -> io::Result<Leaks> {
    let threshold_bytes = suspects::threshold(graph, percent);
    let summary = heap.summary();
    let found = suspects::find(summary, graph, threshold_bytes);
    let view = View::new(heap, graph, bytes);
    let common = group_point::common_paths(&view.edges, &found.groups)?;
    let singles = found.singles.iter().map(|position| single(graph, *position));
    let groups = found.groups.into_iter().zip(common).map(|(members, common)| group(graph, members, common));
    let mut candidates: Vec<Candidate> = singles.chain(groups).collect();
    // As MAT has it: of equal ones the last class name and the highest ID come first.
    candidates.sort_rows_by_cached_key(|candidate| {
        let first = candidate.positions.first().and_then(|position| graph.tree.object_at(*position));
        let name = candidate.class.and_then(|class| summary.class(class));
        (
            Reverse(candidate.retained_bytes),
            candidate.kind,
            Reverse(candidate.shallow_bytes),
            Reverse(name.map(|row| summary.class_name(row))),
            Reverse(first),
        )
    });
    let places: Vec<Vec<TreePosition>> =
        candidates.iter().map(|candidate| candidate.positions.clone()).collect();
    let reader = EvidenceReader::new(heap, graph, bytes, view);
    let mut suspects: Vec<Suspect> =
        candidates.into_iter().map(|candidate| reader.suspect(candidate)).collect();
    evidence::relate(&mut suspects);
    let largest = if suspects.is_empty() {
        reader.holders.largest(TOLD_LARGEST, &reader.all_threads)
    } else {
        Vec::new()
    };
    let used_bytes = Unreachable::of(summary, graph).all_bytes;
    let found = Loaders::find(summary, graph)?;
    let mut leaks = Leaks {
        reachable_bytes: graph.tree.reachable_bytes(),
        threshold_bytes,
        suspects,
        loaders: found.told(heap, graph, bytes),
        conclusions: Vec::new(),
        largest,
        used_bytes,
    };
    leaks.conclusions = leaks.conclude(graph, &places, &found);
    Ok(leaks)
}

/// Where a suspect accumulates: the positions of its members, or of what its evidence is of.
fn accumulated_at(
    graph: &ObjectGraph,
    suspect: &Suspect,
    places: Option<&Vec<TreePosition>>,
) -> Vec<TreePosition> {
    let base = || graph.tree.position(graph.objects.addresses.index_of(suspect.base.object)?);
    match suspect.kind {
        SuspectKind::Group => places.cloned().unwrap_or_default(),
        SuspectKind::Single => base().into_iter().collect(),
    }
}

fn single(graph: &ObjectGraph, position: TreePosition) -> Candidate {
    let tree = &graph.tree;
    let point = suspects::accumulation_point(graph, position);
    Candidate {
        kind: SuspectKind::Single,
        class: tree.object_at(position).and_then(|object| graph.objects.class(object)),
        positions: vec![position],
        retained_bytes: tree.retained_bytes(position),
        shallow_bytes: tree.shallow_bytes(position),
        point: point.position.and_then(|position| tree.object_at(position)),
        chain: point.chain,
        common: None,
    }
}

fn group(graph: &ObjectGraph, group: CandidateGroup, common: CommonPath) -> Candidate {
    let shallow = group.members.iter().map(|position| graph.tree.shallow_bytes(*position));
    Candidate {
        kind: SuspectKind::Group,
        class: Some(group.class),
        retained_bytes: group.retained_bytes,
        shallow_bytes: shallow.fold(0, u64::saturating_add),
        positions: group.members,
        point: common.objects.last().copied().filter(|_| common.has_point),
        chain: None,
        common: Some(common),
    }
}
