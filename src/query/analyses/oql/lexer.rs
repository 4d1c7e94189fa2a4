//! Conversion of a query's text to tokens.

use super::error::OqlError;
use hprof_model::objects::condition::size;

/// A token of a query, with its position.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    /// Start offset.
    pub(super) start: usize,
    /// End offset (exclusive).
    pub(super) end: usize,
}

/// Kind of a token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind {
    /// A name or a keyword.
    Name,
    /// A whole number, at most 2^63, which fits a long only with a minus sign. Sizes such as `1 KB` are numbers as well.
    Whole(u64),
    /// A number written `0x...`.
    Hex(u64),
    /// A number with a fraction.
    Fraction(f64),
    /// A text in which only `\"` is unescaped, since it may be a regular expression.
    Text(String),
    /// A character.
    Char(u16),
    /// `${snapshot}`.
    Snapshot,
    /// A regular expression as in JavaScript: pattern and flags.
    Regex(String, String),
    /// An operator or a bracket.
    Symbol(&'static str),
    /// End of the text.
    End,
}

const SYMBOLS: &[&str] = &[
    "===", "!==", "!=", "<>", "<=", ">=", "==", "=>", "&&", "||", "=", "<", ">", "+", "-", "*", "/", "(",
    ")", "[", "]", "{", "}", ",", ".", "@", "!", ";", ":", "?",
];

/// Words after which a slash begins a regular expression: after other names it divides, or is part of a class name.
const BEFORE_REGEX: &[&str] = &["select", "distinct", "where", "and", "or", "not", "in", "by", "return"];

/// Returns the tokens of a text; the last one is [`TokenKind::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, OqlError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..)
        && let Some(first) = rest.chars().next()
    {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        if rest.starts_with("/*") {
            at +=
                rest.find("*/").ok_or_else(|| OqlError::new(at, "unterminated comment: */ is missing"))? + 2;
            continue;
        }
        if let Some(len) = variable_len(rest) {
            // `${s}` is the alias s.
            tokens.push(Token { kind: TokenKind::Name, start: at, end: at + len });
            at += len;
            continue;
        }
        let (kind, len) = match first {
            '/' if is_operand(&tokens, text)
                && let Some(regex) = regex(rest) =>
            {
                regex
            }
            '"' => quoted_text(rest, '"', at)?,
            '\'' => character(quoted_text(rest, '\'', at)?),
            '0'..='9' => number(rest, at)?,
            _ if is_name_start(first) && !rest.starts_with("${") => (TokenKind::Name, name_len(rest)),
            _ if rest.starts_with("${snapshot}") => (TokenKind::Snapshot, "${snapshot}".len()),
            _ => match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
                Some(symbol) => (TokenKind::Symbol(symbol), symbol.len()),
                None if first == '$' => {
                    return Err(OqlError::new(
                        at,
                        "unexpected `$`; expected ${snapshot}, or an alias in ${ }",
                    ));
                }
                None => return Err(OqlError::new(at, format!("unexpected `{first}`"))),
            },
        };
        tokens.push(Token { kind, start: at, end: at + len });
        at += len;
    }
    tokens.push(Token { kind: TokenKind::End, start: text.len(), end: text.len() });
    Ok(tokens)
}

/// Returns whether the next token is an operand, judged by the last one.
fn is_operand(tokens: &[Token], text: &str) -> bool {
    let Some(last) = tokens.last() else { return true };
    match &last.kind {
        TokenKind::Symbol(symbol) => !matches!(*symbol, ")" | "]" | "}"),
        TokenKind::Name => {
            let name = text.get(last.start..last.end).unwrap_or_default();
            BEFORE_REGEX.iter().any(|word| word.eq_ignore_ascii_case(name))
        }
        _ => false,
    }
}

/// Parses `/pattern/flags`; returns it with its length, or `None` if the closing slash is missing.
fn regex(rest: &str) -> Option<(TokenKind, usize)> {
    let mut is_class = false;
    let mut characters = rest.char_indices().skip(1);
    while let Some((place, c)) = characters.next() {
        match c {
            '\n' => return None,
            '\\' => drop(characters.next()),
            '[' => is_class = true,
            ']' => is_class = false,
            '/' if !is_class => {
                let (pattern, after) = (rest.get(1..place)?, rest.get(place + 1..)?);
                let len = name_len(after);
                let flags = after.get(..len)?;
                return Some((TokenKind::Regex(pattern.to_owned(), flags.to_owned()), place + 1 + len));
            }
            _ => {}
        }
    }
    None
}

fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || c == '_' || c == '$'
}

/// Returns the length of `${name}`, except `${snapshot}`.
fn variable_len(rest: &str) -> Option<usize> {
    let name = rest.strip_prefix("${")?;
    let len = name_len(name);
    let is_name = len > 0 && name.get(len..)?.starts_with('}') && name.get(..len) != Some("snapshot");
    is_name.then_some(len + 3)
}

fn name_len(rest: &str) -> usize {
    rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').unwrap_or(rest.len())
}

/// Parses a text in quotes; returns it with its length including the quotes.
fn quoted_text(rest: &str, quote: char, at: usize) -> Result<(TokenKind, usize), OqlError> {
    let mut text = String::new();
    let mut characters = rest.char_indices().skip(1);
    while let Some((place, c)) = characters.next() {
        if c == quote {
            return Ok((TokenKind::Text(text), place + 1));
        }
        match (c, c == '\\') {
            (_, true) => match characters.next() {
                Some((_, escaped)) if escaped == quote => text.push(quote),
                Some((_, escaped)) => text.extend(['\\', escaped]),
                None => break,
            },
            (c, false) => text.push(c),
        }
    }
    Err(OqlError::new(at, format!("unterminated string: {quote} is missing")))
}

/// Converts a text in single quotes: `'a'` becomes a character, `'abc'` a text.
fn character((kind, len): (TokenKind, usize)) -> (TokenKind, usize) {
    let TokenKind::Text(text) = &kind else { return (kind, len) };
    let mut units = unescape(text).encode_utf16().collect::<Vec<_>>().into_iter();
    match (units.next(), units.next()) {
        (Some(unit), None) => (TokenKind::Char(unit), len),
        _ => (kind, len),
    }
}

/// Replaces `\n`, `\t`, `\r`, `\\`, `\uXXXX` and similar escapes by the characters that they represent.
pub(super) fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(rest.get(..at).unwrap_or_default());
        let escape = rest.get(at + 1..).unwrap_or_default();
        let Some(c) = escape.chars().next() else {
            out.push('\\');
            return out;
        };
        let mut len = c.len_utf8();
        match c {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            '\\' | '"' | '\'' => out.push(c),
            'u' => {
                let digits = escape.get(1..5).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
                let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
                match code.and_then(char::from_u32) {
                    Some(found) => {
                        out.push(found);
                        len = 5;
                    }
                    None => out.push_str("\\u"),
                }
            }
            other => out.extend(['\\', other]),
        }
        rest = escape.get(len..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Parses a number; returns it with its length including its unit.
fn number(rest: &str, at: usize) -> Result<(TokenKind, usize), OqlError> {
    if let Some(hex) = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
        let len = name_len(hex);
        let digits = hex.get(..len).unwrap_or_default().trim_end_matches(['L', 'l']);
        let number = u64::from_str_radix(digits, 16).map_err(|_| wrong_number(rest, len + 2, at))?;
        return Ok((TokenKind::Hex(number), len + 2));
    }
    let digits = |from: usize| {
        let text = rest.get(from..).unwrap_or_default();
        from + text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())
    };
    let mut end = digits(0);
    let mut is_fraction = false;
    let byte = |at: usize| rest.as_bytes().get(at).copied();
    if byte(end) == Some(b'.') && byte(end + 1).is_some_and(|byte| byte.is_ascii_digit()) {
        (end, is_fraction) = (digits(end + 1), true);
    }
    if matches!(byte(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(byte(end + 1), Some(b'+' | b'-')));
        if byte(end + 1 + sign).is_some_and(|byte| byte.is_ascii_digit()) {
            (end, is_fraction) = (digits(end + 1 + sign), true);
        }
    }
    let text = rest.get(..end).unwrap_or_default();
    let after = rest.get(end..).unwrap_or_default();
    let unit_len = name_len(after);
    let len = end + unit_len;
    let wrong = || wrong_number(rest, len, at);
    let unit = after.get(..unit_len).unwrap_or_default();
    let unit = match unit.to_ascii_lowercase().as_str() {
        "" | "l" if !is_fraction => {
            let number: u64 = text.parse().map_err(|_| wrong())?;
            return if number > 1 << 63 { Err(wrong()) } else { Ok((TokenKind::Whole(number), len)) };
        }
        "" | "f" | "d" => return Ok((TokenKind::Fraction(text.parse().map_err(|_| wrong())?), len)),
        unit => size::unit_bytes(unit).ok_or_else(wrong)?,
    };
    if !is_fraction {
        let number: u64 = text.parse().map_err(|_| wrong())?;
        let bytes =
            number.checked_mul(unit).filter(|bytes| i64::try_from(*bytes).is_ok()).ok_or_else(wrong)?;
        return Ok((TokenKind::Whole(bytes), len));
    }
    let number: f64 = text.parse().map_err(|_| wrong())?;
    #[allow(clippy::cast_precision_loss)] // At most 2^40.
    let bytes = number * unit as f64;
    // Bytes are whole; `as` saturates.
    #[allow(clippy::cast_possible_truncation)]
    let bytes = bytes as i64;
    Ok((TokenKind::Whole(bytes.unsigned_abs()), len))
}

