//! Text templates with facts: `{sessions:#session}[ of {path}], timeout {timeout:duration}`.
//!
//! `{fact}` is the value of a fact, `{fact:form}` its value in a form. Text in brackets is omitted if a fact in it is null or
//! empty.

use hprof_index::storage::human_bytes::HumanBytes;
use hprof_values::names;

use super::fact::{FrameworkFact, format_number};
use hprof_base::naming::stable_names::fold_numbers;

/// Maximum number of characters of a value in a text.
const MAX_VALUE: usize = 120;

/// A text with placeholders for facts.
#[derive(Debug)]
pub(super) struct Template {
    source: Box<str>,
    parts: Vec<TemplatePart>,
}

/// A part of a template.
#[derive(Debug)]
enum TemplatePart {
    Text(String),
    Fact(String, Form),
    Optional(Vec<TemplatePart>),
}

/// Format in which a value is inserted into the text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    /// Numbers with grouped digits, texts unchanged.
    Plain,
    /// A number of seconds or milliseconds, in a suitable unit.
    Duration { per_second: u32 },
    /// A number of bytes.
    Bytes,
    /// Name of a class without its package.
    Class,
    /// Name of a method without the package of its class.
    Method,
    /// Name of a thread without its number in the pool.
    Pool,
    /// Name of a Kotlin suspending function, from the class that the compiler generated for it.
    Function,
    /// A number with a noun: `1 session`, `2 sessions`.
    Count(String, String),
}

/// Forms except `#noun`.
const FORMS: &[(&str, Form)] = &[
    ("duration", Form::Duration { per_second: 1 }),
    ("millis", Form::Duration { per_second: 1000 }),
    ("bytes", Form::Bytes),
    ("class", Form::Class),
    ("method", Form::Method),
    ("pool", Form::Pool),
    ("function", Form::Function),
];

impl Template {
    /// Parses a template. The error is a byte offset and a description.
    pub(super) fn parse(text: &str, is_fact: &dyn Fn(&str) -> bool) -> Result<Self, (usize, String)> {
        let (parts, end) = parts(text, 0, false, is_fact)?;
        debug_assert_eq!(end, text.len());
        Ok(Self { source: text.into(), parts })
    }

    /// Returns the text as written in the rule.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Returns the text with the values of the facts.
    pub(super) fn fill(&self, value: &mut dyn FnMut(&str) -> FrameworkFact) -> String {
        let mut out = String::new();
        fill(&self.parts, value, &mut out);
        out
    }
}

/// Parses the parts of a text from `start` on. Returns the parts, and their end offset (exclusive): the end of the text, or
/// after the `]`.
fn parts(
    text: &str,
    start: usize,
    in_brackets: bool,
    is_fact: &dyn Fn(&str) -> bool,
) -> Result<(Vec<TemplatePart>, usize), (usize, String)> {
    let (mut at, mut found) = (start, Vec::new());
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let plain = rest.find(['{', '}', '[', ']']).unwrap_or(rest.len());
        if plain > 0 {
            found.push(TemplatePart::Text(rest.get(..plain).unwrap_or_default().to_owned()));
        }
        at += plain;
        match text.as_bytes().get(at) {
            None if in_brackets => {
                return Err((start.saturating_sub(1), "`]` is missing after this `[`".to_owned()));
            }
            None => return Ok((found, at)),
            Some(b'[') if !in_brackets => {
                let (inner, end) = parts(text, at + 1, true, is_fact)?;
                found.push(TemplatePart::Optional(inner));
                at = end;
            }
            Some(b']') if in_brackets => return Ok((found, at + 1)),
            Some(b'{') => {
                let inner = text.get(at + 1..).unwrap_or_default();
                let end = inner.find('}').ok_or((at, "`}` is missing after this `{`".to_owned()))?;
                found.push(fact(inner.get(..end).unwrap_or_default(), at + 1, is_fact)?);
                at += end + 2;
            }
            Some(_) => {
                return Err((
                    at,
                    "unexpected bracket; brackets must be paired, and `[...]` cannot contain `[`".to_owned(),
                ));
            }
        }
    }
}

