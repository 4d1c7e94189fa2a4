//! Expressions with their names resolved: fields, columns, attributes, methods.

use std::collections::HashSet;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use rustc_hash::FxHashMap;

use crate::classes::suggestions;
use hprof_index::model::summary::ClassNumber;

use super::code::{Aggregated, Code, Field, Found, Kind, Step};
use super::error::Wrong;
use super::evaluate::{Evaluator, Row};
use super::group::has_aggregate;
use super::names::{self, Called, cut};
use super::selected::{Ask, Objects};
use super::tree::{Expression, Node, Select, Step as StepNode, What};
use super::value::Value;

/// The memory that a regular expression may take.
const MAX_REGEX: usize = 4 << 20;
/// Different fields in one SELECT, and regular expressions: each has a table of its own.
const MAX_FIELDS: usize = 256;
/// Values of a constant list that are looked through one by one; longer ones are a set.
const SHORT_LIST: usize = 8;

/// A pattern that the whole text must match.
pub(super) fn regex(pattern: &str, at: usize) -> Result<Regex, Wrong> {
    let build = |pattern: &str| RegexBuilder::new(pattern).size_limit(MAX_REGEX).build();
    // Alone first: the brackets around it must not mend those in it.
    build(pattern).and_then(|_| build(&format!(r"\A(?:{pattern})\z"))).map_err(|error| {
        let said = error.to_string();
        let last = said.lines().last().unwrap_or_default().trim_start_matches("error: ");
        Wrong::new(at, format!("`{}` is not a regular expression: {}", cut(pattern), cut(last)))
    })
}

/// The regular expression that MAT makes of a pattern: `$` is a character unless it is the last one, and so is `[]`.
pub(super) fn mats_pattern(pattern: &str) -> String {
    let mut fixed = String::with_capacity(pattern.len());
    let mut characters = pattern.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\\' => {
                fixed.push(c);
                fixed.extend(characters.next());
            }
            '$' if characters.peek().is_some() => fixed.push_str(r"\$"),
            '[' if characters.peek() == Some(&']') => {
                characters.next();
                fixed.push_str(r"\[\]");
            }
            c => fixed.push(c),
        }
    }
    fixed
}

/// What names in an expression mean.
#[derive(Debug, Clone, Copy)]
pub(super) enum Names<'r> {
    /// Fields of objects of these classes, by class number.
    Fields(&'r [bool]),
    /// Columns.
    Columns(&'r [String]),
    /// Rows have one value; it has the name of the alias.
    Values,
    /// There is no row.
    Nothing,
}

impl<'r> Names<'r> {
    /// Of the rows of a source, whose classes are these.
    pub(super) fn of(source: &'r Objects, classes: &'r [bool]) -> Self {
        match source.table().map(|table| table.columns.as_deref()) {
            None => Self::Fields(classes),
            Some(None) => Self::Values,
            Some(Some(columns)) => Self::Columns(columns),
        }
    }
}

/// Resolves the expressions of one SELECT.
pub(super) struct Resolver<'r, 'o, 'a> {
    evaluator: &'r Evaluator<'o, 'a>,
    select: &'r Select,
    names: Names<'r>,
    pub(super) ask: &'r dyn Ask,
    /// The aggregates that were met.
    pub(super) aggregates: Vec<Aggregated>,
    fields: FxHashMap<String, Arc<Field>>,
    patterns: usize,
}

impl<'r, 'o, 'a> Resolver<'r, 'o, 'a> {
    pub(super) fn new(
        evaluator: &'r Evaluator<'o, 'a>,
        select: &'r Select,
        names: Names<'r>,
        ask: &'r dyn Ask,
    ) -> Self {
        let (aggregates, fields) = (Vec::new(), FxHashMap::default());
        Self { evaluator, select, names, ask, aggregates, fields, patterns: 0 }
    }

    fn boxed(&mut self, node: &Node) -> Result<Box<Code>, Wrong> {
        Ok(Box::new(self.code(node)?))
    }

    fn codes(&mut self, nodes: &[Node]) -> Result<Vec<Code>, Wrong> {
        nodes.iter().map(|node| self.code(node)).collect()
    }

    /// A condition with its names resolved.
    pub(super) fn condition(&mut self, node: &Node) -> Result<Code, Wrong> {
        if !is_condition(node) {
            let text = "WHERE needs a condition: compare this with something";
            return Err(Wrong::new(node.start, text));
        }
        self.code(node)
    }

    /// An expression with its names resolved. What is the same for all rows is its value.
    pub(super) fn code(&mut self, node: &Node) -> Result<Code, Wrong> {
        let code = self.resolve(node)?;
        Ok(if is_constant(&code) {
            Code::Value(self.evaluator.value(&code, &Row::new(u32::MAX, &[], None)))
        } else {
            code
        })
    }

