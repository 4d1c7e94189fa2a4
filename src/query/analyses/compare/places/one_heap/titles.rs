//! Short names of places.

use hprof_index::storage::human_bytes::group_digits;
use hprof_values::names::{is_of_jdk, simple};

use super::super::labels::Via;
use super::{AlignedPlaces, ExplainedPlace};
use crate::frameworks::Naming;

/// Maximum number of labels that are examined to find the program's field that holds a library's object.
const OWNER_STEPS: usize = 10;
/// Text for a class that is not in the dump.
const UNKNOWN_CLASS: &str = "<unknown class>";

/// Short name of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceTitle {
    /// The name.
    pub text: String,
    /// `true` if it begins with a name from the program: a map key, or a name by a framework's rule.
    pub is_named: bool,
}

/// Returns the library of a class: the first two parts of its package.
pub fn library(class: &str) -> &str {
    let package = class.rsplit_once('.').map_or("", |(package, _)| package);
    let end = package.match_indices('.').nth(1).map_or(package.len(), |(at, _)| at);
    package.get(..end).unwrap_or(package)
}

impl AlignedPlaces {
    /// Returns the short name of a place: `HashMap sessions of Chat`, `orderCache (LookupTable.map)`.
    pub fn title(&self, place: u32) -> PlaceTitle {
        let mut path = self.path(place);
        path.pop();
        let last = self.label(place);
        if let Some(called) = &last.called {
            let owner = (last.naming == Naming::Generic).then(|| self.owner(place)).flatten();
            let text = owner.map_or_else(|| called.to_string(), |owner| format!("{called} {owner}"));
            return PlaceTitle { text, is_named: true };
        }
        let key = |place: u32| {
            let label = self.label(place);
            match (&label.called, &label.via) {
                _ if self.hides_values => None,
                (Some(called), _) => Some(called.to_string()),
                (None, Via::ValueOf(key) | Via::Entry(key)) => Some(key.to_string()),
                (None, _) => None,
            }
        };
        let class = simple(last.class.as_deref().unwrap_or(UNKNOWN_CLASS));
        let held = match &last.via {
            Via::Field { class: owner, name } => {
                Some((format!("{name} of {}", simple(owner)), format!("{}.{name}", simple(owner))))
            }
            Via::Static { class: owner, name } => {
                Some((format!("{owner}.{name}"), format!("{}.{name}", simple(owner))))
            }
            _ => None,
        };
        let named = key(place).or_else(|| path.iter().rev().find_map(|place| key(*place)));
        if let Some(named) = named {
            let short = held.map_or_else(|| class.to_owned(), |(_, short)| short);
            return PlaceTitle { text: format!("{named} ({short})"), is_named: true };
        }
        let text = match (held, &last.via, path.last()) {
            (Some((held, _)), ..) => match self.program_field(place) {
                Some(field) => format!("{class} {held}, in {field}"),
                None => format!("{class} {held}"),
            },
            (None, Via::Root(kind), None) if !last.is_class_object => {
                format!("{class} of a GC root ({kind})")
            }
            (None, Via::Thread(_) | Via::Root(_), _) | (None, _, None) => self.step(place),
            (None, _, Some(above)) => format!("{class} in {}", self.title(*above).text),
        };
        PlaceTitle { text, is_named: false }
    }

    /// Returns the program's field that holds a library's object: `products of CatalogServer`.
    fn owner(&self, place: u32) -> Option<String> {
        self.field_outside(place, library(self.label(place).class.as_deref()?))
    }

    /// Returns the program's field above the library's field that holds an object: `em of Importer` for a map in a field of an
    /// entity manager.
    fn program_field(&self, place: u32) -> Option<String> {
        match &self.label(place).via {
            Via::Field { class, .. } if !is_of_jdk(class) => self.field_outside(place, library(class)),
            _ => None,
        }
    }

    /// Returns the nearest field above a place whose class is neither in the library `own` nor in the JDK.
    fn field_outside(&self, place: u32, own: &str) -> Option<String> {
        self.path(place).iter().rev().take(OWNER_STEPS).find_map(|at| match &self.label(*at).via {
            Via::Field { class, name } if !is_of_jdk(class) && library(class) != own => {
                Some(format!("{name} of {}", simple(class)))
            }
            Via::Static { class, name } if !is_of_jdk(class) && library(class) != own => {
                Some(format!("{}.{name}", simple(class)))
            }
            _ => None,
        })
    }

    /// Returns the short names of places and of the elements that they store: `HashMap sessions of Chat: 12,000 x Session`.
    pub(super) fn description(&self, explained: &ExplainedPlace) -> String {
        let label = self.label(explained.place);
        let title = self.title(explained.place).text;
        let Some(elements) = &explained.elements else { return title };
        let all = group_digits(elements.objects);
        if elements.place == explained.place {
            let above = self.path(explained.place).into_iter().rev().nth(1);
            return match (&label.via, above.filter(|_| label.called.is_none())) {
                _ if label.naming == Naming::Many => format!("{all} {title}"),
                (Via::Thread(name), _) if name.is_empty() => format!("{all} threads"),
                (Via::Thread(_), _) => format!("{all} threads {}", title.trim_start_matches("thread ")),
                (Via::Unknown | Via::Value, Some(above)) => {
                    let class = simple(label.class.as_deref().unwrap_or(UNKNOWN_CLASS));
                    format!("{}: {all} x {class}", self.title(above).text)
                }
                _ => format!("{all} x {title}"),
            };
        }
        let of = self.label(elements.place);
        if let (Some(called), Naming::Many) = (&of.called, of.naming) {
            return format!("{} {called}", group_digits(self.figures(0, elements.place).objects));
        }
        let class = simple(of.class.as_deref().unwrap_or(UNKNOWN_CLASS));
        let least = if elements.is_lower_bound { "at least " } else { "" };
        match elements.is_mostly {
            true => format!("{title}: {least}{all} elements, mostly {class}"),
            false => format!("{title}: {least}{all} x {class}"),
        }
    }
}
