//! Markdown: results as tables, and texts of a dump with all markup escaped.

use super::escape;
use super::grid::{Grid, GridBlock, GridRow};
use super::number::group_digits;

/// Characters with a special meaning in Markdown.
const SPECIAL: &[char] = &['\\', '`', '*', '_', '{', '}', '[', ']', '<', '>', '#', '|', '~', '!', '&', '$'];

/// Word joiner, which has no width and prevents a line break. GitHub looks for mail addresses and user names after it has
/// resolved escapes, so a backslash before `@` does not prevent a link, but an adjacent character that cannot be part of either
/// does.
const JOINER: char = '\u{2060}';

/// Escapes a text of the dump so that no part of it is Markdown, whatever text is around it.
pub fn text(text: &str) -> String {
    let text = escape::text(text);
    // Blanks at the start of a line would make a code block.
    let text = text.trim_start();
    // A list starts with a sign or a number: `1. `, but not `1.5`.
    let number = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text.len() - number.len();
    let is_numbered = ['.', ')'].iter().any(|end| {
        let rest = number.strip_prefix(*end).filter(|_| digits > 0);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    });
    let list = (is_numbered || text.starts_with(['-', '+'])).then_some(digits);
    let mut escaped = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        if SPECIAL.contains(&c) || list == Some(at) || is_of_link(text, at, c) {
            escaped.push('\\');
        }
        match c {
            '@' => escaped.extend([JOINER, c, JOINER]),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Returns whether a character belongs to a prefix (`https://`, `www.`) that turns the text around it into a link (GitHub
/// Flavored Markdown, section 6.9). Mail addresses are interrupted by a [`JOINER`] in any case.
fn is_of_link(text: &str, at: usize, c: char) -> bool {
    let before = text.get(..at).unwrap_or_default();
    match c {
        ':' => text.get(at + 1..).is_some_and(|behind| behind.starts_with("//")),
        '.' => {
            before.get(before.len().saturating_sub(3)..).is_some_and(|end| end.eq_ignore_ascii_case("www"))
        }
        _ => false,
    }
}

/// Formats a text of the dump as code. The delimiter is a longer sequence of backquotes than any in the text (CommonMark,
/// section 6.1).
pub fn code(text: &str) -> String {
    let text = escape::text(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let is_blank = text.trim_matches(' ').is_empty();
    // Markdown strips one blank on each side, unless the text is blank.
    let is_stripped = text.starts_with(' ') && text.ends_with(' ') && !is_blank;
    let blank =
        if text.is_empty() || text.starts_with('`') || text.ends_with('`') || is_stripped { " " } else { "" };
    format!("{fence}{blank}{text}{blank}{fence}")
}

/// Escapes a text of the dump for a table cell, replacing line breaks by spaces.
pub fn table_cell(raw: &str) -> String {
    text(&raw.replace(['\n', '\r'], " "))
}

/// Formats a result as paragraphs and tables with at most `rows` rows, each after an empty line.
pub fn grid(grid: &Grid, rows: usize) -> String {
    let mut out = pieces(&grid.above, rows);
    if let (true, Some(line)) = (grid.rows.is_empty(), &grid.instead) {
        out.push_str(&format!("\n{line}\n"));
    }
    if !grid.columns.is_empty() && !grid.rows.is_empty() {
        let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        out.push('\n');
        out.push_str(&row(grid.columns.iter().map(|column| table_cell(&column.title)).collect()));
        let rule = |is_number| if is_number { "---:" } else { "---" };
        out.push_str(&row(grid.columns.iter().map(|column| rule(column.is_number).to_owned()).collect()));
        grid.rows.iter().take(rows).for_each(|each| out.push_str(&row(cells(each))));
        for total in &grid.totals {
            out.push_str(&row(total.iter().map(|cell| table_cell(cell)).collect()));
        }
        let cut = grid.rows.len().saturating_sub(rows) as u64;
        match grid.more.unwrap_or((Some(0), "rows")) {
            (Some(more), _) if more + cut == 0 => {}
            (Some(more), what) => out.push_str(&format!("\n{} more {what}\n", group_digits(more + cut))),
            (None, what) => out.push_str(&format!("\nmore {what}\n")),
        }
    }
    out + &pieces(&grid.under, rows)
}

/// Returns the cells of a row; the last cell includes the lines below the row.
fn cells(row: &GridRow) -> Vec<String> {
    let mut cells: Vec<String> = row.cells.iter().map(|cell| table_cell(&cell.text)).collect();
    if let Some(last) = cells.last_mut() {
        row.below.iter().for_each(|line| last.push_str(&format!("<br>{}", table_cell(&line.text))));
    }
    cells
}

fn pieces(pieces: &[GridBlock], rows: usize) -> String {
    let mut out = String::new();
    for piece in pieces {
        match piece {
            GridBlock::Line(line) if line.trim().is_empty() => {}
            GridBlock::Line(line) => out.push_str(&format!("\n{}\n", text(line))),
            // Commands are useful only in a terminal.
            GridBlock::Commands(_) => {}
            GridBlock::Text(lines) => {
                let lines = lines.lines().filter(|line| !line.trim().is_empty());
                lines.for_each(|line| out.push_str(&format!("\n{}\n", text(line))));
            }
            GridBlock::Grid(each) => out.push_str(&grid(each, rows)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{GridCell, GridColumn, RowLine};

    #[test]
    fn nothing_in_a_text_is_markdown() {
        assert_eq!(text("<b>|`*_[x](y)\u{202e}"), "\\<b\\>\\|\\`\\*\\_\\[x\\](y)\\\\u202e");
        assert_eq!(table_cell("a|b\nc"), "a\\|b c");
        // GitHub and other renderers that find addresses in text create no links for these.
        assert_eq!(text("@octocat"), "\u{2060}@\u{2060}octocat");
        assert_eq!(text("see https://evil.example"), "see https\\://evil.example");
        assert_eq!(text("WWW.evil.example, a.www"), "WWW\\.evil.example, a.www");
        assert_eq!(text("a@b.example xmpp:a"), "a\u{2060}@\u{2060}b.example xmpp:a");
    }

    #[test]
    fn a_grid_is_a_table_and_no_cell_ends_it() {
        let cell = |text: &str| GridCell { text: text.to_owned(), target: None };
        let column = |title: &'static str, is_number| GridColumn {
            title: title.into(),
            is_number,
            is_bold: false,
            is_secondary: false,
        };
        let rows = vec![
            GridRow {
                cells: vec![cell("1"), cell("a|b\n<br>")],
                below: vec![RowLine { indent: 4, text: "| c".to_owned() }],
            },
            GridRow { cells: vec![cell("2"), cell("d")], below: Vec::new() },
        ];
        let answer = Grid {
            columns: vec![column("#", true), column("name", false)],
            rows,
            above: vec![GridBlock::Line("# e".to_owned()), GridBlock::Commands(vec!["hprof-cli".to_owned()])],
            more: Some((Some(2), "rows")),
            ..Grid::default()
        };
        let table = "| \\# | name |\n| ---: | --- |\n| 1 | a\\|b \\<br\\><br>\\| c |\n";
        assert_eq!(grid(&answer, 1), format!("\n\\# e\n\n{table}\n3 more rows\n"));
        assert_eq!(grid(&answer, 9), format!("\n\\# e\n\n{table}| 2 | d |\n\n2 more rows\n"));
    }

    #[test]
    fn code_keeps_its_text() {
        for (text, expected) in [
            ("a", "`a`"),
            ("a`b", "``a`b``"),
            ("'a`;echo b;`.hprof'", "``'a`;echo b;`.hprof'``"),
            ("``a`", "``` ``a` ```"),
            ("a```b``c", "````a```b``c````"),
            (" a ", "`  a  `"),
            (" a", "` a`"),
            (" ", "` `"),
            ("", "`  `"),
            ("two\nlines", "`two\\nlines`"),
        ] {
            assert_eq!(code(text), expected, "{text:?}");
        }
    }
}
