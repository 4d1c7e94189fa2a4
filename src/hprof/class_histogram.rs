//! Class histograms as text: `jmap -histo`, `jcmd PID GC.class_histogram`, and several of them in one file.
//!
//! HotSpot prints a heading, a row for each class and a line `Total` (`KlassInfoHisto` in `heapInspection.cpp`). `jcmd` prints a
//! line with the process ID above. Rows have the module of the class since JDK 9. The serviceability agent (`jmap -F`) separates
//! the columns by tabs. A [`Facts`](HistogramLine::Facts) line, which this program writes above a histogram, begins with
//! [`FACTS`]. All other lines are [`Other`](HistogramLine::Other): logs and dates among the histograms.
//!
//! Lines are parsed by structure, not by columns. Numbers that do not fit in 64 bits are `u64::MAX`.

use std::io::{self, BufRead};

use crate::text::lines::Lines;

/// Beginning of a line with facts about the histogram below it, as pairs `KEY=VALUE`.
pub const FACTS: &str = "# class histogram";

/// Line of a text with class histograms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistogramLine<'a> {
    /// Heading above the rows: a histogram begins.
    Heading,
    /// Counts of a class.
    Class(ClassLine<'a>),
    /// Sums over all classes: the histogram is complete.
    Total {
        /// Number of objects.
        instances: u64,
        /// Shallow size of the objects.
        bytes: u64,
    },
    /// Process ID, which `jcmd` prints above its output.
    Process(u64),
    /// The pairs `KEY=VALUE` of a line that begins with [`FACTS`].
    Facts(&'a [u8]),
    /// Empty line, or the rule below the heading.
    Nothing,
    /// Any other line.
    Other(&'a [u8]),
}

/// Counts of a class in a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassLine<'a> {
    /// Name as in the file: `[B`, `java.lang.String`.
    pub name: &'a [u8],
    /// Number of objects.
    pub instances: u64,
    /// Shallow size of the objects.
    pub bytes: u64,
}

/// Reader of a text with class histograms, line by line.
pub struct HistogramReader<'r>(Lines<'r>);

impl<'r> HistogramReader<'r> {
    /// Creates a reader of a text.
    pub fn new(input: &'r mut dyn BufRead) -> Self {
        Self(Lines::new(input))
    }

    /// Returns the next line with its number, from 1; `None` at the end.
    ///
    /// # Errors
    /// If the text cannot be read.
    pub fn next_line(&mut self) -> io::Result<Option<(u64, HistogramLine<'_>)>> {
        if !self.0.advance()? {
            return Ok(None);
        }
        Ok(Some((self.0.number(), HistogramLine::parse(self.0.line()))))
    }
}

impl<'a> HistogramLine<'a> {
    /// Parses a line.
    pub fn parse(line: &'a [u8]) -> Self {
        let line = line.trim_ascii();
        if line.iter().all(|byte| *byte == b'-') {
            return Self::Nothing;
        }
        if let Some(facts) = line.strip_prefix(FACTS.as_bytes()) {
            return Self::Facts(facts.trim_ascii());
        }
        if is_heading(line) {
            return Self::Heading;
        }
        row(line).or_else(|| total(line)).unwrap_or(Self::Other(line))
    }

    /// Returns whether a text looks like a class histogram, by its first bytes: one of its lines is a heading, or its first two
    /// lines with text are rows.
    pub(crate) fn is_histogram(head: &'a [u8]) -> bool {
        let mut rows = 0;
        // The last line may be incomplete.
        let lines = head.split_inclusive(|byte| *byte == b'\n');
        for line in lines.filter(|line| line.ends_with(b"\n")).map(Self::parse) {
            match line {
                Self::Heading => return true,
                Self::Class(_) => rows += 1,
                _ => {}
            }
        }
        rows >= 2
    }
}

fn is_heading(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    [&b"num"[..], b"#instances", b"#bytes"].iter().all(|expected| words.next() == Some(*expected))
}

/// Parses the row of a class, `1: 8213 381056 [B (java.base@17.0.15)`, or the line with the process ID.
fn row(line: &[u8]) -> Option<HistogramLine<'_>> {
    let (number, rest) = leading_number(line)?;
    let rest = rest.strip_prefix(b":")?;
    if rest.is_empty() {
        return Some(HistogramLine::Process(number));
    }
    let (instances, rest) = number_after_space(rest)?;
    let (bytes, rest) = number_after_space(rest)?;
    let name = without_module(after_space(rest)?);
    (!name.is_empty()).then_some(HistogramLine::Class(ClassLine { name, instances, bytes }))
}

