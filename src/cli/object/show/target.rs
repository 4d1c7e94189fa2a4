//! The argument of `show`: an object by ID or a class by name, optionally with a range.

use std::ops::Range;

use hprof_index::model::summary::Summary;
use hprof_query::naming::object_id;
use hprof_query::naming::pattern::ClassPattern;
use hprof_query::objects::selection;
use hprof_values::ObjectId;

/// The parsed argument of `show`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShowTarget {
    /// The argument without its range.
    pub(super) text: String,
    pub(super) what: ShowSubject,
    /// Range after the name or ID.
    pub(super) range: Option<Range<u64>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ShowSubject {
    /// Object ID.
    Object(ObjectId),
    /// Class name.
    Class(ClassPattern),
}

/// Parses `0x7c00012a8`, `50001f93`, `0x7c00012a8[0..20]`, `0x7c00012a8[5]`, `java.util.HashMap`.
pub(super) fn target(text: &str) -> Result<ShowTarget, String> {
    let (name, places) = match text.strip_suffix(']').and_then(|text| text.rsplit_once('[')) {
        // `byte[]`, `[Ljava.lang.String;`
        Some((name, places)) if !name.is_empty() && !places.is_empty() => (name, Some(places)),
        _ => (text, None),
    };
    // No class name starts with a digit.
    if !object_id::is_meant_as_id(name) && !name.starts_with(|first: char| first.is_ascii_digit()) {
        if name.is_empty() {
            return Err("expected an object ID or a class name".to_owned());
        }
        return Ok(ShowTarget::class(text));
    }
    let id = object_id::object_id(name).map_err(|error| error.to_string())?;
    let range = places.map(range).transpose()?;
    Ok(ShowTarget { text: name.to_owned(), what: ShowSubject::Object(id), range })
}

impl ShowTarget {
    fn class(text: &str) -> Self {
        // Every text is a pattern.
        let Ok(pattern) = text.parse();
        Self { text: text.to_owned(), what: ShowSubject::Class(pattern), range: None }
    }

    /// Resolves the argument in this dump: an ID that is also a class name selects the class.
    pub(super) fn resolve(&self, summary: &Summary) -> Self {
        let is_class = matches!(self.what, ShowSubject::Object(_))
            && object_id::is_ambiguous(&self.text)
            && selection::is_class(summary, &self.text);
        if is_class { Self { range: self.range.clone(), ..Self::class(&self.text) } } else { self.clone() }
    }
}

/// Parses `A..B`, `A..`, `..B`, or `5` for one element.
pub(super) fn range(text: &str) -> Result<Range<u64>, String> {
    let wrong = || format!("`{text}` is not a range; ranges look like 100..200, or 5 for one element");
    // `parse` alone would accept a sign.
    let number = |text: &str| text.parse::<u64>().ok().filter(|_| !text.starts_with('+')).ok_or_else(wrong);
    let Some((start, end)) = text.split_once("..") else {
        let place = number(text)?;
        return Ok(place..place.checked_add(1).ok_or_else(wrong)?);
    };
    let number = |text: &str, none| if text.is_empty() { Ok(none) } else { number(text) };
    let range = number(start, 0)?..number(end, u64::MAX)?;
    if range.start > range.end { Err(wrong()) } else { Ok(range) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids() {
        let id = |text: &str| target(text).map(|target| (target.what, target.range));
        assert_eq!(id("50001f93"), Ok((ShowSubject::Object(ObjectId(0x5000_1f93)), None)));
        assert_eq!(id("f058b2e0"), Ok((ShowSubject::Object(ObjectId(0xf058_b2e0)), None)));
        assert_eq!(id("0x7c00012a8"), Ok((ShowSubject::Object(ObjectId(0x7_c000_12a8)), None)));
        assert_eq!(id("0x10[0..20]"), Ok((ShowSubject::Object(ObjectId(16)), Some(0..20))));
        assert_eq!(id("0x10[5]"), Ok((ShowSubject::Object(ObjectId(16)), Some(5..6))));
        assert_eq!(id("10[7..]"), Ok((ShowSubject::Object(ObjectId(10)), Some(7..u64::MAX))));
        for wrong in [
            "",
            "0x",
            "0xg",
            "1z",
            "0x0x1",
            "111122223333444455556",
            "0x1[x]",
            "0x1[5..1]",
            "0x1[-1]",
            "0x1[+1]",
        ] {
            assert!(target(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn classes() {
        for name in ["Cafe", "java.util.HashMap", "byte[]", "[B", "[Ljava.lang.String;", "*Cache", "deadbeef"]
        {
            let Ok(pattern) = name.parse();
            assert_eq!(target(name).map(|target| target.what), Ok(ShowSubject::Class(pattern)), "{name}");
        }
    }

    #[test]
    fn ranges() {
        assert_eq!(range("100..200"), Ok(100..200));
        assert_eq!((range("100.."), range("..7")), (Ok(100..u64::MAX), Ok(0..7)));
        assert_eq!(range("5"), Ok(5..6));
        for wrong in ["", "x", "5..x", "7..5", "-1..5", "+5", "18446744073709551615"] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
    }
}
