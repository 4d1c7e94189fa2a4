//! Lists of rows that are generated as they are written, so that millions of rows take no memory.

use std::cell::RefCell;

use serde::{Serialize, Serializer};

/// List whose items are generated as it is serialized. It can be serialized only once.
#[derive(Debug)]
pub struct StreamedList<I>(RefCell<Option<I>>);

impl<I> StreamedList<I> {
    /// Creates a list of the items of `rows`.
    pub fn new(rows: I) -> Self {
        Self(RefCell::new(Some(rows)))
    }
}

impl<I: Iterator<Item: Serialize>> Serialize for StreamedList<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.take().into_iter().flatten())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_a_list() {
        assert_eq!(serde_json::to_string(&StreamedList::new(1..4)).unwrap(), "[1,2,3]");
    }
}
