//! Test of the options' consistency: in all commands, an option has the same values, meaning and letter.
//! docs/recipes.md contains it as a table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use clap::{Arg, Command};

/// Options with a different meaning in one command: option, command, and the reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("class", "trend", "its rows are of classes, while the others filter stack traces"),
    ("heap", "run", "an option of the agent, which has had this name since JDK 5"),
    ("lines", "dump", "it removes line numbers; elsewhere, it shows them"),
    ("lines", "redact", "it removes line numbers; elsewhere, it shows them"),
];

/// Commands without `--format`, and the reason.
const WITHOUT_FORMAT: &[(&str, &str)] = &[
    ("agent load", "prints the agent's reply"),
    ("browse", "shows answers in a terminal"),
    ("completions", "writes a shell script"),
    ("convert", "writes the text format of the HPROF agent"),
    ("man", "writes roff"),
    ("mcp", "speaks a protocol"),
    ("serve", "answers in a browser, each page also as JSON"),
];

/// Commands whose result does not consist of rows and is not written with `--output`, and the reason.
const WITHOUT_OUTPUT: &[(&str, &str)] = &[
    ("agent load", "prints a line"),
    ("browse", "shows answers in a terminal"),
    ("completions", "its output is sourced or redirected"),
    ("man", "has --output-dir: each command has a page"),
    ("mcp", "speaks a protocol"),
    ("serve", "answers in a browser"),
];

/// Options for which 0 does not mean "all": option, command, and the reason.
const ZERO: &[(&str, &str, &str)] = &[("depth", "run", "the agent then records no stack traces")];

/// Markers around the table in docs/recipes.md.
const BEGIN: &str = "<!-- made by src/cli/grammar.rs -->\n";
const END: &str = "<!-- end of what is made -->\n";

/// An option as used by one command.
struct Use {
    command: String,
    option: Arg,
}

/// The user-visible properties of an option.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug, Clone)]
struct OptionShape {
    letter: Option<char>,
    value: String,
}

impl Use {
    fn name(&self) -> &str {
        self.option.get_long().unwrap_or_default()
    }

    fn takes_value(&self) -> bool {
        self.option.get_action().takes_values()
    }

    fn help(&self) -> String {
        self.option.get_help().map(ToString::to_string).unwrap_or_default()
    }

    fn shape(&self) -> OptionShape {
        let names = self.option.get_value_names().filter(|_| self.takes_value()).unwrap_or_default();
        OptionShape { letter: self.option.get_short(), value: names.join(" ") }
    }

    fn is_exception(&self) -> bool {
        EXCEPTIONS.iter().any(|(option, command, _)| *option == self.name() && *command == self.command)
    }
}

