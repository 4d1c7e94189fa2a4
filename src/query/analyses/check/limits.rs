//! Limits: numbers, or percentages of a total. They are compared exactly, without floating point.

/// A percentage of a total, stored in millionths of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u64);

/// Millionths in one percent.
const SCALE: u64 = 1_000_000;
/// Maximum number of decimal places.
const DIGITS: usize = 6;
/// Maximum percentage; a larger one would not limit anything.
const MAX_PERCENT: u64 = 1_000_000_000;

impl Percent {
    /// Parses a decimal number without a sign: `20`, `0.5`. Returns `None` if it is malformed, has more than six
    /// decimal places, or is above 1,000,000,000.
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(part) || part.len() > DIGITS {
            return None;
        }
        let whole: u64 = whole.parse().ok().filter(|whole| *whole <= MAX_PERCENT)?;
        let millionths: u64 = format!("{part:0<DIGITS$}").parse().ok()?;
        Some(Self(whole * SCALE + millionths))
    }

    /// Returns the value in percent.
    #[allow(clippy::cast_precision_loss)]
    pub fn percent(self) -> f64 {
        self.0 as f64 / SCALE as f64
    }

    /// Compares an amount with this percentage of `whole`.
    fn compare(self, amount: i64, whole: u64) -> std::cmp::Ordering {
        // Cannot overflow: at most 2^63 * 10^8 and 2^64 * 10^15.
        let amount = i128::from(amount) * i128::from(100 * SCALE);
        let limit = u128::from(whole) * u128::from(self.0);
        amount.cmp(&i128::try_from(limit).unwrap_or(i128::MAX))
    }
}

/// Direction of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    /// Lower limit.
    Min,
    /// Upper limit.
    Max,
}

impl LimitKind {
    /// Returns the name in rules and in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Min => "min",
            Self::Max => "max",
        }
    }
}

/// One limit of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// A count, or a size in bytes.
    Number(LimitKind, u64),
    /// A percentage of the total.
    Percent(LimitKind, Percent),
}

impl Limit {
    /// Returns the direction of the limit.
    pub const fn bound(self) -> LimitKind {
        match self {
            Self::Number(bound, _) | Self::Percent(bound, _) => bound,
        }
    }
}

/// Limits of a rule: at least one, and both numbers or both percentages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleLimits {
    /// Counts, or sizes in bytes.
    Number(Range<u64>),
    /// Percentages of the total.
    Percent(Range<Percent>),
}

/// A range with one or two inclusive ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range<T> {
    /// Lower end only.
    Min(T),
    /// Upper end only.
    Max(T),
    /// Both ends.
    Both {
        /// Lower end.
        min: T,
        /// Upper end.
        max: T,
    },
}

impl<T: Copy> Range<T> {
    /// Creates a range from the given ends; `None` if there are none.
    pub fn new(min: Option<T>, max: Option<T>) -> Option<Self> {
        Some(match (min, max) {
            (Some(min), Some(max)) => Self::Both { min, max },
            (Some(min), None) => Self::Min(min),
            (None, Some(max)) => Self::Max(max),
            (None, None) => return None,
        })
    }

    /// Returns the lower end, if there is one.
    pub fn min(self) -> Option<T> {
        match self {
            Self::Min(min) | Self::Both { min, .. } => Some(min),
            Self::Max(_) => None,
        }
    }

    /// Returns the upper end, if there is one.
    pub fn max(self) -> Option<T> {
        match self {
            Self::Max(max) | Self::Both { max, .. } => Some(max),
            Self::Min(_) => None,
        }
    }

    /// Returns the kind and value of the decisive limit, and whether `compare` is within the limits. The decisive limit is the
    /// violated one, or else the upper one, or else the lower one.
    fn judge(self, compare: impl Fn(T) -> std::cmp::Ordering) -> (LimitKind, T, bool) {
        match self {
            Self::Min(min) | Self::Both { min, .. } if compare(min).is_lt() => (LimitKind::Min, min, false),
            Self::Min(min) => (LimitKind::Min, min, true),
            Self::Max(max) | Self::Both { max, .. } => (LimitKind::Max, max, compare(max).is_le()),
        }
    }
}

impl RuleLimits {
    /// Returns the decisive limit for an amount out of `whole`, and whether the amount is within the limits.
    pub(super) fn judge(self, amount: i64, whole: u64) -> (Limit, bool) {
        match self {
            Self::Number(range) => {
                let (bound, limit, is_kept) = range.judge(|limit| i128::from(amount).cmp(&limit.into()));
                (Limit::Number(bound, limit), is_kept)
            }
            Self::Percent(range) => {
                let (bound, limit, is_kept) = range.judge(|limit| limit.compare(amount, whole));
                (Limit::Percent(bound, limit), is_kept)
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn percent(text: &str) -> Percent {
        Percent::parse(text).unwrap()
    }

    #[test]
    fn parts_are_read_exactly() {
        assert_eq!(
            [percent("20"), percent("0.5"), percent("0.000001")],
            [Percent(20_000_000), Percent(500_000), Percent(1)]
        );
        for wrong in ["", ".", "1.", ".5", "-1", "+1", "1e3", "1.0000001", "1000000001", "٣", "1 "] {
            assert_eq!(Percent::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn limits_are_included() {
        let number = |range| RuleLimits::Number(range);
        let kept = |limits: RuleLimits, amount| limits.judge(amount, 1000).1;
        let both = number(Range::Both { min: 2, max: 5 });
        assert_eq!([1, 2, 5, 6].map(|amount| kept(both, amount)), [false, true, true, false]);
        let part = RuleLimits::Percent(Range::Max(percent("0.5")));
        assert_eq!([-9, 5, 6].map(|amount| kept(part, amount)), [true, true, false]);
        assert_eq!(both.judge(1, 0).0, Limit::Number(LimitKind::Min, 2));
        assert_eq!(both.judge(3, 0).0, Limit::Number(LimitKind::Max, 5));
        let most = number(Range::Max(u64::MAX));
        assert!(kept(most, i64::MAX) && !kept(number(Range::Min(u64::MAX)), i64::MAX));
    }

    #[test]
    fn of_nothing_only_nothing_is_allowed() {
        let part = RuleLimits::Percent(Range::Max(percent("50")));
        assert!(part.judge(0, 0).1 && !part.judge(1, 0).1);
        assert!(
            part.judge(i64::MAX, u64::MAX).1
                && !RuleLimits::Percent(Range::Max(percent("49"))).judge(i64::MAX, u64::MAX).1
        );
    }
}
