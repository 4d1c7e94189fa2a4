use super::*;
use crate::profile::{Call, Frame, Method, Samples, Site, Sites, StartedThread, TimeRow, Times, Traces};
use hprof_values::TraceSerial;

fn frame(method: &str, line: i32) -> Frame {
    Frame { class: Some("a.B".into()), method: Some(method.into()), source: Some("B.java".into()), line }
}

/// Creates traces of thread 7, numbered from 1. Methods are given outermost first.
fn traces(of: &[&[&str]]) -> Traces {
    let mut traces = Traces::default();
    for (serial, methods) in (1..).zip(of) {
        let frames: Vec<Frame> = (10..).zip(*methods).map(|(line, method)| frame(method, line)).collect();
        traces.add(TraceSerial(serial), 7, None, frames.into_iter().rev());
    }
    traces
}

fn by_trace(rows: &[(u32, u64)]) -> Vec<(TraceSerial, u64)> {
    rows.iter().map(|(trace, samples)| (TraceSerial(*trace), *samples)).collect()
}

fn sampled(of: &[&[&str]], rows: &[(u32, u64)]) -> Profile {
    let total = rows.iter().map(|(_, samples)| samples).sum();
    let rows = by_trace(rows);
    Profile {
        traces: traces(of),
        samples: Some(Samples { total, rows, ..Samples::default() }),
        ..Profile::default()
    }
}

fn site(class: &str, trace: u32, bytes: u64) -> Site {
    let class = class.to_owned();
    let live = Site {
        class: class.into(),
        trace: TraceSerial(trace),
        live_bytes: bytes,
        live_instances: 1,
        ..Site::default()
    };
    Site { allocated_bytes: bytes * 10, allocated_instances: 5, ..live }
}

fn with_sites(of: &[&[&str]], rows: Vec<Site>) -> Profile {
    let sites =
        Sites { origin: Origin::Recorded, rows, total: None, event: None, by_allocation: false, date: None };
    Profile { traces: traces(of), sites: Some(sites), ..Profile::default() }
}

/// Returns lines `stack weight` in the order of the walk.
fn folded(stacks: &Stacks) -> Vec<String> {
    let (mut path, mut lines) = (Vec::new(), Vec::new());
    for step in stacks.walk(|_| true) {
        path.truncate(step.depth);
        path.push(stacks.labels()[step.label as usize].text.replace("a.B.", ""));
        if step.rest > 0 {
            lines.push(format!("{} {}", path.join(";"), step.rest));
        }
    }
    lines
}

fn ask(profile: &Profile, question: &StackQuery) -> Vec<String> {
    folded(&stacks(profile, question).unwrap())
}

#[test]
fn stacks_merge_and_keep_recursion() {
    let profile = sampled(
        &[&["main", "x"], &["main", "y", "y"], &["main", "y"], &["main", "x"]],
        &[(1, 4), (2, 3), (3, 2), (4, 1)],
    );
    let found = stacks(&profile, &StackQuery::new(StackWeight::Cpu)).unwrap();
    assert_eq!(folded(&found), ["main;x 5", "main;y 2", "main;y;y 3"]);
    assert_eq!((found.total, found.stacks, found.measure), (10, 3, Measure::Samples));
    let reverse = StackQuery { reverse: true, ..StackQuery::new(StackWeight::Cpu) };
    assert_eq!(ask(&profile, &reverse), ["x;main 5", "y;main 2", "y;y;main 3"]);
}

#[test]
fn a_name_that_begins_another_is_not_torn() {
    let profile =
        sampled(&[&["run"], &["run$1", "a"], &["run", "b"], &["run (x)"]], &[(1, 1), (2, 2), (3, 3), (4, 4)]);
    let lines = ask(&profile, &StackQuery::new(StackWeight::Cpu));
    assert_eq!(lines, ["run 1", "run;b 3", "run (x) 4", "run$1;a 2"]);
}

#[test]
fn empty_and_unknown_traces() {
    let profile = sampled(&[&[], &["main"]], &[(1, 4), (9, 3), (0, 2), (2, 0)]);
    let lines = ask(&profile, &StackQuery::new(StackWeight::Cpu));
    assert_eq!(lines, ["<empty trace> 4", "<no trace> 2", "<unknown trace 9> 3"]);
}

