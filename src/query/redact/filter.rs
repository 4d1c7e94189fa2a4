//! The filter: reads a dump once and writes the redacted dump.

use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use hprof_format::binary::record_head;
use hprof_parser::Header;
use hprof_parser::heap;
use hprof_parser::record::{Record, STATED_SIZES_MAGIC, tag};
use hprof_values::{BasicType, ObjectId, be_id, be_u32};

use super::contents::BlockChain;
use super::counts::RedactCounts;
use super::renames::SymbolUse;
use super::stream::{LargeArray, RecordSink};
use super::values::{Mapper, Mapping};
use hprof_base::parallel;

/// Writer of the redacted dump.
pub(super) struct Filter<'f> {
    pub(super) mapping: Mapping<'f>,
    pub(super) out: &'f mut dyn Write,
    pub(super) counts: RedactCounts,
    pub(super) written: u64,
    /// Array whose blocks are being mapped.
    pub(super) chain: BlockChain,
    /// Buffer for the mapped copy of sub-records.
    pub(super) copy: Vec<u8>,
    /// Called after each part with its number of bytes.
    pub(super) advance: &'f dyn Fn(u64),
    /// `true` if kept counters are found during the pass.
    pub(super) finds_counters: bool,
}

impl<'f> Filter<'f> {
    pub(super) fn new(mapping: Mapping<'f>, out: &'f mut dyn Write, advance: &'f dyn Fn(u64)) -> Self {
        let (counts, chain) = (RedactCounts::default(), BlockChain::new(0, 0));
        Self { mapping, out, counts, written: 0, chain, copy: Vec::new(), advance, finds_counters: false }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        (self.advance)(bytes.len() as u64);
        self.out.write_all(bytes)
    }

    fn write_record(&mut self, record: &Record, body: &[u8]) -> io::Result<()> {
        let length = u32::try_from(body.len()).map_err(|_| io::ErrorKind::InvalidData)?;
        self.write(&record_head(record.tag, record.time_us, length))?;
        self.write(body)
    }

    /// Returns the replacement of a symbol.
    fn symbol<'b>(&mut self, body: &'b [u8]) -> Cow<'b, [u8]> {
        let plan = self.mapping.plan;
        let w = plan.id_size().bytes();
        let (Some(id), Some(text)) = (be_id(body, 0, plan.id_size()), body.get(w..)) else {
            return Cow::Owned(vec![0; body.len()]);
        };
        if let Some(name) = plan.renames.symbol(id) {
            self.counts.symbols_renamed += 1;
            return Cow::Owned([body.get(..w).unwrap_or_default(), name].concat());
        }
        let stays = match plan.symbols.get(&id) {
            Some(SymbolUse::Thread) => !self.mapping.options.thread_names,
            Some(SymbolUse::Class | SymbolUse::Field | SymbolUse::Frame) => true,
            None => text.is_empty(),
        };
        if stays {
            self.counts.symbols_kept += 1;
            return Cow::Borrowed(body);
        }
        self.counts.symbols_mapped += 1;
        let mut mapped = body.get(..w).unwrap_or_default().to_vec();
        mapped.extend(self.mapped_text(text));
        Cow::Owned(mapped)
    }

    /// Maps a text in modified UTF-8 like the `char[]` with the same characters. The length of each character does not change,
    /// and so neither does that of the text.
    fn mapped_text(&self, text: &[u8]) -> Vec<u8> {
        let (kind, mut data) = array_of(text);
        let length = if kind == BasicType::Char { data.len() / 2 } else { data.len() };
        let mut chain = BlockChain::new(length as u64, data.len() as u64);
        self.mapping.array(kind, &mut chain, &mut data, &mut RedactCounts::default());
        if kind != BasicType::Char {
            return data;
        }
        let mut mapped = Vec::with_capacity(text.len());
        for unit in data.as_chunks().0.iter().map(|unit| u16::from_be_bytes(*unit)) {
            push_unit(&mut mapped, unit);
        }
        mapped
    }
}

/// Returns type and elements of the array like which a symbol is mapped: its characters, or its bytes if it is not valid UTF-8.
pub(super) fn array_of(text: &[u8]) -> (BasicType, Vec<u8>) {
    match units(text) {
        Some(units) => (BasicType::Char, units.iter().flat_map(|unit| unit.to_be_bytes()).collect()),
        None => (BasicType::Byte, text.to_vec()),
    }
}

/// Returns the UTF-16 units of modified UTF-8; `None` if it is invalid.
fn units(mut text: &[u8]) -> Option<Vec<u16>> {
    let mut units = Vec::with_capacity(text.len());
    let more = |byte: u8| (byte & 0xc0 == 0x80).then_some(u16::from(byte & 0x3f));
    loop {
        let (unit, rest) = match *text {
            [] => return Some(units),
            [one @ 1..0x80, ref rest @ ..] => (u16::from(one), rest),
            [one @ 0xc0..0xe0, two, ref rest @ ..] => (u16::from(one & 0x1f) << 6 | more(two)?, rest),
            [one @ 0xe0..0xf0, two, three, ref rest @ ..] => {
                (u16::from(one & 0xf) << 12 | more(two)? << 6 | more(three)?, rest)
            }
            _ => return None,
        };
        let mut encoded = Vec::new();
        push_unit(&mut encoded, unit);
        // Only the shortest encoding: others would change in length.
        if encoded.len() != text.len() - rest.len() {
            return None;
        }
        units.push(unit);
        text = rest;
    }
}

