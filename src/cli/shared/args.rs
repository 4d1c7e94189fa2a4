//! Command-line arguments that commands share, and their conversion.

use std::borrow::Cow;
use std::error::Error as _;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Parser};

use hprof_index::layout::object_layout::LayoutOverride;
use hprof_index::layout::sizes::Sizes;
use hprof_index::storage::memory;
use hprof_index::{DumpGraph, Error, Heap, ObjectGraph, Options, Progress};
use hprof_query::dump::doctor;
use hprof_query::objects::condition::size;
use hprof_query::objects::selection::Selection;
use hprof_report::Format;
use hprof_report::answer::NoRows;
use hprof_report::number::format_count;

use super::color::ColorArg;
use super::context::RunContext;
use super::keys::{Keyword, keys};
use super::terminal::progress_bar::Bar;
use super::{messages, spool};

/// Environment variable equivalent to `--index-dir`.
pub(crate) const INDEX_DIR: &str = "HPROF_CLI_INDEX_DIR";

/// Prefix of the option `--index-dir` that precedes its value.
const INDEX_DIR_OPTION: &str = "--index-dir=";

/// Maximum number of threads that the available memory allows; `None` if it does not limit them.
static ENOUGH: OnceLock<Option<usize>> = OnceLock::new();

/// Result of starting the global thread pool with the requested number of threads.
static STARTED: OnceLock<Result<(), String>> = OnceLock::new();

/// The dump and how to read it.
#[derive(Debug, Clone, Args)]
pub(crate) struct Input {
    /// Heap dump in HPROF format: plain, compressed with gzip or zstd, or the only dump in a tar or zip archive; `-`
    /// reads standard input
    #[arg(value_name = "DUMP", help_heading = "Input")]
    pub(crate) dump: PathBuf,

    /// Heap dump to read if the file contains several, counting from 1 [default: the last]
    #[arg(long, value_name = "N", help_heading = "Input", value_parser = clap::value_parser!(u32).range(1..))]
    heap_dump: Option<u32>,

    /// Number of threads to use [default: all cores]
    #[arg(long, value_name = "N", help_heading = "Input", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    #[command(flatten)]
    index: IndexDir,

    /// Memory budget, for example 2GiB [default: available memory]
    ///
    /// Data that exceeds it is written to files in the index directory; where that is not possible, the command fails.
    #[arg(
        long,
        value_name = "SIZE",
        help_heading = "Index",
        env = MEMORY_VARIABLE,
        hide_env_values = true,
        value_parser = memory_size
    )]
    memory: Option<Memory>,

    /// Suppress the progress bar and notes on stderr; warnings about damage are still printed
    #[arg(short, long, overrides_with = "quiet", help_heading = "Output")]
    pub(crate) quiet: bool,
}

/// Location of indexes.
#[derive(Debug, Clone, Args)]
pub(crate) struct IndexDir {
    /// Directory for indexes [default: DUMP.index next to the dump, or else the user's cache directory]
    #[arg(
        long,
        value_name = "DIR",
        value_hint = clap::ValueHint::DirPath,
        help_heading = "Index",
        env = INDEX_DIR,
        hide_env_values = true,
        value_parser = index_dir_parser()
    )]
    index_dir: Option<PathBuf>,
}

impl IndexDir {
    /// Returns the directory for indexes, if given; an empty variable counts as unset.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.index_dir.as_deref().filter(|dir| !dir.as_os_str().is_empty())
    }
}

/// Function that opens a dump with its graph.
type OpenGraph = fn(&Path, &Options, &dyn Progress) -> Result<(Heap, ObjectGraph), Error>;

/// Function that opens a dump by calling an [`OpenGraph`], and prints notes about it.
type Opener<'o> = &'o dyn Fn(OpenGraph) -> anyhow::Result<(Arc<Heap>, Arc<ObjectGraph>)>;

/// A query of a dump; the closure stores the result itself.
type GraphQuery<'o> = &'o mut (dyn FnMut(&Arc<Heap>, &Arc<ObjectGraph>) -> anyhow::Result<()> + Send);

