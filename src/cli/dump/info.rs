//! `info`: what a dump is.

use crate::cli::Outcome;
use crate::cli::shared::args::{Input, LayoutArgs, Output};
use crate::cli::shared::output;
use crate::cli::shared::session::Source as _;
use hprof_index::layout::fit::LayoutSource;
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::problem::Severity;
use hprof_query::dump::info::{self, HeapDumpInfo, Info};
use hprof_report::answer::{Answer, Declared};
use hprof_report::column::{Column, Columns, Field, Kind};
use hprof_report::number::grouped;
use hprof_report::table::Builder;
use hprof_report::value::{Value, list, record};

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
    let facts = Facts { info: info::info(&heap, &sizes), sizes };
    let table = table(&facts.info, &facts.sizes);
    let answer = Answer::new(columns(), [facts]).instead_of_table(table);
    heap.show("info", &args.output, answer)?;
    Ok(heap.outcome(true))
}

/// The one row.
struct Facts {
    info: Info,
    sizes: Sizes,
}

/// The object layout, and how far it can be believed.
fn layout(facts: &Facts) -> Value<'static> {
    let [model, confirmed, observed, stated] = facts.info.size_sources;
    let mut layout = Value::from(serde_json::to_value(facts.sizes.fit).unwrap_or_default());
    if let Value::Record(values) = &mut layout {
        values.push(("text".into(), facts.sizes.layout().to_string().into()));
        values.push((
            "classes_by_size_source".into(),
            record([
                ("model", model.into()),
                ("confirmed", confirmed.into()),
                ("observed", observed.into()),
                ("stated", stated.into()),
            ]),
        ));
    }
    layout
}

fn jvm(info: &Info) -> Value<'_> {
    if info.properties.is_empty() {
        return Value::Null;
    }
    let properties = info.properties.iter().map(|(key, value)| (key.as_str().into(), value.into()));
    record([("name", info.jvm().into()), ("properties", Value::Record(properties.collect()))])
}

fn heap_dumps() -> Columns<'static, (u32, HeapDumpInfo)> {
    type Row = (u32, HeapDumpInfo);
    Columns::new([
        Column::integer("number", "for `--heap-dump`, from 1", |(number, _): &Row| (*number).into()),
        Column::new("created", Kind::Time, "when it was begun", |(_, dump): &Row| {
            output::timestamp(dump.created_ms).into()
        })
        .or_null("as in `dump`"),
        Column::integer("offset", "of the first sub-record in the unpacked file", |(_, dump): &Row| {
            dump.offset.into()
        }),
        Column::integer("bytes", "of all its sub-records", |(_, dump): &Row| dump.bytes.into()),
        Column::integer("segments", "heap dump records, without empty ones", |(_, dump): &Row| {
            dump.segments.into()
        }),
        Column::new("ended", Kind::Boolean, "whether its end is there", |(_, dump): &Row| dump.ended.into()),
    ])
}

/// Fields that are integers.
fn integers(fields: &[(&'static str, &'static str)]) -> Vec<Field> {
    fields.iter().map(|(key, meaning)| Field::new(*key, Kind::Integer, meaning)).collect()
}

fn columns() -> Columns<'static, Facts> {
    let of_dump = "as in `dump`";
    let integer = |key: &'static str, meaning: &'static str, value: fn(&Info) -> u64| {
        Column::integer(key, meaning, move |facts: &Facts| value(&facts.info).into())
    };
    let mut columns = vec![
        Column::text("format", of_dump, |facts: &Facts| facts.info.version.name().into()),
        integer("id_bytes", of_dump, |info| info.id_bytes.into()),
        Column::new("created", Kind::Time, of_dump, |facts: &Facts| {
            output::timestamp(facts.info.created_ms).into()
        })
        .or_null(of_dump),
        integer("file_bytes", of_dump, |info| info.file_bytes),
        integer("dump_bytes", "length of the dump, unpacked", |info| info.dump_bytes),
        Column::text(
            "compression",
            "`gzip`, `zstd`, `tar`, `tar in gzip`, `tar in zstd` or `zip`",
            |facts: &Facts| facts.info.compression.into(),
        )
        .or_null("the file is not compressed"),
        integer("heap_dumps", "heap dumps in the file", |info| info.heap_dumps.into()),
        integer("heap_dump", of_dump, |info| info.heap_dump.into()),
        Column::new(
            "heap_dump_list",
            Kind::Records(heap_dumps().fields()),
            "those heap dumps, 1,000 at most",
            |facts: &Facts| {
                let columns = heap_dumps();
                list(
                    (1u32..)
                        .zip(&facts.info.heap_dump_list)
                        .map(|(number, dump)| columns.record(&(number, *dump))),
                )
            },
        ),
    ];
    columns.extend(heap_columns(integer));
    columns.extend(record_columns());
    columns.extend([
        Column::new(
            "heaps",
            Kind::List(Box::new(Kind::Text)),
            "names of Android's heaps (`app`, `zygote`, `image`)",
            |facts: &Facts| list(facts.info.heaps.iter().map(|(_, name)| name)),
        ),
        account::column("account", |facts: &Facts| Some(&facts.info.extent)),
        Column::new(
            "problems",
            Kind::Records(problem_fields()),
            "what is wrong or odd, damage first",
            |facts: &Facts| serde_json::to_value(&facts.info.problems).unwrap_or_default().into(),
        ),
    ]);
    Columns::new(columns)
}

