//! The words of a command line that was written for another tool: its command, its options, and what it is about.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::flags::{ForeignOption, OPTIONS, Role, Strength};
use super::names::{FAMILIES, Habit, NAMES, TOOLS};
use super::own_options::{self, OwnOption};
use crate::cli::shared::commands::{quoted, quoted_path};

/// Packages of Eclipse MAT's commands.
const PACKAGES: &[&str] = &["org_eclipse_mat_api:", "org_eclipse_mat_hprof:"];

/// Endings of files that are not dumps.
const OTHER_FILES: &[&str] =
    &[".html", ".svg", ".csv", ".json", ".collapsed", ".folded", ".png", ".log", ".zip"];

/// A command line for another tool.
#[derive(Default)]
pub(super) struct ForeignLine {
    /// The last tool named, whose command or option may follow.
    pub(super) tool: Option<&'static Habit>,
    /// The command or query.
    pub(super) command: Option<&'static Habit>,
    /// Words that are known from no list, but belong to a system of the JDK.
    pub(super) is_of_family: bool,
    /// Lines of options that stand for a command.
    pub(super) weak: Option<&'static ForeignOption>,
    pub(super) strong: Option<&'static str>,
    /// Options to add if the command has them: the name with the value.
    pub(super) options: Vec<(String, Option<String>)>,
    pub(super) dumps: Vec<OsString>,
    pub(super) old: Option<OsString>,
    pub(super) out: Option<OsString>,
    /// ID or name of a process.
    pub(super) process: Option<String>,
    pub(super) objects: Vec<String>,
    /// Classes, names and texts.
    pub(super) texts: Vec<String>,
    /// Whether a word is not one of this program's.
    pub(super) is_foreign: bool,
}

/// Returns a name in the form in which names are compared.
pub(super) fn normal_form(word: &str) -> String {
    let name = word.trim_start_matches('-');
    // `-F` of jmap is not `-f`.
    if name.len() == 1 { name.to_owned() } else { name.to_lowercase().replace(['-', '.'], "_") }
}

/// Returns the command of another tool with this name.
pub(super) fn command_named(word: &str) -> Option<&'static Habit> {
    find(NAMES, word)
}

/// Returns the tool with this name, which may be a path.
pub(super) fn tool_named(word: &str) -> Option<&'static Habit> {
    find(TOOLS, word.rsplit(['/', '\\']).next().unwrap_or_default())
}

fn find(habits: &'static [Habit], word: &str) -> Option<&'static Habit> {
    let name = normal_form(word);
    let short = PACKAGES.iter().find_map(|package| name.strip_prefix(package)).unwrap_or(&name);
    habits.iter().find(|habit| habit.names.iter().any(|one| *one == name || *one == short))
}

/// Returns the option of another tool with this name.
pub(super) fn option_named(name: &str) -> Option<&'static ForeignOption> {
    let name = normal_form(name);
    OPTIONS.iter().find(|option| option.names.contains(&&*name))
}

/// Returns whether a word can be the ID of a process, and is not a file.
pub(super) fn is_process(word: &OsStr) -> bool {
    let text = word.as_encoded_bytes();
    (1..=7).contains(&text.len()) && text.iter().all(u8::is_ascii_digit) && !Path::new(word).exists()
}