#[allow(clippy::cast_possible_truncation)] // Masked.
fn push_unit(out: &mut Vec<u8>, unit: u16) {
    let last = 0x80 | (unit & 0x3f) as u8;
    match unit {
        1..0x80 => out.push(unit as u8),
        0 | 0x80..0x800 => out.extend([0xc0 | (unit >> 6) as u8, last]),
        0x800.. => out.extend([0xe0 | (unit >> 12) as u8, 0x80 | (unit >> 6 & 0x3f) as u8, last]),
    }
}

impl RecordSink for Filter<'_> {
    fn header(&mut self, _: &Header, bytes: &[u8]) -> io::Result<()> {
        self.write(bytes)
    }

    fn record(&mut self, record: &Record, body: &[u8]) -> io::Result<()> {
        let w = self.mapping.plan.id_size().bytes();
        // Bytes after the last value of a record are not part of it.
        let known = match record.tag {
            tag::STRING => {
                let body = self.symbol(body);
                return self.write_record(record, &body);
            }
            tag::LOAD_CLASS => 8 + 2 * w,
            tag::UNLOAD_CLASS | tag::END_THREAD => 4,
            tag::FRAME => 8 + 4 * w,
            tag::HEAP_SUMMARY => 24,
            tag::START_THREAD => 8 + 4 * w,
            tag::CONTROL_SETTINGS => 6,
            // A trace without frames has twelve bytes.
            tag::TRACE => be_u32(body, 8).map_or(0, |frames| 12 + frames as usize * w).min(body.len()),
            // IDs and sizes, which are kept everywhere.
            tag::STATED_SIZES if body.starts_with(STATED_SIZES_MAGIC) => body.len(),
            _ => 0,
        };
        let mut body = body.to_vec();
        if let Some(rest) = body.get_mut(known..) {
            rest.fill(0);
        }
        if record.tag == tag::FRAME
            && self.mapping.options.lines
            && let Some(line) = body.get_mut(4 * w + 4..)
            && line.first().is_some_and(|byte| *byte < 0x80)
        {
            line.fill(0);
            self.counts.lines_removed += 1;
        }
        self.write_record(record, &body)
    }

    fn head(&mut self, record: &Record) -> io::Result<()> {
        self.write(&record_head(record.tag, record.time_us, record.length))
    }

    fn sub_records(&mut self, bytes: &[u8], _: u64, pieces: &[Range<usize>]) -> io::Result<()> {
        if self.finds_counters {
            self.mapping.counters.add(self.mapping.plan, bytes, pieces);
        }
        let mut copy = std::mem::take(&mut self.copy);
        copy.resize(bytes.len(), 0);
        let mut tasks = Vec::with_capacity(pieces.len());
        let mut rest = copy.as_mut_slice();
        for piece in pieces {
            let (out, later) = rest.split_at_mut_checked(piece.len()).unwrap_or_default();
            rest = later;
            tasks.push(Mutex::new((piece.clone(), out)));
        }
        let mapping = &self.mapping;
        let id_size = mapping.plan.id_size();
        let numbers: Vec<usize> = (0..tasks.len()).collect();
        let counts = parallel::map(&numbers, |number| {
            let Some(task) = tasks.get(number) else { return RedactCounts::default() };
            let mut task = task.lock().unwrap_or_else(PoisonError::into_inner);
            let (piece, out) = &mut *task;
            if let Some(from) = bytes.get(piece.clone()).filter(|from| from.len() == out.len()) {
                out.copy_from_slice(from);
            }
            let counts = RedactCounts::default();
            let mut mapper = Mapper { mapping, out, start: piece.start, counts };
            heap::walk(bytes, id_size, piece.start, piece.end, piece.end, &mut mapper);
            mapper.counts
        });
        drop(tasks);
        counts.iter().for_each(|counts| self.counts.add(counts));
        self.write(&copy)?;
        self.copy = copy;
        Ok(())
    }

    fn plain(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write(bytes)
    }

    fn elements(&mut self, array: &LargeArray, is_first: bool, bytes: &[u8]) -> io::Result<()> {
        let Some(kind) = array.kind else { return self.write(bytes) };
        let mut data = bytes.to_vec();
        let mut counts = RedactCounts::default();
        if is_first {
            let holder = self.mapping.holder(array.id);
            self.chain = BlockChain::new(array.length, u64::MAX).of_holder(holder);
        }
        self.mapping.array(kind, &mut self.chain, &mut data, &mut counts);
        if is_first {
            self.counts.add(&counts);
        }
        self.write(&data)
    }

    fn instance_size(&self, class: ObjectId) -> Option<Option<u64>> {
        /// Maximum number of superclasses of a hostile class that are followed.
        const MAX_DEPTH: usize = 200;
        let classes = &self.mapping.plan.classes;
        let above = |id: &ObjectId| classes.get(id).and_then(|fields| fields.above);
        classes.get(&class)?;
        let chain = std::iter::successors(Some(class), above).take(MAX_DEPTH);
        Some(Some(chain.filter_map(|id| Some(u64::from(classes.get(&id)?.bytes))).sum()))
    }

    fn damaged_region(&mut self, bytes: u64) -> io::Result<()> {
        self.counts.damaged_regions += 1;
        // Zero is not a tag, so readers find the damage.
        let zeros = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
        self.write(&zeros)
    }
}
