//! Shares of a whole in percent.
//!
//! Integers are compared and divided exactly. Floating-point percentages with the rounding of the HPROF agent are in
//! `hprof_format::percent`, texts in `hprof_report::number`.

/// Returns whether `part` is at least `percent` percent of `whole`.
pub const fn is_share(part: u64, whole: u64, percent: u64) -> bool {
    part as u128 * 100 >= whole as u128 * percent as u128
}

/// Returns `percent` percent of `whole`, rounded down.
pub fn portion(whole: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(whole) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}

/// Returns `part` in percent of `whole`, rounded down; a whole of 0 counts as 1.
pub fn percent(part: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(part) * 100 / u128::from(whole.max(1))).unwrap_or(u64::MAX)
}

/// Returns `part` in percent of `whole`, for programs: rounded to hundredths; 0 if the whole is 0.
pub fn hundredths(part: u64, whole: u64) -> f64 {
    #[allow(clippy::cast_precision_loss)]
    let percent = if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 };
    (percent * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_exact() {
        assert!(is_share(7, 10, 70) && !is_share(6, 10, 70) && is_share(0, 0, 50));
        assert!(is_share(u64::MAX, u64::MAX, 100) && !is_share(u64::MAX - 1, u64::MAX, 100));
        assert_eq!([portion(199, 1), portion(200, 1), portion(u64::MAX, 100)], [1, 2, u64::MAX]);
        assert_eq!(portion(u64::MAX, 101), u64::MAX);
        assert_eq!(
            [percent(2, 3), percent(0, 0), percent(3, 0), percent(u64::MAX, u64::MAX)],
            [66, 0, 300, 100]
        );
    }

    #[test]
    fn fractions_have_two_decimals() {
        assert!([hundredths(1, 3), hundredths(2, 3), hundredths(0, 0)] == [33.33, 66.67, 0.0]);
    }
}
