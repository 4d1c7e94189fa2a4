//! Plan of a heap dump: where the JVM writes, how much, and how long it stands still.

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
use crate::place::{EntryFacts, OutputPlace, PlaceDir};

/// First JDK that writes a dump in segments, which it merges afterwards.
const SEGMENTS_SINCE: u32 = 22;

/// Length of a dump as a share of the heap: each object takes 25 bytes in addition, and references take 8 bytes each, which in
/// most heaps take 4. Heaps of small objects result in up to twice their size, heaps of large arrays in about their size.
const DUMP_PER_HEAP: (u64, u64) = (3, 2);

/// Speed at which JVMs wrote dumps, in bytes per second, with the collection before: about the middle of the values in
/// docs/capture.md, which were measured on a busy machine.
const BYTES_PER_SECOND: u64 = 150_000_000;

/// Speed through a FIFO into gzip and zstd, whose compressors are slower than JVMs.
const GZIP_BYTES_PER_SECOND: u64 = 75_000_000;
const ZSTD_BYTES_PER_SECOND: u64 = 100_000_000;

/// Request for a dump.
#[derive(Debug, Clone, Copy)]
pub struct Request<'r> {
    /// `true` if the JVM collects garbage first and dumps only what is left.
    pub is_live: bool,
    /// Directory of the output file; `None` for a stream.
    pub to: Option<OutputDir<'r>>,
    /// Compression of the dump.
    pub compression: Option<Compression>,
    /// `true` if this process changes the bytes: the JVM may not write the file itself.
    pub is_filtered: bool,
    /// Maximum time for each answer of the JVM; by default only commands that take no time are limited.
    pub limit: Option<Duration>,
}

/// The directory of an output file.
#[derive(Debug, Clone, Copy)]
pub enum OutputDir<'r> {
    /// Everything in it is done as the user of this process: nobody else may change it, or this user is not root.
    Own {
        /// Open directory.
        fd: BorrowedFd<'r>,
        /// Path of the directory, without links.
        path: &'r Path,
    },
    /// Others may change it.
    Foreign(&'r OutputPlace),
}

impl<'r> OutputDir<'r> {
    /// Returns its path.
    pub fn path(&self) -> &'r Path {
        match self {
            Self::Own { path, .. } => path,
            Self::Foreign(place) => place.path(),
        }
    }

    /// Returns the open directory.
    pub fn fd(&self) -> BorrowedFd<'r> {
        match self {
            Self::Own { fd, .. } => *fd,
            Self::Foreign(place) => place.fd(),
        }
    }
}

/// Way in which the bytes of a dump get from the JVM to their destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Way {
    /// The JVM writes a file next to the destination, which gets its name at the end.
    Beside,
    /// The JVM writes a file next to the destination, which is then compressed.
    BesideAndCompress,
    /// The JVM writes a file in its own `/tmp`, from where it is copied.
    Inside,
    /// The JVM writes to a FIFO.
    Fifo,
}

/// A directory with less space than the dump takes if nothing in the heap is garbage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tight {
    /// Directory.
    pub place: PathBuf,
    /// Free bytes.
    pub free_bytes: u64,
    /// Bytes needed, if nothing is garbage.
    pub needed_bytes: u64,
}

/// Divisor of the space that a dump of reachable objects needs if nothing is garbage: with less than this share, it is not
/// tried. JVMs collect when the heap is full, so often most of the used heap is garbage.
const LEAST: u64 = 10;

