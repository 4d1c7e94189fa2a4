//! A process that removes what another one created for a JVM when that has ended, however it ended: the JVM may go on
//! writing a dump, which is full of secrets, for minutes.

use std::any::Any;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::attach::TRIGGER;
use crate::identity::Identity;
use crate::native_image::NATIVE_PREFIX;
use crate::private::{Keeper, PREFIX, remove_abandoned};

/// Argument that makes a program a guard. The name of what it removes follows, and for a directory its user.
pub const WORD: &str = "__remove-after-end";

/// Starts a guard for each file and directory.
#[derive(Debug, Clone)]
pub struct Guards {
    program: PathBuf,
    arguments: Vec<OsString>,
    running: Arc<Mutex<Vec<Child>>>,
}

/// The guard of one of them. It ends when this is dropped.
#[derive(Debug)]
pub struct Guard {
    id: u32,
    running: Arc<Mutex<Vec<Child>>>,
}

fn running(children: &Mutex<Vec<Child>>) -> MutexGuard<'_, Vec<Child>> {
    children.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a guard, which ends when its stdin does.
fn ended(mut child: Child) {
    drop(child.stdin.take());
    let _ = child.wait();
}

impl Guards {
    /// Makes one that starts a program with these first arguments. The program calls [`watch`] if [`WORD`] follows.
    pub fn new(program: PathBuf, arguments: Vec<OsString>) -> Self {
        Self { program, arguments, running: Arc::default() }
    }

    /// Has all guards remove what they look after, and waits for them: nobody else would, where the first process, to which
    /// they would belong, is a JVM. None can be started afterwards: this process is about to end.
    pub fn end(&self) {
        let mut children = running(&self.running);
        children.drain(..).for_each(ended);
        std::mem::forget(children);
    }

    /// Starts a guard for `name` in `parent`.
    ///
    /// # Errors
    ///
    /// If the program cannot be started.
    pub fn start(&self, parent: &Path, name: &str, user: Option<u32>) -> io::Result<Guard> {
        self.started(&mut running(&self.running), parent, name, user)
    }

    fn started(
        &self,
        children: &mut Vec<Child>,
        parent: &Path,
        name: &str,
        user: Option<u32>,
    ) -> io::Result<Guard> {
        // In the directory: its path may lead there only while the JVM lives. A group of its own: signals of the terminal
        // are not for it. No stdout: whoever reads ours would wait for its end.
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(WORD).arg(name).args(user.map(|user| user.to_string()));
        command.current_dir(parent).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn()?;
        let id = child.id();
        children.push(child);
        Ok(Guard { id, running: self.running.clone() })
    }
}

impl Keeper for Guards {
    fn keep_file(&self, parent: &Path, name: &str) -> io::Result<Box<dyn Any>> {
        Ok(Box::new(self.start(parent, name, None)?))
    }

    fn keep_directory(
        &self,
        parent: &Path,
        name: &str,
        user: u32,
        make: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<Box<dyn Any>> {
        // Locked meanwhile: a guard that ends before the directory is created would not find it.
        let mut children = running(&self.running);
        let guard = self.started(&mut children, parent, name, Some(user))?;
        let made = make();
        drop(children);
        made.map(|()| Box::new(guard) as Box<dyn Any>)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut children = running(&self.running);
        let own = children.iter().position(|child| child.id() == self.id).map(|at| children.swap_remove(at));
        drop(children);
        // It finds nothing, and ends.
        own.into_iter().for_each(ended);
    }
}

/// Waits for the end of the process that holds the other end of stdin, and removes what it created: the work of a guard,
/// whose arguments these are. Returns whether they are those of a guard.
pub fn watch(name: &OsStr, user: Option<&OsStr>) -> bool {
    // It ends when its parent has, and not before.
    ignore_signals();
    let Some(name) = name.to_str().filter(|name| !name.contains('/')) else { return false };
    let mut bytes = Vec::new();
    let _ = io::stdin().lock().read_to_end(&mut bytes);
    if name.starts_with(PREFIX) {
        let user = user.and_then(|user| user.to_str()?.parse().ok());
        // Without one, only what belongs to this user is removed.
        remove_abandoned(Path::new("."), name, user.unwrap_or_else(|| Identity::own().user));
    } else if name.starts_with(TRIGGER) || name.starts_with(NATIVE_PREFIX) {
        // Usually it was removed.
        let _ = std::fs::remove_file(name);
    }
    true
}

/// Ignores the signals that would end this process.
#[allow(unsafe_code)]
fn ignore_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: No code runs when the signal comes.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}
