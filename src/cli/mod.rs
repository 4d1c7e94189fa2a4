//! The command line: arguments -> a question -> an answer -> text. The only place that prints or decides exit codes.
//!
//! One file a command. `args` has what commands share; `messages` owns stderr, `progress` the progress bar.

mod class;
mod dump;
mod meta;
mod object;
mod recording;
pub mod reference;
mod retention;
mod shared;
mod threads;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use shared::{messages, output, signals};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::report::answer::Declared;

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

/// The commands, each once: its name in the code, and the file that has it.
macro_rules! commands {
    (@declared $all:ident [] $($module:ident)::+) => { $all.extend($($module)::+::declared()); };
    (@declared $all:ident [$without_rows:literal] $($module:ident)::+) => {};
    ($($name:ident in $($module:ident)::+ $(, $without_rows:literal)?;)*) => {
        #[derive(Debug, Subcommand)]
        enum Command {
            $($name($($module)::+::Args),)*
        }

        impl Command {
            fn run(&self) -> anyhow::Result<Outcome> {
                match self {
                    $(Self::$name(args) => $($module)::+::run(args),)*
                }
            }
        }

        /// The examples of each command, in the order of help.
        const EXAMPLES: &[&str] = &[$($($module)::+::EXAMPLES),*];

        /// What the answers of all commands hold.
        fn declared() -> Vec<Declared> {
            let mut all = Vec::new();
            $(commands!(@declared all [$($without_rows)?] $($module)::+);)*
            all
        }
    };
}

commands! {
    Histo in class::histo;
    Dominators in retention::dominators;
    Retained in retention::retained;
    Roots in retention::roots;
    PathsToRoot in retention::paths_to_root;
    Show in object::show;
    Instances in object::instances;
    Refs in object::refs;
    Classes in class::classes;
    Loaders in class::loaders;
    Oql in object::oql;
    Strings in object::strings;
    Sites in recording::sites;
    Traces in recording::traces;
    Cpu in recording::cpu;
    Cputime in recording::cputime;
    Monitors in recording::monitors;
    Threads in threads;
    Summary in recording::summary;
    Convert in recording::convert, "without rows";
    Flamegraph in recording::flamegraph, "without rows";
    Info in dump::info;
    Doctor in dump::doctor;
    Index in dump::index;
    Completions in meta::completions, "without rows";
    Man in meta::man, "without rows";
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
    let matches = command().try_get_matches_from(arguments).inspect(output::choose_color);
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to stdout, usage errors to stderr; a closed pipe is no error.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match cli.command.run() {
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
    // Subcommands are in the order of their declaration.
    let mut examples = EXAMPLES.iter();
    Cli::command().mut_subcommands(|command| match examples.next() {
        Some(examples) => command.after_long_help(format!("{examples}\n\n{EXIT_CODES}")),
        None => command,
    })
}

/// Whether the reader of stdout has gone, as `head` does when it has enough.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
