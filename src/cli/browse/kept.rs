//! Cache of command results: the most recently used ones, up to a number of bytes.

use std::collections::VecDeque;
use std::sync::Arc;

use hprof_report::screen::Screen;
use hprof_report::window::RowWindow;

/// Maximum total size of the cached results in bytes.
pub(super) const MAX_KEPT_BYTES: usize = 64 << 20;
/// Minimum size counted for a result with its key: otherwise any number of empty results would be cached.
const LEAST_BYTES: usize = 1 << 10;

/// Cached result of a command.
#[derive(Debug, Default)]
pub(super) struct CommandAnswer {
    pub(super) screens: Vec<Screen>,
    pub(super) text: String,
    pub(super) notes: Vec<String>,
}

impl CommandAnswer {
    /// Returns the size that counts towards the limit of the cache.
    fn byte_count(&self) -> usize {
        let screens = self.screens.iter().map(Screen::byte_count);
        let texts = self.notes.iter().chain([&self.text]).map(String::len);
        screens.chain(texts).fold(LEAST_BYTES, usize::saturating_add)
    }
}

/// Key of a cached result: the command line without the dump, the width, and the rows.
pub(super) type KeptKey = (Vec<String>, u16, RowWindow);

/// Cached results, most recently used first.
#[derive(Debug)]
pub(super) struct KeptAnswers {
    answers: VecDeque<(KeptKey, Arc<CommandAnswer>, usize)>,
    /// Maximum total size of the results in bytes.
    most: usize,
}

impl KeptAnswers {
    /// Creates a cache for results of at most this many bytes in total.
    pub(super) fn new(most: usize) -> Self {
        Self { answers: VecDeque::new(), most }
    }

    /// Returns the cached result for a key, if any, and marks it as used.
    pub(super) fn find(&mut self, key: &KeptKey) -> Option<Arc<CommandAnswer>> {
        let at = self.answers.iter().position(|(known, ..)| known == key)?;
        let found = self.answers.remove(at)?;
        let answer = found.1.clone();
        self.answers.push_front(found);
        Some(answer)
    }

    /// Caches a result and removes the least recently used ones. A result larger than the limit is not cached, as it would
    /// replace all others.
    pub(super) fn keep(&mut self, key: KeptKey, answer: Arc<CommandAnswer>) {
        let bytes = answer.byte_count();
        if bytes > self.most {
            return;
        }
        self.answers.push_front((key, answer, bytes));
        let mut left = self.most;
        let fits = self.answers.iter().take_while(|(_, _, bytes)| {
            let rest = left.checked_sub(*bytes);
            left = rest.unwrap_or(0);
            rest.is_some()
        });
        let count = fits.count();
        self.answers.truncate(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> KeptKey {
        (vec![name.to_owned()], 80, RowWindow::ALL)
    }

    fn text(bytes: usize) -> Arc<CommandAnswer> {
        Arc::new(CommandAnswer { text: "x".repeat(bytes), ..CommandAnswer::default() })
    }

    #[test]
    fn answers_are_kept_up_to_a_number_of_bytes() {
        let mut kept = KeptAnswers::new(10_000);
        for name in ["a", "b", "c"] {
            kept.keep(key(name), text(2_000));
        }
        // It is used again, so another one is removed.
        assert!(kept.find(&key("a")).is_some());
        kept.keep(key("d"), text(2_000));
        let is_kept: Vec<bool> =
            ["a", "b", "c", "d"].iter().map(|name| kept.find(&key(name)).is_some()).collect();
        assert_eq!(is_kept, [true, false, true, true]);
        // A result that is too large does not replace others.
        kept.keep(key("large"), text(9_000));
        assert!(kept.find(&key("large")).is_none() && kept.find(&key("a")).is_some());
        // Empty results count, too.
        for number in 0..100 {
            kept.keep(key(&format!("empty {number}")), text(0));
        }
        assert!(kept.answers.len() <= 10, "{}", kept.answers.len());
    }
}