/// Returns all commands and subcommands, with their names.
fn commands() -> Vec<(String, Command)> {
    let mut found = Vec::new();
    let mut open: Vec<(String, Command)> =
        super::command().get_subcommands().map(|one| (one.get_name().to_owned(), one.clone())).collect();
    while let Some((name, command)) = open.pop() {
        open.extend(command.get_subcommands().map(|one| (format!("{name} {}", one.get_name()), one.clone())));
        found.push((name, command));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// Returns the options of all commands that are shown in help.
fn uses() -> Vec<Use> {
    let all = commands().into_iter().flat_map(|(command, declared)| {
        let options: Vec<Arg> =
            declared.get_arguments().filter(|arg| arg.get_long().is_some()).cloned().collect();
        options.into_iter().map(move |option| Use { command: command.clone(), option })
    });
    all.filter(|one| !one.option.is_hide_set()).collect()
}

/// Groups options by name.
fn by_name(uses: &[Use]) -> BTreeMap<&str, Vec<&Use>> {
    let mut names: BTreeMap<&str, Vec<&Use>> = BTreeMap::new();
    for one in uses {
        names.entry(one.name()).or_default().push(one);
    }
    names
}

/// Returns the meaning of an option: the words with which its help begins in all commands, up to the first punctuation mark.
/// `None` if there are fewer than two common words.
fn meaning(uses: &[&Use]) -> Option<String> {
    let helps: Vec<String> = uses.iter().map(|one| one.help()).collect();
    let (first, rest) = helps.split_first()?;
    let mut end = first.len();
    for help in rest {
        let common = first.bytes().zip(help.bytes()).take_while(|(a, b)| a == b).count();
        let is_end =
            |help: &str| help.as_bytes().get(common).is_none_or(|byte| !byte.is_ascii_alphanumeric());
        let words = first.get(..common)?;
        let whole = if is_end(first) && is_end(help) { common } else { words.rfind(' ').unwrap_or(0) };
        end = end.min(whole);
    }
    let common = first.get(..end)?;
    let stop = [": ", "; ", ", ", ". ", " [", " ("].iter().filter_map(|mark| common.find(mark)).min();
    let meaning = common.get(..stop.unwrap_or(common.len()))?.trim_end_matches([' ', ',', ';', ':']);
    meaning.contains(' ').then(|| meaning.to_owned())
}

/// Returns the table of options that several commands share, and of the exceptions.
fn table() -> String {
    let (all, commands) = (uses(), commands());
    let mut out = "| option | meaning | commands |\n|---|---|---|\n".to_owned();
    for (name, uses) in by_name(&all) {
        let uses: Vec<&Use> = uses.iter().copied().filter(|one| !one.is_exception()).collect();
        let Some(shape) = uses.first().map(|one| one.shape()).filter(|_| uses.len() > 1) else { continue };
        let letter = shape.letter.map(|letter| format!("-{letter}, ")).unwrap_or_default();
        let value = if shape.value.is_empty() {
            String::new()
        } else {
            format!(" {}", shape.value.replace('|', "\\|"))
        };
        let meaning = meaning(&uses).unwrap_or_default();
        let meaning = meaning.trim_end_matches(" the").trim_end_matches(" of");
        let have: BTreeSet<&str> = uses.iter().map(|one| one.command.as_str()).collect();
        let lack: Vec<&str> =
            commands.iter().map(|one| one.0.as_str()).filter(|one| !have.contains(one)).collect();
        let list =
            |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let which = if lack.len() < have.len() {
            format!("all except {}", list(&lack))
        } else {
            list(&have.into_iter().collect::<Vec<_>>())
        };
        let _ = writeln!(out, "| `{letter}--{name}{value}` | {meaning} | {which} |");
    }
    out.push_str("\nExceptions:\n\n");
    for (option, command, why) in EXCEPTIONS {
        let _ = writeln!(out, "- `--{option}` of `{command}`: {why}");
    }
    for (option, command, why) in ZERO {
        let _ = writeln!(out, "- `--{option} 0` of `{command}`: {why}");
    }
    for (command, why) in WITHOUT_FORMAT {
        let _ = writeln!(out, "- `{command}` has no `--format`: it {why}");
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_value_one_meaning_and_one_letter() {
        let all = uses();
        assert!(all.len() > 200, "{}", all.len());
        let mut letters: BTreeMap<char, &str> = BTreeMap::new();
        let mut wrong = Vec::new();
        for (name, uses) in by_name(&all) {
            let mut shapes: BTreeMap<OptionShape, Vec<&str>> = BTreeMap::new();
            for one in uses.iter().filter(|one| !one.is_exception()) {
                shapes.entry(one.shape()).or_default().push(&one.command);
            }
            if shapes.len() > 1 {
                wrong.push(format!("--{name}: {shapes:#?}"));
            }
            let (excepted, mut alike): (Vec<&Use>, Vec<&Use>) =
                uses.iter().partition(|one| one.is_exception());
            if alike.len() > 1 && meaning(&alike).is_none() {
                let helps = alike.iter().map(|one| format!("\n  {}: {}", one.command, one.help()));
                wrong.push(format!("--{name}: no common beginning{}", helps.collect::<String>()));
            }
            for one in excepted {
                alike.push(one);
                if shapes.contains_key(&one.shape()) && meaning(&alike).is_some() {
                    wrong.push(format!("--{name} of {} is no exception", one.command));
                }
                alike.pop();
            }
            for letter in uses.iter().filter_map(|one| one.option.get_short()) {
                let known = *letters.entry(letter).or_insert(name);
                if known != name {
                    wrong.push(format!("-{letter} is --{known} and --{name}"));
                }
            }
        }
        for (option, command, _) in EXCEPTIONS.iter().chain(ZERO) {
            if !all.iter().any(|one| one.name() == *option && one.command == *command) {
                wrong.push(format!("there is no --{option} of {command}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn every_command_that_answers_has_a_format_and_documents_a_file() {
        let with_rows: BTreeSet<&str> = crate::cli::row_schemas().iter().map(|one| one.command).collect();
        let mut wrong = Vec::new();
        let mut check = |command: &str, has: bool, option: &str, exceptions: &[(&str, &str)]| {
            if has == exceptions.iter().any(|(name, _)| *name == command) {
                wrong.push(format!("{command}: {option} {has}"));
            }
        };
        for (name, command) in commands() {
            let has = |long: &str, short: char| {
                command
                    .get_arguments()
                    .any(|arg| arg.get_long() == Some(long) && arg.get_short() == Some(short))
            };
            check(&name, has("format", 'f'), "--format", WITHOUT_FORMAT);
            if !with_rows.contains(&*name) {
                check(&name, has("output", 'o'), "--output", WITHOUT_OUTPUT);
            }
        }
        let known: BTreeSet<String> = commands().into_iter().map(|(name, _)| name).collect();
        let excepted = WITHOUT_FORMAT.iter().chain(WITHOUT_OUTPUT);
        wrong.extend(
            excepted.filter(|(name, _)| !known.contains(*name)).map(|(name, _)| format!("no {name}")),
        );
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    #[test]
    fn values_are_spelled_alike() {
        let is_kebab = |word: &str| {
            let is_part = |part: &str| {
                !part.is_empty()
                    && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
            };
            word.split('-').all(is_part)
        };
        let mut wrong = Vec::new();
        for one in uses() {
            let (name, command, shape) = (one.name(), &one.command, one.shape());
            let words = one.option.get_possible_values();
            // The default values of flags are never typed.
            for word in words.iter().filter(|_| one.takes_value()) {
                if !is_kebab(word.get_name()) {
                    wrong.push(format!("{command} --{name} {}: not kebab-case", word.get_name()));
                }
            }
            if !is_kebab(name) {
                wrong.push(format!("{command} --{name}: not kebab-case"));
            }
            if one.option.get_value_delimiter().is_some() && !shape.value.ends_with(",...") {
                wrong.push(format!("{command} --{name} {}: a list is NAME,...", shape.value));
            }
            if (shape.value == "DIR") != name.ends_with("-dir") {
                wrong.push(format!("{command} --{name} {}: a directory is --...-dir DIR", shape.value));
            }
            let is_zero_all = one.help().contains("0 for all");
            let is_exception = ZERO.iter().any(|(option, of, _)| *option == name && of == command);
            if matches!(name, "top" | "depth") && is_zero_all == is_exception {
                wrong.push(format!("{command} --{name}: 0 is all"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn values_are_read_in_snake_case() {
        for (snake, kebab) in [
            (
                "waste a --kind duplicate_strings,boxed_numbers",
                "waste a --kind duplicate-strings,boxed-numbers",
            ),
            ("waste --explain boxed_numbers", "waste --explain boxed-numbers"),
        ] {
            let parsed = |line: &str| {
                let words = ["hprof-cli"].into_iter().chain(line.split(' '));
                let matches = crate::cli::command().try_get_matches_from(words).unwrap();
                format!(
                    "{:?}",
                    <crate::cli::Command as clap::FromArgMatches>::from_arg_matches(&matches).unwrap()
                )
            };
            assert_eq!(parsed(snake), parsed(kebab), "{snake}");
        }
    }

    #[test]
    fn the_recipes_have_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/recipes.md");
        let present = std::fs::read_to_string(path).unwrap();
        let (before, rest) = present.split_once(BEGIN).unwrap();
        let (_, after) = rest.split_once(END).unwrap();
        let made = format!("{before}{BEGIN}\n{}\n{END}{after}", table());
        if std::env::var_os("HPROF_CLI_BLESS").is_some() {
            std::fs::write(path, made).unwrap();
        } else {
            assert!(
                present == made,
                "the table of options in docs/recipes.md is stale: `HPROF_CLI_BLESS=1 cargo test` rewrites it"
            );
        }
    }
}
