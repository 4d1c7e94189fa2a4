//! `info`: general facts about a dump.

use crate::cli::prelude::*;
use crate::cli::shared::args::LayoutArgs;
use crate::cli::shared::output;
use hprof_index::layout::fit::LayoutSource;
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::problem::Severity;
use hprof_index::model::record_counts::RecordCounts;
use hprof_query::dictionary::ColumnKey;
use hprof_query::dump::doctor;
use hprof_query::dump::info::{self, DumpInfo, HeapDumpInfo};
use hprof_query::dump::writer::Writer;
use hprof_report::column::JsonField;
use hprof_report::table::TableBuilder;
use hprof_report::value::{list, record};

use super::account::{self, exact, extent_lines};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli info heap.hprof
  hprof-cli info heap.hprof --format json | jq '.rows[0].jvm'
  hprof-cli info heap.hprof --layout reference=8,header=16";

/// Show a dump's format, JVM, object counts and object layout
///
/// Counts objects, classes, GC roots and threads, and lists damaged regions. The object layout is
/// detected from the object IDs; --layout overrides it. Use `doctor` to diagnose a damaged dump, and
/// `summary` for what the HPROF agent recorded.
#[derive(Debug, clap::Args)]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    input: Input,

    #[command(flatten)]
    layout: LayoutArgs,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(cx: &RunContext, args: &InfoArgs) -> anyhow::Result<Outcome> {
    let heap = args.input.open(cx)?;
    let sizes = args.layout.sizes(&heap);
    let facts = InfoFacts { info: info::info(&heap, &sizes), sizes };
    let table = table(&facts.info, &facts.sizes);
    let answer = Answer::new(columns(), [facts]).instead_of_table(table);
    heap.show(cx, "info", &args.output, answer)?;
    Ok(heap.outcome(true))
}

/// The only row of the result.
struct InfoFacts {
    info: DumpInfo,
    sizes: Sizes,
}

/// Returns the object layout and the evidence for it.
fn layout(facts: &InfoFacts) -> Value<'static> {
    let [model, confirmed, observed, stated] = facts.info.size_sources;
    let mut layout = Value::from(serde_json::to_value(facts.sizes.fit).unwrap_or_default());
    if let Value::Record(values) = &mut layout {
        values.push((names::TEXT.key.into(), facts.sizes.layout().to_string().into()));
        let sources =
            [("model", model), ("confirmed", confirmed), ("observed", observed), ("stated", stated)];
        let sources = sources.map(|(source, classes)| (source.into(), classes.into()));
        values.push((names::CLASSES_BY_SIZE_SOURCE.key.into(), Value::Record(sources.into())));
    }
    layout
}

fn jvm(info: &DumpInfo) -> Value<'_> {
    if info.properties.is_empty() {
        return Value::Null;
    }
    let properties = info.properties.iter().map(|(key, value)| (key.as_str().into(), value.into()));
    record([(names::NAME, info.jvm().into()), (names::PROPERTIES, Value::Record(properties.collect()))])
}

fn heap_dumps() -> Columns<'static, (u32, HeapDumpInfo)> {
    /// A heap dump of the file, and its number.
    type NumberedHeapDump = (u32, HeapDumpInfo);
    Columns::new([
        Column::new(names::HEAP_DUMP, |(number, _): &NumberedHeapDump| (*number).into()),
        Column::new(names::CREATED, |(_, dump): &NumberedHeapDump| output::timestamp(dump.created_ms).into())
            .or_null("as in `dump`"),
        Column::new(names::OFFSET, |(_, dump): &NumberedHeapDump| dump.offset.into()),
        Column::new(names::RECORD_BYTES, |(_, dump): &NumberedHeapDump| dump.bytes.into()),
        Column::new(names::SEGMENTS, |(_, dump): &NumberedHeapDump| dump.segments.into()),
        Column::new(names::IS_ENDED, |(_, dump): &NumberedHeapDump| dump.ended.into()),
    ])
}

