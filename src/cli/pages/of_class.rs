//! The page of a class: declared fields, position in the hierarchy, instances and their referrers.

use maud::html;
use serde_json::Value as Json;

use hprof_query::dictionary::names;
use hprof_report::html::{self, Links, class_name, text};
use hprof_report::number::{group_digits, human_bytes};

use super::ask::CommandQuery;
use super::document::JsonLookup;
use super::frame::{self, Page};
use super::object_links::{id, simple};
use super::request::Request;

/// Maximum number of instances on the page.
const INSTANCES: &str = "20";
/// Maximum number of instances of a class for which the biggest ones are searched immediately.
const MAX_INSTANCES: u64 = 100_000;
/// Maximum number of objects in a dump that are read immediately to find the instances of a class.
const MAX_OBJECTS: u64 = 2_000_000;
/// Range without elements, for `show` of a class object.
const NO_ELEMENTS: &str = "0..0";

/// Returns the `show` query for the class; `None` if the path does not name a class.
pub(crate) fn ask<'a>(request: &Request<'a>) -> Option<CommandQuery<'a>> {
    let of = request.subject().filter(|of| request.path.len() == 2 && !of.is_empty())?;
    Some(request.ask("show").option("range", NO_ELEMENTS).argument(of))
}

pub(crate) fn page(request: &Request<'_>) -> Option<Page> {
    let (of, ask, links) = (request.subject()?, ask(request)?, request.links());
    let classes = request.ask("classes").argument(of);
    let crumbs = |page: Page| page.breadcrumb("Overview", "overview").breadcrumb("Histogram", "histo");
    let (document, notes) = match ask.json() {
        Ok(answer) => answer,
        // Several classes have the name, or none: lists the candidates.
        Err(failure) => {
            let found = classes.grids();
            let is_found =
                found.as_ref().is_ok_and(|found| found.grids.iter().any(|grid| !grid.rows.is_empty()));
            let body = html! {
                (frame::failure_alert(&failure, &links))
                @if is_found { (frame::answer(found, &links, "Classes")) (frame::command(&classes, &links)) }
            };
            let status = if is_found { 200 } else { 404 };
            return Some(crumbs(Page { status, ..Page::new("", format!("Class {of}"), body) }));
        }
    };
    let row = document.row();
    let Some(class) = row.and_then(|row| row.value(names::DESCRIBES)) else {
        // The ID of an instance: the page of the object names its class.
        let body = html! {
            p { (text(of, &links)) " is not a class object." }
            (frame::notes(&notes, &links))
        };
        return Some(crumbs(Page { status: 404, ..Page::new("", format!("Class {of}"), body) }));
    };
    let row = row.unwrap_or(&Json::Null);
    let name = class.text(names::CLASS).to_owned();
    // By ID, since several classes may have the name.
    let exact =
        if row.text(names::OBJECT).is_empty() { name.clone() } else { row.text(names::OBJECT).to_owned() };
    let instances = request.ask("instances").option("top", INSTANCES).argument(&*exact);
    let subclasses =
        request.ask("classes").flag("tree").option("depth", "2").option("top", "50").argument(&*exact);
    let statics: Vec<&Json> =
        row.list(names::FIELDS).iter().filter(|field| !field.text(names::CLASS).is_empty()).collect();
    let query = html::percent_encode(&exact).to_string();
    let pattern = format!("^{}$", regex::escape(&name)).replace('"', "\\x22");
    let by_type = format!(
        "SELECT classof(r).@name AS class, count(*) AS referrers, sum(r.@usedHeapSize) AS bytes FROM OBJECTS \
         (SELECT OBJECTS inbounds(o) FROM \"{pattern}\" o) r GROUP BY class ORDER BY referrers DESC"
    );
    let by_type_out = by_type.replace("inbounds", "outbounds").replace("referrers", "references");
    let count = class.number(names::INSTANCES).unwrap_or_default();
    let body = html! {
        p.dim {
            "extends "
            (html::link(links.class(class.text(names::SUPERCLASS), id(class, names::SUPERCLASS_OBJECT)), class_name(class.text(names::SUPERCLASS))))
            " · loaded by "
            (html::link(id(class, names::LOADER_OBJECT).and_then(|id| links.object(id)), text(class.text(names::LOADER), &Links::none())))
            " · " (html::link(id(row, names::OBJECT).and_then(|id| links.object(id)), "class object"))
        }
        (frame::facts([
            (group_digits(count), "instances"),
            (human_bytes(class.number(names::SHALLOW_BYTES).unwrap_or_default()), "shallow, all instances"),
            (class.number(names::INSTANCE_BYTES).map_or_else(|| "–".to_owned(), human_bytes), "each instance"),
            (row.number(names::RETAINED_BYTES).map_or_else(|| "–".to_owned(), human_bytes), "retained by the class object"),
        ]))
        (frame::notes(&notes, &links))
        @if !statics.is_empty() { section {
            h2 { "Static fields" }
            div.scroll tabindex="0" role="group" aria-label="Static fields" { table {
                thead { tr { th.t scope="col" { "type" } th.t scope="col" { "field" } th.name scope="col" { "value" } } }
                tbody { @for field in &statics { tr {
                    td."t dim" { (text(field.text(names::TYPE), &Links::none())) }
                    td.t { (text(field.text(names::NAME), &Links::none())) }
                    td.name { (super::object::value(field, &links)) }
                } } }
            } }
        } }
        section {
            h2 { "Fields" }
            @if class.list(names::FIELDS).is_empty() { p { "It declares no instance fields." } } @else {
                div.scroll tabindex="0" role="group" aria-label="Fields" { table {
                    thead { tr { th.t scope="col" { "type" } th.name scope="col" { "field" } } }
                    tbody { @for field in class.list(names::FIELDS) { tr {
                        td."t dim" { (text(field.text(names::TYPE), &Links::none())) }
                        td.name { (text(field.text(names::NAME), &Links::none())) }
                    } } }
                } }
            }
        }
        section {
            h2 { "Instances" }
            @if count == 0 { p { "The class itself has no instances." } }
            @else if count > MAX_INSTANCES || super::has(request).objects > MAX_OBJECTS {
                @let all = request.href(&format!("instances?class={query}&top={INSTANCES}"));
                p data-load=(all) { a href=(all) { "Those that retain most" } " take a moment." }
                (frame::command(&instances, &links))
            } @else {
                (frame::answer(instances.grids(), &links, "Instances"))
                (frame::command(&instances, &links))
            }
            p {
                a href=(request.href(&format!("instances?class={query}"))) { "All instances" } " · "
                a href=(request.href(&format!("instances?class={query}&subclasses=1"))) { "with subclasses" } " · "
                a href=(request.href(&format!("paths?of={query}"))) { "Paths to GC roots, merged" } " · "
                a href=(request.href(&format!("retained?of={query}"))) { "Retained set" } " · "
                a href=(request.href(&format!("dominators?of={query}"))) { "Dominator tree" } " · "
                a href=(request.href(&format!("oql?q={}", html::percent_encode(&by_type)))) { "Referrers by type" } " · "
                a href=(request.href(&format!("oql?q={}", html::percent_encode(&by_type_out)))) { "References by type" }
            }
        }
        section {
            h2 { "Subclasses" }
            (frame::answer(subclasses.grids(), &links, "Subclasses"))
            (frame::command(&subclasses, &links))
        }
        (frame::page_command(&ask, request))
    };
    let heading = html! { "class " (class_name(&name)) };
    Some(crumbs(Page::new("", format!("class {}", simple(&name)), body).heading(heading)))
}
