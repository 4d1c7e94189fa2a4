//! Prefetching: traversals of graphs mostly wait for memory.

/// Starts to load `slice[at]` into the cache. Does nothing if `at` is out of range.
#[inline(always)]
#[allow(unsafe_code)]
pub fn prefetch<T>(slice: &[T], at: usize) {
    if let Some(place) = slice.get(at) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: A prefetch reads nothing that the program can see and cannot fault; the address is in bounds anyway.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = place;
    }
}
