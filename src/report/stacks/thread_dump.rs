//! Threads in the format of a thread dump by `jstack` or `jcmd Thread.print`, for programs that read thread dumps.
//!
//! Facts that a heap dump does not contain, such as the ID of the native thread and the address of its stack, are 0.

use std::io::{self, Write};

use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_query::threads::{JavaThread, Local, Object, ThreadKind, ThreadState, Wait};

use crate::escape;
use crate::number::group_digits;

/// Display of local variables: the objects that a frame holds, in lines below the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locals {
    /// Objects are shown.
    Shown,
    /// Objects are not shown.
    Hidden,
}

/// Writes the lines before the first thread. `created` is an RFC 3339 time.
///
/// # Errors
/// If `out` cannot be written.
pub fn head(out: &mut dyn Write, summary: &Summary, created: Option<&str>) -> io::Result<()> {
    if let Some((date, time)) = created.and_then(|created| created.split_once('T')) {
        writeln!(out, "{date} {}", time.get(..8).unwrap_or(time))?;
    }
    let property = |key| summary.property(key).map(escape::text);
    let name = property("java.vm.name").unwrap_or("Java VM".into());
    let about: Vec<_> = ["java.vm.version", "java.vm.info"].into_iter().filter_map(property).collect();
    let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join(" ")) };
    writeln!(out, "Full thread dump {name}{about}:\n")
}

/// Writes a thread, followed by an empty line.
///
/// # Errors
/// If `out` cannot be written.
pub fn thread(out: &mut dyn Write, summary: &Summary, thread: &JavaThread, locals: Locals) -> io::Result<()> {
    write!(out, "\"{}\"", escape::text(thread.name.as_deref().unwrap_or_default()))?;
    if let Some(id) = thread.thread_id {
        write!(out, " #{id}")?;
    }
    if thread.is_daemon == Some(true) {
        write!(out, " daemon")?;
    }
    if thread.kind == ThreadKind::Virtual {
        write!(out, " virtual")?;
    }
    let address = thread.native_address.unwrap_or(thread.object.0);
    let priority = thread.priority.unwrap_or(5);
    let doing = doing(thread);
    writeln!(out, " prio={priority} os_prio=0 tid=0x{address:016x} nid=0x0 {doing} [0x0000000000000000]")?;
    if let Some(state) = thread.doing.state {
        let wait = thread.doing.wait.map(|wait| format!(" ({})", wait.name())).unwrap_or_default();
        writeln!(out, "   java.lang.Thread.State: {}{wait}", state.name())?;
    }
    for (number, frame) in thread.frames.iter().enumerate() {
        writeln!(out, "\tat {}", escape::text(&frame.frame.to_string()))?;
        if let (0, Some(Wait::Parking), Some(blocker)) = (number, thread.doing.wait, &thread.blocker) {
            writeln!(out, "\t- parking to wait for  {}", object(summary, blocker))?;
        }
        write_locals(out, summary, &frame.locals, locals)?;
    }
    if thread.frames_left_out > 0 {
        // Same text as in Java's truncated traces.
        writeln!(out, "\t... {} more", thread.frames_left_out)?;
    }
    write_locals(out, summary, &thread.locals, locals)?;
    writeln!(out)
}

/// Returns the words for the state of the native thread.
fn doing(thread: &JavaThread) -> &'static str {
    match (thread.doing.state, thread.doing.wait) {
        (Some(ThreadState::Blocked), _) => "waiting for monitor entry",
        (_, Some(Wait::OnMonitor)) => "in Object.wait()",
        (_, Some(_)) | (Some(ThreadState::Waiting | ThreadState::TimedWaiting), None) => {
            "waiting on condition"
        }
        _ => "runnable",
    }
}

fn write_locals(out: &mut dyn Write, summary: &Summary, held: &[Local], locals: Locals) -> io::Result<()> {
    for local in held.iter().filter(|_| locals == Locals::Shown) {
        let retained = local.retained_bytes.map_or_else(
            || "unreachable".to_owned(),
            |bytes| format!("{} bytes retained", group_digits(bytes)),
        );
        let kind = local.kind.name();
        writeln!(out, "\t- {kind} holds {}, {retained}", object(summary, &local.object))?;
    }
    Ok(())
}

/// Formats an object as `<0x00000000f0001a90> (a java.lang.Object)`.
fn object(summary: &Summary, object: &Object) -> String {
    let class = |class: ClassNumber| summary.class(class).map(|class| summary.class_name(class));
    let name = object.class.and_then(class).unwrap_or("<unknown class>");
    format!("<0x{:016x}> (a {})", object.id, escape::text(name))
}
