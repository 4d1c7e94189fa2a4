//! Heap dumps of the agent: against the JVM's own of the same moment, and against known values.

use std::collections::BTreeMap;
use std::path::Path;

use crate::kit::{ask, each_jdk, line, not_run};

const LEAK: &str = include_str!("java/Leak.java");

/// Instances and bytes by class. Hidden classes have different names in two dumps; those of JDK 11 (anonymous ones)
/// end with a number that the JVM's dumps omit.
fn histogram(dump: &Path) -> BTreeMap<String, (u64, u64)> {
    let mut classes = BTreeMap::<String, (u64, u64)>::new();
    for row in ask("histo", dump, &["--top", "0"])["rows"].as_array().unwrap() {
        let name = row["class"].as_str().unwrap();
        let name = name.split("+0x").next().unwrap();
        let numbered = name.rsplit_once('.').filter(|(class, number)| {
            class.contains("$$Lambda$") && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        let class = classes.entry(numbered.map_or(name, |(class, _)| class).to_owned()).or_default();
        class.0 += row["instances"].as_u64().unwrap();
        class.1 += row["shallow_bytes"].as_u64().unwrap();
    }
    classes
}

/// Filler that collectors of JDK 20 and later put in place of dead objects. It is not an object.
const FILLER: &str = "jdk.internal.vm.FillerElement[]";

/// Classes in which the two dumps may differ, and why.
fn is_tolerated(class: &str) -> bool {
    // Their size in the JVM's dumps is that of the class's static fields.
    class == "java.lang.Class"
        // The JVM created them before it could prepare their classes, and reports nothing about these to agents.
        || class == "jdk.internal.module.ArchivedModuleGraph"
        || class == "jdk.internal.module.SystemModuleFinders$SystemModuleFinder"
        // The JVM's dumps contain filler as if it were objects.
        || class == FILLER
}

#[test]
fn dumps_are_those_of_the_jvm() {
    each_jdk("dumps", |jdk| {
        if jdk.tool("jcmd").is_none() {
            return not_run("dumps", "no jcmd");
        }
        let run =
            jdk.run("heap=all,format=b,depth=8,cutoff=0,doe=n").jvm(&["-XX:MarkSweepAlwaysCompactCount=1"]);
        let java = run.start(&["HeapZoo", "1", "120000"]);
        java.wait_for("READY");
        jdk.jcmd(java.pid(), &["GC.class_histogram"]);
        java.dump();
        let of_jvm = java.path("jvm.hprof");
        jdk.jcmd(java.pid(), &["GC.heap_dump", of_jvm.to_str().unwrap()]);
        let (agent, jvm) = (histogram(&java.path("out")), histogram(&of_jvm));
        let classes: std::collections::BTreeSet<_> = agent.keys().chain(jvm.keys()).collect();
        let of = |counts: &BTreeMap<String, (u64, u64)>, class: &str| {
            counts.get(class).copied().unwrap_or_default()
        };
        let differing: Vec<_> = (classes.into_iter())
            .filter(|class| of(&agent, class) != of(&jvm, class) && !is_tolerated(class))
            .map(|class| format!("{class}: {:?} {:?}", of(&agent, class), of(&jvm, class)))
            .collect();
        assert!(differing.is_empty(), "agent, JVM on {}: {differing:#?}", jdk.release);
        assert_eq!(of(&agent, FILLER).0, 0);
        assert_eq!(of(&agent, "HeapZoo$Link").0, 100_000);
        assert!(agent.len() > 400, "{}", agent.len());
        // Every object of the program's classes knows where it was allocated.
        let sites = ask("sites", &java.path("out"), &["--top", "0"]);
        let mut own = 0;
        for row in sites["rows"].as_array().unwrap() {
            if row["class"].as_str().unwrap().starts_with("HeapZoo") {
                assert!(row["method"].as_str().is_some(), "{row}");
                own += row["live_instances"].as_u64().unwrap();
            }
        }
        let all: u64 =
            agent.iter().filter(|(class, _)| class.starts_with("HeapZoo")).map(|(_, count)| count.0).sum();
        assert_eq!(own, all);
    });
}

fn oql(dump: &Path, query: &str) -> Vec<Vec<serde_json::Value>> {
    let answer = ask("oql", dump, &[query]);
    let rows = answer["rows"].as_array().unwrap_or_else(|| panic!("{answer}"));
    rows.iter()
        .map(|row| match row {
            serde_json::Value::Object(row) => row.values().cloned().collect(),
            other => vec![other.clone()],
        })
        .collect()
}

#[test]
fn values_are_those_of_the_program() {
    each_jdk("values", |jdk| {
        let done = {
            let java = jdk.run("heap=all,format=b,doe=n,depth=8").start(&["Wait"]);
            java.wait_for("READY");
            java.dump();
            let first = java.path("first.hprof");
            std::fs::copy(java.path("out"), &first).unwrap();
            java.dump();
            java.end()
        };
        let (first, second) = (done.1.path().join("first.hprof"), done.1.path().join("out"));
        let every =
            oql(&first, "SELECT e.z, e.b, e.c, e.s, e.i, e.l, e.f, e.d, toString(e.o) FROM Wait$Every e");
        let text = format!("{every:?}");
        assert_eq!(every.len(), 1, "{text}");
        let words: Vec<String> = every[0]
            .iter()
            .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            .collect();
        let of_c = &words[2];
        assert!(of_c == "€" || of_c == "8364" || of_c == "\\u20ac", "{text}");
        let others: Vec<_> =
            words.iter().enumerate().filter(|(at, _)| *at != 2).map(|(_, word)| word.as_str()).collect();
        let expected =
            ["true", "-7", "-12345", "305419896", "81985529216486895", "1.5", "-0.25", "text of Every"];
        assert_eq!(others, expected, "{text}");
        // The same objects have the same IDs in a later dump.
        let query = "SELECT l.@objectAddress, l.value FROM Wait$Leaf l";
        let [early, late] = [oql(&first, query), oql(&second, query)].map(|rows| {
            let mut rows: Vec<_> = rows.iter().map(|row| format!("{row:?}")).collect();
            rows.sort();
            rows
        });
        assert_eq!(early.len(), 101);
        assert_eq!(early, late);
    });
}

#[test]
fn elements_are_those_of_the_program() {
    each_jdk("elements", |jdk| {
        let java = jdk.run("heap=dump,format=b,doe=n").start(&["Wait"]);
        java.wait_for("READY");
        java.dump();
        let dump = java.path("out");
        let class = ask("show", &dump, &["Wait"]);
        let values = |shown: &serde_json::Value, key: &str| -> Vec<(String, serde_json::Value)> {
            let fields = shown["rows"][0]["fields"].as_array().unwrap_or_else(|| panic!("{shown}"));
            fields
                .iter()
                .map(|field| (field["name"].as_str().unwrap().to_owned(), field[key].clone()))
                .collect()
        };
        let statics: BTreeMap<_, _> = values(&class, "object").into_iter().collect();
        for (field, expected) in [
            ("booleans", "true,false,true"),
            ("bytes", "-128,0,127"),
            ("shorts", "-32768,32767"),
            ("ints", "-2147483648,2147483647,3"),
            ("longs", "-9223372036854775808,9223372036854775807"),
            ("floats", "1.5,-2.25"),
            ("doubles", "3.25,-1e300"),
        ] {
            let array = ask("show", &dump, &[statics[field].as_str().unwrap()]);
            let elements: Vec<f64> =
                values(&array, "value").iter().map(|(_, value)| number(&value.to_string())).collect();
            let expected: Vec<f64> = expected.split(',').map(number).collect();
            assert_eq!(elements, expected, "{field}: {array}");
        }
        let chars = ask("show", &dump, &[statics["chars"].as_str().unwrap()]).to_string();
        assert!(chars.contains('€') || chars.contains("8364"), "{chars}");
        java.end();
    });
}

fn number(word: &str) -> f64 {
    match word {
        "true" => 1.0,
        "false" => 0.0,
        word => word.parse().unwrap_or_else(|_| panic!("{word:?}")),
    }
}

#[test]
fn objects_know_the_line_that_allocated_them() {
    each_jdk("lines", |jdk| {
        let done = jdk.run("heap=all,format=b,depth=8").ok(&["Leak"]);
        let sites = ask("sites", &done.out(), &["--top", "0"]);
        let row = sites["rows"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["class"] == "Leak$Session")
            .cloned()
            .unwrap();
        assert_eq!(row["live_instances"], 2000);
        let traces =
            String::from_utf8(crate::kit::cli("traces", &done.out(), &["--top", "0"]).stdout).unwrap();
        for mark in [line(LEAK, "SESSION"), line(LEAK, "BUFFER")] {
            assert!(traces.contains(&format!("Leak.java:{mark}")), "{mark}: {traces}");
        }
        let leaks = ask("leaks", &done.out(), &[]);
        let suspect = leaks["rows"][0].clone();
        assert_eq!(suspect["allocated_class"], "Leak$Session", "{suspect}");
        assert_eq!(suspect["allocated_objects"], 2000);
        let frames: Vec<_> =
            suspect["allocated_at"].as_array().unwrap().iter().map(ToString::to_string).collect();
        let place = format!("Leak.remember(Leak.java:{})", line(LEAK, "SESSION"));
        assert!(frames.iter().any(|frame| frame.contains(&place)), "{frames:?}");
    });
}

#[test]
fn the_jvms_own_dump_has_the_agents_sites_behind_it() {
    each_jdk("dump=jvm", |jdk| {
        let done = jdk.run("heap=all,dump=jvm,format=b,depth=8,cutoff=0").ok(&["Leak"]);
        let doctor = crate::kit::cli("doctor", &done.out(), &[]);
        assert_eq!(doctor.status.code(), Some(0), "{}", String::from_utf8_lossy(&doctor.stdout));
        let histogram = ask("histo", &done.out(), &["--top", "0"]);
        let sites = ask("sites", &done.out(), &["--top", "0"]);
        let of = |rows: &serde_json::Value, count: &str| -> u64 {
            let rows = rows["rows"].as_array().unwrap();
            let rows = rows.iter().filter(|row| row["class"] == "Leak$Session");
            rows.map(|row| row[count].as_u64().unwrap()).sum()
        };
        assert_eq!((of(&histogram, "instances"), of(&sites, "live_instances")), (2000, 2000));
        let text =
            String::from_utf8(crate::kit::cli("sites", &done.out(), &["--stack", "--top", "0"]).stdout);
        let place = format!("Leak.remember(Leak.java:{})", line(LEAK, "SESSION"));
        assert!(text.unwrap().contains(&place), "{place}");
    });
}

/// The JVM verifies each reference before and after each collection. In G1's archived heap of JDK 20 and later there are
/// fillers from the start; a dump that referred to them was found at the next collection. Older JVMs have none of their own
/// class, and find nothing.
#[test]
fn dumps_leave_the_heap_as_it_was() {
    let verify =
        ["-XX:+UseG1GC", "-XX:+UnlockDiagnosticVMOptions", "-XX:+VerifyBeforeGC", "-XX:+VerifyAfterGC"];
    each_jdk("verified heaps", |jdk| {
        for format in ["a", "b"] {
            let options = format!("heap=all,cutoff=0,format={format}");
            let java = jdk.run(&options).jvm(&verify).start(&["Wait"]);
            java.wait_for("READY");
            java.dump();
            // The second starts with a collection.
            java.dump();
            let (status, dir, said) = java.end();
            assert!(status.success(), "{format} on {}: {status:?} {said:#?}", jdk.release);
            let dump = dir.path().join("out");
            let sites = ask("sites", &dump, &["--top", "0"]);
            let sites = sites["rows"].as_array().unwrap();
            let fillers = sites.iter().filter(|row| row["class"] == FILLER);
            assert_eq!(fillers.count(), 0, "{format} on {}", jdk.release);
        }
    });
}
