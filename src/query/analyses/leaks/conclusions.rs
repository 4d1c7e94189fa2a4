//! Conclusions from leak suspects: causes, largest first, none of which explains most of another.

use std::cmp::Reverse;

use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::TreePosition;

use super::holders::Holder;
use super::loaders::Loaders;
use super::positions::{self, accumulated_at, common_bytes};
use super::{LeakVerdict, Leaks, Suspect, SuspectKind, SuspectRule, SuspectSubject, contents};
use hprof_base::sorting::SortRows;
use hprof_model::dominators::retained_of_set::tops_of_positions;

/// A reason why memory is not freed, and the amount of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclusion {
    /// Cause of the conclusion.
    pub cause: Cause,
    /// Size accumulated in the cause, or retained by the class loaders, including the side tables.
    pub retained_bytes: u64,
    /// Numbers of the suspects that belong to this conclusion: maps whose keys are classes of these class loaders.
    pub side_tables: Vec<usize>,
}

/// Cause of a conclusion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// Number of a suspect in which memory accumulates.
    Suspect(usize),
    /// Class loaders of one application that several holders keep alive.
    Loaders {
        /// Number of the group of loaders.
        group: usize,
        /// Number of the suspect for the group.
        row: usize,
        /// Numbers of the suspects that are parts of the group: the loaders retain most of what each suspect retains.
        suspects: Vec<usize>,
    },
}

