//! Conditions on the fields of objects: `count > 100`, `name ~ "worker"`, `next != null`.

mod compare;
pub mod size;

use std::str::FromStr;

use crate::hprof::BasicType;
use crate::index::graph::numbers::ObjectIndex;
use crate::index::model::summary::{ClassNumber, Summary};

use super::class_set::ClassSet;
use super::label::Labels;
use super::reader::{Bits, Objects, Place, Record};
use compare::{Literal, Operator, compare_number, compare_other, compare_primitive, compare_text};

/// The length of an array, as Java names it.
const LENGTH: &str = "length";
/// Fields that are named when there is no such field.
const NAMED: usize = 12;

/// A condition on a field.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The field; behind it fields of the objects in them.
    path: Vec<String>,
    operator: Operator,
    literal: Literal,
    written: String,
}

/// A text that is no condition.
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
        let path: Vec<String> = field.trim().split('.').map(|name| name.trim().to_owned()).collect();
        if path.iter().any(String::is_empty) || value.trim().is_empty() {
            return Err(wrong());
        }
        Ok(Self { path, operator, literal: Literal::new(value.trim()), written: text.to_owned() })
    }
}

/// Why a condition can hold for no object of some classes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// No class has the field.
    #[error("{condition}: no field `{name}` in {class}{fields}")]
    NoField {
        /// The condition.
        condition: String,
        /// The field.
        name: String,
        /// One of the classes.
        class: String,
        /// Fields that there are, in words.
        fields: String,
    },
    /// A field in the middle of a path is no reference.
    #[error("{condition}: `{name}` is {kind}, and has no fields")]
    NoReference {
        /// The condition.
        condition: String,
        /// The field.
        name: String,
        /// Its type.
        kind: &'static str,
    },
    /// The field has another type.
    #[error("{condition}: `{name}` is {kind}, and `{value}` is not{hint}")]
    Type {
        /// The condition.
        condition: String,
        /// The field.
        name: String,
        /// Its type.
        kind: &'static str,
        /// The value.
        value: String,
        /// What else may be wrong.
        hint: &'static str,
    },
}

/// Conditions, ready to be asked of objects: all have to hold.
#[derive(Debug)]
pub struct Filter<'a> {
    objects: &'a Objects<'a>,
    labels: &'a Labels<'a>,
    conditions: &'a [Condition],
    /// By condition and step of its path: where the field is, by class number.
    places: Vec<Vec<Vec<Option<Place>>>>,
    /// Classes whose instances are texts, and those whose instances are numbers.
    strings: ClassSet,
    numbers: ClassSet,
}

impl<'a> Filter<'a> {
    /// Makes the conditions ready for objects of these classes.
    ///
    /// # Errors
    /// If a condition can hold for none of them: a field that is not there, a value of another type.
    pub fn new(
        objects: &'a Objects<'a>,
        labels: &'a Labels<'a>,
        conditions: &'a [Condition],
        classes: &ClassSet,
    ) -> Result<Self, ConditionError> {
        let places: Vec<Vec<Vec<Option<Place>>>> = (conditions.iter())
            .map(|condition| {
                let path = condition.path.iter();
                path.map(|name| objects.places(name)).collect()
            })
            .collect();
        for (condition, places) in conditions.iter().zip(&places) {
            condition.check(objects.summary, classes, places)?;
        }
        let below = |name| ClassSet::of_name_and_below(objects.summary, name);
        let (strings, numbers) = (below("java.lang.String"), below("java.lang.Number"));
        Ok(Self { objects, labels, conditions, places, strings, numbers })
    }

    /// Calls `take` with those of 64 objects that match: from `first` on, those whose bits are set.
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

    /// Whether all conditions hold for an object.
    pub fn matches(&self, object: ObjectIndex, record: &Record<'_>) -> bool {
        let pairs = self.conditions.iter().zip(&self.places);
        pairs.into_iter().all(|(condition, places)| {
            let value = self.value(object, record, condition, places);
            value.is_some_and(|value| self.compare(value, condition))
        })
    }

