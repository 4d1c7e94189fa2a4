//! Dates and times as java.time prints them.
//!
//! All functions take the numbers in the fields, and return `None` for numbers that no Java program can have stored.

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, Time, date as civil_date};

/// Range of years: `Year.MIN_VALUE` to `Year.MAX_VALUE`.
const YEARS: std::ops::RangeInclusive<i64> = -999_999_999..=999_999_999;
/// Range from `Instant.MIN` to `Instant.MAX`, in seconds.
const INSTANTS: std::ops::RangeInclusive<i64> = -31_557_014_167_219_200..=31_556_889_864_403_199;
/// Maximum offset from UTC in seconds: 18 hours.
const LAST_OFFSET: i64 = 18 * 3600;
const NANOS: i64 = 1_000_000_000;

/// Start of 1970.
const EPOCH: DateTime = civil_date(1970, 1, 1).at(0, 0, 0, 0);
/// Period of the Gregorian calendar in years: a year beyond jiff's range (-9999 to 9999) is computed as one within.
const CYCLE: i64 = 400;
const SECONDS_OF_CYCLE: i64 = 146_097 * 86_400;

/// Returns a day in one of the years 2000 to 2399; `None` if the year has no such day.
fn day_of_cycle(year: i64, month: i64, day: i64) -> Option<Date> {
    let year = i16::try_from(2000 + year.rem_euclid(CYCLE)).ok()?;
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

/// Formats a year: at least four digits, with a sign if it is negative or, if `plus` is set, has more of them.
fn year(year: i64, plus: bool) -> String {
    let sign = match year {
        ..0 => "-",
        10_000.. if plus => "+",
        _ => "",
    };
    format!("{sign}{:04}", year.unsigned_abs())
}

/// Formats a `LocalDate`: `2024-02-29`.
pub(super) fn date(of_year: i64, month: i64, day: i64) -> Option<String> {
    day_of_cycle(of_year, month, day).filter(|_| YEARS.contains(&of_year))?;
    Some(format!("{}-{month:02}-{day:02}", year(of_year, true)))
}

/// Formats a `YearMonth`: `2024-02`.
pub(super) fn year_month(of_year: i64, month: i64) -> Option<String> {
    let exists = YEARS.contains(&of_year) && (1..=12).contains(&month);
    exists.then(|| format!("{}-{month:02}", year(of_year, false)))
}

/// Formats a `MonthDay`: `--02-29`.
pub(super) fn month_day(month: i64, day: i64) -> Option<String> {
    day_of_cycle(2000, month, day).map(|_| format!("--{month:02}-{day:02}"))
}

/// Formats a `Year`: `2024`.
pub(super) fn only_year(year: i64) -> Option<String> {
    YEARS.contains(&year).then(|| year.to_string())
}

/// Returns the number of digits after the decimal point: a multiple of three.
fn digits(nanos: i32) -> usize {
    match nanos {
        0 => 0,
        nanos if nanos % 1_000_000 == 0 => 3,
        nanos if nanos % 1_000 == 0 => 6,
        _ => 9,
    }
}

/// Formats a `LocalTime`: `12:30`, `12:30:59.001`.
pub(super) fn time(hour: i64, minute: i64, second: i64, nanos: i64) -> Option<String> {
    let small = |number: i64| i8::try_from(number).ok();
    let nanos = i32::try_from(nanos).ok()?;
    let time = Time::new(small(hour)?, small(minute)?, small(second)?, nanos).ok()?;
    Some(match (second, nanos) {
        (0, 0) => format!("{hour:02}:{minute:02}"),
        _ => format!("{time:.*}", digits(nanos)),
    })
}

/// Formats an `Instant`: `2024-02-29T12:30:00Z`.
pub(super) fn instant(seconds: i64, nanos: i64) -> Option<String> {
    if !INSTANTS.contains(&seconds) || !(0..NANOS).contains(&nanos) {
        return None;
    }
    let nanos = i32::try_from(nanos).ok()?;
    let in_cycle = SignedDuration::new(seconds.rem_euclid(SECONDS_OF_CYCLE), nanos);
    let time = EPOCH.checked_add(in_cycle).ok()?;
    let of_year = i64::from(time.year()) + CYCLE * seconds.div_euclid(SECONDS_OF_CYCLE);
    let (month, day, time) = (time.month(), time.day(), time.time());
    Some(format!("{}-{month:02}-{day:02}T{time:.*}Z", year(of_year, true), digits(nanos)))
}

/// Formats milliseconds since 1970 like an `Instant`.
pub(super) fn instant_of_millis(millis: i64) -> Option<String> {
    instant(millis.div_euclid(1000), millis.rem_euclid(1000) * 1_000_000)
}

/// Formats a `ZoneOffset`: `Z`, `+02:00`, `-00:30:15`.
pub(super) fn offset(seconds: i64) -> Option<String> {
    if seconds == 0 {
        return Some("Z".to_owned());
    }
    (-LAST_OFFSET..=LAST_OFFSET).contains(&seconds).then_some(())?;
    let sign = if seconds < 0 { '-' } else { '+' };
    let abs = seconds.abs();
    let text = format!("{sign}{:02}:{:02}", abs / 3600, abs / 60 % 60);
    Some(if abs % 60 == 0 { text } else { format!("{text}:{:02}", abs % 60) })
}

/// Formats a `Duration`: `PT8H6M12.345S`.
pub(super) fn duration(seconds: i64, nanos: i64) -> Option<String> {
    (0..NANOS).contains(&nanos).then_some(())?;
    if seconds == 0 && nanos == 0 {
        return Some("PT0S".to_owned());
    }
    // The fields are rounded down, the text is truncated toward zero.
    let (whole, part) =
        if seconds < 0 && nanos > 0 { (seconds + 1, NANOS - nanos) } else { (seconds, nanos) };
    let is_negative = seconds < 0;
    let (hours, minutes, rest) = (whole / 3600, whole % 3600 / 60, whole % 60);
    let mut text = String::from("PT");
    if hours != 0 {
        text.push_str(&format!("{hours}H"));
    }
    if minutes != 0 {
        text.push_str(&format!("{minutes}M"));
    }
    if rest != 0 || part != 0 {
        if rest == 0 && is_negative {
            text.push('-');
        }
        text.push_str(&rest.to_string());
        if part != 0 {
            let digits = format!("{part:09}");
            text.push('.');
            text.push_str(digits.trim_end_matches('0'));
        }
        text.push('S');
    }
    Some(text)
}

/// Formats a `Period`: `P1Y2M3D`.
pub(super) fn period(years: i64, months: i64, days: i64) -> String {
    let mut text = String::from("P");
    for (number, unit) in [(years, 'Y'), (months, 'M'), (days, 'D')] {
        if number != 0 {
            text.push_str(&format!("{number}{unit}"));
        }
    }
    if text.len() == 1 { "P0D".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Expected texts are the output of `toString()` in OpenJDK 17.
    #[test]
    fn dates() {
        let is = |found: Option<String>, expected: &str| assert_eq!(found.as_deref(), Some(expected));
        is(date(2024, 2, 29), "2024-02-29");
        is(date(-1, 1, 1), "-0001-01-01");
        is(date(0, 12, 31), "0000-12-31");
        is(date(10_000, 1, 1), "+10000-01-01");
        is(date(-999_999_999, 1, 1), "-999999999-01-01");
        is(date(999_999_999, 12, 31), "+999999999-12-31");
        for (year, month, day) in
            [(2024, 77, 1), (2023, 2, 29), (2024, 0, 1), (2024, 1, 0), (i64::MIN + 1, 1, 1)]
        {
            assert_eq!(date(year, month, day), None);
        }
        is(year_month(12_345, 3), "12345-03");
        is(month_day(2, 29), "--02-29");
        is(only_year(-5), "-5");
        assert_eq!([date(i64::MIN, 1, 1), year_month(i64::MIN, 1), only_year(i64::MIN)], [const { None }; 3]);
    }

    #[test]
    fn times() {
        let is = |found: Option<String>, expected: &str| assert_eq!(found.as_deref(), Some(expected));
        is(time(0, 0, 0, 0), "00:00");
        is(time(23, 59, 59, 999_999_999), "23:59:59.999999999");
        is(time(1, 2, 3, 0), "01:02:03");
        is(time(1, 2, 0, 1_000), "01:02:00.000001");
        is(time(1, 2, 0, 120_000_000), "01:02:00.120");
        assert_eq!(
            [time(24, 0, 0, 0), time(0, 0, 60, 0), time(0, 0, 0, NANOS), time(-1, 0, 0, 0)],
            [const { None }; 4]
        );
        is(offset(0), "Z");
        is(offset(7200), "+02:00");
        is(offset(-1815), "-00:30:15");
        assert_eq!(offset(64_801), None);
        assert_eq!(offset(i64::MIN), None);
    }

    #[test]
    fn instants() {
        let is = |found: Option<String>, expected: &str| assert_eq!(found.as_deref(), Some(expected));
        is(instant(0, 0), "1970-01-01T00:00:00Z");
        is(instant(-1, 999_000_000), "1969-12-31T23:59:59.999Z");
        is(instant(951_782_400, 0), "2000-02-29T00:00:00Z");
        is(instant(*INSTANTS.start(), 0), "-1000000000-01-01T00:00:00Z");
        is(instant(*INSTANTS.end(), 999_999_999), "+1000000000-12-31T23:59:59.999999999Z");
        is(instant_of_millis(-1), "1969-12-31T23:59:59.999Z");
        is(instant_of_millis(1_700_000_000_123), "2023-11-14T22:13:20.123Z");
        assert_eq!([instant(i64::MAX, 0), instant(i64::MIN, 0), instant(0, -1)], [const { None }; 3]);
    }

    #[test]
    fn amounts() {
        let is = |found: Option<String>, expected: &str| assert_eq!(found.as_deref(), Some(expected));
        is(duration(0, 0), "PT0S");
        is(duration(29_172, 345_000_000), "PT8H6M12.345S");
        is(duration(-1, 999_000_000), "PT-0.001S");
        is(duration(-2, 500_000_000), "PT-1.5S");
        is(duration(3600, 0), "PT1H");
        is(duration(-3661, 0), "PT-1H-1M-1S");
        is(duration(i64::MAX, 999_999_999), "PT2562047788015215H30M7.999999999S");
        is(duration(i64::MIN, 0), "PT-2562047788015215H-30M-8S");
        assert_eq!(period(0, 0, 0), "P0D");
        assert_eq!(period(1, -2, 30), "P1Y-2M30D");
    }
}
