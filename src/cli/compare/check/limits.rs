//! Limits as written in a rules file: `100`, `"50 MiB"`, `"20 %"`.

use hprof_query::check::{Percent, Range, RuleLimits, Unit};
use hprof_query::naming::toml_file::{DeValue, quoted};
use hprof_query::objects::condition::size;

/// A limit, as written in the rules file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitValue {
    Number(u64),
    Percent(Percent),
}

/// Parses a limit. The error text follows the name of its key.
pub(super) fn parse(value: &DeValue<'_>, unit: Unit) -> Result<LimitValue, String> {
    let expected = match unit {
        Unit::Bytes => "expected a size like \"50 MiB\", a number of bytes, or a percentage like \"20 %\"",
        Unit::Count => "expected a number of 0 or more, for example 100",
    };
    match value {
        DeValue::Integer(number) => {
            let digits = number.as_str().replace('_', "");
            u64::from_str_radix(digits.strip_prefix('+').unwrap_or(&digits), number.radix())
                .map(LimitValue::Number)
                .map_err(|_| format!("is {}; {expected}", quoted(number.as_str())))
        }
        DeValue::String(text) => {
            let text = text.trim();
            let wrong = || format!("is `{}`; {expected}", quoted(text));
            let percent = text.strip_suffix('%').or_else(|| text.strip_suffix("percent"));
            match (percent, unit) {
                (Some(_), Unit::Count) => Err(wrong()),
                (Some(number), Unit::Bytes) => {
                    Percent::parse(number.trim()).map(LimitValue::Percent).ok_or_else(wrong)
                }
                (None, Unit::Bytes) => size::parse(text).map(LimitValue::Number).map_err(|_| wrong()),
                (None, Unit::Count) => text.parse().map(LimitValue::Number).map_err(|_| wrong()),
            }
        }
        other => Err(format!("is of type {}; {expected}", other.type_str())),
    }
}

impl LimitValue {
    /// Returns the range of allowed values, or a description of the error if both limits are missing or they contradict
    /// each other.
    pub(super) fn range(min: Option<Self>, max: Option<Self>) -> Result<RuleLimits, String> {
        let number = |given: Option<Self>| match given {
            Some(Self::Number(number)) => Some(number),
            _ => None,
        };
        let percent = |given: Option<Self>| match given {
            Some(Self::Percent(percent)) => Some(percent),
            _ => None,
        };
        let numbers = Range::new(number(min), number(max));
        let parts = Range::new(percent(min), percent(max));
        match (numbers, parts) {
            (Some(Range::Both { min, max }), _) if min > max => Err(format!(
                "`min` is greater than `max`: no value is at least {min} and at most {max}; swap them"
            )),
            (_, Some(Range::Both { min, max })) if min > max => {
                Err("`min` is greater than `max`: no value is allowed; swap them".to_owned())
            }
            (Some(range), None) => Ok(RuleLimits::Number(range)),
            (None, Some(range)) => Ok(RuleLimits::Percent(range)),
            (Some(_), Some(_)) => {
                Err("one limit is a percentage and the other is not; use the same form for both".to_owned())
            }
            (None, None) => Err("no limit is given; write max or min".to_owned()),
        }
    }
}
