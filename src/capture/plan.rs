//! Plan of a heap dump: where the JVM writes, how many bytes, and for how long its threads are suspended.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{StatVfs, fstat, fstatvfs};
use serde::{Deserialize, Serialize};

use crate::attach::{Jvm, TO_ANSWER};
use crate::compress::Compression;
use crate::error::Error;
use crate::heap_info;
use crate::identity::Identity;
use crate::jvms::JvmRow;
use crate::user_files::{EntryFacts, UserDir, UserOutputDir};

/// First JDK release that writes a dump in segments and merges them afterwards.
const SEGMENTS_SINCE: u32 = 22;

/// Length of a dump relative to the heap. Each object takes 25 additional bytes, and each reference takes 8 bytes, but only 4
/// in most heaps. Dumps of small objects take up to twice the size of the heap, dumps of large arrays about the size of the
/// heap.
const DUMP_PER_HEAP: (u64, u64) = (3, 2);

/// Speed of dumps in bytes per second, including the preceding garbage collection: about the median of the values in
/// docs/capture.md, which were measured on a busy machine.
const BYTES_PER_SECOND: u64 = 150_000_000;

/// Speed of dumps through a FIFO into gzip in bytes per second. The compressor is slower than the JVM.
const GZIP_BYTES_PER_SECOND: u64 = 75_000_000;
/// Speed of dumps through a FIFO into zstd in bytes per second. The compressor is slower than the JVM.
const ZSTD_BYTES_PER_SECOND: u64 = 100_000_000;

/// Request for a heap dump.
#[derive(Debug, Clone, Copy)]
pub struct Request<'r> {
    /// `true` if the JVM collects garbage first and dumps only the remaining objects.
    pub is_live: bool,
    /// Directory of the output file; `None` for a stream.
    pub to: Option<OutputDir<'r>>,
    /// Compression of the dump.
    pub compression: Option<Compression>,
    /// `true` if this process changes the bytes of the dump, so that the JVM may not write the file itself.
    pub is_filtered: bool,
    /// Maximum time for each reply of the JVM. By default, only commands that take no time are limited.
    pub limit: Option<Duration>,
}

/// Open directory of an output file.
#[derive(Debug, Clone, Copy)]
pub enum OutputDir<'r> {
    /// Directory in which this process works with its own rights: nobody else may change it, or this process is not root.
    Own {
        /// Open directory.
        fd: BorrowedFd<'r>,
        /// Path of the directory, without links.
        path: &'r Path,
    },
    /// Directory that others may change.
    Foreign(&'r UserOutputDir),
}

impl<'r> OutputDir<'r> {
    /// Returns the path of the directory.
    pub fn path(&self) -> &'r Path {
        match self {
            Self::Own { path, .. } => path,
            Self::Foreign(place) => place.path(),
        }
    }

    /// Returns the file descriptor of the directory.
    pub fn fd(&self) -> BorrowedFd<'r> {
        match self {
            Self::Own { fd, .. } => *fd,
            Self::Foreign(place) => place.fd(),
        }
    }
}

/// Way of a dump's bytes from the JVM to their destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DumpRoute {
    /// The JVM writes a file next to the destination, which is renamed when it is complete.
    Beside,
    /// The JVM writes a file next to the destination, which is compressed afterwards.
    BesideAndCompress,
    /// The JVM writes a file in its own `/tmp`, which is copied to the destination.
    Inside,
    /// The JVM writes to a FIFO, from which this process reads.
    Fifo,
}

/// Directory without enough space for the dump if no object in the heap is garbage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TightSpace {
    /// Path of the directory.
    pub place: PathBuf,
    /// Free bytes.
    pub free_bytes: u64,
    /// Required bytes if no object in the heap is garbage.
    pub needed_bytes: u64,
}

/// A dump of reachable objects is attempted if at least one part in this number of the required space is free. JVMs collect
/// when the heap is full, so most of the used heap is often garbage.
const LEAST: u64 = 10;

