//! Leak suspects: objects that retain so much of the heap that they may be a leak, the objects where their memory
//! accumulates, and a verdict.
//!
//! Suspects and accumulation points are those of Eclipse MAT's report (`FindLeaksQuery`, `LeakHunterQuery`), with exact
//! sizes and over all members of a group; docs/mat.md lists the differences. MAT calls every object over the threshold
//! a suspect. Here each has a verdict, since most programs have a class loader or a class that retains most of their
//! heap.

pub mod allocated_in;
pub mod allocation;
pub mod contents;
pub mod evidence;
pub mod heap_places;
pub mod holders;
pub mod loader_holders;
pub mod loaders;
pub mod off_heap;
pub mod thread_locals;

mod below;
pub mod collection;
mod conclusions;
mod containers;
mod facts;
mod fixed_buffers;
mod group_point;
mod judgement;
mod nodes;
mod other_holders;
mod positions;
mod program_containers;
mod reader;
mod side_tables;
mod suspects;

use std::cmp::Reverse;
use std::io;

use crate::containers::Container;
use crate::waste::estimate::{WastedPart, most_wasted};
use hprof_base::sorting::SortRows;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::ClassNumber;
use hprof_index::{Dump, ObjectGraph};
use hprof_model::dump::unreachable::Unreachable;
use hprof_model::paths::steps::View;
use hprof_model::threads::frames::Frame;
use hprof_values::ObjectId;

use crate::frameworks::FrameworkDescription;

use self::allocated_in::AllocatedIn;
use self::allocation::Allocation;
use self::below::{Store, Suspects};
use self::collection::CollectionFacts;
use self::contents::{ContentsLevel, Reason};
use self::evidence::{ClassShare, Paths, RetainedPart};
use self::group_point::CommonPath;
use self::heap_places::HeapPlaces;
use self::holders::Holder;
use self::judgement::LeakJudge;
use self::loaders::{LoaderGroup, Loaders};
use self::off_heap::{OffHeap, OffHeapUse};
use self::reader::EvidenceReader;
use self::suspects::{CandidateGroup, Chain};
use self::thread_locals::ThreadLocalUse;

pub use self::conclusions::{Cause, Conclusion, LargestFinding};
pub use self::judgement::NO_BOUND;
pub(crate) use self::judgement::heap_limit;

/// Default threshold: percentage of the reachable heap that a suspect must exceed, as in MAT's report.
pub const DEFAULT_THRESHOLD: u8 = 10;

/// Maximum number of members of a group that are reported, largest retained size first.
const TOLD_MEMBERS: usize = 10;

/// Number of rows for the largest holders if nothing is suspect.
const TOLD_LARGEST: usize = 5;

/// Kind of a suspect: one object or a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SuspectKind {
    /// One object.
    Single,
    /// Objects of one class that only the roots dominate.
    Group,
}

impl SuspectKind {
    /// Returns the name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Group => "group",
        }
    }
}

/// Kind of object that a suspect is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuspectSubject {
    /// An object that is not a class object, class loader or thread.
    Instance,
    /// One or several class objects.
    Class,
    /// One or several class loaders.
    ClassLoader,
    /// One or several threads.
    Thread,
}

impl SuspectSubject {
    /// Returns the name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::Class => "class",
            Self::ClassLoader => "class_loader",
            Self::Thread => "thread",
        }
    }
}

/// Rule by which a suspect was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuspectRule {
    /// One of Eclipse MAT's rules: an object that only GC roots dominate, or several such objects of a class.
    Mat,
    /// A store within a holder.
    Below,
    /// A framework's rule, which reports a leak.
    Framework,
    /// Memory outside of the heap.
    OffHeap,
    /// Class loaders of one application, whatever holds each of them.
    Loaders,
}

impl SuspectRule {
    /// Returns the name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mat => "mat",
            Self::Below => "below",
            Self::Framework => "framework",
            Self::OffHeap => "off_heap",
            Self::Loaders => "loaders",
        }
    }
}

/// Verdict on a suspect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeakVerdict {
    /// Memory accumulates: most of it is in the elements of a container, many children of one class, one chain, one buffer, or
    /// many similar threads or loaders, and nothing bounds it; or a queue is filled to its bound.
    Accumulation,
    /// The object merely holds parts of different kinds.
    Holder,
    /// Memory that the program is meant to hold: a table, or a cache within its bound.
    Content,
    /// Memory that a running thread works on.
    InProgress,
    /// Memory that the JVM and its libraries have in an idle program as well.
    Platform,
    /// Memory that is mostly waste and does not grow.
    Waste,
}

