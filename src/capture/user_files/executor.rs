//! File operations with the rights of the current process. All paths are relative to open directories, and only entries
//! that were created here are removed.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{
    Access, AtFlags, Dir, FileType, MemfdFlags, Mode, OFlags, RenameFlags, ResolveFlags, accessat, fchmod,
    fstat, memfd_create, mkdirat, mkfifoat, openat, openat2, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use super::connect::try_connect;
use super::request::{DirId, EntryFacts, FileReply, FileRequest, NamedEntry};
use crate::directory::Directory;

/// Maximum number of entries returned for a prefix.
const MAX_NAMES: usize = 500;

/// Number of attempts to remove a directory. The JVM may still create a file in it.
const ATTEMPTS: u32 = 50;
/// Interval between attempts to remove a directory.
const BETWEEN: Duration = Duration::from_millis(20);

/// Executor of requests: its open directories, and the entries that were created in them.
#[derive(Debug)]
pub(super) struct RequestExecutor {
    directories: Vec<Directory>,
    made: Vec<MadeEntry>,
    /// `true` if the process has no other task, so that its working directory may change.
    is_alone: bool,
}

/// Entry that is to be removed in the end.
#[derive(Debug)]
struct MadeEntry {
    from: DirId,
    name: String,
    kind: MadeKind,
}

/// Kind of an entry that is to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MadeKind {
    /// Existing file, FIFO or directory, identified by device and inode.
    Entry(FileType, (u64, u64)),
    /// File that a JVM will create, and its segments, whose names are `NAME.pN`.
    Expected,
}

/// Reply to a request, with an optional file descriptor.
pub(super) type Answer = (FileReply, Option<OwnedFd>);

impl RequestExecutor {
    /// Creates an executor with a root directory. `is_alone` permits it to change the working directory of the process.
    pub(super) fn new(root: Directory, is_alone: bool) -> Self {
        Self { directories: vec![root], made: Vec::new(), is_alone }
    }

    /// Carries out a request and returns the reply.
    pub(super) fn answer(&mut self, request: FileRequest, attached: Option<OwnedFd>) -> Answer {
        self.try_answer(request, attached)
            .unwrap_or_else(|error| (FileReply::Failed(error.raw_os_error(), error.to_string()), None))
    }

