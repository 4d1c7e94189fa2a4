//! `dump`: takes a heap dump of a running JVM.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use hprof_capture::heap_dump::{DumpOutcome, DumpProgress, DumpTarget};
use hprof_capture::jvms::{JvmList, JvmRow};
use hprof_capture::machine::Machine;
use hprof_capture::plan::{DumpRoute, OutputDir, Plan, Request};
use hprof_capture::{Compression, VmKind};
use hprof_index::Progress;
use hprof_query::naming::suggestions;
use hprof_report::escape;

use super::destination::{Destination, DestinationRequest, written};
use super::plan::{self, DumpResult, DumpRow};
use super::redaction::CaptureRedaction;
use crate::cli::dump::redact::WhatGoes;
use crate::cli::jvm::via::{MachineSource, ViaArgs};
use crate::cli::prelude::*;
use crate::cli::shared::durations::{duration, seconds};
use crate::cli::shared::terminal::progress_bar::Bar;
use crate::cli::shared::user_files::opener;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli dump 4711
  hprof-cli dump OrderService --output orders.hprof --yes
  hprof-cli dump 4711 --dry-run
  hprof-cli dump 4711 --redact --output safe.hprof
  hprof-cli dump 4711 --yes --zstd --output heap.hprof.zst --no-overview
  hprof-cli dump 4711 --yes --all --output - | ssh backup 'cat > heap.hprof'
  hprof-cli dump 1 --via 'kubectl exec -i POD --'
  hprof-cli dump OrderService --via 'ssh db7' --zstd --yes";

/// Take a heap dump of a running JVM, and show its overview
///
/// Attaches to the JVM by HotSpot's own protocol, as `jcmd` does; no JDK is needed, and the JVM may be in a container.
/// First prints a plan: which objects are dumped, the expected size, the destination, and for how long the program's
/// threads will be paused. The file is readable only by its owner, and appears when it is complete. Up to JDK 21,
/// `--output -`, `--gzip`, `--zstd` and dumps of containers need no disk space where the JVM runs: the dump is read
/// through a FIFO. JVMs of JDK 22 and later write to a disk, and need twice the size of the dump there. Root can dump
/// the JVMs of all users. With --via, the JVM may be on another machine or in a pod, reached by a command such as
/// `kubectl exec`: a helper is copied there, sends the dump compressed, and removes itself. Requires Linux.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("keep", |arg| arg.requires("redact")),
    mut_arg("thread_names", |arg| arg.requires("redact")),
    mut_arg("lines", |arg| arg.requires("redact")),
    mut_arg("strict_numbers", |arg| arg.requires("redact")),
    mut_arg("zero", |arg| arg.requires("redact")),
    mut_arg("classes", |arg| arg.requires("redact")),
    mut_arg("break_equality", |arg| arg.requires("redact")),
    mut_arg("key", |arg| arg.requires("redact")),
)]
pub(crate) struct DumpArgs {
    /// Process ID of the JVM, or a part of its main class's name that no other running JVM has
    #[arg(value_name = "PID|NAME")]
    target: String,

    /// Only reachable objects (the default); the JVM collects garbage first
    #[arg(long, conflicts_with = "all", help_heading = "Objects")]
    live: bool,

    /// Omit nothing: include unreachable objects
    #[arg(long, help_heading = "Objects")]
    all: bool,

    /// Write to FILE; `-` for stdout [default: NAME-PID-TIME.hprof in this directory]
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Output")]
    output: Option<PathBuf>,

    /// Compress with gzip
    #[arg(long, conflicts_with = "zstd", help_heading = "Output")]
    gzip: bool,

    /// Compress with zstd, which is faster than gzip and compresses better
    #[arg(long, help_heading = "Output")]
    zstd: bool,

    /// Redact values before they are written, as `hprof-cli redact -` does
    #[arg(long, help_heading = "Output")]
    redact: bool,

    #[command(flatten)]
    what: WhatGoes,

