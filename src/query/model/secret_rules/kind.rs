//! Kind of a hidden text: the rule that recognizes a credential in it.

use std::cell::RefCell;
use std::sync::LazyLock;

use hprof_values::BasicType;

use super::rules::SecretRules;
use super::search::{Scratch, TextSearch};
use hprof_index::objects::reader::Characters;

static RULES: LazyLock<SecretRules> = LazyLock::new(SecretRules::builtin);
/// Hashes of findings are not used.
static SEARCH: LazyLock<TextSearch<'static>> = LazyLock::new(|| TextSearch::new(&RULES, 0));

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Returns the ID of the built-in rule that recognizes the first credential in a text. Credentials that are recognizable only
/// by their holder or their name are not found.
pub(crate) fn of_text(characters: &Characters<'_>) -> Option<&'static str> {
    let (element, elements) = match characters {
        Characters::Latin1(bytes) | Characters::Utf16Le(bytes) => (BasicType::Byte, *bytes),
        Characters::Utf16Be(bytes) => (BasicType::Char, *bytes),
        Characters::Removed(_) => return None,
    };
    let mut first = None;
    SCRATCH.with_borrow_mut(|scratch| {
        SEARCH.array(element, elements, 0, scratch, &mut |finding| {
            first = first.into_iter().chain([(finding.start, finding.rule)]).min();
        })
    });
    let (_, rule) = first?;
    RULES.texts.get(usize::from(rule)).map(|rule| rule.about.id.as_str())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_first_credential_names_the_kind_in_each_encoding() {
        let text = format!("{} and Bearer", ["AKIA", "Q3EGRIZVN7HXK2DU"].concat());
        let narrow = text.as_bytes().to_vec();
        let low: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let high: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let all = [Characters::Latin1(&narrow), Characters::Utf16Le(&low), Characters::Utf16Be(&high)];
        assert_eq!(all.map(|text| of_text(&text)), [Some("aws-access-key-id"); 3]);
        assert_eq!(of_text(&Characters::Latin1(b"no key at all")), None);
    }
}
