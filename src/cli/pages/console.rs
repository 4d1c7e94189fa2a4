//! The console for OQL: a query, its rows, help. What was asked before is in the browser's own memory.

use maud::{Markup, html};

use crate::cli;
use crate::report::escape;

use super::ask::{Answered, Ask};
use super::frame::{self, Page};
use super::request::Request;

/// Rows when nothing is said.
const TOP: &str = "100";

/// The query's answer; `None` if nothing is asked.
pub(crate) fn ask(request: &Request<'_>) -> Option<Ask> {
    let query = request.one("q")?;
    let mut ask = request.ask("oql").option("top", request.bounded("top", request.one("top").unwrap_or(TOP)));
    if request.one("live").is_some() {
        ask = ask.flag("live");
    }
    Some(ask.argument(query))
}

pub(crate) fn page(request: &Request<'_>) -> Page {
    let ask = ask(request);
    let body = html! {
        form.console action=(request.href("oql")) {
            label.hidden for="query" { "OQL query" }
            textarea #query name="q" rows="4" spellcheck="false" autocomplete="off" required
                placeholder="SELECT s, s.value.@length FROM java.lang.String s WHERE s.value.@length > 1000" {
                (request.one("q").unwrap_or_default())
            }
            div.row {
                label.check { input type="checkbox" name="live" value="1" checked[request.one("live").is_some()]; span { "Only reachable objects" } }
                label { span { "Top" } input.short name="top" value=[request.one("top")] placeholder=(TOP); }
                button { "Run" }
                span.dim.keys hidden { "Ctrl+Enter runs, Alt+↑ and Alt+↓ are the history" }
            }
        }
        @if let Some(ask) = &ask {
            (answer(ask, request))
            (frame::command(ask))
            (frame::json_link(&request.json_href()))
        }
        (help())
    };
    Page::new("oql", "OQL", body)
}

/// The rows, or what is wrong: with the query, and a mark at the place.
fn answer(ask: &Ask, request: &Request<'_>) -> Markup {
    let links = request.links();
    let (answered, wrong) = match ask.grids() {
        Ok(answered) => (answered, None),
        Err(failure) => (Answered { grids: Vec::new(), notes: failure.notes }, Some(failure.text)),
    };
    let (errors, others): (Vec<_>, Vec<_>) =
        answered.notes.into_iter().partition(|note| note.kind == "error");
    let Some(wrong) = wrong.or_else(|| errors.into_iter().next().map(|note| note.text)) else {
        return frame::answered(Ok(Answered { grids: answered.grids, notes: others }), &links, "Rows");
    };
    html! {
        div.failed role="alert" {
            @if !others.is_empty() { pre tabindex="0" { @for note in &others { (escape::text(&note.text)) "\n" } } }
            p { (escape::text(&wrong)) }
        }
    }
}

/// What the command line says of the language.
fn help() -> Markup {
    let command = cli::command();
    let long = command.find_subcommand("oql").and_then(|oql| oql.get_long_about().cloned());
    let examples = command.find_subcommand("oql").and_then(|oql| oql.get_after_long_help().cloned());
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
