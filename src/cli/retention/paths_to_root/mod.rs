//! `paths-to-root`: the paths that keep an object alive.

mod chains;
mod merged;
pub(super) mod objects;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;

use hprof_index::Dump;
use hprof_query::objects::excluded_fields::{self, ExcludedFields, FieldOfClass};
use hprof_query::objects::selection::{Selection, SelectionKind};
use hprof_query::objects::strength::{Exclusions, Strength};
use hprof_query::paths::merged::MergeLimits;
use hprof_query::paths::steps::View;
use hprof_values::{ObjectId, RootKind};

use crate::cli::prelude::*;
use crate::cli::shared::messages;

use super::roots;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli paths-to-root heap.hprof 0x7c00012a8
  hprof-cli paths-to-root heap.hprof 0x7c00012a8 --paths 10 --exclude weak,phantom
  hprof-cli paths-to-root heap.hprof com.acme.Session --top 10
  hprof-cli paths-to-root heap.hprof com.acme.Session --exclude-field com.acme.Cache.byId
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

    /// Fields to exclude, of all instances of the class and its subclasses, or static; can be repeated
    #[arg(long, value_name = "CLASS.FIELD", help_heading = "Filter")]
    exclude_field: Vec<FieldOfClass>,

    /// Exclude the fields in FILE, one CLASS.FIELD on each line; # starts a comment
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Filter")]
    exclude_file: Option<PathBuf>,

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
    fn exclusions(&self, cx: &RunContext) -> anyhow::Result<PathExclusions> {
        let references = match &self.exclude {
            _ if self.all_references => Exclusions::NONE,
            None => Exclusions::all_but_strong(),
            Some(strengths) => Exclusions::from_strengths(strengths.iter().copied()),
        };
        let references = references.without_roots(self.exclude_roots.iter().copied());
        let mut fields = self.exclude_field.clone();
        if let Some(path) = &self.exclude_file {
            fields.extend(read_fields(cx, path)?);
        }
        Ok(PathExclusions { references, fields })
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

/// What paths do not lead through.
struct PathExclusions {
    references: Exclusions,
    fields: Vec<FieldOfClass>,
}

impl PathExclusions {
    /// Returns a view of a dump that does not follow the excluded fields.
    ///
    /// # Errors
    /// If the dump has no such fields. All errors except the last were printed.
    fn view<'a>(&self, cx: &RunContext, dump: &Dump<'a>) -> anyhow::Result<View<'a>> {
        let mut view = View::new(dump);
        let excluded = ExcludedFields::resolve(dump.summary, &self.fields).map_err(|missing| {
            let lines = missing.iter().map(|field| format!("cannot exclude {field}")).collect();
            messages::last_error(cx, lines)
        })?;
        view.edges.exclude_fields(excluded);
        Ok(view)
    }

    /// Describes the excluded references: `weak, soft or phantom`.
    fn references(&self) -> String {
        either(
            Strength::EXCLUDABLE
                .into_iter()
                .filter(|of| self.references.contains(*of))
                .map(|of| of.name().to_owned()),
        )
    }

    /// Describes the excluded roots: `java frame or JNI local`.
    fn roots(&self) -> String {
        let kinds = RootKind::ALL.into_iter().filter(|of| self.references.contains_root(*of));
        either(kinds.map(|kind| kind.name().to_owned()))
    }

    /// Describes the excluded fields: `a.B.c or d.E.f`.
    fn fields(&self) -> String {
        either(self.fields.iter().map(ToString::to_string))
    }
}

/// Maximum size of a file of fields in bytes.
const MAX_LIST: u64 = 1 << 20;

/// Reads a file of fields.
///
/// # Errors
/// If it cannot be read, or a line names no field. All errors except the last were printed.
fn read_fields(cx: &RunContext, path: &Path) -> anyhow::Result<Vec<FieldOfClass>> {
    let failed = || format!("cannot read {}", path.display());
    let mut text = String::new();
    let file = File::open(path).with_context(failed)?;
    file.take(MAX_LIST + 1).read_to_string(&mut text).with_context(failed)?;
    anyhow::ensure!(text.len() as u64 <= MAX_LIST, "{}: a list of fields has at most 1 MiB", path.display());
    excluded_fields::parse_list(&text).map_err(|errors| {
        let line = |(number, error)| format!("{}: line {number}: {error}", path.display());
        messages::last_error(cx, errors.into_iter().map(line).collect())
    })
}

pub(crate) fn run(cx: &RunContext, args: &PathsToRootArgs) -> anyhow::Result<Outcome> {
    let PathsToRootArgs { input, output, .. } = args;
    let excluded = &args.exclusions(cx)?;
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
            objects::run(cx, input, output, ids, objects::PathLimits { most, budget }, excluded)
        }
        None => merged::run(cx, input, output, selections, excluded, args.show()),
    }?;
    args.notes(cx, ids.is_some());
    Ok(outcome)
}

fn either(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.collect();
    match words.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [some @ .., last] => format!("{} or {last}", some.join(", ")),
    }
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![objects::row_schema(), merged::row_schema()]
}
