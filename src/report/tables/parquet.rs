//! Tables of a dump as Parquet files.
//!
//! A thread encodes a row group column by column from slices of the batches it reads, and keeps the compressed pages. A
//! `ParquetPart` appends the pages of finished row groups to its file. Integers and object IDs are delta-encoded in bit-packed
//! blocks (DELTA_BINARY_PACKED), names are dictionary-encoded, pages are compressed with zstd. Each column of a row group has
//! its minimum and maximum, by which engines skip row groups. docs/performance.md describes the alternatives that were
//! measured.

use std::fs::File;
use std::io::{self, BufWriter};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnCloseResult, ColumnWriter, ColumnWriterImpl, get_column_writer};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnPath, SchemaDescriptor, Type, TypePtr};

use super::{WrittenColumn, WrittenColumns, column};
use hprof_query::tables::{Batch, ColumnType, NO_NAME, Values};

/// Value of `created_by` in the file, in the form that readers parse.
const CREATED_BY: &str = concat!("hprof-cli version ", env!("CARGO_PKG_VERSION"), " (build 1)");
/// Compression level of zstd.
const ZSTD_LEVEL: i32 = 1;
/// Maximum number of rows of a page.
const PAGE_ROWS: usize = 1 << 17;
/// Number of rows between the crate's checks of a page's size.
const STEP_ROWS: usize = 1 << 13;
/// Maximum size of a dictionary in bytes: enough for the names of all classes of a large program.
const DICTIONARY_BYTES: usize = 16 << 20;

fn into_io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        other => io::Error::other(other),
    }
}

/// Parquet schema of a table.
pub(super) struct ParquetSchema {
    shape: Arc<WrittenColumns>,
    root: TypePtr,
    columns: SchemaDescriptor,
    properties: WriterPropertiesPtr,
}

impl ParquetSchema {
    /// Creates the schema for the columns of a table.
    pub(super) fn new(shape: &Arc<WrittenColumns>) -> io::Result<Self> {
        let fields: Result<Vec<TypePtr>, ParquetError> =
            shape.fields.iter().map(|field| Ok(Arc::new(of_field(field)?))).collect();
        let root = Type::group_type_builder("row")
            .with_fields(fields.map_err(into_io_error)?)
            .build()
            .map_err(into_io_error)?;
        let root = Arc::new(root);
        let mut properties = WriterProperties::builder()
            .set_created_by(CREATED_BY.to_owned())
            .set_writer_version(WriterVersion::PARQUET_1_0)
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL).map_err(into_io_error)?))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_dictionary_enabled(false)
            .set_dictionary_page_size_limit(DICTIONARY_BYTES)
            .set_data_page_row_count_limit(PAGE_ROWS)
            .set_write_batch_size(STEP_ROWS);
        for field in &shape.fields {
            let path = ColumnPath::new(vec![field.name.clone()]);
            properties = match field.kind {
                ColumnType::Integer | ColumnType::Id => {
                    properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
                }
                ColumnType::Name => properties.set_column_dictionary_enabled(path, true),
                ColumnType::Boolean | ColumnType::Real | ColumnType::Text => properties,
            };
        }
        Ok(Self {
            shape: shape.clone(),
            columns: SchemaDescriptor::new(root.clone()),
            root,
            properties: Arc::new(properties.build()),
        })
    }

    /// Creates the encoder of a row group.
    pub(super) fn encoder(&self) -> io::Result<RowGroupEncoder> {
        let columns = self.shape.fields.iter().zip(self.columns.columns()).map(|(field, column)| {
            let pages = ColumnPages::default();
            let writer = get_column_writer(column.clone(), self.properties.clone(), Box::new(pages.clone()));
            ColumnEncoder { field: field.clone(), writer, pages, levels: Vec::new(), names: Vec::new() }
        });
        Ok(RowGroupEncoder { rows: 0, columns: columns.collect() })
    }

    /// Starts the file of a part.
    pub(super) fn part(&self, file: File) -> io::Result<ParquetPart> {
        let file = BufWriter::with_capacity(1 << 20, file);
        let writer = SerializedFileWriter::new(file, self.root.clone(), self.properties.clone())
            .map_err(into_io_error)?;
        Ok(ParquetPart { writer })
    }
}

