//! HotSpot's attach protocol, as used by `jcmd`: a file and a signal make a JVM open a socket, which accepts a command and
//! returns a reply. It works for containers, because paths are relative to the root of the process.
//!
//! This process attaches as the user and group of the JVM, and connects only to sockets of that user, because the names of both
//! files are predictable, and everybody can write to `/tmp`. In a container, `/tmp` itself belongs to the process, so links in
//! it are not followed out of the root of the process.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::error::Error;
use crate::identity::Identity;
use crate::perfdata::PerfData;
use crate::processes::{MappedFiles, Process};
use crate::user_files::{UserDir, UserFiles, UserFilesOpener};
use crate::vm_kind::VmKind;
use crate::waiting::Waiting;

/// Maximum time for a JVM to open its socket.
const TO_OPEN: Duration = Duration::from_secs(20);

/// Maximum time for the reply to most commands. The agent replies after it has written a dump, which takes at most ten minutes.
pub const TO_ANSWER: Duration = Duration::from_secs(660);

/// Maximum length in bytes of an argument in version 1 of the protocol, the only version before JDK 24.
const MAX_ARGUMENT: usize = 1024;

/// Maximum length in bytes of a request in version 2 of the protocol.
const MAX_REQUEST: usize = 256 << 10;

/// Number of arguments in version 1 of the protocol.
const ARGUMENTS: usize = 3;

/// Maximum length of a reply in bytes. A class histogram has about a hundred bytes for each class.
pub(crate) const MAX_ANSWER: usize = 16 << 20;

/// Maximum length of a reply in an error message, in bytes.
const MAX_SHOWN: usize = 2000;

/// Interval between checks of a JVM that has not replied yet.
const LOOK: Duration = Duration::from_millis(200);

/// A running JVM that accepts commands.
#[derive(Debug)]
pub struct Jvm<'d> {
    process: Process,
    mapped: MappedFiles,
    files: Arc<UserFiles>,
    opener: &'d UserFilesOpener,
    limit: Option<Duration>,
}

/// Reply of a JVM to a command.
#[derive(Debug, PartialEq, Eq)]
pub struct JvmReply {
    /// Result code: 0 or an error code. Some commands that failed have code 0, too.
    pub code: i32,
    /// Output of the command.
    pub text: String,
}

impl<'d> Jvm<'d> {
    /// Finds the JVM with this process ID.
    ///
    /// # Errors
    ///
    /// If the process does not exist, is not a HotSpot JVM, belongs to another user, or does not accept commands.
    pub fn find(pid: u32, opener: &'d UserFilesOpener) -> Result<Self, Error> {
        let process = Process::find(pid)?;
        check_user(&process)?;
        let mapped = process.mapped_files()?;
        check_vm(&process, &mapped)?;
        let files = Arc::new(opener.of_process(&process)?);
        Self::from_process(process, mapped, files, opener)
    }

    /// Creates a `Jvm` from a process that is known to be a JVM.
    ///
    /// # Errors
    ///
    /// Same as for [`Jvm::find`].
    pub(crate) fn from_process(
        process: Process,
        mapped: MappedFiles,
        files: Arc<UserFiles>,
        opener: &'d UserFilesOpener,
    ) -> Result<Self, Error> {
        let jvm = Self { process, mapped, files, opener, limit: None };
        jvm.check_running()?;
        if jvm.is_disabled() {
            return Err(Error::Disabled { pid: jvm.process.pid() });
        }
        Ok(jvm)
    }

    /// Sets the maximum time for each reply, which replaces the limits of the callers.
    pub(crate) fn set_limit(&mut self, limit: Option<Duration>) {
        self.limit = limit;
    }

