//! Pages: the HTML that a server shows in a browser and that reports consist of.
//!
//! Every page is HTML that works without JavaScript; where JavaScript is available, a script enhances it. Pages are
//! built from the output of commands ([`ask`]), in a common layout ([`frame`]); most show the output of one command with a
//! form ([`listing`]). The same path with `.json` is the JSON document of the command. docs/pages.md lists the pages.

pub(crate) mod ask;
pub(crate) mod assets;
mod compare;
pub(crate) mod console;
pub(crate) mod document;
pub(crate) mod flame;
pub(crate) mod frame;
mod listing;
pub(crate) mod listings;
mod object;
pub(crate) mod object_links;
mod of_class;
pub(crate) mod overview;
pub(crate) mod picture;
pub(crate) mod request;
mod search;
pub(crate) mod site;
pub(crate) mod suspects;
pub(crate) mod tree;

use std::sync::Arc;

use maud::{Markup, html};
#[cfg(feature = "serve")]
use percent_encoding::percent_decode_str;

use crate::cli::shared::context::RunContext;
#[cfg(feature = "serve")]
use hprof_report::escape;

use ask::{CommandQuery, Failure};
use frame::Page;
use listings::Listing;
use request::{MAX_TARGET, ReplyForm, Request};
use site::{AvailableData, Site};

/// Response to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    /// Body; shared, as many clients may read it slowly.
    pub(crate) body: Arc<Vec<u8>>,
    /// Redirect target.
    pub(crate) location: Option<String>,
}

pub(crate) const HTML: &str = "text/html; charset=utf-8";
pub(crate) const JSON: &str = "application/json";
pub(crate) const CSV: &str = "text/csv; charset=utf-8; header=present";

impl Reply {
    fn html(status: u16, markup: Markup) -> Self {
        Self { status, content_type: HTML, body: Arc::new(markup.into_string().into_bytes()), location: None }
    }

    fn to(location: String) -> Self {
        Self { status: 303, content_type: HTML, body: Arc::default(), location: Some(location) }
    }

    /// Returns an error as JSON.
    pub(crate) fn json_error(status: u16, failure: &Failure) -> Self {
        let document = serde_json::json!({ "error": failure.text, "hint": failure.hint });
        Self {
            status,
            content_type: JSON,
            body: Arc::new(format!("{document}\n").into_bytes()),
            location: None,
        }
    }
}

/// Returns whether answering a request may take longer than reading a few objects. Such requests have separate turns,
/// so that other pages do not wait for them.
#[cfg(feature = "serve")]
pub(crate) fn is_long(target: &str) -> bool {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let page = percent_decode_str(path.split('/').nth(2).unwrap_or_default()).decode_utf8_lossy();
    match ReplyForm::of_path(&page).0 {
        "leaks" | "overview" | "" | "waste" | "strings" | "diff" | "oql" | "sql" | "search"
        | "finalizers" | "loaders" | "memory" => true,
        // Counts in the summary are available at once.
        "histo" => {
            query.contains("retained")
                || query.contains("live")
                || query.contains("unreachable")
                || query.contains("heap=")
        }
        "instances" => query.contains("where=") || query.contains("sort="),
        "refs" => !query.contains("of=0x"),
        _ => false,
    }
}

/// Responds to a request by running commands in this context.
pub(crate) fn reply(cx: &RunContext, site: &Site, target: &str, wants_json: bool) -> Reply {
    if target.len() > MAX_TARGET {
        let failure = Failure::new("the address is too long");
        return Reply::json_error(414, &failure);
    }
    let Some(mut request) = Request::read(cx, site, target) else { return nothing(site, 1, wants_json) };
    if wants_json && request.form == ReplyForm::Page {
        request.form = ReplyForm::Json;
    }
    if request.page().is_empty() && request.path.len() <= 1 {
        let has = has(&request);
        return Reply::to(request.href(if has.heap { "overview" } else { "recording" }));
    }
    if request.form != ReplyForm::Page {
        return document(&request, wants_json);
    }
    if request.page() == "search"
        && let Some(path) = search::at_once(&request)
    {
        return Reply::to(path);
    }
    let Some(page) = page(&request) else { return nothing(site, request.number, false) };
    let document = frame::document(site, request.number, has(&request), &page);
    Reply::html(page.status, document)
}

/// Returns the JSON or CSV of a page. Errors are JSON if `wants_json` is set.
fn document(request: &Request<'_>, wants_json: bool) -> Reply {
    let (site, is_csv) = (request.site, request.form == ReplyForm::Csv);
    let tells_json = wants_json || !is_csv;
    let Some(ask) = question(request) else { return nothing(site, request.number, tells_json) };
    let (format, content_type) = if is_csv { ("csv", CSV) } else { ("json", JSON) };
    match ask.document(format) {
        Ok(body) => Reply { status: 200, content_type, body: body.into(), location: None },
        Err(failure) if tells_json => Reply::json_error(400, &failure),
        Err(failure) => {
            let page = Page { status: 400, ..Page::for_failure("", "No answer", &failure, &request.links()) };
            Reply::html(page.status, frame::document(site, request.number, has(request), &page))
        }
    }
}

