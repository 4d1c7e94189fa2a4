//! Expressions with their names resolved.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, OnceLock};

use regex::Regex;
use roaring::RoaringBitmap;

use hprof_index::model::summary::ClassNumber;
use hprof_index::storage::scratch::ScratchArena;
use hprof_index::storage::scratch_table::KeyTable;
use hprof_model::objects::reader::FieldPlace;

use super::builtins::{Attribute, Method};
use super::tree::{Aggregate, Comparison, Function, HeapFunction, ItemOrder, ListFunction, Operator};
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
    /// Parameter of an enclosing function: number of functions between, and slot.
    Parameter(u32, u8),
    Choose(Box<[Code; 3]>),
    Record(Arc<[Box<str>]>, Vec<Code>),
    Array(Vec<Code>),
    /// Whether a text contains a match.
    Test(Box<Code>, Regex),
    List(Box<ListCode>),
    /// With its offset in the query.
    Heap(HeapFunction, Vec<Code>, usize),
}

/// A function over lists.
#[derive(Debug)]
pub(super) struct ListCode {
    pub(super) function: ListFunction,
    /// The lists; of `top`, the list and the number of items.
    pub(super) lists: Vec<Code>,
    pub(super) applied: Option<AppliedCode>,
    /// Offset in the query.
    pub(super) at: usize,
}

/// A function that is applied to the items of a list.
#[derive(Debug)]
pub(super) struct AppliedCode {
    /// Slots of the parameters that the body uses, one bit each.
    pub(super) slots: u8,
    pub(super) body: Code,
    pub(super) compared: Option<ItemOrder>,
}

/// A step of a path.
#[derive(Debug)]
pub(super) enum CodeStep {
    Field(FieldStep),
    Attribute(Attribute),
    /// A method, its arguments, and where calls on values that do not have it are recorded.
    Method(Method, Vec<Code>, Option<Arc<FieldLookup>>),
    /// `matches("regex")`
    Matches(Regex),
    Element(Code),
    Slice(Code, Code),
}

/// A name after a dot, or a field of the row.
#[derive(Debug)]
pub(super) struct FieldStep {
    pub(super) field: Arc<CodeField>,
    /// `true` if properties of a class object, such as `name`, take precedence over its static fields.
    pub(super) is_property: bool,
    /// Where the name was looked up so far; `None` if it may be missing everywhere.
    pub(super) found: Option<Arc<FieldLookup>>,
}

/// Results of the lookups of a name so far. A name that no value had is an error.
#[derive(Debug)]
pub(super) struct FieldLookup {
    /// Offset in the query.
    pub(super) at: usize,
    pub(super) name: Box<str>,
    /// `true` if a value had the name.
    pub(super) is_found: AtomicBool,
    /// First value that did not have it.
    pub(super) missed: OnceLock<ExpressionValue>,
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
