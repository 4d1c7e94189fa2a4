//! Suspects as Markdown, to paste into a ticket.

use std::io::{self, Write};

use hprof_index::model::summary::Summary;
use hprof_query::leaks::Cause;
use hprof_query::leaks::evidence::Path;
use hprof_report::escape;
use hprof_report::markdown::{self, code};
use hprof_report::number::percent;

use crate::cli::retention::paths_to_root::objects;
use crate::cli::shared::session::{AnswerSource, Session};
use crate::cli::shared::{object_columns, paths};

use super::{LeaksReport, facts, parts, screen, words};

/// Writes all suspects.
pub(super) fn write(out: &mut dyn Write, session: &Session, told: &LeaksReport) -> io::Result<()> {
    let summary = session.heap.summary();
    let dump = session.header();
    writeln!(out, "# {}", text(&words::headline(&told.leaks)))?;
    writeln!(out)?;
    writeln!(
        out,
        "Heap dump {}{}",
        code(&dump.path),
        dump.created.map_or(String::new(), |time| format!(", {time}"))
    )?;
    if let Some(recording) = &told.recording {
        writeln!(out, "\nRecording {}", code(recording.path()))?;
        recording.warnings().try_for_each(|warning| writeln!(out, "\nWarning: {}", text(warning)))?;
    }
    if told.leaks.suspects.is_empty() {
        writeln!(out)?;
        for holder in &told.leaks.largest {
            writeln!(out, "- {}", text(&crate::cli::shared::holder::text(holder, [false, false])))?;
        }
    }
    for (number, one) in told.leaks.conclusions.iter().enumerate() {
        match &one.cause {
            Cause::Suspect(at) => row(out, summary, told, *at)?,
            Cause::Loaders { suspects, .. } => {
                let title = words::suspect_title(number);
                writeln!(out, "\n## {title}\n\n{}", text(&words::conclusion(&told.leaks, one)))?;
                if let Some(parts) = screen::parts_of_it(&told.leaks, suspects) {
                    writeln!(out, "\n{parts}.")?;
                }
            }
        }
    }
    screen::other_suspects(&told.leaks).try_for_each(|(at, _)| row(out, summary, told, at))?;
    let lines = facts::lines(told);
    if !lines.is_empty() {
        writeln!(out, "\n## Also\n")?;
        lines.iter().try_for_each(|fact| writeln!(out, "- {}", text(fact)))?;
    }
    if let Some(thread) = &told.facts.out_of_memory {
        let name = thread.name.clone().unwrap_or_else(|| format!("{:#x}", thread.object));
        writeln!(out, "\n## Thread {} ran out of memory\n", text(&escape::quoted(&name)))?;
        for frame in words::own_frames(&thread.frames) {
            writeln!(out, "    {}", escape::text(&frame.frame.to_string()))?;
        }
    }
    Ok(())
}

/// Writes a suspect with its evidence.
fn row(out: &mut dyn Write, summary: &Summary, told: &LeaksReport, at: usize) -> io::Result<()> {
    let leaks = &told.leaks;
    let Some(suspect) = leaks.suspects.get(at) else { return Ok(()) };
    writeln!(out, "\n## {}\n\n{}\n", words::title(leaks, at), text(&words::sentence(leaks, suspect)))?;
    for (what, evidence) in screen::facts_of(summary, leaks, suspect) {
        writeln!(out, "- {what}: {}", text(&evidence))?;
    }
    for part in &suspect.parts {
        let share = percent(part.retained_bytes, leaks.reachable_bytes);
        writeln!(out, "- part: {share} {}", text(&parts::part_text(part)))?;
    }
    if let Some(paths) = &suspect.paths {
        writeln!(out, "\nKept alive by {}:\n", text(&screen::path_heading(paths)))?;
        path(out, &paths.path)?;
    }
    Ok(())
}

fn path(out: &mut dyn Write, path: &Path) -> io::Result<()> {
    for line in objects::lines_of(&path.steps, path.left_out) {
        let Some(step) = line.step() else {
            writeln!(out, "1. {}", text(line.between()))?;
            continue;
        };
        let held = paths::describe_held(step);
        let arrow = if held.is_empty() { String::new() } else { format!("{}: ", code(&held)) };
        writeln!(
            out,
            "1. {arrow}{}",
            text(&object_columns::NamedObject::describe(paths::named_object(step)))
        )?;
    }
    Ok(())
}

/// Escapes text from the dump for Markdown and shortens it to a line.
fn text(text: &str) -> String {
    markdown::text(&words::line(text))
}
