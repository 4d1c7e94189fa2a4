//! Weighted stacks: what a profiler recorded, merged into one tree of frames for pictures.
//!
//! A stack begins at its root, the outermost frame. Stacks that begin alike share nodes, so that the tree is as large as
//! the traces of the file, not as the rows that point to them. Nothing recurses: hostile traces are deep.
//!
//! The stacks of two recordings go into one tree, whose frames have two weights.

mod tree;

use std::sync::Arc;

use super::profile::{Origin, Profile};
use super::stack_filter::StackFilter;

use tree::Tree;

/// The node that stands for all stacks.
const ALL: u32 = 0;

/// What weighs a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StackWeight {
    /// How often it was found running: CPU SAMPLES.
    Cpu,
    /// The time spent in it: CPU TIME (ms), or the table of `cpu=old`.
    CpuTime,
    /// What was ever allocated there: recorded allocation sites.
    Allocated,
    /// What was allocated there and is alive.
    Live,
}

/// How sites are weighed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum SiteUnit {
    /// By bytes.
    #[default]
    Bytes,
    /// By objects.
    Objects,
}

/// What frames are called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Naming {
    /// As the file has it.
    #[default]
    AsRecorded,
    /// As in every recording of the program: without what is numbered by each run.
    Common,
}

/// Parameters of the query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackQuery {
    /// What weighs a stack.
    pub of: StackWeight,
    /// How sites are weighed.
    pub unit: SiteUnit,
    /// `true` if the thread of a trace is its root frame.
    pub by_thread: bool,
    /// `true` if stacks begin at the innermost frame.
    pub reverse: bool,
    /// `true` if the lines of a method are frames of their own.
    pub lines: bool,
    /// How many frames of a trace count, from the innermost; `None` for all.
    pub depth: Option<usize>,
    /// Which stacks. The class of a site's objects counts as a frame's class.
    pub filter: StackFilter,
    /// What frames are called.
    pub naming: Naming,
}

impl StackQuery {
    /// All stacks with this weight.
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

/// What a weight counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Samples.
    Samples,
    /// Milliseconds.
    Milliseconds,
    /// Hundredths of a percent: of CPU times whose total the file does not state rightly.
    PercentHundredths,
    /// Bytes.
    Bytes,
    /// Objects.
    Objects,
}

impl Measure {
    /// As a count is followed by it: `12 samples`.
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

/// What a frame of a stack stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LabelKind {
    /// A method.
    Method,
    /// Objects of a class.
    Objects,
    /// A thread.
    Thread,
    /// Nothing that was recorded: an empty trace, an unknown one.
    Nothing,
}

/// A frame's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The name as the file has it: hostile.
    pub text: String,
    /// Key of the row.
    pub kind: LabelKind,
    /// The source file of a method, if it is known.
    pub source: Option<Arc<str>>,
    /// The line, if lines are frames of their own and it is known.
    pub line: Option<u32>,
}

/// Stacks, merged into a tree.
#[derive(Debug, Clone)]
pub struct Stacks {
    /// What the weights count.
    pub measure: Measure,
    /// The sum of all weights.
    pub total: u64,
    /// What they are compared with, if they are.
    pub baseline: Option<Baseline>,
    /// Number of different stacks.
    pub stacks: u64,
    /// Traces that are deeper than was asked for.
    pub cut: u64,
    labels: Vec<Label>,
    /// The first stands for all stacks. Parents come before their children.
    nodes: Vec<StackNode>,
    /// By node, the weights of the baseline; empty without one.
    old: Vec<Weights>,
    /// Where the children of a node begin in `order`.
    first: Vec<u32>,
    /// Children of all nodes, by name.
    order: Vec<u32>,
}

/// The stacks of an older recording, in the same tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Baseline {
    /// The sum of their weights.
    pub total: u64,
    /// The weight of stacks that have a frame at a place where no stack of the new recording has it.
    pub gone: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct StackNode {
    parent: u32,
    label: u32,
    weights: Weights,
}

/// The weights of a node.
#[derive(Debug, Clone, Copy, Default)]
struct Weights {
    /// Of stacks that end here.
    own: u64,
    /// Of these and all that go on.
    total: u64,
}

/// A frame on a walk over the stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackStep {
    /// Frames before it in its stack.
    pub depth: usize,
    /// Number of its label.
    pub label: u32,
    /// The weight of all stacks through it.
    pub total: u64,
    /// What of it is not in frames after it that the walk visits.
    pub rest: u64,
    /// As `total`, of the baseline.
    pub old_total: u64,
    /// As `rest`, of the baseline.
    pub old_rest: u64,
}

/// The tree of frames would be too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stacks have too many frames to be merged")]
pub struct TooLarge;

/// What of this kind the profile holds, in the order in which it is shown by default. Sites count if they were read.
pub fn held(profile: &Profile) -> Vec<StackWeight> {
    let cpu = profile.samples.as_ref().is_some_and(|samples| !samples.rows.is_empty());
    let times = profile.times.as_ref().is_some_and(|times| !times.rows.is_empty());
    let sites = profile.sites.as_ref().filter(|sites| !sites.rows.is_empty());
    let found = [
        (StackWeight::Cpu, cpu),
        (StackWeight::CpuTime, times || !profile.calls.is_empty()),
        (StackWeight::Allocated, sites.is_some_and(|sites| sites.origin == Origin::Recorded)),
        (StackWeight::Live, sites.is_some()),
    ];
    found.into_iter().filter(|(_, there)| *there).map(|(of, _)| of).collect()
}

/// The stacks of a profile.
///
/// # Errors
/// If their tree would be too large.
pub fn stacks(profile: &Profile, question: &StackQuery) -> Result<Stacks, TooLarge> {
    let mut tree = Tree::new(profile, question);
    let measure = tree.fill()?;
    Ok(tree.finish(measure))
}

/// Why stacks cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotComparable {
    /// As without comparing.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// CPU times are measured differently.
    #[error("one file states {} of stacks, the other {}", .0.name(), .1.name())]
    Measures(Measure, Measure),
    /// `cpu=old` has no stacks.
    #[error("one file states times of stacks, the other of calls (cpu=old)")]
    Calls,
}

/// The stacks of a profile, with the weights that they have in an older one.
///
/// # Errors
/// If their tree would be too large, or if the weights are not of one kind.
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
    /// The labels; [`StackStep::label`] counts them.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// All frames from the root, each before those that it calls, neighbours by name. Frames whose weight is 0, or is
    /// not enough for `enough`, are left out with all that they call; their weight stays in their caller's rest.
    pub fn walk(&self, enough: impl Fn(u64) -> bool) -> StackWalk<'_, impl Fn(u64, u64) -> bool> {
        self.walk_both(move |weight, _| weight > 0 && enough(weight))
    }

    /// As [`Stacks::walk`], also over frames that only the baseline has: `enough` gets both weights, the baseline's last.
    pub fn walk_both<F: Fn(u64, u64) -> bool>(&self, enough: F) -> StackWalk<'_, F> {
        StackWalk { stacks: self, enough, next: vec![(ALL, 0)], started: false }
    }

    /// The baseline's weight of a node.
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
    /// Nodes to visit, and their depth; the next is the last.
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
            // The node of all stacks is no frame.
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
