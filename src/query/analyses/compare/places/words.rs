//! Formatting of places as text.

use std::fmt::Write as _;

use hprof_values::names::simple;

use super::AlignedPlaces;
use super::labels::{PlaceLabel, Via};

/// Separator of labels.
const ARROW: &str = " -> ";
/// Maximum number of keys of a path that are omitted one at a time; further keys are omitted together with the last one.
const MAX_KEYS_APART: usize = 4;

/// Display of map keys in the text of places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyDisplay {
    Shown,
    Hidden,
}

impl AlignedPlaces {
    /// Returns the labels of a place from the top: fields, and classes where no field determines the class.
    pub fn labels(&self, place: u32) -> Vec<String> {
        self.words(place, |name| name, self.key_display())
    }

    /// Returns a place on one line. Class names have no package except in static fields.
    pub fn text(&self, place: u32) -> String {
        self.words(place, simple, self.key_display()).join(ARROW)
    }

    fn key_display(&self) -> KeyDisplay {
        if self.hides_values { KeyDisplay::Hidden } else { KeyDisplay::Shown }
    }

    /// Returns a place on one line, like [`Self::text`], with `{*}` for map keys, which are contents of the heap.
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

    /// Returns the spellings of a place on one line: first the text by [`AlignedPlaces::text`], then texts with some or all
    /// keys omitted, as a comparison with another dump omits keys that are not names.
    pub fn spellings(&self, place: u32) -> Vec<String> {
        let words = self.words(place, simple, KeyDisplay::Shown);
        let mut keys: Vec<usize> = Vec::new();
        for place in self.path(place) {
            let word = match &self.label(place).via {
                Via::ValueOf(key) => format!("{{{key}}}"),
                Via::Entry(name) => name.to_string(),
                _ => continue,
            };
            let from = keys.last().map_or(0, |last| last + 1);
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
            Via::Entry(name) if !self.hides_values => format!("{name}: {class}"),
            Via::ValueOf(name) | Via::Entry(name) => format!("{}: {class}", key(name)),
            Via::Stack => format!("local variable: {class}"),
            Via::Root(kind) => format!("{kind}: {class}"),
            Via::Thread(name) => format!("thread \"{}\"", if self.hides_values { "*" } else { name }),
        }
    }

    fn words(&self, place: u32, short: fn(&str) -> &str, keys: KeyDisplay) -> Vec<String> {
        let path: Vec<&PlaceLabel> = self.path(place).into_iter().map(|place| self.label(place)).collect();
        let mut words = Vec::new();
        for (at, label) in path.iter().enumerate() {
            match &label.via {
                Via::Unknown | Via::Value => {}
                Via::Field { class, name } => words.push(format!("{}.{name}", short(class))),
                Via::Static { class, name } => words.push(format!("static {name} of {class}")),
                Via::Key => words.push("key".to_owned()),
                Via::ValueOf(_) | Via::Entry(_) if keys == KeyDisplay::Hidden => words.push("{*}".to_owned()),
                Via::ValueOf(key) => words.push(format!("{{{key}}}")),
                Via::Entry(name) => words.push(name.to_string()),
                Via::Stack => words.push("local variable".to_owned()),
                Via::Root(kind) => words.push(kind.to_string()),
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
