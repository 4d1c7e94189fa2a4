//! `info`: what a dump is.

use std::io::Write;

use serde_json::{Map, Value, json};

use crate::index::layout::fit::Source;
use crate::index::layout::sizes::Sizes;
use crate::index::model::problem::Severity;
use crate::query::dump::info::{self, Info};
use crate::report::table::{Align, Builder, grouped, human_bytes};
use crate::report::{Format, csv};

use super::doctor;
use crate::cli::Outcome;
use crate::cli::shared::args::{Input, LayoutArgs, Output};
use crate::cli::shared::output;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli info heap.hprof
  hprof-cli info heap.hprof --format json | jq '.rows[0].jvm'
  hprof-cli info heap.hprof --layout reference=8,header=16";

/// What a dump is: format, JVM, objects, roots, layout, problems
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,

    #[command(flatten)]
    layout: LayoutArgs,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let heap = args.input.open()?;
    let sizes = args.layout.sizes(&heap);
    let info = info::info(&heap, &sizes);
    let mut out = output::stdout();
    match args.output.format() {
        Format::Table => table(&mut out, &info, &sizes, args)?,
        Format::Csv => csv::write_nested(&mut out, [row(&info, &sizes)])?,
        Format::Json => output::json(&mut out, "info", &heap, [row(&info, &sizes)], json!({}))?,
    }
    output::finish(out)?;
    Ok(if heap.summary().is_damaged() { Outcome::Damaged } else { Outcome::Fine })
}

/// The one row of the JSON answer.
fn row(info: &Info, sizes: &Sizes) -> Value {
    let [instances, object_arrays, primitive_arrays, classes] = info.objects;
    let records = &info.records;
    let [model, confirmed, observed, stated] = info.size_sources;
    let roots: Map<String, Value> =
        info.roots.iter().map(|(kind, count)| (kind.name().to_owned(), (*count).into())).collect();
    let properties: Map<String, Value> =
        info.properties.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
    let mut layout = serde_json::to_value(sizes.fit).unwrap_or_default();
    if let Value::Object(fields) = &mut layout {
        fields.insert("text".to_owned(), sizes.layout().to_string().into());
        fields.insert(
            "classes_by_size_source".to_owned(),
            json!({ "model": model, "confirmed": confirmed, "observed": observed, "stated": stated }),
        );
    }
    json!({
        "format": info.version.name(),
        "id_bytes": info.id_bytes,
        "created": output::timestamp(info.created_ms),
        "file_bytes": info.file_bytes,
        "dump_bytes": info.dump_bytes,
        "compression": info.compression,
        "heap_dumps": info.heap_dumps,
        "heap_dump": info.heap_dump,
        "heap_dump_list": (1u32..).zip(&info.heap_dump_list).map(|(number, dump)| json!({
            "number": number,
            "created": output::timestamp(dump.created_ms),
            "offset": dump.offset,
            "bytes": dump.bytes,
            "segments": dump.segments,
            "ended": dump.ended,
        })).collect::<Vec<_>>(),
        "objects": {
            "instances": instances,
            "object_arrays": object_arrays,
            "primitive_arrays": primitive_arrays,
            "classes": classes,
            "total": info.objects.iter().sum::<u64>(),
        },
        "shallow_bytes": info.shallow_bytes,
        "reachable": info.reachable.map(|(objects, bytes)| json!({ "objects": objects, "shallow_bytes": bytes })),
        "gc_roots": roots,
        "layout": layout,
        "jvm": if info.properties.is_empty() {
            Value::Null
        } else {
            json!({ "name": info.jvm(), "properties": properties })
        },
        "allocation_traces": info.has_allocation_traces,
        "records": {
            "strings": records.strings,
            "load_classes": records.load_classes,
            "unload_classes": records.unload_classes,
            "stack_frames": records.frames,
            "stack_traces": records.traces,
            "start_threads": records.start_threads,
            "end_threads": records.end_threads,
            "alloc_sites": records.alloc_sites,
            "cpu_samples": records.cpu_samples,
            "heap_summaries": records.heap_summaries,
            "control_settings": records.control_settings,
            "heap_segments": records.heap_segments,
        },
        "heaps": info.heaps.iter().map(|(_, name)| name).collect::<Vec<_>>(),
        "account": doctor::account(&info.extent),
        "problems": info.problems,
    })
}

