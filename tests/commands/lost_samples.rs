//! Samples by CPU time that the JVM says it lost: every command that counts CPU samples says how many.

use hprof_writer::flight::{FlightField, FlightValues, FlightWriter, INT, LONG, TEXT};

use crate::kit::process::{Folder, stderr};

/// A recording with samples of `a.B.run` by CPU time and of execution, and an event about samples that were lost.
fn recording(by_time: usize, executed: usize, lost: i64) -> Vec<u8> {
    let mut made = FlightWriter::new(true);
    let text = |text: &'static str| move |body: &mut FlightValues| body.text(text);
    let numbers = |numbers: &'static [i64]| {
        move |body: &mut FlightValues| numbers.iter().for_each(|number| body.long(*number))
    };
    made.checkpoint(31, &[(1, &text("a/B"))]);
    made.checkpoint(30, &[(1, &text("run"))]);
    made.checkpoint(32, &[(1, &numbers(&[1, 1]))]);
    made.checkpoint(35, &[(1, &numbers(&[1, 1, 12]))]);
    for (type_id, count) in [(42, by_time), (40, executed)] {
        (0..count).for_each(|_| made.event(type_id, |body| numbers(&[101, 1])(body)));
    }
    made.event(44, |body| [102, lost].into_iter().for_each(|value| body.long(value)));
    let constant = FlightField::constant;
    let sampled = [("startTime", LONG), ("stackTrace", constant(35))];
    made.metadata(&[
        (30, "jdk.types.Symbol", &[("string", TEXT)]),
        (31, "java.lang.Class", &[("name", TEXT)]),
        (32, "jdk.types.Method", &[("type", constant(31)), ("name", constant(30))]),
        (34, "jdk.types.StackFrame", &[("method", constant(32)), ("lineNumber", INT)]),
        (35, "jdk.types.StackTrace", &[("frames", FlightField::array(34))]),
        (40, "jdk.ExecutionSample", &sampled),
        (42, "jdk.CPUTimeSample", &sampled),
        (44, "jdk.CPUTimeSamplesLost", &[("startTime", LONG), ("lostSamples", LONG)]),
    ]);
    made.finish()
}

/// Words of a command.
type Words<'w> = &'w [&'w str];

#[test]
fn samples_that_the_jvm_lost_are_said_of_all_that_counts_them() {
    let lost = |samples: u64| {
        format!("hprof-cli: note: the JVM lost {samples} jdk.CPUTimeSample events, which are not counted")
    };
    let flamegraph: Words<'_> = &["flamegraph", "--format", "folded", "--data", "cpu"];
    let of_execution: Words<'_> = &["cpu", "--event", "execution"];
    let of_time: Words<'_> = &["cpu", "--event", "cpu-time"];
    let convert_execution: Words<'_> = &["convert", "--event", "execution"];
    let summary: Words<'_> = &["summary"];
    for (by_time, executed, loses, words, is_said) in [
        (2, 1, 7, &["cpu"] as Words<'_>, true),
        (2, 1, 7, flamegraph, true),
        (2, 1, 7, &["convert"], true),
        // Samples of another event, of which none are lost.
        (2, 1, 7, of_execution, false),
        (2, 1, 7, convert_execution, false),
        (0, 1, 7, &["cpu"], false),
        (0, 1, 7, flamegraph, false),
        (0, 1, 7, of_time, true),
        // All were lost.
        (0, 0, 7, &["cpu"], true),
        (0, 0, 7, flamegraph, true),
        (0, 0, 7, &["flamegraph", "--format", "folded"], true),
        (0, 0, 7, &["convert"], true),
        // None.
        (2, 0, 0, &["cpu"], false),
        (2, 0, 0, flamegraph, false),
        (2, 0, 0, &["convert"], false),
        // It has a line of its own.
        (2, 1, 7, summary, false),
    ] {
        let folder = Folder::new();
        let path = folder.write("recording.jfr", recording(by_time, executed, loses));
        let said = stderr(&folder.run(&[words, &[&path]].concat()));
        let is = said.lines().filter(|line| *line == lost(7)).count();
        assert_eq!(is, usize::from(is_said), "{by_time} {executed} {loses} {words:?}: {said}");
        assert_eq!(said.contains("lost"), is_said, "{words:?}: {said}");
    }
}

#[test]
fn of_two_recordings_the_samples_lost_are_said_of_each() {
    for (executed, is_said) in [(0, true), (3, false)] {
        // If the old one has samples of execution only, those are compared.
        let by_time = if is_said { 2 } else { 0 };
        let folder = Folder::new();
        let old = folder.write("old.jfr", recording(by_time, executed, 9));
        let new = folder.write("new.jfr", recording(2, 3, 5));
        let flamegraph = ["flamegraph", &new, "--baseline", &old, "--data", "cpu", "--format", "folded"];
        for words in [&["diff", &old, &new, "--group-by", "cpu"][..], &flamegraph] {
            let said = stderr(&folder.run(words));
            for (path, lost) in [(&old, 9), (&new, 5)] {
                let note = format!(
                    "hprof-cli: note: {path}: the JVM lost {lost} jdk.CPUTimeSample events, which are not counted"
                );
                assert_eq!(said.lines().any(|line| line == note), is_said, "{words:?}: {said}");
            }
        }
    }
}
