//! Description of an object on a path, and of the root at which the path starts.

use std::ops::Range;

use rustc_hash::FxHashSet;

use hprof_index::Dump;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::objects::gc_roots::GcRoot;
use hprof_values::{ObjectId, RootKind};

use crate::objects::label::Labels;
use crate::objects::meaning::Meanings;
use crate::objects::reference_names::{Edges, Holding};
use crate::objects::strength::{Exclusions, Strength};
use crate::threads::frames::{Frame, Frames};

/// An object on a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectStep {
    /// Object ID.
    pub id: ObjectId,
    /// Class name; `None` if the dump does not contain it.
    pub class: Option<String>,
    /// Short description that distinguishes it from others of its class.
    pub label: Option<String>,
    /// Reference by which the previous object holds it; `None` for roots.
    pub reference: Option<String>,
    /// `true` if that reference is a static field.
    pub is_static: bool,
    /// Strength of that reference.
    pub strength: Strength,
    /// Shallow size in bytes.
    pub shallow_bytes: u64,
    /// Retained size in bytes.
    pub retained_bytes: u64,
    /// Roots by threads' stacks, one for each thread, ten at most. Empty for the first step of a path, whose root is
    /// reported separately.
    pub frame_roots: Vec<RootView>,
}

/// Maximum number of threads listed for an object on several stacks.
const MAX_THREADS: usize = 10;

/// Thread of a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepThread {
    /// Object ID, if the thread is in the dump.
    pub id: Option<ObjectId>,
    /// Name, if the dump has it.
    pub name: Option<String>,
}

/// Reason why an object is a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootView {
    /// Object ID.
    pub id: ObjectId,
    /// Class name; `None` if the dump does not contain it.
    pub class: Option<String>,
    /// Kinds of roots.
    pub kinds: Vec<RootKind>,
    /// `true` if the root is assumed: a class of the boot loader, where there are no sticky classes.
    pub is_assumed: bool,
    /// Thread of the root; of several the first.
    pub thread: Option<StepThread>,
    /// Innermost frame in which that thread holds the object.
    pub frame: Option<Frame>,
    /// Number of other threads that hold the object.
    pub more_threads: usize,
}

/// Reader of descriptions of objects and roots.
#[derive(Debug)]
pub struct View<'a> {
    /// References.
    pub edges: Edges<'a>,
    labels: Labels<'a>,
    frames: Frames<'a>,
}

impl<'a> View<'a> {
    /// Creates a view of a dump.
    pub fn new(dump: &Dump<'a>) -> Self {
        Self { edges: Edges::new(dump), labels: Labels::new(dump), frames: Frames::new(dump) }
    }

    fn id(&self, object: ObjectIndex) -> ObjectId {
        self.edges.dump.graph.objects.addresses.id_of(object).unwrap_or_default()
    }

