//! A file that is named and not opened: its index is the answer.

use std::path::Path;

use crate::cli::shared::session::Source;
use hprof_report::json::DumpHeader;

/// A dump by its path.
pub(super) struct File<'a>(pub(super) &'a Path);

impl Source for File<'_> {
    fn dump(&self) -> DumpHeader<'_> {
        let file_bytes = std::fs::metadata(self.0).ok().map(|metadata| metadata.len());
        DumpHeader { path: self.0.to_string_lossy(), file_bytes, ..DumpHeader::default() }
    }

    fn is_damaged(&self) -> bool {
        false
    }
}
