//! Values that expressions have, and how they compare.

use std::cmp::Ordering;
use std::sync::Arc;

use hprof_index::graph::numbers::ObjectIndex;
use hprof_parser::ObjectId;

/// What an expression is for one row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// Null, or what there is no value of.
    Null,
    /// `boolean`
    Boolean(bool),
    /// `byte`, `short`, `int`, `long`
    Whole(i64),
    /// `char`
    Char(u16),
    /// `float`
    Float(f32),
    /// `double`
    Double(f64),
    /// A text.
    Text(Box<str>),
    /// An object, by index.
    Object(ObjectIndex),
    /// The id of an object that is not in the dump.
    Missing(ObjectId),
    /// Some objects or values that belong to an object, by index.
    List(List, ObjectIndex),
    /// A part of them.
    Slice(Box<Slice>),
    /// Values that a query gave.
    Many(Arc<[Value]>),
    /// Key and value of a map.
    Entry(Box<(Value, Value)>),
    /// A field of an object, by number.
    Field(ObjectIndex, u32),
    /// A static field of a class object, by number.
    Static(ObjectIndex, u32),
    /// `${snapshot}`
    Snapshot,
    /// `${snapshot}.@snapshotInfo`
    SnapshotInfo,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Slice {
    pub(super) list: List,
    /// The object that the list is of.
    pub(super) of: ObjectIndex,
    /// The first element.
    pub(super) start: u64,
    /// The one behind the last.
    pub(super) end: u64,
}

/// What a list holds. It is read from the object when it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum List {
    /// The elements of an array.
    Elements,
    /// Its class object, and what it refers to.
    Outbounds,
    /// What refers to it.
    Inbounds,
    /// What it is the immediate dominator of.
    Dominated,
    /// What a thread's stack holds.
    Locals,
    /// What a collection holds.
    Entries,
    /// Its fields.
    Fields,
    /// Its static fields.
    Statics,
    /// The subclasses of a class, all below it.
    Subclasses,
    /// All class objects, whatever it is.
    Classes,
    /// All roots, whatever it is.
    Roots,
}

/// A value that groups rows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Null,
    Boolean(bool),
    Whole(i64),
    Char(u16),
    Double(u64),
    Text(Box<str>),
    Object(ObjectIndex),
    Missing(ObjectId),
    List(List, ObjectIndex),
    Slice(Box<Slice>),
    Many(Box<[Key]>),
    Field(ObjectIndex, u32),
    Static(ObjectIndex, u32),
    Snapshot,
    SnapshotInfo,
}

impl Value {
    /// The value as a key: numbers that are equal have the same.
    pub(super) fn key(&self) -> Key {
        match self {
            Self::Null => Key::Null,
            Self::Boolean(value) => Key::Boolean(*value),
            Self::Whole(value) => Key::Whole(*value),
            Self::Char(value) => Key::Char(*value),
            Self::Float(value) => double_key(f64::from(*value)),
            Self::Double(value) => double_key(*value),
            Self::Text(value) => Key::Text(value.clone()),
            Self::Object(object) => Key::Object(*object),
            Self::Missing(id) => Key::Missing(*id),
            Self::List(list, object) => Key::List(*list, *object),
            Self::Slice(slice) => Key::Slice(slice.clone()),
            Self::Many(values) => Key::Many(values.iter().map(Self::key).collect()),
            Self::Entry(entry) => Key::Many([entry.0.key(), entry.1.key()].into()),
            Self::Field(object, number) => Key::Field(*object, *number),
            Self::Static(class, number) => Key::Static(*class, *number),
            Self::Snapshot => Key::Snapshot,
            Self::SnapshotInfo => Key::SnapshotInfo,
        }
    }

