//! `roots`: the GC roots, and what they hold.

use std::io::Write;

use serde::Serialize;
use serde_json::{Value, json};

use crate::hprof::RootKind;
use crate::index::objects::roots::Roots;
use crate::index::{Heap, Quiet};
use crate::query::objects::label::Labels;
use crate::query::objects::selection::ThreadPattern;
use crate::query::paths::roots::{self, Answer, Question, Row};
use crate::query::threads::frames::Frames;
use crate::report::table::{Align, Builder, grouped, percent};
use crate::report::{Format, csv, json::object_id};

use crate::cli::Outcome;
use crate::cli::shared::args::{self, Input, Output};
use crate::cli::shared::object::{self, AsText};
use crate::cli::shared::{messages, output};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli roots heap.hprof
  hprof-cli roots heap.hprof --kind jni-global
  hprof-cli roots heap.hprof --thread main --top 0
  hprof-cli roots heap.hprof --format json | jq '.kinds'";

/// Rows of a table when nothing is said.
const USUAL_TOP: usize = 20;
/// Characters of a thread's name in a table.
const THREAD_WIDTH: usize = 28;

/// The GC roots: why the JVM keeps objects, and how much each root holds
///
/// Roots that belong to a thread (its locals, its JNI locals) count as references of the thread, so that it retains
/// them; they are listed here all the same.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,

    /// Only roots of these kinds: jni-global, java-frame, sticky-class, thread-object, ...
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kind, help_heading = "Filter")]
    kind: Vec<RootKind>,

    /// Only roots of threads whose name contains this, or matches it with `*`, or of the thread with this object id
    #[arg(long, value_name = "THREAD", help_heading = "Filter")]
    thread: Option<ThreadPattern>,

    /// Only the N that hold most; 0 for all [default: 20 in a table, all in JSON and CSV]
    #[arg(long, value_name = "N", help_heading = "Output")]
    top: Option<usize>,

    #[command(flatten)]
    output: Output,
}

/// Reads a kind: `jni-global`, or as it is shown, `JNI global`.
fn kind(text: &str) -> Result<RootKind, String> {
    let option = |kind: RootKind| kind.name().to_lowercase().replace(' ', "-");
    let wanted = text.to_lowercase().replace([' ', '_'], "-");
    let found = RootKind::ALL.into_iter().find(|kind| option(*kind) == wanted);
    found.ok_or_else(|| format!("kinds are {}", RootKind::ALL.map(option).join(", ")))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let format = args.output.format();
    let question = Question {
        kinds: args.kind.clone(),
        thread: args.thread.clone(),
        top: args::top(args.top, format, USUAL_TOP),
    };
    let (heap, graph, answer) = args.input.with_graph(|heap, graph| {
        let bytes = heap.bytes(&Quiet)?;
        let (labels, frames) = (Labels::new(heap, graph, bytes), Frames::new(heap.summary(), bytes));
        Ok(roots::roots(graph, &labels, &frames, &question))
    })?;
    let mut out = output::stdout();
    let rows = |text: AsText| answer.rows.iter().map(|row| RowOut::new(&heap, row, text)).collect::<Vec<_>>();
    match format {
        Format::Table => table(&mut out, &heap, &answer, graph.tree.reachable_bytes(), args)?,
        Format::Csv => csv::write_flat(&mut out, RowOut::COLUMNS, rows(object::cell))?,
        Format::Json => {
            output::json(&mut out, "roots", &heap, rows(str::to_owned), more(&answer, &graph.roots))?;
        }
    }
    output::finish(out)?;
    if !args.input.quiet {
        notes(&graph.roots);
    }
    Ok(match (heap.summary().is_damaged(), answer.rows.is_empty()) {
        (true, _) => Outcome::Damaged,
        (false, true) => Outcome::No,
        (false, false) => Outcome::Fine,
    })
}

