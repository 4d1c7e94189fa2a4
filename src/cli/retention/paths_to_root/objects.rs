//! `paths-to-root OBJECT`: the shortest paths to each of some objects.

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::{ObjectGraph, Quiet};
use hprof_parser::ObjectId;
use hprof_query::dictionary::names;
use hprof_query::objects::reference_kind::ReferenceKind;
use hprof_query::objects::strength::Excluded;
use hprof_query::paths::steps::{RootView, Step, View};
use hprof_query::paths::{Budget, beyond_frames};
use hprof_report::Format;
use hprof_report::answer::{Answer, Declared, NoRows, Section};
use hprof_report::column::{Align, Column, Columns, Fit};
use hprof_report::number::{counted, grouped};
use hprof_report::value::Value;

use crate::cli::Outcome;
use crate::cli::shared::args::{Input, Output};
use crate::cli::shared::context::RunContext;
use crate::cli::shared::session::{Session, Source};
use crate::cli::shared::{messages, object, object_columns, paths};

use super::chains::{self, Piece};
use super::{excluded_references, excluded_roots};

/// Lines of a path that a table shows; of more the middle is left out.
const MAX_LINES: usize = 40;
/// Steps at either end of a path among which a table's chains are found.
const LOOKED_AT: usize = 100_000;
/// Fields that are named which also hold what a frame holds.
const MAX_HOLDERS: usize = 3;

/// The paths to one object, and why there are those.
struct Paths {
    id: ObjectId,
    what: Found,
    paths: Vec<PathView>,
    /// `true` if there is no other path.
    are_all: bool,
    /// `true` if all paths there are lead through frames.
    only_frames: bool,
    /// `true` if the search gave up, so that there may be others.
    gave_up: bool,
}

/// What is searched for each object, at most.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Paths.
    pub(super) most: u16,
    /// Referrers that are looked at.
    pub(super) budget: Option<u64>,
}

/// Why there are the paths that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    NoSuchObject,
    Unreachable,
    /// Reachable, but not from the roots that are left; else something is wrong with the roots.
    Nothing,
    Paths,
    /// Over references that were to be left out.
    OnlyExcluded,
    /// None before the search gave up.
    GivenUp,
}

impl Found {
    /// The word in JSON.
    fn name(self) -> &'static str {
        match self {
            Self::NoSuchObject => "no_such_object",
            Self::Unreachable => "unreachable",
            Self::Nothing => "no_path",
            Self::Paths => "paths",
            Self::OnlyExcluded => "only_excluded",
            Self::GivenUp => "given_up",
        }
    }
}

struct PathView {
    root: RootView,
    through_frame: bool,
    /// Fields that also hold the object at which a path through a frame starts, nearest first.
    also_held_by: Vec<String>,
    /// The number of the path on which these are.
    also_on: usize,
    lines: Vec<Line>,
}

