//! `secrets`: credentials in a dump.

use std::collections::HashMap;
use std::path::PathBuf;

use hprof_query::objects::hiding::HIDDEN;
use hprof_query::secrets::{self, SecretLevel, SecretQuery, SecretRow, SecretRules, Secrets};
use hprof_report::ci::sarif::{self, Level};
use hprof_report::number::format_count;
use hprof_report::value::id;

use crate::cli::prelude::*;
use crate::cli::shared::color::ColorArg;
use crate::cli::shared::messages;
use crate::cli::shared::output;
use crate::cli::shared::rules_file;
use crate::cli::shared::session::ensure_values;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli secrets heap.hprof
  hprof-cli secrets heap.hprof --live --rules ours.toml
  hprof-cli secrets heap.hprof --format sarif > secrets.sarif
  hprof-cli secrets heap.hprof --format json | jq '[.rows[].rule] | unique'";

/// Condition under which a row has no holder.
const NO_HOLDER: &str = "only GC roots, such as locals of a thread, hold the object, or nothing does";

/// Value of `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SecretsFormat {
    /// A format that every command has.
    Rows(Format),
    /// A table in Markdown.
    Markdown,
    /// SARIF.
    Sarif,
}

/// Values of `--format`.
const FORMAT: &[Keyword<SecretsFormat>] = &[
    ("table", SecretsFormat::Rows(Format::Table), "Human-readable table"),
    ("json", SecretsFormat::Rows(Format::Json), "One JSON document"),
    ("csv", SecretsFormat::Rows(Format::Csv), "Comma-separated values with a header line"),
    ("markdown", SecretsFormat::Markdown, "Markdown, to paste into a ticket"),
    ("sarif", SecretsFormat::Sarif, "SARIF 2.1.0, for code hosts"),
];

/// Find passwords, keys and tokens in a dump
///
/// Searches the texts of Strings, builders, buffers and arrays, in Latin-1, UTF-8 and UTF-16, for text that looks like
/// a credential, and reads fields and map entries that hold credentials: connection pools, properties, environment
/// variables, private keys. A row is a value; only its beginning and its end are shown unless --show-values is given.
/// The exit code is 1 if anything was found, else 3 if the dump is damaged, else 0. docs/secrets.md describes the
/// rules.
#[derive(Debug, clap::Args)]
pub(crate) struct SecretsArgs {
    #[command(flatten)]
    input: Input,

    /// File with the rules, in TOML, in addition to the built-in ones; replaces built-in rules with the same ID (see
    /// docs/secrets.md); may be repeated
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Input")]
    rules: Vec<PathBuf>,

    /// Only reachable objects
    #[arg(long, help_heading = "Filter")]
    live: bool,

    /// Omit nothing: a table otherwise shows only one of more than 20 rows with the same rule, class and holder
    #[arg(long, help_heading = "Filter")]
    all: bool,

    /// Show complete values, which anyone who reads the output can use
    #[arg(long, help_heading = "Output")]
    show_values: bool,

    #[command(flatten)]
    top: Top,

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        value_parser = keys(FORMAT),
        default_value = "table",
        help_heading = "Output"
    )]
    format: SecretsFormat,

    /// When to use color; `auto` respects NO_COLOR
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    color: ColorArg,
}

