//! Objects by class over time: `jdk.ObjectCount`, which stops the program and is off by default.
//!
//! The JVM writes an event for each class that makes up at least half a percent of the heap (`ObjectCountEventSender` in JDK's
//! `objectCountEventSender.cpp`), after a collection that it makes for that.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use hprof_jfr::{Chunk, Record};

use super::stacks::Names;
use crate::sorting::SortRows;

/// Maximum number of classes.
const MAX_CLASSES: usize = 1 << 14;

/// Objects of a class over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassOverTime {
    /// Name.
    pub class: Arc<str>,
    /// Number of times that its objects were counted.
    pub counts: u64,
    /// First count.
    pub first: ClassCount,
    /// Last count.
    pub last: ClassCount,
}

/// Objects of a class at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClassCount {
    /// Time in nanoseconds since 1970.
    pub nanos: i64,
    /// Number of the collection.
    pub gc_id: i64,
    /// Number of objects.
    pub instances: u64,
    /// Shallow size of all of them.
    pub bytes: u64,
}

impl ClassOverTime {
    /// Returns by how many bytes it grew, if it was counted more than once.
    pub fn growth(&self) -> Option<u64> {
        self.last.bytes.checked_sub(self.first.bytes).filter(|growth| self.counts > 1 && *growth > 0)
    }
}

/// Counts of classes, in the order of the file.
#[derive(Debug, Default)]
pub(super) struct ClassCounts {
    by_class: FxHashMap<Arc<str>, ClassOverTime>,
    left_out: u64,
}

impl ClassCounts {
    /// Reads an event; one without a class or a number counts nothing.
    pub(super) fn read(&mut self, chunk: &Chunk<'_>, fields: &Record<'_>, names: &mut Names) {
        let number = |name| fields.integer(name).and_then(|number| u64::try_from(number).ok());
        let mut class = || names.class(fields.constant("objectClass")?);
        let count = || {
            Some(ClassCount {
                nanos: chunk.nanos(fields.integer("startTime")?),
                gc_id: fields.integer("gcId")?,
                instances: number("count")?,
                bytes: number("totalSize")?,
            })
        };
        if let Some((count, class)) = count().zip(class()) {
            self.add(ClassOverTime { class, counts: 1, first: count, last: count });
        }
    }

    /// Adds the counts of a later chunk.
    pub(super) fn add_all(&mut self, later: Self) {
        self.left_out += later.left_out;
        later.by_class.into_values().for_each(|class| self.add(class));
    }

    /// Adds later counts of a class.
    fn add(&mut self, later: ClassOverTime) {
        if let Some(known) = self.by_class.get_mut(&later.class) {
            // Classes of several loaders have one name.
            if known.last.gc_id == later.first.gc_id {
                let (more, is_first) = (later.first, known.counts == 1);
                let sum = |of: ClassCount| ClassCount {
                    instances: of.instances.saturating_add(more.instances),
                    bytes: of.bytes.saturating_add(more.bytes),
                    ..of
                };
                known.last = if later.counts == 1 { sum(known.last) } else { later.last };
                known.first = if is_first { sum(known.first) } else { known.first };
                known.counts += later.counts - 1;
            } else {
                known.counts = known.counts.saturating_add(later.counts);
                known.last = later.last;
            }
        } else if self.by_class.len() < MAX_CLASSES {
            self.by_class.insert(Arc::clone(&later.class), later);
        } else {
            self.left_out = self.left_out.saturating_add(later.counts);
        }
    }

    /// Returns the classes, those that grew most first, and the number of counts that were left out.
    pub(super) fn finish(self) -> (Vec<ClassOverTime>, u64) {
        let mut classes: Vec<ClassOverTime> = self.by_class.into_values().collect();
        let growth = |of: &ClassOverTime| i128::from(of.last.bytes) - i128::from(of.first.bytes);
        classes.sort_rows_by(|a, b| growth(b).cmp(&growth(a)).then_with(|| a.class.cmp(&b.class)));
        (classes, self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts of a class: number of the collection, bytes.
    fn counts(of: &[(&str, &[(i64, u64)])]) -> ClassCounts {
        let mut all = ClassCounts::default();
        for (class, counts) in of {
            for (gc_id, bytes) in *counts {
                let count =
                    ClassCount { nanos: 10 * gc_id, gc_id: *gc_id, instances: bytes / 10, bytes: *bytes };
                all.add(ClassOverTime { class: (*class).into(), counts: 1, first: count, last: count });
            }
        }
        all
    }

    fn rows(of: ClassCounts) -> Vec<(String, u64, u64, u64, Option<u64>)> {
        let row = |of: &ClassOverTime| {
            (of.class.to_string(), of.counts, of.first.bytes, of.last.bytes, of.growth())
        };
        of.finish().0.iter().map(row).collect()
    }

    #[test]
    fn the_first_and_the_last_count_of_chunks() {
        let mut all = counts(&[("a", &[(1, 100), (2, 300)]), ("b", &[(1, 50)]), ("once", &[(2, 7)])]);
        all.add_all(counts(&[("a", &[(3, 200)]), ("b", &[(3, 900), (4, 20)]), ("c", &[(3, 10), (4, 510)])]));
        assert_eq!(
            rows(all),
            [
                ("c".to_owned(), 2, 10, 510, Some(500)),
                ("a".to_owned(), 3, 100, 200, Some(100)),
                ("once".to_owned(), 1, 7, 7, None),
                ("b".to_owned(), 3, 50, 20, None),
            ]
        );
    }

    #[test]
    fn classes_of_several_loaders_are_added_up() {
        let mut all = counts(&[("a", &[(1, 10), (1, 30), (2, 100), (2, 20)])]);
        assert_eq!(rows(counts(&[("a", &[(1, 10), (1, 30)])])), [("a".to_owned(), 1, 40, 40, None)]);
        // A count that is in two chunks.
        all.add_all(counts(&[("a", &[(2, 5), (3, 500)])]));
        assert_eq!(rows(all), [("a".to_owned(), 3, 40, 500, Some(460))]);
    }

    #[test]
    fn too_many_classes_are_counted() {
        let mut all = ClassCounts::default();
        for class in 0..=MAX_CLASSES {
            let class: Arc<str> = format!("c{class}").into();
            let count = ClassCount::default();
            all.add(ClassOverTime { class, counts: 1, first: count, last: count });
        }
        let (classes, left_out) = all.finish();
        assert_eq!((classes.len(), left_out), (MAX_CLASSES, 1));
    }
}
