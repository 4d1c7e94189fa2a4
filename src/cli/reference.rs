//! The reference of JSON and CSV: the tables of `docs/json-schema.md`, made from the declarations of the commands.

use std::fmt::Write;

use hprof_report::answer::Declared;
use hprof_report::column::{Field, Kind};

/// The line of the page behind which everything is made here.
const BEGIN: &str = "<!-- The rest of this page is made from the declarations of the commands. -->\n";

/// The page as it should be, given what it is; `None` if it lacks the line behind which it is made here.
fn page(present: &str) -> Option<String> {
    let (written, _) = present.split_once(BEGIN)?;
    Some(format!("{written}{BEGIN}{}", reference(&super::declared())))
}

/// The sections of all commands.
fn reference(answers: &[Declared]) -> String {
    let mut out = String::new();
    let mut command = "";
    let mut described = Described::default();
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
            table(&mut out, "key", command, &answer.rows, &mut described);
        }
        if !answer.beside.is_empty() {
            table(&mut out, "key beside `rows`", command, &answer.beside, &mut described);
        }
    }
    out
}

/// Fields of records that are described already, and where.
#[derive(Default)]
struct Described(Vec<(Vec<Field>, String)>);

fn table(out: &mut String, title: &str, command: &str, fields: &[Field], described: &mut Described) {
    let _ = write!(out, "\n| {title} | type | meaning | null |\n|---|---|---|---|\n");
    lines(out, command, "", fields, described);
}

fn lines(out: &mut String, command: &str, prefix: &str, fields: &[Field], described: &mut Described) {
    for field in fields {
        let key = format!("{prefix}{}", field.key);
        let null = field.null.unwrap_or_default();
        let (inner, suffix) = match &field.kind {
            Kind::Record(fields) => (fields.as_slice(), "."),
            Kind::Records(fields) => (fields.as_slice(), "[]."),
            _ => (&[][..], ""),
        };
        let known = described.0.iter().find(|(known, _)| !inner.is_empty() && known == inner);
        let same = known.map(|(_, place)| format!("; keys as in {place}")).unwrap_or_default();
        let _ = writeln!(out, "| `{key}` | {} | {}{same} | {null} |", name(&field.kind), field.meaning);
        if same.is_empty() && !inner.is_empty() {
            described.0.push((inner.to_vec(), format!("`{key}` of `{command}`")));
            lines(out, command, &format!("{key}{suffix}"), inner, described);
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
