//! Options whose values are keywords: `--sort retained`, `--group-by package`. A list contains each keyword with its
//! meaning, so that the enums of queries need no copy for the command line.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A value of an option: keyword, meaning, and help text (may be empty).
pub(crate) type Keyword<T> = (&'static str, T, &'static str);

/// Returns a parser for these keywords.
pub(crate) fn keys<T: Copy + Send + Sync + 'static>(
    keys: &'static [Keyword<T>],
) -> impl TypedValueParser<Value = T> {
    let words = keys.iter().map(|(word, _, help)| {
        let word = PossibleValue::new(*word);
        if help.is_empty() { word } else { word.help(*help) }
    });
    KeyParser { keys, words: PossibleValuesParser::new(words) }
}

/// Returns the keyword whose meaning is `wanted`.
pub(crate) fn word_of<T: Copy + PartialEq>(keys: &[Keyword<T>], wanted: T) -> &'static str {
    keys.iter().find(|(_, value, _)| *value == wanted).map_or("", |(word, ..)| word)
}

/// Parser for keywords in kebab-case. JSON output uses snake_case, so a keyword copied from there is accepted too.
#[derive(Clone)]
struct KeyParser<T: 'static> {
    keys: &'static [Keyword<T>],
    words: PossibleValuesParser,
}

impl<T: Copy + Send + Sync + 'static> TypedValueParser for KeyParser<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let find =
            |typed: &str| self.keys.iter().find(|(word, ..)| *word == typed).map(|(_, value, _)| *value);
        if let Some(found) = value.to_str().and_then(|text| find(&text.replace('_', "-"))) {
            return Ok(found);
        }
        let word = self.words.parse_ref(command, argument, value)?;
        find(&word).ok_or_else(|| clap::Error::new(clap::error::ErrorKind::InvalidValue).with_cmd(command))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.words.possible_values()
    }
}
