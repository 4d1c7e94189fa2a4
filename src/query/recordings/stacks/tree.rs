//! Builder of the tree of frames.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::compare;
use crate::profile::{Frame, Method, Profile, Site, Times};
use crate::stack_filter::{StackFilter, StackMatcher};
use hprof_base::naming::pattern;
use hprof_base::sorting::SortRows;
use hprof_values::TraceSerial;

use super::{
    ALL, Baseline, Label, LabelKind, Measure, Naming, SiteUnit, StackNode, StackQuery, StackWeight, Stacks,
    TooLarge, Weights,
};

/// Maximum number of nodes of a tree. The tree takes less than 1.5 GB, or 2 GB with a baseline; at this size, a hash table of
/// 2^25 slots is full.
const MAX_NODES: usize = if cfg!(test) { 1 << 20 } else { 7 << 22 };
/// Maximum number of visited frames. Only rows of malicious files visit more.
const MAX_STEPS: u64 = 1 << 28;
/// Label for the sites that the writer left out.
const BELOW_CUTOFF: &str = "<sites below the cutoff>";
/// Maximum number of characters of a frame's name. Longer names are truncated, because every stack through a frame repeats its
/// name.
const MAX_NAME: usize = 1000;

fn weight(site: &Site, question: &StackQuery) -> u64 {
    match (question.of, question.unit) {
        (StackWeight::Allocated, SiteUnit::Bytes) => site.allocated_bytes,
        (StackWeight::Allocated, SiteUnit::Objects) => site.allocated_instances,
        (_, SiteUnit::Bytes) => site.live_bytes,
        (_, SiteUnit::Objects) => site.live_instances,
    }
}

/// Rounds to an integer; negative numbers and NaN become 0.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates.
fn rounded(value: f64) -> u64 {
    value.round() as u64
}

/// Tree under construction. Where the file chooses the keys, the hash is seeded.
pub(super) struct Tree<'a> {
    profile: &'a Profile,
    question: &'a StackQuery,
    threads: HashMap<u32, &'a str>,
    labels: Vec<Label>,
    label_numbers: HashMap<(String, LabelKind), u32>,
    /// Labels by frame number.
    frame_labels: FxHashMap<u32, u32>,
    of_class: StackMatcher<'a>,
    of_method: StackMatcher<'a>,
    nodes: Vec<StackNode>,
    /// Weights of an older profile, by node.
    old: Option<Vec<Weights>>,
    children: HashMap<(u32, u32), u32>,
    /// Nodes at which traces end, by trace serial number and label of the objects.
    ends: HashMap<(TraceSerial, Option<u32>), Option<u32>>,
    steps: u64,
    /// Traces deeper than the maximum depth.
    cut: HashSet<TraceSerial>,
    /// Number of traces in the older profile that are deeper than the maximum depth.
    cut_of_old: usize,
}

impl<'a> Tree<'a> {
    pub(super) fn new(profile: &'a Profile, question: &'a StackQuery) -> Self {
        let threads = profile.threads.iter().map(|thread| (thread.serial, &*thread.name));
        Self {
            profile,
            question,
            threads: threads.collect(),
            labels: Vec::new(),
            label_numbers: HashMap::new(),
            frame_labels: FxHashMap::default(),
            of_class: StackFilter { methods: Vec::new(), ..question.filter.clone() }.matcher(&profile.traces),
            of_method: StackFilter { classes: Vec::new(), ..question.filter.clone() }
                .matcher(&profile.traces),
            nodes: vec![StackNode::default()],
            old: None,
            children: HashMap::new(),
            ends: HashMap::new(),
            steps: 0,
            cut: HashSet::new(),
            cut_of_old: 0,
        }
    }

