//! Tables of a dump as files for other engines.
//!
//! [`write()`] generates rows on all threads. Each thread takes some chunks of a table and encodes their rows by `parquet`,
//! [`csv`] or [`ndjson`]; the results are appended to the files of the table in the order of its rows. The ends of files and
//! row groups depend only on rows, and nothing about the time or the machine is written, so the same dump has the same bytes as
//! output.

pub mod csv;
pub mod ndjson;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod schema;

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use super::in_order::{self, OrderedItem};
use hprof_query::tables::{
    Batch, ColumnSet, ColumnType, Definition, PreparedData, Table, TableChunk, TableQuery, Values,
};

/// Number of rows of a part (file) of a table; the last part has fewer. A part ends at the end of a row group.
const PART_ROWS: u64 = 8 << 20;
/// Number of rows that a thread encodes at once in a columnar format, which form a row group.
#[cfg(feature = "parquet")]
const GROUP_ROWS: u64 = 1 << 20;
/// Maximum number of rows of a row group, regardless of the table's estimate.
#[cfg(feature = "parquet")]
const MAX_GROUP_ROWS: u64 = 2 * GROUP_ROWS;
/// Number of rows that a thread formats as text at once. Results are written in order, so other threads wait for long ones.
const TEXT_ROWS: u64 = 1 << 16;
/// Number of bytes of text after which the rows of another part may follow.
const TEXT_BYTES: usize = 8 << 20;
/// Number of bytes of text that are written before a text is complete.
const MAX_TEXT: usize = 2 << 20;
/// Number of rows that are formatted as text between checks of its length.
const TEXT_SLICE_ROWS: usize = 1 << 13;
/// Number of rows that are encoded at once, so that their columns stay in the cache of a core.
const SLICE_ROWS: usize = 1 << 16;

/// File formats of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFormat {
    /// Apache Parquet: compressed columns with statistics.
    #[cfg(feature = "parquet")]
    Parquet,
    /// CSV: a header line, then one line per row.
    Csv,
    /// NDJSON: one JSON object per line.
    NdJson,
}

impl TableFormat {
    /// Returns the file name extension of the format.
    pub fn extension(self) -> &'static str {
        match self {
            #[cfg(feature = "parquet")]
            Self::Parquet => "parquet",
            Self::Csv => "csv",
            Self::NdJson => "ndjson",
        }
    }

    fn rows_at_once(self) -> u64 {
        match self {
            #[cfg(feature = "parquet")]
            Self::Parquet => GROUP_ROWS,
            Self::Csv | Self::NdJson => TEXT_ROWS,
        }
    }
}

/// Column of a table in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenColumn {
    /// Name of the column.
    pub name: String,
    /// Type of the column's values.
    pub kind: ColumnType,
    /// `true` if the column may be null.
    pub may_be_null: bool,
    /// `true` if the column is null in every row, because its values are hidden.
    pub is_hidden: bool,
}

/// Columns of a table in its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenColumns {
    /// Columns.
    pub fields: Vec<WrittenColumn>,
}

impl WrittenColumns {
    /// Returns the columns of a table. `is_hidden` receives a column's name and whether it may be secret, and decides if it is
    /// hidden.
    pub fn new(definition: &Definition, is_hidden: impl Fn(&str, bool) -> bool) -> Self {
        let field = |column: &hprof_query::tables::Column| {
            let is_hidden = is_hidden(&column.name, column.is_secret);
            WrittenColumn {
                name: column.name.to_string(),
                kind: column.kind,
                // The schema does not depend on hidden values, so that files with and without them form one table.
                may_be_null: column.null.is_some() || column.is_secret || is_hidden,
                is_hidden,
            }
        };
        Self { fields: definition.columns.iter().map(field).collect() }
    }

    /// Returns the columns to read: all except hidden ones.
    fn columns_to_read(&self) -> ColumnSet {
        let shown = self.fields.iter().enumerate().filter(|(_, field)| !field.is_hidden);
        ColumnSet(shown.fold(0, |wanted, (at, _)| wanted | 1 << at.min(63)))
    }
}

