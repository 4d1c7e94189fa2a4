//! Top-level records: headers, and parsers of their bodies.

use super::{
    BasicType, FormatError, FormatErrorKind, IdSize, ObjectId, TraceSerial, be_id, be_u16, be_u32, be_u64,
};

pub use hprof_format::binary::{STATED_SIZES_MAGIC, tag};

/// Size of a record header in bytes: tag, time, length.
pub const RECORD_HEADER: usize = 9;

/// Returns `true` if a known top-level record has this tag.
pub const fn is_known(tag: u8) -> bool {
    matches!(tag, 0x01..=0x07 | 0x0a..=0x0e | 0x1c | 0x2c)
}

/// Header of a top-level record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Offset of the tag in the file.
    pub offset: usize,
    /// Tag, see [`tag`].
    pub tag: u8,
    /// Microseconds since the header's time.
    pub time_us: u32,
    /// Length of the body as stated; for a heap dump of over 4 GiB, modulo 2^32.
    pub length: u32,
}

impl Record {
    /// Parses the record header at `offset`, if it is complete.
    pub fn at(bytes: &[u8], offset: usize) -> Option<Self> {
        let head: &[u8; RECORD_HEADER] = bytes.get(offset..)?.first_chunk()?;
        Some(Self { offset, tag: head[0], time_us: be_u32(head, 1)?, length: be_u32(head, 5)? })
    }

    /// Returns the offset of the body.
    pub const fn body_offset(&self) -> usize {
        self.offset + RECORD_HEADER
    }

    /// Returns the end of the body as stated (exclusive), as `u64`: it may be beyond the end of the file.
    pub const fn end(&self) -> u64 {
        self.offset as u64 + RECORD_HEADER as u64 + self.length as u64
    }

    /// Returns the available part of the body.
    pub fn body<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let end = usize::try_from(self.end()).unwrap_or(usize::MAX).min(bytes.len());
        bytes.get(self.body_offset()..end).unwrap_or_default()
    }
}

/// Follows known records from `offset` to the end of the file, or through `enough` records. The last record of the file may be
/// an unknown one, which is not counted.
///
/// Determines whether a heap dump record really ends where its header says (the bodies of the records are
/// not read). Returns `None` if it does not; otherwise the evidence: the number of records, and whether
/// they end exactly at the end of the file. `budget` is the number of records that may still be read;
/// when it is exhausted, nothing is accepted.
pub fn chain(bytes: &[u8], offset: usize, enough: usize, budget: &mut usize) -> Option<Chain> {
    let mut at = offset;
    let mut records = 0;
    while records < enough {
        if at == bytes.len() {
            return Some(Chain { records, to_end: true });
        }
        let record = Record::at(bytes, at)?;
        if !is_known(record.tag) {
            // The mark of a redactor, for example, is a record of its own. A length that leads exactly to the end of the
            // file is no coincidence.
            let is_last = record.length > 0 && usize::try_from(record.end()) == Ok(bytes.len());
            return is_last.then_some(Chain { records, to_end: true });
        }
        *budget = budget.checked_sub(1)?;
        records += 1;
        match usize::try_from(record.end()) {
            Ok(end) if end <= bytes.len() => at = end,
            // A record that extends beyond the end of a truncated file: accepted only after others.
            _ => {
                return (records > 1).then_some(Chain { records, to_end: false });
            }
        }
    }
    Some(Chain { records, to_end: false })
}

/// Result of [`chain`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chain {
    /// Number of records read.
    pub records: usize,
    /// `true` if the last record ends exactly at the end of the file.
    pub to_end: bool,
}

/// LOAD CLASS (0x02).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadClass {
    /// Class serial number.
    pub serial: u32,
    /// ID of the class object.
    pub id: ObjectId,
    /// Trace serial number.
    pub trace: TraceSerial,
    /// String ID of the name.
    pub name: u64,
}

/// STACK FRAME (0x04).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameRecord {
    /// Frame ID.
    pub id: u64,
    /// String ID of the method's name.
    pub method: u64,
    /// String ID of the method's signature.
    pub signature: u64,
    /// String ID of the source file's name; 0 for none.
    pub source: u64,
    /// Serial number of the class.
    pub class_serial: u32,
    /// Line number if positive; 0 none, -1 unknown, -2 compiled, -3 native.
    pub line: i32,
}

/// STACK TRACE (0x05).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceRecord<'a> {
    /// Trace serial number.
    pub serial: TraceSerial,
    /// Thread serial number.
    pub thread: u32,
    frames: &'a [u8],
    id_size: IdSize,
}

impl<'a> TraceRecord<'a> {
    /// Returns the IDs of the frames, innermost first.
    pub fn frames(&self) -> impl Iterator<Item = u64> + use<'a> {
        let (frames, id_size) = (self.frames, self.id_size);
        frames.chunks_exact(id_size.bytes()).filter_map(move |chunk| be_id(chunk, 0, id_size))
    }
}

