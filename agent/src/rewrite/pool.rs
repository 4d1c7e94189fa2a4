//! Constant pool of a class file (JVMS 4.4): its names, and constants to append.

use super::error::RewriteError;
use super::reader::{ClassFileReader, put_u2};
use super::tracker::Tracker;

const UTF8: u8 = 1;
const INTEGER: u8 = 3;
const LONG: u8 = 5;
const DOUBLE: u8 = 6;
const CLASS: u8 = 7;
const METHOD_REF: u8 = 10;
const NAME_AND_TYPE: u8 = 12;

/// Descriptor of the two methods of a tracker.
pub(super) const TRACKER_DESCRIPTOR: &str = "(I)V";

/// Constant pool of a class file.
#[derive(Debug)]
pub(super) struct Pool<'a> {
    class: &'a [u8],
    /// Offset of the tag of each constant; 0 for index 0 and for the second slot of a long or double.
    offsets: Vec<u32>,
}

impl<'a> Pool<'a> {
    /// Parses the constant pool of `class`. `reader` must be at the pool's count; afterwards, it is at the end of the pool.
    pub(super) fn read(class: &'a [u8], reader: &mut ClassFileReader<'a>) -> Result<Pool<'a>, RewriteError> {
        let count = reader.u2("the number of constants")?;
        let mut offsets = Vec::with_capacity(usize::from(count).min(class.len()));
        offsets.push(0);
        while offsets.len() < usize::from(count) {
            let at = reader.offset();
            let offset =
                u32::try_from(at).map_err(|_| RewriteError::end(at, "a class file of less than 4 GiB"))?;
            offsets.push(offset);
            let tag = reader.u1("a constant")?;
            let length = match tag {
                UTF8 => usize::from(reader.u2("the length of a Utf8 constant")?),
                INTEGER | 4 | 9 | METHOD_REF | 11 | NAME_AND_TYPE | 17 | 18 => 4,
                LONG | DOUBLE => {
                    offsets.push(0);
                    8
                }
                CLASS | 8 | 16 | 19 | 20 => 2,
                15 => 3,
                _ => return Err(RewriteError::number(at, "the tag of a constant", tag)),
            };
            reader.take(length, "a constant")?;
        }
        if offsets.len() != usize::from(count) {
            // The index is 0, or belongs to a long or double whose second slot is beyond the end.
            return Err(RewriteError::number(8, "the number of constants plus one", count));
        }
        Ok(Pool { class, offsets })
    }

    /// Returns the count as stored in the file, which is one more than the last index.
    pub(super) fn count(&self) -> usize {
        self.offsets.len()
    }

    fn constant(
        &self,
        index: u16,
        tag: u8,
        at: usize,
        expected: &'static str,
    ) -> Result<ClassFileReader<'a>, RewriteError> {
        let wrong = || RewriteError::number(at, expected, index);
        let offset = self.offsets.get(usize::from(index)).copied().filter(|&offset| offset > 0);
        let mut reader = ClassFileReader::new(self.class);
        reader.take(offset.and_then(|offset| usize::try_from(offset).ok()).ok_or_else(wrong)?, expected)?;
        if reader.u1(expected)? == tag { Ok(reader) } else { Err(wrong()) }
    }

    /// Returns the bytes of a Utf8 constant, in modified UTF-8. `at` is the position of the index in the file, for errors.
    pub(super) fn utf8(&self, index: u16, at: usize) -> Result<&'a [u8], RewriteError> {
        let expected = "the index of a Utf8 constant";
        let mut reader = self.constant(index, UTF8, at, expected)?;
        let length = reader.u2(expected)?;
        reader.take(usize::from(length), expected)
    }

    /// Returns the internal name of a Class constant. `at` is the position of the index in the file, for errors.
    pub(super) fn class_name(&self, index: u16, at: usize) -> Result<&'a [u8], RewriteError> {
        let expected = "the index of a Class constant";
        let mut reader = self.constant(index, CLASS, at, expected)?;
        let at = reader.offset();
        self.utf8(reader.u2(expected)?, at)
    }
}

/// Indexes of the constants that inserted instructions need.
#[derive(Debug, Clone, Copy)]
pub(super) struct InsertedConstants {
    /// Reference to the tracker's method for entries.
    pub(super) enter: u16,
    /// Reference to the tracker's method for exits.
    pub(super) exit: u16,
    /// Class `java/lang/Throwable`.
    pub(super) throwable: u16,
    /// Utf8 constant with the name `StackMapTable`.
    pub(super) frames: u16,
}

/// Constants that are appended to a constant pool.
///
/// Constants are appended even if the pool already contains equal ones, because a search would cost more than the bytes, and
/// equal constants are permitted.
#[derive(Debug)]
pub(super) struct Additions {
    /// Constants as stored in a class file.
    bytes: Vec<u8>,
    count: usize,
    shared: Option<InsertedConstants>,
}

impl Additions {
    /// Creates an empty list of additions to `pool`.
    pub(super) fn new(pool: &Pool<'_>) -> Additions {
        Additions::after(pool.count())
    }

    /// Creates an empty list of additions to a pool with this count.
    pub(super) fn after(count: usize) -> Additions {
        Additions { bytes: Vec::new(), count, shared: None }
    }

    /// Returns the count of the pool including the additions, as stored in a class file.
    pub(super) fn count(&self) -> u16 {
        u16::try_from(self.count).unwrap_or(u16::MAX)
    }

    /// Returns the additions as stored in a class file.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends a constant and returns its index; `None` if the pool is full, as its count has two bytes.
    fn add(&mut self, tag: u8, parts: &[u16]) -> Option<u16> {
        let index = u16::try_from(self.count).ok().filter(|&index| index < u16::MAX)?;
        self.count += 1;
        self.bytes.push(tag);
        for &part in parts {
            put_u2(&mut self.bytes, part);
        }
        Some(index)
    }

    /// Appends a Utf8 constant and returns its index.
    pub(super) fn utf8(&mut self, text: &str) -> Option<u16> {
        let length = u16::try_from(text.len()).ok()?;
        let index = self.add(UTF8, &[length])?;
        self.bytes.extend_from_slice(text.as_bytes());
        Some(index)
    }

    /// Appends a Class constant and its name; returns its index.
    pub(super) fn class(&mut self, name: &str) -> Option<u16> {
        let name = self.utf8(name)?;
        self.add(CLASS, &[name])
    }

    /// Appends an Integer constant and returns its index.
    pub(super) fn integer(&mut self, value: i32) -> Option<u16> {
        let index = self.add(INTEGER, &[])?;
        self.bytes.extend_from_slice(&value.to_be_bytes());
        Some(index)
    }

    /// Returns the indexes of the constants for inserted instructions. The first call appends the constants. `None` if the pool
    /// has no space for them.
    pub(super) fn inserted_constants(&mut self, tracker: &Tracker<'_>) -> Option<InsertedConstants> {
        if self.shared.is_none() {
            let class = self.class(tracker.class)?;
            let descriptor = self.utf8(TRACKER_DESCRIPTOR)?;
            let mut method = |name: &str| {
                let name = self.utf8(name)?;
                let name_and_type = self.add(NAME_AND_TYPE, &[name, descriptor])?;
                self.add(METHOD_REF, &[class, name_and_type])
            };
            let enter = method(tracker.enter)?;
            let exit = method(tracker.exit)?;
            let throwable = self.class("java/lang/Throwable")?;
            let frames = self.utf8("StackMapTable")?;
            self.shared = Some(InsertedConstants { enter, exit, throwable, frames });
        }
        self.shared
    }
}