/// Table to write, with its columns.
pub struct TableSource<'a> {
    /// Table that generates the rows.
    pub table: &'a dyn Table,
    /// Columns to write.
    pub shape: Arc<WrittenColumns>,
}

/// Creator of the files of tables.
pub trait Files: Send {
    /// Creates the file for a part of a table; both are given by index.
    ///
    /// # Errors
    /// If the file cannot be created.
    fn create(&mut self, table: usize, part: u64) -> io::Result<File>;

    /// Returns the name of a part's file for messages.
    fn name(&self, table: usize, part: u64) -> String;
}

/// Amount written for a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WrittenAmount {
    /// Number of rows.
    pub rows: u64,
    /// Size of all parts in bytes.
    pub bytes: u64,
    /// Number of parts.
    pub parts: u64,
}

/// Writes tables, each with at least one part. `begin` receives the index of the next table; `check` fails if the data that was
/// read is wrong. Returns the amounts written by table.
///
/// # Errors
/// If rows cannot be read or files cannot be written, and any error of `check`.
pub fn write(
    tables: &[TableSource<'_>],
    format: TableFormat,
    files: &mut dyn Files,
    begin: &(dyn Fn(usize) + Sync),
    check: &(dyn Fn() -> io::Result<()> + Sync),
) -> io::Result<Vec<WrittenAmount>> {
    let mut tasks = Vec::new();
    for (table, source) in tables.iter().enumerate() {
        let chunks = source.table.chunks(&TableQuery::All)?;
        let rows_of_chunk = source.table.rows() / (chunks.len() as u64).max(1);
        let chunks_at_once = (format.rows_at_once() / rows_of_chunk.max(1)).max(1);
        let chunks_at_once = usize::try_from(chunks_at_once).unwrap_or(usize::MAX);
        if chunks.is_empty() {
            tasks.push(Task { table, chunks: Vec::new() });
        }
        tasks.extend(chunks.chunks(chunks_at_once).map(|chunks| Task { table, chunks: chunks.to_vec() }));
    }
    // Preparation takes memory while chunks are created, so it follows everything else that does; the result is kept until all
    // rows are written.
    let prepare = |source: &TableSource<'_>| source.table.prepare(source.shape.columns_to_read(), &|| false);
    let _prepared: Vec<PreparedData> = tables.iter().filter_map(prepare).collect();
    let forms: Vec<TableForm> =
        tables.iter().map(|source| TableForm::new(format, &source.shape)).collect::<io::Result<_>>()?;
    let mut sink = TableFileWriter { forms: &forms, files, begin, part: None, written: Vec::new() };
    let mut put = |piece: &mut MadePart| {
        let piece = std::mem::take(piece);
        let table = piece.table;
        sink.put(piece).map_err(|error| sink.write_error(table, &error))
    };
    in_order::process_in_order(
        tasks.into_iter(),
        &mut put,
        |task: Task, out: &mut OrderedItem<'_, '_, MadePart>| {
            let (Some(source), Some(form)) = (tables.get(task.table), forms.get(task.table)) else {
                return Ok(());
            };
            task.encode(source, form, check, out)
        },
    )?;
    sink.finish()
}

/// Chunks of a table that a thread encodes at once.
struct Task {
    table: usize,
    chunks: Vec<TableChunk>,
}

impl Task {
    fn encode(
        &self,
        source: &TableSource<'_>,
        form: &TableForm,
        check: &(dyn Fn() -> io::Result<()> + Sync),
        out: &mut OrderedItem<'_, '_, MadePart>,
    ) -> io::Result<()> {
        let wanted = source.shape.columns_to_read();
        let mut batch = source.table.batch(wanted);
        let (mut encoder, mut is_rest, mut sent) = (form.encoder()?, false, 0);
        for chunk in &self.chunks {
            batch.clear();
            source.table.read(chunk, wanted, &mut batch)?;
            let mut start = 0;
            while start < batch.rows {
                let end = batch.rows.min(start + SLICE_ROWS);
                while start < end {
                    let next = end.min(start.saturating_add(encoder.slice_rows()));
                    encoder.add(&batch, start..next)?;
                    start = next;
                    // The ends of parts depend only on rows, not on the text that is written early.
                    let (is_full, is_long) =
                        (start == end && encoder.is_full(sent), encoder.text_bytes() >= MAX_TEXT);
                    if !is_full && !is_long {
                        continue;
                    }
                    check()?;
                    sent = if is_full { 0 } else { sent + encoder.text_bytes() };
                    out.made = MadePart { table: self.table, data: encoder.finish()?, is_rest };
                    is_rest = !is_full;
                    if !out.send() {
                        return Ok(());
                    }
                    encoder = form.encoder()?;
                }
            }
        }
        check()?;
        out.made = MadePart { table: self.table, data: encoder.finish()?, is_rest };
        Ok(())
    }
}

/// Encoded rows of a task, or a part of them, passed from a thread to the writer.
#[derive(Default)]
struct MadePart {
    table: usize,
    data: Data,
    /// `true` if the data belongs to the same part of the table as the previous text.
    is_rest: bool,
}

/// Encoded rows in the format of the table.
#[derive(Default)]
enum Data {
    #[default]
    None,
    /// Lines of text and their number.
    Text(Vec<u8>, u64),
    #[cfg(feature = "parquet")]
    Group(parquet::EncodedGroup),
}

impl Data {
    fn rows(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Text(_, rows) => *rows,
            #[cfg(feature = "parquet")]
            Self::Group(group) => group.rows(),
        }
    }
}

