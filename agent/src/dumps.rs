//! Writing of dumps: their sections and the time at which each is read.

use hprof_format::commands::SiteFlags;
use hprof_format::heap_text;

use crate::agent::Agent;
use crate::commands::DumpContents;
use crate::heap::before::HeapDumpInput;
use crate::heap::dump::{DumpWriter, HeapDumpCounts};
use crate::heap::fields::Layouts;
use crate::heap::live::Live;
use crate::heap::records::{self, RecordForm, RecordTarget, SubRecordBuffer};
use crate::heap::roots::{RootThread, Roots, ThreadRoots};
use crate::heap::write::{self, Writer};
use crate::jvm::Jni;
use crate::messages::{self, complain, write_message};
use crate::options::{Cpu, Dumper, Format};
use crate::output::Output;
use crate::output::sections::AllSites;
use crate::output::serial;
use crate::record::lock;
use crate::record::samples::Samples;
use crate::suspended::SuspendedThreads;

impl Agent {
    /// Writes the requested sections. Only one dump is written at a time. Returns whether everything was written.
    pub fn dump(&self, jni: &Jni<'_>, what: DumpContents) -> bool {
        let output = &mut *lock(&self.output);
        if let Some(failure) = output.sink.failure() {
            messages::add_messages([format!(
                "HPROF: nothing more is written because of an earlier error: {failure}"
            )]);
            return false;
        }
        let mut heap = true;
        if what.heap && self.options.dumper == Dumper::Jvm {
            heap = self.jvm_dump(jni, output);
        }
        let calls_only = self.options.cpu == Some(Cpu::Old);
        let mut told = Vec::new();
        output.sink.begin();
        if !calls_only {
            output.definitions(self);
        }
        if what.monitors {
            let (lines, dropped) = self.monitors.take_lines();
            output.sink.write(&lines);
            if dropped > 0 {
                complain(&format!(
                    "WAIT and WAITED lines omitted: {dropped}; at most 64 MiB of them are stored between two dumps"
                ));
            }
            output.monitor_dump(self, jni);
            output.contention(self, self.options.cutoff);
        }
        if what.heap {
            told.push("Java heap");
            if self.options.dumper == Dumper::Agent {
                heap = self.heap_dump(jni, output);
            }
        }
        if what.sites.is_some() || what.summary {
            told.push("allocation sites");
            self.write_sites(jni, output, what);
        }
        if let Some(cutoff) = what.samples {
            told.push("CPU usage by sampling running threads");
            output.definitions(self);
            if let Some(samples) = &self.samples {
                output.samples(self, samples, cutoff);
            }
        }
        if what.times {
            told.push("CPU usage in methods");
            self.write_times(output);
        }
        if what.settings {
            output.control_settings(self, self.samples.as_ref().is_some_and(Samples::is_on));
        }
        let name = output.sink.name();
        let whole = output.sink.end();
        if self.traces.is_full() {
            complain("too many distinct stack traces: later ones are counted as trace 300000");
        }
        if self.options.verbose && !told.is_empty() && whole {
            write_message(&format!("Dumping {} ... done: {name}", told.join(" ... ")));
        }
        heap && output.sink.failure().is_none()
    }

    fn write_times(&self, output: &mut Output) {
        let Some(times) = &self.times else { return };
        if !times.has_methods() {
            complain(&format!("no methods were measured: {}", missing_methods_reason(&self.options.filter)));
        }
        if self.options.cpu == Some(Cpu::Old) {
            output.calls(&times.calls());
        } else {
            let rows = times.rows(self);
            output.definitions(self);
            output.times(self, &rows, self.options.cutoff);
        }
    }

    fn write_sites(&self, jni: &Jni<'_>, output: &mut Output, what: DumpContents) {
        // HEAP SUMMARY has no flags.
        let flags = what.sites.map_or(SiteFlags::FORCE_GC, |sites| sites.flags);
        let live = self.count_live(jni, flags);
        let sites = AllSites::new(self, &live.counts);
        // Traces and classes that the heap walk reached.
        output.definitions(self);
        output.unloaded_classes(self, &live.classes);
        if what.summary {
            output.heap_summary(&sites.totals());
        }
        if let Some(request) = what.sites {
            let saturated = output.sites(self, sites, request);
            if saturated > 0 {
                complain(&format!(
                    "sites with numbers above 4,294,967,295, the maximum in ALLOC SITES: {saturated}; \
                     these numbers are capped"
                ));
            }
        }
        if self.sampling.is_estimate() && self.options.verbose {
            write_message(&format!(
                "counts and bytes of sites are estimates: allocations were sampled every {} bytes on average",
                self.options.sample
            ));
        }
    }

