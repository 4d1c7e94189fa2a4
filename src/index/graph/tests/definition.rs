//! Dominators by their definition, computed naively, and the tree that follows from them.

use std::cmp::Reverse;

use super::Graph;
use crate::graph::order::OrderedTree;

/// Immediate dominator of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dominator {
    /// None: the node cannot be reached.
    Unreachable,
    /// The virtual root.
    Roots,
    Node(u32),
}

use Dominator::{Node, Roots, Unreachable};

/// Returns which nodes can be reached when one is removed.
fn reached(graph: &Graph, without: Option<u32>) -> Vec<bool> {
    let mut seen = vec![false; graph.rows.len()];
    let mut open: Vec<u32> = graph.roots.clone();
    while let Some(node) = open.pop() {
        if Some(node) != without && !std::mem::replace(&mut seen[node as usize], true) {
            open.extend(graph.targets(node));
        }
    }
    seen
}

/// Returns the immediate dominator of each node: of all nodes without which it cannot be reached, the one
/// that all others dominate.
pub(super) fn by_definition(graph: &Graph) -> Vec<Dominator> {
    let all = reached(graph, None);
    let nodes = graph.rows.len();
    let mut dominated: Vec<Vec<u32>> = vec![Vec::new(); nodes];
    let mut dominators = vec![0u32; nodes];
    for node in (0..graph.len()).filter(|node| all[*node as usize]) {
        let rest = reached(graph, Some(node));
        for other in (0..graph.len()).filter(|other| *other != node) {
            if all[other as usize] && !rest[other as usize] {
                dominated[node as usize].push(other);
                dominators[other as usize] += 1;
            }
        }
    }
    let mut immediate: Vec<Dominator> =
        all.iter().map(|reached| if *reached { Roots } else { Unreachable }).collect();
    // The dominators of a node form a chain: the immediate one has one dominator fewer than the node.
    for (node, dominated) in (0u32..).zip(&dominated) {
        for other in dominated {
            if dominators[*other as usize] == dominators[node as usize] + 1 {
                immediate[*other as usize] = Node(node);
            }
        }
    }
    immediate
}

/// Returns the immediate dominator of each node of a large graph: moves each node to the nearest common dominator of its
/// predecessors until nothing changes (Cooper, Harvey, Kennedy).
pub(super) fn by_iteration(graph: &Graph) -> Vec<Dominator> {
    let nodes = graph.rows.len();
    let outside = graph.len();
    let rows: Vec<Vec<u32>> =
        (0..outside).map(|node| graph.targets(node).collect()).chain([graph.roots.clone()]).collect();
    let mut sources = vec![Vec::new(); nodes];
    let mut postorder = vec![0usize; nodes + 1];
    let mut order = Vec::new();
    let mut seen = vec![false; nodes + 1];
    seen[nodes] = true;
    let mut open = vec![(outside, 0)];
    while let Some((node, next)) = open.pop() {
        let Some(target) = rows[node as usize].get(next) else {
            postorder[node as usize] = order.len();
            order.push(node);
            continue;
        };
        open.push((node, next + 1));
        sources[*target as usize].push(node);
        if !std::mem::replace(&mut seen[*target as usize], true) {
            open.push((*target, 0));
        }
    }
    // By node; initially the node itself.
    let mut above: Vec<Option<u32>> = vec![None; nodes + 1];
    above[nodes] = Some(outside);
    let mut changed = true;
    while changed {
        changed = false;
        for node in order.iter().rev().skip(1) {
            let mut found: Option<u32> = None;
            for source in sources[*node as usize].iter().filter(|source| above[**source as usize].is_some()) {
                let (mut one, mut other) = (*source, found.unwrap_or(*source));
                while one != other {
                    let lower = if postorder[one as usize] < postorder[other as usize] {
                        &mut one
                    } else {
                        &mut other
                    };
                    *lower = above[*lower as usize].unwrap();
                }
                found = Some(one);
            }
            changed |= found != above[*node as usize];
            above[*node as usize] = found;
        }
    }
    let dominator = |above: &Option<u32>| match above {
        None => Unreachable,
        Some(above) if *above == outside => Roots,
        Some(above) => Node(*above),
    };
    above[..nodes].iter().map(dominator).collect()
}

