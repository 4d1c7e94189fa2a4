//! The reference of JSON, CSV, SQL and exports, generated from the declarations of commands and tables:
//! `docs/json-schema.md` lists the names of each answer and table, and explains each name once. `docs/frameworks.md`
//! lists the bundled rules about frameworks.

use std::fmt::Write;

use hprof_query::dictionary::{self, Name, ValueKind};
use hprof_query::frameworks::Frameworks;
use hprof_query::tables::{self, Definition};
use hprof_report::answer::ResultSchema;
use hprof_report::column::JsonField;
use hprof_report::tables::schema::type_name;

/// Marker line: everything after it is generated.
const BEGIN: &str = "<!-- The rest of this page is made from the declarations of commands and tables. -->\n";
/// Marker line of the page about frameworks.
const BEGIN_FRAMEWORKS: &str = "<!-- The rest of this page is made from the rules files. -->\n";

/// Returns a page with its generated part, after the line `begin`; `None` if it lacks that line.
fn page(present: &str, begin: &str, generated: &str) -> Option<String> {
    let (written, _) = present.split_once(begin)?;
    Some(format!("{written}{begin}{generated}"))
}

/// Returns the generated part of the reference: answers, tables, and names that several of them have.
fn reference(answers: &[ResultSchema]) -> String {
    let (tables, of_recordings) = (tables::definitions(), tables::definitions_of_recordings());
    let dictionary = Dictionary::new(answers, tables.iter().chain(&of_recordings));
    let mut out = String::new();
    for (title, tables) in [("Tables", tables), ("Tables of a recording", of_recordings)] {
        let _ = write!(out, "\n## {title}\n");
        for table in tables {
            dictionary.write_table(&mut out, &table, answers);
        }
    }
    let _ = write!(out, "\n## Answers\n");
    for variants in answers.chunk_by(|one, next| one.command == next.command) {
        dictionary.write_answer(&mut out, variants);
    }
    let _ = write!(out, "\n## Names\n");
    for (title, _) in dictionary::topics() {
        let _ = write!(out, "\n### {title}\n");
        for entry in dictionary.0.iter().filter(|entry| entry.topic == title && entry.own_place().is_none()) {
            entry.write(&mut out, &dictionary);
        }
    }
    out
}

/// Maximum number of answers that are listed with a name. Names in more answers are too common to list them.
const MAX_PLACES: usize = 3;

/// A name of the dictionary, and where it is used.
struct Entry {
    name: Name,
    topic: &'static str,
    /// Commands and tables that have it; a command and a table of the same name are one place.
    places: Vec<String>,
    /// Records that have it, as [`record_place`], or the place, if it is in none.
    records: Vec<String>,
    /// Conditions under which it is `null`, and the places of each.
    nulls: Vec<(String, Vec<String>)>,
    /// Fields of the record, in each form that it has.
    forms: Vec<Vec<JsonField>>,
}

/// All names.
struct Dictionary(Vec<Entry>);

