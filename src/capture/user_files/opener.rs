//! Opens files of users, and starts the child processes that access them.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;

use super::child::WORD;
use super::client::UserFiles;
use super::notice::OnNotice;
use super::process::{ChildProcess, RunningChildren};
use super::request::{ChildUser, FileReply};
use super::socket;
use crate::directory::Directory;
use crate::error::Error;
use crate::identity::Identity;
use crate::processes::{Process, Status};

/// Factory of `UserFiles`: starts a child process for each.
#[derive(Clone)]
pub struct UserFilesOpener {
    program: PathBuf,
    arguments: Vec<OsString>,
    running: Arc<RunningChildren>,
    on_notice: OnNotice,
}

impl fmt::Debug for UserFilesOpener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserFilesOpener").field("program", &self.program).finish_non_exhaustive()
    }
}

/// Root directory and user for which a child process is started.
struct ChildRoot<'a> {
    identity: Identity,
    groups: &'a [u32],
    root: OwnedFd,
    namespace: Option<OwnedFd>,
    /// Path of the root, for messages.
    full_path: PathBuf,
}

impl UserFilesOpener {
    /// Creates a factory that starts `program` with `arguments` as child processes. The program must call [`run`](super::run)
    /// if [`WORD`] follows.
    pub fn new(program: PathBuf, arguments: Vec<OsString>, on_notice: OnNotice) -> Self {
        Self { program, arguments, running: Arc::default(), on_notice }
    }

    /// Creates a factory that starts the current program again, even after its file was removed.
    pub fn itself(on_notice: OnNotice) -> Self {
        Self::new("/proc/self/exe".into(), Vec::new(), on_notice)
    }

    /// Returns the receiver of notices.
    pub(crate) fn on_notice(&self) -> &OnNotice {
        &self.on_notice
    }

    /// Ends all children, which remove what they created, and waits for them. In a container whose first process is a JVM,
    /// nobody else would wait for them. No children can be started afterwards; the process should end.
    pub fn end(&self) {
        self.running.end();
    }

    /// Opens the file system that a process sees, with the rights of its user.
    pub(crate) fn of_process(&self, process: &Process) -> Result<UserFiles, Error> {
        let root = root(process)?;
        let namespace = match process.sees_our_files() {
            true => None,
            false => match open_proc_file(process, "ns/mnt", OFlags::RDONLY) {
                // Some kernels, and sandboxes that emulate a kernel, lack this file.
                Err(Error::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => None,
                namespace => Some(namespace?),
            },
        };
        let status = same_user(process)?;
        let full_path = process.proc_path("root");
        self.start(ChildRoot {
            identity: status.identity,
            groups: &status.groups,
            root,
            namespace,
            full_path,
        })
    }

    /// Opens the file system that a process sees, for reading only. No child is used if the current process has the same
    /// rights.
    pub(crate) fn reader_of_process(&self, process: &Process) -> Result<UserFiles, Error> {
        let is_own = process.status().identity == Identity::own() && process.sees_our_files();
        // Root has more rights than a JVM that runs as root in a container.
        if !is_own || geteuid().is_root() {
            return self.of_process(process);
        }
        Ok(UserFiles::in_process(Directory::from(root(process)?), process.proc_path("root")))
    }

    /// Opens the file system that the current process sees, with the rights of another user.
    pub(crate) fn as_user(&self, identity: Identity, groups: &[u32]) -> Result<UserFiles, Error> {
        let full_path = PathBuf::from("/");
        let root = rustix::fs::open(&full_path, Directory::FLAGS, Mode::empty());
        let root = root.map_err(|error| cannot_open(&full_path, error.into()))?;
        self.start(ChildRoot { identity, groups, root, namespace: None, full_path })
    }

    fn start(&self, at: ChildRoot<'_>) -> Result<UserFiles, Error> {
        let Identity { user, group } = at.identity;
        let process = self.spawn().map_err(|source| Error::File {
            what: "cannot start".into(),
            path: self.program.clone(),
            source,
        })?;
        let process = self.running.add(process);
        let files =
            UserFiles::child(process, self.running.clone(), self.on_notice.clone(), user, at.full_path);
        let setup =
            ChildUser { user, group, groups: at.groups.to_vec(), has_namespace: at.namespace.is_some() };
        let descriptors = [Some(at.root.as_fd()), at.namespace.as_ref().map(AsFd::as_fd)];
        let descriptors: Vec<_> = descriptors.into_iter().flatten().collect();
        match files.exchange(&setup, &descriptors) {
            Ok((FileReply::Done, _)) => Ok(files),
            Ok(_) => Err(Error::Identity { user, group, source: io::ErrorKind::InvalidData.into() }),
            Err(source) => Err(Error::Identity { user, group, source }),
        }
    }

    fn spawn(&self) -> io::Result<ChildProcess> {
        let (own, childs) = socket::pair()?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(WORD).env_clear().current_dir("/");
        // A separate process group, so that signals of the terminal do not reach the child. No stdout, because a reader of our
        // stdout would wait until the child ends.
        command.process_group(0).stdin(childs).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(ChildProcess::new(own, command.spawn()?))
    }
}

/// Returns the status of a process whose root and namespace have just been opened, after checking that they belong to this
/// process and its user.
///
/// # Errors
///
/// If the process has ended, or may have changed its user: since then, it may have executed a program that changes its user,
/// and moved into a namespace of its former user.
fn same_user(process: &Process) -> Result<&Status, Error> {
    let (pid, status) = (process.pid(), process.status());
    let now = process.status_now().ok_or(Error::Ended { pid })?;
    let is_same = now.identity == status.identity && now.groups == status.groups;
    match is_same && now.has_one_user {
        true => Ok(status),
        false => Err(Error::ChangesUser { pid }),
    }
}

fn cannot_open(path: &Path, source: io::Error) -> Error {
    Error::File { what: "cannot open".into(), path: path.to_owned(), source }
}

/// Opens the root directory of a process through `/proc`. The link is provided by the kernel, not by the process.
fn root(process: &Process) -> Result<OwnedFd, Error> {
    open_proc_file(process, "root", Directory::FLAGS)
}

fn open_proc_file(process: &Process, name: &str, flags: OFlags) -> Result<OwnedFd, Error> {
    let path = process.proc_path(name);
    rustix::fs::open(&path, flags | OFlags::CLOEXEC, Mode::empty()).map_err(|error| match error {
        rustix::io::Errno::ACCESS | rustix::io::Errno::PERM => Error::Hidden { pid: process.pid() },
        error => cannot_open(&path, error.into()),
    })
}
