//! Pages that show one answer of one command, with a form for the command's options.
//!
//! The form is made from the declaration of the command line: choices are its possible values, titles its help.

use clap::{Arg, ArgAction};
use maud::{Markup, html};

use crate::cli;

use super::ask::Ask;
use super::frame::{self, Page};
use super::request::Request;

/// A page.
#[derive(Debug)]
pub(crate) struct Listing {
    /// Its path, and its parameter of the navigation.
    pub(crate) path: &'static str,
    pub(crate) title: &'static str,
    /// What it says, in a sentence.
    pub(crate) about: &'static str,
    pub(crate) command: &'static str,
    /// Options that the form has.
    pub(crate) options: &'static [&'static str],
    /// The parameter whose value stands behind the dump, and what it is.
    pub(crate) argument: Option<(&'static str, &'static str)>,
    /// Rows when nothing is said.
    pub(crate) top: Option<&'static str>,
}

/// All of them.
pub(crate) const LISTINGS: &[Listing] = &[
    Listing {
        path: "histo",
        title: "Histogram",
        about: "Instances and bytes by class, package or class loader.",
        command: "histo",
        options: &["group-by", "sort", "live", "unreachable", "retained", "retained-by", "heap", "top"],
        argument: Some(("pattern", "Class pattern")),
        top: Some("100"),
    },
    Listing {
        path: "classes",
        title: "Classes",
        about: "All loaded classes; as a tree, below their superclasses.",
        command: "classes",
        options: &["tree", "depth", "sort", "top"],
        argument: Some(("pattern", "Class pattern")),
        top: Some("200"),
    },
    Listing {
        path: "instances",
        title: "Instances",
        about: "The objects of a class, those that retain most first.",
        command: "instances",
        options: &["subclasses", "where", "sort", "live", "heap", "top"],
        argument: Some(("class", "Class")),
        top: Some("50"),
    },
    Listing {
        path: "refs",
        title: "References",
        about: "What an object, or all objects of a class, refers to, or what refers to it.",
        command: "refs",
        options: &["incoming", "outgoing", "group-by", "top"],
        argument: Some(("of", "Object or class")),
        top: Some("100"),
    },
    Listing {
        path: "paths",
        title: "Paths to GC roots",
        about: "The shortest paths of references that keep an object alive.",
        command: "paths-to-root",
        options: &["paths", "budget", "exclude", "all-references", "exclude-roots", "depth", "top"],
        argument: Some(("of", "Object or class")),
        top: None,
    },
    Listing {
        path: "retained",
        title: "Retained set",
        about: "What would be freed with these objects.",
        command: "retained",
        options: &[],
        argument: Some(("of", "Object or class")),
        top: None,
    },
    Listing {
        path: "roots",
        title: "GC roots",
        about: "The roots by kind; of one kind, its objects.",
        command: "roots",
        options: &["kind", "thread", "top"],
        argument: None,
        top: Some("100"),
    },
    Listing {
        path: "threads",
        title: "Threads",
        about: "Threads, with their stacks and what the locals retain.",
        command: "threads",
        options: &[
            "name", "state", "group", "group-of", "stack", "locals", "virtual", "platform", "sort", "depth",
            "top",
        ],
        argument: None,
        top: Some("100"),
    },
    Listing {
        path: "loaders",
        title: "Class loaders",
        about: "Class loaders, and what they retain; classes that several of them define.",
        command: "loaders",
        options: &["details", "duplicates", "sort", "top"],
        argument: None,
        top: Some("100"),
    },
    Listing {
        path: "strings",
        title: "Strings",
        about: "The texts of the heap, or those that several Strings have.",
        command: "strings",
        options: &["duplicates", "pattern", "min-length", "max-length", "live", "sort", "max-chars", "top"],
        argument: None,
        top: Some("50"),
    },
    Listing {
        path: "waste",
        title: "Waste",
        about: "Memory spent for nothing, and the fields that hold it.",
        command: "waste",
        options: &["kind", "by", "explain", "top"],
        argument: None,
        top: None,
    },
    Listing {
        path: "info",
        title: "Info",
        about: "What is in the file: format, JVM, layout, records.",
        command: "info",
        options: &[],
        argument: None,
        top: None,
    },
    Listing {
        path: "doctor",
        title: "Doctor",
        about: "Whether the dump is whole, and what is wrong with it.",
        command: "doctor",
        options: &[],
        argument: None,
        top: None,
    },
    Listing {
        path: "recording",
        title: "Recording",
        about: "What a profiler recorded.",
        command: "summary",
        options: &[],
        argument: None,
        top: None,
    },
    Listing {
        path: "sites",
        title: "Allocation sites",
        about: "What was allocated where: SITES.",
        command: "sites",
        options: &["sort", "stack", "depth", "method", "trace", "cutoff", "top"],
        argument: Some(("pattern", "Class pattern")),
        top: Some("50"),
    },
    Listing {
        path: "traces",
        title: "Stack traces",
        about: "The recorded stack traces: TRACE.",
        command: "traces",
        options: &["class", "method", "thread", "depth", "top"],
        argument: Some(("trace", "Serial number")),
        top: Some("50"),
    },
    Listing {
        path: "cpu",
        title: "CPU samples",
        about: "Where the time went: CPU SAMPLES.",
        command: "cpu",
        options: &["group-by", "sort", "stack", "depth", "class", "method", "cutoff", "top"],
        argument: None,
        top: Some("50"),
    },
    Listing {
        path: "cputime",
        title: "CPU time",
        about: "Time by method, measured: CPU TIME.",
        command: "cputime",
        options: &["calls", "sort", "stack", "depth", "class", "method", "cutoff", "top"],
        argument: None,
        top: Some("50"),
    },
    Listing {
        path: "monitors",
        title: "Monitors",
        about: "Which monitors threads waited for.",
        command: "monitors",
        options: &["dumps", "waits", "sort", "stack", "depth", "monitor", "method", "cutoff", "top"],
        argument: None,
        top: Some("50"),
    },
];

