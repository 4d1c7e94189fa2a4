//! A view of the browser: a command line whose result it shows.

use std::ffi::OsString;
use std::path::Path;

use hprof_report::column::CellTarget;
use hprof_values::ObjectId;

use crate::cli::pages::listings::Listing;
use crate::cli::shared::commands::{matches_itself, quoted, quoted_path};
use crate::cli::shared::spool;

/// Number of rows first requested below a node of the dominator tree.
const FIRST_CHILDREN: usize = 50;
/// Maximum number of rows below a node; the separate view of the node's tree loads more.
const MAX_CHILDREN: usize = 3_200;
/// Commands whose rows are loaded while scrolling.
const SCROLLING: &[&str] = &[
    "histo",
    "dominators",
    "instances",
    "refs",
    "threads",
    "strings",
    "classes",
    "loaders",
    "oql",
    "sql",
    "roots",
    "secrets",
    "traces",
    "cpu",
    "diff",
];
/// Commands that can be typed after `:`: they only read, and need no terminal.
pub(in crate::cli::browse) const READING: &[&str] = &[
    "overview",
    "leaks",
    "histo",
    "dominators",
    "places",
    "retained",
    "paths-to-root",
    "loaders",
    "threads",
    "strings",
    "waste",
    "diff",
    "check",
    "secrets",
    "show",
    "instances",
    "refs",
    "roots",
    "classes",
    "oql",
    "sql",
    "sites",
    "traces",
    "cpu",
    "cputime",
    "monitors",
    "summary",
    "info",
    "doctor",
];

/// A command line without the dump: the command, and the words after the dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli::browse) struct View {
    command: String,
    rest: Vec<String>,
    /// `true` if rows are loaded while scrolling.
    scrolls: bool,
    /// Nodes of the dominator tree that are open, with the number of objects requested below each.
    opened: Vec<(ObjectId, usize)>,
}

/// An object or class that other commands accept.
pub(super) type ViewSubject = CellTarget;

impl View {
    /// Creates the view of a command.
    pub(super) fn new<S: Into<String>>(command: &str, rest: impl IntoIterator<Item = S>) -> Self {
        let rest: Vec<String> = rest.into_iter().map(Into::into).collect();
        let mut new = Self { command: command.to_owned(), rest, scrolls: false, opened: Vec::new() };
        // Each level of this tree has a number of rows.
        let is_merged = command == "dominators" && (new.has("--group-by") || new.has("--depth"));
        if SCROLLING.contains(&command)
            && !is_merged
            && !new.asks_for_help()
            && !new.has("--format")
            && !new.has("--all")
        {
            new.scrolls = true;
            // All rows are shown, as they are scrolled to.
            let (at, _) = new.value_of("--top");
            new.rest.drain(at);
        }
        new
    }

    /// Parses a command typed after `:`, and returns its view.
    ///
    /// # Errors
    /// If the command is unknown or does more than read, or the line is incomplete.
    pub(super) fn parse(line: &str, is_command: impl Fn(&str) -> bool) -> Result<Self, String> {
        let line = line.trim();
        let line = line.strip_prefix("hprof-cli ").unwrap_or(line).trim_start();
        let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        if !READING.contains(&command) {
            let is_known = is_command(command);
            return Err(if is_known { only_in_shell(command) } else { format!("unknown command {command}") });
        }
        if matches!(command, "sql" | "oql") {
            if rest.is_empty() || rest == "-" {
                return Err(format!("{command} needs a query: {command} SELECT ..."));
            }
            // A query contains quotes of its own.
            if !rest.starts_with(['-', '\'', '"']) {
                return Ok(Self::new(command, [rest]));
            }
        }
        let words = split(rest).ok_or_else(|| "a closing quotation mark is missing".to_owned())?;
        Ok(Self::new(command, words))
    }

