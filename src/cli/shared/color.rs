//! The option `--color`.

use clap::{ArgMatches, ValueEnum};

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorArg {
    /// If stdout is a terminal and NO_COLOR is not set
    Auto,
    /// Always, even if stdout is not a terminal
    Always,
    /// Never
    Never,
}

/// Returns the value of `--color`, or `auto` if the command does not have the option.
pub(crate) fn color_of(matches: &ArgMatches) -> ColorArg {
    let command = matches.subcommand().map(|(_, command)| command);
    let color = command.and_then(|command| command.try_get_one::<ColorArg>("color").ok().flatten());
    color.copied().unwrap_or(ColorArg::Auto)
}
