//! `diff`: what grew from one dump to another. One file a thing that is compared.

mod classes;
mod cpu;
mod places;
mod properties;
mod recorded;
mod roots;
mod shown;
mod sites;
mod strings;
mod threads;
mod waste;

pub(crate) use places::places_of;

use crate::cli::Outcome;
use crate::cli::compare::pair::PairInput;
use crate::cli::shared::args::Output;
use crate::cli::shared::context::RunContext;
use crate::cli::shared::keys::{Key, keys, word_of};
use crate::cli::shared::limit::Top;
use crate::cli::shared::stack::StackArgs;
use hprof_query::classes::histogram::SortBy;
use hprof_query::classes::pattern::ClassPattern;
use hprof_query::compare::classes::GroupBy;
use hprof_query::objects::condition::size;
use hprof_report::Format;
use hprof_report::answer::Declared;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli diff before.hprof after.hprof
  hprof-cli diff before.hprof after.hprof 'com.acme.**' --retained
  hprof-cli diff before.hprof after.hprof --group-by place
  hprof-cli diff before.hprof after.hprof --group-by package
  hprof-cli diff before.hprof.txt after.hprof --group-by sites --stack
  hprof-cli diff before.hprof after.hprof --format json | jq '.rows[0]'";

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Classes(GroupBy),
    Place,
    Roots,
    Threads,
    Properties,
    Strings,
    Waste,
    Sites,
    Cpu,
    CpuTime,
}

/// The words of `--group-by`.
const GROUP_BY: &[Key<By>] = &[
    ("class", By::Classes(GroupBy::Class), "Classes, by name and class loader"),
    ("package", By::Classes(GroupBy::Package), "Packages"),
    ("loader", By::Classes(GroupBy::Loader), "Class loaders"),
    ("superclass", By::Classes(GroupBy::Superclass), "Classes with all their subclasses"),
    ("place", By::Place, "Where in the program: by which fields, from static fields and threads down"),
    ("roots", By::Roots, "GC roots, by kind"),
    ("threads", By::Threads, "Threads, by name; names that differ only in numbers are one"),
    ("properties", By::Properties, "System properties of the JVM"),
    ("strings", By::Strings, "Texts that several Strings have, by their number of copies"),
    ("waste", By::Waste, "Memory spent for nothing, by kind; see `waste`"),
    ("sites", By::Sites, "Allocation sites of recordings, by class and stack"),
    ("cpu", By::Cpu, "CPU SAMPLES of recordings, by stack"),
    ("cputime", By::CpuTime, "CPU TIME of text reports, by stack"),
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

    /// Only classes that match PATTERN, for example `com.acme.**`; with --group-by class, package, loader, superclass,
    /// sites. With --group-by cpu, cputime: only stacks with a frame of such a class
    #[arg(index = 3, value_name = "PATTERN", help_heading = "Filter")]
    patterns: Vec<ClassPattern>,

    /// Only reachable objects; with --group-by class, package, loader, superclass
    #[arg(long, help_heading = "Filter")]
    live: bool,

    /// Group rows by this key: what is compared
    #[arg(
        long,
        alias = "by",
        value_name = "KEY",
        value_parser = keys(GROUP_BY),
        default_value = "class",
        help_heading = "Output"
    )]
    group_by: By,

    /// Also show retained sizes; with --group-by class, package, loader, superclass
    #[arg(long, help_heading = "Output")]
    retained: bool,

    /// Sort order, most growth first; with --group-by class, package, loader, superclass, sites
    /// [default: bytes, or retained with --retained]
    #[arg(long, value_name = "KEY", value_parser = keys(SORT), help_heading = "Output")]
    sort: Option<SortBy>,

    /// Leave out smaller changes, for example 1MiB; with --group-by place [default: a thousandth of the larger heap]
    #[arg(long, value_name = "SIZE", value_parser = size::parse, help_heading = "Filter")]
    min_change: Option<u64>,

    #[command(flatten)]
    top: Top,

    #[command(flatten)]
    stack: StackArgs,

    #[command(flatten)]
    output: Output<true>,
}

pub(crate) fn run(cx: &RunContext, args: &Args) -> anyhow::Result<Outcome> {
    args.refuse_others()?;
    match args.group_by {
        By::Classes(group_by) => classes::run(cx, args, group_by),
        By::Place => places::run(cx, args),
        By::Roots => roots::run(cx, args),
        By::Threads => threads::run(cx, args),
        By::Properties => properties::run(cx, args),
        By::Strings => strings::run(cx, args),
        By::Waste => waste::run(cx, args),
        By::Sites => sites::run(cx, args),
        By::Cpu => cpu::run(cx, args),
        By::CpuTime => cpu::run_times(cx, args),
    }
}

impl Args {
    /// Ends with an error if an option was given that means nothing for what is compared.
    fn refuse_others(&self) -> anyhow::Result<()> {
        let given = [
            ("PATTERN", !self.patterns.is_empty()),
            ("--live", self.live),
            ("--retained", self.retained),
            ("--sort retained", self.sort == Some(SortBy::Retained)),
            ("--sort", self.sort.is_some()),
            ("--stack", self.stack.is_shown()),
            ("--min-change", self.min_change.is_some()),
        ];
        let has_meaning: &[&str] = match self.group_by {
            By::Classes(_) => &["PATTERN", "--live", "--retained", "--sort", "--sort retained"],
            By::Place => &["--min-change"],
            By::Sites => &["PATTERN", "--sort", "--stack"],
            By::Cpu | By::CpuTime => &["PATTERN", "--stack"],
            By::Roots | By::Threads | By::Properties | By::Strings | By::Waste => &[],
        };
        let by = word_of(GROUP_BY, self.group_by);
        match given.into_iter().find(|(option, given)| *given && !has_meaning.contains(option)) {
            Some((option, _)) => anyhow::bail!("{option} cannot be used with --group-by {by}; omit it"),
            None => Ok(()),
        }
    }

    /// How many rows are shown.
    fn rows(&self) -> usize {
        self.top.rows(self.output.format()).unwrap_or(usize::MAX)
    }

    /// Returns whether rows that are the same in both dumps are left out: they help nobody who reads a table.
    fn leaves_out_same(&self) -> bool {
        self.output.format() == Format::Table
    }
}

pub(crate) fn declared() -> Vec<Declared> {
    let mut declared = classes::declared();
    declared.extend([
        places::declared(),
        roots::declared(),
        threads::declared(),
        properties::declared(),
        strings::declared(),
        waste::declared(),
        sites::declared(),
        cpu::declared(),
        cpu::declared_times(),
    ]);
    declared
}
