//! Comparison of field values with the value of a condition.

use std::cmp::Ordering;

use crate::objects::condition::size;
use crate::objects::reader::{Bits, Characters};
use hprof_base::naming::object_id;
use hprof_values::{BasicType, ObjectId};

/// Comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
    /// `~`: a text that contains another.
    Contains,
}

impl Operator {
    /// Returns whether the operator accepts a result of a comparison; `None` stands for values that cannot be ordered.
    pub(super) fn accepts(self, ordering: Option<Ordering>) -> bool {
        match (self, ordering) {
            (Self::NotEqual, None) => true,
            (_, None) => false,
            (Self::Equal | Self::Contains, Some(ordering)) => ordering.is_eq(),
            (Self::NotEqual, Some(ordering)) => ordering.is_ne(),
            (Self::Less, Some(ordering)) => ordering.is_lt(),
            (Self::AtMost, Some(ordering)) => ordering.is_le(),
            (Self::Greater, Some(ordering)) => ordering.is_gt(),
            (Self::AtLeast, Some(ordering)) => ordering.is_ge(),
        }
    }

    /// Returns whether the operator only tests for equality or inequality.
    pub(super) fn is_equality(self) -> bool {
        matches!(self, Self::Equal | Self::NotEqual)
    }
}

/// A value as given, with all its interpretations.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Literal {
    /// The text in UTF-16, without its quotes.
    pub(super) units: Vec<u16>,
    pub(super) text: String,
    pub(super) is_null: bool,
    pub(super) boolean: Option<bool>,
    pub(super) integer: Option<i64>,
    pub(super) float: Option<f64>,
    /// The value as a Java `float`: 0.1 is a different number there.
    pub(super) single: Option<f32>,
    /// The value as an object ID.
    pub(super) id: Option<ObjectId>,
    /// For each prefix of the text, the length to resume with after a mismatch: for search in linear time.
    borders: Vec<usize>,
}

impl Literal {
    pub(super) fn new(written: &str) -> Self {
        let quoted = ['"', '\''].into_iter().find_map(|quote| {
            let text = written.strip_prefix(quote)?.strip_suffix(quote)?;
            (written.len() >= 2).then_some(text)
        });
        let text = quoted.unwrap_or(written).to_owned();
        // Anything in quotes is text only.
        let plain = if quoted.is_none() { written } else { "" };
        let id = object_id::prefixed_object_id(plain);
        #[allow(clippy::cast_precision_loss)] // So does Java.
        // The bits of a long, as programs print them, and a size: `10MB`.
        let other = id.map(|id| id.0.cast_signed()).or_else(|| i64::try_from(size::parse(plain).ok()?).ok());
        let units: Vec<u16> = text.encode_utf16().collect();
        Self {
            borders: borders(&units),
            units,
            text,
            is_null: plain == "null",
            boolean: plain.parse().ok(),
            integer: plain.parse().ok().or_else(|| other.filter(|_| plain.parse::<f64>().is_err())),
            float: plain.parse().ok().or(other.map(|other| other as f64)),
            single: plain.parse().ok().or(other.map(|other| other as f32)),
            id,
        }
    }

    /// Returns the only UTF-16 unit of the text, if it has just one.
    pub(super) fn unit(&self) -> Option<u16> {
        match self.units.as_slice() {
            [unit] => Some(*unit),
            _ => None,
        }
    }

    /// Returns whether the literal is a number.
    pub(super) fn is_number(&self) -> bool {
        self.integer.is_some() || self.float.is_some()
    }
}

