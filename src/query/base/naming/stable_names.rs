//! Names of classes and class loaders that are the same in every dump of a program.
//!
//! The JVM and libraries generate classes while a program runs, and number them or name them by addresses: lambdas, proxies,
//! accessors, generated subclasses. In the next run, or after the next deployment, the same class has another number. Such
//! a name is reduced to its stem, with `*` for the variable part: `com.acme.Shop$$Lambda*`, `jdk.proxy*.$Proxy*`.

use std::borrow::Cow;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use hprof_index::model::summary::Summary;
use hprof_values::ObjectId;

/// Marks of generated classes: what follows one, up to an array's brackets, is a number or a hash.
///
/// The first are the JDK's (`LambdaMetafactory`, `InvokerBytecodeGenerator`, `MethodAccessorGenerator`), the others
/// those of CGLIB, Spring, Guice, Hibernate, Byte Buddy, Mockito and Javassist.
const MARKS: &[&str] = &[
    "$$Lambda",
    "$$InjectedInvoker",
    "$$StringConcat",
    "LambdaForm$BMH",
    "LambdaForm$DMH",
    "LambdaForm$LFI",
    "LambdaForm$MH",
    "LambdaForm$VH",
    "GeneratedConstructorAccessor",
    "GeneratedMethodAccessor",
    "GeneratedSerializationConstructorAccessor",
    "$$EnhancerByCGLIB$$",
    "$$EnhancerByGuice$$",
    "$$EnhancerBySpringCGLIB$$",
    "$$FastClassByCGLIB$$",
    "$$FastClassByGuice$$",
    "$$FastClassBySpringCGLIB$$",
    "$$KeyFactoryByCGLIB$$",
    "$$SpringCGLIB$$",
    "$HibernateProxy$",
    "$HibernateBasicProxy$",
    "$ByteBuddy$",
    "$MockitoMock$",
    "_$$_jvst",
];

/// Name of the loader of the JDK's own classes, which is not an object.
pub const BOOT_LOADER: &str = "<boot loader>";
/// Name of a loader whose class is not in the dump.
pub const UNKNOWN_LOADER: &str = "<unknown loader>";

/// Prefixes of numbered names: of a class, and of a package.
const NUMBERED: &[&str] = &["$Proxy", "proxy"];

/// Maximum length of a name that is reduced: no generator creates longer names, and a hostile dump can have them
/// everywhere.
const MAX_NAME: usize = 4096;

/// Returns the name of a class without the parts that change from run to run.
pub fn stem(class: &str) -> Cow<'_, str> {
    if class.len() > MAX_NAME {
        return Cow::Borrowed(class);
    }
    let (element, brackets) = class.find("[]").map_or((class, ""), |at| class.split_at(at));
    // Names of hidden classes end with an address.
    let hidden = element.find("+0x").or_else(|| element.find("/0x"));
    let mark = MARKS.iter().filter_map(|mark| {
        let end = element.find(mark)? + mark.len();
        let next = element.get(end..)?.chars().next()?;
        // A mark followed by more letters is part of another word.
        (mark.ends_with('$') || *mark == "_$$_jvst" || !next.is_alphabetic()).then_some(end)
    });
    let mark = mark.min();
    if let Some(end) = hidden.into_iter().chain(mark).min() {
        return Cow::Owned(format!("{}*{brackets}", element.get(..end).unwrap_or(element)));
    }
    if !element.split('.').any(|part| numbered_prefix(part).is_some()) {
        return Cow::Borrowed(class);
    }
    let parts =
        element.split('.').map(|part| numbered_prefix(part).map_or(part.into(), |start| format!("{start}*")));
    Cow::Owned(parts.collect::<Vec<String>>().join(".") + brackets)
}

/// Returns `true` if a part of a class's name, between `$`, is written by a generator of classes.
pub fn is_mark(part: &str) -> bool {
    let word = part.trim_end_matches(|digit: char| digit.is_ascii_digit());
    let javassist = || part.strip_prefix("_jvst").is_some_and(|rest| rest.bytes().all(is_hexadecimal));
    let is_numbered = word.len() < part.len();
    (word == "Proxy" && is_numbered) || MARKS.iter().any(|mark| mark.trim_matches('$') == word) || javassist()
}

