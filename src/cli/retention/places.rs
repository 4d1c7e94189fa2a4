//! `places`: the places in the program (paths of fields) that retain the heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hprof_index::Dump;
use hprof_query::compare::places::{AlignedPlaces, DumpPlaces, PlaceEntry};
use hprof_query::containers::{Container, ContainerRow, Containers};
use hprof_query::frameworks::{FrameworkDescription, Frameworks, KnownFrameworks};
use hprof_query::objects::condition::size;
use hprof_query::objects::selection::Selection;
use hprof_report::fit;
use hprof_report::tree::{self, Branch};

use crate::cli::prelude::*;
use crate::cli::shared::frameworks::{self, FrameworksArgs};
use crate::cli::shared::limit::DEFAULT_TOP_OBJECTS;
use crate::cli::shared::unreachable::{self, ReachableScope};
use crate::cli::shared::{containers, facts};

use super::dominators::arguments::{self, StartingPoints};
use super::dominators::reachable::{self, ReachableTotal};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli places heap.hprof
  hprof-cli places heap.hprof --depth 2 --min 5%
  hprof-cli places heap.hprof --of com.acme.Server
  hprof-cli places heap.hprof --min 0 --format json | jq '[.rows[].own_bytes] | add'";

/// Condition under which a row has no facts.
const NO_RULE: &str = "no rule describes the object, or there are several objects";
/// Maximum number of characters of a place: labels may contain names of 64 KiB.
const LONGEST: usize = 1 << 12;
/// Maximum number of places whose objects are described by rules.
const MAX_DESCRIBED: usize = 1 << 10;

/// Show which places in the program hold the heap
///
/// A place is a chain of fields and classes: `static SESSIONS of com.acme.Server -> HashMap -> Session`. Objects held
/// by the same fields of objects at one place share a place; the internal objects of a collection belong to the place
/// of the collection. The tree of places is the dominator tree, merged by these names. They mean the same in every dump
/// of a program, so that `diff --group-by place` can compare them.
#[derive(Debug, clap::Args)]
pub(crate) struct PlacesArgs {
    #[command(flatten)]
    input: Input,

    #[command(flatten)]
    frameworks: FrameworksArgs,

    /// Start at this object, or at the topmost instances of this class
    #[arg(long, value_name = "OBJECT|CLASS", help_heading = "Filter")]
    of: Option<Selection>,

    /// Only places that retain at least this size, or this percentage of the reachable heap
    #[arg(long, value_name = "SIZE|PERCENT", default_value = "1%", value_parser = parse_minimum, help_heading = "Filter")]
    min: Least,

    /// Maximum depth; 0 for all
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, help_heading = "Output")]
    depth: u64,

    #[command(flatten)]
    top: Top<DEFAULT_TOP_OBJECTS>,

    #[command(flatten)]
    output: Output,
}

/// Minimum retained size of a row: in bytes, or in percent of the heap.
#[derive(Debug, Clone, Copy)]
enum Least {
    Bytes(u64),
    Percent(f64),
}

impl Least {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    fn bytes(self, of: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            // The cast saturates; an error of one byte is harmless.
            Self::Percent(percent) => (of as f64 / 100.0 * percent).ceil() as u64,
        }
    }
}

fn parse_minimum(text: &str) -> Result<Least, String> {
    match text.strip_suffix('%') {
        None => size::parse(text)
            .map(Least::Bytes)
            .map_err(|error| format!("{error}, or a percentage such as 1%")),
        Some(number) => match number.trim().parse() {
            Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(Least::Percent(percent)),
            _ => Err("percentages are from 0% to 100%".to_owned()),
        },
    }
}

