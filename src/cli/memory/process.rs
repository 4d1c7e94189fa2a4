//! A running process whose memory is read: asks the kernel and the JVM.

use std::time::Duration;

use hprof_capture::Error;
use hprof_capture::machine::Machine;
use hprof_capture::memory_files::MemoryFiles;
use hprof_memory::cgroup::{self, Cgroup, CgroupFiles};
use hprof_memory::flags::MemoryFlags;
use hprof_memory::malloc_info::MallocInfo;
use hprof_memory::mappings::{AddressRange, Mappings};
use hprof_memory::native_memory::NativeMemory;
use hprof_memory::{Ledger, Sources};

/// A running process, and how to ask it.
pub(super) struct LiveProcess<'m> {
    pub(super) machine: &'m mut dyn Machine,
    pub(super) pid: u32,
    /// `true` if it answers diagnostic commands.
    pub(super) answers: bool,
    pub(super) limit: Option<Duration>,
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

    /// Computes the ledger of the process again.
    ///
    /// # Errors
    /// As [`Self::sources`].
    pub(super) fn ledger(&mut self) -> anyhow::Result<Ledger> {
        Ok(Ledger::new(&self.sources(true)?))
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
