//! `paths-to-root OBJECT`: the shortest paths to each of the given objects.

use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_query::objects::reference_kind::ReferenceKind;
use hprof_query::objects::strength::Exclusions;
use hprof_query::paths::steps::{ObjectStep, RootView, View};
use hprof_query::paths::{Budget, beyond_frames};
use hprof_report::number::format_count;
use hprof_values::ObjectId;

use crate::cli::prelude::*;
use crate::cli::shared::{messages, object, object_columns, paths};

use super::PathExclusions;
use super::chains::{self, PathSegment};

/// Maximum number of lines of a path in a table; the middle of a longer one is omitted.
const MAX_LINES: usize = 40;
/// Number of steps at either end of a path in which chains are detected for a table.
const LOOKED_AT: usize = 100_000;
/// Maximum number of named fields that reference the same object as a frame.
const MAX_HOLDERS: usize = 3;

/// The paths to one object, and the outcome of the search.
struct Paths {
    id: ObjectId,
    what: PathsOutcome,
    paths: Vec<PathView>,
    /// `true` if there are no more paths.
    are_all: bool,
    /// `true` if all paths go through frames.
    only_frames: bool,
    /// `true` if the search gave up, so that more paths may exist.
    gave_up: bool,
}

/// Limits of the search for each object.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathLimits {
    /// Maximum number of paths.
    pub(super) most: u16,
    /// Maximum number of referrers that the search reads.
    pub(super) budget: Option<u64>,
}

/// Outcome of the search for paths to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathsOutcome {
    NoSuchObject,
    Unreachable,
    /// The object is reachable, but not from the roots that are not excluded; otherwise the roots are inconsistent.
    Nothing,
    Paths,
    /// There are only paths through excluded references.
    OnlyExcluded,
    /// No path was found before the search gave up.
    GivenUp,
}

impl PathsOutcome {
    /// Returns the value in JSON output.
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

/// A path to the object, as shown.
struct PathView {
    root: RootView,
    through_frame: bool,
    /// Fields that reference, in addition to a frame, the object at which the path starts, nearest first.
    also_held_by: Vec<String>,
    /// Number of the path that contains these fields.
    also_on: usize,
    lines: Vec<StepLine>,
}

pub(super) fn run(
    cx: &RunContext,
    input: &Input,
    output: &Output,
    ids: &[ObjectId],
    limits: PathLimits,
    excluded: &PathExclusions,
) -> anyhow::Result<Outcome> {
    let format = output.format();
    // A table shows other segments of long paths, and more about their roots.
    let (session, found) = Session::ask(cx, input, |dump| {
        let view = excluded.view(cx, dump)?;
        let find = |format: &Format| -> Vec<Paths> {
            let is_table = *format == Format::Table;
            ids.iter()
                .map(|id| find(dump.graph, &view, *id, (limits, is_table), excluded.references))
                .collect()
        };
        Ok(cx.formats(format).iter().map(find).collect::<Vec<_>>())
    })?;
    let mut of_formats = found.iter();
    cx.for_each_format(format, |cx, format| {
        let (is_table, found) = (format == Format::Table, of_formats.next().map_or(&[][..], Vec::as_slice));
        let rows = found.iter().flat_map(|to| to.paths.iter().map(move |path| PathLine { to, path }));
        let mut answer = Answer::new(columns(), rows.filter(|_| !is_table))
            .with_summary(&summary_columns(), &found)
            .if_empty(NoRows::Nothing);
        if is_table {
            // Each path is a table of its own.
            answer = sections(found).into_iter().fold(answer, Answer::with_section_above);
        }
        session.show_in(cx, "paths-to-root", output, format, answer)?;
        Ok(())
    })?;
    let found = found.first().map_or(&[][..], Vec::as_slice);
    if !input.quiet {
        found.iter().for_each(|found| notes(cx, &session, found, limits, excluded));
    }
    Ok(session.outcome(found.iter().any(|to| !to.paths.is_empty())))
}

fn find(
    graph: &ObjectGraph,
    view: &View<'_>,
    id: ObjectId,
    (limits, is_table): (PathLimits, bool),
    excluded: Exclusions,
) -> Paths {
    let Some(object) = graph.objects.addresses.index_of(id) else {
        return Paths {
            id,
            what: PathsOutcome::NoSuchObject,
            paths: Vec::new(),
            are_all: true,
            only_frames: false,
            gave_up: false,
        };
    };
    let mut budget = limits.budget.map_or_else(Budget::without_limit, Budget::new);
    let most = usize::from(limits.most);
    let found = beyond_frames::paths_within(&view.edges, object, most, excluded, &mut budget);
    let gave_up = budget.is_spent();
    let what = match (found.paths.is_empty(), found.only_excluded) {
        (false, true) => PathsOutcome::OnlyExcluded,
        (false, false) => PathsOutcome::Paths,
        (true, _) if graph.tree.reachable_position(object).is_none() => PathsOutcome::Unreachable,
        (true, _) if gave_up => PathsOutcome::GivenUp,
        (true, _) => PathsOutcome::Nothing,
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
                view.steps(&path.objects, 0..path.objects.len()).into_iter().map(StepLine::Step).collect()
            },
        })
    });
    let only_frames = found.only_frames() && !gave_up;
    Paths { id, what, paths: paths.collect(), are_all: found.are_all, only_frames, gave_up }
}