    /// Returns the view that a link opens.
    pub(super) fn of_target(target: &CellTarget, from: &Self) -> Option<Self> {
        Some(match target {
            CellTarget::Object(id) if from.command == "threads" && !from.has("--stack") => {
                Self::new("threads", [format!("--thread={id:#x}"), "--stack".into(), "--locals".into()])
            }
            CellTarget::Object(id) => Self::new("show", [format!("{id:#x}"), "--incoming".to_owned()]),
            CellTarget::Class(_, id) => Self::for_subject("instances", &[], target)
                .or_else(|| Self::of_target(&CellTarget::Object((*id)?), from))?,
            CellTarget::Page(path) => Self::of_page(path)?,
            CellTarget::Command(words) => {
                let (command, rest) =
                    words.split_first().filter(|(command, _)| READING.contains(&&***command))?;
                Self::new(command, rest.to_vec())
            }
        })
    }

    /// Returns the view of a command about an object or class; `None` if the class cannot be named.
    pub(super) fn for_subject(command: &str, options: &[&str], subject: &ViewSubject) -> Option<Self> {
        let name = match subject {
            CellTarget::Object(id) | CellTarget::Class(_, Some(id)) if command != "instances" => {
                format!("{id:#x}")
            }
            CellTarget::Class(name, _) if matches_itself(name) => name.clone(),
            _ => return None,
        };
        let words = options.iter().map(|option| (*option).to_owned());
        if command == "dominators" {
            return Some(Self::new(command, words.chain([format!("--of={name}")])));
        }
        Some(Self::new(command, words.chain([name])))
    }

