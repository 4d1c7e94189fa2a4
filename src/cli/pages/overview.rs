//! The overview page: verdict, biggest objects, and links to other pages.

use maud::{Markup, html};
use serde_json::Value as Json;

use hprof_query::dictionary::{Name, names};
use hprof_report::escape;
use hprof_report::html::{self, Links, text};
use hprof_report::number::{group_digits, human_bytes, percent};
use hprof_report::picture::{BytesAtTime, Canvas, over_time};
use jiff::Timestamp;

use super::document::JsonLookup;
use super::frame::{self, Page};
use super::object_links::object;
use super::picture;
use super::request::Request;
use super::suspects;

/// Maximum number of suspects shown.
const SUSPECTS: usize = 3;
/// Size of the chart of the heap over time.
const OVER_TIME: Canvas = Canvas { width: 960.0, height: 120.0 };

pub(crate) fn page(request: &Request<'_>) -> Page {
    let links = request.links();
    let ask = request.ask("overview");
    let (document, notes) = match ask.json() {
        Ok(answer) => answer,
        Err(failure) => return Page::for_failure("overview", "Overview", &failure, &links),
    };
    let Some(row) = document.row() else {
        return Page::new("overview", "Overview", frame::notes(&notes, &links));
    };
    let leaks = request.ask("leaks").json().ok();
    let body = html! {
        p.dim { (describe_dump(row, &document)) }
        (figures(row))
        (frame::notes(&notes, &links))
        @if let Some(oom) = row.value(names::OUT_OF_MEMORY) { (out_of_memory(oom, &links)) }
        @if let Some((leaks, _)) = &leaks { (suspects::cards(leaks, SUSPECTS, &links)) }
        @if leaks.is_none_or(|(leaks, _)| leaks.rows().is_empty()) { p { "No object or class retains more than 10% of the reachable heap by itself." } }
        (heap_over_time(row))
        section {
            h2 { "Where the memory is" }
            (picture::figure(request, picture::PictureForm::Treemap, None, picture::SMALL))
        }
        section { h2 { "What retains most" } (largest(row, &links)) }
        (anomalies(row))
        (frame::page_command(&ask, request))
    };
    Page::new("overview", escape::text(&title(row)), body)
}

/// Returns the verdict in one line, the same as in other results.
pub(crate) fn title(row: &Json) -> String {
    row.text(names::HEADLINE).to_owned()
}

/// Describes the JVM, the time and the file.
pub(crate) fn describe_dump(row: &Json, document: &Json) -> String {
    let dump = document.dump();
    let mut parts = Vec::new();
    parts.extend(Some(row.text(names::MAIN)).filter(|main| !main.is_empty()).map(str::to_owned));
    parts.extend(Some(row.text(names::JVM_TEXT)).filter(|jvm| !jvm.is_empty()).map(str::to_owned));
    parts.extend(Some(row.text(names::CREATED)).filter(|at| !at.is_empty()).map(|at| format!("dumped {at}")));
    parts.extend(dump.number(names::FILE_BYTES).map(|bytes| format!("{} file", human_bytes(bytes))));
    parts.extend(dump.is(names::IS_DAMAGED).then(|| "damaged: see Doctor".to_owned()));
    escape::text(&parts.join(" · ")).into_owned()
}

/// Returns the description of the heap over time, if there is a recording.
pub(crate) fn heap_text(row: &Json) -> Option<&str> {
    row.value(names::RECORDING)?.value(names::HEAP_TEXT)?.as_str()
}

