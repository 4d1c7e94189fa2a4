//! Syntax tree of a query.

use hprof_values::ObjectId;

/// A query: one SELECT, or several joined by UNION.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Union {
    pub(super) selects: Vec<Select>,
}

/// A SELECT statement.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Select {
    /// Start offset.
    pub(super) at: usize,
    pub(super) is_distinct: bool,
    /// `true` for AS RETAINED SET.
    pub(super) is_retained: bool,
    /// `true` for OBJECTS: the objects that the item returns are the rows.
    pub(super) is_objects: bool,
    /// Columns; `None` for `*`.
    pub(super) items: Option<Vec<SelectItem>>,
    pub(super) from: From,
    pub(super) condition: Option<ExpressionNode>,
    pub(super) group: Vec<ExpressionNode>,
    /// Sort keys, with `true` for a descending order.
    pub(super) order: Vec<(ExpressionNode, bool)>,
    pub(super) limit: Option<u64>,
}

/// A column of a SELECT.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SelectItem {
    pub(super) node: ExpressionNode,
    /// Name after AS, or else the text of the expression.
    pub(super) name: String,
}

/// The FROM clause.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct From {
    /// Start offset of the source.
    pub(super) at: usize,
    /// `true` for OBJECTS: the source consists of objects, not of classes.
    pub(super) is_objects: bool,
    /// `true` for INSTANCEOF: instances of subclasses are selected as well.
    pub(super) with_subclasses: bool,
    pub(super) source: SelectSource,
    pub(super) alias: Option<String>,
}

/// Source of the rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SelectSource {
    /// A class by name.
    Class(String),
    /// Classes whose name matches a pattern.
    Pattern(String),
    /// Class objects, or objects themselves, by ID.
    Addresses(Vec<ObjectId>),
    /// Class objects, or objects themselves, by index.
    Indices(Vec<i64>),
    /// Result of another query.
    Query(Box<Union>),
    /// Value of an expression without a row.
    Value(Box<ExpressionNode>),
    /// `${snapshot}.getClasses()`.
    AllClasses,
    /// `${snapshot}.getClassesByName(name, subclasses)`.
    ClassesByName(String, bool),
}

/// An expression in the syntax tree, with its position.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ExpressionNode {
    /// Start offset.
    pub(super) start: usize,
    /// End offset (exclusive).
    pub(super) end: usize,
    pub(super) expression: Expression,
}

/// An expression in the syntax tree.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    Null,
    Boolean(bool),
    Whole(i64),
    Fraction(f64),
    Char(u16),
    Text(String),
    /// The alias, or a field of the row.
    Name(String),
    /// The row itself, when an attribute such as `@length` has no object.
    Row,
    /// `${snapshot}`: the dump.
    Snapshot,
    /// Result of a nested query.
    Query(Box<Union>),
    /// Fields, attributes, methods and elements, in sequence.
    Path(Box<ExpressionNode>, Vec<StepNode>),
    Call(Function, Box<ExpressionNode>),
    /// The first non-null value.
    Coalesce(Vec<ExpressionNode>),
    Aggregate(Aggregate, Option<Box<ExpressionNode>>),
    Not(Box<ExpressionNode>),
    Negate(Box<ExpressionNode>),
    All(Vec<ExpressionNode>),
    Any(Vec<ExpressionNode>),
    Compare(Box<ExpressionNode>, Comparison, Box<ExpressionNode>),
    Arithmetic(Box<ExpressionNode>, Vec<(Operator, ExpressionNode)>),
    Like(Box<ExpressionNode>, String, bool),
    In(Box<ExpressionNode>, Vec<ExpressionNode>, bool),
    InQuery(Box<ExpressionNode>, Box<Union>, bool),
    /// `instanceof` and `implements`.
    Is(Box<ExpressionNode>, String, usize),
}

/// A step of a path, with its position.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StepNode {
    pub(super) at: usize,
    pub(super) what: StepName,
}

/// A step of a path.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum StepName {
    Field(String),
    Attribute(String),
    Method(String, Vec<ExpressionNode>),
    Element(Box<ExpressionNode>),
    /// `[first:last]`
    Slice(Box<ExpressionNode>, Box<ExpressionNode>),
}

/// A function of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    ToHex,
    ToText,
    Dominators,
    DominatorOf,
    Outbounds,
    Inbounds,
    ClassOf,
    /// The method in which a thread was.
    Frame,
    /// Objects that a thread's stack references.
    Locals,
}

/// A function over the rows of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aggregate {
    Count,
    Sum,
    Min,
    Max,
    Average,
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// An arithmetic operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}