pub(crate) fn run(cx: &RunContext, args: &PlacesArgs) -> anyhow::Result<Outcome> {
    let top = args.top.rows(args.output.format());
    let frameworks = args.frameworks.rules(cx)?;
    let (session, found) = Session::ask(cx, &args.input, |dump| {
        let places = places(args, &frameworks, dump)?;
        let found = places.map(|places| -> anyhow::Result<_> {
            let reachable_bytes = dump.graph.tree.reachable_bytes();
            let least = args.min.bytes(reachable_bytes);
            let depth = if args.depth == 0 { u64::MAX } else { args.depth };
            let aligned = AlignedPlaces::new(&[places]);
            let (mut rows, matching) = rows(&aligned, least, depth, top, reachable_bytes);
            describe(dump, &frameworks, &mut rows);
            let containers = Containers::find(dump)?;
            let by_object = containers.by_object();
            for row in rows.iter_mut().filter(|row| row.entry.figures.objects == 1) {
                row.container = by_object.get(&row.entry.figures.example).copied().cloned();
            }
            Ok((rows, matching))
        });
        found.transpose()
    })?;
    let whole = ReachableTotal::new(cx, &session.graph, &args.output);
    let Some((rows, matching)) = found else {
        let none = Answer::new(columns(whole), None)
            .with_summary(&reachable::summary_columns(), &session.graph.tree)
            .if_empty(NoRows::Nothing);
        session.show(cx, "places", &args.output, none)?;
        arguments::note_no_start(cx, &args.input, args.of.as_ref(), &session.dump_graph());
        return Ok(session.outcome(false));
    };
    let depths: Vec<u32> =
        rows.iter().map(|row| u32::try_from(row.entry.depth - 1).unwrap_or(u32::MAX)).collect();
    let rows = rows.into_iter().zip(tree::branches(&depths)).map(|(row, branch)| PlaceRow { branch, ..row });
    let answer = Answer::new(columns(whole), rows)
        .with_summary(&reachable::summary_columns(), &session.graph.tree)
        .matching(matching, "places")
        .if_empty(NoRows::Nothing)
        .total([
            ("retained", group_digits(whole.bytes)),
            ("%", whole.percent(whole.bytes)),
            ("place", "all reachable objects".to_owned()),
        ])
        .with_section_below(Section::Options("--top 0 shows all; --min 0 includes small places".to_owned()));
    let shown = session.show(cx, "places", &args.output, answer)?;
    unreachable::note(cx, &session, &args.input, ReachableScope::Reachable);
    Ok(session.outcome(shown > 0))
}

/// Returns the requested places; `None` if the starting object does not exist or is not reachable.
fn places(args: &PlacesArgs, frameworks: &Frameworks, dump: &Dump<'_>) -> anyhow::Result<Option<DumpPlaces>> {
    Ok(match arguments::from(args.of.as_ref(), dump) {
        None => None,
        Some(StartingPoints::Roots) => Some(DumpPlaces::with_frameworks(dump, frameworks, None)?),
        Some(StartingPoints::Object(top)) => {
            Some(DumpPlaces::with_frameworks(dump, frameworks, Some(&[top]))?)
        }
        Some(StartingPoints::Tops(tops)) => Some(DumpPlaces::with_frameworks(dump, frameworks, Some(&tops))?),
    })
}

/// A place, as a row of the result.
struct PlaceRow {
    place: String,
    step: String,
    entry: PlaceEntry,
    /// `true` if a framework's rule describes the objects.
    is_called: bool,
    framework: Option<FrameworkDescription>,
    container: Option<Container>,
    branch: Branch,
}

impl ContainerRow for PlaceRow {
    fn container(&self) -> Option<&Container> {
        self.container.as_ref()
    }
}

/// Adds the descriptions of single objects by the rules about frameworks.
fn describe(dump: &Dump<'_>, frameworks: &Frameworks, rows: &mut [PlaceRow]) {
    let known = KnownFrameworks::new(dump, frameworks);
    for row in
        rows.iter_mut().filter(|row| row.is_called && row.entry.figures.objects == 1).take(MAX_DESCRIBED)
    {
        let object = dump.graph.objects.addresses.index_of(row.entry.figures.example);
        row.framework = object.and_then(|object| known.describe(object));
    }
}

