//! The options of this program's commands.

use std::sync::OnceLock;

/// An option of some command.
pub(super) struct OwnOption {
    /// Name, without hyphens.
    pub(super) long: String,
    short: Option<char>,
    pub(super) takes_value: bool,
}

/// Names of formats of other tools that are not ours, and ours.
const FORMATS: &[(&str, &str)] = &[("collapsed", "folded"), ("md", "markdown"), ("txt", "text")];

/// Returns all options of all commands; only lines that fail need them.
fn own_options() -> &'static [OwnOption] {
    static ALL: OnceLock<Vec<OwnOption>> = OnceLock::new();
    ALL.get_or_init(|| {
        let program = crate::cli::command();
        let options = program.get_subcommands().flat_map(clap::Command::get_arguments);
        let options = options.filter_map(|option| {
            let long = option.get_long()?.to_owned();
            Some(OwnOption {
                long,
                short: option.get_short(),
                takes_value: option.get_action().takes_values(),
            })
        });
        options.collect()
    })
}

impl OwnOption {
    /// Returns the option with this name, with its hyphens: `--format`, `-f`.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        if let Some(long) = name.strip_prefix("--") {
            return own_options().iter().find(|option| option.long == long);
        }
        let mut letters = name.strip_prefix('-')?.chars();
        let (short, None) = (letters.next()?, letters.next()) else { return None };
        own_options().iter().find(|option| option.short == Some(short))
    }
}

/// Returns whether the command with this name has this option.
pub(super) fn has_option(command: &str, option: &str) -> bool {
    let Some(program) = crate::cli::alone(command) else { return false };
    let mut options = program.get_subcommands().flat_map(clap::Command::get_arguments);
    options.any(|argument| argument.get_long() == option.strip_prefix("--"))
}

/// Returns our name of a format, if the word is one; a file is seldom called so.
pub(super) fn format_named(word: &str) -> Option<&str> {
    let other = FORMATS.iter().find(|(name, _)| *name == word).map(|(_, own)| *own);
    other.or_else(|| {
        ["folded", "json", "csv", "table", "markdown", "html", "svg"].contains(&word).then_some(word)
    })
}
