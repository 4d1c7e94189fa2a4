//! Rules files: TOML without unknown keys, and errors with line and column.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use toml::de::DeTable;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::template::Template;
use crate::oql::BoundExpression;
use hprof_base::naming::toml_file::{self, Wrong, boolean, keys, position, string, strings, tables, text_of};
use hprof_model::framework_rules::bundled::BUNDLED;

/// Maximum number of rules of all files, and of facts and of sentences of a rule.
const MAX_RULES: usize = 4096;
const MAX_PARTS: usize = 64;
/// Name of the object in expressions.
pub(super) const THIS: &str = "this";

const TOP: &[&str] = &["framework", "versions", "source", "tried", "class", "passed", "memory"];
const CLASS: &[&str] = &["name", "fields", "called", "many", "entries", "named_entries", "facts", "says"];
const SAYS: &[&str] = &["when", "text", "verdict", "retains"];
const PASSED: &[&str] = &["classes"];
const MEMORY: &[&str] = &["pooled"];

/// Rules of frameworks, parsed and checked.
#[derive(Debug, Clone, Default)]
pub struct Frameworks {
    pub(super) rules: Vec<Arc<FrameworkRule>>,
    /// Names of classes whose instances are only parts of other objects; a name that ends with `*` is a prefix.
    pub(super) passed: Vec<Arc<str>>,
    pooled: Vec<PooledField>,
    about: Vec<FrameworkAbout>,
    /// Hash of the texts.
    hash: u64,
}

/// A field whose array is memory that a framework hands out in slices: its unused parts are intended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PooledField {
    /// Class name.
    pub(crate) class: Arc<str>,
    /// Name of the field.
    pub(crate) field: Arc<str>,
}

/// Description of a rules file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameworkAbout {
    /// Name of the framework.
    pub framework: String,
    /// Versions whose source the rules follow.
    pub versions: String,
    /// Classes from which the rules were written.
    pub source: String,
    /// Versions with which the rules were tested on a real heap.
    pub tried: Option<String>,
    /// For each rule: class, template of the name, and names of the facts.
    pub rules: Vec<FrameworkRuleAbout>,
}

/// Facts about a rule, for documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameworkRuleAbout {
    /// Class.
    pub class: String,
    /// Template of the name of its instances, with facts in braces.
    pub called: Option<String>,
    /// Names of its facts.
    pub facts: Vec<String>,
    /// Its sentences and their verdicts.
    pub says: Vec<(String, Option<FrameworkVerdict>)>,
}

/// An error in a rules file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {what}")]
pub struct FrameworkRuleError {
    /// Name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
    /// Column in characters, from 1.
    pub column: u64,
    /// Description of the error.
    pub what: String,
}

/// Verdict on an object by its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrameworkVerdict {
    /// A leak: it is reported even if nothing accumulates.
    Leak,
    /// Content that the program is meant to hold.
    Content,
    /// Normal state.
    Healthy,
}

impl FrameworkVerdict {
    /// All verdicts.
    pub const ALL: [Self; 3] = [Self::Leak, Self::Content, Self::Healthy];

    /// Returns the name in output and in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Leak => "leak",
            Self::Content => "content",
            Self::Healthy => "healthy",
        }
    }
}

/// Meaning of the name that a framework's rule gives objects.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub enum Naming {
    /// It distinguishes an object from others: `session store of /shop`.
    One,
    /// All objects of the rule have it: `executor`.
    #[default]
    Generic,
    /// Many objects share it, in plural: `coroutines in OrderService.price`.
    Many,
}

/// A rule about the instances of a class and its subclasses.
#[derive(Debug)]
pub(super) struct FrameworkRule {
    pub(super) framework: Arc<str>,
    pub(super) class: String,
    /// Fields that the class declares or inherits; without them the rule does not apply.
    pub(super) fields: Vec<String>,
    pub(super) called: Option<Template>,
    /// `true` if many instances share the name, each of which may retain little.
    pub(super) is_of_many: bool,
    pub(super) entries: Option<BoundExpression>,
    /// The word before the names of the entries, which may be empty, if their keys are names.
    pub(super) named_entries: Option<String>,
    pub(super) facts: Vec<(String, BoundExpression)>,
    pub(super) says: Vec<FrameworkSentence>,
}

/// A sentence about an object of a rule, and its condition.
#[derive(Debug)]
pub(super) struct FrameworkSentence {
    pub(super) when: Option<BoundExpression>,
    pub(super) text: Template,
    pub(super) verdict: Option<FrameworkVerdict>,
    pub(super) retains: Option<BoundExpression>,
}

impl FrameworkRule {
    /// Returns `true` if an object is described no matter how little it retains: it can be reported as a leak, or its
    /// sentence explains other objects.
    pub(super) fn is_always_described(&self) -> bool {
        self.says.iter().any(|says| says.verdict == Some(FrameworkVerdict::Leak) || says.retains.is_some())
    }
}

