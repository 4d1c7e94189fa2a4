//! Parsing the parts of a line: literals, numbers, words.

use crate::{ObjectId, TraceSerial};

/// Parser for the rest of a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scan<'a> {
    rest: &'a [u8],
}

impl<'a> Scan<'a> {
    #[inline]
    pub(super) fn new(line: &'a [u8]) -> Self {
        Self { rest: line }
    }

    /// Returns the unparsed rest.
    #[inline]
    pub(super) fn remaining(&self) -> &'a [u8] {
        self.rest
    }

    /// Parses a literal.
    #[inline]
    pub(super) fn literal(&mut self, literal: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(literal)?;
        Some(())
    }

    /// Parses a literal if it comes next; returns whether it did.
    pub(super) fn maybe(&mut self, literal: &[u8]) -> bool {
        self.literal(literal).is_some()
    }

    /// Skips spaces and tabs.
    #[inline]
    pub(super) fn spaces(&mut self) {
        while let [b' ' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    /// Parses an unsigned decimal number.
    #[inline]
    pub(super) fn decimal(&mut self) -> Option<u64> {
        let [first @ b'0'..=b'9', rest @ ..] = self.rest else { return None };
        let mut number = u64::from(first - b'0');
        self.rest = rest;
        while let [digit @ b'0'..=b'9', rest @ ..] = self.rest {
            number = number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
            self.rest = rest;
        }
        Some(number)
    }

    /// Parses a decimal number with an optional sign.
    pub(super) fn signed_decimal(&mut self) -> Option<i64> {
        if self.maybe(b"-") {
            return 0i64.checked_sub_unsigned(self.decimal()?);
        }
        i64::try_from(self.decimal()?).ok()
    }

    /// Parses a serial number. The agent writes some of them as signed numbers.
    #[inline]
    pub(super) fn serial(&mut self) -> Option<u32> {
        if let [b'-', ..] = self.rest {
            return i32::try_from(self.signed_decimal()?).ok().map(i32::cast_unsigned);
        }
        u32::try_from(self.decimal()?).ok()
    }

    /// Parses the serial number of a trace.
    #[inline]
    pub(super) fn trace(&mut self) -> Option<TraceSerial> {
        self.serial().map(TraceSerial)
    }

    /// Parses an object ID.
    #[inline]
    pub(super) fn id(&mut self) -> Option<ObjectId> {
        self.hex().map(ObjectId)
    }

    /// Parses a hexadecimal number of up to 64 bits, with or without `0x`.
    #[inline]
    pub(super) fn hex(&mut self) -> Option<u64> {
        if let [b'0', b'x' | b'X', rest @ ..] = self.rest {
            self.rest = rest;
        }
        let mut number = u64::from(hex_digit(*self.rest.first()?)?);
        self.rest = self.rest.get(1..)?;
        while let [byte, rest @ ..] = self.rest
            && let Some(digit) = hex_digit(*byte)
        {
            if number >> 60 != 0 {
                return None;
            }
            number = (number << 4) | u64::from(digit);
            self.rest = rest;
        }
        Some(number)
    }

    /// Parses a percentage, `12.34%`. Anything that is not a number (the agent divides by zero) is 0.
    pub(super) fn percent(&mut self) -> Option<f64> {
        let at = self.rest.iter().position(|byte| *byte == b'%')?;
        let (text, rest) = (self.rest.get(..at)?, self.rest.get(at + 1..)?);
        // Android uses the decimal separator of the user's language.
        let text = std::str::from_utf8(text).ok()?.replace(',', ".");
        // Windows writes NaN as `-1.#IND`.
        let number: f64 = if text.contains(".#") { f64::NAN } else { text.parse().ok()? };
        self.rest = rest;
        Some(if number.is_finite() { number } else { 0.0 })
    }

    /// Returns everything up to a byte, and skips the byte.
    pub(super) fn until(&mut self, end: u8) -> Option<&'a [u8]> {
        let at = self.rest.iter().position(|byte| *byte == end)?;
        let (before, rest) = (self.rest.get(..at)?, self.rest.get(at + 1..)?);
        self.rest = rest;
        Some(before)
    }

    /// Returns `true` at the end of the line.
    pub(super) fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns `Some` at the end of the line.
    pub(super) fn done(&self) -> Option<()> {
        self.is_done().then_some(())
    }
}

