//! `flamegraph`: draws stacks as a picture, or writes them for programs that draw them.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ValueEnum;

use hprof_query::recordings::profile::Origin;
use hprof_query::recordings::profile::Profile;
use hprof_query::recordings::profile::binary::Want;
use hprof_query::recordings::profile::flight::{MonitorEvent, SiteEvent};
use hprof_query::recordings::stacks::{
    self, Measure, Naming, NotComparable, SiteUnit, StackQuery, StackWeight, Stacks, TooLarge,
};
use hprof_report::stacks::flamegraph::{Look, Palette, Scale};
use hprof_report::stacks::{flamegraph, folded, speedscope};

use crate::cli::prelude::*;
use crate::cli::shared::output;
use crate::cli::shared::output::file::OutFile;
use crate::cli::shared::recording::{
    RecordedFile, RecordedInput, RecordedProfile, WITH_FLIGHT, same_samples, same_sites,
};
use crate::cli::shared::stack::FrameFilter;

use super::no_match;
use super::site_events::{self, EVENT};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli flamegraph java.hprof -o cpu.svg
  hprof-cli flamegraph java.hprof --data allocated --class 'com.acme.**' -o allocated.svg
  hprof-cli flamegraph java.hprof.txt --data live --unit objects --reverse -o live.svg
  hprof-cli flamegraph java.hprof --by-thread --format folded > cpu.folded
  hprof-cli flamegraph recording.jfr --event malloc -o unfreed.svg
  hprof-cli flamegraph java.hprof --format speedscope -o profile.speedscope.json
  hprof-cli flamegraph after.hprof --baseline before.hprof.txt -o difference.svg";

/// Values of `--data`.
const DATA: &[Keyword<StackWeight>] = &[
    ("cpu", StackWeight::Cpu, "CPU SAMPLES"),
    ("allocated", StackWeight::Allocated, "Allocation sites, including objects freed since"),
    ("live", StackWeight::Live, "Allocation sites, only live objects"),
    (
        "cputime",
        StackWeight::CpuTime,
        "CPU TIME (ms) of text reports, or with cpu=old pairs of caller and callee",
    ),
    (
        "contention",
        StackWeight::Waits(MonitorEvent::Enter),
        "Time waited to enter monitors: MONITOR TIME of text reports, jdk.JavaMonitorEnter of recordings",
    ),
    ("waits", StackWeight::Waits(MonitorEvent::Wait), "Time waited to be notified: jdk.JavaMonitorWait"),
    ("parks", StackWeight::Waits(MonitorEvent::Park), "Time parked: jdk.ThreadPark"),
];

/// Values of `--unit`.
const UNIT: &[Keyword<SiteUnit>] =
    &[("bytes", SiteUnit::Bytes, "Bytes"), ("objects", SiteUnit::Objects, "Number of objects")];

/// Values of `--colors`.
const COLORS: &[Keyword<Palette>] = &[
    ("hot", Palette::Hot, "Red to yellow"),
    ("mem", Palette::Mem, "Green to blue"),
    ("io", Palette::Io, "Shades of blue"),
    ("red", Palette::Red, ""),
    ("green", Palette::Green, ""),
    ("blue", Palette::Blue, ""),
    ("aqua", Palette::Aqua, ""),
    ("yellow", Palette::Yellow, ""),
    ("purple", Palette::Purple, ""),
    ("orange", Palette::Orange, ""),
];

/// Draw a flame graph of CPU time or allocations
///
/// Draws the CPU samples, allocation sites or waits of a dump, text report or recording of Flight Recorder, by default as a self-contained SVG for
/// browsers: click to zoom, Ctrl-F to search. In allocation graphs, the class of the objects is the innermost frame.
/// Dumps of HotSpot contain no allocation sites; --data live then shows the classes of the objects without stacks. With
/// --baseline, draws a differential flame graph: widths are those of the file, colors show the difference from an older
/// one.
#[derive(Debug, clap::Args)]
#[command(mut_arg("dump", |dump| dump.help(WITH_FLIGHT)))]
#[command(mut_arg("class", |class| class.help(
    "Only traces with a frame of a class that matches PATTERN, or of objects of such a class, for example \
     `com.acme.**`, `byte[]`"
)))]
pub(crate) struct FlamegraphArgs {
    #[command(flatten)]
    input: RecordedInput,

