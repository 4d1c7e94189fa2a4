//! Names of many threads; each text is read once: a million threads may share one.

use rayon::prelude::*;

use crate::objects::reader::Characters;
use hprof_index::storage::id_map::IdMap;

use super::fields::MAX_NAME;

/// Maximum length of names that are never truncated.
pub(super) const SHORT: usize = 120;

/// A name as stored in the dump.
#[derive(Debug, Clone)]
pub(super) enum Name<'a> {
    /// The characters of a String or an array.
    Characters(Characters<'a>),
    /// Label of an object that a root names as a thread.
    Label(String),
}

impl Name<'_> {
    /// Returns the approximate number of characters of the name.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Characters(characters) => characters.len(),
            Self::Label(label) => label.len(),
        }
    }

    /// Returns the name, or its first `most` characters.
    pub(super) fn text(&self, most: usize) -> String {
        match self {
            Self::Characters(characters) => characters.text(most),
            Self::Label(label) => label.clone(),
        }
    }

    /// Returns a key that is equal for equal characters in the dump, regardless of the name object.
    fn place(&self) -> Option<(usize, usize, u8)> {
        let Self::Characters(characters) = self else { return None };
        let (bytes, form) = match characters {
            Characters::Latin1(bytes) => (bytes, 0),
            Characters::Utf16Le(bytes) => (bytes, 1),
            Characters::Utf16Be(bytes) => (bytes, 2),
            Characters::Removed(_) => return None,
        };
        Some((bytes.as_ptr() as usize, bytes.len(), form))
    }
}

/// Number of characters of names that may be read. If arrays do not overlap, a dump's names have no more characters
/// than the dump has bytes. If parts of an array overlap (JDK 6), or many threads share a long name, names beyond that
/// are truncated.
#[derive(Debug)]
pub(super) struct Room(usize);

impl Room {
    pub(super) fn new(characters: usize) -> Self {
        Self(characters)
    }

    /// Returns the number of characters to read of a name of `length`.
    pub(super) fn take(&mut self, length: usize) -> usize {
        if length <= SHORT {
            return MAX_NAME;
        }
        match self.0.checked_sub(length.min(MAX_NAME)) {
            Some(rest) => {
                self.0 = rest;
                MAX_NAME
            }
            None => SHORT,
        }
    }
}

/// Names of a list of threads.
#[derive(Debug)]
pub(super) struct ThreadNames {
    /// Name number of each thread, in the given order.
    of: Vec<Option<u32>>,
    /// Texts by name number; they may repeat.
    texts: Vec<String>,
}

impl ThreadNames {
    /// Reads the names; `room` limits the distinct ones.
    pub(super) fn new(names: Vec<Option<Name<'_>>>, mut room: Room) -> Self {
        let mut known = IdMap::<(usize, usize, u8), u32>::default();
        let mut different = Vec::new();
        let mut of = Vec::with_capacity(names.len());
        for name in names {
            let Some(name) = name else {
                of.push(None);
                continue;
            };
            let next = u32::try_from(different.len()).unwrap_or(u32::MAX);
            let number = name.place().map_or(next, |place| *known.entry(place).or_insert(next));
            of.push(Some(number));
            if number == next {
                let most = room.take(name.len());
                different.push((name, most));
            }
        }
        Self { of, texts: different.into_par_iter().map(|(name, most)| name.text(most)).collect() }
    }

    /// Returns the name of each thread.
    pub(super) fn by_thread(&self) -> impl Iterator<Item = Option<&str>> {
        self.of.iter().map(|number| self.texts.get((*number)? as usize).map(String::as_str))
    }

    /// Returns for each thread whether its name matches.
    pub(super) fn test(&self, is_meant: impl Fn(&str) -> bool + Sync) -> Vec<bool> {
        let meant: Vec<bool> = self.texts.par_iter().map(|text| is_meant(text)).collect();
        let of = |number: u32| meant.get(number as usize).copied().unwrap_or(false);
        self.of.iter().map(|number| number.is_some_and(of)).collect()
    }

    /// Returns for each thread the rank of its name; `None` comes first.
    pub(super) fn ranks(&self) -> Vec<Option<u32>> {
        let text = |number: u32| self.texts.get(number as usize);
        let mut sorted: Vec<u32> = (0..).take(self.texts.len()).collect();
        sorted.par_sort_by_key(|number| text(*number));
        let mut ranks = vec![0; self.texts.len()];
        for (same, rank) in sorted.chunk_by(|a, b| text(*a) == text(*b)).zip(0u32..) {
            for number in same {
                if let Some(of) = ranks.get_mut(*number as usize) {
                    *of = rank;
                }
            }
        }
        let of = |number: u32| ranks.get(number as usize).copied();
        self.of.iter().map(|number| number.and_then(of)).collect()
    }

    /// Returns the texts; some may repeat.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &'static str) -> Option<Name<'static>> {
        Some(Name::Characters(Characters::Latin1(text.as_bytes())))
    }

    #[test]
    fn names_are_read_once_and_in_order() {
        let label = || Some(Name::Label("b".to_owned()));
        let (a, b) = ("a", "b");
        let names = ThreadNames::new(vec![name(b), None, name(a), name(b), label(), name("c")], Room::new(0));
        assert_eq!(names.texts().collect::<Vec<_>>(), ["b", "a", "b", "c"]);
        assert_eq!(names.ranks(), [Some(1), None, Some(0), Some(1), Some(1), Some(2)]);
        assert_eq!(names.test(|name| name != "a"), [true, false, false, true, true, true]);
    }

    #[test]
    fn no_more_characters_are_read_than_there_is_room_for() {
        static LONG: [u8; 5000] = [b'x'; 5000];
        // Each is a later part of the same array.
        let parts = (0..1000).filter_map(|at| Some(Name::Characters(Characters::Latin1(LONG.get(at..)?))));
        let names = ThreadNames::new(parts.map(Some).collect(), Room::new(3 * MAX_NAME + 5));
        let lengths: Vec<usize> = names.texts().map(str::len).collect();
        assert_eq!(lengths.get(..4), Some(&[MAX_NAME, MAX_NAME, MAX_NAME, SHORT][..]));
        assert_eq!(lengths.iter().sum::<usize>(), 3 * MAX_NAME + 997 * SHORT);
        let shared = ThreadNames::new(vec![name("x"); 1000], Room::new(0));
        assert_eq!(shared.texts().count(), 1);
    }
}
