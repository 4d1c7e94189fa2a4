//! Dates as C's `ctime` writes them: `Sat Nov 21 01:58:24 2026`.

/// Days of the week from the first of January 1970 on.
const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A time in RFC 3339, in UTC, as `ctime` writes it. What is no such time stays as it is; none is the start of 1970.
pub(super) fn ctime(rfc3339: Option<&str>) -> String {
    let text = rfc3339.unwrap_or("1970-01-01T00:00:00Z");
    parse(text).unwrap_or_else(|| text.to_owned())
}

fn parse(text: &str) -> Option<String> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u32>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let time = text.get(11..19)?;
    let name = MONTHS.get(usize::try_from(month.checked_sub(1)?).ok()?)?;
    let weekday = DAYS.get(usize::try_from(days_since_1970(year, month, day)? % 7).ok()?)?;
    Some(format!("{weekday} {name} {day:2} {time} {year}"))
}

/// Days from 1970-01-01 to a date of the Gregorian calendar, not before 1970.
fn days_since_1970(year: u32, month: u32, day: u32) -> Option<u32> {
    let leap_years = |year: u32| year / 4 - year / 100 + year / 400;
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let before_month = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let days = before_month.get(usize::try_from(month.checked_sub(1)?).ok()?)?;
    let years = year.checked_sub(1970)?;
    let leap_days = leap_years(year - 1) - leap_years(1969) + u32::from(is_leap && month > 2);
    Some(years * 365 + leap_days + days + day.checked_sub(1)?)
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
