//! Random graphs.

use std::cell::OnceCell;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::Config;
use tempfile::TempDir;

use super::definition::{by_definition, by_iteration, check};
use super::stored::check_stored;
use super::{Graph, arena, property};
use crate::graph::graph_view::NONE;
use crate::storage::scratch::ScratchArena;

/// A component of a graph. Node numbers are taken modulo the number of nodes.
#[derive(Debug, Clone)]
enum Component {
    Edges(Vec<(u32, u32)>),
    /// `length` edges, each to the next or the previous node.
    Chain {
        from: u32,
        length: u32,
        down: bool,
    },
    /// A chain that returns to its start.
    Cycle {
        from: u32,
        length: u32,
    },
    /// Consecutive diamonds: two paths to the same node.
    Diamonds {
        from: u32,
        count: u32,
    },
    /// A node that refers to many others.
    Star {
        from: u32,
        count: u32,
    },
    /// A node that many others refer to.
    Sink {
        to: u32,
        count: u32,
    },
    /// Two chains with rungs in both directions, entered on both sides: irreducible.
    Ladder {
        from: u32,
        length: u32,
    },
    /// A node that refers to itself.
    Own(u32),
}

impl Component {
    fn edges(&self) -> Vec<(u32, u32)> {
        match *self {
            Self::Edges(ref edges) => edges.clone(),
            Self::Chain { from, length, down: false } => {
                (from..from + length).map(|at| (at, at + 1)).collect()
            }
            Self::Chain { from, length, down: true } => {
                (from..from + length).map(|at| (at + 1, at)).collect()
            }
            Self::Cycle { from, length } => {
                (from..from + length).map(|at| (at, at + 1)).chain([(from + length, from)]).collect()
            }
            Self::Diamonds { from, count } => (0..count)
                .map(|number| from + 3 * number)
                .flat_map(|at| [(at, at + 1), (at, at + 2), (at + 1, at + 3), (at + 2, at + 3)])
                .collect(),
            Self::Star { from, count } => (1..=count).map(|at| (from, from + at)).collect(),
            Self::Sink { to, count } => (1..=count).map(|at| (to + at, to)).collect(),
            Self::Ladder { from, length } => (0..length)
                .map(|number| from + 1 + 2 * number)
                .flat_map(|at| [(at, at + 2), (at + 1, at + 3), (at, at + 1), (at + 1, at), (at + 2, at)])
                .chain([(from, from + 1), (from, from + 2)])
                .collect(),
            Self::Own(node) => vec![(node, node)],
        }
    }
}

fn part(nodes: u32) -> impl Strategy<Value = Component> {
    let node = 0..nodes;
    let edges = prop::collection::vec((node.clone(), node.clone()), 0..(2 * nodes as usize + 1));
    prop_oneof![
        3 => edges.prop_map(Component::Edges),
        2 => (node.clone(), 0..nodes, any::<bool>()).prop_map(|(from, length, down)| Component::Chain { from, length, down }),
        1 => (node.clone(), 0..nodes).prop_map(|(from, length)| Component::Cycle { from, length }),
        1 => (node.clone(), 0..nodes / 3 + 1).prop_map(|(from, count)| Component::Diamonds { from, count }),
        1 => (node.clone(), 0..nodes).prop_map(|(from, count)| Component::Star { from, count }),
        1 => (node.clone(), 0..nodes).prop_map(|(to, count)| Component::Sink { to, count }),
        1 => (node.clone(), 0..nodes / 2 + 1).prop_map(|(from, length)| Component::Ladder { from, length }),
        1 => node.prop_map(Component::Own),
    ]
}

/// Target of a label.
#[derive(Debug, Clone, Copy)]
enum Hub {
    Nothing,
    Node(u32),
    /// One of the roots.
    Root(u32),
    /// A node whose references are removed, or lead to roots only.
    Leaf(u32),
    RefersToRoots(u32),
    RefersToItself(u32),
    /// A node that is the target of its own label.
    OfItself(u32),
}

fn hub(nodes: u32) -> impl Strategy<Value = Hub> {
    let node = 0..nodes;
    prop_oneof![
        Just(Hub::Nothing),
        node.clone().prop_map(Hub::Node),
        node.clone().prop_map(Hub::Root),
        node.clone().prop_map(Hub::Leaf),
        node.clone().prop_map(Hub::RefersToRoots),
        node.clone().prop_map(Hub::RefersToItself),
        node.prop_map(Hub::OfItself),
    ]
}

/// Strategies for weights.
fn weights(nodes: usize) -> impl Strategy<Value = Vec<u64>> {
    let of = |weight: BoxedStrategy<u64>| prop::collection::vec(weight, nodes);
    prop_oneof![
        3 => of((1..4u64).boxed()),
        // Boundaries of a byte and of the buckets of the sort.
        2 => of(prop_oneof![1..300u64, 250..260u64, 21_840..21_850u64, 65_530..65_540u64].boxed()),
        2 => of(prop_oneof![Just(0), 0..3u64, 65_534..65_536u64].boxed()),
        1 => of(prop_oneof![1..3u64, (1u64 << 32)..(1 << 40)].boxed()),
        1 => of(Just(0u64).boxed()),
        1 => of(prop_oneof![1..3u64, u64::MAX - 3..=u64::MAX].boxed()),
    ]
}

