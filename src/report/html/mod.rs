//! Grids and names as HTML, for pages of the server and for self-contained reports.
//!
//! All text from a dump goes through [`escape::text`], which makes control and bidirectional characters visible, and through
//! the escaping of templates. Reports without a server have no links ([`Links::none`]).

use maud::{Markup, PreEscaped, Render, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

use super::column::CellTarget;
use super::escape;
use super::grid::RowLine;
use super::grid::{Grid, GridBlock, GridCell, GridColumn, GridRow};
use super::number::group_digits;
use hprof_values::ObjectId;

/// Maximum number of characters shown of a cell; a click shows the rest.
const MAX_CELL: usize = 240;
/// Maximum length in bytes of a cell that is never wrapped.
const SHORT: usize = 40;
/// Maximum number of lines shown below a row; a click shows the rest.
const MAX_BELOW: usize = 4;
/// Number of numeric columns that are shown where there is little space.
const NUMBERS: usize = 2;

/// Builder of links to the pages of objects and classes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Links {
    base: Option<String>,
}

impl Links {
    /// Creates a builder of links below a path, such as `/1`.
    pub fn with_base(base: impl Into<String>) -> Self {
        Self { base: Some(base.into()) }
    }

    /// Creates a builder that returns no links.
    pub const fn none() -> Self {
        Self { base: None }
    }

    /// Returns a path below the base; `None` without links.
    pub fn to(&self, path: &str) -> Option<String> {
        Some(format!("{}/{path}", self.base.as_ref()?))
    }

    /// Returns the path of an object's page; `None` without links.
    pub fn object(&self, id: ObjectId) -> Option<String> {
        self.to(&format!("object/{id:#x}"))
    }

    /// Returns the path of a class's page; `None` without links.
    pub fn class(&self, name: &str, class_object: Option<ObjectId>) -> Option<String> {
        match class_object {
            Some(id) => self.to(&format!("class/{id:#x}")),
            None => self.to(&format!("class/{}", percent_encode(name))),
        }
    }

    fn target(&self, target: &CellTarget) -> Option<String> {
        match target {
            CellTarget::Object(id) => self.object(*id),
            CellTarget::Class(name, class_object) => self.class(name, *class_object),
            CellTarget::Page(path) => self.to(path),
            CellTarget::Command(_) => None,
        }
    }
}

/// Percent-encodes a text as a part of a path or of a query (RFC 3986). Unreserved characters are unchanged.
pub fn percent_encode(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, RESERVED)
}

/// All characters except the unreserved ones of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Wraps `inside` in a link, if there is a target.
pub fn link(href: Option<String>, inside: impl Render) -> Markup {
    match href {
        Some(href) => html! { a href=(href) { (inside) } },
        None => html! { (inside) },
    }
}

/// Renders a text with object IDs as links.
pub fn text(raw: &str, links: &Links) -> Markup {
    let escaped = escape::text(raw);
    let (mut rest, mut made) = (&*escaped, String::new());
    while let Some((before, id, after)) = next_id(rest) {
        let object = id.get(2..).and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let shown = html! { span.id { (id) } };
        html! { (before) (link(object.and_then(|id| links.object(ObjectId(id))), shown)) }
            .render_to(&mut made);
        rest = after;
    }
    rest.render_to(&mut made);
    PreEscaped(made)
}

/// Returns the next object ID in a text, between the text before and after it.
fn next_id(text: &str) -> Option<(&str, &str, &str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    for (at, _) in text.match_indices("0x") {
        let (before, from) = text.split_at_checked(at)?;
        let digits = from.get(2..)?;
        let length = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
        let (id, after) = from.split_at_checked(2 + length)?;
        if (3..=16).contains(&length)
            && !before.ends_with(is_word)
            && !before.ends_with(['+', '/', '$'])
            && !after.starts_with(is_word)
        {
            return Some((before, id, after));
        }
    }
    None
}

/// Renders the name of a class with a dim package.
pub fn class_name(raw: &str) -> Markup {
    let name = escape::text(raw);
    // A text that starts with a digit is not a name.
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '$'));
    let end = if is_name { name.find([' ', '<']).unwrap_or(name.len()) } else { 0 };
    let (package, simple) = match name.get(..end).and_then(|name| name.rfind('.')) {
        Some(dot) => name.split_at(dot + 1),
        None => ("", &*name),
    };
    // The package is on its own line where there is little space.
    html! { @if !package.is_empty() { span.pkg { (package) } wbr; } (simple) }
}

