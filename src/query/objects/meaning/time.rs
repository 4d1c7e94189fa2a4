//! Dates and times as java.time prints them.
//!
//! Functions of the numbers in the fields. Numbers that no Java program can have made give `None`.

const DAY: i64 = 86_400;
/// `Year.MAX_VALUE`
const LAST_YEAR: i64 = 999_999_999;
/// `Instant.MIN` and `Instant.MAX`, in seconds.
const INSTANTS: std::ops::RangeInclusive<i64> = -31_557_014_167_219_200..=31_556_889_864_403_199;
/// Seconds of the offset farthest from UTC: 18 hours.
const LAST_OFFSET: i64 = 18 * 3600;
const NANOS: i64 = 1_000_000_000;

/// A year of a date: at least four digits, with a sign if it is negative or, where `plus` says so, has more of them.
fn year(year: i64, plus: bool) -> Option<String> {
    if year.abs() > LAST_YEAR {
        return None;
    }
    let sign = match year {
        ..0 => "-",
        10_000.. if plus => "+",
        _ => "",
    };
    Some(format!("{sign}{:04}", year.abs()))
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// `LocalDate`: `2024-02-29`.
pub(super) fn date(of_year: i64, month: i64, day: i64) -> Option<String> {
    if !(1..=12).contains(&month) || !(1..=days_of_month(of_year, month)).contains(&day) {
        return None;
    }
    Some(format!("{}-{month:02}-{day:02}", year(of_year, true)?))
}

/// `YearMonth`: `2024-02`.
pub(super) fn year_month(of_year: i64, month: i64) -> Option<String> {
    (1..=12).contains(&month).then_some(())?;
    Some(format!("{}-{month:02}", year(of_year, false)?))
}

/// `MonthDay`: `--02-29`.
pub(super) fn month_day(month: i64, day: i64) -> Option<String> {
    let exists = (1..=12).contains(&month) && (1..=days_of_month(4, month)).contains(&day);
    exists.then(|| format!("--{month:02}-{day:02}"))
}

/// `Year`: `2024`.
pub(super) fn only_year(year: i64) -> Option<String> {
    (year.abs() <= LAST_YEAR).then(|| year.to_string())
}

/// Digits behind the point, in threes.
fn fraction(nanos: i64) -> String {
    match nanos {
        0 => String::new(),
        nanos if nanos % 1_000_000 == 0 => format!(".{:03}", nanos / 1_000_000),
        nanos if nanos % 1_000 == 0 => format!(".{:06}", nanos / 1_000),
        nanos => format!(".{nanos:09}"),
    }
}

/// `LocalTime`: `12:30`, `12:30:59.001`.
pub(super) fn time(hour: i64, minute: i64, second: i64, nanos: i64) -> Option<String> {
    let sixty = 0..60;
    let exists = (0..24).contains(&hour)
        && sixty.contains(&minute)
        && sixty.contains(&second)
        && (0..NANOS).contains(&nanos);
    exists.then_some(())?;
    if second == 0 && nanos == 0 {
        return Some(format!("{hour:02}:{minute:02}"));
    }
    Some(format!("{hour:02}:{minute:02}:{second:02}{}", fraction(nanos)))
}

/// `Instant`: `2024-02-29T12:30:00Z`.
pub(super) fn instant(seconds: i64, nanos: i64) -> Option<String> {
    if !INSTANTS.contains(&seconds) || !(0..NANOS).contains(&nanos) {
        return None;
    }
    let (of_year, month, day) = civil(seconds.div_euclid(DAY));
    let second = seconds.rem_euclid(DAY);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let sign = match of_year {
        ..0 => "-",
        10_000.. => "+",
        _ => "",
    };
    let years = of_year.abs();
    Some(format!(
        "{sign}{years:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{}Z",
        fraction(nanos)
    ))
}

/// An instant in milliseconds since 1970, as `Instant` prints it.
pub(super) fn instant_of_millis(millis: i64) -> Option<String> {
    instant(millis.div_euclid(1000), millis.rem_euclid(1000) * 1_000_000)
}

/// Year, month and day of a number of days since 1970: Gregorian, also before it was introduced.
fn civil(days: i64) -> (i64, i64, i64) {
    // Years begin in March, so that the day that leap years add is their last; 400 years have 146,097 days.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// `ZoneOffset`: `Z`, `+02:00`, `-00:30:15`.
pub(super) fn offset(seconds: i64) -> Option<String> {
    if seconds == 0 {
        return Some("Z".to_owned());
    }
    (seconds.abs() <= LAST_OFFSET).then_some(())?;
    let sign = if seconds < 0 { '-' } else { '+' };
    let abs = seconds.abs();
    let text = format!("{sign}{:02}:{:02}", abs / 3600, abs / 60 % 60);
    Some(if abs % 60 == 0 { text } else { format!("{text}:{:02}", abs % 60) })
}

/// `Duration`: `PT8H6M12.345S`.
pub(super) fn duration(seconds: i64, nanos: i64) -> Option<String> {
    (0..NANOS).contains(&nanos).then_some(())?;
    if seconds == 0 && nanos == 0 {
        return Some("PT0S".to_owned());
    }
    // The fields floor, the text truncates.
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

/// `Period`: `P1Y2M3D`.
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

    // Expected texts are what `toString()` of OpenJDK 17 gives.
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
