//! gzip in blocks: a file of many members, as HotSpot writes it (`jcmd PID GC.heap_dump -gz=1`), unpacked by all cores.
//!
//! No header states where the next member starts. Threads take offsets that look like a member's header and unpack from there;
//! their result counts only if the members before it, verified by their checksums, end exactly there. So data that looks like a
//! header costs a moment and changes nothing. Each thread holds one run of members in memory and waits for its turn before it
//! takes the next offset.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use memchr::memmem;

use super::member::{self, Head, Inflater, MAGIC, Stop};
use super::{Output, ProgressCallback, UnpackOutcome};

/// Unpacked size in bytes above which a member is written while one thread unpacks it.
pub(super) const LARGE: usize = 8 << 20;
/// Number of unpacked bytes after which a thread stops before the next member; it also stops after [`STRIDE`].
const ENOUGH: usize = 1 << 20;
/// Minimum distance between offsets that threads take: tiny members are unpacked in runs.
const STRIDE: usize = 4096;
/// Maximum distance of the search for headers from the end of the finished members.
const AHEAD: usize = 64 << 20;
/// Maximum number of bytes that are unpacked in vain, or filled with zeros, for damaged members. Otherwise a malicious
/// file could take forever.
const IN_VAIN: u64 = 1 << 30;
/// Length of a header before its names.
const HEAD: usize = 10;
/// Maximum number of damaged members in the message.
const NAMED: u64 = 3;

/// Mark that HotSpot writes into the header of the first block.
const MARK: &[u8] = b"HPROF BLOCKSIZE=";
/// Maximum number of packed bytes of a member that are examined before it is unpacked: fewer yield [`LARGE`] bytes,
/// unless it was made to yield nothing.
const LOOKED_AT: usize = 2 * LARGE;
/// Number of offsets at which [`estimate`] examines blocks.
const SAMPLES: usize = 8;
/// Number of consecutive blocks examined at each offset: where small and large ones alternate, the block found first is always
/// a small one.
const IN_A_ROW: usize = 2;
/// Minimum number of offsets with blocks for an estimate.
const ENOUGH_SAMPLES: usize = 4;

/// Returns whether the members of `packed` are small enough to be unpacked as blocks, by HotSpot's mark or by the first
/// one.
pub(super) fn has_small_members(packed: &[u8]) -> bool {
    let is_marked = packed.get(10..10 + MARK.len()) == Some(MARK) && packed.get(3) == Some(&16);
    is_marked || inflate_first(packed).is_some_and(|(stop, end, _)| stop == Stop::End && end < packed.len())
}

/// Returns the packed and unpacked length of the first member, or of its beginning if it is large.
pub(super) fn first_member_lengths(packed: &[u8]) -> Option<(u64, u64)> {
    inflate_first(packed).map(|(_, end, filled)| (end as u64, filled as u64))
}

/// Unpacks the first member up to [`LARGE`] bytes: returns the reason why that stops, the offset, and the number of
/// bytes.
fn inflate_first(packed: &[u8]) -> Option<(Stop, usize, usize)> {
    look(packed, &mut Inflater::new(), &mut vec![0; LARGE])
}

/// Unpacks the first member like [`inflate_first`], with the given buffers.
fn look(packed: &[u8], inflater: &mut Inflater, out: &mut [u8]) -> Option<(Stop, usize, usize)> {
    let packed = packed.get(..LOOKED_AT).unwrap_or(packed);
    let Head::Whole(mut at) = member::head(packed) else { return None };
    let mut filled = 0;
    inflater.reset();
    let stop = inflater.run(packed, &mut at, out, &mut filled);
    Some((stop, at, filled))
}

