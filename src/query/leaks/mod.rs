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
pub mod off_heap;
pub mod thread_locals;

mod collection;
mod group_point;
mod suspects;

use std::cmp::Reverse;
use std::io;

use rustc_hash::FxHashSet;

use crate::dominators::class_counts;
use crate::dump::unreachable::Unreachable;
use crate::objects::class_set::ClassSet;
use crate::paths::steps::View;
use crate::sorting::SortRows;
use crate::threads::Threads;
use crate::threads::frames::Frame;
use crate::threads::groups::pool;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::model::tables::ClassKind;
use hprof_index::{Heap, ObjectGraph};
use hprof_parser::{ObjectId, names};

use self::allocation::Allocation;
use self::collection::CollectionFacts;
use self::contents::{Below, Level, Reason};
use self::evidence::{ClassShare, Evidence, Part, Paths};
use self::group_point::CommonPath;
use self::holders::{Holder, Holders};
use self::suspects::{Chain, Group};
use self::thread_locals::{ThreadLocalUse, ThreadLocals};

/// Percent of the reachable heap that a suspect retains more than when nothing is said, as in MAT's report.
pub const DEFAULT_THRESHOLD: u8 = 10;

/// Members of a group that are told, those that retain most.
const TOLD_MEMBERS: usize = 10;

/// What holds most, so many rows, where nothing is suspect.
const TOLD_LARGEST: usize = 5;

/// Frames of a thread that are looked at.
const MAX_FRAMES: usize = 1000;

/// Whether a suspect is one object or several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// One object.
    Single,
    /// Objects of one class that only the roots dominate.
    Group,
}

impl Kind {
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
pub enum What {
    /// An object that is none of the others.
    Instance,
    /// A class object, or several.
    Class,
    /// A class loader, or several.
    ClassLoader,
    /// A thread, or several.
    Thread,
}

impl What {
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
pub struct Named {
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
    pub kind: Kind,
    /// What it is.
    pub what: What,
    /// Whether memory accumulates there.
    pub verdict: Verdict,
    /// The object; of a group the member that retains most.
    pub object: Named,
    /// How many objects.
    pub objects: u64,
    /// What they take themselves.
    pub shallow_bytes: u64,
    /// What they retain.
    pub retained_bytes: u64,
    /// Members of a group, those that retain most; of a single suspect nothing.
    pub members: Vec<Named>,
    /// The class of the members of a group.
    pub group_class: Option<String>,
    /// The loader of the class: of the class itself, of a class object. 0 is the boot loader.
    pub loader: ObjectId,
    /// The accumulation point.
    pub point: Option<Named>,
    /// What the evidence is of: the accumulation point, the first link of the chain that leads there; of a group its point,
    /// or the member that retains most.
    pub base: Named,
    /// What is retained there: by the accumulation point, by the chain that leads to it, or by the group.
    pub accumulated_bytes: u64,
    /// How it accumulates, if it does.
    pub reason: Option<Reason>,
    /// What the accumulation point is known by: the collection that it is a part of, and the field that holds it.
    pub place: Option<Holder>,
    /// What a holder retains, the largest parts.
    pub parts: Vec<Part>,
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

/// The suspects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leaks {
    /// What all reachable objects take.
    pub reachable_bytes: u64,
    /// What a suspect retains more than.
    pub threshold_bytes: u64,
    /// Those that retain most first.
    pub suspects: Vec<Suspect>,
    /// What holds most, if nothing is suspect.
    pub largest: Vec<Holder>,
    /// What all objects take, also those that are unreachable.
    pub used_bytes: u64,
}

/// A suspect that retains less than this part of all objects is a row, and no conclusion: of a heap that is nearly all
/// garbage, anything is 10 percent of the rest.
const LEAST_PART: u64 = 100;

impl Leaks {
    /// What is concluded: suspects in which memory accumulates. Those that retain most first.
    pub fn accumulations(&self) -> impl Iterator<Item = &Suspect> {
        self.large().filter(|suspect| suspect.verdict == Verdict::Accumulation)
    }

