//! Weighted stacks: recorded stacks merged into one tree of frames, for flame graphs and the like.
//!
//! A stack begins at its root, the outermost frame. Stacks with a common beginning share nodes, so the size of the tree
//! depends on the traces of the file, not on the rows that refer to them. Nothing recurses: untrusted traces may be
//! deep.
//!
//! The stacks of two recordings are merged into one tree, whose frames have two weights.

mod tree;

use std::sync::Arc;

use super::profile::flight::MonitorEvent;
use super::profile::{Origin, Profile};
use super::stack_filter::StackFilter;

use tree::Tree;

/// Root node, the sum of all stacks.
const ALL: u32 = 0;

/// Weight of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StackWeight {
    /// Number of samples: CPU SAMPLES.
    Cpu,
    /// Time: CPU TIME (ms), or the table of `cpu=old`.
    CpuTime,
    /// Everything ever allocated: recorded allocation sites.
    Allocated,
    /// Allocated objects that are alive.
    Live,
    /// Time in which threads waited: MONITOR TIME, or events of Flight Recorder.
    Waits(MonitorEvent),
}

/// Unit of allocation sites.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum SiteUnit {
    /// Bytes.
    #[default]
    Bytes,
    /// Number of objects.
    Objects,
}

/// Form of names in frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Naming {
    /// Names as in the file.
    #[default]
    AsRecorded,
    /// Names that are equal in every recording of the program: without numbers that each run assigns.
    Common,
}

/// Parameters of the query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackQuery {
    /// Weight of a stack.
    pub of: StackWeight,
    /// Unit of allocation sites.
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

/// Unit of a weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Samples.
    Samples,
    /// Milliseconds.
    Milliseconds,
    /// Hundredths of a percent: for CPU times whose total is wrong in the file.
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
    /// A placeholder: an empty or unknown trace.
    Nothing,
}

/// Label of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Name as in the file: untrusted.
    pub text: String,
    /// Kind of label.
    pub kind: LabelKind,
    /// Source file of a method, if known.
    pub source: Option<Arc<str>>,
    /// Line, if lines have frames of their own and it is known.
    pub line: Option<u32>,
}

/// Stacks merged into a tree.
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
    /// Baseline weights by node; empty without a baseline.
    old: Vec<Weights>,
    /// Start of each node's children in `order`.
    first: Vec<u32>,
    /// Children of all nodes, sorted by name.
    order: Vec<u32>,
}

/// Stacks of an older recording, in the same tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Baseline {
    /// Sum of the baseline's weights.
    pub total: u64,
    /// Weight of stacks with a frame at a position where no stack of the new recording has it.
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

/// A frame visited by a walk over the stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackStep {
    /// Number of frames above it.
    pub depth: usize,
    /// Number of its label.
    pub label: u32,
    /// Weight of all stacks through it.
    pub total: u64,
    /// Part of `total` that is not in visited frames below it.
    pub rest: u64,
    /// Baseline's `total`.
    pub old_total: u64,
    /// Baseline's `rest`.
    pub old_rest: u64,
}

/// Error: the tree of frames would be too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stacks have too many frames to be merged")]
pub struct TooLarge;

/// Returns the weights that the profile contains, in the order in which they are shown by default. Sites count if they
/// were read.
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

/// Merges the stacks of a profile, with their weights in an older one.
///
/// # Errors
/// If the tree would be too large, or if the weights differ in kind.
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
    /// Returns the labels; `label` is an index into them.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// Visits all frames from the root in preorder, siblings by name. Frames whose weight is 0, or is rejected by
    /// `enough`, are skipped with everything below; their weight stays in their caller's `rest`.
    pub fn walk(&self, enough: impl Fn(u64) -> bool) -> StackWalk<'_, impl Fn(u64, u64) -> bool> {
        self.walk_both(move |weight, _| weight > 0 && enough(weight))
    }

    /// As [`Stacks::walk`], also over frames that only the baseline has: `enough` receives both weights, the baseline's
    /// last.
    pub fn walk_both<F: Fn(u64, u64) -> bool>(&self, enough: F) -> StackWalk<'_, F> {
        StackWalk { stacks: self, enough, next: vec![(ALL, 0)], started: false }
    }

    /// Returns the baseline's weights of a node.
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
    /// Nodes to visit with their depth; the next is the last.
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
