//! Lines of code that allocated what accumulates, from a recording of Flight Recorder: in a sentence, and as columns.

use crate::cli::prelude::*;
use crate::cli::shared::facts;
use hprof_query::leaks::Suspect;
use hprof_query::leaks::allocated_in::{AllocatedIn, AllocationStatus, Certainty, LeakSite};
use hprof_query::recordings::allocation_sites::{AllocationRate, AllocationSite};
use hprof_report::number::{format_count, hundredths};
use hprof_report::value::list;

/// Maximum number of lines of code that the evidence describes.
const SHOWN_SITES: usize = 3;

/// A line of code that allocated a suspect's objects, and the total of which its bytes are a share.
#[derive(Debug, Clone)]
pub(crate) struct AllocatingLine {
    class: String,
    all_bytes: u64,
    line: LeakSite,
}

impl AllocatingLine {
    /// Formats the line of code.
    pub(crate) fn frame(&self) -> String {
        frame(&self.line)
    }
}

/// Returns the lines of code that allocated a suspect's objects.
pub(crate) fn lines(suspect: &Suspect) -> Vec<AllocatingLine> {
    let Some(of) = &suspect.allocated_in else { return Vec::new() };
    let line = |line: &LeakSite| AllocatingLine {
        class: of.class.clone(),
        all_bytes: of.sum.bytes,
        line: line.clone(),
    };
    of.sites.iter().map(line).collect()
}

/// Returns a sentence about the lines of code that allocated what accumulates.
pub(crate) fn sentence(suspect: &Suspect) -> Option<String> {
    let of = suspect.allocated_in.as_ref()?;
    let class = &of.class;
    let recording =
        if of.is_partial { "The recording, as far as it could be read," } else { "The recording" };
    match of.status {
        AllocationStatus::None => {
            return Some(format!("{recording} contains no allocation samples of {class}."));
        }
        AllocationStatus::TooFew => {
            let samples = format_count(of.sum.samples.max(of.old_objects), "allocation sample");
            return Some(format!("{recording} contains {samples} of {class}, too few to identify a line."));
        }
        AllocationStatus::Found => {}
    }
    let first = of.sites.first()?;
    let share = match of.sum.samples {
        0 => "not sampled when it was allocated".to_owned(),
        samples => format!(
            "{} of its {} of sampled allocations ({} of {} samples)",
            percent(first.like.bytes, of.sum.bytes),
            human_bytes(of.sum.bytes),
            group_digits(first.like.samples),
            group_digits(samples)
        ),
    };
    let line = line_with_caller(first);
    let mut alive = human_bytes(of.recorded_live_bytes);
    if of.recorded_live_bytes < of.live_bytes {
        alive += &format!(" since the recording began, of {} in total", human_bytes(of.live_bytes));
    }
    let (how, why) = match of.sure {
        Certainty::HeldAlike => (
            "is allocated",
            format!(
                "{} of {} sampled objects that stayed alive are from there, {} of them held by the same field",
                group_digits(first.old_objects),
                group_digits(of.old_objects),
                group_digits(first.held_alike)
            ),
        ),
        Certainty::OldObjects => (
            "is allocated",
            format!(
                "{} of {} sampled objects that stayed alive are from there",
                group_digits(first.old_objects),
                group_digits(of.old_objects)
            ),
        ),
        Certainty::OnlyLine if first.like == of.sum => {
            ("is allocated", "no other line allocated any".to_owned())
        }
        Certainty::OnlyLine => (
            "is allocated",
            format!("all other lines together allocated less than half of the live bytes ({alive})"),
        ),
        Certainty::NoGarbage => (
            "is mostly allocated",
            format!("all lines together allocated little more than the live bytes ({alive})"),
        ),
        Certainty::LiveBytes => (
            "is probably allocated",
            format!("the only line that allocated about as much as the live bytes ({alive})"),
        ),
        Certainty::Holder => (
            "is probably allocated",
            "the only line that allocated enough and is called by the class that holds the objects"
                .to_owned(),
        ),
        Certainty::Unsure => {
            return Some(format!(
                "{class} may be allocated in {line}: {share}, but it is unknown which line allocated the objects that \
                 stayed alive."
            ));
        }
    };
    Some(format!("{class} {how} in {line}: {share}; {why}."))
}

