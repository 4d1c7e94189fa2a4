//! Requests for pages: path and parameters. They are as untrusted as a dump.

use std::borrow::Cow;
use std::path::Path;

use percent_encoding::percent_decode_str;

use crate::cli::shared::context::RunContext;
use hprof_report::escape::is_harmful;
use hprof_report::html::{Links, percent_encode};

use super::ask::CommandQuery;
use super::site::Site;

/// Maximum number of rows on a page.
pub(crate) const MAX_TOP: u64 = 5000;
/// Maximum length of a path with its query string in bytes.
pub(crate) const MAX_TARGET: usize = 16 << 10;

/// A request for a page of a dump.
#[derive(Debug, Clone)]
pub(crate) struct Request<'a> {
    pub(crate) cx: &'a RunContext,
    pub(crate) site: &'a Site,
    /// Number of the dump, counted from 1.
    pub(crate) number: usize,
    pub(crate) dump: &'a Path,
    /// The parts of the path after the dump, decoded.
    pub(crate) path: Vec<String>,
    query: Vec<(String, String)>,
    /// Requested form of the response.
    pub(crate) form: ReplyForm,
}

/// Form of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyForm {
    Page,
    Json,
    Csv,
}

impl ReplyForm {
    /// Splits a path into the path without its extension and the form that the extension selects.
    pub(crate) fn of_path(path: &str) -> (&str, Self) {
        for form in [Self::Json, Self::Csv] {
            if let Some(path) = path.strip_suffix(form.suffix()) {
                return (path, form);
            }
        }
        (path, Self::Page)
    }

    const fn suffix(self) -> &'static str {
        match self {
            Self::Page => "",
            Self::Json => ".json",
            Self::Csv => ".csv",
        }
    }
}

impl<'a> Request<'a> {
    /// Parses the target of a request: `/1/histo.json?sort=instances`. `None` if there is no such dump.
    pub(crate) fn read(cx: &'a RunContext, site: &'a Site, target: &str) -> Option<Self> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (path, form) = ReplyForm::of_path(path);
        let mut parts = path.strip_prefix('/')?.split('/');
        // As printed: each dump has exactly one path.
        let number: usize = parts.next().filter(|part| !part.starts_with(['0', '+']))?.parse().ok()?;
        let path = parts.map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned()).collect();
        // Characters that are not displayed literally are removed from a URL.
        let harmless =
            |text: &str| text.chars().filter(|c| matches!(c, '\n' | '\t') || !is_harmful(*c)).collect();
        let query = form_urlencoded::parse(query.as_bytes());
        let query = query.map(|(name, value)| (name.into_owned(), harmless(&value))).collect();
        Some(Self { cx, site, number, dump: site.dump(number)?, path, query, form })
    }

    /// Returns the first part of the path: the page.
    pub(crate) fn page(&self) -> &str {
        self.path.first().map_or("", String::as_str)
    }

    /// Returns the subject of the page, if the path contains one.
    pub(crate) fn subject(&self) -> Option<&str> {
        self.path.get(1).map(String::as_str)
    }

    /// Returns the first nonempty value of a parameter.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.values(name).find(|value| !value.is_empty())
    }

    /// Returns all values of a parameter.
    pub(crate) fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.query.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the number in a parameter.
    pub(crate) fn number_of(&self, name: &str) -> Option<u64> {
        self.value(name)?.parse().ok()
    }

    /// Returns the requested number of rows, limited.
    pub(crate) fn top(&self, default: u64) -> u64 {
        self.number_of("top").filter(|top| *top > 0).unwrap_or(default).min(MAX_TOP)
    }

    /// Returns a value for an option; the number of rows is limited to the maximum of a page.
    pub(crate) fn clamp_option<'v>(&self, name: &str, value: &'v str) -> Cow<'v, str> {
        match value.parse::<u64>() {
            Ok(rows) if name == "top" && (rows == 0 || rows > MAX_TOP) => MAX_TOP.to_string().into(),
            _ => value.into(),
        }
    }

    /// Creates a query of the dump.
    pub(crate) fn ask(&self, command: &'static str) -> CommandQuery<'a> {
        CommandQuery::new(self.cx, self.site, self.dump, command)
    }

    /// Returns the prefix of links to the dump's pages.
    pub(crate) fn links(&self) -> Links {
        self.site.links(self.number)
    }

    /// Returns the path of a page of the dump.
    pub(crate) fn href(&self, path: &str) -> String {
        format!("/{}/{path}", self.number)
    }

    fn own_path(&self) -> String {
        let parts: Vec<String> = self.path.iter().map(|part| percent_encode(part).to_string()).collect();
        self.href(&parts.join("/"))
    }

    fn query_with(&self, name: &str, value: Option<&str>) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.query.iter().filter(|(known, value)| known != name && !value.is_empty()));
        query.extend_pairs(value.map(|value| (name, value)));
        let query = query.finish();
        if query.is_empty() { query } else { format!("?{query}") }
    }

    /// Returns the URL of the same page with another value of a parameter.
    pub(crate) fn with(&self, name: &str, value: &str) -> String {
        format!("{}{}", self.own_path(), self.query_with(name, Some(value)))
    }

    /// Returns the URL of the same page in another form.
    pub(crate) fn href_as(&self, form: ReplyForm) -> String {
        format!("{}{}{}", self.own_path(), form.suffix(), self.query_with("", None))
    }
}
