//! Roots at which paths start.

use crate::objects::strength::Exclusions;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::objects::gc_roots::GcRoot;

use crate::objects::root_index::RootIndex;

/// Selection of roots at which paths start. Objects on a thread's stack have roots of kind java frame, JNI local,
/// native stack or thread block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartRoots {
    /// All roots.
    All,
    /// Objects that are roots for a reason other than a thread's stack.
    BeyondFrames,
    /// Objects held by a thread's stack.
    Frames,
}

/// Roots at which paths start.
#[derive(Debug)]
pub(crate) struct Starts<'e, 'a> {
    roots: &'e RootIndex<'a>,
    /// Objects, ascending.
    objects: Vec<ObjectIndex>,
    /// Threads whose stacks hold some of the objects, ascending.
    threads: Vec<ObjectIndex>,
}

impl<'e, 'a> Starts<'e, 'a> {
    /// Selects the roots that are not `excluded`.
    pub(crate) fn new(roots: &'e RootIndex<'a>, excluded: Exclusions, which: StartRoots) -> Self {
        let is_wanted = |root: &GcRoot| {
            !excluded.contains_root(root.kind)
                && match which {
                    StartRoots::All => true,
                    StartRoots::BeyondFrames => !root.is_of_stack(),
                    StartRoots::Frames => root.is_of_stack(),
                }
        };
        Self { roots, objects: roots.objects_of(is_wanted), threads: roots.threads_of(is_wanted) }
    }

    /// Returns whether paths start at an object.
    #[inline]
    pub(crate) fn contains(&self, object: ObjectIndex) -> bool {
        self.roots.contains(object) && self.objects.binary_search(&object).is_ok()
    }

    /// Returns the objects, ascending, without duplicates.
    pub(crate) fn objects(&self) -> &[ObjectIndex] {
        &self.objects
    }

    /// Returns the threads whose stacks hold some of the objects, ascending, without duplicates.
    pub(crate) fn threads(&self) -> &[ObjectIndex] {
        &self.threads
    }
}
