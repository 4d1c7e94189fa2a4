//! Class names of text reports, converted to those of binary dumps.

use hprof_values::BasicType;

/// Type of the elements of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementType {
    Primitive(BasicType),
    Object,
}

/// Splits a name into the element's name and the number of dimensions. JDK 1.2 writes a space before brackets.
fn split_dimensions(name: &[u8]) -> (&[u8], usize) {
    let (mut element, mut dimensions) = (name, 0);
    while let Some(rest) = element.strip_suffix(b"[]") {
        dimensions += 1;
        element = rest.strip_suffix(b" ").unwrap_or(rest);
    }
    (element, dimensions)
}

fn primitive(name: &[u8]) -> Option<BasicType> {
    BasicType::PRIMITIVES.into_iter().find(|kind| kind.java_name().as_bytes() == name)
}

fn descriptor(kind: BasicType) -> u8 {
    match kind {
        BasicType::Boolean => b'Z',
        BasicType::Byte => b'B',
        BasicType::Char => b'C',
        BasicType::Short => b'S',
        BasicType::Int => b'I',
        BasicType::Long => b'J',
        BasicType::Float => b'F',
        BasicType::Double => b'D',
        BasicType::Object => b'L',
    }
}

/// Returns the name that HotSpot writes to dumps: `java/lang/String`, `[Ljava/lang/String;`, `[C`.
pub(super) fn binary_name(name: &[u8]) -> Vec<u8> {
    let (element, dimensions) = split_dimensions(name);
    let slashed = element.iter().map(|byte| if *byte == b'.' { b'/' } else { *byte });
    let mut binary = vec![b'['; dimensions];
    match primitive(element) {
        _ if dimensions == 0 => binary.extend(slashed),
        Some(kind) => binary.push(descriptor(kind)),
        None if element.starts_with(b"[") => binary.extend(slashed),
        None => {
            binary.push(b'L');
            binary.extend(slashed);
            binary.push(b';');
        }
    }
    binary
}

/// Returns the binary name of the array class with elements of a class, by that class's name in a text.
pub(super) fn array_name(element: &[u8]) -> Vec<u8> {
    let mut name = element.to_vec();
    name.extend_from_slice(b"[]");
    binary_name(&name)
}

/// Returns the element type of an array by its binary name.
pub(super) fn element_type(binary_name: &[u8]) -> ElementType {
    let kind = match binary_name {
        [b'[', letter] => BasicType::PRIMITIVES.into_iter().find(|kind| descriptor(*kind) == *letter),
        _ => None,
    };
    kind.map_or(ElementType::Object, ElementType::Primitive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (text, binary) in [
            ("java.lang.String", "java/lang/String"),
            ("java.lang.Class[]", "[Ljava/lang/Class;"),
            ("char[]", "[C"),
            ("char []", "[C"),
            ("int[][]", "[[I"),
            ("a.B[][]", "[[La/B;"),
            ("[Ljava.lang.String;", "[Ljava/lang/String;"),
            ("[C", "[C"),
            ("int", "int"),
            ("A$$Lambda$1/0x12", "A$$Lambda$1/0x12"),
        ] {
            assert_eq!(binary_name(text.as_bytes()), binary.as_bytes(), "{text}");
        }
        assert_eq!(array_name(b"char"), b"[C");
        assert_eq!(array_name(b"java.lang.String"), b"[Ljava/lang/String;");
        assert_eq!(element_type(b"[C"), ElementType::Primitive(BasicType::Char));
        assert_eq!(element_type(b"[[C"), ElementType::Object);
        assert_eq!(element_type(b"[La/B;"), ElementType::Object);
    }
}
