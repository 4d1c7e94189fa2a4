//! The screen: a title, the lines of the view, a message or the prompt, and the keys.

use hprof_report::column::CellTarget;
use hprof_report::number::group_digits;
use hprof_report::screen::ScreenLine;
use hprof_report::window::WindowPosition;
use hprof_report::{escape, fit};
use hprof_values::ObjectId;
use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier, Style};

use super::Browser;
use super::keys::{self, OTHERS};

/// Minimum width of the name of the dump.
const MIN_NAME: usize = 8;

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);
const NOTE: Style = Style::new().fg(Color::Yellow);
const ERROR: Style = Style::new().fg(Color::Red);

impl Browser {
    /// Draws the screen. Only attributes and two colours of the terminal's palette are used.
    pub(in crate::cli::browse) fn draw(&self, cells: &mut Buffer, has_color: bool) {
        let area = cells.area;
        if area.width == 0 || area.height == 0 {
            return;
        }
        cells.reset();
        self.title(cells);
        let Some(below) = area.height.checked_sub(3) else { return };
        let titles = self.now.titles();
        for line in 0..below {
            self.line(cells, line, titles, has_color);
        }
        self.status(cells, area.height - 2, has_color);
        self.menu(cells, area.height - 1);
    }

    fn menu(&self, cells: &mut Buffer, y: u16) {
        let menu = menu(cells.area.width.into(), self.baseline.is_some());
        put(cells, y, 0, &menu, DIM);
        let mut x = 0;
        for word in menu.split(' ') {
            // Keys are single characters.
            if word.chars().count() == 1 {
                put(
                    cells,
                    y,
                    x,
                    word,
                    Style::new().remove_modifier(Modifier::DIM).add_modifier(Modifier::BOLD),
                );
            }
            x = x.saturating_add(u16::try_from(word.chars().count() + 1).unwrap_or(u16::MAX));
        }
    }

    fn title(&self, cells: &mut Buffer) {
        let width = usize::from(cells.area.width);
        let name = self.dump.file_name().unwrap_or_default().to_string_lossy();
        let is_help = self.now.view.command().is_empty();
        let title = if is_help { "Help".to_owned() } else { self.now.view.title() };
        let (name, title) = (escape::text(&name), escape::text(&title));
        let filter = if self.now.filter.is_empty() { String::new() } else { format!("/{}", self.now.filter) };
        let marked = match self.marked.len() {
            0 => String::new(),
            count => format!("{count} marked"),
        };
        let right = [filter, marked].join(" ");
        let right = fit::end(right.trim(), width / 2);
        let room = width.saturating_sub(fit::width(&right) + 2);
        // The title matters more than the name of the dump.
        let name = fit::middle(&name, room.saturating_sub(fit::width(&title) + 3).max(MIN_NAME));
        let title = fit::end(&format!(" {name}  {title}"), room);
        let gap = width.saturating_sub(fit::width(&title) + fit::width(&right) + 1);
        put(cells, 0, 0, &format!("{title}{:gap$}{right} ", ""), REVERSED.patch(BOLD));
    }

    /// Draws a line of the view; `titles` is the index of the line with the column titles.
    fn line(&self, cells: &mut Buffer, number: u16, titles: Option<usize>, has_color: bool) {
        let (now, y) = (&self.now, number + 1);
        let at = now.first + usize::from(number);
        let Some(answer) = &now.answer else { return };
        // Titles stay above rows that scroll.
        let titles = titles.filter(|titles| {
            number == 0
                && at != now.cursor
                && now.shown.get(at).is_some_and(|first| first > titles)
                && now.line(at).is_some_and(|line| line.row.is_some())
        });
        let shown = titles.or_else(|| now.shown.get(at).copied());
        let Some((shown, line)) = shown.and_then(|shown| Some((shown, answer.lines.get(shown)?))) else {
            return;
        };
        let style = match (answer.is_failed && shown == 0, shown + answer.notes >= answer.lines.len()) {
            (true, _) if has_color => ERROR,
            (false, true) if has_color => NOTE,
            _ if line.is_heading => BOLD,
            _ => Style::new(),
        };
        let is_here = at == now.cursor && titles.is_none();
        let chosen = if is_here { now.target().and_then(object) } else { None };
        if line.links.iter().filter_map(object).any(|id| self.marked.contains(&id)) {
            put(cells, y, 0, "*", BOLD);
        }
        put(cells, y, 1, &line.text, style);
        decorate(cells, y, line, chosen);
        if is_here {
            for x in 0..cells.area.width {
                if let Some(cell) = cells.cell_mut((x, y)) {
                    cell.modifier.toggle(Modifier::REVERSED);
                }
            }
        }
    }

