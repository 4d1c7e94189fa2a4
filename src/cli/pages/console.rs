//! The consoles for OQL and SQL: a query, its rows, help. The browser stores the history.

use maud::{Markup, html};

use crate::cli;
use hprof_report::escape;

use super::ask::{CommandQuery, GridAnswer};
use super::frame::{self, Page};
use super::request::Request;

/// Default limit of rows.
const TOP: &str = "100";

/// A query language that has a console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Language {
    /// Name of the command, and path of its page.
    command: &'static str,
    name: &'static str,
    /// Placeholder of the query field.
    example: &'static str,
    /// `true` if the command can omit unreachable objects.
    has_live: bool,
}

/// OQL, the query language of Eclipse MAT.
pub(crate) const OQL: Language = Language {
    command: "oql",
    name: "OQL",
    example: "SELECT s, s.value.@length FROM java.lang.String s WHERE s.value.@length > 1000",
    has_live: true,
};
/// SQL over the tables of the dump.
#[cfg(feature = "sql")]
pub(crate) const SQL: Language = Language {
    command: "sql",
    name: "SQL",
    example: "SELECT class, count(*), sum(shallow_bytes) FROM objects GROUP BY class ORDER BY 3 DESC",
    has_live: false,
};

/// Returns the command that runs the requested query; `None` if the request has no query.
pub(crate) fn ask<'a>(language: Language, request: &Request<'a>) -> Option<CommandQuery<'a>> {
    let query = request.value("q")?;
    let top = request.clamp_option("top", request.value("top").unwrap_or(TOP));
    let mut ask = request.ask(language.command).option("top", top);
    if language.has_live && request.value("live").is_some() {
        ask = ask.flag("live");
    }
    Some(ask.argument(query))
}

pub(crate) fn page(language: Language, request: &Request<'_>) -> Page {
    let ask = ask(language, request);
    let body = html! {
        form.console action=(request.href(language.command)) data-language=(language.command) {
            label.hidden for="query" { (language.name) " query" }
            textarea #query name="q" rows="4" spellcheck="false" autocomplete="off" required
                placeholder=(language.example) {
                (request.value("q").unwrap_or_default())
            }
            div.row {
                @if language.has_live {
                    label.check { input type="checkbox" name="live" value="1" checked[request.value("live").is_some()]; span { "Only reachable objects" } }
                }
                label { span { "Top" } input.short name="top" value=[request.value("top")] placeholder=(TOP); }
                button { "Run" }
                span.dim.keys hidden { "Ctrl+Enter runs, Alt+↑ and Alt+↓ are the history" }
            }
        }
        @if let Some(ask) = &ask {
            (answer(ask, request))
            (frame::page_command(ask, request))
        }
        (help(language))
    };
    Page::new(language.command, language.name, body)
}

/// Renders the rows, or the error with the query and a mark at its position.
fn answer(ask: &CommandQuery<'_>, request: &Request<'_>) -> Markup {
    let links = request.links();
    let (answered, wrong) = match ask.grids() {
        Ok(answered) => (answered, None),
        Err(failure) => (GridAnswer { grids: Vec::new(), notes: failure.notes }, Some(failure.text)),
    };
    let (errors, others): (Vec<_>, Vec<_>) =
        answered.notes.into_iter().partition(|note| note.kind == "error");
    let Some(wrong) = wrong.or_else(|| errors.into_iter().next().map(|note| note.text)) else {
        return frame::answer(Ok(GridAnswer { grids: answered.grids, notes: others }), &links, "Rows");
    };
    html! {
        div.failed role="alert" {
            @if !others.is_empty() { pre tabindex="0" { @for note in &others { (escape::text(&note.text)) "\n" } } }
            p { (escape::text(&wrong)) }
        }
    }
}

/// Renders the command's help about the language.
fn help(language: Language) -> Markup {
    let program = cli::alone(language.command);
    let command = program.as_ref().and_then(|program| program.find_subcommand(language.command));
    let long = command.and_then(|command| command.get_long_about().cloned());
    let examples = command.and_then(|command| command.get_after_long_help().cloned());
    let examples = examples.map(|text| text.to_string()).unwrap_or_default();
    let examples = examples.split("Exit codes").next().unwrap_or_default().trim().to_owned();
    html! {
        details.help {
            summary { "Help" }
            pre tabindex="0" { (long.map(|text| text.to_string()).unwrap_or_default()) }
            pre tabindex="0" { (examples) }
        }
    }
}
