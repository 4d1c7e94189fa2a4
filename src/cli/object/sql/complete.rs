//! Completion in the SQL shell: finds the end of a query and completes words.

use std::sync::Arc;

use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Result};

use hprof_query::sql::{self, FUNCTIONS, SqlDump};
use hprof_query::tables::ColumnNames;
use hprof_report::escape;

/// SQL keywords.
const KEYWORDS: &[&str] = &[
    "SELECT",
    "DISTINCT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "HAVING",
    "LIMIT",
    "JOIN",
    "LEFT JOIN",
    "USING",
    "ON",
    "AS",
    "AND",
    "OR",
    "NOT",
    "NULL",
    "IS NULL",
    "IN",
    "BETWEEN",
    "LIKE",
    "GLOB",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "WITH",
    "RECURSIVE",
    "UNION",
    "UNION ALL",
    "EXISTS",
    "DESC",
    "ASC",
    "OVER",
    "PARTITION BY",
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "printf",
    "substr",
    "length",
    "lower",
    "upper",
    "group_concat",
    "coalesce",
];
/// Commands of the shell.
const COMMANDS: &[&str] = &[".tables", ".schema", ".timing", ".help", ".quit"];
/// Maximum number of words offered at once.
const MAX_OFFERED: usize = 100;

/// Completes words and detects the end of a query, for the line editor.
pub(super) struct Helper {
    /// Names of tables, columns and functions.
    names: Vec<String>,
    classes: Vec<ColumnNames>,
}

impl Helper {
    /// Creates a helper that completes the names in these dumps.
    pub(super) fn new(dumps: &[Arc<SqlDump>]) -> Self {
        let mut names: Vec<String> = Vec::new();
        for (number, dump) in dumps.iter().enumerate() {
            for table in dump.definitions() {
                names.push(if number == 0 {
                    table.name.clone().into_owned()
                } else {
                    format!("{}.{}", dump.schema(), table.name)
                });
                names.extend(table.columns.iter().map(|column| column.name.clone().into_owned()));
            }
        }
        names.extend(FUNCTIONS.iter().map(|function| function.name.to_owned()));
        names.sort_unstable();
        names.dedup();
        Self { names, classes: dumps.iter().map(|dump| dump.class_names()).collect() }
    }

    /// Returns the completions at the end of a text, and the offset of the completed word.
    fn words(&self, text: &str) -> (usize, Vec<String>) {
        if text.starts_with('.') && !text.contains(char::is_whitespace) {
            return (0, starting(COMMANDS.iter().copied(), text));
        }
        // After an open quote: a class name.
        let quote = text.rfind('"').filter(|_| text.matches('"').count() % 2 == 1);
        if let Some(quote) = quote {
            let typed = text.get(quote + 1..).unwrap_or_default();
            let found = self.classes_like(typed);
            return (quote, found.iter().map(|name| sql::quoted_name(name)).collect());
        }
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
        let start =
            text.rfind(|c| !is_word(c)).and_then(|at| Some(at + text.get(at..)?.chars().next()?.len_utf8()));
        let start = start.unwrap_or(0);
        let typed = text.get(start..).unwrap_or_default();
        if typed.is_empty() {
            return (start, Vec::new());
        }
        let all = self.names.iter().map(String::as_str).chain(KEYWORDS.iter().copied());
        let mut found = starting(all, typed);
        if found.is_empty() {
            found.extend(self.classes_like(typed).iter().map(|name| sql::quoted_name(name)));
        }
        (start, found)
    }

