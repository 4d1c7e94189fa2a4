//! Parser of rules files: TOML in which every key must be known. Errors have a line and column.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::limits::{self, Given};
use super::words;
use hprof_parser::sniff::{Looks, sniff};
use hprof_query::check::{MEASURES, Measure, MeasureKind, Of, Rule, RuleError, RuleLimits, Severity};
use hprof_query::histogram::Scope;
use hprof_query::naming::suggestions;

/// Maximum length of a file: nobody writes a longer one.
const MAX_BYTES: u64 = 1 << 20;
/// Maximum number of rules.
const MAX_RULES: usize = 1000;
/// Maximum length of a name: longer ones do not fit into reports.
pub(super) const MAX_NAME: usize = 200;
/// Maximum length of a pattern or path.
const MAX_OF: usize = 1000;
const MAX_PATH: usize = 4096;
/// Maximum number of characters of an error message about invalid TOML.
const MAX_SAID: usize = 300;
/// Maximum number of errors reported.
const MAX_WRONG: usize = 20;

/// Keys of the file.
const TOP: &[&str] = &["baseline", "optional", "rule"];
/// Keys of a rule.
const KEYS: &[&str] = &["name", "severity", "measure", "of", "objects", "min", "max", "optional"];

/// Names of results that are not about rules.
pub(super) const DAMAGED: &str = "damaged";
pub(super) const UNREADABLE: &str = "unreadable";

/// The rules of a file.
#[derive(Debug)]
pub(super) struct Rules {
    /// Path of the file.
    pub(super) path: PathBuf,
    /// Dump to compare with, if the file names one.
    pub(super) baseline: Option<PathBuf>,
    /// The rules, in their order; at least one.
    pub(super) rules: Vec<Rule>,
    /// The line of each rule, from 1.
    pub(super) lines: Vec<u64>,
}

/// An error at a position in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wrong {
    /// Offset in bytes.
    at: usize,
    /// Message with advice.
    text: String,
}

/// Reads a rules file.
pub(super) fn read(path: &Path) -> anyhow::Result<Rules> {
    let shown = path.display();
    let fail = || format!("cannot read the rules file {shown}");
    let file = File::open(path).with_context(fail)?;
    anyhow::ensure!(
        !file.metadata().with_context(fail)?.is_dir(),
        "{shown} is a directory; name a rules file in it"
    );
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).with_context(fail)?;
    let what_to_do = "`hprof-cli check --init DUMP` writes one";
    let other = match sniff(&bytes) {
        // `[[rule]]` looks like JSON.
        Looks::Text | Looks::Json | Looks::Other => None,
        _ if bytes.is_empty() => None,
        Looks::Hprof => Some("it is a heap dump".to_owned()),
        looks => Some(looks.describe()),
    };
    let is_long = bytes.len() as u64 > MAX_BYTES;
    if let Some(what) = other.or_else(|| is_long.then(|| "it is larger than 1 MiB".to_owned())) {
        anyhow::bail!("{shown} is not a rules file: {what}; {what_to_do}");
    }
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let (line, column) = position(&String::from_utf8_lossy(&bytes), error.valid_up_to());
        anyhow::anyhow!("{shown}:{line}:{column}: not UTF-8, which TOML requires; {what_to_do}")
    })?;
    parse(text)
        .map(|(baseline, rules, lines)| Rules {
            path: path.to_owned(),
            // Relative to the directory of the file.
            baseline: baseline.map(|baseline| path.parent().unwrap_or(Path::new("")).join(baseline)),
            rules,
            lines,
        })
        .map_err(|mut wrong| {
            wrong.sort_by_key(|one| one.at);
            let more = wrong.len().saturating_sub(MAX_WRONG);
            let mut said: Vec<String> = wrong
                .iter()
                .take(MAX_WRONG)
                .map(|one| {
                    let (line, column) = position(text, one.at);
                    format!("{shown}:{line}:{column}: {}", one.text)
                })
                .collect();
            if more > 0 {
                said.push(format!("{more} more errors in {shown}"));
            }
            anyhow::Error::new(WrongRules(said))
        })
}

/// An invalid rules file: its errors, each with its position.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub(super) struct WrongRules(pub(super) Vec<String>);

