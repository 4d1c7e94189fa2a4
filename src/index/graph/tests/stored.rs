//! The stored tree compared with a naive one.

use super::definition::{Dominator, Naive};
use super::{Graph, RandomNumbers, arena, weights_by};
use crate::graph::numbers::{ObjectIndex, TreePosition};
use crate::graph::order::{OrderedTree, Weights};
use crate::graph::tree::Tree;
use crate::graph::tree_columns::Columns;
use crate::storage::bit_packed::packed_column;
use crate::storage::scratch::{Array, ScratchArena};

/// Returns the tree of an order as it is after writing and reading.
pub(super) fn stored(order: &OrderedTree, weights: &Weights) -> Tree {
    let Columns { ends, ends_apart, sizes, sizes_apart, blocks, least: [first, second], reachable_bytes } =
        Columns::new(&arena(1 << 30).1, order, weights.view()).unwrap();
    let tree = Tree {
        reachable: order.reachable,
        objects: u32::try_from(order.nodes.len()).unwrap(),
        unit: weights.unit,
        order: packed_column(&order.nodes),
        positions: packed_column(&order.positions),
        ends: packed_column(&ends),
        ends_apart: ends_apart.into(),
        sizes: packed_column(&sizes),
        sizes_apart: sizes_apart.into(),
        blocks: blocks.into(),
        least: [first.into(), second.into()],
    };
    assert_eq!(tree.reachable_bytes(), reachable_bytes);
    tree
}

/// Compares the results of all queries on the tree of a small graph.
pub(super) fn check_stored(graph: &Graph, order: &OrderedTree, weights: &Weights, dominators: &[Dominator]) {
    let tree = stored(order, weights);
    let naive = Naive::new(graph, dominators);
    let parents: Vec<Option<u32>> = (naive.nodes.iter().take(naive.reachable as usize))
        .map(|node| match dominators[*node as usize] {
            Dominator::Node(above) => Some(order.positions[above as usize]),
            _ => None,
        })
        .collect();
    let units: Vec<u64> = naive.nodes.iter().map(|node| graph.weights[*node as usize]).collect();
    assert_eq!(tree.objects(), graph.len());
    // Sums that overflow saturate: then differences are meaningless.
    let fits = units.iter().map(|units| u128::from(*units) * 8).sum::<u128>() < u128::from(u64::MAX);
    for (position, node) in (0u32..).zip(&naive.nodes) {
        let reachable = position < naive.reachable;
        let (at, object) = (TreePosition(position), ObjectIndex(*node));
        assert_eq!(tree.position(object), Some(at));
        assert_eq!(tree.reachable_position(object), reachable.then_some(at));
        assert_eq!(tree.object_at(at), Some(object));
        if reachable && fits {
            assert_eq!(
                tree.retained_bytes(TreePosition(position)),
                naive.retained[*node as usize] * 8,
                "of {node}"
            );
            assert_eq!(tree.retained_objects(TreePosition(position)), naive.counts[*node as usize]);
        }
    }
    assert!(
        tree.objects_at(TreePosition(0)..TreePosition(graph.len())).eq(naive
            .nodes
            .iter()
            .copied()
            .map(ObjectIndex))
    );
    for nowhere in [graph.len(), graph.len() + 64, u32::MAX] {
        assert_eq!(
            (tree.position(ObjectIndex(nowhere)), tree.object_at(TreePosition(nowhere))),
            (None, None),
            "{nowhere}"
        );
    }
    ParentForest::of(parents).check(&tree, &units, 8, u32::MAX);
}

/// A forest: the parent's position by position in preorder.
struct ParentForest {
    parents: Vec<Option<u32>>,
    ends: Vec<u32>,
    depths: Vec<u32>,
}

impl ParentForest {
    fn of(parents: Vec<Option<u32>>) -> Self {
        let mut ends: Vec<u32> = (1..=u32::try_from(parents.len()).unwrap()).collect();
        let mut depths = vec![0; parents.len()];
        for (position, parent) in parents.iter().enumerate() {
            depths[position] = parent.map_or(0, |parent| depths[parent as usize] + 1);
        }
        for (position, parent) in parents.iter().enumerate().rev() {
            if let Some(parent) = parent {
                ends[*parent as usize] = ends[*parent as usize].max(ends[position]);
            }
        }
        Self { parents, ends, depths }
    }

    fn len(&self) -> u32 {
        u32::try_from(self.parents.len()).unwrap()
    }

