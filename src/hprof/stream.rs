//! The records of a binary recording while it arrives, from a socket for instance: their boundaries, and
//! whether the recording is complete when it ends. Bodies are counted, never stored.

use super::record::{RECORD_HEADER, Record, is_known, tag};
use super::{FormatError, FormatErrorKind, Header};

/// Size of the longest header in bytes: `JAVA PROFILE 1.0.2`, a zero, the identifier size, the time.
const LONGEST_HEADER: usize = 31;

/// A complete item of a recording that was received, such as a heap dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedPart {
    /// Kind of the item.
    pub kind: PartKind,
    /// Total size of the bodies of its records, in bytes.
    pub bytes: u64,
}

/// Kinds of items that an agent sends on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// A HEAP DUMP, or HEAP DUMP SEGMENTs up to their HEAP DUMP END.
    HeapDump,
    /// ALLOC SITES.
    AllocSites,
    /// HEAP SUMMARY.
    HeapSummary,
    /// CPU SAMPLES.
    CpuSamples,
}

impl PartKind {
    /// Returns the name of the record in the specification.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HeapDump => "HEAP DUMP",
            Self::AllocSites => "ALLOC SITES",
            Self::HeapSummary => "HEAP SUMMARY",
            Self::CpuSamples => "CPU SAMPLES",
        }
    }
}

/// Tracks the records of a recording.
#[derive(Debug, Default)]
pub struct StreamScanner {
    header: Option<Header>,
    /// Received part of the header, or of a record header.
    head: Vec<u8>,
    /// Record whose body is arriving, and its offset.
    record: Option<(Record, u64)>,
    /// Number of missing bytes of the body.
    missing: u64,
    /// Number of bytes received.
    offset: u64,
    records: u64,
    /// Heap dump whose HEAP DUMP END has not arrived: its offset and size in bytes.
    segments: Option<(u64, u64)>,
}

impl StreamScanner {
    /// Creates a scanner for a recording from its first byte.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the header, once it has arrived.
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// Returns the number of complete records.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Processes the next bytes, and passes the items that they complete to `seen`.
    ///
    /// A heap dump of more than 4 GiB in a single HEAP DUMP record states its length modulo 2^32: its end
    /// cannot be determined without its content, and the following bytes look like an unknown record.
    ///
    /// # Errors
    /// Errors of [`Header::parse`], and [`FormatErrorKind::UnknownRecord`]: the rest cannot be parsed, and
    /// `feed` must not be called again.
    pub fn feed(&mut self, mut bytes: &[u8], seen: &mut dyn FnMut(ReceivedPart)) -> Result<(), FormatError> {
        while !bytes.is_empty() {
            if self.record.is_some() {
                let here = usize::try_from(self.missing).unwrap_or(usize::MAX).min(bytes.len());
                bytes = bytes.get(here..).unwrap_or_default();
                self.missing -= here as u64;
                self.offset += here as u64;
            } else if let Some((first, rest)) = bytes.split_first() {
                self.head.push(*first);
                self.offset += 1;
                bytes = rest;
                if self.header.is_none() { self.begin()? } else { self.begin_record()? }
            }
            self.finish_record(seen);
        }
        Ok(())
    }