fn columns() -> Columns<'static, InfoFacts> {
    let integer = |key: ColumnKey, value: fn(&DumpInfo) -> u64| {
        Column::new(key, move |facts: &InfoFacts| value(&facts.info).into())
    };
    let mut columns = vec![
        Column::new(names::FORMAT, |facts: &InfoFacts| facts.info.format.into()),
        Column::new(names::WRITER, |facts: &InfoFacts| facts.info.writer.name().into()),
        Column::new(names::DUMP_CONTENTS, |facts: &InfoFacts| {
            facts.info.missing_contents.contents().name().into()
        }),
        integer(names::ID_BYTES.into(), |info| info.id_bytes.into()),
        Column::new(names::CREATED, |facts: &InfoFacts| output::timestamp(facts.info.created_ms).into())
            .or_null("as in `dump`"),
        integer(names::FILE_BYTES.into(), |info| info.file_bytes),
        integer(names::DUMP_BYTES.into(), |info| info.dump_bytes),
        Column::new(names::COMPRESSION, |facts: &InfoFacts| facts.info.compression.into())
            .or_null(nulls::UNCOMPRESSED),
        integer(names::HEAP_DUMPS.into(), |info| info.heap_dumps.into()),
        integer(names::HEAP_DUMP.into(), |info| info.heap_dump.into()),
        Column::with_fields(names::HEAP_DUMP_LIST, heap_dumps().fields(), |facts: &InfoFacts| {
            let columns = heap_dumps();
            list(
                (1u32..)
                    .zip(&facts.info.heap_dump_list)
                    .map(|(number, dump)| columns.record(&(number, *dump))),
            )
        }),
    ];
    columns.extend(heap_columns(integer));
    columns.extend(record_columns());
    columns.extend([
        Column::new(names::HEAPS, |facts: &InfoFacts| list(facts.info.heaps.iter().map(|(_, name)| name))),
        account::column(|facts: &InfoFacts| Some(&facts.info.extent)),
        Column::with_fields(names::PROBLEMS, problem_fields(), |facts: &InfoFacts| {
            serde_json::to_value(&facts.info.problems).unwrap_or_default().into()
        }),
    ]);
    Columns::new(columns)
}

/// Returns the columns about the heap dump that was read.
fn heap_columns(
    integer: impl Fn(ColumnKey, fn(&DumpInfo) -> u64) -> Column<'static, InfoFacts>,
) -> Vec<Column<'static, InfoFacts>> {
    vec![
        integer(names::OBJECTS_BY_KIND.count("instances"), |info| info.objects[0]),
        integer(names::OBJECTS_BY_KIND.count("object_arrays"), |info| info.objects[1]),
        integer(names::OBJECTS_BY_KIND.count("primitive_arrays"), |info| info.objects[2]),
        integer(names::OBJECTS_BY_KIND.count("classes"), |info| info.objects[3]),
        integer(names::OBJECTS_BY_KIND.count("total"), |info| info.objects.iter().sum()),
        integer(names::SHALLOW_BYTES.into(), |info| info.shallow_bytes),
        Column::with_fields(
            names::REACHABLE,
            [names::OBJECTS, names::SHALLOW_BYTES].map(JsonField::new).to_vec(),
            |facts: &InfoFacts| match facts.info.reachable {
                None => Value::Null,
                Some((objects, bytes)) => {
                    record([(names::OBJECTS, objects.into()), (names::SHALLOW_BYTES, bytes.into())])
                }
            },
        )
        .or_null(
            "the index has no stage `dominators` yet: `index`, or any command that needs the graph, builds it",
        ),
        Column::with_fields(names::GC_ROOTS, Vec::new(), |facts: &InfoFacts| {
            let roots = facts.info.roots.iter();
            Value::Record(roots.map(|(kind, count)| (kind.name().into(), (*count).into())).collect())
        }),
        Column::with_fields(names::LAYOUT, layout_fields(), |facts: &InfoFacts| layout(facts)),
        Column::with_fields(
            names::JVM,
            vec![
                JsonField::new(names::NAME).or_null("not in the properties"),
                JsonField::with_fields(names::PROPERTIES, Vec::new()),
            ],
            |facts: &InfoFacts| jvm(&facts.info),
        )
        .or_null("no system property was found"),
        Column::new(names::IS_ALLOCATION_TRACE_DUMPED, |facts: &InfoFacts| {
            facts.info.has_allocation_traces.into()
        }),
    ]
}

