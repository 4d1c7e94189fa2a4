//! `recover`: creates one well-formed dump from the readable parts of damaged files.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::Context;

use hprof_query::recover::{RecoverFinding, RecoverReport, RecoverSource, Recovery};
use hprof_report::json::DumpHeader;
use hprof_report::number::format_count;
use hprof_report::table::TableBuilder;

use super::account::{self, exact, extent_lines};
use super::doctor::{finding_columns, finding_lines};
use crate::cli::prelude::*;
use crate::cli::shared::output::file::{OutFile, OverwritePolicy, directory_of};
use crate::cli::shared::terminal::progress_bar::Bar;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli recover heap.hprof heap.hprof.p* -o saved.hprof   segments of a JVM that was killed
  hprof-cli recover heap.hprof heap.hprof.p* -o saved.hprof --names older.hprof
  hprof-cli recover truncated.hprof.gz -o readable.hprof";

/// Recover a well-formed dump from damaged files
///
/// Saves all complete records of segments that the JVM did not merge (JDK 22 and later write FILE.p0, FILE.p1 and so
/// on), of truncated dumps, plain or compressed, and of dumps with damaged regions. Prints what was saved and what is
/// missing. The files themselves are not changed. Classes whose names are lost are named unnamed.ClassN, unless --names
/// finds them by their fields in another dump of the same program.
#[derive(Debug, clap::Args)]
pub(crate) struct RecoverArgs {
    /// Files of one dump: the dump, plain or compressed, and its segments in any order
    #[arg(value_name = "FILE", required = true, value_hint = clap::ValueHint::FilePath, help_heading = "Input")]
    files: Vec<PathBuf>,

    /// Take missing class names from another dump of the same program
    #[arg(long, value_name = "OTHER", value_hint = clap::ValueHint::FilePath, help_heading = "Input")]
    names: Option<PathBuf>,

    /// Number of threads to use [default: all cores]
    #[arg(long, value_name = "N", help_heading = "Input", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Write to FILE, which is created only when it is complete
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Output")]
    output: PathBuf,

    /// Replace an existing file
    #[arg(long, help_heading = "Output")]
    force: bool,

    #[command(flatten)]
    format: Output,

    /// Suppress the progress bar and notes on stderr
    #[arg(short, long, overrides_with = "quiet", help_heading = "Output")]
    quiet: bool,
}

pub(crate) fn run(cx: &RunContext, args: &RecoverArgs) -> anyhow::Result<Outcome> {
    let files = distinct(&args.files);
    let inputs: Vec<&Path> = files.iter().copied().chain(&args.names).map(PathBuf::as_path).collect();
    let existing = OverwritePolicy::new(args.force);
    // Created before a long read, so that an error is reported at once.
    let file = OutFile::create_private(&args.output, &inputs, existing)?;
    let bar = Bar::new(cx, args.quiet);
    let threads = args.threads.map(|threads| format!("--threads={threads}").into());
    let input = Input::of_words(&args.output, threads.as_slice())?;
    let open = |path: &PathBuf| RecoverSource::open(path, directory_of(&args.output), &bar);
    let opened = input.with_threads(|| {
        let sources = files.iter().copied().map(open).collect::<Result<Vec<_>, _>>()?;
        anyhow::Ok((sources, args.names.as_ref().map(open).transpose()?))
    });
    let (sources, other) = opened??;
    let recovery = input.with_threads(|| Recovery::read(&sources, other.as_ref(), &bar))??;
    let report = recovery.report();
    if !args.quiet {
        about_others(cx, &report.not_given);
    }
    if report.saved.objects() == 0 {
        cx.emit("note", "the files contain no complete object: no dump was written");
        drop(bar);
        show(cx, args, &RecoveredDump { input: &files, output: None, report })?;
        return Ok(Outcome::No);
    }
    let mut out = BufWriter::with_capacity(1 << 16, file);
    let failed = || format!("cannot write {}", args.output.display());
    let output_bytes = recovery.write(&mut out, &bar).with_context(failed)?;
    let file = out.into_inner().map_err(|error| error.into_error()).with_context(failed)?;
    for source in &sources {
        source.check_unwritten()?;
    }
    file.commit()?;
    drop(bar);
    let recovered = RecoveredDump { input: &files, output: Some((&args.output, output_bytes)), report };
    show(cx, args, &recovered)?;
    Ok(recovered.outcome(true))
}

/// Returns the files without duplicates.
fn distinct(files: &[PathBuf]) -> Vec<&PathBuf> {
    let mut seen = BTreeSet::new();
    files
        .iter()
        .filter(|file| seen.insert(file.canonicalize().unwrap_or_else(|_| file.to_path_buf())))
        .collect()
}

/// Shows the result.
fn show(cx: &RunContext, args: &RecoverArgs, recovered: &RecoveredDump<'_>) -> anyhow::Result<()> {
    let report = recovered.report;
    let mut table = TableBuilder::pairs::<&str, &str>([]);
    table_lines(recovered, &mut |key, value| table.row([key, value]));
    let answer = Answer::new(columns(), &report.findings)
        .with_summary(&summary_columns(), recovered)
        .instead_of_table(table);
    recovered.show(cx, "recover", &args.format, answer)?;
    Ok(())
}

/// Prints a note about other files of the dump that were not given: without them, the recovered dump is not complete.
fn about_others(cx: &RunContext, others: &[PathBuf]) {
    if let Some(first) = others.first().map(|path| path.display()) {
        let text = match others.len() {
            1 => format!("{first} is part of the same dump; name it too"),
            count => {
                let more = format_count(count as u64 - 1, "more file");
                format!("{first} and {more} are parts of the same dump; name them too")
            }
        };
        cx.emit("hint", &text);
    }
}

