//! The header and the top-level records.
//!
//! Every method returns the absolute offset of its record. The writer stores the offset of every record
//! and of every sub-record in its heap records, for tests that check offsets in errors. It checks
//! nothing; records can be combined freely.

use std::io;
use std::path::Path;

use super::basic::{IdSize, Version};
use super::heap::{HeapWriter, SubAt};
use super::names::modified_utf8;
use super::sink::Sink;

/// Kind of heap record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HeapTag {
    /// HEAP DUMP (0x0C)
    Dump,
    /// HEAP DUMP SEGMENT (0x1C)
    Segment,
}

impl HeapTag {
    /// Returns the record's tag.
    pub fn tag(self) -> u8 {
        match self {
            Self::Dump => 0x0C,
            Self::Segment => 0x1C,
        }
    }
}

/// LENGTH of a record, given the real length of its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatedLength {
    /// The real length, modulo 2^32 as in every writer of bodies over 4 GiB.
    Real,
    /// The real length modulo a smaller number: wrapping without gigabytes.
    Modulo(u32),
    /// 0: the writer was killed before it could patch the length.
    Zero,
    /// This number.
    Exactly(u32),
}

impl StatedLength {
    /// Returns the number to write for a body of `real` bytes.
    pub fn of(self, real: u64) -> u32 {
        let wrapped = |n: u64| u32::try_from(n).expect("a remainder of a division by at most 2^32");
        match self {
            Self::Real => wrapped(real % (1 << 32)),
            Self::Modulo(k) => wrapped(real % u64::from(k)),
            Self::Zero => 0,
            Self::Exactly(n) => n,
        }
    }
}

/// Offsets of a heap record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Offset of the record's tag in the file.
    pub record: u64,
    /// Offset of the body in the file.
    pub body: u64,
}

impl Placed {
    /// Returns the absolute offset of a sub-record of this body.
    pub fn at(self, sub: SubAt) -> u64 {
        self.body + sub.0
    }
}

/// A top-level record that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordMark {
    /// Tag.
    pub tag: u8,
    /// Offset of the tag in the file.
    pub at: u64,
    /// LENGTH that the record states.
    pub stated_len: u32,
    /// Real length of the body.
    pub body_len: u64,
}

/// A heap sub-record that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubMark {
    /// Tag.
    pub tag: u8,
    /// ID of the object that it dumps or refers to; string ID of the name for HEAP DUMP INFO.
    pub id: u64,
    /// Offset of the tag in the file.
    pub at: u64,
    /// Size of the sub-record, including the tag, in bytes.
    pub len: u64,
}

/// One site of an ALLOC SITES record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AllocSite {
    /// 0 for no array, 2 for an object array, or the code of the element type.
    pub array: u8,
    /// Serial number of the class.
    pub class_serial: u32,
    /// Serial number of the stack trace.
    pub trace: u32,
    /// Live bytes.
    pub live_bytes: u32,
    /// Live instances.
    pub live_instances: u32,
    /// Allocated bytes.
    pub allocated_bytes: u32,
    /// Allocated instances.
    pub allocated_instances: u32,
}

/// An ALLOC SITES record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllocSites {
    /// 1 incremental, 2 sorted by allocation, 4 force GC.
    pub flags: u16,
    /// Bits of the cutoff ratio: `f32::to_bits`, or [`agent_cutoff`].
    pub cutoff_bits: u32,
    /// Total live bytes.
    pub live_bytes: u32,
    /// Total live instances.
    pub live_instances: u32,
    /// Total allocated bytes.
    pub allocated_bytes: u64,
    /// Total allocated instances.
    pub allocated_instances: u64,
    /// Sites.
    pub sites: Vec<AllocSite>,
}

/// Returns the cutoff ratio as written by the agent of JDK 5 to 8: the low half of a double.
pub fn agent_cutoff(ratio: f64) -> u32 {
    let [_, _, _, _, b0, b1, b2, b3] = ratio.to_be_bytes();
    u32::from_be_bytes([b0, b1, b2, b3])
}

/// A START THREAD record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StartThread {
    /// Serial number of the thread.
    pub thread: u32,
    /// ID of the thread object.
    pub object: u64,
    /// Serial number of the stack trace.
    pub trace: u32,
    /// String ID of the thread's name.
    pub name: u64,
    /// String ID of the thread group's name.
    pub group: u64,
    /// String ID of the parent group's name.
    pub parent_group: u64,
}

/// Writes a dump, record by record.
#[derive(Debug, Clone)]
pub struct DumpWriter {
    sink: Sink,
    /// Offset of the header's time stamp, if the header has one.
    stamp_at: Option<usize>,
    time_us: u32,
    records: Vec<RecordMark>,
    subs: Vec<SubMark>,
}

impl DumpWriter {
    /// Creates a dump with a valid header, created at 0 ms.
    pub fn new(version: Version, id_size: IdSize) -> Self {
        let mut header = version.header().as_bytes().to_vec();
        header.push(0);
        header.extend_from_slice(&id_size.bytes().to_be_bytes());
        let stamp_at = header.len();
        header.extend_from_slice(&[0; 8]);
        Self { stamp_at: Some(stamp_at), ..Self::with_raw_header(&header, id_size) }
    }

