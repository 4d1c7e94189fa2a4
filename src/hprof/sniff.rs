//! Detection of a file's format from its first bytes, never from its name.

use crate::class_histogram::HistogramLine;
use crate::text;

/// Apparent format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// An HPROF binary.
    Hprof,
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
    /// An HPROF text report (`java.hprof.txt`).
    HprofText,
    /// An HPROF binary whose header was mangled by a text-mode transfer.
    MangledHprof,
    /// HTML, usually a server's error page.
    Html,
    /// An ELF file: a core dump, or a program.
    Elf,
    /// IBM's / OpenJ9's portable heap dump.
    Phd,
    /// A Java Flight Recording.
    Jfr,
    /// A tar archive.
    Tar,
    /// A zip or jar archive.
    Zip,
    /// bzip2.
    Bzip2,
    /// xz.
    Xz,
    /// JSON.
    Json,
    /// Only zeros.
    Zeros,
    /// A class histogram of `jmap -histo` or `jcmd GC.class_histogram`.
    ClassHistogram,
    /// Other text.
    Text,
    /// None of these.
    Other,
}

/// Detects the format of `bytes`, the start of a file. 600 bytes suffice.
pub fn sniff(bytes: &[u8]) -> FileKind {
    let text = bytes.trim_ascii_start();
    let head = bytes.get(..bytes.len().min(600)).unwrap_or_default();
    let lower: Vec<u8> = text.iter().take(16).map(u8::to_ascii_lowercase).collect();
    match bytes {
        [0x1f, 0x8b, ..] => return FileKind::Gzip,
        _ if behind_skippable_frames(head).starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) => return FileKind::Zstd,
        [0x7f, b'E', b'L', b'F', ..] => return FileKind::Elf,
        [b'F', b'L', b'R', 0, ..] => return FileKind::Jfr,
        [b'P', b'K', 3, 4, ..] => return FileKind::Zip,
        [b'B', b'Z', b'h', ..] => return FileKind::Bzip2,
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => return FileKind::Xz,
        _ => {}
    }
    if let Some(rest) = bytes.strip_prefix(b"JAVA PROFILE 1.0") {
        let version_end = rest.iter().position(|b| !matches!(b, b'.' | b'0'..=b'9'));
        return match version_end.and_then(|at| rest.get(at)) {
            Some(0) => FileKind::Hprof,
            Some(b',' | b'\r' | b'\n') => FileKind::HprofText,
            // The file ends in its first line.
            None => FileKind::Hprof,
            _ => FileKind::MangledHprof,
        };
    }
    // The file ends within the version.
    if bytes.starts_with(b"JAVA PROFILE") && b"JAVA PROFILE 1.0".starts_with(bytes) {
        return FileKind::Hprof;
    }
    // The length-prefixed magic of a PHD file is Java's modified UTF-8.
    if head.windows(18).take(4).any(|window| window == b"portable heap dump") {
        return FileKind::Phd;
    }
    if bytes.get(257..262) == Some(b"ustar") {
        return FileKind::Tar;
    }
    if lower.starts_with(b"<!doctype html") || lower.starts_with(b"<html") || lower.starts_with(b"<?xml") {
        return FileKind::Html;
    }
    let is_text = head.iter().all(|b| matches!(b, b'\t' | b'\n' | b'\r' | 0x20..=0x7e | 0x80..));
    // JSON is UTF-8 (RFC 8259); the last character of the head may be truncated.
    let is_utf8 = std::str::from_utf8(head).map_or_else(|error| error.error_len().is_none(), |_| true);
    if is_text && is_utf8 && starts_as_json(text) {
        return FileKind::Json;
    }
    if !head.is_empty() && head.iter().all(|b| *b == 0) {
        return FileKind::Zeros;
    }
    if text::is_report(bytes) {
        return FileKind::HprofText;
    }
    // Names of classes may contain control characters.
    if HistogramLine::is_histogram(head) {
        return FileKind::ClassHistogram;
    }
    if is_text {
        return FileKind::Text;
    }
    FileKind::Other
}

/// Returns whether a text starts with a JSON object or array (RFC 8259), and not, for example, with a TOML section.
fn starts_as_json(text: &[u8]) -> bool {
    let Some((first @ (b'{' | b'['), rest)) = text.split_first() else { return false };
    let rest = rest.trim_ascii_start();
    match (first, rest.first()) {
        (_, None | Some(b'"')) | (b'{', Some(b'}')) => true,
        (b'[', Some(b'{' | b'[' | b']' | b'-' | b'0'..=b'9')) => true,
        (b'[', _) => [&b"true"[..], b"false", b"null"].iter().any(|word| rest.starts_with(word)),
        _ => false,
    }
}

/// Skips the skippable frames at the start of a Zstandard file (RFC 8878, section 3.1.2): `pzstd` writes
/// one before each frame.
fn behind_skippable_frames(mut bytes: &[u8]) -> &[u8] {
    while let Some(([0x50..=0x5f, 0x2a, 0x4d, 0x18, length @ ..], rest)) = bytes.split_first_chunk::<8>() {
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        bytes = rest.get(length..).unwrap_or_default();
    }
    bytes
}