impl Dictionary {
    fn new<'t>(answers: &[ResultSchema], tables: impl Iterator<Item = &'t Definition>) -> Self {
        let entry = |topic, name: &Name| Entry {
            name: *name,
            topic,
            places: Vec::new(),
            records: Vec::new(),
            nulls: Vec::new(),
            forms: Vec::new(),
        };
        let topics = dictionary::topics().into_iter();
        let mut all = Self(
            topics.flat_map(|(topic, names)| names.iter().map(move |name| entry(topic, name))).collect(),
        );
        for answer in answers {
            all.add(answer.command, None, &answer.rows);
            all.add(answer.command, None, &answer.summary);
        }
        for table in tables {
            for column in &table.columns {
                let entry = all
                    .0
                    .iter_mut()
                    .find(|entry| entry.name.key == column.name && entry.name.meaning == column.meaning);
                if let Some(entry) = entry {
                    entry.use_in(&table.name, None, column.null.as_deref());
                }
            }
        }
        all
    }

    fn add(&mut self, place: &str, record: Option<&str>, fields: &[JsonField]) {
        for field in fields {
            let (outer, _) = field.key.text.rsplit_once('.').unwrap_or_default();
            for outer in outer.split('.') {
                let is_record = |entry: &&mut Entry| {
                    entry.name.key == outer && matches!(entry.name.kind, ValueKind::Record | ValueKind::Any)
                };
                if let Some(entry) = self.0.iter_mut().find(is_record) {
                    entry.use_in(place, record, None);
                }
            }
            if let Some(entry) = self.0.iter_mut().find(|entry| entry.name == field.key.name) {
                entry.use_in(place, record, field.null);
                let is_record = matches!(field.key.kind, ValueKind::Record | ValueKind::Records);
                if is_record && !entry.forms.contains(&field.fields) {
                    entry.forms.push(field.fields.clone());
                }
            }
            self.add(place, Some(&record_place(field.key.name)), &field.fields);
        }
    }

    /// Writes the answers of one command, and the names that only it has.
    fn write_answer(&self, out: &mut String, variants: &[ResultSchema]) {
        let Some(first) = variants.first() else { return };
        let place = first.command;
        let _ = write!(out, "\n### `{place}`\n");
        let with_summary = || variants.iter().filter(|variant| !variant.summary.is_empty());
        let is_common = |field: &&JsonField| {
            with_summary().count() > 1 && with_summary().all(|variant| variant.summary.contains(field))
        };
        for ResultSchema { variant, about, rows, summary, .. } in variants {
            let is_only = variant.is_empty();
            let variant = if is_only { String::new() } else { format!("{variant}: ") };
            let about = if is_only { about } else { about.strip_prefix("A row is ").unwrap_or(about) };
            let _ = write!(out, "\n{variant}{about}\n\n{}\n", self.list(rows));
            let own: Vec<JsonField> = summary.iter().filter(|field| !is_common(field)).cloned().collect();
            if !own.is_empty() {
                let _ = write!(out, "\nOther keys: {}\n", self.list(&own));
            }
        }
        let common: Vec<JsonField> =
            with_summary().take(1).flat_map(|one| &one.summary).filter(is_common).cloned().collect();
        if !common.is_empty() {
            let _ = write!(out, "\nOther keys, in all: {}\n", self.list(&common));
        }
        self.write_own(out, place);
    }

    /// Writes a table, and the names that only it has.
    fn write_table(&self, out: &mut String, table: &Definition, answers: &[ResultSchema]) {
        let Definition { name, meaning, order, columns } = table;
        let list = columns.iter().map(|column| {
            let mark = if column.null.is_some() { "?" } else { "" };
            format!("`{}`{mark}{}", column.name, type_word(&column.name, type_name(column.kind)))
        });
        let list = list.collect::<Vec<_>>().join(", ");
        let _ = write!(out, "\n**`{name}`**: {meaning}. In order {order}.\n\n{list}");
        let secret =
            columns.iter().filter(|column| column.is_secret).map(|column| format!("`{}`", column.name));
        let secret = secret.collect::<Vec<_>>().join(", ");
        let _ = if secret.is_empty() { writeln!(out) } else { writeln!(out, ". Secret: {secret}") };
        if !answers.iter().any(|answer| answer.command == name) {
            self.write_own(out, name);
        }
    }

    fn write_own(&self, out: &mut String, place: &str) {
        for entry in self.0.iter().filter(|entry| entry.own_place() == Some(place)) {
            entry.write(out, self);
        }
    }

    /// Formats fields as a line: `key`, `key?` if it can be `null`, `key{}` for a record and `key[]` for a list of
    /// records, with their fields if not all of this name have the same.
    fn list(&self, fields: &[JsonField]) -> String {
        let mut out = Vec::<String>::new();
        let mut sides: Option<String> = None;
        for field in fields {
            let mark = if field.null.is_some() { "?" } else { "" };
            let is_own = |entry: &&Entry| entry.name == field.key.name;
            let is_one = self.0.iter().find(is_own).is_some_and(|entry| entry.forms.len() == 1);
            let inner = match (field.key.kind, field.fields.as_slice()) {
                (ValueKind::Record, []) => "{…}".to_owned(),
                (ValueKind::Record, _) if is_one => "{}".to_owned(),
                (ValueKind::Records, _) if is_one => "[]".to_owned(),
                (ValueKind::Record, fields) => format!("{{{}}}", self.list(fields)),
                (ValueKind::Records, fields) => format!("[{}]", self.list(fields)),
                _ => String::new(),
            };
            let key = field.key.text.as_ref();
            // `KEY_old`, `KEY_new` and `KEY_delta` are one word.
            let stem = |suffix| key.strip_suffix(suffix).map(|stem| format!("`{stem}_old"));
            let later =
                stem("_new").map(|stem| (stem, "/new")).or(stem("_delta").map(|stem| (stem, "/delta")));
            match (later, &sides, out.last_mut()) {
                (Some((stem, side)), Some(open), Some(last)) if stem == *open => {
                    let at = last.rfind('`').unwrap_or(last.len());
                    last.insert_str(at, side);
                }
                _ => {
                    out.push(format!("`{key}`{mark}{inner}"));
                    sides = stem("_old");
                }
            }
        }
        out.join(", ")
    }
}

