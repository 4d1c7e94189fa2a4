//! Client side of file access as a user: sends requests to the child process.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

use super::executor::RequestExecutor;
use super::notice::{Notice, OnNotice};
use super::process::{ChildProcess, RunningChildren};
use super::request::{DirId, EntryFacts, FileReply, FileRequest, NamedEntry};
use super::socket;
use crate::directory::Directory;

/// Maximum time for a child's reply. The child may be stopped, or its file system may hang.
const TO_REPLY: Duration = Duration::from_secs(20);

/// A file system or directory in which all operations are done as one user. On drop, everything that was created in
/// it is removed; a notice reports what could not be removed.
pub(crate) struct UserFiles {
    way: RequestRoute,
    /// ID of the user as whom all operations are done.
    user: u32,
    /// Path of the root, for messages.
    full_path: PathBuf,
    /// Paths of the open directories, for messages.
    paths: Mutex<BTreeMap<DirId, PathBuf>>,
    /// Paths of created entries that still exist, for messages.
    created: Mutex<BTreeSet<PathBuf>>,
}

/// Process that carries out the requests.
enum RequestRoute {
    /// The current process, if it has the rights of the user.
    Here(Mutex<RequestExecutor>),
    Child(ChildExecutor),
}

/// Child process that carries out the requests.
struct ChildExecutor {
    process: Arc<ChildProcess>,
    running: Arc<RunningChildren>,
    on_notice: OnNotice,
    /// `true` while the child accepts requests. The lock permits only one request at a time.
    turn: Mutex<bool>,
}

impl fmt::Debug for UserFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserFiles")
            .field("user", &self.user)
            .field("full_path", &self.full_path)
            .finish_non_exhaustive()
    }
}

type ReplyWithFds = (FileReply, Vec<OwnedFd>);

impl UserFiles {
    /// Creates file access by the current process itself.
    pub(super) fn in_process(root: Directory, full_path: PathBuf) -> Self {
        let user = rustix::process::geteuid().as_raw();
        Self {
            way: RequestRoute::Here(Mutex::new(RequestExecutor::new(root, false))),
            user,
            full_path,
            paths: Mutex::default(),
            created: Mutex::default(),
        }
    }

    /// Creates file access without a child process, for tests.
    #[cfg(test)]
    pub(crate) fn for_test(root: &Path) -> Arc<Self> {
        let fd = rustix::fs::open(root, Directory::FLAGS, rustix::fs::Mode::empty());
        #[allow(clippy::unwrap_used)]
        Arc::new(Self::in_process(Directory::from(fd.unwrap()), root.to_owned()))
    }

    /// Creates file access through a child process.
    pub(super) fn child(
        process: Arc<ChildProcess>,
        running: Arc<RunningChildren>,
        on_notice: OnNotice,
        user: u32,
        full_path: PathBuf,
    ) -> Self {
        let child = ChildExecutor { process, running, on_notice, turn: Mutex::new(true) };
        Self {
            way: RequestRoute::Child(child),
            user,
            full_path,
            paths: Mutex::default(),
            created: Mutex::default(),
        }
    }

    fn paths(&self) -> MutexGuard<'_, BTreeMap<DirId, PathBuf>> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn created_paths(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.created.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the ID of the user as whom all operations are done.
    pub(crate) fn user(&self) -> u32 {
        self.user
    }

