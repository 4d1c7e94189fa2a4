//! Client side of a place: sends requests to the place's child process.

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

use super::notice::{Notice, OnNotice};
use super::process::{PlaceProcess, RunningPlaces};
use super::request::{DirId, EntryFacts, NamedEntry, PlaceReply, PlaceRequest};
use super::socket;
use super::workplace::Workplace;
use crate::directory::Directory;

/// Maximum time for a child's reply. The child may be stopped, or its file system may hang.
const TO_REPLY: Duration = Duration::from_secs(20);

/// Open place: a file system or directory in which all operations are done as one user. On drop, everything that was created in
/// it is removed; a notice reports what could not be removed.
pub(crate) struct Door {
    way: DoorWay,
    /// ID of the user as whom all operations are done.
    user: u32,
    /// Path of the place's root, for messages.
    place: PathBuf,
    /// Paths of the open directories, for messages.
    paths: Mutex<BTreeMap<DirId, PathBuf>>,
    /// Paths of created entries that still exist, for messages.
    created: Mutex<BTreeSet<PathBuf>>,
}

/// Process that carries out the requests.
enum DoorWay {
    /// The current process, if it has the rights of the place's user.
    Here(Mutex<Workplace>),
    Child(PlaceChild),
}

/// Child process that works in a place.
struct PlaceChild {
    process: Arc<PlaceProcess>,
    running: Arc<RunningPlaces>,
    on_notice: OnNotice,
    /// `true` while the child accepts requests. The lock permits only one request at a time.
    turn: Mutex<bool>,
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").field("user", &self.user).field("place", &self.place).finish_non_exhaustive()
    }
}

type DoorReply = (PlaceReply, Vec<OwnedFd>);

impl Door {
    /// Creates a place in which the current process works itself.
    pub(super) fn in_process(root: Directory, place: PathBuf) -> Self {
        let user = rustix::process::geteuid().as_raw();
        Self {
            way: DoorWay::Here(Mutex::new(Workplace::new(root, false))),
            user,
            place,
            paths: Mutex::default(),
            created: Mutex::default(),
        }
    }

    /// Creates a place without a child process, for tests.
    #[cfg(test)]
    pub(crate) fn for_test(root: &Path) -> Arc<Self> {
        let fd = rustix::fs::open(root, Directory::FLAGS, rustix::fs::Mode::empty());
        #[allow(clippy::unwrap_used)]
        Arc::new(Self::in_process(Directory::from(fd.unwrap()), root.to_owned()))
    }

