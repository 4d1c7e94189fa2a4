//! State of a recording that all parts of the agent share: recorded data, and access to the JVM.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::collector::CollectionRequester;
use crate::jvm::{Jni, Jvmti, Ref, VirtualThreadOf};
use crate::options::{self, Options};
use crate::record::classes::Classes;
use crate::record::lock;
use crate::record::monitors::Monitors;
use crate::record::sites::{Sampling, Sites};
use crate::record::threads::Threads;
use crate::record::traces::{self, Traces};
use crate::tags::{Epoch, Ids, Tag};

/// State of a recording that all parts of the agent share.
#[derive(Debug)]
pub struct AgentState {
    /// JVM TI environment.
    pub jvmti: Jvmti,
    /// Options of the recording.
    pub options: Options,
    /// Generator of object IDs.
    pub ids: Ids,
    /// Registered classes.
    pub classes: Classes,
    /// Registered threads.
    pub threads: Threads,
    /// Stack traces.
    pub traces: Traces,
    /// Allocation sites.
    pub sites: Sites,
    /// Sampling interval of allocations.
    pub sampling: Sampling,
    /// Contention of monitors, and waits.
    pub monitors: Monitors,
    /// Function that returns the virtual thread on a carrier thread, if the JVM has it.
    pub virtual_threads: Option<VirtualThreadOf>,
    /// `true` if the JVM provides the CPU time of threads.
    pub has_cpu_time: bool,
    depth: AtomicUsize,
    recording: AtomicBool,
    /// Requester of garbage collections.
    pub collector: CollectionRequester,
    /// Epoch of the last walk that marked the objects it visited.
    epoch: Mutex<Epoch>,
    /// `true` if objects other than classes and threads may have tags.
    tags_objects: AtomicBool,
}

impl AgentState {
    /// Creates the state of a new recording.
    pub fn new(
        jvmti: Jvmti,
        options: Options,
        ids: Ids,
        virtual_threads: Option<VirtualThreadOf>,
        has_cpu_time: bool,
    ) -> Self {
        Self {
            jvmti,
            ids,
            classes: Classes::default(),
            threads: Threads::default(),
            traces: Traces::new(options.lines),
            sites: Sites::default(),
            sampling: Sampling::every(options.sample),
            monitors: Monitors::default(),
            virtual_threads,
            has_cpu_time,
            depth: AtomicUsize::new(options.depth),
            recording: AtomicBool::new(options.sites),
            collector: CollectionRequester::default(),
            epoch: Mutex::default(),
            tags_objects: AtomicBool::new(options.sites),
            options,
        }
    }

    /// Returns the maximum number of frames of traces.
    #[inline]
    pub fn depth(&self) -> usize {
        self.depth.load(Ordering::Relaxed)
    }

    /// Sets the maximum number of frames of traces, limited to [`options::MAX_DEPTH`].
    pub fn set_depth(&self, depth: usize) {
        self.depth.store(depth.min(options::MAX_DEPTH), Ordering::Relaxed);
    }

    /// Returns `true` if allocations are being recorded.
    pub fn records_sites(&self) -> bool {
        self.recording.load(Ordering::Relaxed)
    }

    /// Permanently stops recording allocations.
    pub fn end_recording(&self) {
        self.recording.store(false, Ordering::Relaxed);
    }

    /// Clears tags, and removes all data to which they refer. No event may be in progress, and no request may be pending.
    pub fn clear(&self, jni: &Jni<'_>) -> crate::jvm::Result<()> {
        if self.tags_objects.load(Ordering::Relaxed) {
            self.jvmti.clear_tags()?;
            self.ids.restart();
            self.tags_objects.store(false, Ordering::Relaxed);
        } else {
            // A walk over the heap would suspend the program. Ended threads keep their tags.
            jni.frame(crate::jvm::MAX_REFERENCES, |jni| {
                let classes = self.jvmti.loaded_classes(jni).unwrap_or_default();
                let threads = self.jvmti.threads(jni).unwrap_or_default();
                for object in classes.into_iter().chain(threads) {
                    let _ = self.jvmti.set_tag(object, 0);
                    jni.delete(object);
                }
            });
        }
        self.classes.clear();
        self.threads.clear();
        self.traces.clear();
        self.sites.clear();
        self.monitors.clear(jni);
        Ok(())
    }

