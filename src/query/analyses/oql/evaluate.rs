//! Evaluation of expressions for a row.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use regex::Regex;
use rustc_hash::FxHashMap;

use hprof_index::Dump;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::tables::ClassKind;
use hprof_model::dump::info::DumpInfo;
use hprof_model::objects::collections::Collections;
use hprof_model::objects::hiding::HIDDEN;
use hprof_model::objects::meaning::Meanings;
use hprof_model::objects::reader::ObjectRecord;
use hprof_model::objects::reference_names::Edges;
use hprof_model::objects::root_index::RootIndex;
use hprof_model::threads::Threads;
use hprof_values::BasicType;

use super::builtins::Method;
use super::code::{Code, CodeField, CodeStep, FieldLookup, TestedKind, ValueTable};
use super::kept::RowMemory;
use super::parameters::Parameters;
use super::tree::{Comparison, Function, Operator};
use super::value::{ExpressionValue, List, Record};

/// Maximum number of UTF-16 units of a text that are examined.
pub(super) const MAX_TEXT: usize = 1 << 20;
/// Maximum number of elements of a list that `IN` searches.
pub(super) const MAX_SEARCHED: usize = 1 << 24;

/// Evaluator of queries and expressions over a dump.
#[derive(Debug)]
pub struct Evaluator<'o, 'a> {
    pub(super) dump: &'o Dump<'a>,
    pub(super) meanings: Meanings<'a>,
    pub(super) collections: OnceLock<Collections<'o, 'a>>,
    pub(super) roots: OnceLock<RootIndex<'a>>,
    /// Objects that are roots.
    pub(super) root_objects: OnceLock<Arc<[ObjectIndex]>>,
    pub(super) sizes: OnceLock<Sizes>,
    pub(super) info: OnceLock<DumpInfo>,
    pub(super) threads: OnceLock<Threads<'a>>,
    /// `true` if only reachable objects are selected.
    pub(super) live: bool,
    /// Maximum number of elements of lists and of rows of nested queries, if there is a limit; longer ones have no value.
    pub(super) bound: Option<usize>,
    /// `true` if texts of objects are hidden where values are shown.
    pub(super) hides_values: bool,
    /// `true` if texts and numbers are hidden from conditions as well.
    pub(super) hides_contents: bool,
    /// Fields used so far, by name; each has its own table of locations.
    fields: Mutex<FxHashMap<Box<str>, Arc<CodeField>>>,
    /// Regular expressions compiled so far, by pattern.
    pub(super) patterns: Mutex<FxHashMap<Box<str>, Regex>>,
    /// Memory for the rows of queries.
    pub(super) kept: RowMemory,
    /// By class number: `true` if its objects are java.lang.Strings.
    pub(super) strings: Vec<bool>,
    /// Lookups of the names in the current query.
    pub(super) lookups: Mutex<Vec<Arc<FieldLookup>>>,
    /// Number of items that functions over lists have read.
    pub(super) items_read: AtomicU64,
    /// References with their names, for paths to objects.
    pub(super) edges: OnceLock<Edges<'a>>,
}

/// A row for which expressions are evaluated: an object, or a row of a table.
#[derive(Debug)]
pub(super) struct EvaluatedRow<'r, 'a> {
    /// Object index, or number of the row in its table.
    pub(super) number: u32,
    pub(super) record: OnceCell<Option<ObjectRecord<'a>>>,
    /// Aggregates of the row's group.
    pub(super) aggregates: &'r [ExpressionValue],
    columns: &'r [ExpressionValue],
    /// Parameters of the functions around the expression.
    pub(super) parameters: Option<&'r Parameters<'r>>,
}

impl<'r, 'a> EvaluatedRow<'r, 'a> {
    /// Creates a row whose record is read on demand, or a row of `table`.
    pub(super) fn new(number: u32, aggregates: &'r [ExpressionValue], table: Option<&'r ValueTable>) -> Self {
        let columns = table.and_then(|table| table.rows.get(number as usize)).map_or(&[][..], |row| row);
        Self { number, record: OnceCell::new(), aggregates, columns, parameters: None }
    }

    /// Returns the object that the row represents. Must not be called for a row of a table.
    pub(super) fn object(&self) -> ObjectIndex {
        ObjectIndex(self.number)
    }

    /// Creates a row with a record that was already read.
    pub(super) fn with_record(object: ObjectIndex, record: Option<ObjectRecord<'a>>) -> Self {
        let record = OnceCell::from(record);
        Self { number: object.0, record, aggregates: &[], columns: &[], parameters: None }
    }

