//! Live objects in the dump of the classes that accumulate in a suspect.

use hprof_base::share::percent;
use rustc_hash::{FxHashMap, FxHashSet};

use hprof_index::Dump;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::summary::ClassNumber;
use hprof_index::objects::reader::ObjectRecord;

use crate::leaks::Suspect;

/// Maximum number of different lengths of arrays; if there are more, no length is typical.
const MAX_LENGTHS: usize = 16;
/// Maximum number of arrays of a class whose lengths are read.
const MAX_READ: u64 = 10_000;

/// Live objects of the classes of a suspect's levels.
#[derive(Debug, Default)]
pub(super) struct LiveObjects {
    classes: FxHashMap<String, LiveClass>,
}

/// Live objects of one class.
#[derive(Debug, Clone, Default)]
pub(super) struct LiveClass {
    objects: u64,
    /// Shallow size in bytes of the suspect's objects of the class.
    pub(super) bytes: u64,
    /// Shallow size in bytes of the objects of the class in the whole dump.
    all_bytes: u64,
    lengths: FxHashSet<u64>,
    sizes: FxHashSet<u64>,
}

impl LiveClass {
    /// Returns the suspect's share of the bytes of the class in the dump, in percent.
    pub(super) fn percent(&self) -> u64 {
        percent(self.bytes, self.all_bytes)
    }

    /// Returns the distinct lengths of arrays, if there are few.
    pub(super) fn lengths(&self) -> Option<&FxHashSet<u64>> {
        Some(&self.lengths).filter(|lengths| (1..=MAX_LENGTHS).contains(&lengths.len()))
    }

    /// Returns the distinct shallow sizes of arrays, if there are few.
    pub(super) fn sizes(&self) -> Option<&FxHashSet<u64>> {
        self.lengths().map(|_| &self.sizes)
    }
}

impl LiveObjects {
    /// Counts the objects that `tops` dominate, by class.
    pub(super) fn count(dump: &Dump<'_>, suspect: &Suspect, tops: &[TreePosition]) -> Self {
        let summary = dump.summary;
        let reader = dump.objects;
        let levels = || suspect.accumulated.iter().filter(|level| !level.is_class_object);
        let mut names: Vec<&str> = levels().map(|level| &*level.class).collect();
        names.sort_unstable();
        names.dedup();
        let mut classes: Vec<LiveClass> = vec![LiveClass::default(); names.len()];
        // Several loaders may define classes of one name.
        let numbers: FxHashMap<ClassNumber, usize> = (summary.numbered_classes())
            .filter_map(|(number, row)| Some((number, names.binary_search(&summary.class_name(row)).ok()?)))
            .collect();
        let each = |visit: &mut dyn FnMut(usize, TreePosition, ObjectIndex)| {
            let positions = tops.iter().flat_map(|top| top.0..dump.graph.tree.end(*top).0).map(TreePosition);
            for position in positions {
                let Some(object) = dump.graph.tree.object_at(position) else { continue };
                let class = dump.graph.objects.class(object).and_then(|class| numbers.get(&class));
                if let Some(class) = class {
                    visit(*class, position, object);
                }
            }
        };
        each(&mut |class, position, _| {
            let Some(class) = classes.get_mut(class) else { return };
            class.objects += 1;
            class.bytes = class.bytes.saturating_add(dump.graph.tree.shallow_bytes(position));
        });
        // The first objects may be of another length, and so may every n-th one, if lengths alternate.
        let mut seen = vec![0u64; classes.len()];
        each(&mut |number, position, object| {
            let (Some(class), Some(seen)) = (classes.get_mut(number), seen.get_mut(number)) else { return };
            let is_read = mix_bits(*seen).is_multiple_of(class.objects.div_ceil(MAX_READ).max(1));
            *seen += 1;
            if !is_read || class.lengths.len() > MAX_LENGTHS {
                return;
            }
            let length = match reader.record(object) {
                Some(ObjectRecord::ObjectArray(array)) => Some(array.length),
                Some(ObjectRecord::PrimitiveArray(array)) => Some(array.length),
                _ => None,
            };
            if let Some(length) = length {
                class.lengths.insert(length.into());
                class.sizes.insert(dump.graph.tree.shallow_bytes(position));
            }
        });
        // All objects of the dump: samples do not show whether the suspect holds them.
        let all_sizes = Sizes::new(summary, None);
        for (number, _) in summary.numbered_classes() {
            if let Some(class) = numbers.get(&number).and_then(|class| classes.get_mut(*class)) {
                class.all_bytes = class.all_bytes.saturating_add(all_sizes.total(number));
            }
        }
        Self { classes: names.into_iter().map(str::to_owned).zip(classes).collect() }
    }

    /// Returns the counts of a class.
    pub(super) fn live_class(&self, class: &str) -> LiveClass {
        self.classes.get(class).cloned().unwrap_or_default()
    }

    /// Returns the total shallow size of the objects of all classes.
    pub(super) fn all_bytes(&self) -> u64 {
        self.classes.values().fold(0, |sum, class| sum.saturating_add(class.bytes))
    }
}

/// Returns a deterministic pseudo-random number for a position.
fn mix_bits(position: u64) -> u64 {
    let mixed = (position ^ (position >> 30)).wrapping_add(1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// About the same number of objects is read whatever their regular order.
    #[test]
    fn positions_are_scattered() {
        for stride in [2, 3, 4, 10] {
            for period in 2..12 {
                let read = |at: u64| {
                    (0..100_000)
                        .filter(|position| {
                            position % period == at && mix_bits(*position).is_multiple_of(stride)
                        })
                        .count()
                };
                let expected = 100_000 / (stride * period);
                for at in 0..period {
                    let read = read(at) as u64;
                    assert!(
                        read * 10 > expected * 8 && read * 10 < expected * 12,
                        "{stride} {period} {at}: {read}"
                    );
                }
            }
        }
    }
}
