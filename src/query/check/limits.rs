//! Limits: numbers, or parts of a whole. They are compared exactly, without fractions.

/// A part of a whole, in millionths of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u64);

/// Millionths in one percent.
const SCALE: u64 = 1_000_000;
/// Digits behind the point.
const DIGITS: usize = 6;
/// Greater parts are no limit of anything.
const MAX_PERCENT: u64 = 1_000_000_000;

impl Percent {
    /// Reads a decimal number without a sign: `20`, `0.5`. `None` if it is none, has more than six digits behind the point,
    /// or is above 1,000,000,000.
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

    /// In percent.
    #[allow(clippy::cast_precision_loss)]
    pub fn percent(self) -> f64 {
        self.0 as f64 / SCALE as f64
    }

    /// Compares a part of a whole with this part of it.
    fn compare(self, amount: i64, whole: u64) -> std::cmp::Ordering {
        // At most 2^63 * 10^8, and 2^64 * 10^15.
        let amount = i128::from(amount) * i128::from(100 * SCALE);
        let limit = u128::from(whole) * u128::from(self.0);
        amount.cmp(&i128::try_from(limit).unwrap_or(i128::MAX))
    }
}

/// Which limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// It is not to be less.
    Min,
    /// It is not to be more.
    Max,
}

impl Bound {
    /// The name in rules and in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Min => "min",
            Self::Max => "max",
        }
    }
}

/// One limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// A number, or bytes.
    Number(Bound, u64),
    /// A part of the whole.
    Percent(Bound, Percent),
}

impl Limit {
    /// Which one it is.
    pub const fn bound(self) -> Bound {
        match self {
            Self::Number(bound, _) | Self::Percent(bound, _) => bound,
        }
    }
}

/// The limits of a rule: both of one kind, and at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleLimits {
    /// Numbers, or bytes.
    Number(Range<u64>),
    /// Parts of the whole.
    Percent(Range<Percent>),
}

/// From one limit to another, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range<T> {
    /// At least.
    Min(T),
    /// At most.
    Max(T),
    /// Both.
    Both {
        /// At least.
        min: T,
        /// At most.
        max: T,
    },
}

impl<T: Copy> Range<T> {
    /// Of those that there are.
    pub fn of(min: Option<T>, max: Option<T>) -> Option<Self> {
        Some(match (min, max) {
            (Some(min), Some(max)) => Self::Both { min, max },
            (Some(min), None) => Self::Min(min),
            (None, Some(max)) => Self::Max(max),
            (None, None) => return None,
        })
    }

    /// The lower one.
    pub fn min(self) -> Option<T> {
        match self {
            Self::Min(min) | Self::Both { min, .. } => Some(min),
            Self::Max(_) => None,
        }
    }

    /// The upper one.
    pub fn max(self) -> Option<T> {
        match self {
            Self::Max(max) | Self::Both { max, .. } => Some(max),
            Self::Min(_) => None,
        }
    }

    /// The limit that is not kept to, or else the upper one, or else the lower one.
    fn judge(self, compare: impl Fn(T) -> std::cmp::Ordering) -> (Bound, T, bool) {
        match self {
            Self::Min(min) | Self::Both { min, .. } if compare(min).is_lt() => (Bound::Min, min, false),
            Self::Min(min) => (Bound::Min, min, true),
            Self::Max(max) | Self::Both { max, .. } => (Bound::Max, max, compare(max).is_le()),
        }
    }
}

impl RuleLimits {
    /// The limit that matters for an amount, a part of `whole`, and whether it is kept to.
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
        assert_eq!(both.judge(1, 0).0, Limit::Number(Bound::Min, 2));
        assert_eq!(both.judge(3, 0).0, Limit::Number(Bound::Max, 5));
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