    /// Returns the same row, for the body of a function with these parameters.
    pub(super) fn with_parameters<'s>(&self, parameters: &'s Parameters<'s>) -> EvaluatedRow<'s, 'a>
    where
        'r: 's,
    {
        let record = self.record.clone();
        EvaluatedRow {
            number: self.number,
            record,
            aggregates: self.aggregates,
            columns: self.columns,
            parameters: Some(parameters),
        }
    }
}

impl<'o, 'a> Evaluator<'o, 'a> {
    /// Creates an evaluator over the objects of a dump.
    pub fn new(dump: &'o Dump<'a>) -> Self {
        let (heap, summary) = (dump.heap, dump.summary);
        let is_string = |class| summary.is_named(class, "java.lang.String");
        Self {
            dump,
            meanings: Meanings::new(dump),
            collections: OnceLock::new(),
            roots: OnceLock::new(),
            root_objects: OnceLock::new(),
            sizes: OnceLock::new(),
            info: OnceLock::new(),
            threads: OnceLock::new(),
            live: false,
            bound: None,
            hides_values: heap.hides_values(),
            hides_contents: heap.hides_values(),
            fields: Mutex::default(),
            patterns: Mutex::default(),
            kept: RowMemory::default(),
            strings: summary.classes().iter().map(is_string).collect(),
            lookups: Mutex::default(),
            items_read: AtomicU64::new(0),
            edges: OnceLock::new(),
        }
    }

    /// Restricts rows to reachable objects, if `live` is set.
    #[must_use]
    pub fn only_reachable(self, live: bool) -> Self {
        Self { live, ..self }
    }

    /// Limits lists to this number of elements; longer ones have no value. Lets conditions read hidden values, which is only
    /// for trusted rules, whose texts are hidden where they are shown.
    #[must_use]
    pub(crate) fn with_max_elements(self, elements: usize) -> Self {
        Self { bound: Some(elements), hides_contents: false, ..self }
    }

    /// Returns the field with this name; all expressions share it.
    pub(super) fn field_of_name(&self, name: &str) -> Arc<CodeField> {
        let mut fields = self.fields.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || {
            Arc::new(CodeField { name: name.into(), places: OnceLock::new(), searches: AtomicU32::new(0) })
        };
        fields.entry(name.into()).or_insert_with(new).clone()
    }

    /// Returns whether an object may be a row, given the restriction to reachable objects.
    pub(super) fn is_meant(&self, object: ObjectIndex) -> bool {
        !self.live || self.dump.graph.tree.reachable_position(object).is_some()
    }

    /// Returns the value of an expression.
    pub(super) fn value(&self, code: &Code, row: &EvaluatedRow<'_, 'a>) -> ExpressionValue {
        match code {
            Code::Value(value) => value.clone(),
            Code::Row => ExpressionValue::Object(row.object()),
            Code::Column(number) => row.columns.get(*number).cloned().unwrap_or(ExpressionValue::Null),
            Code::Path(base, steps) => self.path(base, steps, row),
            Code::Call(Function::ToText, argument) if matches!(**argument, Code::Row) => {
                match self.string_of_row(row).filter(|_| !self.hides_values || self.hides_contents) {
                    Some(text) => ExpressionValue::Text(text.into()),
                    None => self.call(Function::ToText, ExpressionValue::Object(row.object())),
                }
            }
            Code::Call(Function::ToHex, argument) => match self.value(argument, row) {
                // A Java int has eight hexadecimal digits.
                ExpressionValue::Whole(number @ ..0) if self.is_int(argument, row) => {
                    ExpressionValue::Text(format!("{:#x}", number & 0xffff_ffff).into())
                }
                value => self.call(Function::ToHex, value),
            },
            Code::Call(function, argument) => self.call(*function, self.value(argument, row)),
            Code::Coalesce(of) => {
                let mut values = of.iter().map(|code| self.value(code, row));
                values.find(|value| *value != ExpressionValue::Null).unwrap_or(ExpressionValue::Null)
            }
            Code::Aggregate(number) => row.aggregates.get(*number).cloned().unwrap_or(ExpressionValue::Null),
            Code::Negate(of) => match self.value(of, row) {
                ExpressionValue::Float(value) => ExpressionValue::Float(-value),
                ExpressionValue::Double(value) => ExpressionValue::Double(-value),
                value => value
                    .integer()
                    .and_then(i64::checked_neg)
                    .map_or(ExpressionValue::Null, ExpressionValue::Whole),
            },
            Code::Arithmetic(first, more) => {
                more.iter().fold(self.value(first, row), |left, (operator, right)| {
                    let right = self.value(right, row);
                    match (operator, &left, &right) {
                        (Operator::Add, ExpressionValue::Text(_), _)
                        | (Operator::Add, _, ExpressionValue::Text(_)) => self.join(&left, &right),
                        _ => arithmetic(&left, *operator, &right),
                    }
                })
            }
            Code::Parameter(depth, slot) => {
                let found = row.parameters.and_then(|parameters| parameters.get(*depth, *slot));
                found.unwrap_or(ExpressionValue::Null)
            }
            Code::Choose(of) => {
                let [condition, value, other] = &**of;
                self.value(if self.holds(condition, row) { value } else { other }, row)
            }
            Code::Record(names, values) => ExpressionValue::Record(Arc::new(Record {
                names: names.clone(),
                values: values.iter().map(|code| self.value(code, row)).collect(),
            })),
            Code::Array(values) => {
                ExpressionValue::from_values(values.iter().map(|code| self.value(code, row)).collect())
            }
            Code::List(list) => self.list_value(list, row),
            Code::Heap(function, arguments, at) => {
                let arguments: Vec<ExpressionValue> =
                    arguments.iter().map(|code| self.value(code, row)).collect();
                self.heap(*function, &arguments, *at)
            }
            // All other expressions are boolean.
            _ => ExpressionValue::Boolean(self.holds(code, row)),
        }
    }

