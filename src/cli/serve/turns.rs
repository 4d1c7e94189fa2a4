//! Turns: limits on the number of concurrent questions, and on how many of them may be long.
//!
//! A long question never takes the last turn, so a short one never waits for the end of a long one. Most questions are
//! classified beforehand; one that turns out to be long counts as long from then on. If there are too many long questions,
//! it continues while turns are free for others; then it gives its turn back and waits again.

use tokio::sync::{Semaphore, SemaphorePermit};

/// The turns that questions can take.
#[derive(Debug)]
pub(super) struct Turns {
    all: Semaphore,
    long: Semaphore,
}

/// A turn that was taken; given back on drop.
#[derive(Debug)]
pub(super) struct Turn<'t> {
    turns: &'t Turns,
    _turn: SemaphorePermit<'t>,
    long: Option<SemaphorePermit<'t>>,
}

impl Turns {
    /// Creates `all` turns. At most `long` of them may be long, and never the last one.
    pub(super) fn new(all: usize, long: usize) -> Self {
        let all = all.max(2);
        Self { all: Semaphore::new(all), long: Semaphore::new(long.clamp(1, all - 1)) }
    }

    /// Returns whether a turn is free.
    pub(super) fn are_left(&self) -> bool {
        self.all.available_permits() > 0
    }

    /// Waits for a turn; returns `None` if there will be no more turns.
    pub(super) async fn take(&self, is_long: bool) -> Option<Turn<'_>> {
        let long = if is_long { Some(self.long.acquire().await.ok()?) } else { None };
        let turn = self.all.acquire().await.ok()?;
        Some(Turn { turns: self, _turn: turn, long })
    }
}

impl Turn<'_> {
    /// Returns whether a question that turned out to be long may continue.
    pub(super) fn may_be_long(&mut self) -> bool {
        if self.long.is_none() {
            self.long = self.turns.long.try_acquire().ok();
        }
        self.long.is_some()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Polls a future once and returns its result, if ready.
    fn now<T>(future: impl Future<Output = T>) -> Option<T> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => Some(done),
            Poll::Pending => None,
        }
    }

    #[test]
    fn long_questions_never_have_the_last_turn() {
        // More long questions are configured than there are turns.
        let turns = Turns::new(4, 64);
        let long: Vec<_> = (0..3).map(|_| now(turns.take(true)).unwrap().unwrap()).collect();
        assert!(now(turns.take(true)).is_none());
        for _ in 0..3 {
            let short = now(turns.take(false)).unwrap().unwrap();
            assert!(now(turns.take(false)).is_none());
            drop(short);
        }
        drop(long);
        assert!(now(turns.take(true)).unwrap().is_some());
    }

    #[test]
    fn what_turns_out_to_be_long_counts_as_long() {
        let turns = Turns::new(4, 2);
        let mut short: Vec<_> = (0..4).map(|_| now(turns.take(false)).unwrap().unwrap()).collect();
        // Two may continue; the others give their turns back, which long questions cannot take.
        let mut may = short.iter_mut().map(Turn::may_be_long).collect::<Vec<_>>().into_iter();
        assert!(may.by_ref().eq([true, true, false, false]));
        // The result stays the same when called again.
        assert!(short[0].may_be_long() && !short[2].may_be_long());
        // They may continue while other turns are free for newcomers.
        assert!(!turns.are_left());
        short.truncate(2);
        assert!(turns.are_left());
        assert!(now(turns.take(true)).is_none());
        let others: Vec<_> = (0..2).map(|_| now(turns.take(false)).unwrap().unwrap()).collect();
        drop(short);
        assert!(now(turns.take(true)).unwrap().is_some());
        drop(others);
    }

    #[test]
    fn two_turns_are_the_least() {
        let turns = Turns::new(0, 0);
        let _long = now(turns.take(true)).unwrap().unwrap();
        assert!(now(turns.take(true)).is_none());
        assert!(now(turns.take(false)).unwrap().is_some());
    }
}
