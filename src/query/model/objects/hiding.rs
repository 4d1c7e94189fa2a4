//! Placeholders for hidden values, and numeric fields that are exempt from hiding.
//!
//! The opened heap determines whether values are hidden ([`hprof_index::Heap::hides_values`]). Queries that show contents of
//! objects call this module where a value becomes output, or an operand of a condition: computations that show only counts,
//! such as those of duplicates, read everything.

pub mod fields;

use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_values::BasicType;

use self::fields::is_structure;
use super::reader::{Characters, FieldSlot};
use crate::secret_rules::kind;

/// Placeholder for a hidden value.
pub const HIDDEN: &str = "*";

/// Returns the placeholder for a hidden text: its length, and the ID of the rule if it contains a credential that
/// `hprof_analyses::secrets` recognizes.
pub fn mask_text(characters: &Characters<'_>) -> String {
    let length = characters.len();
    let kind = kind::of_text(characters).map(|kind| format!(", {kind}")).unwrap_or_default();
    format!("{HIDDEN} ({length} character{}{kind})", if length == 1 { "" } else { "s" })
}

/// Returns a text, or its placeholder if values are hidden.
pub fn text(characters: &Characters<'_>, most: usize, hides: bool) -> String {
    if hides { mask_text(characters) } else { characters.text(most) }
}

/// Returns whether the number in a static field of a class is shown even if values are hidden: sizes of collections, states of
/// threads and other numbers that `redact` leaves in a dump.
pub fn is_shown(summary: &Summary, class: ClassNumber, field: &str, kind: BasicType) -> bool {
    let name = summary.class(class).map(|class| summary.class_name(class));
    name.is_some_and(|name| is_structure(name, name, field, kind))
}

/// Returns whether the number in a field of an instance is shown even if values are hidden.
pub fn is_slot_shown(summary: &Summary, instance: ClassNumber, slot: &FieldSlot<'_>) -> bool {
    let name = |class| summary.class(class).map(|class| summary.class_name(class));
    let (instance, declaring) = (name(instance), name(slot.class));
    let names = instance.zip(declaring);
    names.is_some_and(|(instance, declaring)| is_structure(instance, declaring, slot.name, slot.kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_the_length() {
        let [none, one] = [&b""[..], b"x"].map(|text| mask_text(&Characters::Latin1(text)));
        assert_eq!((none, one), ("* (0 characters)".to_owned(), "* (1 character)".to_owned()));
        let key = ["AKIA", "Q3EGRIZVN7HXK2DU"].concat();
        assert_eq!(mask_text(&Characters::Latin1(key.as_bytes())), "* (20 characters, aws-access-key-id)");
        assert_eq!(text(&Characters::Latin1(b"secret"), 3, true), "* (6 characters)");
        assert_eq!(text(&Characters::Latin1(b"secret"), 3, false), "sec");
    }
}
