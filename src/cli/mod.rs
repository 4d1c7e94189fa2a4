//! The command line: arguments -> a question -> an answer -> text. The only place that prints or decides exit codes.
//!
//! One file a command. `args` has what commands share; `context` says where a command's dump comes from and where its
//! answer goes; `messages` owns stderr, `progress` the progress bar.

mod agent;
mod class;
mod compare;
mod dump;
mod export;
mod first_word;
pub mod fuzzing;
#[cfg(all(test, feature = "serve", feature = "sql"))]
mod grammar;
mod meta;
mod object;
mod options;
mod pages;
mod recording;
#[cfg(test)]
mod reference;
mod report;
mod retention;
#[cfg(feature = "serve")]
mod serve;
mod shared;
mod threads;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::process::ExitCode;

use shared::context::RunContext;
use shared::{color, messages, signals, spool};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use hprof_report::answer::Declared;

/// Analyze Java heap dumps and HPROF reports on the command line.
///
/// Reads heap dumps of HotSpot, Android and the HPROF agent, and the agent's text reports, plain or compressed with
/// gzip or zstd. An index is built on first use and stored beside the dump, so that later commands answer quickly.
#[derive(Debug, Parser)]
#[command(
    name = "hprof-cli",
    version,
    disable_version_flag = true,
    arg = meta::version::version(),
    arg = meta::version::verbose(),
    max_term_width = 110,
    after_long_help = EXIT_CODES,
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Program {}

/// What exit codes mean; the end of every long help.
pub(crate) const EXIT_CODES: &str = "Exit codes:
  0  success
  1  no result: nothing was found, an index is not right, or a rule failed
  2  wrong usage, or an error
  3  an answer from a damaged dump: part of it is missing or unreadable";

