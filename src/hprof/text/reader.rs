//! Assignment of lines to sections.

use std::io::{self, BufRead};

use super::event::{Ranking, TextEvent};
use super::heap::Body;
use super::lines::Lines;
use super::{calls, heap, monitors, tables, trace};

/// Parser for a text report, line by line.
pub struct TextReader<'r> {
    lines: Lines<'r>,
    section: Section,
}

/// Section of a text report that contains a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    /// Between records.
    Outside,
    /// In the explanation that follows the first line.
    Header,
    /// In a trace.
    Trace,
    /// In a trace whose first line cannot be parsed: its frames are lost too.
    LostTrace,
    /// In a HEAP DUMP.
    Heap(Body),
    /// In SITES.
    Sites,
    /// In CPU SAMPLES, CPU TIME (ms) or MONITOR TIME.
    Ranking(Ranking),
    /// In a MONITOR DUMP.
    MonitorDump,
    /// In a MONITOR DUMP, after a monitor that cannot be parsed: its details are lost too.
    LostMonitor,
    /// In the table of `cpu=old`.
    Calls,
}

impl Section {
    /// Returns the line that must end the section, if there is one.
    fn end(self) -> Option<&'static str> {
        Some(match self {
            Self::Outside | Self::Trace | Self::LostTrace | Self::Calls => return None,
            Self::Header => "a line of dashes that ends the header",
            Self::Heap(_) => "HEAP DUMP END",
            Self::Sites => "SITES END",
            Self::Ranking(ranking) => ranking.end(),
            Self::MonitorDump | Self::LostMonitor => "MONITOR DUMP END",
        })
    }

    /// Handles a line that cannot be parsed: lines that belong to it must not be attributed to the entry before it.
    fn lose(&mut self, line: &[u8]) {
        let indented = matches!(line, [b' ' | b'\t', ..]);
        match self {
            Self::Heap(body) if !indented => *body = Body::Object,
            Self::Trace | Self::Outside if line.starts_with(b"TRACE") => *self = Self::LostTrace,
            Self::MonitorDump if matches!(super::scan::trim_start(line), [b'M' | b'R', ..]) => {
                *self = Self::LostMonitor;
            }
            _ => {}
        }
    }
}

/// Content reported at the end of a truncated file.
pub const END_OF_FILE: &[u8] = b"the end of the file";

impl<'r> TextReader<'r> {
    /// Creates a parser for a text from its start.
    pub fn new(input: &'r mut dyn BufRead) -> Self {
        Self { lines: Lines::new(input), section: Section::Outside }
    }

    /// Returns the next line number, from 1, with its event; `None` at the end.
    ///
    /// # Errors
    /// If the text cannot be read.
    #[inline]
    pub fn next_event(&mut self) -> io::Result<Option<(u64, TextEvent<'_>)>> {
        if !self.lines.advance()? {
            let missing = std::mem::replace(&mut self.section, Section::Outside).end();
            let event = missing.map(|expected| TextEvent::Malformed { expected, text: END_OF_FILE });
            return Ok(event.map(|event| (self.lines.number().saturating_add(1), event)));
        }
        let number = self.lines.number();
        if self.lines.is_cut() {
            self.section.lose(self.lines.line());
            let expected = "a line of at most 1 MiB";
            return Ok(Some((number, TextEvent::Malformed { expected, text: self.lines.line() })));
        }
        // Most lines of most files.
        if let Section::Heap(body) = &mut self.section
            && let [b'\t', ..] | [b'O', b'B', b'J', ..] | [b'A', b'R', b'R', ..] = self.lines.line()
        {
            return Ok(Some((number, heap::line(body, self.lines.line()))));
        }
        if let Some(expected) = self.section.end()
            && self.section != Section::Header
            && starts_record(self.lines.line())
        {
            // The section is truncated: this is reported first, then the line is parsed again.
            self.section = Section::Outside;
            self.lines.repeat();
            return Ok(Some((number, TextEvent::Malformed { expected, text: self.lines.line() })));
        }
        let event = read(&mut self.section, self.lines.line());
        if let TextEvent::Malformed { text, .. } = event {
            self.section.lose(text);
        }
        Ok(Some((number, event)))
    }
}

/// Returns `true` if a file that starts with these bytes is a text report without the usual header: its
/// first non-blank line starts a record. Parts of reports are sent by e-mail, and `cpu=old` and Android
/// have no header.
pub fn is_report(start: &[u8]) -> bool {
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    let end = start.iter().take(LONGEST_START).position(|byte| *byte == b'\n');
    let line =
        start.get(..end.unwrap_or(start.len().min(LONGEST_START))).unwrap_or_default().trim_ascii_end();
    starts_record(line) || between(line).is_some()
}

/// Maximum length of a line when a file is detected.
const LONGEST_START: usize = 1100;