/// START THREAD (0x0A).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartThread {
    /// Thread serial number.
    pub serial: u32,
    /// Object ID of the thread.
    pub id: ObjectId,
    /// Trace serial number.
    pub trace: TraceSerial,
    /// String ID of the name.
    pub name: u64,
    /// String ID of the group's name.
    pub group: u64,
    /// String ID of the parent group's name.
    pub parent_group: u64,
}

/// HEAP SUMMARY (0x07).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapSummary {
    /// Live bytes.
    pub live_bytes: u32,
    /// Live instances.
    pub live_instances: u32,
    /// Allocated bytes.
    pub allocated_bytes: u64,
    /// Allocated instances.
    pub allocated_instances: u64,
}

/// CONTROL SETTINGS (0x0E).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlSettings {
    /// Bit 0: allocation traces enabled; bit 1: CPU sampling enabled.
    pub flags: u32,
    /// Depth of traces.
    pub depth: u16,
}

/// Head of ALLOC SITES (0x06); [`AllocSites::sites`] returns the sites.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AllocSites<'a> {
    /// Bit 0: incremental; bit 1: sorted by allocation, not by live bytes; bit 2: GC forced.
    pub flags: u16,
    /// Cutoff ratio, if valid: the agent of JDK 5 to 8 writes the low half of a double, which is not.
    pub cutoff: Option<f32>,
    /// Totals over all sites.
    pub totals: HeapSummary,
    sites: &'a [u8],
}

/// One site of ALLOC SITES.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocSite {
    /// Element type of primitive arrays; [`BasicType::Object`] for object arrays; `None` for instances.
    pub array: Option<BasicType>,
    /// Class serial number.
    pub class_serial: u32,
    /// Trace serial number.
    pub trace: TraceSerial,
    /// Live bytes.
    pub live_bytes: u32,
    /// Live instances.
    pub live_instances: u32,
    /// Allocated bytes.
    pub allocated_bytes: u32,
    /// Allocated instances.
    pub allocated_instances: u32,
}

/// CPU SAMPLES (0x0D).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuSamples<'a> {
    /// Total number of samples.
    pub total: u32,
    samples: &'a [u8],
}

/// A row of CPU SAMPLES.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuSample {
    /// Number of samples.
    pub samples: u32,
    /// Trace serial number.
    pub trace: TraceSerial,
}

impl CpuSamples<'_> {
    /// Returns the rows, in file order.
    pub fn samples(&self) -> impl Iterator<Item = CpuSample> + '_ {
        self.samples.chunks_exact(8).filter_map(|row| {
            Some(CpuSample { samples: be_u32(row, 0)?, trace: TraceSerial(be_u32(row, 4)?) })
        })
    }
}

impl AllocSites<'_> {
    /// Returns the sites, in file order.
    pub fn sites(&self) -> impl Iterator<Item = AllocSite> + '_ {
        self.sites.chunks_exact(25).filter_map(|row| {
            Some(AllocSite {
                array: BasicType::from_code(*row.first()?),
                class_serial: be_u32(row, 1)?,
                trace: TraceSerial(be_u32(row, 5)?),
                live_bytes: be_u32(row, 9)?,
                live_instances: be_u32(row, 13)?,
                allocated_bytes: be_u32(row, 17)?,
                allocated_instances: be_u32(row, 21)?,
            })
        })
    }
}

/// Parser for the bodies of top-level records.
#[derive(Debug, Clone, Copy)]
pub struct BodyReader<'a> {
    bytes: &'a [u8],
    id_size: IdSize,
}

impl<'a> BodyReader<'a> {
    /// Creates a parser for the records of `bytes`, the whole file.
    pub const fn new(bytes: &'a [u8], id_size: IdSize) -> Self {
        Self { bytes, id_size }
    }

