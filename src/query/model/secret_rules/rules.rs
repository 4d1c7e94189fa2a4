//! Rules about credentials: files in TOML, compiled in or of the user, parsed and checked.

use std::sync::{Arc, LazyLock, OnceLock};

use regex::bytes::{Regex, RegexBuilder};
use toml::de::DeTable;

use hprof_base::naming::toml_file::{self, Wrong, boolean, keys, number, position, string, strings, tables};

/// Maximum number of rules of all files, and of keywords of a rule.
const MAX_RULES: usize = 4096;
const MAX_KEYWORDS: usize = 256;
/// Maximum size of a compiled expression, and of a thread's states of it, in bytes.
const MAX_COMPILED: usize = 1 << 23;
/// Maximum number of bytes before and after a keyword, and their defaults.
const MAX_AROUND: u32 = 1 << 14;
const BEFORE: u32 = 64;
const AFTER: u32 = 400;

/// Files that are compiled in.
const BUNDLED: [(&str, &str); 2] = [
    ("text.toml", include_str!("rules/text.toml")),
    ("structure.toml", include_str!("rules/structure.toml")),
];

const TOP: &[&str] = &["text", "held", "named", "names"];
const TEXT: &[&str] = &[
    "id", "name", "level", "keywords", "regex", "entropy", "mixed", "pair", "password", "key", "generic",
    "before", "after",
];
const HELD: &[&str] = &["id", "name", "level", "class", "fields", "kind"];
const NAMED: &[&str] = &["id", "name", "level", "holders"];
const NAMES: &[&str] = &["keywords", "pattern", "except", "except_classes"];

/// Severity of the findings of a rule, as in SARIF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SecretLevel {
    /// Error.
    #[default]
    Error,
    /// Warning.
    Warning,
    /// Note.
    Note,
}

impl SecretLevel {
    const ALL: [(&str, Self); 3] = [("error", Self::Error), ("warning", Self::Warning), ("note", Self::Note)];
}

/// A rule, for answers and documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRule {
    /// ID in answers.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Severity.
    pub level: SecretLevel,
}

/// A rule about texts.
#[derive(Debug)]
pub struct TextRule {
    pub(super) about: SecretRule,
    pub(super) keywords: Vec<String>,
    written: String,
    compiled: OnceLock<Option<Regex>>,
    /// Minimum entropy in bits per character.
    pub(super) entropy: f64,
    /// `true` if the secret has a digit and a letter.
    pub(super) is_mixed: bool,
    /// `true` if the secret is Base64 of a text with a colon.
    pub(super) is_pair: bool,
    /// `true` if the secret is neither a label nor a sentence.
    pub(super) is_password: bool,
    /// `true` if the secret is bytes of a key, of which nothing is shown.
    pub is_key: bool,
    /// `true` if a finding of another rule at the same place takes precedence.
    pub(super) is_generic: bool,
    /// Number of bytes before and after a keyword that are searched.
    pub(super) before: u32,
    pub(super) after: u32,
}

impl TextRule {
    /// Returns the expression; `None` if it is invalid, which is an error when a file is read.
    pub(super) fn regex(&self) -> Option<&Regex> {
        self.compiled.get_or_init(|| compile(&self.written).ok()).as_ref()
    }

    /// Returns whether keywords match in either case.
    pub(super) fn ignores_case(&self) -> bool {
        self.written.contains("(?i)")
    }
}

/// Kind of values in the fields of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldKind {
    /// A text.
    Text,
    /// Bytes or a number.
    Key,
}

/// A rule about fields.
#[derive(Debug)]
pub struct HeldRule {
    pub(super) about: SecretRule,
    /// Classes whose instances hold a value.
    pub classes: Vec<String>,
    /// Names of the fields; empty for those whose names say so.
    pub fields: Vec<String>,
    /// What is read of them.
    pub kind: HeldKind,
}