/// Renders the chart of the heap over time from a recording: heap used after collections, and the time of the dump.
pub(crate) fn heap_over_time(row: &Json) -> Markup {
    let Some((text, recording)) = heap_text(row).zip(row.value(names::RECORDING)) else { return html! {} };
    let millis = |time: &str| Some(time.parse::<Timestamp>().ok()?.as_millisecond());
    let bars = recording.list(names::FLOOR_OVER_TIME).iter().filter_map(|floor| {
        let (time, bytes) = (floor.text(names::TIME), floor.number(names::USED_BYTES)?);
        Some(BytesAtTime { time: millis(time)?, bytes, title: format!("{time}: {}", human_bytes(bytes)) })
    });
    let bars: Vec<BytesAtTime> = bars.collect();
    let dumped = millis(row.text(names::CREATED)).map(|time| (time, "dump"));
    html! {
        section {
            h2 { "Heap over time" }
            p { (escape::text(text)) "." }
            figure { (over_time(&bars, dumped, "Lowest heap use after collections, over time", OVER_TIME)) }
        }
    }
}

/// Renders the facts about the dump side by side.
pub(crate) fn figures(row: &Json) -> Markup {
    frame::facts(facts(row))
}

/// Returns the facts about the dump: value and label.
pub(crate) fn facts(row: &Json) -> impl Iterator<Item = (String, &'static str)> {
    let of = |part: Name, figure: Name| row.value(part).and_then(|part| part.number(figure));
    let all = row.number(names::SHALLOW_BYTES).unwrap_or_default();
    let reachable = of(names::REACHABLE, names::SHALLOW_BYTES);
    let unreachable = of(names::UNREACHABLE, names::SHALLOW_BYTES);
    let limit = row.number(names::HEAP_LIMIT_BYTES).map(|bytes| (human_bytes(bytes), "heap limit"));
    [
        (reachable.map_or_else(|| "–".to_owned(), human_bytes), "reachable"),
        (unreachable.map_or_else(|| "–".to_owned(), |bytes| percent(bytes, all)), "unreachable"),
        (frame::number(of(names::REACHABLE, names::OBJECTS)), "objects"),
        (frame::number(row.number(names::GC_ROOTS_TOTAL)), "GC roots"),
        (frame::number(row.number(names::THREADS)), "threads"),
        (frame::number(row.number(names::CLASS_LOADERS)), "class loaders"),
    ]
    .into_iter()
    .chain(limit)
}

/// Renders the thread that ran out of memory.
pub(crate) fn out_of_memory(oom: &Json, links: &Links) -> Markup {
    html! {
        section.verdict {
            h2 { "Thread " (text(oom.text(names::NAME), links)) " ran out of memory" }
            @if !oom.list(names::STACK).is_empty() {
                pre tabindex="0" { @for frame in oom.list(names::STACK).iter().take(12) {
                    (text(frame.as_str().unwrap_or_else(|| frame.text(names::TEXT)), links)) "\n"
                } }
            }
        }
    }
}

/// Renders the biggest objects.
pub(crate) fn largest(row: &Json, links: &Links) -> Markup {
    let whole =
        row.value(names::REACHABLE).and_then(|part| part.number(names::SHALLOW_BYTES)).unwrap_or_default();
    html! {
        div.scroll tabindex="0" role="group" aria-label="What retains most" { table {
            thead { tr { th.n scope="col" { "retained" } th.n scope="col" { "%" } th.name scope="col" { "what" } } }
            tbody { @for each in top_retainers(row) {
                @let bytes = each.number(names::RETAINED_BYTES).unwrap_or_default();
                tr {
                    td."n b" { (group_digits(bytes)) }
                    td.n { (frame::share(bytes, whole)) }
                    td.name { (html::link(object(each, links), text(each.text(names::TEXT), &Links::none()))) }
                }
            } }
        } }
    }
}

/// Returns the places (paths of fields) that explain the heap, as in `overview`; without a graph, the largest objects.
pub(crate) fn top_retainers(row: &Json) -> &[Json] {
    let places = row.list(names::PLACES);
    if places.is_empty() { row.list(names::LARGEST) } else { places }
}

fn anomalies(row: &Json) -> Markup {
    html! {
        @if !row.list(names::ODD).is_empty() {
            ul.notes { @for line in row.list(names::ODD) {
                li { (text(line.as_str().unwrap_or_else(|| line.text(names::TEXT)), &Links::none())) }
            } }
        }
    }
}
