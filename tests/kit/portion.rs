//! The portion of expensive tests that runs: thousands of random heaps, changes of every byte, widths over all samples.
//!
//! `cargo test` runs a portion, the same in every run. With the feature `long-tests`, as in `.ci/run`, all of it runs.

/// Fraction that runs by default: one in this many. Neither even nor a divisor of the sizes of records, so that a
/// portion of all positions of a dump includes every alignment.
const ONE_IN: usize = 7;

/// Returns whether everything runs.
pub const fn is_whole() -> bool {
    cfg!(feature = "long-tests")
}

/// Returns the distance between two items that run: 1 for all.
pub fn step() -> usize {
    if is_whole() { 1 } else { ONE_IN }
}

/// Returns the portion of cases that runs, for cases that take long each.
pub fn some<T>(all: &[T]) -> impl Iterator<Item = &T> {
    all.iter().step_by(step())
}

/// Returns the samples that run: one in three by default.
pub fn samples<'s>(all: &'s [&'s str]) -> Vec<&'s str> {
    all.iter().copied().step_by(if is_whole() { 1 } else { 3 }).collect()
}

/// Returns how many of `all` random cases run.
pub fn cases(all: u64) -> u64 {
    all.div_ceil(step() as u64)
}
