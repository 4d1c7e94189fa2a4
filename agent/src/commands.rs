//! Commands to the agent.

use std::sync::mpsc::Sender;

use crate::options::{Cpu, Options};

/// Commands to the agent's own thread.
#[derive(Debug)]
pub enum Command {
    /// Write a dump.
    Dump(DumpContents),
    /// Write a dump, then stop recording.
    Stop,
    /// Another command, with a notification when it is done.
    Told(Box<Command>, Sender<CommandReply>),
    /// Write a dump, and end the JVM.
    Exit,
    /// The JVM ends.
    End,
}

/// Result of a command.
#[derive(Debug)]
pub struct CommandReply {
    /// `true` if the command was carried out completely.
    pub done: bool,
    /// Messages of the command.
    pub said: Vec<String>,
}

/// Sections to write, in addition to definitions: threads, classes, traces.
#[derive(Debug, Clone, Copy, Default)]
pub struct DumpContents {
    /// MONITOR DUMP and MONITOR TIME.
    pub monitors: bool,
    /// HEAP DUMP.
    pub heap: bool,
    /// SITES, with the minimum share of rows.
    pub sites: Option<f64>,
    /// HEAP SUMMARY.
    pub summary: bool,
    /// CPU SAMPLES, with the minimum share of rows.
    pub samples: Option<f64>,
    /// CPU TIME, or the table of `cpu=old`.
    pub times: bool,
    /// CONTROL SETTINGS.
    pub settings: bool,
}

impl DumpContents {
    /// Returns all sections that the options record.
    pub fn all(options: &Options) -> Self {
        Self {
            monitors: options.monitors,
            heap: options.heap_dump,
            sites: options.sites.then_some(options.cutoff),
            samples: (options.cpu == Some(Cpu::Samples)).then_some(options.cutoff),
            times: options.cpu.is_some_and(Cpu::is_timed),
            ..Self::default()
        }
    }
}
