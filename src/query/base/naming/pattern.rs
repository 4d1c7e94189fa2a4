//! Class and method patterns: selecting classes and methods by name.
//!
//! * `java.util.HashMap$Node`, `byte[]`: the class of that name;
//! * `[B`, `java/lang/String`: the same in the JVM's spelling;
//! * `HashMap`, `String[]`: a simple name, of whatever package;
//! * `Node`: also the simple name of a nested class, `java.util.HashMap$Node`;
//! * `HashMap.Node`, `java.util.HashMap.Node`: a nested class as Java source writes it; the outer class may be nested too;
//! * `com.acme.**`: a glob; `*` and `?` do not match dots, `**` does;
//! * `*Cache`, `Map$*`: without a dot, also the name after the last dot;
//! * `…catalyst.expressions.Row`, `…$Node`, `Condition…`: a name as narrow tables shorten it; the mark matches anything.
//!
//! A pattern with `$`, `*` or `?` is matched as written: `*` matches `$` like any other character, and only `$` matches
//! `$`. A dot before part of a package name does not separate a nested class: `lang.String` is not `java.lang.String`.
//!
//! Methods are `CLASS.METHOD`: `com.acme.Main.run`, `Main.run`, `Node.getKey`, `com.acme.**`, `HashMap.put*`, `run`, `<init>`.

use std::convert::Infallible;
use std::str::FromStr;

use hprof_values::names;

/// A pattern of class names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassPattern {
    /// The pattern as given.
    text: String,
    /// The pattern in Java source form.
    glob: String,
    /// `true` if it can match the name after the last dot.
    simple: bool,
    /// `true` if it is a name without `$`, which can be the name of a nested class.
    plain: bool,
}

impl FromStr for ClassPattern {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        // A name truncated in a table: the mark stands for any text.
        let glob = names::java_class_name(text).replace('…', "**");
        let simple = !glob.contains('.');
        let plain = !glob.is_empty() && !glob.contains(['$', '*', '?']);
        Ok(Self { text: text.to_owned(), glob, simple, plain })
    }
}

impl ClassPattern {
    /// Returns the pattern as given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the pattern matches a class of this name in Java source form.
    pub fn matches(&self, name: &str) -> bool {
        self.matches_as_written(name) || (self.plain && self.matches_nested(name))
    }

    /// Returns whether the pattern matches a class of this name, except for nested classes that the pattern does not name with
    /// `$`: classes that match as written come first where a single class is wanted.
    pub fn matches_as_written(&self, name: &str) -> bool {
        if self.matches_all_of(name) {
            return true;
        }
        let last = name.rsplit_once('.').map(|(_, last)| last);
        self.simple && last.is_some_and(|last| self.matches_all_of(last))
    }

    /// Returns whether the pattern matches a class of this name, or one that it is nested in: one whose name is followed
    /// by `$`.
    pub fn matches_with_nested(&self, name: &str) -> bool {
        /// Maximum number of classes that enclose a class.
        const MAX_AROUND: usize = 64;
        let ends = || name.match_indices('$').map(|(at, _)| at).take(MAX_AROUND).chain([name.len()]);
        if self.plain {
            return ends().any(|end| name.get(..end).is_some_and(|name| self.matches(name)));
        }
        let last = name.rfind('.').filter(|_| self.simple).map(|dot| dot + 1);
        [Some(0), last].into_iter().flatten().any(|start| {
            let reached =
                glob_reached(self.glob.as_bytes(), name.as_bytes().get(start..).unwrap_or_default());
            ends().any(|end| end.checked_sub(start).and_then(|at| reached.get(at)) == Some(&true))
        })
    }

    fn matches_all_of(&self, name: &str) -> bool {
        // Most patterns are names.
        if self.plain { self.glob == name } else { glob_matches(self.glob.as_bytes(), name.as_bytes()) }
    }

    /// Returns whether the pattern matches the name of a nested class: the name has `$` where the pattern has a dot,
    /// and before the part that the pattern matches.
    fn matches_nested(&self, name: &str) -> bool {
        let is_same = |part: &str| {
            part.len() == self.glob.len()
                && part.bytes().zip(self.glob.bytes()).all(|(a, b)| a == b || (a == b'$' && b == b'.'))
        };
        if !name.contains('$') {
            return false;
        }
        let last = name.rsplit_once('.').map_or(name, |(_, last)| last);
        let inner = || {
            let start = last.len().checked_sub(self.glob.len())?;
            last.get(..start)?.ends_with('$').then(|| last.get(start..))?
        };
        is_same(name) || is_same(last) || inner().is_some_and(is_same)
    }
}

/// A pattern of methods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodPattern {
    /// Pattern matched as written against class and method.
    whole: ClassPattern,
    /// Class and method of a pattern without `$`, `*` and `?`.
    parts: Option<(ClassPattern, String)>,
}

impl FromStr for MethodPattern {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let whole: ClassPattern = text.parse()?;
        let parts = match whole.glob.rsplit_once('.').filter(|_| whole.plain) {
            Some((class, method)) => Some((class.parse()?, method.to_owned())),
            None => None,
        };
        Ok(Self { whole, parts })
    }
}

impl MethodPattern {
    /// Returns the pattern as given.
    pub fn text(&self) -> &str {
        self.whole.text()
    }

    /// Returns whether the pattern matches a method of this name (`com.acme.Main.run`).
    pub fn matches(&self, qualified: &str) -> bool {
        if self.whole.matches_as_written(qualified) {
            return true;
        }
        let Some((class, method)) = qualified.rsplit_once('.') else { return false };
        if let Some((of, wanted)) = &self.parts {
            return wanted == method && of.matches(class);
        }
        // `Main.ru*`: a class without its package.
        let package = class.rsplit_once('.').map(|(package, _)| package.len() + 1);
        let without = package.and_then(|start| qualified.get(start..));
        let has_class = self.whole.glob.matches('.').count() == 1;
        has_class && without.is_some_and(|name| self.whole.matches_all_of(name))
    }
}