impl Entry {
    fn use_in(&mut self, place: &str, record: Option<&str>, null: Option<&str>) {
        add_once(&mut self.places, place);
        add_once(&mut self.records, record.unwrap_or(place));
        for when in null.unwrap_or_default().split("; ").filter(|when| !is_obvious(when)) {
            match self.nulls.iter_mut().find(|(known, _)| known == when) {
                Some((_, places)) => add_once(places, place),
                None => self.nulls.push((when.to_owned(), vec![place.to_owned()])),
            }
        }
    }

    /// Returns the only record, command or table that has the name.
    fn own_place(&self) -> Option<&str> {
        match (self.records.as_slice(), self.places.as_slice()) {
            ([place], _) | (_, [place]) => Some(place),
            _ => None,
        }
    }

    fn write(&self, out: &mut String, dictionary: &Dictionary) {
        let Name { key, kind, meaning } = self.name;
        let kind = match (kind, self.forms.as_slice()) {
            (ValueKind::Record, [fields]) if fields.is_empty() => " {…}".to_owned(),
            (ValueKind::Record, [fields]) => format!(" {{{}}}", dictionary.list(fields)),
            (ValueKind::Records, [fields]) => format!(" [{}]", dictionary.list(fields)),
            _ => type_word(key, type_of(kind)),
        };
        let is_countable = |counted: &&str| {
            let is_ordinal = ["the ", "these "].iter().any(|start| counted.starts_with(start));
            !is_ordinal && ![" or of ", " and of ", ", of "].iter().any(|other| counted.contains(other))
        };
        let meaning = match meaning.strip_prefix("number of ").filter(is_countable) {
            Some(counted) => counted,
            None if self.name.kind == ValueKind::Boolean => meaning.trim_start_matches("whether "),
            None => meaning.trim_start_matches("object ID of "),
        };
        let meaning = if meaning == key.replace('_', " ") { String::new() } else { format!(": {meaning}") };
        let _ = write!(out, "\n`{key}`{kind}{meaning}");
        let nulls = self.nulls.iter().map(|(when, places)| {
            if self.nulls.len() > 1 && places.len() < self.places.len() {
                format!("{when} ({})", quoted(places))
            } else {
                when.clone()
            }
        });
        let nulls = nulls.collect::<Vec<_>>().join("; ");
        if !nulls.is_empty() {
            let _ = write!(out, ". Null: {nulls}");
        }
        if self.own_place().is_none() && self.places.len() <= MAX_PLACES {
            let _ = write!(out, " ({})", quoted(&self.places));
        }
        let _ = writeln!(out);
        if matches!(self.name.kind, ValueKind::Record | ValueKind::Records | ValueKind::Any) {
            dictionary.write_own(out, &record_place(self.name));
        }
    }
}

