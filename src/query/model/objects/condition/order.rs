//! Objects in the order of one of their fields: `--sort size`.
//!
//! The largest numbers come first, `true` before `false`; then texts from A to Z: contents of Strings, chars, and the
//! labels of other objects, which conditions compare as well. Then objects without a label, then null, and last objects
//! without the field.

use std::cmp::Reverse;
use std::str::FromStr;

use crate::objects::class_set::ClassSet;
use crate::objects::label::Labels;
use crate::objects::reader::{Bits, ObjectReader, ObjectRecord};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_values::BasicType;

use super::error::ConditionError;
use super::path::{FieldPath, StepPlaces};

/// Number of UTF-16 units of a text that are compared; texts with the same prefix are in the order of their objects.
const MAX_UNITS: usize = 200;

/// A field to sort by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortField {
    path: FieldPath,
    written: String,
}

/// Error for a text that is not a field name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a field name; field names look like size or holder.daemon")]
pub struct NoSortField(String);

impl SortField {
    /// Returns the field as given.
    pub fn name(&self) -> &str {
        &self.written
    }
}

impl FromStr for SortField {
    type Err = NoSortField;

    fn from_str(text: &str) -> Result<Self, NoSortField> {
        let path = FieldPath::new(text).ok_or_else(|| NoSortField(text.to_owned()))?;
        Ok(Self { path, written: text.to_owned() })
    }
}

/// Sort key of an object: smaller ones come first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FieldKey {
    /// A number: its order among doubles, then, since whole numbers are denser than doubles, the number itself.
    Number(Reverse<(u64, i64)>),
    NotANumber,
    Text(Box<[u16]>),
    Object,
    Null,
    NoField,
}

/// Value by which an object is sorted.
#[derive(Debug, Clone, PartialEq)]
pub enum SortValue {
    /// A whole number; `true` is 1.
    Whole(i64),
    /// A floating-point number.
    Fraction(f64),
    /// A text, or its start.
    Text(String),
}

/// Order by a field, prepared for evaluation.
#[derive(Debug)]
pub struct FieldOrder<'a> {
    pub(crate) objects: &'a ObjectReader<'a>,
    labels: &'a Labels<'a>,
    field: &'a SortField,
    places: StepPlaces,
    strings: ClassSet,
    numbers: ClassSet,
}

impl<'a> FieldOrder<'a> {
    /// Prepares the order for objects of these classes.
    ///
    /// # Errors
    /// If none of the classes has the field.
    pub fn new(
        objects: &'a ObjectReader<'a>,
        labels: &'a Labels<'a>,
        field: &'a SortField,
        classes: &ClassSet,
    ) -> Result<Self, ConditionError> {
        let places = field.path.places(objects);
        field.path.check(&field.written, objects.summary, classes, &places)?;
        let below = |name| ClassSet::of_name_and_below(objects.summary, name);
        let (strings, numbers) = (below("java.lang.String"), below("java.lang.Number"));
        Ok(Self { objects, labels, field, places, strings, numbers })
    }

    /// Returns the field as given.
    pub fn name(&self) -> &str {
        self.field.name()
    }

    /// Returns the value that an object is sorted by; for a text, its start. `None` if it is null, or an object without
    /// a label, or if there is no such field.
    pub fn value(&self, object: ObjectIndex) -> Option<SortValue> {
        match self.key(object, &self.objects.record(object)?) {
            FieldKey::Number(Reverse((at, number))) => Some(match integer(number) {
                FieldKey::Number(Reverse((same, _))) if same == at => SortValue::Whole(number),
                _ => SortValue::Fraction(number_at(at)),
            }),
            FieldKey::NotANumber => Some(SortValue::Fraction(f64::NAN)),
            FieldKey::Text(units) => Some(SortValue::Text(String::from_utf16_lossy(&units))),
            FieldKey::Object | FieldKey::Null | FieldKey::NoField => None,
        }
    }

