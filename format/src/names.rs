//! Class names in Java source form, as they are shown.
//!
//! HotSpot writes `java/lang/String` and `[B`, the agent and Android `java.lang.String`, `byte[]` or
//! `[Ljava.lang.String;`. All become `java.lang.String` and `byte[]`. Hidden classes keep their unique
//! suffix unchanged (`Foo$$Lambda$14/0x0000000801002a08`, since JDK 15
//! `Foo$$Lambda$14+0x0000000801002a08`).

/// Converts the name of a class from any notation to Java source form.
pub fn java_class_name(name: &str) -> String {
    let dimensions = name.bytes().take_while(|b| *b == b'[').count();
    let element = name.get(dimensions..).unwrap_or_default();
    let mut out = if dimensions == 0 { dotted(name) } else { element_name(element) };
    for _ in 0..dimensions {
        out.push_str("[]");
    }
    out
}

/// Returns the element type of an array descriptor: `B`, `Ljava/lang/String;`, or a plain name.
fn element_name(element: &str) -> String {
    let primitive = match element {
        "Z" => "boolean",
        "B" => "byte",
        "C" => "char",
        "S" => "short",
        "I" => "int",
        "J" => "long",
        "F" => "float",
        "D" => "double",
        _ => {
            let class = element.strip_prefix('L').and_then(|rest| rest.strip_suffix(';'));
            return dotted(class.unwrap_or(element));
        }
    };
    primitive.to_owned()
}

/// Replaces slashes with dots, except the one before a hidden class's suffix. JDK 1.2 writes arrays with
/// a space: `char []`.
fn dotted(name: &str) -> String {
    let (name, brackets) = name.find("[]").map_or((name, ""), |at| name.split_at(at));
    let name = if brackets.is_empty() { name } else { name.trim_end_matches(' ') };
    let hidden = name.rfind('/').filter(|at| {
        let suffix = name.get(at + 1..).and_then(|suffix| suffix.strip_prefix("0x"));
        suffix.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit()))
    });
    match hidden {
        Some(at) => format!("{}{}{brackets}", name[..at].replace('/', "."), &name[at..]),
        None => name.replace('/', ".") + brackets,
    }
}

/// Returns the package of a class in Java source form; for an array, the package of its element type. Empty for primitive
/// arrays and for the unnamed package.
pub fn package(java_name: &str) -> &str {
    let element = java_name.trim_end_matches("[]");
    let plain = element.split_once(['/', '+']).map_or(element, |(class, _)| class);
    plain.rfind('.').map_or("", |dot| &plain[..dot])
}

/// Returns `true` if a class is part of the JDK, by its name in Java source form, or if it is a primitive array.
pub fn is_of_jdk(name: &str) -> bool {
    let element = name.trim_end_matches("[]");
    !element.contains('.') && element != name
        || ["java.", "javax.", "jdk.", "sun.", "com.sun."].iter().any(|start| element.starts_with(start))
}

/// Returns the name of a class without its package: `Map$Entry[]` for `java.util.Map$Entry[]`.
pub fn simple(java_name: &str) -> &str {
    let package = package(java_name);
    let name = java_name.strip_prefix(package).unwrap_or(java_name);
    if package.is_empty() { java_name } else { name.strip_prefix('.').unwrap_or(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_becomes_one() {
        for spelling in ["java/lang/String", "java.lang.String"] {
            assert_eq!(java_class_name(spelling), "java.lang.String");
        }
        for spelling in
            ["[Ljava/lang/String;", "[Ljava.lang.String;", "java.lang.String[]", "java.lang.String []"]
        {
            assert_eq!(java_class_name(spelling), "java.lang.String[]");
        }
        assert_eq!(java_class_name("[[B"), "byte[][]");
        assert_eq!(java_class_name("[Z"), "boolean[]");
        assert_eq!(java_class_name("int[]"), "int[]");
        assert_eq!(java_class_name("Plain"), "Plain");
        assert_eq!(java_class_name(""), "");
        assert_eq!(java_class_name("["), "[]");
    }

    #[test]
    fn hidden_classes_keep_their_suffix() {
        for (raw, shown) in [
            ("a/B$$Lambda$14/0x0000000801002a08", "a.B$$Lambda$14/0x0000000801002a08"),
            ("a/B$$Lambda+0x0000000801002a08", "a.B$$Lambda+0x0000000801002a08"),
            ("a.B$$Lambda/0x0801", "a.B$$Lambda/0x0801"),
            ("[La/B$$Lambda+0x01;", "a.B$$Lambda+0x01[]"),
            ("a/0x/B", "a.0x.B"),
        ] {
            assert_eq!(java_class_name(raw), shown);
        }
    }

    #[test]
    fn packages() {
        assert_eq!(package("java.util.HashMap$Node[]"), "java.util");
        assert_eq!(package("byte[]"), "");
        assert_eq!(package("Main"), "");
        assert_eq!(package("a.b.C$$Lambda/0x1"), "a.b");
    }
}