pub(super) fn run(
    cx: &RunContext,
    input: &Input,
    output: &Output,
    ids: &[ObjectId],
    limits: Limits,
    excluded: Excluded,
) -> anyhow::Result<Outcome> {
    let is_table = output.format() == Format::Table;
    let (session, found) = Session::ask(cx, input, |heap, graph| {
        let view = View::new(heap, graph, heap.bytes(&Quiet)?);
        let find = |id: &ObjectId| find(graph, &view, *id, (limits, is_table), excluded);
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
    session.show(cx, "paths-to-root", output, answer)?;
    if !input.quiet {
        found.iter().for_each(|found| notes(cx, &session, found, limits, excluded));
    }
    Ok(session.outcome(found.iter().any(|to| !to.paths.is_empty())))
}

fn find(
    graph: &ObjectGraph,
    view: &View<'_>,
    id: ObjectId,
    (limits, is_table): (Limits, bool),
    excluded: Excluded,
) -> Paths {
    let Some(object) = graph.objects.addresses.index_of(id) else {
        return Paths {
            id,
            what: Found::NoSuchObject,
            paths: Vec::new(),
            are_all: true,
            only_frames: false,
            gave_up: false,
        };
    };
    let mut budget = limits.budget.map_or_else(Budget::unlimited, Budget::of);
    let most = usize::from(limits.most);
    let found = beyond_frames::paths_within(&view.edges, object, most, excluded, &mut budget);
    let gave_up = budget.is_spent();
    let what = match (found.paths.is_empty(), found.only_excluded) {
        (false, true) => Found::OnlyExcluded,
        (false, false) => Found::Paths,
        (true, _) if graph.tree.reachable_position(object).is_none() => Found::Unreachable,
        (true, _) if gave_up => Found::GivenUp,
        (true, _) => Found::Nothing,
    };
    let paths = found.paths.iter().filter_map(|path| {
        let root = *path.objects.first()?;
        let (also_on, also_held_by) = match path.through_frame && is_table {
            true => also_held_by(view, root, &found.paths).unwrap_or_default(),
            false => Default::default(),
        };
        Some(PathView {
            root: if is_table { view.start(root, excluded) } else { view.root(root) },
            through_frame: path.through_frame,
            also_held_by,
            also_on,
            lines: if is_table {
                lines(view, &path.objects)
            } else {
                view.steps(&path.objects, 0..path.objects.len()).into_iter().map(Line::Step).collect()
            },
        })
    });
    let only_frames = found.only_frames() && !gave_up;
    Paths { id, what, paths: paths.collect(), are_all: found.are_all, only_frames, gave_up }
}

/// The fields that hold a root that only a frame makes one, nearest first, up to a static one: those of the first path
/// through fields that leads over it, and the number of that path.
fn also_held_by(
    view: &View<'_>,
    root: ObjectIndex,
    paths: &[beyond_frames::Path],
) -> Option<(usize, Vec<String>)> {
    let through_fields = (1..).zip(paths).filter(|(_, path)| !path.through_frame);
    let (number, above) = through_fields.into_iter().find_map(|(number, path)| {
        let place = path.objects.iter().position(|object| *object == root)?;
        Some((number, path.objects.get(..=place)?))
    })?;
    let mut holders = Vec::new();
    for pair in above.windows(2).rev() {
        let [holder, held] = pair else { continue };
        let described = || paths::named(&view.step(*holder, None)).describe();
        let meanings = view.edges.holding(*holder, *held).meanings;
        let field = meanings.iter().find_map(|meaning| match meaning {
            ReferenceKind::Field { name, .. } => Some((format!("field {name}"), false)),
            ReferenceKind::Static(name) => Some((format!("static field {name}"), true)),
            _ => None,
        });
        if let Some((field, is_static)) = field {
            holders.push(format!("{field} of {}", described()));
            if is_static || holders.len() >= MAX_HOLDERS {
                break;
            }
        }
    }
    Some((number, holders))
}

/// Says what rows cannot: why there are none, or whether there are others, and what was left out.
fn notes(cx: &RunContext, session: &Session, found: &Paths, limits: Limits, excluded: Excluded) {
    let id = format!("{:#x}", found.id);
    let (references, roots) = (excluded_references(excluded), excluded_roots(excluded));
    let text = match found.what {
        Found::NoSuchObject => {
            return messages::about_no_object(cx, session.heap.path(), &session.graph, found.id);
        }
        Found::Unreachable => {
            format!("{id} is unreachable: no path leads to it, and the next full GC frees it")
        }
        Found::GivenUp => {
            let budget = counted(limits.budget.unwrap_or_default(), "referrer");
            format!("the search for a path to {id} gave up after {budget}; without --budget it goes on")
        }
        Found::Nothing if !roots.is_empty() => {
            format!("all paths to {id} start at excluded GC roots: {roots}")
        }
        Found::Nothing => format!("no path to {id} was found"),
        Found::OnlyExcluded => {
            let roots = if roots.is_empty() { roots } else { format!(", and GC roots: {roots}") };
            format!("{id} is reachable only through excluded references: {references}{roots}")
        }
        Found::Paths => {
            let first = if found.only_frames {
                format!("only frames of threads hold {id}: no path leads to it through fields")
            } else if found.are_all {
                format!("no other path leads to {id}")
            } else {
                let option = if found.gave_up {
                    "without --budget all are searched".to_owned()
                } else {
                    format!("--paths {} looks for them", usize::from(limits.most).saturating_mul(2))
                };
                format!("more paths may lead to {id}; {option}")
            };
            let over = if references.is_empty() { references } else { format!("{references} references") };
            let from = if roots.is_empty() { roots } else { format!("GC roots of kind {roots}") };
            let and = if over.is_empty() || from.is_empty() { "" } else { ", and " };
            let left_out = format!("{over}{and}{from}");
            if left_out.is_empty() { first } else { format!("{first} (excluded: {left_out})") }
        }
    };
    cx.say("note", &text);
}

/// A path, and the object that it leads to.
struct Row<'a> {
    to: &'a Paths,
    path: &'a PathView,
}

fn columns<'a>() -> Columns<'a, Row<'a>> {
    let step = step_columns();
    let mut columns = paths::root_columns(Some(names::ROOT), |row: &Row<'a>| &row.path.root);
    columns.push(Column::of(names::IS_THROUGH_EXCLUDED, |row: &Row<'a>| {
        (row.to.what == Found::OnlyExcluded).into()
    }));
    columns.push(Column::of(names::IS_THROUGH_FRAME, |row: &Row<'a>| row.path.through_frame.into()));
    columns.push(Column::nested(names::STEPS, step.fields(), move |row: &Row<'a>| {
        let steps = row.path.lines.iter().filter_map(Line::step).enumerate();
        Value::List(
            steps.map(|(at, shown)| step.record(&PathStep { step: shown, is_root: at == 0 })).collect(),
        )
    }));
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
        Column::of(names::OBJECT, |to: &Paths| Value::Id(to.id)),
        Column::of(names::FOUND, |to: &Paths| to.what.name().into()),
        Column::of(names::PATH_COUNT, |to: &Paths| to.paths.len().into()),
        Column::of(names::IS_COMPLETE, |to: &Paths| to.are_all.into()),
        Column::of(names::IS_GIVEN_UP, |to: &Paths| to.gave_up.into()),
        Column::of(names::IS_ONLY_FRAMES, |to: &Paths| to.only_frames.into()),
    ]);
    Columns::new([Column::nested(names::TARGETS, each.fields(), move |found: &&'a [Paths]| {
        Value::List(found.iter().map(|to| each.record(to)).collect())
    })])
}