    /// Turns the weights so far into the baseline, and continues with the profile to compare.
    pub(super) fn begin_new(&mut self, profile: &'a Profile) {
        let Self { labels, label_numbers, nodes, children, steps, cut, .. } =
            std::mem::replace(self, Self::new(profile, self.question));
        self.old = Some(nodes.iter().map(|node| node.weights).collect());
        self.nodes =
            nodes.into_iter().map(|node| StackNode { weights: Weights::default(), ..node }).collect();
        (self.labels, self.label_numbers, self.children) = (labels, label_numbers, children);
        (self.steps, self.cut_of_old) = (steps, cut.len());
    }

    /// Adds all stacks that match the query to the tree.
    pub(super) fn fill(&mut self) -> Result<Measure, TooLarge> {
        let profile = self.profile;
        Ok(match self.question.of {
            StackWeight::Cpu => {
                for (trace, samples) in profile.samples.iter().flat_map(|samples| &samples.rows) {
                    self.add_trace(*trace, None, *samples)?;
                }
                Measure::Samples
            }
            StackWeight::CpuTime => match &profile.times {
                Some(times) => self.add_times(times)?,
                None => self.add_calls()?,
            },
            StackWeight::Waits(_) => match &profile.contention {
                Some(times) => self.add_times(times)?,
                None => Measure::Milliseconds,
            },
            StackWeight::Allocated | StackWeight::Live => {
                let mut all = 0u64;
                for site in profile.sites.iter().flat_map(|sites| &sites.rows) {
                    let weight = weight(site, self.question);
                    self.add_trace(site.trace, Some(&site.class), weight)?;
                    all = all.saturating_add(weight);
                }
                // The totals include sites that the writer left out, but these have no stack that a filter could match.
                let total = profile.sites.as_ref().and_then(|sites| sites.total.as_ref());
                let left_out = total.map_or(0, |total| weight(total, self.question).saturating_sub(all));
                if left_out > 0 && self.question.filter == StackFilter::default() {
                    let label = self.label(BELOW_CUTOFF.to_owned(), LabelKind::Nothing);
                    let node = self.child(ALL, label)?;
                    self.put(node, left_out);
                }
                match self.question.unit {
                    SiteUnit::Bytes => Measure::Bytes,
                    SiteUnit::Objects => Measure::Objects,
                }
            }
        })
    }

    /// Adds the stacks of CPU TIME or MONITOR TIME, whose rows contain a percentage of the total.
    fn add_times(&mut self, times: &Times) -> Result<Measure, TooLarge> {
        // The agent writes garbage when the milliseconds overflow 31 bits. The percentages are still right.
        let total_ms = u64::try_from(times.total_ms).ok().filter(|ms| *ms > 0);
        // Rows of MONITOR TIME name the class of the monitor.
        let is_contention = matches!(self.question.of, StackWeight::Waits(_));
        for row in &times.rows {
            let hundredths = row.self_percent * 100.0;
            let weight = total_ms.map_or(hundredths, |total_ms| hundredths * total_ms as f64 / 10_000.0);
            let weight = row.milliseconds().unwrap_or_else(|| rounded(weight));
            let class = row.name.as_deref().filter(|_| is_contention);
            self.add_trace(row.trace, class, weight)?;
        }
        Ok(if total_ms.is_some() { Measure::Milliseconds } else { Measure::PercentHundredths })
    }

    /// Adds the rows of `cpu=old`, which have a caller and a callee instead of a stack.
    fn add_calls(&mut self) -> Result<Measure, TooLarge> {
        let profile = self.profile;
        for call in &profile.calls {
            let weight = u64::try_from(call.time_ms).unwrap_or(0);
            let methods = [&call.caller, &call.callee];
            let known = methods.into_iter().flatten();
            let names = known.map(|method| (method.class.as_str(), method.name.as_str()));
            let wanted = self.question.filter.matches_any(names);
            if weight == 0 || !wanted {
                continue;
            }
            let mut path = methods.map(|method| {
                let class = |method: &Method| self.class_name(&method.class).into_owned();
                let name = method.as_ref().map(|method| format!("{}.{}", class(method), method.name));
                match name {
                    Some(name) => self.label(name, LabelKind::Method),
                    None => self.label("<unknown method>".to_owned(), LabelKind::Nothing),
                }
            });
            if self.question.reverse {
                path.reverse();
            }
            let end = self.descend(ALL, path)?;
            self.put(end, weight);
        }
        Ok(Measure::Milliseconds)
    }

