//! `dominators`: the dominator tree.

mod all;
pub(super) mod arguments;
mod groups;
mod listing;
mod merged;
pub(super) mod reachable;

use crate::cli::prelude::*;

pub(crate) use arguments::DominatorsArgs;
use arguments::Grouping;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli dominators heap.hprof --depth 3 --min-retained 1MiB
  hprof-cli dominators heap.hprof --group-by class-tree
  hprof-cli dominators heap.hprof --group-by package
  hprof-cli dominators heap.hprof --of com.acme.Session --depth 2
  hprof-cli dominators heap.hprof --of 0x7c00012a8 --chain
  hprof-cli dominators heap.hprof --all --format csv | sort -t, -k4,4nr | head";

pub(crate) fn run(cx: &RunContext, args: &DominatorsArgs) -> anyhow::Result<Outcome> {
    if args.all {
        anyhow::ensure!(
            args.output.format() != Format::Table,
            "--all needs --format csv or --format json (--top 0 --depth N shows all in a table)"
        );
        return all::run(cx, args);
    }
    args.refuse_levels()?;
    match args.group_by {
        Some(Grouping::Level(group_by)) => groups::run(cx, args, group_by),
        Some(Grouping::ClassTree) => merged::run(cx, args),
        None => listing::run(cx, args),
    }
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    [listing::row_schema(), merged::row_schema(), all::row_schema()]
        .into_iter()
        .chain(groups::row_schema())
        .collect()
}
