//! Text reports of the HPROF agent: what is read of them against what a naive search for words counts; cut, damaged and
//! hostile texts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::agent_texts::{ALL, JVMPI, Texts, samples};
use crate::kit::mutate::{Numbers, WORDS};
use crate::kit::texts::sample;
use hprof_cli::{ObjectId, TraceSerial};
use hprof_input::file::TextFile;
use hprof_query::recordings::profile::text::show;
use hprof_query::recordings::profile::text::{TextReport, read, resolve_loaders};
use hprof_query::recordings::profile::{Origin, WaitKind};

/// All texts of the agent.
fn real_texts() -> Vec<PathBuf> {
    let mut texts = Vec::new();
    for folder in ["agent", "public"] {
        for entry in std::fs::read_dir(samples().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.to_string_lossy().into_owned();
            if name.contains(".txt") {
                texts.push(path);
            }
        }
    }
    texts.sort();
    assert_eq!(texts.len(), 12, "a sample came or went: say so here");
    texts
}

fn unpacked(path: &Path) -> String {
    let name = path.strip_prefix(samples()).unwrap();
    String::from_utf8(sample(name.to_str().unwrap())).unwrap()
}

fn read_path(path: &Path) -> TextReport {
    read(path, None).unwrap().unwrap().1
}

/// The lines behind the header's explanation.
fn records(text: &str) -> impl Iterator<Item = &str> {
    let header = text.find("\n--------\n").map_or(0, |at| at + 1);
    text[header..].lines()
}

/// The lines between two lines that start so, without the title lines.
fn section<'a>(text: &'a str, begin: &str, end: &str) -> Vec<&'a str> {
    let mut lines = records(text).skip_while(|line| !line.starts_with(begin)).skip(1);
    let mut found: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with(end)).collect();
    found
        .retain(|line| !line.trim_start().starts_with("rank ") && !line.trim_start().starts_with("percent "));
    found
}

/// The number behind a word of a line.
fn number_behind(line: &str, word: &str) -> u64 {
    let rest = &line[line.find(word).unwrap() + word.len()..];
    rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse().unwrap()
}