    /// Starts or stops recording allocations, if the options include allocation sites.
    pub fn record_sites(&self, on: bool) {
        self.recording.store(on && self.options.sites, Ordering::Relaxed);
    }

    /// Returns the trace number for the stack of a thread.
    pub fn number(&self, jni: &Jni<'_>, thread: u32, frames: &[crate::jvm::Frame]) -> u32 {
        let hash = traces::hash(thread, frames);
        self.traces.number(self.jvmti, jni, (&self.classes, &self.ids), thread, frames, hash)
    }

    /// Returns the number of a thread's current trace, with the current maximum depth.
    pub fn trace_of(&self, jni: &Jni<'_>, thread: Ref<'_>, serial: u32) -> u32 {
        self.trace_of_depth(jni, thread, serial, self.depth())
    }

    /// Returns the number of a thread's current trace, with at most `depth` frames.
    pub fn trace_of_depth(&self, jni: &Jni<'_>, thread: Ref<'_>, serial: u32, depth: usize) -> u32 {
        let mut frames = Vec::new();
        match self.jvmti.stack(Some(thread), &mut frames, depth) {
            Ok(()) => self.number(jni, serial, &frames),
            Err(_) => 0,
        }
    }

    /// Returns the ID of an object, assigning one if it has none.
    pub fn object_id(&self, object: Ref<'_>) -> Option<u64> {
        let tag = Tag(self.jvmti.tag(object).ok()?);
        if tag.id() != 0 {
            return Some(tag.id());
        }
        let id = self.ids.next(self.jvmti.object_size(object).ok()?);
        self.jvmti.set_tag(object, tag.with_id(id).0).ok()?;
        Some(id)
    }

    /// Returns the serial number of the current thread, if traces of threads are distinct; otherwise 0.
    pub fn this_thread(&self, jni: &Jni<'_>) -> u32 {
        if !self.options.threads {
            return 0;
        }
        let Ok(thread) = self.jvmti.current_thread(jni) else { return 0 };
        let serial = self.threads.serial(self.jvmti, thread);
        jni.delete(thread);
        serial
    }

    /// Returns the signature of the class of an object.
    pub fn signature_of(&self, jni: &Jni<'_>, object: Ref<'_>) -> String {
        let Some(class) = jni.class_of(object) else { return "Ljava/lang/Object;".to_owned() };
        let signature = self.jvmti.class_signature(class);
        jni.delete(class);
        signature.unwrap_or_else(|_| "Ljava/lang/Object;".to_owned())
    }

    /// Returns the ID of an object; 0 if it has none.
    pub fn known_id(&self, object: Ref<'_>) -> u64 {
        self.jvmti.tag(object).map_or(0, |tag| crate::tags::Tag(tag).id())
    }

    /// Returns the epoch of the next walk that marks the objects it visits.
    pub fn next_epoch(&self) -> Epoch {
        self.tags_objects.store(true, Ordering::Relaxed);
        let mut epoch = lock(&self.epoch);
        *epoch = epoch.next();
        *epoch
    }

    /// Returns the IDs of the classes of fillers, with which garbage collectors of JDK 20 and later replace dead objects, so
    /// that the heap can be walked. JVM TI reports fillers like objects. A reference to one would make G1 report a corrupt
    /// heap, correctly. (Older collectors use `int[]` and `Object`, which cannot be distinguished from other objects.)
    pub fn fillers(&self) -> Vec<u64> {
        const PREFIX: &str = "Ljdk/internal/vm/Filler";
        let is_filler = |signature: &str| signature.trim_start_matches('[').starts_with(PREFIX);
        let all = self.classes.all();
        all.iter().filter(|class| is_filler(&class.signature)).map(|class| class.id).collect()
    }

    /// Returns the ID of the class object of `java.lang.Class`; 0 if it is not registered yet.
    pub fn class_class(&self) -> u64 {
        let all = self.classes.all();
        all.iter().find(|class| class.signature == "Ljava/lang/Class;").map_or(0, |class| class.id)
    }
}
