//! `--explain`: what a kind of waste is, when it is harmless, what to do.

use std::io::Write;

use hprof_query::waste::WasteKind;
use hprof_report::fit;

use crate::cli::shared::output;

/// Shows what a kind is.
pub(super) fn show(kind: &WasteKind) -> anyhow::Result<()> {
    let mut out = output::stdout();
    writeln!(out, "{}\n\nWhat it is\n{}\n", kind.name, indented(kind.meaning))?;
    writeln!(out, "When it is harmless\n{}\n", indented(kind.harmless))?;
    writeln!(out, "What to do\n{}", indented(kind.remedy))?;
    output::finish_if(out, Ok(()))
}

/// Columns of the widest line; a terminal of this width breaks none.
const WIDTH: usize = 80;

/// The paragraph in lines of at most [`WIDTH`] columns.
fn indented(text: &str) -> String {
    fit::wrap(&format!("  {text}"), WIDTH, 0).join("\n")
}

#[cfg(test)]
mod tests {
    use hprof_query::waste::KINDS;

    use super::*;

    #[test]
    fn no_line_is_wider_than_a_terminal_and_no_word_is_broken() {
        for text in KINDS.iter().flat_map(|kind| [kind.meaning, kind.harmless, kind.remedy]) {
            let lines = indented(text);
            assert!(lines.lines().all(|line| fit::width(line) <= WIDTH), "{lines}");
            assert!(lines.split_whitespace().eq(text.split_whitespace()), "{lines}");
        }
    }
}