    /// Compare with this older dump or recording: frames whose own weight grew are red, those whose own weight shrank
    /// are blue
    ///
    /// Since runs differ in length, the weights of OLD are scaled to the total of the newer file, except with --data
    /// live. Generated classes and threads are matched without their numbers. Folded lines have two unscaled weights:
    /// first that of OLD, then that of the newer file. The SVG does not show stacks that only OLD contains, but states
    /// their share.
    #[arg(
        long,
        value_name = "OLD",
        value_hint = clap::ValueHint::FilePath,
        conflicts_with = "colors",
        help_heading = "Input"
    )]
    baseline: Option<PathBuf>,

    /// Data to draw [default: the first of cpu, cputime, allocated, live, contention that the file contains]
    #[arg(long, value_name = "KIND", value_parser = keys(DATA), help_heading = "Filter")]
    data: Option<StackWeight>,

    /// Events to count in a recording of Flight Recorder as `allocated` [default: as for `sites`]
    #[arg(long, value_name = "KIND", value_parser = keys(EVENT), help_heading = "Input")]
    event: Option<SiteEvent>,

    /// Unit of `allocated` and `live`
    #[arg(
        long,
        value_name = "UNIT",
        value_parser = keys(UNIT),
        default_value = "bytes",
        help_heading = "Filter"
    )]
    unit: SiteUnit,

    #[command(flatten)]
    frames: FrameFilter,

    /// Maximum depth of stack traces: the N innermost frames; 0 for all
    #[arg(long, value_name = "N", default_value_t = 1024, help_heading = "Filter")]
    depth: usize,

    /// Make the thread of each trace its root frame; requires traces with threads
    #[arg(long, help_heading = "Output")]
    by_thread: bool,

    /// Merge stacks from the innermost frame, which is drawn at the top with its callers below
    #[arg(long, help_heading = "Output")]
    reverse: bool,

    /// Show each source line of a method as a frame of its own
    #[arg(long, help_heading = "Output")]
    lines: bool,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "svg", help_heading = "Output")]
    format: FlamegraphFormat,

    /// Write to FILE, which is created only when it is complete [default: stdout]
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Output")]
    output: Option<PathBuf>,

    /// Title of the graph [default: the file name and the data drawn]
    #[arg(long, value_name = "TEXT", help_heading = "Output")]
    title: Option<String>,

    /// Width of the SVG in pixels [default: the width of the window]
    #[arg(long, value_name = "PIXELS", help_heading = "Output", value_parser = clap::value_parser!(u16).range(100..))]
    width: Option<u16>,

    /// Omit frames narrower than this percentage of the width of the SVG
    #[arg(long, value_name = "PERCENT", default_value = "0.01", value_parser = percent, help_heading = "Output")]
    min_width: f64,

    /// Color palette of the SVG [default: hot, or mem for allocated and live]
    #[arg(long, value_name = "PALETTE", value_parser = keys(COLORS), help_heading = "Output")]
    colors: Option<Palette>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FlamegraphFormat {
    /// SVG for browsers
    Svg,
    /// One line per stack, for other flame graph tools
    Folded,
    /// JSON for speedscope.app
    Speedscope,
}

fn percent(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.strip_suffix('%').unwrap_or(text).parse().ok();
    let number = number.filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| format!("`{text}` is not a percentage from 0 to 100"))
}

