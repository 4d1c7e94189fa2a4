//! Positions of fields in the records of a class's instances.

use std::collections::HashMap;

use super::classes::{ClassIndex, Classes, FieldName};

/// Fields of an instance of a class.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// Position of a field, by name and number among the fields of that name: those of the topmost superclass are first.
    positions: HashMap<(FieldName, u32), u32>,
    /// Number of fields.
    pub(super) count: u32,
}

impl Slots {
    fn new(classes: &Classes, class: ClassIndex) -> Self {
        let above = |class: &ClassIndex| classes.get(*class)?.above;
        let chain: Vec<ClassIndex> = std::iter::successors(Some(class), above).collect();
        let mut starts = Vec::with_capacity(chain.len());
        let mut count = 0u32;
        for row in chain.iter().filter_map(|class| classes.get(*class)) {
            starts.push(count);
            count += row.fields.iter().map(|(_, same)| same).sum::<u32>();
        }
        let mut positions = HashMap::with_capacity(count as usize);
        let mut known: HashMap<FieldName, u32> = HashMap::new();
        for (class, start) in chain.iter().zip(starts).rev() {
            let mut position = start;
            for (name, same) in classes.get(*class).into_iter().flat_map(|row| &row.fields) {
                let number = known.entry(*name).or_default();
                for _ in 0..*same {
                    positions.insert((*name, *number), position);
                    *number += 1;
                    position += 1;
                }
            }
        }
        Self { positions, count }
    }

    pub(super) fn position(&self, name: FieldName, number: u32) -> Option<usize> {
        Some(*self.positions.get(&(name, number))? as usize)
    }
}

/// Maximum number of fields in the cache.
const CACHED: u64 = 1 << 20;

/// Fields of the classes whose instances were written last.
#[derive(Debug, Default)]
pub(super) struct SlotCache {
    classes: HashMap<ClassIndex, Slots>,
    fields: u64,
}

impl SlotCache {
    pub(super) fn slots(&mut self, classes: &Classes, class: ClassIndex) -> &Slots {
        if self.fields > CACHED {
            self.classes.clear();
            self.fields = 0;
        }
        self.classes.entry(class).or_insert_with(|| {
            let slots = Slots::new(classes, class);
            self.fields += u64::from(slots.count) + 1;
            slots
        })
    }
}
