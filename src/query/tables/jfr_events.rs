//! The table `jfr_events`: events of a Flight Recorder recording. It exists only if a recording is given in addition
//! to the dump.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::{Batch, Column, ColumnSet, Definition, Table, TableChunk, TableContext, TableQuery};
use hprof_base::dictionary::names;
use hprof_jfr::values::ConstantNumber;
use hprof_jfr::{Chunk, ChunkSpan, ChunkTables, Recording, chunk};
use hprof_model::objects::hiding::HIDDEN;
use hprof_recordings::profile::date_of_nanos;
use hprof_recordings::profile::flight::FlightFile;
use hprof_recordings::profile::flight::rows::{self, Shared};
use rustc_hash::FxHashMap;

/// Table with a row for each event.
pub(super) struct JfrEvents<'a> {
    context: Arc<TableContext<'a>>,
    definition: Definition,
    parts: EventParts,
}

/// Chunks of a recording, divided into parts.
struct EventParts {
    file: Arc<FlightFile>,
    spans: Vec<ChunkSpan>,
    /// Index of the recording's chunk and range of event offsets for each part. A query can end between two parts.
    parts: OnceLock<Vec<(usize, Range<usize>)>>,
    /// Tables of the recording's chunks whose parts were read last, the latest first.
    tables: Mutex<VecDeque<(usize, SharedTables)>>,
}

/// Tables of a chunk, read by the first of its parts; `None` if they cannot be read.
type SharedTables = Arc<OnceLock<Option<Arc<ChunkTables>>>>;

/// Maximum number of chunks whose tables are cached. Parts are read in order, a few at a time.
const MAX_TABLES: usize = 4;
/// Maximum size in bytes of the distinct names of a column that a batch retains for the next parts.
const MAX_NAMES: usize = 1 << 22;
/// Typical size of an event in bytes.
const EVENT_BYTES: u64 = 64;

// Numbers of columns.
const EVENT: usize = 0;
const THREAD: usize = 3;
const METHOD: usize = 4;
const CLASS: usize = 6;
const STATE: usize = 8;
/// Columns of names.
const NAMES: [usize; 5] = [EVENT, THREAD, METHOD, CLASS, STATE];

/// Returns the definition of the table.
pub(super) fn definition() -> Definition {
    let none = "events of this type have no such value";
    Definition {
        name: "jfr_events".into(),
        meaning: "An event of the Flight Recorder recording that is given beside the dump".into(),
        order: "as in the file".into(),
        columns: vec![
            Column::new(names::EVENT).few(),
            Column::new(names::TIME).or_null(none),
            Column::new(names::DURATION_NS).or_null(none),
            Column::new(names::THREAD_NAME).few().or_null(none),
            Column::new(names::METHOD).few().or_null("the event has no stack"),
            Column::new(names::LINE).or_null("the event has no stack, or the line is unknown"),
            Column::new(names::CLASS).few().or_null("the event has no class"),
            Column::new(names::EVENT_WEIGHT_BYTES).or_null(none),
            Column::new(names::SAMPLED_STATE).few().or_null("the event is not a sample of a thread"),
        ],
    }
}

impl<'a> JfrEvents<'a> {
    pub(super) fn new(context: Arc<TableContext<'a>>, file: Arc<FlightFile>) -> Self {
        Self { context, definition: definition(), parts: EventParts::new(file) }
    }
}

impl EventParts {
    fn new(file: Arc<FlightFile>) -> Self {
        // The file was read before, so it is a recording.
        let spans = Recording::new(file.bytes()).map_or(Vec::new(), |recording| recording.chunks().to_vec());
        Self { file, spans, parts: OnceLock::new(), tables: Mutex::default() }
    }

    fn parts(&self) -> &[(usize, Range<usize>)] {
        self.parts.get_or_init(|| {
            let spans = self.spans.iter().enumerate();
            let parts = spans.flat_map(|(at, span)| {
                chunk::parts(self.file.bytes(), span).into_iter().map(move |part| (at, part))
            });
            parts.collect()
        })
    }

