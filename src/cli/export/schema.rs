//! `export --schema`.

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
