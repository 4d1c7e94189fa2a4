//! Search for the dump in a tar or zip archive: the only file that starts like a heap dump, possibly packed itself.

use std::io::{self, Read};

use flate2::Crc;
use flate2::read::DeflateDecoder;

use super::stream::BoundedReader;
use super::tar::{self, Bytes, Next, TarInput};
use super::zip;
use super::{
    Compression, CountingReader, Members, Output, PEEKED, ProgressCallback, Size, UnpackError, UnpackOutcome,
    stream, unpack_file, zstandard,
};
use hprof_parser::sniff::{self, FileKind};

/// Number of bytes of a packed file in an archive that suffice to detect its format: Zstandard yields nothing before a
/// whole block.
const PEEKED_INSIDE: u64 = (128 << 10) + PEEKED;

/// Number of unpacked bytes that distinguish a heap dump from other files.
const TELLING: u64 = 64;

/// Returns the first bytes of a file of up to `limit` bytes, enough to detect its format, and the error that ended it.
fn beginning(reader: &mut dyn Read, limit: u64) -> (Vec<u8>, Option<io::Error>) {
    let (mut start, mut end) = stream::start(reader, PEEKED.min(limit));
    let inner = match sniff::sniff(&start) {
        FileKind::Gzip => Some(Compression::Gzip),
        FileKind::Zstd => Some(Compression::Zstd),
        _ => None,
    };
    // Most gzip files need only the first bytes; unpacking more of thousands of logs would take minutes.
    let is_hidden = inner.is_some_and(|inner| inner.peek(&start, TELLING).0.len() as u64 != TELLING);
    if end.is_none() && is_hidden {
        let (more, error) = stream::start(reader, PEEKED_INSIDE.min(limit) - start.len() as u64);
        start.extend(more);
        end = error;
    }
    (start, end)
}

/// Returns the compression of a file with these first bytes, if it is a heap dump, and adds it to the members under
/// `name`.
fn add(members: &mut Members, name: &str, start: &[u8]) -> Option<Option<Compression>> {
    let is_dump = |bytes: &[u8]| sniff::sniff(bytes) == FileKind::Hprof;
    let inner = match sniff::sniff(start) {
        FileKind::Gzip => Some(Compression::Gzip),
        FileKind::Zstd => Some(Compression::Zstd),
        _ => None,
    };
    let (inside, error) = match inner {
        None => (is_dump(start), None),
        Some(inner) => {
            let (bytes, error) = inner.peek(start, PEEKED);
            (is_dump(&bytes), error.filter(|_| bytes.is_empty()))
        }
    };
    match error {
        Some(error) => members.add(&format!("{name} ({error})"), inside),
        None => members.add(name, inside),
    }
    inside.then_some(inner)
}

/// Unpacks a file whose bytes are contiguous in the archive.
fn slice(
    bytes: &[u8],
    inner: Option<Compression>,
    out: &dyn Output,
    progress: &ProgressCallback<'_>,
) -> io::Result<UnpackOutcome> {
    match inner {
        Some(inner) => unpack_file(bytes, inner, out, progress),
        None => {
            out.expect(Size::Stated(bytes.len() as u64))?;
            stream::copy(&mut CountingReader { rest: bytes, progress }, out)
        }
    }
}

/// Sets the error for an archive that ends within its dump, unless there was an earlier one.
fn cut(mut unpacked: UnpackOutcome, is_cut: bool, text: &str) -> UnpackOutcome {
    if is_cut {
        unpacked.error.get_or_insert_with(|| text.to_owned());
    }
    unpacked
}

/// Returns the name of a sparse file, with a hint how to extract it: tar stores it without its holes, so that its bytes are not
/// at their offsets in the dump.
fn sparse(name: &str) -> String {
    format!("{name} (sparse: extract it with tar -xf)")
}

const CUT: &str = "the tar archive is truncated";
const TAR_CUT: &str = "the tar archive ends in the middle of the dump";
const ZIP_CUT: &str = "the zip archive ends in the middle of the dump";

/// Unpacks the dump in a tar archive.
pub(super) fn tar(
    packed: &[u8],
    out: &dyn Output,
    progress: &ProgressCallback<'_>,
) -> Result<UnpackOutcome, UnpackError> {
    let mut source = Bytes { all: packed, at: 0 };
    let (mut members, mut found) = (Members::new(), None);
    loop {
        let bytes = match tar::next(&mut source)? {
            Next::End => break,
            Next::Damage(text) => {
                members.damage = Some(text.to_owned());
                break;
            }
            Next::Other(bytes) => bytes,
            Next::File(member) if member.is_sparse => {
                members.add(&sparse(&member.name), false);
                member.bytes
            }
            Next::File(member) => {
                let rest = packed.get(source.at..).unwrap_or_default();
                let len = usize::try_from(member.bytes).unwrap_or(usize::MAX);
                let there = rest.get(..len).unwrap_or(rest);
                let mut reader = there;
                let inside = add(&mut members, &member.name, &beginning(&mut reader, member.bytes).0);
                if let Some(inner) = inside {
                    found = Some((there, inner, there.len() < len));
                }
                member.bytes
            }
        };
        let bytes = bytes.saturating_add(tar::padding(bytes));
        if source.pass_over(bytes)? < bytes {
            members.damage = Some(CUT.to_owned());
            break;
        }
    }
    match found {
        Some((bytes, inner, is_cut)) if members.dump_count == 1 => {
            let unpacked = cut(slice(bytes, inner, out, progress)?, is_cut, TAR_CUT);
            Ok(with_damage(unpacked, members.damage))
        }
        _ => Err(members.into()),
    }
}

