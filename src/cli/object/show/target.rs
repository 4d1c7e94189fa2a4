//! What is to be shown: an object by its id, a class by its name, with a range behind it or not.

use std::ops::Range;

use crate::hprof::ObjectId;
use crate::query::classes::pattern::ClassPattern;
use crate::query::objects::selection;

/// What is to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// As it was given, without the range.
    pub(super) text: String,
    pub(super) what: What,
    /// The range behind it.
    pub(super) range: Option<Range<u64>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// The object with this id.
    Object(ObjectId),
    /// The class of this name.
    Class(ClassPattern),
}

/// Digits of an id without `0x` that may begin with a letter. Fewer are the name of a class, as `Cafe` is.
const LONG_ID: usize = 8;

/// Reads `0x7c00012a8`, `50001f93`, `0x7c00012a8[0..20]`, `0x7c00012a8[5]`, `java.util.HashMap`.
pub(super) fn target(text: &str) -> Result<Target, String> {
    let (name, places) = match text.strip_suffix(']').and_then(|text| text.rsplit_once('[')) {
        // `byte[]`, `[Ljava.lang.String;`
        Some((name, places)) if !name.is_empty() && !places.is_empty() => (name, Some(places)),
        _ => (text, None),
    };
    let is_prefixed = name.starts_with("0x") || name.starts_with("0X");
    let digits = if is_prefixed { name.get(2..).unwrap_or_default() } else { name };
    let is_hexadecimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    // The agent's texts write ids without `0x`. No class has a name that starts with a digit.
    let is_bare = name.starts_with(|first: char| first.is_ascii_digit())
        || (is_hexadecimal && digits.len() >= LONG_ID && digits.bytes().any(|byte| byte.is_ascii_digit()));
    if !is_prefixed && !is_bare {
        if name.is_empty() {
            return Err("expected an object ID or a class name".to_owned());
        }
        // Every text is a pattern.
        let Ok(pattern) = text.parse();
        return Ok(Target { text: text.to_owned(), what: What::Class(pattern), range: None });
    }
    let id = selection::object_id(&format!("0x{digits}"))
        .map_err(|_| format!("`{name}` is not an object ID; object IDs look like 0x7c00012a8"))?;
    let range = places.map(|places| if places.contains("..") { range(places) } else { place(places) });
    Ok(Target { text: name.to_owned(), what: What::Object(id), range: range.transpose()? })
}

/// Reads `5`.
fn place(text: &str) -> Result<Range<u64>, String> {
    let place = text.parse::<u64>().ok().filter(|_| !text.starts_with('+'));
    let place = place.and_then(|place| Some(place..place.checked_add(1)?));
    place.ok_or_else(|| {
        format!("`{text}` is not a position in an array; positions look like [5] or [100..200]")
    })
}

/// Reads `A..B`.
pub(super) fn range(text: &str) -> Result<Range<u64>, String> {
    let wrong = || format!("`{text}` is not a range; ranges look like 100..200");
    let (start, end) = text.split_once("..").ok_or_else(wrong)?;
    let number =
        |text: &str, none| if text.is_empty() { Ok(none) } else { text.parse().map_err(|_| wrong()) };
    let range = number(start, 0)?..number(end, u64::MAX)?;
    if range.start > range.end { Err(wrong()) } else { Ok(range) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids() {
        let id = |text: &str| target(text).map(|target| (target.what, target.range));
        assert_eq!(id("50001f93"), Ok((What::Object(ObjectId(0x5000_1f93)), None)));
        assert_eq!(id("f058b2e0"), Ok((What::Object(ObjectId(0xf058_b2e0)), None)));
        assert_eq!(id("0x7c00012a8"), Ok((What::Object(ObjectId(0x7_c000_12a8)), None)));
        assert_eq!(id("0x10[0..20]"), Ok((What::Object(ObjectId(16)), Some(0..20))));
        assert_eq!(id("0x10[5]"), Ok((What::Object(ObjectId(16)), Some(5..6))));
        assert_eq!(id("10[7..]"), Ok((What::Object(ObjectId(16)), Some(7..u64::MAX))));
        for wrong in
            ["", "0x", "0xg", "1z", "0x0x1", "11112222333344445", "0x1[x]", "0x1[5..1]", "0x1[-1]", "0x1[+1]"]
        {
            assert!(target(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn classes() {
        for name in ["Cafe", "java.util.HashMap", "byte[]", "[B", "[Ljava.lang.String;", "*Cache", "deadbeef"]
        {
            let Ok(pattern) = name.parse();
            assert_eq!(target(name).map(|target| target.what), Ok(What::Class(pattern)), "{name}");
        }
    }

    #[test]
    fn ranges() {
        assert_eq!(range("100..200"), Ok(100..200));
        assert_eq!((range("100.."), range("..7")), (Ok(100..u64::MAX), Ok(0..7)));
        for wrong in ["", "5", "5..x", "7..5", "-1..5"] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
    }
}