/// Returns the columns with the number of records by kind in the whole file; `strings`, `stack_frames` and `stack_traces`
/// are the numbers of distinct IDs or serial numbers.
fn record_columns() -> Vec<Column<'static, InfoFacts>> {
    let records = |kind: &str, count: fn(&RecordCounts) -> usize| {
        Column::new(names::RECORDS.count(kind), move |facts: &InfoFacts| count(&facts.info.records).into())
    };
    vec![
        records("strings", |records| records.strings),
        records("load_classes", |records| records.load_classes),
        records("unload_classes", |records| records.unload_classes),
        records("stack_frames", |records| records.frames),
        records("stack_traces", |records| records.traces),
        records("start_threads", |records| records.start_threads),
        records("end_threads", |records| records.end_threads),
        records("alloc_sites", |records| records.alloc_sites),
        records("cpu_samples", |records| records.cpu_samples),
        records("heap_summaries", |records| records.heap_summaries),
        records("control_settings", |records| records.control_settings),
        records("heap_segments", |records| records.heap_segments),
    ]
}

fn layout_fields() -> Vec<JsonField> {
    let evidence = [
        names::CLASSES,
        names::CLASSES_EXACT,
        names::CLASSES_REFUTING,
        names::ARRAYS,
        names::ARRAYS_EXACT,
        names::ARRAYS_REFUTING,
    ];
    vec![
        JsonField::new(names::REFERENCE_BYTES),
        JsonField::new(names::HEADER_BYTES),
        JsonField::new(names::ARRAY_BASE_BYTES),
        JsonField::new(names::ALIGNMENT_BYTES),
        JsonField::new(names::WORD_BYTES),
        JsonField::new(names::PACKING),
        JsonField::new(names::LAYOUT_SOURCE),
        JsonField::new(names::IS_SIZE_STATED),
        JsonField::with_fields(names::EVIDENCE, evidence.map(JsonField::new).to_vec()),
        JsonField::new(names::TEXT),
        JsonField::with_fields(names::CLASSES_BY_SIZE_SOURCE, Vec::new()),
    ]
}

fn problem_fields() -> Vec<JsonField> {
    vec![
        JsonField::new(names::SEVERITY),
        JsonField::new(names::KIND),
        JsonField::new(names::TEXT),
        JsonField::new(names::OFFSET).or_null(nulls::SEVERAL_OFFSETS),
        JsonField::new(names::SKIPPED_BYTES),
    ]
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![ResultSchema {
        command: "info",
        variant: "",
        about: "Exactly one row.",
        rows: columns().fields(),
        summary: Vec::new(),
    }]
}

