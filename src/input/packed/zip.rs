//! zip archives: the directory at the end, the headers that it refers to; zip64.

/// Message for an archive without a directory.
pub(super) const NO_DIRECTORY: &str =
    "the zip archive is truncated: its central directory, at the end, is missing";

/// A file in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ZipMember<'a> {
    pub(super) name: String,
    /// Compression method: 0 none, 8 deflate, 93 Zstandard.
    pub(super) method: u16,
    pub(super) is_encrypted: bool,
    /// Packed bytes; incomplete if the file is truncated.
    pub(super) packed: &'a [u8],
    /// `true` if all packed bytes are in the file.
    pub(super) is_whole: bool,
    /// Stated length in bytes, if known.
    pub(super) bytes: Option<u64>,
    /// Checksum of the unpacked bytes, if known.
    pub(super) crc: Option<u32>,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|chunk| u16::from_le_bytes(*chunk))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|chunk| u32::from_le_bytes(*chunk))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|chunk| u64::from_le_bytes(*chunk))
}

/// Length of a local header before the name in bytes.
pub(super) const LOCAL: usize = 30;
/// Length of a directory entry before the name in bytes.
const ENTRY: usize = 46;
/// Length of the end record before the comment in bytes.
const END: usize = 22;

/// Returns whether `bytes` start with the header of a file.
pub(super) fn is_header(bytes: &[u8]) -> bool {
    local(bytes, 0).is_some()
}

/// Returns the start of the data after the local header at `at`.
fn local(bytes: &[u8], at: usize) -> Option<usize> {
    let header = bytes.get(at..)?.get(..LOCAL)?;
    let lengths = (u16_at(header, 26)?, u16_at(header, 28)?);
    header.starts_with(b"PK\x03\x04").then_some(at + LOCAL + usize::from(lengths.0) + usize::from(lengths.1))
}

/// Returns the start of the directory, and its number of entries.
fn directory(bytes: &[u8]) -> Option<(usize, u64)> {
    let tail_at = bytes.len().saturating_sub(END + 0xffff);
    let tail = bytes.get(tail_at..)?;
    let at = tail_at + memchr::memmem::rfind(tail, b"PK\x05\x06")?;
    let end = bytes.get(at..)?.get(..END)?;
    let (count, offset) = (u64::from(u16_at(end, 10)?), u64::from(u32_at(end, 16)?));
    // zip64 has a record of its own, and a pointer to it before this one.
    let wide = || {
        let locator = bytes.get(at.checked_sub(20)?..at)?;
        let at = usize::try_from(u64_at(locator, 8)?).ok()?;
        let record = bytes.get(at..)?.get(..56)?;
        let is_there = locator.starts_with(b"PK\x06\x07") && record.starts_with(b"PK\x06\x06");
        is_there.then_some((u64_at(record, 48)?, u64_at(record, 32)?))
    };
    let (offset, count) = match wide() {
        Some(wide) if offset == 0xffff_ffff || count == 0xffff => wide,
        _ => (offset, count),
    };
    Some((usize::try_from(offset).ok()?, count))
}

/// Iterator over the files of an archive.
#[derive(Debug)]
pub(super) struct ZipMembers<'a> {
    bytes: &'a [u8],
    at: usize,
    left: u64,
    /// `true` if the directory exists and was read in full.
    pub(super) is_whole: bool,
}

impl<'a> ZipMembers<'a> {
    /// Reads the directory of an archive. Without one, only the first file is known.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        match directory(bytes) {
            Some((at, left)) => Self { bytes, at, left, is_whole: true },
            None => Self { bytes, at: 0, left: 1, is_whole: false },
        }
    }

    /// Returns the file of the first local header: for archives without a directory.
    fn first_member(&mut self) -> Option<ZipMember<'a>> {
        let data = local(self.bytes, 0)?;
        let flags = u16_at(self.bytes, 6)?;
        let name = self.bytes.get(LOCAL..LOCAL + usize::from(u16_at(self.bytes, 26)?))?;
        let rest = self.bytes.get(data..)?;
        // Stated here, unless the writer did not know it yet.
        let stated = usize::try_from(u32_at(self.bytes, 18)?)
            .ok()
            .filter(|len| ![0, 0xffff_ffff].contains(len) && flags & 8 == 0);
        let packed = stated.and_then(|len| rest.get(..len)).unwrap_or(rest);
        Some(ZipMember {
            name: String::from_utf8_lossy(name).into_owned(),
            method: u16_at(self.bytes, 8)?,
            is_encrypted: flags & 1 != 0,
            packed,
            is_whole: false,
            bytes: None,
            crc: None,
        })
    }

    fn entry(&mut self) -> Option<ZipMember<'a>> {
        let entry = self.bytes.get(self.at..)?;
        let head = entry.get(..ENTRY).filter(|head| head.starts_with(b"PK\x01\x02"))?;
        let len = |at| u16_at(head, at).map(usize::from);
        let (name_len, extra_len, comment_len) = (len(28)?, len(30)?, len(32)?);
        let name = entry.get(ENTRY..ENTRY + name_len)?;
        let mut extra = entry.get(ENTRY + name_len..)?.get(..extra_len)?;
        let mut bytes = u64::from(u32_at(head, 24)?);
        let mut packed_bytes = u64::from(u32_at(head, 20)?);
        let mut offset = u64::from(u32_at(head, 42)?);
        while let (Some(id), Some(len)) = (u16_at(extra, 0), u16_at(extra, 2)) {
            if id == 1 {
                // Values that did not fit, in this order.
                let mut at = 4;
                for value in [&mut bytes, &mut packed_bytes, &mut offset] {
                    if *value == 0xffff_ffff {
                        *value = u64_at(extra, at)?;
                        at += 8;
                    }
                }
            }
            extra = extra.get(4 + usize::from(len)..).unwrap_or_default();
        }
        self.at += ENTRY + name_len + extra_len + comment_len;
        let data = usize::try_from(offset).ok().and_then(|at| local(self.bytes, at));
        let rest = data.and_then(|at| self.bytes.get(at..)).unwrap_or_default();
        let packed = usize::try_from(packed_bytes).ok().and_then(|len| rest.get(..len));
        Some(ZipMember {
            name: String::from_utf8_lossy(name).into_owned(),
            method: u16_at(head, 10)?,
            is_encrypted: u16_at(head, 8)? & 1 != 0,
            packed: packed.unwrap_or(rest),
            is_whole: packed.is_some(),
            bytes: Some(bytes),
            crc: Some(u32_at(head, 16)?),
        })
    }
}

impl<'a> Iterator for ZipMembers<'a> {
    type Item = ZipMember<'a>;

    fn next(&mut self) -> Option<ZipMember<'a>> {
        self.left = self.left.checked_sub(1)?;
        if !self.is_whole {
            return self.first_member();
        }
        let entry = self.entry();
        self.is_whole = entry.is_some();
        if entry.is_none() {
            self.left = 0;
        }
        entry
    }
}
