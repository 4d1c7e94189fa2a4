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

impl Select {
    /// Creates a SELECT of a source without a FROM in the text.
    pub(super) fn new(at: usize, source: SelectSource) -> Self {
        Self {
            at,
            is_distinct: false,
            is_retained: false,
            is_objects: false,
            items: None,
            from: From { at, is_objects: true, with_subclasses: false, source, alias: None },
            condition: None,
            group: Vec::new(),
            order: Vec::new(),
            limit: None,
        }
    }
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
    /// Nothing: the rows are the values of these expressions, as in jhat's `select heap.classes()`.
    Expressions(Vec<SelectItem>),
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
    /// Parameter of an enclosing function: number of the function, slot, and name.
    Parameter(u32, u8, String),
    /// `condition ? value : other`
    Choose(Box<[ExpressionNode; 3]>),
    /// `{name: value, ...}`
    Record(Vec<(String, ExpressionNode)>),
    /// `[value, ...]`
    Array(Vec<ExpressionNode>),
    /// Whether a text contains a match of a regular expression: `/pattern/flags.test(text)`.
    Test(Box<ExpressionNode>, String, String),
    /// A function over one list, or several of them.
    List(ListFunction, Vec<ExpressionNode>, Option<Box<FunctionNode>>),
    /// A function of jhat's `heap`, or one that searches the graph.
    Heap(HeapFunction, Vec<ExpressionNode>),
}

/// A function that is applied to the items of a list: `it => it.size`, `function (it) { return it.size; }`, `'it.size'`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FunctionNode {
    /// Number by which the parameters in the body refer to the function.
    pub(super) number: u32,
    /// Slots of the parameters that the body uses, one bit each.
    pub(super) slots: u8,
    /// The result; of a comparison of two items, the value that is compared.
    pub(super) body: ExpressionNode,
    /// Comparison of two items by the body.
    pub(super) compared: Option<ItemOrder>,
}

/// Direction of a comparison of two items, such as `lhs.size - rhs.size`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ItemOrder {
    /// `true` if the result is greater when the value of `lhs` is.
    pub(super) rises: bool,
    /// `true` for a difference, `false` for a condition.
    pub(super) is_difference: bool,
}

/// Slots of the parameters: `it`, `index`, `array`, `result`, `lhs`, `rhs`.
pub(super) const PARAMETERS: [&str; 6] = ["it", "index", "array", "result", "lhs", "rhs"];

/// A function over lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListFunction {
    Map,
    Filter,
    Sort,
    Top,
    Unique,
    Count,
    Sum,
    Min,
    Max,
    Contains,
    Concat,
    ToArray,
}

/// A function of jhat's `heap`, or one that searches the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeapFunction {
    FindClass,
    FindObject,
    Classes,
    Objects,
    Roots,
    Finalizables,
    LivePaths,
    Reachables,
    Refers,
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
    /// Class and address, as jhat's links name an object.
    ToHtml,
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
