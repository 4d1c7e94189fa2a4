//! Heap dumps of programs that GraalVM compiled: on SIGUSR1, those that were built for it write one into their working
//! directory.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::compress::{self, Compression};
use crate::directory::Directory;
use crate::error::Error;
use crate::processes::Process;

/// Maximum time until the dump begins.
const TO_BEGIN: Duration = Duration::from_secs(60);

/// A dump that a native image wrote.
#[derive(Debug)]
pub struct NativeDump {
    pid: u32,
    dir: Directory,
    name: OsString,
    /// Its length.
    pub bytes: u64,
    /// Time from the signal to its end: the program may have stood still for all of it.
    pub time: Duration,
}

impl NativeDump {
    /// Copies it.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or the copy cannot be written.
    pub fn copy(&self, compression: Option<Compression>, out: &mut (dyn Write + Send)) -> Result<(), Error> {
        let fail = |source| Error::File { what: "cannot copy", path: self.place(), source };
        let name = self.name.to_str().unwrap_or_default();
        let (mut file, _) = self.dir.file(name).map_err(fail)?;
        let copied = compress::copy(&mut file, compression, out, &mut |_| {}).map_err(fail)?;
        if copied != self.bytes {
            return Err(Error::Odd {
                pid: self.pid,
                path: self.place(),
                why: "its length has changed".to_owned(),
            });
        }
        Ok(())
    }

    /// Removes it.
    ///
    /// # Errors
    ///
    /// If it cannot be removed.
    pub fn remove(&self) -> io::Result<()> {
        fs::remove_file(self.dir.path("").join(&self.name))
    }

    /// Returns its path for messages.
    pub fn place(&self) -> PathBuf {
        self.dir.place().join(&self.name)
    }
}

/// Returns whether the program was built with heap dumps: then it handles the signal, which otherwise ends it.
pub fn has_heap_dumps(process: &Process) -> bool {
    process.status_now().is_some_and(|status| status.handles(Signal::USR1))
}

/// Sends the signal and waits until the dump is complete.
///
/// # Errors
///
/// If the program does not handle the signal, ends, or writes nothing.
pub fn dump(process: &Process) -> Result<NativeDump, Error> {
    let pid = process.pid();
    if !has_heap_dumps(process) {
        return Err(Error::Unhandled { pid, signal: "SIGUSR1" });
    }
    let place = process.proc_path("cwd");
    let dir = Directory::open(&place);
    let dir = dir.map_err(|source| Error::File { what: "cannot open", path: place.clone(), source })?;
    let prefix = format!("svm-heapdump-{}-", process.status().namespace_pid);
    let old = dumps(&dir, &prefix);
    let start = Instant::now();
    process.signal(Signal::USR1)?;
    let (mut last, mut same) = (None, 0);
    loop {
        std::thread::sleep(Duration::from_millis(100));
        if process.status_now().is_none() {
            return Err(Error::EndedDuring { pid, command: "SIGUSR1".to_owned() });
        }
        let new = dumps(&dir, &prefix).into_iter().find(|name| !old.contains(name));
        let there = new.and_then(|name| Some((fs::symlink_metadata(dir.path("").join(&name)).ok()?, name)));
        let Some((there, name)) = there.filter(|(there, _)| there.len() > 0) else {
            if start.elapsed() > TO_BEGIN {
                return Err(Error::NoNativeDump { pid, seconds: TO_BEGIN.as_secs() });
            }
            continue;
        };
        let bytes = there.len();
        // It is complete when the program has closed it.
        let is_open = is_open(process, there.dev(), there.ino());
        same = if !is_open && last == Some(bytes) { same + 1 } else { 0 };
        last = Some(bytes);
        if same >= 2 && there.is_file() && there.uid() == process.status().identity.user {
            return Ok(NativeDump { pid, dir, name, bytes, time: start.elapsed() });
        }
    }
}

fn dumps(dir: &Directory, prefix: &str) -> Vec<OsString> {
    let entries = fs::read_dir(dir.path("")).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name());
    names.filter(|name| name.as_encoded_bytes().starts_with(prefix.as_bytes())).collect()
}

fn is_open(process: &Process, device: u64, inode: u64) -> bool {
    let open = fs::read_dir(process.proc_path("fd")).into_iter().flatten().flatten();
    open.filter_map(|entry| fs::metadata(entry.path()).ok())
        .any(|file| (file.dev(), file.ino()) == (device, inode))
}