    /// Counts live objects of each site, after a garbage collection if the flags request one. Otherwise objects that were not
    /// collected yet count as alive, as in the old agent.
    fn count_live(&self, jni: &Jni<'_>, flags: SiteFlags) -> Live {
        /// Maximum number of attempts: classes can be loaded between their registration and the walk.
        const ATTEMPTS: usize = 3;
        let collected = !flags.has(SiteFlags::FORCE_GC) || self.collector.collect();
        let mut live = Live::new(self, None);
        for _ in 0..ATTEMPTS {
            {
                let _held = self.classes.hold();
                self.classes.register_all(self.jvmti, jni, &self.ids);
            }
            // If the collection failed, only reachable objects are counted, which a walk from the roots finds.
            let epoch = (!collected).then(|| self.next_epoch());
            live = Live::new(self, epoch);
            let walked = match epoch {
                None => self.jvmti.iterate(&mut live),
                Some(_) => self.jvmti.follow(None, &mut live),
            };
            if let Err(error) = walked {
                complain(&format!("cannot walk the heap: {error}"));
            }
            live.finish();
            if live.unknown == 0 {
                break;
            }
        }
        live
    }

    fn heap_dump(&self, jni: &Jni<'_>, output: &mut Output) -> bool {
        if !self.collector.collect() {
            complain("cannot collect garbage before the heap dump: it may contain unreachable objects");
        }
        let spool = if output.sink.path().is_none() {
            match records::spool() {
                Ok(file) => Some(file),
                Err(error) => {
                    complain(&format!("no heap dump: cannot create a temporary file: {error}"));
                    return false;
                }
            }
        } else {
            None
        };
        let dumped = jni.frame(crate::jvm::MAX_REFERENCES, |jni| self.heap_dump_to(jni, output, spool));
        let is_whole = matches!(dumped, Some(Ok(_)));
        match dumped {
            Some(Ok(counts)) => tell(counts),
            Some(Err(error)) => output.sink.fail(format!("the heap dump is truncated: {error}")),
            None => complain("no heap dump: the JVM has no memory for local references"),
        }
        is_whole
    }

    fn heap_dump_to(
        &self,
        jni: &Jni<'_>,
        output: &mut Output,
        spool: Option<std::fs::File>,
    ) -> Result<HeapDumpCounts, String> {
        let before = HeapDumpInput::new(self, jni).ok_or("java.lang.Object was not found")?;
        let classes_held = self.classes.hold();
        let threads_held = self.threads.hold();
        let suspended = SuspendedThreads::suspend_others(self, jni);
        output.sink.hold();
        self.classes.register_all(self.jvmti, jni, &self.ids);
        let classes = self.jvmti.loaded_classes(jni).map_err(|error| error.to_string())?;
        let layouts = Layouts::new(self, jni, &classes);
        let threads = self.thread_roots(jni);
        let this = self.jvmti.current_thread(jni).map_or(0, |thread| self.known_id(thread));
        output.definitions(self);
        let names = field_names(output, &layouts);
        let micros = output.micros();
        let is_text = output.format() == Format::Text;
        let (form, format) = if is_text {
            (RecordForm::Lines, write::HeapFormat::Text(rustc_hash::FxHashMap::default()))
        } else {
            (RecordForm::Segments, write::HeapFormat::Binary(names))
        };
        let epoch = self.next_epoch();
        if is_text {
            let (objects, bytes) = self.heap_size();
            let begin = heap_text::begin(objects, bytes, &output.date());
            output.sink.write(begin.as_bytes());
        }
        let target = match spool {
            Some(file) => RecordTarget::Spool(file, None),
            None => RecordTarget::Sink(&mut output.sink),
        };
        let writer = Writer::new(SubRecordBuffer::new(target, form, micros), format, &layouts);
        let roots = Roots { threads: &threads, this_thread: this, class_class: self.class_class() };
        let mut dump = DumpWriter::new(self, &layouts, roots, writer, epoch);
        let run = dump.run(self, jni, &classes, &before);
        let counts = dump.counts;
        let target = dump.writer.end(run.is_ok());
        drop(suspended);
        drop((classes_held, threads_held));
        let spooled = match target {
            RecordTarget::Spool(file, failed) => Some((file, failed)),
            RecordTarget::Sink(_) => None,
        };
        output.sink.release();
        if let Some((file, failed)) = spooled {
            if let Some(error) = failed {
                return Err(format!("cannot write a temporary file: {error}"));
            }
            records::unspool(file, &mut output.sink).map_err(|error| error.to_string())?;
        }
        run.map_err(|error| error.to_string())?;
        if is_text {
            output.sink.write(heap_text::END.as_bytes());
        }
        Ok(counts)
    }