impl LeakVerdict {
    /// Returns the name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accumulation => "accumulation",
            Self::Holder => "holder",
            Self::Content => "content",
            Self::InProgress => "in_progress",
            Self::Platform => "platform",
            Self::Waste => "waste",
        }
    }
}

/// An object, with class and label.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedObject {
    /// Object ID.
    pub object: ObjectId,
    /// Class of the object; for a class object, the represented class. `None` if the class is not in the dump.
    pub class: Option<String>,
    /// `true` for a class object.
    pub is_class_object: bool,
    /// Short text that identifies the object.
    pub label: Option<String>,
    /// Retained size in bytes.
    pub retained_bytes: u64,
}

/// An object that holds the accumulated objects as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherHolder {
    /// Name of the object by a framework's rule.
    pub called: Option<String>,
    /// Description of the object, if it has no such name.
    pub holder: Holder,
}

/// An entry of a map on the path to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapEntry {
    /// Text of the key.
    pub key: String,
    /// Place of the map.
    pub map: Holder,
    /// Name of the thread at which the path starts, if it holds the map by its stack.
    pub thread: Option<String>,
}

/// Amount of evidence that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeakEvidence {
    /// Only the evidence that is needed for sentences.
    Sentences,
    /// All evidence, including the classes of all objects that each suspect retains.
    All,
}

/// Many objects that share a name by a framework's rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedElements {
    /// Plural name: `coroutines in OrderService.price`.
    pub name: String,
    /// Number of objects.
    pub objects: u64,
}

/// A leak suspect, with the evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspect {
    /// Rule by which it was found.
    pub rule: SuspectRule,
    /// For a judgement of a suspect found by MAT's rules: the number of that suspect.
    pub of_mat: Option<usize>,
    /// One object, or a group.
    pub kind: SuspectKind,
    /// Kind of object that the suspect is.
    pub what: SuspectSubject,
    /// Verdict on the suspect.
    pub verdict: LeakVerdict,
    /// The object; for a group, the member with the largest retained size.
    pub object: NamedObject,
    /// Number of objects.
    pub objects: u64,
    /// Shallow size in bytes.
    pub shallow_bytes: u64,
    /// Retained size in bytes.
    pub retained_bytes: u64,
    /// Members of a group, largest retained size first; empty for a single suspect.
    pub members: Vec<NamedObject>,
    /// Class of the members of a group.
    pub group_class: Option<String>,
    /// Loader of the object's class; for a class object, the loader of the represented class. 0 is the boot loader.
    pub loader: ObjectId,
    /// Accumulation point, if there is one.
    pub point: Option<NamedObject>,
    /// Object that the evidence is about: the accumulation point, or the first link of the chain that leads there; for a group,
    /// its accumulation point or the member with the largest retained size.
    pub base: NamedObject,
    /// Size retained by the accumulation point, by the chain that leads to it, or by the group.
    pub accumulated_bytes: u64,
    /// Form of accumulation; `None` if memory does not accumulate.
    pub reason: Option<Reason>,
    /// Recognizable place of the accumulation point: the collection that it is a part of, and the field that holds the
    /// collection.
    pub place: Option<Holder>,
    /// The map entry that contains a buffer.
    pub entry: Option<MapEntry>,
    /// Name that the program gave to the suspect, if there is one.
    pub named: Option<String>,
    /// The accumulated objects, if a framework's rule names them.
    pub elements: Option<NamedElements>,
    /// Description by a framework's rule.
    pub framework: Option<FrameworkDescription>,
    /// Other holders of the accumulated objects, with their names by frameworks' rules.
    pub also_held_by: Vec<OtherHolder>,
    /// Largest parts of the retained size, if the suspect is a holder.
    pub parts: Vec<RetainedPart>,
    /// Levels in which memory accumulates, from the accumulation point down.
    pub accumulated: Vec<ContentsLevel>,
    /// Allocation site of the accumulated objects, if the dump has traces.
    pub allocation: Option<Allocation>,
    /// Lines that allocated the accumulated objects, if there is a recording of Flight Recorder.
    pub allocated_in: Option<AllocatedIn>,
    /// Classes whose objects take up most of the retained size.
    pub contents: Vec<ClassShare>,
    /// Shortest path to the accumulation point, and facts about the other paths to it.
    pub paths: Option<Paths>,
    /// Collection that the accumulation point belongs to.
    pub collection: Option<CollectionFacts>,
    /// ThreadLocals whose values the suspect's threads hold, largest retained size first.
    pub thread_locals: Vec<ThreadLocalUse>,
    /// Innermost non-JDK frame of the thread with the largest retained size.
    pub frame: Option<Frame>,
    /// `true` if the suspect is or includes the thread that ran out of memory.
    pub is_oom_thread: bool,
    /// `true` if soft references keep the accumulated memory alive, or hold most of it: the JVM may clear them.
    pub is_behind_soft: bool,
    /// Evidence for the verdict.
    pub evidence: Vec<String>,
    /// Memory outside of the heap, if the suspect is about it.
    pub off_heap: Option<OffHeapUse>,
    /// Number of the group of class loaders, if the suspect is such a group.
    pub loader_group: Option<usize>,
    /// The container in which memory accumulates.
    pub container: Option<Container>,
    /// Verdict by MAT's rules alone, for suspects found by MAT's rules, which miss containers with elements of several classes.
    pub mat_verdict: Option<LeakVerdict>,
    /// Waste of one kind that makes up at least half of a store within a holder.
    pub wasted: Option<WastedPart>,
    /// Numbers of the holders found by MAT's rules most of which the suspect explains.
    pub covers: Vec<usize>,
    /// Numbers of other suspects whose paths share a prefix with the path of this one.
    pub related: Vec<usize>,
}

