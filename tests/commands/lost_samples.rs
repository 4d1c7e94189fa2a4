//! Samples by CPU time that the JVM says it lost: every command that counts CPU samples says how many.

use hprof_writer::flight::{FlightField, FlightValues, FlightWriter, INT, LONG, TEXT};

use crate::kit::process::{Folder, stderr};

/// Returns a recording with as many samples of `a.B.run` by CPU time, of its execution and of its allocations, and an event about
/// samples that were lost.
fn recording([by_time, executed, allocated]: [usize; 3], lost: i64) -> Vec<u8> {
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
    (0..allocated).for_each(|_| made.event(45, |body| numbers(&[101, 1, 1, 64])(body)));
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
        (
            45,
            "jdk.ObjectAllocationSample",
            &[sampled[0], sampled[1], ("objectClass", constant(31)), ("weight", LONG)],
        ),
    ]);
    made.finish()
}

/// Words of a command.
type Words<'w> = &'w [&'w str];

#[test]
fn samples_that_the_jvm_lost_are_said_of_all_that_counts_them() {
    let lost = "the JVM lost 7 jdk.CPUTimeSample events, which are not counted";
    let drawn: Words<'_> = &["flamegraph", "--format", "folded"];
    let flamegraph: Words<'_> = &["flamegraph", "--format", "folded", "--data", "cpu"];
    let none_matches: Words<'_> = &["flamegraph", "--format", "folded", "--data", "cpu", "--class", "none"];
    let allocated: Words<'_> = &["flamegraph", "--format", "folded", "--data", "allocated"];
    let of_execution: Words<'_> = &["cpu", "--event", "execution"];
    let of_time: Words<'_> = &["cpu", "--event", "cpu-time"];
    let convert_execution: Words<'_> = &["convert", "--event", "execution"];
    let summary: Words<'_> = &["summary"];
    let mut wrong = Vec::new();
    for (samples, loses, words, is_said) in [
        ([2, 1, 0], 7, &["cpu"] as Words<'_>, true),
        ([2, 1, 0], 7, flamegraph, true),
        ([2, 1, 0], 7, none_matches, true),
        ([2, 1, 0], 7, &["convert"], true),
        // Samples of another event, of which none are lost.
        ([2, 1, 0], 7, of_execution, false),
        ([2, 1, 0], 7, convert_execution, false),
        ([2, 1, 1], 7, allocated, false),
        // All were lost, so those of another event are counted.
        ([0, 1, 0], 7, &["cpu"], true),
        ([0, 1, 0], 7, flamegraph, true),
        ([0, 1, 0], 7, &["convert"], true),
        ([0, 1, 0], 7, of_time, true),
        ([0, 1, 0], 7, of_execution, false),
        ([0, 0, 1], 7, drawn, true),
        ([0, 0, 1], 7, allocated, false),
        // All were lost.
        ([0, 0, 0], 7, &["cpu"], true),
        ([0, 0, 0], 7, flamegraph, true),
        ([0, 0, 0], 7, drawn, true),
        ([0, 0, 0], 7, &["convert"], true),
        // None.
        ([2, 0, 0], 0, &["cpu"], false),
        ([2, 0, 0], 0, flamegraph, false),
        ([2, 0, 0], 0, &["convert"], false),
        ([0, 0, 0], 0, &["cpu"], false),
        // It has a line of its own.
        ([2, 1, 0], 7, summary, false),
    ] {
        let folder = Folder::new();
        let path = folder.write("recording.jfr", recording(samples, loses));
        let said = stderr(&folder.run(&[words, &[&path]].concat()));
        let is = said.lines().filter(|line| line.ends_with(&format!(": {lost}"))).count();
        if is != usize::from(is_said) || said.contains("lost") != is_said {
            wrong.push(format!("{samples:?} {loses} {words:?}, expected {is_said}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the note about the samples of a file that were lost.
fn note(path: &str, lost: i64) -> String {
    format!("hprof-cli: note: {path}: the JVM lost {lost} jdk.CPUTimeSample events, which are not counted")
}

#[test]
fn of_two_recordings_the_samples_lost_are_said_of_each() {
    // Of the old one: samples of both events; and of which the samples lost are said.
    for (old_samples, said_of) in [
        ([2, 0, 0], [true, true]),
        // All were lost, so those of execution are compared.
        ([0, 2, 0], [true, false]),
    ] {
        let folder = Folder::new();
        let old = folder.write("old.jfr", recording(old_samples, 9));
        let new = folder.write("new.jfr", recording([3, 3, 0], 5));
        let flamegraph = ["flamegraph", &new, "--baseline", &old, "--data", "cpu", "--format", "folded"];
        for words in [&["diff", &old, &new, "--group-by", "cpu"][..], &flamegraph] {
            let said = stderr(&folder.run(words));
            for ((path, lost), is_said) in [(&old, 9), (&new, 5)].into_iter().zip(said_of) {
                let is = said.lines().any(|line| line == note(path, lost));
                assert_eq!(is, is_said, "{words:?} {old_samples:?}: {said}");
            }
        }
        // As in `cpu`, those of the events that are counted.
        let json = folder.json(&["diff", &old, &new, "--group-by", "cpu"]);
        let lost = ["lost_samples_old", "lost_samples_new"].map(|key| json[key].as_u64());
        assert_eq!(lost, if said_of[1] { [Some(9), Some(5)] } else { [Some(0); 2] }, "{json}");
    }
}

/// A recording without samples of which all were lost is not one whose settings switched them off.
#[test]
fn without_samples_the_reason_is_that_they_were_lost() {
    for (lost, why) in [
        (0, "it contains 1 jdk.CPUTimeSamplesLost and 1 jdk.ObjectAllocationSample"),
        (9, "the JVM lost 9 jdk.CPUTimeSample events, which are not counted"),
    ] {
        let folder = Folder::new();
        let empty = folder.write("empty.jfr", recording([0, 0, 1], lost));
        let sampled = folder.write("sampled.jfr", recording([2, 0, 0], 0));
        for (old, new) in [(&empty, &sampled), (&sampled, &empty)] {
            let said = stderr(&folder.run(&["diff", old, new, "--group-by", "cpu"]));
            let error = format!("hprof-cli: error: {empty} contains no CPU samples: {why}");
            assert!(said.lines().any(|line| line == error), "{said}");
        }
        let flamegraph =
            ["flamegraph", &sampled, "--baseline", &empty, "--data", "cpu", "--format", "folded"];
        let said = stderr(&folder.run(&flamegraph));
        assert_eq!(said.lines().any(|line| line == note(&empty, lost)), lost > 0, "{said}");
        let said = stderr(&folder.run(&["cpu", &empty]));
        let none = format!("hprof-cli: note: the recording contains no CPU samples: {why}");
        assert!(said.lines().any(|line| line == none), "{said}");
    }
}
