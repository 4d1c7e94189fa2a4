//! Numbers in the texts of kernels and JVMs.

/// Maximum number of bytes that is believed: the size of an address space of 57 bits. Sums of fewer than a hundred such
/// numbers cannot overflow, and all others saturate.
const MAX_BYTES: u64 = 1 << 57;

/// Parses a number of bytes; `None` if it is not one, or more than an address space has.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    text.parse().ok().filter(|bytes| *bytes <= MAX_BYTES)
}

/// Parses a number of bytes with a unit, as HotSpot prints it: `12`, `12KB`, `12K`, `12M`, `12MB`, `1GB`.
pub(crate) fn scaled_bytes(text: &str) -> Option<u64> {
    let text = text.trim_end_matches(['B', 'b']);
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let shift = match text.get(digits.len()..)? {
        "" => 0,
        "K" | "k" => 10,
        "M" | "m" => 20,
        "G" | "g" => 30,
        "T" | "t" => 40,
        _ => return None,
    };
    let number: u64 = digits.parse().ok()?;
    number.checked_mul(1 << shift).filter(|bytes| *bytes <= MAX_BYTES)
}

/// Parses a number in the unit of `/proc` and cgroup files, KiB: `12 kB`.
pub(crate) fn kib(text: &str) -> Option<u64> {
    bytes(text.split_whitespace().next()?)?.checked_mul(1 << 10).filter(|bytes| *bytes <= MAX_BYTES)
}

/// Parses a hexadecimal address, with or without `0x`.
pub(crate) fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_units_of_hotspot() {
        for (text, expected) in [
            ("12", Some(12)),
            ("12KB", Some(12 << 10)),
            ("12K", Some(12 << 10)),
            ("3MB", Some(3 << 20)),
            ("2G", Some(2 << 30)),
            ("1B", Some(1)),
            ("", None),
            ("KB", None),
            ("-1", None),
            ("1XB", None),
            ("18446744073709551615", None),
            ("99999999999999999999", None),
            ("18446744073709551615KB", None),
        ] {
            assert_eq!(scaled_bytes(text), expected, "{text}");
        }
        assert_eq!((kib("12 kB"), kib(""), kib("x kB")), (Some(12 << 10), None, None));
        assert_eq!((address("0xff"), address("7f"), address("0xg")), (Some(255), Some(127), None));
    }
}
