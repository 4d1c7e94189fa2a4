//! The files in which the kernel says how much memory a process has. They are read, not interpreted.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::mounts::unescape_mount;
use crate::processes::Process;

/// Contents of the files about a process's memory, read at about the same time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryFiles {
    /// `/proc/PID/smaps`, without the lines that nobody needs.
    pub smaps: String,
    /// `/proc/PID/status`.
    pub status: String,
    /// Number of threads.
    pub threads: u64,
    /// Stack pointers of threads that wait in the kernel, sorted; empty if the kernel does not permit to read them.
    pub stack_pointers: Vec<u64>,
    /// Resident bytes of the parts of the requested ranges that share a mapping with other memory: start, end, bytes.
    pub clipped: Vec<(u64, u64, u64)>,
    /// Control groups with the memory of the process, innermost first.
    pub cgroups: Vec<CgroupFiles>,
}

/// Contents of files of a control group's directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupFiles {
    /// Path of the control group below the root of the hierarchy.
    pub path: String,
    /// Names and contents.
    pub files: Vec<(String, String)>,
}

/// Maximum length of what is kept of `smaps`: about 100 bytes for a mapping. Linux permits 65,530 mappings by default,
/// Elasticsearch asks for 262,144.
const MAX_SMAPS: usize = 28 << 20;
/// Lines of `smaps` that are kept, besides those with the addresses.
const KEPT: [&str; 5] = ["Rss:", "Pss:", "SwapPss:", "Private_Hugetlb:", "Shared_Hugetlb:"];
/// Maximum number of threads whose stack pointers are read.
const MAX_THREADS: usize = 1 << 16;
/// Maximum number of control groups from the innermost to the root.
const MAX_LEVELS: usize = 32;
/// Maximum length of a file of a control group that is read.
const MAX_FILE: u64 = 1 << 18;
/// Maximum length of the list of mounts that is read.
const MAX_MOUNTS: u64 = 4 << 20;
/// Length of an entry of `/proc/PID/pagemap`, one for each page.
const ENTRY: usize = 8;
/// Bit of an entry of `pagemap` that is set if the page is in memory.
const PRESENT: u64 = 1 << 63;
/// Number of entries that are read at once.
const ENTRIES: usize = 1 << 16;

impl MemoryFiles {
    /// Reads the files about a process. `ranges` are ranges of addresses whose resident bytes are counted if they are not whole
    /// mappings; `names` are the names of the files of control groups.
    ///
    /// # Errors
    ///
    /// If the process belongs to another user, cannot be inspected, or has ended.
    pub(crate) fn read(process: &Process, ranges: &[(u64, u64)], names: &[String]) -> Result<Self, Error> {
        let pid = process.pid();
        let smaps = smaps(&process.proc_path("smaps")).map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => process.access_error(),
            ErrorKind::FileTooLarge => Error::TooLong { pid, max: MAX_SMAPS },
            _ => Error::Ended { pid },
        })?;
        let clipped = resident_parts(process, &smaps, ranges);
        let status = text(&process.proc_path("status"), MAX_FILE).unwrap_or_default();
        let (threads, stack_pointers) = stack_pointers(process);
        let cgroups = cgroups(process, names);
        // All files are about the process that was found, and not about a later one with its ID.
        process.status_now().ok_or(Error::Ended { pid })?;
        Ok(Self { smaps, status, threads, stack_pointers, clipped, cgroups })
    }
}

/// Reads `smaps`, without the lines that nobody needs.
fn smaps(path: &Path) -> std::io::Result<String> {
    let mut kept = Vec::new();
    let mut file = BufReader::with_capacity(1 << 16, File::open(path)?);
    let mut line = Vec::new();
    // The kernel shortens paths to a page.
    while (&mut file).take(1 << 16).read_until(b'\n', &mut line)? > 0 {
        match line.first() {
            // `Rss:                  12 kB`
            Some(b'A'..=b'Z') if KEPT.iter().any(|name| line.starts_with(name.as_bytes())) => {
                let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
                let (name, number) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
                if number != b"0" {
                    kept.extend_from_slice(&[name, b" ", number, b" kB\n"].concat());
                }
            }
            Some(b'A'..=b'Z') => {}
            _ => kept.extend_from_slice(&line),
        }
        if kept.len() > MAX_SMAPS {
            return Err(ErrorKind::FileTooLarge.into());
        }
        line.clear();
    }
    Ok(String::from_utf8_lossy(&kept).into_owned())
}

