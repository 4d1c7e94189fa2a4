//! Expressions with their names resolved.

use std::collections::HashSet;
use std::sync::OnceLock;

use regex::Regex;
use roaring::RoaringBitmap;
use rustc_hash::FxHashSet;

use crate::index::summary::ClassNumber;
use crate::query::objects::Slot;

use super::names::{Attribute, Method};
use super::tree::{Aggregate, Comparison, Function, Operator};
use super::value::{Key, Value};

/// An expression that can be evaluated for a row.
#[derive(Debug)]
pub(super) enum Code<'a> {
    Value(Value),
    Row,
    Path(Box<Code<'a>>, Vec<Step<'a>>),
    Call(Function, Box<Code<'a>>),
    /// An aggregate of the row's group, by number.
    Aggregate(usize),
    Not(Box<Code<'a>>),
    Negate(Box<Code<'a>>),
    All(Vec<Code<'a>>),
    Any(Vec<Code<'a>>),
    Compare(Box<Code<'a>>, Comparison, Box<Code<'a>>),
    Arithmetic(Box<Code<'a>>, Vec<(Operator, Code<'a>)>),
    Like(Box<Code<'a>>, Regex, bool),
    In(Box<Code<'a>>, Vec<Code<'a>>, bool),
    InFound(Box<Code<'a>>, Found, bool),
    Is(Box<Code<'a>>, Kind),
}

/// A step of a path.
#[derive(Debug)]
pub(super) enum Step<'a> {
    Field(Field<'a>),
    Attribute(Attribute),
    Method(Method, Vec<Code<'a>>),
    Element(Code<'a>),
}

/// A field, looked up once for each class.
#[derive(Debug)]
pub(super) struct Field<'a> {
    pub(super) name: Box<str>,
    /// By class number.
    pub(super) slots: Vec<OnceLock<Option<Slot<'a>>>>,
}

/// What another query found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) objects: RoaringBitmap,
    pub(super) values: FxHashSet<Key>,
}

/// What an object is asked to be.
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
pub(super) struct Aggregated<'a> {
    pub(super) what: Aggregate,
    /// Of what; `None` for `count(*)`.
    pub(super) of: Option<Code<'a>>,
}
