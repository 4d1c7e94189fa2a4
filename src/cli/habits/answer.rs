//! The line that answers here what a line asks of another tool.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::path::Path;

use super::agent;
use super::given::{ForeignLine, command_named, tool_named};
use super::names::{Habit, habit};
use super::own_options::has_option;
use crate::cli::NAMES;
use crate::cli::shared::commands::{quoted, quoted_path};

/// Words of a line that are replaced by what the user gave.
const PLACEHOLDERS: &[&str] =
    &["DUMP", "OLD", "NEW", "OBJECT", "OBJECT|CLASS", "CLASS", "TEXT", "PID", "OUT"];

/// Commands that read recordings of Flight Recorder.
const RECORDING_COMMANDS: &[&str] =
    &["summary", "cpu", "sites", "monitors", "traces", "flamegraph", "convert", "recover", "--help"];

/// Name of the dump of a running JVM in two commands.
const NEW_DUMP: &str = "heap.hprof";

/// Answer to a command of a system of the JDK that is not in the list.
const NO_EQUIVALENT: Habit =
    Habit { of_process: Some("jvms"), remark: "there is no equivalent", ..habit(&[], "info DUMP") };

/// Returns the line of this program for a line that has words of other tools, as a hint; `None` if it has none. `words` are
/// without the program's name.
pub(in crate::cli) fn translation(words: &[OsString]) -> Option<String> {
    if let Some(line) = agent::run_line(words) {
        return Some(format!("hprof-cli {line}"));
    }
    let given = ForeignLine::read(words);
    if !given.is_foreign {
        return None;
    }
    // `jfr summary rec.jfr`
    if given.tool.is_some_and(|tool| tool.names.contains(&"jfr")) && given.command.is_none() {
        let own = words.iter().position(|word| NAMES.iter().any(|name| word == *name));
        if let Some(line) = own.and_then(|at| words.get(at..)) {
            return Some(format!("hprof-cli {}", line.iter().map(quoted).collect::<Vec<_>>().join(" ")));
        }
    }
    let (line, remark) = chosen_line(&given);
    let line = with_options(&given, line);
    let command = line.split(' ').next().unwrap_or_default();
    let exists = command.starts_with('-') || NAMES.contains(&command);
    let remark = if remark.is_empty() { String::new() } else { format!("{remark}: ") };
    exists.then(|| format!("{remark}hprof-cli {line}"))
}

/// Returns the line before it is filled in, and what it does not do.
fn chosen_line(given: &ForeignLine) -> (String, String) {
    let of_option =
        |command: &'static str| command_named(command).or_else(|| tool_named(command)).ok_or(command);
    let family = given.is_of_family.then_some(Ok(&NO_EQUIVALENT));
    let strong = given.strong.map(of_option);
    let weak = given.weak.and_then(|option| option.command).map(|(_, command)| of_option(command));
    let chosen = given.command.map(Ok).or(strong).or(family).or(given.tool.map(Ok)).or(weak);
    let chosen = chosen.unwrap_or(Err(if given.dumps.is_empty() { "dump PID" } else { "overview DUMP" }));
    let (line, of_recording, of_process, remark) = match chosen {
        Ok(habit) => (habit.line, habit.of_recording, habit.of_process, habit.remark),
        Err(line) => (line, None, None, ""),
    };
    let asks_process = given.process.is_some() && given.dumps.is_empty();
    if asks_process && let Some(line) = of_process {
        return (line.to_owned(), remark.to_owned());
    }
    if asks_process && line.contains("DUMP") {
        let line = line.replace("DUMP", NEW_DUMP);
        return (format!("dump PID -o {NEW_DUMP} && hprof-cli {line}"), remark.to_owned());
    }
    if given.dumps.first().is_some_and(|dump| is_recording(Path::new(dump))) {
        let line = of_recording.unwrap_or(line);
        let command = line.split(' ').next().unwrap_or_default();
        if !RECORDING_COMMANDS.contains(&command) {
            let is_asked = command != "overview" && of_recording.is_none();
            let remark =
                if is_asked { format!("{command} reads only heap dumps") } else { remark.to_owned() };
            return ("summary DUMP".to_owned(), remark);
        }
        return (line.to_owned(), remark.to_owned());
    }
    (line.to_owned(), remark.to_owned())
}

/// Returns whether a file is a recording of Flight Recorder, by its name or its first bytes.
pub(in crate::cli) fn is_recording(path: &Path) -> bool {
    let name = path.to_string_lossy();
    let begins = || {
        let mut magic = [0; 4];
        std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok()
            && magic == *b"FLR\0"
    };
    name.ends_with(".jfr") || name.contains(".jfr.") || path.is_file() && begins()
}

