//! `redact`: a dump without its values, which answers as before; and the proof that it does.

pub(crate) mod manifest;
pub(crate) mod passing;

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use hprof_index::Progress;
use hprof_input::packed::Compression;
use hprof_input::packed::encode::Encoder;
use hprof_query::dictionary::names;
use hprof_query::dump::recover::RecoverSource;
use hprof_query::dump::redact::proof::{ProofDump, ProofRow};
use hprof_query::dump::redact::{
    self, DumpBytes, KEY_BYTES, KeptTexts, Key, Plan, RedactOptions, Redacted, TextPatterns,
};
use hprof_report::answer::{Answer, Declared};
use hprof_report::column::{Column, Columns};
use hprof_report::json::DumpHeader;
use hprof_report::number::{counted, grouped};
use hprof_report::table::TableBuilder;

use self::manifest::Manifest;
use self::passing::{FilePosition, Hashed, UntilError};
use super::account::exact;
use crate::cli::Outcome;
use crate::cli::shared::args::{IndexDir, Input, Output, index_dir_word};
use crate::cli::shared::context::RunContext;
use crate::cli::shared::output::background::in_background;
use crate::cli::shared::output::file::{Existing, OutFile, directory_of};
use crate::cli::shared::session::{AnswerSource, ensure_right};
use crate::cli::shared::terminal::progress_bar::Bar;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli redact heap.hprof -o safe.hprof.zst         values go, every object and reference stays
  ssh host cat heap.hprof.gz | hprof-cli redact - -o safe.hprof
  hprof-cli redact heap.hprof -o safe.hprof --keep 'order-*' --thread-names --prove
  hprof-cli redact --check heap.hprof safe.hprof        compares the analyses, searches for texts";

/// Write a dump without its values; all analyses stay the same
///
/// Characters of Strings, elements of primitive arrays and numbers in fields are replaced by others, with a random key
/// that is thrown away. Objects, references, classes, sizes, roots, stacks and names of classes, fields and methods
/// stay. Equal texts stay equal, and lengths stay. FILE.manifest.json, beside the output, says what was done. What somebody can still learn
/// from the dump is in docs/redact.md.
#[derive(Debug, clap::Args)]
pub(crate) struct RedactArgs {
    /// Dump, plain or compressed with gzip or zstd; `-` reads standard input, once, in bounded memory
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Input")]
    file: PathBuf,

    /// Redacted dump to compare with, for --check
    #[arg(value_name = "OUT", value_hint = clap::ValueHint::FilePath, help_heading = "Input", requires = "check")]
    redacted: Option<PathBuf>,

    /// Number of threads to use [default: all cores]
    #[arg(long, value_name = "N", help_heading = "Input", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    #[command(flatten)]
    what: WhatGoes,

    /// Read the key from KEYFILE, or write a new one to it: dumps redacted with one key can be compared
    ///
    /// Who has the key can undo the redaction.
    #[arg(long, value_name = "KEYFILE", value_hint = clap::ValueHint::FilePath, help_heading = "What goes")]
    key: Option<PathBuf>,

    /// Analyse both dumps and compare the results, object by object; search for texts of the dump in the redacted one
    #[arg(long, help_heading = "Proof")]
    prove: bool,

    /// Like --prove, for a dump that was redacted before: `redact --check FILE OUT`
    #[arg(long, help_heading = "Proof", requires = "redacted", conflicts_with_all = ["output", "prove", "key", "force"])]
    check: bool,

    #[command(flatten)]
    index: IndexDir,

    /// Write to FILE, which is created only when it is complete; compressed if its name ends in .gz or .zst
    #[arg(
        short,
        long,
        value_name = "FILE",
        value_hint = clap::ValueHint::FilePath,
        help_heading = "Output",
        required_unless_present = "check"
    )]
    output: Option<PathBuf>,

    /// Replace an existing file, and its manifest
    #[arg(long, help_heading = "Output")]
    force: bool,

    #[command(flatten)]
    format: Output,

    /// Suppress the progress bar and notes on stderr
    #[arg(short, long, overrides_with = "quiet", help_heading = "Output")]
    quiet: bool,
}

