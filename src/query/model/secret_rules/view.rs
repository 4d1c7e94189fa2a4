//! Texts in arrays: one byte per character, or two, with the low or the high byte first.

/// Encoding in which the elements of an array are read as text, without a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextView {
    /// Latin-1 or UTF-8.
    Narrow = 0,
    /// UTF-16, low byte first.
    LowFirst = 1,
    /// UTF-16, high byte first.
    HighFirst = 2,
}

impl TextView {
    /// Number of views.
    pub(super) const COUNT: usize = 3;
    const ALL: [Self; Self::COUNT] = [Self::Narrow, Self::LowFirst, Self::HighFirst];

    /// Returns the view with this number.
    pub(super) fn from_number(number: usize) -> Self {
        Self::ALL.get(number).copied().unwrap_or(Self::Narrow)
    }

    /// Returns the number of bytes of a code unit in this view.
    pub(super) fn width(self) -> usize {
        if self == Self::Narrow { 1 } else { 2 }
    }

    /// Writes the units of a range into `buffer`, one byte each: those beyond Latin-1 become 0xff.
    pub(super) fn narrow(self, elements: &[u8], (start, end): (usize, usize), buffer: &mut Vec<u8>) {
        buffer.clear();
        let bytes = elements.get(start * self.width()..end * self.width()).unwrap_or_default();
        match self {
            Self::Narrow => buffer.extend_from_slice(bytes),
            _ => buffer.extend(self.units(bytes).map(|unit| u8::try_from(unit).unwrap_or(u8::MAX))),
        }
    }

    /// Returns the text of a range. Bytes that are not valid UTF-8 are read as Latin-1.
    pub fn text(self, elements: &[u8], (start, end): (usize, usize)) -> String {
        let bytes = elements.get(start * self.width()..end * self.width()).unwrap_or_default();
        match (self, str::from_utf8(bytes)) {
            (Self::Narrow, Ok(text)) => text.to_owned(),
            (Self::Narrow, Err(_)) => bytes.iter().map(|byte| char::from(*byte)).collect(),
            _ => char::decode_utf16(self.units(bytes))
                .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect(),
        }
    }

    fn units(self, bytes: &[u8]) -> impl Iterator<Item = u16> {
        bytes.chunks_exact(2).map(move |unit| {
            let unit = unit.try_into().unwrap_or_default();
            if self == Self::HighFirst { u16::from_be_bytes(unit) } else { u16::from_le_bytes(unit) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_in_every_form() {
        let mut buffer = Vec::new();
        let wide = b"g\0r\0\xfc\0\x2c\x67x";
        TextView::LowFirst.narrow(wide, (1, 4), &mut buffer);
        assert_eq!(buffer, b"r\xfc\xff");
        assert_eq!(TextView::LowFirst.text(wide, (0, 4)), "grü本");
        assert_eq!(TextView::HighFirst.text(b"\0a\0b", (0, 2)), "ab");
        assert_eq!(TextView::Narrow.text(b"gr\xc3\xbc", (0, 4)), "grü");
        assert_eq!(TextView::Narrow.text(b"gr\xfc", (0, 3)), "grü");
        // Beyond the end.
        assert_eq!(TextView::LowFirst.text(b"a\0", (0, 9)), "");
    }
}
