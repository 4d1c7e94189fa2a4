//! `mcp`: answers for assistants, by the Model Context Protocol on stdin and stdout.
//!
//! | question | where |
//! |---|---|
//! | What is a message, and which era of the protocol is it? | [`message`] |
//! | Which methods are there? | [`server`] |
//! | Which tools are there, and which command answers each? | [`tools`] |
//! | How does a command become an answer that fits? | [`call`] runs it, [`budget`] cuts it |
//! | Prompts, resources and instructions | [`texts`] |
//!
//! A call is a process of this program with the arguments of a shell: its figures are the command's own, it can be cancelled,
//! and what it does with a hostile dump happens there.

mod budget;
mod call;
pub(crate) mod message;
mod server;
mod texts;
mod tools;

use std::ffi::OsString;
use std::path::PathBuf;

#[cfg(feature = "serve")]
pub(crate) use self::call::Processes;
#[cfg(feature = "serve")]
pub(crate) use self::message::ClientMessage;
pub(crate) use self::server::Server;
#[cfg(feature = "serve")]
pub(crate) use self::server::{MAX_CALLS, MAX_LINE};
use crate::cli::Outcome;
use crate::cli::shared::args::{IndexDir, index_dir_word};
use crate::cli::shared::context::RunContext;
use hprof_query::objects::condition::size;

/// Maximum size of an answer by default, as of `--max-bytes`.
#[cfg(feature = "serve")]
pub(crate) const MAX_BYTES: usize = 16 << 10;

/// Minimum of `--max-bytes`: evidence and one row have to fit.
const MIN_BYTES: usize = 4 << 10;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli mcp heap.hprof
  hprof-cli mcp old.hprof new.hprof --index-dir /var/tmp/index
  claude mcp add heap -- hprof-cli mcp /dumps/heap.hprof";

/// Answer the questions of assistants (Model Context Protocol)
///
/// Speaks on stdin and stdout, for clients that start it: the protocol's versions from 2024-11-05 to 2026-07-28. Tools only
/// read the given dumps; each answer names the shell command that gives the same. Values of Strings and arrays are hidden,
/// also from queries, unless --values is given. docs/mcp.md has configurations for clients.
#[derive(Debug, clap::Args)]
pub(crate) struct McpArgs {
    /// Heap dumps, which tools know as d1, d2, …, in this order: an older one first
    #[arg(value_name = "DUMP", required = true, help_heading = "Input")]
    dumps: Vec<PathBuf>,

    #[command(flatten)]
    index: IndexDir,

    /// Let answers contain values of Strings and arrays, which may be secrets
    #[arg(long, help_heading = "Answers")]
    values: bool,

    /// Maximum size of an answer, unless a call asks for another
    #[arg(long, value_name = "SIZE", default_value = "16KiB", value_parser = max_bytes, help_heading = "Answers")]
    max_bytes: usize,
}

fn max_bytes(text: &str) -> Result<usize, String> {
    let bytes = usize::try_from(size::parse(text).map_err(|error| error.to_string())?).unwrap_or(usize::MAX);
    if bytes < MIN_BYTES { Err("an answer has at least 4KiB".to_owned()) } else { Ok(bytes) }
}

pub(crate) fn run(_: &RunContext, args: &McpArgs) -> anyhow::Result<Outcome> {
    server::run(server(args.dumps.iter(), &args.index, args.values, args.max_bytes)?)?;
    Ok(Outcome::Fine)
}

/// Makes a server for these dumps.
///
/// # Errors
///
/// If one of them is not there.
pub(crate) fn server<'d>(
    dumps: impl Iterator<Item = &'d PathBuf> + Clone,
    index: &IndexDir,
    shows_values: bool,
    max_bytes: usize,
) -> anyhow::Result<Server> {
    for dump in dumps.clone() {
        anyhow::ensure!(dump.is_file(), "{} is not a file", dump.display());
    }
    let options: Vec<OsString> = index.given().map(index_dir_word).into_iter().collect();
    let dumps = dumps.map(std::path::absolute).collect::<Result<_, _>>()?;
    Ok(Server::new(dumps, options, shows_values, max_bytes)?)
}