fn is_hexadecimal(byte: u8) -> bool {
    byte.is_ascii_hexdigit() || byte == b'_'
}

/// Stems of names, computed once each: all classes of a hostile dump can have the same name of 64 KB.
#[derive(Debug, Default)]
pub struct Stems<'a>(FxHashMap<(*const u8, usize), (&'a str, Arc<str>)>);

impl<'a> Stems<'a> {
    /// Returns the stem of a name. The name must be stored only once, so that its address identifies it.
    pub fn stem(&mut self, name: &'a str) -> Arc<str> {
        let place = (name.as_ptr(), name.len());
        self.0.entry(place).or_insert_with(|| (name, stem(name).into())).1.clone()
    }
}

/// Returns the prefix of a part of a name that ends with a number, if it is a known one: `$Proxy` of `$Proxy12`.
fn numbered_prefix(part: &str) -> Option<&str> {
    let start = part.trim_end_matches(|digit: char| digit.is_ascii_digit());
    (start.len() < part.len() && NUMBERED.contains(&start)).then_some(start)
}

/// Returns a name with each number replaced by `*`: `pool-*-thread-*`.
pub fn fold_numbers(name: &str) -> String {
    let mut masked = String::with_capacity(name.len());
    let mut is_in_number = false;
    for character in name.chars() {
        let is_digit = character.is_ascii_digit();
        if !is_digit {
            masked.push(character);
        } else if !is_in_number {
            masked.push('*');
        }
        is_in_number = is_digit;
    }
    masked
}

/// Merges two names of one form, with `*` for the numbers in which they differ; if only one is given, returns it.
pub fn in_common(a: Option<String>, b: Option<String>) -> Option<String> {
    let (Some(a), Some(b)) = (&a, &b) else { return a.or(b) };
    let mut name = String::with_capacity(a.len());
    let (mut of_a, mut of_b) = (a.as_str(), b.as_str());
    // A number in one name corresponds to a number or `*` in the other.
    while let (Some(first), Some(_)) = (of_a.chars().next(), of_b.chars().next()) {
        let (in_a, in_b) = (leading_digits(of_a), leading_digits(of_b));
        if in_a == 0 && in_b == 0 {
            name.push(first);
            (of_a, of_b) = (skip_bytes(of_a, first.len_utf8()), skip_bytes(of_b, first.len_utf8()));
            continue;
        }
        let (in_a, in_b) = (in_a.max(1), in_b.max(1));
        name.push_str(of_a.get(..in_a).filter(|number| of_b.get(..in_b) == Some(*number)).unwrap_or("*"));
        (of_a, of_b) = (skip_bytes(of_a, in_a), skip_bytes(of_b, in_b));
    }
    Some(name)
}

/// Returns the number of digits at the start.
fn leading_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn skip_bytes(text: &str, bytes: usize) -> &str {
    text.get(bytes..).unwrap_or_default()
}

/// Returns a key with each number, including hexadecimal ones, replaced by `*`: `order-*`, and `*-*-*-*-*` for most UUIDs.
pub fn fold_hex_numbers(key: &str) -> String {
    let mut unnumbered = String::with_capacity(key.len());
    let mut rest = key;
    while let Some(first) = rest.chars().next() {
        let is_hex = first.is_ascii_hexdigit();
        let end = rest.find(|character: char| character.is_ascii_hexdigit() != is_hex).unwrap_or(rest.len());
        let (run, behind) = rest.split_at(end);
        let is_number = is_hex && run.contains(|character: char| character.is_ascii_digit());
        unnumbered.push_str(if is_number { "*" } else { run });
        rest = behind;
    }
    unnumbered
}

/// Returns the name of a class loader across dumps: its class, and the name given to it, if any. Loaders of one class
/// without names count as the same loader.
pub fn loader(summary: &Summary, loader: ObjectId) -> String {
    if loader.is_null() {
        return BOOT_LOADER.to_owned();
    }
    let class = summary.loader_class(loader).map_or(Cow::Borrowed(UNKNOWN_LOADER), stem);
    match summary.loader_name(loader) {
        Some(name) => format!("{class} '{name}'"),
        None => class.into_owned(),
    }
}

