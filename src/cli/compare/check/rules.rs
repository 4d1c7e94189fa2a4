//! Rules files of `check`: the baseline, and rules with their measures and limits.

use std::path::{Path, PathBuf};

use super::limits::{self, LimitValue};
use super::words;
use crate::cli::shared::context::RunContext;
use crate::cli::shared::rules_file;
use hprof_query::check::{
    MEASURES, Measure, MeasureKind, OfRequirement, Rule, RuleError, RuleLimits, Severity, Unit,
};
use hprof_query::histogram::Scope;
use hprof_query::naming::toml_file::{self, TomlTable, quoted};

/// Maximum number of rules.
const MAX_RULES: usize = 1000;
/// Maximum length of a name: longer ones do not fit into reports.
pub(super) const MAX_NAME: usize = 200;
/// Maximum length of the key `of`: a pattern or path.
const MAX_OF: usize = 1000;
const MAX_PATH: usize = 4096;

/// Keys that are valid at the top level of a rules file.
const TOP: &[&str] = &["baseline", "optional", "rule"];
/// Keys that are valid in a rule.
const KEYS: &[&str] = &["name", "severity", "measure", "of", "objects", "min", "max", "optional"];

/// Name of results about a damaged dump.
pub(super) const DAMAGED: &str = "damaged";
/// Name of results about a dump that cannot be read.
pub(super) const UNREADABLE: &str = "unreadable";

/// The rules of a file.
#[derive(Debug)]
pub(super) struct Rules {
    /// Path of the rules file.
    pub(super) path: PathBuf,
    /// Path of the baseline dump, if the file names one.
    pub(super) baseline: Option<PathBuf>,
    /// The rules in the order of the file; at least one.
    pub(super) rules: Vec<Rule>,
    /// The line number of each rule, counted from 1.
    pub(super) lines: Vec<u64>,
}

/// Reads a rules file.
///
/// # Errors
/// If the file cannot be read or contains errors. All errors except the last were printed.
pub(super) fn read(cx: &RunContext, path: &Path) -> anyhow::Result<Rules> {
    let hint = "`hprof-cli check --init DUMP` writes one";
    rules_file::read(cx, path, hint, |text, file| toml_file::read(text, file, |root| rules(root, path)))
}

fn rules(root: &TomlTable<'_>, path: &Path) -> Rules {
    root.check_keys(TOP);
    let baseline = root.text_like("baseline", "the path of a dump, in quotes");
    let baseline = baseline.filter(|baseline| baseline.check_length("baseline", MAX_PATH));
    if baseline.as_ref().is_some_and(|baseline| baseline.text.is_empty()) {
        root.report_at("baseline", "`baseline` is empty; write the path of a dump, or omit it");
    }
    let mut rules = Rules {
        path: path.to_owned(),
        // Relative to the directory of the file.
        baseline: baseline.map(|baseline| path.parent().unwrap_or(Path::new("")).join(baseline.text)),
        rules: Vec::new(),
        lines: Vec::new(),
    };
    let is_optional = root.boolean("optional").unwrap_or_default();
    let tables = root.tables("rule");
    if tables.len() > MAX_RULES {
        let count = tables.len();
        root.report_at("rule", format!("too many rules ({count}); use several files of up to {MAX_RULES}"));
        return rules;
    }
    if root.get("rule").is_none() || root.has_empty_array("rule") {
        let example = words::EXAMPLE;
        root.report_at(
            "rule",
            format!("there are no rules; a rule begins with [[rule]], for example: {example}"),
        );
    }
    // Names of all rules, including those with errors, and their lines.
    let mut names = Vec::new();
    for table in tables {
        let line = table.line();
        if let Some(rule) = rule(&table, line, is_optional, &mut names) {
            rules.rules.push(rule);
            rules.lines.push(line);
        }
    }
    rules
}

/// Reads a rule; `None` if it has an error.
fn rule<'r>(
    table: &TomlTable<'r>,
    line: u64,
    is_optional: bool,
    names: &mut Vec<(&'r str, u64)>,
) -> Option<Rule> {
    table.check_keys(KEYS);
    let name = name(table, names);
    names.extend(name.map(|name| (name, line)));
    let severity = table.keyword("severity", &Severity::ALL.map(|one| (one.name(), one)));
    let is_optional = table.boolean("optional").unwrap_or(is_optional);
    let measure = measure(table);
    let limits = measure.as_ref().and_then(|measure| limits(table, measure.kind));
    let severity = severity.unwrap_or_default();
    Some(Rule { name: name?.to_owned(), severity, measure: measure?, limits: limits?, is_optional })
}

fn name<'r>(table: &TomlTable<'r>, before: &[(&str, u64)]) -> Option<&'r str> {
    let text = table.required_text("name", "for example name = \"caches stay small\"")?;
    let name = text.text.trim();
    if name.is_empty() {
        text.report("`name` is empty; each rule needs a unique name");
    } else if !text.check_length("name", MAX_NAME) {
        return None;
    } else if [DAMAGED, UNREADABLE].contains(&name) {
        text.report(format!("`{name}` is a reserved name in reports; choose another name"));
    } else if let Some((_, line)) = before.iter().find(|(before, _)| *before == name) {
        text.report(format!("rule `{name}` already exists in line {line}; names must be unique"));
    }
    Some(name)
}

