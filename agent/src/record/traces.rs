//! Stack traces. The details of a frame are read when the frame first occurs, while its method is on a stack, because later its
//! class may be unloaded.

use std::collections::hash_map::Entry;
use std::hash::Hasher;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};

use rustc_hash::{FxHashMap, FxHasher};

use super::classes::{Class, Classes};
use super::{read, write};
use crate::jvm::{Frame, Jni, Jvmti, MethodId};
use crate::tags::{Ids, MAX_TRACE};

/// Maximum number of frames of all traces. Each takes about 64 bytes in the program's process.
const MAX_FRAMES: usize = 1 << 24;

/// Serial number of the trace with number 0, the trace of objects older than the agent.
pub const FIRST_SERIAL: u32 = 300_000;

/// Line number that denotes a frame of a native method.
pub const NATIVE: i32 = -3;

/// Names and line table of a method.
#[derive(Debug)]
pub struct Method {
    /// Class that declares the method.
    pub class: Option<Arc<Class>>,
    /// Class name in Java source form.
    pub class_name: String,
    /// Name of the method.
    pub name: String,
    /// Signature of the method.
    pub signature: String,
    /// Source file of the class.
    pub source: Option<String>,
    is_native: bool,
    /// Bytecode indexes at which lines start, in ascending order, with the line numbers.
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

    /// Returns the line number at a bytecode index; -1 if it is unknown, -3 in a native method.
    fn line(&self, location: i64) -> i32 {
        if self.is_native {
            return NATIVE;
        }
        let after = self.lines.partition_point(|(start, _)| *start <= location);
        let line = after.checked_sub(1).and_then(|at| self.lines.get(at)).map_or(-1, |(_, line)| *line);
        if line > 0 { line } else { -1 }
    }

    /// Returns the qualified name with the signature, such as `com.acme.Foo.bar(I)V`.
    pub fn with_signature(&self) -> String {
        format!("{}.{}{}", self.class_name, self.name, self.signature)
    }
}

/// Frame of a trace: a method and its line number (-1 for unknown, -3 for native methods).
#[derive(Debug, Clone)]
pub struct TraceFrame {
    /// Method; `None` if the JVM did not provide it.
    pub method: Option<Arc<Method>>,
    /// Line number; -1 for unknown, -3 for native methods.
    pub line: i32,
    /// Number of the frame. Frames with the same method and line have the same number.
    pub number: u32,
}

/// Stack trace.
#[derive(Debug)]
pub struct Trace {
    /// Serial number of the thread, if traces of threads are distinct; otherwise 0.
    pub thread: u32,
    /// Frames, innermost first.
    pub places: Box<[TraceFrame]>,
}

/// Traces with their lookup tables.
#[derive(Debug, Default)]
struct TraceTable {
    /// Trace numbers by hash; most hashes have only one.
    by_hash: FxHashMap<u64, Vec<u32>>,
    /// Traces by number, with the JVM's frames from which they were created.
    traces: Vec<(Box<[Frame]>, Arc<Trace>)>,
    methods: FxHashMap<MethodId, Option<Arc<Method>>>,
    /// Total number of frames of all traces.
    frames: usize,
    /// Numbers of frames by method and line.
    places: FxHashMap<(MethodId, i32), u32>,
}

impl TraceTable {
    fn find(&self, hash: u64, thread: u32, frames: &[Frame]) -> Option<u32> {
        self.by_hash.get(&hash)?.iter().copied().find(|number| {
            let trace = self.traces.get(*number as usize);
            trace.is_some_and(|(of, trace)| **of == *frames && trace.thread == thread)
        })
    }

    /// Returns the frame for a method and a line, with a new number if it is new.
    fn place(&mut self, id: MethodId, method: Option<Arc<Method>>, line: i32) -> TraceFrame {
        let next = u32::try_from(self.places.len() + 1).unwrap_or(u32::MAX);
        let number = *self.places.entry((id, line)).or_insert(next);
        TraceFrame { method, line, number }
    }

    /// Adds a trace, and returns its number.
    fn push(&mut self, hash: u64, thread: u32, frames: &[Frame], places: Box<[TraceFrame]>) -> u32 {
        let number = u32::try_from(self.traces.len()).unwrap_or(0);
        self.frames += frames.len();
        self.traces.push((frames.into(), Arc::new(Trace { thread, places })));
        self.by_hash.entry(hash).or_default().push(number);
        number
    }
}

/// All traces of a recording. Number 0 is the empty trace, for objects older than the agent.
#[derive(Debug)]
pub struct Traces {
    table: RwLock<TraceTable>,
    with_lines: bool,
    full: AtomicBool,
}

/// Returns the hash of a stack, including the serial number of its thread.
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
    /// Creates a table that contains only the empty trace with number 0.
    pub fn new(with_lines: bool) -> Self {
        let mut table = TraceTable::default();
        // Not added to `by_hash`, as the empty stack of a thread is a different trace.
        table.traces.push((Box::default(), Arc::new(Trace { thread: 0, places: Box::default() })));
        Self { table: RwLock::new(table), with_lines, full: AtomicBool::new(false) }
    }

    /// Removes all traces.
    pub fn clear(&self) {
        *write(&self.table) = TraceTable::default();
    }

    /// Returns `true` if traces were lost because tags cannot contain higher numbers.
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Returns the traces whose numbers are at least `number`.
    pub fn since(&self, number: u32) -> Vec<Arc<Trace>> {
        let table = read(&self.table);
        table.traces.iter().skip(number as usize).map(|(_, trace)| Arc::clone(trace)).collect()
    }

    /// Returns the trace with this number.
    pub fn get(&self, number: u32) -> Option<Arc<Trace>> {
        read(&self.table).traces.get(number as usize).map(|(_, trace)| Arc::clone(trace))
    }

    /// Returns the number of the trace for a stack, adding it if it is new. `thread` is 0 if traces of threads are not
    /// distinct, and `hash` is the stack's [`hash`].
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
        // The JVM is called without holding a lock, because it may suspend this thread.
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

    /// Returns the number of a trace that contains only methods, without lines, for `cpu=times`.
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
    /// Creates a method from the names in its class file, without calling the JVM.
    pub fn from_names(class_name: String, name: String, signature: String, source: Option<String>) -> Self {
        Self { class: None, class_name, name, signature, source, is_native: false, lines: Vec::new() }
    }
}