pub(crate) fn run(cx: &RunContext, args: &SecretsArgs) -> anyhow::Result<Outcome> {
    let rules = args.rules.iter().try_fold(SecretRules::builtin(), |rules, path| {
        rules_file::read(cx, path, "docs/secrets.md describes rules files", |text, file| {
            rules.with(text, file)
        })
    })?;
    let (session, mut found) = Session::ask(cx, &args.input, |dump| {
        ensure_values(dump.heap, "there is nothing to search for secrets")?;
        Ok(secrets::secrets(dump, &rules, SecretQuery::new(args.show_values && !cx.hides_values)))
    })?;
    found.rows.retain(|row| row.is_reachable || !args.live);
    if cx.hides_values {
        found.rows.iter_mut().for_each(|row| row.masked = HIDDEN.to_owned());
    }
    match args.format {
        SecretsFormat::Sarif => write_sarif(cx, args, &session, &rules, &found)?,
        SecretsFormat::Markdown => {
            let rows = table_rows(&found, args.all);
            session.show_markdown(cx, answer(args, &found, &rows, Format::Table))?;
        }
        SecretsFormat::Rows(format) => {
            let style = cx.style(args.color);
            let rows = table_rows(&found, args.all || format != Format::Table);
            session.show_as(cx, "secrets", format, style, answer(args, &found, &rows, format))?;
        }
    }
    messages::about_contents(cx, &session.heap, args.input.quiet);
    if !args.input.quiet {
        if found.omitted > 0 {
            let count = group_digits(found.omitted);
            let text = format!(
                "limits were exceeded: {count} findings, names of values or parts of long texts were not examined, \
                 and may contain more credentials"
            );
            cx.emit("warning", &text);
        }
        if found.rows.is_empty() {
            cx.emit(
                "note",
                "the rules found no credentials; credentials without a known form are not recognized",
            );
        }
    }
    // What was omitted or is damaged may contain credentials.
    Ok(match (found.rows.is_empty() && found.omitted == 0, session.is_damaged()) {
        (false, _) => Outcome::No,
        (true, true) => Outcome::Damaged,
        (true, false) => Outcome::Fine,
    })
}

/// A row of the table, and the number of similar rows that it represents.
struct ShownSecret<'a> {
    row: &'a SecretRow,
    more: u64,
}

/// Maximum number of rows of the same rule, class and holder that a table shows separately.
const ALIKE: usize = 20;

/// Returns the rows of a table. Of more than [`ALIKE`] similar rows only the first is shown, unless `all` is set.
fn table_rows<'a>(found: &'a Secrets, all: bool) -> Vec<ShownSecret<'a>> {
    let kind = |row: &'a SecretRow| (row.rule, row.class.as_str(), row.holder.as_deref());
    let mut counts: HashMap<_, usize> = HashMap::new();
    found.rows.iter().for_each(|row| *counts.entry(kind(row)).or_default() += 1);
    let mut rows = Vec::new();
    for row in &found.rows {
        let count = counts.get_mut(&kind(row)).filter(|count| !all && !(1..=ALIKE).contains(*count));
        match count.map(std::mem::take) {
            Some(0) => {}
            Some(count) => rows.push(ShownSecret { row, more: count as u64 - 1 }),
            None => rows.push(ShownSecret { row, more: 0 }),
        }
    }
    rows
}

fn answer<'a>(
    args: &SecretsArgs,
    found: &'a Secrets,
    rows: &'a [ShownSecret<'a>],
    format: Format,
) -> Answer<'a, &'a ShownSecret<'a>> {
    let top = args.top.rows(format).unwrap_or(usize::MAX);
    let answer = Answer::new(columns(args.show_values), rows.iter().take(top))
        .with_summary(&summary_columns(), &found)
        .matching(rows.len() as u64, "rows")
        .if_empty(NoRows::Nothing);
    let total = found.rows.len() as u64;
    if total == 0 || format != Format::Table {
        return answer;
    }
    let mut rules: Vec<&str> = found.rows.iter().map(|row| row.id.as_str()).collect();
    rules.dedup();
    let mut line =
        format!("{} by {}", format_count(total, "credential"), format_count(rules.len() as u64, "rule"));
    let more: u64 = rows.iter().map(|row| row.more).sum();
    if more > 0 {
        let text = format_count(more, "row");
        line.push_str(&format!(
            "; {text} with the same rule, class and holder as others omitted (--all shows them)"
        ));
    }
    answer.with_section_below(Section::Line(line))
}

