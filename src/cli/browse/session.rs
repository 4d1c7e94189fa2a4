//! The command `browse` in builds that contain it: starts the browser, or its worker process.

use std::ffi::OsString;
use std::sync::Arc;

use hprof_query::oql::KEYWORDS;
use hprof_query::tables;

use crate::cli::shared::context::RunContext;
use crate::cli::shared::worker::{ProgressReporter, is_worker};
use crate::cli::{self, Outcome};

use super::core::{Browser, Catalog};
use super::{BrowseArgs, answers, terminal, worker};

pub(super) fn run(cx: &RunContext, args: &BrowseArgs) -> anyhow::Result<Outcome> {
    let frameworks = args.frameworks.rules(cx)?;
    let (dump, baseline) = (args.input.path().to_owned(), args.baseline.clone());
    if is_worker() {
        let reporter = ProgressReporter::default();
        let dumps = cx.keeping_dumps(Some(Arc::new(reporter.clone())), cx.hides_values);
        let dumps = dumps.with_frameworks(frameworks);
        let answerer = answers::Answerer::new(dumps, dump, baseline, args.input.words());
        worker::run(&reporter, &Arc::new(answerer))?;
        return Ok(Outcome::Fine);
    }
    for path in std::iter::once(args.input.path()).chain(args.baseline.as_deref()) {
        anyhow::Context::with_context(std::fs::metadata(path), || format!("cannot open {}", path.display()))?;
    }
    let mut words = vec![OsString::from("browse")];
    words.extend(args.input.words());
    words.extend(args.frameworks.words());
    words.extend(baseline.iter().flat_map(|baseline| ["--baseline".into(), baseline.into()]));
    words.extend(["--".into(), dump.clone().into()]);
    let options = shell_options(args);
    terminal::run(words, |size| Browser::new(dump, baseline, options, Box::new(CommandOptions), size))?;
    Ok(Outcome::Fine)
}

/// Returns the options that every command must repeat in a shell: without them it would show another result, or build another
/// index.
fn shell_options(args: &BrowseArgs) -> Vec<OsString> {
    let mut options = args.frameworks.words();
    options.extend(args.input.heap_dump().iter().map(|number| format!("--heap-dump={number}").into()));
    if let Some(dir) = args.input.index_dir_option() {
        options.extend(["--index-dir".into(), dir.into()]);
    }
    options
}

/// The catalog of commands and options, from the declaration of the command line.
pub(super) struct CommandOptions;

impl Catalog for CommandOptions {
    fn description(&self, command: &str) -> Option<String> {
        cli::subcommand(command)?.get_about().map(ToString::to_string)
    }

    fn values(&self, command: &str, option: &str) -> Vec<String> {
        let Some(command) = cli::subcommand(command) else { return Vec::new() };
        let name = option.trim_start_matches("--");
        let argument = command.get_arguments().find(|argument| argument.get_long() == Some(name));
        let Some(argument) = argument else { return Vec::new() };
        let defaults = argument.get_default_values();
        let values = argument.get_possible_values().into_iter().map(|value| value.get_name().to_owned());
        values.filter(|value| !defaults.iter().any(|default| *default == **value)).collect()
    }

    fn options(&self, command: &str) -> Vec<String> {
        let Some(command) = cli::subcommand(command) else { return Vec::new() };
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
