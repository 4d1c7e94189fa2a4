//! `completions`: shell completions.

use std::io::Write;

use clap_complete::Shell;

use crate::cli::Outcome;
use crate::cli::shared::output;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli completions bash > ~/.local/share/bash-completion/completions/hprof-cli
  hprof-cli completions zsh > ~/.zfunc/_hprof-cli
  hprof-cli completions fish > ~/.config/fish/completions/hprof-cli.fish";

/// Print completions for a shell
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    // clap_complete panics if it cannot write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::cli::command(), "hprof-cli", &mut script);
    let mut out = output::stdout();
    out.write_all(&script)?;
    output::finish(out)?;
    Ok(Outcome::Fine)
}
