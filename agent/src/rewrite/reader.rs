//! Reader of big-endian numbers that tracks offsets in the class file, and the corresponding writer.

use super::error::RewriteError;

/// Reader of a class file, or of a section in it. Offsets are relative to the start of the class file.
#[derive(Debug, Clone)]
pub(super) struct ClassFileReader<'a> {
    /// Class file up to the end of the section.
    bytes: &'a [u8],
    at: usize,
}

impl<'a> ClassFileReader<'a> {
    /// Creates a reader of an entire class file.
    pub(super) fn new(bytes: &'a [u8]) -> ClassFileReader<'a> {
        ClassFileReader { bytes, at: 0 }
    }

    /// Returns the offset of the next byte.
    pub(super) fn offset(&self) -> usize {
        self.at
    }

    /// Returns `true` if the reader is at the end of the section.
    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Reads `count` bytes. `expected` describes them in errors.
    pub(super) fn take(&mut self, count: usize, expected: &'static str) -> Result<&'a [u8], RewriteError> {
        let end = self.at.checked_add(count);
        match end.and_then(|end| self.bytes.get(self.at..end)) {
            Some(taken) => {
                self.at += count;
                Ok(taken)
            }
            None => Err(RewriteError::end(self.at, expected)),
        }
    }

    fn array<const N: usize>(&mut self, expected: &'static str) -> Result<[u8; N], RewriteError> {
        match self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>()) {
            Some(array) => {
                self.at += N;
                Ok(*array)
            }
            None => Err(RewriteError::end(self.at, expected)),
        }
    }

    /// Reads a number of one byte. `expected` describes it in errors.
    pub(super) fn u1(&mut self, expected: &'static str) -> Result<u8, RewriteError> {
        self.array::<1>(expected).map(|[byte]| byte)
    }

    /// Reads a number of two bytes. `expected` describes it in errors.
    pub(super) fn u2(&mut self, expected: &'static str) -> Result<u16, RewriteError> {
        self.array(expected).map(u16::from_be_bytes)
    }

    /// Reads a number of four bytes. `expected` describes it in errors.
    pub(super) fn u4(&mut self, expected: &'static str) -> Result<u32, RewriteError> {
        self.array(expected).map(u32::from_be_bytes)
    }

    /// Returns a reader of the next `count` bytes, which this reader skips.
    pub(super) fn section(
        &mut self,
        count: usize,
        expected: &'static str,
    ) -> Result<ClassFileReader<'a>, RewriteError> {
        let start = self.at;
        self.take(count, expected)?;
        Ok(ClassFileReader { bytes: self.bytes.get(..self.at).unwrap_or_default(), at: start })
    }

    /// Reads the length of an attribute, and returns a reader of its content.
    pub(super) fn attribute(&mut self) -> Result<ClassFileReader<'a>, RewriteError> {
        let at = self.at;
        let length = self.u4("the length of an attribute")?;
        let length = usize::try_from(length).map_err(|_| RewriteError::end(at, "an attribute"))?;
        self.section(length, "an attribute")
    }

    /// Returns an error unless the reader is at the end of the section.
    pub(super) fn finish(&self, expected: &'static str) -> Result<(), RewriteError> {
        match self.bytes.get(self.at) {
            None => Ok(()),
            Some(&byte) => Err(RewriteError::number(self.at, expected, byte)),
        }
    }
}

/// Error for a number that exceeds its field. The method, or the class, is left unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLong;

/// Appends a number of two bytes.
pub(super) fn put_u2(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends a number of four bytes.
pub(super) fn put_u4(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends the output of `content`, preceded by its four-byte length.
pub(super) fn put_with_length<E: From<TooLong>>(
    out: &mut Vec<u8>,
    content: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let start = out.len();
    put_u4(out, 0);
    content(out)?;
    let length = u32::try_from(out.len() - start - 4).map_err(|_| TooLong)?;
    patch(out, start, &length.to_be_bytes());
    Ok(())
}

/// Overwrites bytes at an offset that were appended before.
pub(super) fn patch(out: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = out.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}
