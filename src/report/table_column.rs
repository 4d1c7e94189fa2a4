//! Columns of a table, with the appearance and links of their cells.

use std::borrow::Cow;

use hprof_query::dictionary::ColumnKey;
use hprof_values::ObjectId;

use super::tree::Branch;

/// Target of the link of a cell or line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellTarget {
    /// An object.
    Object(ObjectId),
    /// A class: its name, and the object ID of its class object if the row contains it.
    Class(String, Option<ObjectId>),
    /// A page: its path below the dump's path, with encoded parts.
    Page(String),
    /// A command: its words without the dump. Only screens show it, not pages.
    Command(Vec<String>),
}

impl CellTarget {
    /// Returns the length of the target's text in bytes.
    pub(super) fn text_length(&self) -> usize {
        match self {
            Self::Object(_) => 0,
            Self::Class(text, _) | Self::Page(text) => text.len(),
            Self::Command(words) => words.iter().map(String::len).sum(),
        }
    }
}

/// Alignment of a column's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Left-aligned, for texts.
    Left,
    /// Right-aligned, for numbers.
    Right,
}

/// Treatment of a table column that is too wide for the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fit {
    /// Never shortened, for numbers and IDs.
    #[default]
    Whole,
    /// Left out before anything is shortened, for dispensable columns. The lowest priority is left out first.
    Secondary {
        /// Priority, from 0.
        priority: u8,
    },
    /// Shortened as described in [`crate::fit::names`]. Columns with a lower priority are shortened first.
    Shorten {
        /// Priority, from 0.
        priority: u8,
    },
    /// Truncated at the end, for texts. Priorities have the same meaning as in [`Fit::Shorten`].
    Cut {
        /// Priority, from 0.
        priority: u8,
    },
    /// Shortened in the middle, for file names, whose ends are both significant. Priorities have the same meaning as in
    /// [`Fit::Shorten`].
    Middle {
        /// Priority, from 0.
        priority: u8,
    },
    /// Wrapped, for sentences and texts to copy.
    Wrap,
}

pub(super) type MakeCell<'c, R, T> = Box<dyn for<'r> Fn(&'r R) -> T + Send + Sync + 'c>;
pub(super) type GetBranch<'c, R> = Box<dyn for<'r> Fn(&'r R) -> &'r Branch + Send + Sync + 'c>;

/// Column of a table: key, title, and appearance of its cells.
pub struct TableColumn<'c, R> {
    /// Key of the column in JSON; `None` if only tables have it.
    pub(super) key: Option<ColumnKey>,
    pub(super) title: Cow<'static, str>,
    pub(super) align: Option<Align>,
    pub(super) fit: Fit,
    /// Function for the text that is shown instead of the value.
    pub(super) cell: Option<MakeCell<'c, R, String>>,
    /// Function for the position of a row in the tree with whose lines the cell begins.
    pub(super) branch: Option<GetBranch<'c, R>>,
    pub(super) target: Option<MakeCell<'c, R, Option<CellTarget>>>,
    /// `true` if the cells are pictures drawn with characters.
    pub(super) is_drawn: bool,
}

impl<'c, R> TableColumn<'c, R> {
    /// Creates a column of a table that shows the values of a key.
    pub fn new(key: impl Into<ColumnKey>, title: impl Into<Cow<'static, str>>) -> Self {
        Self::with_key(Some(key.into()), title.into())
    }

    /// Creates a column of values derived from other columns, such as a share.
    pub fn table_only(
        title: impl Into<Cow<'static, str>>,
        align: Align,
        cell: impl Fn(&R) -> String + Send + Sync + 'c,
    ) -> Self {
        Self { align: Some(align), ..Self::with_key(None, title.into()) }.cell(cell)
    }

    fn with_key(key: Option<ColumnKey>, title: Cow<'static, str>) -> Self {
        let (fit, is_drawn) = (Fit::default(), false);
        Self { key, title, align: None, fit, cell: None, branch: None, target: None, is_drawn }
    }

    /// Sets the alignment of the cells.
    pub fn align(self, align: Align) -> Self {
        Self { align: Some(align), ..self }
    }

    /// Sets how cells that are too wide are fitted.
    pub fn fit(self, fit: Fit) -> Self {
        Self { fit, ..self }
    }

    /// Sets the function for the text that is shown instead of the value.
    pub fn cell(self, cell: impl Fn(&R) -> String + Send + Sync + 'c) -> Self {
        Self { cell: Some(Box::new(cell)), ..self }
    }

    /// Begins cells with the lines of a tree.
    pub fn tree(self, branch: impl for<'r> Fn(&'r R) -> &'r Branch + Send + Sync + 'c) -> Self {
        Self { branch: Some(Box::new(branch)), ..self }
    }

    /// Sets the function for the link target of a cell, if type and key of the column do not determine it.
    pub fn target(self, target: impl Fn(&R) -> Option<CellTarget> + Send + Sync + 'c) -> Self {
        Self { target: Some(Box::new(target)), ..self }
    }

    /// Marks a column of bars drawn with characters, which pages replace by their own bars.
    pub fn drawn(self) -> Self {
        Self { is_drawn: true, ..self }
    }
}
