//! The page of leak suspects: for each, what accumulates, the path from a GC root, the composition.

use maud::{Markup, html};
use serde_json::Value as Json;

use hprof_query::dictionary::names;
use hprof_report::escape;
use hprof_report::html::{self, Links, class_name, text};
use hprof_report::number::{group_digits, human_bytes, percent};

use super::document::JsonLookup;
use super::frame::{self, Page};
use super::object_links::{object, simple};
use super::request::Request;

/// Number of rows in the small tables of a suspect.
const FEW: usize = 8;

pub(crate) fn page(request: &Request<'_>) -> Page {
    let links = request.links();
    let mut ask = request.ask("leaks");
    if let Some(threshold) = request.value("threshold") {
        ask = ask.option("threshold", threshold);
    }
    let (document, notes) = match ask.json() {
        Ok(answer) => answer,
        Err(failure) => return Page::for_failure("leaks", "Leak suspects", &failure, &links),
    };
    let suspects = document.rows();
    let body = html! {
        p.dim { "Objects that no other object dominates and that retain more than a share of the reachable heap." }
        form.filter action=(request.href("leaks")) {
            label { span { "Threshold, %" }
                input.short name="threshold" value=(request.value("threshold").unwrap_or("10")) inputmode="numeric"; }
            button { "Show" }
        }
        (frame::notes(&notes, &links))
        @if suspects.is_empty() { p { "No object retains that much." } }
        (cards(&document, usize::MAX, &links))
        @if !document.list(names::FACTS).is_empty() { h2 { "Also" } ul { @for fact in document.list(names::FACTS) {
            li { (text(fact.as_str().unwrap_or_else(|| fact.text(names::TEXT)), &links)) }
        } } }
        (frame::page_command(&ask, request))
    };
    Page::new("leaks", escape::text(document.text(names::HEADLINE)), body)
}

/// Renders the conclusions in the order of `leaks`, then the other rows; at most `most` of both kinds.
pub(crate) fn cards(document: &Json, most: usize, links: &Links) -> Markup {
    let (rows, conclusions) = (document.rows(), document.list(names::CONCLUSIONS));
    let numbers = |one: &Json| -> Vec<usize> {
        let numbers = one.list(names::SUSPECT_RANKS).iter().filter_map(Json::as_u64);
        numbers.filter_map(|number| usize::try_from(number).ok()).collect()
    };
    let row = |number: usize| number.checked_sub(1).and_then(|at| rows.get(at));
    let (mut all, mut told) = (Vec::new(), Vec::new());
    for one in conclusions {
        if one.number(names::LOADER_GROUP).is_some() {
            all.push(loaders(one, &numbers(one), links));
            continue;
        }
        told.extend(numbers(one));
        all.extend(numbers(one).into_iter().filter_map(|number| Some(card(row(number)?, number, links))));
    }
    let others = (1..).zip(rows).filter(|(number, _)| !told.contains(number));
    all.extend(others.map(|(number, suspect)| card(suspect, number, links)));
    html! { @for card in all.into_iter().take(most) { (card) } }
}

/// Returns the warnings about the recording that was given with the dump.
pub(crate) fn recording_warnings(document: &Json) -> impl Iterator<Item = &str> {
    let recording = document.maybe(names::RECORDING);
    recording.into_iter().flat_map(|recording| recording.list(names::WARNINGS)).filter_map(Json::as_str)
}

/// Renders class loaders that several suspects are parts of.
fn loaders(one: &Json, parts: &[usize], links: &Links) -> Markup {
    html! {
        section.verdict {
            h2 { (text(one.text(names::SENTENCE), links)) }
            @if !parts.is_empty() { p { "Its parts are listed below: " (number_list(parts)) "." } }
            @if let Some(page) = links.to("loaders") { p { a href=(page) { "All class loaders" } } }
        }
    }
}

