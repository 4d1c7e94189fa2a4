//! Events: the contents of the lines of a text report.

use super::serials::Serials;
use crate::ObjectId;
use crate::RootKind;
use crate::TraceSerial;

/// Content of a line. Names are bytes as in the file.
#[derive(Debug, Clone, PartialEq)]
pub enum TextEvent<'a> {
    /// No content: a blank line, a title, part of the header's explanation.
    Nothing,
    /// A line that cannot be parsed, or the premature end of a section. Parsing continues.
    Malformed {
        /// Expected content.
        expected: &'static str,
        /// The line.
        text: &'a [u8],
    },
    /// `JAVA PROFILE 1.0.1, created Sat Nov 21 01:58:24 2026`: start of a run.
    Header {
        /// `JAVA PROFILE 1.0.1`
        format: &'a [u8],
        /// Date, if there is one.
        created: Option<&'a [u8]>,
    },
    /// `THREAD START (obj=50001f82, id = 200004, name="holder", group="main")`
    ThreadStart {
        /// Object ID.
        object: ObjectId,
        /// Serial number.
        serial: u32,
        /// Name.
        name: &'a [u8],
        /// Name of the group.
        group: &'a [u8],
    },
    /// `THREAD END (id = 200004)`
    ThreadEnd {
        /// Serial number.
        serial: u32,
    },
    /// `TRACE 300001: (thread=200001)`
    Trace {
        /// Serial number.
        serial: TraceSerial,
        /// Serial number of the thread, 0 for none.
        thread: u32,
        /// Phase of the JVM, if stated.
        phase: Option<&'a [u8]>,
    },
    /// A frame of the last trace.
    Frame(TextFrame<'a>),
    /// `HEAP DUMP BEGIN (8080 objects, 561520 bytes) Sat Nov 21 01:58:24 2026`
    HeapBegin {
        /// Number of objects.
        objects: u64,
        /// Their total size in bytes.
        bytes: u64,
        /// Date.
        date: &'a [u8],
    },
    /// A ROOT line.
    Root(TextRoot<'a>),
    /// `CLS 50001f90 (name=java.security.ProtectionDomain[], trace=300000)`
    Class {
        /// Object ID of the class object.
        object: ObjectId,
        /// Name.
        name: &'a [u8],
        /// Serial number of the trace.
        trace: TraceSerial,
    },
    /// A line below a CLS.
    ClassReference {
        /// Kind of the reference.
        what: ClassReference<'a>,
        /// Referenced object.
        object: ObjectId,
    },
    /// An OBJ line.
    Object(TextObject<'a>),
    /// An ARR line.
    Array(TextArray<'a>),
    /// A line below an OBJ: a field that is not null. Also a line below a line that cannot be parsed.
    Field {
        /// Name of the field.
        name: &'a [u8],
        /// Referenced object.
        object: ObjectId,
    },
    /// A line below an ARR: an element that is not null.
    Element {
        /// Index of the element.
        index: u64,
        /// Referenced object.
        object: ObjectId,
    },
    /// `HEAP DUMP END`
    HeapEnd,
    /// `SITES BEGIN (ordered by live bytes) Sat Nov 21 01:58:24 2026`
    SitesBegin {
        /// `true` if the sites are ordered by allocated bytes.
        by_allocation: bool,
        /// Date.
        date: &'a [u8],
    },
    /// A row of SITES.
    Site(AllocationSite<'a>),
    /// `SITES END`
    SitesEnd,
    /// The first line of a ranking.
    RankingBegin {
        /// Kind of the ranking.
        ranking: Ranking,
        /// Stated total.
        total: i64,
        /// Date.
        date: &'a [u8],
    },
    /// A row of a ranking.
    Row(CpuRow<'a>),
    /// The last line of a ranking.
    RankingEnd(Ranking),
    /// `MONITOR DUMP BEGIN`
    MonitorDumpBegin,
    /// `THREAD 200001, trace 300000, status: ZO`
    ThreadState {
        /// Serial number of the thread.
        thread: u32,
        /// Serial number of the trace.
        trace: TraceSerial,
        /// State, as in the file.
        status: &'a [u8],
    },
    /// `MONITOR Ljava/lang/Object;`, `RAW MONITOR "name"(0x806d7d0)`
    Monitor {
        /// Name; class names as in the file.
        name: MonitorName<'a>,
        /// `true` if it has no owner.
        unowned: bool,
    },
    /// `owner: thread 8, entry count: 1`
    Owner {
        /// Serial number of the thread; 0 if unknown.
        thread: u32,
        /// Number of times that the thread has entered.
        entries: u32,
    },
    /// `waiting to enter: thread 3, thread 4`
    WaitingToEnter(Serials<'a>),
    /// `waiting to be notified: thread 2`
    WaitingToBeNotified(Serials<'a>),
    /// `MONITOR DUMP END`
    MonitorDumpEnd,
    /// A WAIT, WAITED, SLEEP or EXIT line.
    Wait(MonitorWait<'a>),
    /// `count callee caller time`: the rows of `cpu=old` follow.
    CallsBegin,
    /// A row of `cpu=old`.
    Call {
        /// Number of calls.
        count: u64,
        /// Called method.
        callee: Option<MethodSignature<'a>>,
        /// Calling method.
        caller: Option<MethodSignature<'a>>,
        /// Time in milliseconds.
        time: i64,
    },
}

/// A stack frame: `java.lang.String.<init>(String.java:12)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextFrame<'a> {
    /// Class name.
    pub class: &'a [u8],
    /// Method name.
    pub method: &'a [u8],
    /// Source file.
    pub source: Option<&'a [u8]>,
    /// Line number if positive; -1 unknown, -2 compiled, -3 native, 0 not stated.
    pub line: i32,
}

/// A root: `ROOT 50000001 (kind=<JNI global ref>, id=1, trace=300000)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextRoot<'a> {
    /// Object ID.
    pub object: ObjectId,
    /// Kind of the root.
    pub kind: RootKind,
    /// Serial number of the thread.
    pub thread: Option<u32>,
    /// Serial number of the trace.
    pub trace: Option<TraceSerial>,
    /// Frame number, from 0.
    pub frame: Option<i64>,
    /// ID of the global reference.
    pub reference: Option<u64>,
    /// Name of a system class.
    pub class: Option<&'a [u8]>,
}

/// Kind of a class object's reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassReference<'a> {
    /// Superclass.
    Super,
    /// Class loader.
    Loader,
    /// Signers.
    Signers,
    /// Protection domain.
    Domain,
    /// Static field of this name.
    Static(&'a [u8]),
    /// Constant-pool entry of this index.
    Constant(u64),
}

/// An instance: `OBJ 50001f93 (sz=24, trace=300001, class=Plain$Node@500001ae)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextObject<'a> {
    /// Object ID.
    pub object: ObjectId,
    /// Size in bytes.
    pub size: u64,
    /// Serial number of the trace.
    pub trace: TraceSerial,
    /// Name of the class.
    pub class: &'a [u8],
    /// Object ID of the class object.
    pub class_object: Option<ObjectId>,
}

/// An array: `ARR 50000003 (sz=32, trace=300000, nelems=2, elem type=java.lang.Class[]@50000102)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextArray<'a> {
    /// Object ID.
    pub object: ObjectId,
    /// Size in bytes.
    pub size: u64,
    /// Serial number of the trace.
    pub trace: TraceSerial,
    /// Number of elements.
    pub length: u64,
    /// Text after `elem type=`. The agent of JDK 5 to 8 writes the array's class (`char[]`), the one
    /// before the class of its elements.
    pub class: &'a [u8],
    /// Class object for that name; `None` for arrays of primitives.
    pub class_object: Option<ObjectId>,
}

/// A row of SITES.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AllocationSite<'a> {
    /// Rank, from 1.
    pub rank: u64,
    /// Percentage of all bytes.
    pub self_percent: f64,
    /// Accumulated percentage of this site and all before it.
    pub accumulated_percent: f64,
    /// Live bytes.
    pub live_bytes: u64,
    /// Live objects.
    pub live_instances: u64,
    /// Allocated bytes.
    pub allocated_bytes: u64,
    /// Allocated objects.
    pub allocated_instances: u64,
    /// Serial number of the trace.
    pub trace: TraceSerial,
    /// Name of the class.
    pub class: &'a [u8],
}

/// Tables that rank traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ranking {
    /// CPU SAMPLES.
    Samples,
    /// CPU TIME (ms).
    Times,
    /// MONITOR TIME.
    Contention,
}

/// A row of a ranking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuRow<'a> {
    /// Rank, from 1.
    pub rank: u64,
    /// Percentage of the total.
    pub self_percent: f64,
    /// Accumulated percentage of this row and all before it.
    pub accumulated_percent: f64,
    /// Number of samples, calls or contentions.
    pub count: u64,
    /// Serial number of the trace.
    pub trace: TraceSerial,
    /// Method (`java.lang.String.charAt`) or monitor; `None` for `<empty trace>`.
    pub name: Option<&'a [u8]>,
}

/// Name of a monitor in MONITOR DUMP, MONITOR TIME and WAIT lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MonitorName<'a> {
    /// A class name or signature (`Ljava/lang/Object;`), or the name of a raw monitor.
    pub name: &'a [u8],
    /// Object ID, or the address of a raw monitor.
    pub id: Option<u64>,
    /// `true` for a monitor of the JVM itself.
    pub raw: bool,
}

/// A WAIT, WAITED, SLEEP or EXIT line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MonitorWait<'a> {
    /// Kind of the line.
    pub kind: WaitKind,
    /// Monitor; `None` for SLEEP.
    pub monitor: Option<MonitorName<'a>>,
    /// Timeout, or time waited.
    pub time: Option<i64>,
    /// Serial number of the thread, if the agent knew it.
    pub thread: Option<u32>,
}

/// Kind of a [`MonitorWait`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitKind {
    /// `WAIT: MONITOR Ljava/lang/Object;, timeout=0, thread 200002`
    Wait,
    /// `WAITED: MONITOR Ljava/lang/Object;, time_waited=5, thread 200002`
    Waited,
    /// `SLEEP: timeout=100, thread 200002`
    Sleep,
    /// `EXIT: MONITOR Ljava/lang/Object;, thread 200002`
    Exit,
}

/// A method with its signature: `Plain.fib(I)I`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodSignature<'a> {
    /// Class name.
    pub class: &'a [u8],
    /// Method name.
    pub name: &'a [u8],
    /// Signature.
    pub signature: &'a [u8],
}
