//! The layout of a page: head, navigation, search, breadcrumbs; and components shared by all pages.

use maud::{DOCTYPE, Markup, html};

use crate::cli::shared::context::Note;
use hprof_report::escape;
use hprof_report::html::{self, Links, text};
use hprof_report::number::{group_digits, hundredths, percent};

use super::ask::{CommandQuery, Failure, GridAnswer};
use super::request::{ReplyForm, Request};
use super::site::{AvailableData, Site};

/// The content of a page, without head and navigation.
#[derive(Debug)]
pub(crate) struct Page {
    /// Title; the heading as well, unless there is another one.
    pub(crate) title: String,
    /// Heading, if it differs from the title.
    pub(crate) heading: Option<Markup>,
    /// Path of the navigation entry that is marked as current.
    pub(crate) current: &'static str,
    /// Breadcrumbs: names and paths.
    pub(crate) crumbs: Vec<(String, String)>,
    /// Main content.
    pub(crate) body: Markup,
    /// HTTP status: 200, or the code of an error.
    pub(crate) status: u16,
}

impl Page {
    /// Creates a page that is an entry of the navigation.
    pub(crate) fn new(current: &'static str, title: impl Into<String>, body: Markup) -> Self {
        let title = title.into();
        Self { title, heading: None, current, crumbs: Vec::new(), body, status: 200 }
    }

    /// Adds a breadcrumb.
    pub(crate) fn breadcrumb(mut self, name: impl Into<String>, path: impl Into<String>) -> Self {
        self.crumbs.push((name.into(), path.into()));
        self
    }

    /// Sets a heading that differs from the title.
    pub(crate) fn heading(mut self, heading: Markup) -> Self {
        self.heading = Some(heading);
        self
    }

    /// Creates a page that shows a failure.
    pub(crate) fn for_failure(current: &'static str, title: &str, failure: &Failure, links: &Links) -> Self {
        let mut page = Self::new(current, title, failure_alert(failure, links));
        page.status = 404;
        page
    }
}

/// Pages of a heap in the navigation: path, name. The first ones are always visible.
pub(crate) const HEAP_PAGES: &[(&str, &str)] = &[
    ("overview", "Overview"),
    ("leaks", "Leaks"),
    ("histo", "Histogram"),
    ("dominators", "Dominators"),
    ("treemap", "Treemap"),
    ("threads", "Threads"),
    ("waste", "Waste"),
    ("oql", "OQL"),
];
/// Further pages of a heap in the navigation: path, name.
pub(crate) const MORE_PAGES: &[(&str, &str)] = &[
    #[cfg(feature = "sql")]
    ("sql", "SQL"),
    ("icicle", "Icicle"),
    ("classes", "Classes"),
    ("roots", "GC roots"),
    ("loaders", "Class loaders"),
    ("memory", "Process memory"),
    ("strings", "Strings"),
    ("finalizers", "Finalizers"),
    ("info", "Info"),
    ("doctor", "Doctor"),
];
/// Pages of recordings in the navigation: path, name.
pub(crate) const RECORDING_PAGES: &[(&str, &str)] = &[
    ("recording", "Recording"),
    ("sites", "Allocation sites"),
    ("traces", "Stack traces"),
    ("cpu", "CPU samples"),
    ("cputime", "CPU time"),
    ("monitors", "Monitors"),
    ("flamegraph", "Flame graph"),
];

/// Renders the start of the head of any document.
pub(crate) fn head(title: &str, name: &str) -> Markup {
    html! {
        meta charset="utf-8";
        meta name="viewport" content="width=device-width, initial-scale=1";
        meta name="color-scheme" content="light dark";
        title { (escape::text(title)) " · " (escape::text(name)) }
    }
}

/// Renders a complete HTML document. Scripts and styles come from the server.
pub(crate) fn document(site: &Site, number: usize, has: AvailableData, page: &Page) -> Markup {
    let name = site.name(number);
    let links = site.links(number);
    let more = MORE_PAGES.iter().filter(|_| has.heap);
    let more = more.chain(RECORDING_PAGES.iter().filter(|_| has.recording && has.heap));
    let compare = ("diff", "Comparison");
    let more: Vec<_> = more.chain((site.baseline.is_some()).then_some(&compare)).collect();
    let first = if has.heap { HEAP_PAGES } else { RECORDING_PAGES };
    let is_more = more.iter().any(|(path, _)| *path == page.current);
    let title = escape::text(&page.title);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                (head(&page.title, &name))
                link rel="icon" href="/assets/icon.svg" type="image/svg+xml";
                link rel="stylesheet" href="/assets/style.css";
                script src="/assets/script.js" defer {}
            }
            body {
                a.skip href="#main" { "Skip to content" }
                header {
                    @if site.dumps.len() > 1 {
                        a.dump href="/" title="All dumps" { (escape::text(&name)) }
                    } @else {
                        b.dump { (escape::text(&name)) }
                    }
                    nav aria-label="Pages" {
                        ul {
                            @for (path, name) in first { li { (nav_link(&links, path, name, page.current)) } }
                            @if !more.is_empty() {
                                li { details.more {
                                    summary aria-current=[is_more.then_some("page")] { "More" }
                                    ul { @for (path, name) in &more {
                                        li { (nav_link(&links, path, name, page.current)) }
                                    } }
                                } }
                            }
                        }
                    }
                    form role="search" action=[links.to("search")] {
                        input #search type="search" name="q" aria-label="Search: class, object ID or text"
                            placeholder="class, 0xID or text" autocomplete="off" spellcheck="false" required;
                        button { "Search" }
                    }
                }
                main #main tabindex="-1" {
                    @if !page.crumbs.is_empty() {
                        nav.crumbs aria-label="Breadcrumb" { ol {
                            @for (name, path) in &page.crumbs {
                                li { (html::link(links.to(path), escape::text(name).into_owned())) }
                            }
                            li aria-current="page" { (title) }
                        } }
                    }
                    h1 { @match &page.heading { Some(heading) => (heading), None => (title) } }
                    (page.body)
                }
            }
        }
    }
}

