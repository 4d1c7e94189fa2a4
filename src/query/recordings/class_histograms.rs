//! Class histograms of running JVMs: the output of `jmap -histo` and of the command `GC.class_histogram`, of which a file can
//! contain several.
//!
//! A histogram has counts and bytes by class name, and no objects. Its classes are a [`TextHeap`] without class objects and
//! class loaders, so that [`crate::text_histogram`] and comparisons count them like those of a text report.

use std::io::{self, BufRead};

use jiff::Timestamp;

use crate::profile::rfc3339;
use crate::profile::text::{MalformedLine, TextClass, TextHeap};
use hprof_format::names;
use hprof_parser::class_histogram::{ClassLine, FACTS, HistogramLine, HistogramReader};
use hprof_parser::mutf8;

/// A class histogram.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassHistogram {
    /// The classes, in the order of the text.
    pub heap: TextHeap,
    /// Facts in addition to the rows.
    pub facts: HistogramFacts,
    /// Number of objects and their size according to the line `Total`; `None` if the histogram is truncated.
    pub total: Option<(u64, u64)>,
}

/// Facts about a class histogram that its rows do not contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistogramFacts {
    /// ID of the process.
    pub process: Option<u64>,
    /// Time in milliseconds since 1970; 0 if unknown.
    pub created_ms: u64,
    /// Maximum size of the heap in bytes.
    pub heap_max_bytes: Option<u64>,
    /// `true` if the JVM collected garbage first, so that only reachable objects are counted.
    pub is_collected: Option<bool>,
}

/// Lines of a text that belong to no histogram.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OtherLines {
    /// Number of these lines.
    pub count: u64,
    /// The first of them.
    pub first: Option<MalformedLine>,
}

/// Maximum number of bytes of a line that are kept.
const KEPT_BYTES: usize = 100;

/// Keys of a line with facts.
const PROCESS: &str = "pid";
const TIME: &str = "time";
const HEAP_MAX: &str = "heap_max_bytes";
const OBJECTS: &str = "objects";

/// Values of `OBJECTS`.
const REACHABLE: &str = "reachable";
const ALL: &str = "all";

impl HistogramFacts {
    /// Returns the line with these facts that is written above a histogram.
    pub fn line(&self) -> String {
        let mut line = FACTS.to_owned();
        let objects = self.is_collected.map(|is_collected| if is_collected { REACHABLE } else { ALL });
        let facts = [
            (PROCESS, self.process.map(|process| process.to_string())),
            (TIME, rfc3339(self.created_ms, 0)),
            (HEAP_MAX, self.heap_max_bytes.map(|bytes| bytes.to_string())),
            (OBJECTS, objects.map(str::to_owned)),
        ];
        for (key, value) in facts.into_iter().filter_map(|(key, value)| Some((key, value?))) {
            line.push_str(&format!(" {key}={value}"));
        }
        line
    }

    /// Parses the pairs of such a line; unknown keys are ignored.
    fn parse(pairs: &[u8]) -> Self {
        let mut facts = Self::default();
        let text = String::from_utf8_lossy(pairs);
        for (key, value) in text.split_whitespace().filter_map(|pair| pair.split_once('=')) {
            match key {
                PROCESS => facts.process = value.parse().ok(),
                TIME => facts.created_ms = milliseconds(value).unwrap_or(0),
                HEAP_MAX => facts.heap_max_bytes = value.parse().ok(),
                OBJECTS => {
                    facts.is_collected =
                        [ALL, REACHABLE].iter().position(|known| *known == value).map(|at| at == 1)
                }
                _ => {}
            }
        }
        facts
    }
}

fn milliseconds(time: &str) -> Option<u64> {
    time.parse::<Timestamp>().ok()?.as_millisecond().try_into().ok()
}

impl ClassHistogram {
    /// Returns the size of all objects in bytes.
    pub fn heap_bytes(&self) -> u64 {
        self.heap.classes.iter().fold(0, |sum, class| sum.saturating_add(class.shallow_bytes))
    }

    /// Returns whether rows are missing: the line `Total` is missing, or is not the sum of the rows.
    pub fn is_damaged(&self) -> bool {
        let instances = self.heap.classes.iter().fold(0u64, |sum, class| sum.saturating_add(class.instances));
        self.total != Some((instances, self.heap_bytes()))
    }

    fn is_empty(&self) -> bool {
        self.heap.classes.is_empty() && self.total.is_none()
    }

    fn add(&mut self, class: &ClassLine<'_>) {
        let name = names::java_class_name(&mutf8::decode(class.name));
        let (instances, shallow_bytes) = (class.instances, class.bytes);
        self.heap.classes.push(TextClass { name, instances, shallow_bytes, ..TextClass::default() });
    }
}

