//! HotSpot's attach protocol, as used by `jcmd`: a file and a signal make a JVM open a socket, which accepts a
//! command and returns an answer. It works for containers: paths are relative to the root of the process.
//!
//! It attaches as the user and group of the JVM, and connects only to sockets of that user: the names of both are
//! predictable, and everybody can write to `/tmp`. In a container, `/tmp` itself belongs to the process: a link there
//! is not followed out of its root.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Signal;

use crate::directory::Directory;
use crate::error::Error;
use crate::identity::Identity;
use crate::perfdata::PerfData;
use crate::private::Keeper;
use crate::processes::{Mapped, Process};
use crate::vm_kind::VmKind;

/// Maximum time for a JVM to open its socket.
const TO_OPEN: Duration = Duration::from_secs(20);

/// Maximum time for an answer to most commands. The agent answers after it has written a dump, for which it takes at
/// most ten minutes.
pub const TO_ANSWER: Duration = Duration::from_secs(660);

/// Maximum length of an argument in bytes in version 1 of the protocol, the only one before JDK 24.
const MAX_ARGUMENT: usize = 1024;

/// Maximum length of a request in version 2.
const MAX_REQUEST: usize = 256 << 10;

/// Number of arguments in version 1.
const ARGUMENTS: usize = 3;

/// Maximum length of an answer in bytes.
const MAX_ANSWER: u64 = 16 << 20;

/// A running JVM that accepts commands.
#[derive(Debug)]
pub struct Jvm<'k> {
    process: Process,
    mapped: Mapped,
    keeper: &'k dyn Keeper,
}

/// Answer of a JVM: 0 or an error code, and text.
#[derive(Debug, PartialEq, Eq)]
pub struct Reply {
    /// Code; commands that failed may have 0 too.
    pub code: i32,
    /// Text.
    pub text: String,
}

impl<'k> Jvm<'k> {
    /// Finds the JVM with this process ID.
    ///
    /// # Errors
    ///
    /// If the process does not exist, is not a JVM of HotSpot, belongs to another user, or does not accept commands.
    pub fn find(pid: u32, keeper: &'k dyn Keeper) -> Result<Self, Error> {
        Self::of(Process::find(pid)?, keeper)
    }

    /// Takes a process for a JVM. The keeper looks after the files that are created for it.
    ///
    /// # Errors
    ///
    /// As [`Jvm::find`].
    pub fn of(process: Process, keeper: &'k dyn Keeper) -> Result<Self, Error> {
        let pid = process.pid();
        let status = process.status();
        let own = Identity::own();
        // Only root becomes another user.
        if status.identity.user != own.user && own.user != 0 {
            return Err(Error::OtherUser { pid, user: status.identity.user, own: own.user });
        }
        let mapped = process.mapped()?;
        match process.vm(&mapped) {
            Some(VmKind::HotSpot) => {}
            Some(kind) => return Err(Error::OtherVm { pid, kind }),
            None => return Err(Error::NotJvm { pid, name: status.name.clone() }),
        }
        let jvm = Self { process, mapped, keeper };
        jvm.check_running()?;
        if jvm.is_disabled() {
            return Err(Error::Disabled { pid });
        }
        Ok(jvm)
    }

