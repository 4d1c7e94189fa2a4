//! `browse`: the dump in a terminal.
//!
//! [`core`] is a browser without a terminal: a state that takes keys, sizes and answers, and returns questions and a
//! screen of cells. [`answers`] answers its questions with the commands of this program, [`terminal`] connects it to
//! the terminal. Lines are those of the commands' tables ([`hprof_report::screen`]).

mod answers;
mod core;
mod terminal;
#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use crate::cli::shared::args::Input;
use crate::cli::shared::context::RunContext;
use crate::cli::shared::frameworks::FrameworksArgs;
use crate::cli::{self, Outcome};

use self::core::Catalog;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli browse heap.hprof
  hprof-cli browse heap.hprof --baseline yesterday.hprof

Keys: a letter opens a view (the last line lists them), Enter goes to the object of the line, Backspace goes back,
/ filters, : runs any command that reads, ? explains, q quits.";

/// Browse a dump in the terminal
///
/// Shows the answers of the other commands as views: overview, leaks, dominator tree, histogram, objects, paths,
/// threads, strings, waste and, with --baseline, what grew. Enter follows the objects and classes in them. The index is
/// built on first use; the screen stays usable meanwhile.
#[derive(Debug, clap::Args)]
pub(crate) struct BrowseArgs {
    #[command(flatten)]
    input: Input,

    /// Compare with this older dump
    #[arg(long, value_name = "OLD", value_hint = clap::ValueHint::FilePath, help_heading = "Input")]
    baseline: Option<PathBuf>,

    #[command(flatten)]
    frameworks: FrameworksArgs,
}

pub(crate) fn run(cx: &RunContext, args: &BrowseArgs) -> anyhow::Result<Outcome> {
    let frameworks = args.frameworks.rules(cx)?;
    anyhow::ensure!(
        io::stdin().is_terminal() && io::stdout().is_terminal(),
        "browse needs a terminal; the other commands write to files and pipes"
    );
    for path in std::iter::once(args.input.path()).chain(args.baseline.as_deref()) {
        anyhow::Context::with_context(std::fs::metadata(path), || format!("cannot open {}", path.display()))?;
    }
    let dumps = cx.keeping_dumps(None, false).with_frameworks(frameworks);
    let (dump, baseline) = (args.input.path().to_owned(), args.baseline.clone());
    let answerer = answers::Answerer::new(dumps, dump.clone(), baseline.clone(), args.input.words());
    terminal::run(answerer, |size| core::Browser::new(dump, baseline, Box::new(CommandOptions), size))?;
    Ok(Outcome::Fine)
}

/// Options as the parser knows them.
struct CommandOptions;

impl Catalog for CommandOptions {
    fn values(&self, command: &str, option: &str) -> Vec<String> {
        let Some(command) = cli::one(command) else { return Vec::new() };
        let name = option.trim_start_matches("--");
        let argument = command.get_arguments().find(|argument| argument.get_long() == Some(name));
        let Some(argument) = argument else { return Vec::new() };
        let defaults = argument.get_default_values();
        let values = argument.get_possible_values().into_iter().map(|value| value.get_name().to_owned());
        values.filter(|value| !defaults.iter().any(|default| *default == **value)).collect()
    }

    fn options(&self, command: &str) -> Vec<String> {
        let Some(command) = cli::one(command) else { return Vec::new() };
        let long = command.get_arguments().filter_map(clap::Arg::get_long);
        long.map(|name| format!("--{name}")).collect()
    }
}
