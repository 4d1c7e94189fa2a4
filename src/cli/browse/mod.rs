//! `browse`: shows the dump interactively in a terminal.
//!
//! The arguments are declared in every build, so that help, man pages and completions are the same; the rest requires the
//! feature `browse`. `core` is a browser without a terminal: a state that takes keys, sizes and results, and returns requests
//! and a screen of cells. `terminal` connects it to the terminal, and `link` to a process of this program (`worker`, `wire`) in
//! which `answers` runs the requested commands: it can be killed at any time. `session` starts either of them. Lines are
//! formatted as in the commands' tables ([`hprof_report::screen`]).

#[cfg(feature = "browse")]
mod answers;
#[cfg(feature = "browse")]
mod core;
#[cfg(feature = "browse")]
mod kept;
#[cfg(feature = "browse")]
mod link;
#[cfg(feature = "browse")]
mod session;
#[cfg(feature = "browse")]
mod terminal;
#[cfg(all(test, feature = "browse"))]
mod tests;
#[cfg(feature = "browse")]
mod wire;
#[cfg(feature = "browse")]
mod worker;

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use anyhow::ensure;

use crate::cli::prelude::*;
use crate::cli::shared::frameworks::FrameworksArgs;
use crate::cli::shared::spool::STDIN;
use crate::cli::shared::worker::is_worker;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli browse heap.hprof
  hprof-cli browse heap.hprof --baseline yesterday.hprof

Keys: a letter opens a view (the last line lists them), Enter opens the object or class on the line,
Esc goes back, / filters, : runs a command, ? shows help, q quits.";

/// Browse a dump in the terminal
///
/// Shows the answers of the other commands as views: overview, leaks, dominator tree, histogram, objects, paths,
/// threads, strings, waste and, with --baseline, what grew. Enter follows the objects and classes in them. The index is
/// built on first use; the screen stays usable meanwhile.
///
/// Available only in builds with the cargo feature `browse`: `cargo install --path . --features browse`.
#[derive(Debug, clap::Args)]
#[cfg_attr(not(feature = "browse"), allow(dead_code, reason = "the arguments are for the help"))]
pub(crate) struct BrowseArgs {
    #[command(flatten)]
    input: Input,

    /// Compare with this older dump
    #[arg(long, value_name = "OLD", value_hint = clap::ValueHint::FilePath, help_heading = "Input")]
    baseline: Option<PathBuf>,

    #[command(flatten)]
    frameworks: FrameworksArgs,
}

#[cfg(feature = "browse")]
pub(crate) fn run(cx: &RunContext, args: &BrowseArgs) -> anyhow::Result<Outcome> {
    session::run(cx, args)
}

#[cfg(not(feature = "browse"))]
pub(crate) fn run(_: &RunContext, _: &BrowseArgs) -> anyhow::Result<Outcome> {
    Err(not_built())
}

fn not_built() -> anyhow::Error {
    anyhow::anyhow!(
        "this hprof-cli was built without browse; build it with the cargo feature `browse`: `cargo install --path . \
         --features browse` in its source directory"
    )
}

/// Checks that this build supports `browse`, and that there is a terminal for keys and screens. This happens before a pipe is
/// read, which may take minutes and is possible only once.
///
/// # Errors
/// If the feature or the terminal is missing.
pub(crate) fn check(matches: &clap::ArgMatches) -> anyhow::Result<()> {
    if !cfg!(feature = "browse") {
        return Err(not_built());
    }
    if is_worker() {
        return Ok(());
    }
    for name in ["dump", "baseline"] {
        ensure!(
            matches.get_one::<PathBuf>(name).is_none_or(|path| path != Path::new(STDIN)),
            "browse reads keys from standard input, so it cannot read a dump from there; name a file or another pipe: \
             hprof-cli browse <(gzip -dc heap.hprof.gz)"
        );
    }
    ensure!(
        io::stdin().is_terminal(),
        "standard input is not a terminal, and browse reads keys from it; other commands do not need a terminal"
    );
    ensure!(
        io::stdout().is_terminal(),
        "standard output is not a terminal, which browse requires; other commands can write to files and pipes"
    );
    Ok(())
}
