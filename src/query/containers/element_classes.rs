//! Classes of elements, and the name for all of them.

use rustc_hash::FxHashMap;

use hprof_index::model::summary::{ClassNumber, Summary};

use super::ElementClass;
use super::structures::is_general;
use crate::compare::stable_names::stem;

/// Maximum number of classes that are reported.
const MAX_ROWS: usize = 64;
/// Maximum number of superclasses of a class that are examined.
const MAX_ABOVE: usize = 64;

/// Counts of elements by class name. Classes that a JVM generates, such as lambdas of one place, share a name.
#[derive(Debug, Default)]
pub(super) struct Classes {
    by_name: FxHashMap<String, (u64, u64)>,
    by_class: FxHashMap<ClassNumber, u64>,
    count: u64,
    bytes: u64,
    largest_bytes: u64,
}

/// Elements of one class.
#[derive(Debug, Clone, Copy)]
pub(super) struct Elements {
    pub(super) count: u64,
    pub(super) bytes: u64,
    pub(super) largest_bytes: u64,
}

impl Classes {
    pub(super) fn add(&mut self, summary: &Summary, class: Option<ClassNumber>, added: Elements) {
        let Elements { count: elements, bytes, largest_bytes } = added;
        let name = class.and_then(|class| summary.class(class)).map_or("", |row| summary.class_name(row));
        let known = self.by_name.entry(stem(name).into_owned()).or_default();
        (known.0, known.1) = (known.0 + elements, known.1.saturating_add(bytes));
        if let Some(class) = class {
            *self.by_class.entry(class).or_default() += elements;
        }
        self.count += elements;
        self.bytes = self.bytes.saturating_add(bytes);
        self.largest_bytes = self.largest_bytes.max(largest_bytes);
    }

    /// Returns the retained size of the largest element, in bytes.
    pub(super) fn largest_bytes(&self) -> u64 {
        self.largest_bytes
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the classes, most elements first.
    pub(super) fn rows(&self) -> Vec<ElementClass> {
        let row = |(class, (elements, bytes)): (&String, &(u64, u64))| ElementClass {
            class: class.clone(),
            elements: *elements,
            retained_bytes: *bytes,
        };
        let mut rows: Vec<ElementClass> = self.by_name.iter().map(row).collect();
        rows.sort_by(|a, b| b.elements.cmp(&a.elements).then_with(|| a.class.cmp(&b.class)));
        rows.truncate(MAX_ROWS);
        rows
    }

    /// Returns the name for all: the only class, or the nearest common superclass that says something. Otherwise the class
    /// of most elements, and `true` if it is only that.
    pub(super) fn name(&self, summary: &Summary) -> Option<(String, bool)> {
        let (most, of_most) = self
            .by_name
            .iter()
            .map(|(name, (count, _))| (name, *count))
            .max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(a.0)))?;
        if self.by_name.len() == 1 {
            return Some((most.clone(), false)).filter(|(name, _)| !name.is_empty());
        }
        let table = summary.class_table();
        let name = |class: ClassNumber| summary.class(class).map_or("", |row| summary.class_name(row));
        let largest =
            self.by_class.iter().max_by_key(|(class, count)| (**count, std::cmp::Reverse(**class)))?.0;
        let is_above_all = |above: &ClassNumber| {
            self.by_class
                .keys()
                .all(|class| table.upwards(*class).take(MAX_ABOVE).any(|class| class == *above))
        };
        let common = table
            .upwards(*largest)
            .take(MAX_ABOVE)
            .filter(|above| !is_general(name(*above)))
            .find(is_above_all);
        match common {
            Some(common) if !name(common).starts_with("java.util.Abstract") => {
                Some((name(common).to_owned(), false))
            }
            _ => (of_most * 2 > self.count && !most.is_empty()).then(|| (most.clone(), true)),
        }
    }
}
