//! Parser of rules files: TOML in which unknown keys are errors, with errors by line and column.

use std::sync::{Arc, LazyLock};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::template::Template;
use crate::oql::BoundExpression;
use hprof_base::naming::toml_file::{self, TomlErrors, TomlTable, TomlText};
use hprof_model::framework_rules::bundled::BUNDLED;

/// Maximum total number of rules in all files.
const MAX_RULES: usize = 4096;
/// Maximum number of facts, and of sentences, of a rule.
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
    /// Hash of the texts of all files.
    hash: u64,
}

/// A field with an array that a framework hands out in slices, so that its unused parts are intended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PooledField {
    /// Name of the class.
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
    /// Description of the classes from which the rules were written.
    pub source: String,
    /// Versions against which the rules were tested on a real heap.
    pub tried: Option<String>,
    /// For each rule: class, template of the name, and names of the facts.
    pub rules: Vec<FrameworkRuleAbout>,
}

/// Facts about a rule, for documentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameworkRuleAbout {
    /// Class to which the rule applies.
    pub class: String,
    /// Template of the name of its instances, with facts in braces.
    pub called: Option<String>,
    /// Names of the rule's facts.
    pub facts: Vec<String>,
    /// Sentences of the rule and their verdicts.
    pub says: Vec<(String, Option<FrameworkVerdict>)>,
}

/// Verdict of a framework's rule on an object.
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
    /// The name distinguishes an object from others: `session store of /shop`.
    One,
    /// All objects of the rule have the same name: `executor`.
    #[default]
    Generic,
    /// Many objects share the name, in plural: `coroutines in OrderService.price`.
    Many,
}

/// A rule about the instances of a class and its subclasses.
#[derive(Debug)]
pub(super) struct FrameworkRule {
    pub(super) framework: Arc<str>,
    pub(super) class: String,
    /// Fields that the class must declare or inherit for the rule to apply.
    pub(super) fields: Vec<String>,
    pub(super) called: Option<Template>,
    /// `true` if many instances share the name, each of which may retain little.
    pub(super) is_of_many: bool,
    pub(super) entries: Option<BoundExpression>,
    /// Word before the names of the entries, possibly empty; `None` if the keys of the entries are not names.
    pub(super) named_entries: Option<String>,
    pub(super) facts: Vec<(String, BoundExpression)>,
    pub(super) says: Vec<FrameworkSentence>,
}

