//! Results of millions of rows, written by several threads, each of which formats a chunk of rows.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use super::answer::JsonRow;
use super::column::{Columns, Schema};
use super::csv;
use super::in_order::{in_order, is_long};
use super::json::{self, DumpHeader};
use super::rows::{ColumnRows, RowCursor};

/// Result with rows of type `R` in CSV or JSON, with the same output as [`super::answer::Answer`].
#[derive(Debug)]
pub struct ChunkedAnswer<'a, R> {
    columns: Columns<'a, R>,
    form: ChunkedForm,
}

#[derive(Debug)]
enum ChunkedForm {
    Csv,
    Json(json::DocumentFrame),
}

impl<'a, R> ChunkedAnswer<'a, R> {
    /// Creates a CSV document. Records must have declared fields, because titles cannot depend on rows.
    pub fn csv(columns: Columns<'a, R>) -> Self {
        Self { columns, form: ChunkedForm::Csv }
    }

    /// Creates a JSON document. The columns `beside` of the row `of` become keys next to `rows`.
    ///
    /// # Errors
    /// If it cannot be serialized.
    pub fn json<M>(
        columns: Columns<'a, R>,
        command: &str,
        dump: &DumpHeader<'_>,
        beside: &Columns<'_, M>,
        of: &M,
    ) -> io::Result<Self> {
        let frame = json::DocumentFrame::new(command, dump, beside.record(of))?;
        Ok(Self { columns, form: ChunkedForm::Json(frame) })
    }

    /// Writes all chunks in order; chunks must not be empty. Returns the number of rows.
    ///
    /// Each thread holds the text of one chunk, or a few megabytes of it. A text is written only if `check` succeeds after its
    /// rows were generated.
    ///
    /// # Errors
    /// The first error of `out` or `check`.
    pub fn write<C: Send, I: IntoIterator<Item = R>>(
        &self,
        out: &mut (dyn Write + Send),
        chunks: impl IntoIterator<Item = C, IntoIter: Send>,
        rows: impl Fn(C) -> I + Sync,
        check: impl Fn() -> io::Result<()> + Sync,
    ) -> io::Result<u64> {
        let (head, count) = (self.head()?, AtomicU64::new(0));
        // If the first chunk is wrong, nothing is written: the head is part of its text.
        let heads = std::iter::once(head.as_slice()).chain(std::iter::repeat([].as_slice()));
        in_order(chunks.into_iter().zip(heads), out, |(chunk, head), text| {
            text.made.extend_from_slice(head);
            let mut rows = ColumnRows::new(&self.columns, rows(chunk).into_iter(), None);
            let mut made = 0;
            loop {
                made += self.form.push(&mut text.made, self.columns.schema(), &mut rows)?;
                if !is_long(&text.made) {
                    break;
                }
                check()?;
                text.limit();
            }
            count.fetch_add(made, Ordering::Relaxed);
            check()
        })?;
        let count = count.into_inner();
        if count == 0 {
            out.write_all(&head)?;
        }
        if let ChunkedForm::Json(frame) = &self.form {
            frame.tail(count).try_for_each(|part| out.write_all(part))?;
        }
        Ok(count)
    }

    fn head(&self) -> io::Result<Vec<u8>> {
        match &self.form {
            ChunkedForm::Json(frame) => Ok(frame.head().to_vec()),
            ChunkedForm::Csv => {
                let mut head = Vec::new();
                let none = ColumnRows::new(&self.columns, std::iter::empty::<R>(), None);
                csv::Writer::new(&mut head).header(self.columns.schema(), &none)?;
                Ok(head)
            }
        }
    }
}

impl ChunkedForm {
    /// Appends rows up to a size limit; returns their number.
    fn push(&self, out: &mut Vec<u8>, schema: &Schema, rows: &mut dyn RowCursor) -> io::Result<u64> {
        let mut made = 0;
        match self {
            Self::Csv => {
                let mut writer = csv::Writer::new(out);
                while !is_long(writer.get_ref()) && rows.advance() {
                    writer.row(schema, rows)?;
                    made += 1;
                }
            }
            Self::Json(_) => {
                while !is_long(out) && rows.advance() {
                    json::push_row(out, &JsonRow { keys: schema.keys(), row: rows })?;
                    made += 1;
                }
            }
        }
        Ok(made)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::Format;
    use crate::answer::Answer;
    use crate::column::{Column, ColumnKey, ValueKind};
    use crate::table::Style;
    use crate::value::{Value, list};

    const TEXT: &str = "a\u{202e}\n \"rows\": []";

    fn columns() -> Columns<'static, u64> {
        Columns::new([
            Column::new(ColumnKey::chosen("id", ValueKind::Id), |row: &u64| {
                Value::Id(hprof_values::ObjectId(*row))
            }),
            Column::new(ColumnKey::chosen("a.text", ValueKind::Text), |row: &u64| {
                format!("{TEXT} {row}").into()
            }),
            Column::new(ColumnKey::chosen("a.none", ValueKind::Integer), |_: &u64| Value::Null),
            Column::new(ColumnKey::chosen("list", ValueKind::Any), |row: &u64| list(0..*row % 3)),
        ])
    }

    fn summary_columns() -> Columns<'static, ()> {
        Columns::new([Column::new(ColumnKey::chosen("beside.rows", ValueKind::Text), |(): &()| TEXT.into())])
    }

    fn write_chunks(format: Format, chunks: &[Range<u64>]) -> (String, io::Result<u64>) {
        let dump = DumpHeader { path: TEXT.into(), ..DumpHeader::default() };
        let answer = match format {
            Format::Json => ChunkedAnswer::json(columns(), TEXT, &dump, &summary_columns(), &()).unwrap(),
            _ => ChunkedAnswer::csv(columns()),
        };
        let mut out = Vec::new();
        let count = answer.write(&mut out, chunks.to_vec(), |chunk| chunk, || Ok(()));
        (String::from_utf8(out).unwrap(), count)
    }

    #[test]
    fn chunks_are_the_answer_that_one_thread_writes() {
        let dump = DumpHeader { path: TEXT.into(), ..DumpHeader::default() };
        for format in [Format::Csv, Format::Json] {
            for count in [0, 1, 2, 100] {
                let chunks: Vec<Range<u64>> = (0..count).map(|at| at * 7..at * 7 + 7).collect();
                let mut expected = Vec::new();
                let rows = 0..count * 7;
                let answer = Answer::new(columns(), rows).with_summary(&summary_columns(), &());
                let count = answer.write(&mut expected, format, Style::default(), TEXT, &dump).unwrap();
                let (text, counted) = write_chunks(format, &chunks);
                assert_eq!((text, counted.unwrap()), (String::from_utf8(expected).unwrap(), count));
            }
        }
    }

    #[test]
    fn of_a_wrong_chunk_nothing_is_written() {
        let wrong = std::sync::atomic::AtomicBool::new(false);
        let answer = ChunkedAnswer::csv(columns());
        let rows = |chunk: Range<u64>| {
            wrong.fetch_or(chunk.start > 1, Ordering::Relaxed);
            chunk
        };
        let check = || {
            if wrong.load(Ordering::Relaxed) { Err(io::Error::other("wrong")) } else { Ok(()) }
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let mut out = Vec::new();
        pool.install(|| answer.write(&mut out, [0..1, 1..2, 2..3, 3..4], rows, check)).unwrap_err();
        assert_eq!(String::from_utf8(out).unwrap().lines().count(), 3);
        let mut out = Vec::new();
        pool.install(|| answer.write(&mut out, std::iter::once(2..3), rows, check)).unwrap_err();
        assert!(out.is_empty());
    }
}
