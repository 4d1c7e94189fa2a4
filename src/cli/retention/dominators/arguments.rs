//! The arguments of `dominators`, and where they say that an answer starts.

use crate::hprof::ObjectId;
use crate::index::ObjectGraph;
use crate::query::classes::histogram::GroupBy;
use crate::query::dominators::preorder::Start;
use crate::query::objects::condition::size;
use crate::query::objects::selection;

use crate::cli::shared::args::{Input, Output};
use crate::cli::shared::keys::{Key, keys};
use crate::cli::shared::limit::{DEFAULT_TOP_OBJECTS, Top};
use crate::cli::shared::messages;

/// The words of `--group-by`.
const GROUP_BY: &[Key<GroupBy>] = &[
    ("class", GroupBy::Class, "Objects of a class"),
    ("package", GroupBy::Package, "Objects of all classes of a package"),
    ("loader", GroupBy::Loader, "Objects of all classes of a loader"),
];

/// The biggest objects, by what would be freed with each: the dominator tree
///
/// An object dominates another if every path from the roots to the other leads through it: then the other is freed with
/// it. The retained size of an object is the shallow size of all that it dominates, itself included.
#[derive(Debug, clap::Args)]
#[command(mut_arg("top", |top| top.help(
    "Only the N largest of each level; 0 for all [default: 20 in a table, all in JSON and CSV]"
)))]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) input: Input,

    /// Start from this object and show what it dominates
    #[arg(long, value_name = "OBJECT", value_parser = selection::object_id, help_heading = "Filter")]
    pub(super) of: Option<ObjectId>,

    /// Only objects that retain at least so much: 4096, 512KiB, 10MB, 1.5GiB
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "0", hide_default_value = true, help_heading = "Filter")]
    pub(super) min_retained: u64,

    /// Levels of the tree
    #[arg(long, value_name = "D", default_value = "1", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Output")]
    pub(super) depth: u32,

    #[command(flatten)]
    pub(super) top: Top<DEFAULT_TOP_OBJECTS>,

    /// Add up the objects of one level by class, package or loader
    #[arg(
        long,
        value_name = "KEY",
        value_parser = keys(GROUP_BY),
        conflicts_with_all = ["depth", "min_retained"],
        help_heading = "Output"
    )]
    pub(super) group_by: Option<GroupBy>,

    /// Every reachable object with its retained size and its dominator, in preorder; JSON and CSV only
    #[arg(long, conflicts_with_all = ["of", "top", "depth", "min_retained", "group_by"], help_heading = "Output")]
    pub(super) all: bool,

    #[command(flatten)]
    pub(super) output: Output,
}

impl Args {
    /// Where an answer starts; `None` if the object is unreachable, or not in the dump.
    pub(super) fn start(&self, graph: &ObjectGraph) -> Option<Start> {
        let Some(id) = self.of else { return Some(Start::Roots) };
        graph.tree.reachable_position(graph.objects.addresses.index_of(id)?).map(Start::Object)
    }

    /// Says why there is no answer.
    pub(super) fn note_no_start(&self, graph: &ObjectGraph) {
        let Some(id) = self.of.filter(|_| !self.input.quiet) else { return };
        let text = match graph.objects.addresses.index_of(id) {
            None => format!("there is no object {id:#x} in the dump"),
            Some(_) => format!("{id:#x} is unreachable: nothing dominates it, and it retains nothing"),
        };
        messages::line("note", &text);
    }
}
