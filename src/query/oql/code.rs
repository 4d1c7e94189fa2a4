//! Expressions with their names resolved.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use regex::Regex;
use roaring::RoaringBitmap;
use rustc_hash::FxHashSet;

use crate::objects::reader::Place;
use hprof_index::model::summary::ClassNumber;

use super::names::{Attribute, Method};
use super::tree::{Aggregate, Comparison, Function, Operator};
use super::value::{Key, Value};

/// An expression that can be evaluated for a row.
#[derive(Debug)]
pub(super) enum Code {
    Value(Value),
    Row,
    /// A column of the row, which is one of a table.
    Column(usize),
    Path(Box<Code>, Vec<Step>),
    Call(Function, Box<Code>),
    /// The first that is not null.
    Coalesce(Vec<Code>),
    /// An aggregate of the row's group, by number.
    Aggregate(usize),
    Not(Box<Code>),
    Negate(Box<Code>),
    All(Vec<Code>),
    Any(Vec<Code>),
    Compare(Box<Code>, Comparison, Box<Code>),
    Arithmetic(Box<Code>, Vec<(Operator, Code)>),
    Like(Box<Code>, Regex, bool),
    In(Box<Code>, Vec<Code>, bool),
    /// IN of what is the same for all rows.
    InFound(Box<Code>, Arc<Found>, bool),
    Is(Box<Code>, Kind),
}

/// A step of a path.
#[derive(Debug)]
pub(super) enum Step {
    Field(Arc<Field>),
    Attribute(Attribute),
    Method(Method, Vec<Code>),
    /// `matches("regex")`
    Matches(Regex),
    Element(Code),
    Slice(Code, Code),
}

/// A field by its name. Where it is in the instances of each class is looked up when it is first met.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: Box<str>,
    /// By class number.
    pub(super) places: OnceLock<Vec<Option<Place>>>,
}

/// Rows that are made of values, not objects.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// The names of the columns; `None` for one without a name.
    pub(super) columns: Option<Vec<String>>,
    pub(super) rows: Vec<Box<[Value]>>,
}

/// Result of another query, or contents of a list.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) objects: RoaringBitmap,
    /// Values that are not objects.
    pub(super) values: FxHashSet<Key>,
    /// Texts of the Strings among the objects; read when a text is first looked up.
    pub(super) texts: OnceLock<FxHashSet<Box<str>>>,
}

/// Kind of object that is tested for.
#[derive(Debug)]
pub(super) enum Kind {
    /// An instance of one of these classes.
    Classes(HashSet<ClassNumber>),
    ClassObject,
    Instance,
    Array,
    ObjectArray,
    PrimitiveArray,
    Any,
}

/// An aggregate over the rows of a group.
#[derive(Debug)]
pub(super) struct Aggregated {
    pub(super) what: Aggregate,
    /// The operand; `None` for `count(*)`.
    pub(super) of: Option<Code>,
}
