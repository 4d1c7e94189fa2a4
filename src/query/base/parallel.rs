//! Parallel work on chunks.
//!
//! rayon is monomorphized for each closure passed to it: thousands of lines per call. Here it gets chunk numbers and
//! closures behind a trait object. One virtual call per chunk costs nothing: each chunk has thousands of objects.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use roaring::RoaringBitmap;

/// Runs `work` for each chunk.
pub fn for_each<C: Clone + Sync>(chunks: &[C], work: impl Fn(C) + Sync) {
    each_number(chunks.len(), &|at| chunks.get(at).cloned().into_iter().for_each(&work));
}

/// Maps each chunk to a result; results are in the order of chunks.
pub fn map<C: Clone + Sync, T: Send>(chunks: &[C], make: impl Fn(C) -> T + Sync) -> Vec<T> {
    let made: Vec<Mutex<Option<T>>> = chunks.iter().map(|_| Mutex::new(None)).collect();
    each_number(chunks.len(), &|at| {
        if let (Some(chunk), Some(place)) = (chunks.get(at), made.get(at)) {
            let result = make(chunk.clone());
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        }
    });
    made.into_iter().filter_map(|made| made.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// Maps each chunk to a result; results are in the order of chunks. Stops at the first error.
///
/// # Errors
/// One of the errors of `make`.
pub fn try_map<C: Clone + Sync, T: Send>(
    chunks: &[C],
    make: impl Fn(C) -> io::Result<T> + Sync,
) -> io::Result<Vec<T>> {
    let is_over = AtomicBool::new(false);
    let made = map(chunks, |chunk| {
        if is_over.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let made = make(chunk);
        is_over.fetch_or(made.is_err(), Ordering::Relaxed);
        made.map(Some)
    });
    made.into_iter().filter_map(Result::transpose).collect()
}

/// Returns the union of what `find` returns for each chunk.
pub fn union<C: Clone + Sync>(chunks: &[C], find: impl Fn(C) -> RoaringBitmap + Sync) -> RoaringBitmap {
    union_of_numbers(chunks.len(), &|at| chunks.get(at).cloned().map(&find).unwrap_or_default())
}

fn each_number(count: usize, work: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().for_each(work);
}

fn union_of_numbers(count: usize, find: &(dyn Fn(usize) -> RoaringBitmap + Sync)) -> RoaringBitmap {
    (0..count).into_par_iter().map(find).reduce(RoaringBitmap::new, |a, b| a | b)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_chunks() {
        let chunks: Vec<u32> = (0..1000).collect();
        assert_eq!(map(&chunks, |chunk| chunk + 1), (1..1001).collect::<Vec<_>>());
        assert_eq!(try_map(&chunks, |chunk| Ok(chunk + 1)).unwrap(), (1..1001).collect::<Vec<_>>());
        assert_eq!(union(&chunks, |chunk| [chunk].into_iter().collect()).len(), 1000);
        let seen = Mutex::new(RoaringBitmap::new());
        for_each(&chunks, |chunk| assert!(seen.lock().unwrap().insert(chunk)));
        assert_eq!(seen.into_inner().unwrap().len(), 1000);
    }

    #[test]
    fn an_error_ends_the_work() {
        let chunks: Vec<u32> = (0..1000).collect();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let made = std::sync::atomic::AtomicU32::new(0);
        let make = |chunk| {
            made.fetch_add(1, Ordering::Relaxed);
            if chunk == 7 { Err(io::Error::other("wrong")) } else { Ok(()) }
        };
        assert_eq!(pool.install(|| try_map(&chunks, make)).unwrap_err().to_string(), "wrong");
        assert!(made.into_inner() < 1000);
    }
}
