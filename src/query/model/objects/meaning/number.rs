//! Numbers as Java prints them.

use std::fmt::Write;

/// Maximum number of words of a BigInteger shown in decimal. The time grows with the square: this many take a
/// millisecond.
const MAX_WORDS: usize = 1024;

/// Formats a double like `Double.toString` since JDK 19: the shortest digits that distinguish it from others.
pub fn double(value: f64) -> String {
    // With at least two digits: the nearest of those.
    let shortest = format!("{value:e}");
    let two = format!("{value:.1e}");
    let is_same = two.parse::<f64>().is_ok_and(|two| two.to_bits() == value.to_bits());
    java_form(&shortest, &two, is_same)
}

/// Formats a float like `Float.toString` since JDK 19.
pub fn float(value: f32) -> String {
    let shortest = format!("{value:e}");
    let two = format!("{value:.1e}");
    let is_same = two.parse::<f32>().is_ok_and(|two| two.to_bits() == value.to_bits());
    java_form(&shortest, &two, is_same)
}

/// Converts `d.ddde5` to `d.dddE5`, or removes the exponent from 0.001 up to 10,000,000 (exclusive).
fn java_form(shortest: &str, two: &str, two_is_same: bool) -> String {
    match shortest {
        "NaN" => return "NaN".to_owned(),
        "inf" => return "Infinity".to_owned(),
        "-inf" => return "-Infinity".to_owned(),
        _ => {}
    }
    let text = if two_is_same && !shortest.contains('.') { two } else { shortest };
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let is_zero = whole == "0";
    let plain = (-3..7).contains(&exponent) || is_zero;
    if !plain {
        return format!("{sign}{whole}.{part}E{exponent}");
    }
    let digits = format!("{whole}{}", part.trim_end_matches('0'));
    let Ok(shift) = usize::try_from(exponent) else {
        let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or(0));
        return format!("{sign}0.{zeros}{digits}");
    };
    let digits = format!("{digits:0<width$}", width = shift + 1);
    let (whole, part) = digits.split_at_checked(shift + 1).unwrap_or((&digits, ""));
    format!("{sign}{whole}.{}", if part.is_empty() { "0" } else { part })
}

/// Display of a BigInteger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Digits {
    /// All digits in decimal.
    Decimal(String),
    /// Hexadecimal: there are too many digits.
    Hexadecimal,
}

/// Returns the decimal digits of a magnitude with the most significant word first, if there are at most `most`.
pub(super) fn digits(words: &[u8], most: usize) -> Digits {
    let mut words: Vec<u32> = {
        let words = words.chunks_exact(4).filter_map(|word| word.first_chunk());
        let mut words = words.map(|word| u32::from_be_bytes(*word)).skip_while(|word| *word == 0);
        // Takes one more than the limit.
        words.by_ref().take(MAX_WORDS + 1).collect()
    };
    // A word has 9.6 digits.
    if words.len() > MAX_WORDS || words.len().saturating_mul(10) > most.saturating_add(10) {
        return Digits::Hexadecimal;
    }
    const BILLION: u64 = 1_000_000_000;
    let mut parts = Vec::new();
    let mut start = 0;
    while let Some(rest) = words.get_mut(start..).filter(|rest| !rest.is_empty()) {
        let mut remainder = 0u64;
        for word in rest.iter_mut() {
            let here = (remainder << 32) | u64::from(*word);
            *word = u32::try_from(here / BILLION).unwrap_or(u32::MAX);
            remainder = here % BILLION;
        }
        start += rest.iter().take_while(|word| **word == 0).count();
        parts.push(remainder);
    }
    let mut text = parts.pop().unwrap_or(0).to_string();
    for part in parts.iter().rev() {
        // Writing to a String cannot fail.
        let _ = write!(text, "{part:09}");
    }
    if text.len() > most { Digits::Hexadecimal } else { Digits::Decimal(text) }
}

/// Returns the hexadecimal digits of a magnitude, computed lazily, without leading zeros.
pub(super) fn hexadecimal(words: &[u8]) -> impl Iterator<Item = char> + '_ {
    let nibbles = words.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    nibbles.skip_while(|nibble| *nibble == 0).map(|nibble| char::from_digit(nibble.into(), 16).unwrap_or('0'))
}

