//! `diff`: what grew from one dump to another. One file a thing that is compared.

mod classes;
mod places;

pub(crate) use places::places_of;

use crate::cli::Outcome;
use crate::cli::compare::pair::PairInput;
use crate::cli::shared::args::Output;
use crate::cli::shared::keys::{Key, keys};
use crate::cli::shared::limit::Top;
use crate::query::classes::pattern::ClassPattern;
use crate::query::compare::classes::{GroupBy, SortBy};
use crate::query::objects::condition::size;
use crate::report::Format;
use crate::report::answer::Declared;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli diff before.hprof after.hprof
  hprof-cli diff before.hprof after.hprof 'com.acme.**' --retained
  hprof-cli diff before.hprof after.hprof --by place
  hprof-cli diff before.hprof after.hprof --by package
  hprof-cli diff before.hprof after.hprof --format json | jq '.rows[0]'";

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Classes(GroupBy),
    Place,
}

/// The words of `--by`.
const BY: &[Key<By>] = &[
    ("class", By::Classes(GroupBy::Class), "Classes, by name and class loader"),
    ("package", By::Classes(GroupBy::Package), "Packages"),
    ("loader", By::Classes(GroupBy::Loader), "Class loaders"),
    ("superclass", By::Classes(GroupBy::Superclass), "Classes with all their subclasses"),
    ("place", By::Place, "Where in the program: by which fields, from static fields and threads down"),
];

/// The words of `--sort`.
const SORT: &[Key<SortBy>] = &[
    ("bytes", SortBy::Bytes, "Shallow bytes"),
    ("instances", SortBy::Instances, "Instances"),
    ("retained", SortBy::Retained, "Retained bytes; implies --retained"),
    ("class", SortBy::Name, "By name"),
];

/// Show what grew from one dump to another
///
/// Both dumps are matched by what means the same in each: names of classes and class loaders, without the
/// numbers of lambdas and proxies; never by object IDs, which change. What grew most comes first. By class,
/// an index of each dump is enough, and the answer takes milliseconds. Tables leave out what is the same in
/// both dumps. The exit code is 1 if nothing has changed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: PairInput,

    /// Only classes that match PATTERN, for example `com.acme.**`; with --by class, package, loader, superclass
    #[arg(index = 3, value_name = "PATTERN", help_heading = "Filter")]
    patterns: Vec<ClassPattern>,

    /// Only reachable objects; with --by class, package, loader, superclass
    #[arg(long, help_heading = "Filter")]
    live: bool,

    /// What to compare
    #[arg(long, value_name = "WHAT", value_parser = keys(BY), default_value = "class", help_heading = "Output")]
    by: By,

    /// Also compare retained sizes; with --by class, package, loader, superclass
    #[arg(long, help_heading = "Output")]
    retained: bool,

    /// What rows are sorted by, most growth first [default: bytes, or retained with --retained]
    #[arg(long, value_name = "KEY", value_parser = keys(SORT), help_heading = "Output")]
    sort: Option<SortBy>,

    /// With --by place, leave out smaller changes, for example 1MiB [default: a thousandth of the larger heap]
    #[arg(long, value_name = "SIZE", value_parser = size::parse, help_heading = "Filter")]
    min_change: Option<u64>,

    #[command(flatten)]
    top: Top,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    match args.by {
        By::Classes(group_by) => classes::run(args, group_by),
        By::Place => places::run(args),
    }
}

impl Args {
    /// Refuses what only classes are compared by.
    fn only_classes(&self, by: &str) -> anyhow::Result<()> {
        let given = [
            ("a class pattern", !self.patterns.is_empty()),
            ("--live", self.live),
            ("--retained", self.retained),
            ("--sort", self.sort.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((what, _)) => anyhow::bail!("{what} has no meaning with --by {by}; omit it"),
        }
    }

    /// How many rows are shown.
    fn rows(&self) -> usize {
        self.top.rows(self.output.format()).unwrap_or(usize::MAX)
    }

    /// Whether rows that are the same in both dumps are left out: they help nobody who reads a table.
    fn leaves_out_same(&self) -> bool {
        self.output.format() == Format::Table
    }
}

pub(crate) fn declared() -> Vec<Declared> {
    let mut all = classes::declared();
    all.push(places::declared());
    all
}