fn measure(table: &TomlTable<'_>) -> Option<Measure> {
    let names = MEASURES.map(|kind| kind.name).join(", ");
    table.require("measure", &format!("expected one of {names}"));
    let kind = table.keyword("measure", &MEASURES.map(|kind| (kind.name, kind)))?;
    let scope = scope(table, kind);
    let expected = kind.of.expected_value();
    if matches!(kind.of, OfRequirement::Required(_)) {
        table.require("of", &format!("expected {expected}"));
    }
    let of =
        table.text_like("of", &format!("{expected}, in quotes")).filter(|of| of.check_length("of", MAX_OF));
    if let Some(of) = &of {
        if of.text.trim().is_empty() {
            of.report(format!("`of` is empty; expected {expected}"));
        } else if matches!(kind.of, OfRequirement::Nothing) {
            of.report(format!("`of` cannot be used for {}; omit it", kind.name));
        } else {
            match (kind.check)(of.text, &quoted(of.text), table.get("objects").is_some()) {
                Ok(()) => {}
                Err(RuleError::Of(message)) => of.report(message),
                Err(RuleError::Objects(message)) => table.report_at("objects", message),
            }
        }
    }
    Some(Measure { kind, of: of.map(|of| of.text.trim().to_owned()), scope })
}

/// Reads the key `objects`.
fn scope(table: &TomlTable<'_>, kind: &MeasureKind) -> Scope {
    let Some(default) = kind.scope else {
        if table.get("objects").is_some() {
            let name = kind.name;
            let message =
                format!("`objects` cannot be used for {name}; omit it: only reachable objects count");
            table.report_at("objects", message);
        }
        return Scope::Reachable;
    };
    let scope = table.keyword("objects", words::SCOPES).unwrap_or(default);
    if kind.needs_baseline && scope == Scope::Unreachable {
        table.report_at("objects", "`objects` of a growth rule must be reachable or all");
    }
    scope
}

fn limits(table: &TomlTable<'_>, kind: &MeasureKind) -> Option<RuleLimits> {
    let limit = |key| {
        let given = limits::parse(table.get(key)?.get_ref(), kind.unit);
        given.map_err(|message| table.report_at(key, format!("`{key}` {message}"))).ok()
    };
    let (min, max) = (limit("min"), limit("max"));
    if min.is_some() && !kind.has_min {
        let message = "a rule about leak suspects cannot have `min`; use max, for example max = \"20 %\"";
        table.report_at("min", message);
    } else if table.get("min").or(table.get("max")).is_none() {
        let example = match kind.unit {
            Unit::Bytes => "max = \"50 MiB\"",
            Unit::Count => "max = 100",
        };
        table.report(format!("the rule has no limit; write max or min, for example {example}"));
    }
    min.or(max)?;
    LimitValue::range(min, max).map_err(|message| table.report_at("max", message)).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hprof_query::naming::toml_file::TomlErrors;

    use super::*;

    fn parse(text: &str) -> Result<Rules, TomlErrors> {
        toml_file::read(text, "r.toml", |root| rules(root, Path::new("r.toml")))
    }

    fn errors(text: &str) -> Vec<String> {
        parse(text).unwrap_err().lines
    }

    #[test]
    fn a_rule_has_its_line() {
        let text = "# é\n\n[[rule]]\nname = \"a\"\nmeasure = \"heap\"\nmax = \"1 GiB\"\n\n  [[rule]]\nname = \"b\"\nmeasure = \"suspects\"\nmax = \"20 percent\"\n";
        let Rules { rules, lines, .. } = parse(text).unwrap();
        assert_eq!(lines, [3, 8]);
        assert_eq!(rules.iter().map(|rule| &*rule.name).collect::<Vec<_>>(), ["a", "b"]);
        let measure = &rules.first().unwrap().measure;
        assert_eq!((measure.kind.name, measure.scope), ("heap", Scope::Reachable));
    }

    #[test]
    fn all_errors_are_reported() {
        let text = "[[rule]]\nname = \"é\"\nmeasure = \"heap\"\nmaximum = 3\n[[rule]]\nname = 7\nmeasure = \"instances\"\nof = \"A\"\nmax = \"3 MiB\"\n";
        assert_eq!(
            errors(text),
            [
                "r.toml:1:1: the rule has no limit; write max or min, for example max = \"50 MiB\"",
                "r.toml:4:1: unknown key `maximum`; the valid keys of [[rule]] are name, severity, measure, of, objects, min, max, optional",
                "r.toml:6:8: `name` is of type integer; expected a string in quotes",
                "r.toml:9:7: `max` is `3 MiB`; expected a number of 0 or more, for example 100",
            ]
        );
        // A value with an error hides no error of the other keys or rules.
        let twice = errors("[[rule]]\nname = \"a\"\n[[rule]]\nname = \"a\"\nmeasure = \"heap\"\nmax = 1\n");
        assert!(twice[1].starts_with("r.toml:4:8: rule `a` already exists in line 1"), "{twice:#?}");
        let text = "[[rule]]\nmeasure = \"retained\"\nobjects = \"all\"\nmax = \"x\"\n";
        let found = errors(text);
        assert_eq!(found.len(), 4, "{found:#?}");
        assert!(errors("")[0].starts_with("r.toml:1:1: there are no rules"));
    }
}
