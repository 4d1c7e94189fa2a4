//! Comparison of a recording with a dump: evidence for the same process, and the recorded share of its time.

use hprof_index::{Dump, Heap};

use hprof_model::objects::class_set::ClassSet;
use hprof_model::objects::label::Labels;
use hprof_recordings::profile::flight::allocations::Allocations;

/// Maximum number of objects that are examined to find the directory of the recorder.
const MAX_OBJECTS: usize = 16;
/// Maximum difference of clocks in nanoseconds: the time of the dump has whole milliseconds, that of some writers whole
/// seconds.
const SLACK_NANOS: i64 = 2_000_000_000;
/// Maximum process ID that is not distinctive: in each container the first process is 1, and the following ones are not much
/// larger.
const MAX_COMMON_PID: i64 = 100;
/// Nanoseconds of a millisecond.
const MILLISECOND: i64 = 1_000_000;

/// Result of comparing the processes of a recording and a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SameProcess {
    /// A distinctive fact is equal, and nothing contradicts: a process ID that is not small, or the time at which the recorder
    /// was started.
    Yes,
    /// The processes differ, or the recording is of another time.
    No(Contradiction),
    /// Nothing contradicts, but the equal facts are not distinctive, or nothing can be compared.
    Unknown(CommonFacts),
}

/// Facts that are equal in a recording and a dump but may be shared by several processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CommonFacts {
    /// Process ID, if equal.
    pub pid: Option<i64>,
    /// `true` if the commands are equal.
    pub command: bool,
}

/// A contradiction between a recording and a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contradiction {
    /// Process IDs of the recording and of the dump.
    Pid(i64, i64),
    /// Commands of the recording and of the dump.
    Command(String, String),
    /// The dump is older than the JVM of the recording.
    DumpIsOlder,
    /// The recording starts after the dump was made.
    RecordingIsLater,
}

impl SameProcess {
    /// Returns the name in output.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No(_) => "no",
            Self::Unknown(_) => "unknown",
        }
    }
}

/// Determines whether a recording and a dump are from the same process.
pub fn same_process(dump: &Dump<'_>, allocations: &Allocations) -> SameProcess {
    let jvm = allocations.jvm.clone().unwrap_or_default();
    let pid = jvm.pid.zip(pid(dump));
    let command = dump.summary.properties().find(|(key, _)| *key == "sun.java.command");
    let command = command.map(|(_, command)| command.trim()).filter(|command| !command.is_empty());
    let command = Some(jvm.command.trim()).filter(|command| !command.is_empty()).zip(command);
    if let Some((recorded, dumped)) = pid.filter(|(recorded, dumped)| recorded != dumped) {
        return SameProcess::No(Contradiction::Pid(recorded, dumped));
    }
    // Either may be truncated.
    let differ = |(a, b): &(&str, &str)| !a.starts_with(b) && !b.starts_with(a);
    if let Some((recorded, dumped)) = command.filter(differ) {
        return SameProcess::No(Contradiction::Command(recorded.to_owned(), dumped.to_owned()));
    }
    if let Some(dumped) = dump_nanos(dump.heap) {
        let is_before = |time: i64| dumped.saturating_add(SLACK_NANOS) < time;
        if jvm.start_nanos.is_some_and(is_before) {
            return SameProcess::No(Contradiction::DumpIsOlder);
        }
        if is_before(allocations.span_nanos.0) {
            return SameProcess::No(Contradiction::RecordingIsLater);
        }
    }
    let common = CommonFacts { pid: pid.map(|(pid, _)| pid), command: command.is_some() };
    let started = &allocations.started_ms;
    let is_started = || recorder_starts(dump).iter().any(|at| started.contains(at));
    if common.prove_it() || (!started.is_empty() && is_started()) {
        return SameProcess::Yes;
    }
    SameProcess::Unknown(common)
}

impl CommonFacts {
    /// Returns whether these facts identify the process: whether the process ID is distinctive. A command proves nothing, since
    /// replicas have the same.
    fn prove_it(self) -> bool {
        self.pid.is_some_and(|pid| pid > MAX_COMMON_PID)
    }
}

/// Returns the nanoseconds from the end of a recording to the dump; 0 if the recording ended later, or the dump has no
/// timestamp.
pub fn unrecorded_nanos(heap: &Heap, allocations: &Allocations) -> u64 {
    let since = dump_nanos(heap).map(|dumped| dumped.saturating_sub(allocations.span_nanos.1));
    since.and_then(|nanos| u64::try_from(nanos).ok()).unwrap_or(0)
}

/// Share of the time from the start of the JVM to the dump that a recording covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordedShare {
    recorded: u64,
    /// Share of the time until the dump, if nothing was allocated after the end of the recording.
    until_dump: u64,
    all: u64,
}

impl RecordedShare {
    /// Share of a recording whose times are not known.
    const WHOLE: Self = Self { recorded: 1, until_dump: 1, all: 1 };

    /// Determines the recorded share for a dump and a recording.
    pub(super) fn new(heap: &Heap, allocations: &Allocations) -> Self {
        let jvm_start = allocations.jvm.as_ref().and_then(|jvm| jvm.start_nanos);
        let (Some(jvm_start), Some(dumped)) = (jvm_start, dump_nanos(heap)) else { return Self::WHOLE };
        let (start, end) = allocations.span_nanos;
        let start = if starts_with_jvm(allocations) { jvm_start } else { start.max(jvm_start) };
        let since = |from: i64, to: i64| u64::try_from(to.saturating_sub(from)).unwrap_or(0);
        let (all, until_dump) = (since(jvm_start, dumped), since(start, dumped));
        match since(start, end.min(dumped)) {
            0 => Self::WHOLE,
            recorded => Self { recorded, until_dump, all },
        }
    }

