//! GC roots as objects.
//!
//! A root that belongs to a thread (java frame, JNI local, native stack, thread block) is a reference of
//! the Thread object, so that a thread retains its locals; if no root states that the thread is running,
//! it is a root like any other. If a dump has no sticky classes, the boot loader's classes are assumed to
//! be roots. Roots whose object is missing from the dump are counted.

use crate::graph::numbers::ObjectIndex;
use crate::storage::id_map::IdMap;
use hprof_values::{RootKind, TraceSerial};

use super::address_index::AddressIndex;
use crate::model::summary::Summary;
use crate::model::tables::{NONE, RootRow};

/// A GC root whose object is in the dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GcRoot {
    /// Object index.
    pub object: ObjectIndex,
    /// Kind of the root.
    pub kind: RootKind,
    /// Serial number of the thread, for kinds that have one.
    pub thread_serial: Option<u32>,
    /// Object index of that thread, if known.
    pub thread: Option<ObjectIndex>,
    /// Frame number in the thread's stack trace, if the root has one.
    pub frame: Option<u32>,
    /// `true` if it counts as a reference of its thread instead of as a root.
    pub is_local: bool,
    /// `true` if it is assumed rather than stated: a boot loader's class in a dump without sticky
    /// classes.
    pub is_assumed: bool,
}

impl GcRoot {
    /// Returns `true` if the root is on a thread's stack, whether or not that thread is known.
    pub fn is_of_stack(&self) -> bool {
        is_of_thread(self.kind)
    }
}

/// All GC roots whose objects are in the dump, and counts of the others.
#[derive(Debug, Default)]
pub struct Roots {
    /// Roots in file order; assumed ones last.
    pub rows: Vec<GcRoot>,
    /// Number of roots whose object is not in the dump, excluding roots with object ID 0.
    pub missing_objects: u64,
    /// Number of roots whose thread is not in the dump, so that they count as roots of their own.
    pub missing_threads: u64,
    /// `true` if the boot loader's classes were made roots because the dump has no sticky class.
    pub boot_classes_assumed: bool,
    /// Threads, ascending by serial number: serial number, object index, and serial number of the stack
    /// trace.
    threads: Vec<(u32, ObjectIndex, TraceSerial)>,
}

/// Returns `true` if roots of this kind are references of their thread.
fn is_of_thread(kind: RootKind) -> bool {
    matches!(kind, RootKind::JavaFrame | RootKind::JniLocal | RootKind::NativeStack | RootKind::ThreadBlock)
}

impl Roots {
    /// Returns the maximum memory for finding the objects of all roots, in bytes: rows, threads by serial
    /// number, and the result of [`Roots::objects`] or [`Roots::locals`].
    pub(crate) fn bytes(summary: &Summary) -> u64 {
        const OF_A_THREAD: u64 = 48;
        const OF_A_PAIR: u64 = 8;
        let roots = summary.roots();
        let is_thread = |row: &&RootRow| row.kind == RootKind::ThreadObject.tag();
        let threads = roots.iter().filter(is_thread).count() + summary.tables().threads.len();
        (roots.len() as u64)
            .saturating_mul(size_of::<GcRoot>() as u64 + OF_A_PAIR)
            .saturating_add((threads as u64).saturating_mul(OF_A_THREAD))
    }

