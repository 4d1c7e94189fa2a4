//! Resolution of the names in expressions: fields, columns, attributes, methods.

use std::collections::HashSet;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use hprof_base::naming::suggestions;
use hprof_index::model::summary::ClassNumber;

use super::constants::is_constant;
use super::lookups::{LISTED, fields_hint};
use super::regex_text::mats_pattern;
use crate::oql::builtins::{self, CallTarget, Method, cut};
use crate::oql::code::{
    AppliedCode, Code, CodeAggregate, CodeField, CodeStep, FieldLookup, FieldStep, ListCode, QuerySet,
    TestedKind,
};
use crate::oql::error::OqlError;
use crate::oql::evaluate::{EvaluatedRow, Evaluator};
use crate::oql::group::has_aggregate;
use crate::oql::selected::{Objects, SubqueryEvaluator};
use crate::oql::tree::{
    Expression, ExpressionNode, Function, FunctionNode, HeapFunction, Select, SelectSource, StepName,
    StepNode,
};
use crate::oql::value::ExpressionValue;

/// Maximum number of different fields in one SELECT, and of regular expressions: each field has its own table.
pub(super) const MAX_FIELDS: usize = 256;
/// Maximum number of values of a constant list that are compared one by one; a longer list becomes a set.
const SHORT_LIST: usize = 8;

/// Meaning of names within an expression.
#[derive(Debug, Clone, Copy)]
pub(in crate::oql) enum NameScope<'r> {
    /// Names are fields of objects of these classes, marked by class number.
    Fields(&'r [bool]),
    /// Names are columns of the rows.
    Columns(&'r [String]),
    /// Rows have a single value, which the alias names.
    Values,
    /// Names have no meaning, since there is no row.
    Nothing,
}

impl<'r> NameScope<'r> {
    /// Returns the meaning of names for rows of a source with these classes.
    pub(in crate::oql) fn for_source(source: &'r Objects, classes: &'r [bool]) -> Self {
        match source.table().map(|table| table.columns.as_deref()) {
            None => Self::Fields(classes),
            Some(None) => Self::Values,
            Some(Some(columns)) => Self::Columns(columns),
        }
    }
}

/// Resolver of the expressions of one SELECT.
pub(in crate::oql) struct Resolver<'r, 'o, 'a> {
    pub(super) evaluator: &'r Evaluator<'o, 'a>,
    select: &'r Select,
    names: NameScope<'r>,
    pub(in crate::oql) ask: &'r dyn SubqueryEvaluator,
    /// Aggregates in the resolved expressions.
    pub(in crate::oql) aggregates: Vec<CodeAggregate>,
    fields: FxHashMap<String, Arc<CodeField>>,
    /// Names that are known to be fields of rows.
    row_fields: FxHashSet<String>,
    pub(super) patterns: usize,
    /// Functions and queries around the current expression, innermost last.
    pub(in crate::oql) frames: Vec<NameFrame>,
    /// Number of enclosing expressions in which a name may be missing.
    lenient: u32,
}

/// Parameters of the function, or alias of the query, around an expression.
#[derive(Debug, PartialEq)]
pub(in crate::oql) enum NameFrame {
    /// A function, by number.
    Function(u32),
    /// A query of the objects of a row, with its alias.
    Query(Option<String>),
}

impl<'r, 'o, 'a> Resolver<'r, 'o, 'a> {
    pub(in crate::oql) fn new(
        evaluator: &'r Evaluator<'o, 'a>,
        select: &'r Select,
        names: NameScope<'r>,
        ask: &'r dyn SubqueryEvaluator,
    ) -> Self {
        let (aggregates, fields) = (Vec::new(), FxHashMap::default());
        Self {
            evaluator,
            select,
            names,
            ask,
            aggregates,
            fields,
            row_fields: FxHashSet::default(),
            patterns: 0,
            frames: Vec::new(),
            lenient: 0,
        }
    }

    fn boxed_code(&mut self, node: &ExpressionNode) -> Result<Box<Code>, OqlError> {
        Ok(Box::new(self.code(node)?))
    }

