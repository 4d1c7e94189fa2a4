//! Work that several threads do, whose results go out in the order of the work.

use std::io::{self, Write};
use std::sync::{Condvar, Mutex, PoisonError};

/// Bytes that a thread's buffer may keep between items, and above which a text goes out before it is whole.
const KEPT: usize = 16 << 20;

/// Takes what was made, and leaves an empty one.
pub(super) type Put<'o, T> = &'o mut (dyn FnMut(&mut T) -> io::Result<()> + Send);

/// Where results go, and whose turn it is.
struct Turn<'o, T> {
    put: Put<'o, T>,
    number: u64,
    failed: Option<io::Error>,
}

struct SharedTurn<'o, T> {
    turn: Mutex<Turn<'o, T>>,
    changed: Condvar,
}

/// What an item becomes.
pub(super) struct OrderedItem<'s, 'o, T: Default> {
    /// What is still to go out.
    pub(super) made: T,
    number: u64,
    shared: &'s SharedTurn<'o, T>,
}

/// The text of an item.
pub(super) type Text<'s, 'o> = OrderedItem<'s, 'o, Vec<u8>>;

/// Whether a text goes out before it is whole.
#[inline(always)]
pub(super) fn is_long(bytes: &[u8]) -> bool {
    bytes.len() > KEPT
}

impl Text<'_, '_> {
    /// Writes what there is if that is much, when it is the item's turn: what one item becomes need not fit into memory.
    #[inline(always)]
    pub(super) fn limit(&mut self) {
        if is_long(&self.made) {
            self.send();
        }
    }
}

impl<T: Default> OrderedItem<'_, '_, T> {
    /// Lets go out what there is, when it is the item's turn; there is more to come. Says whether all went well so far.
    #[inline(never)]
    pub(super) fn send(&mut self) -> bool {
        self.go_out(Ok(()), ItemOutput::More)
    }

    /// Waits for the item's turn and lets go out what was made, if it was; says whether all went well so far.
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

/// What goes out of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemOutput {
    /// There is more to come.
    More,
    /// The rest, or all.
    Last,
}

/// A thread that panics must not let the others wait for its turn.
impl<T: Default> Drop for OrderedItem<'_, '_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut turn = self.shared.turn.lock().unwrap_or_else(PoisonError::into_inner);
            turn.failed.get_or_insert_with(|| io::Error::other("a thread panicked"));
            self.shared.changed.notify_all();
        }
    }
}

/// Lets all threads of the pool make text of the items, and writes the texts in the order of the items.
///
/// # Errors
/// As [`ordered`].
pub(super) fn in_order<I: Send>(
    items: impl Iterator<Item = I> + Send,
    out: &mut (dyn Write + Send),
    make: impl Fn(I, &mut Text<'_, '_>) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let mut put = |text: &mut Vec<u8>| {
        let written = out.write_all(text);
        text.clear();
        // Not of each long text: the next one of the item is as long.
        if text.capacity() > 4 * KEPT {
            text.shrink_to(KEPT);
        }
        written
    };
    ordered(items, &mut put, make)
}

/// Lets all threads of the pool make something of the items, and puts it out in the order of the items.
///
/// Each thread holds what one item becomes: it waits for its turn before it takes the next.
///
/// # Errors
/// The first error of `put`, or of `make`: of an item that it fails for nothing more goes out.
pub(super) fn ordered<I: Send, T: Default + Send>(
    items: impl Iterator<Item = I> + Send,
    put: Put<'_, T>,
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
        struct Full(usize);
        impl Write for Full {
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
        let result = in_order(items, &mut Full(100), |_, text| {
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
