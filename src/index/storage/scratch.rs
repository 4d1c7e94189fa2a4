//! The scratch arena: large arrays for building, in memory up to the memory budget, on huge
//! pages where available; beyond that in files.
//!
//! The budget covers anonymous memory. The files have no name, are in the index directory, and the kernel
//! may write them out. A dropped array leaves its memory to the next one (`super::pages`).

use std::fs::File;
use std::io::{self, Write};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::MmapMut;
use rayon::prelude::*;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::open_dir::unnamed_in;
use super::pages::{PAGE, PrivatePages};
use hprof_input::file;
use hprof_input::mapped_files::{self, Content, KnownMap};

/// Requirements of element types.
pub trait Plain: FromBytes + IntoBytes + Immutable + KnownLayout {}
impl<T: FromBytes + IntoBytes + Immutable + KnownLayout> Plain for T {}

/// Allocator of scratch arrays: a handle that can be cloned.
#[derive(Debug, Clone)]
pub struct ScratchArena(Arc<SharedScratch>);

/// State shared by all handles of an arena.
#[derive(Debug)]
struct SharedScratch {
    /// Directory for files.
    dir: PathBuf,
    /// Number of bytes of memory that may still be taken.
    left: AtomicU64,
    /// Memory of dropped arrays: the kernel need not clear it again.
    spare: Mutex<Spare>,
}

/// Memory of dropped arrays, for reuse by new ones.
#[derive(Debug, Default)]
struct Spare {
    /// Pieces of whole huge pages.
    large: Vec<PrivatePages>,
    small: Vec<PrivatePages>,
}

/// Memory for an array, and the length of its prefix that may contain bytes other than zero.
type FoundPages = (PrivatePages, usize);

/// An array in the scratch arena: in memory, or in a file.
#[derive(Debug)]
pub struct Array<T> {
    place: ArrayPlace,
    arena: ScratchArena,
    /// Size of the elements in bytes.
    bytes: usize,
    kind: PhantomData<T>,
}

/// Storage of an array.
#[derive(Debug)]
enum ArrayPlace {
    Nowhere,
    Memory(PrivatePages),
    File {
        // Before the map: it must be dropped first.
        _known: KnownMap,
        map: MmapMut,
    },
}

impl ArrayPlace {
    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Nowhere => &[],
            Self::Memory(pages) => pages,
            Self::File { map, .. } => map,
        }
    }

    #[inline(always)]
    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Nowhere => &mut [],
            Self::Memory(pages) => pages,
            Self::File { map, .. } => map,
        }
    }
}

/// Memory for smaller arrays.
const SMALL_PAGE: usize = 1 << 16;

impl ScratchArena {
    /// Creates an arena with a memory budget of `bytes`, and files in `dir` beyond it.
    pub(crate) fn new(dir: PathBuf, bytes: u64) -> Self {
        Self(Arc::new(SharedScratch { dir, left: AtomicU64::new(bytes), spare: Mutex::default() }))
    }

