//! gzip in blocks: a file of many members, as HotSpot writes it (`jcmd PID GC.heap_dump -gz=1`), unpacked by all cores.
//!
//! No header says where the next member begins. Threads take places that look like a member's header and unpack from
//! there; what they have counts only if the members before it, checked by their checksums, end exactly there. So a
//! header's look in the middle of data costs a moment and changes nothing. Each thread holds one run of members in memory
//! and waits for its turn before it takes the next place.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use memchr::memmem;

use super::member::{self, Head, Inflater, MAGIC, Stop};
use super::{Output, Progress, Unpacked};

/// A member that becomes larger than this is unpacked while it is written, by one thread.
pub(super) const LARGE: usize = 8 << 20;
/// A thread goes on to the next member until it has so many bytes, or has passed [`STRIDE`].
const ENOUGH: usize = 1 << 20;
/// Places that threads take are at least so far apart: tiny members are unpacked in runs.
const STRIDE: usize = 4096;
/// How far ahead of what is known places are looked for.
const AHEAD: usize = 64 << 20;
/// Bytes that may be unpacked in vain, or filled with zeros, for damaged members. A file made for that could otherwise take for ever.
const IN_VAIN: u64 = 1 << 30;
/// Bytes of a header in front of its names.
const HEAD: usize = 10;
/// Damaged members that are named.
const NAMED: u64 = 3;

/// What HotSpot writes into the header of the first block.
const MARK: &[u8] = b"HPROF BLOCKSIZE=";
/// Packed bytes of a member that are looked at before it is unpacked: [`LARGE`] bytes come of fewer, unless it was made
/// to give nothing.
const LOOKED_AT: usize = 2 * LARGE;
/// Places at which blocks are looked at for [`estimate`], and how many one after the other at each: where small and
/// large ones take turns, what follows a place is always a small one.
const SAMPLES: usize = 8;
const IN_A_ROW: usize = 2;
/// With fewer places than this that are blocks nothing is known of the others.
const ENOUGH_SAMPLES: usize = 4;

/// Whether the members of `packed` are small enough to be unpacked as blocks: HotSpot's mark or the first one tells.
pub(super) fn are_in(packed: &[u8]) -> bool {
    let is_marked = packed.get(10..10 + MARK.len()) == Some(MARK) && packed.get(3) == Some(&16);
    is_marked || first(packed).is_some_and(|(stop, end, _)| stop == Stop::End && end < packed.len())
}

/// Packed and unpacked length of the first member, or of its beginning if it is large.
pub(super) fn start(packed: &[u8]) -> Option<(u64, u64)> {
    first(packed).map(|(_, end, filled)| (end as u64, filled as u64))
}

/// Unpacks the first member as far as [`LARGE`]: why that stops, where, and how many bytes there are.
fn first(packed: &[u8]) -> Option<(Stop, usize, usize)> {
    look(packed, &mut Inflater::new(), &mut vec![0; LARGE])
}

/// As [`first`], with what is needed for it.
fn look(packed: &[u8], inflater: &mut Inflater, out: &mut [u8]) -> Option<(Stop, usize, usize)> {
    let packed = packed.get(..LOOKED_AT).unwrap_or(packed);
    let Head::Whole(mut at) = member::head(packed) else { return None };
    let mut filled = 0;
    inflater.reset();
    let stop = inflater.run(packed, &mut at, out, &mut filled);
    Some((stop, at, filled))
}

/// About how many bytes blocks become, by some of them from all over the file; `None` if there are too few to tell.
///
/// By the middle one of them, not by their sum: one that packs a thousand times better than the others, as a first file
/// in front of others may, says nothing of those.
pub(super) fn estimate(packed: &[u8]) -> Option<u64> {
    let finder = memmem::Finder::new(&MAGIC);
    let (mut inflater, mut out) = (Inflater::new(), vec![0; LARGE]);
    let (mut samples, mut behind) = (Vec::new(), 0);
    for sample in 0..SAMPLES {
        // Not what was looked at before.
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

/// Whether the rest of a file is padding, which gzip itself skips too.
fn is_padding(rest: &[u8]) -> bool {
    rest.iter().all(|byte| *byte == 0)
}

/// What all threads know.
struct UnpackState {
    /// Where the members that are done end.
    turn: usize,
    /// Where the next place is looked for.
    ahead: usize,
    /// Places that were taken and are not behind `turn`.
    taken: BTreeSet<usize>,
    /// Bytes that are done.
    len: u64,
    /// Nothing more is to be done.
    done: bool,
    failed: Option<io::Error>,
    damage: Damage,
    /// The fixed part of the header of a member that was right. The first member's is not like the others'.
    head: Option<[u8; HEAD]>,
}

/// What was damaged.
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
            texts.push(format!("{more} more damaged blocks"));
        }
        texts.extend(self.end);
        (!texts.is_empty()).then(|| texts.join("; "))
    }
}

struct UnpackShared<'a> {
    packed: &'a [u8],
    out: &'a dyn Output,
    progress: &'a Progress<'a>,
    finder: memmem::Finder<'static>,
    state: Mutex<UnpackState>,
    changed: Condvar,
}

/// Members that one thread has unpacked.
struct MemberRun {
    start: usize,
    end: usize,
    /// Bytes unpacked.
    filled: usize,
    /// Why it ends; [`Stop::End`] where a member does. Any other stop is that of its first member: later ones are left
    /// to the next run.
    stop: Stop,
}

