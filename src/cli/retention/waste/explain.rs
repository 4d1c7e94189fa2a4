//! `--explain`: the definition of a kind of waste, when it is harmless, and how to avoid it.

use std::io::Write;

use hprof_query::waste::WasteKind;
use hprof_report::fit;

use crate::cli::shared::context::RunContext;
use crate::cli::shared::output;

/// Prints the explanation of a kind of waste.
pub(super) fn show(cx: &RunContext, kind: &WasteKind) -> anyhow::Result<()> {
    let mut out = cx.writer();
    writeln!(out, "{}\n\nWhat it is\n{}\n", kind.name, wrap_paragraph(kind.meaning))?;
    writeln!(out, "When it is harmless\n{}\n", wrap_paragraph(kind.harmless))?;
    writeln!(out, "What to do\n{}", wrap_paragraph(kind.remedy))?;
    output::finish_if(out, Ok(()))
}

/// Maximum line width: a terminal of this width does not break lines.
const WIDTH: usize = 80;

/// Wraps a paragraph into lines of at most [`WIDTH`] columns.
fn wrap_paragraph(text: &str) -> String {
    fit::wrap(&format!("  {text}"), WIDTH, 0).join("\n")
}

#[cfg(test)]
mod tests {
    use hprof_query::waste::KINDS;

    use super::*;

    #[test]
    fn no_line_is_wider_than_a_terminal_and_no_word_is_broken() {
        for text in KINDS.iter().flat_map(|kind| [kind.meaning, kind.harmless, kind.remedy]) {
            let lines = wrap_paragraph(text);
            assert!(lines.lines().all(|line| fit::width(line) <= WIDTH), "{lines}");
            assert!(lines.split_whitespace().eq(text.split_whitespace()), "{lines}");
        }
    }
}
