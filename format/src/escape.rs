//! Escaping of text from a dump.
//!
//! A dump can be hostile: a class name can contain escape sequences that change the terminal, or
//! bidirectional marks that display different text. Control characters and invisible formatting
//! characters are written as `\uNNNN`.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns `true` if a character must not be written to a terminal or a file unescaped.
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Escapes harmful characters of a text.
pub fn text(raw: &str) -> Cow<'_, str> {
    if !raw.contains(is_harmful) {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len() + 16);
    for c in raw.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_harmful(c) => push_escaped(&mut out, c),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Encloses a text in double quotes, with a backslash before quotes in it, so that its end is visible.
/// Does not change backslashes or harmful characters; [`text`] escapes the latter.
pub fn quoted(raw: &str) -> String {
    format!("\"{}\"", raw.replace('"', "\\\""))
}

/// Appends a character as one or two `\uNNNN`, as in JSON and Java.
pub fn push_escaped(out: &mut String, c: char) {
    let mut units = [0; 2];
    for unit in c.encode_utf16(&mut units) {
        // Writing to a String cannot fail.
        let _ = write!(out, "\\u{unit:04x}");
    }
}

/// Escapes harmful characters in a cell of a CSV file. A cell that a spreadsheet would interpret as a formula is prefixed with
/// an apostrophe. Some spreadsheets also accept the wide forms of the signs in East Asian input.
///
/// No name of a Java class, field or method starts with one of these characters.
pub fn cell(raw: &str) -> Cow<'_, str> {
    let text = text(raw);
    if text.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']) {
        Cow::Owned(format!("'{text}"))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_text_is_borrowed() {
        assert!(matches!(text("java.lang.String"), Cow::Borrowed(_)));
        assert!(matches!(text("日本語 Grüße"), Cow::Borrowed(_)));
    }

    #[test]
    fn control_and_bidi_characters_are_escaped() {
        assert_eq!(text("a\u{1b}[31m\n"), "a\\u001b[31m\\n");
        assert_eq!(text("x\u{202e}y\u{7f}\u{9b}"), "x\\u202ey\\u007f\\u009b");
        assert_eq!(text("\u{e0041}"), "\\udb40\\udc41");
    }

    #[test]
    fn quotes_in_quotes_are_escaped() {
        assert_eq!(quoted("say \"hi\""), r#""say \"hi\"""#);
        assert_eq!(quoted("plain"), "\"plain\"");
        assert_eq!(text(&quoted("a\u{1b}")), "\"a\\u001b\"");
    }

    #[test]
    fn formulas_are_defused() {
        assert_eq!(cell("=1+1"), "'=1+1");
        assert_eq!(cell("＝1+1"), "'＝1+1");
        assert_eq!(cell("a=1"), "a=1");
    }
}