    /// Returns an order in which node numbers differ from positions, with `lost` unreachable nodes.
    fn order(&self, arena: &ScratchArena, lost: u32) -> OrderedTree {
        let all = self.len() + lost;
        let array = |number: &dyn Fn(u32) -> u32| {
            let mut array: Array<u32> = arena.array(all as usize).unwrap();
            (0u32..).zip(array.iter_mut()).for_each(|(at, place)| *place = number(at));
            array
        };
        let flip = |at: u32| if at < self.len() { self.len() - 1 - at } else { at };
        let end = |at: u32| self.ends.get(at as usize).copied().unwrap_or(0xDEAD);
        OrderedTree { positions: array(&flip), nodes: array(&flip), ends: array(&end), reachable: self.len() }
    }

    /// Compares a tree of this shape; `units` are the weights by position. At most `most` siblings of each
    /// position are compared.
    fn check(&self, tree: &Tree, units: &[u64], unit: u64, most: u32) {
        let mut before = Vec::with_capacity(units.len() + 1);
        before.push(0u64);
        units.iter().for_each(|units| {
            before.push(before[before.len() - 1].saturating_add(units.saturating_mul(unit)))
        });
        let mut ending = vec![0u64; self.parents.len()];
        self.ends.iter().for_each(|end| ending[*end as usize - 1] += 1);
        let mut first: Vec<Vec<u32>> = vec![Vec::new(); self.parents.len()];
        let mut top = Vec::new();
        let (mut counts, mut top_count) = (vec![0u32; self.parents.len()], 0u32);
        assert_eq!((tree.reachable(), tree.reachable_bytes()), (self.len(), before[self.parents.len()]));
        for (position, parent) in (0u32..).zip(&self.parents) {
            let (at, end) = (position as usize, self.ends[position as usize]);
            assert_eq!(tree.depth(TreePosition(position)), self.depths[at], "depth at {position}");
            assert_eq!(tree.end(TreePosition(position)), TreePosition(end), "end of {position}");
            assert_eq!(
                tree.dominator(TreePosition(position)),
                parent.map(TreePosition),
                "dominator of {position}"
            );
            assert_eq!(tree.ends_after(TreePosition(position)), ending[at], "ends behind {position}");
            assert_eq!(tree.retained_objects(TreePosition(position)), end - position);
            assert_eq!(
                tree.retained_bytes(TreePosition(position)),
                before[end as usize] - before[at],
                "bytes of {position}"
            );
            *parent.map_or(&mut top_count, |parent| &mut counts[parent as usize]) += 1;
            let siblings = parent.map_or(&mut top, |parent| &mut first[parent as usize]);
            if siblings.len() < most as usize {
                siblings.push(position);
            }
        }
        assert!(tree.ends(TreePosition(0)..TreePosition(self.len())).eq(ending.iter().copied()));
        for (position, units) in (0u32..).zip(units) {
            assert_eq!(
                tree.shallow_bytes(TreePosition(position)),
                units.saturating_mul(unit),
                "shallow at {position}"
            );
            assert_eq!(
                tree.bytes_before(TreePosition(position)),
                before[position as usize],
                "bytes before {position}"
            );
        }
        for (position, count) in (0u32..).zip(&counts) {
            let below = TreePosition(position + 1)..TreePosition(self.ends[position as usize]);
            let depth = self.depths[position as usize] + 1;
            assert_eq!(tree.count_to_depth(below, depth), *count, "number of children of {position}");
        }
        assert_eq!(tree.count_to_depth(tree.positions(), 0), top_count);
        for (position, first) in (0u32..).zip(&first) {
            assert!(
                tree.children(TreePosition(position))
                    .take(most as usize)
                    .eq(first.iter().copied().map(TreePosition)),
                "children of {position}"
            );
        }
        assert!(tree.top().take(most as usize).eq(top.into_iter().map(TreePosition)), "top");
        self.check_dominates(tree);
    }

    fn check_dominates(&self, tree: &Tree) {
        let mut numbers = RandomNumbers(u64::from(self.len()));
        for _ in 0..if self.len() == 0 { 0 } else { 2000 } {
            let position = numbers.below(self.len());
            let ancestor = match numbers.below(3) {
                // An ancestor, at some distance.
                0 => {
                    let up = |at: &u32| self.parents[*at as usize];
                    let steps = numbers.below(1000) as usize;
                    std::iter::successors(Some(position), up).take(steps + 1).last().unwrap()
                }
                1 => self.parents[position as usize].map_or(position, |parent| parent + 1),
                _ => numbers.below(self.len()),
            };
            let inside = ancestor <= position && position < self.ends[ancestor as usize];
            assert_eq!(
                tree.dominates(TreePosition(ancestor), TreePosition(position)),
                inside,
                "{ancestor} and {position}"
            );
        }
    }
}

/// More positions than three levels of blocks cover.
const LARGE: u32 = 64 * 64 * 64 + 64 * 64 + 77;