/// Describes the first lines of code, each in a few words.
pub(super) fn evidence(suspect: &Suspect) -> Vec<String> {
    let Some(of) = &suspect.allocated_in else { return Vec::new() };
    let text = |line: &LeakSite| {
        let alive = match line.old_objects {
            0 => String::new(),
            alive => format!(", {} of {} alive", group_digits(alive), group_digits(of.old_objects)),
        };
        let share = percent(line.like.bytes, of.sum.bytes);
        let samples = format_count(line.like.samples, "sample");
        format!("{}: {share}, {samples}{alive}, {}", line_with_caller(line), rate(line.site.rate()))
    };
    of.sites.iter().take(SHOWN_SITES).map(text).collect()
}

/// Formats a line of code and, if known, the caller that allocated the objects that stayed alive.
fn line_with_caller(line: &LeakSite) -> String {
    let caller = line.caller.as_ref().map(|caller| format!(", called by {caller}"));
    frame(line) + &caller.unwrap_or_default()
}

/// Formats a line of code; an unknown one gets a placeholder.
fn frame(line: &LeakSite) -> String {
    line.site.frame.as_ref().map_or_else(|| "an unknown method".to_owned(), ToString::to_string)
}

fn rate(rate: AllocationRate) -> &'static str {
    match rate {
        AllocationRate::Start => "only at the start",
        AllocationRate::End => "only at the end",
        other => other.name(),
    }
}

/// Returns the columns for a line of code.
pub(crate) fn columns() -> Columns<'static, AllocatingLine> {
    let of_site = |fact| facts::columns(vec![fact], None, |site: &AllocatingLine| &site.line.site);
    let mut columns = of_site(AllocationSite::frame_fact());
    columns.extend([
        Column::new(names::CALLER, |site: &AllocatingLine| {
            site.line.caller.as_ref().map(ToString::to_string).into()
        })
        .or_null("all calls are from one line, or the sampled objects that stayed alive do not show it"),
        Column::new(names::CLASS, |site: &AllocatingLine| (&site.class).into()),
        Column::new(names::WEIGHT_BYTES, |site: &AllocatingLine| site.line.like.bytes.into()),
        Column::new(names::PERCENT, |site: &AllocatingLine| {
            Value::Float(hundredths(site.line.like.bytes, site.all_bytes))
        }),
        Column::new(names::SAMPLES, |site: &AllocatingLine| site.line.like.samples.into()),
        Column::new(names::OLD_OBJECTS, |site: &AllocatingLine| site.line.old_objects.into()),
        Column::new(names::HELD_ALIKE_OBJECTS, |site: &AllocatingLine| site.line.held_alike.into()),
    ]);
    columns.extend(of_site(AllocationSite::rate_fact()));
    columns.extend([
        Column::new(names::WEIGHT_BY_PART, |site: &AllocatingLine| list(site.line.site.parts)),
        Column::new(names::STACK, |site: &AllocatingLine| {
            list(site.line.site.stack.iter().map(ToString::to_string))
        }),
    ]);
    Columns::new(columns)
}

/// Formats the lines of code of a suspect for one CSV cell.
pub(crate) fn cell(suspect: &Suspect) -> Value<'static> {
    let sites = suspect.allocated_in.iter().flat_map(|of| &of.sites);
    sites.map(frame).collect::<Vec<_>>().join("; ").into()
}

/// Returns the columns for the allocation samples of a class.
pub(crate) fn sample_columns<'c>() -> Columns<'c, AllocatedIn> {
    Columns::new([
        Column::new(names::CLASS, |of: &AllocatedIn| (&of.class).into()),
        Column::new(names::STATUS, |of: &AllocatedIn| of.status.name().into()),
        Column::new(names::SURE, |of: &AllocatedIn| {
            (of.status == AllocationStatus::Found).then(|| of.sure.name()).into()
        })
        .or_null("no line is named"),
        Column::new(names::EVENT, |of: &AllocatedIn| of.event.map(|event| event.name()).into())
            .or_null("there are no allocation samples"),
        Column::new(names::SAMPLES, |of: &AllocatedIn| of.sum.samples.into()),
        Column::new(names::WEIGHT_BYTES, |of: &AllocatedIn| of.sum.bytes.into()),
        Column::new(names::OLD_OBJECTS, |of: &AllocatedIn| of.old_objects.into()),
        Column::new(names::LIVE_BYTES, |of: &AllocatedIn| of.live_bytes.into()),
        Column::new(names::RECORDED_LIVE_BYTES, |of: &AllocatedIn| of.recorded_live_bytes.into()),
        Column::new(names::ALLOCATING_LINES, |of: &AllocatedIn| of.all_sites.into()),
    ])
}
