//! Conditions on the fields of objects: `count > 100`, `name ~ "worker"`, `next != null`; and sorting by a field.

mod compare;
mod error;
pub mod order;
pub mod path;
pub mod size;

use std::str::FromStr;

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::Summary;
use hprof_values::BasicType;

use super::class_set::ClassSet;
use super::label::Labels;
use super::object_set::Bits as ObjectSet;
use super::reader::{Bits, ObjectReader, ObjectRecord};
pub use error::ConditionError;

use compare::{Literal, Operator, compare_other, compare_primitive, compare_text, number_matches};
use path::{FieldPath, StepPlaces};

/// A condition on a field.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    path: FieldPath,
    operator: Operator,
    literal: Literal,
    written: String,
}

/// Error for a text that is not a condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a condition; conditions look like 'count > 100', 'name ~ worker', 'next != null'")]
pub struct NoCondition(String);

impl FromStr for Condition {
    type Err = NoCondition;

    fn from_str(text: &str) -> Result<Self, NoCondition> {
        const OPERATORS: [(&str, Operator); 8] = [
            ("!=", Operator::NotEqual),
            ("<=", Operator::AtMost),
            (">=", Operator::AtLeast),
            ("==", Operator::Equal),
            ("=", Operator::Equal),
            ("<", Operator::Less),
            (">", Operator::Greater),
            ("~", Operator::Contains),
        ];
        let wrong = || NoCondition(text.to_owned());
        let at = text.find(['=', '!', '<', '>', '~']).ok_or_else(wrong)?;
        let (field, rest) = text.split_at_checked(at).ok_or_else(wrong)?;
        let found =
            OPERATORS.into_iter().find_map(|(sign, operator)| Some((operator, rest.strip_prefix(sign)?)));
        let (operator, value) = found.ok_or_else(wrong)?;
        let path = FieldPath::new(field).ok_or_else(wrong)?;
        if value.trim().is_empty() {
            return Err(wrong());
        }
        Ok(Self { path, operator, literal: Literal::new(value.trim()), written: text.to_owned() })
    }
}

/// Conditions, prepared for evaluation: all must hold.
#[derive(Debug)]
pub struct Filter<'a> {
    objects: &'a ObjectReader<'a>,
    labels: &'a Labels<'a>,
    conditions: &'a [Condition],
    /// By condition: location of the fields of its path.
    places: Vec<StepPlaces>,
    /// Objects to consider, if not all.
    within: Option<&'a ObjectSet>,
    /// Classes whose instances are compared as texts.
    strings: ClassSet,
    /// Classes whose instances are compared as numbers.
    numbers: ClassSet,
}

impl<'a> Filter<'a> {
    /// Prepares the conditions for objects of these classes.
    ///
    /// # Errors
    /// If a condition cannot hold for any such object: the field does not exist, or the value has another type.
    pub fn new(
        objects: &'a ObjectReader<'a>,
        labels: &'a Labels<'a>,
        conditions: &'a [Condition],
        classes: &ClassSet,
    ) -> Result<Self, ConditionError> {
        let places: Vec<StepPlaces> =
            conditions.iter().map(|condition| condition.path.places(objects)).collect();
        for (condition, places) in conditions.iter().zip(&places) {
            condition.check(objects.summary, classes, places)?;
        }
        let below = |name| ClassSet::of_name_and_below(objects.summary, name);
        let (strings, numbers) = (below("java.lang.String"), below("java.lang.Number"));
        Ok(Self { objects, labels, conditions, places, within: None, strings, numbers })
    }

    /// Restricts the filter to objects of a set.
    #[must_use]
    pub fn restrict_to(self, objects: &'a ObjectSet) -> Self {
        Self { within: Some(objects), ..self }
    }

