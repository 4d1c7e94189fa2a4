//! Results of checks as SARIF 2.1.0 for code hosts, which show each result at a line of a file.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Component, Path};

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::escape;

/// Severity of a failed rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Error.
    Error,
    /// Warning.
    Warning,
    /// Note.
    Note,
}

impl Level {
    const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// Rule that was evaluated.
#[derive(Debug, Clone)]
pub struct Rule<'a> {
    /// Name of the rule.
    pub id: &'a str,
    /// Description of the rule.
    pub about: String,
    /// Severity of a failure of the rule.
    pub level: Level,
}

/// Failure of a rule.
#[derive(Debug, Clone)]
pub struct Failure<'a> {
    /// Index of the rule in [`SarifRun::rules`].
    pub rule: usize,
    /// Severity of the failure.
    pub level: Level,
    /// Reason for the failure.
    pub message: String,
    /// Line of the rule, from 1.
    pub line: u64,
    /// Additional properties by name.
    pub properties: Vec<(&'static str, crate::value::Value<'a>)>,
}

/// Evaluation of a rules file.
#[derive(Debug, Clone)]
pub struct SarifRun<'a> {
    /// Version of this program.
    pub version: &'a str,
    /// Rules file.
    pub file: &'a Path,
    /// All rules.
    pub rules: Vec<Rule<'a>>,
    /// Reasons for rules that could not be evaluated.
    pub errors: Vec<&'a str>,
}

/// Repository of this program; empty if the package does not state it.
const ABOUT: &str = env!("CARGO_PKG_REPOSITORY");

/// Writes the evaluation of a rules file. Failures are consumed one by one, so any number of them takes no memory.
///
/// # Errors
/// If `out` cannot be written.
pub fn write<'f>(
    out: &mut dyn Write,
    run: &SarifRun<'_>,
    failures: &mut dyn Iterator<Item = Failure<'f>>,
) -> io::Result<()> {
    let rules: Vec<Value> = run.rules.iter().map(rule).collect();
    let (uri, base) = uri(run.file);
    let mut place = json!({ "uri": uri });
    if let (Some(base), Some(place)) = (base, place.as_object_mut()) {
        place.insert("uriBaseId".to_owned(), base.into());
    }
    let notes: Vec<Value> = (run.errors.iter())
        .map(|error| json!({ "level": "error", "message": { "text": plain(error) } }))
        .collect();
    let mut driver = json!({ "name": "hprof-cli", "version": run.version, "rules": rules });
    if let Some(driver) = driver.as_object_mut().filter(|_| !ABOUT.is_empty()) {
        driver.insert("informationUri".to_owned(), ABOUT.into());
    }
    let mut results = failures.map(|failure| result(run, &failure, &place));
    let results = Results(RefCell::new(&mut results));
    let document = SarifDocument {
        schema: "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        version: "2.1.0",
        runs: [DocumentRun {
            tool: json!({ "driver": driver }),
            invocations: json!([{
                "executionSuccessful": run.errors.is_empty(),
                "toolExecutionNotifications": notes,
            }]),
            results,
        }],
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct SarifDocument<'r> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [DocumentRun<'r>; 1],
}

#[derive(Serialize)]
struct DocumentRun<'r> {
    tool: Value,
    invocations: Value,
    results: Results<'r>,
}

/// List of results, each generated as it is written.
struct Results<'r>(RefCell<&'r mut dyn Iterator<Item = Value>>);

impl Serialize for Results<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&mut **self.0.borrow_mut())
    }
}

fn rule(rule: &Rule<'_>) -> Value {
    json!({
        "id": escape::text(rule.id),
        "shortDescription": { "text": plain(&rule.about) },
        "defaultConfiguration": { "level": rule.level.name() },
    })
}

fn result(run: &SarifRun<'_>, failure: &Failure<'_>, place: &Value) -> Value {
    let id = run.rules.get(failure.rule).map(|rule| escape::text(rule.id));
    let properties: serde_json::Map<String, Value> = (failure.properties.iter())
        .map(|(key, value)| {
            let value = match value {
                crate::value::Value::Text(text) => escape::text(text).into(),
                other => serde_json::to_value(other).unwrap_or_default(),
            };
            ((*key).to_owned(), value)
        })
        .collect();
    json!({
        "ruleId": id,
        "ruleIndex": failure.rule,
        "level": failure.level.name(),
        "message": { "text": plain(&failure.message) },
        "locations": [{ "physicalLocation": {
            "artifactLocation": place,
            "region": { "startLine": failure.line.max(1) },
        } }],
        "properties": properties,
    })
}

/// Returns a text escaped for a message: in addition to the usual escapes, the syntax of links and arguments (3.11.5 and 3.11.6
/// of the standard).
fn plain(text: &str) -> String {
    let text = escape::text(text).replace('{', "{{").replace('}', "}}");
    if !text.contains("](") {
        return text;
    }
    text.replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]")
}

/// Returns the URI of a file and the name of its base. The URI of a file below the current directory is relative to the
/// sources, so that code hosts find the file.
fn uri(file: &Path) -> (String, Option<&'static str>) {
    let here = std::env::current_dir().ok();
    let below = here.as_deref().and_then(|here| file.strip_prefix(here).ok()).unwrap_or(file);
    let mut uri = String::new();
    for part in below.components() {
        let text = match part {
            Component::Normal(text) => text,
            Component::ParentDir => "..".as_ref(),
            Component::Prefix(prefix) => prefix.as_os_str(),
            Component::CurDir | Component::RootDir => continue,
        };
        if !uri.is_empty() {
            uri.push('/');
        }
        for byte in text.as_encoded_bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    uri.push(char::from(*byte))
                }
                // Writing to a String cannot fail.
                other => drop(write!(uri, "%{other:02X}")),
            }
        }
    }
    if below.is_absolute() { (format!("file:///{uri}"), None) } else { (uri, Some("%SRCROOT%")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_below_are_relative_and_encoded() {
        assert_eq!(uri(Path::new("./ci/a b:é.toml")).0, "ci/a%20b%3A%C3%A9.toml");
        assert_eq!(uri(Path::new("../x.toml")), ("../x.toml".to_owned(), Some("%SRCROOT%")));
        #[cfg(unix)]
        assert_eq!(uri(Path::new("/no such/x")), ("file:///no%20such/x".to_owned(), None));
    }

    #[test]
    fn messages_hold_no_links_and_no_arguments() {
        assert_eq!(plain("byte[] {0}\u{202e}"), "byte[] {{0}}\\u202e");
        assert_eq!(plain("[x](http://y)"), "\\[x\\](http://y)");
    }
}
