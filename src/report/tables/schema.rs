//! Reference of tables and their columns as Markdown.

use std::fmt::Write;

use hprof_query::tables::{ColumnType, Definition};

/// Returns a section for each table. `secret` describes when columns that may be secret are null.
pub fn markdown(definitions: &[Definition], secret: &str) -> String {
    let mut out = String::new();
    for definition in definitions {
        let Definition { name, meaning, order, columns } = definition;
        // Writing to a String cannot fail.
        let _ = write!(out, "\n## `{name}`\n\n{}. Rows are in order {}.\n", cell(meaning), cell(order));
        let _ = write!(out, "\n| column | type | meaning | null |\n|---|---|---|---|\n");
        for column in columns {
            let mut null = column.null.as_deref().map(cell).unwrap_or_default();
            if column.is_secret {
                null.push_str(if null.is_empty() { "" } else { "; " });
                null.push_str(secret);
            }
            let _ = writeln!(
                out,
                "| `{}` | {} | {} | {null} |",
                cell(&column.name),
                type_name(column.kind),
                cell(&column.meaning)
            );
        }
    }
    out
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Returns the word for the type of a column.
pub fn type_name(kind: ColumnType) -> &'static str {
    match kind {
        ColumnType::Integer => "integer",
        ColumnType::Real => "real",
        ColumnType::Boolean => "boolean",
        ColumnType::Text => "text",
        ColumnType::Name => "name",
        ColumnType::Id => "id",
    }
}
