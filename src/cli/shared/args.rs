//! Arguments that commands share, and what they become.

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
use hprof_index::{Error, Heap, ObjectGraph, Options, Progress};
use hprof_query::objects::condition::size;
use hprof_query::objects::selection::Selection;
use hprof_report::Format;
use hprof_report::answer::NoRows;
use hprof_report::number::counted;

use super::color::ColorArg;
use super::context::RunContext;
use super::keys::{Key, keys};
use super::terminal::progress_bar::Bar;
use super::{messages, spool};

/// The variable that stands for `--index-dir`.
const INDEX_DIR: &str = "HPROF_CLI_INDEX_DIR";

/// What its word begins with.
const INDEX_DIR_OPTION: &str = "--index-dir=";

/// How many threads there is memory for, if not for all that there could be.
static ENOUGH: OnceLock<Option<usize>> = OnceLock::new();

/// Whether the pool of threads of the process was started with the threads asked for, or what went wrong.
static STARTED: OnceLock<Result<(), String>> = OnceLock::new();

/// The dump, and how it is read.
#[derive(Debug, Clone, Args)]
pub(crate) struct Input {
    /// Heap dump: HPROF binary, plain, compressed with gzip or zstd, or the only dump in a tar or zip archive; `-` is
    /// standard input
    #[arg(value_name = "DUMP", help_heading = "Input")]
    pub(crate) dump: PathBuf,

    /// Which heap dump to read if the file contains several, from 1 [default: the last]
    #[arg(long, alias = "dump", value_name = "N", help_heading = "Input", value_parser = clap::value_parser!(u32).range(1..))]
    heap_dump: Option<u32>,

    /// Number of threads to use [default: all cores]
    #[arg(long, value_name = "N", help_heading = "Input", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    #[command(flatten)]
    index: IndexDir,

    /// Memory budget for building an index, for example 2GiB [default: what is available]
    ///
    /// A larger scratch arena is spilled to files in the index directory.
    #[arg(
        long,
        value_name = "SIZE",
        help_heading = "Index",
        env = "HPROF_CLI_MEMORY",
        hide_env_values = true,
        value_parser = memory_size
    )]
    memory: Option<Memory>,

    /// No progress bar and no notes on stderr; warnings about damage are still printed
    #[arg(short, long, overrides_with = "quiet", help_heading = "Output")]
    pub(crate) quiet: bool,
}

/// Where indexes are.
#[derive(Debug, Clone, Args)]
pub(crate) struct IndexDir {
    /// Directory for indexes [default: DUMP.index beside the dump, or else the user's cache directory]
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
    /// The directory, if one was given: an empty variable is as good as none.
    pub(crate) fn given(&self) -> Option<&Path> {
        self.index_dir.as_deref().filter(|dir| !dir.as_os_str().is_empty())
    }
}

/// How a dump is opened with its graph.
type OpenGraph = fn(&Path, &Options, &dyn Progress) -> Result<(Heap, ObjectGraph), Error>;

/// What opens a dump in one of these ways, and says what there is to say.
type Opened<'o> = &'o dyn Fn(OpenGraph) -> anyhow::Result<(Arc<Heap>, Arc<ObjectGraph>)>;

/// A question to a dump, which keeps its answer.
type Ask<'o> = &'o mut (dyn FnMut(&Arc<Heap>, &Arc<ObjectGraph>) -> anyhow::Result<()> + Send);

impl Input {
    /// What opening needs.
    pub(crate) fn options(&self, cx: &RunContext) -> Options {
        Options {
            index_dir: self.index_dir().map(Path::to_owned),
            heap_dump: self.heap_dump,
            memory_bytes: self.memory_bytes(),
            hide_values: cx.hides_values,
        }
    }

