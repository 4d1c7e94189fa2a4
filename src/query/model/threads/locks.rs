//! Locks: who owns them, who waits, and deadlocks.
//!
//! * An AbstractOwnableSynchronizer (ReentrantLock, the write lock of a ReentrantReadWriteLock) refers to its owner by
//!   `exclusiveOwnerThread`, and a parked thread to what it waits for by `parkBlocker`.
//! * Of monitors, HotSpot's dumps contain nothing: neither owners nor which monitor a BLOCKED thread waits for. What is known is
//!   which objects the innermost frame of such a thread holds, and which other threads have them on their stacks. The compiler
//!   stores the object of a `synchronized` statement in a local variable of its own, the last one of the frame, and keeps it
//!   there until the statement ends. Owners and deadlocks of monitors are inferred from that, and marked.

use rustc_hash::{FxHashMap, FxHashSet};

use hprof_index::Dump;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::tables::NONE;
use hprof_values::RootKind;

use super::frames::Frame;
use super::state::{ThreadState, Wait};
use super::{MAX_SEARCHED, Object, Threads};
use crate::objects::class_set::ClassSet;
use crate::objects::reference_kind::ReferenceKind;
use crate::objects::reference_names::Edges;

/// Superclass of locks that have an owner.
const SYNCHRONIZER: &str = "java.util.concurrent.locks.AbstractOwnableSynchronizer";
/// Conditions of locks.
const CONDITIONS: [&str; 2] = [
    "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject",
    "java.util.concurrent.locks.AbstractQueuedLongSynchronizer$ConditionObject",
];
/// Package of locks, whose own fields do not name a lock.
const LOCKS: &str = "java.util.concurrent.locks.";
/// Maximum number of referrers that are examined for the field of a lock.
const MAX_REFERRERS: usize = 64;
/// Number of objects between a field of the program and a synchronizer: the lock itself.
const MAX_HOPS: usize = 3;

/// Kind of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// An AbstractOwnableSynchronizer.
    Synchronizer,
    /// A Condition, which has no owner.
    Condition,
    /// A monitor that threads wait to enter.
    Monitor,
    /// A monitor on which threads wait to be notified.
    Notification,
}

impl LockKind {
    /// Returns the name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Synchronizer => "synchronizer",
            Self::Condition => "condition",
            Self::Monitor => "monitor",
            Self::Notification => "notification",
        }
    }
}

/// A thread that owns a lock or waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockThread {
    /// The thread.
    pub thread: Object,
    /// Name, if it has one that is not hidden.
    pub name: Option<String>,
}

/// A lock that a thread owns or waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// The object: of a ReentrantLock its synchronizer.
    pub object: Object,
    /// Kind of the lock.
    pub kind: LockKind,
    /// Class and field that refer to the lock, outside java.util.concurrent.locks.
    pub field: Option<String>,
    /// Owner, if it is known.
    pub owner: Option<LockThread>,
    /// `true` if the owner and the waiting threads are inferred from the objects on their stacks.
    pub is_inferred: bool,
    /// Threads that wait, by object ID.
    pub waiters: Vec<LockThread>,
    /// Number of the deadlock that the lock is part of, from 1.
    pub deadlock: Option<u32>,
}

/// The locks of a dump.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Locks {
    /// Locks of deadlocks first, by deadlock; then those with most waiting threads.
    pub rows: Vec<Lock>,
    /// Number of deadlocks.
    pub deadlocks: u32,
    /// Number of BLOCKED threads for which no monitor could be inferred.
    pub unknown_waits: u64,
}

/// A lock while it is collected.
#[derive(Debug, Default)]
struct LockUse {
    owner: Option<ObjectIndex>,
    waiters: Vec<ObjectIndex>,
    deadlock: Option<u32>,
}

/// Locks by object and whether threads wait there to be notified, which is not the same as to enter.
type LockUses = FxHashMap<(ObjectIndex, bool), LockUse>;

