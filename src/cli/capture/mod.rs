//! Commands about running JVMs: list them, and take heap dumps of them.

mod destination;
pub(crate) mod dump;
pub(crate) mod jvms;
mod plan;
mod redaction;

use std::time::Duration;

use hprof_capture::VmKind;

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
