//! The unpacked copy of a compressed dump, or the dump made from a text report, in the directory of its index.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use xxhash_rust::xxh3::Xxh3;
use zerocopy::little_endian::U64;

use hprof_input::file::{MappedFile, TextFile};
use hprof_input::mapped_files::Content;
use hprof_input::packed::{self, Compression, Output, Size, UnpackError};

use super::dump_form::DumpForm;
use super::error::{Error, NoRoom};
use crate::storage::free_space::free_bytes;
use crate::storage::human_bytes::plural;
use crate::storage::open_dir::unnamed_in;
use crate::storage::private_dir::PrivateDir;
use crate::storage::store::directory::{self, IndexDirectories, IndexDirectory};
use crate::storage::store::format::{FileKey, StageFile, Unusable};
use hprof_input::progress::Progress;
use hprof_input::text_dump::{TextDump, TextDumpError};

/// The unpacked bytes of a compressed dump.
pub(crate) struct UnpackedDump {
    pub(crate) map: MappedFile,
    /// Error that ended the unpacked bytes, if the file is truncated or damaged.
    pub(crate) error: Option<String>,
    /// `true` if they were unpacked by this process and are kept.
    pub(crate) kept: bool,
    /// Note about a text report of which a dump was made.
    pub(crate) note: Option<String>,
}

/// Returns the unpacked bytes from the index, or unpacks them now.
pub(crate) fn unpack(
    dump: &MappedFile,
    form: &DumpForm,
    key: &FileKey,
    directories: &IndexDirectories,
    directory: Option<&IndexDirectory>,
    progress: &dyn Progress,
) -> Result<UnpackedDump, Error> {
    if let (Some((map, error)), _) = directories.read(key, read_unpacked) {
        return Ok(UnpackedDump { map, error, kept: false, note: None });
    }
    let into = directory.map_or_else(std::env::temp_dir, |directory| directory.path().to_owned());
    // Belongs to an older dump, or is damaged: it would take the disk space of the new one. The lock is
    // held.
    if let Some(directory) = directory {
        let _ = directory.remove_file(directory::UNPACKED_DATA);
    }
    let path = || dump.path().to_owned();
    let fail = |error| Error::Unpack { path: path(), into: into.clone(), error };
    let named = match directory {
        Some(directory) => directory.temporary().map(Some),
        None => Ok(None),
    }
    .map_err(fail)?;
    // Not kept: a file without a name disappears with this process, however it ends.
    let nameless = if named.is_none() { Some(unnamed_in(&into).map_err(fail)?) } else { None };
    let Some(file) = named.as_ref().map(|file| file.as_file()).or(nameless.as_ref()) else {
        return Err(fail(io::ErrorKind::NotFound.into()));
    };
    let (unpacked, hash, note) = unpack_into(file, dump, form, &into, progress)?;
    let error = unpacked.error;
    if let Some(file) = nameless {
        let map = MappedFile::from_file(&file, into.join(directory::UNPACKED_DATA), Content::Scratch)?;
        return Ok(UnpackedDump { map, error, kept: false, note });
    }
    let (Some(directory), Some(named)) = (directory, named) else {
        return Err(fail(io::ErrorKind::NotFound.into()));
    };
    directory.publish(named, directory::UNPACKED_DATA).map_err(fail)?;
    let text = error.clone().unwrap_or_default();
    directory
        .write(key, 2, |writer| {
            writer.rows(1, &[U64::new(unpacked.len), U64::new(hash)])?;
            writer.rows(2, text.as_bytes())
        })
        .map_err(|error| {
            // Without the file that describes it, no process would use it.
            let _ = directory.remove_file(directory::UNPACKED_DATA);
            fail(error)
        })?;
    let map = directory.map(directory::UNPACKED_DATA)?;
    Ok(UnpackedDump { map, error, kept: true, note })
}

