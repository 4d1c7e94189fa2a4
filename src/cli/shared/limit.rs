//! `--top`: the number of rows shown, and its default.

use hprof_report::Format;

/// Default number of rows in a table, for most commands.
pub(crate) const DEFAULT_TOP: usize = 30;
/// Default number of rows in a table whose rows are objects.
pub(crate) const DEFAULT_TOP_OBJECTS: usize = 20;

/// Number of rows to show; `DEFAULT` in a table if not given.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Top<const DEFAULT: usize = DEFAULT_TOP> {
    /// Show only the first N rows; 0 for all
    #[arg(
        long,
        value_name = "N",
        help_heading = "Output",
        help = format!("Show only the first N rows; 0 for all [default: {DEFAULT} in a table, all in JSON and CSV]")
    )]
    top: Option<usize>,
}

impl<const DEFAULT: usize> Top<DEFAULT> {
    /// Returns the number of rows that a format shows; `None` for all.
    pub(crate) fn rows(self, format: Format) -> Option<usize> {
        limit(self.top, format, DEFAULT)
    }

    /// Returns whether the user gave a limit.
    pub(crate) fn is_given(self) -> bool {
        self.top.is_some()
    }
}

/// Returns the limit for a format: `given`, or else `default` in a table; `None` for all.
pub(crate) fn limit(given: Option<usize>, format: Format, default: usize) -> Option<usize> {
    match (given, format) {
        (Some(0), _) => None,
        (Some(given), _) => Some(given),
        // A table that scrolls out of the terminal helps nobody; programs want all rows.
        (None, Format::Table) => Some(default),
        (None, Format::Json | Format::Csv) => None,
    }
}
