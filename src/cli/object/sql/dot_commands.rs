//! The commands of the SQL shell that describe the tables: `.tables` and `.schema`, also as a query or on stdin.

use std::io::Write;
use std::sync::Arc;

use hprof_query::sql::{FUNCTIONS, SqlDump};
use hprof_query::tables::Definition;
use hprof_report::{escape, fit};

use crate::cli::Outcome;
use crate::cli::shared::color::ColorArg;
use crate::cli::shared::context::RunContext;
use crate::cli::shared::output;

/// Returns the lines of a text that consists of such commands, without their dots; `None` if it begins with a query.
pub(super) fn lines(text: &str) -> Option<Vec<&str>> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines().next().filter(|line| line.starts_with('.'))?;
    Some(lines().map(|line| line.strip_prefix('.').unwrap_or(line)).collect())
}

/// Returns the name and the argument of a command.
pub(super) fn parts(command: &str) -> (&str, &str) {
    let (name, argument) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    (name.trim_end_matches(';'), argument.trim().trim_end_matches(';').trim())
}

/// Runs a command; `None` if there is none of this name.
pub(super) fn run(
    cx: &RunContext,
    dumps: &[Arc<SqlDump>],
    (name, argument): (&str, &str),
) -> anyhow::Result<Option<Outcome>> {
    match name {
        "tables" => tables(cx, dumps).map(Some),
        "schema" => schema(cx, dumps, argument.trim_matches('"')).map(Some),
        _ => Ok(None),
    }
}

/// Returns the names and definitions of the tables of all dumps.
fn definitions(dumps: &[Arc<SqlDump>]) -> impl Iterator<Item = (String, Definition)> {
    dumps.iter().enumerate().flat_map(|(number, dump)| {
        let schema = if number == 0 { String::new() } else { format!("{}.", dump.schema()) };
        dump.definitions().into_iter().map(move |table| (format!("{schema}{}", table.name), table))
    })
}

fn tables(cx: &RunContext, dumps: &[Arc<SqlDump>]) -> anyhow::Result<Outcome> {
    let lines: Vec<String> =
        definitions(dumps).map(|(name, table)| format!("{name:<12} {}", table.meaning)).collect();
    print(cx, &format!("{}\nand one for each class: \"com.acme.Session\"", lines.join("\n")), 13)?;
    Ok(Outcome::Fine)
}

fn schema(cx: &RunContext, dumps: &[Arc<SqlDump>], name: &str) -> anyhow::Result<Outcome> {
    let mut found: Vec<(String, Definition)> =
        definitions(dumps).filter(|(own, _)| name.is_empty() || own.eq_ignore_ascii_case(name)).collect();
    if found.is_empty() {
        let class = dumps.first().and_then(|dump| dump.definition_of_class(name));
        found.extend(class.map(|table| (format!("\"{name}\""), table)));
    }
    if found.is_empty() {
        cx.emit("error", &format!("no table or class named {name}"));
        return Ok(Outcome::No);
    }
    for (name, table) in found {
        let lines = table.columns.iter().map(|column| {
            let null = column.null.as_ref().map(|when| format!("; null if {when}")).unwrap_or_default();
            format!("  {:<16} {:<8} {}{null}", column.name, column.kind.sql_type(), column.meaning)
        });
        print(cx, &format!("{name}: {}\n{}", table.meaning, lines.collect::<Vec<_>>().join("\n")), 26)?;
    }
    if name.is_empty() {
        let functions = FUNCTIONS.iter().map(|function| {
            format!("  {:<28} {}", format!("{}({})", function.name, function.arguments), function.meaning)
        });
        print(cx, &format!("functions:\n{}", functions.collect::<Vec<_>>().join("\n")), 29)?;
    }
    Ok(Outcome::Fine)
}

/// Writes lines to stdout. Text that does not fit the terminal continues on a line indented by `hanging` columns,
/// where its last column starts.
pub(super) fn print(cx: &RunContext, text: &str, hanging: usize) -> anyhow::Result<()> {
    let mut out = cx.writer();
    let width = cx.style(ColorArg::Auto).width.map_or(usize::MAX, usize::from);
    for line in text.split('\n') {
        for line in fit::wrap(&escape::text(line), width, hanging) {
            writeln!(out, "{line}")?;
        }
    }
    output::finish(out)
}
