//! Damage of complete dumps as in real files. Works on bytes, independently of records.

/// Truncates a dump to `len` bytes: a full disk.
pub fn cut(bytes: &[u8], len: usize) -> Vec<u8> {
    bytes[..len.min(bytes.len())].to_vec()
}

/// Replaces every 0x0A with 0x0D 0x0A: a transfer in text mode.
pub fn crlf(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        if byte == b'\n' {
            out.push(b'\r');
        }
        out.push(byte);
    }
    out
}

/// Replaces invalid UTF-8 with EF BF BD: a program that treated the dump as text.
pub fn through_utf8(bytes: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(bytes).into_owned().into_bytes()
}

/// Replaces one byte.
pub fn with_byte(bytes: &[u8], at: usize, value: u8) -> Vec<u8> {
    let mut out = bytes.to_vec();
    out[at] = value;
    out
}

/// Replaces four bytes with a big-endian number: a wrong count or length.
pub fn with_u4(bytes: &[u8], at: usize, value: u32) -> Vec<u8> {
    let mut out = bytes.to_vec();
    out[at..at + 4].copy_from_slice(&value.to_be_bytes());
    out
}
