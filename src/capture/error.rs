//! Errors: what failed, where, and why. What to do next depends on the program that tells it.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::remote_error::RemoteError;
use crate::vm_kind::VmKind;

/// Error of looking at a JVM or of taking a heap dump.
///
/// A helper sends it to the program that asked.
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Error {
    /// There is no process with this ID.
    #[error("there is no process {pid}")]
    NoProcess {
        /// Process ID.
        pid: u32,
    },
    /// The ID is that of a thread.
    #[error("{id} is a thread of process {pid}")]
    Thread {
        /// Given ID.
        id: u32,
        /// Its process.
        pid: u32,
    },
    /// The process has no virtual machine.
    #[error("process {pid} ({name}) is not a JVM: it has not loaded libjvm.so")]
    NotJvm {
        /// Process ID.
        pid: u32,
        /// Name of the program.
        name: String,
    },
    /// The process has a virtual machine that has no attach protocol of HotSpot.
    #[error("process {pid} is {}, which does not accept the commands of HotSpot", match kind {
        VmKind::OpenJ9 => "an OpenJ9 JVM",
        VmKind::NativeImage => "a GraalVM native image",
        VmKind::HotSpot => "a JVM",
    })]
    OtherVm {
        /// Process ID.
        pid: u32,
        /// What it is.
        kind: VmKind,
    },
    /// The process belongs to another user.
    #[error("process {pid} belongs to user {user}, and this is user {own}")]
    OtherUser {
        /// Process ID.
        pid: u32,
        /// Its user ID.
        user: u32,
        /// User ID of this process.
        own: u32,
    },
    /// The process may not be looked into, although its user is this one, or this one is root.
    #[error("this process may not look into process {pid}")]
    Hidden {
        /// Process ID.
        pid: u32,
    },
    /// This process may not become the JVM's user.
    #[error("cannot become user {user} and group {group}")]
    Identity {
        /// User ID.
        user: u32,
        /// Group ID.
        group: u32,
        /// Why.
        #[serde(with = "io_error")]
        source: io::Error,
    },
    /// The process is about to become another user's.
    #[error("process {pid} changes its user, or has several: nothing is done for it")]
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
    /// The process ended while it was asked.
    #[error("process {pid} ended during `{command}`")]
    EndedDuring {
        /// Process ID.
        pid: u32,
        /// The command.
        command: String,
    },
    /// The process is stopped.
    #[error("process {pid} is stopped (by SIGSTOP or a debugger)")]
    Stopped {
        /// Process ID.
        pid: u32,
    },
    /// The process cannot be signalled.
    #[error("cannot send a signal to process {pid}")]
    Signal {
        /// Process ID.
        pid: u32,
        /// Why.
        #[serde(with = "io_error")]
        source: io::Error,
    },
    /// A signal would end the process.
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
        /// Time it was given.
        seconds: u64,
    },
    /// A file or directory of the JVM cannot be used.
    #[error("cannot attach to process {pid}: {place}")]
    Place {
        /// Process ID.
        pid: u32,
        /// File or directory as this process sees it.
        place: String,
        /// Why.
        #[serde(with = "io_error")]
        source: io::Error,
    },
    /// The JVM did not answer.
    #[error("process {pid} has not answered `{command}` for {seconds} s")]
    Late {
        /// Process ID.
        pid: u32,
        /// The command.
        command: String,
        /// Time it was given.
        seconds: u64,
    },
    /// A directory for output that somebody else may change cannot be written as the user to whom the file would belong.
    #[error("cannot write in {} as user {user}", path.display())]
    Unwritable {
        /// The directory.
        path: PathBuf,
        /// User as whom it was tried.
        user: u32,
        /// Why.
        #[serde(with = "io_error")]
        source: io::Error,
    },
    /// A directory for output is one that somebody else may change.
    #[error(
        "user {owner} may change what is in {}, and is neither root nor the JVM's user: nothing is written there",
        path.display()
    )]
    ForeignPlace {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// An argument cannot be sent.
    #[error("process {pid} accepts at most {max} bytes per argument, without NUL")]
    Argument {
        /// Process ID.
        pid: u32,
        /// Maximum length.
        max: usize,
    },
    /// The connection failed.
    #[error("cannot talk to process {pid}")]
    Talk {
        /// Process ID.
        pid: u32,
        /// Why.
        #[serde(with = "io_error")]
        source: io::Error,
    },
    /// The answer has no code.
    #[error("process {pid} does not answer like a JVM")]
    Answer {
        /// Process ID.
        pid: u32,
    },
    /// The JVM answered that a command failed.
    #[error("process {pid} refused `{command}`: {text}")]
    Refused {
        /// Process ID.
        pid: u32,
        /// The command.
        command: String,
        /// What the JVM said.
        text: String,
    },
    /// There is too little space for a dump.
    #[error(
        "{} has {} free, and the dump needs about {}{}", place.display(), Size(*free), Size(*needed),
        if *is_twice { ": this JVM writes it in segments and then merges them, which takes its size twice" } else { "" }
    )]
    Space {
        /// Directory.
        place: PathBuf,
        /// Free bytes.
        free: u64,
        /// Bytes needed.
        needed: u64,
        /// Whether these are twice the size of the dump.
        is_twice: bool,
    },
    /// A file exists already.
    #[error("{} already exists", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A file or directory of ours cannot be used.
    #[error("{what} {}", path.display())]
    File {
        /// What could not be done: "cannot create".
        what: Cow<'static, str>,
        /// The file.
        path: PathBuf,
        /// Why.
        #[serde(with = "io_error")]
        source: io::Error,
    },
    /// What the JVM left is not the file that it was asked for.
    #[error("{} is not the dump that process {pid} was asked for: {why}", path.display())]
    Odd {
        /// Process ID.
        pid: u32,
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The dump cannot be written to where it should go.
    #[error("cannot write the dump")]
    Output {
        /// Why.
        #[serde(with = "io_error")]
        source: io::Error,
    },
    /// A dump that passed through this process is incomplete.
    #[error("process {pid} wrote {said} bytes, and {received} arrived")]
    Incomplete {
        /// Process ID.
        pid: u32,
        /// Bytes that the JVM wrote.
        said: u64,
        /// Bytes that arrived.
        received: u64,
    },
    /// What a native image wrote is a dump, full of secrets, that cannot be removed.
    #[error("cannot remove {}, a heap dump that process {pid} wrote", path.display())]
    Stays {
        /// Process ID.
        pid: u32,
        /// The file.
        path: PathBuf,
        /// Why.
        #[serde(with = "io_error")]
        source: io::Error,
    },
    /// A dump was to be taken before it was planned.
    #[error("no dump was planned")]
    Unplanned,
    /// An error of a helper.
    #[error(transparent)]
    Elsewhere(Box<Error>),
    /// Another place cannot be reached.
    #[serde(skip)]
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// A native image wrote no dump.
    #[error("process {pid} wrote no heap dump within {seconds} s after SIGUSR1")]
    NoNativeDump {
        /// Process ID.
        pid: u32,
        /// Time it was given.
        seconds: u64,
    },
}

/// Errors of the system, as a number where they have one: it is the same on all Linux systems of an architecture.
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

/// A number of bytes, for people.
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