/// Unpacks all members, in parallel.
///
/// # Errors
/// If the output fails.
pub(super) fn unpack(packed: &[u8], out: &dyn Output, progress: &Progress<'_>) -> io::Result<Unpacked> {
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
        None => Ok(Unpacked { len: state.len, error: state.damage.text() }),
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

    /// The next place that looks like a header. Waits if it has looked far enough ahead.
    fn take(&self) -> Option<usize> {
        let mut state = self.lock();
        loop {
            if state.done {
                return None;
            }
            // What has to be a member is unpacked whatever it looks like.
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

    /// The next place that looks like a header, not too far ahead of what is known.
    fn find(&self, state: &mut UnpackState) -> Option<usize> {
        let (from, to) = (state.ahead, self.packed.len().min(state.turn.saturating_add(AHEAD)));
        let looks = |at: &usize| member::head(self.packed.get(from + at..).unwrap_or_default()) != Head::None;
        let found = self.finder.find_iter(self.packed.get(from..to).unwrap_or_default()).find(looks);
        if found.is_none() {
            // One that lies across the border is found later.
            state.ahead = from.max(to.saturating_sub(MAGIC.len() - 1));
        }
        found.map(|at| from + at)
    }

    /// Waits for the turn of what begins at `start`. `None` if that turn will not come: it is no member.
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
                // The next run begins with it, and has all of the buffer for it.
                return run;
            }
            (run.end, run.filled) = (end, filled);
            let goes_on = matches!(member::head(self.packed.get(end..).unwrap_or_default()), Head::Whole(_));
            if !goes_on || filled >= ENOUGH || end - start >= STRIDE {
                return run;
            }
        }
    }

    /// Unpacks the member at `at` into `buffer` from `filled` on: why it stops, where, and where the buffer is filled to.
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

    /// Tells the output of bytes, in their order; says where they belong.
    fn pass(&self, state: &mut MutexGuard<'_, UnpackState>, bytes: &[u8]) -> io::Result<u64> {
        let at = state.len;
        self.out.pass(bytes)?;
        state.len += bytes.len() as u64;
        Ok(at)
    }

    /// What comes before `end` is done: whoever has what begins there is next.
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

    /// Nothing behind can be read.
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
        // Out of turn: others pass on theirs meanwhile.
        self.out.write_at(at, bytes)
    }

    /// Writes a large member while it is unpacked. The others wait: there is nothing for them in it.
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
                    self.end(state, "it ends in the middle of a block".to_owned());
                    return Ok(());
                }
                Stop::Bad(why) => {
                    self.end(state, used(run.start, why));
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
        self.end(state, format!("it ends in the middle of a block, after {there} bytes of it"));
        self.out.write_at(at, bytes)
    }

    /// A damaged member. If a good one follows, the trailers in front of that tell how long this one was, and those that
    /// are damaged behind it: zeros take their place, so that nothing wrong is taken for right, and what is behind is
    /// where it belongs, unless the end of one and the beginning of the next are damaged.
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
            // What there is of it is used, as of a cut one.
            let bytes = buffer.get(..run.filled).unwrap_or_default();
            let at = self.pass(&mut state, bytes)?;
            self.end(state, used(run.start, why));
            return self.out.write_at(at, bytes);
        };
        // Of the first one the dump's header is needed, be it damaged behind that.
        let is_first = state.len == 0;
        let longest = gap.members.iter().map(|(_, len)| *len).max().unwrap_or_default();
        other.get_mut(..longest).unwrap_or_default().fill(0);
        for (number, (start, len)) in gap.members.iter().enumerate() {
            let kept = if is_first && number == 0 { run.filled.min(*len) } else { 0 };
            state.damage.members += 1;
            if state.damage.members <= NAMED {
                let why = if number == 0 { why } else { "its data is wrong" };
                let zeros = len - kept;
                let next = gap.members.get(number + 1).map_or(gap.end, |(next, _)| *next);
                // Where the border of two blocks is damaged, nothing tells how long the first of them was.
                let is = if is_more_than_one(next - start.min(&next), *len) { "is" } else { "may be" };
                let text = format!(
                    "the block at {start:#x} is damaged: {why}; at least {zeros} bytes are missing here and read as \
                     zeros; what follows {is} at too low an offset"
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

    /// The damaged members from `start` on, up to the next one that is right from its header to its checksum, and that
    /// is no gzip file within a damaged one: another one follows, or the end, and its header is as the others', or that
    /// one is right too. `None` if there is none, or it costs too much to find it.
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
            // Each costs something, if it makes no byte too: packed bytes can be read that make none.
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

/// Says of a damaged member that it is used all the same: no other one follows from which on all is right.
fn used(start: usize, why: &str) -> String {
    format!(
        "the block at {start:#x} is damaged: {why}; what could be unpacked of it was read and may be wrong; nothing \
         after it was read"
    )
}

/// Whether `packed` bytes are more than what `len` bytes can take: as they are, in stored parts, with a header; or with
/// fixed codes, of nine bits at most, which fast packers use for anything.
const fn is_more_than_one(packed: usize, len: usize) -> bool {
    packed > len + len / 8 + len / 16383 * 5 + 64
}

/// Damaged members.
struct Gap {
    /// Where each begins, and how long it was by the trailer at its end.
    members: Vec<(usize, usize)>,
    /// Where the next good one begins.
    end: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_member_that_gives_nothing_a_part_is_looked_at() {
        let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
        // Stored parts of no bytes.
        packed.extend([0, 0, 0, 0xff, 0xff].repeat(LOOKED_AT / 5 + 1000));
        assert_eq!(start(&packed), Some((LOOKED_AT as u64, 0)));
    }

    #[test]
    fn what_is_stored_is_looked_at_as_far_as_it_is_kept() {
        let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
        // In parts of a hundred bytes, which no program would make so short.
        packed.extend([&[0, 100, 0, 155, 255][..], &[7; 100]].concat().repeat(LARGE / 100 + 1));
        assert_eq!(start(&packed).map(|(_, made)| made), Some(LARGE as u64));
    }
}
