//! Keyed functions whose output looks random without the key: SipHash-1-3 and the key stream of ChaCha8. Redaction maps values
//! with them, and texts of exported tables are hashed with them.

use std::fmt;

/// Size of a key in bytes.
pub const KEY_BYTES: usize = 32;

/// A secret key. With the key of a redaction, the redaction can be undone; with the key of hashes, a guessed text can be
/// confirmed.
#[derive(Clone)]
pub struct Key([u8; KEY_BYTES]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// Creates a key from random bytes.
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// Returns the words of the key.
    fn words(&self) -> [u64; 4] {
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(self.0.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        words
    }

    /// Returns the pseudorandom function for a purpose. Functions for different purposes are independent.
    pub fn prf(&self, purpose: u64) -> Prf {
        let [a, b, c, d] = self.words();
        let derive = |key: (u64, u64), part: u64| {
            let mut state = Prf::from_key(key).start();
            state.word(purpose);
            state.word(part);
            state.finish().next_word()
        };
        // The result depends on both halves of the key.
        Prf::from_key((derive((a, b), 0) ^ derive((c, d), 1), derive((a, b), 2) ^ derive((c, d), 3)))
    }
}

/// A pseudorandom function of words: SipHash-1-3, with more than 64 bits of output if needed.
#[derive(Debug, Clone, Copy)]
pub struct Prf([u64; 4]);

/// State of a [`Prf`] that receives its input.
#[derive(Debug, Clone, Copy)]
pub struct Absorb([u64; 4]);

/// Output of a [`Prf`]: any number of words.
#[derive(Debug, Clone, Copy)]
pub struct Squeeze([u64; 4]);

#[inline(always)]
fn round(state: &mut [u64; 4]) {
    let [mut a, mut b, mut c, mut d] = *state;
    a = a.wrapping_add(b);
    b = b.rotate_left(13) ^ a;
    a = a.rotate_left(32);
    c = c.wrapping_add(d);
    d = d.rotate_left(16) ^ c;
    a = a.wrapping_add(d);
    d = d.rotate_left(21) ^ a;
    c = c.wrapping_add(b);
    b = b.rotate_left(17) ^ c;
    c = c.rotate_left(32);
    *state = [a, b, c, d];
}

impl Prf {
    fn from_key((a, b): (u64, u64)) -> Self {
        Self([
            a ^ 0x736f_6d65_7073_6575,
            b ^ 0x646f_7261_6e64_6f6d ^ 0xee,
            a ^ 0x6c79_6765_6e65_7261,
            b ^ 0x7465_6462_7974_6573,
        ])
    }

    /// Creates a state without input.
    pub fn start(&self) -> Absorb {
        Absorb(self.0)
    }
}

impl Absorb {
    /// Adds a word to the input.
    #[inline(always)]
    pub fn word(&mut self, word: u64) {
        self.0[3] ^= word;
        round(&mut self.0);
        self.0[0] ^= word;
    }

    /// Returns the output for the input so far.
    #[inline(always)]
    pub fn finish(mut self) -> Squeeze {
        self.0[2] ^= 0xee;
        for _ in 0..3 {
            round(&mut self.0);
        }
        Squeeze(self.0)
    }
}

impl Squeeze {
    /// Returns the next word of the output.
    #[inline(always)]
    pub fn next_word(&mut self) -> u64 {
        let [a, b, c, d] = self.0;
        self.0[1] ^= 0xdd;
        for _ in 0..3 {
            round(&mut self.0);
        }
        a ^ b ^ c ^ d
    }
}

/// Number of blocks of the key stream that are computed at once: their words fit into the vector registers of all processors.
const LANES: usize = 4;
/// Number of bytes of the key stream that are computed at once.
pub const STREAM_BYTES: usize = LANES * 64;

/// Key stream of ChaCha8.
#[derive(Debug)]
pub struct Stream {
    state: [u32; 16],
}

impl Stream {
    /// Starts the key stream for a key and a nonce.
    pub fn new(key: &Key, nonce: [u64; 2]) -> Self {
        #[allow(clippy::cast_possible_truncation)] // The lower half.
        let low = |word: u64| word as u32;
        let high = |word: u64| (word >> 32) as u32;
        let [a, b, c, d] = key.words();
        let state = [
            0x6170_7865,
            0x3320_646e,
            0x7962_2d32,
            0x6b20_6574,
            low(a),
            high(a),
            low(b),
            high(b),
            low(c),
            high(c),
            low(d),
            high(d),
            0,
            low(nonce[0]),
            high(nonce[0]),
            low(nonce[1]) ^ high(nonce[1]).rotate_left(16),
        ];
        Self { state }
    }

    /// Computes the next bytes of the key stream.
    #[allow(clippy::indexing_slicing)] // Lanes of arrays of that many: iterators were not made vectors.
    pub fn fill(&mut self, out: &mut [u8; STREAM_BYTES]) {
        let mut start = [[0_u32; LANES]; 16];
        for (lanes, word) in start.iter_mut().zip(self.state) {
            *lanes = [word; LANES];
        }
        if let Some(counters) = start.get_mut(12) {
            for (counter, lane) in counters.iter_mut().zip(0_u32..) {
                *counter = counter.wrapping_add(lane);
            }
        }
        let mut x = start;
        for _ in 0..4 {
            let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = &mut x;
            quarter(a, e, i, m);
            quarter(b, f, j, n);
            quarter(c, g, k, o);
            quarter(d, h, l, p);
            quarter(a, f, k, p);
            quarter(b, g, l, m);
            quarter(c, h, i, n);
            quarter(d, e, j, o);
        }
        for ((x, start), bytes) in x.iter().zip(&start).zip(out.as_chunks_mut::<{ 4 * LANES }>().0) {
            let mut lane = 0;
            while lane < LANES {
                let word = x[lane].wrapping_add(start[lane]).to_le_bytes();
                [bytes[4 * lane], bytes[4 * lane + 1], bytes[4 * lane + 2], bytes[4 * lane + 3]] = word;
                lane += 1;
            }
        }
        #[allow(clippy::cast_possible_truncation)] // A few.
        let lanes = LANES as u32;
        self.state[12] = self.state[12].wrapping_add(lanes);
    }
}

/// The same word of each block.
type Lanes = [u32; LANES];

#[inline(always)]
fn quarter(a: &mut Lanes, b: &mut Lanes, c: &mut Lanes, d: &mut Lanes) {
    step(a, b, d, 16);
    step(c, d, b, 12);
    step(a, b, d, 8);
    step(c, d, b, 7);
}

/// Iterators over three arrays are not inlined here, so a loop over them would not be vectorized.
#[inline(always)]
#[allow(clippy::indexing_slicing)] // As above.
fn step(to: &mut Lanes, from: &Lanes, rotated: &mut Lanes, by: u32) {
    let mut lane = 0;
    while lane < LANES {
        to[lane] = to[lane].wrapping_add(from[lane]);
        rotated[lane] = (rotated[lane] ^ to[lane]).rotate_left(by);
        lane += 1;
    }
}
