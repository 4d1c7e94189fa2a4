//! Names of classes and methods, as they are written.

use hprof_format::names::java_class_name;

/// A class in Java source form, from its signature: `Ljava/lang/String;` is `java.lang.String`, `[[I` is `int[][]`.
pub fn java_class(signature: &str) -> String {
    java_class_name(without_ends(signature))
}

/// A class as HotSpot's dumps name it, from its signature: `java/lang/String`, `[I`, `[Ljava/lang/String;`. What a hidden
/// class has behind its name, HotSpot's dumps join with `+`: `Shop$$Lambda+0x0000000801002a08`.
pub fn internal_class(signature: &str) -> String {
    without_ends(signature).replace('.', "+")
}

/// `java/lang/String` of `Ljava/lang/String;`. Signatures of arrays are names as they are.
fn without_ends(signature: &str) -> &str {
    match signature.strip_prefix('L') {
        Some(class) => class.strip_suffix(';').unwrap_or(class),
        None => signature,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_names() {
        assert_eq!(java_class("Ljava/util/Map$Entry;"), "java.util.Map$Entry");
        assert_eq!(java_class("[[I"), "int[][]");
        assert_eq!(java_class("[Ljava/lang/Object;"), "java.lang.Object[]");
        assert_eq!(java_class("LPlain;"), "Plain");
        assert_eq!(internal_class("LPlain;"), "Plain");
        assert_eq!(internal_class("[Ljava/lang/Object;"), "[Ljava/lang/Object;");
        assert_eq!(internal_class("[J"), "[J");
        assert_eq!(internal_class("LA$$Lambda.0x1f;"), "A$$Lambda+0x1f");
    }
}