#[test]
fn objects_are_the_innermost_frame() {
    let rows = vec![site("int[]", 1, 8), site("a.C", 1, 2), site("a.C", 2, 1), site("", 2, 1)];
    let profile = with_sites(&[&["main", "x"], &["main"]], rows);
    let live = StackQuery::new(StackWeight::Live);
    assert_eq!(
        ask(&profile, &live),
        [
            "main;<unknown class> (object) 1",
            "main;x;a.C (object) 2",
            "main;x;int[] (object) 8",
            "main;a.C (object) 1"
        ]
    );
    let objects =
        StackQuery { unit: SiteUnit::Objects, reverse: true, ..StackQuery::new(StackWeight::Allocated) };
    let found = stacks(&profile, &objects).unwrap();
    assert_eq!((found.measure, found.total), (Measure::Objects, 20));
    assert_eq!(
        folded(&found),
        [
            "<unknown class> (object);main 5",
            "a.C (object);main 5",
            "a.C (object);x;main 5",
            "int[] (object);x;main 5"
        ]
    );
    assert_eq!(stacks(&profile, &StackQuery::new(StackWeight::Allocated)).unwrap().total, 120);
}

#[test]
fn threads_are_the_root() {
    let mut profile = sampled(&[&["main", "x"], &["y"]], &[(1, 4), (2, 3), (5, 1)]);
    let mut traces = std::mem::take(&mut profile.traces);
    traces.add(TraceSerial(2), 8, None, [frame("y", 1)]);
    profile.traces = traces;
    profile.threads = vec![StartedThread { serial: 7, name: "pool;1".into(), ..Default::default() }];
    let by_thread = StackQuery { by_thread: true, ..StackQuery::new(StackWeight::Cpu) };
    assert_eq!(
        ask(&profile, &by_thread),
        ["<no thread>;<unknown trace 5> 1", "<unknown thread 8>;y 3", "pool;1 (thread=7);main;x 4"]
    );
    let reverse = StackQuery { reverse: true, ..by_thread };
    assert!(ask(&profile, &reverse).contains(&"pool;1 (thread=7);x;main 4".to_owned()));
}

#[test]
fn lines_and_depth() {
    let mut profile = sampled(&[&["main", "x"], &["main", "y", "x"]], &[(1, 4), (2, 3)]);
    profile.traces.add(TraceSerial(3), 0, None, [frame("x", 99)]);
    profile.samples.as_mut().unwrap().rows.push((TraceSerial(3), 1));
    let lines = StackQuery { lines: true, depth: Some(1), ..StackQuery::new(StackWeight::Cpu) };
    let found = stacks(&profile, &lines).unwrap();
    assert_eq!(folded(&found), ["x(B.java:11) 4", "x(B.java:12) 3", "x(B.java:99) 1"]);
    assert_eq!(found.cut, 2);
    assert_eq!(found.labels()[0].line, Some(11));
    let methods = stacks(&profile, &StackQuery { lines: false, ..lines }).unwrap();
    assert_eq!(folded(&methods), ["x 8"]);
    assert_eq!((methods.labels()[0].source.as_deref(), methods.labels()[0].line), (Some("B.java"), None));
}

#[test]
fn only_stacks_that_match() {
    let rows = vec![site("int[]", 1, 8), site("a.C", 2, 2), site("a.C", 9, 1)];
    let profile = with_sites(&[&["main", "x"], &["main"]], rows);
    let filter = |class: &[&str], method: &[&str]| StackFilter {
        classes: class.iter().map(|pattern| pattern.parse().unwrap()).collect(),
        methods: method.iter().map(|pattern| pattern.parse().unwrap()).collect(),
    };
    let total = |filter| {
        stacks(&profile, &StackQuery { filter, depth: Some(1), ..StackQuery::new(StackWeight::Live) })
            .unwrap()
            .total
    };
    assert_eq!(total(filter(&["a.C"], &[])), 3);
    assert_eq!(total(filter(&["a.*"], &[])), 11);
    assert_eq!(total(filter(&["a.C"], &["main"])), 2);
    assert_eq!(total(filter(&[], &["B.main"])), 10);
    assert_eq!(total(filter(&["int[]"], &["x", "nothing"])), 8);
    assert_eq!(total(filter(&["b.**"], &[])), 0);
}

#[test]
fn times_are_estimated() {
    let row = |trace, self_percent| TimeRow { trace, self_percent, ..TimeRow::default() };
    let rows = vec![
        row(TraceSerial(1), 50.0),
        row(TraceSerial(2), 33.33),
        row(TraceSerial(1), 0.0),
        row(TraceSerial(2), -1.0),
        row(TraceSerial(2), f64::NAN),
    ];
    let mut profile = Profile {
        traces: traces(&[&["main"], &["main", "x"]]),
        times: Some(Times { total_ms: 2000, rows, ..Times::default() }),
        ..Profile::default()
    };
    let question = StackQuery::new(StackWeight::CpuTime);
    assert_eq!(ask(&profile, &question), ["main 1000", "main;x 667"]);
    profile.times.as_mut().unwrap().total_ms = -5;
    let found = stacks(&profile, &question).unwrap();
    assert_eq!(found.measure, Measure::PercentHundredths);
    assert_eq!(folded(&found), ["main 5000", "main;x 3333"]);
}