/// Returns `true` if a line starts a section, a trace or a run.
fn starts_record(line: &[u8]) -> bool {
    record(line).is_some()
}

/// Parses a line that starts a section, a trace or a run; returns its event and the section.
fn record(line: &[u8]) -> Option<(TextEvent<'_>, Section)> {
    let (event, section) = match line {
        [b'T', ..] => (trace::trace(line), Section::Trace),
        [b'H', ..] => (heap::begin(line), Section::Heap(Body::Nothing)),
        [b'S', ..] => (tables::sites_begin(line), Section::Sites),
        [b'C' | b'M', ..] => {
            if line == b"MONITOR DUMP BEGIN" {
                (Some(TextEvent::MonitorDumpBegin), Section::MonitorDump)
            } else {
                let event = tables::ranking_begin(line);
                let Some(TextEvent::RankingBegin { ranking, .. }) = event else { return None };
                (event, Section::Ranking(ranking))
            }
        }
        [b'c', ..] => ((line == calls::TITLE).then_some(TextEvent::CallsBegin), Section::Calls),
        [b'J', ..] => (header(line), Section::Header),
        _ => return None,
    };
    Some((event?, section))
}

/// Parses `JAVA PROFILE 1.0.1, created Sat Nov 21 01:58:24 2026`.
fn header(line: &[u8]) -> Option<TextEvent<'_>> {
    let version = line.strip_prefix(b"JAVA PROFILE ")?;
    let end = version.iter().position(|byte| !matches!(byte, b'.' | b'0'..=b'9'));
    let (version, rest) = version.split_at_checked(end.unwrap_or(version.len()))?;
    let created = match rest {
        b"" | b", created" => None,
        _ => Some(rest.strip_prefix(b", created ")?),
    };
    let format = line.get(..line.len() - rest.len())?;
    (!version.is_empty()).then_some(TextEvent::Header { format, created })
}

/// Parses lines that may occur anywhere, because another thread of the JVM writes them.
fn between(line: &[u8]) -> Option<TextEvent<'_>> {
    match line {
        [b'T', ..] => trace::thread_start(line).or_else(|| trace::thread_end(line)),
        [b'W' | b'S' | b'E', ..] => monitors::wait(line),
        _ => None,
    }
}

fn is_dashes(line: &[u8]) -> bool {
    line.len() >= 8 && line.iter().all(|byte| *byte == b'-')
}

/// Parses a line, given its section, and updates the section.
fn read<'a>(section: &mut Section, line: &'a [u8]) -> TextEvent<'a> {
    if line.is_empty() {
        return TextEvent::Nothing;
    }
    if let Some((event, begins)) = record(line) {
        *section = begins;
        return event;
    }
    if let Some(event) = between(line) {
        if *section == Section::Header {
            *section = Section::Outside;
        }
        return event;
    }
    if section.end().is_some_and(|end| end.as_bytes() == line) {
        let event = match section {
            Section::Heap(_) => TextEvent::HeapEnd,
            Section::Sites => TextEvent::SitesEnd,
            Section::Ranking(ranking) => TextEvent::RankingEnd(*ranking),
            Section::MonitorDump | Section::LostMonitor => TextEvent::MonitorDumpEnd,
            _ => TextEvent::Nothing,
        };
        *section = Section::Outside;
        return event;
    }
    match section {
        Section::Header => {
            if is_dashes(line) {
                *section = Section::Outside;
            }
            TextEvent::Nothing
        }
        Section::Trace => trace::frame(line).unwrap_or(NO_FRAME.malformed_event(line)),
        Section::LostTrace if trace::frame(line).is_some() => TextEvent::Nothing,
        Section::LostTrace => NO_RECORD.malformed_event(line),
        Section::Heap(body) => heap::line(body, line),
        Section::Sites => tables::site(line),
        Section::Ranking(_) => tables::row(line),
        Section::MonitorDump => monitors::line(line),
        Section::LostMonitor => match monitors::line(line) {
            TextEvent::Owner { .. } | TextEvent::WaitingToEnter(_) | TextEvent::WaitingToBeNotified(_) => {
                TextEvent::Nothing
            }
            event => {
                *section = Section::MonitorDump;
                event
            }
        },
        Section::Calls => calls::call(line),
        Section::Outside if is_dashes(line) => TextEvent::Nothing,
        Section::Outside => NO_RECORD.malformed_event(line),
    }
}

/// Description of the expected content.
struct ExpectedContent(&'static str);

const NO_FRAME: ExpectedContent = ExpectedContent("class.method(source:line)");
const NO_RECORD: ExpectedContent = ExpectedContent("the first line of a record");

impl ExpectedContent {
    const fn malformed_event<'a>(&self, text: &'a [u8]) -> TextEvent<'a> {
        TextEvent::Malformed { expected: self.0, text }
    }
}