    /// Finds the objects of all roots.
    pub(crate) fn new(summary: &Summary, addresses: &AddressIndex) -> Self {
        let mut threads: Vec<(u32, ObjectIndex, TraceSerial)> = (summary.tables().threads.iter())
            .filter_map(|row| Some((row.serial.get(), addresses.index_of(row.id.into())?, row.trace.into())))
            .collect();
        let started = threads.len();
        for row in summary.roots() {
            if row.kind == RootKind::ThreadObject.tag()
                && let Some(object) = addresses.index_of(row.id.into())
            {
                threads.push((row.thread.get(), object, row.frame.into()));
            }
        }
        // A thread known only from a START THREAD record need not be reachable; neither would the objects
        // on its stack be.
        let running: IdMap<u32, ()> =
            threads.iter().skip(started).map(|(serial, ..)| (*serial, ())).collect();
        // The heap dump itself takes precedence over START THREAD records, of which a serial number can
        // have several.
        threads.rotate_left(started);
        threads.sort_by_key(|(serial, ..)| *serial);
        threads.dedup_by_key(|(serial, ..)| *serial);
        let by_serial: IdMap<u32, ObjectIndex> =
            threads.iter().map(|(serial, object, _)| (*serial, *object)).collect();
        let rows = Vec::with_capacity(summary.roots().len());
        let mut roots = Self { rows, threads, ..Self::default() };
        let mut sticky = false;
        for row in summary.roots() {
            let Some(kind) = RootKind::from_tag(row.kind) else { continue };
            // Android lists unreachable objects among the roots.
            if kind == RootKind::Unreachable {
                continue;
            }
            sticky |= kind == RootKind::StickyClass;
            let Some(object) = addresses.index_of(row.id.into()) else {
                roots.missing_objects += u64::from(row.id.get() != 0);
                continue;
            };
            let thread_serial = Some(row.thread.get()).filter(|serial| *serial != NONE);
            let thread = thread_serial.and_then(|serial| by_serial.get(&serial).copied());
            let of_thread = is_of_thread(kind);
            if of_thread && thread.is_none() {
                roots.missing_threads += 1;
            }
            let in_frame = matches!(kind, RootKind::JavaFrame | RootKind::JniLocal);
            roots.rows.push(GcRoot {
                object,
                kind,
                thread_serial,
                thread,
                frame: Some(row.frame.get()).filter(|frame| in_frame && *frame != NONE),
                is_local: of_thread && thread_serial.is_some_and(|serial| running.contains_key(&serial)),
                is_assumed: false,
            });
        }
        if !sticky {
            roots.assume_boot_classes(summary, addresses);
        }
        roots
    }

    fn assume_boot_classes(&mut self, summary: &Summary, addresses: &AddressIndex) {
        let boot = summary.classes().iter().filter(|class| class.is_dumped() && class.loader.get() == 0);
        let objects: Vec<ObjectIndex> =
            boot.filter_map(|class| addresses.index_of(class.id.into())).collect();
        // Avoids doubling the capacity.
        self.rows.reserve_exact(objects.len());
        let rows = objects.into_iter().map(|object| GcRoot {
            object,
            kind: RootKind::StickyClass,
            thread_serial: None,
            thread: None,
            frame: None,
            is_local: false,
            is_assumed: true,
        });
        self.rows.extend(rows);
        self.boot_classes_assumed = self.rows.last().is_some_and(|row| row.is_assumed);
    }

    /// Returns the objects that are roots by themselves, ascending, without duplicates.
    pub fn objects(&self) -> Vec<ObjectIndex> {
        let mut objects: Vec<ObjectIndex> =
            self.rows.iter().filter(|row| !row.is_local).map(|row| row.object).collect();
        objects.sort_unstable();
        objects.dedup();
        objects
    }

    /// Returns the pairs of thread and object of roots that count as references of their thread,
    /// ascending, without duplicates.
    pub fn locals(&self) -> Vec<(ObjectIndex, ObjectIndex)> {
        let locals = self.rows.iter().filter(|row| row.is_local);
        let mut pairs: Vec<(ObjectIndex, ObjectIndex)> =
            locals.filter_map(|row| Some((row.thread?, row.object))).collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }

    /// Returns the serial number of the stack trace of the thread with this serial number.
    pub fn trace_of_thread(&self, serial: u32) -> Option<TraceSerial> {
        let at = self.threads.binary_search_by_key(&serial, |(serial, ..)| *serial).ok()?;
        self.threads.get(at).map(|(.., trace)| *trace)
    }
}