    /// Returns the process of the JVM.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Returns the factory of [`UserFiles`]s.
    pub(crate) fn opener(&self) -> &'d UserFilesOpener {
        self.opener
    }

    /// Returns the file system that the JVM sees, opened as the JVM's user.
    pub(crate) fn files(&self) -> &Arc<UserFiles> {
        &self.files
    }

    /// Returns the counters that the JVM publishes.
    pub(crate) fn counters(&self) -> Option<PerfData> {
        PerfData::read(&self.files, &self.process, &self.mapped)
    }

    /// Returns whether this path is an ordinary file for the JVM.
    ///
    /// # Errors
    ///
    /// If the file system of the JVM cannot be opened.
    pub fn sees_file(&self, path: &Path) -> Result<bool, Error> {
        let fail = |source| Error::File { what: "cannot look for".into(), path: path.to_owned(), source };
        let root = self.files.root().map_err(fail)?;
        Ok(path.to_str().is_some_and(|path| root.file(path).is_ok()))
    }

    /// Checks that the JVM is not stopped and has not ended.
    pub(crate) fn check_running(&self) -> Result<(), Error> {
        let pid = self.process.pid();
        match self.process.status_now() {
            None => Err(Error::Ended { pid }),
            Some(now) if now.is_stopped() => Err(Error::Stopped { pid }),
            Some(_) => Ok(()),
        }
    }

    /// Returns whether the JVM was started without the attach mechanism. Such a JVM would print a thread dump on the signal.
    fn is_disabled(&self) -> bool {
        const OPTION: &str = "-XX:+DisableAttachMechanism";
        match self.counters() {
            // The first digit is 1 if the JVM has the attach mechanism.
            Some(counters) if counters.text("sun.rt.jvmCapabilities").is_some() => {
                counters.text("sun.rt.jvmCapabilities").is_some_and(|digits| digits.starts_with('0'))
            }
            _ => self.process.arguments().iter().any(|argument| argument == OPTION),
        }
    }

    /// Sends a command and waits for the reply for at most `limit`, unless another limit was set.
    ///
    /// # Errors
    ///
    /// If the JVM cannot be reached or does not reply.
    pub fn ask(&self, command: &str, arguments: &[&str], limit: Option<Duration>) -> Result<JvmReply, Error> {
        let shown = match arguments {
            [argument] if command == "jcmd" => argument,
            _ => command,
        };
        self.ask_while(command, arguments, &self.waiting(shown, limit))
    }

    /// Starts the timer for the reply to a command.
    pub(crate) fn waiting<'w>(&'w self, command: &'w str, limit: Option<Duration>) -> Waiting<'w> {
        Waiting::new(&self.process, command, self.limit.or(limit), self.opener.on_notice())
    }

    /// Sends a command and waits for the reply.
    ///
    /// # Errors
    ///
    /// Same as for [`Jvm::ask`].
    pub(crate) fn ask_while(
        &self,
        command: &str,
        arguments: &[&str],
        waiting: &Waiting<'_>,
    ) -> Result<JvmReply, Error> {
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
        self.talk(command, &request, waiting)
    }

    /// Runs a diagnostic command, as `jcmd` does, and returns its output.
    ///
    /// # Errors
    ///
    /// Same as for [`Jvm::ask`], and if the JVM replies with an error.
    pub fn jcmd(&self, command: &str, limit: Option<Duration>) -> Result<String, Error> {
        let reply = self.ask("jcmd", &[command], limit)?;
        if reply.code != 0 {
            let text = shortened(reply.text.trim());
            return Err(Error::Refused { pid: self.process.pid(), command: command.to_owned(), text });
        }
        Ok(reply.text)
    }

    /// Returns the highest version of the protocol that the JVM supports.
    fn version(&self) -> Result<u32, Error> {
        const COMMAND: &str = "getversion";
        let waiting = self.waiting(COMMAND, Some(TO_ANSWER));
        let reply = self.talk(COMMAND, &request_1(COMMAND, &[]), &waiting)?;
        // JVMs before JDK 24 do not know the command.
        let version = reply.text.split_whitespace().next().and_then(|version| version.parse().ok());
        Ok(version.filter(|_| reply.code == 0).unwrap_or(1))
    }

    fn talk(&self, command: &str, request: &[u8], waiting: &Waiting<'_>) -> Result<JvmReply, Error> {
        let pid = self.process.pid();
        let place = self.process.proc_path("root/tmp").display().to_string();
        let tmp = self.files.root().and_then(|root| root.open_below("tmp"));
        let tmp = tmp.map_err(|source| Error::Place { pid, place, source })?;
        let mut stream = match self.try_connect(&tmp)? {
            Some(stream) => stream,
            None => self.open(&tmp)?,
        };
        let mut answer = Vec::new();
        let talk = |source| Error::Talk { pid, source };
        let set = stream.set_read_timeout(Some(LOOK));
        set.and_then(|()| stream.set_write_timeout(Some(TO_OPEN))).map_err(talk)?;
        match stream.write_all(request) {
            Ok(()) => {}
            // The JVM has ended.
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {}
            Err(source) => return Err(talk(source)),
        }
        let mut stream = stream.take(MAX_ANSWER as u64 + 1);
        let mut block = [0; 1 << 13];
        loop {
            match stream.read(&mut block) {
                Ok(0) => break,
                Ok(length) => answer.extend(block.iter().take(length)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                Err(source) => return Err(talk(source)),
            }
            // Checked even while the JVM replies, because a reply may never end.
            waiting.check()?;
        }
        if answer.len() > MAX_ANSWER {
            return Err(Error::TooLong { pid, max: MAX_ANSWER });
        }
        match JvmReply::parse(&answer) {
            // JVMs since JDK 24 write the reply while they run the command: if the JVM has ended, the reply may be incomplete.
            Some(reply) if self.process.status_now().is_some() => Ok(reply),
            None if self.process.status_now().is_some() => Err(Error::Answer { pid }),
            _ => Err(Error::EndedDuring { pid, command: command.to_owned() }),
        }
    }

    /// Connects to the socket of the JVM, if it exists and the JVM listens. Another process of the same user may have a socket
    /// with the same name.
    fn try_connect(&self, tmp: &UserDir) -> Result<Option<UnixStream>, Error> {
        let (pid, name) = (self.process.pid(), self.socket());
        let place = || tmp.full_path().join(&name).display().to_string();
        let stream = tmp.connect(&name).map_err(|source| Error::Place { pid, place: place(), source })?;
        Ok(stream.filter(|stream| is_peer(stream, pid)))
    }

    fn socket(&self) -> String {
        format!(".java_pid{}", self.process.status().namespace_pid)
    }

    fn trigger(&self) -> String {
        format!("{TRIGGER}{}", self.process.status().namespace_pid)
    }

    /// Makes the JVM open its socket, and connects to it. The socket does not exist, or was left by a JVM with the same process
    /// ID. JVMs look for the trigger file in their working directory, too, but need `/tmp` for the socket.
    fn open(&self, tmp: &UserDir) -> Result<UnixStream, Error> {
        let (pid, trigger) = (self.process.pid(), self.trigger());
        let now = self.process.status_now().ok_or(Error::Ended { pid })?;
        // A signal without a handler would end the process.
        if !now.handles(Signal::QUIT) {
            return Err(Error::Unhandled { pid, signal: "SIGQUIT".into() });
        }
        let place = || tmp.full_path().join(&trigger).display().to_string();
        tmp.share_file(&trigger).map_err(|source| Error::Place { pid, place: place(), source })?;
        let opened = self.signal_and_connect(tmp);
        // The JVM may already have removed it.
        let _ = tmp.remove(&trigger);
        opened
    }

    fn signal_and_connect(&self, tmp: &UserDir) -> Result<UnixStream, Error> {
        let pid = self.process.pid();
        self.process.signal(Signal::QUIT)?;
        let start = Instant::now();
        let mut is_again = false;
        loop {
            std::thread::sleep(Duration::from_millis(10));
            if let Some(stream) = self.try_connect(tmp)? {
                return Ok(stream);
            }
            let status = self.process.status_now().ok_or(Error::Ended { pid })?;
            let waited = start.elapsed();
            if waited >= TO_OPEN {
                return Err(match status.is_stopped() {
                    true => Error::Stopped { pid },
                    false => Error::NoSocket { pid, seconds: TO_OPEN.as_secs() },
                });
            }
            // The signal may have arrived while the JVM was starting.
            if waited >= TO_OPEN / 2 && !is_again && status.handles(Signal::QUIT) {
                is_again = true;
                self.process.signal(Signal::QUIT)?;
            }
        }
    }
}

