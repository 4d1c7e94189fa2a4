//! The table `jfr_events`: events of a recording of Flight Recorder. It exists if one is given beside the dump.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::{Batch, Column, Context, Definition, Table, TableChunk, TableQuery, Wanted};
use crate::dictionary::names;
use crate::objects::hiding::HIDDEN;
use crate::recordings::profile::flight::{FlightFile, rows};
use crate::recordings::profile::rfc3339;
use hprof_jfr::{ChunkSpan, Recording};

/// Table with a row for each event.
pub(super) struct JfrEvents<'a> {
    context: Arc<Context<'a>>,
    file: Arc<FlightFile>,
    definition: Definition,
    /// Parts of chunks: offsets of events.
    parts: Vec<(ChunkSpan, Range<usize>)>,
}

/// Size of the events that are read at once: a recording can be one chunk.
const PART_BYTES: usize = 16 << 20;

/// Approximate number of events of a part.
const ROWS_OF_PART: u64 = 10_000;

/// Returns the definition of the table.
pub(super) fn definition() -> Definition {
    let none = "events of the type have none";
    Definition {
        name: "jfr_events".into(),
        meaning: "An event of the recording of Flight Recorder that was given with --recording".into(),
        order: "as in the file".into(),
        columns: vec![
            Column::of(names::EVENT),
            Column::of(names::TIME).or_null(none),
            Column::of(names::DURATION_NS).or_null(none),
            Column::of(names::THREAD_NAME).or_null(none),
            Column::of(names::METHOD).or_null("the event has no stack"),
            Column::of(names::LINE).or_null("the event has no stack, or the line is unknown"),
            Column::of(names::CLASS).or_null("the event is about none"),
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
            let _unreadable = rows::visit(self.file.bytes(), span, starts, |row| {
                batch.rows += 1;
                batch.column(0).text(Some(row.event));
                if wanted.has(1) {
                    let time = row.nanos.and_then(|nanos| rfc3339(u64::try_from(nanos / 1_000_000).ok()?, 0));
                    batch.column(1).text(time.as_deref());
                }
                batch.column(2).integer(row.duration_nanos);
                batch.column(3).text(row.thread.map(|name| if hides { HIDDEN } else { name }));
                if wanted.has(4) {
                    let method = row.top.map(crate::threads::frames::Frame::qualified_method);
                    batch.column(4).text(method.as_deref());
                }
                batch.column(5).count(row.top.and_then(|top| top.line()).map(u64::from));
                batch.column(6).text(row.class);
                batch.column(7).count(row.bytes);
            });
        }
        Ok(())
    }
}
