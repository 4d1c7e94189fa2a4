//! Fields that paths do not lead through, named by their class: `java.util.HashMap.table`.

use std::fmt;
use std::str::FromStr;

use rustc_hash::{FxHashMap, FxHashSet};

use hprof_base::naming::suggestions::names_like;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_values::BasicType;

use super::reference_kind::ReferenceKind;

/// Name of a field: a class in Java source form, and one of its instance fields or static fields, inherited ones included.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldOfClass {
    class: String,
    field: String,
}

impl fmt::Display for FieldOfClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.class, self.field)
    }
}

impl FromStr for FieldOfClass {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.rsplit_once('.') {
            Some((class, field)) if !class.is_empty() && !field.is_empty() && !text.contains(' ') => {
                Ok(Self { class: class.to_owned(), field: field.to_owned() })
            }
            _ => Err(format!("expected CLASS.FIELD, such as java.util.HashMap.table, found '{text}'")),
        }
    }
}

/// Reads a list of fields: one on each line, as jhat's `-exclude` reads it. Blank lines and lines that start with `#` are
/// skipped.
///
/// # Errors
/// The numbers of all lines that name no field, from 1, with the reason.
pub fn parse_list(text: &str) -> Result<Vec<FieldOfClass>, Vec<(usize, String)>> {
    let (mut fields, mut errors) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match line.parse() {
            Ok(field) => fields.push(field),
            Err(error) => errors.push((number, error)),
        }
    }
    if errors.is_empty() { Ok(fields) } else { Err(errors) }
}

/// A name that no field of the dump has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSuchField {
    /// The class is not in the dump.
    #[error("{field}: the dump has no class {}{}", field.class, did_you_mean(similar))]
    Class {
        /// Requested field.
        field: FieldOfClass,
        /// Similar names of classes.
        similar: Vec<String>,
    },
    /// The class has no such field.
    #[error("{field}: {} has no field {} with a reference{}", field.class, field.field, did_you_mean(similar))]
    Field {
        /// Requested field.
        field: FieldOfClass,
        /// Similar names of fields.
        similar: Vec<String>,
    },
}

fn did_you_mean(similar: &[String]) -> String {
    if similar.is_empty() { String::new() } else { format!("; did you mean {}?", similar.join(", ")) }
}

/// Excluded fields of a dump.
#[derive(Debug, Default)]
pub struct ExcludedFields {
    /// Names of instance fields and of the classes that declare them, by the class of the instance.
    instance: FxHashMap<ClassNumber, FxHashSet<(String, String)>>,
    /// Names of static fields by class.
    statics: FxHashMap<ClassNumber, FxHashSet<String>>,
}

impl ExcludedFields {
    /// Finds the fields in a dump. Fields of a class are also those of its subclasses, and of all loaders' classes of its name.
    ///
    /// # Errors
    /// [`NoSuchField`] for each name that no field has.
    pub fn resolve(summary: &Summary, fields: &[FieldOfClass]) -> Result<Self, Vec<NoSuchField>> {
        let mut excluded = Self::default();
        let mut missing = Vec::new();
        for field in fields {
            missing.extend(excluded.add(summary, field).err());
        }
        if missing.is_empty() { Ok(excluded) } else { Err(missing) }
    }

    /// Returns whether no field is excluded.
    pub fn is_empty(&self) -> bool {
        self.instance.is_empty() && self.statics.is_empty()
    }