impl Frameworks {
    /// Reads the rules that are compiled in.
    pub fn bundled() -> Self {
        static READ: LazyLock<Frameworks> = LazyLock::new(|| {
            // Bundled files have no errors: a test reads all of them.
            BUNDLED
                .iter()
                .fold(Frameworks::default(), |all, (name, text)| all.clone().with(text, name).unwrap_or(all))
        });
        READ.clone()
    }

    /// Adds the rules of a file. They take precedence over existing rules of the same class.
    ///
    /// # Errors
    /// If the file contains an error.
    pub fn with(mut self, text: &str, file: &str) -> Result<Self, FrameworkRuleError> {
        let wrong = |wrong: Wrong| {
            let (line, column) = position(text, wrong.at);
            FrameworkRuleError { file: file.to_owned(), line, column, what: wrong.what }
        };
        let read = read(text).map_err(wrong)?;
        if self.rules.len() + read.rules.len() > MAX_RULES {
            return Err(wrong(Wrong::new(0, format!("more than {MAX_RULES} rules"))));
        }
        let older = std::mem::replace(&mut self.rules, read.rules.into_iter().map(Arc::new).collect());
        self.rules.extend(older);
        self.passed.extend(read.passed);
        self.pooled.extend(read.pooled);
        self.about.push(read.about);
        self.hash = xxh3_64_with_seed(text.as_bytes(), self.hash);
        Ok(self)
    }

    /// Returns a hash of the texts of all files.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the fields whose arrays are handed out in slices.
    pub(crate) fn pooled(&self) -> &[PooledField] {
        &self.pooled
    }

    /// Returns the descriptions of the files, in their order.
    pub fn about(&self) -> &[FrameworkAbout] {
        &self.about
    }
}

struct FrameworkFile {
    rules: Vec<FrameworkRule>,
    passed: Vec<Arc<str>>,
    pooled: Vec<PooledField>,
    about: FrameworkAbout,
}

/// Text of a file, used to locate errors within values.
#[derive(Clone, Copy)]
struct Source<'t>(&'t str);

fn read(text: &str) -> Result<FrameworkFile, Wrong> {
    let table = toml_file::parse(text)?;
    let source = Source(text);
    let table = table.get_ref();
    keys(table, TOP, "the file")?;
    let framework = string(table, "framework")?
        .ok_or_else(|| Wrong::new(0, "the file has no `framework`; write framework = \"its name\""))?;
    let framework: Arc<str> = framework.0.into();
    let owned = |key| string(table, key).map(|value| value.map(|(text, _)| text.to_owned()));
    let mut rules = Vec::new();
    for (class, at) in tables(table, "class")? {
        rules.extend(source.classes(class, at, &framework)?);
    }
    let section = |key: &str, known: &[&str], name: &str| {
        let Some(value) = table.get(key) else { return Ok(None) };
        let of = value.get_ref().as_table();
        let of = of.ok_or_else(|| Wrong::new(value.span().start, format!("`{key}` is a table")))?;
        keys(of, known, name).map(|()| Some(of))
    };
    let mut passed = Vec::new();
    if let Some(of) = section("passed", PASSED, "[passed]")? {
        passed = strings(of, "classes")?.into_iter().map(|(name, _)| name.into()).collect();
    }
    let mut pooled = Vec::new();
    if let Some(of) = section("memory", MEMORY, "[memory]")? {
        for (name, at) in strings(of, "pooled")? {
            let (class, field) = name
                .rsplit_once('.')
                .ok_or_else(|| Wrong::new(at.start, "write class and field: \"com.acme.Pool.memory\""))?;
            pooled.push(PooledField { class: class.into(), field: field.into() });
        }
    }
    if rules.is_empty() && passed.is_empty() && pooled.is_empty() {
        return Err(Wrong::new(0, "there are no rules; a rule begins with [[class]]"));
    }
    let about = FrameworkAbout {
        framework: framework.to_string(),
        versions: owned("versions")?.unwrap_or_default(),
        source: owned("source")?.unwrap_or_default(),
        tried: owned("tried")?,
        rules: rules.iter().map(FrameworkRule::about).collect(),
    };
    Ok(FrameworkFile { rules, passed, pooled, about })
}

impl FrameworkRule {
    fn about(&self) -> FrameworkRuleAbout {
        FrameworkRuleAbout {
            class: self.class.clone(),
            called: self.called.as_ref().map(|called| called.source().to_owned()),
            facts: self.facts.iter().map(|(name, _)| name.clone()).collect(),
            says: self.says.iter().map(|says| (says.text.source().to_owned(), says.verdict)).collect(),
        }
    }
}

