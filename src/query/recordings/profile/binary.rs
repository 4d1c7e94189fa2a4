//! Profile from the records of a binary dump.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::events::{MonitorEvent, SampleEvent, SiteEvent};
use super::site_records::{self, CombinedSites};
use super::{Frame, Origin, Profile, Samples, Sites, StartedThread, ThreadEvent, object_sites, rfc3339};
use hprof_base::sorting::SortRows;
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::summary::Summary;
use hprof_index::stack_records::StackRecords;
use hprof_index::storage::id_map::IdMap;
use hprof_index::{Error, Heap, Progress};
use hprof_model::threads::frames::Frames;
use hprof_parser::Header;
use hprof_parser::record::{AllocSites, BodyReader, CpuSamples, Record, is_known, tag};
use hprof_values::TraceSerial;

/// Optional parts of a profile to read; they take time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Want {
    /// Allocation sites recorded by the writer.
    pub sites: bool,
    /// Stack traces.
    pub traces: bool,
    /// Threads of stack traces: the same stack in two threads becomes two traces; in recordings of Flight Recorder only.
    pub threads: bool,
    /// Events that are CPU samples; in recordings of Flight Recorder only.
    pub samples: Option<SampleEvent>,
    /// States of sampled threads, such as `STATE_RUNNABLE`, whose samples are counted; empty for threads that the writer
    /// counts as running; in recordings of Flight Recorder only.
    pub states: Vec<String>,
    /// Events that are contention; in recordings of Flight Recorder only.
    pub monitors: Option<MonitorEvent>,
    /// Events that are allocations; in recordings of Flight Recorder only.
    pub site_event: Option<SiteEvent>,
}

/// Reads the facts that the profiler recorded.
///
/// # Errors
/// [`Error::Unpack`].
pub fn read(heap: &Heap, want: Want, progress: &dyn Progress) -> Result<Profile, Error> {
    let bytes = heap.bytes(progress)?;
    let records = Records {
        summary: heap.summary(),
        bytes,
        frames: Frames::with(heap.summary(), StackRecords::new(heap.summary(), bytes)),
        hides_values: heap.hides_values(),
    };
    let mut profile = Profile {
        format: heap.summary().version().name().to_owned(),
        created: records.date(0),
        threads: records.threads(),
        samples: records.samples(),
        heap_summaries: records.read_all(tag::HEAP_SUMMARY, BodyReader::heap_summary),
        settings: records.read_all(tag::CONTROL_SETTINGS, BodyReader::control_settings),
        ..Profile::default()
    };
    if want.traces {
        records.traces(&mut profile);
    }
    if want.sites {
        profile.sites = records.sites();
    }
    Ok(profile)
}

/// Counts allocation sites over the objects of the heap dump, for dumps that record none; `None` if there are no
/// objects.
///
/// # Errors
/// [`Error::Unpack`].
pub fn sites_of_objects(heap: &Heap, sizes: &Sizes, progress: &dyn Progress) -> Result<Option<Sites>, Error> {
    Ok(object_sites::count(heap.summary(), sizes, heap.bytes(progress)?, progress))
}

/// Returns starts and ends of threads in the order of the file.
///
/// # Errors
/// [`Error::Unpack`].
pub fn thread_events(heap: &Heap, progress: &dyn Progress) -> Result<Vec<ThreadEvent>, Error> {
    let (bytes, summary) = (heap.bytes(progress)?, heap.summary());
    let mut ends_left: IdMap<u32, u64> = IdMap::default();
    for serial in summary.record_values(tag::END_THREAD).filter_map(|serial| u32::try_from(serial).ok()) {
        *ends_left.entry(serial).or_default() += 1;
    }
    let mut left = summary.record_count(tag::END_THREAD);
    let mut events = Vec::new();
    let mut started = 0;
    let segments = summary.segments().iter();
    let ends: IdMap<u64, u64> = segments.map(|segment| (segment.start.get(), segment.end.get())).collect();
    // The summary contains the threads that started and ended, but not their order: this requires a pass over all
    // records.
    let mut at = Header::parse(bytes).ok().filter(|_| left > 0).map(|header| header.len);
    while let Some(record) = at.and_then(|at| Record::at(bytes, at)).filter(|record| is_known(record.tag)) {
        match record.tag {
            tag::START_THREAD => {
                started += 1;
                events.push(ThreadEvent::Start);
            }
            tag::END_THREAD => {
                if let Ok(serial) = BodyReader::new(bytes, summary.id_size()).serial(&record) {
                    events.push(ThreadEvent::End(serial));
                    left = left.saturating_sub(1);
                    ends_left.entry(serial).and_modify(|left| *left = left.saturating_sub(1));
                }
            }
            _ => {}
        }
        // In a heap dump of over 4 GiB, the header's length is wrong.
        let end = ends.get(&(record.body_offset() as u64)).copied().unwrap_or(record.end());
        let done = left == 0 && started >= summary.threads().len();
        at = usize::try_from(end).ok().filter(|_| !done);
    }
    // Threads that started after a damaged region.
    events.extend((started..summary.threads().len()).map(|_| ThreadEvent::Start));
    let mut behind: Vec<(u32, u64)> = ends_left.into_iter().filter(|(_, left)| *left > 0).collect();
    behind.sort_unstable();
    events.extend(behind.into_iter().map(|(serial, _)| ThreadEvent::End(serial)));
    Ok(events)
}

/// Reader of records at the offsets in the summary.
struct Records<'a> {
    summary: &'a Summary,
    bytes: &'a [u8],
    frames: Frames<'a>,
    /// `true` if names of threads are hidden.
    hides_values: bool,
}

