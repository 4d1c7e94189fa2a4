//! Errors: what failed, where, and why. Suggestions for the next step are added by the program that shows the error.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::remote_error::RemoteError;
use crate::vm_kind::VmKind;

/// Error while accessing a JVM or taking a heap dump.
///
/// Errors are serializable, because a helper sends them to its client.
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Error {
    /// There is no process with this ID.
    #[error("there is no process {pid}")]
    NoProcess {
        /// Process ID.
        pid: u32,
    },
    /// The ID belongs to a thread, not to a process.
    #[error("{id} is a thread of process {pid}")]
    Thread {
        /// The given ID.
        id: u32,
        /// Process of the thread.
        pid: u32,
    },
    /// The process is not a JVM and contains no other known virtual machine.
    #[error("process {pid} ({name}) is not a JVM: it has not loaded libjvm.so")]
    NotJvm {
        /// Process ID.
        pid: u32,
        /// Name of the program.
        name: String,
    },
    /// The process has a virtual machine that does not support HotSpot's attach protocol.
    #[error("process {pid} is {}, which does not accept the commands of HotSpot", match kind {
        VmKind::OpenJ9 => "an OpenJ9 JVM",
        VmKind::NativeImage => "a GraalVM native image",
        VmKind::HotSpot => "a JVM",
    })]
    OtherVm {
        /// Process ID.
        pid: u32,
        /// Kind of virtual machine.
        kind: VmKind,
    },
    /// The process belongs to another user.
    #[error("process {pid} belongs to user {user}, but this command runs as user {own}")]
    OtherUser {
        /// Process ID.
        pid: u32,
        /// User ID of the inspected process.
        user: u32,
        /// User ID of the current process.
        own: u32,
    },
    /// The process cannot be inspected, although it has the same user as the current process, or the current process is root.
    #[error("no permission to inspect process {pid}")]
    Hidden {
        /// Process ID.
        pid: u32,
    },
    /// The current process is not permitted to become the JVM's user.
    #[error("cannot switch to user {user} and group {group}")]
    Identity {
        /// User ID.
        user: u32,
        /// Group ID.
        group: u32,
        /// Cause.
        #[serde(with = "io_error")]
        source: io::Error,
    },
    /// The process may be changing its user.
    #[error("process {pid} is changing its user, or has more than one: it was not accessed")]
    ChangesUser {
        /// Process ID.
        pid: u32,
    },
    /// The process has ended.
    #[error("process {pid} has ended")]
    Ended {
        /// Process ID.
        pid: u32,
    },
    /// The process ended while it ran a command.
    #[error("process {pid} ended during `{command}`")]
    EndedDuring {
        /// Process ID.
        pid: u32,
        /// Name of the command.
        command: String,
    },
    /// The process is stopped.
    #[error("process {pid} is stopped (by SIGSTOP or a debugger)")]
    Stopped {
        /// Process ID.
        pid: u32,
    },
    /// The process cannot be sent a signal.
    #[error("cannot send a signal to process {pid}")]
    Signal {
        /// Process ID.
        pid: u32,
        /// Cause.
        #[serde(with = "io_error")]
        source: io::Error,
    },
    /// The process does not handle a signal, which would therefore end it.
    #[error("process {pid} does not handle {signal}, which would end it: the signal was not sent")]
    Unhandled {
        /// Process ID.
        pid: u32,
        /// Name of the signal.
        signal: Cow<'static, str>,
    },
    /// The JVM was started without the attach mechanism.
    #[error("process {pid} was started with -XX:+DisableAttachMechanism: it accepts no commands")]
    Disabled {
        /// Process ID.
        pid: u32,
    },
    /// The JVM did not open its socket.
    #[error("process {pid} did not open its attach socket within {seconds} s")]
    NoSocket {
        /// Process ID.
        pid: u32,
        /// Time limit in seconds.
        seconds: u64,
    },
    /// A file or directory of the JVM cannot be used.
    #[error("cannot attach to process {pid}: {place}")]
    Place {
        /// Process ID.
        pid: u32,
        /// Path of the file or directory as the current process sees it.
        place: String,
        /// Cause.
        #[serde(with = "io_error")]
        source: io::Error,
    },
    /// The JVM did not reply in time.
    #[error("process {pid} has not answered `{command}` for {seconds} s")]
    Late {
        /// Process ID.
        pid: u32,
        /// Name of the command.
        command: String,
        /// Time limit in seconds.
        seconds: u64,
    },
    /// An output directory that others may change is not writable for the user to whom the file would belong.
    #[error("user {user} cannot write to the directory {}", path.display())]
    Unwritable {
        /// Path of the directory.
        path: PathBuf,
        /// ID of the user who cannot write.
        user: u32,
        /// Cause.
        #[serde(with = "io_error")]
        source: io::Error,
    },
    /// An output directory may be changed by a user who is neither root nor the JVM's user.
    #[error(
        "user {owner}, who is neither root nor the JVM's user, may change the contents of {}: nothing was \
         written there",
        path.display()
    )]
    ForeignPlace {
        /// Path of the directory.
        path: PathBuf,
        /// User ID of the directory's owner.
        owner: u32,
    },
    /// An argument of a command is too long or contains a forbidden character.
    #[error("process {pid} accepts at most {max} bytes per argument, and no NUL")]
    Argument {
        /// Process ID.
        pid: u32,
        /// Maximum length of an argument in bytes.
        max: usize,
    },
    /// The connection to the JVM failed.
    #[error("communication with process {pid} failed")]
    Talk {
        /// Process ID.
        pid: u32,
        /// Cause.
        #[serde(with = "io_error")]
        source: io::Error,
    },
    /// The JVM's reply has no result code, or no version.
    #[error("the reply of process {pid} is not that of a JVM")]
    Answer {
        /// Process ID.
        pid: u32,
    },
    /// The JVM's reply, or a file about it, is longer than any that is expected.
    #[error("the reply of process {pid}, or a file about it, is longer than {} MiB", max >> 20)]
    TooLong {
        /// Process ID.
        pid: u32,
        /// Maximum length in bytes.
        max: usize,
    },
    /// A helper was asked to send a diagnostic command that it does not send.
    #[error("the helper does not send `{command}` to JVMs")]
    CommandRefused {
        /// Diagnostic command.
        command: String,
    },
    /// The JVM replied that a command failed.
    #[error("process {pid} refused `{command}`: {text}")]
    Refused {
        /// Process ID.
        pid: u32,
        /// Name of the command.
        command: String,
        /// Reply of the JVM.
        text: String,
    },
    /// There is not enough space for a dump.
    #[error(
        "{} has {} free, but the dump needs about {}{}", place.display(), Size(*free), Size(*needed),
        if *is_twice {
            ": this JVM writes the dump in segments and then merges them, which needs twice its size"
        } else {
            ""
        }
    )]
    Space {
        /// Path of the directory.
        place: PathBuf,
        /// Free space in bytes.
        free: u64,
        /// Required space in bytes.
        needed: u64,
        /// `true` if the required space is twice the size of the dump.
        is_twice: bool,
    },
    /// An output file already exists.
    #[error("{} already exists", path.display())]
    Exists {
        /// Path of the file.
        path: PathBuf,
    },
    /// A file or directory used by the current process is not accessible.
    #[error("{what} {}", path.display())]
    File {
        /// Failed action, such as "cannot create".
        what: Cow<'static, str>,
        /// Path of the file or directory.
        path: PathBuf,
        /// Cause.
        #[serde(with = "io_error")]
        source: io::Error,
    },
    /// The file found after the dump is not the one that the JVM was to write.
    #[error("{} is not the dump requested from process {pid}: {why}", path.display())]
    Odd {
        /// Process ID.
        pid: u32,
        /// Path of the file.
        path: PathBuf,
        /// Difference that was found.
        why: String,
    },
    /// The dump cannot be written to its destination.
    #[error("cannot write the dump")]
    Output {
        /// Cause.
        #[serde(with = "io_error")]
        source: io::Error,
    },
    /// A dump that the JVM sent to the current process is incomplete.
    #[error("process {pid} wrote {said} bytes, but {received} bytes were received")]
    Incomplete {
        /// Process ID.
        pid: u32,
        /// Number of bytes that the JVM wrote according to its reply.
        said: u64,
        /// Number of bytes received.
        received: u64,
    },
    /// The dump file of a native image, which contains secrets, cannot be removed.
    #[error("cannot remove {}, a heap dump that process {pid} wrote", path.display())]
    Stays {
        /// Process ID.
        pid: u32,
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        #[serde(with = "io_error")]
        source: io::Error,
    },
    /// [`Machine::take`](crate::machine::Machine::take) was called before a plan was made.
    #[error("internal error: no heap dump was planned")]
    Unplanned,
    /// An error that occurred in a helper.
    #[error(transparent)]
    Elsewhere(Box<Error>),
    /// Another machine cannot be reached, or its helper does not work.
    #[serde(skip)]
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// A native image did not write a dump in time.
    #[error("process {pid} wrote no heap dump within {seconds} s after SIGUSR1")]
    NoNativeDump {
        /// Process ID.
        pid: u32,
        /// Time limit in seconds.
        seconds: u64,
    },
}

/// Serialization of system errors as a number if they have one, which is the same on all Linux systems of an architecture.
mod io_error {
    use std::io;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(error: &io::Error, to: S) -> Result<S::Ok, S::Error> {
        (error.raw_os_error(), error.to_string()).serialize(to)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<io::Error, D::Error> {
        let (number, text) = <(Option<i32>, String)>::deserialize(from)?;
        Ok(number.map_or_else(|| io::Error::other(text), io::Error::from_raw_os_error))
    }
}

/// Number of bytes that is displayed with a unit.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] =
            [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        match UNITS.iter().find(|(unit, _)| self.0 >= *unit) {
            Some((unit, name)) => {
                let tenths = u128::from(self.0) * 10 / u128::from(*unit);
                write!(f, "{}.{} {name}", tenths / 10, tenths % 10)
            }
            None => write!(f, "{} B", self.0),
        }
    }
}

impl Error {
    /// Returns the error, on whichever machine it occurred.
    pub fn cause(&self) -> &Self {
        match self {
            Self::Elsewhere(error) => error.cause(),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (20_971_520, "20.0 MiB"),
            (u64::MAX, "16777215.9 TiB"),
        ] {
            assert_eq!(Size(bytes).to_string(), text);
        }
    }
}
