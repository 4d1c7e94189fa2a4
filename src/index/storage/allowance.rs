//! Memory for tables whose length the file determines: GC roots, segments and other records.
//!
//! A table requests memory before it grows, so that a file with millions of records is refused with a
//! clear message before memory is exhausted, if the system or the user limits it
//! ([`Available::is_hard_limit`]).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use hprof_values::ObjectId;

use super::id_map::IdMap;
use super::memory::{self, Available, Limit, NoMemory};

/// Size of tables that are never refused, in bytes: enough for ordinary dumps.
const FREE_BYTES: u64 = 4 << 20;
/// Size in bytes from which a table grows by a quarter; smaller ones double.
const LARGE_BYTES: usize = 1 << 20;

/// Address space that tables leave for other uses, in bytes.
const RESERVE_BYTES: u64 = 8 << 20;

/// Memory for tables, shared by all threads of a scan.
#[derive(Debug)]
pub(crate) struct Allowance {
    /// The limit, if it is one at which memory is refused.
    available: Option<Available>,
    taken: AtomicU64,
    /// The refused request, if any.
    refused: OnceLock<NoMemory>,
}

impl Allowance {
    /// Creates an allowance of the available memory, minus the working memory of threads.
    pub(crate) fn new(available: Option<Available>) -> Self {
        let available = available.filter(|available| available.is_hard_limit());
        Self { available, taken: AtomicU64::new(0), refused: OnceLock::new() }
    }

    /// Takes memory before it is allocated.
    ///
    /// # Errors
    /// [`NoMemory`] with the total needed so far.
    pub(crate) fn take(&self, bytes: u64) -> Result<(), NoMemory> {
        self.count(bytes)?;
        let is_large = bytes >= LARGE_BYTES as u64 && self.available.is_some();
        if is_large
            && Vec::<u8>::new().try_reserve_exact(usize::try_from(bytes).unwrap_or(usize::MAX)).is_err()
        {
            return Err(self.not_given(bytes));
        }
        Ok(())
    }

    fn count(&self, bytes: u64) -> Result<(), NoMemory> {
        let taken = self.taken.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        match self.available.filter(|available| taken > limit(*available)) {
            Some(available) => {
                let needed_bytes = memory::working_memory(1).saturating_add(taken);
                Err(self.refuse(NoMemory { needed_bytes, available }))
            }
            None if self.available.is_some() && !leaves_reserve(bytes) => Err(self.not_given(bytes)),
            None => Ok(()),
        }
    }