    fn resolve(&mut self, node: &Node) -> Result<Code, Wrong> {
        Ok(match &node.expression {
            Expression::Null => Code::Value(Value::Null),
            Expression::Boolean(value) => Code::Value(Value::Boolean(*value)),
            Expression::Whole(value) => Code::Value(Value::Whole(*value)),
            Expression::Fraction(value) => Code::Value(Value::Double(*value)),
            Expression::Char(unit) => Code::Value(Value::Char(*unit)),
            Expression::Text(text) => Code::Value(Value::Text(text.as_str().into())),
            Expression::Snapshot => Code::Value(Value::Snapshot),
            Expression::Query(query) => Code::Value(self.ask.value(query)?),
            Expression::Row => self.row(node.start)?,
            Expression::Name(name) if self.is_alias(name) => self.row(node.start)?,
            Expression::Name(name) => {
                match self.column(name).or_else(|| self.ask.bound(name).map(Code::Value)) {
                    Some(column) => column,
                    None => {
                        let row = Box::new(self.row_named(name, node.start)?);
                        Code::Path(row, vec![Step::Field(self.row_field(name, node.start)?)])
                    }
                }
            }
            Expression::Path(base, steps) => return self.path(base, steps),
            Expression::Call(function, argument) => Code::Call(*function, self.boxed(argument)?),
            Expression::Aggregate(what, of) => {
                if let Some(of) = of.as_ref().filter(|of| has_aggregate(of)) {
                    return Err(Wrong::new(of.start, "an aggregate cannot be of another one"));
                }
                let of = of.as_ref().map(|of| self.code(of)).transpose()?;
                self.aggregates.push(Aggregated { what: *what, of });
                Code::Aggregate(self.aggregates.len() - 1)
            }
            Expression::Coalesce(of) => Code::Coalesce(self.codes(of)?),
            Expression::Not(of) => Code::Not(self.boxed(of)?),
            Expression::Negate(of) => Code::Negate(self.boxed(of)?),
            Expression::All(of) => Code::All(self.codes(of)?),
            Expression::Any(of) => Code::Any(self.codes(of)?),
            Expression::Compare(left, comparison, right) => {
                Code::Compare(self.boxed(left)?, *comparison, self.boxed(right)?)
            }
            Expression::Arithmetic(first, more) => {
                let first = self.boxed(first)?;
                let more = more.iter().map(|(operator, node)| Ok((*operator, self.code(node)?)));
                Code::Arithmetic(first, more.collect::<Result<_, Wrong>>()?)
            }
            Expression::Like(of, pattern, is_negated) => {
                let regex =
                    self.pattern(&mats_pattern(pattern), node.end.saturating_sub(pattern.len() + 2))?;
                Code::Like(self.boxed(of)?, regex, *is_negated)
            }
            Expression::In(of, values, is_negated) => {
                let (of, values) = (self.boxed(of)?, self.codes(values)?);
                match self.constants(&values) {
                    Some(found) => Code::InFound(of, Arc::new(found), *is_negated),
                    None => Code::In(of, values, *is_negated),
                }
            }
            Expression::InQuery(of, query, is_negated) => {
                let found = self.ask.found(query)?;
                Code::InFound(self.boxed(of)?, found, *is_negated)
            }
            Expression::Is(of, class, at) => Code::Is(self.boxed(of)?, self.kind(class, *at)?),
        })
    }

    fn is_alias(&self, name: &str) -> bool {
        self.select.from.alias.as_deref() == Some(name)
    }

    /// A regular expression, if there are not too many.
    fn pattern(&mut self, pattern: &str, at: usize) -> Result<Regex, Wrong> {
        self.patterns += 1;
        if self.patterns > MAX_FIELDS {
            return Err(Wrong::new(at, format!("a SELECT has at most {MAX_FIELDS} regular expressions")));
        }
        regex(pattern, at)
    }

    /// The row itself.
    fn row(&self, at: usize) -> Result<Code, Wrong> {
        match self.names {
            Names::Fields(_) => Ok(Code::Row),
            Names::Values => Ok(Code::Column(0)),
            Names::Columns([_]) => Ok(Code::Column(0)),
            Names::Columns(columns) => {
                let alias = self.select.from.alias.as_deref().unwrap_or("alias");
                let first: Vec<String> =
                    columns.iter().take(5).map(|name| format!("{alias}.\"{}\"", cut(name))).collect();
                Err(Wrong::new(at, format!("rows have several columns here: write {}", first.join(", "))))
            }
            Names::Nothing => {
                Err(Wrong::new(at, "no row is available in FROM, not even that of an enclosing query"))
            }
        }
    }

    /// The row of which `name` is asked.
    fn row_named(&self, name: &str, at: usize) -> Result<Code, Wrong> {
        let Names::Columns(columns) = self.names else { return self.row(at) };
        if let [_] = columns {
            return self.row(at);
        }
        Err(no_column(name, columns, at))
    }