/// Returns the largest places in preorder, siblings by size, and the number of places without the limit `top`.
fn rows(
    aligned: &AlignedPlaces,
    least: u64,
    depth: u64,
    top: Option<usize>,
    reachable_bytes: u64,
) -> (Vec<PlaceRow>, u64) {
    let bytes = |place: u32| aligned.figures(0, place).retained_bytes;
    let is_large = |place: &u32| bytes(*place) >= least;
    let top = top.unwrap_or(usize::MAX);
    let (mut kept, mut matching) = (vec![false; aligned.parents.len()], 0u64);
    let (mut left, mut next) = (top, BinaryHeap::new());
    let add = |next: &mut BinaryHeap<(u64, Reverse<u32>, u64)>, places: &[u32], depth: u64| {
        next.extend(
            places.iter().copied().filter(is_large).map(|place| (bytes(place), Reverse(place), depth)),
        );
    };
    add(&mut next, &aligned.top, 1);
    while let Some((_, Reverse(place), at)) = next.pop() {
        matching += 1;
        if let (1.., Some(kept)) = (left, kept.get_mut(place as usize)) {
            (*kept, left) = (true, left - 1);
        }
        if at < depth {
            add(&mut next, aligned.children(place), at + 1);
        }
    }
    let mut found = Vec::new();
    let largest_last = |places: &[u32], depth: u64| {
        let mut kept: Vec<(u32, u64)> = places
            .iter()
            .copied()
            .filter(|place| kept.get(*place as usize) == Some(&true))
            .map(|place| (place, depth))
            .collect();
        kept.sort_unstable_by_key(|(place, _)| (bytes(*place), Reverse(*place)));
        kept
    };
    let mut stack = largest_last(&aligned.top, 1);
    while let Some((place, depth)) = stack.pop() {
        found.push(PlaceRow {
            place: fit::middle(&aligned.text(place), LONGEST),
            step: aligned.step(place),
            entry: PlaceEntry::new(aligned, place, depth, reachable_bytes),
            is_called: aligned.label(place).called.is_some(),
            framework: None,
            container: None,
            branch: Branch::default(),
        });
        stack.extend(largest_last(aligned.children(place), depth + 1));
    }
    (found, matching)
}

fn columns<'c>(whole: ReachableTotal) -> Columns<'c, PlaceRow> {
    let mut columns = vec![Column::new(names::PLACE_NAME, |row: &PlaceRow| (&*row.place).into())];
    columns.extend(facts::columns(PlaceEntry::facts(), None, |row: &PlaceRow| &row.entry));
    columns.extend(containers::columns());
    columns.extend([
        Column::new(names::FRAMEWORK, |row: &PlaceRow| {
            row.framework.as_ref().map(|known| &*known.framework).into()
        })
        .or_null(NO_RULE),
        Column::new(names::FRAMEWORK_FACTS, |row: &PlaceRow| {
            row.framework.as_ref().map_or(Value::Null, |known| frameworks::facts(&known.facts))
        })
        .or_null(NO_RULE),
    ]);
    let [share, bar] = whole.columns(|row: &PlaceRow| row.entry.figures.retained_bytes);
    Columns::new(columns).table([
        TableColumn::new(names::RETAINED_BYTES, "retained"),
        share,
        bar,
        TableColumn::new(names::OBJECTS, "objects"),
        TableColumn::table_only("place", Align::Left, |row: &PlaceRow| row.step.clone())
            .tree(|row: &PlaceRow| &row.branch)
            .fit(Fit::Shorten { priority: 0 }),
    ])
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![ResultSchema {
        command: "places",
        variant: "",
        about: "A row is a place, below the place that holds it: rows are in preorder, siblings by `retained_bytes`, largest first. \
                With `--min 0`, `own_bytes` of all rows add up to the reachable heap.",
        rows: columns(ReachableTotal::default()).fields(),
        summary: reachable::summary_columns().fields(),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_a_size_or_a_percentage() {
        assert_eq!(parse_minimum("1%").map(|least| least.bytes(1001)), Ok(11));
        assert_eq!(parse_minimum("0.5 %").map(|least| least.bytes(1000)), Ok(5));
        assert_eq!(parse_minimum("2KiB").map(|least| least.bytes(1)), Ok(2048));
        assert!(
            parse_minimum("101%").is_err()
                && parse_minimum("-1%").is_err()
                && parse_minimum("x%").is_err()
                && parse_minimum("x").is_err()
        );
    }
}
