//! Answers the questions of the browser with the commands of this program, whose dumps stay open.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use hprof_parser::ObjectId;
use hprof_report::screen::{Screen, ScreenLine};
use hprof_report::window::RowWindow;

use super::core::{Question, ScreenAnswer, takes_two};
use crate::cli;
use crate::cli::Outcome;
use crate::cli::pages::ask::Failure;
use crate::cli::shared::context::{Note, RunContext, locked};

/// Maximum number of answers that are kept.
const MAX_KEPT: usize = 32;
/// Maximum number of lines of an answer; the shell shows all.
const MAX_LINES: usize = 20_000;
/// Maximum size of an answer that is a text.
const MAX_TEXT: usize = 16 << 20;

/// Answer of a command.
#[derive(Debug, Default)]
struct CommandAnswer {
    screens: Vec<Screen>,
    text: String,
    notes: Vec<String>,
}

/// A command line without the dump, the width of its answer, and its rows.
type KeptKey = (Vec<String>, u16, RowWindow);

/// Answers questions to one dump.
pub(super) struct Answerer {
    cx: RunContext,
    dump: PathBuf,
    baseline: Option<PathBuf>,
    /// Options for opening that each command repeats.
    options: Vec<OsString>,
    kept: Mutex<VecDeque<(KeptKey, Arc<CommandAnswer>)>>,
    /// The command of the first answer, and its notes about the dump, which later answers do not repeat.
    first: OnceLock<(Vec<String>, Vec<String>)>,
}

impl Answerer {
    /// Creates an answerer whose context keeps dumps open.
    pub(super) fn new(
        cx: RunContext,
        dump: PathBuf,
        baseline: Option<PathBuf>,
        options: Vec<OsString>,
    ) -> Self {
        Self { cx, dump, baseline, options, kept: Mutex::default(), first: OnceLock::new() }
    }

