//! `diff`: the differences between two dumps. One file per kind of comparison.

mod classes;
mod cpu;
mod kind;
mod places;
mod properties;
mod recorded;
mod root_kinds;
mod shown;
mod sites;
mod strings;
mod threads;
mod waste;

use crate::cli::compare::pair::{PairInput, PairMember};
use crate::cli::prelude::*;
use crate::cli::shared::frameworks::FrameworksArgs;
use crate::cli::shared::stack::StackArgs;
use hprof_query::histogram::HistogramOrder;
use hprof_query::naming::pattern::ClassPattern;
use hprof_query::objects::condition::size;
use std::sync::LazyLock;

use kind::DiffKind;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli diff before.hprof after.hprof
  hprof-cli diff before.hprof after.hprof 'com.acme.**' --retained
  hprof-cli diff before.hprof after.hprof --group-by place
  hprof-cli diff before.hprof after.hprof --group-by package
  hprof-cli diff before.hprof.txt after.hprof --group-by sites --stack
  hprof-cli diff before.hprof 4711              # the heap of a running JVM
  hprof-cli diff before.hprof after.hprof --format json | jq '.rows[0]'";

/// Kinds of comparison, in the order of help and of the reference.
const KINDS: [&DiffKind; 13] = [
    &classes::CLASS,
    &classes::PACKAGE,
    &classes::LOADER,
    &classes::SUPERCLASS,
    &places::DEFINITION,
    &root_kinds::DEFINITION,
    &threads::DEFINITION,
    &properties::DEFINITION,
    &strings::DEFINITION,
    &waste::DEFINITION,
    &sites::DEFINITION,
    &cpu::SAMPLES,
    &cpu::TIMES,
];

/// Values of `--group-by`.
static GROUP_BY: LazyLock<Vec<Keyword<&DiffKind>>> =
    LazyLock::new(|| KINDS.into_iter().map(|kind| (kind.name, kind, kind.summary)).collect());

/// Values of `--sort`.
const SORT: &[Keyword<HistogramOrder>] = &[
    ("bytes", HistogramOrder::Bytes, "Shallow bytes"),
    ("instances", HistogramOrder::Instances, "Instances"),
    ("retained", HistogramOrder::Retained, "Retained bytes; implies --retained"),
    ("class", HistogramOrder::Name, "By name"),
];

/// Show what grew from one dump to another
///
/// Rows of the two dumps are matched by names, such as those of classes and class loaders, ignoring the numbers in
/// names of lambdas and proxies; object IDs change from dump to dump and are not compared. The largest growth comes
/// first. Grouping by class reads only the summary of each dump's index and takes milliseconds. Tables omit rows that
/// did not change. The exit code is 1 if nothing has changed.
///
/// By class and package, class histograms of jmap, jcmd and running JVMs (see `histo`) are compared, too, with each other
/// and with dumps: counts and bytes by class name, without class loaders.
#[derive(Debug, clap::Args)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    input: PairInput,

    #[command(flatten)]
    frameworks: FrameworksArgs,

    /// Only classes that match PATTERN, for example `com.acme.**`; with --group-by class, package, loader, superclass,
    /// sites. With --group-by cpu, cputime: only stacks with a frame of such a class
    #[arg(index = 3, value_name = "PATTERN", help_heading = "Filter")]
    patterns: Vec<ClassPattern>,

    /// Only reachable objects; with --group-by class, package, loader, superclass
    #[arg(long, help_heading = "Filter")]
    live: bool,

    /// Group rows by KEY, which also selects what to compare
    #[arg(
        long,
        value_name = "KEY",
        value_parser = keys(&GROUP_BY),
        default_value = "class",
        help_heading = "Output"
    )]
    group_by: &'static DiffKind,

    /// Also show retained sizes; with --group-by class, package, loader, superclass
    #[arg(long, help_heading = "Output")]
    retained: bool,

    /// Sort order, most growth first; with --group-by class, package, loader, superclass, sites
    /// [default: bytes, or retained with --retained]
    #[arg(long, value_name = "KEY", value_parser = keys(SORT), help_heading = "Output")]
    sort: Option<HistogramOrder>,

    /// Omit changes smaller than SIZE, for example 1MiB; with --group-by place [default: a thousandth of the larger
    /// heap]
    #[arg(long, value_name = "SIZE", value_parser = size::parse, help_heading = "Filter")]
    min_change: Option<u64>,

    #[command(flatten)]
    top: Top,

    #[command(flatten)]
    stack: StackArgs,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(cx: &RunContext, args: &DiffArgs) -> anyhow::Result<Outcome> {
    args.refuse_others()?;
    if !BY_NAME.contains(&args.group_by.name) {
        PairMember::check_objects(&args.input.members(cx)?, &format!("--group-by {}", args.group_by.name))?;
    }
    (args.group_by.compare)(cx, args)
}

/// Names of the kinds that compare class histograms, too.
const BY_NAME: [&str; 2] = [classes::CLASS.name, classes::PACKAGE.name];

impl DiffArgs {
    /// Returns an error if an option was given that cannot be used with this comparison.
    fn refuse_others(&self) -> anyhow::Result<()> {
        let given = [
            ("PATTERN", !self.patterns.is_empty()),
            ("--live", self.live),
            ("--retained", self.retained),
            ("--sort retained", self.sort == Some(HistogramOrder::Retained)),
            ("--sort", self.sort.is_some()),
            ("--stack", self.stack.is_shown()),
            ("--min-change", self.min_change.is_some()),
        ];
        let DiffKind { name, options, .. } = self.group_by;
        match given.into_iter().find(|(option, given)| *given && !options.contains(option)) {
            Some((option, _)) => anyhow::bail!("{option} cannot be used with --group-by {name}; omit it"),
            None => Ok(()),
        }
    }

    /// Returns the maximum number of rows shown.
    fn rows(&self, format: Format) -> usize {
        self.top.rows(format).unwrap_or(usize::MAX)
    }
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    KINDS.into_iter().map(DiffKind::row_schema).collect()
}