/// Estimates the unpacked size of all blocks by samples from all over the file; `None` if there are too few.
///
/// Uses the median, not the sum: a block that packs a thousand times better than the others, such as a small first file, is not
/// representative.
pub(super) fn estimate(packed: &[u8]) -> Option<u64> {
    let finder = memmem::Finder::new(&MAGIC);
    let (mut inflater, mut out) = (Inflater::new(), vec![0; LARGE]);
    let (mut samples, mut behind) = (Vec::new(), 0);
    for sample in 0..SAMPLES {
        // Blocks that were examined before are skipped.
        let from = behind.max(packed.len() / SAMPLES * sample);
        let near = packed.get(from..packed.len().min(from + LARGE)).unwrap_or_default();
        let Some(start) = finder.find(near).map(|at| from + at) else { continue };
        let (mut end, mut made) = (start, 0);
        for _ in 0..IN_A_ROW {
            let rest = packed.get(end..).unwrap_or_default();
            let Some((Stop::End, len, filled)) = look(rest, &mut inflater, &mut out) else { break };
            (end, made) = (end + len, made + filled);
        }
        if end > start {
            samples.push(packed.len() as u128 * made as u128 / (end - start) as u128);
            behind = end;
        }
    }
    samples.sort_unstable();
    let middle =
        samples.get(samples.len().saturating_sub(1) / 2).filter(|_| samples.len() >= ENOUGH_SAMPLES)?;
    Some(u64::try_from(*middle).unwrap_or(u64::MAX))
}

/// Returns whether the rest of a file is padding, which gzip itself also skips.
fn is_padding(rest: &[u8]) -> bool {
    rest.iter().all(|byte| *byte == 0)
}

/// State of unpacking, which the threads change under a lock.
struct UnpackState {
    /// End of the finished members.
    turn: usize,
    /// Offset at which the search for the next header continues.
    ahead: usize,
    /// Offsets that were taken and are not before `turn`.
    taken: BTreeSet<usize>,
    /// Number of finished bytes.
    len: u64,
    /// `true` if nothing is left to do.
    done: bool,
    failed: Option<io::Error>,
    damage: Damage,
    /// Fixed part of the header of a valid member other than the first, whose header differs.
    head: Option<[u8; HEAD]>,
}

/// Damage found so far.
#[derive(Default)]
struct Damage {
    members: u64,
    in_vain: u64,
    texts: Vec<String>,
    end: Option<String>,
}

impl Damage {
    fn text(self) -> Option<String> {
        let mut texts = self.texts;
        let more = self.members.saturating_sub(NAMED);
        if more > 0 {
            texts.push(format!("{more} more damaged block{}", if more == 1 { "" } else { "s" }));
        }
        texts.extend(self.end);
        (!texts.is_empty()).then(|| texts.join("; "))
    }
}

/// Data shared by the threads that unpack a file.
struct UnpackShared<'a> {
    packed: &'a [u8],
    out: &'a dyn Output,
    progress: &'a ProgressCallback<'a>,
    finder: memmem::Finder<'static>,
    state: Mutex<UnpackState>,
    changed: Condvar,
}

/// Members that one thread has unpacked.
struct MemberRun {
    start: usize,
    end: usize,
    /// Number of unpacked bytes.
    filled: usize,
    /// Reason why it ends; [`Stop::End`] at the end of a member. Any other reason is that of its first member: later members
    /// are left to the next run.
    stop: Stop,
}

/// Unpacks all members, in parallel.
///
/// # Errors
/// If the output fails.
pub(super) fn unpack(
    packed: &[u8],
    out: &dyn Output,
    progress: &ProgressCallback<'_>,
) -> io::Result<UnpackOutcome> {
    let state = UnpackState {
        turn: 0,
        ahead: 0,
        taken: BTreeSet::new(),
        len: 0,
        done: packed.is_empty(),
        failed: None,
        damage: Damage::default(),
        head: None,
    };
    let finder = memmem::Finder::new(&MAGIC).into_owned();
    let shared =
        UnpackShared { packed, out, progress, finder, state: Mutex::new(state), changed: Condvar::new() };
    rayon::broadcast(|_| {
        let _guard = PanicGuard(&shared);
        shared.work();
    });
    let state = shared.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    match state.failed {
        Some(error) => Err(error),
        None => Ok(UnpackOutcome { len: state.len, error: state.damage.text() }),
    }
}

/// A thread that panics must not let the others wait for its turn.
struct PanicGuard<'s, 'a>(&'s UnpackShared<'a>);

impl Drop for PanicGuard<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(self.0.lock(), io::Error::other("a thread panicked"));
        }
    }
}

