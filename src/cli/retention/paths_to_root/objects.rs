//! `paths-to-root OBJECT`: the shortest paths to each of some objects.

use crate::hprof::ObjectId;
use crate::index::{ObjectGraph, Quiet};
use crate::query::objects::strength::Excluded;
use crate::query::paths::shortest;
use crate::query::paths::steps::{RootView, Step, View};
use crate::report::Format;
use crate::report::answer::{Answer, Declared, NoRows, Section};
use crate::report::column::{Align, Column, Columns, Fit, Kind};
use crate::report::number::grouped;
use crate::report::value::Value;

use crate::cli::Outcome;
use crate::cli::shared::args::{Input, Output};
use crate::cli::shared::session::{Session, Source};
use crate::cli::shared::{messages, object_columns, paths};

/// Steps of a path that a table shows; of more the middle is left out.
const MAX_STEPS: usize = 40;

/// The paths to one object, and why there are those.
struct Paths {
    id: ObjectId,
    what: Found,
    paths: Vec<PathView>,
    /// Whether there is no other path.
    are_all: bool,
}

/// Why there are the paths that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    NoSuchObject,
    Unreachable,
    /// Reachable, and no path was found: then something is wrong with the roots.
    Nothing,
    Paths,
    /// Over references that were to be left out.
    OnlyExcluded,
}

impl Found {
    /// The word in JSON.
    fn name(self) -> &'static str {
        match self {
            Self::NoSuchObject => "no such object",
            Self::Unreachable => "unreachable",
            Self::Nothing => "no path",
            Self::Paths => "paths",
            Self::OnlyExcluded => "only excluded",
        }
    }
}

struct PathView {
    root: RootView,
    steps: Vec<Step>,
    /// Objects that are left out in the middle of `steps`.
    left_out: usize,
}

pub(super) fn run(
    input: &Input,
    output: &Output,
    ids: &[ObjectId],
    most: u16,
    excluded: Excluded,
) -> anyhow::Result<Outcome> {
    let is_table = output.format() == Format::Table;
    let most_steps = if is_table { MAX_STEPS } else { usize::MAX };
    let (session, found) = Session::ask(input, |heap, graph| {
        let view = View::new(heap, graph, heap.bytes(&Quiet)?);
        let find = |id: &ObjectId| find(graph, &view, *id, (most, most_steps), excluded);
        Ok(ids.iter().map(find).collect::<Vec<Paths>>())
    })?;
    let rows = found.iter().flat_map(|to| to.paths.iter().map(move |path| Row { to, path }));
    let mut answer = Answer::new(columns(), rows.filter(|_| !is_table))
        .beside(&beside(), &found.as_slice())
        .without_rows(NoRows::Nothing);
    if is_table {
        // A path is a table of its own.
        answer = sections(&found).into_iter().fold(answer, Answer::above);
    }
    session.show("paths-to-root", output, answer)?;
    if !input.quiet {
        found.iter().for_each(notes);
    }
    Ok(session.outcome(found.iter().any(|to| !to.paths.is_empty())))
}

fn find(
    graph: &ObjectGraph,
    view: &View<'_>,
    id: ObjectId,
    (most, most_steps): (u16, usize),
    excluded: Excluded,
) -> Paths {
    let Some(object) = graph.objects.addresses.index_of(id) else {
        return Paths { id, what: Found::NoSuchObject, paths: Vec::new(), are_all: true };
    };
    let found = shortest::paths(&view.edges, object, usize::from(most), excluded);
    let what = match (found.paths.is_empty(), found.only_excluded) {
        (false, true) => Found::OnlyExcluded,
        (false, false) => Found::Paths,
        (true, _) if graph.tree.reachable_position(object).is_none() => Found::Unreachable,
        (true, _) => Found::Nothing,
    };
    let paths = found.paths.iter().filter_map(|path| {
        let root = view.root(*path.first()?);
        let left_out = path.len().saturating_sub(most_steps);
        let (start, end) = if left_out > 0 { (most_steps / 2, path.len() - most_steps / 2) } else { (0, 0) };
        let mut steps = view.steps(path, 0..start);
        steps.extend(view.steps(path, end..path.len()));
        Some(PathView { root, steps, left_out })
    });
    Paths { id, what, paths: paths.collect(), are_all: found.are_all }
}

/// Says what rows cannot.
fn notes(found: &Paths) {
    let id = format!("{:#x}", found.id);
    let text = match found.what {
        Found::Paths => return,
        Found::NoSuchObject => format!("there is no object {id} in the dump"),
        Found::Unreachable => {
            format!("{id} is unreachable: no path leads to it, and the next full GC frees it")
        }
        Found::Nothing => format!("no path to {id} was found"),
        Found::OnlyExcluded => {
            format!("{id} is reachable only through excluded references: weak, soft, phantom or finalizer")
        }
    };
    messages::line("note", &text);
}

