//! tar archives: names and lengths in the headers of ustar, GNU tar and pax.

use std::io::{self, Read};

use super::stream::BoundedReader;

/// Length of a header, and alignment of members, in bytes.
const BLOCK: usize = 512;
/// Maximum length of a long name, or of a pax header, in bytes.
const LONG: u64 = 64 << 10;

/// A sequential source of bytes that can skip parts.
pub(super) trait TarInput: Read {
    /// Skips `bytes` bytes; returns the number actually skipped.
    fn pass_over(&mut self, bytes: u64) -> io::Result<u64>;
}

/// Bytes of a tar archive in memory, as a source.
pub(super) struct Bytes<'a> {
    pub(super) all: &'a [u8],
    pub(super) at: usize,
}

impl Read for Bytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut rest = self.all.get(self.at..).unwrap_or_default();
        let read = rest.read(buffer)?;
        self.at += read;
        Ok(read)
    }
}

impl TarInput for Bytes<'_> {
    fn pass_over(&mut self, bytes: u64) -> io::Result<u64> {
        let left = self.all.len().saturating_sub(self.at);
        let passed = usize::try_from(bytes).unwrap_or(usize::MAX).min(left);
        self.at += passed;
        Ok(passed as u64)
    }
}

impl<R: Read> TarInput for BoundedReader<R> {
    fn pass_over(&mut self, bytes: u64) -> io::Result<u64> {
        io::copy(&mut self.take(bytes), &mut io::sink())
    }
}

/// Header of a file in an archive. When it has been read, the source is at the start of the file's contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TarMember {
    pub(super) name: String,
    pub(super) bytes: u64,
    /// `true` if its bytes are parts of the file, with holes between them.
    pub(super) is_sparse: bool,
}

/// Returns whether `bytes` start with a header with a valid checksum.
pub(super) fn is_header(bytes: &[u8]) -> bool {
    bytes.first_chunk::<BLOCK>().is_some_and(checksum_is_right)
}

fn checksum_is_right(block: &[u8; BLOCK]) -> bool {
    let sum: u64 = (block.iter().enumerate())
        .map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u64::from(*byte) })
        .sum();
    number(block.get(148..156).unwrap_or_default()) == Some(sum)
}

/// Parses a number: octal digits, or binary with the highest bit set, as GNU tar writes large ones.
fn number(field: &[u8]) -> Option<u64> {
    match field {
        [0x80, rest @ ..] => {
            let (high, low) = rest.split_at_checked(rest.len().checked_sub(8)?)?;
            let low = low.first_chunk().map(|low| u64::from_be_bytes(*low))?;
            high.iter().all(|byte| *byte == 0).then_some(low)
        }
        _ => {
            let text = std::str::from_utf8(field).ok()?;
            u64::from_str_radix(text.trim_matches([' ', '\0']), 8).ok()
        }
    }
}

fn text(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(field.get(..end).unwrap_or_default()).into_owned()
}

/// Returns the length of the padding after a member of this length in bytes.
pub(super) const fn padding(bytes: u64) -> u64 {
    (BLOCK as u64 - bytes % BLOCK as u64) % BLOCK as u64
}

/// Next item in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// A file.
    File(TarMember),
    /// Another item, of this length in bytes.
    Other(u64),
    /// End of the archive.
    End,
    /// A missing or truncated header.
    Damage(&'static str),
}

/// Reads headers up to the next member.
pub(super) fn next(source: &mut dyn TarInput) -> io::Result<Next> {
    let mut long = TarMember { name: String::new(), bytes: u64::MAX, is_sparse: false };
    loop {
        let mut block = [0; BLOCK];
        let mut filled = 0;
        while let Some(room) = block.get_mut(filled..).filter(|room| !room.is_empty()) {
            match source.read(room) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if filled < BLOCK {
            // Archives end with blocks of zeros; one without was truncated between two members, or its writer omitted
            // them.
            return Ok(if filled == 0 { Next::End } else { Next::Damage("the tar archive is truncated") });
        }
        if block == [0; BLOCK] {
            return Ok(Next::End);
        }
        let field = |from: usize, to: usize| block.get(from..to).unwrap_or_default();
        let (Some(bytes), true) = (number(field(124, 136)), checksum_is_right(&block)) else {
            return Ok(Next::Damage("a header of the tar archive is damaged"));
        };
        let kind = block.get(156).copied().unwrap_or_default();
        match kind {
            b'L' | b'x' => {
                let mut data = Vec::new();
                source.take(bytes.min(LONG)).read_to_end(&mut data)?;
                source.pass_over(bytes.saturating_sub(data.len() as u64).saturating_add(padding(bytes)))?;
                if kind == b'L' { long.name = text(&data) } else { read_pax(&data, &mut long) }
            }
            b'K' | b'g' => drop(source.pass_over(bytes.saturating_add(padding(bytes)))?),
            0 | b'0' | b'7' | b'S' => {
                let prefix =
                    if field(257, 263) == b"ustar\0" { text(field(345, 500)) } else { String::new() };
                let short = text(field(0, 100));
                let name = match (long.name.is_empty(), prefix.is_empty()) {
                    (false, _) => long.name,
                    (true, true) => short,
                    (true, false) => format!("{prefix}/{short}"),
                };
                let bytes = if long.bytes == u64::MAX { bytes } else { long.bytes };
                if kind == b'S' {
                    pass_over_maps(source, &block)?;
                }
                return Ok(Next::File(TarMember { name, bytes, is_sparse: long.is_sparse || kind == b'S' }));
            }
            // Links, devices, directories: a length that they state is not that of data in the archive.
            b'1'..=b'6' => return Ok(Next::Other(0)),
            _ => return Ok(Next::Other(bytes)),
        }
    }
}

/// Skips the blocks that continue the list of a sparse file's parts, in the old format of GNU tar.
fn pass_over_maps(source: &mut dyn TarInput, header: &[u8; BLOCK]) -> io::Result<()> {
    let mut goes_on = header.get(482).is_some_and(|byte| *byte != 0);
    while goes_on {
        let mut map = Vec::new();
        source.take(BLOCK as u64).read_to_end(&mut map)?;
        goes_on = map.get(504).is_some_and(|byte| *byte != 0);
    }
    Ok(())
}

/// Reads name and length from a pax header: lines of `LENGTH KEY=VALUE`.
fn read_pax(mut data: &[u8], member: &mut TarMember) {
    while let Some(space) = data.iter().position(|byte| *byte == b' ') {
        let stated = std::str::from_utf8(data.get(..space).unwrap_or_default()).ok();
        let Some(len) = stated.and_then(|text| text.parse::<usize>().ok()).filter(|len| *len > space) else {
            return;
        };
        let line = String::from_utf8_lossy(data.get(space + 1..len).unwrap_or_default()).into_owned();
        match line.trim_end_matches('\n').split_once('=') {
            // The path of a sparse file is made up.
            Some(("path", _)) if member.is_sparse => {}
            Some(("path", name)) => name.clone_into(&mut member.name),
            Some((key, value)) if key.starts_with("GNU.sparse.") => {
                member.is_sparse = true;
                if key == "GNU.sparse.name" {
                    value.clone_into(&mut member.name);
                }
            }
            Some(("size", bytes)) => member.bytes = bytes.parse().unwrap_or(member.bytes),
            _ => {}
        }
        data = data.get(len..).unwrap_or_default();
    }
}
