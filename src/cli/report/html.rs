//! Reports as a single HTML page: style included, no script, no external resources, and small enough for mail.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value as Json;

use super::conclusions::Conclusions;
use super::sections::Section;
use super::{About, MAX_BYTES};
use crate::cli::pages::ask::{CommandQuery, Failure, GridAnswer};
use crate::cli::pages::document::JsonLookup;
use crate::cli::pages::object_links::object_name;
use crate::cli::pages::{assets, flame, frame, overview, picture, suspects};
use hprof_query::dictionary::names;
use hprof_report::escape;
use hprof_report::grid::{Grid, GridBlock};
use hprof_report::html::{self, Links, text};
use hprof_report::number::group_digits;

/// Bytes reserved for everything other than the sections: style, head, and notes about sections that do not fit.
const MARGIN: usize = 64 << 10;
/// Maximum number of bytes in a table cell.
const MAX_CELL: usize = 400;

/// The content of a section, which can be shown with fewer rows if it is too large.
struct SectionAnswer {
    section: Section,
    content: Content,
    shells: Vec<String>,
}

/// Kinds of content, by how they are shortened.
enum Content {
    /// Markup of fixed size.
    Markup(Markup),
    Grids(Vec<Grid>),
    /// A tree in preorder.
    Tree(Vec<Json>),
}

/// Renders a report of at most 1 MiB.
pub(super) fn report(
    about: &About,
    conclusions: &Conclusions<'_>,
    sections: &[Section],
) -> anyhow::Result<String> {
    let asked: Vec<SectionAnswer> =
        sections.iter().map(|section| ask(about, conclusions, *section)).collect();
    let mut room = MAX_BYTES - MARGIN - assets::STYLE.len() - assets::REPORT_STYLE.len();
    let mut made = Vec::new();
    for (at, each) in asked.iter().enumerate() {
        // Later sections are entitled to their share.
        let share = room / (asked.len() - at).min(4);
        let (markup, is_whole) = fit(each, share);
        let length = markup.0.len();
        room = room.saturating_sub(length);
        made.push((each, markup, is_whole));
    }
    let document = document(about, &conclusions.headline(), &made).into_string();
    anyhow::ensure!(
        document.len() <= MAX_BYTES,
        "the report exceeds 1 MiB; select fewer sections with --sections"
    );
    Ok(document)
}

/// Renders a section with as many rows as fit. Returns `true` if all rows are shown.
fn fit(asked: &SectionAnswer, room: usize) -> (Markup, bool) {
    let mut rows = usize::MAX;
    for _ in 0..16 {
        let (markup, most) = show(asked, rows);
        if markup.0.len() <= room {
            return (markup, rows >= most);
        }
        if most == 0 || rows == 0 {
            break;
        }
        rows = rows.min(most) / 2;
    }
    (html! { p { "This section is too large for the report." } }, false)
}

/// Renders a section with at most `rows` rows per table; returns the total number of rows as well.
fn show(asked: &SectionAnswer, rows: usize) -> (Markup, usize) {
    let links = Links::none();
    match &asked.content {
        Content::Markup(markup) => (markup.clone(), 0),
        Content::Grids(grids) => {
            let most = grids.iter().map(|grid| grid.rows.len()).max().unwrap_or_default();
            let grids: Vec<Grid> = grids.iter().map(|grid| cut(grid, rows)).collect();
            (html! { @for grid in &grids { (html::grid(grid, &links, Some(asked.section.title()))) } }, most)
        }
        Content::Tree(nodes) => (
            html! { ul.nodes { (tree(nodes.get(..rows.min(nodes.len())).unwrap_or_default())) } },
            nodes.len(),
        ),
    }
}

