//! Dates as the agent writes them.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Converts a date in C's `ctime` format (`Sat Nov 21 01:58:24 2026`) to RFC 3339, but without a zone,
/// which the text does not contain. Returns `None` for any other text. The day of the week is not
/// checked, and a leap second (`:60`) is read as `:59`.
pub fn rfc3339(ctime: &str) -> Option<String> {
    Some(date_time(ctime)?.to_string())
}

/// Converts a date in C's `ctime` format to milliseconds since 1970, as if it were in UTC. Returns `None` for any other text.
pub fn millis(ctime: &str) -> Option<i64> {
    Some(date_time(ctime)?.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond())
}

fn date_time(ctime: &str) -> Option<DateTime> {
    let (_weekday, date) = ctime.split_once(' ')?;
    DateTime::strptime("%b %d %H:%M:%S %Y", date.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(rfc3339("Sat Nov 21 01:58:24 2026").as_deref(), Some("2026-11-21T01:58:24"));
        assert_eq!(rfc3339("Thu Sep  7 22:19:32 2017").as_deref(), Some("2017-09-07T22:19:32"));
        for other in [
            "",
            "yesterday",
            "Sat Nov 21 01:58:24 CET 2026",
            "Sat Nov 0 01:58:24 2026",
            "Sat Nov 21 24:58:24 2026",
            "Sat Nov 21 01:58 2026",
            "Sat Nov 21 01:58:24:1 2026",
            "Sat Nov +1 01:58:24 2026",
            "Sa. Nov 21 99999999999999:0:0 2026",
        ] {
            assert_eq!(rfc3339(other), None, "{other}");
        }
    }
}
