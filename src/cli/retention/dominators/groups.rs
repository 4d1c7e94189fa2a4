//! `dominators --group-by`: the objects of one level, grouped.

use hprof_query::dictionary::Name;
use hprof_query::histogram::HistogramGroupBy;
use hprof_query::histogram::listing::{self, DominatedGroupRow};

use super::arguments::DominatorsArgs;
use super::reachable::{self, ReachableTotal};
use crate::cli::class::histo::{loader_label, title};
use crate::cli::prelude::*;
use crate::cli::shared::unreachable::{self, ReachableScope};

pub(super) fn run(
    cx: &RunContext,
    args: &DominatorsArgs,
    group_by: HistogramGroupBy,
) -> anyhow::Result<Outcome> {
    let (session, (has_start, rows)) = Session::ask_graph(cx, &args.input, |dump| {
        let Some(from) = args.from(dump) else { return Ok((false, Vec::new())) };
        Ok((true, listing::group(dump, &from.starts(), group_by)))
    })?;
    let whole = ReachableTotal::new(cx, &session.graph, &args.output);
    let sum = |of: fn(&DominatedGroupRow) -> u64| rows.iter().map(of).fold(0, u64::saturating_add);
    let retained = sum(retained_bytes);
    let shown = rows.iter().take(args.top.rows(args.output.format()).unwrap_or(usize::MAX));
    let answer = Answer::new(columns(group_by, whole), shown.cloned())
        .with_summary(&reachable::summary_columns(), &session.graph.tree)
        .matching(rows.len() as u64, "rows")
        .total([
            ("retained", group_digits(retained)),
            ("%", whole.percent(retained)),
            ("", whole.bar(retained)),
            ("objects", group_digits(sum(|row| row.group.instances))),
            ("shallow", group_digits(sum(|row| row.group.shallow_bytes))),
            (title(group_by), "total".to_owned()),
        ]);
    let rows = session.show(cx, "dominators", &args.output, answer)?;
    if !has_start {
        args.note_no_start(cx, &session.dump_graph());
    }
    unreachable::note(cx, &session, &args.input, ReachableScope::Reachable);
    Ok(session.outcome(rows > 0))
}

fn retained_bytes(row: &DominatedGroupRow) -> u64 {
    row.group.retained_bytes.unwrap_or(0)
}

/// Returns the name of a group's class or package.
fn name(row: &DominatedGroupRow) -> Option<&str> {
    Some(&*row.group.name).filter(|name| row.group.classes > 0 || !name.is_empty())
}

fn columns(group_by: HistogramGroupBy, whole: ReachableTotal) -> Columns<'static, DominatedGroupRow> {
    let class = "the dump does not contain the class of the objects";
    let named = |of: Name| Column::new(of, |row: &DominatedGroupRow| name(row).into()).or_null(class);
    let loaders = || {
        Column::new(names::LOADER, |row: &DominatedGroupRow| loader_label(&row.group).into())
            .or_null("as in `histo`")
    };
    let (mut columns, key) = match group_by {
        HistogramGroupBy::Class => (vec![named(names::CLASS), loaders()], names::CLASS),
        HistogramGroupBy::Package => (vec![named(names::PACKAGE)], names::PACKAGE),
        HistogramGroupBy::Loader => (vec![loaders()], names::LOADER),
    };
    columns.extend([
        Column::new(names::OBJECTS, |row: &DominatedGroupRow| row.group.instances.into()),
        Column::new(names::SHALLOW_BYTES, |row: &DominatedGroupRow| row.group.shallow_bytes.into()),
        Column::new(names::RETAINED_BYTES, |row: &DominatedGroupRow| retained_bytes(row).into()),
        Column::new(names::RETAINED_OBJECTS, |row: &DominatedGroupRow| row.retained_objects.into()),
    ]);
    let [share, bar] = whole.columns(retained_bytes);
    Columns::new(columns).table([
        TableColumn::new(names::RETAINED_BYTES, "retained"),
        share,
        bar,
        TableColumn::new(names::OBJECTS, "objects"),
        TableColumn::new(names::SHALLOW_BYTES, "shallow").fit(Fit::Secondary { priority: 1 }),
        TableColumn::new(key, title(group_by)).fit(Fit::Shorten { priority: 0 }).cell(
            move |row: &DominatedGroupRow| {
                let name = match group_by {
                    HistogramGroupBy::Class | HistogramGroupBy::Package => name(row).map(str::to_owned),
                    HistogramGroupBy::Loader => loader_label(&row.group),
                };
                name.unwrap_or_else(|| "<unknown>".to_owned())
            },
        ),
    ])
}

pub(super) fn row_schema() -> [ResultSchema; 3] {
    let variants = [
        (
            "`--group-by class`",
            HistogramGroupBy::Class,
            "A row is a class and its objects of one level: those that only the roots dominate, or with `--of` those that \
             the object, or the objects of the class, dominate immediately. Most retained bytes come first. None of these objects dominates another, so \
             all figures add up.",
        ),
        (
            "`--group-by package`",
            HistogramGroupBy::Package,
            "A row is a package and its objects of that level. A class object belongs to the package of the class that it \
             represents.",
        ),
        (
            "`--group-by loader`",
            HistogramGroupBy::Loader,
            "A row is a class loader and the objects of that level of its classes; the class objects of these classes and the \
             loader itself are among them.",
        ),
    ];
    variants.map(|(variant, group_by, about)| ResultSchema {
        command: "dominators",
        variant,
        about,
        rows: columns(group_by, ReachableTotal::default()).fields(),
        summary: reachable::summary_columns().fields(),
    })
}
