//! Evaluating expressions for a row.

use std::cell::OnceCell;
use std::cmp::Ordering;

use crate::hprof::{BasicType, be_value};
use crate::index::roots::Root;
use crate::index::summary::{ClassNumber, Summary};
use crate::index::tables::ClassKind;
use crate::index::{Heap, ObjectGraph};
use crate::query::label::Labels;
use crate::query::objects::{Bits, Characters, Objects, Record};
use crate::query::root_index::RootIndex;

use super::code::{Code, Field, Kind, Step};
use super::names::{Attribute, Method};
use super::tree::{Comparison, Function, Operator};
use super::value::{List, Value};

/// UTF-16 units of a text that are looked at.
const MAX_TEXT: usize = 1 << 20;
/// Elements of a list that `IN` looks through.
const MAX_SEARCHED: usize = 1 << 24;

/// Reads the objects that expressions are about.
#[derive(Debug)]
pub struct Evaluator<'a> {
    pub(super) summary: &'a Summary,
    pub(super) graph: &'a ObjectGraph,
    pub(super) objects: Objects<'a>,
    pub(super) labels: Labels<'a>,
    roots: std::sync::OnceLock<RootIndex<'a>>,
    /// By class number: whether its objects are java.lang.Strings.
    strings: Vec<bool>,
}

/// The object that a row is about.
#[derive(Debug)]
pub(super) struct Row<'r, 'a> {
    pub(super) object: u32,
    record: OnceCell<Option<Record<'a>>>,
    /// The aggregates of its group.
    pub(super) aggregates: &'r [Value],
}

impl<'r, 'a> Row<'r, 'a> {
    /// A row whose record is read when it is needed.
    pub(super) fn new(object: u32, aggregates: &'r [Value]) -> Self {
        Self { object, record: OnceCell::new(), aggregates }
    }

    /// A row whose record was read.
    pub(super) fn with_record(object: u32, record: Option<Record<'a>>) -> Self {
        Self { object, record: OnceCell::from(record), aggregates: &[] }
    }
}

impl<'a> Evaluator<'a> {
    /// An evaluator over the objects of `graph`; `bytes` are the dump's ([`Heap::bytes`]).
    pub fn new(heap: &'a Heap, graph: &'a ObjectGraph, bytes: &'a [u8]) -> Self {
        let summary = heap.summary();
        let is_string = |class| summary.class_name(class) == "java.lang.String";
        Self {
            summary,
            graph,
            objects: Objects::new(summary, graph, bytes),
            labels: Labels::new(heap, graph, bytes),
            roots: std::sync::OnceLock::new(),
            strings: summary.classes().iter().map(is_string).collect(),
        }
    }

    /// The value of an expression.
    pub(super) fn value(&self, code: &Code<'a>, row: &Row<'_, 'a>) -> Value {
        match code {
            Code::Value(value) => value.clone(),
            Code::Row => Value::Object(row.object),
            Code::Path(base, steps) => self.path(base, steps, row),
            Code::Call(function, argument) => self.call(*function, self.value(argument, row)),
            Code::Aggregate(number) => row.aggregates.get(*number).cloned().unwrap_or(Value::Null),
            Code::Negate(of) => match self.value(of, row) {
                Value::Float(value) => Value::Float(-value),
                Value::Double(value) => Value::Double(-value),
                value => value.whole().and_then(i64::checked_neg).map_or(Value::Null, Value::Whole),
            },
            Code::Arithmetic(first, more) => {
                more.iter().fold(self.value(first, row), |left, (operator, right)| {
                    arithmetic(&left, *operator, &self.value(right, row))
                })
            }
            // What is left is true or false.
            _ => Value::Boolean(self.holds(code, row)),
        }
    }