fn of_field(field: &WrittenColumn) -> Result<Type, ParquetError> {
    let (physical, logical) = match field.kind {
        ColumnType::Integer | ColumnType::Id => (Physical::INT64, None),
        ColumnType::Real => (Physical::DOUBLE, None),
        ColumnType::Boolean => (Physical::BOOLEAN, None),
        ColumnType::Text | ColumnType::Name => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let repetition = if field.may_be_null { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    Type::primitive_type_builder(&field.name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build()
}

/// Compressed pages of one column of a row group.
#[derive(Clone)]
struct ColumnPages(Arc<Mutex<TrackedWrite<Vec<u8>>>>);

impl Default for ColumnPages {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(TrackedWrite::new(Vec::new()))))
    }
}

impl ColumnPages {
    fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).bytes_written()
    }

    fn take(&self) -> Result<Vec<u8>, ParquetError> {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *pages, TrackedWrite::new(Vec::new())).into_inner()
    }
}

impl PageWriter for ColumnPages {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec, ParquetError> {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        SerializedPageWriter::new(&mut *pages).write_page(page)
    }

    fn close(&mut self) -> Result<(), ParquetError> {
        Ok(())
    }
}

/// Encoder of one row group.
pub(super) struct RowGroupEncoder {
    rows: u64,
    columns: Vec<ColumnEncoder>,
}

impl RowGroupEncoder {
    /// Returns the number of rows added so far.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the size in bytes of the encoded pages so far.
    pub(super) fn bytes(&self) -> usize {
        self.columns.iter().map(|column| column.pages.len()).sum()
    }

    /// Adds a range of rows of a batch.
    pub(super) fn add(&mut self, batch: &Batch, rows: Range<usize>) -> io::Result<()> {
        self.rows += rows.len() as u64;
        for (at, encoder) in self.columns.iter_mut().enumerate() {
            let values = column(batch, at, &encoder.field);
            encoder.add(values, rows.clone()).map_err(into_io_error)?;
        }
        Ok(())
    }

    /// Ends the row group.
    pub(super) fn finish(self) -> io::Result<EncodedGroup> {
        let columns = self.columns.into_iter().map(|column| {
            let closed = column.writer.close()?;
            Ok((Bytes::from(column.pages.take()?), closed))
        });
        let columns: Result<Vec<_>, ParquetError> = columns.collect();
        Ok(EncodedGroup { rows: self.rows, columns: columns.map_err(into_io_error)? })
    }
}

/// Encoder of one column of a row group.
struct ColumnEncoder {
    field: WrittenColumn,
    writer: ColumnWriter<'static>,
    pages: ColumnPages,
    /// Definition level of each row: 1 for a valid value, 0 for null.
    levels: Vec<i16>,
    /// Names used so far, by number.
    names: Vec<Option<ByteArray>>,
}