/// A name for the values of keys whose names say so.
#[derive(Debug)]
pub struct NamedRule {
    pub(super) about: SecretRule,
    /// Classes of maps and entries that hold names and values.
    pub holders: Vec<String>,
}

/// Names that say that a value is secret.
#[derive(Debug)]
pub struct SecretNames {
    pub(super) keywords: Vec<String>,
    pattern: Regex,
    except: Option<Regex>,
    except_classes: Vec<String>,
}

impl SecretNames {
    /// Returns whether a name says that its value is secret.
    pub fn contain(&self, name: &[u8]) -> bool {
        let words = words(name);
        self.pattern.is_match(&words) && !self.except.as_ref().is_some_and(|except| except.is_match(&words))
    }

    /// Returns whether the names of a class's fields do not count.
    pub fn except_class(&self, class: &str) -> bool {
        self.except_classes.iter().any(|pattern| is_like(pattern, class))
    }
}

/// Rules about credentials.
#[derive(Debug, Clone, Default)]
pub struct SecretRules {
    /// Rules about texts.
    pub texts: Vec<Arc<TextRule>>,
    /// Rules about values in fields.
    pub held: Vec<Arc<HeldRule>>,
    /// Rules about values that have names.
    pub named: Vec<Arc<NamedRule>>,
    /// Names whose values are looked up.
    pub names: Option<Arc<SecretNames>>,
}

/// An error in a rules file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {what}")]
pub struct SecretRuleError {
    /// Name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
    /// Column in characters, from 1.
    pub column: u64,
    /// Description of the error.
    pub what: String,
}

impl SecretRules {
    /// Reads the rules that are compiled in.
    pub fn bundled() -> Self {
        static READ: LazyLock<SecretRules> = LazyLock::new(|| {
            // These files have no errors: a test reads all of them.
            BUNDLED.iter().fold(SecretRules::default(), |all, (_, text)| match read(text) {
                Ok(file) => all.add(file),
                Err(_) => all,
            })
        });
        READ.clone()
    }

    /// Adds the rules of a file. They take precedence, and replace those with the same ID.
    ///
    /// # Errors
    /// If the file contains an error.
    pub fn with(self, text: &str, file: &str) -> Result<Self, SecretRuleError> {
        let wrong = |wrong: Wrong| {
            let (line, column) = position(text, wrong.at);
            SecretRuleError { file: file.to_owned(), line, column, what: wrong.what }
        };
        let (read, spans) = read_checked(text).map_err(wrong)?;
        for (rule, at) in read.texts.iter().zip(spans) {
            compile(&rule.written).map_err(|what| wrong(Wrong::new(at, what)))?;
        }
        if self.rules().count() + read.rules().count() > MAX_RULES {
            return Err(wrong(Wrong::new(0, format!("more than {MAX_RULES} rules"))));
        }
        Ok(read.add_after(self))
    }

    /// Returns all rules: about texts, about fields, about keys.
    pub fn rules(&self) -> impl Iterator<Item = &SecretRule> {
        let texts = self.texts.iter().map(|rule| &rule.about);
        let held = self.held.iter().map(|rule| &rule.about);
        texts.chain(held).chain(self.named.iter().map(|rule| &rule.about))
    }

    /// Returns the number of rules about texts, which come first.
    pub fn about_texts(&self) -> usize {
        self.texts.len()
    }

    fn add(mut self, file: Self) -> Self {
        self.texts.extend(file.texts);
        self.held.extend(file.held);
        self.named.extend(file.named);
        self.names = file.names.or(self.names);
        self
    }

    /// Adds older rules whose IDs these do not have.
    fn add_after(self, mut older: Self) -> Self {
        let ids: Vec<String> = self.rules().map(|rule| rule.id.clone()).collect();
        let is_kept = |about: &SecretRule| !ids.contains(&about.id);
        older.texts.retain(|rule| is_kept(&rule.about));
        older.held.retain(|rule| is_kept(&rule.about));
        older.named.retain(|rule| is_kept(&rule.about));
        let names = self.names.clone().or(older.names.take());
        Self { names, ..self.add(older) }
    }
}

