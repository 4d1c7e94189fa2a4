//! `--no-values`: hiding the values of a heap, and the options that cannot be used with it.
//!
//! Values are masked where they become output, below this module. This module rejects options that would reveal values by the
//! presence or order of rows.

use std::ffi::OsStr;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches};

use super::context::RunContext;

/// Environment variable that makes a process hide the values of the heap.
pub(crate) const HIDES_VALUES: &str = "HPROF_CLI_HIDES_VALUES";

/// ID of the option `--no-values`.
const NO_VALUES: &str = "no_values";

/// Options that read values of the heap: command, option, and the values of the option that are harmless.
const READ_VALUES: &[(&str, &str, &[&str])] = &[
    ("dump", "keep", &[]),
    ("export", "strings", &["none"]),
    ("instances", "conditions", &[]),
    ("instances", "sort", &["retained", "shallow", "address"]),
    ("redact", "keep", &[]),
    ("roots", "thread", &[]),
    ("secrets", "show_values", &[]),
    ("show", "form", &["numbers"]),
    ("strings", "pattern", &[]),
    ("strings", "sort", &["bytes", "count", "length", "wasted", "address"]),
    ("threads", "thread", &[]),
    ("traces", "thread", &[]),
];

/// Returns the declaration of the option `--no-values`.
pub(crate) fn no_values() -> Arg {
    Arg::new(NO_VALUES)
        .long("no-values")
        .action(ArgAction::SetTrue)
        .help_heading("Output")
        .help("Omit the contents of objects: texts, numbers in fields, map keys, names of threads and class loaders")
}

/// Returns whether values have to be hidden, by the arguments of a command or by the environment.
pub(crate) fn is_asked(matches: &ArgMatches) -> bool {
    let option = || matches.try_get_one::<bool>(NO_VALUES).ok().flatten().copied();
    is_asked_by(std::env::var_os(HIDES_VALUES).as_deref()) || option().unwrap_or_default()
}

/// Returns whether a value of the variable hides values: any except an empty one or `0`, so that no spelling of yes shows them.
fn is_asked_by(variable: Option<&OsStr>) -> bool {
    variable.is_some_and(|value| !value.is_empty() && value != "0")
}

/// Commands that write the values of a dump to another file.
const WRITE_VALUES: [&str; 2] = ["convert", "recover"];

/// Checks that a command and its arguments neither read values nor write them to a file.
///
/// # Errors
///
/// If an argument reads values, or the command writes them.
pub(crate) fn check(command: &str, matches: &ArgMatches) -> anyhow::Result<()> {
    anyhow::ensure!(
        !WRITE_VALUES.contains(&command),
        "{command} writes values of the heap, which are hidden; use redact, or unset {HIDES_VALUES}"
    );
    for (_, option, harmless) in READ_VALUES.iter().filter(|(of, ..)| *of == command) {
        let is_given = matches.value_source(option) == Some(ValueSource::CommandLine);
        let mut given = matches.get_raw(option).into_iter().flatten();
        if is_given && given.any(|word| !harmless.iter().any(|known| word == OsStr::new(known))) {
            let name = match *option {
                "conditions" => "where",
                "form" => "as",
                "show_values" => "show-values",
                other => other,
            };
            let does = if *option == "keep" { "writes" } else { "reads" };
            anyhow::bail!(
                "--{name} {does} values of the heap, which are hidden; omit it, or do not hide values"
            );
        }
    }
    Ok(())
}

/// Prints a note that a query cannot read values.
pub(crate) fn note(cx: &RunContext, is_quiet: bool) {
    if cx.hides_values && !is_quiet {
        cx.emit(
            "note",
            "values of the heap are hidden: texts and numbers of objects are `*` or null, also in conditions",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_yes_hides_values() {
        for (variable, is_asked) in
            [("1", true), ("true", true), ("yes", true), ("no", true), (" ", true), ("", false), ("0", false)]
        {
            assert_eq!(is_asked_by(Some(OsStr::new(variable))), is_asked, "{variable:?}");
        }
        assert!(!is_asked_by(None));
    }

    #[test]
    fn options_that_read_values_exist() {
        for (command, option, _) in READ_VALUES {
            let program = crate::cli::command();
            let of = program.find_subcommand(command);
            assert!(
                of.is_some_and(|of| of.get_arguments().any(|arg| arg.get_id() == option)),
                "{command} {option}"
            );
        }
    }
}