/// Format of a table with its prepared columns.
enum TableForm {
    Csv(Arc<WrittenColumns>),
    NdJson(ndjson::JsonKeys),
    #[cfg(feature = "parquet")]
    Parquet(parquet::ParquetSchema),
}

impl TableForm {
    fn new(format: TableFormat, shape: &Arc<WrittenColumns>) -> io::Result<Self> {
        Ok(match format {
            TableFormat::Csv => Self::Csv(shape.clone()),
            TableFormat::NdJson => Self::NdJson(ndjson::JsonKeys::new(shape)?),
            #[cfg(feature = "parquet")]
            TableFormat::Parquet => Self::Parquet(parquet::ParquetSchema::new(shape)?),
        })
    }

    fn encoder(&self) -> io::Result<Encoder<'_>> {
        Ok(match self {
            Self::Csv(_) | Self::NdJson(_) => Encoder::Text { form: self, text: Vec::new(), rows: 0 },
            #[cfg(feature = "parquet")]
            Self::Parquet(schema) => Encoder::Group(schema.encoder()?),
        })
    }
}

/// Encoder of rows in the format of a table.
enum Encoder<'f> {
    Text {
        form: &'f TableForm,
        text: Vec<u8>,
        rows: u64,
    },
    #[cfg(feature = "parquet")]
    Group(parquet::RowGroupEncoder),
}

impl Encoder<'_> {
    fn add(&mut self, batch: &Batch, range: Range<usize>) -> io::Result<()> {
        match self {
            Self::Text { form, text, rows } => {
                *rows += range.len() as u64;
                match form {
                    TableForm::Csv(shape) => csv::push_rows(text, shape, batch, range),
                    TableForm::NdJson(keys) => keys.push_rows(text, batch, range),
                    #[cfg(feature = "parquet")]
                    TableForm::Parquet(_) => Ok(()),
                }
            }
            #[cfg(feature = "parquet")]
            Self::Group(encoder) => encoder.add(batch, range),
        }
    }

    /// Returns the number of rows to add at once.
    fn slice_rows(&self) -> usize {
        match self {
            Self::Text { .. } => TEXT_SLICE_ROWS,
            #[cfg(feature = "parquet")]
            Self::Group(_) => SLICE_ROWS,
        }
    }

    /// Returns the length of the text so far in bytes; 0 for Parquet.
    fn text_bytes(&self) -> usize {
        match self {
            Self::Text { text, .. } => text.len(),
            #[cfg(feature = "parquet")]
            Self::Group(_) => 0,
        }
    }

    /// Returns whether the encoder should not take more rows. `sent` bytes of the same text were already written.
    fn is_full(&self, sent: usize) -> bool {
        match self {
            Self::Text { text, .. } => text.len().saturating_add(sent) >= TEXT_BYTES,
            #[cfg(feature = "parquet")]
            Self::Group(encoder) => encoder.rows() >= MAX_GROUP_ROWS || encoder.bytes() >= MAX_GROUP_BYTES,
        }
    }

    fn finish(self) -> io::Result<Data> {
        Ok(match self {
            Self::Text { text, rows, .. } => Data::Text(text, rows),
            #[cfg(feature = "parquet")]
            Self::Group(encoder) => Data::Group(encoder.finish()?),
        })
    }
}

