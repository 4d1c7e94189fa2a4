//! Memory that this process may still take, and the limit that determines it.
//!
//! The memory budget for building is derived from it: large arrays that do not fit are stored in files.
//! Linux reports free memory, control groups and the limits of the process; on other systems nothing is
//! known, and building takes the preferred amount.

use std::fmt;

use super::human_bytes::HumanBytes;

/// Share, in quarters, of the memory that other programs and the page cache use too: dump and index are
/// read through the page cache, and building is slow without it.
const QUARTERS: u64 = 3;

/// Origin of a memory limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Given by the user.
    Given,
    /// Free memory of the machine.
    Free,
    /// Control group of this process.
    Group,
    /// Limit of the process's data: `ulimit -d`, `prlimit --data`.
    Data,
    /// Limit of the process's address space: `ulimit -v`, `prlimit --as`. Mapped files count.
    Addresses,
}

impl Limit {
    /// Returns a description of the limit for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Given => "the memory budget",
            Self::Free => "free memory",
            Self::Group => "the control group's limit",
            Self::Data => "ulimit -d",
            Self::Addresses => "ulimit -v",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Amount of memory that may still be taken, and the limit that determines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Available {
    /// Number of bytes that may still be taken.
    pub bytes: u64,
    /// Origin of the limit.
    pub limit: Limit,
}

impl Available {
    /// Returns `true` if the system refuses memory beyond the limit, or the user gave it. Free memory and
    /// the rest of a control group are momentary and exclude swap: they determine how much to take, not
    /// whether a build can succeed.
    pub(crate) fn is_hard_limit(self) -> bool {
        matches!(self.limit, Limit::Given | Limit::Data | Limit::Addresses)
    }
}

/// Returns the smallest limit. `given` replaces free memory and the control group's limit, but not limits
/// at which the system refuses memory. `None` if there is no known limit.
pub fn available(given: Option<u64>) -> Option<Available> {
    let own = Own::now();
    let found = |limit| move |bytes| Available { bytes, limit };
    let free = match given {
        Some(given) => Some(found(Limit::Given)(given.saturating_sub(own.private))),
        None => {
            let shared = |bytes: u64| bytes / 4 * QUARTERS;
            let free = system::free().map(shared).map(found(Limit::Free));
            let group = system::group().map(shared).map(found(Limit::Group));
            min_available(free, group)
        }
    };
    let data = system::data_limit().map(|bytes| found(Limit::Data)(bytes.saturating_sub(own.data)));
    min_available(min_available(free, data), addresses())
}

/// Returns the address space left by `ulimit -v`, for which mapped files count as much as memory.
pub(crate) fn addresses() -> Option<Available> {
    let limit = system::address_limit()?;
    let used = Own::now().addresses.saturating_sub(reserved_bytes());
    Some(Available { bytes: limit.saturating_sub(used), limit: Limit::Addresses })
}

/// Returns the address space left by `ulimit -v`, excluding what the allocator has reserved for threads.
pub(crate) fn addresses_unused() -> Option<Available> {
    let bytes = system::address_limit()?.saturating_sub(Own::now().addresses);
    Some(Available { bytes, limit: Limit::Addresses })
}

/// Returns the unused address space that the allocator reserves for threads: 64 MiB each.
fn reserved_bytes() -> u64 {
    std::fs::read_to_string("/proc/self/maps").map_or(0, |maps| maps.lines().filter_map(reserved_by).sum())
}

/// Returns the unused address space of one line of `/proc/self/maps` that the allocator reserves for threads.
fn reserved_by(line: &str) -> Option<u64> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let number = |hexadecimal| u64::from_str_radix(hexadecimal, 16).ok();
    rest.starts_with("---p").then_some(number(end)?.checked_sub(number(start)?)?)
}

fn min_available(one: Option<Available>, other: Option<Available>) -> Option<Available> {
    one.into_iter().chain(other).min_by_key(|available| available.bytes)
}

/// Memory taken by this process: resident anonymous memory, data as the system limits it, and address
/// space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Own {
    private: u64,
    data: u64,
    addresses: u64,
}

impl Own {
    fn now() -> Self {
        std::fs::read_to_string("/proc/self/status").map(|text| Self::from_status(&text)).unwrap_or_default()
    }

