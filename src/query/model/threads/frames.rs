//! Stack frames of threads and of roots.

use std::fmt;
use std::sync::Arc;

use super::agent_stacks::RecordedStack;
use hprof_index::Dump;
use hprof_index::model::summary::Summary;
use hprof_index::objects::gc_roots::{GcRoot, Roots};
use hprof_index::stack_records::StackRecords;
use hprof_values::names::java_class_name;
use hprof_values::{TraceSerial, names};

use hprof_base::sorting::SortRows;

/// A stack frame.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Class name in Java source form, if the dump contains it.
    pub class: Option<Arc<str>>,
    /// Method name, if the dump contains it.
    pub method: Option<Arc<str>>,
    /// Source file, if known.
    pub source: Option<Arc<str>>,
    /// Line as stated in the dump: above 0 a line, -2 compiled, -3 native, others unknown.
    pub line: i32,
}

impl Frame {
    /// A frame about which nothing is known.
    pub const UNKNOWN: Self = Self { class: None, method: None, source: None, line: 0 };

    /// Returns whether the method is of a class outside the JDK.
    pub fn is_own(&self) -> bool {
        self.class.as_deref().is_some_and(|class| !names::is_of_jdk(class))
    }

    /// Returns the line number; `None` if it is unknown, or the method is native.
    pub fn line(&self) -> Option<u32> {
        u32::try_from(self.line).ok().filter(|line| *line > 0)
    }

    /// Returns the frame without details that are not shown: two files may encode an unknown line differently.
    pub fn as_shown(&self) -> Self {
        let source = self.source.clone().filter(|source| !source.is_empty());
        match self.line {
            NATIVE => Self { source: None, ..self.clone() },
            line => Self { source, line: line.max(0), ..self.clone() },
        }
    }

    /// Returns class and method: `com.acme.Main.run`.
    pub fn qualified_method(&self) -> String {
        let method = self.method.as_deref().unwrap_or(UNKNOWN_METHOD);
        self.class.as_ref().map_or_else(|| method.to_owned(), |class| format!("{class}.{method}"))
    }
}

/// Line number of a native method.
pub const NATIVE: i32 = -3;

const UNKNOWN_METHOD: &str = "<unknown method>";

/// Formats as Java does: `com.acme.Main.run(Main.java:12)`.
impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.qualified_method())?;
        match (&self.source, self.line) {
            (_, NATIVE) => f.write_str("(Native Method)"),
            (Some(source), 1..) => write!(f, "({source}:{})", self.line),
            (Some(source), _) => write!(f, "({source})"),
            // Flight Recorder records no source files.
            (None, 1..) => write!(f, "(line {})", self.line),
            (None, _) => f.write_str("(Unknown Source)"),
        }
    }
}

/// Reader of stack traces and their frames.
#[derive(Debug)]
pub struct Frames<'a> {
    records: StackRecords<'a>,
    /// Class serial numbers, ascending, with the string IDs of their names.
    classes: Vec<(u32, u64)>,
}

impl<'a> Frames<'a> {
    /// Creates a reader of a dump's traces.
    pub fn new(dump: &Dump<'a>) -> Self {
        Self::with(dump.summary, dump.stack_records())
    }

    /// Creates a reader of traces from a reader of their records.
    pub fn with(summary: &Summary, records: StackRecords<'a>) -> Self {
        // A class that is loaded twice has two serial numbers; of a repeated number the last one counts.
        let loads = summary.loads().iter().rev();
        let mut classes: Vec<(u32, u64)> = loads.map(|load| (load.serial.get(), load.name.get())).collect();
        classes.sort_rows_by_key(|(serial, _)| *serial);
        classes.dedup_by_key(|(serial, _)| *serial);
        Self { records, classes }
    }

    /// Returns the text of a STRING record.
    pub fn text(&self, id: u64) -> Option<String> {
        self.records.text(id)
    }

    /// Returns the class name of a STRING record in Java source form.
    pub fn class_name(&self, id: u64) -> Option<String> {
        self.records.name(id).map(|name| java_class_name(&name))
    }

    /// Returns the frame IDs of a stack trace, innermost first.
    pub fn of_trace(&self, serial: TraceSerial) -> impl Iterator<Item = u64> + use<'a> {
        self.records.trace(serial)
    }

    /// Returns all stacks of the dump.
    pub(super) fn stacks(&self) -> Vec<RecordedStack> {
        let stack = |(trace, thread, has_frames)| RecordedStack { thread, trace, has_frames };
        self.records.traces().map(stack).collect()
    }

    /// Returns the frame with this ID.
    pub fn frame(&self, id: u64) -> Option<Frame> {
        let frame = self.records.frame(id)?;
        let class = self.classes.binary_search_by_key(&frame.class_serial, |(serial, _)| *serial).ok();
        let class = class.and_then(|at| self.class_name(self.classes.get(at)?.1));
        let shared = |name: Option<String>| name.filter(|name| !name.is_empty()).map(Arc::from);
        Some(Frame {
            class: shared(class),
            method: shared(self.records.name(frame.method)),
            source: shared(self.records.name(frame.source)),
            line: frame.line,
        })
    }

    /// Returns the frame of a root, if it has one.
    pub fn of_root(&self, roots: &Roots, root: &GcRoot) -> Option<Frame> {
        let trace = roots.trace_of_thread(root.thread_serial?)?;
        self.frame(self.of_trace(trace).nth(usize::try_from(root.frame?).ok()?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_read_as_java_prints_them() {
        let frame = |source: Option<&str>, line| Frame {
            class: Some("a.B".into()),
            method: Some("run".into()),
            source: source.map(Arc::from),
            line,
        };
        for (source, line, text) in [
            (Some("B.java"), 12, "a.B.run(B.java:12)"),
            (Some("B.java"), -1, "a.B.run(B.java)"),
            (Some("B.java"), -3, "a.B.run(Native Method)"),
            (None, 0, "a.B.run(Unknown Source)"),
        ] {
            assert_eq!(frame(source, line).to_string(), text);
        }
        let unknown = Frame { class: None, method: None, ..frame(None, 5) };
        assert_eq!(unknown.to_string(), "<unknown method>(line 5)");
        assert_eq!((unknown.line(), frame(None, -3).line()), (Some(5), None));
    }
}
