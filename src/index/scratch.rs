//! Large arrays for building: in memory, on huge pages where the system has them; in a file where memory is short.
//!
//! Building takes a bounded number of bytes an object, in anonymous memory. What goes beyond lies in files without a
//! name in the index directory, which the kernel may write out.

use std::fs::File;
use std::io::{self, Write};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapMut;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::hprof::input;

/// What elements have to be.
pub(crate) trait Plain: FromBytes + IntoBytes + Immutable + KnownLayout {}
impl<T: FromBytes + IntoBytes + Immutable + KnownLayout> Plain for T {}

/// Where scratch arrays are made.
#[derive(Debug)]
pub(crate) struct Room {
    /// For files.
    dir: PathBuf,
    /// Bytes of memory that may still be taken.
    left: AtomicU64,
}

/// An array of zeros at first.
#[derive(Debug)]
pub(crate) struct Array<'r, T> {
    map: Option<MmapMut>,
    room: &'r Room,
    /// Bytes that are given back when it is dropped.
    taken: u64,
    kind: PhantomData<T>,
}

impl Room {
    /// Room for `bytes` bytes of memory, and for more in `dir`.
    pub(crate) fn new(dir: PathBuf, bytes: u64) -> Self {
        Self { dir, left: AtomicU64::new(bytes) }
    }

    /// Takes bytes of memory, if there are so many left.
    fn take(&self, bytes: u64) -> bool {
        let take = |left: u64| left.checked_sub(bytes);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Bytes of memory that are left.
    pub(crate) fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// An array of `len` zeros.
    pub(crate) fn array<T: Plain>(&self, len: usize) -> io::Result<Array<'_, T>> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let explain = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot get {bytes} bytes to work in: {error}"))
        };
        if bytes == 0 {
            return Ok(Array { map: None, room: self, taken: 0, kind: PhantomData });
        }
        if self.take(bytes as u64) {
            let map = MmapMut::map_anon(bytes).map_err(explain)?;
            // Advice: without huge pages it works too.
            #[cfg(target_os = "linux")]
            let _ = map.advise(memmap2::Advice::HugePage);
            return Ok(Array { map: Some(map), room: self, taken: bytes as u64, kind: PhantomData });
        }
        let map = self.file(bytes).and_then(|file| input::map_scratch(&file)).map_err(explain)?;
        Ok(Array { map: Some(map), room: self, taken: 0, kind: PhantomData })
    }

    /// A file of zeros without a name. They are written, so that a full disk is an error here and not a signal later.
    fn file(&self, bytes: usize) -> io::Result<File> {
        let mut file = tempfile::tempfile_in(&self.dir)?;
        let zeros = vec![0; 1 << 20];
        let mut left = bytes;
        while left > 0 {
            let part = zeros.get(..left.min(zeros.len())).unwrap_or_default();
            file.write_all(part)?;
            left -= part.len();
        }
        Ok(file)
    }
}

impl<T> Drop for Array<'_, T> {
    fn drop(&mut self) {
        self.room.left.fetch_add(self.taken, Ordering::Relaxed);
    }
}

impl<T: Plain> Deref for Array<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.map.as_deref().and_then(|bytes| <[T]>::ref_from_bytes(bytes).ok()).unwrap_or_default()
    }
}

impl<T: Plain> DerefMut for Array<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.map.as_deref_mut().and_then(|bytes| <[T]>::mut_from_bytes(bytes).ok()).unwrap_or_default()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn arrays_lie_in_memory_and_then_in_files() {
        let dir = tempfile::tempdir().unwrap();
        let room = Room::new(dir.path().to_owned(), 4000);
        let mut first = room.array::<u32>(900).unwrap();
        let mut second = room.array::<u64>(700_000).unwrap();
        assert_eq!(room.left(), 400);
        first.fill(7);
        second.fill(9);
        assert!(first.iter().all(|x| *x == 7) && second.iter().all(|x| *x == 9));
        assert_eq!((first.len(), second.len()), (900, 700_000));
        drop((first, second));
        assert_eq!(room.left(), 4000);
        assert!(room.array::<u32>(0).unwrap().is_empty());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
