//! A text of limited length.

use std::fmt::Write;

/// Maximum number of objects read for one text, so that objects that reference each other in cycles do not multiply.
const MAX_OBJECTS: u32 = 64;

/// A text of limited length.
#[derive(Debug)]
pub(super) struct Text {
    text: String,
    characters: usize,
    most: usize,
    cut: bool,
    /// `true` if an unpaired surrogate is written as an escape rather than a replacement character.
    exact: bool,
    objects: u32,
}

impl Text {
    /// Creates a text of at most this many characters.
    pub(super) fn new(most: usize, exact: bool) -> Self {
        Self { text: String::new(), characters: 0, most, cut: false, exact, objects: MAX_OBJECTS }
    }

    /// Counts an object that is read; returns `None` if the limit is reached.
    pub(super) fn look(&mut self) -> Option<()> {
        self.objects = self.objects.checked_sub(1)?;
        Some(())
    }

    /// Creates a separate text that may become part of this one.
    pub(super) fn part(&self) -> Self {
        Self { objects: self.objects, ..Self::new(self.room(), self.exact) }
    }

    /// Counts the objects that were read for a separate text.
    pub(super) fn look_as(&mut self, part: &Self) {
        self.objects = part.objects;
    }

    /// Appends a separate text.
    pub(super) fn take(&mut self, part: Self) {
        self.push(&part.text);
        self.cut |= part.cut;
    }

    /// Returns whether a label is requested.
    pub(super) fn is_label(&self) -> bool {
        !self.exact
    }

    /// Returns the number of characters that still fit.
    pub(super) fn room(&self) -> usize {
        self.most.saturating_sub(self.characters)
    }

    /// Returns whether anything was omitted.
    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Marks that something was omitted.
    pub(super) fn cut(&mut self) {
        self.cut = true;
    }

    pub(super) fn push(&mut self, part: &str) {
        self.extend(part.chars());
    }

    /// Appends a displayable value.
    pub(super) fn add(&mut self, part: impl std::fmt::Display) {
        // Writing to a `Text` cannot fail.
        let _ = write!(self, "{part}");
    }

    /// Returns `Some` if `add` appended something.
    pub(super) fn grow(&mut self, add: impl FnOnce(&mut Self)) -> Option<()> {
        let before = self.text.len();
        add(self);
        (self.text.len() > before).then_some(())
    }

    pub(super) fn push_utf16(&mut self, units: impl Iterator<Item = u16>) {
        for unit in char::decode_utf16(units) {
            match unit {
                Ok(c) => self.extend(std::iter::once(c)),
                Err(lone) if self.exact => self.add(format_args!("\\u{:04x}", lone.unpaired_surrogate())),
                Err(_) => self.extend(std::iter::once(char::REPLACEMENT_CHARACTER)),
            }
            if self.cut {
                return;
            }
        }
    }

    pub(super) fn extend(&mut self, characters: impl Iterator<Item = char>) {
        for c in characters {
            if self.characters >= self.most {
                self.cut = true;
                return;
            }
            self.text.push(c);
            self.characters += 1;
        }
    }

    /// Returns the text, truncated if it is too long.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Returns the text; a truncated one ends with an ellipsis.
    pub(super) fn into_short(mut self) -> String {
        if self.cut {
            if self.characters >= self.most {
                self.text.pop();
            }
            self.text.push('…');
        }
        self.text
    }
}

impl Write for Text {
    fn write_str(&mut self, part: &str) -> std::fmt::Result {
        self.push(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_once() {
        let of = |parts: &[&str]| {
            let mut text = Text::new(10, false);
            parts.iter().for_each(|part| text.push(part));
            (text.is_cut(), text.into_short())
        };
        assert_eq!(of(&["xxxxxxxxxx"]), (false, "xxxxxxxxxx".to_owned()));
        assert_eq!(of(&["xxxxxxxxxx", "y"]), (true, "xxxxxxxxx…".to_owned()));
        assert_eq!(of(&["xxxxxxxxxx", "y", "z"]), (true, "xxxxxxxxx…".to_owned()));
    }

    #[test]
    fn halves_of_characters() {
        let of = |exact| {
            let mut text = Text::new(20, exact);
            text.push_utf16([0x61, 0xd800, 0x62].into_iter());
            text.into_text()
        };
        assert_eq!((of(true), of(false)), ("a\\ud800b".to_owned(), "a\u{fffd}b".to_owned()));
        let mut long = Text::new(20, false);
        long.push_utf16(std::iter::repeat_n(0xd800, 100_000_000));
        assert_eq!(long.into_short().chars().count(), 20);
    }

    #[test]
    fn objects_are_counted() {
        let mut text = Text::new(1, false);
        let looked = std::iter::from_fn(|| text.look()).count();
        assert_eq!(looked, MAX_OBJECTS as usize);
    }
}