    /// Suspects that retain enough for a conclusion.
    pub fn large(&self) -> impl Iterator<Item = &Suspect> {
        let least = self.used_bytes / LEAST_PART;
        self.suspects.iter().filter(move |suspect| suspect.retained_bytes >= least)
    }

    /// What unreachable objects take, if that is more than reachable ones take.
    pub fn garbage_bytes(&self) -> Option<u64> {
        let garbage = self.used_bytes.saturating_sub(self.reachable_bytes);
        Some(garbage).filter(|garbage| *garbage > self.reachable_bytes)
    }
}

/// A suspect as it is found.
struct Candidate {
    kind: Kind,
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
    leaks_above(heap, graph, bytes, suspects::threshold(graph, percent))
}

/// The same of those that retain more than so many bytes.
///
/// # Errors
/// As [`leaks`].
pub fn leaks_above(
    heap: &Heap,
    graph: &ObjectGraph,
    bytes: &[u8],
    threshold_bytes: u64,
) -> io::Result<Leaks> {
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
    let reader = Reader::new(heap, graph, bytes, view);
    let mut suspects: Vec<Suspect> =
        candidates.into_iter().map(|candidate| reader.suspect(candidate)).collect();
    for suspect in &mut suspects {
        suspect.is_behind_soft = reader.is_behind_soft(suspect);
    }
    evidence::relate(&mut suspects);
    let largest = if suspects.is_empty() { reader.holders.largest(TOLD_LARGEST) } else { Vec::new() };
    let used_bytes = Unreachable::of(summary, graph).all_bytes;
    Ok(Leaks {
        reachable_bytes: graph.tree.reachable_bytes(),
        threshold_bytes,
        suspects,
        largest,
        used_bytes,
    })
}

/// What retains most of what could be a suspect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Largest {
    /// One object, or the objects of a class.
    pub kind: Kind,
    /// The class, if it is known.
    pub class: Option<String>,
    /// The object, if it is one.
    pub object: Option<ObjectId>,
    /// What it retains.
    pub retained_bytes: u64,
}

/// The largest suspect above a threshold, by the rules of [`leaks`] but without evidence; if nothing is above it, what
/// retains most. `None` if nothing is reachable.
pub fn largest(summary: &Summary, graph: &ObjectGraph, threshold_bytes: u64) -> Option<Largest> {
    let tops = suspects::tops(summary, graph, threshold_bytes);
    let name = |class: ClassNumber| summary.class(class).map(|class| summary.class_name(class).to_owned());
    let group = tops.rest.iter().filter(|(_, bytes)| **bytes > 0);
    let group = group.map(|(class, bytes)| (*bytes, Reverse(*class))).max();
    let single = tops.singles.first().map(|position| (graph.tree.retained_bytes(*position), *position));
    match (single, group) {
        (Some((bytes, position)), group) if group.is_none_or(|(of_group, _)| of_group <= bytes) => {
            let object = graph.tree.object_at(position);
            Some(Largest {
                kind: Kind::Single,
                class: object.and_then(|object| graph.objects.class(object)).and_then(name),
                object: object.and_then(|object| graph.objects.addresses.id_of(object)),
                retained_bytes: bytes,
            })
        }
        (_, Some((retained_bytes, Reverse(class)))) => {
            Some(Largest { kind: Kind::Group, class: name(class), object: None, retained_bytes })
        }
        (_, None) => None,
    }
}

fn single(graph: &ObjectGraph, position: TreePosition) -> Candidate {
    let tree = &graph.tree;
    let point = suspects::accumulation_point(graph, position);
    Candidate {
        kind: Kind::Single,
        class: tree.object_at(position).and_then(|object| graph.objects.class(object)),
        positions: vec![position],
        retained_bytes: tree.retained_bytes(position),
        shallow_bytes: tree.shallow_bytes(position),
        point: point.position.and_then(|position| tree.object_at(position)),
        chain: point.chain,
        common: None,
    }
}

fn group(graph: &ObjectGraph, group: Group, common: CommonPath) -> Candidate {
    let shallow = group.members.iter().map(|position| graph.tree.shallow_bytes(*position));
    Candidate {
        kind: Kind::Group,
        class: Some(group.class),
        retained_bytes: group.retained_bytes,
        shallow_bytes: shallow.fold(0, u64::saturating_add),
        positions: group.members,
        point: common.objects.last().copied().filter(|_| common.has_point),
        chain: None,
        common: Some(common),
    }
}

/// Reads the evidence.
struct Reader<'a> {
    summary: &'a Summary,
    graph: &'a ObjectGraph,
    bytes: &'a [u8],
    evidence: Evidence<'a>,
    holders: Holders<'a>,
    thread_locals: ThreadLocals<'a>,
    threads: ClassSet,
    loaders: ClassSet,
    all_threads: Threads<'a>,
    /// The names of SoftReference and its subclasses.
    soft: FxHashSet<&'a str>,
}