    /// The column of this name, if rows have it.
    fn column(&self, name: &str) -> Option<Code> {
        let Names::Columns(columns) = self.names else { return None };
        columns.iter().position(|column| column == name).map(Code::Column)
    }

    /// The column that `alias.name` or `alias.get("name")` means, if it is one.
    fn column_of(&self, base: &Node, step: &StepNode) -> Result<Option<Code>, Wrong> {
        let (Expression::Name(alias), Names::Columns(columns)) = (&base.expression, self.names) else {
            return Ok(None);
        };
        if !self.is_alias(alias) {
            return Ok(None);
        }
        let name = match &step.what {
            What::Field(name) => name,
            What::Method(method, arguments) if method == "get" => match arguments.as_slice() {
                [Node { expression: Expression::Text(name), .. }] => name,
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

    fn path(&mut self, base: &Node, steps: &[StepNode]) -> Result<Code, Wrong> {
        let mut steps = steps;
        let column = match steps.split_first() {
            Some((first, rest)) => self.column_of(base, first)?.inspect(|_| steps = rest),
            None => None,
        };
        let start = match column {
            Some(column) => column,
            None => self.code(base)?,
        };
        // A field of the row in front is one more step.
        let (base, mut codes) = match start {
            Code::Path(base, codes) => (base, codes),
            code => (Box::new(code), Vec::new()),
        };
        for step in steps {
            let of_row = codes.is_empty() && matches!(*base, Code::Row);
            match &step.what {
                What::Field(name) if of_row => codes.push(Step::Field(self.row_field(name, step.at)?)),
                What::Field(name) => codes.push(Step::Field(self.field(name, step.at)?)),
                What::Attribute(name) => codes.push(Step::Attribute(names::attribute(name, step.at)?)),
                What::Element(index) => codes.push(Step::Element(self.code(index)?)),
                What::Slice(first, last) => codes.push(Step::Slice(self.code(first)?, self.code(last)?)),
                What::Method(name, arguments) => match (name.as_str(), arguments.as_slice()) {
                    ("matches", [Node { expression: Expression::Text(pattern), .. }]) => {
                        codes.push(Step::Matches(self.pattern(pattern, step.at)?));
                    }
                    // A path of fields, as in MAT.
                    ("resolveValue", [Node { expression: Expression::Text(path), .. }]) => {
                        for name in path.split('.') {
                            codes.push(Step::Field(self.field(name, step.at)?));
                        }
                    }
                    ("matches" | "resolveValue", [_]) => {
                        return Err(Wrong::new(step.at, format!("{name}() takes a text in quotes")));
                    }
                    (name, arguments) => codes.push(match names::method(name, arguments.len(), step.at)? {
                        Called::Attribute(attribute) => Step::Attribute(attribute),
                        Called::Method(method) => Step::Method(method, self.codes(arguments)?),
                    }),
                },
            }
        }
        if codes.is_empty() {
            return Ok(*base);
        }
        Ok(Code::Path(base, codes))
    }

    /// A field by its name, one for all places where it stands.
    fn field(&mut self, name: &str, at: usize) -> Result<Arc<Field>, Wrong> {
        if let Some(known) = self.fields.get(name) {
            return Ok(known.clone());
        }
        if self.fields.len() >= MAX_FIELDS {
            return Err(Wrong::new(at, format!("a SELECT has at most {MAX_FIELDS} different fields")));
        }
        let field = self.evaluator.field_of_name(name);
        self.fields.insert(name.to_owned(), field.clone());
        Ok(field)
    }

    /// A field of the row itself: one that no row can have is a mistake.
    fn row_field(&mut self, name: &str, at: usize) -> Result<Arc<Field>, Wrong> {
        let known = self.fields.contains_key(name);
        let Names::Fields(classes) = self.names else { return self.field(name, at) };
        // What a rule asks of an object that has no such field is null.
        if known || self.evaluator.bound.is_some() {
            return self.field(name, at);
        }
        let summary = self.evaluator.summary;
        let of_class_objects = summary
            .java_lang_class()
            .is_some_and(|class| classes.get(class.0 as usize).copied().unwrap_or(false));
        let is_array = |number: ClassNumber| {
            summary
                .class(number)
                .is_some_and(|class| class.kind() != hprof_index::model::tables::ClassKind::Instance)
        };
        let rows = || (0u32..).zip(classes).filter(|(_, row)| **row).map(|(number, _)| ClassNumber(number));
        // Static fields are looked up as they come.
        if of_class_objects || rows().next().is_none() || (name == "length" && rows().any(is_array)) {
            return self.field(name, at);
        }
        let declares: Vec<bool> = summary
            .classes()
            .iter()
            .map(|class| summary.fields(class).any(|(field, _)| field == name))
            .collect();
        let has = self.evaluator.inherit(declares);
        if rows().any(|class| has.get(class.0 as usize).copied().unwrap_or(false)) {
            return self.field(name, at);
        }
        if let Some(instead) = names::no_script(name) {
            return Err(Wrong::new(at, instead));
        }
        // Names of fields of the first rows' classes: all of a long chain are too many.
        let mut fields = Vec::new();
        let upwards = rows().next().into_iter().flat_map(|class| summary.class_table().upwards(class));
        for class in upwards.take(64).filter_map(|class| summary.class(class)) {
            fields.extend(summary.fields(class).map(|(field, _)| field).take(1000));
        }
        let class = rows()
            .next()
            .and_then(|class| summary.class(class))
            .map_or("", |class| summary.class_name(class));
        let alias = self.select.from.alias.as_deref();
        let what = match alias {
            None => format!("{class} has no field {}", cut(name)),
            Some(alias) => format!("{class} has no field {} (the alias is {})", cut(name), cut(alias)),
        };
        let hint = if fields.is_empty() {
            String::new()
        } else {
            format!("; {}", suggestions::did_you_mean_one_of(name, &fields, LISTED, "its fields are"))
        };
        Err(Wrong::new(at, what + &hint))
    }

    /// What is in a list that is the same for all rows, if it is worth a set.
    fn constants(&self, codes: &[Code]) -> Option<Found> {
        let values =
            || codes.iter().map(|code| if let Code::Value(value) = code { Some(value) } else { None });
        let is_list = |value: &Value| matches!(value, Value::List(..) | Value::Slice(_) | Value::Many(_));
        let worth = codes.len() > SHORT_LIST || values().flatten().any(is_list);
        if !worth || values().any(|value| value.is_none()) {
            return None;
        }
        let mut found = Found::default();
        for value in values().flatten() {
            self.evaluator.find(&mut found, value.clone());
        }
        Some(found)
    }

    fn kind(&self, class: &str, at: usize) -> Result<Kind, Wrong> {
        // What MAT's own objects are.
        if let Some(model) = class.strip_prefix("org.eclipse.mat.snapshot.model.") {
            return Ok(match model {
                "IClass" => Kind::ClassObject,
                "IInstance" => Kind::Instance,
                "IArray" => Kind::Array,
                "IObjectArray" => Kind::ObjectArray,
                "IPrimitiveArray" => Kind::PrimitiveArray,
                "IObject" => Kind::Any,
                _ => {
                    let text = "of MAT's model there are IObject, IClass, IInstance, IArray, IObjectArray, IPrimitiveArray";
                    return Err(Wrong::new(at, text));
                }
            });
        }
        let classes = self.evaluator.classes_named(class, at)?;
        let marks = self.evaluator.with_subclasses(&classes);
        let numbers = (0u32..).zip(marks).filter(|(_, mark)| *mark).map(|(number, _)| ClassNumber(number));
        Ok(Kind::Classes(numbers.collect::<HashSet<_>>()))
    }
}

/// Names that a message lists if none is like the one asked for.
const LISTED: usize = 12;

fn no_column(name: &str, columns: &[String], at: usize) -> Wrong {
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let hint = suggestions::did_you_mean_one_of(name, &columns, LISTED, "the columns are");
    Wrong::new(at, format!("there is no column {}; {hint}", cut(name)))
}

/// Returns whether an expression may be true or false, as far as can be seen.
fn is_condition(node: &Node) -> bool {
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
    )
}

/// Returns whether an expression is the same for all rows; what is in it is a value already if it is.
fn is_constant(code: &Code) -> bool {
    let is_value = |code: &Code| matches!(code, Code::Value(_));
    match code {
        Code::Call(_, of) | Code::Not(of) | Code::Negate(of) => is_value(of),
        Code::Like(of, ..) | Code::InFound(of, ..) | Code::Is(of, _) => is_value(of),
        Code::Compare(left, _, right) => is_value(left) && is_value(right),
        Code::Arithmetic(first, more) => is_value(first) && more.iter().all(|(_, code)| is_value(code)),
        Code::All(of) | Code::Any(of) | Code::Coalesce(of) => of.iter().all(is_value),
        Code::In(of, values, _) => is_value(of) && values.iter().all(is_value),
        Code::Path(base, steps) => {
            let is_step = |step: &Step| match step {
                Step::Field(_) | Step::Attribute(_) | Step::Matches(_) => true,
                Step::Method(_, arguments) => arguments.iter().all(is_value),
                Step::Element(index) => is_value(index),
                Step::Slice(first, last) => is_value(first) && is_value(last),
            };
            is_value(base) && steps.iter().all(is_step)
        }
        Code::Value(_) | Code::Row | Code::Column(_) | Code::Aggregate(_) => false,
    }
}
