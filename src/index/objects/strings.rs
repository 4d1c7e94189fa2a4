//! Strings: what their fields say, and the characters in their arrays.
//!
//! A `java.lang.String` holds bytes since JDK 9 (`coder` tells Latin-1 from UTF-16), chars before, and a part of an array
//! of chars (`offset`, `count`) until JDK 6.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::fields::{Bits, FieldPlace, slots};
use crate::model::summary::{ClassNumber, Summary};
use hprof_parser::{BasicType, IdSize, ObjectId, be_u16};

/// The characters of a String, as they stand in the dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Characters<'a> {
    /// A byte a character.
    Latin1(&'a [u8]),
    /// Two bytes a unit, the upper one last.
    Utf16Le(&'a [u8]),
    /// Two bytes a unit, the upper one first.
    Utf16Be(&'a [u8]),
}

impl<'a> Characters<'a> {
    /// Number of UTF-16 units: what `String.length()` says.
    pub fn len(&self) -> usize {
        match self {
            Self::Latin1(bytes) => bytes.len(),
            Self::Utf16Le(bytes) | Self::Utf16Be(bytes) => bytes.len() / 2,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The UTF-16 units.
    pub fn units(self) -> impl Iterator<Item = u16> + use<'a> {
        (0..self.len()).map(move |at| match self {
            Self::Latin1(bytes) => bytes.get(at).map_or(0, |byte| u16::from(*byte)),
            Self::Utf16Be(bytes) => be_u16(bytes, at * 2).unwrap_or(0),
            Self::Utf16Le(bytes) => be_u16(bytes, at * 2).unwrap_or(0).swap_bytes(),
        })
    }

    /// The text, up to `most` characters. A surrogate without its other half is `\udXXX`.
    pub fn text(&self, most: usize) -> String {
        let mut text = String::new();
        for unit in char::decode_utf16(self.units()).take(most) {
            match unit {
                Ok(c) => text.push(c),
                Err(lone) => text.push_str(&format!("\\u{:04x}", lone.unpaired_surrogate())),
            }
        }
        text
    }
}

/// No part of an array, but all of it.
const WHOLE: u32 = 1 << 31;
/// The array's bytes are halves of UTF-16 units.
const WIDE: u32 = 1 << 31;
/// An offset or a length that no array has.
const BEYOND: u32 = (1 << 31) - 1;

/// What a String says of its array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StringPart {
    /// Where it starts in the array, and [`WIDE`].
    offset: u32,
    /// Its length, or [`WHOLE`].
    count: u32,
}

impl StringPart {
    /// As two numbers, for lists.
    pub fn words(self) -> [u32; 2] {
        [self.offset, self.count]
    }

    /// What [`Self::words`] has made.
    pub fn of_words([offset, count]: [u32; 2]) -> Self {
        Self { offset, count }
    }

    /// The characters in an array; `None` if it is none of characters, or too short.
    pub fn characters(self, element: BasicType, elements: &[u8]) -> Option<Characters<'_>> {
        Some(match element {
            BasicType::Char if self.count & WHOLE != 0 => Characters::Utf16Be(elements),
            BasicType::Char => {
                let start = usize::try_from(self.offset & !WIDE).ok()?.checked_mul(2)?;
                let end = usize::try_from(self.count).ok()?.checked_mul(2)?.checked_add(start)?;
                Characters::Utf16Be(elements.get(start..end)?)
            }
            // In the JVM's own byte order: little-endian nearly everywhere.
            BasicType::Byte if self.offset & WIDE != 0 => Characters::Utf16Le(elements),
            BasicType::Byte => Characters::Latin1(elements),
            _ => return None,
        })
    }

    /// Whether it is a part of an array of chars.
    pub fn is_part_of(self, element: BasicType) -> bool {
        element == BasicType::Char && self.count & WHOLE == 0
    }
}

/// Where a String, or a builder of one, has its fields.
#[derive(Debug, Clone, Copy)]
pub struct StringFields {
    value: FieldPlace,
    coder: Option<FieldPlace>,
    offset: Option<FieldPlace>,
    /// How many characters a builder has, which keeps no offset.
    pub(crate) count: Option<FieldPlace>,
}

/// Fields of String and of its builders, with those of their superclasses: none has as many.
const MAX_FIELDS: usize = 64;

impl StringFields {
    /// The fields of the instances of a class; `None` if it has no `value`.
    pub fn of(summary: &Summary, class: ClassNumber) -> Option<Self> {
        let [mut value, mut coder, mut offset, mut count] = [None; 4];
        for slot in slots(summary, class).take(MAX_FIELDS) {
            let place = match slot.name {
                "value" => &mut value,
                "coder" => &mut coder,
                "offset" => &mut offset,
                "count" => &mut count,
                _ => continue,
            };
            place.get_or_insert(slot.place);
        }
        Some(Self { value: value?, coder, offset, count })
    }

    /// The id of the array, and what of it are the String's characters; `None` without an array.
    #[inline]
    pub fn read(&self, bytes: &[u8], id_size: IdSize) -> Option<(ObjectId, StringPart)> {
        let array = self.value.value(bytes, id_size)?.reference()?;
        let number = |place: Option<FieldPlace>| place?.value(bytes, id_size).and_then(Bits::integer);
        let wide = if number(self.coder) == Some(1) { WIDE } else { 0 };
        let (offset, count) = match number(self.offset).zip(number(self.count)) {
            None => (0, WHOLE),
            Some((offset, count)) => {
                let positive = |number: i64| u32::try_from(number).unwrap_or(BEYOND).min(BEYOND);
                (positive(offset), positive(count))
            }
        };
        Some((array, StringPart { offset: offset | wide, count }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_in_every_form() {
        assert_eq!(Characters::Latin1(b"Gr\xfc\xdfe").text(99), "Grüße");
        assert_eq!(Characters::Utf16Be(&[0x65, 0xe5, 0x67, 0x2c]).text(99), "日本");
        assert_eq!(Characters::Utf16Le(&[0x3d, 0xd8, 0x00, 0xde]).text(99), "😀");
        assert_eq!(Characters::Utf16Be(&[0xd8, 0x00, 0, b'x']).text(99), "\\ud800x");
        assert_eq!(Characters::Latin1(b"abc").text(2), "ab");
        assert_eq!((Characters::Utf16Le(&[0; 7]).len(), Characters::Latin1(&[]).is_empty()), (3, true));
    }
}
