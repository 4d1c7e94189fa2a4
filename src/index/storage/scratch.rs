//! The scratch arena: large arrays for building, in memory as far as the memory budget goes, on huge pages where the system
//! has them; beyond that in files.
//!
//! The budget is of anonymous memory. The files have no name, lie in the index directory, and the kernel may write them
//! out. An array that is dropped leaves its memory to the next (`super::pages`).

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

use super::pages::{PAGE, PrivatePages};
use hprof_input::file;
use hprof_input::mapped_files::{self, Content, KnownMap};

/// What elements have to be.
pub trait Plain: FromBytes + IntoBytes + Immutable + KnownLayout {}
impl<T: FromBytes + IntoBytes + Immutable + KnownLayout> Plain for T {}

/// Makes scratch arrays: a handle, of which there may be many.
#[derive(Debug, Clone)]
pub struct ScratchArena(Arc<SharedScratch>);

#[derive(Debug)]
struct SharedScratch {
    /// For files.
    dir: PathBuf,
    /// Bytes of memory that may still be taken.
    left: AtomicU64,
    /// Memory of arrays that are gone: the kernel need not clear it again.
    spare: Mutex<Spare>,
}

/// Memory that no array has.
#[derive(Debug, Default)]
struct Spare {
    /// In whole huge pages.
    large: Vec<PrivatePages>,
    small: Vec<PrivatePages>,
}

/// Memory for an array, and how many bytes of it, from the first on, may be no zeros.
type FoundPages = (PrivatePages, usize);

/// An array.
#[derive(Debug)]
pub struct Array<T> {
    place: ArrayPlace,
    arena: ScratchArena,
    /// Bytes of the elements.
    bytes: usize,
    kind: PhantomData<T>,
}

/// Where an array lies.
#[derive(Debug)]
enum ArrayPlace {
    Nowhere,
    Memory(PrivatePages),
    File {
        // Before the map: it has to be dropped first.
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

/// What smaller arrays are made of.
const SMALL_PAGE: usize = 1 << 16;

impl ScratchArena {
    /// An arena with a memory budget of `bytes`, and files in `dir` for more.
    pub(crate) fn new(dir: PathBuf, bytes: u64) -> Self {
        Self(Arc::new(SharedScratch { dir, left: AtomicU64::new(bytes), spare: Mutex::default() }))
    }

    /// Takes bytes of memory, if there are so many left.
    fn take(&self, bytes: u64) -> bool {
        let take = |left: u64| left.checked_sub(bytes);
        self.0.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Bytes of memory that are left, spare ones included.
    pub fn left(&self) -> u64 {
        let spare = self.0.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = |pages: &[PrivatePages]| pages.iter().map(|pages| pages.len() as u64).sum::<u64>();
        self.0.left.load(Ordering::Relaxed) + bytes(&spare.large) + bytes(&spare.small)
    }

    /// An array of `len` zeros.
    pub fn zeroed<T: Plain>(&self, len: usize) -> io::Result<Array<T>> {
        let (mut array, used) = self.make(len)?;
        let used = used.min(array.bytes);
        if let Some(used) = array.place.bytes_mut().get_mut(..used) {
            used.par_chunks_mut(PAGE).for_each(|page| page.fill(0));
        }
        Ok(array)
    }

    /// An array of `len` elements of unspecified content.
    pub fn array<T: Plain>(&self, len: usize) -> io::Result<Array<T>> {
        self.make(len).map(|(array, _)| array)
    }

    /// An array of `len` elements of unspecified content, in memory; `None` if there is not enough.
    pub fn in_memory<T: Plain>(&self, len: usize) -> Option<Array<T>> {
        let made = self.make_in_memory(len.checked_mul(size_of::<T>())?);
        Some(made.ok()??.0)
    }

    /// An array with these elements.
    pub fn copy<T: Plain + Copy>(&self, elements: &[T]) -> io::Result<Array<T>> {
        let mut array = self.array::<T>(elements.len())?;
        array.copy_from_slice(elements);
        Ok(array)
    }

    /// An array, and how many bytes of it, from the first on, may be no zeros.
    fn make<T: Plain>(&self, len: usize) -> io::Result<(Array<T>, usize)> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let explain = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot allocate {bytes} bytes of scratch memory: {error}"))
        };
        if let Some(made) = self.make_in_memory(bytes)? {
            return Ok(made);
        }
        let map = self.file(bytes).and_then(|file| file::map_scratch(&file)).map_err(explain)?;
        // A failing disk, or one that copies when it writes and is full.
        let known = mapped_files::known(&map, &self.0.dir, Content::Scratch);
        Ok((self.array_in(ArrayPlace::File { _known: known, map }, bytes), 0))
    }

    /// As [`ScratchArena::make`]; none if memory does not do.
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

    /// Memory of the budget; none if it does not do.
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
        // What lies about in other sizes would be missing here.
        while !taken && let Some(pages) = small.pop().or_else(|| large.pop()) {
            self.give_back(pages);
            taken = self.take(more);
        }
        if !taken {
            large.extend(pieces);
            return Ok(None);
        }
        drop(spare);
        // The system may give less than the budget says: another limit, or others have taken it.
        let Ok(mut pages) = PrivatePages::of_pieces(&mut pieces, wanted) else {
            // Nobody shall try again: what is taken now stays taken. Pieces may do for smaller arrays.
            self.0.left.store(0, Ordering::Relaxed);
            self.0.spare.lock().unwrap_or_else(PoisonError::into_inner).large.append(&mut pieces);
            return Ok(None);
        };
        // The kernel clears pages when they are touched: by all threads now, instead of by one later.
        if let Some(untouched) = pages.get_mut(used..) {
            untouched.par_chunks_mut(PAGE).for_each(|page| {
                if let Some(first) = page.first_mut() {
                    *first = 0;
                }
            });
        }
        Ok(Some((pages, used)))
    }

