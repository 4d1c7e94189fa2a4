//! Reports as Markdown, to paste into a ticket.

use serde_json::Value as Json;

use super::About;
use super::conclusions::Conclusions;
use super::sections::Section;
use crate::cli::pages::ask::{CommandQuery, Failure};
use crate::cli::pages::document::JsonLookup;
use crate::cli::pages::overview;
use hprof_query::dictionary::names;
use hprof_report::markdown::{code, grid, table_cell, text};
use hprof_report::number::human_bytes;

/// Maximum number of rows of a table.
const ROWS: usize = 20;

pub(super) fn report(about: &About, conclusions: &Conclusions<'_>, sections: &[Section]) -> String {
    let mut out = format!("# Heap report of {}\n\n", code(&about.site.name(1)));
    match conclusions.headline() {
        Ok(Some(headline)) => out.push_str(&format!("**{}**\n\n", text(&headline))),
        Ok(None) => {}
        Err(failure) => {
            out.push_str(&format!("**Cannot determine the headline:** {}\n\n", text(&failure.text)))
        }
    }
    out.push_str(if about.cx.hides_values {
        "Without values: no texts, map keys, names of threads and class loaders, properties or arguments; sizes, counts, \
         limits and states are included.\n"
    } else {
        "It contains texts of the heap, which may be secret; `--no-values` omits them.\n"
    });
    for line in &about.damage {
        out.push_str(&format!("\n**Damaged:** {}\n", text(line)));
    }
    for section in sections {
        // Tickets cannot show pictures.
        if matches!(section, Section::Treemap | Section::Flamegraph) {
            continue;
        }
        out.push_str(&format!("\n## {}\n", section.title()));
        for ask in section.queries(about) {
            answer(&mut out, conclusions, *section, &ask);
            out.push_str(&format!("\n{}\n", code(&ask.shell())));
        }
    }
    out
}

fn answer(out: &mut String, conclusions: &Conclusions<'_>, section: Section, ask: &CommandQuery<'_>) {
    if section == Section::Suspects {
        match ask.format("markdown") {
            // The heading of the command's output is replaced by one of this report.
            Ok((markdown, _)) => {
                let markdown = String::from_utf8_lossy(&markdown);
                let lines = markdown
                    .lines()
                    .map(|line| if line.starts_with('#') { format!("##{line}") } else { line.to_owned() });
                out.push('\n');
                lines.for_each(|line| out.push_str(&(line + "\n")));
            }
            Err(failure) => write_failure(out, &failure),
        }
        return;
    }
    if section == Section::Overview {
        match conclusions.overview().as_ref().map(|document| (document, document.row())) {
            Ok((document, Some(row))) => return overview(out, row, document),
            Ok(_) => {}
            Err(failure) => return write_failure(out, failure),
        }
    }
    match ask.grids() {
        Ok(answered) => {
            answered.grids.iter().for_each(|each| out.push_str(&grid(each, ROWS)));
            for note in answered.notes.iter().filter(|note| note.kind == "note") {
                out.push_str(&format!("\n{}\n", text(&note.text)));
            }
        }
        Err(failure) => write_failure(out, &failure),
    }
}

/// Writes the reason why a section is missing.
fn write_failure(out: &mut String, failure: &Failure) {
    out.push_str(&format!("\n{}\n", text(&failure.text)));
}

/// Writes the overview: facts about the dump, and the places that explain the heap.
fn overview(out: &mut String, row: &Json, document: &Json) {
    out.push_str(&format!("\n{}\n\n", text(&overview::describe_dump(row, document))));
    for (value, name) in overview::facts(row) {
        out.push_str(&format!("- {name}: {}\n", text(&value)));
    }
    let oom = row.value(names::OUT_OF_MEMORY);
    if let Some(oom) = oom {
        out.push_str(&format!("- thread {} ran out of memory\n", code(oom.text(names::NAME))));
    }
    if let Some(heap) = overview::heap_text(row) {
        out.push_str(&format!("- heap over time: {}\n", text(heap)));
    }
    out.push_str("\n| retained | what |\n| ---: | --- |\n");
    for each in overview::top_retainers(row) {
        let bytes = human_bytes(each.number(names::RETAINED_BYTES).unwrap_or_default());
        out.push_str(&format!("| {bytes} | {} |\n", table_cell(each.text(names::TEXT))));
    }
}
