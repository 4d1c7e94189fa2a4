//! The overview: what is wrong, where the memory is, and where to go next.

use maud::{Markup, html};
use serde_json::Value as Json;

use hprof_report::escape;
use hprof_report::html::{self, Links, text};
use hprof_report::number::{grouped, human_bytes, percent};

use super::document::Look;
use super::frame::{self, Page};
use super::names::object;
use super::picture;
use super::request::Request;
use super::suspects;

/// Suspects that are shown.
const SUSPECTS: usize = 3;

pub(crate) fn page(request: &Request<'_>) -> Page {
    let links = request.links();
    let ask = request.ask("overview");
    let (document, notes) = match ask.json() {
        Ok(answer) => answer,
        Err(failure) => return Page::failed("overview", "Overview", &failure, &links),
    };
    let Some(row) = document.row() else {
        return Page::new("overview", "Overview", frame::notes(&notes, &links));
    };
    let leaks = request.ask("leaks").json().ok();
    let body = html! {
        p.dim { (about(row, &document)) }
        (figures(row))
        (frame::notes(&notes, &links))
        @if let Some(oom) = row.get("out_of_memory").filter(|oom| !oom.is_null()) { (out_of_memory(oom, &links)) }
        @if let Some((leaks, _)) = &leaks { (suspects::cards(leaks, SUSPECTS, &links)) }
        @if leaks.is_none_or(|(leaks, _)| leaks.list("rows").is_empty()) { p { "No object or class retains more than 10% of the reachable heap by itself." } }
        section {
            h2 { "Where the memory is" }
            (picture::figure(request, picture::Form::Treemap, None, picture::SMALL))
        }
        section { h2 { "What retains most" } (largest(row, &links)) }
        (odd(row))
        (frame::whole(&ask, request))
    };
    Page::new("overview", escape::text(&title(row)), body)
}

/// What is wrong with the heap, as every answer has it.
pub(crate) fn title(row: &Json) -> String {
    row.text("headline").to_owned()
}

/// The JVM, when, the file.
pub(crate) fn about(row: &Json, document: &Json) -> String {
    let dump = document.get("dump").unwrap_or(&Json::Null);
    let mut parts = Vec::new();
    parts.extend(Some(row.text("main")).filter(|main| !main.is_empty()).map(str::to_owned));
    parts.extend(Some(row.text("jvm")).filter(|jvm| !jvm.is_empty()).map(str::to_owned));
    parts.extend(Some(row.text("created")).filter(|at| !at.is_empty()).map(|at| format!("dumped {at}")));
    parts.extend(dump.number("file_bytes").map(|bytes| format!("{} file", human_bytes(bytes))));
    parts.extend(dump.is("damaged").then(|| "damaged: see Doctor".to_owned()));
    escape::text(&parts.join(" · ")).into_owned()
}

/// The figures in a row.
pub(crate) fn figures(row: &Json) -> Markup {
    frame::facts(facts(row))
}

/// What there is, in figures.
pub(crate) fn facts(row: &Json) -> impl Iterator<Item = (String, &'static str)> {
    let of = |key: &str, figure: &str| row.get(key).and_then(|part| part.number(figure));
    let all = row.number("shallow_bytes").unwrap_or_default();
    let reachable = of("reachable", "shallow_bytes");
    let unreachable = of("unreachable", "shallow_bytes");
    let limit = row.number("heap_limit_bytes").map(|bytes| (human_bytes(bytes), "heap limit"));
    [
        (reachable.map_or_else(|| "–".to_owned(), human_bytes), "reachable"),
        (unreachable.map_or_else(|| "–".to_owned(), |bytes| percent(bytes, all)), "unreachable"),
        (frame::number(of("reachable", "objects")), "objects"),
        (frame::number(row.number("gc_roots_total")), "GC roots"),
        (frame::number(row.number("threads")), "threads"),
        (frame::number(row.number("class_loaders")), "class loaders"),
    ]
    .into_iter()
    .chain(limit)
}

pub(crate) fn out_of_memory(oom: &Json, links: &Links) -> Markup {
    html! {
        section.verdict {
            h2 { "Thread " (text(oom.text("name"), links)) " ran out of memory" }
            @if !oom.list("frames").is_empty() {
                pre tabindex="0" { @for frame in oom.list("frames").iter().take(12) {
                    (text(frame.as_str().unwrap_or_else(|| frame.text("text")), links)) "\n"
                } }
            }
        }
    }
}

pub(crate) fn largest(row: &Json, links: &Links) -> Markup {
    let whole = row.get("reachable").and_then(|part| part.number("shallow_bytes")).unwrap_or_default();
    html! {
        div.scroll tabindex="0" role="group" aria-label="What retains most" { table {
            thead { tr { th.n scope="col" { "retained" } th.n scope="col" { "%" } th.name scope="col" { "what" } } }
            tbody { @for each in row.list("largest") {
                @let bytes = each.number("retained_bytes").unwrap_or_default();
                tr {
                    td."n b" { (grouped(bytes)) }
                    td.n { (frame::share(bytes, whole)) }
                    td.name { (html::link(object(each, links), text(each.text("text"), &Links::none()))) }
                }
            } }
        } }
    }
}

fn odd(row: &Json) -> Markup {
    html! {
        @if !row.list("odd").is_empty() {
            ul.notes { @for line in row.list("odd") {
                li { (text(line.as_str().unwrap_or_else(|| line.text("text")), &Links::none())) }
            } }
        }
    }
}