/// The commands, each once, in the groups of `--help`: its name in the code and on the command line, and the file that
/// has it.
macro_rules! commands {
    (@declared $all:ident [] $($module:ident)::+) => { $all.extend($($module)::+::declared()); };
    (@declared $all:ident [$without_rows:literal] $($module:ident)::+) => {};
    ($($group:literal { $($(#[$on:meta])* $name:ident = $word:literal in $($module:ident)::+ $(, $without_rows:literal)?;)* })*) => {
        #[derive(Debug, Subcommand)]
        enum Command {
            $($($(#[$on])* #[command(name = $word)] $name($($module)::+::Args),)*)*
        }

        impl Command {
            fn run(&self, cx: &RunContext) -> anyhow::Result<Outcome> {
                match self {
                    $($($(#[$on])* Self::$name(args) => $($module)::+::run(cx, args),)*)*
                }
            }
        }

        /// What each command is called, in the order of help.
        const NAMES: &[&str] = &[$($($(#[$on])* $word),*),*];

        /// The groups, and how many commands each has.
        const GROUPS: &[(&str, usize)] = &[$(($group, [$($(#[$on])* stringify!($name)),*].len())),*];

        /// One command, for the parser.
        fn one(name: &str) -> Option<clap::Command> {
            let (command, examples) = match name {
                $($($(#[$on])* $word => {
                    let command = clap::Command::new($word);
                    (<$($module)::+::Args as clap::Args>::augment_args(command), $($module)::+::EXAMPLES)
                })*)*
                _ => return None,
            };
            Some(command.after_long_help(format!("{examples}\n\n{EXIT_CODES}")))
        }

        /// What the answers of all commands hold.
        #[cfg_attr(not(test), expect(dead_code, reason = "a test makes docs/json-schema.md of it"))]
        fn declared() -> Vec<Declared> {
            let mut all = Vec::new();
            $($($(#[$on])* { commands!(@declared all [$($without_rows)?] $($module)::+); })*)*
            all
        }
    };
}

commands! {
    "Find the leak" {
        Overview = "overview" in dump::overview;
        Leaks = "leaks" in retention::leaks;
        Histo = "histo" in class::histo;
        Dominators = "dominators" in retention::dominators;
        Retained = "retained" in retention::retained;
        PathsToRoot = "paths-to-root" in retention::paths_to_root;
        Loaders = "loaders" in class::loaders;
        Threads = "threads" in threads;
        Strings = "strings" in object::strings;
        Waste = "waste" in retention::waste;
    }
    "In a browser" {
        #[cfg(feature = "serve")]
        Serve = "serve" in serve, "without rows";
        Report = "report" in report, "without rows";
    }
    "Compare" {
        Diff = "diff" in compare::diff;
        Trend = "trend" in compare::trend;
        Check = "check" in compare::check;
    }
    "For other engines" {
        Export = "export" in export;
    }
    "Look at objects" {
        Show = "show" in object::show;
        Instances = "instances" in object::instances;
        Refs = "refs" in object::refs;
        Roots = "roots" in retention::roots;
        Classes = "classes" in class::classes;
        Oql = "oql" in object::oql;
        #[cfg(feature = "sql")]
        Sql = "sql" in object::sql;
    }
    "HPROF reports" {
        Sites = "sites" in recording::sites;
        Traces = "traces" in recording::traces;
        Cpu = "cpu" in recording::cpu;
        Cputime = "cputime" in recording::cputime;
        Monitors = "monitors" in recording::monitors;
        Summary = "summary" in recording::summary;
        Flamegraph = "flamegraph" in recording::flamegraph, "without rows";
        Convert = "convert" in recording::convert, "without rows";
    }
    "Record" {
        Run = "run" in agent::run, "without rows";
        Listen = "listen" in agent::listen;
        Agent = "agent" in agent::locate;
    }
    "Housekeeping" {
        Info = "info" in dump::info;
        Doctor = "doctor" in dump::doctor;
        Index = "index" in dump::index;
        Completions = "completions" in meta::completions, "without rows";
        Man = "man" in meta::man, "without rows";
    }
}

/// The beginning of the help, for who has no time.
const WHAT_NOW: &str = "OutOfMemoryError: what now?
  hprof-cli DUMP                            failed thread, biggest objects
  hprof-cli leaks DUMP                      the leak suspects, with evidence
  hprof-cli paths-to-root DUMP 0x7c00012a8  the fields that keep an object alive
  hprof-cli loaders DUMP                    class loaders and what they retain
  hprof-cli threads DUMP                    stacks, and what the locals retain";

/// What is shown where nothing is asked for: it fits on a screen of 24 lines.
fn first_screen() -> String {
    let about = Program::command().get_about().map(ToString::to_string).unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "hprof-cli {version}: {about}\n\n{WHAT_NOW}\n\nBefore and after
  hprof-cli diff OLD NEW                    what grew
  hprof-cli report DUMP -o report.html      all of it as one page
  hprof-cli run --cpu samples -- java ...   records a JVM

`hprof-cli --help` lists {} commands, `hprof-cli COMMAND --help` explains one.\n",
        NAMES.len()
    )
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
    let mut cx = RunContext::shell();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if meta::version::is_verbose(&arguments) {
        return exit_code(&cx, meta::version::run(&cx).map(|()| Outcome::Fine));
    }
    if arguments.len() < 2 {
        // On stderr, as all usage where nothing was asked for.
        let _ = io::stderr().write_all(first_screen().as_bytes());
        return ExitCode::from(2);
    }
    let arguments = match first_word::with_command(arguments, NAMES) {
        Ok(arguments) => options::renamed(arguments),
        Err(none) => {
            cx.say("error", &format!("there is no command {}", none.word));
            cx.say("hint", &none.hint);
            return ExitCode::from(2);
        }
    };
    let words: Vec<String> = arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let parser = || parser(words.get(1).map(String::as_str));
    let matches =
        parser().try_get_matches_from(&arguments).inspect(|matches| cx.color = color::color_of(matches));
    let matches = matches.map_err(|error| match words.get(1).and_then(|name| one(name)) {
        Some(command) => options::with_tip(error, &command, &words),
        None => error,
    });
    let usage = |error: clap::Error| {
        messages::usage(&cx, &error);
        ExitCode::from(if error.use_stderr() { 2 } else { 0 })
    };
    let matches = match matches {
        Ok(matches) => matches,
        Err(error) => return usage(error),
    };
    // All else is right: what comes through a pipe comes once.
    let line = match spool::line(&cx, parser, &arguments, matches) {
        Ok(line) => line,
        Err(error) => return exit_code(&cx, Err(error)),
    };
    match Command::from_arg_matches(&line.matches) {
        Ok(command) => exit_code(&cx, command.run(&cx)),
        Err(error) => usage(error),
    }
}

/// The exit code of a run; an error is written to stderr.
fn exit_code(cx: &RunContext, outcome: anyhow::Result<Outcome>) -> ExitCode {
    match outcome {
        Ok(Outcome::Fine) => ExitCode::SUCCESS,
        Ok(Outcome::No) => ExitCode::from(1),
        Ok(Outcome::Damaged) => ExitCode::from(3),
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            messages::error(cx, &error);
            ExitCode::from(2)
        }
    }
}

/// What to do about a dump that cannot be opened, in one line.
pub fn advice(error: &hprof_index::Error) -> Option<&'static str> {
    shared::advice::of_dump(error)
}

/// Runs one command for a page in a context that takes what it says: its name and its arguments.
///
/// # Errors
/// As the command's, and clap's if the arguments are wrong.
pub(crate) fn answer(cx: &RunContext, arguments: &[OsString]) -> anyhow::Result<Outcome> {
    let all = std::iter::once(OsStr::new("hprof-cli")).chain(arguments.iter().map(OsString::as_os_str));
    let matches = parser(arguments.first().and_then(|first| first.to_str())).try_get_matches_from(all)?;
    Command::from_arg_matches(&matches)?.run(cx)
}

/// The command with all its subcommands, for help, completions and man pages.
pub(crate) fn command() -> clap::Command {
    let command = Program::command().subcommands(NAMES.iter().filter_map(|name| one(name)));
    let groups = groups(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{WHAT_NOW}\n\n{{usage-heading}} {{usage}}\n{groups}\nOptions:\n{{options}}{{after-help}}"
    ))
}

/// What parses a command line with this first word.
fn parser(first: Option<&str>) -> clap::Command {
    first.and_then(alone).unwrap_or_else(command)
}

/// The program with one command: to put all of them together takes longer than many an answer.
pub(crate) fn alone(name: &str) -> Option<clap::Command> {
    Some(Program::command().subcommand(one(name)?))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a wrong or asking command line.
    fn said(parser: clap::Command, line: &[&str]) -> String {
        let error = parser.term_width(100).try_get_matches_from(line).map(|_| ()).err();
        error.map_or_else(|| panic!("{line:?} says nothing"), |error| error.to_string())
    }

    #[test]
    fn a_command_alone_says_what_it_says_among_all() {
        let all: Vec<String> = command().get_subcommands().map(|one| one.get_name().to_owned()).collect();
        assert_eq!(all, NAMES);
        for name in NAMES {
            for option in ["--help", "-h", "--wrong"] {
                let line = ["hprof-cli", name, option];
                let one = alone(name).unwrap_or_else(|| panic!("{name} is not there alone"));
                assert_eq!(said(one, &line), said(command(), &line), "{line:?}");
            }
        }
        assert!(alone("help").is_none() && alone("").is_none());
    }
}
