//! Shortening of long paths in tables: chains of equal steps become one line, `… 14 x HashMap$Node.next`; if the path is still
//! too long, its middle is omitted.

use hprof_report::number::group_digits;
use hprof_values::names;

/// Minimum number of equal steps that become one line.
const LEAST: usize = 3;

/// A line of a table with a shortened path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathSegment {
    /// A step, by its index.
    Step(usize),
    /// Consecutive equal steps, shown in one line.
    Chain {
        /// Index of the first step.
        first: usize,
        /// Number of steps.
        steps: usize,
    },
    /// Number of omitted steps between the shown ones.
    Between(usize),
}

impl PathSegment {
    fn steps(self) -> usize {
        match self {
            Self::Step(_) => 1,
            Self::Chain { steps, .. } | Self::Between(steps) => steps,
        }
    }
}

/// Returns at most `most` lines for the steps with these ascending indices, and one for the omitted middle. Consecutive
/// steps with the same `key` form a chain; the last step, the target, and steps without a key are never part of one.
pub(super) fn shorten<K: PartialEq>(
    places: impl IntoIterator<Item = usize>,
    most: usize,
    key: impl Fn(usize) -> Option<K>,
) -> Vec<PathSegment> {
    let mut pieces: Vec<PathSegment> = Vec::new();
    let mut run: Vec<usize> = Vec::new();
    let mut run_key = None;
    let close = |pieces: &mut Vec<PathSegment>, run: &mut Vec<usize>| match run.first() {
        Some(first) if run.len() >= LEAST => {
            pieces.push(PathSegment::Chain { first: *first, steps: run.len() });
            run.clear();
        }
        _ => pieces.extend(run.drain(..).map(PathSegment::Step)),
    };
    let mut places = places.into_iter().peekable();
    let mut before = None;
    while let Some(place) = places.next() {
        let gap = before.map_or(0, |before: usize| place.saturating_sub(before.saturating_add(1)));
        before = Some(place);
        let own = if places.peek().is_some() { key(place) } else { None };
        if gap > 0 || own.is_none() || own != run_key {
            close(&mut pieces, &mut run);
        }
        if gap > 0 {
            pieces.push(PathSegment::Between(gap));
        }
        run_key = own;
        run.push(place);
    }
    close(&mut pieces, &mut run);
    if pieces.len() > most {
        let (start, end) = (most / 2, pieces.len() - most / 2);
        let left_out = pieces.get(start..end).unwrap_or_default().iter().map(|piece| piece.steps()).sum();
        pieces.splice(start..end, [PathSegment::Between(left_out)]);
    }
    pieces
}

/// Describes a chain of steps by the class of the object before it and its reference to the first step.
pub(super) fn describe(steps: usize, holder: Option<&str>, held: &str) -> String {
    let holder = holder.map(names::simple).unwrap_or_default();
    let dot = if holder.is_empty() || held.starts_with('[') { "" } else { "." };
    format!("… {} x {holder}{dot}{held}", group_digits(steps as u64))
}

/// Describes omitted steps.
pub(super) fn describe_between(steps: usize) -> String {
    format!("… {} objects in between", group_digits(steps as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(keys: &str, most: usize) -> Vec<PathSegment> {
        let key = |place: usize| keys.chars().nth(place).filter(|key| *key != '-');
        shorten(0..keys.len(), most, key)
    }

    #[test]
    fn equal_steps_are_one_line() {
        use PathSegment::{Between, Chain, Step};
        assert_eq!(pieces("", 9), []);
        assert_eq!(pieces("-aab", 9), [Step(0), Step(1), Step(2), Step(3)]);
        // The last step is kept.
        assert_eq!(pieces("-aaa", 9), [Step(0), Step(1), Step(2), Step(3)]);
        assert_eq!(pieces("-aaaa", 9), [Step(0), Chain { first: 1, steps: 3 }, Step(4)]);
        assert_eq!(
            pieces("aaabbbb-c", 9),
            [Chain { first: 0, steps: 3 }, Chain { first: 3, steps: 4 }, Step(7), Step(8)]
        );
        assert_eq!(pieces("---", 9), [Step(0), Step(1), Step(2)]);
        // Omitted lines are counted in steps.
        assert_eq!(
            pieces("-aaaabcd", 4),
            [Step(0), Chain { first: 1, steps: 4 }, Between(1), Step(6), Step(7)]
        );
        assert_eq!(pieces("-bcdaaaae", 2), [Step(0), Between(7), Step(8)]);
        assert_eq!(shorten([0, 1, 7, 8], 9, |_| Some(())), [Step(0), Step(1), Between(5), Step(7), Step(8)]);
    }

    #[test]
    fn a_chain_is_named_by_its_holder() {
        assert_eq!(describe(1400, Some("java.util.HashMap$Node"), "next"), "… 1,400 x HashMap$Node.next");
        assert_eq!(describe(3, Some("java.lang.Object[]"), "[0]"), "… 3 x Object[][0]");
        assert_eq!(describe(3, None, "next"), "… 3 x next");
    }
}
