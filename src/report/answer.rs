//! Result of a command in any format: rows with declared columns, and the texts around them.
//!
//! Rows are generated as they are written, so millions of rows take no memory. A table collects the first few thousand rows to
//! determine the widths of columns.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::io::{self, Write};

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::column::{CellTarget, Columns, JsonField, KeyNode, Schema};
pub use super::grid::RowLine;
use super::grid::{self, Grid};
use super::json::{self, DumpHeader};
use super::line::TextSink;
use super::number::group_digits;
use super::rows::{Cells, ColumnRows, LinesBelow, RowCursor};
use super::screen::Screen;
pub use super::section::{Section, UnwrappedLine};
use super::table::{self, ChunkedTable, Style, TableBuilder};
use super::tree::Branch;
use super::value::Value;
use super::window::RowWindow;
use super::{Format, csv};

/// Display of a table without rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NoRows {
    /// Shows titles and totals.
    #[default]
    Titles,
    /// Shows nothing, because a note says why there are no rows.
    Nothing,
    /// Shows this line instead of titles.
    Line(Cow<'static, str>),
}

/// Result of a command with rows of type `R`.
pub struct Answer<'a, R> {
    columns: Columns<'a, R>,
    rows: Box<dyn Iterator<Item = R> + 'a>,
    below: Option<Box<LinesBelow<'a, R>>>,
    around: Around,
}

/// Content around the rows of a result.
#[derive(Debug)]
struct Around {
    summary: Value<'static>,
    above: Vec<Section>,
    under: Vec<Section>,
    totals: Vec<Vec<(&'static str, String)>>,
    /// Maximum number of rows shown.
    most: usize,
    /// Number of matching rows, if counted, and the noun for the rows.
    matching: Option<(Option<u64>, &'static str)>,
    /// Options of the command that show all rows.
    all: Option<&'static str>,
    no_rows: NoRows,
}

impl<R> std::fmt::Debug for Answer<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer").field("columns", &self.columns.fields()).finish_non_exhaustive()
    }
}

impl<'a, R> Answer<'a, R> {
    /// Creates a result with the given rows.
    pub fn new(columns: Columns<'a, R>, rows: impl IntoIterator<Item = R, IntoIter: 'a>) -> Self {
        Self { columns, rows: Box::new(rows.into_iter()), below: None, around: Around::default() }
    }

    /// Sets the keys next to `rows` in JSON, declared as columns of a single row `of`.
    pub fn with_summary<M>(mut self, columns: &Columns<'_, M>, of: &M) -> Self {
        self.around.summary = columns.record(of);
        self
    }

    /// Adds a section above the table.
    pub fn with_section_above(mut self, section: Section) -> Self {
        self.around.above.push(section);
        self
    }

    /// Adds a section below the table, after the line about omitted rows.
    pub fn with_section_below(mut self, section: Section) -> Self {
        self.around.under.push(section);
        self
    }

    /// Adds a row of totals below the table. Each cell is given with the title of its column.
    pub fn total(mut self, cells: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        self.around.totals.push(cells.into_iter().collect());
        self
    }

    /// Replaces rows and columns in table format, for facts about one thing.
    pub fn instead_of_table(mut self, table: TableBuilder) -> Self {
        self.columns.hide_from_tables();
        self.around.no_rows = NoRows::Nothing;
        self.with_section_above(Section::Table(table))
    }

    /// Sets the function that returns the lines below each row of a table.
    pub fn with_lines_below(mut self, lines: impl Fn(&R) -> Vec<RowLine> + 'a) -> Self {
        self.below = Some(Box::new(lines));
        self
    }

    /// Sets the number of all matching rows and the noun for them, such as "rows" or "objects". A table states how many rows
    /// are not shown.
    pub fn matching(mut self, total: u64, what: &'static str) -> Self {
        self.around.matching = Some((Some(total), what));
        self
    }

