//! The unpacked copy of a compressed dump, in the directory of its index.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};
use zerocopy::little_endian::U64;

use crate::hprof::input::{self, Compression, Mapped};

use super::error::Error;
use super::progress::Progress;
use super::store::format::{Key, StageFile, Unusable};
use super::store::place::{self, Place, Places};
use super::temporary::Temporary;

/// The unpacked bytes of a compressed dump.
pub(super) struct Unpacked {
    pub(super) map: Mapped,
    /// Why unpacking ended before the end of the file, if it did.
    pub(super) error: Option<String>,
    /// Whether they were unpacked now and are kept.
    pub(super) kept: bool,
}

/// Takes the unpacked bytes from the index, or unpacks them now.
pub(super) fn unpack(
    dump: &Mapped,
    compression: Compression,
    key: &Key,
    places: &Places,
    place: Option<&Place>,
    progress: &dyn Progress,
) -> Result<Unpacked, Error> {
    if let (Some((map, error)), _) = places.read(key, read_unpacked) {
        return Ok(Unpacked { map, error, kept: false });
    }
    let into = place.map_or_else(std::env::temp_dir, |place| place.dir.clone());
    let fail = |error| Error::Unpack { path: dump.path().to_owned(), into: into.clone(), error };
    let mut file = match place {
        Some(place) => place.temporary(),
        None => Temporary::create(&tempfile::Builder::new(), &into),
    }
    .map_err(fail)?;
    progress.begin("unpacking", dump.stamp().len);
    dump.will_scan();
    let mut out = Hashing { out: BufWriter::with_capacity(1 << 20, &mut file), hash: Xxh3::new() };
    let unpacked = input::unpack(dump.bytes(), compression, &mut out, &|bytes| progress.advance(bytes));
    let unpacked = unpacked.and_then(|unpacked| out.flush().map(|()| unpacked)).map_err(fail)?;
    let hash = out.hash.digest();
    drop(out);
    progress.end();
    let error = unpacked.error.map(|error| error.to_string());
    let Some(place) = place else {
        // The map keeps the bytes after the file has lost its name.
        let map = Mapped::open(file.path())?;
        return Ok(Unpacked { map, error, kept: false });
    };
    place.publish(file, place::UNPACKED_DATA).map_err(fail)?;
    let text = error.clone().unwrap_or_default();
    place
        .write(key, 2, |writer| {
            writer.rows(1, &[U64::new(unpacked.len), U64::new(hash)])?;
            writer.rows(2, text.as_bytes())
        })
        .map_err(fail)?;
    let map = Mapped::open(&place.dir.join(place::UNPACKED_DATA))?;
    Ok(Unpacked { map, error, kept: true })
}

/// The unpacked dump beside a good `unpacked` file, if it has the length that it has to have; with the checksum of its
/// bytes, and the error that ended unpacking before the end.
pub(super) fn find_unpacked(file: &StageFile, dir: &Path) -> Result<(Mapped, u64, Option<String>), Unusable> {
    let facts = file.column::<U64>(1)?;
    let [len, hash] = *facts else { return Err(Unusable::Damaged) };
    let error = String::from_utf8_lossy(&file.column::<u8>(2)?).into_owned();
    let data = Mapped::open(&dir.join(place::UNPACKED_DATA)).map_err(|_| Unusable::Damaged)?;
    if data.stamp().len != len.get() {
        return Err(Unusable::Damaged);
    }
    Ok((data, hash.get(), Some(error).filter(|error| !error.is_empty())))
}

/// As [`find_unpacked`], with all bytes read and compared with their checksum.
pub(super) fn read_unpacked(file: &StageFile, dir: &Path) -> Result<(Mapped, Option<String>), Unusable> {
    let (data, hash, error) = find_unpacked(file, dir)?;
    if xxh3_64(data.bytes()) == hash { Ok((data, error)) } else { Err(Unusable::Damaged) }
}

/// A writer that hashes what passes.
struct Hashing<W> {
    out: W,
    hash: Xxh3,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.update(bytes.get(..written).unwrap_or(bytes));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
