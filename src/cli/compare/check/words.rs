//! Sentences that describe rules and values.

use hprof_query::check::{
    LeftOut, Limit, LimitKind, Measure, MeasureDetails, Measurement, NamedKind, Rule, RuleVerdict, Unit,
};
use hprof_query::histogram::Scope;
use hprof_query::naming::suggestions;
use hprof_report::number::{format_signed, group_digits, human_bytes, signed_bytes};
use hprof_report::value::Value;

use crate::cli::retention::leaks::words as leak_words;

/// Example of a rule, for error messages.
pub(super) const EXAMPLE: &str =
    "[[rule]] name = \"heap\" measure = \"heap\" max = \"1 GiB\", each key in a line of its own";

/// Values of `objects`.
pub(super) const SCOPES: &[(&str, Scope)] =
    &[("all", Scope::All), ("reachable", Scope::Reachable), ("unreachable", Scope::Unreachable)];

/// Returns the value of `unit` in output.
pub(super) fn unit(measure: &Measure, limit: Limit) -> &'static str {
    match (limit, measure.kind.unit) {
        (Limit::Percent(..), _) => "percent",
        (_, Unit::Bytes) => "bytes",
        (_, Unit::Count) => "count",
    }
}

/// Converts a value to the unit of its limit, for programs; `null` for a percentage of zero. The value is rounded, unless
/// that would hide the violation.
pub(super) fn value(measured: &Measurement, verdict: &RuleVerdict) -> Value<'static> {
    match verdict.limit {
        Limit::Percent(_, limit) => match (percent(measured), exact_percent(measured)) {
            (Some(rounded), Some(exact)) if verdict.exceeds_limit() && rounded == limit.percent() => {
                exact.into()
            }
            (rounded, _) => rounded.into(),
        },
        Limit::Number(..) => measured.amount.into(),
    }
}

/// Converts a limit to a value for programs.
pub(super) fn limit(limit: Limit) -> Value<'static> {
    match limit {
        Limit::Percent(_, percent) => percent.percent().into(),
        Limit::Number(_, number) => number.into(),
    }
}

/// Returns the percentage, rounded to millionths; `None` for a percentage of zero.
fn percent(measured: &Measurement) -> Option<f64> {
    exact_percent(measured).map(|percent| (percent * 1e6).round() / 1e6)
}

/// Returns the percentage, not rounded.
#[allow(clippy::cast_precision_loss)]
fn exact_percent(measured: &Measurement) -> Option<f64> {
    match (measured.amount, measured.whole) {
        (0, _) => Some(0.0),
        (_, 0) => None,
        (amount, whole) => Some(amount as f64 * 100.0 / whole as f64),
    }
}

/// Formats a value and its limit for people; rounded, unless that would hide the violation.
pub(super) fn figures(measure: &Measure, measured: &Measurement, verdict: &RuleVerdict) -> [String; 2] {
    let amount = measured.amount;
    let is_failed = verdict.exceeds_limit();
    match (verdict.limit, measure.kind.unit) {
        (Limit::Percent(bound, limit), _) => {
            let limit = limit.percent();
            let value = match percent(measured) {
                None => "no percentage (the whole is 0)".to_owned(),
                Some(exact) => {
                    let rounded = (exact * 10.0).round() / 10.0;
                    let looks_kept = |value: f64| match bound {
                        LimitKind::Max => value <= limit,
                        LimitKind::Min => value >= limit,
                    };
                    match bound {
                        _ if !is_failed || !looks_kept(rounded) => format!("{rounded:.1} %"),
                        _ if !looks_kept(exact) => format!("{exact} %"),
                        LimitKind::Max => format!("more than {limit} %"),
                        LimitKind::Min => format!("less than {limit} %"),
                    }
                }
            };
            [value, format!("{limit} %")]
        }
        (Limit::Number(_, limit), Unit::Count) => [signed_or_plain(amount), group_digits(limit)],
        (Limit::Number(_, limit), Unit::Bytes) => {
            let size = human_bytes(amount.unsigned_abs());
            if is_failed && size == human_bytes(limit) {
                return [
                    format!("{} bytes", signed_or_plain(amount)),
                    format!("{} bytes", group_digits(limit)),
                ];
            }
            let value = if measure.kind.needs_baseline { signed_bytes(amount) } else { size };
            [value, human_bytes(limit)]
        }
    }
}

fn signed_or_plain(amount: i64) -> String {
    u64::try_from(amount).map_or_else(|_| format_signed(amount), group_digits)
}

/// Returns the result of a rule for a dump as a sentence without a full stop.
pub(super) fn message(rule: &Rule, measured: &Measurement, verdict: &RuleVerdict) -> String {
    let [value, limit] = figures(&rule.measure, measured, verdict);
    let bytes = match (verdict.limit, rule.measure.kind.needs_baseline) {
        (Limit::Percent(..), false) => format!(" ({})", human_bytes(measured.amount.unsigned_abs())),
        (Limit::Percent(..), true) => format!(" ({})", signed_bytes(measured.amount)),
        (Limit::Number(..), _) => String::new(),
    };
    let bound = match verdict.limit.bound() {
        LimitKind::Min => "at least",
        LimitKind::Max => "at most",
    };
    let subject = match &measured.found {
        MeasureDetails::Suspects(leaks) if !leak_words::is_suspect(leaks) => "what retains most".to_owned(),
        _ => (rule.measure.kind.subject)(&rule.measure),
    };
    let mut text = format!("{subject}: {value}{bytes}, {bound} {limit}");
    if let Some(more) = details_text(rule, measured) {
        text += "; ";
        text += &more;
    }
    if measured.left_out == LeftOut::Places {
        text += "; too many distinct places: those omitted count towards the place above them";
    }
    if verdict.fails_by_name {
        text += "; the rule would pass with optional = true";
    }
    text
}