/// Returns a grid with at most `rows` rows, and with shorter cells.
fn cut(grid: &Grid, rows: usize) -> Grid {
    let mut grid = grid.clone();
    let left_out = grid.rows.len().saturating_sub(rows) as u64;
    grid.rows.truncate(rows);
    for cell in grid.rows.iter_mut().flat_map(|row| &mut row.cells) {
        shorten(&mut cell.text);
        cell.target = None;
    }
    for line in grid.rows.iter_mut().flat_map(|row| &mut row.below) {
        shorten(&mut line.text);
    }
    // Suggested commands are for a terminal.
    grid.under.retain(|piece| !matches!(piece, GridBlock::Commands(_)));
    if left_out > 0 {
        let (more, what) = grid.more.unwrap_or((Some(0), "rows"));
        grid.more = Some((more.map(|more| more.saturating_add(left_out)), what));
    }
    if let Some((more, what)) = grid.more {
        let more = more.map(|more| format!("{} ", group_digits(more))).unwrap_or_default();
        grid.under.insert(0, GridBlock::Line(format!("{more}more {what}")));
    }
    grid
}

fn shorten(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(MAX_CELL) {
        text.truncate(end);
        text.push('…');
    }
}

fn ask(about: &About, conclusions: &Conclusions<'_>, section: Section) -> SectionAnswer {
    let asks = section.queries(about);
    let shells = asks.iter().map(CommandQuery::shell).collect();
    let content = match (section, asks.first()) {
        (_, None) => Content::Markup(html! { p { "No older dump was given with --baseline." } }),
        (Section::Overview | Section::Suspects, _) if !about.has.heap => {
            Content::Markup(html! { p { "The file contains no heap." } })
        }
        (Section::Overview, _) => Content::Markup(document_or_failure(conclusions.overview(), facts)),
        (Section::Suspects, _) => Content::Markup(document_or_failure(conclusions.leaks(), suspects_of)),
        (Section::Treemap, _) => Content::Markup(treemap(about)),
        (Section::Flamegraph, Some(ask)) => Content::Markup(flames(ask)),
        (Section::Dominators, Some(ask)) => match ask.json() {
            Ok((document, _)) => Content::Tree(document.rows().to_vec()),
            Err(failure) => Content::Markup(frame::failure_alert(&failure, &Links::none())),
        },
        _ => grids(&asks),
    };
    SectionAnswer { section, content, shells }
}

