//! Static files of pages: no other file is served.

/// Style of all pages and of reports.
pub(crate) const STYLE: &str = include_str!("assets/style.css");
/// Additional style of reports.
pub(crate) const REPORT_STYLE: &str = include_str!("assets/report.css");
/// Script that enhances pages if JavaScript is available.
#[cfg(feature = "serve")]
pub(crate) const SCRIPT: &str = include_str!("assets/script.js");
#[cfg(feature = "serve")]
const ICON: &str = include_str!("assets/icon.svg");

/// Returns the content and the media type of the file at a path.
#[cfg(feature = "serve")]
pub(crate) fn file(path: &str) -> Option<(&'static str, &'static str)> {
    match path {
        "/assets/style.css" => Some((STYLE, "text/css; charset=utf-8")),
        "/assets/script.js" => Some((SCRIPT, "text/javascript; charset=utf-8")),
        "/assets/icon.svg" | "/favicon.ico" => Some((ICON, "image/svg+xml")),
        _ => None,
    }
}
