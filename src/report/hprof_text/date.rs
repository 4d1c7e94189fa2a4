//! Dates of a dump in the format of C's `ctime`: `Sat Nov 21 01:58:24 2026`.

use hprof_format::date;
use jiff::civil::{DateTime, datetime};

/// Formats an RFC 3339 time, in UTC, like `ctime`. Any other text is unchanged; `None` becomes the start of 1970.
pub(super) fn ctime(rfc3339: Option<&str>) -> String {
    let text = rfc3339.unwrap_or("1970-01-01T00:00:00Z");
    let since = text.trim_end_matches('Z').parse::<DateTime>().ok();
    let since = since.map(|date| date.duration_since(datetime(1970, 1, 1, 0, 0, 0, 0)).as_secs());
    match since.and_then(|seconds| u64::try_from(seconds).ok()) {
        Some(seconds) => date::ctime(seconds),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_read_as_ctime_writes_them() {
        for (rfc3339, expected) in [
            ("2026-11-21T01:58:24.123Z", "Sat Nov 21 01:58:24 2026"),
            ("2017-09-07T22:16:49Z", "Thu Sep  7 22:16:49 2017"),
            ("2004-02-06T13:13:42", "Fri Feb  6 13:13:42 2004"),
            ("2024-02-29T00:00:00Z", "Thu Feb 29 00:00:00 2024"),
            ("2000-03-01T00:00:00Z", "Wed Mar  1 00:00:00 2000"),
            ("1970-01-01T00:00:00Z", "Thu Jan  1 00:00:00 1970"),
            ("9999-12-31T23:59:59Z", "Fri Dec 31 23:59:59 9999"),
            ("some day", "some day"),
            ("1969-12-31T00:00:00Z", "1969-12-31T00:00:00Z"),
        ] {
            assert_eq!(ctime(Some(rfc3339)), expected);
        }
        assert_eq!(ctime(None), "Thu Jan  1 00:00:00 1970");
    }
}
