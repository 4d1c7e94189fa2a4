//! Values of fields.

use std::sync::atomic::Ordering;

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;
use hprof_index::objects::fields::Fields;
use hprof_values::{BasicType, ObjectId};

use crate::oql::code::{CodeField, FieldStep};
use crate::oql::evaluate::Evaluator;
use crate::oql::value::ExpressionValue;
use hprof_model::objects::hiding::{self, HIDDEN};
use hprof_model::objects::reader::{Bits, ObjectRecord};

/// Maximum number of searches for a field in the classes of single objects, before a table of all classes is built.
const MAX_SEARCHES: u32 = 32;

impl<'a> Evaluator<'_, 'a> {
    /// Returns the value of a field or a property of an object; `None` if it has none of this name.
    pub(in crate::oql) fn field(
        &self,
        object: ObjectIndex,
        record: Option<&ObjectRecord<'a>>,
        step: &FieldStep,
    ) -> Option<ExpressionValue> {
        let field = &*step.field;
        match record {
            Some(ObjectRecord::Instance(record)) => {
                let class = self.dump.graph.objects.class(object)?;
                let Some(bits) = self.bits(class, record.fields, field) else {
                    return self.instance_property(object, &field.name);
                };
                let is_shown = || {
                    let slot = self.dump.objects.slots(class).find(|slot| slot.name == &*field.name);
                    slot.is_some_and(|slot| hiding::is_slot_shown(self.dump.summary, class, &slot))
                };
                Some(self.field_value(bits, is_shown))
            }
            Some(ObjectRecord::Class(_)) => {
                let property = || self.class_property(object, &field.name);
                let own = || self.static_field(object, &field.name);
                if step.is_property { property().or_else(own) } else { own().or_else(property) }
            }
            // As in jhat.
            Some(ObjectRecord::ObjectArray(array)) if &*field.name == "length" => {
                Some(ExpressionValue::Whole(array.length.into()))
            }
            Some(ObjectRecord::PrimitiveArray(array)) if &*field.name == "length" => {
                Some(ExpressionValue::Whole(array.length.into()))
            }
            Some(_) => self.instance_property(object, &field.name),
            // Its record cannot be read.
            None => Some(ExpressionValue::Null),
        }
    }

    /// Returns the value of a field in an instance's bytes. The table of locations in all classes costs as much as hundreds of
    /// searches, each of which stops at the end of one record; a rule about one object makes only a few.
    pub(in crate::oql) fn bits(&self, class: ClassNumber, bytes: &[u8], field: &CodeField) -> Option<Bits> {
        if field.places.get().is_none() && field.searches.fetch_add(1, Ordering::Relaxed) < MAX_SEARCHES {
            return Fields::new(self.dump.summary, class, bytes).value(&field.name);
        }
        let places = field.places.get_or_init(|| self.dump.objects.places(&field.name));
        let place = places.get(class.0 as usize).copied().flatten()?;
        self.dump.objects.value_at(bytes, place)
    }

    /// Returns the value of a static field of a class object; `None` if the class has none of this name.
    pub(in crate::oql) fn static_field(&self, object: ObjectIndex, name: &str) -> Option<ExpressionValue> {
        let number = self.class_of(object)?;
        let class = self.dump.summary.class(number)?;
        let (_, kind, bits) = self.dump.summary.statics(class).find(|(found, ..)| *found == name)?;
        let is_shown = || hiding::is_shown(self.dump.summary, number, name, kind);
        Some(self.field_value(Bits { kind, bits }, is_shown))
    }

    /// Returns the value of a field, or a placeholder if contents are hidden and the field is not exempt (`is_shown`).
    /// References are never hidden.
    pub(in crate::oql) fn field_value(&self, bits: Bits, is_shown: impl FnOnce() -> bool) -> ExpressionValue {
        if self.hides_contents && bits.kind != BasicType::Object && !is_shown() {
            return ExpressionValue::Text(HIDDEN.into());
        }
        self.of_bits(bits)
    }

    /// Converts the bits of a field or an element to a value.
    #[allow(clippy::cast_possible_truncation)] // The upper bits of smaller types are zero.
    pub(in crate::oql) fn of_bits(&self, bits: Bits) -> ExpressionValue {
        match bits.kind {
            BasicType::Object => self.of_id(ObjectId(bits.bits)),
            BasicType::Boolean => ExpressionValue::Boolean(bits.bits != 0),
            BasicType::Char => ExpressionValue::Char(bits.bits as u16),
            BasicType::Float => ExpressionValue::Float(f32::from_bits(bits.bits as u32)),
            BasicType::Double => ExpressionValue::Double(f64::from_bits(bits.bits)),
            _ => bits.integer().map_or(ExpressionValue::Null, ExpressionValue::Whole),
        }
    }

    /// Returns the object with this ID as a value.
    pub(in crate::oql) fn of_id(&self, id: ObjectId) -> ExpressionValue {
        match id {
            ObjectId::NULL => ExpressionValue::Null,
            id => self
                .dump
                .graph
                .objects
                .addresses
                .index_of(id)
                .map_or(ExpressionValue::Missing(id), ExpressionValue::Object),
        }
    }

    /// Returns the address of an object as a number.
    pub(in crate::oql) fn address(&self, object: ObjectIndex) -> ExpressionValue {
        let id = self.dump.graph.objects.addresses.id_of(object);
        id.map_or(ExpressionValue::Null, |id| ExpressionValue::Whole(id.0.cast_signed()))
    }
}
