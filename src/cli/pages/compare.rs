//! Comparison with the baseline.

use maud::html;

use super::ask::Ask;
use super::frame::{self, Page};
use super::request::Request;

/// Kinds of comparisons, as in `diff --group-by`.
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

/// Returns the kind of comparison.
fn by<'r>(request: &'r Request<'_>) -> &'r str {
    request.one("group-by").unwrap_or("place")
}

/// Returns the question; `None` if there is no baseline.
pub(crate) fn ask<'a>(request: &Request<'a>) -> Option<Ask<'a>> {
    let by = by(request);
    let mut ask = request.ask("diff").since(request.site.baseline.as_deref()?).option("group-by", by);
    for name in ["sort", "min-change"] {
        if let Some(value) = request.one(name) {
            ask = ask.option(name, value);
        }
    }
    for name in ["retained", "live"] {
        if request.one(name).is_some() {
            ask = ask.flag(name);
        }
    }
    ask = ask.option("top", request.top(50).to_string());
    if let Some(pattern) = request.one("pattern") {
        ask = ask.argument(pattern);
    }
    Some(ask)
}

pub(crate) fn page(request: &Request<'_>) -> Option<Page> {
    let (links, ask) = (request.links(), ask(request)?);
    let baseline = request.site.baseline.as_deref()?.to_string_lossy().into_owned();
    let by = by(request);
    let body = html! {
        p.dim { "Compared with " (hprof_report::escape::text(&baseline)) "." }
        form.filter action=(request.href("diff")) {
            label { span { "Group by" } select name="group-by" { @for key in BY { option selected[by == *key] { (key) } } } }
            label { span { "Class pattern" } input name="pattern" value=[request.one("pattern")] spellcheck="false"; }
            label.check { input type="checkbox" name="retained" value="1" checked[request.one("retained").is_some()]; span { "Retained" } }
            label.check { input type="checkbox" name="live" value="1" checked[request.one("live").is_some()]; span { "Live" } }
            label { span { "Top" } input.short name="top" value=[request.one("top")]; }
            button { "Compare" }
        }
        (frame::answered(ask.grids(), &links, "What changed"))
        (frame::whole(&ask, request))
    };
    Some(Page::new("diff", "What grew", body))
}
