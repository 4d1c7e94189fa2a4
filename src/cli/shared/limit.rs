//! `--top`: how many rows an answer shows, and its default.

use hprof_report::Format;

/// Rows of a table when nothing is said, for most commands.
pub(crate) const DEFAULT_TOP: usize = 30;
/// The same where a row is one object.
pub(crate) const DEFAULT_TOP_OBJECTS: usize = 20;

/// How many rows are shown; `DEFAULT` in a table when nothing is said.
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
    /// How many rows a format shows; `None` for all.
    pub(crate) fn rows(self, format: Format) -> Option<usize> {
        limit(self.top, format, DEFAULT)
    }

    /// Returns whether the user gave a number.
    pub(crate) fn is_given(self) -> bool {
        self.top.is_some()
    }
}

/// How much a format shows, if `given` says nothing `default` in a table; `None` for all.
pub(crate) fn limit(given: Option<usize>, format: Format, default: usize) -> Option<usize> {
    match (given, format) {
        (Some(0), _) => None,
        (Some(given), _) => Some(given),
        // A table that scrolls out of the terminal helps nobody; programs want everything.
        (None, Format::Table) => Some(default),
        (None, Format::Json | Format::Csv) => None,
    }
}