impl<'a> Reader<'a> {
    fn new(heap: &'a Heap, graph: &'a ObjectGraph, bytes: &'a [u8], view: View<'a>) -> Self {
        let summary = heap.summary();
        Self {
            summary,
            graph,
            bytes,
            evidence: Evidence::new(summary, graph, bytes, view),
            holders: Holders::new(heap, graph, bytes),
            thread_locals: ThreadLocals::new(heap, graph, bytes),
            threads: ClassSet::of_name_and_below(summary, "java.lang.Thread"),
            loaders: ClassSet::of_name_and_below(summary, "java.lang.ClassLoader"),
            all_threads: Threads::new(heap, graph, bytes),
            soft: {
                let soft = ClassSet::of_name_and_below(summary, "java.lang.ref.SoftReference");
                let classes = summary.numbered_classes().filter(|(number, _)| soft.contains(*number));
                classes.map(|(_, class)| summary.class_name(class)).collect()
            },
        }
    }

    fn what(&self, class: Option<ClassNumber>) -> What {
        match class {
            Some(class) if Some(class) == self.summary.java_lang_class() => What::Class,
            Some(class) if self.threads.contains(class) => What::Thread,
            Some(class) if self.loaders.contains(class) => What::ClassLoader,
            _ => What::Instance,
        }
    }

