//! The page of an object: its class and sizes, contents, paths from GC roots, retained objects.

use maud::{Markup, html};
use serde_json::Value as Json;

use hprof_query::dictionary::names;
use hprof_report::html::{self, Links, class_name, text};
use hprof_report::number::{group_digits, human_bytes};

use super::ask::CommandQuery;
use super::document::JsonLookup;
use super::frame::{self, Page};
use super::object_links::{id, object, object_link, object_name, simple};
use super::request::Request;

/// Maximum number of elements of an array or collection on a page.
const ELEMENTS: u64 = 50;
/// Maximum number of referrers on a page.
const REFERRERS: &str = "50";
/// Maximum number of instances of a class for which paths to its class object are searched immediately.
const MAX_INSTANCES: u64 = 50_000;
/// Maximum number of referrers searched immediately for paths.
const BUDGET: &str = "20000";
/// Number of steps shown at each end of a path.
const STEPS: usize = 20;
/// Maximum number of objects read immediately for a histogram of the retained set.
const MAX_RETAINED: u64 = 200_000;

/// Returns the `show` query for the object; `None` if the path does not name an object.
pub(crate) fn ask<'a>(request: &Request<'a>) -> Option<CommandQuery<'a>> {
    let of = request.subject().filter(|_| request.path.len() == 2)?;
    let digits = of.strip_prefix("0x")?;
    u64::from_str_radix(digits, 16).ok()?;
    let ask = request
        .ask("show")
        .flag("incoming")
        .option("top", request.clamp_option("top", request.value("top").unwrap_or(REFERRERS)));
    Some(ask.option("range", range(request)).argument(of))
}

/// Returns the elements to show, in the syntax of `--range`.
fn range(request: &Request<'_>) -> String {
    let from = request.number_of("from").unwrap_or_default();
    format!("{from}..{}", from.saturating_add(ELEMENTS))
}

pub(crate) fn page(request: &Request<'_>) -> Option<Page> {
    let (of, ask, links) = (request.subject()?, ask(request)?, request.links());
    let (document, notes) = match ask.json() {
        Ok(answer) => answer,
        Err(failure) => return Some(Page::for_failure("", &format!("Object {of}"), &failure, &links)),
    };
    let Some(row) = document.row() else {
        let body = frame::notes(&notes, &links);
        return Some(Page { status: 404, ..Page::new("", format!("No object {of}"), body) });
    };
    let class = row.text(names::CLASS);
    let paths = request.ask("paths-to-root").option("paths", "3").option("budget", BUDGET).argument(of);
    let body = html! {
        p.dim {
            (html::link(class_link(row, &links), class_name(class)))
            @if !row.text(names::LABEL).is_empty() { " · " (text(row.text(names::LABEL), &Links::none())) }
            @if let Some(described) = row.value(names::DESCRIBES) {
                " · " (html::link(links.to(&format!("class/{of}")), html! { "class " (class_name(described.text(names::CLASS))) }))
            }
        }
        (figures(row))
        (frame::notes(&notes, &links))
        @if !row.text(names::VALUE).is_empty() {
            pre tabindex="0" { (text(row.text(names::VALUE), &links)) }
            @if row.number(names::IS_VALUE_TRUNCATED).is_some() { p.dim { "Only the beginning is shown; the command \
                                                                           in a shell shows all of it." } }
        }
        div.two {
            section {
                h2 { "Why it is alive" }
                @if has_many_instances(row) {
                    p { "Many instances refer to it: " a href=(request.href(&format!("paths?of={of}"))) { "Paths to GC roots" } " takes a moment." }
                } @else { (path(request, &paths, of, &links)) }
                (frame::command(&paths, &links))
                p { a href=(request.href(&format!("paths?of={of}&paths=10"))) { "More paths" }
                    " · " (dominator(row, &links))
                    @if row.text(names::CLASS).ends_with("Thread") {
                        " · " a href=(request.href(&format!("threads?thread={of}&stack=1&locals=1"))) { "Stack, if it is a thread" }
                    } }
            }
            section {
                h2 { "What it retains" }
                (retained_section(request, of, row, &links))
            }
        }
        (fields(row, &links))
        (contents(request, row, &links))
        (elements(request, row, &links))
        (referrers(request, of, row, &links))
        @if !row.list(names::STACK).is_empty() {
            section { h2 { "Allocated in" } pre tabindex="0" { @for frame in row.list(names::STACK) {
                (text(frame.as_str().unwrap_or_else(|| frame.text(names::TEXT)), &links)) "\n"
            } } }
        }
        (frame::page_command(&ask, request))
    };
    let heading = html! { (class_name(simple(class))) " " span."id dim" { (of) } };
    let page = Page::new("", format!("{} {of}", simple(class)), body).heading(heading);
    let page = page.breadcrumb("Overview", "overview").breadcrumb(
        class.to_owned(),
        match id(row, names::CLASS_OBJECT) {
            Some(class_object) => format!("class/{class_object:#x}"),
            None => format!("class/{}", html::percent_encode(class)),
        },
    );
    Some(page)
}

