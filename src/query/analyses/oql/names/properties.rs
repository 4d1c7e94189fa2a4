//! Properties: names after a dot that are not fields of the heap, as jhat has them, and names of older JDKs.

use hprof_index::graph::numbers::ObjectIndex;

use crate::oql::builtins::{Attribute, find};
use crate::oql::code::{CodeField, FieldStep};
use crate::oql::evaluate::Evaluator;
use crate::oql::tree::Function;
use crate::oql::value::{ExpressionValue, List};

/// Properties of class objects.
pub(super) const PROPERTIES: [&str; 9] = [
    "name",
    "superclass",
    "superclasses",
    "subclasses",
    "loader",
    "statics",
    "fields",
    "instanceSize",
    "clazz",
];

impl Evaluator<'_, '_> {
    /// Returns the value of a name after a dot.
    pub(in crate::oql) fn step_value(&self, step: &FieldStep, value: &ExpressionValue) -> ExpressionValue {
        let found = match value {
            ExpressionValue::Object(object) => {
                self.field(*object, self.dump.objects.record(*object).as_ref(), step)
            }
            value => self.value_property(value, &step.field.name),
        };
        self.record_lookup(step, value, found)
    }

    /// Returns a property of a value that is not an object; `None` if it has none of this name.
    fn value_property(&self, value: &ExpressionValue, name: &str) -> Option<ExpressionValue> {
        match (value, name) {
            (ExpressionValue::Null | ExpressionValue::Missing(_), _) => Some(ExpressionValue::Null),
            (ExpressionValue::Entry(entry), "key") => Some(entry.0.clone()),
            (ExpressionValue::Entry(entry), "value" | "val") => Some(entry.1.clone()),
            (ExpressionValue::Record(record), name) => record.get(name).cloned(),
            (ExpressionValue::Text(_), "length") => Some(self.attribute(value, Attribute::Length)),
            (ExpressionValue::List(List::Statics, of), name) => match (self.static_field(*of, name), name) {
                (None, "length" | "size") => Some(self.size(value)),
                (found, _) => found,
            },
            // MAT's beans work with and without `@`.
            (ExpressionValue::Snapshot | ExpressionValue::SnapshotInfo, name) => {
                find(name).map(|attribute| self.attribute(value, attribute))
            }
            (value, "length" | "size") if self.is_list(value) => Some(self.size(value)),
            (ExpressionValue::Field(..) | ExpressionValue::Static(..), "name") => {
                Some(self.field_attribute(value, Attribute::Name))
            }
            (ExpressionValue::Field(..) | ExpressionValue::Static(..), "value") => {
                Some(self.field_attribute(value, Attribute::Value))
            }
            (ExpressionValue::Field(..) | ExpressionValue::Static(..), "type" | "signature") => {
                Some(self.field_attribute(value, Attribute::Type))
            }
            _ => None,
        }
    }

    /// Returns a property of an object that has no field of this name.
    pub(super) fn instance_property(&self, object: ObjectIndex, name: &str) -> Option<ExpressionValue> {
        let value = ExpressionValue::Object(object);
        match name {
            "clazz" => return Some(self.call(Function::ClassOf, value)),
            // Strings of JDK 6 were parts of arrays.
            "count" if self.is_text(&value) => return Some(self.attribute(&value, Attribute::Length)),
            "offset" if self.is_text(&value) => return Some(ExpressionValue::Whole(0)),
            // Not all collections have a field of this name: a ConcurrentHashMap has several counters, and a class loader's
            // Vector became an ArrayList.
            "size" | "elementCount" if self.is_list(&value) => return Some(self.size(&value)),
            _ => {}
        }
        // JDK 19 moved `daemon`, `priority`, `group` and others of a Thread to its `holder`.
        let holder = self.dump.objects.reference(object, "holder")?;
        let found = self.dump.objects.field(holder, name)?;
        Some(self.field_value(found, || false))
    }

    /// Returns a property of a class object.
    pub(super) fn class_property(&self, object: ObjectIndex, name: &str) -> Option<ExpressionValue> {
        Some(match name {
            "clazz" => self.call(Function::ClassOf, ExpressionValue::Object(object)),
            "statics" => ExpressionValue::List(List::Statics, object),
            "fields" => ExpressionValue::List(List::Declared, object),
            "subclasses" => ExpressionValue::List(List::Subclasses, object),
            "name" => self.class_attribute(object, Attribute::Name),
            "superclass" => self.class_attribute(object, Attribute::SuperClass),
            "superclasses" => self.class_attribute(object, Attribute::Superclasses),
            "loader" => self.class_attribute(object, Attribute::Loader),
            "instanceSize" => self.class_attribute(object, Attribute::HeapSizePerInstance),
            _ => return None,
        })
    }

    /// Returns the String, if a step reads its characters.
    pub(in crate::oql) fn string_owner(&self, object: ObjectIndex, step: &FieldStep) -> Option<ObjectIndex> {
        let CodeField { name, .. } = &*step.field;
        (&**name == "value" && self.is_text(&ExpressionValue::Object(object))).then_some(object)
    }
}