impl<'a> Records<'a> {
    fn at(&self, offset: u64) -> Option<Record> {
        Record::at(self.bytes, usize::try_from(offset).ok()?)
    }

    fn reader(&self) -> BodyReader<'a> {
        BodyReader::new(self.bytes, self.summary.id_size())
    }

    /// Returns the records with the given tag, in the order of the file.
    fn records_with_tag(&self, tag: u8) -> impl Iterator<Item = Record> {
        self.summary.record_values(tag).filter_map(|offset| self.at(offset))
    }

    fn read_all<T, E>(&self, tag: u8, read: impl Fn(&BodyReader<'a>, &Record) -> Result<T, E>) -> Vec<T> {
        let reader = self.reader();
        self.records_with_tag(tag).filter_map(|record| read(&reader, &record).ok()).collect()
    }

    /// Returns the date of a record whose time is given in microseconds since the start.
    fn date(&self, time_us: u32) -> Option<String> {
        rfc3339(self.summary.facts().created_ms.get(), time_us)
    }

    fn text(&self, id: u64) -> String {
        self.frames.text(id).unwrap_or_default()
    }

    fn threads(&self) -> Vec<StartedThread> {
        let mut ended: Vec<u64> = self.summary.record_values(tag::END_THREAD).collect();
        ended.sort_unstable();
        let threads = self.summary.threads().iter().map(|row| {
            let parent_group = self.frames.text(row.parent_group.get());
            let thread = StartedThread {
                serial: row.serial.get(),
                object: row.id.into(),
                trace: row.trace.into(),
                name: self.text(row.name.get()).into(),
                group: self.text(row.group.get()).into(),
                parent_group: parent_group.filter(|name| !name.is_empty()).map(Into::into),
                ended: ended.binary_search(&u64::from(row.serial.get())).is_ok(),
            };
            if self.hides_values { thread.without_names() } else { thread }
        });
        threads.collect()
    }

    fn traces(&self, profile: &mut Profile) {
        let reader = self.reader();
        let traces = &mut profile.traces;
        let mut known: FxHashMap<u64, u32> = FxHashMap::default();
        let mut places: Vec<u64> = self.summary.traces().iter().map(|place| place.offset.get()).collect();
        places.sort_unstable();
        for record in places.iter().filter_map(|offset| self.at(*offset)) {
            let Ok(trace) = reader.trace(&record) else { continue };
            for id in trace.frames() {
                known
                    .entry(id)
                    .or_insert_with(|| traces.intern(self.frames.frame(id).unwrap_or(Frame::UNKNOWN)));
            }
            let numbers = trace.frames().filter_map(|id| known.get(&id).copied());
            traces.add_numbers(trace.serial, trace.thread, numbers);
        }
    }

    /// Returns the sums over all CPU SAMPLES records: the agent resets its counters whenever it has written them.
    fn samples(&self) -> Option<Samples> {
        let mut samples: Option<Samples> = None;
        let mut places: FxHashMap<TraceSerial, usize> = FxHashMap::default();
        let mut records = 0;
        for record in self.records_with_tag(tag::CPU_SAMPLES) {
            let Ok(found) = self.reader().cpu_samples(&record) else { continue };
            let sum = samples.get_or_insert_with(Samples::default);
            add_samples(sum, &mut places, &found);
            sum.date = self.date(record.time_us);
            records += 1;
        }
        // A single record keeps its order; several records have no common order.
        if let Some(samples) = samples.as_mut().filter(|_| records > 1) {
            samples.rows.sort_rows_by_key(|(_, samples)| std::cmp::Reverse(*samples));
        }
        samples
    }

    fn sites(&self) -> Option<Sites> {
        let records: Vec<(Record, AllocSites<'_>)> = (self.records_with_tag(tag::ALLOC_SITES))
            .filter_map(|record| Some((record, self.reader().alloc_sites(&record).ok()?)))
            .collect();
        let CombinedSites { rows, totals, by_allocation, last } = site_records::combine(&records)?;
        let classes = self.class_names();
        let mut sites = Sites {
            origin: Origin::Recorded,
            rows: rows
                .into_iter()
                .map(|mut row| {
                    row.site.class = row.class_name(classes.get(&row.class_serial));
                    row.site
                })
                .collect(),
            total: Some(totals),
            event: None,
            by_allocation,
            date: last.and_then(|record| self.date(record.time_us)),
        };
        sites.fill_percentages();
        Some(sites)
    }

    /// Returns class names by serial number.
    fn class_names(&self) -> FxHashMap<u32, Arc<str>> {
        // Many classes can share a name.
        let mut names: IdMap<u64, Arc<str>> = IdMap::default();
        let mut name = |id| {
            let name =
                names.entry(id).or_insert_with(|| self.frames.class_name(id).unwrap_or_default().into());
            Arc::clone(name)
        };
        self.summary.loads().iter().map(|load| (load.serial.get(), name(load.name.get()))).collect()
    }
}

/// Adds a record to a sum; `places` maps traces to indexes into `sum.rows`.
fn add_samples(sum: &mut Samples, places: &mut FxHashMap<TraceSerial, usize>, record: &CpuSamples<'_>) {
    sum.total = sum.total.saturating_add(u64::from(record.total));
    for row in record.samples() {
        match places.get(&row.trace).and_then(|at| sum.rows.get_mut(*at)) {
            Some((_, samples)) => *samples = samples.saturating_add(u64::from(row.samples)),
            None => {
                places.insert(row.trace, sum.rows.len());
                sum.rows.push((row.trace, u64::from(row.samples)));
            }
        }
    }
}
