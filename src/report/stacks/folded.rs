//! Folded stacks, the input of other flame graph tools: one line per stack, `outer;inner;innermost 42`.
//!
//! Lines are in preorder of their frames. Stacks with a baseline have two weights, the baseline's first, which is the format of
//! tools for differential flame graphs: `outer;innermost 40 42`.

use std::borrow::Cow;
use std::io::{self, Write};

use crate::escape;
use hprof_query::recordings::stacks::{StackStep, Stacks};

/// Writes all stacks as lines.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(out: &mut dyn Write, stacks: &Stacks) -> io::Result<()> {
    let names = names(stacks);
    if stacks.baseline.is_none() {
        return write_where(out, stacks, &names, |_| true);
    }
    let weights = |step: &StackStep| Some((step.old_rest, step.rest));
    write_both(out, stacks.walk_both(|_, _| true), &names, weights)
}

/// Writes stacks with two weights, the older one first. Only frames for which `weights` returns a pair are written.
pub(crate) fn write_both(
    out: &mut dyn Write,
    steps: impl Iterator<Item = StackStep>,
    names: &[Cow<'_, str>],
    mut weights: impl FnMut(&StackStep) -> Option<(u64, u64)>,
) -> io::Result<()> {
    let mut path: Vec<u32> = Vec::new();
    for step in steps {
        path.truncate(step.depth);
        path.push(step.label);
        if let Some((old, new)) = weights(&step).filter(|weights| *weights != (0, 0)) {
            write_path(out, &path, names)?;
            writeln!(out, " {old} {new}")?;
        }
    }
    Ok(())
}

/// Returns the names of all labels, escaped for use in lines.
pub(crate) fn names(stacks: &Stacks) -> Vec<Cow<'_, str>> {
    stacks.labels().iter().map(|label| frame(&label.text)).collect()
}

/// Writes the stacks whose weight is accepted by `enough`. The weight of omitted stacks is added to their callers. The sum of
/// the weights fits into 64 bits.
pub(crate) fn write_where(
    out: &mut dyn Write,
    stacks: &Stacks,
    names: &[Cow<'_, str>],
    enough: impl Fn(u64) -> bool,
) -> io::Result<()> {
    let mut path: Vec<u32> = Vec::new();
    let mut sum = 0u64;
    for step in stacks.walk(enough) {
        path.truncate(step.depth);
        path.push(step.label);
        let weight = step.rest.min(u64::MAX - sum);
        if weight == 0 {
            continue;
        }
        sum += weight;
        write_path(out, &path, names)?;
        writeln!(out, " {weight}")?;
    }
    Ok(())
}

fn write_path(out: &mut dyn Write, path: &[u32], names: &[Cow<'_, str>]) -> io::Result<()> {
    for (at, label) in path.iter().enumerate() {
        if at > 0 {
            out.write_all(b";")?;
        }
        let name = names.get(*label as usize).map_or("?", |name| name);
        out.write_all(name.as_bytes())?;
    }
    Ok(())
}

/// Escapes a frame's name so that it can only be read as one frame. In addition to the usual escapes, `;` is written as
/// `\u003b`; white space or a `#` at the start, white space at the end, and a space before a number at the end are escaped in
/// the same way. Characters that XML forbids are escaped, too.
pub fn frame(raw: &str) -> Cow<'_, str> {
    let text = escape::text(raw);
    if text.is_empty() {
        return Cow::Borrowed("<unnamed>");
    }
    let not_xml = |c: char| matches!(c, '\u{fffe}' | '\u{ffff}');
    let odd_start = text.starts_with(|c: char| c.is_whitespace() || c == '#');
    let odd_end = text.ends_with(char::is_whitespace);
    // Tools read the last word of a line as the weight, and a number before it as another weight.
    let number = text.rfind(' ').filter(|at| {
        let last = text.get(at + 1..).unwrap_or_default();
        last.chars().all(|c| c.is_ascii_digit() || c == '.')
    });
    if !odd_start && !odd_end && number.is_none() && !text.contains(|c| c == ';' || not_xml(c)) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    let last = text.char_indices().next_back().map(|(at, _)| at);
    for (at, c) in text.char_indices() {
        let odd = c == ';'
            || not_xml(c)
            || (at == 0 && odd_start)
            || (Some(at) == last && odd_end)
            || Some(at) == number;
        if odd { escape::push_escaped(&mut out, c) } else { out.push(c) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn frames_stay_one_frame() {
        for (raw, name) in [
            ("java.util.HashMap.put", "java.util.HashMap.put"),
            ("java.util.HashMap$Node (object)", "java.util.HashMap$Node (object)"),
            ("a;b", "a\\u003bb"),
            ("a\nb", "a\\nb"),
            ("a\u{202e}b\u{ffff}", "a\\u202eb\\uffff"),
            ("pool 12", "pool\\u002012"),
            ("pool 1 x", "pool 1 x"),
            ("x 1.5", "x\\u00201.5"),
            ("# x", "\\u0023 x"),
            ("\u{a0}x\u{3000}", "\\u00a0x\\u3000"),
            (" ", "\\u0020"),
            ("", "<unnamed>"),
            ("<script>", "<script>"),
        ] {
            assert_eq!(frame(raw), name, "{raw:?}");
        }
    }
}