    /// Parses the contents of `/proc/self/status`.
    fn from_status(status: &str) -> Self {
        let bytes = |name| bytes_of_line(status, name).unwrap_or(0);
        Self { private: bytes("RssAnon"), data: bytes("VmData"), addresses: bytes("VmSize") }
    }
}

/// Returns the number of a line `NAME:   123 kB`, in bytes.
fn bytes_of_line(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(target_os = "linux")]
mod system {
    use std::path::Path;

    use rustix::process::{Resource, getrlimit};

    /// Returns the free memory of the machine.
    pub(crate) fn free() -> Option<u64> {
        super::bytes_of_line(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable")
    }

    /// Returns the memory left by the control groups of this process.
    pub(crate) fn group() -> Option<u64> {
        let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        super::group::available(Path::new("/sys/fs/cgroup"), &own)
    }

    /// Returns the limit of the process's data.
    pub(crate) fn data_limit() -> Option<u64> {
        getrlimit(Resource::Data).current
    }

    /// Returns the limit of the process's address space.
    pub(crate) fn address_limit() -> Option<u64> {
        getrlimit(Resource::As).current
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(crate) fn free() -> Option<u64> {
        None
    }

    pub(crate) fn group() -> Option<u64> {
        None
    }

    pub(crate) fn data_limit() -> Option<u64> {
        None
    }

    pub(crate) fn address_limit() -> Option<u64> {
        None
    }
}

/// Control groups of both versions.
#[cfg(any(target_os = "linux", test))]
mod group {
    use std::fs;
    use std::path::{Component, Path, PathBuf};

    /// Files of one version: the limit, the usage, and the lines of `memory.stat` for the page cache.
    struct Version {
        limit: &'static str,
        usage: &'static str,
        cache: [&'static str; 2],
    }

    const FIRST: Version = Version {
        limit: "memory.limit_in_bytes",
        usage: "memory.usage_in_bytes",
        cache: ["total_inactive_file", "total_active_file"],
    };
    const SECOND: Version =
        Version { limit: "memory.max", usage: "memory.current", cache: ["inactive_file", "active_file"] };

    /// Returns the memory left by the limits of a process's groups. `own` is its `/proc/self/cgroup`, `mount` the mount point
    /// of control groups.
    pub(crate) fn available(mount: &Path, own: &str) -> Option<u64> {
        let lines = own.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (id, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            if controllers.split(',').any(|name| name == "memory") {
                Some((mount.join("memory"), path, &FIRST))
            } else {
                (id == "0" && controllers.is_empty()).then(|| (mount.to_owned(), path, &SECOND))
            }
        });
        lines.filter_map(|(mount, path, version)| least_above(&mount, path, version)).min()
    }

    /// Returns the least memory left by the limit of a group or of one of its parents.
    fn least_above(mount: &Path, path: &str, version: &Version) -> Option<u64> {
        // In a container, the path may be that outside it: then the mount itself is the group. A path
        // that leads out of the mount is ignored.
        let parts = Path::new(path).components().filter_map(|part| match part {
            Component::Normal(part) => Some(part),
            _ => None,
        });
        let own: PathBuf = mount.join(parts.collect::<PathBuf>());
        let groups = own.ancestors().take_while(|group| group.starts_with(mount));
        groups.filter_map(|group| remaining_bytes(group, version)).min()
    }

    /// Returns the memory left by one group's limit: the page cache charged to it is released when memory is needed.
    fn remaining_bytes(group: &Path, version: &Version) -> Option<u64> {
        let number = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
        // "max", or a number that exceeds any machine: no limit.
        let limit = number(version.limit).filter(|limit| *limit < 1 << 60)?;
        let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
        let cache = stat.lines().filter_map(|line| {
            let (name, bytes) = line.split_once(' ')?;
            version.cache.contains(&name).then(|| bytes.trim().parse::<u64>().ok()).flatten()
        });
        let cache: u64 = cache.fold(0, u64::saturating_add);
        let used = number(version.usage).unwrap_or(0).saturating_sub(cache);
        Some(limit.saturating_sub(used))
    }
}

/// Working memory of a process that builds an index, without large arrays and threads, in bytes.
const WORKING_MEMORY: u64 = 8 << 20;
/// Working memory of each thread that builds an index, in bytes.
const WORKING_MEMORY_OF_A_THREAD: u64 = 12 << 20;

/// Returns the memory that building takes in addition to large arrays.
pub(crate) fn working_memory(threads: usize) -> u64 {
    WORKING_MEMORY + threads as u64 * WORKING_MEMORY_OF_A_THREAD
}

/// Returns the number of threads to use if there is not enough memory for all.
pub fn threads(given: Option<u64>) -> Option<usize> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let available = available(given)?;
    // Half of the memory may be their working memory, and each takes a stack.
    let enough =
        usize::try_from(available.bytes / 2 / (WORKING_MEMORY_OF_A_THREAD + (4 << 20))).unwrap_or(usize::MAX);
    (enough < cores).then_some(enough.max(1))
}

/// Error for too little memory to build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoMemory {
    /// Number of bytes that are needed in addition, at least.
    pub needed_bytes: u64,
    /// Available memory.
    pub available: Available,
}

