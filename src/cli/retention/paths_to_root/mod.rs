//! `paths-to-root`: the paths that keep an object alive.

mod chains;
mod merged;
pub(super) mod objects;

use hprof_query::objects::selection::{Selection, SelectionKind};
use hprof_query::objects::strength::{Exclusions, Strength};
use hprof_query::paths::merged::MergeLimits;
use hprof_values::{ObjectId, RootKind};

use crate::cli::prelude::*;

use super::roots;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli paths-to-root heap.hprof 0x7c00012a8
  hprof-cli paths-to-root heap.hprof 0x7c00012a8 --paths 10 --exclude weak,phantom
  hprof-cli paths-to-root heap.hprof com.acme.Session --top 10
  hprof-cli paths-to-root heap.hprof 0x7c00012a8 --format json | jq -r '.rows[0].steps[].class'";

/// Default number of children per object in a table.
const DEFAULT_BELOW: usize = 5;
/// Default number of paths to each object.
const DEFAULT_PATHS: u16 = 3;
/// Total number of branches shown, unless more are requested below a node.
const DEFAULT_BRANCHES: usize = 24;

/// Values of `--exclude`.
const STRENGTHS: &[Keyword<Strength>] = &[
    ("weak", Strength::Weak, "Referent of a WeakReference"),
    ("soft", Strength::Soft, "Referent of a SoftReference"),
    ("phantom", Strength::Phantom, "Referent of a PhantomReference or a Cleaner"),
    ("finalizer", Strength::Finalizer, "Referent of a Finalizer"),
];

/// Show the shortest paths from GC roots to objects
///
/// For an object ID, shows the shortest paths to the object; for a class, the shortest path to each
/// instance, merged into trees. References from weak, soft and phantom references and finalizers are
/// excluded by default; if an object has no other path, these paths are shown and marked. If a path
/// starts at a local of a thread, the shortest path from another kind of root is shown as well.
/// Builds the index on first use.
#[derive(Debug, clap::Args)]
#[command(mut_arg("top", |top| top.help(
    "Show only the first N rows; for a class, the N branches below each node on the paths to most objects, and at \
     most 24 branches in total, or N if larger; 0 for all [default: 5 in a table, all in JSON and CSV]"
)))]
pub(crate) struct PathsToRootArgs {
    #[command(flatten)]
    input: Input,

    /// Object ID, or a class to select all of its instances, for example `0x7c00012a8`, `byte[]`, `com.acme.**`
    #[arg(value_name = "OBJECT|CLASS", required = true, help_heading = "Filter")]
    selections: Vec<Selection>,

    /// Kinds of references to exclude [default: weak,soft,phantom,finalizer]
    #[arg(
        long,
        value_name = "KIND,...",
        value_delimiter = ',',
        value_parser = keys(STRENGTHS),
        conflicts_with = "all_references",
        help_heading = "Filter"
    )]
    exclude: Option<Vec<Strength>>,

    /// Exclude no references: follow those of all kinds
    #[arg(long, help_heading = "Filter")]
    all_references: bool,

    /// Kinds of GC roots to exclude: java-frame, jni-local, jni-global, sticky-class, ... [default: none]
    #[arg(long, value_name = "KIND,...", value_delimiter = ',', value_parser = roots::kind, help_heading = "Filter")]
    exclude_roots: Vec<RootKind>,

    /// Number of paths to show for each object ID [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Output")]
    paths: Option<u16>,

    /// Give up on an object ID after N referrers; 0 for no limit [default: 0]
    #[arg(long, value_name = "N", help_heading = "Output")]
    budget: Option<u64>,

    #[command(flatten)]
    top: Top<DEFAULT_BELOW>,

    /// Maximum depth of the tree of a class, in steps from the GC roots; 0 for all [default: 0]
    #[arg(long, value_name = "N", help_heading = "Output")]
    depth: Option<u32>,

    #[command(flatten)]
    output: Output,
}

impl PathsToRootArgs {
    fn exclusions(&self) -> Exclusions {
        let references = match &self.exclude {
            _ if self.all_references => Exclusions::NONE,
            None => Exclusions::all_but_strong(),
            Some(strengths) => Exclusions::from_strengths(strengths.iter().copied()),
        };
        references.without_roots(self.exclude_roots.iter().copied())
    }

    /// Returns the limits on how much of the merged paths is shown.
    fn show(&self) -> MergeLimits {
        let top = self.top.rows(self.output.format());
        // A limit below each node alone does not limit the result: its levels multiply.
        let branches = top.map(|top| top.max(DEFAULT_BRANCHES));
        let has_examples = top.is_some() && !self.top.is_given();
        MergeLimits { top, depth: self.depth.filter(|depth| *depth > 0), branches, has_examples }
    }

    /// Prints notes about options that have no effect because they apply only to classes or only to objects.
    fn notes(&self, cx: &RunContext, are_objects: bool) {
        if self.input.quiet {
            return;
        }
        let options = [
            (true, self.top.is_given(), "--top is for classes: --paths limits the paths to an object"),
            (true, self.depth.is_some(), "--depth is for classes: paths to an object are shown in full"),
            (false, self.paths.is_some(), "--paths is for objects: --top limits the merged paths of a class"),
            (false, self.budget.is_some(), "--budget is for objects: the paths of a class are all searched"),
        ];
        let ignored =
            options.iter().filter(|(of_objects, is_given, _)| *is_given && *of_objects == are_objects);
        ignored.for_each(|(.., text)| cx.emit("note", text));
    }
}

pub(crate) fn run(cx: &RunContext, args: &PathsToRootArgs) -> anyhow::Result<Outcome> {
    let PathsToRootArgs { input, output, .. } = args;
    let selections = &args.input.resolve_selections(cx, &args.selections)?;
    let id = |selection: &Selection| match selection.what {
        SelectionKind::Object(id) => Some(id),
        SelectionKind::Classes(_) => None,
    };
    let ids = selections.iter().map(id).collect::<Option<Vec<ObjectId>>>();
    let outcome = match &ids {
        Some(ids) => {
            let most = args.paths.unwrap_or(DEFAULT_PATHS);
            let budget = args.budget.filter(|budget| *budget > 0);
            objects::run(cx, input, output, ids, objects::PathLimits { most, budget }, args.exclusions())
        }
        None => merged::run(cx, input, output, selections, args.exclusions(), args.show()),
    }?;
    args.notes(cx, ids.is_some());
    Ok(outcome)
}

/// Describes the excluded references: `weak, soft or phantom`.
fn excluded_references(excluded: Exclusions) -> String {
    either(Strength::EXCLUDABLE.into_iter().filter(|of| excluded.contains(*of)).map(Strength::name))
}

/// Describes the excluded roots: `java frame or JNI local`.
fn excluded_roots(excluded: Exclusions) -> String {
    either(RootKind::ALL.into_iter().filter(|of| excluded.contains_root(*of)).map(RootKind::name))
}

fn either(words: impl Iterator<Item = &'static str>) -> String {
    let words: Vec<&str> = words.collect();
    match words.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [some @ .., last] => format!("{} or {last}", some.join(", ")),
    }
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![objects::row_schema(), merged::row_schema()]
}
