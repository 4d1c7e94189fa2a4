//! `agent`: the location of the agent's library and how to load it; and `agent load`, which loads it.

use std::io::Write;
use std::path::Path;

use crate::cli::prelude::*;
use crate::cli::shared::output;
use hprof_report::json::DumpHeader;

use super::{library, load};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli agent
  java -agentpath:$(hprof-cli agent --path)=heap=sites,depth=8 -jar app.jar
  java -agentpath:$(hprof-cli agent --path)=help
  hprof-cli agent load 4711 heap=sites,file=/home/app/sites.txt";

/// Show where the HPROF agent is and how to load it
///
/// The agent records allocation sites, CPU samples, monitors and heap dumps in a JVM (JDK 11 or later), with the
/// options of the agent that was part of JDK 5 to 8. Its library is searched for in $HPROF_CLI_AGENT, in the directory
/// of this program, and in ../lib and ../lib/hprof-cli, in this order. `hprof-cli run` starts a program with it.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct AgentArgs {
    #[command(subcommand)]
    action: Option<Action>,

    /// Print only the path of the library
    #[arg(long, conflicts_with_all = ["format", "color"], help_heading = "Output")]
    path: bool,

    #[command(flatten)]
    output: Output,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    #[command(after_long_help = format!("{}\n\n{}", load::EXAMPLES, crate::cli::EXIT_CODES))]
    Load(load::LoadArgs),
}

/// Options used in the examples.
const EXAMPLE: &str = "heap=sites,cpu=samples,depth=8";

/// Features that are not available in a JVM that is already running.
const LATE: [&str; 4] = [
    "objects that were allocated before the agent was loaded have no allocation trace",
    "sampling of a running thread starts with its next allocation buffer; earlier allocations are missing",
    "virtual threads are not distinguished from their carrier threads",
    "classes loaded before the agent are not measured (cpu=times, cpu=old)",
];

/// Location and state of the agent's library, as a row of the result.
struct AgentLocation {
    library: String,
    agentpath: String,
    jcmd: String,
    java_tool_options: Option<String>,
}

impl AgentLocation {
    fn new(library: &Path) -> Self {
        let agentpath = library::argument(library, EXAMPLE);
        let option = library::tool_option(&agentpath);
        Self {
            library: library.to_string_lossy().into_owned(),
            jcmd: library::jcmd(library, EXAMPLE),
            java_tool_options: option,
            agentpath,
        }
    }

    /// Returns the lines that a table shows.
    fn lines(&self) -> Vec<String> {
        let quoted = crate::cli::shared::commands::quoted;
        let mut lines = vec![
            format!("library  {}", self.library),
            String::new(),
            "Load it when a JVM starts:".to_owned(),
            format!("  java {} Main", quoted(&self.agentpath)),
        ];
        if let Some(option) = &self.java_tool_options {
            lines.push("If a script or another program starts java:".to_owned());
            lines.push(format!("  export JAVA_TOOL_OPTIONS={}", quoted(option)));
        }
        lines.extend([
            "Load it into a running JVM:".to_owned(),
            format!("  hprof-cli agent load PID {EXAMPLE}"),
            "or without hprof-cli:".to_owned(),
            format!("  {}", self.jcmd),
            String::new(),
        ]);
        lines.push("Limitations in a JVM that is already running:".to_owned());
        lines.extend(LATE.iter().map(|line| format!("- {line}")));
        lines.push(String::new());
        lines.extend(library::USAGE.lines().map(str::to_owned));
        lines
    }
}

/// The library, as the source file of the result.
struct Library<'a>(&'a Path);

impl AnswerSource for Library<'_> {
    fn header(&self) -> DumpHeader<'_> {
        DumpHeader { path: self.0.to_string_lossy(), ..DumpHeader::default() }
    }

    fn is_damaged(&self) -> bool {
        false
    }
}

pub(crate) fn run(cx: &RunContext, args: &AgentArgs) -> anyhow::Result<Outcome> {
    if let Some(Action::Load(args)) = &args.action {
        return load::run(cx, args);
    }
    let library = library::find()?;
    if args.path {
        let mut out = cx.writer();
        // Unescaped: a shell inserts it into a command.
        out.write_all(library.as_os_str().as_encoded_bytes())?;
        out.write_all(b"\n")?;
        output::finish(out)?;
        return Ok(Outcome::Fine);
    }
    let row = AgentLocation::new(&library);
    let lines = row.lines();
    let answer = Answer::new(columns(), [row])
        .with_section_above(Section::unwrapped_lines(lines))
        .if_empty(NoRows::Nothing);
    Library(&library).show(cx, "agent", &args.output, answer)?;
    Ok(Outcome::Fine)
}

fn columns() -> Columns<'static, AgentLocation> {
    Columns::new([
        Column::new(names::LIBRARY, |row: &AgentLocation| Value::from(&row.library)),
        Column::new(names::AGENTPATH, |row: &AgentLocation| Value::from(&row.agentpath)),
        Column::new(names::JAVA_TOOL_OPTIONS, |row: &AgentLocation| row.java_tool_options.as_deref().into())
            .or_null("the path contains both kinds of quotes"),
        Column::new(names::JCMD, |row: &AgentLocation| Value::from(&row.jcmd)),
        Column::new(names::USAGE, |_: &AgentLocation| library::USAGE.into()),
    ])
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![ResultSchema {
        command: "agent",
        variant: "",
        about: "The row is the agent's library, whose path is also `dump.path`.",
        rows: columns().fields(),
        summary: Vec::new(),
    }]
}
