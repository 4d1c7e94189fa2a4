//! Allocation sites in a Flight Recorder recording: by class and innermost frame of the application, with the allocation rate
//! over time.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::profile::Frame;
use super::profile::flight::allocations::{Allocations, SampleSum, TIME_PARTS};
use hprof_base::sorting::SortRows;

/// Maximum number of frames of a site's stack.
const MAX_FRAMES: usize = 16;
/// Minimum percentage of a site's bytes in the first or last quarter of the time for [`AllocationRate::Start`] and
/// [`AllocationRate::End`].
const NEARLY_ALL: u64 = 90;

/// Allocation site: the objects of a class that were allocated in one frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocationSite {
    /// Innermost frame of the application, or else the innermost frame; `None` for samples without a stack.
    pub frame: Option<Frame>,
    /// Number and bytes of all samples of the site.
    pub sum: SampleSum,
    /// Allocated bytes by part of the recording's time.
    pub parts: [u64; TIME_PARTS],
    /// Samples by shallow size of the allocated array, for events that state a size.
    pub sizes: HashMap<u64, SampleSum>,
    /// `true` if `sizes` is incomplete.
    pub has_more_sizes: bool,
    /// Bytes allocated in stacks with a frame of one of the `callers` ([`sites_of`]).
    pub called_bytes: u64,
    /// Stack shown for the site, innermost frame first, at most 16 frames: the one with the most bytes, or with the most
    /// sampled objects that were still alive if [`Self::set_stack`] chose it.
    pub stack: Vec<Frame>,
    stack_bytes: u64,
}

/// Change of the allocation rate over the time of the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllocationRate {
    /// Nearly everything in the first quarter.
    Start,
    /// Nearly everything in the last quarter.
    End,
    /// The second half has more than 1.5 times the bytes of the first.
    Rising,
    /// The first half has more than 1.5 times the bytes of the second.
    Falling,
    /// None of the other cases.
    Steady,
}

impl AllocationRate {
    /// Returns the name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::End => "end",
            Self::Rising => "rising",
            Self::Falling => "falling",
            Self::Steady => "steady",
        }
    }
}

impl AllocationSite {
    /// Creates a site without samples.
    pub fn new(frame: Option<Frame>, stack: &[&Frame]) -> Self {
        Self {
            frame,
            sum: SampleSum::default(),
            parts: [0; TIME_PARTS],
            sizes: HashMap::new(),
            has_more_sizes: false,
            called_bytes: 0,
            stack: stack.iter().take(MAX_FRAMES).copied().cloned().collect(),
            stack_bytes: 0,
        }
    }

    /// Replaces the stack that is shown for the site.
    pub fn set_stack(&mut self, stack: &[&Frame]) {
        self.stack = stack.iter().take(MAX_FRAMES).copied().cloned().collect();
    }

    /// Returns how the rate changed over the time.
    pub fn rate(&self) -> AllocationRate {
        let sum = |parts: &[u64]| parts.iter().copied().map(u128::from).sum::<u128>();
        let all = sum(&self.parts);
        let nearly_all = |part: u128| part * 100 >= all * u128::from(NEARLY_ALL);
        let [quarter, half] = [TIME_PARTS / 4, TIME_PARTS / 2];
        let (first, second) = self.parts.split_at(half);
        let (first_quarter, _) = self.parts.split_at(quarter);
        let (_, last_quarter) = self.parts.split_at(TIME_PARTS - quarter);
        let is_more = |more: &[u64], less: &[u64]| sum(more) * 2 > sum(less) * 3;
        match () {
            () if all == 0 => AllocationRate::Steady,
            () if nearly_all(sum(first_quarter)) => AllocationRate::Start,
            () if nearly_all(sum(last_quarter)) => AllocationRate::End,
            () if is_more(second, first) => AllocationRate::Rising,
            () if is_more(first, second) => AllocationRate::Falling,
            () => AllocationRate::Steady,
        }
    }
}

/// Returns the innermost frame of the application, or else the innermost frame.
pub fn own_frame(stack: &[&Frame]) -> Option<Frame> {
    own_frames(stack).map(|(frame, _)| frame)
}

/// Returns the innermost frame of the application (else the innermost frame) and the next outer frame of the application.
pub fn own_frames(stack: &[&Frame]) -> Option<(Frame, Option<Frame>)> {
    let mut own = stack.iter().filter(|frame| frame.is_own());
    let frame = own.next().or(stack.first())?;
    Some((frame.as_shown(), own.next().map(|caller| caller.as_shown())))
}

/// Returns the sites that allocated objects of a class, most bytes first. The bytes of stacks with a frame of one of the
/// classes `callers` are summed in [`AllocationSite::called_bytes`].
pub fn sites_of(allocations: &Allocations, class: &str, callers: &[&str]) -> Vec<AllocationSite> {
    let mut sites: HashMap<Option<Frame>, AllocationSite> = HashMap::new();
    for (stack, row) in allocations.of_class(class) {
        let frame = own_frame(&stack);
        let site = sites.entry(frame.clone()).or_insert_with(|| AllocationSite::new(frame, &stack));
        site.sum.add(row.sum);
        for (part, more) in site.parts.iter_mut().zip(&row.parts) {
            *part = part.saturating_add(*more);
        }
        for (size, sum) in &row.sizes {
            site.sizes.entry(*size).or_default().add(*sum);
        }
        site.has_more_sizes |= row.has_more_sizes;
        let is_caller = |frame: &&Frame| frame.class.as_deref().is_some_and(|class| callers.contains(&class));
        if stack.iter().any(is_caller) {
            site.called_bytes = site.called_bytes.saturating_add(row.sum.bytes);
        }
        if row.sum.bytes > site.stack_bytes {
            site.stack_bytes = row.sum.bytes;
            site.set_stack(&stack);
        }
    }
    let mut sites: Vec<AllocationSite> = sites.into_values().collect();
    sites.sort_rows_by_cached_key(|site| {
        // Two frames can have the same text if names of classes or methods contain dots.
        let frame = site.frame.as_ref().map(|frame| (frame.to_string(), frame.class.clone()));
        (Reverse((site.sum.bytes, site.sum.samples)), frame)
    });
    sites
}

/// Returns the sites of all classes: each class with the sites that allocated its objects, most bytes first.
pub fn all_sites(allocations: &Allocations) -> impl Iterator<Item = (&str, Vec<AllocationSite>)> {
    allocations.classes().map(|class| (class, sites_of(allocations, class, &[])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hprof_writer::hostile_keys::is_seeded;

    /// The file chooses the sizes: without a seed it could choose sizes that collide.
    #[test]
    fn the_hash_is_seeded() {
        assert!(is_seeded(&AllocationSite::new(None, &[]).sizes));
    }

    #[test]
    fn rate_over_time() {
        let rate = |of: &dyn Fn(usize) -> u64| {
            let parts = std::array::from_fn(of);
            AllocationSite { parts, ..AllocationSite::new(None, &[]) }.rate().name()
        };
        assert_eq!(rate(&|_| 0), "steady");
        assert_eq!(rate(&|part| 5 + (part % 2) as u64), "steady");
        assert_eq!(rate(&|part| part as u64), "rising");
        assert_eq!(rate(&|part| (TIME_PARTS - part) as u64), "falling");
        assert_eq!(rate(&|part| u64::from(part < 6) * 100 + 1), "start");
        assert_eq!(rate(&|part| u64::from(part >= 18) * 100 + 1), "end");
        assert_eq!(rate(&|_| u64::MAX), "steady");
    }
}
