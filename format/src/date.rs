//! Dates as C's `ctime` writes them: `Sat Nov 21 01:58:24 2026`.

const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAY: u64 = 24 * 60 * 60;

/// Formats seconds since 1970 as a date in UTC.
///
/// The civil date is computed from eras of 400 years that start in March (Howard Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms", `civil_from_days`).
pub fn ctime(seconds: u64) -> String {
    let (days, of_day) = (seconds / DAY, seconds % DAY);
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = (from_march + 2) % 12;
    let year = era * 400 + year + u64::from(month < 2);
    let name = |names: &[&'static str], at: u64| {
        usize::try_from(at).ok().and_then(|at| names.get(at).copied()).unwrap_or_default()
    };
    format!(
        "{} {} {day:2} {:02}:{:02}:{:02} {year}",
        name(&WEEKDAYS, days % 7),
        name(&MONTHS, month),
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected are the results of `date -u -d @SECONDS +"%a %b %e %H:%M:%S %Y"`.
    #[test]
    fn dates_are_those_of_date() {
        for (seconds, expected) in [
            (0, "Thu Jan  1 00:00:00 1970"),
            (1_504_822_609, "Thu Sep  7 22:16:49 2017"),
            (951_782_400, "Tue Feb 29 00:00:00 2000"),
            (951_868_800, "Wed Mar  1 00:00:00 2000"),
            (1_709_164_800, "Thu Feb 29 00:00:00 2024"),
            (1_795_226_304, "Sat Nov 21 01:58:24 2026"),
            (4_107_542_399, "Sun Feb 28 23:59:59 2100"),
            (253_402_300_799, "Fri Dec 31 23:59:59 9999"),
        ] {
            assert_eq!(ctime(seconds), expected);
        }
    }
}
