//! Methods that Java offers on MAT's objects, on texts, numbers and lists.

use hprof_index::graph::numbers::ObjectIndex;
use hprof_values::ObjectId;
use std::cmp::Ordering;

use hprof_model::objects::hiding::HIDDEN;

use super::builtins::{Attribute, Method};
use super::evaluate::{Evaluator, MAX_SEARCHED, MAX_TEXT, character, cut};
use super::tree::{Comparison, Function};
use super::value::ExpressionValue;

impl Evaluator<'_, '_> {
    /// Returns the result of a method; `None` for null.
    pub(super) fn method(
        &self,
        value: &ExpressionValue,
        method: Method,
        arguments: &[ExpressionValue],
    ) -> Option<ExpressionValue> {
        let first = arguments.first();
        match (method, value) {
            (Method::ToText, value) => return Some(self.call(Function::ToText, value.clone())),
            (Method::Get, _) => {
                let key = first?;
                return match key.integer() {
                    Some(index) => self.element(value, Some(index)),
                    None => self.map_value(value, key),
                };
            }
            // Start and number of elements.
            (Method::Slice, _) => {
                let (first, count) = (first?.integer()?, arguments.get(1)?.integer()?);
                return self.part(value, first, first.checked_add(count)?);
            }
            (Method::SubList, _) => return self.part(value, first?.integer()?, arguments.get(1)?.integer()?),
            (Method::Equals, _) => {
                return Some(ExpressionValue::Boolean(self.compares(value, Comparison::Equal, first?)));
            }
            (Method::Chain, ExpressionValue::Object(object)) => {
                return Some(self.chain(*object, &self.text(first?)?));
            }
            (Method::Field, ExpressionValue::Object(object)) => {
                return self.field_named(*object, &self.text(first?)?);
            }
            (Method::Number, _) => return number(value).map(ExpressionValue::Whole),
            (Method::Fraction, _) => return value.double().map(ExpressionValue::Double),
            (_, ExpressionValue::Snapshot) => return self.of_snapshot(method, first?),
            (Method::Contains | Method::IndexOf | Method::IsEmpty, value)
                if !self.is_text(value) && self.is_list(value) =>
            {
                let mut items = self.items_of(value)?.take(MAX_SEARCHED);
                return Some(match method {
                    Method::IsEmpty => ExpressionValue::Boolean(items.next().is_none()),
                    method => {
                        let wanted = first?;
                        let at = items.position(|item| self.compares(&item, Comparison::Equal, wanted));
                        match (method, at) {
                            (Method::Contains, at) => ExpressionValue::Boolean(at.is_some()),
                            (_, at) => {
                                ExpressionValue::Whole(at.map_or(Some(-1), |at| i64::try_from(at).ok())?)
                            }
                        }
                    }
                });
            }
            _ => {}
        }
        // The remaining methods are those of texts. A text derived from a hidden one is also hidden.
        let is_text = matches!(
            method,
            Method::Concat
                | Method::Replace
                | Method::LowerCase
                | Method::UpperCase
                | Method::Trim
                | Method::CharAt
                | Method::Substring
        );
        let is_hidden = |value: &ExpressionValue| matches!(value, ExpressionValue::Object(object) if self.is_hidden(*object));
        if is_text && (is_hidden(value) || arguments.iter().any(is_hidden)) {
            return Some(ExpressionValue::Text(HIDDEN.into()));
        }
        let text = match value {
            ExpressionValue::Text(text) => text.to_string(),
            ExpressionValue::Object(object) => self.string(*object)?,
            _ => return None,
        };
        // The argument may be a character, or its number.
        let unit = |number: i64| u16::try_from(number).ok().map(character);
        let other = || match first? {
            ExpressionValue::Whole(number) => unit(*number),
            value => self.text(value),
        };
        let units = || text.encode_utf16().collect::<Vec<u16>>();
        let index = |value: &ExpressionValue| usize::try_from(value.integer()?).ok();
        Some(match method {
            Method::Contains => ExpressionValue::Boolean(text.contains(&other()?)),
            Method::StartsWith => ExpressionValue::Boolean(text.starts_with(&other()?)),
            Method::EndsWith => ExpressionValue::Boolean(text.ends_with(&other()?)),
            Method::EqualsIgnoreCase => {
                ExpressionValue::Boolean(text.to_lowercase() == other()?.to_lowercase())
            }
            Method::IndexOf | Method::LastIndexOf => {
                let other = other()?;
                let at = if method == Method::IndexOf { text.find(&other) } else { text.rfind(&other) };
                match at {
                    None => ExpressionValue::Whole(-1),
                    Some(at) => {
                        ExpressionValue::Whole(i64::try_from(text.get(..at)?.encode_utf16().count()).ok()?)
                    }
                }
            }
            Method::Concat => ExpressionValue::Text(cut(text + &other()?).into()),
            Method::Replace => {
                let (from, to) = (other()?, self.text(arguments.get(1)?)?);
                // Bounds the result to the maximum length of a text, however often a long text is inserted.
                let times = MAX_TEXT / to.len().max(1);
                ExpressionValue::Text(cut(text.replacen(&from, &to, times)).into())
            }
            Method::CompareTo => {
                ExpressionValue::Whole(match text.encode_utf16().cmp(other()?.encode_utf16()) {
                    Ordering::Less => -1,
                    Ordering::Equal => 0,
                    Ordering::Greater => 1,
                })
            }
            Method::LowerCase => ExpressionValue::Text(text.to_lowercase().into()),
            Method::UpperCase => ExpressionValue::Text(text.to_uppercase().into()),
            Method::Trim => ExpressionValue::Text(text.trim().into()),
            Method::IsEmpty => ExpressionValue::Boolean(text.is_empty()),
            Method::CharAt => ExpressionValue::Char(*units().get(index(first?)?)?),
            Method::Substring => {
                let units = units();
                let end = arguments.get(1).map_or(Some(units.len()), index)?;
                ExpressionValue::Text(String::from_utf16_lossy(units.get(index(first?)?..end)?).into())
            }
            _ => return None,
        })
    }

