//! The search page: finds an object by ID, classes by name, Strings by text, threads by name.

use maud::html;

use super::ask::CommandQuery;
use super::frame::{self, Page};
use super::request::Request;

/// Maximum number of results of each kind.
const TOP: &str = "30";

/// Returns the search text, if any.
fn search_text<'a>(request: &'a Request<'_>) -> Option<&'a str> {
    request.value("q").map(str::trim).filter(|text| !text.is_empty())
}

/// Returns the URL to redirect to if the search text is an object ID.
pub(crate) fn at_once(request: &Request<'_>) -> Option<String> {
    let id = search_text(request)?.strip_prefix("0x")?;
    let id = u64::from_str_radix(id, 16).ok()?;
    Some(request.href(&format!("object/{id:#x}")))
}

/// Returns the query for matching classes, whose output is the page's JSON.
pub(crate) fn ask<'a>(request: &Request<'a>) -> Option<CommandQuery<'a>> {
    let text = search_text(request)?;
    let pattern = if text.contains('*') { text.to_owned() } else { format!("**{text}**") };
    Some(request.ask("classes").option("top", TOP).argument(pattern))
}

pub(crate) fn page(request: &Request<'_>) -> Page {
    let links = request.links();
    let Some((text, classes)) = search_text(request).zip(ask(request)) else {
        let body = html! { p { "Search for a class, the ID of an object (0x…), the text of Strings, or a thread." } };
        return Page::new("", "Search", body);
    };
    // The literal text, not a pattern.
    let pattern = regex::escape(text);
    let strings =
        request.ask("strings").option("pattern", pattern).option("top", TOP).option("max-chars", "200");
    let threads = request.ask("threads").option("name", text).option("top", TOP);
    let body = html! {
        (frame::section("Classes", &classes, &links))
        (frame::section("Strings", &strings, &links))
        (frame::section("Threads", &threads, &links))
    };
    Page::new("", format!("Search: {text}"), body)
}
