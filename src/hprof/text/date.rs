//! Dates as the agent writes them.

/// A date as C's `ctime` writes it (`Sat Nov 21 01:58:24 2026`), in the form of RFC 3339, but without a zone: the text
/// names none. `None` if it is something else.
pub fn rfc3339(ctime: &str) -> Option<String> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = ctime.split_ascii_whitespace();
    let mut word = || words.next();
    let (_weekday, month, day, time, year) = (word()?, word()?, word()?, word()?, word()?);
    if words.next().is_some() {
        return None;
    }
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let number = |text: &str, most: u32| {
        let number: u32 = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())??;
        (number <= most).then_some(number)
    };
    let day = number(day, 31).filter(|day| *day > 0)?;
    let year = number(year, 9999)?;
    let mut parts = time.split(':').map(|part| number(part, 60));
    let mut part = || parts.next()?;
    let (hour, minute, second) = (part()?, part()?, part()?);
    if parts.next().is_some() || hour > 23 || minute > 59 {
        return None;
    }
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"))
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