    /// Gives memory back to the kernel.
    fn give_back(&self, pages: PrivatePages) {
        let bytes = pages.len() as u64;
        drop(pages);
        self.0.left.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A file of zeros without a name. Its space is taken at once, so that a full disk is an error here and not a signal
    /// later.
    fn file(&self, bytes: usize) -> io::Result<File> {
        // An index that was found may lie where nobody may write.
        let mut file = tempfile::tempfile_in(&self.0.dir).or_else(|_| tempfile::tempfile())?;
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

/// The smallest memory that is large enough, if it is not much too large: that is left for what needs it.
fn fitting(spare: &mut Vec<PrivatePages>, bytes: usize) -> Option<PrivatePages> {
    let at = smallest(spare, bytes)?;
    let fits = spare.get(at).is_some_and(|pages| pages.len() / 5 * 4 <= bytes);
    fits.then(|| spare.swap_remove(at))
}

fn smallest(spare: &[PrivatePages], bytes: usize) -> Option<usize> {
    let enough = spare.iter().enumerate().filter(|(_, pages)| pages.len() >= bytes);
    enough.min_by_key(|(_, pages)| pages.len()).map(|(at, _)| at)
}

/// Memory of `bytes`, whole pages, cut off what is larger.
#[cfg(target_os = "linux")]
fn cut(spare: &mut Vec<PrivatePages>, bytes: usize) -> Option<PrivatePages> {
    let at = smallest(spare, bytes)?;
    let mut pages = spare.swap_remove(at);
    if pages.len() > bytes {
        spare.push(pages.split_off(bytes));
    }
    Some(pages)
}

/// Takes pieces that have so many bytes together, or all that there are: the longest first, as they are the fewest.
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

/// Memory that cannot be cut is taken if it fits.
#[cfg(not(target_os = "linux"))]
fn cut(spare: &mut Vec<PrivatePages>, bytes: usize) -> Option<PrivatePages> {
    fitting(spare, bytes)
}

/// Memory that cannot be moved is no piece of another.
#[cfg(not(target_os = "linux"))]
fn pieces(_: &mut Vec<PrivatePages>, _: usize) -> Vec<PrivatePages> {
    Vec::new()
}

/// Takes space on the disk for a file without writing it, where the system can: `false` if it cannot.
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

/// Numbers as threads share them.
pub fn atomic_u64(numbers: &mut [u64]) -> &[AtomicU64] {
    <[AtomicU64]>::mut_from_bytes(numbers.as_mut_bytes()).map_or(&[], |numbers| numbers)
}

/// The same of shorter numbers.
pub fn atomic_u32(numbers: &mut [u32]) -> &[AtomicU32] {
    <[AtomicU32]>::mut_from_bytes(numbers.as_mut_bytes()).map_or(&[], |numbers| numbers)
}

/// Bytes as threads share them.
pub(crate) fn atomic_u8(bytes: &mut [u8]) -> &[AtomicU8] {
    <[AtomicU8]>::mut_from_bytes(bytes).map_or(&[], |bytes| bytes)
}

/// A stack whose lower part is moved to the arena when it is high.
#[derive(Debug)]
pub struct ScratchStack<T> {
    arena: ScratchArena,
    top: Vec<T>,
    below: Vec<Array<T>>,
    /// Elements at the top before half of them are moved.
    max_top: usize,
}

/// So many of the shortest numbers are worth a move.
const STACK_TOP: usize = 1 << 20;
/// Moves after which twice as many elements are moved at a time.
const MOVES: usize = 8;

impl<T: Plain + Copy> ScratchStack<T> {
    /// An empty stack.
    pub(crate) fn new(arena: &ScratchArena) -> Self {
        Self::with_top(arena, STACK_TOP)
    }

    /// An empty stack that moves so many elements away at a time.
    pub fn with_top(arena: &ScratchArena, max_top: usize) -> Self {
        Self { arena: arena.clone(), top: Vec::new(), below: Vec::new(), max_top }
    }

    /// Adds an element at the top.
    ///
    /// # Errors
    /// The scratch arena has no room for what it moves away.
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
        // The upper half stays: a stack that goes up and down here does not move at each step.
        let half = (self.top.len() / 2).max(1);
        self.below.push(self.arena.copy(self.top.get(..half).unwrap_or_default())?);
        self.top.drain(..half);
        // A process may have so many maps and no more: the more there are, the larger the next ones.
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

    /// All elements, the lowest first.
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
        // Up and down at the height at which it moved: no more moves.
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

    fn in_memory<T>(array: &Array<T>) -> bool {
        matches!(array.place, ArrayPlace::Memory(_))
    }

    #[test]
    fn arrays_lie_in_memory_and_then_in_files() {
        let dir = tempfile::tempdir().unwrap();
        let arena = ScratchArena::new(dir.path().to_owned(), 5 << 20);
        let mut first = arena.zeroed::<u32>(900).unwrap();
        let mut second = arena.array::<u64>(700_000).unwrap();
        let left = (5 << 20) - SMALL_PAGE as u64;
        assert_eq!((in_memory(&first), in_memory(&second), arena.left()), (true, false, left));
        first.fill(7);
        second.fill(9);
        assert!(first.iter().all(|x| *x == 7) && second.iter().all(|x| *x == 9));
        assert_eq!((first.len(), second.len()), (900, 700_000));
        drop((first, second));
        assert_eq!(arena.left(), 5 << 20);
        let again = arena.zeroed::<u16>(5000).unwrap();
        assert!(again.iter().all(|x| *x == 0));
        let all = arena.array::<u8>(5 << 20).unwrap();
        assert!((in_memory(&again), in_memory(&all)) == (true, false));
        drop(again);
        let all = arena.zeroed::<u8>(4 << 20).unwrap();
        assert!(in_memory(&all) && all.iter().all(|x| *x == 0), "spare memory makes room for more");
        assert!(arena.array::<u32>(0).unwrap().is_empty());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