fn is_object(word: &str) -> bool {
    let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
    let digits = digits.and_then(|digits| digits.split('[').next());
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Returns whether a word names a dump or a recording: a file, or a name that only such files have.
pub(in crate::cli) fn is_dump(word: &OsStr) -> bool {
    let name = word.to_string_lossy();
    if word == "-" {
        return true;
    }
    let is_other = OTHER_FILES.iter().any(|end| name.ends_with(end));
    let endings = [".bin", ".dump", ".dmp", ".phd", ".gz", ".zst"];
    let is_named = [".hprof", ".jfr"].iter().any(|part| name.contains(part))
        || endings.iter().any(|end| name.ends_with(end));
    !is_other && (is_named && !name.contains('=') || name.contains('/') || Path::new(word).is_file())
}

/// Returns the file and the number of a heap dump in it, as jhat takes them: `heap.hprof#2`.
fn numbered_dump(word: &OsStr) -> Option<(OsString, u32)> {
    let text = word.to_str()?;
    let (path, number) = text.rsplit_once('#')?;
    let is_file = !Path::new(text).exists() && (Path::new(path).is_file() || is_dump(OsStr::new(path)));
    Some((OsString::from(path), number.parse().ok().filter(|_| is_file)?))
}

impl ForeignLine {
    /// Reads the words of a command line, without the program's name.
    pub(super) fn read(words: &[OsString]) -> Self {
        let mut line = Self::default();
        line.read_words(words);
        // `JFR.dump filename=rec.jfr`
        if line.dumps.is_empty() && line.process.is_none() {
            let recording = line.out.take_if(|out| out.to_string_lossy().ends_with(".jfr"));
            line.dumps.extend(recording);
        }
        line
    }

    fn read_words(&mut self, words: &[OsString]) {
        let mut words = words.iter().map(OsString::as_os_str).peekable();
        while let Some(word) = words.next() {
            let text = word.to_string_lossy();
            if is_dash_option(&text) {
                self.take_option(&text, &mut words);
            } else if !self.take_name(word, &text) {
                self.take_subject(word, &text);
            }
        }
    }

    /// Takes the name of a tool or of a command.
    fn take_name(&mut self, word: &OsStr, text: &str) -> bool {
        if Path::new(word).is_file() || self.command.is_some() {
            return false;
        }
        if let Some(tool) = tool_named(text) {
            (self.tool, self.is_foreign) = (Some(tool), true);
            return true;
        }
        // `histo:live`
        let (name, attached) =
            text.split_once(':').filter(|_| command_named(text).is_none()).unwrap_or((text, ""));
        if let Some(command) = command_named(name) {
            (self.command, self.is_foreign) = (Some(command), true);
            self.take_list(attached);
            return true;
        }
        let name = normal_form(text);
        if FAMILIES.iter().any(|family| name.starts_with(family))
            && text.contains('.')
            && !text.ends_with(".log")
            && !is_dump(word)
        {
            (self.is_of_family, self.is_foreign) = (true, true);
            return true;
        }
        false
    }

    /// Takes what the line is about.
    fn take_subject(&mut self, word: &OsStr, text: &str) {
        if let Some((path, number)) = numbered_dump(word) {
            self.dumps.push(path);
            self.is_foreign = true;
            self.options.push(("--heap-dump".to_owned(), Some(number.to_string())));
        } else if is_dump(word) {
            self.dumps.push(word.to_owned());
        } else if text.ends_with(".log") {
            // Only hprof-analyzer takes a log of the collector.
            self.tool = self.tool.or_else(|| tool_named("hprof_analyzer"));
        } else if OTHER_FILES.iter().any(|end| text.ends_with(end)) {
            // An existing file is read, whatever for: writing would destroy it.
            if Path::new(word).exists() {
                return;
            }
            self.out.get_or_insert_with(|| word.to_owned());
        } else if is_process(word) {
            self.process.get_or_insert_with(|| text.to_owned());
            self.is_foreign = true;
        } else if is_object(text) {
            self.objects.push(text.to_owned());
        } else if let Some((name, value)) = text.split_once('=')
            && let Some(option) = option_named(name)
        {
            self.take_value(option, Some(value.to_owned()));
        } else {
            self.texts.push(text.to_owned());
        }
    }

    /// Takes an option, with its value if that is the next word.
    fn take_option<'w>(
        &mut self,
        text: &str,
        words: &mut std::iter::Peekable<impl Iterator<Item = &'w OsStr>>,
    ) {
        if let Some(bytes) = super::memory::heap_size(text) {
            self.is_foreign = true;
            return self.options.push(("--memory".to_owned(), Some(bytes)));
        }
        if super::memory::is_jvm_option(text) {
            self.is_foreign = true;
            return;
        }
        let mut next = |takes_value: bool| {
            let word = words.next_if(|word| takes_value && !word.as_encoded_bytes().starts_with(b"-"));
            word.map(|word| word.to_string_lossy().into_owned())
        };
        // `-histo:live,file=x`, `-format=csv`
        let (name, attached) = match text.find([':', '=']) {
            Some(at) => (text.get(..at).unwrap_or(text), text.get(at + 1..)),
            None => (text, None),
        };
        let is_list = attached.is_some() && text.get(name.len()..).is_some_and(|rest| rest.starts_with(':'));
        let is_right = name.starts_with("--") || name.len() == 2;
        let own = OwnOption::find(name).filter(|_| is_right);
        let other = option_named(name);
        // `--exclude` is ours, `-exclude` is jhat's.
        let is_own = |other: &ForeignOption| match other.role {
            Role::With(option) => name.starts_with("--") && option != name,
            // `--heap` of jhsdb is a command.
            Role::Drop => name.starts_with("--") && !matches!(other.command, Some((Strength::Strong, _))),
            _ => false,
        };
        if let Some(own) = own.filter(|_| other.is_none_or(is_own)) {
            let value = attached.map(str::to_owned).or_else(|| next(own.takes_value));
            self.take_own(own, value);
        } else if let Some(other) = other {
            let value = attached.filter(|_| !is_list).map(str::to_owned);
            let value = value.or_else(|| next(other.takes_value && attached.is_none()));
            self.take_value(other, value);
            self.take_list(attached.filter(|_| is_list).unwrap_or_default());
        } else if let Some(own) = OwnOption::find(&format!("-{name}")) {
            // `-format=csv`
            self.is_foreign = true;
            let value = attached.map(str::to_owned).or_else(|| next(own.takes_value));
            self.take_own(own, value);
        } else if let Some(command) = command_named(name) {
            // `-histogram`
            self.is_foreign = true;
            self.command.get_or_insert(command);
        }
    }

    /// Takes an option of this program.
    fn take_own(&mut self, own: &OwnOption, value: Option<String>) {
        match (own.long.as_str(), value) {
            // `-o collapsed`, `-f flame.html`
            ("output", Some(value)) if own_options::format_named(&value).is_some() => {
                self.options
                    .push(("--format".to_owned(), own_options::format_named(&value).map(str::to_owned)));
            }
            ("output", Some(value)) => self.out = Some(value.into()),
            ("format", Some(value)) if value.contains('.') => self.out = Some(value.into()),
            (long, value) => self.options.push((format!("--{long}"), value)),
        }
    }

    /// Takes the options in a list: `live,format=b,file=x`.
    fn take_list(&mut self, list: &str) {
        for word in list.split(',').filter(|word| !word.is_empty()) {
            let (name, value) =
                word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
            if let Some(option) = option_named(name) {
                self.take_value(option, value.map(str::to_owned));
            }
        }
    }

    /// Takes an option of another tool.
    fn take_value(&mut self, option: &'static ForeignOption, value: Option<String>) {
        self.stand_for(option);
        match (option.role, value) {
            (Role::Flag(name), _) => self.options.push((name.to_owned(), None)),
            (Role::With(name), Some(value)) => {
                let value = value.trim_start_matches('#').to_owned();
                self.options.push((name.to_owned(), Some(value)));
            }
            (Role::Dump, Some(value)) => self.dumps.insert(0, value.into()),
            (Role::Old, Some(value)) => self.old = Some(value.into()),
            (Role::Out, Some(value)) => self.out = Some(value.into()),
            (Role::Text, Some(value)) => self.texts.insert(0, value),
            (Role::Process, Some(value)) => self.process = Some(value),
            (Role::Name, Some(value)) => self.command = self.command.or_else(|| command_named(&value)),
            // A word after an option without a value, such as `-heapdump`, is what the line is about.
            (Role::Drop, Some(value)) if is_dump(OsStr::new(&value)) => self.dumps.push(value.into()),
            _ => {}
        }
    }

    /// Takes the command that an option stands for.
    fn stand_for(&mut self, option: &'static ForeignOption) {
        self.is_foreign = true;
        match option.command {
            Some((Strength::Strong, command)) => {
                self.strong.get_or_insert(command);
            }
            Some((Strength::Weak, _)) => {
                let rank = |option: &ForeignOption| OPTIONS.iter().position(|one| std::ptr::eq(one, option));
                if self.weak.is_none_or(|weak| rank(option) < rank(weak)) {
                    self.weak = Some(option);
                }
            }
            None => {}
        }
    }

    /// Returns the file to write: the first that is no dump, or the dump behind the first `dumps` ones.
    pub(super) fn output(&self, dumps: usize) -> Option<&OsString> {
        let behind = self.dumps.get(dumps).filter(|file| !Path::new(file).exists());
        self.out.as_ref().or(behind)
    }

    /// Returns what the user gave for a placeholder of a line, quoted for a shell.
    pub(super) fn value(&self, placeholder: &str) -> Option<String> {
        let file = |file: &OsString| quoted_path(Path::new(file));
        let dump = |at: usize| self.dumps.get(at).map(file);
        let text = || self.texts.first().map(quoted);
        match placeholder {
            "DUMP" => dump(0),
            "OLD" => self.old.as_ref().map(file).or_else(|| dump(0).filter(|_| self.dumps.len() > 1)),
            "NEW" => {
                if self.old.is_some() || self.dumps.len() == 1 {
                    dump(0)
                } else {
                    dump(1)
                }
            }
            "OBJECT" => self.objects.first().map(quoted),
            "OBJECT|CLASS" => self.objects.first().map(quoted).or_else(text),
            "CLASS" | "TEXT" => text(),
            "PID" => self.process.as_ref().map(quoted),
            _ => None,
        }
    }
}

/// Returns whether a word is an option, and not standard input.
fn is_dash_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}
