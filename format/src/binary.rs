//! Records of a binary file as specified ("HPROF Agent", Binary Dump Format): big-endian, with 8-byte
//! identifiers.

use crate::commands::SiteFlags;

/// Header text of the version with HEAP DUMP SEGMENT.
pub const VERSION: &[u8] = b"JAVA PROFILE 1.0.2\0";
/// Size of an identifier in bytes.
pub const ID_BYTES: u32 = 8;

/// Tags of records.
pub mod tag {
    /// STRING IN UTF8.
    pub const STRING: u8 = 0x01;
    /// LOAD CLASS.
    pub const LOAD_CLASS: u8 = 0x02;
    /// UNLOAD CLASS.
    pub const UNLOAD_CLASS: u8 = 0x03;
    /// STACK FRAME.
    pub const FRAME: u8 = 0x04;
    /// STACK TRACE.
    pub const TRACE: u8 = 0x05;
    /// ALLOC SITES.
    pub const ALLOC_SITES: u8 = 0x06;
    /// HEAP SUMMARY.
    pub const HEAP_SUMMARY: u8 = 0x07;
    /// START THREAD.
    pub const START_THREAD: u8 = 0x0a;
    /// END THREAD.
    pub const END_THREAD: u8 = 0x0b;
    /// HEAP DUMP.
    pub const HEAP_DUMP: u8 = 0x0c;
    /// CPU SAMPLES.
    pub const CPU_SAMPLES: u8 = 0x0d;
    /// CONTROL SETTINGS.
    pub const CONTROL_SETTINGS: u8 = 0x0e;
    /// HEAP DUMP SEGMENT.
    pub const HEAP_DUMP_SEGMENT: u8 = 0x1c;
    /// HEAP DUMP END.
    pub const HEAP_DUMP_END: u8 = 0x2c;
    /// STATED SIZES: a record of hprof-cli in dumps that it makes from text reports. Other readers skip unknown tags.
    pub const STATED_SIZES: u8 = 0xf5;
}

/// First bytes of the body of STATED SIZES. The number of the heap dump (4 bytes, from 1) follows, then rows of object ID and
/// size (8 bytes each), ascending by ID.
pub const STATED_SIZES_MAGIC: &[u8; 16] = b"hprof-cli sizes\0";

/// Writes the header: version, identifier size, milliseconds since 1970.
pub fn header(out: &mut Vec<u8>, millis: u64) {
    out.extend_from_slice(VERSION);
    out.extend_from_slice(&ID_BYTES.to_be_bytes());
    out.extend_from_slice(&millis.to_be_bytes());
}

/// Returns the head of a record: tag, microseconds since the header's time (modulo 2^32), length of the
/// body.
pub fn record_head(tag: u8, micros: u32, length: u32) -> [u8; 9] {
    let [t0, t1, t2, t3] = micros.to_be_bytes();
    let [l0, l1, l2, l3] = length.to_be_bytes();
    [tag, t0, t1, t2, t3, l0, l1, l2, l3]
}

/// A number that is written as big-endian bytes.
pub trait BigEndian {
    /// Appends the number to `out`.
    fn put(self, out: &mut Vec<u8>);
}

macro_rules! put {
    ($($number:ty)*) => {$(
        impl BigEndian for $number {
            #[inline(always)]
            fn put(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }
        }
    )*};
}

put!(u8 u16 u32 u64 i32 f32);

/// Writer that appends records that all have the same time.
#[derive(Debug)]
pub struct Records<'o> {
    out: &'o mut Vec<u8>,
    micros: u32,
}

/// STACK FRAME.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// ID of the frame.
    pub id: u64,
    /// String ID of the method's name.
    pub method: u64,
    /// String ID of the signature.
    pub signature: u64,
    /// String ID of the source file; 0 for none.
    pub source: u64,
    /// Serial number of the class.
    pub class: u32,
    /// Line number; 0 for none, -1 unknown, -3 native method.
    pub line: i32,
}

/// START THREAD.
#[derive(Debug, Clone, Copy)]
pub struct StartThread {
    /// Thread serial number.
    pub serial: u32,
    /// Object ID of the thread.
    pub object: u64,
    /// Serial number of the trace where it started.
    pub trace: u32,
    /// String ID of the thread's name.
    pub name: u64,
    /// String ID of the group's name.
    pub group: u64,
    /// String ID of the parent group's name.
    pub parent_group: u64,
}

/// Live and allocated objects: HEAP SUMMARY, and the head of ALLOC SITES.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Live bytes. The format has four bytes for them; larger numbers saturate.
    pub live_bytes: u64,
    /// Live objects. The format has four bytes for them; larger numbers saturate.
    pub live_objects: u64,
    /// Allocated bytes.
    pub allocated_bytes: u64,
    /// Allocated objects.
    pub allocated_objects: u64,
}

/// A site of ALLOC SITES. Numbers that do not fit into four bytes saturate: see [`Site::saturates`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Site {
    /// 0, or the basic type of a primitive array's elements, or 2 for object arrays.
    pub array: u8,
    /// Class serial number.
    pub class: u32,
    /// Trace serial number.
    pub trace: u32,
    /// Live and allocated objects of the site.
    pub totals: Totals,
}

impl Site {
    /// Returns `true` if a number does not fit into the format's four bytes.
    pub const fn saturates(&self) -> bool {
        let Totals { live_bytes, live_objects, allocated_bytes, allocated_objects } = self.totals;
        let most = u32::MAX as u64;
        live_bytes > most || live_objects > most || allocated_bytes > most || allocated_objects > most
    }
}

