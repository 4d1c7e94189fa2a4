//! `report`: a self-contained file about a heap, for sharing.

mod conclusions;
mod html;
mod markdown;
mod sections;

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ValueEnum;

use crate::cli::memory::ProcessArg;
use crate::cli::pages::ask::{CommandQuery, Failure};
use crate::cli::pages::document::JsonLookup;
use crate::cli::pages::site::{AvailableData, Site};
use crate::cli::prelude::*;
use crate::cli::shared::beside_recording::RecordingArg;
use crate::cli::shared::context::Note;
use crate::cli::shared::frameworks::FrameworksArgs;
use crate::cli::shared::hiding;
use crate::cli::shared::output;
use crate::cli::shared::output::file::OutFile;
use hprof_report::json::SCHEMA_VERSION;

use conclusions::Conclusions;
use sections::Section;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli report heap.hprof -o report.html
  hprof-cli report heap.hprof -o report.html --no-values
  hprof-cli report new.hprof --baseline old.hprof -o report.html
  hprof-cli report heap.hprof --format markdown --sections overview,suspects
  hprof-cli report heap.hprof --format json -o report.json";

/// Maximum size of an HTML report: larger files are rejected by mail servers.
const MAX_BYTES: usize = 1 << 20;

/// Write a self-contained report about a heap, for sharing
///
/// The report needs no network and no server. It is at most 1 MiB long, and states what was omitted and which command
/// shows it. Dumps contain secrets, and so does the report; --no-values omits the contents of objects: strings, map
/// keys, names of threads and class loaders, properties and arguments. Sizes, counts and limits are included.
#[derive(Debug, clap::Args)]
#[command(mut_arg("dump", |dump| dump.help("Heap dump, or recording of the HPROF agent; plain or compressed")))]
#[command(arg = hiding::no_values())]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    input: Input,

    /// Compare with this older dump, in a section about growth
    #[arg(
        long,
        value_name = "OLD",
        value_hint = clap::ValueHint::FilePath,
        help_heading = "Input"
    )]
    baseline: Option<PathBuf>,

    #[command(flatten)]
    frameworks: FrameworksArgs,

    #[command(flatten)]
    recording: RecordingArg,

    #[command(flatten)]
    process: ProcessArg,

    /// Only these sections, in this order
    #[arg(long, value_name = "SECTION,...", value_delimiter = ',', help_heading = "Output")]
    sections: Vec<Section>,

    /// Write to FILE, which is created only when it is complete [default: stdout]
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Output")]
    output: Option<PathBuf>,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "html", help_heading = "Output")]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A single HTML page
    Html,
    /// Markdown, to paste into a ticket
    Markdown,
    /// One JSON document, with the document of each command
    Json,
}

/// The file that a report is about, and facts about it.
struct About {
    cx: RunContext,
    site: Site,
    has: AvailableData,
    is_damaged: bool,
    /// Sentences about damage to the file.
    damage: Vec<String>,
}

impl About {
    fn dump(&self) -> &Path {
        self.site.dumps.first().map_or(Path::new(""), PathBuf::as_path)
    }

    /// Stores notes about damage, and prints them to stderr.
    fn note_damage(&mut self, cx: &RunContext, notes: &[Note]) {
        for note in notes.iter().filter(|note| note.kind == "warning") {
            cx.emit(note.kind, &note.text);
            self.damage.push(note.text.clone());
        }
    }