fn cell_text(cell: &GridCell, links: &Links) -> Markup {
    match &cell.target {
        Some(CellTarget::Class(name, class_object)) => {
            let shown = if cell.text.is_empty() {
                html! {}
            } else {
                class_name(&cell.text)
            };
            link(links.class(name, *class_object), shown)
        }
        Some(target @ CellTarget::Object(_)) => link(links.target(target), class_name(&cell.text)),
        Some(target @ (CellTarget::Page(_) | CellTarget::Command(_))) => {
            link(links.target(target), escape::text(&cell.text).into_owned())
        }
        None => text(&cell.text, links),
    }
}

/// Renders the content of a cell. Of a long text, only the beginning is visible; a click shows the rest.
fn cell(cell: &GridCell, links: &Links) -> Markup {
    match cell.text.char_indices().nth(MAX_CELL) {
        None => cell_text(cell, links),
        Some((end, _)) => {
            let first = GridCell {
                text: format!("{}…", cell.text.get(..end).unwrap_or_default()),
                target: cell.target.clone(),
            };
            html! {
                (cell_text(&first, links))
                details { summary { "all" } (escape::text(&cell.text)) }
            }
        }
    }
}

/// Returns whether the cells of a column are percentages.
fn is_share(column: &GridColumn) -> bool {
    column.title == "%" || column.title == "share"
}

/// Returns the percentage in a cell, if the column contains percentages.
fn share(column: &GridColumn, cell: &GridCell) -> Option<f64> {
    is_share(column).then(|| cell.text.trim_end_matches('%').parse().ok()).flatten()
}

fn lines_below(lines: &[RowLine], links: &Links) -> Markup {
    let line = |line: &RowLine| {
        let class = format!("i{}", (line.indent / 2).min(8));
        html! { li class=(class) { (text(&line.text, links)) } }
    };
    html! {
        @if lines.len() > MAX_BELOW {
            details {
                summary { (lines.first().map(|line| text(&line.text, links)).unwrap_or_default()) " "
                    span.dim { "… " (group_digits(lines.len() as u64)) " lines" } }
                ul.below { @for each in lines { (line(each)) } }
            }
        } @else {
            ul.below { @for each in lines { (line(each)) } }
        }
    }
}

fn row(row: &GridRow, columns: &[GridColumn], classes: &[&str], links: &Links) -> Markup {
    // One bar per row.
    let bar = columns.iter().position(is_share);
    html! {
        tr {
            @for (at, ((each, column), class)) in row.cells.iter().zip(columns).zip(classes).enumerate() {
                td class={ (class) @if each.text.len() <= SHORT { " s" } } {
                    @if let Some(share) = share(column, each).filter(|_| bar == Some(at)) {
                        meter min="0" max="100" value=(share) aria-hidden="true" {}
                    }
                    @if share(column, each).is_some() { span.pct { (cell(each, links)) } } @else { (cell(each, links)) }
                }
            }
        }
        @if !row.below.is_empty() {
            tr.under { td colspan=(columns.len()) { (lines_below(&row.below, links)) } }
        }
    }
}

/// Returns the CSS classes of each column's cells. Phones hide `extra` and `spare`, half-width pages hide `spare`.
fn classes(columns: &[GridColumn]) -> Vec<&'static str> {
    let of = |is_bold| {
        let columns = columns.iter().enumerate().filter(move |(_, column)| column.is_bold == is_bold);
        columns.filter(|(_, column)| column.is_number && !column.is_secondary && column.title != "#")
    };
    let kept: Vec<usize> = of(true).chain(of(false)).take(NUMBERS).map(|(at, _)| at).collect();
    let class = |(at, column): (usize, &GridColumn)| match (column.is_number, at + 1 == columns.len()) {
        (true, _) if column.title == "%" => "n extra",
        (true, _) if !kept.contains(&at) => "n spare",
        (true, _) if column.is_bold => "n b",
        (true, _) => "n",
        (false, true) => "name",
        (false, _) if column.is_secondary => "t spare",
        (false, _) => "t",
    };
    columns.iter().enumerate().map(class).collect()
}

/// Renders lines of unescaped text with their line breaks.
fn lines_of<'t>(lines: impl Iterator<Item = &'t str>, links: &Links) -> Markup {
    html! { pre tabindex="0" { @for line in lines { (text(line, links)) "\n" } } }
}

