//! Anonymous memory that is cut up and put together again.
//!
//! The kernel clears a page when it is first touched, and that takes longer than most of what is then done with it. So what
//! one array leaves is moved to where the next one lies, in the page tables (`mremap`), and not cleared again.
//!
//! The `unsafe` of anonymous memory is here. Elsewhere than on Linux memory stays in the pieces in which it was taken.

pub(super) use system::Pages;

/// Bytes of a huge page: larger memory is whole ones, and so are its pieces.
pub(super) const PAGE: usize = 2 << 20;

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
mod system {
    use std::io;
    use std::ops::{Deref, DerefMut, Range};
    use std::ptr::{self, NonNull};

    use rustix::mm::{self, Advice, MapFlags, MremapFlags, ProtFlags};

    use super::PAGE;

    /// A range of addresses, of this owner alone. There need not be memory.
    #[derive(Debug)]
    struct Addresses {
        start: NonNull<u8>,
        len: usize,
    }

    // SAFETY: It owns what lies there, as a Vec<u8> does.
    unsafe impl Send for Addresses {}
    // SAFETY: The same: what is shared is only read.
    unsafe impl Sync for Addresses {}

    impl Addresses {
        /// Takes `len` bytes of addresses; at a huge page's boundary if they are as many.
        fn take(len: usize) -> io::Result<Self> {
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
            let more = if len >= PAGE { PAGE } else { 0 };
            let wanted = len.checked_add(more).ok_or(io::ErrorKind::OutOfMemory)?;
            // SAFETY: The kernel chooses addresses where nothing lies.
            let start = unsafe { mm::mmap_anonymous(ptr::null_mut(), wanted, ProtFlags::empty(), flags)? };
            let start = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
            let mut addresses = Self { start, len: wanted };
            if more > 0 {
                let before = start.as_ptr().align_offset(PAGE);
                let mut aligned = addresses.split_off(before);
                aligned.split_off(len);
                addresses = aligned;
            }
            Ok(addresses)
        }

        /// Cuts off what is behind `at`.
        fn split_off(&mut self, at: usize) -> Self {
            let at = at.min(self.len);
            // SAFETY: `at` is within, or just behind.
            let start = unsafe { self.start.add(at) };
            let rest = Self { start, len: self.len - at };
            self.len = at;
            rest
        }

        /// Puts zeros to a part of the addresses.
        fn back(&self, part: Range<usize>) -> io::Result<()> {
            let part = part.start.min(self.len)..part.end.min(self.len);
            if part.is_empty() {
                return Ok(());
            }
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            let flags = MapFlags::PRIVATE | MapFlags::FIXED;
            // SAFETY: The addresses are this owner's, who has no reference to what lies there.
            unsafe {
                let start = self.start.as_ptr().add(part.start).cast();
                mm::mmap_anonymous(start, part.len(), protection, flags)?;
                // Advice: without huge pages it works too.
                let _ = mm::madvise(start, part.len(), Advice::LinuxHugepage);
            }
            Ok(())
        }

        /// Moves memory to the addresses from `at` on; gives it back if the kernel does not.
        fn take_over(&self, at: usize, mut piece: Self) -> Result<(), Self> {
            if at > self.len || piece.len > self.len - at {
                return Err(piece);
            }
            // SAFETY: Both ranges are of this owner, who has no reference to what lies there, and do not overlap.
            let moved = unsafe {
                let (from, to) = (piece.start.as_ptr().cast(), self.start.as_ptr().add(at).cast());
                mm::mremap_fixed(from, piece.len, piece.len, MremapFlags::MAYMOVE, to)
            };
            if moved.is_err() {
                return Err(piece);
            }
            // Nothing lies at its old addresses, and they may be somebody else's already.
            piece.len = 0;
            Ok(())
        }
    }

    impl Drop for Addresses {
        fn drop(&mut self) {
            if self.len > 0 {
                // SAFETY: They are this owner's, who is gone.
                let _ = unsafe { mm::munmap(self.start.as_ptr().cast(), self.len) };
            }
        }
    }