    /// Limits the number of rows if the total is not counted. A table states whether there are more rows; to find out, one more
    /// row is generated.
    pub fn first_of(mut self, most: usize, what: &'static str) -> Self {
        self.around.most = most;
        self.around.matching = Some((None, what));
        self
    }

    /// Sets the options that show all rows, if the option in [`Style`] alone does not.
    pub fn all_by(mut self, options: &'static str) -> Self {
        self.around.all = Some(options);
        self
    }

    /// Sets the display of a table without rows.
    pub fn if_empty(mut self, no_rows: NoRows) -> Self {
        self.around.no_rows = no_rows;
        self
    }

    /// Writes the result in the given format. Returns the number of rows.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write(
        self,
        out: &mut dyn Write,
        format: Format,
        style: Style,
        command: &str,
        dump: &DumpHeader<'_>,
    ) -> io::Result<u64> {
        self.with_erased(|answer| answer.write(out, format, style, command, dump))
    }

    /// Calls `show` with the type-erased result, so that `show` is compiled only once.
    pub fn with_erased<T>(self, show: impl FnOnce(ErasedAnswer<'_>) -> T) -> T {
        let Self { columns, rows, below, around } = self;
        let mut rows = ColumnRows::new(&columns, rows, below.as_deref()).first_of(around.most);
        show(ErasedAnswer { schema: columns.schema(), rows: &mut rows, around })
    }
}

impl Default for Around {
    fn default() -> Self {
        Self {
            summary: Value::Record(Vec::new()),
            above: Vec::new(),
            under: Vec::new(),
            totals: Vec::new(),
            most: usize::MAX,
            matching: None,
            all: None,
            no_rows: NoRows::default(),
        }
    }
}

/// [`Answer`] with its row type erased.
pub struct ErasedAnswer<'m> {
    schema: &'m Schema,
    rows: &'m mut dyn RowCursor,
    around: Around,
}

impl std::fmt::Debug for ErasedAnswer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ErasedAnswer").field("around", &self.around).finish_non_exhaustive()
    }
}

