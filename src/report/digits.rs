//! Digits of numbers, appended to bytes: for what is written once an object, where `write!` is several times slower.

/// Appends a number in decimal digits.
#[inline(always)]
pub(crate) fn push_decimal(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends a number in hexadecimal digits.
#[inline(always)]
pub(crate) fn push_hex(out: &mut Vec<u8>, number: u64) {
    let digits = (67 - (number | 1).leading_zeros()) / 4;
    let mut text = [0u8; 16];
    let mut rest = number << (64 - 4 * digits);
    for place in text.iter_mut().take(digits as usize) {
        let digit = (rest >> 60) as u8;
        *place = if digit < 10 { b'0' + digit } else { b'a' - 10 + digit };
        rest <<= 4;
    }
    out.extend_from_slice(text.get(..digits as usize).unwrap_or_default());
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
        }
    }
}
