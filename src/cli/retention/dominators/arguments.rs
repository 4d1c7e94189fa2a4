//! The arguments of `dominators`, and the starting points that they select.

use hprof_index::DumpGraph;
use hprof_index::graph::numbers::TreePosition;
use hprof_query::dominators::merged_by_class;
use hprof_query::dominators::preorder::Start;
use hprof_query::histogram::HistogramGroupBy;
use hprof_query::objects::class_set::ClassSet;
use hprof_query::objects::condition::size;
use hprof_query::objects::selection::{Selection, SelectionKind};

use super::reachable;
use crate::cli::prelude::*;
use crate::cli::shared::keys::word_of;
use crate::cli::shared::limit::DEFAULT_TOP_OBJECTS;
use crate::cli::shared::messages;

/// Value of `--group-by`: how objects are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grouping {
    /// Groups the objects of one level.
    Level(HistogramGroupBy),
    /// Groups objects of the same class that have the same classes above them.
    ClassTree,
}

/// Values of `--group-by`.
const GROUP_BY: &[Keyword<Grouping>] = &[
    ("class", Grouping::Level(HistogramGroupBy::Class), "Class"),
    ("package", Grouping::Level(HistogramGroupBy::Package), "Package"),
    ("loader", Grouping::Level(HistogramGroupBy::Loader), "Class loader"),
    (
        "class-tree",
        Grouping::ClassTree,
        "Class, for the whole tree: objects of a class below the same classes are one row",
    ),
];

/// Default depth, except for merged trees.
const DEFAULT_DEPTH: u32 = 1;
const DEFAULT_DEPTH_MERGED: u32 = 5;

/// Starting points of a listing of the dominator tree.
pub(in crate::cli::retention) enum StartingPoints {
    /// The objects that no other object dominates.
    Roots,
    /// A single object.
    Object(TreePosition),
    /// The topmost instances of the given classes: those that no other instance dominates.
    Tops(Vec<TreePosition>),
}

impl StartingPoints {
    /// Returns the starting points as starts of queries.
    pub(super) fn starts(&self) -> Vec<Start> {
        match self {
            Self::Roots => vec![Start::Roots],
            Self::Object(position) => vec![Start::Object(*position)],
            Self::Tops(tops) => tops.iter().map(|position| Start::Object(*position)).collect(),
        }
    }
}

/// Show the biggest objects by retained size (dominator tree)
///
/// An object dominates another if every path from the GC roots to the other passes through it. The retained size of an
/// object is the shallow size of all objects that it dominates, including itself: the memory that would be freed with
/// it. Counts only reachable objects. Builds the index on first use. For the retained size of several objects together,
/// use `retained`.
#[derive(Debug, clap::Args)]
#[command(mut_arg("top", |top| top.help(
    "Show only the first N rows of each level, largest first; 0 for all [default: 20 in a table, all in JSON and CSV]"
)))]
pub(crate) struct DominatorsArgs {
    #[command(flatten)]
    pub(super) input: Input,

    /// Start at this object, or at the topmost instances of this class, and show what they dominate
    #[arg(long, value_name = "OBJECT|CLASS", help_heading = "Filter")]
    pub(super) of: Option<Selection>,

    /// Only objects with at least this retained size, for example 4096, 512KiB, 10MB
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "0", hide_default_value = true, help_heading = "Filter")]
    pub(super) min_retained: u64,

    /// Maximum depth of the tree; 0 for all [default: 1, or 5 with --group-by class-tree]
    #[arg(long, value_name = "N", help_heading = "Output")]
    depth: Option<u32>,

    #[command(flatten)]
    pub(super) top: Top<DEFAULT_TOP_OBJECTS>,

    /// Group rows by KEY: the objects of one level of the tree, or with `class-tree` all of them
    #[arg(long, value_name = "KEY", value_parser = keys(GROUP_BY), help_heading = "Output")]
    pub(super) group_by: Option<Grouping>,

    /// Show the dominators of the --of object instead, from the GC roots down
    #[arg(
        long,
        requires = "of",
        conflicts_with_all = ["depth", "min_retained", "group_by"],
        help_heading = "Output"
    )]
    pub(super) chain: bool,

    /// Omit nothing: list every reachable object with its retained size and dominator, in preorder; JSON and CSV only
    #[arg(long, conflicts_with_all = ["of", "top", "depth", "min_retained", "group_by", "chain"], help_heading = "Output")]
    pub(super) all: bool,

    #[command(flatten)]
    pub(super) output: Output,
}