/// Compiles an expression; the error is a sentence.
fn compile(written: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(written)
        .unicode(false)
        .size_limit(MAX_COMPILED)
        .dfa_size_limit(MAX_COMPILED)
        .build();
    built.map_err(|error| {
        let said: String = error.to_string().replace('\n', " ").chars().take(300).collect();
        format!("not a regular expression: {said}")
    })
}

fn read(text: &str) -> Result<SecretRules, Wrong> {
    read_checked(text).map(|(rules, _)| rules)
}

/// Returns the rules of a file, and the places of the expressions.
fn read_checked(text: &str) -> Result<(SecretRules, Vec<usize>), Wrong> {
    let table = toml_file::parse(text)?;
    let table = table.get_ref();
    keys(table, TOP, "the file")?;
    let (mut rules, mut places) = (SecretRules::default(), Vec::new());
    for (table, at) in tables(table, "text")? {
        let (rule, place) = text_rule(table, at)?;
        rules.texts.push(Arc::new(rule));
        places.push(place);
    }
    for (table, at) in tables(table, "held")? {
        rules.held.push(Arc::new(held_rule(table, at)?));
    }
    for (table, at) in tables(table, "named")? {
        keys(table, NAMED, "[[named]]")?;
        rules
            .named
            .push(Arc::new(NamedRule { about: about(table, at)?, holders: list(table, "holders", at)? }));
    }
    if let Some(value) = table.get("names") {
        let what = || Wrong::new(value.span().start, "`names` is a table");
        let of = value.get_ref().as_table().ok_or_else(what)?;
        rules.names = Some(Arc::new(names(of, value.span().start)?));
    }
    if rules.rules().next().is_none() && rules.names.is_none() {
        return Err(Wrong::new(0, "there are no rules; a rule begins with [[text]], [[held]] or [[named]]"));
    }
    Ok((rules, places))
}

fn about(table: &DeTable<'_>, at: usize) -> Result<SecretRule, Wrong> {
    let missing = || Wrong::new(at, "the rule has no `id`; write id = \"a-short-name\"");
    let (id, span) = string(table, "id")?.ok_or_else(missing)?;
    let is_id = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if id.is_empty() || id.len() > 64 || !id.bytes().all(is_id) {
        return Err(Wrong::new(span.start, "an `id` has lowercase letters, digits and `-`, at most 64"));
    }
    let level = match string(table, "level")? {
        None => SecretLevel::Error,
        Some((name, span)) => {
            let known = SecretLevel::ALL.into_iter().find(|(level, _)| *level == name);
            let what = "a level is \"error\", \"warning\" or \"note\"";
            known.ok_or_else(|| Wrong::new(span.start, what))?.1
        }
    };
    let name = string(table, "name")?.map_or(id, |(name, _)| name);
    Ok(SecretRule { id: id.to_owned(), name: name.chars().take(200).collect(), level })
}

/// Returns a list that is not empty; one text is a list of one.
fn list(table: &DeTable<'_>, key: &str, at: usize) -> Result<Vec<String>, Wrong> {
    let all: Vec<String> = match table.get(key).and_then(|value| value.get_ref().as_str()) {
        Some(one) => vec![one.to_owned()],
        None => strings(table, key)?.into_iter().map(|(text, _)| text.to_owned()).collect(),
    };
    if all.is_empty() || all.len() > MAX_KEYWORDS || all.iter().any(|text| text.is_empty()) {
        return Err(Wrong::new(
            at,
            format!("`{key}` is a list of 1 to {MAX_KEYWORDS} texts, none of them empty"),
        ));
    }
    Ok(all)
}

