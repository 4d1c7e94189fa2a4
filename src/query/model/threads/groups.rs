//! Groups of threads: threads of one pool with equal stacks, whose names differ only in numbers, or threads with the same
//! innermost frame outside the JDK.

use std::cmp::Reverse;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;
use hprof_index::storage::id_map::{IdMap, IdSet};
use hprof_values::{ObjectId, TraceSerial, names};

use crate::dominators::retained_of_set::retained_by_tree;
use hprof_base::naming::stable_names::{fold_numbers, in_common};
use hprof_base::sorting::SortRows;

use super::frames::Frame;
use super::{
    MAX_SEARCHED, SHARED_FRAMES, ThreadGrouping, ThreadKind, ThreadQuery, ThreadRow, ThreadState, Threads,
};

/// A group of threads with their common stack, states and sizes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadGroup {
    /// Common name, with `*` for the numbers in which several names differ; `None` if the threads have no name, or names
    /// that differ in more.
    pub name: Option<String>,
    /// Number of threads.
    pub threads: u64,
    /// Number of threads by state, in the order of `Thread.State`; unknown states last.
    pub states: Vec<(Option<ThreadState>, u64)>,
    /// Number of virtual threads.
    pub virtual_threads: u64,
    /// `true` if a thread of the group ran into an OutOfMemoryError.
    pub is_out_of_memory: bool,
    /// Retained size in bytes; a thread that another dominates counts once.
    pub retained_bytes: u64,
    /// Object IDs of the threads, ascending.
    pub objects: Vec<ObjectId>,
    /// Innermost frame outside the JDK that the stacks share.
    pub frame: Option<Frame>,
    /// Stack frames, innermost first; for [`ThreadGrouping::Frame`] the frames that the stacks share, from [`Self::frame`] on.
    pub frames: Vec<Frame>,
    /// Number of omitted frames.
    pub frames_left_out: u64,
    /// Objects held by the stacks, if requested; most retained bytes first. For [`ThreadGrouping::Frame`] only objects held by
    /// [`Self::frame`] and the frames outside the JDK that led to it.
    pub locals: Vec<LocalsOfClass>,
}

/// Objects of one class held by the stacks of a group's threads, each counted once. Threads that hold themselves are
/// not counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalsOfClass {
    /// Class of the objects.
    pub class: Option<ClassNumber>,
    /// Methods whose frames hold them, innermost first, those of the JDK last. Objects outside of known frames have
    /// none.
    pub methods: Vec<String>,
    /// Number of objects.
    pub objects: u64,
    /// Shallow size in bytes.
    pub shallow_bytes: u64,
    /// Retained size in bytes; an object that another of them dominates counts once.
    pub retained_bytes: u64,
}

/// Groups of the matching threads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadGroups {
    /// Groups: most retained bytes first, then most threads; at most `top`.
    pub rows: Vec<ThreadGroup>,
    /// Number of groups before `top` was applied.
    pub matching: u64,
    /// Number of matching threads.
    pub threads: u64,
    /// Retained size of the matching threads together, in bytes.
    pub retained_bytes: u64,
}

/// Properties shared by the threads of a group.
#[derive(Debug, PartialEq, Eq, Hash)]
enum ThreadGroupKey {
    /// The form of their names, and the number of the stack.
    Stack(Option<String>, u32),
    /// The number of a frame.
    Frame(u32),
}

/// A thread of a group.
struct Member<'n> {
    row: &'n ThreadRow,
    name: Option<&'n str>,
    /// Number of the stack.
    stack: u32,
}

/// Stacks of a dump; equal sequences of frames have one number.
#[derive(Default)]
struct Stacks {
    /// Frame numbers by ID of a STACK FRAME record: HotSpot writes a record for each frame of each thread.
    of_id: IdMap<u64, u32>,
    numbers: FxHashMap<Frame, u32>,
    frames: Vec<Frame>,
    of_trace: IdMap<TraceSerial, u32>,
    stack_numbers: FxHashMap<Vec<u32>, u32>,
    stacks: Vec<Vec<u32>>,
}

