//! `convert`: converts a binary dump or a recording of Flight Recorder to the HPROF agent's text report, and a text report to a
//! binary dump.

use std::io::{self, BufWriter, IntoInnerError, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ValueEnum;

use hprof_index::{Error, Quiet};
use hprof_input::file::TextFile;
use hprof_input::text_dump::{TextDump, TextDumpError, TextDumpOutcome};
use hprof_query::recordings::profile::Origin;
use hprof_query::recordings::profile::binary::{self, Want};
use hprof_query::recordings::profile::flight::SampleEvent;
use hprof_report::hprof_text::{ReportHeap, ReportInput, Sections};

use crate::cli::prelude::*;
use crate::cli::shared::args::LayoutArgs;
use crate::cli::shared::output::file::{OutFile, directory_of};
use crate::cli::shared::recording::{RecordedFile, RecordedInput, RecordedProfile};
use crate::cli::shared::terminal::progress_bar::Bar;
use hprof_index::storage::free_space::free_bytes;
use hprof_index::storage::human_bytes::plural;

use super::cpu::EVENT;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli convert heap.hprof -o heap.txt
  hprof-cli convert heap.hprof --sections sites,traces | less
  hprof-cli convert heap.hprof --sections heap | zstd > heap.txt.zst
  hprof-cli convert java.hprof.txt -o heap.hprof";

/// Convert a dump to the agent's text report, or a text to a dump
///
/// Of a dump or recording, writes threads, traces, the heap dump, sites and CPU samples in the format of the agent of JDK 5 to 8
/// (java.hprof.txt), so that tools for its reports can read them. The text is streamed. Dumps of HotSpot contain no
/// allocation sites; SITES is then computed from the objects. For a recording of Flight Recorder, SITES contains
/// allocated bytes estimated from its samples.
///
/// A text report becomes a binary dump (JAVA PROFILE 1.0.2) with its classes, objects, references, roots, sizes, sites, CPU
/// samples, traces and threads. A text contains no values: fields of primitive types are missing, and arrays contain zeros.
#[derive(Debug, clap::Args)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    input: Input,

    /// Events to count in a recording of Flight Recorder as CPU SAMPLES [default: as for `cpu`]
    #[arg(long, value_name = "KIND", value_parser = keys(EVENT), help_heading = "Input")]
    event: Option<SampleEvent>,

    /// Write to FILE, which is created only when it is complete [default: stdout]
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Output")]
    output: Option<PathBuf>,

    /// Run to convert if a text report contains several, counting from 1 [default: the last]
    #[arg(long, value_name = "N", help_heading = "Input")]
    run: Option<u32>,

    /// Only these sections, after the header
    #[arg(long, value_name = "SECTION,...", value_delimiter = ',', help_heading = "Output")]
    sections: Vec<SectionArg>,

    #[command(flatten)]
    layout: LayoutArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SectionArg {
    /// THREAD START and THREAD END
    Threads,
    /// TRACE
    Traces,
    /// HEAP DUMP
    Heap,
    /// SITES
    Sites,
    /// CPU SAMPLES
    Cpu,
}

pub(crate) fn run(cx: &RunContext, args: &ConvertArgs) -> anyhow::Result<Outcome> {
    let path = args.input.path();
    if let Some(text) = TextFile::open(path).map_err(Error::from)? {
        return of_text(cx, args, &text);
    }
    anyhow::ensure!(args.run.is_none(), "--run applies only to text reports; omit it");
    let has = |section| args.sections.is_empty() || args.sections.contains(&section);
    let sections = Sections {
        threads: has(SectionArg::Threads),
        traces: has(SectionArg::Traces),
        heap: has(SectionArg::Heap),
        sites: has(SectionArg::Sites),
        cpu: has(SectionArg::Cpu),
    };
    // Created before a long read, so that an error is reported at once.
    let file = args.output.as_deref().map(|output| OutFile::create(output, &[path])).transpose()?;
    if let Some(recorded) = RecordedInput::open_only_flight(cx, &args.input, args.event)? {
        return of_flight(cx, args, &recorded, sections, file);
    }
    anyhow::ensure!(args.event.is_none(), "--event applies only to recordings of Flight Recorder; omit it");
    let heap = args.input.open_records(cx)?;
    let sizes = args.layout.sizes(&heap);
    let bar = Bar::new(cx, args.input.quiet);
    let want = Want { sites: sections.sites, traces: sections.traces || sections.cpu, ..Want::default() };
    let (profile, thread_events) = args.input.with_threads(|| {
        let mut profile = binary::read(&heap, want, &bar)?;
        if sections.sites && profile.sites.is_none() {
            profile.sites = binary::sites_of_objects(&heap, &sizes, &bar)?;
        }
        let events = if sections.threads { binary::thread_events(&heap, &bar)? } else { Vec::new() };
        anyhow::Ok((profile, events))
    })??;
    let report = ReportInput {
        heap: Some(ReportHeap { summary: heap.summary(), bytes: heap.bytes(&bar)?, sizes: &sizes }),
        profile: &profile,
        thread_events: &thread_events,
    };
    match file {
        None => {
            let mut out = io::stdout();
            args.input.with_threads(|| report.write(&mut out, sections, &bar))??;
            heap.check_unwritten()?;
            out.flush()?;
        }
        Some(mut file) => {
            let written = args.input.with_threads(|| report.write(&mut file, sections, &bar))?;
            written.with_context(|| format!("cannot write {}", file.path().display()))?;
            heap.check_unwritten()?;
            file.commit()?;
        }
    }
    drop(bar);
    if !args.input.quiet {
        if profile.sites.as_ref().is_some_and(|sites| sites.origin == Origin::Objects) {
            cx.emit("note", OBJECT_SITES);
        }
        let repeated = heap.summary().facts().repeated_objects.get();
        if sections.heap && repeated > 0 {
            let text = format!(
                "{} objects occur more than once in the dump, and so in the text; histo counts them once",
                group_digits(repeated)
            );
            cx.emit("note", &text);
        }
    }
    Ok(heap.outcome(true))
}

/// Converts a recording of Flight Recorder to a text report.
fn of_flight(
    cx: &RunContext,
    args: &ConvertArgs,
    recorded: &RecordedProfile,
    sections: Sections,
    file: Option<OutFile>,
) -> anyhow::Result<Outcome> {
    let RecordedFile::Flight { report, .. } = &recorded.file else { return Ok(Outcome::No) };
    let (profile, thread_events) = (&recorded.profile, &report.thread_events[..]);
    let note = |text: &str| {
        if !args.input.quiet {
            cx.emit("note", text);
        }
    };
    if sections.cpu {
        if let (Some(event), None) = (args.event, &profile.samples) {
            note(&format!("the recording contains no {} events", event.name()));
        }
        let notes = [recorded.lost_samples_note(args.event, false), recorded.uncounted_states_note(false)];
        notes.iter().flatten().for_each(|text| note(text));
    }
    let report = ReportInput { heap: None, profile, thread_events };
    match file {
        None => {
            let mut out = io::stdout();
            report.write(&mut out, sections, &Quiet)?;
            out.flush()?;
        }
        Some(mut file) => {
            let written = report.write(&mut file, sections, &Quiet);
            written.with_context(|| format!("cannot write {}", file.path().display()))?;
            file.commit()?;
        }
    }
    if sections.sites && profile.sites.is_some() {
        note("allocated bytes are estimated from samples; live figures and numbers of objects are 0");
    }
    Ok(recorded.outcome(true))
}

/// Converts a text report to a binary dump.
fn of_text(cx: &RunContext, args: &ConvertArgs, text: &TextFile) -> anyhow::Result<Outcome> {
    let path = text.path();
    anyhow::ensure!(
        args.sections.is_empty() && args.event.is_none(),
        "--sections and --event apply to text output, and {} is a text report, of which a binary dump is made; omit them",
        path.display()
    );
    let bar = Bar::new(cx, args.input.quiet);
    let cannot = || format!("cannot convert {}", path.display());
    let outcome = match args.output.as_deref() {
        Some(output) => {
            let mut file = BufWriter::new(OutFile::create(output, &[path])?);
            let dump = TextDump::read(text, args.run, &bar).with_context(cannot)?;
            ensure_room(output, dump.expected_bytes())?;
            let outcome = dump.write(&mut file, &bar).with_context(cannot)?;
            let file = file.into_inner().map_err(IntoInnerError::into_error);
            file.with_context(|| format!("cannot write {}", output.display()))?.commit()?;
            outcome
        }
        None => {
            let mut out = io::stdout();
            anyhow::ensure!(
                !out.is_terminal(),
                "a binary dump is not written to a terminal; name a file with -o FILE.hprof"
            );
            let dump = TextDump::read(text, args.run, &bar).with_context(cannot)?;
            let outcome = dump.write(&mut out, &bar).map_err(|error| match error {
                // A reader that has seen enough is no failure.
                TextDumpError::Write(error) => error.into(),
                error => anyhow::Error::from(error).context(cannot()),
            })?;
            out.flush()?;
            outcome
        }
    };
    drop(bar);
    if !args.input.quiet {
        text_notes(cx, args, &outcome);
    }
    Ok(if outcome.malformed_lines > 0 { Outcome::Damaged } else { Outcome::Fine })
}

/// Returns an error if a dump of about `bytes` bytes does not fit onto the disk: a short text can state long arrays.
fn ensure_room(output: &Path, bytes: u64) -> anyhow::Result<()> {
    let free = free_bytes(directory_of(output)).map_or(u64::MAX, |(free, _)| free);
    anyhow::ensure!(
        bytes <= free,
        "cannot write {}: the dump would have {}, and {} are free; name a file on a disk with more space",
        output.display(),
        human_bytes(bytes),
        human_bytes(free)
    );
    Ok(())
}

/// Prints notes about what a dump made from a text report lacks.
fn text_notes(cx: &RunContext, args: &ConvertArgs, outcome: &TextDumpOutcome) {
    if args.run.is_none() && outcome.runs > 1 {
        cx.emit(
            "note",
            &format!(
                "the text contains {} runs; the last was converted, --run N selects another",
                outcome.runs
            ),
        );
    }
    if outcome.heap_dumps > 0 {
        cx.emit("note", TEXT_VALUES);
    } else {
        cx.emit("note", "the text contains no HEAP DUMP");
    }
    if !outcome.left_out.is_empty() {
        cx.emit("note", &format!("binary dumps cannot contain {}; left out", outcome.left_out.join(", ")));
    }
    if outcome.malformed_lines > 0 {
        let lines = plural(outcome.malformed_lines, "line", "lines");
        cx.emit(
            "warning",
            &format!("{} {lines} could not be parsed; left out", group_digits(outcome.malformed_lines)),
        );
    }
}

/// Note about the values of objects in a dump made from a text report.
const TEXT_VALUES: &str =
    "a text report contains no values: the dump has references and sizes, but no numbers and no strings";

/// Note about sites that were not recorded but counted over objects.
const OBJECT_SITES: &str =
    "the dump contains no allocation sites: they are counted from its objects, so allocated equals live";
