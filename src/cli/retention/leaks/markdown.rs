//! Suspects as Markdown, to be pasted into a ticket.

use std::io::{self, Write};

use crate::query::leaks::Verdict;
use crate::query::leaks::evidence::Path;
use crate::report::escape;
use crate::report::number::percent;

use crate::cli::retention::paths_to_root::objects;
use crate::cli::shared::session::{Session, Source};
use crate::cli::shared::{object_columns, paths};

use super::{Told, facts, screen, words};

/// Characters that mean something in Markdown.
const SPECIAL: &[char] =
    &['\\', '`', '*', '_', '{', '}', '[', ']', '<', '>', '#', '|', '~', '!', '&', '$', '@'];

/// Writes all suspects.
pub(super) fn write(out: &mut dyn Write, session: &Session, told: &Told) -> io::Result<()> {
    let summary = session.heap.summary();
    let dump = session.dump();
    writeln!(out, "# {}", text(&screen::headline(told)))?;
    writeln!(out)?;
    writeln!(
        out,
        "Heap dump {}{}",
        code(&dump.path),
        dump.created.map_or(String::new(), |time| format!(", {time}"))
    )?;
    if told.leaks.suspects.is_empty() {
        writeln!(out)?;
        for holder in &told.leaks.largest {
            writeln!(out, "- {}", text(&crate::cli::shared::holder::text(holder, [false, false])))?;
        }
    }
    for (number, suspect) in (1u32..).zip(&told.leaks.suspects) {
        let kind = if suspect.verdict == Verdict::Holder { "Holder" } else { "Suspect" };
        writeln!(out, "\n## {kind} {number}\n\n{}\n", text(&words::sentence(&told.leaks, suspect)))?;
        for (what, evidence) in screen::facts_of(summary, suspect) {
            writeln!(out, "- {what}: {}", text(&evidence))?;
        }
        for part in &suspect.parts {
            let share = percent(part.retained_bytes, told.leaks.reachable_bytes);
            writeln!(out, "- part: {share} {}", text(&words::part_text(part)))?;
        }
        if let Some(paths) = &suspect.paths {
            writeln!(out, "\nKept alive by {}:\n", text(&screen::path_heading(paths)))?;
            path(out, &paths.path)?;
        }
    }
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

fn path(out: &mut dyn Write, path: &Path) -> io::Result<()> {
    for line in objects::lines_of(&path.steps, path.left_out) {
        let Some(step) = line.step() else {
            writeln!(out, "1. {}", text(line.between()))?;
            continue;
        };
        let held = paths::describe_held(step);
        let arrow = if held.is_empty() { String::new() } else { format!("{}: ", code(&held)) };
        writeln!(out, "1. {arrow}{}", text(&object_columns::Named::describe(paths::named(step))))?;
    }
    Ok(())
}

/// A text of the dump: nothing in it is Markdown, wherever it stands.
fn text(text: &str) -> String {
    let text = words::line(text);
    let text = escape::text(&text);
    // Blanks at the start of a line would make code.
    let text = text.trim_start();
    // A list, by a sign or by a number: `1. `, but not 1.5.
    let number = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text.len() - number.len();
    let is_numbered = ['.', ')'].iter().any(|end| {
        let rest = number.strip_prefix(*end).filter(|_| digits > 0);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    });
    let list = (is_numbered || text.starts_with(['-', '+'])).then_some(digits);
    let mut escaped = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        if SPECIAL.contains(&c) || list == Some(at) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// A text of the dump as code. A backquote would end it.
fn code(text: &str) -> String {
    format!("`{}`", escape::text(&words::line(text)).replace('`', "'"))
}
