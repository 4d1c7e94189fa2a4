//! Maps from constants of a chunk to values.
//!
//! A file chooses the keys of its constants freely: in an unseeded hash table, the keys of a hostile file would collide. So
//! tables are keyed by the numbers of constants, which are dense.

use hprof_jfr::values::{Constant, ConstantNumber};
use rustc_hash::FxHashMap;

/// Map from constants to values. Constants that are missing from the chunk have no value.
#[derive(Debug)]
pub(super) struct ConstantMap<V>(FxHashMap<ConstantNumber, V>);

impl<V> Default for ConstantMap<V> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

impl<V> ConstantMap<V> {
    /// Returns the value of a constant.
    #[inline]
    pub(super) fn get(&self, constant: &Constant<'_>) -> Option<&V> {
        self.0.get(&constant.number()?)
    }

    /// Sets the value of a constant, if the chunk contains it.
    pub(super) fn insert(&mut self, constant: &Constant<'_>, value: V) {
        if let Some(number) = constant.number() {
            self.0.insert(number, value);
        }
    }

    /// Returns the number of stored values.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Map from constants to numbers, fast for the type of constants that most events refer to.
#[derive(Debug, Default)]
pub(super) struct ConstantTable {
    /// Type of the constants in `table`: the type of the first inserted constant.
    class: Option<usize>,
    /// First key, if constants of the type are numbered by their keys.
    first: Option<i64>,
    /// Values by number of the constant; [`NONE`] if missing. Not much longer than the number of constants of the type.
    table: Vec<u32>,
    /// Values of constants of other types.
    other: ConstantMap<u32>,
}

/// Placeholder for a missing number.
const NONE: u32 = u32::MAX;

impl ConstantTable {
    /// Returns the value of a constant.
    #[inline]
    pub(super) fn get(&self, constant: &Constant<'_>) -> Option<u32> {
        if self.class != Some(constant.class_index()) {
            return self.get_other(constant);
        }
        let at = match self.first {
            Some(first) => usize::try_from(constant.key().wrapping_sub(first).cast_unsigned()).ok()?,
            None => constant.number()?.number,
        };
        self.table.get(at).copied().filter(|number| *number != NONE)
    }

    /// Returns the value of a constant of another type. Separate, so that it is not inlined.
    #[cold]
    fn get_other(&self, constant: &Constant<'_>) -> Option<u32> {
        self.other.get(constant).copied()
    }

    /// Sets the value of a constant, if the chunk contains it.
    pub(super) fn insert(&mut self, constant: &Constant<'_>, number: u32) {
        let Some(ConstantNumber { class, number: at }) = constant.number() else { return };
        if self.class.is_none() {
            (self.class, self.first) = (Some(class), constant.first_key());
        }
        if self.class != Some(class) {
            return self.other.insert(constant, number);
        }
        if self.table.len() <= at {
            self.table.resize(at.saturating_add(1).next_power_of_two(), NONE);
        }
        if let Some(place) = self.table.get_mut(at) {
            *place = number;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::hash::BuildHasher;

    use super::*;
    use hprof_jfr::{Chunk, Recording};
    use hprof_writer::flight::{FlightField, FlightValues, FlightWriter, TEXT};
    use hprof_writer::hostile_keys::colliding_keys;
    use rustc_hash::FxBuildHasher;

    const CLASS: i64 = 31;
    const KEYS: usize = 1_000;

    /// A hostile file can choose keys that collide, but not the numbers of constants.
    #[test]
    fn tables_are_keyed_by_numbers_that_are_dense() {
        let keys: Vec<i64> = colliding_keys().take(KEYS).collect();
        let place = |hash: u64| (hash >> 57, hash & ((1 << 20) - 1));
        assert!(keys.iter().all(|key| place(FxBuildHasher.hash_one(key)) == (0, 0)));
        let write = |body: &mut FlightValues| body.text("a");
        let constants: Vec<_> = keys.iter().map(|key| (*key, &write as _)).collect();
        let mut made = FlightWriter::new(true);
        made.checkpoint(CLASS, &constants);
        // No constant has the last key.
        let event = |key: i64| move |body: &mut FlightValues| body.long(key);
        keys.iter().for_each(|key| made.event(40, event(*key)));
        made.event(40, event(-1));
        made.metadata(&[
            (CLASS, "java.lang.Class", &[("name", TEXT)]),
            (40, "jdk.Sample", &[("class", FlightField::constant(CLASS))]),
        ]);
        let bytes = made.finish();
        let chunk = Chunk::read(&bytes, &Recording::new(&bytes).unwrap().chunks()[0]).unwrap();
        let (mut map, mut table) = (ConstantMap::default(), ConstantTable::default());
        for (at, event) in (0..).zip(chunk.events()) {
            let constant = event.fields.constant("class").unwrap();
            map.insert(&constant, at);
            table.insert(&constant, at);
            let is_there = constant.key() != -1;
            let found = Some(at).filter(|_| is_there);
            assert_eq!((map.get(&constant).copied(), table.get(&constant)), (found, found));
        }
        assert!(table.table.len() <= KEYS.next_power_of_two());
        assert_eq!(map.len(), KEYS);
        let places: std::collections::HashSet<_> =
            map.0.keys().map(|key| place(FxBuildHasher.hash_one(key))).collect();
        assert!(places.len() > KEYS / 2, "{}", places.len());
    }
}
