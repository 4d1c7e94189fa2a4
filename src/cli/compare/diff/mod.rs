//! `diff`: what grew from one dump to another. One file a thing that is compared.

mod classes;
mod cpu;
mod recorded;
mod sites;

use crate::cli::Outcome;
use crate::cli::compare::pair::PairInput;
use crate::cli::shared::args::Output;
use crate::cli::shared::keys::{Key, keys};
use crate::cli::shared::limit::Top;
use crate::cli::shared::stack::StackArgs;
use crate::query::classes::pattern::ClassPattern;
use crate::query::compare::classes::{GroupBy, SortBy};
use crate::report::Format;
use crate::report::answer::Declared;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli diff before.hprof after.hprof
  hprof-cli diff before.hprof after.hprof 'com.acme.**' --retained
  hprof-cli diff before.hprof after.hprof --by package
  hprof-cli diff before.hprof.txt after.hprof --by sites --stack
  hprof-cli diff before.hprof after.hprof --format json | jq '.rows[0]'";

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Classes(GroupBy),
    Sites,
    Cpu,
    CpuTime,
}

/// The words of `--by`.
const BY: &[Key<By>] = &[
    ("class", By::Classes(GroupBy::Class), "Classes, by name and class loader"),
    ("package", By::Classes(GroupBy::Package), "Packages"),
    ("loader", By::Classes(GroupBy::Loader), "Class loaders"),
    ("superclass", By::Classes(GroupBy::Superclass), "Classes with all their subclasses"),
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

    /// Only classes that match PATTERN, for example `com.acme.**`; with --by class, package, loader, superclass,
    /// sites. With --by cpu, cputime: only stacks with a frame of such a class
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

    /// What rows are sorted by, most growth first; with --by class, package, loader, superclass, sites
    /// [default: bytes, or retained with --retained]
    #[arg(long, value_name = "KEY", value_parser = keys(SORT), help_heading = "Output")]
    sort: Option<SortBy>,

    #[command(flatten)]
    top: Top,

    #[command(flatten)]
    stack: StackArgs,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    match args.by {
        By::Classes(group_by) => {
            args.refuse(&[("--stack", args.stack.is_shown())])?;
            classes::run(args, group_by)
        }
        By::Sites => {
            let retained = args.retained || args.sort == Some(SortBy::Retained);
            args.refuse(&[("--live", args.live), ("--retained", retained)])?;
            sites::run(args)
        }
        By::Cpu | By::CpuTime => {
            let refused =
                [("--live", args.live), ("--retained", args.retained), ("--sort", args.sort.is_some())];
            args.refuse(&refused)?;
            if args.by == By::Cpu { cpu::run(args) } else { cpu::run_times(args) }
        }
    }
}

impl Args {
    /// Ends with an error if one of these options was given, which say nothing of what is compared.
    fn refuse(&self, options: &[(&str, bool)]) -> anyhow::Result<()> {
        let by = BY.iter().find(|(_, by, _)| *by == self.by).map_or("", |(word, ..)| word);
        match options.iter().find(|(_, given)| *given) {
            Some((option, _)) => anyhow::bail!("{option} says nothing of --by {by}; omit it"),
            None => Ok(()),
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
    all.extend([sites::declared(), cpu::declared(), cpu::declared_times()]);
    all
}
