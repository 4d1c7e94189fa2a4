//! Lines that begin with one of our commands, but have options or words as other tools take them.

use std::ffi::{OsStr, OsString};
use std::iter::Peekable;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::flags::Role;
use super::given::{is_dump, is_process, option_named};
use super::memory;
use super::own_options::{format_named, has_option};
use crate::cli::options;
use crate::cli::shared::commands::quoted;

/// Words behind the arguments of a command, and what they are: an option, or the arguments of another command.
const WORDS_BEHIND: &[(&str, Extra)] = &[
    ("dump", Extra::Option("--output")),
    ("flamegraph", Extra::Option("--output")),
    ("report", Extra::Option("--output")),
    ("convert", Extra::Option("--output")),
    ("redact", Extra::Option("--output")),
    ("strings", Extra::Option("--pattern")),
    ("threads", Extra::Option("--thread")),
    ("dominators", Extra::Option("--of")),
    ("roots", Extra::Command("paths-to-root")),
    ("leaks", Extra::Diff),
    ("overview", Extra::Diff),
];

#[derive(Debug, Clone, Copy)]
enum Extra {
    /// The value of this option.
    Option(&'static str),
    /// An argument of this command.
    Command(&'static str),
    /// A second dump, which `diff` compares.
    Diff,
}

/// A line that would be read as something that was not meant, or not at all.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli) struct Mistake {
    /// What is wrong.
    pub(in crate::cli) error: String,
    /// The line that was meant.
    pub(in crate::cli) hint: String,
}

/// Returns the mistake in a line that the parser would accept, or that it would explain by what was not meant: `-output=x` is
/// not `-o utput=x`. `words` are without the program's name; the first is `command`.
pub(in crate::cli) fn mistake(words: &[OsString], command: &clap::Command) -> Option<Mistake> {
    let texts: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let hint = |line: &[OsString]| as_line(line);
    let name = command.get_name();
    let arguments = || texts.iter().skip(1).take_while(|word| *word != "--");
    if let Some(wrong) = arguments().find(|word| is_single_dash(word, command)) {
        let hint = correction(words, command)
            .map_or_else(|| format!("`hprof-cli {name} --help` lists the options"), |line| hint(&line));
        return Some(Mistake { error: format!("unexpected argument '{wrong}'"), hint });
    }
    if let Some((at, format)) = format_as_file(&texts, command) {
        let mut line = words.to_vec();
        line.splice(at..at + 2, [OsString::from("--format"), OsString::from(format)]);
        let file = texts.get(at + 1).map_or("", String::as_str);
        let error = format!("{file} is a format, not a file; to write a file of that name, give ./{file}");
        return Some(Mistake { error, hint: hint(&line) });
    }
    let first = words.get(1)?;
    if takes_dump(command) && is_process(first) {
        let mut line = words.to_vec();
        line.splice(1..2, [OsString::from("heap.hprof")]);
        let error = format!("{} is not a file, but could be the ID of a process", first.display());
        let hint = format!("hprof-cli dump {} -o heap.hprof && {}", first.display(), as_line(&line));
        return Some(Mistake { error, hint });
    }
    // Names of processes may be those of files, too.
    let is_named_dump = [".hprof", ".jfr"].iter().any(|ending| first.to_string_lossy().contains(ending));
    if name == "dump" && is_named_dump && Path::new(first).is_file() {
        let error = format!("{} is a file; `dump` dumps the heap of a running JVM", first.display());
        return Some(Mistake { error, hint: as_line(&["overview".into(), first.clone()]) });
    }
    // `oql QUERY DUMP`
    if ["oql", "sql"].contains(&name)
        && let (Some(query), Some(dump)) = (texts.get(1), words.get(2))
        && query.to_lowercase().trim_start().starts_with("select ")
        && is_dump(dump)
    {
        let mut line = words.to_vec();
        line.swap(1, 2);
        return Some(Mistake { error: "the dump comes before the query".to_owned(), hint: hint(&line) });
    }
    None
}

/// Returns the line without the options and words of other tools, if the parser accepts that, as a hint.
pub(in crate::cli) fn hint(words: &[OsString], command: &clap::Command) -> Option<String> {
    correction(words, command).map(|line| as_line(&line))
}

fn as_line(words: &[OsString]) -> String {
    format!("hprof-cli {}", words.iter().map(quoted).collect::<Vec<_>>().join(" "))
}

/// Returns whether the first argument of a command is a dump.
fn takes_dump(command: &clap::Command) -> bool {
    let first =
        command.get_positionals().find(|argument| argument.get_index().is_none_or(|index| index == 1));
    let first = first.and_then(|argument| argument.get_value_names()).and_then(<[_]>::first);
    first.is_some_and(|name| name.starts_with("DUMP") && !name.ends_with("PID"))
}

/// Returns the option of a command with this long name.
fn option<'c>(command: &'c clap::Command, long: &str) -> Option<&'c clap::Arg> {
    command.get_arguments().find(|argument| argument.get_long() == Some(long))
}