/// Returns the name of a loader's class, without the name given to the loader, which is a value of the heap.
pub fn unnamed_loader(text: &str) -> &str {
    text.split_once(" '").map_or(text, |(class, _)| class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_addresses_go() {
        for (class, expected) in [
            ("com.acme.Shop$$Lambda$14/0x0000000801002a08", "com.acme.Shop$$Lambda*"),
            ("com.acme.Shop$$Lambda+0x0000000801002a08[]", "com.acme.Shop$$Lambda*[]"),
            ("com.acme.Shop$$Lambda$1.424058530", "com.acme.Shop$$Lambda*"),
            ("java.lang.invoke.LambdaForm$MH/0x0000000800c01000", "java.lang.invoke.LambdaForm$MH*"),
            ("com.acme.Hidden+0x01", "com.acme.Hidden*"),
            ("jdk.proxy2.$Proxy14", "jdk.proxy*.$Proxy*"),
            ("com.sun.proxy.$Proxy3[][]", "com.sun.proxy.$Proxy*[][]"),
            (
                "jdk.internal.reflect.GeneratedMethodAccessor12",
                "jdk.internal.reflect.GeneratedMethodAccessor*",
            ),
            ("a.Dao$$EnhancerBySpringCGLIB$$1f2e3d", "a.Dao$$EnhancerBySpringCGLIB$$*"),
            ("a.Order$HibernateProxy$x1Y2", "a.Order$HibernateProxy$*"),
        ] {
            assert_eq!(stem(class), expected);
        }
    }

    #[test]
    fn numbers_that_differ_are_masked() {
        let name =
            |names: &[&str]| names.iter().fold(None, |all, name| in_common(all, Some((*name).to_owned())));
        for (names, expected) in [
            (&["pool-1-thread-1", "pool-1-thread-12", "pool-1-thread-3"][..], "pool-1-thread-*"),
            (
                &["pool-1-thread-1", "pool-2-thread-1", "pool-2-thread-2", "pool-1-thread-1"],
                "pool-*-thread-*",
            ),
            (&["C1 Thread0", "C2 Thread0"], "C* Thread0"),
            (&["äß1", "äß1"], "äß1"),
            (&["*1*", "*22*", "*1*"], "***"),
            (&["1", "23", "4"], "*"),
            (&["", ""], ""),
        ] {
            assert_eq!(name(names).as_deref(), Some(expected));
        }
        assert_eq!(in_common(None, None), None);
    }

    #[test]
    fn numbers_are_masked() {
        assert_eq!(fold_numbers("pool-12-thread-3"), "pool-*-thread-*");
        assert_eq!(fold_numbers("main"), "main");
        assert_eq!(fold_numbers("a*1"), "a**");
        assert_eq!(fold_numbers("a1b22"), "a*b*");
        assert_eq!(fold_numbers(""), "");
    }

    #[test]
    fn numbers_of_keys_are_hexadecimal_too() {
        for (key, expected) in [
            ("s54", "s*"),
            ("order-2024-11-07", "order-*-*-*"),
            ("3f2504e0-4f89-11d3-9a0c-0305e82c3301", "*-*-*-*-*"),
            ("-17", "-*"),
            ("facade", "facade"),
            ("Benutzer é", "Benutzer é"),
            ("", ""),
        ] {
            assert_eq!(fold_hex_numbers(key), expected);
        }
    }

    #[test]
    fn other_names_stay() {
        for class in [
            "java.util.HashMap$Node[]",
            "com.acme.Shop$1",
            "com.acme.Proxy12",
            "com.acme.proxyv2.A",
            "byte[]",
            "",
            "a.GeneratedMethodAccessor",
            "com.acme.$$Lambda",
            "java.lang.invoke.LambdaForm$MHelper",
            "a.GeneratedMethodAccessorFactory",
        ] {
            assert_eq!(stem(class), class);
        }
    }
}
