//! `browse`: the dump in a terminal.
//!
//! [`core`] is a browser without a terminal: a state that takes keys, sizes and answers, and returns questions and a
//! screen of cells. [`terminal`] connects it to the terminal, and [`link`] to a process of this program ([`worker`],
//! [`wire`]) in which [`answers`] answers its questions with the commands: it can be killed at any time. Lines are those of the commands' tables ([`hprof_report::screen`]).

mod answers;
mod core;
mod link;
mod terminal;
#[cfg(test)]
mod tests;
mod wire;
mod worker;

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::sync::Arc;

use hprof_query::oql::KEYWORDS;
use hprof_query::tables;

use crate::cli::shared::args::Input;
use crate::cli::shared::child::WORKER;
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
    let (dump, baseline) = (args.input.path().to_owned(), args.baseline.clone());
    if std::env::var_os(WORKER).is_some() {
        let teller = worker::Teller::default();
        let dumps = cx.keeping_dumps(Some(Arc::new(teller.clone())), cx.hides_values);
        let dumps = dumps.with_frameworks(frameworks);
        let answerer = answers::Answerer::new(dumps, dump, baseline, args.input.words());
        worker::run(&teller, &answerer)?;
        return Ok(Outcome::Fine);
    }
    anyhow::ensure!(
        io::stdin().is_terminal() && io::stdout().is_terminal(),
        "browse needs a terminal; the other commands write to files and pipes"
    );
    for path in std::iter::once(args.input.path()).chain(args.baseline.as_deref()) {
        anyhow::Context::with_context(std::fs::metadata(path), || format!("cannot open {}", path.display()))?;
    }
    let mut words = args.input.words();
    words.extend(args.frameworks.words());
    words.extend(baseline.iter().flat_map(|baseline| ["--baseline".into(), baseline.into()]));
    words.extend(["--".into(), dump.clone().into()]);
    let options = shell_options(args);
    terminal::run(words, |size| core::Browser::new(dump, baseline, options, Box::new(CommandOptions), size))?;
    Ok(Outcome::Fine)
}

/// Returns the options that every command must repeat in a shell: without them it would have another answer, or build
/// another index.
fn shell_options(args: &BrowseArgs) -> Vec<OsString> {
    let mut options = args.frameworks.words();
    options.extend(args.input.heap_dump().iter().map(|number| format!("--heap-dump={number}").into()));
    if let Some(dir) = args.input.index_dir_option() {
        options.extend(["--index-dir".into(), dir.into()]);
    }
    options
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

    fn query_words(&self, command: &str) -> Vec<String> {
        let mut words: Vec<String> = match command {
            "oql" | "sql" => KEYWORDS.iter().map(|word| (*word).to_owned()).collect(),
            _ => return Vec::new(),
        };
        if command == "sql" {
            for table in tables::definitions() {
                words.extend(table.columns.iter().map(|column| column.name.to_string()));
                words.push(table.name.into_owned());
            }
        }
        words
    }
}
