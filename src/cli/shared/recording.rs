//! Recordings of a profiler: reads a binary dump, a text report or a recording of Flight Recorder.

use crate::cli::shared::context::RunContext;
use crate::cli::shared::not_recorded::NotRecorded;
use std::path::Path;
use std::sync::Arc;

use hprof_index::layout::sizes::Sizes;
use hprof_index::{Error, Heap, Quiet};
use hprof_input::file::TextFile;
use hprof_jfr::Recording;
use hprof_parser::FormatErrorKind;
use hprof_query::objects::hiding::HIDDEN;
use hprof_query::objects::label::Labels;
use hprof_query::objects::selection::ThreadPattern;
use hprof_query::recordings::profile::binary::{self, Want};
use hprof_query::recordings::profile::flight::heap::HeapOverTime;
use hprof_query::recordings::profile::flight::memory_over_time::MemoryOverTime;
use hprof_query::recordings::profile::flight::{
    self, EventCount, FlightFacts, FlightFile, FlightReport, SampleEvent, SampleState, SiteEvent,
};
use hprof_query::recordings::profile::text::{self, TextError, TextReport};
use hprof_query::recordings::profile::{Profile, Samples, Sites, StartedThread};
use hprof_query::recordings::stack_owners;
use hprof_query::threads::{self, Threads};
use hprof_report::json;
use hprof_report::number::group_digits;

use super::args::Input;
use super::messages;
use super::session::AnswerSource;
use super::terminal::progress_bar::Bar;

/// Maximum number of states of samples that a message names.
pub(crate) const SHOWN_STATES: usize = 8;

/// Maximum number of unparseable lines shown.
const SHOWN: usize = 5;

/// A file that was read as a recording: its profile, and the source.
pub(crate) struct RecordedProfile {
    /// Profile that was read from the file.
    pub(crate) profile: Profile,
    /// Open file from which the profile was read.
    pub(crate) file: RecordedFile,
    path: String,
}

/// Open file from which a profile was read, by format.
pub(crate) enum RecordedFile {
    /// A binary dump.
    Binary(Arc<Heap>),
    /// A text report; its profile was moved out.
    Text {
        /// The report without its profile.
        report: Box<TextReport>,
        /// Length of the file in bytes.
        file_bytes: u64,
    },
    /// A recording of Flight Recorder; its profile was moved out.
    Flight {
        /// The recording without its profile.
        report: Box<FlightReport>,
        /// Length of the file in bytes.
        file_bytes: u64,
    },
}

/// A binary dump, text report or recording of Flight Recorder, and the run to read.
#[derive(Debug, Clone, clap::Args)]
#[command(mut_arg("dump", |dump| dump
    .value_name("DUMP|TEXT")
    .help("HPROF binary, or text report of the HPROF agent (java.hprof.txt); plain or compressed with gzip or zstd")))]
pub(crate) struct RecordedInput {
    #[command(flatten)]
    pub(crate) input: Input,

    /// Run to read if a text report or file of class histograms contains several, counting from 1 [default: the last]
    #[arg(long, value_name = "N", help_heading = "Input", value_parser = clap::value_parser!(u32).range(1..))]
    run: Option<u32>,
}

/// Help for the file of commands that read recordings of Flight Recorder, too.
pub(crate) const WITH_FLIGHT: &str = "HPROF binary, text report of the HPROF agent (java.hprof.txt), or recording of Flight \
     Recorder (.jfr); plain or compressed with gzip or zstd";

impl RecordedInput {
    /// Returns the number of the run to read, if given.
    pub(crate) fn run(&self) -> Option<u32> {
        self.run
    }

    /// Returns the same options for another file.
    pub(crate) fn with_dump(&self, dump: &Path) -> Self {
        Self { input: self.input.with_dump(dump), run: self.run }
    }