    /// Returns the view with the same result as a page of `serve`.
    fn of_page(path: &str) -> Option<Self> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let listing = Listing::for_path(path)?;
        let (mut words, mut arguments) = (Vec::new(), Vec::new());
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if listing.argument.is_some_and(|(argument, _)| argument == name) {
                arguments.push(value.into_owned());
            } else if listing.options.contains(&name.as_ref()) {
                let is_flag =
                    value == "1" && matches!(&*name, "stack" | "locals" | "virtual" | "platform" | "live");
                words.push(if is_flag { format!("--{name}") } else { format!("--{name}={value}") });
            }
        }
        words.extend(arguments);
        Some(Self::new(listing.command, words))
    }

    /// Returns the name of the command.
    pub(super) fn command(&self) -> &str {
        &self.command
    }

    /// Returns whether an option was given.
    pub(super) fn has(&self, option: &str) -> bool {
        self.rest.iter().any(|word| word.split('=').next() == Some(option))
    }

    fn asks_for_help(&self) -> bool {
        self.has("--help") || self.has("-h")
    }

    /// Returns the object that the view is about.
    pub(super) fn subject(&self) -> Option<ViewSubject> {
        let of = |word: &String| {
            let digits =
                word.trim_start_matches("--of=").trim_start_matches("--thread=").strip_prefix("0x")?;
            u64::from_str_radix(digits, 16).ok().map(|id| CellTarget::Object(ObjectId(id)))
        };
        self.rest.iter().find_map(of)
    }

    /// Returns the command line without the dump.
    pub(super) fn words(&self) -> Vec<String> {
        std::iter::once(&self.command).chain(&self.rest).cloned().collect()
    }

    /// Returns whether rows are loaded while scrolling.
    pub(super) fn scrolls(&self) -> bool {
        self.scrolls
    }

    /// Returns whether nodes of the dominator tree are open.
    pub(super) fn has_open_nodes(&self) -> bool {
        !self.opened.is_empty()
    }

    /// Returns the open nodes, and the command lines of the trees that are inserted below them.
    pub(super) fn trees(&self) -> Vec<(ObjectId, Vec<String>)> {
        let tree = |(id, top): &(ObjectId, usize)| {
            let words = ["dominators".to_owned(), format!("--of={id:#x}"), format!("--top={top}")];
            (*id, words.to_vec())
        };
        self.opened.iter().map(tree).collect()
    }

    /// Returns the command line for a shell.
    pub(super) fn shell(&self, dump: &Path, baseline: Option<&Path>, options: &[OsString]) -> String {
        let mut words = vec!["hprof-cli".to_owned(), self.command.clone()];
        if takes_two(&self.command) {
            words.extend(baseline.map(|path| quoted_path(spool::original_path(path))));
        }
        words.push(quoted_path(spool::original_path(dump)));
        words.extend(self.rest.iter().map(quoted));
        words.extend(options.iter().map(quoted));
        words.join(" ")
    }

    /// Returns the title: the name of the view, or its command line.
    pub(super) fn title(&self) -> String {
        match super::keys::VIEWS.iter().find(|view| view.command == self.command && view.rest == self.rest) {
            Some(view) => view.title.to_owned(),
            None => std::iter::once(&self.command).chain(&self.rest).cloned().collect::<Vec<_>>().join(" "),
        }
    }

    /// Returns whether this is the tree of the object `id`, whose children follow its row.
    pub(super) fn starts_at(&self, id: ObjectId) -> bool {
        self.is_tree() && self.has("--of") && self.subject() == Some(CellTarget::Object(id))
    }

    /// Opens a node of the dominator tree, or requests more objects below it. Returns `false` if the view is not a tree.
    pub(super) fn open(&mut self, id: ObjectId) -> bool {
        if !self.is_tree() {
            return false;
        }
        match self.opened.iter_mut().find(|(opened, _)| *opened == id) {
            Some((_, top)) => *top = (*top * 4).min(MAX_CHILDREN),
            None => self.opened.push((id, FIRST_CHILDREN)),
        }
        true
    }

    /// Closes a node of the dominator tree. Returns `false` if it was not open.
    pub(super) fn close(&mut self, id: ObjectId) -> bool {
        let before = self.opened.len();
        self.opened.retain(|(opened, _)| *opened != id);
        self.opened.len() < before
    }

    /// Returns whether nodes can be opened.
    pub(super) fn is_tree(&self) -> bool {
        self.command == "dominators" && !self.has("--group-by") && !self.has("--chain")
    }

    /// Returns the view with the option set to the next of the values; after the last value, without the option.
    pub(super) fn with_next(&self, option: &str, values: &[String]) -> Option<Self> {
        let (at, current) = self.value_of(option);
        let next = match current {
            None => Some(values.first()?),
            Some(current) => {
                values.iter().position(|value| *value == current).and_then(|found| values.get(found + 1))
            }
        };
        let mut rest = self.rest.clone();
        rest.drain(at);
        rest.splice(0..0, next.map(|value| format!("{option}={value}")));
        Some(Self::new(&self.command, rest))
    }

    /// Returns the range of the words that form an option, and the option's value.
    fn value_of(&self, option: &str) -> (std::ops::Range<usize>, Option<String>) {
        for (at, word) in self.rest.iter().enumerate() {
            match word.strip_prefix(option) {
                Some("") => return (at..(at + 2).min(self.rest.len()), self.rest.get(at + 1).cloned()),
                Some(value) if value.starts_with('=') => {
                    return (at..at + 1, value.get(1..).map(str::to_owned));
                }
                _ => {}
            }
        }
        (0..0, None)
    }
}

/// Returns whether a command compares the dump with another one.
pub(in crate::cli::browse) fn takes_two(command: &str) -> bool {
    command == "diff"
}

/// Returns the error message for a command that is not available in the browser because it does more than read.
pub(super) fn only_in_shell(command: &str) -> String {
    format!("{command} can be run only in a shell")
}

/// Splits a line into words as a shell does; `None` if a closing quotation mark is missing.
fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let (mut word, mut is_word, mut quote) = (String::new(), false, None);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(mark), c) if c == mark => quote = None,
            (None, '\'' | '"') => (quote, is_word) = (Some(c), true),
            (None, '\\') | (Some('"'), '\\') => {
                word.extend(chars.next());
                is_word = true;
            }
            (None, c) if c.is_whitespace() => {
                if is_word {
                    words.push(std::mem::take(&mut word));
                }
                is_word = false;
            }
            (_, c) => {
                word.push(c);
                is_word = true;
            }
        }
    }
    if is_word {
        words.push(word);
    }
    quote.is_none().then_some(words)
}
