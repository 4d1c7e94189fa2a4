//! Output files in places that others may change.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::path::Path;

use super::door::PlaceDir;
use crate::random_name::random_name;

/// Prefix and suffix of the names of files that are not complete.
const PREFIX: &str = ".hprof-cli-";
const SUFFIX: &str = ".part";

/// The directory of an output file that others may change. What happens there is done as one user, to whom the file
/// belongs.
#[derive(Debug, Clone)]
pub struct OutputPlace {
    dir: PlaceDir,
}

impl OutputPlace {
    pub(crate) fn new(dir: PlaceDir) -> Self {
        Self { dir }
    }

    pub(crate) fn dir(&self) -> &PlaceDir {
        &self.dir
    }

    /// Returns the user to whom files belong here.
    pub fn user(&self) -> u32 {
        self.dir.door().user()
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        self.dir.place()
    }

    /// Returns the open directory.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.dir.fd()
    }

    /// Returns the length of the file with this name; `None` if there is nothing.
    ///
    /// # Errors
    ///
    /// Those of the system, and if it is no ordinary file: a link is none.
    pub fn file_bytes(&self, name: &str) -> io::Result<Option<u64>> {
        match self.dir.entry(name)? {
            None => Ok(None),
            Some(facts) if facts.is_file() => Ok(Some(facts.bytes)),
            Some(_) => Err(io::Error::other("it is not an ordinary file")),
        }
    }

    /// Starts a file, which gets its name when it is complete.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn create(&self, name: &str, is_forced: bool) -> io::Result<PlaceFile> {
        let temporary = format!("{}{SUFFIX}", random_name(PREFIX));
        let file = self.dir.create_file(&temporary)?;
        Ok(PlaceFile { dir: self.dir.clone(), temporary, name: name.to_owned(), is_forced, file })
    }
}

/// A file that is being written. If dropped without [`PlaceFile::commit`], it is removed.
#[derive(Debug)]
pub struct PlaceFile {
    dir: PlaceDir,
    temporary: String,
    name: String,
    is_forced: bool,
    file: File,
}

impl PlaceFile {
    /// Gives the file its name.
    ///
    /// # Errors
    ///
    /// Those of the system; `AlreadyExists` if the name is in use and not to be replaced, or not that of a file.
    pub fn commit(mut self) -> io::Result<()> {
        self.file.flush()?;
        self.dir.rename(&self.temporary, &self.dir, &self.name, self.is_forced)
    }
}

impl Write for PlaceFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for PlaceFile {
    fn drop(&mut self) {
        // It has its name, if it was committed.
        let _ = self.dir.remove(&self.temporary);
    }
}
