//! Columns of a table, and the appearance of their cells.

use std::borrow::Cow;

use hprof_query::dictionary::ColumnKey;
use hprof_values::ObjectId;

use super::tree::Branch;

/// Link target of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellTarget {
    /// An object.
    Object(ObjectId),
    /// A class: name, and class object if the row contains it.
    Class(String, Option<ObjectId>),
    /// A page: path below that of the dump, with encoded parts.
    Page(String),
    /// A command: its words without the dump. Pages do not show it.
    Command(Vec<String>),
}

impl CellTarget {
    /// Returns the length of its text in bytes.
    pub(super) fn text_length(&self) -> usize {
        match self {
            Self::Object(_) => 0,
            Self::Class(text, _) | Self::Page(text) => text.len(),
            Self::Command(words) => words.iter().map(String::len).sum(),
        }
    }
}

/// Alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Left, for texts.
    Left,
    /// Right, for numbers.
    Right,
}

/// Treatment of a table's column that is too wide for the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fit {
    /// Unchanged: numbers, IDs.
    #[default]
    Whole,
    /// Left out before anything is shortened: for dispensable columns. The lowest priority goes first.
    Secondary {
        /// Priority, from 0.
        priority: u8,
    },
    /// Shortened as names. Columns of a lower priority are shortened first.
    Shorten {
        /// Priority, from 0.
        priority: u8,
    },
    /// Truncated at the end: texts. Priorities are those of [`Fit::Shorten`].
    Cut {
        /// Priority, from 0.
        priority: u8,
    },
    /// Shortened in the middle: names of files, whose ends are both significant. Priorities are those of
    /// [`Fit::Shorten`].
    Middle {
        /// Priority, from 0.
        priority: u8,
    },
    /// Wrapped: sentences, and texts to copy.
    Wrap,
}

pub(super) type MakeCell<'c, R, T> = Box<dyn for<'r> Fn(&'r R) -> T + Send + Sync + 'c>;
pub(super) type GetBranch<'c, R> = Box<dyn for<'r> Fn(&'r R) -> &'r Branch + Send + Sync + 'c>;

/// A column of a table: key, title, and appearance of its cells.
pub struct TableColumn<'c, R> {
    /// Key of the column in JSON; `None` if only tables have it.
    pub(super) key: Option<ColumnKey>,
    pub(super) title: Cow<'static, str>,
    pub(super) align: Option<Align>,
    pub(super) fit: Fit,
    /// Returns the text that is shown instead of the value.
    pub(super) cell: Option<MakeCell<'c, R, String>>,
    /// Returns the position in the tree that the cell begins with.
    pub(super) branch: Option<GetBranch<'c, R>>,
    pub(super) target: Option<MakeCell<'c, R, Option<CellTarget>>>,
    /// `true` if its cells are drawn with characters.
    pub(super) is_drawn: bool,
}

impl<'c, R> TableColumn<'c, R> {
    /// Creates the column of a key.
    pub fn new(key: impl Into<ColumnKey>, title: impl Into<Cow<'static, str>>) -> Self {
        Self::with_key(Some(key.into()), title.into())
    }

    /// Creates a column of values derived from others, such as a share.
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

    /// Sets the alignment.
    pub fn align(self, align: Align) -> Self {
        Self { align: Some(align), ..self }
    }

    /// Sets the treatment of cells that are too wide.
    pub fn fit(self, fit: Fit) -> Self {
        Self { fit, ..self }
    }

    /// Sets the text that is shown instead of the value.
    pub fn cell(self, cell: impl Fn(&R) -> String + Send + Sync + 'c) -> Self {
        Self { cell: Some(Box::new(cell)), ..self }
    }

    /// Begins cells with the lines of a tree.
    pub fn tree(self, branch: impl for<'r> Fn(&'r R) -> &'r Branch + Send + Sync + 'c) -> Self {
        Self { branch: Some(Box::new(branch)), ..self }
    }

    /// Sets the link target of a cell on a page, if type and key do not determine it.
    pub fn target(self, target: impl Fn(&R) -> Option<CellTarget> + Send + Sync + 'c) -> Self {
        Self { target: Some(Box::new(target)), ..self }
    }

    /// Marks bars drawn with characters, which pages replace by their own.
    pub fn drawn(self) -> Self {
        Self { is_drawn: true, ..self }
    }
}