/// Returns the fields that reference an object which is a root only because of a frame, nearest first, up to a static field.
/// They are on the first path through fields that contains the object; returns the number of that path as well.
fn also_held_by(
    view: &View<'_>,
    root: ObjectIndex,
    paths: &[beyond_frames::ObjectPath],
) -> Option<(usize, Vec<String>)> {
    let through_fields = (1..).zip(paths).filter(|(_, path)| !path.through_frame);
    let (number, above) = through_fields.into_iter().find_map(|(number, path)| {
        let place = path.objects.iter().position(|object| *object == root)?;
        Some((number, path.objects.get(..=place)?))
    })?;
    let mut holders = Vec::new();
    for pair in above.windows(2).rev() {
        let [holder, held] = pair else { continue };
        let described = || paths::named_object(&view.step(*holder, None)).describe();
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

/// Prints notes about what the rows cannot show: why there are no paths, whether others exist, and what was excluded.
fn notes(cx: &RunContext, session: &Session, found: &Paths, limits: PathLimits, excluded: &PathExclusions) {
    let id = format!("{:#x}", found.id);
    let (references, roots) = (excluded.references(), excluded.roots());
    let fields = excluded.fields();
    let text = match found.what {
        PathsOutcome::NoSuchObject => {
            return messages::about_no_object(cx, session.heap.path(), &session.graph, found.id);
        }
        PathsOutcome::Unreachable => {
            if session.heap.summary().lacks_roots() {
                format!("{id} is unreachable, but may be alive: the dump lacks kinds of GC roots")
            } else {
                format!("{id} is unreachable: there is no path to it, and the next full GC frees it")
            }
        }
        PathsOutcome::GivenUp => {
            let budget = format_count(limits.budget.unwrap_or_default(), "referrer");
            format!(
                "the search for a path to {id} stopped after {budget}; omit --budget to search all referrers"
            )
        }
        PathsOutcome::Nothing if !fields.is_empty() => {
            let roots =
                if roots.is_empty() { roots } else { format!(", or start at excluded GC roots: {roots}") };
            format!("all paths to {id} lead through excluded fields: {fields}{roots}")
        }
        PathsOutcome::Nothing if !roots.is_empty() => {
            format!("all paths to {id} start at excluded GC roots: {roots}")
        }
        PathsOutcome::Nothing => format!("no path to {id} was found"),
        PathsOutcome::OnlyExcluded => {
            let roots = if roots.is_empty() { roots } else { format!(", and GC roots: {roots}") };
            let beside = if fields.is_empty() { fields } else { format!(" without {fields}") };
            format!("{id} is reachable{beside} only through excluded references: {references}{roots}")
        }
        PathsOutcome::Paths => {
            let first = if found.only_frames {
                format!("only stack frames reference {id}: no path to it goes through fields")
            } else if found.are_all {
                format!("there are no other paths to {id}")
            } else {
                let option = if found.gave_up {
                    "omit --budget to search all referrers".to_owned()
                } else {
                    format!("--paths {} shows more", usize::from(limits.most).saturating_mul(2))
                };
                format!("there may be more paths to {id}; {option}")
            };
            let over = if references.is_empty() { references } else { format!("{references} references") };
            let from = if roots.is_empty() { roots } else { format!("GC roots of kind {roots}") };
            let and = if over.is_empty() || from.is_empty() { "" } else { ", and " };
            let mut left_out = format!("{over}{and}{from}");
            if !fields.is_empty() {
                let and = if left_out.is_empty() { "" } else { ", and " };
                left_out = format!("{left_out}{and}{fields}");
            }
            if left_out.is_empty() { first } else { format!("{first} (excluded: {left_out})") }
        }
    };
    cx.emit("note", &text);
}

/// A path and its target object, as a row of the result.
struct PathLine<'a> {
    to: &'a Paths,
    path: &'a PathView,
}

fn columns<'a>() -> Columns<'a, PathLine<'a>> {
    let step = step_columns();
    let mut columns = paths::root_columns(Some(names::ROOT), |row: &PathLine<'a>| &row.path.root);
    columns.push(Column::new(names::IS_THROUGH_EXCLUDED, |row: &PathLine<'a>| {
        (row.to.what == PathsOutcome::OnlyExcluded).into()
    }));
    columns.push(Column::new(names::IS_THROUGH_FRAME, |row: &PathLine<'a>| row.path.through_frame.into()));
    columns.push(Column::with_fields(names::STEPS, step.fields(), move |row: &PathLine<'a>| {
        let steps = row.path.lines.iter().filter_map(StepLine::step).enumerate();
        Value::List(
            steps.map(|(at, shown)| step.record(&PathStep { step: shown, is_root: at == 0 })).collect(),
        )
    }));
    Columns::new(columns)
}

/// A step of a path.
struct PathStep<'a> {
    step: &'a ObjectStep,
    is_root: bool,
}

