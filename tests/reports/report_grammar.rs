//! Texts against a strict grammar of the agent's format: first the agent's own files, so that the grammar is right, then
//! what `convert` writes; and near misses, so that the grammar is strict.

use std::collections::{BTreeMap, BTreeSet};

use crate::grammar::{Counted, EXTENSIONS, Writer, check};
use crate::kit::dump::Dump;
use crate::kit::process::Folder;
use crate::kit::strategies;
use crate::kit::texts::{self, AGENT_BINARIES, AGENT_TEXTS, OTHER_BINARIES, sample};
use hprof_writer::{IdSize, Options, Version, examples};
use proptest::prelude::*;

fn checked(what: &str, text: &[u8], writer: Writer) -> Counted {
    match check(text, writer) {
        Ok(counted) => counted,
        Err(error) => panic!("{what}: {error}"),
    }
}

#[test]
fn the_agents_own_texts_are_as_the_grammar_says() {
    let mut sections = BTreeSet::new();
    for name in AGENT_TEXTS {
        let counted = checked(name, &sample(name), Writer::Agent);
        assert!(counted.extensions.is_empty());
        assert!(counted.calls > 1000 || counted.traces.1 > 50, "{name}: {counted:?}");
        if counted.sections.contains(&"HEAP DUMP") {
            assert!(counted.roots > 1000 && counted.classes > 400 && counted.instances > 5000);
            assert!(counted.arrays > 1000 && counted.references > 10_000, "{name}: {counted:?}");
        }
        let rows = [counted.sites, counted.samples, counted.times, counted.states, counted.calls];
        assert!(counted.instances > 0 || rows.iter().any(|rows| *rows > 3), "{name}: {counted:?}");
        sections.extend(counted.sections);
    }
    let all = ["CPU SAMPLES", "CPU TIME (ms)", "HEAP DUMP", "MONITOR DUMP", "SITES"];
    assert_eq!(sections.into_iter().collect::<Vec<_>>(), all);
}

/// The number of lines that begin with a word.
fn lines(text: &str, word: &str) -> u64 {
    text.lines().filter(|line| line.starts_with(word)).count() as u64
}

/// Checks that all contents were counted: the grammar omitted nothing.
fn check_counts(what: &str, text: &str, counted: &Counted) {
    let objects = [lines(text, "CLS "), lines(text, "OBJ "), lines(text, "ARR ")];
    assert_eq!([counted.classes, counted.instances, counted.arrays], objects, "{what}");
    assert_eq!(counted.roots, lines(text, "ROOT "), "{what}");
    assert_eq!(counted.traces.0, lines(text, "TRACE "), "{what}");
}

