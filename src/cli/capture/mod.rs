//! Commands about running JVMs: list them, and take heap dumps of them.

pub(crate) mod dump;
mod guard;
pub(crate) mod jvms;
mod plan;

pub(crate) use guard::{Guards, WORD as GUARD, run as run_guard};

use std::time::Duration;

use crate::cli::shared::session::AnswerSource;
use hprof_capture::processes::VmKind;
use hprof_report::json::DumpHeader;

/// This machine, as the file of an answer.
struct Machine;

impl AnswerSource for Machine {
    fn dump(&self) -> DumpHeader<'_> {
        DumpHeader { path: "/proc".into(), ..DumpHeader::default() }
    }

    fn is_damaged(&self) -> bool {
        false
    }
}

/// Returns the name of a kind of virtual machine.
fn kind(kind: VmKind) -> &'static str {
    match kind {
        VmKind::HotSpot => "HotSpot",
        VmKind::OpenJ9 => "OpenJ9",
        VmKind::NativeImage => "native image",
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Formats a short time: `1.4 s`.
fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// Formats a long time by its two largest units: `3 d 4 h`.
fn long_time(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let first = units.iter().position(|(unit, _)| seconds >= *unit).unwrap_or(units.len().saturating_sub(1));
    let mut rest = seconds;
    let parts = units.iter().skip(first).take(2).map(|(unit, name)| {
        let count = rest / unit;
        rest %= unit;
        format!("{count} {name}")
    });
    parts.collect::<Vec<_>>().join(" ")
}

/// Advice about an error.
pub(crate) fn advice(error: &hprof_capture::Error) -> Option<String> {
    use hprof_capture::Error;
    Some(match error {
        Error::NoProcess { .. } | Error::NotJvm { .. } | Error::Ended { .. } => {
            "`hprof-cli jvms` lists the running JVMs".to_owned()
        }
        Error::Thread { pid, .. } => format!("use {pid}"),
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
        Error::Identity { .. } | Error::Signal { .. } => {
            "run it as the JVM's user, or as root with all capabilities".to_owned()
        }
        Error::Stopped { pid } => format!("kill -CONT {pid} lets it go on"),
        Error::Unhandled { signal: "SIGUSR1", .. } => {
            "build the native image with --enable-monitoring=heapdump".to_owned()
        }
        Error::Unhandled { .. } => {
            "the JVM is still starting; or it was started with -Xrs, and the socket that it then opens at once, \
             /tmp/.java_pidPID, was removed"
                .to_owned()
        }
        Error::Disabled { .. } => {
            "restart it without that option; -XX:+HeapDumpOnOutOfMemoryError works with it".to_owned()
        }
        Error::NoSocket { .. } => {
            "it may hang, or have been started with -XX:+DisableAttachMechanism; its stdout has a thread dump then"
                .to_owned()
        }
        Error::Space { .. } => "free space there, or write the dump elsewhere with --output FILE".to_owned(),
        Error::File { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
            "nothing was kept; free space there, or write the dump elsewhere with --output FILE".to_owned()
        }
        Error::Exists { .. } => "--force replaces it".to_owned(),
        Error::Refused { text, .. } if text.contains("No space left") => {
            "the dump was removed; free space there, or write it elsewhere with --output FILE".to_owned()
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_units() {
        for (seconds, text) in
            [(0, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (3_600, "1 h 0 min"), (200_000, "2 d 7 h")]
        {
            assert_eq!(long_time(Duration::from_secs(seconds)), text);
        }
    }
}
