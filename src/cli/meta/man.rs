//! `man`: man pages.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap_mangen::Man;

use crate::cli::Outcome;
use crate::cli::shared::output;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli man | man -l -
  hprof-cli man histo | man -l -
  hprof-cli man --dir ~/.local/share/man/man1";

/// Print a man page, or write all of them to a directory
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The command whose page is printed [default: the page of hprof-cli itself]
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Option<String>,

    /// Write hprof-cli.1 and a page for each command here
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut root = crate::cli::command().disable_help_subcommand(true);
    root.build();
    if let Some(dir) = &args.dir {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        for command in std::iter::once(&root).chain(root.get_subcommands()) {
            let name = page_name(command);
            let path = dir.join(format!("{name}.1"));
            std::fs::write(&path, page(command)?)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        return Ok(Outcome::Fine);
    }
    let command = match &args.command {
        None => &root,
        Some(name) => root
            .find_subcommand(name)
            .with_context(|| format!("there is no command '{name}'; `hprof-cli --help` lists them"))?,
    };
    let mut out = output::stdout();
    out.write_all(&page(command)?)?;
    output::finish(out)?;
    Ok(Outcome::Fine)
}

fn page_name(command: &clap::Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

fn page(command: &clap::Command) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone().version(env!("CARGO_PKG_VERSION"))).render(&mut page)?;
    Ok(page)
}