/// Plan of a heap dump: its way, and estimates of space and time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Plan {
    /// JVM.
    pub row: JvmRow,
    /// Feature release of the JVM.
    pub release: u32,
    /// Way in which the bytes get here.
    pub way: Way,
    /// `true` if the JVM collects garbage first.
    pub is_live: bool,
    /// Compression of the dump.
    pub compression: Option<Compression>,
    /// Used bytes of the heap now, including garbage.
    pub heap_used_bytes: u64,
    /// Estimated length of the dump before compression.
    pub dump_bytes: u64,
    /// Directory in which the JVM writes, as this process sees it.
    pub place: PathBuf,
    /// The same directory as the JVM sees it.
    pub(crate) inner: String,
    /// Bytes that the JVM needs there.
    pub needed_bytes: u64,
    /// Bytes that are free there; `None` if the file system does not state it.
    pub free_bytes: Option<u64>,
    /// Directory where the dump fits only if much of the heap is garbage.
    pub tight: Option<Tight>,
    /// `true` if the JVM writes segments, and then merges them.
    pub is_segmented: bool,
    /// Estimated time for which the JVM's threads stand still.
    pub standstill: Duration,
    /// Speed on which that estimate is based.
    pub bytes_per_second: u64,
}

impl Plan {
    /// Creates the plan for the JVM in `row`. Queries the JVM for its version and the size of its heap. Also returns the open
    /// directory in which the JVM writes.
    ///
    /// # Errors
    ///
    /// If the JVM does not answer, or there is too little space.
    pub(crate) fn new(
        jvm: &Jvm<'_>,
        mut row: JvmRow,
        request: Request<'_>,
    ) -> Result<(Self, PlaceDir), Error> {
        let process = jvm.process();
        let pid = process.pid();
        let info = jvm.jcmd("GC.heap_info", Some(TO_ANSWER));
        // JDK 8 has no such command.
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
            Some(to) => reachable(to, jvm)?,
            None => None,
        };
        let is_copied = request.compression.is_some() || request.is_filtered;
        let is_stream = is_copied || beside.is_none();
        let way = match &beside {
            _ if is_stream && !is_segmented && can_overwrite(jvm)? => Way::Fifo,
            Some(_) if is_copied => Way::BesideAndCompress,
            Some(_) => Way::Beside,
            None => Way::Inside,
        };
        let (dir, inner) = match beside {
            Some((dir, inner)) if way != Way::Fifo => (dir, inner),
            _ => {
                let place = process.proc_path("root/tmp");
                let tmp = jvm.door().root().and_then(|root| root.open_below("tmp"));
                (tmp.map_err(|source| cannot_open(&place, source))?, "/tmp".to_owned())
            }
        };
        let place = dir.place().to_owned();
        let dump_bytes = heap_used_bytes.saturating_mul(DUMP_PER_HEAP.0) / DUMP_PER_HEAP.1;
        let needed_bytes = match way {
            Way::Fifo => 0,
            _ if is_segmented => dump_bytes.saturating_mul(2),
            _ => dump_bytes,
        };
        let bytes_per_second = match (way, request.compression) {
            (Way::Fifo, Some(Compression::Gzip)) => GZIP_BYTES_PER_SECOND,
            (Way::Fifo, Some(Compression::Zstd)) => ZSTD_BYTES_PER_SECOND,
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

    /// Completes a plan by its destination, which may be on another machine than the JVM.
    ///
    /// # Errors
    ///
    /// If there is too little space.
    pub(crate) fn with_destination(mut self, request: Request<'_>) -> Result<Self, Error> {
        self.compression = request.compression;
        // A compressed dump takes a tenth to a half; the length is not known before.
        let is_copy = matches!(self.way, Way::Inside | Way::Fifo) && self.compression.is_none();
        if let Some(dir) = request.to.filter(|_| is_copy) {
            let free = fstatvfs(dir.fd()).ok().and_then(|stat| free(&stat));
            let tight = self.space(dir.path(), free, self.dump_bytes, false)?;
            self.tight = self.tight.or(tight);
        }
        Ok(self)
    }

    /// Checks that there is enough space where the JVM writes.
    fn check_inside(&self) -> Result<Option<Tight>, Error> {
        self.space(&self.place, self.free_bytes, self.needed_bytes, self.is_segmented)
    }

    fn space(
        &self,
        place: &Path,
        free: Option<u64>,
        needed: u64,
        is_twice: bool,
    ) -> Result<Option<Tight>, Error> {
        let Some(free) = free.filter(|free| *free < needed) else { return Ok(None) };
        let place = place.to_owned();
        if self.is_live && free >= needed / LEAST {
            return Ok(Some(Tight { place, free_bytes: free, needed_bytes: needed }));
        }
        Err(Error::Space { place, free, needed, is_twice })
    }
}

/// A directory and its path as the JVM sees it.
type ReachedDir = (PlaceDir, String);

/// Opens the directory of the destination for a JVM that sees the same files, if it can reach it under the same name.
fn reachable(to: OutputDir<'_>, jvm: &Jvm<'_>) -> Result<Option<ReachedDir>, Error> {
    let fail = |source| cannot_open(to.path(), source);
    let Some(inner) = to.path().to_str().map(str::to_owned) else { return Ok(None) };
    let owner = jvm.process().status().identity;
    let dir = match to {
        // A JVM that writes in a directory of others could be redirected by them.
        OutputDir::Foreign(place) if place.user() == owner.user && is_safe(place, owner) => {
            place.dir().clone()
        }
        OutputDir::Foreign(_) => return Ok(None),
        OutputDir::Own { fd, path } => {
            let id = EntryFacts::new(&fstat(fd).map_err(|error| fail(error.into()))?).id();
            let reached = jvm.door().root().and_then(|root| root.open_below(&inner));
            let is_it = |dir: PlaceDir| dir.facts().id() == id && dir.check_searchable().is_ok();
            if !reached.is_ok_and(is_it) {
                return Ok(None);
            }
            let dir = match owner == Identity::own() {
                true => jvm.door().adopt(fd, path.to_owned()),
                false => {
                    let own = Arc::new(jvm.doors().as_user(Identity::own(), &[])?);
                    own.adopt(fd, path.to_owned())
                }
            }
            .map_err(fail)?;
            // Root may write where its children, without capabilities, cannot.
            if dir.check_writable().is_err() {
                return Ok(None);
            }
            dir
        }
    };
    Ok(Some((dir, inner)))
}

/// Returns whether only the JVM's user, or nobody but the owner of each entry, may change entries of a directory.
fn is_safe(place: &OutputPlace, owner: Identity) -> bool {
    const STICKY: u32 = 0o1000;
    let facts = place.dir().facts();
    let is_shared = facts.mode & 0o022 != 0;
    let is_sticky = facts.mode & STICKY != 0;
    [owner.user, 0].contains(&facts.user) && (!is_shared || is_sticky)
}

/// Returns whether the JVM writes a dump to an existing file.
fn can_overwrite(jvm: &Jvm<'_>) -> Result<bool, Error> {
    match jvm.jcmd("help GC.heap_dump", Some(TO_ANSWER)) {
        Ok(help) => Ok(help.contains("-overwrite")),
        Err(Error::Refused { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the version in the answer to `VM.version`: 8.0_392, 17.0.15.
fn version_of(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.trim().strip_prefix("JDK ")).filter(|version| !version.is_empty())
}

/// Returns the feature release of a version: 8, 17.
fn release(version: &str) -> Option<u32> {
    let mut numbers = version.split(|letter: char| !letter.is_ascii_digit());
    match numbers.next()?.parse().ok()? {
        1 => numbers.next()?.parse().ok(),
        release => Some(release),
    }
}

/// Returns the free bytes of a file system; `None` if it has no sizes, as some network mounts.
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
            way: Way::Beside,
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
        let tight = Tight { place: "/d".into(), free_bytes: 150, needed_bytes: 1500 };
        assert!(matches!(plan.check_inside(), Ok(Some(found)) if found == tight));
        plan.free_bytes = Some(149);
        assert!(matches!(plan.check_inside(), Err(Error::Space { free: 149, needed: 1500, .. })));
        (plan.is_live, plan.free_bytes) = (false, Some(1499));
        assert!(matches!(plan.check_inside(), Err(Error::Space { .. })));
        plan.free_bytes = None;
        assert!(matches!(plan.check_inside(), Ok(None)));
        // A file system of the kernel, which has no sizes.
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
