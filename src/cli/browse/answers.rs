//! Runs commands of this program for the browser; dumps stay open between commands.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use hprof_report::screen::{Screen, ScreenLine};
use hprof_report::window::{MAX_ROWS, RowWindow};
use hprof_values::ObjectId;

use super::core::{ScreenAnswer, ScreenRequest, takes_two};
use super::kept::{CommandAnswer, KeptAnswers, MAX_KEPT_BYTES};
use crate::cli;
use crate::cli::Outcome;
use crate::cli::pages::ask::Failure;
use crate::cli::shared::context::{CapturedOutput, Note, RunContext, lock};

/// Maximum number of lines of a result; the same command in a shell shows all.
const MAX_LINES: usize = MAX_ROWS;
/// Maximum size in bytes of a result that is a text.
const MAX_TEXT: usize = 16 << 20;

/// Message if the program panicked.
const BUG: &str = "internal error in hprof-cli; please report this bug";
/// The command of the first view.
const OVERVIEW: &str = "overview";
/// Number of objects that are shown until the overview is ready.
const EARLY_ROWS: usize = 50;

/// Captured output of a command.
struct CommandOutput {
    screens: Vec<Screen>,
    text: String,
    notes: Vec<Note>,
    is_damaged: bool,
}

/// Runs the browser's requests about one dump, and caches the results.
pub(super) struct Answerer {
    cx: RunContext,
    dump: PathBuf,
    baseline: Option<PathBuf>,
    /// Options for opening the dump that each command repeats.
    options: Vec<OsString>,
    kept: Mutex<KeptAnswers>,
    /// Number of commands that were run.
    #[cfg(test)]
    run_count: std::sync::atomic::AtomicUsize,
    /// The first command line, and its notes about the dump, which later results do not repeat.
    first: OnceLock<(Vec<String>, Vec<String>)>,
}

impl Answerer {
    /// Creates an answerer whose context keeps dumps open between commands.
    pub(super) fn new(
        cx: RunContext,
        dump: PathBuf,
        baseline: Option<PathBuf>,
        options: Vec<OsString>,
    ) -> Self {
        Self {
            cx,
            dump,
            baseline,
            options,
            kept: Mutex::new(KeptAnswers::new(MAX_KEPT_BYTES)),
            #[cfg(test)]
            run_count: std::sync::atomic::AtomicUsize::new(0),
            first: OnceLock::new(),
        }
    }

    /// Limits the cache of results to this many bytes.
    #[cfg(test)]
    pub(super) fn keeping(self, most: usize) -> Self {
        Self { kept: Mutex::new(KeptAnswers::new(most)), ..self }
    }

