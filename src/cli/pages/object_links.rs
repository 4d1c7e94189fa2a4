//! Displayed names of objects, and links to their pages.

use maud::{Markup, html};
use serde_json::Value as Json;

use super::document::JsonLookup;
use hprof_query::dictionary::{Name, names};
use hprof_report::html::{self, Links, class_name, text};
use hprof_values::ObjectId;

/// Name of the class of class objects.
const CLASS: &str = "java.lang.Class";

/// Returns the object ID at a key of a document.
pub(crate) fn id(of: &Json, name: Name) -> Option<ObjectId> {
    let digits = of.text(name).strip_prefix("0x")?;
    u64::from_str_radix(digits, 16).ok().filter(|id| *id != 0).map(ObjectId)
}

/// Returns the URL of the page of the object that a record describes.
pub(crate) fn object(of: &Json, links: &Links) -> Option<String> {
    id(of, names::OBJECT).and_then(|id| links.object(id))
}

/// Returns a class name without its package.
pub(crate) fn simple(class: &str) -> &str {
    class.rsplit_once('.').map_or(class, |(_, simple)| simple)
}

/// Returns the displayed name of an object: its class; for a class object, the class it represents.
pub(crate) fn object_name(of: &Json, class: Name, label: Name) -> Markup {
    let (class, label) = (of.text(class), of.text(label));
    html! {
        @if class == CLASS && !label.is_empty() { "class " (class_name(label)) } @else { (class_name(class)) }
    }
}

/// Returns the displayed name as a link to the object's page, with the label that distinguishes it from other objects.
pub(crate) fn object_link(of: &Json, class: Name, label: Name, links: &Links) -> Markup {
    let is_class = of.text(class) == CLASS;
    html! {
        (html::link(object(of, links), object_name(of, class, label)))
        @if !is_class && !of.text(label).is_empty() { " " q { (text(of.text(label), &Links::none())) } }
    }
}
