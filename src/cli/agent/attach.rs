//! HotSpot's attach protocol, as used by `jcmd`: a file and a signal make a JVM open a socket, which accepts a
//! command and returns an answer. It works for containers: paths are relative to the root of the process.
//!
//! It attaches only to processes of the same user, and connects only to sockets of that user: the names of both are
//! predictable, and everybody can write to `/tmp`. In a container, `/tmp` itself belongs to the process: a link there
//! is not followed out of its root.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::process::{Pid, Signal, geteuid, kill_process};

/// Maximum time for a JVM to open its socket.
const TO_OPEN: Duration = Duration::from_secs(20);

/// Maximum time for an answer. The agent answers after it has written a dump, for which it takes at most ten minutes.
const TO_ANSWER: Duration = Duration::from_secs(660);

/// Maximum length of an argument in bytes: JVMs up to JDK 23 accept no more.
const MAX_ARGUMENT: usize = 1024;

/// Maximum length of an answer in bytes.
const MAX_ANSWER: u64 = 16 << 20;

/// A running JVM.
#[derive(Debug)]
pub(super) struct Jvm {
    pid: u32,
    /// Process ID in the JVM's own PID namespace, which occurs in file names.
    inner_pid: u32,
    handles_quit: bool,
}

/// Answer of a JVM: 0 or an error code, and text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) code: i32,
    pub(super) text: String,
}

impl Jvm {
    /// Finds the JVM with this process ID.
    ///
    /// # Errors
    ///
    /// If the process does not exist or belongs to another user.
    pub(super) fn new(pid: u32) -> anyhow::Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))
            .map_err(|_| anyhow::anyhow!("there is no process {pid}; `jcmd -l` lists the running JVMs"))?;
        let status = Status::of(&status).with_context(|| format!("/proc/{pid}/status cannot be read"))?;
        let own = geteuid().as_raw();
        ensure!(
            status.user == own,
            "process {pid} belongs to user {0}, and this is user {own}; run it as that user: sudo -u '#{0}' hprof-cli ...",
            status.user
        );
        Ok(Self { pid, inner_pid: status.inner_pid, handles_quit: status.handles_quit })
    }

    /// Returns the root directory of the process.
    fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.pid))
    }

    /// Returns a path of the process as seen by this process. Links in it may lead out of the process's root.
    pub(super) fn outside(&self, path: &Path) -> PathBuf {
        self.root().join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Sends a command and waits for the answer.
    ///
    /// # Errors
    ///
    /// If the JVM cannot be reached or does not answer.
    pub(super) fn ask(&self, command: &str, arguments: [&str; 3]) -> anyhow::Result<Reply> {
        let mut request = Vec::new();
        for word in ["1", command].into_iter().chain(arguments) {
            ensure!(
                word.len() <= MAX_ARGUMENT && !word.contains('\0'),
                "a JVM accepts at most {MAX_ARGUMENT} bytes of options, without NUL"
            );
            request.extend_from_slice(word.as_bytes());
            request.push(0);
        }
        let pid = self.pid;
        let mut answer = Vec::new();
        let asked = self.connect().and_then(|mut stream| {
            stream.set_read_timeout(Some(TO_ANSWER))?;
            stream.write_all(&request)?;
            Ok(stream.take(MAX_ANSWER).read_to_end(&mut answer)?)
        });
        asked.with_context(|| format!("cannot attach to process {pid}"))?;
        Reply::of(&answer).with_context(|| format!("process {pid} does not answer like a JVM"))
    }

    fn connect(&self) -> anyhow::Result<UnixStream> {
        let tmp = Tmp::below(&self.root())?;
        let socket = format!(".java_pid{}", self.inner_pid);
        if !tmp.has_own_socket(&socket)? {
            self.open(&tmp, &socket)?;
        }
        Ok(UnixStream::connect(tmp.path(&socket))?)
    }

    /// Makes the JVM open its socket.
    fn open(&self, tmp: &Tmp, socket: &str) -> anyhow::Result<()> {
        // Without a handler, the signal would end the process.
        ensure!(self.handles_quit, "it does not handle SIGQUIT: it is not a JVM, or is still starting");
        let _trigger = Trigger::new(tmp, &format!(".attach_pid{}", self.inner_pid))?;
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw).context("no such process")?;
        kill_process(pid, Signal::QUIT)?;
        let start = Instant::now();
        while !tmp.has_own_socket(socket)? {
            ensure!(
                start.elapsed() < TO_OPEN,
                "it did not open its attach socket; was it started with -XX:+DisableAttachMechanism?"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

/// The open `/tmp` of a process: the process cannot replace it with another directory.
struct Tmp {
    dir: OwnedFd,
    /// Path at which it was opened, for messages.
    place: PathBuf,
}

impl Tmp {
    /// Opens the `tmp` of a root directory. A link is resolved as for a process with that root, or not at all.
    ///
    /// # Errors
    ///
    /// If the directory does not exist below the root.
    fn below(root: &Path) -> anyhow::Result<Self> {
        let place = root.join("tmp");
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(root, flags, Mode::empty()).and_then(|root| {
            let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
            rustix::fs::openat2(&root, "tmp", flags, Mode::empty(), resolve)
                // Kernels before 5.6 lack this call, and some containers forbid it.
                .or_else(|_| rustix::fs::openat(&root, "tmp", flags | OFlags::NOFOLLOW, Mode::empty()))
        });
        let dir = opened.with_context(|| {
            format!(
                "cannot open {}, or it is a symbolic link that leaves the process's root directory",
                place.display()
            )
        })?;
        Ok(Self { dir, place })
    }

    /// Returns a path that leads to a file of the opened directory, even if its path was replaced.
    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.dir.as_raw_fd()))
    }

    /// Returns whether the socket exists.
    ///
    /// # Errors
    ///
    /// If the file is not a socket or belongs to another user.
    fn has_own_socket(&self, name: &str) -> anyhow::Result<bool> {
        let Ok(there) = fs::symlink_metadata(self.path(name)) else { return Ok(false) };
        let own =
            there.file_type().is_socket() && there.uid() == geteuid().as_raw() && there.mode() & 0o066 == 0;
        ensure!(own, "{} is not a socket of this user alone", self.place.join(name).display());
        Ok(true)
    }
}

