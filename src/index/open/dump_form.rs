//! The form of a file: a dump, a compressed one, or a text report.

use hprof_input::file::{Compression, TextFile};

/// Form of a file.
#[derive(Debug)]
pub(crate) enum DumpForm {
    /// A dump.
    Plain,
    /// A compressed dump, which has to be unpacked.
    Compressed(Compression),
    /// A text report, of which a dump has to be made.
    Text(TextFile),
}

impl DumpForm {
    /// Returns `true` if the file itself is the dump.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain)
    }

    /// Returns the compression, if the file is compressed.
    pub(crate) fn compression(&self) -> Option<Compression> {
        match self {
            Self::Plain => None,
            Self::Compressed(compression) => Some(*compression),
            Self::Text(text) => text.compression(),
        }
    }
}
