//! Strings: their fields, and the characters in their arrays.
//!
//! A `java.lang.String` contains bytes since JDK 9 (`coder` distinguishes Latin-1 from UTF-16), chars
//! before, and a range of an array of chars (`offset`, `count`) up to JDK 6.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::fields::{Bits, FieldPlace, slots};
use crate::model::array_contents::{DumpContents, MissingContents};
use crate::model::summary::{ClassNumber, Summary};
use hprof_values::{BasicType, IdSize, ObjectId, be_u16};

/// Characters of a String, as stored in the dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Characters<'a> {
    /// One byte per character.
    Latin1(&'a [u8]),
    /// UTF-16 units, low byte first.
    Utf16Le(&'a [u8]),
    /// UTF-16 units, high byte first.
    Utf16Be(&'a [u8]),
    /// This number of units, which were removed from the dump.
    Removed(usize),
}

/// Text in place of one that was removed from the dump.
const REMOVED: &str = "(contents removed)";

impl<'a> Characters<'a> {
    /// Returns the number of UTF-16 units, as `String.length()` does.
    pub fn len(&self) -> usize {
        match self {
            Self::Latin1(bytes) => bytes.len(),
            Self::Utf16Le(bytes) | Self::Utf16Be(bytes) => bytes.len() / 2,
            Self::Removed(units) => *units,
        }
    }

    /// Returns `true` if there are no characters.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the UTF-16 units; of a text that was removed, those of "(contents removed)".
    pub fn units(self) -> impl Iterator<Item = u16> + use<'a> {
        let shown = match self {
            Self::Removed(_) => Self::Latin1(REMOVED.as_bytes()),
            _ => self,
        };
        (0..shown.len()).map(move |at| match shown {
            Self::Latin1(bytes) => bytes.get(at).map_or(0, |byte| u16::from(*byte)),
            Self::Utf16Be(bytes) => be_u16(bytes, at * 2).unwrap_or(0),
            Self::Utf16Le(bytes) => be_u16(bytes, at * 2).unwrap_or(0).swap_bytes(),
            Self::Removed(_) => 0,
        })
    }

    /// Returns these characters, or [`Characters::Removed`] if nothing of them is left.
    pub fn unless_removed(self, missing: MissingContents) -> Self {
        match missing.contents() {
            DumpContents::Removed if !self.is_empty() => Self::Removed(self.len()),
            _ => self,
        }
    }

    /// Returns `true` if the characters were removed from the dump.
    pub fn are_removed(&self) -> bool {
        matches!(self, Self::Removed(_))
    }

    /// Returns the text, up to `most` characters. An unpaired surrogate is written as `\udXXX`.
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

/// Marker for all of an array, not a range of it.
const WHOLE: u32 = 1 << 31;
/// Flag: the array's bytes are halves of UTF-16 units.
const WIDE: u32 = 1 << 31;
/// Offset or length that no array has.
const BEYOND: u32 = (1 << 31) - 1;

/// Range of an array that belongs to a String.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StringPart {
    /// Start in the array, with the flag [`WIDE`].
    offset: u32,
    /// Length, or [`WHOLE`].
    count: u32,
}

impl StringPart {
    /// Returns the range as two numbers, for lists.
    pub fn words(self) -> [u32; 2] {
        [self.offset, self.count]
    }

    /// Restores a range from the result of [`Self::words`].
    pub fn of_words([offset, count]: [u32; 2]) -> Self {
        Self { offset, count }
    }

    /// Returns the characters in an array; `None` if it is not an array of characters, or is too short.
    pub fn characters(self, element: BasicType, elements: &[u8]) -> Option<Characters<'_>> {
        Some(match element {
            BasicType::Char if self.count & WHOLE != 0 => Characters::Utf16Be(elements),
            BasicType::Char => {
                let start = usize::try_from(self.offset & !WIDE).ok()?.checked_mul(2)?;
                let end = usize::try_from(self.count).ok()?.checked_mul(2)?.checked_add(start)?;
                Characters::Utf16Be(elements.get(start..end)?)
            }
            // In the byte order of the JVM, which is little-endian nearly everywhere.
            BasicType::Byte if self.offset & WIDE != 0 => Characters::Utf16Le(elements),
            BasicType::Byte => Characters::Latin1(elements),
            _ => return None,
        })
    }

    /// Returns the characters in an array of which contents may be missing: only those that are left if there is a limit, and
    /// [`Characters::Removed`] if nothing is left.
    pub fn characters_left(
        self,
        element: BasicType,
        elements: &[u8],
        missing: MissingContents,
    ) -> Option<Characters<'_>> {
        let width = if element == BasicType::Char { 2 } else { 1 };
        let left = match missing.limit(element) {
            None | Some(0) => elements.len(),
            Some(limit) => (limit as usize).saturating_mul(width).min(elements.len()),
        };
        let cut = elements.get(..left).and_then(|left| self.characters(element, left));
        // A range of an array that is beyond the limit.
        Some(cut.or_else(|| self.characters(element, elements))?.unless_removed(missing))
    }

    /// Returns `true` if it is a proper range of an array of chars.
    pub fn is_part_of(self, element: BasicType) -> bool {
        element == BasicType::Char && self.count & WHOLE == 0
    }
}

/// Locations of the fields of a String or of a string builder.
#[derive(Debug, Clone, Copy)]
pub struct StringFields {
    value: FieldPlace,
    coder: Option<FieldPlace>,
    offset: Option<FieldPlace>,
    /// Number of characters of a builder, which has no offset.
    pub(crate) count: Option<FieldPlace>,
}

/// Maximum number of fields of String and its builders, including inherited ones; none has that many.
const MAX_FIELDS: usize = 64;

impl StringFields {
    /// Returns the locations of the fields for the instances of a class; `None` if it has no field `value`.
    pub fn for_class(summary: &Summary, class: ClassNumber) -> Option<Self> {
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

    /// Returns the ID of the array, and the range of it that belongs to the String; `None` without an
    /// array.
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