/// Returns whether a word is a long option after one hyphen, which the parser would take for a short one with a value.
fn is_single_dash(word: &str, command: &clap::Command) -> bool {
    let Some(name) = word.strip_prefix('-').filter(|name| !name.starts_with('-')) else { return false };
    let name = name.split(['=', ':']).next().unwrap_or_default();
    // `-of` is a short option with a value.
    name.len() > 2
        && (option(command, name).is_some()
            || options::is_known(name)
            || option_named(name).is_some()
            || memory::is_jvm_option(word))
}

/// Returns the position of `-o` whose value is the name of a format, and our name of it.
fn format_as_file<'w>(texts: &'w [String], command: &clap::Command) -> Option<(usize, &'w str)> {
    let formats = option(command, "format")?.get_possible_values();
    option(command, "output").filter(|output| output.get_short() == Some('o'))?;
    let mut before = texts.iter().take_while(|word| *word != "--");
    let at = before.position(|word| word == "-o" || word == "--output")?;
    if texts.iter().any(|word| word == "-f" || word.starts_with("--format")) {
        return None;
    }
    let format = format_named(texts.get(at + 1)?)?;
    formats.iter().any(|one| one.matches(format, true)).then_some((at, format))
}

/// Returns the line with our options, if the parser accepts it.
fn correction(words: &[OsString], command: &clap::Command) -> Option<Vec<OsString>> {
    let mut line = with_own_options(words, command);
    // Each word behind the arguments is found by the parser.
    for _ in 0..2 {
        let Err(error) = parse(&line) else { return (line != words).then_some(line) };
        line = with_word_placed(&line, &error, command)?;
    }
    parse(&line).is_ok().then_some(line)
}

fn parse(words: &[OsString]) -> Result<(), clap::Error> {
    let name = words.first().and_then(|word| word.to_str()).unwrap_or_default();
    let all = std::iter::once(OsStr::new("hprof-cli")).chain(words.iter().map(OsString::as_os_str));
    crate::cli::alone(name).map_or(Ok(()), |program| program.try_get_matches_from(all).map(|_| ()))
}

/// Returns the line in which the word that the parser does not expect is an option, or an argument of another command.
fn with_word_placed(
    words: &[OsString],
    error: &clap::Error,
    command: &clap::Command,
) -> Option<Vec<OsString>> {
    let ContextValue::String(wrong) = error.get(ContextKind::InvalidArg)? else { return None };
    if error.kind() != ErrorKind::UnknownArgument || wrong.starts_with('-') {
        return None;
    }
    let at = words.iter().skip(2).position(|word| word == wrong.as_str())? + 2;
    let (_, extra) = WORDS_BEHIND.iter().find(|(name, _)| *name == command.get_name())?;
    let mut line = words.to_vec();
    match *extra {
        // The output would replace it.
        Extra::Option("--output") if Path::new(wrong).exists() => return None,
        Extra::Option(option) => {
            let word = line.remove(at);
            let word = match command.get_name() {
                // The picture is an SVG.
                "flamegraph" => word.to_string_lossy().replace(".html", ".svg").into(),
                _ => word,
            };
            let option = if option == "--output" { "-o" } else { option };
            line.splice(at..at, [option.into(), word]);
        }
        Extra::Command(command) => *line.first_mut()? = command.into(),
        Extra::Diff if is_dump(OsStr::new(wrong)) => *line.first_mut()? = "diff".into(),
        Extra::Diff => return None,
    }
    Some(line)
}