    /// Parses the header, if it is complete.
    fn begin(&mut self) -> Result<(), FormatError> {
        // A name without its zero is an incomplete header, but looks like an invalid one.
        if self.head.len() < LONGEST_HEADER && !self.head.contains(&0) {
            return Ok(());
        }
        match Header::parse(&self.head) {
            Ok(header) => {
                self.header = Some(header);
                self.head.clear();
                Ok(())
            }
            Err(error) if *error.kind() == FormatErrorKind::HeaderCut => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Parses a record header, if it is complete.
    fn begin_record(&mut self) -> Result<(), FormatError> {
        let start = self.offset - self.head.len() as u64;
        if let [tag] = self.head[..]
            && !is_known(tag)
        {
            return Err(FormatError::new(FormatErrorKind::UnknownRecord(tag), start));
        }
        if let Some(record) = Record::at(&self.head, 0) {
            self.head.clear();
            self.missing = record.length.into();
            self.record = Some((record, start));
        }
        Ok(())
    }

    /// Handles a record whose body has arrived.
    fn finish_record(&mut self, seen: &mut dyn FnMut(ReceivedPart)) {
        if self.missing > 0 {
            return;
        }
        let Some((record, start)) = self.record.take() else { return };
        self.records += 1;
        let bytes = record.length.into();
        let part = match record.tag {
            tag::HEAP_DUMP_SEGMENT => {
                let (_, all) = self.segments.get_or_insert((start, 0));
                *all = all.saturating_add(bytes);
                None
            }
            tag::HEAP_DUMP_END => self.segments.take().map(|(_, bytes)| (PartKind::HeapDump, bytes)),
            tag::HEAP_DUMP => Some((PartKind::HeapDump, bytes)),
            tag::ALLOC_SITES => Some((PartKind::AllocSites, bytes)),
            tag::HEAP_SUMMARY => Some((PartKind::HeapSummary, bytes)),
            tag::CPU_SAMPLES => Some((PartKind::CpuSamples, bytes)),
            _ => None,
        };
        if let Some((kind, bytes)) = part {
            seen(ReceivedPart { kind, bytes });
        }
    }

    /// Checks that the recording may end here: after a record, without an open heap dump.
    ///
    /// # Errors
    /// The kind and offset of the incomplete item.
    pub fn end(&self) -> Result<(), FormatError> {
        let at = |kind, offset| Err(FormatError::new(kind, offset));
        if self.header.is_none() {
            return at(FormatErrorKind::HeaderCut, self.offset);
        }
        if let Some((record, start)) = self.record {
            let needed = RECORD_HEADER as u64 + u64::from(record.length);
            let left = needed - self.missing;
            return at(FormatErrorKind::RecordCut { tag: record.tag, needed: Some(needed), left }, start);
        }
        if let Some(tag) = self.head.first() {
            let left = self.head.len() as u64;
            return at(FormatErrorKind::RecordCut { tag: *tag, needed: None, left }, self.offset - left);
        }
        if let Some((start, _)) = self.segments {
            return at(FormatErrorKind::NoHeapDumpEnd, start);
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn record(tag: u8, body: usize) -> Vec<u8> {
        let mut bytes = vec![tag, 0, 0, 0, 1];
        bytes.extend(u32::try_from(body).unwrap().to_be_bytes());
        bytes.resize(bytes.len() + body, 0x1c);
        bytes
    }

    const HEADER: &[u8] = b"JAVA PROFILE 1.0.2\0\0\0\0\x08\0\0\0\0\0\0\0\x01";

    /// Returns a recording, and the offsets at which it may end.
    fn recording() -> (Vec<u8>, Vec<usize>) {
        let mut bytes = HEADER.to_vec();
        let mut whole = vec![bytes.len()];
        let records: [(u8, usize, bool); 9] = [
            (tag::STRING, 20, true),
            (tag::ALLOC_SITES, 34, true),
            (tag::HEAP_DUMP_SEGMENT, 100, false),
            (tag::HEAP_DUMP_SEGMENT, 0, false),
            (tag::STRING, 9, false),
            (tag::HEAP_DUMP_END, 0, true),
            (tag::HEAP_SUMMARY, 24, true),
            (tag::HEAP_DUMP, 50, true),
            (tag::CPU_SAMPLES, 8, true),
        ];
        for (tag, body, is_whole) in records {
            bytes.extend(record(tag, body));
            if is_whole {
                whole.push(bytes.len());
            }
        }
        (bytes, whole)
    }

    #[test]
    fn a_recording_is_whole_at_the_end_of_records_that_no_heap_dump_is_open_at() {
        let (bytes, whole) = recording();
        for end in 0..=bytes.len() {
            let mut scanner = StreamScanner::new();
            scanner.feed(&bytes[..end], &mut |_| {}).unwrap();
            assert_eq!(scanner.end().is_ok(), whole.contains(&end), "{end}: {:?}", scanner.end());
            if let Err(error) = scanner.end() {
                assert!(error.offset() <= end as u64);
            }
        }
    }

    #[test]
    fn pieces_of_any_size_say_the_same() {
        let (bytes, _) = recording();
        let parts = [
            (PartKind::AllocSites, 34),
            (PartKind::HeapDump, 100),
            (PartKind::HeapSummary, 24),
            (PartKind::HeapDump, 50),
            (PartKind::CpuSamples, 8),
        ];
        for size in [1, 2, 7, 9, 64, bytes.len()] {
            let (mut scanner, mut seen) = (StreamScanner::new(), Vec::new());
            for piece in bytes.chunks(size) {
                scanner.feed(piece, &mut |part| seen.push((part.kind, part.bytes))).unwrap();
            }
            assert_eq!((seen.as_slice(), scanner.records()), (&parts[..], 9), "pieces of {size}");
        }
    }

    #[test]
    fn what_is_missing_is_said() {
        let (bytes, whole) = recording();
        let said = |end: usize| {
            let mut scanner = StreamScanner::new();
            scanner.feed(&bytes[..end], &mut |_| {}).unwrap();
            scanner.end().unwrap_err().to_string()
        };
        assert_eq!(said(20), "the header is truncated (at offset 0x14)");
        assert_eq!(said(HEADER.len() + 3), "record 0x01 is truncated; bytes left: 3 (at offset 0x1f)");
        assert_eq!(
            said(HEADER.len() + 12),
            "record 0x01 is truncated: 12 of 29 bytes are left (at offset 0x1f)"
        );
        let segments = format!("the heap dump has no HEAP DUMP END record (at offset {:#x})", whole[2]);
        assert_eq!(said(whole[2] + 109), segments);
    }

    #[test]
    fn what_is_no_recording_is_an_error_at_once() {
        let ended =
            |bytes: &[u8]| StreamScanner::new().feed(bytes, &mut |_| {}).map_err(|error| error.offset());
        assert_eq!(ended(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), Err(0));
        assert_eq!(ended(b"JAVA PROFILE 1.0.2\0\0\0\0\x05"), Err(19));
        assert_eq!(ended(&[HEADER, b"\x99"].concat()), Err(31));
        assert_eq!(ended(b"JAVA PROFILE 1.0\0\0\0\0\x04\0\0\0\0\0\0\0\0\x01"), Ok(()));
    }
}
