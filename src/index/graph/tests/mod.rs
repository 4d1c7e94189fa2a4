//! Tests of the algorithms together: random graphs against the definition of dominators, small shapes that
//! are edge cases, large graphs, and the stored tree against a naive one.

mod definition;
mod large;
mod random;
mod shapes;
mod stored;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use proptest::test_runner::{Config, RngSeed};
use tempfile::TempDir;
use zerocopy::little_endian::U64;

use super::adjacency::{AdjacencyLists, Encoder};
use super::dominators::dominators;
use super::graph_view::{GraphView, Labels, NONE};
use super::order::{OrderedTree, Weights};
use super::referrers::transpose_lists;
use super::tree::APART;
use crate::storage::scratch::ScratchArena;
use hprof_input::progress::Quiet;

/// A graph as plain data.
#[derive(Clone, Default)]
struct Graph {
    /// Targets of each node, in any order, with duplicates.
    rows: Vec<Vec<u32>>,
    /// Label of each node; [`NONE`] for none.
    labels: Vec<u32>,
    /// Target of each label: distinct nodes, or [`NONE`].
    hubs: Vec<u32>,
    /// Roots, ascending.
    roots: Vec<u32>,
    /// Weight of each node, in units.
    weights: Vec<u64>,
    /// Size of a label in bytes.
    width: u8,
}

impl fmt::Debug for Graph {
    /// Prints the data needed to understand a failed case.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = (0..self.len()).zip(&self.rows).filter(|(_, row)| !row.is_empty());
        let labels =
            (0..self.len()).zip(&self.labels).filter(|(_, label)| (**label as usize) < self.hubs.len());
        let weights = (0..self.len()).zip(&self.weights).filter(|(_, weight)| **weight != 1);
        writeln!(out, "{} nodes, rows {:?}", self.len(), rows.collect::<BTreeMap<_, _>>())?;
        writeln!(out, "labels {:?} of {} bytes", labels.collect::<BTreeMap<_, _>>(), self.width)?;
        writeln!(out, "hubs {:?}, roots {:?}", self.hubs, self.roots)?;
        writeln!(out, "weights {:?}", weights.collect::<BTreeMap<_, _>>())
    }
}

impl Graph {
    /// Creates a graph without labels in which each node has weight 1.
    fn new(rows: Vec<Vec<u32>>, roots: &[u32]) -> Self {
        let nodes = rows.len();
        let (labels, weights) = (vec![NONE; nodes], vec![1; nodes]);
        Self { rows, labels, hubs: Vec::new(), roots: roots.to_vec(), weights, width: 1 }
    }

    fn len(&self) -> u32 {
        u32::try_from(self.rows.len()).unwrap()
    }

    /// Returns all targets of a node, including the target of its label.
    fn targets(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let hub = self.hubs.get(self.labels[node as usize] as usize).copied();
        self.rows[node as usize].iter().copied().chain(hub.filter(|hub| *hub != NONE))
    }

    fn input(&self) -> Input {
        let label = |label: &u32| label.to_le_bytes().into_iter().take(usize::from(self.width));
        Input {
            rows: rows_by(self.len(), |node, row| row.extend(&self.rows[node as usize])),
            column: self.labels.iter().flat_map(label).collect(),
            width: self.width,
            hubs: self.hubs.clone(),
            roots: self.roots.clone(),
            weights: weights_by(&self.weights, 8),
        }
    }
}

/// A graph in the form that the algorithms take.
struct Input {
    rows: AdjacencyLists,
    column: Vec<u8>,
    width: u8,
    hubs: Vec<u32>,
    roots: Vec<u32>,
    weights: Weights,
}

impl Input {
    /// Creates a large graph without labels in which each node has weight 1.
    fn large(nodes: u32, roots: &[u32], row: impl FnMut(u32, &mut Vec<u32>)) -> Self {
        Self {
            rows: rows_by(nodes, row),
            column: Vec::new(),
            width: 1,
            hubs: Vec::new(),
            roots: roots.to_vec(),
            weights: weights_by(&vec![1; nodes as usize], 8),
        }
    }

