//! Commands to the agent, and the sections of a dump that they request.

use std::sync::mpsc::Sender;

use hprof_format::commands::SiteFlags;

use crate::options::{Cpu, Options};

/// Commands to the agent's own thread.
#[derive(Debug)]
pub enum Command {
    /// Writes a dump.
    Dump(DumpContents),
    /// Writes a dump, then stops the recording.
    Stop,
    /// Carries out another command, and sends a reply when it is completed.
    Told(Box<Command>, Sender<CommandReply>),
    /// Writes a dump, and ends the JVM.
    Exit,
    /// Ends the agent's thread, because the JVM is ending.
    End,
}

/// Reply to a command.
#[derive(Debug)]
pub struct CommandReply {
    /// `true` if the command was carried out completely.
    pub done: bool,
    /// Messages that were written while the command was carried out.
    pub said: Vec<String>,
}

/// Sections of a dump, in addition to threads, classes and traces, which are always written.
#[derive(Debug, Clone, Copy, Default)]
pub struct DumpContents {
    /// MONITOR DUMP and MONITOR TIME sections.
    pub monitors: bool,
    /// HEAP DUMP section.
    pub heap: bool,
    /// SITES section.
    pub sites: Option<SitesRequest>,
    /// HEAP SUMMARY record.
    pub summary: bool,
    /// CPU SAMPLES section; the value is the minimum share for a row.
    pub samples: Option<f64>,
    /// CPU TIME section, or the table of `cpu=old`.
    pub times: bool,
    /// CONTROL SETTINGS record.
    pub settings: bool,
}

/// Sites to write.
#[derive(Debug, Clone, Copy)]
pub struct SitesRequest {
    /// Selection and order of the sites.
    pub flags: SiteFlags,
    /// Minimum share for a row.
    pub cutoff: f64,
}

impl DumpContents {
    /// Returns all sections for which the options record data.
    pub fn all(options: &Options) -> Self {
        Self {
            monitors: options.monitors,
            heap: options.heap_dump,
            sites: options
                .sites
                .then_some(SitesRequest { flags: SiteFlags::FORCE_GC, cutoff: options.cutoff }),
            samples: (options.cpu == Some(Cpu::Samples)).then_some(options.cutoff),
            times: options.cpu.is_some_and(Cpu::is_timed),
            ..Self::default()
        }
    }
}