/// Checks that this process may attach to processes of the given process's user.
pub(crate) fn check_user(process: &Process) -> Result<(), Error> {
    let (pid, user, own) = (process.pid(), process.status().identity.user, Identity::own().user);
    // Only root can become another user.
    if user == own || own == 0 { Ok(()) } else { Err(Error::OtherUser { pid, user, own }) }
}

/// Checks that a process is a HotSpot JVM.
pub(crate) fn check_vm(process: &Process, mapped: &MappedFiles) -> Result<(), Error> {
    let pid = process.pid();
    match process.vm(mapped) {
        Some(VmKind::HotSpot) => Ok(()),
        Some(kind) => Err(Error::OtherVm { pid, kind }),
        None => Err(Error::NotJvm { pid, name: process.status().name.clone() }),
    }
}

/// Returns a text, shortened for an error message if necessary.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().find(|(at, _)| *at >= MAX_SHOWN) {
        None => text.to_owned(),
        Some((end, _)) => {
            let (shown, rest) = text.split_at(end);
            format!("{shown} ... ({} more bytes)", rest.len())
        }
    }
}

/// Returns whether the process `pid` is the peer of a stream. Both IDs are from this PID namespace; a peer without an ID in
/// this namespace is another process.
fn is_peer(stream: &UnixStream, pid: u32) -> bool {
    rustix::net::sockopt::socket_peercred(stream)
        .is_ok_and(|peer| u32::try_from(peer.pid.as_raw_nonzero().get()) == Ok(pid))
}

