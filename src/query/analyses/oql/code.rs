//! Expressions with their names resolved.

use std::collections::HashSet;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};

use regex::Regex;
use roaring::RoaringBitmap;

use hprof_index::model::summary::ClassNumber;
use hprof_index::storage::scratch::ScratchArena;
use hprof_index::storage::scratch_table::KeyTable;
use hprof_model::objects::reader::FieldPlace;

use super::builtins::{Attribute, Method};
use super::tree::{Aggregate, Comparison, Function, Operator};
use super::value::ExpressionValue;

/// An expression with resolved names, which can be evaluated for a row.
#[derive(Debug)]
pub(super) enum Code {
    Value(ExpressionValue),
    Row,
    /// A column of a row of a table.
    Column(usize),
    Path(Box<Code>, Vec<CodeStep>),
    Call(Function, Box<Code>),
    /// The first non-null value.
    Coalesce(Vec<Code>),
    /// Aggregate of the row's group, by index.
    Aggregate(usize),
    Not(Box<Code>),
    Negate(Box<Code>),
    All(Vec<Code>),
    Any(Vec<Code>),
    Compare(Box<Code>, Comparison, Box<Code>),
    Arithmetic(Box<Code>, Vec<(Operator, Code)>),
    Like(Box<Code>, Regex, bool),
    In(Box<Code>, Vec<Code>, bool),
    /// IN with a list that is the same for all rows.
    InFound(Box<Code>, Arc<QuerySet>, bool),
    Is(Box<Code>, TestedKind),
}

/// A step of a path.
#[derive(Debug)]
pub(super) enum CodeStep {
    Field(Arc<CodeField>),
    Attribute(Attribute),
    Method(Method, Vec<Code>),
    /// `matches("regex")`
    Matches(Regex),
    Element(Code),
    Slice(Code, Code),
}

/// A field by name. Its location in instances of each class is determined on first use.
#[derive(Debug)]
pub(super) struct CodeField {
    pub(super) name: Box<str>,
    /// Location by class number.
    pub(super) places: OnceLock<Vec<Option<FieldPlace>>>,
    /// Number of searches in single classes so far; after a few, the locations in all classes are determined.
    pub(super) searches: AtomicU32,
}

/// Rows that consist of values rather than objects.
#[derive(Debug, Default)]
pub(super) struct ValueTable {
    /// Column names; `None` for a single column without a name.
    pub(super) columns: Option<Vec<String>>,
    pub(super) rows: Vec<Box<[ExpressionValue]>>,
}

/// Result of a nested query, or contents of a list, for `IN`.
#[derive(Debug)]
pub(super) struct QuerySet {
    pub(super) objects: RoaringBitmap,
    /// Hashes of the values that are not objects.
    pub(super) values: KeyTable,
    /// Hashes of the texts of the Strings among the objects; read when a text is first looked up.
    pub(super) texts: OnceLock<KeyTable>,
}

impl QuerySet {
    /// Creates an empty set.
    pub(super) fn new(room: &ScratchArena) -> Self {
        Self { objects: RoaringBitmap::new(), values: KeyTable::new(room), texts: OnceLock::new() }
    }
}

/// Kind of object for INSTANCEOF and IMPLEMENTS.
#[derive(Debug)]
pub(super) enum TestedKind {
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
pub(super) struct CodeAggregate {
    pub(super) what: Aggregate,
    /// Operand; `None` for `count(*)`.
    pub(super) of: Option<Code>,
}
