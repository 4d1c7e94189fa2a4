//! `run`: runs a program in a JVM with the agent.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use clap::ValueEnum;

use crate::cli::Outcome;
use crate::cli::shared::context::RunContext;
use crate::cli::shared::signals;

use super::library;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli run -- java -jar app.jar
  hprof-cli run --heap sites --depth 16 -o sites.txt -- java -jar app.jar
  hprof-cli run --cpu samples --options interval=5,thread=y -- java Main
  hprof-cli run --heap dump --format b -o heap.hprof -- mvn test";

/// Start a program with the HPROF agent
///
/// A command named `java` gets -agentpath as its first argument. Any other command gets it in the environment variable
/// JAVA_TOOL_OPTIONS, so that every JVM that it starts loads the agent; all JVMs but the first to exit add their
/// process ID to the file name. Without options, the agent records what the agent of JDK 5 to 8 records by default:
/// heap=all, as text, to java.hprof.txt. The exit code is that of the program.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// Record the heap
    #[arg(long, value_name = "WHAT", help_heading = "Agent")]
    heap: Option<Heap>,

    /// With --heap sites, record every allocation, which makes programs 20 to 30 times slower; by default, one
    /// allocation per 512 KiB is sampled at almost no cost
    #[arg(long, help_heading = "Agent")]
    exact: bool,

    /// Record CPU usage
    #[arg(long, value_name = "HOW", help_heading = "Agent")]
    cpu: Option<Cpu>,

    /// Output format: a for text, b for binary
    #[arg(short, long, value_name = "FORMAT", help_heading = "Agent")]
    format: Option<FormatOption>,

    /// Maximum depth of recorded stack traces
    #[arg(long, value_name = "N", help_heading = "Agent", value_parser = clap::value_parser!(u16).range(0..))]
    depth: Option<u16>,

    /// Write to FILE
    #[arg(
        short,
        long,
        value_name = "FILE",
        value_hint = clap::ValueHint::FilePath,
        conflicts_with = "net",
        help_heading = "Agent"
    )]
    output: Option<String>,

    /// Send the recording to `hprof-cli listen`
    #[arg(long, value_name = "HOST:PORT", help_heading = "Agent")]
    net: Option<String>,

    /// Further options of the agent, as listed by `hprof-cli agent`
    #[arg(long, value_name = "KEY=VALUE,...", help_heading = "Agent")]
    options: Option<String>,

    /// Command that starts the program, with its arguments
    #[arg(value_name = "COMMAND", required = true, last = true, value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Heap {
    /// A heap dump
    Dump,
    /// Sampled allocation sites
    Sites,
    /// Both
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Cpu {
    /// Samples of running threads
    Samples,
    /// Time in each method, by instrumentation
    Times,
    /// Time in each method by caller, by instrumentation
    Old,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatOption {
    /// Text
    A,
    /// Binary
    B,
}

/// Average number of bytes between allocation samples: the JVM's default (JEP 331).
const SAMPLED: u32 = 1 << 19;

impl RunArgs {
    /// Returns the options in the agent's syntax.
    fn agent_options(&self) -> anyhow::Result<String> {
        anyhow::ensure!(
            !self.exact || matches!(self.heap, Some(Heap::Sites)),
            "--exact applies to --heap sites; heap dumps always contain the allocation trace of each object"
        );
        let word =
            |value: Option<clap::builder::PossibleValue>| value.map(|value| value.get_name().to_owned());
        let pairs = [
            ("heap", word(self.heap.and_then(|heap| heap.to_possible_value()))),
            ("cpu", word(self.cpu.and_then(|cpu| cpu.to_possible_value()))),
            ("format", word(self.format.and_then(|format| format.to_possible_value()))),
            ("depth", self.depth.map(|depth| depth.to_string())),
            ("file", self.output.clone()),
            ("net", self.net.clone()),
        ];
        let mut options = Vec::new();
        for (key, value) in pairs {
            let Some(value) = value else { continue };
            anyhow::ensure!(
                !value.is_empty() && !value.contains(','),
                "the agent's option {key} cannot be `{value}`: it must not be empty, and commas separate options"
            );
            options.push(format!("{key}={value}"));
        }
        let more = self.options.as_deref().unwrap_or_default();
        let sample = more.split(',').find(|option| option.starts_with("sample="));
        if let Some(sample) = sample.filter(|sample| self.exact && *sample != "sample=0") {
            anyhow::bail!(
                "--exact records every allocation, but {sample} in --options samples them; omit one of them"
            );
        }
        if self.heap == Some(Heap::Sites) && !self.exact && sample.is_none() {
            options.push(format!("sample={SAMPLED}"));
        }
        options.extend(self.options.clone().filter(|options| !options.is_empty()));
        Ok(options.join(","))
    }
}

/// Returns whether a program is a JVM launcher, such as `java`: it takes JVM options as arguments.
fn is_launcher(program: &Path) -> bool {
    let name =
        program.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let name = name.strip_suffix(".exe").unwrap_or(&name);
    matches!(name, "java" | "javaw")
}

pub(crate) fn run(cx: &RunContext, args: &RunArgs) -> anyhow::Result<Outcome> {
    // clap requires it.
    let Some((program, arguments)) = args.command.split_first() else { return Ok(Outcome::No) };
    let is_java = is_launcher(Path::new(program));
    let mut options = args.agent_options()?;
    if args.exact {
        let cost = "--exact records every allocation, which makes the program 20 to 30 times slower; omit it to \
                    sample allocations";
        cx.emit("note", cost);
    }
    if !is_java && !options.split(',').any(|option| option.starts_with("force=")) {
        // There may be several JVMs.
        options.push_str(if options.is_empty() { "force=n" } else { ",force=n" });
    }
    let argument = library::argument(&library::find()?, &options);
    let mut command = Command::new(program);
    if is_java {
        command.arg(&argument);
    } else {
        let option = library::tool_option(&argument).ok_or_else(|| {
            anyhow::anyhow!("JAVA_TOOL_OPTIONS cannot contain {argument}: it contains both kinds of quotes")
        })?;
        let mut value = std::env::var_os(TOOL_OPTIONS).unwrap_or_default();
        if !value.is_empty() {
            value.push(" ");
        }
        value.push(&option);
        command.env(TOOL_OPTIONS, &value);
        let text = format!(
            "{} is not the java launcher; the agent is passed to JVMs in {TOOL_OPTIONS}={}",
            program.to_string_lossy(),
            value.to_string_lossy()
        );
        cx.emit("note", &text);
    }
    command.args(arguments);
    start(command, &program.to_string_lossy())
}

/// Environment variable whose words every JVM treats as arguments.
const TOOL_OPTIONS: &str = "JAVA_TOOL_OPTIONS";

/// Replaces this process with the program, which then gets all signals and determines the exit code.
#[cfg(unix)]
fn start(mut command: Command, program: &str) -> anyhow::Result<Outcome> {
    use std::os::unix::process::CommandExt;
    signals::uninstall();
    // Returns only if the program could not be started.
    let error = command.exec();
    Err(anyhow::Error::new(error).context(format!("cannot start {program}")))
}

#[cfg(not(unix))]
fn start(mut command: Command, program: &str) -> anyhow::Result<Outcome> {
    use anyhow::Context;
    signals::uninstall();
    let status = command.status().with_context(|| format!("cannot start {program}"))?;
    std::process::exit(status.code().unwrap_or(2));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_the_file_of_the_agent() {
        let options = |words: &[&str]| {
            let line = ["hprof-cli", "run"].into_iter().chain(words.iter().copied()).chain(["--", "java"]);
            let matches = crate::cli::command().try_get_matches_from(line).ok()?;
            let args = <RunArgs as clap::FromArgMatches>::from_arg_matches(matches.subcommand()?.1).ok()?;
            Some(args.agent_options().map_err(|error| error.to_string()))
        };
        for words in [&["-o", "a.hprof"][..], &["--output", "a.hprof"]] {
            assert_eq!(options(words), Some(Ok("file=a.hprof".to_owned())), "{words:?}");
        }
        assert_eq!(options(&["-o", "a=5"]), Some(Ok("file=a=5".to_owned())));
    }

    #[test]
    fn launchers() {
        for (program, is) in [
            ("java", true),
            ("/usr/lib/jvm/17/bin/java", true),
            ("JAVA.EXE", true),
            ("mvn", false),
            ("java.sh", false),
        ] {
            assert_eq!(is_launcher(Path::new(program)), is, "{program}");
        }
    }
}