fn grids(asks: &[CommandQuery<'_>]) -> Content {
    let mut grids = Vec::new();
    for ask in asks {
        match ask.grids() {
            Ok(GridAnswer { grids: found, notes }) => {
                grids.extend(found);
                let notes = notes.into_iter().filter(|note| note.kind == "note");
                grids.push(Grid {
                    above: notes.map(|note| GridBlock::Line(note.text)).collect(),
                    ..Grid::default()
                });
            }
            Err(failure) => return Content::Markup(frame::failure_alert(&failure, &Links::none())),
        }
    }
    Content::Grids(grids)
}

/// Renders a document, or the reason why there is none.
fn document_or_failure(document: &Result<Json, Failure>, show: impl Fn(&Json) -> Markup) -> Markup {
    match document {
        Ok(document) => show(document),
        Err(failure) => frame::failure_alert(failure, &Links::none()),
    }
}

fn facts(document: &Json) -> Markup {
    let Some(row) = document.row() else { return html! {} };
    html! {
        p.dim { (overview::describe_dump(row, document)) }
        (overview::figures(row))
        @if let Some(oom) = row.value(names::OUT_OF_MEMORY) {
            (overview::out_of_memory(oom, &Links::none()))
        }
        (overview::heap_over_time(row))
        h3 { "What retains most" }
        (overview::largest(row, &Links::none()))
    }
}

/// Maximum number of suspects shown.
const SUSPECTS: usize = 12;

fn suspects_of(document: &Json) -> Markup {
    let suspects = document.rows();
    html! {
        @if suspects.is_empty() { p { "Nothing retains more than 10% of the reachable heap by itself." } }
        @for warning in suspects::recording_warnings(document) { p { "Warning: " (text(warning, &Links::none())) } }
        (suspects::cards(document, SUSPECTS, &Links::none()))
    }
}

fn treemap(about: &About) -> Markup {
    match picture::area(&about.cx, &about.site, about.dump(), None) {
        Ok((Some((area, names)), _)) => {
            let form = picture::PictureForm::Treemap;
            picture::figure_of(&area, &names, form, picture::LARGE, None, &Links::none())
        }
        Ok((None, _)) => html! { p { "Nothing is reachable." } },
        Err(error) => html! { p { (escape::text(&format!("{error:#}"))) } },
    }
}

fn flames(ask: &CommandQuery<'_>) -> Markup {
    match ask.format("folded") {
        Ok((folded, _)) => {
            let picture = flame::picture(&String::from_utf8_lossy(&folded), "", &|_| None);
            html! { @match picture {
                Some(picture) => figure tabindex="0" aria-label="Picture" { (picture) },
                None => p { "There are no stacks to draw." },
            } }
        }
        Err(failure) => frame::failure_alert(&failure, &Links::none()),
    }
}

/// Renders nodes in preorder as nested lists that can be opened.
fn tree(nodes: &[Json]) -> Markup {
    let Some(first) = nodes.first() else { return html! {} };
    let depth = first.number(names::DEPTH).unwrap_or_default();
    let mut rest = nodes;
    let mut made = String::new();
    while let Some((node, below)) = rest.split_first() {
        let end = below
            .iter()
            .position(|next| next.number(names::DEPTH).unwrap_or_default() <= depth)
            .unwrap_or(below.len());
        let (children, next) = below.split_at(end);
        let line = html! {
            b { (frame::number(node.number(names::RETAINED_BYTES))) }
            (object_name(node, names::CLASS, names::LABEL))
            " " span."id dim" { (node.text(names::OBJECT)) }
            @if node.text(names::CLASS) != "java.lang.Class" && !node.text(names::LABEL).is_empty() {
                " " q { (text(node.text(names::LABEL), &Links::none())) }
            }
        };
        let one = html! { li {
            @if children.is_empty() { (line) } @else { details { summary { (line) } ul { (tree(children)) } } }
        } };
        made.push_str(&one.0);
        rest = next;
    }
    PreEscaped(made)
}

fn document(
    about: &About,
    headline: &Result<Option<String>, &Failure>,
    made: &[(&SectionAnswer, Markup, bool)],
) -> Markup {
    let name = about.site.name(1);
    let title = match headline {
        Ok(Some(headline)) => escape::text(headline),
        _ if about.has.heap => "Heap dump".into(),
        _ => "What the HPROF agent recorded".into(),
    };
    html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    (frame::head(&title, &name))
                    meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
                    meta name="referrer" content="no-referrer";
                    style { (PreEscaped(assets::STYLE)) (PreEscaped(assets::REPORT_STYLE)) }
                }
                body {
                    header { b.dump { (escape::text(&name)) } }
                    main {
                        h1 { (title) }
                        @if let Err(failure) = headline { (frame::failure_alert(failure, &Links::none())) }
     @if about.cx.hides_values {
    p.dim { "Made with --no-values: it contains no texts, map keys, names of threads and class loaders, properties or arguments. Sizes, counts, limits and states, names of classes, fields and methods, and the file name are included." }
                        } @else {
                            p.secret { b { "This report contains texts of the heap, which may be secret." } " Made with --no-values it has none." }
                        }
                        @if !about.damage.is_empty() {
                            div.failed {
                                p { b { "The dump is damaged: counts and sizes cover only what could be read." } }
                                ul { @for line in about.damage.iter().take(8) { li { (text(line, &Links::none())) } } }
                            }
                        }
                        nav.contents aria-label="Contents" { ul {
                            @for (asked, ..) in made { li { a href={ "#" (asked.section.anchor()) } { (asked.section.title()) } } }
                        } }
                        @for (asked, markup, is_whole) in made {
                            section id=(asked.section.anchor()) {
                                h2 { (asked.section.title()) }
                                (markup)
                                @if !is_whole { p.dim { "The report does not contain everything; these commands show the rest:" } }
                                @for shell in &asked.shells { div.cmd { code tabindex="0" { (escape::text(shell)) } } }
                            }
                        }
                    }
                }
            }
        }
}
