//! Shares as the HPROF agent computes and prints them.

/// Returns a share of a whole; 0 if the whole is 0.
#[allow(clippy::cast_precision_loss)] // As the agent of JDK 8 does it; two decimals are shown.
pub fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Returns a share in percent, not rounded; 0 if the whole is 0.
pub fn percent(part: u64, whole: u64) -> f64 {
    ratio(part, whole) * 100.0
}

/// Rounds a number to two decimals like C's `%.2f`: by the exact binary value.
pub fn two_decimals(value: f64) -> f64 {
    // Formatting is exact; multiplying by 100 and rounding is not.
    format!("{value:.2}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_that_of_c() {
        // As glibc's printf("%5.2f") prints them: 0.125 and 2.675 round by the exact value of the double.
        let cases =
            [(0.125, 0.12), (0.375, 0.38), (2.675, 2.67), (44.182_621, 44.18), (99.999, 100.0), (0.0, 0.0)];
        for (value, expected) in cases {
            assert!((two_decimals(value) - expected).abs() < 1e-12, "{value}");
        }
        assert!(two_decimals(f64::NAN).is_nan());
    }
}
