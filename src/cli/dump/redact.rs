//! `redact`: a dump without its values, which answers as before; and the proof that it does.

mod manifest;

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use xxhash_rust::xxh3::Xxh3;

use hprof_index::Progress;
use hprof_input::packed::Compression;
use hprof_input::packed::encode::Encoder;
use hprof_query::dictionary::names;
use hprof_query::dump::recover::RecoverSource;
use hprof_query::dump::redact::{
    self, KEY_BYTES, KeptTexts, Key, Plan, RedactOptions, Redacted, TextPatterns,
};
use hprof_report::answer::{Answer, Declared};
use hprof_report::column::{Column, Columns};
use hprof_report::json::DumpHeader;
use hprof_report::number::{counted, grouped};
use hprof_report::table::TableBuilder;

use self::manifest::Manifest;
use super::account::exact;
use crate::cli::Outcome;
use crate::cli::shared::args::{Input, Output};
use crate::cli::shared::context::RunContext;
use crate::cli::shared::output::file::{Existing, OutFile, directory_of};
use crate::cli::shared::session::AnswerSource;
use crate::cli::shared::terminal::progress_bar::Bar;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli redact heap.hprof -o safe.hprof.zst         values go, every object and reference stays
  ssh host cat heap.hprof.gz | hprof-cli redact - -o safe.hprof
  hprof-cli redact heap.hprof -o safe.hprof --keep 'order-*' --thread-names";

/// Write a dump without its values: every object stays, and the analyses stay the same
///
/// Characters of Strings, elements of primitive arrays and numbers in fields are replaced by others, with a random key
/// that is thrown away. Objects, references, classes, sizes, roots, stacks and names of classes, fields and methods
/// stay. Equal texts stay equal, and lengths stay. OUT.manifest.json says what was done. What somebody can still learn
/// from the dump is in docs/redact.md.
#[derive(Debug, clap::Args)]
pub(crate) struct RedactArgs {
    /// Dump, plain or compressed with gzip or zstd; `-` reads standard input, once, in bounded memory
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Input")]
    file: PathBuf,

    /// Number of threads to use [default: all cores]
    #[arg(long, value_name = "N", help_heading = "Input", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

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

    /// Read the key from KEYFILE, or write a new one to it: dumps redacted with one key can be compared
    ///
    /// Who has the key can undo the redaction.
    #[arg(long, value_name = "KEYFILE", value_hint = clap::ValueHint::FilePath, help_heading = "What goes")]
    key: Option<PathBuf>,

    /// Write to OUT, which is created only when it is complete; compressed if its name ends in .gz or .zst
    #[arg(short, long, value_name = "OUT", value_hint = clap::ValueHint::FilePath, help_heading = "Output")]
    output: PathBuf,

    /// Replace existing files
    #[arg(long, help_heading = "Output")]
    force: bool,

    #[command(flatten)]
    format: Output,

    /// Suppress the progress bar and notes on stderr
    #[arg(short, long, overrides_with = "quiet", help_heading = "Output")]
    quiet: bool,
}

pub(crate) fn run(cx: &RunContext, args: &RedactArgs) -> anyhow::Result<Outcome> {
    let threads = args.threads.map(|threads| format!("--threads={threads}").into());
    let input = Input::of_words(&args.output, threads.as_slice())?;
    let options = args.options()?;
    let existing = if args.force { Existing::Replace } else { Existing::Keep };
    // Created before a long read, so that an error is reported at once.
    let inputs: Vec<&Path> = [args.file.as_path()].into_iter().chain(args.key.as_deref()).collect();
    let file = OutFile::create_private(&args.output, &inputs, existing)?;
    let manifest_path = with_suffix(&args.output, ".manifest.json");
    let manifest_file = OutFile::create_private(&manifest_path, &inputs, existing)?;
    let key = key(args.key.as_deref())?;
    let bar = Bar::new(cx, args.quiet);
    let failed = || format!("cannot write {}", args.output.display());
    let compression = Compression::of_name(&args.output);
    let out = Encoder::new(compression, Hashed::new(BufWriter::with_capacity(1 << 16, file)));
    let mut out = out.with_context(failed)?;
    let redaction = Redaction { args, options: &options, key, bar: &bar };
    let done = input.with_threads(|| redaction.run(&mut out))??;
    let out = out.finish().with_context(failed)?;
    let (output_hash, output_bytes) = (out.hash(), out.bytes);
    let file = out.inner.into_inner().map_err(|error| error.into_error()).with_context(failed)?;
    let result = RedactedDump { args, done, output_bytes, output_hash, manifest: &manifest_path };
    let manifest = Manifest::new(&result);
    let mut manifest_file = manifest_file;
    let text = manifest.to_text();
    let failed = || format!("cannot write {}", manifest_path.display());
    manifest_file.write_all(text.as_bytes()).with_context(failed)?;
    file.commit()?;
    manifest_file.commit()?;
    drop(bar);
    show(cx, args, &result)?;
    Ok(result.outcome(true))
}

impl RedactArgs {
    fn options(&self) -> anyhow::Result<RedactOptions> {
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
        })
    }
}

/// Returns the path with a suffix after its extension.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
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
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("cannot obtain random bytes: {error}"))?;
    if let Some(path) = path {
        let mut file = OutFile::create_private(path, &[], Existing::Keep)?;
        file.write_all(&bytes).with_context(|| format!("cannot write {}", path.display()))?;
        file.commit()?;
    }
    Ok(Key::new(bytes))
}

/// A reader or writer with the hash of what passed.
struct Hashed<T> {
    inner: T,
    hash: Xxh3,
    bytes: u64,
}