/// Returns the reply for a page that does not exist.
pub(crate) fn nothing(site: &Site, number: usize, wants_json: bool) -> Reply {
    let failure = Failure::new("no such page");
    if wants_json {
        return Reply::json_error(404, &failure);
    }
    let body = html! { p { "No such page. " a href={ "/" (number) "/" } { "Overview" } } };
    let page = Page { status: 404, ..Page::new("", "Not found", body) };
    Reply::html(404, frame::document(site, number, AvailableData::UNKNOWN, &page))
}

/// Returns the query whose output is the JSON or CSV of a page.
fn question<'a>(request: &Request<'a>) -> Option<CommandQuery<'a>> {
    let is_top_asked = request.value("top").is_some();
    let ask = match request.page() {
        "overview" | "leaks" => request.ask(if request.page() == "leaks" { "leaks" } else { "overview" }),
        "class" => of_class::ask(request)?,
        "object" => object::ask(request)?,
        "dominators" => tree::ask(request),
        "treemap" | "icicle" => picture::ask(request),
        "finalizers" => finalizers(request),
        "oql" => console::ask(console::OQL, request)?,
        #[cfg(feature = "sql")]
        "sql" => console::ask(console::SQL, request)?,
        "search" => search::ask(request)?,
        "diff" => compare::ask(request)?,
        "flamegraph" => return None,
        path => Listing::for_path(path).filter(|_| request.path.len() == 1)?.ask(request),
    };
    Some(ask.for_document(is_top_asked))
}

fn page(request: &Request<'_>) -> Option<Page> {
    let is_plain = request.path.len() == 1;
    Some(match request.page() {
        "class" => of_class::page(request)?,
        "object" => object::page(request)?,
        _ if !is_plain => return None,
        "overview" => overview::page(request),
        "leaks" => suspects::page(request),
        "dominators" => tree::page(request),
        "treemap" | "icicle" => picture::page(request),
        "finalizers" => finalizers_page(request),
        "oql" => console::page(console::OQL, request),
        #[cfg(feature = "sql")]
        "sql" => console::page(console::SQL, request),
        "search" => search::page(request),
        "diff" => compare::page(request)?,
        "flamegraph" => flame::page(request),
        path => Listing::for_path(path)?.page(request),
    })
}

/// Returns the kinds of data for which a dump has pages. They do not change.
pub(crate) fn has(request: &Request<'_>) -> AvailableData {
    let known = request.site.has.get(request.number - 1);
    known.map_or_else(|| look(request), |known| *known.get_or_init(|| look(request)))
}

fn look(request: &Request<'_>) -> AvailableData {
    match request.ask("info").flag("quiet").json() {
        Ok((document, _)) => AvailableData::from_document(&document),
        // Only dumps have `info`: this is a text report, or cannot be opened.
        Err(_) => AvailableData { heap: false, recording: true, objects: 0 },
    }
}

/// Returns the query for objects that have a finalizer, by class: jhat's "Finalizer Summary".
fn finalizers<'a>(request: &Request<'a>) -> CommandQuery<'a> {
    request.ask("oql").argument(
        "SELECT classof(f.referent).@name AS class, count(*) AS finalizable, sum(f.referent.@usedHeapSize) AS shallow \
         FROM java.lang.ref.Finalizer f GROUP BY class ORDER BY finalizable DESC",
    )
}

fn finalizers_page(request: &Request<'_>) -> Page {
    let links = request.links();
    let waiting = request.ask("waste").option("kind", "finalizable");
    let body = html! {
        p.dim { "Objects whose finalizer must run before they are freed." }
        (frame::section("Objects in the queue", &waiting, &links))
        (frame::section("Objects with a finalizer, by class", &finalizers(request), &links))
        (frame::formats(request))
    };
    Page::new("finalizers", "Finalizers", body)
}

/// Renders the page that lists the dumps of a server; `states` describe their progress.
#[cfg(feature = "serve")]
pub(crate) fn dumps(site: &Site, states: &[String]) -> Reply {
    let body = html! {
        table {
            thead { tr { th.n scope="col" { "#" } th.t scope="col" { "state" } th.name scope="col" { "dump" } } }
            tbody { @for (number, state) in (1..=site.dumps.len()).zip(states) {
                tr {
                    td.n { (number) }
                    td.t { (state) }
                    td.name { a href={ "/" (number) "/" } { (escape::text(&site.name(number))) } }
                }
            } }
        }
    };
    let page = Page::new("", "Dumps", body);
    Reply::html(200, frame::document(site, 1, AvailableData::UNKNOWN, &page))
}