impl Threads<'_> {
    /// Finds all locks that have an owner or for which threads wait.
    pub fn locks(&self, dump: &Dump<'_>) -> Locks {
        let summary = dump.summary;
        let synchronizers = ClassSet::of_name_and_below(summary, SYNCHRONIZER);
        let is_condition = |object: ObjectIndex| {
            let class = dump.graph.objects.class(object).and_then(|class| summary.class(class));
            class.is_some_and(|class| CONDITIONS.iter().any(|name| summary.is_named(class, name)))
        };
        let is_synchronizer = |object: ObjectIndex| {
            dump.graph.objects.class(object).is_some_and(|class| synchronizers.contains(class))
        };
        let mut uses = LockUses::default();
        for object in synchronizers.all_objects(dump.graph) {
            let owner = self
                .fields
                .objects
                .fields(object)
                .and_then(|fields| self.fields.object(fields, "exclusiveOwnerThread"));
            if owner.is_some() {
                uses.entry((object, false)).or_default().owner = owner;
            }
        }
        let stacks = MonitorStacks::new(self);
        let mut unknown_waits = 0;
        for thread in self.thread_objects() {
            let doing = self.fields.doing(thread);
            let wait = match doing.state {
                Some(ThreadState::Blocked) => stacks.entered_monitor(thread).map(|monitor| (monitor, false)),
                _ if doing.wait == Some(Wait::OnMonitor) => {
                    stacks.notifying_monitor(thread).map(|monitor| (monitor, true))
                }
                _ => {
                    let blocker = self.blocker(thread);
                    let blocker = blocker.filter(|object| is_synchronizer(*object) || is_condition(*object));
                    blocker.map(|object| (object, false))
                }
            };
            match wait {
                Some(lock) => uses.entry(lock).or_default().waiters.push(thread),
                None => unknown_waits += u64::from(doing.state == Some(ThreadState::Blocked)),
            }
        }
        for ((object, is_notification), lock) in &mut uses {
            if !is_notification && !is_synchronizer(*object) && !is_condition(*object) {
                lock.owner = stacks.owner(*object, &lock.waiters);
            }
        }
        let deadlocks = number_deadlocks(&mut uses);
        let edges = Edges::new(dump);
        let mut rows: Vec<(ObjectIndex, Lock)> = (uses.into_iter())
            .map(|((object, is_notification), lock)| {
                let kind = match is_notification {
                    true => LockKind::Notification,
                    false if is_synchronizer(object) => LockKind::Synchronizer,
                    false if is_condition(object) => LockKind::Condition,
                    false => LockKind::Monitor,
                };
                let thread = |thread: ObjectIndex| LockThread {
                    thread: self.object(thread),
                    name: self.name_of(thread),
                };
                let row = Lock {
                    object: self.object(object),
                    kind,
                    field: field_of_lock(&edges, object),
                    owner: lock.owner.map(thread),
                    is_inferred: matches!(kind, LockKind::Monitor | LockKind::Notification),
                    waiters: lock.waiters.into_iter().map(thread).collect(),
                    deadlock: lock.deadlock,
                };
                (object, row)
            })
            .collect();
        rows.sort_by_key(|(object, lock)| {
            (
                lock.deadlock.is_none(),
                lock.deadlock,
                std::cmp::Reverse(lock.waiters.len()),
                *object,
                lock.kind.name(),
            )
        });
        Locks { rows: rows.into_iter().map(|(_, lock)| lock).collect(), deadlocks, unknown_waits }
    }
}

/// Numbers the circles of threads of which each waits for a lock that the next one owns. Returns their number.
fn number_deadlocks(uses: &mut LockUses) -> u32 {
    let mut waits: FxHashMap<ObjectIndex, (ObjectIndex, ObjectIndex)> = FxHashMap::default();
    let mut starts = Vec::new();
    for ((object, is_notification), lock) in &*uses {
        if let (Some(owner), false) = (lock.owner, is_notification) {
            for thread in &lock.waiters {
                waits.insert(*thread, (*object, owner));
                starts.push(*thread);
            }
        }
    }
    starts.sort_unstable();
    let (mut number, mut done) = (0, FxHashSet::default());
    for start in starts {
        let mut path = Vec::new();
        let mut thread = start;
        // Each thread waits for one lock: the way ends, or leads to a thread on it.
        while let Some((lock, owner)) = waits.get(&thread).filter(|_| done.insert(thread)) {
            path.push((thread, *lock));
            thread = *owner;
        }
        if let Some(first) = path.iter().position(|(on_path, _)| *on_path == thread) {
            number += 1;
            for (_, lock) in path.iter().skip(first) {
                if let Some(lock) = uses.get_mut(&(*lock, false)) {
                    lock.deadlock = Some(number);
                }
            }
        }
    }
    number
}

/// Objects on stacks, from which monitors are inferred.
struct MonitorStacks<'s, 'a> {
    threads: &'s Threads<'a>,
    /// Threads that have an object on their stacks.
    holders: FxHashMap<ObjectIndex, Vec<ObjectIndex>>,
    /// Objects that roots name as monitors in use.
    monitors: FxHashSet<ObjectIndex>,
}

impl<'s, 'a> MonitorStacks<'s, 'a> {
    fn new(threads: &'s Threads<'a>) -> Self {
        let rows = &threads.graph.roots.rows;
        let mut holders: FxHashMap<ObjectIndex, Vec<ObjectIndex>> = FxHashMap::default();
        for (thread, _, row) in &threads.locals {
            let Some(root) = rows.get(*row as usize) else { continue };
            let all = holders.entry(root.object).or_default();
            // Ascending by thread.
            if all.last() != Some(thread) {
                all.push(*thread);
            }
        }
        let monitors = rows.iter().filter(|root| root.kind == RootKind::MonitorUsed).map(|root| root.object);
        Self { threads, holders, monitors: monitors.collect() }
    }