/// A dominator tree, computed naively.
pub(super) struct Naive {
    /// Retained weight by node.
    pub(super) retained: Vec<u64>,
    pub(super) counts: Vec<u32>,
    /// Nodes in the expected order.
    pub(super) nodes: Vec<u32>,
    pub(super) reachable: u32,
}

impl Naive {
    pub(super) fn new(graph: &Graph, dominators: &[Dominator]) -> Self {
        let nodes = graph.rows.len();
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); nodes + 1];
        for (node, dominator) in (0u32..).zip(dominators) {
            match dominator {
                Unreachable => {}
                Roots => children[nodes].push(node),
                Node(above) => children[*above as usize].push(node),
            }
        }
        // Dominators first.
        let mut walk = Vec::new();
        let mut open = children[nodes].clone();
        while let Some(node) = open.pop() {
            walk.push(node);
            open.extend(&children[node as usize]);
        }
        let (mut retained, mut counts) = (graph.weights.clone(), vec![1u32; nodes]);
        for node in walk.iter().rev() {
            if let Node(above) = dominators[*node as usize] {
                retained[above as usize] = retained[above as usize].saturating_add(retained[*node as usize]);
                counts[above as usize] += counts[*node as usize];
            }
        }
        // If the weight of a node is 0, the number of nodes decides before the node number.
        let weightless = graph.weights.contains(&0);
        let key = |node: &u32| {
            let retained = retained[*node as usize];
            let by_count = weightless || retained == u64::MAX;
            (Reverse(retained), by_count.then_some(Reverse(counts[*node as usize])), *node)
        };
        children.iter_mut().for_each(|children| children.sort_unstable_by_key(key));
        let mut order = Vec::new();
        let mut open: Vec<u32> = children[nodes].iter().rev().copied().collect();
        while let Some(node) = open.pop() {
            order.push(node);
            open.extend(children[node as usize].iter().rev());
        }
        let reachable = u32::try_from(order.len()).unwrap();
        order.extend((0..graph.len()).filter(|node| dominators[*node as usize] == Unreachable));
        Self { retained, counts, nodes: order, reachable }
    }
}

/// Returns the dominators that follow from an order: the innermost of the subtrees that contain a node.
fn of_order(order: &OrderedTree) -> Vec<Dominator> {
    let mut found = vec![Unreachable; order.nodes.len()];
    let mut open: Vec<(u32, u32)> = Vec::new();
    for (position, node) in (0..order.reachable).zip(order.nodes.iter()) {
        while open.last().is_some_and(|(_, end)| *end <= position) {
            open.pop();
        }
        found[*node as usize] = open.last().map_or(Roots, |(above, _)| Node(*above));
        open.push((*node, order.ends[position as usize]));
    }
    found
}

/// Compares an order with the expected one.
pub(super) fn check(graph: &Graph, order: &OrderedTree, dominators: &[Dominator]) {
    let naive = Naive::new(graph, dominators);
    assert_eq!(order.reachable, naive.reachable, "reachable nodes");
    assert_eq!(order.nodes.len(), graph.rows.len());
    assert_eq!(of_order(order), dominators, "dominators");
    assert_eq!(*order.nodes, *naive.nodes, "order; retained {:?}", naive.retained);
    for (position, node) in (0u32..).zip(order.nodes.iter()) {
        assert_eq!(order.positions[*node as usize], position, "position of {node}");
        if position < order.reachable {
            let end = position + naive.counts[*node as usize];
            assert_eq!(order.ends[position as usize], end, "end of {node}");
        }
    }
}
