//! Conversion of JVM TI's roots to the GC roots of a heap dump.

use std::sync::Arc;

use hprof_format::heap_binary::Root;
use rustc_hash::FxHashMap;

use crate::jvm::walk::{Reference, ReferenceKind};
use crate::record::traces::{NATIVE, Trace};
use crate::tags::Tag;

/// Thread with its stack, to which roots refer.
#[derive(Debug)]
pub struct RootThread {
    /// Serial number of the thread.
    pub serial: u32,
    /// Serial number of the thread's stack trace.
    pub trace: u32,
    /// Stack trace, if it is known.
    pub stack: Option<Arc<Trace>>,
}

impl RootThread {
    /// Returns `true` if the frame at this depth is a frame of a native method.
    fn is_native(&self, frame: i32) -> bool {
        let place = usize::try_from(frame).ok().and_then(|at| self.stack.as_ref()?.places.get(at));
        place.is_some_and(|place| place.line == NATIVE)
    }
}

/// Threads by object ID.
pub type ThreadRoots = FxHashMap<u64, RootThread>;

/// Data from which the kind of a root is determined.
#[derive(Debug)]
pub struct Roots<'a> {
    /// Threads with their stacks, by object ID.
    pub threads: &'a ThreadRoots,
    /// ID of the thread that writes the dump, whose local references belong to the agent; 0 if it is unknown.
    pub this_thread: u64,
    /// ID of the class object of `java.lang.Class`.
    pub class_class: u64,
}

impl Roots<'_> {
    /// Returns the root for a reference to the object `id`; `None` if the reference is not a root in heap dumps.
    pub fn root(&self, reference: &Reference<'_>, id: u64) -> Option<Root> {
        let thread = |tag: i64| self.threads.get(&Tag(tag).id());
        if let ReferenceKind::JniLocal(tag, frame, of_method) = reference.kind {
            // HotSpot reports references from compiled code as local references of the frame. Only native methods have local
            // references; HotSpot's own dumps omit the others.
            let is_native = !of_method || thread(tag).is_none_or(|thread| thread.is_native(frame));
            let own = self.this_thread != 0 && Tag(tag).id() == self.this_thread;
            if own || !is_native {
                return None;
            }
        }
        let root = match reference.kind {
            ReferenceKind::JniGlobal => Some(Root::JniGlobal(0)),
            // HotSpot reports everything to which the boot loader's data refers: class objects, and arrays of resolved
            // constants.
            ReferenceKind::SystemClass if Tag(reference.class).id() == self.class_class => {
                Some(Root::StickyClass)
            }
            ReferenceKind::Monitor => Some(Root::MonitorUsed),
            // Threads that are not registered are virtual.
            ReferenceKind::StackLocal(tag, frame) => {
                thread(tag).map(|thread| Root::JavaFrame(thread.serial, frame))
            }
            ReferenceKind::JniLocal(tag, frame, _) => {
                thread(tag).map(|thread| Root::JniLocal(thread.serial, frame))
            }
            ReferenceKind::Thread => {
                self.threads.get(&id).map(|thread| Root::Thread(thread.serial, thread.trace))
            }
            _ => None,
        };
        Some(root.unwrap_or(Root::Unknown))
    }
}