impl Input {
    /// Returns the options for opening the dump.
    pub(crate) fn options(&self, cx: &RunContext) -> Options {
        Options {
            index_dir: self.index_dir().map(Path::to_owned),
            heap_dump: self.heap_dump,
            memory_bytes: self.memory_bytes(),
            hide_values: cx.hides_values,
        }
    }

    /// Parses a dump with options given as command-line arguments, for callers that have no command line.
    pub(crate) fn of_words(dump: &Path, options: &[OsString]) -> anyhow::Result<Self> {
        #[derive(clap::Parser)]
        struct InputParser {
            #[command(flatten)]
            input: Input,
        }
        let words = [OsStr::new("hprof-cli")].into_iter().chain(options.iter().map(OsString::as_os_str));
        Ok(InputParser::try_parse_from(words.chain([OsStr::new("--"), dump.as_os_str()]))?.input)
    }

    /// Returns the options that another command needs to open the same dump, as command-line arguments.
    pub(crate) fn words(&self) -> Vec<OsString> {
        // The requested directory, even for a copy: it is used for other dumps too.
        let index_dir = self.asked_index_dir().map(index_dir_word);
        let heap_dump = self.heap_dump.map(|number| format!("--heap-dump={number}"));
        let threads = self.threads.map(|threads| format!("--threads={threads}"));
        // A memory budget from the variable is omitted: other commands read the variable as well.
        let of_variable = std::env::var(MEMORY_VARIABLE).ok().and_then(|text| memory_size(&text).ok());
        let memory = self.memory.filter(|memory| of_variable != Some(*memory));
        let memory = memory.and_then(|Memory(bytes)| bytes).map(|bytes| format!("--memory={bytes}"));
        let others = heap_dump.into_iter().chain(threads).chain(memory).map(OsString::from);
        index_dir.into_iter().chain(others).collect()
    }

    /// Resolves selections that may be a class name or an object ID. The dump is opened only if a selection can be both.
    pub(crate) fn resolve_selections(
        &self,
        cx: &RunContext,
        selections: &[Selection],
    ) -> anyhow::Result<Vec<Selection>> {
        if !selections.iter().any(Selection::is_ambiguous) {
            return Ok(selections.to_vec());
        }
        let heap = self.open_quietly(cx)?;
        Ok(selections.iter().map(|selection| selection.resolve(heap.summary())).collect())
    }

    /// Returns the same options for another dump.
    pub(crate) fn with_dump(&self, dump: &Path) -> Self {
        Self { dump: dump.to_owned(), ..self.clone() }
    }

    /// Returns the memory budget in bytes, if the user gave one.
    pub(crate) fn memory_bytes(&self) -> Option<u64> {
        self.memory.and_then(|Memory(bytes)| bytes)
    }

    /// Returns the path of the dump.
    pub(crate) fn path(&self) -> &Path {
        &self.dump
    }

    /// Returns the input without `--heap-dump`.
    pub(crate) fn without_heap_dump(&self) -> Self {
        Self { heap_dump: None, ..self.clone() }
    }

    /// Returns the number of the heap dump to read, if given.
    pub(crate) fn heap_dump(&self) -> Option<u32> {
        self.heap_dump
    }

    /// Returns the directory for the index: that of a copy, or else the requested one, if any.
    pub(crate) fn index_dir(&self) -> Option<&Path> {
        // The index directory of a copy belongs to it.
        if let Some(dir) = spool::index_dir(&self.dump) {
            return Some(dir);
        }
        self.asked_index_dir()
    }

    /// Returns the requested directory for indexes, if any.
    fn asked_index_dir(&self) -> Option<&Path> {
        self.index.path()
    }

    /// Returns the directory for indexes if it was given by the option. Other commands read the environment variable
    /// themselves.
    pub(crate) fn index_dir_option(&self) -> Option<&Path> {
        let in_environment = std::env::var_os(INDEX_DIR);
        let is_copy = spool::index_dir(&self.dump).is_some();
        self.index_dir().filter(|dir| !is_copy && Some(dir.as_os_str()) != in_environment.as_deref())
    }

    /// Runs `work` with the requested number of threads.
    pub(crate) fn with_threads<T: Send>(&self, work: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
        let (mut work, mut result) = (Some(work), None);
        self.run_with_threads(&mut || result = work.take().map(|work| work()))?;
        result.context("no thread has run")
    }