    /// Calls `take` with the matching objects among 64: those from `first` on whose bits are set in `wanted`.
    pub fn matching(&self, first: ObjectIndex, wanted: u64, mut take: impl FnMut(ObjectIndex)) {
        if wanted == 0 {
            return;
        }
        self.objects.records_of_block(first, wanted, |object, record| {
            if record.is_some_and(|record| self.matches(object, &record)) {
                take(object);
            }
        });
    }

    /// Returns whether all conditions hold for an object.
    pub fn matches(&self, object: ObjectIndex, record: &ObjectRecord<'_>) -> bool {
        let mut pairs = self.conditions.iter().zip(&self.places);
        self.within.is_none_or(|objects| objects.contains(object))
            && pairs.all(|(condition, places)| {
                let value = condition.path.value(self.objects, object, record, places);
                value.is_some_and(|value| self.compare(value, condition))
            })
    }

    fn compare(&self, value: Bits, condition: &Condition) -> bool {
        let Condition { operator, literal, .. } = condition;
        if value.kind != BasicType::Object {
            return compare_primitive(value, *operator, literal);
        }
        if literal.is_null {
            return operator.is_equality() && ((value.bits == 0) == (*operator == Operator::Equal));
        }
        if value.bits == 0 {
            // Null differs from anything.
            return *operator == Operator::NotEqual;
        }
        if let (Some(id), true) = (literal.id, operator.is_equality()) {
            return (value.bits == id.0) == (*operator == Operator::Equal);
        }
        let object = self.objects.object(value);
        let is_in = |set: &ClassSet| {
            let class = object.and_then(|object| self.objects.graph.objects.class(object));
            class.is_some_and(|class| set.contains(class))
        };
        if let Some(object) = object.filter(|_| is_in(&self.strings)) {
            // A text that was removed from the dump is not known to equal any other.
            return match self.objects.string(object).filter(|text| !text.are_removed()) {
                Some(text) => compare_text(&text, *operator, literal),
                None => *operator == Operator::NotEqual,
            };
        }
        let Some(label) = object.and_then(|object| self.labels.full_label(object)) else {
            return *operator == Operator::NotEqual;
        };
        if is_in(&self.numbers) {
            number_matches(&label, *operator, literal)
        } else {
            compare_other(&label, *operator, literal)
        }
    }
}

impl Condition {
    /// Checks that the condition can hold for objects of the given classes. `places` has the locations of each field of its
    /// path.
    fn check(
        &self,
        summary: &Summary,
        classes: &ClassSet,
        places: &StepPlaces,
    ) -> Result<(), ConditionError> {
        let kinds = self.path.check(&self.written, summary, classes, places)?;
        match kinds.first() {
            Some(kind) if !kinds.iter().any(|kind| self.fits(*kind)) => Err(ConditionError::Type {
                condition: self.written.clone(),
                name: self.path.last().to_owned(),
                kind: path::kind_in_words(*kind),
                value: self.literal.text.clone(),
                hint: if self.operator == Operator::Contains { "; ~ applies only to texts" } else { "" },
            }),
            _ => Ok(()),
        }
    }

