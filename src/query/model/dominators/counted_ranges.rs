//! Counts of ranges of positions, which reuse the counts of ranges counted before: an object's range contains those of the
//! objects that it dominates.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::TreePosition;

use super::class_counts::{self, Counts};

/// Minimum number of positions of a range whose counts are kept.
const LONG: u32 = 1 << 14;
/// Maximum number of counts that are kept.
const MAX_KEPT: usize = 1 << 21;

type CountedRange = (Range<TreePosition>, Arc<Vec<Counts>>);

/// Ranges of positions that were counted.
#[derive(Debug)]
pub struct CountedRanges<'a> {
    graph: &'a ObjectGraph,
    /// Number of classes.
    classes: usize,
    known: Mutex<Vec<CountedRange>>,
}

impl<'a> CountedRanges<'a> {
    /// Creates an empty list for a graph with this number of classes.
    pub fn new(graph: &'a ObjectGraph, classes: usize) -> Self {
        Self { graph, classes, known: Mutex::default() }
    }

    /// Counts the objects of a range like [`class_counts::count`], reusing earlier counts.
    pub fn count(&self, range: Range<TreePosition>) -> Vec<Counts> {
        let len = len(&range);
        if len < LONG {
            return self.scan(range);
        }
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (within, covered) = ranges_within(&known, &range);
        // The smallest range that contains this one.
        let around = known.iter().filter(|(other, _)| other.start <= range.start && range.end <= other.end);
        let around = around.min_by_key(|(other, _)| self::len(other));
        let counts = match around {
            Some((other, all)) if self::len(other) - len < len - covered => {
                let mut counts = all.to_vec();
                for gap in [other.start..range.start, range.end..other.end] {
                    subtract(&mut counts, &self.scan(gap));
                }
                counts
            }
            _ => {
                let mut counts = vec![Counts::default(); self.classes];
                let mut done = range.start;
                for (part, of_part) in within {
                    counts = class_counts::add(counts, &self.scan(done..part.start));
                    counts = class_counts::add(counts, of_part);
                    done = part.end;
                }
                class_counts::add(counts, &self.scan(done..range.end))
            }
        };
        if (known.len() + 1).saturating_mul(self.classes) <= MAX_KEPT {
            let counted = (range, Arc::new(counts.clone()));
            self.known.lock().unwrap_or_else(PoisonError::into_inner).push(counted);
        }
        counts
    }

    fn scan(&self, range: Range<TreePosition>) -> Vec<Counts> {
        class_counts::count(self.graph, range, self.classes)
    }
}

fn len(range: &Range<TreePosition>) -> u32 {
    range.end.0.saturating_sub(range.start.0)
}

/// Returns known ranges within a range, ascending and disjoint, and the number of positions that they cover.
fn ranges_within<'k>(known: &'k [CountedRange], range: &Range<TreePosition>) -> (Vec<&'k CountedRange>, u32) {
    let is_within = |(other, _): &&CountedRange| range.start <= other.start && other.end <= range.end;
    let mut found: Vec<&CountedRange> = known.iter().filter(is_within).collect();
    // Of nested ranges the outermost comes first.
    found.sort_by_key(|(other, _)| (other.start, std::cmp::Reverse(other.end)));
    let mut done = range.start;
    found.retain(|(other, _)| {
        let is_next = other.start >= done;
        done = if is_next { other.end } else { done };
        is_next
    });
    let covered = found.iter().map(|(other, _)| len(other)).sum();
    (found, covered)
}

fn subtract(counts: &mut [Counts], others: &[Counts]) {
    for (count, other) in counts.iter_mut().zip(others) {
        count.objects = count.objects.saturating_sub(other.objects);
        count.shallow_bytes = count.shallow_bytes.saturating_sub(other.shallow_bytes);
    }
}