    fn run_with_threads(&self, work: &mut (dyn FnMut() + Send)) -> anyhow::Result<()> {
        // Each thread takes memory, and a limit may leave too little for all cores. This is determined once, as the
        // global thread pool is started once.
        let enough = || *ENOUGH.get_or_init(|| memory::threads(self.memory_bytes()));
        if let Some(threads) = self.threads.map(usize::from).or_else(enough) {
            let builder = || rayon::ThreadPoolBuilder::new().num_threads(threads);
            // The global pool, unless it exists already: other threads, such as those of SQL, use it too.
            let started = STARTED.get_or_init(|| match builder().build_global() {
                Err(error) if error.source().is_some() => Err(not_started(threads, &error)),
                _ => Ok(()),
            });
            started.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
            if rayon::current_num_threads() != threads {
                let pool =
                    builder().build().map_err(|error| anyhow::anyhow!(not_started(threads, &error)))?;
                pool.install(work);
                return Ok(());
            }
        }
        work();
        Ok(())
    }

    /// Opens the dump and prints notes about it.
    pub(crate) fn open(&self, cx: &RunContext) -> anyhow::Result<Arc<Heap>> {
        let heap = self.open_records(cx)?;
        if !self.quiet {
            messages::about_no_heap(cx, &heap);
        }
        Ok(heap)
    }

    /// Opens a dump that need not contain a heap dump, as files of the agent may lack one, and prints notes about it.
    pub(crate) fn open_records(&self, cx: &RunContext) -> anyhow::Result<Arc<Heap>> {
        let heap = self.open_quietly(cx)?;
        messages::print_notes(cx, &heap, self.quiet);
        Ok(heap)
    }

    /// Opens the dump without printing notes: for a dump that will be opened again.
    pub(crate) fn open_quietly(&self, cx: &RunContext) -> anyhow::Result<Arc<Heap>> {
        let options = self.options(cx);
        if let Some(heap) = cx.heap(self.path(), &options) {
            return Ok(heap);
        }
        let bar = Bar::new(cx, self.quiet);
        let heap = Arc::new(self.with_threads(|| Heap::open(self.path(), &options, &bar))??);
        cx.keep(self.path(), &options, &heap, None);
        Ok(heap)
    }

    /// Opens the dump with its graph by calling `open`, or returns it if it is already open.
    fn open_graph(&self, cx: &RunContext, open: OpenGraph) -> anyhow::Result<(Arc<Heap>, Arc<ObjectGraph>)> {
        let options = self.options(cx);
        if let Some(opened) = cx.graph(self.path(), &options) {
            return Ok(opened);
        }
        let bar = Bar::new(cx, self.quiet);
        let (heap, graph) = self.with_threads(|| open(self.path(), &options, &bar))??;
        let (heap, graph) = (Arc::new(heap), Arc::new(graph));
        cx.keep(self.path(), &options, &heap, Some(&graph));
        Ok((heap, graph))
    }

    /// Opens the dump with its graph by calling `open`, and prints notes about it.
    fn open_graph_first(
        &self,
        cx: &RunContext,
        open: OpenGraph,
    ) -> anyhow::Result<(Arc<Heap>, Arc<ObjectGraph>)> {
        let opened = self.open_graph(cx, open)?;
        messages::print_notes(cx, &opened.0, self.quiet);
        if !self.quiet {
            messages::about_no_heap(cx, &opened.0);
        }
        if opened.0.summary().lacks_roots() && !self.quiet {
            cx.emit("note", doctor::ROOTS_LACKING);
        } else if opened.1.roots.boot_classes_assumed && !self.quiet {
            cx.emit(
                "note",
                "the dump contains no sticky class roots: all classes of the boot loader count as roots",
            );
        }
        Ok(opened)
    }