    /// Whether a condition holds.
    pub(super) fn holds(&self, code: &Code<'a>, row: &Row<'_, 'a>) -> bool {
        match code {
            Code::Not(of) => !self.holds(of, row),
            Code::All(of) => of.iter().all(|code| self.holds(code, row)),
            Code::Any(of) => of.iter().any(|code| self.holds(code, row)),
            Code::Compare(left, comparison, right) => {
                self.compares(&self.value(left, row), *comparison, &self.value(right, row))
            }
            Code::Like(of, pattern, is_negated) => {
                let value = self.value(of, row);
                self.text(&value).is_some_and(|text| pattern.is_match(&text)) != *is_negated
            }
            Code::In(of, values, is_negated) => {
                let value = self.value(of, row);
                values.iter().any(|among| self.is_among(&value, &self.value(among, row))) != *is_negated
            }
            Code::InFound(of, found, is_negated) => {
                let value = self.value(of, row);
                let is_found = match &value {
                    Value::Object(object) => found.objects.contains(*object),
                    value => *value != Value::Null && found.values.contains(&value.key()),
                };
                is_found != *is_negated
            }
            Code::Is(of, kind) => match self.value(of, row) {
                Value::Object(object) => self.is_kind(object, kind),
                _ => false,
            },
            _ => self.value(code, row) == Value::Boolean(true),
        }
    }

    /// Whether two values compare so. What cannot be compared is not equal, and neither less nor more.
    fn compares(&self, left: &Value, comparison: Comparison, right: &Value) -> bool {
        let order = match (left, right) {
            // A String compares with a text by what it says.
            (Value::Object(object), Value::Text(_) | Value::Char(_)) => {
                self.string(*object).and_then(|text| Value::Text(text.into()).compare(right))
            }
            (Value::Text(_) | Value::Char(_), Value::Object(object)) => {
                self.string(*object).and_then(|text| left.compare(&Value::Text(text.into())))
            }
            // An object compares with a number by its address.
            (Value::Object(object), Value::Whole(_)) => self.address(*object).compare(right),
            (Value::Whole(_), Value::Object(object)) => left.compare(&self.address(*object)),
            _ => left.compare(right),
        };
        let is_object = |value: &Value| matches!(value, Value::Object(_) | Value::Missing(_) | Value::Null);
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

    fn is_among(&self, value: &Value, among: &Value) -> bool {
        match (value, among) {
            (Value::Null, _) => *among == Value::Null,
            (_, Value::List(list, of)) => {
                let mut items = self.list(*list, *of).take(MAX_SEARCHED);
                items.any(|item| self.compares(value, Comparison::Equal, &item))
            }
            _ => self.compares(value, Comparison::Equal, among),
        }
    }

    fn is_kind(&self, object: u32, kind: &Kind) -> bool {
        let class = self.graph.objects.class(object);
        let is_class = || self.graph.objects.class_objects().contains(object);
        let kind_of = || class.and_then(|class| self.summary.class(class)).map(|class| class.kind());
        match kind {
            Kind::Any => true,
            Kind::Classes(classes) => class.is_some_and(|class| classes.contains(&class)),
            Kind::ClassObject => is_class(),
            Kind::Instance => !is_class() && kind_of() == Some(ClassKind::Instance),
            Kind::ObjectArray => kind_of() == Some(ClassKind::ObjectArray),
            Kind::PrimitiveArray => matches!(kind_of(), Some(ClassKind::PrimitiveArray(_))),
            Kind::Array => kind_of().is_some_and(|kind| kind != ClassKind::Instance),
        }
    }

    fn path(&self, base: &Code<'a>, steps: &[Step<'a>], row: &Row<'_, 'a>) -> Value {
        let mut rest = steps;
        let mut value = match (base, steps.split_first()) {
            (Code::Row, Some((Step::Field(field), after))) => {
                rest = after;
                let record = row.record.get_or_init(|| self.objects.record(row.object));
                self.field(row.object, record.as_ref(), field)
            }
            _ => self.value(base, row),
        };
        for step in rest {
            value = match (step, &value) {
                (_, Value::Null) => return Value::Null,
                (Step::Field(field), Value::Object(object)) => {
                    self.field(*object, self.objects.record(*object).as_ref(), field)
                }
                (Step::Field(_), _) => Value::Null,
                (Step::Attribute(attribute), value) => self.attribute(value, *attribute),
                (Step::Element(index), value) => {
                    self.element(value, self.value(index, row).whole()).unwrap_or(Value::Null)
                }
                (Step::Method(method, arguments), value) => {
                    let arguments: Vec<Value> = arguments.iter().map(|code| self.value(code, row)).collect();
                    self.method(value, *method, &arguments).unwrap_or(Value::Null)
                }
            };
        }
        value
    }