impl UnpackShared<'_> {
    fn lock(&self) -> MutexGuard<'_, UnpackState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'g>(&self, state: MutexGuard<'g, UnpackState>) -> MutexGuard<'g, UnpackState> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, mut state: MutexGuard<'_, UnpackState>, error: io::Error) {
        state.failed.get_or_insert(error);
        state.done = true;
        drop(state);
        self.changed.notify_all();
    }

    fn work(&self) {
        let mut inflater = Inflater::new();
        let mut buffer = vec![0; LARGE];
        while let Some(start) = self.take() {
            let run = self.inflate(&mut inflater, &mut buffer, start);
            let Some(state) = self.wait_for(start) else { continue };
            let written = match run.stop {
                Stop::End => self.put(state, &run, &buffer),
                Stop::Full => self.put_large(state, &run, &mut inflater, &mut buffer),
                Stop::Cut => self.put_cut(state, &run, &buffer),
                Stop::Bad(why) => self.put_bad(state, &run, why, &mut inflater, &mut buffer),
            };
            if let Err(error) = written {
                self.fail(self.lock(), error);
            }
        }
    }

    /// Takes the next offset that looks like a header. Waits if the search is far enough ahead.
    fn take(&self) -> Option<usize> {
        let mut state = self.lock();
        loop {
            if state.done {
                return None;
            }
            // The offset at which a member must start is taken whatever its bytes look like.
            let place = if state.ahead <= state.turn { Some(state.turn) } else { self.find(&mut state) };
            let Some(place) = place else {
                state = self.wait(state);
                continue;
            };
            state.ahead = place + STRIDE;
            if state.taken.insert(place) {
                return Some(place);
            }
        }
    }

    /// Finds the next offset that looks like a header, within [`AHEAD`].
    fn find(&self, state: &mut UnpackState) -> Option<usize> {
        let (from, to) = (state.ahead, self.packed.len().min(state.turn.saturating_add(AHEAD)));
        let looks = |at: &usize| member::head(self.packed.get(from + at..).unwrap_or_default()) != Head::None;
        let found = self.finder.find_iter(self.packed.get(from..to).unwrap_or_default()).find(looks);
        if found.is_none() {
            // A header across the border is found later.
            state.ahead = from.max(to.saturating_sub(MAGIC.len() - 1));
        }
        found.map(|at| from + at)
    }

    /// Waits for the turn of the run that starts at `start`. Returns `None` if no member starts there.
    fn wait_for(&self, start: usize) -> Option<MutexGuard<'_, UnpackState>> {
        let mut state = self.lock();
        while state.turn < start && !state.done {
            state = self.wait(state);
        }
        state.taken.remove(&start);
        (state.turn == start && !state.done).then_some(state)
    }

    /// Unpacks members from `start` on.
    fn inflate(&self, inflater: &mut Inflater, buffer: &mut [u8], start: usize) -> MemberRun {
        let mut run = MemberRun { start, end: start, filled: 0, stop: Stop::End };
        loop {
            let (stop, end, filled) = self.inflate_one(inflater, buffer, run.end, run.filled);
            if stop != Stop::End {
                if run.end == start {
                    return MemberRun { start, end, filled, stop };
                }
                // The next run starts with this member, with an empty buffer.
                return run;
            }
            (run.end, run.filled) = (end, filled);
            let goes_on = matches!(member::head(self.packed.get(end..).unwrap_or_default()), Head::Whole(_));
            if !goes_on || filled >= ENOUGH || end - start >= STRIDE {
                return run;
            }
        }
    }

    /// Unpacks the member at `at` into `buffer` from `filled` on: returns the reason why it stops, the offset, and the
    /// new end of the buffer.
    fn inflate_one(
        &self,
        inflater: &mut Inflater,
        buffer: &mut [u8],
        at: usize,
        filled: usize,
    ) -> (Stop, usize, usize) {
        let head = match member::head(self.packed.get(at..).unwrap_or_default()) {
            Head::Whole(head) => head,
            Head::Cut => return (Stop::Cut, self.packed.len(), filled),
            Head::None => return (Stop::Bad("it has no header"), at, filled),
        };
        inflater.reset();
        let (mut end, mut filled) = (at + head, filled);
        let stop = inflater.run(self.packed, &mut end, buffer, &mut filled);
        (stop, end, filled)
    }

    /// Passes bytes to the output in file order; returns their offset.
    fn pass(&self, state: &mut MutexGuard<'_, UnpackState>, bytes: &[u8]) -> io::Result<u64> {
        let at = state.len;
        self.out.receive(bytes)?;
        state.len += bytes.len() as u64;
        Ok(at)
    }

    /// Marks everything before `end` as finished: the run that starts there is next.
    fn advance(&self, mut state: MutexGuard<'_, UnpackState>, end: usize) {
        (self.progress)((end - state.turn.min(end)) as u64);
        state.turn = end;
        let rest = self.packed.get(end..).unwrap_or_default();
        state.done = is_padding(rest);
        state.taken = state.taken.split_off(&end);
        if !state.taken.contains(&end) {
            state.ahead = end;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Ends unpacking: nothing after this can be read.
    fn end(&self, mut state: MutexGuard<'_, UnpackState>, text: String) {
        state.damage.end = Some(text);
        state.done = true;
        drop(state);
        self.changed.notify_all();
    }

    fn put(&self, mut state: MutexGuard<'_, UnpackState>, run: &MemberRun, buffer: &[u8]) -> io::Result<()> {
        let bytes = buffer.get(..run.filled).unwrap_or_default();
        let at = self.pass(&mut state, bytes)?;
        if run.start > 0 {
            state.head = self.packed.get(run.start..).and_then(|head| head.first_chunk().copied());
        }
        self.advance(state, run.end);
        // Written after the turn has passed: other threads pass on their bytes meanwhile.
        self.out.write_at(at, bytes)
    }

    /// Writes a large member while it is unpacked. The others wait: they have nothing to do in it.
    fn put_large(
        &self,
        mut state: MutexGuard<'_, UnpackState>,
        run: &MemberRun,
        inflater: &mut Inflater,
        buffer: &mut [u8],
    ) -> io::Result<()> {
        let (mut end, mut filled, mut stop) = (run.end, run.filled, run.stop);
        loop {
            let bytes = buffer.get(..filled).unwrap_or_default();
            let at = self.pass(&mut state, bytes)?;
            self.out.write_at(at, bytes)?;
            match stop {
                Stop::End => {
                    self.advance(state, end);
                    return Ok(());
                }
                Stop::Full => {}
                Stop::Cut => {
                    self.end(state, "the file ends in the middle of a block".to_owned());
                    return Ok(());
                }
                Stop::Bad(why) => {
                    self.end(state, damaged_block_message(run.start, why));
                    return Ok(());
                }
            }
            filled = 0;
            stop = inflater.run(self.packed, &mut end, buffer, &mut filled);
        }
    }

    fn put_cut(
        &self,
        mut state: MutexGuard<'_, UnpackState>,
        run: &MemberRun,
        buffer: &[u8],
    ) -> io::Result<()> {
        let bytes = buffer.get(..run.filled).unwrap_or_default();
        let at = self.pass(&mut state, bytes)?;
        let there = self.packed.len() - run.start.min(self.packed.len());
        self.end(state, format!("the file ends in the middle of a block, {there} bytes after its start"));
        self.out.write_at(at, bytes)
    }

    /// Handles a damaged member. If a valid one follows, the trailers before that state the length of this one, and of
    /// further damaged ones: zeros replace them, so that no wrong data is used and later data has the right offset,
    /// unless the end of one and the start of the next are damaged.
    fn put_bad(
        &self,
        mut state: MutexGuard<'_, UnpackState>,
        run: &MemberRun,
        why: &str,
        inflater: &mut Inflater,
        buffer: &mut [u8],
    ) -> io::Result<()> {
        let mut other = vec![0; LARGE];
        let Some(gap) = self.gap(&mut state, run.start, inflater, &mut other) else {
            // The readable part is used, as for a truncated member.
            let bytes = buffer.get(..run.filled).unwrap_or_default();
            let at = self.pass(&mut state, bytes)?;
            self.end(state, damaged_block_message(run.start, why));
            return self.out.write_at(at, bytes);
        };
        // The first one contains the dump's header, which is needed even if the rest is damaged.
        let is_first = state.len == 0;
        let longest = gap.members.iter().map(|(_, len)| *len).max().unwrap_or_default();
        other.get_mut(..longest).unwrap_or_default().fill(0);
        for (number, (start, len)) in gap.members.iter().enumerate() {
            let kept = if is_first && number == 0 { run.filled.min(*len) } else { 0 };
            state.damage.members += 1;
            if state.damage.members <= NAMED {
                let why = if number == 0 { why } else { "its data is invalid" };
                let zeros = len - kept;
                let next = gap.members.get(number + 1).map_or(gap.end, |(next, _)| *next);
                // Where the border between two blocks is damaged, the length of the first is unknown.
                let is = if is_more_than_one(next - start.min(&next), *len) { "is" } else { "may be" };
                let text = format!(
                    "the block at {start:#x} is damaged: {why}; at least {zeros} bytes are missing and were \
                     replaced with zeros; the data after them {is} at too low an offset"
                );
                state.damage.texts.push(text);
            }
            let parts = [buffer.get(..kept), other.get(kept..*len)];
            for bytes in parts.into_iter().flatten().filter(|bytes| !bytes.is_empty()) {
                let at = self.pass(&mut state, bytes)?;
                self.out.write_at(at, bytes)?;
            }
        }
        self.advance(state, gap.end);
        Ok(())
    }

    /// Returns the damaged members from `start` up to the next valid one; `None` if there is none, or if the search is too
    /// expensive. Valid means: from its header to its checksum, and not a gzip file within a damaged member. So another member
    /// or the end must follow, and its header must be like the others', or the member after it must be valid, too.
    fn gap(
        &self,
        state: &mut MutexGuard<'_, UnpackState>,
        start: usize,
        inflater: &mut Inflater,
        buffer: &mut [u8],
    ) -> Option<Gap> {
        let mut gap = Gap { members: Vec::new(), end: start };
        let from = start + 1;
        for at in self.finder.find_iter(self.packed.get(from..)?).map(|at| from + at) {
            if state.damage.in_vain > IN_VAIN {
                return None;
            }
            let rest = self.packed.get(at..).unwrap_or_default();
            let is_alike = state.head.is_none_or(|head| rest.starts_with(&head));
            let (stop, end, filled) = self.inflate_one(inflater, buffer, at, 0);
            let stated = member::length_before(self.packed, at).and_then(|len| usize::try_from(len).ok());
            let len = stated.filter(|len| *len <= LARGE);
            // Each has a cost even if it yields no bytes: packed bytes may yield none.
            let vain = &mut state.damage.in_vain;
            *vain += (filled + (end - at.min(end)) + len.unwrap_or_default()) as u64 + 4096;
            let is_right = stop == Stop::End && {
                let behind = self.packed.get(end..).unwrap_or_default();
                let zeros = behind.iter().take_while(|byte| **byte == 0).count();
                *vain += zeros as u64;
                zeros == behind.len()
                    || if is_alike {
                        member::head(behind) != Head::None
                    } else {
                        let (stop, next, filled) = self.inflate_one(inflater, buffer, end, 0);
                        *vain += (filled + (next - end.min(next))) as u64;
                        matches!(stop, Stop::End | Stop::Full)
                    }
            };
            if !is_right && (stop == Stop::End || !is_alike) {
                continue;
            }
            match len {
                Some(len) => {
                    gap.members.push((gap.end, len));
                    gap.end = at;
                }
                None if is_right => return None,
                // No member could be so large: it only looks like a header.
                None => {}
            }
            if is_right {
                return Some(gap);
            }
        }
        None
    }
}

/// Returns the message for a damaged member that is used nevertheless: no valid one follows it.
fn damaged_block_message(start: usize, why: &str) -> String {
    format!(
        "the block at {start:#x} is damaged: {why}; the part that could be unpacked was read and may be wrong; \
         nothing after it was read"
    )
}

/// Returns whether `packed` bytes are more than `len` bytes can take: stored uncompressed, with a header; or with fixed
/// codes, of nine bits at most, which fast packers use for anything.
const fn is_more_than_one(packed: usize, len: usize) -> bool {
    packed > len + len / 8 + len / 16383 * 5 + 64
}

/// A run of damaged members.
struct Gap {
    /// Start of each member, and its length by the trailer at its end.
    members: Vec<(usize, usize)>,
    /// Start of the next valid member.
    end: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_member_that_gives_nothing_a_part_is_looked_at() {
        let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
        // Stored parts without data.
        packed.extend([0, 0, 0, 0xff, 0xff].repeat(LOOKED_AT / 5 + 1000));
        assert_eq!(first_member_lengths(&packed), Some((LOOKED_AT as u64, 0)));
    }

    #[test]
    fn what_is_stored_is_looked_at_as_far_as_it_is_kept() {
        let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
        // In parts of a hundred bytes, which no program would make so short.
        packed.extend([&[0, 100, 0, 155, 255][..], &[7; 100]].concat().repeat(LARGE / 100 + 1));
        assert_eq!(first_member_lengths(&packed).map(|(_, made)| made), Some(LARGE as u64));
    }
}
