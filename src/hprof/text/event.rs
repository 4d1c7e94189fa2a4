//! What lines of a text report say.

use super::serials::Serials;
use crate::ObjectId;
use crate::RootKind;
use crate::TraceSerial;

/// What a line says. Names are bytes as they stand in the file.
#[derive(Debug, Clone, PartialEq)]
pub enum TextEvent<'a> {
    /// Nothing: a blank line, a title, part of the header's explanation.
    Nothing,
    /// A line that could not be understood, or the end of a section where it must not end yet. Reading goes on.
    Malformed {
        /// What was expected.
        expected: &'static str,
        /// The line.
        text: &'a [u8],
    },
    /// `JAVA PROFILE 1.0.1, created Sat Nov 21 01:58:24 2026`: a run begins.
    Header {
        /// `JAVA PROFILE 1.0.1`
        format: &'a [u8],
        /// The date, if there is one.
        created: Option<&'a [u8]>,
    },
    /// `THREAD START (obj=50001f82, id = 200004, name="holder", group="main")`
    ThreadStart {
        /// Object id.
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
        /// The phase of the JVM, if the line names one.
        phase: Option<&'a [u8]>,
    },
    /// A frame of the last trace.
    Frame(TextFrame<'a>),
    /// `HEAP DUMP BEGIN (8080 objects, 561520 bytes) Sat Nov 21 01:58:24 2026`
    HeapBegin {
        /// Number of objects.
        objects: u64,
        /// Their bytes.
        bytes: u64,
        /// The date.
        date: &'a [u8],
    },
    /// A ROOT line.
    Root(TextRoot<'a>),
    /// `CLS 50001f90 (name=java.security.ProtectionDomain[], trace=300000)`
    Class {
        /// Object id of the class object.
        object: ObjectId,
        /// Name.
        name: &'a [u8],
        /// Serial number of the trace.
        trace: TraceSerial,
    },
    /// A line below a CLS.
    ClassReference {
        /// What refers.
        what: ClassReference<'a>,
        /// The object referred to.
        object: ObjectId,
    },
    /// An OBJ line.
    Object(TextObject<'a>),
    /// An ARR line.
    Array(TextArray<'a>),
    /// A line below an OBJ: a field that is not null. Also a line below a line that could not be understood.
    Field {
        /// The field's name.
        name: &'a [u8],
        /// The object referred to.
        object: ObjectId,
    },
    /// A line below an ARR: an element that is not null.
    Element {
        /// Its index.
        index: u64,
        /// The object referred to.
        object: ObjectId,
    },
    /// `HEAP DUMP END`
    HeapEnd,
    /// `SITES BEGIN (ordered by live bytes) Sat Nov 21 01:58:24 2026`
    SitesBegin {
        /// Whether the order is by allocated bytes.
        by_allocation: bool,
        /// The date.
        date: &'a [u8],
    },
    /// A row of SITES.
    Site(AllocationSite<'a>),
    /// `SITES END`
    SitesEnd,
    /// The first line of a ranking.
    RankingBegin {
        /// Which one.
        ranking: Ranking,
        /// The total that the line states.
        total: i64,
        /// The date.
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
        /// The state, as it stands there.
        status: &'a [u8],
    },
    /// `MONITOR Ljava/lang/Object;`, `RAW MONITOR "name"(0x806d7d0)`
    Monitor {
        /// Name, of classes as it stands there.
        name: MonitorName<'a>,
        /// Whether nobody owns it.
        unowned: bool,
    },
    /// `owner: thread 8, entry count: 1`
    Owner {
        /// Serial number of the thread; 0 if it is not known.
        thread: u32,
        /// How often it has entered.
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
        /// The method that was called.
        callee: Option<MethodTime<'a>>,
        /// The method that called.
        caller: Option<MethodTime<'a>>,
        /// Milliseconds.
        time: i64,
    },
}

/// A stack frame: `java.lang.String.<init>(String.java:12)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextFrame<'a> {
    /// The class.
    pub class: &'a [u8],
    /// The method.
    pub method: &'a [u8],
    /// The source file.
    pub source: Option<&'a [u8]>,
    /// The line: above 0 a line, -1 unknown, -2 compiled, -3 native, 0 if the frame says nothing of it.
    pub line: i32,
}

/// A root: `ROOT 50000001 (kind=<JNI global ref>, id=1, trace=300000)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextRoot<'a> {
    /// The object.
    pub object: ObjectId,
    /// The kind.
    pub kind: RootKind,
    /// Serial number of the thread.
    pub thread: Option<u32>,
    /// Serial number of the trace.
    pub trace: Option<TraceSerial>,
    /// The frame, from 0.
    pub frame: Option<i64>,
    /// The global reference.
    pub reference: Option<u64>,
    /// Name of a system class.
    pub class: Option<&'a [u8]>,
}

/// What of a class refers to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassReference<'a> {
    /// Its superclass.
    Super,
    /// Its loader.
    Loader,
    /// Its signers.
    Signers,
    /// Its protection domain.
    Domain,
    /// The static field of this name.
    Static(&'a [u8]),
    /// The entry of the constant pool with this number.
    Constant(u64),
}

/// An instance: `OBJ 50001f93 (sz=24, trace=300001, class=Plain$Node@500001ae)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextObject<'a> {
    /// Object id.
    pub object: ObjectId,
    /// Bytes.
    pub size: u64,
    /// Serial number of the trace.
    pub trace: TraceSerial,
    /// Name of the class.
    pub class: &'a [u8],
    /// Object id of the class object.
    pub class_object: Option<ObjectId>,
}

/// An array: `ARR 50000003 (sz=32, trace=300000, nelems=2, elem type=java.lang.Class[]@50000102)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextArray<'a> {
    /// Object id.
    pub object: ObjectId,
    /// Bytes.
    pub size: u64,
    /// Serial number of the trace.
    pub trace: TraceSerial,
    /// Number of elements.
    pub length: u64,
    /// What follows `elem type=`. The agent of JDK 5 to 8 writes the array's class (`char[]`), the one before the
    /// class of its elements.
    pub class: &'a [u8],
    /// The class object that belongs to that name; none for arrays of primitives.
    pub class_object: Option<ObjectId>,
}

