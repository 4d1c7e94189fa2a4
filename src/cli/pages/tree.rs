//! The page of the dominator tree, one level at a time: each node is a link to the objects that it dominates.

use maud::{Markup, html};
use serde_json::Value as Json;

use hprof_query::dictionary::names;
use hprof_report::html::{self, Links};
use hprof_report::number::group_digits;

use super::ask::CommandQuery;
use super::document::JsonLookup;
use super::frame::{self, Page};
use super::object_links::{id, object_link, object_name};
use super::request::Request;

/// Maximum number of children of a node on a page.
const CHILDREN: u64 = 50;

/// Value of the parameter that groups the whole tree by class.
const CLASS_TREE: &str = "class-tree";

/// Returns the query: the objects that an object or class dominates, or the objects that no other object dominates; by
/// class if requested.
pub(crate) fn ask<'a>(request: &Request<'a>) -> CommandQuery<'a> {
    let mut ask = request.ask("dominators");
    if let Some(of) = request.value("of") {
        ask = ask.option("of", of);
    }
    if let Some(bytes) = request.value("min-retained") {
        ask = ask.option("min-retained", bytes);
    }
    let (key, depth) = (request.value("group-by"), request.value("depth"));
    if let Some(key) = key {
        ask = ask.option("group-by", key);
    }
    if matches!(key, None | Some(CLASS_TREE)) {
        let depth = depth.or(key.is_none().then_some("1"));
        ask = depth.into_iter().fold(ask, |ask, depth| ask.option("depth", depth));
    }
    ask.option("top", request.top(CHILDREN).to_string())
}

pub(crate) fn page(request: &Request<'_>) -> Page {
    let (links, ask) = (request.links(), ask(request));
    let is_plain = request.value("group-by").is_none();
    let tree = if is_plain {
        rows(request, &ask, &links)
    } else {
        frame::answer(ask.grids(), &links, "Dominator tree")
    };
    let of = request.value("of");
    let body = html! {
        p.dim { "An object dominates another if every path from the GC roots to the other passes through it; the \
                 other is freed with it." }
        form.filter action=(request.href("dominators")) {
            label { span { "Below object or class" } input name="of" value=[of] spellcheck="false" autocomplete="off"; }
            label { span { "Group by" } select name="group-by" {
                option value="" { "–" }
                @for key in ["class", "package", "loader", CLASS_TREE] { option selected[request.value("group-by") == Some(key)] { (key) } }
            } }
            label { span { "Depth" } input.short name="depth" value=[request.value("depth")]; }
            label { span { "Top" } input.short name="top" value=[request.value("top")]; }
            button { "Show" }
        }
        p {
            a href=(picture_href(request, "treemap")) { "Treemap" } " · " a href=(picture_href(request, "icicle")) { "Icicle" }
        }
        (tree)
        (frame::page_command(&ask, request))
    };
    let page = Page::new("dominators", "Dominator tree", body);
    match of {
        Some(of) => {
            Page { title: format!("Dominated by {of}"), ..page }.breadcrumb("Dominator tree", "dominators")
        }
        None => page,
    }
}

fn picture_href(request: &Request<'_>, form: &str) -> String {
    match request.value("of") {
        Some(of) => request.href(&format!("{form}?of={}", html::percent_encode(of))),
        None => request.href(form),
    }
}

/// Renders the tree as a table. A script fetches the page of a node and inserts its rows below it.
fn rows(request: &Request<'_>, ask: &CommandQuery<'_>, links: &Links) -> Markup {
    let (document, notes) = match ask.json() {
        Ok(answer) => answer,
        Err(failure) => return frame::failure_alert(&failure, links),
    };
    let (rows, whole) = (document.rows(), reachable_bytes(&document));
    let chain = request.value("of").map(|of| request.ask("dominators").option("of", of).flag("chain"));
    html! {
        @if let Some(chain) = &chain { (dominator_chain(chain, links)) }
        (table(request, rows, whole, links))
        (frame::notes(&notes, links))
        @let top = request.top(CHILDREN);
        @if has_more(request, rows, top) { p.more { a href=(request.with("top", &(top * 4).min(super::request::MAX_TOP).to_string())) { "More" } } }
    }
}