    /// Replace an existing file
    #[arg(long, help_heading = "Output")]
    force: bool,

    /// Take the dump without asking for confirmation
    #[arg(long, short)]
    yes: bool,

    /// Give up if the JVM or the command of --via neither answers nor writes anything for TIME, such as 90s or 10m;
    /// after 30 s, a message says what the command waits for
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,

    /// Print the plan, but take no dump
    #[arg(long)]
    dry_run: bool,

    /// Do not show the overview of the new dump; the overview of a compressed dump is never shown
    #[arg(long, help_heading = "Output")]
    no_overview: bool,

    /// Suppress the progress bar and notes on stderr
    #[arg(short, long, overrides_with = "quiet", help_heading = "Output")]
    quiet: bool,

    #[command(flatten)]
    via: ViaArgs,

    #[command(flatten)]
    answer: Output,
}

pub(crate) fn run(cx: &RunContext, args: &DumpArgs) -> anyhow::Result<Outcome> {
    let opener = opener();
    let (mut machine, place) = args.via.connect(&opener, args.timeout)?;
    let pid = find(&args.target, machine.as_mut())?;
    let row = machine.find(pid)?;
    let destination = Destination::new(&args.destination_request(), &row, machine.as_mut())?;
    let planned = DumpRow {
        row: &row,
        plan: None,
        is_collected: false,
        via: args.via.command(),
        is_redacted: args.redact,
        output: destination.path(),
        output_user: destination.foreign_user(),
        result: None,
    };
    if row.kind == VmKind::NativeImage {
        machine.check_native(pid)?;
        return dump_native(cx, args, machine, &place, planned, &destination);
    }
    let plan = machine.plan(pid, args.request(destination.dir()))?;
    let planned = DumpRow { row: &plan.row, plan: Some(&plan), is_collected: plan.is_live, ..planned };
    let lines = plan::lines(&planned, &plan);
    if args.dry_run {
        show(cx, args, &place, planned, lines)?;
        return Ok(Outcome::Fine);
    }
    if !confirm(cx, args, &lines)? {
        return Ok(Outcome::No);
    }
    let dumped = take(cx, args, machine, &plan, &destination)?;
    finish(cx, args, &place, DumpRow { result: Some(result(dumped, &destination)), ..planned })
}

/// Returns the process with this ID, or the process whose main class's name contains the text.
pub(crate) fn find(target: &str, machine: &mut dyn Machine) -> anyhow::Result<u32> {
    if let Ok(pid) = target.parse() {
        return Ok(pid);
    }
    ensure!(!target.is_empty(), "the name is empty; `hprof-cli jvms` lists the running JVMs");
    let JvmList { jvms, .. } = machine.jvms()?;
    let named = |row: &JvmRow| row.main_class.clone().unwrap_or_default();
    let found: Vec<&JvmRow> = jvms.iter().filter(|row| named(row).contains(target)).collect();
    match found[..] {
        [row] => Ok(row.pid),
        [] => {
            let names: Vec<String> = jvms.iter().map(named).collect();
            let like = suggestions::names_like(target, names.iter().map(String::as_str));
            let like = if like.is_empty() {
                String::new()
            } else {
                format!("; {}", suggestions::did_you_mean(&like))
            };
            bail!(
                "no running JVM has {target} in the name of its main class{like}; `hprof-cli jvms` lists them"
            )
        }
        ref several => {
            let list: Vec<String> =
                several.iter().map(|row| format!("{} ({})", row.pid, named(row))).collect();
            bail!(
                "{} running JVMs have {target} in the name of their main class: {}",
                list.len(),
                list.join(", ")
            )
        }
    }
}