/// Reads a text file of at most `max` bytes.
fn text(path: &Path, max: u64) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(ErrorKind::FileTooLarge.into());
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Counts the resident bytes of the parts of ranges that do not fill a mapping.
fn resident_parts(process: &Process, smaps: &str, ranges: &[(u64, u64)]) -> Vec<(u64, u64, u64)> {
    let Ok(pagemap) = File::open(process.proc_path("pagemap")) else { return Vec::new() };
    let mut parts = Vec::new();
    let mut current = None;
    for line in smaps.lines() {
        if let Some(kib) = line.strip_prefix("Rss: ").and_then(|rest| rest.strip_suffix(" kB")) {
            // Without this line, nothing of a mapping is resident, however large it is.
            let resident = kib.parse::<u64>().unwrap_or(0).saturating_mul(1 << 10);
            let Some((start, end)) = current.take() else { continue };
            for range in ranges {
                let (from, to) = (range.0.max(start), range.1.min(end));
                if from < to && (from, to) != (start, end) {
                    parts.extend(resident_bytes(&pagemap, from, to, resident).map(|bytes| (from, to, bytes)));
                }
            }
        } else if let Some(range) = head(line) {
            current = Some(range);
        }
    }
    parts
}

/// Returns the addresses of a mapping from its first line.
fn head(line: &str) -> Option<(u64, u64)> {
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
}

/// Counts the resident bytes of a range by `/proc/PID/pagemap` (Linux: Documentation/admin-guide/mm/pagemap.rst), up to those of
/// its mapping.
fn resident_bytes(pagemap: &File, start: u64, end: u64, of_mapping: u64) -> Option<u64> {
    let page = rustix::param::page_size() as u64;
    let (mut at, last) = (start / page, end.div_ceil(page));
    let mut entries = vec![0; ENTRIES * ENTRY];
    let mut present: u64 = 0;
    while at < last && present.saturating_mul(page) < of_mapping {
        let length = usize::try_from((last - at).saturating_mul(ENTRY as u64)).ok()?.min(entries.len());
        let buffer = entries.get_mut(..length)?;
        let read = pagemap.read_at(buffer, at.checked_mul(ENTRY as u64)?).ok()?;
        let (whole, _) = buffer.get(..read)?.as_chunks::<ENTRY>();
        if whole.is_empty() {
            break;
        }
        present += whole.iter().filter(|entry| u64::from_ne_bytes(**entry) & PRESENT != 0).count() as u64;
        at += whole.len() as u64;
    }
    present.checked_mul(page)
}

/// Returns the number of threads, and the stack pointers of those that wait in the kernel.
fn stack_pointers(process: &Process) -> (u64, Vec<u64>) {
    let tasks = fs::read_dir(process.proc_path("task")).into_iter().flatten().flatten();
    let mut pointers = Vec::new();
    let mut threads = 0;
    for task in tasks.take(MAX_THREADS) {
        threads += 1;
        // The number of the system call, its arguments, the stack pointer and the program counter.
        let line = text(&task.path().join("syscall"), MAX_FILE).unwrap_or_default();
        let pointer = line.split_whitespace().rev().nth(1).and_then(|word| word.strip_prefix("0x"));
        pointers.extend(pointer.and_then(|digits| u64::from_str_radix(digits, 16).ok()));
    }
    pointers.sort_unstable();
    (threads, pointers)
}

/// Reads the control groups with the memory of a process, innermost first.
fn cgroups(process: &Process, names: &[String]) -> Vec<CgroupFiles> {
    let groups = text(&process.proc_path("cgroup"), MAX_FILE).unwrap_or_default();
    let mounts = text(Path::new("/proc/self/mountinfo"), MAX_MOUNTS).unwrap_or_default();
    let Some((mount, inner)) = memory_group(&groups, &mounts) else { return Vec::new() };
    let mut levels = Vec::new();
    let mut path = PathBuf::from(&inner);
    while levels.len() < MAX_LEVELS {
        let directory = mount.join(path.strip_prefix("/").unwrap_or(&path));
        let files =
            names.iter().filter_map(|name| Some((name.clone(), text(&directory.join(name), MAX_FILE).ok()?)));
        levels.push(CgroupFiles { path: path.display().to_string(), files: files.collect() });
        if !path.pop() {
            break;
        }
    }
    levels
}

