//! Advice about JVMs that cannot be accessed, and dumps that cannot be taken.

use std::io::ErrorKind;

use hprof_capture::Error;
use hprof_capture::RemoteError;
use hprof_capture::VmKind;

/// Returns one line of advice about an error.
pub(super) fn for_error(error: &Error) -> Option<String> {
    Some(match error {
        Error::NoProcess { .. } | Error::NotJvm { .. } | Error::Ended { .. } => {
            "`hprof-cli jvms` lists the running JVMs".to_owned()
        }
        Error::Thread { pid, .. } => format!("use the process ID {pid}"),
        Error::OtherVm { kind: VmKind::OpenJ9, pid } => format!(
            "`jcmd {pid} Dump.heap` makes a dump in IBM's PHD format, which this program does not read; Eclipse MAT does, with \
             its DTFJ plugin"
        ),
        Error::OtherVm { kind: VmKind::NativeImage, .. } => {
            "a native image accepts no commands; `hprof-cli dump` takes a heap dump of one that was built with \
             --enable-monitoring=heapdump"
                .to_owned()
        }
        Error::OtherUser { user, .. } => format!("run it as that user or as root: sudo -u '#{user}' hprof-cli ..."),
        Error::Hidden { .. } => "this needs the capability CAP_SYS_PTRACE: run it as root, in a container with \
                                 --cap-add SYS_PTRACE"
            .to_owned(),
        Error::Identity { .. } | Error::Signal { .. } => {
            "run it as the JVM's user, or as root with all capabilities".to_owned()
        }
        Error::Stopped { pid } => format!("resume it with kill -CONT {pid}"),
        Error::Unhandled { signal, .. } if signal == "SIGUSR1" => {
            "build the native image with --enable-monitoring=heapdump".to_owned()
        }
        Error::Unhandled { .. } => {
            "the JVM is still starting, or it was started with -Xrs and its socket, /tmp/.java_pidPID, was removed"
                .to_owned()
        }
        Error::Disabled { .. } => {
            "restart it without that option; -XX:+HeapDumpOnOutOfMemoryError works with it".to_owned()
        }
        Error::NoSocket { .. } => {
            "it may hang, or it was started with -XX:+DisableAttachMechanism and printed a thread dump to its stdout \
             instead"
                .to_owned()
        }
        Error::ForeignPlace { .. } => {
            "name a file in a directory that only root can change, or in one owned by the JVM's user".to_owned()
        }
        Error::Unwritable { .. } => "other users can change that directory or one of its parents, so root does not \
                                     write there; name a file in a directory that only root can change, or in one \
                                     owned by that user"
            .to_owned(),
        Error::Space { .. } => "free space there, or write the dump elsewhere with --output FILE".to_owned(),
        Error::File { source, .. } if source.kind() == ErrorKind::StorageFull => {
            "nothing was kept; free space there, or write the dump elsewhere with --output FILE".to_owned()
        }
        Error::Exists { .. } => "--force replaces it".to_owned(),
        Error::Refused { text, .. } if text.contains("No space left") => {
            "the dump was removed; free space there, or write it elsewhere with --output FILE".to_owned()
        }
        Error::Stays { .. } => "remove it: it may contain secrets".to_owned(),
        Error::Elsewhere(error) => return elsewhere(error),
        Error::Remote(error) => return remote(error),
        _ => return None,
    })
}

/// Returns one line of advice about an error of a helper program.
fn elsewhere(error: &Error) -> Option<String> {
    Some(match error {
        Error::NoProcess { .. } | Error::NotJvm { .. } | Error::Ended { .. } => {
            "`hprof-cli jvms` with the same --via lists the running JVMs there".to_owned()
        }
        Error::OtherUser { user, .. } => {
            format!("the command of --via must run programs there as user {user}, or as root")
        }
        Error::Stopped { pid } => format!("resume it there with kill -CONT {pid}"),
        Error::Space { .. } => {
            "free space there; the JVM writes to its own /tmp, regardless of --output; up to JDK 21, it needs no \
             space".to_owned()
        }
        Error::Refused { text, .. } if text.contains("No space left") => {
            "the dump was removed; free space there".to_owned()
        }
        Error::File { source, .. } if source.kind() == ErrorKind::StorageFull => {
            "nothing was kept; free space there".to_owned()
        }
        error => return for_error(error),
    })
}

/// Returns one line of advice about a failure to access another machine or container.
fn remote(error: &RemoteError) -> Option<String> {
    /// Advice about alternatives that need no helper program on the other machine.
    const OTHERWISE: &str = "a container can be dumped from its host without a helper, as root (`hprof-cli jvms` \
                             lists its JVMs, too); `kubectl debug --target` starts a container with a shell beside \
                             it; --via-program PATH uses a helper that is already there";
    Some(match error {
        RemoteError::Ended { .. } => {
            "the command must run a program there and connect its stdin and stdout: 'kubectl exec -i POD --', 'docker \
             exec -i NAME', 'ssh HOST'; without `sh` there, --via-program PATH uses a helper that is already there"
                .to_owned()
        }
        RemoteError::NotShell { .. } => {
            "the command must pass on stdin and allocate no terminal: use -i without -t".to_owned()
        }
        RemoteError::NoHelper => {
            "packages contain the helper, and `cargo build --release` in the repository builds it for this machine; \
             or set $HPROF_CLI_HELPER to its path"
                .to_owned()
        }
        RemoteError::Unsuitable { .. } => format!(
            "packages contain a helper that needs no C library and, for x86-64, one that needs no chmod; \
             $HPROF_CLI_HELPER can name another helper; {OTHERWISE}"
        ),
        RemoteError::NoPlace { .. } => OTHERWISE.to_owned(),
        RemoteError::Version { .. } => "use the helper of this version".to_owned(),
        _ => return None,
    })
}