    fn add_trace(&mut self, serial: TraceSerial, class: Option<&str>, weight: u64) -> Result<(), TooLarge> {
        if weight == 0 {
            return Ok(());
        }
        let object = class.map(|class| {
            let class = if class.is_empty() { "<unknown class>".into() } else { self.class_name(class) };
            self.label(format!("{class} (object)"), LabelKind::Objects)
        });
        let end = match self.ends.get(&(serial, object)) {
            Some(end) => *end,
            None => {
                let end =
                    if self.matches_stack(serial, class) { Some(self.path(serial, object)?) } else { None };
                self.ends.insert((serial, object), end);
                end
            }
        };
        if let Some(end) = end {
            self.put(end, weight);
        }
        Ok(())
    }

    fn put(&mut self, end: u32, weight: u64) {
        if let Some(node) = self.nodes.get_mut(end as usize) {
            node.weights.own = node.weights.own.saturating_add(weight);
        }
    }

    /// Returns the node at which the stack of a trace ends, adding missing nodes.
    fn path(&mut self, serial: TraceSerial, object: Option<u32>) -> Result<u32, TooLarge> {
        if !self.question.reverse {
            // Sites of one trace share everything except their objects.
            let Some(object) = object else { return self.forward(serial) };
            let end = match self.ends.get(&(serial, None)) {
                Some(Some(end)) => *end,
                _ => {
                    let end = self.forward(serial)?;
                    self.ends.insert((serial, None), Some(end));
                    end
                }
            };
            return self.child(end, object);
        }
        let mut end = self.thread(serial)?;
        if let Some(object) = object {
            end = self.child(end, object)?;
        }
        let frames = self.frames(serial);
        self.descend(end, frames)
    }

    fn forward(&mut self, serial: TraceSerial) -> Result<u32, TooLarge> {
        let thread = self.thread(serial)?;
        let frames = self.frames(serial);
        self.descend(thread, frames.into_iter().rev())
    }

    /// Returns the node of the trace's thread if stacks are separated by thread, otherwise the root.
    fn thread(&mut self, serial: TraceSerial) -> Result<u32, TooLarge> {
        if !self.question.by_thread {
            return Ok(ALL);
        }
        let thread = self.profile.traces.get(serial).map_or(0, |trace| trace.thread);
        let label = match (thread, self.threads.get(&thread)) {
            (0, None) => self.label("<no thread>".to_owned(), LabelKind::Nothing),
            // Serial numbers of threads differ between runs.
            (_, None) if self.question.naming == Naming::Common => {
                self.label("<unknown thread>".to_owned(), LabelKind::Nothing)
            }
            (_, Some(name)) if self.question.naming == Naming::Common => {
                self.label((*name).to_owned(), LabelKind::Thread)
            }
            (_, None) => self.label(format!("<unknown thread {thread}>"), LabelKind::Nothing),
            // Long names are truncated at the end; the serial number, which identifies the thread, must be kept.
            (_, Some(name)) => {
                let name = cut((*name).to_owned(), MAX_NAME - 30);
                self.label(format!("{name} (thread={thread})"), LabelKind::Thread)
            }
        };
        self.child(ALL, label)
    }