/// Unpacks a file into a file without a name in the directory `into`, which disappears with this process. The directory is
/// created if necessary, as that of an index.
/// Returns the unpacked bytes and the error that ended them, if the file is truncated or damaged.
///
/// # Errors
/// [`Error::Unpack`], [`Error::NoRoom`] or [`Error::Members`].
pub fn unnamed_copy(
    packed: &MappedFile,
    compression: Compression,
    into: &Path,
    progress: &dyn Progress,
) -> Result<(MappedFile, Option<String>), Error> {
    let fail = |error| Error::Unpack { path: packed.path().to_owned(), into: into.to_owned(), error };
    if !into.exists() {
        PrivateDir::create(into).map_err(fail)?;
    }
    let file = unnamed_in(into).map_err(fail)?;
    let (unpacked, ..) = unpack_into(&file, packed, &DumpForm::Compressed(compression), into, progress)?;
    Ok((MappedFile::from_file(&file, into.to_owned(), Content::Scratch)?, unpacked.error))
}

/// Unpacks or converts a file into `file`, which is in the directory `into`. Returns the result and the checksum of the
/// bytes.
fn unpack_into(
    file: &File,
    dump: &MappedFile,
    form: &DumpForm,
    into: &Path,
    progress: &dyn Progress,
) -> Result<(packed::UnpackOutcome, u64, Option<String>), Error> {
    let path = || dump.path().to_owned();
    let into = || into.to_owned();
    let copy = Copy::new(file, into());
    let mut note = None;
    let unpacked = match form {
        DumpForm::Plain => Err(UnpackError::Output(io::ErrorKind::InvalidInput.into())),
        DumpForm::Compressed(compression) => {
            progress.begin("unpacking", dump.stamp().len);
            dump.will_scan();
            let unpacked =
                packed::unpack(dump.bytes(), *compression, &copy, &|bytes| progress.advance(bytes));
            progress.end();
            unpacked
        }
        DumpForm::Text(text) => convert(text, &copy, &mut note, progress),
    };
    let passed = copy.passed.into_inner().unwrap_or_else(PoisonError::into_inner);
    let unpacked = unpacked.map_err(|error| match (error, passed.no_room) {
        (_, Some(no_room)) => Error::NoRoom { path: path(), into: into(), no_room },
        (UnpackError::Output(error), None) => Error::Unpack { path: path(), into: into(), error },
        (UnpackError::Members(members), None) => {
            let compression = form.compression().unwrap_or(Compression::Zip);
            Error::Members { path: path(), compression, members }
        }
    })?;
    Ok((unpacked, passed.hash.digest(), note))
}

/// Writes the dump made from a text report.
fn convert(
    text: &TextFile,
    copy: &Copy<'_>,
    note: &mut Option<String>,
    progress: &dyn Progress,
) -> Result<packed::UnpackOutcome, UnpackError> {
    let failed = |error| match error {
        TextDumpError::Write(error) => UnpackError::Output(error),
        error => UnpackError::Output(io::Error::other(error)),
    };
    let dump = TextDump::read(text, None, progress).map_err(failed)?;
    copy.expect(Size::Stated(dump.expected_bytes()))?;
    let mut writer = BufWriter::with_capacity(WRITTEN, CopyWriter::new(copy));
    let written = dump.write(&mut writer, progress).map_err(failed)?;
    writer.flush()?;
    *note = (written.runs > 1)
        .then(|| format!("the text contains {} runs, of which the last is read", written.runs));
    let lines = written.malformed_lines;
    let error = (lines > 0)
        .then(|| format!("{lines} {} of the text could not be parsed", plural(lines, "line", "lines")));
    Ok(packed::UnpackOutcome { len: writer.get_ref().len, error })
}

/// Sequential writer of a copy.
pub(super) struct CopyWriter<'a, 'c> {
    copy: &'c Copy<'a>,
    len: u64,
}

impl<'a, 'c> CopyWriter<'a, 'c> {
    /// Creates a writer from the start of a copy.
    pub(super) fn new(copy: &'c Copy<'a>) -> Self {
        Self { copy, len: 0 }
    }
}