    /// Opens the file and prints notes about it.
    pub(crate) fn open(&self, cx: &RunContext, want: Want) -> anyhow::Result<RecordedProfile> {
        if let Some(recorded) = self.open_flight(cx, want.clone())? {
            return Ok(recorded);
        }
        if let Some((_, recorded)) = self.open_text(cx)? {
            return Ok(recorded);
        }
        let heap = self.input.open_records(cx).map_err(|error| self.not_recorded(error))?;
        let bar = Bar::new(cx, self.input.quiet);
        let profile = self.input.with_threads(|| binary::read(&heap, want, &bar))??;
        drop(bar);
        Ok(RecordedProfile { profile, file: RecordedFile::Binary(heap), path: self.path_text() })
    }

    /// Reads a recording of Flight Recorder and prints notes about it; `None` if the file is something else.
    pub(crate) fn open_flight(&self, cx: &RunContext, want: Want) -> anyhow::Result<Option<RecordedProfile>> {
        let path = self.path_text();
        let bar = Bar::new(cx, self.input.quiet);
        let scratch = self.input.index_dir().map(Path::to_owned);
        let Some(file) = FlightFile::open(self.input.path(), scratch, &bar)? else { return Ok(None) };
        for (option, is_given) in
            [("--run", self.run.is_some()), ("--heap-dump", self.input.heap_dump().is_some())]
        {
            anyhow::ensure!(
                !is_given,
                "{path} is a recording of Flight Recorder, which contains no runs and no heap dumps; omit {option}"
            );
        }
        let recording =
            Recording::new(file.bytes()).map_err(|error| anyhow::anyhow!("cannot read {path}: {error}"))?;
        let mut report = self.input.with_threads(|| flight::read(&recording, file.unpack_error(), want))?;
        drop(bar);
        about_flight(cx, &report.facts, &path, self.input.quiet);
        let mut profile = std::mem::take(&mut report.profile);
        if cx.hides_values {
            hide_thread_names(&mut profile);
            // Options and arguments of the JVM may be passwords.
            if let Some(jvm) = &mut report.facts.jvm {
                jvm.options = HIDDEN.to_owned();
                jvm.command = HIDDEN.to_owned();
            }
        }
        let origin = RecordedFile::Flight { report: Box::new(report), file_bytes: file.file_bytes() };
        Ok(Some(RecordedProfile { profile, file: origin, path }))
    }

    /// Reads the heap over time in a recording of Flight Recorder; `None` if the file is something else.
    pub(crate) fn open_heap_of_flight(
        cx: &RunContext,
        input: &Input,
    ) -> anyhow::Result<Option<RecordedProfile>> {
        // A directory or `-` is a dump, or leads to the error for a dump.
        if !input.path().is_file() {
            return Ok(None);
        }
        // `--heap-dump` is for the dumps that are given with it.
        Self { input: input.without_heap_dump(), run: None }.open_flight(cx, Want::default())
    }

    /// Opens a recording of Flight Recorder that is given with a dump, and prints notes about it. Returns the recording, and
    /// whether it is damaged.
    #[cfg(feature = "sql")]
    pub(crate) fn flight_beside(
        cx: &RunContext,
        dump: &Input,
        path: &Path,
    ) -> anyhow::Result<(FlightFile, bool)> {
        let shown = path.display();
        let bar = Bar::new(cx, dump.quiet);
        let scratch = dump.index_dir().map(Path::to_owned);
        let file = FlightFile::open(path, scratch, &bar)?
            .ok_or_else(|| anyhow::anyhow!("{shown} is not a recording of Flight Recorder"))?;
        let recording =
            Recording::new(file.bytes()).map_err(|error| anyhow::anyhow!("cannot read {shown}: {error}"))?;
        let read = || flight::read(&recording, file.unpack_error(), Want::default());
        let facts = dump.with_threads(read)?.facts;
        drop(bar);
        about_flight(cx, &facts, &shown.to_string(), dump.quiet);
        Ok((file, facts.problem_count > 0))
    }

    /// Reads an entire recording of Flight Recorder, for commands that otherwise accept only dumps.
    pub(crate) fn open_only_flight(
        cx: &RunContext,
        input: &Input,
        samples: Option<SampleEvent>,
    ) -> anyhow::Result<Option<RecordedProfile>> {
        let want = Want { sites: true, traces: true, samples, ..Want::default() };
        Self { input: input.clone(), run: None }.open_flight(cx, want)
    }

