//! `redact`: writes a dump without its values that gives the same results, and proves that it does.

mod analyses;
mod answer;
pub(crate) mod manifest;
pub(crate) mod mapping;
pub(crate) mod passing;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, ensure};

use hprof_capture::{self as capture, Encoder};
use hprof_index::storage::temporary_files::TemporaryDir;
use hprof_index::{DumpGraph, Error, Heap, ObjectGraph, Progress};
use hprof_input::file::TextFile;
use hprof_input::packed::Compression;
use hprof_query::keyed::Key;
use hprof_query::naming::pattern::ClassPattern;
use hprof_query::recover::RecoverSource;
use hprof_query::redact::proof::ProofRow;
use hprof_query::redact::{
    self, ClassRenames, DumpBytes, KeptValues, Plan, RedactOptions, RedactReport, TextPatterns,
};
use hprof_report::table::TableBuilder;

use self::analyses::CommandAnalyses;
use self::answer::RedactedDump;
pub(crate) use self::answer::row_schema;
use self::mapping::ClassMapping;
use self::passing::{FilePosition, HashingStream, UntilError};
use crate::cli::prelude::*;
use crate::cli::shared::args::{IndexDir, index_dir_word};
use crate::cli::shared::key_file;
use crate::cli::shared::output::background::in_background;
use crate::cli::shared::output::file::{OutFile, OverwritePolicy, directory_of};
use crate::cli::shared::session::ensure_right;
use crate::cli::shared::terminal::progress_bar::Bar;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli redact heap.hprof -o safe.hprof.zst         replaces values, keeps all objects and references
  ssh host cat heap.hprof.gz | hprof-cli redact - -o safe.hprof
  hprof-cli redact heap.hprof -o safe.hprof --keep 'order-*' --thread-names --prove
  hprof-cli redact heap.hprof -o safe.hprof --classes 'com.acme.**'
  hprof-cli redact --check heap.hprof safe.hprof        compares analyses, searches for texts";

/// Write a dump without its values; analyses give the same results
///
/// Characters of Strings, elements of primitive arrays and numbers in fields are replaced by others, with a random key
/// that is discarded. Objects, references, classes, sizes, roots, stacks and names of classes, fields and methods do
/// not change. Equal texts remain equal and have the same length. FILE.manifest.json, next to the output, describes
/// what was replaced. docs/redact.md describes what the dump still reveals.
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

    /// Analyse both dumps and compare the results, object by object; search for texts of the dump in the redacted one
    ///
    /// If the proof fails, no file is written, and the exit code is not 0.
    #[arg(long, help_heading = "Proof")]
    prove: bool,

    /// Like --prove, for an already redacted dump: `redact --check FILE OUT`
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
    /// Keep texts that match PATTERN, in which * matches any text; may be repeated
    #[arg(long, value_name = "PATTERN", help_heading = "Redaction")]
    keep: Vec<String>,

    /// Replace the names of threads and thread groups
    #[arg(long, help_heading = "Redaction")]
    thread_names: bool,

    /// Remove line numbers from stack frames
    #[arg(long, help_heading = "Redaction")]
    lines: bool,

    /// Also replace numbers that only make answers more precise: limits of queues and threads, priorities and IDs of
    /// threads, booleans
    ///
    /// A note lists the answers that become wrong or incomplete. Sizes of collections and states of threads are kept;
    /// docs/redact.md lists everything that is kept.
    #[arg(long, help_heading = "Redaction")]
    strict_numbers: bool,

    /// Set replaced numbers to 0, except hash codes and boxed numbers
    #[arg(long, help_heading = "Redaction")]
    zero: bool,

    /// Rename classes that match PATTERN (`com.acme.**`), their nested classes and arrays; may be repeated
    ///
    /// `com.acme.Order` becomes `c1.C17` in names of classes, and in signatures and source files of stack frames; texts
    /// in the heap that are such names are replaced. The mapping is written to FILE.classes.json, next to the output.
    /// If a pattern matches no class, no file is written, and the exit code is 1.
    #[arg(long, value_name = "PATTERN", help_heading = "Redaction")]
    pub(crate) classes: Vec<ClassPattern>,

    /// Replace equal contents of two objects by different contents: duplicates are no longer found
    #[arg(long, help_heading = "Redaction")]
    break_equality: bool,

    /// Read the key from KEYFILE, or write a new one to it; dumps redacted with the same key can be compared
    ///
    /// Anyone who has the key can undo the redaction.
    #[arg(long, value_name = "KEYFILE", value_hint = clap::ValueHint::FilePath, help_heading = "Redaction")]
    pub(crate) key: Option<PathBuf>,
}

