//! The command line: arguments -> a question -> an answer -> text. The only place that prints or decides exit codes.
//!
//! One file a command. `args` has what commands share; `messages` owns stderr, `progress` the progress bar.

mod args;
mod classes;
mod completions;
mod convert;
mod cpu;
mod cputime;
mod doctor;
mod dominators;
mod estimate;
mod every;
mod flamegraph;
mod heap_threads;
mod histo;
mod index;
mod info;
mod instances;
mod loaders;
mod man;
mod merged_paths;
mod messages;
mod monitor_dumps;
mod monitors;
mod object;
mod oql;
mod out_file;
mod output;
mod paths_to_root;
mod progress;
mod recorded;
mod refs;
mod retained;
mod roots;
mod show;
mod signals;
mod sites;
mod stack;
mod started_threads;
mod strings;
mod summary;
mod threads;
mod traces;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// Answers from Java heap dumps and HPROF reports, in the shell.
///
/// Reads dumps of HotSpot, of the HPROF agent and of Android, and the agent's text reports, plain or compressed by gzip or
/// zstd, and keeps an index beside dumps, so that the second question is answered at once.
#[derive(Debug, Parser)]
#[command(name = "hprof-cli", version, max_term_width = 110, after_long_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What exit codes mean; the end of every long help.
pub(crate) const EXIT_CODES: &str = "Exit codes:
  0  fine
  1  it ran, and the answer is \"no\": nothing found, or an index that is not right
  2  wrong usage, or an error
  3  an answer from a damaged dump: part of it is missing or unreadable";

#[derive(Debug, Subcommand)]
enum Command {
    Histo(histo::Args),
    Dominators(dominators::Args),
    Retained(retained::Args),
    Roots(roots::Args),
    PathsToRoot(paths_to_root::Args),
    Show(show::Args),
    Instances(instances::Args),
    Refs(refs::Args),
    Classes(classes::Args),
    Loaders(loaders::Args),
    Oql(oql::Args),
    Strings(strings::Args),
    Sites(sites::Args),
    Traces(traces::Args),
    Cpu(cpu::Args),
    Cputime(cputime::Args),
    Monitors(monitors::Args),
    Threads(threads::Args),
    Summary(summary::Args),
    Convert(convert::Args),
    Flamegraph(flamegraph::Args),
    Info(info::Args),
    Doctor(doctor::Args),
    Index(index::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// An answer.
    Fine,
    /// The answer is "no".
    No,
    /// An answer from a damaged dump.
    Damaged,
}

/// Runs the program with these arguments, the first being its name.
///
/// It takes the process for its own: it handles signals, so that temporary files are removed.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    signals::install();
    let cli =
        match command().try_get_matches_from(arguments).and_then(|matches| Cli::from_arg_matches(&matches)) {
            Ok(cli) => cli,
            Err(error) => {
                // Help and version go to stdout, usage errors to stderr; a closed pipe is no error.
                let _ = error.print();
                return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
            }
        };
    let outcome = match cli.command {
        Command::Histo(args) => histo::run(&args),
        Command::Dominators(args) => dominators::run(&args),
        Command::Retained(args) => retained::run(&args),
        Command::Roots(args) => roots::run(&args),
        Command::PathsToRoot(args) => paths_to_root::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Instances(args) => instances::run(&args),
        Command::Refs(args) => refs::run(&args),
        Command::Classes(args) => classes::run(&args),
        Command::Loaders(args) => loaders::run(&args),
        Command::Oql(args) => oql::run(&args),
        Command::Strings(args) => strings::run(&args),
        Command::Sites(args) => sites::run(&args),
        Command::Traces(args) => traces::run(&args),
        Command::Cpu(args) => cpu::run(&args),
        Command::Cputime(args) => cputime::run(&args),
        Command::Monitors(args) => monitors::run(&args),
        Command::Threads(args) => threads::run(&args),
        Command::Summary(args) => summary::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Flamegraph(args) => flamegraph::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Index(args) => index::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    };
    match outcome {
        Ok(Outcome::Fine) => ExitCode::SUCCESS,
        Ok(Outcome::No) => ExitCode::from(1),
        Ok(Outcome::Damaged) => ExitCode::from(3),
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            messages::error(&error);
            ExitCode::from(2)
        }
    }
}

/// The command with all its subcommands, for help, completions and man pages.
pub(crate) fn command() -> clap::Command {
    Cli::command().mut_subcommands(|command| {
        let examples = match command.get_name() {
            "histo" => histo::EXAMPLES,
            "dominators" => dominators::EXAMPLES,
            "retained" => retained::EXAMPLES,
            "roots" => roots::EXAMPLES,
            "paths-to-root" => paths_to_root::EXAMPLES,
            "show" => show::EXAMPLES,
            "instances" => instances::EXAMPLES,
            "refs" => refs::EXAMPLES,
            "classes" => classes::EXAMPLES,
            "loaders" => loaders::EXAMPLES,
            "oql" => oql::EXAMPLES,
            "strings" => strings::EXAMPLES,
            "sites" => sites::EXAMPLES,
            "traces" => traces::EXAMPLES,
            "cpu" => cpu::EXAMPLES,
            "cputime" => cputime::EXAMPLES,
            "monitors" => monitors::EXAMPLES,
            "threads" => threads::EXAMPLES,
            "summary" => summary::EXAMPLES,
            "convert" => convert::EXAMPLES,
            "flamegraph" => flamegraph::EXAMPLES,
            "info" => info::EXAMPLES,
            "doctor" => doctor::EXAMPLES,
            "index" => index::EXAMPLES,
            "completions" => completions::EXAMPLES,
            "man" => man::EXAMPLES,
            _ => return command,
        };
        command.after_long_help(format!("{examples}\n\n{EXIT_CODES}"))
    })
}

/// Whether the reader of stdout has gone, as `head` does when it has enough.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
