//! What fuzz targets reach of the command line, without a process or a socket. Not for other programs: it changes with what
//! it calls.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::agent::listen;
use super::pages::{self, site::Site};
use super::shared::context::RunContext;

pub use listen::Received;

/// The pages of a dump, as a worker of `serve` makes them.
#[derive(Debug)]
pub struct Pages {
    cx: RunContext,
    site: Site,
}

/// What a request gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status of HTTP.
    pub status: u16,
    /// The media type of the body.
    pub content_type: &'static str,
    /// The page, or its JSON.
    pub body: Vec<u8>,
    /// Where to go instead.
    pub location: Option<String>,
}

impl Pages {
    /// The pages of a dump whose index is below `index_dir`, compared with another dump if there is one.
    pub fn new(dump: &Path, baseline: Option<PathBuf>, index_dir: &Path) -> Self {
        let mut option = OsString::from("--index-dir=");
        option.push(index_dir);
        Self {
            cx: RunContext::shell().keeping_dumps(None, false),
            site: Site::new(vec![dump.to_owned()], baseline, vec![option]),
        }
    }

    /// Answers a request for this path and query.
    pub fn reply(&self, target: &str, wants_json: bool) -> Reply {
        let pages::Reply { status, content_type, body, location } =
            pages::reply(&self.cx, &self.site, target, wants_json);
        let body = std::sync::Arc::unwrap_or_clone(body);
        Reply { status, content_type, body, location }
    }
}

/// Whether text that is not escaped contains a character that a terminal or a browser would not show as it is.
pub fn is_harmful(text: &str) -> bool {
    text.chars().any(|c| !matches!(c, '\n' | '\t') && hprof_report::escape::is_harmful(c))
}

/// What `listen` makes of the bytes that an agent sends, in blocks as they arrive: files in `dir`.
///
/// # Errors
/// Why there is no recording.
pub fn receive(dir: &Path, blocks: Vec<Vec<u8>>, max_bytes: u64) -> Result<Received, String> {
    listen::receive(dir, blocks, max_bytes)
}

/// Whether a line that is typed to `listen` is a command for agents.
///
/// # Errors
/// What is wrong with it.
pub fn is_command(line: &str) -> Result<bool, String> {
    listen::is_command(line)
}