/// Returns whether a search for paths would have to read many objects: all instances reference their class object.
fn has_many_instances(row: &Json) -> bool {
    let instances = row.value(names::DESCRIBES).and_then(|class| class.number(names::INSTANCES));
    instances.unwrap_or_default() > MAX_INSTANCES
}

fn class_link(row: &Json, links: &Links) -> Option<String> {
    links.class(row.text(names::CLASS), id(row, names::CLASS_OBJECT))
}

fn figures(row: &Json) -> Markup {
    let bytes = |key| row.number(key).map(human_bytes);
    let length = row.number(names::LENGTH).map(|length| (group_digits(length), "elements"));
    let roots = row.list(names::ROOTS).len() as u64;
    frame::facts(
        [
            (bytes(names::RETAINED_BYTES).unwrap_or_else(|| "unreachable".to_owned()), "retained"),
            (bytes(names::SHALLOW_BYTES).unwrap_or_else(|| "–".to_owned()), "shallow"),
        ]
        .into_iter()
        .chain(length)
        .chain((roots > 0).then(|| (group_digits(roots), "GC roots"))),
    )
}

fn dominator(row: &Json, links: &Links) -> Markup {
    html! {
        @if id(row, names::DOMINATOR).is_some() {
            "dominated by "
            (html::link(id(row, names::DOMINATOR).and_then(|id| links.object(id)), object_name(row, names::DOMINATOR_CLASS, names::DOMINATOR_LABEL)))
        } @else if row.number(names::RETAINED_BYTES).is_some() { "only GC roots dominate it" }
    }
}

/// Renders the first path from a GC root, one step per line.
fn path(request: &Request<'_>, ask: &CommandQuery<'_>, of: &str, links: &Links) -> Markup {
    let (document, notes) = match ask.json() {
        Ok(answer) => answer,
        Err(failure) => return frame::failure_alert(&failure, links),
    };
    let rows = document.rows();
    let object = document.list(names::TARGETS).first();
    let gave_up = object.is_some_and(|object| object.is(names::IS_GIVEN_UP));
    html! {
        @if gave_up {
            p { "The search stopped before it was complete: there may be other paths. "
                a href=(request.href(&format!("paths?of={of}&paths=3"))) { "Search longer" } }
        }
        @if let Some(first) = rows.first() {
            @let root = first.value(names::ROOT).unwrap_or(&Json::Null);
            @let steps = first.list(names::STEPS);
            @let cut = STEPS..steps.len().saturating_sub(STEPS).max(STEPS);
            ol.path {
                @for (at, step) in steps.iter().enumerate().filter(|(at, _)| !cut.contains(at) || *at == cut.start) { li {
                    @if cut.contains(&at) { span.by { "…" } span."what dim" { (group_digits(cut.len() as u64)) " objects in between" } } @else {
                    span.by { @if at == 0 {
                        "GC root: " @for kind in root.list(names::KINDS).iter().take(1) { (text(kind.as_str().unwrap_or_default(), links)) }
                        @if !root.text(names::THREAD_NAME).is_empty() { " of " q { (text(root.text(names::THREAD_NAME), &Links::none())) } }
                    } @else {
                        (text(step.text(names::REFERENCE), &Links::none()))
                    } }
                    span.what {
                        (object_link(step, names::CLASS, names::LABEL, links))
                        @if step.text(names::STRENGTH) != "strong" && !step.text(names::STRENGTH).is_empty() { " " b { (step.text(names::STRENGTH)) } }
                    }
                    span.n { (frame::number(step.number(names::RETAINED_BYTES))) }
                } } }
            }
            @let is_all = object.is_some_and(|object| object.is(names::IS_COMPLETE));
            p.dim { @match (rows.len(), is_all) {
                (1, true) => "The only path; weak, soft, phantom and finalizer references are excluded. ",
                (count, true) => { "The shortest of " (count) " paths. " }
                (_, false) if gave_up => "The shortest path. ",
                (_, false) => "The shortest path; there are more. ",
            } "Sizes are retained sizes." }
            @if first.is(names::IS_THROUGH_EXCLUDED) { p.dim { "It is reachable only through weak, soft, phantom or \
                                                                finalizer references." } }
        } @else if !gave_up {
            p { "There is no path from a GC root to it." }
            (frame::notes(&notes, links))
        }
    }
}