    /// A dump with options as words, for what asks without a command line of its own.
    pub(crate) fn of_words(dump: &Path, options: &[OsString]) -> anyhow::Result<Self> {
        #[derive(clap::Parser)]
        struct Only {
            #[command(flatten)]
            input: Input,
        }
        let words = [OsStr::new("hprof-cli")].into_iter().chain(options.iter().map(OsString::as_os_str));
        Ok(Only::try_parse_from(words.chain([OsStr::new("--"), dump.as_os_str()]))?.input)
    }

    /// The options that another command needs to open the same, as words.
    pub(crate) fn words(&self) -> Vec<OsString> {
        // That which was asked for, also of a copy: it is for other dumps too.
        let index_dir = self.asked_index_dir().map(index_dir_word);
        let heap_dump = self.heap_dump.map(|number| format!("--heap-dump={number}"));
        let threads = self.threads.map(|threads| format!("--threads={threads}"));
        index_dir.into_iter().chain(heap_dump.into_iter().chain(threads).map(OsString::from)).collect()
    }

    /// What selections mean in this dump: the name of a class may look like an object ID. The dump is opened only then.
    pub(crate) fn settled(
        &self,
        cx: &RunContext,
        selections: &[Selection],
    ) -> anyhow::Result<Vec<Selection>> {
        if !selections.iter().any(Selection::is_ambiguous) {
            return Ok(selections.to_vec());
        }
        let heap = self.open_quietly(cx)?;
        Ok(selections.iter().map(|selection| selection.settled(heap.summary())).collect())
    }

    /// The same way of reading, for another dump.
    pub(crate) fn of(&self, dump: &Path) -> Self {
        Self { dump: dump.to_owned(), ..self.clone() }
    }

    /// What the user allows of memory.
    pub(crate) fn memory_bytes(&self) -> Option<u64> {
        self.memory.and_then(|Memory(bytes)| bytes)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.dump
    }

    /// Which of several heap dumps is asked for.
    pub(crate) fn heap_dump(&self) -> Option<u32> {
        self.heap_dump
    }

    fn index_dir(&self) -> Option<&Path> {
        // That of a copy goes with it.
        if let Some(dir) = spool::index_dir(&self.dump) {
            return Some(dir);
        }
        self.asked_index_dir()
    }

    /// The directory for indexes of files, if one was given.
    fn asked_index_dir(&self) -> Option<&Path> {
        self.index.given()
    }

    /// The directory for indexes, if it was given by the option: what the environment says later commands know as well.
    pub(crate) fn index_dir_option(&self) -> Option<&Path> {
        let in_environment = std::env::var_os(INDEX_DIR);
        let is_copy = spool::index_dir(&self.dump).is_some();
        self.index_dir().filter(|dir| !is_copy && Some(dir.as_os_str()) != in_environment.as_deref())
    }

    /// Runs `work` with the threads asked for.
    pub(crate) fn with_threads<T: Send>(&self, work: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
        let (mut work, mut result) = (Some(work), None);
        self.run_with_threads(&mut || result = work.take().map(|work| work()))?;
        result.context("no thread has run")
    }