    /// Counts allocation sites over the objects of a binary dump that has no recorded sites. Reads the whole heap.
    pub(crate) fn count_sites(&self, cx: &RunContext, recorded: &mut RecordedProfile) -> anyhow::Result<()> {
        if let (RecordedFile::Binary(heap), None) = (&recorded.file, &recorded.profile.sites) {
            let (sizes, bar) = (Sizes::new(heap.summary(), None), Bar::new(cx, self.input.quiet));
            let count = || binary::sites_of_objects(heap, &sizes, &bar);
            recorded.profile.sites = self.input.with_threads(count)??;
        }
        Ok(())
    }

    /// Adds the names of matching threads of a binary dump that have no START THREAD record: HotSpot writes stacks
    /// of threads whose names only their Thread objects contain.
    pub(crate) fn name_threads(
        &self,
        cx: &RunContext,
        recorded: &mut RecordedProfile,
        wanted: &ThreadPattern,
    ) -> anyhow::Result<()> {
        let RecordedFile::Binary(heap) = &recorded.file else { return Ok(()) };
        let started = &mut recorded.profile.threads;
        let is_named = started.iter().any(|thread| wanted.matches(thread.object, Some(&thread.name)));
        if is_named || heap.summary().facts().heap_dumps.get() == 0 {
            return Ok(());
        }
        let (_, graph, (named, like)) = self.input.with_graph_again(cx, |graph| {
            let dump = graph.with_records(&Quiet)?;
            let named = stack_owners::matching_threads(dump.graph, &Labels::new(&dump), wanted);
            let question = threads::ThreadQuery::for_name(wanted.clone());
            let is_none = named.is_empty();
            Ok((named, is_none.then(|| Threads::new(&dump).find(&question))))
        })?;
        started.extend(named);
        if let Some(like) = like.filter(|like| like.matching == 0 && !self.input.quiet) {
            messages::about_no_thread(cx, &graph, &like, Some(wanted));
        }
        Ok(())
    }

    /// Reads a text report and prints notes about it; `None` if the file is a binary dump.
    pub(crate) fn open_text(&self, cx: &RunContext) -> anyhow::Result<Option<(TextFile, RecordedProfile)>> {
        let path = self.path_text();
        let opened = text::read(self.input.path(), self.run).map_err(|error| match error {
            TextError::Open(error) => Error::from(error).into(),
            error => anyhow::Error::from(error).context(format!("cannot read {path}")),
        })?;
        let Some((file, mut report)) = opened else {
            anyhow::ensure!(
                self.run.is_none(),
                "{path} is a binary dump, which contains one run; omit --run, or select a heap dump with --heap-dump"
            );
            return Ok(None);
        };
        anyhow::ensure!(
            self.input.heap_dump().is_none(),
            "{path} is a text report, which contains runs; omit --heap-dump, or select a run with --run"
        );
        about_text(cx, &report, &path, self.run, self.input.quiet);
        let mut profile = std::mem::take(&mut report.profile);
        if cx.hides_values {
            hide_thread_names(&mut profile);
        }
        let origin = RecordedFile::Text { report: Box::new(report), file_bytes: file.file_bytes() };
        Ok(Some((file, RecordedProfile { profile, file: origin, path })))
    }

    /// Converts the error for a file that is not a dump to the error for a file that is not a recording either.
    fn not_recorded(&self, error: anyhow::Error) -> anyhow::Error {
        let (looks, contents) = match error.downcast_ref::<Error>() {
            Some(Error::Format { looks, error, .. })
                if matches!(error.kind(), FormatErrorKind::NotADump(_)) =>
            {
                (*looks, String::new())
            }
            Some(Error::NotInside { looks: Some(looks), error: None, compression, .. }) => {
                (*looks, format!("the content of the {} file is ", compression.name()))
            }
            _ => return error,
        };
        NotRecorded::new(self.input.path(), self.path_text(), contents, looks).into()
    }

