//! Pictures of the dominator tree: a treemap, or an icicle. Each box is a link that zooms.

use maud::{Markup, html};
use rustc_hash::FxHashMap;

use crate::cli::prelude::*;
use crate::cli::shared::containers;
use crate::cli::shared::context::Note;
use crate::cli::shared::frameworks::FrameworksArgs;
use crate::cli::shared::session::ensure_right;
use hprof_index::model::summary::ClassNumber;
use hprof_index::{Dump, ObjectGraph, Quiet};
use hprof_query::containers::Containers;
use hprof_query::dominators::areas::{self, Area, AreaObjects};
use hprof_query::dominators::preorder::Start;
use hprof_query::frameworks::{Frameworks, KnownFrameworks, Naming};
use hprof_query::objects::label::Labels;
use hprof_report::escape;
use hprof_report::html::Links;
use hprof_report::picture::{self, Canvas, Hue, PictureBox};
use hprof_values::ObjectId;

use super::ask::CommandQuery;
use super::frame::{self, Page};
use super::object_links::{id as id_of, object_name as name_of, simple};
use super::request::Request;

/// Kind of picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PictureForm {
    Treemap,
    Icicle,
}

/// Size of a picture on a page with other content.
pub(crate) const SMALL: Canvas = Canvas { width: 1180.0, height: 300.0 };
/// Size of a picture on its own page.
pub(crate) const LARGE: Canvas = Canvas { width: 1180.0, height: 620.0 };
/// Maximum number of areas in a picture.
const AREAS: usize = 800;

/// Returns the command that the page offers for its content (shell, JSON, CSV): the dominator tree, two levels deep.
pub(crate) fn ask<'a>(request: &Request<'a>) -> CommandQuery<'a> {
    let ask = request.ask("dominators").option("depth", "2").option("top", "20");
    match request.value("of") {
        Some(of) => ask.option("of", of),
        None => ask,
    }
}

pub(crate) fn page(request: &Request<'_>) -> Page {
    let (form, path, other) = match request.page() {
        "icicle" => (PictureForm::Icicle, "icicle", ("treemap", "Treemap")),
        _ => (PictureForm::Treemap, "treemap", ("icicle", "Icicle")),
    };
    let of = request.value("of");
    let query = of.map(|of| format!("?of={}", hprof_report::html::percent_encode(of))).unwrap_or_default();
    let chain = of.map(|of| request.ask("dominators").option("of", of).flag("chain").option("top", "30"));
    let links = request.links();
    let ask = ask(request);
    let body = html! {
        p.dim {
            "Each box is an object, or the objects of one class; its area is the retained size. Click to zoom. "
            a href=(request.href(&format!("{}{query}", other.0))) { (other.1) } " · "
            a href=(request.href(&format!("dominators{query}"))) { "Tree" }
            @if let Some(of) = of { " · " a href=(request.href(&format!("object/{}", hprof_report::html::percent_encode(of)))) { "Object" } }
        }
        @if let Some(chain) = &chain { (zoom_path(chain, path, &links)) }
        (figure(request, form, of, LARGE))
        (legend())
        (frame::page_command(&ask, request))
    };
    Page::new(path, if form == PictureForm::Treemap { "Treemap" } else { "Icicle" }, body)
}

/// Renders the path in the tree from the root to the object that the picture shows.
fn zoom_path(chain: &CommandQuery<'_>, path: &str, links: &Links) -> Markup {
    use super::document::JsonLookup;
    let Ok((document, _)) = chain.json() else { return html! {} };
    html! {
        ol.chain aria-label="Zoom" {
            li { (hprof_report::html::link(links.to(path), "all reachable objects")) }
            @for row in document.rows() { li {
                (hprof_report::html::link(
                    id_of(row, names::OBJECT).and_then(|id| links.to(&format!("{path}?of={id:#x}"))),
                    name_of(row, names::CLASS, names::LABEL),
                ))
            } }
        }
    }
}

fn legend() -> Markup {
    html! {
        p.legend.dim {
            "Colors are packages; \u{201c}9,000 × Product\u{201d} are objects of one class. " span.key.ho {} " everything else below the same object"
        }
    }
}

/// Renders the picture with a description.
pub(crate) fn figure(request: &Request<'_>, form: PictureForm, of: Option<&str>, canvas: Canvas) -> Markup {
    let links = request.links();
    match area(request.cx, request.site, request.dump, of) {
        Ok((Some((area, names)), notes)) => html! {
            (frame::notes(&notes, &links))
            (figure_of(&area, &names, form, canvas, of, &links))
        },
        Ok((None, _)) => html! { p { "There is no such object, or it is unreachable." } },
        Err(error) => html! { p { (hprof_report::escape::text(&format!("{error:#}"))) } },
    }
}

/// The areas of a picture, and their class names.
type Picture = (Area, PictureNames);

/// Class names in a picture, and the names that rules about frameworks give to its objects.
pub(crate) struct PictureNames {
    classes: Vec<String>,
    called: FxHashMap<ObjectId, String>,
    /// Elements of containers: `40,000 x Order`.
    elements: FxHashMap<ObjectId, String>,
}

impl PictureNames {
    /// Adds the names that rules give to the single objects in an area.
    fn add_called(&mut self, area: &Area, graph: &ObjectGraph, known: &KnownFrameworks<'_, '_>) {
        if let AreaObjects::Object { id, chain, .. } = &area.what {
            for id in chain.iter().map(|link| link.id).chain([*id]) {
                let object = graph.objects.addresses.index_of(id);
                let object = object.filter(|object| known.naming(*object) != Naming::Many);
                self.called.extend(object.and_then(|object| Some((id, known.name_of(object)?))));
            }
        }
        area.children.iter().for_each(|child| self.add_called(child, graph, known));
    }

