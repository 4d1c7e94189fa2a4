//! Aligned cells: each cell is padded to the width of the widest cell of its column. The crate comfy-table, which could do
//! this, takes five times as long (decision 20).

use std::ops::Range;

use super::column::Align;
use super::fit::width;
use super::layout::GAP;

/// Columns whose cells are first measured and then written.
#[derive(Debug)]
pub(super) struct AlignedColumns(Vec<(usize, Align)>);

impl AlignedColumns {
    /// Creates columns of width 0.
    pub(super) fn new(columns: impl Iterator<Item = Align>) -> Self {
        Self(columns.map(|align| (0, align)).collect())
    }

    /// Widens columns to at least the given widths.
    pub(super) fn widen(&mut self, widths: impl Iterator<Item = usize>) {
        self.0.iter_mut().zip(widths).for_each(|((width, _), other)| *width = (*width).max(other));
    }

    /// Widens columns to fit the given cells.
    pub(super) fn measure(&mut self, cells: &[String]) {
        self.widen(cells.iter().map(|cell| cell.split('\n').map(width).max().unwrap_or(0)));
    }

    /// Returns the widths of the columns.
    pub(super) fn widths(&self) -> impl Iterator<Item = usize> {
        self.0.iter().map(|(width, _)| *width)
    }

    /// Writes the lines of a row, without trailing spaces. A row has as many lines as its tallest cell. `write` receives each
    /// line with the byte ranges of its cells, by column.
    pub(super) fn lines<E>(
        &self,
        cells: &[String],
        mut write: impl FnMut(&str, &[Range<usize>]) -> Result<(), E>,
    ) -> Result<(), E> {
        let most = cells.iter().map(|cell| cell.matches('\n').count()).max();
        let (mut line, mut places) = (String::new(), Vec::new());
        for number in most.map_or(0..0, |most| 0..most + 1) {
            line.clear();
            places.clear();
            // Spaces before the next cell.
            let mut spaces = 0;
            for (cell, (column, align)) in cells.iter().zip(&self.0) {
                let text = cell.split('\n').nth(number).unwrap_or_default();
                let blank = (*column).max(1).saturating_sub(width(text));
                let (before, after) = if *align == Align::Right { (blank, 0) } else { (0, blank) };
                spaces += before;
                if !text.is_empty() {
                    line.extend(std::iter::repeat_n(' ', spaces));
                    spaces = 0;
                }
                places.push(line.len()..line.len() + text.len());
                line.push_str(text);
                spaces += after + GAP;
            }
            write(line.trim_end(), &places)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_one_below_the_other() {
        let mut table =
            AlignedColumns::new([Align::Right, Align::Left, Align::Left, Align::Right].into_iter());
        let rows = [
            ["1", "one", "", "1"],
            ["1000", "東京 is\nwide", "", ""],
            ["", "", "", "22"],
            ["7", "short ", "", ""],
        ];
        let rows = rows.map(|row| row.map(str::to_owned));
        rows.iter().for_each(|row| table.measure(row));
        assert_eq!(table.widths().collect::<Vec<_>>(), [4, 7, 0, 2]);
        let mut lines = Vec::new();
        for row in &rows {
            let written: Result<(), ()> = table.lines(row, |line, _| {
                lines.push(line.to_owned());
                Ok(())
            });
            written.unwrap();
        }
        let expected =
            ["   1  one          1", "1000  東京 is", "      wide", "                  22", "   7  short"];
        assert_eq!(lines, expected);
        table.widen([9].into_iter());
        assert_eq!(table.widths().next(), Some(9));
    }
}
