//! Answers the questions of the browser with the commands of this program, whose dumps stay open.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hprof_report::screen::{Screen, ScreenLine};

use super::core::{Question, ScreenAnswer, takes_two};
use crate::cli;
use crate::cli::Outcome;
use crate::cli::pages::ask::Failure;
use crate::cli::shared::context::{RunContext, Watcher, locked};

/// Maximum number of answers that are kept.
const MAX_KEPT: usize = 32;
/// Maximum number of rows of an answer that is kept: larger ones are asked again.
const MAX_KEPT_ROWS: usize = 20_000;
/// Maximum size of an answer that is a text.
const MAX_TEXT: usize = 16 << 20;

/// Answer of a command.
#[derive(Debug, Default)]
struct CommandAnswer {
    screens: Vec<Screen>,
    text: String,
    notes: Vec<String>,
}

/// A command line without the dump, and the width of its answer.
type KeptKey = (Vec<String>, u16);

/// Answers questions to one dump.
pub(super) struct Answerer {
    cx: RunContext,
    dump: PathBuf,
    baseline: Option<PathBuf>,
    /// Options for opening that each command repeats.
    options: Vec<OsString>,
    kept: Mutex<VecDeque<(KeptKey, Arc<CommandAnswer>)>>,
}

impl Answerer {
    /// Creates an answerer whose context keeps dumps open.
    pub(super) fn new(
        cx: RunContext,
        dump: PathBuf,
        baseline: Option<PathBuf>,
        options: Vec<OsString>,
    ) -> Self {
        Self { cx, dump, baseline, options, kept: Mutex::default() }
    }

    /// Answers a question; an error is an answer too.
    pub(super) fn answer(&self, question: &Question, watcher: Option<Watcher>) -> ScreenAnswer {
        let answered =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.laid(question, watcher)));
        let failed = |text: &str, hint: Option<String>| {
            let hint = hint.map(|hint| format!("hint: {hint}"));
            let lines = std::iter::once(format!("error: {text}")).chain(hint);
            ScreenAnswer {
                lines: lines.flat_map(|text| wrapped(&text, question.width)).collect(),
                is_failed: true,
                width: question.width,
                ..ScreenAnswer::default()
            }
        };
        match answered {
            Ok(Ok(answer)) => answer,
            Ok(Err(failure)) => failed(&failure.text, failure.hint),
            Err(_) => failed("hprof-cli failed on this question; this is a bug", None),
        }
    }

    fn laid(&self, question: &Question, watcher: Option<Watcher>) -> Result<ScreenAnswer, Failure> {
        let width = question.width;
        let answer = self.ask(&question.words, width, watcher.as_ref())?;
        let mut screens = answer.screens.clone();
        let mut trees = Vec::new();
        for (id, words) in &question.trees {
            let tree = self.ask(words, width, watcher.as_ref())?;
            trees.push((*id, tree));
        }
        // A node may have been opened before the one above it was closed and opened again.
        while !trees.is_empty() {
            let before = trees.len();
            trees.retain(|(id, tree)| {
                let tree = tree.screens.first();
                !screens.first_mut().zip(tree).is_some_and(|(screen, tree)| screen.graft(*id, tree))
            });
            if trees.len() == before {
                break;
            }
        }
        let mut lines: Vec<ScreenLine> = screens.iter().flat_map(|screen| screen.lines(width)).collect();
        // Rows are numbered in the first result.
        let first = screens.first().map_or(0, Screen::row_count);
        lines.extend(answer.text.lines().map(ScreenLine::of_text));
        let notes: Vec<ScreenLine> = answer.notes.iter().flat_map(|note| wrapped(note, width)).collect();
        let (count, rows) = (notes.len(), if question.trees.is_empty() { first } else { self.rows(&answer) });
        lines.extend(notes);
        Ok(ScreenAnswer { lines, notes: count, rows, width, is_failed: false })
    }

    /// Returns the number of rows without those of open nodes.
    fn rows(&self, answer: &CommandAnswer) -> usize {
        answer.screens.first().map_or(0, Screen::row_count)
    }

    /// Runs a command, unless its answer is kept.
    fn ask(
        &self,
        words: &[String],
        width: u16,
        watcher: Option<&Watcher>,
    ) -> Result<Arc<CommandAnswer>, Failure> {
        let key = (words.to_vec(), width);
        if let Some((_, answer)) = locked(&self.kept).iter().find(|(known, _)| *known == key) {
            return Ok(answer.clone());
        }
        let cx = self.cx.taking_screens(MAX_TEXT, width, watcher.cloned());
        let done = cli::answer(&cx, &self.command_line(words));
        let said = cx.into_said();
        let is_damaged = match done {
            Ok(outcome) => outcome == Outcome::Damaged,
            Err(error) => return Err(Failure::of(&error, said.notes)),
        };
        let damage = is_damaged.then(|| "note: the dump is damaged; doctor explains".to_owned());
        let notes = said.notes.iter().map(|note| format!("{}: {}", note.kind, note.text));
        let answer = Arc::new(CommandAnswer {
            screens: said.screens,
            text: String::from_utf8_lossy(&said.bytes).into_owned(),
            notes: notes.chain(damage).collect(),
        });
        if answer.screens.iter().map(Screen::row_count).sum::<usize>() <= MAX_KEPT_ROWS {
            let mut kept = locked(&self.kept);
            kept.push_front((key, answer.clone()));
            kept.truncate(MAX_KEPT);
        }
        Ok(answer)
    }

    fn command_line(&self, words: &[String]) -> Vec<OsString> {
        let mut line: Vec<OsString> = words.first().map(OsString::from).into_iter().collect();
        line.extend(self.options.iter().cloned());
        let is_two = words.first().is_some_and(|command| takes_two(command));
        let dumps = self.baseline.as_deref().filter(|_| is_two).into_iter().chain([self.dump.as_path()]);
        line.extend(dumps.map(as_argument));
        line.extend(words.iter().skip(1).map(OsString::from));
        line
    }
}

/// Returns a path that no command takes for an option or for standard input.
fn as_argument(path: &Path) -> OsString {
    if path.as_os_str().as_encoded_bytes().starts_with(b"-") {
        return Path::new(".").join(path).into_os_string();
    }
    path.as_os_str().to_owned()
}

fn wrapped(text: &str, width: u16) -> Vec<ScreenLine> {
    let lines = hprof_report::fit::wrap(&hprof_report::escape::text(text), width.into(), 2);
    lines.iter().map(|line| ScreenLine::of_text(line)).collect()
}