pub(crate) fn run(cx: &RunContext, args: &RedactArgs) -> anyhow::Result<Outcome> {
    let options = args.what.options()?;
    ensure!(
        !is_regular_file(&args.file) || TextFile::open(&args.file).map_err(Error::from)?.is_none(),
        "{} is a text report, which has no values; to rename its classes, make a dump of it with `hprof-cli convert FILE -o \
         FILE.hprof`, and redact that",
        args.file.display()
    );
    match (&args.redacted, &args.output) {
        (Some(redacted), None) => check(cx, args, &options, redacted),
        (_, Some(output)) => write(cx, args, &options, output),
        (None, None) => anyhow::bail!("name the redacted dump with --output"),
    }
}

/// Returns `true` for a file that can be read twice, unlike a pipe.
fn is_regular_file(path: &Path) -> bool {
    path.as_os_str() != "-" && path.is_file()
}

/// Writes the redacted dump.
fn write(
    cx: &RunContext,
    args: &RedactArgs,
    options: &RedactOptions,
    output: &Path,
) -> anyhow::Result<Outcome> {
    let is_file = is_regular_file(&args.file);
    ensure!(
        is_file || !args.prove,
        "--prove reads the dump twice, which needs a regular file; save it to a file first"
    );
    let existing = OverwritePolicy::new(args.force);
    // Created before a long read, so that an error is reported at once.
    let inputs: Vec<&Path> = [args.file.as_path()].into_iter().chain(args.what.key.as_deref()).collect();
    let file = OutFile::create_private(output, &inputs, existing)?;
    let manifest_path = with_suffix(output, ".manifest.json");
    let mut manifest_file = OutFile::create_private(&manifest_path, &inputs, existing)?;
    let mapping = ClassMapping::create(&args.what, output, &inputs, existing)?;
    let key = args.what.key()?;
    let bar = Bar::new(cx, args.quiet);
    let failed = || format!("cannot write {}", output.display());
    let out = HashingStream::new(BufWriter::with_capacity(1 << 16, file));
    let mut out = Encoder::new(capture::Compression::of_name(output), out).with_context(failed)?;
    let redaction = Redaction { path: &args.file, options, key, bar: &bar };
    let (done, written) = args
        .input(output)?
        .with_threads(|| in_background(&mut out, |out| redaction.run(is_file, directory_of(output), out)))?;
    // If both failed, the write error is the cause.
    written.with_context(failed)?;
    let done = done?;
    let out = out.finish().with_context(failed)?;
    let (output_hash, output_bytes) = (out.hash(), out.bytes);
    let file = out.inner.into_inner().map_err(|error| error.into_error()).with_context(failed)?;
    drop(bar);
    let is_matched = warn_unmatched(cx, &done.redacted.renames);
    let is_proved = args.prove && is_matched;
    let proof = if is_proved { Some(prove_unnamed(cx, args, options, output, &file)?) } else { None };
    let manifest = &manifest_path;
    let result = RedactedDump { args, output, done, output_bytes, output_hash, manifest, proof };
    let unwritten = result.unwritten();
    if unwritten.is_none() {
        let text = manifest::text(&result.manifest());
        let failed = || format!("cannot write {}", manifest_path.display());
        manifest_file.write_all(text.as_bytes()).with_context(failed)?;
        // Without the mapping, the names in OUT could not be translated back.
        let mapping = mapping.write(&args.what, &result.done.redacted.renames)?;
        file.commit()?;
        mapping.remove_old()?;
        manifest_file.commit()?;
    }
    answer::show(cx, args, &result)?;
    if !args.quiet {
        args.what.note(cx);
    }
    let Some(why) = unwritten else { return Ok(result.outcome(true)) };
    cx.emit("error", &format!("{why}: {} was not written", output.display()));
    Ok(Outcome::No)
}

/// Warns about patterns of `--classes` without a match: the intended classes are not renamed, and the user will send the dump
/// to somebody. Returns `true` if all patterns match.
fn warn_unmatched(cx: &RunContext, renames: &ClassRenames) -> bool {
    for pattern in renames.unmatched_patterns() {
        cx.emit("warning", &format!("--classes {pattern}: no class of the dump matches"));
    }
    renames.unmatched_patterns().is_empty()
}