#[test]
fn real_texts_are_read_whole() {
    for path in real_texts() {
        let (text, report) = (unpacked(&path), read_path(&path));
        let name = path.display();
        assert_eq!(
            (report.not_understood, &report.malformed[..], report.runs, report.run),
            (0, &[][..], 1, 1),
            "{name}"
        );
        let starts = |word: &str| records(&text).filter(|line| line.starts_with(word)).count();
        let profile = &report.profile;
        assert_eq!(profile.threads.len(), starts("THREAD START"), "{name}");
        let ended = profile.threads.iter().filter(|thread| thread.ended).count();
        let ends = |thread: u32| text.contains(&format!("THREAD END (id = {thread})"));
        assert_eq!(ended, profile.threads.iter().filter(|thread| ends(thread.serial)).count());
        assert_eq!(profile.traces.len(), starts("TRACE "), "{name}");
        let frames: usize = profile.traces.iter().map(|trace| profile.traces.frames(trace).len()).sum();
        let is_frame = |line: &&str| line.starts_with('\t') && line.ends_with(')') && line.contains('(');
        assert_eq!(frames, records(&text).filter(is_frame).count(), "{name}");
        let of_threads =
            records(&text).filter(|line| line.starts_with("TRACE ") && line.contains("(thread=")).count();
        assert_eq!(profile.traces.iter().filter(|trace| trace.thread != 0).count(), of_threads);

        let rows = section(&text, "SITES BEGIN", "SITES END");
        let sites = profile.sites.as_ref().filter(|sites| sites.origin == Origin::Recorded);
        assert_eq!(sites.map_or(0, |sites| sites.rows.len()), rows.len(), "{name}");
        let column = |line: &str, at: usize| line.split_whitespace().nth(at).unwrap().to_owned();
        let sum = |at| rows.iter().map(|row| column(row, at).parse::<u64>().unwrap()).sum::<u64>();
        if let Some(sites) = sites {
            assert_eq!(sum(3), sites.rows.iter().map(|site| site.live_bytes).sum::<u64>());
            assert_eq!(sum(4), sites.rows.iter().map(|site| site.live_instances).sum::<u64>());
            assert_eq!(sum(5), sites.rows.iter().map(|site| site.allocated_bytes).sum::<u64>());
            assert_eq!(sum(6), sites.rows.iter().map(|site| site.allocated_instances).sum::<u64>());
            for (row, site) in rows.iter().zip(&sites.rows) {
                assert_eq!(column(row, 1), format!("{:.2}%", site.self_percent));
                assert_eq!((column(row, 7), row.ends_with(&*site.class)), (site.trace.to_string(), true));
                assert!(profile.traces.get(site.trace).is_some());
            }
        }
        let rows = section(&text, "CPU SAMPLES BEGIN", "CPU SAMPLES END");
        let samples = profile.samples.as_ref();
        assert_eq!(samples.map_or(0, |samples| samples.rows.len()), rows.len(), "{name}");
        for (row, (trace, count)) in rows.iter().zip(samples.iter().flat_map(|samples| &samples.rows)) {
            assert_eq!([column(row, 4), column(row, 3)], [trace.to_string(), count.to_string()]);
            assert!(row.ends_with(&profile.traces.method(*trace).unwrap()), "{name}: {row}");
        }
        if let Some(samples) = samples {
            let total = number_behind(&text[text.find("CPU SAMPLES BEGIN (total").unwrap()..], "(total = ");
            assert_eq!(
                (samples.total, samples.date.as_ref().unwrap().len()),
                (total, "2026-11-21T01:58:24".len())
            );
        }
        let rows = section(&text, "CPU TIME (ms) BEGIN", "CPU TIME (ms) END");
        let times = profile.times.as_ref();
        assert_eq!(times.map_or(0, |times| times.rows.len()), rows.len(), "{name}");
        for (row, time) in rows.iter().zip(times.iter().flat_map(|times| &times.rows)) {
            assert_eq!([column(row, 4), column(row, 3)], [time.trace.to_string(), time.count.to_string()]);
            assert_eq!(Some(column(row, 5)), time.name);
        }
        let rows = section(&text, "MONITOR DUMP BEGIN", "MONITOR DUMP END");
        let threads: usize = profile.monitor_dumps.iter().map(|dump| dump.threads.len()).sum();
        assert_eq!(threads, rows.iter().filter(|row| row.contains("THREAD ")).count());
        assert_eq!(
            profile.calls.len(),
            if text.starts_with("count ") { text.lines().count() - 1 } else { 0 }
        );
        assert_eq!(
            profile.calls.iter().map(|call| call.count).sum::<u64>(),
            if profile.calls.is_empty() {
                0
            } else {
                text.lines().skip(1).map(|line| column(line, 0).parse::<u64>().unwrap()).sum()
            }
        );
        assert_eq!(report.heap.is_some(), text.contains("\nHEAP DUMP BEGIN ("));
    }
}