fn retained_section(request: &Request<'_>, of: &str, row: &Json, links: &Links) -> Markup {
    let Some(bytes) = row.number(names::RETAINED_BYTES) else { return html! { p { "It is unreachable." } } };
    let tree = request.ask("dominators").option("of", of).option("depth", "1").option("top", "8");
    let histogram = request.ask("histo").option("retained-by", of).option("top", "8");
    html! {
        @if bytes == row.number(names::SHALLOW_BYTES).unwrap_or_default() { p { "It retains only itself." } }
        @else if retained_objects(request, of) <= MAX_RETAINED {
            (frame::answer(histogram.grids(), links, "Retained objects, by class"))
            (frame::command(&histogram, links))
        } @else {
            (super::tree::dominated_objects(request, &tree, links))
            (frame::command(&tree, links))
        }
        p {
            a href=(request.href(&format!("dominators?of={of}"))) { "Dominator tree" } " · "
            a href=(request.href(&format!("treemap?of={of}"))) { "Treemap" } " · "
            a href=(request.href(&format!("icicle?of={of}"))) { "Icicle" } " · "
            a href=(request.href(&format!("histo?retained-by={of}"))) { "By class" } " · "
            a href=(request.href(&format!("refs?of={of}&reachable=1"))) { "All that is reachable from it" }
        }
    }
}

/// Returns the number of objects in the retained set of the object `of`.
fn retained_objects(request: &Request<'_>, of: &str) -> u64 {
    let row = request.ask("retained").argument(of).json();
    row.ok().and_then(|(document, _)| document.row()?.number(names::RETAINED_OBJECTS)).unwrap_or_default()
}