/// Encoded size in bytes at which a row group ends; row groups of long texts have fewer rows.
#[cfg(feature = "parquet")]
const MAX_GROUP_BYTES: usize = 64 << 20;

/// Part of a table whose file is being written.
struct OpenPart {
    table: usize,
    rows: u64,
    out: Out,
}

/// Writer of a part's file, by format.
enum Out {
    Text(File, u64),
    #[cfg(feature = "parquet")]
    Parquet(Box<parquet::ParquetPart>),
}

/// Writer of the threads' results into files, in the order of rows.
struct TableFileWriter<'a> {
    forms: &'a [TableForm],
    files: &'a mut dyn Files,
    begin: &'a (dyn Fn(usize) + Sync),
    part: Option<OpenPart>,
    /// Amounts written by table, for the tables that already have parts.
    written: Vec<WrittenAmount>,
}

impl TableFileWriter<'_> {
    fn put(&mut self, piece: MadePart) -> io::Result<()> {
        let rows = piece.data.rows();
        let goes_on = |part: &OpenPart| {
            part.table == piece.table && (piece.is_rest || rows == 0 || part.rows < PART_ROWS)
        };
        if !self.part.as_ref().is_some_and(goes_on) {
            self.close()?;
            self.open(piece.table)?;
        }
        let Some(part) = &mut self.part else { return Ok(()) };
        part.rows += rows;
        match (&mut part.out, piece.data) {
            (Out::Text(file, bytes), Data::Text(text, _)) => {
                *bytes += text.len() as u64;
                file.write_all(&text)
            }
            #[cfg(feature = "parquet")]
            (Out::Parquet(part), Data::Group(group)) if rows > 0 => part.append(group),
            _ => Ok(()),
        }
    }

    fn open(&mut self, table: usize) -> io::Result<()> {
        if self.written.len() <= table {
            (self.begin)(table);
            self.written.resize(table + 1, WrittenAmount::default());
        }
        let part = self.written.get(table).map_or(0, |written| written.parts);
        let mut file = self.files.create(table, part)?;
        let out = match self.forms.get(table) {
            Some(TableForm::Csv(shape)) => {
                let mut header = Vec::new();
                csv::push_header(&mut header, shape);
                file.write_all(&header)?;
                Out::Text(file, header.len() as u64)
            }
            #[cfg(feature = "parquet")]
            Some(TableForm::Parquet(schema)) => Out::Parquet(Box::new(schema.part(file)?)),
            _ => Out::Text(file, 0),
        };
        self.part = Some(OpenPart { table, rows: 0, out });
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        let Some(part) = self.part.take() else { return Ok(()) };
        let bytes = match part.out {
            Out::Text(_, bytes) => bytes,
            #[cfg(feature = "parquet")]
            Out::Parquet(parquet) => parquet.close()?,
        };
        if let Some(written) = self.written.get_mut(part.table) {
            written.rows += part.rows;
            written.bytes += bytes;
            written.parts += 1;
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<Vec<WrittenAmount>> {
        let table = self.written.len().saturating_sub(1);
        self.close().map_err(|error| self.write_error(table, &error))?;
        Ok(self.written)
    }

    fn write_error(&self, table: usize, error: &io::Error) -> io::Error {
        let part = self.written.get(table).map_or(0, |written| written.parts);
        io::Error::new(error.kind(), format!("cannot write {}: {error}", self.files.name(table, part)))
    }
}

/// Returns the values of a column in a batch.
fn column<'b>(batch: &'b Batch, at: usize, field: &WrittenColumn) -> &'b Values {
    match batch.columns.get(at) {
        Some(values) if !field.is_hidden => values,
        _ => &Values::Absent,
    }
}