    /// Takes `bytes` of the budget. Returns `false` if they are not available.
    fn take(&self, bytes: u64) -> bool {
        let take = |left: u64| left.checked_sub(bytes);
        self.0.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Takes `bytes` of the budget, giving spare memory back to the kernel if that is needed. Returns `false` if they are not
    /// available.
    fn take_with_spare(&self, bytes: u64) -> bool {
        let mut taken = self.take(bytes);
        if taken {
            return true;
        }
        let mut spare = self.0.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let Spare { large, small } = &mut *spare;
        while !taken && let Some(pages) = small.pop().or_else(|| large.pop()) {
            self.give_back(pages);
            taken = self.take(bytes);
        }
        taken
    }

    /// Returns the number of bytes left in the budget, including spare memory.
    pub fn remaining_bytes(&self) -> u64 {
        let spare = self.0.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = |pages: &[PrivatePages]| pages.iter().map(|pages| pages.len() as u64).sum::<u64>();
        self.0.left.load(Ordering::Relaxed) + bytes(&spare.large) + bytes(&spare.small)
    }

    /// Returns a reservation for memory outside of arrays, which counts against the same budget.
    pub fn reserve(&self) -> ReservedMemory {
        ReservedMemory { arena: self.clone(), all: 0, bytes: 0 }
    }

    /// Returns an array without elements.
    pub fn empty<T>(&self) -> Array<T> {
        self.array_in(ArrayPlace::Nowhere, 0)
    }

    /// Returns an array of `len` zeros.
    pub fn zeroed_array<T: Plain>(&self, len: usize) -> io::Result<Array<T>> {
        let (mut array, used) = self.make(len)?;
        let used = used.min(array.bytes);
        if let Some(used) = array.place.bytes_mut().get_mut(..used) {
            used.par_chunks_mut(PAGE).for_each(|page| page.fill(0));
        }
        Ok(array)
    }

    /// Returns an array of `len` elements of unspecified content.
    pub fn array<T: Plain>(&self, len: usize) -> io::Result<Array<T>> {
        self.make(len).map(|(array, _)| array)
    }

    /// Returns an array of `len` elements of unspecified content, in memory; `None` if the budget does
    /// not suffice.
    pub fn in_memory<T: Plain>(&self, len: usize) -> Option<Array<T>> {
        let made = self.make_in_memory(len.checked_mul(size_of::<T>())?);
        Some(made.ok()??.0)
    }

    /// Returns an array with these elements.
    pub fn copy<T: Plain + Copy>(&self, elements: &[T]) -> io::Result<Array<T>> {
        let mut array = self.array::<T>(elements.len())?;
        array.copy_from_slice(elements);
        Ok(array)
    }

    /// Returns an array, and the length of its prefix that may contain bytes other than zero.
    fn make<T: Plain>(&self, len: usize) -> io::Result<(Array<T>, usize)> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let explain = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot allocate {bytes} bytes of scratch memory: {error}"))
        };
        if let Some(made) = self.make_in_memory(bytes)? {
            return Ok(made);
        }
        let map = self.file(bytes).and_then(|file| file::map_scratch(&file)).map_err(explain)?;
        // A failing disk, or a full copy-on-write one.
        let known = mapped_files::register(&map, &self.0.dir, Content::Scratch);
        Ok((self.array_in(ArrayPlace::File { _known: known, map }, bytes), 0))
    }

    /// Returns an array like [`ScratchArena::make`], but only in memory; `None` if the memory does not suffice.
    fn make_in_memory<T>(&self, bytes: usize) -> io::Result<Option<(Array<T>, usize)>> {
        if bytes == 0 {
            return Ok(Some((self.array_in(ArrayPlace::Nowhere, bytes), 0)));
        }
        let found = self.memory(bytes)?;
        Ok(found.map(|(pages, used)| (self.array_in(ArrayPlace::Memory(pages), bytes), used)))
    }

    fn array_in<T>(&self, place: ArrayPlace, bytes: usize) -> Array<T> {
        Array { place, arena: self.clone(), bytes, kind: PhantomData }
    }

    /// Returns memory of the budget; `None` if it does not suffice.
    fn memory(&self, bytes: usize) -> io::Result<Option<FoundPages>> {
        let mut spare = self.0.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let Spare { large, small } = &mut *spare;
        let is_small = bytes < PAGE;
        let unit = if is_small { SMALL_PAGE } else { PAGE };
        let wanted = bytes.checked_next_multiple_of(unit).ok_or(io::ErrorKind::OutOfMemory)?;
        let ready = if is_small { fitting(small, bytes) } else { cut(large, wanted) };
        if let Some(pages) = ready {
            let len = pages.len();
            return Ok(Some((pages, len)));
        }
        let mut pieces = if is_small { Vec::new() } else { pieces(large, wanted) };
        let used: usize = pieces.iter().map(|piece| piece.len()).sum();
        let more = (wanted - used) as u64;
        let mut taken = self.take(more);
        // Spare memory of other sizes would be missing from the budget.
        while !taken && let Some(pages) = small.pop().or_else(|| large.pop()) {
            self.give_back(pages);
            taken = self.take(more);
        }
        if !taken {
            large.extend(pieces);
            return Ok(None);
        }
        drop(spare);
        // The system may refuse memory within the budget: there is another limit, or other processes have
        // taken it.
        let Ok(mut pages) = PrivatePages::of_pieces(&mut pieces, wanted) else {
            // Prevents further attempts: what is taken now stays taken. Pieces may suffice for smaller
            // arrays.
            self.0.left.store(0, Ordering::Relaxed);
            self.0.spare.lock().unwrap_or_else(PoisonError::into_inner).large.append(&mut pieces);
            return Ok(None);
        };
        // The kernel clears pages when they are touched: now by all threads, instead of later by one.
        if let Some(untouched) = pages.get_mut(used..) {
            untouched.par_chunks_mut(PAGE).for_each(|page| {
                if let Some(first) = page.first_mut() {
                    *first = 0;
                }
            });
        }
        Ok(Some((pages, used)))
    }

    /// Gives memory back to the kernel, and to the budget.
    fn give_back(&self, pages: PrivatePages) {
        let bytes = pages.len() as u64;
        drop(pages);
        self.0.left.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns an unnamed file of zeros. Its space is allocated at once, so that a full disk is an error
    /// here and not a signal later.
    fn file(&self, bytes: usize) -> io::Result<File> {
        // An existing index may be in a read-only directory.
        let mut file = unnamed_in(&self.0.dir).or_else(|_| unnamed_in(&std::env::temp_dir()))?;
        if !reserve(&file, bytes as u64)? {
            let zeros = vec![0; bytes.min(1 << 18)];
            let mut left = bytes;
            while left > 0 {
                let part = zeros.get(..left.min(zeros.len())).unwrap_or_default();
                file.write_all(part)?;
                left -= part.len();
            }
        }
        Ok(file)
    }
}