    /// The value as a number with a fraction.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn double(&self) -> Option<f64> {
        match self {
            Self::Whole(value) => Some(*value as f64),
            Self::Char(value) => Some(f64::from(*value)),
            Self::Float(value) => Some(f64::from(*value)),
            Self::Double(value) => Some(*value),
            _ => None,
        }
    }

    /// The value as a whole number, if it is one.
    pub(super) fn whole(&self) -> Option<i64> {
        match self {
            Self::Whole(value) => Some(*value),
            Self::Char(value) => Some((*value).into()),
            _ => None,
        }
    }

    /// The value as the number of an element: without its fraction.
    #[allow(clippy::cast_possible_truncation)] // `as` keeps to the range of the type.
    pub(super) fn index(&self) -> Option<i64> {
        self.whole().or_else(|| self.double().map(|number| number as i64))
    }

    /// Returns whether the value counts as true in a condition, as in MAT: all but null, false, 0 and an empty text.
    pub(super) fn is_true(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Boolean(value) => *value,
            Self::Whole(value) => *value != 0,
            Self::Float(value) => *value != 0.0 && !value.is_nan(),
            Self::Double(value) => *value != 0.0 && !value.is_nan(),
            Self::Text(text) => !text.is_empty(),
            _ => true,
        }
    }

    /// How two values of kinds that can be compared compare.
    pub(super) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Null, Self::Null) => Some(Ordering::Equal),
            (Self::Boolean(a), Self::Boolean(b)) => Some(a.cmp(b)),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            (Self::Text(a), Self::Char(b)) => Some(a.encode_utf16().cmp([*b])),
            (Self::Char(a), Self::Text(b)) => Some([*a].into_iter().cmp(b.encode_utf16())),
            (Self::Object(a), Self::Object(b)) => Some(a.cmp(b)),
            (Self::Missing(a), Self::Missing(b)) => Some(a.cmp(b)),
            (Self::List(a, of_a), Self::List(b, of_b)) => (a == b && of_a == of_b).then_some(Ordering::Equal),
            (Self::Slice(_), Self::Slice(_))
            | (Self::Many(_), Self::Many(_))
            | (Self::Entry(_), Self::Entry(_))
            | (Self::Field(..), Self::Field(..))
            | (Self::Static(..), Self::Static(..)) => (self == other).then_some(Ordering::Equal),
            _ => match (self.whole(), other.whole()) {
                (Some(a), Some(b)) => Some(a.cmp(&b)),
                (Some(a), None) => whole_with_double(a, other.double()?),
                (None, Some(b)) => whole_with_double(b, self.double()?).map(Ordering::reverse),
                (None, None) => self.double()?.partial_cmp(&other.double()?),
            },
        }
    }

    /// An order of all values: for sorting. Null is the least.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        let by_value = || {
            self.compare(other).or_else(|| {
                // Not a number is more than any.
                let (a, b) = (self.double()?, other.double()?);
                Some(a.is_nan().cmp(&b.is_nan()))
            })
        };
        self.rank().cmp(&other.rank()).then_with(|| by_value().unwrap_or(Ordering::Equal))
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Boolean(_) => 1,
            Self::Whole(_) | Self::Char(_) | Self::Float(_) | Self::Double(_) => 2,
            Self::Text(_) => 3,
            Self::Object(_) => 4,
            Self::Missing(_) => 5,
            Self::List(..) | Self::Slice(_) | Self::Many(_) => 6,
            Self::Entry(_) | Self::Field(..) | Self::Static(..) | Self::Snapshot | Self::SnapshotInfo => 7,
        }
    }
}

/// What no long is as large as; the least of them is its negative.
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// Whole numbers and fractions that are equal group together.
fn double_key(value: f64) -> Key {
    #[allow(clippy::cast_possible_truncation)] // It is whole, and a long.
    if value.fract() == 0.0 && (-TWO_TO_63..TWO_TO_63).contains(&value) {
        return Key::Whole(value as i64);
    }
    Key::Double(if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() })
}

/// Compares exactly: large longs are not all doubles.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
fn whole_with_double(whole: i64, double: f64) -> Option<Ordering> {
    let roughly = (whole as f64).partial_cmp(&double)?;
    if roughly != Ordering::Equal || double.fract() != 0.0 {
        return Some(roughly);
    }
    Some(i128::from(whole).cmp(&(double as i128)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_across_types() {
        use Value::{Char, Double, Float, Text, Whole};
        let compare = |a: Value, b: Value| a.compare(&b);
        assert_eq!(compare(Whole(1), Double(1.0)), Some(Ordering::Equal));
        assert_eq!(compare(Whole(i64::MAX), Double(9_223_372_036_854_775_807.0)), Some(Ordering::Less));
        assert_eq!(compare(Float(1.5), Whole(2)), Some(Ordering::Less));
        assert_eq!(compare(Double(f64::NAN), Whole(2)), None);
        assert_eq!(compare(Char(97), Whole(97)), Some(Ordering::Equal));
        assert_eq!(compare(Char(97), Text("a".into())), Some(Ordering::Equal));
        assert_eq!(compare(Value::Null, Whole(0)), None);
        assert_eq!(compare(Text("1".into()), Whole(1)), None);
        assert_eq!(Double(2.0).key(), Whole(2).key());
        assert_eq!(Double(-9_223_372_036_854_775_808.0).key(), Whole(i64::MIN).key());
        assert_ne!(Double(9_223_372_036_854_775_808.0).key(), Whole(i64::MAX).key());
        assert_eq!(Double(9e17).key(), Whole(900_000_000_000_000_000).key());
        assert_eq!(Value::Null.order(&Whole(i64::MIN)), Ordering::Less);
        assert_eq!(Double(f64::NAN).order(&Whole(5)), Ordering::Greater);
    }
}