    /// Returns the value of a map for a key other than a number.
    fn map_value(&self, map: &ExpressionValue, key: &ExpressionValue) -> Option<ExpressionValue> {
        let mut items = self.items_of(map)?.take(MAX_SEARCHED);
        items.find_map(|item| match item {
            ExpressionValue::Entry(entry) => {
                self.compares(&entry.0, Comparison::Equal, key).then_some(entry.1)
            }
            _ => None,
        })
    }

    /// Returns the field with this name of an object, or the static field of a class object.
    fn field_named(&self, object: ObjectIndex, name: &str) -> Option<ExpressionValue> {
        if let Some(class) = self.class_of(object).and_then(|class| self.dump.summary.class(class)) {
            let at = self.dump.summary.statics(class).position(|(found, ..)| found == name)?;
            return Some(ExpressionValue::Static(object, u32::try_from(at).ok()?));
        }
        let class = self.dump.graph.objects.class(object)?;
        let at = self.dump.objects.slots(class).position(|slot| slot.name == name)?;
        Some(ExpressionValue::Field(object, u32::try_from(at).ok()?))
    }

    /// Evaluates a method of `${snapshot}` whose argument is an object or its index.
    fn of_snapshot(&self, method: Method, of: &ExpressionValue) -> Option<ExpressionValue> {
        if method == Method::IdOf {
            let address = ObjectId(of.integer()?.cast_unsigned());
            let object = self.dump.graph.objects.addresses.index_of(address);
            return object.map(|object| ExpressionValue::Whole(object.0.into()));
        }
        let object = match of {
            ExpressionValue::Object(object) => *object,
            of => {
                let index = u32::try_from(of.integer()?).ok();
                ObjectIndex(index.filter(|index| *index < self.dump.graph.objects.len())?)
            }
        };
        let of = ExpressionValue::Object(object);
        Some(match method {
            Method::ObjectOf => of,
            Method::ClassOf => self.call(Function::ClassOf, of),
            Method::ShallowOf => self.attribute(&of, Attribute::UsedHeapSize),
            Method::RetainedOf => self.attribute(&of, Attribute::RetainedHeapSize),
            Method::AddressOf => self.address(object),
            Method::InboundsOf => self.call(Function::Inbounds, of),
            Method::OutboundsOf => self.call(Function::Outbounds, of),
            Method::DominatedOf => self.call(Function::Dominators, of),
            Method::DominatorOf => self.call(Function::DominatorOf, of),
            Method::RootsOf => self.attribute(&of, Attribute::Roots),
            Method::IsArray => {
                ExpressionValue::Boolean(self.attribute(&of, Attribute::Length) != ExpressionValue::Null)
            }
            Method::IsClass => {
                ExpressionValue::Boolean(self.dump.graph.objects.class_objects().contains(object.0))
            }
            Method::IsRoot => ExpressionValue::Boolean(self.roots().contains(object)),
            _ => return None,
        })
    }
}

/// Returns a number without its fraction, as Java casts it.
#[allow(clippy::cast_possible_truncation)] // `as` keeps to the range of the type.
fn number(value: &ExpressionValue) -> Option<i64> {
    value.integer().or_else(|| value.double().map(|number| number as i64))
}