    /// Opens the dump with its graph and runs the query `ask`. If the index turns out to be damaged, it is rebuilt and `ask` is
    /// called again, so `ask` must not print anything. [`DumpGraph::with_records`] makes the records readable.
    pub(crate) fn with_graph<T: Send>(
        &self,
        cx: &RunContext,
        ask: impl Fn(&DumpGraph<'_>) -> anyhow::Result<T> + Send + Sync,
    ) -> anyhow::Result<(Arc<Heap>, Arc<ObjectGraph>, T)> {
        let ask = |heap: &Arc<Heap>, graph: &Arc<ObjectGraph>| ask(&DumpGraph::new(heap, graph));
        self.ask_graph(cx, &|open| self.open_graph_first(cx, open), ask)
    }

    /// Runs a query like [`Input::with_graph`], but passes the shared dump and graph, so that they can be kept after the query.
    #[cfg(feature = "sql")]
    pub(crate) fn with_shared_graph<T: Send>(
        &self,
        cx: &RunContext,
        ask: impl Fn(&Arc<Heap>, &Arc<ObjectGraph>) -> anyhow::Result<T> + Send + Sync,
    ) -> anyhow::Result<(Arc<Heap>, Arc<ObjectGraph>, T)> {
        self.ask_graph(cx, &|open| self.open_graph_first(cx, open), ask)
    }

    /// Runs a query like [`Input::with_graph`], but does not repeat the notes that were printed when the dump was opened
    /// without its graph.
    pub(crate) fn with_graph_again<T: Send>(
        &self,
        cx: &RunContext,
        ask: impl Fn(&DumpGraph<'_>) -> anyhow::Result<T> + Send + Sync,
    ) -> anyhow::Result<(Arc<Heap>, Arc<ObjectGraph>, T)> {
        let ask = |heap: &Arc<Heap>, graph: &Arc<ObjectGraph>| ask(&DumpGraph::new(heap, graph));
        self.ask_graph(cx, &|open| self.open_graph(cx, open), ask)
    }

    fn ask_graph<T: Send>(
        &self,
        cx: &RunContext,
        opened: Opener<'_>,
        ask: impl Fn(&Arc<Heap>, &Arc<ObjectGraph>) -> anyhow::Result<T> + Send + Sync,
    ) -> anyhow::Result<(Arc<Heap>, Arc<ObjectGraph>, T)> {
        let mut answer = None;
        let (heap, graph) = self.ask_until_right(cx, opened, &mut |heap, graph| {
            answer = Some(ask(heap, graph)?);
            Ok(())
        })?;
        Ok((heap, graph, answer.context("the query did not run")?))
    }

    /// Runs the query, and runs it again if the index is damaged: the last result is valid.
    fn ask_until_right(
        &self,
        cx: &RunContext,
        opened: Opener<'_>,
        ask: GraphQuery<'_>,
    ) -> anyhow::Result<(Arc<Heap>, Arc<ObjectGraph>)> {
        let (heap, graph) = opened(Heap::open_graph)?;
        let asked = self.with_threads(|| ask(&heap, &graph))?;
        heap.check_unwritten()?;
        if !graph.is_damaged() {
            asked?;
            return Ok((heap, graph));
        }
        drop((heap, graph));
        cx.forget(self.path(), &self.options(cx));
        // Now the whole index is read, and damaged parts are rebuilt.
        let (heap, graph) = opened(Heap::open_graph_checked)?;
        self.with_threads(|| ask(&heap, &graph))??;
        heap.check_unwritten()?;
        anyhow::ensure!(!graph.is_damaged(), "the index is damaged again immediately after it was rebuilt");
        Ok((heap, graph))
    }
}

/// Returns the error that threads could not be started, with advice: each takes address space for its stack.
fn not_started(threads: usize, error: &rayon::ThreadPoolBuildError) -> String {
    let threads = format_count(threads as u64, "thread");
    format!("cannot start {threads}: {error}; raise the limits (ulimit -v, ulimit -u), or try --threads 1")
}

/// Returns the index directory option as one word.
pub(crate) fn index_dir_word(dir: &Path) -> OsString {
    let mut word = OsString::from(INDEX_DIR_OPTION);
    word.push(dir);
    word
}

/// Returns whether a word was created by [`index_dir_word`].
pub(crate) fn is_index_dir_word(word: &OsStr) -> bool {
    word.as_encoded_bytes().starts_with(INDEX_DIR_OPTION.as_bytes())
}

/// Parses the directory for indexes: an empty variable counts as unset, an empty option is an error.
fn index_dir_parser() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|text| {
        let is_slip = text.is_empty() && std::env::var_os(INDEX_DIR).is_none_or(|dir| !dir.is_empty());
        if is_slip { Err("expected a directory") } else { Ok(PathBuf::from(text)) }
    })
}