/// Words of a line that are not read yet.
type Words<'w> = Peekable<std::slice::Iter<'w, OsString>>;

/// Returns the words with the options of other tools replaced by ours, or omitted if they mean nothing here.
fn with_own_options(words: &[OsString], command: &clap::Command) -> Vec<OsString> {
    let mut line = Vec::new();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        if text == "--" {
            line.push(word.clone());
            line.extend(words.by_ref().cloned());
            break;
        }
        let (name, attached) =
            text.split_once('=').map_or((&*text, None), |(name, value)| (name, Some(value)));
        let is_dashed = text.len() > 1 && text.starts_with('-');
        // `file=x.hprof`
        let is_pair = attached.is_some() && !line.is_empty() && option_named(name).is_some();
        let own = own_option(name, command).filter(|_| is_dashed);
        if let Some(own) = own {
            line.push(word.clone());
            line.extend(words.next_if(|_| attached.is_none() && takes_value(own)).cloned());
        } else if is_dashed || is_pair {
            replace_option(&mut line, word, (name, attached), &mut words, command);
        } else {
            line.push(word.clone());
        }
    }
    line
}

/// Returns the option that a word names with the right number of hyphens.
fn own_option<'c>(name: &str, command: &'c clap::Command) -> Option<&'c clap::Arg> {
    if let Some(long) = name.strip_prefix("--") {
        return option(command, long);
    }
    let mut letters = name.strip_prefix('-')?.chars();
    let (short, None) = (letters.next()?, letters.next()) else { return None };
    command.get_arguments().find(|argument| argument.get_short() == Some(short))
}

fn takes_value(option: &clap::Arg) -> bool {
    option.get_action().takes_values()
}

/// Adds to the line what an option of another tool is here: `word`, with its name and the value attached to it.
fn replace_option(
    line: &mut Vec<OsString>,
    word: &OsString,
    (name, attached): (&str, Option<&str>),
    words: &mut Words<'_>,
    command: &clap::Command,
) {
    let bare = name.trim_start_matches('-');
    let has = |option: &str| has_option(command.get_name(), option.split(' ').next().unwrap_or_default());
    let is_value = |word: &OsString| attached.is_none() && !word.as_encoded_bytes().starts_with(b"-");
    let near = attached.or_else(|| words.peek().filter(|word| is_value(word)).and_then(|word| word.to_str()));
    let mut value = |takes_value: bool| {
        let next = words.next_if(|word| takes_value && is_value(word));
        attached.map(OsString::from).or_else(|| next.cloned())
    };
    // `-live`
    if let Some(own) = option(command, bare) {
        line.push(format!("--{bare}").into());
        line.extend(value(takes_value(own)).filter(|_| takes_value(own)));
        return;
    }
    let jvm = word.to_string_lossy();
    if memory::is_jvm_option(&jvm) || memory::heap_size(&jvm).is_some() {
        let size = memory::heap_size(&jvm).filter(|_| has("--memory"));
        return line.extend(size.into_iter().flat_map(|size| ["--memory".into(), size.into()]));
    }
    if let Some(meant) = options::meant(name, near, command) {
        line.extend(meant.option.split(' ').map(OsString::from));
        return line.extend(value(meant.takes_value).filter(|_| meant.takes_value));
    }
    let Some(other) = option_named(name) else { return line.push(word.clone()) };
    let value = value(other.takes_value);
    let mut add = |option: &str| {
        line.extend(option.split(' ').map(OsString::from));
        line.extend(value.clone());
    };
    match other.role {
        // `threads -l`
        Role::Drop if bare == "l" && has("--stack") => add("--stack"),
        Role::Flag(flag) if has(flag) => line.extend(flag.split(' ').map(OsString::from)),
        Role::With(option) if has(option) => add(option),
        Role::Out if has("--output") => add("-o"),
        Role::Text if has("--pattern") => add("--pattern"),
        Role::Old if has("--baseline") => add("--baseline"),
        // `diff new.hprof -baseline old.hprof`
        Role::Old => {
            let at = line.len().min(1);
            line.splice(at..at, value);
        }
        Role::Dump | Role::Process => line.extend(value),
        Role::Drop => line.extend(value.filter(|value| is_dump(value))),
        _ => {}
    }
}
