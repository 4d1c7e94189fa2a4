//! Options of other tools, and their equivalents here.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use hprof_query::naming::suggestions::names_like;

/// Options of other tools, and the equivalents here: the first one that the command has is suggested.
const HABITS: &[(&[&str], &[&str])] = &[
    (&["limit", "n", "t", "count", "max", "head", "rows", "lines", "max-rows"], &["--top"]),
    (&["by", "sort-by", "order", "order-by", "s"], &["--sort", "--group-by"]),
    (&["group", "groupby", "g"], &["--group-by", "--group"]),
    (&["json"], &["--format json"]),
    (&["csv"], &["--format csv"]),
    (&["markdown", "md"], &["--format markdown"]),
    (&["output-format", "o", "output", "out"], &["--format", "--output", "--output-dir"]),
    (&["reachable", "only-live"], &["--live"]),
    (&["dead", "garbage"], &["--unreachable"]),
    (&["index", "cache-dir", "index-directory"], &["--index-dir"]),
    (&["jobs", "j", "parallelism"], &["--threads"]),
    (&["mem", "max-memory", "heap", "xmx"], &["--memory"]),
    (&["silent", "no-progress"], &["--quiet"]),
    (&["max-depth", "levels"], &["--depth"]),
    (&["min-size", "min"], &["--min-retained"]),
    (&["grep", "find", "search", "regex", "contains", "e"], &["--pattern", "--class"]),
];

/// Adds a suggestion to an error about an option that `command` does not have.
pub(super) fn with_tip(mut error: clap::Error, command: &clap::Command, words: &[String]) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidArg) else { return error };
    let wrong = wrong.clone();
    // Clap's tip that the option may be a value is correct, but never what was meant.
    error.remove(ContextKind::Suggested);
    if let Some(tip) = tip(&wrong, value(&wrong, words), command) {
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    } else if error.get(ContextKind::SuggestedArg).is_none()
        && let Some(name) = wrong.strip_prefix("--")
        && let Some(like) = names_like(name, command.get_arguments().filter_map(clap::Arg::get_long)).first()
    {
        // Transposed letters.
        error.insert(ContextKind::SuggestedArg, ContextValue::String(format!("--{like}")));
    }
    error
}

/// Returns the first line of the parser's error about an unknown argument.
pub(super) fn error_line(error: &clap::Error) -> String {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(wrong)) => format!("unexpected argument '{wrong}'"),
        _ => "unexpected argument".to_owned(),
    }
}

/// Returns the value of an unknown option: attached to the option, or the next word.
fn value<'w>(wrong: &str, words: &'w [String]) -> Option<&'w str> {
    let is_short = !wrong.starts_with("--");
    let mut words = words.iter().map(String::as_str).take_while(|word| *word != "--");
    let with_it = |word: &'w str| {
        let rest = word.strip_prefix(wrong)?;
        // `-n5`, `-n=5`, `--limit=5`; but `--limits` is a different option.
        (is_short || rest.is_empty() || rest.starts_with('=')).then_some(rest)
    };
    let rest = words.find_map(with_it)?;
    if rest.is_empty() {
        return words.next().filter(|word| !word.starts_with('-'));
    }
    Some(rest.strip_prefix('=').unwrap_or(rest))
}

/// Returns whether other tools have an option of this name.
pub(super) fn is_known(name: &str) -> bool {
    HABITS.iter().any(|(names, _)| names.contains(&name))
}

/// The option of a command that an option of another tool means.
pub(super) struct MeantOption {
    /// Option, with its value if that is always the same.
    pub(super) option: &'static str,
    /// Whether the value of the other option is its value.
    pub(super) takes_value: bool,
}

/// Returns the option that an option of another tool means, if the command has one that accepts the value.
pub(super) fn meant(wrong: &str, value: Option<&str>, command: &clap::Command) -> Option<MeantOption> {
    let name = wrong.trim_start_matches('-').split('=').next().unwrap_or_default();
    // `-J` is not `-j`.
    let name = if name.len() == 1 { name.to_owned() } else { name.to_lowercase() };
    let (_, meant) = HABITS.iter().find(|(names, _)| names.contains(&name.as_str()))?;
    let find = |option: &str| {
        let long = option.trim_start_matches('-').split(' ').next();
        command.get_arguments().find(|argument| argument.get_long() == long)
    };
    let accepts = |option: &&str| {
        let words = find(option).map(clap::Arg::get_possible_values).unwrap_or_default();
        words.is_empty() || value.is_none_or(|value| words.iter().any(|word| word.matches(value, true)))
    };
    let mut options = meant.iter().copied().filter(|option| find(option).is_some());
    // `-o json` is a format, `-o answer.json` is a file.
    let is_format = value.is_some_and(|word| ["json", "csv", "table", "markdown", "text"].contains(&word));
    let option = match options.next()? {
        "--format" if !is_format && value.is_some() => options.next()?,
        // `--by retained` sorts, `--by place` groups.
        option if !accepts(&option) => options.find(accepts).unwrap_or(option),
        option => option,
    };
    // An option without a value, or with an attached one, does not consume the next word, which may be the dump.
    let takes_value = find(option).is_some_and(|argument| argument.get_action().takes_values());
    Some(MeantOption { option, takes_value: takes_value && !option.contains(' ') })
}

