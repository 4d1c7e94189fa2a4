//! Reader of primitive values at a position.

use std::borrow::Cow;

use crate::error::{FlightError, FlightErrorKind};

/// Reader of the bytes of a chunk, up to the end of an event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    /// The chunk, up to the end of what may be read.
    bytes: &'a [u8],
    at: usize,
    /// Offset of the chunk in the file, for errors.
    base: u64,
    /// `true` if integers are variable-length (LEB128), else they are big-endian.
    compressed: bool,
}

/// A string as it is encoded: most are in the constant pool of strings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Text<'a> {
    Null,
    /// Key of a constant.
    Constant(i64),
    Inline(Cow<'a, str>),
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], base: u64, compressed: bool) -> Self {
        Self { bytes, at: 0, base, compressed }
    }

    /// Returns a reader at another position.
    pub(crate) fn at(self, at: usize) -> Self {
        Self { at, ..self }
    }

    /// Returns a reader that reads nothing at or beyond `end`.
    pub(crate) fn until(self, end: usize) -> Self {
        Self { bytes: self.bytes.get(..end).unwrap_or(self.bytes), ..self }
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.compressed
    }

    #[cold]
    pub(crate) fn error(&self, kind: FlightErrorKind) -> FlightError {
        FlightError::new(kind, self.base + self.at as u64)
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], FlightError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        match rest.get(..length) {
            Some(bytes) => {
                self.at += length;
                Ok(bytes)
            }
            None => Err(self.error(FlightErrorKind::ValueTruncated)),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FlightError> {
        let bytes = self.take(N)?;
        bytes.try_into().map_err(|_| self.error(FlightErrorKind::ValueTruncated))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, FlightError> {
        match self.bytes.get(self.at) {
            Some(byte) => {
                self.at += 1;
                Ok(*byte)
            }
            None => Err(self.error(FlightErrorKind::ValueTruncated)),
        }
    }

    pub(crate) fn u16_be(&mut self) -> Result<u16, FlightError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn i64_be(&mut self) -> Result<i64, FlightError> {
        self.array().map(i64::from_be_bytes)
    }

    pub(crate) fn f32(&mut self) -> Result<f32, FlightError> {
        self.array().map(f32::from_be_bytes)
    }

    pub(crate) fn f64(&mut self) -> Result<f64, FlightError> {
        self.array().map(f64::from_be_bytes)
    }

    /// Reads an integer of up to 9 bytes: 7 bits in each of the first eight, 8 in the last.
    pub(crate) fn variable(&mut self) -> Result<i64, FlightError> {
        let mut value = 0u64;
        for shift in (0..56).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value.cast_signed());
            }
        }
        value |= u64::from(self.u8()?) << 56;
        Ok(value.cast_signed())
    }

    /// Skips an integer of variable length.
    pub(crate) fn skip_variable(&mut self) -> Result<(), FlightError> {
        for _ in 0..8 {
            if self.u8()? < 0x80 {
                return Ok(());
            }
        }
        self.u8().map(|_| ())
    }

    pub(crate) fn short(&mut self) -> Result<i64, FlightError> {
        if self.compressed { self.variable() } else { Ok(i16::from_be_bytes(self.array()?).into()) }
    }

    pub(crate) fn char(&mut self) -> Result<i64, FlightError> {
        if self.compressed { self.variable() } else { Ok(self.u16_be()?.into()) }
    }

    pub(crate) fn int(&mut self) -> Result<i64, FlightError> {
        // Negative ones are written as 32 bits without a sign.
        #[allow(clippy::cast_possible_truncation)]
        if self.compressed {
            Ok(i64::from(self.variable()? as i32))
        } else {
            Ok(i32::from_be_bytes(self.array()?).into())
        }
    }

    pub(crate) fn long(&mut self) -> Result<i64, FlightError> {
        if self.compressed { self.variable() } else { self.i64_be() }
    }

    /// Reads a count of elements. One that is larger than the number of remaining bytes is an error: each element has at
    /// least one byte.
    pub(crate) fn count(&mut self) -> Result<usize, FlightError> {
        let at = *self;
        let count = usize::try_from(self.int()?).ok().filter(|count| *count <= self.remaining());
        count.ok_or_else(|| at.error(FlightErrorKind::ValueTruncated))
    }

    pub(crate) fn text(&mut self) -> Result<Text<'a>, FlightError> {
        let at = *self;
        Ok(match self.u8()? {
            0 => Text::Null,
            1 => Text::Inline(Cow::Borrowed("")),
            2 => Text::Constant(self.long()?),
            3 => {
                let length = self.count()?;
                let text = str::from_utf8(self.take(length)?);
                Text::Inline(Cow::Borrowed(text.map_err(|_| at.error(FlightErrorKind::InvalidString))?))
            }
            4 => {
                let mut units = Vec::new();
                for _ in 0..self.count()? {
                    // Each has 16 bits.
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                    units.push(self.char()? as u16);
                }
                Text::Inline(Cow::Owned(String::from_utf16_lossy(&units)))
            }
            5 => {
                let length = self.count()?;
                Text::Inline(Cow::Owned(self.take(length)?.iter().map(|byte| char::from(*byte)).collect()))
            }
            encoding => return Err(at.error(FlightErrorKind::StringEncoding(encoding))),
        })
    }

    /// Skips a string.
    pub(crate) fn skip_text(&mut self) -> Result<(), FlightError> {
        let at = *self;
        match self.u8()? {
            0 | 1 => Ok(()),
            2 => self.long().map(|_| ()),
            3 | 5 => {
                let length = self.count()?;
                self.take(length).map(|_| ())
            }
            4 => {
                for _ in 0..self.count()? {
                    self.char()?;
                }
                Ok(())
            }
            encoding => Err(at.error(FlightErrorKind::StringEncoding(encoding))),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn reader(bytes: &[u8], compressed: bool) -> Reader<'_> {
        Reader::new(bytes, 0x100, compressed)
    }

    #[test]
    fn integers_of_variable_length() {
        for (bytes, value) in [
            (&[0x85, 0xb0, 0x03][..], 55_301),
            (&[0], 0),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], -1),
            (&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80], i64::MIN),
            // Padded, as sizes are.
            (&[0x81, 0x80, 0x80, 0x00], 1),
        ] {
            let mut reader = reader(bytes, true);
            assert_eq!(reader.long().unwrap(), value);
            assert_eq!(reader.remaining(), 0);
            let mut skipped = reader.at(0);
            skipped.skip_variable().unwrap();
            assert_eq!(skipped.remaining(), 0);
        }
        assert_eq!(reader(&[0xff, 0xff, 0xff, 0xff, 0x0f], true).int().unwrap(), -1);
        assert_eq!(reader(&[0xff; 8], false).int().unwrap(), -1);
        assert_eq!(reader(&[0xff; 8], false).long().unwrap(), -1);
        let error = reader(&[0x80, 0x80], true).long().unwrap_err();
        assert_eq!((error.kind, error.offset), (FlightErrorKind::ValueTruncated, 0x102));
    }

    #[test]
    fn strings_of_all_encodings() {
        let inline = |text: &str| Text::Inline(Cow::Owned(text.to_owned()));
        for (bytes, text) in [
            (&[0][..], Text::Null),
            (&[1], inline("")),
            (&[2, 7], Text::Constant(7)),
            (&[3, 3, 0x61, 0xc3, 0xa4], inline("aä")),
            (&[4, 2, 0x61, 0xe4, 0x01], inline("aä")),
            (&[5, 2, 0x61, 0xe4], inline("aä")),
        ] {
            let mut read = reader(bytes, true);
            assert_eq!(read.text().unwrap(), text);
            assert_eq!(read.remaining(), 0);
            let mut skipped = read.at(0);
            skipped.skip_text().unwrap();
            assert_eq!(skipped.remaining(), 0);
        }
        for (bytes, kind) in [
            (&[6][..], FlightErrorKind::StringEncoding(6)),
            (&[3, 1, 0xff], FlightErrorKind::InvalidString),
            (&[3, 0xff, 0xff, 0xff, 0x7f, 1], FlightErrorKind::ValueTruncated),
            (&[5, 2, 1], FlightErrorKind::ValueTruncated),
        ] {
            assert_eq!(reader(bytes, true).text().unwrap_err().kind, kind, "{bytes:?}");
        }
    }
}