impl fmt::Display for NoMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Available { bytes, limit } = self.available;
        let (needed, left) = (HumanBytes(self.needed_bytes), HumanBytes(bytes));
        write!(
            f,
            "at least {needed} more memory is needed, but only {left} is available (limited by {limit})"
        )
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn memory_files_of_linux_are_read() {
        let meminfo = "MemTotal:       24600000 kB\nMemFree:          120 kB\nMemAvailable:   2048 kB\n";
        assert_eq!(bytes_of_line(meminfo, "MemAvailable"), Some(2 << 20));
        assert_eq!(bytes_of_line(meminfo, "Mem"), None);
        assert_eq!(bytes_of_line("MemAvailable: many kB", "MemAvailable"), None);
        assert_eq!(bytes_of_line("", "MemAvailable"), None);
        let status = "Name:\thprof-cli\nVmSize:\t  4000 kB\nRssAnon:\t     3 kB\nVmData:\t     20 kB\n";
        assert_eq!(Own::from_status(status), Own { private: 3 << 10, data: 20 << 10, addresses: 4000 << 10 });
        assert_eq!(Own::from_status("nothing"), Own::default());
        let maps = [
            "7f0000001000-7f0000021000 rw-p 00000000 00:00 0",
            "7f0000021000-7f0004000000 ---p 00000000 00:00 0 ",
        ];
        assert_eq!(maps.map(reserved_by), [None, Some(0x3FD_F000)]);
        assert_eq!(["", "nothing", "2-1 ---p", "x-y ---p"].map(reserved_by), [None; 4]);
    }

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let file = dir.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        dir
    }

    #[test]
    fn the_least_of_a_group_and_those_above_it_counts() {
        let second = tree(&[
            ("a/memory.max", "5000\n"),
            ("a/memory.current", "4000\n"),
            ("a/memory.stat", "anon 100\ninactive_file 600\nactive_file 300\nshmem 50\n"),
            ("a/b/memory.max", "max\n"),
            ("a/b/memory.current", "100\n"),
            ("c/memory.max", "7\n"),
        ]);
        assert_eq!(group::available(second.path(), "0::/a/b\n"), Some(1900));
        assert_eq!(group::available(second.path(), "0::/a\n"), Some(1900));
        assert_eq!(group::available(second.path(), "0::/c/gone\n"), Some(7));
        assert_eq!(group::available(second.path(), "0::/\n"), None);
        assert_eq!(group::available(second.path(), "0::/../../a\n"), Some(1900));
        let first = tree(&[
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/x/memory.limit_in_bytes", "1000\n"),
            ("memory/x/memory.usage_in_bytes", "800\n"),
            ("memory/x/memory.stat", "inactive_file 1\ntotal_inactive_file 200\ntotal_active_file 100\n"),
        ]);
        let own = "9:name=systemd:/\n4:cpu,memory:/x\n0::/\n";
        assert_eq!(group::available(first.path(), own), Some(500));
        assert_eq!(group::available(first.path(), "4:memory:/outside\n"), None);
        assert_eq!(group::available(first.path(), "nonsense\n::\n"), None);
        assert_eq!(group::available(Path::new("/nowhere"), own), None);
    }

    #[test]
    fn what_is_given_is_never_exceeded() {
        let available = available(Some(1)).unwrap();
        assert_eq!(available.bytes, 0);
    }
}
