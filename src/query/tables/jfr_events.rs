//! The table `jfr_events`: events of a recording of Flight Recorder. It exists if one is given beside the dump.

use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::{Batch, Column, Context, Definition, Table, TableChunk, TableQuery, Wanted};
use crate::dictionary::names;
use crate::objects::hiding::HIDDEN;
use crate::recordings::profile::flight::FlightFile;
use crate::recordings::profile::flight::rows::{self, Shared};
use crate::recordings::profile::rfc3339;
use hprof_jfr::{ChunkSpan, FlightError, Recording};
use rustc_hash::FxHashMap;

/// Table with a row for each event.
pub(super) struct JfrEvents<'a> {
    context: Arc<Context<'a>>,
    file: Arc<FlightFile>,
    definition: Definition,
    /// Parts of chunks: offsets of events.
    parts: Vec<(ChunkSpan, Range<usize>)>,
}

/// Columns of names.
const EVENT: usize = 0;
const THREAD: usize = 3;
const METHOD: usize = 4;
const CLASS: usize = 6;

/// Size of the events that are read at once: a recording can be one chunk.
const PART_BYTES: usize = 16 << 20;

/// Approximate number of events of a part.
const ROWS_OF_PART: u64 = 10_000;

/// Returns the definition of the table.
pub(super) fn definition() -> Definition {
    let none = "events of the type have none";
    Definition {
        name: "jfr_events".into(),
        meaning: "An event of the recording of Flight Recorder beside the dump".into(),
        order: "as in the file".into(),
        columns: vec![
            Column::of(names::EVENT).few(),
            Column::of(names::TIME).or_null(none),
            Column::of(names::DURATION_NS).or_null(none),
            Column::of(names::THREAD_NAME).few().or_null(none),
            Column::of(names::METHOD).few().or_null("the event has no stack"),
            Column::of(names::LINE).or_null("the event has no stack, or the line is unknown"),
            Column::of(names::CLASS).few().or_null("the event is about none"),
            Column::of(names::EVENT_WEIGHT_BYTES).or_null(none),
        ],
    }
}

impl<'a> JfrEvents<'a> {
    pub(super) fn new(context: Arc<Context<'a>>, file: Arc<FlightFile>) -> Self {
        // The file was read before: it is a recording.
        let spans = Recording::new(file.bytes()).map_or(Vec::new(), |recording| recording.chunks().to_vec());
        let parts = spans.into_iter().flat_map(|span| {
            let starts = (0..span.end - span.start).step_by(PART_BYTES);
            starts.map(move |start| (span, start..start.saturating_add(PART_BYTES)))
        });
        let parts = parts.collect();
        Self { context, file, definition: definition(), parts }
    }
}

impl Table for JfrEvents<'_> {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn rows(&self) -> u64 {
        self.parts.len() as u64 * ROWS_OF_PART
    }

    fn chunks(&self, _: &TableQuery) -> io::Result<Vec<TableChunk>> {
        Ok((0..self.parts.len()).map(|part| TableChunk::Rows(part..part + 1)).collect())
    }

    fn read(&self, chunk: &TableChunk, wanted: Wanted, batch: &mut Batch) -> io::Result<()> {
        let TableChunk::Rows(parts) = chunk else { return Ok(()) };
        let hides = self.context.summary.hides_values();
        for (span, starts) in self.parts.get(parts.clone()).unwrap_or_default() {
            // A chunk that cannot be read was reported when the recording was opened.
            let _unreadable = add(self.file.bytes(), (span, starts), (wanted, hides), batch);
        }
        Ok(())
    }
}

/// Adds the events of a part of a chunk.
fn add(
    file: &[u8],
    (span, starts): (&ChunkSpan, &Range<usize>),
    (wanted, hides): (Wanted, bool),
    batch: &mut Batch,
) -> Result<(), FlightError> {
    let mut known = [EVENT, THREAD, METHOD, CLASS].map(|at| Known { at, numbers: FxHashMap::default() });
    rows::visit(file, span, starts, |row| {
        batch.rows += 1;
        let [event, thread, method, class] = &mut known;
        event.add(batch, Some(row.event), Cow::Borrowed);
        if wanted.has(1) {
            let time = row.nanos.and_then(|nanos| rfc3339(u64::try_from(nanos / 1_000_000).ok()?, 0));
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
    })
}

/// Numbers of the names in a column: a name is added once, however many events share it.
struct Known {
    at: usize,
    numbers: FxHashMap<i64, Option<u32>>,
}

impl Known {
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
    use crate::tables::{Cell, Values};
    use hprof_writer::flight::every_kind;

    #[test]
    fn a_name_is_stored_once() {
        let bytes = every_kind(true).finish();
        let mut batch = Batch::new(&definition().columns, Wanted::ALL, |_| Arc::default());
        let span = Recording::new(&bytes).unwrap().chunks()[0];
        // A batch is filled again and again.
        for hides in [false, true] {
            batch.clear();
            add(&bytes, (&span, &(0..usize::MAX)), (Wanted::ALL, hides), &mut batch).unwrap();
            let thread = if hides { HIDDEN } else { "worker" };
            let cells = [EVENT, THREAD, METHOD, CLASS].map(|at| batch.cell(6, at));
            assert_eq!(cells, ["jdk.ObjectAllocationSample", thread, "a.B.run", "byte[]"].map(Cell::Text));
            assert_eq!((batch.rows, batch.cell(0, CLASS)), (21, Cell::Null));
            for at in [EVENT, THREAD, METHOD, CLASS] {
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
}
