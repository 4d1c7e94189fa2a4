//! `--no-values`: whether the values of a heap are hidden, and the options that cannot be used then.
//!
//! What is hidden is decided where values become output, below this module. Here is only what would tell a value by which
//! rows there are, or in which order.

use std::ffi::OsStr;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches};

use super::context::RunContext;

/// Environment variable that makes a process hide the values of the heap.
pub(crate) const HIDES_VALUES: &str = "HPROF_CLI_HIDES_VALUES";

/// Name of the option.
const NO_VALUES: &str = "no_values";

/// Options that read values of the heap: command, option, and the values of the option that do not.
const READ_VALUES: &[(&str, &str, &[&str])] = &[
    ("export", "strings", &["none"]),
    ("instances", "conditions", &[]),
    ("instances", "sort", &["retained", "shallow", "address"]),
    ("roots", "thread", &[]),
    ("secrets", "show_values", &[]),
    ("show", "form", &["numbers"]),
    ("strings", "pattern", &[]),
    ("strings", "sort", &["bytes", "count", "length", "wasted", "address"]),
    ("threads", "thread", &[]),
    ("traces", "thread", &[]),
];

/// Returns the option.
pub(crate) fn no_values() -> Arg {
    Arg::new(NO_VALUES)
        .long("no-values")
        .action(ArgAction::SetTrue)
        .help_heading("Output")
        .help("Omit the contents of objects: texts, numbers in fields, map keys, names of threads and class loaders")
}

/// Returns whether values are hidden, by the arguments of a command or by the environment.
pub(crate) fn is_asked(matches: &ArgMatches) -> bool {
    let option = || matches.try_get_one::<bool>(NO_VALUES).ok().flatten().copied();
    std::env::var_os(HIDES_VALUES).is_some_and(|value| value == "1") || option().unwrap_or_default()
}

/// Checks that no argument of a command reads values.
///
/// # Errors
///
/// If one does.
pub(crate) fn check(command: &str, matches: &ArgMatches) -> anyhow::Result<()> {
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
            anyhow::bail!("--{name} reads values of the heap, which are hidden; omit it, or show values");
        }
    }
    Ok(())
}

/// Notes that a query sees no values.
pub(crate) fn note(cx: &RunContext, is_quiet: bool) {
    if cx.hides_values && !is_quiet {
        cx.say(
            "note",
            "values of the heap are hidden: texts and numbers of objects are masks or null, also in conditions",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
