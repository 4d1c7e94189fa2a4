//! The dominator tree as a picture: a treemap, or an icicle. Each box is a link that zooms.

use maud::{Markup, html};

use crate::cli::shared::args::Input;
use crate::cli::shared::context::{Note, RunContext};
use crate::cli::shared::session::ensure_right;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::{Heap, ObjectGraph, Quiet};
use hprof_parser::ObjectId;
use hprof_query::dictionary::names;
use hprof_query::dominators::areas::{self, Area, What};
use hprof_query::dominators::preorder::Start;
use hprof_query::objects::label::Labels;
use hprof_report::html::Links;
use hprof_report::number::{grouped, human_bytes, percent};
use hprof_report::picture::{self, Canvas, Hue, PictureBox};

use super::ask::Ask;
use super::frame::{self, Page};
use super::names::{called as name_of, id as id_of, simple};
use super::request::Request;

/// Which picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Treemap,
    Icicle,
}

/// Of a picture beside other things.
pub(crate) const SMALL: Canvas = Canvas { width: 1180.0, height: 300.0 };
/// Of a picture that has a page.
pub(crate) const LARGE: Canvas = Canvas { width: 1180.0, height: 620.0 };
/// Areas of the pictures.
const AREAS: usize = 800;

/// The same in a shell: the tree, two levels deep.
pub(crate) fn ask<'a>(request: &Request<'a>) -> Ask<'a> {
    let ask = request.ask("dominators").option("depth", "2").option("top", "20");
    match request.one("of") {
        Some(of) => ask.option("of", of),
        None => ask,
    }
}

pub(crate) fn page(request: &Request<'_>) -> Page {
    let (form, path, other) = match request.page() {
        "icicle" => (Form::Icicle, "icicle", ("treemap", "Treemap")),
        _ => (Form::Treemap, "treemap", ("icicle", "Icicle")),
    };
    let of = request.one("of");
    let query = of.map(|of| format!("?of={}", hprof_report::html::encoded(of))).unwrap_or_default();
    let chain = of.map(|of| request.ask("dominators").option("of", of).flag("chain").option("top", "30"));
    let links = request.links();
    let ask = ask(request);
    let body = html! {
        p.dim {
            "Each box is an object, or objects of one class, and as large as what it retains. A click zooms. "
            a href=(request.href(&format!("{}{query}", other.0))) { (other.1) } " · "
            a href=(request.href(&format!("dominators{query}"))) { "Tree" }
            @if let Some(of) = of { " · " a href=(request.href(&format!("object/{}", hprof_report::html::encoded(of)))) { "Object" } }
        }
        @if let Some(chain) = &chain { (zoom_path(chain, path, &links)) }
        (figure(request, form, of, LARGE))
        (legend())
        (frame::whole(&ask, request))
    };
    Page::new(path, if form == Form::Treemap { "Treemap" } else { "Icicle" }, body)
}