    /// Concatenates two values as text.
    fn join(&self, left: &ExpressionValue, right: &ExpressionValue) -> ExpressionValue {
        let text = |value: &ExpressionValue| match self.call(Function::ToText, value.clone()) {
            ExpressionValue::Text(text) => text.into_string(),
            _ => "null".to_owned(),
        };
        ExpressionValue::Text(cut(text(left) + &text(right)).into())
    }

    /// Returns whether a condition holds.
    pub(super) fn holds(&self, code: &Code, row: &EvaluatedRow<'_, 'a>) -> bool {
        match code {
            Code::Not(of) => !self.holds(of, row),
            Code::All(of) => of.iter().all(|code| self.holds(code, row)),
            Code::Any(of) => of.iter().any(|code| self.holds(code, row)),
            Code::Compare(left, comparison, right) => {
                self.compares(&self.value(left, row), *comparison, &self.value(right, row))
            }
            Code::Like(of, pattern, is_negated) => {
                let value = self.value(of, row);
                // Neither LIKE nor NOT LIKE holds for null, as in MAT.
                value != ExpressionValue::Null
                    && self.text(&value).is_some_and(|text| pattern.is_match(&text)) != *is_negated
            }
            Code::In(of, values, is_negated) => {
                let value = self.value(of, row);
                // Neither IN nor NOT IN holds for null or for a missing list, as in MAT.
                if value == ExpressionValue::Null {
                    return false;
                }
                match values.as_slice() {
                    [list] if !matches!(list, Code::Value(_)) => {
                        let list = self.value(list, row);
                        list != ExpressionValue::Null && self.is_among(&value, &list) != *is_negated
                    }
                    values => {
                        let mut values = values.iter().map(|among| self.value(among, row));
                        values.any(|among| self.is_among(&value, &among)) != *is_negated
                    }
                }
            }
            Code::InFound(of, found, is_negated) => {
                let value = self.value(of, row);
                value != ExpressionValue::Null && self.is_found(&value, found) != *is_negated
            }
            Code::Test(of, pattern) => {
                let value = self.value(of, row);
                self.text(&value).is_some_and(|text| pattern.is_match(&text))
            }
            Code::Is(of, kind) => match self.value(of, row) {
                ExpressionValue::Object(object) => self.is_kind(object, kind),
                _ => false,
            },
            _ => self.value(code, row).is_true(),
        }
    }

