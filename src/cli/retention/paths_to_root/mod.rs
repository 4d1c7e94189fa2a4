//! `paths-to-root`: what keeps an object alive.

pub(crate) mod merged;

use std::io::Write;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Value, json};

use crate::index::{Heap, ObjectGraph, Quiet};
use crate::query::classes::suggestions;
use crate::query::objects::selection::{Selection, What};
use crate::query::objects::strength::{Excluded, Strength};
use crate::query::paths::merged::Show;
use crate::query::paths::shortest;
use crate::query::paths::steps::{RootView, Step, View};
use crate::report::stream::Streamed;
use crate::report::table::{Align, Builder, Style, grouped};
use crate::report::{Format, csv, escape, json::object_id};

use crate::cli::Outcome;
use crate::cli::shared::args::{Input, Output};
use crate::cli::shared::object::{self, AsText};
use crate::cli::shared::{messages, output};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli paths-to-root heap.hprof 0x7c00012a8
  hprof-cli paths-to-root heap.hprof 0x7c00012a8 --paths 10 --exclude weak,phantom
  hprof-cli paths-to-root heap.hprof com.acme.Session --top 10
  hprof-cli paths-to-root heap.hprof 0x7c00012a8 --format json | jq -r '.rows[0].steps[].class'";

/// Steps of a path that a table shows at most; of more the middle is left out.
const MOST_STEPS: usize = 40;

/// What keeps objects alive: the shortest paths from the GC roots
///
/// Given objects, the shortest paths to each, every one another chain of objects, none leading through a further root.
/// Given classes, the shortest path to each of their objects, merged into trees.
///
/// What only the referent of a weak, soft or phantom reference or of a finalizer holds is not kept alive by it. Such
/// references are left out; where nothing else leads to an object, the paths over them are shown, and marked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) input: Input,

    /// Objects by id, or all objects of a class: `0x7c00012a8`, `java.util.HashMap$Node`, `byte[]`, `com.acme.**`
    #[arg(value_name = "OBJECT|CLASS", required = true, help_heading = "Filter")]
    selections: Vec<Selection>,

    /// References that are left out [default: weak,soft,phantom,finalizer]
    #[arg(
        long,
        value_name = "KIND,...",
        value_delimiter = ',',
        conflicts_with = "all_references",
        help_heading = "Filter"
    )]
    exclude: Option<Vec<StrengthArg>>,

    /// Leave no references out
    #[arg(long, help_heading = "Filter")]
    all_references: bool,

    /// Paths to each object
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3,
        value_parser = clap::value_parser!(u16).range(1..),
        help_heading = "Output"
    )]
    paths: u16,

    /// Of classes: only the N objects that lead to most, below each object; 0 for all [default: 5 in a table, all in JSON
    /// and CSV]
    #[arg(long, value_name = "N", help_heading = "Output")]
    top: Option<usize>,

    /// Of classes: only the first N steps from the roots; 0 for all [default: 0]
    #[arg(long, value_name = "N", help_heading = "Output")]
    depth: Option<u32>,

    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StrengthArg {
    /// The referent of a WeakReference
    Weak,
    /// The referent of a SoftReference
    Soft,
    /// The referent of a PhantomReference or a Cleaner
    Phantom,
    /// The referent of a Finalizer
    Finalizer,
}

impl Args {
    fn excluded(&self) -> Excluded {
        match &self.exclude {
            _ if self.all_references => Excluded::NONE,
            None => Excluded::all(),
            Some(kinds) => Excluded::of(kinds.iter().map(|kind| match kind {
                StrengthArg::Weak => Strength::Weak,
                StrengthArg::Soft => Strength::Soft,
                StrengthArg::Phantom => Strength::Phantom,
                StrengthArg::Finalizer => Strength::Finalizer,
            })),
        }
    }

    /// What is shown of merged paths.
    fn show(&self) -> Show {
        let table = self.output.format() == Format::Table;
        let usual = |number: usize| table.then_some(number);
        Show {
            top: self.top.map_or(usual(merged::USUAL_TOP), |top| (top > 0).then_some(top)),
            depth: self.depth.filter(|depth| *depth > 0),
            branches: if self.top.is_some() { None } else { usual(merged::USUAL_BRANCHES) },
        }
    }
}

