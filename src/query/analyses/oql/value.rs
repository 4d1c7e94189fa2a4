//! Values of expressions, and their comparison.

use std::cmp::Ordering;
use std::sync::Arc;

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::storage::scratch::ReservedMemory;
use hprof_values::ObjectId;
use roaring::RoaringBitmap;

/// Value of an expression for one row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ExpressionValue {
    /// Null, or a missing value.
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
    /// The ID of an object that is not in the dump.
    Missing(ObjectId),
    /// A list, and the index of the object to which it belongs.
    List(List, ObjectIndex),
    /// A part of a list.
    Slice(Box<Slice>),
    /// Values that a query or a function returned.
    Many(Arc<ValueList>),
    /// Objects, by index, in ascending order.
    Objects(Arc<RoaringBitmap>),
    /// Named values.
    Record(Arc<Record>),
    /// Key and value of a map.
    Entry(Box<(ExpressionValue, ExpressionValue)>),
    /// A field of an object: object index and number of the field.
    Field(ObjectIndex, u32),
    /// A static field: index of the class object and number of the field.
    Static(ObjectIndex, u32),
    /// `${snapshot}`
    Snapshot,
    /// `${snapshot}.@snapshotInfo`
    SnapshotInfo,
}

/// Values in memory, which counts against the memory budget until they are dropped.
#[derive(Debug)]
pub(super) struct ValueList {
    values: Box<[ExpressionValue]>,
    bytes: u64,
    _reserved: Option<ReservedMemory>,
}

impl ValueList {
    /// Creates a list whose memory is reserved, if `reserved` is given.
    pub(super) fn new(values: Vec<ExpressionValue>, reserved: Option<ReservedMemory>) -> Self {
        let bytes = values.iter().map(ExpressionValue::bytes).sum();
        Self { values: values.into(), bytes, _reserved: reserved }
    }
}

impl std::ops::Deref for ValueList {
    type Target = [ExpressionValue];

    fn deref(&self) -> &[ExpressionValue] {
        &self.values
    }
}

impl PartialEq for ValueList {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

/// Named values.
#[derive(Debug, PartialEq)]
pub(super) struct Record {
    pub(super) names: Arc<[Box<str>]>,
    pub(super) values: Box<[ExpressionValue]>,
}

impl Record {
    /// Returns the value with this name.
    pub(super) fn get(&self, name: &str) -> Option<&ExpressionValue> {
        self.values.get(self.names.iter().position(|known| **known == *name)?)
    }
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Slice {
    pub(super) list: List,
    /// Index of the object to which the list belongs.
    pub(super) of: ObjectIndex,
    /// Index of the first element.
    pub(super) start: u64,
    /// End index (exclusive).
    pub(super) end: u64,
}

/// Contents of a list, read from the object on demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum List {
    /// Elements of an array.
    Elements,
    /// Class object and references of an object.
    Outbounds,
    /// Referrers of an object.
    Inbounds,
    /// Objects that an object immediately dominates.
    Dominated,
    /// Objects that a thread's stack references.
    Locals,
    /// Entries of a collection.
    Entries,
    /// Fields of an object.
    Fields,
    /// Static fields of a class.
    Statics,
    /// Instance fields that a class declares, as records with name and signature.
    Declared,
    /// All direct and indirect subclasses of a class.
    Subclasses,
    /// All class objects, regardless of the object.
    Classes,
    /// All roots, regardless of the object.
    Roots,
}

/// Key by which rows are grouped and by which duplicates are found.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum GroupKey {
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
    Many(Box<[GroupKey]>),
    Field(ObjectIndex, u32),
    Static(ObjectIndex, u32),
    Snapshot,
    SnapshotInfo,
}

impl ExpressionValue {
    /// Returns the value as a key; equal numbers have the same key.
    pub(super) fn key(&self) -> GroupKey {
        match self {
            Self::Null => GroupKey::Null,
            Self::Boolean(value) => GroupKey::Boolean(*value),
            Self::Whole(value) => GroupKey::Whole(*value),
            Self::Char(value) => GroupKey::Char(*value),
            Self::Float(value) => double_key(f64::from(*value)),
            Self::Double(value) => double_key(*value),
            Self::Text(value) => GroupKey::Text(value.clone()),
            Self::Object(object) => GroupKey::Object(*object),
            Self::Missing(id) => GroupKey::Missing(*id),
            Self::List(list, object) => GroupKey::List(*list, *object),
            Self::Slice(slice) => GroupKey::Slice(slice.clone()),
            Self::Many(values) => GroupKey::Many(values.iter().map(Self::key).collect()),
            Self::Objects(set) => {
                GroupKey::Many(set.iter().map(|object| GroupKey::Object(ObjectIndex(object))).collect())
            }
            Self::Record(record) => GroupKey::Many(record.values.iter().map(Self::key).collect()),
            Self::Entry(entry) => GroupKey::Many([entry.0.key(), entry.1.key()].into()),
            Self::Field(object, number) => GroupKey::Field(*object, *number),
            Self::Static(class, number) => GroupKey::Static(*class, *number),
            Self::Snapshot => GroupKey::Snapshot,
            Self::SnapshotInfo => GroupKey::SnapshotInfo,
        }
    }