    /// Memory, of this owner alone.
    #[derive(Debug)]
    pub(in crate::index::storage) struct Pages(Addresses);

    impl Pages {
        /// One piece of `len` bytes: first what the pieces hold, then zeros that nobody has touched. If there are pieces, all
        /// are whole huge pages.
        pub(in crate::index::storage) fn of_pieces(pieces: Vec<Self>, len: usize) -> io::Result<Self> {
            let whole = Addresses::take(len)?;
            let mut at = 0;
            for Self(piece) in pieces {
                let end = at + piece.len;
                if let Err(mut piece) = whole.take_over(at, piece) {
                    // Before 6.17 the kernel moves nothing in one go that was put together: page by page.
                    while piece.len > 0 {
                        let rest = piece.split_off(PAGE);
                        let page = at..at + piece.len;
                        at = page.end;
                        if whole.take_over(page.start, piece).is_err() {
                            whole.back(page)?;
                        }
                        piece = rest;
                    }
                }
                at = end;
            }
            whole.back(at..len)?;
            Ok(Self(whole))
        }

        /// Cuts off what is behind `at`.
        pub(in crate::index::storage) fn split_off(&mut self, at: usize) -> Self {
            Self(self.0.split_off(at))
        }
    }

    impl Deref for Pages {
        type Target = [u8];

        #[inline(always)]
        fn deref(&self) -> &[u8] {
            // SAFETY: There is memory at all of the addresses, of this owner, and all of it is initialised.
            unsafe { std::slice::from_raw_parts(self.0.start.as_ptr(), self.0.len) }
        }
    }

    impl DerefMut for Pages {
        #[inline(always)]
        fn deref_mut(&mut self) -> &mut [u8] {
            // SAFETY: As above, and the owner is borrowed.
            unsafe { std::slice::from_raw_parts_mut(self.0.start.as_ptr(), self.0.len) }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;

    use memmap2::MmapMut;

    /// Memory, of this owner alone.
    #[derive(Debug)]
    pub(in crate::index::storage) struct Pages(MmapMut);

    impl Pages {
        /// `len` bytes of zeros that nobody has touched. There are no pieces: nothing cuts memory here.
        pub(in crate::index::storage) fn of_pieces(_: Vec<Self>, len: usize) -> io::Result<Self> {
            MmapMut::map_anon(len).map(Self)
        }
    }

    impl std::ops::Deref for Pages {
        type Target = [u8];

        fn deref(&self) -> &[u8] {
            &self.0
        }
    }

    impl std::ops::DerefMut for Pages {
        fn deref_mut(&mut self) -> &mut [u8] {
            &mut self.0
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn pieces_keep_what_they_hold() {
        let filled = |pages: usize, byte: u8| {
            let mut piece = Pages::of_pieces(Vec::new(), pages * PAGE).unwrap();
            assert!(piece.iter().all(|byte| *byte == 0) && piece.as_ptr().addr().is_multiple_of(PAGE));
            piece.fill(byte);
            piece
        };
        let mut first = filled(3, 1);
        let back = first.split_off(PAGE);
        let (second, third) = (filled(1, 2), filled(2, 3));
        let whole = Pages::of_pieces(vec![third, back, second], 7 * PAGE).unwrap();
        let page = |at: usize| whole[at * PAGE..(at + 1) * PAGE].to_vec();
        for (at, byte) in [3, 3, 1, 1, 2, 0, 0].into_iter().enumerate() {
            assert!(page(at).iter().all(|found| *found == byte), "page {at}");
        }
        assert!(first.iter().all(|byte| *byte == 1) && first.len() == PAGE);
        // What was put together is cut, moved and put together again.
        let mut whole = whole;
        let end = whole.split_off(3 * PAGE);
        let other = Pages::of_pieces(vec![end, whole], 7 * PAGE).unwrap();
        let bytes: Vec<u8> = other.chunks(PAGE).map(|page| page[7]).collect();
        assert_eq!(bytes, [1, 2, 0, 0, 3, 3, 1]);
        assert_eq!(Pages::of_pieces(Vec::new(), 1 << 16).unwrap().len(), 1 << 16);
    }
}