    /// Sends a message to the child and returns its reply.
    pub(super) fn exchange(
        &self,
        message: &impl Serialize,
        attached: &[BorrowedFd<'_>],
    ) -> io::Result<ReplyWithFds> {
        let RequestRoute::Child(ChildExecutor { process, turn, .. }) = &self.way else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let mut is_usable = turn.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_usable {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        // A late reply would be mistaken for the reply to the next request.
        *is_usable = false;
        socket::send(&process.socket, message, attached)?;
        let reply = socket::receive(&process.socket, Some(TO_REPLY))?.ok_or(io::ErrorKind::BrokenPipe)?;
        *is_usable = true;
        check_reply(reply)
    }

    fn ask(&self, request: FileRequest) -> io::Result<ReplyWithFds> {
        match &self.way {
            RequestRoute::Here(executor) => {
                let mut executor = executor.lock().unwrap_or_else(PoisonError::into_inner);
                let (reply, fd) = executor.answer(request, None);
                check_reply((reply, fd.into_iter().collect()))
            }
            RequestRoute::Child(_) => self.exchange(&request, &[]),
        }
    }

    /// Returns the root directory.
    pub(crate) fn root(self: &Arc<Self>) -> io::Result<UserDir> {
        self.directory(0, "", self.full_path.clone())
    }

    /// Opens a directory below `from`, resolving links as if `from` were the root. `full_path` is its path for messages.
    fn directory(self: &Arc<Self>, from: DirId, path: &str, full_path: PathBuf) -> io::Result<UserDir> {
        let path = if path.is_empty() { "." } else { path };
        let reply = self.ask(FileRequest::Open { from, path: path.to_owned() })?;
        self.user_dir(reply, full_path)
    }

    fn user_dir(self: &Arc<Self>, reply: ReplyWithFds, full_path: PathBuf) -> io::Result<UserDir> {
        match reply {
            (FileReply::Directory(id, facts), fds) => {
                self.paths().insert(id, full_path.clone());
                Ok(UserDir { files: self.clone(), id, facts, fd: Arc::new(first_fd(fds)?), full_path })
            }
            _ => Err(unexpected_reply()),
        }
    }

    /// Adds a directory that is already open. `full_path` is its path for messages.
    pub(crate) fn adopt(self: &Arc<Self>, fd: BorrowedFd<'_>, full_path: PathBuf) -> io::Result<UserDir> {
        let reply = match &self.way {
            RequestRoute::Here(executor) => {
                let mut executor = executor.lock().unwrap_or_else(PoisonError::into_inner);
                let (reply, fd) = executor.answer(FileRequest::Adopt, Some(fd.try_clone_to_owned()?));
                check_reply((reply, fd.into_iter().collect()))
            }
            RequestRoute::Child(_) => self.exchange(&FileRequest::Adopt, &[fd]),
        }?;
        self.user_dir(reply, full_path)
    }
}

impl Drop for UserFiles {
    fn drop(&mut self) {
        let RequestRoute::Child(child) = &self.way else { return };
        let tell = |path, why| (child.on_notice)(&Notice::Left { path, why });
        match self.exchange(&FileRequest::End, &[]) {
            Ok((FileReply::Left(left), _)) => {
                for (from, name, why) in left {
                    tell(self.paths().get(&from).cloned().unwrap_or_default().join(name), why);
                }
            }
            // The child's user may have ended or stopped it.
            _ => {
                let created = std::mem::take(&mut *self.created_paths());
                for path in created {
                    tell(
                        path,
                        "the process that should have removed it has ended, or does not respond".to_owned(),
                    );
                }
            }
        }
        child.running.end_one(&child.process);
    }
}

fn check_reply(reply: ReplyWithFds) -> io::Result<ReplyWithFds> {
    match reply {
        (FileReply::Failed(Some(number), _), _) => Err(io::Error::from_raw_os_error(number)),
        (FileReply::Failed(None, text), _) => Err(io::Error::other(text)),
        reply => Ok(reply),
    }
}

fn unexpected_reply() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

fn first_fd(fds: Vec<OwnedFd>) -> io::Result<OwnedFd> {
    fds.into_iter().next().ok_or_else(unexpected_reply)
}

/// Open directory that is accessed as a user. Names and paths are relative to it.
#[derive(Debug, Clone)]
pub(crate) struct UserDir {
    files: Arc<UserFiles>,
    id: DirId,
    facts: EntryFacts,
    fd: Arc<OwnedFd>,
    full_path: PathBuf,
}

impl UserDir {
    /// Returns the file access to which the directory belongs.
    pub(crate) fn files(&self) -> &Arc<UserFiles> {
        &self.files
    }

    /// Returns the facts about the directory when it was opened.
    pub(crate) fn facts(&self) -> EntryFacts {
        self.facts
    }

    /// Returns the descriptor of the directory, for operations that need no path.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Returns the path of the directory, for messages.
    pub(crate) fn full_path(&self) -> &Path {
        &self.full_path
    }

    /// Opens a directory, resolving links as if this one were the root.
    pub(crate) fn open_below(&self, path: &str) -> io::Result<Self> {
        self.files.directory(self.id, path, self.full_path.join(path.trim_start_matches('/')))
    }

    /// Opens a directory; its path must not contain links.
    pub(crate) fn without_links(&self, path: &str) -> io::Result<Self> {
        let path = path.trim_start_matches('/');
        let reply = self.files.ask(FileRequest::OpenWithoutLinks { from: self.id, path: path.to_owned() })?;
        self.files.user_dir(reply, self.full_path.join(path))
    }

    /// Opens an ordinary file for reading, and returns it with its facts.
    pub(crate) fn file(&self, path: &str) -> io::Result<(File, EntryFacts)> {
        self.opened_file(FileRequest::Read { from: self.id, path: path.to_owned() })
    }

    /// Returns the first bytes of an ordinary file, at most `max`, and its facts. The child reads them, because the file system
    /// may block the reader.
    pub(crate) fn bytes(&self, path: &str, max: u64) -> io::Result<(Vec<u8>, EntryFacts)> {
        let request = FileRequest::Snapshot { from: self.id, path: path.to_owned(), max };
        let (mut file, facts) = self.opened_file(request)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok((bytes, facts))
    }

    /// Returns the facts about an entry, without following links; `None` if it does not exist.
    pub(crate) fn entry(&self, name: &str) -> io::Result<Option<EntryFacts>> {
        match self.files.ask(FileRequest::Facts { from: self.id, name: name.to_owned() })? {
            (FileReply::Facts(facts), _) => Ok(facts),
            _ => Err(unexpected_reply()),
        }
    }

    /// Checks that entries can be created in this directory.
    pub(crate) fn check_writable(&self) -> io::Result<()> {
        self.done(FileRequest::CheckAccess { from: self.id, is_written: true })
    }

    /// Checks that entries of this directory can be opened.
    pub(crate) fn check_searchable(&self) -> io::Result<()> {
        self.done(FileRequest::CheckAccess { from: self.id, is_written: false })
    }

    /// Returns the entries whose names begin with `prefix`.
    pub(crate) fn names(&self, prefix: &str) -> io::Result<Vec<NamedEntry>> {
        match self.files.ask(FileRequest::Names { from: self.id, prefix: prefix.to_owned() })? {
            (FileReply::Names(names), _) => Ok(names),
            _ => Err(unexpected_reply()),
        }
    }

    /// Connects to a socket that belongs to the user. `None` if it does not exist, or nobody listens.
    pub(crate) fn connect(&self, name: &str) -> io::Result<Option<UnixStream>> {
        match self.files.ask(FileRequest::Connect { from: self.id, name: name.to_owned() })? {
            (FileReply::Connected(true), fds) => Ok(Some(UnixStream::from(first_fd(fds)?))),
            (FileReply::Connected(false), _) => Ok(None),
            _ => Err(unexpected_reply()),
        }
    }

    /// Creates a directory that only its user can access.
    pub(crate) fn create_directory(&self, name: &str) -> io::Result<Self> {
        let request = FileRequest::CreateDirectory { from: self.id, name: name.to_owned() };
        let reply = self.files.ask(request)?;
        self.note_created(name);
        self.files.user_dir(reply, self.full_path.join(name))
    }

    /// Creates a FIFO and opens it for reading.
    pub(crate) fn create_fifo(&self, name: &str) -> io::Result<File> {
        let request = FileRequest::CreateFifo { from: self.id, name: name.to_owned() };
        let (file, _) = self.opened_file(request)?;
        self.note_created(name);
        Ok(file)
    }

    /// Creates an empty file that only its user can access.
    pub(crate) fn create_file(&self, name: &str) -> io::Result<File> {
        let request = FileRequest::CreateFile { from: self.id, name: name.to_owned(), is_shared: false };
        let (file, _) = self.opened_file(request)?;
        self.note_created(name);
        Ok(file)
    }

    /// Creates an empty file that only its user can access. An existing file of the user is accepted instead.
    pub(crate) fn share_file(&self, name: &str) -> io::Result<()> {
        let request = FileRequest::CreateFile { from: self.id, name: name.to_owned(), is_shared: true };
        self.files.ask(request)?;
        self.note_created(name);
        Ok(())
    }

    /// Schedules the removal of a file that a JVM will write, including its segments.
    pub(crate) fn expect(&self, name: &str) -> io::Result<()> {
        self.done(FileRequest::Expect { from: self.id, name: name.to_owned() })?;
        self.note_created(name);
        Ok(())
    }

    /// Schedules the removal of an existing file.
    pub(crate) fn own(&self, name: &str) -> io::Result<()> {
        self.files.ask(FileRequest::Own { from: self.id, name: name.to_owned() })?;
        self.note_created(name);
        Ok(())
    }

    /// Renames a file that was created or expected in this directory.
    pub(crate) fn rename(&self, name: &str, to: &Self, new: &str, is_forced: bool) -> io::Result<()> {
        let (from, to) = (self.id, to.id);
        self.done(FileRequest::Rename { from, name: name.to_owned(), to, new: new.to_owned(), is_forced })?;
        self.files.created_paths().remove(&self.full_path.join(name));
        Ok(())
    }

    /// Removes an entry that was created in this directory. A JVM that waits for a reader of a FIFO continues.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        self.done(FileRequest::Remove { from: self.id, name: name.to_owned() })?;
        self.files.created_paths().remove(&self.full_path.join(name));
        Ok(())
    }

    fn note_created(&self, name: &str) {
        self.files.created_paths().insert(self.full_path.join(name));
    }

    fn done(&self, request: FileRequest) -> io::Result<()> {
        match self.files.ask(request)? {
            (FileReply::Done, _) => Ok(()),
            _ => Err(unexpected_reply()),
        }
    }

    fn opened_file(&self, request: FileRequest) -> io::Result<(File, EntryFacts)> {
        match self.files.ask(request)? {
            (FileReply::File(facts), fds) => Ok((File::from(first_fd(fds)?), facts)),
            _ => Err(unexpected_reply()),
        }
    }
}
