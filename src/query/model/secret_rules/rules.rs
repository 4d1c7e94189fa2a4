//! Rules about credentials: TOML files, compiled in or written by the user, parsed and checked.

use std::sync::{Arc, LazyLock, OnceLock};

use regex::bytes::{Regex, RegexBuilder};

use hprof_base::naming::toml_file::{self, TomlErrors, TomlTable, TomlText, quoted};

/// Maximum number of rules of all files.
const MAX_RULES: usize = 4096;
/// Maximum number of keywords of a rule.
const MAX_KEYWORDS: usize = 256;
/// Maximum size of a compiled expression, and of a thread's states of it, in bytes.
const MAX_COMPILED: usize = 1 << 23;
/// Maximum number of bytes before and after a keyword.
const MAX_AROUND: u32 = 1 << 14;
/// Default number of bytes before a keyword.
const BEFORE: u32 = 64;
/// Default number of bytes after a keyword.
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
    const KEYWORDS: &[(&str, Self)] =
        &[("error", Self::Error), ("warning", Self::Warning), ("note", Self::Note)];
}

/// Properties of a rule that results and documents show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRule {
    /// ID in results.
    pub id: String,
    /// Name shown to users.
    pub name: String,
    /// Severity.
    pub level: SecretLevel,
}

/// A rule that recognizes credentials in texts by an expression.
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
    /// `true` if a finding of another rule at the same position takes precedence.
    pub(super) is_generic: bool,
    /// Number of bytes before a keyword that are searched.
    pub(super) before: u32,
    /// Number of bytes after a keyword that are searched.
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

impl HeldKind {
    const KEYWORDS: &[(&str, Self)] = &[("text", Self::Text), ("key", Self::Key)];
}

/// A rule about values in fields of given classes.
#[derive(Debug)]
pub struct HeldRule {
    pub(super) about: SecretRule,
    /// Classes whose instances hold a value.
    pub classes: Vec<String>,
    /// Names of the fields; if empty, all fields whose names indicate a secret.
    pub fields: Vec<String>,
    /// Kind of their values.
    pub kind: HeldKind,
}

/// A rule about the values of keys whose names indicate a secret.
#[derive(Debug)]
pub struct NamedRule {
    pub(super) about: SecretRule,
    /// Classes of maps and entries that hold names and values.
    pub holders: Vec<String>,
}

/// Names that indicate a secret value.
#[derive(Debug)]
pub struct SecretNames {
    pub(super) keywords: Vec<String>,
    pattern: Regex,
    except: Option<Regex>,
    except_classes: Vec<String>,
}

impl SecretNames {
    /// Returns whether a name indicates a secret value.
    pub fn contain(&self, name: &[u8]) -> bool {
        let words = words(name);
        self.pattern.is_match(&words) && !self.except.as_ref().is_some_and(|except| except.is_match(&words))
    }

    /// Returns whether the names of a class's fields are ignored.
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
    /// Names that indicate secret values.
    pub names: Option<Arc<SecretNames>>,
}

impl SecretRules {
    /// Reads the rules that are compiled in.
    pub fn builtin() -> Self {
        static READ: LazyLock<SecretRules> = LazyLock::new(|| {
            // These files have no errors: a test reads all of them.
            let files = BUNDLED
                .iter()
                .filter_map(|(name, text)| toml_file::read(text, name, |root| rules(root, &|_| Ok(()))).ok());
            files.fold(SecretRules::default(), SecretRules::add)
        });
        READ.clone()
    }

    /// Adds the rules of a file. They take precedence, and replace those with the same ID.
    ///
    /// # Errors
    /// All errors of the file.
    pub fn with(self, text: &str, file: &str) -> Result<Self, TomlErrors> {
        let read = toml_file::read(text, file, |root| {
            let read = rules(root, &|expression| compile(expression).map(drop));
            let count = self.rules().count() + read.rules().count();
            if count > MAX_RULES {
                root.report(format!("too many rules ({count}); expected at most {MAX_RULES}"));
            }
            read
        })?;
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

    /// Adds older rules, except those whose IDs these rules have.
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
        format!("not a valid regular expression: {said}")
    })
}