impl Write for CopyWriter<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.copy.receive(bytes)?;
        self.copy.write_at(self.len, bytes)?;
        self.len += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the unpacked dump beside a valid `unpacked` file, if it has the expected length; with the
/// checksum of its bytes, and the error that ended it.
pub(crate) fn find_unpacked(
    file: &StageFile,
    dir: &PrivateDir,
) -> Result<(MappedFile, u64, Option<String>), Unusable> {
    let facts = file.column::<U64>(1)?;
    let [len, hash] = *facts else { return Err(Unusable::Damaged) };
    let error = String::from_utf8_lossy(&file.column::<u8>(2)?).into_owned();
    let data = dir.map(directory::UNPACKED_DATA).map_err(|_| Unusable::Damaged)?;
    if data.stamp().len != len.get() {
        return Err(Unusable::Damaged);
    }
    Ok((data, hash.get(), Some(error).filter(|error| !error.is_empty())))
}

/// Returns the unpacked dump like [`find_unpacked`], after comparing all bytes with their checksum.
pub(crate) fn read_unpacked(
    file: &StageFile,
    dir: &PrivateDir,
) -> Result<(MappedFile, Option<String>), Unusable> {
    let (data, hash, error) = find_unpacked(file, dir)?;
    let mut found = Xxh3::new();
    for (part, at) in data.bytes().chunks(CHECKED_BYTES).zip((0..).step_by(CHECKED_BYTES)) {
        found.update(part);
        data.give_back(at..at + part.len());
    }
    if found.digest() == hash { Ok((data, error)) } else { Err(Unusable::Damaged) }
}

/// Bytes that are compared with their checksum before their pages are released.
const CHECKED_BYTES: usize = 8 << 20;

/// Maximum number of bytes between two checks of free space: the length that the file states may be
/// wrong.
const LOOK_EVERY: u64 = 64 << 20;
/// Minimum number of bytes between two checks of free space, which are more frequent the less space is
/// left; and number of bytes before the first check.
const LOOK_EVERY_AT_LEAST: u64 = 1 << 20;
/// Unpacking stops when less than this is free and more data follows: this much may be on its way to the
/// disk.
const NEAR: u64 = 8 << 20;
/// Free disk space reserved for others; on small disks, a twentieth.
const RESERVE: u64 = 256 << 20;

/// Bytes per write: with 128 KiB and more, Linux takes five times as long (decision 11).
const WRITTEN: usize = 64 << 10;

/// Writer of the unpacked copy that checks the free disk space.
pub(super) struct Copy<'a> {
    file: &'a File,
    dir: PathBuf,
    free: &'a (dyn Fn(&Path) -> Option<(u64, u64)> + Sync),
    passed: Mutex<CopyProgress>,
}

/// Progress of a copy: number of bytes written so far, and when to check free space.
struct CopyProgress {
    hash: Xxh3,
    len: u64,
    /// Number of bytes after which free space is checked.
    look_at: u64,
    /// Expected number of bytes.
    expected: Option<u64>,
    no_room: Option<NoRoom>,
}

impl CopyProgress {
    fn new() -> Self {
        Self { hash: Xxh3::new(), len: 0, look_at: LOOK_EVERY_AT_LEAST, expected: None, no_room: None }
    }
}

impl<'a> Copy<'a> {
    /// Creates a copy in `file`, which is in the directory `dir`.
    pub(super) fn new(file: &'a File, dir: PathBuf) -> Self {
        Self { file, dir, free: &free_bytes, passed: Mutex::new(CopyProgress::new()) }
    }

    /// Returns the reason why writing stopped, if the disk space ran out.
    pub(super) fn no_room(&self) -> Option<NoRoom> {
        self.lock_progress().no_room
    }

