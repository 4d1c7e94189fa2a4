//! A file that is named but not opened: the answer is about its index.

use std::path::Path;

use crate::cli::shared::session::AnswerSource;
use hprof_report::json::Dump;

/// A dump by its path.
pub(super) struct File<'a>(pub(super) &'a Path);

impl AnswerSource for File<'_> {
    fn dump(&self) -> Dump<'_> {
        let file_bytes = std::fs::metadata(self.0).ok().map(|metadata| metadata.len());
        Dump { path: self.0.to_string_lossy(), file_bytes, ..Dump::default() }
    }

    fn is_damaged(&self) -> bool {
        false
    }
}