/// Renders a value of a field or element; a reference is a link to the object.
pub(crate) fn value(of: &Json, links: &Links) -> Markup {
    let shown = match of.value(names::VALUE) {
        Some(Json::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => "null".to_owned(),
    };
    html::link(object(of, links), class_name(&shown))
}

fn fields(row: &Json, links: &Links) -> Markup {
    let fields = row.list(names::FIELDS);
    // Elements of arrays have numbers as names.
    let fields: Vec<&Json> =
        fields.iter().filter(|field| !field.text(names::NAME).starts_with('[')).collect();
    html! {
        @if !fields.is_empty() { section {
            h2 { "Fields" }
            div.scroll tabindex="0" role="group" aria-label="Fields" { table {
                thead { tr {
                    th."t extra" scope="col" { "declared in" } th."t extra" scope="col" { "type" } th.t scope="col" { "field" }
                    th.name scope="col" { "value" }
                } }
                tbody { @for field in fields { tr {
                    td."t dim extra" { (text(simple(field.text(names::CLASS)), &Links::none())) }
                    td."t dim extra" { (text(field.text(names::TYPE), &Links::none())) }
                    td.t { (text(field.text(names::NAME), &Links::none())) }
                    td.name { (value(field, links)) " " span."id dim" { (field.text(names::OBJECT)) } }
                } } }
            } }
        } }
    }
}

fn pager(request: &Request<'_>, shown: u64, size: u64) -> Markup {
    let from = request.number_of("from").unwrap_or_default();
    let end = from.saturating_add(shown);
    html! {
        p.more {
            @if size > 0 { (group_digits(from.min(size))) " to " (group_digits(end)) " of " (group_digits(size)) }
            @if from > 0 { " · " a rel="prev" href=(request.with("from", &from.saturating_sub(ELEMENTS).to_string())) { "previous" } }
            @if end < size { " · " a rel="next" href=(request.with("from", &end.to_string())) { "next" } }
        }
    }
}

fn contents(request: &Request<'_>, row: &Json, links: &Links) -> Markup {
    let Some(contents) = row.value(names::CONTENTS) else { return html! {} };
    let entries = contents.list(names::ENTRIES);
    let is_map = contents.text(names::KIND) == "map";
    html! { section {
        h2 { "Contents" }
        div.scroll tabindex="0" role="group" aria-label="Contents" { table {
            thead { tr {
                th.n scope="col" { "#" }
                @if is_map { th.t scope="col" { "key" } }
                th.name scope="col" { "value" }
            } }
            tbody { @for entry in entries { tr {
                td."n dim" { (frame::number(entry.number(names::INDEX))) }
                @if is_map { td."t s" { (html::link(id(entry, names::KEY_OBJECT).and_then(|id| links.object(id)), class_name(entry.text(names::KEY)))) } }
                td.name { (value(entry, links)) " " span."id dim" { (entry.text(names::OBJECT)) } }
            } } }
        } }
        (pager(request, entries.len() as u64, contents.number(names::SIZE).unwrap_or_default()))
    } }
}

fn elements(request: &Request<'_>, row: &Json, links: &Links) -> Markup {
    let Some(length) = row.number(names::LENGTH) else { return html! {} };
    let elements: Vec<&Json> =
        row.list(names::FIELDS).iter().filter(|field| field.text(names::NAME).starts_with('[')).collect();
    html! { section {
        h2 { "Elements" }
        div.scroll tabindex="0" role="group" aria-label="Elements" { table {
            thead { tr { th.n scope="col" { "index" } th.name scope="col" { "value" } } }
            tbody { @for element in &elements { tr {
                td."n dim" { (text(element.text(names::NAME), &Links::none())) }
                td.name { (value(element, links)) " " span."id dim" { (element.text(names::OBJECT)) } }
            } } }
        } }
        (pager(request, elements.len() as u64, length))
    } }
}

fn referrers(request: &Request<'_>, of: &str, row: &Json, links: &Links) -> Markup {
    let incoming = row.list(names::INCOMING);
    let all = request.ask("refs").flag("incoming").argument(of);
    html! { section {
        h2 { "Referrers" }
        @if incoming.is_empty() { p { "No object refers to it." } } @else {
            div.scroll tabindex="0" role="group" aria-label="Referrers" { table {
                thead { tr { th.t scope="col" { "field" } th.name scope="col" { "object" } } }
                tbody { @for referrer in incoming { tr {
                    td."t s" { (text(referrer.text(names::REFERENCE), &Links::none())) }
                    td.name {
                        (object_link(referrer, names::CLASS, names::LABEL, links)) " " span."id dim" { (referrer.text(names::OBJECT)) }
                    }
                } } }
            } }
        }
        p {
            a href=(request.href(&format!("refs?of={of}&incoming=1"))) { "All referrers, with sizes" } " · "
            a href=(request.href(&format!("refs?of={of}&incoming=1&group-by=class"))) { "by class" } " · "
            a href=(request.href(&format!("refs?of={of}&outgoing=1"))) { "References" } " · "
            a href=(request.href(&format!("refs?of={of}&outgoing=1&group-by=class"))) { "by class" }
        }
        (frame::command(&all, links))
    } }
}