pub(crate) fn run(cx: &RunContext, args: &FlamegraphArgs) -> anyhow::Result<Outcome> {
    anyhow::ensure!(
        args.format != FlamegraphFormat::Svg || args.output.is_some() || !io::stdout().is_terminal(),
        "an SVG cannot be shown in a terminal: write it to a file with -o out.svg, or use --format folded"
    );
    anyhow::ensure!(
        args.baseline.is_none() || args.format != FlamegraphFormat::Speedscope,
        "speedscope cannot show a difference: use --format svg or folded, or omit --baseline"
    );
    let data = match (args.data, args.event) {
        (None | Some(StackWeight::Allocated), Some(_)) => Some(StackWeight::Allocated),
        (Some(_), Some(_)) => anyhow::bail!("--event selects allocations; use it with --data allocated"),
        (data, None) => data,
    };
    let inputs = [Some(args.input.clone()), args.baseline.as_deref().map(|old| args.input.with_dump(old))];
    // Created before a long read, so that an error is reported at once.
    let paths: Vec<&Path> = inputs.iter().flatten().map(|input| input.input.path()).collect();
    let file = (args.output.as_deref()).map(|output| OutFile::create(output, &paths)).transpose()?;
    let mut files = Vec::new();
    for input in inputs.into_iter().flatten() {
        files.push(OpenedRecording::open(cx, input, (data, args.event), args.by_thread)?);
    }
    let held = |of: &StackWeight| files.iter().all(|file| file.held.contains(of));
    let found = match data {
        Some(of) => Some(of).filter(held),
        None => files.first().and_then(|file| file.held.iter().copied().find(held)),
    };
    let is_damaged = files.iter().any(|file| file.recorded.is_damaged());
    let outcome = |found| match is_damaged {
        true => Outcome::Damaged,
        false if found => Outcome::Fine,
        false => Outcome::No,
    };
    let Some(of) = found else {
        let lacks =
            |file: &&OpenedRecording| data.map_or(file.held.is_empty(), |of| !file.held.contains(&of));
        files.iter().filter(lacks).for_each(|file| file.say_nothing(cx, data));
        if !files.iter().any(|file| lacks(&file)) {
            args.input.note(cx, "the files have no kind of data in common (samples, times or sites)");
        }
        note_lost(cx, args, &files, None);
        return Ok(outcome(false));
    };
    if let [new, old] = &mut files[..] {
        match of {
            StackWeight::Cpu => same_samples(&mut old.recorded, &mut new.recorded)?,
            StackWeight::Allocated => same_sites(&mut old.recorded, &mut new.recorded)?,
            StackWeight::CpuTime | StackWeight::Live | StackWeight::Waits(_) => {}
        }
    }
    note_lost(cx, args, &files, Some(of));
    let question = question(args, of);
    let is_sampled = |file: &OpenedRecording| {
        file.recorded.profile.sites.as_ref().is_some_and(|sites| sites.origin == Origin::Sampled)
    };
    anyhow::ensure!(
        of != StackWeight::Allocated || args.unit == SiteUnit::Bytes || !files.iter().any(is_sampled),
        "allocation samples contain bytes but no object counts; omit --unit"
    );
    let profiles: Vec<&Profile> = files.iter().map(|file| &file.recorded.profile).collect();
    let [profile, baseline @ ..] = &profiles[..] else { return Ok(outcome(false)) };
    let fewer = |error: TooLarge| anyhow::anyhow!("{error}; --depth, --class and --method select fewer");
    let stacks = match baseline.first() {
        None => stacks::stacks(profile, &question).map_err(fewer)?,
        Some(old) => stacks::compare(old, profile, &question).map_err(|error| match error {
            NotComparable::TooLarge(error) => fewer(error),
            error => anyhow::anyhow!("{error}: they cannot be compared"),
        })?,
    };
    if stacks.stacks == 0 {
        args.input.note(cx, "no stack matches, or all matching stacks have weight 0");
        no_match::patterns(cx, &args.input, &question.filter, &profile.traces);
        return Ok(outcome(false));
    }
    write(cx, args, of, &stacks, file)?;
    if !args.input.input.quiet {
        notes(cx, args, of, profile, baseline.first().copied(), &stacks);
        files.iter().for_each(|file| site_events::notes(cx, &file.input, &file.recorded));
    }
    Ok(outcome(true))
}

/// An opened file, and the kinds of data that it contains.
struct OpenedRecording {
    input: RecordedInput,
    recorded: RecordedProfile,
    held: Vec<StackWeight>,
    site_event: Option<SiteEvent>,
}

impl OpenedRecording {
    fn open(
        cx: &RunContext,
        input: RecordedInput,
        (wanted, site_event): (Option<StackWeight>, Option<SiteEvent>),
        threads: bool,
    ) -> anyhow::Result<Self> {
        let monitors = match wanted {
            Some(StackWeight::Waits(event)) => Some(event),
            _ => None,
        };
        let want = Want { sites: true, traces: true, threads, monitors, site_event, ..Want::default() };
        let mut recorded = input.open(cx, want)?;
        site_events::ensure_flight(&recorded, site_event)?;
        let mut held = stacks::available_weights(&recorded.profile);
        if !wanted.map_or(!held.is_empty(), |of| held.contains(&of)) {
            // Counting over the objects is the last resort; the result is treated as data of the file.
            input.count_sites(cx, &mut recorded)?;
            held = stacks::available_weights(&recorded.profile);
        }
        Ok(Self { input, recorded, held, site_event })
    }

