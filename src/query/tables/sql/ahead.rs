//! Read-ahead of a table's chunks: other threads read the next ones while SQLite processes this one.
//!
//! A chunk that no thread has started by its turn is read by the thread that needs it: no thread waits for busy
//! threads, and a pool of one thread cannot deadlock. The only wait is for data that a table prepares for queries of
//! most of its rows.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::dump::{SqlDump, TableNumber};
use super::guard::{INTERRUPTED, QueryDeadline};
use crate::{Batch, ColumnSet, PreparedData, Table, TableChunk};

/// Reader of the chunks of a query, in order.
#[derive(Debug)]
pub(super) struct ChunkReader {
    dump: Arc<SqlDump>,
    clock: Arc<QueryDeadline>,
    table: TableNumber,
    wanted: ColumnSet,
    /// Chunks not yet requested; the last one is next.
    left: Vec<TableChunk>,
    /// Chunks requested from other threads; the first one is next.
    ahead: VecDeque<Arc<ChunkSlot>>,
    /// Number of chunks to request from other threads. Increases with each chunk, since most lookups end with the first.
    now: usize,
    spare: Vec<Batch>,
    /// Number of chunks read so far.
    read: usize,
}

/// Maximum number of chunks that are read ahead: they wait in memory.
const MAX_AHEAD: usize = 4;

/// Number of chunks after which the rest is expected to be read as well: a query for a few rows ends earlier.
const MANY: usize = 64;
/// Denominator of the fraction of all rows that must be left for the table's preparation to be worthwhile.
const PART: u64 = 8;

/// Returns whether these chunks contain most rows of a table with `rows` rows.
fn is_worth_preparing(chunks: &[TableChunk], rows: u64) -> bool {
    chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>() > rows / PART
}

/// A chunk that is read ahead by another thread.
#[derive(Debug)]
struct ChunkSlot {
    chunk: TableChunk,
    state: Mutex<SlotState>,
    done: Condvar,
}

/// State of a [`ChunkSlot`].
#[derive(Debug)]
enum SlotState {
    /// Not started.
    Waiting(Batch),
    /// A thread is reading it.
    Reading,
    /// Complete.
    Read(io::Result<Batch>),
    /// Taken by the reader, or no longer needed.
    Taken,
}

impl ChunkReader {
    /// Creates a reader of these chunks of a table.
    pub(super) fn new(
        dump: Arc<SqlDump>,
        clock: Arc<QueryDeadline>,
        table: TableNumber,
        wanted: ColumnSet,
        mut chunks: Vec<TableChunk>,
    ) -> Self {
        chunks.reverse();
        Self {
            dump,
            clock,
            table,
            wanted,
            left: chunks,
            ahead: VecDeque::new(),
            now: 0,
            spare: Vec::new(),
            read: 0,
        }
    }

    /// Reads the next chunk into `batch`; returns `None` at the end. Sets `prepared` if the rest of the query is worth
    /// preparing the table.
    pub(super) fn next(
        &mut self,
        batch: &mut Batch,
        prepared: &mut Option<PreparedData>,
    ) -> io::Result<Option<TableChunk>> {
        if self.read == MANY && prepared.is_none() {
            let stop = || self.clock.is_over();
            let prepare = |table: &dyn Table| {
                if is_worth_preparing(&self.left, table.rows()) {
                    table.prepare(self.wanted, &stop)
                } else {
                    None
                }
            };
            *prepared = self.dump.table(self.table, prepare).flatten();
        }
        self.read = self.read.saturating_add(1);
        let chunk = match self.ahead.pop_front() {
            Some(slot) => {
                self.take(&slot, batch)?;
                slot.chunk.clone()
            }
            None => {
                let Some(chunk) = self.left.pop() else { return Ok(None) };
                self.dump.read(self.table, &chunk, self.wanted, batch)?;
                chunk
            }
        };
        self.ask();
        if !self.left.is_empty() {
            // Starts other threads only at this point: most lookups need none.
            let others = rayon::current_num_threads().saturating_sub(1);
            self.now = self.now.saturating_add(1).min(others).min(MAX_AHEAD);
        }
        Ok(Some(chunk))
    }

    /// Takes a chunk that was requested from another thread, or reads it if no thread has started it.
    fn take(&mut self, slot: &ChunkSlot, batch: &mut Batch) -> io::Result<()> {
        let mut state = slot.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match std::mem::replace(&mut *state, SlotState::Taken) {
                SlotState::Waiting(mut own) => {
                    drop(state);
                    self.dump.read(self.table, &slot.chunk, self.wanted, &mut own)?;
                    self.spare.push(std::mem::replace(batch, own));
                    return Ok(());
                }
                SlotState::Reading => {
                    *state = SlotState::Reading;
                    state = slot.done.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                SlotState::Read(read) => {
                    self.spare.push(std::mem::replace(batch, read?));
                    return Ok(());
                }
                SlotState::Taken => return Err(io::Error::other("a chunk was read twice; this is a bug")),
            }
        }
    }

    /// Requests the next chunks from other threads.
    fn ask(&mut self) {
        while self.ahead.len() < self.now {
            let Some(chunk) = self.left.pop() else { return };
            let (number, wanted) = (self.table, self.wanted);
            let empty = || self.dump.table(number, |table| table.batch(wanted));
            let Some(batch) = self.spare.pop().or_else(empty) else { return self.left.push(chunk) };
            let state = Mutex::new(SlotState::Waiting(batch));
            let slot = Arc::new(ChunkSlot { chunk, state, done: Condvar::new() });
            self.ahead.push_back(slot.clone());
            let (dump, clock) = (self.dump.clone(), self.clock.clone());
            rayon::spawn(move || slot.read(&dump, &clock, number, wanted));
        }
    }
}

impl Drop for ChunkReader {
    fn drop(&mut self) {
        for slot in &self.ahead {
            let mut state = slot.state.lock().unwrap_or_else(PoisonError::into_inner);
            if matches!(*state, SlotState::Waiting(_)) {
                *state = SlotState::Taken;
            }
        }
    }
}

impl ChunkSlot {
    /// Reads the chunk, unless another thread has started it.
    fn read(&self, dump: &SqlDump, clock: &QueryDeadline, number: TableNumber, wanted: ColumnSet) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut batch = match std::mem::replace(&mut *state, SlotState::Reading) {
            SlotState::Waiting(batch) => batch,
            other => {
                *state = other;
                return;
            }
        };
        drop(state);
        // A waiting thread must not wait forever.
        let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            // The rows of a query that has to end are not needed: other queries wait for this thread.
            if clock.is_over() {
                return Err(io::Error::new(io::ErrorKind::Interrupted, INTERRUPTED));
            }
            dump.read(number, &self.chunk, wanted, &mut batch).map(|()| batch)
        }));
        let read = read.unwrap_or_else(|_| Err(io::Error::other("reading a table failed; this is a bug")));
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = SlotState::Read(read);
        self.done.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hprof_index::graph::numbers::ObjectIndex;

    #[test]
    fn a_part_of_a_table_is_not_most_of_it() {
        let objects = |count: u32| TableChunk::Objects(ObjectIndex(100)..ObjectIndex(100 + count));
        assert!(is_worth_preparing(&[objects(900), objects(101)], 8000));
        assert!(!is_worth_preparing(&[objects(900), objects(100)], 8000));
        assert!(!is_worth_preparing(&[], 0));
    }
}
