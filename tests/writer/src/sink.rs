//! Big-endian output with holes.
//!
//! A hole is a run of zero bytes that takes no memory, so that a dump with an array of many gigabytes can
//! be assembled, and written as a sparse file. Independent of records.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use super::basic::IdSize;

/// Maximum output of [`Sink::to_vec`], which is in memory; a larger one is a mistake in a test.
const MAX_IN_MEMORY: u64 = 1 << 30;

/// A growing run of bytes, some of which may be holes.
#[derive(Debug, Clone)]
pub struct Sink {
    id_size: IdSize,
    data: Vec<u8>,
    /// (position of the hole in `data`, length of the hole), ascending.
    holes: Vec<(usize, u64)>,
    hole_bytes: u64,
}

impl Sink {
    /// Creates an empty sink that writes identifiers of `id_size`.
    pub fn new(id_size: IdSize) -> Self {
        Self { id_size, data: Vec::new(), holes: Vec::new(), hole_bytes: 0 }
    }

    /// Returns the identifier size.
    pub fn id_size(&self) -> IdSize {
        self.id_size
    }

    /// Returns the number of bytes so far, including holes.
    pub fn len(&self) -> u64 {
        self.data.len() as u64 + self.hole_bytes
    }

    /// Returns `true` if nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends one byte.
    pub fn u1(&mut self, value: u8) -> &mut Self {
        self.data.push(value);
        self
    }

    /// Appends two bytes, big-endian.
    pub fn u2(&mut self, value: u16) -> &mut Self {
        self.raw(&value.to_be_bytes())
    }

    /// Appends four bytes, big-endian.
    pub fn u4(&mut self, value: u32) -> &mut Self {
        self.raw(&value.to_be_bytes())
    }

    /// Appends eight bytes, big-endian.
    pub fn u8(&mut self, value: u64) -> &mut Self {
        self.raw(&value.to_be_bytes())
    }

    /// Appends an identifier.
    ///
    /// # Panics
    /// If the identifier does not fit in four bytes and this sink writes four.
    pub fn id(&mut self, id: u64) -> &mut Self {
        match self.id_size {
            IdSize::Four => {
                let id = u32::try_from(id)
                    .unwrap_or_else(|_| panic!("identifier {id:#x} does not fit in 4 bytes"));
                self.u4(id)
            }
            IdSize::Eight => self.u8(id),
        }
    }

    /// Appends bytes unchanged.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.data.extend_from_slice(bytes);
        self
    }

    /// Appends `len` zero bytes without storing them.
    pub fn hole(&mut self, len: u64) -> &mut Self {
        if len > 0 {
            self.holes.push((self.data.len(), len));
            self.hole_bytes += len;
        }
        self
    }

    /// Appends the contents of another sink.
    pub fn append(&mut self, other: &Self) -> &mut Self {
        let base = self.data.len();
        self.holes.extend(other.holes.iter().map(|&(at, len)| (base + at, len)));
        self.hole_bytes += other.hole_bytes;
        self.raw(&other.data)
    }

    /// Overwrites bytes written before the first hole.
    pub fn patch(&mut self, at: usize, bytes: &[u8]) {
        assert!(self.holes.first().is_none_or(|&(hole, _)| at + bytes.len() <= hole), "patch behind a hole");
        self.data[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Returns all bytes, with holes filled with zeros.
    ///
    /// # Panics
    /// If there are more than a gigabyte: use [`Sink::write_file`].
    pub fn to_vec(&self) -> Vec<u8> {
        assert!(self.len() <= MAX_IN_MEMORY, "{} bytes are too many to hold in memory", self.len());
        let total = usize::try_from(self.len()).expect("bounded above");
        let mut all = Vec::with_capacity(total);
        let mut done = 0;
        for &(at, len) in &self.holes {
            all.extend_from_slice(&self.data[done..at]);
            all.resize(all.len() + usize::try_from(len).expect("bounded above"), 0);
            done = at;
        }
        all.extend_from_slice(&self.data[done..]);
        all
    }

    /// Writes a file with holes, where the file system supports them.
    pub fn write_file(&self, path: &Path) -> io::Result<()> {
        let file = File::create(path)?;
        file.set_len(self.len())?;
        let mut out = BufWriter::new(file);
        let mut done = 0;
        for &(at, len) in &self.holes {
            out.write_all(&self.data[done..at])?;
            out.seek(SeekFrom::Current(i64::try_from(len).map_err(io::Error::other)?))?;
            done = at;
        }
        out.write_all(&self.data[done..])?;
        out.flush()
    }
}
