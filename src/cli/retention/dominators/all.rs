//! `dominators --all`: every reachable object, written while it is looked up.

use std::io::Write;
use std::ops::Range;

use rayon::prelude::*;
use serde::Serialize;

use crate::index::model::summary::Summary;
use crate::index::{Heap, ObjectGraph};
use crate::query::dominators::all::{self, Row};
use crate::report::digits::{push_decimal, push_hex};
use crate::report::stream::Streamed;
use crate::report::{Format, csv, json::object_id};

use crate::cli::Outcome;
use crate::cli::retention::dominators;
use crate::cli::shared::args::Input;
use crate::cli::shared::object;
use crate::cli::shared::output;

/// Parts that each thread takes before they are written.
const PARTS: usize = 4;

pub(crate) fn run(input: &Input, format: Format) -> anyhow::Result<Outcome> {
    // Everything is checked first. Rows are checked again as they are read: of CSV a part is written only if nothing was
    // wrong with it, of JSON the end tells.
    let (heap, graph, ()) = input.with_graph(|_, graph| {
        graph.check_tree();
        Ok(())
    })?;
    input.with_threads(|| match format {
        Format::Csv => csv(&heap, &graph),
        Format::Json | Format::Table => json(&heap, &graph),
    })??;
    Ok(match (heap.summary().is_damaged(), graph.tree.reachable()) {
        (true, _) => Outcome::Damaged,
        (false, 0) => Outcome::No,
        (false, _) => Outcome::Fine,
    })
}

/// Ends with an error if the index turned out to be damaged while the answer was written.
pub(crate) fn ensure_right(graph: &ObjectGraph) -> anyhow::Result<()> {
    anyhow::ensure!(
        !graph.is_damaged(),
        "the index is damaged, so this answer is wrong; `hprof-cli index` builds it again"
    );
    Ok(())
}

fn csv(heap: &Heap, graph: &ObjectGraph) -> anyhow::Result<()> {
    let classes = class_cells(heap.summary());
    let mut out = output::stdout();
    out.write_all(b"object,class,shallow_bytes,retained_bytes,dominator\n")?;
    let parts = all::parts(&graph.tree);
    let text = |part: &Range<u32>| {
        let rows = all::rows(graph, part.clone());
        let mut text = Vec::with_capacity(rows.len() * 80);
        for row in rows {
            line(&mut text, &row, &classes);
        }
        text
    };
    for some in parts.chunks(rayon::current_num_threads() * PARTS) {
        let texts: Vec<Vec<u8>> = some.par_iter().map(text).collect();
        ensure_right(graph)?;
        for text in texts {
            out.write_all(&text)?;
        }
    }
    output::finish(out)
}

/// By class number: the name as a cell of CSV, ready to be written.
fn class_cells(summary: &Summary) -> Vec<Vec<u8>> {
    summary.classes().iter().map(|class| csv::cell(summary.class_name(class))).collect()
}

fn line(out: &mut Vec<u8>, row: &Row, classes: &[Vec<u8>]) {
    push_id(out, row.id);
    out.push(b',');
    if let Some(class) = row.class.and_then(|class| classes.get(class.0 as usize)) {
        out.extend_from_slice(class);
    }
    out.push(b',');
    push_decimal(out, row.shallow_bytes);
    out.push(b',');
    push_decimal(out, row.retained_bytes);
    out.push(b',');
    match row.dominator {
        Some(id) => push_id(out, id),
        None => out.extend_from_slice(b"root"),
    }
    out.push(b'\n');
}

/// `0x7c00012a8`, as [`object_id`] writes it.
fn push_id(out: &mut Vec<u8>, id: u64) {
    out.extend_from_slice(b"0x");
    push_hex(out, id);
}

#[derive(Serialize)]
struct RowOut<'a> {
    object: String,
    class: Option<&'a str>,
    shallow_bytes: u64,
    retained_bytes: u64,
    dominator: String,
}

fn json(heap: &Heap, graph: &ObjectGraph) -> anyhow::Result<()> {
    let mut out = output::stdout();
    let rows = all::parts(&graph.tree).into_iter().flat_map(|part| all::rows(graph, part));
    let rows = rows.map(|row| RowOut {
        object: object_id(row.id),
        class: object::class_name(heap.summary(), row.class),
        shallow_bytes: row.shallow_bytes,
        retained_bytes: row.retained_bytes,
        dominator: row.dominator.map_or_else(|| "root".to_owned(), object_id),
    });
    output::json(&mut out, "dominators", heap, Streamed::new(rows), dominators::reachable(graph))?;
    ensure_right(graph)?;
    output::finish(out)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::index::model::summary::ClassNumber;

    #[test]
    fn lines_are_as_other_renderers_write_them() {
        let classes = [b"a.B".to_vec()];
        for id in [0, 1, 0xf, 0x10, 0x7_c000_12a8, u64::MAX] {
            let row = Row { id, class: None, shallow_bytes: 0, retained_bytes: id, dominator: None };
            let mut out = Vec::new();
            line(&mut out, &row, &classes);
            assert_eq!(String::from_utf8(out).unwrap(), format!("{},,0,{id},root\n", object_id(id)));
        }
        let class = Some(ClassNumber(0));
        let row = Row { id: 8, class, shallow_bytes: 16, retained_bytes: 24, dominator: Some(16) };
        let mut out = Vec::new();
        line(&mut out, &row, &classes);
        assert_eq!(out, b"0x8,a.B,16,24,0x10\n");
    }
}