/// Sets the error for damage after the dump, unless there was an earlier one: the archive may contain another dump.
fn with_damage(mut unpacked: UnpackOutcome, damage: Option<String>) -> UnpackOutcome {
    unpacked.error = unpacked.error.or(damage);
    unpacked
}

/// Skips `bytes` bytes; fails if there are fewer.
fn pass_over(source: &mut dyn TarInput, bytes: u64) -> io::Result<()> {
    if source.pass_over(bytes)? < bytes {
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, CUT))
    } else {
        Ok(())
    }
}

/// Unpacks the dump in a compressed tar archive, in one pass: only at its end is it known whether there is another one.
pub(super) fn stream(
    packed: &[u8],
    compression: Compression,
    out: &dyn Output,
    progress: &ProgressCallback<'_>,
) -> Result<UnpackOutcome, UnpackError> {
    let mut members = Members::new();
    let mut source = match compression.reader(CountingReader { rest: packed, progress }) {
        Ok(reader) => BoundedReader::new(reader, packed.len() as u64),
        Err(error) => {
            members.damage = Some(error.to_string());
            return Err(members.into());
        }
    };
    let mut unpacked = None;
    loop {
        let passed = match tar::next(&mut source) {
            Ok(Next::End) => {
                // The checksum of the compression is at the end.
                if let Err(error) = io::copy(&mut source, &mut io::sink()) {
                    members.damage = Some(error.to_string());
                }
                break;
            }
            Ok(Next::Damage(text)) => {
                members.damage = Some(text.to_owned());
                break;
            }
            Ok(Next::Other(bytes)) => pass_over(&mut source, bytes.saturating_add(tar::padding(bytes))),
            Ok(Next::File(member)) if member.is_sparse => {
                members.add(&sparse(&member.name), false);
                pass_over(&mut source, member.bytes.saturating_add(tar::padding(member.bytes)))
            }
            Ok(Next::File(member)) => {
                let (start, end) = beginning(&mut source, member.bytes);
                let inside = add(&mut members, &member.name, &start);
                let mut left = member.bytes.saturating_sub(start.len() as u64);
                if let (Some(inner), 1) = (inside, members.dump_count) {
                    // A plain dump is written in full. A packed one may yield few bytes, so it is bounded.
                    let rest: &mut dyn Read = if inner.is_some() { &mut source } else { source.free() };
                    let mut rest = rest.take(left);
                    unpacked = Some(unpack_stream(&start, &mut rest, inner, member.bytes, out)?);
                    left = rest.limit();
                }
                let passed = pass_over(&mut source, left);
                end.map_or(passed, Err).and_then(|()| pass_over(&mut source, tar::padding(member.bytes)))
            }
            Err(error) => Err(error),
        };
        // An error of the compression: the rest cannot be read.
        if let Err(error) = passed {
            members.damage = Some(error.to_string());
            break;
        }
    }
    match unpacked {
        Some(unpacked) if members.dump_count == 1 => Ok(with_damage(unpacked, members.damage)),
        _ => Err(members.into()),
    }
}

/// Unpacks a file of `bytes` bytes that starts with `start` and continues with `left`.
fn unpack_stream(
    start: &[u8],
    left: &mut dyn Read,
    inner: Option<Compression>,
    bytes: u64,
    out: &dyn Output,
) -> io::Result<UnpackOutcome> {
    let mut all = start.chain(left);
    match inner {
        None => {
            out.expect(Size::Stated(bytes))?;
            let unpacked = stream::copy(&mut all, out)?;
            let is_cut = unpacked.len < bytes;
            Ok(cut(unpacked, is_cut, TAR_CUT))
        }
        Some(inner) => match inner.reader(all) {
            Ok(mut reader) => stream::copy(&mut reader, out),
            Err(error) => UnpackOutcome::nothing(error),
        },
    }
}

/// Maximum number of members of a zip archive that are examined: the directory may name the same bytes any number of
/// times.
const LOOKED_INTO: u64 = 100_000;
/// Maximum number of packed bytes of a member that are examined: more than enough, unless they were made to yield
/// nothing.
const LOOKED_AT: usize = 1 << 18;
/// Maximum number of unpacked bytes that are examined, of all members: a few packed bytes may yield very many.
const LOOKED_AT_IN_ALL: u64 = 512 << 20;

