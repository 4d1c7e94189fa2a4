//! Distinct values of a column of names.

use std::sync::Arc;

/// Distinct values of a column of names. A batch may contain only some of them.
pub type ColumnNames = Arc<NameList>;

/// Texts by number, in one allocation: a dump has tens of thousands of classes, and most queries show a few of their
/// names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameList {
    text: String,
    /// End of each text.
    ends: Vec<usize>,
}

impl NameList {
    /// Returns the text with this number.
    #[inline]
    pub fn get(&self, number: usize) -> Option<&str> {
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.text.get(start..*self.ends.get(number)?)
    }

    /// Returns the number of texts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no texts.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the length of all texts in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Returns all texts, by number.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).filter_map(|number| self.get(number))
    }

    /// Appends a text.
    pub(crate) fn push(&mut self, name: &str) {
        self.text.push_str(name);
        self.ends.push(self.text.len());
    }
}

impl<'n> FromIterator<&'n str> for NameList {
    fn from_iter<I: IntoIterator<Item = &'n str>>(names: I) -> Self {
        let names = names.into_iter();
        let mut all = Self { text: String::new(), ends: Vec::with_capacity(names.size_hint().0) };
        names.for_each(|name| all.push(name));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_by_number() {
        let texts = ["a", "", "日本", "a"];
        let names: NameList = texts.into_iter().collect();
        assert_eq!(names.iter().collect::<Vec<_>>(), texts);
        assert_eq!((names.get(1), names.get(2), names.get(4)), (Some(""), Some("日本"), None));
        assert!(NameList::default().is_empty() && NameList::default().get(0).is_none());
    }
}
