//! `dominators`: the biggest objects of the tree, level by level.

use std::ops::Range;

use roaring::RoaringBitmap;

use hprof_index::graph::numbers::TreePosition;
use hprof_index::graph::tree::Tree;
use hprof_query::dominators::preorder::Start;
use hprof_query::histogram::listing::{self, Listing, ListingQuery, ListingRow};
use hprof_query::objects::label::Labels;
use hprof_report::tree::{self, Branch};

use super::arguments::{DominatorsArgs, StartingPoints};
use super::reachable::{self, ReachableTotal};
use crate::cli::prelude::*;
use crate::cli::shared::object;
use crate::cli::shared::object_columns::{self, NamedObject};
use crate::cli::shared::session::LazyRows;
use crate::cli::shared::unreachable::{self, ReachableScope};

pub(super) fn run(cx: &RunContext, args: &DominatorsArgs) -> anyhow::Result<Outcome> {
    let format = args.output.format();
    let (session, found) = Session::ask(cx, &args.input, |dump| {
        let Some(from) = args.from(dump) else { return Ok(None) };
        let question = |start, levels| ListingQuery {
            start,
            levels,
            top: args.top.rows(format),
            min_retained_bytes: args.min_retained,
        };
        let (depth, tree) = (args.depth(), &dump.graph.tree);
        let mut listing = match &from {
            StartingPoints::Roots => listing::list(tree, &question(Start::Roots, depth)),
            StartingPoints::Object(position) if args.chain => {
                listing::chain(tree, *position, args.top.rows(format))
            }
            _ if args.chain => {
                anyhow::bail!(
                    "--chain needs the ID of one object; a class may have several objects, each with its own \
                     dominators"
                )
            }
            StartingPoints::Object(position) => {
                listing::list(tree, &question(Start::Object(*position), depth))
            }
            StartingPoints::Tops(tops) => {
                listing::list_tops(tree, tops, &question(Start::Roots, depth.saturating_sub(1)))
            }
        };
        let labels = Labels::new(dump);
        let places = std::mem::take(&mut listing.positions);
        // Only tables draw the tree.
        let is_drawn = cx.formats(format).contains(&Format::Table);
        let depths = if is_drawn { depths(tree, &from, &places) } else { Vec::new() };
        let rows = LazyRows::new(places, |place| listing.row(dump.graph, &labels, *place));
        Ok(Some((from, listing, depths, rows)))
    })?;
    let Session { heap, graph } = &session;
    let Some((from, listing, depths, rows)) = found else {
        return args.without_start(cx, &session, columns(ReachableTotal::default()));
    };
    let labels = Labels::new(&session.dump()?);
    let last_level = args.depth() - u32::from(!matches!(from, StartingPoints::Object(_)));
    let is_root: RoaringBitmap = graph.roots.objects().iter().map(|object| object.0).collect();
    let (mut branches, children) = (tree::branches(&depths), tree::children(&depths));
    let is_a_root =
        |id| graph.objects.addresses.index_of(id).is_some_and(|object| is_root.contains(object.0));
    let make = |place: &(TreePosition, u32)| listing.row(graph, &labels, *place);
    let lines = rows.into_all(make, |at, row| {
        let branch = branches.get_mut(at).map(std::mem::take).unwrap_or_default();
        let shown = children.get(at).copied().unwrap_or(0);
        let is_opened = depths.get(at).is_some_and(|level| *level < last_level);
        let row = row?;
        Some(DominatorTreeLine {
            class: object::class_name(heap.summary(), row.class),
            branch,
            shown: Some(shown).filter(|shown| is_opened && *shown < row.dominated),
            is_held_by_several: row.depth == 0 && !is_a_root(row.id),
            row,
        })
    });
    let whole = ReachableTotal::new(cx, graph, &args.output);
    let answer = Answer::new(columns(whole), lines).with_summary(&reachable::summary_columns(), &graph.tree);
    let answer = with_totals(answer, args, whole, &from, &listing, graph.tree.reachable().into());
    let rows = session.show(cx, "dominators", &args.output, answer)?;
    if rows == 0 {
        args.note_too_small(cx);
    }
    unreachable::note(cx, &session, &args.input, ReachableScope::Reachable);
    Ok(session.outcome(rows > 0))
}

