//! What dominates what: peel, walk, semidominators, leaves, order; and the proof that the sample of label edges was
//! enough.

use std::io;

use rayon::prelude::*;

use super::core::{Core, Edges};
use super::depth_first;
use super::leaves::{self, Forest, OUTSIDE};
use super::links::{Links, Witnesses};
use super::order::{self, Order, Weights};
use super::peel::{self, Peeled};
use super::rows::View;
use super::semi_nca::{self, Dominators};
use crate::index::scratch::Room;

/// Rounds with a sample of label edges; after these all are followed.
const ROUNDS: usize = 2;
/// Nodes of a label that are followed too when the sample was not enough.
const MORE: usize = 256;
/// Nodes that one thread looks at in one go.
const CHUNK: u32 = 1 << 16;

/// The dominator tree of a graph, in order. `meanwhile` turns the rows around (`referrers` shows what it gave): it runs
/// while one thread walks the core.
pub(crate) fn dominators<'r, R: Send>(
    room: &'r Room,
    links: &Links<'_>,
    weights: &Weights,
    meanwhile: impl FnOnce() -> R + Send,
    referrers: impl Fn(&R) -> Option<View<'_>>,
) -> io::Result<(Option<Order<'r>>, R)> {
    let mut witnesses = Witnesses::sample(links);
    let first = Prepared::new(room, links, &witnesses)?;
    let (found, made) = rayon::join(|| first.search(room), meanwhile);
    let mut found = found?;
    // Without referrers there is no answer, and the caller knows why.
    let Some(referrers) = referrers(&made) else { return Ok((None, made)) };
    for round in 1.. {
        let Found { peeled, core, dominators } = found;
        let forest = leaves::join(room, core, &peeled, dominators, referrers)?;
        let order = order::order(room, &forest, &peeled, weights)?;
        let missed = missed(links, &witnesses, &forest, &order);
        if missed.is_empty() {
            return Ok((Some(order), made));
        }
        drop((forest, order));
        for (label, nodes) in &missed {
            if round == 1 {
                witnesses.follow(nodes.iter().copied());
            } else {
                witnesses.follow_all(*label);
            }
        }
        if round > ROUNDS {
            (0..links.labels.targets.len()).for_each(|label| witnesses.follow_all(label));
        }
        found = Prepared::new(room, links, &witnesses)?.search(room)?;
    }
    Ok((None, made))
}

/// A graph without its leaves.
struct Prepared<'r> {
    peeled: Peeled,
    core: Core<'r>,
    edges: Edges<'r>,
}

/// The dominators of what is left of a graph without its leaves.
struct Found<'r> {
    peeled: Peeled,
    core: Core<'r>,
    dominators: Dominators<'r>,
}

impl<'r> Prepared<'r> {
    fn new(room: &'r Room, links: &Links<'_>, witnesses: &Witnesses) -> io::Result<Self> {
        let peeled = peel::peel(links, witnesses);
        let (core, edges) = Core::new(room, links, witnesses, &peeled)?;
        Ok(Self { peeled, core, edges })
    }

    fn search(self, room: &'r Room) -> io::Result<Found<'r>> {
        let Self { peeled, core, edges } = self;
        let walk = depth_first::walk(room, &core, &edges)?;
        let dominators = semi_nca::dominators(room, &core, edges, walk)?;
        Ok(Found { peeled, core, dominators })
    }
}

/// Nodes whose label edge was not followed and would have changed something, by label.
///
/// An edge changes nothing if the dominator of its target dominates its source too.
fn missed(
    links: &Links<'_>,
    witnesses: &Witnesses,
    forest: &Forest<'_>,
    order: &Order<'_>,
) -> Vec<(usize, Vec<u32>)> {
    let (positions, counts) = (&*order.positions, &*order.counts);
    let spans: Vec<Option<(u32, u32)>> = (links.labels.targets.iter().enumerate())
        .map(|(label, target)| {
            if !witnesses.matters(label) {
                return None;
            }
            if positions[*target as usize] >= order.reachable {
                return Some((0, 0));
            }
            let dominator = forest.dominators[*target as usize];
            if dominator == OUTSIDE {
                return None;
            }
            let start = positions[dominator as usize];
            Some((start, start + counts[start as usize]))
        })
        .collect();
    if spans.iter().all(Option::is_none) {
        return Vec::new();
    }
    let nodes = links.rows.len();
    let found: Vec<(usize, u32)> = (0..nodes.div_ceil(CHUNK))
        .into_par_iter()
        .flat_map_iter(|chunk| {
            let range = chunk * CHUNK..(chunk + 1).saturating_mul(CHUNK).min(nodes);
            let mut missed = Vec::new();
            let mut seen = 0;
            for node in range {
                let label = links.labels.of(node);
                if let Some(Some((start, end))) = spans.get(label) {
                    let position = positions[node as usize];
                    if position < order.reachable && !(*start..*end).contains(&position) && seen < MORE {
                        missed.push((label, node));
                        seen += 1;
                    }
                }
            }
            missed
        })
        .collect();
    let mut by_label = found;
    by_label.sort_unstable();
    by_label
        .chunk_by(|one, other| one.0 == other.0)
        .filter_map(|nodes| {
            let every = nodes.len().div_ceil(MORE);
            let chosen = nodes.iter().step_by(every).map(|(_, node)| *node).collect();
            nodes.first().map(|(label, _)| (*label, chosen))
        })
        .collect()
}