    /// Returns the objects that a frame of a thread holds, in the order of the dump.
    fn locals(&self, thread: ObjectIndex, frame: u32) -> Vec<ObjectIndex> {
        let Threads { locals, graph, .. } = self.threads;
        let start = locals.partition_point(|local| (local.0, local.1) < (thread, frame));
        let own = locals.get(start..).unwrap_or_default().iter();
        let own = own.take_while(|(of, at, _)| *of == thread && *at == frame && *at != NONE);
        own.filter_map(|(.., row)| graph.roots.rows.get(*row as usize)).map(|root| root.object).collect()
    }

    fn is_shared(&self, object: &ObjectIndex) -> bool {
        self.holders.get(object).is_some_and(|threads| threads.len() > 1)
    }

    /// Returns the monitor that a BLOCKED thread waits to enter.
    fn entered_monitor(&self, thread: ObjectIndex) -> Option<ObjectIndex> {
        let mut found = self.locals(thread, 0);
        found.retain(|object| *object != thread);
        for is_likely in [&|object: &ObjectIndex| self.monitors.contains(object), &|object: &ObjectIndex| {
            self.is_shared(object)
        }] as [&dyn Fn(&ObjectIndex) -> bool; 2]
        {
            if found.iter().any(is_likely) {
                found.retain(is_likely);
            }
        }
        found.pop()
    }

    /// Returns the monitor on which a thread waits to be notified: the receiver of `Object.wait`.
    fn notifying_monitor(&self, thread: ObjectIndex) -> Option<ObjectIndex> {
        let frames = self.threads.frames_of(thread);
        let waiting = frames.take_while(|frame| {
            frame.class.as_deref() == Some("java.lang.Object")
                && frame.method.as_deref().is_some_and(|method| method.starts_with("wait"))
        });
        (0u32..).zip(waiting).find_map(|(depth, _)| self.locals(thread, depth).into_iter().next())
    }

    /// Returns the owner of a monitor: the only thread that has it on its stack and does not wait for it. Of several, the only
    /// one that has it in a frame of the method that a waiting thread is about to enter.
    fn owner(&self, monitor: ObjectIndex, waiters: &[ObjectIndex]) -> Option<ObjectIndex> {
        let others = self.holders.get(&monitor)?.iter().copied();
        let waiting: FxHashSet<ObjectIndex> = waiters.iter().copied().collect();
        let mut others: Vec<ObjectIndex> = others
            .filter(|thread| !waiting.contains(thread) && self.notifying_monitor(*thread) != Some(monitor))
            .collect();
        if others.len() > 1 {
            let method = |frame: &Frame| (frame.class.clone(), frame.method.clone());
            let innermost = waiters.iter().filter_map(|thread| self.threads.frames_of(*thread).next());
            let entered: FxHashSet<_> = innermost.map(|frame| method(&frame)).collect();
            others.retain(|thread| {
                let frames = (0u32..).zip(self.threads.frames_of(*thread).take(MAX_SEARCHED));
                let mut inside = frames.filter(|(_, frame)| entered.contains(&method(frame)));
                inside.any(|(depth, _)| self.locals(*thread, depth).contains(&monitor))
            });
        }
        if let [owner] = others[..] { Some(owner) } else { None }
    }
}

/// Returns the class and field that refer to a lock. Objects of java.util.concurrent.locks in between are skipped: the field
/// `sync` of a ReentrantLock names nothing.
fn field_of_lock(edges: &Edges<'_>, lock: ObjectIndex) -> Option<String> {
    let graph = edges.dump.graph;
    let mut object = lock;
    for _ in 0..MAX_HOPS {
        let mut inner = None;
        for holder in graph.referrers(object).take(MAX_REFERRERS) {
            let holding = edges.holding(holder, object);
            let named = holding.meanings.iter().find_map(|kind| match kind {
                ReferenceKind::Field { name, class } => Some((*class, *name)),
                ReferenceKind::Static(name) => {
                    let class = edges.class_of_class_object(holder)?;
                    Some((edges.dump.summary.class_name(edges.dump.summary.class(class)?), *name))
                }
                _ => None,
            });
            match named {
                Some((class, _)) if class.starts_with(LOCKS) => inner = inner.or(Some(holder)),
                // A thread refers to a lock because it waits for it.
                Some(("java.lang.Thread", _)) | None => {}
                // Captured by a lambda expression.
                Some((class, _)) if class.contains("$$Lambda") => {}
                Some((class, field)) => return Some(format!("{class}.{field}")),
            }
        }
        object = inner?;
    }
    None
}
