//! The command line: arguments -> a question -> an answer -> text. The only place that prints or decides exit codes.
//!
//! One file a command. `args` has what commands share; `messages` owns stderr, `progress` the progress bar.

mod class;
mod dump;
mod meta;
mod object;
mod recording;
mod retention;
mod shared;
mod threads;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use shared::{messages, signals};

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
    Histo(class::histo::Args),
    Dominators(retention::dominators::Args),
    Retained(retention::retained::Args),
    Roots(retention::roots::Args),
    PathsToRoot(retention::paths_to_root::Args),
    Show(object::show::Args),
    Instances(object::instances::Args),
    Refs(object::refs::Args),
    Classes(class::classes::Args),
    Loaders(class::loaders::Args),
    Oql(object::oql::Args),
    Strings(object::strings::Args),
    Sites(recording::sites::Args),
    Traces(recording::traces::Args),
    Cpu(recording::cpu::Args),
    Cputime(recording::cputime::Args),
    Monitors(recording::monitors::Args),
    Threads(threads::Args),
    Summary(recording::summary::Args),
    Convert(recording::convert::Args),
    Flamegraph(recording::flamegraph::Args),
    Info(dump::info::Args),
    Doctor(dump::doctor::Args),
    Index(dump::index::Args),
    Completions(meta::completions::Args),
    Man(meta::man::Args),
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
        Command::Histo(args) => class::histo::run(&args),
        Command::Dominators(args) => retention::dominators::run(&args),
        Command::Retained(args) => retention::retained::run(&args),
        Command::Roots(args) => retention::roots::run(&args),
        Command::PathsToRoot(args) => retention::paths_to_root::run(&args),
        Command::Show(args) => object::show::run(&args),
        Command::Instances(args) => object::instances::run(&args),
        Command::Refs(args) => object::refs::run(&args),
        Command::Classes(args) => class::classes::run(&args),
        Command::Loaders(args) => class::loaders::run(&args),
        Command::Oql(args) => object::oql::run(&args),
        Command::Strings(args) => object::strings::run(&args),
        Command::Sites(args) => recording::sites::run(&args),
        Command::Traces(args) => recording::traces::run(&args),
        Command::Cpu(args) => recording::cpu::run(&args),
        Command::Cputime(args) => recording::cputime::run(&args),
        Command::Monitors(args) => recording::monitors::run(&args),
        Command::Threads(args) => threads::run(&args),
        Command::Summary(args) => recording::summary::run(&args),
        Command::Convert(args) => recording::convert::run(&args),
        Command::Flamegraph(args) => recording::flamegraph::run(&args),
        Command::Info(args) => dump::info::run(&args),
        Command::Doctor(args) => dump::doctor::run(&args),
        Command::Index(args) => dump::index::run(&args),
        Command::Completions(args) => meta::completions::run(&args),
        Command::Man(args) => meta::man::run(&args),
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
            "histo" => class::histo::EXAMPLES,
            "dominators" => retention::dominators::EXAMPLES,
            "retained" => retention::retained::EXAMPLES,
            "roots" => retention::roots::EXAMPLES,
            "paths-to-root" => retention::paths_to_root::EXAMPLES,
            "show" => object::show::EXAMPLES,
            "instances" => object::instances::EXAMPLES,
            "refs" => object::refs::EXAMPLES,
            "classes" => class::classes::EXAMPLES,
            "loaders" => class::loaders::EXAMPLES,
            "oql" => object::oql::EXAMPLES,
            "strings" => object::strings::EXAMPLES,
            "sites" => recording::sites::EXAMPLES,
            "traces" => recording::traces::EXAMPLES,
            "cpu" => recording::cpu::EXAMPLES,
            "cputime" => recording::cputime::EXAMPLES,
            "monitors" => recording::monitors::EXAMPLES,
            "threads" => threads::EXAMPLES,
            "summary" => recording::summary::EXAMPLES,
            "convert" => recording::convert::EXAMPLES,
            "flamegraph" => recording::flamegraph::EXAMPLES,
            "info" => dump::info::EXAMPLES,
            "doctor" => dump::doctor::EXAMPLES,
            "index" => dump::index::EXAMPLES,
            "completions" => meta::completions::EXAMPLES,
            "man" => meta::man::EXAMPLES,
            _ => return command,
        };
        command.after_long_help(format!("{examples}\n\n{EXIT_CODES}"))
    })
}

/// Whether the reader of stdout has gone, as `head` does when it has enough.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