/// Reads the rules of a file. `check` checks the expressions of rules about texts, which are compiled when they are used.
fn rules(root: &TomlTable<'_>, check: &dyn Fn(&str) -> Result<(), String>) -> SecretRules {
    root.check_keys(TOP);
    let texts = root.tables("text");
    let (held, named) = (root.tables("held"), root.tables("named"));
    let rules = SecretRules {
        texts: texts.iter().filter_map(|table| text_rule(table, check)).map(Arc::new).collect(),
        held: held.iter().filter_map(held_rule).map(Arc::new).collect(),
        named: named.iter().filter_map(named_rule).map(Arc::new).collect(),
        names: root.table("names").as_ref().and_then(names).map(Arc::new),
    };
    if rules.rules().next().is_none() && rules.names.is_none() && !root.has_errors() {
        root.report("there are no rules in the file; a rule begins with [[text]], [[held]] or [[named]]");
    }
    rules
}

fn secret_rule(table: &TomlTable<'_>) -> Option<SecretRule> {
    let id = table.required_text("id", "write id = \"a-short-name\"");
    let level = table.keyword("level", SecretLevel::KEYWORDS).unwrap_or_default();
    let name = table.text("name");
    let id = id?;
    let is_id = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if id.text.is_empty() || id.text.len() > 64 || !id.text.bytes().all(is_id) {
        id.report("invalid `id`; use at most 64 lowercase letters, digits and `-`");
    }
    let name = name.map_or(id.text, |name| name.text);
    Some(SecretRule { id: id.text.to_owned(), name: name.chars().take(200).collect(), level })
}

/// Returns a list of texts, or a single text as a list. Reports an empty list, and empty texts.
fn list<'r>(table: &TomlTable<'r>, key: &str) -> Vec<TomlText<'r>> {
    let expected = format!("expected 1 to {MAX_KEYWORDS} strings, none of them empty");
    let texts = table.text_or_texts(key);
    if let Some(empty) = texts.iter().find(|text| text.text.is_empty()) {
        empty.report(format!("`{key}` contains an empty string; {expected}"));
    }
    if table.require(key, &expected) && (table.has_empty_array(key) || texts.len() > MAX_KEYWORDS) {
        table.report_at(key, format!("`{key}` contains {} strings; {expected}", texts.len()));
    }
    texts
}

