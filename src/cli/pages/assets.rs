//! What pages need beside themselves: no other file is served.

/// The style of all pages, and of reports.
pub(crate) const STYLE: &str = include_str!("assets/style.css");
/// What a report has beside it.
pub(crate) const REPORT_STYLE: &str = include_str!("assets/report.css");
/// What pages can do where there is JavaScript.
pub(crate) const SCRIPT: &str = include_str!("assets/script.js");
const ICON: &str = include_str!("assets/icon.svg");

/// A file by its path: content and type.
pub(crate) fn file(path: &str) -> Option<(&'static str, &'static str)> {
    match path {
        "/assets/style.css" => Some((STYLE, "text/css; charset=utf-8")),
        "/assets/script.js" => Some((SCRIPT, "text/javascript; charset=utf-8")),
        "/assets/icon.svg" | "/favicon.ico" => Some((ICON, "image/svg+xml")),
        _ => None,
    }
}