#[test]
fn convert_writes_the_agents_dumps_as_the_agent_does() {
    let place = Folder::new();
    for name in AGENT_BINARIES {
        let text = place.convert_sample(name);
        let counted = checked(name, text.as_bytes(), Writer::Convert);
        check_counts(name, &text, &counted);
        // But for classes that the agent does not name in its binaries, and its texts do, all words are its own.
        let unnamed = ["<unknown array class>", "<unknown class>"];
        assert!(counted.extensions.keys().all(|word| unnamed.contains(word)), "{name}: {counted:?}");
        let mut parts = text.replace("<unknown class>", "java.lang.Class");
        while let Some(at) = parts.find("<unknown array class ") {
            let end = at + parts[at..].find('>').unwrap() + 1;
            parts.replace_range(at..end, "java.lang.Class[]");
        }
        let without = Counted { extensions: BTreeMap::new(), ..counted };
        assert_eq!(checked(name, parts.as_bytes(), Writer::Agent), without);
    }
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn convert_writes_dumps_of_hotspot_and_android_as_the_agent_would() {
    let place = Folder::new();
    let mut extensions = BTreeSet::new();
    for name in OTHER_BINARIES {
        let text = place.convert_sample(name);
        let counted = checked(name, text.as_bytes(), Writer::Convert);
        check_counts(name, &text, &counted);
        let objects = counted.classes + counted.instances + counted.arrays;
        assert!(objects > 2000 && counted.stated.0 == objects, "{name}: {counted:?}");
        assert!(counted.sites > 100 && counted.traces.0 > 0, "{name}: {counted:?}");
        extensions.extend(counted.extensions.into_keys());
    }
    // All but these are of generated dumps.
    assert_eq!(
        extensions.into_iter().collect::<Vec<_>>(),
        ["<debugger>", "<finalizing>", "<interned string>"]
    );
}

#[test]
fn convert_writes_every_kind_of_record_as_the_agent_would() {
    let mut extensions = BTreeSet::new();
    for version in Version::ALL {
        for id_size in IdSize::ALL {
            let what = format!("{version:?} {id_size:?}");
            let heap = Dump::written(&examples::every_kind(version, id_size)).open();
            let text = texts::convert(&heap);
            let counted = checked(&what, &text, Writer::Convert);
            check_counts(&what, std::str::from_utf8(&text).unwrap(), &counted);
            assert_eq!(counted.sections, ["HEAP DUMP", "SITES", "CPU SAMPLES"], "{what}");
            extensions.extend(counted.extensions.into_keys());
        }
    }
    for root in &EXTENSIONS[..7] {
        assert!(extensions.contains(root), "{root} is in no text");
    }
    let zoo = Dump::written(&examples::zoo().write(&Options::hotspot())).open();
    checked("zoo", &texts::convert(&zoo), Writer::Convert);
}

proptest! {
    #![proptest_config(crate::kit::strategies::property(60))]

    #[test]
    fn convert_writes_any_dump_as_the_agent_would(arb in strategies::dump()) {
        let (written, _) = arb.write();
        let heap = Dump::written(&written).open();
        let text = texts::convert(&heap);
        let counted = checked("a generated dump", &text, Writer::Convert);
        check_counts("a generated dump", std::str::from_utf8(&text).unwrap(), &counted);
    }
}

/// A text with every line that the agent can write, by the formats of `hprof_io.c`. Names are of letters and digits, so
/// that whatever else stands here has to stand here.
const EVERY_LINE: &str = "JAVA PROFILE 1.0.1, created Thu Sep  7 22:16:49 2017

Words that explain.

--------

THREAD START (obj=5000017c, id = 200002, name=\"watcher\", group=\"system\")
THREAD START (obj=0, id = 200003, name=\"\", group=\"\")
THREAD END (id = 200002)
TRACE 300000:
	<empty>
TRACE 300001: (thread=200003)
	aB.run(Bjava:12)
	aB.<init>(Bjava:Unknown line)
	aB.<clinit>(Bjava:Compiled method)
	aB.f(Bjava:Native method)
TRACE 300002: (from VMINIT phase of JVM)
	<empty>
WAIT: MONITOR LaB;, timeout=0, thread 200003
WAITED: MONITOR LaB;, time_waited=17, <unknown thread>
SLEEP: timeout=5, thread 200003
EXIT: MONITOR LaB;, <unknown thread>
MONITOR DUMP BEGIN
    THREAD 200002, trace 300000, status: ZO
    THREAD 200003, trace 300001, status: S|intr|native|MW
    MONITOR LaB;
	owner: thread 200003, entry count: 2
	waiting to enter: thread 200002, <unknown thread>
	waiting to be notified:
    MONITOR LaB; unowned
	waiting to enter:
	waiting to be notified: thread 200002
MONITOR DUMP END
MONITOR TIME BEGIN (total = 21 ms) Sat Nov 21 01:58:24 2026
rank   self  accum   count trace monitor
   1 75.00% 75.00%       5 300001 aB (Java)
   2 25.00% 100.00%       1 300000 aC (Java)
MONITOR TIME END
HEAP DUMP BEGIN (8079 objects, 561144 bytes) Thu Sep  7 22:16:49 2017
ROOT 50001f83 (kind=<unknown>)
ROOT 50001f83 (kind=<thread>, id=200002, trace=300000)
ROOT 50001f83 (kind=<JNI global ref>, id=a1, trace=300000)
ROOT 50001f83 (kind=<JNI local ref>, thread=200002, frame=-1)
ROOT 50001f83 (kind=<Java stack>, thread=200002, frame=0)
ROOT 50001f83 (kind=<native stack>, thread=200002)
ROOT 50001f83 (kind=<thread block>, thread=200002)
ROOT 50001f83 (kind=<busy monitor>)
ROOT 50000001 (kind=<system class>, name=aB[])
CLS 50000001 (name=aB, trace=300000)
	super		50000002
	loader		50000003
	signers		50000004
	domain		50000005
	static lock	50000006
	static littleEndian	5000288a
	constant pool entry 79	500000fd
OBJ 50001f83 (sz=16, trace=300001, class=aB@50000001)
	seven77		50000001
	eight888	50000001
ARR 50001f90 (sz=24, trace=0, nelems=3, elem type=aB[]@50000007)
	[0]		50001f83
	[2]		50001f83
ARR 50001f91 (sz=24, trace=300001, nelems=3, elem type=char[])
HEAP DUMP END
SITES BEGIN (ordered by live bytes) Sat Nov 21 01:58:24 2026
          percent          live          alloc'ed  stack class
 rank   self  accum     bytes objs     bytes  objs trace name
    1 55.00% 55.00%    120000 5000    120000  5000 300000 aB
    2 45.00% 100.00%      4000 16000 4000000000 123456 300001 byte[]
SITES END
CPU SAMPLES BEGIN (total = 8) Sat Nov 21 01:58:25 2026
rank   self  accum   count trace method
   1 87.50% 87.50%       7 300001 aB.run
   2 12.50% 100.00%       1 300000 <empty trace>
CPU SAMPLES END
CPU TIME (ms) BEGIN (total = -7) Sat Nov 21 01:58:25 2026
rank   self  accum   count trace method
   1  2.50%  2.50%       1 300001 aB.run
CPU TIME (ms) END
";

const OLD: &str = "count callee caller time
8360 aB.fib(I)I aB.fib(I)I 83
1 aB.run(JLaC;D)LaC; <unknown caller> 0
1 <unknown callee> <unknown caller> -2
";

#[test]
fn every_line_of_the_formats_is_understood() {
    let counted = checked("every line", EVERY_LINE.as_bytes(), Writer::Agent);
    assert_eq!((counted.started, counted.ended, counted.traces), (2, 1, (3, 4)));
    assert_eq!((counted.waits, counted.states, counted.monitors), (4, 2, 2));
    assert_eq!((counted.roots, counted.classes, counted.instances, counted.arrays), (9, 1, 1, 2));
    assert_eq!((counted.references, counted.sz), (7 + 2 + 2, 64));
    assert_eq!((counted.sites, counted.samples, counted.times, counted.contended), (2, 2, 1, 2));
    assert_eq!(counted.sections.len(), 6);
    assert_eq!(checked("cpu=old", OLD.as_bytes(), Writer::Agent).calls, 3);
}

/// Whatever character is left out, doubled or exchanged that is no letter or digit, the text is refused.
#[test]
fn no_space_tab_bracket_or_comma_can_change() {
    let mut tried = 0;
    for (text, head) in [(EVERY_LINE, "--------\n\n"), (OLD, "time\n")] {
        let from = text.find(head).unwrap() + head.len();
        for (at, c) in text.char_indices().filter(|(at, c)| *at >= from && !c.is_alphanumeric()) {
            let with = |middle: &str| format!("{}{middle}{}", &text[..at], &text[at + 1..]);
            let mut changed = vec![with(&format!("{c}{c}"))];
            // The last end of a line is another matter; a number without its sign is one too.
            if at + 1 < text.len() && c != '-' {
                changed.push(with(""));
            }
            changed.extend((c == '\t').then(|| with(" ")));
            changed.extend((c == ' ').then(|| with("\t")));
            changed.extend((c == '\n').then(|| with("\r\n")));
            for changed in changed {
                tried += 1;
                let line = text.lines().nth(text[..at].matches('\n').count()).unwrap();
                assert!(check(changed.as_bytes(), Writer::Agent).is_err(), "{c:?} can change in {line:?}");
            }
        }
    }
    assert!(tried > 1500, "{tried}");
}

/// Near misses: each is a line that a careless writer might write.
#[test]
fn near_misses_are_refused() {
    let near = [
        // The head.
        ("PROFILE 1.0.1, created Thu Sep  7", "PROFILE 1.0.1, created Thu Sep 07"),
        ("created Thu Sep  7", "created Thu Sep 7"),
        ("created Thu Sep  7", "created Fri Sep  7"),
        ("PROFILE 1.0.1", "PROFILE 1.0.2"),
        ("\n\n--------\n\n", "\n--------\n\n"),
        ("\n\n--------\n\n", "\n\n--------\n"),
        ("\n\n--------\n\n", "\n\n-------\n\n"),
        // Order.
        ("id = 200003, name=\"\", group=\"\"", "id = 200003, group=\"\", name=\"\""),
        ("(obj=0, id = 200003", "(id = 200003, obj=0"),
        ("THREAD END (id = 200002)", "THREAD END (id=200002)"),
        ("sz=16, trace=300001", "trace=300001, sz=16"),
        ("\tsuper\t\t50000002\n\tloader\t\t50000003", "\tloader\t\t50000003\n\tsuper\t\t50000002"),
        ("\tloader\t\t50000003", "\tloader\t\t50000003\n\tloader\t\t50000003"),
        ("\tstatic lock\t50000006\n", ""),
        ("\t[0]\t\t50001f83\n\t[2]", "\t[2]\t\t50001f83\n\t[0]"),
        ("\t[2]", "\t[3]"),
        ("nelems=3, elem type=char[])\n", "nelems=3, elem type=char[])\n\t[0]\t\t50001f83\n"),
        ("SITES END\n", ""),
        ("SITES END\n", "SITES END\nSITES END\n"),
        // Numbers.
        ("50001f90 (sz", "50001F90 (sz"),
        ("50001f90 (sz", "050001f90 (sz"),
        ("50001f90 (sz", "0x50001f90 (sz"),
        ("50001f90 (sz", "150001f90 (sz"),
        ("sz=16", "sz=016"),
        ("sz=16", "sz=16.0"),
        ("sz=16", "sz=-16"),
        ("\tseven77\t\t50000001", "\tseven77\t\t0"),
        ("\tseven77\t\t", "\tseven77\t"),
        ("\teight888\t", "\teight888\t\t"),
        ("\tsuper\t\t50000002", "\tsuper\t50000002"),
        ("\tstatic lock\t", "\tstatic lock\t\t"),
        ("objects, 561144 bytes", "objects, 561,144 bytes"),
        ("run(Bjava:12)", "run(Bjava:-1)"),
        ("run(Bjava:12)", "run(Bjava:0)"),
        ("run(Bjava:12)", "run(Bjava)"),
        ("Native method", "Native Method"),
        ("\taB.run", "        aB.run"),
        ("TRACE 300002", "TRACE 300001"),
        ("    THREAD 200002", "\tTHREAD 200002"),
        ("status: S|intr", "status: intr|S"),
        // Columns.
        ("    1 55.00%", "   1 55.00%"),
        ("    1 55.00%", "     1 55.00%"),
        ("    1 55.00% 55.00%    120000", "    1 55.00% 55.00%   120000"),
        ("55.00%    120000 5000    120000  5000", "55.00%    120000 5000    120000 5000"),
        ("    2 45.00% 100.00%", "    2 45.00%100.00%"),
        ("    2 45.00%", "    3 45.00%"),
        ("    2 45.00% 100.00%", "    2 45.00% 99.00%"),
        ("16000 4000000000", "16000  4000000000"),
        ("    1 55.00%", "    1 55.0%"),
        ("    1 55.00%", "    1 055.00%"),
        ("    1 55.00%", "    1 55,00%"),
        ("   1 87.50%", "    1 87.50%"),
        ("   1 87.50% 87.50%       7", "   1 87.50% 87.50%        7"),
        ("   1 87.50% 87.50%       7", "   1 87.50% 87.50%       6"),
        ("   1  2.50%  2.50%", "   1 2.50%  2.50%"),
        ("300001 aB.run\n   2", "300001  aB.run\n   2"),
        ("300001 byte[]", "300009 byte[]"),
        ("bytes  objs trace name", "bytes objs trace name"),
        ("accum   count trace method", "accum  count trace method"),
        ("alloc'ed", "allocated"),
        // Words.
        ("<busy monitor>", "<monitor used>"),
        ("<busy monitor>", "<interned string>"),
        ("<unknown>", "<unknown>, trace=0"),
        ("<Java stack>, thread", "<java stack>, thread"),
        ("ordered by live", "ordered by size"),
        ("elem type=aB[]@", "elem type=aB@"),
        ("elem type=char[]", "elem type=char"),
        ("elem type=char[]", "elem type=char[]@50000001"),
        ("class=aB@", "class=<unknown class>@"),
        ("class=aB@", "class=a/B@"),
        ("CPU TIME (ms) END", "CPU SAMPLES END"),
    ];
    for (from, to) in near {
        assert!(EVERY_LINE.contains(from), "{from:?} is not there");
        let changed = EVERY_LINE.replacen(from, to, 1);
        if to.is_empty() && from.contains("static") {
            // A line that may be missing: so that what is tried is not refused for another reason.
            checked(from, changed.as_bytes(), Writer::Agent);
            continue;
        }
        assert!(check(changed.as_bytes(), Writer::Agent).is_err(), "{to:?} instead of {from:?} is taken");
    }
    // A section that stands before its place.
    let (sites, from) =
        (EVERY_LINE.find("SITES BEGIN").unwrap(), EVERY_LINE.find("HEAP DUMP BEGIN").unwrap());
    let end = EVERY_LINE.find("CPU SAMPLES BEGIN").unwrap();
    let swapped =
        [&EVERY_LINE[..from], &EVERY_LINE[sites..end], &EVERY_LINE[from..sites], &EVERY_LINE[end..]].concat();
    assert!(check(swapped.as_bytes(), Writer::Agent).is_err());
    assert!(check(EVERY_LINE.trim_end().as_bytes(), Writer::Agent).is_err(), "the last line has to end");
    // `convert` writes no monitors and no times.
    assert!(check(EVERY_LINE.as_bytes(), Writer::Convert).is_err());
}