    /// Returns a chunk of the recording with its tables. The parts of a chunk share the tables, which require a pass over the
    /// chunk.
    fn chunk(&self, at: usize) -> Option<Chunk<'_>> {
        let (file, span) = (self.file.bytes(), self.spans.get(at)?);
        let shared = {
            let mut all = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
            let known = all.iter().position(|(known, _)| *known == at).and_then(|known| all.remove(known));
            let latest = known.unwrap_or_else(|| (at, SharedTables::default()));
            all.truncate(MAX_TABLES - 1);
            all.push_front(latest.clone());
            latest.1
        };
        // A chunk that cannot be read was reported when the recording was opened.
        let tables = shared.get_or_init(|| ChunkTables::read(file, span).ok().map(Arc::new));
        Some(Chunk::from_tables(file, span, Arc::clone(tables.as_ref()?)))
    }
}

impl Table for JfrEvents<'_> {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn rows(&self) -> u64 {
        self.parts.spans.iter().map(|span| (span.end - span.start) as u64).sum::<u64>() / EVENT_BYTES
    }

    fn chunks(&self, _: &TableQuery) -> io::Result<Vec<TableChunk>> {
        Ok((0..self.parts.parts().len()).map(|part| TableChunk::Rows(part..part + 1)).collect())
    }

    fn read(&self, chunk: &TableChunk, wanted: ColumnSet, batch: &mut Batch) -> io::Result<()> {
        let TableChunk::Rows(parts) = chunk else { return Ok(()) };
        let hides = self.context.dump.summary.hides_values();
        for (at, starts) in self.parts.parts().get(parts.clone()).unwrap_or_default() {
            if batch.rows == 0 {
                NAMES.into_iter().for_each(|at| batch.column(at).forget_names(MAX_NAMES));
            }
            if let Some(chunk) = self.parts.chunk(*at) {
                add(&chunk, starts.clone(), (wanted, hides), batch);
            }
        }
        Ok(())
    }
}

/// Adds the events of a part of a chunk.
fn add(chunk: &Chunk<'_>, starts: Range<usize>, (wanted, hides): (ColumnSet, bool), batch: &mut Batch) {
    let mut known = NAMES.map(|at| NameNumbers { at, numbers: FxHashMap::default() });
    rows::visit(chunk, starts, |row| {
        batch.rows += 1;
        let [event, thread, method, class, state] = &mut known;
        event.add(batch, Some(row.event), Cow::Borrowed);
        if wanted.has(1) {
            let time = row.nanos.and_then(date_of_nanos);
            batch.column(1).text(time.as_deref());
        }
        batch.column(2).integer(row.duration_nanos);
        thread.add(batch, row.thread, |name| Cow::Borrowed(if hides { HIDDEN } else { name }));
        if wanted.has(METHOD) {
            method.add(batch, row.top, |frame| frame.qualified_method().into());
        }
        batch.column(5).count(row.top.and_then(|top| top.value.line()).map(u64::from));
        class.add(batch, row.class, Cow::Borrowed);
        batch.column(7).count(row.bytes);
        state.add(batch, row.state, Cow::Borrowed);
    });
}

/// Cache of name numbers of a column, so that a name is added once for all its events.
struct NameNumbers {
    at: usize,
    numbers: FxHashMap<ConstantNumber, Option<u32>>,
}