    fn class_name(&self, class: Option<ClassNumber>) -> &str {
        class.and_then(|class| self.classes.get(class.0 as usize)).map_or("?", String::as_str)
    }
}

/// Draws the picture of an area. The area that the page is about is not a link to itself.
pub(crate) fn figure_of(
    area: &Area,
    names: &PictureNames,
    form: PictureForm,
    canvas: Canvas,
    of: Option<&str>,
    links: &Links,
) -> Markup {
    let zoom = match form {
        PictureForm::Treemap => "treemap",
        PictureForm::Icicle => "icicle",
    };
    let whole = area.retained_bytes;
    let here = of.and_then(|of| hprof_query::naming::object_id::object_id(of).ok());
    let to = |id| if Some(id) == here { None } else { links.to(&format!("{zoom}?of={id:#x}")) };
    let node = node(area, names, whole, None, &to);
    html! {
        figure data-part="picture" tabindex="0" aria-label="Picture" {
            @match form {
                PictureForm::Treemap => (picture::treemap(&node, canvas)),
                PictureForm::Icicle => (picture::icicle(&node, canvas)),
            }
        }
    }
}

/// Returns the areas below an object, or of the whole tree.
pub(crate) fn area(
    cx: &RunContext,
    site: &super::site::Site,
    dump: &std::path::Path,
    of: Option<&str>,
) -> anyhow::Result<(Option<Picture>, Vec<Note>)> {
    let input = Input::of_words(dump, &site.options)?;
    let cx = cx.taking(0);
    let frameworks = FrameworksArgs::default().rules(&cx)?;
    let (_, graph, found) =
        input.with_graph(&cx, |graph| area_in(&graph.with_records(&Quiet)?, of, &frameworks))?;
    ensure_right(&graph)?;
    Ok((found, cx.into_output().notes))
}

fn area_in(dump: &Dump<'_>, of: Option<&str>, frameworks: &Frameworks) -> anyhow::Result<Option<Picture>> {
    let start = match of {
        None => Some(Start::Roots),
        Some(of) => {
            let id = hprof_query::naming::object_id::object_id(of)?;
            let object = dump.graph.objects.addresses.index_of(id);
            object.and_then(|object| dump.graph.tree.reachable_position(object)).map(Start::Object)
        }
    };
    let Some(start) = start else { return Ok(None) };
    let labels = Labels::new(dump);
    let question = areas::AreaQuery { start, max_areas: AREAS, ..areas::AreaQuery::default() };
    let area = areas::areas(dump, &labels, &question);
    let summary = dump.summary;
    let classes = summary.classes().iter().map(|class| summary.class_name(class).to_owned()).collect();
    let containers = Containers::find(dump)?;
    let stores = containers.all.iter().filter(|one| one.accumulates());
    let elements = stores.map(|one| (one.object, containers::elements(one, true))).collect();
    let mut names = PictureNames { classes, called: FxHashMap::default(), elements };
    names.add_called(&area, dump.graph, &KnownFrameworks::new(dump, frameworks));
    Ok(Some((area, names)))
}

/// Returns the displayed name of an object: its class, or, for a class object, the class it represents.
fn object_name(names: &PictureNames, class: Option<ClassNumber>, represents: Option<ClassNumber>) -> String {
    match represents {
        Some(of) => format!("class {}", simple(names.class_name(Some(of)))),
        None => simple(names.class_name(class)).to_owned(),
    }
}

/// Draws an area as a box; the box of merged objects is a link to the object that they are below.
fn node(
    area: &Area,
    names: &PictureNames,
    whole: u64,
    above: Option<ObjectId>,
    zoom: &dyn Fn(ObjectId) -> Option<String>,
) -> PictureBox {
    let (name, full, to, hue) = match &area.what {
        AreaObjects::All => {
            ("all reachable objects".to_owned(), "all reachable objects".to_owned(), None, Hue::Others)
        }
        AreaObjects::Object { id, class, represents, label, chain } => {
            let called = |id, class, represents| match names.called.get(id) {
                Some(called) => escape::text(called).into_owned(),
                None => object_name(names, class, represents),
            };
            let mut parts: Vec<String> =
                chain.iter().map(|link| called(&link.id, link.class, link.represents)).collect();
            parts.push(called(id, *class, *represents));
            let label = label.as_deref().filter(|_| represents.is_none());
            let mut label = label.map(|label| format!(" {label}")).unwrap_or_default();
            if let Some(elements) = names.elements.get(id) {
                label = format!("{label}: {}", escape::text(elements));
            }
            let full = names.class_name(represents.or(*class));
            let hue = Hue::of_class(full);
            (format!("{}{label}", parts.join(" › ")), format!("{full} {id:#x}{label}"), Some(*id), hue)
        }
        AreaObjects::Merged { class, objects, parent } => {
            let name = format!("{} × {}", group_digits(*objects), simple(names.class_name(*class)));
            let full = format!("{} × {}", group_digits(*objects), names.class_name(*class));
            (name, full, parent.or(above), Hue::of_class(names.class_name(*class)))
        }
        AreaObjects::Others { objects } => {
            let name = format!("{} others", group_digits(*objects));
            (name.clone(), name, above, Hue::Others)
        }
    };
    let bytes = area.retained_bytes;
    let here = match &area.what {
        AreaObjects::Object { id, .. } => Some(*id),
        _ => above,
    };
    PictureBox {
        title: format!("{full}\n{} retained, {}", human_bytes(bytes), percent(bytes, whole)),
        name: format!("{name} {}", human_bytes(bytes)),
        href: to.and_then(zoom),
        bytes,
        hue,
        children: area.children.iter().map(|child| node(child, names, whole, here, zoom)).collect(),
    }
}
