//! Heap dumps of programs compiled by GraalVM. On SIGUSR1, programs that were built with heap dumps write one into their
//! working directory.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, open};
use rustix::process::Signal;

use crate::compress::{self, Compression};
use crate::directory::Directory;
use crate::error::Error;
use crate::processes::Process;
use crate::user_files::{OnNotice, UserDir, UserFiles};
use crate::waiting::Waiting;

/// Prefix of the file names of dumps of native images. The process ID follows.
const NATIVE_PREFIX: &str = "svm-heapdump-";

/// Maximum time until the native image begins to write the dump.
const TO_BEGIN: Duration = Duration::from_secs(60);

/// Dump file that a native image wrote.
/// The file is removed on drop.
#[derive(Debug)]
pub(crate) struct NativeDump {
    pid: u32,
    dir: UserDir,
    name: String,
    is_there: bool,
    /// Length of the dump in bytes.
    pub(crate) bytes: u64,
    /// Time from the signal to the end of the dump. The program may have been suspended all the time.
    pub(crate) time: Duration,
}

impl NativeDump {
    /// Copies the dump to a writer.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or the copy cannot be written.
    pub(crate) fn copy(
        &self,
        compression: Option<Compression>,
        out: &mut (dyn Write + Send),
    ) -> Result<(), Error> {
        let fail = |source| Error::File { what: "cannot copy".into(), path: self.full_path(), source };
        let (mut file, _) = self.dir.file(&self.name).map_err(fail)?;
        let copied = compress::copy(&mut file, compression, out, &mut |_| {});
        let copied = copied.map_err(|source| Error::Output { source })?;
        if copied != self.bytes {
            return Err(Error::Odd {
                pid: self.pid,
                path: self.full_path(),
                why: "its length changed while it was copied".to_owned(),
            });
        }
        Ok(())
    }

    /// Removes the dump.
    ///
    /// # Errors
    ///
    /// If it cannot be removed.
    pub(crate) fn remove(&mut self) -> io::Result<()> {
        self.dir.remove(&self.name)?;
        self.is_there = false;
        Ok(())
    }

    /// Returns the path of the dump, for messages.
    pub(crate) fn full_path(&self) -> PathBuf {
        self.dir.full_path().join(&self.name)
    }
}

impl Drop for NativeDump {
    fn drop(&mut self) {
        if self.is_there {
            let _ = self.remove();
        }
    }
}

/// Returns whether the program was built with heap dumps. If not, it does not handle the signal, which would end it.
fn has_heap_dumps(process: &Process) -> bool {
    process.status_now().is_some_and(|status| status.handles(Signal::USR1))
}

/// Checks that the program can write heap dumps.
pub(crate) fn check(process: &Process) -> Result<(), Error> {
    if has_heap_dumps(process) {
        return Ok(());
    }
    Err(Error::Unhandled { pid: process.pid(), signal: "SIGUSR1".into() })
}

/// Sends the signal and waits until the dump is complete.
///
/// # Errors
///
/// If the program does not handle the signal, ends, or writes nothing. A partial dump is removed.
pub(crate) fn dump(
    process: &Process,
    files: &Arc<UserFiles>,
    limit: Option<Duration>,
    on_notice: &OnNotice,
) -> Result<NativeDump, Error> {
    let pid = process.pid();
    check(process)?;
    let place = process.proc_path("cwd");
    let fail = |source| Error::File { what: "cannot open".into(), path: place.clone(), source };
    // This link is provided by the kernel, not by the process.
    let cwd = open(&place, Directory::FLAGS, Mode::empty()).map_err(|error| fail(error.into()))?;
    let dir = files.adopt(std::os::fd::AsFd::as_fd(&cwd), place.clone()).map_err(fail)?;
    let prefix = format!("{NATIVE_PREFIX}{}-", process.status().namespace_pid);
    let old = dir.names(&prefix).map_err(fail)?;
    let start = Instant::now();
    let waiting = Waiting::new(process, "SIGUSR1", limit, on_notice);
    process.signal(Signal::USR1)?;
    let (mut last, mut same) = (None, 0);
    let mut found: Option<NativeDump> = None;
    let user = process.status().identity.user;
    loop {
        std::thread::sleep(Duration::from_millis(100));
        if process.status_now().is_none() {
            return Err(Error::EndedDuring { pid, command: "SIGUSR1".to_owned() });
        }
        let is_new = |name: &str| old.iter().all(|entry| entry.name != name);
        let there = dir.names(&prefix).map_err(fail)?.into_iter().find(|entry| is_new(&entry.name));
        let is_theirs = |facts: crate::user_files::EntryFacts| {
            facts.bytes > 0 && facts.is_file() && facts.user == user && facts.links == 1
        };
        let Some(there) = there.filter(|there| is_theirs(there.facts)) else {
            if start.elapsed() > TO_BEGIN {
                return Err(Error::NoNativeDump { pid, seconds: TO_BEGIN.as_secs() });
            }
            continue;
        };
        let (name, bytes) = (there.name, there.facts.bytes);
        // The dump is complete when the program has closed it.
        let is_open = is_open(process, there.facts.device, there.facts.inode);
        if last != Some(bytes) {
            waiting.progress();
        }
        waiting.check()?;
        same = if !is_open && last == Some(bytes) { same + 1 } else { 0 };
        last = Some(bytes);
        let dump = match &mut found {
            Some(dump) if dump.name == name => dump,
            found => {
                dir.own(&name).map_err(fail)?;
                let time = Duration::ZERO;
                found.insert(NativeDump { pid, dir: dir.clone(), name, is_there: true, bytes, time })
            }
        };
        (dump.bytes, dump.time) = (bytes, start.elapsed());
        if same >= 2
            && let Some(dump) = found.take()
        {
            return Ok(dump);
        }
    }
}

fn is_open(process: &Process, device: u64, inode: u64) -> bool {
    let open = fs::read_dir(process.proc_path("fd")).into_iter().flatten().flatten();
    open.filter_map(|entry| fs::metadata(entry.path()).ok())
        .any(|file| (file.dev(), file.ino()) == (device, inode))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_is_removed_however_its_copy_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("svm-heapdump-7-1.hprof");
        let root = UserFiles::for_test(dir.path()).root().unwrap();
        let dump = |length| {
            fs::write(&path, "dump").unwrap();
            root.own("svm-heapdump-7-1.hprof").unwrap();
            NativeDump {
                pid: 7,
                dir: root.clone(),
                name: "svm-heapdump-7-1.hprof".to_owned(),
                is_there: true,
                bytes: length,
                time: Duration::ZERO,
            }
        };
        let mut full = fs::File::options().write(true).open("/dev/full").unwrap();
        let failed = dump(4).copy(None, &mut full);
        // The destination failed, not the dump.
        assert!(matches!(failed, Err(Error::Output { .. })) && !path.exists(), "{failed:?}");
        assert!(matches!(dump(5).copy(None, &mut Vec::new()), Err(Error::Odd { .. })) && !path.exists());
        let mut good = dump(4);
        good.copy(None, &mut Vec::new()).unwrap();
        good.remove().unwrap();
        assert!(!path.exists());
        // A file with this name that appears later is not removed.
        fs::write(&path, "other").unwrap();
        drop(good);
        assert!(path.exists());
    }
}
