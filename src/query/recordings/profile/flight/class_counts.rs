//! Objects by class over time, from `jdk.ObjectCount`, which stops the program and is off by default.
//!
//! The JVM writes an event for each class that makes up at least half a percent of the heap (`ObjectCountEventSender` in JDK's
//! `objectCountEventSender.cpp`): `jdk.ObjectCount` after a collection made for this purpose, `jdk.ObjectCountAfterGC` after
//! each collection that visits all objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use hprof_jfr::{Chunk, Record};

use super::names::ConstantNames;
use hprof_base::sorting::SortRows;

/// Maximum number of classes.
const MAX_CLASSES: usize = 1 << 14;

/// Objects of a class over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassOverTime {
    /// Name of the class.
    pub class: Arc<str>,
    /// Number of times that objects of the class were counted.
    pub counts: u64,
    /// First count of the class.
    pub first: ClassCount,
    /// Last count of the class.
    pub last: ClassCount,
    /// `true` if the last of all counts contains the class. Otherwise it may no longer have objects.
    pub is_in_last_count: bool,
}

/// Count of the objects of a class at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClassCount {
    /// Time in nanoseconds since 1970.
    pub nanos: i64,
    /// Number of the garbage collection.
    pub gc_id: i64,
    /// Number of objects.
    pub instances: u64,
    /// Shallow size of all objects in bytes.
    pub bytes: u64,
}

impl ClassOverTime {
    fn new(class: Arc<str>, count: ClassCount) -> Self {
        Self { class, counts: 1, first: count, last: count, is_in_last_count: true }
    }

    /// Returns the growth in bytes, if the class grew, was counted more than once and is in the last count.
    pub fn growth(&self) -> Option<u64> {
        let growth = self.last.bytes.checked_sub(self.first.bytes).filter(|growth| *growth > 0);
        growth.filter(|_| self.counts > 1 && self.is_in_last_count)
    }

    fn add(&mut self, count: ClassCount) {
        // Classes of several loaders can have the same name.
        let is_known = [self.first.gc_id, self.last.gc_id].contains(&count.gc_id);
        for known in [&mut self.first, &mut self.last] {
            if known.gc_id == count.gc_id {
                known.instances = known.instances.saturating_add(count.instances);
                known.bytes = known.bytes.saturating_add(count.bytes);
            }
        }
        if is_known {
            return;
        }
        self.counts = self.counts.saturating_add(1);
        if count.nanos < self.first.nanos {
            self.first = count;
        } else if count.nanos >= self.last.nanos {
            self.last = count;
        }
    }
}

/// Counts of objects by class, from both event types.
#[derive(Debug, Default)]
pub(super) struct ClassCounts {
    /// Counts from `jdk.ObjectCount` and from `jdk.ObjectCountAfterGC`: a JVM with both enabled writes both for one count.
    by_class: [BTreeMap<Arc<str>, ClassOverTime>; 2],
    left_out: u64,
}

