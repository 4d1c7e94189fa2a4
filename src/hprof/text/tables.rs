//! SITES, CPU SAMPLES, CPU TIME (ms) and MONITOR TIME. Columns are separated by spaces: they widen for
//! large numbers.

use super::event::{AllocationSite, CpuRow, Ranking, TextEvent};
use super::scan::Scan;
use crate::TraceSerial;

/// Parses `SITES BEGIN (ordered by live bytes) Sat Nov 21 01:58:24 2026`.
pub(super) fn sites_begin(line: &[u8]) -> Option<TextEvent<'_>> {
    let mut scan = Scan::new(line);
    scan.literal(b"SITES BEGIN (ordered by ")?;
    let by_allocation = match scan.until(b')')? {
        b"live bytes" => false,
        b"allocated bytes" => true,
        _ => return None,
    };
    scan.spaces();
    Some(TextEvent::SitesBegin { by_allocation, date: scan.remaining() })
}

/// Parses a line of SITES.
pub(super) fn site(line: &[u8]) -> TextEvent<'_> {
    const EXPECTED: &str = "rank self% accum% bytes objs bytes objs trace class";
    if is_title(line, &["percent", "live", "alloc'ed", "stack", "class"])
        || is_title(line, &["rank", "self", "accum", "bytes", "objs", "bytes", "objs", "trace", "name"])
    {
        return TextEvent::Nothing;
    }
    let row = || {
        let mut scan = Scan::new(line);
        let (rank, self_percent, accumulated_percent) = rank_columns(&mut scan)?;
        let mut number = || {
            let number = scan.decimal()?;
            gap(&mut scan)?;
            Some(number)
        };
        let (live_bytes, live_instances) = (number()?, number()?);
        let (allocated_bytes, allocated_instances) = (number()?, number()?);
        let trace = TraceSerial(u32::try_from(number()?).ok()?);
        let class = Some(scan.remaining()).filter(|class| !class.is_empty())?;
        Some(AllocationSite {
            rank,
            self_percent,
            accumulated_percent,
            live_bytes,
            live_instances,
            allocated_bytes,
            allocated_instances,
            trace,
            class,
        })
    };
    row().map_or(TextEvent::Malformed { expected: EXPECTED, text: line }, TextEvent::Site)
}

impl Ranking {
    /// Returns the name of the section.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Samples => "CPU SAMPLES",
            Self::Times => "CPU TIME (ms)",
            Self::Contention => "MONITOR TIME",
        }
    }

    /// Returns the words of the last line.
    pub(super) const fn end(self) -> &'static str {
        match self {
            Self::Samples => "CPU SAMPLES END",
            Self::Times => "CPU TIME (ms) END",
            Self::Contention => "MONITOR TIME END",
        }
    }
}

/// Parses `CPU SAMPLES BEGIN (total = 981) Fri Jun 14 01:16:35 2013` and similar lines.
pub(super) fn ranking_begin(line: &[u8]) -> Option<TextEvent<'_>> {
    [Ranking::Samples, Ranking::Times, Ranking::Contention].into_iter().find_map(|ranking| {
        let mut scan = Scan::new(line);
        scan.literal(ranking.name().as_bytes())?;
        scan.literal(b" BEGIN (total = ")?;
        let total = scan.signed_decimal()?;
        scan.maybe(b" ms");
        scan.literal(b")")?;
        scan.spaces();
        Some(TextEvent::RankingBegin { ranking, total, date: scan.remaining() })
    })
}

/// Parses a line of a ranking.
pub(super) fn row(line: &[u8]) -> TextEvent<'_> {
    const EXPECTED: &str = "rank self% accum% count trace name";
    if is_title(line, &["rank", "self", "accum", "count", "trace"]) {
        return TextEvent::Nothing;
    }
    let row = || {
        let mut scan = Scan::new(line);
        let (rank, self_percent, accumulated_percent) = rank_columns(&mut scan)?;
        let count = scan.decimal()?;
        gap(&mut scan)?;
        let trace = scan.trace()?;
        gap(&mut scan)?;
        let name = match scan.remaining() {
            b"" => return None,
            b"<empty trace>" | b"<empty>" => None,
            name => Some(name),
        };
        Some(CpuRow { rank, self_percent, accumulated_percent, count, trace, name })
    };
    row().map_or(TextEvent::Malformed { expected: EXPECTED, text: line }, TextEvent::Row)
}

/// Parses the first three columns of a row: rank and percentages.
fn rank_columns(scan: &mut Scan<'_>) -> Option<(u64, f64, f64)> {
    scan.spaces();
    let rank = scan.decimal()?;
    gap(scan)?;
    let self_percent = scan.percent()?;
    scan.spaces();
    let accumulated_percent = scan.percent()?;
    gap(scan)?;
    Some((rank, self_percent, accumulated_percent))
}

/// Skips spaces; `None` if there are none.
fn gap(scan: &mut Scan<'_>) -> Option<()> {
    matches!(scan.remaining(), [b' ' | b'\t', ..]).then(|| scan.spaces())
}

/// Returns `true` if a line starts with these words.
fn is_title(line: &[u8], words: &[&str]) -> bool {
    let mut found = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty());
    words.iter().all(|word| found.next() == Some(word.as_bytes()))
}