/// Takes the smallest spare memory that is large enough, unless it is much too large: that is left for
/// larger arrays.
fn fitting(spare: &mut Vec<PrivatePages>, bytes: usize) -> Option<PrivatePages> {
    let at = smallest(spare, bytes)?;
    let fits = spare.get(at).is_some_and(|pages| pages.len() / 5 * 4 <= bytes);
    fits.then(|| spare.swap_remove(at))
}

fn smallest(spare: &[PrivatePages], bytes: usize) -> Option<usize> {
    let enough = spare.iter().enumerate().filter(|(_, pages)| pages.len() >= bytes);
    enough.min_by_key(|(_, pages)| pages.len()).map(|(at, _)| at)
}

/// Takes memory of `bytes`, in whole pages, split off a larger piece.
#[cfg(target_os = "linux")]
fn cut(spare: &mut Vec<PrivatePages>, bytes: usize) -> Option<PrivatePages> {
    let at = smallest(spare, bytes)?;
    let mut pages = spare.swap_remove(at);
    if pages.len() > bytes {
        spare.push(pages.split_off(bytes));
    }
    Some(pages)
}

/// Takes pieces of this total size, or all that exist: the largest first, as these are the fewest.
#[cfg(target_os = "linux")]
fn pieces(spare: &mut Vec<PrivatePages>, bytes: usize) -> Vec<PrivatePages> {
    spare.sort_by_key(|pages| pages.len());
    let (mut pieces, mut left) = (Vec::new(), bytes);
    while left > 0
        && let Some(mut piece) = spare.pop()
    {
        if piece.len() > left {
            spare.push(piece.split_off(left));
        }
        left -= piece.len();
        pieces.push(piece);
    }
    pieces
}

/// Takes memory that fits: it cannot be split here.
#[cfg(not(target_os = "linux"))]
fn cut(spare: &mut Vec<PrivatePages>, bytes: usize) -> Option<PrivatePages> {
    fitting(spare, bytes)
}

/// Returns an empty list: memory cannot be moved here.
#[cfg(not(target_os = "linux"))]
fn pieces(_: &mut Vec<PrivatePages>, _: usize) -> Vec<PrivatePages> {
    Vec::new()
}

/// Allocates disk space for a file without writing to it, where the system supports it; returns `false`
/// if it does not.
#[cfg(target_os = "linux")]
fn reserve(file: &File, bytes: u64) -> io::Result<bool> {
    use rustix::io::Errno;
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, bytes) {
        Ok(()) => Ok(true),
        Err(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => Err(io::ErrorKind::StorageFull.into()),
        Err(_) => Ok(false),
    }
}

#[cfg(not(target_os = "linux"))]
fn reserve(_: &File, _: u64) -> io::Result<bool> {
    Ok(false)
}

/// Returns the numbers as atomics, for sharing between threads.
pub fn atomic_u64(numbers: &mut [u64]) -> &[AtomicU64] {
    <[AtomicU64]>::mut_from_bytes(numbers.as_mut_bytes()).map_or(&[], |numbers| numbers)
}

/// Returns the numbers as atomics, for sharing between threads.
pub fn atomic_u32(numbers: &mut [u32]) -> &[AtomicU32] {
    <[AtomicU32]>::mut_from_bytes(numbers.as_mut_bytes()).map_or(&[], |numbers| numbers)
}

