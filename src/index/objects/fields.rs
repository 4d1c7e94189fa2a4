//! Fields of instances: their locations by class and name, and their values.
//!
//! An instance's bytes contain the fields of its class first, then those of its superclass, and so on.
//! Superclasses are those of [`crate::model::class_table::ClassTable`]. Nothing here allocates per object.

use crate::model::summary::{ClassNumber, Summary};
use hprof_values::{BasicType, IdSize, ObjectId, be_value};

/// A primitive value or an object ID; 0 is null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bits {
    /// Type of the value.
    pub kind: BasicType,
    /// Value, in the lower bits.
    pub bits: u64,
}

impl Bits {
    /// Returns the value as an integer, if it has an integer type.
    #[allow(clippy::cast_possible_truncation)] // The upper bits of smaller types are zero.
    pub fn integer(self) -> Option<i64> {
        Some(match self.kind {
            BasicType::Byte => (self.bits as u8).cast_signed().into(),
            BasicType::Short => (self.bits as u16).cast_signed().into(),
            BasicType::Int => (self.bits as u32).cast_signed().into(),
            BasicType::Long => self.bits.cast_signed(),
            BasicType::Char => i64::from(self.bits as u16),
            BasicType::Boolean | BasicType::Float | BasicType::Double | BasicType::Object => return None,
        })
    }

    /// Returns the value as a `char`; an unpaired surrogate is U+FFFD.
    pub fn as_character(self) -> char {
        let unit = u32::try_from(self.bits & 0xffff).unwrap_or(0);
        char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    /// Returns the value as a `float`.
    #[allow(clippy::cast_possible_truncation)] // A float has 32 bits.
    pub fn as_float(self) -> f32 {
        f32::from_bits(self.bits as u32)
    }

    /// Returns the referenced object's ID; `None` for null and for primitive values.
    pub fn reference(self) -> Option<ObjectId> {
        if self.kind == BasicType::Object { ObjectId(self.bits).non_null() } else { None }
    }
}

/// Type of a field and start of its value in an instance's bytes: found once, used for many instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldPlace {
    /// Type of the field.
    pub kind: BasicType,
    at: u32,
}

impl FieldPlace {
    /// Returns the offset of the value in the bytes of an instance.
    pub fn start(self) -> u32 {
        self.at
    }

    /// Returns the location of the field in an instance of a subclass whose own fields take `bytes` bytes; `None` if it exceeds
    /// the length of any record.
    pub fn offset_by(self, bytes: u64) -> Option<Self> {
        Some(Self { at: u32::try_from(bytes.checked_add(self.at.into())?).ok()?, ..self })
    }

    /// Returns the value of the field in an instance's bytes.
    #[inline]
    pub fn value(self, bytes: &[u8], id_size: IdSize) -> Option<Bits> {
        Some(Bits { kind: self.kind, bits: be_value(bytes, self.at as usize, self.kind, id_size)? })
    }
}

/// A field of the instances of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldSlot<'a> {
    /// Name of the field.
    pub name: &'a str,
    /// Type of the field.
    pub kind: BasicType,
    /// Class that declares the field.
    pub class: ClassNumber,
    /// Location of the value.
    pub place: FieldPlace,
}

/// Returns the fields of the instances of a class: its own first, then those of its superclass, and so on, in
/// the order of the record.
pub fn slots(summary: &Summary, class: ClassNumber) -> impl Iterator<Item = FieldSlot<'_>> {
    let id_size = summary.id_size();
    let table = summary.class_table();
    let classes = std::iter::successors(Some(class), |class| table.superclass_with_fields(*class));
    let named = classes.flat_map(move |class| {
        let fields = summary.class(class).into_iter().flat_map(|row| summary.fields(row));
        fields.map(move |(name, kind)| (class, name, kind))
    });
    // No record is longer than 32 bits can state.
    named.scan(0u32, move |next, (class, name, kind)| {
        let at = *next;
        *next = at.checked_add(u32::try_from(kind.dump_bytes(id_size)).ok()?)?;
        Some(FieldSlot { name, kind, class, place: FieldPlace { kind, at } })
    })
}

