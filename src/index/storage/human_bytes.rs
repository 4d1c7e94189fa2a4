//! Sizes and numbers in human-readable form, for all messages and tables.

use std::fmt;

/// A number of bytes, shown as `1.5 GiB`: binary units, one decimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HumanBytes(pub u64);

impl fmt::Display for HumanBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let Self(bytes) = *self;
        if bytes < 1024 {
            return write!(f, "{bytes} B");
        }
        #[allow(clippy::cast_precision_loss)]
        let mut scaled = bytes as f64 / 1024.0;
        let mut unit = 0;
        while scaled >= 1023.95 && unit + 1 < UNITS.len() {
            scaled /= 1024.0;
            unit += 1;
        }
        write!(f, "{scaled:.1} {}", UNITS.get(unit).copied().unwrap_or("EiB"))
    }
}

/// Returns the form of a word or clause that agrees with a count: `one` for 1, otherwise `many`.
pub fn plural<'a>(count: u64, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
}

/// Returns a number with thousands separators: `1,234,567`.
pub fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
