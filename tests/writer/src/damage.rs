//! Ways in which finished dumps are spoiled in the wild. Works on bytes and knows nothing of records.

/// The first `len` bytes: a full disk.
pub fn cut(bytes: &[u8], len: usize) -> Vec<u8> {
    bytes[..len.min(bytes.len())].to_vec()
}

/// Every 0x0A becomes 0x0D 0x0A: a transfer in text mode.
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

/// Replaces invalid UTF-8 with EF BF BD, as a program does that takes the dump for text.
pub fn through_utf8(bytes: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(bytes).into_owned().into_bytes()
}

/// One byte replaced.
pub fn with_byte(bytes: &[u8], at: usize, value: u8) -> Vec<u8> {
    let mut out = bytes.to_vec();
    out[at] = value;
    out
}

/// Four bytes replaced by a big-endian number: a count or a length that lies.
pub fn with_u4(bytes: &[u8], at: usize, value: u32) -> Vec<u8> {
    let mut out = bytes.to_vec();
    out[at..at + 4].copy_from_slice(&value.to_be_bytes());
    out
}