/// Formats like `BigDecimal.toString`: digits of the unscaled value, its sign, and the scale.
pub(super) fn decimal(is_negative: bool, digits: &str, scale: i64) -> String {
    let sign = if is_negative { "-" } else { "" };
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    let len = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    let adjusted = (len - 1).saturating_sub(scale);
    if scale >= 0 && adjusted >= -6 {
        let point = len - scale;
        let Ok(point) = usize::try_from(point) else {
            let zeros = "0".repeat(usize::try_from(-point).unwrap_or(0));
            return format!("{sign}0.{zeros}{digits}");
        };
        let (whole, part) = digits.split_at_checked(point).unwrap_or((digits, ""));
        return format!("{sign}{}.{part}", if whole.is_empty() { "0" } else { whole });
    }
    let (first, rest) = digits.split_at_checked(1).unwrap_or((digits, ""));
    let point = if rest.is_empty() { "" } else { "." };
    let exponent = if adjusted == 0 { String::new() } else { format!("E{adjusted:+}") };
    format!("{sign}{first}{point}{rest}{exponent}")
}

#[cfg(test)]
mod tests {
    use super::*;

    // Expected texts are the output of `toString` in OpenJDK 25.
    #[test]
    fn floats() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (f64::MIN_POSITIVE, "2.2250738585072014E-308"),
            (5e-324, "4.9E-324"),
            (f64::MAX, "1.7976931348623157E308"),
            (std::f64::consts::PI, "3.141592653589793"),
            (0.001, "0.001"),
            (0.000_999_9, "9.999E-4"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (123_456.789, "123456.789"),
            (-1234.5, "-1234.5"),
            (2e23, "2.0E23"),
            (0.05, "0.05"),
            (100.0, "100.0"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::INFINITY, "Infinity"),
        ] {
            assert_eq!(double(value), text);
        }
        for (value, text) in [
            (1.1f32, "1.1"),
            (1.4e-45, "1.4E-45"),
            (3.402_823_5e38, "3.4028235E38"),
            (1e10, "1.0E10"),
            (0.1, "0.1"),
            (16_777_216.0, "1.6777216E7"),
        ] {
            assert_eq!(float(value), text);
        }
    }

    #[test]
    fn big_integers() {
        let of = |words: &[u32], most| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
            digits(&bytes, most)
        };
        let decimal = |text: &str| Digits::Decimal(text.to_owned());
        assert_eq!(of(&[], 99), decimal("0"));
        assert_eq!(of(&[0, 0], 99), decimal("0"));
        assert_eq!(of(&[1_000_000_000], 99), decimal("1000000000"));
        assert_eq!(of(&[1, 0], 99), decimal("4294967296"));
        // 2^128 - 1
        assert_eq!(of(&[u32::MAX; 4], 99), decimal("340282366920938463463374607431768211455"));
        assert_eq!(of(&[u32::MAX; 4], 5), Digits::Hexadecimal);
        assert_eq!(of(&[1; MAX_WORDS + 1], 1 << 20), Digits::Hexadecimal);
        let bytes = [0, 0, 0, 0x0a, 0xbc];
        assert_eq!(hexadecimal(&bytes).collect::<String>(), "abc");
    }

    #[test]
    fn big_decimals() {
        for (unscaled, scale, text) in [
            ("123", 0, "123"),
            ("123", -1, "1.23E+3"),
            ("123", 2, "1.23"),
            ("123", 5, "0.00123"),
            ("123", 10, "1.23E-8"),
            ("-123", 12, "-1.23E-10"),
            ("0", 2, "0.00"),
            ("0", -2, "0E+2"),
            ("0", 7, "0E-7"),
            ("0", 6, "0.000000"),
            ("1", -2_147_483_648, "1E+2147483648"),
            ("1", 2_147_483_647, "1E-2147483647"),
        ] {
            let (is_negative, digits) =
                unscaled.strip_prefix('-').map_or((false, unscaled), |rest| (true, rest));
            assert_eq!(decimal(is_negative, digits, scale), text);
        }
    }
}