    /// Returns the sort key of an object.
    pub(crate) fn key(&self, object: ObjectIndex, record: &ObjectRecord<'_>) -> FieldKey {
        match self.field.path.value(self.objects, object, record, &self.places) {
            Some(value) => self.of_value(value),
            None => FieldKey::NoField,
        }
    }

    #[allow(clippy::cast_possible_truncation)] // The upper bits of smaller types are zero.
    fn of_value(&self, value: Bits) -> FieldKey {
        match value.kind {
            BasicType::Boolean => integer(i64::from(value.bits != 0)),
            BasicType::Float => fraction(f32::from_bits(value.bits as u32).into()),
            BasicType::Double => fraction(f64::from_bits(value.bits)),
            BasicType::Char => FieldKey::Text(Box::new([value.bits as u16])),
            BasicType::Byte | BasicType::Short | BasicType::Int | BasicType::Long => {
                value.integer().map_or(FieldKey::NoField, integer)
            }
            BasicType::Object if value.bits == 0 => FieldKey::Null,
            BasicType::Object => {
                self.objects.object(value).map_or(FieldKey::Object, |object| self.of_object(object))
            }
        }
    }

    fn of_object(&self, object: ObjectIndex) -> FieldKey {
        let class = self.objects.graph.objects.class(object);
        let is_in = |set: &ClassSet| class.is_some_and(|class| set.contains(class));
        if is_in(&self.strings) {
            let text = self.objects.string(object);
            return text
                .map_or(FieldKey::Object, |text| FieldKey::Text(text.units().take(MAX_UNITS).collect()));
        }
        let Some(label) = self.labels.full_label(object) else { return FieldKey::Object };
        if is_in(&self.numbers) {
            match (label.parse::<i64>(), label.parse::<f64>()) {
                (Ok(number), _) => return integer(number),
                (_, Ok(number)) => return fraction(number),
                _ => {}
            }
        }
        FieldKey::Text(label.encode_utf16().take(MAX_UNITS).collect())
    }
}

#[allow(clippy::cast_precision_loss)] // The number itself decides where doubles are the same.
fn integer(number: i64) -> FieldKey {
    FieldKey::Number(Reverse((place(number as f64), number)))
}

#[allow(clippy::cast_possible_truncation)] // Beyond i64 doubles differ themselves.
fn fraction(number: f64) -> FieldKey {
    if number.is_nan() {
        return FieldKey::NotANumber;
    }
    FieldKey::Number(Reverse((place(number), number as i64)))
}

/// Returns an integer that ascends with the number; both zeros have the same.
fn place(number: f64) -> u64 {
    let bits = (number + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

/// Returns the number for which [`place`] returns this integer.
fn number_at(place: u64) -> f64 {
    f64::from_bits(if place >> 63 == 1 { place & !(1 << 63) } else { !place })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn numbers_descend_and_texts_ascend() {
        let text = |text: &str| FieldKey::Text(text.encode_utf16().collect());
        let sorted = [
            fraction(f64::INFINITY),
            integer(i64::MAX),
            integer(i64::MAX - 1),
            integer((1 << 53) + 1),
            integer(1 << 53),
            fraction(2.5),
            integer(2),
            fraction(0.0),
            fraction(-0.5),
            integer(-1),
            integer(i64::MIN),
            fraction(f64::NEG_INFINITY),
            FieldKey::NotANumber,
            text(""),
            text("A"),
            text("a"),
            text("aa"),
            FieldKey::Object,
            FieldKey::Null,
            FieldKey::NoField,
        ];
        assert!(sorted.is_sorted_by(|a, b| a < b));
        assert_eq!((fraction(-0.0), integer(3)), (integer(0), fraction(3.0)));
        for number in [0.0, 2.5, -1e300, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(number_at(place(number)).to_bits(), number.to_bits());
        }
    }

    #[test]
    fn fields_are_read() {
        assert!("holder.daemon".parse::<SortField>().is_ok());
        assert_eq!("a..b".parse::<SortField>(), Err(NoSortField("a..b".to_owned())));
    }
}
