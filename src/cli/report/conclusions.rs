//! The headline of a report, and the documents that it is taken from.

use std::cell::OnceCell;

use serde_json::Value as Json;

use super::About;
use super::sections::Section;
use crate::cli::pages::ask::Failure;
use crate::cli::pages::document::JsonLookup;
use crate::cli::pages::{overview, suspects};
use hprof_query::dictionary::names;

/// The documents of `overview` and `leaks`. Each requires passes over the whole heap, so each is computed once, and only if
/// a section needs it.
pub(super) struct Conclusions<'a> {
    about: &'a About,
    sections: &'a [Section],
    overview: OnceCell<Result<Json, Failure>>,
    leaks: OnceCell<Result<Json, Failure>>,
}

impl<'a> Conclusions<'a> {
    pub(super) fn new(about: &'a About, sections: &'a [Section]) -> Self {
        Self { about, sections, overview: OnceCell::new(), leaks: OnceCell::new() }
    }

    /// Returns the document of `overview`.
    pub(super) fn overview(&self) -> &Result<Json, Failure> {
        self.overview.get_or_init(|| self.run_command("overview"))
    }

    /// Returns the document of `leaks`.
    pub(super) fn leaks(&self) -> &Result<Json, Failure> {
        self.leaks.get_or_init(|| self.run_command("leaks"))
    }

    fn run_command(&self, command: &'static str) -> Result<Json, Failure> {
        let (document, _) = self.about.ask(command).json()?;
        if command == "leaks" {
            for warning in suspects::recording_warnings(&document) {
                self.about.cx.emit("warning", warning);
            }
        }
        Ok(document)
    }

    /// Returns the one-line verdict on the heap; `None` if there is no heap, or if no section needs the object graph,
    /// which may not be built yet.
    pub(super) fn headline(&self) -> Result<Option<String>, &Failure> {
        if !self.about.has.heap || !self.sections.iter().any(|section| section.needs_graph()) {
            return Ok(None);
        }
        if self.sections.contains(&Section::Overview) {
            return Ok(self.overview().as_ref()?.row().map(overview::title));
        }
        // The document of `leaks` contains the same line and costs less.
        let headline = self.leaks().as_ref()?.text(names::HEADLINE);
        Ok((!headline.is_empty()).then(|| headline.to_owned()))
    }
}