fn fact(text: &str, at: usize, is_fact: &dyn Fn(&str) -> bool) -> Result<TemplatePart, (usize, String)> {
    let (name, form) = text.split_once(':').map_or((text, None), |(name, form)| (name, Some(form)));
    if !is_fact(name) {
        return Err((
            at,
            format!("unknown fact `{}`; a fact must be declared in [class.facts]", name.escape_debug()),
        ));
    }
    let form = match (form, form.and_then(|form| form.strip_prefix('#'))) {
        (None, _) => Form::Plain,
        (_, Some(noun)) => {
            let (one, many) = match noun.split_once('/') {
                Some((one, many)) => (one.to_owned(), many.to_owned()),
                None => (noun.to_owned(), format!("{noun}s")),
            };
            Form::Count(one, many)
        }
        (Some(form), None) => {
            let known = FORMS.iter().find(|(name, _)| *name == form).map(|(_, form)| form.clone());
            let names: Vec<&str> = FORMS.iter().map(|(name, _)| *name).collect();
            let what = format!("unknown form; the forms are {} and #noun", names.join(", "));
            known.ok_or((at + name.len() + 1, what))?
        }
    };
    Ok(TemplatePart::Fact(name.to_owned(), form))
}

/// Appends parts; returns `false` if a value is missing.
fn fill(parts: &[TemplatePart], value: &mut dyn FnMut(&str) -> FrameworkFact, out: &mut String) -> bool {
    let mut is_complete = true;
    for part in parts {
        match part {
            TemplatePart::Text(text) => out.push_str(text),
            TemplatePart::Fact(name, form) => {
                let text = match value(name) {
                    FrameworkFact::Hidden => Some(format!("({} hidden)", name.replace('_', " "))),
                    fact => form.show(&fact),
                };
                is_complete &= text.as_ref().is_some_and(|text| !text.is_empty());
                out.push_str(text.as_deref().unwrap_or("?"));
            }
            TemplatePart::Optional(inner) => {
                let mut text = String::new();
                if fill(inner, value, &mut text) {
                    out.push_str(&text);
                }
            }
        }
    }
    is_complete
}

impl Form {
    fn show(&self, fact: &FrameworkFact) -> Option<String> {
        #[allow(clippy::cast_precision_loss)]
        let number = match fact {
            FrameworkFact::Whole(value) => Some(*value as f64),
            FrameworkFact::Double(value) => Some(*value),
            _ => None,
        };
        Some(match (self, fact, number) {
            (_, FrameworkFact::Null | FrameworkFact::Hidden, _) => return None,
            (Self::Duration { per_second }, _, Some(number)) => duration(number / f64::from(*per_second)),
            (Self::Bytes, FrameworkFact::Whole(bytes), _) if *bytes >= 0 => {
                HumanBytes(bytes.unsigned_abs()).to_string()
            }
            (Self::Class, FrameworkFact::Text(name), _) => cut(&class(name)),
            (Self::Method, FrameworkFact::Text(name), _) => cut(&method(name)),
            (Self::Pool, FrameworkFact::Text(name), _) => cut(&pool(name)),
            (Self::Function, FrameworkFact::Text(name), _) => cut(&function(name)),
            (Self::Count(one, many), FrameworkFact::Whole(count), _) => {
                format!("{} {}", format_number(*count), if *count == 1 { one } else { many })
            }
            (_, FrameworkFact::Bool(value), _) => value.to_string(),
            (_, FrameworkFact::Whole(value), _) => format_number(*value),
            (_, FrameworkFact::Double(value), _) => format!("{value:.1}"),
            (_, FrameworkFact::Text(text), _) => cut(text),
        })
    }
}

/// Shortens a value in a text.
fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_VALUE) {
        None => text.to_owned(),
        Some(_) => text.chars().take(MAX_VALUE - 1).chain(['…']).collect(),
    }
}

/// Returns the name of a class without its package. The JVM generates the names of lambdas, which differ between runs.
fn class(name: &str) -> String {
    match name.split_once("$$Lambda") {
        Some((owner, _)) => format!("lambda of {}", names::simple(owner)),
        None if names::is_of_jdk(name) => names::simple(name).to_owned(),
        // A nested class, as written in source code.
        None => {
            let simple = names::simple(name);
            let inner = simple.rsplit('$').next().unwrap_or(simple);
            if inner.starts_with(char::is_alphabetic) { inner } else { simple }.to_owned()
        }
    }
}