/// Options that determine sizes.
#[derive(Debug, Args)]
pub(crate) struct LayoutArgs {
    /// Override parts of the detected object layout, for example reference=4,header=12
    ///
    /// Keys: reference=4|8, header=8|12|16, array-base=12|16|20|24, alignment=1|4|8..256, packing=classic|dense.
    /// Other parts stay as detected.
    #[arg(long, value_name = "KEY=VALUE,...", help_heading = "Input")]
    layout: Option<LayoutOverride>,
}

impl LayoutArgs {
    /// Returns whether the user gave a layout.
    pub(crate) fn is_given(&self) -> bool {
        self.layout.is_some()
    }

    /// Returns the sizes of objects, with the given layout or else the detected one.
    pub(crate) fn sizes(&self, heap: &Heap) -> Sizes {
        Sizes::new(heap.summary(), self.layout.as_ref())
    }
}

/// Options for showing the answer.
#[derive(Debug, Args)]
pub(crate) struct Output {
    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        value_parser = keys(FORMATS),
        default_value = "table",
        help_heading = "Output"
    )]
    format: OutputFormat,

    /// When to use color; `auto` respects NO_COLOR
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    pub(crate) color: ColorArg,
}

impl Output {
    /// Returns the format for rows.
    pub(crate) fn format(&self) -> Format {
        self.format.of_rows()
    }

    /// Returns the format, with rows in `format`, which is one of [`RunContext::for_each_format`].
    pub(crate) fn with_rows_in(&self, format: Format) -> OutputFormat {
        self.format.with_rows_in(format)
    }

    /// Returns the text for a result without rows. Markdown contains the line that otherwise is printed only to stderr, as
    /// a ticket would be empty without it.
    pub(crate) fn no_rows(&self, line: impl Into<Cow<'static, str>>) -> NoRows {
        if self.is_markdown() { NoRows::Line(line.into()) } else { NoRows::Nothing }
    }

    /// Returns whether the result is written as Markdown.
    pub(crate) fn is_markdown(&self) -> bool {
        self.format == OutputFormat::Markdown
    }
}

/// Format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    Rows(Format),
    Markdown,
}

impl From<Format> for OutputFormat {
    fn from(format: Format) -> Self {
        Self::Rows(format)
    }
}

impl OutputFormat {
    /// Returns Markdown if that is the format, otherwise rows in `format`.
    pub(crate) fn with_rows_in(self, format: Format) -> Self {
        if self == Self::Markdown { self } else { Self::Rows(format) }
    }

    /// Returns the format for rows; Markdown contains the same as a table.
    pub(crate) fn of_rows(self) -> Format {
        match self {
            Self::Rows(format) => format,
            Self::Markdown => Format::Table,
        }
    }
}

/// Values of `--format` of `export`, which shows the files that it writes.
pub(crate) const DATA_FORMATS: &[Keyword<OutputFormat>] = &[TABLE, JSON, CSV];
/// Values of `--format`.
const FORMATS: &[Keyword<OutputFormat>] =
    &[TABLE, JSON, CSV, ("markdown", OutputFormat::Markdown, "Markdown, to paste into a ticket")];
const TABLE: Keyword<OutputFormat> = ("table", OutputFormat::Rows(Format::Table), "Human-readable table");
const JSON: Keyword<OutputFormat> = ("json", OutputFormat::Rows(Format::Json), "One JSON document");
const CSV: Keyword<OutputFormat> =
    ("csv", OutputFormat::Rows(Format::Csv), "Comma-separated values with a header line");

/// Environment variable with the default memory budget.
const MEMORY_VARIABLE: &str = "HPROF_CLI_MEMORY";

/// A memory budget in bytes, or none: an empty variable counts as unset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Memory(Option<u64>);

fn memory_size(text: &str) -> Result<Memory, size::ParseSizeError> {
    if text.is_empty() { Ok(Memory(None)) } else { size::parse(text).map(|bytes| Memory(Some(bytes))) }
}

/// Parses a fraction from 0 to 1.
pub(crate) fn ratio(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(ratio),
        _ => Err("expected a fraction from 0 to 1, for example 0.0001".to_owned()),
    }
}