    fn add(&mut self, summary: &Summary, field: &FieldOfClass) -> Result<(), NoSuchField> {
        let named = summary.numbered_classes().filter(|(_, class)| summary.is_named(class, &field.class));
        let named: Vec<ClassNumber> = named.map(|(number, _)| number).collect();
        if named.is_empty() {
            let names = summary.classes().iter().map(|class| summary.class_name(class));
            let similar = names_like(&field.class, names).into_iter().map(str::to_owned).collect();
            return Err(NoSuchField::Class { field: field.clone(), similar });
        }
        let mut is_found = false;
        for class in &named {
            let superclasses = |class: &ClassNumber| summary.class_table().superclass(*class);
            let is_static = |class: &ClassNumber| {
                summary.class(*class).is_some_and(|row| {
                    let mut statics = summary.statics(row);
                    statics.any(|(name, kind, _)| name == field.field && kind == BasicType::Object)
                })
            };
            if let Some(class) = std::iter::successors(Some(*class), superclasses).find(is_static) {
                self.statics.entry(class).or_default().insert(field.field.clone());
                is_found = true;
            }
            let Some(declaring) = declaring_class(summary, *class, &field.field) else { continue };
            is_found = true;
            let mut wanted = vec![false; summary.classes().len()];
            if let Some(wanted) = wanted.get_mut(class.0 as usize) {
                *wanted = true;
            }
            summary.class_table().add_subclasses(&mut wanted);
            let classes = (0..).map(ClassNumber).zip(wanted).filter(|(_, is_wanted)| *is_wanted);
            for (class, _) in classes {
                let fields = self.instance.entry(class).or_default();
                fields.insert((field.field.clone(), declaring.to_owned()));
            }
        }
        if is_found {
            return Ok(());
        }
        let names = named.iter().flat_map(|class| reference_names(summary, *class));
        let similar = names_like(&field.field, names).into_iter().map(str::to_owned).collect();
        Err(NoSuchField::Field { field: field.clone(), similar })
    }

    /// Returns whether a reference is excluded; `class` is the class of the instance, or the class of a class object.
    pub(super) fn contains(&self, class: ClassNumber, kind: &ReferenceKind<'_>) -> bool {
        match kind {
            ReferenceKind::Field { name, class: declaring } => {
                let fields = self.instance.get(&class);
                fields.is_some_and(|fields| {
                    fields.iter().any(|(field, class)| field == name && class == declaring)
                })
            }
            ReferenceKind::Static(name) => {
                self.statics.get(&class).is_some_and(|fields| fields.contains(*name))
            }
            _ => false,
        }
    }

    /// Returns whether fields of instances of a class are excluded.
    pub(super) fn has_instance_fields(&self, class: ClassNumber) -> bool {
        self.instance.contains_key(&class)
    }

    /// Returns whether static fields of a class are excluded.
    pub(super) fn has_statics(&self, class: ClassNumber) -> bool {
        self.statics.contains_key(&class)
    }
}

/// Returns the name of the nearest class that declares a reference field, from `class` upwards.
fn declaring_class<'s>(summary: &'s Summary, class: ClassNumber, field: &str) -> Option<&'s str> {
    let mut level = Some(class);
    while let Some(number) = level {
        let row = summary.class(number)?;
        if summary.fields(row).any(|(name, kind)| name == field && kind == BasicType::Object) {
            return Some(summary.class_name(row));
        }
        level = summary.class_table().superclass_with_fields(number);
    }
    None
}

/// Returns the names of the reference fields of a class, with inherited ones.
fn reference_names(summary: &Summary, class: ClassNumber) -> Vec<&str> {
    let above = |class: &ClassNumber| summary.class_table().superclass_with_fields(*class);
    let mut names = Vec::new();
    for row in std::iter::successors(Some(class), above).filter_map(|class| summary.class(class)) {
        names
            .extend(summary.fields(row).filter(|(_, kind)| *kind == BasicType::Object).map(|(name, _)| name));
        let statics = summary.statics(row).filter(|(_, kind, _)| *kind == BasicType::Object);
        names.extend(statics.map(|(name, ..)| name));
    }
    names
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_fields() {
        let list = parse_list("# jhat\n\n java.util.HashMap.table \r\na.B$C.d\n").unwrap();
        assert_eq!(
            list.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["java.util.HashMap.table", "a.B$C.d"]
        );
        let errors = parse_list("table\na.b\n.x\na.\na b.c\n").unwrap_err();
        assert_eq!(errors.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 3, 4, 5]);
    }
}