fn wrong_number(rest: &str, len: usize, at: usize) -> OqlError {
    let text: String = rest.get(..len).unwrap_or_default().chars().take(40).collect();
    OqlError::new(
        at,
        format!("`{text}` is not a number; numbers look like 100, 100L, 1.5, 0x7f00, 10kB or 1.5MiB"),
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<TokenKind> {
        let mut kinds: Vec<TokenKind> = tokens(text).unwrap().into_iter().map(|token| token.kind).collect();
        assert_eq!(kinds.pop(), Some(TokenKind::End));
        kinds
    }

    #[test]
    fn numbers() {
        for (text, number) in [
            ("7", 7),
            ("7L", 7),
            ("1kB", 1000),
            ("1MB", 1_000_000),
            ("1.5GB", 1_500_000_000),
            ("2GiB", 1 << 31),
        ] {
            assert_eq!(kinds(text), [TokenKind::Whole(number)], "{text}");
        }
        assert_eq!(kinds("1.5 1e3 2f"), [1.5, 1000.0, 2.0].map(TokenKind::Fraction));
        assert_eq!(kinds("0x7f 0XfL"), [TokenKind::Hex(0x7f), TokenKind::Hex(15)]);
        assert_eq!(kinds("9223372036854775808"), [TokenKind::Whole(1 << 63)]);
        for wrong in ["9223372036854775809", "1x", "0x", "0xg", "99999999999999999999", "1PB", "9999999TB"] {
            assert!(tokens(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn slashes_divide_or_begin_a_regex() {
        use TokenKind::{Name, Regex, Symbol, Whole};
        assert_eq!(kinds("a / 2 / b"), [Name, Symbol("/"), Whole(2), Symbol("/"), Name]);
        assert_eq!(kinds("java/lang/String").len(), 5);
        let found = kinds(r"where ! /a[/]\/b/gi.test(x)");
        assert_eq!(found.get(2), Some(&Regex(r"a[/]\/b".to_owned(), "gi".to_owned())));
        // Without an end it is a slash.
        assert_eq!(kinds("where /a").get(1), Some(&Symbol("/")));
    }

    #[test]
    fn texts_and_characters() {
        assert_eq!(kinds(r#""a\"b\.c""#), [TokenKind::Text(r#"a"b\.c"#.to_owned())]);
        assert_eq!(
            kinds(r"'a' '\n' 'ab'"),
            [TokenKind::Char(97), TokenKind::Char(10), TokenKind::Text("ab".to_owned())]
        );
        assert_eq!(unescape(r"a\tb\u20ac\\\.\u12"), "a\tb€\\\\.\\u12");
        assert!(tokens("\"a").is_err() && tokens("'").is_err() && tokens("\"\\").is_err());
    }

    #[test]
    fn names_symbols_and_comments() {
        use TokenKind::{Name, Symbol};
        assert_eq!(
            kinds("s.@length /* x */ >= // y\n a$1"),
            [Name, Symbol("."), Symbol("@"), Name, Symbol(">="), Name]
        );
        assert_eq!(kinds("${snapshot}.x"), [TokenKind::Snapshot, Symbol("."), Name]);
        assert_eq!(tokens("a # b").unwrap_err().at, 2);
        assert_eq!(kinds("${y}[0:1]").first(), Some(&Name));
        assert!(tokens("/* x").is_err() && tokens("${y").is_err_and(|wrong| wrong.at == 0));
    }
}