/// Formats numbers: `1, 2, 3`.
fn number_list(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

/// Renders a suspect: sentence, path, and composition of what accumulates.
fn card(suspect: &Json, number: usize, links: &Links) -> Markup {
    let is_leak = suspect.text(names::VERDICT) == "accumulation";
    let sentence = suspect.text(names::SENTENCE);
    let (first, rest) = sentence.split_once(". ").map_or((sentence, ""), |(first, rest)| (first, rest));
    let retained = suspect.number(names::RETAINED_BYTES).unwrap_or_default();
    html! {
        section class=(if is_leak { "verdict" } else { "verdict mild" }) {
            h2 { span.dim { (number) ". " } (text(first, links)) }
            @if !rest.is_empty() { p { (text(rest, links)) } }
            @if !suspect.list(names::PATH_TO_ROOT).is_empty() { (chain(suspect, links)) }
            (contents(suspect, links))
            @if !suspect.list(names::ACCUMULATED).is_empty() {
                details {
                    summary { "What accumulates, level by level" }
                    (table(suspect.list(names::ACCUMULATED), retained, links))
                }
            }
            @if !suspect.list(names::ALLOCATED_IN).is_empty() { (allocating_lines(suspect)) }
            @if !suspect.list(names::MEMBERS).is_empty() {
                details {
                    summary { "Its objects" }
                    (table(suspect.list(names::MEMBERS), retained, links))
                }
            }
            @if !suspect.list(names::PARTS).is_empty() {
                details open { summary { "Its parts" } (table(suspect.list(names::PARTS), retained, links)) }
            }
            @if !suspect.list(names::THREAD_LOCALS).is_empty() {
                p { @for local in suspect.list(names::THREAD_LOCALS).iter().take(FEW) {
                    "ThreadLocal " (html::link(object(local, links), text(local.text(names::FIELD), &Links::none())))
                    ": " (frame::number(local.number(names::VALUES))) " × " (class_name(local.text(names::VALUE_CLASS)))
                    ", " (human_bytes(local.number(names::RETAINED_BYTES).unwrap_or_default())) ". "
                } }
            }
        }
    }
}

/// Renders the lines of code that allocated what accumulates.
fn allocating_lines(suspect: &Json) -> Markup {
    let number = |line: &Json, name| frame::number(line.number(name));
    html! {
        details open {
            summary { "Lines that allocated it, in the recording" }
            div.scroll tabindex="0" role="group" aria-label="Lines" { table {
                thead { tr {
                    th.n scope="col" { "bytes" } th.n scope="col" { "%" } th."n extra" scope="col" { "samples" }
                    th."n extra" scope="col" { "alive" } th.name scope="col" { "line" } th scope="col" { "rate" }
                } }
                tbody { @for line in suspect.list(names::ALLOCATED_IN) { tr {
                    td."n b" { (human_bytes(line.number(names::WEIGHT_BYTES).unwrap_or_default())) }
                    td.n { (line.maybe(names::PERCENT).and_then(Json::as_f64).unwrap_or_default()) }
                    td."n extra" { (number(line, names::SAMPLES)) }
                    td."n extra" { (number(line, names::OLD_OBJECTS)) }
                    td.name { (text(line.text(names::FRAME), &Links::none())) }
                    td { (line.text(names::RATE)) }
                } } }
            } }
        }
    }
}

/// Renders the path from a GC root to the accumulation point as a sentence of links.
fn chain(suspect: &Json, links: &Links) -> Markup {
    html! {
        ol.chain aria-label="Path from a GC root" {
            @if !suspect.text(names::ROOT_TEXT).is_empty() { li { span.dim { "GC root, " (text(suspect.text(names::ROOT_TEXT), links)) } } }
            @for step in suspect.list(names::PATH_TO_ROOT) {
                li {
                    @if !step.text(names::FIELD).is_empty() {
                        i { @if step.is(names::IS_STATIC) { "static " } (text(step.text(names::FIELD), &Links::none())) } " "
                    }
                    (html::link(object(step, links), class_name(simple(step.text(names::CLASS)))))
                    @if !step.text(names::LABEL).is_empty() { " " q { (text(step.text(names::LABEL), &Links::none())) } }
                }
            }
        }
    }
}

/// Renders the composition of what accumulates as a bar and in words.
fn contents(suspect: &Json, links: &Links) -> Markup {
    let parts = suspect.list(names::CONTENT_CLASSES);
    let whole = suspect
        .number(names::ACCUMULATED_BYTES)
        .or_else(|| suspect.number(names::RETAINED_BYTES))
        .unwrap_or_default();
    let named: u64 = parts.iter().filter_map(|part| part.number(names::SHALLOW_BYTES)).sum();
    html! {
        @if !parts.is_empty() && whole > 0 {
            p.parts {
                @for part in parts.iter().take(FEW) {
                    span {
                        (html::link(links.class(part.text(names::CLASS), None), class_name(simple(part.text(names::CLASS)))))
                        " " (percent(part.number(names::SHALLOW_BYTES).unwrap_or_default(), whole))
                    }
                }
                @if whole > named { span.dim { "others " (percent(whole - named, whole)) } }
            }
        }
    }
}

fn table(rows: &[Json], whole: u64, links: &Links) -> Markup {
    html! {
        div.scroll tabindex="0" role="group" aria-label="Parts" { table {
            thead { tr {
                th.n scope="col" { "retained" } th."n extra" scope="col" { "%" } th."n extra" scope="col" { "objects" }
                th.name scope="col" { "class" }
            } }
            tbody { @for row in rows {
                @let bytes = row.number(names::RETAINED_BYTES).unwrap_or_default();
                tr {
                    td."n b" { (group_digits(bytes)) }
                    td."n extra" { (frame::share(bytes, whole)) }
                    td."n extra" { (frame::number(row.maybe(names::OBJECTS).map_or(Some(1), Json::as_u64))) }
                    td.name {
                        @if row.maybe(names::OBJECT).is_some() {
                            (html::link(object(row, links), class_name(row.text(names::CLASS))))
                        } @else {
                            (html::link(links.class(row.text(names::CLASS), None), class_name(row.text(names::CLASS))))
                        }
                        @if let Some(label) = row.maybe(names::LABEL).and_then(Json::as_str) {
                            " " q { (text(label, &Links::none())) }
                        }
                    }
                }
            } }
        } }
    }
}
