//! Numbers and sizes formatted for people.

use hprof_index::storage::human_bytes::HumanBytes;
pub use hprof_index::storage::human_bytes::group_digits;
pub use hprof_query::share::hundredths;

/// Formats a count with its noun: "1 object", "2,000 objects".
pub fn format_count(count: u64, what: &str) -> String {
    format!("{} {what}{}", group_digits(count), if count == 1 { "" } else { "s" })
}

/// Formats a difference with its sign: `+2,000`, `-3`, `0`.
pub fn format_signed(difference: i64) -> String {
    let sign = match difference {
        0 => "",
        1.. => "+",
        _ => "-",
    };
    format!("{sign}{}", group_digits(difference.unsigned_abs()))
}

/// Formats a difference of sizes with its sign: `+1.5 GiB`.
pub fn signed_bytes(difference: i64) -> String {
    let sign = if difference < 0 { "-" } else { "+" };
    format!("{sign}{}", human_bytes(difference.unsigned_abs()))
}

/// Formats a share as a percentage with one decimal, never rounded up to 100; empty if the whole is 0.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    #[allow(clippy::cast_precision_loss)]
    let percent = part as f64 * 100.0 / whole as f64;
    format!("{:.1}%", if part < whole { percent.min(99.9) } else { percent })
}

/// Formats a share that is a lower bound as a percentage without decimals, never rounded up to 100; empty if the whole is 0.
pub fn whole_percent(part: u64, whole: u64) -> String {
    let percent = (u128::from(part) * 200 + u128::from(whole)).checked_div(u128::from(whole) * 2);
    let shown = |percent: u128| format!("{}%", if part < whole { percent.min(99) } else { percent });
    percent.map_or_else(String::new, shown)
}

/// Formats a size with a binary unit: `1.5 GiB`.
pub fn human_bytes(bytes: u64) -> String {
    HumanBytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(group_digits),
            ["0", "999", "1,000", "1,234,567"].map(str::to_owned)
        );
        assert_eq!([2000, -3, 0].map(format_signed), ["+2,000", "-3", "0"]);
        assert_eq!([1536, -1023].map(signed_bytes), ["+1.5 KiB", "-1023 B"]);
        assert_eq!(percent(1, 3), "33.3%");
        assert_eq!(percent(0, 0), "");
        assert_eq!(
            [(9_994, 10_000), (9_996, 10_000), (u64::MAX - 1, u64::MAX), (7, 7), (8, 7)]
                .map(|(part, whole)| percent(part, whole)),
            ["99.9%", "99.9%", "99.9%", "100.0%", "114.3%"]
        );
        assert_eq!(
            [(299, 1000), (1, 3), (2, 3), (997, 1000)].map(|(part, whole)| whole_percent(part, whole)),
            ["30%", "33%", "67%", "99%"]
        );
        assert_eq!([whole_percent(0, 0), whole_percent(u64::MAX, u64::MAX)], ["", "100%"]);
        assert_eq!(human_bytes(1023), "1023 B");
        assert_eq!(human_bytes(1 << 20), "1.0 MiB");
        assert_eq!(human_bytes(u64::MAX), "16.0 EiB");
    }
}