/// Returns the bytes as atomics, for sharing between threads.
pub(crate) fn atomic_u8(bytes: &mut [u8]) -> &[AtomicU8] {
    <[AtomicU8]>::mut_from_bytes(bytes).map_or(&[], |bytes| bytes)
}

/// Memory outside of arrays that is never refused, in bytes: enough for ordinary queries.
const FREE_BYTES: u64 = 1 << 20;

/// Memory outside of arrays that counts against the budget of an arena, until it is dropped.
#[derive(Debug)]
pub struct ReservedMemory {
    arena: ScratchArena,
    /// Number of bytes taken.
    all: u64,
    /// Number of bytes taken from the budget.
    bytes: u64,
}

impl ReservedMemory {
    /// Takes more memory before it is allocated; returns `false` if the budget does not suffice.
    #[must_use]
    pub fn take(&mut self, bytes: u64) -> bool {
        let all = self.all.saturating_add(bytes);
        let more = all.saturating_sub(FREE_BYTES).saturating_sub(self.bytes);
        let is_taken = more == 0 || self.arena.take_with_spare(more);
        if is_taken {
            (self.all, self.bytes) = (all, self.bytes + more);
        }
        is_taken
    }
}

impl Drop for ReservedMemory {
    fn drop(&mut self) {
        self.arena.0.left.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

/// A stack whose lower part is moved to the arena when it grows.
#[derive(Debug)]
pub struct ScratchStack<T> {
    arena: ScratchArena,
    top: Vec<T>,
    below: Vec<Array<T>>,
    /// Number of elements at the top at which half of them are moved.
    max_top: usize,
}

/// Minimum number of elements, for the smallest type, that is worth a move.
const STACK_TOP: usize = 1 << 20;
/// Number of moves after which twice as many elements are moved at a time.
const MOVES: usize = 8;

impl<T: Plain + Copy> ScratchStack<T> {
    /// Returns an empty stack.
    pub(crate) fn new(arena: &ScratchArena) -> Self {
        Self::with_top(arena, STACK_TOP)
    }

    /// Returns an empty stack that moves this many elements at a time.
    pub fn with_top(arena: &ScratchArena, max_top: usize) -> Self {
        Self { arena: arena.clone(), top: Vec::new(), below: Vec::new(), max_top }
    }

    /// Pushes an element.
    ///
    /// # Errors
    /// The scratch arena has no space for the moved elements.
    #[inline(always)]
    pub fn push(&mut self, element: T) -> io::Result<()> {
        if self.top.len() >= self.max_top {
            self.move_away()?;
        }
        self.top.push(element);
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<T> {
        match self.top.pop() {
            None => self.bring_back(),
            element => element,
        }
    }

    #[cold]
    fn move_away(&mut self) -> io::Result<()> {
        // The upper half stays: a stack that goes up and down at this height does not move elements at
        // each step.
        let half = (self.top.len() / 2).max(1);
        self.below.push(self.arena.copy(self.top.get(..half).unwrap_or_default())?);
        self.top.drain(..half);
        // The number of maps per process is limited: the more there are, the larger the next ones.
        if self.below.len().is_multiple_of(MOVES) {
            self.max_top = self.max_top.saturating_mul(2).clamp(self.max_top, STACK_TOP.max(self.max_top));
        }
        Ok(())
    }

    #[cold]
    fn bring_back(&mut self) -> Option<T> {
        self.top.extend_from_slice(&self.below.pop()?);
        self.top.pop()
    }

    /// Returns all elements of the stack, the lowest first.
    pub fn into_array(self) -> io::Result<Array<T>> {
        let Self { arena, top, below, .. } = self;
        let mut all = arena.array::<T>(top.len() + below.iter().map(|part| part.len()).sum::<usize>())?;
        let mut at = 0;
        for part in below.iter().map(|part| &**part).chain([&*top]) {
            if let Some(place) = all.get_mut(at..at + part.len()) {
                place.copy_from_slice(part);
            }
            at += part.len();
        }
        Ok(all)
    }
}

impl<T> Drop for Array<T> {
    fn drop(&mut self) {
        if let ArrayPlace::Memory(pages) = std::mem::replace(&mut self.place, ArrayPlace::Nowhere) {
            let mut spare = self.arena.0.spare.lock().unwrap_or_else(PoisonError::into_inner);
            if pages.len() < PAGE { spare.small.push(pages) } else { spare.large.push(pages) }
        }
    }
}

impl<T: Plain> Deref for Array<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        let bytes = self.place.bytes().get(..self.bytes);
        bytes.and_then(|bytes| <[T]>::ref_from_bytes(bytes).ok()).unwrap_or_default()
    }
}

impl<T: Plain> DerefMut for Array<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let bytes = self.place.bytes_mut().get_mut(..self.bytes);
        bytes.and_then(|bytes| <[T]>::mut_from_bytes(bytes).ok()).unwrap_or_default()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_gives_back_what_it_took() {
        let dir = tempfile::tempdir().unwrap();
        let many = u32::try_from(STACK_TOP).unwrap() * 5 / 2;
        for memory in [0, 1 << 30] {
            let arena = ScratchArena::new(dir.path().to_owned(), memory);
            let mut stack = ScratchStack::<u32>::new(&arena);
            (0..many).for_each(|number| stack.push(number).unwrap());
            assert_eq!((stack.below.len(), stack.pop()), (3, Some(many - 1)));
            stack.push(7).unwrap();
            assert_eq!(stack.pop(), Some(7));
            assert!((0..many - 1).rev().all(|number| stack.pop() == Some(number)));
            assert_eq!((stack.pop(), stack.pop()), (None, None));
            (0..many).for_each(|number| stack.push(number).unwrap());
            assert!(stack.into_array().unwrap().iter().copied().eq(0..many));
        }
        // Up and down at the height of the last move: no more moves.
        let arena = ScratchArena::new(dir.path().to_owned(), 0);
        let mut stack = ScratchStack::<u32>::with_top(&arena, 8);
        (0..8).for_each(|number| stack.push(number).unwrap());
        let (mut moves, mut parts) = (0, stack.below.len());
        for _ in 0..100 {
            for up in [true, true, false, false] {
                if up {
                    stack.push(9).unwrap()
                } else {
                    assert_eq!(stack.pop(), Some(9))
                }
                moves += usize::from(stack.below.len() != parts);
                parts = stack.below.len();
            }
        }
        assert_eq!(moves, 1);
    }