/// The most important finding of the search for leaks.
#[derive(Debug, Clone, Copy)]
pub enum LargestFinding<'a> {
    /// The conclusion whose cause has the largest retained size.
    Conclusion(&'a Conclusion),
    /// A suspect without accumulation that retains more than any cause.
    Holder(&'a Suspect),
    /// The largest holder if nothing is suspect.
    NoSuspect(&'a Holder),
}

impl LargestFinding<'_> {
    /// Returns the retained size of the finding; for a conclusion, the size of its cause.
    pub fn retained_bytes(&self) -> u64 {
        match self {
            Self::Conclusion(conclusion) => conclusion.retained_bytes,
            Self::Holder(suspect) => suspect.retained_bytes,
            Self::NoSuspect(holder) => holder.retained_bytes,
        }
    }
}

/// Denominator of the fraction of all objects that a suspect must retain to become a conclusion. Smaller suspects are only
/// listed: if nearly all objects are garbage, anything can be 10 percent of the rest.
const LEAST_PART: u64 = 100;

impl Conclusion {
    /// Returns the number of the suspect that the conclusion is about.
    pub fn suspect(&self) -> usize {
        match self.cause {
            Cause::Suspect(at) => at,
            Cause::Loaders { row, .. } => row,
        }
    }
}

impl Leaks {
    /// Returns the suspects in which memory accumulates and that are large enough for a conclusion, with their numbers.
    pub fn accumulations(&self) -> impl Iterator<Item = (usize, &Suspect)> {
        let all = self.suspects.iter().enumerate();
        all.filter(|(_, suspect)| {
            suspect.own_verdict() == Some(LeakVerdict::Accumulation)
                && suspect.off_heap.is_none()
                && self.is_large(suspect.retained_bytes)
        })
    }

    /// Returns the suspects that are large enough for a conclusion, largest retained size first.
    pub fn large(&self) -> impl Iterator<Item = &Suspect> {
        let is_told = |suspect: &&Suspect| {
            !suspect.has_judgement_row()
                && suspect.off_heap.is_none()
                && self.is_large(suspect.retained_bytes)
        };
        let mut all: Vec<&Suspect> = self.suspects.iter().filter(is_told).collect();
        all.sort_rows_by_key(|suspect| {
            (Reverse(suspect.retained_bytes), suspect.verdict == LeakVerdict::Holder)
        });
        all.into_iter()
    }

    fn is_large(&self, bytes: u64) -> bool {
        bytes >= self.used_bytes / LEAST_PART
    }

    /// Returns the groups of class loaders that are causes, with the numbers of the suspects that are parts of each, given the
    /// positions of each suspect in the dominator tree.
    ///
    /// The memory that the loaders of one application retain is one cause, whatever holds each loader, unless most of it is in
    /// one suspect, or in loaders that retain more: those are more specific.
    pub(super) fn loader_causes(
        &self,
        graph: &ObjectGraph,
        places: &[Vec<TreePosition>],
        loaders: &Loaders,
    ) -> Vec<(usize, Vec<usize>)> {
        let common = |some: &[TreePosition], others: &[TreePosition]| common_bytes(&graph.tree, some, others);
        // A suspect that only groups loaders is less specific than their holders.
        let is_only_loaders = |suspect: &Suspect| {
            suspect.kind == SuspectKind::Group
                && suspect.what == SuspectSubject::ClassLoader
                && suspect.point.is_none()
        };
        let mut within: Vec<Vec<TreePosition>> = self
            .accumulations()
            .filter(|(_, suspect)| suspect.is_by_mat() || suspect.rule != SuspectRule::Below)
            .filter(|(_, suspect)| !is_only_loaders(suspect))
            .map(|(at, suspect)| accumulated_at(graph, suspect, places.get(at).map_or(&[], Vec::as_slice)))
            .collect();
        let mut causes = Vec::new();
        for (group, found) in loaders.that_accumulate() {
            let retained_bytes = found.group.retained.bytes;
            let is_within =
                |positions: &Vec<_>| contents::is_most(common(&found.tops, positions), retained_bytes);
            if retained_bytes <= self.threshold_bytes
                || !self.is_large(retained_bytes)
                || within.iter().any(is_within)
            {
                continue;
            }
            // The rest of it must be too small for a suspect.
            let is_part = |(suspect, places): &(&Suspect, &Vec<TreePosition>)| {
                let (own, all) = (common(places, &found.tops), suspect.retained_bytes);
                let is_half = own >= all / 2 && all.saturating_sub(own) <= self.threshold_bytes;
                !suspect.has_judgement_row() && (contents::is_most(own, all) || is_half)
            };
            let suspects = self.suspects.iter().zip(places).enumerate();
            let suspects: Vec<usize> =
                suspects.filter(|(_, suspect)| is_part(suspect)).map(|(at, _)| at).collect();
            within.push(found.tops.clone());
            causes.push((group, suspects));
        }
        causes
    }

    /// Draws conclusions from suspects, given the positions of each suspect in the dominator tree, and from class loaders that
    /// are causes.
    pub(super) fn conclude(
        &self,
        graph: &ObjectGraph,
        places: &[Vec<TreePosition>],
        (loaders, causes): (&Loaders, Vec<Cause>),
        side_tables: &[Option<usize>],
    ) -> (Vec<Conclusion>, u64) {
        let common = |some: &[TreePosition], others: &[TreePosition]| common_bytes(&graph.tree, some, others);
        let mut explained = Vec::new();
        let mut all = Vec::new();
        // Positions that the conclusions explain, and retained bytes that these positions do not cover.
        let (mut positions, mut beyond_tree) = (Vec::new(), 0u64);
        for cause in causes {
            let Cause::Loaders { group, row, suspects } = &cause else { continue };
            let Some(found) = loaders.get(*group) else { continue };
            let retained_bytes = found.group.retained.bytes;
            explained.push(*row);
            explained.extend(suspects);
            positions.extend_from_slice(&found.tops);
            beyond_tree = beyond_tree.saturating_add(
                retained_bytes.saturating_sub(positions::retained_bytes(&graph.tree, &found.tops)),
            );
            all.push(Conclusion { cause, retained_bytes, side_tables: Vec::new() });
        }
        let mut rest: Vec<(usize, &Suspect)> =
            self.accumulations().filter(|(at, _)| !explained.contains(at)).collect();
        rest.sort_rows_by_key(|(_, suspect)| Reverse(suspect.explained_bytes()));
        let mut told: Vec<Vec<TreePosition>> = Vec::new();
        for (at, suspect) in rest {
            let own = accumulated_at(graph, suspect, places.get(at).map_or(&[], Vec::as_slice));
            // Part of a larger one, such as one of ten results.
            let is_part =
                |larger: &Vec<_>| contents::is_most(common(&own, larger), suspect.accumulated_bytes);
            if !told.iter().any(is_part) {
                let tops = suspect.explained_container().map_or(own.as_slice(), |container| &container.tops);
                // If only a part of the threads' size is explained (a ThreadLocal), it is added without their
                // positions.
                let by_tree = match positions::retained_bytes(&graph.tree, tops) {
                    all if all <= suspect.explained_bytes() => {
                        positions.extend_from_slice(tops);
                        all
                    }
                    _ => 0,
                };
                beyond_tree = beyond_tree.saturating_add(suspect.explained_bytes() - by_tree);
                told.push(own);
                let retained_bytes = suspect.explained_bytes();
                all.push(Conclusion { cause: Cause::Suspect(at), retained_bytes, side_tables: Vec::new() });
            }
        }
        Self::fold_side_tables(&mut all, side_tables);
        all.sort_rows_by_key(|one| Reverse(one.retained_bytes));
        let concluded_bytes = match all.as_slice() {
            [one] => one.retained_bytes,
            _ => {
                let tops = tops_of_positions(&graph.tree, positions);
                positions::retained_bytes(&graph.tree, &tops).saturating_add(beyond_tree)
            }
        };
        // Memory outside of the heap is not part of the heap's total.
        let outside = self.suspects.iter().enumerate().filter(|(_, suspect)| suspect.off_heap.is_some());
        let outside = outside.map(|(at, suspect)| Conclusion {
            cause: Cause::Suspect(at),
            retained_bytes: suspect.explained_bytes(),
            side_tables: Vec::new(),
        });
        all.splice(..0, outside.collect::<Vec<_>>());
        (all, concluded_bytes.min(self.reachable_bytes))
    }

    /// Moves the conclusions about side tables to the conclusions about the class loaders to which they belong.
    fn fold_side_tables(all: &mut Vec<Conclusion>, side_tables: &[Option<usize>]) {
        let loaders_of = |one: &Conclusion| match one.cause {
            Cause::Suspect(at) => Some((at, side_tables.get(at).copied().flatten()?)),
            Cause::Loaders { .. } => None,
        };
        let of = |loaders: usize| {
            move |one: &Conclusion| match &one.cause {
                Cause::Suspect(at) => *at == loaders,
                Cause::Loaders { row, suspects, .. } => *row == loaders || suspects.contains(&loaders),
            }
        };
        let tables: Vec<Conclusion> = all.extract_if(.., |one| loaders_of(one).is_some()).collect();
        for table in tables {
            let Some((at, loaders)) = loaders_of(&table) else { continue };
            match all.iter_mut().find(|one| of(loaders)(one)) {
                Some(one) => {
                    one.retained_bytes = one.retained_bytes.saturating_add(table.retained_bytes);
                    one.side_tables.push(at);
                }
                None => all.push(table),
            }
        }
    }

    /// Returns the most important finding. `None` if no object is reachable, or if reachable objects are negligible compared
    /// with the garbage.
    pub fn largest(&self) -> Option<LargestFinding<'_>> {
        let conclusion =
            self.conclusions.iter().find(|one| !self.is_outside(one)).map(LargestFinding::Conclusion);
        // Suspects that are bounded, in progress, or part of the platform do not count.
        let holder =
            self.large().find(|suspect| suspect.verdict == LeakVerdict::Holder).map(LargestFinding::Holder);
        let rest = self.largest.first().filter(|holder| self.is_large(holder.retained_bytes));
        // The conclusion, if several are equal.
        let all = [rest.map(LargestFinding::NoSuspect), holder, conclusion];
        all.into_iter().flatten().max_by_key(LargestFinding::retained_bytes)
    }

    /// Returns whether a conclusion is about memory outside of the heap.
    pub fn is_outside(&self, one: &Conclusion) -> bool {
        match one.cause {
            Cause::Suspect(at) => self.suspects.get(at).is_some_and(|suspect| suspect.off_heap.is_some()),
            Cause::Loaders { .. } => false,
        }
    }

    /// Returns the size of unreachable objects, if it exceeds the size of reachable objects.
    pub fn garbage_bytes(&self) -> Option<u64> {
        let garbage = self.used_bytes.saturating_sub(self.reachable_bytes);
        Some(garbage).filter(|garbage| *garbage > self.reachable_bytes)
    }
}