    /// Lets the JVM write the dump; further output is appended to the file. The file of an earlier dump keeps its name, and the
    /// name of the new one gets a number.
    fn jvm_dump(&self, jni: &Jni<'_>, output: &mut Output) -> bool {
        let first = self.file.get_or_init(|| output.sink.path().map(std::path::Path::to_owned));
        let Some(first) = first else { return false };
        let path = if output.appends_to_jvm_dump() { unused_path(first) } else { first.clone() };
        if !self.collector.collect() {
            complain("cannot collect garbage before the heap dump: it may contain unreachable objects");
        }
        match crate::heap::jvm::dump(jni, &path) {
            Ok(behind) => {
                *output = behind;
                true
            }
            Err(error) => {
                complain(&format!("no heap dump by the JVM: {error}"));
                false
            }
        }
    }

    /// Returns the number of objects and bytes of the heap, for the first line of a text dump.
    fn heap_size(&self) -> (u64, u64) {
        let mut size = crate::heap::live::Size { fillers: self.fillers(), ..Default::default() };
        let _ = self.jvmti.iterate(&mut size);
        (size.objects, size.bytes)
    }

    /// Returns the threads and their stacks, for the roots of a heap dump. Each stack gets a trace of its own.
    fn thread_roots(&self, jni: &Jni<'_>) -> ThreadRoots {
        let mut roots = ThreadRoots::default();
        for thread in self.jvmti.threads(jni).unwrap_or_default() {
            if let Some(known) = self.threads.register(self.jvmti, jni, &self.ids, thread) {
                let depth = self.jvmti.frame_count(thread).unwrap_or(0).min(crate::options::MAX_DEPTH);
                let trace = self.trace_of_depth(jni, thread, known.serial, depth);
                let stack = self.traces.get(trace);
                roots.insert(known.id, RootThread { serial: known.serial, trace: serial(trace), stack });
            }
            jni.delete(thread);
        }
        roots
    }
}

/// Returns the reason why a filter selected no methods.
fn missing_methods_reason(filter: &[String]) -> String {
    if filter.is_empty() {
        return "no class outside the JDK was loaded during the recording".to_owned();
    }
    format!("filter={} selects no method of the classes loaded during the recording", filter.join(":"))
}

/// Returns `NAME.2`, or the first unused name with a higher number.
fn unused_path(path: &std::path::Path) -> std::path::PathBuf {
    let mut number = 2u32;
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        let name = std::path::PathBuf::from(name);
        if !name.exists() || number == u32::MAX {
            return name;
        }
        number += 1;
    }
}

/// Returns the string IDs of all field names, writing those that are new.
fn field_names(output: &mut Output, layouts: &Layouts) -> write::FieldNames {
    let mut names = write::FieldNames::default();
    if output.format() == Format::Text {
        return names;
    }
    let mut all: Vec<_> =
        layouts.by_id.values().flat_map(|layout| layout.declared.iter().map(|field| &field.name)).collect();
    all.sort_unstable();
    all.dedup();
    let mut out = Vec::new();
    for name in all {
        let id = output.string(&mut out, name);
        names.insert(name.clone(), id);
    }
    output.sink.write(&out);
    names
}

/// Writes messages about everything that is missing from a dump.
fn tell(counts: HeapDumpCounts) {
    if counts.lost > 0 {
        let objects = if counts.lost == 1 { "object is" } else { "objects are" };
        complain(&format!("{} unreachable {objects} not in the heap dump", counts.lost));
    }
    if counts.cut > 0 {
        complain(&format!(
            "arrays that exceed the record limit of 4 GiB: {}; the heap dump contains only their first elements",
            counts.cut
        ));
    }
    if counts.late > 0 {
        complain(&format!(
            "objects that were visited twice: {}; the heap dump omits references from the second visit",
            counts.late
        ));
    }
}