    fn suspect(&self, candidate: Candidate) -> Suspect {
        let tree = &self.graph.tree;
        let Candidate { kind, class, positions, retained_bytes, shallow_bytes, point, chain, common } =
            candidate;
        let what = self.what(class);
        let first = positions.first().copied().unwrap_or_default();
        let object = tree.object_at(first).unwrap_or_default();
        let point_position = point.and_then(|point| tree.reachable_position(point));
        // What the evidence is of: the accumulation point, the chain that leads there, or the group itself.
        let base = chain.map(|chain| chain.first).or(point_position);
        let base = base.map(|base| self.top_of_nodes(base));
        let tops: Vec<TreePosition> = match kind {
            Kind::Single => vec![base.unwrap_or(first)],
            Kind::Group => positions.clone(),
        };
        let base_position = tops.first().copied().unwrap_or(first);
        // By kinds of children if there is no chain. The tree below is looked at only where something accumulates: that
        // takes a pass over all of it.
        let kinds = || contents::child_kinds(self.summary, self.graph, &tops);
        let (mut below, mut children) = (None, Vec::new());
        let reason = match (kind, chain) {
            (Kind::Group, _) => {
                self.reason_of_group(what, class, &positions, retained_bytes, point.is_some())
            }
            (Kind::Single, Some(chain)) => {
                let found = Below::new(self.summary, self.graph, &tops);
                let class = tree.object_at(chain.first).and_then(|object| self.graph.objects.class(object));
                let reason = class.and_then(|class| found.chain(self.class_name(class), chain.links.into()));
                below = Some(found);
                reason
            }
            (Kind::Single, None) => {
                children = kinds();
                let class = tree.object_at(base_position).and_then(|object| self.graph.objects.class(object));
                if children.first().is_some_and(|kind| kind.is_of(class)) {
                    let found = Below::new(self.summary, self.graph, &tops);
                    children = found.kinds();
                    below = Some(found);
                }
                let tree = below.as_ref().and_then(Below::tree);
                tree.or_else(|| contents::reason(self.summary, self.graph, base_position, &children))
            }
        };
        if reason.is_none() && children.is_empty() {
            children = kinds();
        }
        if reason.is_some() && below.is_none() {
            below = Some(Below::new(self.summary, self.graph, &tops));
        }
        let accumulated = below.map(|below| below.accumulated()).unwrap_or_default();
        let verdict = if reason.is_some() { Verdict::Accumulation } else { Verdict::Holder };
        let shown = match kind {
            Kind::Single => base.and_then(|position| tree.object_at(position)).or(Some(object)),
            Kind::Group => point,
        };
        let place = shown.map(|object| self.holders.place(object));
        let is_oom = |position: &TreePosition| {
            let object = tree.object_at(*position);
            object.is_some_and(|object| self.all_threads.is_out_of_memory(object))
        };
        let members = match kind {
            Kind::Single => Vec::new(),
            Kind::Group => self.named_all(positions.iter().take(TOLD_MEMBERS)),
        };
        let thread_locals = if what == What::Thread { self.thread_locals.of(&positions) } else { Vec::new() };
        let paths = match &common {
            Some(common) if !common.objects.is_empty() => {
                let mut paths = self.evidence.along(&common.objects, common.is_weak);
                // What members have in common may end before the soft reference.
                if common.is_weak && !paths.is_soft {
                    paths.is_soft = self.evidence.paths(object).is_some_and(|paths| paths.is_soft);
                }
                Some(paths)
            }
            _ => {
                // What most threads keep under a ThreadLocal is more to the point than a thread.
                let local = thread_locals.first().filter(|local| local.is_most_of(retained_bytes));
                let value = local.and_then(|local| local.largest);
                value.or(shown).or(Some(object)).and_then(|object| self.evidence.paths(object))
            }
        };
        let (parts, contents) = match (verdict, kind) {
            (Verdict::Holder, Kind::Single) => self.evidence.parts(&self.holders, base_position, &children),
            (Verdict::Holder, Kind::Group) => (evidence::kinds(&children), None),
            (Verdict::Accumulation, _) => (Vec::new(), None),
        };
        Suspect {
            kind,
            what,
            verdict,
            object: self.evidence.named(object),
            objects: positions.len() as u64,
            shallow_bytes,
            retained_bytes,
            members,
            group_class: class.filter(|_| kind == Kind::Group).map(|class| self.class_name(class).to_owned()),
            loader: self.evidence.loader(object),
            point: point.map(|point| self.evidence.named(point)),
            base: self.evidence.named(shown.unwrap_or(object)),
            collection: place.as_ref().and_then(|place| self.evidence.collection(place)),
            parts,
            accumulated_bytes: match kind {
                Kind::Single => tree.retained_bytes(base_position),
                Kind::Group => retained_bytes,
            },
            allocation: allocation::find(self.summary, self.graph, self.bytes, &tops, &accumulated),
            accumulated,
            contents: contents.unwrap_or_else(|| self.contents(&tops)),
            thread_locals,
            frame: if what == What::Thread { self.frame(object) } else { None },
            is_oom_thread: what == What::Thread && positions.iter().any(is_oom),
            reason,
            place,
            paths,
            is_behind_soft: false,
            related: Vec::new(),
        }
    }

    /// The first of the nodes of a tree or a list that dominate one another down to this one: a subtree that retains most of
    /// the tree is no place that anybody knows. What refers to its like and is no node stays: loaders, threads.
    fn top_of_nodes(&self, position: TreePosition) -> TreePosition {
        let (tree, objects) = (&self.graph.tree, &self.graph.objects);
        let class = |position| tree.object_at(position).and_then(|object| objects.class(object));
        let own = class(position);
        let is_instance =
            own.and_then(|own| self.summary.class(own)).is_some_and(|row| row.kind() == ClassKind::Instance);
        if !is_instance || self.what(own) != What::Instance {
            return position;
        }
        let above = std::iter::successors(Some(position), |at| {
            tree.dominator(*at).filter(|above| class(*above) == own)
        });
        above.last().unwrap_or(position)
    }