/// Returns whether a primitive value meets a condition.
#[allow(clippy::cast_possible_truncation)] // The upper bits of smaller types are zero.
pub(super) fn compare_primitive(value: Bits, operator: Operator, literal: &Literal) -> bool {
    match value.kind {
        BasicType::Boolean => {
            let value = value.bits != 0;
            literal.boolean.is_some_and(|wanted| operator.accepts(Some(value.cmp(&wanted))))
        }
        BasicType::Float => {
            let number = f32::from_bits(value.bits as u32);
            literal.single.is_some_and(|wanted| operator.accepts(order(number.into(), wanted.into())))
        }
        BasicType::Double => {
            let number = f64::from_bits(value.bits);
            literal.float.is_some_and(|wanted| operator.accepts(order(number, wanted)))
        }
        BasicType::Char => {
            let unit = value.bits as u16;
            match (literal.integer, literal.unit()) {
                (Some(code), _) => operator.accepts(Some(i64::from(unit).cmp(&code))),
                (None, Some(wanted)) => operator.accepts(Some(unit.cmp(&wanted))),
                (None, None) => false,
            }
        }
        BasicType::Byte | BasicType::Short | BasicType::Int | BasicType::Long => {
            let Some(number) = value.integer() else { return false };
            compare_integer(number, operator, literal)
        }
        BasicType::Object => false,
    }
}

fn compare_integer(number: i64, operator: Operator, literal: &Literal) -> bool {
    #[allow(clippy::cast_precision_loss)] // A fraction is compared as Java does.
    match (literal.integer, literal.float) {
        (Some(wanted), _) => operator.accepts(Some(number.cmp(&wanted))),
        (None, Some(wanted)) => operator.accepts(order(number as f64, wanted)),
        (None, None) => false,
    }
}

/// Orders two numbers. NaN equals NaN here, since a query for NaN expects that.
fn order(a: f64, b: f64) -> Option<Ordering> {
    if a.is_nan() && b.is_nan() { Some(Ordering::Equal) } else { a.partial_cmp(&b) }
}

/// Returns whether a text meets a condition.
pub(super) fn compare_text(text: &Characters<'_>, operator: Operator, literal: &Literal) -> bool {
    match operator {
        Operator::Contains => contains(text.units(), literal),
        Operator::Equal | Operator::NotEqual => {
            let same = text.len() == literal.units.len() && text.units().eq(literal.units.iter().copied());
            same == (operator == Operator::Equal)
        }
        _ => operator.accepts(Some(text.units().cmp(literal.units.iter().copied()))),
    }
}

/// Returns whether the label of a boxed number or another numeric object meets a condition.
pub(super) fn number_matches(label: &str, operator: Operator, literal: &Literal) -> bool {
    match (label.parse::<i64>(), label.parse::<f64>()) {
        _ if operator == Operator::Contains => compare_other(label, operator, literal),
        (Ok(number), _) if literal.is_number() => compare_integer(number, operator, literal),
        (_, Ok(number)) if literal.is_number() => {
            literal.float.is_some_and(|wanted| operator.accepts(order(number, wanted)))
        }
        _ => compare_other(label, operator, literal),
    }
}

/// Returns whether the label of another object meets a condition: the name of an enum, the path of a file.
pub(super) fn compare_other(label: &str, operator: Operator, literal: &Literal) -> bool {
    match operator {
        Operator::Contains => label.contains(&literal.text),
        _ => operator.accepts(Some(label.cmp(&literal.text))),
    }
}

/// Returns, for each prefix of a text, the length of its longest proper suffix that is also a prefix.
fn borders(text: &[u16]) -> Vec<usize> {
    let mut borders = Vec::with_capacity(text.len());
    let mut len = 0usize;
    for (at, unit) in text.iter().enumerate() {
        if at > 0 {
            len = advance(text, &borders, len, *unit);
        }
        borders.push(len);
    }
    borders
}

/// Returns how much of `text` matches after another unit, when `len` units matched before.
fn advance(text: &[u16], borders: &[usize], mut len: usize, unit: u16) -> usize {
    loop {
        if text.get(len) == Some(&unit) {
            return len + 1;
        }
        let Some(before) = len.checked_sub(1) else { return 0 };
        len = borders.get(before).copied().unwrap_or(0);
    }
}

/// Returns whether a text contains the literal, in linear time.
fn contains(text: impl Iterator<Item = u16>, literal: &Literal) -> bool {
    let mut met = 0;
    for unit in text {
        if met == literal.units.len() {
            break;
        }
        met = advance(&literal.units, &literal.borders, met, unit);
    }
    met == literal.units.len()
}