fn text_rule(table: &DeTable<'_>, at: usize) -> Result<(TextRule, usize), Wrong> {
    keys(table, TEXT, "[[text]]")?;
    let about = about(table, at)?;
    let keywords = list(table, "keywords", at)?;
    if let Some(short) = keywords.iter().find(|keyword| keyword.len() < 2 || !keyword.is_ascii()) {
        let what = format!("a keyword has at least 2 characters, all ASCII: `{}`", short.escape_debug());
        return Err(Wrong::new(at, what));
    }
    let missing = || Wrong::new(at, "the rule has no `regex`");
    let (written, span) = string(table, "regex")?.ok_or_else(missing)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    let around = |key, default| -> Result<u32, Wrong> {
        Ok(number(table, key)?.map_or(default, |number| number as u32).min(MAX_AROUND))
    };
    let rule = TextRule {
        about,
        keywords,
        written: written.to_owned(),
        compiled: OnceLock::new(),
        entropy: number(table, "entropy")?.unwrap_or(0.0),
        is_mixed: boolean(table, "mixed")?,
        is_pair: boolean(table, "pair")?,
        is_password: boolean(table, "password")?,
        is_key: boolean(table, "key")?,
        is_generic: boolean(table, "generic")?,
        before: around("before", BEFORE)?,
        after: around("after", AFTER)?,
    };
    Ok((rule, span.start))
}

fn held_rule(table: &DeTable<'_>, at: usize) -> Result<HeldRule, Wrong> {
    keys(table, HELD, "[[held]]")?;
    let kind = match string(table, "kind")? {
        None | Some(("text", _)) => HeldKind::Text,
        Some(("key", _)) => HeldKind::Key,
        Some((_, span)) => return Err(Wrong::new(span.start, "a kind is \"text\" or \"key\"")),
    };
    let mut fields = list(table, "fields", at)?;
    if fields.iter().any(|field| field == "*") {
        fields.clear();
    }
    Ok(HeldRule { about: about(table, at)?, classes: list(table, "class", at)?, fields, kind })
}

fn names(table: &DeTable<'_>, at: usize) -> Result<SecretNames, Wrong> {
    keys(table, NAMES, "[names]")?;
    let regex = |key| -> Result<Option<Regex>, Wrong> {
        let Some((written, span)) = string(table, key)? else { return Ok(None) };
        compile(written).map(Some).map_err(|what| Wrong::new(span.start, what))
    };
    let missing = || Wrong::new(at, "[names] has no `pattern`");
    Ok(SecretNames {
        keywords: list(table, "keywords", at)?,
        pattern: regex("pattern")?.ok_or_else(missing)?,
        except: regex("except")?,
        except_classes: strings(table, "except_classes")?
            .into_iter()
            .map(|(name, _)| name.to_owned())
            .collect(),
    })
}

/// Returns the words of a name in lowercase, joined by `-`: `db-password` for `dbPassword`, `DB_PASSWORD` and `db.password`.
fn words(name: &[u8]) -> Vec<u8> {
    let mut words = Vec::with_capacity(name.len() + 8);
    for (at, byte) in name.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| name.get(at));
        let is_after_small = before.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        // The last capital of several begins a word: `DBPassword`.
        let is_before_small = before.is_some_and(u8::is_ascii_uppercase)
            && name.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        let is_separator = b"-_. ".contains(byte);
        let begins = byte.is_ascii_uppercase() && (is_after_small || is_before_small);
        if (is_separator || begins) && words.last().is_some_and(|last| *last != b'-') {
            words.push(b'-');
        }
        if !is_separator {
            words.push(byte.to_ascii_lowercase());
        }
    }
    words
}