    /// Creates a dump that starts with any bytes; identifiers after it take `id_size`.
    pub fn with_raw_header(header: &[u8], id_size: IdSize) -> Self {
        let mut sink = Sink::new(id_size);
        sink.raw(header);
        Self { sink, stamp_at: None, time_us: 0, records: Vec::new(), subs: Vec::new() }
    }

    /// Sets the header's time stamp: milliseconds since 1970.
    pub fn created_ms(mut self, ms: u64) -> Self {
        let at = self.stamp_at.expect("a raw header has no known place for a time stamp");
        self.sink.patch(at, &ms.to_be_bytes());
        self
    }

    /// Sets TIME of the records that follow: microseconds since the header's time stamp.
    pub fn time_us(&mut self, us: u32) -> &mut Self {
        self.time_us = us;
        self
    }

    /// Returns the identifier size.
    pub fn id_size(&self) -> IdSize {
        self.sink.id_size()
    }

    /// Returns the number of bytes so far: the start of the next record.
    pub fn len(&self) -> u64 {
        self.sink.len()
    }

    /// Returns `true` if not even a header was written.
    pub fn is_empty(&self) -> bool {
        self.sink.is_empty()
    }

    fn record(&mut self, tag: u8, stated: StatedLength, fill: impl FnOnce(&mut Sink)) -> u64 {
        let mut body = Sink::new(self.id_size());
        fill(&mut body);
        let stated_len = stated.of(body.len());
        let at = self.len();
        self.sink.u1(tag).u4(self.time_us).u4(stated_len).append(&body);
        self.records.push(RecordMark { tag, at, stated_len, body_len: body.len() });
        at
    }

    fn plain(&mut self, tag: u8, fill: impl FnOnce(&mut Sink)) -> u64 {
        self.record(tag, StatedLength::Real, fill)
    }

    /// Writes STRING IN UTF8 (0x01), in modified UTF-8.
    pub fn string(&mut self, id: u64, text: &str) -> u64 {
        self.string_bytes(id, &modified_utf8(text))
    }

    /// Writes STRING IN UTF8 (0x01) with any bytes.
    pub fn string_bytes(&mut self, id: u64, bytes: &[u8]) -> u64 {
        self.plain(0x01, |out| {
            out.id(id).raw(bytes);
        })
    }

    /// Writes LOAD CLASS (0x02).
    pub fn load_class(&mut self, serial: u32, class: u64, trace: u32, name: u64) -> u64 {
        self.plain(0x02, |out| {
            out.u4(serial).id(class).u4(trace).id(name);
        })
    }

    /// Writes UNLOAD CLASS (0x03).
    pub fn unload_class(&mut self, serial: u32) -> u64 {
        self.plain(0x03, |out| {
            out.u4(serial);
        })
    }

    /// Writes STACK FRAME (0x04). Line: positive, or 0 unknown, -1 unknown location, -2 compiled, -3
    /// native.
    pub fn frame(
        &mut self,
        id: u64,
        method: u64,
        signature: u64,
        source: u64,
        class_serial: u32,
        line: i32,
    ) -> u64 {
        self.plain(0x04, |out| {
            out.id(id).id(method).id(signature).id(source).u4(class_serial).raw(&line.to_be_bytes());
        })
    }

    /// Writes STACK TRACE (0x05).
    pub fn trace(&mut self, serial: u32, thread: u32, frames: &[u64]) -> u64 {
        self.plain(0x05, |out| {
            out.u4(serial).u4(thread).u4(u32::try_from(frames.len()).expect("few frames"));
            for frame in frames {
                out.id(*frame);
            }
        })
    }

    /// Writes ALLOC SITES (0x06).
    pub fn alloc_sites(&mut self, sites: &AllocSites) -> u64 {
        self.plain(0x06, |out| {
            out.u2(sites.flags).u4(sites.cutoff_bits).u4(sites.live_bytes).u4(sites.live_instances);
            out.u8(sites.allocated_bytes).u8(sites.allocated_instances);
            out.u4(u32::try_from(sites.sites.len()).expect("few sites"));
            for site in &sites.sites {
                out.u1(site.array).u4(site.class_serial).u4(site.trace);
                out.u4(site.live_bytes).u4(site.live_instances);
                out.u4(site.allocated_bytes).u4(site.allocated_instances);
            }
        })
    }

    /// Writes HEAP SUMMARY (0x07).
    pub fn heap_summary(
        &mut self,
        live_bytes: u32,
        live_instances: u32,
        allocated_bytes: u64,
        allocated_instances: u64,
    ) -> u64 {
        self.plain(0x07, |out| {
            out.u4(live_bytes).u4(live_instances).u8(allocated_bytes).u8(allocated_instances);
        })
    }

