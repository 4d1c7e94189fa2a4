//! The syntax tree of a query.

use hprof_parser::ObjectId;

/// A query: one SELECT, or several with UNION between them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Union {
    pub(super) selects: Vec<Select>,
}

/// One SELECT.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Select {
    /// Where it starts.
    pub(super) at: usize,
    pub(super) is_distinct: bool,
    /// AS RETAINED SET.
    pub(super) is_retained: bool,
    /// OBJECTS: what the items give are the rows.
    pub(super) is_objects: bool,
    /// What is shown; `None` for `*`.
    pub(super) items: Option<Vec<Item>>,
    pub(super) from: From,
    pub(super) condition: Option<Node>,
    pub(super) group: Vec<Node>,
    /// What to sort by, and whether downwards.
    pub(super) order: Vec<(Node, bool)>,
    pub(super) limit: Option<u64>,
}

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    pub(super) node: Node,
    /// As written, or by AS.
    pub(super) name: String,
}

/// The FROM clause.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct From {
    /// Where the source starts.
    pub(super) at: usize,
    /// OBJECTS: the source is objects, not classes.
    pub(super) is_objects: bool,
    /// INSTANCEOF: subclasses too.
    pub(super) with_subclasses: bool,
    pub(super) source: Source,
    pub(super) alias: Option<String>,
}

/// What is selected from.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Source {
    /// A class by name.
    Class(String),
    /// Classes whose name matches.
    Pattern(String),
    /// Class objects, or objects, by id.
    Addresses(Vec<ObjectId>),
    /// Class objects, or objects, by index.
    Indices(Vec<i64>),
    /// What another query gives.
    Query(Box<Union>),
    /// What an expression without a row gives.
    Value(Box<Node>),
    /// `${snapshot}.getClasses()`.
    AllClasses,
    /// `${snapshot}.getClassesByName(name, subclasses)`.
    ClassesByName(String, bool),
}

/// An expression and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    /// Its first byte.
    pub(super) start: usize,
    /// The byte behind it.
    pub(super) end: usize,
    pub(super) expression: Expression,
}

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
    /// The row itself, of which an attribute is asked: `@length`.
    Row,
    /// `${snapshot}`: the dump.
    Snapshot,
    /// What a query gives.
    Query(Box<Union>),
    /// Fields, attributes, methods and elements, one behind the other.
    Path(Box<Node>, Vec<Step>),
    Call(Function, Box<Node>),
    /// The first that is not null.
    Coalesce(Vec<Node>),
    Aggregate(Aggregate, Option<Box<Node>>),
    Not(Box<Node>),
    Negate(Box<Node>),
    All(Vec<Node>),
    Any(Vec<Node>),
    Compare(Box<Node>, Comparison, Box<Node>),
    Arithmetic(Box<Node>, Vec<(Operator, Node)>),
    Like(Box<Node>, String, bool),
    In(Box<Node>, Vec<Node>, bool),
    InQuery(Box<Node>, Box<Union>, bool),
    /// `instanceof` and `implements`.
    Is(Box<Node>, String, usize),
}

/// A step of a path, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub(super) at: usize,
    pub(super) what: What,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum What {
    Field(String),
    Attribute(String),
    Method(String, Vec<Node>),
    Element(Box<Node>),
    /// `[first:last]`
    Slice(Box<Node>, Box<Node>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    ToHex,
    ToText,
    Dominators,
    DominatorOf,
    Outbounds,
    Inbounds,
    ClassOf,
    /// The method in which a thread is.
    Frame,
    /// What a thread's stack holds.
    Locals,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aggregate {
    Count,
    Sum,
    Min,
    Max,
    Average,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}