#[test]
fn heaps_of_real_texts_count_up() {
    for name in ["agent/dump.txt.zst", "agent/all-threads.txt.zst"] {
        let path = samples().join(name);
        let (text, mut report) = (unpacked(&path), read_path(&path));
        resolve_loaders(&TextFile::open(&path).unwrap().unwrap(), &mut report).unwrap();
        let heap = report.heap.unwrap();
        let lines = section(&text, "HEAP DUMP BEGIN", "HEAP DUMP END");
        let count = |word| lines.iter().filter(|line| line.starts_with(word)).count() as u64;
        assert_eq!(
            [heap.roots, heap.class_objects, heap.instances, heap.arrays],
            [count("ROOT "), count("CLS "), count("OBJ "), count("ARR ")],
        );
        let mut naive: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for line in lines.iter().filter(|line| line.starts_with("OBJ ") || line.starts_with("ARR ")) {
            let named = line.find("class=").map_or_else(|| line.find("type=").unwrap() + 5, |at| at + 6);
            let class = line[named..].split(['@', ')']).next().unwrap().to_owned();
            let sum = naive.entry(class).or_default();
            *sum = (sum.0 + 1, sum.1 + number_behind(line, "sz="));
        }
        naive.entry("java.lang.Class".to_owned()).or_default().0 += count("CLS ");
        let mut found: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for class in heap.classes.iter().filter(|class| class.instances > 0) {
            let sum = found.entry(class.name.clone()).or_default();
            *sum = (sum.0 + class.instances, sum.1 + class.shallow_bytes);
        }
        assert_eq!(found, naive, "{name}");
        // Its loader comes after it in the file, or before it.
        let plain = heap.classes.iter().find(|class| class.name == "Plain").unwrap();
        assert_eq!(plain.loader_class.as_deref(), Some("sun.misc.Launcher$AppClassLoader"));
        let class = heap.classes.iter().find(|class| class.name == "java.lang.Class").unwrap();
        assert_eq!((class.loader, class.loader_class.as_deref()), (Some(ObjectId(0)), None));
    }
}

#[test]
fn without_sites_the_objects_are_counted() {
    let path = samples().join("agent/dump.txt.zst");
    let (report, text) = (read_path(&path), unpacked(&path));
    let sites = report.profile.sites.unwrap();
    assert_eq!(sites.origin, Origin::Objects);
    let heap = report.heap.unwrap();
    let objects: u64 = sites.rows.iter().map(|site| site.live_instances).sum();
    assert_eq!(objects, heap.instances + heap.arrays);
    let node =
        sites.rows.iter().find(|site| *site.class == *"Plain$Node" && site.live_instances == 5000).unwrap();
    let trace = format!("trace={}, class=Plain$Node@", node.trace);
    assert_eq!(text.lines().filter(|line| line.contains(&trace)).count(), 5000);
    assert_eq!((node.live_bytes, node.allocated_bytes), (120_000, 120_000));
    let last = sites.rows.last().unwrap();
    assert!((last.accumulated_percent - 100.0).abs() < 0.011);
    assert!(sites.rows.windows(2).all(|pair| pair[0].live_bytes >= pair[1].live_bytes));
}

#[test]
fn the_agent_before_jdk_5() {
    let report = Texts::new().read(JVMPI);
    let lines: Vec<u64> = report.malformed.iter().map(|line| line.line).collect();
    let dots = (1u64..).zip(JVMPI.lines()).filter(|(_, line)| line.ends_with("...")).map(|(line, _)| line);
    assert_eq!((lines, report.not_understood), (dots.collect::<Vec<_>>(), 3));
    let profile = report.profile;
    assert_eq!(profile.created.as_deref(), Some("2002-08-29T16:41:59"));
    let frames: Vec<String> = profile
        .traces
        .frames(profile.traces.get(TraceSerial(5)).unwrap())
        .map(|frame| format!("{frame}/{}", frame.line))
        .collect();
    assert_eq!(
        frames,
        ["java.util.Locale.toLowerCase(Locale.java:1188)/1188", "java.util.Locale.<clinit>(Locale.java)/-2"]
    );
    let dump = &profile.monitor_dumps[0];
    assert_eq!(dump.threads, [(8, TraceSerial(1), "R".to_owned()), (4, TraceSerial(5), "CW".to_owned())]);
    let [lock, raw] = &dump.monitors[..] else { panic!("{dump:?}") };
    assert_eq!(
        (lock.name.as_str(), lock.id, lock.raw),
        ("java.lang.ref.Reference$Lock", Some(0x811_bd50), false)
    );
    assert_eq!((lock.owner, &lock.waiting_to_be_notified[..]), (None, &[2][..]));
    assert_eq!((raw.name.as_str(), raw.raw, raw.owner), ("_hprof_dump_lock", true, Some((8, 1))));
    let contention = profile.contention.unwrap();
    let names: Vec<_> = contention.rows.iter().map(|row| row.name.as_deref().unwrap()).collect();
    assert_eq!(
        (names, contention.total_ms),
        (vec!["java.lang.ref.Reference$Lock", "Monitor Cache lock"], 20)
    );
    let heap = report.heap.unwrap();
    let mut classes: Vec<_> = heap
        .classes
        .iter()
        .map(|class| (class.name.as_str(), class.instances, class.shallow_bytes))
        .collect();
    classes.sort_unstable();
    // All five objects are stated, and 100 bytes, of which 78 are in lines: the rest is that of the class objects.
    // But it is six objects that there are.
    assert_eq!(
        classes,
        [
            ("char[]", 2, 14),
            ("java.io.ObjectStreamField[]", 1, 4),
            ("java.lang.Class", 2, 0),
            ("java.lang.Object", 0, 0),
            ("java.lang.StringBuffer", 0, 0),
            ("java.lang.Thread", 1, 60),
        ]
    );
    let sites = profile.sites.unwrap();
    let classes: Vec<_> = sites.rows.iter().map(|site| &*site.class).collect();
    assert_eq!((classes, sites.by_allocation), (vec!["char[]", "java.lang.String"], true));
    assert_eq!(profile.samples.unwrap().rows, [(TraceSerial(77), 501)]);
}

