//! The second reading of a text: all records of the dump.

use std::collections::HashMap;
use std::io::{self, Write};

use hprof_format::binary::{self, Frame, Records, Site, StartThread, Totals};
use hprof_format::commands::SiteFlags;
use hprof_parser::text::TextEvent;
use hprof_parser::text::event::{AllocationSite, Ranking, TextFrame};
use hprof_values::{BasicType, TraceSerial};

use super::class_names::{ElementType, binary_name, element_type};
use super::heap_writer::HeapWriter;
use super::survey::Survey;
use super::{TextDumpError, TextDumpOutcome};
use crate::file::TextFile;
use crate::text_events::visit_events;

/// Writes the dump of a run.
pub(super) fn write(
    file: &TextFile,
    survey: &Survey,
    out: &mut dyn Write,
) -> Result<TextDumpOutcome, TextDumpError> {
    let mut writer = DumpWriter::new(survey, out).map_err(TextDumpError::Write)?;
    let mut failed = None;
    visit_events(file, |run, _, event| {
        if run == survey.run && failed.is_none() {
            failed = writer.take(&event).err();
        }
    })
    .map_err(TextDumpError::Read)?;
    let written = failed.map_or_else(|| writer.finish(), Err);
    written.map_err(TextDumpError::Write)
}

/// Trace of which frames are being read.
#[derive(Debug)]
struct OpenTrace {
    serial: TraceSerial,
    thread: u32,
    frames: Vec<u64>,
}

/// Contents of a STACK FRAME other than its ID.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct FrameKey {
    class: u32,
    method: u64,
    source: u64,
    line: i32,
}

/// SITES of which rows are being read.
#[derive(Debug)]
struct OpenSites {
    by_allocation: bool,
    micros: u32,
    rows: Vec<Site>,
    /// Live bytes of all rows.
    listed_bytes: u64,
    /// Range in which the total of live bytes lies, by the percentages of the rows.
    live_bytes: (f64, f64),
}

/// CPU SAMPLES of which rows are being read.
#[derive(Debug)]
struct OpenSamples {
    total: u64,
    micros: u32,
    /// Numbers of samples, and trace serial numbers.
    rows: Vec<(u64, u32)>,
}

/// Writer of the records.
struct DumpWriter<'s, 'o> {
    survey: &'s Survey,
    out: &'o mut dyn Write,
    outcome: TextDumpOutcome,
    strings: HashMap<Vec<u8>, u64>,
    /// String IDs of field names, by number.
    field_strings: Vec<u64>,
    /// Class serial numbers by binary name.
    serials: HashMap<Vec<u8>, u32>,
    /// Highest class serial number.
    last_serial: u32,
    frames: HashMap<FrameKey, u64>,
    trace: Option<OpenTrace>,
    heap: Option<HeapWriter<'s>>,
    /// Number of heap dumps that began.
    heap_dump: usize,
    /// Rows of SITES; `None` outside of it.
    sites: Option<OpenSites>,
    /// Rows of CPU SAMPLES; `None` outside of them.
    samples: Option<OpenSamples>,
    bytes: Vec<u8>,
}

impl<'s, 'o> DumpWriter<'s, 'o> {
    /// Writes the header, the sizes of objects, and the classes.
    fn new(survey: &'s Survey, out: &'o mut dyn Write) -> io::Result<Self> {
        let mut bytes = Vec::new();
        binary::header(&mut bytes, survey.created_ms);
        out.write_all(&bytes)?;
        bytes.clear();
        // Readers do not count a heap dump without records.
        let dumps = survey.heap_dumps.iter().filter(|dump| !dump.is_empty);
        for (number, dump) in (1..).zip(dumps.clone()) {
            dump.sizes.write(number, out)?;
        }
        let outcome = TextDumpOutcome {
            runs: survey.runs,
            heap_dumps: u32::try_from(dumps.count()).unwrap_or(u32::MAX),
            malformed_lines: survey.malformed_lines,
            left_out: Vec::new(),
        };
        let mut writer = Self {
            survey,
            out,
            outcome,
            strings: HashMap::new(),
            field_strings: Vec::new(),
            serials: HashMap::new(),
            last_serial: 0,
            frames: HashMap::new(),
            trace: None,
            heap: None,
            heap_dump: 0,
            sites: None,
            samples: None,
            bytes,
        };
        writer.field_strings = (survey.classes.field_names().into_iter())
            .map(|name| writer.string(name))
            .collect::<io::Result<_>>()?;
        for class in survey.classes.rows() {
            writer.load_class(class.name.clone(), class.id)?;
        }
        Ok(writer)
    }