    fn path_text(&self) -> String {
        super::spool::original_path(self.input.path()).to_string_lossy().into_owned()
    }

    /// Prints a note, unless `--quiet` was given.
    pub(crate) fn note(&self, cx: &RunContext, text: &str) {
        if !self.input.quiet {
            cx.emit("note", text);
        }
    }

    /// Prints a hint after a note, unless `--quiet` was given.
    pub(crate) fn hint(&self, cx: &RunContext, text: &str) {
        if !self.input.quiet && !text.is_empty() {
            cx.emit("hint", text);
        }
    }
}

/// Reason why a damaged recording lacks events.
pub(crate) const UNREAD: &str = "damaged regions were not read";
/// Events that contain the tables of a chunk, not data.
const TABLES: [&str; 2] = ["jdk.Metadata", "jdk.Checkpoint"];
/// Maximum number of event types named where a recording lacks those that were asked for.
const SHOWN_TYPES: usize = 4;

impl RecordedProfile {
    /// Returns the path of the file, as given.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the heap over time of a recording of Flight Recorder; `None` for other files.
    pub(crate) fn heap_over_time(&self) -> Option<&HeapOverTime> {
        match &self.file {
            RecordedFile::Flight { report, .. } => Some(&report.heap),
            RecordedFile::Binary(_) | RecordedFile::Text { .. } => None,
        }
    }

    /// Returns the memory of the process over time; `None` for files that are not recordings of Flight Recorder.
    pub(crate) fn memory_over_time(&self) -> Option<&MemoryOverTime> {
        match &self.file {
            RecordedFile::Flight { report, .. } => Some(&report.memory),
            RecordedFile::Binary(_) | RecordedFile::Text { .. } => None,
        }
    }

    /// Returns the number of samples that the JVM reports as lost: of the requested event, or else of the counted event, or
    /// else of samples by CPU time.
    pub(crate) fn lost_samples(&self, requested: Option<SampleEvent>) -> u64 {
        let RecordedFile::Flight { report, .. } = &self.file else { return 0 };
        let counted = self.profile.samples.as_ref().and_then(|samples| samples.event);
        report.facts.lost_samples_of(requested.or(counted).unwrap_or(SampleEvent::CpuTime))
    }

    /// Returns a note about samples by CPU time that the JVM lost, or of the requested event; `None` if it lost none. Names the
    /// file if `names_file` is set. Covers the case that all of them were lost, so that samples of another event are counted.
    pub(crate) fn lost_samples_note(
        &self,
        requested: Option<SampleEvent>,
        names_file: bool,
    ) -> Option<String> {
        let RecordedFile::Flight { report, .. } = &self.file else { return None };
        let event = SampleEvent::CpuTime;
        let lost = match requested {
            None if report.facts.events_of(event.name()) == 0 => report.facts.lost_samples_of(event),
            requested => self.lost_samples(requested),
        };
        let file = if names_file { format!("{}: ", self.path) } else { String::new() };
        let (count, event) = (group_digits(lost), event.name());
        (lost > 0).then(|| format!("{file}the JVM lost {count} {event} events, which are not counted"))
    }

    /// Returns a note that only the samples in some states are counted; `None` if all are. Names the file if `names_file` is set.
    pub(crate) fn uncounted_states_note(&self, names_file: bool) -> Option<String> {
        let counted = self.profile.samples.as_ref().and_then(|samples| samples.event)?;
        let of_event = || self.sample_states().iter().filter(|state| state.event == counted);
        let text = |is_counted| {
            let states = of_event().filter(|state| state.is_counted == is_counted);
            let shown = states.map(|state| {
                format!("{} in {}", group_digits(state.samples), state.state.as_deref().unwrap_or("no state"))
            });
            shown.take(SHOWN_STATES).collect::<Vec<_>>().join(" and ")
        };
        let kind = if of_event().any(|state| state.is_wall_clock) { "wall-clock samples" } else { "samples" };
        let (shown, others) = (text(true), text(false));
        let file = if names_file { format!("{}: ", self.path) } else { String::new() };
        (!others.is_empty()).then(|| format!("{file}counted {kind}: {shown}; not counted: {others}"))
    }

