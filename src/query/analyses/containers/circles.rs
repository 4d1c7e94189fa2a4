//! Types of nodes: types on a short circle of references from type to type.
//!
//! In large programs nearly all types are in one strongly connected component, so components are not informative. A node is
//! recognized by the shortest circle through its type: at most [`MAX_CIRCLE`] references long, along types none of which has a
//! shorter one. Neighbours that share such a circle are one structure (Marron and others, "Abstracting Runtime Heaps for
//! Program Understanding", 2012, call them recursive regions and find them by declared types, which dumps lack).

use std::cell::Cell;

use rustc_hash::{FxHashMap, FxHashSet};

/// Maximum number of references of a circle.
const MAX_CIRCLE: usize = 4;
/// Maximum number of types followed from one type, most frequent first. Bounds the search in hostile dumps.
const MAX_TARGETS: usize = 64;
/// Maximum number of types visited in one search.
const MAX_VISITED: usize = 1 << 10;
/// Maximum total number of references followed in all searches.
const MAX_VISITS: usize = 1 << 28;

/// Counts of references from type to type.
#[derive(Debug, Default)]
pub(super) struct TypeGraph {
    targets: FxHashMap<u32, Vec<u32>>,
    /// Number of references followed so far. At [`MAX_VISITS`], searches end without a result, for hostile dumps.
    visits: Cell<usize>,
}

impl TypeGraph {
    /// Creates the graph of references and their counts.
    pub(super) fn new(edges: impl IntoIterator<Item = ((u32, u32), u64)>) -> Self {
        let mut counted: FxHashMap<u32, Vec<(u64, u32)>> = FxHashMap::default();
        for ((from, to), count) in edges {
            counted.entry(from).or_default().push((count, to));
        }
        let targets = counted.into_iter().map(|(from, mut to)| {
            to.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
            to.truncate(MAX_TARGETS);
            (from, to.into_iter().map(|(_, to)| to).collect())
        });
        Self { targets: targets.collect(), visits: Cell::new(0) }
    }

    /// Returns the types that a type refers to, most frequent first.
    pub(super) fn targets(&self, from: u32) -> &[u32] {
        self.targets.get(&from).map_or(&[], Vec::as_slice)
    }

    /// Returns all types that refer to others, ascending.
    fn types(&self) -> Vec<u32> {
        let mut types: Vec<u32> = self.targets.keys().copied().collect();
        types.sort_unstable();
        types
    }

    /// Returns the length of the shortest path between two types along types for which `is_allowed` is true; `None` if it is
    /// longer than `most`.
    fn distance(&self, from: u32, to: u32, most: usize, is_allowed: impl Fn(u32) -> bool) -> Option<usize> {
        let (mut seen, mut last) = (FxHashSet::default(), vec![from]);
        for length in 1..=most {
            if self.visits.get() > MAX_VISITS {
                return None;
            }
            let mut next = Vec::new();
            for target in last.iter().flat_map(|at| self.targets(*at)).copied() {
                self.visits.set(self.visits.get() + 1);
                if target == to {
                    return Some(length);
                }
                if seen.len() < MAX_VISITED && is_allowed(target) && seen.insert(target) {
                    next.push(target);
                }
            }
            last = next;
        }
        None
    }

    /// Returns the number of the structure of each node type: the smallest type in the structure.
    pub(super) fn structures(&self) -> FxHashMap<u32, u32> {
        let types = self.types();
        let circles: FxHashMap<u32, usize> = types
            .iter()
            .filter_map(|at| Some((*at, self.distance(*at, *at, MAX_CIRCLE, |_| true)?)))
            .collect();
        let circle = |at: u32| circles.get(&at).copied();
        // No type on the circle has a shorter circle of its own.
        let is_node = |at: &u32| {
            circle(*at).is_some_and(|own| {
                let is_allowed = |other| circle(other).is_some_and(|other| other >= own);
                self.distance(*at, *at, own, is_allowed).is_some()
            })
        };
        let nodes: Vec<u32> = types.into_iter().filter(is_node).collect();
        let mut parents: FxHashMap<u32, u32> = nodes.iter().map(|at| (*at, *at)).collect();
        for from in &nodes {
            for to in self.targets(*from).iter().filter(|to| *to != from && circles.contains_key(to)) {
                if !parents.contains_key(to) {
                    continue;
                }
                // Types that refer to themselves stay apart even if they refer to each other: lists of maps of lists
                // are not one structure.
                let (own, other) = (circle(*from).unwrap_or(0), circle(*to).unwrap_or(0));
                let most = own.max(other);
                if own > 1 && other > 1 && self.distance(*to, *from, most - 1, |_| true).is_some() {
                    let (a, b) = (find(&mut parents, *from), find(&mut parents, *to));
                    parents.insert(a.max(b), a.min(b));
                }
            }
        }
        nodes.into_iter().map(|at| (at, find(&mut parents, at))).collect()
    }
}

/// Returns the smallest type in the structure of a type: union-find with path halving.
pub(super) fn find(parents: &mut FxHashMap<u32, u32>, at: u32) -> u32 {
    let mut here = at;
    loop {
        let above = parents.get(&here).copied().unwrap_or(here);
        if above == here {
            return here;
        }
        let next = parents.get(&above).copied().unwrap_or(above);
        parents.insert(here, next);
        here = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn structures(edges: &[(u32, u32)]) -> Vec<(u32, u32)> {
        let graph = TypeGraph::new(edges.iter().map(|edge| (*edge, 3)));
        let mut all: Vec<(u32, u32)> = graph.structures().into_iter().collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn a_type_that_refers_to_itself_is_a_node() {
        assert_eq!(structures(&[(1, 1), (1, 2), (2, 3)]), [(1, 1)]);
    }

    #[test]
    fn types_that_take_turns_are_one_structure() {
        assert_eq!(structures(&[(1, 2), (2, 1), (2, 3)]), [(1, 1), (2, 1)]);
    }

    #[test]
    fn a_long_way_round_is_no_structure() {
        assert_eq!(structures(&[(1, 2), (2, 3), (3, 4), (4, 5), (5, 1)]), []);
    }

    #[test]
    fn who_is_on_a_circle_only_by_way_of_a_shorter_one_is_no_node() {
        // 2 refers to itself; 1 is on a circle only with it.
        assert_eq!(structures(&[(2, 2), (1, 2), (2, 1)]), [(2, 2)]);
    }

    #[test]
    fn collections_that_contain_one_another_are_two_structures() {
        assert_eq!(structures(&[(1, 1), (1, 2), (2, 1), (2, 2)]), [(1, 1), (2, 2)]);
    }

    #[test]
    fn a_million_types_in_one_circle_end_soon() {
        let edges: Vec<(u32, u32)> = (0..1_000_000).map(|at| (at, (at + 1) % 1_000_000)).collect();
        assert_eq!(structures(&edges), []);
    }

    #[test]
    fn types_that_all_refer_to_one_another_end_soon() {
        let edges: Vec<(u32, u32)> = (0..1000).flat_map(|a| (0..1000).map(move |b| (a, b))).collect();
        assert!(!structures(&edges).is_empty());
    }
}