/// The file that makes a JVM open its socket; removed on drop.
struct Trigger<'t> {
    tmp: &'t Tmp,
    name: String,
}

impl<'t> Trigger<'t> {
    fn new(tmp: &'t Tmp, name: &str) -> anyhow::Result<Self> {
        let path = tmp.path(name);
        let trigger = || Self { tmp, name: name.to_owned() };
        let made: std::io::Result<File> =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        match made {
            Ok(_) => Ok(trigger()),
            // Left by another process that is attaching or was killed.
            Err(error)
                if error.kind() == std::io::ErrorKind::AlreadyExists
                    && fs::symlink_metadata(&path)
                        .is_ok_and(|there| there.is_file() && there.uid() == geteuid().as_raw()) =>
            {
                Ok(trigger())
            }
            Err(error) => bail!("cannot create {}: {error}", tmp.place.join(name).display()),
        }
    }
}

impl Drop for Trigger<'_> {
    fn drop(&mut self) {
        // The JVM may have removed it.
        let _ = fs::remove_file(self.tmp.path(&self.name));
    }
}

/// Contents of `/proc/PID/status`.
#[derive(Debug, PartialEq, Eq)]
struct Status {
    /// Effective user ID.
    user: u32,
    inner_pid: u32,
    handles_quit: bool,
}

impl Status {
    fn of(text: &str) -> Option<Self> {
        let field = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
        };
        // Kernels without PID namespaces have no `NSpid`.
        let inner_pid = field("NSpid").or_else(|| field("Pid"))?.split_whitespace().last()?;
        let caught = u64::from_str_radix(field("SigCgt")?, 16).ok()?;
        Some(Self {
            user: field("Uid")?.split_whitespace().nth(1)?.parse().ok()?,
            inner_pid: inner_pid.parse().ok()?,
            handles_quit: caught >> (Signal::QUIT.as_raw() - 1) & 1 == 1,
        })
    }
}

impl Reply {
    fn of(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        let (code, text) = text.split_once('\n')?;
        Some(Self { code: code.trim().parse().ok()?, text: text.to_owned() })
    }
}

