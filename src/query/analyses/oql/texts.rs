//! Texts of values: Strings, arrays of characters and objects with a meaning.

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::objects::fields::Fields;
use hprof_model::objects::hiding::{self, HIDDEN};
use hprof_model::objects::meaning;
use hprof_model::objects::reader::{Characters, ObjectRecord};
use hprof_values::BasicType;

use super::SHOWN;
use super::evaluate::{EvaluatedRow, Evaluator, MAX_TEXT, character, cut};
use super::value::ExpressionValue;

/// Superclass of all enumerations.
const ENUM: &str = "java.lang.Enum";

impl<'a> Evaluator<'_, 'a> {
    /// Returns whether the text of an object is hidden. Names of classes and constants are not, since they come from the
    /// program.
    pub(super) fn is_hidden(&self, object: ObjectIndex) -> bool {
        let is_constant = || {
            let mut upwards = self
                .dump
                .graph
                .objects
                .class(object)
                .into_iter()
                .flat_map(|class| self.dump.summary.class_table().upwards(class));
            upwards.any(|class| {
                self.dump.summary.class(class).is_some_and(|class| self.dump.summary.is_named(class, ENUM))
            })
        };
        self.hides_values && self.class_of(object).is_none() && !is_constant()
    }

    /// Returns whether [`Self::text`] returns a text of this object that has to be hidden where values are shown.
    pub(super) fn hides_text_of(&self, object: ObjectIndex) -> bool {
        self.is_hidden(object) && !self.hides_contents
    }

    /// Returns whether a value is a text, or a String.
    pub(super) fn is_text(&self, value: &ExpressionValue) -> bool {
        match value {
            ExpressionValue::Text(_) | ExpressionValue::Char(_) => true,
            ExpressionValue::Object(object) => {
                let class = self.dump.graph.objects.class(*object);
                class.and_then(|class| self.strings.get(class.0 as usize)).copied().unwrap_or(false)
            }
            _ => false,
        }
    }

    /// Returns the characters of a String.
    pub(super) fn string(&self, object: ObjectIndex) -> Option<String> {
        let class = self.dump.graph.objects.class(object)?;
        let is_string = self.strings.get(class.0 as usize).copied().unwrap_or(false);
        is_string.then(|| self.dump.objects.string(object).map(|text| self.display_text(&text))).flatten()
    }

    /// Returns the characters of a row that is a String, whose record is already read.
    pub(super) fn string_of_row(&self, row: &EvaluatedRow<'_, 'a>) -> Option<String> {
        let Some(Some(ObjectRecord::Instance(record))) = row.record.get() else { return None };
        let class = self.dump.graph.objects.class(row.object())?;
        let is_string = self.strings.get(class.0 as usize).copied().unwrap_or(false);
        let text = is_string
            .then(|| self.dump.objects.characters(&Fields::new(self.dump.summary, class, record.fields)))
            .flatten()?;
        Some(self.display_text(&text))
    }

    /// Returns a text, or its placeholder if it is hidden.
    fn display_text(&self, text: &Characters<'_>) -> String {
        hiding::text(text, MAX_TEXT, self.hides_contents)
    }

    /// Returns the text of a value, if it has one.
    pub(super) fn text(&self, value: &ExpressionValue) -> Option<String> {
        Some(match value {
            ExpressionValue::Null
            | ExpressionValue::List(..)
            | ExpressionValue::Slice(_)
            | ExpressionValue::Many(_)
            | ExpressionValue::Objects(_)
            | ExpressionValue::Snapshot => {
                return None;
            }
            ExpressionValue::SnapshotInfo => self.dump.heap.path().display().to_string(),
            ExpressionValue::Entry(entry) => {
                let text = |value: &ExpressionValue| self.text(value).unwrap_or_else(|| "null".to_owned());
                format!("{}={}", text(&entry.0), text(&entry.1))
            }
            ExpressionValue::Record(_) => return Some(self.html_text(value)),
            ExpressionValue::Field(..) | ExpressionValue::Static(..) => return self.field_text(value),
            ExpressionValue::Boolean(value) => value.to_string(),
            ExpressionValue::Whole(value) => value.to_string(),
            ExpressionValue::Float(value) => meaning::float(*value),
            ExpressionValue::Double(value) => meaning::double(*value),
            ExpressionValue::Text(text) => text.to_string(),
            ExpressionValue::Char(unit) => character(*unit),
            ExpressionValue::Missing(_) => return None,
            ExpressionValue::Object(object) => return self.object_text(*object),
        })
    }

    /// Returns class and address of an object, or the text of another value, as jhat's `toHtml`, without its markup.
    pub(super) fn html_text(&self, value: &ExpressionValue) -> String {
        match value {
            ExpressionValue::Object(object) => self.technical_name(*object).unwrap_or_default(),
            ExpressionValue::Missing(id) => format!("{id:#x}"),
            ExpressionValue::Record(record) => {
                let values = record.names.iter().zip(&record.values);
                let texts = values.map(|(name, value)| format!("{name}: {}", self.html_text(value)));
                cut(format!("{{{}}}", texts.collect::<Vec<_>>().join(", ")))
            }
            value if value.is_listed() => {
                let items = self.items_of(value).into_iter().flatten().take(SHOWN);
                let texts: Vec<String> = items.map(|item| self.html_text(&item)).collect();
                let more =
                    if self.count(value).is_some_and(|count| count > SHOWN as u64) { ", ..." } else { "" };
                cut(format!("[{}{more}]", texts.join(", ")))
            }
            value => self.text(value).unwrap_or_else(|| "null".to_owned()),
        }
    }

    /// Returns the text of an object, if it has one.
    pub(super) fn object_text(&self, object: ObjectIndex) -> Option<String> {
        if let Some(text) = self.string(object) {
            return Some(text);
        }
        // The text has all elements of an array; its label only the characters up to a zero.
        if let Some(ObjectRecord::PrimitiveArray(array)) = self.dump.objects.record(object) {
            return match array.element {
                BasicType::Char => Some(self.display_text(&Characters::Utf16Be(array.elements?))),
                BasicType::Byte => Some(self.display_text(&Characters::Latin1(array.elements?))),
                _ => None,
            };
        }
        let meaning = self.meanings.meaning(object, MAX_TEXT)?.text;
        Some(if self.hides_contents && self.is_hidden(object) { HIDDEN.to_owned() } else { meaning })
    }
}
