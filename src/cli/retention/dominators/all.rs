//! `dominators --all`: every reachable object, written while it is looked up.

use std::io::Write;
use std::ops::Range;

use rayon::prelude::*;

use crate::index::ObjectGraph;
use crate::index::graph::numbers::TreePosition;
use crate::index::model::summary::ClassNumber;
use crate::query::dominators::all::{self, Row};
use crate::report::answer::{Answer, Declared};
use crate::report::column::{Column, Columns};
use crate::report::csv::Writer;
use crate::report::value::Value;

use super::arguments::Args;
use super::reachable;
use crate::cli::Outcome;
use crate::cli::shared::object_columns;
use crate::cli::shared::output;
use crate::cli::shared::session::{Session, Source};
use crate::cli::shared::unreachable::{self, Covers};

/// Chunks that each thread takes before they are written.
const CHUNKS: usize = 4;

/// A row, and its class.
struct Line<'a> {
    row: Row,
    class: Option<&'a str>,
}

/// Opens the dump. Everything is checked first. Rows are checked again as they are read: of CSV a chunk is written only if
/// nothing was wrong with it, of JSON the end tells.
fn open(args: &Args) -> anyhow::Result<Session> {
    let (session, ()) = Session::ask(&args.input, |_, graph| {
        graph.check_tree();
        Ok(())
    })?;
    Ok(session)
}

/// Writes one JSON document.
pub(super) fn json(args: &Args) -> anyhow::Result<Outcome> {
    let session = open(args)?;
    let graph = &session.graph;
    let names = class_names(&session);
    let lines = all::chunks(&graph.tree).into_iter().flat_map(|chunk| lines(graph, &names, chunk));
    let answer = Answer::new(columns(), lines).beside(&reachable::beside(), &graph.tree);
    let rows = session.show("dominators", &args.output, answer)?;
    unreachable::note(&session, &args.input, Covers::Reachable);
    Ok(session.outcome(rows > 0))
}

/// Writes CSV. Several threads write chunks of it side by side.
pub(super) fn csv(args: &Args) -> anyhow::Result<Outcome> {
    let session = open(args)?;
    args.input.with_threads(|| write_csv(&session))??;
    unreachable::note(&session, &args.input, Covers::Reachable);
    Ok(session.outcome(session.graph.tree.reachable() > 0))
}

fn write_csv(session: &Session) -> anyhow::Result<()> {
    let names = class_names(session);
    let columns = columns();
    let mut out = output::stdout();
    Writer::new(&mut out).header(&columns, None)?;
    let write = |chunk: &Range<TreePosition>, text: &mut Vec<u8>| {
        text.clear();
        let mut writer = Writer::new(text);
        for line in lines(&session.graph, &names, chunk.clone()) {
            writer.row(&columns, &line)?;
        }
        anyhow::Ok(())
    };
    // Memory that is new costs more than what is written into it.
    let mut texts = vec![Vec::new(); rayon::current_num_threads() * CHUNKS];
    for some in all::chunks(&session.graph.tree).chunks(texts.len()) {
        some.par_iter().zip(&mut texts).try_for_each(|(chunk, text)| write(chunk, text))?;
        session.check()?;
        for (_, text) in some.iter().zip(&texts) {
            out.write_all(text)?;
        }
    }
    output::finish(out)
}

/// By class number: the name.
fn class_names(session: &Session) -> Vec<&str> {
    let summary = session.heap.summary();
    summary.classes().iter().map(|class| summary.class_name(class)).collect()
}

/// The rows of a chunk.
fn lines<'a>(
    graph: &ObjectGraph,
    names: &'a [&'a str],
    chunk: Range<TreePosition>,
) -> impl Iterator<Item = Line<'a>> + use<'a> {
    let name = |class: ClassNumber| names.get(class.0 as usize).copied();
    all::rows(graph, chunk).into_iter().map(move |row| Line { class: row.class.and_then(name), row })
}

fn columns<'a>() -> Columns<'a, Line<'a>> {
    Columns::new([
        object_columns::object(|line: &Line<'a>| line.row.id),
        object_columns::class(|line: &Line<'a>| line.class),
        object_columns::shallow_bytes(|line: &Line<'a>| line.row.shallow_bytes),
        object_columns::retained_bytes(|line: &Line<'a>| line.row.retained_bytes),
        Column::text(
            "dominator",
            "ID of its immediate dominator, or `root` if only the GC roots dominate it: it is one, or several of them lead to it",
            |line: &Line<'a>| line.row.dominator.map_or_else(|| "root".into(), Value::Id),
        ),
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