    fn run_with_threads(&self, work: &mut (dyn FnMut() + Send)) -> anyhow::Result<()> {
        // Each thread takes memory: a limit may leave too little for all cores. That is found once, as the threads of the
        // process are started once.
        let enough = || *ENOUGH.get_or_init(|| memory::threads(self.memory_bytes()));
        if let Some(threads) = self.threads.map(usize::from).or_else(enough) {
            let builder = || rayon::ThreadPoolBuilder::new().num_threads(threads);
            // The pool of the process, if there is none yet: other threads give it work too, as those of SQL do.
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

    /// Opens the dump and says on stderr what there is to say.
    pub(crate) fn open(&self, cx: &RunContext) -> anyhow::Result<Arc<Heap>> {
        let heap = self.open_records(cx)?;
        if !self.quiet {
            messages::about_no_heap(cx, &heap);
        }
        Ok(heap)
    }

    /// As [`Input::open`], for what needs no heap dump: dumps of the agent can do without.
    pub(crate) fn open_records(&self, cx: &RunContext) -> anyhow::Result<Arc<Heap>> {
        let heap = self.open_quietly(cx)?;
        messages::about(cx, &heap, self.quiet);
        Ok(heap)
    }

    /// As [`Input::open`], and says nothing: for a dump that will be opened again.
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

    /// Opens the dump with its graph by `open`.
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

    /// Opens the dump with its graph by `open`, and says on stderr what there is to say.
    fn open_graph_first(
        &self,
        cx: &RunContext,
        open: OpenGraph,
    ) -> anyhow::Result<(Arc<Heap>, Arc<ObjectGraph>)> {
        let opened = self.open_graph(cx, open)?;
        messages::about(cx, &opened.0, self.quiet);
        if !self.quiet {
            messages::about_no_heap(cx, &opened.0);
        }
        if opened.1.roots.boot_classes_assumed && !self.quiet {
            cx.say(
                "note",
                "the dump contains no sticky class roots: all classes of the boot loader count as roots",
            );
        }
        Ok(opened)
    }

    /// Opens the dump with its graph and asks it. An index that turns out to be damaged while it is read is built again,
    /// and asked again: `ask` must not have shown anything yet.
    pub(crate) fn with_graph<T: Send>(
        &self,
        cx: &RunContext,
        ask: impl Fn(&Heap, &ObjectGraph) -> anyhow::Result<T> + Send + Sync,
    ) -> anyhow::Result<(Arc<Heap>, Arc<ObjectGraph>, T)> {
        self.ask_graph(cx, &|open| self.open_graph_first(cx, open), |heap, graph| ask(heap, graph))
    }

    /// As [`Input::with_graph`], for what keeps dump and graph beyond the question.
    pub(crate) fn with_shared_graph<T: Send>(
        &self,
        cx: &RunContext,
        ask: impl Fn(&Arc<Heap>, &Arc<ObjectGraph>) -> anyhow::Result<T> + Send + Sync,
    ) -> anyhow::Result<(Arc<Heap>, Arc<ObjectGraph>, T)> {
        self.ask_graph(cx, &|open| self.open_graph_first(cx, open), ask)
    }

    /// As [`Input::with_graph`], of a dump of which everything was said when it was opened without its graph.
    pub(crate) fn with_graph_again<T: Send>(
        &self,
        cx: &RunContext,
        ask: impl Fn(&Heap, &ObjectGraph) -> anyhow::Result<T> + Send + Sync,
    ) -> anyhow::Result<(Arc<Heap>, Arc<ObjectGraph>, T)> {
        self.ask_graph(cx, &|open| self.open_graph(cx, open), |heap, graph| ask(heap, graph))
    }

    fn ask_graph<T: Send>(
        &self,
        cx: &RunContext,
        opened: Opened<'_>,
        ask: impl Fn(&Arc<Heap>, &Arc<ObjectGraph>) -> anyhow::Result<T> + Send + Sync,
    ) -> anyhow::Result<(Arc<Heap>, Arc<ObjectGraph>, T)> {
        let mut answer = None;
        let (heap, graph) = self.ask_until_right(cx, opened, &mut |heap, graph| {
            answer = Some(ask(heap, graph)?);
            Ok(())
        })?;
        Ok((heap, graph, answer.context("the dump was not asked")?))
    }

    /// Asks once, or twice if the index is damaged: the last answer is right.
    fn ask_until_right(
        &self,
        cx: &RunContext,
        opened: Opened<'_>,
        ask: Ask<'_>,
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
        // All of it is read now, and what is damaged is built again.
        let (heap, graph) = opened(Heap::open_graph_checked)?;
        self.with_threads(|| ask(&heap, &graph))??;
        heap.check_unwritten()?;
        anyhow::ensure!(!graph.is_damaged(), "the index is damaged again right after it was built");
        Ok((heap, graph))
    }
}

/// Why there are no threads, and what to do about it: each takes addresses for its stack.
fn not_started(threads: usize, error: &rayon::ThreadPoolBuildError) -> String {
    let threads = counted(threads as u64, "thread");
    format!("cannot start {threads}: {error}; raise the limits (ulimit -v, ulimit -u), or try --threads 1")
}

/// The option for a directory for indexes, as a word.
pub(crate) fn index_dir_word(dir: &Path) -> OsString {
    let mut word = OsString::from(INDEX_DIR_OPTION);
    word.push(dir);
    word
}

/// Returns whether [`index_dir_word`] has made this word.
pub(crate) fn is_index_dir_word(word: &OsStr) -> bool {
    word.as_encoded_bytes().starts_with(INDEX_DIR_OPTION.as_bytes())
}

/// Reads the directory for indexes: an empty variable is as good as none, and an empty option is a slip.
fn index_dir_parser() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|text| {
        let is_slip = text.is_empty() && std::env::var_os(INDEX_DIR).is_none_or(|dir| !dir.is_empty());
        if is_slip { Err("a directory is expected") } else { Ok(PathBuf::from(text)) }
    })
}