/// Returns the value of a property from the answer to `properties`, in the format of `java.util.Properties.store`.
pub(super) fn property(text: &str, name: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
    let mut units = Vec::new();
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        let escaped = if character == '\\' { characters.next() } else { None };
        let plain = match escaped {
            None => character,
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('f') => '\x0c',
            Some('u') => {
                let digits: String = characters.by_ref().take(4).collect();
                // Surrogates are written one by one.
                units.push(u16::from_str_radix(&digits, 16).ok()?);
                continue;
            }
            Some(other) => other,
        };
        units.extend_from_slice(plain.encode_utf16(&mut [0; 2]));
    }
    Some(String::from_utf16_lossy(&units))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_process_in_a_container_has_another_id_there() {
        let text = "Name:\tjava\nPid:\t4711\nUid:\t1000\t1001\t1000\t1000\nNSpid:\t4711\t7\n\
                    SigCgt:\t0000000181005ccf\n";
        assert_eq!(Status::of(text), Some(Status { user: 1001, inner_pid: 7, handles_quit: true }));
        let old = "Pid:\t4711\nUid:\t0\t0\t0\t0\nSigCgt:\t0000000000000001\n";
        assert_eq!(Status::of(old), Some(Status { user: 0, inner_pid: 4711, handles_quit: false }));
        assert_eq!(Status::of("Pid:\t1\n"), None);
    }

    #[test]
    fn replies_have_a_code_and_text() {
        let reply = Reply::of(b"0\nreturn code: -1\n").unwrap();
        assert_eq!((reply.code, reply.text.as_str()), (0, "return code: -1\n"));
        assert_eq!(Reply::of(b"hello\n"), None);
        assert_eq!(Reply::of(b""), None);
    }

    #[test]
    fn properties_are_read_as_java_writes_them() {
        let text = "#Wed Nov 25\na.b=other\na.b.c=HPROF\\: \\u00e9\\ud83d\\ude00 C\\:\\\\x\\n\\=two\\\\n\n";
        assert_eq!(property(text, "a.b.c").as_deref(), Some("HPROF: é😀 C:\\x\n=two\\n"));
        assert_eq!(property(text, "a.b").as_deref(), Some("other"));
        assert_eq!(property(text, "a"), None);
        assert_eq!(property("x=\\uzz", "x"), None);
    }

    /// Creates a root directory that contains a `tmp`.
    fn root() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let tmp = root.path().join("tmp");
        fs::create_dir(&tmp).unwrap();
        (root, tmp)
    }

    /// Socket names are predictable: a socket of another user is not used.
    #[test]
    fn only_sockets_of_this_user_alone_are_spoken_to() {
        use std::os::unix::fs::PermissionsExt;
        let (root, dir) = root();
        let tmp = Tmp::below(root.path()).unwrap();
        assert!(!tmp.has_own_socket("socket").unwrap());
        let socket = dir.join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(tmp.has_own_socket("socket").unwrap());
        std::os::unix::fs::symlink(&socket, dir.join("link")).unwrap();
        assert!(tmp.has_own_socket("link").is_err());
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).unwrap();
        let error = tmp.has_own_socket("socket").unwrap_err().to_string();
        assert!(error.starts_with(socket.to_str().unwrap()), "{error}");
        // Nor is a file created through a link.
        std::os::unix::fs::symlink(dir.join("victim"), dir.join("trigger")).unwrap();
        assert!(Trigger::new(&tmp, "trigger").is_err() && !dir.join("victim").exists());
        // A created trigger is removed on drop.
        let trigger = Trigger::new(&tmp, "made").unwrap();
        assert!(dir.join("made").is_file());
        drop(trigger);
        assert!(!dir.join("made").exists());
    }

    /// In a container, `/tmp` belongs to the process and may be a link to anywhere.
    #[test]
    fn a_link_does_not_lead_out_of_the_root_of_a_process() {
        let outside = tempfile::tempdir().unwrap();
        let name = outside.path().file_name().unwrap();
        let up = Path::new("..").join(name);
        for target in [outside.path(), &up, Path::new("/proc/self/cwd")] {
            let root = tempfile::tempdir_in(outside.path().parent().unwrap()).unwrap();
            let link = root.path().join("tmp");
            std::os::unix::fs::symlink(target, &link).unwrap();
            assert!(link.is_dir(), "it leads out");
            let error = Tmp::below(root.path()).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(link.to_str().unwrap()), "{error}");
        }
        // A link that leads below the root is followed there, if at all.
        let root = outside.path().join("root");
        let [inside, beside] = [root.as_path(), outside.path()].map(|dir| dir.join("elsewhere"));
        fs::create_dir_all(&inside).unwrap();
        fs::create_dir(&beside).unwrap();
        std::os::unix::fs::symlink("../elsewhere", root.join("tmp")).unwrap();
        assert_eq!(fs::canonicalize(root.join("tmp")).unwrap(), fs::canonicalize(&beside).unwrap());
        if let Ok(tmp) = Tmp::below(&root) {
            let _trigger = Trigger::new(&tmp, "trigger").unwrap();
            assert!(inside.join("trigger").is_file() && !beside.join("trigger").exists());
        }
    }

    /// An open directory stays the same.
    #[test]
    fn a_link_that_comes_later_is_not_followed() {
        let (root, dir) = root();
        let (tmp, outside) = (Tmp::below(root.path()).unwrap(), tempfile::tempdir().unwrap());
        fs::rename(&dir, root.path().join("moved")).unwrap();
        std::os::unix::fs::symlink(outside.path(), &dir).unwrap();
        let _trigger = Trigger::new(&tmp, "trigger").unwrap();
        assert!(root.path().join("moved/trigger").is_file() && !outside.path().join("trigger").exists());
    }
}
