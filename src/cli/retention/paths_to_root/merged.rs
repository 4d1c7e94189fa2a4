//! `paths-to-root CLASS`: the paths to many objects, merged into trees.

use std::ops::Range;

use roaring::RoaringBitmap;

use hprof_index::Dump;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::Summary;
use hprof_query::objects::selection::{Selection, SelectionKind};
use hprof_query::paths::merged::{self, MergeLimits, MergedPaths, OmittedPaths, PathNode};
use hprof_query::paths::steps::{ObjectStep, RootView, View};
use hprof_report::tree::{self, Branch};
use hprof_report::value::id;

use crate::cli::prelude::*;
use crate::cli::shared::unreachable::{self, ReachableScope};
use crate::cli::shared::{messages, object, object_columns, paths};

use super::PathExclusions;
use super::chains::{self, PathSegment};

/// Maximum number of lines of a sequence without a branch in a table; the middle of a longer one is omitted.
const MAX_LINES: usize = 12;

/// The merged paths, and descriptions of the objects on them.
struct Trees {
    merged: MergedPaths,
    /// Steps, one for each of `merged.nodes`.
    steps: Vec<ObjectStep>,
    /// Roots of the trees, in the order of the root nodes: one list for each output format, because a table shows more about a
    /// root than JSON and CSV do.
    roots: Vec<Vec<RootView>>,
    /// Indices of the selections whose classes have no objects.
    missing: Vec<usize>,
}

impl Trees {
    /// Returns the parent of a node: the object that references it.
    fn holder(&self, at: usize) -> Option<&ObjectStep> {
        self.merged.nodes.get(at)?.parent.and_then(|parent| self.steps.get(parent))
    }
}

pub(super) fn run(
    cx: &RunContext,
    input: &Input,
    output: &Output,
    selections: &[Selection],
    excluded: &PathExclusions,
    show: MergeLimits,
) -> anyhow::Result<Outcome> {
    let format = output.format();
    let (session, trees) =
        Session::ask(cx, input, |dump| find(cx, dump, selections, (excluded, cx.formats(format)), show))?;
    let mut roots = trees.roots.iter();
    cx.for_each_format(format, |cx, format| {
        let (is_table, roots) = (format == Format::Table, roots.next().map_or(&[][..], Vec::as_slice));
        let mut answer = Answer::new(columns(), rows(&trees, roots).filter(|_| !is_table))
            .with_summary(&summary_columns(), &trees.merged)
            .if_empty(NoRows::Nothing);
        if is_table {
            let lines = table_lines(session.heap.summary(), &trees, roots);
            answer = answer.with_section_above(Section::table(&table_columns(), lines));
        }
        session.show_in(cx, "paths-to-root", output, format, answer)?;
        Ok(())
    })?;
    if !input.quiet {
        notes(cx, &session, &trees, selections, excluded);
    }
    unreachable::note(cx, &session, input, ReachableScope::Reachable);
    Ok(session.outcome(trees.merged.found > 0))
}

fn find(
    cx: &RunContext,
    dump: &Dump<'_>,
    selections: &[Selection],
    (excluded, formats): (&PathExclusions, &[Format]),
    show: MergeLimits,
) -> anyhow::Result<Trees> {
    let view = excluded.view(cx, dump)?;
    let excluded = excluded.references;
    let sets: Vec<RoaringBitmap> = selections.iter().map(|selection| selection.objects(dump)).collect();
    let missing = sets.iter().enumerate().filter(|(_, set)| set.is_empty()).map(|(at, _)| at).collect();
    let objects = sets.into_iter().fold(RoaringBitmap::new(), |all, set| all | set);
    let merged = merged::merge_paths(&view.edges, &objects, excluded, show)?;
    let tops = || merged.nodes.iter().filter(|node| node.parent.is_none()).map(|node| node.object);
    let roots = |format: &Format| match format {
        Format::Table => tops().map(|object| view.start(object, excluded)).collect(),
        Format::Json | Format::Csv => tops().map(|object| view.root(object)).collect(),
    };
    let roots = formats.iter().map(roots).collect();
    Ok(Trees { steps: steps(&view, &merged.nodes), merged, roots, missing })
}