/// The recovered dump, as the source file of the result.
struct RecoveredDump<'a> {
    input: &'a [&'a PathBuf],
    /// Path and length in bytes of the dump, if one was written.
    output: Option<(&'a Path, u64)>,
    report: &'a RecoverReport,
}

impl<'a> RecoveredDump<'a> {
    /// Returns the path of the dump, or of the first file if none was written.
    fn path(&self) -> &'a Path {
        let first = || self.input.first().map_or(Path::new(""), |path| path.as_path());
        self.output.map_or_else(first, |(path, _)| path)
    }
}

impl AnswerSource for RecoveredDump<'_> {
    fn header(&self) -> DumpHeader<'_> {
        DumpHeader {
            path: self.path().to_string_lossy(),
            file_bytes: self.output.map(|(_, bytes)| bytes),
            is_damaged: Some(self.is_damaged()),
            ..DumpHeader::default()
        }
    }

    fn is_damaged(&self) -> bool {
        self.report.is_damaged()
    }
}

fn classes(count: u64) -> String {
    if count == 1 { "1 class is".to_owned() } else { format!("{} classes are", group_digits(count)) }
}

fn table_lines(recovered: &RecoveredDump<'_>, line: &mut dyn FnMut(&str, &str)) {
    let RecoveredDump { output, report, .. } = recovered;
    let RecoverReport { saved, extent, .. } = report;
    let verdict = if output.is_none() {
        "nothing was saved: the files contain no complete object"
    } else if report.is_damaged() {
        "part of the dump is missing"
    } else {
        "everything in the files was saved, and nothing is known to be missing"
    };
    line("verdict", verdict);
    if let Some((path, bytes)) = output {
        line("output", &format!("{}, {}", path.display(), exact(*bytes)));
    }
    let kinds = [
        format_count(saved.instances, "instance"),
        format_count(saved.object_arrays, "object array"),
        format_count(saved.primitive_arrays, "primitive array"),
    ];
    let objects = format!(
        "{}: {}, {}",
        group_digits(saved.objects()),
        kinds.join(", "),
        format_count(saved.classes, "class object")
    );
    line("objects", &objects);
    line("GC roots", &group_digits(saved.roots));
    if report.unnamed_classes > 0 {
        line("unnamed", &format!("{} identified only by fields", classes(report.unnamed_classes)));
    }
    if report.classes_named > 0 {
        line("named", &format!("{} named after the other dump", classes(report.classes_named)));
    }
    extent_lines(extent, &mut |key, value| line(key, &value));
    let mut file: Option<&Path> = None;
    for found in &report.findings {
        if found.file.as_deref() != file {
            file = found.file.as_deref();
            line("file", &file.map_or(Cow::Borrowed("all files"), |file| file.to_string_lossy()));
        }
        finding_lines([&found.finding], line);
    }
}

/// Condition under which the output is missing.
const NOT_WRITTEN: &str = "no dump was written: the files contain no complete object";

fn summary_columns<'a>() -> Columns<'a, RecoveredDump<'a>> {
    let kinds = Columns::new([
        Column::new(names::INSTANCES, |of: &RecoverReport| of.saved.instances.into()),
        Column::new(names::OBJECT_ARRAYS, |of: &RecoverReport| of.saved.object_arrays.into()),
        Column::new(names::PRIMITIVE_ARRAYS, |of: &RecoverReport| of.saved.primitive_arrays.into()),
        Column::new(names::CLASSES, |of: &RecoverReport| of.saved.classes.into()),
        Column::new(names::TOTAL, |of: &RecoverReport| of.saved.objects().into()),
    ]);
    Columns::new([
        Column::new(names::RECOVERED_FILE, |of: &RecoveredDump<'a>| {
            of.output.map(|(path, _)| path.to_string_lossy().into_owned()).into()
        })
        .or_null(NOT_WRITTEN),
        Column::new(names::RECOVERED_BYTES, |of: &RecoveredDump<'a>| {
            of.output.map(|(_, bytes)| bytes).into()
        })
        .or_null(NOT_WRITTEN),
        Column::with_fields(names::OBJECTS_BY_KIND, kinds.fields(), move |of: &RecoveredDump<'a>| {
            kinds.record(of.report)
        }),
        Column::new(names::GC_ROOTS_TOTAL, |of: &RecoveredDump<'a>| of.report.saved.roots.into()),
        Column::new(names::UNNAMED_CLASSES, |of: &RecoveredDump<'a>| of.report.unnamed_classes.into()),
        Column::new(names::CLASSES_NAMED, |of: &RecoveredDump<'a>| of.report.classes_named.into()),
        account::column(|of: &RecoveredDump<'a>| Some(&of.report.extent)),
    ])
}

fn columns<'a>() -> Columns<'a, &'a RecoverFinding> {
    let file = Column::new(names::FILE, |row: &&'a RecoverFinding| {
        row.file.as_ref().map(|file| file.to_string_lossy().into_owned()).into()
    });
    let file = file.or_null("the finding is about all files together");
    Columns::new([file].into_iter().chain(finding_columns(|row: &&'a RecoverFinding| &row.finding)))
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![ResultSchema {
        command: "recover",
        variant: "",
        about: "What is missing from the recovered dump, in the words of `doctor`. A row is a finding about one of the files, or about all of them; similar findings about a file share a row. Kinds are those of `doctor`, and `empty_file`, `overlap`, `segments_merged`, `segments_incomplete` and `classes_by_shape`. `objects` and `gc_roots_total` count what was saved, `account` what was read of all files together.",
        rows: columns().fields(),
        summary: summary_columns().fields(),
    }]
}