    fn try_answer(&mut self, request: FileRequest, attached: Option<OwnedFd>) -> io::Result<Answer> {
        Ok(match request {
            FileRequest::Open { from, path } => {
                let opened = self.directory(from)?.open_below(&path)?;
                self.add_directory(opened)?
            }
            FileRequest::OpenWithoutLinks { from, path } => {
                let opened = self.directory(from)?.without_links(&path)?;
                self.add_directory(opened)?
            }
            FileRequest::Adopt => {
                let fd = attached.ok_or(io::ErrorKind::InvalidInput)?;
                self.add_directory(Directory::from(fd))?
            }
            FileRequest::Read { from, path } => {
                let (file, stat) = self.directory(from)?.file(&path)?;
                (FileReply::File(EntryFacts::new(&stat)), Some(file.into()))
            }
            FileRequest::Snapshot { from, path, max } => {
                let (file, stat) = self.directory(from)?.file(&path)?;
                let mut copy = File::from(memfd_create("snapshot", MemfdFlags::CLOEXEC)?);
                io::copy(&mut file.take(max), &mut copy)?;
                copy.rewind()?;
                (FileReply::File(EntryFacts::new(&stat)), Some(copy.into()))
            }
            FileRequest::Facts { from, name } => {
                (FileReply::Facts(self.facts(from, check_entry_name(&name)?)?), None)
            }
            FileRequest::CheckAccess { from, is_written } => {
                let writing = if is_written { Access::WRITE_OK } else { Access::empty() };
                let needed = writing | Access::EXEC_OK;
                accessat(self.directory(from)?.fd(), ".", needed, AtFlags::EACCESS)?;
                (FileReply::Done, None)
            }
            FileRequest::Names { from, prefix } => (FileReply::Names(self.names(from, &prefix)?), None),
            FileRequest::Connect { from, name } => {
                // The path of a socket cannot begin at a descriptor, and has at most 107 bytes.
                if !self.is_alone {
                    return Err(io::ErrorKind::Unsupported.into());
                }
                let directory = self.directory(from)?;
                rustix::process::fchdir(directory.fd())?;
                let stream = try_connect(directory, Path::new("."), check_entry_name(&name)?)?;
                (FileReply::Connected(stream.is_some()), stream.map(OwnedFd::from))
            }
            FileRequest::CreateDirectory { from, name } => self.create_directory(from, name)?,
            FileRequest::CreateFifo { from, name } => self.create_fifo(from, name)?,
            FileRequest::CreateFile { from, name, is_shared } => self.create_file(from, name, is_shared)?,
            FileRequest::Expect { from, name } => {
                let name = check_entry_name(&name)?.to_owned();
                self.made.push(MadeEntry { from, name, kind: MadeKind::Expected });
                (FileReply::Done, None)
            }
            FileRequest::Own { from, name } => {
                let facts = self.facts(from, check_entry_name(&name)?)?.filter(EntryFacts::is_file);
                let facts = facts.ok_or(Errno::NOENT)?;
                self.note(from, name, facts);
                (FileReply::Facts(Some(facts)), None)
            }
            FileRequest::Rename { from, name, to, new, is_forced } => {
                self.rename(from, &name, to, check_entry_name(&new)?, is_forced)?;
                (FileReply::Done, None)
            }
            FileRequest::Remove { from, name } => {
                let at = self.position(from, &name)?;
                let Some(made) = self.made.get(at) else { return Err(Errno::NOENT.into()) };
                self.remove(made)?;
                // A JVM may still write expected files, so they are removed again in the end.
                if made.kind != MadeKind::Expected {
                    self.made.remove(at);
                }
                (FileReply::Done, None)
            }
            FileRequest::End => (FileReply::Left(self.remove_all()), None),
        })
    }

