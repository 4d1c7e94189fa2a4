//! STACK TRACE and STACK FRAME records, and the STRING records with the names in them.
//!
//! The index has only the offsets of these records: a dump has few, and a query reads few of them.

use hprof_parser::mutf8;
use hprof_parser::record::{BodyReader, FrameRecord, Record};
use hprof_values::TraceSerial;

use crate::model::summary::Summary;
use crate::model::tables::PlaceRow;

/// Maximum length of a name in bytes: class files store lengths in 16 bits. Longer names, of which each frame could
/// have a copy, are truncated.
const MAX_NAME: usize = 65_535;

/// Contents of a STACK FRAME record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackFrameRecord {
    /// String ID of the method's name.
    pub method: u64,
    /// String ID of the name of the source file.
    pub source: u64,
    /// Serial number of the class.
    pub class_serial: u32,
    /// Line as stated in the dump: above 0 a line, -2 compiled, -3 native, others unknown.
    pub line: i32,
}

/// Reader of the records of stack traces.
#[derive(Debug)]
pub struct StackRecords<'a> {
    summary: &'a Summary,
    bytes: &'a [u8],
    reader: BodyReader<'a>,
}

impl<'a> StackRecords<'a> {
    /// Creates a reader of a dump's records; `bytes` are the dump's ([`crate::Heap::bytes`]).
    pub fn new(summary: &'a Summary, bytes: &'a [u8]) -> Self {
        Self { summary, bytes, reader: BodyReader::new(bytes, summary.id_size()) }
    }

    fn record(&self, places: &[PlaceRow], id: u64) -> Option<Record> {
        let at = places.binary_search_by_key(&id, |row| row.id.get()).ok()?;
        self.record_at(places.get(at)?.offset.get())
    }

    fn record_at(&self, offset: u64) -> Option<Record> {
        Record::at(self.bytes, usize::try_from(offset).ok()?)
    }

    fn string(&self, id: u64) -> Option<&'a [u8]> {
        let record = self.record_at(self.summary.string_offset(id)?)?;
        Some(self.reader.string(&record).ok()?.1)
    }

    /// Returns the text of a STRING record.
    pub fn text(&self, id: u64) -> Option<String> {
        Some(mutf8::decode(self.string(id)?).into_owned())
    }

    /// Returns the text of a STRING record with a name from a class file, truncated to 65,535 bytes.
    pub fn name(&self, id: u64) -> Option<String> {
        let bytes = self.string(id)?;
        Some(mutf8::decode(bytes.get(..MAX_NAME).unwrap_or(bytes)).into_owned())
    }

    /// Returns the frame IDs of a stack trace, innermost first.
    pub fn trace(&self, serial: TraceSerial) -> impl Iterator<Item = u64> + use<'a> {
        let record = self.record(self.summary.traces(), serial.0.into());
        let trace = record.and_then(|record| self.reader.trace(&record).ok());
        trace.into_iter().flat_map(|trace| trace.frames())
    }

    /// Returns the serial number of each stack trace, that of its thread, and whether it has frames.
    pub fn traces(&self) -> impl Iterator<Item = (TraceSerial, u32, bool)> {
        let traces = self.summary.traces().iter().filter_map(|row| self.record_at(row.offset.get()));
        let traces = traces.filter_map(|record| self.reader.trace(&record).ok());
        traces.map(|trace| (trace.serial, trace.thread, trace.frames().next().is_some()))
    }

    /// Returns the frame with this ID.
    pub fn frame(&self, id: u64) -> Option<StackFrameRecord> {
        let record = self.record(self.summary.frames(), id)?;
        let FrameRecord { method, source, class_serial, line, .. } = self.reader.frame(&record).ok()?;
        Some(StackFrameRecord { method, source, class_serial, line })
    }
}
