//! SITES against what the programs allocate, exactly: interpreted and compiled, one thread and eight.

use std::collections::BTreeMap;

use crate::kit::{Jdk, each_jdk, line, not_run};
use crate::report::{Count, Report, Trace};

const KNOWN: &str = include_str!("java/Known.java");
const EIGHT: &str = include_str!("java/Eight.java");
const DIES: &str = include_str!("java/Dies.java");

/// No row is left out, and traces are long enough for all that the programs call.
const ALL: &str = "heap=sites,depth=24,cutoff=0";

fn sites(jdk: &Jdk, options: &str, jvm: &[&str], program: &[&str]) -> Report {
    Report::read(&jdk.run(options).jvm(jvm).ok(program).text())
}

/// Live and allocated: everything that is allocated is kept.
fn kept(objects: u64, size: u64) -> [Count; 2] {
    [Count::of(objects, size); 2]
}

/// Class, method of `Known`, objects for each of `n`, and bytes of each with compressed references.
const KINDS: [(&str, &str, u64, u64); 21] = [
    ("Known$Small", "small", 1, 16),
    ("Known$Wide", "wide", 1, 48),
    ("Known$Outer", "nested", 1, 16),
    ("boolean[]", "primitives", 1, 24),
    ("byte[]", "primitives", 1, 24),
    ("char[]", "primitives", 1, 32),
    ("short[]", "primitives", 1, 40),
    ("int[]", "primitives", 1, 64),
    ("long[]", "primitives", 1, 120),
    ("float[]", "primitives", 1, 80),
    ("double[]", "primitives", 1, 152),
    ("Known$Small[]", "objects", 1, 32),
    ("java.lang.Object[]", "objects", 1, 40),
    ("int[][]", "multi", 1, 32),
    ("int[]", "multi", 3, 32),
    ("Known$Small[][][]", "jagged", 1, 24),
    ("Known$Small[][]", "jagged", 2, 32),
    ("Known$Made", "reflected", 1, 16),
    ("Known$Wide[]", "arrays", 1, 40),
    ("Known$Copied", "copy", 1, 24),
    ("java.lang.Long", "boxed", 1, 24),
];

fn check_known(report: &Report, n: u64) {
    for (class, method, each, size) in KINDS {
        assert_eq!(report.of_method(class, "Known", method), kept(n * each, size), "{class} in {method}");
    }
    assert_eq!(report.of_method("long[]", "Known", "large"), kept(n / 20, 160_016));
    // The constructor of an outer object allocates the inner one.
    assert_eq!(report.of_method("Known$Small", "Known", "<init>"), kept(n, 16));
    // Before the JVM compiles a method it makes the strings that are its constants, below whoever called the method: other
    // rows than the program's own.
    for (class, size) in [("java.lang.String", 24), ("byte[]", 40)] {
        let own = report
            .sites
            .iter()
            .filter(|site| site.class == class && [site.live, site.allocated] == kept(n, size));
        let is_own = |site: &crate::report::Site| {
            report.traces[&site.trace].innermost("Known").is_some_and(|frame| frame.method == "strings")
        };
        assert_eq!(own.filter(|site| is_own(site)).count(), 1, "{class}");
    }
    // The array that is cloned dies.
    let [live, allocated] = report.of_method("short[]", "Known", "copies");
    assert_eq!((live, allocated), (Count::of(n, 216), Count::of(n + 1, 216)));
    let is_lambda = |class: &str| class.starts_with("Known$$Lambda");
    let lambdas: Vec<_> = report.sites.iter().filter(|site| is_lambda(&site.class)).collect();
    let in_lambdas = |site: &crate::report::Site| {
        report.traces[&site.trace].innermost("Known").unwrap().method == "lambdas"
    };
    assert!(lambdas.iter().all(|site| in_lambdas(site)), "{lambdas:?}");
    assert_eq!(lambdas.iter().map(|site| site.allocated.objects).sum::<u64>(), n);
    assert_eq!(lambdas.iter().map(|site| site.live.bytes).sum::<u64>(), n * 16);
    // The place is that of the source.
    let small =
        report.sites.iter().find(|site| site.class == "Known$Small" && is_in(report, site.trace, "small"));
    let frames = &report.traces[&small.unwrap().trace].frames;
    assert_eq!(frames[0].place(), format!("Known.small:{}", line(KNOWN, "SMALL")));
    assert_eq!((frames[0].source.as_str(), frames.len()), ("Known.java", 2));
    assert_eq!((frames[1].class.as_str(), frames[1].method.as_str()), ("Known", "main"));
}