/// Plan of a heap dump: the way of its bytes, and estimates of space and time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Plan {
    /// JVM of which the dump is taken.
    pub row: JvmRow,
    /// Feature release of the JVM.
    pub release: u32,
    /// Way of the bytes from the JVM to the destination.
    pub way: DumpRoute,
    /// `true` if the JVM collects garbage first and dumps only the remaining objects.
    pub is_live: bool,
    /// Compression of the dump.
    pub compression: Option<Compression>,
    /// Bytes of the heap that are used now, including garbage.
    pub heap_used_bytes: u64,
    /// Estimated length of the dump before compression.
    pub dump_bytes: u64,
    /// Path of the directory in which the JVM writes, as this process sees it.
    pub place: PathBuf,
    /// Path of the directory in which the JVM writes, as the JVM sees it.
    pub(crate) inner: String,
    /// Bytes that the JVM needs in the directory.
    pub needed_bytes: u64,
    /// Free bytes in the directory; `None` if the file system does not state them.
    pub free_bytes: Option<u64>,
    /// Directory in which the dump fits only if much of the heap is garbage.
    pub tight: Option<TightSpace>,
    /// `true` if the JVM writes segments and merges them afterwards.
    pub is_segmented: bool,
    /// Estimated time for which the JVM's threads are suspended.
    pub standstill: Duration,
    /// Speed in bytes per second on which `standstill` is based.
    pub bytes_per_second: u64,
}

impl Plan {
    /// Creates the plan for the JVM in `row`. Queries the JVM for its version and the size of its heap. Returns the plan and
    /// the open directory in which the JVM writes.
    ///
    /// # Errors
    ///
    /// If the JVM does not reply, or there is not enough space.
    pub(crate) fn new(
        jvm: &Jvm<'_>,
        mut row: JvmRow,
        request: Request<'_>,
    ) -> Result<(Self, UserDir), Error> {
        let process = jvm.process();
        let pid = process.pid();
        let info = jvm.jcmd("GC.heap_info", Some(TO_ANSWER));
        // JDK 8 lacks this command.
        let used = match info {
            Ok(text) => heap_info::used_bytes(&text).or(row.heap_used_bytes),
            Err(Error::Refused { .. }) => row.heap_used_bytes,
            Err(error) => return Err(error),
        };
        let heap_used_bytes = used.or(row.heap_max_bytes).unwrap_or(0);
        let version = jvm.jcmd("VM.version", Some(TO_ANSWER))?;
        let version = version_of(&version).ok_or(Error::Answer { pid })?;
        let release = release(version).ok_or(Error::Answer { pid })?;
        row.java_version.get_or_insert_with(|| version.to_owned());
        let is_segmented = release >= SEGMENTS_SINCE;
        let beside = match request.to.filter(|_| process.sees_our_files()) {
            Some(to) => open_reachable_dir(to, jvm)?,
            None => None,
        };
        let is_copied = request.compression.is_some() || request.is_filtered;
        let is_stream = is_copied || beside.is_none();
        let way = match &beside {
            _ if is_stream && !is_segmented && can_overwrite(jvm)? => DumpRoute::Fifo,
            Some(_) if is_copied => DumpRoute::BesideAndCompress,
            Some(_) => DumpRoute::Beside,
            None => DumpRoute::Inside,
        };
        let (dir, inner) = match beside {
            Some((dir, inner)) if way != DumpRoute::Fifo => (dir, inner),
            _ => {
                let place = process.proc_path("root/tmp");
                let tmp = jvm.files().root().and_then(|root| root.open_below("tmp"));
                (tmp.map_err(|source| cannot_open(&place, source))?, "/tmp".to_owned())
            }
        };
        let place = dir.full_path().to_owned();
        let dump_bytes = heap_used_bytes.saturating_mul(DUMP_PER_HEAP.0) / DUMP_PER_HEAP.1;
        let needed_bytes = match way {
            DumpRoute::Fifo => 0,
            _ if is_segmented => dump_bytes.saturating_mul(2),
            _ => dump_bytes,
        };
        let bytes_per_second = match (way, request.compression) {
            (DumpRoute::Fifo, Some(Compression::Gzip)) => GZIP_BYTES_PER_SECOND,
            (DumpRoute::Fifo, Some(Compression::Zstd)) => ZSTD_BYTES_PER_SECOND,
            _ => BYTES_PER_SECOND,
        };
        let mut plan = Self {
            row,
            release,
            way,
            is_live: request.is_live,
            compression: request.compression,
            heap_used_bytes,
            dump_bytes,
            free_bytes: fstatvfs(dir.fd()).ok().and_then(|stat| free(&stat)),
            tight: None,
            place,
            inner,
            needed_bytes,
            is_segmented,
            standstill: Duration::from_millis(dump_bytes.saturating_mul(1000) / bytes_per_second),
            bytes_per_second,
        };
        plan.tight = plan.check_inside()?;
        Ok((plan.with_destination(request)?, dir))
    }

