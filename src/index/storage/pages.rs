//! Anonymous memory that can be split and joined.
//!
//! The kernel clears a page when it is first touched, which takes longer than most of the work that
//! follows. So the memory of a dropped array is moved to the addresses of the next one, in the page
//! tables (`mremap`), and not cleared again.
//!
//! All `unsafe` code for anonymous memory is here. On systems other than Linux, memory stays in the
//! pieces in which it was allocated.

pub(super) use system::PrivatePages;

/// Size of a huge page in bytes. Memory of at least this size consists of whole huge pages, and so do the pieces it is split
/// into.
pub(super) const PAGE: usize = 2 << 20;

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
mod system {
    use std::io;
    use std::ops::{Deref, DerefMut};
    use std::ptr::{self, NonNull};

    use rustix::mm::{self, Advice, MapFlags, MprotectFlags, MremapFlags, ProtFlags};

    use super::PAGE;

    /// A range of addresses with a single owner. There need not be memory at them.
    #[derive(Debug)]
    struct Addresses {
        start: NonNull<u8>,
        len: usize,
        /// Possible boundaries of the kernel's mappings within the range, without its start; ascending.
        /// Before 6.17 the kernel does not move memory across them.
        seams: Vec<usize>,
    }

    // SAFETY: It owns its memory, as a Vec<u8> does.
    unsafe impl Send for Addresses {}
    // SAFETY: As above; shared memory is only read.
    unsafe impl Sync for Addresses {}

    impl Addresses {
        /// Reserves `len` bytes of inaccessible addresses; aligned to a huge page if they are at least as
        /// large.
        fn take(len: usize) -> io::Result<Self> {
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
            let more = if len >= PAGE { PAGE } else { 0 };
            let wanted = len.checked_add(more).ok_or(io::ErrorKind::OutOfMemory)?;
            // SAFETY: The kernel chooses unused addresses.
            let start = unsafe { mm::mmap_anonymous(ptr::null_mut(), wanted, ProtFlags::empty(), flags)? };
            let start = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
            let mut addresses = Self { start, len: wanted, seams: Vec::new() };
            if more > 0 {
                let before = start.as_ptr().align_offset(PAGE);
                let mut aligned = addresses.split_off(before);
                aligned.split_off(len);
                addresses = aligned;
            }
            Ok(addresses)
        }

        /// Splits off the part from `at` on.
        fn split_off(&mut self, at: usize) -> Self {
            let at = at.min(self.len);
            // SAFETY: `at` is within the range, or at its end.
            let start = unsafe { self.start.add(at) };
            let seams = self.seams.iter().filter(|seam| **seam > at).map(|seam| seam - at).collect();
            let rest = Self { start, len: self.len - at, seams };
            self.len = at;
            self.seams.retain(|seam| *seam < at);
            rest
        }

        /// Maps zeros at the addresses from `at` on, where there is no memory yet.
        fn back(&mut self, at: usize) -> io::Result<()> {
            let at = at.min(self.len);
            if at == self.len {
                return Ok(());
            }
            let protection = MprotectFlags::READ | MprotectFlags::WRITE;
            // SAFETY: The addresses belong to this owner. If the call fails, nothing has changed.
            unsafe {
                let (start, len) = (self.start.as_ptr().add(at).cast(), self.len - at);
                mm::mprotect(start, len, protection)?;
                // Advice only: it works without huge pages too.
                let _ = mm::madvise(start, len, Advice::LinuxHugepage);
            }
            self.seams.extend(Some(at).filter(|at| *at > 0));
            Ok(())
        }

        /// Moves memory to the addresses from `at` on, where there is no memory yet.
        fn take_over(&mut self, at: usize, mut piece: Self) -> io::Result<()> {
            if at > self.len || piece.len > self.len - at {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            let mut to = at;
            while piece.len > 0 {
                // One of the kernel's mappings, or a part of it.
                let rest = piece.split_off(piece.seams.first().copied().unwrap_or(piece.len));
                // SAFETY: Both ranges belong to this owner, which has no reference to their contents, and
                // they do not overlap.
                let moved = unsafe {
                    let (from, place) = (piece.start.as_ptr().cast(), self.start.as_ptr().add(to).cast());
                    mm::mremap_fixed(from, piece.len, piece.len, MremapFlags::MAYMOVE, place)
                };
                if let Err(error) = moved {
                    // The kernel may have unmapped the new addresses, and another thread may have mapped
                    // them since: they are not touched any more.
                    let mut unknown = self.split_off(to);
                    drop(unknown.split_off(piece.len));
                    std::mem::forget(unknown);
                    return Err(error.into());
                }
                self.seams.extend(Some(to).filter(|to| *to > 0));
                to += piece.len;
                // The old addresses are unmapped, and may already be in use by another mapping.
                piece.len = 0;
                piece = rest;
            }
            Ok(())
        }
    }

    impl Drop for Addresses {
        fn drop(&mut self) {
            if self.len > 0 {
                // SAFETY: The addresses belong to this owner, which is being dropped.
                let _ = unsafe { mm::munmap(self.start.as_ptr().cast(), self.len) };
            }
        }
    }

