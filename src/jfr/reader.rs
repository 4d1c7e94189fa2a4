//! Reader of primitive values at a position.

use std::borrow::Cow;

use crate::error::{FlightError, FlightErrorKind};

/// Reader of the bytes of a chunk, up to the end of an event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    /// The chunk, up to the end of the readable bytes.
    bytes: &'a [u8],
    at: usize,
    /// Offset of the chunk in the file, for errors.
    base: u64,
    /// `true` if integers are variable-length (LEB128), else they are big-endian.
    compressed: bool,
}

/// A string as it is encoded: most are in the constant pool of strings.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Text<'a> {
    Null,
    /// Key of a constant.
    Constant(i64),
    Inline(InlineText<'a>),
}

/// A string that is decoded on request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InlineText<'a> {
    /// Reader at the first character.
    reader: Reader<'a>,
    encoding: TextEncoding,
    /// Number of bytes, or of UTF-16 units.
    count: usize,
}

/// Encoding of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextEncoding {
    Utf8,
    /// Each unit is an integer of variable length.
    Utf16,
    Latin1,
}

impl<'a> InlineText<'a> {
    /// Returns the length of the text as stated, in bytes or UTF-16 units.
    pub(crate) fn stated_len(&self) -> usize {
        self.count
    }

    /// Returns the text, truncated after the last character that ends within `max_bytes` of UTF-8. The rest is not decoded.
    pub(crate) fn decode(&self, max_bytes: usize) -> Result<Cow<'a, str>, FlightError> {
        let mut reader = self.reader;
        // A character of the other encodings has at least one byte of UTF-8.
        let count = self.count.min(max_bytes);
        let text: Cow<'a, str> = match self.encoding {
            TextEncoding::Utf8 => {
                let bytes = reader.take(count)?;
                match str::from_utf8(bytes) {
                    Ok(text) => text.into(),
                    // The last character is truncated.
                    Err(error) if count < self.count && error.error_len().is_none() => {
                        let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
                        str::from_utf8(valid).unwrap_or_default().into()
                    }
                    Err(_) => return Err(self.reader.error(FlightErrorKind::InvalidString)),
                }
            }
            TextEncoding::Utf16 => {
                let mut units = Vec::with_capacity(count);
                for _ in 0..count {
                    // Each has 16 bits.
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                    units.push(reader.char()? as u16);
                }
                String::from_utf16_lossy(&units).into()
            }
            TextEncoding::Latin1 => {
                reader.take(count)?.iter().map(|byte| char::from(*byte)).collect::<String>().into()
            }
        };
        Ok(match text {
            Cow::Owned(mut text) if text.len() > max_bytes => {
                let end = (0..=max_bytes).rev().find(|end| text.is_char_boundary(*end));
                text.truncate(end.unwrap_or(0));
                text.into()
            }
            text => text,
        })
    }
}

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) fn new(bytes: &'a [u8], base: u64, compressed: bool) -> Self {
        Self { bytes, at: 0, base, compressed }
    }

    /// Returns a reader at another position.
    #[inline]
    pub(crate) fn at(self, at: usize) -> Self {
        Self { at, ..self }
    }

    /// Returns a reader that reads nothing at or beyond `end`.
    #[inline]
    pub(crate) fn until(self, end: usize) -> Self {
        Self { bytes: self.bytes.get(..end).unwrap_or(self.bytes), ..self }
    }

    #[inline]
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Returns the end offset of the readable bytes (exclusive).
    #[inline]
    pub(crate) fn end(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
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

    /// Reads the next `length` bytes.
    #[inline]
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

    #[inline]
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
    #[inline]
    pub(crate) fn variable(&mut self) -> Result<i64, FlightError> {
        // Most are small.
        if let Some(byte) = self.bytes.get(self.at).filter(|byte| **byte < 0x80) {
            self.at += 1;
            return Ok(i64::from(*byte));
        }
        self.long_variable()
    }

    /// Reads an integer of variable length that has several bytes.
    fn long_variable(&mut self) -> Result<i64, FlightError> {
        let next = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<8>());
        if let Some((next, ends)) = next.map(|next| (*next, ends(*next))).filter(|(_, ends)| *ends != 0) {
            let bits = ends.trailing_zeros();
            self.at += bits as usize / 8 + 1;
            // The groups of 7 bits, then pairs, then fours, move together.
            let value = u64::from_le_bytes(next) & (u64::MAX >> (63 - bits)) & 0x7f7f_7f7f_7f7f_7f7f;
            let value = (value & 0x007f_007f_007f_007f) | (value & 0x7f00_7f00_7f00_7f00) >> 1;
            let value = (value & 0x0000_3fff_0000_3fff) | (value & 0x3fff_0000_3fff_0000) >> 2;
            let value = (value & 0x0000_0000_0fff_ffff) | (value & 0x0fff_ffff_0000_0000) >> 4;
            return Ok(value.cast_signed());
        }
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

    /// Returns the next bytes, if they are `count` integers of variable length in at most eight bytes: the bytes, the first one
    /// lowest, and their number.
    #[inline]
    pub(crate) fn short_variables(&self, count: u16) -> Option<(u64, usize)> {
        let next = *self.bytes.get(self.at..)?.first_chunk::<8>()?;
        let last = (1..count).fold(ends(next), |ends, _| ends & ends.wrapping_sub(1));
        let length = last.trailing_zeros() / 8 + 1;
        (last != 0).then(|| (u64::from_le_bytes(next) & (u64::MAX >> (64 - 8 * length)), length as usize))
    }

    /// Skips an integer of variable length.
    #[inline]
    pub(crate) fn skip_variable(&mut self) -> Result<(), FlightError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if let Some((next, _)) = rest.split_first_chunk::<9>() {
            let [first, ..] = next;
            self.at += if *first < 0x80 { 1 } else { length(next) };
            return Ok(());
        }
        for _ in 0..8 {
            if self.u8()? < 0x80 {
                return Ok(());
            }
        }
        self.u8().map(|_| ())
    }

    /// Skips integers of variable length: many bytes at a time, of which those without the highest bit each end one.
    #[inline]
    pub(crate) fn skip_variables(&mut self, count: usize) -> Result<(), FlightError> {
        let mut left = count;
        while left >= BLOCK {
            left -= self.skip_blocks(left);
            // Integers of many bytes, or the end of the readable bytes.
            let some = left.min(BLOCK);
            self.skip_some_variables(some)?;
            left -= some;
        }
        self.skip_some_variables(left)
    }

    /// Skips at most `most` integers of few bytes, up to others; returns their number.
    fn skip_blocks(&mut self, most: usize) -> usize {
        let (start, mut found) = (self.at, 0);
        let mut blocks = self.bytes.get(start..).unwrap_or_default().chunks_exact(BLOCK);
        while found + BLOCK <= most
            && let Some(block) = blocks.next()
        {
            // An integer of nine bytes ends with the ninth, whatever that is. It has four bytes with the highest bit in a row that
            // are together here.
            let groups = block.chunks_exact(4).map(|group| {
                group.first_chunk::<4>().map_or(0, |group| u32::from_le_bytes(*group) & 0x8080_8080)
            });
            if groups.fold(false, |is_long, group| is_long | (group == 0x8080_8080)) {
                break;
            }
            found += usize::from(block.iter().map(|byte| u8::from(*byte < 0x80)).sum::<u8>());
            self.at += BLOCK;
        }
        // The last one may have begun.
        let skipped = self.bytes.get(start..self.at).unwrap_or_default();
        self.at -= skipped.iter().rev().take_while(|byte| **byte >= 0x80).count();
        found
    }

    /// Skips integers of variable length, eight bytes at a time.
    #[inline]
    fn skip_some_variables(&mut self, count: usize) -> Result<(), FlightError> {
        let mut left = count;
        // Bytes of the current integer that were passed.
        let mut begun = 0;
        while left > 0 {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let next = rest.first_chunk::<8>().map(|next| ends(*next));
            // An integer of nine bytes ends with the ninth, whatever that is; such are rare.
            let Some(ends) = next.filter(|ends| begun + ends.trailing_zeros() as usize / 8 < 8) else {
                self.at -= begun;
                begun = 0;
                self.skip_variable()?;
                left -= 1;
                continue;
            };
            let found = ends.count_ones() as usize;
            if found >= left {
                let last = (1..left).fold(ends, |ends, _| ends & (ends - 1));
                self.at += last.trailing_zeros() as usize / 8 + 1;
                return Ok(());
            }
            self.at += 8;
            left -= found;
            begun = ends.leading_zeros() as usize / 8;
        }
        Ok(())
    }

    /// Reads a `short`.
    #[inline]
    pub(crate) fn short(&mut self) -> Result<i64, FlightError> {
        // Negative ones are written as 16 bits without a sign.
        #[allow(clippy::cast_possible_truncation)]
        if self.compressed {
            Ok(i64::from(self.variable()? as i16))
        } else {
            Ok(i16::from_be_bytes(self.array()?).into())
        }
    }

    /// Reads a `char`.
    #[inline]
    pub(crate) fn char(&mut self) -> Result<i64, FlightError> {
        if self.compressed { Ok(self.variable()? & 0xffff) } else { Ok(self.u16_be()?.into()) }
    }

    /// Reads an `int`.
    #[inline]
    pub(crate) fn int(&mut self) -> Result<i64, FlightError> {
        // Negative ones are written as 32 bits without a sign.
        #[allow(clippy::cast_possible_truncation)]
        if self.compressed {
            Ok(i64::from(self.variable()? as i32))
        } else {
            Ok(i32::from_be_bytes(self.array()?).into())
        }
    }

    /// Reads a `long`.
    #[inline]
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

    /// Reads a string, which is not decoded.
    pub(crate) fn text(&mut self) -> Result<Text<'a>, FlightError> {
        let text = self.text_start()?;
        if let Text::Inline(InlineText { encoding, count, .. }) = text {
            match encoding {
                TextEncoding::Utf16 if self.compressed => self.skip_variables(count)?,
                TextEncoding::Utf16 => _ = self.take(count.saturating_mul(2))?,
                TextEncoding::Utf8 | TextEncoding::Latin1 => _ = self.take(count)?,
            }
        }
        Ok(text)
    }

    /// Reads a string up to its first character. Skipping the characters would take time for each reference to a long text.
    pub(crate) fn text_start(&mut self) -> Result<Text<'a>, FlightError> {
        let at = *self;
        let encoding = match self.u8()? {
            0 => return Ok(Text::Null),
            1 => {
                return Ok(Text::Inline(InlineText {
                    reader: *self,
                    encoding: TextEncoding::Utf8,
                    count: 0,
                }));
            }
            2 => return self.long().map(Text::Constant),
            3 => TextEncoding::Utf8,
            4 => TextEncoding::Utf16,
            5 => TextEncoding::Latin1,
            encoding => return Err(at.error(FlightErrorKind::StringEncoding(encoding))),
        };
        let count = self.count()?;
        Ok(Text::Inline(InlineText { reader: *self, encoding, count }))
    }
}

