//! The source of a result about an index: the dump is named but not opened.

use std::path::Path;

use crate::cli::shared::session::AnswerSource;
use hprof_report::json::DumpHeader;

/// A dump that is not opened, only its path is known.
pub(super) struct File<'a>(pub(super) &'a Path);

impl AnswerSource for File<'_> {
    fn header(&self) -> DumpHeader<'_> {
        let file_bytes = std::fs::metadata(self.0).ok().map(|metadata| metadata.len());
        DumpHeader { path: self.0.to_string_lossy(), file_bytes, ..DumpHeader::default() }
    }

    fn is_damaged(&self) -> bool {
        false
    }
}