/// Prefix of the directory with the index for the proof.
const PROOF_DIR: &str = ".hprof-cli-proof-";

/// Compares the dump with the redacted one, which has a temporary name. The index of the redacted dump is removed.
fn prove_unnamed(
    cx: &RunContext,
    args: &RedactArgs,
    options: &RedactOptions,
    output: &Path,
    file: &OutFile,
) -> anyhow::Result<Vec<ProofRow>> {
    let failed = || format!("the proof failed, and {} was not written", output.display());
    let dir = TemporaryDir::create_in(directory_of(output), PROOF_DIR, 0o700).with_context(failed)?;
    let words = [index_dir_word(dir.path())];
    let redacted = args.input_with(&file.unnamed_path(), &words)?;
    // Notes about damage were already printed for the dump.
    let open = |redacted: &Input| redacted.with_graph_again(cx, |_| Ok(()));
    let (rows, _) = proof(cx, args, options, &redacted, &open).with_context(failed)?;
    Ok(rows)
}

/// Compares a dump with a redacted one that was written before.
fn check(
    cx: &RunContext,
    args: &RedactArgs,
    options: &RedactOptions,
    redacted: &Path,
) -> anyhow::Result<Outcome> {
    let input = args.input(redacted)?;
    let open = |redacted: &Input| redacted.with_graph(cx, |_| Ok(()));
    let (rows, is_matched) = proof(cx, args, options, &input, &open)?;
    let heap = input.open_quietly(cx)?;
    let mut table = TableBuilder::pairs::<&str, &str>([]);
    answer::proof_lines(&rows, &mut |key, value| table.row([key, value]));
    heap.show(cx, "redact", &args.format, Answer::new(answer::columns(), &rows).instead_of_table(table))?;
    Ok(heap.outcome(is_matched && rows.iter().all(ProofRow::is_equal)))
}

/// Function that opens a dump with its graph.
type DumpOpener<'o> = &'o dyn Fn(&Input) -> anyhow::Result<(Arc<Heap>, Arc<ObjectGraph>, ())>;

/// Analyses both dumps. Returns the comparison of the results, and whether all patterns of `--classes` match.
fn proof(
    cx: &RunContext,
    args: &RedactArgs,
    options: &RedactOptions,
    output: &Input,
    open: DumpOpener<'_>,
) -> anyhow::Result<(Vec<ProofRow>, bool)> {
    let input = args.input(&args.file)?;
    let (heap, graph, ()) = input.with_graph(cx, |_| Ok(()))?;
    let (redacted_heap, redacted_graph, ()) = open(output)?;
    let bar = Bar::new(cx, args.quiet);
    let original = DumpGraph::new(&heap, &graph).with_records(&bar)?;
    let redacted = DumpGraph::new(&redacted_heap, &redacted_graph).with_records(&bar)?;
    let proved = input.with_threads(|| {
        let plan = Plan::read(DumpBytes::Mapped(original.bytes(), &mut |_| ()), &options.classes)?;
        let kept = redact::kept_values_of_file(&plan, options, original.bytes());
        let rows =
            redact::proof::prove(&plan, &kept, options, [&original, &redacted], &CommandAnalyses, &bar)?;
        std::io::Result::Ok((rows, plan))
    })?;
    let (rows, plan) = proved.with_context(|| format!("cannot analyse {}", args.file.display()))?;
    ensure_right(&graph)?;
    ensure_right(&redacted_graph)?;
    drop(bar);
    Ok((rows, warn_unmatched(cx, plan.renames())))
}

impl RedactArgs {
    /// Returns the input for a dump.
    fn input(&self, dump: &Path) -> anyhow::Result<Input> {
        let words: Vec<_> = self.index.path().map(index_dir_word).into_iter().collect();
        self.input_with(dump, &words)
    }

    /// Returns the input for a dump, with these options in addition.
    fn input_with(&self, dump: &Path, words: &[OsString]) -> anyhow::Result<Input> {
        let threads = self.threads.map(|threads| format!("--threads={threads}").into());
        let words: Vec<_> = words.iter().cloned().chain(threads).collect();
        let mut input = Input::of_words(dump, &words)?;
        input.quiet = self.quiet;
        Ok(input)
    }
}

impl WhatGoes {
    /// Returns the key of the file, or a random one that is not stored.
    pub(crate) fn key(&self) -> anyhow::Result<Key> {
        self.key.as_deref().map_or_else(key_file::random, key_file::read_or_create)
    }

