//! Recordings of Flight Recorder with allocations of a class, and sampled objects that were alive.

use crate::flight::{FlightConstant, FlightField, FlightValues, FlightWriter, INT, LONG, TEXT};

/// Samples of a line.
#[derive(Debug, Clone, Copy)]
pub struct SampledLine<'l> {
    /// Class of the method, as the JVM writes it: `com/acme/Cart`.
    pub class: &'l str,
    /// Method.
    pub method: &'l str,
    /// Line.
    pub line: i64,
    /// Number of allocation samples.
    pub samples: usize,
    /// Bytes of each.
    pub weight: i64,
    /// Number of sampled objects that were alive.
    pub old_objects: usize,
    /// Class, method and line of the caller.
    pub caller: Option<(&'l str, &'l str, i64)>,
}

/// A recording of one class.
#[derive(Debug, Clone, Copy)]
pub struct LeakRecording<'l> {
    /// Class of the objects, as the JVM writes it: `[B`.
    pub class: &'l str,
    /// Number of elements of an array.
    pub elements: i64,
    /// Lines that allocate.
    pub lines: &'l [SampledLine<'l>],
    /// Chain from the object to the root: classes, and the fields that reference the previous object. For a static field the
    /// class begins with `static `.
    pub chain: &'l [(&'l str, Option<&'l str>)],
    /// `true` if the last object of the chain references itself.
    pub is_circle: bool,
    /// Command and process ID.
    pub jvm: (&'l str, i64),
    /// Time at which the recording was started, in milliseconds since 1970.
    pub started_ms: i64,
    /// Options of the JVM.
    pub options: &'l str,
    /// Time at which the JVM was started, in milliseconds since 1970; 0 for none.
    pub jvm_started_ms: i64,
}

impl Default for LeakRecording<'_> {
    fn default() -> Self {
        Self {
            class: "[B",
            elements: 1000,
            lines: &[],
            chain: &[("[Ljava/lang/Object;", None), ("static a/B", Some("HELD"))],
            is_circle: false,
            jvm: ("a.B 7", 4711),
            started_ms: 1_234,
            options: "",
            jvm_started_ms: 0,
        }
    }
}

/// Returns a recording with byte arrays of `a.B.run` that were alive.
pub fn old_objects(count: usize) -> FlightWriter {
    let line = SampledLine {
        class: "a/B",
        method: "run",
        line: 12,
        samples: 0,
        weight: 0,
        old_objects: count,
        caller: None,
    };
    LeakRecording { lines: &[line], ..LeakRecording::default() }.write()
}

/// Returns a recording with an object whose chain does not end.
pub fn circular_chain() -> FlightWriter {
    let line = SampledLine {
        class: "a/B",
        method: "run",
        line: 12,
        samples: 0,
        weight: 0,
        old_objects: 1,
        caller: None,
    };
    LeakRecording { lines: &[line], is_circle: true, ..LeakRecording::default() }.write()
}

const SYMBOL: i64 = 30;
const CLASS: i64 = 31;
const METHOD: i64 = 32;
const FRAME: i64 = 34;
const TRACE: i64 = 35;
const OBJECT: i64 = 60;
const REFERENCE: i64 = 61;
const ARRAY: i64 = 62;
const FIELD: i64 = 63;
const ROOT: i64 = 64;
const SYSTEM: i64 = 65;
const KIND: i64 = 66;

fn key(index: usize) -> i64 {
    i64::try_from(index + 1).expect("it is small")
}