/// Converts an offset in bytes to line and column, in characters from 1.
fn position(text: &str, at: usize) -> (u64, u64) {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = text.get(..at).unwrap_or_default();
    let line = before.bytes().filter(|byte| *byte == b'\n').count() as u64 + 1;
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let column = before.get(start..).unwrap_or_default().chars().count() as u64 + 1;
    (line, column)
}

type Parsed = (Option<PathBuf>, Vec<Rule>, Vec<u64>);

fn parse(text: &str) -> Result<Parsed, Vec<Wrong>> {
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        vec![Wrong {
            at,
            text: format!(
                "not valid TOML: {}",
                words::beginning(&error.message().replace('\n', ", "), MAX_SAID)
            ),
        }]
    })?;
    let mut reader = RulesReader { wrong: Vec::new() };
    let read = reader.file(text, table.get_ref());
    if reader.wrong.is_empty() { Ok(read) } else { Err(reader.wrong) }
}

/// Reads values and collects errors.
struct RulesReader {
    wrong: Vec<Wrong>,
}

type TomlValue<'i> = Spanned<DeValue<'i>>;

impl RulesReader {
    fn wrong(&mut self, at: usize, text: impl Into<String>) {
        self.wrong.push(Wrong { at, text: text.into() });
    }

    fn file(&mut self, text: &str, table: &DeTable<'_>) -> Parsed {
        self.keys(table, TOP, "the file");
        let baseline =
            table.get("baseline").and_then(|value| self.string(value, "baseline", "the path of a dump"));
        if baseline == Some("")
            && let Some(value) = table.get("baseline")
        {
            self.wrong(value.span().start, "`baseline` is empty; write the path of a dump, or omit it");
        }
        if let (Some(path), Some(value)) = (baseline, table.get("baseline")) {
            self.length(path, MAX_PATH, "baseline", value.span().start);
        }
        let is_optional = self.is_optional(table, false);
        let (mut rules, mut lines) = (Vec::new(), Vec::new());
        let Some(value) = table.get("rule") else {
            self.wrong(
                0,
                format!("there are no rules; a rule begins with [[rule]], for example: {}", words::EXAMPLE),
            );
            return (None, rules, lines);
        };
        let array =
            value.get_ref().as_array().filter(|array| array.iter().all(|one| one.get_ref().is_table()));
        let Some(array) = array else {
            let kind = value.get_ref().type_str();
            let what =
                if kind == "array" { "an array of other values".to_owned() } else { format!("one {kind}") };
            self.wrong(value.span().start, format!("`rule` is {what}; expected tables, each after [[rule]]"));
            return (None, rules, lines);
        };
        if array.is_empty() {
            self.wrong(
                value.span().start,
                format!("there are no rules; expected for example: {}", words::EXAMPLE),
            );
        }
        if array.len() > MAX_RULES {
            self.wrong(
                value.span().start,
                format!("too many rules ({}); use several files of up to {MAX_RULES}", array.len()),
            );
            return (None, rules, lines);
        }
        for value in array.iter() {
            let Some(table) = value.get_ref().as_table() else { continue };
            let (line, _) = position(text, value.span().start);
            if let Some(rule) = self.rule(table, value.span().start, is_optional, (&rules, &lines)) {
                rules.push(rule);
                lines.push(line);
            }
        }
        (baseline.map(PathBuf::from), rules, lines)
    }

    /// Reports unknown keys.
    fn keys(&mut self, table: &DeTable<'_>, known: &[&str], place: &str) {
        for (key, _) in table {
            let name: &str = key.get_ref();
            if known.contains(&name) {
                continue;
            }
            let like = suggestions::names_like(name, known.iter().copied());
            let hint = match suggestions::did_you_mean(&like) {
                none if none.is_empty() => format!("the keys of {place} are {}", known.join(", ")),
                like => like,
            };
            self.wrong(key.span().start, format!("unknown key `{}`; {hint}", words::quoted(name)));
        }
    }

    fn string<'v>(&mut self, value: &'v TomlValue<'_>, key: &str, expected: &str) -> Option<&'v str> {
        let text = value.get_ref().as_str();
        if text.is_none() {
            let found = value.get_ref().type_str();
            self.wrong(
                value.span().start,
                format!("`{key}` is of type {found}; expected {expected}, in quotes"),
            );
        }
        text
    }

    /// Reports a text that is too long.
    fn length(&mut self, text: &str, most: usize, key: &str, at: usize) -> bool {
        if text.len() > most {
            self.wrong(at, format!("`{key}` is {} bytes long; expected at most {most}", text.len()));
        }
        text.len() <= most
    }