    #[test]
    fn memory_outside_of_arrays_is_taken_from_the_budget_and_given_back() {
        let dir = tempfile::tempdir().unwrap();
        let arena = ScratchArena::new(dir.path().to_owned(), 4 << 20);
        // Memory that no array uses any more is as good as what was never taken.
        drop(arena.array::<u8>(3 << 20).unwrap());
        let mut reserved = arena.reserve();
        assert!(reserved.take(FREE_BYTES) && arena.remaining_bytes() == 4 << 20);
        assert!(reserved.take(3 << 20) && arena.remaining_bytes() == 1 << 20);
        assert!(!reserved.take((1 << 20) + 1) && reserved.take(1 << 20) && arena.remaining_bytes() == 0);
        assert!(!in_memory(&arena.array::<u8>(1).unwrap()));
        drop(reserved);
        assert_eq!(arena.remaining_bytes(), 4 << 20);
        // Small amounts are never refused.
        assert!(ScratchArena::new(dir.path().to_owned(), 0).reserve().take(FREE_BYTES));
    }

    fn in_memory<T>(array: &Array<T>) -> bool {
        matches!(array.place, ArrayPlace::Memory(_))
    }

    #[test]
    fn arrays_lie_in_memory_and_then_in_files() {
        let dir = tempfile::tempdir().unwrap();
        let arena = ScratchArena::new(dir.path().to_owned(), 5 << 20);
        let mut first = arena.zeroed_array::<u32>(900).unwrap();
        let mut second = arena.array::<u64>(700_000).unwrap();
        let left = (5 << 20) - SMALL_PAGE as u64;
        assert_eq!((in_memory(&first), in_memory(&second), arena.remaining_bytes()), (true, false, left));
        first.fill(7);
        second.fill(9);
        assert!(first.iter().all(|x| *x == 7) && second.iter().all(|x| *x == 9));
        assert_eq!((first.len(), second.len()), (900, 700_000));
        drop((first, second));
        assert_eq!(arena.remaining_bytes(), 5 << 20);
        let again = arena.zeroed_array::<u16>(5000).unwrap();
        assert!(again.iter().all(|x| *x == 0));
        let all = arena.array::<u8>(5 << 20).unwrap();
        assert!((in_memory(&again), in_memory(&all)) == (true, false));
        drop(again);
        let all = arena.zeroed_array::<u8>(4 << 20).unwrap();
        assert!(in_memory(&all) && all.iter().all(|x| *x == 0), "spare memory makes room for more");
        assert!(arena.array::<u32>(0).unwrap().is_empty());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