/// A row of SITES.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AllocationSite<'a> {
    /// Rank, from 1.
    pub rank: u64,
    /// Part of all bytes.
    pub self_percent: f64,
    /// Part of this site and all before.
    pub accumulated_percent: f64,
    /// Bytes that are alive.
    pub live_bytes: u64,
    /// Objects that are alive.
    pub live_instances: u64,
    /// Bytes ever allocated.
    pub allocated_bytes: u64,
    /// Objects ever allocated.
    pub allocated_instances: u64,
    /// Serial number of the trace.
    pub trace: TraceSerial,
    /// Name of the class.
    pub class: &'a [u8],
}

/// The tables that rank traces.
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
    /// Part of the total.
    pub self_percent: f64,
    /// Part of this row and all before.
    pub accumulated_percent: f64,
    /// Samples, calls or contentions.
    pub count: u64,
    /// Serial number of the trace.
    pub trace: TraceSerial,
    /// The method (`java.lang.String.charAt`), or the monitor; none for `<empty trace>`.
    pub name: Option<&'a [u8]>,
}

/// A monitor's name, as MONITOR DUMP, MONITOR TIME and WAIT lines write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MonitorName<'a> {
    /// A class name or signature (`Ljava/lang/Object;`), or the name of a raw monitor.
    pub name: &'a [u8],
    /// Object id, or the address of a raw monitor.
    pub id: Option<u64>,
    /// Whether it is a monitor of the JVM itself.
    pub raw: bool,
}

/// A WAIT, WAITED, SLEEP or EXIT line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MonitorWait<'a> {
    /// Which of them.
    pub kind: WaitKind,
    /// The monitor; none for SLEEP.
    pub monitor: Option<MonitorName<'a>>,
    /// Timeout, or time waited.
    pub time: Option<i64>,
    /// Serial number of the thread, if the agent knew it.
    pub thread: Option<u32>,
}

/// The kinds of [`MonitorWait`].
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
pub struct MethodTime<'a> {
    /// The class.
    pub class: &'a [u8],
    /// The name.
    pub name: &'a [u8],
    /// The signature.
    pub signature: &'a [u8],
}