/// Returns the mount point of the hierarchy with the memory controller, and the path of a process's group below it. `groups` is
/// the contents of `/proc/PID/cgroup`, `mounts` of `/proc/self/mountinfo`.
fn memory_group(groups: &str, mounts: &str) -> Option<(PathBuf, String)> {
    // Version 1 has a line for each hierarchy: `4:memory:/docker/ID`; version 2 has one: `0::/docker/ID`.
    let lines = || {
        groups.lines().filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            Some((fields.next()?, fields.next()?))
        })
    };
    let first = lines().find(|(controllers, _)| controllers.split(',').any(|name| name == "memory"));
    let unified = lines().find(|(controllers, _)| controllers.is_empty());
    let found =
        first.map(|group| ("cgroup", group.1)).into_iter().chain(unified.map(|group| ("cgroup2", group.1)));
    found.into_iter().find_map(|(kind, path)| {
        // ID, parent, device, root, mount point, options, ..., a hyphen, type, source, options of the file system.
        let mut mounted = mounts.lines().filter_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            let (mut before, mut after) = (before.split(' ').skip(3), after.split(' '));
            let (root, point) = (before.next()?, before.next()?);
            let options = (after.next() == Some(kind)).then(|| after.nth(1))??;
            let has_memory = kind == "cgroup2" || options.split(',').any(|option| option == "memory");
            has_memory.then_some((root, point))
        });
        mounted.find_map(|(root, point)| {
            // A process outside of what is mounted is in a group that cannot be read.
            let inner = Path::new(path).strip_prefix(unescape_mount(root)).ok()?;
            let is_below = !inner.components().any(|part| part == std::path::Component::ParentDir);
            let inner = Path::new("/").join(inner).display().to_string();
            is_below.then(|| (PathBuf::from(unescape_mount(point)), inner))
        })
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_below_the_mount_of_its_hierarchy() {
        let first = "36 25 0:31 / /sys/fs/cgroup/memory rw,nosuid shared:15 - cgroup cgroup rw,memory\n\
                     30 25 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n";
        let second = "30 25 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
        let inside = "30 25 0:27 /docker/a /sys/fs/cgroup ro - cgroup cgroup rw,memory\n";
        for (groups, mounts, expected) in [
            ("5:cpu:/\n4:memory:/docker/a\n0::/\n", first, Some(("/sys/fs/cgroup/memory", "/docker/a"))),
            ("0::/system.slice/x.scope\n", second, Some(("/sys/fs/cgroup", "/system.slice/x.scope"))),
            ("4:memory:/docker/a\n", inside, Some(("/sys/fs/cgroup", "/"))),
            // Outside of what is mounted.
            ("4:memory:/docker/abc\n", inside, None),
            ("4:memory:/\n", inside, None),
            (
                "0::/a b\n",
                "30 25 0:27 / /sys/fs\\040x rw - cgroup2 cgroup2 rw\n",
                Some(("/sys/fs x", "/a b")),
            ),
            // A group of another namespace.
            ("0::/../../x\n", second, None),
            ("0::/a\n", "", None),
            ("", second, None),
            ("x", "y - cgroup2", None),
        ] {
            let expected = expected.map(|(mount, path)| (PathBuf::from(mount), path.to_owned()));
            assert_eq!(memory_group(groups, mounts), expected, "{groups}");
        }
    }

    #[test]
    fn the_files_of_this_process_are_read() {
        let own = Process::find(std::process::id()).unwrap();
        let mut pages = vec![1_u8; 4 << 20];
        let start = pages.as_mut_ptr() as u64;
        let range = (start, start + pages.len() as u64);
        let found = MemoryFiles::read(&own, &[range], &["memory.stat".to_owned()]).unwrap();
        assert!(found.smaps.contains("Pss:") && found.status.contains("VmHWM"), "{}", found.status);
        assert!(found.threads > 0);
        // The bytes do not begin a mapping: glibc has a header before them.
        let bytes: u64 = found.clipped.iter().map(|(_, _, bytes)| bytes).sum();
        assert!(bytes.abs_diff(pages.len() as u64) <= 8192, "{:?}", found.clipped);
        assert_eq!(pages.iter().map(|byte| u64::from(*byte)).sum::<u64>(), 4 << 20);
    }
}
