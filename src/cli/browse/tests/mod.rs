//! Tests of the browser without a terminal.

mod answering;
mod asking;
mod filter;
mod hostile;
#[cfg(unix)]
mod link;
mod screens;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use hprof_report::column::CellTarget;
use hprof_report::screen::ScreenLine;
use hprof_report::window::{RowWindow, WindowPosition};
use hprof_values::ObjectId;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use super::answers::Answerer;
use super::core::{Browser, Effect, Key, ScreenAnswer, ScreenRequest};
use super::session::CommandOptions;
use crate::cli::shared::context::RunContext;

fn browser(size: (u16, u16)) -> Browser {
    Browser::new(
        PathBuf::from("s1.hprof"),
        None,
        vec!["--heap-dump=2".into()],
        Box::new(CommandOptions),
        size,
    )
}

fn screen(browser: &Browser, size: (u16, u16)) -> Buffer {
    let mut cells = Buffer::empty(Rect::new(0, 0, size.0, size.1));
    browser.draw(&mut cells, true);
    cells
}

/// Returns the lines of a screen, without spaces at their ends.
fn text(cells: &Buffer) -> String {
    let mut text = String::new();
    for y in 0..cells.area.height {
        let line: String =
            (0..cells.area.width).filter_map(|x| cells.cell((x, y))).map(|cell| cell.symbol()).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Handles all requests of a browser; returns its other effects.
fn settle(browser: &mut Browser, answer: impl Fn(&ScreenRequest) -> ScreenAnswer) -> Vec<Effect> {
    let mut others = Vec::new();
    loop {
        let effects = browser.effects();
        if effects.is_empty() {
            return others;
        }
        for effect in effects {
            match effect {
                Effect::Ask(question) => browser.answer(question.number, answer(&question)),
                other => others.push(other),
            }
        }
    }
}

fn keys(text: &str) -> Vec<Key> {
    let key = |word: &str| match word {
        "Enter" => vec![Key::Enter],
        "Esc" => vec![Key::Esc],
        "Back" => vec![Key::Backspace],
        "Down" => vec![Key::Down],
        "Right" => vec![Key::Right],
        "End" => vec![Key::End],
        "Tab" => vec![Key::Tab],
        "Space" => vec![Key::Char(' ')],
        word => word.chars().map(Key::Char).collect(),
    };
    text.split(' ').flat_map(key).collect()
}

/// Returns an answerer for a sample, without a child process; indexes are written to the directory.
fn answerer(indexes: &Path) -> Answerer {
    answerer_with(indexes, vec!["--quiet".into()])
}

fn answerer_with(indexes: &Path, mut options: Vec<OsString>) -> Answerer {
    let mut option = OsString::from("--index-dir=");
    option.push(indexes);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cx = RunContext::shell().keeping_dumps(None, false);
    options.push(option);
    Answerer::new(cx, root.join("samples/leaks/s1.hprof.zst"), None, options)
}

fn question(words: &[&str], window: Option<RowWindow>) -> ScreenRequest {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    ScreenRequest { number: 1, words, trees: Vec::new(), width: 200, window }
}

/// Returns the requested rows of a million; if a filter text is given, of those whose number contains it.
fn million(question: &ScreenRequest) -> ScreenAnswer {
    const ALL: usize = 1_000_000;
    let Some(RowWindow { start, count, is_last, around, text, .. }) = question.window.clone() else {
        return ScreenAnswer { width: question.width, ..ScreenAnswer::default() };
    };
    assert!(count <= 400, "{question:?}");
    let all: Vec<usize> =
        (0..ALL).filter(|row| text.is_empty() || format!("row {row}").contains(&text)).collect();
    let link = |row: usize| CellTarget::Object(ObjectId(row as u64 + 1));
    let at = around.and_then(|targets| all.iter().position(|row| targets == [link(*row)]));
    let start = at.map_or(start, |at| at.saturating_sub(count / 2));
    let start = if is_last { all.len() - count } else { start };
    let rows: Vec<usize> = all.iter().skip(start).take(count).copied().collect();
    let line = |(at, row): (usize, &usize)| ScreenLine {
        row: Some(start + at),
        links: vec![link(*row)].into(),
        ..ScreenLine::of_text(&format!("row {row}"))
    };
    let has_more = start + rows.len() < all.len();
    let total = text.is_empty().then_some(ALL);
    let place = Some(WindowPosition { start, rows: rows.len(), has_more, total });
    let lines = rows.iter().enumerate().map(line).collect();
    ScreenAnswer { lines, place, text, width: question.width, ..ScreenAnswer::default() }
}
