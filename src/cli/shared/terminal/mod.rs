//! The terminal: how wide it is, and how tables and messages are shown on it.

pub(crate) mod progress_bar;

use std::io::{self, IsTerminal};

use hprof_report::table::Style;

use crate::cli::shared::color::ColorArg;
use crate::cli::shared::context::RunContext;

impl RunContext {
    /// How tables are shown where the answer goes, with or without colour.
    pub(crate) fn style(&self, color: ColorArg) -> Style {
        if self.is_taking() {
            return Style { all_rows: ALL_ROWS, all_columns: ALL_COLUMNS, ..Style::default() };
        }
        style_on(color, io::stdout().is_terminal().then(comfy_table::Table::new))
    }

    /// How messages are shown on this stderr.
    pub(super) fn stderr_style(&self) -> Style {
        let terminal = io::stderr().is_terminal().then(|| {
            let mut table = comfy_table::Table::new();
            table.use_stderr();
            table
        });
        // `always` is about the answer: what is on stderr often ends in a log.
        let color = if self.color == ColorArg::Always { ColorArg::Auto } else { self.color };
        style_on(color, terminal)
    }
}

/// What shows all rows of a table, and all its columns.
const ALL_ROWS: &str = "--top 0";
const ALL_COLUMNS: &str = "--format csv";

/// How things are shown; a table knows the size of the terminal, if it is one.
///
/// Tables are written by `hprof_report`, which needs to know how wide the terminal is. comfy-table is asked for that, and for
/// nothing else: it stays a dependency by decision, and knows stdout and stderr apart.
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
