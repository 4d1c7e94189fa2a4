//! Pages with the output of one command, and a form for the command's options.
//!
//! The form is built from the declaration of the command line: choices are the possible values, titles are the help.

use clap::{Arg, ArgAction};
use maud::{Markup, html};

use crate::cli;

use super::ask::CommandQuery;
use super::frame::{self, Page};
use super::listings::Listing;
use super::request::Request;

impl Listing {
    /// Returns the query for a request.
    pub(crate) fn ask<'a>(&self, request: &Request<'a>) -> CommandQuery<'a> {
        let mut ask = request.ask(self.command);
        for arg in option_args(self.command, self.options) {
            let name = arg.get_long().unwrap_or_default().to_owned();
            for value in request.values(&name).filter(|value| !value.is_empty()) {
                ask = if takes_value(&arg) {
                    ask.option(&*name, request.clamp_option(&name, value))
                } else {
                    ask.flag(&*name)
                };
                if !matches!(arg.get_action(), ArgAction::Append) {
                    break;
                }
            }
        }
        if let Some(top) = self.top
            && request.value("top").is_none()
        {
            ask = ask.option("top", top);
        }
        if let Some((parameter, _)) = self.argument {
            for value in request.values(parameter).filter(|value| !value.is_empty()) {
                ask = ask.argument(value);
            }
        }
        ask
    }

    /// Renders the page.
    pub(crate) fn page(&self, request: &Request<'_>) -> Page {
        let ask = self.ask(request);
        let links = request.links();
        let answer = ask.grids();
        let more = answer.as_ref().ok().and_then(|answered| more_line(answered, request));
        let body = html! {
            p.dim { (self.about) }
            (self.form(request))
            (frame::answer(answer, &links, self.title))
            (more.unwrap_or_default())
            (frame::page_command(&ask, request))
        };
        Page::new(self.path, self.title, body)
    }

    /// Renders the form, with one control per option.
    fn form(&self, request: &Request<'_>) -> Markup {
        let args = option_args(self.command, self.options);
        if args.is_empty() && self.argument.is_none() {
            return html! {};
        }
        html! {
            form.filter action=(request.href(self.path)) {
                @if let Some((name, label)) = self.argument {
                    label { span { (label) } input name=(name) value=[request.value(name)] spellcheck="false" autocomplete="off"; }
                }
                @for arg in &args { (control(arg, request)) }
                button { "Show" }
            }
        }
    }
}

/// Renders the note on a page that does not show all rows.
fn more_line(answered: &super::ask::GridAnswer, request: &Request<'_>) -> Option<Markup> {
    let (left, what) = answered.grids.iter().find_map(|grid| grid.more)?;
    let shown: u64 = answered.grids.iter().map(|grid| grid.rows.len() as u64).sum();
    let next = (shown.saturating_mul(4)).clamp(100, super::request::MAX_TOP);
    Some(html! {
        p.more {
            @if let Some(left) = left { (frame::number(Some(left))) " " } "more " (what)
            @if next > shown { " · " a href=(request.with("top", &next.to_string())) { "show " (frame::number(Some(next))) } }
        }
    })
}

/// Returns the declaration of a command's options.
fn option_args(command: &str, options: &[&str]) -> Vec<Arg> {
    let Some(program) = cli::alone(command) else { return Vec::new() };
    let Some(command) = program.find_subcommand(command) else { return Vec::new() };
    let of = |name: &&str| command.get_arguments().find(|arg| arg.get_long() == Some(name)).cloned();
    options.iter().filter_map(of).collect()
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

/// Returns the label of an option in a form.
fn label(name: &str) -> String {
    let words = name.replace('-', " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn control(arg: &Arg, request: &Request<'_>) -> Markup {
    let name = arg.get_long().unwrap_or_default();
    let help = arg.get_help().map(|help| help.to_string()).unwrap_or_default();
    let given = request.value(name);
    let choices = arg.get_possible_values();
    html! {
        @if !takes_value(arg) {
            label.check title=(help) {
                input type="checkbox" name=(name) value="1" checked[given.is_some()];
                span { (label(name)) }
            }
        } @else if !choices.is_empty() {
            label title=(help) {
                span { (label(name)) }
                select name=(name) {
                    @if arg.get_default_values().is_empty() { option value="" { "–" } }
                    @for choice in &choices {
                        option value=(choice.get_name()) selected[is_chosen(arg, given, choice.get_name())] {
                            (choice.get_name())
                        }
                    }
                }
            }
        } @else {
            label title=(help) {
                span { (label(name)) }
                input name=(name) value=[given] class=(if name == "top" || name == "depth" { "short" } else { "" })
                    spellcheck="false" autocomplete="off";
            }
        }
    }
}

fn is_chosen(arg: &Arg, given: Option<&str>, choice: &str) -> bool {
    match given {
        Some(given) => given == choice,
        None => arg.get_default_values().iter().any(|value| value == choice),
    }
}
