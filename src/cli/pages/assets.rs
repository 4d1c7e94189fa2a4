//! Assets of pages: no other file is served.

/// Style of all pages and of reports.
pub(crate) const STYLE: &str = include_str!("assets/style.css");
/// Additional style of reports.
pub(crate) const REPORT_STYLE: &str = include_str!("assets/report.css");
/// Script that adds to pages where JavaScript is available.
#[cfg(feature = "serve")]
pub(crate) const SCRIPT: &str = include_str!("assets/script.js");
#[cfg(feature = "serve")]
const ICON: &str = include_str!("assets/icon.svg");

/// Returns a file by its path: content and type.
#[cfg(feature = "serve")]
pub(crate) fn file(path: &str) -> Option<(&'static str, &'static str)> {
    match path {
        "/assets/style.css" => Some((STYLE, "text/css; charset=utf-8")),
        "/assets/script.js" => Some((SCRIPT, "text/javascript; charset=utf-8")),
        "/assets/icon.svg" | "/favicon.ico" => Some((ICON, "image/svg+xml")),
        _ => None,
    }
}