    /// Reads one of some keywords; `None` if the key is missing or invalid.
    fn word<T: Copy>(&mut self, table: &DeTable<'_>, key: &str, words: &[(&str, T)]) -> Option<T> {
        let value = table.get(key)?;
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        let text = self.string(value, key, &format!("one of {}", names.join(", ")))?;
        let found = words.iter().find(|(name, _)| *name == text).map(|(_, word)| *word);
        if found.is_none() {
            let hint = suggestions::did_you_mean_one_of(text, &names, names.len(), "expected one of");
            self.wrong(value.span().start, format!("unknown {key} `{}`; {hint}", words::quoted(text)));
        }
        found
    }

    fn is_optional(&mut self, table: &DeTable<'_>, default: bool) -> bool {
        let Some(value) = table.get("optional") else { return default };
        value.get_ref().as_bool().unwrap_or_else(|| {
            let found = value.get_ref().type_str();
            self.wrong(value.span().start, format!("`optional` is of type {found}; expected true or false"));
            default
        })
    }

    /// Reads a rule; `None` if it is invalid.
    fn rule(
        &mut self,
        table: &DeTable<'_>,
        at: usize,
        is_optional: bool,
        (before, lines): (&[Rule], &[u64]),
    ) -> Option<Rule> {
        let wrong = self.wrong.len();
        self.keys(table, KEYS, "a rule");
        let name = self.name(table, at, before, lines);
        let severity = self.word(table, "severity", &Severity::ALL.map(|one| (one.name(), one)));
        let is_optional = self.is_optional(table, is_optional);
        let measure = self.measure(table, at);
        let limits = measure.as_ref().and_then(|measure| self.limits(table, at, measure));
        if self.wrong.len() > wrong {
            return None;
        }
        Some(Rule {
            name: name?,
            severity: severity.unwrap_or_default(),
            measure: measure?,
            limits: limits?,
            is_optional,
        })
    }

    fn name(&mut self, table: &DeTable<'_>, at: usize, before: &[Rule], lines: &[u64]) -> Option<String> {
        let Some(value) = table.get("name") else {
            self.wrong(at, "the rule has no `name`; write for example name = \"caches stay small\"");
            return None;
        };
        let name = self.string(value, "name", "a text")?.trim();
        let at = value.span().start;
        let same = before.iter().zip(lines).find(|(rule, _)| rule.name == name);
        if name.is_empty() {
            self.wrong(at, "`name` is empty; each rule needs a unique name");
        } else if !self.length(name, MAX_NAME, "name", at) {
            return None;
        } else if [DAMAGED, UNREADABLE].contains(&name) {
            self.wrong(at, format!("`{name}` is a reserved name in reports; choose another name"));
        } else if let Some((_, line)) = same {
            self.wrong(at, format!("rule `{name}` already exists in line {line}; names must be unique"));
        }
        Some(name.to_owned())
    }

    fn measure(&mut self, table: &DeTable<'_>, at: usize) -> Option<Measure> {
        if !table.contains_key("measure") {
            self.wrong(
                at,
                format!(
                    "the rule has no `measure`; expected one of {}",
                    MEASURES.map(|kind| kind.name).join(", ")
                ),
            );
            return None;
        }
        let kind = self.word(table, "measure", &MEASURES.map(|kind| (kind.name, kind)))?;
        let expected = kind.of.expected();
        let of = match table.get("of") {
            Some(value) => Some((self.string(value, "of", expected)?, value.span().start)),
            None => None,
        };
        let scope = self.scope(table, kind)?;
        match (of, kind.of) {
            (Some((text, at)), _) if text.trim().is_empty() => {
                self.wrong(at, format!("`of` is empty; expected {expected}"));
                return None;
            }
            (Some((text, at)), _) if !self.length(text, MAX_OF, "of", at) => return None,
            (None, Of::Required(_)) => {
                self.wrong(at, format!("the rule has no `of`; expected {expected}"));
                return None;
            }
            (Some((_, at)), Of::Nothing) => {
                self.wrong(at, format!("`of` cannot be used for {}; omit it", kind.name));
                return None;
            }
            _ => {}
        }
        if let Some((text, at)) = of {
            let objects = table.get("objects").map(|objects| objects.span().start);
            let (at, wrong) = match (kind.check)(text, &words::quoted(text), objects.is_some()) {
                Ok(()) => return Some(Measure { kind, of: Some(text.trim().to_owned()), scope }),
                Err(RuleError::Of(wrong)) => (at, wrong),
                Err(RuleError::Objects(wrong)) => (objects.unwrap_or(at), wrong.to_owned()),
            };
            self.wrong(at, wrong);
            return None;
        }
        Some(Measure { kind, of: None, scope })
    }

