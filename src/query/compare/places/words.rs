//! Places as text.

use std::fmt::Write as _;

use hprof_parser::names::{is_of_jdk, simple};

use super::Aligned;
use super::labels::{Label, Via};

/// Separator of labels.
const ARROW: &str = " -> ";
/// Labels examined for the field of the program that holds a library's object.
const OWNER_STEPS: usize = 6;
/// Maximum number of keys of a path that are omitted one at a time; later ones are omitted with the last.
const MAX_KEYS_APART: usize = 4;

/// Display of map keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyDisplay {
    Shown,
    Hidden,
}

/// A place in few words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceTitle {
    /// The words.
    pub text: String,
    /// `true` if they begin with a name that the program gave: a key of a map.
    pub is_named: bool,
}

impl Aligned {
    /// Returns a place as labels from the top: fields, and classes where no field determines them.
    pub fn labels(&self, place: u32) -> Vec<String> {
        self.words(place, |name| name, self.shown())
    }

    /// Returns a place on one line. Class names have no package except in static fields.
    pub fn text(&self, place: u32) -> String {
        self.words(place, simple, self.shown()).join(ARROW)
    }

    fn shown(&self) -> KeyDisplay {
        if self.hides_values { KeyDisplay::Hidden } else { KeyDisplay::Shown }
    }

    /// Like [`Self::text`], with `{*}` for keys, which are contents of the heap.
    pub fn text_without_keys(&self, place: u32) -> String {
        self.words(place, simple, KeyDisplay::Hidden).join(ARROW)
    }

    /// Returns the keys of a place, from the top.
    pub fn keys(&self, place: u32) -> Vec<&str> {
        let via = |place| match &self.label(place).via {
            Via::ValueOf(key) | Via::Entry(key) if !self.hides_values => Some(&**key),
            _ => None,
        };
        self.path(place).into_iter().filter_map(via).collect()
    }

    /// Returns a place on one line, first as [`Aligned::text`] does, then without some keys or all: in comparison with
    /// another dump, keys that are not names are omitted.
    pub fn spellings(&self, place: u32) -> Vec<String> {
        let words = self.words(place, simple, KeyDisplay::Shown);
        let mut keys: Vec<usize> = Vec::new();
        for place in self.path(place) {
            let (Via::ValueOf(key) | Via::Entry(key)) = &self.label(place).via else { continue };
            let (word, from) = (format!("{{{key}}}"), keys.last().map_or(0, |last| last + 1));
            keys.extend(words.iter().skip(from).position(|one| *one == word).map(|at| from + at));
        }
        let spelling = |left_out: usize| {
            let is_left_out = |at: usize| {
                let key = keys.iter().position(|key| *key == at);
                key.is_some_and(|key| left_out >> key.min(MAX_KEYS_APART - 1) & 1 == 1)
            };
            let words = words.iter().enumerate().filter(|(at, _)| !is_left_out(*at));
            words.map(|(_, word)| word.as_str()).collect::<Vec<_>>().join(ARROW)
        };
        (0..1 << keys.len().min(MAX_KEYS_APART)).map(spelling).collect()
    }

    /// Returns a place in few words: `HashMap sessions of Chat`, `orderCache (LookupTable.map)`.
    pub fn title(&self, place: u32) -> PlaceTitle {
        let mut path = self.path(place);
        let last = path.pop().map(|place| self.label(place).clone());
        let Some(last) = last else { return PlaceTitle { text: String::new(), is_named: false } };
        let key = |place: &u32| match (&self.label(*place).called, &self.label(*place).via) {
            _ if self.hides_values => None,
            (Some(called), _) => Some(called.to_string()),
            (None, Via::ValueOf(key) | Via::Entry(key)) => Some(key.to_string()),
            (None, _) => None,
        };
        if let Some(called) = &last.called {
            let owner = last.is_generic.then(|| self.owner(place)).flatten();
            let text = owner.map_or_else(|| called.to_string(), |owner| format!("{called} {owner}"));
            return PlaceTitle { text, is_named: true };
        }
        let class = simple(last.class.as_deref().unwrap_or("<unknown class>"));
        if let Via::ValueOf(_) | Via::Entry(_) = &last.via
            && let Some(key) = key(&place)
        {
            return PlaceTitle { text: format!("{key} ({class})"), is_named: true };
        }
        let named = path.iter().rev().find_map(key);
        let held = match &last.via {
            Via::Field { class: owner, name } => {
                Some((format!("{name} of {}", simple(owner)), format!("{}.{name}", simple(owner))))
            }
            Via::Static { class: owner, name } => {
                Some((format!("{owner}.{name}"), format!("{}.{name}", simple(owner))))
            }
            _ => None,
        };
        match (named, held) {
            (Some(named), Some((_, short))) => {
                PlaceTitle { text: format!("{named} ({short})"), is_named: true }
            }
            (Some(named), None) => PlaceTitle { text: format!("{named} ({class})"), is_named: true },
            (None, Some((held, _))) => PlaceTitle { text: format!("{class} {held}"), is_named: false },
            (None, None) => {
                let text = match (&last.via, path.last()) {
                    (Via::Thread(_), _) | (Via::Root(_), _) | (_, None) => self.step(place),
                    (_, Some(above)) => format!("{class} in {}", self.title(*above).text),
                };
                PlaceTitle { text, is_named: false }
            }
        }
    }

