//! Parsing durations in options, and formatting durations for people.

use std::time::Duration;

/// Maximum time of a question.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct QuestionTime {
    /// Cancel a query that runs longer than this
    #[arg(
        long = "question-time",
        id = "question_time",
        value_name = "TIME",
        value_parser = duration,
        default_value = "10m",
        help_heading = "Limits"
    )]
    pub(crate) time: Duration,
}

/// Parses a duration: `90s`, `30m`, `1h 30m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a valid duration; valid examples are 90s, 30m and 2h");
    let duration: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(duration).ok().filter(|duration| !duration.is_zero()).ok_or_else(wrong)
}

/// Formats a short time: `1.4 s`, and `15 ms` below a tenth of a second, rounded up: it may be an upper bound.
pub(crate) fn seconds(duration: Duration) -> String {
    if duration < Duration::from_millis(100) {
        return format!("{} ms", duration.as_nanos().div_ceil(1_000_000));
    }
    format!("{:.1} s", duration.as_secs_f64())
}

/// Formats a long time by its two largest units: `3 d 4 h`.
pub(crate) fn long_time(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let first = units.iter().position(|(unit, _)| seconds >= *unit).unwrap_or(units.len().saturating_sub(1));
    let mut rest = seconds;
    let parts = units.iter().skip(first).take(2).map(|(unit, name)| {
        let count = rest / unit;
        rest %= unit;
        format!("{count} {name}")
    });
    parts.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_times_are_never_nothing() {
        for (microseconds, text) in
            [(0, "0 ms"), (1, "1 ms"), (14_001, "15 ms"), (100_000, "0.1 s"), (1_440_000, "1.4 s")]
        {
            assert_eq!(seconds(Duration::from_micros(microseconds)), text);
        }
    }

    #[test]
    fn times_have_two_units() {
        for (seconds, text) in
            [(0, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (3_600, "1 h 0 min"), (200_000, "2 d 7 h")]
        {
            assert_eq!(long_time(Duration::from_secs(seconds)), text);
        }
    }
}
