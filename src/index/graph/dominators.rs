//! Construction of the dominator tree: peel leaf objects, search depth-first, find semidominators, attach
//! leaf objects, order.

use std::io;

use super::adjacency::AdjacencyView;
use super::core::{Core, Edges};
use super::depth_first;
use super::graph_view::GraphView;
use super::leaves;
use super::order::{self, OrderedTree, WeightsView};
use super::peel::{self, PeelStates};
use super::semi_nca::{self, Dominators};
use super::transpose::EDGE_BYTES;
use crate::storage::scratch::ScratchArena;
use hprof_input::progress::Progress;

/// Minimum memory for transposing.
const MIN_TRANSPOSE_BYTES: u64 = 32 << 20;

/// Computes the dominator tree of a graph, in order. `meanwhile` makes the transpose (`referrers` borrows it
/// from the result): it runs while one thread searches the core, and its argument is the memory budget.
/// Without referrers no tree is returned.
pub(crate) fn dominators<R: Send>(
    arena: &ScratchArena,
    graph: &GraphView<'_>,
    weights: WeightsView<'_>,
    meanwhile: impl FnOnce(u64) -> R + Send,
    referrers: impl Fn(&R) -> Option<AdjacencyView<'_>>,
    progress: &dyn Progress,
) -> io::Result<(Option<OrderedTree>, R)> {
    let prepared = PeeledGraph::new(arena, graph, progress)?;
    // The search takes this much, and so do its transposed edges.
    let nodes = 4 * size_of::<u32>() as u64 * prepared.core.len() as u64;
    let needed = nodes + prepared.edges.len() as u64 * EDGE_BYTES;
    let memory = arena.remaining_bytes().saturating_sub(needed).max(MIN_TRANSPOSE_BYTES);
    let (found, made) = rayon::join(|| prepared.search(arena, progress), || meanwhile(memory));
    let CoreDominators { peeled, core, dominators } = found?;
    let Some(referrers) = referrers(&made) else { return Ok((None, made)) };
    progress.begin("attaching leaf objects", 0);
    let forest = leaves::attach(arena, graph, core, peeled.view(), dominators, referrers)?;
    let order = order::order(arena, forest, peeled.view(), weights, progress)?;
    Ok((Some(order), made))
}

/// A graph without its leaf objects.
struct PeeledGraph {
    peeled: PeelStates,
    core: Core,
    edges: Edges,
}

/// Dominators of a graph without its leaf objects.
struct CoreDominators {
    peeled: PeelStates,
    core: Core,
    dominators: Dominators,
}

impl PeeledGraph {
    fn new(arena: &ScratchArena, graph: &GraphView<'_>, progress: &dyn Progress) -> io::Result<Self> {
        progress.begin("peeling leaf objects", 0);
        let peeled = peel::peel(arena, graph)?;
        progress.begin("collecting references", 0);
        let (core, edges) = Core::new(arena, graph, peeled.view())?;
        Ok(Self { peeled, core, edges })
    }

    fn search(self, arena: &ScratchArena, progress: &dyn Progress) -> io::Result<CoreDominators> {
        let Self { peeled, core, mut edges } = self;
        progress.begin("traversing references", 0);
        let walk = depth_first::walk(arena, &core, &mut edges)?;
        progress.begin("finding dominators", 0);
        let dominators = semi_nca::dominators(arena, &core, edges, walk)?;
        Ok(CoreDominators { peeled, core, dominators })
    }
}