/// The paths to one object.
struct Answer {
    id: u64,
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

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let objects: Option<Vec<u64>> = (args.selections.iter())
        .map(|selection| match selection.what {
            What::Object(id) => Some(id),
            What::Classes(_) => None,
        })
        .collect();
    let Some(ids) = objects else {
        return merged::run(args, &args.selections, args.excluded(), args.show());
    };
    let excluded = args.excluded();
    let most_steps = if args.output.format() == Format::Table { MOST_STEPS } else { usize::MAX };
    let (heap, _, answers) = args.input.with_graph(|heap, graph| {
        let view = View::new(heap, graph, heap.bytes(&Quiet)?);
        Ok(ids
            .iter()
            .map(|id| answer(graph, &view, *id, (args.paths, most_steps), excluded))
            .collect::<Vec<Answer>>())
    })?;
    let mut out = output::stdout();
    match args.output.format() {
        Format::Table => table(&mut out, &answers, output::style(&args.output))?,
        Format::Csv => {
            let rows = rows(&answers).map(|(answer, path)| csv_row(answer, path));
            // Without a path there is still a header.
            let columns: &[&str] =
                if answers.iter().all(|answer| answer.paths.is_empty()) { COLUMNS } else { &[] };
            if columns.is_empty() {
                csv::write_nested(&mut out, rows)?;
            } else {
                csv::write_flat(&mut out, columns, std::iter::empty::<()>())?;
            }
        }
        Format::Json => {
            let rows = rows(&answers).map(|(answer, path)| row(answer, path));
            let objects: Vec<Value> = (answers.iter())
                .map(|answer| {
                    json!({
                        "object": object_id(answer.id),
                        "found": answer.what.name(),
                        "paths": answer.paths.len(),
                        "all_paths": answer.are_all,
                    })
                })
                .collect();
            output::json(
                &mut out,
                "paths-to-root",
                &heap,
                Streamed::new(rows),
                json!({ "objects": objects }),
            )?;
        }
    }
    output::finish(out)?;
    if !args.input.quiet {
        answers.iter().for_each(notes);
    }
    let any = answers.iter().any(|answer| !answer.paths.is_empty());
    Ok(outcome(&heap, any))
}

pub(crate) fn outcome(heap: &Heap, any: bool) -> Outcome {
    match (heap.summary().is_damaged(), any) {
        (true, _) => Outcome::Damaged,
        (false, false) => Outcome::No,
        (false, true) => Outcome::Fine,
    }
}

fn answer(
    graph: &ObjectGraph,
    view: &View<'_>,
    id: u64,
    (most, most_steps): (u16, usize),
    excluded: Excluded,
) -> Answer {
    let Some(object) = graph.objects.addresses.index_of(id) else {
        return Answer { id, what: Found::NoSuchObject, paths: Vec::new(), are_all: true };
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
    Answer { id, what, paths: paths.collect(), are_all: found.are_all }
}

/// Says what rows cannot.
fn notes(answer: &Answer) {
    let id = object_id(answer.id);
    let text = match answer.what {
        Found::Paths => return,
        Found::NoSuchObject => format!("there is no object {id} in the dump"),
        Found::Unreachable => {
            format!("{id} is unreachable: no path leads to it, and the next full GC frees it")
        }
        Found::Nothing => format!("no path to {id} was found"),
        Found::OnlyExcluded => {
            format!(
                "{id} is held only through references that are left out: weak, soft, phantom or finalizer"
            )
        }
    };
    messages::line("note", &text);
}

/// Says that no class was found.
pub(crate) fn note_no_class(heap: &Heap, selection: &Selection) {
    messages::line("note", &format!("no class with objects matches {}", selection.text));
    let summary = heap.summary();
    let class = summary.classes().iter().find(|class| match &selection.what {
        What::Classes(pattern) => class.is_dumped() && pattern.matches(summary.class_name(class)),
        What::Object(_) => false,
    });
    if let Some(class) = class {
        let (name, id) = (summary.class_name(class), object_id(class.id.get()));
        messages::line("hint", &format!("the class object of {name} is {id}"));
        return;
    }
    let near = suggestions::class_names(heap.summary(), &selection.text);
    if !near.is_empty() {
        messages::line("hint", &format!("there are {}", near.join(", ")));
    }
}

fn rows(answers: &[Answer]) -> impl Iterator<Item = (&Answer, &PathView)> {
    answers.iter().flat_map(|answer| answer.paths.iter().map(move |path| (answer, path)))
}

/// A root as JSON shows it.
pub(crate) fn root(root: &RootView) -> Value {
    let frame = root.frame.as_ref().map(|frame| {
        let [class, method, source] = [&frame.class, &frame.method, &frame.source].map(Option::as_deref);
        json!({ "class": class, "method": method, "source": source, "line": frame.line() })
    });
    let thread = root.thread.as_ref();
    json!({
        "object": object_id(root.id),
        "class": root.class,
        "kinds": root.kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>(),
        "thread": thread.and_then(|thread| thread.id).map(object_id),
        "thread_name": thread.and_then(|thread| thread.name.clone()),
        "frame": frame,
        "assumed": root.is_assumed,
    })
}

/// A step as JSON shows it.
#[derive(Serialize)]
struct StepOut<'a> {
    object: String,
    class: Option<&'a str>,
    label: Option<&'a str>,
    reference: Option<&'a str>,
    strength: Option<&'static str>,
    shallow_bytes: u64,
    retained_bytes: u64,
}