#[test]
fn class_objects_take_what_is_stated_beyond_the_rest() {
    let report = Texts::new().read(JVMPI.replace("(5 objects, 100 bytes)", "(6 objects, 100 bytes)"));
    let heap = report.heap.unwrap();
    let class = heap.classes.iter().find(|class| class.name == "java.lang.Class").unwrap();
    assert_eq!((class.instances, class.shallow_bytes), (2, 22));
}

#[test]
fn android_writes_without_a_header() {
    let report = Texts::new().read(
        "THREAD START (obj=1126, id = 1, name=\"main\", group=\"main\")\n\
         TRACE 2: (thread=1)\n\tjava.lang.Long.parseLong(Long.java:353)\n\tjava.lang.Object.wait(Native Method)\n\
         TRACE 1: (thread=1)\n\ta.b.run(Unknown Source)\n\
         CPU SAMPLES BEGIN (total = 826) Wed Jul 21 12:03:46 2010\nrank   self  accum   count trace method\n\
         \x20  1 65.62%  65.62%     542     2 java.lang.Long.parseLong\n\
         \x20  2 34,38% 100,00%     284     1 a.b.run\nCPU SAMPLES END\nTHREAD END (id = 1)\n",
    );
    assert_eq!((report.not_understood, report.runs, report.profile.format.as_str()), (0, 1, ""));
    assert_eq!(report.profile.samples.unwrap().rows, [(TraceSerial(2), 542), (TraceSerial(1), 284)]);
    let traces = &report.profile.traces;
    let frames: Vec<String> =
        traces.frames(traces.get(TraceSerial(2)).unwrap()).map(ToString::to_string).collect();
    assert_eq!(frames, ["java.lang.Long.parseLong(Long.java:353)", "java.lang.Object.wait(Native Method)"]);
    assert!(report.profile.threads[0].ended);
}