    /// Adds the destination to a plan. It may be on another machine than the JVM.
    ///
    /// # Errors
    ///
    /// If there is not enough space.
    pub(crate) fn with_destination(mut self, request: Request<'_>) -> Result<Self, Error> {
        self.compression = request.compression;
        // A compressed dump takes 10 to 50 percent; its length is not known in advance.
        let is_copy = matches!(self.way, DumpRoute::Inside | DumpRoute::Fifo) && self.compression.is_none();
        if let Some(dir) = request.to.filter(|_| is_copy) {
            let free = fstatvfs(dir.fd()).ok().and_then(|stat| free(&stat));
            let tight = self.space(dir.path(), free, self.dump_bytes, false)?;
            self.tight = self.tight.or(tight);
        }
        Ok(self)
    }

    /// Checks that there is enough space in the directory in which the JVM writes.
    fn check_inside(&self) -> Result<Option<TightSpace>, Error> {
        self.space(&self.place, self.free_bytes, self.needed_bytes, self.is_segmented)
    }

    fn space(
        &self,
        place: &Path,
        free: Option<u64>,
        needed: u64,
        is_twice: bool,
    ) -> Result<Option<TightSpace>, Error> {
        let Some(free) = free.filter(|free| *free < needed) else { return Ok(None) };
        let place = place.to_owned();
        if self.is_live && free >= needed / LEAST {
            return Ok(Some(TightSpace { place, free_bytes: free, needed_bytes: needed }));
        }
        Err(Error::Space { place, free, needed, is_twice })
    }
}

/// Open directory, and its path as the JVM sees it.
type ReachedDir = (UserDir, String);

/// Opens the directory of the destination for the JVM. `None` if the JVM does not see the same files, or cannot reach the
/// directory by the same path.
fn open_reachable_dir(to: OutputDir<'_>, jvm: &Jvm<'_>) -> Result<Option<ReachedDir>, Error> {
    let fail = |source| cannot_open(to.path(), source);
    let Some(inner) = to.path().to_str().map(str::to_owned) else { return Ok(None) };
    let owner = jvm.process().status().identity;
    let dir = match to {
        // In a directory that others may change, they could redirect the JVM.
        OutputDir::Foreign(place) if place.user() == owner.user && is_safe(place, owner) => {
            place.dir().clone()
        }
        OutputDir::Foreign(_) => return Ok(None),
        OutputDir::Own { fd, path } => {
            let id = EntryFacts::new(&fstat(fd).map_err(|error| fail(error.into()))?).id();
            let reached = jvm.files().root().and_then(|root| root.open_below(&inner));
            let is_it = |dir: UserDir| dir.facts().id() == id && dir.check_searchable().is_ok();
            if !reached.is_ok_and(is_it) {
                return Ok(None);
            }
            let dir = match owner == Identity::own() {
                true => jvm.files().adopt(fd, path.to_owned()),
                false => {
                    let own = Arc::new(jvm.opener().as_user(Identity::own(), &[])?);
                    own.adopt(fd, path.to_owned())
                }
            }
            .map_err(fail)?;
            // Root may be permitted to write where its children, which have no capabilities, are not.
            if dir.check_writable().is_err() {
                return Ok(None);
            }
            dir
        }
    };
    Ok(Some((dir, inner)))
}