    fn field(&self, object: u32, record: Option<&Record<'a>>, field: &Field<'a>) -> Value {
        match record {
            Some(Record::Instance(record)) => {
                let Some(class) = self.graph.objects.class(object) else { return Value::Null };
                let Some(slot) = field.slots.get(class.0 as usize) else { return Value::Null };
                let slot = slot.get_or_init(|| self.objects.slot(class, &field.name));
                let bits = slot.as_ref().and_then(|slot| self.objects.value(record.fields, slot));
                bits.map_or(Value::Null, |bits| self.of_bits(bits))
            }
            Some(Record::Class(_)) => self.static_field(object, &field.name),
            // As in jhat.
            Some(Record::ObjectArray(array)) if &*field.name == "length" => Value::Whole(array.length.into()),
            Some(Record::PrimitiveArray(array)) if &*field.name == "length" => {
                Value::Whole(array.length.into())
            }
            _ => Value::Null,
        }
    }

    fn static_field(&self, object: u32, name: &str) -> Value {
        let class = self.labels.class_of_class_object(object).and_then(|class| self.summary.class(class));
        let Some(class) = class else { return Value::Null };
        let found = self.summary.statics(class).find(|(found, ..)| *found == name);
        found.map_or(Value::Null, |(_, kind, bits)| self.of_bits(Bits { kind, bits }))
    }

    #[allow(clippy::cast_possible_truncation)] // The upper bits of smaller types are zero.
    fn of_bits(&self, bits: Bits) -> Value {
        match bits.kind {
            BasicType::Object => self.of_id(bits.bits),
            BasicType::Boolean => Value::Boolean(bits.bits != 0),
            BasicType::Char => Value::Char(bits.bits as u16),
            BasicType::Float => Value::Float(f32::from_bits(bits.bits as u32)),
            BasicType::Double => Value::Double(f64::from_bits(bits.bits)),
            _ => bits.integer().map_or(Value::Null, Value::Whole),
        }
    }

    /// The object with this id.
    pub(super) fn of_id(&self, id: u64) -> Value {
        match id {
            0 => Value::Null,
            id => self.graph.objects.addresses.index_of(id).map_or(Value::Missing(id), Value::Object),
        }
    }

    fn address(&self, object: u32) -> Value {
        let id = self.graph.objects.addresses.id_of(object);
        id.map_or(Value::Null, |id| Value::Whole(id.cast_signed()))
    }

    fn call(&self, function: Function, value: Value) -> Value {
        let Value::Object(object) = value else {
            return match (function, &value) {
                (Function::ToText, value) => {
                    self.text(value).map_or(Value::Null, |text| Value::Text(text.into()))
                }
                (Function::ToHex, Value::Missing(id)) => Value::Text(format!("{id:#x}").into()),
                (Function::ToHex, value) => {
                    value.whole().map_or(Value::Null, |number| Value::Text(format!("{number:#x}").into()))
                }
                _ => Value::Null,
            };
        };
        match function {
            Function::ToText => self.text(&value).map_or(Value::Null, |text| Value::Text(text.into())),
            Function::ToHex => self.call(Function::ToHex, self.address(object)),
            Function::Dominators => Value::List(List::Dominated, object),
            Function::Outbounds => Value::List(List::Outbounds, object),
            Function::Inbounds => Value::List(List::Inbounds, object),
            Function::ClassOf => self.graph.class_object_of(object).map_or(Value::Null, Value::Object),
            Function::DominatorOf => {
                let tree = &self.graph.tree;
                let above = tree.reachable_position(object).and_then(|at| tree.dominator(at));
                above.and_then(|at| tree.object_at(at)).map_or(Value::Null, Value::Object)
            }
        }
    }

    /// The characters of a String.
    fn string(&self, object: u32) -> Option<String> {
        let class = self.graph.objects.class(object)?;
        let is_string = self.strings.get(class.0 as usize).copied().unwrap_or(false);
        is_string.then(|| self.objects.string(object).map(|text| text.text(MAX_TEXT))).flatten()
    }