    /// Writes records that `make` appends.
    fn records(&mut self, micros: u32, make: impl FnOnce(&mut Records<'_>)) -> io::Result<()> {
        self.bytes.clear();
        make(&mut Records::new(&mut self.bytes, micros));
        self.out.write_all(&self.bytes)
    }

    /// Returns the ID of a string.
    fn string(&mut self, text: &[u8]) -> io::Result<u64> {
        if let Some(id) = self.strings.get(text) {
            return Ok(*id);
        }
        let id = self.strings.len() as u64 + 1;
        self.strings.insert(text.to_vec(), id);
        self.records(0, |records| records.string(id, text))?;
        Ok(id)
    }

    /// Writes LOAD CLASS and returns its serial number. Of classes with one name, the first is that of frames and sites.
    fn load_class(&mut self, name: Vec<u8>, id: u64) -> io::Result<u32> {
        self.last_serial = self.last_serial.saturating_add(1);
        let serial = self.last_serial;
        let string = self.string(&name)?;
        self.serials.entry(name).or_insert(serial);
        self.records(0, |records| records.load_class(serial, id, 0, string))?;
        Ok(serial)
    }

    /// Returns the serial number of a class that a frame or site names.
    fn class_serial(&mut self, name: &[u8]) -> io::Result<u32> {
        let name = binary_name(name);
        if let Some(serial) = self.serials.get(&name) {
            return Ok(*serial);
        }
        self.load_class(name, 0)
    }

    /// Returns the microseconds from the header's time to a date, modulo 2^32.
    fn micros(&self, date: &[u8]) -> u32 {
        let millis = hprof_parser::text::millis(&String::from_utf8_lossy(date));
        let since = millis.and_then(|millis| u64::try_from(millis).ok());
        let since = since.and_then(|millis| millis.checked_sub(self.survey.created_ms)).unwrap_or(0);
        // The format's clock wraps after 71 minutes.
        #[allow(clippy::cast_possible_truncation)]
        let micros = since.wrapping_mul(1000) as u32;
        micros
    }

    fn leave_out(&mut self, part: &'static str) {
        if !self.outcome.left_out.contains(&part) {
            self.outcome.left_out.push(part);
        }
    }

    fn take(&mut self, event: &TextEvent<'_>) -> io::Result<()> {
        // Another thread of the JVM may write a line within a trace.
        let is_within_trace = matches!(
            event,
            TextEvent::Frame(_)
                | TextEvent::Nothing
                | TextEvent::Malformed { .. }
                | TextEvent::ThreadStart { .. }
                | TextEvent::ThreadEnd { .. }
                | TextEvent::Wait(_)
        );
        if self.trace.is_some() && !is_within_trace {
            self.end_trace()?;
        }
        let Self { heap, out, survey, .. } = self;
        match event {
            TextEvent::Field { name, object } => {
                if let Some(heap) = heap {
                    heap.field(name, *object);
                }
            }
            TextEvent::Element { index, object } => {
                if let Some(heap) = heap {
                    heap.element(*index, *object);
                }
            }
            TextEvent::Object(object) => {
                let class = survey.classes.known_class(object.class_object, object.class);
                if let (Some(heap), Some(class)) = (heap, class) {
                    heap.instance(object, class, *out)?;
                }
            }
            TextEvent::Array(array) => {
                let class = survey.classes.known_array(array.class_object, array.class);
                if let (Some(heap), Some(class)) = (heap, class) {
                    heap.array(array, class, *out)?;
                }
            }
            TextEvent::Class { object, trace, .. } => {
                if let Some(heap) = heap {
                    heap.class(*object, *trace, *out)?;
                }
            }
            TextEvent::ClassReference { what, object } => {
                if let Some(heap) = heap {
                    heap.class_reference(*what, *object);
                }
            }
            TextEvent::Root(root) => {
                if let Some(heap) = heap {
                    heap.root(root, *out)?;
                }
            }
            TextEvent::HeapBegin { date, .. } => {
                self.end_heap()?;
                let micros = self.micros(date);
                let strings = std::mem::take(&mut self.field_strings);
                let undefined =
                    self.survey.heap_dumps.get(self.heap_dump).map_or(&[][..], |dump| &dump.undefined);
                self.heap_dump += 1;
                self.heap =
                    Some(HeapWriter::begin(&self.survey.classes, undefined, strings, micros, self.out)?);
            }
            TextEvent::HeapEnd => self.end_heap()?,
            TextEvent::Malformed { text, .. } => {
                if let Some(heap) = heap.as_mut().filter(|_| !matches!(text, [b' ' | b'\t', ..])) {
                    heap.end_entry(*out)?;
                }
            }
            TextEvent::ThreadStart { object, serial, name, group } => {
                let (name, group) = (self.string(name)?, self.string(group)?);
                let (serial, object) = (*serial, object.0);
                let thread = StartThread { serial, object, trace: 0, name, group, parent_group: 0 };
                self.records(0, |records| records.start_thread(&thread))?;
            }
            TextEvent::ThreadEnd { serial } => self.records(0, |records| records.end_thread(*serial))?,
            TextEvent::Trace { serial, thread, .. } => {
                self.trace = Some(OpenTrace { serial: *serial, thread: *thread, frames: Vec::new() });
            }
            TextEvent::Frame(frame) => self.frame(frame)?,
            TextEvent::SitesBegin { by_allocation, date } => {
                self.end_sites()?;
                let (by_allocation, micros) = (*by_allocation, self.micros(date));
                let live_bytes = (0.0, f64::INFINITY);
                self.sites =
                    Some(OpenSites { by_allocation, micros, rows: Vec::new(), listed_bytes: 0, live_bytes });
            }
            TextEvent::Site(site) => self.site(site)?,
            TextEvent::SitesEnd => self.end_sites()?,
            TextEvent::RankingBegin { ranking: Ranking::Samples, total, date } => {
                self.end_samples()?;
                let total = u64::try_from(*total).unwrap_or(0);
                self.samples = Some(OpenSamples { total, micros: self.micros(date), rows: Vec::new() });
            }
            TextEvent::RankingBegin { ranking: Ranking::Times, .. } => {
                self.end_samples()?;
                self.leave_out("CPU TIME (ms)");
            }
            TextEvent::RankingBegin { ranking: Ranking::Contention, .. } => {
                self.end_samples()?;
                self.leave_out("MONITOR TIME");
            }
            TextEvent::Row(row) => {
                if let Some(samples) = &mut self.samples {
                    samples.rows.push((row.count, row.trace.0));
                }
            }
            TextEvent::RankingEnd(_) => self.end_samples()?,
            TextEvent::MonitorDumpBegin => self.leave_out("MONITOR DUMP"),
            TextEvent::Wait(_) => self.leave_out("WAIT, WAITED, SLEEP and EXIT"),
            TextEvent::CallsBegin | TextEvent::Call { .. } => self.leave_out("the calls of cpu=old"),
            _ => {}
        }
        Ok(())
    }

    fn frame(&mut self, frame: &TextFrame<'_>) -> io::Result<()> {
        if self.trace.is_none() {
            return Ok(());
        }
        let key = FrameKey {
            class: self.class_serial(frame.class)?,
            method: self.string(frame.method)?,
            source: frame.source.map_or(Ok(0), |source| self.string(source))?,
            line: frame.line,
        };
        let next = self.frames.len() as u64 + 1;
        let id = *self.frames.entry(key.clone()).or_insert(next);
        if id == next {
            // A text states no signatures.
            let signature = self.string(b"")?;
            let FrameKey { class, method, source, line } = key;
            self.records(0, |records| records.frame(&Frame { id, method, signature, source, class, line }))?;
        }
        if let Some(trace) = &mut self.trace {
            trace.frames.push(id);
        }
        Ok(())
    }

    fn end_trace(&mut self) -> io::Result<()> {
        let Some(OpenTrace { serial, thread, frames }) = self.trace.take() else { return Ok(()) };
        self.records(0, |records| records.trace(serial.0, thread, &frames))
    }

    fn site(&mut self, site: &AllocationSite<'_>) -> io::Result<()> {
        let class = self.class_serial(site.class)?;
        let name = binary_name(site.class);
        let array = match element_type(&name) {
            _ if !name.starts_with(b"[") => 0,
            ElementType::Primitive(kind) => kind.code(),
            ElementType::Object => BasicType::Object.code(),
        };
        let totals = Totals {
            live_bytes: site.live_bytes,
            live_objects: site.live_instances,
            allocated_bytes: site.allocated_bytes,
            allocated_objects: site.allocated_instances,
        };
        if let Some(sites) = &mut self.sites {
            sites.rows.push(Site { array, class, trace: site.trace.0, totals });
            sites.listed_bytes = sites.listed_bytes.saturating_add(site.live_bytes);
            let shares =
                [(site.live_bytes, site.self_percent), (sites.listed_bytes, site.accumulated_percent)];
            for (bytes, percent) in shares.into_iter().filter(|(bytes, _)| *bytes > 0) {
                // Exact below 2^53.
                #[allow(clippy::cast_precision_loss)]
                let bytes = bytes as f64 * 100.0;
                // Percentages are rounded to two decimals.
                let (least, most) = (bytes / (percent + 0.005), bytes / (percent - 0.005).max(0.0));
                sites.live_bytes = (sites.live_bytes.0.max(least), sites.live_bytes.1.min(most));
            }
        }
        Ok(())
    }

    fn end_sites(&mut self) -> io::Result<()> {
        let Some(OpenSites { by_allocation, micros, rows: sites, live_bytes, .. }) = self.sites.take() else {
            return Ok(());
        };
        let mut totals = Totals::default();
        for Site { totals: site, .. } in &sites {
            totals.live_bytes = totals.live_bytes.saturating_add(site.live_bytes);
            totals.live_objects = totals.live_objects.saturating_add(site.live_objects);
            totals.allocated_bytes = totals.allocated_bytes.saturating_add(site.allocated_bytes);
            totals.allocated_objects = totals.allocated_objects.saturating_add(site.allocated_objects);
        }
        // A text omits sites below the cutoff, but its percentages are those of all sites.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let all = live_bytes.0.midpoint(live_bytes.1).round() as u64;
        if live_bytes.0 <= live_bytes.1 && live_bytes.1.is_finite() {
            totals.live_bytes = totals.live_bytes.max(all);
        }
        let flags = if by_allocation { SiteFlags::BY_ALLOCATION } else { SiteFlags::default() };
        self.records(micros, |records| records.alloc_sites(flags, 0.0, &totals, &sites))
    }

    fn end_samples(&mut self) -> io::Result<()> {
        let Some(OpenSamples { total, micros, rows }) = self.samples.take() else { return Ok(()) };
        self.records(micros, |records| records.cpu_samples(total, &rows))
    }

    fn end_heap(&mut self) -> io::Result<()> {
        if let Some(heap) = self.heap.take() {
            self.field_strings = heap.finish(self.out)?;
        }
        Ok(())
    }

    /// Ends all sections that a truncated text left open.
    fn finish(mut self) -> io::Result<TextDumpOutcome> {
        self.end_trace()?;
        self.end_heap()?;
        self.end_sites()?;
        self.end_samples()?;
        Ok(self.outcome)
    }
}