/// A path, and the object that it leads to.
struct Row<'a> {
    to: &'a Paths,
    path: &'a PathView,
}

fn columns<'a>() -> Columns<'a, Row<'a>> {
    let step = step_columns();
    let mut columns = paths::root_columns("root.", |row: &Row<'a>| &row.path.root);
    columns.push(Column::new(
        "through_excluded",
        Kind::Boolean,
        "whether the path leads over references that were to be left out (`--exclude`), because nothing else leads to the \
         object",
        |row: &Row<'a>| (row.to.what == Found::OnlyExcluded).into(),
    ));
    columns.push(Column::new(
        "steps",
        Kind::Records(step.fields()),
        "the objects of the path, from the root to the object; both are among them",
        move |row: &Row<'a>| {
            let steps = row.path.steps.iter().enumerate();
            Value::List(
                steps.map(|(at, shown)| step.record(&PathStep { step: shown, is_root: at == 0 })).collect(),
            )
        },
    ));
    Columns::new(columns)
}

/// A step of a path.
struct PathStep<'a> {
    step: &'a Step,
    is_root: bool,
}

fn step_columns<'a>() -> Columns<'a, PathStep<'a>> {
    let shallow = object_columns::shallow_bytes(|step: &PathStep<'a>| step.step.shallow_bytes);
    let retained = object_columns::retained_bytes(|step: &PathStep<'a>| step.step.retained_bytes);
    let step = paths::step_columns(|step: &PathStep<'a>| step.step, |step| step.is_root);
    Columns::new(step.into_iter().chain([shallow, retained]))
}

fn beside<'a>() -> Columns<'a, &'a [Paths]> {
    let each = Columns::new([
        Column::id("object", "the ID", |to: &Paths| Value::Id(to.id)),
        Column::text(
            "found",
            "`paths`; `only excluded`: paths, but only over references that were to be left out; `unreachable`; `no such \
             object`; `no path`: something is wrong with the roots",
            |to: &Paths| to.what.name().into(),
        ),
        Column::integer("paths", "its rows", |to: &Paths| to.paths.len().into()),
        Column::new("all_paths", Kind::Boolean, "whether there is no other path", |to: &Paths| {
            to.are_all.into()
        }),
    ]);
    Columns::new([Column::new(
        "objects",
        Kind::Records(each.fields()),
        "a record for each ID that was given",
        move |found: &&'a [Paths]| Value::List(found.iter().map(|to| each.record(to)).collect()),
    )])
}

/// What a table shows: a heading and a table for each path.
fn sections(found: &[Paths]) -> Vec<Section> {
    let mut sections = Vec::new();
    for to in found {
        for (number, path) in (1u32..).zip(&to.paths) {
            if !sections.is_empty() {
                sections.push(Section::Line(String::new()));
            }
            let through = if to.what == Found::OnlyExcluded { ", through excluded references" } else { "" };
            let of = if found.len() > 1 { format!(" to {:#x}", to.id) } else { String::new() };
            let root = paths::describe_root(&path.root);
            sections.push(Section::Line(format!("path {number}{of}{through}: {root}")));
            sections.push(Section::table(&line_columns(), lines(path)));
        }
    }
    sections
}

/// A line of the table of a path.
enum Line<'a> {
    Step(&'a Step),
    /// Objects that are left out.
    Between(usize),
}

impl Line<'_> {
    /// What is shown of a step.
    fn of_step(&self, cell: impl Fn(&Step) -> String) -> String {
        match self {
            Self::Step(step) => cell(step),
            Self::Between(_) => String::new(),
        }
    }
}

fn lines(path: &PathView) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = path.steps.iter().map(Line::Step).collect();
    if path.left_out > 0 {
        lines.insert(lines.len().min(MAX_STEPS / 2), Line::Between(path.left_out));
    }
    lines
}

fn line_columns<'a>() -> Columns<'a, Line<'a>> {
    let size = |title, bytes: fn(&Step) -> u64| {
        Column::table(title, Align::Right, move |line: &Line<'a>| line.of_step(|step| grouped(bytes(step))))
    };
    Columns::new([
        size("shallow", |step| step.shallow_bytes),
        size("retained", |step| step.retained_bytes),
        Column::table("field", Align::Left, |line: &Line<'a>| line.of_step(paths::describe_held)),
        Column::table("object", Align::Left, |line: &Line<'a>| match line {
            Line::Step(step) => paths::named(step).describe(),
            Line::Between(objects) => {
                format!("… {} objects in between; --format json shows all", grouped(*objects as u64))
            }
        })
        .fit(Fit::Shorten { priority: 0 }),
    ])
}

pub(super) fn declared() -> Declared {
    Declared {
        command: "paths-to-root",
        variant: "Objects",
        about: "Given objects only: a row is a path, the objects in the order given, the paths of each shortest first.",
        rows: columns().fields(),
        beside: beside().fields(),
    }
}