    /// The value at the end of a path; `None` if it leads nowhere.
    fn value(
        &self,
        mut object: ObjectIndex,
        record: &Record<'_>,
        condition: &Condition,
        places: &[Vec<Option<Place>>],
    ) -> Option<Bits> {
        let mut record = *record;
        let mut steps = condition.path.iter().zip(places);
        let (mut name, mut by_class) = steps.next()?;
        loop {
            let value = match record {
                Record::Instance(instance) => {
                    let class = self.objects.graph.objects.class(object)?;
                    let place = (*by_class.get(class.0 as usize)?)?;
                    self.objects.value_at(instance.fields, place)?
                }
                Record::ObjectArray(array) if name == LENGTH => length(array.length),
                Record::PrimitiveArray(array) if name == LENGTH => length(array.length),
                _ => return None,
            };
            let Some(next) = steps.next() else { return Some(value) };
            (name, by_class) = next;
            object = self.objects.object(value)?;
            record = self.objects.record(object)?;
        }
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
            // Null is unlike anything.
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
            return match self.objects.string(object) {
                Some(text) => compare_text(&text, *operator, literal),
                None => *operator == Operator::NotEqual,
            };
        }
        let Some(label) = object.and_then(|object| self.labels.whole(object)) else {
            return *operator == Operator::NotEqual;
        };
        if is_in(&self.numbers) {
            compare_number(&label, *operator, literal)
        } else {
            compare_other(&label, *operator, literal)
        }
    }
}

fn length(elements: u32) -> Bits {
    Bits { kind: BasicType::Long, bits: elements.into() }
}

impl Condition {
    /// Whether the condition can hold for objects of some classes. `places` are those of each field of its path.
    fn check(
        &self,
        summary: &Summary,
        classes: &ClassSet,
        places: &[Vec<Option<Place>>],
    ) -> Result<(), ConditionError> {
        let Some(class) = classes.classes().next() else { return Ok(()) };
        let is_array = |class: ClassNumber| {
            summary.class(class).is_some_and(|class| summary.class_name(class).ends_with("[]"))
        };
        for (step, (name, places)) in self.path.iter().zip(places).enumerate() {
            let mut kinds: Vec<BasicType> = Vec::new();
            for (class, place) in (0u32..).map(ClassNumber).zip(places) {
                // What is behind a reference can be of any class.
                if step == 0 && !classes.contains(class) {
                    continue;
                }
                let length = || (name == LENGTH && is_array(class)).then_some(BasicType::Long);
                let kind = place.map(|place| place.kind).or_else(length);
                kinds.extend(kind.filter(|kind| !kinds.contains(kind)));
            }
            let Some(kind) = kinds.first() else {
                let row = summary.class(class).filter(|_| step == 0);
                return Err(ConditionError::NoField {
                    condition: self.written.clone(),
                    name: name.clone(),
                    class: row.map_or("any class", |row| summary.class_name(row)).to_owned(),
                    fields: row.map_or(String::new(), |_| fields_in_words(summary, class)),
                });
            };
            let is_last = step + 1 == self.path.len();
            let fits = |kind: BasicType| if is_last { self.fits(kind) } else { kind == BasicType::Object };
            if !kinds.iter().copied().any(fits) {
                return Err(if is_last {
                    ConditionError::Type {
                        condition: self.written.clone(),
                        name: name.clone(),
                        kind: kind_in_words(*kind),
                        value: self.literal.text.clone(),
                        hint: if self.operator == Operator::Contains { "; ~ is for texts" } else { "" },
                    }
                } else {
                    ConditionError::NoReference {
                        condition: self.written.clone(),
                        name: name.clone(),
                        kind: kind_in_words(*kind),
                    }
                });
            }
        }
        Ok(())
    }

    /// Whether values of a type can be compared like that.
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

fn kind_in_words(kind: BasicType) -> &'static str {
    match kind {
        BasicType::Object => "a reference",
        BasicType::Boolean => "a boolean",
        BasicType::Char => "a char",
        BasicType::Float | BasicType::Double => "a number",
        BasicType::Byte | BasicType::Short | BasicType::Int | BasicType::Long => "a whole number",
    }
}

/// The first fields of a class and of its superclasses.
fn fields_in_words(summary: &Summary, class: ClassNumber) -> String {
    let chain = summary.class_table().upwards(class);
    // A chain is as long as there are classes, and most of them may have no field.
    let rows = chain.take(1000).filter_map(|class| summary.class(class));
    let mut names: Vec<&str> =
        rows.flat_map(|row| summary.fields(row)).map(|(name, _)| name).take(NAMED + 1).collect();
    if names.is_empty() {
        return String::new();
    }
    if names.len() > NAMED {
        names.truncate(NAMED);
        names.push("...");
    }
    format!("; its fields are {}", names.join(", "))
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
        assert_eq!(
            (parsed.path, parsed.operator),
            (vec!["a".to_owned(), "b$c".to_owned()], Operator::AtLeast)
        );
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
            compare_number(label, operator, &literal)
        };
        assert!(label("x > 9", "10") && label("x = 1.5", "1.5") && label("x = RUNNING", "RUNNING"));
        assert!(label("x ~ UNN", "RUNNING") && !label("x = 7", "RUNNING"));
    }
}