/// Adds the totals below a table.
fn with_totals<'a>(
    mut answer: Answer<'a, DominatorTreeLine<'a>>,
    args: &DominatorsArgs,
    whole: ReachableTotal,
    from: &StartingPoints,
    listing: &Listing,
    reachable: u64,
) -> Answer<'a, DominatorTreeLine<'a>> {
    if listing.others > 0 && !matches!(from, StartingPoints::Object(_)) {
        answer = answer.total([
            ("retained", group_digits(listing.others_bytes)),
            ("%", whole.percent(listing.others_bytes)),
            ("object", format!("{} others", group_digits(listing.others))),
        ]);
    }
    answer = answer.total([
        ("retained", group_digits(whole.bytes)),
        ("%", whole.percent(whole.bytes)),
        ("objects", group_digits(reachable)),
        ("object", "all reachable objects".to_owned()),
    ]);
    if listing.others > 0 && args.min_retained == 0 {
        let deeper = if args.depth() == 1 { "; --depth 2 shows what they dominate" } else { "" };
        answer = answer.with_section_below(Section::Options(format!("--top 0 shows all{deeper}")));
    }
    answer
}

/// Returns the depth of each row, relative to the starting row of its subtree.
fn depths(tree: &Tree, from: &StartingPoints, places: &[(TreePosition, u32)]) -> Vec<u32> {
    let is_of_several = matches!(from, StartingPoints::Tops(_));
    let mut top: Option<(Range<TreePosition>, u32)> = None;
    let one = |(position, depth): &(TreePosition, u32)| match &top {
        Some((positions, first)) if !is_of_several || positions.contains(position) => {
            depth.saturating_sub(*first)
        }
        _ => {
            top = Some((*position..tree.end(*position), *depth));
            0
        }
    };
    places.iter().map(one).collect()
}

/// A row with its class, and data for drawing the tree.
struct DominatorTreeLine<'a> {
    row: ListingRow,
    class: Option<&'a str>,
    /// Branch lines drawn before the object.
    branch: Branch,
    /// Number of dominated objects that are shown, if some are not shown.
    shown: Option<u64>,
    /// `true` if no object dominates this one although it is not a root: it is reachable from several roots.
    is_held_by_several: bool,
}

/// Suffix for objects that no object dominates and that are not roots.
pub(super) const HELD_BY_SEVERAL: &str = " (no single owner)";

fn named_object<'r>(line: &'r DominatorTreeLine<'_>) -> NamedObject<'r> {
    NamedObject { id: line.row.id, class: line.class, label: line.row.label.as_deref() }
}

fn columns<'a>(whole: ReachableTotal) -> Columns<'a, DominatorTreeLine<'a>> {
    let [object, class, label] = object_columns::identity_columns(named_object);
    let [percent, bar] = whole.columns(|line: &DominatorTreeLine<'a>| line.row.retained_bytes);
    let shallow = object_columns::shallow_bytes(|line: &DominatorTreeLine<'a>| line.row.shallow_bytes);
    let retained = object_columns::retained_bytes(|line: &DominatorTreeLine<'a>| line.row.retained_bytes);
    let columns = Columns::new([
        object,
        class,
        label,
        shallow,
        retained,
        Column::new(names::RETAINED_OBJECTS, |line: &DominatorTreeLine<'a>| line.row.retained_objects.into()),
        Column::new(names::DOMINATED, |line: &DominatorTreeLine<'a>| line.row.dominated.into()),
        Column::new(names::DEPTH, |line: &DominatorTreeLine<'a>| line.row.depth.into()),
    ]);
    columns.table([
        TableColumn::new(names::RETAINED_BYTES, "retained"),
        percent,
        bar,
        TableColumn::new(names::RETAINED_OBJECTS, "objects").fit(Fit::Secondary { priority: 2 }),
        TableColumn::new(names::SHALLOW_BYTES, "shallow").fit(Fit::Secondary { priority: 1 }),
        TableColumn::new(names::OBJECT, "id"),
        object_columns::description(|line: &DominatorTreeLine<'a>| {
            let of = |shown: u64| format!(" ({shown} of {})", group_digits(line.row.dominated));
            let some = line.shown.map(of).unwrap_or_default();
            let several = if line.is_held_by_several { HELD_BY_SEVERAL } else { "" };
            format!("{}{several}{some}", named_object(line).describe_without_id())
        })
        .tree(|line: &DominatorTreeLine<'a>| &line.branch),
    ])
}

pub(super) fn row_schema() -> ResultSchema {
    ResultSchema {
        command: "dominators",
        variant: "",
        about: "A row is a reachable object, with what would be freed with it. Rows are in preorder of the dominator tree, \
                siblings by `retained_bytes`, largest first; `depth` is the level. With `--of OBJECT` the first row is \
                that object; an unreachable object has no row, since it retains nothing. With `--of CLASS` the objects of the \
                class that no other of them dominates start the tree.",
        rows: columns(ReachableTotal::default()).fields(),
        summary: reachable::summary_columns().fields(),
    }
}
