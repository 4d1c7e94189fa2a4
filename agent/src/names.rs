//! Names of classes and methods in output.

use hprof_format::names::java_class_name;

/// Converts the signature of a class to Java source form: `Ljava/lang/String;` to `java.lang.String`, and `[[I` to `int[][]`.
pub fn java_class(signature: &str) -> String {
    java_class_name(without_ends(signature))
}

/// Converts the signature of a class to its name in HotSpot's dumps: `java/lang/String`, `[I`,
/// `[Ljava/lang/String;`. The suffix of a hidden class is joined with `+`:
/// `Shop$$Lambda+0x0000000801002a08`.
pub fn internal_class(signature: &str) -> String {
    without_ends(signature).replace('.', "+")
}

/// Returns `java/lang/String` for `Ljava/lang/String;`. Signatures of arrays are returned unchanged.
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
