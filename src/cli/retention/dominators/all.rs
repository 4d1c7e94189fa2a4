//! `dominators --all`: every reachable object, written while the rows are computed.

use std::io::{self, Write};

use hprof_index::model::summary::ClassNumber;
use hprof_query::dominators::reachable_rows::{ReachableRow, ReachableRows};
use hprof_query::dominators::tree_nodes;
use hprof_report::chunked::ChunkedAnswer;

use super::arguments::DominatorsArgs;
use super::reachable;
use crate::cli::prelude::*;
use crate::cli::shared::object_columns;
use crate::cli::shared::unreachable::{self, ReachableScope};

/// An object and its class, as a row of the result.
struct DominatorLine<'a> {
    row: ReachableRow,
    class: Option<&'a str>,
}

/// Opens the dump and writes all rows. The index is checked first, and again as it is read: a chunk of rows is written only if
/// no damage was found.
pub(super) fn run(cx: &RunContext, args: &DominatorsArgs) -> anyhow::Result<Outcome> {
    let (session, ()) = Session::ask_graph(cx, &args.input, |dump| {
        dump.graph.check_tree();
        Ok(())
    })?;
    let graph = &session.graph;
    let names = class_names(&session);
    let name = |class: ClassNumber| names.get(class.0 as usize).copied();
    let answer = match args.output.format() {
        Format::Json => ChunkedAnswer::json(
            columns(),
            "dominators",
            &session.header(),
            &reachable::summary_columns(),
            &graph.tree,
        )?,
        // Tables were rejected before.
        Format::Csv | Format::Table => ChunkedAnswer::csv(columns()),
    };
    let chunks = tree_nodes::chunks(&graph.tree);
    let check = || if graph.is_damaged() { Err(io::Error::other("the index is damaged")) } else { Ok(()) };
    let mut out = cx.shared_writer();
    let made = ReachableRows::new(graph);
    let rows = |chunk| {
        made.chunk_rows(chunk).into_iter().map(|row| DominatorLine { class: row.class.and_then(name), row })
    };
    let written = args.input.with_threads(|| answer.write(&mut *out, chunks, rows, check))?;
    session.check()?;
    let rows = written?;
    out.flush()?;
    unreachable::note(cx, &session, &args.input, ReachableScope::Reachable);
    Ok(session.outcome(rows > 0))
}

/// Returns the class names, indexed by class number.
fn class_names(session: &Session) -> Vec<&str> {
    let summary = session.heap.summary();
    summary.classes().iter().map(|class| summary.class_name(class)).collect()
}

fn columns<'a>() -> Columns<'a, DominatorLine<'a>> {
    Columns::new([
        object_columns::object(|line: &DominatorLine<'a>| line.row.id),
        object_columns::class(|line: &DominatorLine<'a>| line.class),
        object_columns::shallow_bytes(|line: &DominatorLine<'a>| line.row.shallow_bytes),
        object_columns::retained_bytes(|line: &DominatorLine<'a>| line.row.retained_bytes),
        Column::new(names::DOMINATOR_OR_ROOT, |line: &DominatorLine<'a>| {
            line.row.dominator.map_or_else(|| "root".into(), Value::Id)
        }),
    ])
}

pub(super) fn row_schema() -> ResultSchema {
    ResultSchema {
        command: "dominators",
        variant: "`--all`",
        about: "A row is a reachable object, in preorder of the dominator tree. Rows are streamed: the document can \
                be larger than the dump.",
        rows: columns().fields(),
        summary: reachable::summary_columns().fields(),
    }
}
