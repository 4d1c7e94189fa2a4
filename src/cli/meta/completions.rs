//! `completions`: shell completions.

use std::io::Write;

use clap::{Arg, ValueHint};
use clap_complete::Shell;

use crate::cli::Outcome;
use crate::cli::shared::context::RunContext;
use crate::cli::shared::output;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli completions bash > ~/.local/share/bash-completion/completions/hprof-cli
  hprof-cli completions zsh > ~/.zfunc/_hprof-cli
  hprof-cli completions fish > ~/.config/fish/completions/hprof-cli.fish";

/// Generate shell completions
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// Shell to generate completions for
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub(crate) fn run(cx: &RunContext, args: &CompletionsArgs) -> anyhow::Result<Outcome> {
    let mut command = crate::cli::command().mut_subcommands(|command| command.mut_args(with_hint));
    // clap_complete panics if it cannot write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "hprof-cli", &mut script);
    let script = fix_script(args.shell, String::from_utf8(script)?);
    let mut out = cx.writer();
    out.write_all(script.as_bytes())?;
    output::finish(out)?;
    Ok(Outcome::Fine)
}

/// Returns the argument with a completion hint, if its value is a path or has no list of values.
///
/// With the hints that clap derives from types, the scripts offer file names for numbers and class names, and bash
/// splits file names at spaces.
fn with_hint(arg: Arg) -> Arg {
    match arg.get_value_hint() {
        ValueHint::AnyPath => arg.value_hint(ValueHint::FilePath),
        ValueHint::Unknown
            if arg.get_action().takes_values() && arg.get_value_parser().possible_values().is_none() =>
        {
            arg.value_hint(ValueHint::Other)
        }
        _ => arg,
    }
}

/// Returns the script of clap_complete with fixes that clap_complete 4.6.11 has no settings for.
///
/// There is no later version yet. If a later version contains a fix, the text to replace is not found, and the script is
/// not changed.
fn fix_script(shell: Shell, script: String) -> String {
    match shell {
        Shell::Bash => script
            // The program's name contains a hyphen: the loop over the words sets `cmd` to
            // `hprof__cli__subcmd__histo`, but the case is named `hprof__subcmd__cli__subcmd__histo`:
            // <https://github.com/clap-rs/clap/issues/6421>.
            .replace("hprof__subcmd__cli", "hprof__cli")
            // Before anything is typed, options would keep bash from completing the names of dumps.
            .replace(
                r#"compgen -W "${opts}""#,
                r#"compgen -X "$([[ -n ${cur} ]] || echo '-*')" -W "${opts}""#,
            )
            // Bash passes `--format=json` as three words.
            .replace(
                r#"prev="$3""#,
                r#"prev="$3"; [[ ${prev} != "=" ]] || prev="${COMP_WORDS[COMP_CWORD-2]}""#,
            ),
        // After `help`, offer command names unless one was given: `help` is itself a command, so none would ever be
        // offered.
        Shell::Fish => script.replace(r#" help" -f -a"#, r#"" -f -a"#),
        _ => script,
    }
}