    /// Returns the process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Returns who looks after files.
    pub(crate) fn keeper(&self) -> &'k dyn Keeper {
        self.keeper
    }

    /// Returns what it has mapped.
    pub fn mapped(&self) -> &Mapped {
        &self.mapped
    }

    /// Checks that it is neither stopped nor has ended.
    pub(crate) fn check_running(&self) -> Result<(), Error> {
        let pid = self.process.pid();
        match self.process.status_now() {
            None => Err(Error::Ended { pid }),
            Some(now) if matches!(now.state, 'T' | 't') => Err(Error::Stopped { pid }),
            Some(_) => Ok(()),
        }
    }

    /// Returns whether it says that it accepts no commands: it would answer the signal with a thread dump on its stdout.
    fn is_disabled(&self) -> bool {
        const OPTION: &str = "-XX:+DisableAttachMechanism";
        match PerfData::of(&self.process, &self.mapped) {
            // The first digit is that of the attach mechanism.
            Some(counters) if counters.text("sun.rt.jvmCapabilities").is_some() => {
                counters.text("sun.rt.jvmCapabilities").is_some_and(|digits| digits.starts_with('0'))
            }
            _ => self.process.arguments().iter().any(|argument| argument == OPTION),
        }
    }

    /// Returns a path of the process as seen by this process. Links in it may lead out of the process's root.
    pub fn outside(&self, path: &Path) -> PathBuf {
        self.process.proc_path("root").join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Sends a command and waits for the answer, at most for `patience`.
    ///
    /// # Errors
    ///
    /// If the JVM cannot be reached or does not answer.
    pub fn ask(&self, command: &str, arguments: &[&str], patience: Option<Duration>) -> Result<Reply, Error> {
        let pid = self.process.pid();
        let is_long = |word: &&str| word.len() > MAX_ARGUMENT;
        if arguments.iter().any(|word| word.contains('\0')) {
            return Err(Error::Argument { pid, max: MAX_ARGUMENT });
        }
        let request = if arguments.len() > ARGUMENTS || arguments.iter().any(is_long) {
            let request = request_2(command, arguments);
            if self.version()? < 2 || request.len() > MAX_REQUEST {
                return Err(Error::Argument { pid, max: MAX_ARGUMENT });
            }
            request
        } else {
            request_1(command, arguments)
        };
        self.talk(command, &request, patience)
    }

    /// Runs a diagnostic command, as `jcmd` does.
    ///
    /// # Errors
    ///
    /// As [`Jvm::ask`], and if the JVM refuses it.
    pub fn jcmd(&self, command: &str, patience: Option<Duration>) -> Result<String, Error> {
        let reply = self.ask("jcmd", &[command], patience)?;
        if reply.code != 0 {
            let text = reply.text.trim().to_owned();
            return Err(Error::Refused { pid: self.process.pid(), command: command.to_owned(), text });
        }
        Ok(reply.text)
    }

    /// Returns the highest version of the protocol that the JVM has.
    fn version(&self) -> Result<u32, Error> {
        let reply = self.talk("getversion", &request_1("getversion", &[]), Some(TO_ANSWER))?;
        // JVMs before JDK 24 do not know the command.
        let version = reply.text.split_whitespace().next().and_then(|version| version.parse().ok());
        Ok(version.filter(|_| reply.code == 0).unwrap_or(1))
    }

    fn talk(&self, command: &str, request: &[u8], patience: Option<Duration>) -> Result<Reply, Error> {
        let pid = self.process.pid();
        let root = self.process.root();
        if root.as_ref().is_err_and(|error| error.kind() == ErrorKind::PermissionDenied) {
            return Err(Error::Hidden { pid });
        }
        let root = root.and_then(|root| root.below("tmp"));
        let place = self.process.proc_path("root/tmp").display().to_string();
        let tmp = root.map_err(|source| Error::Place { pid, place, source })?;
        let identity = self.process.status().identity;
        let stream = match identity.run(|| connected(&tmp, &self.socket(), pid))?? {
            Some(stream) => stream,
            None => {
                let trigger = self.trigger();
                let place = || tmp.place().join(&trigger).display().to_string();
                let kept = self.keeper.keep_file(&tmp.path(""), &trigger);
                let _kept = kept.map_err(|source| Error::Place { pid, place: place(), source })?;
                identity.run(|| self.open(&tmp))??
            }
        };
        let answer = identity.run(|| {
            let mut stream = stream;
            let mut answer = Vec::new();
            let talked = stream.set_read_timeout(patience).and_then(|()| {
                stream.write_all(request)?;
                stream.take(MAX_ANSWER).read_to_end(&mut answer)
            });
            match talked {
                Ok(_) => Ok(answer),
                // It ended.
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
                    Ok(answer)
                }
                Err(source) => Err(Error::Talk { pid, source }),
            }
        })??;
        match Reply::of(&answer) {
            // JVMs since JDK 24 answer while they work: what they said may not be all.
            Some(reply) if self.process.status_now().is_some() => Ok(reply),
            None if self.process.status_now().is_some() => Err(Error::Answer { pid }),
            _ => Err(Error::EndedDuring { pid, command: command.to_owned() }),
        }
    }

    fn socket(&self) -> String {
        format!(".java_pid{}", self.process.status().namespace_pid)
    }

    fn trigger(&self) -> String {
        format!("{TRIGGER}{}", self.process.status().namespace_pid)
    }

    /// Makes the JVM open its socket, and connects to it: there is none, or nobody listens to the one that a JVM with the
    /// same process ID left.
    fn open(&self, tmp: &Directory) -> Result<UnixStream, Error> {
        let (pid, socket) = (self.process.pid(), self.socket());
        let now = self.process.status_now().ok_or(Error::Ended { pid })?;
        // Without a handler, the signal would end the process.
        if !now.handles(Signal::QUIT) {
            return Err(Error::Unhandled { pid, signal: "SIGQUIT".into() });
        }
        let _trigger = Trigger::new(tmp, &self.trigger(), pid)?;
        self.process.signal(Signal::QUIT)?;
        let start = Instant::now();
        let mut is_again = false;
        loop {
            std::thread::sleep(Duration::from_millis(10));
            if let Some(stream) = connected(tmp, &socket, pid)? {
                return Ok(stream);
            }
            let status = self.process.status_now().ok_or(Error::Ended { pid })?;
            let waited = start.elapsed();
            if waited >= TO_OPEN {
                return Err(match status.state {
                    'T' | 't' => Error::Stopped { pid },
                    _ => Error::NoSocket { pid, seconds: TO_OPEN.as_secs() },
                });
            }
            // The signal may have come while the JVM was starting.
            if waited >= TO_OPEN / 2 && !is_again && status.handles(Signal::QUIT) {
                is_again = true;
                self.process.signal(Signal::QUIT)?;
            }
        }
    }
}