    fn read<T>(
        &self,
        record: &Record,
        fields: impl FnOnce(&'a [u8], usize) -> Option<T>,
    ) -> Result<T, FormatError> {
        let body = record.body(self.bytes);
        fields(body, self.id_size.bytes()).ok_or_else(|| {
            let left = body.len() as u64;
            let kind = FormatErrorKind::RecordCut { tag: record.tag, needed: None, left };
            FormatError::new(kind, record.offset as u64)
        })
    }

    fn id(&self, body: &[u8], at: usize) -> Option<u64> {
        be_id(body, at, self.id_size)
    }

    /// Parses STRING: its ID, and its bytes in modified UTF-8.
    ///
    /// # Errors
    /// [`FormatErrorKind::RecordCut`], here and in all other methods.
    pub fn string(&self, record: &Record) -> Result<(u64, &'a [u8]), FormatError> {
        self.read(record, |body, w| Some((self.id(body, 0)?, body.get(w..)?)))
    }

    /// Parses LOAD CLASS.
    ///
    /// # Errors
    /// If the record is truncated.
    pub fn load_class(&self, record: &Record) -> Result<LoadClass, FormatError> {
        self.read(record, |body, w| {
            Some(LoadClass {
                serial: be_u32(body, 0)?,
                id: ObjectId(self.id(body, 4)?),
                trace: TraceSerial(be_u32(body, 4 + w)?),
                name: self.id(body, 8 + w)?,
            })
        })
    }

    /// Parses UNLOAD CLASS or END THREAD: a serial number.
    ///
    /// # Errors
    /// If the record is truncated.
    pub fn serial(&self, record: &Record) -> Result<u32, FormatError> {
        self.read(record, |body, _| be_u32(body, 0))
    }

    /// Parses STACK FRAME.
    ///
    /// # Errors
    /// If the record is truncated.
    pub fn frame(&self, record: &Record) -> Result<FrameRecord, FormatError> {
        self.read(record, |body, w| {
            Some(FrameRecord {
                id: self.id(body, 0)?,
                method: self.id(body, w)?,
                signature: self.id(body, 2 * w)?,
                source: self.id(body, 3 * w)?,
                class_serial: be_u32(body, 4 * w)?,
                line: be_u32(body, 4 * w + 4)?.cast_signed(),
            })
        })
    }

    /// Parses STACK TRACE. Frames beyond the end of the record are omitted.
    ///
    /// # Errors
    /// If the record is truncated before its frames.
    pub fn trace(&self, record: &Record) -> Result<TraceRecord<'a>, FormatError> {
        self.read(record, |body, w| {
            let wanted = u64::from(be_u32(body, 8)?) * w as u64;
            let frames = body.get(12..)?;
            let there = usize::try_from(wanted).unwrap_or(usize::MAX).min(frames.len());
            Some(TraceRecord {
                serial: TraceSerial(be_u32(body, 0)?),
                thread: be_u32(body, 4)?,
                frames: frames.get(..there)?,
                id_size: self.id_size,
            })
        })
    }

    /// Parses START THREAD.
    ///
    /// # Errors
    /// If the record is truncated.
    pub fn start_thread(&self, record: &Record) -> Result<StartThread, FormatError> {
        self.read(record, |body, w| {
            Some(StartThread {
                serial: be_u32(body, 0)?,
                id: ObjectId(self.id(body, 4)?),
                trace: TraceSerial(be_u32(body, 4 + w)?),
                name: self.id(body, 8 + w)?,
                group: self.id(body, 8 + 2 * w)?,
                parent_group: self.id(body, 8 + 3 * w)?,
            })
        })
    }

    /// Parses HEAP SUMMARY.
    ///
    /// # Errors
    /// If the record is truncated.
    pub fn heap_summary(&self, record: &Record) -> Result<HeapSummary, FormatError> {
        self.read(record, |body, _| totals(body, 0))
    }

    /// Parses CONTROL SETTINGS.
    ///
    /// # Errors
    /// If the record is truncated.
    pub fn control_settings(&self, record: &Record) -> Result<ControlSettings, FormatError> {
        self.read(record, |body, _| {
            Some(ControlSettings { flags: be_u32(body, 0)?, depth: be_u16(body, 4)? })
        })
    }

    /// Parses ALLOC SITES. Sites beyond the end of the record are omitted.
    ///
    /// # Errors
    /// If the record is truncated before its sites.
    pub fn alloc_sites(&self, record: &Record) -> Result<AllocSites<'a>, FormatError> {
        self.read(record, |body, _| {
            let cutoff = f32::from_bits(be_u32(body, 2)?);
            let wanted = u64::from(be_u32(body, 30)?) * 25;
            let sites = body.get(34..)?;
            let there = usize::try_from(wanted).unwrap_or(usize::MAX).min(sites.len());
            Some(AllocSites {
                flags: be_u16(body, 0)?,
                cutoff: (0.0..=1.0).contains(&cutoff).then_some(cutoff),
                totals: totals(body, 6)?,
                sites: sites.get(..there)?,
            })
        })
    }

    /// Parses CPU SAMPLES. Rows beyond the end of the record are omitted.
    ///
    /// # Errors
    /// If the record is truncated before its rows.
    pub fn cpu_samples(&self, record: &Record) -> Result<CpuSamples<'a>, FormatError> {
        self.read(record, |body, _| {
            let wanted = u64::from(be_u32(body, 4)?) * 8;
            let samples = body.get(8..)?;
            let there = usize::try_from(wanted).unwrap_or(usize::MAX).min(samples.len());
            Some(CpuSamples { total: be_u32(body, 0)?, samples: samples.get(..there)? })
        })
    }
}

fn totals(body: &[u8], at: usize) -> Option<HeapSummary> {
    Some(HeapSummary {
        live_bytes: be_u32(body, at)?,
        live_instances: be_u32(body, at + 4)?,
        allocated_bytes: be_u64(body, at + 8)?,
        allocated_instances: be_u64(body, at + 16)?,
    })
}