    /// Returns the ordered dominator tree.
    fn order(&self, arena: &ScratchArena) -> OrderedTree {
        let labels = Labels { column: &self.column, width: self.width, targets: &self.hubs };
        let graph = GraphView { lists: self.rows.view(), labels: &labels, roots: &self.roots };
        let transposed = |memory: u64| transposed(&self.rows, arena, memory);
        let (order, _) =
            dominators(arena, &graph, self.weights.view(), transposed, |rows| Some(rows.view()), &Quiet)
                .unwrap();
        order.unwrap()
    }
}

/// Creates the lists that `row` fills.
fn rows_by(nodes: u32, mut row: impl FnMut(u32, &mut Vec<u32>)) -> AdjacencyLists {
    let mut encoder = Encoder::new(0, 0);
    let mut targets = Vec::new();
    for node in 0..nodes {
        targets.clear();
        row(node, &mut targets);
        encoder.push(&mut targets);
    }
    let encoded = encoder.finish();
    let groups = ends(&encoded.groups, 0);
    AdjacencyLists { groups, bytes: encoded.bytes.into(), objects: nodes, edges: encoded.edges }
}

/// Transposes lists.
fn transposed(rows: &AdjacencyLists, arena: &ScratchArena, memory: u64) -> AdjacencyLists {
    let (mut bytes, mut lengths, mut edges) = (Vec::new(), Vec::new(), 0);
    let take = |part: super::adjacency::EncodedLists| {
        bytes.extend(part.bytes);
        lengths.extend(part.groups);
        edges += part.edges;
        Ok(())
    };
    transpose_lists(arena, rows.view(), rows.edges(), memory, take).unwrap();
    AdjacencyLists { groups: ends(&lengths, 0), bytes: bytes.into(), objects: rows.len(), edges }
}

/// Returns the start of each group, given the lengths, followed by the end of the last one.
fn ends(lengths: &[u64], first: u64) -> crate::storage::checked_column::CheckedColumn<U64> {
    let mut at = first;
    let mut ends = vec![U64::new(at)];
    for length in lengths {
        at += length;
        ends.push(at.into());
    }
    ends.into()
}

fn weights_by(units: &[u64], unit: u64) -> Weights {
    let code = |units: &u64| u8::try_from(*units).unwrap_or(APART);
    let arena = ScratchArena::new(std::env::temp_dir(), 1 << 30);
    let mut codes = arena.array::<u8>(units.len()).unwrap();
    codes.iter_mut().zip(units).for_each(|(place, units)| *place = code(units));
    let apart = (0u32..).zip(units).filter(|(_, units)| code(units) == APART);
    Weights { apart: apart.map(|(node, units)| (node, *units)).collect(), codes, unit }
}

/// Creates a scratch arena in a directory of its own.
fn arena(bytes: u64) -> (TempDir, ScratchArena) {
    let dir = tempfile::tempdir().unwrap();
    let arena = ScratchArena::new(dir.path().to_owned(), bytes);
    (dir, arena)
}

/// A deterministic generator of numbers.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(end)).unwrap()
    }

    fn among(&mut self, range: RangeInclusive<u32>) -> u32 {
        range.start() + self.below(range.end() - range.start() + 1)
    }
}

/// Returns a configuration with a share of `cases` as in `tests/kit/portion.rs`, all with
/// the feature `long-tests`; the same cases in every run. For a soak: `PROPTEST_RNG_SEED=$RANDOM
/// PROPTEST_CASES=100000 cargo test`.
fn property(cases: u32) -> Config {
    let mut config = Config { failure_persistence: None, max_shrink_iters: 5000, ..Config::default() };
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(20_261_121);
    }
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = if cfg!(feature = "long-tests") { cases } else { cases.div_ceil(7) };
    }
    config
}
