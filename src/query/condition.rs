//! Conditions on the fields of objects: `count > 100`, `name ~ "worker"`, `next != null`.

use std::cmp::Ordering;
use std::str::FromStr;

use crate::hprof::BasicType;
use crate::index::summary::{ClassNumber, Summary};

use super::hierarchy::{FieldPlace, Hierarchy};
use super::instances::ClassSet;
use super::label::Labels;
use super::objects::{Bits, Characters, Objects, Record};
use super::select;

/// The length of an array, as Java names it.
const LENGTH: &str = "length";
/// Fields that are named when there is no such field.
const NAMED: usize = 12;

/// How a value is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
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
    /// Whether values that compare like that are meant; `None` stands for values that have no order.
    fn accepts(self, ordering: Option<Ordering>) -> bool {
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

    /// Whether only "the same" or "not the same" is asked.
    fn is_equality(self) -> bool {
        matches!(self, Self::Equal | Self::NotEqual)
    }
}

/// A value as it was written, and all that it can mean.
#[derive(Debug, Clone, PartialEq)]
struct Literal {
    /// The text in UTF-16, without its quotes.
    units: Vec<u16>,
    text: String,
    is_null: bool,
    boolean: Option<bool>,
    integer: Option<i64>,
    float: Option<f64>,
    /// As a `float` of Java: 0.1 is not the same number there.
    single: Option<f32>,
    /// An object id.
    id: Option<u64>,
    /// Where each start of the text can go on when it breaks off: for the search in linear time.
    borders: Vec<usize>,
}

impl Literal {
    fn new(written: &str) -> Self {
        let quoted = ['"', '\''].into_iter().find_map(|quote| {
            let text = written.strip_prefix(quote)?.strip_suffix(quote)?;
            (written.len() >= 2).then_some(text)
        });
        let text = quoted.unwrap_or(written).to_owned();
        // What stands in quotes is a text and nothing else.
        let plain = if quoted.is_none() { written } else { "" };
        let hex = plain.strip_prefix("0x").or_else(|| plain.strip_prefix("0X"));
        let hex = hex.and_then(|digits| i64::from_str_radix(digits, 16).ok());
        let units: Vec<u16> = text.encode_utf16().collect();
        Self {
            borders: borders(&units),
            units,
            text,
            is_null: plain == "null",
            boolean: plain.parse().ok(),
            integer: plain.parse().ok().or(hex),
            float: plain.parse().ok(),
            single: plain.parse().ok(),
            id: select::object_id(plain).ok(),
        }
    }

    /// The only UTF-16 unit of the text.
    fn unit(&self) -> Option<u16> {
        match self.units.as_slice() {
            [unit] => Some(*unit),
            _ => None,
        }
    }

