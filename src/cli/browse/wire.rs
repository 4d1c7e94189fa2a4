//! Requests of the browser, and messages of its workers ([`crate::cli::shared::worker`]), as JSON.

use hprof_report::column::CellTarget;
use hprof_report::screen::ScreenLine;
use hprof_report::window::{RowWindow, WindowPosition};
use hprof_values::ObjectId;
use serde::{Deserialize, Serialize};

use super::core::{ScreenAnswer, ScreenRequest};

/// Message from a worker, with the number of a request. The body is a [`WireAnswer`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ScreenMessage {
    /// Preliminary lines, shown until the result arrives.
    Early(u64),
    Answer(u64),
}

/// A request of the browser, as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WireQuestion {
    number: u64,
    words: Vec<String>,
    trees: Vec<(u64, Vec<String>)>,
    width: u16,
    window: Option<WireWindow>,
}

/// Requested rows, as JSON.
#[derive(Debug, Serialize, Deserialize)]
struct WireWindow {
    start: usize,
    count: usize,
    is_last: bool,
    around: Option<Vec<WireTarget>>,
    text: String,
}

/// Result of a request, as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WireAnswer {
    lines: Vec<WireLine>,
    notes: usize,
    place: Option<(usize, usize, bool, Option<usize>)>,
    text: String,
    width: u16,
    is_failed: bool,
}

/// A line of a result, as JSON.
#[derive(Debug, Serialize, Deserialize)]
struct WireLine {
    #[serde(rename = "t")]
    text: String,
    #[serde(rename = "b", default, skip_serializing_if = "Vec::is_empty")]
    bold: Vec<(usize, usize)>,
    #[serde(rename = "l", default, skip_serializing_if = "Vec::is_empty")]
    links: Vec<WireTarget>,
    #[serde(rename = "h", default, skip_serializing_if = "std::ops::Not::not")]
    is_heading: bool,
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    row: Option<usize>,
    #[serde(rename = "d", default, skip_serializing_if = "is_zero")]
    depth: usize,
}

fn is_zero(depth: &usize) -> bool {
    *depth == 0
}

/// Link to an object, class or page, as JSON.
#[derive(Debug, Serialize, Deserialize)]
enum WireTarget {
    #[serde(rename = "o")]
    Object(u64),
    #[serde(rename = "c")]
    Class(String, Option<u64>),
    #[serde(rename = "p")]
    Page(String),
    #[serde(rename = "w")]
    Command(Vec<String>),
}

impl From<ScreenRequest> for WireQuestion {
    fn from(question: ScreenRequest) -> Self {
        let ScreenRequest { number, words, trees, width, window } = question;
        let window = window.map(|window| {
            // The worker process determines which rows are kept.
            let RowWindow { start, count, is_last, around, text, kept: _ } = window;
            let around = around.map(|targets| targets.into_iter().map(WireTarget::from).collect());
            WireWindow { start, count, is_last, around, text }
        });
        Self {
            number,
            words,
            trees: trees.into_iter().map(|(id, tree)| (id.0, tree)).collect(),
            width,
            window,
        }
    }
}

impl From<WireQuestion> for ScreenRequest {
    fn from(question: WireQuestion) -> Self {
        let WireQuestion { number, words, trees, width, window } = question;
        let window = window.map(|window| {
            let WireWindow { start, count, is_last, around, text } = window;
            let around = around.map(|targets| targets.into_iter().map(CellTarget::from).collect());
            RowWindow { start, count, is_last, around, text, kept: Vec::new() }
        });
        let trees = trees.into_iter().map(|(id, tree)| (ObjectId(id), tree)).collect();
        Self { number, words, trees, width, window }
    }
}

impl From<ScreenAnswer> for WireAnswer {
    fn from(answer: ScreenAnswer) -> Self {
        let ScreenAnswer { lines, notes, place, text, width, is_failed } = answer;
        let place = place.map(|place| (place.start, place.rows, place.has_more, place.total));
        Self { lines: lines.into_iter().map(WireLine::from).collect(), notes, place, text, width, is_failed }
    }
}

impl From<WireAnswer> for ScreenAnswer {
    fn from(answer: WireAnswer) -> Self {
        let WireAnswer { lines, notes, place, text, width, is_failed } = answer;
        let place =
            place.map(|(start, rows, has_more, total)| WindowPosition { start, rows, has_more, total });
        Self {
            lines: lines.into_iter().map(ScreenLine::from).collect(),
            notes,
            place,
            text,
            width,
            is_failed,
        }
    }
}

impl From<CellTarget> for WireTarget {
    fn from(target: CellTarget) -> Self {
        match target {
            CellTarget::Object(id) => Self::Object(id.0),
            CellTarget::Class(name, id) => Self::Class(name, id.map(|id| id.0)),
            CellTarget::Page(path) => Self::Page(path),
            CellTarget::Command(words) => Self::Command(words),
        }
    }
}

impl From<WireTarget> for CellTarget {
    fn from(target: WireTarget) -> Self {
        match target {
            WireTarget::Object(id) => Self::Object(ObjectId(id)),
            WireTarget::Class(name, id) => Self::Class(name, id.map(ObjectId)),
            WireTarget::Page(path) => Self::Page(path),
            WireTarget::Command(words) => Self::Command(words),
        }
    }
}

impl From<ScreenLine> for WireLine {
    fn from(line: ScreenLine) -> Self {
        let ScreenLine { text, bold, links, is_heading, row, depth } = line;
        let bold = bold.into_iter().map(|range| (range.start, range.end)).collect();
        let links = links.iter().cloned().map(WireTarget::from).collect();
        Self { text, bold, links, is_heading, row, depth }
    }
}

impl From<WireLine> for ScreenLine {
    fn from(line: WireLine) -> Self {
        let WireLine { text, bold, links, is_heading, row, depth } = line;
        let bold = bold.into_iter().map(|(start, end)| start..end).collect();
        let links = links.into_iter().map(CellTarget::from).collect();
        Self { text, bold, links, is_heading, row, depth }
    }
}