    /// Creates a place in which a child process works.
    pub(super) fn child(
        process: Arc<PlaceProcess>,
        running: Arc<RunningPlaces>,
        on_notice: OnNotice,
        user: u32,
        place: PathBuf,
    ) -> Self {
        let child = PlaceChild { process, running, on_notice, turn: Mutex::new(true) };
        Self { way: DoorWay::Child(child), user, place, paths: Mutex::default(), created: Mutex::default() }
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
    ) -> io::Result<DoorReply> {
        let DoorWay::Child(PlaceChild { process, turn, .. }) = &self.way else {
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

    fn ask(&self, request: PlaceRequest) -> io::Result<DoorReply> {
        match &self.way {
            DoorWay::Here(workplace) => {
                let mut workplace = workplace.lock().unwrap_or_else(PoisonError::into_inner);
                let (reply, fd) = workplace.answer(request, None);
                check_reply((reply, fd.into_iter().collect()))
            }
            DoorWay::Child(_) => self.exchange(&request, &[]),
        }
    }

    /// Returns the root directory of the place.
    pub(crate) fn root(self: &Arc<Self>) -> io::Result<PlaceDir> {
        self.directory(0, "", self.place.clone())
    }

    /// Opens a directory below `from`, resolving links as if `from` were the root. `place` is its path for messages.
    fn directory(self: &Arc<Self>, from: DirId, path: &str, place: PathBuf) -> io::Result<PlaceDir> {
        let path = if path.is_empty() { "." } else { path };
        let reply = self.ask(PlaceRequest::Open { from, path: path.to_owned() })?;
        self.place_dir(reply, place)
    }

    fn place_dir(self: &Arc<Self>, reply: DoorReply, place: PathBuf) -> io::Result<PlaceDir> {
        match reply {
            (PlaceReply::Directory(id, facts), fds) => {
                self.paths().insert(id, place.clone());
                Ok(PlaceDir { door: self.clone(), id, facts, fd: Arc::new(first_fd(fds)?), place })
            }
            _ => Err(unexpected_reply()),
        }
    }

    /// Makes a directory that is already open a directory of the place. `place` is its path for messages.
    pub(crate) fn adopt(self: &Arc<Self>, fd: BorrowedFd<'_>, place: PathBuf) -> io::Result<PlaceDir> {
        let reply = match &self.way {
            DoorWay::Here(workplace) => {
                let mut workplace = workplace.lock().unwrap_or_else(PoisonError::into_inner);
                let (reply, fd) = workplace.answer(PlaceRequest::Adopt, Some(fd.try_clone_to_owned()?));
                check_reply((reply, fd.into_iter().collect()))
            }
            DoorWay::Child(_) => self.exchange(&PlaceRequest::Adopt, &[fd]),
        }?;
        self.place_dir(reply, place)
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let DoorWay::Child(child) = &self.way else { return };
        let tell = |path, why| (child.on_notice)(&Notice::Left { path, why });
        match self.exchange(&PlaceRequest::End, &[]) {
            Ok((PlaceReply::Left(left), _)) => {
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

fn check_reply(reply: DoorReply) -> io::Result<DoorReply> {
    match reply {
        (PlaceReply::Failed(Some(number), _), _) => Err(io::Error::from_raw_os_error(number)),
        (PlaceReply::Failed(None, text), _) => Err(io::Error::other(text)),
        reply => Ok(reply),
    }
}

fn unexpected_reply() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

fn first_fd(fds: Vec<OwnedFd>) -> io::Result<OwnedFd> {
    fds.into_iter().next().ok_or_else(unexpected_reply)
}

/// Open directory of a place. Names and paths are relative to it.
#[derive(Debug, Clone)]
pub(crate) struct PlaceDir {
    door: Arc<Door>,
    id: DirId,
    facts: EntryFacts,
    fd: Arc<OwnedFd>,
    place: PathBuf,
}

impl PlaceDir {
    /// Returns the place to which the directory belongs.
    pub(crate) fn door(&self) -> &Arc<Door> {
        &self.door
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
    pub(crate) fn place(&self) -> &Path {
        &self.place
    }

    /// Opens a directory, resolving links as if this one were the root.
    pub(crate) fn open_below(&self, path: &str) -> io::Result<Self> {
        self.door.directory(self.id, path, self.place.join(path.trim_start_matches('/')))
    }

    /// Opens a directory; its path must not contain links.
    pub(crate) fn without_links(&self, path: &str) -> io::Result<Self> {
        let path = path.trim_start_matches('/');
        let reply = self.door.ask(PlaceRequest::OpenWithoutLinks { from: self.id, path: path.to_owned() })?;
        self.door.place_dir(reply, self.place.join(path))
    }

    /// Opens an ordinary file for reading, and returns it with its facts.
    pub(crate) fn file(&self, path: &str) -> io::Result<(File, EntryFacts)> {
        self.opened_file(PlaceRequest::Read { from: self.id, path: path.to_owned() })
    }

    /// Returns the first bytes of an ordinary file, at most `max`, and its facts. The child reads them, because the file system
    /// may block the reader.
    pub(crate) fn bytes(&self, path: &str, max: u64) -> io::Result<(Vec<u8>, EntryFacts)> {
        let request = PlaceRequest::Snapshot { from: self.id, path: path.to_owned(), max };
        let (mut file, facts) = self.opened_file(request)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok((bytes, facts))
    }

    /// Returns the facts about an entry, without following links; `None` if it does not exist.
    pub(crate) fn entry(&self, name: &str) -> io::Result<Option<EntryFacts>> {
        match self.door.ask(PlaceRequest::Facts { from: self.id, name: name.to_owned() })? {
            (PlaceReply::Facts(facts), _) => Ok(facts),
            _ => Err(unexpected_reply()),
        }
    }

    /// Checks that entries can be created in this directory.
    pub(crate) fn check_writable(&self) -> io::Result<()> {
        self.done(PlaceRequest::CheckAccess { from: self.id, is_written: true })
    }

    /// Checks that entries of this directory can be opened.
    pub(crate) fn check_searchable(&self) -> io::Result<()> {
        self.done(PlaceRequest::CheckAccess { from: self.id, is_written: false })
    }

    /// Returns the entries whose names begin with `prefix`.
    pub(crate) fn names(&self, prefix: &str) -> io::Result<Vec<NamedEntry>> {
        match self.door.ask(PlaceRequest::Names { from: self.id, prefix: prefix.to_owned() })? {
            (PlaceReply::Names(names), _) => Ok(names),
            _ => Err(unexpected_reply()),
        }
    }

    /// Connects to a socket that belongs to the place's user. `None` if it does not exist, or nobody listens.
    pub(crate) fn connect(&self, name: &str) -> io::Result<Option<UnixStream>> {
        match self.door.ask(PlaceRequest::Connect { from: self.id, name: name.to_owned() })? {
            (PlaceReply::Connected(true), fds) => Ok(Some(UnixStream::from(first_fd(fds)?))),
            (PlaceReply::Connected(false), _) => Ok(None),
            _ => Err(unexpected_reply()),
        }
    }

    /// Creates a directory that only its user can access.
    pub(crate) fn create_directory(&self, name: &str) -> io::Result<Self> {
        let request = PlaceRequest::CreateDirectory { from: self.id, name: name.to_owned() };
        let reply = self.door.ask(request)?;
        self.note_created(name);
        self.door.place_dir(reply, self.place.join(name))
    }

    /// Creates a FIFO and opens it for reading.
    pub(crate) fn create_fifo(&self, name: &str) -> io::Result<File> {
        let request = PlaceRequest::CreateFifo { from: self.id, name: name.to_owned() };
        let (file, _) = self.opened_file(request)?;
        self.note_created(name);
        Ok(file)
    }

    /// Creates an empty file that only its user can access.
    pub(crate) fn create_file(&self, name: &str) -> io::Result<File> {
        let request = PlaceRequest::CreateFile { from: self.id, name: name.to_owned(), is_shared: false };
        let (file, _) = self.opened_file(request)?;
        self.note_created(name);
        Ok(file)
    }

    /// Creates an empty file that only its user can access. An existing file of the place's user is accepted instead.
    pub(crate) fn share_file(&self, name: &str) -> io::Result<()> {
        let request = PlaceRequest::CreateFile { from: self.id, name: name.to_owned(), is_shared: true };
        self.door.ask(request)?;
        self.note_created(name);
        Ok(())
    }

    /// Schedules the removal of a file that a JVM will write, including its segments.
    pub(crate) fn expect(&self, name: &str) -> io::Result<()> {
        self.done(PlaceRequest::Expect { from: self.id, name: name.to_owned() })?;
        self.note_created(name);
        Ok(())
    }

    /// Schedules the removal of an existing file.
    pub(crate) fn own(&self, name: &str) -> io::Result<()> {
        self.door.ask(PlaceRequest::Own { from: self.id, name: name.to_owned() })?;
        self.note_created(name);
        Ok(())
    }

    /// Renames a file that was created or expected in this directory.
    pub(crate) fn rename(&self, name: &str, to: &Self, new: &str, is_forced: bool) -> io::Result<()> {
        let (from, to) = (self.id, to.id);
        self.done(PlaceRequest::Rename { from, name: name.to_owned(), to, new: new.to_owned(), is_forced })?;
        self.door.created_paths().remove(&self.place.join(name));
        Ok(())
    }

    /// Removes an entry that was created in this directory. A JVM that waits for a reader of a FIFO continues.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        self.done(PlaceRequest::Remove { from: self.id, name: name.to_owned() })?;
        self.door.created_paths().remove(&self.place.join(name));
        Ok(())
    }

    fn note_created(&self, name: &str) {
        self.door.created_paths().insert(self.place.join(name));
    }

    fn done(&self, request: PlaceRequest) -> io::Result<()> {
        match self.door.ask(request)? {
            (PlaceReply::Done, _) => Ok(()),
            _ => Err(unexpected_reply()),
        }
    }

    fn opened_file(&self, request: PlaceRequest) -> io::Result<(File, EntryFacts)> {
        match self.door.ask(request)? {
            (PlaceReply::File(facts), fds) => Ok((File::from(first_fd(fds)?), facts)),
            _ => Err(unexpected_reply()),
        }
    }
}