    /// Fails if less than `bytes` plus the reserve is free; returns the free bytes minus the reserve.
    fn need(&self, passed: &mut CopyProgress, bytes: u64, size: Option<Size>) -> io::Result<u64> {
        let Some((free_bytes, disk_bytes)) = (self.free)(&self.dir) else { return Ok(u64::MAX) };
        let reserve_bytes = RESERVE.min(disk_bytes / 20);
        if free_bytes >= bytes.saturating_add(reserve_bytes) {
            return Ok(free_bytes - reserve_bytes);
        }
        passed.no_room = Some(NoRoom { size, written_bytes: passed.len, free_bytes, reserve_bytes });
        Err(io::ErrorKind::StorageFull.into())
    }

    fn lock_progress(&self) -> std::sync::MutexGuard<'_, CopyProgress> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Output for Copy<'_> {
    fn expect(&self, size: Size) -> io::Result<()> {
        // With an estimate, unpacking is refused only if the copy would not fit even if the estimate is
        // wrong by half. The rest is checked on the way.
        let bytes = if let Size::About(bytes) = size { bytes / 2 } else { size.bytes() };
        let mut passed = self.lock_progress();
        passed.expected = Some(size.bytes());
        let room = self.need(&mut passed, bytes, Some(size))?;
        passed.look_at = (room / 2).clamp(LOOK_EVERY_AT_LEAST, LOOK_EVERY);
        Ok(())
    }

    fn receive(&self, bytes: &[u8]) -> io::Result<()> {
        let mut passed = self.lock_progress();
        passed.hash.update(bytes);
        passed.len += bytes.len() as u64;
        if passed.len >= passed.look_at {
            let left = passed.expected.and_then(|all| all.checked_sub(passed.len));
            let room = self.need(&mut passed, left.unwrap_or(NEAR).min(NEAR), None)?;
            let step = (room / 2).clamp(LOOK_EVERY_AT_LEAST, LOOK_EVERY);
            passed.look_at = passed.len.saturating_add(step);
        }
        Ok(())
    }

    #[cfg(unix)]
    fn write_at(&self, mut at: u64, bytes: &[u8]) -> io::Result<()> {
        for part in bytes.chunks(WRITTEN) {
            std::os::unix::fs::FileExt::write_all_at(self.file, part, at)?;
            at += part.len() as u64;
        }
        Ok(())
    }

    #[cfg(not(unix))]
    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        use std::io::{Seek, SeekFrom, Write};
        // The file position is shared.
        let _passed = self.passed();
        let mut file = self.file;
        file.seek(SeekFrom::Start(at))?;
        file.write_all(bytes)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used)]
mod tests {
    use std::io::Write;

    use super::*;
    use hprof_input::packed::unpack as unpack_into;

    /// Unpacks onto a disk with this many free bytes, some of which the copy takes.
    fn onto(packed: &[u8], free: u64, disk: u64) -> (Option<NoRoom>, u64) {
        onto_disk(packed, Some((free, disk)))
    }