/// What the heap dump holds.
fn heap_columns(
    integer: impl Fn(&'static str, &'static str, fn(&Info) -> u64) -> Column<'static, Facts>,
) -> Vec<Column<'static, Facts>> {
    vec![
        integer("objects.instances", "objects that are instances", |info| info.objects[0]),
        integer("objects.object_arrays", "arrays of references", |info| info.objects[1]),
        integer("objects.primitive_arrays", "arrays of primitives", |info| info.objects[2]),
        integer("objects.classes", "class objects", |info| info.objects[3]),
        integer("objects.total", "their sum", |info| info.objects.iter().sum()),
        integer("shallow_bytes", "what all objects take in the JVM's heap", |info| info.shallow_bytes),
        Column::new(
            "reachable",
            Kind::Record(integers(&[("objects", "reachable objects"), ("shallow_bytes", "what they take")])),
            "the reachable objects",
            |facts: &Facts| match facts.info.reachable {
                None => Value::Null,
                Some((objects, bytes)) => record([("objects", objects.into()), ("shallow_bytes", bytes.into())]),
            },
        )
        .or_null(
            "the index has no stage `dominators` yet: `index`, or any command that needs the graph, makes it",
        ),
        Column::new(
            "gc_roots",
            Kind::Record(Vec::new()),
            "roots by kind, integers; only kinds that occur: `JNI global`, `JNI local`, `java frame`, `native stack`, \
             `sticky class`, `thread block`, `monitor used`, `thread object`, `unknown`, and Android's `interned string`, \
             `finalizing`, `debugger`, `reference cleanup`, `VM internal`, `JNI monitor`, `unreachable`",
            |facts: &Facts| {
                let roots = facts.info.roots.iter();
                Value::Record(roots.map(|(kind, count)| (kind.name().into(), (*count).into())).collect())
            },
        ),
        Column::new("layout", Kind::Record(layout_fields()), "the object layout that sizes are computed with", |facts: &Facts| layout(facts)),
        Column::new(
            "jvm",
            Kind::Record(vec![
                Field::new("name", Kind::Text, "name, version and vendor in one line")
                    .or_null("the properties do not tell"),
                Field::new(
                    "properties",
                    Kind::Record(Vec::new()),
                    "system properties, strings by key. Only those that tell what JVM it was and what it ran; others may \
                     be secret",
                ),
            ]),
            "the JVM that was dumped",
            |facts: &Facts| jvm(&facts.info),
        )
        .or_null("no system property was found"),
        Column::new(
            "allocation_traces",
            Kind::Boolean,
            "whether objects carry allocation traces",
            |facts: &Facts| facts.info.has_allocation_traces.into(),
        ),
    ]
}

