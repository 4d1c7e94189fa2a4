//! CPU SAMPLES and CPU TIME against what the programs measure of themselves, and against known numbers of calls.

use crate::kit::{Jdk, each_jdk};
use crate::report::Report;

/// A collector with which compiled loops stop at safepoints (`LoopStripMiningIter`): with the serial and the parallel
/// one, a counted loop ends before its thread can be stopped, and the sample is taken after it.
const JVM: &[&str] = &["-XX:+UseG1GC"];

#[test]
fn samples_find_the_methods_of_busy() {
    each_jdk("Busy", |jdk| {
        let done = jdk.run("cpu=samples,interval=2,depth=8,cutoff=0").jvm(JVM).ok(&["Busy", "8"]);
        let report = Report::read(&done.text());
        for method in ["primes", "trig"] {
            let percent = report.percent_of(&report.samples, "Busy", method);
            assert!(percent > 10.0, "{method}: {percent}: {:#?}", report.samples);
        }
        // Threads that sleep or wait for a monitor use no processor.
        assert!(report.percent_of(&report.samples, "Busy", "contend") < 3.0, "{:#?}", report.samples);
    });
}

/// Returns the CPU time that the program reports, in percent of the three.
fn spent(stdout: &str) -> Vec<(String, f64)> {
    let line = stdout.lines().find_map(|line| line.strip_prefix("spent ")).unwrap();
    let words: Vec<_> = line.split(' ').collect();
    let spent: Vec<_> = words.chunks(2).map(|pair| (pair[0], pair[1].parse::<f64>().unwrap())).collect();
    let total: f64 = spent.iter().map(|(_, nanos)| nanos).sum();
    spent.into_iter().map(|(name, nanos)| (name.to_owned(), nanos / total * 100.0)).collect()
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn samples_are_in_proportion_to_processor_time() {
    each_jdk("proportions", |jdk| {
        let mut off = Vec::new();
        // Where other programs have the processors, samples come in bursts: a run among three is undisturbed.
        let report = (0..3).find_map(|_| {
            let run = jdk.run("cpu=samples,interval=2,depth=8,cutoff=0,thread=y").jvm(JVM);
            let done = run.ok(&["Work", "1500"]);
            let report = Report::read(&done.text());
            let spent = spent(&done.stdout());
            let found: Vec<_> = (spent.iter())
                .map(|(method, _)| report.percent_of(&report.samples, "Work", method))
                .collect();
            let own: f64 = found.iter().sum();
            assert!(own > 50.0, "{found:?} {:#?}", report.samples);
            let pairs =
                spent.iter().zip(&found).map(|((_, expected), found)| (*expected, found / own * 100.0));
            off = pairs.filter(|(expected, found)| (found - expected).abs() > 8.0).collect();
            off.is_empty().then_some(report)
        });
        let Some(report) = report else { panic!("{off:?}") };
        let total: u64 = report.samples.iter().map(|cost| cost.count).sum();
        // 1,500 ms at 2 ms each, and the JVM's start.
        assert!((700..1500).contains(&total), "{total}");
        for thread in ["sleeper", "reader"] {
            let (serial, _) = report.threads.iter().find(|(_, name)| name == thread).unwrap();
            let samples =
                report.samples.iter().filter(|cost| report.traces[&cost.trace].thread == Some(*serial));
            assert_eq!(samples.map(|cost| cost.count).sum::<u64>(), 0, "{thread}");
        }
    });
}

/// Calls of the methods of `Calls`: those of `fib` by their recurrence.
fn expected_calls() -> Vec<(&'static str, u64)> {
    fn fib(n: u64) -> u64 {
        if n < 2 { 1 } else { 1 + fib(n - 1) + fib(n - 2) }
    }
    vec![
        ("fib", fib(15)),
        ("middle", 1000),
        ("leaf", 2000 + 150),
        ("catcher", 300),
        ("passer", 300),
        ("thrower", 300),
        ("wide", 250),
        ("threaded", 4),
        ("locked", 2000),
        ("sleeper", 1),
        ("idle", 1),
        ("main", 1),
    ]
}

fn check_calls(jdk: &Jdk, options: &str, jvm: &[&str]) {
    let report = Report::read(&jdk.run(options).jvm(jvm).ok(&["Calls"]).text());
    for (method, calls) in expected_calls() {
        assert_eq!(report.calls(&format!("Calls.{method}")), calls, "{method} with {options} {jvm:?}");
    }
    assert_eq!(report.calls("Calls$Own.<init>"), 250);
    // Time without callees: the sleeper's is its own, not its caller's.
    let part =
        |method: &str| report.percent_of(&report.times, "Calls", method) / 100.0 * report.times_ms as f64;
    assert!(part("sleeper") >= 218.0, "{} of {}", part("sleeper"), report.times_ms);
    assert!(part("idle") < 60.0, "{}", part("idle"));
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn times_count_every_call() {
    each_jdk("times", |jdk| {
        check_calls(jdk, "cpu=times,cutoff=0", &[]);
        check_calls(jdk, "cpu=times,cutoff=0,depth=1", &["-Xint"]);
        check_calls(jdk, "cpu=times,cutoff=0,depth=20", &["-Xcomp"]);
        check_calls(jdk, "cpu=times,cutoff=0,filter=Calls", &[]);
    });
}

#[test]
fn the_table_of_old_has_callers() {
    each_jdk("old", |jdk| {
        let text = jdk.run("cpu=old").ok(&["Calls"]).text();
        let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.rsplitn(2, ' ').collect()).collect();
        let row = |callee: &str, caller: &str| {
            let wanted = format!(" {callee} {caller}");
            let row = rows
                .iter()
                .find(|row| row[1].ends_with(&wanted))
                .unwrap_or_else(|| panic!("{wanted}: {text}"));
            let number = |text: &str| text.parse::<u64>().unwrap();
            (number(row[1].split(' ').next().unwrap()), number(row[0]))
        };
        let (callee, caller) = ("Calls.leaf()V", "Calls.middle()V");
        assert_eq!(row(callee, caller).0, 2000);
        assert_eq!(row(callee, "Calls.thrower(I)V").0, 150);
        assert_eq!(row("Calls.thrower(I)V", "Calls.passer(I)V").0, 300);
        assert_eq!(row("Calls.fib(I)I", "Calls.main([Ljava/lang/String;)V").0, 1);
        assert_eq!(row("Calls.fib(I)I", "Calls.fib(I)I").0, expected_calls()[0].1 - 1);
        // Time with callees.
        assert!(row("Calls.idle()V", "Calls.main([Ljava/lang/String;)V").1 >= 219, "{text}");
    });
}

#[test]
fn what_a_filter_leaves_out_is_not_measured() {
    each_jdk("filter", |jdk| {
        let none = jdk.run("cpu=old,filter=com.acme").ok(&["Calls"]);
        assert_eq!(none.text(), "count callee caller time\n");
        const NOTHING: &str = "no methods were measured: filter=com.acme:org.x selects no method";
        let times = jdk.run("cpu=times,filter=com.acme:org.x").ok(&["Calls"]);
        assert!(Report::read(&times.text()).times.is_empty());
        assert!(times.stderr().contains(NOTHING), "{}", times.stderr());
        let some = jdk.run("cpu=times,filter=com.acme:Calls").ok(&["Calls"]);
        assert!(!some.stderr().contains("no methods"), "{}", some.stderr());
        let own = jdk.run("cpu=old,filter=Calls").ok(&["Calls"]).text();
        assert!(own.lines().skip(1).all(|row| row.contains(" Calls")) && own.lines().count() > 3, "{own}");
    });
}
