//! `--event` of commands about allocations in recordings of Flight Recorder, and what is said about memory that was not freed.

use crate::cli::prelude::*;
use crate::cli::shared::recording::{RecordedFile, RecordedInput, RecordedProfile};
use hprof_query::recordings::profile::date_of_nanos;
use hprof_query::recordings::profile::flight::SiteEvent;
use hprof_query::recordings::profile::flight::mallocs::{FREE, TAIL_PERCENT, UnfreedMemory};
use hprof_report::number::format_count;

/// Values of `--event`.
pub(super) const EVENT: &[Keyword<SiteEvent>] = &[
    ("sample", SiteEvent::Samples, "jdk.ObjectAllocationSample: sampled allocations"),
    ("tlab", SiteEvent::Buffers, "jdk.ObjectAllocationInNewTLAB and OutsideTLAB: allocation buffers"),
    (
        "live-object",
        SiteEvent::LiveObjects,
        "profiler.LiveObject: sampled objects that were alive at the end",
    ),
    (
        "malloc",
        SiteEvent::UnfreedMemory,
        "profiler.Malloc without profiler.Free: native memory that was not freed",
    ),
    ("malloc-total", SiteEvent::NativeMemory, "profiler.Malloc: native memory, including freed memory"),
];

/// Returns an error if events are selected in a file that is not a recording of Flight Recorder.
pub(super) fn ensure_flight(recorded: &RecordedProfile, event: Option<SiteEvent>) -> anyhow::Result<()> {
    anyhow::ensure!(
        event.is_none() || matches!(recorded.file, RecordedFile::Flight { .. }),
        "--event applies only to recordings of Flight Recorder; omit it"
    );
    Ok(())
}

/// Returns the mallocs and frees of a recording, if its sites are those of memory that was not freed.
pub(super) fn unfreed_memory(recorded: &RecordedProfile) -> Option<&UnfreedMemory> {
    match &recorded.file {
        RecordedFile::Flight { report, .. } => report.unfreed.as_ref(),
        RecordedFile::Binary(_) | RecordedFile::Text { .. } => None,
    }
}

/// Returns whether the sites are those of all mallocs of a recording that has frees, too.
pub(super) fn has_frees(recorded: &RecordedProfile) -> bool {
    let RecordedFile::Flight { report, .. } = &recorded.file else { return false };
    let event = recorded.profile.sites.as_ref().and_then(|sites| sites.event);
    event == Some(SiteEvent::NativeMemory) && report.facts.events_of(FREE) > 0
}

/// Returns the name of the wanted events.
pub(super) fn event_name(event: Option<SiteEvent>) -> String {
    event.map_or_else(|| "allocation samples".to_owned(), |event| format!("{} events", event.name()))
}

/// Prints notes about memory that was not freed: which part of the recording is counted, and which pairs are incomplete.
pub(super) fn notes(cx: &RunContext, input: &RecordedInput, recorded: &RecordedProfile) {
    let Some(facts) = unfreed_memory(recorded).filter(|facts| facts.mallocs > 0) else { return };
    let total = recorded.profile.sites.as_ref().and_then(|sites| sites.total.as_ref());
    let (bytes, mallocs) = total.map_or((0, 0), |total| (total.allocated_bytes, total.samples));
    let (mallocs, all) = (group_digits(mallocs), format_count(facts.mallocs, "malloc"));
    let frees = format_count(facts.frees, "free");
    input.note(cx, &format!("{} in {mallocs} of {all} were not freed ({frees})", human_bytes(bytes)));
    if facts.frees == 0 {
        input.note(
            cx,
            "the recording contains no frees (async-profiler's `nofree`): freed memory is counted, too",
        );
    }
    if let Some(until) = facts.counted_until_nanos.and_then(date_of_nanos) {
        let (young, bytes) = (format_count(facts.young_mallocs, "malloc"), human_bytes(facts.young_bytes));
        input.note(
            cx,
            &format!(
                "the last {TAIL_PERCENT} percent of the recording, after {until}, are too young to count: {young} of \
                 {bytes} were not freed"
            ),
        );
    }
    if facts.lost_frees > 0 {
        let lost = format_count(facts.lost_frees, "malloc");
        input.note(
            cx,
            &format!("{lost} reused an address without a free in between, which was lost: the earlier memory counts as freed"),
        );
    }
    if facts.unmatched_frees > 0 {
        let frees = format_count(facts.unmatched_frees, "free");
        input.note(
            cx,
            &format!(
                "{frees} without a malloc: the memory was allocated before the recording, or not sampled"
            ),
        );
    }
}

/// Returns the columns of what is known about memory that was not freed.
pub(super) fn unfreed_columns<'a>() -> Columns<'a, &'a UnfreedMemory> {
    let time = |nanos: Option<i64>| nanos.and_then(date_of_nanos);
    Columns::new([
        Column::new(names::MALLOCS, |facts: &&UnfreedMemory| facts.mallocs.into()),
        Column::new(names::FREES, |facts: &&UnfreedMemory| facts.frees.into()),
        Column::new(names::UNMATCHED_FREES, |facts: &&UnfreedMemory| facts.unmatched_frees.into()),
        Column::new(names::LOST_FREES, |facts: &&UnfreedMemory| facts.lost_frees.into()),
        Column::new(names::TAIL_PERCENT, |_: &&UnfreedMemory| f64::from(TAIL_PERCENT).into()),
        Column::new(names::COUNTED_UNTIL, move |facts: &&UnfreedMemory| {
            time(facts.counted_until_nanos).into()
        })
        .or_null(NO_MALLOCS),
        Column::new(names::LAST_EVENT_TIME, move |facts: &&UnfreedMemory| time(facts.last_nanos).into())
            .or_null(NO_MALLOCS),
        Column::new(names::YOUNG_MALLOCS, |facts: &&UnfreedMemory| facts.young_mallocs.into()),
        Column::new(names::YOUNG_BYTES, |facts: &&UnfreedMemory| facts.young_bytes.into()),
    ])
}

/// Reason why there is no time.
const NO_MALLOCS: &str = "the recording contains no mallocs and frees";