/// The records of the file by kind. They count the whole file; `strings`, `stack_frames` and `stack_traces` count each ID or
/// serial number once.
fn record_columns() -> Vec<Column<'static, Facts>> {
    let records = |key: &'static str, meaning: &'static str, count: fn(&info::Records) -> usize| {
        Column::integer(key, meaning, move |facts: &Facts| count(&facts.info.records).into())
    };
    vec![
        records("records.strings", "STRING IN UTF8 records, each ID once", |records| records.strings),
        records("records.load_classes", "LOAD CLASS records", |records| records.load_classes),
        records("records.unload_classes", "UNLOAD CLASS records", |records| records.unload_classes),
        records("records.stack_frames", "STACK FRAME records, each ID once", |records| records.frames),
        records("records.stack_traces", "STACK TRACE records, each serial number once", |records| {
            records.traces
        }),
        records("records.start_threads", "START THREAD records", |records| records.start_threads),
        records("records.end_threads", "END THREAD records", |records| records.end_threads),
        records("records.alloc_sites", "ALLOC SITES records", |records| records.alloc_sites),
        records("records.cpu_samples", "CPU SAMPLES records", |records| records.cpu_samples),
        records("records.heap_summaries", "HEAP SUMMARY records", |records| records.heap_summaries),
        records("records.control_settings", "CONTROL SETTINGS records", |records| records.control_settings),
        records(
            "records.heap_segments",
            "HEAP DUMP and HEAP DUMP SEGMENT records of the heap dump that was read, without empty ones",
            |records| records.heap_segments,
        ),
    ]
}

fn layout_fields() -> Vec<Field> {
    let mut fields = integers(&[
        ("reference_bytes", "bytes of a reference in an object: 4 or 8"),
        ("header_bytes", "bytes of an object's header: 8, 12 or 16"),
        ("array_base_bytes", "where an array's first element lies, for elements of up to 4 bytes"),
        ("alignment_bytes", "sizes are rounded up to a multiple of this; 1 where they are not rounded"),
        ("word_bytes", "bytes of a machine word: 4 or 8"),
    ]);
    fields.extend([
        Field::new("packing", Kind::Text, "`classic` (JDK 14 and older) or `dense` (JDK 15 and later)"),
        Field::new(
            "source",
            Kind::Text,
            "where the layout comes from: `distances` between objects, `stated-sizes` of the dump, `assumed` for want of \
             both, `given` by `--layout`",
        ),
        Field::new("sizes_stated", Kind::Boolean, "whether class dumps state the sizes of instances"),
        Field::new(
            "evidence",
            Kind::Record(integers(&[
                ("classes", "classes that were measured"),
                ("classes_exact", "of these, those as large as the layout says"),
                ("classes_refuting", "those smaller than it says"),
                ("arrays", "kinds and lengths of short arrays that were measured"),
                ("arrays_exact", "of these, those as large as the layout says"),
                ("arrays_refuting", "those smaller than it says"),
            ])),
            "what speaks for the layout",
        ),
        Field::new("text", Kind::Text, "the layout in the form that `--layout` reads"),
        Field::new(
            "classes_by_size_source",
            Kind::Record(integers(&[
                ("model", "by the layout alone"),
                ("confirmed", "by the layout and a distance that is the same"),
                ("observed", "by a distance"),
                ("stated", "by a statement of the dump"),
            ])),
            "how many of the classes with instances have a size",
        ),
    ]);
    fields
}

fn problem_fields() -> Vec<Field> {
    vec![
        Field::new(
            "severity",
            Kind::Text,
            "`note`: odd, but all of the file was read. `damage`: part of the dump is missing or unreadable",
        ),
        Field::new("kind", Kind::Text, account::PROBLEM_KINDS),
        Field::new("text", Kind::Text, "for people; can change in any version"),
        Field::new("offset", Kind::Integer, "where, in bytes from the start of the unpacked dump")
            .or_null("there is no one place"),
        Field::new("skipped_bytes", Kind::Integer, "bytes that were not read for it"),
    ]
}

pub(crate) fn declared() -> Vec<Declared> {
    vec![Declared {
        command: "info",
        variant: "",
        about: "Exactly one row.",
        rows: columns().fields(),
        beside: Vec::new(),
    }]
}

fn table(info: &Info, sizes: &Sizes) -> Builder {
    let mut table = Builder::pairs::<&str, &str>([]);
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
            line("heap dumps", format!("{several}; this is number {read} (--heap-dump N reads another)"));
            for (number, dump) in (1u32..).zip(&info.heap_dump_list) {
                let created =
                    output::timestamp(dump.created_ms).unwrap_or_else(|| "no time stated".to_owned());
                let ended = if dump.ended { "" } else { ", without an end" };
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
        format!("{} of {} frames", grouped(records.traces as u64), grouped(records.frames as u64)),
    );
    line("heap segments", grouped(records.heap_segments as u64));
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
        None => line("  reachable", "unknown: run `hprof-cli index` first".to_owned()),
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
