//! The reference of JSON and CSV, generated from the declarations of the commands: `docs/json-schema.md` lists the
//! keys of each answer, `docs/names.md` explains each key once. `docs/frameworks.md` lists the bundled rules about
//! frameworks.

use std::collections::BTreeMap;
use std::fmt::Write;

use hprof_query::dictionary::{self, Name, ValueKind};
use hprof_query::frameworks::Frameworks;
use hprof_query::tables;
use hprof_report::answer::ResultSchema;
use hprof_report::column::JsonField;

/// Marker line: everything after it is generated.
const BEGIN: &str = "<!-- The rest of this page is made from the declarations of the commands. -->\n";
/// Marker line of the page about frameworks.
const BEGIN_FRAMEWORKS: &str = "<!-- The rest of this page is made from the rules files. -->\n";

/// Returns a page with its generated part, after the line `begin`; `None` if it lacks that line.
fn page(present: &str, begin: &str, generated: &str) -> Option<String> {
    let (written, _) = present.split_once(begin)?;
    Some(format!("{written}{begin}{generated}"))
}

/// Returns the keys of all commands.
fn keys(answers: &[ResultSchema]) -> String {
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
        for (title, fields) in [("A row", &answer.rows), ("Beside `rows`", &answer.summary)] {
            if !fields.is_empty() {
                let _ = write!(out, "\n{title}: {}\n", list(fields));
            }
        }
    }
    out
}