/// How strongly a step is held; roots are held by nothing.
pub(crate) fn strength(step: &Step, is_root: bool) -> Option<&'static str> {
    (!is_root).then(|| step.strength.name())
}

#[derive(Serialize)]
struct RowOut<'a> {
    root: Value,
    through_excluded: bool,
    steps: Vec<StepOut<'a>>,
}

fn row<'a>(answer: &'a Answer, path: &'a PathView) -> RowOut<'a> {
    let steps = path.steps.iter().enumerate().map(|(at, step)| StepOut {
        object: object_id(step.id),
        class: step.class.as_deref(),
        label: step.label.as_deref(),
        reference: step.reference.as_deref(),
        strength: strength(step, at == 0),
        shallow_bytes: step.shallow_bytes,
        retained_bytes: step.retained_bytes,
    });
    RowOut {
        root: root(&path.root),
        through_excluded: answer.what == Found::OnlyExcluded,
        steps: steps.collect(),
    }
}

const COLUMNS: &[&str] = &[
    "root.object",
    "root.class",
    "root.kinds",
    "root.thread",
    "root.thread_name",
    "root.frame",
    "root.assumed",
    "through_excluded",
    "steps",
];

/// Rows of CSV all have the same columns: a frame is one text.
fn csv_row<'a>(answer: &'a Answer, path: &'a PathView) -> RowOut<'a> {
    let mut row = row(answer, path);
    if let Some(frame) = row.root.get_mut("frame") {
        *frame = path.root.frame.as_ref().map_or(Value::Null, |frame| Value::String(frame.to_string()));
    }
    row
}

/// A root for people: `java frame, thread "main", com.acme.Main.run(Main.java:12)`.
pub(crate) fn describe_root(root: &RootView) -> String {
    let kinds: Vec<&str> = root.kinds.iter().map(|kind| kind.name()).collect();
    let mut text = kinds.join(", ");
    if root.is_assumed {
        text.push_str(" (assumed)");
    }
    if let Some(thread) = &root.thread {
        match (&thread.name, thread.id) {
            (Some(name), _) => text.push_str(&format!(" of thread \"{name}\"")),
            (None, Some(id)) => text.push_str(&format!(" of thread {id:#x}")),
            (None, None) => text.push_str(" of an unknown thread"),
        }
    }
    if let Some(frame) = &root.frame {
        text.push_str(&format!(" in {frame}"));
    }
    if root.more_threads > 0 {
        text.push_str(&format!(", and of {} more", root.more_threads));
    }
    text
}

/// An object for people.
pub(crate) fn describe(step: &Step) -> String {
    object::describe(step.class.as_deref(), step.id, step.label.as_deref())
}

/// How a step is held, for people.
pub(crate) fn describe_reference(step: &Step) -> String {
    let prefix = if step.is_static { "static " } else { "" };
    let suffix = match step.strength {
        Strength::Strong => String::new(),
        weaker => format!(" ({})", weaker.name()),
    };
    step.reference.as_ref().map(|reference| format!("{prefix}{reference}{suffix}")).unwrap_or_default()
}

fn table(out: &mut dyn Write, answers: &[Answer], style: Style) -> anyhow::Result<()> {
    let mut is_first = true;
    for answer in answers {
        for (number, path) in answer.paths.iter().enumerate() {
            if !is_first {
                writeln!(out)?;
            }
            is_first = false;
            let through =
                if answer.what == Found::OnlyExcluded { ", through references left out" } else { "" };
            let of = if answers.len() > 1 { format!(" to {}", object_id(answer.id)) } else { String::new() };
            let heading = format!("path {}{of}{through}: {}", number + 1, describe_root(&path.root));
            writeln!(out, "{}", escape::text(&heading))?;
            steps(path).write(out, style)?;
        }
        if answer.are_all && !answer.paths.is_empty() {
            writeln!(out, "\nthere is no other path to {}", object_id(answer.id))?;
        }
    }
    Ok(())
}

/// The steps of a path, one a line.
fn steps(path: &PathView) -> Builder {
    let mut table = Builder::new(&[
        ("shallow", Align::Right),
        ("retained", Align::Right),
        ("held by", Align::Left),
        ("object", Align::Left),
    ]);
    for (at, step) in path.steps.iter().enumerate() {
        if at == MOST_STEPS / 2 && path.left_out > 0 {
            let left_out = grouped(path.left_out as u64);
            table.row(["", "", "", &format!("… {left_out} objects in between; --format json shows all")]);
        }
        table.row([
            grouped(step.shallow_bytes),
            grouped(step.retained_bytes),
            describe_reference(step),
            describe(step),
        ]);
    }
    table
}

/// As JSON has texts, or as a cell of CSV.
pub(crate) fn as_text(format: Format) -> AsText {
    if format == Format::Csv { object::cell } else { str::to_owned }
}
