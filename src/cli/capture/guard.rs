//! A process that removes the private directory of a dump when the process that takes it has ended, however it ended: the
//! JVM may go on writing secrets for minutes.

use std::any::Any;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use hprof_capture::{Keeper, PREFIX, remove_abandoned};
use hprof_index::storage::temporary_files;

/// First argument of this program as a guard.
pub(crate) const WORD: &str = "__remove-dump-directory";

/// Starts a guard for each directory, and has signals remove the directory at once.
pub(super) struct Guards;

/// The guard of one directory.
struct Guard {
    child: Child,
    _listed: temporary_files::ListedTree,
}

impl Keeper for Guards {
    fn keep(
        &self,
        parent: &Path,
        name: &str,
        make: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<Box<dyn Any>> {
        // A directory of its own in which to be: it may be reachable only while the JVM lives. A group of its own: signals
        // of the terminal are not for it. No stdout: whoever reads ours would wait for its end.
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(WORD).arg(name).current_dir(parent).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        match temporary_files::ListedTree::create(&parent.join(name), make) {
            Ok(listed) => Ok(Box::new(Guard { child, _listed: listed })),
            Err(error) => {
                drop(child.stdin.take());
                let _ = child.wait();
                Err(error)
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // It finds nothing, and ends.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Waits for the end of the process that holds the other end of stdin, and removes the directory.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let name = arguments.get(2).and_then(|name| name.to_str());
    let Some(name) = name.filter(|name| name.starts_with(PREFIX) && !name.contains('/')) else {
        return ExitCode::from(2);
    };
    let mut bytes = Vec::new();
    let _ = io::stdin().lock().read_to_end(&mut bytes);
    remove_abandoned(Path::new("."), name);
    ExitCode::SUCCESS
}