fn piece(piece: &GridBlock, links: &Links) -> Markup {
    match piece {
        GridBlock::Line(line) if line.trim().is_empty() => html! {},
        GridBlock::Line(line) => html! { p { (text(line, links)) } },
        GridBlock::Text(lines) => lines_of(lines.split('\n'), links),
        // A server's page has cells and forms instead of commands.
        GridBlock::Commands(_) if links.base.is_some() => html! {},
        GridBlock::Commands(lines) => lines_of(lines.iter().map(String::as_str), links),
        GridBlock::Grid(of) => grid(of, links, None),
    }
}

/// Renders a grid; `caption` describes it to screen readers.
pub fn grid(grid: &Grid, links: &Links, caption: Option<&str>) -> Markup {
    let has_titles = grid.columns.iter().any(|column| !column.title.is_empty());
    let classes = classes(&grid.columns);
    html! {
        @for each in &grid.above { (piece(each, links)) }
        @if let Some(line) = &grid.instead { p { (line) } }
        @if !grid.columns.is_empty() {
            div.scroll tabindex="0" role="group" aria-label=(caption.unwrap_or("Table")) {
                table {
                    @if let Some(caption) = caption { caption.hidden { (escape::text(caption)) } }
                    @if has_titles {
                        thead { tr {
                            @for (at, (column, class)) in grid.columns.iter().zip(&classes).enumerate() {
                                th scope="col" class=(class) {
                                    @if column.title.is_empty() { span.hidden { "column " (at + 1) } }
                                    (column.title)
                                }
                            }
                        } }
                    }
                    tbody { @for each in &grid.rows { (row(each, &grid.columns, &classes, links)) } }
                    @if !grid.totals.is_empty() {
                        tfoot { @for cells in &grid.totals {
                            tr { @for (cell, class) in cells.iter().zip(&classes) {
                                td class=(class) { (escape::text(cell)) }
                            } }
                        } }
                    }
                }
            }
        }
        @for each in &grid.under { (piece(each, links)) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn ids_in_texts_are_links_and_nothing_of_a_text_is_markup() {
        let links = Links::with_base("/1");
        let made = text("<b>\u{202e} 0xfc2f1518, a0x123, 0x7c00012a8g 0x1", &links).into_string();
        assert_eq!(
            made,
            "&lt;b&gt;\\u202e <a href=\"/1/object/0xfc2f1518\"><span class=\"id\">0xfc2f1518</span></a>, a0x123, \
             0x7c00012a8g 0x1"
        );
        assert!(!text("0xfc2f1518", &Links::none()).into_string().contains("href"));
    }

    #[test]
    fn names_in_paths_are_encoded() {
        assert_eq!(percent_encode("a/../b?c=d&\"<é").to_string(), "a%2F..%2Fb%3Fc%3Dd%26%22%3C%C3%A9");
        let links = Links::with_base("/1");
        assert_eq!(links.class("byte[]", None).unwrap(), "/1/class/byte%5B%5D");
        assert_eq!(links.class("a.B", Some(ObjectId(0x10))).unwrap(), "/1/class/0x10");
    }

    #[test]
    fn a_row_has_one_bar_and_narrow_pages_the_numbers_one_came_for() {
        let column = |title: &'static str, is_number, is_bold| GridColumn {
            title: title.into(),
            is_number,
            is_bold,
            is_secondary: title == "%",
        };
        let columns = vec![
            column("#", true, false),
            column("objects", true, false),
            column("shallow", true, false),
            column("%", true, false),
            column("retained", true, true),
            column("%", true, false),
            column("class", false, false),
        ];
        let cell = |text: &str| GridCell { text: text.to_owned(), target: None };
        let cells = ["1", "2", "3", "4.0%", "5", "6.0%", "a.B"].map(cell).to_vec();
        let rows = vec![GridRow { cells, below: Vec::new() }];
        assert_eq!(classes(&columns), ["n spare", "n", "n spare", "n extra", "n b", "n extra", "name"]);
        let made = grid(&Grid { columns, rows, ..Grid::default() }, &Links::none(), None).into_string();
        assert_eq!(made.matches("<meter").count(), 1, "{made}");
    }

    #[test]
    fn packages_are_dim() {
        let made = class_name("java.util.HashMap$Node 0x10 a.b").into_string();
        assert_eq!(made, "<span class=\"pkg\">java.util.</span><wbr>HashMap$Node 0x10 a.b");
    }
}
