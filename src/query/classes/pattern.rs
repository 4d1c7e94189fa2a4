//! Class and method patterns: which classes and methods a user means.
//!
//! * `java.util.HashMap$Node`, `byte[]`: the class of that name;
//! * `[B`, `java/lang/String`: the same in the JVM's spelling;
//! * `com.acme.**`: a glob; `*` and `?` stay within a part of the name, `**` goes across dots;
//! * `HashMap`, `*Cache`: without a dot, also the name after the last dot.
//!
//! Methods are `CLASS.METHOD`: `com.acme.Main.run`, `com.acme.**`, `HashMap.put*`, `run`, `<init>`.

use std::convert::Infallible;
use std::str::FromStr;

use crate::hprof::names;

/// A pattern of class names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassPattern {
    glob: String,
    /// Whether it may match the name after the last dot.
    simple: bool,
}

impl FromStr for ClassPattern {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let glob = names::java_class_name(text);
        let simple = !glob.contains('.');
        Ok(Self { glob, simple })
    }
}

impl ClassPattern {
    /// Whether a class of this name, in Java source form, is meant.
    pub fn matches(&self, name: &str) -> bool {
        if glob_matches(self.glob.as_bytes(), name.as_bytes()) {
            return true;
        }
        let last = name.rsplit_once('.').map(|(_, last)| last);
        self.simple && last.is_some_and(|last| glob_matches(self.glob.as_bytes(), last.as_bytes()))
    }
}

/// A pattern of methods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodPattern(ClassPattern);

impl FromStr for MethodPattern {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.parse()?))
    }
}

impl MethodPattern {
    /// Whether a method of this name (`com.acme.Main.run`) is meant.
    pub fn matches(&self, qualified: &str) -> bool {
        if self.0.matches(qualified) {
            return true;
        }
        // `Main.run`: a class without its package.
        let Some((class, _)) = qualified.rsplit_once('.') else { return false };
        let package = class.rsplit_once('.').map(|(package, _)| package.len() + 1);
        let without = package.and_then(|start| qualified.get(start..));
        let has_class = self.0.glob.matches('.').count() == 1;
        has_class && without.is_some_and(|name| glob_matches(self.0.glob.as_bytes(), name.as_bytes()))
    }
}

/// Whether any of the patterns matches; all names match no pattern at all.
pub fn any_matches(patterns: &[ClassPattern], name: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(name))
}

/// Matches without backtracking: after each byte of the pattern, which starts of the name it can match. Time is at most
/// the product of both lengths.
fn glob_matches(pattern: &[u8], name: &[u8]) -> bool {
    // `reached[i]`: whether the pattern so far can match the first i bytes of the name.
    let mut reached = vec![false; name.len() + 1];
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    let mut rest = pattern;
    while let Some((&byte, after)) = rest.split_first() {
        let crosses = byte == b'*' && after.first() == Some(&b'*');
        let mut next = vec![false; name.len() + 1];
        let mut alive = false;
        for at in 0..=name.len() {
            let here = reached.get(at).copied().unwrap_or(false);
            let before = at.checked_sub(1).and_then(|at| name.get(at));
            let matched = if byte == b'*' {
                // A star matches one more byte, or nothing more.
                alive = here || (alive && before.is_some_and(|before| crosses || *before != b'.'));
                alive
            } else {
                let came = at > 0 && reached.get(at - 1).copied().unwrap_or(false);
                came && before.is_some_and(|before| *before == byte || (byte == b'?' && *before != b'.'))
            };
            if let Some(next) = next.get_mut(at) {
                *next = matched;
            }
        }
        reached = next;
        rest = if crosses { after.get(1..).unwrap_or_default() } else { after };
    }
    reached.last().copied().unwrap_or(false)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_globs_and_the_jvms_spelling() {
        let cases = [
            ("java.lang.String", "java.lang.String", true),
            ("java/lang/String", "java.lang.String", true),
            ("java.lang.String", "java.lang.StringBuilder", false),
            ("[B", "byte[]", true),
            ("byte[]", "byte[]", true),
            ("byte[]", "byte[][]", false),
            ("[Ljava/lang/String;", "java.lang.String[]", true),
            ("com.acme.**", "com.acme.a.B", true),
            ("com.acme.*", "com.acme.a.B", false),
            ("com.acme.*", "com.acme.B$C", true),
            ("com/acme/**", "com.acme.B", true),
            ("com.acme.**", "com.acme", false),
            ("com.acme**", "com.acme", true),
            ("**.HashMap*", "java.util.HashMap$Node", true),
            ("HashMap", "java.util.HashMap", true),
            ("*Map", "java.util.HashMap", true),
            ("*Map", "java.util.HashMap$Node", false),
            ("HashMa?", "java.util.HashMap", true),
            ("java?util.HashMap", "java.util.HashMap", false),
            ("**", "anything.at.all", true),
            ("", "a", false),
            ("*[]", "int[]", true),
        ];
        for (pattern, name, expected) in cases {
            let parsed: ClassPattern = pattern.parse().unwrap();
            assert_eq!(parsed.matches(name), expected, "{pattern} on {name}");
        }
    }

    #[test]
    fn methods() {
        let cases = [
            ("java.util.HashMap.put", "java.util.HashMap.put", true),
            ("java/util/HashMap.put", "java.util.HashMap.put", true),
            ("put", "java.util.HashMap.put", true),
            ("put", "java.util.HashMap.putVal", false),
            ("put*", "java.util.HashMap.putVal", true),
            ("HashMap.put", "java.util.HashMap.put", true),
            ("HashMap.*", "java.util.HashMap.put", true),
            ("Map.put", "java.util.HashMap.put", false),
            ("java.util.**", "java.util.HashMap.put", true),
            ("java.util.*", "java.util.HashMap.put", false),
            ("<init>", "a.B.<init>", true),
            ("Main.run", "Main.run", true),
            ("run", "run", true),
        ];
        for (pattern, name, expected) in cases {
            let parsed: MethodPattern = pattern.parse().unwrap();
            assert_eq!(parsed.matches(name), expected, "{pattern} on {name}");
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        let pattern: ClassPattern = "**a".repeat(200).parse().unwrap();
        assert!(!pattern.matches(&"a".repeat(199)));
        assert!(pattern.matches(&"a".repeat(200)));
    }

    #[test]
    fn no_pattern_matches_all() {
        assert!(any_matches(&[], "x"));
        assert!(!any_matches(&["y".parse().unwrap()], "x"));
    }
}