fn step_columns<'a>() -> Columns<'a, PathStep<'a>> {
    let shallow = object_columns::shallow_bytes(|step: &PathStep<'a>| step.step.shallow_bytes);
    let retained = object_columns::retained_bytes(|step: &PathStep<'a>| step.step.retained_bytes);
    let step = paths::step_columns(|step: &PathStep<'a>| step.step, |step| step.is_root);
    Columns::new(step.into_iter().chain([shallow, retained]))
}

fn summary_columns<'a>() -> Columns<'a, &'a [Paths]> {
    let each = Columns::new([
        Column::new(names::OBJECT, |to: &Paths| Value::Id(to.id)),
        Column::new(names::FOUND, |to: &Paths| to.what.name().into()),
        Column::new(names::PATH_COUNT, |to: &Paths| to.paths.len().into()),
        Column::new(names::IS_COMPLETE, |to: &Paths| to.are_all.into()),
        Column::new(names::IS_GIVEN_UP, |to: &Paths| to.gave_up.into()),
        Column::new(names::IS_ONLY_FRAMES, |to: &Paths| to.only_frames.into()),
    ]);
    Columns::new([Column::with_fields(names::TARGETS, each.fields(), move |found: &&'a [Paths]| {
        Value::List(found.iter().map(|to| each.record(to)).collect())
    })])
}

/// Returns the sections of the output: a heading and a table for each path.
fn sections(found: &[Paths]) -> Vec<Section> {
    let mut sections = Vec::new();
    for to in found {
        let has_frames = to.paths.iter().any(|path| path.through_frame);
        for (number, path) in (1u32..).zip(&to.paths) {
            if !sections.is_empty() {
                sections.push(Section::Line(String::new()));
            }
            let fields = if has_frames && !path.through_frame { ", through fields" } else { "" };
            let through =
                if to.what == PathsOutcome::OnlyExcluded { ", through excluded references" } else { "" };
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
            if path.lines.iter().any(|line| matches!(line, StepLine::LeftOut(_))) {
                sections.push(Section::Options("--format json shows all steps".to_owned()));
            }
        }
    }
    sections
}

/// A line in the table of a path.
pub(in crate::cli::retention) enum StepLine {
    Step(ObjectStep),
    /// Description of objects that are shown together.
    Between(String),
    /// Description of omitted objects.
    LeftOut(String),
}

impl StepLine {
    /// Returns the step, unless the line is about several objects.
    pub(in crate::cli::retention) fn step(&self) -> Option<&ObjectStep> {
        match self {
            Self::Step(step) => Some(step),
            Self::Between(_) | Self::LeftOut(_) => None,
        }
    }

    /// Returns the description of objects that are shown together or omitted; empty for a step.
    pub(in crate::cli::retention) fn between(&self) -> &str {
        match self {
            Self::Step(_) => "",
            Self::Between(text) | Self::LeftOut(text) => text,
        }
    }

