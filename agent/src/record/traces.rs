//! Stack traces. What a frame says is asked for when it is met for the first time, while its method is on a stack: later its
//! class may be gone.

use std::collections::hash_map::Entry;
use std::hash::Hasher;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};

use rustc_hash::{FxHashMap, FxHasher};

use super::classes::{Class, Classes};
use super::{read, write};
use crate::jvm::{Frame, Jni, Jvmti, MethodId};
use crate::tags::{Ids, MAX_TRACE};

/// Frames of all traces together: some 64 bytes each, in somebody else's process.
const MAX_FRAMES: usize = 1 << 24;

/// The serial number of trace 0: an object that is older than the agent.
pub const FIRST_SERIAL: u32 = 300_000;

/// The line of a frame of a native method.
pub const NATIVE: i32 = -3;

/// What is known of a method.
#[derive(Debug)]
pub struct Method {
    /// Its class.
    pub class: Option<Arc<Class>>,
    /// Its class in Java source form.
    pub class_name: String,
    /// Name.
    pub name: String,
    /// Signature.
    pub signature: String,
    /// Source file.
    pub source: Option<String>,
    is_native: bool,
    /// Bytecode indices at which lines start, ascending, and the lines.
    lines: Vec<(i64, i32)>,
}

impl Method {
    fn new(jvmti: Jvmti, jni: &Jni<'_>, classes: &Classes, ids: &Ids, method: MethodId) -> Option<Self> {
        let (name, signature) = jvmti.method_name(method).ok()?;
        let class = jvmti.method_class(jni, method).ok()?;
        let source = jvmti.source_file(class).ok();
        let known = classes.id_of(jvmti, ids, class).and_then(|id| classes.get(id));
        jni.delete(class);
        let class_name = known.as_ref().map(|class| crate::names::java_class(&class.signature));
        let mut lines = jvmti.lines(method).unwrap_or_default();
        lines.sort_unstable();
        Some(Self {
            class: known,
            class_name: class_name?,
            name,
            signature,
            source,
            is_native: jvmti.is_native(method),
            lines,
        })
    }

    /// The line at a bytecode index; -1 if it is not known, -3 in a native method.
    fn line(&self, location: i64) -> i32 {
        if self.is_native {
            return NATIVE;
        }
        let after = self.lines.partition_point(|(start, _)| *start <= location);
        let line = after.checked_sub(1).and_then(|at| self.lines.get(at)).map_or(-1, |(_, line)| *line);
        if line > 0 { line } else { -1 }
    }

    /// `com.acme.Foo.bar(I)V`.
    pub fn with_signature(&self) -> String {
        format!("{}.{}{}", self.class_name, self.name, self.signature)
    }
}

/// A frame: a method and its line (-1 not known, -3 native).
#[derive(Debug, Clone)]
pub struct TraceFrame {
    /// The method; `None` if the JVM did not say.
    pub method: Option<Arc<Method>>,
    /// Line.
    pub line: i32,
    /// Its number, the same for the same method and line.
    pub number: u32,
}

/// A stack trace.
#[derive(Debug)]
pub struct Trace {
    /// Serial number of its thread; 0 for none.
    pub thread: u32,
    /// Frames, innermost first.
    pub places: Box<[TraceFrame]>,
}

#[derive(Debug, Default)]
struct TraceTable {
    /// Traces with a hash: most have one.
    by_hash: FxHashMap<u64, Vec<u32>>,
    /// By number; what they were made of, and what they say.
    traces: Vec<(Box<[Frame]>, Arc<Trace>)>,
    methods: FxHashMap<MethodId, Option<Arc<Method>>>,
    /// Frames of all traces.
    frames: usize,
    /// Numbers of places: a method and a line.
    places: FxHashMap<(MethodId, i32), u32>,
}

impl TraceTable {
    fn find(&self, hash: u64, thread: u32, frames: &[Frame]) -> Option<u32> {
        self.by_hash.get(&hash)?.iter().copied().find(|number| {
            let trace = self.traces.get(*number as usize);
            trace.is_some_and(|(of, trace)| **of == *frames && trace.thread == thread)
        })
    }

    /// A method and a line.
    fn place(&mut self, id: MethodId, method: Option<Arc<Method>>, line: i32) -> TraceFrame {
        let next = u32::try_from(self.places.len() + 1).unwrap_or(u32::MAX);
        let number = *self.places.entry((id, line)).or_insert(next);
        TraceFrame { method, line, number }
    }