/// Returns whether a name is like a pattern, in which `*` stands for any text.
pub fn is_like(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    true
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_files_have_no_errors() {
        let mut ids = Vec::new();
        for (name, text) in BUNDLED {
            let all = SecretRules::default().with(text, name).unwrap_or_else(|error| panic!("{error}"));
            ids.extend(all.rules().map(|rule| rule.id.clone()));
        }
        assert_eq!(SecretRules::bundled().rules().count(), ids.len());
        assert!(ids.len() > 100, "{}", ids.len());
        ids.sort();
        assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
        // What is only looked at after a secret is not part of it.
        let texts = SecretRules::bundled().texts;
        let ends = |rule: &TextRule| rule.written.ends_with("|$)") && !rule.written.contains("(?P<secret>");
        assert!(!texts.iter().any(|rule| ends(rule)));
    }

    #[test]
    fn errors_have_a_place() {
        let error = |text: &str| SecretRules::bundled().with(text, "mine.toml").unwrap_err().to_string();
        let rule = |more: &str| format!("[[text]]\nid = \"a\"\nkeywords = [\"abc\"]\n{more}\n");
        assert!(error(&rule("regex = '('")).starts_with("mine.toml:4:9: not a regular expression"));
        assert!(error(&rule("regex = 'a'\nentrpy = 3")).contains("mine.toml:5:1: unknown key `entrpy`"));
        assert!(error(&rule("regex = 'a'\nlevel = 'bad'")).contains("5:9: a level is"));
        assert!(error("").contains("there are no rules"));
        assert!(error("[[text]]\nid = \"A\"").contains("2:6: an `id` has"));
    }

    #[test]
    fn a_rule_of_the_same_id_is_replaced() {
        let text = "[[text]]\nid = \"jwt\"\nname = \"Mine\"\nkeywords = [\"abc\"]\nregex = 'abc'";
        let all = SecretRules::bundled().with(text, "mine.toml").unwrap();
        assert_eq!(all.rules().count(), SecretRules::bundled().rules().count());
        assert_eq!(all.rules().find(|rule| rule.id == "jwt").unwrap().name, "Mine");
    }

    #[test]
    fn patterns_of_names() {
        assert!(
            is_like("a.b", "a.b") && !is_like("a.b", "a.bc") && is_like("*", "x") && is_like("a.*", "a.b.c")
        );
        assert!(is_like("a.*Key*X", "a.Key.Key1X") && !is_like("a.*Key", "a.Keys") && is_like("a*", "a"));
    }

    #[test]
    fn names_that_say_so() {
        let rules = SecretRules::bundled();
        let names = rules.names.unwrap();
        for name in [
            "password",
            "spring.datasource.password",
            "DB_PASSWORD",
            "dbPassword",
            "client-secret",
            "AWS_SECRET_ACCESS_KEY",
            "api.key",
            "accessToken",
            "token",
            "JSESSIONID",
            "pwd",
            // Words that only begin or contain one that says something else.
            "spring.security.user.password",
            "spring.security.oauth2.client.registration.x.client-secret",
            "java.naming.security.credentials",
            "user.password",
            "USER_PASSWORD",
            "userSecret",
            "users.admin.password",
            "newPassword",
            "oldPassword",
            "confirmPassword",
            "password1",
            "password2",
            "passwords",
            "passwordValue",
            "passwordDb",
            "pass",
            "dbPass",
            "DBPass",
            "SMTP_PASS",
            "keyPass",
            "storepass",
            "masterKey",
            "encryption.key",
            "sas-token",
            "otpSeed",
            "basicAuth",
            "REDIS_AUTH",
            "SECRET_KEY_BASE",
            "wifi.psk",
            "kennwort",
            "private.key",
            "APP_KEY",
            "CI_JOB_TOKEN",
            "hmacKey",
            "sharedKey",
            "x-functions-key",
            "Ocp-Apim-Subscription-Key",
            "license.key",
            "fs.azure.account.key.shop.blob.core.windows.net",
        ] {
            assert!(names.contain(name.as_bytes()), "{name}");
            let lower = name.to_ascii_lowercase();
            assert!(names.keywords.iter().any(|keyword| lower.contains(keyword)), "{name}");
        }
        for name in [
            "passwordEncoder",
            "forgotPassword",
            "tokens",
            "StringToken",
            "secretary",
            "password.file",
            "cookies",
            "bypass",
            "compass",
            "passenger",
            "noPassword",
            "oauth",
            "password.required",
            "partition-key",
            "mapKey",
            "passwordFieldName",
        ] {
            assert!(!names.contain(name.as_bytes()), "{name}");
        }
    }
}
