//! Pseudo-random numbers, the same in every run.

/// Generator: the linear congruential one of Knuth's MMIX, without its weak lower bits.
pub struct Random(pub u64);

impl Random {
    /// Returns the next number of 31 bits.
    pub fn next(&mut self) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap()
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.next() % end
    }

    /// Returns a text of characters of the alphabet.
    pub fn text(&mut self, length: usize, alphabet: &str) -> String {
        let all: Vec<char> = alphabet.chars().collect();
        (0..length).map(|_| all[self.below(all.len())]).collect()
    }
}
