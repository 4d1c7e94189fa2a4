//! Retained size of each class, and of each group of classes.

use hprof_index::model::summary::ClassNumber;
use hprof_index::model::tables::NONE;
use hprof_index::{DumpGraph, ObjectGraph};

use super::class_pass::pass;

/// Maximum number of superclasses to which the retained size of a class is added. Chains in a JVM have a few dozen classes;
/// malicious dumps have more.
const MAX_SUPERCLASSES: usize = 64;

/// Returns the retained size of each group of objects. `of_class` maps a class number to the group of the class, or [`NONE`].
///
/// Whatever an object dominates belongs to the object. So the retained size of a group is the sum over those of its
/// objects that no other object of the group dominates.
pub fn retained(graph: &ObjectGraph, of_class: &[u32], groups: usize) -> Vec<u64> {
    let mut classes = ClassPass::new(groups);
    let group = |_, class: u32| of_class.get(class as usize).copied().unwrap_or(NONE);
    pass(graph, graph.tree.positions(), group, |_, depth, group, bytes| {
        classes.object(depth, [group], bytes)
    });
    classes.close(0);
    classes.retained
}

/// Returns the retained size of each group of objects, where an object also belongs to the groups of all superclasses of its
/// class.
pub fn retained_with_subclasses(dump: &DumpGraph<'_>, of_class: &[u32], groups: usize) -> Vec<u64> {
    let mut classes = ClassPass::new(groups);
    // By class number: the nearest class, itself included, that has a group, and that group.
    let table = dump.summary.class_table();
    let nearest = table.derive(|class, above: Option<&Option<(ClassNumber, u32)>>| {
        let own = of_class.get(class.0 as usize).copied().filter(|group| *group != NONE);
        own.map(|group| (class, group)).or_else(|| above.copied().flatten())
    });
    let nearest_of = |class: ClassNumber| nearest.get(class.0 as usize).copied().flatten();
    pass(
        dump.graph,
        dump.graph.tree.positions(),
        |_, class| class,
        |_, depth, class, bytes| {
            let above = |(class, _): &(ClassNumber, u32)| nearest_of(table.superclass(*class)?);
            let chain = std::iter::successors(nearest_of(ClassNumber(class)), above).take(MAX_SUPERCLASSES);
            classes.object(depth, chain.map(|(_, group)| group), bytes);
        },
    );
    classes.close(0);
    classes.retained
}

/// State of a pass over the tree that sums up retained sizes by group.
struct ClassPass {
    retained: Vec<u64>,
    /// Groups with an object that dominates the current one.
    is_open: Vec<bool>,
    /// The outermost objects of each group: depth, group, shallow bytes of all objects before.
    open: Vec<(u32, u32, u64)>,
    /// Shallow bytes of all objects so far.
    bytes: u64,
}

impl ClassPass {
    fn new(groups: usize) -> Self {
        Self { retained: vec![0; groups], is_open: vec![false; groups], open: Vec::new(), bytes: 0 }
    }

    /// Processes the next object, which belongs to the given groups.
    #[inline]
    fn object(&mut self, depth: u32, groups: impl IntoIterator<Item = u32>, shallow_bytes: u64) {
        // Mostly there is nothing to close.
        if self.open.last().is_some_and(|(open, ..)| *open >= depth) {
            self.close(depth);
        }
        for group in groups {
            if let Some(is_open) = self.is_open.get_mut(group as usize)
                && !*is_open
            {
                *is_open = true;
                self.open.push((depth, group, self.bytes));
            }
        }
        self.bytes = self.bytes.saturating_add(shallow_bytes);
    }

    /// Ends the subtrees of objects at this depth and below.
    fn close(&mut self, depth: u32) {
        while let Some((_, group, before)) = self.open.pop_if(|(open, ..)| *open >= depth) {
            if let Some(retained) = self.retained.get_mut(group as usize) {
                *retained = retained.saturating_add(self.bytes - before);
            }
            if let Some(is_open) = self.is_open.get_mut(group as usize) {
                *is_open = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_objects_of_a_group_count_once() {
        let mut classes = ClassPass::new(3);
        // 0: a(10) holds b(1), which holds a(2) and c(4); then b(100).
        for (depth, group, bytes) in [(0, 0, 10), (1, 1, 1), (2, 0, 2), (2, 2, 4), (0, 1, 100), (0, NONE, 5)]
        {
            classes.object(depth, [group], bytes);
        }
        classes.close(0);
        assert_eq!(classes.retained, [17, 107, 4]);
    }
}
