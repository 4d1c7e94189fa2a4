//! The reference of JSON and CSV: the tables of `docs/json-schema.md`, made from the declarations of the commands.

use std::fmt::Write;

use crate::report::answer::Declared;
use crate::report::column::{Field, Kind};

/// The line of the page behind which everything is made here.
const BEGIN: &str = "<!-- The rest of this page is made from the declarations of the commands. -->\n";

/// The page as it should be, given what it is; `None` if it lacks the line behind which it is made here.
pub fn page(present: &str) -> Option<String> {
    let (written, _) = present.split_once(BEGIN)?;
    Some(format!("{written}{BEGIN}{}", reference(&super::declared())))
}

/// The sections of all commands.
fn reference(answers: &[Declared]) -> String {
    let mut out = String::new();
    let mut command = "";
    for answer in answers {
        if answer.command != command {
            command = answer.command;
            let _ = write!(out, "\n## `{command}`\n");
        }
        if !answer.variant.is_empty() {
            let _ = write!(out, "\n### `{command}` {}\n", answer.variant);
        }
        let _ = write!(out, "\n{}\n", answer.about);
        if !answer.rows.is_empty() {
            table(&mut out, "key", &answer.rows);
        }
        if !answer.beside.is_empty() {
            table(&mut out, "key beside `rows`", &answer.beside);
        }
    }
    out
}

fn table(out: &mut String, title: &str, fields: &[Field]) {
    let _ = write!(out, "\n| {title} | type | meaning | null |\n|---|---|---|---|\n");
    lines(out, "", fields);
}

fn lines(out: &mut String, prefix: &str, fields: &[Field]) {
    for field in fields {
        let key = format!("{prefix}{}", field.key);
        let null = field.null.unwrap_or("never");
        let _ = writeln!(out, "| `{key}` | {} | {} | {null} |", name(&field.kind), field.meaning);
        match &field.kind {
            Kind::Record(fields) => lines(out, &format!("{key}."), fields),
            Kind::Records(fields) => lines(out, &format!("{key}[]."), fields),
            _ => {}
        }
    }
}

fn name(kind: &Kind) -> String {
    match kind {
        Kind::Text => "string".to_owned(),
        Kind::Id => "id".to_owned(),
        Kind::Integer => "integer".to_owned(),
        Kind::Signed => "signed integer".to_owned(),
        Kind::Float => "number".to_owned(),
        Kind::Boolean => "boolean".to_owned(),
        Kind::Time => "time".to_owned(),
        Kind::Record(_) => "object".to_owned(),
        Kind::Records(_) => "list of objects".to_owned(),
        Kind::List(kind) => format!("list of: {}", name(kind)),
        Kind::Any => "any".to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_what_the_declarations_say() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/json-schema.md");
        let present = std::fs::read_to_string(path).unwrap();
        let made = page(&present).unwrap();
        if std::env::var_os("HPROF_CLI_BLESS").is_some() {
            std::fs::write(path, made).unwrap();
        } else {
            assert!(
                present == made,
                "docs/json-schema.md is stale: `HPROF_CLI_BLESS=1 cargo test` rewrites it"
            );
        }
    }

    #[test]
    fn every_key_is_declared_once_and_has_a_meaning() {
        for answer in crate::cli::declared() {
            for fields in [&answer.rows, &answer.beside] {
                let mut keys: Vec<&str> = fields.iter().map(|field| field.key.as_ref()).collect();
                assert!(fields.iter().all(|field| !field.meaning.is_empty()), "{}", answer.command);
                let count = keys.len();
                keys.sort_unstable();
                keys.dedup();
                assert_eq!(keys.len(), count, "{} {}: a key is there twice", answer.command, answer.variant);
            }
        }
    }
}
