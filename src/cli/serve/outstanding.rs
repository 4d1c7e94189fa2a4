//! Accounting of response bodies in memory: cached for the next request, or being sent to a slow client.

use std::sync::{Arc, Weak};

/// Minimum size in bytes of a body that is counted: shorter ones take little memory, even one per connection.
const MIN_COUNTED: usize = 64 << 10;

/// Existing response bodies without duplicates: a body counts once even if several connections send it.
#[derive(Debug, Default)]
pub(super) struct OutstandingBodies(Vec<Weak<Vec<u8>>>);

impl OutstandingBodies {
    /// Counts a body as long as it exists.
    pub(super) fn add(&mut self, body: &Arc<Vec<u8>>) {
        if body.len() >= MIN_COUNTED {
            self.0.push(Arc::downgrade(body));
        }
    }

    /// Returns the total size of the existing bodies in bytes.
    pub(super) fn bytes(&mut self) -> usize {
        self.0.retain(|body| body.strong_count() > 0);
        self.0.iter().filter_map(Weak::upgrade).map(|body| body.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_counts_once_and_as_long_as_it_is_held() {
        let mut bodies = OutstandingBodies::default();
        let (one, other) = (Arc::new(vec![0; MIN_COUNTED]), Arc::new(vec![0; 3 * MIN_COUNTED]));
        bodies.add(&one);
        bodies.add(&other);
        bodies.add(&Arc::new(vec![0; MIN_COUNTED - 1]));
        let sent_to_many = [other.clone(), other.clone()];
        assert_eq!(bodies.bytes(), 4 * MIN_COUNTED);
        drop(other);
        assert_eq!(bodies.bytes(), 4 * MIN_COUNTED);
        drop(sent_to_many);
        assert_eq!(bodies.bytes(), MIN_COUNTED);
        drop(one);
        assert_eq!(bodies.bytes(), 0);
    }
}