/// Options about what is replaced, and what stays.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct WhatGoes {
    /// Keep texts that match PATTERN, in which * is any text; can be repeated
    #[arg(long, value_name = "PATTERN", help_heading = "What goes")]
    keep: Vec<String>,

    /// Replace the names of threads and thread groups
    #[arg(long, help_heading = "What goes")]
    thread_names: bool,

    /// Remove line numbers from stack frames
    #[arg(long, help_heading = "What goes")]
    lines: bool,

    /// Replace the values of AtomicInteger, AtomicLong and LongAdder, of which some are sizes of queues
    #[arg(long, help_heading = "What goes")]
    strict_numbers: bool,

    /// Set numbers to 0 that would be replaced, except hashes and boxes
    #[arg(long, help_heading = "What goes")]
    zero: bool,

    /// Replace equal contents of two objects by different ones: equality is lost, and duplicates are no longer found
    #[arg(long, help_heading = "What goes")]
    break_equality: bool,
}

pub(crate) fn run(cx: &RunContext, args: &RedactArgs) -> anyhow::Result<Outcome> {
    let options = args.what.options()?;
    match (&args.redacted, &args.output) {
        (Some(redacted), None) => check(cx, args, &options, redacted),
        (_, Some(output)) => write(cx, args, &options, output),
        (None, None) => anyhow::bail!("name the redacted dump with --output"),
    }
}

/// Writes the redacted dump.
fn write(
    cx: &RunContext,
    args: &RedactArgs,
    options: &RedactOptions,
    output: &Path,
) -> anyhow::Result<Outcome> {
    let is_file =
        args.file.as_os_str() != "-" && std::fs::metadata(&args.file).is_ok_and(|there| there.is_file());
    ensure!(is_file || !args.prove, "--prove reads the dump again; give a file");
    let existing = if args.force { Existing::Replace } else { Existing::Keep };
    // Created before a long read, so that an error is reported at once.
    let inputs: Vec<&Path> = [args.file.as_path()].into_iter().chain(args.key.as_deref()).collect();
    let file = OutFile::create_private(output, &inputs, existing)?;
    let manifest_path = with_suffix(output, ".manifest.json");
    let mut manifest_file = OutFile::create_private(&manifest_path, &inputs, existing)?;
    let key = key(args.key.as_deref())?;
    let bar = Bar::new(cx, args.quiet);
    let failed = || format!("cannot write {}", output.display());
    let out = Hashed::new(BufWriter::with_capacity(1 << 16, file));
    let mut out = Encoder::new(Compression::of_name(output), out).with_context(failed)?;
    let redaction = Redaction { path: &args.file, options, key, bar: &bar };
    let (done, written) = args
        .input(output)?
        .with_threads(|| in_background(&mut out, |out| redaction.run(is_file, directory_of(output), out)))?;
    // What could not be written is the cause if both failed.
    written.with_context(failed)?;
    let done = done?;
    let out = out.finish().with_context(failed)?;
    let (output_hash, output_bytes) = (out.hash(), out.bytes);
    let file = out.inner.into_inner().map_err(|error| error.into_error()).with_context(failed)?;
    file.commit()?;
    drop(bar);
    let proof = if args.prove { Some(proof(cx, args, options, output)?) } else { None };
    let manifest = &manifest_path;
    let result = RedactedDump { args, output, done, output_bytes, output_hash, manifest, proof };
    let text = manifest::text(&result.manifest());
    manifest_file
        .write_all(text.as_bytes())
        .with_context(|| format!("cannot write {}", manifest_path.display()))?;
    manifest_file.commit()?;
    show(cx, args, &result)?;
    Ok(result.outcome(result.proof.iter().flatten().all(ProofRow::is_equal)))
}

/// Compares a dump with the redacted one.
fn check(
    cx: &RunContext,
    args: &RedactArgs,
    options: &RedactOptions,
    redacted: &Path,
) -> anyhow::Result<Outcome> {
    let rows = proof(cx, args, options, redacted)?;
    let input = args.input(redacted)?;
    let heap = input.open_quietly(cx)?;
    let mut table = TableBuilder::pairs::<&str, &str>([]);
    proof_lines(&rows, &mut |key, value| table.row([key, value]));
    heap.show(cx, "redact", &args.format, Answer::new(columns(), &rows).instead_of_table(table))?;
    Ok(heap.outcome(rows.iter().all(ProofRow::is_equal)))
}

