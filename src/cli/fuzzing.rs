//! Entry points for fuzz targets into the command line, without a process or a socket. Not for other programs: the
//! interface follows the code that it calls.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::agent::listen;
use super::pages::{self, site::Site};
use super::shared::context::RunContext;

pub use listen::ReceivedRecording;

/// The pages of a dump, built as by a worker of `serve`.
#[derive(Debug)]
pub struct DumpPages {
    cx: RunContext,
    site: Site,
}

/// Response to a request for a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageReply {
    /// HTTP status code.
    pub status: u16,
    /// Media type of the body.
    pub content_type: &'static str,
    /// The page as HTML or JSON.
    pub body: Vec<u8>,
    /// Redirect target.
    pub location: Option<String>,
}

impl DumpPages {
    /// Opens the pages of a dump whose index is below `index_dir`, compared with another dump if one is given. Closes
    /// all dumps that were open on this thread.
    pub fn new(dump: &Path, baseline: Option<PathBuf>, index_dir: &Path) -> Self {
        let mut option = OsString::from("--index-dir=");
        option.push(index_dir);
        Self {
            cx: RunContext::shell().keeping_dumps(None, false),
            site: Site::new(vec![dump.to_owned()], baseline, vec![option]),
        }
    }

    /// Returns the reply to a request for this path and query.
    pub fn reply(&self, target: &str, wants_json: bool) -> PageReply {
        let pages::Reply { status, content_type, body, location } =
            pages::reply(&self.cx, &self.site, target, wants_json);
        let body = std::sync::Arc::unwrap_or_clone(body);
        PageReply { status, content_type, body, location }
    }
}

/// Returns whether unescaped text contains a character that a terminal or browser would not show literally.
pub fn is_harmful(text: &str) -> bool {
    text.chars().any(|c| !matches!(c, '\n' | '\t') && hprof_report::escape::is_harmful(c))
}

/// Receives the bytes of an agent as `listen` does, in blocks as they arrive, into files in `dir`.
///
/// # Errors
///
/// The reason why nothing was recorded.
pub fn receive(dir: &Path, blocks: Vec<Vec<u8>>, max_bytes: u64) -> Result<ReceivedRecording, String> {
    listen::receive(dir, blocks, max_bytes)
}

/// Returns whether a line typed into `listen` is a command for agents.
///
/// # Errors
///
/// The reason why the command is not valid.
pub fn is_command(line: &str) -> Result<bool, String> {
    listen::is_command(line)
}