/// A sentence about the objects of a rule, and its condition.
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
    pub fn builtin() -> Self {
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
    /// All errors of the file.
    pub fn with(mut self, text: &str, file: &str) -> Result<Self, TomlErrors> {
        let read = toml_file::read(text, file, |root| {
            let read = read(root);
            let count = self.rules.len() + read.rules.len();
            if count > MAX_RULES {
                root.report(format!("too many rules ({count}); expected at most {MAX_RULES}"));
            }
            read
        })?;
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
    pub(crate) fn pooled_fields(&self) -> &[PooledField] {
        &self.pooled
    }

    /// Returns the descriptions of the rules files, in the order of the files.
    pub fn summaries(&self) -> &[FrameworkAbout] {
        &self.about
    }
}

/// Contents of a rules file.
struct FrameworkFile {
    rules: Vec<FrameworkRule>,
    passed: Vec<Arc<str>>,
    pooled: Vec<PooledField>,
    about: FrameworkAbout,
}

fn read(root: &TomlTable<'_>) -> FrameworkFile {
    root.check_keys(TOP);
    let framework = root.required_text("framework", "write framework = \"Name of the framework\"");
    let framework: Arc<str> = framework.map_or("", |name| name.text).into();
    let owned = |key| root.text(key).map(|text| text.text.to_owned());
    let mut rules = Vec::new();
    for table in root.tables("class") {
        table.check_keys(CLASS);
        table.require("name", "write name = \"the.name.of.a.Class\"");
        for name in table.text_or_texts("name") {
            rules.push(class_rule(&table, name.text, &framework));
            // Rules of the other names have the same errors.
            if root.has_errors() {
                break;
            }
        }
    }
    let section = |key: &str, known: &[&str]| root.table(key).inspect(|table| table.check_keys(known));
    let passed = section("passed", PASSED).map_or_else(Vec::new, |table| table.texts("classes"));
    let pooled = section("memory", MEMORY).map_or_else(Vec::new, |table| table.texts("pooled"));
    if rules.is_empty() && passed.is_empty() && pooled.is_empty() && !root.has_errors() {
        root.report("there are no rules in the file; a rule begins with [[class]]");
    }
    let about = FrameworkAbout {
        framework: framework.to_string(),
        versions: owned("versions").unwrap_or_default(),
        source: owned("source").unwrap_or_default(),
        tried: owned("tried"),
        rules: rules.iter().map(FrameworkRule::summary).collect(),
    };
    FrameworkFile {
        rules,
        passed: passed.iter().map(|name| name.text.into()).collect(),
        pooled: pooled.iter().filter_map(pooled_field).collect(),
        about,
    }
}

fn pooled_field(name: &TomlText<'_>) -> Option<PooledField> {
    let Some((class, field)) = name.text.rsplit_once('.') else {
        name.report("expected a class and a field, for example \"com.acme.Pool.memory\"");
        return None;
    };
    Some(PooledField { class: class.into(), field: field.into() })
}

impl FrameworkRule {
    fn summary(&self) -> FrameworkRuleAbout {
        FrameworkRuleAbout {
            class: self.class.clone(),
            called: self.called.as_ref().map(|called| called.source().to_owned()),
            facts: self.facts.iter().map(|(name, _)| name.clone()).collect(),
            says: self.says.iter().map(|says| (says.text.source().to_owned(), says.verdict)).collect(),
        }
    }
}

fn class_rule(table: &TomlTable<'_>, class: &str, framework: &Arc<str>) -> FrameworkRule {
    // Including those with errors: each error is reported once, not where the name is used.
    let mut names = Vec::new();
    let mut facts = Vec::new();
    for (name, value) in table.table("facts").map(|facts| facts.entries()).into_iter().flatten() {
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if name.text == THIS || name.text.is_empty() || !name.text.bytes().all(is_name) {
            name.report("invalid name of a fact; use lowercase letters, digits and `_`, but not `this`");
        }
        facts.extend(value.and_then(|value| Some((name.text.to_owned(), expression(&value, &names)?))));
        names.push(name.text);
    }
    let tables = table.tables("says");
    let says: Vec<_> = tables.iter().filter_map(|table| sentence(table, &names)).collect();
    if facts.len() > MAX_PARTS || says.len() > MAX_PARTS {
        table.report(format!("a rule can have at most {MAX_PARTS} facts and {MAX_PARTS} sentences"));
    }
    FrameworkRule {
        framework: framework.clone(),
        class: class.to_owned(),
        fields: table.texts("fields").iter().map(|name| name.text.to_owned()).collect(),
        called: table.text("called").and_then(|text| template(&text, &names)),
        is_of_many: table.boolean("many").unwrap_or_default(),
        entries: table.text("entries").and_then(|path| entries(&path)),
        named_entries: table.text("named_entries").map(|word| word.text.to_owned()),
        facts,
        says,
    }
}

fn sentence(table: &TomlTable<'_>, facts: &[&str]) -> Option<FrameworkSentence> {
    table.check_keys(SAYS);
    let text = table.required_text("text", "write text = \"{fact} of {other}\"");
    let text = text.and_then(|text| template(&text, facts));
    let verdict = table.keyword("verdict", &FrameworkVerdict::ALL.map(|verdict| (verdict.name(), verdict)));
    let optional = |key| table.text(key).and_then(|text| expression(&text, facts));
    let (when, retains) = (optional("when"), optional("retains"));
    Some(FrameworkSentence { when, text: text?, verdict, retains })
}

/// Parses `entries`, a path from the object: `sessions` means `this.sessions`.
fn entries(path: &TomlText<'_>) -> Option<BoundExpression> {
    let is_field =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$'));
    if !path.text.split('.').all(is_field) {
        path.report("`entries` must be a path of fields, for example \"sessions\" or \"a.b\"");
        return None;
    }
    let parsed = BoundExpression::parse(&format!("{THIS}.{}", path.text), &|name| name == THIS);
    parsed.map_err(|error| path.report(error.text)).ok()
}

fn expression(text: &TomlText<'_>, facts: &[&str]) -> Option<BoundExpression> {
    let parsed = BoundExpression::parse(text.text, &|name| name == THIS || facts.contains(&name));
    parsed.map_err(|error| text.report_within(error.at, error.text)).ok()
}

fn template(text: &TomlText<'_>, facts: &[&str]) -> Option<Template> {
    let parsed = Template::parse(text.text, &|name| facts.contains(&name));
    parsed.map_err(|(at, message)| text.report_within(at, message)).ok()
}