impl ErasedAnswer<'_> {
    /// Writes the result in the given format. Returns the number of rows.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write(
        self,
        out: &mut dyn Write,
        format: Format,
        style: Style,
        command: &str,
        dump: &DumpHeader<'_>,
    ) -> io::Result<u64> {
        match format {
            Format::Table => self.write_table(out, style),
            Format::Csv => csv::write_rows(out, self.schema, self.rows),
            Format::Json => {
                let rows = JsonRows { keys: self.schema.keys(), rows: self.rows.into(), count: 0.into() };
                json::write(out, command, dump, &rows, &self.around.summary)?;
                Ok(rows.count.get())
            }
        }
    }

    /// Writes the result as JSON and, after a zero byte, as a table. The rows are generated only once. Returns the number of
    /// rows.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write_both(
        self,
        out: &mut dyn Write,
        style: Style,
        command: &str,
        dump: &DumpHeader<'_>,
    ) -> io::Result<u64> {
        let Self { schema, rows, around } = self;
        let mut rows = TabledRows { table: TableBuilder::from_schema(schema), schema, rows };
        let json = JsonRows { keys: schema.keys(), rows: RefCell::new(&mut rows), count: 0.into() };
        json::write(&mut *out, command, dump, &json, &around.summary)?;
        let shown = json.count.get();
        out.write_all(b"\0")?;
        let mut lines = TextSink { out, color: style.color };
        around.above.into_iter().try_for_each(|section| section.write(&mut lines, style))?;
        let TabledRows { mut table, rows, .. } = rows;
        match &around.no_rows {
            NoRows::Nothing if shown == 0 => {}
            NoRows::Line(line) if shown == 0 => table::write_text(&mut lines, line, style)?,
            _ => {
                around.totals.iter().for_each(|cells| table.total_by_title(cells));
                table.write_lines(&mut lines, style)?;
            }
        }
        if let Some((more, what)) = omitted_count(around.matching, shown, rows) {
            let all = table::option(around.all.unwrap_or(style.all_rows), "shows all");
            table::write_text(&mut lines, &(more_rows(more, what) + &all), style)?;
        }
        around.under.into_iter().try_for_each(|section| section.write(&mut lines, style))?;
        Ok(shown)
    }

    /// Converts the result to a grid for a page; also returns the number of rows.
    pub fn into_grid(self) -> (Grid, u64) {
        let Self { schema, rows: all, around } = self;
        let mut rows = Vec::new();
        while all.advance() {
            rows.push(grid::row(schema, all));
        }
        let shown = rows.len() as u64;
        let columns = grid::columns(schema);
        let of_total = |cells: &Vec<(&'static str, String)>| {
            let mut left: Vec<_> = cells.iter().collect();
            let cell = |title: &str| {
                let at = left.iter().position(|(known, _)| *known == title)?;
                Some(left.remove(at).1.clone())
            };
            let mut cell = cell;
            columns.iter().map(|column| cell(&column.title).unwrap_or_default()).collect()
        };
        let totals = around.totals.iter().map(of_total).collect();
        let is_empty = shown == 0 && around.no_rows != NoRows::Titles;
        let more = omitted_count(around.matching, shown, all);
        let grid = Grid {
            columns: if is_empty { Vec::new() } else { columns },
            rows,
            totals: if is_empty { Vec::new() } else { totals },
            above: around.above.into_iter().filter_map(Section::into_block).collect(),
            under: around.under.into_iter().filter_map(Section::into_block).collect(),
            more,
            instead: match around.no_rows {
                NoRows::Line(line) if shown == 0 => Some(line),
                _ => None,
            },
        };
        (grid, shown)
    }

    /// Converts a window of the result to a screen; also returns the number of rows in the window. The first screen includes
    /// everything above the rows, and the last screen everything below them.
    pub fn into_screen(self, window: &RowWindow) -> (Screen, u64) {
        let Self { schema, rows, around } = self;
        let is_shown = |section: &Section| !matches!(section, Section::Options(_));
        let mut table = TableBuilder::from_schema(schema);
        let total = around.matching.and_then(|(total, _)| usize::try_from(total?).ok());
        let place = window.read(schema, rows, &mut table, total);
        let mut screen = Screen::new(place);
        let shown = table.rows().len() as u64;
        if place.start == 0 {
            around.above.into_iter().filter(is_shown).for_each(|section| screen.push(section));
        }
        if !place.has_more {
            around.totals.iter().for_each(|total| table.total_by_title(total));
        }
        match around.no_rows {
            NoRows::Nothing if shown == 0 => {}
            NoRows::Line(line) if shown == 0 => screen.push(Section::Line(line.into_owned())),
            _ if schema.table_columns().next().is_none() => {}
            _ => screen.push_rows(table),
        }
        if !place.has_more {
            // Rows that options of the command omit.
            if !window.is_part()
                && let Some((more, what)) = omitted_count(around.matching, shown, rows)
            {
                screen.push(Section::Line(more_rows(more, what)));
            }
            around.under.into_iter().filter(is_shown).for_each(|section| screen.push(section));
        }
        (screen, shown)
    }

    fn write_table(self, out: &mut dyn Write, style: Style) -> io::Result<u64> {
        let Self { schema, rows, around } = self;
        let mut lines = TextSink { out, color: style.color };
        around.above.into_iter().try_for_each(|section| section.write(&mut lines, style))?;
        let mut parts = ChunkedTable::new(schema, &around.totals, style);
        let mut shown = 0;
        loop {
            let (part, count, is_last) = parts.next(rows);
            shown += count;
            match &around.no_rows {
                NoRows::Nothing if shown == 0 => {}
                NoRows::Line(line) if shown == 0 => table::write_text(&mut lines, line, style)?,
                // All content is above or below the table.
                _ if parts.has_no_columns() => {}
                _ => parts.write(part, lines.out, is_last)?,
            }
            if is_last {
                break;
            }
        }
        if let Some((more, what)) = omitted_count(around.matching, shown, rows) {
            let all = table::option(around.all.unwrap_or(style.all_rows), "shows all");
            table::write_text(&mut lines, &(more_rows(more, what) + &all), style)?;
        }
        around.under.into_iter().try_for_each(|section| section.write(&mut lines, style))?;
        Ok(shown)
    }
}