fn check_shape(name: &str, parents: Vec<Option<u32>>, unit: u64, lost: u32) {
    let shape = ParentForest::of(parents);
    let all = shape.len() + lost;
    let (_dir, arena) = arena(1 << 30);
    let order = shape.order(&arena, lost);
    let by_position: Vec<u64> = (0..all)
        .map(|at| match at % 97 {
            0 => 0,
            1 => 254 + u64::from(at) % 3,
            2 => u64::from(at) << 12,
            _ => u64::from(at) % 7 + 1,
        })
        .collect();
    let mut by_node = vec![0; all as usize];
    (by_position.iter().zip(order.nodes.iter())).for_each(|(units, node)| by_node[*node as usize] = *units);
    let tree = stored(&order, &weights_by(&by_node, unit));
    assert_eq!(tree.objects(), all, "{name}");
    for node in [0, 1, shape.len() / 2, shape.len() - 1, all - 1] {
        let (object, position) = (ObjectIndex(node), TreePosition(order.positions[node as usize]));
        assert_eq!(
            (tree.position(object), tree.object_at(position)),
            (Some(position), Some(object)),
            "{name}"
        );
        assert_eq!(tree.reachable_position(object), Some(position).filter(|_| node < shape.len()), "{name}");
    }
    shape.check(&tree, &by_position, unit, 300);
}

#[test]
fn a_chain_is_kept() {
    check_shape("chain", (0..LARGE).map(|at| at.checked_sub(1)).collect(), 8, 0);
}

#[test]
fn a_star_is_kept() {
    check_shape("star", (0..LARGE).map(|at| (at > 0).then_some(0)).collect(), 1, 100);
    check_shape("flat", vec![None; LARGE as usize], 16, 1);
}

#[test]
fn a_comb_is_kept() {
    // A spine of even positions, with a leaf each; and one whose leaves come last, consecutively.
    let early = (0..LARGE).map(|at| if at % 2 == 0 { at.checked_sub(2) } else { Some(at - 1) });
    check_shape("comb", early.collect(), 8, 3);
    let half = LARGE / 2;
    let late = (0..2 * half).map(|at| if at < half { at.checked_sub(1) } else { Some(2 * half - 1 - at) });
    check_shape("comb, leaves last", late.collect(), 8, 0);
}

#[test]
fn chains_side_by_side_are_kept() {
    // Numbers of subtrees that end at once: below, at and above what a byte stores.
    let mut parents = Vec::new();
    for length in (1..700u32).chain([253, 254, 255, 256, 64 * 64, 64 * 64 * 64, 1, 65_536]) {
        let first = u32::try_from(parents.len()).unwrap();
        parents.extend((first..first + length).map(|at| (at > first).then(|| at - 1)));
    }
    check_shape("chains", parents, 8, 65);
}

/// Returns a tree in preorder, in which the parent of each node is one of the last `window` nodes before it.
fn random_tree(nodes: u32, window: u32, tops: u32, numbers: &mut RandomNumbers) -> Vec<Option<u32>> {
    let mut children: Vec<Vec<u32>> = vec![Vec::new(); nodes as usize + 1];
    for node in 0..nodes {
        let parent = if node == 0 || numbers.below(nodes) < tops {
            nodes
        } else {
            node - 1 - numbers.below(node.min(window))
        };
        children[parent as usize].push(node);
    }
    let mut parents = Vec::new();
    let mut open: Vec<(u32, Option<u32>)> =
        children[nodes as usize].iter().rev().map(|node| (*node, None)).collect();
    while let Some((node, parent)) = open.pop() {
        let position = u32::try_from(parents.len()).unwrap();
        parents.push(parent);
        open.extend(children[node as usize].iter().rev().map(|child| (*child, Some(position))));
    }
    parents
}

#[test]
fn random_trees_are_kept() {
    let mut numbers = RandomNumbers(7);
    for window in [1, 2, 10, 1000, u32::MAX] {
        check_shape("random", random_tree(LARGE, window, 5, &mut numbers), 8, 10);
    }
    for nodes in (1..200).chain([4095, 4096, 4097, 262_144]) {
        let lost = numbers.among(0..=130);
        let window = numbers.among(1..=8);
        check_shape("random", random_tree(nodes, window, 2, &mut numbers), 8, lost);
    }
}

#[test]
fn an_empty_tree_answers() {
    for tree in
        [Tree::default(), stored(&ParentForest::of(Vec::new()).order(&arena(0).1, 0), &weights_by(&[], 8))]
    {
        assert_eq!((tree.reachable(), tree.objects(), tree.reachable_bytes()), (0, 0, 0));
        assert_eq!(
            (tree.position(ObjectIndex(0)), tree.object_at(TreePosition(0)), tree.dominator(TreePosition(0))),
            (None, None, None)
        );
        assert_eq!(
            (tree.top().count(), tree.depth(TreePosition(0)), tree.shallow_bytes(TreePosition(0))),
            (0, 0, 0)
        );
    }
}