/// Returns the description of each node: the children of an object are read together.
fn steps(view: &View<'_>, nodes: &[PathNode]) -> Vec<ObjectStep> {
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by_key(|at| nodes.get(*at).map(|node| node.parent));
    let parent = |at: &usize| nodes.get(*at).and_then(|node| node.parent);
    let mut steps: Vec<(usize, ObjectStep)> = Vec::with_capacity(nodes.len());
    for siblings in order.chunk_by(|a, b| parent(a) == parent(b)) {
        let objects: Vec<ObjectIndex> =
            siblings.iter().filter_map(|at| nodes.get(*at)).map(|node| node.object).collect();
        let holder = siblings.first().and_then(parent).and_then(|parent| nodes.get(parent));
        let described = match holder {
            None => objects.iter().map(|object| view.step(*object, None)).collect(),
            Some(holder) => view.held_by(holder.object, &objects),
        };
        steps.extend(siblings.iter().copied().zip(described));
    }
    steps.sort_unstable_by_key(|(at, _)| *at);
    steps.into_iter().map(|(_, step)| step).collect()
}

/// Prints notes about what the rows cannot show.
fn notes(
    cx: &RunContext,
    session: &Session,
    trees: &Trees,
    selections: &[Selection],
    excluded: &PathExclusions,
) {
    let note = |text: &str| cx.emit("note", text);
    for selection in trees.missing.iter().filter_map(|at| selections.get(*at)) {
        match selection.what {
            SelectionKind::Object(id) => {
                messages::about_no_object(cx, session.heap.path(), &session.graph, id)
            }
            SelectionKind::Classes(_) => messages::about_no_class(cx, session.heap.summary(), selection),
        }
    }
    let MergedPaths { sought, found, only_frames, only_excluded, unreachable, followed_all, .. } =
        trees.merged;
    let of_all = |some: u64| format!("{} of {} objects", group_digits(some), group_digits(sought));
    let (references, roots) = (excluded.references(), excluded.roots());
    let (fields, has_fields) = (excluded.fields(), !excluded.fields.is_empty());
    let parts = [
        ("through excluded references", references),
        ("through excluded fields", fields),
        ("from excluded GC roots", roots.clone()),
    ];
    let parts = parts.iter().filter(|(_, what)| !what.is_empty());
    let left_out = parts.map(|(how, what)| format!("{how}: {what}")).collect::<Vec<_>>().join("; or ");
    if followed_all || only_excluded > 0 {
        let hint = if followed_all || !roots.is_empty() || has_fields {
            ""
        } else {
            "; --all-references shows them"
        };
        note(&format!("{} are reachable only {left_out}{hint}", of_all(only_excluded)));
    }
    if only_frames > 0 {
        note(&format!(
            "{} are referenced only by stack frames: no path to them goes through fields",
            of_all(only_frames)
        ));
    }
    if unreachable > 0 {
        note(&format!("{} are unreachable: there is no path to them", of_all(unreachable)));
    }
    if let (1, Some(step)) = (found, trees.steps.last())
        && sought == 1
    {
        cx.emit(
            "hint",
            &format!("`hprof-cli paths-to-root` with the object ID {:#x} shows more than one path", step.id),
        );
    }
}

/// An object on the merged paths, as a row of the result.
struct PathObject<'a> {
    node: &'a PathNode,
    step: &'a ObjectStep,
    /// Object that references this one, if it is not a root.
    parent: Option<&'a ObjectStep>,
    /// GC root, if the object has no parent.
    root: Option<&'a RootView>,
}

fn rows<'a>(trees: &'a Trees, roots: &'a [RootView]) -> impl Iterator<Item = PathObject<'a>> {
    let mut roots = roots.iter();
    trees.merged.nodes.iter().zip(&trees.steps).map(move |(node, step)| PathObject {
        node,
        step,
        parent: node.parent.and_then(|parent| trees.steps.get(parent)),
        root: if node.parent.is_none() { roots.next() } else { None },
    })
}