    /// Returns the labels of a trace, innermost first.
    fn frames(&mut self, serial: TraceSerial) -> Vec<u32> {
        let profile = self.profile;
        let Some(trace) = profile.traces.get(serial) else {
            let name = match self.question.naming {
                _ if serial == TraceSerial::NONE => "<no trace>".to_owned(),
                Naming::AsRecorded => format!("<unknown trace {serial}>"),
                Naming::Common => "<unknown trace>".to_owned(),
            };
            return vec![self.label(name, LabelKind::Nothing)];
        };
        let all = profile.traces.numbers(trace);
        let kept = self.question.depth.and_then(|depth| all.get(..depth)).unwrap_or(all);
        if kept.len() < all.len() {
            self.cut.insert(serial);
        }
        if all.is_empty() {
            return vec![self.label("<empty trace>".to_owned(), LabelKind::Nothing)];
        }
        kept.iter().map(|number| self.frame_label(*number)).collect()
    }

    fn frame_label(&mut self, number: u32) -> u32 {
        if let Some(label) = self.frame_labels.get(&number) {
            return *label;
        }
        let label = match self.profile.traces.frame(number) {
            None => self.label("<unknown frame>".to_owned(), LabelKind::Nothing),
            Some(frame) => {
                let class = frame.class.as_ref().map(|class| match self.class_name(class) {
                    Cow::Borrowed(_) => Arc::clone(class),
                    Cow::Owned(name) => name.into(),
                });
                let frame = &Frame { class, ..frame.clone() };
                let text = if self.question.lines { frame.to_string() } else { frame.qualified_method() };
                let label = self.label(text, LabelKind::Method);
                let line = frame.line().filter(|_| self.question.lines);
                if let Some(known) = self.labels.get_mut(label as usize) {
                    known.source = known.source.take().or_else(|| frame.source.clone());
                    known.line = known.line.or(line);
                }
                label
            }
        };
        self.frame_labels.insert(number, label);
        label
    }