fn graph(nodes: std::ops::Range<u32>, parts: usize) -> impl Strategy<Value = Graph> {
    let sized = move |nodes: u32| {
        let few = prop::collection::vec(0..nodes, 0..5);
        let many = prop::collection::vec(0..nodes, 0..nodes as usize);
        let hubs = prop::collection::vec(hub(nodes), 0..6);
        // Labels after the hubs have no target.
        let labels = prop::collection::vec(0..7u32, nodes as usize);
        (
            prop::collection::vec(part(nodes), 0..=parts),
            prop_oneof![4 => few, 1 => many],
            (hubs, labels),
            weights(nodes as usize),
            select(vec![1, 2, 3, 4u8]),
            prop_oneof![Just(1), any::<u32>()],
        )
            .prop_map(move |(parts, roots, (hubs, labels), weights, width, stride)| {
                let mut graph = Graph { rows: vec![Vec::new(); nodes as usize], width, ..Graph::default() };
                let place = shuffle(nodes, stride);
                for (from, to) in parts.iter().flat_map(Component::edges) {
                    graph.rows[place(from) as usize].push(place(to));
                }
                graph.roots = roots.into_iter().map(&place).collect();
                graph.roots.sort_unstable();
                graph.roots.dedup();
                graph.weights = weights;
                graph.labels = labels;
                for hub in hubs {
                    set_hub(&mut graph, hub);
                }
                graph
            })
    };
    nodes.prop_flat_map(sized)
}

/// Returns a permutation of the numbers below `nodes`.
fn shuffle(nodes: u32, stride: u32) -> impl Fn(u32) -> u32 {
    let mut stride = u64::from(stride % nodes);
    while gcd(stride, u64::from(nodes)) != 1 {
        stride += 1;
    }
    move |node| u32::try_from(u64::from(node % nodes) * stride % u64::from(nodes)).unwrap()
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// Adds a label. No node is the target of two labels.
fn set_hub(graph: &mut Graph, hub: Hub) {
    let label = u32::try_from(graph.hubs.len()).unwrap();
    let node = match hub {
        Hub::Nothing => NONE,
        Hub::Root(at) => graph.roots.get(at as usize % graph.roots.len().max(1)).copied().unwrap_or(NONE),
        Hub::Node(node)
        | Hub::Leaf(node)
        | Hub::RefersToRoots(node)
        | Hub::RefersToItself(node)
        | Hub::OfItself(node) => node,
    };
    let node = if graph.hubs.contains(&node) { NONE } else { node };
    graph.hubs.push(node);
    if node == NONE {
        return;
    }
    let row = &mut graph.rows[node as usize];
    match hub {
        Hub::Leaf(_) => row.clear(),
        Hub::RefersToRoots(_) => row.clone_from(&graph.roots),
        Hub::RefersToItself(_) => *row = vec![node],
        Hub::OfItself(_) => graph.labels[node as usize] = label,
        Hub::Nothing | Hub::Node(_) | Hub::Root(_) => {}
    }
}

thread_local! {
    /// One arena for all cases of a test: each case finds what the previous ones left in it.
    static ROOM: OnceCell<(TempDir, ScratchArena)> = const { OnceCell::new() };
}

fn check_in(arena: &ScratchArena, graph: &Graph, dominators: &[super::definition::Dominator]) {
    let input = graph.input();
    let order = input.order(arena);
    check(graph, &order, dominators);
    check_stored(graph, &order, &input.weights, dominators);
}

proptest! {
    #![proptest_config(property(4000))]

    #[test]
    fn dominators_are_those_of_the_definition(graph in graph(1..61, 5)) {
        let dominators = by_definition(&graph);
        prop_assert_eq!(&by_iteration(&graph), &dominators);
        ROOM.with(|cell| check_in(&cell.get_or_init(|| arena(1 << 30)).1, &graph, &dominators));
    }
}

proptest! {
    #![proptest_config(property(150))]

    #[test]
    fn so_they_are_without_memory(graph in graph(1..61, 5)) {
        let (_dir, arena) = arena(0);
        check_in(&arena, &graph, &by_definition(&graph));
    }
}

proptest! {
    #![proptest_config(Config { max_shrink_iters: 300, ..property(40) })]

    #[test]
    fn so_they_are_in_larger_graphs(graph in graph(1000..3000, 4)) {
        let dominators = by_definition(&graph);
        ROOM.with(|cell| check_in(&cell.get_or_init(|| arena(1 << 30)).1, &graph, &dominators));
    }
}
