//! Options whose values are words: `--sort retained`, `--group-by package`. Each word stands beside what it means, so that
//! questions need no copy of their own enums for the command line.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A word of an option: as it is typed, what it means, what help says of it, if it says anything.
pub(crate) type Key<T> = (&'static str, T, &'static str);

/// Reads one of some words.
pub(crate) fn keys<T: Copy + Send + Sync + 'static>(
    keys: &'static [Key<T>],
) -> impl TypedValueParser<Value = T> {
    let words = keys.iter().map(|(word, _, help)| {
        let word = PossibleValue::new(*word);
        if help.is_empty() { word } else { word.help(*help) }
    });
    PossibleValuesParser::new(words).try_map(move |word| {
        let found = keys.iter().find(|(known, ..)| *known == word);
        found.map(|(_, value, _)| *value).ok_or("not one of the words")
    })
}
