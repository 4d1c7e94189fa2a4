//! What dominates what: peel, walk, semidominators, leaves, order.

use std::io;

use super::adjacency::View;
use super::core::{Core, Edges};
use super::depth_first;
use super::leaves;
use super::links::Links;
use super::order::{self, Order, WeightsView};
use super::peel::{self, States};
use super::semi_nca::{self, Dominators};
use super::transpose::EDGE_BYTES;
use crate::index::storage::scratch::Room;
use crate::progress::Progress;

/// Memory for turning rows around that is always there.
const LEAST: u64 = 32 << 20;

/// The dominator tree of a graph, in order. `meanwhile` turns the rows around (`referrers` shows what it gave): it runs
/// while one thread walks the core, and is told how much memory it may take. Without referrers there is no tree.
pub(crate) fn dominators<R: Send>(
    room: &Room,
    links: &Links<'_>,
    weights: WeightsView<'_>,
    meanwhile: impl FnOnce(u64) -> R + Send,
    referrers: impl Fn(&R) -> Option<View<'_>>,
    progress: &dyn Progress,
) -> io::Result<(Option<Order>, R)> {
    let prepared = Prepared::new(room, links, progress)?;
    // The walk takes this much, and so do its edges turned around.
    let nodes = 4 * size_of::<u32>() as u64 * prepared.core.len() as u64;
    let needed = nodes + prepared.edges.len() as u64 * EDGE_BYTES;
    let memory = room.left().saturating_sub(needed).max(LEAST);
    let (found, made) = rayon::join(|| prepared.search(room, progress), || meanwhile(memory));
    let Found { peeled, core, dominators } = found?;
    let Some(referrers) = referrers(&made) else { return Ok((None, made)) };
    progress.begin("putting leaves back", 0);
    let forest = leaves::join(room, links, core, peeled.view(), dominators, referrers)?;
    progress.begin("sorting by retained size", 0);
    let order = order::order(room, forest, peeled.view(), weights)?;
    Ok((Some(order), made))
}

/// A graph without its leaves.
struct Prepared {
    peeled: States,
    core: Core,
    edges: Edges,
}

/// The dominators of what is left of a graph without its leaves.
struct Found {
    peeled: States,
    core: Core,
    dominators: Dominators,
}

impl Prepared {
    fn new(room: &Room, links: &Links<'_>, progress: &dyn Progress) -> io::Result<Self> {
        progress.begin("taking leaves off", 0);
        let peeled = peel::peel(room, links)?;
        progress.begin("collecting references", 0);
        let (core, edges) = Core::new(room, links, peeled.view())?;
        Ok(Self { peeled, core, edges })
    }

    fn search(self, room: &Room, progress: &dyn Progress) -> io::Result<Found> {
        let Self { peeled, core, mut edges } = self;
        progress.begin("walking references", 0);
        let walk = depth_first::walk(room, &core, &mut edges)?;
        progress.begin("finding dominators", 0);
        let dominators = semi_nca::dominators(room, &core, edges, walk)?;
        Ok(Found { peeled, core, dominators })
    }
}
