//! The headline of a report, and the documents that it is taken from.

use std::cell::OnceCell;

use serde_json::Value as Json;

use super::About;
use super::sections::Section;
use crate::cli::pages::ask::Failure;
use crate::cli::pages::document::Look;
use crate::cli::pages::overview;
use hprof_query::dictionary::names;

/// The documents of `overview` and `leaks`: each walks over the whole heap, so each is asked once, and only if a section
/// needs it.
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

    /// The document of `overview`.
    pub(super) fn overview(&self) -> &Result<Json, Failure> {
        self.overview.get_or_init(|| self.ask("overview"))
    }

    /// The document of `leaks`.
    pub(super) fn leaks(&self) -> &Result<Json, Failure> {
        self.leaks.get_or_init(|| self.ask("leaks"))
    }

    fn ask(&self, command: &'static str) -> Result<Json, Failure> {
        self.about.ask(command).json().map(|(document, _)| document)
    }

    /// What is wrong with the heap, in a line; `None` if there is no heap, or if no section needs the graph of its objects,
    /// which may not be built yet.
    pub(super) fn headline(&self) -> Result<Option<String>, &Failure> {
        if !self.about.has.heap || !self.sections.iter().any(|section| section.needs_graph()) {
            return Ok(None);
        }
        if self.sections.contains(&Section::Overview) {
            return Ok(self.overview().as_ref()?.row().map(overview::title));
        }
        // It has the same line, and asks less.
        let headline = self.leaks().as_ref()?.text(names::HEADLINE);
        Ok((!headline.is_empty()).then(|| headline.to_owned()))
    }
}