    /// Gives back memory that was freed.
    pub(crate) fn give_back(&self, bytes: u64) {
        // In one step: other threads may take memory in between.
        let less = |taken: u64| Some(taken.saturating_sub(bytes));
        let _ = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Returns the number of bytes that are taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Sets the number of bytes taken, after others were freed.
    pub(crate) fn reset(&self, taken: u64) {
        self.taken.store(taken, Ordering::Relaxed);
    }

    /// Returns the number of bytes left for purposes other than tables; `None` if there is no limit.
    pub(crate) fn remaining_bytes(&self) -> Option<u64> {
        let working_memory = memory::working_memory(1);
        self.available
            .map(|available| available.bytes.saturating_sub(working_memory).saturating_sub(self.taken()))
    }

    /// Returns the refused request, if any.
    pub(crate) fn refusal(&self) -> Option<NoMemory> {
        self.refused.get().copied()
    }

    fn refuse(&self, error: NoMemory) -> NoMemory {
        *self.refused.get_or_init(|| error)
    }

    /// Records that the system refused an allocation. It may refuse earlier than its limits suggest:
    /// parts of the address space are reserved for threads.
    fn not_given(&self, bytes: u64) -> NoMemory {
        let known = self.available.unwrap_or(Available { bytes, limit: Limit::Free });
        let Available { bytes: left, limit } = memory::addresses_unused().unwrap_or(known);
        let available = Available { bytes: left.min(bytes.saturating_sub(1)), limit };
        self.refuse(NoMemory { needed_bytes: bytes, available })
    }

    /// Appends a row to a table.
    ///
    /// # Errors
    /// Errors of [`Allowance::take`].
    #[inline]
    pub(crate) fn push<T>(&self, table: &mut Vec<T>, row: T) -> Result<(), NoMemory> {
        if table.len() == table.capacity() {
            let capacity = table.capacity();
            let is_large = capacity.saturating_mul(size_of::<T>()) >= LARGE_BYTES;
            self.grow(table, if is_large { capacity / 4 } else { capacity.max(4) })?;
        }
        table.push(row);
        Ok(())
    }

    /// Appends a table to another.
    ///
    /// # Errors
    /// Errors of [`Allowance::take`].
    pub(crate) fn append<T>(&self, table: &mut Vec<T>, mut more: Vec<T>) -> Result<(), NoMemory> {
        if table.is_empty() {
            *table = more;
            return Ok(());
        }
        let missing = more.len().saturating_sub(table.capacity() - table.len());
        if missing > 0 {
            self.grow(table, missing)?;
        }
        table.append(&mut more);
        self.give_back(bytes::<T>(more.capacity()));
        Ok(())
    }

    /// Inserts an entry into a map.
    ///
    /// # Errors
    /// Errors of [`Allowance::take`].
    pub(crate) fn insert<V>(
        &self,
        map: &mut IdMap<ObjectId, V>,
        key: ObjectId,
        value: V,
    ) -> Result<(), NoMemory> {
        if map.len() == map.capacity() {
            // The old table exists until all entries are moved.
            let old = map_bytes::<V>(map.capacity());
            self.take(map_bytes::<V>(map.len() + 1))?;
            map.reserve(1);
            self.give_back(old);
        }
        map.insert(key, value);
        Ok(())
    }

    #[cold]
    fn grow<T>(&self, table: &mut Vec<T>, more: usize) -> Result<(), NoMemory> {
        self.count(bytes::<T>(more))?;
        let rows = table.capacity() - table.len() + more;
        if self.available.is_none() {
            table.reserve_exact(rows);
            return Ok(());
        }
        table.try_reserve_exact(rows).map_err(|_| self.not_given(bytes::<T>(more)))
    }
}

/// Returns `true` if enough address space is left for small allocations that cannot be refused, after a
/// large table has taken `bytes`.
fn leaves_reserve(bytes: u64) -> bool {
    bytes < LARGE_BYTES as u64
        || memory::addresses_unused().is_none_or(|unused| unused.bytes >= bytes.saturating_add(RESERVE_BYTES))
}

/// Returns the number of bytes that tables may take.
fn limit(available: Available) -> u64 {
    available.bytes.saturating_sub(memory::working_memory(1)).max(FREE_BYTES)
}

/// Returns the size of a number of rows in bytes.
pub(crate) fn bytes<T>(rows: usize) -> u64 {
    (rows as u64).saturating_mul(size_of::<T>() as u64)
}

/// Returns the size in bytes of a map of this many IDs: it is at most seven eighths full, and doubles.
pub(crate) fn map_bytes<V>(ids: usize) -> u64 {
    let places = if ids == 0 { 0 } else { (ids as u64).saturating_mul(8).div_ceil(7).next_power_of_two() };
    places.saturating_mul(size_of::<(ObjectId, V)>() as u64 + 1)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn given_allowance(bytes: u64) -> Allowance {
        Allowance::new(Some(Available { bytes, limit: Limit::Given }))
    }

    #[test]
    fn a_table_is_refused_before_it_is_allocated() {
        let allowance = given_allowance(memory::working_memory(1) + (64 << 20));
        let mut table = Vec::new();
        let refused = loop {
            if let Err(refused) = allowance.push(&mut table, 7u64) {
                break refused;
            }
        };
        // At its maximum length, except for the quarter by which it grows.
        let taken = bytes::<u64>(table.capacity());
        assert!(((64 << 20) / 4 * 3..=64 << 20).contains(&taken), "{taken}");
        assert!(refused.needed_bytes > refused.available.bytes, "{refused}");
        assert_eq!(allowance.refusal(), Some(refused));
    }

    #[test]
    fn small_tables_are_never_refused_and_without_a_limit_none_is() {
        let mut table = Vec::new();
        let small = given_allowance(0);
        (0..400_000).for_each(|_| small.push(&mut table, 7u64).unwrap());
        let free = Allowance::new(Some(Available { bytes: 0, limit: Limit::Free }));
        (0..1_000_000).for_each(|_| free.push(&mut table, 7u64).unwrap());
        assert_eq!(free.remaining_bytes(), None);
    }

    #[test]
    fn tables_are_appended_and_what_is_freed_is_given_back() {
        let allowance = given_allowance(1 << 30);
        let table = |rows: u32| {
            let mut table = Vec::new();
            (0..rows).for_each(|row| allowance.push(&mut table, row).unwrap());
            table
        };
        let mut all = Vec::new();
        for rows in [1000, 0, 10, 3000] {
            allowance.append(&mut all, table(rows)).unwrap();
        }
        assert_eq!((all.len(), allowance.taken()), (4010, bytes::<u32>(all.capacity())));
    }
}
