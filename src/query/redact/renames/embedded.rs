//! Names of renamed classes within other texts, regardless of the separators of their parts: `com$acme$Order` in
//! names of members and of generated classes, `Lcom/acme/Order;` in signatures, `/com/acme/Order.class` in texts.

use std::ops::Range;

use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_128;

/// Maximum number of parts of a name that are compared.
const MAX_PARTS: usize = 64;
/// Maximum number of capitals of a part at which a suffix is assumed to start.
const MAX_CAPITALS: usize = 8;
/// Letters of primitive types before a class in a signature.
const PRIMITIVES: [char; 9] = ['B', 'C', 'D', 'F', 'I', 'J', 'S', 'Z', 'V'];

/// Names of renamed classes with their new names, as a tree whose edges are the parts of names (letters and digits).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct EmbeddedNames {
    /// Node by parent node and hash of a part. The root is 0.
    nodes: FxHashMap<(usize, u128), usize>,
    /// New name of each node except the root, if a name ends there.
    names: Vec<Option<Box<str>>>,
}

/// A renamed class's name found in a text.
struct NameMatch<'n> {
    range: Range<usize>,
    /// Character after the first part.
    separator: char,
    new: &'n str,
}

impl EmbeddedNames {
    /// Adds a name with a package. Of several names with the same parts, the first counts.
    pub(super) fn add(&mut self, old: &str, new: &str) {
        let mut node = 0;
        for part in TextParts::new(old).take(MAX_PARTS) {
            let key = key(node, old.get(part).unwrap_or_default());
            node = *self.nodes.entry(key).or_insert_with(|| {
                self.names.push(None);
                self.names.len()
            });
        }
        if let Some(name) = node.checked_sub(1).and_then(|at| self.names.get_mut(at)) {
            name.get_or_insert_with(|| new.into());
        }
    }

    /// Returns `true` if a text contains a renamed class's name.
    pub(super) fn is_in(&self, text: &str) -> bool {
        let mut parts = TextParts::new(text);
        loop {
            let from = parts.clone();
            if parts.next().is_none() {
                return false;
            }
            if self.find(text, from).is_some() {
                return true;
            }
        }
    }

    /// Returns the text with the new names, with the separators of the old ones; `None` if it contains none.
    pub(super) fn with_new_names(&self, text: &str) -> Option<String> {
        let (mut new, mut end) = (String::new(), 0);
        let mut parts = TextParts::new(text);
        loop {
            let from = parts.clone();
            if parts.next().is_none() {
                break;
            }
            let Some(found) = self.find(text, from) else { continue };
            new.push_str(text.get(end..found.range.start).unwrap_or_default());
            new.extend(found.new.chars().map(|letter| match (letter, found.separator) {
                ('.', separator) | ('$', separator @ '_') => separator,
                (letter, _) => letter,
            }));
            end = found.range.end;
            parts.at = end;
        }
        (end > 0).then(|| new + text.get(end..).unwrap_or_default())
    }

    /// Returns the longest name that starts at the next part, or after a letter of a signature in it.
    fn find(&self, text: &str, mut parts: TextParts<'_>) -> Option<NameMatch<'_>> {
        let first = parts.next()?;
        let word = text.get(first.clone())?;
        let class = word.trim_start_matches(PRIMITIVES).strip_prefix('L').map(str::len);
        let starts = [Some(first.start), class.map(|length| first.end - length)];
        starts.into_iter().flatten().find_map(|start| self.find_at(text, start..first.end, parts.clone()))
    }

    fn find_at(&self, text: &str, first: Range<usize>, rest: TextParts<'_>) -> Option<NameMatch<'_>> {
        let before = text.get(..first.start).unwrap_or_default();
        let is_embedded = before.ends_with(['.', '/', '$', '_']);
        let separator = text.get(first.end..).and_then(|rest| rest.chars().next())?;
        let start = first.start;
        let (mut node, mut found) = (0, None);
        for part in [first].into_iter().chain(rest).take(MAX_PARTS) {
            let word = text.get(part.clone()).unwrap_or_default();
            let Some(next) = self.nodes.get(&key(node, word)) else {
                // `OrderMetaClass` may be in a different package than `Order`.
                if is_embedded && node > 0 {
                    let capitals =
                        word.char_indices().filter(|(at, letter)| *at > 0 && letter.is_uppercase());
                    let name = capitals.take(MAX_CAPITALS).filter_map(|(at, _)| {
                        Some((part.start + at, self.name(*self.nodes.get(&key(node, word.get(..at)?))?)?))
                    });
                    found = name.last().or(found);
                }
                break;
            };
            node = *next;
            found = self.name(node).map(|name| (part.end, name)).or(found);
        }
        found.map(|(end, new)| NameMatch { range: start..end, separator, new })
    }

    fn name(&self, node: usize) -> Option<&str> {
        self.names.get(node.checked_sub(1)?)?.as_deref()
    }
}

fn key(node: usize, part: &str) -> (usize, u128) {
    (node, xxh3_128(part.as_bytes()))
}

/// Iterator over the ranges of the parts of a text.
#[derive(Debug, Clone)]
struct TextParts<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> TextParts<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }
}

impl Iterator for TextParts<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let rest = self.text.get(self.at..)?;
        let start = self.at + rest.find(char::is_alphanumeric)?;
        let word = self.text.get(start..)?;
        self.at = start + word.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(word.len());
        Some(start..self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_whatever_form() {
        let mut names = EmbeddedNames::default();
        names.add("com.acme.Order", "c1.C1");
        names.add("com.acme.Order$Item", "c1.C1$C2");
        for (text, new) in [
            ("RMI /com/acme/Order", Some("RMI /c1/C1")),
            ("[Lcom.acme.Order;", Some("[Lc1.C1;")),
            ("(ILcom/acme/Order;Lx/Y;)V", Some("(ILc1/C1;Lx/Y;)V")),
            ("/com/acme/Order.class", Some("/c1/C1.class")),
            ("beans.com.acme.Order$Item!", Some("beans.c1.C1$C2!")),
            ("com$acme$Order-1", Some("c1$C1-1")),
            ("org.apache.openjpa.enhance.com$acme$Order$pc", Some("org.apache.openjpa.enhance.c1$C1$pc")),
            (
                "net/bytebuddy/renamed/com/acme/Order$ByteBuddy$a",
                Some("net/bytebuddy/renamed/c1/C1$ByteBuddy$a"),
            ),
            ("groovy/runtime/com/acme/OrderMetaClass", Some("groovy/runtime/c1/C1MetaClass")),
            ("ajc$before$com_acme_Order_Item$1$abc", Some("ajc$before$c1_C1_C2$1$abc")),
            ("com_acme_Order_cache", Some("c1_C1_cache")),
            ("array$$Lcom$acme$Order", Some("array$$Lc1$C1")),
            ("com.acme.Order, com.acme.Order", Some("c1.C1, c1.C1")),
            ("com.acme.OrderService", None),
            ("com.acme", None),
            ("com", None),
            ("Order", None),
            ("xcom.acme.Order", None),
            ("com.acme.Orders", None),
            ("", None),
        ] {
            assert_eq!(names.with_new_names(text).as_deref(), new, "{text}");
            assert_eq!(names.is_in(text), new.is_some(), "{text}");
        }
    }
}
