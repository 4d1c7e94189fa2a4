//! `export --schema`, and the generated part of docs/tables.md.

use std::io::Write;

use crate::cli::Outcome;
use crate::cli::shared::context::RunContext;
use crate::cli::shared::output;
use hprof_query::tables::definitions;
use hprof_report::tables::schema::markdown;

/// Condition under which secret columns are null.
const SECRET: &str = "without `--strings text`";

/// Prints the tables.
pub(super) fn print(cx: &RunContext) -> anyhow::Result<Outcome> {
    let mut out = cx.writer();
    out.write_all(markdown(&definitions(), SECRET).trim_start().as_bytes())?;
    output::finish(out)?;
    Ok(Outcome::Fine)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hprof_query::tables::definitions_of_recordings;

    /// Marker line: everything after it is generated.
    const BEGIN: &str = "<!-- The rest of this page is what `hprof-cli export --schema` prints. -->\n";

    /// Marker line of the tables of recordings, which are generated, too.
    const RECORDINGS: &str = "<!-- Generated: the tables that exist with --recording. -->\n";

    /// Returns the updated page; `None` if it lacks a marker line.
    fn page(present: &str) -> Option<String> {
        let (written, _) = present.split_once(RECORDINGS)?;
        let of_recordings = markdown(&definitions_of_recordings(), SECRET);
        let rest = markdown(&definitions(), SECRET);
        Some(format!("{written}{RECORDINGS}{of_recordings}\n{BEGIN}{rest}"))
    }

    #[test]
    fn the_page_says_what_the_definitions_say() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/tables.md");
        let present = std::fs::read_to_string(path).unwrap();
        let made = page(&present).unwrap();
        if std::env::var_os("HPROF_CLI_BLESS").is_some() {
            std::fs::write(path, made).unwrap();
        } else {
            assert!(present == made, "docs/tables.md is stale: `HPROF_CLI_BLESS=1 cargo test` rewrites it");
        }
    }

    #[test]
    fn tables_and_columns_have_names_of_their_own_and_a_meaning() {
        let mut tables = std::collections::HashSet::new();
        for table in definitions().into_iter().chain(definitions_of_recordings()) {
            assert!(tables.insert(table.name.clone()) && !table.meaning.is_empty(), "{}", table.name);
            assert!(table.columns.len() <= 64, "{}", table.name);
            let mut columns = std::collections::HashSet::new();
            for column in &table.columns {
                let place = format!("{}.{}", table.name, column.name);
                assert!(columns.insert(column.name.clone()) && !column.meaning.is_empty(), "{place}");
                assert!(!column.meaning.contains('\n'), "{place}");
            }
        }
    }
}
