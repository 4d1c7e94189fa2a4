//! Facts about a process from `/proc`: its identity, its JVM, and its container.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use crate::elf;
use crate::error::Error;
use crate::identity::Identity;
use crate::vm_kind::VmKind;

/// Maximum length of a file of `/proc` that is read. For JVMs with many libraries and mapped files, `maps` has some hundred
/// KiB.
const MAX_TEXT: u64 = 64 << 20;

/// Process, identified so that a later process with the same ID is not mistaken for it.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    status: Status,
    /// Start of the process, in clock ticks since the start of the system.
    started: u64,
    /// Handle of the process, unless the kernel is older than 5.3.
    handle: Option<OwnedFd>,
}

/// Contents of `/proc/PID/status` of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Name of the program, at most 15 bytes.
    pub name: String,
    /// State letter: `T` for a stopped process, `Z` for a process that has ended.
    pub state: char,
    /// Process ID; differs from the requested ID if that is the ID of a thread.
    pub process: u32,
    /// Process ID in the process's own PID namespace, which occurs in file names.
    pub namespace_pid: u32,
    /// Effective user and group.
    pub identity: Identity,
    /// Supplementary groups.
    pub groups: Vec<u32>,
    /// `true` if real, effective and saved user ID are equal.
    pub has_one_user: bool,
    /// Bit mask of the signals that the process handles.
    caught: u64,
    /// `true` if the process has memory. A process that ends first loses its memory, then its files.
    has_memory: bool,
}

/// Files that a process has mapped into its memory.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct MappedFiles {
    /// Path of `libjvm.so` as the process sees it.
    pub libjvm: Option<PathBuf>,
    /// `true` if the JVM is OpenJ9.
    is_openj9: bool,
    /// Path of the JVM's counter file, as the process sees it.
    pub perfdata: Option<String>,
}

impl Status {
    /// Parses the contents of the file.
    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
        };
        let effective = |name: &str| field(name)?.split_whitespace().nth(1)?.parse().ok();
        // Kernels without PID namespaces have no `NStgid`.
        let namespace_pid = field("NStgid").or_else(|| field("Tgid"))?.split_whitespace().last()?;
        Some(Self {
            name: field("Name").unwrap_or_default().to_owned(),
            state: field("State").and_then(|state| state.chars().next()).unwrap_or('?'),
            process: field("Tgid")?.parse().ok()?,
            namespace_pid: namespace_pid.parse().ok()?,
            identity: Identity { user: effective("Uid")?, group: effective("Gid")? },
            has_one_user: field("Uid").is_some_and(|users| {
                let mut users = users.split_whitespace().take(3);
                let first = users.next();
                users.all(|user| Some(user) == first)
            }),
            groups: (field("Groups").unwrap_or_default().split_whitespace())
                .filter_map(|group| group.parse().ok())
                .collect(),
            caught: u64::from_str_radix(field("SigCgt")?, 16).ok()?,
            has_memory: field("VmSize").is_some(),
        })
    }

    /// Returns whether the process is stopped, by a signal or a debugger.
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }

    /// Returns whether the process handles a signal. Other signals end it.
    pub fn handles(&self, signal: Signal) -> bool {
        let bit = u32::try_from(signal.as_raw()).unwrap_or(0).saturating_sub(1);
        self.caught.checked_shr(bit).unwrap_or(0) & 1 == 1
    }
}

impl Process {
    /// Finds a process.
    ///
    /// # Errors
    ///
    /// If the process does not exist, or the ID is the ID of a thread.
    pub fn find(pid: u32) -> Result<Self, Error> {
        // Opened first: everything that is read later is about this process, unless it has ended.
        let handle = raw(pid).and_then(|raw| pidfd_open(raw, PidfdFlags::empty()).ok());
        let status = lossy(&format!("/proc/{pid}/status")).and_then(|text| Status::parse(&text));
        let status = status.ok_or(Error::NoProcess { pid })?;
        if status.process != pid {
            return Err(Error::Thread { id: pid, pid: status.process });
        }
        let started = start_time(pid).ok_or(Error::NoProcess { pid })?;
        Ok(Self { pid, status, started, handle })
    }