    fn ask(&self, command: &'static str) -> CommandQuery<'_> {
        CommandQuery::new(&self.cx, &self.site, self.dump(), command)
    }
}

pub(crate) fn run(cx: &RunContext, args: &ReportArgs) -> anyhow::Result<Outcome> {
    anyhow::ensure!(
        args.format != Format::Html || args.output.is_some() || !io::stdout().is_terminal(),
        "a page cannot be shown in a terminal: write it to a file with -o report.html, or use --format markdown"
    );
    let inputs: Vec<&Path> = [args.input.path()].into_iter().chain(args.baseline.as_deref()).collect();
    // Created before a long read, so that an error is reported at once.
    let file = args.output.as_deref().map(|path| OutFile::create(path, &inputs)).transpose()?;
    let about = inspect_file(cx, args)?;
    let wanted: Vec<Section> = if args.sections.is_empty() {
        Section::value_variants().iter().copied().filter(|section| section.is_in(&about)).collect()
    } else {
        if cx.hides_values && args.sections.contains(&Section::Strings) {
            anyhow::bail!(
                "the section strings contains only values, which are hidden; omit the section, or --no-values"
            );
        }
        args.sections.clone()
    };
    if !about.cx.hides_values && !args.input.quiet {
        cx.emit("note", "the report contains texts of the heap, which may be secret; --no-values omits them");
    }
    let conclusions = Conclusions::new(&about, &wanted);
    let text = match args.format {
        Format::Html => html::report(&about, &conclusions, &wanted)?,
        Format::Markdown => markdown::report(&about, &conclusions, &wanted),
        Format::Json => json(&about, &conclusions, &wanted)?,
    };
    match file {
        Some(mut file) => {
            let name = format!("cannot write {}", file.path().display());
            file.write_all(text.as_bytes()).context(name)?;
            file.commit()?;
        }
        None => {
            let mut out = cx.writer();
            out.write_all(text.as_bytes())?;
            output::finish(out)?;
        }
    }
    Ok(if about.is_damaged || about.cx.saw_damage() { Outcome::Damaged } else { Outcome::Fine })
}

/// Reads the facts about the file. Fails if it cannot be opened.
fn inspect_file(cx: &RunContext, args: &ReportArgs) -> anyhow::Result<About> {
    let site = Site::new(vec![args.input.path().to_owned()], args.baseline.clone(), args.input.words());
    args.recording.check()?;
    args.process.check()?;
    let recording = args.recording.path().map(Path::to_owned);
    let site = Site { recording, process: args.process.path().map(Path::to_owned), ..site };
    let frameworks = args.frameworks.rules(cx)?;
    let mut about = About {
        cx: cx.keeping_dumps(None, cx.hides_values).with_frameworks(frameworks),
        site,
        has: AvailableData { heap: false, recording: true, objects: 0 },
        is_damaged: false,
        damage: Vec::new(),
    };
    match about.ask("info").json() {
        Ok((document, notes)) => {
            about.note_damage(cx, &notes);
            about.has = AvailableData::from_document(&document);
            about.is_damaged = document.dump().is(names::IS_DAMAGED);
        }
        // A text report has no `info`; any other file fails here.
        Err(_) => match about.ask("summary").json() {
            Ok((document, notes)) => {
                about.note_damage(cx, &notes);
                about.is_damaged = document.dump().is(names::IS_DAMAGED);
            }
            Err(failure) => {
                let hint = failure.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                anyhow::bail!("{}{hint}", failure.text)
            }
        },
    }
    Ok(about)
}

/// Returns one document that contains the documents of all sections.
fn json(about: &About, conclusions: &Conclusions<'_>, sections: &[Section]) -> anyhow::Result<String> {
    let mut rows = Vec::new();
    let mut dump = serde_json::Value::Null;
    for section in sections {
        for ask in section.queries(about) {
            if *section == Section::Flamegraph {
                let (folded, _) = ask
                    .format("folded")
                    .map_err(|failure| anyhow::anyhow!("{}: {}", section.title(), failure.text))?;
                let folded = String::from_utf8_lossy(&folded);
                rows.push(
                    serde_json::json!({ "section": section.title(), "shell": ask.shell(), "folded": folded }),
                );
                continue;
            }
            let failed = |failure: &Failure| anyhow::anyhow!("{}: {}", section.title(), failure.text);
            let document = match section {
                Section::Overview => conclusions.overview().as_ref().map_err(failed)?.clone(),
                Section::Suspects => conclusions.leaks().as_ref().map_err(failed)?.clone(),
                _ => ask.json().map_err(|failure| failed(&failure))?.0,
            };
            if dump.is_null() {
                dump = document.dump().clone();
            }
            rows.push(
                serde_json::json!({ "section": section.title(), "shell": ask.shell(), "document": document }),
            );
        }
    }
    let headline = conclusions
        .headline()
        .map_err(|failure| anyhow::anyhow!("cannot determine the headline: {}", failure.text))?;
    let document = serde_json::json!({
        "schema_version": SCHEMA_VERSION, "command": "report", "dump": dump, "rows": rows,
        "headline": headline, "damage": about.damage, "no_values": about.cx.hides_values,
    });
    Ok(String::from_utf8(hprof_report::json::document(&document)?)?)
}