/// The keys beside the rows.
fn more(answer: &Answer, roots: &Roots) -> Value {
    let kinds: Vec<Value> = (answer.kinds.iter())
        .map(|row| {
            json!({
                "kind": row.kind.name(),
                "roots": row.roots,
                "objects": row.objects,
                "retained_bytes": row.retained_bytes,
            })
        })
        .collect();
    json!({
        "kinds": kinds,
        "total": { "rows": answer.total },
        "missing_objects": roots.missing_objects,
        "missing_threads": roots.missing_threads,
        "boot_classes_assumed": roots.boot_classes_assumed,
    })
}

/// Says what is odd about the roots.
fn notes(roots: &Roots) {
    let note = |text: &str| messages::line("note", text);
    if roots.missing_objects > 0 {
        note(&format!("{} roots name objects that are not in the dump", grouped(roots.missing_objects)));
    }
    if roots.missing_threads > 0 {
        note(&format!(
            "{} roots name threads that are not in the dump; they count as roots of their own",
            grouped(roots.missing_threads)
        ));
    }
}

#[derive(Serialize)]
struct RowOut {
    object: String,
    class: Option<String>,
    label: Option<String>,
    kind: &'static str,
    thread: Option<String>,
    thread_name: Option<String>,
    frame: Option<u32>,
    location: Option<String>,
    shallow_bytes: u64,
    retained_bytes: u64,
    times: u64,
    assumed: bool,
}

impl RowOut {
    const COLUMNS: &[&str] = &[
        "object",
        "class",
        "label",
        "kind",
        "thread",
        "thread_name",
        "frame",
        "location",
        "shallow_bytes",
        "retained_bytes",
        "times",
        "assumed",
    ];

    fn new(heap: &Heap, row: &Row, text: AsText) -> Self {
        Self {
            object: object_id(row.id),
            class: object::class_name(heap.summary(), row.class).map(text),
            label: row.label.as_deref().map(text),
            kind: row.kind.name(),
            thread: row.thread.as_ref().map(|thread| object_id(thread.id)),
            thread_name: row.thread.as_ref().and_then(|thread| thread.name.as_deref()).map(text),
            frame: row.frame,
            location: row.location.as_deref().map(text),
            shallow_bytes: row.shallow_bytes,
            retained_bytes: row.retained_bytes,
            times: row.times,
            assumed: row.is_assumed,
        }
    }
}

fn table(out: &mut dyn Write, heap: &Heap, answer: &Answer, whole: u64, args: &Args) -> anyhow::Result<()> {
    let style = output::style(&args.output);
    let mut kinds = Builder::new(&[
        ("retained", Align::Right),
        ("%", Align::Right),
        ("roots", Align::Right),
        ("objects", Align::Right),
        ("kind", Align::Left),
    ]);
    for row in &answer.kinds {
        kinds.row([
            grouped(row.retained_bytes),
            percent(row.retained_bytes, whole),
            grouped(row.roots),
            grouped(row.objects),
            row.kind.name().to_owned(),
        ]);
    }
    kinds.write(out, style)?;
    writeln!(out)?;
    let mut rows = Builder::new(&[
        ("retained", Align::Right),
        ("%", Align::Right),
        ("kind", Align::Left),
        ("thread", Align::Left),
        ("id", Align::Left),
        ("object", Align::Left),
    ]);
    for row in &answer.rows {
        let class = object::class_name(heap.summary(), row.class);
        let location = row.location.as_ref().map(|location| format!(" in {location}")).unwrap_or_default();
        rows.row([
            grouped(row.retained_bytes),
            percent(row.retained_bytes, whole),
            row.kind.name().to_owned(),
            row.thread
                .as_ref()
                .map(|thread| thread_name(thread.id, thread.name.as_deref()))
                .unwrap_or_default(),
            object_id(row.id),
            format!("{}{location}", object::describe_without_id(class, row.label.as_deref())),
        ]);
    }
    rows.write(out, style)?;
    Ok(output::left_out(out, answer.rows.len(), answer.total, "roots")?)
}

fn thread_name(id: u64, name: Option<&str>) -> String {
    match name.filter(|name| !name.is_empty()) {
        None => object_id(id),
        Some(name) if name.chars().count() <= THREAD_WIDTH => name.to_owned(),
        Some(name) => name.chars().take(THREAD_WIDTH - 1).chain(['…']).collect(),
    }
}
