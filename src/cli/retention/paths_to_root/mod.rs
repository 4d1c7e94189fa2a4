//! `paths-to-root`: what keeps an object alive.

mod chains;
mod merged;
mod objects;

use crate::hprof::{ObjectId, RootKind};
use crate::query::objects::selection::{Selection, What};
use crate::query::objects::strength::{Excluded, Strength};
use crate::query::paths::merged::Show;
use crate::report::Format;
use crate::report::answer::Declared;

use crate::cli::Outcome;
use crate::cli::shared::args::{Input, Output};
use crate::cli::shared::keys::{Key, keys};
use crate::cli::shared::limit::Top;

use super::roots;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli paths-to-root heap.hprof 0x7c00012a8
  hprof-cli paths-to-root heap.hprof 0x7c00012a8 --paths 10 --exclude weak,phantom
  hprof-cli paths-to-root heap.hprof com.acme.Session --top 10
  hprof-cli paths-to-root heap.hprof 0x7c00012a8 --format json | jq -r '.rows[0].steps[].class'";

/// Objects below each object of a table when nothing is said.
const DEFAULT_BELOW: usize = 5;
/// Branches of a table when nothing is said.
const DEFAULT_BRANCHES: usize = 24;

/// The words of `--exclude`.
const STRENGTHS: &[Key<Strength>] = &[
    ("weak", Strength::Weak, "The referent of a WeakReference"),
    ("soft", Strength::Soft, "The referent of a SoftReference"),
    ("phantom", Strength::Phantom, "The referent of a PhantomReference or a Cleaner"),
    ("finalizer", Strength::Finalizer, "The referent of a Finalizer"),
];

/// What keeps objects alive: the shortest paths from the GC roots
///
/// Given objects, the shortest paths to each, every one another chain of objects, none leading through a further root.
/// Given classes, the shortest path to each of their objects, merged into trees.
///
/// What a thread's frame holds is a root only while the method runs. So where paths start in a frame, the shortest one
/// that goes on to a root of another kind, through fields, is shown too; merged paths start in frames only if no other
/// lead there.
///
/// What only the referent of a weak, soft or phantom reference or of a finalizer holds is not kept alive by it. Such
/// references are left out; where nothing else leads to an object, the paths over them are shown, and marked.
#[derive(Debug, clap::Args)]
#[command(mut_arg("top", |top| top.help(
    "Of classes: only the N objects that lead to most, below each object; 0 for all [default: 5 in a table, all in JSON \
     and CSV]"
)))]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,

    /// Objects by id, or all objects of a class: `0x7c00012a8`, `java.util.HashMap$Node`, `byte[]`, `com.acme.**`
    #[arg(value_name = "OBJECT|CLASS", required = true, help_heading = "Filter")]
    selections: Vec<Selection>,

    /// References that are left out [default: weak,soft,phantom,finalizer]
    #[arg(
        long,
        value_name = "KIND,...",
        value_delimiter = ',',
        value_parser = keys(STRENGTHS),
        conflicts_with = "all_references",
        help_heading = "Filter"
    )]
    exclude: Option<Vec<Strength>>,

    /// Leave no references out
    #[arg(long, help_heading = "Filter")]
    all_references: bool,

    /// Roots at which no path starts: java-frame, jni-local, jni-global, sticky-class, ... [default: none]
    #[arg(long, value_name = "KIND,...", value_delimiter = ',', value_parser = roots::kind, help_heading = "Filter")]
    exclude_roots: Vec<RootKind>,

    /// Paths to each object
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3,
        value_parser = clap::value_parser!(u16).range(1..),
        help_heading = "Output"
    )]
    paths: u16,

    #[command(flatten)]
    top: Top<DEFAULT_BELOW>,

    /// Of classes: only the first N steps from the roots; 0 for all [default: 0]
    #[arg(long, value_name = "N", help_heading = "Output")]
    depth: Option<u32>,

    #[command(flatten)]
    output: Output,
}

impl Args {
    fn excluded(&self) -> Excluded {
        let references = match &self.exclude {
            _ if self.all_references => Excluded::NONE,
            None => Excluded::all(),
            Some(strengths) => Excluded::of(strengths.iter().copied()),
        };
        references.without_roots(self.exclude_roots.iter().copied())
    }

    /// What is shown of merged paths.
    fn show(&self) -> Show {
        let format = self.output.format();
        let limited = format == Format::Table && !self.top.is_given();
        Show {
            top: self.top.rows(format),
            depth: self.depth.filter(|depth| *depth > 0),
            branches: limited.then_some(DEFAULT_BRANCHES),
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let Args { input, output, .. } = args;
    let selections = &args.input.settled(&args.selections)?;
    let id = |selection: &Selection| match selection.what {
        What::Object(id) => Some(id),
        What::Classes(_) => None,
    };
    match selections.iter().map(id).collect::<Option<Vec<ObjectId>>>() {
        Some(ids) => objects::run(input, output, &ids, args.paths, args.excluded()),
        None => merged::run(input, output, selections, args.excluded(), args.show()),
    }
}

/// The references that are left out: `weak, soft or phantom`.
fn excluded_references(excluded: Excluded) -> String {
    either(Strength::EXCLUDABLE.into_iter().filter(|of| excluded.contains(*of)).map(Strength::name))
}

/// The kinds of roots that are left out: `java frame or JNI local`.
fn excluded_roots(excluded: Excluded) -> String {
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

pub(crate) fn declared() -> Vec<Declared> {
    vec![objects::declared(), merged::declared()]
}
