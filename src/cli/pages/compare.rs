//! The page that compares the dump with the baseline.

use maud::html;

use super::ask::CommandQuery;
use super::frame::{self, Page};
use super::request::Request;

/// Values of `diff --group-by` that the page offers.
const BY: &[&str] = &[
    "place",
    "class",
    "package",
    "loader",
    "superclass",
    "roots",
    "threads",
    "properties",
    "strings",
    "waste",
];

/// Returns the requested value of `--group-by`.
fn group_by<'r>(request: &'r Request<'_>) -> &'r str {
    request.value("group-by").unwrap_or("place")
}

/// Returns the query that compares the dumps; `None` if there is no baseline.
pub(crate) fn ask<'a>(request: &Request<'a>) -> Option<CommandQuery<'a>> {
    let by = group_by(request);
    let mut ask = request.ask("diff").since(request.site.baseline.as_deref()?).option("group-by", by);
    for name in ["sort", "min-change"] {
        if let Some(value) = request.value(name) {
            ask = ask.option(name, value);
        }
    }
    for name in ["retained", "live"] {
        if request.value(name).is_some() {
            ask = ask.flag(name);
        }
    }
    ask = ask.option("top", request.top(50).to_string());
    if let Some(pattern) = request.value("pattern") {
        ask = ask.argument(pattern);
    }
    Some(ask)
}

pub(crate) fn page(request: &Request<'_>) -> Option<Page> {
    let (links, ask) = (request.links(), ask(request)?);
    let baseline = request.site.baseline.as_deref()?.to_string_lossy().into_owned();
    let by = group_by(request);
    let body = html! {
        p.dim { "Compared with " (hprof_report::escape::text(&baseline)) "." }
        form.filter action=(request.href("diff")) {
            label { span { "Group by" } select name="group-by" { @for key in BY { option selected[by == *key] { (key) } } } }
            label { span { "Class pattern" } input name="pattern" value=[request.value("pattern")] spellcheck="false"; }
            label.check { input type="checkbox" name="retained" value="1" checked[request.value("retained").is_some()]; span { "Retained" } }
            label.check { input type="checkbox" name="live" value="1" checked[request.value("live").is_some()]; span { "Live" } }
            label { span { "Top" } input.short name="top" value=[request.value("top")]; }
            button { "Compare" }
        }
        (frame::answer(ask.grids(), &links, "What changed"))
        (frame::page_command(&ask, request))
    };
    Some(Page::new("diff", "What grew", body))
}
