//! `memory`: where the memory of a process is.

mod buffers;
mod columns;
#[cfg(target_os = "linux")]
mod live;
#[cfg(target_os = "linux")]
mod process;
mod saved;
#[cfg(target_os = "linux")]
mod watch;
mod words;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;

use hprof_memory::mappings::Mappings;
use hprof_memory::{Ledger, Sources};
use hprof_query::recordings::profile::flight::memory_over_time::MemoryOverTime;
use hprof_report::json::DumpHeader;
use hprof_report::number::format_count;

use crate::cli::jvm;
#[cfg(target_os = "linux")]
use crate::cli::jvm::via::ViaArgs;
use crate::cli::prelude::*;
use crate::cli::shared::durations::duration;
use crate::cli::shared::hiding;
use crate::cli::shared::recording::{RecordedInput, RecordedProfile};

use saved::SavedMemory;

pub(crate) use columns::row_schema;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli memory 4711
  hprof-cli memory OrderService --dump heap.hprof
  hprof-cli memory 4711 --watch 10s
  hprof-cli memory 1 --via 'kubectl exec -i POD --' --save pod.json
  hprof-cli memory heap.hprof --process pod.json
  hprof-cli memory smaps.txt --nmt nmt.txt";

/// Show where the memory of a process is: heap and all the rest
///
/// Adds up a JVM's process from the kernel's account (/proc/PID/smaps, cgroup) and the JVM's own (Native Memory
/// Tracking, addresses). Rows do not overlap: their resident bytes and the unexplained rest sum to the process's
/// resident bytes, in which pages that several processes share count in part (PSS). Committed bytes are what a source
/// promises; memory that was never written to is committed, but not resident. Without Native Memory Tracking
/// (-XX:NativeMemoryTracking=summary), malloc and direct buffers are unexplained, unless --dump names the buffers. Of a
/// dump alone, shows what it says about memory outside of the heap. See docs/memory.md.
#[derive(Debug, clap::Args)]
#[command(arg = hiding::no_values())]
#[command(mut_arg("dump", |arg| arg
    .value_name("PID|FILE")
    .help(
        "Process ID of a JVM, a part of its main class's name, a heap dump, a file of --save, or a copy of \
         /proc/PID/smaps; a file wins over a process of that name"
    )))]
pub(crate) struct MemoryArgs {
    #[command(flatten)]
    input: Input,

    /// Heap dump of the same process: says who holds direct and mapped buffers
    #[arg(long = "dump", id = "heap", value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Input")]
    heap: Option<PathBuf>,

    #[command(flatten)]
    process: ProcessArg,

    /// Copy of /proc/PID/smaps of the process of the dump
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with = "process", help_heading = "Input")]
    smaps: Option<PathBuf>,

    /// Output of `jcmd PID VM.native_memory`
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Input")]
    nmt: Option<PathBuf>,

    /// Recording of Flight Recorder (.jfr) of the same process: shows how its memory went over time
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Input")]
    recording: Option<PathBuf>,

    /// Write what was read about the process to FILE, for `memory FILE` and --process
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Output")]
    save: Option<PathBuf>,

    /// Replace an existing file of --save
    #[arg(long, requires = "save", help_heading = "Output")]
    force: bool,

    /// Show a line each TIME, such as 10s: what grew since the line before; Ctrl-C ends with what grew in all
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with_all = ["save", "heap", "recording", "nmt"], help_heading = "Output")]
    watch: Option<Duration>,

    /// Time after which the rounds of --watch end, such as 10m
    #[arg(long = "for", id = "duration", value_name = "TIME", value_parser = duration, requires = "watch", help_heading = "Output")]
    duration: Option<Duration>,

    /// Make the JVM return free memory of glibc's malloc to the system first, and say how much it was (JDK 17.0.9 and
    /// later)
    #[arg(long, help_heading = "Target")]
    trim: bool,

    /// Give up if the JVM or the command of --via does not answer for TIME, such as 90s or 10m
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Target")]
    timeout: Option<Duration>,

    #[cfg(target_os = "linux")]
    #[command(flatten)]
    via: ViaArgs,

    #[command(flatten)]
    output: Output,
}