    fn codes(&mut self, nodes: &[ExpressionNode]) -> Result<Vec<Code>, OqlError> {
        nodes.iter().map(|node| self.code(node)).collect()
    }

    /// Resolves the names in a condition.
    pub(in crate::oql) fn condition(&mut self, node: &ExpressionNode) -> Result<Code, OqlError> {
        if !is_condition(node) {
            let text = "WHERE needs a condition, and this is a value; compare it with another value";
            return Err(OqlError::new(node.start, text));
        }
        self.code(node)
    }

    /// Resolves the names in an expression. Subexpressions with the same value for all rows are replaced by the value.
    pub(in crate::oql) fn code(&mut self, node: &ExpressionNode) -> Result<Code, OqlError> {
        let code = self.resolve(node)?;
        Ok(if is_constant(&code) {
            Code::Value(self.evaluator.value(&code, &EvaluatedRow::new(u32::MAX, &[], None)))
        } else {
            code
        })
    }

    fn resolve(&mut self, node: &ExpressionNode) -> Result<Code, OqlError> {
        Ok(match &node.expression {
            Expression::Null => Code::Value(ExpressionValue::Null),
            Expression::Boolean(value) => Code::Value(ExpressionValue::Boolean(*value)),
            Expression::Whole(value) => Code::Value(ExpressionValue::Whole(*value)),
            Expression::Fraction(value) => Code::Value(ExpressionValue::Double(*value)),
            Expression::Char(unit) => Code::Value(ExpressionValue::Char(*unit)),
            Expression::Text(text) => Code::Value(ExpressionValue::Text(text.as_str().into())),
            Expression::Snapshot => Code::Value(ExpressionValue::Snapshot),
            Expression::Query(query) => match self.row_query(query)? {
                Some(code) => code,
                None => Code::Value(self.ask.value(query)?),
            },
            Expression::Row => match self.frames.last() {
                Some(NameFrame::Query(_)) => Code::Parameter(0, 0),
                _ => self.row(node.start)?,
            },
            Expression::Name(name) if self.query_depth(name).is_some() => {
                Code::Parameter(self.query_depth(name).unwrap_or(0), 0)
            }
            Expression::Name(name) if self.is_alias(name) => self.row(node.start)?,
            Expression::Name(name) if matches!(self.frames.last(), Some(NameFrame::Query(_))) => {
                let step = CodeStep::Field(self.field_step(name, node.start, false)?);
                Code::Path(Box::new(Code::Parameter(0, 0)), vec![step])
            }
            Expression::Name(name) => {
                match self.column(name).or_else(|| self.ask.bound(name).map(Code::Value)) {
                    Some(column) => column,
                    None if matches!(self.names, NameScope::Nothing)
                        && (self.is_script() || !self.frames.is_empty()) =>
                    {
                        return Err(self.unknown_name(name, node.start));
                    }
                    None => {
                        let row = Box::new(self.row_named(name, node.start)?);
                        Code::Path(row, vec![CodeStep::Field(self.row_field(name, node.start)?)])
                    }
                }
            }
            Expression::Path(base, steps) => return self.path(base, steps),
            Expression::Call(function, argument) => Code::Call(*function, self.boxed_code(argument)?),
            Expression::Aggregate(what, of) => {
                if let Some(of) = of.as_ref().filter(|of| has_aggregate(of)) {
                    return Err(OqlError::new(of.start, "aggregates cannot be nested"));
                }
                let of = of.as_ref().map(|of| self.code(of)).transpose()?;
                self.aggregates.push(CodeAggregate { what: *what, of });
                Code::Aggregate(self.aggregates.len() - 1)
            }
            Expression::Coalesce(of) => {
                // Each of them may exist in some objects only.
                self.lenient += 1;
                let codes = self.codes(of);
                self.lenient -= 1;
                Code::Coalesce(codes?)
            }
            Expression::Not(of) => Code::Not(self.boxed_code(of)?),
            Expression::Negate(of) => Code::Negate(self.boxed_code(of)?),
            Expression::All(of) => Code::All(self.codes(of)?),
            Expression::Any(of) => Code::Any(self.codes(of)?),
            Expression::Compare(left, comparison, right) => {
                Code::Compare(self.boxed_code(left)?, *comparison, self.boxed_code(right)?)
            }
            Expression::Arithmetic(first, more) => {
                let first = self.boxed_code(first)?;
                let more = more.iter().map(|(operator, node)| Ok((*operator, self.code(node)?)));
                Code::Arithmetic(first, more.collect::<Result<_, OqlError>>()?)
            }
            Expression::Like(of, pattern, is_negated) => {
                let regex =
                    self.pattern(&mats_pattern(pattern), node.end.saturating_sub(pattern.len() + 2))?;
                Code::Like(self.boxed_code(of)?, regex, *is_negated)
            }
            Expression::In(of, values, is_negated) => {
                let (of, values) = (self.boxed_code(of)?, self.codes(values)?);
                match self.constants(&values) {
                    Some(found) => Code::InFound(of, Arc::new(found), *is_negated),
                    None => Code::In(of, values, *is_negated),
                }
            }
            Expression::InQuery(of, query, is_negated) => {
                if let Some(list) = self.row_query(query)? {
                    return Ok(Code::In(self.boxed_code(of)?, vec![list], *is_negated));
                }
                let found = self.ask.query_set(query)?;
                Code::InFound(self.boxed_code(of)?, found, *is_negated)
            }
            Expression::Is(of, class, at) => Code::Is(self.boxed_code(of)?, self.kind(class, *at)?),
            Expression::Parameter(number, slot, name) => {
                let at = self.frames.iter().rev().position(|frame| *frame == NameFrame::Function(*number));
                let depth = at.and_then(|at| u32::try_from(at).ok());
                Code::Parameter(depth.ok_or_else(|| self.unknown_name(name, node.start))?, *slot)
            }
            Expression::Choose(of) => {
                let [condition, value, other] = &**of;
                Code::Choose(Box::new([self.code(condition)?, self.code(value)?, self.code(other)?]))
            }
            Expression::Record(values) => {
                let names = values.iter().map(|(name, _)| name.as_str().into()).collect();
                let codes = values.iter().map(|(_, node)| self.code(node)).collect::<Result<_, _>>()?;
                Code::Record(names, codes)
            }
            Expression::Array(values) => Code::Array(self.codes(values)?),
            Expression::Test(of, pattern, flags) => {
                let regex = self.search_pattern(pattern, flags, node.start)?;
                Code::Test(self.boxed_code(of)?, regex)
            }
            Expression::List(function, lists, applied) => {
                let lists = self.codes(lists)?;
                let applied = applied.as_ref().map(|applied| self.applied_code(applied)).transpose()?;
                Code::List(Box::new(ListCode { function: *function, lists, applied, at: node.start }))
            }
            Expression::Heap(function, arguments) => {
                Code::Heap(*function, self.codes(arguments)?, node.start)
            }
        })
    }