/// How sizes are determined.
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
    /// Returns whether a layout was given.
    pub(crate) fn is_given(&self) -> bool {
        self.layout.is_some()
    }

    pub(crate) fn sizes(&self, heap: &Heap) -> Sizes {
        Sizes::new(heap.summary(), self.layout.as_ref())
    }
}

/// How the answer is shown; with `MARKDOWN` also for a ticket.
#[derive(Debug, Args)]
pub(crate) struct Output<const MARKDOWN: bool = false> {
    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        value_parser = keys(if MARKDOWN { FORMATS } else { DATA_FORMATS }),
        default_value = "table",
        help_heading = "Output"
    )]
    format: FormatArg,

    /// When to use color; `auto` respects NO_COLOR
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    pub(crate) color: ColorArg,
}

impl<const MARKDOWN: bool> Output<MARKDOWN> {
    /// The format; Markdown has what a table has.
    pub(crate) fn format(&self) -> Format {
        match self.format {
            FormatArg::Rows(format) => format,
            FormatArg::Markdown => Format::Table,
        }
    }

    /// What is shown of an answer without rows: Markdown has the line that is otherwise on stderr only, as a ticket would be
    /// empty without it.
    pub(crate) fn no_rows(&self, line: impl Into<Cow<'static, str>>) -> NoRows {
        if self.is_markdown() { NoRows::Line(line.into()) } else { NoRows::Nothing }
    }

    /// Returns whether the answer is shown as Markdown.
    pub(crate) fn is_markdown(&self) -> bool {
        self.format == FormatArg::Markdown
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormatArg {
    Rows(Format),
    Markdown,
}

/// The words of `--format`.
const DATA_FORMATS: &[Key<FormatArg>] = &[TABLE, JSON, CSV];
/// The same, of commands whose answers have few rows.
const FORMATS: &[Key<FormatArg>] =
    &[TABLE, JSON, CSV, ("markdown", FormatArg::Markdown, "Markdown for a ticket")];
const TABLE: Key<FormatArg> = ("table", FormatArg::Rows(Format::Table), "Table for people");
const JSON: Key<FormatArg> = ("json", FormatArg::Rows(Format::Json), "One JSON document");
const CSV: Key<FormatArg> =
    ("csv", FormatArg::Rows(Format::Csv), "Comma-separated values with a header line");

/// A size, or nothing: an empty variable is as good as none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Memory(Option<u64>);

fn memory_size(text: &str) -> Result<Memory, size::NoSize> {
    if text.is_empty() { Ok(Memory(None)) } else { size::parse(text).map(|bytes| Memory(Some(bytes))) }
}

/// Reads a part of a whole: 0 to 1.
pub(crate) fn ratio(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(ratio),
        _ => Err("expected a fraction from 0 to 1, for example 0.0001".to_owned()),
    }
}
