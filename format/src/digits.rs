//! Digits of numbers, appended to bytes, for output per object, where `write!` is several times slower.

pub use itoa::Integer;

/// Appends a number in decimal.
#[inline(always)]
pub fn push_decimal(out: &mut Vec<u8>, number: impl Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends a number in hexadecimal.
#[inline(always)]
pub fn push_hex(out: &mut Vec<u8>, number: u64) {
    let mut text = [0; 16];
    let digits = hex(number, &mut text);
    out.extend_from_slice(text.get(..digits).unwrap_or_default());
}

/// Formats a number in hexadecimal with the prefix `0x`, as object IDs are written.
#[inline(always)]
pub fn prefixed_hex(number: u64, text: &mut [u8; 18]) -> &str {
    let [zero, x, rest @ ..] = text;
    (*zero, *x) = (b'0', b'x');
    let digits = hex(number, rest);
    text.get(..2 + digits).and_then(|text| str::from_utf8(text).ok()).unwrap_or_default()
}

/// Writes a number in hexadecimal; returns the number of digits.
#[inline(always)]
fn hex(number: u64, text: &mut [u8; 16]) -> usize {
    let digits = (67 - (number | 1).leading_zeros()) / 4;
    let mut rest = number << (64 - 4 * digits);
    for place in text.iter_mut().take(digits as usize) {
        let digit = (rest >> 60) as u8;
        *place = if digit < 10 { b'0' + digit } else { b'a' - 10 + digit };
        rest <<= 4;
    }
    digits as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_digits() {
        for number in [0, 1, 9, 10, 15, 16, 0xff, 0x100, 0x7_c000_12a8, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            push_hex(&mut out, number);
            assert_eq!(out, format!("{number:x}").as_bytes());
            assert_eq!(prefixed_hex(number, &mut [0; 18]), format!("{number:#x}"));
        }
    }
}