fn nav_link(links: &Links, path: &str, name: &str, current: &str) -> Markup {
    html! { a href=[links.to(path)] aria-current=[(path == current).then_some("page")] { (name) } }
}

/// Renders the equivalent shell command, and a link to its output as CSV.
pub(crate) fn command(ask: &CommandQuery<'_>, links: &Links) -> Markup {
    let csv = ask.csv_path().and_then(|path| links.to(&path));
    html! {
        div.cmd {
            code tabindex="0" { (escape::text(&ask.shell())) }
            @if let Some(csv) = csv { a href=(csv) { "CSV" } }
            button.copy type="button" hidden { "Copy" }
        }
    }
}

/// Renders the command of a whole page, and links to its output for programs.
pub(crate) fn page_command(ask: &CommandQuery<'_>, request: &Request<'_>) -> Markup {
    html! {
        (command(ask, &Links::none()))
        (formats(request))
    }
}

/// Renders links to the content of the page for programs.
pub(crate) fn formats(request: &Request<'_>) -> Markup {
    html! {
        p.formats {
            a href=(request.href_as(ReplyForm::Json)) { "JSON" } " · " a href=(request.href_as(ReplyForm::Csv)) { "CSV" }
        }
    }
}

/// Renders the notes of a command.
pub(crate) fn notes(notes: &[Note], links: &Links) -> Markup {
    // Hints about options are for a shell, as pages have their own controls. Damage is always shown.
    let is_for_shell = |note: &Note| note.kind != "warning" && note.text.contains("--");
    let notes: Vec<&Note> = notes.iter().filter(|note| !is_for_shell(note)).collect();
    html! {
        @if !notes.is_empty() {
            ul.notes {
                @for note in &notes {
                    li class=(note.kind) { b { (note.kind) } " " (text(&note.text, links)) }
                }
            }
        }
    }
}

/// Renders a failure.
pub(crate) fn failure_alert(failure: &Failure, links: &Links) -> Markup {
    html! {
        div.failed role="alert" {
            p { @for line in failure.text.lines() { (text(line, links)) br; } }
            @if let Some(hint) = &failure.hint { p.dim { (text(hint, links)) } }
        }
    }
}

/// Returns whether the grids of a command's output have any rows.
fn has_rows(answered: &GridAnswer) -> bool {
    answered.grids.iter().any(|grid| {
        !grid.rows.is_empty() || !grid.above.is_empty() || !grid.under.is_empty() || grid.instead.is_some()
    })
}

/// Renders the output of a command, grids and notes, or the failure.
pub(crate) fn answer(of: Result<GridAnswer, Failure>, links: &Links, caption: &str) -> Markup {
    match of {
        Ok(answered) => html! {
            @for grid in &answered.grids { (html::grid(grid, links, Some(caption))) }
            @if !has_rows(&answered) && answered.notes.is_empty() { p.dim { "Nothing." } }
            (notes(&answered.notes, links))
        },
        Err(failure) => failure_alert(&failure, links),
    }
}

/// Renders a section with a heading, the output of a command, and the command.
pub(crate) fn section(heading: &str, ask: &CommandQuery<'_>, links: &Links) -> Markup {
    html! {
        section {
            h2 { (heading) }
            (answer(ask.grids(), links, heading))
            (command(ask, links))
        }
    }
}

/// Renders facts side by side: label and value.
pub(crate) fn facts<'a>(facts: impl IntoIterator<Item = (String, &'a str)>) -> Markup {
    html! {
        dl.facts { @for (value, name) in facts { div { dt { (name) } dd { (value) } } } }
    }
}

/// Renders a part of a total as a bar and a percentage.
pub(crate) fn share(part: u64, whole: u64) -> Markup {
    html! {
        meter min="0" max="100" value=(hundredths(part, whole)) aria-hidden="true" {}
        span.pct { (percent(part, whole)) }
    }
}

/// Formats a number with thousands separators; as a dash if it is missing.
pub(crate) fn number(value: Option<u64>) -> String {
    value.map_or_else(|| "–".to_owned(), group_digits)
}