/// Returns whether entries of a directory can be changed only by their own owners, the JVM's user, and root.
fn is_safe(place: &UserOutputDir, owner: Identity) -> bool {
    const STICKY: u32 = 0o1000;
    let facts = place.dir().facts();
    let is_shared = facts.mode & 0o022 != 0;
    let is_sticky = facts.mode & STICKY != 0;
    [owner.user, 0].contains(&facts.user) && (!is_shared || is_sticky)
}

/// Returns whether the JVM can write a dump to an existing file.
fn can_overwrite(jvm: &Jvm<'_>) -> Result<bool, Error> {
    match jvm.jcmd("help GC.heap_dump", Some(TO_ANSWER)) {
        Ok(help) => Ok(help.contains("-overwrite")),
        Err(Error::Refused { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the version from the reply to `VM.version`, such as 8.0_392 or 17.0.15.
fn version_of(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.trim().strip_prefix("JDK ")).filter(|version| !version.is_empty())
}

/// Returns the feature release of a version, such as 8 or 17.
fn release(version: &str) -> Option<u32> {
    let mut numbers = version.split(|letter: char| !letter.is_ascii_digit());
    match numbers.next()?.parse().ok()? {
        1 => numbers.next()?.parse().ok(),
        release => Some(release),
    }
}

/// Returns the free bytes of a file system; `None` if it states no sizes, as some network file systems.
fn free(stat: &StatVfs) -> Option<u64> {
    if stat.f_blocks == 0 {
        return None;
    }
    stat.f_bavail.checked_mul(stat.f_frsize)
}

fn cannot_open(path: &Path, source: std::io::Error) -> Error {
    Error::File { what: "cannot open".into(), path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_dump_without_garbage_has_a_size_that_is_known() {
        let mut plan = Plan {
            row: JvmRow { pid: 7, namespace_pid: 7, ..JvmRow::default() },
            release: 21,
            way: DumpRoute::Beside,
            is_live: true,
            compression: None,
            heap_used_bytes: 1000,
            dump_bytes: 1500,
            place: PathBuf::from("/d"),
            inner: "/d".to_owned(),
            needed_bytes: 1500,
            free_bytes: Some(1500),
            tight: None,
            is_segmented: false,
            standstill: Duration::ZERO,
            bytes_per_second: 1,
        };
        assert!(matches!(plan.check_inside(), Ok(None)));
        plan.free_bytes = Some(150);
        let tight = TightSpace { place: "/d".into(), free_bytes: 150, needed_bytes: 1500 };
        assert!(matches!(plan.check_inside(), Ok(Some(found)) if found == tight));
        plan.free_bytes = Some(149);
        assert!(matches!(plan.check_inside(), Err(Error::Space { free: 149, needed: 1500, .. })));
        (plan.is_live, plan.free_bytes) = (false, Some(1499));
        assert!(matches!(plan.check_inside(), Err(Error::Space { .. })));
        plan.free_bytes = None;
        assert!(matches!(plan.check_inside(), Ok(None)));
        // A virtual file system, which states no sizes.
        assert_eq!(rustix::fs::statvfs("/proc").ok().and_then(|stat| free(&stat)), None);
    }

    #[test]
    fn releases_are_read_from_versions() {
        for (text, expected) in [
            ("OpenJDK 64-Bit Server VM version 25.0.3+9-LTS\nJDK 25.0.3\n", Some(25)),
            ("OpenJDK 64-Bit Server VM version 17.0.15\nJDK 17.0.15\n", Some(17)),
            ("OpenJDK 64-Bit Server VM version 25.392-b08\nJDK 8.0_392\n", Some(8)),
            ("JDK 1.8.0", Some(8)),
            ("JDK 26-internal", Some(26)),
            ("JDK ", None),
            ("", None),
        ] {
            assert_eq!(version_of(text).and_then(release), expected, "{text}");
        }
    }
}
