//! The terminal: its width, and whether to use colors.

pub(crate) mod progress_bar;

use std::io::{self, IsTerminal};
use std::sync::OnceLock;

use clap::{ArgMatches, ValueEnum};

use hprof_report::table::Style;

use crate::cli::shared::desk;

/// When to use colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorArg {
    /// If stdout is a terminal and NO_COLOR is not set
    Auto,
    /// Always, even into a pipe
    Always,
    /// Never
    Never,
}

/// Returns the style of tables on this stdout.
pub(crate) fn style_of(color: ColorArg) -> Style {
    if desk::form().is_some() {
        return Style { all_rows: ALL_ROWS, all_columns: ALL_COLUMNS, ..Style::default() };
    }
    style_on(color, io::stdout().is_terminal().then(comfy_table::Table::new))
}

/// Returns the style of messages on this stderr.
pub(crate) fn stderr_style() -> Style {
    let terminal = io::stderr().is_terminal().then(|| {
        let mut table = comfy_table::Table::new();
        table.use_stderr();
        table
    });
    let color = COLOR.get().copied().unwrap_or(ColorArg::Auto);
    // `always` applies to the answer: stderr often ends up in a log.
    style_on(if color == ColorArg::Always { ColorArg::Auto } else { color }, terminal)
}

/// Value of `--color`, for messages.
static COLOR: OnceLock<ColorArg> = OnceLock::new();

/// Records the value of `--color`, if the command has it.
pub(crate) fn choose_color(matches: &ArgMatches) {
    if let Some((_, command)) = matches.subcommand()
        && let Ok(Some(color)) = command.try_get_one::<ColorArg>("color")
    {
        let _ = COLOR.set(*color);
    }
}

/// Options that show all rows and columns of a table.
const ALL_ROWS: &str = "--top 0";
const ALL_COLUMNS: &str = "--format csv";

/// Returns the style of output; a table knows the size of the terminal, if there is one.
///
/// Tables are written by `hprof_report`, which needs the width of the terminal. comfy-table is used only to query it:
/// it stays a dependency by decision, and distinguishes stdout and stderr.
fn style_on(color: ColorArg, terminal: Option<comfy_table::Table>) -> Style {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    let color = match color {
        ColorArg::Always => true,
        ColorArg::Never => false,
        ColorArg::Auto => terminal.is_some() && !no_color && !is_dumb,
    };
    Style {
        width: terminal.and_then(|table| table.width()).filter(|width| *width > 0),
        color,
        all_rows: ALL_ROWS,
        all_columns: ALL_COLUMNS,
    }
}