/// Returns a request in version 1 of the protocol, with exactly three arguments.
fn request_1(command: &str, arguments: &[&str]) -> Vec<u8> {
    let missing = ARGUMENTS.saturating_sub(arguments.len());
    let words = ["1", command].into_iter().chain(arguments.iter().copied());
    zero_terminated(words.chain(std::iter::repeat_n("", missing)))
}

/// Returns a request in version 2 of the protocol, with any number of arguments after their total length.
fn request_2(command: &str, arguments: &[&str]) -> Vec<u8> {
    let rest = zero_terminated([command].into_iter().chain(arguments.iter().copied()));
    let mut request = zero_terminated(["2", &rest.len().to_string()]);
    request.extend(rest);
    request
}

fn zero_terminated<'w>(words: impl IntoIterator<Item = &'w str>) -> Vec<u8> {
    words.into_iter().flat_map(|word| word.bytes().chain([0])).collect()
}

/// Prefix of the name of the file that makes a JVM open its socket. The JVM's process ID follows.
pub const TRIGGER: &str = ".attach_pid";

impl JvmReply {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        let (code, text) = text.split_once('\n')?;
        Some(Self { code: code.trim().parse().ok()?, text: text.to_owned() })
    }
}

/// Returns the value of a property from the reply to `properties`, in the format of `java.util.Properties.store`.
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
                // Each surrogate is written as an escape of its own.
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
    fn replies_have_a_code_and_text() {
        let reply = JvmReply::parse(b"0\nreturn code: -1\n").unwrap();
        assert_eq!((reply.code, reply.text.as_str()), (0, "return code: -1\n"));
        assert_eq!(JvmReply::parse(b"hello\n"), None);
        assert_eq!(JvmReply::parse(b""), None);
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

    #[test]
    fn long_answers_are_shortened_in_messages() {
        assert_eq!(shortened("short"), "short");
        let long = shortened(&"\u{e9}".repeat(1 << 20));
        assert!(long.len() < 2100 && long.ends_with("(2095152 more bytes)"), "{}", &long[1990..]);
    }
}
