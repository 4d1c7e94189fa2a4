//! Parallel work whose results are written in the order of the work items.

use std::io::{self, Write};
use std::sync::{Condvar, Mutex, PoisonError};

/// Maximum number of bytes that a thread's buffer keeps allocated between items. A longer text is written before it is
/// complete.
const KEPT: usize = 16 << 20;

/// Function that takes a result and leaves an empty value in its place.
pub(super) type PutFn<'o, T> = &'o mut (dyn FnMut(&mut T) -> io::Result<()> + Send);

/// Output, and number of the item whose turn it is.
struct Turn<'o, T> {
    put: PutFn<'o, T>,
    number: u64,
    failed: Option<io::Error>,
}

struct SharedTurn<'o, T> {
    turn: Mutex<Turn<'o, T>>,
    changed: Condvar,
}

/// Result of a work item under construction.
pub(super) struct OrderedItem<'s, 'o, T: Default> {
    /// Part of the result that is not yet written.
    pub(super) made: T,
    number: u64,
    shared: &'s SharedTurn<'o, T>,
}

/// Text of a work item under construction.
pub(super) type Text<'s, 'o> = OrderedItem<'s, 'o, Vec<u8>>;

/// Returns whether a text is so long that it is written before it is complete.
#[inline(always)]
pub(super) fn is_long(bytes: &[u8]) -> bool {
    bytes.len() > KEPT
}

impl Text<'_, '_> {
    /// Waits for the item's turn and writes the text so far, if it is long, so that the text of one item need not fit into
    /// memory.
    #[inline(always)]
    pub(super) fn limit(&mut self) {
        if is_long(&self.made) {
            self.send();
        }
    }
}

impl<T: Default> OrderedItem<'_, '_, T> {
    /// Waits for the item's turn and writes the result so far; more may follow. Returns `false` after a failure.
    #[inline(never)]
    pub(super) fn send(&mut self) -> bool {
        self.go_out(Ok(()), ItemOutput::More)
    }

    /// Waits for the item's turn and writes the result, if successful. Returns `false` after a failure.
    fn go_out(&mut self, made: io::Result<()>, part: ItemOutput) -> bool {
        let mut turn = self.shared.turn.lock().unwrap_or_else(PoisonError::into_inner);
        while turn.number != self.number && turn.failed.is_none() {
            turn = self.shared.changed.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        if turn.failed.is_none()
            && let Err(error) = made.and_then(|()| (turn.put)(&mut self.made))
        {
            turn.failed = Some(error);
        }
        turn.number += u64::from(part == ItemOutput::Last);
        self.shared.changed.notify_all();
        if turn.failed.is_some() {
            self.made = T::default();
        }
        turn.failed.is_none()
    }
}

/// Part of an item's result that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemOutput {
    /// Not the last part.
    More,
    /// The last part, or the entire result.
    Last,
}

/// Lets other threads stop waiting if this one panics.
impl<T: Default> Drop for OrderedItem<'_, '_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut turn = self.shared.turn.lock().unwrap_or_else(PoisonError::into_inner);
            turn.failed.get_or_insert_with(|| io::Error::other("a thread panicked"));
            self.shared.changed.notify_all();
        }
    }
}

/// Formats the items on all threads of the pool, and writes their texts in the order of the items.
///
/// # Errors
/// See [`process_in_order`].
pub(super) fn in_order<I: Send>(
    items: impl Iterator<Item = I> + Send,
    out: &mut (dyn Write + Send),
    make: impl Fn(I, &mut Text<'_, '_>) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let mut put = |text: &mut Vec<u8>| {
        let written = out.write_all(text);
        text.clear();
        // Kept between the parts of a long text, as the next part has the same length.
        if text.capacity() > 4 * KEPT {
            text.shrink_to(KEPT);
        }
        written
    };
    process_in_order(items, &mut put, make)
}

/// Processes the items on all threads of the pool, and passes the results to `put` in the order of the items.
///
/// Each thread holds the result of one item: it waits for the item's turn before it takes another item.
///
/// # Errors
/// The first error of `put` or `make`. If `make` fails for an item, nothing is written for this item and those after it.
pub(super) fn process_in_order<I: Send, T: Default + Send>(
    items: impl Iterator<Item = I> + Send,
    put: PutFn<'_, T>,
    make: impl Fn(I, &mut OrderedItem<'_, '_, T>) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let items = Mutex::new((0..).zip(items));
    let shared =
        SharedTurn { turn: Mutex::new(Turn { put, number: 0, failed: None }), changed: Condvar::new() };
    rayon::broadcast(|_| {
        let mut out = OrderedItem { made: T::default(), number: 0, shared: &shared };
        loop {
            let next = items.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((number, item)) = next else { return };
            out.number = number;
            let made = make(item, &mut out);
            if !out.go_out(made, ItemOutput::Last) {
                return;
            }
        }
    });
    let turn = shared.turn.into_inner().unwrap_or_else(PoisonError::into_inner);
    turn.failed.map_or(Ok(()), Err)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn texts_go_out_in_the_order_of_the_items() {
        let mut out = Vec::new();
        let make = |item: u64, text: &mut Text<'_, '_>| {
            if item.is_multiple_of(3) {
                std::thread::yield_now();
            }
            text.made.extend_from_slice(format!("{item}\n").as_bytes());
            Ok(())
        };
        in_order(0..5000, &mut out, make).unwrap();
        let expected: String = (0..5000).map(|item| format!("{item}\n")).collect();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn an_error_ends_all() {
        struct FullDisk(usize);
        impl Write for FullDisk {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                if self.0 < bytes.len() {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                self.0 -= bytes.len();
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let taken = std::sync::atomic::AtomicU64::new(0);
        let items = (0..1_000_000u64).inspect(|_| {
            taken.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        });
        let result = in_order(items, &mut FullDisk(100), |_, text| {
            text.made.extend_from_slice(b"0123456789");
            Ok(())
        });
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(taken.into_inner() < 1_000_000);
    }

    #[test]
    fn what_cannot_be_made_is_not_written_and_nothing_after_it() {
        let mut out = Vec::new();
        let make = |item: u64, text: &mut Text<'_, '_>| {
            text.made.extend_from_slice(format!("{item}\n").as_bytes());
            if item < 3 { Ok(()) } else { Err(io::Error::other(item.to_string())) }
        };
        let error = in_order(0..1000, &mut out, make).unwrap_err();
        assert_eq!((error.to_string().as_str(), out.as_slice()), ("3", b"0\n1\n2\n".as_slice()));
    }

    #[test]
    fn a_text_without_end_goes_out_in_pieces_and_in_its_turn() {
        let mut out = Vec::new();
        let make = |item: u8, text: &mut Text<'_, '_>| {
            for _ in 0..40 {
                text.made.resize(text.made.len() + (1 << 20), item);
                text.limit();
                assert!(text.made.len() <= KEPT);
            }
            Ok(())
        };
        in_order(0..3, &mut out, make).unwrap();
        assert_eq!(out.len(), (3 * 40) << 20);
        assert!(out.is_sorted());
    }

    #[test]
    fn a_panic_ends_all_threads() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let mut out = Vec::new();
        let make = |item: u64, _: &mut Text<'_, '_>| {
            assert!(item != 5);
            Ok(())
        };
        let work = || pool.install(|| in_order(0..1000, &mut out, make));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err());
    }
}