fn table(info: &DumpInfo, sizes: &Sizes) -> TableBuilder {
    let mut table = TableBuilder::pairs::<&str, &str>([]);
    let mut line = |key: &str, value: String| table.row([key, &value]);
    line("format", format!("{}, {}-byte identifiers", info.format, info.id_bytes));
    line("written by", writer(info.writer).to_owned());
    if info.writer == Writer::TextReport {
        line("contents", "removed: a text report contains no values".to_owned());
    } else if let Some(missing) = doctor::describe_missing(info.missing_contents) {
        line("contents", missing);
    }
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
            line("heap dumps", format!("{several}; this is number {read} (--heap-dump N reads another)"));
            for (number, dump) in (1u32..).zip(&info.heap_dump_list) {
                let created =
                    output::timestamp(dump.created_ms).unwrap_or_else(|| "no time stated".to_owned());
                let ended = if dump.ended { "" } else { ", without an end record" };
                line(&format!("  {number}"), format!("{}, {created}{ended}", exact(dump.bytes)));
            }
        }
    }
    line("JVM", info.jvm().unwrap_or_else(|| "unknown".to_owned()));
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
        format!(
            "{}, with {} frames",
            group_digits(records.traces as u64),
            group_digits(records.frames as u64)
        ),
    );
    line("heap segments", group_digits(records.heap_segments as u64));
    if info.problems.iter().any(|problem| problem.severity == Severity::Damage) {
        extent_lines(&info.extent, &mut line);
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
    table
}

/// Adds table lines about the heap dump that was read.
fn heap_lines(info: &DumpInfo, sizes: &Sizes, line: &mut dyn FnMut(&str, String)) {
    line("objects", format!("{}, {}", group_digits(info.objects.iter().sum()), exact(info.shallow_bytes)));
    for (name, count) in
        ["instances", "object arrays", "primitive arrays", "class objects"].iter().zip(info.objects)
    {
        line(&format!("  {name}"), group_digits(count));
    }
    match info.reachable {
        Some((objects, bytes)) => line("  reachable", format!("{}, {}", group_digits(objects), exact(bytes))),
        None => line("  reachable", "unknown: run `hprof-cli index` first".to_owned()),
    }
    line("GC roots", group_digits(info.roots.iter().map(|(_, count)| count).sum()));
    for (kind, count) in &info.roots {
        line(&format!("  {}", kind.name()), group_digits(*count));
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

/// System properties shown in the table, with their labels.
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

/// Describes the evidence for the object layout, in sentences.
fn evidence(info: &DumpInfo, sizes: &Sizes) -> Vec<String> {
    let fit = &sizes.fit;
    let evidence = &fit.evidence;
    let source = match fit.source {
        LayoutSource::Distances => "fitted to the distances between objects' addresses",
        LayoutSource::StatedSizes => "fitted to sizes that the dump states",
        LayoutSource::Assumed => "assumed: the dump contains nothing to fit it to",
        LayoutSource::Given => "given by --layout",
    };
    let mut lines = vec![source.to_owned()];
    if fit.sizes_stated {
        lines.push("class dumps state the sizes of instances".to_owned());
    }
    if evidence.classes > 0 {
        lines.push(format!(
            "{} of {} measured classes match the layout exactly, {} are smaller",
            group_digits(evidence.classes_exact),
            group_digits(evidence.classes),
            group_digits(evidence.classes_refuting)
        ));
    }
    if evidence.arrays > 0 {
        lines.push(format!(
            "{} of {} short array lengths match the layout exactly, {} are smaller",
            group_digits(evidence.arrays_exact),
            group_digits(evidence.arrays),
            group_digits(evidence.arrays_refuting)
        ));
    }
    let [model, confirmed, observed, stated] = info.size_sources;
    lines.push(format!(
        "classes by source of instance size: {confirmed} layout confirmed by distances, {observed} measured \
         distances, {stated} stated in the dump, {model} layout alone"
    ));
    lines
}

/// Returns the name of a writer for readers.
const fn writer(writer: Writer) -> &'static str {
    match writer {
        Writer::HotSpot => "HotSpot",
        Writer::ServiceabilityAgent => "HotSpot's serviceability agent (jhsdb jmap)",
        Writer::Jvmpi => "the HPROF agent of JDK 1.2 to 1.4",
        Writer::Android => "Android",
        Writer::NativeImage => "a GraalVM native image",
        Writer::Agent => "an HPROF agent",
        Writer::TextReport => "hprof-cli, from a text report",
        Writer::Unknown => "unknown",
    }
}
