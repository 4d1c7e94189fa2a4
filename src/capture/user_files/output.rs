//! Output files in directories that others may change.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use super::client::UserDir;
use super::opener::UserFilesOpener;
use crate::error::Error;
use crate::identity::Identity;
use crate::random_name::random_name;

/// Prefix of the names of incomplete files.
const PREFIX: &str = ".hprof-cli-";
/// Suffix of the names of incomplete files.
const SUFFIX: &str = ".part";

/// Path of a directory that others may change.
#[derive(Debug, Clone, Copy)]
pub struct ForeignDir<'p> {
    /// Absolute path. Links are resolved only in the part that others cannot change.
    pub path: &'p Path,
    /// User ID of the owner of the first directory on the path that others may change.
    pub owner: u32,
}

/// Open directory for an output file that others may change. All operations are done as one user, to whom the file will belong.
#[derive(Debug, Clone)]
pub struct UserOutputDir {
    dir: UserDir,
}

impl UserOutputDir {
    /// Opens a directory as the user to whom files will belong: `caller`, if the directory belongs to that user, or the JVM's
    /// user.
    pub(crate) fn open(
        opener: &UserFilesOpener,
        dir: ForeignDir<'_>,
        caller: Option<Identity>,
        jvms: Option<(Identity, &[u32])>,
    ) -> Result<Self, Error> {
        let ForeignDir { path, owner } = dir;
        let is_of = |user: u32| owner == user || owner == 0;
        let callers = caller.filter(|caller| caller.user == owner).map(|caller| (caller, &[][..]));
        let user = callers.or(jvms.filter(|(jvms, _)| is_of(jvms.user)));
        let (identity, groups) = user.ok_or_else(|| Error::ForeignPlace { path: path.to_owned(), owner })?;
        let files = Arc::new(opener.as_user(identity, groups)?);
        let open = || {
            // Even with the rights of that user no link is followed, because a third user may have created it.
            let opened = files.root()?.without_links(path.to_str().ok_or(io::ErrorKind::InvalidInput)?)?;
            opened.check_writable()?;
            Ok(opened)
        };
        let dir = open().map_err(|source| Error::Unwritable {
            path: path.to_owned(),
            user: identity.user,
            source,
        })?;
        Ok(Self { dir })
    }

    pub(crate) fn dir(&self) -> &UserDir {
        &self.dir
    }

    /// Returns the ID of the user to whom files in the directory will belong.
    pub fn user(&self) -> u32 {
        self.dir.files().user()
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        self.dir.full_path()
    }

    /// Returns the file descriptor of the directory.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.dir.fd()
    }

    /// Returns the length of the file with this name; `None` if the name does not exist.
    ///
    /// # Errors
    ///
    /// Errors of the system, and an error if the entry is not an ordinary file (a link is not).
    pub fn file_bytes(&self, name: &str) -> io::Result<Option<u64>> {
        match self.dir.entry(name)? {
            None => Ok(None),
            Some(facts) if facts.is_file() => Ok(Some(facts.bytes)),
            Some(_) => Err(io::Error::other("it is not a regular file")),
        }
    }

    /// Creates a file with a temporary name. [`UserFile::commit`] gives it its name.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub fn create(&self, name: &str, is_forced: bool) -> io::Result<UserFile> {
        let temporary = format!("{}{SUFFIX}", random_name(PREFIX));
        let file = self.dir.create_file(&temporary)?;
        // Other processes of this user remove files with such names that nobody has locked.
        let _ = file.try_lock();
        Ok(UserFile { dir: self.dir.clone(), temporary, name: name.to_owned(), is_forced, file })
    }
}

/// File that is being written under a temporary name. If dropped without [`UserFile::commit`], it is removed.
#[derive(Debug)]
pub struct UserFile {
    dir: UserDir,
    temporary: String,
    name: String,
    is_forced: bool,
    file: File,
}

impl UserFile {
    /// Completes the file and gives it its name.
    ///
    /// # Errors
    ///
    /// Errors of the system; `AlreadyExists` if the name exists and may not be replaced, or is not a file.
    pub fn commit(mut self) -> io::Result<()> {
        self.file.flush()?;
        self.dir.rename(&self.temporary, &self.dir, &self.name, self.is_forced)
    }
}

impl Write for UserFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for UserFile {
    fn drop(&mut self) {
        // After a commit, the temporary name does not exist any more.
        let _ = self.dir.remove(&self.temporary);
    }
}