/// Returns, by class number, the location of the field of this name that the class itself or the nearest superclass declares.
/// Computed for all classes at once, in time linear in their fields, however long the chains are.
pub fn places(summary: &Summary, name: &str) -> Vec<Option<FieldPlace>> {
    let table = summary.class_table();
    table.derive(|class, above: Option<&Option<FieldPlace>>| {
        find(summary, class, name, usize::MAX).or_else(|| {
            let FieldPlace { kind, at } = (*above?)?;
            Some(FieldPlace { kind, at: at.checked_add(table.own_field_bytes(class))? })
        })
    })
}

/// Returns the location of the field of this name among those that a class itself declares and that start within `len` bytes,
/// relative to the first of them.
fn find(summary: &Summary, class: ClassNumber, name: &str, len: usize) -> Option<FieldPlace> {
    let id_size = summary.id_size();
    let mut at = 0u32;
    for (field, kind) in summary.raw_fields(summary.class(class)?) {
        if at as usize >= len {
            return None;
        }
        if field == name.as_bytes() {
            return Some(FieldPlace { kind, at });
        }
        at = at.checked_add(u32::try_from(kind.dump_bytes(id_size)).ok()?)?;
    }
    None
}

/// Fields of one instance that a class declares or inherits: all of them, or those from a superclass on.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    summary: &'a Summary,
    class: ClassNumber,
    bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Creates a reader of all fields of an instance from its class and the bytes of its record.
    pub fn new(summary: &'a Summary, class: ClassNumber, bytes: &'a [u8]) -> Self {
        Self { summary, class, bytes }
    }

    /// Returns the class of these fields: the instance's, or a superclass.
    pub fn class(&self) -> ClassNumber {
        self.class
    }

    /// Returns the bytes, from the first of these fields on.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the fields that a superclass declares or inherits. Skips those of subclasses, which can have
    /// the same names, in constant time.
    pub fn superclass_fields(self, superclass: ClassNumber) -> Option<Self> {
        let table = self.summary.class_table();
        let below = table.bytes(self.class).checked_sub(table.bytes(superclass))?;
        let bytes = self.bytes.get(usize::try_from(below).ok()?..)?;
        Some(Self { class: superclass, bytes, ..self })
    }

    /// Returns the value of the field of this name that the class itself or the nearest superclass declares.
    pub fn value(&self, name: &str) -> Option<Bits> {
        let table = self.summary.class_table();
        let (mut class, mut bytes) = (self.class, self.bytes);
        // A record that is shorter than its class declares does not contain the fields after its end:
        // their names are not compared, so that the work is bounded by the size of the dump.
        while !bytes.is_empty() {
            if let Some(place) = find(self.summary, class, name, bytes.len()) {
                return place.value(bytes, self.summary.id_size());
            }
            bytes = bytes.get(table.own_field_bytes(class) as usize..)?;
            class = table.superclass_with_fields(class)?;
        }
        None
    }

    /// Returns the integer in the field of this name.
    pub fn integer(&self, name: &str) -> Option<i64> {
        self.value(name)?.integer()
    }

    /// Returns the object ID in the field of this name; `None` for null, a primitive field or a missing field.
    pub fn reference(&self, name: &str) -> Option<ObjectId> {
        self.value(name)?.reference()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_their_signs() {
        let integer = |kind, bits| Bits { kind, bits }.integer();
        assert_eq!(integer(BasicType::Byte, 0xff), Some(-1));
        assert_eq!(integer(BasicType::Char, 0xffff), Some(65535));
        assert_eq!(integer(BasicType::Long, u64::MAX), Some(-1));
        assert_eq!(integer(BasicType::Object, 1), None);
    }
}
