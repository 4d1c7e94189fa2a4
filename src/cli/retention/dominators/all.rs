//! `dominators --all`: every reachable object, written while it is looked up.

use std::io::{self, Write};

use hprof_index::model::summary::ClassNumber;
use hprof_query::dictionary::names;
use hprof_query::dominators::all::{Row, Rows};
use hprof_query::dominators::nodes;
use hprof_report::Format;
use hprof_report::answer::Declared;
use hprof_report::chunked::Chunked;
use hprof_report::column::{Column, Columns};
use hprof_report::value::Value;

use super::arguments::Args;
use super::reachable;
use crate::cli::Outcome;
use crate::cli::shared::context::RunContext;
use crate::cli::shared::object_columns;
use crate::cli::shared::session::{Session, Source};
use crate::cli::shared::unreachable::{self, Covers};

/// A row, and its class.
struct Line<'a> {
    row: Row,
    class: Option<&'a str>,
}

/// Opens the dump. Everything is checked first, and again as it is read: a chunk of rows is written only if nothing was
/// wrong with it.
pub(super) fn run(cx: &RunContext, args: &Args) -> anyhow::Result<Outcome> {
    let (session, ()) = Session::ask(cx, &args.input, |_, graph| {
        graph.check_tree();
        Ok(())
    })?;
    let graph = &session.graph;
    let names = class_names(&session);
    let name = |class: ClassNumber| names.get(class.0 as usize).copied();
    let answer = match args.output.format() {
        Format::Json => {
            Chunked::json(columns(), "dominators", &session.dump(), &reachable::beside(), &graph.tree)?
        }
        // No table: asked for before.
        Format::Csv | Format::Table => Chunked::csv(columns()),
    };
    let chunks = nodes::chunks(&graph.tree);
    let check = || if graph.is_damaged() { Err(io::Error::other("the index is damaged")) } else { Ok(()) };
    let mut out = io::stdout();
    let made = Rows::new(graph);
    let rows = |chunk| made.of(chunk).into_iter().map(|row| Line { class: row.class.and_then(name), row });
    let written = args.input.with_threads(|| answer.write(&mut out, chunks, rows, check))?;
    session.check()?;
    let rows = written?;
    out.flush()?;
    unreachable::note(cx, &session, &args.input, Covers::Reachable);
    Ok(session.outcome(rows > 0))
}

/// By class number: the name.
fn class_names(session: &Session) -> Vec<&str> {
    let summary = session.heap.summary();
    summary.classes().iter().map(|class| summary.class_name(class)).collect()
}

fn columns<'a>() -> Columns<'a, Line<'a>> {
    Columns::new([
        object_columns::object(|line: &Line<'a>| line.row.id),
        object_columns::class(|line: &Line<'a>| line.class),
        object_columns::shallow_bytes(|line: &Line<'a>| line.row.shallow_bytes),
        object_columns::retained_bytes(|line: &Line<'a>| line.row.retained_bytes),
        Column::of(names::DOMINATOR_OR_ROOT, |line: &Line<'a>| {
            line.row.dominator.map_or_else(|| "root".into(), Value::Id)
        }),
    ])
}

pub(super) fn declared() -> Declared {
    Declared {
        command: "dominators",
        variant: "`--all`",
        about: "A row is a reachable object, in preorder of the dominator tree. Rows are written while they are read: the \
                document can be larger than the dump.",
        rows: columns().fields(),
        beside: reachable::beside().fields(),
    }
}
