//! Estimate of a heap's waste in bounded time, for an overview.
//!
//! Small heaps are examined like `waste` does. Large ones are sampled: evenly spaced windows of the dominator tree's
//! preorder, so that related objects are in one window, such as a String and its characters. The waste of the sample
//! is scaled by its share of the heap. The result is usually too low, never much too high: copies count only if
//! another one is in the sample, and large objects count as used.

use std::io;
use std::ops::Range;

use super::fields::FieldGroupBy;
use super::findings::Reachable;
use super::kind::KindFindings;
use super::{KINDS, WasteKind, WasteQuery, WasteSearch, findings, union};
use hprof_base::sorting::SortRows;
use hprof_index::Dump;
use hprof_index::graph::numbers::TreePosition;
use hprof_model::dump::unreachable::{Filler, Unreachable};

/// Maximum number of reachable objects of a heap that is examined as a whole.
const MAX_EXACT: u32 = 1 << 20;
/// Number of windows of the sample, and number of objects in each.
const WINDOWS: (u32, u32) = (256, 1 << 10);
/// Maximum number of examined objects in a part of a heap.
const MAX_BELOW: u32 = 1 << 13;
/// Minimum size of objects that are not in the sample: one that represents a hundred others would dominate the result.
const LARGE: u64 = 16 << 10;

/// Estimate of a heap's waste.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Estimate {
    /// Wasted bytes by kind, for the kinds that were found; most bytes first.
    #[serde(with = "by_name")]
    pub kinds: Vec<(&'static WasteKind, u64)>,
    /// Bytes wasted by all kinds together; each byte counts once.
    pub wasted_bytes: u64,
    /// Bytes wasted by kinds that consist of reachable objects.
    pub reachable_wasted_bytes: u64,
    /// Shallow size of all objects in bytes.
    pub all_bytes: u64,
    /// `true` if the figures are exact, as in `waste`, rather than from a sample.
    pub is_exact: bool,
}

/// Estimates the waste of a heap; exact for a small heap.
///
/// # Errors
/// The errors of [`super::waste`].
pub fn estimate(dump: &Dump<'_>) -> io::Result<Estimate> {
    estimate_with(dump, MAX_EXACT, WINDOWS)
}