impl ClassCounts {
    /// Reads an event; an event without a class or a number is ignored.
    pub(super) fn read(
        &mut self,
        is_after_gc: bool,
        chunk: &Chunk<'_>,
        fields: &Record<'_>,
        names: &mut ConstantNames,
    ) {
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
            self.add(is_after_gc, ClassOverTime::new(class, count));
        }
    }

    /// Adds the counts of another chunk.
    pub(super) fn add_all(&mut self, other: Self) {
        self.left_out += other.left_out;
        for (classes, is_after_gc) in other.by_class.into_iter().zip([false, true]) {
            classes.into_values().for_each(|class| self.add(is_after_gc, class));
        }
    }

    /// Adds other counts of a class. Events are not always ordered by time.
    fn add(&mut self, is_after_gc: bool, other: ClassOverTime) {
        let [counted, after_gc] = &mut self.by_class;
        let by_class = if is_after_gc { after_gc } else { counted };
        if let Some(known) = by_class.get_mut(&other.class) {
            let is_one_count = other.counts == 1;
            known.add(other.first);
            if !is_one_count {
                known.add(other.last);
                known.counts = known.counts.saturating_add(other.counts - 2);
            }
        } else if by_class.len() < MAX_CLASSES {
            by_class.insert(Arc::clone(&other.class), other);
        } else {
            self.left_out = self.left_out.saturating_add(other.counts);
        }
    }

    /// Returns the classes of the last count by descending growth, then the other classes, and the number of counts that were
    /// left out. The JVM leaves out classes that have become small, so the other classes may be gone.
    pub(super) fn finish(self) -> (Vec<ClassOverTime>, u64) {
        let [counted, after_gc] = self.by_class;
        let classes = if after_gc.is_empty() { counted } else { after_gc };
        let mut classes: Vec<ClassOverTime> = classes.into_values().collect();
        let latest = classes.iter().map(|of| (of.last.nanos, of.last.gc_id)).max();
        for class in &mut classes {
            class.is_in_last_count = latest.is_some_and(|(_, gc_id)| class.last.gc_id == gc_id);
        }
        let growth = |of: &ClassOverTime| i128::from(of.last.bytes) - i128::from(of.first.bytes);
        let order = |of: &ClassOverTime| (!of.is_in_last_count, -growth(of));
        classes.sort_rows_by(|a, b| order(a).cmp(&order(b)).then_with(|| a.class.cmp(&b.class)));
        (classes, self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns counts of a class, given as number of the collection and bytes.
    fn counts(of: &[(&str, &[(i64, u64)])]) -> ClassCounts {
        let mut all = ClassCounts::default();
        for (class, counts) in of {
            for (gc_id, bytes) in *counts {
                let count =
                    ClassCount { nanos: 10 * gc_id, gc_id: *gc_id, instances: bytes / 10, bytes: *bytes };
                all.add(false, ClassOverTime::new((*class).into(), count));
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
                ("b".to_owned(), 3, 50, 20, None),
                // The last count does not contain it.
                ("a".to_owned(), 3, 100, 200, None),
                ("once".to_owned(), 1, 7, 7, None),
            ]
        );
    }

    #[test]
    fn classes_of_several_loaders_are_added_up() {
        let mut all = counts(&[("a", &[(1, 10), (1, 30), (2, 100), (2, 20)])]);
        assert_eq!(rows(counts(&[("a", &[(1, 10), (1, 30)])])), [("a".to_owned(), 1, 40, 40, None)]);
        // One count that is split between two chunks.
        all.add_all(counts(&[("a", &[(2, 5), (3, 500)])]));
        assert_eq!(rows(all), [("a".to_owned(), 3, 40, 500, Some(460))]);
    }

    /// With both events enabled the JVM writes both for one count.
    #[test]
    fn the_two_events_are_not_added_up() {
        let mut all = counts(&[("a", &[(1, 100), (2, 300)])]);
        for (gc_id, bytes) in [(1, 100), (2, 300), (3, 400)] {
            let count = ClassCount { nanos: 10 * gc_id, gc_id, instances: 1, bytes };
            all.add(true, ClassOverTime::new("a".into(), count));
        }
        assert_eq!(rows(all), [("a".to_owned(), 3, 100, 400, Some(300))]);
    }

    #[test]
    fn counts_are_in_the_order_of_time() {
        let mut all = counts(&[("a", &[(3, 300), (2, 200)])]);
        all.add_all(counts(&[("a", &[(1, 100)])]));
        assert_eq!(rows(all), [("a".to_owned(), 3, 100, 300, Some(200))]);
    }

    #[test]
    fn too_many_classes_are_counted() {
        let mut all = ClassCounts::default();
        for class in 0..=MAX_CLASSES {
            let class: Arc<str> = format!("c{class}").into();
            let count = ClassCount::default();
            all.add(false, ClassOverTime::new(class, count));
        }
        let (classes, left_out) = all.finish();
        assert_eq!((classes.len(), left_out), (MAX_CLASSES, 1));
    }
}