    /// Memory with a single owner.
    #[derive(Debug)]
    pub(in crate::storage) struct PrivatePages(Addresses);

    impl PrivatePages {
        /// Joins pieces into one of `len` bytes: first the contents of the pieces, then untouched zeros.
        /// If there are pieces, all consist of whole huge pages. They are left unchanged if there is no
        /// address range for the whole.
        pub(in crate::storage) fn of_pieces(pieces: &mut Vec<Self>, len: usize) -> io::Result<Self> {
            let mut whole = Addresses::take(len)?;
            let mut at = 0;
            for Self(piece) in pieces.drain(..) {
                let end = at + piece.len;
                whole.take_over(at, piece)?;
                at = end;
            }
            whole.back(at)?;
            Ok(Self(whole))
        }

        /// Splits off the part from `at` on.
        pub(in crate::storage) fn split_off(&mut self, at: usize) -> Self {
            Self(self.0.split_off(at))
        }
    }

    impl Deref for PrivatePages {
        type Target = [u8];

        #[inline(always)]
        fn deref(&self) -> &[u8] {
            // SAFETY: There is initialized memory at all of the addresses, and it belongs to this owner.
            unsafe { std::slice::from_raw_parts(self.0.start.as_ptr(), self.0.len) }
        }
    }

    impl DerefMut for PrivatePages {
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

    /// Memory with a single owner.
    #[derive(Debug)]
    pub(in crate::storage) struct PrivatePages(MmapMut);

    impl PrivatePages {
        /// Allocates `len` bytes of untouched zeros. There are no pieces: memory is never split here.
        pub(in crate::storage) fn of_pieces(_: &mut Vec<Self>, len: usize) -> io::Result<Self> {
            MmapMut::map_anon(len).map(Self)
        }
    }

    impl std::ops::Deref for PrivatePages {
        type Target = [u8];

        fn deref(&self) -> &[u8] {
            &self.0
        }
    }

    impl std::ops::DerefMut for PrivatePages {
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
    fn what_was_put_together_is_cut_anywhere_and_moved_again() {
        let mut state = 5u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        let mut spare = Vec::new();
        let mut next = 0u8;
        for _ in 0..300 {
            let wanted = 1 + random(6);
            let mut pieces: Vec<PrivatePages> = Vec::new();
            let mut expected = Vec::new();
            while expected.len() < wanted && !spare.is_empty() {
                let (mut piece, mut marks): (PrivatePages, Vec<u8>) = spare.swap_remove(random(spare.len()));
                let taken = marks.len().min(wanted - expected.len());
                if taken < marks.len() {
                    spare.push((piece.split_off(taken * PAGE), marks.split_off(taken)));
                }
                pieces.push(piece);
                expected.extend(marks);
            }
            expected.resize(wanted, 0);
            let mut whole = PrivatePages::of_pieces(&mut pieces, wanted * PAGE).unwrap();
            let marks =
                |whole: &PrivatePages| -> Vec<u8> { whole.chunks(PAGE).map(|page| page[PAGE - 1]).collect() };
            assert_eq!(marks(&whole), expected);
            for page in whole.chunks_mut(PAGE) {
                next = next.wrapping_add(1).max(1);
                page[PAGE - 1] = next;
            }
            let marks = marks(&whole);
            if spare.len() < 5 {
                spare.push((whole, marks));
            }
        }
    }

    #[test]
    fn pieces_keep_what_they_hold() {
        let filled = |pages: usize, byte: u8| {
            let mut piece = PrivatePages::of_pieces(&mut Vec::new(), pages * PAGE).unwrap();
            assert!(piece.iter().all(|byte| *byte == 0) && piece.as_ptr().addr().is_multiple_of(PAGE));
            piece.fill(byte);
            piece
        };
        let mut first = filled(3, 1);
        let back = first.split_off(PAGE);
        let (second, third) = (filled(1, 2), filled(2, 3));
        let whole = PrivatePages::of_pieces(&mut vec![third, back, second], 7 * PAGE).unwrap();
        let page = |at: usize| whole[at * PAGE..(at + 1) * PAGE].to_vec();
        for (at, byte) in [3, 3, 1, 1, 2, 0, 0].into_iter().enumerate() {
            assert!(page(at).iter().all(|found| *found == byte), "page {at}");
        }
        assert!(first.iter().all(|byte| *byte == 1) && first.len() == PAGE);
        // Joined memory is split, moved and joined again.
        let mut whole = whole;
        let end = whole.split_off(3 * PAGE);
        let other = PrivatePages::of_pieces(&mut vec![end, whole], 7 * PAGE).unwrap();
        let bytes: Vec<u8> = other.chunks(PAGE).map(|page| page[7]).collect();
        assert_eq!(bytes, [1, 2, 0, 0, 3, 3, 1]);
        assert_eq!(PrivatePages::of_pieces(&mut Vec::new(), 1 << 16).unwrap().len(), 1 << 16);
    }
}
