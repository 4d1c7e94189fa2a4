//! Decoding of modified UTF-8, the encoding of all strings in a dump, to displayable text.
//!
//! Modified UTF-8 (JVM specification, section 4.4.7) encodes NUL as two bytes and supplementary
//! characters as two three-byte surrogates. Strings of real dumps can be invalid. Decoding is lossless:
//! invalid input becomes an escape (`\xNN` for a stray byte, `\uNNNN` for a lone surrogate). So that
//! escapes cannot be forged, all backslashes are doubled in a text that needs an escape, or that contains
//! `\x` or `\u` itself.

use std::borrow::Cow;

/// Decodes a string of a dump. Borrows if the bytes are plain UTF-8 without anything to escape.
///
/// Control characters are kept: escaping for a terminal is the renderer's responsibility.
pub fn decode(bytes: &[u8]) -> Cow<'_, str> {
    let plain = !bytes.windows(2).any(|pair| matches!(pair, [b'\\', b'x' | b'u']));
    match std::str::from_utf8(bytes) {
        Ok(text) if plain => Cow::Borrowed(text),
        _ => Cow::Owned(decode_slowly(bytes)),
    }
}

/// Returns `true` if a text needs an escape, or contains something that looks like one.
fn needs_escapes(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    let mut high = None;
    while let Some((unit, used)) = next_unit(rest) {
        high = match (high, unit) {
            (_, Unit::Stray(_)) | (Some(_), Unit::Char(_)) => return true,
            (None, Unit::Char(_)) => None,
            (None, Unit::Surrogate(first)) if first < 0xdc00 => Some(first),
            (Some(_), Unit::Surrogate(second)) if second >= 0xdc00 => None,
            (_, Unit::Surrogate(_)) => return true,
        };
        rest = rest.get(used..).unwrap_or_default();
    }
    high.is_some() || bytes.windows(2).any(|pair| matches!(pair, [b'\\', b'x' | b'u']))
}

fn decode_slowly(bytes: &[u8]) -> String {
    let escapes = needs_escapes(bytes);
    let mut out = String::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((unit, used)) = next_unit(rest) {
        let mut consumed = used;
        match unit {
            Unit::Stray(byte) => out.push_str(&format!("\\x{byte:02x}")),
            Unit::Char(c) => {
                out.push(c);
                if c == '\\' && escapes {
                    out.push('\\');
                }
            }
            Unit::Surrogate(high) => {
                let low = rest.get(used..).and_then(next_unit);
                match low {
                    Some((Unit::Surrogate(low), more)) if high < 0xdc00 && low >= 0xdc00 => {
                        let code = 0x10000 + ((u32::from(high) - 0xd800) << 10) + (u32::from(low) - 0xdc00);
                        out.extend(char::from_u32(code));
                        consumed += more;
                    }
                    _ => out.push_str(&format!("\\u{high:04x}")),
                }
            }
        }
        rest = rest.get(consumed..).unwrap_or_default();
    }
    out
}

/// A decoded part of a string.
enum Unit {
    Char(char),
    Surrogate(u16),
    Stray(u8),
}

/// Returns the next character, surrogate or stray byte, and its size in bytes.
fn next_unit(bytes: &[u8]) -> Option<(Unit, usize)> {
    let first = *bytes.first()?;
    let continuation = |at: usize| bytes.get(at).filter(|b| **b & 0xc0 == 0x80).map(|b| u32::from(b & 0x3f));
    let code = match first {
        0x00..=0x7f => Some((u32::from(first), 1)),
        0xc0..=0xdf => continuation(1).map(|a| ((u32::from(first & 0x1f) << 6) | a, 2)),
        0xe0..=0xef => continuation(1)
            .zip(continuation(2))
            .map(|(a, b)| ((u32::from(first & 0x0f) << 12) | (a << 6) | b, 3)),
        // Four bytes are not modified UTF-8, but writers other than the JVM use them.
        0xf0..=0xf7 => continuation(1)
            .zip(continuation(2))
            .zip(continuation(3))
            .map(|((a, b), c)| ((u32::from(first & 0x07) << 18) | (a << 12) | (b << 6) | c, 4)),
        _ => None,
    };
    // An overlong encoding could hide a character from code that compares bytes; only NUL may be
    // overlong.
    let code = code.filter(|(code, used)| match used {
        2 => *code >= 0x80 || *code == 0,
        3 => *code >= 0x800,
        4 => *code >= 0x10000,
        _ => true,
    });
    Some(match code {
        Some((code, used)) => match (char::from_u32(code), u16::try_from(code)) {
            (Some(c), _) => (Unit::Char(c), used),
            (None, Ok(surrogate)) => (Unit::Surrogate(surrogate), used),
            (None, Err(_)) => (Unit::Stray(first), 1),
        },
        None => (Unit::Stray(first), 1),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_borrowed() {
        assert!(matches!(decode("java/lang/String".as_bytes()), Cow::Borrowed("java/lang/String")));
        assert!(matches!(decode("Grüße".as_bytes()), Cow::Borrowed("Grüße")));
        assert_eq!(decode(b""), "");
    }

    #[test]
    fn surrogate_pairs_make_one_character() {
        assert_eq!(decode(&[0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80]), "\u{1f600}");
        assert_eq!(decode("\u{1f600}".as_bytes()), "\u{1f600}");
    }

    #[test]
    fn two_byte_nul_is_nul() {
        assert_eq!(decode(&[b'a', 0xc0, 0x80, b'b']), "a\0b");
    }

    #[test]
    fn what_is_no_character_is_escaped() {
        assert_eq!(decode(&[0xed, 0xa0, 0x80, b'!']), "\\ud800!");
        assert_eq!(decode(&[0xed, 0xb0, 0x80, 0xed, 0xa0, 0x80]), "\\udc00\\ud800");
        assert_eq!(decode(&[0xff, b'a', 0xe0, 0x80]), "\\xffa\\xe0\\x80");
        assert_eq!(decode(&[0xf7, 0xbf, 0xbf, 0xbf]), "\\xf7\\xbf\\xbf\\xbf");
    }

    #[test]
    fn escapes_cannot_be_forged() {
        assert_ne!(decode(b"\\xff"), decode(&[0xff]));
        assert_eq!(decode(b"\\xff"), "\\\\xff");
        assert_eq!(decode(b"C:\\temp"), "C:\\temp");
        assert_eq!(decode(b"a\\b\xc0\x80"), "a\\b\0");
        assert_eq!(decode(b"a\\b\xed\xa0\xbd\xed\xb8\x80"), "a\\b\u{1f600}");
        // An overlong `x` is not an `x`.
        assert_eq!(decode(b"\\\xc1\xb8ff"), "\\\\\\xc1\\xb8ff");
    }
}