    fn is_number(&self) -> bool {
        self.integer.is_some() || self.float.is_some()
    }
}

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
#[error("`{0}` is no condition; conditions look like 'count > 100', 'name ~ worker', 'next != null'")]
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
pub enum Senseless {
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
    /// The field has another type.
    #[error("{condition}: `{name}` is {kind}, and `{value}` is none{hint}")]
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
    places: Vec<Vec<Vec<Option<FieldPlace>>>>,
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
    ) -> Result<Self, Senseless> {
        let hierarchy = Hierarchy::new(objects.summary);
        let places: Vec<Vec<Vec<Option<FieldPlace>>>> = (conditions.iter())
            .map(|condition| {
                let path = condition.path.iter();
                path.map(|name| hierarchy.places_of(objects.summary, name)).collect()
            })
            .collect();
        for (condition, places) in conditions.iter().zip(&places) {
            let first = places.first().map_or(&[][..], Vec::as_slice);
            condition.check(objects.summary, &hierarchy, classes, first)?;
        }
        Ok(Self { objects, labels, conditions, places })
    }

    /// Calls `take` with those of 64 objects that match: from `first` on, those whose bits are set.
    pub fn matching(&self, first: u32, wanted: u64, mut take: impl FnMut(u32)) {
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
    pub fn matches(&self, object: u32, record: &Record<'_>) -> bool {
        let pairs = self.conditions.iter().zip(&self.places);
        pairs.into_iter().all(|(condition, places)| {
            let value = self.value(object, record, condition, places);
            value.is_some_and(|value| self.compare(value, condition))
        })
    }

    /// The value at the end of a path; `None` if it leads nowhere.
    fn value(
        &self,
        mut object: u32,
        record: &Record<'_>,
        condition: &Condition,
        places: &[Vec<Option<FieldPlace>>],
    ) -> Option<Bits> {
        let mut record = *record;
        let mut steps = condition.path.iter().zip(places);
        let (mut name, mut by_class) = steps.next()?;
        loop {
            let value = match record {
                Record::Instance(instance) => {
                    let class = self.objects.graph.objects.class(object)?;
                    let place = (*by_class.get(class.0 as usize)?)?;
                    let bits = place.bits(instance.fields, self.objects.summary.id_size())?;
                    Bits { kind: place.kind, bits }
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
        let object = self.objects.object(value);
        if let Some(text) = object.and_then(|object| self.objects.string(object)) {
            return compare_text(&text, *operator, literal);
        }
        if let Some(id) = literal.id {
            return operator.accepts(Some(value.bits.cmp(&id))) && operator.is_equality();
        }
        let Some(label) = object.and_then(|object| self.labels.label(object)) else {
            return *operator == Operator::NotEqual;
        };
        compare_label(&label, *operator, literal)
    }
}

fn length(elements: u32) -> Bits {
    Bits { kind: BasicType::Long, bits: elements.into() }
}

#[allow(clippy::cast_possible_truncation)] // The upper bits of smaller types are zero.
fn compare_primitive(value: Bits, operator: Operator, literal: &Literal) -> bool {
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

/// The order of two numbers. Here NaN is NaN: that is what was asked for.
fn order(a: f64, b: f64) -> Option<Ordering> {
    if a.is_nan() && b.is_nan() { Some(Ordering::Equal) } else { a.partial_cmp(&b) }
}

fn compare_text(text: &Characters<'_>, operator: Operator, literal: &Literal) -> bool {
    match operator {
        Operator::Contains => contains(text.units(), literal),
        Operator::Equal | Operator::NotEqual => {
            let same = text.len() == literal.units.len() && text.units().eq(literal.units.iter().copied());
            same == (operator == Operator::Equal)
        }
        _ => operator.accepts(Some(text.units().cmp(literal.units.iter().copied()))),
    }
}

/// What labels say of other objects: the number in a box, the name of an enum.
fn compare_label(label: &str, operator: Operator, literal: &Literal) -> bool {
    match (label.parse::<i64>(), label.parse::<f64>()) {
        (Ok(number), _) if literal.is_number() => compare_integer(number, operator, literal),
        (_, Ok(number)) if literal.is_number() => {
            literal.float.is_some_and(|wanted| operator.accepts(order(number, wanted)))
        }
        _ if operator == Operator::Contains => label.contains(&literal.text),
        _ => operator.accepts(Some(label.cmp(&literal.text))),
    }
}

/// For each start of a text: the length of its longest proper end that is a start too.
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

/// How much of `text` has been met behind another unit, when `len` had been met before.
fn advance(text: &[u16], borders: &[usize], mut len: usize, unit: u16) -> usize {
    loop {
        if text.get(len) == Some(&unit) {
            return len + 1;
        }
        let Some(before) = len.checked_sub(1) else { return 0 };
        len = borders.get(before).copied().unwrap_or(0);
    }
}

/// Whether the literal is in a text; in linear time.
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

impl Condition {
    /// Whether the condition can hold for objects of some classes. `places` are those of its first field.
    fn check(
        &self,
        summary: &Summary,
        hierarchy: &Hierarchy,
        classes: &ClassSet,
        places: &[Option<FieldPlace>],
    ) -> Result<(), Senseless> {
        let Some(name) = self.path.first() else { return Ok(()) };
        let is_array = |class: ClassNumber| {
            summary.class(class).is_some_and(|class| summary.class_name(class).ends_with("[]"))
        };
        let mut kinds: Vec<BasicType> = Vec::new();
        let mut any_class = None;
        for class in classes.classes() {
            any_class = any_class.or(Some(class));
            let place = places.get(class.0 as usize).copied().flatten();
            let length = (name == LENGTH && is_array(class)).then_some(BasicType::Long);
            kinds.extend(place.map(|place| place.kind).or(length).filter(|kind| !kinds.contains(kind)));
        }
        let Some(class) = any_class else { return Ok(()) };
        if let Some(kind) = kinds.first() {
            let fits = self.path.len() > 1 || kinds.iter().any(|kind| self.fits(*kind));
            if fits {
                return Ok(());
            }
            return Err(Senseless::Type {
                condition: self.written.clone(),
                name: name.clone(),
                kind: kind_in_words(*kind),
                value: self.literal.text.clone(),
                hint: if self.operator == Operator::Contains { "; ~ is for texts" } else { "" },
            });
        }
        let row = summary.class(class);
        Err(Senseless::NoField {
            condition: self.written.clone(),
            name: name.clone(),
            class: row.map_or("", |row| summary.class_name(row)).to_owned(),
            fields: fields_in_words(summary, hierarchy, class),
        })
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
fn fields_in_words(summary: &Summary, hierarchy: &Hierarchy, class: ClassNumber) -> String {
    let chain = std::iter::successors(Some(class), |class| hierarchy.parent(*class));
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
            compare_label(label, operator, &literal)
        };
        assert!(label("x > 9", "10") && label("x = 1.5", "1.5") && label("x = RUNNING", "RUNNING"));
        assert!(label("x ~ UNN", "RUNNING") && !label("x = 7", "RUNNING"));
    }
}