/// Analyses both dumps and compares them.
fn proof(
    cx: &RunContext,
    args: &RedactArgs,
    options: &RedactOptions,
    redacted: &Path,
) -> anyhow::Result<Vec<ProofRow>> {
    let (input, output) = (args.input(&args.file)?, args.input(redacted)?);
    let nothing = |_: &_, _: &_| Ok(());
    let (heap, graph, ()) = input.with_graph(cx, nothing)?;
    let (redacted_heap, redacted_graph, ()) = output.with_graph(cx, nothing)?;
    let bar = Bar::new(cx, args.quiet);
    let bytes = heap.bytes(&bar)?;
    let original = ProofDump { heap: &heap, graph: &graph, bytes };
    let bytes = redacted_heap.bytes(&bar)?;
    let redacted = ProofDump { heap: &redacted_heap, graph: &redacted_graph, bytes };
    let rows = input.with_threads(|| {
        let plan = Plan::read(DumpBytes::Mapped(original.bytes, &mut |_| ()))?;
        let kept = redact::kept_texts_of_file(&plan, options, original.bytes);
        redact::proof::prove(&plan, &kept, options, original, redacted, &bar)
    })?;
    let rows = rows.with_context(|| format!("cannot analyse {}", args.file.display()))?;
    ensure_right(&graph)?;
    ensure_right(&redacted_graph)?;
    Ok(rows)
}

impl RedactArgs {
    /// Returns how to read a dump.
    fn input(&self, dump: &Path) -> anyhow::Result<Input> {
        let threads = self.threads.map(|threads| format!("--threads={threads}").into());
        let words: Vec<_> = self.index.given().map(index_dir_word).into_iter().chain(threads).collect();
        let mut input = Input::of_words(dump, &words)?;
        input.quiet = self.quiet;
        Ok(input)
    }
}

impl WhatGoes {
    pub(crate) fn options(&self) -> anyhow::Result<RedactOptions> {
        let mut keep = TextPatterns::default();
        for pattern in &self.keep {
            keep.add(pattern).with_context(|| format!("--keep {pattern}"))?;
        }
        Ok(RedactOptions {
            keep,
            thread_names: self.thread_names,
            lines: self.lines,
            strict_numbers: self.strict_numbers,
            zero: self.zero,
            break_equality: self.break_equality,
        })
    }
}

/// Returns the path with a suffix after its extension.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Returns a random key, or that of a file, which is created if it does not exist.
fn key(path: Option<&Path>) -> anyhow::Result<Key> {
    if let Some(path) = path.filter(|path| path.exists()) {
        let mut bytes = Vec::new();
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        file.take(KEY_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        let bytes: Result<[u8; KEY_BYTES], _> = bytes.try_into();
        let bytes = bytes
            .map_err(|_| anyhow::anyhow!("{} is not a key: a key has {KEY_BYTES} bytes", path.display()))?;
        return Ok(Key::new(bytes));
    }
    let bytes = random_bytes()?;
    if let Some(path) = path {
        let mut file = OutFile::create_private(path, &[], Existing::Keep)?;
        file.write_all(&bytes).with_context(|| format!("cannot write {}", path.display()))?;
        file.commit()?;
    }
    Ok(Key::new(bytes))
}

/// Returns a key that is not kept.
pub(crate) fn random_key() -> anyhow::Result<Key> {
    Ok(Key::new(random_bytes()?))
}

fn random_bytes() -> anyhow::Result<[u8; KEY_BYTES]> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("cannot obtain random bytes: {error}"))?;
    Ok(bytes)
}

/// What is done with an input.
struct Redaction<'a> {
    path: &'a Path,
    options: &'a RedactOptions,
    key: Key,
    bar: &'a Bar,
}

/// Result, and facts of the input.
pub(crate) struct Done {
    pub(crate) redacted: Redacted,
    pub(crate) input_hash: String,
    pub(crate) input_bytes: u64,
    /// Error that ended a compressed file early.
    pub(crate) packed_error: Option<String>,
    pub(crate) is_pipe: bool,
}

