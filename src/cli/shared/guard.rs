//! Guards of what is created for a JVM: this program, started again, removes it when this process has ended.

use std::any::Any;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use hprof_capture::Keeper;
use hprof_capture::guard;
use hprof_index::storage::temporary_files::ListedPath;

pub(crate) use hprof_capture::guard::WORD;

/// Starts a guard for each file and directory, and has signals remove it at once.
#[derive(Debug)]
pub(crate) struct Guards;

/// The guard of one of them.
struct Guard {
    _guard: guard::Guard,
    _listed: ListedPath,
}

fn start(parent: &Path, name: &str, user: Option<u32>) -> io::Result<guard::Guard> {
    guard::Guards::new(std::env::current_exe()?, Vec::new()).start(parent, name, user)
}

impl Keeper for Guards {
    fn keep_file(&self, parent: &Path, name: &str) -> io::Result<Box<dyn Any>> {
        let guard = start(parent, name, None)?;
        Ok(Box::new(Guard { _guard: guard, _listed: ListedPath::file(&parent.join(name)) }))
    }

    fn keep_directory(
        &self,
        parent: &Path,
        name: &str,
        user: u32,
        make: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<Box<dyn Any>> {
        let guard = start(parent, name, Some(user))?;
        Ok(Box::new(Guard { _guard: guard, _listed: ListedPath::tree(&parent.join(name), make)? }))
    }
}

/// Does the work of a guard.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let is_done =
        arguments.get(2).is_some_and(|name| guard::watch(name, arguments.get(3).map(OsString::as_os_str)));
    if is_done { ExitCode::SUCCESS } else { ExitCode::from(2) }
}