    /// Returns whether a comparison holds. Values that cannot be compared are unequal, and neither less nor greater.
    pub(super) fn compares(
        &self,
        left: &ExpressionValue,
        comparison: Comparison,
        right: &ExpressionValue,
    ) -> bool {
        let order = match (left, right) {
            // A String is compared with a text by its contents.
            (ExpressionValue::Object(object), ExpressionValue::Text(_) | ExpressionValue::Char(_)) => {
                self.string(*object).and_then(|text| ExpressionValue::Text(text.into()).compare(right))
            }
            (ExpressionValue::Text(_) | ExpressionValue::Char(_), ExpressionValue::Object(object)) => {
                self.string(*object).and_then(|text| left.compare(&ExpressionValue::Text(text.into())))
            }
            // An object is compared with a number by its address.
            (ExpressionValue::Object(object), ExpressionValue::Whole(_)) => {
                self.address(*object).compare(right)
            }
            (ExpressionValue::Whole(_), ExpressionValue::Object(object)) => {
                left.compare(&self.address(*object))
            }
            _ => left.compare(right),
        };
        let is_object = |value: &ExpressionValue| {
            matches!(value, ExpressionValue::Object(_) | ExpressionValue::Missing(_) | ExpressionValue::Null)
        };
        let has_order = !(is_object(left) && is_object(right));
        match comparison {
            Comparison::Equal => order == Some(Ordering::Equal),
            Comparison::NotEqual => order != Some(Ordering::Equal),
            Comparison::Less => has_order && order == Some(Ordering::Less),
            Comparison::LessOrEqual => has_order && order.is_some_and(Ordering::is_le),
            Comparison::Greater => has_order && order == Some(Ordering::Greater),
            Comparison::GreaterOrEqual => has_order && order.is_some_and(Ordering::is_ge),
        }
    }

    /// Returns whether an object is of a kind.
    pub(super) fn is_kind(&self, object: ObjectIndex, kind: &TestedKind) -> bool {
        let class = self.dump.graph.objects.class(object);
        let is_class = || self.dump.graph.objects.class_objects().contains(object.0);
        let kind_of = || class.and_then(|class| self.dump.summary.class(class)).map(|class| class.kind());
        match kind {
            TestedKind::Any => true,
            TestedKind::Classes(classes) => class.is_some_and(|class| classes.contains(&class)),
            TestedKind::ClassObject => is_class(),
            TestedKind::Instance => !is_class() && kind_of() == Some(ClassKind::Instance),
            TestedKind::ObjectArray => kind_of() == Some(ClassKind::ObjectArray),
            TestedKind::PrimitiveArray => matches!(kind_of(), Some(ClassKind::PrimitiveArray(_))),
            TestedKind::Array => kind_of().is_some_and(|kind| kind != ClassKind::Instance),
        }
    }

    /// Returns whether an expression is a field or an element of type `int` or smaller.
    fn is_int(&self, code: &Code, row: &EvaluatedRow<'_, 'a>) -> bool {
        let Code::Path(base, steps) = code else { return false };
        let Some((last, before)) = steps.split_last() else { return false };
        let ExpressionValue::Object(of) = self.path(base, before, row) else { return false };
        let kind = match (last, self.dump.objects.record(of)) {
            (CodeStep::Field(step), Some(ObjectRecord::Instance(record))) => {
                let class = self.dump.graph.objects.class(of);
                class.and_then(|class| self.bits(class, record.fields, &step.field)).map(|bits| bits.kind)
            }
            (CodeStep::Field(step), Some(ObjectRecord::Class(_))) => {
                let class = self.class_of(of).and_then(|class| self.dump.summary.class(class));
                let found = class.and_then(|class| {
                    self.dump.summary.statics(class).find(|(name, ..)| *name == &*step.field.name)
                });
                found.map(|(_, kind, _)| kind)
            }
            (CodeStep::Element(_), Some(ObjectRecord::PrimitiveArray(array))) => Some(array.element),
            _ => None,
        };
        matches!(kind, Some(BasicType::Int | BasicType::Short | BasicType::Byte))
    }

    fn path(&self, base: &Code, steps: &[CodeStep], row: &EvaluatedRow<'_, 'a>) -> ExpressionValue {
        let mut rest = steps;
        let mut value = match (base, steps.split_first()) {
            (Code::Row, Some((CodeStep::Field(step), after))) => {
                rest = after;
                let record = row.record.get_or_init(|| self.dump.objects.record(row.object()));
                let found = self.field(row.object(), record.as_ref(), step);
                self.record_lookup(step, &ExpressionValue::Object(row.object()), found)
            }
            _ => self.value(base, row),
        };
        // The String of whose characters the value is.
        let mut string = match (base, steps.first()) {
            (Code::Row, Some(CodeStep::Field(step))) => self.string_owner(row.object(), step),
            _ => None,
        };
        for step in rest {
            let mut characters_of = None;
            value = match (step, &value) {
                (_, ExpressionValue::Null) => return ExpressionValue::Null,
                (CodeStep::Field(step), value) => {
                    if let ExpressionValue::Object(object) = value {
                        characters_of = self.string_owner(*object, step);
                    }
                    self.step_value(step, value)
                }
                (CodeStep::Attribute(attribute), value) => self.attribute(value, *attribute),
                (CodeStep::Element(index), value) => {
                    self.element(value, self.value(index, row).index()).unwrap_or(ExpressionValue::Null)
                }
                (CodeStep::Slice(first, last), value) => {
                    let (first, last) = (self.value(first, row).index(), self.value(last, row).index());
                    self.slice(value, first, last).unwrap_or(ExpressionValue::Null)
                }
                (CodeStep::Matches(regex), value) => {
                    ExpressionValue::Boolean(self.text(value).is_some_and(|text| regex.is_match(&text)))
                }
                // `s.value.toString()`: only the String knows how its bytes are encoded.
                (CodeStep::Method(Method::ToText, ..), value) if string.is_some() => {
                    let of = string.map_or(value.clone(), ExpressionValue::Object);
                    self.call(Function::ToText, of)
                }
                (CodeStep::Method(method, arguments, lookup), value) => {
                    let arguments: Vec<ExpressionValue> =
                        arguments.iter().map(|code| self.value(code, row)).collect();
                    if let Some(lookup) = lookup {
                        lookup.record(value, self.is_list(value));
                    }
                    self.method(value, *method, &arguments).unwrap_or(ExpressionValue::Null)
                }
            };
            string = characters_of;
        }
        value
    }

