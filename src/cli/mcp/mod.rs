//! `mcp`: lets assistants query dumps by the Model Context Protocol on stdin and stdout.
//!
//! | question | where |
//! |---|---|
//! | What is a message, and which era of the protocol is it? | [`message`] |
//! | Which methods are there? | [`mod@server`] |
//! | Which tools are there, and which command does each run? | [`tools`] |
//! | How does a command become a result that fits? | [`call`] runs it, [`budget`] shortens it |
//! | Prompts, resources and instructions | [`texts`] |
//!
//! A call is a process of this program with the arguments of a shell: its numbers are the command's own, it can be cancelled,
//! and a hostile dump can affect only that process.

mod budget;
mod call;
pub(crate) mod message;
mod server;
mod texts;
mod tools;
mod wire;

use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};

pub(crate) use self::call::CallLimits;
#[cfg(feature = "serve")]
pub(crate) use self::call::Processes;
use self::call::Runner;
#[cfg(feature = "serve")]
pub(crate) use self::message::ClientMessage;
pub(crate) use self::server::McpServer;
#[cfg(feature = "serve")]
pub(crate) use self::server::{MAX_CALLS, MAX_LINE};
use crate::cli::Outcome;
use crate::cli::shared::args::IndexDir;
use crate::cli::shared::context::RunContext;
use crate::cli::shared::durations::QuestionTime;
use crate::cli::shared::hiding::HIDES_VALUES;
use crate::cli::shared::spool;
use hprof_query::objects::condition::size;

/// Default of `--max-bytes`: maximum size of a result in bytes.
#[cfg(feature = "serve")]
pub(crate) const MAX_BYTES: usize = 16 << 10;

/// Minimum of `--max-bytes`, including the limit of a single call: evidence and one row must fit.
const MIN_BYTES: usize = 4 << 10;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli mcp heap.hprof
  hprof-cli mcp old.hprof new.hprof --index-dir /var/tmp/index
  claude mcp add heap -- hprof-cli mcp /dumps/heap.hprof";

/// Answer the questions of assistants (Model Context Protocol)
///
/// Talks on stdin and stdout to the client that starts it, in protocol versions 2024-11-05 to 2026-07-28. Tools only
/// read the given dumps; each answer names the shell command that gives the same result. Values of Strings and arrays
/// are hidden, also in queries, unless --values is given. docs/mcp.md has configurations for clients.
#[derive(Debug, clap::Args)]
pub(crate) struct McpArgs {
    /// Heap dumps, older ones first; tools call them d1, d2, … in this order
    #[arg(value_name = "DUMP", required = true, value_parser = dump(), help_heading = "Input")]
    dumps: Vec<PathBuf>,

    #[command(flatten)]
    index: IndexDir,

    /// Let answers contain values of Strings and arrays, which may be secrets
    #[arg(long, help_heading = "Answers")]
    values: bool,

    /// Maximum size of an answer, unless a call asks for another
    #[arg(long, value_name = "SIZE", default_value = "16KiB", value_parser = max_bytes, help_heading = "Answers")]
    max_bytes: usize,

    #[command(flatten)]
    question_time: QuestionTime,
}

/// Returns the parser of a dump's path.
fn dump() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.as_os_str() == "-" {
        true => Err("standard input carries the messages of the client; name a file"),
        false => Ok(path),
    })
}

fn max_bytes(text: &str) -> Result<usize, String> {
    let bytes = usize::try_from(size::parse(text).map_err(|error| error.to_string())?).unwrap_or(usize::MAX);
    if bytes < MIN_BYTES { Err("the minimum is 4KiB".to_owned()) } else { Ok(bytes) }
}

pub(crate) fn run(cx: &RunContext, args: &McpArgs) -> anyhow::Result<Outcome> {
    anyhow::ensure!(
        !(args.values && cx.hides_values),
        "--values cannot be used while the environment variable {HIDES_VALUES} hides values"
    );
    let limits = CallLimits { time: args.question_time.time, memory: None, is_background: false };
    server::run(server(args.dumps.iter(), &args.index, args.values, args.max_bytes, limits)?)?;
    Ok(Outcome::Fine)
}

/// Creates a server for these dumps.
///
/// # Errors
///
/// If one of the dumps is not a file, or a path cannot be made absolute.
pub(crate) fn server<'d>(
    dumps: impl Iterator<Item = &'d PathBuf> + Clone,
    index: &IndexDir,
    shows_values: bool,
    max_bytes: usize,
    limits: CallLimits,
) -> anyhow::Result<McpServer> {
    for dump in dumps.clone() {
        anyhow::ensure!(dump.is_file(), "{} is not a file", dump.display());
    }
    let index_dir = index.path().map(std::path::absolute).transpose()?;
    let (directory, dumps) = command_paths(dumps)?;
    let program = std::env::current_exe()?.into_os_string();
    let runner = Runner { program, index_dir, directory, shows_values, limits };
    Ok(McpServer::new(dumps, runner, max_bytes))
}

/// Returns the paths of dumps for commands, and the directory in which the commands run. If all dumps are in one directory, the
/// paths are file names in it, so that results do not reveal the directory; otherwise the given paths.
fn command_paths<'d>(
    dumps: impl Iterator<Item = &'d PathBuf> + Clone,
) -> std::io::Result<(Option<PathBuf>, Vec<PathBuf>)> {
    let whole: Vec<PathBuf> = dumps.clone().map(std::path::absolute).collect::<Result<_, _>>()?;
    let directory = whole.first().and_then(|dump| dump.parent());
    let is_shared = whole.iter().all(|dump| dump.parent() == directory);
    let is_copy = dumps.clone().any(|dump| spool::original_path(dump) != dump.as_path());
    let names: Option<Vec<PathBuf>> = whole.iter().map(|dump| dump.file_name().map(PathBuf::from)).collect();
    let (directory, dumps) = match names.filter(|_| is_shared && !is_copy) {
        Some(names) => (directory.map(PathBuf::from), names),
        None => (None, dumps.cloned().collect()),
    };
    // A path that is neither an option nor standard input.
    let is_path = |dump: &PathBuf| !dump.as_os_str().as_encoded_bytes().starts_with(b"-");
    let plain = |dump: PathBuf| if is_path(&dump) { dump } else { PathBuf::from(".").join(dump) };
    Ok((directory, dumps.into_iter().map(plain).collect()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn dumps_of_one_directory_have_the_names_of_their_files() {
        let of = |dumps: &[&str]| {
            let dumps: Vec<PathBuf> = dumps.iter().map(PathBuf::from).collect();
            let (directory, words) = command_paths(dumps.iter()).unwrap();
            let words: Vec<String> = words.iter().map(|word| word.to_str().unwrap().to_owned()).collect();
            (directory, words)
        };
        let there = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(of(&["/a/x.hprof", "/a/y.hprof"]), (Some("/a".into()), there(&["x.hprof", "y.hprof"])));
        assert_eq!(of(&["/a/-x.hprof"]), (Some("/a".into()), there(&["./-x.hprof"])));
        assert_eq!(of(&["/a/x.hprof", "/b/x.hprof"]), (None, there(&["/a/x.hprof", "/b/x.hprof"])));
        assert_eq!(of(&["a/x.hprof", "b/x.hprof"]), (None, there(&["a/x.hprof", "b/x.hprof"])));
        assert_eq!(of(&["-x.hprof", "b/x.hprof"]), (None, there(&["./-x.hprof", "b/x.hprof"])));
    }
}