    /// Resolves the names in a function for the items of a list.
    fn applied_code(&mut self, function: &FunctionNode) -> Result<AppliedCode, OqlError> {
        self.frames.push(NameFrame::Function(function.number));
        let body = self.code(&function.body);
        self.frames.pop();
        Ok(AppliedCode { slots: function.slots, body: body?, compared: function.compared })
    }

    /// Returns the number of frames between an expression and the query with this alias.
    pub(in crate::oql) fn query_depth(&self, name: &str) -> Option<u32> {
        let is_query = |frame: &NameFrame| matches!(frame, NameFrame::Query(Some(alias)) if alias == name);
        let at = self.frames.iter().rev().position(is_query)?;
        u32::try_from(at).ok()
    }

    /// Returns whether the query has no FROM.
    fn is_script(&self) -> bool {
        matches!(self.select.from.source, SelectSource::Expressions(_))
    }

    /// Creates the error for a name where there is no row.
    fn unknown_name(&self, name: &str, at: usize) -> OqlError {
        if let Some(instead) = builtins::no_script(name) {
            return OqlError::new(at, instead);
        }
        let name = cut(name);
        let text = match self.frames.is_empty() {
            true => format!(
                "unknown name {name}: without FROM there is no row; add FROM and a class, or name a class with heap.findClass(\"...\")"
            ),
            false => format!(
                "unknown name {name}; the item is it, as in 'it.size > 3', or the parameter of the function"
            ),
        };
        OqlError::new(at, text)
    }

