//! Selections by users: objects by ID or class, threads by name or ID.
//!
//! An object ID is hexadecimal with `0x`, and decimal without, as in tables for other engines and OQL's `@objectAddress`.
//! Digits mixed with letters can only be hexadecimal, as the agent's texts print them: without `0x` they must begin with a
//! digit, or be long and contain one, since `cafe` is a class name. An ambiguous text (`decade20`) is the class if the dump
//! contains one of that name, else the object: [`Selection::resolve`].

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use roaring::RoaringBitmap;

use hprof_index::DumpGraph;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::Summary;
use hprof_values::ObjectId;

use hprof_base::naming::object_id::{
    NoObjectId, is_ambiguous, is_long_id, is_meant_as_id, object_id, without_prefix,
};
use hprof_base::naming::pattern::ClassPattern;
use hprof_base::parallel;

/// Number of objects per chunk.
const CHUNK: u32 = 1 << 18;

/// A selection of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The selection as given.
    pub text: String,
    /// Meaning of the selection.
    pub what: SelectionKind,
}

/// Meaning of a selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelectionKind {
    /// The object with this ID.
    Object(ObjectId),
    /// Objects of all classes that match.
    Classes(ClassPattern),
}

/// Error for a text that starts like an object ID and is not one.
impl FromStr for Selection {
    type Err = NoObjectId;

    fn from_str(text: &str) -> Result<Self, NoObjectId> {
        if !is_meant_as_id(text) {
            return Ok(Self::classes(text));
        }
        Ok(Self { text: text.to_owned(), what: SelectionKind::Object(object_id(text)?) })
    }
}

impl Selection {
    fn classes(text: &str) -> Self {
        // Every text is a pattern.
        let Ok(pattern) = text.parse();
        Self { text: text.to_owned(), what: SelectionKind::Classes(pattern) }
    }

    /// Returns whether the ID could also be a class name.
    pub fn is_ambiguous(&self) -> bool {
        matches!(self.what, SelectionKind::Object(_)) && is_ambiguous(&self.text)
    }

    /// Resolves ambiguity with the dump: an ID that is also the name of a class is taken as the class.
    #[must_use]
    pub fn resolve(&self, summary: &Summary) -> Self {
        if self.is_ambiguous() && is_class(summary, &self.text) {
            Self::classes(&self.text)
        } else {
            self.clone()
        }
    }

    /// Returns the indices of the selected objects.
    pub fn objects(&self, dump: &DumpGraph<'_>) -> RoaringBitmap {
        let pattern = match &self.what {
            SelectionKind::Object(id) => {
                return dump
                    .graph
                    .objects
                    .addresses
                    .index_of(*id)
                    .map(|object| object.0)
                    .into_iter()
                    .collect();
            }
            SelectionKind::Classes(pattern) => pattern,
        };
        let matches: Vec<bool> = dump
            .summary
            .classes()
            .iter()
            .map(|class| pattern.matches(dump.summary.class_name(class)))
            .collect();
        if !matches.contains(&true) {
            return RoaringBitmap::new();
        }
        let select = |chunk: Range<ObjectIndex>| -> RoaringBitmap {
            let classes = dump.graph.objects.classes(chunk.clone());
            let objects = ObjectIndex::range(chunk).zip(classes).filter_map(|(object, class)| {
                let is_meant = matches.get(class?.0 as usize).copied().unwrap_or(false);
                is_meant.then_some(object.0)
            });
            // They are in ascending order.
            RoaringBitmap::from_sorted_iter(objects).unwrap_or_default()
        };
        let all = ObjectIndex::chunks(dump.graph.objects.indices(), CHUNK);
        parallel::union(&all, select)
    }
}

/// Returns whether the dump contains a class of this name.
pub fn is_class(summary: &Summary, name: &str) -> bool {
    let Ok(pattern) = name.parse::<ClassPattern>();
    summary.classes().iter().any(|class| pattern.matches(summary.class_name(class)))
}

/// A selection of threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThreadPattern {
    /// The thread with this object ID.
    Object(ObjectId),
    /// Threads whose name contains this text; or, if it is an object ID without `0x`, the thread with that ID.
    Part(String),
    /// Threads whose whole name matches this pattern; `*` stands for any text.
    Glob(String),
}

impl FromStr for ThreadPattern {
    type Err = NoObjectId;