/// Budget for examining the members of a zip archive. Each costs time, and the directory may name the same bytes a
/// hundred thousand times.
struct Glances {
    packed_left: u64,
    unpacked_left: u64,
    members_left: u64,
}

impl Glances {
    const fn for_archive(archive_bytes: usize) -> Self {
        Self {
            // Members that do not overlap have no more packed bytes in total.
            packed_left: archive_bytes as u64,
            unpacked_left: LOOKED_AT_IN_ALL,
            members_left: LOOKED_INTO,
        }
    }

    /// Returns the first bytes of a member, if the budget allows it.
    fn beginning(&mut self, entry: &zip::ZipMember<'_>) -> Option<Vec<u8>> {
        let packed = entry.packed.get(..LOOKED_AT).unwrap_or(entry.packed);
        if self.unpacked_left < PEEKED_INSIDE {
            return None;
        }
        self.members_left = self.members_left.checked_sub(1)?;
        // An empty member has a header, too.
        self.packed_left = self.packed_left.checked_sub(packed.len() as u64 + zip::LOCAL as u64)?;
        let Some(mut reader) = reader(entry, CountingReader { rest: packed, progress: &|_| {} }) else {
            return Some(Vec::new());
        };
        let (start, _) = beginning(&mut reader, u64::MAX);
        self.unpacked_left = self.unpacked_left.saturating_sub(start.len() as u64);
        Some(start)
    }
}

/// Unpacks the dump in a zip archive.
pub(super) fn zip(
    packed: &[u8],
    out: &dyn Output,
    progress: &ProgressCallback<'_>,
) -> Result<UnpackOutcome, UnpackError> {
    let (mut members, mut found) = (Members::new(), None);
    let mut entries = zip::ZipMembers::new(packed);
    let mut glances = Glances::for_archive(packed.len());
    for entry in entries.by_ref() {
        if entry.name.ends_with('/') {
            continue;
        }
        let start = glances.beginning(&entry);
        let why = match (entry.is_encrypted, entry.method) {
            (true, _) => " (encrypted)",
            (_, 0 | 8 | 93) if start.is_none() => {
                " (not examined: there are too many files, or files overlap)"
            }
            (_, 0 | 8 | 93) => "",
            _ => " (unsupported compression)",
        };
        let start = start.unwrap_or_default();
        if let Some(inner) = add(&mut members, &format!("{}{why}", entry.name), &start) {
            found = Some((entry, inner));
        }
    }
    if !entries.is_whole {
        members.damage = Some(zip::NO_DIRECTORY.to_owned());
    }
    let (entry, inner) = match found {
        Some(found) if members.dump_count == 1 => found,
        _ => return Err(members.into()),
    };
    let is_cut = !entry.is_whole && entry.bytes.is_some();
    if entry.method == 0 && inner == Some(Compression::Gzip) {
        // An inner gzip file has its own checksums, and may be in blocks.
        let unpacked = cut(slice(entry.packed, inner, out, progress)?, is_cut, ZIP_CUT);
        return Ok(cut(unpacked, !entries.is_whole, zip::NO_DIRECTORY));
    }
    let bytes = if entry.method == 0 { Some(entry.packed.len() as u64) } else { entry.bytes };
    if let (None, Some(bytes)) = (inner, bytes) {
        out.expect(Size::Stated(bytes))?;
    }
    let Some(reader) = reader(&entry, CountingReader { rest: entry.packed, progress }) else {
        return Err(members.into());
    };
    // The checksum does not apply to a truncated member.
    let mut checked = ChecksumReader { reader, crc: Crc::new(), wanted: entry.crc.filter(|_| !is_cut) };
    let unpacked = match inner {
        None => stream::copy(&mut checked, out)?,
        Some(inner) => match inner.reader(BoundedReader::new(checked, entry.packed.len() as u64)) {
            Ok(mut reader) => stream::copy(&mut reader, out)?,
            Err(error) => UnpackOutcome::nothing(error)?,
        },
    };
    let unpacked = cut(unpacked, is_cut, ZIP_CUT);
    Ok(cut(unpacked, !entries.is_whole, zip::NO_DIRECTORY))
}

/// Returns a reader of a member of a zip archive; `None` if its compression is not supported.
fn reader<'a>(entry: &zip::ZipMember<'_>, packed: CountingReader<'a>) -> Option<Box<dyn Read + 'a>> {
    match entry.method {
        _ if entry.is_encrypted => None,
        0 => Some(Box::new(packed)),
        8 => Some(Box::new(DeflateDecoder::new(packed))),
        93 => Some(Box::new(zstandard::ZstdReader::new(packed).ok()?)),
        _ => None,
    }
}

/// A reader that verifies a checksum at the end.
struct ChecksumReader<R> {
    reader: R,
    crc: Crc,
    wanted: Option<u32>,
}

impl<R: Read> Read for ChecksumReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.crc.update(buffer.get(..read).unwrap_or_default());
        if read == 0 && !buffer.is_empty() && self.wanted.take().is_some_and(|crc| crc != self.crc.sum()) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its checksum is wrong"));
        }
        Ok(read)
    }
}