/// Reads all histograms of a text, and passes each to `take` with its number, from 1. Returns the lines that belong to none.
///
/// In a compressed file that is truncated or damaged, the last histogram is truncated.
///
/// # Errors
/// If the text cannot be read.
pub fn visit(input: &mut dyn BufRead, mut take: impl FnMut(u32, ClassHistogram)) -> io::Result<OtherLines> {
    let mut others = OtherLines::default();
    let mut reader = HistogramReader::new(input);
    let (mut number, mut histogram, mut next) = (0, ClassHistogram::default(), HistogramFacts::default());
    let mut end = |histogram: &mut ClassHistogram, facts: HistogramFacts| {
        let complete = std::mem::replace(histogram, ClassHistogram { facts, ..ClassHistogram::default() });
        if !complete.is_empty() {
            number += 1;
            take(number, complete);
        }
    };
    loop {
        let (line, parsed) = match reader.next_line() {
            Ok(Some(line)) => line,
            Ok(None) => break,
            // Error of the decompressor, not of the operating system.
            Err(error) if error.raw_os_error().is_none() => break,
            Err(error) => return Err(error),
        };
        // Facts precede the histogram to which they belong.
        match parsed {
            HistogramLine::Facts(pairs) => next = HistogramFacts::parse(pairs),
            HistogramLine::Process(process) => next.process = Some(process),
            HistogramLine::Heading => end(&mut histogram, std::mem::take(&mut next)),
            HistogramLine::Class(class) => {
                // Without a heading, as it was cut off: rows after the sum are another histogram.
                if histogram.total.is_some() {
                    end(&mut histogram, std::mem::take(&mut next));
                }
                histogram.add(&class);
            }
            HistogramLine::Total { instances, bytes } => {
                if histogram.total.is_some() {
                    end(&mut histogram, std::mem::take(&mut next));
                }
                histogram.total = Some((instances, bytes));
            }
            HistogramLine::Nothing => {}
            HistogramLine::Other(text) => {
                others.count += 1;
                let start = text.get(..text.len().min(KEPT_BYTES)).unwrap_or_default();
                let text = || String::from_utf8_lossy(start).into_owned();
                let expected = "a row of a class histogram";
                others.first.get_or_insert_with(|| MalformedLine { line, expected, text: text() });
            }
        }
    }
    end(&mut histogram, HistogramFacts::default());
    Ok(others)
}

/// Reads the histogram in the reply of a JVM; `None` if it contains none.
pub fn of_reply(text: &str, facts: HistogramFacts) -> Option<ClassHistogram> {
    let mut found = None;
    // Reading from memory does not fail.
    visit(&mut text.as_bytes(), |_, histogram| found = Some(histogram)).ok()?;
    found.map(|histogram| ClassHistogram { facts, ..histogram })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const TEXT: &str = "4711:\n\n num     #instances         #bytes  class name (module)\n\
        -------------------------------------------------------\n   1:          8213         381056  [B (java.base@17.0.15)\n\
        \x20  2:           100           2400  [Ljava.lang.String; (java.base@17.0.15)\n   3:  1  24  a.B$$Lambda/0x01\n\
        Total          8314         383480\n";

    fn all(text: &[u8]) -> (Vec<ClassHistogram>, OtherLines) {
        let mut found = Vec::new();
        let others = visit(&mut &*text, |number, histogram| {
            found.push(histogram);
            assert_eq!(number as usize, found.len());
        });
        (found, others.unwrap())
    }

    #[test]
    fn names_become_those_of_java() {
        let (found, others) = all(TEXT.as_bytes());
        let [one] = &found[..] else { panic!("{found:?}") };
        let names: Vec<&str> = one.heap.classes.iter().map(|class| class.name.as_str()).collect();
        assert_eq!(names, ["byte[]", "java.lang.String[]", "a.B$$Lambda/0x01"]);
        assert_eq!(
            (one.facts.process, one.total, one.is_damaged()),
            (Some(4711), Some((8314, 383_480)), false)
        );
        assert_eq!((one.heap_bytes(), others.count), (383_480, 0));
    }

    #[test]
    fn a_text_cut_anywhere_is_damaged_or_the_same() {
        let (whole, _) = all(TEXT.as_bytes());
        for end in 0..TEXT.len() - 1 {
            let (found, _) = all(&TEXT.as_bytes()[..end]);
            assert!(found.len() <= 1 && found.iter().all(ClassHistogram::is_damaged), "{end}: {found:?}");
        }
        // Only a heading is lost.
        let rows = TEXT.find("   1:").unwrap();
        for start in 1..TEXT.len() {
            let (found, _) = all(&TEXT.as_bytes()[start..]);
            let is_whole = found.first().is_some_and(|found| found.heap == whole[0].heap);
            assert_eq!(is_whole, start <= rows + 3, "{start}");
            assert!(found.iter().all(|found| found.is_damaged() != is_whole), "{start}: {found:?}");
        }
    }

    #[test]
    fn several_histograms_have_their_own_facts() {
        let facts = HistogramFacts {
            process: Some(4711),
            created_ms: 1_764_533_339_123,
            heap_max_bytes: Some(1 << 28),
            is_collected: Some(false),
        };
        assert_eq!(
            facts.line(),
            "# class histogram pid=4711 time=2025-11-30T20:08:59.123Z heap_max_bytes=268435456 objects=all"
        );
        let second = HistogramFacts { is_collected: Some(true), ..facts.clone() };
        let text = format!("{}\n{TEXT}\nnoise 1\n{}\n{TEXT}\nnoise 2\n", facts.line(), second.line());
        let (found, others) = all(text.as_bytes());
        assert_eq!(found.iter().map(|found| &found.facts).collect::<Vec<_>>(), [&facts, &second]);
        assert_eq!((others.count, others.first.unwrap().text.as_str()), (2, "noise 1"));
        // Without headings, sums separate them.
        let rows = TEXT.split_once("---\n").unwrap().1;
        assert_eq!(all(format!("{rows}{rows}").as_bytes()).0.len(), 2);
    }

    #[test]
    fn huge_numbers_are_not_added_up_beyond_64_bits() {
        let row = "1: 99999999999999999999 99999999999999999999 A\n";
        let (found, _) = all(format!("{row}{row}Total {0} {0}\n", u64::MAX).as_bytes());
        assert_eq!((found[0].heap_bytes(), found[0].is_damaged()), (u64::MAX, false));
    }
}