    fn from_str(text: &str) -> Result<Self, NoObjectId> {
        Ok(if without_prefix(text).is_some() {
            Self::Object(object_id(text)?)
        } else if text.contains('*') {
            Self::Glob(text.to_owned())
        } else {
            Self::Part(text.to_owned())
        })
    }
}

impl fmt::Display for ThreadPattern {
    /// Writes the text that it was parsed from.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(id) => write!(f, "{id:#x}"),
            Self::Part(text) | Self::Glob(text) => f.write_str(text),
        }
    }
}

impl ThreadPattern {
    /// Returns whether the pattern matches a thread with this object ID and name.
    pub fn matches(&self, id: ObjectId, name: Option<&str>) -> bool {
        match self {
            Self::Object(wanted) => *wanted == id,
            Self::Part(chunk) => {
                name.is_some_and(|name| name.contains(chunk.as_str()))
                    || (is_long_id(chunk) && object_id(chunk) == Ok(id))
            }
            Self::Glob(glob) => name.is_some_and(|name| glob_matches(glob, name)),
        }
    }
}

/// Returns whether the text matches the pattern, in which each `*` stands for any text.
pub fn glob_matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(start) else { return false };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    for chunk in middle.split('*') {
        // The first match leaves the most text for the following chunks.
        let Some(at) = text.find(chunk) else { return false };
        text = text.get(at + chunk.len()..).unwrap_or_default();
    }
    text.ends_with(end)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hprof_base::naming::object_id::with_digits_of;

    #[test]
    fn ids_and_classes() {
        let what = |text: &str| text.parse::<Selection>().map(|selection| selection.what);
        assert_eq!(what("0x7c00012a8"), Ok(SelectionKind::Object(ObjectId(0x7_c000_12a8))));
        assert_eq!(what("com.acme.**"), Ok(SelectionKind::Classes("com.acme.**".parse().unwrap())));
        for wrong in ["0x", "0xg", "0x+1", "0x11112222333344445", "111122223333444455556"] {
            assert_eq!(what(wrong), Err(NoObjectId(wrong.to_owned())));
        }
        for id in ["7c00012a8", "0x7C00012A8", "7C00012a8"] {
            assert_eq!(what(id), Ok(SelectionKind::Object(ObjectId(0x7_c000_12a8))));
        }
        // Decimal, as in tables; the same digits with 0x are another object.
        assert_eq!(what("4229857528"), Ok(SelectionKind::Object(ObjectId(0xfc1e_80f8))));
        assert_eq!(what("0x4229857528"), Ok(SelectionKind::Object(ObjectId(0x42_2985_7528))));
        assert_eq!(with_digits_of(ObjectId(4_229_857_528)), Some(ObjectId(0x42_2985_7528)));
        assert_eq!(
            (what("10"), with_digits_of(ObjectId(u64::MAX))),
            (Ok(SelectionKind::Object(ObjectId(10))), None)
        );
        assert_eq!(what("f058b2e0"), Ok(SelectionKind::Object(ObjectId(0xf058_b2e0))));
        for class in ["cafe", "Cafe1", "deadbeef", "decade2x", "[B", "1x"] {
            assert_eq!(what(class), Ok(SelectionKind::Classes(class.parse().unwrap())), "{class}");
        }
        let is_ambiguous = |text: &str| text.parse::<Selection>().unwrap().is_ambiguous();
        assert!(is_ambiguous("decade20") && !is_ambiguous("0xdecade20") && !is_ambiguous("10decade"));
    }

    #[test]
    fn threads() {
        let matches =
            |pattern: &str, name| pattern.parse::<ThreadPattern>().unwrap().matches(ObjectId(16), Some(name));
        assert!(matches("0x10", "x") && !matches("0x11", "x"));
        assert!(matches("00000016", "x") && !matches("16", "x") && matches("10", "a-10"));
        assert!(matches("pool-1", "pool-1-thread-2") && !matches("pool-2", "pool-1-thread-2"));
        assert!(matches("main*", "main") && matches("*main", "a.main") && !matches("main*", "a.main"));
        assert!(matches("pool-*-thread-*", "pool-1.2-thread-3") && !matches("a*b*c", "acb"));
        assert!(!matches("ab*ba", "aba") && matches("a**a", "aa") && matches("*", ""));
    }
}
