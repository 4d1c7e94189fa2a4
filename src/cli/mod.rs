//! The command line: parses arguments, runs a query, writes the result. Only this module prints and decides exit codes.
//!
//! Each command is a module, in a folder with related commands. `shared` contains code that several commands use: `args`
//! defines shared arguments, `context` determines where a command's dump comes from and where its output goes, `messages`
//! writes to stderr, `terminal::progress_bar` shows progress.

mod agent;
mod arguments;
mod browse;
#[cfg(target_os = "linux")]
mod capture;
mod class;
mod compare;
mod dump;
mod export;
mod first_word;
pub mod fuzzing;
#[cfg(all(test, feature = "serve", feature = "sql"))]
mod grammar;
mod habits;
mod jvm;
mod mcp;
mod memory;
mod meta;
mod object;
mod options;
mod pages;
mod prelude;
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
use shared::{color, hiding, messages, signals, spool, worker};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use hprof_report::answer::ResultSchema;

/// Analyze Java heap dumps and HPROF reports on the command line.
///
/// Reads heap dumps of HotSpot, Android and the HPROF agent, and the agent's text reports, plain or compressed with
/// gzip or zstd. An index is built on first use and stored next to the dump, so that later commands answer quickly.
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

/// Exit codes; the end of each long help.
pub(crate) const EXIT_CODES: &str = "Exit codes:
  0  success
  1  no result: nothing was found, an index is missing or damaged, or a rule failed
  2  wrong usage, or an error
  3  an answer from a damaged dump: part of it is missing or unreadable";

