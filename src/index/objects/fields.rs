//! The fields of instances: where they are, by class and name, and what they hold.
//!
//! An instance's bytes hold the fields of its class first, then those of its superclass, and so on up. Superclasses are
//! those of [`crate::model::class_table::ClassTable`]. Nothing here allocates for an object.

use crate::model::summary::{ClassNumber, Summary};
use hprof_parser::{BasicType, IdSize, ObjectId, be_value};

/// A primitive value, or the id of an object; 0 is null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bits {
    /// The type.
    pub kind: BasicType,
    /// The value, in the lower bits.
    pub bits: u64,
}

impl Bits {
    /// The value as a whole number, if it is one.
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

    /// The value as a `char`; half a surrogate pair is U+FFFD.
    pub fn as_character(self) -> char {
        let unit = u32::try_from(self.bits & 0xffff).unwrap_or(0);
        char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    /// The value as a `float`.
    #[allow(clippy::cast_possible_truncation)] // A float has 32 bits.
    pub fn as_float(self) -> f32 {
        f32::from_bits(self.bits as u32)
    }

    /// The id of the object that it refers to; `None` also for null.
    pub fn reference(self) -> Option<ObjectId> {
        if self.kind == BasicType::Object { ObjectId(self.bits).non_null() } else { None }
    }
}

/// The type of a field, and where its value starts in an instance's bytes: found once, read from many instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The type.
    pub kind: BasicType,
    at: u32,
}

impl Place {
    /// Where the value starts.
    pub fn start(self) -> u32 {
        self.at
    }

    /// The same field in an instance of a subclass, whose own fields take so many bytes; `None` if no record is as long.
    pub fn behind(self, bytes: u64) -> Option<Self> {
        Some(Self { at: u32::try_from(bytes.checked_add(self.at.into())?).ok()?, ..self })
    }

    /// The value in an instance's bytes.
    #[inline]
    pub fn value(self, bytes: &[u8], id_size: IdSize) -> Option<Bits> {
        Some(Bits { kind: self.kind, bits: be_value(bytes, self.at as usize, self.kind, id_size)? })
    }
}

/// A field of the instances of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type.
    pub kind: BasicType,
    /// The class that declares it.
    pub class: ClassNumber,
    /// Where its value is.
    pub place: Place,
}

/// The fields of the instances of a class: its own first, then those of its superclass, and so on up, in the order of the
/// record.
pub fn slots(summary: &Summary, class: ClassNumber) -> impl Iterator<Item = Slot<'_>> {
    let id_size = summary.id_size();
    let table = summary.class_table();
    let classes = std::iter::successors(Some(class), |class| table.superclass_with_fields(*class));
    let named = classes.flat_map(move |class| {
        let fields = summary.class(class).into_iter().flat_map(|row| summary.fields(row));
        fields.map(move |(name, kind)| (class, name, kind))
    });
    // No record is longer than 32 bits tell.
    named.scan(0u32, move |next, (class, name, kind)| {
        let at = *next;
        *next = at.checked_add(u32::try_from(kind.dump_bytes(id_size)).ok()?)?;
        Some(Slot { name, kind, class, place: Place { kind, at } })
    })
}

/// By class number: the field of this name, of the class itself or of the nearest superclass that has it. For all classes
/// at once, in time linear in their fields, however long their chains are.
pub fn places(summary: &Summary, name: &str) -> Vec<Option<Place>> {
    let table = summary.class_table();
    table.derive(|class, above: Option<&Option<Place>>| {
        find(summary, class, name, usize::MAX).or_else(|| {
            let Place { kind, at } = (*above?)?;
            Some(Place { kind, at: at.checked_add(table.own_bytes(class))? })
        })
    })
}

/// The field of this name among those that a class itself declares and that start within `len` bytes; its place counts from
/// the first of them.
fn find(summary: &Summary, class: ClassNumber, name: &str, len: usize) -> Option<Place> {
    let id_size = summary.id_size();
    let mut at = 0u32;
    for (field, kind) in summary.raw_fields(summary.class(class)?) {
        if at as usize >= len {
            return None;
        }
        if field == name.as_bytes() {
            return Some(Place { kind, at });
        }
        at = at.checked_add(u32::try_from(kind.dump_bytes(id_size)).ok()?)?;
    }
    None
}

/// The fields of one instance that a class declares or inherits: all of them, or those from a superclass on.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    summary: &'a Summary,
    class: ClassNumber,
    bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    /// All fields of an instance, by its class and the bytes of its record.
    pub fn new(summary: &'a Summary, class: ClassNumber, bytes: &'a [u8]) -> Self {
        Self { summary, class, bytes }
    }

    /// The class whose fields these are: the instance's, or a superclass.
    pub fn class(&self) -> ClassNumber {
        self.class
    }

    /// The bytes, from the first of these fields on.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The fields that a superclass declares or inherits. Those of subclasses, which can have the same names, are passed
    /// over, and no chain of them, however long, makes it slower.
    pub fn of(self, superclass: ClassNumber) -> Option<Self> {
        let table = self.summary.class_table();
        let below = table.bytes(self.class).checked_sub(table.bytes(superclass))?;
        let bytes = self.bytes.get(usize::try_from(below).ok()?..)?;
        Some(Self { class: superclass, bytes, ..self })
    }

    /// The value of the field of this name, of the class itself or of the nearest superclass that has it.
    pub fn value(&self, name: &str) -> Option<Bits> {
        let table = self.summary.class_table();
        let (mut class, mut bytes) = (self.class, self.bytes);
        // A record that is shorter than its class declares does not contain the fields after its end: no name of these is
        // compared, so that the work is bounded by the bytes of the dump.
        while !bytes.is_empty() {
            if let Some(place) = find(self.summary, class, name, bytes.len()) {
                return place.value(bytes, self.summary.id_size());
            }
            bytes = bytes.get(table.own_bytes(class) as usize..)?;
            class = table.superclass_with_fields(class)?;
        }
        None
    }

    /// The whole number in a field.
    pub fn integer(&self, name: &str) -> Option<i64> {
        self.value(name)?.integer()
    }

    /// The id of the object in a field; `None` also for null.
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