impl<T> Hashed<T> {
    fn new(inner: T) -> Self {
        Self { inner, hash: Xxh3::new(), bytes: 0 }
    }

    fn pass(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    fn hash(&self) -> String {
        format!("{:032x}", self.hash.digest128())
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.pass(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.pass(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}

/// What is done with an input.
struct Redaction<'a> {
    args: &'a RedactArgs,
    options: &'a RedactOptions,
    key: Key,
    bar: &'a Bar,
}

/// Result, and facts of the input.
struct Done {
    redacted: Redacted,
    input_hash: String,
    input_bytes: u64,
    /// Error that ended a compressed file early.
    packed_error: Option<String>,
    is_pipe: bool,
}

impl Redaction<'_> {
    fn run(self, out: &mut (dyn Write + Send)) -> anyhow::Result<Done> {
        let path = &self.args.file;
        let is_stdin = path.as_os_str() == "-";
        let is_file = !is_stdin && std::fs::metadata(path).is_ok_and(|there| there.is_file());
        if is_stdin {
            return self.pipe(Box::new(io::stdin().lock()), out);
        }
        if is_file {
            return self.file(out);
        }
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        ensure!(!file.metadata()?.is_dir(), "cannot read {}: it is a directory", path.display());
        self.pipe(Box::new(file), out)
    }

    /// Reads a file twice.
    fn file(self, out: &mut (dyn Write + Send)) -> anyhow::Result<Done> {
        let source = RecoverSource::open(&self.args.file, directory_of(&self.args.output), self.bar)?;
        let bytes = source.bytes();
        self.bar.begin("reading classes and names", bytes.len() as u64);
        let plan = Plan::read(&mut Progressing { bytes, bar: self.bar })
            .with_context(|| format!("cannot read {}", self.args.file.display()))?;
        let kept = redact::kept_texts_of_file(&plan, self.options, bytes);
        let redacted = self.redacted(&plan, &kept, &mut &*bytes, bytes.len() as u64, out)?;
        if source.was_written() {
            return Err(hprof_index::Error::Changed(self.args.file.clone()).into());
        }
        let mut hash = Hashed::new(io::sink());
        io::copy(&mut &*source.packed_bytes(), &mut hash)?;
        Ok(Done {
            redacted,
            input_hash: hash.hash(),
            input_bytes: hash.bytes,
            packed_error: source.packed_error().map(str::to_owned),
            is_pipe: false,
        })
    }

    fn redacted(
        &self,
        plan: &Plan,
        kept: &KeptTexts,
        from: &mut dyn Read,
        total: u64,
        out: &mut dyn Write,
    ) -> anyhow::Result<Redacted> {
        self.bar.begin("writing the redacted dump", total);
        let advance = |bytes| self.bar.advance(bytes);
        let redacted = redact::redact(plan, kept, self.options, self.key.clone(), from, out, &advance);
        self.bar.end();
        redacted.with_context(|| format!("cannot write {}", self.args.output.display()))
    }

    /// Reads a pipe once.
    fn pipe(self, from: Box<dyn Read + '_>, out: &mut dyn Write) -> anyhow::Result<Done> {
        let name = if self.args.file.as_os_str() == "-" {
            "standard input".into()
        } else {
            self.args.file.to_string_lossy()
        };
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

/// Bytes that advance the progress bar when they are read.
struct Progressing<'b> {
    bytes: &'b [u8],
    bar: &'b Bar,
}

impl Read for Progressing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.bytes.read(buffer)?;
        self.bar.advance(read as u64);
        Ok(read)
    }
}

/// A decompressor whose errors end the stream.
struct UntilError<'e, R> {
    from: R,
    is_packed: bool,
    error: &'e mut Option<String>,
}

impl<R: Read> Read for UntilError<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.error.is_some() {
            return Ok(0);
        }
        match self.from.read(buffer) {
            Err(error) if self.is_packed && error.kind() != io::ErrorKind::Interrupted => {
                *self.error = Some(error.to_string());
                Ok(0)
            }
            result => result,
        }
    }
}

/// The redacted dump, as the file of the answer.
struct RedactedDump<'a> {
    args: &'a RedactArgs,
    done: Done,
    output_bytes: u64,
    output_hash: String,
    manifest: &'a Path,
}

impl AnswerSource for RedactedDump<'_> {
    fn dump(&self) -> DumpHeader<'_> {
        DumpHeader {
            path: self.args.output.to_string_lossy(),
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
    let answer = Answer::new(columns(), &[] as &[()]).beside(&beside(), result).instead_of_table(table);
    result.show(cx, "redact", &args.format, answer)?;
    Ok(())
}

fn table_lines(result: &RedactedDump<'_>, line: &mut dyn FnMut(&str, &str)) {
    let counts = &result.done.redacted.counts;
    line("output", &format!("{}, {}", result.args.output.display(), exact(result.output_bytes)));
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

fn beside<'a>() -> Columns<'a, RedactedDump<'a>> {
    Columns::new([
        Column::of(names::REDACTED_FILE, |of: &RedactedDump<'a>| of.args.output.to_string_lossy().into()),
        Column::of(names::REDACTED_BYTES, |of: &RedactedDump<'a>| of.output_bytes.into()),
        Column::of(names::MANIFEST_FILE, |of: &RedactedDump<'a>| of.manifest.to_string_lossy().into()),
    ])
}

fn columns<'a>() -> Columns<'a, &'a ()> {
    Columns::new([])
}

pub(crate) fn declared() -> Vec<Declared> {
    vec![Declared { command: "redact", variant: "", about: "", rows: Vec::new(), beside: beside().fields() }]
}