/// Parses the last line: `Total 4711 1234`, or `Total : 4711 1234` of the serviceability agent.
fn total(line: &[u8]) -> Option<HistogramLine<'_>> {
    let rest = line.strip_prefix(b"Total")?;
    let rest = rest.trim_ascii_start().strip_prefix(b":").unwrap_or(rest);
    let (instances, rest) = number_after_space(rest)?;
    let (bytes, rest) = number_after_space(rest)?;
    rest.is_empty().then_some(HistogramLine::Total { instances, bytes })
}

/// Removes the module after the name of a class: ` (java.base@17.0.15)`. Names of classes can contain spaces.
fn without_module(name: &[u8]) -> &[u8] {
    let module = || {
        let inner = name.strip_suffix(b")")?;
        let start = inner.windows(2).rposition(|pair| pair == b" (")?;
        let (class, module) = (inner.get(..start)?, inner.get(start + 2..)?);
        let is_of_name = |byte: &u8| !matches!(byte, b' ' | b'(' | b')');
        (!module.is_empty() && module.iter().all(is_of_name)).then_some(class.trim_ascii_end())
    };
    module().unwrap_or(name)
}

/// Skips at least one blank.
fn after_space(text: &[u8]) -> Option<&[u8]> {
    let rest = text.trim_ascii_start();
    (rest.len() < text.len()).then_some(rest)
}

fn number_after_space(text: &[u8]) -> Option<(u64, &[u8])> {
    leading_number(after_space(text)?)
}

/// Parses the decimal number at the start; returns it with the rest.
fn leading_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    let number = digits.iter().fold(0u64, |number, digit| {
        number.saturating_mul(10).saturating_add(u64::from(digit.wrapping_sub(b'0')))
    });
    (!digits.is_empty()).then_some((number, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &str, instances: u64, bytes: u64) -> HistogramLine<'_> {
        HistogramLine::Class(ClassLine { name: name.as_bytes(), instances, bytes })
    }

    #[test]
    fn lines_of_every_writer() {
        let cases = [
            ("   1:          8213         381056  [B (java.base@17.0.15)", class("[B", 8213, 381_056)),
            ("   1:         30466        4071848  [C", class("[C", 30_466, 4_071_848)),
            ("1:\t\t12\t345\tbyte[]", class("byte[]", 12, 345)),
            ("  10:             1             24  app.Main (app)", class("app.Main", 1, 24)),
            ("  10:             1             24  Test$a name (x) y$1", class("Test$a name (x) y$1", 1, 24)),
            ("  10:  1  24  Test$a name (app@1)", class("Test$a name", 1, 24)),
            ("  10:  1  24  f()", class("f()", 1, 24)),
            ("9: 99999999999999999999999 1 A", class("A", u64::MAX, 1)),
            (
                "Total         40000        1900000",
                HistogramLine::Total { instances: 40_000, bytes: 1_900_000 },
            ),
            ("Total : \t 4 \t 5", HistogramLine::Total { instances: 4, bytes: 5 }),
            ("4711:", HistogramLine::Process(4711)),
            (" num     #instances         #bytes  class name (module)", HistogramLine::Heading),
            ("num \t#instances\t#bytes\tClass description", HistogramLine::Heading),
            ("-------------------------------------------------------", HistogramLine::Nothing),
            ("", HistogramLine::Nothing),
            ("# class histogram pid=1", HistogramLine::Facts(b"pid=1")),
            ("# class histogram", HistogramLine::Facts(b"")),
            ("Mon Nov 30 19:44:00 UTC 2026", HistogramLine::Other(b"Mon Nov 30 19:44:00 UTC 2026")),
            ("1: 2", HistogramLine::Other(b"1: 2")),
            ("1: 2 3", HistogramLine::Other(b"1: 2 3")),
            ("1: 2 3x A", HistogramLine::Other(b"1: 2 3x A")),
            ("1: -2 3 A", HistogramLine::Other(b"1: -2 3 A")),
            ("Total 1", HistogramLine::Other(b"Total 1")),
            ("Total 1 2 3", HistogramLine::Other(b"Total 1 2 3")),
        ];
        for (line, expected) in cases {
            assert_eq!(HistogramLine::parse(line.as_bytes()), expected, "{line:?}");
        }
    }

    #[test]
    fn every_part_of_a_line_is_read_without_harm() {
        let line = b"   1:          8213         381056  [B (java.base@17.0.15)\r";
        for start in 0..line.len() {
            for end in start..=line.len() {
                let _ = HistogramLine::parse(&line[start..end]);
            }
        }
    }
}