    /// Returns the numbers of CPU samples by event type and state of the thread; none for other files.
    pub(crate) fn sample_states(&self) -> &[SampleState] {
        match &self.file {
            RecordedFile::Flight { report, .. } => &report.facts.sample_states,
            RecordedFile::Binary(_) | RecordedFile::Text { .. } => &[],
        }
    }

    /// Returns the reason why a recording of Flight Recorder contains no CPU samples.
    pub(crate) fn why_no_samples(&self) -> String {
        self.lost_samples_note(None, false).unwrap_or_else(|| self.why_none())
    }

    /// Returns what a recording of Flight Recorder without events of some kind contains instead, or that it is damaged.
    pub(crate) fn why_none(&self) -> String {
        let RecordedFile::Flight { report, .. } = &self.file else { return String::new() };
        if self.is_damaged() {
            return UNREAD.to_owned();
        }
        let is_data = |count: &&EventCount| !TABLES.contains(&&*count.name);
        let types: Vec<&EventCount> = report.facts.events.iter().filter(is_data).collect();
        let (shown, rest) = types.split_at(types.len().min(SHOWN_TYPES));
        if shown.is_empty() {
            return "it contains no events".to_owned();
        }
        let mut shown: Vec<String> =
            shown.iter().map(|count| format!("{} {}", group_digits(count.events), count.name)).collect();
        let others = rest.iter().fold(0u64, |sum, count| sum.saturating_add(count.events));
        match rest.len() {
            0 => {}
            1 => shown.push(format!("{} of 1 other type", group_digits(others))),
            types => {
                shown.push(format!("{} of {} other types", group_digits(others), group_digits(types as u64)))
            }
        }
        let last = shown.pop().unwrap_or_default();
        let before = if shown.is_empty() { String::new() } else { format!("{} and ", shown.join(", ")) };
        format!("it contains {before}{last}")
    }
}

/// Makes two recordings of Flight Recorder use the samples of an event that both contain.
pub(crate) fn same_samples(old: &mut RecordedProfile, new: &mut RecordedProfile) -> anyhow::Result<()> {
    same_events(old, new, "CPU samples", |recorded| {
        let RecordedFile::Flight { report, .. } = &mut recorded.file else { return None };
        Some(Kinds {
            used: &mut recorded.profile.samples,
            others: &mut report.other_samples,
            name: |samples: &Samples| samples.event.map_or("", SampleEvent::name),
        })
    })?;
    let is_wall_clock =
        |recorded: &RecordedProfile| recorded.profile.samples.as_ref().map(|samples| samples.is_wall_clock);
    if let (Some(before), Some(after)) = (is_wall_clock(old), is_wall_clock(new))
        && before != after
    {
        let (wall_clock, other) = if before { (&old.path, &new.path) } else { (&new.path, &old.path) };
        anyhow::bail!(
            "the CPU samples of {wall_clock} are wall-clock samples of running threads, those of {other} are not: they \
             cannot be compared"
        );
    }
    Ok(())
}

/// Makes two recordings of Flight Recorder use the allocation sites of an event that both contain.
pub(crate) fn same_sites(old: &mut RecordedProfile, new: &mut RecordedProfile) -> anyhow::Result<()> {
    same_events(old, new, "allocations", |recorded| {
        let RecordedFile::Flight { report, .. } = &mut recorded.file else { return None };
        Some(Kinds {
            used: &mut recorded.profile.sites,
            others: &mut report.other_sites,
            name: |sites: &Sites| sites.event.map_or("", SiteEvent::name),
        })
    })
}

/// Samples or sites of a recording, separately for several kinds of events.
struct Kinds<'a, T> {
    used: &'a mut Option<T>,
    /// Data of the other events, the preferred one first.
    others: &'a mut Vec<T>,
    name: fn(&T) -> &'static str,
}