    /// Prints a note that the file lacks the requested data, and what it contains instead.
    fn say_nothing(&self, cx: &RunContext, wanted: Option<StackWeight>) {
        let path = self.input.input.path().display();
        let is_binary = matches!(self.recorded.file, RecordedFile::Binary(_));
        let has = match wanted {
            None => format!("{path} contains no stacks with samples, times or sites"),
            Some(StackWeight::Cpu) => format!("{path} contains no CPU samples"),
            Some(StackWeight::CpuTime) if is_binary => {
                format!("{path} is a binary dump; only text reports contain CPU times")
            }
            Some(StackWeight::CpuTime) => format!("{path} contains no CPU times"),
            Some(StackWeight::Allocated) => match self.site_event {
                None => format!("{path} contains no allocation sites"),
                event => format!("{path} contains no {} to draw", site_events::event_name(event)),
            },
            Some(StackWeight::Live) if self.recorded.profile.sites.is_some() => {
                format!("{path} contains allocation samples, which do not show which objects are live")
            }
            Some(StackWeight::Live) => format!("{path} contains no sites and no objects"),
            Some(StackWeight::Waits(_)) => format!("{path} contains no waits of this kind"),
        };
        let words = self.held.iter().flat_map(|of| DATA.iter().filter(move |(_, known, _)| known == of));
        let others: Vec<String> = words.map(|(word, ..)| format!("--data {word}")).collect();
        self.input.note(
            cx,
            &match others.split_last() {
                None => has,
                Some((last, [])) => format!("{has}; {last} shows what it contains"),
                Some((last, others)) => {
                    format!("{has}; {} and {last} show what it contains", others.join(", "))
                }
            },
        );
    }
}

/// Notes the number of samples that the JVM lost, for each file whose samples are drawn, or would be if there were any.
fn note_lost(cx: &RunContext, args: &FlamegraphArgs, files: &[OpenedRecording], drawn: Option<StackWeight>) {
    for file in files {
        let are_missing = file.recorded.profile.samples.is_none();
        let are_wanted = args.data.is_none_or(|of| of == StackWeight::Cpu);
        if drawn == Some(StackWeight::Cpu) || are_missing && are_wanted {
            let lost = file.recorded.lost_samples_note(None, files.len() > 1);
            lost.iter().for_each(|lost| file.input.note(cx, lost));
            let uncounted = file.recorded.uncounted_states_note(files.len() > 1);
            uncounted.iter().for_each(|uncounted| file.input.note(cx, uncounted));
        }
    }
}

fn question(args: &FlamegraphArgs, of: StackWeight) -> StackQuery {
    StackQuery {
        of,
        unit: args.unit,
        by_thread: args.by_thread,
        reverse: args.reverse,
        lines: args.lines,
        depth: Some(args.depth).filter(|depth| *depth > 0),
        filter: args.frames.filter(),
        naming: if args.baseline.is_some() { Naming::Common } else { Naming::AsRecorded },
    }
}

fn write(
    cx: &RunContext,
    args: &FlamegraphArgs,
    of: StackWeight,
    stacks: &Stacks,
    file: Option<OutFile>,
) -> anyhow::Result<()> {
    let render = |out: &mut dyn Write| match args.format {
        FlamegraphFormat::Folded => folded::write(out, stacks),
        FlamegraphFormat::Speedscope => speedscope::write(out, stacks, &title(args, of, stacks)),
        FlamegraphFormat::Svg => flamegraph::write(out, stacks, &look(args, of, stacks)),
    };
    let fewer = |error: io::Error| match error.kind() {
        io::ErrorKind::InvalidInput => {
            anyhow::anyhow!("{error}; --depth, --class, --method and --min-width select fewer")
        }
        _ => error.into(),
    };
    let Some(file) = file else {
        let mut out = cx.writer();
        render(&mut out).map_err(fewer)?;
        return output::finish(out);
    };
    let name = format!("cannot write {}", file.path().display());
    let mut out = BufWriter::with_capacity(1 << 16, file);
    render(&mut out).map_err(fewer).with_context(|| name.clone())?;
    out.into_inner().map_err(io::IntoInnerError::into_error).context(name)?.commit()
}

