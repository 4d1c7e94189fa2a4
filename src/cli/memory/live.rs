//! The memory of a running process: asks the kernel and the JVM.

use std::time::Duration;

use hprof_capture::machine::Machine;
use hprof_capture::memory_files::MemoryFiles;
use hprof_capture::{Error, VmKind};
use hprof_memory::cgroup::{self, Cgroup, CgroupFiles};
use hprof_memory::flags::MemoryFlags;
use hprof_memory::malloc_info::MallocInfo;
use hprof_memory::mappings::{AddressRange, Mappings};
use hprof_memory::native_memory::NativeMemory;
use hprof_memory::{Ledger, Sources};

use crate::cli::capture::dump::find;
use crate::cli::prelude::*;
use crate::cli::shared::user_files::opener;

use super::saved::{self, SavedMemory};
use super::{MemoryArgs, MemorySource, watch};

/// Maximum time for the reply to a diagnostic command, unless `--timeout` sets another.
const TO_ANSWER: Duration = Duration::from_secs(60);

pub(super) fn run(cx: &RunContext, args: &MemoryArgs) -> anyhow::Result<Outcome> {
    anyhow::ensure!(
        cx.is_shell(),
        "{}: no such file; running JVMs can be read from a shell only",
        args.input.path().display()
    );
    let opener = opener();
    let (mut machine, place) = args.via.connect(&opener, args.timeout)?;
    let target = args.input.path().to_string_lossy();
    let pid = find(&target, machine.as_mut())?;
    let row = machine.find(pid)?;
    let mut process = LiveProcess {
        machine: machine.as_mut(),
        pid,
        answers: row.kind == VmKind::HotSpot,
        limit: Some(args.timeout.unwrap_or(TO_ANSWER)),
        notes: Vec::new(),
    };
    if args.trim {
        let reply = process.machine.jcmd(pid, "System.trim_native_heap", process.limit)?;
        // `Trim native heap: RSS+Swap: 87M->40M (-47M)`
        let lines = reply.text.lines().map(str::trim).filter(|line| line.contains("Trim"));
        lines.for_each(|line| cx.emit("note", line));
    }
    let mut sources = process.sources(args.nmt.is_none())?;
    if !args.input.quiet {
        process.notes.iter().for_each(|note| cx.emit("note", note));
    }
    if let Some(nmt) = &args.nmt {
        sources.native_memory = Some(saved::native_memory(nmt)?);
    }
    if let (true, Some(mappings)) = (cx.hides_values, &mut sources.mappings) {
        mappings.hide_paths();
    }
    if let Some(interval) = args.watch {
        return watch::run(cx, args, &mut process, sources, interval);
    }
    let mut source = MemorySource::new(place.name().to_owned());
    source.saved = SavedMemory::new(pid, row.main_class, sources);
    source.add_files(cx, args)?;
    drop(machine);
    if let Some(path) = &args.save {
        source.saved.write(path, &args.inputs(), args.force)?;
    }
    source.show(cx, args)
}

/// A running process, and how to ask it.
pub(super) struct LiveProcess<'m> {
    machine: &'m mut dyn Machine,
    pub(super) pid: u32,
    /// `true` if it answers diagnostic commands.
    answers: bool,
    limit: Option<Duration>,
    /// Notes about what could not be read.
    pub(super) notes: Vec<String>,
}

impl LiveProcess<'_> {
    /// Reads everything about the memory of the process.
    ///
    /// # Errors
    /// If the process has ended, or its mappings must not be read.
    pub(super) fn sources(&mut self, asks_for_nmt: bool) -> anyhow::Result<Sources> {
        let mut sources = Sources::default();
        // The JVM first: its replies take memory, which the kernel then counts.
        if self.answers {
            self.ask("GC.heap_info", |sources, text| sources.layout.add_heap_info(text), &mut sources)?;
            self.ask("VM.info", |sources, text| sources.layout.add_vm_info(text), &mut sources)?;
            self.ask(
                "VM.flags -all",
                |sources, text| sources.flags = MemoryFlags::parse(text),
                &mut sources,
            )?;
            if asks_for_nmt {
                self.ask(
                    "VM.native_memory summary",
                    |sources, text| sources.native_memory = NativeMemory::parse(text),
                    &mut sources,
                )?;
            }
            // Since JDK 21.
            let parse = |sources: &mut Sources, text: &str| sources.malloc = MallocInfo::parse(text);
            self.ask("System.native_heap_info", parse, &mut sources)?;
            if sources.native_memory.is_some() {
                // Since JDK 24; its labels are those of Native Memory Tracking.
                self.ask("System.map", |sources, text| sources.layout.add_system_map(text), &mut sources)?;
            }
        }
        let ranges: Vec<(u64, u64)> =
            sources.layout.ranges.iter().map(|(range, _)| (range.start, range.end)).collect();
        let names: Vec<String> = cgroup::FILES.iter().map(|name| (*name).to_owned()).collect();
        let files = self.machine.memory_files(self.pid, &ranges, &names)?;
        add_files(&mut sources, files);
        Ok(sources)
    }

    /// Runs a diagnostic command. A JVM that cannot be asked is left alone from then on: the kernel's account remains.
    fn ask(
        &mut self,
        command: &str,
        add: impl FnOnce(&mut Sources, &str),
        sources: &mut Sources,
    ) -> anyhow::Result<()> {
        if !self.answers {
            return Ok(());
        }
        match self.machine.jcmd(self.pid, command, self.limit) {
            Ok(reply) => add(sources, &reply.text),
            Err(error) => match error.cause() {
                // An older JVM, or tracking that is off.
                Error::Refused { .. } => {}
                Error::Ended { .. } | Error::EndedDuring { .. } => return Err(error.into()),
                _ => {
                    self.answers = false;
                    self.notes.push(format!(
                        "the JVM does not answer, so only what the kernel says is shown: {error}"
                    ));
                }
            },
        }
        Ok(())
    }
}

/// Adds what the kernel says.
fn add_files(sources: &mut Sources, files: MemoryFiles) {
    sources.peak_bytes = peak_bytes(&files.status);
    sources.threads = Some(files.threads);
    sources.mappings = Some(Mappings::parse(files.smaps.as_bytes()));
    sources.stack_pointers = files.stack_pointers;
    let counted = files.clipped.iter();
    sources.clipped =
        counted.filter_map(|(start, end, bytes)| Some((AddressRange::new(*start, *end)?, *bytes))).collect();
    let levels: Vec<CgroupFiles> =
        files.cgroups.into_iter().map(|group| CgroupFiles { path: group.path, files: group.files }).collect();
    sources.cgroup = Cgroup::of_levels(&levels);
}

/// Returns the most resident bytes so far, from `/proc/PID/status`.
fn peak_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1 << 10)
}

/// Computes the ledger of a process again.
pub(super) fn ledger(process: &mut LiveProcess<'_>) -> anyhow::Result<Ledger> {
    Ok(Ledger::new(&process.sources(true)?))
}