    /// Returns the name of an object's class.
    pub fn class_name(&self, object: ObjectIndex) -> Option<&'a str> {
        let class = self.edges.dump.graph.objects.class(object)?;
        self.edges.dump.summary.class(class).map(|class| self.edges.dump.summary.class_name(class))
    }

    /// Returns a short description that distinguishes an object from others of its class.
    pub fn label(&self, object: ObjectIndex) -> Option<String> {
        self.labels.label(object)
    }

    /// Returns the label of an object for comparisons, even if values are hidden.
    pub fn content(&self, object: ObjectIndex) -> Option<String> {
        self.labels.unmasked_label(object)
    }

    /// Returns the reader of the meanings of objects.
    pub(crate) fn meanings(&self) -> &Meanings<'a> {
        self.labels.meanings()
    }

    /// Returns whether texts from the dump are hidden.
    pub fn hides_values(&self) -> bool {
        self.labels.hides_values()
    }

    /// Describes an object held by `holder`.
    pub fn step(&self, object: ObjectIndex, holder: Option<ObjectIndex>) -> ObjectStep {
        self.step_held(object, holder.map(|holder| (holder, self.edges.holding(holder, object))))
    }

    /// Describes an object and the reference that holds it.
    pub fn step_held(&self, object: ObjectIndex, held: Option<(ObjectIndex, Holding<'a>)>) -> ObjectStep {
        let tree = &self.edges.dump.graph.tree;
        let position = tree.position(object);
        let reachable = tree.reachable_position(object);
        let strength = held.as_ref().map(|(holder, holding)| self.edges.strength(*holder, holding));
        let reference = held.as_ref().map(|(_, holding)| holding.to_string());
        ObjectStep {
            id: self.id(object),
            class: self.class_name(object).map(str::to_owned),
            label: self.labels.label(object),
            is_static: held.as_ref().is_some_and(|(_, holding)| holding.is_static()),
            reference: reference.filter(|text| !text.is_empty()),
            strength: strength.unwrap_or(Strength::Strong),
            shallow_bytes: position.map_or(0, |position| tree.shallow_bytes(position)),
            retained_bytes: reachable.map_or(0, |position| tree.retained_bytes(position)),
            frame_roots: if held.is_some() { self.frame_roots(object) } else { Vec::new() },
        }
    }

    /// Returns the roots of an object by threads' stacks, one for each thread.
    fn frame_roots(&self, object: ObjectIndex) -> Vec<RootView> {
        if !self.edges.roots.contains(object) {
            return Vec::new();
        }
        let roots = self.edges.roots.of_object(object).filter(|root| root.is_of_stack());
        let mut threads: Vec<Option<u32>> = roots.map(|root| root.thread_serial).collect();
        threads.sort_unstable();
        threads.dedup();
        let of_thread = |thread: &Option<u32>| {
            self.root_of(object, |root| root.is_of_stack() && root.thread_serial == *thread)
        };
        threads.iter().take(MAX_THREADS).map(of_thread).collect()
    }

    /// Describes the objects of a path in a range.
    pub fn steps(&self, path: &[ObjectIndex], places: Range<usize>) -> Vec<ObjectStep> {
        let holder = places.start.checked_sub(1).and_then(|before| path.get(before)).copied();
        let objects = path.get(places).unwrap_or_default();
        let holders = std::iter::once(holder).chain(objects.iter().copied().map(Some));
        objects.iter().zip(holders).map(|(object, holder)| self.step(*object, holder)).collect()
    }

    /// Describes objects held by one object, in the given order.
    pub fn held_by(&self, holder: ObjectIndex, objects: &[ObjectIndex]) -> Vec<ObjectStep> {
        let mut sorted = objects.to_vec();
        sorted.sort_unstable();
        let holdings = self.edges.holdings(holder, &sorted);
        let holding = |object: &ObjectIndex| {
            let at = sorted.binary_search(object).ok();
            at.and_then(|at| holdings.get(at)).cloned().unwrap_or_default()
        };
        objects.iter().map(|object| self.step_held(*object, Some((holder, holding(object))))).collect()
    }

    /// Describes an object as a root.
    pub fn root(&self, object: ObjectIndex) -> RootView {
        self.root_of(object, |_| true)
    }

    /// Describes the root at which paths start without what is `excluded`: a reason other than a thread's frame, if
    /// there is one.
    pub fn start(&self, object: ObjectIndex, excluded: Exclusions) -> RootView {
        let is_start = |root: &GcRoot| !excluded.contains_root(root.kind);
        let beyond_frames = |root: &GcRoot| is_start(root) && !root.is_of_stack();
        if self.edges.roots.of_object(object).any(beyond_frames) {
            self.root_of(object, beyond_frames)
        } else {
            self.root_of(object, is_start)
        }
    }

    fn root_of(&self, object: ObjectIndex, wanted: impl Fn(&GcRoot) -> bool) -> RootView {
        let graph = self.edges.dump.graph;
        let mut frame: Option<(u32, &GcRoot)> = None;
        let mut first: Option<(u32, Option<ObjectIndex>)> = None;
        let (mut threads, mut kinds) = (FxHashSet::default(), Vec::new());
        let mut is_assumed = true;
        for root in self.edges.roots.of_object(object).filter(|root| wanted(root)) {
            is_assumed &= root.is_assumed;
            if !kinds.contains(&root.kind) {
                kinds.push(root.kind);
            }
            if let Some(serial) = root.thread_serial {
                threads.insert(serial);
                first = first.or(Some((serial, root.thread)));
            }
            // Only frames of the named thread.
            if let Some(number) = root.frame
                && first.is_some_and(|(serial, _)| Some(serial) == root.thread_serial)
                && frame.is_none_or(|(least, _)| number < least)
            {
                frame = Some((number, root));
            }
        }
        RootView {
            id: self.id(object),
            class: self.class_name(object).map(str::to_owned),
            kinds,
            is_assumed,
            thread: first.map(|(serial, thread)| StepThread {
                id: thread.map(|thread| self.id(thread)),
                name: self.thread_name(serial, thread),
            }),
            frame: frame.and_then(|(_, root)| self.frames.of_root(&graph.roots, root)),
            more_threads: threads.len().saturating_sub(1),
        }
    }

    /// Returns a thread's name, or its serial number if the name is not known.
    pub fn thread(&self, serial: u32, thread: Option<ObjectIndex>) -> String {
        self.thread_name(serial, thread).unwrap_or_else(|| serial.to_string())
    }

    /// Returns the frame of a root, if known.
    pub fn frame(&self, root: &GcRoot) -> Option<String> {
        self.frames.of_root(&self.edges.dump.graph.roots, root).map(|frame| frame.to_string())
    }

    fn thread_name(&self, serial: u32, thread: Option<ObjectIndex>) -> Option<String> {
        if self.labels.hides_values() {
            return None;
        }
        thread.and_then(|thread| self.labels.label(thread)).or_else(|| {
            let threads = &self.edges.dump.summary.tables().threads;
            let started = threads.iter().rev().find(|row| row.serial.get() == serial)?;
            self.frames.text(started.name.get())
        })
    }
}
