//! What the agent can be asked for.

use std::sync::mpsc::Sender;

use crate::options::{Cpu, Options};

/// What the agent's own thread is asked for.
#[derive(Debug)]
pub enum Command {
    /// To write.
    Dump(DumpContents),
    /// To write, then to record no more.
    Stop,
    /// One of the others, and to tell when it is done.
    Told(Box<Command>, Sender<CommandReply>),
    /// To write, and end the JVM.
    Exit,
    /// The JVM ends.
    End,
}

/// What became of a command.
#[derive(Debug)]
pub struct CommandReply {
    /// Whether all of it was done.
    pub done: bool,
    /// What was said meanwhile.
    pub said: Vec<String>,
}

/// What is asked for, beside definitions: threads, classes, traces.
#[derive(Debug, Clone, Copy, Default)]
pub struct DumpContents {
    /// MONITOR DUMP and MONITOR TIME.
    pub monitors: bool,
    /// HEAP DUMP.
    pub heap: bool,
    /// SITES, and below which part rows are left out.
    pub sites: Option<f64>,
    /// HEAP SUMMARY.
    pub summary: bool,
    /// CPU SAMPLES, and the same.
    pub samples: Option<f64>,
    /// CPU TIME, or the table of `cpu=old`.
    pub times: bool,
    /// CONTROL SETTINGS.
    pub settings: bool,
}

impl DumpContents {
    /// All that the options record.
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