#[test]
fn calls_are_pairs() {
    let method = |name: &str| {
        Some(Method { class: "a.B".to_owned(), name: name.to_owned(), signature: "()V".to_owned() })
    };
    let call = |caller, callee, time_ms| Call { count: 1, callee, caller, time_ms };
    let profile = Profile {
        calls: vec![
            call(method("main"), method("x"), 5),
            call(None, method("main"), 7),
            call(method("x"), method("x"), 0),
            call(method("x"), method("x"), -4),
        ],
        ..Profile::default()
    };
    assert_eq!(available_weights(&profile), [StackWeight::CpuTime]);
    let question = StackQuery::new(StackWeight::CpuTime);
    assert_eq!(ask(&profile, &question), ["<unknown method>;main 7", "main;x 5"]);
    assert_eq!(
        ask(&profile, &StackQuery { reverse: true, ..question }),
        ["main;<unknown method> 7", "x;main 5"]
    );
}

#[test]
fn what_a_file_holds() {
    assert_eq!(available_weights(&Profile::default()), []);
    let mut profile = with_sites(&[], vec![site("a.C", 0, 1)]);
    assert_eq!(available_weights(&profile), [StackWeight::Allocated, StackWeight::Live]);
    profile.sites.as_mut().unwrap().origin = Origin::Objects;
    profile.samples = Some(Samples { total: 1, rows: vec![(TraceSerial(1), 1)], ..Samples::default() });
    assert_eq!(available_weights(&profile), [StackWeight::Cpu, StackWeight::Live]);
}

#[test]
fn weights_do_not_overflow() {
    let profile = sampled_of(&[(1, u64::MAX), (2, u64::MAX), (1, 1)]);
    let found = stacks(&profile, &StackQuery::new(StackWeight::Cpu)).unwrap();
    assert_eq!((found.total, found.stacks), (u64::MAX, 2));
}

fn sampled_of(rows: &[(u32, u64)]) -> Profile {
    let mut profile = sampled(&[&["main", "x"], &["main", "y"]], &[]);
    profile.samples = Some(Samples { total: 0, rows: by_trace(rows), ..Samples::default() });
    profile
}

#[test]
fn narrow_frames_count_for_their_callers() {
    let profile = sampled(&[&["main", "x", "z"], &["main", "y"], &["main"]], &[(1, 90), (2, 9), (3, 1)]);
    let found = stacks(&profile, &StackQuery::new(StackWeight::Cpu)).unwrap();
    let steps: Vec<_> =
        found.walk(|weight| weight >= 10).map(|step| (step.depth, step.total, step.rest)).collect();
    assert_eq!(steps, [(0, 100, 10), (1, 90, 0), (2, 90, 90)]);
}

#[test]
fn long_names_are_cut() {
    let profile = sampled(&[&[&"é".repeat(5000)]], &[(1, 1)]);
    let found = stacks(&profile, &StackQuery::new(StackWeight::Cpu)).unwrap();
    assert_eq!(found.labels()[0].text.chars().count(), 1001);
}

/// A million sites with one deep trace: the size of the tree depends on the trace and the classes only.
#[test]
fn a_million_sites_of_a_deep_trace() {
    let mut traces = Traces::default();
    traces.add(TraceSerial(1), 0, None, (0..100_000).map(|number| frame("x", number % 50)));
    let rows = (0..1_000_000).map(|number| site(&format!("C{}", number % 1000), 1, 1)).collect();
    let mut profile = with_sites(&[], rows);
    profile.traces = traces;
    let question = StackQuery::new(StackWeight::Live);
    let found = stacks(&profile, &question).unwrap();
    assert_eq!((found.total, found.stacks, found.nodes.len()), (1_000_000, 1000, 101_001));
    // Each class would repeat the whole trace.
    let reverse = StackQuery { reverse: true, ..question };
    assert_eq!(stacks(&profile, &reverse).err(), Some(TooLarge));
}

/// Returns lines `stack old new` in the order of the walk.
fn both(stacks: &Stacks) -> Vec<String> {
    let (mut path, mut lines) = (Vec::new(), Vec::new());
    for step in stacks.walk_both(|_, _| true) {
        path.truncate(step.depth);
        path.push(stacks.labels()[step.label as usize].text.replace("a.B.", ""));
        if step.rest > 0 || step.old_rest > 0 {
            lines.push(format!("{} {} {}", path.join(";"), step.old_rest, step.rest));
        }
    }
    lines
}

