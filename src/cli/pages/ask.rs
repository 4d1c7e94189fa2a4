//! Runs commands whose output pages show.
//!
//! A page consists of the output of commands, the same as in a shell: as grids, or as JSON documents. So a page, its JSON and
//! the command that it shows cannot disagree.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::cli::shared::advice;
use crate::cli::shared::args::is_index_dir_word;
use crate::cli::shared::commands::{quoted, quoted_path};
use crate::cli::shared::context::{CapturedOutput, Note, RunContext};
use crate::cli::shared::spool;
use crate::cli::{self, Outcome};
use hprof_report::grid::Grid;

use super::listings;
use super::site::Site;

/// A command to run: its name, dumps, options and arguments.
#[derive(Debug, Clone)]
pub(crate) struct CommandQuery<'a> {
    cx: &'a RunContext,
    command: &'static str,
    dumps: Vec<PathBuf>,
    options: Vec<(String, Option<String>)>,
    arguments: Vec<String>,
    /// Options given to the server, which a shell command must repeat.
    common: &'a [OsString],
    /// Recording that was given with the dump.
    recording: Option<&'a Path>,
    /// File about the process that was given with the dump.
    process: Option<&'a Path>,
}

/// Commands that can read a recording in addition to the dump.
const WITH_RECORDING: [&str; 2] = ["leaks", "overview"];

/// Error of a command: message, advice and notes.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Error message.
    pub(crate) text: String,
    /// Advice.
    pub(crate) hint: Option<String>,
    /// Notes before the error, such as the position in a query.
    pub(crate) notes: Vec<Note>,
}

/// Output of a command as grids, with the command's notes.
#[derive(Debug)]
pub(crate) struct GridAnswer {
    pub(crate) grids: Vec<Grid>,
    pub(crate) notes: Vec<Note>,
}

impl<'a> CommandQuery<'a> {
    /// Creates a query of one dump of a site.
    pub(crate) fn new(cx: &'a RunContext, site: &'a Site, dump: &Path, command: &'static str) -> Self {
        Self {
            cx,
            command,
            dumps: vec![dump.to_owned()],
            options: Vec::new(),
            arguments: Vec::new(),
            common: &site.options,
            recording: site.recording_of(dump).filter(|_| WITH_RECORDING.contains(&command)),
            process: site.process_of(dump).filter(|_| command == "memory"),
        }
    }

    /// Adds an older dump to compare with, as the argument before the dump.
    pub(crate) fn since(mut self, old: &Path) -> Self {
        self.dumps.insert(0, old.to_owned());
        self
    }

    /// Adds an option without a value.
    pub(crate) fn flag(mut self, name: impl Into<String>) -> Self {
        self.options.push((name.into(), None));
        self
    }

    /// Adds an option.
    pub(crate) fn option(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.push((name.into(), Some(value.into())));
        self
    }

    /// Adds an argument after the dump.
    pub(crate) fn argument(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Removes an option.
    fn without(mut self, name: &str) -> Self {
        self.options.retain(|(known, _)| known != name);
        self
    }

    /// Returns the path of the command's output as CSV with all rows, below the path of the dump. `None` if no page shows the
    /// output of this command.
    pub(crate) fn csv_path(&self) -> Option<String> {
        let (path, parameter, options) = listings::place(self.command)?;
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in self.options.iter().filter(|(name, _)| name != "top") {
            let is_known = options.contains(&name.as_str());
            query.append_pair(is_known.then_some(name)?, value.as_deref().unwrap_or("1"));
        }
        for argument in &self.arguments {
            query.append_pair(parameter?, argument);
        }
        let query = query.finish();
        let is_one = self.dumps.len() == 1;
        is_one.then(|| format!("{path}.csv{}{query}", if query.is_empty() { "" } else { "?" }))
    }

    /// Returns the equivalent command line for a shell.
    pub(crate) fn shell(&self) -> String {
        let mut words = vec!["hprof-cli".to_owned(), self.command.to_owned()];
        words.extend(self.dumps.iter().map(|dump| quoted_path(spool::original_path(dump))));
        words.extend(self.arguments.iter().map(quoted));
        for (name, value) in &self.options {
            words.push(format!("--{name}"));
            words.extend(value.iter().map(quoted));
        }
        words.extend(self.recording.iter().flat_map(|path| ["--recording".to_owned(), quoted_path(path)]));
        words.extend(self.process.iter().flat_map(|path| ["--process".to_owned(), quoted_path(path)]));
        // The indexes of copies are stored with them.
        let are_copies = self.dumps.iter().all(|dump| spool::index_dir(dump).is_some());
        let is_repeated = |word: &&OsString| !(are_copies && is_index_dir_word(word));
        words.extend(self.common.iter().filter(is_repeated).map(quoted));
        words.join(" ")
    }

    /// Returns the command line for clap, in which no value can be taken for an option.
    fn words(&self, format: Option<&str>) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec![self.command.into()];
        words.extend(self.common.iter().cloned());
        words.extend(format.map(|format| format!("--format={format}").into()));
        words.extend(self.options.iter().map(|(name, value)| match value {
            Some(value) => format!("--{name}={value}").into(),
            None => format!("--{name}").into(),
        }));
        words.extend(self.recording.iter().flat_map(|path| [OsString::from("--recording"), path.into()]));
        words.extend(self.process.iter().flat_map(|path| [OsString::from("--process"), path.into()]));
        words.push("--".into());
        words.extend(self.dumps.iter().map(|dump| dump.clone().into_os_string()));
        words.extend(self.arguments.iter().map(OsString::from));
        words
    }