impl Redaction<'_> {
    fn run(self, is_file: bool, dir: &Path, out: &mut dyn Write) -> anyhow::Result<Done> {
        if is_file {
            return self.file(dir, out);
        }
        if self.path.as_os_str() == "-" {
            return self.pipe(Box::new(io::stdin().lock()), out);
        }
        let failed = || format!("cannot read {}", self.path.display());
        let file = File::open(self.path).with_context(failed)?;
        ensure!(!file.metadata().with_context(failed)?.is_dir(), "{}: it is a directory", failed());
        self.pipe(Box::new(file), out)
    }

    /// Reads a file twice. A compressed one is unpacked in `dir`, without a name.
    fn file(self, dir: &Path, out: &mut dyn Write) -> anyhow::Result<Done> {
        let source = RecoverSource::open(self.path, dir, self.bar)?;
        let bytes = source.bytes();
        let failed = || format!("cannot read {}", self.path.display());
        self.bar.begin("reading classes and names", bytes.len() as u64);
        let mut position = FilePosition::new(&source);
        let mut passed = |bytes: &[u8]| {
            self.bar.advance(bytes.len() as u64);
            position.advance(bytes.len());
        };
        let plan = Plan::read(DumpBytes::Mapped(bytes, &mut passed)).with_context(failed)?;
        let kept = redact::kept_texts_of_file(&plan, self.options, bytes);
        let mut hash = Hashed::new(io::sink());
        let mut position = FilePosition::new(&source);
        let mut passed = |bytes: &[u8]| {
            hash.pass(bytes);
            position.advance(bytes.len());
        };
        let from = DumpBytes::Mapped(bytes, &mut passed);
        let redacted = self.redacted(&plan, &kept, from, bytes.len() as u64, out)?;
        if source.was_written() {
            return Err(hprof_index::Error::Changed(self.path.to_owned()).into());
        }
        if source.packed_bytes().len() != bytes.len()
            || source.packed_error().is_some()
            || redacted.end.bytes != bytes.len() as u64
        {
            hash = Hashed::new(io::sink());
            io::copy(&mut source.packed_bytes(), &mut hash).with_context(failed)?;
        }
        Ok(Done {
            redacted,
            input_hash: hash.hash(),
            input_bytes: source.packed_bytes().len() as u64,
            packed_error: source.packed_error().map(str::to_owned),
            is_pipe: false,
        })
    }

    fn redacted(
        &self,
        plan: &Plan,
        kept: &KeptTexts,
        from: DumpBytes<'_>,
        total: u64,
        out: &mut dyn Write,
    ) -> anyhow::Result<Redacted> {
        self.bar.begin("writing the redacted dump", total);
        let advance = |bytes| self.bar.advance(bytes);
        let redacted = redact::redact(plan, kept, self.options, self.key.clone(), from, out, &advance);
        self.bar.end();
        redacted.with_context(|| format!("cannot redact {}", self.path.display()))
    }

    /// Reads a pipe once.
    fn pipe(self, from: Box<dyn Read + '_>, out: &mut dyn Write) -> anyhow::Result<Done> {
        let name =
            if self.path.as_os_str() == "-" { "standard input".into() } else { self.path.to_string_lossy() };
        let failed = || format!("cannot redact {name}");
        let mut from = Hashed::new(from);
        let mut start = Vec::new();
        from.by_ref().take(1 << 16).read_to_end(&mut start).with_context(failed)?;
        let compression = Compression::of(&start);
        ensure!(
            compression.is_none_or(|compression| !compression.is_archive()),
            "{name} is an archive; give a file"
        );
        let mut error = None;
        self.bar.begin("writing the redacted dump", 0);
        let advance = |bytes| self.bar.advance(bytes);
        let redacted = {
            let raw = start.as_slice().chain(&mut from);
            let plain: Box<dyn Read + '_> = match compression {
                Some(compression) => compression.reader(raw).with_context(failed)?,
                None => Box::new(raw),
            };
            // A compressed stream that is damaged ends there.
            let mut plain = UntilError { from: plain, is_packed: compression.is_some(), error: &mut error };
            redact::redact_pipe(self.options, self.key, &mut plain, out, &advance).with_context(failed)?
        };
        self.bar.end();
        io::copy(&mut from, &mut io::sink()).with_context(failed)?;
        Ok(Done {
            redacted,
            input_hash: from.hash(),
            input_bytes: from.bytes,
            packed_error: error,
            is_pipe: true,
        })
    }
}

/// The redacted dump, as the file of the answer.
struct RedactedDump<'a> {
    args: &'a RedactArgs,
    output: &'a Path,
    done: Done,
    output_bytes: u64,
    output_hash: String,
    manifest: &'a Path,
    /// `None` if no proof was requested.
    proof: Option<Vec<ProofRow>>,
}

impl RedactedDump<'_> {
    fn manifest(&self) -> Manifest<'_> {
        Manifest {
            input: self.args.file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default(),
            done: &self.done,
            output: self.output,
            output_bytes: self.output_bytes,
            output_hash: &self.output_hash,
            what: &self.args.what,
            is_key_kept: self.args.key.is_some(),
            proof: self.proof.as_deref(),
        }
    }
}

impl AnswerSource for RedactedDump<'_> {
    fn dump(&self) -> DumpHeader<'_> {
        DumpHeader {
            path: self.output.to_string_lossy(),
            file_bytes: Some(self.output_bytes),
            is_damaged: Some(self.is_damaged()),
            ..DumpHeader::default()
        }
    }

    fn is_damaged(&self) -> bool {
        self.done.redacted.is_damaged() || self.done.packed_error.is_some()
    }
}

