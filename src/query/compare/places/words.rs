//! Places in words.

use std::fmt::Write as _;

use crate::hprof::names::simple;

use super::Aligned;
use super::labels::{Label, Via};

/// What stands between labels.
const ARROW: &str = " -> ";

impl Aligned {
    /// A place as labels from the top: fields, and classes where no field says them.
    pub fn labels(&self, place: u32) -> Vec<String> {
        self.words(place, |name| name)
    }

    /// A place in one line. Classes have no packages but in static fields.
    pub fn text(&self, place: u32) -> String {
        self.words(place, simple).join(ARROW)
    }

    fn words(&self, place: u32, short: fn(&str) -> &str) -> Vec<String> {
        let path: Vec<&Label> = self.path(place).into_iter().map(|place| self.label(place)).collect();
        let mut words = Vec::new();
        for (at, label) in path.iter().enumerate() {
            match &label.via {
                Via::Unknown => {}
                Via::Field { class, name } => words.push(format!("{}.{name}", short(class))),
                Via::Static { class, name } => words.push(format!("static {name} of {class}")),
                Via::Key => words.push("key".to_owned()),
                Via::ValueOf(key) => words.push(format!("{{{key}}}")),
                Via::Stack => words.push("local variable".to_owned()),
                Via::Root(kind) => words.push((*kind).to_owned()),
                Via::Thread(name) => {
                    let mut thread = String::from("thread ");
                    let _ = write!(thread, "\"{name}\"");
                    words.push(thread);
                }
            }
            // The field of an object says its class.
            let is_said = match (path.get(at + 1).map(|next| &next.via), &label.class) {
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
                words.push(if label.is_class_object {
                    format!("class {class}")
                } else {
                    short(class).to_owned()
                });
            }
        }
        words
    }
}
