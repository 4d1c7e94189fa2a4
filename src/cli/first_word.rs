//! The first word of a command line if it is not a command: a dump, a typo, or a command of another tool.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use hprof_query::naming::suggestions;

use super::habits;
use super::shared::commands::quoted;

/// Command that is run for a dump without a command.
const OVERVIEW: &str = "overview";

/// Error: the line does not begin with a command, and is not a dump alone.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoCommand {
    /// What is wrong.
    pub(super) error: String,
    /// Suggestion what to type instead; empty if there is none.
    pub(super) hint: String,
}

/// Returns the command line with a command: `overview` is inserted if there is only a dump. `commands` are the names of
/// all commands.
pub(super) fn with_command(
    mut arguments: Vec<OsString>,
    commands: &[&str],
) -> Result<Vec<OsString>, NoCommand> {
    let is_command = |word: &OsStr| commands.iter().any(|name| word == *name) || word == "help";
    let given = arguments.get(1..).unwrap_or_default();
    let Some(first) = given.first().filter(|first| !is_command(first)) else { return Ok(arguments) };
    let word = first.to_string_lossy().into_owned();
    let is_option = word.starts_with('-') && word != "-";
    let is_file = |word: &OsString| Path::new(word).is_file();
    let starts_with_dump = !is_option && (word == "-" || habits::is_dump(first));
    // `hprof-cli DUMP leaks`
    if let Some(command) = given.get(1).filter(|word| starts_with_dump && is_command(word) && !is_file(word))
    {
        let behind = given.iter().skip(2).map(OsString::as_os_str);
        let all = [command.as_os_str(), first.as_os_str()].into_iter().chain(behind);
        let line: Vec<String> = all.map(quoted).collect();
        let hint = format!("the command comes first: hprof-cli {}", line.join(" "));
        return Err(NoCommand { error: unknown_command(&word), hint });
    }
    if starts_with_dump && given.len() == 1 && habits::is_recording(Path::new(first)) {
        let error = format!("{word} is a recording of Flight Recorder, which `overview` does not read");
        return Err(NoCommand { error, hint: format!("hprof-cli summary {}", quoted(first)) });
    }
    // The parser answers `-h heap.hprof`, but that of shark-cli is followed by a command.
    let is_help = ["-h", "--help", "-V", "--version"].contains(&word.as_str()) && given.len() < 3;
    if let Some(hint) = habits::translation(given).filter(|_| !is_help) {
        let error = match given.get(1) {
            Some(second) if starts_with_dump => unexpected_argument(&second.to_string_lossy()),
            _ if is_option => unexpected_argument(&word),
            _ => unknown_command(&word),
        };
        return Err(NoCommand { error, hint });
    }
    let is_dump = if is_option {
        // Options without a command.
        let mut rest = given.iter().skip(1);
        rest.clone().any(is_file) && !rest.any(|word| is_command(word))
    } else {
        starts_with_dump || Path::new(first).exists() || word.contains(['/', '.'])
    };
    if is_dump {
        arguments.insert(1, OVERVIEW.into());
        return Ok(arguments);
    }
    // The parser handles --help and --version.
    if is_option {
        return Ok(arguments);
    }
    let hint = match suggestions::names_like(&word, commands.iter().copied()).as_slice() {
        [] => "`hprof-cli --help` lists all commands".to_owned(),
        like => suggestions::did_you_mean(like),
    };
    Err(NoCommand { error: unknown_command(&word), hint })
}

fn unknown_command(word: &str) -> String {
    format!("unknown command {word}")
}

fn unexpected_argument(word: &str) -> String {
    format!("unexpected argument '{word}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(line: &[&str]) -> Result<Vec<OsString>, NoCommand> {
        with_command(line.iter().map(OsString::from).collect(), crate::cli::NAMES)
    }

    #[test]
    fn a_dump_alone_is_looked_at() {
        let dump = "samples/leaks/s1.hprof.zst";
        let overview: Vec<OsString> = ["hprof-cli", "overview", dump].iter().map(OsString::from).collect();
        assert_eq!(completed(&["hprof-cli", dump]), Ok(overview));
        for line in [&["hprof-cli", "nothing.hprof"][..], &["hprof-cli", "--format", "json", dump]] {
            assert!(completed(line).is_ok_and(|line| line.get(1).is_some_and(|word| word == OVERVIEW)));
        }
        for line in [&["hprof-cli", "histo", dump][..], &["hprof-cli", "--help"], &["hprof-cli"]] {
            assert!(completed(line).is_ok_and(|completed| completed.len() == line.len()));
        }
    }

    #[test]
    fn what_is_no_command_is_pointed_to_one() {
        for (word, hint) in [
            ("hist", "did you mean histo?"),
            ("domiantors", "did you mean dominators?"),
            ("heap", "hprof-cli overview a.hprof"),
            ("dominator_tree", "hprof-cli dominators a.hprof"),
            ("-histo", "hprof-cli histo a.hprof"),
            ("-histo:live", "hprof-cli histo a.hprof --live"),
            ("leak_suspects", "hprof-cli leaks a.hprof"),
            ("suspects", "hprof-cli leaks a.hprof"),
            ("GC.class_histogram", "hprof-cli histo a.hprof"),
            ("xyzzy", "`hprof-cli --help` lists all commands"),
        ] {
            let error = if word.starts_with('-') { unexpected_argument(word) } else { unknown_command(word) };
            let none = NoCommand { error, hint: hint.to_owned() };
            assert_eq!(completed(&["hprof-cli", word, "a.hprof"]), Err(none), "{word}");
        }
        let hint = "the command comes first: hprof-cli leaks a.hprof --format json".to_owned();
        let none = NoCommand { error: unknown_command("a.hprof"), hint };
        assert_eq!(completed(&["hprof-cli", "a.hprof", "leaks", "--format", "json"]), Err(none));
    }
}
