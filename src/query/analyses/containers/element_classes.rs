//! Classes of a container's elements, and their common name.

use std::borrow::Cow;
use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use hprof_index::model::summary::{ClassNumber, Summary};

use super::ElementClass;
use super::structures::is_general;
use hprof_base::naming::stable_names::stem;

/// Maximum number of classes that are reported.
const MAX_ROWS: usize = 64;
/// Maximum number of superclasses of a class that are examined.
const MAX_ABOVE: usize = 64;

/// Maximum length in bytes of a class name that is stored: compilers do not write longer ones.
const MAX_NAME: usize = 4096;

/// Counts of elements by class.
#[derive(Debug, Default)]
pub(super) struct Classes {
    by_class: FxHashMap<Option<ClassNumber>, (u64, u64)>,
    count: u64,
    bytes: u64,
    largest_bytes: u64,
}

/// Counts of the elements of one class.
#[derive(Debug, Clone, Copy)]
pub(super) struct ElementTally {
    pub(super) count: u64,
    pub(super) bytes: u64,
    pub(super) largest_bytes: u64,
}

impl Classes {
    /// Adds elements of a class.
    pub(super) fn add(&mut self, class: Option<ClassNumber>, added: ElementTally) {
        let known = self.by_class.entry(class).or_default();
        (known.0, known.1) = (known.0 + added.count, known.1.saturating_add(added.bytes));
        self.count += added.count;
        self.bytes = self.bytes.saturating_add(added.bytes);
        self.largest_bytes = self.largest_bytes.max(added.largest_bytes);
    }

    /// Adds the counts of other elements.
    pub(super) fn add_all(&mut self, other: Self) {
        for (class, (count, bytes)) in other.by_class {
            let known = self.by_class.entry(class).or_default();
            (known.0, known.1) = (known.0 + count, known.1.saturating_add(bytes));
        }
        self.count += other.count;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.largest_bytes = self.largest_bytes.max(other.largest_bytes);
    }

    /// Returns number and retained size of the elements by class name. Classes that a JVM generates, such as lambdas of one
    /// method, share a name.
    fn by_name<'s>(&self, summary: &'s Summary) -> FxHashMap<Cow<'s, str>, (u64, u64)> {
        let mut found: FxHashMap<Cow<'s, str>, (u64, u64)> = FxHashMap::default();
        for (class, (count, bytes)) in &self.by_class {
            let name = class.and_then(|class| summary.class(class)).map_or("", |row| summary.class_name(row));
            let known = found.entry(stem(name)).or_default();
            (known.0, known.1) = (known.0 + count, known.1.saturating_add(*bytes));
        }
        found
    }

    /// Returns the number of classes, counting those that share a name once.
    pub(super) fn classes(&self, summary: &Summary) -> u64 {
        self.by_name(summary).len() as u64
    }

    /// Returns the retained size of the largest element, in bytes.
    pub(super) fn largest_bytes(&self) -> u64 {
        self.largest_bytes
    }

    /// Returns the number of elements.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the total retained size of the elements in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the classes, most elements first; at most 64.
    pub(super) fn rows(&self, summary: &Summary) -> Vec<ElementClass> {
        let by_name = self.by_name(summary).into_iter().filter(|(name, _)| name.len() <= MAX_NAME);
        let mut rows: Vec<(Cow<'_, str>, (u64, u64))> = by_name.collect();
        rows.sort_by(|(a, (more, _)), (b, (less, _))| less.cmp(more).then_with(|| a.cmp(b)));
        rows.truncate(MAX_ROWS);
        let row = |(class, (elements, retained_bytes)): (Cow<'_, str>, (u64, u64))| ElementClass {
            class: class.into_owned(),
            elements,
            retained_bytes,
        };
        rows.into_iter().map(row).collect()
    }

    /// Returns the common class name, and `false`: the only class, or the nearest informative common superclass. If there is
    /// none, returns the class of more than half of the elements, and `true`.
    pub(super) fn name(&self, summary: &Summary) -> Option<(String, bool)> {
        let by_name = self.by_name(summary);
        let most = by_name.iter().map(|(name, (count, _))| (*count, Reverse(name))).max();
        let (of_most, Reverse(most)) =
            most.filter(|(_, most)| !most.0.is_empty() && most.0.len() <= MAX_NAME)?;
        if by_name.len() == 1 {
            return Some((most.clone().into_owned(), false));
        }
        let table = summary.class_table();
        let name = |class: ClassNumber| summary.class(class).map_or("", |row| summary.class_name(row));
        let upwards = |class: ClassNumber| table.upwards(class).take(MAX_ABOVE);
        let largest = self.by_class.iter().map(|(class, (count, _))| (*count, Reverse(*class))).max();
        let largest = largest.and_then(|(_, Reverse(class))| class);
        // Superclasses of the most frequent class, nearest first, that all other classes share.
        let mut common: Vec<ClassNumber> =
            largest.into_iter().flat_map(upwards).filter(|above| !is_general(name(*above))).collect();
        for class in self.by_class.keys() {
            let above: Vec<ClassNumber> = class.iter().copied().flat_map(upwards).collect();
            common.retain(|class| above.contains(class));
            if common.is_empty() {
                break;
            }
        }
        match common.first().map(|common| name(*common)) {
            Some(common) if !common.starts_with("java.util.Abstract") => Some((common.to_owned(), false)),
            _ => (of_most * 2 > self.count).then(|| (most.clone().into_owned(), true)),
        }
    }
}