impl FileKind {
    /// Returns a clause that describes the format in an error message.
    pub fn describe(self) -> String {
        match self {
            Self::Hprof => "it looks like an HPROF binary of an unknown version",
            Self::Gzip => "it looks like gzip",
            Self::Zstd => "it looks like Zstandard",
            Self::HprofText => "it looks like an HPROF text report (java.hprof.txt)",
            Self::MangledHprof => "it looks like an HPROF binary that was damaged by a text-mode transfer",
            Self::Html => "it looks like HTML, perhaps a server's error page",
            Self::Elf => "it looks like an ELF file, perhaps a core dump",
            Self::Phd => "it looks like an IBM portable heap dump (PHD)",
            Self::Jfr => "it looks like a Java Flight Recording (JFR)",
            Self::Tar => "it looks like a tar archive",
            Self::Zip => "it looks like a zip or jar archive",
            Self::Bzip2 => "it looks like bzip2",
            Self::Xz => "it looks like xz",
            Self::Json => "it looks like JSON",
            Self::Zeros => "its first bytes are all zero",
            Self::ClassHistogram => {
                "it is a class histogram (jmap -histo, GC.class_histogram), which has counts and bytes by class, and no \
                 objects"
            }
            Self::Text => "it looks like text",
            Self::Other => "it does not start with \"JAVA PROFILE 1.0\"",
        }
        .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_recognised() {
        let mut tar = vec![b'x'; 300];
        tar[257..262].copy_from_slice(b"ustar");
        let cases: [(&[u8], FileKind); 43] = [
            (b"JAVA PROFILE 1.0.2\0\0\0\0\x08", FileKind::Hprof),
            (b"JAVA PROFILE 1.0\0", FileKind::Hprof),
            (b"JAVA PROFILE 1.0.2", FileKind::Hprof),
            (b" num     #instances         #bytes  class name (module)\n---", FileKind::ClassHistogram),
            (b"4711:\n\n num     #instances         #bytes  class name\n---", FileKind::ClassHistogram),
            (b"num instances bytes\n", FileKind::Text),
            (b"\n1\n2\n3\n4\nnum \t#instances\t#bytes\tClass description\n", FileKind::ClassHistogram),
            (b" 17: 3 72 A\n 18: 3 72 B\n 19: 3", FileKind::ClassHistogram),
            (b" 17: 3 72 A\n 18: 3 72 B", FileKind::Text),
            (
                b"# class histogram pid=4711\n4711:\n num #instances #bytes class name\n",
                FileKind::ClassHistogram,
            ),
            (b"JAVA PROFILE 1.0.1, created Fri Feb  6", FileKind::HprofText),
            (b"count callee caller time\n1 a.b()V", FileKind::HprofText),
            (b"\xef\xbb\xbf\r\nTRACE 5:\r\n", FileKind::HprofText),
            (b"THREAD START (obj=8b87a0, id = 4, name=\"main\", group=\"main\")\n", FileKind::HprofText),
            (b"TRACE is a word", FileKind::Text),
            (b"JAVA PROFILE 1.0.2\xef\xbf\xbd", FileKind::MangledHprof),
            (b"\x1f\x8b\x08", FileKind::Gzip),
            (b"\x28\xb5\x2f\xfd", FileKind::Zstd),
            (b"\x50\x2a\x4d\x18\x04\0\0\0abcd\x5f\x2a\x4d\x18\0\0\0\0\x28\xb5\x2f\xfd", FileKind::Zstd),
            (b"\x50\x2a\x4d\x18\x04\0\0\0abcd\x04\x22\x4d\x18", FileKind::Other),
            (b"\x50\x2a\x4d\x18\xff\xff\xff\xffabcd", FileKind::Other),
            (b"\n <!DOCTYPE HTML><title>", FileKind::Html),
            (b"<html>", FileKind::Html),
            (b"\x7fELF\x02", FileKind::Elf),
            (b"\0\x12portable heap dump", FileKind::Phd),
            (b"FLR\0\0\x02", FileKind::Jfr),
            (&tar, FileKind::Tar),
            (b"PK\x03\x04", FileKind::Zip),
            (b"BZh9", FileKind::Bzip2),
            (b"\xfd7zXZ\0", FileKind::Xz),
            (b" {\"a\": 1}", FileKind::Json),
            (b"[\"Gr\xc3\xbc\xc3", FileKind::Json),
            (b"[\n  [1]]", FileKind::Json),
            (b"[false]", FileKind::Json),
            (b"{", FileKind::Json),
            (b"[features]\nx = 1", FileKind::Text),
            (b"[package]\n", FileKind::Text),
            (b"{\n  key = 1\n}", FileKind::Text),
            (b"{\0\0\x01binary", FileKind::Other),
            (b"{\xff\xfe\x80 1", FileKind::Text),
            (&[0; 64], FileKind::Zeros),
            (b"hello", FileKind::Text),
            (b"\x01\x02\x03", FileKind::Other),
        ];
        for (bytes, looks) in cases {
            assert_eq!(sniff(bytes), looks, "{:?}", String::from_utf8_lossy(bytes));
            assert!(!looks.describe().is_empty());
        }
    }
}