    fn listen(&self, limit: usize, format: Option<&str>) -> Result<CapturedOutput, Failure> {
        let cx = self.cx.taking(limit);
        let done = cli::answer(&cx, &self.words(format));
        let said = cx.into_output();
        match done {
            Ok(outcome) => {
                if outcome == Outcome::Damaged {
                    self.cx.see_damage();
                }
                Ok(said)
            }
            Err(error) => Err(Failure::from_error(&error, said.notes)),
        }
    }

    /// Runs the command and returns its output as grids.
    pub(crate) fn grids(&self) -> Result<GridAnswer, Failure> {
        let said = self.listen(MAX_DOCUMENT, None)?;
        Ok(GridAnswer { grids: said.grids, notes: said.notes })
    }

    /// Runs the command and returns its complete output in a format for programs.
    pub(crate) fn document(&self, format: &str) -> Result<Vec<u8>, Failure> {
        let said = self.listen(MAX_ANSWER, Some(format))?;
        if !said.bytes.is_empty() {
            return Ok(said.bytes);
        }
        // A command without a result may write nothing, with the reason in a note.
        let wrong = said.notes.into_iter().find(|note| note.kind == "error");
        Err(Failure::new(wrong.map_or_else(|| "the command returned no answer".to_owned(), |note| note.text)))
    }

    /// Runs the command and returns its output in the given format, and its notes.
    pub(crate) fn format(&self, format: &str) -> Result<(Vec<u8>, Vec<Note>), Failure> {
        let said = self.listen(MAX_DOCUMENT, Some(format))?;
        Ok((said.bytes, said.notes))
    }

    /// Runs the command and returns its JSON document, to build a page, and its notes.
    pub(crate) fn json(&self) -> Result<(Json, Vec<Note>), Failure> {
        let said = self.listen(MAX_DOCUMENT, Some("json"))?;
        match serde_json::from_slice(&said.bytes) {
            Ok(document) => Ok((document, said.notes)),
            // A command without a result may write nothing.
            Err(_) if said.bytes.is_empty() => Ok((Json::Null, said.notes)),
            Err(error) => Err(Failure::new(format!("cannot parse the answer of the command: {error}"))),
        }
    }

    /// Returns the query for programs: without a default limit on rows. `is_top_asked` means that the request has a limit.
    pub(crate) fn for_document(self, is_top_asked: bool) -> Self {
        if is_top_asked { self } else { self.without("top") }
    }
}

/// Maximum size in bytes of a document that is sent unchanged.
const MAX_ANSWER: usize = 64 << 20;
/// Maximum size in bytes of a JSON document that a page is built from.
const MAX_DOCUMENT: usize = 16 << 20;

impl Failure {
    /// Creates a failure that consists of a message only.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), hint: None, notes: Vec::new() }
    }

    /// Describes the error of a command that wrote these notes.
    pub(crate) fn from_error(error: &anyhow::Error, notes: Vec<Note>) -> Self {
        let advice = advice::for_error(error).map(Cow::into_owned);
        let said = || notes.iter().find(|note| note.kind == "hint").map(|note| note.text.clone());
        let hint = advice.or_else(said);
        let text = match error.downcast_ref::<clap::Error>() {
            // The first lines contain the error; the usage is meant for a shell.
            Some(usage) => {
                let text = usage.to_string();
                let first: Vec<&str> = text.lines().take_while(|line| !line.starts_with("Usage:")).collect();
                first.join("\n").trim_start_matches("error: ").trim().to_owned()
            }
            None => format!("{error:#}"),
        };
        Self { text, hint, notes }
    }
}