    /// Returns classes whose name or simple name starts with `typed`.
    fn classes_like(&self, typed: &str) -> Vec<String> {
        let begins = |name: &&str| {
            let simple = name.rsplit_once('.').map_or(*name, |(_, simple)| simple);
            name.starts_with(typed) || simple.starts_with(typed)
        };
        // Names that cannot be typed are not offered.
        let plain = |name: &&str| escape::text(name) == **name;
        let all = self.classes.iter().flat_map(|names| names.iter());
        let mut found: Vec<String> =
            all.filter(begins).filter(plain).take(MAX_OFFERED).map(str::to_owned).collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

fn starting<'w>(words: impl Iterator<Item = &'w str>, typed: &str) -> Vec<String> {
    let begins = |word: &&str| word.get(..typed.len()).is_some_and(|start| start.eq_ignore_ascii_case(typed));
    words.filter(begins).take(MAX_OFFERED).map(str::to_owned).collect()
}

impl Completer for Helper {
    type Candidate = Pair;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> Result<(usize, Vec<Pair>)> {
        let (start, words) = self.words(line.get(..position).unwrap_or(line));
        Ok((start, words.into_iter().map(|word| Pair { display: word.clone(), replacement: word }).collect()))
    }
}

impl Hinter for Helper {
    type Hint = String;
}

impl Highlighter for Helper {}

impl Validator for Helper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> Result<ValidationResult> {
        let text = context.input().trim();
        let is_whole = text.is_empty() || text.starts_with('.') || ends(text);
        Ok(if is_whole { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl rustyline::Helper for Helper {}

/// Returns the query without its final `;`; `None` if it is empty.
pub(super) fn statement(text: &str) -> Option<&str> {
    let text = text.trim();
    let query =
        if ends(text) { text.trim_end_matches(|c: char| c == ';' || c.is_whitespace()) } else { text };
    Some(query).filter(|query| !query.is_empty())
}

/// Returns whether a text ends with a `;` that is not in a literal, quoted name or comment.
fn ends(text: &str) -> bool {
    let mut rest = text;
    let mut is_end = false;
    while let Some(first) = rest.chars().next() {
        let behind = rest.get(first.len_utf8()..).unwrap_or_default();
        let close = match first {
            '\'' | '"' | '`' => Some((first.len_utf8(), first.to_string())),
            '[' => Some((1, "]".to_owned())),
            '-' if behind.starts_with('-') => Some((2, "\n".to_owned())),
            '/' if behind.starts_with('*') => Some((2, "*/".to_owned())),
            _ => None,
        };
        match close {
            Some((open, close)) => {
                let is_comment = open == 2;
                let inside = rest.get(open..).unwrap_or_default();
                let Some(at) = inside.find(&close) else {
                    // A line comment ends with the text.
                    return is_end && close == "\n";
                };
                is_end &= is_comment;
                rest = inside.get(at + close.len()..).unwrap_or_default();
            }
            None => {
                is_end = if first.is_whitespace() { is_end } else { first == ';' };
                rest = behind;
            }
        }
    }
    is_end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_ends_with_a_semicolon_outside_of_quotes() {
        for whole in ["SELECT 1;", "SELECT ';' ;", "SELECT 1; -- done", "SELECT 1; /* done */ ", ";"] {
            assert!(ends(whole), "{whole}");
        }
        for open in
            ["SELECT 1", "SELECT ';", "SELECT \"a;", "SELECT 1 -- ;", "SELECT 1 /* ;", "SELECT 1; x", ""]
        {
            assert!(!ends(open), "{open}");
        }
        assert_eq!(statement(" SELECT ';' ; "), Some("SELECT ';'"));
        assert_eq!(statement(" ; "), None);
    }

    #[test]
    fn words_are_completed() {
        let helper = Helper {
            names: vec!["objects".to_owned(), "object".to_owned()],
            classes: vec![Arc::new(["com.acme.Session", "java.lang.String"].into_iter().collect())],
        };
        assert_eq!(helper.words("SELECT * FROM obj"), (14, vec!["objects".to_owned(), "object".to_owned()]));
        assert_eq!(helper.words("SELECT * FROM \"Sess"), (14, vec!["\"com.acme.Session\"".to_owned()]));
        assert_eq!(helper.words("SELECT * FROM java.l"), (14, vec!["\"java.lang.String\"".to_owned()]));
        assert_eq!(helper.words(".ta"), (0, vec![".tables".to_owned()]));
        assert_eq!(helper.words("sel"), (0, vec!["SELECT".to_owned()]));
        assert_eq!(helper.words("ä"), (0, Vec::new()));
    }
}