/// Connects to a socket, if it exists and the JVM listens: another process of its user may have one of that name.
///
/// # Errors
///
/// If the file is not a socket or belongs to another user.
fn connected(tmp: &Directory, name: &str, pid: u32) -> Result<Option<UnixStream>, Error> {
    let fail = |source| Error::Place { pid, place: tmp.place().join(name).display().to_string(), source };
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = match rustix::fs::openat(tmp.fd(), name, flags, Mode::empty()) {
        Ok(found) => found,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(fail(error.into())),
    };
    let there = rustix::fs::fstat(&found).map_err(|error| fail(error.into()))?;
    let is_own = there.st_uid == Identity::own().user && there.st_mode & 0o066 == 0;
    if FileType::from_raw_mode(there.st_mode) != FileType::Socket || !is_own {
        return Err(fail(io::Error::other("not a socket of the JVM's user alone")));
    }
    // The socket that was looked at, whatever has its name by now.
    match UnixStream::connect(format!("/proc/self/fd/{}", found.as_raw_fd())) {
        Ok(stream) => Ok(Some(stream).filter(|stream| is_peer(stream, pid))),
        Err(error) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => Ok(None),
        Err(error) => Err(fail(error)),
    }
}

/// Returns whether a process is the other end of a stream. Both IDs are those of this PID namespace; a process that has none
/// here is another one.
fn is_peer(stream: &UnixStream, pid: u32) -> bool {
    rustix::net::sockopt::socket_peercred(stream)
        .is_ok_and(|peer| u32::try_from(peer.pid.as_raw_nonzero().get()) == Ok(pid))
}

/// Returns a request in version 1: three arguments.
fn request_1(command: &str, arguments: &[&str]) -> Vec<u8> {
    let missing = ARGUMENTS.saturating_sub(arguments.len());
    let words = ["1", command].into_iter().chain(arguments.iter().copied());
    zero_terminated(words.chain(std::iter::repeat_n("", missing)))
}

/// Returns a request in version 2: any number of arguments, preceded by the length of what follows.
fn request_2(command: &str, arguments: &[&str]) -> Vec<u8> {
    let rest = zero_terminated([command].into_iter().chain(arguments.iter().copied()));
    let mut request = zero_terminated(["2", &rest.len().to_string()]);
    request.extend(rest);
    request
}

