//! Bytes of an array of primitives, and their interpretation as text.

use crate::objects::reader::{Characters, ObjectRecord, PrimitiveArray};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_values::BasicType;

use super::Shower;

/// Elements of an array of primitives as stored in the dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data<'a> {
    /// Type of the elements.
    pub kind: BasicType,
    /// Offset of the first byte, relative to the first element.
    pub offset: u64,
    /// The bytes, big-endian.
    pub bytes: &'a [u8],
}

/// Encoding of a text in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextForm {
    /// UTF-8.
    Utf8,
    /// ISO 8859-1, for bytes that are not UTF-8.
    Latin1,
    /// UTF-16.
    Utf16,
}

impl TextForm {
    /// Returns the name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Latin1 => "iso-8859-1",
            Self::Utf16 => "utf-16",
        }
    }
}

impl<'a> Shower<'a> {
    /// Returns the bytes of the elements of an array of primitives from `start` to `end` (exclusive); `None` if the
    /// object is not such an array, or the dump omits its elements.
    pub fn data(&self, object: ObjectIndex, start: u64, end: u64) -> Option<Data<'a>> {
        let ObjectRecord::PrimitiveArray(PrimitiveArray { element, elements: Some(elements), .. }) =
            self.objects.record(object)?
        else {
            return None;
        };
        let width = element.dump_bytes(self.objects.summary.id_size()) as u64;
        let len = elements.len() as u64;
        let at = |index: u64| index.saturating_mul(width).min(len);
        let (from, to) = (at(start), at(end.max(start)));
        let bytes = elements.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?)?;
        Some(Data { kind: element, offset: from, bytes })
    }
}

impl Data<'_> {
    /// Returns chars or bytes as text: UTF-8 if the bytes are valid, ISO 8859-1 otherwise. `None` for numbers. An
    /// unpaired surrogate is `\udXXX`; an incomplete UTF-8 character at the end is omitted.
    pub fn text(&self) -> Option<(String, TextForm)> {
        match self.kind {
            BasicType::Char => Some((Characters::Utf16Be(self.bytes).text(usize::MAX), TextForm::Utf16)),
            BasicType::Byte => match std::str::from_utf8(self.bytes) {
                Ok(text) => Some((text.to_owned(), TextForm::Utf8)),
                // The range ends within a character.
                Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => {
                    let valid = self.bytes.get(..error.valid_up_to()).unwrap_or_default();
                    Some((String::from_utf8_lossy(valid).into_owned(), TextForm::Utf8))
                }
                Err(_) => Some((self.bytes.iter().map(|byte| char::from(*byte)).collect(), TextForm::Latin1)),
            },
            _ => None,
        }
    }

    /// Returns the bytes in hexadecimal.
    pub fn hexadecimal(&self) -> String {
        let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or('0');
        self.bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_as_text() {
        let text = |kind, bytes: &[u8]| Data { kind, offset: 0, bytes }.text();
        let is = |text: &str, form| Some((text.to_owned(), form));
        assert_eq!(text(BasicType::Byte, b"Gr\xc3\xbc\xc3\x9fe"), is("Grüße", TextForm::Utf8));
        assert_eq!(text(BasicType::Byte, b"Gr\xfc\xdfe"), is("Grüße", TextForm::Latin1));
        assert_eq!(text(BasicType::Byte, b"Gr\xc3\xbc\xc3"), is("Grü", TextForm::Utf8));
        assert_eq!(text(BasicType::Char, &[0x65, 0xe5, 0xd8, 0, 0, 0x78]), is("日\\ud800x", TextForm::Utf16));
        assert_eq!(text(BasicType::Int, &[0; 4]), None);
        assert_eq!(
            Data { kind: BasicType::Byte, offset: 0, bytes: &[0, 0x9f, 0xff] }.hexadecimal(),
            "009fff"
        );
    }
}