/// Returns the size of all reachable objects in bytes.
fn reachable_bytes(document: &Json) -> u64 {
    document
        .value(names::REACHABLE)
        .and_then(|reachable| reachable.number(names::SHALLOW_BYTES))
        .unwrap_or_default()
}

/// Renders the objects that an object dominates, for a page with other content.
pub(crate) fn dominated_objects(request: &Request<'_>, ask: &CommandQuery<'_>, links: &Links) -> Markup {
    match ask.json() {
        // The first row is the object itself.
        Ok((document, notes)) => html! {
            (table(request, document.rows().get(1..).unwrap_or_default(), reachable_bytes(&document), links))
            (frame::notes(&notes, links))
        },
        Err(failure) => frame::failure_alert(&failure, links),
    }
}

fn table(request: &Request<'_>, rows: &[Json], whole: u64, links: &Links) -> Markup {
    let first = rows.iter().filter_map(|row| row.number(names::DEPTH)).min().unwrap_or_default();
    html! {
        div.scroll tabindex="0" role="group" aria-label="Dominator tree" {
            table.tree {
                thead { tr {
                    th.n scope="col" { "retained" } th."n extra" scope="col" { "%" } th."n spare" scope="col" { "shallow" }
                    th."n spare" scope="col" { "objects" } th.name scope="col" { "object" }
                } }
                tbody { @for row in rows { (node(request, row, first, whole, links)) } }
            }
        }
    }
}

/// Returns whether the starting node has more children than are shown.
fn has_more(request: &Request<'_>, rows: &[Json], top: u64) -> bool {
    let depth = |row: &Json| row.number(names::DEPTH).unwrap_or_default();
    let Some(first) = rows.first() else { return false };
    // Below an object, that object comes first.
    let level = depth(first) + u64::from(request.value("of").is_some());
    let shown = rows.iter().filter(|row| depth(row) == level).count() as u64;
    match request.value("of") {
        Some(of) if of.starts_with("0x") => first.number(names::DOMINATED).unwrap_or_default() > shown,
        _ => shown >= top,
    }
}

fn node(request: &Request<'_>, row: &Json, first: u64, whole: u64, links: &Links) -> Markup {
    let retained = row.number(names::RETAINED_BYTES).unwrap_or_default();
    let depth = row.number(names::DEPTH).unwrap_or_default().saturating_sub(first).min(30);
    let of = row.text(names::OBJECT);
    let has_more = row.number(names::DOMINATED).unwrap_or_default() > 0;
    html! {
        tr data-depth=(depth) {
            td."n b" { (group_digits(retained)) }
            td."n extra" { (frame::share(retained, whole)) }
            td."n spare" { (frame::number(row.number(names::SHALLOW_BYTES))) }
            td."n spare" { (frame::number(row.number(names::RETAINED_OBJECTS))) }
            td class={ "name in" (depth) } {
                @if has_more {
                    a.twist href=(request.href(&format!("dominators?of={of}"))) aria-label={ "What " (of) " dominates" } { "▸" }
                } @else { span.twist {} }
                (object_link(row, names::CLASS, names::LABEL, links)) " " span."id dim" { (of) }
            }
        }
    }
}

/// Renders the dominators of an object, from the root down.
fn dominator_chain(ask: &CommandQuery<'_>, links: &Links) -> Markup {
    let Ok((document, _)) = ask.json() else { return html! {} };
    html! {
        ol.chain aria-label="Dominators" { @for row in document.rows() { li {
            @let below = id(row, names::OBJECT).and_then(|id| links.to(&format!("dominators?of={id:#x}")));
            (html::link(below, object_name(row, names::CLASS, names::LABEL)))
        } } }
    }
}
