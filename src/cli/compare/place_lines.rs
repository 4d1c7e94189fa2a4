//! Places (paths of fields to memory) in tables: in a column if lines may be long, otherwise below their row.

use crate::cli::shared::args::Output;
use crate::cli::shared::context::RunContext;
use crate::cli::shared::output;
use hprof_report::grid::RowLine;

/// Indentation of a place below its row, and of its second line.
const INDENT: usize = 4;

/// Returns the maximum width of a place below its row; `None` if places are in a column, unbroken so that they can be searched.
pub(super) fn width(cx: &RunContext, output: &Output) -> Option<usize> {
    output::style(cx, output).width.map(|width| usize::from(width).saturating_sub(INDENT))
}

/// Returns the lines of a place on a terminal.
pub(super) fn lines(place: &str, width: Option<usize>) -> Vec<RowLine> {
    let Some(width) = width else { return Vec::new() };
    let mut lines: Vec<RowLine> = Vec::new();
    for label in place.split_inclusive(" -> ") {
        match lines.last_mut() {
            Some(line)
                if line.indent + line.text.chars().count() + label.trim_end().chars().count() <= width =>
            {
                line.text.push_str(label);
            }
            last => {
                let indent = if last.is_some() { INDENT + 2 } else { INDENT };
                lines.push(RowLine { indent, text: label.to_owned() });
            }
        }
    }
    lines.iter_mut().for_each(|line| line.text.truncate(line.text.trim_end().len()));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_broken_between_labels() {
        let text =
            |width| lines("aa -> bb -> cccc", width).into_iter().map(|line| line.text).collect::<Vec<_>>();
        assert_eq!(text(Some(24)), ["aa -> bb -> cccc"]);
        assert_eq!(text(Some(16)), ["aa -> bb ->", "cccc"]);
        assert_eq!(text(Some(3)), ["aa ->", "bb ->", "cccc"]);
        assert!(text(None).is_empty());
    }
}