impl NameNumbers {
    fn add<'e, V>(
        &mut self,
        batch: &mut Batch,
        shared: Option<Shared<V>>,
        name: impl FnOnce(V) -> Cow<'e, str>,
    ) {
        let column = batch.column(self.at);
        let number = shared.and_then(|Shared { id, value }| {
            let number = self.numbers.entry(id);
            *number.or_insert_with(|| column.number(&name(value)))
        });
        column.name(number);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Cell, Values};
    use hprof_index::Quiet;
    use hprof_jfr::chunk::PART_EVENTS;
    use hprof_writer::flight::{FlightWriter, LONG, every_kind};

    #[test]
    fn a_name_is_stored_once() {
        let bytes = every_kind(true).finish();
        let mut batch = Batch::new(&definition().columns, ColumnSet::ALL, |_| Arc::default());
        let chunk = Chunk::read(&bytes, &Recording::new(&bytes).unwrap().chunks()[0]).unwrap();
        // A batch is reused.
        for hides in [false, true] {
            batch.clear();
            add(&chunk, 0..usize::MAX, (ColumnSet::ALL, hides), &mut batch);
            let thread = if hides { HIDDEN } else { "worker" };
            let cells = NAMES.map(|at| batch.cell(6, at));
            let [names @ .., state] = cells;
            assert_eq!(names, ["jdk.ObjectAllocationSample", thread, "a.B.run", "byte[]"].map(Cell::Text));
            assert_eq!(state, Cell::Null);
            assert_eq!((batch.rows, batch.cell(0, CLASS)), (21, Cell::Null));
            for at in NAMES {
                let Values::Names { names, numbers, .. } = &batch.columns[at] else {
                    panic!("{at} is copied")
                };
                let mut all: Vec<&str> = names.iter().collect();
                all.sort_unstable();
                all.dedup();
                assert_eq!((all.len(), numbers.len()), (names.len(), batch.rows), "{all:?}");
            }
        }
    }

    /// A chunk with many events is visited once for its tables, whatever the number of its parts.
    #[test]
    fn parts_of_a_chunk_share_its_tables() {
        let mut made = FlightWriter::new(true);
        let events = 4 * PART_EVENTS + 1;
        for _ in 0..events {
            made.event(20, |body| body.long(1));
        }
        made.metadata(&[(20, "jdk.Sample", &[("startTime", LONG)])]);
        let chunk = made.finish();
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(path.path(), chunk.repeat(MAX_TABLES + 1)).unwrap();
        let file = FlightFile::open(path.path(), None, &Quiet).unwrap().unwrap();
        let parts = EventParts::new(Arc::new(file));
        let chunks: Vec<usize> = parts.parts().iter().map(|(at, _)| *at).collect();
        assert_eq!(chunks, (0..=MAX_TABLES).flat_map(|at| [at; 5]).collect::<Vec<_>>());
        let mut batch = Batch::new(&definition().columns, ColumnSet::ALL, |_| Arc::default());
        let mut tables: Vec<Arc<ChunkTables>> = Vec::new();
        let mut rows = 0;
        for (at, starts) in parts.parts() {
            let chunk = parts.chunk(*at).unwrap();
            batch.clear();
            add(&chunk, starts.clone(), (ColumnSet::ALL, false), &mut batch);
            assert!(batch.rows as u64 <= PART_EVENTS);
            rows += batch.rows as u64;
            tables.push(chunk.tables().clone());
        }
        assert_eq!(rows, events * (MAX_TABLES as u64 + 1));
        assert!(tables.chunks(5).all(|same| same.iter().all(|tables| Arc::ptr_eq(tables, &same[0]))));
        assert!(tables.windows(6).all(|pair| !Arc::ptr_eq(&pair[0], &pair[5])));
        // Few are cached.
        assert!(!Arc::ptr_eq(parts.chunk(0).unwrap().tables(), &tables[0]));
        assert_eq!(parts.tables.lock().unwrap().len(), MAX_TABLES);
    }

    #[test]
    fn names_of_earlier_parts_are_forgotten_if_they_are_long() {
        let mut batch = Batch::new(&definition().columns, ColumnSet::ALL, |_| Arc::default());
        let long = "n".repeat(1000);
        for (max_bytes, number) in [(2000, 1), (999, 0)] {
            batch.column(CLASS).number(&long);
            batch.column(CLASS).forget_names(max_bytes);
            assert_eq!(batch.column(CLASS).number("other"), Some(number));
        }
    }
}