    /// Returns the recorded part of a number of bytes: if they were allocated evenly until the dump, and if they were allocated
    /// evenly until the end of the recording.
    pub(super) fn parts(self, bytes: u64) -> (u64, u64) {
        let part = |share: u64| {
            let part = u128::from(bytes) * u128::from(share.min(self.all)) / u128::from(self.all.max(1));
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        (part(self.recorded), part(self.until_dump))
    }
}

/// Returns whether a recording was started with the JVM, and its first chunk is present. The JVM starts the recording before
/// the program, which can take seconds.
fn starts_with_jvm(allocations: &Allocations) -> bool {
    let started = allocations.first_started_ms.map(|started| started.saturating_mul(MILLISECOND));
    let has_first_chunk = |started: i64| allocations.span_nanos.0 <= started.saturating_add(SLACK_NANOS);
    allocations.jvm.as_ref().is_some_and(|jvm| jvm.starts_recording) && started.is_some_and(has_first_chunk)
}

/// Returns the time at which a dump was made, in nanoseconds since 1970, if it is recorded.
pub fn dump_nanos(heap: &Heap) -> Option<i64> {
    let millis = i64::try_from(heap.summary().facts().created_ms.get()).ok()?;
    Some(millis.saturating_mul(MILLISECOND)).filter(|nanos| *nanos > 0)
}

/// Returns the process ID in the name of the directory into which the recorder writes.
fn pid(dump: &Dump<'_>) -> Option<i64> {
    let repositories = ClassSet::of_name_and_below(dump.summary, "jdk.jfr.internal.Repository");
    let (objects, labels) = (dump.objects, Labels::new(dump));
    repositories.all_objects(dump.graph).into_iter().take(MAX_OBJECTS).find_map(|repository| {
        let path = objects.reference(repository, "repository")?;
        // JDK 11 to 23 wrap the path.
        let path = objects
            .reference(path, "path")
            .filter(|path| labels.unmasked_label(*path).is_some())
            .unwrap_or(path);
        pid_of(&labels.unmasked_label(path)?)
    })
}

/// Returns the times at which recordings were started in the dumped JVM, in milliseconds since 1970. Two processes hardly ever
/// have equal times.
fn recorder_starts(dump: &Dump<'_>) -> Vec<i64> {
    let recordings = ClassSet::of_name_and_below(dump.summary, "jdk.jfr.internal.PlatformRecording");
    let objects = dump.objects;
    let start = |recording| {
        let start = objects.fields(objects.reference(recording, "startTime")?)?;
        let nanos = start.integer("nanos")?;
        start.integer("seconds")?.checked_mul(1000)?.checked_add(nanos / MILLISECOND)
    };
    recordings.all_objects(dump.graph).into_iter().take(MAX_OBJECTS).filter_map(start).collect()
}

/// Returns the process ID of `/tmp/2026_11_26_12_26_00_1790`.
fn pid_of(path: &str) -> Option<i64> {
    let name = path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next()?;
    let parts: Vec<&str> = name.split('_').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let [_, _, _, _, _, _, pid] = parts.as_slice() else { return None };
    parts.iter().all(is_number).then(|| pid.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hprof_recordings::profile::flight::allocations::RecordedJvm;

    #[test]
    fn shares_of_a_recording() {
        assert_eq!(RecordedShare::WHOLE.parts(u64::MAX), (u64::MAX, u64::MAX));
        let share = RecordedShare { recorded: 20, until_dump: 50, all: 100 };
        assert_eq!(share.parts(1000), (200, 500));
        let share = RecordedShare { recorded: u64::MAX, until_dump: u64::MAX, all: 1 };
        assert_eq!(share.parts(7), (7, 7));
    }

    #[test]
    fn recordings_that_start_with_the_jvm() {
        let mut allocations = Allocations::default();
        allocations.span_nanos = (10_000 * MILLISECOND, 20_000 * MILLISECOND);
        for (starts_recording, started_ms, is_whole) in [
            (true, Some(10_005), true),
            (true, Some(9_000), true),
            // The first chunk is lost; another recording; by a command.
            (true, Some(7_000), false),
            (true, None, false),
            (false, Some(10_005), false),
        ] {
            allocations.jvm = Some(RecordedJvm { starts_recording, ..RecordedJvm::default() });
            allocations.first_started_ms = started_ms;
            assert_eq!(starts_with_jvm(&allocations), is_whole, "{starts_recording} {started_ms:?}");
        }
    }

    #[test]
    fn small_process_ids_and_commands_prove_nothing() {
        for (pid, is_proof) in [(None, false), (Some(1), false), (Some(100), false), (Some(101), true)] {
            for command in [false, true] {
                assert_eq!(CommonFacts { pid, command }.prove_it(), is_proof, "{pid:?} {command}");
            }
        }
    }

    #[test]
    fn process_id_of_a_directory() {
        assert_eq!(pid_of("/tmp/2026_11_26_12_26_00_1790"), Some(1790));
        assert_eq!(pid_of("C:\\temp\\2026_11_26_12_26_00_7\\"), Some(7));
        for other in [
            "",
            "/tmp",
            "/tmp/2026_11_26_12_26_00",
            "/tmp/2026_11_26_12_26_00_x",
            "1_2_3_4_5_6_99999999999999999999",
        ] {
            assert_eq!(pid_of(other), None, "{other}");
        }
    }
}