impl ColumnEncoder {
    fn add(&mut self, values: &Values, rows: Range<usize>) -> Result<(), ParquetError> {
        let Self { field, writer, levels, names, .. } = self;
        let count = rows.len();
        levels.clear();
        if let Values::Absent = values {
            levels.resize(count, 0);
            return match writer {
                ColumnWriter::Int64ColumnWriter(writer) => writer.write_batch(&[], Some(levels), None),
                ColumnWriter::BoolColumnWriter(writer) => writer.write_batch(&[], Some(levels), None),
                ColumnWriter::DoubleColumnWriter(writer) => writer.write_batch(&[], Some(levels), None),
                ColumnWriter::ByteArrayColumnWriter(writer) => writer.write_batch(&[], Some(levels), None),
                _ => Ok(0),
            }
            .map(drop);
        }
        // Validity of the values.
        let valid = match values {
            Values::Integers { valid, .. } | Values::Reals { valid, .. } | Values::Texts { valid, .. } => {
                valid
            }
            Values::Names { .. } | Values::Absent => &Vec::new(),
        };
        let has_nulls = match values {
            Values::Names { numbers, .. } => slice(numbers, &rows).contains(&NO_NAME),
            _ => !valid.is_empty(),
        };
        match values {
            _ if !field.may_be_null => {}
            Values::Names { numbers, .. } if has_nulls => {
                levels.extend(slice(numbers, &rows).iter().map(|number| i16::from(*number != NO_NAME)));
            }
            _ if has_nulls => levels.extend(slice(valid, &rows).iter().map(|valid| i16::from(*valid))),
            _ => levels.resize(count, 1),
        }
        let has_nulls = has_nulls && field.may_be_null;
        let levels = field.may_be_null.then_some(levels.as_slice());
        match (writer, values) {
            (ColumnWriter::Int64ColumnWriter(writer), Values::Integers { values, .. }) => {
                let valid = has_nulls.then(|| slice(valid, &rows));
                write_present(writer, slice(values, &rows), valid, levels)?;
            }
            (ColumnWriter::BoolColumnWriter(writer), Values::Integers { values, .. }) => {
                let there: Vec<bool> = rows
                    .filter(|row| !has_nulls || is_valid(valid, *row))
                    .map(|row| values.get(row).is_some_and(|value| *value != 0))
                    .collect();
                writer.write_batch(&there, levels, None)?;
            }
            (ColumnWriter::DoubleColumnWriter(writer), Values::Reals { values, .. }) => {
                let valid = has_nulls.then(|| slice(valid, &rows));
                write_present(writer, slice(values, &rows), valid, levels)?;
            }
            (ColumnWriter::ByteArrayColumnWriter(writer), Values::Texts { text, ends, .. }) => {
                // One copy of all texts, which the values of the slice share.
                let start = rows.start.checked_sub(1).and_then(|row| ends.get(row)).copied().unwrap_or(0);
                let end = rows.end.checked_sub(1).and_then(|row| ends.get(row)).copied().unwrap_or(start);
                let all = Bytes::copy_from_slice(text.as_bytes().get(start..end).unwrap_or_default());
                let mut at = 0;
                let mut there = Vec::with_capacity(count);
                for row in rows {
                    let length = text_at(text, ends, row).len();
                    if !has_nulls || is_valid(valid, row) {
                        there.push(ByteArray::from(all.slice(at..at + length)));
                    }
                    at += length;
                }
                writer.write_batch(&there, levels, None)?;
            }
            (ColumnWriter::ByteArrayColumnWriter(writer), Values::Names { names: all, numbers, .. }) => {
                if names.len() < all.len() {
                    names.resize(all.len(), None);
                }
                let mut there = Vec::with_capacity(count);
                for number in slice(numbers, &rows) {
                    let at = usize::try_from(*number).unwrap_or(usize::MAX);
                    match (names.get_mut(at), all.get(at)) {
                        (Some(Some(name)), _) => there.push(name.clone()),
                        (Some(name @ None), Some(text)) => {
                            let text = ByteArray::from(text);
                            there.push(text.clone());
                            *name = Some(text);
                        }
                        _ if has_nulls => {}
                        _ => there.push(ByteArray::from("")),
                    }
                }
                writer.write_batch(&there, levels, None)?;
            }
            _ => {
                let name = &field.name;
                return Err(ParquetError::General(format!(
                    "column {name}: the values do not have the type of the column"
                )));
            }
        }
        Ok(())
    }
}

fn slice<'v, T>(values: &'v [T], rows: &Range<usize>) -> &'v [T] {
    values.get(rows.clone()).unwrap_or_default()
}

/// Writes a column's values: all of them, or only the valid ones if some are null.
fn write_present<D: DataType<T: Copy>>(
    writer: &mut ColumnWriterImpl<'_, D>,
    values: &[D::T],
    valid: Option<&[bool]>,
    levels: Option<&[i16]>,
) -> Result<usize, ParquetError> {
    let Some(valid) = valid else { return writer.write_batch(values, levels, None) };
    let present = values.iter().zip(valid).filter(|(_, valid)| **valid).map(|(value, _)| *value);
    writer.write_batch(&present.collect::<Vec<_>>(), levels, None)
}

/// Encoded row group that can be appended to a file.
pub(super) struct EncodedGroup {
    rows: u64,
    columns: Vec<(Bytes, ColumnCloseResult)>,
}

impl EncodedGroup {
    /// Returns the number of rows.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }
}

/// Parquet file that is being written.
pub(super) struct ParquetPart {
    writer: SerializedFileWriter<BufWriter<File>>,
}

impl ParquetPart {
    /// Appends an encoded row group to the file.
    pub(super) fn append(&mut self, group: EncodedGroup) -> io::Result<()> {
        let append = || {
            let mut row_group = self.writer.next_row_group()?;
            for (pages, closed) in group.columns {
                row_group.append_column(&pages, closed)?;
            }
            row_group.close().map(drop)
        };
        append().map_err(into_io_error)
    }

    /// Ends the file; returns its length in bytes.
    pub(super) fn close(mut self) -> io::Result<u64> {
        self.writer.finish().map_err(into_io_error)?;
        Ok(self.writer.bytes_written() as u64)
    }
}

/// Returns whether the value of a row is valid. An empty list means that all are.
fn is_valid(valid: &[bool], row: usize) -> bool {
    valid.get(row).copied().unwrap_or(true)
}

/// Returns the text of a row, given the text of all rows and the ends of each.
fn text_at<'b>(text: &'b str, ends: &[usize], row: usize) -> &'b str {
    let start = row.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    ends.get(row).and_then(|end| text.get(start..*end)).unwrap_or_default()
}
