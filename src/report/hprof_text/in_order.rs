//! Work that several threads do, whose results go out in the order of the work.

use std::io::{self, Write};
use std::sync::{Condvar, Mutex, PoisonError};

/// Bytes that a thread's buffer may keep between parts.
const KEPT: usize = 16 << 20;

/// What is written, and whose turn it is.
struct Turn<'o> {
    out: &'o mut (dyn Write + Send),
    number: u64,
    failed: Option<io::Error>,
}

/// Lets all threads of the pool make text of the items, and writes the texts in the order of the items.
///
/// Each thread holds the text of one item: it waits for its turn before it takes the next.
///
/// # Errors
/// The first error of `out`.
pub(super) fn in_order<I: Send, W>(
    items: impl Iterator<Item = I> + Send,
    out: &mut (dyn Write + Send),
    worker: impl Fn() -> W + Sync,
    make: impl Fn(&mut W, I, &mut Vec<u8>) + Sync,
) -> io::Result<()> {
    let items = Mutex::new((0u64, items));
    let turn = Mutex::new(Turn { out, number: 0, failed: None });
    let changed = Condvar::new();
    rayon::broadcast(|_| {
        let mut worker = worker();
        let mut text = Vec::new();
        loop {
            let (number, item) = {
                let mut items = items.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(item) = items.1.next() else { return };
                items.0 += 1;
                (items.0 - 1, item)
            };
            text.clear();
            make(&mut worker, item, &mut text);
            let mut turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
            while turn.number != number && turn.failed.is_none() {
                turn = changed.wait(turn).unwrap_or_else(PoisonError::into_inner);
            }
            if turn.failed.is_none()
                && let Err(error) = turn.out.write_all(&text)
            {
                turn.failed = Some(error);
            }
            turn.number += 1;
            changed.notify_all();
            if turn.failed.is_some() {
                return;
            }
            drop(turn);
            text.shrink_to(KEPT);
        }
    });
    let turn = turn.into_inner().unwrap_or_else(PoisonError::into_inner);
    turn.failed.map_or(Ok(()), Err)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn texts_go_out_in_the_order_of_the_items() {
        let mut out = Vec::new();
        let make = |_: &mut (), item: u64, text: &mut Vec<u8>| {
            if item % 3 == 0 {
                std::thread::yield_now();
            }
            text.extend_from_slice(format!("{item}\n").as_bytes());
        };
        in_order(0..5000, &mut out, || (), make).unwrap();
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
        let result =
            in_order(items, &mut Full(100), || (), |(), _, text| text.extend_from_slice(b"0123456789"));
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(taken.into_inner() < 1_000_000);
    }
}