    fn directory(&self, id: DirId) -> io::Result<&Directory> {
        self.directories.get(id).ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    fn add_directory(&mut self, directory: Directory) -> io::Result<Answer> {
        let facts = EntryFacts::new(&fstat(directory.fd())?);
        let fd = directory.fd().try_clone()?;
        self.directories.push(directory);
        Ok((FileReply::Directory(self.directories.len() - 1, facts), Some(fd)))
    }

    /// Returns the facts about an entry, without following links; `None` if it does not exist.
    fn facts(&self, from: DirId, name: &str) -> io::Result<Option<EntryFacts>> {
        match statat(self.directory(from)?.fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(EntryFacts::new(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn names(&self, from: DirId, prefix: &str) -> io::Result<Vec<NamedEntry>> {
        let mut found = Vec::new();
        for entry in Dir::new(self.directory(from)?.reopen()?)? {
            let Ok(name) = entry?.file_name().to_str().map(str::to_owned) else { continue };
            if name.starts_with(prefix)
                && !matches!(name.as_str(), "." | "..")
                && let Some(facts) = self.facts(from, &name)?
            {
                found.push(NamedEntry { name, facts });
                if found.len() == MAX_NAMES {
                    break;
                }
            }
        }
        Ok(found)
    }

    fn note(&mut self, from: DirId, name: String, facts: EntryFacts) {
        let kind = MadeKind::Entry(facts.kind(), facts.id());
        self.made.push(MadeEntry { from, name, kind });
    }

    fn create_directory(&mut self, from: DirId, name: String) -> io::Result<Answer> {
        let parent = self.directory(from)?;
        mkdirat(parent.fd(), check_entry_name(&name)?, Mode::RWXU)?;
        let dir = parent.entry(&name).inspect_err(|_| {
            // Fails unless the entry is an empty directory.
            let _ = unlinkat(parent.fd(), name.as_str(), AtFlags::REMOVEDIR);
        })?;
        let facts = EntryFacts::new(&fstat(dir.fd())?);
        // If somebody replaced the directory in the meantime, it does not belong to us.
        if facts.user != rustix::process::geteuid().as_raw() || facts.mode & 0o077 != 0 {
            return Err(io::Error::other("it was replaced"));
        }
        fchmod(dir.fd(), Mode::RWXU)?;
        self.note(from, name, facts);
        self.add_directory(dir)
    }

    fn create_fifo(&mut self, from: DirId, name: String) -> io::Result<Answer> {
        let dir = self.directory(from)?;
        mkfifoat(dir.fd(), check_entry_name(&name)?, Mode::RUSR | Mode::WUSR)?;
        // Opened before others know its name, so that a JVM never waits for a reader.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fifo = openat(dir.fd(), &name, flags, Mode::empty())?;
        let facts = EntryFacts::new(&fstat(&fifo)?);
        if facts.kind() != FileType::Fifo {
            return Err(io::Error::other("it was replaced"));
        }
        self.note(from, name, facts);
        Ok((FileReply::File(facts), Some(fifo)))
    }

    fn create_file(&mut self, from: DirId, name: String, is_shared: bool) -> io::Result<Answer> {
        let dir = self.directory(from)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(dir.fd(), check_entry_name(&name)?, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => {
                let facts = EntryFacts::new(&fstat(&file)?);
                self.note(from, name, facts);
                Ok((FileReply::File(facts), Some(file)))
            }
            // The file was left by another process, which is attaching or was killed.
            Err(Errno::EXIST) if is_shared => {
                let own = rustix::process::geteuid().as_raw();
                let facts = self.facts(from, &name)?.filter(|facts| facts.is_file() && facts.user == own);
                let facts = facts.ok_or(Errno::EXIST)?;
                self.note(from, name, facts);
                Ok((FileReply::Facts(Some(facts)), None))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn rename(&mut self, from: DirId, name: &str, to: DirId, new: &str, is_forced: bool) -> io::Result<()> {
        let at = self.position(from, name)?;
        // Only files are replaced, not links or anything else.
        if is_forced && self.facts(to, new)?.is_some_and(|there| !there.is_file()) {
            return Err(Errno::EXIST.into());
        }
        // JVMs before JDK 9 create a dump with the permissions that their umask permits.
        let (file, _) = self.directory(from)?.file(name)?;
        fchmod(&file, Mode::RUSR | Mode::WUSR)?;
        let flags = if is_forced { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        let (old, target) = (self.directory(from)?, self.directory(to)?);
        match renameat_with(old.fd(), name, target.fd(), new, flags) {
            // Some file systems lack the flag.
            Err(Errno::INVAL | Errno::NOSYS) if self.facts(to, new)?.is_none() => {
                rustix::fs::renameat(old.fd(), name, target.fd(), new)?;
            }
            renamed => renamed?,
        }
        self.made.remove(at);
        Ok(())
    }

    /// Returns the index in `made` of the entry with this name.
    fn position(&self, from: DirId, name: &str) -> io::Result<usize> {
        let is_it = |made: &MadeEntry| made.from == from && made.name == name;
        self.made.iter().rposition(is_it).ok_or_else(|| Errno::NOENT.into())
    }

    /// Removes everything that was created, newest first. Returns the entries that could not be removed, with the causes.
    pub(super) fn remove_all(&mut self) -> Vec<(DirId, String, String)> {
        let mut left = Vec::new();
        while let Some(made) = self.made.last() {
            if let Err(error) = self.remove(made) {
                left.push((made.from, made.name.clone(), error.to_string()));
            }
            self.made.pop();
        }
        left
    }

    /// Removes an entry. If somebody replaced it, the replacement is kept.
    fn remove(&self, made: &MadeEntry) -> io::Result<()> {
        match made.kind {
            MadeKind::Expected => {
                self.remove_expected(made);
                Ok(())
            }
            MadeKind::Entry(FileType::Directory, id) => self.remove_directory(made, id),
            MadeKind::Entry(kind, id) => {
                let Some(_found) = self.open_created(made, id)? else { return Ok(()) };
                let dir = self.directory(made.from)?;
                // The FIFO stays open until its name is removed: a JVM that waits for a reader, or has just opened the FIFO,
                // continues and gets an error when it writes.
                let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let _fifo = (kind == FileType::Fifo)
                    .then(|| openat(dir.fd(), made.name.as_str(), flags, Mode::empty()));
                Ok(unlinkat(dir.fd(), made.name.as_str(), AtFlags::empty())?)
            }
        }
    }

    /// Removes the files that a JVM wrote under an expected name, including segments.
    fn remove_expected(&self, made: &MadeEntry) {
        let Ok(dir) = self.directory(made.from) else { return };
        for entry in self.names(made.from, &made.name).unwrap_or_default() {
            let segment = entry.name.get(made.name.len()..).unwrap_or_default();
            let number = segment.strip_prefix(".p");
            let is_segment = number
                .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
            if (segment.is_empty() || is_segment) && entry.facts.kind() != FileType::Directory {
                let _ = unlinkat(dir.fd(), entry.name.as_str(), AtFlags::empty());
            }
        }
    }

    fn remove_directory(&self, made: &MadeEntry, id: (u64, u64)) -> io::Result<()> {
        let dir = self.directory(made.from)?;
        for attempt in 1.. {
            if self.open_created(made, id)?.is_none() {
                return Ok(());
            }
            match unlinkat(dir.fd(), made.name.as_str(), AtFlags::REMOVEDIR) {
                Ok(()) => return Ok(()),
                Err(Errno::NOTEMPTY | Errno::EXIST) if attempt < ATTEMPTS => {
                    std::thread::sleep(BETWEEN);
                    // Files of a JVM that was still writing while the others were removed.
                    self.made.iter().filter(|made| made.kind == MadeKind::Expected).for_each(|made| {
                        self.remove_expected(made);
                    });
                }
                Err(Errno::NOTEMPTY | Errno::EXIST) => {
                    return Err(io::Error::other("the program created other files in it"));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Opens a created entry if it still exists under its name; `None` if the name does not exist.
    ///
    /// # Errors
    ///
    /// If another file has the name, or a file system is mounted on it.
    fn open_created(&self, made: &MadeEntry, id: (u64, u64)) -> io::Result<Option<OwnedFd>> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let dir = self.directory(made.from)?.fd();
        let found = match openat2(dir, made.name.as_str(), flags, Mode::empty(), resolve) {
            // Kernels before 5.6 lack this system call, and some containers forbid it.
            Err(Errno::NOSYS | Errno::PERM) => openat(dir, made.name.as_str(), flags, Mode::empty()),
            found => found,
        };
        let found = match found {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::XDEV) => return Err(io::Error::other("a file system is mounted on it")),
            Err(Errno::LOOP) => return Err(io::Error::other("it was replaced")),
            Err(error) => return Err(error.into()),
        };
        if EntryFacts::new(&fstat(found.as_fd())?).id() != id {
            return Err(io::Error::other("it was replaced"));
        }
        Ok(Some(found))
    }
}

/// Checks that a name is the name of a directory entry, not a path.
fn check_entry_name(name: &str) -> io::Result<&str> {
    let is_entry = !name.is_empty() && !matches!(name, "." | "..") && !name.contains(['/', '\0']);
    if is_entry { Ok(name) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

impl Drop for RequestExecutor {
    fn drop(&mut self) {
        self.remove_all();
    }
}