#[test]
fn all_sections_of_a_run() {
    let report = Texts::new().read(ALL);
    assert_eq!((report.not_understood, report.runs), (0, 1));
    let profile = report.profile;
    assert_eq!(profile.traces.frames(profile.traces.get(TraceSerial(300_001)).unwrap()).len(), 2);
    let samples = profile.samples.unwrap();
    assert_eq!(
        (samples.total, &samples.rows[..]),
        (8, &[(TraceSerial(300_000), 5), (TraceSerial(300_001), 3)][..])
    );
    assert_eq!(samples.date.as_deref(), Some("2026-11-21T01:58:25"));
    let times = profile.times.unwrap();
    let rows: Vec<_> = times.rows.iter().map(|row| (row.trace.0, row.count, row.self_percent)).collect();
    assert_eq!((times.total_ms, rows), (400, vec![(300_000, 3, 85.0), (300_001, 6, 15.0)]));
    assert_eq!(profile.contention.unwrap().rows[0].name.as_deref(), Some("com.acme.Lock"));
    let waits: Vec<_> = profile
        .waits
        .iter()
        .map(|wait| (wait.kind, wait.monitor.as_deref(), wait.time, wait.thread))
        .collect();
    assert_eq!(
        waits,
        [
            (WaitKind::Wait, Some("java.lang.Object"), Some(0), Some(200_002)),
            (WaitKind::Waited, Some("byte[]"), Some(5), None),
            (WaitKind::Sleep, None, Some(100), Some(7)),
            (WaitKind::Exit, Some("com.acme.Lock"), None, Some(7)),
        ]
    );
    let sites = profile.sites.unwrap();
    assert_eq!((sites.rows.len(), &*sites.rows[0].class), (2, "Plain[]"));
    let monitor = &profile.monitor_dumps[0].monitors[0];
    assert_eq!(
        (monitor.name.as_str(), &monitor.waiting_to_enter[..]),
        ("java.lang.Object", &[200_002, 0][..])
    );
    let plain = &report.heap.unwrap().classes[0];
    assert_eq!((plain.name.as_str(), plain.loader_class.as_deref()), ("Plain", Some("Plain")));
}

#[test]
fn runs_that_were_appended() {
    let texts = Texts::new();
    let old = "count callee caller time\n3 a.B.c()V a.B.d()V 5\n";
    let text = format!("{ALL}{}{old}{old}", ALL.replace("200002, name=\"a\"", "200002, name=\"b\""));
    let file = texts.file(&text);
    let of = |run| read(file.path(), run).unwrap().unwrap().1;
    let names =
        |run| of(Some(run)).profile.threads.iter().map(|thread| thread.name.clone()).collect::<Vec<_>>();
    assert_eq!((of(None).runs, of(None).run), (3, 3));
    assert_eq!((names(1), names(2)), (vec!["a".into()], vec!["b".into()]));
    // The first table of calls follows a header, the second one follows calls.
    assert_eq!([of(Some(1)), of(Some(2)), of(None)].map(|report| report.profile.calls.len()), [0, 1, 1]);
    for run in [0, 4] {
        let error = read(file.path(), Some(run)).unwrap_err().to_string();
        assert_eq!(error, format!("run {run} does not exist: the file contains 3"));
    }
}

#[test]
fn copied_texts_are_read_too() {
    let texts = Texts::new();
    let plain = texts.read(ALL);
    for text in [
        ALL.replace('\n', "\r\n"),
        ALL.replace('\n', "  \n"),
        ALL.replace('\t', "        "),
        ALL.replace("--------\n", ""),
        format!("\u{feff}{ALL}"),
        ALL.replace('\n', "\n\n"),
    ] {
        let report = texts.read(&text);
        assert_eq!((&report.malformed[..], report.not_understood), (&[][..], 0), "{text}");
        assert_eq!(report.profile, plain.profile);
        assert_eq!(report.heap, plain.heap);
    }
}

#[test]
fn compressed_texts() {
    let texts = Texts::new();
    let packed = zstd::encode_all(ALL.as_bytes(), 3).unwrap();
    assert_eq!(texts.read(&packed).profile, texts.read(ALL).profile);
    // More than a block.
    let trace = |number: u64| format!("TRACE {number}:\n\ta.B.m{}(B.java:1)\n", number * 7919);
    let traces: String = (0..50_000).map(trace).collect();
    let packed = zstd::encode_all(traces.as_bytes(), 3).unwrap();
    let half = texts.read(&packed[..packed.len() / 2]);
    assert!((1000..50_000).contains(&half.profile.traces.len()), "{}", half.profile.traces.len());
    let last = half.malformed.last().unwrap();
    assert_eq!(last.expected, "more data, but the compressed file is truncated or damaged");
}