/// Number of bytes that are examined together where many integers are skipped.
const BLOCK: usize = 64;

/// Returns the number of bytes of an integer of variable length: up to the first without the highest bit, 9 at most.
fn length(&[a, b, c, d, e, f, g, h, _]: &[u8; 9]) -> usize {
    ends([a, b, c, d, e, f, g, h]).trailing_zeros() as usize / 8 + 1
}

/// Returns the highest bit of each byte that does not have it: the first byte is the lowest.
#[inline]
fn ends(bytes: [u8; 8]) -> u64 {
    !u64::from_le_bytes(bytes) & 0x8080_8080_8080_8080
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
        for at in 0..9 {
            let mut bytes = [0xff; 20];
            bytes[at] = if at < 8 { 0x7f } else { 0xff };
            let (mut read, mut skipped) = (reader(&bytes, true), reader(&bytes, true));
            read.long().unwrap();
            skipped.skip_variable().unwrap();
            assert_eq!((read.position(), skipped.position()), (at + 1, at + 1));
        }
        let error = reader(&[0x80, 0x80], true).long().unwrap_err();
        assert_eq!((error.kind, error.offset), (FlightErrorKind::ValueTruncated, 0x102));
    }

    /// As `RecordingInput.readShort` and `readChar` of the JDK: `(short) readLong()`, `(char) readLong()`.
    #[test]
    fn shorts_have_a_sign_and_characters_have_none() {
        // -2 as the JVM writes it: 16 bits without a sign.
        for (bytes, compressed) in [(&[0xfe, 0xff, 0x03][..], true), (&[0xff, 0xfe], false)] {
            assert_eq!(reader(bytes, compressed).short().unwrap(), -2);
            assert_eq!(reader(bytes, compressed).char().unwrap(), 0xfffe);
        }
        let (mut short, mut char) = (reader(&[0xff; 9], true), reader(&[0xff; 9], true));
        assert_eq!((short.short().unwrap(), char.char().unwrap()), (-1, 0xffff));
    }

    #[test]
    fn integers_are_skipped_together_as_one_by_one() {
        // Integers of all lengths at all positions, and mostly of few bytes; nine with and without the highest bit in the last.
        for one_in in [1, 100] {
            skip_together(one_in);
        }
    }

    fn skip_together(one_in: u32) {
        let mut bytes = Vec::new();
        let mut seed = 1u32;
        for number in 0..2_000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let most = if number % one_in == 0 { 9 } else { 3 };
            let length = if seed >> 31 == 0 { 1 } else { (seed >> 24) % most + 1 };
            let [_, _, byte, _] = seed.to_le_bytes();
            bytes.extend((1..length).map(|_| 0x80 | byte));
            bytes.push(if length == 9 { byte } else { byte & 0x7f });
        }
        let all = reader(&bytes, true);
        let slow = |at: usize| {
            let group = |at: usize| i64::from(bytes[at] & 0x7f);
            let length = (0..8).find(|length| bytes[at + length] < 0x80).map_or(9, |last| last + 1);
            let low = (0..length.min(8)).map(|byte| group(at + byte) << (7 * byte)).sum::<i64>();
            if length == 9 { low | i64::from(bytes[at + 8]) << 56 } else { low }
        };
        let mut one = all;
        for count in 0..=2_000 {
            let mut together = all;
            together.skip_variables(count).unwrap();
            assert_eq!(together.position(), one.position(), "{count}");
            if count < 2_000 {
                assert_eq!(together.variable().unwrap(), slow(one.position()));
                one.skip_variable().unwrap();
                assert_eq!(together.position(), one.position());
            }
        }
        assert_eq!(one.remaining(), 0);
        for cut in 0..300 {
            let (mut one, mut together) = (all.until(cut), all.until(cut));
            let error = std::iter::repeat_with(|| one.skip_variable()).find_map(Result::err);
            assert_eq!(together.skip_variables(2_000).err(), error, "{cut}");
        }
    }

    #[test]
    fn strings_of_all_encodings() {
        for (bytes, text) in [
            (&[1][..], ""),
            (&[3, 3, 0x61, 0xc3, 0xa4], "aä"),
            (&[4, 2, 0x61, 0xe4, 0x01], "aä"),
            (&[5, 2, 0x61, 0xe4], "aä"),
        ] {
            let mut read = reader(bytes, true);
            let Text::Inline(inline) = read.text().unwrap() else { panic!("{bytes:?}") };
            assert_eq!(read.remaining(), 0);
            assert_eq!(inline.decode(usize::MAX).unwrap(), text);
            // The second character has two bytes.
            let cut = [0, 1, 2, 3].map(|max| inline.decode(max).unwrap().len());
            assert_eq!(cut, if text.is_empty() { [0; 4] } else { [0, 1, 1, 3] });
        }
        let (mut null, mut constant) = (reader(&[0], true), reader(&[2, 7], true));
        assert!(matches!(null.text(), Ok(Text::Null)) && matches!(constant.text(), Ok(Text::Constant(7))));
        assert_eq!((null.remaining(), constant.remaining()), (0, 0));
        // The rest is not read.
        let Text::Inline(half) = reader(&[3, 3, 0x61, 0xff, 0xff], true).text().unwrap() else { panic!() };
        assert_eq!(half.decode(1).unwrap(), "a");
        assert_eq!(half.decode(2).unwrap_err().kind, FlightErrorKind::InvalidString);
        for (bytes, kind) in [
            (&[6][..], FlightErrorKind::StringEncoding(6)),
            (&[3, 0xff, 0xff, 0xff, 0x7f, 1], FlightErrorKind::ValueTruncated),
            (&[5, 2, 1], FlightErrorKind::ValueTruncated),
        ] {
            assert_eq!(reader(bytes, true).text().unwrap_err().kind, kind, "{bytes:?}");
        }
    }
}