/// Estimates the waste as [`estimate`] does: a heap with more than `most` reachable objects is sampled, by the given
/// number of windows and of objects in each, whose product is at most `most`.
pub fn estimate_with(dump: &Dump<'_>, most: u32, (count, length): (u32, u32)) -> io::Result<Estimate> {
    let tree = &dump.graph.tree;
    let is_exact = tree.reachable() <= most;
    let windows = if is_exact { Vec::new() } else { windows(tree.reachable(), count, length) };
    let looked_at =
        if is_exact { Reachable::new(dump.graph) } else { Reachable::sample(dump.graph, &windows, LARGE) };
    let search = WasteSearch::new(dump, looked_at);
    let kinds = KINDS.into_iter().filter(|kind| is_exact || kind.is_sampled).collect();
    let found = findings(&search, &WasteQuery { kinds, group_by: FieldGroupBy::Field, examples: 0 })?;
    let scale = |bytes: u64| {
        let sampled = if is_exact { tree.reachable() } else { count.saturating_mul(length) };
        let scaled = u128::from(bytes) * u128::from(tree.reachable()) / u128::from(sampled.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    };
    let all_bytes = search.all_bytes();
    let mut kinds: Vec<(&'static WasteKind, u64)> = Vec::new();
    let mut reachable_wasted_bytes = 0u64;
    for (KindFindings { kind, findings }, added) in found.iter().zip(union::add(&search, &found)) {
        if kind.is_of_reachable() {
            kinds.push((kind, scale(findings.bytes).min(tree.reachable_bytes())));
            reachable_wasted_bytes = reachable_wasted_bytes.saturating_add(scale(added));
        }
    }
    // All unreachable objects are of one kind.
    let filler = Filler::new(dump.summary, dump.graph);
    let unreachable = Unreachable::new(dump.summary, dump.graph).garbage_bytes(filler);
    let garbage = KINDS.into_iter().filter(|kind| unreachable > 0 && !kind.is_of_reachable());
    kinds.extend(garbage.map(|kind| (kind, unreachable)));
    kinds.sort_rows_by_key(|(kind, bytes)| (std::cmp::Reverse(*bytes), *kind));
    let reachable_wasted_bytes = reachable_wasted_bytes.min(tree.reachable_bytes());
    let wasted_bytes = reachable_wasted_bytes.saturating_add(unreachable);
    Ok(Estimate { kinds, wasted_bytes, reachable_wasted_bytes, all_bytes, is_exact })
}

/// Waste of the largest kind among some objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WastedPart {
    /// The kind of waste.
    pub kind: &'static WasteKind,
    /// Wasted bytes.
    pub bytes: u64,
    /// Shallow size of the objects in bytes.
    pub of_bytes: u64,
}

/// Returns the kind of waste with the most bytes among the objects that `tops` retain; no top may dominate another. Large sets
/// are sampled. `None` if nothing is wasted.
///
/// # Errors
/// The errors of [`super::waste`].
pub fn most_wasted(dump: &Dump<'_>, tops: &[TreePosition]) -> io::Result<Option<WastedPart>> {
    let tree = &dump.graph.tree;
    let mut sample: Vec<Range<TreePosition>> = Vec::new();
    let mut left = MAX_BELOW;
    for top in tops {
        if left == 0 {
            break;
        }
        let length = tree.end(*top).0.saturating_sub(top.0);
        let shift = |at: TreePosition| TreePosition(at.0.saturating_add(top.0));
        if length <= left {
            sample.push(*top..tree.end(*top));
        } else {
            let (_, each) = WINDOWS;
            let some = windows(length, left.div_ceil(each), each).into_iter();
            sample.extend(some.map(|window| shift(window.start)..shift(window.end).min(tree.end(*top))));
        }
        left = left.saturating_sub(length);
    }
    let of_bytes = sample.iter().flat_map(|window| tree.shallow_sizes(window.clone()));
    let of_bytes = of_bytes.fold(0, u64::saturating_add);
    let search = WasteSearch::new(dump, Reachable::sample(dump.graph, &sample, u64::MAX));
    let kinds = KINDS.into_iter().filter(|kind| kind.is_sampled && kind.is_of_reachable()).collect();
    let found = findings(&search, &WasteQuery { kinds, group_by: FieldGroupBy::Field, examples: 0 })?;
    let parts = found.iter().map(|one| WastedPart { kind: one.kind, bytes: one.findings.bytes, of_bytes });
    Ok(parts.filter(|part| part.bytes > 0).max_by_key(|part| (part.bytes, std::cmp::Reverse(part.kind))))
}

/// Returns `count` evenly spaced windows of `length` positions.
fn windows(positions: u32, count: u32, length: u32) -> Vec<Range<TreePosition>> {
    let step = positions / count.max(1);
    let length = length.min(step);
    let before = step.saturating_sub(length) / 2;
    let window = |number: u32| {
        let start = number.saturating_mul(step).saturating_add(before);
        TreePosition(start)..TreePosition(start.saturating_add(length))
    };
    (0..count).map(window).collect()
}

/// Serialization of kinds of waste by their names.
mod by_name {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::{KINDS, WasteKind};

    pub(super) fn serialize<S: Serializer>(kinds: &[(&WasteKind, u64)], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(kinds.iter().map(|(kind, bytes)| (kind.name, bytes)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<(&'static WasteKind, u64)>, D::Error> {
        let named = Vec::<(String, u64)>::deserialize(from)?;
        let known = |(name, bytes): (String, u64)| {
            let kind = KINDS.into_iter().find(|kind| kind.name == name);
            kind.map(|kind| (kind, bytes)).ok_or_else(|| D::Error::custom("unknown kind of waste"))
        };
        named.into_iter().map(known).collect()
    }
}
