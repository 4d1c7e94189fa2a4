//! What stands for hidden values, and which numbers are none.
//!
//! Whether values are hidden is a property of the opened heap ([`hprof_index::Heap::hides_values`]). Queries that show
//! contents of objects ask here at the place where a value becomes output, or an operand of a condition: computations that
//! show only counts, such as those of duplicates, read everything.

pub(crate) mod fields;

use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_parser::BasicType;

use self::fields::is_structure;
use super::reader::{Characters, FieldSlot};

/// Stands for a hidden value.
pub const HIDDEN: &str = "*";

/// Returns what stands for a hidden text of this many characters.
pub(crate) fn masked(characters: usize) -> String {
    format!("{HIDDEN} ({characters} character{})", if characters == 1 { "" } else { "s" })
}

/// Returns a text, or what stands for it.
pub(crate) fn text(characters: &Characters<'_>, most: usize, hides: bool) -> String {
    if hides { masked(characters.len()) } else { characters.text(most) }
}

/// Returns whether the number in a field that a class declares is shown although values are hidden: sizes of collections,
/// states of threads and other numbers that `redact` leaves in a dump.
pub(crate) fn is_shown(summary: &Summary, class: ClassNumber, field: &str, kind: BasicType) -> bool {
    let name = summary.class(class).map(|class| summary.class_name(class));
    name.is_some_and(|name| is_structure(name, field, kind))
}

/// Like [`is_shown`], of a field of the instances of a class.
pub(crate) fn is_slot_shown(summary: &Summary, slot: &FieldSlot<'_>) -> bool {
    is_shown(summary, slot.class, slot.name, slot.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_the_length() {
        assert_eq!((masked(0), masked(1)), ("* (0 characters)".to_owned(), "* (1 character)".to_owned()));
        assert_eq!(text(&Characters::Latin1(b"secret"), 3, true), "* (6 characters)");
        assert_eq!(text(&Characters::Latin1(b"secret"), 3, false), "sec");
    }
}