/// Formats fields as a line: `key`, `key?` if it can be `null`, `key {…}` for a record, `key […]` for a list of
/// records.
fn list(fields: &[JsonField]) -> String {
    let one = |field: &JsonField| {
        let mark = if field.null.is_some() { "?" } else { "" };
        let inner = match (field.key.kind, field.fields.as_slice()) {
            (ValueKind::Record | ValueKind::Records, []) => " {}".to_owned(),
            (ValueKind::Record, fields) => format!(" {{{}}}", list(fields)),
            (ValueKind::Records, fields) => format!(" [{}]", list(fields)),
            _ => String::new(),
        };
        format!("`{}`{mark}{inner}", field.key.text)
    };
    fields.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Returns the columns of all tables.
fn table_columns() -> impl Iterator<Item = tables::Column> {
    let beside = tables::definitions_of_recordings();
    tables::definitions().into_iter().chain(beside).flat_map(|table| table.columns)
}

/// Returns all names with their types, meanings, and when they are `null`.
fn names(answers: &[ResultSchema]) -> String {
    let mut nulls = Nulls::default();
    answers.iter().for_each(|answer| nulls.add(&answer.rows));
    answers.iter().for_each(|answer| nulls.add(&answer.summary));
    for column in table_columns() {
        if let Some(when) = &column.null {
            nulls.insert(&column.name, when);
        }
    }
    let mut out = String::new();
    for (title, topic) in dictionary::topics() {
        let _ = write!(out, "\n## {title}\n\n| name | type | meaning | null |\n|---|---|---|---|\n");
        for Name { key, kind, meaning } in topic {
            let _ = writeln!(out, "| `{key}` | {} | {meaning} | {} |", type_of(*kind), nulls.conditions(key));
        }
    }
    out
}

fn frameworks() -> String {
    let mut out = String::new();
    for about in Frameworks::builtin().summaries() {
        let _ = write!(
            out,
            "\n## {}\n\nVersions: {}. Written from the source of {}.",
            about.framework, about.versions, about.source
        );
        let tested = about.tried.as_ref().map(|tried| format!("on heaps of {tried}"));
        let tested = tested.unwrap_or_else(|| "only on synthetic heaps".to_owned());
        let _ =
            write!(out, " Tested {tested}.\n\n| class | called | facts | sentences |\n|---|---|---|---|\n");
        for rule in &about.rules {
            let says = rule.says.iter().map(|(text, verdict)| match verdict {
                Some(verdict) => format!("{text} ({})", verdict.name()),
                None => text.clone(),
            });
            let (facts, says) = (rule.facts.join(", "), says.collect::<Vec<_>>().join("<br>"));
            let called = rule.called.as_deref().unwrap_or_default();
            let _ = writeln!(out, "| `{}` | {called} | {facts} | {says} |", rule.class);
        }
    }
    out
}

/// Conditions under which each name is `null`.
#[derive(Default)]
struct Nulls(BTreeMap<String, Vec<String>>);

impl Nulls {
    fn add(&mut self, fields: &[JsonField]) {
        for field in fields {
            if let Some(when) = field.null {
                self.insert(field.key.name.key, when);
            }
            self.add(&field.fields);
        }
    }

    fn insert(&mut self, name: &str, when: &str) {
        let known = self.0.entry(name.to_owned()).or_default();
        if !known.iter().any(|known| known == when) {
            known.push(when.to_owned());
        }
    }

    fn conditions(&self, name: &str) -> String {
        self.0.get(name).map(|when| when.join("; ")).unwrap_or_default()
    }
}

fn type_of(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Text => "string",
        ValueKind::Id => "id",
        ValueKind::Integer => "integer",
        ValueKind::Signed => "signed integer",
        ValueKind::Float => "number",
        ValueKind::Boolean => "boolean",
        ValueKind::Time => "time",
        ValueKind::Texts => "list of strings",
        ValueKind::Integers => "list of integers",
        ValueKind::Ids => "list of ids",
        ValueKind::Record => "object",
        ValueKind::Records => "list of objects",
        ValueKind::Any => "any",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_pages_say_what_the_declarations_say() {
        let declared = super::super::row_schemas();
        let pages = [
            ("json-schema", BEGIN, keys(&declared)),
            ("names", BEGIN, names(&declared)),
            ("frameworks", BEGIN_FRAMEWORKS, frameworks()),
        ];
        for (name, begin, generated) in pages {
            let path = format!("{}/docs/{name}.md", env!("CARGO_MANIFEST_DIR"));
            let present = std::fs::read_to_string(&path).unwrap();
            let made = page(&present, begin, &generated).unwrap();
            if std::env::var_os("HPROF_CLI_BLESS").is_some() {
                std::fs::write(path, made).unwrap();
            } else {
                assert!(
                    present == made,
                    "docs/{name}.md is stale: `HPROF_CLI_BLESS=1 cargo test` rewrites it"
                );
            }
        }
    }

    #[test]
    fn a_key_is_declared_once_an_answer() {
        for answer in super::super::row_schemas() {
            for fields in [&answer.rows, &answer.summary] {
                let mut keys: Vec<&str> = fields.iter().map(|field| field.key.text.as_ref()).collect();
                let count = keys.len();
                keys.sort_unstable();
                keys.dedup();
                assert_eq!(keys.len(), count, "{} {}: a key is there twice", answer.command, answer.variant);
            }
        }
    }

    #[test]
    fn only_records_have_fields() {
        fn check(fields: &[JsonField]) {
            for field in fields {
                let is_record =
                    matches!(field.key.kind, ValueKind::Record | ValueKind::Records | ValueKind::Any);
                assert!(is_record || field.fields.is_empty(), "{}", field.key.text);
                check(&field.fields);
            }
        }
        for answer in super::super::row_schemas() {
            check(&answer.rows);
            check(&answer.summary);
        }
    }

    #[test]
    fn every_name_of_the_dictionary_is_used() {
        fn add(used: &mut BTreeSet<String>, fields: &[JsonField]) {
            for field in fields {
                used.extend(field.key.text.split('.').map(str::to_owned));
                used.insert(field.key.name.key.to_owned());
                add(used, &field.fields);
            }
        }
        let mut used = BTreeSet::new();
        for answer in super::super::row_schemas() {
            add(&mut used, &answer.rows);
            add(&mut used, &answer.summary);
        }
        used.extend(table_columns().map(|column| column.name.into_owned()));
        let names = dictionary::topics().into_iter().flat_map(|(_, names)| names);
        let unused: Vec<&str> = names.map(|name| name.key).filter(|key| !used.contains(*key)).collect();
        assert_eq!(unused, ["first"], "`first` is within values of columns that a query names");
    }
}
