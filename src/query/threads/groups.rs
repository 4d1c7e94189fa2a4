//! Groups of threads of one pool with equal stacks, whose names differ only in numbers.

use std::cmp::Reverse;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;
use hprof_index::storage::id_map::{IdMap, IdSet};
use hprof_parser::{ObjectId, TraceSerial, names};

use crate::compare::stable_names::{in_common, masked};
use crate::dominators::retained_of_set::retained_by_tree;
use crate::sorting::SortRows;

use super::frames::Frame;
use super::{SHARED_FRAMES, ThreadKind, ThreadQuery, ThreadRow, ThreadState, Threads};

/// A group of threads of one pool with equal stacks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadGroup {
    /// Common name, with `*` for the numbers in which several names differ; `None` if the threads have no name.
    pub name: Option<String>,
    /// Number of threads.
    pub threads: u64,
    /// Number of threads by state, in the order of Java; unknown states last.
    pub states: Vec<(Option<ThreadState>, u64)>,
    /// Number of virtual threads.
    pub virtual_threads: u64,
    /// `true` if a thread of the group ran into an OutOfMemoryError.
    pub is_out_of_memory: bool,
    /// Retained size in bytes; a thread that another dominates counts once.
    pub retained_bytes: u64,
    /// Object IDs of the threads, ascending.
    pub objects: Vec<ObjectId>,
    /// Stack frames, innermost first.
    pub frames: Vec<Frame>,
    /// Number of omitted frames.
    pub frames_left_out: u64,
    /// Objects held by the stacks, if requested; most retained bytes first.
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

/// Properties shared by the threads of a group: the form of their names, and the number of the stack.
type ThreadGroupKey = (Option<String>, u32);

/// A thread of a group and its name.
type Member<'n> = (&'n ThreadRow, Option<&'n str>);

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
                last(frames.len())
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
            last(stacks.len())
        });
        if let Some(trace) = trace {
            self.of_trace.insert(trace, number);
        }
        number
    }

    /// Returns a frame of a stack, counted from the innermost.
    fn frame_at(&self, stack: u32, number: u32) -> Option<&Frame> {
        self.frames.get(*self.stacks.get(stack as usize)?.get(number as usize)? as usize)
    }

    /// Returns the innermost frames of a stack, and the number of omitted ones.
    fn frames(&self, stack: u32, most: usize) -> (Vec<Frame>, u64) {
        let Some(stack) = self.stacks.get(stack as usize) else { return (Vec::new(), 0) };
        let frames = stack.iter().take(most).filter_map(|frame| self.frames.get(*frame as usize)).cloned();
        (frames.collect(), stack.len() as u64)
    }
}

/// Returns the number of the last of `length` items.
fn last(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX).saturating_sub(1)
}