/// `--process FILE`: a file about the process of a dump.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ProcessArg {
    /// File that `memory PID --save FILE` wrote about the process of the dump: show where the memory of the process is
    /// (see docs/memory.md)
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Input")]
    process: Option<PathBuf>,
}

impl ProcessArg {
    /// Returns the path of the file, if one was given.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.process.as_deref()
    }

    /// Checks that the file can be read, if one was given.
    ///
    /// # Errors
    /// If it is not a file about a process.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.path().map_or(Ok(()), |path| saved::read_beside(path).map(|_| ()))
    }
}

/// A process or file, and everything that is known about its memory.
struct MemorySource {
    /// Path of the file, or `/proc` or the command of `--via`.
    path: String,
    saved: SavedMemory,
    ledger: Ledger,
    /// Shallow size of the heap in a dump, if there is no process.
    dump_bytes: Option<u64>,
    recorded: Option<RecordedProfile>,
    is_damaged: bool,
}

impl AnswerSource for MemorySource {
    fn header(&self) -> DumpHeader<'_> {
        DumpHeader { path: self.path.as_str().into(), ..DumpHeader::default() }
    }

    fn is_damaged(&self) -> bool {
        self.is_damaged
    }
}

pub(crate) fn run(cx: &RunContext, args: &MemoryArgs) -> anyhow::Result<Outcome> {
    let path = args.input.path();
    if args.is_elsewhere() || jvm::process_id(cx, &args.input)?.is_some() || !path.exists() {
        return args.run_live(cx);
    }
    for (option, is_given) in
        [("--watch", args.watch.is_some()), ("--trim", args.trim), ("--save", args.save.is_some())]
    {
        anyhow::ensure!(!is_given, "{option} needs a running JVM, and {} is a file", path.display());
    }
    let mut source = args.read_file(cx, path)?;
    if let Some(nmt) = &args.nmt {
        source.saved.sources.native_memory = Some(saved::native_memory(nmt)?);
    }
    source.add_files(cx, args)?;
    source.show(cx, args)
}

impl MemoryArgs {
    /// Returns the files that are read, which are never replaced.
    #[cfg(target_os = "linux")]
    fn inputs(&self) -> Vec<&Path> {
        [&self.heap, &self.recording, &self.nmt].into_iter().flatten().map(PathBuf::as_path).collect()
    }

    /// Returns whether a JVM on another machine is meant, whatever files are here.
    fn is_elsewhere(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.via.command().is_some();
        #[cfg(not(target_os = "linux"))]
        return false;
    }

    /// Reads a saved file, a copy of smaps, or a dump with what is given beside it.
    fn read_file(&self, cx: &RunContext, path: &Path) -> anyhow::Result<MemorySource> {
        let mut source = MemorySource::new(path.display().to_string());
        if let Some(recorded) = RecordedInput::open_heap_of_flight(cx, &self.input)? {
            source.add_recording(recorded);
            return Ok(source);
        }
        let beside = self.process.path().or(self.smaps.as_deref());
        if let Some(saved) = saved::read(path)? {
            anyhow::ensure!(
                beside.is_none(),
                "--process and --smaps are given with a dump, and {} is not a dump",
                path.display()
            );
            source.saved = saved;
            return Ok(source);
        }
        if let Some(beside) = beside {
            source.saved = saved::read_beside(beside)?;
        }
        let found = buffers::read(cx, &self.input)?;
        source.is_damaged = found.is_damaged;
        if source.saved.sources.mappings.is_none() {
            source.dump_bytes = Some(found.heap_bytes);
            source.saved.sources.threads = source.saved.sources.threads.or(Some(found.threads));
        }
        source.saved.sources.buffers = Some(found.buffers);
        Ok(source)
    }