/// Returns the line with what the user gave, and with the options that its command has.
fn with_options(given: &ForeignLine, template: String) -> String {
    // In the template, not in the names of files.
    let is_live = given.options.iter().any(|(name, _)| name == "--live");
    let template = if is_live { template.replace(" --all", "") } else { template };
    let command = template.split(' ').next().unwrap_or_default().to_owned();
    let out = |dumps: usize| {
        let out = given.output(dumps)?;
        // A flame graph is an SVG.
        let name = out.to_str().filter(|_| command == "flamegraph").and_then(|out| out.strip_suffix(".html"));
        let file = |out: &OsStr| quoted_path(Path::new(out));
        Some(name.map_or_else(|| file(out), |name| file(OsStr::new(&format!("{name}.svg")))))
    };
    let value = |word: &str| match word {
        "OUT" => out(usize::from(template.contains("DUMP"))),
        _ => given.value(word),
    };
    let mut line = fill(&template, &value);
    if template.contains(" && ") {
        return line;
    }
    for (name, value) in &given.options {
        let long = name.split(' ').next().unwrap_or_default();
        let is_there = line.split(' ').any(|word| word == long);
        if is_there || !has_option(&command, long) {
            continue;
        }
        line.push_str(&format!(" {name}"));
        if let Some(value) = value {
            line.push_str(&format!(" {}", quoted(value)));
        }
    }
    if let Some(out) = out(usize::MAX).filter(|_| !template.contains("OUT")) {
        let sign = if has_option(&command, "--output") { "-o" } else { ">" };
        line.push_str(&format!(" {sign} {out}"));
    }
    line
}

/// Replaces the placeholders that have a value, and omits the parts in braces that lack one.
fn fill(template: &str, value: &dyn Fn(&str) -> Option<String>) -> String {
    let mut line = String::new();
    for (number, part) in template.split(['{', '}']).enumerate() {
        let (text, is_whole) = fill_part(part, value);
        // The parts at odd positions are in braces, and those around them have a space each.
        match number % 2 {
            0 if line.ends_with(' ') => line.push_str(text.trim_start()),
            1 if !is_whole => {}
            _ => line.push_str(&text),
        }
    }
    line.trim_end().to_owned()
}

/// Returns the text with its placeholders replaced, and whether all of them have a value.
fn fill_part(text: &str, value: &dyn Fn(&str) -> Option<String>) -> (String, bool) {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || "_|.".contains(c);
    let (mut filled, mut rest, mut is_whole, mut in_quotes) = (String::new(), text, true, false);
    while !rest.is_empty() {
        let end = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        let replaced = if PLACEHOLDERS.contains(&word) { Some(value(word)) } else { None };
        match replaced {
            // Within quotes, only what needs none.
            Some(Some(value)) if !in_quotes || !value.contains('\'') => filled.push_str(&value),
            Some(_) => {
                is_whole = false;
                filled.push_str(word);
            }
            None => filled.push_str(word),
        }
        let mut others = tail.chars();
        if let Some(other) = others.next() {
            in_quotes ^= other == '\'';
            filled.push(other);
        }
        rest = others.as_str();
    }
    (filled, is_whole)
}

#[cfg(test)]
mod tests {
    use super::super::flags::OPTIONS;
    use super::super::names::{NAMES as HABITS, TOOLS};
    use super::*;

    /// Returns the words of a line, as a shell splits them.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut in_quotes = false;
        for c in line.chars() {
            match c {
                '\'' => in_quotes = !in_quotes,
                ' ' if !in_quotes => words.push(String::new()),
                c => words.iter_mut().next_back().into_iter().for_each(|word| word.push(c)),
            }
        }
        words
    }

    #[test]
    fn no_habit_leads_to_a_command_that_is_not_there() {
        let lines = |habit: &'static Habit| [Some(habit.line), habit.of_recording, habit.of_process];
        let of_options = OPTIONS.iter().filter_map(|option| option.command).map(|(_, line)| line);
        let of_options = of_options.filter(|line| command_named(line).or_else(|| tool_named(line)).is_none());
        for line in HABITS.iter().chain(TOOLS).flat_map(lines).flatten().chain(of_options) {
            for line in line.split(" && hprof-cli ") {
                if line.starts_with("--")
                    || line.ends_with(" --help")
                    || line.starts_with("sql ") && !cfg!(feature = "sql")
                {
                    continue;
                }
                let filled = fill(line, &|word| Some(word.to_owned()));
                let all = ["hprof-cli".to_owned()].into_iter().chain(words(&filled));
                let parsed = crate::cli::command().try_get_matches_from(all);
                assert!(parsed.is_ok(), "{line}: {:?}", parsed.err());
            }
        }
    }

    #[test]
    fn no_name_is_there_twice_or_a_command_of_ours() {
        let mut all: Vec<&str> =
            HABITS.iter().chain(TOOLS).flat_map(|habit| habit.names.iter().copied()).collect();
        all.sort_unstable();
        for pair in all.windows(2) {
            assert_ne!(pair.first(), pair.last());
        }
        let ours: Vec<&&str> = all.iter().filter(|name| NAMES.contains(*name)).collect();
        // Only after a hyphen: `-histo`.
        assert_eq!(ours, [&"histo"]);
    }

    #[test]
    fn what_is_not_given_stays_or_is_omitted() {
        let value = |word: &str| (word == "DUMP").then(|| "a.hprof".to_owned());
        assert_eq!(fill("threads DUMP {--thread TEXT} --stack", &value), "threads a.hprof --stack");
        assert_eq!(fill("show DUMP OBJECT|CLASS", &value), "show a.hprof OBJECT|CLASS");
        assert_eq!(fill("flamegraph DUMP {-o OUT}", &value), "flamegraph a.hprof");
        assert_eq!(fill("oql DUMP 'SELECT * FROM CLASS o'", &value), "oql a.hprof 'SELECT * FROM CLASS o'");
    }
}