fn table(out: &mut dyn Write, info: &Info, sizes: &Sizes, args: &Args) -> anyhow::Result<()> {
    let mut table = Builder::new(&[("", Align::Left), ("", Align::Left)]);
    let mut line = |key: &str, value: String| table.row([key, &value]);
    line("format", format!("{}, {}-byte identifiers", info.version.name(), info.id_bytes));
    line("created", output::timestamp(info.created_ms).unwrap_or_else(|| "not stated".to_owned()));
    match info.compression {
        None => line("file", exact(info.file_bytes)),
        Some(compression) => {
            line("file", format!("{}, {compression} of {}", exact(info.file_bytes), exact(info.dump_bytes)));
        }
    }
    match (info.heap_dumps, info.heap_dump) {
        (0, _) => line("heap dumps", "none".to_owned()),
        (1, _) => {}
        (several, read) => {
            line("heap dumps", format!("{several}; this is number {read} (--dump N reads another)"));
            for (number, dump) in (1u32..).zip(&info.heap_dump_list) {
                let created =
                    output::timestamp(dump.created_ms).unwrap_or_else(|| "no time stated".to_owned());
                let ended = if dump.ended { "" } else { ", without an end" };
                line(&format!("  {number}"), format!("{}, {created}{ended}", exact(dump.bytes)));
            }
        }
    }
    line("JVM", info.jvm().unwrap_or_else(|| "not told by the dump".to_owned()));
    for (key, name) in SHOWN_PROPERTIES {
        if let Some((_, value)) = info.properties.iter().find(|(property, _)| property == key)
            && !value.is_empty()
        {
            line(&format!("  {name}"), value.clone());
        }
    }

    if info.heap_dumps > 0 {
        heap_lines(info, sizes, &mut line);
    }

    let records = &info.records;
    let yes = |present: bool| if present { "yes" } else { "no" }.to_owned();
    line("allocation traces", yes(info.has_allocation_traces));
    line("ALLOC SITES", yes(records.alloc_sites > 0));
    line("CPU SAMPLES", yes(records.cpu_samples > 0));
    line(
        "stack traces",
        format!("{} of {} frames", grouped(records.traces as u64), grouped(records.frames as u64)),
    );
    line("heap segments", grouped(records.heap_segments as u64));
    if info.problems.iter().any(|problem| problem.severity == Severity::Damage) {
        doctor::extent_lines(&info.extent, &mut line);
    }
    match info.problems.as_slice() {
        [] => line("problems", "none".to_owned()),
        problems => {
            for problem in problems {
                let severity = match problem.severity {
                    Severity::Note => "note",
                    Severity::Damage => "damage",
                };
                line(severity, problem.to_string());
            }
        }
    }
    Ok(table.write(out, output::style(&args.output))?)
}

/// A size for people, and exactly.
fn exact(bytes: u64) -> String {
    format!("{} ({})", human_bytes(bytes), grouped(bytes))
}

/// What there is to say of the heap dump itself.
fn heap_lines(info: &Info, sizes: &Sizes, line: &mut dyn FnMut(&str, String)) {
    line("objects", format!("{}, {}", grouped(info.objects.iter().sum()), exact(info.shallow_bytes)));
    for (name, count) in
        ["instances", "object arrays", "primitive arrays", "class objects"].iter().zip(info.objects)
    {
        line(&format!("  {name}"), grouped(count));
    }
    match info.reachable {
        Some((objects, bytes)) => line("  reachable", format!("{}, {}", grouped(objects), exact(bytes))),
        None => line("  reachable", "not known yet: `hprof-cli index` finds out".to_owned()),
    }
    line("GC roots", grouped(info.roots.iter().map(|(_, count)| count).sum()));
    for (kind, count) in &info.roots {
        line(&format!("  {}", kind.name()), grouped(*count));
    }
    if !info.heaps.is_empty() {
        let names: Vec<&str> = info.heaps.iter().map(|(_, name)| name.as_str()).collect();
        line("heaps", names.join(", "));
    }

    line("layout", sizes.layout().to_string());
    for text in evidence(info, sizes) {
        line("  evidence", text);
    }
}

/// Properties that the table shows, with their names there.
const SHOWN_PROPERTIES: &[(&str, &str)] = &[
    ("java.vm.info", "mode"),
    ("java.home", "home"),
    ("os.name", "system"),
    ("os.version", "system version"),
    ("os.arch", "architecture"),
    ("sun.java.command", "command"),
    ("java.class.path", "class path"),
    ("user.dir", "directory"),
    ("user.timezone", "time zone"),
    ("file.encoding", "encoding"),
];

/// What speaks for the layout, in sentences.
fn evidence(info: &Info, sizes: &Sizes) -> Vec<String> {
    let fit = &sizes.fit;
    let evidence = &fit.evidence;
    let source = match fit.source {
        Source::Distances => "fitted to the distances between objects' addresses",
        Source::StatedSizes => "fitted to sizes that the dump states",
        Source::Assumed => "assumed: the dump holds nothing to fit it to",
        Source::Given => "given by --layout",
    };
    let mut lines = vec![source.to_owned()];
    if fit.sizes_stated {
        lines.push("class dumps state the sizes of instances".to_owned());
    }
    if evidence.classes > 0 {
        lines.push(format!(
            "{} of {} classes measured are exactly as the layout says, {} are smaller",
            grouped(evidence.classes_exact),
            grouped(evidence.classes),
            grouped(evidence.classes_refuting)
        ));
    }
    if evidence.arrays > 0 {
        lines.push(format!(
            "{} of {} short array lengths are exactly as the layout says, {} are smaller",
            grouped(evidence.arrays_exact),
            grouped(evidence.arrays),
            grouped(evidence.arrays_refuting)
        ));
    }
    let [model, confirmed, observed, stated] = info.size_sources;
    lines.push(format!(
        "sizes of classes with instances: {confirmed} confirmed by a distance, {observed} taken from one, {stated} stated, {model} by the layout alone"
    ));
    lines
}