    /// Returns whether values of a type can be compared by this operator.
    fn fits(&self, kind: BasicType) -> bool {
        let Self { operator, literal, .. } = self;
        let compares = *operator != Operator::Contains;
        match kind {
            BasicType::Object => !literal.is_null || operator.is_equality(),
            BasicType::Boolean => literal.boolean.is_some() && operator.is_equality(),
            BasicType::Char => (literal.integer.is_some() && compares) || literal.unit().is_some(),
            BasicType::Float | BasicType::Double => literal.float.is_some() && compares,
            BasicType::Byte | BasicType::Short | BasicType::Int | BasicType::Long => {
                literal.is_number() && compares
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::reader::Characters;
    use super::*;

    fn condition(text: &str) -> Condition {
        text.parse().unwrap()
    }

    #[test]
    fn conditions_are_read() {
        let parsed = condition(" a . b$c >= 12 ");
        assert_eq!((parsed.path, parsed.operator), (FieldPath::new("a.b$c").unwrap(), Operator::AtLeast));
        assert_eq!(parsed.literal.integer, Some(12));
        assert!(condition("x!=null").literal.is_null);
        assert!(!condition("x = 'null'").literal.is_null);
        assert_eq!(condition("x='a=b'").literal.text, "a=b");
        assert_eq!(condition("x=0xff").literal.integer, Some(255));
        assert_eq!(condition("x == -1").literal.integer, Some(-1));
        assert_eq!(condition("x == 0xffffffffffffffff").literal.integer, Some(-1));
        assert_eq!(condition("x > 10MB").literal.integer, Some(10_000_000));
        assert_eq!(condition("x > 1.5").literal.integer, None);
        assert_eq!(condition("x = ''").literal.text, "");
        assert_eq!(condition("x = \"").literal.text, "\"");
        for wrong in ["", "x", "= 1", "x =", "x ! 1", "a..b = 1", "x\u{301}"] {
            assert_eq!(wrong.parse::<Condition>(), Err(NoCondition(wrong.to_owned())));
        }
    }

    #[test]
    fn primitives() {
        let holds = |text: &str, kind, bits| {
            let Condition { operator, literal, .. } = condition(text);
            compare_primitive(Bits { kind, bits }, operator, &literal)
        };
        assert!(holds("x < 0", BasicType::Byte, 0xff) && !holds("x > 0", BasicType::Byte, 0xff));
        assert!(holds("x = -1", BasicType::Long, u64::MAX) && holds("x > 1.5", BasicType::Int, 2));
        assert!(holds("x = 9223372036854775807", BasicType::Long, i64::MAX as u64));
        assert!(!holds("x = 9223372036854775806", BasicType::Long, i64::MAX as u64));
        assert!(holds("x = true", BasicType::Boolean, 1) && holds("x != true", BasicType::Boolean, 0));
        assert!(holds("x = 'a'", BasicType::Char, 97) && holds("x = a", BasicType::Char, 97));
        assert!(holds("x = 97", BasicType::Char, 97) && holds("x = '7'", BasicType::Char, 55));
        assert!(holds("x = 0.1", BasicType::Float, 0.1f32.to_bits().into()));
        assert!(holds("x = 0.1", BasicType::Double, 0.1f64.to_bits()));
        assert!(holds("x = NaN", BasicType::Double, f64::NAN.to_bits()));
        assert!(holds("x != 1", BasicType::Double, f64::NAN.to_bits()));
        assert!(!holds("x < 1", BasicType::Double, f64::NAN.to_bits()));
        assert!(holds("x = -inf", BasicType::Float, f32::NEG_INFINITY.to_bits().into()));
        assert!(holds("x = 0", BasicType::Double, (-0.0f64).to_bits()));
    }

    #[test]
    fn texts() {
        let holds = |text: &str, bytes: &[u8]| {
            let Condition { operator, literal, .. } = condition(text);
            compare_text(&Characters::Latin1(bytes), operator, &literal)
        };
        assert!(holds("x = abc", b"abc") && !holds("x = abc", b"abcd") && holds("x != abc", b"ab"));
        assert!(holds("x ~ aab", b"aaaab") && !holds("x ~ aab", b"aaaa") && holds("x ~ ''", b""));
        assert!(holds("x ~ abab", b"abaabab") && holds("x ~ grün", b"im gr\xfcnen"));
        assert!(holds("x < b", b"abc") && holds("x >= abc", b"abc") && !holds("x > abc", b"abc"));
        let label = |text: &str, label: &str| {
            let Condition { operator, literal, .. } = condition(text);
            number_matches(label, operator, &literal)
        };
        assert!(label("x > 9", "10") && label("x = 1.5", "1.5") && label("x = RUNNING", "RUNNING"));
        assert!(label("x ~ UNN", "RUNNING") && !label("x = 7", "RUNNING"));
    }
}
