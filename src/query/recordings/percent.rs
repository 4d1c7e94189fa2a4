//! Percentages as the HPROF agent prints them.

/// A number rounded to two decimals, as C's `%.2f` rounds it: by the exact value, not by what it is printed as.
pub fn two_decimals(value: f64) -> f64 {
    // Formatting is exact; multiplying by 100 and rounding is not.
    format!("{value:.2}").parse().unwrap_or(value)
}

/// A part of a whole in percent, for programs: rounded to hundredths; 0 if the whole is nothing.
pub fn hundredths(part: u64, whole: u64) -> f64 {
    #[allow(clippy::cast_precision_loss)]
    let percent = if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 };
    (percent * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_that_of_c() {
        // As printf("%5.2f") of glibc has them: 0.125 and 2.675 are told apart by what the double really is.
        let cases =
            [(0.125, 0.12), (0.375, 0.38), (2.675, 2.67), (44.182_621, 44.18), (99.999, 100.0), (0.0, 0.0)];
        for (value, expected) in cases {
            assert!((two_decimals(value) - expected).abs() < 1e-12, "{value}");
        }
        assert!(two_decimals(f64::NAN).is_nan());
    }
}
