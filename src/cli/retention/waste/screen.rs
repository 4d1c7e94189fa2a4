//! Text for people about wasted memory.

use hprof_query::waste::{FieldGroupBy, Waste, WasteKind};

use crate::cli::prelude::*;
use crate::cli::shared::commands::{Commands, NextCommand};
use crate::cli::shared::keys::word_of;

use super::{WORDS, columns};

/// Maximum number of suggested commands.
const STEPS: usize = 2;
/// Maximum number of parts shown for a kind of waste.
const PARTS: usize = 10;

/// Describes the wasted memory in one line.
pub(super) fn headline(waste: &Waste) -> String {
    let Waste { wasted_bytes, all_bytes, .. } = waste;
    if waste.rows.is_empty() {
        return format!("No wasted memory in {}", human_bytes(*all_bytes));
    }
    format!(
        "{} of {} are wasted ({}); no byte is counted twice",
        human_bytes(*wasted_bytes),
        human_bytes(*all_bytes),
        percent(*wasted_bytes, *all_bytes)
    )
}

/// Returns the suggested commands, about the kinds with the most additional waste.
pub(super) fn next(input: &Input, waste: &Waste) -> Vec<NextCommand> {
    let commands = Commands::new(input);
    let mut kinds: Vec<(u64, &'static WasteKind)> =
        waste.rows.iter().map(|row| (row.added_bytes, row.kind)).collect();
    kinds.retain(|(_, kind)| kind.is_of_reachable());
    kinds.sort_by_key(|(bytes, kind)| (std::cmp::Reverse(*bytes), *kind));
    let step = |(_, kind): (u64, &'static WasteKind)| {
        commands.step(
            "waste",
            ["--kind".to_owned(), word_of(&WORDS, kind).to_owned()],
            "the fields that reference it",
        )
    };
    kinds.into_iter().take(STEPS).map(step).collect()
}

/// Renders one kind of waste: its fields, its parts, examples.
pub(super) fn one_kind(
    cx: &RunContext,
    session: &Session,
    output: &Output,
    waste: &Waste,
    by: FieldGroupBy,
    top: Option<usize>,
) -> anyhow::Result<()> {
    let Some(row) = waste.rows.first() else {
        let none: [&hprof_query::waste::FieldSum; 0] = [];
        let answer = Answer::new(columns::of_fields(by, 0), none);
        let answer = answer.if_empty(NoRows::Line("No wasted memory of this kind".into()));
        session.show_in(cx, "waste", output, Format::Table, answer)?;
        return Ok(());
    };
    let headline = format!(
        "{}: {} in {}, {} of {}",
        row.kind.name,
        human_bytes(row.wasted_bytes),
        group_digits(row.count),
        percent(row.wasted_bytes, waste.all_bytes),
        human_bytes(waste.all_bytes)
    );
    let fields = row.fields.iter().take(top.unwrap_or(usize::MAX));
    let mut answer = Answer::new(columns::of_fields(by, row.wasted_bytes), fields)
        .matching(row.fields.len() as u64, "rows")
        .with_section_above(Section::Line(headline))
        .if_empty(NoRows::Nothing);
    if row.parts.len() > 1 || row.parts.iter().any(|part| part.ratio.is_some()) {
        answer = answer.with_section_below(Section::Line(String::new()));
        answer = answer
            .with_section_below(Section::table(&columns::parts(), row.parts.iter().take(PARTS).cloned()));
    }
    if !row.examples.is_empty() {
        answer = answer.with_section_below(Section::Line(String::new()));
        answer =
            answer.with_section_below(Section::table(&columns::examples(), row.examples.iter().cloned()));
    }
    session.show_in(cx, "waste", output, Format::Table, answer)?;
    Ok(())
}