    /// A new trace, and its number.
    fn push(&mut self, hash: u64, thread: u32, frames: &[Frame], places: Box<[TraceFrame]>) -> u32 {
        let number = u32::try_from(self.traces.len()).unwrap_or(0);
        self.frames += frames.len();
        self.traces.push((frames.into(), Arc::new(Trace { thread, places })));
        self.by_hash.entry(hash).or_default().push(number);
        number
    }
}

/// All traces. Number 0 is the empty one of objects that are older than the agent.
#[derive(Debug)]
pub struct Traces {
    table: RwLock<TraceTable>,
    with_lines: bool,
    full: AtomicBool,
}

/// The hash of a stack.
pub fn hash(thread: u32, frames: &[Frame]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u32(thread);
    for frame in frames {
        hasher.write_usize(frame.method.0);
        hasher.write_i64(frame.location);
    }
    hasher.finish()
}

impl Traces {
    /// None yet but number 0.
    pub fn new(with_lines: bool) -> Self {
        let mut table = TraceTable::default();
        // Not in `by_hash`: an empty stack of a thread is another trace.
        table.traces.push((Box::default(), Arc::new(Trace { thread: 0, places: Box::default() })));
        Self { table: RwLock::new(table), with_lines, full: AtomicBool::new(false) }
    }

    /// Forgets all of them.
    pub fn clear(&self) {
        *write(&self.table) = TraceTable::default();
    }

    /// Whether there were more traces than tags have numbers for.
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Traces from this number on.
    pub fn since(&self, number: u32) -> Vec<Arc<Trace>> {
        let table = read(&self.table);
        table.traces.iter().skip(number as usize).map(|(_, trace)| Arc::clone(trace)).collect()
    }

    /// A trace.
    pub fn get(&self, number: u32) -> Option<Arc<Trace>> {
        read(&self.table).traces.get(number as usize).map(|(_, trace)| Arc::clone(trace))
    }

    /// The number of a stack of this thread (0: traces of threads do not differ). `hash` is that of [`hash`].
    pub fn number(
        &self,
        jvmti: Jvmti,
        jni: &Jni<'_>,
        (classes, ids): (&Classes, &Ids),
        thread: u32,
        frames: &[Frame],
        hash: u64,
    ) -> u32 {
        let table = read(&self.table);
        if let Some(number) = table.find(hash, thread, frames) {
            return number;
        }
        if table.traces.len() > MAX_TRACE as usize || table.frames > MAX_FRAMES {
            drop(table);
            self.full.store(true, Ordering::Relaxed);
            return 0;
        }
        let unknown: Vec<_> = frames
            .iter()
            .map(|frame| frame.method)
            .filter(|method| !table.methods.contains_key(method))
            .collect();
        drop(table);
        // The JVM is asked without a lock: it may stop this thread.
        let unknown: Vec<_> = (unknown.into_iter())
            .map(|method| (method, Method::new(jvmti, jni, classes, ids, method).map(Arc::new)))
            .collect();
        let mut table = write(&self.table);
        let table = &mut *table;
        for (method, known) in unknown {
            if let Entry::Vacant(entry) = table.methods.entry(method) {
                entry.insert(known);
            }
        }
        if let Some(number) = table.find(hash, thread, frames) {
            return number;
        }
        let places = (frames.iter())
            .map(|frame| {
                let method = table.methods.get(&frame.method).cloned().flatten();
                let line = match &method {
                    Some(method) if self.with_lines || method.is_native => method.line(frame.location),
                    _ => -1,
                };
                table.place(frame.method, method, line)
            })
            .collect();
        table.push(hash, thread, frames, places)
    }

    /// A trace of methods only, as `cpu=times` has it.
    pub fn of_methods(&self, thread: u32, methods: &[(MethodId, Arc<Method>)]) -> u32 {
        let frames: Vec<_> =
            methods.iter().map(|(method, _)| Frame { method: *method, location: -1 }).collect();
        let hash = hash(thread, &frames);
        let mut table = write(&self.table);
        let table = &mut *table;
        if let Some(number) = table.find(hash, thread, &frames) {
            return number;
        }
        let places =
            (methods.iter()).map(|(id, method)| table.place(*id, Some(Arc::clone(method)), -1)).collect();
        table.push(hash, thread, &frames, places)
    }
}

impl Method {
    /// A method as its class file names it, that the JVM was not asked about.
    pub fn named(class_name: String, name: String, signature: String, source: Option<String>) -> Self {
        Self { class: None, class_name, name, signature, source, is_native: false, lines: Vec::new() }
    }
}