/// Returns the number of omitted rows (`None` if not counted) and their noun; `None` if no rows are omitted.
fn omitted_count(
    matching: Option<(Option<u64>, &'static str)>,
    shown: u64,
    rows: &mut dyn RowCursor,
) -> Option<(Option<u64>, &'static str)> {
    let (total, what) = matching?;
    let more = total.map(|total| total.saturating_sub(shown));
    more.map_or_else(|| rows.has_more(), |more| more > 0).then_some((more, what))
}

/// Returns the line below a table that does not show all rows, such as "12 more rows".
fn more_rows(more: Option<u64>, what: &str) -> String {
    let Some(more) = more else { return format!("more {what}") };
    // Singular of "classes" or "rows".
    let one = what.strip_suffix("es").filter(|one| one.ends_with("ss")).or_else(|| what.strip_suffix('s'));
    let one = one.filter(|_| more == 1).unwrap_or(what);
    format!("{} more {one}", group_digits(more))
}

/// Row as a JSON object, or a nested object in it for keys with a common prefix before a dot. Values are generated as they are
/// written.
pub(super) struct JsonRow<'m> {
    pub(super) keys: &'m [(Cow<'static, str>, KeyNode)],
    pub(super) row: &'m dyn Cells,
}

impl Serialize for JsonRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.keys.len()))?;
        for (key, node) in self.keys {
            match node {
                KeyNode::Value(at) => map.serialize_entry(key, &self.row.value(*at))?,
                KeyNode::Record(keys) => map.serialize_entry(key, &JsonRow { keys, row: self.row })?,
            }
        }
        map.end()
    }
}

/// Rows that are written as JSON and collected for a table.
struct TabledRows<'m> {
    schema: &'m Schema,
    rows: &'m mut dyn RowCursor,
    table: TableBuilder,
}

impl Cells for TabledRows<'_> {
    fn value(&self, at: usize) -> Value<'_> {
        self.rows.value(at)
    }

    fn csv_value(&self, at: usize) -> Value<'_> {
        self.rows.csv_value(at)
    }

    fn own_cell(&self, at: usize) -> Option<String> {
        self.rows.own_cell(at)
    }

    fn own_branch(&self, at: usize) -> Option<&Branch> {
        self.rows.own_branch(at)
    }

    fn own_target(&self, at: usize) -> Option<Option<CellTarget>> {
        self.rows.own_target(at)
    }
}

impl RowCursor for TabledRows<'_> {
    fn advance(&mut self) -> bool {
        let has_row = self.rows.advance();
        if has_row {
            self.table.push_current(self.schema, self.rows);
        }
        has_row
    }

    fn has_more(&mut self) -> bool {
        self.rows.has_more()
    }

    fn lines_below(&self) -> Vec<RowLine> {
        self.rows.lines_below()
    }
}

/// Rows as a JSON list, generated while it is written; it can be written only once.
struct JsonRows<'m> {
    keys: &'m [(Cow<'static, str>, KeyNode)],
    rows: RefCell<&'m mut dyn RowCursor>,
    /// Number of rows written.
    count: Cell<u64>,
}

impl Serialize for JsonRows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = self.rows.borrow_mut();
        let mut list = serializer.serialize_seq(None)?;
        while rows.advance() {
            self.count.set(self.count.get() + 1);
            list.serialize_element(&JsonRow { keys: self.keys, row: &**rows })?;
        }
        list.end()
    }
}

