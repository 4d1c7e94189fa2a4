//! A process that removes what another one created for a JVM when that has ended, however it ended: the JVM may go on
//! writing a dump, which is full of secrets, for minutes.

use std::any::Any;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use hprof_capture::attach::TRIGGER;
use hprof_capture::native_image::NATIVE_PREFIX;
use hprof_capture::{Keeper, PREFIX, remove_abandoned};
use hprof_index::storage::temporary_files::ListedPath;

/// First argument of this program as a guard.
pub(crate) const WORD: &str = "__remove-after-end";

/// Starts a guard for each file and directory, and has signals remove it at once.
#[derive(Debug)]
pub(crate) struct Guards;

/// The guard of one of them.
struct Guard {
    child: Child,
    listed: Option<ListedPath>,
}

impl Guard {
    fn start(parent: &Path, name: &str, user: Option<u32>) -> io::Result<Self> {
        // In the directory: its path may lead there only while the JVM lives. A group of its own: signals of the terminal
        // are not for it. No stdout: whoever reads ours would wait for its end.
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg(WORD)
            .arg(name)
            .args(user.map(|user| user.to_string()))
            .current_dir(parent)
            .process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { child: command.spawn()?, listed: None })
    }
}

impl Keeper for Guards {
    fn keep_file(&self, parent: &Path, name: &str) -> io::Result<Box<dyn Any>> {
        let mut guard = Guard::start(parent, name, None)?;
        guard.listed = Some(ListedPath::file(&parent.join(name)));
        Ok(Box::new(guard))
    }

    fn keep_directory(
        &self,
        parent: &Path,
        name: &str,
        user: u32,
        make: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<Box<dyn Any>> {
        let mut guard = Guard::start(parent, name, Some(user))?;
        guard.listed = Some(ListedPath::tree(&parent.join(name), make)?);
        Ok(Box::new(guard))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // It finds nothing, and ends.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Waits for the end of the process that holds the other end of stdin, and removes what it created.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    // It ends when its parent has, and not before.
    crate::cli::shared::signals::ignore();
    let name = arguments.get(2).and_then(|name| name.to_str());
    let Some(name) = name.filter(|name| !name.contains('/')) else { return ExitCode::from(2) };
    let mut bytes = Vec::new();
    let _ = io::stdin().lock().read_to_end(&mut bytes);
    if name.starts_with(PREFIX) {
        let user = arguments.get(3).and_then(|user| user.to_str()?.parse().ok());
        // Without one, only what belongs to this user is removed.
        remove_abandoned(Path::new("."), name, user.unwrap_or_else(|| rustix::process::geteuid().as_raw()));
    } else if name.starts_with(TRIGGER) || name.starts_with(NATIVE_PREFIX) {
        // Usually it was removed.
        let _ = std::fs::remove_file(name);
    }
    ExitCode::SUCCESS
}