    /// Whether the JVM may clear what accumulates: soft references are on its path, or most of it is below such.
    fn is_behind_soft(&self, suspect: &Suspect) -> bool {
        let is_soft = |class: &str| self.soft.contains(class);
        let most = suspect.accumulated_bytes / 2;
        let below = suspect.accumulated.iter().filter(|level| level.retained_bytes > most);
        let is_below = below.into_iter().any(|level| !level.is_class_object && is_soft(&level.class));
        is_below || suspect.paths.as_ref().is_some_and(|paths| paths.is_soft)
    }

    /// The innermost frame of a thread that is not the JDK's.
    fn frame(&self, thread: ObjectIndex) -> Option<Frame> {
        let is_own = |frame: &Frame| frame.class.as_ref().is_some_and(|class| !names::is_of_jdk(class));
        self.all_threads.frames_of(thread).take(MAX_FRAMES).find(is_own)
    }

    fn named_all<'p>(&self, positions: impl Iterator<Item = &'p TreePosition>) -> Vec<Named> {
        let objects = positions.filter_map(|position| self.graph.tree.object_at(*position));
        objects.map(|object| self.evidence.named(object)).collect()
    }

    fn class_name(&self, class: ClassNumber) -> &'a str {
        self.summary.class(class).map_or("", |row| self.summary.class_name(row))
    }

    fn reason_of_group(
        &self,
        what: What,
        class: Option<ClassNumber>,
        positions: &[TreePosition],
        all: u64,
        has_point: bool,
    ) -> Option<Reason> {
        let tree = &self.graph.tree;
        let retained = || positions.iter().map(|position| tree.retained_bytes(*position));
        let class_name = class.map_or("", |class| self.class_name(class));
        match what {
            What::Thread => {
                let (pool, members) = match class_name {
                    "java.lang.Thread"
                    | "java.lang.VirtualThread"
                    | "java.lang.ThreadBuilders$BoundVirtualThread" => self.largest_pool(positions)?,
                    // Those of a class of their own are like, whatever their names are.
                    _ => (None, retained().collect()),
                };
                let sum = members.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
                let are_many = contents::is_in_many(members.iter().copied(), all, true);
                (are_many && contents::is_most(sum, all)).then_some(Reason::Threads {
                    pool: pool.map(|pool| format!("{pool}*")),
                    threads: members.len() as u64,
                    retained_bytes: sum,
                })
            }
            What::ClassLoader => contents::is_in_many(retained(), all, true).then(|| Reason::Loaders {
                class: class_name.to_owned(),
                loader_class: Some(class_name.to_owned()),
                loaders: positions.len() as u64,
                retained_bytes: all,
            }),
            // Different classes are parts of different kinds.
            What::Class => None,
            What::Instance => {
                let is_known = has_point || !names::is_of_jdk(class_name) && !class_name.ends_with("[]");
                (is_known && contents::is_in_many(retained(), all, false)).then_some(Reason::Members)
            }
        }
    }

    /// The pool of threads that retains most: its name without the number, and what each of its threads retains, most
    /// first.
    fn largest_pool(&self, positions: &[TreePosition]) -> Option<(Option<String>, Vec<u64>)> {
        let tree = &self.graph.tree;
        let mut pools: rustc_hash::FxHashMap<String, Vec<u64>> = rustc_hash::FxHashMap::default();
        for position in positions {
            let object = tree.object_at(*position)?;
            let name = self.evidence.view.content(object).unwrap_or_default();
            pools.entry(pool(&name).to_owned()).or_default().push(tree.retained_bytes(*position));
        }
        let sum = |bytes: &[u64]| bytes.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
        let (name, bytes) =
            pools.into_iter().max_by_key(|(name, bytes)| (sum(bytes), Reverse(name.clone())))?;
        let is_told = !name.is_empty() && !self.evidence.view.hides_values();
        Some((Some(name).filter(|_| is_told), bytes))
    }

    /// The classes whose objects take most of what some objects retain.
    fn contents(&self, tops: &[TreePosition]) -> Vec<ClassShare> {
        let counts = class_counts::count_below(self.graph, tops, self.summary.classes().len());
        evidence::largest_classes(self.summary, &counts)
    }
}