impl Suspect {
    /// Returns the ThreadLocal whose values are most of the memory, if there is one.
    pub fn main_thread_local(&self) -> Option<&ThreadLocalUse> {
        let first = self.thread_locals.first()?;
        first.is_most_of(self.retained_bytes).then_some(first)
    }

    /// Returns our verdict; `None` for suspects found by MAT's rules, since our judgement of them is in separate rows.
    pub fn own_verdict(&self) -> Option<LeakVerdict> {
        (self.rule != SuspectRule::Mat).then_some(self.verdict)
    }

    /// Returns whether the suspect has to be judged, because memory accumulates in it according to our verdict.
    fn is_judged(&self) -> bool {
        self.own_verdict() == Some(LeakVerdict::Accumulation)
    }

    /// Returns whether the suspect was found by MAT's rules, or judges one that was.
    pub fn is_by_mat(&self) -> bool {
        self.rule == SuspectRule::Mat || self.of_mat.is_some()
    }

    /// Returns whether another row covers the suspect: our judgement of a suspect found by MAT's rules.
    pub fn has_judgement_row(&self) -> bool {
        self.rule == SuspectRule::Mat && self.verdict != LeakVerdict::Holder
    }

    /// Returns the size that the suspect's sentence explains: the size of the ThreadLocal's values, of the threads, or else of
    /// the accumulated objects.
    pub fn explained_bytes(&self) -> u64 {
        if let Some(off_heap) = &self.off_heap {
            return off_heap.buffers.bytes;
        }
        match (self.main_thread_local(), &self.reason) {
            _ if self.verdict == LeakVerdict::Holder => self.retained_bytes,
            (Some(local), _) => local.retained_bytes,
            (None, Some(Reason::Threads { retained_bytes, .. })) => *retained_bytes,
            (None, _) => match self.explained_container() {
                Some(container) => container.retained_bytes,
                None => self.accumulated_bytes,
            },
        }
    }

    /// Returns the container whose elements the suspect's sentence names. `None` if another sentence applies: for threads,
    /// loaders, buffers, and objects that a framework's rule names or calls a leak.
    pub fn explained_container(&self) -> Option<&Container> {
        let is_told = matches!(self.reason, Some(Reason::Children { .. } | Reason::Chain { .. }))
            && self.rule != SuspectRule::Framework
            && self.elements.is_none()
            && self.main_thread_local().is_none();
        self.container.as_ref().filter(|_| is_told)
    }
}

