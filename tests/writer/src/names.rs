//! Encoding of names in dumps: modified UTF-8, and the three forms of class names.
//!
//! Tests use the class names of Java source (`java.util.HashMap$Node`, `byte[]`); this module converts
//! them to those of a JVM. The reverse conversion is the reader's task and not implemented here.

/// Style of class names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameStyle {
    /// HotSpot: `java/lang/String`, `[B`, `[Ljava/lang/String;`.
    HotSpot,
    /// The agent and ART: `java.lang.String`, `byte[]`, `java.lang.String[]`.
    Source,
    /// `Class.getName`: `java.lang.String`, `[B`, `[Ljava.lang.String;`.
    ClassGetName,
}

impl NameStyle {
    /// Every style.
    pub const ALL: [Self; 3] = [Self::HotSpot, Self::Source, Self::ClassGetName];

    /// Converts a name in Java source form.
    pub fn spell(self, source: &str) -> String {
        match self {
            Self::Source => source.to_owned(),
            Self::HotSpot => descriptor(source).replace('.', "/"),
            Self::ClassGetName => descriptor(source),
        }
    }
}

/// Converts `int[][]` to `[[I`, `a.B[]` to `[La.B;`; returns other names unchanged.
fn descriptor(source: &str) -> String {
    let mut element = source;
    let mut dimensions = 0;
    while let Some(shorter) = element.strip_suffix("[]") {
        element = shorter;
        dimensions += 1;
    }
    if dimensions == 0 {
        return source.to_owned();
    }
    let letter = match element {
        "boolean" => "Z",
        "char" => "C",
        "float" => "F",
        "double" => "D",
        "byte" => "B",
        "short" => "S",
        "int" => "I",
        "long" => "J",
        _ => return format!("{}L{element};", "[".repeat(dimensions)),
    };
    format!("{}{letter}", "[".repeat(dimensions))
}

/// Encodes text as in class files and dumps: U+0000 as two bytes, and characters above U+FFFF as two
/// surrogates of three bytes each.
pub fn modified_utf8(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for unit in text.encode_utf16() {
        let bits = |shift: u16, mask: u16| u8::try_from((unit >> shift) & mask).expect("at most six bits");
        match unit {
            0x01..=0x7F => out.push(bits(0, 0x7F)),
            0 | 0x80..=0x7FF => out.extend([0xC0 | bits(6, 0x1F), 0x80 | bits(0, 0x3F)]),
            0x800.. => out.extend([0xE0 | bits(12, 0x0F), 0x80 | bits(6, 0x3F), 0x80 | bits(0, 0x3F)]),
        }
    }
    out
}