/// What a table shows: a heading and a table for each path.
fn sections(found: &[Paths]) -> Vec<Section> {
    let mut sections = Vec::new();
    for to in found {
        let has_frames = to.paths.iter().any(|path| path.through_frame);
        for (number, path) in (1u32..).zip(&to.paths) {
            if !sections.is_empty() {
                sections.push(Section::Line(String::new()));
            }
            let fields = if has_frames && !path.through_frame { ", through fields" } else { "" };
            let through = if to.what == Found::OnlyExcluded { ", through excluded references" } else { "" };
            let of = if found.len() > 1 { format!(" to {:#x}", to.id) } else { String::new() };
            let root = paths::describe_root(&path.root);
            sections.push(Section::Line(format!("path {number}{of}{fields}{through}: {root}")));
            for (at, holder) in path.also_held_by.iter().enumerate() {
                let lead = if at == 0 { "also held by: " } else { "  in " };
                let is_last = at + 1 == path.also_held_by.len();
                let end = if is_last { format!(" (path {})", path.also_on) } else { ",".to_owned() };
                sections.push(Section::Line(format!("{lead}{holder}{end}")));
            }
            sections.push(Section::table(&line_columns(), path.lines.iter()));
            if path.lines.iter().any(|line| matches!(line, Line::LeftOut(_))) {
                sections.push(Section::Options("--format json shows all steps".to_owned()));
            }
        }
    }
    sections
}

/// A line of the table of a path.
pub(in crate::cli::retention) enum Line {
    Step(Step),
    /// Objects that are shown together, in words.
    Between(String),
    /// Objects that are left out, in words.
    LeftOut(String),
}

impl Line {
    pub(in crate::cli::retention) fn step(&self) -> Option<&Step> {
        match self {
            Self::Step(step) => Some(step),
            Self::Between(_) | Self::LeftOut(_) => None,
        }
    }

