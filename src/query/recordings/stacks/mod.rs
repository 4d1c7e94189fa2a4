//! Weighted stacks: recorded stacks merged into one tree of frames, for flame graphs and the like.
//!
//! A stack begins at its root, the outermost frame. Stacks with a common beginning share nodes, so the size of the tree
//! depends on the traces of the file, not on the rows that refer to them. Nothing recurses: untrusted traces may be
//! deep.
//!
//! For a comparison, the stacks of two recordings are merged into one tree, in which each frame has two weights.

mod tree;

use std::sync::Arc;

use super::profile::flight::MonitorEvent;
use super::profile::{Origin, Profile};
use super::stack_filter::StackFilter;

use tree::Tree;

/// Index of the root node, which is the sum of all stacks.
const ALL: u32 = 0;

/// Quantity used as the weight of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StackWeight {
    /// Number of samples: CPU SAMPLES.
    Cpu,
    /// Time: CPU TIME (ms), or the table of `cpu=old`.
    CpuTime,
    /// All allocated objects, including freed ones: recorded allocation sites.
    Allocated,
    /// Live objects by the stack in which they were allocated.
    Live,
    /// Time that threads waited: MONITOR TIME, or events of Flight Recorder.
    Waits(MonitorEvent),
}

/// Unit of the weights of allocation sites.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum SiteUnit {
    /// Bytes.
    #[default]
    Bytes,
    /// Number of objects.
    Objects,
}

/// How frames are named.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Naming {
    /// Names as in the file.
    #[default]
    AsRecorded,
    /// Names that are equal in every recording of the program, without the numbers that each run assigns.
    Common,
}

/// Query for a tree of weighted stacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackQuery {
    /// Quantity used as the weight of a stack.
    pub of: StackWeight,
    /// Unit of the weights, for allocation sites.
    pub unit: SiteUnit,
    /// `true` to use the thread of a trace as its root frame.
    pub by_thread: bool,
    /// `true` to start stacks at the innermost frame.
    pub reverse: bool,
    /// `true` to use a frame for each line of a method.
    pub lines: bool,
    /// Maximum number of frames of a trace, from the innermost; `None` for all.
    pub depth: Option<usize>,
    /// Filter of stacks. The class of a site's objects counts as a frame's class.
    pub filter: StackFilter,
    /// Form of names in frames.
    pub naming: Naming,
}

impl StackQuery {
    /// Creates a query for all stacks with this weight.
    pub fn new(of: StackWeight) -> Self {
        Self {
            of,
            unit: SiteUnit::Bytes,
            by_thread: false,
            reverse: false,
            lines: false,
            depth: None,
            filter: StackFilter::default(),
            naming: Naming::default(),
        }
    }
}

/// Unit of the weights of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Samples.
    Samples,
    /// Milliseconds.
    Milliseconds,
    /// Hundredths of a percent, for CPU times whose total in the file is wrong.
    PercentHundredths,
    /// Bytes.
    Bytes,
    /// Objects.
    Objects,
}

impl Measure {
    /// Returns the unit as it follows a number: `12 samples`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Samples => "samples",
            Self::Milliseconds => "ms",
            Self::PercentHundredths => "hundredths of a percent",
            Self::Bytes => "bytes",
            Self::Objects => "objects",
        }
    }
}

/// Kind of a frame's label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LabelKind {
    /// A method.
    Method,
    /// Objects of a class.
    Objects,
    /// A thread.
    Thread,
    /// Placeholder for an empty or unknown trace.
    Nothing,
}

/// Label of a frame in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Name as in the file; untrusted.
    pub text: String,
    /// Kind of label.
    pub kind: LabelKind,
    /// Source file of a method, if known.
    pub source: Option<Arc<str>>,
    /// Line number, if it is known and frames are separated by line.
    pub line: Option<u32>,
}

/// Recorded stacks merged into one tree of frames.
#[derive(Debug, Clone)]
pub struct Stacks {
    /// Unit of the weights.
    pub measure: Measure,
    /// Sum of all weights.
    pub total: u64,
    /// Baseline of a comparison.
    pub baseline: Option<Baseline>,
    /// Number of distinct stacks.
    pub stacks: u64,
    /// Number of traces deeper than the maximum depth.
    pub cut: u64,
    labels: Vec<Label>,
    /// Nodes; the first is the root. Parents come before their children.
    nodes: Vec<StackNode>,
    /// Baseline weights by node; empty if there is no baseline.
    old: Vec<Weights>,
    /// Start of each node's children in `order`.
    first: Vec<u32>,
    /// Child nodes of all nodes, sorted by name.
    order: Vec<u32>,
}

/// Sums over the stacks of an older recording in the same tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Baseline {
    /// Sum of the baseline's weights.
    pub total: u64,
    /// Weight of the baseline's stacks that contain frames without counterpart in the new recording.
    pub gone: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct StackNode {
    parent: u32,
    label: u32,
    weights: Weights,
}

/// Weights of a node.
#[derive(Debug, Clone, Copy, Default)]
struct Weights {
    /// Weight of stacks that end here.
    own: u64,
    /// Weight of stacks that end here or below.
    total: u64,
}

/// Frame visited by a walk over the stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackStep {
    /// Number of frames between this frame and the root.
    pub depth: usize,
    /// Index of the frame's label ([`Stacks::labels`]).
    pub label: u32,
    /// Weight of all stacks through this frame.
    pub total: u64,
    /// Weight of the stacks through this frame that do not continue in a visited child frame.
    pub rest: u64,
    /// `total` in the baseline.
    pub old_total: u64,
    /// `rest` in the baseline.
    pub old_rest: u64,
}