/// The commands without duplicates, in the groups of `--help`: type name, command name, and module.
macro_rules! commands {
    (@row_schema $all:ident [] $($module:ident)::+) => { $all.extend($($module)::+::row_schema()); };
    (@row_schema $all:ident [$without_rows:literal] $($module:ident)::+) => {};
    ($($group:literal { $($(#[$on:meta])* $name:ident($args:ident) = $word:literal in $($module:ident)::+ $(, $without_rows:literal)?;)* })*) => {
        #[derive(Debug, Subcommand)]
        enum Command {
            $($($(#[$on])* #[command(name = $word)] $name($($module)::+::$args),)*)*
        }

        impl Command {
            fn run(&self, cx: &RunContext) -> anyhow::Result<Outcome> {
                match self {
                    $($($(#[$on])* Self::$name(args) => $($module)::+::run(cx, args),)*)*
                }
            }
        }

        /// Command names, in the order of help.
        const NAMES: &[&str] = &[$($($(#[$on])* $word),*),*];

        /// Groups and the number of commands in each.
        const GROUPS: &[(&str, usize)] = &[$(($group, [$($(#[$on])* stringify!($name)),*].len())),*];

        /// Returns the clap command with this name.
        fn subcommand(name: &str) -> Option<clap::Command> {
            let (command, examples) = match name {
                $($($(#[$on])* $word => {
                    let command = clap::Command::new($word);
                    let command = <$($module)::+::$args as clap::Args>::augment_args(command);
                    (arguments::own_first($word, command), $($module)::+::EXAMPLES)
                })*)*
                _ => return None,
            };
            Some(command.after_long_help(format!("{examples}\n\n{EXIT_CODES}")))
        }

        /// Returns the schemas of the results of all commands.
        #[cfg_attr(not(test), expect(dead_code, reason = "a test makes docs/json-schema.md of it"))]
        fn row_schemas() -> Vec<ResultSchema> {
            let mut all = Vec::new();
            $($($(#[$on])* { commands!(@row_schema all [$($without_rows)?] $($module)::+); })*)*
            all
        }
    };
}

commands! {
    "Find the leak" {
        Overview(OverviewArgs) = "overview" in dump::overview;
        Leaks(LeaksArgs) = "leaks" in retention::leaks;
        Histo(HistoArgs) = "histo" in class::histo;
        Dominators(DominatorsArgs) = "dominators" in retention::dominators;
        Places(PlacesArgs) = "places" in retention::places;
        Retained(RetainedArgs) = "retained" in retention::retained;
        PathsToRoot(PathsToRootArgs) = "paths-to-root" in retention::paths_to_root;
        Loaders(LoadersArgs) = "loaders" in class::loaders;
        Threads(ThreadsArgs) = "threads" in threads;
        Strings(StringsArgs) = "strings" in object::strings;
        Waste(WasteArgs) = "waste" in retention::waste;
    }
    "In a browser" {
        #[cfg(feature = "serve")]
        Serve(ServeArgs) = "serve" in serve, "without rows";
        Report(ReportArgs) = "report" in report, "without rows";
    }
    "For assistants" {
        Mcp(McpArgs) = "mcp" in mcp, "without rows";
    }
    "Compare" {
        Diff(DiffArgs) = "diff" in compare::diff;
        Trend(TrendArgs) = "trend" in compare::trend;
        Check(CheckArgs) = "check" in compare::check;
    }
    "Before you share a dump" {
        Secrets(SecretsArgs) = "secrets" in dump::secrets;
    }
    "For other engines" {
        Export(ExportArgs) = "export" in export;
    }
    "Look at objects" {
        Browse(BrowseArgs) = "browse" in browse, "without rows";
        Show(ShowArgs) = "show" in object::show;
        Instances(InstancesArgs) = "instances" in object::instances;
        Refs(RefsArgs) = "refs" in object::refs;
        Roots(RootsArgs) = "roots" in retention::roots;
        Classes(ClassesArgs) = "classes" in class::classes;
        Oql(OqlArgs) = "oql" in object::oql;
        #[cfg(feature = "sql")]
        Sql(SqlArgs) = "sql" in object::sql;
    }
    "HPROF reports" {
        Sites(SitesArgs) = "sites" in recording::sites;
        Traces(TracesArgs) = "traces" in recording::traces;
        Cpu(CpuArgs) = "cpu" in recording::cpu;
        Cputime(CputimeArgs) = "cputime" in recording::cputime;
        Monitors(MonitorsArgs) = "monitors" in recording::monitors;
        Summary(SummaryArgs) = "summary" in recording::summary;
        Flamegraph(FlamegraphArgs) = "flamegraph" in recording::flamegraph, "without rows";
        Convert(ConvertArgs) = "convert" in recording::convert, "without rows";
    }
    "Running JVMs" {
        #[cfg(target_os = "linux")]
        Jvms(JvmsArgs) = "jvms" in capture::jvms;
        #[cfg(target_os = "linux")]
        Dump(DumpArgs) = "dump" in capture::dump;
        Memory(MemoryArgs) = "memory" in memory;
    }
    "Record" {
        Run(RunArgs) = "run" in agent::run, "without rows";
        Listen(ListenArgs) = "listen" in agent::listen;
        Agent(AgentArgs) = "agent" in agent::locate;
    }
    "Housekeeping" {
        Info(InfoArgs) = "info" in dump::info;
        Doctor(DoctorArgs) = "doctor" in dump::doctor;
        Recover(RecoverArgs) = "recover" in dump::recover;
        Redact(RedactArgs) = "redact" in dump::redact;
        Index(IndexArgs) = "index" in dump::index;
        Completions(CompletionsArgs) = "completions" in meta::completions, "without rows";
        Man(ManArgs) = "man" in meta::man, "without rows";
    }
}

/// First lines of the help, for users who are in a hurry.
const WHAT_NOW: &str = "OutOfMemoryError: what now?
  hprof-cli DUMP                            failed thread, biggest objects
  hprof-cli leaks DUMP                      the leak suspects, with evidence
  hprof-cli paths-to-root DUMP 0x7c00012a8  the fields that keep an object alive
  hprof-cli loaders DUMP                    class loaders and what they retain
  hprof-cli threads DUMP                    stacks, and what the locals retain";

/// Returns the text shown if there are no arguments: it fits on a screen of 24 lines.
fn first_screen() -> String {
    let about = Program::command().get_about().map(ToString::to_string).unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "hprof-cli {version}: {about}\n\n{WHAT_NOW}\n\nBefore and after
  hprof-cli diff OLD NEW                    what grew
  hprof-cli report DUMP -o report.html      a report as one page
  hprof-cli run --cpu samples -- java ...   records a JVM

`hprof-cli --help` lists {} commands, `hprof-cli COMMAND --help` explains one.\n",
        NAMES.len()
    )
}

/// Outcome of a run, which determines the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Success.
    Fine,
    /// No result.
    No,
    /// Success, but the dump is damaged.
    Damaged,
}

/// Runs the program with these arguments; the first is the program's name.
///
/// This function assumes that it owns the process: it handles signals in order to remove temporary files.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    signals::install();
    let mut cx = RunContext::shell();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    #[cfg(target_os = "linux")]
    if arguments.get(1).is_some_and(|word| word == shared::user_files::WORD) {
        return shared::user_files::run();
    }
    if let Err(error) = worker::begin() {
        return exit_code(&cx, Err(error.into()));
    }
    if meta::version::is_verbose(&arguments) {
        return exit_code(&cx, meta::version::run(&cx).map(|()| Outcome::Fine));
    }
    if arguments.len() < 2 {
        // On stderr, as with any usage message that was not requested.
        let _ = io::stderr().write_all(first_screen().as_bytes());
        return ExitCode::from(2);
    }
    let arguments = match first_word::with_command(arguments, NAMES) {
        Ok(arguments) => arguments,
        Err(none) => {
            cx.emit("error", &none.error);
            cx.emit("hint", &none.hint);
            return ExitCode::from(2);
        }
    };
    let words: Vec<String> = arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let own = words.get(1).and_then(|name| subcommand(name));
    let given = arguments.get(1..).unwrap_or_default();
    if let Some(habits::Mistake { error, hint }) = own.as_ref().and_then(|own| habits::mistake(given, own)) {
        cx.emit("error", &error);
        cx.emit("hint", &hint);
        return ExitCode::from(2);
    }
    let parser = || parser(words.get(1).map(String::as_str));
    let matches =
        parser().try_get_matches_from(&arguments).inspect(|matches| cx.color = color::color_of(matches));
    if let (Err(error), Some(own)) = (&matches, &own)
        && error.kind() == clap::error::ErrorKind::UnknownArgument
        && let Some(hint) = habits::hint(given, own)
    {
        cx.emit("error", &options::error_line(error));
        cx.emit("hint", &hint);
        return ExitCode::from(2);
    }
    let matches = matches.map_err(|error| {
        // Its usage line would contain the options that variables set. Help mentions the variables.
        let plain = error.use_stderr().then(|| arguments::without_variables(parser()));
        let plain = plain.and_then(|parser| parser.try_get_matches_from(&arguments).err());
        let error = plain.filter(|plain| plain.kind() == error.kind()).unwrap_or(error);
        match &own {
            Some(command) => options::with_tip(error, command, &words),
            None => error,
        }
    });
    let usage = |cx: &RunContext, error: clap::Error| {
        messages::usage(cx, &error);
        ExitCode::from(if error.use_stderr() { 2 } else { 0 })
    };
    let matches = match matches {
        Ok(matches) => matches,
        Err(error) => return usage(&cx, error),
    };
    // The command line is valid: only now is a pipe read, as it can be read only once.
    let line = match ready(&matches).and_then(|()| spool::line(&cx, parser, &arguments, matches)) {
        Ok(line) => line,
        Err(error) => return exit_code(&cx, Err(error)),
    };
    if let Some((_, of)) = line.matches.subcommand() {
        cx.hides_values = hiding::is_asked(of);
    }
    match Command::from_arg_matches(&line.matches) {
        Ok(command) => exit_code(&cx, check_hiding(&cx, &line.matches).and_then(|()| command.run(&cx))),
        Err(error) => usage(&cx, error),
    }
}

/// Checks the requirements of a command other than its arguments, before a pipe is read.
fn ready(matches: &clap::ArgMatches) -> anyhow::Result<()> {
    match matches.subcommand() {
        Some(("browse", of)) => browse::check(of),
        _ => Ok(()),
    }
}

/// Checks that a command does not read values if they are hidden.
fn check_hiding(cx: &RunContext, matches: &clap::ArgMatches) -> anyhow::Result<()> {
    match matches.subcommand() {
        Some((name, of)) if cx.hides_values => hiding::check(name, of),
        _ => Ok(()),
    }
}

/// Returns the exit code of a run and writes its error to stderr.
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

/// Returns one line of advice about a dump that cannot be opened.
pub fn advice(error: &hprof_index::Error) -> Option<&'static str> {
    shared::advice::of_dump(error)
}

/// Runs one command for a page, in its own [`RunContext`]. `arguments` are its name and arguments.
///
/// # Errors
///
/// Errors of the command, and clap's errors if the arguments are invalid.
pub(crate) fn answer(cx: &RunContext, arguments: &[OsString]) -> anyhow::Result<Outcome> {
    let all = std::iter::once(OsStr::new("hprof-cli")).chain(arguments.iter().map(OsString::as_os_str));
    let matches = parser(arguments.first().and_then(|first| first.to_str())).try_get_matches_from(all)?;
    check_hiding(cx, &matches)?;
    only_answers(&matches)?;
    Command::from_arg_matches(&matches)?.run(cx)
}

/// Checks that a command does not write files: pages and views only show results.
fn only_answers(matches: &clap::ArgMatches) -> anyhow::Result<()> {
    let Some((name, of)) = matches.subcommand() else { return Ok(()) };
    for argument in
        subcommand(name).iter().flat_map(clap::Command::get_arguments).filter(|argument| is_file(argument))
    {
        let is_given =
            of.value_source(argument.get_id().as_str()) == Some(clap::parser::ValueSource::CommandLine);
        let option = argument.get_long().unwrap_or_default();
        anyhow::ensure!(
            !is_given,
            "--{option} writes a file, which is not possible here; run {name} in a shell"
        );
    }
    Ok(())
}

/// Returns whether an argument is the name of a file to write.
pub(crate) fn is_file(argument: &clap::Arg) -> bool {
    argument.get_help_heading() == Some("Output")
        && argument.get_value_names().is_some_and(|names| names.iter().any(|name| name == "FILE"))
}

/// Returns the command with all its subcommands, for help, completions and man pages.
pub(crate) fn command() -> clap::Command {
    let command = Program::command().subcommands(NAMES.iter().filter_map(|name| subcommand(name)));
    let groups = groups(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{WHAT_NOW}\n\n{{usage-heading}} {{usage}}\n{groups}\nOptions:\n{{options}}{{after-help}}"
    ))
}

/// Returns the parser for a command line whose first word is `first`.
fn parser(first: Option<&str>) -> clap::Command {
    first.and_then(alone).unwrap_or_else(command)
}

/// Returns the program with only one of its commands: building all of them often takes longer than the command.
pub(crate) fn alone(name: &str) -> Option<clap::Command> {
    Some(Program::command().subcommand(subcommand(name)?))
}

/// Returns the commands by group, one line each: clap does not group subcommands.
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

/// Returns whether the reader of stdout has closed the pipe, as `head` does when it has enough.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the help or the usage error that a parser prints for a command line.
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