impl DumpArgs {
    /// Returns the request to the JVM. A dump that is redacted here is also compressed here.
    fn request<'r>(&self, to: Option<OutputDir<'r>>) -> Request<'r> {
        let compression = self.compression().filter(|_| !self.redact);
        Request { is_live: !self.all, to, compression, is_filtered: self.redact, limit: self.timeout }
    }

    fn destination_request(&self) -> DestinationRequest<'_> {
        let is_free = self.dry_run || !io::stdout().is_terminal();
        let stdout = match is_free {
            false => Err("a heap dump cannot be written to a terminal; use --output FILE"),
            true if !self.dry_run && self.answer.format() != Format::Table => {
                Err("--format and --output - both write to stdout; omit one of them")
            }
            true => Ok(()),
        };
        DestinationRequest {
            output: self.output.as_deref(),
            compression: self.compression(),
            is_forced: self.force,
            stdout,
        }
    }

    fn compression(&self) -> Option<Compression> {
        match (self.gzip, self.zstd) {
            (true, _) => Some(Compression::Gzip),
            (_, true) => Some(Compression::Zstd),
            _ => None,
        }
    }
}

/// Prints the plan, and asks for confirmation unless `--yes` is given. Returns whether to take the dump.
fn confirm(cx: &RunContext, args: &DumpArgs, lines: &[String]) -> anyhow::Result<bool> {
    let is_asked = !args.yes;
    if !args.quiet || is_asked {
        lines.iter().for_each(|line| cx.emit("plan", line));
    }
    if !is_asked {
        return Ok(true);
    }
    ensure!(
        io::stdin().is_terminal() && io::stderr().is_terminal(),
        "cannot ask for confirmation without a terminal; --yes takes the dump without asking"
    );
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(b"hprof-cli: take the dump? [y/N] ");
    let _ = stderr.flush();
    drop(stderr);
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Receiver of a dump's progress that shows it as a progress bar.
struct BarWatch(Bar);

impl DumpProgress for BarWatch {
    fn begin(&self, stage: &str, bytes: u64) {
        // The stage may come from a helper.
        self.0.begin(&escape::text(stage), bytes);
    }

    fn advance(&self, bytes: u64) {
        self.0.advance(bytes);
    }
}

/// Takes the dump. The machine is dropped at the end because its helper uses memory.
fn take(
    cx: &RunContext,
    args: &DumpArgs,
    mut machine: Box<dyn Machine + '_>,
    plan: &Plan,
    destination: &Destination,
) -> anyhow::Result<DumpOutcome> {
    let watch = BarWatch(Bar::new(cx, args.quiet));
    let mut run = |target: DumpTarget<'_>| machine.take(target, &watch);
    match destination {
        Destination::File(file) if plan.way == DumpRoute::Beside => match file.foreign_name() {
            Some((name, is_forced)) => Ok(run(DumpTarget::Renamed { name, is_forced })?),
            None => Ok(run(DumpTarget::Linked(&mut |dump| file.link(dump)))?),
        },
        destination if args.redact => {
            write_redacted(cx, args, plan.row.pid, destination, |out| run(DumpTarget::Stream(out)))
        }
        destination => written(destination, |out| run(DumpTarget::Stream(out))),
    }
}

/// Writes a redacted dump, and its additional files.
fn write_redacted<T>(
    cx: &RunContext,
    args: &DumpArgs,
    pid: u32,
    destination: &Destination,
    take: impl FnOnce(&mut (dyn Write + Send)) -> Result<T, hprof_capture::Error>,
) -> anyhow::Result<T> {
    let mut redaction = CaptureRedaction::new(pid, destination, &args.what)?;
    let taken = written(destination, |out| redaction.pass(destination, args.compression(), out, take))?;
    redaction.finish()?;
    if !args.quiet {
        cx.emit("note", "values were redacted; docs/redact.md lists what the dump still contains");
        args.what.note(cx);
    }
    Ok(taken)
}

fn result(dumped: DumpOutcome, destination: &Destination) -> DumpResult {
    let file_bytes = match destination {
        Destination::File(file) => file.bytes(),
        _ => None,
    };
    DumpResult { dumped, file_bytes }
}

/// Shows a row of the result; as a table, the lines `lines`.
fn show(
    cx: &RunContext,
    args: &DumpArgs,
    place: &MachineSource,
    row: DumpRow<'_>,
    lines: Vec<String>,
) -> anyhow::Result<()> {
    let answer = Answer::new(plan::columns(), [row])
        .with_section_above(Section::unwrapped_lines(lines))
        .if_empty(NoRows::Nothing);
    place.show(cx, "dump", &args.answer, answer)?;
    Ok(())
}

/// Reports the result of the dump, and shows the overview.
fn finish(
    cx: &RunContext,
    args: &DumpArgs,
    place: &MachineSource,
    row: DumpRow<'_>,
) -> anyhow::Result<Outcome> {
    if let Some(result) = row.result.filter(|_| !args.quiet) {
        cx.emit("note", &plan::done(&result, row.output));
    }
    if args.answer.format() != Format::Table {
        show(cx, args, place, row, Vec::new())?;
        return Ok(Outcome::Fine);
    }
    let note = |path: &Path| {
        if !args.quiet {
            cx.emit("note", &format!("`hprof-cli overview {}` summarizes it", path.display()));
        }
    };
    match row.output.filter(|_| !args.no_overview) {
        // Root does not open files there.
        Some(path) if row.output_user.is_some() => {
            note(path);
            Ok(Outcome::Fine)
        }
        Some(path) if !path.is_file() => Ok(Outcome::Fine),
        // An index needs the uncompressed dump, which was not meant to be written to this disk.
        Some(path) if args.compression().is_some() => {
            note(path);
            Ok(Outcome::Fine)
        }
        Some(path) => {
            let quiet = args.quiet.then(|| "--quiet".into());
            let words: Vec<OsString> =
                ["overview".into()].into_iter().chain(quiet).chain(["--".into(), path.into()]).collect();
            crate::cli::answer(cx, &words).context("the dump is complete, but its overview failed")
        }
        None => Ok(Outcome::Fine),
    }
}

/// Takes a heap dump of a native image.
fn dump_native(
    cx: &RunContext,
    args: &DumpArgs,
    mut machine: Box<dyn Machine + '_>,
    place: &MachineSource,
    planned: DumpRow<'_>,
    destination: &Destination,
) -> anyhow::Result<Outcome> {
    let lines = vec![
        plan::describe_jvm(planned.row),
        "method: a native image; on SIGUSR1 it writes a heap dump to its working directory, and the dump is then \
         moved".to_owned(),
        "objects: chosen by the program; pause: unknown".to_owned(),
    ];
    if args.dry_run {
        show(cx, args, place, planned, lines)?;
        return Ok(Outcome::Fine);
    }
    if !confirm(cx, args, &lines)? {
        return Ok(Outcome::No);
    }
    let bar = Bar::new(cx, args.quiet);
    bar.begin("waiting for the heap dump", 0);
    let pid = planned.row.pid;
    let dumped = match args.redact {
        true => write_redacted(cx, args, pid, destination, |out| {
            machine.take_native(pid, None, args.timeout, out)
        }),
        false => written(destination, |out| machine.take_native(pid, args.compression(), args.timeout, out)),
    };
    drop((bar, machine));
    let dumped = dumped?;
    if !args.quiet {
        let time = seconds(dumped.standstill);
        cx.emit("note", &format!("the heap dump was complete {time} after the signal"));
    }
    finish(cx, args, place, DumpRow { result: Some(result(dumped, destination)), ..planned })
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![ResultSchema {
        command: "dump",
        variant: "",
        about: "The row is the dump, as planned (`--dry-run`) or taken; `dump.path` is `/proc`, or the command of `--via`.",
        rows: plan::columns().fields(),
        summary: Vec::new(),
    }]
}

#[cfg(test)]
mod tests {
    use hprof_capture::machine::LocalMachine;

    use super::*;

    #[test]
    fn a_part_of_a_name_is_not_nothing() {
        let error = find("", &mut LocalMachine::new(&opener())).map_err(|error| error.to_string());
        assert!(error.is_err_and(|error| error.contains("the name is empty")));
    }
}