/// Adds constants of a type, with keys from 1.
fn add<T>(out: &mut FlightWriter, type_id: i64, items: &[T], write: impl Fn(&T, &mut FlightValues)) {
    let write = &write;
    let constants: Vec<_> =
        items.iter().map(|item| move |body: &mut FlightValues| write(item, body)).collect();
    let constants: Vec<(i64, FlightConstant<'_>)> =
        (0..).zip(&constants).map(|(at, constant)| (key(at), constant as FlightConstant<'_>)).collect();
    out.checkpoint(type_id, &constants);
}

impl LeakRecording<'_> {
    /// Writes the recording.
    pub fn write(&self) -> FlightWriter {
        let mut out = FlightWriter::new(true);
        // Class, method and line of the lines and of their callers.
        let own = self.lines.iter().map(|line| (line.class, line.method, line.line));
        let callers = self.lines.iter().filter_map(|line| line.caller);
        let frames: Vec<(&str, &str, i64)> = own.chain(callers).collect();
        // Classes: of the objects, java.lang.Class, of the chain, of the frames.
        let mut classes = vec![self.class, "java/lang/Class"];
        classes.extend(self.chain.iter().map(|(class, _)| *class));
        classes.extend(frames.iter().map(|(class, ..)| *class));
        let symbols: Vec<&str> =
            classes.iter().copied().chain(frames.iter().map(|(_, method, _)| *method)).collect();
        add(&mut out, SYMBOL, &symbols, |text, body| body.text(text));
        let numbers: Vec<usize> = (0..classes.len()).collect();
        add(&mut out, CLASS, &numbers, |at, body| body.long(key(*at)));
        let methods: Vec<usize> = (0..frames.len()).collect();
        add(&mut out, METHOD, &methods, |at, body| {
            body.long(key(2 + self.chain.len() + at));
            body.long(key(classes.len() + at));
        });
        let lines: Vec<usize> = (0..self.lines.len()).collect();
        add(&mut out, TRACE, &lines, |at, body| {
            let callers = self.lines[..*at].iter().filter(|line| line.caller.is_some()).count();
            let caller = self.lines[*at].caller.map(|_| self.lines.len() + callers);
            body.raw(&[0]);
            body.int(1 + i64::from(caller.is_some()));
            for frame in [Some(*at), caller].into_iter().flatten() {
                body.long(key(frame));
                body.int(frames[frame].2);
            }
        });
        self.write_chain(&mut out);
        for (at, line) in self.lines.iter().enumerate() {
            for _ in 0..line.samples {
                out.event(43, |body| {
                    [101, key(at), 1, line.weight].into_iter().for_each(|value| body.long(value));
                });
            }
            for _ in 0..line.old_objects {
                out.event(70, |body| {
                    [102, key(at), 101, 1].into_iter().for_each(|value| body.long(value));
                    body.int(self.elements);
                    body.long(1);
                });
            }
        }
        out.event(51, |body| {
            body.long(103);
            body.text(self.jvm.0);
            body.long(self.jvm.1);
            body.text(self.options);
            body.long(self.jvm_started_ms);
        });
        out.event(52, |body| [104, 1, self.started_ms].into_iter().for_each(|value| body.long(value)));
        Self::metadata(&mut out);
        out
    }

    /// Writes the objects of the chain: the sampled object is the first.
    fn write_chain(&self, out: &mut FlightWriter) {
        let objects: Vec<usize> = (0..=self.chain.len()).collect();
        add(out, OBJECT, &objects, |at, body| {
            let class = at.checked_sub(1).and_then(|at| self.chain.get(at)).map(|(class, _)| *class);
            let represented = class.and_then(|class| class.strip_prefix("static "));
            body.long(match (at, represented) {
                (0, _) => 1,
                (_, Some(_)) => 2,
                (at, None) => key(at + 1),
            });
            match represented {
                Some(name) => body.text(&format!("Class Name: {}", name.replace('/', "."))),
                None => body.raw(&[0]),
            }
            let is_last = *at == self.chain.len();
            body.long(if is_last && !self.is_circle { 0 } else { key(*at) });
        });
        let links: Vec<usize> = (0..=self.chain.len()).collect();
        add(out, REFERENCE, &links, |at, body| {
            let link = self.chain.get(*at);
            let field = link.and_then(|(_, field)| *field);
            body.long(i64::from(field.is_none()));
            body.long(if field.is_some() { key(*at) } else { 0 });
            body.long(key((*at + 1).min(self.chain.len())));
            body.int(0);
        });
        add(out, ARRAY, &[()], |(), body| {
            body.int(10);
            body.int(3);
        });
        add(out, FIELD, self.chain, |(_, field), body| body.text(field.unwrap_or_default()));
        add(out, ROOT, &[()], |(), body| [1, 1].into_iter().for_each(|key| body.long(key)));
        add(out, SYSTEM, &["Threads"], |text, body| body.text(text));
        add(out, KIND, &["Stack Variable"], |text, body| body.text(text));
    }

    fn metadata(out: &mut FlightWriter) {
        let constant = FlightField::constant;
        out.metadata(&[
            (SYMBOL, "jdk.types.Symbol", &[("string", TEXT)]),
            (CLASS, "java.lang.Class", &[("name", constant(SYMBOL))]),
            (METHOD, "jdk.types.Method", &[("type", constant(CLASS)), ("name", constant(SYMBOL))]),
            (FRAME, "jdk.types.StackFrame", &[("method", constant(METHOD)), ("lineNumber", INT)]),
            (
                TRACE,
                "jdk.types.StackTrace",
                &[("truncated", crate::flight::BOOLEAN), ("frames", FlightField::array(FRAME))],
            ),
            (
                OBJECT,
                "jdk.types.OldObject",
                &[("type", constant(CLASS)), ("description", TEXT), ("referrer", constant(REFERENCE))],
            ),
            (
                REFERENCE,
                "jdk.types.Reference",
                &[
                    ("array", constant(ARRAY)),
                    ("field", constant(FIELD)),
                    ("object", constant(OBJECT)),
                    ("skip", INT),
                ],
            ),
            (ARRAY, "jdk.types.OldObjectArray", &[("size", INT), ("index", INT)]),
            (FIELD, "jdk.types.OldObjectField", &[("name", TEXT)]),
            (ROOT, "jdk.types.OldObjectGcRoot", &[("system", constant(SYSTEM)), ("type", constant(KIND))]),
            (SYSTEM, "jdk.types.OldObjectRootSystem", &[("system", TEXT)]),
            (KIND, "jdk.types.OldObjectRootType", &[("type", TEXT)]),
            (
                43,
                "jdk.ObjectAllocationSample",
                &[
                    ("startTime", LONG),
                    ("stackTrace", constant(TRACE)),
                    ("objectClass", constant(CLASS)),
                    ("weight", LONG),
                ],
            ),
            (
                70,
                "jdk.OldObjectSample",
                &[
                    ("startTime", LONG),
                    ("stackTrace", constant(TRACE)),
                    ("allocationTime", LONG),
                    ("object", constant(OBJECT)),
                    ("arrayElements", INT),
                    ("root", constant(ROOT)),
                ],
            ),
            (
                51,
                "jdk.JVMInformation",
                &[
                    ("startTime", LONG),
                    ("javaArguments", TEXT),
                    ("pid", LONG),
                    ("jvmArguments", TEXT),
                    ("jvmStartTime", LONG),
                ],
            ),
            (52, "jdk.ActiveRecording", &[("startTime", LONG), ("id", LONG), ("recordingStart", LONG)]),
        ]);
    }
}