fn show(cx: &RunContext, args: &RedactArgs, result: &RedactedDump<'_>) -> anyhow::Result<()> {
    let mut table = TableBuilder::pairs::<&str, &str>([]);
    table_lines(result, &mut |key, value| table.row([key, value]));
    let rows = result.proof.as_deref().unwrap_or_default();
    let answer = Answer::new(columns(), rows).beside(&beside(), result).instead_of_table(table);
    result.show(cx, "redact", &args.format, answer)?;
    Ok(())
}

fn table_lines(result: &RedactedDump<'_>, line: &mut dyn FnMut(&str, &str)) {
    let counts = &result.done.redacted.counts;
    line("output", &format!("{}, {}", result.output.display(), exact(result.output_bytes)));
    line("manifest", &result.manifest.display().to_string());
    let kept: u64 = counts.arrays_kept.values().sum();
    line(
        "arrays",
        &format!(
            "{}: {} mapped, {} kept as names, {} without values",
            grouped(counts.arrays),
            grouped(counts.arrays_mapped + counts.arrays_repeated),
            grouped(kept),
            grouped(counts.arrays_without_values)
        ),
    );
    line(
        "numbers",
        &format!(
            "{} mapped, {} kept, {} of counters kept",
            grouped(counts.numbers_mapped + counts.hashes_mapped),
            grouped(counts.numbers_kept),
            grouped(counts.counters_kept)
        ),
    );
    line(
        "symbols",
        &format!("{} mapped, {} kept as names", grouped(counts.symbols_mapped), grouped(counts.symbols_kept)),
    );
    proof_lines(result.proof.as_deref().unwrap_or_default(), line);
    if let Some(offset) = result.done.redacted.end.lost_from {
        line("damage", &format!("everything after offset {offset:#x} is missing"));
    }
    if let Some(error) = &result.done.packed_error {
        line("damage", error);
    }
    if counts.damaged_regions > 0 {
        line("damage", &format!("{} not copied", counted(counts.damaged_regions, "damaged region")));
    }
    if counts.unknown_instances > 0 {
        let text = counted(counts.unknown_instances, "instance");
        line("damage", &format!("fields of {text} set to 0: their class is not dumped before them"));
    }
}

fn proof_lines(rows: &[ProofRow], line: &mut dyn FnMut(&str, &str)) {
    for row in rows {
        let is_search = row.what.starts_with("texts");
        let mut verdict = match (row.differences, is_search) {
            (0, false) => "equal".to_owned(),
            (0, true) => "nothing found".to_owned(),
            (count, false) => format!("FAILED: {}", counted(count, "difference")),
            (count, true) => format!("FAILED: {} found", grouped(count)),
        };
        if row.allowed > 0 {
            let reason = row.reason.unwrap_or_default();
            verdict.push_str(&format!("; {} that may differ or stay: {reason}", grouped(row.allowed)));
        }
        line(row.what, &verdict);
    }
}

fn beside<'a>() -> Columns<'a, RedactedDump<'a>> {
    Columns::new([
        Column::of(names::REDACTED_FILE, |of: &RedactedDump<'a>| of.output.to_string_lossy().into()),
        Column::of(names::REDACTED_BYTES, |of: &RedactedDump<'a>| of.output_bytes.into()),
        Column::of(names::MANIFEST_FILE, |of: &RedactedDump<'a>| of.manifest.to_string_lossy().into()),
    ])
}

/// Case in which a row has no `allowed_because`.
const NOTHING_STAYS: &str = "nothing may stay";

fn columns<'a>() -> Columns<'a, &'a ProofRow> {
    Columns::new([
        Column::of(names::WHAT, |row: &&'a ProofRow| row.what.into()),
        Column::of(names::IS_EQUAL, |row: &&'a ProofRow| row.is_equal().into()),
        Column::of(names::DIFFERENCES, |row: &&'a ProofRow| row.differences.into()),
        Column::of(names::ALLOWED, |row: &&'a ProofRow| row.allowed.into()),
        Column::of(names::ALLOWED_BECAUSE, |row: &&'a ProofRow| row.reason.into()).or_null(NOTHING_STAYS),
    ])
}

pub(crate) fn declared() -> Vec<Declared> {
    vec![Declared {
        command: "redact",
        variant: "",
        about: "With `--prove` and `--check`, a row is an analysis whose results were compared, or a search for texts; there are no rows without them, and nothing beside `rows` with `--check`.",
        rows: columns().fields(),
        beside: beside().fields(),
    }]
}