    #[cfg(target_os = "linux")]
    fn run_live(&self, cx: &RunContext) -> anyhow::Result<Outcome> {
        for (option, is_given) in
            [("--process", self.process.path().is_some()), ("--smaps", self.smaps.is_some())]
        {
            anyhow::ensure!(!is_given, "{option} is for a dump; a running process is read itself");
        }
        live::run(cx, self)
    }

    #[cfg(not(target_os = "linux"))]
    fn run_live(&self, _: &RunContext) -> anyhow::Result<Outcome> {
        anyhow::bail!("{}: no such file; running JVMs can be read on Linux only", self.input.path().display())
    }
}

impl MemorySource {
    fn new(path: String) -> Self {
        Self {
            path,
            saved: SavedMemory::default(),
            ledger: Ledger::default(),
            dump_bytes: None,
            recorded: None,
            is_damaged: false,
        }
    }

    fn sources(&self) -> &Sources {
        &self.saved.sources
    }

    /// Returns the bytes of the process in swap.
    fn swap_bytes(&self) -> Option<u64> {
        self.sources().mappings.as_ref().map(Mappings::swapped_bytes)
    }

    /// Returns the bytes of the process in huge pages of hugetlbfs.
    fn hugetlb_bytes(&self) -> Option<u64> {
        self.sources().mappings.as_ref().map(Mappings::hugetlb_bytes)
    }

    /// Adds the buffers in the dump of `--dump`, and the recording.
    fn add_files(&mut self, cx: &RunContext, args: &MemoryArgs) -> anyhow::Result<()> {
        if let Some(path) = &args.heap {
            let found = buffers::read(cx, &args.input.with_dump(path))?;
            self.is_damaged |= found.is_damaged;
            self.saved.sources.buffers = Some(found.buffers);
        }
        if let Some(path) = &args.recording {
            let recorded = RecordedInput::open_heap_of_flight(cx, &args.input.with_dump(path))?;
            let not_one = || format!("{} is not a recording of Flight Recorder", path.display());
            self.add_recording(recorded.with_context(not_one)?);
        }
        Ok(())
    }

    fn add_recording(&mut self, recorded: RecordedProfile) {
        self.is_damaged |= recorded.is_damaged();
        self.recorded = Some(recorded);
    }

    /// Returns the memory of the process over time, if there is a recording.
    fn over_time(&self) -> Option<&MemoryOverTime> {
        self.recorded.as_ref().and_then(RecordedProfile::memory_over_time)
    }

    /// Computes the ledger and shows it.
    fn show(mut self, cx: &RunContext, args: &MemoryArgs) -> anyhow::Result<Outcome> {
        self.ledger = Ledger::new(self.sources());
        let malformed = self.sources().mappings.as_ref().map_or(0, |mappings| mappings.malformed_lines);
        if malformed > 0 {
            self.is_damaged = true;
            cx.emit(
                "warning",
                &format!(
                    "{} of smaps could not be read, or are of mappings that no process has",
                    format_count(malformed, "line")
                ),
            );
        }
        if cx.hides_values {
            self.ledger.hide_files();
        }
        let lines_above = words::lines(&self);
        let lines_below = words::totals(&self);
        let rows = self.ledger.rows.clone();
        let has_rows = !rows.is_empty() || self.over_time().is_some_and(|memory| !memory.figures.is_empty());
        let mut answer = Answer::new(columns::columns(), rows)
            .with_summary(&columns::summary_columns(), &self)
            .if_empty(NoRows::Nothing)
            .with_section_above(Section::Text(lines_above.join("\n")));
        if !lines_below.is_empty() {
            answer = answer.with_section_below(Section::Text(lines_below.join("\n")));
        }
        AnswerSource::show(&self, cx, "memory", &args.output, answer)?;
        Ok(self.outcome(has_rows))
    }
}