/// Result of the search for leak suspects.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Leaks {
    /// Shallow size of all reachable objects.
    pub reachable_bytes: u64,
    /// Size that a suspect must exceed.
    pub threshold_bytes: u64,
    /// Suspects: first those found by MAT's rules, largest retained size first, then all others.
    pub suspects: Vec<Suspect>,
    /// Applications whose classes several loaders define, largest retained size first.
    pub loaders: Vec<LoaderGroup>,
    /// Conclusions: memory outside of the heap first, then by retained size of the cause, largest first.
    pub conclusions: Vec<Conclusion>,
    /// Largest holders of the heap, if nothing is suspect.
    pub largest: Vec<Holder>,
    /// Retained size of the largest place that explains the heap.
    pub largest_place_bytes: u64,
    /// By place that explains the heap: number of the suspect that explains the place's objects.
    pub suspect_of_place: Vec<Option<usize>>,
    /// Size that all conclusions explain together; memory that several explain counts once.
    pub concluded_bytes: u64,
    /// Shallow size of all objects, including unreachable ones.
    pub used_bytes: u64,
    /// `true` if the dump lacks kinds of GC roots, so that unreachable objects may be alive.
    pub lacks_roots: bool,
    /// Memory outside of the heap.
    pub off_heap: OffHeap,
    /// Positions of the objects of each suspect.
    positions: Vec<Vec<TreePosition>>,
}

/// A suspect before its evidence is read.
struct SuspectCandidate {
    kind: SuspectKind,
    class: Option<ClassNumber>,
    /// Position of the object, or positions of the members in ascending order, which is by retained size, largest first.
    positions: Vec<TreePosition>,
    retained_bytes: u64,
    shallow_bytes: u64,
    point: Option<ObjectIndex>,
    chain: Option<Chain>,
    common: Option<CommonPath>,
    /// The store, if the candidate is within a holder.
    store: Option<Store>,
}

/// Finds the suspects, which retain more than `percent` percent of the reachable bytes, and reads their evidence.
///
/// # Errors
/// If neither memory nor disk has space for a few numbers per object.
pub fn leaks(dump: &Dump<'_>, percent: u8, places: &HeapPlaces, evidence: LeakEvidence) -> io::Result<Leaks> {
    let threshold_bytes = suspects::threshold(dump.graph, percent.into());
    let summary = dump.summary;
    let found = suspects::find(dump, threshold_bytes);
    let view = View::new(dump);
    let common = group_point::common_paths(&view.edges, &found.groups)?;
    let singles = found.singles.iter().map(|position| single(dump.graph, *position));
    let groups = found
        .groups
        .into_iter()
        .zip(common)
        .map(|(members, common)| group_candidate(dump.graph, members, common));
    let mut candidates: Vec<SuspectCandidate> = singles.chain(groups).collect();
    // Same order as in MAT: of equal suspects, the last class name and the highest ID come first.
    candidates.sort_rows_by_cached_key(|candidate| {
        let first = candidate.positions.first().and_then(|position| dump.graph.tree.object_at(*position));
        let name = candidate.class.and_then(|class| summary.class(class));
        (
            Reverse(candidate.retained_bytes),
            candidate.kind,
            Reverse(candidate.shallow_bytes),
            Reverse(name.map(|row| summary.class_name(row))),
            Reverse(first),
        )
    });
    let reader = EvidenceReader::new(dump, view, evidence);
    let mut all = Suspects::default();
    for candidate in candidates {
        let positions = candidate.positions.clone();
        all.push(reader.suspect(candidate), positions);
    }
    all.find_containers(dump.graph, &reader, places);
    all.describe(dump, &reader, places);
    all.add_below(dump.graph, &reader, places, threshold_bytes);
    all.add_program_containers(dump.graph, &reader, places, threshold_bytes);
    for (row, positions) in all.rows.iter_mut().zip(&all.positions) {
        let is_plain = row.rule == SuspectRule::Below && row.framework.is_none();
        if is_plain && row.verdict == LeakVerdict::Accumulation {
            let wasted = most_wasted(dump, positions)?;
            row.wasted = wasted.filter(|part| part.bytes >= part.of_bytes / 2);
        }
    }
    add_judgements(dump.graph, &mut all.rows, &mut all.positions, &mut all.of_places);
    all.prefer_containers(&reader, places);
    let judge = LeakJudge::new(summary, &reader);
    for (row, positions) in all.rows.iter_mut().zip(&all.positions).filter(|(row, _)| row.is_judged()) {
        judge.judge(row, positions);
    }
    let Suspects { mut rows, mut positions, of_places, .. } = all;
    evidence::relate(&mut rows);
    let off_heap = off_heap::off_heap(dump);
    if let Some((row, own)) = off_heap_suspect(dump.graph, &off_heap, &reader) {
        rows.push(row);
        positions.push(own);
    }
    let largest = if rows.iter().all(|row| row.off_heap.is_some()) {
        reader.holders.largest(TOLD_LARGEST, &reader.all_threads)
    } else {
        Vec::new()
    };
    let used_bytes = Unreachable::new(summary, dump.graph).all_bytes;
    let found = Loaders::find(dump)?;
    let mut leaks = Leaks {
        reachable_bytes: dump.graph.tree.reachable_bytes(),
        threshold_bytes,
        suspects: rows,
        loaders: found.report_rows(dump, &reader.evidence.view, places)?,
        conclusions: Vec::new(),
        largest,
        largest_place_bytes: places.explained.largest_bytes(),
        suspect_of_place: of_places,
        concluded_bytes: 0,
        used_bytes,
        lacks_roots: summary.lacks_roots(),
        off_heap,
        positions: Vec::new(),
    };
    let mut causes = Vec::new();
    for (group, suspects) in leaks.loader_causes(dump.graph, &positions, &found) {
        let (Some(told), Some(of)) = (leaks.loaders.get(group), found.get(group)) else { continue };
        let row = told.suspect(group, of, &reader);
        causes.push(Cause::Loaders { group, row: leaks.suspects.len(), suspects });
        leaks.suspects.push(row);
        positions.push(of.tops.clone());
    }
    let side_tables = side_tables::side_tables(&reader, &leaks.suspects, &found);
    let (conclusions, concluded_bytes) =
        leaks.conclude(dump.graph, &positions, (&found, causes), &side_tables);
    (leaks.conclusions, leaks.concluded_bytes) = (conclusions, concluded_bytes);
    leaks.positions = positions;
    Ok(leaks)
}