#[test]
fn a_text_that_was_cut_says_so_and_tells_what_it_has() {
    let texts = Texts::new();
    let lines: Vec<&str> = ALL.split_inclusive('\n').collect();
    let is_begin = |line: &&&str| line.contains(" BEGIN");
    for cut in 1..=lines.len() {
        let text: String = lines[..cut].concat();
        let report = texts.read(&text);
        let begins = lines[..cut].iter().filter(is_begin).count();
        let ends = lines[..cut].iter().filter(|line| line.ends_with(" END\n")).count();
        // In the header, and in a section.
        let is_open = begins > ends || cut < 6;
        assert_eq!(report.not_understood, u64::from(is_open), "{text}");
        assert_eq!(report.runs, 1);
        let traces = lines[..cut].iter().filter(|line| line.starts_with("TRACE 3")).count();
        assert_eq!(report.profile.traces.len(), traces);
        let objects = lines[..cut].iter().filter(|line| line.starts_with("OBJ ")).count() as u64;
        assert_eq!(report.heap.map_or(0, |heap| heap.instances), objects);
    }
    // In the middle of a line, too.
    for cut in (20..ALL.len()).step_by(7) {
        let report = texts.read(&ALL.as_bytes()[..cut]);
        assert!(report.not_understood <= 2, "{cut}");
    }
}

#[test]
fn a_bad_line_loses_only_itself() {
    let texts = Texts::new();
    let plain = texts.read(ALL);
    let lines: Vec<&str> = ALL.split_inclusive('\n').collect();
    // Behind each line of the records a line of rubbish.
    for at in 6..lines.len() {
        let text = format!("{}@ rubbish\n{}", lines[..at].concat(), lines[at..].concat());
        let report = texts.read(&text);
        let found: Vec<(u64, &str)> =
            report.malformed.iter().map(|line| (line.line, line.text.as_str())).collect();
        assert_eq!(found, [(at as u64 + 1, "@ rubbish")]);
        assert_eq!(report.profile, plain.profile, "{at}");
        // Lines below it in a HEAP DUMP could belong to an object whose line it was.
        if !lines[at].starts_with('\t') {
            assert_eq!(report.heap, plain.heap, "{at}");
        }
    }
}

#[test]
fn changed_texts_are_read_without_a_panic() {
    let pieces: Vec<&[u8]> = WORDS.into_iter().chain([&b", "[..]]).collect();
    let (texts, mut numbers) = (Texts::new(), Numbers::new(0x5eed_1234_5678_9abc));
    let bases = [
        ALL,
        JVMPI,
        "count callee caller time\n3 a.B.c()V a.B.d()[La/B; 5\n1 <unknown callee> <unknown caller> 0\n",
    ];
    for round in 0..3000 {
        let mut text = bases[round % bases.len()].as_bytes().to_vec();
        for _ in 0..=numbers.below(12) {
            let at = numbers.below(text.len());
            match numbers.below(4) {
                0 => text[at] = u8::try_from(numbers.below(256)).unwrap(),
                1 => {
                    let end = (at + numbers.below(60)).min(text.len());
                    text.drain(at..end);
                }
                2 => {
                    let piece = pieces[numbers.below(pieces.len())];
                    text.splice(at..at, piece.iter().copied());
                }
                _ => {
                    let end = (at + numbers.below(300)).min(text.len());
                    let copy = text[at..end].to_vec();
                    let to = numbers.below(text.len());
                    text.splice(to..to, copy);
                }
            }
            if text.is_empty() {
                text.push(b'\n');
            }
        }
        let path = texts.write(&text);
        let Some((file, mut report)) = read(&path, None).unwrap() else { continue };
        resolve_loaders(&file, &mut report).unwrap();
        let question =
            show::TextObjectQuery { object: ObjectId(0x5000_1f93), elements: 0..u64::MAX, incoming: true };
        show::show(&file, report.run, &question).unwrap();
        assert!(report.malformed.len() as u64 <= report.not_understood);
        assert!(
            report
                .profile
                .sites
                .iter()
                .flat_map(|sites| &sites.rows)
                .all(|site| site.self_percent.is_finite())
        );
    }
}
