//! Waste as text: what a person sees.

use hprof_query::waste::{GroupBy, Waste, WasteKind};
use hprof_report::answer::{Answer, NoRows, Section};
use hprof_report::number::{grouped, human_bytes, percent};

use crate::cli::shared::args::{Input, Output};
use crate::cli::shared::commands::{Commands, Step};
use crate::cli::shared::keys::word_of;
use crate::cli::shared::session::{Session, Source};

use super::{WORDS, columns};

/// Commands that are offered.
const STEPS: usize = 2;
/// Parts of a kind that are shown.
const PARTS: usize = 10;

/// The answer in one line.
pub(super) fn headline(waste: &Waste) -> String {
    let Waste { wasted_bytes, all_bytes, .. } = waste;
    if waste.rows.is_empty() {
        return format!("Nothing is wasted of {}", human_bytes(*all_bytes));
    }
    format!(
        "{} of {} are wasted ({}), no byte counted twice",
        human_bytes(*wasted_bytes),
        human_bytes(*all_bytes),
        percent(*wasted_bytes, *all_bytes)
    )
}

/// What to ask next: the kinds that add most.
pub(super) fn next(input: &Input, waste: &Waste) -> Vec<Step> {
    let commands = Commands::of(input);
    let mut kinds: Vec<(u64, &'static WasteKind)> =
        waste.rows.iter().map(|row| (row.added_bytes, row.kind)).collect();
    kinds.retain(|(_, kind)| kind.is_of_reachable());
    kinds.sort_by_key(|(bytes, kind)| (std::cmp::Reverse(*bytes), *kind));
    let step = |(_, kind): (u64, &'static WasteKind)| {
        commands.step(
            "waste",
            ["--kind".to_owned(), word_of(&WORDS, kind).to_owned()],
            "the fields that hold it",
        )
    };
    kinds.into_iter().take(STEPS).map(step).collect()
}

/// One kind: its fields, what it consists of, examples.
pub(super) fn one_kind(
    session: &Session,
    output: &Output,
    waste: &Waste,
    by: GroupBy,
    top: Option<usize>,
) -> anyhow::Result<()> {
    let Some(row) = waste.rows.first() else {
        let none: [&hprof_query::waste::FieldSum; 0] = [];
        let answer = Answer::new(columns::of_fields(by, 0), none);
        session.show(
            "waste",
            output,
            answer.without_rows(NoRows::Line("Nothing is wasted like that".into())),
        )?;
        return Ok(());
    };
    let headline = format!(
        "{}: {} in {}, {} of {}",
        row.kind.name,
        human_bytes(row.wasted_bytes),
        grouped(row.count),
        percent(row.wasted_bytes, waste.all_bytes),
        human_bytes(waste.all_bytes)
    );
    let fields = row.fields.iter().take(top.unwrap_or(usize::MAX));
    let mut answer = Answer::new(columns::of_fields(by, row.wasted_bytes), fields)
        .matching(row.fields.len() as u64, "rows")
        .above(Section::Line(headline))
        .without_rows(NoRows::Nothing);
    if row.parts.len() > 1 || row.parts.iter().any(|part| part.ratio.is_some()) {
        answer = answer.under(Section::Line(String::new()));
        answer = answer.under(Section::table(&columns::parts(), row.parts.iter().take(PARTS).cloned()));
    }
    if !row.examples.is_empty() {
        answer = answer.under(Section::Line(String::new()));
        answer = answer.under(Section::table(&columns::examples(), row.examples.iter().cloned()));
    }
    session.show("waste", output, answer)?;
    Ok(())
}