/// Returns how the reference writes a record as the location of its fields: `key{}`.
fn record_place(name: Name) -> String {
    format!("{}{{}}", name.key)
}

fn add_once(places: &mut Vec<String>, place: &str) {
    if !places.iter().any(|known| known == place) {
        places.push(place.to_owned());
    }
}

fn quoted(places: &[String]) -> String {
    places.iter().map(|place| format!("`{place}`")).collect::<Vec<_>>().join(", ")
}

/// Returns whether a condition says no more than that the value is unknown or does not exist.
fn is_obvious(when: &str) -> bool {
    let says_nothing = |part: &str| {
        let mut words = part.split(' ');
        words.any(|word| {
            ["", "no", "none", "not", "nothing", "null", "unknown", "likewise", "group", "several", "without"]
                .contains(&word)
        })
    };
    !when.contains(['`', ':']) && when.split(", ").all(says_nothing)
}

/// Returns the word for a type after a name; empty if the name says it.
fn type_word(key: &str, kind: &str) -> String {
    let is_said = match kind {
        "integer" => true,
        "boolean" => key.starts_with("is_"),
        "number" | "real" => key.ends_with("_percent"),
        "id" => key.ends_with("_object"),
        _ => false,
    };
    if is_said { String::new() } else { format!(" {kind}") }
}

/// Returns a table of the frameworks, with the versions and the objects that their rules name.
fn frameworks() -> String {
    let mut out = String::from("\n| framework | versions | tested on | objects |\n|---|---|---|---|\n");
    for about in Frameworks::builtin().summaries() {
        let mut objects: Vec<String> = Vec::new();
        for called in about.rules.iter().filter_map(|rule| rule.called.as_deref()) {
            let name = without_optional_parts(called);
            // What is in braces depends on the object.
            if !name.contains('{') && !objects.contains(&name) {
                objects.push(name);
            }
        }
        let tested = about.tried.as_deref().unwrap_or("synthetic heaps");
        let _ =
            writeln!(out, "| {} | {} | {tested} | {} |", about.framework, about.versions, objects.join(", "));
    }
    out
}

/// Returns a text of a rule without the parts in brackets, which depend on the object.
fn without_optional_parts(text: &str) -> String {
    let parts = text.split('[').map(|part| part.rsplit(']').next().unwrap_or_default());
    parts.collect::<String>().trim().to_owned()
}

fn type_of(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Text => "string",
        ValueKind::Id => "id",
        ValueKind::Integer => "integer",
        ValueKind::Signed => "signed",
        ValueKind::Float => "number",
        ValueKind::Boolean => "boolean",
        ValueKind::Time => "time",
        ValueKind::Texts => "strings",
        ValueKind::Integers => "integers",
        ValueKind::Ids => "ids",
        ValueKind::Record => "{}",
        ValueKind::Records => "[]",
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
        let pages =
            [("json-schema", BEGIN, reference(&declared)), ("frameworks", BEGIN_FRAMEWORKS, frameworks())];
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
        let tables = tables::definitions().into_iter().chain(tables::definitions_of_recordings());
        used.extend(tables.flat_map(|table| table.columns).map(|column| column.name.into_owned()));
        let names = dictionary::topics().into_iter().flat_map(|(_, names)| names);
        let unused: Vec<&str> = names.map(|name| name.key).filter(|key| !used.contains(*key)).collect();
        assert_eq!(unused, ["first"], "`first` is within values of columns that a query names");
    }
}