fn tip(wrong: &str, value: Option<&str>, command: &clap::Command) -> Option<String> {
    let Some(MeantOption { option, takes_value }) = meant(wrong, value, command) else {
        let name = wrong.trim_start_matches('-');
        let is_output = ["output-format", "o", "output", "out"].contains(&name) && value.is_some();
        let formats = formats(command);
        return (is_output && !formats.is_empty())
            .then(|| format!("use '--format {formats}', and '> FILE' to write to a file"));
    };
    Some(match value.filter(|_| takes_value) {
        Some(value) => format!("use '{option} {value}' instead"),
        None => format!("use '{option}' instead"),
    })
}

/// Returns a list of the values of `--format`.
fn formats(command: &clap::Command) -> String {
    let format = command.get_arguments().find(|argument| argument.get_long() == Some("format"));
    let words = format.map(|format| format.get_possible_values()).unwrap_or_default();
    let words: Vec<&str> = words.iter().map(clap::builder::PossibleValue::get_name).collect();
    words.join("|")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &[&str]) -> String {
        let words: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        let program = crate::cli::command();
        let error = program.clone().try_get_matches_from(&words).err().map(|error| {
            let command = program.find_subcommand(line.get(1).copied().unwrap_or_default());
            command.map_or_else(String::new, |command| with_tip(error, command, &words).to_string())
        });
        error.unwrap_or_default()
    }

    #[test]
    fn words_of_other_tools_are_told_what_they_are_called_here() {
        for (line, tip) in [
            (&["hprof-cli", "histo", "a", "--limit", "5"][..], "use '--top 5' instead"),
            (&["hprof-cli", "histo", "a", "-n", "5"], "use '--top 5' instead"),
            (&["hprof-cli", "histo", "a", "--by", "retained"], "use '--sort retained' instead"),
            (&["hprof-cli", "diff", "a", "b", "--by", "place"], "use '--group-by place' instead"),
            (&["hprof-cli", "diff", "a", "b", "--by", "retained"], "use '--sort retained' instead"),
            (&["hprof-cli", "waste", "a", "--by", "class"], "use '--group-by class' instead"),
            (&["hprof-cli", "listen", "--out", "x"], "use '--output-dir x' instead"),
            (&["hprof-cli", "leaks", "a", "-o", "json"], "use '--format json' instead"),
            (&["hprof-cli", "leaks", "a", "--json"], "use '--format json' instead"),
            (&["hprof-cli", "dominators", "a", "--max-depth", "3"], "use '--depth 3' instead"),
            (&["hprof-cli", "histo", "--limit=5", "a"], "use '--top 5' instead"),
            (&["hprof-cli", "histo", "-n=5", "a"], "use '--top 5' instead"),
            (&["hprof-cli", "histo", "-n5", "a"], "use '--top 5' instead"),
            (&["hprof-cli", "histo", "--limit", "--live", "a"], "use '--top' instead"),
            (&["hprof-cli", "histo", "--reachable", "a"], "use '--live' instead"),
            (&["hprof-cli", "diff", "--silent", "a", "b"], "use '--quiet' instead"),
            (&["hprof-cli", "leaks", "--json", "a"], "use '--format json' instead"),
            (&["hprof-cli", "leaks", "--output-format=json", "a"], "use '--format json' instead"),
        ] {
            let said = said(line);
            assert!(said.contains(tip) && !said.contains("as a value"), "{line:?}: {said}");
        }
        // The parser itself suggests corrections of typos.
        let slip = said(&["hprof-cli", "histo", "a", "--tpo", "5"]);
        assert!(slip.contains("--top") && !slip.contains("as a value"), "{slip}");
    }

    #[test]
    fn every_option_that_is_told_is_one_of_a_command() {
        let program = crate::cli::command();
        for option in HABITS.iter().flat_map(|(_, options)| *options) {
            let long = option.trim_start_matches('-').split(' ').next();
            let has = |command: &clap::Command| command.get_arguments().any(|one| one.get_long() == long);
            assert!(program.get_subcommands().any(has), "{option}");
        }
    }
}
