//! The terminal: its width, and the use of colors.

pub(crate) mod progress_bar;

use std::io::{self, IsTerminal};

use hprof_report::table::Style;

use crate::cli::shared::color::ColorArg;
use crate::cli::shared::context::RunContext;

/// Methods that return the styles of tables on stdout and of messages on stderr.
impl RunContext {
    /// Returns the style of tables on stdout.
    pub(crate) fn style(&self, color: ColorArg) -> Style {
        if let Some(taken) = &self.capture {
            return Style {
                width: taken.screen.as_ref().map(|(width, _)| *width),
                color: false,
                all_rows: ALL_ROWS,
                all_columns: ALL_COLUMNS,
            };
        }
        style_on(color, io::stdout().is_terminal().then(comfy_table::Table::new))
    }

    /// Returns the style of messages. `--color always` applies only to stdout.
    pub(super) fn stderr_style(&self) -> Style {
        let terminal = io::stderr().is_terminal().then(|| {
            let mut table = comfy_table::Table::new();
            table.use_stderr();
            table
        });
        let color = if self.color == ColorArg::Always { ColorArg::Auto } else { self.color };
        style_on(color, terminal)
    }
}

/// Options that show all rows and columns of a table.
const ALL_ROWS: &str = "--top 0";
const ALL_COLUMNS: &str = "--format csv";

/// Returns the style of output; it contains the width of the terminal, if there is one.
///
/// Tables are written by `hprof_report`, which needs the width of the terminal. comfy-table is used only to query the width,
/// separately for stdout and stderr; drawing tables with it would take too long (decision 20).
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