    /// Writes START THREAD (0x0A).
    pub fn start_thread(&mut self, start: &StartThread) -> u64 {
        self.plain(0x0A, |out| {
            out.u4(start.thread).id(start.object).u4(start.trace);
            out.id(start.name).id(start.group).id(start.parent_group);
        })
    }

    /// Writes END THREAD (0x0B).
    pub fn end_thread(&mut self, thread: u32) -> u64 {
        self.plain(0x0B, |out| {
            out.u4(thread);
        })
    }

    /// Writes CPU SAMPLES (0x0D): (number of samples, stack trace serial number) for each trace.
    pub fn cpu_samples(&mut self, total: u32, traces: &[(u32, u32)]) -> u64 {
        self.plain(0x0D, |out| {
            out.u4(total).u4(u32::try_from(traces.len()).expect("few traces"));
            for (samples, trace) in traces {
                out.u4(*samples).u4(*trace);
            }
        })
    }

    /// Writes CONTROL SETTINGS (0x0E). Flags: 1 allocation traces, 2 CPU sampling.
    pub fn control_settings(&mut self, flags: u32, depth: u16) -> u64 {
        self.plain(0x0E, |out| {
            out.u4(flags).u2(depth);
        })
    }

    /// Writes HEAP DUMP (0x0C).
    pub fn heap_dump(&mut self, body: &HeapWriter) -> Placed {
        self.heap_record(HeapTag::Dump, StatedLength::Real, body)
    }

    /// Writes HEAP DUMP SEGMENT (0x1C).
    pub fn heap_segment(&mut self, body: &HeapWriter) -> Placed {
        self.heap_record(HeapTag::Segment, StatedLength::Real, body)
    }

    /// Writes either heap record, with any stated length.
    pub fn heap_record(&mut self, tag: HeapTag, stated: StatedLength, body: &HeapWriter) -> Placed {
        assert_eq!(body.sink().id_size(), self.id_size(), "identifier sizes of dump and heap differ");
        let record = self.record(tag.tag(), stated, |out| {
            out.append(body.sink());
        });
        let placed = Placed { record, body: self.len() - body.len() };
        self.subs.extend(body.marks().iter().map(|m| SubMark {
            tag: m.tag,
            id: m.id,
            at: placed.body + m.at,
            len: m.len,
        }));
        placed
    }

    /// Writes HEAP DUMP END (0x2C).
    pub fn heap_dump_end(&mut self) -> u64 {
        self.plain(0x2C, |_| {})
    }

    /// Writes a record of any tag, with any TIME, LENGTH and body.
    pub fn raw_record(&mut self, tag: u8, time_us: u32, stated_len: u32, body: &[u8]) -> u64 {
        let usual = std::mem::replace(&mut self.time_us, time_us);
        let at = self.record(tag, StatedLength::Exactly(stated_len), |out| {
            out.raw(body);
        });
        self.time_us = usual;
        at
    }

    /// Writes bytes outside any record: garbage at the end, half a record header.
    pub fn raw(&mut self, bytes: &[u8]) -> u64 {
        let at = self.len();
        self.sink.raw(bytes);
        at
    }

    /// Returns the dump so far, with the offsets of its records.
    pub fn finish(self) -> Written {
        Written { sink: self.sink, records: self.records, subs: self.subs }
    }

    /// Returns the bytes of the dump so far.
    pub fn into_bytes(self) -> Vec<u8> {
        self.sink.to_vec()
    }
}

/// A finished dump, with the offsets of its records.
#[derive(Debug, Clone)]
pub struct Written {
    sink: Sink,
    /// The top-level records in file order.
    pub records: Vec<RecordMark>,
    /// The heap sub-records in file order.
    pub subs: Vec<SubMark>,
}

impl Written {
    /// Returns the bytes of the file.
    ///
    /// # Panics
    /// If there are more than a gigabyte: use [`Written::write_file`].
    pub fn bytes(&self) -> Vec<u8> {
        self.sink.to_vec()
    }

    /// Returns the length of the file.
    pub fn len(&self) -> u64 {
        self.sink.len()
    }

    /// Returns `true` if the file is empty.
    pub fn is_empty(&self) -> bool {
        self.sink.is_empty()
    }

    /// Writes the file, sparse where the dump has holes.
    pub fn write_file(&self, path: &Path) -> io::Result<()> {
        self.sink.write_file(path)
    }

    /// Returns the offsets of all records with a tag.
    pub fn records_of(&self, tag: u8) -> Vec<u64> {
        self.records.iter().filter(|r| r.tag == tag).map(|r| r.at).collect()
    }

    /// Returns all sub-records with a tag.
    pub fn subs_of(&self, tag: u8) -> Vec<SubMark> {
        self.subs.iter().filter(|s| s.tag == tag).copied().collect()
    }

    /// Returns the offset of the sub-record that dumps this object or class (the first, if there are
    /// several).
    pub fn object_at(&self, id: u64) -> Option<u64> {
        self.subs.iter().find(|s| s.id == id && matches!(s.tag, 0x20..=0x23 | 0xC3)).map(|s| s.at)
    }
}