    /// Formats a cell of a step.
    fn of_step(&self, cell: impl Fn(&ObjectStep) -> String) -> String {
        self.step().map(cell).unwrap_or_default()
    }
}

/// Returns the lines in the table of a path.
fn lines(view: &View<'_>, path: &[ObjectIndex]) -> Vec<StepLine> {
    let (graph, summary) = (view.edges.dump.graph, view.edges.dump.summary);
    let holder = |place: usize| path.get(place.checked_sub(1)?).copied();
    let key = |place: usize| {
        let (holder, object) = (holder(place)?, *path.get(place)?);
        let holding = Some(view.edges.holding(holder, object)).filter(|of| !of.meanings.is_empty())?;
        Some((graph.objects.class(holder), holding, graph.objects.class(object)))
    };
    let end = path.len();
    let places = (0..end.min(LOOKED_AT)).chain(end.saturating_sub(LOOKED_AT).max(LOOKED_AT)..end);
    let line = |piece: PathSegment| {
        Some(match piece {
            PathSegment::Step(place) => StepLine::Step(view.step(*path.get(place)?, holder(place))),
            PathSegment::Chain { first, steps } => {
                let (class, holding, _) = key(first)?;
                let class = object::class_name(summary, class);
                StepLine::Between(chains::describe(steps, class, &holding.to_string()))
            }
            PathSegment::Between(steps) => StepLine::LeftOut(chains::describe_between(steps)),
        })
    };
    chains::shorten(places, MAX_LINES, key).into_iter().filter_map(line).collect()
}

/// Returns the table of a path whose steps were already read. `left_out`: step index and number of omitted objects.
pub(in crate::cli::retention) fn table_of(steps: &[ObjectStep], left_out: (usize, usize)) -> Section {
    let lines = lines_of(steps, left_out);
    Section::table(&line_columns(), lines.iter())
}

/// Returns the lines of a path whose steps were already read. `left_out`: step index and number of omitted objects.
pub(in crate::cli::retention) fn lines_of(steps: &[ObjectStep], left_out: (usize, usize)) -> Vec<StepLine> {
    let (left_out, behind) = left_out;
    let key = |place: usize| {
        let (holder, step) = (steps.get(place.checked_sub(1)?)?, steps.get(place)?);
        let reference = step.reference.as_deref().filter(|_| left_out == 0 || place != behind)?;
        Some((holder.class.as_deref(), reference, step.class.as_deref()))
    };
    let line = |piece: PathSegment| {
        Some(match piece {
            PathSegment::Step(place) => StepLine::Step(steps.get(place)?.clone()),
            PathSegment::Chain { first, steps: count } => {
                let (class, reference, _) = key(first)?;
                StepLine::Between(chains::describe(count, class, reference))
            }
            PathSegment::Between(count) => {
                StepLine::Between(chains::describe_between(count.saturating_add(left_out)))
            }
        })
    };
    chains::shorten(0..steps.len(), MAX_LINES, key).into_iter().filter_map(line).collect()
}

fn line_columns<'a>() -> Columns<'a, &'a StepLine> {
    let size = |title, bytes: fn(&ObjectStep) -> u64| {
        Column::table(title, Align::Right, move |line: &&'a StepLine| {
            line.of_step(|step| group_digits(bytes(step)))
        })
    };
    Columns::new([
        size("shallow", |step| step.shallow_bytes).fit(Fit::Secondary { priority: 0 }),
        size("retained", |step| step.retained_bytes),
        Column::table("field", Align::Left, |line: &&'a StepLine| line.of_step(paths::describe_held))
            .fit(Fit::Shorten { priority: 0 }),
        Column::table("object", Align::Left, |line: &&'a StepLine| match line {
            StepLine::Step(step) => paths::describe_step(step),
            StepLine::Between(text) | StepLine::LeftOut(text) => text.clone(),
        })
        .fit(Fit::Shorten { priority: 0 }),
    ])
}

pub(super) fn row_schema() -> ResultSchema {
    ResultSchema {
        command: "paths-to-root",
        variant: "Objects",
        about: "If only objects are given: a row is a path; objects are in the order given, the paths to each \
                shortest first. If the shortest ones all start at locals of threads, the shortest other path is an \
                additional row.",
        rows: columns().fields(),
        summary: summary_columns().fields(),
    }
}