    /// Creates a list of values whose memory is counted elsewhere.
    pub(super) fn from_values(values: Vec<Self>) -> Self {
        Self::Many(Arc::new(ValueList::new(values, None)))
    }

    /// Returns whether the value is a list of its own, rather than an object that has elements.
    pub(super) fn is_listed(&self) -> bool {
        matches!(self, Self::List(..) | Self::Slice(_) | Self::Many(_) | Self::Objects(_))
    }

    /// Returns the approximate size of the value in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let beside = match self {
            Self::Text(text) => text.len(),
            Self::Slice(_) => size_of::<Slice>(),
            Self::Entry(_) => size_of::<(Self, Self)>(),
            Self::Objects(set) => set.serialized_size(),
            Self::Record(record) => record.values.len().saturating_mul(size_of::<Self>()),
            _ => 0,
        };
        // Overhead of the allocator per allocation.
        let added = if beside > 0 { 16 } else { 0 };
        let inner = match self {
            Self::Entry(entry) => entry.0.bytes() + entry.1.bytes(),
            Self::Many(values) => values.bytes,
            Self::Record(record) => record.values.iter().map(Self::bytes).sum(),
            _ => 0,
        };
        (size_of::<Self>() + beside + added) as u64 + inner
    }

    /// Returns the value as a floating-point number.
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

    /// Returns the value as a whole number, if it is one.
    pub(super) fn integer(&self) -> Option<i64> {
        match self {
            Self::Whole(value) => Some(*value),
            Self::Char(value) => Some((*value).into()),
            _ => None,
        }
    }

    /// Returns the value as an element index, without its fraction.
    #[allow(clippy::cast_possible_truncation)] // `as` keeps to the range of the type.
    pub(super) fn index(&self) -> Option<i64> {
        self.integer().or_else(|| self.double().map(|number| number as i64))
    }

    /// Returns whether the value counts as true in a condition, as in MAT: all values except null, false, 0 and an empty text.
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

    /// Compares two values; `None` if their kinds cannot be compared.
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
            | (Self::Objects(_), Self::Objects(_))
            | (Self::Record(_), Self::Record(_))
            | (Self::Entry(_), Self::Entry(_))
            | (Self::Field(..), Self::Field(..))
            | (Self::Static(..), Self::Static(..)) => (self == other).then_some(Ordering::Equal),
            _ => match (self.integer(), other.integer()) {
                (Some(a), Some(b)) => Some(a.cmp(&b)),
                (Some(a), None) => whole_with_double(a, other.double()?),
                (None, Some(b)) => whole_with_double(b, self.double()?).map(Ordering::reverse),
                (None, None) => self.double()?.partial_cmp(&other.double()?),
            },
        }
    }

    /// Orders any two values, for sorting. Null is the smallest.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        let by_value = || {
            self.compare(other).or_else(|| {
                // NaN is greater than any number.
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
            Self::List(..) | Self::Slice(_) | Self::Many(_) | Self::Objects(_) => 6,
            Self::Record(_)
            | Self::Entry(_)
            | Self::Field(..)
            | Self::Static(..)
            | Self::Snapshot
            | Self::SnapshotInfo => 7,
        }
    }
}

/// Smallest power of two that is greater than every long; its negative is the smallest long.
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// Returns the key of a number; a floating-point number has the same key as the equal whole number.
fn double_key(value: f64) -> GroupKey {
    #[allow(clippy::cast_possible_truncation)] // It is whole, and a long.
    if value.fract() == 0.0 && (-TWO_TO_63..TWO_TO_63).contains(&value) {
        return GroupKey::Whole(value as i64);
    }
    GroupKey::Double(if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() })
}

/// Compares exactly, since not all large longs can be represented as doubles.
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
        use ExpressionValue::{Char, Double, Float, Text, Whole};
        let compare = |a: ExpressionValue, b: ExpressionValue| a.compare(&b);
        assert_eq!(compare(Whole(1), Double(1.0)), Some(Ordering::Equal));
        assert_eq!(compare(Whole(i64::MAX), Double(9_223_372_036_854_775_807.0)), Some(Ordering::Less));
        assert_eq!(compare(Float(1.5), Whole(2)), Some(Ordering::Less));
        assert_eq!(compare(Double(f64::NAN), Whole(2)), None);
        assert_eq!(compare(Char(97), Whole(97)), Some(Ordering::Equal));
        assert_eq!(compare(Char(97), Text("a".into())), Some(Ordering::Equal));
        assert_eq!(compare(ExpressionValue::Null, Whole(0)), None);
        assert_eq!(compare(Text("1".into()), Whole(1)), None);
        assert_eq!(Double(2.0).key(), Whole(2).key());
        assert_eq!(Double(-9_223_372_036_854_775_808.0).key(), Whole(i64::MIN).key());
        assert_ne!(Double(9_223_372_036_854_775_808.0).key(), Whole(i64::MAX).key());
        assert_eq!(Double(9e17).key(), Whole(900_000_000_000_000_000).key());
        assert_eq!(ExpressionValue::Null.order(&Whole(i64::MIN)), Ordering::Less);
        assert_eq!(Double(f64::NAN).order(&Whole(5)), Ordering::Greater);
    }
}