    /// Returns the field of the program that holds a library's object: `products of CatalogServer`.
    fn owner(&self, place: u32) -> Option<String> {
        let library = |class: &str| class.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
        let own = self.label(place).class.as_deref().map(library)?;
        let path = self.path(place);
        path.iter().rev().take(OWNER_STEPS).find_map(|at| match &self.label(*at).via {
            Via::Field { class, name } if !is_of_jdk(class) && library(class) != own => {
                Some(format!("{name} of {}", simple(class)))
            }
            Via::Static { class, name } if library(class) != own => Some(format!("{}.{name}", simple(class))),
            _ => None,
        })
    }

    /// Returns the last label of a place in words: `sessions: HashMap`, below the place that has the field.
    pub fn step(&self, place: u32) -> String {
        let label = self.label(place);
        let class = label.class.as_deref().unwrap_or("<unknown class>");
        if label.is_class_object {
            return format!("class {class}");
        }
        let class = label.called.as_deref().unwrap_or_else(|| simple(class));
        let key = |key: &str| if self.hides_values { "{*}".to_owned() } else { format!("{{{key}}}") };
        match &label.via {
            Via::Unknown | Via::Value => class.to_owned(),
            Via::Field { name, .. } => format!("{name}: {class}"),
            Via::Static { name, .. } => format!("static {name}: {class}"),
            Via::Key => format!("key: {class}"),
            Via::ValueOf(name) | Via::Entry(name) => format!("{}: {class}", key(name)),
            Via::Stack => format!("local variable: {class}"),
            Via::Root(kind) => format!("{kind}: {class}"),
            Via::Thread(name) => format!("thread \"{}\"", if self.hides_values { "*" } else { name }),
        }
    }

    fn words(&self, place: u32, short: fn(&str) -> &str, keys: KeyDisplay) -> Vec<String> {
        let path: Vec<&Label> = self.path(place).into_iter().map(|place| self.label(place)).collect();
        let mut words = Vec::new();
        for (at, label) in path.iter().enumerate() {
            match &label.via {
                Via::Unknown | Via::Value => {}
                Via::Field { class, name } => words.push(format!("{}.{name}", short(class))),
                Via::Static { class, name } => words.push(format!("static {name} of {class}")),
                Via::Key => words.push("key".to_owned()),
                Via::ValueOf(_) | Via::Entry(_) if keys == KeyDisplay::Hidden => words.push("{*}".to_owned()),
                Via::ValueOf(key) | Via::Entry(key) => words.push(format!("{{{key}}}")),
                Via::Stack => words.push("local variable".to_owned()),
                Via::Root(kind) => words.push((*kind).to_owned()),
                Via::Thread(name) => {
                    let name = if self.hides_values { "*" } else { name };
                    let mut thread = String::from("thread ");
                    let _ = write!(thread, "\"{name}\"");
                    words.push(thread);
                }
            }
            // The field determines the class of the object.
            let is_said = label.called.is_none()
                && match (path.get(at + 1).map(|next| &next.via), &label.class) {
                    (Some(Via::Static { .. }), _) => label.is_class_object,
                    (Some(Via::Field { class, .. }), Some(own)) => {
                        class == own || matches!(label.via, Via::Thread(_))
                    }
                    (Some(_), _) => matches!(label.via, Via::Thread(_)),
                    (None, _) => matches!(label.via, Via::Thread(_)),
                };
            if !is_said {
                let class = label.class.as_deref().unwrap_or("<unknown class>");
                // With its package, as in a static field.
                words.push(if let Some(called) = &label.called {
                    called.to_string()
                } else if label.is_class_object {
                    format!("class {class}")
                } else {
                    short(class).to_owned()
                });
            }
        }
        words
    }
}