    /// Reads the key `objects`.
    fn scope(&mut self, table: &DeTable<'_>, kind: &MeasureKind) -> Option<Scope> {
        let Some(default) = kind.scope else {
            if let Some(value) = table.get("objects") {
                let (at, name) = (value.span().start, kind.name);
                self.wrong(
                    at,
                    format!("`objects` cannot be used for {name}; omit it: only reachable objects count"),
                );
                return None;
            }
            return Some(Scope::Reachable);
        };
        if !table.contains_key("objects") {
            return Some(default);
        }
        let scope = self.word(table, "objects", words::SCOPES)?;
        if kind.needs_baseline && scope == Scope::Unreachable {
            let at = table.get("objects").map_or(0, |value| value.span().start);
            self.wrong(at, "`objects` of a growth rule must be reachable or all");
            return None;
        }
        Some(scope)
    }

    fn limits(&mut self, table: &DeTable<'_>, at: usize, measure: &Measure) -> Option<RuleLimits> {
        let mut given = [None, None];
        for (place, key) in given.iter_mut().zip(["min", "max"]) {
            let Some(value) = table.get(key) else { continue };
            match limits::given(value.get_ref(), measure.kind.unit) {
                Ok(limit) => *place = Some((limit, value.span().start)),
                Err(text) => {
                    self.wrong(value.span().start, format!("`{key}` {text}"));
                    return None;
                }
            }
        }
        let [min, max] = given;
        if let Some((_, at)) = min
            && !measure.kind.has_min
        {
            self.wrong(at, "a rule about leak suspects has no `min`; write max, for example max = \"20 %\"");
            return None;
        }
        if min.is_none() && max.is_none() {
            let example = match measure.kind.unit {
                hprof_query::check::Unit::Bytes => "max = \"50 MiB\"",
                hprof_query::check::Unit::Count => "max = 100",
            };
            self.wrong(at, format!("the rule has no limit; write max or min, for example {example}"));
            return None;
        }
        let second = max.map_or(at, |(_, at)| at);
        match Given::range(min.map(|(min, _)| min), max.map(|(max, _)| max)) {
            Ok(limits) => Some(limits),
            Err(text) => {
                self.wrong(second, text);
                None
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> Vec<String> {
        let wrong = parse(text).map(|(_, rules, _)| rules).unwrap_err();
        wrong
            .iter()
            .map(|one| format!("{}:{}: {}", position(text, one.at).0, position(text, one.at).1, one.text))
            .collect()
    }

    #[test]
    fn a_rule_has_its_line() {
        let text = "# é\n\n[[rule]]\nname = \"a\"\nmeasure = \"heap\"\nmax = \"1 GiB\"\n\n  [[rule]]\nname = \"b\"\nmeasure = \"suspects\"\nmax = \"20 percent\"\n";
        let (_, rules, lines) = parse(text).unwrap();
        assert_eq!(lines, [3, 8]);
        assert_eq!(rules.iter().map(|rule| &*rule.name).collect::<Vec<_>>(), ["a", "b"]);
        let measure = &rules.first().unwrap().measure;
        assert_eq!((measure.kind.name, measure.scope), ("heap", Scope::Reachable));
    }

    #[test]
    fn all_that_is_wrong_is_said_with_its_place() {
        let text = "[[rule]]\nname = \"é\"\nmeasure = \"heap\"\nmaximum = 3\n[[rule]]\nname = 7\nmeasure = \"instances\"\nof = \"A\"\nmax = \"3 MiB\"\n";
        assert_eq!(wrong(text).len(), 4, "{:#?}", wrong(text));
        assert_eq!(
            wrong(text)[0],
            "4:1: unknown key `maximum`; the keys of a rule are name, severity, measure, of, objects, min, max, optional"
        );
        assert!(wrong("x = [").first().unwrap().contains("not valid TOML"), "{:?}", wrong("x = ["));
        assert!(wrong("").first().unwrap().starts_with("1:1: there are no rules"));
    }
}