fn is_in(report: &Report, trace: u32, method: &str) -> bool {
    report.traces[&trace].frames.first().is_some_and(|frame| frame.method == method)
}

/// HotSpot of JDK 11 does not send an event for each allocation in a thread's buffer (TLAB): an agent of a few lines of C got
/// 58,951 of 60,000.
fn misses_some(jdk: &Jdk, test: &str) -> bool {
    let misses = jdk.release < 17;
    if misses {
        not_run(test, "JDK 11 misses some");
    }
    misses
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn every_kind_of_allocation_is_counted_exactly() {
    each_jdk("every kind of allocation", |jdk| {
        if !misses_some(jdk, "every kind of allocation but without TLABs") {
            every_kind_in_buffers(jdk);
        }
        check_known(&sites(jdk, ALL, &["-XX:-UseTLAB", "-XX:+UseG1GC"], &["Known", "400"]), 400);
    });
}

fn every_kind_in_buffers(jdk: &Jdk) {
    check_known(&sites(jdk, ALL, &["-Xint"], &["Known", "400"]), 400);
    check_known(&sites(jdk, ALL, &["-Xcomp"], &["Known", "40"]), 40);
    // Long enough for both compilers, and for collections in between.
    check_known(&sites(jdk, ALL, &["-Xmn8m"], &["Known", "20000"]), 20_000);
}

/// Allocations by one thread are those of each of eight, at each site, and at each depth of the recursion.
fn check_eight(report: &Report, threads: u64, n: u64) {
    let total = threads * n;
    assert_eq!(report.sum("Eight$First", |_| true), kept(total, 16));
    assert_eq!(report.sum("Eight$Second", |_| true), kept(total, 32));
    assert_eq!(report.sum("Eight$Third", |_| true), kept(total, 16));
    for (class, mark) in [("Eight$First", "FIRST"), ("Eight$Second", "SECOND"), ("Eight$Third", "THIRD")] {
        let method = mark.to_lowercase();
        let place = format!("Eight.{method}:{}", line(EIGHT, mark));
        let at = |trace: &Trace| trace.frames.first().is_some_and(|frame| frame.place() == place);
        assert_eq!(report.sum(class, at)[0].objects, total, "{place}");
    }
    for depth in 0..4 {
        let mut stack = vec![format!("Eight.third:{}", line(EIGHT, "THIRD"))];
        stack.extend(std::iter::repeat_n(format!("Eight.third:{}", line(EIGHT, "RECURSION")), depth));
        stack.push(format!("Eight.all:{}", line(EIGHT, "CALL")));
        let is_it = |trace: &Trace| {
            let own = trace.frames.iter().map(crate::report::Frame::place).take(depth + 2);
            own.eq(stack.iter().cloned())
                && trace.frames.last().unwrap().place().starts_with("java.lang.Thread.run:")
        };
        assert_eq!(report.sum("Eight$Third", is_it), kept(total / 4, 16), "{stack:?}");
    }
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn eight_threads_are_counted_exactly() {
    each_jdk("eight threads", |jdk| {
        check_eight(&sites(jdk, ALL, &["-Xint"], &["Eight", "8", "500"]), 8, 500);
        check_eight(&sites(jdk, ALL, &[], &["Eight", "8", "20000"]), 8, 20_000);
        check_eight(&sites(jdk, ALL, &["-XX:+UseG1GC"], &["Eight", "8", "20000"]), 8, 20_000);
        check_eight(&sites(jdk, ALL, &[], &["Eight", "1", "20000"]), 1, 20_000);
    });
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn what_died_is_not_live() {
    each_jdk("what died", |jdk| {
        if misses_some(jdk, "what died") {
            return;
        }
        for (jvm, n) in
            [(&["-Xint"][..], 3_000), (&["-Xmn8m"][..], 60_000), (&["-XX:+UseParallelGC"][..], 60_000)]
        {
            let report = sites(jdk, ALL, jvm, &["Dies", &n.to_string()]);
            let [live, allocated] = report.sum("Dies$Kept", |_| true);
            assert_eq!((live, allocated), (Count::of(n / 3, 24), Count::of(n, 24)));
            let place = format!("Dies.third:{}", line(DIES, "KEPT"));
            assert_eq!(report.sum("Dies$Kept", |trace| trace.frames[0].place() == place)[1].objects, n);
            assert_eq!(report.sum("Dies$Last", |_| true), [Count::of(1, 16), Count::of(n, 16)]);
            assert_eq!(report.of_method("int[]", "Dies", "<init>")[0], Count::of(1, 48));
            assert_eq!(report.sum("Dies$Gone", |_| true), [Count::default(), Count::of(n, 16)]);
            // The cutoff is of what was allocated too: where most was, nothing may be alive.
            let report = sites(jdk, "heap=sites", jvm, &["Dies", &n.to_string()]);
            assert_eq!(report.sum("Dies$Gone", |_| true), [Count::default(), Count::of(n, 16)]);
        }
    });
}

/// The allocations of the program of the old agent's recordings.
#[test]
fn plain_has_what_the_old_agent_saw() {
    each_jdk("Plain", |jdk| {
        let report = sites(jdk, ALL, &[], &["Plain"]);
        assert_eq!(report.of_method("Plain$Node", "Plain", "alloc"), kept(5_000, 24));
        let [live, _] = report.of_method("java.util.HashMap$Node", "Plain", "alloc");
        assert_eq!(live, Count::of(500, 32));
    });
}

fn stacks(report: &Report, class: &str) -> Vec<Trace> {
    let sites = report.sites.iter().filter(|site| site.class == class);
    sites.map(|site| report.traces[&site.trace].clone()).collect()
}

#[test]
fn depth_cuts_traces() {
    each_jdk("depth", |jdk| {
        for (options, depth) in [
            ("heap=sites,cutoff=0", 4),
            ("heap=sites,cutoff=0,depth=2", 2),
            ("heap=sites,cutoff=0,depth=1", 1),
        ] {
            let report = sites(jdk, options, &[], &["Eight", "2", "400"]);
            let stacks = stacks(&report, "Eight$Third");
            // Recursions that are deeper than the trace is look the same.
            assert_eq!(
                stacks.len(),
                match depth {
                    4 => 4,
                    2 => 2,
                    _ => 1,
                },
                "{stacks:#?}"
            );
            assert_eq!(stacks.iter().map(|trace| trace.frames.len()).max(), Some(depth));
            assert!(report.traces.values().all(|trace| trace.frames.len() <= depth));
            assert_eq!(report.sum("Eight$Third", |_| true), kept(800, 16));
        }
        let report = sites(jdk, "heap=sites,cutoff=0,depth=0", &[], &["Eight", "2", "400"]);
        assert!(stacks(&report, "Eight$Third").iter().all(|trace| trace.frames.is_empty()));
        assert_eq!(report.sum("Eight$Third", |_| true), kept(800, 16));
    });
}

#[test]
fn lineno_leaves_lines_out() {
    each_jdk("lineno", |jdk| {
        let report = sites(jdk, &format!("{ALL},lineno=n"), &[], &["Known", "20"]);
        let all: Vec<_> = report.traces.values().flat_map(|trace| &trace.frames).collect();
        assert!(all.len() > 100);
        for frame in all {
            assert!(["Unknown line", "Native method"].contains(&frame.line.as_str()), "{frame:?}");
        }
        assert_eq!(report.of_method("Known$Small", "Known", "small"), kept(20, 16));
    });
}

#[test]
fn thread_tells_threads_apart() {
    each_jdk("thread", |jdk| {
        let report = sites(jdk, &format!("{ALL},thread=y"), &[], &["Eight", "8", "1000"]);
        let mut by_thread = BTreeMap::new();
        for site in report.sites.iter().filter(|site| site.class == "Eight$First") {
            *by_thread.entry(report.traces[&site.trace].thread.unwrap()).or_insert(0) +=
                site.allocated.objects;
        }
        assert_eq!(by_thread.values().copied().collect::<Vec<_>>(), [1000; 8]);
        for thread in by_thread.keys() {
            let name = report.threads.iter().find(|(serial, _)| serial == thread).map(|(_, name)| name);
            assert!(name.unwrap().starts_with("allocator-"), "{name:?}");
        }
        assert!(report.traces.values().any(|trace| trace.thread.is_some()));
        let report = sites(jdk, ALL, &[], &["Eight", "8", "1000"]);
        assert!(report.traces.values().all(|trace| trace.thread.is_none()));
    });
}

#[test]
fn cutoff_leaves_small_rows_out() {
    each_jdk("cutoff", |jdk| {
        let all = sites(jdk, ALL, &[], &["Known", "1000"]);
        // Of what is alive, or of what was allocated.
        let allocated: u64 = all.sites.iter().map(|site| site.allocated.bytes).sum();
        let share = |site: &crate::report::Site| {
            site.percent.max(site.allocated.bytes as f64 * 100.0 / allocated as f64)
        };
        for (cutoff, percent) in [("0.02", 2.0), ("0.0001", 0.01)] {
            let report = sites(jdk, &format!("heap=sites,depth=24,cutoff={cutoff}"), &[], &["Known", "1000"]);
            assert!(report.sites.iter().all(|site| share(site) >= percent * 0.95 - 0.01), "{cutoff}");
            // The same rows exist, except near the edge: the JVM's own objects differ in each run.
            let sure = all.sites.iter().filter(|site| share(site) > percent * 1.05 + 0.01).count();
            let maybe = all.sites.iter().filter(|site| share(site) > percent * 0.95 - 0.01).count();
            assert!(
                (sure..=maybe).contains(&report.sites.len()),
                "{cutoff}: {sure} {} {maybe}",
                report.sites.len()
            );
            assert!(report.sites.len() < all.sites.len());
        }
        let none = sites(jdk, "heap=sites,cutoff=1", &[], &["Known", "1000"]);
        assert!(none.sites.is_empty());
    });
}

/// Each object is sampled with probability p = 1 - e^(-size/interval), independently: the estimate of n objects is their
/// number divided by p, with a variance of n (1 - p) / p.
#[test]
fn samples_estimate_what_was_allocated() {
    each_jdk("sample", |jdk| {
        if misses_some(jdk, "sample") {
            return;
        }
        for interval in [1024.0_f64, 16_384.0] {
            let n = 20_000_u64;
            let options = format!("{ALL},sample={interval}");
            let done = jdk.run(&options).ok(&["Known", &n.to_string()]);
            assert!(done.stderr().contains("are estimates"), "{}", done.stderr());
            let report = Report::read(&done.text());
            for (class, method, each, size) in KINDS {
                let [live, allocated] = report.of_method(class, "Known", method);
                let truth = (n * each) as f64;
                let p = -(-(size as f64) / interval).exp_m1();
                // An estimate is rounded to whole objects, at each site.
                let most = 6.0 * (truth * (1.0 - p) / p).sqrt() + 4.0;
                for count in [live, allocated] {
                    let off = (count.objects as f64 - truth).abs();
                    assert!(off <= most, "{class} in {method} at {interval}: {count:?} of {truth}, {most}");
                    let bytes = (count.bytes as f64 - truth * size as f64).abs();
                    assert!(bytes <= most * size as f64, "{class} in {method}: {count:?}");
                }
            }
            // An object that is larger than many intervals is always met.
            let [live, allocated] = report.of_method("long[]", "Known", "large");
            let missed = (-160_016.0 / interval).exp() * 1000.0;
            let off = (allocated.objects as f64 - 1000.0).abs();
            assert!(off <= 6.0 * missed.sqrt() + 1.0, "{live:?} {allocated:?}");
        }
    });
}