/// Error for a tree of frames that would be too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stacks contain too many different frames to merge")]
pub struct TooLarge;

/// Returns the weights that the profile contains, in the order in which they are shown by default. Allocation sites are
/// included only if they were read.
pub fn available_weights(profile: &Profile) -> Vec<StackWeight> {
    let cpu = profile.samples.as_ref().is_some_and(|samples| !samples.rows.is_empty());
    let times = profile.times.as_ref().is_some_and(|times| !times.rows.is_empty());
    let sites = profile.sites.as_ref().filter(|sites| !sites.rows.is_empty());
    let contention = profile.contention.as_ref().filter(|times| !times.rows.is_empty());
    let event = contention.and_then(|times| times.event).unwrap_or(MonitorEvent::Enter);
    let found = [
        (StackWeight::Cpu, cpu),
        (StackWeight::CpuTime, times || !profile.calls.is_empty()),
        (StackWeight::Allocated, sites.is_some_and(|sites| sites.origin != Origin::Objects)),
        (StackWeight::Live, sites.is_some_and(|sites| sites.origin != Origin::Sampled)),
        (StackWeight::Waits(event), contention.is_some()),
    ];
    found.into_iter().filter(|(_, there)| *there).map(|(of, _)| of).collect()
}

/// Merges the stacks of a profile.
///
/// # Errors
/// If the tree would be too large.
pub fn stacks(profile: &Profile, question: &StackQuery) -> Result<Stacks, TooLarge> {
    let mut tree = Tree::new(profile, question);
    let measure = tree.fill()?;
    Ok(tree.finish(measure))
}

/// Reason why stacks cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotComparable {
    /// The tree of one profile would be too large.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// CPU times have different units.
    #[error("one file has {} per stack, the other {}", .0.name(), .1.name())]
    Measures(Measure, Measure),
    /// `cpu=old` has no stacks.
    #[error("one file has times per stack, the other times per call (cpu=old)")]
    Calls,
}

/// Merges the stacks of a profile and of an older one as its baseline.
///
/// # Errors
/// If the tree would be too large, or if the weights have different units.
pub fn compare(old: &Profile, new: &Profile, question: &StackQuery) -> Result<Stacks, NotComparable> {
    if question.of == StackWeight::CpuTime && old.times.is_some() != new.times.is_some() {
        return Err(NotComparable::Calls);
    }
    let mut tree = Tree::new(old, question);
    let before = tree.fill()?;
    tree.begin_new(new);
    let after = tree.fill()?;
    if before != after {
        return Err(NotComparable::Measures(before, after));
    }
    Ok(tree.finish(after))
}

impl Stacks {
    /// Returns the labels of all frames. [`StackStep::label`] is an index into them.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// Visits all frames in preorder, siblings sorted by name. A frame whose weight is 0 or is rejected by `enough` is skipped
    /// together with all frames below it; its weight is part of its caller's `rest`.
    pub fn walk(&self, enough: impl Fn(u64) -> bool) -> StackWalk<'_, impl Fn(u64, u64) -> bool> {
        self.walk_both(move |weight, _| weight > 0 && enough(weight))
    }

    /// Visits all frames as [`Stacks::walk`] does, including frames that occur only in the baseline. `enough` receives the new
    /// weight and the baseline's weight.
    pub fn walk_both<F: Fn(u64, u64) -> bool>(&self, enough: F) -> StackWalk<'_, F> {
        StackWalk { stacks: self, enough, next: vec![(ALL, 0)], started: false }
    }

    /// Returns the weights of a node in the baseline.
    fn old(&self, node: u32) -> Weights {
        self.old.get(node as usize).copied().unwrap_or_default()
    }

    fn children(&self, node: u32) -> &[u32] {
        let bound = |at: usize| self.first.get(at).map(|at| *at as usize);
        let (Some(from), Some(to)) = (bound(node as usize), bound(node as usize + 1)) else { return &[] };
        self.order.get(from..to).unwrap_or_default()
    }
}

/// A walk over [`Stacks`].
#[derive(Debug)]
pub struct StackWalk<'a, F> {
    stacks: &'a Stacks,
    enough: F,
    /// Stack of nodes to visit, with their depth; the last one is visited next.
    next: Vec<(u32, usize)>,
    started: bool,
}

impl<F: Fn(u64, u64) -> bool> StackWalk<'_, F> {
    fn visit(&mut self) -> Option<StackStep> {
        let (number, depth) = self.next.pop()?;
        let node = self.stacks.nodes.get(number as usize)?;
        let old = self.stacks.old(number);
        let (mut below, mut old_below) = (0u64, 0u64);
        for child in self.stacks.children(number).iter().rev() {
            let total = self.stacks.nodes.get(*child as usize).map_or(0, |child| child.weights.total);
            let old_total = self.stacks.old(*child).total;
            if (total > 0 || old_total > 0) && (self.enough)(total, old_total) {
                below = below.saturating_add(total);
                old_below = old_below.saturating_add(old_total);
                self.next.push((*child, depth + 1));
            }
        }
        Some(StackStep {
            // The root node is not a frame.
            depth: depth.saturating_sub(1),
            label: node.label,
            total: node.weights.total,
            rest: node.weights.total.saturating_sub(below),
            old_total: old.total,
            old_rest: old.total.saturating_sub(old_below),
        })
    }
}

impl<F: Fn(u64, u64) -> bool> Iterator for StackWalk<'_, F> {
    type Item = StackStep;

    fn next(&mut self) -> Option<StackStep> {
        if !self.started {
            self.started = true;
            self.visit()?;
        }
        self.visit()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
