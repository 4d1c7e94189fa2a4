//! Graphs with known dominators: edge cases of the algorithms.

use super::definition::{by_definition, check};
use super::{Graph, Input, arena};

/// Fills a long list whose items are also referenced from elsewhere: node 0 refers to the list and to an
/// array of the items; items have an edge of their own, so that they stay in the core.
fn list_with_items(length: u32) -> impl FnMut(u32, &mut Vec<u32>) {
    let (items, array) = (1 + length, 1 + 2 * length);
    move |node, row| match node {
        0 => row.extend([1, array]),
        _ if node < items => {
            row.extend((node + 1 < items).then_some(node + 1));
            row.push(node + length);
        }
        _ if node < array => row.push(node),
        _ => row.extend(items..array),
    }
}

#[test]
fn items_of_a_long_list_that_are_held_elsewhere() {
    for length in [1, 2, 3, 20, 100, 257] {
        let mut rows = Vec::new();
        let mut row = list_with_items(length);
        for node in 0..2 * length + 2 {
            rows.push(Vec::new());
            row(node, rows.last_mut().unwrap());
        }
        let graph = Graph::new(rows, &[0]);
        let (_dir, arena) = arena(1 << 30);
        check(&graph, &graph.input().order(&arena), &by_definition(&graph));
    }
    // Climbing the list step by step would take 5 * 10^11 steps.
    const LENGTH: u32 = 1_000_000;
    let input = Input::large(2 * LENGTH + 2, &[0], list_with_items(LENGTH));
    let (_dir, arena) = arena(1 << 30);
    let order = input.order(&arena);
    // The list is one chain; all other nodes are below node 0.
    assert!(order.nodes.iter().copied().eq(0..2 * LENGTH + 2));
    let ends = |position: u32| if position <= LENGTH && position > 0 { LENGTH + 1 } else { position + 1 };
    assert!(order.ends.iter().copied().skip(1).eq((1..2 * LENGTH + 2).map(ends)));
}