impl Threads<'_> {
    /// Groups the matching threads. `top` limits groups, `depth` the frames of each; the order is always the same.
    pub fn groups(&self, question: &ThreadQuery) -> ThreadGroups {
        let rows = self.matching(&self.all(), question);
        let names = self.names(rows.par_iter().map(|row| row.object));
        let mut stacks = Stacks::default();
        let mut groups: FxHashMap<ThreadGroupKey, Vec<Member<'_>>> = FxHashMap::default();
        for (row, name) in rows.iter().zip(names.by_thread()) {
            let stack = stacks.stack(row.trace, self);
            groups.entry((name.map(masked), stack)).or_default().push((row, name));
        }
        let mut answer = ThreadGroups {
            matching: groups.len() as u64,
            threads: rows.len() as u64,
            retained_bytes: retained_by_tree(&self.graph.tree, rows.iter().map(|row| row.object)),
            ..ThreadGroups::default()
        };
        let mut groups: Vec<(u32, ThreadGroup)> =
            groups.into_iter().map(|((_, stack), threads)| (stack, self.group(&threads))).collect();
        groups.sort_rows_by(|(_, a), (_, b)| {
            let key = |group: &ThreadGroup| (Reverse(group.retained_bytes), Reverse(group.threads));
            key(a).cmp(&key(b)).then_with(|| a.objects.first().cmp(&b.objects.first()))
        });
        groups.truncate(question.top.unwrap_or(usize::MAX));
        let (mut shown, mut shared) = (IdSet::default(), SHARED_FRAMES);
        for (stack, mut group) in groups {
            let mut most = question.depth.unwrap_or(usize::MAX);
            let is_shown_before = !shown.insert(stack);
            if is_shown_before {
                most = most.min(usize::try_from(shared).unwrap_or(usize::MAX));
            }
            let (frames, length) = stacks.frames(stack, most);
            if is_shown_before {
                shared = shared.saturating_sub(frames.len() as u64);
            }
            group.frames_left_out = length.saturating_sub(frames.len() as u64);
            group.frames = frames;
            if question.has_locals {
                group.locals = self.held_by_all(&group.objects, &stacks, stack);
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
        let mut objects: Vec<ObjectIndex> = threads.iter().map(|(row, _)| row.object).collect();
        objects.sort_unstable();
        let count = |state| threads.iter().filter(|(row, _)| row.state == state).count() as u64;
        let states = ThreadState::ALL.into_iter().map(Some).chain([None]).map(|state| (state, count(state)));
        let mut names: Vec<&str> = threads.iter().filter_map(|(_, name)| *name).collect();
        names.sort_unstable();
        names.dedup();
        let name = names.into_iter().fold(None, |all, name| in_common(all, Some(name.to_owned())));
        ThreadGroup {
            name: name.filter(|_| !self.labels.hides_values()),
            threads: threads.len() as u64,
            states: states.filter(|(_, threads)| *threads > 0).collect(),
            virtual_threads: threads.iter().filter(|(row, _)| row.kind == ThreadKind::Virtual).count() as u64,
            is_out_of_memory: objects.iter().any(|object| self.is_out_of_memory(*object)),
            retained_bytes: retained_by_tree(&self.graph.tree, objects.iter().copied()),
            objects: objects.iter().map(|object| self.id(*object)).collect(),
            frames: Vec::new(),
            frames_left_out: 0,
            locals: Vec::new(),
        }
    }

    /// Returns the objects held by the equal stacks of some threads, by class.
    fn held_by_all(&self, threads: &[ObjectId], stacks: &Stacks, stack: u32) -> Vec<LocalsOfClass> {
        let addresses = &self.graph.objects.addresses;
        // Class, object and frame number.
        let mut held: Vec<(Option<ClassNumber>, ObjectIndex, u32)> = Vec::new();
        for thread in threads.iter().filter_map(|thread| addresses.index_of(*thread)) {
            for (_, frame, row) in self.locals_of(thread) {
                let root = self.graph.roots.rows.get(*row as usize).filter(|root| root.object != thread);
                held.extend(root.map(|root| (self.graph.objects.class(root.object), root.object, *frame)));
            }
        }
        held.sort_unstable();
        let tree = &self.graph.tree;
        let of_class = held.chunk_by(|(a, ..), (b, ..)| a == b).map(|same| {
            let mut objects: Vec<ObjectIndex> = same.iter().map(|(_, object, _)| *object).collect();
            objects.dedup();
            let mut frames: Vec<u32> = same.iter().map(|(.., frame)| *frame).collect();
            frames.sort_unstable();
            frames.dedup();
            let shallow = |object: &ObjectIndex| {
                tree.position(*object).map_or(0, |position| tree.shallow_bytes(position))
            };
            LocalsOfClass {
                class: same.first().and_then(|(class, ..)| *class),
                methods: methods(frames.into_iter().filter_map(|frame| stacks.frame_at(stack, frame))),
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

/// Returns the methods of frames, each once (recursion repeats them), those of the JDK last.
fn methods<'f>(frames: impl Iterator<Item = &'f Frame>) -> Vec<String> {
    let mut seen = FxHashSet::default();
    let (jdk, mut methods): (Vec<&Frame>, Vec<&Frame>) = frames
        .filter(|frame| seen.insert((frame.class.as_deref(), frame.method.as_deref())))
        .partition(|frame| frame.class.as_deref().is_some_and(names::is_of_jdk));
    methods.extend(jdk);
    methods.into_iter().map(Frame::qualified_method).collect()
}