    /// What a value says.
    pub(super) fn text(&self, value: &Value) -> Option<String> {
        Some(match value {
            Value::Null | Value::List(..) => return None,
            Value::Boolean(value) => value.to_string(),
            Value::Whole(value) => value.to_string(),
            Value::Float(value) => value.to_string(),
            Value::Double(value) => value.to_string(),
            Value::Text(text) => text.to_string(),
            Value::Char(unit) => character(*unit),
            Value::Missing(_) => return None,
            Value::Object(object) => return self.object_text(*object),
        })
    }

    fn object_text(&self, object: u32) -> Option<String> {
        if let Some(text) = self.string(object) {
            return Some(text);
        }
        if let Some(label) = self.labels.label(object) {
            return Some(label);
        }
        // The arrays of builders, and what Strings hold.
        match self.objects.record(object)? {
            Record::PrimitiveArray(array) => match array.element {
                BasicType::Char => Some(Characters::Utf16Be(array.elements?).text(MAX_TEXT)),
                BasicType::Byte => Some(Characters::Latin1(array.elements?).text(MAX_TEXT)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The name of an object's class.
    pub(super) fn class_name(&self, object: u32) -> Option<&'a str> {
        let class = self.graph.objects.class(object)?;
        self.summary.class(class).map(|class| self.summary.class_name(class))
    }

    fn attribute(&self, value: &Value, attribute: Attribute) -> Value {
        let object = match (value, attribute) {
            (Value::Object(object), _) => *object,
            (Value::Text(text), Attribute::Length | Attribute::Size) => {
                return i64::try_from(text.encode_utf16().count()).map_or(Value::Null, Value::Whole);
            }
            (Value::List(list, of), Attribute::Length | Attribute::Size) => return self.size(*list, *of),
            _ => return Value::Null,
        };
        let tree = &self.graph.tree;
        let bytes = |bytes: Option<u64>| {
            bytes.and_then(|bytes| i64::try_from(bytes).ok()).map_or(Value::Null, Value::Whole)
        };
        let text = |text: Option<String>| text.map_or(Value::Null, |text| Value::Text(text.into()));
        match attribute {
            Attribute::ObjectId => Value::Whole(object.into()),
            Attribute::ObjectAddress => self.address(object),
            Attribute::UsedHeapSize => bytes(tree.position(object).map(|at| tree.shallow_bytes(at))),
            Attribute::RetainedHeapSize => {
                bytes(tree.reachable_position(object).map(|at| tree.retained_bytes(at)))
            }
            Attribute::TechnicalName => text(self.technical_name(object)),
            Attribute::DisplayName => {
                let says = self.object_text(object).filter(|_| self.class_of(object).is_none());
                let says = says.map(|says| format!(" {says}")).unwrap_or_default();
                text(self.technical_name(object).map(|name| name + &says))
            }
            Attribute::ClassSpecificName => text(self.object_text(object)),
            Attribute::Class => self.graph.class_object_of(object).map_or(Value::Null, Value::Object),
            Attribute::Length => self.length(object),
            Attribute::Elements => {
                if self.length(object) == Value::Null {
                    Value::Null
                } else {
                    Value::List(List::Elements, object)
                }
            }
            Attribute::Outbounds => Value::List(List::Outbounds, object),
            Attribute::Inbounds => Value::List(List::Inbounds, object),
            Attribute::Roots => {
                let roots = self.roots.get_or_init(|| RootIndex::new(self.graph));
                let mut kinds: Vec<&str> = Vec::new();
                for Root { kind, .. } in roots.of_object(object) {
                    if !kinds.contains(&kind.name()) {
                        kinds.push(kind.name());
                    }
                }
                text((!kinds.is_empty()).then(|| kinds.join(", ")))
            }
            Attribute::Size => Value::Null,
            _ => self.class_attribute(object, attribute),
        }
    }

    /// The class that an object is the class object of.
    pub(super) fn class_of(&self, object: u32) -> Option<ClassNumber> {
        self.labels.class_of_class_object(object)
    }

    fn class_attribute(&self, object: u32, attribute: Attribute) -> Value {
        let Some(class) = self.class_of(object).and_then(|class| self.summary.class(class)) else {
            return Value::Null;
        };
        let above = || self.summary.super_class(class).and_then(|above| self.graph.class_object(above));
        let object_of = |object: Option<u32>| object.map_or(Value::Null, Value::Object);
        let index_of = |object: Option<u32>| object.map_or(Value::Null, |object| Value::Whole(object.into()));
        let loader = || self.of_id(class.loader.get());
        match attribute {
            Attribute::Name => Value::Text(self.summary.class_name(class).into()),
            Attribute::Loader => loader(),
            Attribute::LoaderId => match loader() {
                Value::Object(object) => Value::Whole(object.into()),
                _ => Value::Null,
            },
            Attribute::LoaderAddress => Value::Whole(class.loader.get().cast_signed()),
            Attribute::SuperClass => object_of(above()),
            Attribute::SuperClassId => index_of(above()),
            Attribute::SuperClassAddress => above().map_or(Value::Null, |object| self.address(object)),
            Attribute::HasSuperClass => Value::Boolean(self.summary.super_class(class).is_some()),
            Attribute::NumberOfObjects => {
                i64::try_from(class.objects.get()).map_or(Value::Null, Value::Whole)
            }
            Attribute::IsArray => Value::Boolean(class.kind() != ClassKind::Instance),
            _ => Value::Null,
        }
    }

    fn technical_name(&self, object: u32) -> Option<String> {
        let id = self.graph.objects.addresses.id_of(object)?;
        Some(match self.class_of(object).and_then(|class| self.summary.class(class)) {
            Some(class) => format!("class {} @ {id:#x}", self.summary.class_name(class)),
            None => format!("{} @ {id:#x}", self.class_name(object).unwrap_or("<unknown class>")),
        })
    }

    fn length(&self, object: u32) -> Value {
        match self.objects.record(object) {
            Some(Record::ObjectArray(array)) => Value::Whole(array.length.into()),
            Some(Record::PrimitiveArray(array)) => Value::Whole(array.length.into()),
            _ => Value::Null,
        }
    }

    fn element(&self, value: &Value, index: Option<i64>) -> Option<Value> {
        let index = usize::try_from(index?).ok()?;
        let (list, of) = match value {
            Value::Object(object) => (List::Elements, *object),
            Value::List(list, of) => (*list, *of),
            _ => return None,
        };
        if list != List::Elements {
            return self.list(list, of).nth(index);
        }
        let (kind, elements) = self.elements(of)?;
        let width = kind.dump_bytes(self.summary.id_size());
        let start = index.checked_mul(width)?;
        self.read(elements.get(start..start.checked_add(width)?)?, kind)
    }

    fn read(&self, element: &[u8], kind: BasicType) -> Option<Value> {
        let bits = be_value(element, 0, kind, self.summary.id_size())?;
        Some(match kind {
            BasicType::Object => self.of_id(bits),
            kind => self.of_bits(Bits { kind, bits }),
        })
    }

    /// The type and the bytes of an array's elements.
    fn elements(&self, array: u32) -> Option<(BasicType, &'a [u8])> {
        match self.objects.record(array)? {
            Record::ObjectArray(array) => Some((BasicType::Object, array.elements)),
            Record::PrimitiveArray(array) => Some((array.element, array.elements.unwrap_or_default())),
            _ => None,
        }
    }

    fn size(&self, list: List, of: u32) -> Value {
        let size = match list {
            List::Elements => return self.length(of),
            List::Outbounds => {
                self.graph.references(of).count() + usize::from(self.graph.class_object_of(of).is_some())
            }
            List::Inbounds => self.graph.referrers(of).count(),
            List::Dominated => self.list(list, of).count(),
        };
        i64::try_from(size).map_or(Value::Null, Value::Whole)
    }

    /// What a list holds, read while it is taken.
    pub(super) fn list(&self, list: List, of: u32) -> Box<dyn Iterator<Item = Value> + '_> {
        match list {
            List::Elements => {
                let (kind, elements) = self.elements(of).unwrap_or((BasicType::Byte, &[]));
                let elements = elements.chunks_exact(kind.dump_bytes(self.summary.id_size()).max(1));
                Box::new(elements.filter_map(move |element| self.read(element, kind)))
            }
            List::Outbounds => {
                let class = self.graph.class_object_of(of);
                Box::new(class.into_iter().chain(self.graph.references(of)).map(Value::Object))
            }
            List::Inbounds => Box::new(self.graph.referrers(of).map(Value::Object)),
            List::Dominated => {
                let tree = &self.graph.tree;
                let children = tree.reachable_position(of).map(|at| tree.children(at)).into_iter().flatten();
                Box::new(children.filter_map(|at| tree.object_at(at)).map(Value::Object))
            }
        }
    }

    fn method(&self, value: &Value, method: Method, arguments: &[Value]) -> Option<Value> {
        let first = arguments.first();
        match method {
            Method::ToText => return self.text(value).map(|text| Value::Text(text.into())),
            Method::Get => return self.element(value, first?.whole()),
            Method::Slice => {
                let count = arguments.get(1)?.whole()?;
                return (count == 1).then(|| self.element(value, first?.whole())).flatten();
            }
            Method::Equals => return Some(Value::Boolean(self.compares(value, Comparison::Equal, first?))),
            _ => {}
        }
        // The rest are methods of texts.
        let text = match value {
            Value::Text(text) => text.to_string(),
            Value::Object(object) => self.string(*object)?,
            _ => return None,
        };
        let other = || first.and_then(|value| self.text(value));
        let units = || text.encode_utf16().collect::<Vec<u16>>();
        let index = |value: &Value| usize::try_from(value.whole()?).ok();
        Some(match method {
            Method::Contains => Value::Boolean(text.contains(&other()?)),
            Method::StartsWith => Value::Boolean(text.starts_with(&other()?)),
            Method::EndsWith => Value::Boolean(text.ends_with(&other()?)),
            Method::EqualsIgnoreCase => Value::Boolean(text.to_lowercase() == other()?.to_lowercase()),
            Method::IndexOf => match text.find(&other()?) {
                None => Value::Whole(-1),
                Some(at) => Value::Whole(i64::try_from(text.get(..at)?.encode_utf16().count()).ok()?),
            },
            Method::LowerCase => Value::Text(text.to_lowercase().into()),
            Method::UpperCase => Value::Text(text.to_uppercase().into()),
            Method::Trim => Value::Text(text.trim().into()),
            Method::IsEmpty => Value::Boolean(text.is_empty()),
            Method::CharAt => Value::Char(*units().get(index(first?)?)?),
            Method::Substring => {
                let units = units();
                let end = arguments.get(1).map_or(Some(units.len()), index)?;
                Value::Text(String::from_utf16_lossy(units.get(index(first?)?..end)?).into())
            }
            _ => return None,
        })
    }
}

/// A character, or half of one, as a text.
pub(super) fn character(unit: u16) -> String {
    char::from_u32(unit.into()).map_or_else(|| format!("\\u{unit:04x}"), String::from)
}

fn arithmetic(left: &Value, operator: Operator, right: &Value) -> Value {
    if let (Operator::Add, Value::Text(text), right) = (operator, left, right) {
        return match right {
            Value::Text(other) => Value::Text(format!("{text}{other}").into()),
            Value::Whole(number) => Value::Text(format!("{text}{number}").into()),
            Value::Char(unit) => Value::Text(format!("{text}{}", character(*unit)).into()),
            _ => Value::Null,
        };
    }
    if let (Some(a), Some(b)) = (left.whole(), right.whole()) {
        let result = match operator {
            Operator::Add => a.checked_add(b),
            Operator::Subtract => a.checked_sub(b),
            Operator::Multiply => a.checked_mul(b),
            Operator::Divide => a.checked_div(b),
        };
        return result.map_or(Value::Null, Value::Whole);
    }
    let (Some(a), Some(b)) = (left.double(), right.double()) else { return Value::Null };
    Value::Double(match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
    })
}