    fn class_name<'n>(&self, class: &'n str) -> Cow<'n, str> {
        match self.question.naming {
            Naming::AsRecorded => Cow::Borrowed(class),
            Naming::Common => compare::class_name(class),
        }
    }

    /// Returns the index of a label, adding it if it is new.
    fn label(&mut self, text: String, kind: LabelKind) -> u32 {
        let key = (cut(text, MAX_NAME), kind);
        if let Some(number) = self.label_numbers.get(&key) {
            return *number;
        }
        // More than 2^32 distinct names do not fit into memory.
        let number = u32::try_from(self.labels.len()).unwrap_or(u32::MAX);
        self.labels.push(Label { text: key.0.clone(), kind, source: None, line: None });
        self.label_numbers.insert(key, number);
        number
    }

    fn descend(&mut self, from: u32, labels: impl IntoIterator<Item = u32>) -> Result<u32, TooLarge> {
        labels.into_iter().try_fold(from, |node, label| self.child(node, label))
    }

    fn child(&mut self, parent: u32, label: u32) -> Result<u32, TooLarge> {
        self.steps += 1;
        if let Some(child) = self.children.get(&(parent, label)) {
            return if self.steps > MAX_STEPS { Err(TooLarge) } else { Ok(*child) };
        }
        if self.nodes.len() >= MAX_NODES {
            return Err(TooLarge);
        }
        let child = u32::try_from(self.nodes.len()).map_err(|_| TooLarge)?;
        self.nodes.push(StackNode { parent, label, weights: Weights::default() });
        self.children.insert((parent, label), child);
        Ok(child)
    }

    /// Returns whether a stack matches the filter. Frames beyond the maximum depth are included.
    fn matches_stack(&self, serial: TraceSerial, class: Option<&str>) -> bool {
        let classes = &self.question.filter.classes;
        let of_class = class.is_some_and(|class| pattern::any_matches(classes, class));
        (of_class || self.of_class.matches(serial)) && self.of_method.matches(serial)
    }

    /// Returns the baseline's weights by node and its sums, if there is a baseline. The new weights must be complete.
    fn finish_old(&mut self) -> (Vec<Weights>, Option<Baseline>) {
        let Some(mut old) = self.old.take() else { return (Vec::new(), None) };
        old.resize(self.nodes.len(), Weights::default());
        let mut gone = 0u64;
        for (at, node) in self.nodes.iter().enumerate().rev() {
            let Some(weights) = old.get_mut(at) else { continue };
            if node.weights.total == 0 {
                gone = gone.saturating_add(weights.own);
            }
            let total = weights.add_own();
            if let Some(parent) = old.get_mut(node.parent as usize).filter(|_| at > 0) {
                parent.total = parent.total.saturating_add(total);
            }
        }
        let total = old.first().map_or(0, |all| all.total);
        (old, Some(Baseline { total, gone }))
    }

    pub(super) fn finish(mut self, measure: Measure) -> Stacks {
        self.children = HashMap::new(); // Frees its memory.
        let stacks = self.nodes.iter().filter(|node| node.weights.own > 0).count() as u64;
        for at in (0..self.nodes.len()).rev() {
            let Some(node) = self.nodes.get_mut(at) else { continue };
            let (parent, total) = (node.parent as usize, node.weights.add_own());
            if let Some(parent) = self.nodes.get_mut(parent).filter(|_| at > 0) {
                parent.weights.total = parent.weights.total.saturating_add(total);
            }
        }
        let (old, baseline) = self.finish_old();
        let ranks = ranks(&self.labels);
        let rank = |node: &StackNode| ranks.get(node.label as usize).copied().unwrap_or(u32::MAX);
        let mut order: Vec<(u32, u32, u32)> =
            (0..).zip(&self.nodes).skip(1).map(|(number, node)| (node.parent, rank(node), number)).collect();
        order.sort_unstable();
        let mut first = vec![0u32; self.nodes.len() + 1];
        for (parent, ..) in &order {
            if let Some(count) = first.get_mut(*parent as usize + 1) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for count in &mut first {
            sum += *count;
            *count = sum;
        }
        Stacks {
            measure,
            total: self.nodes.first().map_or(0, |all| all.weights.total),
            baseline,
            old,
            stacks,
            cut: (self.cut_of_old + self.cut.len()) as u64,
            labels: self.labels,
            nodes: self.nodes,
            first,
            order: order.into_iter().map(|(.., number)| number).collect(),
        }
    }
}

impl Weights {
    /// Adds the node's own weight to its total. Returns the new total.
    fn add_own(&mut self) -> u64 {
        self.total = self.total.saturating_add(self.own);
        self.total
    }
}

/// Returns the rank of each label by name.
fn ranks(labels: &[Label]) -> Vec<u32> {
    let mut sorted: Vec<(&Label, usize)> = labels.iter().zip(0..).collect();
    sorted.sort_rows_by(|(left, _), (right, _)| by_name(left, right));
    let mut ranks = vec![0; labels.len()];
    for (rank, (_, number)) in (0..).zip(sorted) {
        if let Some(place) = ranks.get_mut(number) {
            *place = rank;
        }
    }
    ranks
}

fn by_name(left: &Label, right: &Label) -> Ordering {
    (&left.text, left.kind).cmp(&(&right.text, right.kind))
}

/// Returns a name; if it is longer than `most` characters, only these and an ellipsis.
fn cut(mut name: String, most: usize) -> String {
    if name.len() > most
        && let Some((at, _)) = name.char_indices().nth(most)
    {
        name.truncate(at);
        name.push('…');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use hprof_writer::hostile_keys::is_seeded;

    /// The file chooses the keys: without a seed it could choose keys that collide.
    #[test]
    fn hashes_are_seeded() {
        let question = StackQuery::new(StackWeight::Cpu);
        let profile = Profile::default();
        let Tree { threads, label_numbers, children, ends, .. } = Tree::new(&profile, &question);
        assert!(is_seeded(&threads) && is_seeded(&label_numbers) && is_seeded(&children) && is_seeded(&ends));
    }
}
