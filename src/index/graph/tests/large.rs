//! Large graphs: deep, wide, cyclic, and random ones compared with a slower algorithm.

use super::definition::{by_iteration, check};
use super::{Graph, Input, RandomNumbers, arena};
use crate::graph::graph_view::NONE;

/// Number of nodes of deep graphs: nothing may recurse, or traverse a chain once for each of its nodes.
const DEEP: u32 = 10_000_000;
const WIDE: u32 = 1_000_000;

/// Checks that the nodes form a single chain of dominators in this order.
fn check_chain(input: &Input, at: impl Fn(u32) -> u32) {
    let (_dir, arena) = arena(1 << 30);
    let order = input.order(&arena);
    let nodes = input.rows.len();
    assert_eq!(order.reachable, nodes);
    for position in 0..nodes {
        assert_eq!(order.nodes[position as usize], at(position));
        assert_eq!(order.ends[position as usize], nodes);
    }
    for position in [0, 1, nodes / 2, nodes - 1] {
        assert_eq!(order.positions[at(position) as usize], position);
    }
}

#[test]
fn a_deep_chain() {
    let chain = Input::large(DEEP, &[0], |node, row| row.extend((node + 1 < DEEP).then_some(node + 1)));
    check_chain(&chain, |position| position);
}

#[test]
fn a_deep_chain_whose_end_is_peeled() {
    let chain = Input::large(DEEP, &[DEEP - 1], |node, row| row.extend(node.checked_sub(1)));
    check_chain(&chain, |position| DEEP - 1 - position);
}

#[test]
fn a_large_cycle() {
    let root = WIDE / 3;
    let cycle = Input::large(WIDE, &[root], |node, row| row.push((node + 1) % WIDE));
    check_chain(&cycle, |position| (position + root) % WIDE);
}

#[test]
fn a_wide_star() {
    // Its leaves refer to nothing, then back to its middle, then to the next leaf too.
    let star: [&dyn Fn(u32) -> Vec<u32>; 3] =
        [&|_| vec![], &|_| vec![0], &|leaf| vec![0, leaf % (WIDE - 1) + 1]];
    for leaf in star {
        let input =
            Input::large(
                WIDE,
                &[0],
                |node, row| {
                    if node == 0 { row.extend(1..WIDE) } else { row.extend(leaf(node)) }
                },
            );
        let (_dir, arena) = arena(1 << 30);
        let order = input.order(&arena);
        assert_eq!(order.reachable, WIDE);
        assert!(order.nodes.iter().copied().eq(0..WIDE));
        assert!(order.ends[0] == WIDE && order.ends.iter().copied().skip(1).eq(2..=WIDE));
    }
}

/// Returns a graph like a real heap: lists, trees, classes with statics, and references across.
fn heap_like(nodes: u32, seed: u64) -> Graph {
    let mut numbers = RandomNumbers(seed);
    let mut graph = Graph::new(vec![Vec::new(); nodes as usize], &[]);
    for node in 0..nodes {
        let near = |numbers: &mut RandomNumbers| (node + numbers.below(40)).saturating_sub(20).min(nodes - 1);
        let count = [0, 0, 0, 1, 1, 2, 3, 12][numbers.below(8) as usize];
        let row: Vec<u32> = (0..count)
            .map(|_| if numbers.below(20) == 0 { numbers.below(nodes) } else { near(&mut numbers) })
            .collect();
        graph.rows[node as usize] = row;
        graph.weights[node as usize] = u64::from(numbers.among(1..=12));
    }
    // 300 classes, some of them roots, some with statics, some only reached through their instances.
    graph.hubs = (0..300).map(|class| class * (nodes / 300)).collect();
    graph.width = 2;
    for node in 0..nodes {
        graph.labels[node as usize] = numbers.below(node % 300 + 1);
    }
    for at in 0..300 {
        let hub = graph.hubs[at];
        match numbers.below(4) {
            0 => graph.roots.push(hub),
            1 => graph.rows[hub as usize].clear(),
            2 => graph.rows[hub as usize] = graph.roots.clone(),
            _ => {}
        }
        if numbers.below(20) == 0 {
            graph.hubs[at] = NONE;
        }
    }
    graph.roots.extend((0..nodes / 5000).map(|_| numbers.below(nodes)));
    graph.roots.sort_unstable();
    graph.roots.dedup();
    graph
}

#[test]
fn large_random_graphs() {
    // More than one chunk in each loop: complete and incomplete ones.
    for (nodes, seed) in [(65_536, 1), (3 * 65_536 - 1, 2), (300_007, 3)] {
        let graph = heap_like(nodes, seed);
        let dominators = by_iteration(&graph);
        for memory in [0, 1 << 30] {
            let (_dir, arena) = arena(memory);
            check(&graph, &graph.input().order(&arena), &dominators);
        }
    }
}