impl Stacks {
    fn frame(&mut self, id: u64, read: impl Fn() -> Frame) -> u32 {
        let Self { of_id, numbers, frames, .. } = self;
        *of_id.entry(id).or_insert_with(|| {
            let frame = read();
            *numbers.entry(frame.clone()).or_insert_with(|| {
                frames.push(frame);
                last_index(frames.len())
            })
        })
    }

    fn stack(&mut self, trace: Option<TraceSerial>, threads: &Threads<'_>) -> u32 {
        if let Some(known) = trace.and_then(|trace| self.of_trace.get(&trace)) {
            return *known;
        }
        let ids = trace.into_iter().flat_map(|trace| threads.frames.of_trace(trace));
        let stack: Vec<u32> =
            ids.map(|id| self.frame(id, || threads.frames.frame(id).unwrap_or(Frame::UNKNOWN))).collect();
        let stacks = &mut self.stacks;
        let number = *self.stack_numbers.entry(stack).or_insert_with_key(|stack| {
            stacks.push(stack.clone());
            last_index(stacks.len())
        });
        if let Some(trace) = trace {
            self.of_trace.insert(trace, number);
        }
        number
    }

    /// Returns the frames of a stack from a position on, counted from the innermost.
    fn from(&self, stack: u32, position: usize) -> &[u32] {
        self.stacks.get(stack as usize).and_then(|stack| stack.get(position..)).unwrap_or_default()
    }

    /// Returns a frame of a stack, counted from the innermost.
    fn frame_at(&self, stack: u32, position: u32) -> Option<&Frame> {
        self.frames.get(*self.from(stack, position as usize).first()? as usize)
    }

    /// Returns the position of the innermost frame outside the JDK, as [`Threads::own_frame`] finds it.
    fn own_position(&self, stack: u32) -> Option<usize> {
        let is_own = |frame: &u32| self.frames.get(*frame as usize).is_some_and(Frame::is_own);
        self.from(stack, 0).iter().take(MAX_SEARCHED).position(is_own)
    }

    /// Returns the frames that these stacks share, from their innermost ones outside the JDK on.
    fn common_frames(&self, mut stacks: impl Iterator<Item = u32>) -> Vec<u32> {
        let from_own = |stack| self.from(stack, self.own_position(stack).unwrap_or(0));
        let first = stacks.next().map(from_own).unwrap_or_default();
        let shared = stacks.fold(first.len(), |shared, stack| {
            let equal = first.iter().zip(from_own(stack)).take_while(|(a, b)| a == b).count();
            equal.min(shared)
        });
        first.iter().take(shared).copied().collect()
    }
}

/// Returns the number of the last of `length` items.
fn last_index(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX).saturating_sub(1)
}