impl<T> Kinds<'_, T> {
    /// Returns the names of the events, the preferred one first.
    fn names(&self) -> Vec<&'static str> {
        self.used.iter().chain(&*self.others).map(self.name).collect()
    }

    fn use_those_of(&mut self, event: &str) {
        let found = self.others.iter().position(|of| (self.name)(of) == event);
        if let Some(place) = found.and_then(|found| self.others.get_mut(found))
            && let Some(used) = self.used
        {
            std::mem::swap(place, used);
        }
    }
}

/// Makes two recordings use the data of the first kind of event that both contain.
fn same_events<T>(
    old: &mut RecordedProfile,
    new: &mut RecordedProfile,
    what: &str,
    kinds: impl for<'a> Fn(&'a mut RecordedProfile) -> Option<Kinds<'a, T>>,
) -> anyhow::Result<()> {
    let paths = [old.path.clone(), new.path.clone()];
    let (Some(mut old), Some(mut new)) = (kinds(old), kinds(new)) else { return Ok(()) };
    let (before, after) = (old.names(), new.names());
    if before.is_empty() || after.is_empty() {
        return Ok(());
    }
    let Some(event) = after.iter().find(|event| before.contains(event)) else {
        let [first, second] = paths;
        anyhow::bail!(
            "the {what} of {first} are {} events, those of {second} {} events, which cannot be compared: record both with \
             the same settings",
            before.join(", "),
            after.join(", ")
        );
    };
    old.use_those_of(event);
    new.use_those_of(event);
    Ok(())
}

impl AnswerSource for RecordedProfile {
    fn header(&self) -> json::DumpHeader<'_> {
        match &self.file {
            RecordedFile::Binary(heap) => heap.header(),
            RecordedFile::Text { file_bytes, .. } | RecordedFile::Flight { file_bytes, .. } => {
                json::DumpHeader {
                    path: self.path.as_str().into(),
                    file_bytes: Some(*file_bytes),
                    format: Some(self.profile.format.as_str()).filter(|format| !format.is_empty()),
                    created: self.profile.created.as_deref().map(Into::into),
                    is_damaged: Some(self.is_damaged()),
                    ..json::DumpHeader::default()
                }
            }
        }
    }

    fn is_damaged(&self) -> bool {
        match &self.file {
            RecordedFile::Binary(heap) => heap.summary().is_damaged(),
            RecordedFile::Text { report, .. } => report.not_understood > 0,
            RecordedFile::Flight { report, .. } => report.facts.problem_count > 0,
        }
    }
}

fn hide_thread_names(profile: &mut Profile) {
    profile.threads =
        std::mem::take(&mut profile.threads).into_iter().map(StartedThread::without_names).collect();
}

/// Prints notes about a recording of Flight Recorder.
fn about_flight(cx: &RunContext, facts: &FlightFacts, path: &str, quiet: bool) {
    if facts.unfinished_chunks > 0 && !quiet {
        cx.emit(
            "note",
            &format!("{path}: the JVM had not finished this recording; only what it had written was read"),
        );
    }
    for problem in facts.problems.iter().take(SHOWN) {
        cx.emit("warning", &format!("{path}: {problem}"));
    }
    let shown = facts.problems.len().min(SHOWN) as u64;
    if facts.problem_count > shown {
        let left = group_digits(facts.problem_count - shown);
        cx.emit("warning", &format!("{path}: {left} more damaged regions"));
    }
}

/// Prints notes about a text report.
fn about_text(cx: &RunContext, report: &TextReport, path: &str, run: Option<u32>, quiet: bool) {
    if report.runs > 1 && run.is_none() && !quiet {
        cx.emit(
            "note",
            &format!("{path} contains {} runs; this is the last one (--run N selects another)", report.runs),
        );
    }
    for line in report.malformed.iter().take(SHOWN) {
        let text = format!("{path}: line {}: expected {}, found {:?}", line.line, line.expected, line.text);
        cx.emit("warning", &text);
    }
    let shown = report.malformed.len().min(SHOWN) as u64;
    if report.not_understood > shown {
        let left = group_digits(report.not_understood - shown);
        cx.emit("warning", &format!("{path}: {left} more lines cannot be parsed"));
    }
}