/// Returns whether any of the patterns matches; no patterns match all names.
pub fn any_matches(patterns: &[ClassPattern], name: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(name))
}

fn glob_matches(pattern: &[u8], name: &[u8]) -> bool {
    glob_reached(pattern, name).last().copied().unwrap_or(false)
}

/// Returns, for each prefix length of the name in bytes, whether the pattern matches that prefix. Matches without backtracking:
/// after each byte of the pattern, tracks which prefixes of the name it can match. The time is at most proportional to the
/// product of both lengths.
fn glob_reached(pattern: &[u8], name: &[u8]) -> Vec<bool> {
    // `reached[i]`: `true` if the pattern so far can match the first i bytes of the name.
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
                // A star matches one more byte, or nothing.
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
    reached
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
            // Names as truncated in tables.
            ("Condition…", "java.util.concurrent.locks.AQS$ConditionObject", false),
            ("…$ConditionObject", "java.util.concurrent.locks.AQS$ConditionObject", true),
            ("AbstractQueuedSyn…", "java.util.concurrent.locks.AbstractQueuedSynchronizer", true),
            ("…Condition…", "java.util.concurrent.locks.AQS$ConditionObject", true),
            ("…catalyst.expressions.Row", "org.apache.spark.sql.catalyst.expressions.Row", true),
            ("…expressions.Row", "org.apache.spark.sql.catalyst.expressions.RowSet", false),
            ("java.util.…Map", "java.util.concurrent.ConcurrentHashMap", true),
            // Initials are package names like any other.
            ("a.b.C", "alpha.beta.C", false),
            ("1.2.3", "10.20.3", false),
            // Simple names of nested classes.
            ("Node", "java.util.HashMap$Node", true),
            ("Node", "HashMap$Node", true),
            ("Node[]", "java.util.HashMap$Node[]", true),
            ("Node", "java.util.HashMap$Node[]", false),
            ("Node", "java.util.HashMap$TreeNode", false),
            ("Deep", "a.Outer$Inner$Deep", true),
            ("Inner", "a.Outer$Inner$Deep", false),
            ("1", "a.Outer$1", true),
            ("", "a.Outer$", false),
            ("", "", true),
            // Nested classes as Java source writes them.
            ("HashMap.Node", "java.util.HashMap$Node", true),
            ("HashMap.Node", "HashMap$Node", true),
            ("HashMap.Node[]", "java.util.HashMap$Node[]", true),
            ("java.util.HashMap.Node", "java.util.HashMap$Node", true),
            ("java/util/HashMap.Node", "java.util.HashMap$Node", true),
            ("Inner.Deep", "a.Outer$Inner$Deep", true),
            ("a.Outer.Inner.Deep", "a.Outer$Inner$Deep", true),
            ("Outer.Deep", "a.Outer$Inner$Deep", false),
            ("Map.Node", "java.util.HashMap$Node", false),
            ("util.HashMap.Node", "java.util.HashMap$Node", false),
            ("lang.String", "java.lang.String", false),
            // A pattern with `$` or a glob is matched as written.
            ("HashMap$Node", "java.util.HashMap$Node", true),
            ("Inner$Deep", "a.Outer$Inner$Deep", false),
            ("Map$Node", "java.util.HashMap$Node", false),
            ("java$util.HashMap", "java.util.HashMap", false),
            ("Nod*", "java.util.HashMap$Node", false),
            ("*Node", "java.util.HashMap$Node", true),
            ("HashMap.*", "java.util.HashMap$Node", false),
        ];
        for (pattern, name, expected) in cases {
            let parsed: ClassPattern = pattern.parse().unwrap();
            assert_eq!(parsed.matches(name), expected, "{pattern} on {name}");
        }
    }

    #[test]
    fn nested_classes_belong_to_those_around_them() {
        let cases = [
            ("com.acme.Order", "com.acme.Order$Item", true),
            ("com.acme.Order", "com.acme.Order$$Lambda$3", true),
            ("com.acme.Order", "com.acme.Orders$Item", false),
            ("com.acme.*Order", "com.acme.BigOrder$Item$1", true),
            ("com.acme.*", "com.acme.a.Order$Item", false),
            ("Order", "com.acme.Order$Item$1", true),
            ("*Order", "com.acme.Order$Item", true),
            ("*Order", "com.Order.Other", false),
            ("com.acme.Order$Item", "com.acme.Order", false),
        ];
        for (pattern, name, expected) in cases {
            let parsed: ClassPattern = pattern.parse().unwrap();
            assert_eq!(parsed.matches_with_nested(name), expected, "{pattern} on {name}");
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
            ("…HashMap.put", "java.util.HashMap.put", true),
            ("…HashMap$Node.getK…", "java.util.HashMap$Node.getKey", true),
            ("j.u.HashMap.put", "java.util.HashMap.put", false),
            ("Node.getKey", "java.util.HashMap$Node.getKey", true),
            ("HashMap.Node.getKey", "java.util.HashMap$Node.getKey", true),
            ("java.util.HashMap.Node.getKey", "java.util.HashMap$Node.getKey", true),
            ("HashMap.Node", "java.util.HashMap$Node.getKey", false),
            ("HashMap.getKey", "java.util.HashMap$Node.getKey", false),
            ("run", "a.B.lambda$run", false),
            ("run", "a.B$run.other", false),
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