    /// Returns the number of commands that were run.
    #[cfg(test)]
    pub(super) fn run_count(&self) -> usize {
        self.run_count.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Returns the result of a request; errors are returned as lines as well.
    pub(super) fn answer(&self, question: &ScreenRequest) -> ScreenAnswer {
        let answered = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.laid(question)));
        match answered {
            Ok(Ok(answer)) => answer,
            Ok(Err(failure)) => {
                ScreenAnswer::for_failure(&failure.text, failure.hint.as_deref(), question.width)
            }
            Err(_) => ScreenAnswer::for_failure(BUG, None, question.width),
        }
    }

    /// Returns whether other lines can be shown until the result is ready.
    pub(super) fn has_early(question: &ScreenRequest) -> bool {
        question.words == [OVERVIEW]
    }

    /// Returns whether the dump is open with its index.
    pub(super) fn has_index(&self) -> bool {
        self.cx.has_open_graph(&self.dump)
    }

    /// Returns the lines to show until the overview is ready: the biggest objects.
    pub(super) fn early(&self, question: &ScreenRequest) -> Option<ScreenAnswer> {
        let words = ["dominators".to_owned(), format!("--top={EARLY_ROWS}")];
        let window = RowWindow { count: EARLY_ROWS, ..RowWindow::ALL };
        let ask = || self.run(&words, question.width, &window).ok();
        let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(ask)).ok()??;
        let mut lines = wrap_text("the biggest objects; the overview is not ready yet", question.width);
        lines.extend(answer.screens.iter().flat_map(|screen| screen.lines(question.width)));
        Some(ScreenAnswer { lines, width: question.width, ..ScreenAnswer::default() })
    }

    fn laid(&self, question: &ScreenRequest) -> Result<ScreenAnswer, Failure> {
        let width = question.width;
        let (words, mut window) = question.command();
        let wanted = window.text.to_lowercase();
        if !wanted.is_empty() {
            window.kept = self.open_nodes_with(&wanted, question)?;
        }
        let answer = self.ask(&words, width, &window)?;
        let mut screens = answer.screens.clone();
        if let Some(screen) = screens.first_mut() {
            self.graft_trees(screen, question)?;
        }
        if !wanted.is_empty() {
            screens.iter_mut().take(1).for_each(|screen| screen.keep_matching_rows(&wanted));
        }
        let mut lines: Vec<ScreenLine> = screens.iter().flat_map(|screen| screen.lines(width)).collect();
        lines.extend(answer.text.lines().flat_map(|line| wrap_text(line, width)));
        let mut notes: Vec<ScreenLine> =
            answer.notes.iter().flat_map(|note| wrap_text(note, width)).collect();
        let is_cut = question.window.is_none() && screens.iter().any(|screen| screen.place().has_more);
        if is_cut || lines.len() > MAX_LINES {
            lines.truncate(MAX_LINES);
            let text = "note: the view is truncated; Y copies the command for a shell";
            notes.extend(wrap_text(text, width));
        }
        let count = notes.len();
        lines.extend(notes);
        let place = question.window.as_ref().and_then(|_| Some(screens.first()?.place()));
        Ok(ScreenAnswer { lines, notes: count, place, text: window.text, width, is_failed: false })
    }

    /// Inserts the trees of the open nodes below their rows on a screen.
    fn graft_trees(&self, screen: &mut Screen, question: &ScreenRequest) -> Result<(), Failure> {
        let mut others: Vec<_> = question.trees.iter().collect();
        // A node may have been opened before the one above it was closed and opened again.
        loop {
            let shown = screen.objects();
            let (here, rest): (Vec<_>, Vec<_>) = others.into_iter().partition(|(id, _)| shown.contains(id));
            if here.is_empty() {
                return Ok(());
            }
            for (id, words) in here {
                let tree = self.ask(words, question.width, &RowWindow::ALL)?;
                if let Some(tree) = tree.screens.first() {
                    screen.graft(*id, tree);
                }
            }
            others = rest;
        }
    }

    /// Returns the open nodes with a descendant whose text contains `wanted`, including descendants in other open nodes.
    fn open_nodes_with(&self, wanted: &str, question: &ScreenRequest) -> Result<Vec<ObjectId>, Failure> {
        let mut found: Vec<ObjectId> = Vec::new();
        // Each may be below another one, which was usually opened earlier.
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

    /// Runs a command, unless its result is cached.
    fn ask(&self, words: &[String], width: u16, window: &RowWindow) -> Result<Arc<CommandAnswer>, Failure> {
        let key = (words.to_vec(), width, window.clone());
        if let Some(answer) = lock(&self.kept).find(&key) {
            return Ok(answer);
        }
        let CommandOutput { screens, text, notes, is_damaged } = self.run(words, width, window)?;
        let damage = is_damaged.then(|| "note: the dump is damaged; :doctor shows details".to_owned());
        let about_dump = || notes.iter().filter(|note| note.is_about_dump);
        let texts = || about_dump().map(|note| note.text.clone()).collect();
        let (first, told) = self.first.get_or_init(|| (words.to_vec(), texts()));
        let is_told = |note: &Note| words != first && note.is_about_dump && told.contains(&note.text);
        let notes = notes.iter().filter(|note| !is_told(note));
        let notes = notes.map(|note| format!("{}: {}", note.kind, note.text));
        let answer = Arc::new(CommandAnswer { screens, text, notes: notes.chain(damage).collect() });
        lock(&self.kept).keep(key, answer.clone());
        Ok(answer)
    }

    /// Runs a command, and returns its output.
    fn run(&self, words: &[String], width: u16, window: &RowWindow) -> Result<CommandOutput, Failure> {
        #[cfg(test)]
        self.run_count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let cx = self.cx.taking_screens(MAX_TEXT, width, window.clone());
        let done = cli::answer(&cx, &self.command_line(words));
        let CapturedOutput { screens, bytes, notes, .. } = cx.into_output();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match done {
            Ok(outcome) => {
                Ok(CommandOutput { screens, text, notes, is_damaged: outcome == Outcome::Damaged })
            }
            Err(error) => match error.downcast_ref::<clap::Error>() {
                // Requested help.
                Some(help) if !help.use_stderr() => {
                    let text = help_for(words, width).unwrap_or_else(|| help.to_string());
                    Ok(CommandOutput { screens, text, notes, is_damaged: false })
                }
                _ => Err(Failure::from_error(&error, notes)),
            },
        }
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

/// Returns a path that no command mistakes for an option or for standard input.
fn as_argument(path: &Path) -> OsString {
    if path.as_os_str().as_encoded_bytes().starts_with(b"-") {
        return Path::new(".").join(path).into_os_string();
    }
    path.as_os_str().to_owned()
}

impl ScreenAnswer {
    /// Creates the lines that show an error.
    pub(super) fn for_failure(text: &str, hint: Option<&str>, width: u16) -> Self {
        let hint = hint.map(|hint| format!("hint: {hint}"));
        let text = format!("error: {text}");
        let lines = text.lines().map(str::to_owned).chain(hint);
        // An ID in an error may be an example, or the ID of no object.
        let unlinked = |line| ScreenLine { links: Arc::default(), ..line };
        Self {
            lines: lines.flat_map(|text| wrap_text(&text, width)).map(unlinked).collect(),
            is_failed: true,
            width,
            ..Self::default()
        }
    }
}

fn wrap_text(text: &str, width: u16) -> Vec<ScreenLine> {
    let lines = hprof_report::fit::wrap(&hprof_report::escape::text(text), width.into(), 2);
    lines.iter().map(|line| ScreenLine::of_text(line)).collect()
}