#[inline]
fn hex_digit(byte: u8) -> Option<u8> {
    Some(match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        b'A'..=b'F' => byte - b'A' + 10,
        _ => return None,
    })
}

/// Parses a whole text as an object ID.
#[inline]
pub(super) fn whole_id(text: &[u8]) -> Option<ObjectId> {
    whole_hex(text).map(ObjectId)
}

/// Parses a whole text as a hexadecimal number.
#[inline]
pub(super) fn whole_hex(text: &[u8]) -> Option<u64> {
    let mut scan = Scan::new(text);
    let number = scan.hex()?;
    scan.done()?;
    Some(number)
}

/// Removes leading spaces and tabs.
#[inline]
pub(super) fn trim_start(text: &[u8]) -> &[u8] {
    let mut scan = Scan::new(text);
    scan.spaces();
    scan.remaining()
}

/// Removes trailing spaces and tabs.
#[inline]
pub(super) fn trim_end(mut text: &[u8]) -> &[u8] {
    while let [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// Splits a text at the last occurrence of `mark`.
pub(super) fn rsplit_once<'a>(text: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = text.windows(mark.len().max(1)).rposition(|window| window == mark)?;
    Some((text.get(..at)?, text.get(at + mark.len()..)?))
}

/// Splits a text before the last word.
#[inline]
pub(super) fn last_word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text.iter().rposition(|byte| matches!(byte, b' ' | b'\t'))?;
    Some((trim_end(text.get(..at)?), text.get(at + 1..)?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let hex = |text: &str| whole_hex(text.as_bytes());
        assert_eq!(
            [hex("0"), hex("0x7c00012a8"), hex("ABCdef")],
            [Some(0), Some(0x7_c000_12a8), Some(0xab_cdef)]
        );
        assert_eq!(
            [hex("ffffffffffffffff"), hex("1ffffffffffffffff"), hex("")],
            [Some(u64::MAX), None, None]
        );
        assert_eq!([hex("12g"), hex("0x")], [None, None]);
        let decimal = |text: &'static str| Scan::new(text.as_bytes()).decimal();
        assert_eq!(decimal("18446744073709551615 "), Some(u64::MAX));
        assert_eq!([decimal("18446744073709551616"), decimal("-1"), decimal("")], [None; 3]);
        assert_eq!(Scan::new(b"-9223372036854775808").signed_decimal(), Some(i64::MIN));
        assert_eq!(Scan::new(b"-9223372036854775809").signed_decimal(), None);
        assert_eq!(Scan::new(b"-1").serial(), Some(u32::MAX));
        assert_eq!(
            [Scan::new(b"4294967295").serial(), Scan::new(b"4294967296").serial()],
            [Some(u32::MAX), None]
        );
    }

    #[test]
    fn percentages() {
        let percent = |text: &'static str| Scan::new(text.as_bytes()).percent();
        assert_eq!(
            [percent("12.34%"), percent("100.00% "), percent("7,5%")],
            [Some(12.34), Some(100.0), Some(7.5)]
        );
        assert_eq!([percent("nan%"), percent("-nan%"), percent("-1.#IND%")], [Some(0.0); 3]);
        assert_eq!([percent("x%"), percent("1 %"), percent("12")], [None; 3]);
    }

    #[test]
    fn words() {
        assert_eq!(last_word(b"a b\t\tc"), Some((&b"a b"[..], &b"c"[..])));
        assert_eq!(last_word(b"abc"), None);
        assert_eq!(rsplit_once(b"a, b, c", b", "), Some((&b"a, b"[..], &b"c"[..])));
        assert_eq!(rsplit_once(b"abc", b", "), None);
    }
}