    /// Answers a question; an error is an answer too.
    pub(super) fn answer(&self, question: &Question) -> ScreenAnswer {
        let answered = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.laid(question)));
        match answered {
            Ok(Ok(answer)) => answer,
            Ok(Err(failure)) => ScreenAnswer::failed(&failure.text, failure.hint.as_deref(), question.width),
            Err(_) => {
                ScreenAnswer::failed("hprof-cli failed on this question; this is a bug", None, question.width)
            }
        }
    }

    fn laid(&self, question: &Question) -> Result<ScreenAnswer, Failure> {
        let width = question.width;
        let (words, mut window) = question.command();
        let wanted = window.text.to_lowercase();
        if !wanted.is_empty() {
            window.kept = self.open_nodes_with(&wanted, question)?;
        }
        let answer = self.ask(&words, width, &window)?;
        let mut screens = answer.screens.clone();
        // A node may have been opened before the one above it was closed and opened again.
        let mut trees: Vec<_> = question.trees.iter().collect();
        while let Some(screen) = screens.first_mut()
            && let Some(at) = trees.iter().position(|(id, _)| screen.has(*id))
        {
            let (id, words) = trees.remove(at);
            let tree = self.ask(words, width, &RowWindow::ALL)?;
            if let Some(tree) = tree.screens.first() {
                screen.graft(*id, tree);
            }
        }
        if !wanted.is_empty() {
            screens.iter_mut().take(1).for_each(|screen| screen.sift(&wanted));
        }
        let mut lines: Vec<ScreenLine> = screens.iter().flat_map(|screen| screen.lines(width)).collect();
        lines.extend(answer.text.lines().flat_map(|line| wrapped(line, width)));
        let mut notes: Vec<ScreenLine> = answer.notes.iter().flat_map(|note| wrapped(note, width)).collect();
        if lines.len() > MAX_LINES {
            lines.truncate(MAX_LINES);
            notes.extend(wrapped("note: more lines in a shell: Y copies the command", width));
        }
        let count = notes.len();
        lines.extend(notes);
        let place = question.window.as_ref().and_then(|_| Some(screens.first()?.place()));
        Ok(ScreenAnswer { lines, notes: count, place, text: window.text, width, is_failed: false })
    }

    /// Returns the open nodes that have an object with a text below them, in nodes that are shown open.
    fn open_nodes_with(&self, wanted: &str, question: &Question) -> Result<Vec<ObjectId>, Failure> {
        let mut found: Vec<ObjectId> = Vec::new();
        // Each may be below another one, which was usually opened before it.
        let mut others: Vec<_> = question.trees.iter().rev().collect();
        loop {
            let before = found.len();
            let mut rest = Vec::new();
            for node in others {
                let (id, words) = node;
                let tree = self.ask(words, question.width, &RowWindow::ALL)?;
                if tree.screens.first().is_some_and(|tree| tree.has_below(wanted, &found)) {
                    found.push(*id);
                } else {
                    rest.push(node);
                }
            }
            if found.len() == before || rest.is_empty() {
                return Ok(found);
            }
            others = rest;
        }
    }

    /// Runs a command, unless its answer is kept.
    fn ask(&self, words: &[String], width: u16, window: &RowWindow) -> Result<Arc<CommandAnswer>, Failure> {
        let key = (words.to_vec(), width, window.clone());
        {
            let mut kept = locked(&self.kept);
            if let Some(at) = kept.iter().position(|(known, _)| *known == key)
                && let Some((key, answer)) = kept.remove(at)
            {
                // Those that were needed last are kept longest.
                kept.push_front((key, answer.clone()));
                return Ok(answer);
            }
        }
        let cx = self.cx.taking_screens(MAX_TEXT, width, window.clone());
        let done = cli::answer(&cx, &self.command_line(words));
        let said = cx.into_said();
        let mut text = String::from_utf8_lossy(&said.bytes).into_owned();
        let is_damaged = match done {
            Ok(outcome) => outcome == Outcome::Damaged,
            Err(error) => match error.downcast_ref::<clap::Error>() {
                // Help that was asked for.
                Some(help) if !help.use_stderr() => {
                    text = help_for(words, width).unwrap_or_else(|| help.to_string());
                    false
                }
                _ => return Err(Failure::of(&error, said.notes)),
            },
        };
        let damage = is_damaged.then(|| "note: the dump is damaged; doctor explains".to_owned());
        let about_dump = || said.notes.iter().filter(|note| note.is_about_dump);
        let texts = || about_dump().map(|note| note.text.clone()).collect();
        let (first, told) = self.first.get_or_init(|| (words.to_vec(), texts()));
        let is_told = |note: &Note| words != first && note.is_about_dump && told.contains(&note.text);
        let notes = said.notes.iter().filter(|note| !is_told(note));
        let notes = notes.map(|note| format!("{}: {}", note.kind, note.text));
        let answer =
            Arc::new(CommandAnswer { screens: said.screens, text, notes: notes.chain(damage).collect() });
        let mut kept = locked(&self.kept);
        kept.push_front((key, answer.clone()));
        kept.truncate(MAX_KEPT);
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

/// Returns the help that a command line asks for, laid out for a width.
fn help_for(words: &[String], width: u16) -> Option<String> {
    let program = cli::alone(words.first()?)?.term_width(width.into());
    let line = std::iter::once("hprof-cli").chain(words.iter().map(String::as_str));
    Some(program.try_get_matches_from(line).err()?.to_string())
}

/// Returns a path that no command takes for an option or for standard input.
fn as_argument(path: &Path) -> OsString {
    if path.as_os_str().as_encoded_bytes().starts_with(b"-") {
        return Path::new(".").join(path).into_os_string();
    }
    path.as_os_str().to_owned()
}

impl ScreenAnswer {
    /// Creates the answer to a question that failed.
    pub(super) fn failed(text: &str, hint: Option<&str>, width: u16) -> Self {
        let hint = hint.map(|hint| format!("hint: {hint}"));
        let text = format!("error: {text}");
        let lines = text.lines().map(str::to_owned).chain(hint);
        // An ID in an error may be an example, or that of no object.
        let unlinked = |line| ScreenLine { links: Arc::default(), ..line };
        Self {
            lines: lines.flat_map(|text| wrapped(&text, width)).map(unlinked).collect(),
            is_failed: true,
            width,
            ..Self::default()
        }
    }
}

fn wrapped(text: &str, width: u16) -> Vec<ScreenLine> {
    let lines = hprof_report::fit::wrap(&hprof_report::escape::text(text), width.into(), 2);
    lines.iter().map(|line| ScreenLine::of_text(line)).collect()
}