    pub(in crate::oql) fn is_alias(&self, name: &str) -> bool {
        self.select.from.alias.as_deref() == Some(name)
    }

    /// Returns the code for the row itself.
    fn row(&self, at: usize) -> Result<Code, OqlError> {
        match self.names {
            NameScope::Fields(_) => Ok(Code::Row),
            NameScope::Values => Ok(Code::Column(0)),
            NameScope::Columns([_]) => Ok(Code::Column(0)),
            NameScope::Columns(columns) => {
                let alias = self.select.from.alias.as_deref().unwrap_or("alias");
                let first: Vec<String> =
                    columns.iter().take(5).map(|name| format!("{alias}.\"{}\"", cut(name))).collect();
                Err(OqlError::new(
                    at,
                    format!(
                        "the alias stands for several columns here; select one of them: {}",
                        first.join(", ")
                    ),
                ))
            }
            NameScope::Nothing => {
                Err(OqlError::new(at, "FROM cannot refer to rows, not even to those of the enclosing query"))
            }
        }
    }

    /// Returns the row from which `name` is read; an error if rows have several columns.
    fn row_named(&self, name: &str, at: usize) -> Result<Code, OqlError> {
        let NameScope::Columns(columns) = self.names else { return self.row(at) };
        if let [_] = columns {
            return self.row(at);
        }
        Err(no_column(name, columns, at))
    }

    /// Returns the column with this name, if the rows have it.
    fn column(&self, name: &str) -> Option<Code> {
        let NameScope::Columns(columns) = self.names else { return None };
        columns.iter().position(|column| column == name).map(Code::Column)
    }

