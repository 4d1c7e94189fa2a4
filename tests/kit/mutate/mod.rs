//! Dumps that are damaged on purpose: changes at the records of a dump.
//!
//! The walk over records is written from the specification and shares no code with `src`: it does not share the reader's errors
//! about boundaries.

pub mod walk;

use walk::{Map, Spot};

/// Pseudo-random numbers, the same for the same seed (splitmix64).
#[derive(Debug, Clone)]
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`; 0 if there is none.
    pub fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { usize::try_from(self.next() % end as u64).unwrap() }
    }

    fn one_of<'s, T>(&mut self, items: &'s [T]) -> Option<&'s T> {
        items.get(self.below(items.len()))
    }
}

/// Numbers that are most likely to mislead a reader.
const TELLING: [u64; 20] = [
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    16,
    0x7F,
    0x80,
    0xFF,
    0x100,
    0x7FFF,
    0xFFFF,
    0x1_0000,
    0x00FF_FFFF,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFFE,
    0xFFFF_FFFF,
];

/// Pieces of text reports.
pub const WORDS: [&[u8]; 20] = [
    b"\n",
    b"\r\n",
    b"\t",
    b"(",
    b")",
    b"@",
    b"-1",
    b"99999999999999999999",
    b"TRACE 1:\n",
    b"%",
    b"\xff\xfe",
    b"\0",
    b"\x1b[2J",
    b"HEAP DUMP BEGIN (1 objects, 2 bytes)\n",
    b"HEAP DUMP END\n",
    b"SITES BEGIN (ordered by live bytes)\n",
    b"MONITOR DUMP BEGIN\n",
    b"JAVA PROFILE 1.0.1, created x\n",
    b"ffffffffffffffff",
    b"--------\n",
];

/// A base file, and its known structure.
pub struct Base<'b> {
    pub bytes: &'b [u8],
    /// The records, if it is a binary dump.
    pub map: Option<&'b Map>,
}

/// Changes a base in one to eight ways; parts of `other` may be inserted.
pub fn mutate(base: &Base<'_>, other: &Base<'_>, numbers: &mut Numbers) -> Vec<u8> {
    let mut out = base.bytes.to_vec();
    // Few changes mostly: a dump that is badly damaged is soon given up.
    let changes = [1, 1, 1, 2, 2, 3, 5, 8][numbers.below(8)];
    for change in 0..changes {
        if out.is_empty() {
            out.push(b'\n');
        }
        match base.map {
            // Offsets are those of the base: they are exact for the first change, and approximate for later ones.
            Some(map) if numbers.below(4) > 0 => change_records(&mut out, map, other, numbers, change == 0),
            None if numbers.below(2) == 0 => {
                let at = numbers.below(out.len());
                let word = *numbers.one_of(&WORDS).unwrap();
                let end = if numbers.below(2) == 0 { at } else { (at + word.len()).min(out.len()) };
                out.splice(at..end, word.iter().copied());
            }
            _ => change_bytes(&mut out, other, numbers),
        }
    }
    out
}

/// Overwrites a big-endian number.
fn put(out: &mut [u8], at: usize, width: usize, value: u64) {
    let bytes = value.to_be_bytes();
    if let Some(place) = out.get_mut(at..at + width) {
        place.copy_from_slice(&bytes[8 - width..]);
    }
}

fn get(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    Some(bytes.get(at..at + width)?.iter().fold(0, |value, byte| (value << 8) | u64::from(*byte)))
}

/// Returns a number to replace another: a special one, one near the present one, or any.
fn lie(was: u64, numbers: &mut Numbers) -> u64 {
    match numbers.below(4) {
        0 => was.wrapping_add(numbers.below(17) as u64).wrapping_sub(8),
        1 => numbers.next(),
        2 => was ^ (1 << numbers.below(32)),
        _ => *numbers.one_of(&TELLING).unwrap(),
    }
}

fn change_records(out: &mut Vec<u8>, map: &Map, other: &Base<'_>, numbers: &mut Numbers, is_first: bool) {
    let top = numbers.one_of(&map.records).copied();
    let inner = numbers.one_of(&map.inner).copied();
    let seconds = if numbers.below(2) == 0 && !map.inner.is_empty() { &map.inner } else { &map.records };
    let (Some(spot), Some(second)) = (
        match (top, inner) {
            // Segments are few and strings many: records in heap dumps get their share of changes.
            (Some(_), Some(inner)) if numbers.below(3) > 0 => Some(inner),
            (top, inner) => top.or(inner),
        },
        numbers.one_of(seconds),
    ) else {
        return change_bytes(out, other, numbers);
    };
    let slice = |spot: &Spot, bytes: &[u8]| {
        let end = spot.end.min(bytes.len());
        // A large record is not copied in full.
        bytes[spot.at.min(end)..end.min(spot.at + 100_000)].to_vec()
    };
    match numbers.below(10) {
        0 => put(out, spot.at, 1, numbers.next() & 0xFF),
        1 => put(out, spot.at, 1, u64::from(*numbers.one_of(&walk::TAGS).unwrap())),
        // A length or a count.
        2..=4 => {
            if let Some(at) = spot.count {
                let value = lie(get(out, at, 4).unwrap_or(0), numbers);
                put(out, at, 4, value);
            } else {
                let at = spot.at + numbers.below((spot.end - spot.at).min(64));
                put(out, at, 1, numbers.next() & 0xFF);
            }
        }
        // An ID: that of another record, null, or one that does not exist.
        5 => {
            let width = map.id_bytes;
            let from = get(out, second.at + 1, width).unwrap_or(0);
            let at = spot.at + 1 + numbers.below(2) * (width + 4);
            let value = [from, 0, lie(from, numbers)][numbers.below(3)];
            put(out, at, width, value);
        }
        6 if is_first => {
            let part = slice(&spot, out);
            let to = second.at.min(out.len());
            out.splice(to..to, part);
        }
        7 => {
            let (from, to) = (spot.at.min(out.len()), spot.end.min(spot.at + 100_000).min(out.len()));
            out.drain(from..to);
        }
        // Two records are swapped: the second one first, so that the offset of the first stays valid.
        8 if is_first && !(spot.at < second.end && second.at < spot.end) => {
            let (front, back) = if spot.at < second.at { (&spot, second) } else { (second, &spot) };
            let (one, two) = (slice(front, out), slice(back, out));
            out.splice(back.at..back.at + two.len(), one.iter().copied());
            out.splice(front.at..front.at + one.len(), two);
        }
        // Records of another dump.
        _ => {
            let Some(theirs) = other.map.and_then(|map| numbers.one_of(&map.records)) else {
                return change_bytes(out, other, numbers);
            };
            let part = slice(theirs, other.bytes);
            let to = spot.at.min(out.len());
            out.splice(to..to, part);
        }
    }
}

fn change_bytes(out: &mut Vec<u8>, other: &Base<'_>, numbers: &mut Numbers) {
    let at = numbers.below(out.len());
    let part = |bytes: &[u8], numbers: &mut Numbers| {
        let from = numbers.below(bytes.len());
        let most = [16, 300, 20_000][numbers.below(3)];
        let len = 1 + numbers.below(most);
        bytes[from..bytes.len().min(from + len)].to_vec()
    };
    match numbers.below(14) {
        0..=3 => put(out, at, 1, numbers.next() & 0xFF),
        4 => {
            let value = lie(get(out, at, 4).unwrap_or(0), numbers);
            put(out, at, 4, value);
        }
        5 => {
            let bit = numbers.below(8);
            if let Some(byte) = out.get_mut(at) {
                *byte ^= 1 << bit;
            }
        }
        6 => {
            let copy = part(out, numbers);
            out.splice(at..at, copy);
        }
        7 => {
            let gone = part(out, numbers).len();
            let end = out.len().min(at + gone);
            out.drain(at..end);
        }
        8 => {
            let theirs = part(other.bytes, numbers);
            let end = out.len().min(at + if numbers.below(2) == 0 { 0 } else { theirs.len() });
            out.splice(at..end, theirs);
        }
        // Zeros instead of a lost disk block.
        9 => {
            let end = out.len().min(at + 4096);
            out[at..end].fill(0);
        }
        10 => out.truncate(at),
        // The end of the other after the start of this one.
        11 => {
            let from = numbers.below(other.bytes.len());
            out.truncate(at);
            out.extend_from_slice(&other.bytes[from..]);
        }
        // Transfers that change bytes, from an offset on.
        12 => {
            let tail = out.split_off(at);
            let mangled = if numbers.below(2) == 0 { crlf(&tail) } else { through_utf8(&tail) };
            out.extend(mangled);
        }
        _ => {
            let tail = out.split_off(at);
            // The reverse: bytes that a program for text files removed.
            out.extend(tail.into_iter().filter(|byte| *byte != b'\r'));
        }
    }
}

fn crlf(bytes: &[u8]) -> Vec<u8> {
    let pair = |byte: &u8| if *byte == b'\n' { vec![b'\r', b'\n'] } else { vec![*byte] };
    bytes.iter().flat_map(pair).collect()
}

fn through_utf8(bytes: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(bytes).into_owned().into_bytes()
}

/// Returns a number from the environment.
pub fn setting(name: &str, usual: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) if !text.is_empty() => {
            text.parse().unwrap_or_else(|_| panic!("{name}={text}: not a number"))
        }
        _ => usual,
    }
}
