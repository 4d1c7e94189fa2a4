//! `paths-to-root CLASS`: the paths to many objects, merged into trees.

use std::io::Write;

use roaring::RoaringBitmap;
use serde::Serialize;
use serde_json::{Value, json};

use crate::index::{Heap, ObjectGraph, Quiet};
use crate::query::objects::selection::{Selection, What};
use crate::query::objects::strength::Excluded;
use crate::query::paths::merged::{self, Merged, More, Node, Show};
use crate::query::paths::steps::{RootView, Step, View};
use crate::report::stream::Streamed;
use crate::report::table::{Align, Builder, grouped};
use crate::report::{Format, csv, json::object_id, tree};

use super::{self as paths, Args};
use crate::cli::Outcome;
use crate::cli::shared::object::{self, AsText};
use crate::cli::shared::{messages, output};

/// Objects below each object of a table when nothing is said.
pub(crate) const USUAL_TOP: usize = 5;
/// Branches of a table when nothing is said.
pub(crate) const USUAL_BRANCHES: usize = 24;
/// Steps without a branch that a table shows; of more the middle is left out.
const MOST_STEPS: usize = 12;

/// The trees, and all that is shown of their objects.
struct Answer {
    merged: Merged,
    /// As `merged.nodes`.
    steps: Vec<Step>,
    /// The roots, in their order.
    roots: Vec<RootView>,
    /// Selections of classes without objects.
    missing: Vec<usize>,
}

pub(crate) fn run(
    args: &Args,
    selections: &[Selection],
    excluded: Excluded,
    show: Show,
) -> anyhow::Result<Outcome> {
    let (heap, _, answer) =
        args.input.with_graph(|heap, graph| answer(heap, graph, selections, excluded, show))?;
    let mut out = output::stdout();
    let format = args.output.format();
    let rows = || rows(&answer, paths::as_text(format));
    match format {
        Format::Table => table(&mut out, &heap, &answer, args)?,
        Format::Csv => csv::write_flat(&mut out, CsvRow::COLUMNS, rows().map(CsvRow::new))?,
        Format::Json => {
            let Merged { sought, found, only_excluded, unreachable, .. } = answer.merged;
            let total = json!({
                "objects": sought,
                "with_path": found,
                "only_excluded": only_excluded,
                "unreachable": unreachable,
            });
            let more = json!({ "total": total, "through_excluded": answer.merged.followed_all });
            output::json(&mut out, "paths-to-root", &heap, Streamed::new(rows()), more)?;
        }
    }
    output::finish(out)?;
    if !args.input.quiet {
        notes(&heap, &answer, selections);
    }
    Ok(paths::outcome(&heap, answer.merged.found > 0))
}

fn answer(
    heap: &Heap,
    graph: &ObjectGraph,
    selections: &[Selection],
    excluded: Excluded,
    show: Show,
) -> anyhow::Result<Answer> {
    let view = View::new(heap, graph, heap.bytes(&Quiet)?);
    let sets: Vec<RoaringBitmap> =
        selections.iter().map(|selection| selection.objects(heap.summary(), graph)).collect();
    let missing = sets.iter().enumerate().filter(|(_, set)| set.is_empty()).map(|(at, _)| at).collect();
    let objects = sets.into_iter().fold(RoaringBitmap::new(), |all, set| all | set);
    let merged = merged::merged(&view.edges, &objects, excluded, show)?;
    let roots = merged.nodes.iter().filter(|node| node.parent.is_none());
    let roots = roots.map(|node| view.root(node.object)).collect();
    Ok(Answer { steps: steps(&view, &merged.nodes), merged, roots, missing })
}

