//! The command line: arguments -> a question -> an answer -> text. The only place that prints or decides exit codes.
//!
//! One file a command. `args` has what commands share; `messages` owns stderr, `progress` the progress bar.

mod agent;
mod class;
mod compare;
mod dump;
mod export;
mod first_word;
mod meta;
mod object;
mod pages;
mod recording;
pub mod reference;
mod report;
mod retention;
#[cfg(feature = "serve")]
mod serve;
mod shared;
mod threads;

use std::cell::RefCell;
use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use shared::{messages, signals, terminal};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::report::answer::Declared;

/// Analyze Java heap dumps and HPROF reports on the command line.
///
/// Reads heap dumps of HotSpot, Android and the HPROF agent, and the agent's text reports, plain or compressed with
/// gzip or zstd. An index is built on first use and stored beside the dump, so that later commands answer quickly.
#[derive(Debug, Parser)]
#[command(name = "hprof-cli", version, max_term_width = 110, after_long_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What exit codes mean; the end of every long help.
pub(crate) const EXIT_CODES: &str = "Exit codes:
  0  success
  1  no result: nothing was found, an index is not right, or a rule failed
  2  wrong usage, or an error
  3  an answer from a damaged dump: part of it is missing or unreadable";

/// The commands, each once, in the groups of `--help`: its name in the code, and the file that has it.
macro_rules! commands {
    (@declared $all:ident [] $($module:ident)::+) => { $all.extend($($module)::+::declared()); };
    (@declared $all:ident [$without_rows:literal] $($module:ident)::+) => {};
    ($($group:literal { $($(#[$on:meta])* $name:ident in $($module:ident)::+ $(, $without_rows:literal)?;)* })*) => {
        #[derive(Debug, Subcommand)]
        enum Command {
            $($($(#[$on])* $name($($module)::+::Args),)*)*
        }

        impl Command {
            fn run(&self) -> anyhow::Result<Outcome> {
                match self {
                    $($($(#[$on])* Self::$name(args) => $($module)::+::run(args),)*)*
                }
            }
        }

        /// The examples of each command, in the order of help.
        const EXAMPLES: &[&str] = &[$($($(#[$on])* $($module)::+::EXAMPLES),*),*];

        /// The groups, and how many commands each has.
        const GROUPS: &[(&str, usize)] = &[$(($group, [$($(#[$on])* stringify!($name)),*].len())),*];

        /// What the answers of all commands hold.
        fn declared() -> Vec<Declared> {
            let mut all = Vec::new();
            $($($(#[$on])* { commands!(@declared all [$($without_rows)?] $($module)::+); })*)*
            all
        }
    };
}

commands! {
    "Find the leak" {
        Overview in dump::overview;
        Leaks in retention::leaks;
        Histo in class::histo;
        Dominators in retention::dominators;
        Retained in retention::retained;
        PathsToRoot in retention::paths_to_root;
        Loaders in class::loaders;
        Threads in threads;
        Strings in object::strings;
        Waste in retention::waste;
    }
    "In a browser" {
        #[cfg(feature = "serve")]
        Serve in serve, "without rows";
        Report in report, "without rows";
    }
    "Compare" {
        Diff in compare::diff;
        Trend in compare::trend;
        Check in compare::check;
    }
    "For other engines" {
        Export in export;
    }
    "Look at objects" {
        Show in object::show;
        Instances in object::instances;
        Refs in object::refs;
        Roots in retention::roots;
        Classes in class::classes;
        Oql in object::oql;
        #[cfg(feature = "sql")]
        Sql in object::sql;
    }
    "HPROF reports" {
        Sites in recording::sites;
        Traces in recording::traces;
        Cpu in recording::cpu;
        Cputime in recording::cputime;
        Monitors in recording::monitors;
        Summary in recording::summary;
        Flamegraph in recording::flamegraph, "without rows";
        Convert in recording::convert, "without rows";
    }
    "Record" {
        Run in agent::run, "without rows";
        Listen in agent::listen;
        Agent in agent::locate;
    }
    "Housekeeping" {
        Info in dump::info;
        Doctor in dump::doctor;
        Index in dump::index;
        Completions in meta::completions, "without rows";
        Man in meta::man, "without rows";
    }
}

/// The beginning of the help, for who has no time.
const WHAT_NOW: &str = "OutOfMemoryError: what now?
  hprof-cli DUMP                            failed thread, biggest objects
  hprof-cli leaks DUMP                      the leak suspects, with evidence
  hprof-cli paths-to-root DUMP 0x7c00012a8  the fields that keep an object alive
  hprof-cli loaders DUMP                    class loaders and what they retain
  hprof-cli threads DUMP                    stacks, and what the locals retain";

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
    let command = command();
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    let arguments = match first_word::with_command(arguments.into_iter().collect(), &names) {
        Ok(arguments) => arguments,
        Err(none) => {
            messages::line("error", &format!("there is no command {}", none.word));
            messages::line("hint", &none.hint);
            return ExitCode::from(2);
        }
    };
    let matches = command.try_get_matches_from(arguments).inspect(terminal::choose_color);
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => {
            messages::usage(&error);
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

/// Runs one command for a page, on a desk ([`shared::desk`]): its name and its arguments.
///
/// # Errors
/// As the command's, and clap's if the arguments are wrong.
pub(crate) fn answer(arguments: &[String]) -> anyhow::Result<Outcome> {
    thread_local! {
        /// A page asks several, and to put all commands together takes longer than many an answer.
        static COMMAND: RefCell<clap::Command> = RefCell::new(command());
    }
    let all = std::iter::once("hprof-cli").chain(arguments.iter().map(String::as_str));
    let matches = COMMAND.with_borrow_mut(|command| command.try_get_matches_from_mut(all))?;
    Cli::from_arg_matches(&matches)?.command.run()
}

/// The command with all its subcommands, for help, completions and man pages.
pub(crate) fn command() -> clap::Command {
    // Subcommands are in the order of their declaration.
    let mut examples = EXAMPLES.iter();
    let command = Cli::command().mut_subcommands(|command| match examples.next() {
        Some(examples) => command.after_long_help(format!("{examples}\n\n{EXIT_CODES}")),
        None => command,
    });
    let groups = groups(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{WHAT_NOW}\n\n{{usage-heading}} {{usage}}\n{groups}\nOptions:\n{{options}}{{after-help}}"
    ))
}

/// The commands by group, a line each: clap lists them without.
fn groups(command: &clap::Command) -> String {
    let width = command.get_subcommands().map(|command| command.get_name().len()).max().unwrap_or(0);
    let mut commands = command.get_subcommands();
    let mut text = String::new();
    for (group, count) in GROUPS {
        text.push_str(&format!("\n{group}:\n"));
        for command in commands.by_ref().take(*count) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {:width$}  {about}\n", command.get_name()));
        }
    }
    text
}

/// Whether the reader of stdout has gone, as `head` does when it has enough.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