impl Source<'_> {
    /// Returns a rule for each class that the table names.
    fn classes(
        self,
        table: &DeTable<'_>,
        at: usize,
        framework: &Arc<str>,
    ) -> Result<Vec<FrameworkRule>, Wrong> {
        keys(table, CLASS, "[[class]]")?;
        let missing = || Wrong::new(at, "the rule has no `name`; write name = \"the.name.of.a.Class\"");
        let name = table.get("name").ok_or_else(missing)?;
        let names = match name.get_ref().as_array() {
            Some(_) => strings(table, "name")?,
            None => vec![(text_of(name, "name")?, name.span())],
        };
        names.into_iter().map(|(class, _)| self.class(table, at, class, framework)).collect()
    }

    fn class(
        self,
        table: &DeTable<'_>,
        at: usize,
        class: &str,
        framework: &Arc<str>,
    ) -> Result<FrameworkRule, Wrong> {
        let fields = strings(table, "fields")?.into_iter().map(|(name, _)| name.to_owned()).collect();
        let mut facts: Vec<(String, BoundExpression)> = Vec::new();
        if let Some(value) = table.get("facts") {
            let of = value.get_ref().as_table();
            let of = of.ok_or_else(|| Wrong::new(value.span().start, "`facts` is a table: [class.facts]"))?;
            let mut in_order: Vec<_> = of.iter().collect();
            in_order.sort_by_key(|(name, _)| name.span().start);
            for (name, value) in in_order {
                let text: &str = name.get_ref();
                let is_name = text
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
                if !is_name || text == THIS || text.is_empty() {
                    let what = "a fact is named in small letters, digits and `_`, and not `this`";
                    return Err(Wrong::new(name.span().start, what));
                }
                let expression = text_of(value, text)?;
                let expression = self.expression(expression, &value.span(), &facts)?;
                facts.push((text.to_owned(), expression));
            }
        }
        let called = match string(table, "called")? {
            Some((text, span)) => Some(self.template(text, &span, &facts)?),
            None => None,
        };
        let entries = match string(table, "entries")? {
            Some((text, span)) => Some(self.entries(text, &span, &facts)?),
            None => None,
        };
        let mut says = Vec::new();
        for (of, at) in tables(table, "says")? {
            says.push(self.sentence(of, at, &facts)?);
        }
        if facts.len() > MAX_PARTS || says.len() > MAX_PARTS {
            return Err(Wrong::new(at, format!("a rule can have at most {MAX_PARTS} facts and sentences")));
        }
        let named_entries = string(table, "named_entries")?.map(|(word, _)| word.to_owned());
        let is_of_many = boolean(table, "many")?;
        Ok(FrameworkRule {
            framework: framework.clone(),
            class: class.to_owned(),
            fields,
            called,
            is_of_many,
            entries,
            named_entries,
            facts,
            says,
        })
    }

    fn sentence(
        self,
        table: &DeTable<'_>,
        at: usize,
        facts: &[(String, BoundExpression)],
    ) -> Result<FrameworkSentence, Wrong> {
        keys(table, SAYS, "[[class.says]]")?;
        let expression = |key| -> Result<Option<BoundExpression>, Wrong> {
            let Some((text, span)) = string(table, key)? else { return Ok(None) };
            self.expression(text, &span, facts).map(Some)
        };
        let (text, span) = string(table, "text")?.ok_or_else(|| {
            Wrong::new(at, "the sentence has no `text`; write text = \"{fact} of {other}\"")
        })?;
        let verdict = match string(table, "verdict")? {
            None => None,
            Some((name, span)) => {
                let found = FrameworkVerdict::ALL.into_iter().find(|verdict| verdict.name() == name);
                let what = "a verdict is \"leak\", \"content\" or \"healthy\"";
                Some(found.ok_or_else(|| Wrong::new(span.start, what))?)
            }
        };
        let text = self.template(text, &span, facts)?;
        Ok(FrameworkSentence { when: expression("when")?, text, verdict, retains: expression("retains")? })
    }

    /// Parses `entries`, a path from the object: `sessions` means `this.sessions`.
    fn entries(
        self,
        text: &str,
        span: &Range<usize>,
        facts: &[(String, BoundExpression)],
    ) -> Result<BoundExpression, Wrong> {
        let is_path = text.split('.').all(|name| {
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$'))
        });
        if !is_path {
            return Err(Wrong::new(span.start, "`entries` is a path of fields: \"sessions\", \"a.b\""));
        }
        self.expression(&format!("{THIS}.{text}"), span, facts)
    }

    fn expression(
        self,
        text: &str,
        span: &Range<usize>,
        facts: &[(String, BoundExpression)],
    ) -> Result<BoundExpression, Wrong> {
        let is_bound = |name: &str| name == THIS || facts.iter().any(|(fact, _)| fact == name);
        BoundExpression::parse(text, &is_bound)
            .map_err(|error| Wrong::new(self.within(text, span, error.at), error.text))
    }

    fn template(
        self,
        text: &str,
        span: &Range<usize>,
        facts: &[(String, BoundExpression)],
    ) -> Result<Template, Wrong> {
        let is_fact = |name: &str| facts.iter().any(|(fact, _)| fact == name);
        Template::parse(text, &is_fact).map_err(|(at, what)| Wrong::new(self.within(text, span, at), what))
    }

    /// Returns the offset in the file of a byte of a value; of the start of the value if it contains escapes.
    fn within(self, text: &str, span: &Range<usize>, at: usize) -> usize {
        let written = self.0.get(span.clone()).unwrap_or_default();
        written.find(text).map_or(span.start, |start| span.start + start + at)
    }
}
