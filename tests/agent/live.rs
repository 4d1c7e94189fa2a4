//! Live objects, compared with the JVM's own figures at the same moment.

use std::collections::BTreeMap;

use crate::kit::{Jdk, class_histogram, each_jdk, not_run};
use crate::report::Report;

/// A class in the histogram's words, as reports have it.
fn java_name(name: &str) -> String {
    let element = name.trim_start_matches('[');
    let dimensions = "[]".repeat(name.len() - element.len());
    let element = match element {
        "Z" if name != element => "boolean",
        "B" if name != element => "byte",
        "C" if name != element => "char",
        "S" if name != element => "short",
        "I" if name != element => "int",
        "J" if name != element => "long",
        "F" if name != element => "float",
        "D" if name != element => "double",
        other => other.strip_prefix('L').and_then(|name| name.strip_suffix(';')).unwrap_or(other),
    };
    format!("{element}{dimensions}")
}

/// The same name for a hidden class, whose suffix the two write in their own ways.
fn without_address(name: &str) -> String {
    let cut = name.find("/0x").or_else(|| name.find(".0x"));
    cut.map_or_else(
        || name.to_owned(),
        |at| name[..at].to_owned() + name[at + 3..].trim_start_matches(|c: char| c.is_ascii_hexdigit()),
    )
}

fn compare(jdk: &Jdk, program: &[&str]) {
    // The serial collector leaves some dead objects in place, turned into int[] that fill the space, unless it always
    // compacts: the histogram does not count these, and JVM TI's walk cannot distinguish them.
    let run = jdk.run("heap=sites,cutoff=0,depth=2").jvm(&["-XX:MarkSweepAlwaysCompactCount=1"]);
    let java = run.start(program);
    java.wait_for("READY");
    // What attaching makes once is there before both; what one more command makes is dead when it counts. So no class may differ.
    jdk.jcmd(java.pid(), &["GC.class_histogram"]);
    java.dump();
    let histogram = jdk.jcmd(java.pid(), &["GC.class_histogram"]);
    let report = Report::read(&std::fs::read_to_string(java.path("out")).unwrap());
    java.end();
    let mut expected = BTreeMap::<String, (u64, u64)>::new();
    for (class, counts) in class_histogram(&histogram) {
        let class = expected.entry(without_address(&java_name(&class))).or_default();
        *class = (class.0 + counts.0, class.1 + counts.1);
    }
    let mut found = BTreeMap::<String, (u64, u64)>::new();
    for site in &report.sites {
        let class = found.entry(without_address(&site.class)).or_default();
        *class = (class.0 + site.live.objects, class.1 + site.live.bytes);
    }
    found.retain(|_, counts| counts.0 > 0);
    let classes: std::collections::BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    let mut differing = Vec::new();
    for class in classes {
        let (expected, found) =
            (expected.get(class).copied().unwrap_or_default(), found.get(class).copied().unwrap_or_default());
        if expected != found {
            differing.push(format!("{class}: {expected:?} {found:?}"));
        }
    }
    assert!(differing.is_empty(), "{program:?} on {}: JVM, agent: {differing:#?}", jdk.release);
    assert!(expected.len() > 150, "{}", expected.len());
}

#[test]
fn live_objects_are_those_of_the_jvm() {
    each_jdk("live objects", |jdk| {
        if jdk.tool("jcmd").is_none() {
            return not_run("live objects", "no jcmd");
        }
        compare(jdk, &["Wait"]);
        compare(jdk, &["Dies", "3000", "wait"]);
    });
}
