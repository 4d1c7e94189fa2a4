#![allow(clippy::unwrap_used)]

use crate::ObjectId;
use crate::TraceSerial;
use std::io::BufReader;

use super::event::*;
use super::*;
use crate::RootKind;

/// Returns the events of a text, with line numbers; events without a meaning are omitted.
fn each<T>(text: &str, of: impl Fn(TextEvent<'_>) -> T) -> Vec<(u64, T)> {
    let mut input = BufReader::with_capacity(64, text.as_bytes());
    let mut reader = TextReader::new(&mut input);
    let mut out = Vec::new();
    while let Some((line, event)) = reader.next_event().unwrap() {
        if event != TextEvent::Nothing {
            out.push((line, of(event)));
        }
    }
    out
}

/// Returns the events of a text as strings, with line numbers, for comparisons.
fn events(text: &str) -> Vec<(u64, String)> {
    each(text, |event| format!("{event:?}"))
}

/// Returns the numbers of malformed lines, with the expected content.
fn malformed(text: &str) -> Vec<(u64, String)> {
    let all = each(text, |event| match event {
        TextEvent::Malformed { expected, .. } => Some(expected.to_owned()),
        _ => None,
    });
    all.into_iter().filter_map(|(line, expected)| Some((line, expected?))).collect()
}

/// Checks the events of a text without its first lines (the context).
#[track_caller]
fn check(context: &str, text: &str, expected: &[TextEvent<'_>]) {
    let skip = context.lines().count() as u64;
    let found: Vec<String> = events(&format!("{context}{text}"))
        .into_iter()
        .filter(|(line, _)| *line > skip)
        .map(|(_, e)| e)
        .collect();
    let expected: Vec<String> = expected.iter().map(|event| format!("{event:?}")).collect();
    assert_eq!(found, expected, "{text}");
}

const HEAP: &str = "HEAP DUMP BEGIN (2 objects, 80 bytes) Sat Nov 21 01:58:24 2026\n";
const END: TextEvent<'_> = TextEvent::HeapEnd;

#[test]
fn header_and_explanation() {
    let text = "JAVA PROFILE 1.0.1, created Sat Nov 21 01:58:24 2026\n\nTHREAD START\nTRACE      represents\n  - x\n\
                HEAP DUMP BEGIN\n--------\n\nTHREAD END (id = 7)\n";
    let header =
        TextEvent::Header { format: b"JAVA PROFILE 1.0.1", created: Some(b"Sat Nov 21 01:58:24 2026") };
    check("", text, &[header, TextEvent::ThreadEnd { serial: 7 }]);
    // Without dashes, a line that is strictly a record ends the header.
    let text = "JAVA PROFILE 1.0\nCopyright\nTRACE 5:\n\ta.B.c(B.java:1)\n";
    assert_eq!(events(text).len(), 3);
    assert!(malformed(text).is_empty());
    let dateless = TextEvent::Header { format: b"JAVA PROFILE 1.0.1", created: None };
    check("", "JAVA PROFILE 1.0.1, created \n--------\n", &[dateless]);
    assert_eq!(
        malformed("JAVA PROFILE 1.0.1, created x\nTRACE\n"),
        [(3, "a line of dashes that ends the header".to_owned())]
    );
}

#[test]
fn threads() {
    let start = |object, serial, name, group| TextEvent::ThreadStart { object, serial, name, group };
    check(
        "",
        "THREAD START (obj=50001f82, id = 200004, name=\"holder\", group=\"main\")\nTHREAD END (id = 200004)\n",
        &[
            start(ObjectId(0x5000_1f82), 200_004, b"holder", b"main"),
            TextEvent::ThreadEnd { serial: 200_004 },
        ],
    );
    check(
        "",
        "THREAD START (obj=1, id = 2, name=\"say \"hi\", group=\"x\", group=\"\")\r\n",
        &[start(ObjectId(1), 2, b"say \"hi\", group=\"x", b"")],
    );
}

#[test]
fn traces_and_frames() {
    let trace = |serial, thread, phase| TextEvent::Trace { serial, thread, phase };
    let frame = |class, method, source, line| TextEvent::Frame(TextFrame { class, method, source, line });
    check(
        "",
        "TRACE 300000:\n\t<empty>\nTRACE 300001: (thread=200001)\nTRACE 1073: (thread=1) (from VM_START phase of JVM)\n\
         TRACE 2: (from <unknown> phase of JVM)\n",
        &[
            trace(TraceSerial(300_000), 0, None),
            trace(TraceSerial(300_001), 200_001, None),
            trace(TraceSerial(1073), 1, Some(b"VM_START")),
            trace(TraceSerial(2), 0, Some(b"<unknown>")),
        ],
    );
    let frames = [
        (
            "\tjava.lang.String.<init>(String.java:12)",
            frame(b"java.lang.String", b"<init>", Some(b"String.java"), 12),
        ),
        ("\ta.B.c(B.java:Unknown line)", frame(b"a.B", b"c", Some(b"B.java"), -1)),
        ("\ta.B.c(B.java:Compiled method)", frame(b"a.B", b"c", Some(b"B.java"), -2)),
        ("\ta.B.c(B.java:Native method)", frame(b"a.B", b"c", Some(b"B.java"), -3)),
        ("\ta.B.c(Native Method)", frame(b"a.B", b"c", None, -3)),
        ("\ta.B.c(B.java)", frame(b"a.B", b"c", Some(b"B.java"), 0)),
        ("\ta.B.c(Unknown Source)", frame(b"a.B", b"c", None, 0)),
        (
            "\ta.B.<Unknown Method>(<Unknown Source>:Unknown line)",
            frame(b"a.B", b"<Unknown Method>", None, -1),
        ),
        ("\tjava/util/Locale.x(Locale.java:1)", frame(b"java/util/Locale", b"x", Some(b"Locale.java"), 1)),
        ("\tMain.it works (really)(Main.kt:7)", frame(b"Main", b"it works (really)", Some(b"Main.kt"), 7)),
        ("\tMain.m(odd:name:7)", frame(b"Main", b"m", Some(b"odd:name"), 7)),
        ("\tMain.m(odd:name)", frame(b"Main", b"m", Some(b"odd:name"), 0)),
        ("        a.B.c(B.java:5)  ", frame(b"a.B", b"c", Some(b"B.java"), 5)),
        ("a.B.c(B.java:-5)", frame(b"a.B", b"c", Some(b"B.java"), -5)),
    ];
    for (line, event) in frames {
        check("TRACE 1:\n", &format!("{line}\n"), &[event]);
    }
    for line in ["\tnothing", "\tmain(Main.java:1)", "\t.(x:1)", "\ta.b(c", "..."] {
        assert_eq!(malformed(&format!("TRACE 1:\n{line}\n")).len(), 1, "{line}");
    }
}

#[test]
fn roots() {
    let root = |object, kind| TextRoot {
        object,
        kind,
        thread: None,
        trace: None,
        frame: None,
        reference: None,
        class: None,
    };
    let unknown = root(ObjectId(0x5000_01ac), RootKind::Unknown);
    let cases = [
        (
            "ROOT 50000a (kind=<thread>, id=200001, trace=300001)",
            TextRoot {
                thread: Some(200_001),
                trace: Some(TraceSerial(300_001)),
                ..root(ObjectId(0x50_000a), RootKind::ThreadObject)
            },
        ),
        ("ROOT 500001ac (kind=<unknown>)", unknown),
        (
            "ROOT 1 (kind=<JNI global ref>, id=1f, trace=300000)",
            TextRoot {
                reference: Some(0x1f),
                trace: Some(TraceSerial(300_000)),
                ..root(ObjectId(1), RootKind::JniGlobal)
            },
        ),
        (
            "ROOT 1 (kind=<JNI local ref>, thread=7, frame=-1)",
            TextRoot { thread: Some(7), frame: Some(-1), ..root(ObjectId(1), RootKind::JniLocal) },
        ),
        (
            "ROOT 1 (kind=<system class>, name=a.B(, name=x))",
            TextRoot { class: Some(b"a.B(, name=x)"), ..root(ObjectId(1), RootKind::StickyClass) },
        ),
        ("ROOT 1 (kind=<busy monitor>)", root(ObjectId(1), RootKind::MonitorUsed)),
        (
            "ROOT 1 (kind=<thread block>, thread=9)",
            TextRoot { thread: Some(9), ..root(ObjectId(1), RootKind::ThreadBlock) },
        ),
        (
            "ROOT 1 (kind=<Java stack>, thread=9, frame=3)",
            TextRoot { thread: Some(9), frame: Some(3), ..root(ObjectId(1), RootKind::JavaFrame) },
        ),
        (
            "ROOT 1 (kind=<native stack>, thread=9)",
            TextRoot { thread: Some(9), ..root(ObjectId(1), RootKind::NativeStack) },
        ),
        ("ROOT 1 (kind=<interned string>)", root(ObjectId(1), RootKind::InternedString)),
    ];
    for (line, root) in cases {
        check(HEAP, &format!("{line}\nHEAP DUMP END\n"), &[TextEvent::Root(root), END]);
    }
    for line in [
        "ROOT x (kind=<unknown>)",
        "ROOT 1 (kind=<other>)",
        "ROOT 1 (kind=<unknown>",
        "ROOT 1 (kind=<thread>, z=1)",
    ] {
        let found = malformed(&format!("{HEAP}{line}\nHEAP DUMP END\n"));
        assert_eq!(found, [(2, "ROOT id (kind=<KIND>)".to_owned())], "{line}");
    }
}

#[test]
fn classes_objects_and_arrays() {
    check(
        "",
        "HEAP DUMP BEGIN (2 objects, 80 bytes) Sat Nov 21 01:58:24 2026\nHEAP DUMP END\n",
        &[TextEvent::HeapBegin { objects: 2, bytes: 80, date: b"Sat Nov 21 01:58:24 2026" }, END],
    );
    let what = |what, object| TextEvent::ClassReference { what, object };
    check(
        HEAP,
        "CLS 50001f90 (name=a.B[], trace=300000)\n\tsuper\t\t1\n\tloader\t\t2\n\tsigners\t\t3\n\tdomain\t\t4\n\
         \tstatic loader\t5\n\tconstant pool entry 4\t6\n    constant[25]    7\nHEAP DUMP END\n",
        &[
            TextEvent::Class { object: ObjectId(0x5000_1f90), name: b"a.B[]", trace: TraceSerial(300_000) },
            what(ClassReference::Super, ObjectId(1)),
            what(ClassReference::Loader, ObjectId(2)),
            what(ClassReference::Signers, ObjectId(3)),
            what(ClassReference::Domain, ObjectId(4)),
            what(ClassReference::Static(b"loader"), ObjectId(5)),
            what(ClassReference::Constant(4), ObjectId(6)),
            what(ClassReference::Constant(25), ObjectId(7)),
            END,
        ],
    );
    let object = TextObject {
        object: ObjectId(0xa),
        size: 24,
        trace: TraceSerial(1),
        class: b"a@b.Node",
        class_object: Some(ObjectId(0xae)),
    };
    check(
        HEAP,
        "OBJ a (sz=24, trace=1, class=a@b.Node@ae)\n\tnext\t\t5\n\tinheritedAccess\t0x6\n\tsuper\t\t7\n\
         OBJ a (sz=24, trace=1, class=Gone)\nHEAP DUMP END\n",
        &[
            TextEvent::Object(object),
            TextEvent::Field { name: b"next", object: ObjectId(5) },
            TextEvent::Field { name: b"inheritedAccess", object: ObjectId(6) },
            TextEvent::Field { name: b"super", object: ObjectId(7) },
            TextEvent::Object(TextObject { class: b"Gone", class_object: None, ..object }),
            END,
        ],
    );
    let array = TextArray {
        object: ObjectId(3),
        size: 32,
        trace: TraceSerial(0),
        length: 2,
        class: b"a.B[]",
        class_object: Some(ObjectId(0x102)),
    };
    check(
        HEAP,
        "ARR 3 (sz=32, trace=0, nelems=2, elem type=a.B[]@102)\n\t[0]\t\t5\n  [1]  6\n\
         ARR 3 (sz=32, trace=0, nelems=2, elem type=char [])\nHEAP DUMP END\n",
        &[
            TextEvent::Array(array),
            TextEvent::Element { index: 0, object: ObjectId(5) },
            TextEvent::Element { index: 1, object: ObjectId(6) },
            TextEvent::Array(TextArray { class: b"char []", class_object: None, ..array }),
            END,
        ],
    );
}

#[test]
fn a_bad_line_of_a_heap_dump_loses_only_itself() {
    for (line, expected) in [
        ("OBJ a (sz=x, trace=1, class=B@1)", "OBJ id (sz=N, trace=N, class=NAME@id)"),
        ("OBJ a (sz=1, trace=1, class=B@1", "OBJ id (sz=N, trace=N, class=NAME@id)"),
        ("ARR a (sz=1, trace=1)", "ARR id (sz=N, trace=N, nelems=N, elem type=NAME)"),
        ("CLS a (name=B)", "CLS id (name=NAME, trace=N)"),
        ("garbage", "a line of a HEAP DUMP"),
        ("...", "a line of a HEAP DUMP"),
        ("\tfield", "a field and an object ID"),
        ("\tfield\tzzz", "a field and an object ID"),
    ] {
        let text = format!(
            "{HEAP}OBJ a (sz=1, trace=1, class=B@1)\n{line}\n\tnext\t5\nROOT 1 (kind=<unknown>)\nHEAP DUMP END\n"
        );
        assert_eq!(malformed(&text), [(3, expected.to_owned())], "{line}");
        assert_eq!(events(&text).len(), 6);
    }
    for (line, expected) in [
        ("ARR 3 (sz=1, trace=0, nelems=2, elem type=a.B[]@1)\n\t[0\t5", "[index] and an object ID"),
        ("CLS 1 (name=a, trace=1)\n\tsomething\t5", "a reference from a class and an object ID"),
        ("ROOT 1 (kind=<unknown>)\n\tnext\t5", "CLS, OBJ or ARR"),
    ] {
        let text = format!("{HEAP}{line}\nHEAP DUMP END\n");
        assert_eq!(malformed(&text), [(3, expected.to_owned())], "{line}");
    }
    // Lines of a class that cannot be parsed must not be attributed to the one before.
    let text = format!("{HEAP}CLS 1 (name=a, trace=1)\nCLS x\n\tloader\t5\nHEAP DUMP END\n");
    assert!(events(&text)[3].1.starts_with("Field"));
}

#[test]
fn sites() {
    check(
        "",
        "SITES BEGIN (ordered by live bytes) Sat Nov 21 01:58:24 2026\n\
         \x20         percent          live          alloc'ed  stack class\n\
         \x20rank   self  accum     bytes objs     bytes  objs trace name\n\
         \x20   1 21.39% 21.39%    120000 5000    130000  5001 300575 Plain$Node\n\
         100000 100.00% 100.00% 123456789012 12345678901 123456789012 12345678901 4294967295 char []\n\
         SITES END\nSITES BEGIN (ordered by allocated bytes) x\nSITES END\n",
        &[
            TextEvent::SitesBegin { by_allocation: false, date: b"Sat Nov 21 01:58:24 2026" },
            TextEvent::Site(AllocationSite {
                rank: 1,
                self_percent: 21.39,
                accumulated_percent: 21.39,
                live_bytes: 120_000,
                live_instances: 5000,
                allocated_bytes: 130_000,
                allocated_instances: 5001,
                trace: TraceSerial(300_575),
                class: b"Plain$Node",
            }),
            TextEvent::Site(AllocationSite {
                rank: 100_000,
                self_percent: 100.0,
                accumulated_percent: 100.0,
                live_bytes: 123_456_789_012,
                live_instances: 12_345_678_901,
                allocated_bytes: 123_456_789_012,
                allocated_instances: 12_345_678_901,
                trace: TraceSerial(u32::MAX),
                class: b"char []",
            }),
            TextEvent::SitesEnd,
            TextEvent::SitesBegin { by_allocation: true, date: b"x" },
            TextEvent::SitesEnd,
        ],
    );
    let begin = "SITES BEGIN (ordered by live bytes) x\n";
    for line in ["1 2% 3% 4 5 6 7 8", "1 2 3% 4 5 6 7 8 a.B", "...", "1 2% 3% 4 5 6 7 99999999999 a.B"] {
        let expected = "rank self% accum% bytes objs bytes objs trace class".to_owned();
        assert_eq!(malformed(&format!("{begin}{line}\nSITES END\n")), [(2, expected)], "{line}");
    }
}

#[test]
fn rankings() {
    let row = |rank, percent: (f64, f64), count, trace, name| {
        let (self_percent, accumulated_percent) = percent;
        TextEvent::Row(CpuRow { rank, self_percent, accumulated_percent, count, trace, name })
    };
    let begin = |ranking, total| TextEvent::RankingBegin { ranking, total, date: b"x" };
    check(
        "",
        "CPU SAMPLES BEGIN (total = 981) x\nrank   self  accum   count trace method\n\
         \x20  1  0.82%  0.82%       8 301000 java.lang.ClassLoader.defineClass1\n\
         \x20  2 100.00% 100.00% 12345678 301000 <empty trace>\nCPU SAMPLES END\n",
        &[
            begin(Ranking::Samples, 981),
            row(1, (0.82, 0.82), 8, TraceSerial(301_000), Some(b"java.lang.ClassLoader.defineClass1")),
            row(2, (100.0, 100.0), 12_345_678, TraceSerial(301_000), None),
            TextEvent::RankingEnd(Ranking::Samples),
        ],
    );
    check(
        "",
        "CPU TIME (ms) BEGIN (total = -5) x\nCPU TIME (ms) END\nMONITOR TIME BEGIN (total = 0 ms) x\nMONITOR TIME END\n",
        &[
            begin(Ranking::Times, -5),
            TextEvent::RankingEnd(Ranking::Times),
            begin(Ranking::Contention, 0),
            TextEvent::RankingEnd(Ranking::Contention),
        ],
    );
    // Format of Android.
    check(
        "CPU SAMPLES BEGIN (total = 826) Wed Jul 21 12:03:46 2010\n",
        "   1 65.62% 65.62%     542   302 java.lang.Long.parseLong\nCPU SAMPLES END\n",
        &[
            row(1, (65.62, 65.62), 542, TraceSerial(302), Some(b"java.lang.Long.parseLong")),
            TextEvent::RankingEnd(Ranking::Samples),
        ],
    );
    let text = "CPU SAMPLES BEGIN (total = 1) x\n1 2% 3% 4\n...\nCPU TIME (ms) END\nCPU SAMPLES END\n";
    let lines: Vec<u64> = malformed(text).into_iter().map(|(line, _)| line).collect();
    assert_eq!(lines, [2, 3, 4]);
}

#[test]
fn names_of_monitors_in_rows() {
    let name = |name, id, raw| MonitorName { name, id, raw };
    for (text, expected) in [
        (&b"com.acme.Lock (Java)"[..], name(&b"com.acme.Lock"[..], None, false)),
        (b"Lcom/acme/Lock;(811bd50) (Java)", name(b"Lcom/acme/Lock;", Some(0x811_bd50), false)),
        (b"\"Monitor Cache lock\"(0x8058c50) (Raw)", name(b"Monitor Cache lock", Some(0x805_8c50), true)),
        (b"com.acme.Lock", name(b"com.acme.Lock", None, false)),
        (b"(Java)", name(b"(Java)", None, false)),
    ] {
        assert_eq!(MonitorName::of_row(text), expected);
    }
}

#[test]
fn monitor_dumps() {
    let text = "MONITOR DUMP BEGIN\n    THREAD 200001, trace 300000, status: S|intr|MW\n  THREAD 8, trace 1, status: R\n\
                \x20   MONITOR Ljava/lang/Object;\n\towner: thread 200005, entry count: 2\n\
                \twaiting to enter: thread 1, <unknown thread>, thread 3\n\twaiting to be notified:\n\
                \x20   MONITOR [B unowned\n  MONITOR java/lang/ref/Reference$Lock(811bd50) unowned\n\
                \twaiting to be notified: thread 2\n  RAW MONITOR \"_hprof (lock)\"(0x806d7d0)\n\
                \towner: <unknown thread>, entry count: 1\nMONITOR DUMP END\n";
    let found = each(text, |event| match event {
        TextEvent::ThreadState { thread, trace, status } => {
            format!("{thread} {trace} {}", String::from_utf8_lossy(status))
        }
        TextEvent::Monitor { name, unowned } => {
            format!("{} {:x?} {} {unowned}", String::from_utf8_lossy(name.name), name.id, name.raw)
        }
        TextEvent::Owner { thread, entries } => format!("owner {thread} {entries}"),
        TextEvent::WaitingToEnter(threads) => format!("enter {:?}", threads.collect::<Vec<_>>()),
        TextEvent::WaitingToBeNotified(threads) => format!("notify {:?}", threads.collect::<Vec<_>>()),
        other => format!("{other:?}"),
    });
    let found: Vec<String> = found.into_iter().map(|(_, text)| text).collect();
    assert_eq!(
        found,
        [
            "MonitorDumpBegin",
            "200001 300000 S|intr|MW",
            "8 1 R",
            "Ljava/lang/Object; None false false",
            "owner 200005 2",
            "enter [1, 0, 3]",
            "notify []",
            "[B None false true",
            "java/lang/ref/Reference$Lock Some(811bd50) false true",
            "notify [2]",
            "_hprof (lock) Some(806d7d0) true false",
            "owner 0 1",
            "MonitorDumpEnd",
        ]
    );
    for (line, expected) in [
        ("    THREAD x", "THREAD N, trace N, status: STATUS"),
        ("    MONITOR ", "MONITOR or RAW MONITOR and its name"),
        ("\towner: me", "owner: thread N, entry count: N"),
        ("\twaiting to enter: thread x", "waiting to enter: or waiting to be notified: and threads"),
        ("...", "waiting to enter: or waiting to be notified: and threads"),
    ] {
        let text = format!("MONITOR DUMP BEGIN\n{line}\n  THREAD 1, trace 1, status: R\nMONITOR DUMP END\n");
        assert_eq!(malformed(&text), [(2, expected.to_owned())], "{line}");
        assert_eq!(events(&text).len(), 4);
    }
    // The owner of a monitor that cannot be parsed is not the owner of the one before.
    let text = "MONITOR DUMP BEGIN\n MONITOR a.B\n MONITOR\n\towner: thread 1, entry count: 1\n MONITOR a.C\nMONITOR DUMP END\n";
    assert_eq!(malformed(text).len(), 1);
    assert_eq!(events(text).len(), 5);
}

#[test]
fn waiting() {
    let object = MonitorName { name: b"Ljava/lang/Object;", id: None, raw: false };
    let wait = |kind, monitor, time, thread| TextEvent::Wait(MonitorWait { kind, monitor, time, thread });
    check(
        "",
        "WAIT: MONITOR Ljava/lang/Object;, timeout=0, thread 200002\n\
         WAITED: MONITOR Ljava/lang/Object;, time_waited=5, <unknown thread>\n\
         SLEEP: timeout=100, thread 7\nSLEEP: timeout=-1, <unknown thread>\nEXIT: MONITOR Ljava/lang/Object;, thread 7\n",
        &[
            wait(WaitKind::Wait, Some(object), Some(0), Some(200_002)),
            wait(WaitKind::Waited, Some(object), Some(5), None),
            wait(WaitKind::Sleep, None, Some(100), Some(7)),
            wait(WaitKind::Sleep, None, Some(-1), None),
            wait(WaitKind::Exit, Some(object), None, Some(7)),
        ],
    );
    for line in [
        "WAIT: MONITOR a, thread 1",
        "SLEEP: x timeout=1, thread 1",
        "EXIT: a, thread 1",
        "WAITED: MONITOR a, time_waited=x, thread 1",
    ] {
        assert_eq!(malformed(&format!("{line}\n")), [(1, "the first line of a record".to_owned())], "{line}");
    }
}

#[test]
fn old_calls() {
    let method = |class, name, signature| Some(MethodSignature { class, name, signature });
    let call = |count, callee, caller, time| TextEvent::Call { count, callee, caller, time };
    check(
        "",
        "count callee caller time\n8360 Plain.fib(I)I Plain.fib(I)I 83\n1 <unknown callee> <unknown caller> -7\n\
         2 a/B.it works([[Ljava/lang/String;J)[B a/C.<init>()V 0\n3 a.B.c()La/D; <unknown caller> 1\n",
        &[
            TextEvent::CallsBegin,
            call(8360, method(b"Plain", b"fib", b"(I)I"), method(b"Plain", b"fib", b"(I)I"), 83),
            call(1, None, None, -7),
            call(
                2,
                method(b"a/B", b"it works", b"([[Ljava/lang/String;J)[B"),
                method(b"a/C", b"<init>", b"()V"),
                0,
            ),
            call(3, method(b"a.B", b"c", b"()La/D;"), None, 1),
        ],
    );
    for line in [
        "8360 Plain.fib(I)I 83",
        "x a.b()V c.d()V 1",
        "1 a.b()V c.d()V",
        "1 a.b()Q c.d()V 1",
        "sig count bytes",
    ] {
        let found = malformed(&format!("count callee caller time\n{line}\n"));
        assert_eq!(found, [(2, "count callee caller time".to_owned())], "{line}");
    }
}

#[test]
fn cut_sections_say_so() {
    let next = "TRACE 1:\n\ta.B.c(B.java:1)\n";
    for (begin, end) in [
        (HEAP, "HEAP DUMP END"),
        ("SITES BEGIN (ordered by live bytes) x\n", "SITES END"),
        ("CPU SAMPLES BEGIN (total = 1) x\n", "CPU SAMPLES END"),
        ("CPU TIME (ms) BEGIN (total = 1) x\n", "CPU TIME (ms) END"),
        ("MONITOR TIME BEGIN (total = 1 ms) x\n", "MONITOR TIME END"),
        ("MONITOR DUMP BEGIN\n", "MONITOR DUMP END"),
    ] {
        assert_eq!(malformed(begin), [(2, end.to_owned())]);
        let text = format!("{begin}{next}");
        assert_eq!(malformed(&text), [(2, end.to_owned())]);
        assert_eq!(events(&text).len(), 4);
        // Another thread of the JVM may write between the lines.
        let text = format!("{begin}THREAD END (id = 1)\n{end}\n");
        assert!(malformed(&text).is_empty());
    }
}

#[test]
fn frames_of_a_lost_trace_are_lost() {
    let text = "TRACE 1:\n\ta.B.c(B.java:1)\nTRACE x:\n\ta.B.d(B.java:1)\nTRACE 3:\n\ta.B.e(B.java:1)\n";
    assert_eq!(malformed(text), [(3, "class.method(source:line)".to_owned())]);
    assert_eq!(events(text).len(), 5);
    assert_eq!(malformed("TRACE x:\n\ta.B.d(B.java:1)\nrubbish\n").len(), 2);
}

#[test]
fn a_line_that_is_too_long_is_not_held() {
    let long = "x".repeat(3 << 20);
    let text = format!("TRACE 1:\n\t{long}.m(X:1)\n\ta.B.c(B.java:1)\n");
    assert_eq!(malformed(&text), [(2, "a line of at most 1 MiB".to_owned())]);
    assert_eq!(events(&text).len(), 3);
}
