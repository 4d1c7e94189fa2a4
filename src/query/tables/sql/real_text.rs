//! Floating-point numbers as SQLite writes them, for functions that take a number as a text.

/// Number of digits that distinguish all numbers: the maximum that SQLite prints.
const DIGITS: usize = 17;
/// Number of digits up to which SQLite prefers the shortest number that reads back the same.
const FEW: usize = 13;
/// Number of digits that are tried if the digits after [`FEW`] are 9.
const FEW_UP: usize = 14;

/// Formats a number as SQLite does, always with a digit after the point: `1.0`, `1.0e+300`, `0.1`, `0.33333333333333332`.
/// `None` for NaN, which is null in SQLite.
pub(super) fn format_real(value: f64) -> Option<String> {
    if value.is_nan() {
        return None;
    }
    if value.is_infinite() {
        return Some(if value > 0.0 { "Inf" } else { "-Inf" }.to_owned());
    }
    if value == 0.0 {
        // SQLite has no -0.0.
        return Some("0.0".to_owned());
    }
    let (short, long) = (digits(&format!("{value:e}"))?, digits(&format!("{value:.DIGITS$e}"))?);
    // SQLite searches for a shorter number only if the digits suggest that there is one.
    let is = |from, to, wanted| long.0.get(from..to) == Some(wanted);
    let is_few = match short.0.len() {
        0..=FEW => is(FEW, FEW + 3, "000") || is(FEW_UP, FEW_UP + 2, "99"),
        FEW_UP => is(FEW_UP, FEW_UP + 2, "99"),
        _ => false,
    };
    let (mut digits, exponent) = if is_few { short } else { rounded(&long)? };
    digits.truncate(digits.trim_end_matches('0').len());
    let sign = if value < 0.0 { "-" } else { "" };
    let whole = usize::try_from(exponent).ok().filter(|exponent| *exponent < DIGITS);
    let text = match whole {
        Some(exponent) => {
            let (before, behind) = digits.split_at_checked(exponent + 1).unwrap_or((&digits, ""));
            format!("{sign}{before:0<width$}.{}", or_zero(behind), width = exponent + 1)
        }
        None if (-4..0).contains(&exponent) => {
            let zeros = usize::try_from(-1 - exponent).unwrap_or(0);
            format!("{sign}0.{:0<zeros$}{digits}", "")
        }
        None => {
            let (first, behind) = digits.split_at_checked(1)?;
            let direction = if exponent < 0 { '-' } else { '+' };
            format!("{sign}{first}.{}e{direction}{:02}", or_zero(behind), exponent.unsigned_abs())
        }
    };
    Some(text)
}

/// Rounds to one digit fewer: SQLite rounds to 18 digits (rarely to 19), then these to 17.
fn rounded((digits, exponent): &(String, i32)) -> Option<(String, i32)> {
    let number = digits.parse::<u64>().ok()?.saturating_add(5) / 10;
    let text = number.to_string();
    let more = i32::from(text.len() > DIGITS);
    Some((text, exponent.saturating_add(more)))
}

fn or_zero(digits: &str) -> &str {
    if digits.is_empty() { "0" } else { digits }
}

/// Splits a number in scientific notation, such as `-1.25e-7`, into digits and exponent.
fn digits(text: &str) -> Option<(String, i32)> {
    let (digits, exponent) = text.split_once('e')?;
    Some((digits.chars().filter(char::is_ascii_digit).collect(), exponent.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_in_sqlite() {
        let cases = [
            (1.0, "1.0"),
            (-2.5, "-2.5"),
            (0.0, "0.0"),
            (-0.0, "0.0"),
            (0.1, "0.1"),
            (49.47, "49.47"),
            (0.0001, "0.0001"),
            (0.00001, "1.0e-05"),
            (1e14, "100000000000000.0"),
            (1e16, "10000000000000000.0"),
            (1e17, "1.0e+17"),
            (1e300, "1.0e+300"),
            (5e-324, "4.9406564584124654e-324"),
            (-1.25e-300, "-1.25e-300"),
            (1.0 / 3.0, "0.33333333333333332"),
            (123_456_789.25, "123456789.25"),
            (f64::INFINITY, "Inf"),
            (f64::NEG_INFINITY, "-Inf"),
        ];
        for (value, expected) in cases {
            assert_eq!(format_real(value).as_deref(), Some(expected), "{value:e}");
        }
        assert_eq!(format_real(f64::NAN), None);
    }
}