impl DominatorsArgs {
    /// Returns the number of levels to show.
    pub(super) fn depth(&self) -> u32 {
        match (self.depth, self.group_by) {
            (Some(0), _) => u32::MAX,
            (Some(depth), _) => depth,
            (None, Some(Grouping::ClassTree)) => DEFAULT_DEPTH_MERGED,
            (None, _) => DEFAULT_DEPTH,
        }
    }

    /// Returns an error if an option was given that cannot be combined with grouping the objects of one level.
    pub(super) fn refuse_levels(&self) -> anyhow::Result<()> {
        let given = [("--depth", self.depth.is_some()), ("--min-retained", self.min_retained > 0)];
        match (self.group_by, given.into_iter().find(|(_, given)| *given)) {
            (Some(group_by @ Grouping::Level(_)), Some((option, _))) => anyhow::bail!(
                "{option} cannot be used with --group-by {}, which has only one level; omit {option}, or use --group-by class-tree",
                word_of(GROUP_BY, group_by)
            ),
            _ => Ok(()),
        }
    }

    /// Resolves the starting points; `None` if the object does not exist or none of the objects is reachable.
    pub(super) fn from(&self, dump: &DumpGraph<'_>) -> Option<StartingPoints> {
        from(self.of.as_ref(), dump)
    }

    /// Prints a note that no object retains enough.
    pub(super) fn note_too_small(&self, cx: &RunContext) {
        if self.min_retained > 0 && !self.input.quiet {
            let bytes = human_bytes(self.min_retained);
            cx.emit("note", &format!("no object retains {bytes} or more"));
        }
    }

    /// Returns an empty result, and prints a note, if there is no starting point.
    pub(super) fn without_start<R>(
        &self,
        cx: &RunContext,
        session: &Session,
        columns: Columns<'_, R>,
    ) -> anyhow::Result<Outcome> {
        let none = Answer::new(columns, None)
            .with_summary(&reachable::summary_columns(), &session.graph.tree)
            .if_empty(NoRows::Nothing);
        session.show(cx, "dominators", &self.output, none)?;
        self.note_no_start(cx, &session.dump_graph());
        Ok(session.outcome(false))
    }

    /// Prints a note why there is no starting point.
    pub(super) fn note_no_start(&self, cx: &RunContext, dump: &DumpGraph<'_>) {
        note_no_start(cx, &self.input, self.of.as_ref(), dump);
    }
}

/// Resolves the starting points for a selection; `None` if the object does not exist or none of the objects is reachable.
pub(in crate::cli::retention) fn from(
    of: Option<&Selection>,
    dump: &DumpGraph<'_>,
) -> Option<StartingPoints> {
    let Some(of) = of.map(|of| of.resolve(dump.summary)) else { return Some(StartingPoints::Roots) };
    if let SelectionKind::Object(id) = &of.what {
        return dump
            .graph
            .tree
            .reachable_position(dump.graph.objects.addresses.index_of(*id)?)
            .map(StartingPoints::Object);
    }
    let classes = ClassSet::new(dump, std::slice::from_ref(&of), false);
    let tops = merged_by_class::tops(dump.graph, &classes);
    if tops.is_empty() { None } else { Some(StartingPoints::Tops(tops)) }
}

/// Prints a note why there is no starting point for a selection.
pub(in crate::cli::retention) fn note_no_start(
    cx: &RunContext,
    input: &Input,
    of: Option<&Selection>,
    dump: &DumpGraph<'_>,
) {
    let Some(of) = of.filter(|_| !input.quiet).map(|of| of.resolve(dump.summary)) else {
        return;
    };
    let text = &of.text;
    match &of.what {
        SelectionKind::Object(id) if dump.graph.objects.addresses.index_of(*id).is_none() => {
            messages::about_no_object(cx, input.path(), dump.graph, *id);
        }
        SelectionKind::Object(id) => {
            cx.emit("note", &format!("{id:#x} is unreachable: nothing dominates it, and it retains nothing"))
        }
        SelectionKind::Classes(_) if of.objects(dump).is_empty() => {
            messages::about_no_class(cx, dump.summary, &of)
        }
        SelectionKind::Classes(_) => cx.emit(
            "note",
            &format!(
                "all objects of {text} are unreachable: nothing dominates them, and they retain nothing"
            ),
        ),
    }
}