    /// Returns the result of a function.
    pub(super) fn call(&self, function: Function, value: ExpressionValue) -> ExpressionValue {
        let ExpressionValue::Object(object) = value else {
            return match (function, &value) {
                (Function::ToText, value) => {
                    self.text(value).map_or(ExpressionValue::Null, |text| ExpressionValue::Text(text.into()))
                }
                (Function::ToHtml, value) => ExpressionValue::Text(self.html_text(value).into()),
                (Function::ToHex, ExpressionValue::Missing(id)) => {
                    ExpressionValue::Text(format!("{id:#x}").into())
                }
                (Function::ToHex, value) => value.integer().map_or(ExpressionValue::Null, |number| {
                    ExpressionValue::Text(format!("{number:#x}").into())
                }),
                _ => ExpressionValue::Null,
            };
        };
        match function {
            Function::ToText => {
                let text = self
                    .text(&value)
                    .map(|text| if self.hides_text_of(object) { HIDDEN.to_owned() } else { text });
                text.map_or(ExpressionValue::Null, |text| ExpressionValue::Text(text.into()))
            }
            Function::ToHtml => ExpressionValue::Text(self.html_text(&value).into()),
            Function::Frame => {
                self.frame(object).map_or(ExpressionValue::Null, |text| ExpressionValue::Text(text.into()))
            }
            Function::Locals => ExpressionValue::List(List::Locals, object),
            Function::ToHex => self.call(Function::ToHex, self.address(object)),
            Function::Dominators => ExpressionValue::List(List::Dominated, object),
            Function::Outbounds => ExpressionValue::List(List::Outbounds, object),
            Function::Inbounds => ExpressionValue::List(List::Inbounds, object),
            Function::ClassOf => {
                self.dump.graph.class_object_of(object).map_or(ExpressionValue::Null, ExpressionValue::Object)
            }
            Function::DominatorOf => {
                let tree = &self.dump.graph.tree;
                let above = tree.reachable_position(object).and_then(|at| tree.dominator(at));
                above.and_then(|at| tree.object_at(at)).map_or(ExpressionValue::Null, ExpressionValue::Object)
            }
        }
    }

    /// Returns the class name of an object.
    pub(super) fn class_name(&self, object: ObjectIndex) -> Option<&'a str> {
        let class = self.dump.graph.objects.class(object)?;
        self.dump.summary.class(class).map(|class| self.dump.summary.class_name(class))
    }
}

/// Truncates a text to the maximum length.
pub(super) fn cut(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        let end = (0..=MAX_TEXT).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
    }
    text
}

/// Returns a character, or half of a surrogate pair, as text.
pub(super) fn character(unit: u16) -> String {
    char::from_u32(unit.into()).map_or_else(|| format!("\\u{unit:04x}"), String::from)
}

fn arithmetic(left: &ExpressionValue, operator: Operator, right: &ExpressionValue) -> ExpressionValue {
    let wholes = left.integer().zip(right.integer());
    let result = wholes.and_then(|(a, b)| match operator {
        Operator::Add => Some(a.checked_add(b)),
        Operator::Subtract => Some(a.checked_sub(b)),
        Operator::Multiply => Some(a.checked_mul(b)),
        // As in MAT: 7 / 2 is 3.5.
        Operator::Divide => None,
    });
    if let Some(result) = result {
        return result.map_or(ExpressionValue::Null, ExpressionValue::Whole);
    }
    let (Some(a), Some(b)) = (left.double(), right.double()) else { return ExpressionValue::Null };
    ExpressionValue::Double(match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
    })
}