impl Threads<'_> {
    /// Groups the matching threads. `top` limits groups, `depth` the frames of each; the order is always the same.
    pub fn groups(&self, question: &ThreadQuery) -> ThreadGroups {
        let rows = self.matching(&self.thread_objects(), question);
        let names = self.names(rows.par_iter().map(|row| row.object));
        let mut stacks = Stacks::default();
        let mut groups: FxHashMap<ThreadGroupKey, Vec<Member<'_>>> = FxHashMap::default();
        // By stack: the number of its innermost frame outside the JDK.
        let mut own: IdMap<u32, Option<u32>> = IdMap::default();
        for (row, name) in rows.iter().zip(names.by_thread()) {
            let stack = stacks.stack(row.trace, self);
            let frame = match question.group_by {
                ThreadGrouping::Stack => None,
                ThreadGrouping::Frame => *own.entry(stack).or_insert_with(|| {
                    stacks.own_position(stack).and_then(|at| stacks.from(stack, at).first().copied())
                }),
            };
            let key = match frame {
                Some(frame) => ThreadGroupKey::Frame(frame),
                None => ThreadGroupKey::Stack(name.map(fold_numbers), stack),
            };
            groups.entry(key).or_default().push(Member { row, name, stack });
        }
        let mut answer = ThreadGroups {
            matching: groups.len() as u64,
            threads: rows.len() as u64,
            retained_bytes: retained_by_tree(&self.graph.tree, rows.iter().map(|row| row.object)),
            ..ThreadGroups::default()
        };
        let mut groups: Vec<(ThreadGroupKey, Vec<Member<'_>>, ThreadGroup)> = groups
            .into_iter()
            .map(|(key, threads)| {
                let group = self.group(&threads);
                (key, threads, group)
            })
            .collect();
        groups.sort_rows_by(|(.., a), (.., b)| {
            let key = |group: &ThreadGroup| (Reverse(group.retained_bytes), Reverse(group.threads));
            key(a).cmp(&key(b)).then_with(|| a.objects.first().cmp(&b.objects.first()))
        });
        groups.truncate(question.top.unwrap_or(usize::MAX));
        let (mut shown, mut shared) = (IdSet::default(), SHARED_FRAMES);
        for (key, threads, mut group) in groups {
            let mut most = question.depth.unwrap_or(usize::MAX);
            let frames = match key {
                ThreadGroupKey::Frame(_) => stacks.common_frames(distinct_stacks(&threads).into_iter()),
                ThreadGroupKey::Stack(_, stack) => {
                    if !shown.insert(stack) {
                        most = most.min(usize::try_from(shared).unwrap_or(usize::MAX));
                        shared = shared.saturating_sub(stacks.from(stack, 0).len().min(most) as u64);
                    }
                    stacks.from(stack, 0).to_vec()
                }
            };
            let frame = |number: &u32| stacks.frames.get(*number as usize).cloned();
            group.frame = threads.first().and_then(|first| {
                let at = stacks.own_position(first.stack)?;
                frame(stacks.from(first.stack, at).first()?)
            });
            group.frames = frames.iter().take(most).filter_map(frame).collect();
            group.frames_left_out = frames.len().saturating_sub(group.frames.len()) as u64;
            if question.has_locals {
                let is_by_frame = matches!(key, ThreadGroupKey::Frame(_));
                group.locals = self.held_by_all(&threads, &stacks, is_by_frame);
            }
            answer.rows.push(group);
        }
        answer
    }

    /// Returns the matching threads in the same group as this one.
    pub(super) fn group_of(
        &self,
        rows: Vec<ThreadRow>,
        question: &ThreadQuery,
        thread: ObjectId,
    ) -> Vec<ThreadRow> {
        let all = ThreadQuery { group_of: None, top: None, depth: Some(0), ..question.clone() };
        let groups = self.groups(&all).rows;
        let group = groups.into_iter().find(|group| group.objects.binary_search(&thread).is_ok());
        let objects = group.map(|group| group.objects).unwrap_or_default();
        rows.into_iter().filter(|row| objects.binary_search(&self.id(row.object)).is_ok()).collect()
    }

    /// Describes a group, without its stack.
    fn group(&self, threads: &[Member<'_>]) -> ThreadGroup {
        let mut objects: Vec<ObjectIndex> = threads.iter().map(|thread| thread.row.object).collect();
        objects.sort_unstable();
        let count = |state| threads.iter().filter(|thread| thread.row.state == state).count() as u64;
        let states = ThreadState::ALL.into_iter().map(Some).chain([None]).map(|state| (state, count(state)));
        let mut names: Vec<&str> = threads.iter().filter_map(|thread| thread.name).collect();
        names.sort_unstable();
        names.dedup();
        let form = names.first().map(|name| fold_numbers(name));
        let have_one_form = names.iter().all(|name| Some(fold_numbers(name)) == form);
        let name = names.into_iter().fold(None, |all, name| in_common(all, Some(name.to_owned())));
        ThreadGroup {
            name: name.filter(|_| have_one_form && !self.labels.hides_values()),
            threads: threads.len() as u64,
            states: states.filter(|(_, threads)| *threads > 0).collect(),
            virtual_threads: threads.iter().filter(|thread| thread.row.kind == ThreadKind::Virtual).count()
                as u64,
            is_out_of_memory: objects.iter().any(|object| self.is_out_of_memory(*object)),
            retained_bytes: retained_by_tree(&self.graph.tree, objects.iter().copied()),
            objects: objects.iter().map(|object| self.id(*object)).collect(),
            frame: None,
            frames: Vec::new(),
            frames_left_out: 0,
            locals: Vec::new(),
        }
    }

    /// Returns the objects held by the stacks of the given threads, by class; with `are_own`, only objects held by frames
    /// outside the JDK.
    fn held_by_all(&self, threads: &[Member<'_>], stacks: &Stacks, are_own: bool) -> Vec<LocalsOfClass> {
        // Class, object, stack and position of the frame.
        let mut held: Vec<(Option<ClassNumber>, ObjectIndex, u32, u32)> = Vec::new();
        for Member { row, stack, .. } in threads {
            let is_meant =
                |position| !are_own || stacks.frame_at(*stack, position).is_some_and(Frame::is_own);
            for (_, position, root) in self.locals_of(row.object).iter().filter(|(_, at, _)| is_meant(*at)) {
                let root = self.graph.roots.rows.get(*root as usize).filter(|root| root.object != row.object);
                held.extend(
                    root.map(|root| (self.graph.objects.class(root.object), root.object, *stack, *position)),
                );
            }
        }
        held.sort_unstable();
        let tree = &self.graph.tree;
        let of_class = held.chunk_by(|(a, ..), (b, ..)| a == b).map(|same| {
            let mut objects: Vec<ObjectIndex> = same.iter().map(|(_, object, ..)| *object).collect();
            objects.dedup();
            let mut frames: Vec<(u32, u32)> =
                same.iter().map(|(.., stack, position)| (*position, *stack)).collect();
            frames.sort_unstable();
            frames.dedup();
            let shallow = |object: &ObjectIndex| {
                tree.position(*object).map_or(0, |position| tree.shallow_bytes(position))
            };
            LocalsOfClass {
                class: same.first().and_then(|(class, ..)| *class),
                methods: methods(
                    frames.into_iter().filter_map(|(position, stack)| stacks.frame_at(stack, position)),
                ),
                objects: objects.len() as u64,
                shallow_bytes: objects.iter().map(shallow).fold(0, u64::saturating_add),
                retained_bytes: retained_by_tree(tree, objects),
            }
        });
        let mut rows: Vec<LocalsOfClass> = of_class.collect();
        // Stable sort: equal rows stay in the order of classes.
        rows.sort_rows_by_key(|row| (Reverse(row.retained_bytes), Reverse(row.objects)));
        rows
    }
}

/// Returns the numbers of the stacks of the given threads, without duplicates.
fn distinct_stacks(threads: &[Member<'_>]) -> Vec<u32> {
    let mut stacks: Vec<u32> = threads.iter().map(|thread| thread.stack).collect();
    stacks.sort_unstable();
    stacks.dedup();
    stacks
}

/// Returns the methods of frames, without duplicates (recursion repeats them), those of the JDK last.
fn methods<'f>(frames: impl Iterator<Item = &'f Frame>) -> Vec<String> {
    let mut seen = FxHashSet::default();
    let (jdk, mut methods): (Vec<&Frame>, Vec<&Frame>) = frames
        .filter(|frame| seen.insert((frame.class.as_deref(), frame.method.as_deref())))
        .partition(|frame| frame.class.as_deref().is_some_and(names::is_of_jdk));
    methods.extend(jdk);
    methods.into_iter().map(Frame::qualified_method).collect()
}