fn look(args: &FlamegraphArgs, of: StackWeight, stacks: &Stacks) -> Look {
    let default = match of {
        StackWeight::Cpu | StackWeight::CpuTime | StackWeight::Waits(_) => Palette::Hot,
        StackWeight::Allocated | StackWeight::Live => Palette::Mem,
    };
    Look {
        title: title(args, of, stacks),
        width: args.width,
        min_width_percent: args.min_width,
        palette: args.colors.unwrap_or(default),
        hanging: args.reverse,
        scale: match of {
            StackWeight::Cpu | StackWeight::CpuTime | StackWeight::Allocated | StackWeight::Waits(_) => {
                Scale::Normalized
            }
            // Live data does not depend on how long a program ran.
            StackWeight::Live => Scale::Absolute,
        },
    }
}

/// Returns the title: the file name without directories, and the data drawn.
fn title(args: &FlamegraphArgs, of: StackWeight, stacks: &Stacks) -> String {
    if let Some(title) = &args.title {
        return title.clone();
    }
    let name = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let compared = args.baseline.as_deref().map(|old| format!(", compared with {}", name(old)));
    let name = name(args.input.input.path());
    let what = match of {
        StackWeight::Cpu => "CPU samples".to_owned(),
        StackWeight::CpuTime => "CPU time".to_owned(),
        StackWeight::Allocated if args.event == Some(SiteEvent::UnfreedMemory) => {
            format!("{} of native memory not freed", stacks.measure.name())
        }
        StackWeight::Allocated => format!("allocated {}", stacks.measure.name()),
        StackWeight::Live => format!("live {}", stacks.measure.name()),
        StackWeight::Waits(MonitorEvent::Enter) => "contention".to_owned(),
        StackWeight::Waits(MonitorEvent::Wait) => "time waited".to_owned(),
        StackWeight::Waits(MonitorEvent::Park) => "time parked".to_owned(),
    };
    format!("{name}: {what}{}", compared.unwrap_or_default())
}

/// Prints notes about the picture.
fn notes(
    cx: &RunContext,
    args: &FlamegraphArgs,
    of: StackWeight,
    profile: &Profile,
    baseline: Option<&Profile>,
    stacks: &Stacks,
) {
    let note = |text: &str| cx.emit("note", text);
    if let Some(path) = &args.output {
        let (count, total) = (group_digits(stacks.stacks), group_digits(stacks.total));
        note(&format!("{}: {count} stacks, {total} {}", path.display(), stacks.measure.name()));
    }
    if let Some(baseline) = stacks.baseline.filter(|baseline| baseline.gone > 0) {
        let (gone, total) = (group_digits(baseline.gone), group_digits(baseline.total));
        note(&format!(
            "{gone} of {total} {} of the baseline belong to stacks that the newer file does not contain",
            stacks.measure.name()
        ));
    }
    if stacks.cut > 0 {
        note(&format!(
            "{} traces are deeper than {} frames; --depth 0 shows all frames",
            group_digits(stacks.cut),
            args.depth
        ));
    }
    let is_all = args.frames.is_empty();
    let left = profile.samples.as_ref().map_or(0, |samples| samples.total.saturating_sub(stacks.total));
    if of == StackWeight::Cpu && is_all && left > 0 {
        note(&format!("{} more samples belong to traces that the file omits", group_digits(left)));
    }
    let last = profile.times.as_ref().and_then(|times| times.rows.last());
    let left = last.map_or(0.0, |row| 100.0 - row.accumulated_percent);
    if of == StackWeight::CpuTime && is_all && left >= 1.0 {
        note(&format!("{left:.0} % of the time belongs to traces that the file omits"));
    }
    match stacks.measure {
        Measure::PercentHundredths => {
            note("the total CPU time stated in the file is wrong: stacks are weighted by their percentages");
        }
        Measure::Milliseconds if profile.times.is_some() => {
            note("milliseconds are estimated: the file contains only percentages and a total");
        }
        _ => {}
    }
    let is_counted = |profile: &Profile| {
        of == StackWeight::Live && profile.sites.as_ref().is_some_and(|sites| sites.origin == Origin::Objects)
    };
    if is_counted(profile) {
        note("the dump contains no allocation sites: they are counted from its objects");
    }
    if baseline.is_some_and(is_counted) {
        note("the baseline contains no allocation sites: they are counted from its objects");
    }
}