fn to_strings(texts: &[TomlText<'_>]) -> Vec<String> {
    texts.iter().map(|text| text.text.to_owned()).collect()
}

fn text_rule(table: &TomlTable<'_>, check: &dyn Fn(&str) -> Result<(), String>) -> Option<TextRule> {
    table.check_keys(TEXT);
    let about = secret_rule(table);
    let keywords = list(table, "keywords");
    for keyword in keywords.iter().filter(|keyword| keyword.text.len() == 1 || !keyword.text.is_ascii()) {
        keyword.report(format!(
            "invalid keyword `{}`; expected at least 2 characters, all of them ASCII",
            quoted(keyword.text)
        ));
    }
    let regex = table.required_text("regex", "write regex = 'a regular expression'");
    if let Some(regex) = &regex
        && let Err(message) = check(regex.text)
    {
        regex.report(message);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    let around = |key, default| table.number(key).map_or(default, |number| number as u32).min(MAX_AROUND);
    let is_set = |key| table.boolean(key).unwrap_or_default();
    Some(TextRule {
        keywords: to_strings(&keywords),
        compiled: OnceLock::new(),
        entropy: table.number("entropy").unwrap_or(0.0),
        is_mixed: is_set("mixed"),
        is_pair: is_set("pair"),
        is_password: is_set("password"),
        is_key: is_set("key"),
        is_generic: is_set("generic"),
        before: around("before", BEFORE),
        after: around("after", AFTER),
        about: about?,
        written: regex?.text.to_owned(),
    })
}

fn held_rule(table: &TomlTable<'_>) -> Option<HeldRule> {
    table.check_keys(HELD);
    let about = secret_rule(table);
    let kind = table.keyword("kind", HeldKind::KEYWORDS).unwrap_or(HeldKind::Text);
    let mut fields = to_strings(&list(table, "fields"));
    if fields.iter().any(|field| field == "*") {
        fields.clear();
    }
    Some(HeldRule { classes: to_strings(&list(table, "class")), about: about?, fields, kind })
}

fn named_rule(table: &TomlTable<'_>) -> Option<NamedRule> {
    table.check_keys(NAMED);
    let (about, holders) = (secret_rule(table), to_strings(&list(table, "holders")));
    Some(NamedRule { about: about?, holders })
}

fn names(table: &TomlTable<'_>) -> Option<SecretNames> {
    table.check_keys(NAMES);
    let compiled = |written: TomlText<'_>| compile(written.text).map_err(|what| written.report(what)).ok();
    let pattern = table.required_text("pattern", "write pattern = 'a regular expression'").and_then(compiled);
    let keywords = to_strings(&list(table, "keywords"));
    let except = table.text("except").and_then(compiled);
    let except_classes = to_strings(&table.texts("except_classes"));
    Some(SecretNames { keywords, pattern: pattern?, except, except_classes })
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

/// Returns whether a name matches a pattern, in which `*` stands for any text.
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
        assert_eq!(SecretRules::builtin().rules().count(), ids.len());
        assert!(ids.len() > 100, "{}", ids.len());
        ids.sort();
        assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
        // Text that is only examined after a secret is not part of it.
        let texts = SecretRules::builtin().texts;
        let ends = |rule: &TextRule| rule.written.ends_with("|$)") && !rule.written.contains("(?P<secret>");
        assert!(!texts.iter().any(|rule| ends(rule)));
    }

    #[test]
    fn errors_have_a_place() {
        let error = |text: &str| SecretRules::builtin().with(text, "mine.toml").unwrap_err().to_string();
        let rule = |more: &str| format!("[[text]]\nid = \"a\"\nkeywords = [\"abc\"]\n{more}\n");
        assert!(error(&rule("regex = '('")).starts_with("mine.toml:4:9: not a valid regular expression"));
        assert!(error(&rule("regex = 'a'\nentrpy = 3")).contains("mine.toml:5:1: unknown key `entrpy`"));
        assert!(
            error(&rule("regex = 'a'\nlevel = 'bad'")).contains("5:9: unknown level `bad`; expected one of")
        );
        assert!(error("").contains("there are no rules"));
        assert!(error("[[text]]").contains("1:1: [[text]] has no `id`; write id = "));
        assert!(
            error("[[held]]\nclass = []")
                .contains("2:9: `class` contains 0 strings; expected 1 to 256 strings")
        );
        assert!(error("[[text]]\nid = \"A\"").contains("2:6: invalid `id`"));
    }

    #[test]
    fn all_errors_of_a_file_are_reported() {
        let text = "[[text]]\nid = \"a\"\nkeywords = [\"abc\", \"x\"]\nregex = '('\n[[held]]\nid = \"b\"\nfields = 3\nclas = \"A\"";
        let error = SecretRules::builtin().with(text, "mine.toml").unwrap_err();
        let at: Vec<_> = error.lines.iter().map(|line| line.split(": ").next().unwrap()).collect();
        assert_eq!(
            at,
            ["mine.toml:3:20", "mine.toml:4:9", "mine.toml:5:1", "mine.toml:7:10", "mine.toml:8:1"],
            "{error}"
        );
    }

    #[test]
    fn a_rule_of_the_same_id_is_replaced() {
        let text = "[[text]]\nid = \"jwt\"\nname = \"Mine\"\nkeywords = [\"abc\"]\nregex = 'abc'";
        let all = SecretRules::builtin().with(text, "mine.toml").unwrap();
        assert_eq!(all.rules().count(), SecretRules::builtin().rules().count());
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
        let rules = SecretRules::builtin();
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