    /// Returns the column to which `alias.name` or `alias.get("name")` refers, if it refers to one.
    fn column_of(&self, base: &ExpressionNode, step: &StepNode) -> Result<Option<Code>, OqlError> {
        let (Expression::Name(alias), NameScope::Columns(columns)) = (&base.expression, self.names) else {
            return Ok(None);
        };
        if !self.is_alias(alias) {
            return Ok(None);
        }
        let name = match &step.what {
            StepName::Field(name) => name,
            StepName::Method(method, arguments) if method == "get" => match arguments.as_slice() {
                [ExpressionNode { expression: Expression::Text(name), .. }] => name,
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        match (self.column(name), columns) {
            (Some(column), _) => Ok(Some(column)),
            (None, [_]) => Ok(None),
            (None, columns) => Err(no_column(name, columns, step.at)),
        }
    }

    fn path(&mut self, base: &ExpressionNode, steps: &[StepNode]) -> Result<Code, OqlError> {
        let node = base;
        let mut steps = steps;
        let column = match steps.split_first() {
            Some((first, rest)) => self.column_of(base, first)?.inspect(|_| steps = rest),
            None => None,
        };
        let start = match column {
            Some(column) => column,
            None => self.code(base)?,
        };
        // A leading field of the row is one more step.
        let (base, mut codes) = match start {
            Code::Path(base, codes) => (base, codes),
            code => (Box::new(code), Vec::new()),
        };
        // `name` of a class object that jhat's functions return is its name, not a static field.
        let mut is_property = matches!(
            node.expression,
            Expression::Call(Function::ClassOf, _) | Expression::Heap(HeapFunction::FindClass, _)
        ) || matches!(self.frames.last(), Some(NameFrame::Function(_)));
        for step in steps {
            let of_row = codes.is_empty() && matches!(*base, Code::Row);
            match &step.what {
                StepName::Field(name) if of_row => {
                    codes.push(CodeStep::Field(self.row_field(name, step.at)?));
                    is_property |= name == "clazz";
                }
                StepName::Field(name) => {
                    codes.push(CodeStep::Field(self.field_step(name, step.at, is_property)?));
                    is_property |= matches!(name.as_str(), "clazz" | "superclass");
                }
                StepName::Attribute(name) => {
                    codes.push(CodeStep::Attribute(builtins::attribute(name, step.at)?))
                }
                StepName::Element(index) => codes.push(CodeStep::Element(self.code(index)?)),
                StepName::Slice(first, last) => {
                    codes.push(CodeStep::Slice(self.code(first)?, self.code(last)?))
                }
                StepName::Method(name, arguments) => match (name.as_str(), arguments.as_slice()) {
                    ("matches", [ExpressionNode { expression: Expression::Text(pattern), .. }]) => {
                        codes.push(CodeStep::Matches(self.pattern(pattern, step.at)?));
                    }
                    // A path of fields, as in MAT.
                    ("resolveValue", [ExpressionNode { expression: Expression::Text(path), .. }]) => {
                        for name in path.split('.') {
                            codes.push(CodeStep::Field(self.field_step(name, step.at, false)?));
                        }
                    }
                    ("matches" | "resolveValue", [_]) => {
                        return Err(OqlError::new(step.at, format!("{name}() takes a string in quotes")));
                    }
                    (name, arguments) => {
                        codes.push(match builtins::method(name, arguments.len(), step.at)? {
                            CallTarget::Attribute(attribute) => CodeStep::Attribute(attribute),
                            CallTarget::Method(method) => {
                                let found = match method {
                                    Method::Get => self.lookup("get()", step.at),
                                    _ => None,
                                };
                                CodeStep::Method(method, self.codes(arguments)?, found)
                            }
                        })
                    }
                },
            }
        }
        if codes.is_empty() {
            return Ok(*base);
        }
        Ok(Code::Path(base, codes))
    }

    /// Resolves a field by name, once for all its occurrences.
    fn field(&mut self, name: &str, at: usize) -> Result<Arc<CodeField>, OqlError> {
        if let Some(known) = self.fields.get(name) {
            return Ok(known.clone());
        }
        if self.fields.len() >= MAX_FIELDS {
            return Err(OqlError::new(
                at,
                format!("a SELECT can have at most {MAX_FIELDS} different fields"),
            ));
        }
        let field = self.evaluator.field_of_name(name);
        self.fields.insert(name.to_owned(), field.clone());
        Ok(field)
    }

    /// Resolves a name after a dot.
    fn field_step(&mut self, name: &str, at: usize, is_property: bool) -> Result<FieldStep, OqlError> {
        Ok(FieldStep { field: self.field(name, at)?, is_property, found: self.lookup(name, at) })
    }

    /// Returns where the lookups of a name are recorded; `None` if it may be missing everywhere.
    fn lookup(&self, name: &str, at: usize) -> Option<Arc<FieldLookup>> {
        // In a rule, a field that the object does not have is null.
        (self.lenient == 0 && self.evaluator.bound.is_none()).then(|| self.evaluator.lookup(name, at))
    }

    /// Resolves a field of the row itself; returns an error if no row can have the field.
    fn row_field(&mut self, name: &str, at: usize) -> Result<FieldStep, OqlError> {
        let NameScope::Fields(classes) = self.names else { return self.field_step(name, at, false) };
        let checked = |field| FieldStep { field, is_property: false, found: None };
        if self.row_fields.contains(name) || self.evaluator.bound.is_some() {
            return self.field(name, at).map(checked);
        }
        let summary = self.evaluator.dump.summary;
        let of_class_objects = summary
            .java_lang_class()
            .is_some_and(|class| classes.get(class.0 as usize).copied().unwrap_or(false));
        let is_array = |number: ClassNumber| {
            summary
                .class(number)
                .is_some_and(|class| class.kind() != hprof_index::model::tables::ClassKind::Instance)
        };
        let rows = || (0u32..).zip(classes).filter(|(_, row)| **row).map(|(number, _)| ClassNumber(number));
        // Static fields are looked up at run time.
        if of_class_objects || rows().next().is_none() {
            return self.field_step(name, at, false);
        }
        let declares = |name: &str| {
            let has = |class| summary.fields(class).any(|(field, _)| field == name);
            let declares: Vec<bool> = summary.classes().iter().map(has).collect();
            let has = self.evaluator.inherit(declares);
            rows().any(|class| has.get(class.0 as usize).copied().unwrap_or(false))
        };
        let is_string = |class: ClassNumber| self.evaluator.strings.get(class.0 as usize) == Some(&true);
        let is_known = match name {
            "length" => rows().any(is_array),
            "size" | "elementCount" => rows().any(|class| self.evaluator.is_collection(class)),
            "count" | "offset" => rows().any(is_string),
            "clazz" => true,
            _ => false,
        };
        if is_known || declares(name) {
            self.row_fields.insert(name.to_owned());
            return self.field(name, at).map(checked);
        }
        // Newer JDKs moved some fields of threads to another object.
        if declares("holder") {
            return self.field_step(name, at, false);
        }
        if let Some(instead) = builtins::no_script(name) {
            return Err(OqlError::new(at, instead));
        }
        let class = rows().next();
        let class_name =
            class.and_then(|class| summary.class(class)).map_or("", |row| summary.class_name(row));
        let what = match self.select.from.alias.as_deref() {
            None => format!("{class_name} has no field {}", cut(name)),
            Some(alias) => format!("{class_name} has no field {} (the alias is {})", cut(name), cut(alias)),
        };
        let hint = class.map(|class| fields_hint(summary, class, name)).unwrap_or_default();
        Err(OqlError::new(at, what + &hint))
    }

    /// Returns the contents of a list whose elements are the same for all rows, if it is long enough for a set.
    fn constants(&self, codes: &[Code]) -> Option<QuerySet> {
        let values =
            || codes.iter().map(|code| if let Code::Value(value) = code { Some(value) } else { None });
        let is_list = |value: &ExpressionValue| value.is_listed();
        let worth = codes.len() > SHORT_LIST || values().flatten().any(is_list);
        if !worth || values().any(|value| value.is_none()) {
            return None;
        }
        let evaluator = self.evaluator;
        let mut found = QuerySet::new(evaluator.kept.room(evaluator.dump.graph));
        let inserted = values().flatten().try_for_each(|value| evaluator.find(&mut found, value.clone()));
        if let Err(error) = inserted {
            evaluator.kept.record_error(&error);
        }
        Some(found)
    }

    fn kind(&self, class: &str, at: usize) -> Result<TestedKind, OqlError> {
        // Classes of MAT's own objects.
        if let Some(model) = class.strip_prefix("org.eclipse.mat.snapshot.model.") {
            return Ok(match model {
                "IClass" => TestedKind::ClassObject,
                "IInstance" => TestedKind::Instance,
                "IArray" => TestedKind::Array,
                "IObjectArray" => TestedKind::ObjectArray,
                "IPrimitiveArray" => TestedKind::PrimitiveArray,
                "IObject" => TestedKind::Any,
                _ => {
                    let text = "unknown class of MAT's model; the classes are IObject, IClass, IInstance, IArray, IObjectArray, IPrimitiveArray";
                    return Err(OqlError::new(at, text));
                }
            });
        }
        let classes = self.evaluator.classes_named(class, at)?;
        self.evaluator.check_interface(&classes, at)?;
        let marks = self.evaluator.with_subclasses(&classes);
        let numbers = (0u32..).zip(marks).filter(|(_, mark)| *mark).map(|(number, _)| ClassNumber(number));
        Ok(TestedKind::Classes(numbers.collect::<HashSet<_>>()))
    }
}

fn no_column(name: &str, columns: &[String], at: usize) -> OqlError {
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let hint = suggestions::did_you_mean_one_of(name, &columns, LISTED, "the columns are");
    OqlError::new(at, format!("unknown column {}; {hint}", cut(name)))
}

/// Returns whether an expression can be true or false, judged without evaluating it.
fn is_condition(node: &ExpressionNode) -> bool {
    !matches!(
        node.expression,
        Expression::Null
            | Expression::Whole(_)
            | Expression::Fraction(_)
            | Expression::Char(_)
            | Expression::Text(_)
            | Expression::Call(..)
            | Expression::Negate(_)
            | Expression::Arithmetic(..)
            | Expression::Record(_)
            | Expression::Array(_)
    )
}