fn details_text(rule: &Rule, measured: &Measurement) -> Option<String> {
    match &measured.found {
        MeasureDetails::Nothing | MeasureDetails::Places(_) | MeasureDetails::Classes(_) => None,
        MeasureDetails::NoMatch { named, pattern, suggestions } => {
            let what = match named {
                NamedKind::Class => "class",
                NamedKind::Place => "place",
            };
            let hint = suggestions::did_you_mean(suggestions);
            let space = if hint.is_empty() { "" } else { "; " };
            Some(format!("no {what} matches {pattern}{space}{hint}"))
        }
        MeasureDetails::Most { name, amount, of } => {
            let amount = match (rule.measure.kind.unit, rule.measure.kind.needs_baseline) {
                (Unit::Bytes, true) => signed_bytes(i64::try_from(*amount).unwrap_or(i64::MAX)),
                (Unit::Bytes, false) => human_bytes(*amount),
                (Unit::Count, _) => group_digits(*amount),
            };
            Some(match (of, rule.measure.kind.needs_baseline) {
                (1, false) => name.clone(),
                (1, true) => format!("{name}, {amount}"),
                _ => format!("largest of {}: {name}, {amount}", group_digits(*of)),
            })
        }
        MeasureDetails::Grown { place, cause: None } => Some(place.clone()),
        MeasureDetails::Grown { place, cause: Some((cause, bytes)) } => {
            let bytes = signed_bytes(i64::try_from(*bytes).unwrap_or(i64::MAX));
            Some(format!("{place}; most of it in {cause}, {bytes}"))
        }
        MeasureDetails::Suspects(leaks) => Some(leak_words::describe_largest(leaks)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hprof_query::check::Status;

    use super::*;
    use hprof_query::check::{MEASURES, Percent, Range, RuleLimits, Severity};

    fn heap() -> Measure {
        Measure::new(MEASURES.into_iter().find(|kind| kind.name == "heap").unwrap(), None)
    }

    /// Returns a value and its limit for people, and the value for programs.
    fn format_amount(amount: i64, whole: u64, limit: Range<&str>) -> ([String; 2], f64) {
        let percent = |text: &str| Percent::parse(text).unwrap();
        let range = Range::new(limit.min().map(percent), limit.max().map(percent)).unwrap();
        let rule = Rule {
            name: String::new(),
            severity: Severity::Error,
            measure: heap(),
            limits: RuleLimits::Percent(range),
            is_optional: false,
        };
        let measured =
            Measurement { amount, whole, found: MeasureDetails::Nothing, left_out: LeftOut::Nothing };
        let verdict = rule.judge(&measured);
        let Value::Float(value) = value(&measured, &verdict) else { panic!() };
        (figures(&rule.measure, &measured, &verdict), value)
    }

    #[test]
    fn a_figure_of_a_name_that_nothing_has_is_shown_as_it_is() {
        let limits = [
            RuleLimits::Percent(Range::Max(Percent::parse("10").unwrap())),
            RuleLimits::Number(Range::Max(0)),
        ];
        for (limits, expected) in limits.into_iter().zip(["0.0 %", "0 B"]) {
            let measure = heap();
            let rule =
                Rule { name: String::new(), severity: Severity::Error, measure, limits, is_optional: false };
            let found = MeasureDetails::NoMatch {
                named: NamedKind::Class,
                pattern: String::new(),
                suggestions: Vec::new(),
            };
            let measured = Measurement { amount: 0, whole: 1000, found, left_out: LeftOut::Nothing };
            let verdict = rule.judge(&measured);
            assert!(verdict.status == Status::Failed && verdict.fails_by_name);
            assert_eq!(figures(&rule.measure, &measured, &verdict)[0], expected);
        }
    }

    #[test]
    fn a_figure_that_is_not_allowed_is_not_shown_like_its_limit() {
        let whole = 1_000_000_000_000;
        let figure = |amount, limit| format_amount(amount, whole, limit).0[0].clone();
        assert_eq!(figure(50_000_000_000, Range::Max("5")), "5.0 %");
        assert_eq!(figure(59_000_000_000, Range::Max("5")), "5.9 %");
        assert_eq!(figure(50_000_010_000, Range::Max("5")), "5.000001 %");
        assert_eq!(figure(50_000_000_001, Range::Max("5")), "more than 5 %");
        assert_eq!(figure(49_999_999_999, Range::Min("5")), "less than 5 %");
        assert!(format_amount(50_000_000_001, whole, Range::Max("5")).1 > 5.0);
        assert!(format_amount(49_999_999_999, whole, Range::Min("5")).1 < 5.0);
        assert!(format_amount(50_000_000_001, whole, Range::Max("6")).1 <= 5.0);
    }
}