/// Declaration of one variant of a command's result, for the reference.
#[derive(Debug, Clone)]
pub struct ResultSchema {
    /// Command.
    pub command: &'static str,
    /// Variant, as a heading such as `--group-by package`; empty if the command has only one.
    pub variant: &'static str,
    /// Meaning of a row, and remarks; in Markdown.
    pub about: &'static str,
    /// Keys of a row.
    pub rows: Vec<JsonField>,
    /// Keys next to `rows`.
    pub summary: Vec<JsonField>,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::column::{Align, Column, ColumnKey, TableColumn, ValueKind};
    use crate::value::LazyList;

    fn dump() -> DumpHeader<'static> {
        DumpHeader {
            path: "a".into(),
            file_bytes: None,
            format: None,
            id_bytes: None,
            created: None,
            heap_dump: None,
            is_damaged: None,
            unreachable_bytes: None,
        }
    }

    #[test]
    fn a_list_beside_a_key_with_a_dot_is_made_while_it_is_written() {
        /// Sink that accepts 64 KiB.
        struct LimitedSink(usize);

        impl Write for LimitedSink {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 += bytes.len();
                if self.0 < 1 << 16 { Ok(bytes.len()) } else { Err(io::ErrorKind::StorageFull.into()) }
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }

        static MADE: AtomicU64 = AtomicU64::new(0);
        let columns = Columns::new([
            Column::new(ColumnKey::chosen("a.b", ValueKind::Integer), |_: &()| 1u64.into()),
            Column::new(ColumnKey::chosen("c", ValueKind::Any), |_: &()| {
                let one = |number: u64| {
                    MADE.fetch_add(1, Ordering::Relaxed);
                    Value::Integer(number)
                };
                LazyList::new(move || (0..1_000_000).map(one)).into()
            }),
        ]);
        let answer = Answer::new(columns, [()]);
        answer.write(&mut LimitedSink(0), Format::Json, Style::default(), "a", &dump()).unwrap_err();
        assert!(MADE.load(Ordering::Relaxed) < 100_000);
    }

    #[test]
    fn what_dots_put_into_one_object_is_together() {
        let columns = || {
            let key = |key: &'static str| {
                Column::new(ColumnKey::chosen(key, ValueKind::Text), move |_: &()| key.into())
            };
            Columns::new(["a.b", "c", "a.d.e", "a.f", "a.d.g"].map(key))
        };
        let row = r#"{"a":{"b":"a.b","d":{"e":"a.d.e","g":"a.d.g"},"f":"a.f"},"c":"c"}"#;
        let json = |columns: &Columns<'_, ()>| {
            let mut row = ColumnRows::new(columns, std::iter::once(()), None);
            assert!(row.advance());
            serde_json::to_string(&JsonRow { keys: columns.schema().keys(), row: &row }).unwrap()
        };
        assert_eq!(json(&columns()), row);
        assert_eq!(serde_json::to_string(&columns().record(&())).unwrap(), row);
        let flat = r#"{"a.b":"a.b","c":"c","a.d.e":"a.d.e","a.f":"a.f","a.d.g":"a.d.g"}"#;
        assert_eq!(json(&columns().flat()), flat);
    }

    #[test]
    fn a_table_has_the_columns_of_its_list_in_its_order() {
        let key = |text: &'static str| ColumnKey::chosen(text, ValueKind::Integer);
        let columns = Columns::new([
            Column::new(key("a"), |_: &()| 1u64.into()),
            Column::new(key("b"), |_: &()| 2u64.into()),
            Column::new(key("c"), |_: &()| 3u64.into()),
        ]);
        let columns = columns.table([
            TableColumn::new(key("b"), "first"),
            TableColumn::table_only("second", Align::Left, |()| "x".to_owned()),
            TableColumn::new(key("a"), "third").align(Align::Left),
        ]);
        let mut out = Vec::new();
        Answer::new(columns, [()]).write(&mut out, Format::Table, Style::default(), "a", &dump()).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "first  second  third\n    2  x       1\n");
    }
}