    /// Returns all processes that can be read, in order of their IDs.
    pub fn all() -> Vec<Self> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let mut pids: Vec<u32> =
            entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        pids.sort_unstable();
        pids.into_iter().filter_map(|pid| Self::find(pid).ok()).collect()
    }

    /// Returns the process ID.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the status of the process when it was found.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// Reads the status of the process again; `None` if it has ended, or is ending.
    pub fn status_now(&self) -> Option<Status> {
        let status = Status::parse(&self.text("status")?)?;
        let lives = status.has_memory && status.state != 'Z' && start_time(self.pid) == Some(self.started);
        lives.then_some(status)
    }

    /// Sends a signal to the process.
    ///
    /// # Errors
    ///
    /// If the process has ended, or belongs to another user.
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Error> {
        let sent = match &self.handle {
            Some(handle) => pidfd_send_signal(handle, signal),
            None if start_time(self.pid) == Some(self.started) => {
                raw(self.pid).ok_or(Errno::SRCH).and_then(|pid| kill_process(pid, signal))
            }
            None => Err(Errno::SRCH),
        };
        sent.map_err(|error| match error {
            Errno::SRCH => Error::Ended { pid: self.pid },
            error => Error::Signal { pid: self.pid, source: error.into() },
        })
    }

    /// Returns the path of a file of the process below `/proc`.
    pub(crate) fn proc_path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.pid))
    }

    /// Returns whether the process sees the same files by the same paths as the current process.
    pub fn sees_our_files(&self) -> bool {
        let same = |of: fn(&Path) -> Option<(u64, u64)>, name: &str| {
            of(&self.proc_path(name)).is_some_and(|id| Some(id) == of(&Path::new("/proc/self").join(name)))
        };
        let id = |path: &Path| fs::metadata(path).ok().map(|there| (there.dev(), there.ino()));
        same(id, "ns/mnt") && same(id, "root")
    }

    /// Reads a text file below `/proc/PID`.
    fn text(&self, name: &str) -> Option<String> {
        self.bytes(name).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    fn bytes(&self, name: &str) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(self.proc_path(name))?.take(MAX_TEXT).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Returns the files that the process has mapped.
    ///
    /// # Errors
    ///
    /// If the process belongs to another user, cannot be inspected, or has ended.
    pub fn mapped_files(&self) -> Result<MappedFiles, Error> {
        match self.bytes("maps") {
            Ok(maps) => Ok(MappedFiles::parse(&maps)),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Err(self.access_error()),
            Err(_) => Err(Error::Ended { pid: self.pid }),
        }
    }

    /// Returns the error for a file of the process that must not be read.
    pub(crate) fn access_error(&self) -> Error {
        access_error(self.pid, self.status.identity.user, Identity::own().user)
    }

    /// Returns the kind of the process's virtual machine, if it has one.
    pub fn vm(&self, mapped: &MappedFiles) -> Option<VmKind> {
        match mapped {
            MappedFiles { is_openj9: true, .. } => Some(VmKind::OpenJ9),
            MappedFiles { libjvm: Some(_), .. } => Some(VmKind::HotSpot),
            // Programs compiled by GraalVM have a section with the image of their initial heap.
            _ => {
                let program = File::open(self.proc_path("exe")).ok()?;
                elf::has_section(&program, ".svm_heap")?.then_some(VmKind::NativeImage)
            }
        }
    }

    /// Returns the arguments of the process; the first one is the program.
    pub fn arguments(&self) -> Vec<String> {
        let bytes = self.bytes("cmdline").unwrap_or_default();
        let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
        if bytes.is_empty() {
            return Vec::new();
        }
        bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    /// Returns the ID of the container in which the process runs, from its control groups.
    pub fn container(&self) -> Option<String> {
        container(&self.text("cgroup")?)
    }

    /// Returns the time since the process started.
    pub fn uptime(&self) -> Option<Duration> {
        let up = fs::read_to_string("/proc/uptime").ok()?;
        let up: f64 = up.split_whitespace().next()?.parse().ok()?;
        let started = Duration::from_millis(
            self.started.saturating_mul(1000) / rustix::param::clock_ticks_per_second().max(1),
        );
        Some(Duration::try_from_secs_f64(up).ok()?.saturating_sub(started))
    }
}

fn raw(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// Returns the error for a process that cannot be inspected. Normally, its user and root with all capabilities can.
fn access_error(pid: u32, user: u32, own: u32) -> Error {
    if user == own || own == 0 { Error::Hidden { pid } } else { Error::OtherUser { pid, user, own } }
}

/// Reads a text file with the name of a program, which may contain any bytes.
fn lossy(path: &str) -> Option<String> {
    fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the start of a process, in clock ticks since the start of the system.
fn start_time(pid: u32) -> Option<u64> {
    let stat = lossy(&format!("/proc/{pid}/stat"))?;
    // The name may contain spaces and parentheses.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

impl MappedFiles {
    /// Parses `/proc/PID/maps`.
    fn parse(maps: &[u8]) -> Self {
        let mut mapped = Self::default();
        for line in maps.split(|byte| *byte == b'\n') {
            // Address, permissions, offset, device, inode, path.
            let Some(path) = line.iter().position(|byte| *byte == b'/').and_then(|at| line.get(at..)) else {
                continue;
            };
            let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
            let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            if name == b"libjvm.so" && mapped.libjvm.is_none() {
                mapped.libjvm = Some(std::ffi::OsString::from_vec(path.to_owned()).into());
            } else if name.starts_with(b"libj9vm") {
                mapped.is_openj9 = true;
            } else if mapped.perfdata.is_none()
                && let Some(path) = std::str::from_utf8(path).ok().filter(|path| is_perfdata(path))
            {
                mapped.perfdata = Some(path.to_owned());
            }
        }
        mapped
    }
}

/// Returns whether a path is a JVM's counter file: `/tmp/hsperfdata_USER/PID`.
fn is_perfdata(path: &str) -> bool {
    let mut names = path.rsplit('/');
    let pid = names.next().unwrap_or_default();
    !pid.is_empty()
        && pid.bytes().all(|byte| byte.is_ascii_digit())
        && names.next().is_some_and(|dir| dir.starts_with("hsperfdata_"))
}

/// Length of a container ID in hexadecimal digits.
const CONTAINER_ID: usize = 64;

/// Returns the ID of the innermost container in `/proc/PID/cgroup`. Version 1 of cgroups has a line for each controller,
/// version 2 a single line:
///
/// ```text
/// 4:memory:/docker/ID
/// 0::/system.slice/docker-ID.scope
/// 0::/kubepods.slice/kubepods-pod7.slice/cri-containerd-ID.scope
/// ```
fn container(text: &str) -> Option<String> {
    let paths = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let mut ids = paths.filter_map(|path| {
        path.rsplit('/').find_map(|part| {
            let part = part.strip_suffix(".scope").unwrap_or(part);
            let words = part.split(['-', ':', '_', '.']);
            let mut ids = words.filter(|word| {
                word.len() == CONTAINER_ID && word.bytes().all(|byte| byte.is_ascii_hexdigit())
            });
            ids.next_back().map(str::to_owned)
        })
    });
    ids.next_back()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_process_in_a_container_has_another_id_there() {
        let text = "Name:\tjava\nState:\tT (stopped)\nTgid:\t4711\nPid:\t4711\nUid:\t1000\t1001\t1000\t1000\n\
                    Gid:\t100\t101\t100\t100\nGroups:\t4 27 100 \nNStgid:\t4711\t7\nNSpid:\t4711\t7\nSigCgt:\t0000000181005ccf\n";
        let status = Status::parse(text).unwrap();
        assert_eq!(status.identity, Identity { user: 1001, group: 101 });
        assert_eq!(status.groups, [4, 27, 100]);
        assert!(!status.has_one_user);
        assert_eq!((status.process, status.namespace_pid, status.state), (4711, 7, 'T'));
        assert!(status.handles(Signal::QUIT) && !status.handles(Signal::KILL));
        let old = "Tgid:\t4711\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nSigCgt:\t0000000000000001\n";
        let status = Status::parse(old).unwrap();
        assert_eq!(status.namespace_pid, 4711);
        assert!(status.has_one_user);
        assert!(!status.handles(Signal::QUIT));
        assert_eq!(Status::parse("Pid:\t1\n"), None);
    }

    #[test]
    fn maps_have_the_library_and_the_counters() {
        let maps = b"7f00-7f01 r--p 00000000 fe:00 12 /usr/lib/jvm/a b/lib/server/libjvm.so\n\
            7f01-7f02 rw-p 00000000 00:00 0 \n7f02-7f03 rw-s 00000000 fe:00 9    /tmp/hsperfdata_app/7\n\
            7f04-7f05 r--p 00000000 fe:00 12 /opt/libjvm.so.bak\n";
        let mapped = MappedFiles::parse(maps);
        assert_eq!(mapped.libjvm.as_deref(), Some(Path::new("/usr/lib/jvm/a b/lib/server/libjvm.so")));
        assert_eq!(mapped.perfdata.as_deref(), Some("/tmp/hsperfdata_app/7"));
        assert!(!mapped.is_openj9);
        let replaced = MappedFiles::parse(
            b"1-2 r-xp 0 0:0 1 /jre/lib/server/libjvm.so (deleted)\n1-2 r 0 0:0 1 /jre/lib/libj9vm29.so\n",
        );
        assert_eq!(replaced.libjvm.as_deref(), Some(Path::new("/jre/lib/server/libjvm.so")));
        assert!(replaced.is_openj9);
        for path in ["/tmp/hsperfdata_app/", "/tmp/hsperfdata_app/7x", "/tmp/other/7", "7"] {
            assert!(!is_perfdata(path), "{path}");
        }
        assert_eq!(MappedFiles::parse(b"\xff\xfe\n/\n"), MappedFiles::default());
    }

    #[test]
    fn containers_are_found_in_both_versions_of_control_groups() {
        let id = "0123456789abcdef".repeat(4);
        for line in [
            format!("4:memory:/docker/{id}"),
            format!("0::/system.slice/docker-{id}.scope"),
            format!("0::/kubepods.slice/kubepods-burstable-pod1_2.slice/cri-containerd-{id}.scope"),
            format!("0::/../../cri-o-{id}.scope/container"),
            format!("9:cpu:/kubepods/besteffort/pod7/{id}"),
            format!("0::/machine.slice/libpod-{id}.scope/container"),
            format!(
                "11:memory:/system.slice/containerd.service/kubepods-besteffort-pod1.slice:cri-containerd:{id}"
            ),
        ] {
            assert_eq!(container(&format!("12:name=systemd:/\n{line}\n")), Some(id.clone()), "{line}");
        }
        for line in
            ["0::/", "0::/user.slice/user-0.slice/session-1.scope", "4:memory:/docker/0123", "", "4:memory"]
        {
            assert_eq!(container(line), None, "{line}");
        }
        // In nested containers, the process belongs to the inner one.
        let inner = "f".repeat(64);
        assert_eq!(container(&format!("0::/docker/{id}/docker/{inner}")), Some(inner));
    }

    #[test]
    fn what_may_not_be_looked_into_is_not_always_another_users() {
        assert!(matches!(access_error(7, 1000, 1000), Error::Hidden { pid: 7 }));
        assert!(matches!(access_error(7, 1000, 0), Error::Hidden { .. }));
        assert!(matches!(access_error(7, 1000, 1001), Error::OtherUser { user: 1000, own: 1001, .. }));
    }

    #[test]
    fn names_of_programs_may_be_any_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join(std::ffi::OsString::from_vec(b"\xff) 1 (x".to_vec()));
        fs::copy("/bin/sleep", &program).unwrap();
        let mut child = std::process::Command::new(&program).arg("60").spawn().unwrap();
        // The process gets its name shortly after it has started.
        let is_named = |found: &Process| found.status().name.ends_with(") 1 (x");
        let mut found = Process::find(child.id());
        for _ in 0..100 {
            if found.as_ref().is_ok_and(is_named) {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
            found = Process::find(child.id());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.as_ref().is_ok_and(is_named), "{found:?}");
    }

    #[test]
    fn this_process_is_found_and_no_thread_of_it_is_taken_for_one() {
        let own = Process::find(std::process::id()).unwrap();
        assert_eq!(own.status().identity, Identity::own());
        assert!(own.sees_our_files() && own.uptime().is_some() && own.status_now().is_some());
        assert_eq!(own.vm(&own.mapped_files().unwrap()), None);
        assert!(own.arguments().first().is_some_and(|program| program.contains("hprof_capture")));
        let thread = std::thread::spawn(|| {
            let id = u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            Process::find(id).map(|_| ()).unwrap_err()
        });
        assert!(matches!(thread.join().unwrap(), Error::Thread { pid, .. } if pid == own.pid()));
        assert!(matches!(Process::find(u32::MAX), Err(Error::NoProcess { .. })));
    }
}
