//! Results of checks as JUnit XML for CI servers. The output conforms to both schemas in use: the one of Jenkins
//! (`junit-10.xsd` of its xUnit plugin) and the one of Ant's JUnit tasks (`JUnit.xsd` by Windy Road).

use std::borrow::Cow;
use std::io::{self, Write};

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use crate::escape;

/// Test suite: the checks of one dump.
#[derive(Debug, Clone)]
pub struct Suite<'a> {
    /// Name of the suite.
    pub name: &'a str,
    /// Creation time of the checked dump, RFC 3339.
    pub time: Option<&'a str>,
    /// Checks.
    pub cases: Vec<Case<'a>>,
    /// Notes about the checked dump.
    pub notes: Vec<&'a str>,
}

/// Test case: a check and its result.
#[derive(Debug, Clone)]
pub struct Case<'a> {
    /// Name of the check.
    pub name: &'a str,
    /// Result of the check.
    pub result: Outcome<'a>,
}

/// Result of a check.
#[derive(Debug, Clone)]
pub enum Outcome<'a> {
    /// The check passed.
    Passed,
    /// The check failed.
    Failed {
        /// Kind of check.
        kind: &'a str,
        /// Reason for the failure.
        message: &'a str,
    },
    /// The check could not be evaluated.
    Error {
        /// Kind of check.
        kind: &'a str,
        /// Reason for the error.
        message: &'a str,
    },
    /// The check is reported but does not affect the result.
    Skipped {
        /// Reason.
        message: String,
    },
}

/// Placeholder for an unknown time, as the schemas require a time.
const NO_TIME: &str = "1970-01-01T00:00:00";
/// Placeholder for an empty name, as the schemas require a name.
const NO_NAME: &str = "-";
/// Length of `2026-11-22T14:15:34`, without fractions and zone.
const TIME_BYTES: usize = NO_TIME.len();

/// Writes test suites as one XML document.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(out: &mut dyn Write, suites: &[Suite<'_>]) -> io::Result<()> {
    let mut xml = Writer::new_with_indent(&mut *out, b' ', 1);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    if suites.is_empty() {
        xml.create_element("testsuites").write_empty()?;
    } else {
        xml.create_element("testsuites").write_inner_content(|xml| {
            (0..).zip(suites).try_for_each(|(number, suite): (u32, _)| write_suite(xml, number, suite))
        })?;
    }
    out.write_all(b"\n")
}

fn write_suite<W: Write>(xml: &mut Writer<W>, number: u32, suite: &Suite<'_>) -> io::Result<()> {
    let count = |is_one: fn(&Outcome<'_>) -> bool| {
        suite.cases.iter().filter(|case| is_one(&case.result)).count().to_string()
    };
    let name = harmless(suite.name);
    let time = suite.time.and_then(|time| time.get(..TIME_BYTES)).unwrap_or(NO_TIME);
    xml.create_element("testsuite")
        .with_attributes([
            ("name", &*name),
            ("package", "hprof-cli.check"),
            ("id", &number.to_string()),
            ("timestamp", time),
            ("hostname", "localhost"),
            ("tests", &suite.cases.len().to_string()),
            ("failures", &count(|result| matches!(result, Outcome::Failed { .. }))),
            ("errors", &count(|result| matches!(result, Outcome::Error { .. }))),
            ("skipped", &count(|result| matches!(result, Outcome::Skipped { .. }))),
            ("time", "0"),
        ])
        .write_inner_content(|xml| {
            xml.create_element("properties").write_empty()?;
            suite.cases.iter().try_for_each(|case| write_case(xml, &name, case))?;
            let notes: Vec<Cow<'_, str>> = suite.notes.iter().map(|note| harmless(note)).collect();
            xml.create_element("system-out").write_text_content(BytesText::new(&notes.join("\n")))?;
            xml.create_element("system-err").write_empty()?;
            Ok(())
        })?;
    Ok(())
}

fn write_case<W: Write>(xml: &mut Writer<W>, suite: &str, case: &Case<'_>) -> io::Result<()> {
    let name = harmless(case.name);
    let element = xml.create_element("testcase").with_attributes([
        ("name", &*name),
        ("classname", suite),
        ("time", "0"),
    ]);
    let (tag, kind, message) = match &case.result {
        Outcome::Passed => return element.write_empty().map(drop),
        Outcome::Failed { kind, message } => ("failure", Some(*kind), *message),
        Outcome::Error { kind, message } => ("error", Some(*kind), *message),
        Outcome::Skipped { message } => ("skipped", None, &**message),
    };
    element.write_inner_content(|xml| {
        let message = harmless(message);
        let kind = kind.map(|kind| ("type", kind));
        xml.create_element(tag)
            .with_attributes(std::iter::once(("message", &*message)).chain(kind))
            .write_text_content(BytesText::new(&message))?;
        Ok(())
    })?;
    Ok(())
}

/// Escapes a text, including characters that XML 1.0 cannot contain in any form, and replaces an empty name.
fn harmless(text: &str) -> Cow<'_, str> {
    let text = if text.is_empty() { Cow::Borrowed(NO_NAME) } else { escape::text(text) };
    if !text.contains(['\u{fffe}', '\u{ffff}']) {
        return text;
    }
    Cow::Owned(text.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_cannot_hold_is_escaped() {
        let case = Case {
            name: "a<b>&\"'\u{1b}\u{0}\u{fffe}\u{202e}",
            result: Outcome::Failed { kind: "retained", message: "]]> x\ny" },
        };
        let suites = [Suite {
            name: "",
            time: Some("2026-11-22T14:15:34.123Z"),
            cases: vec![case],
            notes: vec!["\u{7}"],
        }];
        let mut out = Vec::new();
        write(&mut out, &suites).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("name=\"a&lt;b&gt;&amp;&quot;&apos;\\u001b\\u0000\\ufffe\\u202e\""), "{text}");
        assert!(text.contains("timestamp=\"2026-11-22T14:15:34\"") && text.contains("name=\"-\""), "{text}");
        assert!(text.contains(">]]&gt; x\\ny</failure>"), "{text}");
    }
}
