//! Size of the unreachable part of a dump: garbage that the JVM had not collected yet, or that was included with
//! `-all`.

use crate::dominators::class_counts::{self, Counts};
use crate::histogram::all_bytes;
use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::TreePosition;
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::summary::Summary;
use hprof_index::model::tables::ClassRow;

/// Unreachable bytes are significant above this size, however large the heap is.
const MUCH_BYTES: u64 = 16 << 20;
/// Unreachable bytes are also significant above all bytes divided by this: 5 percent.
const MUCH_PART: u64 = 20;
/// Unreachable bytes are never significant below this size.
const LITTLE_BYTES: u64 = 64 << 10;

/// Size of the unreachable objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreachable {
    /// Shallow bytes of the unreachable objects.
    pub bytes: u64,
    /// Shallow bytes of all objects.
    pub all_bytes: u64,
}

impl Unreachable {
    /// Computes the sizes from the dominator tree, with the fitted layout.
    pub fn new(summary: &Summary, graph: &ObjectGraph) -> Self {
        let all_bytes = all_bytes(summary, &Sizes::new(summary, None));
        Self { bytes: all_bytes.saturating_sub(graph.tree.reachable_bytes()), all_bytes }
    }

    /// Returns the unreachable bytes that are certainly garbage.
    pub fn garbage_bytes(self, filler: Filler) -> u64 {
        self.bytes.saturating_sub(filler.0.shallow_bytes)
    }

    /// Returns whether so much is unreachable that a result about reachable objects has to state it: more than 16 MiB, or more
    /// than 5 percent of all bytes, if these are more than 64 KiB.
    pub fn is_much(self) -> bool {
        self.bytes > MUCH_BYTES || self.bytes > LITTLE_BYTES && self.bytes > self.all_bytes / MUCH_PART
    }
}

/// First JDK whose fillers have classes of their own, but are dumped as int[] (JDK-8284435).
const FIRST_WITH_FILLERS: u32 = 20;
/// Names of the classes of fillers, and of the arrays as which they are dumped.
const FILLERS: [&str; 3] = ["int[]", "jdk.internal.vm.FillerElement[]", "jdk.internal.vm.FillerObject"];

/// Unreachable objects that are garbage or filler, with which the JVM covers unused memory: int[] cannot be told apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Filler(pub Counts);

impl Filler {
    /// Counts the objects; none if the JVM is too old or unknown.
    pub fn new(summary: &Summary, graph: &ObjectGraph) -> Self {
        let is_filler = |class: &ClassRow| FILLERS.iter().any(|name| summary.is_named(class, name));
        let dumps_fillers =
            summary.java_feature_version().is_some_and(|version| version >= FIRST_WITH_FILLERS);
        let unreachable = TreePosition(graph.tree.reachable())..TreePosition(graph.tree.objects());
        if !dumps_fillers || unreachable.is_empty() {
            return Self::default();
        }
        let counts = class_counts::count(graph, unreachable, summary.classes().len());
        let of_fillers = summary.classes().iter().zip(counts).filter(|(class, _)| is_filler(class));
        Self(of_fillers.fold(Counts::default(), |sum, (_, more)| Counts {
            objects: sum.objects + more.objects,
            shallow_bytes: sum.shallow_bytes.saturating_add(more.shallow_bytes),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn much_is_five_percent_or_16_mib() {
        let is_much = |bytes, all_bytes| Unreachable { bytes, all_bytes }.is_much();
        assert!(!is_much(0, 0));
        assert!(!is_much(5 << 20, 100 << 20) && is_much((5 << 20) + 1, 100 << 20));
        assert!(!is_much(64 << 10, 64 << 10) && is_much((64 << 10) + 1, 64 << 10));
        assert!(!is_much(16 << 20, 1 << 40) && is_much((16 << 20) + 1, 1 << 40));
    }
}