    /// What stands for objects that are shown together, or left out.
    pub(in crate::cli::retention) fn between(&self) -> &str {
        match self {
            Self::Step(_) => "",
            Self::Between(text) | Self::LeftOut(text) => text,
        }
    }

    /// What is shown of a step.
    fn of_step(&self, cell: impl Fn(&Step) -> String) -> String {
        self.step().map(cell).unwrap_or_default()
    }
}

/// The lines of the table of a path.
fn lines(view: &View<'_>, path: &[ObjectIndex]) -> Vec<Line> {
    let (graph, summary) = (view.edges.graph, view.edges.summary);
    let holder = |place: usize| path.get(place.checked_sub(1)?).copied();
    let key = |place: usize| {
        let (holder, object) = (holder(place)?, *path.get(place)?);
        let holding = Some(view.edges.holding(holder, object)).filter(|of| !of.meanings.is_empty())?;
        Some((graph.objects.class(holder), holding, graph.objects.class(object)))
    };
    let end = path.len();
    let places = (0..end.min(LOOKED_AT)).chain(end.saturating_sub(LOOKED_AT).max(LOOKED_AT)..end);
    let line = |piece: Piece| {
        Some(match piece {
            Piece::Step(place) => Line::Step(view.step(*path.get(place)?, holder(place))),
            Piece::Chain { first, steps } => {
                let (class, holding, _) = key(first)?;
                let class = object::class_name(summary, class);
                Line::Between(chains::describe(steps, class, &holding.to_string()))
            }
            Piece::Between(steps) => Line::LeftOut(chains::describe_between(steps)),
        })
    };
    chains::shorten(places, MAX_LINES, key).into_iter().filter_map(line).collect()
}

/// The table of a path that is read already.
pub(in crate::cli::retention) fn table_of(steps: &[Step], left_out: (usize, usize)) -> Section {
    let lines = lines_of(steps, left_out);
    Section::table(&line_columns(), lines.iter())
}

/// The lines of a path that is read already. So many objects are left out behind so many steps.
pub(in crate::cli::retention) fn lines_of(steps: &[Step], left_out: (usize, usize)) -> Vec<Line> {
    let (left_out, behind) = left_out;
    let key = |place: usize| {
        let (holder, step) = (steps.get(place.checked_sub(1)?)?, steps.get(place)?);
        let reference = step.reference.as_deref().filter(|_| left_out == 0 || place != behind)?;
        Some((holder.class.as_deref(), reference, step.class.as_deref()))
    };
    let line = |piece: Piece| {
        Some(match piece {
            Piece::Step(place) => Line::Step(steps.get(place)?.clone()),
            Piece::Chain { first, steps: count } => {
                let (class, reference, _) = key(first)?;
                Line::Between(chains::describe(count, class, reference))
            }
            Piece::Between(count) => Line::Between(chains::describe_between(count.saturating_add(left_out))),
        })
    };
    chains::shorten(0..steps.len(), MAX_LINES, key).into_iter().filter_map(line).collect()
}

fn line_columns<'a>() -> Columns<'a, &'a Line> {
    let size = |title, bytes: fn(&Step) -> u64| {
        Column::table(title, Align::Right, move |line: &&'a Line| line.of_step(|step| grouped(bytes(step))))
    };
    Columns::new([
        size("shallow", |step| step.shallow_bytes).fit(Fit::Secondary { priority: 0 }),
        size("retained", |step| step.retained_bytes),
        Column::table("field", Align::Left, |line: &&'a Line| line.of_step(paths::describe_held))
            .fit(Fit::Shorten { priority: 0 }),
        Column::table("object", Align::Left, |line: &&'a Line| match line {
            Line::Step(step) => paths::describe_step(step),
            Line::Between(text) | Line::LeftOut(text) => text.clone(),
        })
        .fit(Fit::Shorten { priority: 0 }),
    ])
}

pub(super) fn declared() -> Declared {
    Declared {
        command: "paths-to-root",
        variant: "Objects",
        about: "Given objects only: a row is a path, the objects in the order given, the paths of each shortest first. Where the \
                shortest ones all start at what a thread's frame holds, the shortest that does not is one row more.",
        rows: columns().fields(),
        beside: beside().fields(),
    }
}