fn columns<'a>() -> Columns<'a, PathObject<'a>> {
    let root = Columns::new(paths::root_columns(None, |root: &RootView| root));
    let step = paths::step_columns(|row: &PathObject<'a>| row.step, |row| row.node.parent.is_none());
    Columns::new(
        step.into_iter().chain([
            Column::new(names::OBJECTS, |row: &PathObject<'a>| row.node.objects.into()),
            Column::new(names::IS_SOUGHT, |row: &PathObject<'a>| row.node.is_sought.into()),
            object_columns::shallow_bytes(|row: &PathObject<'a>| row.step.shallow_bytes),
            object_columns::retained_bytes(|row: &PathObject<'a>| row.step.retained_bytes),
            Column::new(names::DEPTH, |row: &PathObject<'a>| row.node.depth.into()),
            Column::new(names::PARENT, |row: &PathObject<'a>| id(row.parent.map(|parent| parent.id)))
                .or_null(nulls::IS_ROOT),
            Column::with_fields(names::ROOT, root.fields(), move |row: &PathObject<'a>| {
                row.root.map_or(Value::Null, |of| root.record(of))
            })
            .csv(|row| row.root.map(paths::describe_root).into())
            .or_null("it is not a root, and has a `parent`"),
        ]),
    )
}

fn summary_columns() -> Columns<'static, MergedPaths> {
    Columns::new([
        Column::new(names::TOTAL.dot(names::OBJECTS), |merged: &MergedPaths| merged.sought.into()),
        Column::new(names::TOTAL.dot(names::WITH_PATH), |merged: &MergedPaths| merged.found.into()),
        Column::new(names::TOTAL.dot(names::ONLY_FRAME_OBJECTS), |merged: &MergedPaths| {
            merged.only_frames.into()
        }),
        Column::new(names::TOTAL.dot(names::ONLY_EXCLUDED_OBJECTS), |merged: &MergedPaths| {
            merged.only_excluded.into()
        }),
        Column::new(names::TOTAL.dot(names::UNREACHABLE_OBJECTS), |merged: &MergedPaths| {
            merged.unreachable.into()
        }),
        Column::new(names::IS_THROUGH_EXCLUDED, |merged: &MergedPaths| merged.followed_all.into()),
    ])
}

/// A line of the table.
enum MergedPathLine {
    /// A node, by its index.
    Node(usize),
    /// Consecutive equal steps: index of the first step, and number of steps.
    Chain(usize, usize),
    /// Number of omitted steps in between.
    Between(usize),
    /// Number of nodes omitted below a node, or of omitted roots.
    More(OmittedPaths),
}

/// Returns the lines of the table: indentation, whether a line starts a branch, and content. Only branches are
/// indented further than their parent.
fn lines(trees: &Trees) -> Vec<(u32, bool, MergedPathLine)> {
    let merged = &trees.merged;
    let nodes = &merged.nodes;
    let mut below = vec![0usize; nodes.len()];
    for parent in nodes.iter().filter_map(|node| node.parent) {
        if let Some(below) = below.get_mut(parent) {
            *below += 1;
        }
    }
    let branches =
        |at: usize, node: &PathNode| below.get(at).copied().unwrap_or(0) + usize::from(node.more.nodes > 0);
    // The line about omitted nodes follows all nodes that are shown at the same level.
    let mut open: Vec<(u32, u32, OmittedPaths)> = Vec::new();
    let mut depths = vec![0u32; nodes.len()];
    let mut lines: Vec<(u32, bool, MergedPathLine)> = Vec::new();
    let mut steps = 0;
    for (at, node) in nodes.iter().enumerate() {
        while let Some((_, depth, more)) = open.pop_if(|(above, ..)| *above >= node.depth) {
            lines.push((depth, true, MergedPathLine::More(more)));
        }
        let above = node.parent.and_then(|parent| Some((parent, nodes.get(parent)?)));
        let (depth, starts) = match above {
            None => (1, true),
            Some((parent, above)) => {
                let depth = depths.get(parent).copied().unwrap_or(0);
                let starts = branches(parent, above) > 1;
                (depth.saturating_add(u32::from(starts)), starts)
            }
        };
        if let Some(place) = depths.get_mut(at) {
            *place = depth;
        }
        steps = if starts { 0 } else { steps + 1 };
        lines.push((depth, starts, MergedPathLine::Node(at)));
        if branches(at, node) != 1 || node.more.nodes > 0 {
            collapse_chain(&mut lines, trees, at + 1 - steps..at + 1);
            steps = 0;
        }
        if node.more.nodes > 0 {
            open.push((node.depth, depth.saturating_add(1), node.more));
        }
    }
    for (_, depth, more) in open.into_iter().rev() {
        lines.push((depth, true, MergedPathLine::More(more)));
    }
    if merged.more.nodes > 0 {
        lines.push((1, true, MergedPathLine::More(merged.more)));
    }
    lines
}

/// Shortens the lines of these last nodes, a sequence without a branch.
fn collapse_chain(lines: &mut Vec<(u32, bool, MergedPathLine)>, trees: &Trees, nodes: Range<usize>) {
    let kept = lines.len().saturating_sub(nodes.len());
    let Some((depth, ..)) = lines.get(kept) else { return };
    let depth = *depth;
    let key = |at: usize| {
        let step = trees.steps.get(at)?;
        let reference = step.reference.as_deref()?;
        Some((trees.holder(at)?.class.as_deref(), reference, step.is_static, step.class.as_deref()))
    };
    let pieces = chains::shorten(nodes, MAX_LINES, key);
    lines.truncate(kept);
    lines.extend(pieces.into_iter().map(|piece| {
        let line = match piece {
            PathSegment::Step(at) => MergedPathLine::Node(at),
            PathSegment::Chain { first, steps } => MergedPathLine::Chain(first, steps),
            PathSegment::Between(steps) => MergedPathLine::Between(steps),
        };
        (depth, false, line)
    }));
}

/// A line of the table, formatted.
struct MergedTableLine<'a> {
    objects: Option<u64>,
    step: Option<&'a ObjectStep>,
    branch: Branch,
    text: String,
}

/// Returns the lines of the table with the tree drawn.
fn table_lines<'a>(summary: &Summary, trees: &'a Trees, roots: &'a [RootView]) -> Vec<MergedTableLine<'a>> {
    let lines = lines(trees);
    let heads: Vec<u32> = lines.iter().filter(|(_, starts, _)| *starts).map(|(depth, ..)| *depth).collect();
    let mut heads = tree::branches(&heads).into_iter();
    let rows: Vec<PathObject<'_>> = rows(trees, roots).collect();
    // By depth: the start of the lines below the last branch.
    let mut below: Vec<Branch> = Vec::new();
    let mut shown = Vec::with_capacity(lines.len());
    for (depth, starts, line) in lines {
        let depth = usize::try_from(depth).unwrap_or(usize::MAX);
        let branch = if starts {
            let head = heads.next().unwrap_or_default();
            below.truncate(depth);
            below.resize(depth, Branch::default());
            below.push(Branch { depth: head.depth, lines: head.continuation() });
            head
        } else {
            below.get(depth).cloned().unwrap_or_default()
        };
        shown.push(match line {
            MergedPathLine::Node(at) => {
                let Some(row) = rows.get(at) else { continue };
                let object = paths::describe_step(row.step);
                let text = match row.root.map(paths::describe_root) {
                    Some(root) => format!("{object}: {root}"),
                    None => {
                        let reference = paths::describe_held(row.step);
                        let colon = if reference.is_empty() { "" } else { ": " };
                        format!("{reference}{colon}{object}")
                    }
                };
                MergedTableLine { objects: Some(row.node.objects.into()), step: Some(row.step), branch, text }
            }
            MergedPathLine::Chain(at, steps) => {
                let held = trees.steps.get(at).map(paths::describe_held).unwrap_or_default();
                let holder = trees.holder(at).and_then(|step| step.class.as_deref());
                let text = chains::describe(steps, holder, &held);
                MergedTableLine { objects: None, step: None, branch, text }
            }
            MergedPathLine::Between(steps) => {
                let text = chains::describe_between(steps);
                MergedTableLine { objects: None, step: None, branch, text }
            }
            MergedPathLine::More(more) => {
                let class = object::class_name(summary, more.class);
                let class = class.map(|class| format!(" of {class}")).unwrap_or_default();
                let text = format!("… {} more{class}", group_digits(more.nodes));
                MergedTableLine { objects: Some(more.objects), step: None, branch, text }
            }
        });
    }
    shown
}

fn table_columns<'a>() -> Columns<'a, MergedTableLine<'a>> {
    let number = |title, value: fn(&MergedTableLine<'a>) -> Option<u64>| {
        Column::table(title, Align::Right, move |line| value(line).map(group_digits).unwrap_or_default())
    };
    Columns::new([
        number("objects", |line| line.objects),
        number("shallow", |line| line.step.map(|step| step.shallow_bytes))
            .fit(Fit::Secondary { priority: 0 }),
        number("retained", |line| line.step.map(|step| step.retained_bytes)),
        Column::table("path", Align::Left, |line: &MergedTableLine<'a>| line.text.clone())
            .tree(|line| &line.branch)
            .fit(Fit::Shorten { priority: 0 }),
    ])
}

pub(super) fn row_schema() -> ResultSchema {
    ResultSchema {
        command: "paths-to-root",
        variant: "Classes",
        about: "If a class is given: the shortest path to each object of the classes, merged. A row is an object on \
                at least one of these paths. A path starts at a local of a thread only if there is no other path to \
                the object. Rows are in preorder: each object is followed by those that it references, those on the \
                paths to most objects first.",
        rows: columns().fields(),
        summary: summary_columns().fields(),
    }
}