/// Maximum number of sites in an ALLOC SITES record, whose length has four bytes.
pub const MAX_SITES: usize = 100_000_000;

fn saturate(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl<'o> Records<'o> {
    /// Creates a writer that appends records to `out`, with their time in microseconds since the
    /// header's.
    pub fn new(out: &'o mut Vec<u8>, micros: u32) -> Self {
        Self { out, micros }
    }

    fn record(&mut self, tag: u8, body: &[u8]) {
        self.out.extend_from_slice(&record_head(tag, self.micros, saturate(body.len() as u64)));
        self.out.extend_from_slice(body);
    }

    /// Appends STRING IN UTF8.
    pub fn string(&mut self, id: u64, text: &[u8]) {
        let mut body = Vec::with_capacity(8 + text.len());
        id.put(&mut body);
        body.extend_from_slice(text);
        self.record(tag::STRING, &body);
    }

    /// Appends LOAD CLASS: serial number, object ID, trace, string ID of the name.
    pub fn load_class(&mut self, serial: u32, object: u64, trace: u32, name: u64) {
        let mut body = Vec::with_capacity(24);
        serial.put(&mut body);
        object.put(&mut body);
        trace.put(&mut body);
        name.put(&mut body);
        self.record(tag::LOAD_CLASS, &body);
    }

    /// Appends UNLOAD CLASS.
    pub fn unload_class(&mut self, serial: u32) {
        self.record(tag::UNLOAD_CLASS, &serial.to_be_bytes());
    }

    /// Appends STACK FRAME.
    pub fn frame(&mut self, frame: &Frame) {
        let mut body = Vec::with_capacity(40);
        frame.id.put(&mut body);
        frame.method.put(&mut body);
        frame.signature.put(&mut body);
        frame.source.put(&mut body);
        frame.class.put(&mut body);
        frame.line.put(&mut body);
        self.record(tag::FRAME, &body);
    }

    /// Appends STACK TRACE: serial number, thread serial number, frame IDs.
    pub fn trace(&mut self, serial: u32, thread: u32, frames: &[u64]) {
        let mut body = Vec::with_capacity(12 + 8 * frames.len());
        serial.put(&mut body);
        thread.put(&mut body);
        saturate(frames.len() as u64).put(&mut body);
        for frame in frames {
            frame.put(&mut body);
        }
        self.record(tag::TRACE, &body);
    }

    /// Appends ALLOC SITES. At most [`MAX_SITES`].
    pub fn alloc_sites(&mut self, flags: SiteFlags, cutoff: f32, totals: &Totals, sites: &[Site]) {
        let sites = sites.get(..MAX_SITES).unwrap_or(sites);
        let mut body = Vec::with_capacity(34 + 25 * sites.len());
        flags.known_flags().0.put(&mut body);
        cutoff.put(&mut body);
        put_totals(&mut body, totals);
        saturate(sites.len() as u64).put(&mut body);
        for site in sites {
            site.array.put(&mut body);
            site.class.put(&mut body);
            site.trace.put(&mut body);
            saturate(site.totals.live_bytes).put(&mut body);
            saturate(site.totals.live_objects).put(&mut body);
            saturate(site.totals.allocated_bytes).put(&mut body);
            saturate(site.totals.allocated_objects).put(&mut body);
        }
        self.record(tag::ALLOC_SITES, &body);
    }

    /// Appends HEAP SUMMARY.
    pub fn heap_summary(&mut self, totals: &Totals) {
        let mut body = Vec::with_capacity(24);
        put_totals(&mut body, totals);
        self.record(tag::HEAP_SUMMARY, &body);
    }

    /// Appends START THREAD.
    pub fn start_thread(&mut self, thread: &StartThread) {
        let mut body = Vec::with_capacity(40);
        thread.serial.put(&mut body);
        thread.object.put(&mut body);
        thread.trace.put(&mut body);
        thread.name.put(&mut body);
        thread.group.put(&mut body);
        thread.parent_group.put(&mut body);
        self.record(tag::START_THREAD, &body);
    }

    /// Appends END THREAD.
    pub fn end_thread(&mut self, serial: u32) {
        self.record(tag::END_THREAD, &serial.to_be_bytes());
    }

    /// Appends CPU SAMPLES: the total number of samples, and the number of each trace.
    pub fn cpu_samples(&mut self, total: u64, rows: &[(u64, u32)]) {
        let mut body = Vec::with_capacity(8 + 8 * rows.len());
        saturate(total).put(&mut body);
        saturate(rows.len() as u64).put(&mut body);
        for (samples, trace) in rows {
            saturate(*samples).put(&mut body);
            trace.put(&mut body);
        }
        self.record(tag::CPU_SAMPLES, &body);
    }

    /// Appends CONTROL SETTINGS: flags for allocation traces (0x1) and CPU sampling (0x2), and the depth
    /// of traces.
    pub fn control_settings(&mut self, flags: u32, depth: u16) {
        let mut body = Vec::with_capacity(6);
        flags.put(&mut body);
        depth.put(&mut body);
        self.record(tag::CONTROL_SETTINGS, &body);
    }
}

fn put_totals(body: &mut Vec<u8>, totals: &Totals) {
    saturate(totals.live_bytes).put(body);
    saturate(totals.live_objects).put(body);
    totals.allocated_bytes.put(body);
    totals.allocated_objects.put(body);
}