/// What is shown of each node: those that one object holds in one look at it.
fn steps(view: &View<'_>, nodes: &[Node]) -> Vec<Step> {
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by_key(|at| nodes.get(*at).map(|node| node.parent));
    let parent = |at: &usize| nodes.get(*at).and_then(|node| node.parent);
    let mut steps: Vec<(usize, Step)> = Vec::with_capacity(nodes.len());
    for siblings in order.chunk_by(|a, b| parent(a) == parent(b)) {
        let objects: Vec<u32> =
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

/// Says what rows cannot.
fn notes(heap: &Heap, answer: &Answer, selections: &[Selection]) {
    let note = |text: &str| messages::line("note", text);
    for selection in answer.missing.iter().filter_map(|at| selections.get(*at)) {
        match selection.what {
            What::Object(_) => note(&format!("there is no object {} in the dump", selection.text)),
            What::Classes(_) => paths::note_no_class(heap, selection),
        }
    }
    let Merged { sought, found, only_excluded, unreachable, followed_all, .. } = answer.merged;
    let of_all = |some: u64| format!("{} of {} objects", grouped(some), grouped(sought));
    let left_out = "references that are left out: weak, soft, phantom or finalizer";
    if followed_all {
        note(&format!("{} are held, and only through {left_out}", of_all(only_excluded)));
    } else if only_excluded > 0 {
        note(&format!(
            "{} are held only through {left_out}; --all-references shows them",
            of_all(only_excluded)
        ));
    }
    if unreachable > 0 {
        note(&format!("{} are unreachable: no path leads to them", of_all(unreachable)));
    }
    if let (1, Some(step)) = (found, answer.steps.last())
        && sought == 1
    {
        messages::line("hint", &format!("give it as an object, {:#x}, to see more than one path", step.id));
    }
}

#[derive(Serialize)]
struct RowOut {
    object: String,
    class: Option<String>,
    label: Option<String>,
    reference: Option<String>,
    strength: Option<&'static str>,
    objects: u32,
    sought: bool,
    shallow_bytes: u64,
    retained_bytes: u64,
    depth: u32,
    parent: Option<String>,
    root: Option<Value>,
    /// The root in words.
    #[serde(skip)]
    root_text: Option<String>,
}

fn rows(answer: &Answer, text: AsText) -> impl Iterator<Item = RowOut> + '_ {
    let mut roots = answer.roots.iter();
    answer.merged.nodes.iter().zip(&answer.steps).map(move |(node, step)| {
        let root = if node.parent.is_none() { roots.next() } else { None };
        let parent = node.parent.and_then(|parent| answer.steps.get(parent));
        RowOut {
            object: object_id(step.id),
            class: step.class.as_deref().map(text),
            label: step.label.as_deref().map(text),
            reference: step.reference.as_deref().map(text),
            strength: paths::strength(step, node.parent.is_none()),
            objects: node.objects,
            sought: node.is_sought,
            shallow_bytes: step.shallow_bytes,
            retained_bytes: step.retained_bytes,
            depth: node.depth,
            parent: parent.map(|parent| object_id(parent.id)),
            root: root.map(paths::root),
            root_text: root.map(|root| text(&paths::describe_root(root))),
        }
    })
}

/// The same, with the root in words.
#[derive(Serialize)]
struct CsvRow {
    object: String,
    class: Option<String>,
    label: Option<String>,
    reference: Option<String>,
    strength: Option<&'static str>,
    objects: u32,
    sought: bool,
    shallow_bytes: u64,
    retained_bytes: u64,
    depth: u32,
    parent: Option<String>,
    root: Option<String>,
}

impl CsvRow {
    const COLUMNS: &[&str] = &[
        "object",
        "class",
        "label",
        "reference",
        "strength",
        "objects",
        "sought",
        "shallow_bytes",
        "retained_bytes",
        "depth",
        "parent",
        "root",
    ];

    fn new(row: RowOut) -> Self {
        Self {
            object: row.object,
            class: row.class,
            label: row.label,
            reference: row.reference,
            strength: row.strength,
            objects: row.objects,
            sought: row.sought,
            shallow_bytes: row.shallow_bytes,
            retained_bytes: row.retained_bytes,
            depth: row.depth,
            parent: row.parent,
            root: row.root_text,
        }
    }
}

/// A line of the table.
enum Line {
    /// A node, by its place.
    Node(usize),
    /// Steps in between that are left out.
    Between(usize),
    /// What is left out below a node, or of the roots.
    More(More),
}

/// The lines of the table: how deep they are drawn, and whether a line starts a branch. Only branches are drawn deeper
/// than what they are below of.
fn lines(merged: &Merged) -> Vec<(u32, bool, Line)> {
    let nodes = &merged.nodes;
    let mut below = vec![0usize; nodes.len()];
    for parent in nodes.iter().filter_map(|node| node.parent) {
        if let Some(below) = below.get_mut(parent) {
            *below += 1;
        }
    }
    let branches =
        |at: usize, node: &Node| below.get(at).copied().unwrap_or(0) + usize::from(node.more.nodes > 0);
    // What is left out below comes behind all that is shown there.
    let mut open: Vec<(u32, u32, More)> = Vec::new();
    let mut depths = vec![0u32; nodes.len()];
    let mut lines: Vec<(u32, bool, Line)> = Vec::new();
    let mut steps = 0;
    for (at, node) in nodes.iter().enumerate() {
        while let Some((_, depth, more)) = open.pop_if(|(above, ..)| *above >= node.depth) {
            lines.push((depth, true, Line::More(more)));
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
        lines.push((depth, starts, Line::Node(at)));
        if branches(at, node) != 1 || node.more.nodes > 0 {
            cut(&mut lines, steps);
            steps = 0;
        }
        if node.more.nodes > 0 {
            open.push((node.depth, depth.saturating_add(1), node.more));
        }
    }
    for (_, depth, more) in open.into_iter().rev() {
        lines.push((depth, true, Line::More(more)));
    }
    if merged.more.nodes > 0 {
        lines.push((1, true, Line::More(merged.more)));
    }
    lines
}

/// Leaves out the middle of the last `steps` lines, which are one below the other without a branch.
fn cut(lines: &mut Vec<(u32, bool, Line)>, steps: usize) {
    if steps <= MOST_STEPS {
        return;
    }
    let kept = MOST_STEPS / 2;
    let start = lines.len() - steps + kept;
    let end = lines.len() - kept;
    let depth = lines.get(start).map_or(0, |(depth, ..)| *depth);
    lines.splice(start..end, [(depth, false, Line::Between(end - start))]);
}

fn table(out: &mut dyn Write, heap: &Heap, answer: &Answer, args: &Args) -> anyhow::Result<()> {
    let mut table = Builder::new(&[
        ("objects", Align::Right),
        ("shallow", Align::Right),
        ("retained", Align::Right),
        ("path", Align::Left),
    ]);
    let lines = lines(&answer.merged);
    let heads: Vec<u32> = lines.iter().filter(|(_, starts, _)| *starts).map(|(depth, ..)| *depth).collect();
    let mut heads = tree::branches(&heads).into_iter();
    let mut roots = answer.roots.iter();
    // By depth: how lines below the last branch begin.
    let mut below: Vec<String> = Vec::new();
    for (depth, starts, line) in lines {
        let depth = usize::try_from(depth).unwrap_or(usize::MAX);
        let lead = if starts {
            let head = heads.next().unwrap_or_default();
            below.truncate(depth);
            below.resize(depth, String::new());
            below.push(head.replace("├─ ", "│  ").replace("└─ ", "   "));
            head
        } else {
            below.get(depth).cloned().unwrap_or_default()
        };
        match line {
            Line::Node(at) => {
                let (Some(node), Some(step)) = (answer.merged.nodes.get(at), answer.steps.get(at)) else {
                    continue;
                };
                let root = if node.parent.is_none() { roots.next() } else { None };
                let text = match root {
                    Some(root) => format!("{lead}{}: {}", paths::describe(step), paths::describe_root(root)),
                    None => {
                        let reference = paths::describe_reference(step);
                        let colon = if reference.is_empty() { "" } else { ": " };
                        format!("{lead}{reference}{colon}{}", paths::describe(step))
                    }
                };
                let (shallow, retained) = (grouped(step.shallow_bytes), grouped(step.retained_bytes));
                table.row([grouped(u64::from(node.objects)), shallow, retained, text]);
            }
            Line::Between(steps) => {
                let text = format!("{lead}… {} objects in between", grouped(steps as u64));
                table.row([String::new(), String::new(), String::new(), text]);
            }
            Line::More(more) => {
                let class = object::class_name(heap.summary(), more.class);
                let class = class.map(|class| format!(" of {class}")).unwrap_or_default();
                let text = format!("{lead}… {} more{class}", grouped(more.nodes));
                table.row([grouped(more.objects), String::new(), String::new(), text]);
            }
        }
    }
    Ok(table.write(out, output::style(&args.output))?)
}