    fn onto_disk(packed: &[u8], disk: Option<(u64, u64)>) -> (Option<NoRoom>, u64) {
        let file = tempfile::tempfile().unwrap();
        let of_disk = |_: &Path| {
            let taken = file.metadata().map_or(0, |metadata| metadata.len());
            disk.map(|(free, disk)| (free.saturating_sub(taken), disk))
        };
        let passed = Mutex::new(CopyProgress::new());
        let copy = Copy { file: &file, dir: PathBuf::new(), free: &of_disk, passed };
        let unpacked = unpack_into(packed, Compression::detect(packed).unwrap(), &copy, &|_| {});
        let no_room = copy.passed.into_inner().unwrap().no_room;
        assert_eq!(unpacked.is_err(), no_room.is_some());
        (no_room, file.metadata().unwrap().len())
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    const MB: u64 = 1_000_000;

    #[test]
    fn what_does_not_fit_is_refused_before_a_byte_is_written() {
        let plain = vec![1; 20_000_000];
        let blocks: Vec<u8> = plain.chunks(1 << 20).flat_map(gzip).collect();
        let frame = zstd::bulk::compress(&plain, 1).unwrap();
        for (packed, size) in
            [(gzip(&plain), "at least 19.1 MiB"), (blocks, "about "), (frame, "needs 19.1 MiB")]
        {
            // A twentieth of 100 MB is reserved for others.
            let (no_room, written) = onto(&packed, 12 * MB, 100 * MB);
            let said = no_room.unwrap().to_string();
            assert!(said.contains(size) && said.contains("has 11.4 MiB free"), "{said}");
            assert!(said.contains("4.8 MiB must stay free") && written == 0, "{said}: {written}");
            assert_eq!(onto(&packed, 30 * MB, 100 * MB), (None, 20_000_000));
        }
    }

    #[test]
    fn what_fits_is_not_refused_on_the_way() {
        let plain = vec![1; 70_000_000];
        let mut stream = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        stream.write_all(&plain).unwrap();
        let blocks: Vec<u8> = plain.chunks(1 << 20).flat_map(gzip).collect();
        for packed in [gzip(&plain), stream.finish().unwrap(), blocks] {
            assert_eq!(onto(&packed, 100 * MB, 100 * MB), (None, 70_000_000));
        }
        // To the last byte, if the length is known.
        assert_eq!(onto(&gzip(&plain), 75 * MB, 100 * MB), (None, 70_000_000));
        assert!(onto(&gzip(&plain), 75 * MB - 1, 100 * MB).0.is_some());
    }

    /// A first file with a compression ratio of a thousand, followed by one that does not compress, or by
    /// many.
    #[test]
    fn blocks_of_another_kind_than_the_others_refuse_nothing_that_fits() {
        let mut seed = 1_u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            seed.to_be_bytes()[0]
        })
        .take(20_000_000)
        .collect();
        let zeros = gzip(&vec![0; 6_000_000]);
        for behind in [noise.len(), 100_000] {
            let packed: Vec<u8> = noise.chunks(behind).flat_map(gzip).collect();
            let packed = [zeros.as_slice(), &packed].concat();
            assert_eq!(onto(&packed, 40 * MB, 100 * MB), (None, 26_000_000));
            // A copy that does not fit is stopped while there is still space.
            let (no_room, written) = onto(&packed, 16 * MB, 100 * MB);
            assert!(no_room.is_some() && written < 16_000_000, "{written}");
        }
    }

    #[test]
    fn a_disk_that_tells_no_sizes_is_written_to() {
        let plain = vec![1; 70_000_000];
        let blocks: Vec<u8> = plain.chunks(1 << 20).flat_map(gzip).collect();
        for packed in [gzip(&plain), blocks] {
            assert_eq!(onto_disk(&packed, None), (None, 70_000_000));
        }
    }

    /// `/proc` has no blocks at all where it is mounted, which is not the same as no free blocks.
    #[test]
    #[cfg(unix)]
    fn a_disk_of_no_blocks_tells_no_sizes() {
        assert_eq!(free_bytes(Path::new("/proc")), None);
        assert!(free_bytes(&std::env::temp_dir()).is_some_and(|(free, disk)| free <= disk));
    }

    #[test]
    fn what_turns_out_larger_than_it_said_ends_while_there_is_room() {
        // 300 MB that claim to be 1 MB: a bomb.
        let mut packed = gzip(&vec![0; 300 << 20]);
        let end = packed.len() - 4;
        packed.truncate(end);
        packed.extend_from_slice(&1_000_000_u32.to_le_bytes());
        let (no_room, written) = onto(&packed, 200 * MB, 1000 * MB);
        let no_room = no_room.expect("the disk is full before all is written");
        assert!(no_room.size.is_none() && written < 150 * MB, "{no_room:?} {written}");
        assert!(no_room.to_string().contains("the partial copy was removed"), "{no_room}");
    }
}
