//! Fields by name, and fields of the objects in them: `holder.daemon`.

use crate::objects::class_set::ClassSet;
use crate::objects::reader::{Bits, FieldPlace, ObjectReader, ObjectRecord};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_values::BasicType;

use super::error::ConditionError;

/// Length of an array, as Java names it.
const LENGTH: &str = "length";
/// Maximum number of fields listed if a field does not exist.
const NAMED: usize = 12;

/// A field, optionally followed by fields of the objects in it: at least one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPath(Vec<String>);

/// Locations of the fields of a path: by step, then by class number.
pub type StepPlaces = Vec<Vec<Option<FieldPlace>>>;

impl FieldPath {
    /// Parses `a`, `a.b`; `None` if a name is missing.
    pub fn new(text: &str) -> Option<Self> {
        let names: Vec<String> = text.trim().split('.').map(|name| name.trim().to_owned()).collect();
        (!names.iter().any(String::is_empty)).then_some(Self(names))
    }

    /// Returns the last field name of the path.
    pub(super) fn last(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }

    /// Returns the locations of the fields of the path.
    pub fn places(&self, objects: &ObjectReader<'_>) -> StepPlaces {
        self.0.iter().map(|name| objects.places(name)).collect()
    }

    /// Returns the value at the end of the path; `None` if a field or an object on it is missing.
    pub fn value(
        &self,
        objects: &ObjectReader<'_>,
        mut object: ObjectIndex,
        record: &ObjectRecord<'_>,
        places: &StepPlaces,
    ) -> Option<Bits> {
        let mut record = *record;
        let mut steps = self.0.iter().zip(places);
        let (mut name, mut by_class) = steps.next()?;
        loop {
            let value = match record {
                ObjectRecord::Instance(instance) => {
                    let class = objects.graph.objects.class(object)?;
                    let place = (*by_class.get(class.0 as usize)?)?;
                    objects.value_at(instance.fields, place)?
                }
                ObjectRecord::ObjectArray(array) if name == LENGTH => length(array.length),
                ObjectRecord::PrimitiveArray(array) if name == LENGTH => length(array.length),
                _ => return None,
            };
            let Some(next) = steps.next() else { return Some(value) };
            (name, by_class) = next;
            object = objects.object(value)?;
            record = objects.record(object)?;
        }
    }

    /// Checks that the path can lead to a value from objects of the given classes. Returns the possible types of the value;
    /// none if there is no class.
    pub(super) fn check(
        &self,
        written: &str,
        summary: &Summary,
        classes: &ClassSet,
        places: &StepPlaces,
    ) -> Result<Vec<BasicType>, ConditionError> {
        let Some(class) = classes.classes().next() else { return Ok(Vec::new()) };
        let is_array = |class: ClassNumber| {
            summary.class(class).is_some_and(|class| summary.class_name(class).ends_with("[]"))
        };
        let mut kinds: Vec<BasicType> = Vec::new();
        for (step, (name, places)) in self.0.iter().zip(places).enumerate() {
            kinds.clear();
            for (class, place) in (0u32..).map(ClassNumber).zip(places) {
                // The referenced object can be of any class.
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
                    condition: written.to_owned(),
                    name: name.clone(),
                    class: row.map_or("any class", |row| summary.class_name(row)).to_owned(),
                    fields: row.map_or(String::new(), |_| fields_in_words(summary, class)),
                });
            };
            let is_last = step + 1 == self.0.len();
            if !is_last && !kinds.contains(&BasicType::Object) {
                return Err(ConditionError::NoReference {
                    condition: written.to_owned(),
                    name: name.clone(),
                    kind: kind_in_words(*kind),
                });
            }
        }
        Ok(kinds)
    }
}

fn length(elements: u32) -> Bits {
    Bits { kind: BasicType::Long, bits: elements.into() }
}

/// Returns the name of a type for messages.
pub(super) fn kind_in_words(kind: BasicType) -> &'static str {
    match kind {
        BasicType::Object => "a reference",
        BasicType::Boolean => "a boolean",
        BasicType::Char => "a char",
        BasicType::Float | BasicType::Double => "a floating-point number",
        BasicType::Byte | BasicType::Short | BasicType::Int | BasicType::Long => "an integer",
    }
}

/// Returns a list of the first fields of a class and of its superclasses, for messages.
fn fields_in_words(summary: &Summary, class: ClassNumber) -> String {
    let chain = summary.class_table().upwards(class);
    // A chain can be as long as there are classes, and most of them may have no field.
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