    fn status(&self, cells: &mut Buffer, y: u16, has_color: bool) {
        let width = usize::from(cells.area.width);
        if let Some(prompt) = &self.prompt {
            let text = escape::text(&prompt.text);
            let room = width.saturating_sub(2);
            // Shows the end of the text, where the next character is typed.
            let mut shown: &str = &text;
            while fit::width(shown) > room {
                shown = shown.char_indices().nth(1).and_then(|(at, _)| shown.get(at..)).unwrap_or_default();
            }
            put(cells, y, 0, &format!("{}{shown}", prompt.mark()), BOLD);
            let x = u16::try_from(fit::width(shown) + 1).unwrap_or(u16::MAX);
            if let Some(cell) = cells.cell_mut((x, y)) {
                cell.modifier.toggle(Modifier::REVERSED);
            }
            if !self.message.is_empty() {
                put(cells, y - 1, 0, &format!("{:width$}", fit::end(&self.message, width)), DIM);
            }
            return;
        }
        let (text, style) = if !self.message.is_empty() {
            (escape::text(&self.message).into_owned(), if has_color { NOTE } else { BOLD })
        } else if self.is_asking() {
            let stage = if self.progress.is_empty() { "reading" } else { &self.progress };
            (format!("{} … Esc cancels", escape::text(stage)), if has_color { NOTE } else { BOLD })
        } else {
            (self.cursor_status(), DIM)
        };
        put(cells, y, 0, &fit::end(&text, width), style);
    }

    /// Describes the line under the cursor.
    fn cursor_status(&self) -> String {
        let now = &self.now;
        let count = now.shown.len();
        let place = match (now.rows(), now.row()) {
            (Some(place), Some((row, _))) => {
                let total = place
                    .total
                    .map_or_else(|| format!("{}+", group_digits(end(place))), |all| group_digits(all as u64));
                format!("{}/{total}", group_digits(row as u64 + 1))
            }
            _ if count == 0 => "no lines".to_owned(),
            _ => format!("{}/{count}", now.cursor + 1),
        };
        let links = now.line(now.cursor).map_or(0, |line| line.links.len());
        let leads = match (self.target_view(), now.target()) {
            (None, _) => String::new(),
            (Some(view), Some(CellTarget::Object(_) | CellTarget::Class(..)))
                if view.command() == "dominators" =>
            {
                "  Enter: objects it dominates".to_owned()
            }
            (Some(view), Some(CellTarget::Class(name, _))) if view.command() == "instances" => {
                format!("  Enter: instances of {}", escape::text(name))
            }
            (Some(_), Some(CellTarget::Object(id) | CellTarget::Class(_, Some(id)))) => {
                format!("  Enter: {id:#x}")
            }
            (Some(view), _) => format!("  Enter: {}", escape::text(&view.title())),
        };
        let others = if links > 1 { format!("  Tab: {} of {links}", now.link + 1) } else { String::new() };
        let back = match (now.filter.is_empty(), self.past.is_empty()) {
            (false, _) => "  Esc: all lines",
            (true, false) => "  Esc: back",
            (true, true) => "",
        };
        format!("{place}{leads}{others}{back}")
    }
}

/// Returns the end (exclusive) of the window's rows.
fn end(place: WindowPosition) -> u64 {
    (place.start + place.rows) as u64
}

fn object(target: &CellTarget) -> Option<ObjectId> {
    match target {
        CellTarget::Object(id) | CellTarget::Class(_, Some(id)) => Some(*id),
        _ => None,
    }
}

/// Writes a text, truncated at the edge of the screen.
fn put(cells: &mut Buffer, y: u16, x: u16, text: &str, style: Style) {
    let area = cells.area;
    if x < area.width && y < area.height {
        cells.set_stringn(x, y, text, usize::from(area.width - x), style);
    }
}

/// Makes sizes bold and object IDs dim, as in tables; underlines the ID `chosen`.
fn decorate(cells: &mut Buffer, y: u16, line: &ScreenLine, chosen: Option<ObjectId>) {
    let mut style = |from: usize, to: usize, modifier: Modifier| {
        let column = |at: usize| 1 + fit::width(line.text.get(..at).unwrap_or_default());
        for x in column(from)..column(to) {
            if let Some(cell) = u16::try_from(x).ok().and_then(|x| cells.cell_mut((x, y))) {
                cell.modifier.insert(modifier);
            }
        }
    };
    for range in &line.bold {
        style(range.start, range.end, Modifier::BOLD);
    }
    for id in line.links.iter().filter_map(object) {
        let text = format!("{id:#x}");
        for (at, _) in line.text.match_indices(&text) {
            let is_chosen = chosen == Some(id) && line.links.len() > 1;
            style(at, at + text.len(), if is_chosen { Modifier::UNDERLINED } else { Modifier::DIM });
        }
    }
}

/// Returns the line of keys: with names if they fit, otherwise only letters.
fn menu(width: usize, has_baseline: bool) -> String {
    let views = || keys::views(has_baseline);
    let named: Vec<String> = views().map(|view| format!("{} {}", view.letter, view.title)).collect();
    let short: Vec<String> = views().map(|view| view.letter.to_string()).collect();
    let others: Vec<String> = OTHERS.iter().map(|other| (*other).to_owned()).collect();
    let line = |views: &[String], others: &[String]| [views, others].concat().join("  ");
    let dense = |views: &[String], others: &[String]| [views, others].concat().join(" ");
    let keys: Vec<String> = OTHERS.iter().map(|other| other.chars().take(1).collect()).collect();
    let all = [
        line(&named, &others),
        line(&named, &keys),
        dense(&named, &keys),
        line(&short, &others),
        line(&short, &keys),
    ];
    let fits = all.iter().find(|line| fit::width(line) <= width).or(all.last());
    fit::end(fits.map_or("", String::as_str), width)
}
