//! Texts of a dump in Markdown, where nothing in them means anything.

use super::escape;

/// Characters that mean something in Markdown.
const SPECIAL: &[char] = &['\\', '`', '*', '_', '{', '}', '[', ']', '<', '>', '#', '|', '~', '!', '&', '$'];

/// A word joiner, which has no width and breaks no line. GitHub seeks mail addresses and names of people after escapes are
/// resolved, so a backslash does not keep `@` from making a link; a character beside it that is part of neither does.
const JOINER: char = '\u{2060}';

/// A text of the dump: nothing in it is Markdown, wherever it stands.
pub fn text(text: &str) -> String {
    let text = escape::text(text);
    // Blanks at the start of a line would make code.
    let text = text.trim_start();
    // A list, by a sign or by a number: `1. `, but not 1.5.
    let number = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text.len() - number.len();
    let is_numbered = ['.', ')'].iter().any(|end| {
        let rest = number.strip_prefix(*end).filter(|_| digits > 0);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    });
    let list = (is_numbered || text.starts_with(['-', '+'])).then_some(digits);
    let mut escaped = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        if SPECIAL.contains(&c) || list == Some(at) || is_of_link(text, at, c) {
            escaped.push('\\');
        }
        match c {
            '@' => escaped.extend([JOINER, c, JOINER]),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Whether a character makes a link of what stands around it (GitHub Flavored Markdown, section 6.9): `https://`, `www.`.
/// Mail addresses have their [`JOINER`] anywhere.
fn is_of_link(text: &str, at: usize, c: char) -> bool {
    let before = text.get(..at).unwrap_or_default();
    match c {
        ':' => text.get(at + 1..).is_some_and(|behind| behind.starts_with("//")),
        '.' => {
            before.get(before.len().saturating_sub(3)..).is_some_and(|end| end.eq_ignore_ascii_case("www"))
        }
        _ => false,
    }
}

/// A text of the dump as code, unchanged: it stands between more backquotes than it has in a row (CommonMark, section 6.1).
pub fn code(text: &str) -> String {
    let text = escape::text(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let is_blank = text.trim_matches(' ').is_empty();
    // One blank on each side is taken away again, unless there is nothing else.
    let is_stripped = text.starts_with(' ') && text.ends_with(' ') && !is_blank;
    let blank =
        if text.is_empty() || text.starts_with('`') || text.ends_with('`') || is_stripped { " " } else { "" };
    format!("{fence}{blank}{text}{blank}{fence}")
}

/// A text of the dump in a cell of a table, which is one line.
pub fn table_cell(raw: &str) -> String {
    text(&raw.replace(['\n', '\r'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markdown() {
        assert_eq!(text("<b>|`*_[x](y)\u{202e}"), "\\<b\\>\\|\\`\\*\\_\\[x\\](y)\\\\u202e");
        assert_eq!(table_cell("a|b\nc"), "a\\|b c");
        // GitHub makes no link of them, nor do the other renderers that find addresses in text.
        assert_eq!(text("@octocat"), "\u{2060}@\u{2060}octocat");
        assert_eq!(text("see https://evil.example"), "see https\\://evil.example");
        assert_eq!(text("WWW.evil.example, a.www"), "WWW\\.evil.example, a.www");
        assert_eq!(text("a@b.example xmpp:a"), "a\u{2060}@\u{2060}b.example xmpp:a");
    }

    #[test]
    fn code_keeps_its_text() {
        for (text, expected) in [
            ("a", "`a`"),
            ("a`b", "``a`b``"),
            ("'a`;echo b;`.hprof'", "``'a`;echo b;`.hprof'``"),
            ("``a`", "``` ``a` ```"),
            ("a```b``c", "````a```b``c````"),
            (" a ", "`  a  `"),
            (" a", "` a`"),
            (" ", "` `"),
            ("", "`  `"),
            ("two\nlines", "`two\\nlines`"),
        ] {
            assert_eq!(code(text), expected, "{text:?}");
        }
    }
}