#[test]
fn two_recordings_are_one_tree() {
    let old = sampled(&[&["main", "x"], &["main", "gone", "y"], &["main"]], &[(1, 4), (2, 3), (3, 1)]);
    let new = sampled(&[&["main", "new"], &["main", "x"], &["main", "x", "z"]], &[(1, 5), (2, 1), (3, 2)]);
    let question = StackQuery { naming: Naming::Common, ..StackQuery::new(StackWeight::Cpu) };
    let found = compare(&old, &new, &question).unwrap();
    assert_eq!(both(&found), ["main 1 0", "main;gone;y 3 0", "main;new 0 5", "main;x 4 1", "main;x;z 0 2"]);
    assert_eq!((found.total, found.stacks), (8, 3));
    assert_eq!(found.baseline, Some(Baseline { total: 8, gone: 3 }));
    // Without the old weights the tree is that of the new recording.
    assert_eq!(folded(&found), folded(&stacks(&new, &question).unwrap()));
    let same = compare(&new, &new, &question).unwrap();
    assert_eq!(same.baseline, Some(Baseline { total: 8, gone: 0 }));
    assert!(
        same.walk_both(|_, _| true).all(|step| step.rest == step.old_rest && step.total == step.old_total)
    );
}

#[test]
fn what_is_numbered_by_each_run_is_matched() {
    let named = |thread, lambda: &str, class: &str| {
        let mut traces = Traces::default();
        let frame = Frame { class: Some(lambda.into()), ..frame("run", 1) };
        traces.add(TraceSerial(thread), thread, None, [frame]);
        let thread = StartedThread { serial: thread, name: "pool".into(), ..StartedThread::default() };
        let rows = vec![site(class, thread.serial, 8), site("a.B", 99 + thread.serial, 1)];
        Profile { traces, threads: vec![thread], ..with_sites(&[], rows) }
    };
    let old = named(1, "a.M$$Lambda$1/0x01", "<unknown array class 7>");
    let new = named(2, "a.M$$Lambda$2/0x02", "<unknown array class 8>");
    let question =
        StackQuery { naming: Naming::Common, by_thread: true, ..StackQuery::new(StackWeight::Live) };
    assert_eq!(
        both(&compare(&old, &new, &question).unwrap()),
        [
            "<no thread>;<unknown trace>;a.B (object) 1 1",
            "pool;a.M$$Lambda*.run;<unknown array class> (object) 8 8"
        ]
    );
}

#[test]
fn times_of_another_kind_are_not_compared() {
    let timed = |total_ms| Profile {
        times: Some(Times {
            total_ms,
            rows: vec![TimeRow { self_percent: 5.0, ..TimeRow::default() }],
            date: None,
            event: None,
        }),
        ..Profile::default()
    };
    let calls = Profile { calls: vec![Call { time_ms: 3, ..Call::default() }], ..Profile::default() };
    let question = StackQuery::new(StackWeight::CpuTime);
    let error = |old: &Profile, new: &Profile| compare(old, new, &question).map(|_| ()).unwrap_err();
    assert_eq!(error(&timed(10), &calls), NotComparable::Calls);
    let measures = NotComparable::Measures(Measure::Milliseconds, Measure::PercentHundredths);
    assert_eq!(error(&timed(100), &timed(-1)), measures);
    assert!(compare(&calls, &calls, &question).is_ok());
}

#[test]
fn what_the_writer_left_out_is_in_the_picture() {
    let mut profile = with_sites(&[&["main", "x"]], vec![site("a.B", 1, 30)]);
    let total = Site { live_bytes: 100, allocated_bytes: 1000, ..Site::default() };
    profile.sites.as_mut().unwrap().total = Some(total);
    let found = stacks(&profile, &StackQuery::new(StackWeight::Allocated)).unwrap();
    assert_eq!(folded(&found), ["<sites below the cutoff> 700", "main;x;a.B (object) 300"]);
    assert_eq!(found.total, 1000);
    assert_eq!(
        ask(&profile, &StackQuery::new(StackWeight::Live)),
        ["<sites below the cutoff> 70", "main;x;a.B (object) 30"]
    );
    // The stacks of these sites are unknown: no filter can match them.
    let filter = StackFilter { methods: vec!["x".parse().unwrap()], ..StackFilter::default() };
    let question = StackQuery { filter, ..StackQuery::new(StackWeight::Live) };
    assert_eq!(ask(&profile, &question), ["main;x;a.B (object) 30"]);
}