fn columns<'a>(show_values: bool) -> Columns<'a, &'a ShownSecret<'a>> {
    let mut columns = vec![
        Column::new(names::RULE, |row: &&ShownSecret<'a>| Value::from(&row.row.id)),
        Column::new(names::OBJECT, |row: &&ShownSecret<'a>| id(row.row.object)),
        Column::new(names::CLASS, |row: &&ShownSecret<'a>| Value::from(&row.row.class)),
        Column::new(names::HELD_BY, |row: &&ShownSecret<'a>| row.row.holder.as_deref().into())
            .or_null(NO_HOLDER),
        Column::new(names::COPIES, |row: &&ShownSecret<'a>| row.row.copies.into()),
        Column::new(names::IS_REACHABLE_NOW, |row: &&ShownSecret<'a>| row.row.is_reachable.into()),
        Column::new(names::MASKED, |row: &&ShownSecret<'a>| Value::from(&row.row.masked)),
        Column::new(names::LENGTH, |row: &&ShownSecret<'a>| row.row.length.into()),
    ];
    let mut shown = vec![
        TableColumn::new(names::RULE, "rule"),
        TableColumn::new(names::OBJECT, "object"),
        TableColumn::new(names::MASKED, "masked").cell(|row: &&ShownSecret<'a>| match row.more {
            0 => row.row.masked.clone(),
            more => format!("{} and {} more", row.row.masked, group_digits(more)),
        }),
        TableColumn::new(names::LENGTH, "length"),
    ];
    if show_values {
        columns.push(Column::new(names::VALUE, |row: &&ShownSecret<'a>| {
            Value::from(row.row.value.as_deref().unwrap_or_default())
        }));
        shown.push(TableColumn::new(names::VALUE, "value").fit(Fit::Cut { priority: 1 }));
    }
    shown.extend([
        TableColumn::new(names::COPIES, "copies"),
        TableColumn::new(names::IS_REACHABLE_NOW, "reachable"),
        TableColumn::new(names::CLASS, "class").fit(Fit::Secondary { priority: 0 }),
        TableColumn::new(names::HELD_BY, "holder").fit(Fit::Shorten { priority: 0 }),
    ]);
    Columns::new(columns).table(shown)
}

fn summary_columns<'a>() -> Columns<'a, &'a Secrets> {
    Columns::new([
        Column::new(names::TOTAL.dot(names::ROWS), |found: &&Secrets| (found.rows.len() as u64).into()),
        Column::new(names::TOTAL.dot(names::OMITTED), |found: &&Secrets| found.omitted.into()),
    ])
}

/// Writes SARIF with a result for each row.
fn write_sarif(
    cx: &RunContext,
    args: &SecretsArgs,
    session: &Session,
    rules: &SecretRules,
    found: &Secrets,
) -> anyhow::Result<()> {
    let level = |level| match level {
        SecretLevel::Error => Level::Error,
        SecretLevel::Warning => Level::Warning,
        SecretLevel::Note => Level::Note,
    };
    let known: Vec<sarif::Rule<'_>> = rules
        .rules()
        .map(|rule| sarif::Rule { id: &rule.id, about: rule.name.clone(), level: level(rule.level) })
        .collect();
    let failure = |row: &SecretRow| {
        let rule = known.get(row.rule);
        let about = rule.map_or("", |rule| &rule.about);
        let holder = row.holder.as_deref().map(|holder| format!(" in {holder}")).unwrap_or_default();
        let mut properties = vec![
            ("object", id(row.object)),
            ("class", row.class.clone().into()),
            ("holder", row.holder.clone().into()),
            ("copies", row.copies.into()),
            ("reachable", row.is_reachable.into()),
            ("masked", row.masked.clone().into()),
            ("length", row.length.into()),
        ];
        if args.show_values {
            properties.push(("value", row.value.clone().into()));
        }
        let message = format!("{about}: {}{holder} ({} {:#x})", row.masked, row.class, row.object);
        let level = rule.map_or(Level::Error, |rule| rule.level);
        sarif::Failure { rule: row.rule, level, message, line: 1, properties }
    };
    let run = sarif::SarifRun {
        version: env!("CARGO_PKG_VERSION"),
        file: args.input.path(),
        rules: known.clone(),
        errors: Vec::new(),
    };
    let mut out = cx.writer();
    sarif::write(&mut out, &run, &mut found.rows.iter().map(failure))?;
    output::finish_if(out, session.check())
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    let schema = |variant, show_values, about| ResultSchema {
        command: "secrets",
        variant,
        about,
        rows: columns(show_values).fields(),
        summary: summary_columns().fields(),
    };
    vec![
        schema(
            "",
            false,
            "A row is a value that a rule found, sorted by `rule` and `object`; [secrets.md](secrets.md) describes \
             the rules. The exit code is 1 if there is a row, else 3 if the dump is damaged, else 0.",
        ),
        schema("`--show-values`", true, "The same, with the values; keys are in hexadecimal digits."),
    ]
}