/// Returns `AuditDao.save` for `com.acme.AuditDao.save`.
fn method(name: &str) -> String {
    match name.rsplit_once('.') {
        Some((of, method)) => format!("{}.{method}", class(of)),
        None => name.to_owned(),
    }
}

/// Returns `mail-sender` for `mail-sender-1`, `pool-*-thread` for `pool-3-thread-1`.
fn pool(thread: &str) -> String {
    let masked = fold_numbers(thread);
    masked.strip_suffix('*').map_or(&*masked, |name| name.trim_end_matches(['-', '_', ' ', '#'])).to_owned()
}

/// Returns `OrderService.price` for `com.acme.OrderService$price$1`.
fn function(class: &str) -> String {
    let parts = names::simple(class).split('$');
    let named = parts.filter(|part| !part.is_empty() && !part.bytes().all(|byte| byte.is_ascii_digit()));
    named.collect::<Vec<_>>().join(".")
}

/// Formats a duration in the largest unit that fits at least twice (days: three times).
fn duration(seconds: f64) -> String {
    let units = [("d", 86_400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0)];
    let (unit, of) = units.into_iter().find(|(_, of)| seconds >= 2.0 * of).unwrap_or(("s", 1.0));
    let (unit, of) = if unit == "d" && seconds < 3.0 * of { ("h", 3600.0) } else { (unit, of) };
    format!("{:.0} {unit}", seconds / of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str, facts: &[(&str, FrameworkFact)]) -> String {
        let is_fact = |name: &str| facts.iter().any(|(known, _)| *known == name);
        let template = Template::parse(text, &is_fact).expect("a text");
        template.fill(&mut |name| {
            let found = facts.iter().find(|(known, _)| *known == name);
            found.map_or(FrameworkFact::Null, |(_, fact)| fact.clone())
        })
    }

    #[test]
    fn facts_are_written_in_forms() {
        let text = |text: &str| FrameworkFact::Text(text.to_owned());
        let facts = [
            ("n", FrameworkFact::Whole(12_000)),
            ("one", FrameworkFact::Whole(1)),
            ("day", FrameworkFact::Whole(86_400)),
            ("ms", FrameworkFact::Whole(1_800_000)),
            ("path", text("/shop")),
            ("none", FrameworkFact::Null),
            ("empty", text("")),
            ("thread", text("pool-3-thread-12")),
            ("suspended", text("com.acme.OrderService$price$1")),
            ("method", text("com.acme.Server$AuditDao.save")),
            ("entry", text("java.util.Map$Entry")),
            ("lambda", text("com.acme.Mail$$Lambda/0x0000000800c8d000")),
        ];
        for (template, expected) in [
            ("{n:#session}, {one:#session}", "12,000 sessions, 1 session"),
            ("{n:#entry/entries}", "12,000 entries"),
            ("timeout {day:duration}, {ms:millis}", "timeout 24 h, 30 min"),
            ("store[ of {path}][ in {none}][ at {empty}]", "store of /shop"),
            ("{none}", "?"),
            ("{method:method}, {lambda:class}, {entry:class}", "AuditDao.save, lambda of Mail, Map$Entry"),
            ("{n:bytes}", "11.7 KiB"),
            ("{thread:pool}", "pool-*-thread"),
            ("{suspended:function}", "OrderService.price"),
        ] {
            assert_eq!(filled(template, &facts), expected, "{template}");
        }
    }

    #[test]
    fn errors_name_the_byte() {
        let is_fact = |name: &str| name == "n";
        for (text, at) in
            [("a {m}", 3), ("a {n", 2), ("a [b", 2), ("a ]", 2), ("{n:weeks}", 3), ("[a [b]]", 3)]
        {
            let wrong = Template::parse(text, &is_fact).expect_err(text);
            assert_eq!(wrong.0, at, "{text}: {}", wrong.1);
        }
    }
}