fn zero_terminated<'w>(words: impl IntoIterator<Item = &'w str>) -> Vec<u8> {
    words.into_iter().flat_map(|word| word.bytes().chain([0])).collect()
}

/// Start of the name of the file that makes a JVM open its socket; its process ID follows.
pub const TRIGGER: &str = ".attach_pid";

/// That file; removed on drop.
struct Trigger<'d> {
    dir: &'d Directory,
    name: String,
}

impl<'d> Trigger<'d> {
    /// Creates it in the JVM's `/tmp`. JVMs look for it in their working directory too, but need `/tmp` for the socket.
    fn new(tmp: &'d Directory, name: &str, pid: u32) -> Result<Self, Error> {
        let place = || tmp.place().join(name).display().to_string();
        Self::create(tmp, name).map_err(|source| Error::Place { pid, place: place(), source })
    }

    fn create(dir: &'d Directory, name: &str) -> io::Result<Self> {
        let path = dir.path(name);
        let made: io::Result<File> = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let is_own = |there: &fs::Metadata| there.is_file() && there.uid() == Identity::own().user;
        match made {
            Ok(_) => {}
            // Left by another process that is attaching or was killed.
            Err(error)
                if error.kind() == ErrorKind::AlreadyExists
                    && fs::symlink_metadata(&path).is_ok_and(|there| is_own(&there)) => {}
            Err(error) => return Err(error),
        }
        Ok(Self { dir, name: name.to_owned() })
    }
}

impl Drop for Trigger<'_> {
    fn drop(&mut self) {
        // The JVM may have removed it.
        let _ = fs::remove_file(self.dir.path(&self.name));
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
pub fn property(text: &str, name: &str) -> Option<String> {
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
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

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

    #[test]
    fn requests_have_three_arguments_or_a_length() {
        assert_eq!(request_1("jcmd", &["VM.version"]), b"1\0jcmd\0VM.version\0\0\0");
        assert_eq!(request_1("load", &["a", "b", "c"]), b"1\0load\0a\0b\0c\0");
        assert_eq!(request_2("load", &["a", "", "c", "d"]), b"2\x0012\0load\0a\0\0c\0d\0");
    }

    /// Creates a root directory that contains a `tmp`.
    fn root() -> (tempfile::TempDir, PathBuf, Directory) {
        let root = tempfile::tempdir().unwrap();
        let tmp = root.path().join("tmp");
        fs::create_dir(&tmp).unwrap();
        let opened = Directory::open(root.path()).unwrap().below("tmp").unwrap();
        (root, tmp, opened)
    }

    /// Socket names are predictable: a socket of another user is not used.
    #[test]
    fn only_sockets_of_this_user_alone_are_spoken_to() {
        let (_root, dir, tmp) = root();
        let own = std::process::id();
        assert!(connected(&tmp, "socket", own).unwrap().is_none());
        let socket = dir.join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(connected(&tmp, "socket", own).unwrap().is_some());
        // Another process of the same user listens.
        assert!(connected(&tmp, "socket", own + 1).unwrap().is_none());
        symlink(&socket, dir.join("link")).unwrap();
        assert!(connected(&tmp, "link", own).is_err());
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).unwrap();
        let error = connected(&tmp, "socket", own).unwrap_err().to_string();
        assert!(error.contains(socket.to_str().unwrap()), "{error}");
        // Left by a JVM that has ended.
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o600)).unwrap();
        drop(listener);
        assert!(connected(&tmp, "socket", own).unwrap().is_none());
    }

    #[test]
    fn triggers_are_removed() {
        let (_root, dir, tmp) = root();
        // No file is created through a link.
        symlink(dir.join("victim"), dir.join("trigger")).unwrap();
        assert!(Trigger::new(&tmp, "trigger", 7).is_err() && !dir.join("victim").exists());
        let trigger = Trigger::new(&tmp, "made", 7).unwrap();
        assert!(dir.join("made").is_file());
        // Left by one that was killed.
        let again = Trigger::new(&tmp, "made", 7).unwrap();
        drop((trigger, again));
        assert!(!dir.join("made").exists());
    }
}