/// Where the picture is in the tree: the path of the zoom.
fn zoom_path(chain: &Ask<'_>, path: &str, links: &Links) -> Markup {
    use super::document::Look;
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

/// The picture, in a frame that says what it is of.
pub(crate) fn figure(request: &Request<'_>, form: Form, of: Option<&str>, canvas: Canvas) -> Markup {
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

/// The areas of a picture, and the names of their classes.
type Picture = (Area, Names);

/// Names of the classes of a picture.
pub(crate) struct Names(Vec<String>);

impl Names {
    fn of(&self, class: Option<ClassNumber>) -> &str {
        class.and_then(|class| self.0.get(class.0 as usize)).map_or("?", String::as_str)
    }
}

/// The picture of an area. What leads to where it is already is no link.
pub(crate) fn figure_of(
    area: &Area,
    names: &Names,
    form: Form,
    canvas: Canvas,
    of: Option<&str>,
    links: &Links,
) -> Markup {
    let zoom = match form {
        Form::Treemap => "treemap",
        Form::Icicle => "icicle",
    };
    let whole = area.retained_bytes;
    let here = of.and_then(|of| hprof_query::objects::selection::object_id(of).ok());
    let to = |id| if Some(id) == here { None } else { links.to(&format!("{zoom}?of={id:#x}")) };
    let node = node(area, names, whole, None, &to);
    html! {
        figure data-part="picture" tabindex="0" aria-label="Picture" {
            @match form {
                Form::Treemap => (picture::treemap(&node, canvas)),
                Form::Icicle => (picture::icicle(&node, canvas)),
            }
        }
    }
}

/// The areas below an object, or all.
pub(crate) fn area(
    cx: &RunContext,
    site: &super::site::Site,
    dump: &std::path::Path,
    of: Option<&str>,
) -> anyhow::Result<(Option<Picture>, Vec<Note>)> {
    let input = Input::of_words(dump, &site.options)?;
    let cx = cx.taking(0);
    let (_, graph, found) = input.with_graph(&cx, |heap, graph| area_in(heap, graph, of))?;
    ensure_right(&graph)?;
    Ok((found, cx.into_said().notes))
}

fn area_in(heap: &Heap, graph: &ObjectGraph, of: Option<&str>) -> anyhow::Result<Option<Picture>> {
    let start = match of {
        None => Some(Start::Roots),
        Some(of) => {
            let id = hprof_query::objects::selection::object_id(of)?;
            let object = graph.objects.addresses.index_of(id);
            object.and_then(|object| graph.tree.reachable_position(object)).map(Start::Object)
        }
    };
    let Some(start) = start else { return Ok(None) };
    let labels = Labels::new(heap, graph, heap.bytes(&Quiet)?);
    let question = areas::Question { start, max_areas: AREAS, ..areas::Question::default() };
    let area = areas::areas(heap.summary(), graph, &labels, &question);
    Ok(Some((area, names(heap.summary()))))
}

fn names(summary: &Summary) -> Names {
    Names(summary.classes().iter().map(|class| summary.class_name(class).to_owned()).collect())
}

/// What an object of a picture is called: its class, or of a class object the class that it is.
fn called(names: &Names, class: Option<ClassNumber>, represents: Option<ClassNumber>) -> String {
    match represents {
        Some(of) => format!("class {}", simple(names.of(Some(of)))),
        None => simple(names.of(class)).to_owned(),
    }
}

/// An area as a box; boxes of what was merged lead to the object that they are below.
fn node(
    area: &Area,
    names: &Names,
    whole: u64,
    above: Option<ObjectId>,
    zoom: &dyn Fn(ObjectId) -> Option<String>,
) -> PictureBox {
    let (name, full, to, hue) = match &area.what {
        What::All => {
            ("all reachable objects".to_owned(), "all reachable objects".to_owned(), None, Hue::Others)
        }
        What::Object { id, class, represents, label, chain } => {
            let mut parts: Vec<String> =
                chain.iter().map(|link| called(names, link.class, link.represents)).collect();
            parts.push(called(names, *class, *represents));
            let label = label.as_deref().filter(|_| represents.is_none());
            let label = label.map(|label| format!(" {label}")).unwrap_or_default();
            let full = names.of(represents.or(*class));
            let hue = Hue::of_class(full);
            (format!("{}{label}", parts.join(" › ")), format!("{full} {id:#x}{label}"), Some(*id), hue)
        }
        What::Merged { class, objects, parent } => {
            let name = format!("{} × {}", grouped(*objects), simple(names.of(*class)));
            let full = format!("{} × {}", grouped(*objects), names.of(*class));
            (name, full, parent.or(above), Hue::of_class(names.of(*class)))
        }
        What::Others { objects } => {
            let name = format!("{} others", grouped(*objects));
            (name.clone(), name, above, Hue::Others)
        }
    };
    let bytes = area.retained_bytes;
    let here = match &area.what {
        What::Object { id, .. } => Some(*id),
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