/// Adds a row with our judgement for each suspect found by MAT's rules that is more than a holder: the original rows show only
/// MAT's result.
fn add_judgements(
    graph: &ObjectGraph,
    rows: &mut Vec<Suspect>,
    positions: &mut Vec<Vec<TreePosition>>,
    of_places: &mut [Option<usize>],
) {
    for at in 0..rows.len() {
        let judged = rows.get(at).filter(|row| row.has_judgement_row()).cloned();
        let (Some(judged), Some(own)) = (judged, positions.get(at)) else { continue };
        let own = positions::accumulated_at(graph, &judged, own);
        for place in of_places.iter_mut().filter(|place| **place == Some(at)) {
            *place = Some(rows.len());
        }
        rows.push(Suspect { rule: SuspectRule::Below, of_mat: Some(at), mat_verdict: None, ..judged });
        positions.push(own);
    }
}

/// Returns the suspect for memory outside of the heap, with the position of the largest buffer.
fn off_heap_suspect(
    graph: &ObjectGraph,
    off_heap: &OffHeap,
    reader: &EvidenceReader<'_>,
) -> Option<(Suspect, Vec<TreePosition>)> {
    let (found, largest, evidence) = off_heap::suspect(&reader.dump.objects, off_heap)?;
    let position = graph.tree.reachable_position(largest)?;
    let row = reader.suspect(single(graph, position));
    let row = Suspect {
        rule: SuspectRule::OffHeap,
        verdict: LeakVerdict::Accumulation,
        mat_verdict: None,
        reason: None,
        evidence,
        off_heap: Some(found),
        ..row
    };
    Some((row, vec![position]))
}

fn single(graph: &ObjectGraph, position: TreePosition) -> SuspectCandidate {
    let tree = &graph.tree;
    let point = suspects::accumulation_point(graph, position);
    SuspectCandidate {
        kind: SuspectKind::Single,
        class: tree.object_at(position).and_then(|object| graph.objects.class(object)),
        positions: vec![position],
        retained_bytes: tree.retained_bytes(position),
        shallow_bytes: tree.shallow_bytes(position),
        point: point.position.and_then(|position| tree.object_at(position)),
        chain: point.chain,
        common: None,
        store: None,
    }
}

fn group_candidate(graph: &ObjectGraph, group: CandidateGroup, common: CommonPath) -> SuspectCandidate {
    let shallow = group.members.iter().map(|position| graph.tree.shallow_bytes(*position));
    SuspectCandidate {
        kind: SuspectKind::Group,
        class: Some(group.class),
        retained_bytes: group.retained_bytes,
        shallow_bytes: shallow.fold(0, u64::saturating_add),
        positions: group.members,
        point: common.objects.last().copied().filter(|_| common.has_point),
        chain: None,
        common: Some(common),
        store: None,
    }
}
