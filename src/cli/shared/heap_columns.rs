//! Columns about the heap and the memory over time in a recording of Flight Recorder.

use hprof_query::dictionary::names;
use hprof_query::recordings::profile::date_of_nanos;
use hprof_query::recordings::profile::flight::class_counts::ClassOverTime;
use hprof_query::recordings::profile::flight::heap::Collection;
use hprof_query::recordings::profile::flight::heap_trend::HeapTrend;
use hprof_query::recordings::profile::flight::memory_over_time::{
    FigureOverTime, FigureSample, FigureUnit, MemoryFigure, MemoryOverTime,
};
use hprof_report::column::{Column, Columns};
use hprof_report::number::{group_digits, human_bytes};

/// Returns the columns for the trend of the heap.
pub(crate) fn heap_trend<'a>() -> Columns<'a, HeapTrend> {
    Columns::new([
        Column::new(names::TREND_VERDICT, |trend: &HeapTrend| trend.verdict.name().into()),
        Column::new(names::TEXT, |trend: &HeapTrend| trend.to_string().into()),
        Column::new(names::COLLECTIONS, |trend: &HeapTrend| trend.collections.into()),
        Column::new(names::IS_FULL_ONLY, |trend: &HeapTrend| trend.is_full.into()),
        Column::new(names::FIRST_FLOOR_BYTES, |trend: &HeapTrend| trend.first_floor_bytes.into()),
        Column::new(names::MIDDLE_FLOOR_BYTES, |trend: &HeapTrend| trend.middle_floor_bytes.into()),
        Column::new(names::LAST_FLOOR_BYTES, |trend: &HeapTrend| trend.last_floor_bytes.into()),
        Column::new(names::PEAK_BYTES, |trend: &HeapTrend| trend.peak_bytes.into()),
        Column::new(names::LEFT_AT_END_BYTES, |trend: &HeapTrend| trend.end_bytes.into()),
        Column::new(names::MEMORY_LIMIT_BYTES, |trend: &HeapTrend| trend.memory_limit_bytes.into())
            .or_null("the recording does not state a limit"),
        Column::record(names::MOST_GROWN, class(), |trend: &HeapTrend| trend.most_grown.clone())
            .or_null("no objects were counted, or none grew"),
    ])
}

/// Returns the columns for the objects of a class over time.
pub(crate) fn class<'a>() -> Columns<'a, ClassOverTime> {
    const OUTSIDE: &str = "the time is out of range";
    Columns::new([
        Column::new(names::CLASS, |of: &ClassOverTime| of.class.to_string().into()),
        Column::new(names::COUNTS, |of: &ClassOverTime| of.counts.into()),
        Column::new(names::IS_IN_LAST_COUNT, |of: &ClassOverTime| of.is_in_last_count.into()),
        Column::new(names::FIRST_TIME, |of: &ClassOverTime| date_of_nanos(of.first.nanos).into())
            .or_null(OUTSIDE),
        Column::new(names::FIRST_INSTANCES, |of: &ClassOverTime| of.first.instances.into()),
        Column::new(names::FIRST_BYTES, |of: &ClassOverTime| of.first.bytes.into()),
        Column::new(names::LAST_TIME, |of: &ClassOverTime| date_of_nanos(of.last.nanos).into())
            .or_null(OUTSIDE),
        Column::new(names::LAST_INSTANCES, |of: &ClassOverTime| of.last.instances.into()),
        Column::new(names::LAST_BYTES, |of: &ClassOverTime| of.last.bytes.into()),
    ])
}

/// Returns the columns for a figure about memory over time.
pub(crate) fn figure<'a>() -> Columns<'a, FigureOverTime> {
    const OUTSIDE: &str = "the time is out of range";
    let value = |name, of: fn(&FigureOverTime) -> FigureSample| {
        Column::new(name, move |figure: &FigureOverTime| of(figure).value.into())
    };
    let time = |name, of: fn(&FigureOverTime) -> FigureSample| {
        Column::new(name, move |figure: &FigureOverTime| date_of_nanos(of(figure).nanos).into())
            .or_null(OUTSIDE)
    };
    Columns::new([
        Column::new(names::FIGURE, |of: &FigureOverTime| of.figure.name().into()),
        Column::new(names::CATEGORY, |of: &FigureOverTime| of.category.as_deref().map(str::to_owned).into())
            .or_null("the figure has no categories"),
        Column::new(names::EVENT, |of: &FigureOverTime| of.figure.event().into()),
        Column::new(names::UNIT, |of: &FigureOverTime| of.figure.unit().name().into()),
        Column::new(names::SAMPLES, |of: &FigureOverTime| of.samples.into()),
        value(names::FIRST_VALUE, |of| of.first),
        time(names::FIRST_TIME, |of| of.first),
        value(names::LAST_VALUE, |of| of.last),
        time(names::LAST_TIME, |of| of.last),
        value(names::HIGHEST_VALUE, |of| of.highest),
        time(names::HIGHEST_TIME, |of| of.highest),
        Column::new(names::GROWTH_PER_HOUR, |of: &FigureOverTime| of.growth_per_hour.into())
            .or_null("all samples are of one time"),
    ])
}

/// Returns the columns for the minimum used heap after collections in a time interval.
pub(crate) fn floor<'a>() -> Columns<'a, Collection> {
    Columns::new([time(), Column::new(names::USED_BYTES, |of: &Collection| of.used_bytes.into())])
}

fn time<'a>() -> Column<'a, Collection> {
    Column::new(names::TIME, |of: &Collection| date_of_nanos(of.nanos).into())
        .or_null("the time is out of range")
}

/// Returns the columns for the heap after a collection.
pub(crate) fn collection<'a>() -> Columns<'a, Collection> {
    let none = "not in the recording";
    Columns::new([
        time(),
        Column::new(names::GC_ID, |of: &Collection| of.gc_id.into()),
        Column::new(names::IS_FULL, |of: &Collection| of.is_full.into()),
        Column::new(names::USED_BEFORE_BYTES, |of: &Collection| of.before_bytes.into()).or_null(none),
        Column::new(names::USED_BYTES, |of: &Collection| of.used_bytes.into()),
        Column::new(names::COMMITTED_BYTES, |of: &Collection| of.committed_bytes.into()),
        Column::new(names::METASPACE_BYTES, |of: &Collection| of.metaspace_bytes.into()).or_null(none),
    ])
}

/// Figures about memory that are shown, with their labels.
const SHOWN_FIGURES: [(MemoryFigure, &str); 5] = [
    (MemoryFigure::ResidentSet, "resident set"),
    (MemoryFigure::NativeCommitted, "committed"),
    (MemoryFigure::DirectUsed, "buffers"),
    (MemoryFigure::ContainerUsed, "container"),
    (MemoryFigure::Threads, "live threads"),
];

/// Returns the most important figures about memory over time for people: label and text.
pub(crate) fn figure_lines(memory: &MemoryOverTime) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    for (figure, label) in SHOWN_FIGURES {
        let Some(found) = memory.figure(figure) else { continue };
        let shown = |value: u64| match figure.unit() {
            FigureUnit::Bytes => human_bytes(value),
            FigureUnit::Count => group_digits(value),
        };
        let [first, last, highest] = [found.first, found.last, found.highest].map(|of| shown(of.value));
        let growth = found.growth_per_hour.map(|growth| {
            let sign = if growth < 0 { '-' } else { '+' };
            format!(", {sign}{} per hour", shown(growth.unsigned_abs()))
        });
        let growth = growth.unwrap_or_default();
        lines.push((label, format!("{first} at first, {last} at last, at most {highest}{growth}")));
    }
    lines
}
