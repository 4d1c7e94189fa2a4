//! Object IDs in texts of users.
//!
//! An object ID is hexadecimal with `0x`, and decimal without, as in tables for other engines and OQL's `@objectAddress`.
//! Digits mixed with letters can only be hexadecimal, as the agent's texts print them: without `0x` they must begin with a
//! digit, or be long and contain one, since `cafe` is a class name. An ambiguous text (`decade20`) is the class if the dump
//! contains one of that name, else the object: `Selection::resolve`.

use hprof_values::ObjectId;

/// Error for a text that starts like an object ID but is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an object ID; object IDs look like 0x7c00012a8")]
pub struct NoObjectId(pub String);

/// Minimum length of an ID without `0x` that may begin with a letter. A shorter text is a class name, like `Cafe`.
const LONG_ID: usize = 8;

/// Reads an object ID: decimal digits, or hexadecimal ones with `0x`, or mixed with letters.
///
/// # Errors
/// If the text is not an object ID.
pub fn object_id(text: &str) -> Result<ObjectId, NoObjectId> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit());
    let digits = without_prefix(text).unwrap_or(text);
    // `from_str_radix` would accept a sign.
    Some(digits)
        .filter(|digits| is_hexadecimal(digits))
        .and_then(|digits| u64::from_str_radix(digits, if is_decimal { 10 } else { 16 }).ok())
        .map(ObjectId)
        .ok_or_else(|| NoObjectId(text.to_owned()))
}

/// Reads an object ID that must have the prefix `0x`: where plain numbers and texts have their own meaning.
pub fn prefixed_object_id(text: &str) -> Option<ObjectId> {
    without_prefix(text).and_then(|_| object_id(text).ok())
}

/// Returns the ID that was meant if `0x` was omitted: the decimal digits of `id`, read as hexadecimal.
pub fn with_digits_of(id: ObjectId) -> Option<ObjectId> {
    u64::from_str_radix(&id.0.to_string(), 16).ok().map(ObjectId)
}

/// Returns whether a text is meant as an object ID, where it could also be a name.
pub fn is_meant_as_id(text: &str) -> bool {
    without_prefix(text).is_some() || (is_hexadecimal(text) && (starts_with_digit(text) || is_long_id(text)))
}

/// Returns the digits after `0x`; `None` for a text without this prefix.
pub fn without_prefix(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

fn is_hexadecimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns whether a text starts with a digit, as no class name does.
fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
}

/// Returns whether a text without a prefix is long enough to be an object ID rather than a number.
pub fn is_long_id(text: &str) -> bool {
    text.len() >= LONG_ID && is_hexadecimal(text) && text.bytes().any(|byte| byte.is_ascii_digit())
}

/// Returns whether an ID could also be the name of a class.
pub fn is_ambiguous(text: &str) -> bool {
    !starts_with_digit(text) && is_long_id(text)
}