/// The options of the dominator tree that its page takes.
const OF_TREE: &[&str] = &["of", "group-by", "merge", "min-retained", "depth"];

/// Where the answers of a command are: the path, the parameter of what stands behind the dump, and the parameters that are
/// options.
pub(crate) fn place(command: &str) -> Option<(&'static str, Option<&'static str>, &'static [&'static str])> {
    match command {
        "dominators" => return Some(("dominators", None, OF_TREE)),
        "oql" => return Some(("oql", Some("q"), &["live"])),
        "sql" => return Some(("sql", Some("q"), &[])),
        _ => {}
    }
    let listing = LISTINGS.iter().find(|listing| listing.command == command)?;
    Some((listing.path, listing.argument.map(|(parameter, _)| parameter), listing.options))
}

impl Listing {
    /// The one at a path.
    pub(crate) fn at(path: &str) -> Option<&'static Self> {
        LISTINGS.iter().find(|listing| listing.path == path)
    }

    /// The question that a request asks.
    pub(crate) fn ask(&self, request: &Request<'_>) -> Ask {
        let mut ask = request.ask(self.command);
        for arg in declared(self.command, self.options) {
            let name = arg.get_long().unwrap_or_default().to_owned();
            let values = request.all(&name).filter(|value| !value.is_empty());
            for value in values {
                ask = if takes_value(&arg) {
                    ask.option(&*name, request.bounded(&name, value))
                } else {
                    ask.flag(&*name)
                };
                if !matches!(arg.get_action(), ArgAction::Append) {
                    break;
                }
            }
        }
        if let Some(top) = self.top
            && request.one("top").is_none()
        {
            ask = ask.option("top", top);
        }
        if let Some((parameter, _)) = self.argument {
            for value in request.all(parameter).filter(|value| !value.is_empty()) {
                ask = ask.argument(value);
            }
        }
        ask
    }

    /// The page.
    pub(crate) fn page(&self, request: &Request<'_>) -> Page {
        let ask = self.ask(request);
        let links = request.links();
        let answer = ask.grids();
        let more = answer.as_ref().ok().and_then(|answered| more(answered, request));
        let body = html! {
            p.dim { (self.about) }
            (self.form(request))
            (frame::answered(answer, &links, self.title))
            (more.unwrap_or_default())
            (frame::whole(&ask, request))
        };
        Page::new(self.path, self.title, body)
    }

    /// The form: one control an option.
    fn form(&self, request: &Request<'_>) -> Markup {
        let args = declared(self.command, self.options);
        if args.is_empty() && self.argument.is_none() {
            return html! {};
        }
        html! {
            form.filter action=(request.href(self.path)) {
                @if let Some((name, label)) = self.argument {
                    label { span { (label) } input name=(name) value=[request.one(name)] spellcheck="false" autocomplete="off"; }
                }
                @for arg in &args { (control(arg, request)) }
                button { "Show" }
            }
        }
    }
}

/// The line below a page that does not show all rows.
fn more(answered: &super::ask::Answered, request: &Request<'_>) -> Option<Markup> {
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

/// The declaration of a command's options.
fn declared(command: &str, options: &[&str]) -> Vec<Arg> {
    let Some(program) = cli::alone(command) else { return Vec::new() };
    let Some(command) = program.find_subcommand(command) else { return Vec::new() };
    let of = |name: &&str| command.get_arguments().find(|arg| arg.get_long() == Some(name)).cloned();
    options.iter().filter_map(of).collect()
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

/// What an option is called in a form.
fn label(name: &str) -> String {
    let words = name.replace('-', " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn control(arg: &Arg, request: &Request<'_>) -> Markup {
    let name = arg.get_long().unwrap_or_default();
    let help = arg.get_help().map(|help| help.to_string()).unwrap_or_default();
    let given = request.one(name);
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