    /// Prints notes about analyses that are less precise on the redacted dump.
    pub(crate) fn note(&self, cx: &RunContext) {
        if self.strict_numbers {
            let answers = redact::finer_answers().join("; ");
            cx.emit("note", &format!("--strict-numbers makes these answers wrong or incomplete: {answers}"));
        }
    }

    /// Returns the options for the redaction.
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
            classes: self.classes.clone(),
        })
    }
}

/// Returns the path with a suffix appended after its extension.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// A redaction that is about to run: the input, the options and the key.
struct Redaction<'a> {
    path: &'a Path,
    options: &'a RedactOptions,
    key: Key,
    bar: &'a Bar,
}

/// Result of a redaction, and facts about the input.
pub(crate) struct RedactionResult {
    pub(crate) redacted: RedactReport,
    pub(crate) input_hash: String,
    pub(crate) input_bytes: u64,
    /// Error at which the decompression of the input ended early, if any.
    pub(crate) packed_error: Option<String>,
    pub(crate) is_pipe: bool,
}

impl Redaction<'_> {
    fn run(self, is_file: bool, dir: &Path, out: &mut dyn Write) -> anyhow::Result<RedactionResult> {
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

    /// Redacts a file, which is read twice. A compressed file is unpacked into an unnamed file in `dir`.
    fn file(self, dir: &Path, out: &mut dyn Write) -> anyhow::Result<RedactionResult> {
        let source = RecoverSource::open(self.path, dir, self.bar)?;
        let bytes = source.bytes();
        let failed = || format!("cannot read {}", self.path.display());
        self.bar.begin("reading classes and names", bytes.len() as u64);
        let mut position = FilePosition::new(&source);
        let mut passed = |bytes: &[u8]| {
            self.bar.advance(bytes.len() as u64);
            position.advance(bytes.len());
        };
        let from = DumpBytes::Mapped(bytes, &mut passed);
        let plan = Plan::read(from, &self.options.classes).with_context(failed)?;
        let kept = redact::kept_values_of_file(&plan, self.options, bytes);
        let mut hash = HashingStream::new(io::sink());
        let mut position = FilePosition::new(&source);
        let mut passed = |bytes: &[u8]| {
            hash.pass(bytes);
            position.advance(bytes.len());
        };
        let from = DumpBytes::Mapped(bytes, &mut passed);
        let redacted = self.write_redacted(&plan, &kept, from, bytes.len() as u64, out)?;
        source.check_unwritten()?;
        if source.packed_bytes().len() != bytes.len()
            || source.packed_error().is_some()
            || redacted.end.bytes != bytes.len() as u64
        {
            hash = HashingStream::new(io::sink());
            io::copy(&mut source.packed_bytes(), &mut hash).with_context(failed)?;
        }
        Ok(RedactionResult {
            redacted,
            input_hash: hash.hash(),
            input_bytes: source.packed_bytes().len() as u64,
            packed_error: source.packed_error().map(str::to_owned),
            is_pipe: false,
        })
    }

    fn write_redacted(
        &self,
        plan: &Plan,
        kept: &KeptValues,
        from: DumpBytes<'_>,
        total: u64,
        out: &mut dyn Write,
    ) -> anyhow::Result<RedactReport> {
        self.bar.begin("writing the redacted dump", total);
        let advance = |bytes| self.bar.advance(bytes);
        let redacted = redact::redact(plan, kept, self.options, self.key.clone(), from, out, &advance);
        self.bar.end();
        redacted.with_context(|| format!("cannot redact {}", self.path.display()))
    }

    /// Redacts a pipe, which is read once.
    fn pipe(self, from: Box<dyn Read + '_>, out: &mut dyn Write) -> anyhow::Result<RedactionResult> {
        let name =
            if self.path.as_os_str() == "-" { "standard input".into() } else { self.path.to_string_lossy() };
        let failed = || format!("cannot redact {name}");
        let mut from = HashingStream::new(from);
        let mut start = Vec::new();
        from.by_ref().take(1 << 16).read_to_end(&mut start).with_context(failed)?;
        let compression = Compression::detect(&start);
        ensure!(
            compression.is_none_or(|compression| !compression.is_archive()),
            "{name} is an archive; extract the dump first"
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
        Ok(RedactionResult {
            redacted,
            input_hash: from.hash(),
            input_bytes: from.bytes,
            packed_error: error,
            is_pipe: true,
        })
    }
}
